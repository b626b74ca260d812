"""What a network can do while it is trained: loss by position and mask ratio, exact match, tokens
per step, on packed rows it does not train on.

The benchmarks of ``redraft eval`` judge what is shipped; this is for watching a run. Knows nothing
of optimisers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from ..decoding.denoise import AUTOREGRESSIVE, LEFTMOST_FIRST, denoise, plan_for
from ..decoding.plan import AnswerLimits, Brief, Plan
from ..network.torch_network import KeyValues, Network
from ..runtime.torch_backend import TorchBackend
from .mask_drafts import rightness
from .noise import Canvas, lay_canvas
from .shards import Rows

RATIOS = (1.0, 0.75, 0.5, 0.25)  # of the positions that are hidden
#: First and last position of the groups that losses are told for.
POSITIONS = ((0, 0), (1, 3), (4, 7), (8, 15), (16, 31))


@dataclass(frozen=True, slots=True)
class Extent:
    """How much is judged, and in what respects."""

    rows: int  # for the losses, both tasks together
    exact_rows: int  # of them also decoded, for exact match and tokens per step
    max_context: int
    canvas: bool = True
    causal: bool = False
    masks: int = 0  # of a group of mask drafts; 0: there are none
    control: bool = False  # also decode one token a step


@torch.no_grad()
def appraise(network: Network, rows: Rows, extent: Extent, device: str) -> dict[str, Any]:
    """Figures by name, per task.

    ``{task}_loss`` and ``_accuracy`` are of canvases with everything hidden, of code and the first
    END alike, padding left out; ``_causal_`` of the causal pass on the answers. The control writes
    by the causal pass alone where that is trained, else leftmost-first.
    """
    network.eval()
    figures: dict[str, Any] = {}
    for task, wanted in (("infill", False), ("edit", True)):
        members = np.flatnonzero((rows.is_edit == wanted) & (rows.prompt <= extent.max_context))
        members = members[: extent.rows // 2]
        if extent.masks:
            figures |= _of_drafts(network, rows, members, task, extent, device)
            continue
        figures |= _losses(network, rows, members, task, extent, device)
        decoded = members[: extent.exact_rows // 2]
        judged = network.config.verifier == "ar"
        if extent.canvas or judged:
            figures |= _decode(network, rows, decoded, task, plan_for("medium"))
        if extent.control:
            alone = AUTOREGRESSIVE if judged else LEFTMOST_FIRST
            figures |= _decode(network, rows, decoded, f"{task}_control", alone)
    return figures


def _of_drafts(
    network: Network,
    rows: Rows,
    members: NDArray[np.int64],
    task: str,
    extent: Extent,
    device: str,
) -> dict[str, Any]:
    found = rightness(network, rows, members, extent.masks, device)
    return {f"{task}_draft_{name}": value for name, value in found.items()}


def _losses(
    network: Network,
    rows: Rows,
    members: NDArray[np.int64],
    task: str,
    extent: Extent,
    device: str,
) -> dict[str, Any]:
    causal = LossTally()
    by_ratio = {ratio: LossTally() for ratio in RATIOS}
    by_position = {group: LossTally() for group in POSITIONS}
    for member in members:
        tokens, prompt, _ = rows[int(member)]
        end = network.config.end_token
        ids = torch.from_numpy(np.append(tokens, end))[None].to(device)  # [1, n + 1]
        hidden, past = network.context(ids)
        if extent.causal:
            causal.add(network.logits(hidden[0, prompt - 1 : -1]), ids[0, prompt:])
        if not extent.canvas:
            continue
        for ratio, canvas in _canvases(network, tokens, prompt, int(member)).items():
            logits, target, at = _predictions(network, canvas, past, device)
            by_ratio[ratio].add(logits, target)
            for (low, high), tally in by_position.items() if ratio == 1.0 else ():
                inside = (at >= low) & (at <= high)
                tally.add(logits[inside], target[inside])
    figures: dict[str, Any] = {}
    if extent.causal:
        figures |= causal.figures(f"{task}_causal")
    if extent.canvas:
        figures |= by_ratio[1.0].figures(task)
        figures[f"{task}_by_ratio"] = {str(ratio): t.mean() for ratio, t in by_ratio.items()}
        figures[f"{task}_by_position"] = {
            f"{low}-{high}": tally.mean() for (low, high), tally in by_position.items()
        }
    return figures


def _canvases(
    network: Network, tokens: NDArray[np.int64], prompt: int, seed: int
) -> dict[float, Canvas]:
    """The answer's first canvas at each mask ratio; the same positions for every network."""
    config, rng = network.config, np.random.default_rng(seed)
    width = config.canvas_width
    padded = np.concatenate([tokens, np.full(width + 1, config.end_token)])
    order = rng.permutation(width)
    found: dict[float, Canvas] = {}
    for ratio in RATIOS:
        hidden = np.zeros(width, np.bool_)
        hidden[order[: max(1, round(ratio * width))]] = True
        found[ratio] = lay_canvas(
            padded, prompt, len(tokens) - prompt, 0, hidden, config.mask_token
        )
    return found


def _predictions(
    network: Network, canvas: Canvas, past: KeyValues, device: str
) -> tuple[Tensor, Tensor, Tensor]:
    """Logits [n, vocab], targets [n] and positions [n] of what counts in ``canvas``."""
    windows = torch.from_numpy(canvas.window)[None, None].to(device)  # [1, 1, B]
    starts = torch.tensor([[canvas.start]], device=device)
    hidden = network.canvas(windows, starts, past)[0, 0]  # [B, hidden]
    at = torch.from_numpy(np.flatnonzero(canvas.weight == 1)).to(device)
    return network.logits(hidden[at]), torch.from_numpy(canvas.target).to(device)[at], at


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

    def mean(self) -> float | None:
        """Nats per token; None where nothing was counted."""
        return round(self.loss / self.count, 4) if self.count else None

    def figures(self, name: str) -> dict[str, float]:
        count = max(self.count, 1)
        return {
            f"{name}_loss": round(self.loss / count, 4),
            f"{name}_accuracy": round(self.right / count, 4),
        }


def _decode(
    network: Network, rows: Rows, members: NDArray[np.int64], name: str, plan: Plan
) -> dict[str, float]:
    """Exact match under ``plan`` and tokens placed per denoise step."""
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
        sequence = backend.new_sequence(len(tokens) + 128)
        sequence.prefill(tokens[: prompt - 1])
        draft = denoise(sequence, int(tokens[prompt - 1]), brief, np.random.default_rng(0)).drafts[
            0
        ]
        exact += [*draft.token_ids] == [*tokens[prompt:].tolist(), network.config.end_token]
        placed += len(draft.token_ids)
        steps += draft.steps
    return {
        f"{name}_exact": round(exact / max(len(members), 1), 4),
        f"{name}_tokens_per_step": round(placed / max(steps, 1), 3),
    }
