"""Reading ahead: the engine reads the prompt of the next question before it is asked.

The engine does so only while no request needs it, and writes nothing. It is asked for what stays
while a line is typed, for the whole prompt in a pause, and at rest for what the first key asks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Coroutine
from dataclasses import replace
from itertools import islice

from redraft.model.edits.edit import LineChange
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest, ReadPart, RecentEdit

from .documents.history_edits import as_shown, hunks_of_span
from .edit_places import question_at_cursor, questions
from .predictions import Predictions
from .question import below_typed, infill
from .schedule import Schedule
from .snapshot import Snapshot
from .workspace import Workspace

#: Seconds without a move after which a cursor rests.
RESTS_S = 0.2
#: Share of the wait for a next edit after which its whole prompt is read. Most keys come before,
#: and make the end of the prompt useless: with 0.5 it took half of the engine's time while a line
#: was typed. A pass (64 tokens) that the question needs is finished.
PAUSE = 0.8
#: Keys after which that is tried again, once a key came while it was read.
_AFTER_VAIN = 8
#: Places asked about in a pause: the first one and the one behind it.
_PLACES = 2
_KNOWN = 4  # prompts that are not sent again: so many are kept by the engine


class ReadAhead:
    """Reading ahead for one client; a newer place takes the place of an older one."""

    def __init__(self, workspace: Workspace, predictions: Predictions, schedule: Schedule) -> None:
        self._workspace, self._predictions, self._schedule = workspace, predictions, schedule
        self._task: asyncio.Task[None] | None = None
        self._key: object = None  # of the prompt that is read
        self._reading: asyncio.Future[None] | None = None
        self._known: deque[object] = deque(maxlen=_KNOWN)
        self._skips = 0  # keys in whose pause no whole prompt is read
        self._place = "", (0, 0)  # document and lines for which what stays was read last

    def wait(self, snapshot: Snapshot, wait_s: float) -> None:
        """Read for a question about the next edit that is asked in ``wait_s`` seconds."""
        self._start(snapshot, self._while_waiting(snapshot, wait_s))

    def rest(self, snapshot: Snapshot) -> None:
        """Read for the first key at a place where nothing is asked yet."""
        self._start(snapshot, self._at_rest(snapshot))

    def stop(self) -> None:
        """End what is under way."""
        for each in (self._task, self._reading):
            if each is not None:
                each.cancel()
        self._task = self._reading = None

    def _start(self, snapshot: Snapshot, work: Coroutine[None, None, None]) -> None:
        if isinstance(self._key, EditRequest):
            if self._reading is not None and not self._reading.done():
                self._skips = _AFTER_VAIN
            self.stop()
        elif self._task is not None:
            self._task.cancel()  # what stays while a line is typed is read on
        is_wanted = snapshot.settings.prefetch and snapshot.load.effort == "full"
        if self._workspace.reads_ahead and is_wanted and not snapshot.is_invoked:
            self._task = asyncio.ensure_future(work)
        else:
            work.close()

    async def _while_waiting(self, snapshot: Snapshot, wait_s: float) -> None:
        clock = asyncio.get_running_loop().time
        pause_s, is_skipped = clock() + PAUSE * wait_s, self._skips > 0
        self._skips = max(0, self._skips - 1)
        uri, (first, last) = self._place
        if snapshot.uri != uri or not first <= snapshot.line < last:  # else no key looks for it
            (request,) = self._requests(snapshot, 1)
            self._place = snapshot.uri, request.region or (0, 0)
            await self._read(request, "stable")
        if is_skipped:
            return
        await asyncio.sleep(pause_s - clock())
        now = self._current(snapshot)
        for each in self._requests(now, _PLACES) if now is not None else ():
            await self._read(each, "all")

    def _requests(self, snapshot: Snapshot, most: int) -> list[EditRequest]:
        """Return what is asked about the first places; takes milliseconds."""
        found = islice(questions(snapshot, self._workspace.context, self._schedule), most)
        return [self._workspace.complete(each).request for each in found]

    async def _at_rest(self, snapshot: Snapshot) -> None:
        await asyncio.sleep(RESTS_S)
        now = self._current(snapshot)
        if now is None:
            return
        if self._schedule.latency_ms("infill"):  # the client asks for ghost text
            await self._read(self._workspace.complete(infill(now)).request, "all")
        own = question_at_cursor(now, self._workspace.context)
        region, request = below_typed(own.bounds, now.line), self._workspace.complete(own).request
        await self._read(replace(request, region=region, edits=_edits_once_typed(now)), "stable")

    def _current(self, snapshot: Snapshot) -> Snapshot | None:
        """Return a snapshot as all is now, None if nothing may be read there any more."""
        now = self._workspace.renew(snapshot)
        return None if isinstance(now, Abstain) or self._workspace.refuse(now) is not None else now

    async def _read(self, request: EditRequest, part: ReadPart) -> None:
        """Let a prompt be read, unless it was lately; go on if it is read just now."""
        stable = request.path, request.region, request.related, request.edits[:-1]
        key = stable if part == "stable" else request
        if key in self._known:
            return
        if self._reading is None or self._reading.done() or key != self._key:
            if self._reading is not None:
                self._reading.cancel()
            self._key, self._reading = key, asyncio.ensure_future(self._send(key, request, part))
        await asyncio.shield(self._reading)

    async def _send(self, key: object, request: EditRequest, part: ReadPart) -> None:
        if await self._predictions.read_ahead(request, part):
            self._known.append(key)


def _edits_once_typed(snapshot: Snapshot) -> tuple[RecentEdit, ...]:
    """Return the recent edits as they are after the first key, which is not known yet."""
    line, lines = snapshot.line, list(snapshot.lines)
    typed = f"{lines[line]}_"
    span, lines[line] = LineChange(line, (lines[line],), (typed,)), typed
    made = as_shown(snapshot.path, hunks_of_span(span, lines), accepted=False)
    return snapshot.edits.after(made).finished
