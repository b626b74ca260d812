"""What a causal pass costs on this machine, by how many positions it has.

Drafts are judged in the same pass as the token before them, so whether one more of them pays is a
matter of this table and of how often drafts are right. Runs the backend; decides nothing.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from .backend import Rows

if TYPE_CHECKING:
    from .onnx_backend import OnnxBackend
    from .onnx_sequence import OnnxSequence

Pass: TypeAlias = "Callable[[OnnxSequence], Any]"

#: Positions of a pass: one token alone, with one draft, and (k + 1)² for groups of k masks.
WIDTHS = (1, 2, 4, 9, 16, 25)

#: Tokens in the cache meanwhile: a usual prompt.
CACHED = 1_000

#: Measuring begins no further round after this; the first round is always whole.
PATIENCE_S = 0.5
ROUNDS = 5

#: Judged tokens and masks behind them, of what is held against each other: few and many.
_MASKED = ((2, 2), (4, 12))
#: Pairs of passes at most, and guesses that the sampler makes in one.
PAIRS, _GUESSED = 9, 2


def measure_passes(
    backend: OnnxBackend,
    widths: Sequence[int] = WIDTHS,
    cached: int = CACHED,
    rounds: int = ROUNDS,
    patience_s: float = PATIENCE_S,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[int, float]:
    """Milliseconds of judging each of ``widths`` positions behind ``cached`` tokens.

    The cache is not computed: attention takes as long whatever is in it. Widths take turns, and of
    each the fastest run counts, since other work on the machine only ever adds.

    Args:
        rounds: passes over every width at most.
        clock: seconds.

    Raises:
        SettingsError: these weights do not judge.
        InvalidRequest: there is no memory for such a sequence.
    """
    token = backend.config.text_ids.start

    def score(width: int) -> Pass:
        return lambda sequence: sequence.score(np.full(width, token, np.int64))

    passes = {width: score(width) for width in widths}
    times = _times(backend, passes, max(widths), cached, rounds, patience_s, clock)
    return {width: min(taken) for width, taken in times.items()}


@dataclass(frozen=True, slots=True)
class MaskCosts:
    """Milliseconds that masks behind judged tokens add to a pass over as many positions: their own
    adapter, their attention, their many small operators, their sampler."""

    any_ms: float = 0.0  # that there are any
    each_ms: float = 0.0


def measure_masks(
    backend: OnnxBackend, clock: Callable[[], float] = time.perf_counter
) -> MaskCosts:
    """What masks add behind :data:`CACHED` tokens; nothing where no mask drafts. Each pass with
    masks is held against the one without that was run just before it, as a machine changes its
    pace meanwhile, and of all such pairs the middle one counts. Errors as of
    :func:`measure_passes`."""
    if backend.config.adapter != "masks":
        return MaskCosts()
    few, many = (_more_ms(backend, judged, masks, clock) for judged, masks in _MASKED)
    each = max((many - few) / (_MASKED[1][1] - _MASKED[0][1]), 0.0)
    return MaskCosts(max(few - each * _MASKED[0][1], 0.0), each)


def _more_ms(backend: OnnxBackend, judged: int, masks: int, clock: Callable[[], float]) -> float:
    """Milliseconds that a pass takes longer where ``masks`` of its positions are masks."""
    token, width = backend.config.text_ids.start, judged + masks
    tokens = np.full(width, token, np.int64)
    tokens[judged:] = backend.config.mask_token
    sees = np.tril(np.ones((width, width), np.bool_))
    rows = Rows(tokens, CACHED + np.arange(width), sees, tokens, masks)

    def without(sequence: OnnxSequence) -> None:
        sequence.score(np.full(width, token, np.int64))

    def within(sequence: OnnxSequence) -> None:
        guesses = sequence.read(rows).masks
        assert guesses is not None, "something is cached"
        for mask in range(_GUESSED):
            guesses.guess(mask, token)

    times = _times(backend, {0: without, 1: within}, width, CACHED, PAIRS, PATIENCE_S, clock)
    more = [after - before for before, after in zip(times[0], times[1], strict=True)]
    return float(statistics.median(more))


def _times(
    backend: OnnxBackend,
    passes: Mapping[int, Pass],
    widest: int,
    cached: int,
    rounds: int,
    patience_s: float,
    clock: Callable[[], float],
) -> dict[int, list[float]]:
    """Milliseconds of each run of each of ``passes``, which take turns."""
    sequence = backend.open(cached + widest + 2)
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
