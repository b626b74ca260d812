"""How long the editor waits: the benchmark behind ``redraft bench``.

Real code (modules of Python's own library) is cut at real places, and single-line infills are
asked for with an empty and with a warm prefix cache, stage by stage; the control decodes the same
prompts with the same weights without drafts, one token a pass. Then fifty characters are typed into
a real file to see what a keystroke recomputes, and whether the cache ever changes an answer.
Medians and ratios, no verdicts. Loads the model in this process; knows nothing of editors and HTTP.
"""

from __future__ import annotations

import argparse as _sample_1
import contextlib
import json.decoder as _sample_2
import random
import re
import shutil as _sample_3
import statistics
import tarfile as _sample_4
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import psutil
from redraft.model.calibrate import measure_passes
from redraft.model.decode.completion import AUTOREGRESSIVE, Plan
from redraft.model.decode.recent import RecentAnswers
from redraft.model.load import KV_BYTES, onnx_loader
from redraft.model.predict import Model, predict
from redraft.model.records import DraftCount, EditRequest, Prediction, Quality, Stats
from redraft.model.runtime.onnx_backend import OnnxBackend
from redraft.model.runtime.prefix_cache import PrefixCache

from ..figures import Spread
from ..machine import machine
from ..scorers.costs import together
from .bench_editing import Editing, keystroke_overhead, type_and_ask

CONTEXTS = (256, 1_024, 2_048, 4_096)  # prompt budgets, tokens
SAMPLES: tuple[ModuleType, ...] = (_sample_1, _sample_2, _sample_3, _sample_4)
STAGES = ("prompt_ms", "prefill_ms", "denoise_ms", "total_ms")
TYPED = 50  # characters
KEYS_PER_RUN = 2  # typed in each way of editing, for each of the runs
PRICED_ROUNDS = 15  # passes of each width
COMPARED_EVERY = 5  # keystrokes: these answers are computed with an empty cache as well

Say = Callable[[str], None]
StopWhen = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Amount:
    """How much is measured."""

    contexts: tuple[int, ...] = CONTEXTS  # prompt budgets of the infills, tokens
    typing_contexts: tuple[int, ...] = ()  # of typing; none: 1,024 and the model's own
    runs: int = 12  # requests per context size and way of asking
    typed: int = TYPED  # characters
    keys: int = 12 * KEYS_PER_RUN  # in each way of editing
    keystrokes: int = 500  # without a model
    passes: bool = True  # price a pass as well
    part_s: float = float("inf")  # seconds after which a part takes no further sample


#: For a first look: under a minute on two quiet cores with the larger model.
QUICK = Amount((512,), (512,), runs=3, typed=20, keys=12, keystrokes=100, passes=False, part_s=5.0)


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class InfillRow:
    """One way of asking at one context size."""

    context: int  # prompt budget, tokens
    way: str  # "cold", "warm" or "warm, no drafts"
    runs: int
    stages: dict[str, Spread]  # milliseconds
    prompt_tokens: float  # median
    recomputed: float  # median prompt tokens not found in the cache
    steps: Spread  # denoise steps
    tokens_per_step: float  # over all runs
    drafts: tuple[DraftCount, ...]  # what became of them, over all runs


@dataclass(frozen=True, slots=True)
class TypedInfills:
    """Fifty characters typed into a real file, one request each."""

    context: int
    total_ms: Spread
    recomputed_tokens: Spread
    recomputed_share: Spread  # of the prompt, 0 … 1
    compared: int  # keystrokes whose answer was also computed with an empty cache
    same_answer: float  # share of them at which both were the same, 0 … 1
    kv_mb: float  # keys and values held by the prefix cache afterwards


@dataclass(slots=True)
class BenchReport:
    """Everything ``redraft bench`` prints, filled while it is measured; ``--json`` writes it as it
    is."""

    model: str
    provider: str
    quality: str
    threads: int
    auto_context: int
    cells: list[InfillRow] = field(default_factory=list)
    typing: list[TypedInfills] = field(default_factory=list)
    #: Both tasks through session, queue and engine, stage by stage.
    editing: list[Editing] = field(default_factory=list)
    #: Language-server ms per keystroke in 10,000 lines: wall, processor.
    editor: dict[str, Spread] = field(default_factory=dict)
    memory_mb: dict[str, float] = field(default_factory=dict)
    #: Judging so many positions at once behind 1,000 tokens.
    passes_ms: dict[int, float] = field(default_factory=dict)
    #: Of the machine: runnable processes per core, before and after.
    load: dict[str, float] = field(default_factory=dict)
    machine: dict[str, str] = field(default_factory=dict)
    complete: bool = False  # else it was stopped, and what is here was measured before


#: Told of each row once it is measured, and of the report, empty, before the first.
Seen = Callable[[BenchReport | InfillRow | TypedInfills | Editing], None]


def run(
    model: str,
    variant: str | None = None,
    provider: str | None = None,
    threads: int | None = None,
    quality: Quality = "medium",
    amount: Amount | None = None,
    say: Say = lambda _: None,
    seen: Seen = lambda _: None,
) -> BenchReport:
    """Measure one variant on this machine. Stopped by a keyboard interrupt it returns what there is
    by then.

    Args:
        say: told what is being measured now.

    Raises:
        RedraftError: the model cannot be loaded; the message says what to do.
        KeyboardInterrupt: there is nothing yet.
    """
    amount = amount or Amount()
    process, load = psutil.Process(), {"before": load_per_core()}
    before = process.memory_info().rss
    say("the language server's own work")
    spent = keystroke_overhead(keystrokes=amount.keystrokes)
    say("loading the model")
    loaded = onnx_loader(model, variant, provider, threads)(lambda *_: None)
    report = BenchReport(
        model=loaded.label,
        provider=loaded.backend.provider,
        quality=quality,
        threads=threads or psutil.cpu_count(logical=False) or 1,
        auto_context=loaded.context_tokens,
        editor={
            "a key by the clock": Spread.of(spent.wall_ms),
            "a key": Spread.of(spent.processor_ms),
            "asking for a next edit": Spread.of(spent.question_ms),
        },
        memory_mb={
            "before": round(before / 2**20),
            "model loaded": round(process.memory_info().rss / 2**20),
        },
        load=load,
        machine=machine(),
    )
    try:
        seen(report)
        fill(report, loaded, amount, say, seen)
        report.complete = True
    except KeyboardInterrupt:
        say("stopped")
    finally:
        loaded.backend.close()
    report.memory_mb["after the bench"] = round(process.memory_info().rss / 2**20)
    report.load["after"] = load_per_core()
    return report


def fill(report: BenchReport, loaded: Model, amount: Amount, say: Say, seen: Seen) -> None:
    """Measure part after part into ``report``. Closes the model's backend."""
    quality: Quality = report.quality  # type: ignore[assignment]
    for context in amount.contexts:
        say(f"single-line infills at {context} tokens of context")
        for cell in measure(loaded, context, quality, amount.runs, _after(amount.part_s)):
            report.cells.append(cell)
            seen(cell)
    budgets = amount.typing_contexts or tuple(sorted({1_024, loaded.context_tokens}))
    if amount.passes:
        say("the price of a pass")
        report.passes_ms = passes_of(loaded)
    for context in budgets:
        say(f"typing {amount.typed} characters at {context} tokens of context")
        typing = type_into(loaded, context, quality, amount.typed, _after(amount.part_s))
        report.typing.append(typing)
        seen(typing)
        held = report.memory_mb.get("keys and values while typing", 0.0)
        report.memory_mb["keys and values while typing"] = max(held, typing.kv_mb)

    def found(editing: Editing) -> None:
        report.editing.append(editing)
        seen(editing)

    type_and_ask(loaded, budgets, amount.keys, found, say, amount.part_s)


def _after(seconds: float) -> StopWhen:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() > end


def passes_of(model: Model) -> dict[int, float]:
    """What judging costs by width; nothing where the weights do not judge."""
    if not isinstance(model.backend, OnnxBackend) or model.backend.config.verifier == "none":
        return {}
    return measure_passes(model.backend, rounds=PRICED_ROUNDS, patience_s=float("inf"))


def load_per_core() -> float:
    """Processes that run or wait to, per core, over the last minute; above 1 the clock tells more
    of the others than of us."""
    return round(psutil.getloadavg()[0] / (psutil.cpu_count() or 1), 2)


def measure(
    model: Model, context: int, quality: Quality, runs: int, enough: StopWhen = _never
) -> list[InfillRow]:
    """Cold, warm and the control at one context size, in turn for each place, until ``enough``."""
    found: dict[str, list[Stats]] = {"cold": [], "warm": [], "warm, no drafts": []}
    requests = places(context, quality, runs)
    with emptied(model) as fresh:
        ask(fresh, requests[0])  # not counted: memory of this size is touched for the first time
    for request in requests:
        if found["cold"] and enough():
            break
        earlier = replace(
            request,
            text=request.text[: request.cursor - 1] + request.text[request.cursor :],
            cursor=request.cursor - 1,
        )
        with emptied(model) as fresh:
            found["cold"].append(ask(fresh, request).stats)
        for way, plan in (("warm", None), ("warm, no drafts", AUTOREGRESSIVE)):
            with emptied(model) as fresh:
                ask(fresh, replace(earlier, max_tokens=1))  # the keystroke before
                found[way].append(ask(fresh, request, plan).stats)
    return [cell(context, way, stats) for way, stats in found.items()]


def cell(context: int, way: str, stats: Sequence[Stats]) -> InfillRow:
    steps = sum(s.denoise_steps for s in stats)
    return InfillRow(
        context=context,
        way=way,
        runs=len(stats),
        stages={stage: Spread.of([getattr(s, stage) for s in stats]) for stage in STAGES},
        prompt_tokens=statistics.median(s.prompt_tokens for s in stats),
        recomputed=statistics.median(recomputed(s) for s in stats),
        steps=Spread.of([float(s.denoise_steps) for s in stats]),
        tokens_per_step=round(sum(s.canvas_tokens for s in stats) / max(steps, 1), 3),
        drafts=together(stats),
    )


def type_into(
    model: Model,
    context: int,
    quality: Quality,
    typed_chars: int = TYPED,
    enough: StopWhen = _never,
) -> TypedInfills:
    """Type the text that was cut out of a real file back into it, asking at every character, until
    all is typed or it is ``enough``."""
    text = sample_text(SAMPLES[0])
    start = text.index("def parse_known_args")
    end = start + typed_chars
    request = EditRequest(
        "infill",
        "argparse.py",
        text,
        start,
        language="python",
        context_tokens=context,
        max_tokens=16,
        max_lines=1,
        quality=quality,
    )
    stats, same = [], []
    with emptied(model) as warm:
        for count in range(typed_chars + 1):
            if count > COMPARED_EVERY and enough():
                break
            cursor = start + count
            request = replace(request, text=text[:cursor] + text[end:], cursor=cursor)
            found = ask(warm, request)
            stats.append(found.stats)
            if count and count % COMPARED_EVERY == 0:
                with emptied(model) as fresh:
                    same.append(_texts(found) == _texts(ask(fresh, request)))
        kv_bytes = warm.cache.bytes_held
    stats = stats[1:]  # the first one fills the cache
    return TypedInfills(
        context=context,
        total_ms=Spread.of([s.total_ms for s in stats]),
        recomputed_tokens=Spread.of([float(recomputed(s)) for s in stats]),
        recomputed_share=Spread.of([recomputed(s) / max(s.prompt_tokens, 1) for s in stats]),
        compared=len(same),
        same_answer=round(sum(same) / len(same), 3),
        kv_mb=round(kv_bytes / 2**20, 1),
    )


def _texts(prediction: Prediction) -> list[tuple[int, int, str]]:
    return [(each.start, each.end, each.text) for each in prediction.candidates]


def recomputed(stats: Stats) -> int:
    """Prompt tokens that had to be prefilled."""
    return stats.prompt_tokens - stats.reused_tokens


def places(context: int, quality: Quality, count: int) -> list[EditRequest]:
    """Requests whose line is cut at a natural place; the same ones every time."""
    rng = random.Random(20_26)
    found: list[EditRequest] = []
    while len(found) < count:
        module = SAMPLES[len(found) % len(SAMPLES)]
        text = sample_text(module)
        cuts = [m.end() for m in re.finditer(r"\n[ ]+\S[^\n]{8,}?[(=,.]\s?(?=[^\n]{4,40}\n)", text)]
        at = rng.choice(cuts)
        end = text.index("\n", at)
        found.append(
            EditRequest(
                "infill",
                f"{module.__name__.replace('.', '/')}.py",
                text[:at] + text[end:],
                at,
                language="python",
                context_tokens=context,
                max_tokens=32,
                max_lines=1,
                quality=quality,
            )
        )
    return found


def ask(model: Model, request: EditRequest, plan: Plan | None = None) -> Prediction:
    return predict(model, request, time.perf_counter, plan=plan)


@contextlib.contextmanager
def emptied(model: Model) -> Iterator[Model]:
    """The same model with a prefix cache of its own, empty at first, and no answer to draft from.
    Its memory is given back, so that the next one need not wait for the system to find pages."""
    cache = PrefixCache(model.backend, KV_BYTES)
    try:
        yield replace(model, cache=cache, recent=RecentAnswers())
    finally:
        cache.clear()


def sample_text(module: ModuleType) -> str:
    assert module.__file__ is not None
    return Path(module.__file__).read_text(encoding="utf-8")


def as_json(report: BenchReport) -> dict[str, Any]:
    return asdict(report)
