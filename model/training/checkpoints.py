"""What a training run leaves in its folder: state to resume from, the adapter to ship, its log.

``state.pt`` holds plain tensors and is loaded with weights_only; ``adapter.safetensors`` is the
moving average in bf16; ``log.jsonl`` has a line for each step and each judgement, ``loss.png``
draws it. Every file is replaced in one move or only added to.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from ..config import ModelConfig
from .reference.torch_network import Network
from .train_config import TrainConfig

Arrays = Mapping[str, NDArray[np.float32]]


@dataclass(slots=True)
class RunProgress:
    """What a run has behind it, on all devices together; saved with every checkpoint."""

    step: int = 0
    seconds: float = 0.0
    positions: int = 0  # supervised positions
    tokens: int = 0  # context tokens read


@dataclass(slots=True)
class State:
    """All that a run changes; what it needs to go on where it was cut off."""

    trained: dict[str, torch.nn.Parameter]
    average: dict[str, Tensor]  # of ``trained``, over its steps; this is what ships
    optimiser: torch.optim.Optimizer
    done: RunProgress

    @classmethod
    def fresh(cls, network: Network, learning_rate: float, weight_decay: float) -> State:
        trained = {n: p for n, p in network.named_parameters() if p.requires_grad}
        optimiser = torch.optim.AdamW(
            trained.values(), lr=learning_rate, betas=(0.9, 0.98), weight_decay=weight_decay
        )
        average = {n: p.detach().clone().float() for n, p in trained.items()}
        return cls(trained, average, optimiser, RunProgress())

    def save(self, path: Path) -> None:
        """Written in one move."""
        state = {
            "adapter": {n: p.detach() for n, p in self.trained.items()},
            "average": self.average,
            "optimiser": self.optimiser.state_dict(),
            "progress": asdict(self.done),
        }
        temporary = path.with_suffix(".tmp")
        torch.save(state, temporary)
        temporary.replace(path)

    def resume(self, path: Path) -> bool:
        """Take over what ``path`` holds; False where there is no such file."""
        if not path.is_file():
            return False
        where = next(iter(self.trained.values())).device
        state = torch.load(path, map_location=where, weights_only=True)
        self._put(state["adapter"])
        for name, value in state["average"].items():
            self.average[name].copy_(value)
        self.optimiser.load_state_dict(state["optimiser"])
        self.done = RunProgress(**state["progress"])
        return True

    @contextmanager
    def with_average(self) -> Iterator[None]:
        """The network computes with the moving average; then what trains comes back untouched."""
        own = {n: p.detach().clone() for n, p in self.trained.items()}
        self._put(self.average)
        try:
            yield
        finally:
            self._put(own)

    def _put(self, values: Mapping[str, Tensor]) -> None:
        for name, parameter in self.trained.items():
            parameter.data.copy_(values[name])


# --- what ships -------------------------------------------------------------------------------


def shippable(
    config: TrainConfig, base: Arrays, average: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The adapter; of a full run, the part of each matrix's change that fits into ``rank``."""
    if config.adapter != "full":
        return dict(average)
    found: dict[str, Tensor] = {}
    for name, now in average.items():
        if not is_matrix(name):
            found[name] = now
            continue
        change = now - torch.from_numpy(np.ascontiguousarray(base[name])).to(now.device)
        low, high = low_rank(change, config.rank)
        stem = name.removesuffix(".weight")
        found[f"{stem}.lora_a"], found[f"{stem}.lora_b"] = low, high
    return found


def low_rank(change: Tensor, rank: int) -> tuple[Tensor, Tensor]:
    """lora_a [rank, in] and lora_b [out, rank] whose product is nearest to ``change`` [out, in]:
    its largest singular values (Eckart and Young, 1936)."""
    u, s, v = torch.linalg.svd(change.float(), full_matrices=False)
    root = s[:rank].sqrt()
    return root[:, None] * v[:rank], u[:, :rank] * root


def is_matrix(name: str) -> bool:
    """Whether a parameter is one that a full run trains."""
    return name.startswith("blocks.") and name.endswith(".weight") and "norm" not in name


def under(prefix: str, arrays: Arrays) -> dict[str, Tensor]:
    return {prefix + name: torch.from_numpy(values) for name, values in arrays.items()}


def metadata(
    config: TrainConfig, model: ModelConfig, done: RunProgress, facts: Mapping[str, str]
) -> dict[str, str]:
    """What whoever loads the adapter checks, and how it came about."""
    return {
        "rank": str(config.rank),
        "scale": "1.0",
        "adapter": config.active,
        "canvas": str(model.canvas_width),
        "masks": str(config.masks),
        "sampler": str(config.sampler),
        "logit_shift": str(int(model.logit_shift)),
        "prompt_format": model.prompt_format,
        "verifier": "ar",
        "steps": str(done.step),
        "positions": str(done.positions),
        "context_tokens": str(done.tokens),
        "minutes": f"{done.seconds / 60:.0f}",
        "license": "apache-2.0",
        **facts,
    }


def save_adapter(path: Path, tensors: Mapping[str, Tensor], facts: Mapping[str, str]) -> None:
    """The adapter in bf16, replaced in one move."""
    temporary = path.with_suffix(".tmp")
    save_file(
        {n: t.to(torch.bfloat16).cpu().contiguous() for n, t in tensors.items()},
        str(temporary),
        dict(facts),
    )
    temporary.replace(path)


# --- the log ----------------------------------------------------------------------------------


def forget_after(log: Path, step: int) -> None:
    """Drop entries of steps that a cut-off run took after its last checkpoint."""
    if log.is_file():
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("}\n") and json.loads(line)["step"] <= step]
        log.write_text("".join(kept), encoding="utf-8")


def log(out: Path, entry: dict[str, Any]) -> None:
    with (out / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def plot(out: Path) -> None:
    """``loss.png`` from ``log.jsonl``: losses, and of mask drafts the tokens they bring a pass."""
    import matplotlib

    matplotlib.use("Agg")  # no screen needed
    from matplotlib import pyplot

    entries = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    steps = [e for e in entries if e["kind"] == "step"]
    judged = [e for e in entries if e["kind"] == "evaluation"]
    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    axes.plot([e["step"] for e in steps], [e["loss"] for e in steps], alpha=0.3, label="training")
    _held_out(axes, judged, "_loss", "held out")
    axes.set_xlabel("step")
    axes.set_ylabel("loss per token, nats")
    axes.legend(loc="lower left")
    if any("_draft_tokens_per_pass" in key for e in judged for key in e):
        beside = axes.twinx()
        _held_out(beside, judged, "_draft_tokens_per_pass", "tokens a pass, held out")
        beside.set_ylabel("tokens a pass")
        beside.legend(loc="upper right")
    figure.tight_layout()
    figure.savefig(out / "loss.png", dpi=110)


def _held_out(axes: Any, judged: list[dict[str, Any]], ending: str, what: str) -> None:
    """A line of the figures whose names end so for each task they are told of."""
    tasks = sorted({key.removesuffix(ending) for e in judged for key in e if key.endswith(ending)})
    for task in tasks:
        points = [(e["step"], e[task + ending]) for e in judged if task + ending in e]
        axes.plot(*zip(*points, strict=True), marker="o", label=f"{task}, {what}")
