"""Training of an adapter over packed rows, on CPU or CUDA devices.

    redraft train pack DATA… --out shards                 once
    redraft train run --shards shards --config causal-cpu  resumes where it was cut off
    torchrun --nproc-per-node 4 --no-python redraft train run …  the same on four devices

One row gives one causal pass over its context. Either that pass is trained, or it is frozen and
groups of masks over its cache are. ``checkpoints.py`` writes the run folder.
"""

from __future__ import annotations

import math
import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import torch.distributed
import torch.nn.functional as F
from torch import Tensor

from ..config import ModelConfig
from ..errors import SettingsError
from ..weights.adapter import GROUND
from .appraisal import appraise
from .batches import Batch, Batches, stream
from .checkpoints import (
    Arrays,
    RunProgress,
    State,
    forget_after,
    is_matrix,
    log,
    metadata,
    plot,
    save_adapter,
    shippable,
    under,
)
from .mask_drafts import draft_loss
from .reference.torch_network import Network
from .shards import Rows, read_shards
from .train_config import TrainConfig

NONE: Arrays = MappingProxyType({})


class Interrupted:
    """Turns Ctrl-C and SIGTERM into "save and stop" after the current step."""

    def __init__(self) -> None:
        self.asked = False
        for name in ("SIGINT", "SIGTERM"):
            signal.signal(getattr(signal, name), self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


def run(
    config: TrainConfig,
    model: ModelConfig,
    base: Arrays,
    start: Arrays,
    shards: Path,
    held_out: Path | None,
    out: Path,
    device: str = "auto",
    say: Callable[[str], None] = lambda _: None,
    facts: Mapping[str, str] = MappingProxyType({}),
    ground: Arrays = NONE,
) -> Path:
    """Train until ``steps`` or ``minutes`` are used up; returns the adapter's path.

    Under ``torchrun`` every process calls this; the first one alone writes and speaks.

    Args:
        base: weights of the base, by the names of ModelConfig.
        start: adapter tensors to start from; {} for a fresh one.
        shards, held_out: packed rows to train on, and others to judge by.
        facts: what the adapter's metadata says besides, such as the base and its SHA-256.
        ground: low-rank change of an earlier phase, already worked into ``base``; saved with the
            adapter, which is of no use without it.

    Raises:
        SettingsError: there is nothing to train on, or no such device.
    """
    # 1. The network, and what an earlier run left of it.
    out.mkdir(parents=True, exist_ok=True)
    world = _Processes.join(_pick_device(device))
    model = replace(model, logit_shift=True)
    torch.manual_seed(config.seed)
    network = _build(config, model, base, start, world.device)
    state = State.fresh(network, config.learning_rate, config.weight_decay)
    if state.resume(out / "state.pt"):
        say(f"resuming from {out / 'state.pt'}")

    # 2. Rows to judge by, and batches from where it stopped.
    judge_rows = read_shards(held_out, model) if held_out and world.first else None
    rows = read_shards(shards, model)
    batches = _batches(rows, config, model, state.done, world)
    folder = _RunFolder(out, config, model, base, ground, facts, say)
    if world.first:
        folder.begin(state.done, f"training on {world}: {len(rows):,} rows")

    # 3. Steps, until a budget is used up or someone stops one of the processes.
    interrupted, stop = Interrupted(), False
    begun = time.monotonic() - state.done.seconds
    while not stop:
        rate = _rate(config, state.done)
        group = [next(batches) for _ in range(config.accumulate)]
        loss = _step(network, state, group, config, rate, world)
        state.done.seconds = time.monotonic() - begun
        finished = state.done.step >= config.steps or state.done.seconds > config.minutes * 60
        stop = world.any(finished or interrupted.asked)
        if not world.first:
            continue
        # 4. The first process tells, judges now and then, and saves.
        folder.tell_step(loss, rate, state.done)
        due = state.done.step % config.evaluate_every == 0 or finished
        if judge_rows and due and not interrupted.asked:
            folder.tell_judgement(network, state, judge_rows, world.device)
        if stop or folder.unsaved_s > config.save_every_s:
            folder.save(state)

    if world.first:
        plot(out)
    world.leave()
    return out / "adapter.safetensors"


def _batches(
    rows: Rows, config: TrainConfig, model: ModelConfig, done: RunProgress, world: _Processes
) -> Iterator[Batch]:
    """This process's share of them, from the first that nobody has seen."""
    first = done.step * config.accumulate * world.size + world.rank
    made = Batches(rows, config.laying, model)
    return stream(made, first, world.size, config.loaders, world.device.startswith("cuda"))


@dataclass(slots=True)
class _RunFolder:
    """What the first process writes of a run, and what it says meanwhile."""

    out: Path
    config: TrainConfig
    model: ModelConfig
    base: Arrays
    ground: Arrays
    facts: Mapping[str, str]
    say: Callable[[str], None]
    _saved_at: float = field(default_factory=time.monotonic)

    @property
    def unsaved_s(self) -> float:
        return time.monotonic() - self._saved_at

    def begin(self, done: RunProgress, what: str) -> None:
        forget_after(self.out / "log.jsonl", done.step)
        self.say(f"{what}, from step {done.step}")

    def tell_step(self, loss: float, rate: float, done: RunProgress) -> None:
        log(self.out, {"kind": "step", "loss": round(loss, 4), "rate": rate, **asdict(done)})
        if done.step % 10 == 0:
            self.say(
                f"step {done.step} loss {loss:.3f} rate {rate:.1e} {done.seconds / 60:.1f} min "
                f"{done.positions / done.seconds:,.0f} positions/s "
                f"{done.tokens / done.seconds:,.0f} tokens/s"
            )

    def tell_judgement(self, network: Network, state: State, rows: Rows, device: str) -> None:
        with state.with_average():
            figures = appraise(network, rows, self.config.extent, device)
        log(self.out, {"kind": "evaluation", **figures, **asdict(state.done)})
        self.say(" ".join(f"{k} {v}" for k, v in figures.items()))

    def save(self, state: State) -> None:
        """What to resume from, and the adapter."""
        state.save(self.out / "state.pt")
        tensors = shippable(self.config, self.base, state.average) | under(GROUND, self.ground)
        described = metadata(self.config, self.model, state.done, self.facts)
        save_adapter(self.out / "adapter.safetensors", tensors, described)
        self._saved_at = time.monotonic()


def judge(
    config: TrainConfig,
    model: ModelConfig,
    base: Arrays,
    adapter: Arrays,
    rows: Rows,
    device: str = "auto",
) -> dict[str, Any]:
    """Figures of a finished adapter and of its control; see :func:`appraise`."""
    device = _pick_device(device)
    network = _build(config, model, base, adapter, device)
    return appraise(network, rows, replace(config.extent, control=True), device)


# --- one step ---------------------------------------------------------------------------------


def _step(
    network: Network,
    state: State,
    group: list[Batch],
    config: TrainConfig,
    rate: float,
    world: _Processes,
) -> float:
    """One optimiser step over ``group``, on every device at once; returns the mean loss."""
    network.train()
    counts = torch.zeros(3, dtype=torch.float64)  # loss, positions, tokens
    for batch in group:
        if config.masks:
            loss = mask_loss(network, batch, config.align, world.device)
        else:
            loss = causal_loss(network, batch, world.device)
        (loss / len(group)).backward()  # type: ignore[no-untyped-call]
        supervised = int((batch.weights > 0).sum() + (batch.causal > 0).sum())
        counts += torch.tensor(
            [float(loss.detach()) / len(group), supervised, batch.tokens.numel()]
        )
    world.average_gradients(state.trained.values())
    counts = world.total(counts)
    torch.nn.utils.clip_grad_norm_(state.trained.values(), config.clip)
    for parameters in state.optimiser.param_groups:
        parameters["lr"] = rate
    state.optimiser.step()
    state.optimiser.zero_grad(set_to_none=True)
    done = state.done
    decay = min(config.average, (1 + done.step) / (10 + done.step))
    for name, parameter in state.trained.items():
        state.average[name].lerp_(parameter.detach().float(), 1 - decay)
    done.step += 1
    done.positions += int(counts[1])
    done.tokens += int(counts[2])
    return float(counts[0]) / world.size


def causal_loss(network: Network, batch: Batch, device: str) -> Tensor:
    """Return the mean cross-entropy of the causal pass per unit of weight.

    Logits are computed only where there is weight.
    """
    tokens = batch.tokens.to(device, non_blocking=True)
    hidden, _ = network.context(tokens)  # [rows, length, hidden]
    weights = batch.causal[:, 1:].to(device)  # [rows, length - 1]
    counted = weights > 0
    logits = network.logits(hidden[:, :-1][counted])  # [n, vocab]
    loss = F.cross_entropy(logits, tokens[:, 1:][counted], reduction="none")  # [n]
    return (loss * weights[counted]).sum() / weights[counted].sum()


def mask_loss(network: Network, batch: Batch, align: float, device: str) -> Tensor:
    """What mask drafts behind tokens of ``batch`` are off; the causal pass itself is frozen."""
    with torch.no_grad():
        tokens = batch.tokens.to(device, non_blocking=True)
        hidden, past = network.context(tokens)
    starts, weights = batch.starts.to(device), batch.weights.to(device)
    return draft_loss(network, tokens, hidden, past, starts, weights, align)


# --- several devices --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Processes:
    """The processes that train together; alone unless ``torchrun`` started this one."""

    rank: int
    size: int
    device: str

    @classmethod
    def join(cls, device: str) -> _Processes:
        size = int(os.environ.get("WORLD_SIZE", "1"))
        if size == 1:
            return cls(0, 1, device)
        rank, local = int(os.environ["RANK"]), int(os.environ.get("LOCAL_RANK", "0"))
        if device == "cuda":
            torch.cuda.set_device(local)
            device = f"cuda:{local}"
        torch.distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
        return cls(rank, size, device)

    def __str__(self) -> str:
        return self.device if self.size == 1 else f"{self.size} × {self.device.partition(':')[0]}"

    @property
    def first(self) -> bool:
        return self.rank == 0

    def average_gradients(self, parameters: Iterable[Tensor]) -> None:
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([g.flatten() for g in gradients])
        torch.distributed.all_reduce(flat)
        flat /= self.size
        at = 0
        for own in gradients:
            own.copy_(flat[at : at + own.numel()].view_as(own))
            at += own.numel()

    def total(self, counts: Tensor) -> Tensor:
        if self.size > 1:
            counts = counts.to(self.device)
            torch.distributed.all_reduce(counts)
        return counts.cpu()

    def any(self, asked: bool) -> bool:
        """Whether one of the processes wants to stop: then all do, after the same step."""
        return bool(self.total(torch.tensor([float(asked)], dtype=torch.float64))[0])

    def leave(self) -> None:
        """Wait until the first process has written everything."""
        if self.size > 1:
            torch.distributed.barrier()
            torch.distributed.destroy_process_group()


# --- building ---------------------------------------------------------------------------------


def _pick_device(wanted: str) -> str:
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "cuda" and not torch.cuda.is_available():
        raise SettingsError("No CUDA device is visible to torch. Use --device cpu or auto.")
    return wanted


def _build(
    config: TrainConfig, model: ModelConfig, base: Arrays, start: Arrays, device: str
) -> Network:
    """What is frozen in bf16, what trains in fp32; activations are bf16."""
    model = replace(model, adapter=config.active, sampler=config.sampler)
    rank = 0 if config.adapter == "full" else config.rank
    network = Network(model, rank=rank, reach=max(config.max_context + 256, 2_048))
    network.load(dict(base))
    if start and config.adapter == "full":
        raise SettingsError("A full run starts from the base; merge an adapter with --ground.")
    if start:
        network.load({**base, **_of_rank(start, network, rank)})
    else:
        rows = network.embed.data
        noise = torch.randn(model.hidden) * rows.std()
        network.mask_embedding.data = rows.mean(0) + 0.1 * noise
    if config.adapter == "full":
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(is_matrix(name) or name == "mask_embedding")
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad and "norm" not in name:
            parameter.data = parameter.data.to(torch.bfloat16)
    if config.compile:
        for block in network.blocks:
            block.compile(dynamic=True)
    return network.to(device)


def _of_rank(start: Arrays, network: Network, rank: int) -> Arrays:
    """``start`` widened to ``rank``: the new directions are as drawn, and change nothing yet.

    Raises:
        SettingsError: it has a higher rank.
    """
    widened, fresh = dict(start), dict(network.named_parameters())
    for name, given in start.items():
        if not name.endswith(("lora_a", "lora_b")):
            continue
        if name not in fresh:
            raise SettingsError(
                f"The adapter to start from changes {name.rpartition('.')[0]}, which one on masks "
                "leaves as it is. Start from one that was trained on masks, or fresh."
            )
        had = given.shape[0] if name.endswith("lora_a") else given.shape[1]
        if had > rank:
            raise SettingsError(
                f"The adapter to start from has rank {had}, the config says {rank}: raise it "
                f"there to {had} or more."
            )
        wide = fresh[name].detach().cpu().numpy().copy()
        wide[tuple(slice(size) for size in given.shape)] = given
        widened[name] = wide
    return widened


def _rate(config: TrainConfig, done: RunProgress) -> float:
    """Linear warm-up, then a cosine to ``final_rate`` over whichever budget ends first."""
    used = max(done.step / config.steps, done.seconds / (config.minutes * 60))
    cosine = 0.5 * (1 + math.cos(math.pi * min(used, 1.0)))
    warm = min(1.0, (done.step + 1) / config.warmup_steps)
    return config.learning_rate * warm * (config.final_rate + (1 - config.final_rate) * cosine)
