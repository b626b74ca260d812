"""Training of an adapter over packed rows, on CPU or CUDA devices.

    redraft train pack DATA… --out shards                 once
    redraft train run --shards shards --config causal-cpu  resumes where it was interrupted
    torchrun --nproc-per-node 4 --no-python redraft train run …  the same on four devices

The base is frozen in the fastest arithmetic of the machine. Either the causal pass is trained, or
it is frozen and groups of masks over its cache are. ``checkpoints.py`` writes the run folder.
"""

from __future__ import annotations

import ctypes
import math
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import torch.distributed
from torch import Tensor

from ..config import ModelConfig
from ..errors import SettingsError
from .appraisal import appraise
from .arithmetic import Arithmetic, probe
from .batches import CODE, Batch, Batches, stream
from .checkpoints import Arrays, RunFolder, State, forget_after, plot
from .layers import FeedForward, RMSNorm
from .mask_drafts import draft_loss, guess
from .network import Network, slices
from .rows import KINDS
from .shards import Rows, read_shards
from .train_config import TrainConfig

NONE: Arrays = MappingProxyType({})
_TRIM_EVERY = 4  # steps


class StopOnSignal:
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
    arithmetic: Arithmetic | None = None,
) -> Path:
    """Train until the first budget of ``config`` is used up; return the adapter's path.

    Resumes from ``out``. Under ``torchrun`` every process calls this; the first one alone writes.

    Args:
        base: weights of the base, by the names of ModelConfig.
        start: adapter tensors to start from; {} for a fresh one.
        shards, held_out: packed rows to train on, and others to evaluate on.
        say: takes lines for the user.
        facts: more metadata of the adapter, such as the base and its SHA-256.
        ground: low-rank change of an earlier phase, already merged into ``base``; saved with the
            adapter, which is of no use without it.
        arithmetic: of the frozen base; None: the fastest of this machine.

    Raises:
        SettingsError: there is nothing to train on, or no such device.
    """
    # 1. The frozen base in the fastest arithmetic, and the adapter as an earlier run left it.
    out.mkdir(parents=True, exist_ok=True)
    world = _Processes.join(_pick_device(device))
    torch.manual_seed(config.seed)
    network = build(config, model, base, start, world.device, arithmetic)
    state = State.fresh(network, config.learning_rate, config.weight_decay)
    if state.resume(out / "state.pt"):
        say(f"resuming from {out / 'state.pt'}")

    # 2. Batch n is the same on every machine; this process takes those from ``first``.
    rows = read_shards(shards, model)
    held_out_rows = read_shards(held_out, model) if held_out and world.is_first else None
    first = state.done.step * config.accumulate * world.size + world.rank
    laid = Batches(rows, config, model.end_token)
    batches = stream(laid, first, world.size, config.loaders, world.device.startswith("cuda"))
    folder = RunFolder(out, config, network, state, ground, facts, say)
    if world.is_first:
        forget_after(out / "log.jsonl", state.done.step)
        say(f"{network.arithmetic} on {world}, {len(rows):,} rows, from step {state.done.step}")

    # 3. Steps, until a budget is used up or one of the processes is asked to stop.
    stop, is_over = StopOnSignal(), False
    begun = time.monotonic() - state.done.seconds
    while not is_over:
        rate = _rate(config, state.done.step, state.done.used(config))
        group = [next(batches) for _ in range(config.accumulate)]
        losses = _step(network, state, group, config, rate, world)
        state.done.seconds = time.monotonic() - begun
        is_spent = world.any(state.done.used(config) >= 1)
        is_over = is_spent or world.any(stop.asked)
        if not world.is_first:
            continue

        # 4. The first process logs, evaluates and saves.
        folder.log_step(losses, rate)
        is_due = state.done.step % config.evaluate_every == 0 or is_spent
        if held_out_rows and is_due and not stop.asked:
            folder.log_evaluation(held_out_rows, world.device)
        if is_over or folder.unsaved_s > config.save_every_s:
            folder.save()

    if world.is_first:
        plot(out)
    world.leave()
    return out / "adapter.safetensors"


def evaluate(
    config: TrainConfig,
    model: ModelConfig,
    base: Arrays,
    adapter: Arrays,
    rows: Rows,
    device: str = "auto",
) -> dict[str, Any]:
    """Return the figures of a finished adapter and of its control; see :func:`appraise`."""
    device = _pick_device(device)
    network = build(config, model, base, adapter, device)
    return appraise(network, rows, config, device, control=True)


# --- one step ---------------------------------------------------------------------------------


def _step(
    network: Network,
    state: State,
    group: list[Batch],
    config: TrainConfig,
    rate: float,
    world: _Processes,
) -> dict[str, float]:
    """Take one optimiser step over ``group``, on every device at once.

    Returns:
        The mean loss, and by kind of row in nats per token.
    """
    network.train()
    counts = torch.zeros(3 + 2 * (CODE + 1), dtype=torch.float64)
    for batch in group:
        if config.masks:
            loss, by_kind = mask_loss(network, batch, config.align, world.device), None
        else:
            loss, by_kind = causal_loss(network, batch, world.device)
        (loss / len(group)).backward()  # type: ignore[no-untyped-call]
        about = torch.tensor([float(loss.detach()), batch.positions, len(batch.tokens)])
        counts[:3] += about
        if by_kind is not None:
            counts[3:] += by_kind.flatten()
    world.average_gradients(state.trained.values())
    counts = world.total(counts)
    torch.nn.utils.clip_grad_norm_(state.trained.values(), config.clip)
    for parameters in state.optimiser.param_groups:
        parameters["lr"] = rate
    state.optimiser.step()
    state.optimiser.zero_grad(set_to_none=True)
    done = state.done
    state.update_average(min(config.average, (1 + done.step) / (10 + done.step)))
    done.step += 1
    done.positions += int(counts[1])
    done.tokens += int(counts[2])
    if done.step % _TRIM_EVERY == 0:
        _return_memory()
    nats, tokens = counts[3:].view(2, -1).tolist()
    names = {**dict(enumerate(KINDS)), CODE: "code"}
    by_name = {f"loss_{names[i]}": nats[i] / tokens[i] for i in names if tokens[i]}
    return {"loss": float(counts[0]) / (world.size * len(group)), **by_name}


def causal_loss(network: Network, batch: Batch, device: str) -> tuple[Tensor, Tensor]:
    """Score the supervised tokens of a batch by the causal pass.

    Returns:
        The mean cross-entropy per unit of weight, and [2, 256] of the kinds: nats and tokens.
    """
    tokens = batch.tokens.to(device, non_blocking=True)
    at, weight = batch.at.to(device), batch.weight.to(device)
    hidden, _ = network.context(tokens, lengths=batch.lengths)  # [n, hidden]
    nats = network.nats(hidden[at], tokens[at + 1])  # [m]
    own = nats.detach().double().cpu()
    by_kind = (torch.bincount(batch.kind, each, CODE + 1) for each in (own, torch.ones_like(own)))
    return (nats * weight).sum() / weight.sum(), torch.stack([*by_kind])


def mask_loss(network: Network, batch: Batch, align: float, device: str) -> Tensor:
    """Return the loss of the mask drafts of a batch; the causal pass itself is frozen."""
    tokens = batch.tokens.to(device, non_blocking=True)
    starts, weight = batch.starts.to(device), batch.mask_weight.to(device)
    with torch.no_grad():
        hidden, past = network.context(tokens, lengths=batch.lengths)
    guesses = guess(network, past, batch.lengths, starts, weight.shape[2])
    begins = torch.tensor([row.start for row in slices(batch.lengths)], device=device)
    return draft_loss(network, hidden, guesses, tokens, begins, starts, weight, align)


def _return_memory() -> None:
    """Return freed memory to the system.

    Batches differ in shape: without this a process grew from 8 to 11 GB in half an hour.
    """
    if sys.platform == "linux":
        trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # of glibc; musl has none
        if trim is not None:
            trim(0)


# --- several devices --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Processes:
    """The processes that train together; one alone unless ``torchrun`` started it."""

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
    def is_first(self) -> bool:
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
        """Return whether one of the processes asks; all get the same answer."""
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


def build(
    config: TrainConfig,
    model: ModelConfig,
    base: Arrays,
    start: Arrays,
    device: str,
    arithmetic: Arithmetic | None = None,
) -> Network:
    """Return the network with a frozen base and an adapter in float32.

    Args:
        start: adapter tensors; {}: a fresh adapter.
        arithmetic: of the base; None: the fastest.
    """
    model = replace(model, logit_shift=True, adapter=config.active, sampler=config.sampler)
    reach = max(config.max_context + 256, 2_048)
    network = Network(model, config.rank, reach=reach, low=config.low)
    network.load(dict(base))
    if start:
        network.load({**base, **_of_rank(start, network, config.rank)})
    else:
        rows = network.embed.data
        noise = torch.randn(model.hidden) * rows.std()
        network.mask_embedding.data = rows.mean(0) + 0.1 * noise
    network = network.to(device)
    network.freeze(arithmetic or probe(network.largest_matrix))
    if config.compile and network.arithmetic != "int8":
        for module in network.modules():  # attention differs with each batch: it stays as it is
            if isinstance(module, FeedForward | RMSNorm):
                module.compile(dynamic=True)
    return network


def _of_rank(start: Arrays, network: Network, rank: int) -> Arrays:
    """Widen ``start`` to ``rank``; the new directions are random, and change nothing yet.

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


def _rate(config: TrainConfig, step: int, used: float) -> float:
    """Return the rate: a linear warm-up, then a cosine to ``final_rate`` over the budget.

    Args:
        step: steps taken so far. used: share of the budget.
    """
    cosine = 0.5 * (1 + math.cos(math.pi * min(used, 1.0)))
    warm = min(1.0, (step + 1) / config.warmup_steps)
    return config.learning_rate * warm * (config.final_rate + (1 - config.final_rate) * cosine)
