"""A text through later changes: which parts of it changed, by whose hand, and into what.

Regions are kept apart: what the user typed, and what came from elsewhere (a paste, an accepted
suggestion, an agent, undo). Where the two meet, nobody can tell any more what the user would have
typed. Offsets are ``str`` indices. Pure; knows nothing of recordings or of metrics.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PlacedEdit:
    """``text`` in place of [start, end) of the text as it was before the change."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class DocumentChange:
    """One change of a document: edits that apply together, by place, none overlapping."""

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
        """What the watched region would be with ``text`` in place of old[start:end]."""
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
        """The whole lines of the old text, [start, end) each, that hold what was typed or watched.
        Where they hold text from elsewhere too, the text is ``mixed``."""
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
        """What became of those lines."""
        return "".join(self.now[self._start(low) : self._end(high)] for low, high in lines)

    def _start(self, at: int) -> int:
        return at + sum(r.growth for r in self.regions if r.old_start < at)

    def _end(self, at: int) -> int:
        """What the user put at the very end of the text belongs to its last line."""
        return at + sum(
            r.growth
            for r in self.regions
            if r.old_start < at + (at == len(self.old) and not r.foreign)
        )
