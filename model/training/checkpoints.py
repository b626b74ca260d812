"""Files of a training run: the state to resume from, the adapter to ship, the log.

``state.pt`` holds plain tensors and is loaded with weights_only; ``adapter.safetensors`` is the
moving average in bf16; ``log.jsonl`` has a line for each step and each evaluation, ``loss.png``
draws it. Every file is replaced in one move or only added to.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from ..config import ModelConfig
from ..weights.adapter import GROUND
from .appraisal import appraise
from .network import Network
from .shards import Rows
from .train_config import TrainConfig

Arrays = Mapping[str, NDArray[np.float32]]


@dataclass(slots=True)
class RunProgress:
    """Progress of a run, on all devices together; saved with every checkpoint."""

    step: int = 0
    seconds: float = 0.0
    positions: int = 0  # supervised positions
    tokens: int = 0  # read: prompts and answers

    def used(self, config: TrainConfig) -> float:
        """Return the share of the first budget to end that is used; 1 or more: the run is over."""
        shares = (self.step / config.steps, self.tokens / config.tokens)
        return max(*shares, self.seconds / (60 * config.minutes))


@dataclass(slots=True)
class State:
    """Everything that a run changes: enough to resume it after any step.

    Batches depend on their numbers alone, so the step also gives the place in the rows.
    """

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
        """Write the state in one move."""
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
        """Take over the state at ``path``; return False if there is no such file."""
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
        """Have the network compute with the moving average for a while."""
        own = {n: p.detach().clone() for n, p in self.trained.items()}
        self._put(self.average)
        try:
            yield
        finally:
            self._put(own)

    @torch.no_grad()
    def update_average(self, decay: float) -> None:
        """Move the average towards the weights, which count 1 - ``decay``."""
        for name, parameter in self.trained.items():
            self.average[name].lerp_(parameter.float(), 1 - decay)

    def _put(self, values: Mapping[str, Tensor]) -> None:
        for name, parameter in self.trained.items():
            parameter.data.copy_(values[name])


@dataclass(slots=True)
class RunFolder:
    """Output of the first process: log, checkpoints, lines for the user."""

    out: Path
    config: TrainConfig
    network: Network
    state: State
    ground: Arrays
    facts: Mapping[str, str]
    say: Callable[[str], None]
    _saved_at: float = field(default_factory=time.monotonic)
    _last: RunProgress | None = None  # at the step before

    @property
    def unsaved_s(self) -> float:
        return time.monotonic() - self._saved_at

    def log_step(self, losses: dict[str, float], rate: float) -> None:
        """Log the losses of a step by kind, and say every tenth."""
        done, last = self.state.done, self._last or self.state.done
        speed = (done.tokens - last.tokens) / max(done.seconds - last.seconds, 1e-9)
        self._last = replace(done)
        facts = {"rate": rate, "tokens_per_s": round(speed, 1)}
        rounded = {name: round(value, 4) for name, value in losses.items()}
        entry = {"kind": "step", "arithmetic": self.network.arithmetic, **rounded, **facts}
        log(self.out, entry | asdict(done))
        if done.step % 10 == 0:
            left = done.seconds * (1 / max(done.used(self.config), 1e-9) - 1) / 60
            self.say(
                f"step {done.step}, loss {losses['loss']:.3f}, {done.seconds / 60:.1f} min, "
                f"{left:.0f} min left, {done.tokens / done.seconds:,.0f} tokens/s"
            )

    def log_evaluation(self, rows: Rows, device: str) -> None:
        with self.state.with_average():
            figures = appraise(self.network, rows, self.config, device)
        log(self.out, {"kind": "evaluation", **figures, **asdict(self.state.done)})
        self.say(" ".join(f"{name} {value}" for name, value in figures.items()))

    def save(self) -> None:
        """Write the state to resume from, and the adapter."""
        self.state.save(self.out / "state.pt")
        tensors = self.state.average | under(GROUND, self.ground)
        described = metadata(self.config, self.network.config, self.state.done, self.facts)
        save_adapter(self.out / "adapter.safetensors", tensors, described)
        self._saved_at = time.monotonic()


# --- what ships -------------------------------------------------------------------------------


def under(prefix: str, arrays: Arrays) -> dict[str, Tensor]:
    return {prefix + name: torch.from_numpy(values) for name, values in arrays.items()}


def metadata(
    config: TrainConfig, model: ModelConfig, done: RunProgress, facts: Mapping[str, str]
) -> dict[str, str]:
    """Return what is checked when the adapter is loaded, and the history of the run."""
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
    """Write the adapter in bf16, in one move."""
    temporary = path.with_suffix(".tmp")
    save_file(
        {n: t.to(torch.bfloat16).cpu().contiguous() for n, t in tensors.items()},
        str(temporary),
        dict(facts),
    )
    temporary.replace(path)


# --- the log ----------------------------------------------------------------------------------


def forget_after(log: Path, step: int) -> None:
    """Drop entries of steps that an interrupted run took after its last checkpoint."""
    if log.is_file():
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("}\n") and json.loads(line)["step"] <= step]
        log.write_text("".join(kept), encoding="utf-8")


def log(out: Path, entry: dict[str, Any]) -> None:
    with (out / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def plot(out: Path) -> None:
    """Draw ``loss.png`` from ``log.jsonl``: losses, and tokens per pass of mask drafts."""
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
    """Draw one line for each task that has figures whose names end so."""
    tasks = sorted({key.removesuffix(ending) for e in judged for key in e if key.endswith(ending)})
    for task in tasks:
        points = [(e["step"], e[task + ending]) for e in judged if task + ending in e]
        axes.plot(*zip(*points, strict=True), marker="o", label=f"{task}, {what}")
