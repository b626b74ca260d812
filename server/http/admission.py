"""Whom to let in: as many as there is room for, and under strain no more than are answered soon.

The engine's queue keeps those who got in short of patience (``model/queue.py``). This is
the door before it: while more arrive than can be served, most are told so before their body is
looked at, which costs a tenth of letting them wait for a refusal. Pure; the clock is the caller's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from redraft.model.errors import Overloaded
from redraft.model.queue import RELIEVED_S, STRAINED_COMPUTATIONS, STRAINED_S

#: Weight of the newest computation in the running mean.
SMOOTHING = 0.2
#: Requests that may be under way under strain: one is computed, and of the two that wait the newer
#: is next.
STRAINED_ROOM = 3
#: Seconds that somebody is told to stay away, at least and at most.
LEAST_AWAY_S, MOST_AWAY_S = 1.0, 10.0


class Admission:
    """
    Args:
        most: requests that may be under way.
    """

    def __init__(self, most: int, clock: Callable[[], float]) -> None:
        self._most, self._clock = most, clock
        self.under_way = 0
        self._mean_s = 0.5  # of a computation, until there is a measurement
        self._crowded_s = 0.0  # since when more than one is under way all the time
        self._refused: deque[float] = deque()  # when somebody was sent away, in the last second
        self._refused_s = float("-inf")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """One more is under way.

        Raises:
            Overloaded: there is no room; carries when to come back.
        """
        if self.under_way >= self._most:
            raise self._refusal()
        self.check()
        self.under_way += 1
        if self.under_way == 2:
            self._crowded_s = self._clock()
        try:
            yield
        except Overloaded:  # the engine's queue sent it away
            self._note_refused()
            raise
        finally:
            self.under_way -= 1

    def check(self) -> None:
        """
        Raises:
            Overloaded: whoever came in would be sent away later.
        """
        if self.under_way >= STRAINED_ROOM and self._is_strained():
            raise self._refusal()

    def _refusal(self) -> Overloaded:
        """For somebody who is sent away, with the seconds in which all who were could be served."""
        self._note_refused()
        away_s = self._mean_s * (self.under_way + len(self._refused))
        return Overloaded(
            f"{self.under_way} requests are computed or waiting already, and no more can be "
            "answered in time. Try again in a moment.",
            retry_after_s=min(max(away_s, LEAST_AWAY_S), MOST_AWAY_S),
        )

    def _note_refused(self) -> None:
        now = self._refused_s = self._clock()
        self._refused.append(now)
        while now - self._refused[0] > 1.0:
            self._refused.popleft()

    def computed(self, took_s: float) -> None:
        """One was computed in so many seconds."""
        self._mean_s += SMOOTHING * (max(took_s, 0.0) - self._mean_s)

    def _is_strained(self) -> bool:
        """Do more arrive than can be served? As the engine's queue has it."""
        now = self._clock()
        if now - self._refused_s < RELIEVED_S:
            return True
        return now - self._crowded_s > max(STRAINED_S, STRAINED_COMPUTATIONS * self._mean_s)
