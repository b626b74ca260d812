"""What a causal pass costs on this machine, by how many positions it has.

Drafts are judged in the same pass as the token before them, so whether one more of them pays is a
matter of this table and of how often drafts are right. Runs the backend; decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

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

    def verify(width: int) -> Pass:
        return lambda sequence: sequence.verify(np.full(width, token, np.int64))

    passes = {width: verify(width) for width in widths}
    return _fastest(backend, passes, max(widths), cached, rounds, patience_s, clock)


@dataclass(frozen=True, slots=True)
class MaskCosts:
    """Milliseconds of a pass over four tokens behind :data:`CACHED` ones, and of one over two
    tokens and two masks: the masks' own adapter, their attention, their many small operators and
    their sampler. Both 0 where no mask drafts."""

    without_ms: float = 0.0
    with_ms: float = 0.0

    @property
    def more_ms(self) -> float:
        """What masks add to a pass, not below 0."""
        return max(self.with_ms - self.without_ms, 0.0)


def measure_masks(backend: OnnxBackend) -> MaskCosts:
    """Both passes, in turns. Errors as of :func:`measure_passes`."""
    if backend.config.adapter != "masks":
        return MaskCosts()
    token, mask = backend.config.text_ids.start, backend.config.mask_token
    row = np.asarray([token, token, mask, mask], np.int64)
    sees = np.tril(np.ones((4, 4), np.bool_))

    def draft(sequence: OnnxSequence) -> None:
        out = sequence.judge(row, np.arange(4), sees, 2)
        assert out.masks is not None, "something is cached"
        out.masks.chain(range(2), token)

    passes: dict[int, Pass] = {
        0: lambda sequence: sequence.verify(np.full(4, token, np.int64)),
        1: draft,
    }
    fastest = _fastest(backend, passes, 6, CACHED, ROUNDS, PATIENCE_S, time.perf_counter)
    return MaskCosts(fastest[0], fastest[1])


def _fastest(
    backend: OnnxBackend,
    passes: Mapping[int, Pass],
    widest: int,
    cached: int,
    rounds: int,
    patience_s: float,
    clock: Callable[[], float],
) -> dict[int, float]:
    """Milliseconds of the fastest run of each of ``passes``, which take turns."""
    sequence = backend.new_sequence(cached + widest)
    try:
        sequence.pretend([backend.config.text_ids.start] * cached)
        passes[max(passes)](sequence)  # has the memory for a pass ready
        sequence.truncate(cached)
        fastest: dict[int, float] = {}
        started = clock()
        for _ in range(rounds):
            for key, run in passes.items():
                before = clock()
                run(sequence)
                took = 1e3 * (clock() - before)
                sequence.truncate(cached)
                fastest[key] = min(took, fastest.get(key, took))
            if clock() - started > patience_s:
                break
        return fastest
    finally:
        backend.release(sequence)
