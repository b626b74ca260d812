"""Trains the adapter: denoising canvases over packed rows, on CPU or CUDA devices.

    redraft train pack DATA… --out shards          once
    redraft train run --shards shards --config cpu  resumes where it was cut off
    torchrun --nproc-per-node 4 --no-python redraft train run …  the same on four devices

One row gives one causal pass over its context and several canvases over that context's cache.
Where the adapter is active on canvases only, the base is frozen and the causal pass needs no
gradient. Writes to the run folder: ``log.jsonl``, ``state.pt`` (to resume; plain tensors, loaded
with weights_only), ``adapter.safetensors`` (to ship; the moving average) and ``loss.png``.
Knows nothing of serving.
"""

from __future__ import annotations

import json
import math
import os
import signal
import time
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch
import torch.distributed
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from ..config import ModelConfig
from ..errors import SettingsError
from ..network.torch_network import Network
from ..weights.adapter import GROUND
from .appraisal import Extent, appraise
from .batches import Batch, Batches, Laying, stream
from .mask_drafts import draft_loss
from .noise import NOISE, Noise
from .shards import Rows, read_shards

Arrays = Mapping[str, NDArray[np.float32]]
NONE: Arrays = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """One run. A TOML file under ``model/configs/`` sets what differs from these defaults."""

    adapter: Literal["canvas", "all", "full"] = "canvas"  # where it is active; full: no adapter,
    # every matrix trains, and the low-rank part of its change is what ships
    rank: int = 64
    learning_rate: float = 6e-4
    warmup_steps: int = 40
    final_rate: float = 0.1  # of the peak, at the end of the cosine
    weight_decay: float = 0.0
    clip: float = 1.0  # gradient norm
    average: float = 0.99  # decay of the weights' moving average, per step
    width: int = 0  # of a canvas; 0: as the model has it
    canvases: int = 5  # per row; 0: the causal loss alone, to make the base ready for infill
    batch_tokens: int = 3_000  # context tokens of a batch, padding included
    accumulate: int = 1  # batches per step
    max_context: int = 1_024  # rows with a longer prompt are skipped
    masks: int = 0  # of a group of mask drafts, trained instead of canvases; see mask_drafts.py
    groups: int = 32  # of mask drafts per row
    align: float = 1.0  # weight of the mask drafts' hidden states being the judge's
    causal_weight: float = 0.0  # of the autoregressive loss on the answer; not with "canvas"
    code_tokens: int = 0  # of the prompt's ordinary code in the causal loss too, per row
    code_weight: float = 0.25  # of each of them beside an answer's token
    noise: Noise = NOISE  # a table of its fields
    late_noise: Noise = NOISE  # the same from step ``late_from`` on; what is not named as in noise
    sharpen: float = 0.0  # weight of the confidence sharpening from step ``late_from`` on
    late_from: int = 0  # 0: never
    compile: bool = False  # torch.compile for each block; needs a C++ compiler
    loaders: int = 0  # processes that lay batches ahead; 0: this one, in between
    steps: int = 2_000
    minutes: float = 60.0  # of this and earlier runs together; whichever ends first
    save_every_s: float = 240.0
    evaluate_every: int = 200  # steps
    evaluate_rows: int = 128  # for the loss
    exact_rows: int = 24  # of them also decoded, for exact match and tokens per step
    seed: int = 0

    @classmethod
    def read(cls, path: Path) -> TrainConfig:
        """From TOML.

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
        usual = data.get("noise", {})
        for name in ("noise", "late_noise"):
            table = {**usual, **data.get(name, {})}
            strange = sorted(set(table) - {f.name for f in fields(Noise)})
            if strange:
                raise SettingsError(f"{path} has unknown fields {strange} in [{name}]; see Noise.")
            data[name] = Noise(**table)
        return cls(**data)

    @property
    def active(self) -> Literal["canvas", "all"]:
        """Where what is shipped is active."""
        return "canvas" if self.adapter == "canvas" else "all"

    def laying(self, processes: int = 1) -> Laying:
        own = {f.name: getattr(self, f.name) for f in fields(Laying)}
        own["late_from"] = self.late_from * self.accumulate * processes
        return Laying(**own)

    @property
    def extent(self) -> Extent:
        return Extent(
            self.evaluate_rows,
            self.exact_rows,
            self.max_context,
            canvas=self.canvases > 0 and not self.masks,
            masks=self.masks,
            causal=self.causal_weight > 0,
        )


@dataclass(slots=True)
class Progress:
    """What a run has behind it, on all devices together; saved with every checkpoint."""

    step: int = 0
    seconds: float = 0.0
    positions: int = 0  # supervised positions, of canvases and of the causal pass
    tokens: int = 0  # context tokens read


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
    out.mkdir(parents=True, exist_ok=True)
    world = _World.join(_pick_device(device))
    width = config.width or model.canvas_width
    model = replace(model, canvas_width=width, logit_shift=True)
    torch.manual_seed(config.seed)
    network = _build(config, model, base, start, world.device)
    trained = _trained(network)
    optimiser = torch.optim.AdamW(
        trained.values(),
        lr=config.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=config.weight_decay,
    )
    average = {n: p.detach().clone().float() for n, p in trained.items()}
    done = _resume(out / "state.pt", trained, optimiser, average, say)
    judge_rows = read_shards(held_out, model) if held_out and world.first else None
    rows = read_shards(shards, model)
    batches = stream(
        Batches(rows, config.laying(world.size), model),
        done.step * config.accumulate * world.size + world.rank,
        world.size,
        config.loaders,
        world.device.startswith("cuda"),
    )
    if world.first:
        _forget_after(out / "log.jsonl", done.step)
        say(f"training on {world}: {len(rows):,} rows, from step {done.step}")
    interrupted = Interrupted()
    saved_at = begun = time.monotonic()
    before = done.seconds
    while True:
        rate = _rate(config, done)
        group = [next(batches) for _ in range(config.accumulate)]
        loss = _step(network, trained, optimiser, average, group, config, done, rate, world)
        done.seconds = before + time.monotonic() - begun
        finished = done.step >= config.steps or done.seconds > config.minutes * 60
        stop = world.any(finished or interrupted.asked)
        if world.first:
            _log(out, {"kind": "step", "loss": round(loss, 4), "rate": rate, **asdict(done)})
            if done.step % 10 == 0:
                say(_told(loss, rate, done))
            due = done.step % config.evaluate_every == 0 or finished
            if judge_rows and due and not interrupted.asked:
                figures = _with_average(network, trained, average, judge_rows, config, world.device)
                _log(out, {"kind": "evaluation", **figures, **asdict(done)})
                say(" ".join(f"{k} {v}" for k, v in figures.items()))
            if stop or time.monotonic() - saved_at > config.save_every_s:
                _save(out / "state.pt", trained, average, optimiser, done)
                described = metadata(config, model, done, facts)
                save_adapter(
                    out / "adapter.safetensors",
                    _shippable(config, base, average) | _under(GROUND, ground),
                    described,
                )
                saved_at = time.monotonic()
        if stop:
            break
    if world.first:
        plot(out)
    world.leave()
    return out / "adapter.safetensors"


def _told(loss: float, rate: float, done: Progress) -> str:
    return (
        f"step {done.step} loss {loss:.3f} rate {rate:.1e} {done.seconds / 60:.1f} min "
        f"{done.positions / done.seconds:,.0f} positions/s "
        f"{done.tokens / done.seconds:,.0f} tokens/s"
    )


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
    trained: Mapping[str, Tensor],
    optimiser: torch.optim.Optimizer,
    average: dict[str, Tensor],
    group: list[Batch],
    config: TrainConfig,
    done: Progress,
    rate: float,
    world: _World,
) -> float:
    """One optimiser step over ``group``, on every device at once; returns the mean loss."""
    network.train()
    counts = torch.zeros(3, dtype=torch.float64)  # loss, positions, tokens
    for batch in group:
        if config.masks:
            loss = mask_loss(network, batch, config.align, world.device)
        else:
            loss = batch_loss(network, batch, config.causal_weight, world.device)
        (loss / len(group)).backward()  # type: ignore[no-untyped-call]
        supervised = int((batch.weights > 0).sum() + (batch.causal > 0).sum())
        counts += torch.tensor(
            [float(loss.detach()) / len(group), supervised, batch.tokens.numel()]
        )
    world.average_gradients(trained.values())
    counts = world.total(counts)
    torch.nn.utils.clip_grad_norm_(trained.values(), config.clip)
    for parameters in optimiser.param_groups:
        parameters["lr"] = rate
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    decay = min(config.average, (1 + done.step) / (10 + done.step))
    for name, parameter in trained.items():
        average[name].lerp_(parameter.detach().float(), 1 - decay)
    done.step += 1
    done.positions += int(counts[1])
    done.tokens += int(counts[2])
    return float(counts[0]) / world.size


def batch_loss(network: Network, batch: Batch, causal_weight: float, device: str) -> Tensor:
    """Mean cross-entropy of the hidden positions, plus the causal loss on the answers."""
    tokens = batch.tokens.to(device, non_blocking=True)
    trains_context = network.config.adapter == "all"
    with torch.set_grad_enabled(trains_context and torch.is_grad_enabled()):
        hidden, past = network.context(tokens)
    loss = torch.zeros((), device=device)
    if batch.windows.shape[1]:
        canvas = network.canvas(batch.windows.to(device), batch.starts.to(device), past)
        loss = _weighted_loss(network, canvas, batch.targets, batch.weights, batch.sharpen)
    if causal_weight and trains_context:
        causal = _weighted_loss(network, hidden[:, :-1], tokens[:, 1:], batch.causal[:, 1:])
        loss = loss + causal_weight * causal
    return loss


def mask_loss(network: Network, batch: Batch, align: float, device: str) -> Tensor:
    """What mask drafts behind tokens of ``batch`` are off; the causal pass itself is frozen."""
    with torch.no_grad():
        hidden, past = network.context(batch.tokens.to(device, non_blocking=True))
    starts, weights = batch.starts.to(device), batch.weights.to(device)
    return draft_loss(network, hidden, past, starts, weights, align)


def _weighted_loss(
    network: Network, hidden: Tensor, targets: Tensor, weights: Tensor, sharpen: float = 0.0
) -> Tensor:
    """Mean cross-entropy per unit of weight; logits are computed only where there is weight.

    Args:
        hidden: [..., hidden]. targets, weights: [...].
        sharpen: weight of the entropy where the prediction is right already; the reference is
            ``noise.sharpening``.
    """
    counted = weights.to(hidden.device) > 0
    weights, targets = weights.to(hidden.device)[counted], targets.to(hidden.device)[counted]
    logits = network.logits(hidden[counted])  # [n, vocab]
    loss = F.cross_entropy(logits, targets, reduction="none")  # [n]
    if sharpen:
        log_p = logits.log_softmax(-1)
        entropy = -(log_p.exp() * log_p).sum(-1)  # [n]
        loss = loss + sharpen * entropy * (log_p.argmax(-1) == targets)
    return (loss * weights).sum() / weights.sum()


# --- several devices --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _World:
    """The processes that train together; alone unless ``torchrun`` started this one."""

    rank: int
    size: int
    device: str

    @classmethod
    def join(cls, device: str) -> _World:
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


# --- evaluation inside the run ----------------------------------------------------------------


def _with_average(
    network: Network,
    trained: Mapping[str, Tensor],
    average: Mapping[str, Tensor],
    rows: Rows,
    config: TrainConfig,
    device: str,
) -> dict[str, Any]:
    """Figures of the moving average; the weights in training come back untouched."""
    own = {n: p.detach().clone() for n, p in trained.items()}
    _put(trained, average)
    try:
        return appraise(network, rows, config.extent, device)
    finally:
        _put(trained, own)


# --- building, saving, resuming ---------------------------------------------------------------


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
    model = replace(model, adapter=config.active)
    rank = 0 if config.adapter == "full" else config.rank
    network = Network(model, rank=rank, reach=max(config.max_context + 256, 2_048))
    network.load(dict(base))
    if start and config.adapter == "full":
        raise SettingsError("A full run starts from the base; merge an adapter with --ground.")
    if start:
        network.load({**base, **start})
    else:
        rows = network.embed.data
        noise = torch.randn(model.hidden) * rows.std()
        network.mask_embedding.data = rows.mean(0) + 0.1 * noise
    if config.adapter == "full":
        for name, parameter in network.named_parameters():
            parameter.requires_grad_(_is_matrix(name) or name == "mask_embedding")
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad and "norm" not in name:
            parameter.data = parameter.data.to(torch.bfloat16)
    if config.compile:
        for block in network.blocks:
            block.compile(dynamic=True)
    return network.to(device)


def _is_matrix(name: str) -> bool:
    return name.startswith("blocks.") and name.endswith(".weight") and "norm" not in name


def _trained(network: Network) -> dict[str, torch.nn.Parameter]:
    """The parameters that train, by name."""
    return {n: p for n, p in network.named_parameters() if p.requires_grad}


def _shippable(
    config: TrainConfig, base: Arrays, average: Mapping[str, Tensor]
) -> dict[str, Tensor]:
    """The adapter; of a full run, the part of each matrix's change that fits into ``rank``."""
    if config.adapter != "full":
        return dict(average)
    found: dict[str, Tensor] = {}
    for name, now in average.items():
        if not _is_matrix(name):
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


def _under(prefix: str, arrays: Arrays) -> dict[str, Tensor]:
    return {prefix + name: torch.from_numpy(values) for name, values in arrays.items()}


def _rate(config: TrainConfig, done: Progress) -> float:
    """Linear warm-up, then a cosine to ``final_rate`` over whichever budget ends first."""
    used = max(done.step / config.steps, done.seconds / (config.minutes * 60))
    cosine = 0.5 * (1 + math.cos(math.pi * min(used, 1.0)))
    warm = min(1.0, (done.step + 1) / config.warmup_steps)
    return config.learning_rate * warm * (config.final_rate + (1 - config.final_rate) * cosine)


def _put(trained: Mapping[str, Tensor], values: Mapping[str, Tensor]) -> None:
    for name, parameter in trained.items():
        parameter.data.copy_(values[name])


def _save(
    path: Path,
    trained: Mapping[str, Tensor],
    average: dict[str, Tensor],
    optimiser: torch.optim.Optimizer,
    done: Progress,
) -> None:
    """State to resume from, replaced in one move."""
    state = {
        "adapter": {n: p.detach() for n, p in trained.items()},
        "average": average,
        "optimiser": optimiser.state_dict(),
        "progress": asdict(done),
    }
    temporary = path.with_suffix(".tmp")
    torch.save(state, temporary)
    temporary.replace(path)


def metadata(
    config: TrainConfig, model: ModelConfig, done: Progress, facts: Mapping[str, str]
) -> dict[str, str]:
    """What whoever loads the adapter checks, and how it came about."""
    return {
        "rank": str(config.rank),
        "scale": "1.0",
        "adapter": config.active,
        "canvas": str(model.canvas_width),
        "masks": str(config.masks),
        "logit_shift": str(int(model.logit_shift)),
        "prompt_format": model.prompt_format,
        "verifier": "ar" if config.causal_weight else "none",
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


def _resume(
    path: Path,
    trained: Mapping[str, Tensor],
    optimiser: torch.optim.Optimizer,
    average: dict[str, Tensor],
    say: Callable[[str], None],
) -> Progress:
    if not path.is_file():
        return Progress()
    where = next(iter(trained.values())).device
    state = torch.load(path, map_location=where, weights_only=True)
    _put(trained, state["adapter"])
    for name, value in state["average"].items():
        average[name].copy_(value)
    optimiser.load_state_dict(state["optimiser"])
    say(f"resuming from {path}")
    return Progress(**state["progress"])


def _forget_after(log: Path, step: int) -> None:
    """Drop entries of steps that a cut-off run took after its last checkpoint."""
    if log.is_file():
        lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
        kept = [line for line in lines if line.endswith("}\n") and json.loads(line)["step"] <= step]
        log.write_text("".join(kept), encoding="utf-8")


def _log(out: Path, entry: dict[str, Any]) -> None:
    with (out / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry) + "\n")


def plot(out: Path) -> None:
    """``loss.png`` from ``log.jsonl``."""
    import matplotlib

    matplotlib.use("Agg")  # no screen needed
    from matplotlib import pyplot

    entries = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
    steps = [e for e in entries if e["kind"] == "step"]
    judged = [e for e in entries if e["kind"] == "evaluation"]
    figure, axes = pyplot.subplots(figsize=(8, 4.5))
    axes.plot([e["step"] for e in steps], [e["loss"] for e in steps], alpha=0.3, label="training")
    names = sorted({key[:-5] for e in judged for key in e if key.endswith("_loss")})
    for task in names:
        points = [(e["step"], e[f"{task}_loss"]) for e in judged if f"{task}_loss" in e]
        axes.plot(
            *zip(*points, strict=True) if points else ([], []),
            marker="o",
            label=f"{task}, held out",
        )
    axes.set_xlabel("step")
    axes.set_ylabel("cross-entropy per hidden token, nats")
    axes.legend()
    figure.tight_layout()
    figure.savefig(out / "loss.png", dpi=110)
