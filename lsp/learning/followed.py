"""A text and what becomes of it, with the regions that changed.

Text that the user typed is kept apart from text that came from elsewhere, such as a paste, an
accepted suggestion, an agent or undo. Where the two meet, the result is unknown. Offsets are
``str`` indices.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from redraft.lsp.learning.recorded_moments import DocumentChange, PlacedEdit
from redraft.model.edits.edit import Edit


@dataclass(slots=True)
class FollowedRegion:
    """Part of the old text, and where its present text is. Outside of regions nothing changed."""

    old_start: int
    old_end: int
    start: int
    end: int
    foreign: bool = False

    @property
    def growth(self) -> int:
        """Characters by which the region is longer now."""
        return (self.end - self.start) - (self.old_end - self.old_start)


class Followed:
    """The text of an edit and what becomes of it.

    Args:
        edit: its range is a region from the beginning, which is watched.
    """

    def __init__(self, edit: Edit) -> None:
        self.old = self.now = edit.text
        self.watched = FollowedRegion(edit.start, edit.end, edit.start, edit.end)
        self.regions = [self.watched]  # by place, never touching
        self.mixed = False  # typed or watched text met text from elsewhere

    @property
    def watched_text(self) -> str:
        """The text of the watched region now."""
        return self.now[self.watched.start : self.watched.end]

    def replace_watched(self, start: int, end: int, text: str) -> str:
        """Return the watched region with ``text`` in place of old[start:end]."""
        region = self.watched
        return self.old[region.old_start : start] + text + self.old[end : region.old_end]

    def apply(self, step: DocumentChange) -> None:
        """Apply a change of the document."""
        for edit in reversed(step.edits):
            self._apply(edit, foreign=not step.is_typed)

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

    def old_parts(self, lines: Iterable[tuple[int, int]], edit: Edit | None = None) -> str:
        """Return the old text of some lines, changed by an ``edit`` within them."""
        parts = []
        for low, high in lines:
            if edit is not None and low <= edit.start and edit.end <= high:
                parts.append(self.old[low : edit.start] + edit.new + self.old[edit.end : high])
            else:
                parts.append(self.old[low:high])
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
