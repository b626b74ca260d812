"""The queue of an engine: which waiting request is next, and which have waited too long.

Requests are served in the order of their arrival, until more arrive than can be served. Then the
newest is served first, and a request that has waited for about one computation is refused: some get
a fresh suggestion and the others a clear refusal, instead of a late answer for all.

Requests that only read ahead wait apart, until there is no other. They count nowhere.

Source: adaptive LIFO and controlled delay, B. Maurer, "Fail at Scale", ACM Queue 13(8), 2015.
"""

from __future__ import annotations

import contextlib
from collections import deque
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

from .records import EditRequest, Prediction, StepCallback

T = TypeVar("T")

#: The queue is strained after so many seconds without an empty moment, or so many computations.
STRAINED_S, STRAINED_COMPUTATIONS = 0.5, 3.0
#: So many waiting requests are a sign of strain too: the windows of one person never are.
CROWD = 6
#: Seconds for which a sign of strain counts.
RELIEVED_S = 10.0
#: Seconds after which every request is refused: the language server gives up by then.
PATIENCE_S = 10.0
#: Seconds that a request may wait in any case; timers are no finer under load.
LEAST_PATIENCE_S = 0.05


@dataclass(eq=False, slots=True)
class EngineJob:
    """A request on its way through the worker; cancelling ``answer`` cancels it."""

    request: EditRequest
    on_step: StepCallback | None
    queued_s: float  # on the engine's clock
    answer: Future[Prediction] = field(default_factory=Future)

    @property
    def reads_ahead(self) -> bool:
        """Return whether it gives way to every other request."""
        return bool(self.request.read_ahead)

    def interrupts(self, other: EngineJob) -> bool:
        """Return whether the pass that reads ahead for ``other`` is of no use to this request."""
        request = replace(self.request, read_ahead=other.request.read_ahead)
        return other.reads_ahead and not self.reads_ahead and request != other.request

    def resolve(self, result: Prediction | Exception) -> None:
        """Set the answer, unless the caller has left."""
        with contextlib.suppress(InvalidStateError):
            if isinstance(result, Exception):
                self.answer.set_exception(result)
            else:
                self.answer.set_result(result)


class Queue(Generic[T]):
    """A bounded queue; the caller passes the time, in seconds.

    Args:
        length: how many requests may wait or be computed.
    """

    def __init__(self, length: int) -> None:
        self.length = length
        self._waiting: deque[tuple[float, T]] = deque()  # since when, oldest first
        self._ahead: deque[T] = deque()  # for idle moments, oldest first
        self._crowded_s = 0.0  # since when the queue was never empty
        self._overrun_s = float("-inf")  # of the last refusal or crowd

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, item: T, now_s: float, computing: int = 0) -> bool:
        """Append ``item``; return whether there was room.

        Args:
            computing: requests that were taken and are computed.
        """
        if len(self._waiting) + computing >= self.length:
            self._overrun_s = now_s
            return False
        if not self._waiting:
            self._crowded_s = now_s
        self._waiting.append((now_s, item))
        if len(self._waiting) >= CROWD:
            self._overrun_s = now_s
        return True

    def add_ahead(self, item: T) -> bool:
        """Append ``item`` to what is done in idle moments; return whether there was room."""
        if len(self._ahead) >= self.length:
            return False
        self._ahead.append(item)
        return True

    def put_back(self, item: T) -> None:
        """Put back what was interrupted in an idle moment; it goes on first."""
        self._ahead.appendleft(item)

    def has_any(self) -> bool:
        """Return whether :meth:`take` has something to return."""
        return bool(self._waiting or self._ahead)

    def remove(self, item: T) -> None:
        """Remove ``item`` if it still waits."""
        self._waiting = deque(entry for entry in self._waiting if entry[1] != item)
        self._ahead = deque(each for each in self._ahead if each != item)

    def is_strained(self, now_s: float, computation_s: float) -> bool:
        """Return whether more requests arrive than can be served.

        Args:
            computation_s: mean time of a computation.
        """
        if now_s - self._overrun_s < RELIEVED_S:
            return True
        long_s = max(STRAINED_S, STRAINED_COMPUTATIONS * computation_s)
        return bool(self._waiting) and now_s - self._crowded_s > long_s

    def take(self, now_s: float, computation_s: float) -> T:
        """Remove and return the next request; there must be one."""
        if not self._waiting:
            return self._ahead.popleft()
        is_strained = self.is_strained(now_s, computation_s)
        return (self._waiting.pop() if is_strained else self._waiting.popleft())[1]

    def take_stale(self, now_s: float, computation_s: float) -> list[T]:
        """Remove and return the requests that have waited too long, oldest first.

        Under strain the newest stays for as long as without: refusing it would help no other.
        """
        patience_s = PATIENCE_S
        if self.is_strained(now_s, computation_s):
            patience_s = max(computation_s, LEAST_PATIENCE_S)
        stale = []
        while self._waiting:
            limit_s = patience_s if len(self._waiting) > 1 else PATIENCE_S
            if now_s - self._waiting[0][0] <= limit_s:
                break
            stale.append(self._waiting.popleft()[1])
        if stale:
            self._overrun_s = now_s
        return stale

    def take_all(self) -> list[T]:
        """Remove and return all requests, oldest first."""
        items = [item for _, item in self._waiting] + [*self._ahead]
        self._waiting.clear()
        self._ahead.clear()
        return items
