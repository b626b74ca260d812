"""Figures of a network on packed rows that it does not train on, by class of row.

The benchmarks of ``redraft eval`` measure shipped models; these watch a run.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from .checkpoints import TrainConfig
from .masks import acceptance
from .moments import EditClass, group_of
from .network import Network
from .shards import PackedRows

#: Classes of next edits that have figures beside those of the groups.
_FLAGS = (EditClass.CHAIN, EditClass.ELSEWHERE, EditClass.ONLY_DELETES)


@torch.no_grad()
def evaluate(network: Network, rows: PackedRows, config: TrainConfig) -> dict[str, Any]:
    """Return figures by name, computed on the network's device.

    ``GROUP_rows``: how many; ``GROUP_nats``: of a whole answer; ``GROUP_loss``: nats per token;
    ``GROUP_exact``: share of answers that greedy decoding writes. Where masks are trained, they are
    the figures of :func:`.masks.acceptance` for ``infill_draft`` and ``edit_draft``.
    """
    network.eval()
    figures: dict[str, Any] = {}
    if config.masks:
        for task, wanted in (("infill", False), ("edit", True)):
            members = np.flatnonzero(rows.is_edit == wanted)[: config.evaluate_rows // 2]
            found = acceptance(network, rows, members, config.masks)
            figures |= {f"{task}_draft_{name}": value for name, value in found.items()}
        return figures
    sums: dict[str, NDArray[np.float64]] = {}
    for member in _balanced(rows, config.evaluate_rows):
        tokens, prompt, _ = rows[int(member)]
        ids = torch.from_numpy(np.append(tokens, network.config.end_token)).to(network.embed.device)
        hidden, _ = network.context(ids)  # [n, hidden]
        logits, target = network.logits(hidden[prompt - 1 : -1]), ids[prompt:]
        nats = float(F.cross_entropy(logits, target, reduction="sum"))
        exact = bool((logits.argmax(-1) == target).all())
        kind = int(rows.kind[member])
        flags = (f for f in _FLAGS if kind & EditClass.NEXT_EDIT and kind & f)
        for name in (group_of(kind), *(str(flag.name).lower() for flag in flags)):
            sums[name] = sums.get(name, np.zeros(4)) + np.array([1, nats, len(target), exact])
    for name, (count, nats, length, exact) in sorted(sums.items()):
        figures[f"{name}_rows"] = int(count)
        figures[f"{name}_nats"] = round(nats / count, 3)
        figures[f"{name}_loss"] = round(nats / length, 4)
        figures[f"{name}_exact"] = round(exact / count, 4)
    return figures


def _balanced(rows: PackedRows, most: int) -> list[int]:
    """Return the first rows of each group, about as many of each."""
    groups: dict[str, list[int]] = {}
    for member, kind in enumerate(rows.kind.tolist()):
        groups.setdefault(group_of(kind), []).append(member)
    share = max(1, most // max(1, len(groups)))
    return [member for members in groups.values() for member in members[:share]]
