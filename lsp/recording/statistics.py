"""Statistics of a session: what became of its suggestions, as counts.

They are written once a minute and at the end, in a thread. A killed server loses at most the last
minute. A key costs nothing more.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections import Counter, OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal, Protocol

from redraft.model.text.common import common_ends

from ..journal import AcceptanceReported, DocumentClosing, Entry
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
LOOK_S = 60.0  # from an acceptance until its text is looked for
_REMEMBERED = 20  # suggestions whose outcome a late report can correct
_DELETED_SHARE = 0.5  # of the accepted characters, from which they count as deleted

_MOST_COMPARED = 100_000  # characters: 20 ms

_WORD = re.compile(r"\w+|[^\w\s]")


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


@dataclass(frozen=True, slots=True)
class _Accepted:
    """An accepted suggestion whose text is looked for later."""

    suggestion: Suggestion
    row: CountsRow
    timer: _Timer


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
        self._pending: list[CountsRow] = []  # changes that are not written yet
        self._since_s = 0.0  # of the first of them
        self._recent: OrderedDict[str, _Counted] = OrderedDict()  # by id
        self._accepted: dict[str, _Accepted] = {}  # by id
        self._timer: _Timer | None = None  # of the next write
        self._writing: asyncio.Task[None] | None = None
        self._lock = asyncio.Lock()
        self._has_failed = False

    def hear(self, entry: Entry) -> None:
        """Take an entry of the journal."""
        match entry:
            case SuggestionEnded():
                self.settled(entry)
            case AcceptanceReported():
                self.reported(entry.id)
            case DocumentClosing():
                self.closing(entry.uri)

    # --- counting ------------------------------------------------------------------------------

    def settled(self, settled: SuggestionEnded) -> None:
        """Count a suggestion that was shown, or correct how it ended."""
        suggestion, ending = settled.suggestion, _ending(settled)
        if self.folder is None or ending is None or not self._workspace.settings.statistics:
            return
        before = self._recent.pop(suggestion.id, None)
        if before is None:
            row = self._row(suggestion)
            self._count(row, ending, saved=settled.saved, waited_ms=settled.waited_ms)
        else:
            row = before.row
            self._count(row, before.ending, -1, saved=settled.saved - before.saved)
            self._count(row, ending)
        self._recent[suggestion.id] = _Counted(row, ending, settled.saved)
        if len(self._recent) > _REMEMBERED:
            self._recent.popitem(last=False)
        if ending == "accepted" and settled.means == "whole" and suggestion.rename is None:
            self._follow(suggestion, row)

    def reported(self, id_: str) -> None:
        """Count a suggestion of one key as accepted, if it was counted as "typed"."""
        counted = self._recent.get(id_)
        if counted is not None and counted.ending == "typed":
            self._count(counted.row, "typed", -1)
            self._count(counted.row, "accepted")
            self._recent[id_] = replace(counted, ending="accepted")

    def _row(self, suggestion: Suggestion) -> CountsRow:
        document = self._documents.get(suggestion.uri)
        language = language_name(document.language if document is not None else "")
        return CountsRow(day_of(self._wall_s()), language, suggestion.task)

    def _count(
        self,
        row: CountsRow,
        name: Ending | Literal["deleted"],
        by: int = 1,
        *,
        saved: int = 0,
        waited_ms: float | None = None,
    ) -> None:
        counts = SuggestionCounts(saved=saved)
        setattr(counts, name, by)
        if waited_ms is not None:
            counts.waited(waited_ms)
        if not self._pending:
            self._since_s = self._wall_s()
            self._timer = self._later(WRITE_S, self._begin_to_write)
        self._pending.append(replace(row, counts=counts))

    # --- what is deleted soon ------------------------------------------------------------------

    def _follow(self, suggestion: Suggestion, row: CountsRow) -> None:
        before = self._accepted.pop(suggestion.id, None)
        if before is not None:  # accepted again after an undo
            before.timer.cancel()
        timer = self._later(LOOK_S, lambda: self._look(suggestion.id))
        self._accepted[suggestion.id] = _Accepted(suggestion, row, timer)

    def _look(self, id_: str) -> None:
        """Count an accepted suggestion as deleted if its text is gone."""
        accepted = self._accepted.pop(id_)
        accepted.timer.cancel()
        document = self._documents.get(accepted.suggestion.uri)
        if document is None or document.out_of_step:
            return
        if is_deleted(accepted.suggestion, document.text):
            self._count(accepted.row, "deleted")

    def closing(self, uri: str) -> None:
        """Look at the accepted suggestions of a document that is about to be closed."""
        for id_, accepted in list(self._accepted.items()):
            if accepted.suggestion.uri == uri:
                self._look(id_)

    # --- writing -------------------------------------------------------------------------------

    def _begin_to_write(self) -> None:
        self._writing = asyncio.ensure_future(self.write())

    async def write(self) -> None:
        """Write what has changed, and delete what is too old."""
        if self.folder is None:
            return
        async with self._lock:
            rows, self._pending = self._pending, []
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            try:
                await asyncio.to_thread(self._store, self.folder, rows, self._since_s)
            except OSError as error:
                if not self._has_failed:
                    logger.warning("statistics cannot be kept in %s: %s", self.folder.folder, error)
                self._has_failed = True

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

    def _store(self, folder: StatisticsFolder, rows: list[CountsRow], since_s: float) -> None:
        folder.prune(date.fromtimestamp(self._wall_s()))
        if rows and not folder.forgotten_since(since_s):
            folder.add(self._name, rows)


def _ending(settled: SuggestionEnded) -> Ending | None:
    """Return how a suggestion is counted, None for one that was never shown."""
    if settled.outcome == "cancelled":
        return None
    if settled.outcome == "accepted":
        return "typed" if settled.means == "typed" else "accepted"
    return "rejected" if settled.outcome == "rejected" else "ignored"


def is_deleted(suggestion: Suggestion, text: str) -> bool:
    """Return whether most of what an accepted suggestion wrote is gone from its document.

    ``text`` is compared with the text right after the acceptance. Outside of their difference all
    is kept, inside of it the words that are still there.
    """
    least = suggestion.least()
    if not least.replacement.strip():
        return text == suggestion.text  # it only deleted: was that undone?
    made, first, last = least.result, least.start, least.start + len(least.replacement)
    head, tail = common_ends(made, text)
    before, now = made[head : len(made) - tail], text[head : len(text) - tail]
    if len(before) + len(now) > _MOST_COMPARED:
        return least.replacement.strip() not in text
    inside = _words(made[max(first, head) : min(last, len(made) - tail)])
    gone = inside & (_words(before) - _words(now))
    lost = sum(len(word) * count for word, count in gone.items())
    return lost > _DELETED_SHARE * len("".join(least.replacement.split()))


def _words(text: str) -> Counter[str]:
    return Counter(_WORD.findall(text))
