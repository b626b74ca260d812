"""Context of training rows: excerpts of other files, and documents and histories cut to a length.

Excerpts are definitions of what a file names, and places that the same commit changed: a cheap
substitute for what the language server gathers from a workspace.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from posixpath import dirname
from typing import NamedTuple

from ..edits.hunks import shift_of
from ..records import RecentEdit, RelatedFile
from ..text.lines import estimate, estimate_text
from .commit_edits import FileChange

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


class _FilePlace(NamedTuple):
    path: str
    lines: Sequence[str]
    line: int


class Neighbours:
    """Definitions in some files of one repository.

    Args:
        files: path and text of each.
    """

    def __init__(self, files: Iterable[tuple[str, str]]) -> None:
        self._places: dict[str, list[_FilePlace]] = {}
        self._heads: list[_FilePlace] = []
        for path, text in files:
            lines = text.split("\n")
            self._heads.append(_FilePlace(path, lines, 0))
            for match in _DEFINITION.finditer(text):
                place = _FilePlace(path, lines, text.count("\n", 0, match.start(1)))
                self._places.setdefault(match[1], []).append(place)

    def draw_excerpts(self, path: str, near: str, rng: random.Random) -> tuple[RelatedFile, ...]:
        """Return up to two definitions of what the text ``near`` the cursor names.

        Where it names none, the result is sometimes the beginning of a file in the same folder.
        """
        found = []
        for name in sorted(set(_WORD.findall(near)) & self._places.keys()):
            places = self._places[name]
            if len(places) <= _COMMON and all(place.path != path for place in places):
                found.append((name, places[0]))
        if found:
            chosen = rng.sample(found, min(len(found), rng.randint(1, 2)))
            return tuple(_excerpt(place, f"definition of {name}", rng) for name, place in chosen)
        heads = [h for h in self._heads if h.path != path and dirname(h.path) == dirname(path)]
        if heads and rng.random() < 0.3:
            return (_excerpt(rng.choice(heads), "in the same folder", rng),)
        return ()


def excerpt_of_change(
    others: Sequence[FileChange], done: int, rng: random.Random
) -> tuple[RelatedFile, ...]:
    """Return an excerpt of another file of the commit where it changed.

    Args:
        done: how many of ``others`` have been edited already; the rest are as they were.
    """
    if not others:
        return ()
    at = rng.randrange(len(others))
    change = others[at]
    hunk = rng.choice(change.hunks)
    lines, line = change.old, hunk.first
    if at < done:
        lines, line = change.new, line + shift_of(change.hunks, hunk)
    top = max(0, min(line - rng.randint(0, 6), len(lines) - 1))
    return (_excerpt(_FilePlace(change.path, lines, top), "changed in the same commit", rng),)


def _excerpt(place: _FilePlace, why: str, rng: random.Random) -> RelatedFile:
    lines = place.lines[place.line : place.line + rng.randint(*_EXCERPT_LINES)]
    return RelatedFile(place.path, "\n".join(lines)[:_LONGEST], why)


# --- documents and histories cut to a number of tokens ----------------------------------------

# Serving has room for thousands of tokens and training rows for hundreds. A whole document rendered
# with a small budget would lose its recent edits first; a shorter document rendered with room to
# spare looks as it does when serving.


def crop(
    lines: Sequence[str], first: int, last: int, tokens: float, above: float
) -> tuple[int, int]:
    """Return the lines [top, bottom) around [first, last) of about ``tokens`` tokens.

    Args:
        above: share of the remaining tokens for the lines above; one side gets what the other
            side cannot use.
    """
    room = tokens - sum(map(estimate, lines[first:last]))
    upward = _fitting(lines[:first][::-1], room * above)
    below = room - sum(map(estimate, lines[first - upward : first]))
    downward = _fitting(lines[last:], below)
    spare = below - sum(map(estimate, lines[last : last + downward]))
    upward += _fitting(lines[: first - upward][::-1], spare)
    return first - upward, last + downward


def _fitting(lines: Sequence[str], room: float) -> int:
    """Return how many of ``lines`` fit."""
    for taken, line in enumerate(lines):
        room -= estimate(line)
        if room < 0:
            return taken
    return len(lines)


def newest(edits: Sequence[RecentEdit], tokens: float) -> tuple[RecentEdit, ...]:
    """Return the last edits that fit, each whole."""
    kept = 0
    for edit in reversed(edits):
        tokens -= estimate_text(edit.diff) + estimate(edit.path)
        if tokens < 0:
            break
        kept += 1
    return tuple(edits[len(edits) - kept :])


def cost(edits: Sequence[RecentEdit], related: Sequence[RelatedFile]) -> float:
    """Return about how many tokens they take."""
    return sum(estimate_text(e.diff) for e in edits) + sum(estimate_text(r.text) for r in related)
