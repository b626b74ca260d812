"""How many machines so many developers need: a simulation of engines and of those who ask them.

Fed by what was measured: when people typed (recordings) and how long answers took. A developer asks
after each pause in typing, and a newer question takes the place of an older one that still waits. A
session stays with its engine, so engines know nothing of each other: one is simulated with more and
more developers until it is too slow, and the number of engines follows, with room for what
consistent hashing does not spread evenly. Discrete events; pure; every figure is *simulated*.
"""

from __future__ import annotations

import bisect
import heapq
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from ..figures.spread import Spread
from ..recordings.format import Stream

#: Seconds without a change after which nobody is at work; such a gap is as long as this one.
AWAY_S = 60.0
#: Seconds for which somebody is at work, in the mean; exponentially distributed. Assumed.
AT_WORK_S = 900.0
#: Places of one engine on the ring, as nginx has it (160) and Ray Serve (100).
VIRTUAL = 100
_Z95 = NormalDist().inv_cdf(0.95)
_QUANTILES = 1_000  # that a distribution is told by


@dataclass(frozen=True, slots=True)
class TypingTimes:
    """When somebody asks while they type."""

    asks_s: tuple[float, ...]  # since the beginning, ascending
    length_s: float

    @property
    def per_minute(self) -> float:
        return 60 * len(self.asks_s) / self.length_s if self.length_s else 0.0


def typing_of(streams: Sequence[Stream], pause_s: float) -> TypingTimes:
    """The moments at which a recording pauses for so long after a change that was typed."""
    asks, now = [], 0.0
    for stream in streams:
        times = [change.time_ms / 1e3 for change in stream.changes if change.is_typed]
        for this, following in zip(times, [*times[1:], float("inf")], strict=False):
            gap = min(following - this, AWAY_S)
            if gap >= pause_s:
                asks.append(now + pause_s)
            now += gap
    return TypingTimes(tuple(asks), now)


@dataclass(frozen=True, slots=True)
class Load:
    """What an engine with so many developers comes to. Simulated."""

    developers: int
    asked: int
    answered: int
    replaced: int  # by a newer question before their turn came
    wait_ms: Spread  # in the queue
    total_ms: Spread  # until the answer
    busy: float  # share of the time that the engine computes, 0 … 1


@dataclass(frozen=True, slots=True)
class FleetEngine:
    """What computes.

    Args:
        latencies_ms: measured answers of one engine that is asked by one developer at a time.
        miss_ms: what reading a prompt costs that is not in the cache any more.
        sessions: developers whose prompts the cache holds.
    """

    latencies_ms: tuple[float, ...]
    miss_ms: float = 0.0
    sessions: int = 10**9


def simulate(
    typing: TypingTimes,
    engine: FleetEngine,
    developers: int,
    active: float,
    hours: float,
    seed: int,
) -> Load:
    """One engine and those pinned to it.

    Args:
        active: share of the developers who type at a moment, 0 … 1.
    """
    chance = random.Random(f"{seed}:{developers}")
    until = 3600 * hours
    asks = _asks(typing, developers, active, until, chance)
    serving = _Serving(engine, chance)
    for at, who in asks:
        serving.serve(at)
        serving.ask(who, at)
    serving.serve(math.inf)
    return Load(
        developers=developers,
        asked=len(asks),
        answered=len(serving.totals_ms),
        replaced=serving.replaced,
        wait_ms=Spread.of(serving.waits_ms),
        total_ms=Spread.of(serving.totals_ms),
        busy=serving.busy_s / max(until, serving.free_s),
    )


@dataclass(slots=True)
class _Serving:
    """An engine at work: one question at a time, in the order in which they came."""

    engine: FleetEngine
    chance: random.Random
    free_s: float = 0.0  # when it has answered
    busy_s: float = 0.0
    replaced: int = 0
    waits_ms: list[float] = field(default_factory=list)
    totals_ms: list[float] = field(default_factory=list)
    _waiting: dict[int, float] = field(default_factory=dict)  # who, in order, and since when
    _recent: dict[int, None] = field(default_factory=dict)  # whose prompts are cached, oldest first

    def ask(self, who: int, at_s: float) -> None:
        """A newer question of somebody takes the place of the one that waits."""
        self.replaced += self._waiting.pop(who, None) is not None
        self._waiting[who] = at_s

    def serve(self, before_s: float) -> None:
        """Answer all whose turn comes before a moment."""
        while self._waiting:
            who, since_s = next(iter(self._waiting.items()))
            began_s = max(self.free_s, since_s)
            if began_s >= before_s:
                return
            del self._waiting[who]
            took_s = self._takes_s(who)
            self.free_s, self.busy_s = began_s + took_s, self.busy_s + took_s
            self.waits_ms.append(1e3 * (began_s - since_s))
            self.totals_ms.append(1e3 * (self.free_s - since_s))

    def _takes_s(self, who: int) -> float:
        took_ms = self.chance.choice(self.engine.latencies_ms)
        if who not in self._recent:
            took_ms += self.engine.miss_ms
        self._recent.pop(who, None)
        self._recent[who] = None
        if len(self._recent) > self.engine.sessions:
            del self._recent[next(iter(self._recent))]
        return took_ms / 1e3


def _asks(
    typing: TypingTimes, developers: int, active: float, until: float, chance: random.Random
) -> list[tuple[float, int]]:
    """When who asks: each comes and goes, and while there lives the recording from some moment on.
    So sometimes more are at work than usually, which is what makes others wait."""
    found = [
        [(ask, who) for ask in _asks_of_one(typing, active, until, chance)]
        for who in range(developers)
    ]
    return list(heapq.merge(*found))


def _asks_of_one(
    typing: TypingTimes, active: float, until: float, chance: random.Random
) -> Iterator[float]:
    at_work, now = chance.random() < active, 0.0
    rest_s = AT_WORK_S * (1 - active) / active
    while now < until:
        if active >= 1:
            ends = until
        else:
            ends = min(now + chance.expovariate(1 / (AT_WORK_S if at_work else rest_s)), until)
        if at_work:
            start = chance.random() * typing.length_s
            turn, first = now - start, bisect.bisect(typing.asks_s, start)
            while turn < ends:
                for ask in typing.asks_s[first:]:
                    if ask + turn >= ends:
                        break
                    yield ask + turn
                turn, first = turn + typing.length_s, 0
        now, at_work = ends, not at_work


def most_developers(
    typing: TypingTimes, engine: FleetEngine, active: float, p95_ms: float, hours: float, seed: int
) -> Load:
    """The load with the most developers of whom the slowest 5 % of answers take ``p95_ms``."""
    low, high = 1, 2
    best = simulate(typing, engine, low, active, hours, seed)
    while (load := simulate(typing, engine, high, active, hours, seed)).total_ms.p95 <= p95_ms:
        low, high, best = high, 2 * high, load
    while high - low > max(1, low // 20):
        middle = (low + high) // 2
        load = simulate(typing, engine, middle, active, hours, seed)
        if load.total_ms.p95 <= p95_ms:
            low, best = middle, load
        else:
            high = middle
    return best


def unevenness(sessions: int, engines: int, seed: int) -> float:
    """How many times its even share an engine has under consistent hashing, the fullest left out
    that have 5 % of the sessions. Hashes are as good as random numbers."""
    chance = np.random.default_rng(seed)
    places = chance.random(engines * VIRTUAL)
    order = np.argsort(places)
    found = np.searchsorted(places[order], chance.random(sessions)) % len(places)
    held = np.sort(np.bincount(order[found] // VIRTUAL, minlength=engines))
    within = held[np.searchsorted(np.cumsum(held), 0.95 * sessions)]
    return float(within * engines / sessions)


def engines_for(developers: int, each: int, seed: int) -> tuple[int, float]:
    """Engines so that 95 % of the developers are at one with ``each`` at most, and how uneven that
    is."""
    engines = max(1, -(-developers // each))
    while True:
        uneven = unevenness(developers, engines, seed)
        if developers / engines * uneven <= each or engines >= developers:
            return engines, uneven
        engines += max(1, engines // 20)


def latencies(p50_ms: float, p95_ms: float) -> tuple[float, ...]:
    """A log-normal distribution through a measured median and 95th percentile, as its quantiles."""
    normal = NormalDist(math.log(p50_ms), max(math.log(p95_ms / p50_ms), 1e-9) / _Z95)
    return tuple(math.exp(normal.inv_cdf((n + 0.5) / _QUANTILES)) for n in range(_QUANTILES))
