"""Latency as an editor meets it: the examples of ``redraft bench``.

Real code (modules of Python's own library) is cut at real places. Kinds of examples:

- ``server``: one key in 10,000 lines, without a model.
- ``cold``, ``warm``, ``no drafts``: one single-line infill with an empty prefix cache, with a warm
  one, and, as a control, with a warm one and one token a pass.
- ``typing``: one of fifty characters typed into a real file. Every fifth answer is computed with an
  empty cache as well, to see whether the cache ever changes an answer.
- ``ghost text``, ``next edit``: one key, through session, queue and engine; ``first next edit``:
  the first question at a place, with and without its prompt read ahead.
- ``start``: ``redraft complete`` as a process, with the weights on disk.
- ``pass 8``: verifying 8 positions at once.
- ``region``: scoring the tokens of a region beside reading them into the cache.
- ``product int8``, ``product, 2 threads``: one matrix product by variant and number of threads.
- ``long``: four tokens read behind a prompt of 32,000.
- ``machine``: memory and load.
"""

from __future__ import annotations

import argparse as _sample_1
import contextlib
import json.decoder as _sample_2
import random
import re
import shutil as _sample_3
import subprocess
import tarfile as _sample_4
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import psutil
from redraft.model.calibrate import CACHED, measure_passes, thread_counts
from redraft.model.decode.completion import AUTOREGRESSIVE, Plan
from redraft.model.decode.recent import RecentAnswers
from redraft.model.load import KV_BYTES
from redraft.model.predict import Model, predict
from redraft.model.records import EditRequest, Prediction, Quality
from redraft.model.runtime.machine import default_threads, import_onnxruntime
from redraft.model.runtime.onnx_backend import OnnxBackend
from redraft.model.runtime.prefix_cache import PrefixCache
from redraft.model.runtime.product_probe import measure_products, measure_threads

from ..run import Run
from ..scorers.latency import record_answer, record_figures
from . import REDRAFT
from .bench_editing import keystroke_overhead, type_and_ask

CONTEXTS = (256, 1_024, 2_048, 4_096)  # prompt budgets of infills, tokens
SAMPLES: tuple[ModuleType, ...] = (_sample_1, _sample_2, _sample_3, _sample_4)
TYPED = 50  # characters
COMPARED_EVERY = 5  # characters: these answers are computed with an empty cache as well
KEYS_PER_RUN = 2  # keys of ghost text and of next edits, for each infill of a kind
WAYS: dict[str, Plan | None] = {"cold": None, "warm": None, "no drafts": AUTOREGRESSIVE}
_PASS_ROUNDS = 15  # of each width
_LONG, _KEY_TOKENS = 32_000, 4  # tokens of a long prompt, and of a key behind it
_REGION_TOKENS, _REGION_ROUNDS = 160, 9  # about 16 lines; pairs of passes

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Amount:
    """Numbers of samples that a bench takes."""

    runs: int = 12  # infills of each kind and prompt budget
    keys: int = 24  # of ghost text and of next edits, at each prompt budget
    typed: int = TYPED  # characters
    keystrokes: int = 500  # without a model
    starts: int = 5
    passes: bool = True
    part_s: float = float("inf")  # seconds after which a part takes no further sample


#: For a first look: under a minute on two quiet cores with the larger model.
QUICK = Amount(runs=3, keys=12, typed=20, keystrokes=100, starts=1, passes=False, part_s=5.0)
QUICK_CONTEXT = 512  # tokens


def measure(
    run: Run, load: Callable[[], Model], amount: Amount | None = None, say: Say = lambda _: None
) -> None:
    """Measure part after part into ``run``.

    Args:
        load: returns the model, whose backend is closed afterwards.
        say: called with what is measured next.

    Raises:
        RedraftError: the model cannot be loaded; the message says what to do.
    """
    amount = amount or Amount()
    say("a start")
    measure_starts(run, amount.starts)
    process = psutil.Process()
    machine = {"start_mb": _mb(process), "load_before": _load_per_core()}
    say("the language server's own work")
    _keystrokes(run, amount.keystrokes)
    say("loading the model")
    model = load()
    machine |= {"loaded_mb": _mb(process), "auto_context": model.context_tokens}
    try:
        _with_model(run, model, amount, say)
    finally:
        model.backend.close()
        machine |= {"end_mb": _mb(process), "load_after": _load_per_core()}
        run.add(record_figures("machine", "machine", machine))


def _with_model(run: Run, model: Model, amount: Amount, say: Say) -> None:
    asked = run.spec.context_tokens
    for context in [asked] if asked else CONTEXTS:
        say(f"single-line infills at {context} tokens of context")
        infills(run, model, context, amount.runs, time.perf_counter() + amount.part_s)
    if amount.passes:
        say("the cost of a pass")
        _passes(run, model)
        _products(run)
        _long_prompt(run, model)
    say("scoring a region")
    _regions(run, model)
    budgets = [asked] if asked else sorted({1_024, model.context_tokens})
    for context in budgets:
        say(f"typing {amount.typed} characters at {context} tokens of context")
        measure_typing(run, model, context, amount.typed, time.perf_counter() + amount.part_s)
    type_and_ask(model, budgets, amount.keys, run, say, amount.part_s)


def measure_starts(run: Run, rounds: int) -> None:
    """Measure ``redraft complete`` from its start to its end; the first start is not counted.

    Nothing is added where the command fails: the same is then said of the model.
    """
    spec = run.spec
    options = ["--model", spec.model, "--quiet"]
    for name, value in (("variant", spec.variant), ("provider", spec.provider)):
        options += [f"--{name}", value] if value else []
    options += ["--threads", str(spec.threads)] if spec.threads else []
    with tempfile.TemporaryDirectory(prefix="redraft-start-") as folder:
        (Path(folder) / "a.py").write_text("def add(a, b):\n    return ", encoding="utf-8")
        command = [*REDRAFT, "complete", f"{folder}/a.py:2:12", *options]
        for number in range(-1, rounds):
            began = time.perf_counter()
            if subprocess.run(command, capture_output=True, check=False).returncode:
                return
            if number >= 0:
                took_s = round(time.perf_counter() - began, 3)
                run.add(record_figures(f"start:{number}", "start", {"start_s": took_s}))


def _mb(process: psutil.Process) -> float:
    return round(process.memory_info().rss / 2**20)


def _load_per_core() -> float:
    """Return processes that run or wait to, per core, over the last minute.

    Above 1 times by the clock depend more on others than on us.
    """
    return round(psutil.getloadavg()[0] / (psutil.cpu_count() or 1), 2)


def _keystrokes(run: Run, count: int) -> None:
    spent = keystroke_overhead(keystrokes=count)
    took = zip(spent.wall_ms, spent.processor_ms, spent.question_ms, strict=True)
    for number, (wall, processor, question) in enumerate(took):
        score = {"wall_ms": wall, "processor_ms": processor, "question_ms": question}
        run.add(record_figures(f"server:{number}", "server", score))


def infills(run: Run, model: Model, context: int, runs: int, end_s: float = float("inf")) -> None:
    """Ask for single lines cold, warm and without drafts, in turn for each place.

    Args:
        context: prompt budget, tokens.
        end_s: time by ``perf_counter`` after which no further place is taken but the first.
    """
    requests = places(context, run.spec.quality, runs)
    with empty_cache(model) as fresh:
        ask(fresh, requests[0])  # not counted: memory of this size is touched for the first time
    for at, request in enumerate(requests):
        if at and time.perf_counter() > end_s:
            break
        for way, plan in WAYS.items():
            with empty_cache(model) as fresh:
                if way != "cold":
                    ask(fresh, _a_key_earlier(request))
                found = ask(fresh, request, plan)
            run.add(record_answer(f"{way}:{context}:{at}", way, context, "infill", found))


def _a_key_earlier(request: EditRequest) -> EditRequest:
    """Return what was asked for one key before; its answer does not matter."""
    at = request.cursor - 1
    text = request.text[:at] + request.text[at + 1 :]
    return replace(request, text=text, cursor=at, max_tokens=1)


def measure_typing(
    run: Run, model: Model, context: int, count: int = TYPED, end_s: float = float("inf")
) -> None:
    """Type text that was cut out of a real file back into it, and ask at every character.

    Args:
        count: characters.
        end_s: time by ``perf_counter`` after which typing ends.
    """
    text = sample_text(SAMPLES[0])
    start = text.index("def parse_known_args")
    asked = EditRequest(
        "infill",
        "argparse.py",
        text,
        start,
        language="python",
        context_tokens=context,
        max_tokens=16,
        max_lines=1,
        quality=run.spec.quality,
    )
    with empty_cache(model) as warm:
        for at in range(count + 1):
            if at > COMPARED_EVERY and time.perf_counter() > end_s:
                break
            cursor = start + at
            request = replace(asked, text=text[:cursor] + text[start + count :], cursor=cursor)
            found, same = ask(warm, request), None
            if at and at % COMPARED_EVERY == 0:
                with empty_cache(model) as fresh:
                    same = _texts(found) == _texts(ask(fresh, request))
            if at:  # the first fills a cache
                held = {"same": same, "kv_mb": round(warm.cache.bytes_held / 2**20, 1)}
                name = f"typing:{context}:{at}"
                run.add(record_answer(name, "typing", context, "infill", found, held))


def _texts(prediction: Prediction) -> list[tuple[int, int, str]]:
    return [(each.start, each.end, each.text) for each in prediction.candidates]


def _passes(run: Run, model: Model) -> None:
    """Measure a pass by its width, if the weights verify drafts."""
    if not isinstance(model.backend, OnnxBackend) or model.backend.config.verifier == "none":
        return
    found = measure_passes(model.backend, rounds=_PASS_ROUNDS, patience_s=float("inf"))
    for width, took_ms in found.items():
        name = f"pass {width}"
        run.add(record_figures(name, name, {"pass_ms": took_ms}))


def _products(run: Run) -> None:
    """Measure a product by variant, and that of the fastest by the number of threads."""
    runtime, most = import_onnxruntime(), default_threads()
    found = measure_products(runtime)
    counts = sorted({1, *thread_counts(most)})
    of_threads = measure_threads(runtime, min(found, key=lambda name: found[name]), counts)
    named = {f"product {variant}": ms for variant, ms in found.items()}
    named |= {f"product, {count} threads": ms for count, ms in of_threads.items()}
    for name, took_ms in named.items():
        run.add(record_figures(name, name, {"product_ms": took_ms, "fp32_ms": found.get("fp32")}))


def _long_prompt(run: Run, model: Model) -> None:
    """Measure what a few tokens cost behind a long prompt, whose keys and values are made up."""
    backend = model.backend
    if not isinstance(backend, OnnxBackend) or backend.config.verifier == "none":
        return
    first = backend.config.text_ids.start
    sequence = backend.open(_LONG + _KEY_TOKENS)
    try:
        sequence.pretend([first] * _LONG)
        memory_mb = _LONG * backend.bytes_per_token / 2**20
        for number in range(-1, _PASS_ROUNDS):
            began = time.perf_counter()
            sequence.score(np.arange(first, first + _KEY_TOKENS, dtype=np.int64))
            took_ms = 1e3 * (time.perf_counter() - began)
            sequence.truncate(_LONG)
            if number >= 0:
                score = {"key_ms": took_ms, "kv_mb": memory_mb}
                run.add(record_figures(f"long:{number}", "long", score))
    finally:
        backend.keep(0)  # so much memory is not kept
        backend.release(sequence)
        backend.keep(KV_BYTES)


def _regions(run: Run, model: Model) -> None:
    """Measure pairs: a region's tokens read into the cache, and scored with their likelihoods."""
    backend = model.backend
    if not isinstance(backend, OnnxBackend) or backend.config.verifier == "none":
        return
    first = backend.config.text_ids.start
    tokens = first + np.arange(_REGION_TOKENS, dtype=np.int64) % 64
    sequence = backend.open(CACHED + 2 * _REGION_TOKENS)
    try:
        sequence.pretend([first] * CACHED)
        for number in range(-1, _REGION_ROUNDS):  # the first round has the memory ready
            took_ms = []
            for run_pass in (sequence.extend, partial(sequence.score, short=True)):
                began = time.perf_counter()
                run_pass(tokens)
                sequence.settle()
                took_ms.append(1e3 * (time.perf_counter() - began))
                sequence.truncate(CACHED)
            read_ms, score_ms = took_ms
            if number >= 0:
                score = {"read_ms": read_ms, "score_ms": score_ms, "ratio": score_ms / read_ms}
                run.add(record_figures(f"region:{number}", "region", score))
    finally:
        backend.release(sequence)


def places(context: int, quality: Quality, count: int) -> list[EditRequest]:
    """Return requests whose line is cut at a natural place; the same ones every time."""
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
                path_of(module),
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
    """Return the answer of a model in memory."""
    return predict(model, request, time.perf_counter, plan=plan)


@contextlib.contextmanager
def empty_cache(model: Model) -> Iterator[Model]:
    """Yield the model with another, empty prefix cache, and no answer to draft from.

    The memory is given back, so that the next cache need not wait for the system to find pages.
    """
    cache = PrefixCache(model.backend, KV_BYTES)
    try:
        yield replace(model, cache=cache, recent=RecentAnswers())
    finally:
        cache.clear()


def sample_text(module: ModuleType) -> str:
    """Return the source of a module."""
    assert module.__file__ is not None
    return Path(module.__file__).read_text(encoding="utf-8")


def path_of(module: ModuleType) -> str:
    """Return the path of a module below the folder that it is imported from."""
    return f"{module.__name__.replace('.', '/')}.py"
