"""What a causal pass costs on this machine, by how many positions it has.

Drafts are judged in the same pass as the token before them, so whether one more of them pays is a
matter of this table and of how often drafts are right. Runs the backend; decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from .onnx_backend import OnnxBackend

#: Positions of a pass: one token alone, with one draft, and (k + 1)² for groups of k masks.
WIDTHS = (1, 2, 4, 9, 16, 25)

#: Tokens in the cache meanwhile: a usual prompt.
CACHED = 1_000

#: Measuring begins no further round after this; the first round is always whole.
PATIENCE_S = 0.5


def measure_passes(
    backend: OnnxBackend,
    widths: Sequence[int] = WIDTHS,
    cached: int = CACHED,
    rounds: int = 5,
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
    sequence = backend.new_sequence(cached + max(widths))
    try:
        token = backend.config.text_ids.start
        sequence.pretend([token] * cached)
        sequence.verify(np.full(max(widths), token, np.int64))  # has the memory for a pass ready
        sequence.truncate(cached)
        fastest: dict[int, float] = {}
        started = clock()
        for _ in range(rounds):
            for width in widths:
                before = clock()
                sequence.verify(np.full(width, token, np.int64))
                took = 1e3 * (clock() - before)
                sequence.truncate(cached)
                fastest[width] = min(took, fastest.get(width, took))
            if clock() - started > patience_s:
                break
        return fastest
    finally:
        backend.release(sequence)
