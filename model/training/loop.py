"""Training of an adapter over packed rows, on CPU or CUDA devices.

The base is frozen in the fastest arithmetic of the machine. Either the causal pass is trained, or
it is frozen and groups of masks over its cache are. ``README.md`` has the commands.
"""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch
import torch.distributed
from torch import Tensor

from ..config import ModelConfig
from ..errors import SettingsError
from . import layers
from .arithmetic import probe
from .batches import Batch, Batches
from .checkpoints import FRESH, Arrays, RunFolder, Start, State, TrainConfig, widen
from .evaluate import evaluate
from .masks import draft_loss, guess
from .moments import CODE, group_of
from .network import Network, slices
from .shards import read_shards

_TRIM_EVERY = 4  # steps
_SAY_EVERY = 10  # steps


def run(
    config: TrainConfig,
    network: Network,
    folder: RunFolder,
    shards: Path,
    held_out: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Train until the first budget of ``config`` is used up; return the adapter's path.

    Resumes from ``folder``. Under ``torchrun`` every process calls this; the first one alone
    writes.

    Args:
        network: as :func:`build` made it.
        shards, held_out: folders of packed rows to train on, and of others to evaluate on.
        say: takes lines for the user.

    Raises:
        SettingsError: there is nothing to train on.
    """
    # 1. The adapter as an earlier run left it.
    folder.path.mkdir(parents=True, exist_ok=True)
    world, model = World.join(network.embed.device.type), network.config
    network.to(world.device)
    state = State.fresh(network, config)
    if state.resume(folder.state):
        say(f"resuming from {folder.state}")
    done = state.done

    # 2. Batch n is the same on every machine; this process takes those from ``number``.
    rows = read_shards(shards, model)
    held_out_rows = read_shards(held_out, model) if held_out and world.is_first else None
    batches = Batches(rows, config, model.end_token)
    number = done.step * config.accumulate * world.size + world.rank
    if world.is_first:
        folder.forget_after(done.step)
        say(f"{network.arithmetic} on {world}, {len(rows):,} rows, from step {done.step}")

    # 3. Steps, until a budget is used up or one of the processes is asked to stop.
    stop, is_over, saved_at = StopOnSignal(), False, time.monotonic()
    begun = time.monotonic() - done.seconds
    while not is_over:
        rate = _rate(config, done.step, done.share_used(config))
        group = [batches[number + i * world.size] for i in range(config.accumulate)]
        number += config.accumulate * world.size
        before = replace(done)
        losses = _step(network, state, group, config, rate, world)
        done.seconds = time.monotonic() - begun
        is_spent = world.any(done.share_used(config) >= 1)
        is_over = is_spent or world.any(stop.asked)
        if not world.is_first:
            continue

        # 4. The first process logs, evaluates and saves.
        speed = (done.tokens - before.tokens) / max(done.seconds - before.seconds, 1e-9)
        entry = {"kind": "step", "arithmetic": network.arithmetic, **losses, "rate": rate}
        folder.log(entry | {"tokens_per_s": round(speed, 1)} | asdict(done))
        if done.step % _SAY_EVERY == 0:
            left = done.seconds * (1 / max(done.share_used(config), 1e-9) - 1) / 60
            say(
                f"step {done.step}, loss {losses['loss']:.3f}, {done.seconds / 60:.1f} min, "
                f"{left:.0f} min left, {done.tokens / done.seconds:,.0f} tokens/s"
            )
        is_due = done.step % config.evaluate_every == 0 or is_spent
        if held_out_rows and is_due and not stop.asked:
            with state.use_average():
                figures = evaluate(network, held_out_rows, config)
            folder.log({"kind": "evaluation", **figures, **asdict(done)})
            say(" ".join(f"{name} {value}" for name, value in figures.items()))
        if is_over or time.monotonic() - saved_at > config.save_every_s:
            folder.save(state, config, model)
            saved_at = time.monotonic()
    world.leave()
    return folder.adapter


class StopOnSignal:
    """Turns Ctrl-C and SIGTERM into "save and stop" after the current step."""

    def __init__(self) -> None:
        self.asked = False
        for name in ("SIGINT", "SIGTERM"):
            signal.signal(getattr(signal, name), self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True


# --- one step ---------------------------------------------------------------------------------


def _step(
    network: Network,
    state: State,
    group: list[Batch],
    config: TrainConfig,
    rate: float,
    world: World,
) -> dict[str, float]:
    """Take one optimiser step over ``group``, on every device at once.

    Returns:
        The mean loss, and by group of rows in nats per token.
    """
    network.train()
    counts = torch.zeros(3 + 2 * (CODE + 1), dtype=torch.float64)
    for batch in group:
        if config.masks:
            loss, by_kind = mask_loss(network, batch, world.device), None
        else:
            loss, by_kind = causal_loss(network, batch, world.device)
        (loss / len(group)).backward()  # type: ignore[no-untyped-call]
        counts[:3] += torch.tensor([float(loss.detach()), batch.positions, len(batch.tokens)])
        if by_kind is not None:
            counts[3:] += by_kind.flatten()
    world.average_gradients(state.trained.values())
    counts = world.total(counts)
    torch.nn.utils.clip_grad_norm_(state.trained.values(), config.clip)
    for parameters in state.optimiser.param_groups:
        parameters["lr"] = rate
    state.optimiser.step()
    state.optimiser.zero_grad(set_to_none=True)
    state.update_average(config.average)
    done = state.done
    done.step += 1
    done.positions += int(counts[1])
    done.tokens += int(counts[2])
    if done.step % _TRIM_EVERY == 0:
        _return_memory()
    sums: dict[str, Tensor] = {}  # nats and tokens
    for kind, each in enumerate(counts[3:].view(2, -1).T):
        sums[group_of(kind)] = sums.get(group_of(kind), torch.zeros(2)) + each
    losses = {f"loss_{name}": round(float(n / t), 4) for name, (n, t) in sums.items() if t}
    return {"loss": round(float(counts[0]) / (world.size * len(group)), 4), **losses}


def causal_loss(network: Network, batch: Batch, device: str) -> tuple[Tensor, Tensor]:
    """Score the supervised tokens of a batch by the causal pass.

    Returns:
        The mean cross-entropy per unit of weight, and [2, 256] of the classes: nats and tokens.
    """
    tokens = batch.tokens.to(device, non_blocking=True)
    at, weight = batch.at.to(device), batch.weight.to(device)
    hidden, _ = network.context(tokens, lengths=batch.lengths)  # [n, hidden]
    nats = network.nats(hidden[at], tokens[at + 1])  # [m]
    own = nats.detach().double().cpu()
    by_kind = (torch.bincount(batch.kind, each, CODE + 1) for each in (own, torch.ones_like(own)))
    return (nats * weight).sum() / weight.sum(), torch.stack([*by_kind])


def mask_loss(network: Network, batch: Batch, device: str) -> Tensor:
    """Return the loss of the mask drafts of a batch; the causal pass itself is frozen."""
    tokens = batch.tokens.to(device, non_blocking=True)
    starts, weight = batch.starts.to(device), batch.mask_weight.to(device)
    with torch.no_grad():
        hidden, past = network.context(tokens, lengths=batch.lengths)
    guesses = guess(network, past, batch.lengths, starts, weight.shape[2])
    begins = torch.tensor([row.start for row in slices(batch.lengths)], device=device)
    place = (begins[:, None] + starts)[..., None]  # [rows, groups, 1]
    place = place + torch.arange(weight.shape[2], device=device)  # [rows, groups, masks]
    return draft_loss(network, hidden, guesses, tokens, place, weight)


def _rate(config: TrainConfig, step: int, used: float) -> float:
    """Return the rate: a linear warm-up, then a cosine to ``final_rate`` over the budget.

    Args:
        step: steps taken so far.
        used: share of the budget.
    """
    cosine = 0.5 * (1 + math.cos(math.pi * min(used, 1.0)))
    warm = min(1.0, (step + 1) / config.warmup_steps)
    return config.learning_rate * warm * (config.final_rate + (1 - config.final_rate) * cosine)


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
class World:
    """The processes that train together; one alone unless ``torchrun`` started it."""

    rank: int
    size: int
    device: str

    @classmethod
    def join(cls, device: str) -> World:
        """Return this process among those that ``torchrun`` started."""
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
        """Return whether this process writes the files."""
        return self.rank == 0

    def average_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Give every process the mean of all gradients."""
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
        """Return the sum of all processes, in main memory."""
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


def build(
    config: TrainConfig,
    model: ModelConfig,
    base: Arrays,
    start: Start = FRESH,
    device: str = "auto",
) -> Network:
    """Return the network with a frozen base and an adapter in float32.

    Args:
        base: weights by the names of ModelConfig, ``start.ground`` merged into them.
        device: "cpu", "cuda", or "auto" for CUDA where there is a device.

    Raises:
        SettingsError: there is no such device, or the start does not fit the configuration.
    """
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise SettingsError("No CUDA device is visible to torch. Use --device cpu or auto.")
    torch.manual_seed(config.seed)
    model = replace(model, logit_shift=True, adapter=config.active, sampler=config.sampler)
    reach = max(config.max_context + 256, 2_048)
    network = Network(model, config.rank, reach=reach, low=config.low)
    network.load({**base, **widen(start.tensors, network, config)})
    if "mask_embedding" not in start.tensors:
        rows = network.embed.data
        network.mask_embedding.data = rows.mean(0) + 0.1 * torch.randn(model.hidden) * rows.std()
    network = network.to(device)
    network.freeze(config.arithmetic or probe(network.largest_matrix))
    if config.compile and (device == "cuda" or shutil.which(os.environ.get("CXX", "g++"))):
        layers.compile_pointwise()
    return network
