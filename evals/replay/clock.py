"""Simulated time: an event loop that jumps to its next timer, and a clock that is set by hand."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, TypeVar

Result = TypeVar("Result")


@dataclass(slots=True)
class SetClock:
    """A clock that stands still until it is set."""

    now_s: float = 1_000.0

    def __call__(self) -> float:
        return self.now_s


class SimulatedLoop(asyncio.SelectorEventLoop):
    """Event loop that begins at 0 s of the simulated clock."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Jumping(self._advance))

    def time(self) -> float:
        """Return the simulated time, in seconds."""
        return self._now

    def _advance(self, seconds: float) -> None:
        """Advance the clock a little further than asked.

        A timer of this very moment is due only then, and after a simulated year the loop's
        tolerance of a nanosecond is lost in rounding.
        """
        self._now = math.nextafter(self._now + seconds, math.inf)


class _Jumping(selectors.SelectSelector):
    """Selector that never sleeps until a timer, but advances the clock."""

    def __init__(self, advance: Callable[[float], None]) -> None:
        super().__init__()
        self._advance = advance

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:  # no timer: only another thread can continue
            return super().select(None)
        ready = super().select(0)
        if not ready:
            self._advance(timeout)
        return ready


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine like ``asyncio.run``, in simulated time."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        return runner.run(main)
