"""The context budget "auto": how many prompt tokens this machine reads in a second and a half.

A short calibration at load measures how long a chunk of prefill takes and how much slower it gets
as the cache grows; the result is kept in a small file, one entry per model, variant, provider and
processor. Other programs can only make a machine look slower than it is, so the fastest measurement
counts: each start runs a single chunk to see whether the noted one was taken under load. Knows
nothing of prompts, and imports no runtime.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from ..runtime.backend import CHUNK, Backend
from ..runtime.kv_memory import SIZE_CLASSES, size_class
from ..runtime.machine import processor
from ..weights.files import write_notes

#: The budgets to choose from, in tokens.
CHOICES = (1_024, 2_048, 4_096, 8_192, 16_384, 32_768)
#: How long a prompt of the whole budget may take to prefill into an empty cache.
COLD_PREFILL_S = 1.5

_MEASURED_CHUNKS = 3  # the fewest that tell growth from noise; under a second on two cores
#: A chunk that takes less than this share of the time noted shows that the note is pessimistic.
_CLEARLY_FASTER = 0.9
_TYPICAL = 2_048  # tokens at which two measurements are compared


@dataclass(frozen=True, slots=True)
class PrefillSpeed:
    """Prefill time as a line: attention makes a token dearer with every token before it."""

    token_s: float  # seconds per token behind an empty cache
    growth_s: float  # further seconds per token for each token before it

    def cold_seconds(self, tokens: int) -> float:
        """Time to prefill ``tokens`` into an empty cache."""
        return self.token_s * tokens + self.growth_s * tokens * tokens / 2


def pick_budget(speed: PrefillSpeed, memory_tokens: int = SIZE_CLASSES[-1]) -> int:
    """The largest choice that is read in time and whose buffer, with room for the answer, holds no
    more than ``memory_tokens``; else the smallest."""
    fitting = (
        choice
        for choice in CHOICES
        if size_class(choice + 1) <= memory_tokens and speed.cold_seconds(choice) <= COLD_PREFILL_S
    )
    return max(fitting, default=CHOICES[0])


def measure(backend: Backend, clock: Callable[[], float]) -> PrefillSpeed:
    """Time a few chunks of prefill; the backend must have run before, so that nothing is cold."""
    return fit(_time_chunks(backend, clock, _MEASURED_CHUNKS))


def _time_chunks(backend: Backend, clock: Callable[[], float], count: int) -> list[float]:
    """Seconds per token of each of ``count`` chunks, one behind the other."""
    sequence = backend.open(_MEASURED_CHUNKS * CHUNK + backend.config.canvas_width)
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


def fit(seconds_per_token: list[float]) -> PrefillSpeed:
    """The line through the chunks' times, in the order they were run."""
    middles = (np.arange(len(seconds_per_token)) + 0.5) * CHUNK  # tokens cached at mid-chunk
    times = np.asarray(seconds_per_token)
    spread = middles - middles.mean()
    growth = max(0.0, float((spread * (times - times.mean())).sum() / (spread**2).sum()))
    return PrefillSpeed(max(0.0, float(times.mean() - growth * middles.mean())), growth)


def best_known(
    backend: Backend, model: str, file: Path, threads: int, clock: Callable[[], float]
) -> PrefillSpeed:
    """The fastest speed seen for this combination, noted in ``file``.

    Without a note it is measured now. With one, a single chunk is timed (a third of the work), and
    all of it measured again only where that chunk was clearly faster than the note says.
    A file that cannot be read or written only means that the next start measures again.
    """
    key = f"{model} {backend.variant} {backend.provider} {threads} {processor()}"
    known = _read(file)
    noted_speed = known.get(key)
    if noted_speed is not None:
        (now_s,) = _time_chunks(backend, clock, 1)
        if now_s * CHUNK >= _CLEARLY_FASTER * noted_speed.cold_seconds(CHUNK):
            return noted_speed
    speed = measure(backend, clock)
    if noted_speed is not None:
        speed = min(speed, noted_speed, key=lambda each: each.cold_seconds(_TYPICAL))
    known[key] = speed
    write_notes(file, {name: asdict(value) for name, value in known.items()})
    return speed


def _read(file: Path) -> dict[str, PrefillSpeed]:
    try:
        data = json.loads(file.read_text("utf-8"))
        speeds = {
            str(name): PrefillSpeed(float(value["token_s"]), float(value["growth_s"]))
            for name, value in data.items()
        }
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return {}
    return {n: s for n, s in speeds.items() if s.token_s >= 0 and s.growth_s >= 0}
