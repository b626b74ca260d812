"""What the user changed lately, as hunks: the history that a model is shown.

Built from the editor's own changes, so that a keystroke costs the lines it touches and not the
file. Changes in quick succession and near each other are one edit; while it goes on it is kept
apart, so that typing does not rewrite what a model has read already. What takes itself back
disappears. Pastes, checkouts, formatters and agents are no edits of the user: they stay out, and
the document's history starts again from a new snapshot.

What holds at any time, and a test checks it: the newest snapshot of a document, with the hunks
since and the edit in progress applied in order, is its present text.

Pure: the clock is an argument. Edits look as they do in training (``model/edits/hunks.py``). Knows
nothing of LSP, of suggestions, or of what is done with the history.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from typing import Literal

from redraft.model.edits.edit import NO_CHANGE, LineChange, key_of, on_top
from redraft.model.edits.hunks import hunks_of, joined
from redraft.model.edits.recent_changes import RECENT_CHANGES
from redraft.model.records import RecentEdit
from redraft.model.text.common import common_ends
from unidiff.patch import Hunk, PatchedFile

from .context.history_hunks import Edit, as_shown, hunks_of_span, patch_of
from .documents import Extent, Splice

#: What is at most this far apart, in lines and in seconds, is one edit.
NEAR_LINES = 8
PAUSE_S = 1.0

# So much change at once is a paste, a checkout, a formatter or an agent, not typing.
BULK_CHARACTERS = 200
BULK_LINES = 8
BULK_WINDOW_S = 1.5
_BULK_PLACES = 3  # places far apart, changed by one message: a formatter, or a rename

#: A training row holds five edits at most.
SHOWN_EDITS = 5

# Bounds of what is remembered, over all documents.
MAX_EDITS = 40
MAX_CHARACTERS = 100_000
MAX_AGE_S = 3600.0
_LONGEST = 16_000  # characters of one edit; a longer one is data, not typing
_MAX_LINES = 200  # of one edit; a longer one is continued in the next
_MERGED_LINES = 60  # of an edit that goes on after a pause
_LEFT = 8  # documents closed lately, of which it is known how they were
_JUST_S = 60.0  # within which an edit was just done
_PAIRS = ("", "()", "[]", "{}", "<>", '""', "''", "``")  # "": only written, or only deleted
_STATES = 64  # former states of an edit that an undo is recognised by

#: ``undo`` is a redo as well.
Happening = Literal["nothing", "edit", "undo", "accepted", "bulk"]


@dataclass(slots=True)
class _Burst:
    """The edit in progress."""

    span: LineChange
    began_s: float
    last_s: float
    accepted: bool = False
    #: States on the way: of this edit alone, and together with the finished one it touches.
    states: deque[int] = field(default_factory=lambda: deque([NO_CHANGE], maxlen=_STATES))
    joined: deque[int] = field(default_factory=lambda: deque(maxlen=_STATES))


@dataclass(slots=True)
class _Document:
    path: str
    lines: list[str]  # as they are now; the strings are the document's own
    base: list[str]  # the newest snapshot
    snapshot: int
    burst: _Burst | None = None
    changes: deque[tuple[float, Extent]] = field(default_factory=deque)  # of the last moments
    happened: Happening = "nothing"  # last
    place: tuple[float, int] | None = None  # of the last edit: when in s, and its line


class History:
    """The edits of one client's user.

    Args:
        clock: reads seconds and never goes back.
        refuse: why edits of the file at a path and URI must not be shown, "" if they may be.
    """

    def __init__(
        self,
        clock: Callable[[], float],
        refuse: Callable[[str, str], str] = lambda path, uri: "",
    ) -> None:
        self._clock = clock
        self._refuse = refuse
        self._documents: dict[str, _Document] = {}
        self._left: dict[str, _Document] = {}  # closed lately, the last one last
        self._edits: list[Edit] = []  # oldest first
        self._snapshots = count(1)
        self._typing = ""  # the document that was changed last

    # --- events ----------------------------------------------------------------------------

    def opened(self, uri: str, path: str, lines: Sequence[str]) -> None:
        """A document is there with these ``lines``, or is there anew. Edits that were thrown away
        in between, as by reading the file again, are forgotten."""
        self.closed(uri)
        left = self._left.pop(uri, None)
        if left is not None:
            self._return_to(lines, left.lines, left.snapshot)
        self._documents[uri] = _Document(path, list(lines), list(lines), next(self._snapshots))

    def missed(self, uri: str, saved: Sequence[str]) -> None:
        """A document was opened with edits that nobody saw being made: its file has the lines
        ``saved``. Where there are as many as a person makes in a moment, they are an edit."""
        document = self._documents.get(uri)
        if document is None:
            return
        span = LineChange(0, tuple(saved), tuple(document.lines)).trimmed()
        if not 0 < max(len(span.old), len(span.new)) <= _MAX_LINES:
            return
        made = hunks_of([*span.old], [*span.new])
        if sum(max(hunk.last - hunk.first, len(hunk.new)) for hunk in made) >= BULK_LINES:
            return
        now = self._clock()
        document.base, document.place = list(saved), (now, max(span.first, span.end - 1))
        self._finish(uri, document, _Burst(span, now, now))

    def closed(self, uri: str) -> None:
        """A document is gone, or can no longer be trusted. What was done in it is not forgotten."""
        self.flush(uri)
        document = self._documents.pop(uri, None)
        if document is not None:
            self._left[uri] = document
            while len(self._left) > _LEFT:
                self._left.pop(next(iter(self._left)))

    def renamed(self, uri: str, new_uri: str, new_path: str) -> None:
        """A file has another name from now on, and so have the edits made in it. The client closes
        the document and opens it by its new name."""
        self.closed(uri)
        self._edits = [
            replace(edit, uri=new_uri, path=new_path) if edit.uri == uri else edit
            for edit in self._edits
        ]

    def changed(self, uri: str, splices: Sequence[Splice], *, accepted: bool = False) -> Happening:
        """A document was changed, by accepting a suggestion if ``accepted``. What was that?"""
        document = self._documents.get(uri)
        if document is None or not splices:
            return "nothing"
        if uri != self._typing:  # whoever types elsewhere is done here
            self.flush(self._typing)
            self._typing = uri
        now = self._clock()
        extent = sum((splice.extent for splice in splices), Extent())
        if not accepted:
            document.changes.append((now, extent))
        is_command = extent.characters > 1 and not _is_one_key(splices)
        if not accepted and is_command and self._throws_away(document, splices):
            document.happened = "undo"
            return "undo"
        if not accepted and (self._is_bulk(document, now) or _is_scattered(splices)):
            document.happened = "bulk"
            self._start_again(uri, document, splices, now)
            return "bulk"
        for splice in splices:
            self._extend(uri, document, splice, now, accepted)
        document.place = (now, splices[-1].first + max(0, len(splices[-1].added) - 1))
        document.happened = self._name(uri, document, is_command, accepted)
        return document.happened

    def flush(self, uri: str | None = None) -> None:
        """The edit in progress, if there is one, is finished.

        Args:
            uri: only if it is in this document.
        """
        uri = self._typing if uri is None else uri
        document = self._documents.get(uri)
        if document is not None and document.burst is not None:
            burst, document.burst = document.burst, None
            self._finish(uri, document, burst)

    def mark_accepted(self, uri: str) -> None:
        """What was done last in a document came from a suggestion, as is reported only now."""
        document = self._documents.get(uri)
        if document is not None and document.burst is not None:
            document.burst.accepted = True
            return
        last = self._last_of(uri)
        if last is not None and last is self._edits[-1]:
            self._edits[-1] = replace(last, accepted=True)

    # --- what there is -----------------------------------------------------------------------

    def edits(self, *, unfinished: bool = False) -> tuple[RecentEdit, ...]:
        """The last finished edits as a model is shown them, oldest first.

        Args:
            unfinished: the edit in progress as well, which goes on all the same.
        """
        now = self._clock()
        document = self._documents.get(self._typing)
        burst = document.burst if document else None
        if burst is not None and now - burst.last_s > PAUSE_S:
            self.flush(self._typing)
        self._forget(now)
        shown: list[RecentEdit] = []
        going_on = unfinished and document is not None and document.burst is not None
        if going_on and document and not self._refuse(document.path, self._typing):
            assert document.burst is not None
            shown += as_shown(document.path, self._in_progress(document), document.burst.accepted)
        for edit in reversed(self._edits):
            if len(shown) >= SHOWN_EDITS:
                break
            if not self._refuse(edit.path, edit.uri):
                shown[:0] = edit.shown
        return joined(shown[-SHOWN_EDITS:])

    def patches(self, uri: str) -> list[PatchedFile]:
        """The finished edits since the document's newest snapshot, each of their hunks a patch that
        applies to what the one before left. ``str`` of one is a unified diff."""
        document = self._documents.get(uri)
        current = document.snapshot if document else 0
        return [
            patch_of(edit.path, hunk)
            for edit in self._edits
            if edit.snapshot == current
            for hunk in edit.hunks
        ]

    def in_progress(self, uri: str) -> list[PatchedFile]:
        """The edit in progress in the same form; it applies after the finished ones."""
        document = self._documents.get(uri)
        if document is None or document.burst is None:
            return []
        return [patch_of(document.path, hunk) for hunk in self._in_progress(document)]

    def is_within_line(self, uri: str) -> bool:
        """Is there an edit in progress, and does it change a single line so far?"""
        document = self._documents.get(uri)
        if document is None or document.burst is None:
            return False
        span = document.burst.span.trimmed()
        return len(span.old) <= 1 and len(span.new) <= 1

    def snapshot(self, uri: str) -> tuple[str, ...]:
        """The lines that the document's edits start from."""
        document = self._documents.get(uri)
        return tuple(document.base) if document else ()

    def last_edit_s(self) -> float | None:
        """When the user last edited any open document; None: not at all."""
        places = (document.place for document in self._documents.values())
        return max((place[0] for place in places if place), default=None)

    def last_edit(self, uri: str) -> tuple[float, int] | None:
        """When in s and in which line the user last edited the document; None: not at all."""
        document = self._documents.get(uri)
        return document.place if document else None

    def happened(self, uri: str) -> Happening:
        """What the last change of the document was."""
        document = self._documents.get(uri)
        return document.happened if document else "nothing"

    def is_bulk(self, uri: str) -> bool:
        """Was so much changed just now that nobody typed it?"""
        document = self._documents.get(uri)
        return document is not None and self._is_bulk(document, self._clock())

    def just_done(self, uri: str) -> list[LineChange]:
        """What was last done in the document, newest first. The ``new`` lines of each are at its
        ``first`` line in the document as it is now."""
        document = self._documents.get(uri)
        if document is None:
            return []
        oldest = self._clock() - _JUST_S
        made = [
            edit.span
            for edit in self._edits
            if edit.snapshot == document.snapshot and edit.at_s >= oldest
        ]
        made += [document.burst.span] if document.burst else []
        spans: list[LineChange] = []  # newest first
        for span in made:
            spans = on_top(span, spans)
        trimmed = (span.trimmed() for span in spans)
        return [span for span in trimmed if span.old or span.new][:RECENT_CHANGES]

    # --- the edit in progress ----------------------------------------------------------------

    @staticmethod
    def _in_progress(document: _Document) -> tuple[Hunk, ...]:
        assert document.burst is not None
        return hunks_of_span(document.path, document.burst.span.trimmed(), document.lines)

    def _extend(
        self, uri: str, document: _Document, splice: Splice, now: float, accepted: bool
    ) -> None:
        change = LineChange(splice.first, splice.removed, splice.added)
        burst = document.burst
        if burst is not None and not _continues(burst, change, now, accepted):
            self.flush(uri)
            burst = None
        if burst is None:
            burst = document.burst = _Burst(change, now, now, accepted)
        else:
            reaching = change.reaching(burst.span, document.lines)
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

    def _finish(self, uri: str, document: _Document, burst: _Burst) -> None:
        """Put a burst into the history, as part of the edit before where they touch."""
        span, last = burst.span.trimmed(), self._last_of(uri)
        if not span.old and not span.new:
            return
        states = frozenset(burst.states)
        if last is not None and last.span.distance(span) == 0:
            both = last.span.then(span).trimmed()
            short = len(both.old) <= _MERGED_LINES and len(both.new) <= _MERGED_LINES
            undone = not both.old and not both.new
            if undone or (short and last is self._edits[-1] and last.accepted == burst.accepted):
                self._edits.remove(last)
                if undone:
                    return
                span, states = both, _newest_states(last.states, burst.joined, key_of(both))
        self._edits.append(
            Edit(
                uri=uri,
                path=document.path,
                span=span,
                hunks=hunks_of_span(document.path, span, document.lines),
                at_s=burst.last_s,
                snapshot=document.snapshot,
                accepted=burst.accepted,
                states=states,
            )
        )
        self._forget(self._clock())

    def _last_of(self, uri: str) -> Edit | None:
        """The last finished edit of a document since its newest snapshot."""
        document = self._documents.get(uri)
        if document is None:
            return None
        found = (edit for edit in reversed(self._edits) if edit.snapshot == document.snapshot)
        return next(found, None)

    # --- snapshots and bounds ------------------------------------------------------------------

    def _is_bulk(self, document: _Document, now: float) -> bool:
        while document.changes and document.changes[0][0] < now - BULK_WINDOW_S:
            document.changes.popleft()
        characters = sum(extent.characters for _, extent in document.changes)
        lines = sum(extent.lines for _, extent in document.changes)
        return characters >= BULK_CHARACTERS or lines >= BULK_LINES

    def _start_again(
        self, uri: str, document: _Document, splices: Iterable[Splice], now: float
    ) -> None:
        """Make the changes and a new snapshot of what they lead to."""
        burst = document.burst
        if burst is not None and burst.began_s < now - BULK_WINDOW_S:
            self.flush(uri)  # else it was the beginning of the same bulk change
        document.burst = None
        document.lines = _made(document.lines, splices)
        document.base, document.snapshot = list(document.lines), next(self._snapshots)

    def _throws_away(self, document: _Document, splices: Sequence[Splice]) -> bool:
        """Do changes lead back to how the document was before two edits or more, as reverting to
        what is saved does? Then they are made, and those edits forgotten."""
        if not any(edit.snapshot == document.snapshot for edit in self._edits):
            return False
        state, least = document.lines, 2
        if document.burst is not None:
            state, least = _without(state, document.burst.span), 1
        made = _made(document.lines, splices)
        if not self._return_to(made, state, document.snapshot, least):
            return False
        document.lines, document.burst = made, None
        document.changes.clear()  # nobody types that much, and it is no bulk change either
        return True

    def _return_to(
        self, lines: Sequence[str], state: Sequence[str], snapshot: int, least: int = 1
    ) -> bool:
        """Forget the edits of a snapshot that led from ``lines`` to ``state``, if there are
        ``least`` of them. Were there?"""
        wanted, was = list(lines), list(state)
        found = [edit for edit in self._edits if edit.snapshot == snapshot]
        for gone, edit in enumerate(reversed(found), 1):
            was = _without(was, edit.span)
            if was == wanted and gone >= least:
                self._edits = [each for each in self._edits if each not in found[-gone:]]
                return True
        return False

    def _forget(self, now: float) -> None:
        """Drop the oldest edits beyond the bounds; their snapshots move on past them."""
        total = sum(edit.span.characters for edit in self._edits)
        while self._edits and (
            len(self._edits) > MAX_EDITS
            or total > MAX_CHARACTERS
            or self._edits[0].at_s < now - MAX_AGE_S
        ):
            edit = self._edits.pop(0)
            total -= edit.span.characters
            document = self._documents.get(edit.uri)
            if document is not None and document.snapshot == edit.snapshot:
                first, old = edit.span.first, edit.span.old
                document.base[first : first + len(old)] = edit.span.new


def _made(lines: Sequence[str], splices: Iterable[Splice]) -> list[str]:
    made = list(lines)
    for splice in splices:
        made[splice.first : splice.first + len(splice.removed)] = splice.added
    return made


def _without(lines: Sequence[str], span: LineChange) -> list[str]:
    """The lines before ``span`` was made."""
    return [*lines[: span.first], *span.old, *lines[span.end :]]


def _newest_states(before: frozenset[int], then: Iterable[int], now: int) -> frozenset[int]:
    return frozenset([*(before if len(before) <= 4 * _STATES else ()), *then, now])


def _continues(burst: _Burst, change: LineChange, now: float, accepted: bool) -> bool:
    """Is ``change`` part of the edit in progress?"""
    return (
        now - burst.last_s <= PAUSE_S
        and burst.span.distance(change) <= NEAR_LINES
        and burst.accepted == accepted
        and max(len(burst.span.old), len(burst.span.new)) <= _MAX_LINES
    )


def _is_one_key(splices: Sequence[Splice]) -> bool:
    """Return whether one key may have made the changes, though they alter several characters.

    Tab, Enter and Backspace write or delete an indentation. Between two brackets that the editor
    closed, Backspace deletes both.
    """
    if len(splices) != 1:
        return False
    old, new = "\n".join(splices[0].removed), "\n".join(splices[0].added)
    head, tail = common_ends(old, new)
    texts = old[head : len(old) - tail], new[head : len(new) - tail]
    return all(text.isspace() or text in _PAIRS for text in texts)


def _is_scattered(splices: Sequence[Splice]) -> bool:
    """Did one message change places far apart, or lines no person types?"""
    places = 1
    for one, other in pairwise(splices):
        places += abs(one.first - other.first) > NEAR_LINES
    longest = sum(len(line) for splice in splices for line in (*splice.removed, *splice.added))
    return places >= _BULK_PLACES or longest > _LONGEST
