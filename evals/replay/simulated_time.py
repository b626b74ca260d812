"""Time that passes only when somebody waits: an asyncio loop whose clock jumps to the next timer.

Code that debounces, times out and waits its turn runs in it unchanged, and a session of an hour in
as long as its computations take. What blocks (a model in another thread, a request) takes no
simulated time at all; whoever knows how long it took sleeps for that. Knows nothing of what runs.
"""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Begins at 0 s. ``time`` is the simulated clock."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Jumping(self._advance))

    def time(self) -> float:
        return self._now

    def _advance(self, seconds: float) -> None:
        """A little further than asked: a timer of this very moment is due only then, and after a
        simulated year the loop's own tolerance of a nanosecond is lost in rounding."""
        self._now = math.nextafter(self._now + seconds, math.inf)


class _Jumping(selectors.SelectSelector):
    """Never sleeps through a timer: it tells that the time is over at once."""

    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:  # no timer: only another thread can go on
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self._advance(timeout)
        return ready


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Like ``asyncio.run``, in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
