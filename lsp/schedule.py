"""Order of the requests of one client: the newest wins, and ghost text goes first."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Literal, NamedTuple, TypeVar

from redraft.model.records import Task

from .policy.machine_load import CALM_S
from .policy.pace import Debounce
from .snapshot import Snapshot
from .suggestions.outcomes import SuggestionEnded

#: Seconds without a key that end the typing of a line: more than there mostly are between two keys.
TYPING_ENDS_S = 0.3
#: Seconds without a key that end a deletion: a key held down repeats after about half a second.
DELETED_S = 0.7
#: Seconds in which the request that follows an acceptance comes.
ACCEPTED_S = 0.2
_LATENCY_WEIGHT = 0.3  # of the newest answer in the running mean

T = TypeVar("T")
Kind = Literal["infill", "next_edit", "prefetch"]


class Superseded(Exception):
    """A newer request took this one's place, or its document was closed."""


class _Slot(NamedTuple):
    uri: str
    kind: Kind
    runs: bool  # False: it waits for its turn


class Latest:
    """Run at most one request of each kind per document, and let one more wait.

    A new request replaces the waiting one at once. It cancels the running one only when it starts
    to run itself, because an answer that arrives before may still be shown. Ghost text cancels
    next edits of its document. Both cancel prefetches, except one with the same key: they join it.
    """

    def __init__(self) -> None:
        self._tasks: dict[_Slot, tuple[Hashable, asyncio.Future[Any]]] = {}

    async def turn(self, uri: str, kind: Kind, delay_s: float) -> None:
        """Wait out the debounce; a next edit also waits until no ghost text is under way.

        Raises:
            Superseded: a newer request of this kind came for the document.
        """
        await self._only(_Slot(uri, kind, False), None, self._ready(uri, kind, delay_s))

    async def run(
        self, uri: str, kind: Kind, key: Hashable, work: Callable[[], Awaitable[T]], limit_s: float
    ) -> T:
        """Await ``work()``, or join the prefetch that runs under the same key.

        Raises:
            Superseded: a newer request cancelled it.
            TimeoutError: it took longer than ``limit_s``.
        """
        prefetch = self._take_prefetch(key)
        for slot in [slot for slot in self._tasks if _yields(slot, uri, kind)]:
            self._cancel(slot)

        async def run_in_time() -> T:
            async with asyncio.timeout(limit_s):
                return await work()

        return await self._only(_Slot(uri, kind, True), key, prefetch or run_in_time())

    def cancel(self, uri: str, *kinds: Kind) -> None:
        """Cancel the requests of a document: those of ``kinds``, or all."""
        for slot in [slot for slot in self._tasks if slot.uri == uri]:
            if not kinds or slot.kind in kinds:
                self._cancel(slot)

    async def _only(self, slot: _Slot, key: Hashable, work: Awaitable[T]) -> T:
        """Await ``work`` in place of what its slot holds."""
        self._cancel(slot)
        task = asyncio.ensure_future(work)
        self._tasks[slot] = key, task
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise  # the client cancelled this very request
            raise Superseded from None
        finally:
            if self._tasks.get(slot, (None, None))[1] is task:
                del self._tasks[slot]

    async def _ready(self, uri: str, kind: Kind, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        while kind == "next_edit" and (ghosts := self._ghosts(uri)):
            await asyncio.wait(ghosts)
            await asyncio.sleep(0)  # its request goes on: from waiting to running

    def _ghosts(self, uri: str) -> list[asyncio.Future[Any]]:
        """Return what waits or runs for the ghost text of a document."""
        return [task for slot, (_, task) in self._tasks.items() if slot[:2] == (uri, "infill")]

    def _cancel(self, slot: _Slot) -> None:
        if slot in self._tasks:
            self._tasks.pop(slot)[1].cancel()

    def _take_prefetch(self, key: Hashable) -> asyncio.Future[Any] | None:
        for slot, (known, task) in self._tasks.items():
            if slot.kind == "prefetch" and slot.runs and known == key and not task.done():
                return self._tasks.pop(slot)[1]
        return None


def _yields(slot: _Slot, uri: str, kind: Kind) -> bool:
    """Return whether what runs in ``slot`` is cancelled when ``kind`` starts for ``uri``."""
    if not slot.runs:
        return False
    if slot.kind == "prefetch":
        return kind != "prefetch"
    return slot.uri == uri and slot.kind == "next_edit" and kind == "infill"


class Schedule:
    """Times at which the model is asked: the debounce, which adapts to outcomes and to the model.

    Args:
        clock: reads seconds and never goes back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self.latest, self.debounce = Latest(), Debounce()
        self._clock = clock
        self._latency_ms: dict[Task, float] = {}  # running means

    async def turn(self, snapshot: Snapshot, task: Task) -> float:
        """Wait out the debounce before the model is asked; return its seconds.

        Raises:
            Superseded: a newer request took the place of this one.
        """
        wait_s, kind = self.delay_s(snapshot, task), _KINDS[task]
        await self.latest.turn(snapshot.uri, kind, wait_s)
        return wait_s

    async def until_typed(self, snapshot: Snapshot) -> None:
        """Wait until no key has come in the cursor's line for a while, however it was typed.

        Raises:
            Superseded: a newer request took the place of this one.
        """
        last = snapshot.edits.last_edit(snapshot.uri)
        is_typed = snapshot.edits.last_change(snapshot.uri) == "edit"
        if snapshot.is_invoked or last is None or not is_typed or last[1] != snapshot.line:
            return
        if (wait_s := last[0] + TYPING_ENDS_S - self._clock()) > 0:
            await self.latest.turn(snapshot.uri, "next_edit", wait_s)

    def delay_s(self, snapshot: Snapshot, task: Task) -> float:
        """Return how long to wait before the model is asked.

        Ghost text waits until a deletion is over, next edits until a line is no longer typed in.
        What follows an acceptance does not wait: the user goes through a series of edits.
        """
        if snapshot.is_invoked:
            return 0.0
        if snapshot.load.effort == "calm":
            since_s = snapshot.since_edit_s
            return 0.0 if since_s is None else max(0.0, CALM_S - since_s)
        if task == "next_edit" and has_just_accepted(snapshot):
            return 0.0
        now_s, settings = snapshot.at_s, snapshot.settings
        wait_s = self.debounce.delay_ms(settings.delay_ms, self.latency_ms(task), now_s) / 1000
        if task == "infill":
            return max(wait_s, seconds_deleting(snapshot))
        typed_s = snapshot.typed_at_s
        return wait_s if typed_s is None else max(wait_s, typed_s + TYPING_ENDS_S - now_s)

    def latency_ms(self, task: Task) -> float:
        """Return the mean time of an answer, 0 while none came."""
        return self._latency_ms.get(task, 0.0)

    def took(self, task: Task, took_ms: float) -> None:
        """Count the time of an answer."""
        known_ms = self._latency_ms.get(task, took_ms)
        self._latency_ms[task] = known_ms + _LATENCY_WEIGHT * (took_ms - known_ms)

    def learn(self, ended: SuggestionEnded) -> None:
        """Adapt the debounce to an outcome."""
        self.debounce.note(ended.outcome, self._clock())


_KINDS: dict[Task, Kind] = {"infill": "infill", "next_edit": "next_edit"}


def has_just_accepted(snapshot: Snapshot) -> bool:
    """Return whether the last change of the document is a suggestion that was accepted just now."""
    last = snapshot.edits.last_edit(snapshot.uri)
    is_accepted = snapshot.edits.last_change(snapshot.uri) == "accepted"
    return is_accepted and last is not None and snapshot.at_s - last[0] < ACCEPTED_S


def seconds_deleting(snapshot: Snapshot) -> float:
    """Return the seconds until the user is taken to have ended a deletion, 0 for none."""
    last = snapshot.edits.last_edit(snapshot.uri)
    if snapshot.is_invoked or last is None or not snapshot.edits.is_deleting(snapshot.uri):
        return 0.0
    return max(0.0, last[0] + DELETED_S - snapshot.at_s)
