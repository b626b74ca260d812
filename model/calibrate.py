"""Calibration: how fast this machine reads prompts, multiplies, and verifies drafts.

The first start with some weights measures before it answers, the next ones once they are idle, and
one file keeps the results. Other
programs can only make a machine look slower, so the fastest prefill counts. A single start may be
disturbed, and the pace of a machine changes, so of the passes the median of the last starts counts,
in proportion to one another. If the file cannot be read or written, the next start measures again.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np

from .config import ModelConfig
from .errors import InvalidRequest
from .runtime.backend import CHUNK, Backend, Rows
from .runtime.kv_memory import SIZE_CLASSES, size_class
from .runtime.machine import MANY_CORES, default_threads, import_onnxruntime, processor
from .runtime.product_probe import measure_products, measure_threads
from .validation import Exactly, Number, object_of, read
from .weights.catalog import ModelInfo, cache_dir
from .weights.files import write_notes

if TYPE_CHECKING:
    from .runtime.onnx_backend import OnnxBackend
    from .runtime.onnx_sequence import OnnxSequence

Clock = Callable[[], float]  # seconds
Pass: TypeAlias = "Callable[[OnnxSequence], Any]"

#: Context budgets to choose from, tokens, and how long the prefill of a whole one may take.
CHOICES = (1_024, 2_048, 4_096, 8_192, 16_384, 32_768)
COLD_PREFILL_S = 1.5
#: The fewest chunks that separate growth from noise; under a second on two cores.
_CHUNKS = 3
#: A chunk that takes less than this share of the time noted shows that the note is pessimistic.
_CLEARLY_FASTER = 0.9
_TYPICAL = 2_048  # tokens at which two measurements are compared

#: Starts after which passes are not measured any more, and seconds after which all begins anew: a
#: system may have been updated, or a machine runs on battery.
ENOUGH, LASTS_S = 5, 7 * 86_400.0
_MOST_NOTES = 32
#: A number of threads is as good as the fastest from this share of its speed on.
_NEARLY = 0.95

#: Positions of measured passes: one token alone, with one draft, (k + 1)² for groups of k masks.
WIDTHS = (1, 2, 4, 9, 16, 25)
_ROOM = 32  # for the widest
CACHED = 1_000  # tokens in the cache meanwhile: a usual prompt
#: Measuring begins no further round after this; the first round is always whole.
PATIENCE_S, ROUNDS = 0.5, 5
#: Verified tokens and masks behind them in the two passes that are compared, few and many; pairs of
#: passes at most; guesses of the sampler in each.
_MASKED = ((2, 2), (4, 12))
PAIRS, _GUESSED = 9, 2

Ms = Annotated[float, Exactly(0, 3.6e6)]  # no pass takes longer than an hour
PassMs = Annotated[float, Exactly(1e-6, 3.6e6)]


@dataclass(frozen=True, slots=True)
class PrefillSpeed:
    """Prefill time as a line: attention makes a token dearer with every token before it."""

    token_s: Number  # seconds per token behind an empty cache
    growth_s: Number  # further seconds per token for each token before it

    def cold_seconds(self, tokens: int) -> float:
        """Return the time to prefill ``tokens`` into an empty cache."""
        return self.token_s * tokens + self.growth_s * tokens * tokens / 2


@dataclass(frozen=True, slots=True)
class PassTimes:
    """Milliseconds of passes that verify drafts."""

    widths: Mapping[int, PassMs]  # by number of positions, 1 among them
    masks_ms: Ms  # more, where any of the positions are masks behind verified tokens
    mask_ms: Ms  # more, for each that is one


@dataclass(frozen=True, slots=True)
class Calibration:
    """Measurements of some weights on this machine."""

    since_s: Number  # seconds since 1970, of the first start
    prefill: PrefillSpeed | None = None  # None: not measured
    starts: tuple[PassTimes, ...] = ()  # of the same widths
    products_ms: Mapping[str, PassMs] = field(default_factory=dict)  # by variant, if it is right
    threads_ms: Mapping[int, PassMs] = field(default_factory=dict)  # of the fastest, by threads

    @property
    def passes(self) -> PassTimes | None:
        """The cost of passes by the starts so far; None: none measured it."""
        return median_times(self.starts) if self.starts else None

    def is_fresh(self, now_s: float) -> bool:
        """Return whether the first start was within the last week, and not in the future."""
        return 0 <= now_s - self.since_s < LASTS_S

    def context_tokens(self, memory_tokens: int = SIZE_CLASSES[-1]) -> int:
        """Return the largest budget that is read in time and fits into ``memory_tokens``."""
        assert self.prefill is not None, "measured"
        fitting = (
            choice
            for choice in CHOICES
            if size_class(choice + 1) <= memory_tokens
            and self.prefill.cold_seconds(choice) <= COLD_PREFILL_S
        )
        return max(fitting, default=CHOICES[0])


def calibration_file() -> Path:
    """Return the file with the measurements of earlier starts."""
    return cache_dir() / "calibration.json"


def calibration_key(model: ModelInfo, variant: str, provider: str, threads: int | None) -> str:
    """Return the name of a model's measurements: its weights, how they run, and the machine."""
    return f"{model.name} {model.version} {variant} {provider} {threads or 0} {_machine()}"


def _machine() -> str:
    return f"{processor()} onnxruntime {import_onnxruntime().__version__}"


def product_times(now: Clock = time.time) -> Mapping[str, float]:
    """Return the milliseconds of a matrix product by variant, the fastest first.

    Variants that this processor computes wrong are missing. Measured once a week, and noted once
    there is a cache folder.
    """
    return _products(now).products_ms


def thread_counts(most: int) -> tuple[int, ...]:
    """Return the numbers of threads that are compared where ``most`` may be used."""
    if most + 1 < MANY_CORES:
        return (most,)
    return tuple(sorted({most // 2, most * 3 // 4, most}))


def usual_threads(now: Clock = time.time) -> int:
    """Return the threads of the engine where none are set.

    That is the smallest number that :data:`_NEARLY` reaches the speed of the fastest: the slow
    cores of a processor with two kinds of them, and cores that share memory, may add nothing.
    """
    counts = thread_counts(default_threads())
    if len(counts) == 1:
        return counts[0]
    times = _products(now).threads_ms
    least = min(times.values())
    return min(count for count, ms in times.items() if ms * _NEARLY <= least)


def _products(now: Clock) -> Calibration:
    key, file = f"products {_machine()}", calibration_file()
    noted, counts = read_notes(file).get(key), thread_counts(default_threads())
    has_all = noted is not None and (len(counts) == 1 or {*noted.threads_ms} == {*counts})
    if noted is None or not has_all or not noted.products_ms or not noted.is_fresh(now()):
        runtime = import_onnxruntime()
        products = measure_products(runtime)
        ordered = dict(sorted(products.items(), key=lambda each: each[1]))
        threads = measure_threads(runtime, next(iter(ordered)), counts) if len(counts) > 1 else {}
        noted = Calibration(now(), products_ms=ordered, threads_ms=threads)
        if file.parent.is_dir():  # 'redraft doctor' leaves none behind
            _note(file, key, noted)
    return noted


def read_calibration(
    config: ModelConfig, key: str, file: Path, now: Clock = time.time
) -> Calibration | None:
    """Return what earlier starts measured, or None if something is missing or a week old."""
    found = read_notes(file).get(key)
    if found is None or not found.is_fresh(now()):
        return None
    lacks_prefill = found.prefill is None and config.attention != "bidirectional"
    return None if lacks_prefill or (config.verifier == "ar" and not found.starts) else found


def calibrate(
    backend: OnnxBackend,
    key: str,
    file: Path,
    clock: Clock = time.perf_counter,
    now: Clock = time.time,
) -> Calibration:
    """Return the measurements under ``key`` in ``file``, renewed by this start.

    The backend must have run before, so that nothing is cold.

    Args:
        key: see :func:`calibration_key`.
        now: seconds since 1970.
    """
    noted = read_notes(file).get(key)
    if noted is None or not noted.is_fresh(now()):
        noted = Calibration(now())
    found = noted
    if backend.config.attention != "bidirectional":  # there each step reads the whole prompt
        found = replace(found, prefill=fastest_prefill(backend, noted.prefill, clock))
    if backend.config.verifier == "ar" and len(noted.starts) < ENOUGH:
        times = PassTimes(measure_passes(backend), *measure_masks(backend))
        earlier = [each for each in noted.starts if each.widths.keys() == times.widths.keys()]
        found = replace(found, starts=(*earlier, times))
    if found != noted:
        _note(file, key, found)
    return found


def _note(file: Path, key: str, found: Calibration) -> None:
    others = [(name, note) for name, note in read_notes(file).items() if name != key]
    kept = dict([*others[1 - _MOST_NOTES :], (key, found)])
    write_notes(file, {name: asdict(note) for name, note in kept.items()})


def read_notes(file: Path) -> dict[str, Calibration]:
    """Return the notes in ``file`` whose starts all measured the same widths, 1 among them."""
    try:
        notes = read(dict[str, Calibration], object_of(file.read_bytes()))
    except (OSError, InvalidRequest):
        return {}

    def is_usable(starts: Sequence[PassTimes]) -> bool:
        alike = all(each.widths.keys() == starts[0].widths.keys() for each in starts)
        return alike and (not starts or min(starts[0].widths, default=0) == 1)

    return {key: note for key, note in notes.items() if is_usable(note.starts)}


def median_times(starts: Sequence[PassTimes]) -> PassTimes:
    """Return the median of each cost in proportion to its start's pace, at the fastest pace.

    Args:
        starts: at least one, all of the same widths.
    """
    pace = [sum(times.widths.values()) for times in starts]

    def middle(ms: Iterable[float]) -> float:
        shares = [each / own for each, own in zip(ms, pace, strict=True)]
        return float(min(pace) * statistics.median(shares))

    return PassTimes(
        {width: middle(times.widths[width] for times in starts) for width in starts[0].widths},
        middle(times.masks_ms for times in starts),
        middle(times.mask_ms for times in starts),
    )


def fastest_prefill(backend: Backend, noted: PrefillSpeed | None, clock: Clock) -> PrefillSpeed:
    """Return the fastest speed seen.

    With a note a single chunk is timed, a third of the work, and all of it measured again only if
    that chunk was clearly faster than the note says.
    """
    if noted is not None:
        (token_s,) = _time_chunks(backend, clock, 1)
        if token_s * CHUNK >= _CLEARLY_FASTER * noted.cold_seconds(CHUNK):
            return noted
    speed = fit(_time_chunks(backend, clock, _CHUNKS))
    return min(speed, noted or speed, key=lambda each: each.cold_seconds(_TYPICAL))


def _time_chunks(backend: Backend, clock: Clock, count: int) -> list[float]:
    """Return the seconds per token of each of ``count`` chunks, one behind the other."""
    sequence = backend.open(_CHUNKS * CHUNK + backend.config.canvas_width)
    first = backend.config.special_tokens
    tokens = first + np.arange(CHUNK, dtype=np.int64) % (backend.config.vocab - first)
    times = []
    try:
        for _ in range(count):
            begin = clock()
            sequence.extend(tokens)
            times.append((clock() - begin) / CHUNK)
    finally:
        backend.release(sequence)
    return times


def fit(token_s: list[float]) -> PrefillSpeed:
    """Return the line through the chunks' seconds per token, in the order they were run."""
    middles = [(i + 0.5) * CHUNK for i in range(len(token_s))]  # tokens cached at mid-chunk
    growth = max(0.0, statistics.linear_regression(middles, token_s).slope)
    token = statistics.fmean(token_s) - growth * statistics.fmean(middles)
    return PrefillSpeed(max(0.0, token), growth)


def measure_passes(
    backend: OnnxBackend,
    widths: Sequence[int] = WIDTHS,
    cached: int = CACHED,
    rounds: int = ROUNDS,
    patience_s: float = PATIENCE_S,
    clock: Clock = time.perf_counter,
) -> dict[int, float]:
    """Return the milliseconds of verifying each of ``widths`` positions behind ``cached`` tokens.

    The cache is not computed: attention takes as long whatever is in it. Widths take turns, and of
    each the fastest run counts, since other work on the machine only ever adds.

    Args:
        rounds: passes over every width at most.

    Raises:
        SettingsError: these weights do not verify drafts.
        InvalidRequest: there is no memory for such a sequence.
    """
    passes = {width: partial(_score, width) for width in widths}
    times = _time_passes(backend, passes, cached, rounds, patience_s, clock)
    return {width: min(runs) for width, runs in times.items()}


def measure_masks(backend: OnnxBackend, clock: Clock = time.perf_counter) -> tuple[float, float]:
    """Return the milliseconds that masks behind :data:`CACHED` tokens add, and that each adds.

    Both are 0 if no mask drafts. Each pass with masks is compared with the one without that ran
    just before it, because the pace of a machine changes, and the median pair counts. Raises what
    :func:`measure_passes` does.
    """
    if backend.config.adapter != "masks":
        return 0.0, 0.0
    few, many = (_added_ms(backend, verified, masks, clock) for verified, masks in _MASKED)
    each = max((many - few) / (_MASKED[1][1] - _MASKED[0][1]), 0.0)
    return max(few - each * _MASKED[0][1], 0.0), each


def _score(width: int, sequence: OnnxSequence) -> None:
    sequence.score(np.full(width, sequence.tokens[0], np.int64))


def _added_ms(backend: OnnxBackend, verified: int, masks: int, clock: Clock) -> float:
    """Return how many milliseconds longer a pass takes if ``masks`` of its positions are masks."""
    token, width = backend.config.text_ids.start, verified + masks
    tokens = np.full(width, token, np.int64)
    tokens[verified:] = backend.config.mask_token
    sees = np.tril(np.ones((width, width), np.bool_))
    rows = Rows(tokens, CACHED + np.arange(width), sees, tokens, masks)

    def with_masks(sequence: OnnxSequence) -> None:
        guesses = sequence.read(rows).masks
        assert guesses is not None, "something is cached"
        for mask in range(_GUESSED):
            guesses.guess(mask, token)

    passes: dict[int, Pass] = {0: partial(_score, width), 1: with_masks}
    times = _time_passes(backend, passes, CACHED, PAIRS, PATIENCE_S, clock)
    added = [after - before for before, after in zip(times[0], times[1], strict=True)]
    return float(statistics.median(added))


def _time_passes(
    backend: OnnxBackend,
    passes: Mapping[int, Pass],
    cached: int,
    rounds: int,
    patience_s: float,
    clock: Clock,
) -> dict[int, list[float]]:
    """Return the milliseconds of each run of each of ``passes``, which take turns."""
    sequence = backend.open(cached + _ROOM)
    try:
        sequence.pretend([backend.config.text_ids.start] * cached)
        passes[max(passes)](sequence)  # has the memory for a pass ready
        sequence.truncate(cached)
        times: dict[int, list[float]] = {key: [] for key in passes}
        started = clock()
        for _ in range(rounds):
            for key, run in passes.items():
                before = clock()
                run(sequence)
                times[key].append(1e3 * (clock() - before))
                sequence.truncate(cached)
            if clock() - started > patience_s:
                break
        return times
    finally:
        backend.release(sequence)
