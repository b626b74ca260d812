"""Trains the adapter: denoising canvases over packed rows, on a CPU or a CUDA device.

    redraft train pack DATA… --out shards          once
    redraft train run --shards shards --config cpu  resumes where it was cut off

One row gives one causal pass over its context and several canvases over that context's cache.
Where the adapter is active on canvases only, the base is frozen and the causal pass needs no
gradient. Writes to the run folder: ``log.jsonl``, ``state.pt`` (to resume; plain tensors, loaded
with weights_only), ``adapter.safetensors`` (to ship; the moving average) and ``loss.png``.
Knows nothing of serving.
"""

from __future__ import annotations

import json
import math
import signal
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from safetensors.torch import save_file
from torch import Tensor

from .adapter import GROUND
from .config import ModelConfig
from .denoise import AUTOREGRESSIVE, LEFTMOST_FIRST, Brief, Limits, Plan, denoise, plan_for
from .errors import SettingsError
from .network import Network, trainable
from .noise import Canvas, canvases_of, causal_weights
from .shards import Rows, read_shards
from .torch_backend import TorchBackend


@dataclass(frozen=True, slots=True)
class TrainConfig:
    """One run. A TOML file under ``model/configs/`` sets what differs from these defaults."""

    adapter: Literal["canvas", "all"] = "canvas"  # where the adapter is active
    rank: int = 64
    learning_rate: float = 6e-4
    warmup_steps: int = 40
    final_rate: float = 0.1  # of the peak, at the end of the cosine
    weight_decay: float = 0.0
    clip: float = 1.0  # gradient norm
    average: float = 0.99  # decay of the weights' moving average, per step
    canvases: int = 5  # per row; 0: the causal loss alone, to make the base ready for infill
    batch_tokens: int = 3_000  # context tokens of a batch, padding included
    accumulate: int = 1  # batches per step
    max_context: int = 1_024  # rows with a longer prompt are skipped
    causal_weight: float = 0.0  # of the autoregressive loss on the answer; needs adapter "all"
    code_tokens: int = 0  # of the prompt's ordinary code in the causal loss too, per row
    code_weight: float = 0.25  # of each of them beside an answer's token
    compile: bool = False  # torch.compile for each block; needs a C++ compiler
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
        return cls(**data)


@dataclass(slots=True)
class Progress:
    """What a run has behind it; saved with every checkpoint."""

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
    base: dict[str, NDArray[np.float32]],
    start: dict[str, NDArray[np.float32]],
    shards: Path,
    held_out: Path | None,
    out: Path,
    device: str = "auto",
    say: Callable[[str], None] = lambda _: None,
    facts: Mapping[str, str] = MappingProxyType({}),
    ground: Mapping[str, NDArray[np.float32]] = MappingProxyType({}),
) -> Path:
    """Train until ``steps`` or ``minutes`` are used up; returns the adapter's path.

    Args:
        base: weights of the base, by the names of ModelConfig.
        ground: low-rank change of an earlier phase, already worked into ``base``; saved with the
            adapter, which is of no use without it.
        start: adapter tensors to start from; {} for a fresh one.
        shards, held_out: packed rows to train on, and others to judge by.
        facts: what the adapter's metadata says besides, such as the base and its SHA-256.
    """
    out.mkdir(parents=True, exist_ok=True)
    device = _pick_device(device)
    torch.manual_seed(config.seed)
    model = replace(model, adapter=config.adapter)
    network = _build(config, model, base, start, device)
    optimiser = torch.optim.AdamW(
        trainable(network),
        lr=config.learning_rate,
        betas=(0.9, 0.98),
        weight_decay=config.weight_decay,
    )
    average = {n: p.detach().clone().float() for n, p in network.adapter().items()}
    done = _resume(out / "state.pt", network, optimiser, average, say)
    _forget_after(out / "log.jsonl", done.step)
    rows = read_shards(shards, model)
    judge = read_shards(held_out, model) if held_out else None
    interrupted = Interrupted()
    saved_at = begun = time.monotonic()
    before = done.seconds
    say(f"training on {device}: {len(rows):,} rows, from step {done.step}")
    for batch in batches(rows, config, model, done.step * config.accumulate):
        rate = _rate(config, done)
        loss = _step(network, optimiser, average, batch, config, done, rate, device)
        done.seconds = before + time.monotonic() - begun
        _log(out, {"kind": "step", "loss": round(loss, 4), "rate": rate, **asdict(done)})
        if done.step % 10 == 0:
            say(
                f"step {done.step} loss {loss:.3f} rate {rate:.1e} "
                f"{done.positions / done.seconds:.0f} positions/s {done.seconds / 60:.1f} min"
            )
        finished = done.step >= config.steps or done.seconds > config.minutes * 60
        due = done.step % config.evaluate_every == 0 or finished
        if judge and due and not interrupted.asked:
            figures = _evaluate_average(network, average, judge, config, device)
            _log(out, {"kind": "evaluation", **figures, **asdict(done)})
            say(" ".join(f"{k} {v}" for k, v in figures.items()))
        if finished or interrupted.asked or time.monotonic() - saved_at > config.save_every_s:
            described = metadata(config, model, done, facts)
            _save(out, network, optimiser, average, done, described, ground)
            saved_at = time.monotonic()
        if finished or interrupted.asked:
            break
    plot(out)
    return out / "adapter.safetensors"


# --- one step ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows padded to one length; every array lives on the CPU."""

    tokens: Tensor  # [rows, length] prompt + answer + END padding
    windows: Tensor  # [rows, C, B]
    starts: Tensor  # [rows, C]
    targets: Tensor  # [rows, C, B]
    weights: Tensor  # [rows, C, B]
    causal: Tensor  # [rows, length] weight of each token as the causal pass's target


def _step(
    network: Network,
    optimiser: torch.optim.Optimizer,
    average: dict[str, Tensor],
    group: list[Batch],
    config: TrainConfig,
    done: Progress,
    rate: float,
    device: str,
) -> float:
    """One optimiser step over ``group``; returns the loss per unit of weight."""
    network.train()
    total = 0.0
    for batch in group:
        loss = batch_loss(network, batch, config.causal_weight, device)
        (loss / len(group)).backward()  # type: ignore[no-untyped-call]
        total += float(loss.detach()) / len(group)
        done.positions += int((batch.weights > 0).sum() + (batch.causal > 0).sum())
        done.tokens += batch.tokens.numel()
    torch.nn.utils.clip_grad_norm_(list(trainable(network)), config.clip)
    for parameters in optimiser.param_groups:
        parameters["lr"] = rate
    optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    decay = min(config.average, (1 + done.step) / (10 + done.step))
    for name, parameter in network.adapter().items():
        average[name].lerp_(parameter.detach().float(), 1 - decay)
    done.step += 1
    return total


def batch_loss(network: Network, batch: Batch, causal_weight: float, device: str) -> Tensor:
    """Mean cross-entropy of the hidden positions, plus the causal loss on the answers."""
    tokens = batch.tokens.to(device)
    trains_context = network.config.adapter == "all"
    with torch.set_grad_enabled(trains_context and torch.is_grad_enabled()):
        hidden, past = network.context(tokens)
    loss = torch.zeros((), device=device)
    if batch.windows.shape[1]:
        canvas = network.canvas(batch.windows.to(device), batch.starts.to(device), past)
        loss = _weighted_loss(network, canvas, batch.targets, batch.weights)
    if causal_weight and trains_context:
        causal = _weighted_loss(network, hidden[:, :-1], tokens[:, 1:], batch.causal[:, 1:])
        loss = loss + causal_weight * causal
    return loss


def _weighted_loss(network: Network, hidden: Tensor, targets: Tensor, weights: Tensor) -> Tensor:
    """Mean cross-entropy per unit of weight; logits are computed only where there is weight.

    Args:
        hidden: [..., hidden]. targets, weights: [...].
    """
    weights, targets = weights.to(hidden.device), targets.to(hidden.device)
    counted = weights > 0
    logits = network.logits(hidden[counted])  # [n, vocab]
    entropy = F.cross_entropy(logits, targets[counted], reduction="none")  # [n]
    return (entropy * weights[counted]).sum() / weights.sum()


# --- batches ----------------------------------------------------------------------------------


def batches(
    rows: Rows, config: TrainConfig, model: ModelConfig, skip: int
) -> Iterator[list[Batch]]:
    """Groups of ``accumulate`` batches, for ever; batch k is the same in every run of a seed."""
    number, group, epoch = 0, [], 0
    while True:
        for members in plan_batches(rows, config, epoch):
            if number >= skip:
                group.append(lay_batch(rows, members, config, model, number))
                if len(group) == config.accumulate:
                    yield group
                    group = []
            number += 1
        epoch += 1


def plan_batches(rows: Rows, config: TrainConfig, epoch: int) -> list[NDArray[np.int64]]:
    """Row numbers of each batch: rows of like length together, batches in random order."""
    rng = np.random.default_rng((config.seed, epoch))
    length = np.diff(rows.offset)
    fitting = np.flatnonzero(rows.prompt <= config.max_context)
    order = rng.permutation(fitting)
    found: list[NDArray[np.int64]] = []
    pool = 2_048
    for begin in range(0, len(order), pool):
        part = order[begin : begin + pool]
        part = part[np.argsort(length[part], kind="stable")]
        start, longest = 0, 0
        for i in range(len(part)):
            longest = max(longest, int(length[part[i]]) + 16)
            if longest * (i + 1 - start) > config.batch_tokens and i > start:
                found.append(part[start:i])
                start, longest = i, int(length[part[i]]) + 16
        found.append(part[start:])
    if not found:
        raise SettingsError(f"No row has a prompt of at most {config.max_context} tokens.")
    return [found[i] for i in rng.permutation(len(found))]


def lay_batch(
    rows: Rows, members: NDArray[np.int64], config: TrainConfig, model: ModelConfig, number: int
) -> Batch:
    """The batch of rows ``members``, its noise drawn from the batch's number."""
    rng = np.random.default_rng((config.seed, 1, number))
    width = model.canvas_width
    laid: list[list[Canvas]] = []
    texts: list[NDArray[np.int64]] = []
    causal: list[NDArray[np.float32]] = []
    for member in members:
        tokens, prompt, plain = rows[int(member)]
        answer = len(tokens) - prompt
        padded = np.concatenate([tokens, np.full(2 * width + 1, model.end_token)])
        if config.canvases:
            count = config.canvases
            laid.append(
                canvases_of(padded, prompt, answer, plain, count, width, model.mask_token, rng)
            )
        texts.append(padded[: len(tokens) + 1])
        causal.append(
            causal_weights(prompt, answer, plain, config.code_tokens, config.code_weight, rng)
        )
    shape = (len(texts), max(map(len, texts)))
    tokens_out = np.full(shape, model.end_token)
    causal_out = np.zeros(shape, np.float32)
    for i, (text, weight) in enumerate(zip(texts, causal, strict=True)):
        tokens_out[i, : len(text)] = text
        causal_out[i, : len(weight)] = weight

    def stack(name: str) -> Tensor:
        if not laid:
            return torch.zeros(len(texts), 0, dtype=torch.int64)
        return torch.from_numpy(np.stack([[getattr(c, name) for c in row] for row in laid]))

    return Batch(
        torch.from_numpy(tokens_out),
        stack("window"),
        stack("start"),
        stack("target"),
        stack("weight"),
        torch.from_numpy(causal_out),
    )


# --- evaluation inside the run ----------------------------------------------------------------


def _evaluate_average(
    network: Network, average: dict[str, Tensor], rows: Rows, config: TrainConfig, device: str
) -> dict[str, Any]:
    """Figures of the moving average; the weights in training come back untouched."""
    own = {n: p.detach().clone() for n, p in network.adapter().items()}
    _put(network, average)
    try:
        return evaluate(network, rows, config, device)
    finally:
        _put(network, own)


def judge(
    config: TrainConfig,
    model: ModelConfig,
    base: dict[str, NDArray[np.float32]],
    adapter: dict[str, NDArray[np.float32]],
    rows: Rows,
    device: str = "auto",
) -> dict[str, Any]:
    """Figures of a finished adapter and of its control; see :func:`evaluate`."""
    device = _pick_device(device)
    network = _build(config, model, base, adapter, device)
    return evaluate(network, rows, config, device, control=True)


@torch.no_grad()
def evaluate(
    network: Network, rows: Rows, config: TrainConfig, device: str, control: bool = False
) -> dict[str, Any]:
    """Loss and accuracy with everything hidden, exact match and tokens per step, per task; where
    the causal pass is trained, also its loss and accuracy on the answers.

    Args:
        control: also decode one token a step: by the causal pass alone where it is trained, else
            leftmost-first.
    """
    network.eval()
    figures: dict[str, Any] = {}
    for task, wanted in (("infill", False), ("edit", True)):
        members = np.flatnonzero((rows.is_edit == wanted) & (rows.prompt <= config.max_context))
        members = members[: config.evaluate_rows // 2]
        canvas, causal = _Tally(), _Tally()
        for member in members:
            batch = _hidden_batch(rows, int(member), network.config)
            tokens = batch.tokens.to(device)
            hidden, past = network.context(tokens)
            answer = int(batch.starts[0, 0])  # the token before it predicts its first
            causal.add(network.logits(hidden[0, answer:-1]), tokens[0, answer + 1 :])
            if config.canvases:
                hidden = network.canvas(batch.windows.to(device), batch.starts.to(device), past)
                counted = batch.weights.to(device) == 1
                canvas.add(network.logits(hidden[counted]), batch.targets.to(device)[counted])
        if config.causal_weight:
            figures |= causal.figures(f"{task}_causal")
        if not config.canvases:
            continue
        figures |= canvas.figures(task)
        decoded = members[: config.exact_rows // 2]
        figures |= _decode(network, rows, decoded, task, plan_for("medium"))
        if control:
            alone = AUTOREGRESSIVE if network.config.verifier == "ar" else LEFTMOST_FIRST
            figures |= _decode(network, rows, decoded, f"{task}_control", alone)
    return figures


@dataclass(slots=True)
class _Tally:
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


def _hidden_batch(rows: Rows, member: int, model: ModelConfig) -> Batch:
    """One row, its first canvas fully hidden, END and code counted alike, padding not."""
    tokens, prompt, _ = rows[member]
    width = model.canvas_width
    padded = np.concatenate([tokens, np.full(width + 1, model.end_token)])
    window = padded[prompt - 1 : prompt - 1 + width].copy()
    window[1:] = model.mask_token
    weight = (np.arange(width) <= len(tokens) - prompt).astype(np.float32)
    return Batch(
        torch.from_numpy(np.append(tokens, model.end_token))[None],
        torch.from_numpy(window)[None, None],
        torch.tensor([[prompt - 1]]),
        torch.from_numpy(padded[prompt : prompt + width])[None, None],
        torch.from_numpy(weight)[None, None],
        torch.zeros(1, 0),
    )


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
            Limits(max_tokens=80),
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


# --- building, saving, resuming ---------------------------------------------------------------


def _pick_device(wanted: str) -> str:
    if wanted == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    if wanted == "cuda" and not torch.cuda.is_available():
        raise SettingsError("No CUDA device is visible to torch. Use --device cpu or auto.")
    return wanted


def _build(
    config: TrainConfig,
    model: ModelConfig,
    base: dict[str, NDArray[np.float32]],
    start: dict[str, NDArray[np.float32]],
    device: str,
) -> Network:
    """Frozen matrices in bf16, the adapter in fp32."""
    network = Network(model, rank=config.rank, reach=max(config.max_context + 256, 2_048))
    network.load(base)
    if start:
        network.load({**base, **start})
    else:
        rows = network.embed.data
        noise = torch.randn(model.hidden) * rows.std()
        network.mask_embedding.data = rows.mean(0) + 0.1 * noise
    for name, parameter in network.named_parameters():
        if not parameter.requires_grad and "norm" not in name:
            parameter.data = parameter.data.to(torch.bfloat16)
    if config.compile:
        for block in network.blocks:
            block.compile(dynamic=True)
    return network.to(device)


def _rate(config: TrainConfig, done: Progress) -> float:
    """Linear warm-up, then a cosine to ``final_rate`` over whichever budget ends first."""
    used = max(done.step / config.steps, done.seconds / (config.minutes * 60))
    cosine = 0.5 * (1 + math.cos(math.pi * min(used, 1.0)))
    warm = min(1.0, (done.step + 1) / config.warmup_steps)
    return config.learning_rate * warm * (config.final_rate + (1 - config.final_rate) * cosine)


def _put(network: Network, values: dict[str, Tensor]) -> None:
    for name, parameter in network.adapter().items():
        parameter.data.copy_(values[name])


def _save(
    out: Path,
    network: Network,
    optimiser: torch.optim.Optimizer,
    average: dict[str, Tensor],
    done: Progress,
    facts: Mapping[str, str],
    ground: Mapping[str, NDArray[np.float32]],
) -> None:
    """State to resume from, and the adapter to ship; each replaced in one move."""
    state = {
        "adapter": {n: p.detach() for n, p in network.adapter().items()},
        "average": average,
        "optimiser": optimiser.state_dict(),
        "progress": asdict(done),
    }
    torch.save(state, out / "state.tmp")
    (out / "state.tmp").replace(out / "state.pt")
    first = {GROUND + name: torch.from_numpy(values) for name, values in ground.items()}
    save_adapter(out / "adapter.safetensors", {**average, **first}, facts)


def metadata(
    config: TrainConfig, model: ModelConfig, done: Progress, facts: Mapping[str, str]
) -> dict[str, str]:
    """What whoever loads the adapter checks, and how it came about."""
    return {
        "rank": str(config.rank),
        "scale": "1.0",
        "adapter": config.adapter,
        "canvas": str(model.canvas_width),
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
    network: Network,
    optimiser: torch.optim.Optimizer,
    average: dict[str, Tensor],
    say: Callable[[str], None],
) -> Progress:
    if not path.is_file():
        return Progress()
    state = torch.load(path, map_location=network.embed.device, weights_only=True)
    _put(network, state["adapter"])
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
