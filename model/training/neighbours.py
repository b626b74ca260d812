"""Excerpts of other files that help with one place in a file: definitions of what it names.

A stand-in, cheap enough for packing, for what the language server gathers from a whole workspace.
Knows nothing of tokens or prompts.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from posixpath import dirname

from ..edits.hunks import shift_of
from ..records import RelatedFile
from .commits import FileChange

_DEFINITION = re.compile(
    r"^[ \t]*(?:(?:export|default|pub|async|public|private|protected|static|abstract|final|unsafe)"
    r"(?:\([a-z]+\))?\s+)*"
    r"(?:def|class|function|fn|func|struct|enum|trait|interface|type|const)\s+"
    r"(?:\([^()\n]*\)\s*)?([^\W\d]\w{2,})",
    re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d]\w{2,}")
_EXCERPT_LINES = (5, 14)
_LONGEST = 1_500  # characters of an excerpt
_COMMON = 3  # a name that more files define says little


@dataclass(frozen=True, slots=True)
class _Place:
    path: str
    lines: Sequence[str]
    line: int


class Neighbours:
    """Where some files of one repository define what."""

    def __init__(self, files: Iterable[tuple[str, str]]) -> None:
        """``files``: path and text of each."""
        self._places: dict[str, list[_Place]] = {}
        self._heads: list[_Place] = []
        for path, text in files:
            lines = text.split("\n")
            self._heads.append(_Place(path, lines, 0))
            line, counted = 0, 0
            for match in _DEFINITION.finditer(text):
                line += text.count("\n", counted, match.start(1))
                counted = match.start(1)
                self._places.setdefault(match[1], []).append(_Place(path, lines, line))

    def related(self, path: str, near: str, rng: random.Random) -> tuple[RelatedFile, ...]:
        """Up to two definitions of what the text ``near`` the cursor names; where it names none,
        sometimes the beginning of a file in the same folder."""
        found = []
        for name in sorted(set(_WORD.findall(near)) & self._places.keys()):
            places = self._places[name]
            if len(places) <= _COMMON and all(place.path != path for place in places):
                found.append((name, places[0]))
        if found:
            chosen = rng.sample(found, min(len(found), rng.randint(1, 2)))
            return tuple(_excerpt(place, f"definition of {name}", rng) for name, place in chosen)
        beside = [
            head
            for head in self._heads
            if head.path != path and dirname(head.path) == dirname(path)
        ]
        if beside and rng.random() < 0.3:
            return (_excerpt(rng.choice(beside), "in the same folder", rng),)
        return ()


def changed_with(
    others: Sequence[FileChange], done: int, rng: random.Random
) -> tuple[RelatedFile, ...]:
    """An excerpt of another file of the commit where it changed; the first ``done`` of ``others``
    have been edited already, the rest are as they were."""
    if not others:
        return ()
    at = rng.randrange(len(others))
    change = others[at]
    hunk = rng.choice(change.hunks)
    lines, place = change.old, hunk.first
    if at < done:
        lines, place = change.new, place + shift_of(change.hunks, hunk)
    top = max(0, min(place - rng.randint(0, 6), len(lines) - 1))
    return (_excerpt(_Place(change.path, lines, top), "changed in the same commit", rng),)


def _excerpt(place: _Place, why: str, rng: random.Random) -> RelatedFile:
    lines = place.lines[place.line : place.line + rng.randint(*_EXCERPT_LINES)]
    return RelatedFile(place.path, "\n".join(lines)[:_LONGEST], why)
