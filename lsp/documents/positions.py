"""UTF-16 positions of the Language Server Protocol against ``str`` indices.

A client may send half of a surrogate pair by itself. A ``str`` is *whole* when no lone high
surrogate precedes a lone low one: each text then has one form, and each position one index.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from redraft.model.validation import Exactly
from redraft.model.validation import has_lone_surrogates as has_lone_surrogates
from redraft.model.validation import without_surrogates as without_surrogates

#: Beyond it a client's number is clamped: "the end" is often sent as the largest integer there is.
Offset = Annotated[int, Exactly(0, 2**31 - 1, clamped=True)]

_UTF16 = "utf-16-le"
_KEEP = "surrogatepass"


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """Place between two characters, as the protocol counts."""

    line: Offset  # 0-based
    character: Offset  # 0-based, in UTF-16 code units

    def as_json(self) -> dict[str, int]:
        """Return the form in messages."""
        return {"line": self.line, "character": self.character}


@dataclass(frozen=True, slots=True)
class Range:
    """From ``start`` up to, not including, ``end``."""

    start: Position
    end: Position

    @property
    def ends(self) -> tuple[Position, Position]:
        """Start and end."""
        return self.start, self.end

    def as_json(self) -> dict[str, dict[str, int]]:
        """Return the form in messages."""
        return {"start": self.start.as_json(), "end": self.end.as_json()}


def units(text: str) -> int:
    """Return the length of ``text`` in UTF-16 code units."""
    return len(text) if text.isascii() else len(text.encode(_UTF16, _KEEP)) // 2


def index_at(line: str, character: int) -> int:
    """Return the ``str`` index of a UTF-16 offset in ``line``.

    Past the end means the end, as the protocol demands; inside a surrogate pair means before it.
    """
    if line.isascii():
        return min(character, len(line))
    head = line[:character].encode(_UTF16, _KEEP)[: 2 * character].decode(_UTF16, _KEEP)
    index = len(head)
    inside_pair = bool(head) and head[-1] != line[index - 1]
    return index - 1 if inside_pair else index


def character_at(line: str, index: int) -> int:
    """Return the UTF-16 offset of a ``str`` index in ``line``."""
    return units(line[:index])


def cut(line: str, character: int) -> tuple[str, str]:
    """Split ``line`` at a UTF-16 offset; inside a pair, each side keeps its half."""
    index = index_at(line, character)
    if line.isascii() or index == len(line) or character_at(line, index) == character:
        return line[:index], line[index:]
    high, low = line[index].encode(_UTF16)[:2], line[index].encode(_UTF16)[2:]
    left, right = high.decode(_UTF16, _KEEP), low.decode(_UTF16, _KEEP)
    return line[:index] + left, right + line[index + 1 :]


def whole(text: str) -> str:
    """Join adjacent halves of surrogate pairs."""
    if not has_lone_surrogates(text):
        return text
    return text.encode(_UTF16, _KEEP).decode(_UTF16, _KEEP)


def join(*parts: str) -> str:
    """Join the parts to one whole text."""
    return whole("".join(parts))
