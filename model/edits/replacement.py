"""Some text of a document and what to put in its place, seen by characters and by lines.

Pure; knows nothing of who proposes it, of how sure that is, or of what becomes of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..text.common import common_ends


@dataclass(frozen=True, slots=True)
class Replacement:
    """``new`` in place of ``text[start:end]``."""

    text: str  # the document
    start: int  # index into text
    end: int  # index into text, behind what is replaced
    new: str

    @property
    def old(self) -> str:
        return self.text[self.start : self.end]

    @property
    def result(self) -> str:
        """The document with it made."""
        return self.text[: self.start] + self.new + self.text[self.end :]

    @property
    def lines(self) -> tuple[int, int]:
        """The 0-based lines [first, last) of the document that it touches."""
        least = self.least()
        first = self.text.count("\n", 0, least.start)
        return first, first + least.old.count("\n") + 1

    def least(self) -> Replacement:
        """The same without characters that stay at either end."""
        head, tail = common_ends(self.old, self.new)
        start, end = self.start + head, self.end - tail
        return replace(self, start=start, end=end, new=self.new[head : len(self.new) - tail])

    def whole_lines(self) -> tuple[int, int, str]:
        """What it does to lines: where the first of them starts, where the last one ends before its
        newline, and the lines that come there instead. Lines that stay are left out."""
        least = self.least()
        start = self.text.rfind("\n", 0, least.start) + 1
        end = self.text.find("\n", least.end)
        end = len(self.text) if end < 0 else end
        before, after = self.text[start : least.start], self.text[least.end : end]
        return start, end, before + least.new + after

    def shape(self) -> tuple[int, int, str]:
        """The same as :meth:`whole_lines`, but lines that come or go as a whole touch no other."""
        least = self.least()
        starts = least.start == 0 or self.text[least.start - 1] == "\n"
        if starts and all(part == "" or part.endswith("\n") for part in (least.old, least.new)):
            return least.start, least.end, least.new
        return self.whole_lines()
