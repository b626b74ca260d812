"""Figures of a network on packed rows that it does not train on, for watching a run.

They are the loss, exact matches and tokens per step, or of mask drafts how often they are right.
The benchmarks of ``redraft eval`` measure shipped models.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from ..decode.completion import AUTOREGRESSIVE, Brief, Plan, plan_for
from ..decode.endings import AnswerLimits
from ..decode.passes import Passes
from ..decode.speculative import write
from .mask_drafts import acceptance
from .network import Network
from .shards import Rows
from .torch_backend import TorchBackend
from .train_config import TrainConfig


@torch.no_grad()
def appraise(
    network: Network, rows: Rows, config: TrainConfig, device: str, control: bool = False
) -> dict[str, Any]:
    """Return figures by name, per task.

    ``{task}_causal_loss`` and ``_causal_accuracy`` are of the causal pass on the answers.

    Args:
        control: also decode one token a pass.
    """
    network.eval()
    figures: dict[str, Any] = {}
    for task, wanted in (("infill", False), ("edit", True)):
        members = np.flatnonzero((rows.is_edit == wanted) & (rows.prompt <= config.max_context))
        members = members[: config.evaluate_rows // 2]
        if config.masks:
            found = acceptance(network, rows, members, config.masks, device)
            figures |= {f"{task}_draft_{name}": value for name, value in found.items()}
            continue
        figures |= _losses(network, rows, members, task, device)
        decoded = members[: config.exact_rows // 2]
        figures |= _decode(network, rows, decoded, task, plan_for("medium"))
        if control:
            figures |= _decode(network, rows, decoded, f"{task}_control", AUTOREGRESSIVE)
    return figures


def _losses(
    network: Network, rows: Rows, members: NDArray[np.int64], task: str, device: str
) -> dict[str, Any]:
    tally = LossTally()
    for member in members:
        tokens, prompt, _ = rows[int(member)]
        ids = torch.from_numpy(np.append(tokens, network.config.end_token)).to(device)
        hidden, _ = network.context(ids)  # [n + 1, hidden]
        tally.add(network.logits(hidden[prompt - 1 : -1]), ids[prompt:])
    return tally.figures(f"{task}_causal")


@dataclass(slots=True)
class LossTally:
    """Cross-entropy and accuracy, summed up."""

    loss: float = 0.0
    right: int = 0
    count: int = 0

    def add(self, logits: Tensor, target: Tensor) -> None:
        self.loss += float(F.cross_entropy(logits, target, reduction="sum"))
        self.right += int((logits.argmax(-1) == target).sum())
        self.count += len(target)

    def figures(self, name: str) -> dict[str, float]:
        count = max(self.count, 1)
        return {
            f"{name}_loss": round(self.loss / count, 4),
            f"{name}_accuracy": round(self.right / count, 4),
        }


def _decode(
    network: Network, rows: Rows, members: NDArray[np.int64], name: str, plan: Plan
) -> dict[str, float]:
    """Return exact matches under ``plan`` and tokens written per pass."""
    backend = TorchBackend(network)
    exact, placed, steps = 0, 0, 0
    for member in members:
        tokens, prompt, _ = rows[int(member)]
        brief = Brief(
            network.config,
            [b"."] * network.config.vocab,  # texts do not matter here, token ids do
            plan,
            AnswerLimits(max_tokens=80),
        )
        sequence = backend.open(len(tokens) + 128)
        sequence.extend(tokens[: prompt - 1])
        last, rng = int(tokens[prompt - 1]), np.random.default_rng(0)
        (draft,) = write(Passes(sequence), last, brief, rng)
        exact += [*draft.token_ids] == [*tokens[prompt:].tolist(), network.config.end_token]
        placed += len(draft.token_ids)
        steps += draft.steps
    return {
        f"{name}_exact": round(exact / max(len(members), 1), 4),
        f"{name}_tokens_per_step": round(placed / max(steps, 1), 3),
    }
