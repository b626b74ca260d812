"""Configuration of a training run, and the files that it starts from and writes.

``state.pt`` holds plain tensors and is loaded with weights_only; ``adapter.safetensors`` is the
moving average in bf16; ``log.jsonl`` has a line for each step and each evaluation. Every file is
replaced in one move or only added to, so that a run may be killed at any time.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from ..config import ModelConfig
from ..errors import SettingsError
from ..weights.adapter import GROUND, Adapter
from .arithmetic import Arithmetic
from .network import Network

Arrays = Mapping[str, NDArray[np.float32]]


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """Settings of a training run. A TOML file under ``model/configs/`` overrides these defaults.

    The run ends with the first of its budgets: ``steps``, ``tokens``, ``minutes``.
    """

    rank: int = 32
    low: int = 0  # layers below this one have no adapter; 8 saves a third of the backward pass
    learning_rate: float = 6e-4
    warmup_steps: int = 10
    final_rate: float = 0.05  # of the peak, at the end of the cosine
    weight_decay: float = 0.0
    clip: float = 1.0  # gradient norm
    average: float = 0.97  # decay of the weights' moving average, per step; the average ships
    batch_tokens: int = 1_600  # of a batch: prompts and answers
    accumulate: int = 1  # batches per step
    max_context: int = 1_024  # rows with a longer prompt are skipped
    masks: int = 0  # of a group of mask drafts; 0: the causal loss trains; see masks.py
    groups: int = 32  # of mask drafts per row
    sampler: int = 0  # width of the masks' sampler, trained along; 0: there is none
    code_tokens: int = 32  # of the prompt's ordinary code in the causal loss too, per row
    code_weight: float = 0.25  # of each of them beside a token of the answer
    arithmetic: Arithmetic | None = None  # of the frozen base; None: the fastest
    compile: bool = False  # torch.compile for norms and activations; needs a C++ compiler
    steps: int = 1_000_000
    tokens: int = 1_000_000_000  # read in this and earlier runs together
    minutes: float = 60.0  # of this and earlier runs together
    save_every_s: float = 240.0
    evaluate_every: int = 200  # steps
    evaluate_rows: int = 128
    seed: int = 0  # of the order of rows; continue an adapter with another one

    @classmethod
    def read(cls, path: Path) -> TrainConfig:
        """Read a TOML file.

        Raises:
            SettingsError: the file cannot be read or names an unknown field.
        """
        try:
            data = tomllib.loads(path.read_text())
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise SettingsError(f"Cannot read the training config {path}: {error}.") from error
        unknown = sorted(set(data) - {f.name for f in fields(cls)})
        if unknown:
            raise SettingsError(f"{path} has unknown fields {unknown}; see TrainConfig for names.")
        return cls(**data)

    @property
    def active(self) -> Literal["all", "masks"]:
        """Return where the shipped adapter is active."""
        return "masks" if self.masks else "all"


# --- starts -----------------------------------------------------------------------------------


class Start(NamedTuple):
    """Tensors that a run begins from, by the names of an adapter."""

    ground: Arrays  # merged into the base and saved with the adapter
    tensors: Arrays  # of the adapter that goes on; {}: a fresh one


FRESH = Start({}, {})


def start_of(adapter: Adapter | None, shipped: Adapter | None, config: TrainConfig) -> Start:
    """Return the start of a run from an adapter.

    The causal loss goes on with the adapter's causal part; its masks are dropped. Masks are trained
    over the causal part, and go on from the adapter's masks, else from the shipped ones.

    Args:
        adapter: None: a fresh one.
    """
    causal: Arrays = {}
    if adapter is not None:
        on_masks = adapter.metadata.get("adapter") == "masks"
        causal = adapter.ground if on_masks else _scaled(adapter)
    if not config.masks:
        return Start({}, causal)
    for each in (adapter, shipped) if adapter is not None else ():
        has_masks = each is not None and each.metadata.get("sampler") == str(config.sampler)
        if each is not None and each.mask_embedding is not None and has_masks:
            own = {"mask_embedding": each.mask_embedding}
            return Start(causal, {**_scaled(each), **each.sampler, **own})
    return Start(causal, {})


def _scaled(adapter: Adapter) -> Arrays:
    """Return the low-rank matrices with the adapter's factor in the second of each pair."""
    factor = np.float32(adapter.scale)
    return {n: v * factor if n.endswith("lora_b") else v for n, v in adapter.lora.items()}


def widen(start: Arrays, network: Network, config: TrainConfig) -> dict[str, Any]:
    """Return ``start`` at the rank of ``config``; new directions are random and change nothing.

    Raises:
        SettingsError: it has a higher rank, or changes what the network leaves as it is.
    """
    found, fresh = dict(start), dict(network.named_parameters())
    for name, given in start.items():
        if not name.endswith(("lora_a", "lora_b")):
            continue
        if name not in fresh:
            layer = int(name.split(".")[1])
            if layer >= config.low:
                raise SettingsError(
                    f"The adapter to start from changes {name.rpartition('.')[0]}, which one on "
                    "masks leaves as it is. Start from one that was trained on masks, or fresh."
                )
            if start[f"{name.rpartition('.')[0]}.lora_b"].any():
                raise SettingsError(
                    f"The adapter to start from changes layer {layer}, but low = {config.low} "
                    f"leaves the layers below {config.low} as they are. Set low = {layer} or less "
                    "in the training config."
                )
            del found[name]
            continue
        had = given.shape[0] if name.endswith("lora_a") else given.shape[1]
        if had > config.rank:
            raise SettingsError(
                f"The adapter to start from has rank {had}, the config says {config.rank}: raise "
                f"it there to {had} or more."
            )
        wide = fresh[name].detach().cpu().numpy().copy()
        wide[tuple(slice(size) for size in given.shape)] = given
        found[name] = wide
    return found


# --- progress ---------------------------------------------------------------------------------


@dataclass(slots=True)
class RunProgress:
    """Progress of a run, on all devices together; saved with every checkpoint."""

    step: int = 0
    seconds: float = 0.0
    positions: int = 0  # supervised positions
    tokens: int = 0  # read: prompts and answers

    def share_used(self, config: TrainConfig) -> float:
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
    def fresh(cls, network: Network, config: TrainConfig) -> State:
        """Return the state before the first step."""
        trained = {n: p for n, p in network.named_parameters() if p.requires_grad}
        optimiser = torch.optim.AdamW(
            trained.values(),
            lr=config.learning_rate,
            betas=(0.9, 0.98),
            weight_decay=config.weight_decay,
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
    def use_average(self) -> Iterator[None]:
        """Let the network compute with the moving average."""
        own = {n: p.detach().clone() for n, p in self.trained.items()}
        self._put(self.average)
        try:
            yield
        finally:
            self._put(own)

    @torch.no_grad()
    def update_average(self, decay: float) -> None:
        """Move the average towards the weights, which count 1 - ``decay``."""
        decay = min(decay, (1 + self.done.step) / (10 + self.done.step))
        for name, parameter in self.trained.items():
            self.average[name].lerp_(parameter.float(), 1 - decay)

    def _put(self, values: Mapping[str, Tensor]) -> None:
        for name, parameter in self.trained.items():
            parameter.data.copy_(values[name])


# --- files of a run ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RunFolder:
    """Folder of a run, and what its adapter is saved with."""

    path: Path
    ground: Arrays = field(default_factory=dict)  # merged into the base: of no use without it
    facts: Mapping[str, str] = field(default_factory=dict)  # metadata, such as the base's SHA-256

    @property
    def adapter(self) -> Path:
        """The file of the adapter."""
        return self.path / "adapter.safetensors"

    @property
    def state(self) -> Path:
        """The file to resume from."""
        return self.path / "state.pt"

    def log(self, entry: Mapping[str, Any]) -> None:
        """Add a line to the log."""
        with (self.path / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")

    def forget_after(self, step: int) -> None:
        """Drop log entries of steps that an interrupted run took after its last checkpoint."""
        log = self.path / "log.jsonl"
        if log.is_file():
            lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
            whole = (line for line in lines if line.endswith("}\n"))
            kept = [line for line in whole if json.loads(line)["step"] <= step]
            log.write_text("".join(kept), encoding="utf-8")

    def save(self, state: State, config: TrainConfig, model: ModelConfig) -> None:
        """Write the state, and the moving average in bf16 with what loading checks about it."""
        state.save(self.state)
        done = state.done
        described = {
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
            **self.facts,
        }
        below = {
            GROUND + name: torch.from_numpy(np.ascontiguousarray(values))
            for name, values in self.ground.items()
        }
        tensors = {
            name: tensor.to(torch.bfloat16).cpu().contiguous()
            for name, tensor in {**state.average, **below}.items()
        }
        temporary = self.adapter.with_suffix(".tmp")
        save_file(tensors, str(temporary), described)
        temporary.replace(self.adapter)
