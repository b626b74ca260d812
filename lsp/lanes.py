"""One question at a time per document: one running, one waiting, the waiting one replaced.

Knows asyncio and nothing of what is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

Result = TypeVar("Result")

#: Seconds a cancelled question gets to stop before the next one starts regardless.
_GRACE_S = 2.0


class Superseded(Exception):
    """A newer question took this one's place, or the document was closed."""


class Lane:
    """The questions of one document."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()  # the running one, and cancelled ones ending

    async def turn(self, delay_s: float) -> None:
        """Wait for ``delay_s``, in place of whoever waits here already.

        Raises:
            Superseded: a newer one came meanwhile.
        """
        self._replace_waiting()
        loop = asyncio.get_running_loop()
        waiting = self._waiting = loop.create_future()
        timer = loop.call_later(delay_s, _wake, waiting)
        try:
            await waiting
        finally:
            timer.cancel()
            if self._waiting is waiting:
                self._waiting = None

    async def run(self, work: Callable[[], Awaitable[Result]], timeout_s: float) -> Result:
        """Stop what runs here, then run ``work``.

        Raises:
            Superseded: it was stopped for a newer one.
            TimeoutError: it took longer than ``timeout_s`` and was stopped.
        """
        earlier = frozenset(self._tasks)
        task = asyncio.ensure_future(_after(earlier, work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        for one in earlier:
            one.cancel()
        try:
            return await asyncio.wait_for(task, timeout_s)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise  # the client cancelled this very request
            raise Superseded from None

    def stop(self) -> None:
        """Stop whatever runs or waits here."""
        self._replace_waiting()
        for task in self._tasks:
            task.cancel()

    def _replace_waiting(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Superseded())


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _after(
    earlier: frozenset[asyncio.Task[Any]], work: Callable[[], Awaitable[Result]]
) -> Result:
    """``work``, once the cancelled ones have let go of the model."""
    if earlier:
        await asyncio.wait(earlier, timeout=_GRACE_S)
    return await work()
