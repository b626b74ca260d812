"""Comparison of a suggestion with what the user went on to write.

Three matchers: the text reaches what the suggestion would have made of it; the same but for white
space; its first characters agree. Each within so many changes, and only by the user's own typing.
Besides, the suggestion is compared with the document at rest.

:class:`Followed` carries a text through later changes. It keeps apart what the user typed and what
came from elsewhere (a paste, an accepted suggestion, an agent, undo): where the two meet, the
result is unknown, and the answer is None. Offsets are ``str`` indices. Pure functions.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from redraft.model.text.common import common_head

from ..metrics import delta_chrf, dense, kept


@dataclass(frozen=True, slots=True)
class PlacedEdit:
    """``text`` in place of [start, end) of the text as it was before the change."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """A change of a document: edits that apply together, sorted by place, without overlaps."""

    at_s: float
    edits: tuple[PlacedEdit, ...]
    typed: bool  # by the user, key by key

    def apply(self, text: str) -> str:
        for edit in reversed(self.edits):
            text = text[: edit.start] + edit.text + text[edit.end :]
        return text


@dataclass(slots=True)
class FollowedRegion:
    """Part of the old text, and what it is now. Whatever lies outside of regions is as it was."""

    old_start: int
    old_end: int
    start: int
    end: int
    foreign: bool = False

    @property
    def growth(self) -> int:
        return (self.end - self.start) - (self.old_end - self.old_start)


class Followed:
    """The text ``old`` and what becomes of it.

    Args:
        watched: [start, end) of a region that is there from the beginning.
    """

    def __init__(self, old: str, watched: tuple[int, int] | None = None) -> None:
        self.old = old
        self.now = old
        self.regions: list[FollowedRegion] = []  # by place, never touching
        self.mixed = False  # typed or watched text met text from elsewhere
        self.watched: FollowedRegion | None = None
        if watched is not None:
            start, end = watched
            self.watched = FollowedRegion(start, end, start, end)
            self.regions.append(self.watched)

    @property
    def watched_text(self) -> str:
        region = self.watched
        assert region is not None
        return self.now[region.start : region.end]

    def watched_with(self, start: int, end: int, text: str) -> str:
        """Return the watched region with ``text`` in place of old[start:end]."""
        region = self.watched
        assert region is not None
        return self.old[region.old_start : start] + text + self.old[end : region.old_end]

    def apply(self, step: DocumentChange) -> None:
        for edit in reversed(step.edits):
            self._apply(edit, foreign=not step.typed)

    def _apply(self, edit: PlacedEdit, foreign: bool) -> None:
        touched = [r for r in self.regions if edit.start <= r.end and edit.end >= r.start]
        before = sum(r.growth for r in self.regions if r.end < edit.start)
        made = FollowedRegion(edit.start - before, 0, edit.start, edit.end, foreign)
        if touched:
            made.start = min(edit.start, touched[0].start)
            made.old_start = touched[0].old_start - (touched[0].start - made.start)
            made.end = max(edit.end, touched[-1].end)
        grown = sum(r.growth for r in touched)
        made.old_end = made.old_start + (made.end - made.start) - grown
        if any(r.foreign != foreign for r in touched):
            self.mixed = True
        by = len(edit.text) - (edit.end - edit.start)
        made.end += by
        rest = [r for r in self.regions if r not in touched]
        for region in rest:
            if region.start > edit.end:
                region.start, region.end = region.start + by, region.end + by
        if self.watched in touched:
            self.watched = made
        insort(rest, made, key=lambda r: r.old_start)
        self.regions = rest
        self.now = self.now[: edit.start] + edit.text + self.now[edit.end :]

    def lines(self) -> list[tuple[int, int]]:
        """Return the whole lines of the old text, [start, end) each, that were typed or watched.

        Where they hold text from elsewhere too, the text is ``mixed``.
        """
        found: list[tuple[int, int]] = []
        for region in self.regions:
            if region.foreign:
                continue
            start = self.old.rfind("\n", 0, region.old_start) + 1
            end = self.old.find("\n", region.old_end) + 1 or len(self.old)
            if found and start <= found[-1][1]:
                start = found.pop()[0]
            found.append((start, end))
        foreign = [r for r in self.regions if r.foreign]
        if any(r.old_start < end and r.old_end >= start for r in foreign for start, end in found):
            self.mixed = True
        return found

    def old_parts(self, lines: Sequence[tuple[int, int]]) -> str:
        return "".join(self.old[start:end] for start, end in lines)

    def old_parts_with(
        self, lines: Sequence[tuple[int, int]], start: int, end: int, text: str
    ) -> str:
        """The same with ``text`` in place of old[start:end], which the lines hold."""
        parts = [
            self.old[low:start] + text + self.old[end:high]
            if low <= start and end <= high
            else self.old[low:high]
            for low, high in lines
        ]
        return "".join(parts)

    def new_parts(self, lines: Sequence[tuple[int, int]]) -> str:
        """Return the text of those lines now."""
        return "".join(self.now[self._start(low) : self._end(high)] for low, high in lines)

    def _start(self, at: int) -> int:
        return at + sum(r.growth for r in self.regions if r.old_start < at)

    def _end(self, at: int) -> int:
        """Return where a line that ended at ``at`` ends now.

        Text that the user adds at the end of the document is part of its last line.
        """
        return at + sum(
            r.growth
            for r in self.regions
            if r.old_start < at + (at == len(self.old) and not r.foreign)
        )


QUIET_S = 10.0  # without a change: the document has come to rest
LONGEST_S = 300.0


def until_rest(steps: Sequence[DocumentChange], at_s: float) -> list[DocumentChange]:
    """The steps until no other follows for :data:`QUIET_S`, or :data:`LONGEST_S` are over."""
    found: list[DocumentChange] = []
    last_s = at_s
    for step in takewhile(lambda each: each.at_s - at_s <= LONGEST_S, steps):
        if step.at_s - last_s >= QUIET_S:
            break
        found.append(step)
        last_s = step.at_s
    return found


def needed(steps: Sequence[DocumentChange], at_s: float, ends_s: float) -> bool | None:
    """Return whether anything was left to do: whether the user typed within :data:`QUIET_S`.

    None: unknown, as the first change came from elsewhere, or the recording ends.
    """
    rest = until_rest(steps, at_s)
    if rest:
        return True if rest[0].typed else None
    return False if ends_s - at_s >= QUIET_S else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A suggestion against the document at rest."""

    right: int  # characters written and kept, or rightly deleted
    suggested: int  # characters written and deleted
    done: int  # characters the user wrote and deleted in the end
    delta_chrf: float  # 0 … 100


def compare(
    text: str, start: int, end: int, replacement: str, steps: Sequence[DocumentChange]
) -> Comparison | None:
    """``replacement`` of text[start:end] against what the ``steps`` until rest made of the text.

    Only lines that the user or the suggestion touched are looked at. None where text from elsewhere
    came into them, or too much changed.
    """
    followed = Followed(text, (start, end))
    for step in steps:
        followed.apply(step)
    lines = followed.lines()
    if followed.mixed:
        return None
    base, final = followed.old_parts(lines), followed.new_parts(lines)
    candidate = followed.old_parts_with(lines, start, end, replacement)
    found = kept(base, candidate, final)
    if found is None:
        return None
    score = delta_chrf(base, [final], candidate)
    return Comparison(found.right, found.suggested, found.done, score)


WITHIN = 50  # changes of the document
PREFIX = 10  # characters that have to agree; a shorter suggestion has to be exact
#: Seconds at the end of a recording in which the user may not have had the time.
UNSEEN_S = 10.0


@dataclass(frozen=True, slots=True)
class Match:
    """Each True, False, or None where it cannot be told."""

    exact: bool | None
    white_space: bool | None
    prefix: bool | None


def match(
    text: str,
    start: int,
    end: int,
    replacement: str,
    steps: Sequence[DocumentChange],
    told: bool = True,
    within: int = WITHIN,
) -> Match:
    """Compare ``replacement`` of text[start:end] with what the ``steps`` made of it.

    Args:
        start, end, replacement: without what stays the same at either end.
        steps: the changes of this document that followed, in order.
        told: False where the recording ends too soon afterwards to tell.
    """
    followed = Followed(text, (start, end))
    result = text[:start] + replacement + text[end:]
    spaces = prefix = diverged = False
    for step in steps[:within]:
        followed.apply(step)
        if followed.mixed:
            told = diverged
            break
        wanted, now = followed.watched_with(start, end, replacement), followed.watched_text
        if now == wanted or (step.typed and followed.now == result):
            return Match(True, True, True)
        spaces = spaces or dense(now) == dense(wanted) != dense(text[start:end])
        prefix = prefix or _agrees(followed, start, replacement, now, wanted)
        was = followed.watched_with(start, end, text[start:end])
        diverged = diverged or not _on_the_way(now, was, wanted)
    else:
        told = told or diverged or len(steps) >= within
    otherwise = False if told else None
    return Match(otherwise, spaces or otherwise, prefix or spaces or otherwise)


def _on_the_way(now: str, was: str, wanted: str) -> bool:
    """Does ``now`` lie between, as typing goes: some of it written, some of the old deleted?"""
    written = common_head(now, wanted)
    return any(was.endswith(now[at:]) for at in range(written + 1)) or was.startswith(now)


def _agrees(followed: Followed, start: int, replacement: str, now: str, wanted: str) -> bool:
    region = followed.watched
    if region is None or len(replacement) < PREFIX:
        return False
    return common_head(now, wanted) - (start - region.old_start) >= PREFIX
