"""Statistics of a session: what became of its suggestions, as counts.

They are written once a minute and at the end, in a thread. A killed server loses at most the last
minute. A key costs nothing more.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Protocol

from ..documents.uris import code_language
from ..journal import AcceptanceReported, Entry
from ..suggestions.outcomes import SuggestionEnded
from ..suggestions.suggestion import Suggestion
from ..workspace import Workspace
from .counts import (
    CountsRow,
    Ending,
    StatisticsFolder,
    SuggestionCounts,
    day_of,
    language_name,
)
from .statistics_text import statistics_text

logger = logging.getLogger(__name__)

WRITE_S = 60.0  # from the first count to its writing
_REMEMBERED = 20  # suggestions whose outcome a late report can correct


class _Timer(Protocol):
    def cancel(self) -> None: ...


def _later(delay_s: float, callback: Callable[[], object]) -> _Timer:
    return asyncio.get_running_loop().call_later(delay_s, callback)


@dataclass(frozen=True, slots=True)
class _Counted:
    """A suggestion that is in the counts."""

    row: CountsRow
    ending: Ending
    saved: int


class SessionStatistics:
    """Statistics of one client's session.

    Args:
        folder: where they are kept; None: nothing is counted.
        wall_s: returns s since 1970.
        later: calls a function after so many seconds.
    """

    def __init__(
        self,
        folder: StatisticsFolder | None,
        workspace: Workspace,
        *,
        wall_s: Callable[[], float] = time.time,
        later: Callable[[float, Callable[[], object]], _Timer] = _later,
    ) -> None:
        self.folder = folder
        self._workspace, self._documents = workspace, workspace.documents
        self._wall_s, self._later = wall_s, later
        self._name = secrets.token_hex(4)
        self._pending: list[CountsRow] = []  # not written yet, in order
        self._since_s = 0.0  # of the first of them
        self._recent: OrderedDict[str, _Counted] = OrderedDict()  # by id
        self._timer: _Timer | None = None  # of the next write
        self._writing: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._has_failed = False

    def hear(self, entry: Entry) -> None:
        """Take an entry of the journal."""
        match entry:
            case SuggestionEnded():
                self.count(entry)
            case AcceptanceReported():
                self.on_acceptance(entry.id)

    # --- counting ------------------------------------------------------------------------------

    def count(self, ended: SuggestionEnded) -> None:
        """Count a suggestion that was shown, or correct how it ended."""
        suggestion, ending = ended.suggestion, _ending(ended)
        if self.folder is None or ending is None or not self._workspace.settings.statistics:
            return
        before = self._recent.pop(suggestion.id, None)
        if before is None:
            row = self._row(suggestion)
            self._count(row, ending, saved=ended.saved, waited_ms=ended.waited_ms)
        else:
            row = before.row
            self._count(row, before.ending, -1, saved=ended.saved - before.saved)
            self._count(row, ending)
        self._recent[suggestion.id] = _Counted(row, ending, ended.saved)
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)

    def on_acceptance(self, id_: str) -> None:
        """Count a suggestion of one key as accepted, if it was counted as "typed"."""
        counted = self._recent.get(id_)
        if counted is not None and counted.ending == "typed":
            self._count(counted.row, "typed", -1)
            self._count(counted.row, "accepted")
            self._recent[id_] = replace(counted, ending="accepted")

    def _row(self, suggestion: Suggestion) -> CountsRow:
        document = self._documents.get(suggestion.uri)  # None: it was for a file that is not open
        known = document.language if document is not None else code_language(suggestion.uri)
        language = language_name(known or "")
        return CountsRow(day_of(self._wall_s()), language, suggestion.task)

    def _count(
        self,
        row: CountsRow,
        name: Ending,
        by: int = 1,
        *,
        saved: int = 0,
        waited_ms: float | None = None,
    ) -> None:
        counts = SuggestionCounts(saved=saved)
        setattr(counts, name, by)
        if waited_ms is not None:
            counts.add_wait(waited_ms)
        if not self._pending:
            self._since_s = self._wall_s()
        self._pending.append(replace(row, counts=counts))
        self._write_later()

    # --- writing -------------------------------------------------------------------------------

    def _write_later(self) -> None:
        if self._timer is None:
            self._timer = self._later(WRITE_S, self._begin_to_write)

    def _begin_to_write(self) -> None:
        self._writing = asyncio.ensure_future(self.write())

    async def write(self) -> None:
        """Write what has changed, and delete what is too old; what fails is tried again later."""
        if self.folder is None:
            return
        async with self._lock:
            rows, now_s = tuple(self._pending), self._wall_s()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            try:
                await asyncio.to_thread(self._store, self.folder, rows, self._since_s)
            except OSError as error:
                if not self._has_failed:
                    logger.warning("statistics cannot be kept in %s: %s", self.folder.folder, error)
                self._has_failed = True
                self._write_later()
            else:
                del self._pending[: len(rows)]
                self._since_s = now_s  # the others were counted meanwhile

    async def text(self, days: int) -> str:
        """Return the statistics of all sessions of the user as text, this one's included."""
        if self.folder is None:
            return "This server counts no suggestions."
        await self.write()
        today = date.fromtimestamp(self._wall_s())
        rows, problems = await asyncio.to_thread(self.folder.read, days, today)
        notes = (
            []
            if self._workspace.settings.statistics
            else ["Counting is switched off (setting statistics)."]
        )
        return "\n".join([*notes, *problems, statistics_text(rows, days, today)])

    def _store(self, folder: StatisticsFolder, rows: Sequence[CountsRow], since_s: float) -> None:
        folder.prune(date.fromtimestamp(self._wall_s()))
        if rows and not folder.was_deleted_since(since_s):
            folder.add(self._name, rows)


def _ending(ended: SuggestionEnded) -> Ending | None:
    """Return how a suggestion is counted, None for one that was never shown."""
    if ended.outcome == "cancelled":
        return None
    if ended.outcome == "accepted":
        return "typed" if ended.means == "typed" else "accepted"
    return "rejected" if ended.outcome == "rejected" else "ignored"
