"""Recent edits of the user, as the hunks that a model is shown; ``lsp/README.md`` has the rules.

The edit in progress is kept apart, so that typing does not rewrite the model's prompt. The hunks
since the newest snapshot of a document, applied in order, lead to its present text.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import count
from typing import Literal

from redraft.model.edits.edit import LineChange, key_of, on_top
from redraft.model.edits.hunks import CONTEXT_LINES, hunks_of, merge_edits
from redraft.model.edits.recent_changes import RECENT_CHANGES
from redraft.model.records import RecentEdit
from redraft.model.text.common import find_changed_part

from .history_edits import (
    MAX_LINES,
    PAUSE_S,
    STATES,
    EditInProgress,
    HistoryEntry,
    as_shown,
    hunks_of_span,
    is_one_key,
    is_scattered,
)
from .open_documents import Extent, Splice

# So much change at once is a paste, a checkout, a formatter or an agent, not typing.
BULK_CHARACTERS = 200
BULK_LINES = 8
BULK_WINDOW_S = 1.5

SHOWN_EDITS = 5  # a training row holds five at most

# Bounds over all documents.
MAX_EDITS = 40
MAX_CHARACTERS = 100_000
MAX_AGE_S = 3600.0
_MERGED_LINES = 60  # of an edit that goes on after a pause
_CLOSED = 8  # documents closed lately whose last text is kept
_JUST_S = 60.0  # age of the edits in :meth:`History.just_done`

#: ``undo`` is a redo as well.
ChangeKind = Literal["nothing", "edit", "undo", "accepted", "bulk"]


@dataclass(frozen=True, slots=True)
class EditedDocument:
    """A document as the history has it at one moment."""

    base: int  # id of the text that its newest edits are based on
    last_change: ChangeKind
    place: tuple[float, int] | None  # of the last edit: time in s, and 0-based line
    is_bulk: bool  # more changed just now than a person types
    is_deleting: bool  # the last change only deleted, by hand
    deleted: tuple[float, LineChange] | None  # at once, in bulk, on top of which all edits are


@dataclass(frozen=True, slots=True)
class PendingEdit:
    """The edit in progress, with the lines around it."""

    uri: str
    path: str
    span: LineChange
    above: tuple[str, ...]
    below: tuple[str, ...]
    accepted: bool
    is_refused: bool  # its file must not be shown


@dataclass(frozen=True, eq=False)
class RecentEdits:
    """The user's edits at one moment. What is costly is computed when it is asked for."""

    at_s: float
    finished: tuple[RecentEdit, ...]  # as a model is shown them, oldest first
    pending: PendingEdit | None
    documents: Mapping[str, EditedDocument]  # those that were edited, by URI
    _entries: tuple[HistoryEntry, ...]
    _shown: tuple[RecentEdit, ...]  # the finished ones before those that belong together are joined

    @cached_property
    def with_pending(self) -> tuple[RecentEdit, ...]:
        """The edits with the one in progress."""
        one = self.pending
        if one is None or one.is_refused:
            return self.finished
        lines = (*one.above, *one.span.new, *one.below)
        hunks = hunks_of_span(one.span.trim(), lines, one.span.first - len(one.above))
        shown = as_shown(one.path, hunks, one.accepted)
        return merge_edits([*self._shown, *shown][-SHOWN_EDITS:])

    @classmethod
    def of(cls, edits: Sequence[RecentEdit], at_s: float = 0.0) -> RecentEdits:
        """Return finished edits that no history has."""
        return cls(at_s, tuple(edits), None, {}, (), tuple(edits))

    def after(self, made: tuple[RecentEdit, ...]) -> RecentEdits:
        """Return the edits with others behind them, which are not made yet."""
        edits = (*self.with_pending, *made)[-SHOWN_EDITS:]
        return replace(self, finished=edits, pending=None, _entries=(), _shown=edits)

    @cached_property
    def last_edit_s(self) -> float | None:
        """The time of the last edit in any open document, or None."""
        places = (one.place for one in self.documents.values())
        return max((place[0] for place in places if place), default=None)

    def last_edit(self, uri: str) -> tuple[float, int] | None:
        """Return when (in s) and in which line the user last edited a document, or None."""
        document = self.documents.get(uri)
        return document.place if document else None

    def last_change(self, uri: str) -> ChangeKind:
        """Return what the last change of a document was."""
        document = self.documents.get(uri)
        return document.last_change if document else "nothing"

    def is_bulk(self, uri: str) -> bool:
        """Return whether more changed just now than a person types."""
        document = self.documents.get(uri)
        return document is not None and document.is_bulk

    def is_deleting(self, uri: str) -> bool:
        """Return whether the last change of a document only deleted, by hand."""
        document = self.documents.get(uri)
        return document is not None and document.is_deleting

    def find_deleted_lines(self, uri: str) -> tuple[str, ...]:
        """Return the lines that were just deleted from a document in bulk."""
        document = self.documents.get(uri)
        deleted = document.deleted if document is not None else None
        is_late = deleted is None or deleted[0] < self.at_s - _JUST_S
        return () if deleted is None or is_late else deleted[1].old

    def when_typed_s(self, uri: str, line: int) -> float | None:
        """Return when a line was last typed in, None unless the edit in progress is that line's."""
        document, one = self.documents.get(uri), self.pending
        if document is None or one is None or one.uri != uri or document.last_change != "edit":
            return None
        if document.place is None or document.place[1] != line:
            return None
        span = one.span.trim()
        return document.place[0] if len(span.old) <= 1 and len(span.new) <= 1 else None

    def changes(self, uri: str) -> list[LineChange]:
        """Return the last changes of a document, newest first, at their places in its text."""
        document = self.documents.get(uri)
        if document is None:
            return []
        oldest = self.at_s - _JUST_S
        deleted = document.deleted
        made = [deleted[1]] if deleted is not None and deleted[0] >= oldest else []
        made += [
            edit.span
            for edit in self._entries
            if edit.snapshot == document.base and edit.at_s >= oldest
        ]
        made += [self.pending.span] if self.pending is not None and self.pending.uri == uri else []
        spans: list[LineChange] = []  # newest first
        for span in made:
            spans = on_top(span, spans)
        trimmed = (span.trim() for span in spans)
        return [span for span in trimmed if span.old or span.new][:RECENT_CHANGES]


@dataclass(slots=True)
class _Document:
    path: str
    lines: list[str]  # the present text; the strings are the document's own
    snapshot: int  # id
    burst: EditInProgress | None = None
    changes: deque[tuple[float, Extent]] = field(default_factory=deque)  # of the last moments
    last_change: ChangeKind = "nothing"  # at the last change
    place: tuple[float, int] | None = None  # of the last edit: time in s, and 0-based line
    is_deleting: bool = False  # the last change only deleted, by hand
    deleted: tuple[float, LineChange] | None = None  # in bulk, when, since its snapshot


class History:
    """Edits of one client's user.

    Args:
        clock: reads seconds and never goes back.
        refuse: returns why edits of the file at a path and URI must not be shown, or "".
    """

    def __init__(
        self,
        clock: Callable[[], float],
        refuse: Callable[[str, str], str] = lambda _path, _uri: "",
    ) -> None:
        self._clock = clock
        self._refuse = refuse
        self._documents: dict[str, _Document] = {}
        self._closed: dict[str, _Document] = {}  # lately, the last one last
        self._entries: list[HistoryEntry] = []  # oldest first
        self._snapshots = count(1)
        self._typing = ""  # the document that was changed last

    # --- events ----------------------------------------------------------------------------

    def on_open(self, uri: str, path: str, lines: Sequence[str]) -> None:
        """Start to follow a document, and forget edits that were undone while it was closed."""
        self.on_close(uri)
        before = self._closed.pop(uri, None)
        if before is not None:
            self._return_to(lines, before.lines, before.snapshot)
        self._documents[uri] = _Document(path, list(lines), next(self._snapshots))

    def record_early_edit(self, uri: str, saved: Sequence[str]) -> None:
        """Record the difference between a document just opened and its file, if it is small.

        Some clients open a document only after its first edits.
        """
        document = self._documents.get(uri)
        if document is None:
            return
        span = LineChange(0, tuple(saved), tuple(document.lines)).trim()
        if not 0 < max(len(span.old), len(span.new)) <= MAX_LINES:
            return
        parts = hunks_of([*span.old], [*span.new])
        if sum(max(len(part.old), len(part.new)) for part in parts) >= BULK_LINES:
            return
        now = self._clock()
        document.place = now, max(span.first, span.end - 1)
        self._finish(uri, document, EditInProgress(span, now, now))

    def on_close(self, uri: str) -> None:
        """Follow a document no longer. Its edits stay in the history."""
        self.flush(uri)
        document = self._documents.pop(uri, None)
        if document is not None:
            self._closed[uri] = document
            while len(self._closed) > _CLOSED:
                self._closed.pop(next(iter(self._closed)))

    def on_rename(self, uri: str, new_uri: str, new_path: str) -> None:
        """Move the edits of a file to its new name; the client opens the document anew."""
        self.on_close(uri)
        self._entries = [
            replace(edit, uri=new_uri, path=new_path) if edit.uri == uri else edit
            for edit in self._entries
        ]

    def change(self, uri: str, splices: Sequence[Splice], *, accepted: bool = False) -> ChangeKind:
        """Record a change, and return what it was. ``accepted``: a suggestion made it."""
        document = self._documents.get(uri)
        if document is None or not splices:
            return "nothing"
        if uri != self._typing:  # typing elsewhere finishes the edit here
            self.flush(self._typing)
            self._typing = uri
        now = self._clock()
        if document.burst is not None and _has_ended(document.burst, now):
            self.flush(uri)
        extent = sum((splice.extent for splice in splices), Extent())
        if not accepted:
            document.changes.append((now, extent))
        is_command = extent.characters > 1 and not is_one_key(splices)
        if not accepted and is_command and self._throws_away(document, splices):
            document.last_change, document.is_deleting = "undo", False
            return "undo"
        while document.changes and document.changes[0][0] < now - BULK_WINDOW_S:
            document.changes.popleft()
        if not accepted and (_is_bulk(document, now) or is_scattered(splices)):
            document.last_change, document.is_deleting = "bulk", False
            self._start_again(uri, document, splices, now)
            return "bulk"
        for splice in splices:
            self._extend(uri, document, splice, now, accepted)
        document.place = (now, splices[-1].first + max(0, len(splices[-1].added) - 1))
        document.last_change = self._name(uri, document, is_command, accepted)
        only = all(map(_only_deletes, splices))
        document.is_deleting = document.last_change == "edit" and only
        return document.last_change

    def flush(self, uri: str | None = None) -> None:
        """Finish the edit in progress. ``uri``: only if it is in this document."""
        uri = self._typing if uri is None else uri
        document = self._documents.get(uri)
        if document is not None and document.burst is not None:
            burst, document.burst = document.burst, None
            self._finish(uri, document, burst)

    def mark_accepted(self, uri: str) -> None:
        """Mark the last edit of a document as accepted, because the client reports it only now."""
        document = self._documents.get(uri)
        if document is not None and document.burst is not None:
            document.burst.accepted = True
        elif (last := self._last_of(uri)) is not None and last is self._entries[-1]:
            self._entries[-1] = replace(last, accepted=True)

    # --- reading -----------------------------------------------------------------------------

    def view(self) -> RecentEdits:
        """Return the edits as they are now; reading changes nothing."""
        now, typing = self._clock(), self._typing
        document = self._documents.get(typing)
        entries, burst = self._entries, document.burst if document is not None else None
        if document is not None and burst is not None and _has_ended(burst, now):
            entries, burst = self._finished(document, burst, typing), None
        entries = _within_bounds(entries, now)
        shown: list[RecentEdit] = []
        for edit in reversed(entries):
            if len(shown) >= SHOWN_EDITS:
                break
            if not self._refuse(edit.path, edit.uri):
                shown[:0] = edit.shown
        pending = None
        if document is not None and burst is not None:
            first, end, lines = burst.span.first, burst.span.end, document.lines
            pending = PendingEdit(
                typing,
                document.path,
                burst.span,
                tuple(lines[max(0, first - CONTEXT_LINES) : first]),
                tuple(lines[end : end + CONTEXT_LINES]),
                burst.accepted,
                bool(self._refuse(document.path, typing)),
            )
        documents = {
            uri: EditedDocument(
                each.snapshot,
                each.last_change,
                each.place,
                _is_bulk(each, now),
                each.is_deleting,
                each.deleted,
            )
            for uri, each in self._documents.items()
            if each.place is not None or each.changes or each.last_change != "nothing"
        }
        return RecentEdits(
            now, merge_edits(shown[-SHOWN_EDITS:]), pending, documents, tuple(entries), tuple(shown)
        )

    # --- the edit in progress ----------------------------------------------------------------

    def _extend(
        self, uri: str, document: _Document, splice: Splice, now: float, accepted: bool
    ) -> None:
        change = LineChange(splice.first, splice.removed, splice.added)
        burst = document.burst
        if burst is not None and not burst.continues(change, now, accepted=accepted):
            self.flush(uri)
            burst = None
        if burst is None:
            burst = document.burst = EditInProgress(change, now, now, accepted)
        else:
            reaching = change.reach(burst.span, document.lines)
            burst.span = burst.span.then(reaching)
            burst.last_s = now
        document.lines[change.first : change.first + len(change.old)] = change.new

    def _name(
        self, uri: str, document: _Document, is_command: bool, accepted: bool
    ) -> Literal["edit", "undo", "accepted"]:
        """Return what a change was, and remember the state it led to."""
        burst = document.burst
        assert burst is not None
        key, joined, known = key_of(burst.span), None, False
        last = self._last_of(uri)
        if last is not None and last.span.distance(burst.span) == 0:
            joined = key_of(last.span.then(burst.span))
        if is_command:
            known = key in burst.states or joined in burst.joined
            known = known or (last is not None and joined in last.states)
        burst.states.append(key)
        if joined is not None:
            burst.joined.append(joined)
        if accepted:
            return "accepted"
        return "undo" if known else "edit"

    def _finish(self, uri: str, document: _Document, burst: EditInProgress) -> None:
        """Add a finished edit to the history."""
        self._entries = _within_bounds(self._finished(document, burst, uri), self._clock())

    def _finished(self, document: _Document, burst: EditInProgress, uri: str) -> list[HistoryEntry]:
        """Return the entries with a finished edit, or with it merged into the one it touches."""
        span, last, entries = burst.span.trim(), self._last_of(uri), [*self._entries]
        if not span.old and not span.new:
            return entries
        states = frozenset(burst.states)
        if last is not None and last.span.distance(span) == 0:
            both = last.span.then(span).trim()
            short = len(both.old) <= _MERGED_LINES and len(both.new) <= _MERGED_LINES
            undone = not both.old and not both.new
            if undone or (short and last is entries[-1] and last.accepted == burst.accepted):
                entries.remove(last)
                if undone:
                    return entries
                earlier = last.states if len(last.states) <= 4 * STATES else ()
                span, states = both, frozenset([*earlier, *burst.joined, key_of(both)])
        made = HistoryEntry(
            uri=uri,
            path=document.path,
            span=span,
            hunks=hunks_of_span(span, document.lines),
            at_s=burst.last_s,
            snapshot=document.snapshot,
            accepted=burst.accepted,
            states=states,
        )
        return [*entries, made]

    def _last_of(self, uri: str) -> HistoryEntry | None:
        """Return the last finished edit of a document since its newest snapshot."""
        document = self._documents.get(uri)
        snapshot = document.snapshot if document else 0  # no snapshot has this id
        entries = reversed(self._entries)
        return next((each for each in entries if each.snapshot == snapshot), None)

    # --- snapshots and bounds ------------------------------------------------------------------

    def _start_again(
        self, uri: str, document: _Document, splices: Iterable[Splice], now: float
    ) -> None:
        """Make the changes, and take the result as the new snapshot."""
        burst = document.burst
        splices = tuple(splices)
        document.deleted = _deleted(document, splices, now)
        if burst is not None and burst.began_s < now - BULK_WINDOW_S:
            self.flush(uri)  # else it was the beginning of the same bulk change
        document.burst = None
        document.lines = _made(document.lines, splices)
        document.snapshot = next(self._snapshots)

    def _throws_away(self, document: _Document, splices: Sequence[Splice]) -> bool:
        """Return whether changes undo two edits or more at once, as "revert file" does.

        If so, make the changes and forget those edits.
        """
        if not any(edit.snapshot == document.snapshot for edit in self._entries):
            return False
        state, least = document.lines, 2
        if document.burst is not None:
            state, least = _without(state, document.burst.span), 1
        made = _made(document.lines, splices)
        if not self._return_to(made, state, document.snapshot, least):
            return False
        document.lines, document.burst = made, None
        document.changes.clear()  # large, but no bulk change
        return True

    def _return_to(
        self, lines: Sequence[str], state: Sequence[str], snapshot: int, least: int = 1
    ) -> bool:
        """Forget the edits of a snapshot that led from ``lines`` to ``state``.

        Return whether there are at least ``least`` of them.
        """
        wanted, was = list(lines), list(state)
        found = [edit for edit in self._entries if edit.snapshot == snapshot]
        for gone, edit in enumerate(reversed(found), 1):
            was = _without(was, edit.span)
            if was == wanted and gone >= least:
                self._entries = [each for each in self._entries if each not in found[-gone:]]
                return True
        return False


def _has_ended(burst: EditInProgress, now_s: float) -> bool:
    """Return whether an edit has ended by the clock."""
    return now_s - burst.last_s > PAUSE_S


def _is_bulk(document: _Document, now_s: float) -> bool:
    """Return whether more changed in the last moments than a person types."""
    oldest_s = now_s - BULK_WINDOW_S
    extents = [extent for at_s, extent in document.changes if at_s >= oldest_s]
    characters = sum(extent.characters for extent in extents)
    return characters >= BULK_CHARACTERS or sum(each.lines for each in extents) >= BULK_LINES


def _within_bounds(entries: list[HistoryEntry], now_s: float) -> list[HistoryEntry]:
    """Return the newest entries, as many as are kept."""
    total = 0
    for kept, edit in enumerate(reversed(entries)):
        total += edit.span.characters
        if kept == MAX_EDITS or total > MAX_CHARACTERS or edit.at_s < now_s - MAX_AGE_S:
            return entries[len(entries) - kept :]
    return entries


def _deleted(
    document: _Document, splices: Sequence[Splice], now_s: float
) -> tuple[float, LineChange] | None:
    """Return the lines that a user deleted in bulk, with those deleted just before; or None.

    A suggestion must not bring them back, although a bulk change is no edit to learn from.
    """
    if len(splices) != 1 or len(splices[0].removed) > MAX_LINES or not _only_deletes(splices[0]):
        return None
    (splice,), before = splices, document.deleted
    oldest_s, burst = now_s - BULK_WINDOW_S, document.burst
    earlier = [before[1]] if before is not None and before[0] >= oldest_s else []
    if burst is not None and burst.began_s >= oldest_s:
        earlier = on_top(burst.span, earlier)
    return now_s, on_top(LineChange(splice.first, splice.removed, splice.added), earlier)[0]


def _only_deletes(splice: Splice) -> bool:
    old, new = "\n".join(splice.removed), "\n".join(splice.added)
    return len(new) < len(old) and not find_changed_part(old, new)[2]


def _made(lines: Sequence[str], splices: Iterable[Splice]) -> list[str]:
    """Return the lines after the splices."""
    made = list(lines)
    for splice in splices:
        made[splice.first : splice.first + len(splice.removed)] = splice.added
    return made


def _without(lines: Sequence[str], span: LineChange) -> list[str]:
    """Return the lines as they were before ``span``."""
    return [*lines[: span.first], *span.old, *lines[span.end :]]
