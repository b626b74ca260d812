"""Which of the waiting requests comes next, and which have waited too long to be of use.

In the order of their arrival, until more arrive than can be served. From then on the newest comes
first and what has waited for about one computation is sent away: a fresh suggestion for some, and
a clear "not now" for the others, instead of a late one for all. Pure; the clock is the caller's.

Source: adaptive LIFO and controlled delay, B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015.
"""

from __future__ import annotations

from collections import deque
from typing import Generic, TypeVar

T = TypeVar("T")

#: Seconds without a moment in which nobody waits, after which more arrive than can be served; at
#: least so many computations.
STRAINED_S, STRAINED_COMPUTATIONS = 0.5, 3.0
#: So many that wait at once are such a sign too: the windows of one person never are.
CROWD = 6
#: Seconds after the last such sign in which that still counts as being the case.
RELIEVED_S = 10.0
#: Seconds that anybody waits at most: the language server gives up by then.
PATIENCE_S = 10.0
#: Seconds that a request may wait in any case; timers are no finer under load.
LEAST_PATIENCE_S = 0.05


class Waiting(Generic[T]):
    """A bounded queue.

    Args:
        length: how many may wait.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._jobs: deque[tuple[float, T]] = deque()  # since when, oldest first
        self._crowded_s = 0.0  # since when somebody has been waiting all the time
        self._overrun_s = float("-inf")  # when somebody was last sent away, or a crowd stood here

    def __len__(self) -> int:
        return len(self._jobs)

    def add(self, job: T, now_s: float) -> bool:
        """Whether there was room."""
        if len(self._jobs) >= self.length:
            self._overrun_s = now_s
            return False
        if not self._jobs:
            self._crowded_s = now_s
        self._jobs.append((now_s, job))
        if len(self._jobs) >= CROWD:
            self._overrun_s = now_s
        return True

    def remove(self, job: T) -> None:
        """Nobody waits for it any more; it may be gone already."""
        self._jobs = deque(one for one in self._jobs if one[1] != job)

    def is_strained(self, now_s: float, computation_s: float) -> bool:
        """Do more arrive than can be served?

        Args:
            computation_s: how long one takes, in the mean.
        """
        if now_s - self._overrun_s < RELIEVED_S:
            return True
        long_s = max(STRAINED_S, STRAINED_COMPUTATIONS * computation_s)
        return bool(self._jobs) and now_s - self._crowded_s > long_s

    def take(self, now_s: float, computation_s: float) -> T:
        """The next one. There must be one."""
        newest = self.is_strained(now_s, computation_s)
        return (self._jobs.pop() if newest else self._jobs.popleft())[1]

    def take_stale(self, now_s: float, computation_s: float) -> list[T]:
        """Those that have waited too long, oldest first. Under strain never the newest: nobody
        would be better off if nothing were computed."""
        patience_s, kept = PATIENCE_S, 0
        if self.is_strained(now_s, computation_s):
            patience_s, kept = max(computation_s, LEAST_PATIENCE_S), 1
        stale = []
        while len(self._jobs) > kept and now_s - self._jobs[0][0] > patience_s:
            stale.append(self._jobs.popleft()[1])
        if stale:
            self._overrun_s = now_s
        return stale

    def take_all(self) -> list[T]:
        """All of them, oldest first."""
        jobs = [job for _, job in self._jobs]
        self._jobs.clear()
        return jobs
