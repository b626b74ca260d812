"""One question at a time: one running, one waiting, the waiting one replaced.

A document has such a lane for each kind of question. Knows asyncio and nothing of what is asked.
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
    """The questions of one kind about one document."""

    def __init__(self) -> None:
        self._waiting: asyncio.Future[None] | None = None
        self._tasks: set[asyncio.Task[Any]] = set()  # the running one, and cancelled ones ending

    async def turn(self, delay_s: float, first: Lane | None = None) -> None:
        """Wait for ``delay_s``, and until lane ``first`` is idle, in place of whoever waits here
        already.

        Raises:
            Superseded: a newer one came meanwhile.
        """
        self._replace_waiting()
        loop = asyncio.get_running_loop()
        waiting = self._waiting = loop.create_future()
        timer = loop.call_later(delay_s, _wake, waiting)
        try:
            await waiting
            if first is not None:
                waiting = self._waiting = loop.create_future()
                await self._until_idle(first, waiting)
        finally:
            timer.cancel()
            if self._waiting is waiting:
                self._waiting = None

    async def _until_idle(self, lane: Lane, waiting: asyncio.Future[None]) -> None:
        idle = asyncio.ensure_future(lane.idle())
        idle.add_done_callback(lambda _: _wake(waiting))
        try:
            await waiting
        finally:
            idle.cancel()

    async def idle(self) -> None:
        """Wait until nothing runs or waits here."""
        while self._tasks or self._waiting is not None:
            busy: set[asyncio.Future[Any]] = {*self._tasks}
            if self._waiting is not None:
                busy.add(self._waiting)
            await asyncio.wait(busy, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(0)  # whoever was woken first gets to go on

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
        self.interrupt()

    def interrupt(self) -> frozenset[asyncio.Task[Any]]:
        """Stop what runs here, and not what waits. It may take a moment to end."""
        for task in self._tasks:
            task.cancel()
        return frozenset(self._tasks)

    def _replace_waiting(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Superseded())


async def ended(tasks: frozenset[asyncio.Task[Any]]) -> None:
    """Wait until cancelled tasks have let go of the model."""
    if tasks:
        await asyncio.wait(tasks, timeout=_GRACE_S)


def _wake(waiting: asyncio.Future[None]) -> None:
    if not waiting.done():
        waiting.set_result(None)


async def _after(
    earlier: frozenset[asyncio.Task[Any]], work: Callable[[], Awaitable[Result]]
) -> Result:
    """``work``, once the cancelled ones have let go of the model."""
    await ended(earlier)
    return await work()
