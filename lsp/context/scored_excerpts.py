"""Candidates for the context: excerpts of other places that help at the cursor, with scores.

A name near the cursor counts by its distance and by how rare it is in the workspace; a place where
it is defined, by how likely that is the one meant. :mod:`.selection` chooses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from posixpath import dirname
from typing import Literal, get_args

from redraft.model.edits.hunks import lines_of
from redraft.model.memo import Memo
from redraft.model.records import Diagnostic, RecentEdit, RelatedFile
from redraft.model.text.imported_files import family_of

from .index import DefinitionPlace, Entry, IndexGeneration
from .region import Lines, tokens_of

PieceKind = Literal["definition", "import", "viewed", "diagnostic", "pinned", "cells"]
#: Everything that may go into the context; evaluations leave some out.
KINDS: frozenset[PieceKind] = frozenset(get_args(PieceKind))

MOST_LINES = 14  # of an excerpt; training shows 5 to 14
_CHARS = 107  # of a line of an excerpt, on average at most
_LARGE = 6_000  # tokens of room from which excerpts are longer, and imported files are shown whole
_LONGER = 8  # times as many lines
_MARKS = 3.0  # tokens around an excerpt besides its path
_NEAR = 6.0  # lines at which a name counts half
_OF_EDITS = (0.6, 0.4, 0.3)  # what a name counts in the newest edits, the newest first
_MOST_PLACES = 4  # a name defined in more of them says little, unless an import names one
_LEAST = 0.12  # score below which an excerpt is not worth its tokens
#: How likely the only place of its name is meant if no import says so: in the same folder; a method
#: elsewhere; anything else where a language needs no import for it, and where it does.
_BESIDE, _METHOD, _WITHOUT_IMPORT, _IN_SPITE_OF_IMPORTS = 0.8, 0.5, 0.5, 0.2
_BY_IMPORT = frozenset(("python", "script", "rust", "lua", "css"))  # families
_SHORTEST = {
    "definition": 3,
    "import": 4,
    "viewed": 5,
    "diagnostic": 1,
    "pinned": 1,
    "cells": 1,
}  # lines worth showing
_VIEWS = 3  # other documents considered as just looked at
_VIEWED = 0.6  # score of what was just looked at, if it names all that is named here
_HALF_LIFE_S = 120.0  # of a look
_ABOVE, _BELOW = 5, 8  # lines shown around a place that was looked at
_ERRORS = 4  # diagnostics shown at most

_WORD = re.compile(r"[^\W\d]\w{2,}")
_DASHED = re.compile(r"[^\W\d]\w*(?:-\w+)+")  # names in style sheets


@dataclass(frozen=True, slots=True)
class Viewed:
    """A place in another open document where the user was."""

    path: str
    line: int  # 0-based
    at_s: float


@dataclass(frozen=True, slots=True)
class ScoredExcerpt:
    """An excerpt that may go into the prompt."""

    kind: PieceKind
    path: str
    first: int  # 0-based line
    last: int  # behind the last line
    text: str
    why: str  # for people
    score: float
    name: str = ""  # that it defines
    stamp: tuple[int, int] = (0, 0)  # of the file when it was read

    @property
    def tokens(self) -> float:
        """Tokens with its path, estimated."""
        return _MARKS + tokens_of(self.path) + sum(map(tokens_of, self.text.split("\n")))

    @property
    def related(self) -> RelatedFile:
        """The excerpt as a request takes it."""
        pinned, is_above = self.kind == "pinned", self.kind == "cells"
        return RelatedFile(self.path, self.text, self.why, pinned=pinned, is_above=is_above)

    def cut(self, tokens: float) -> ScoredExcerpt | None:
        """Return as many of its lines as fit; None if those are too few to help."""
        lines = self.text.split("\n")
        left = tokens - _MARKS - tokens_of(self.path)
        fit = 0
        while fit < len(lines) and (left := left - tokens_of(lines[fit])) >= 0:
            fit += 1
        if fit == len(lines):
            return self
        while fit and not lines[fit - 1].strip():
            fit -= 1
        if fit < _SHORTEST[self.kind]:
            return None
        last = min(self.last, self.first + fit)
        return replace(self, last=last, text="\n".join(lines[:fit]))


@dataclass(frozen=True, slots=True)
class ExcerptNeeds:
    """The surroundings of a cursor, by which excerpts are scored."""

    path: str
    language: str
    lines: Sequence[str]  # of the document
    line: int  # of the cursor, 0-based
    region: Lines
    reach: Lines  # lines of the document that the prompt shows anyway
    names: dict[str, float]  # near the cursor, and what each counts
    modules: tuple[tuple[str, ...], ...]  # imported; see imported_files.imported
    room: int  # tokens for excerpts
    index: IndexGeneration
    text_of: Callable[[str], str | None]  # of an indexed file

    @property
    def longest(self) -> int:
        """Lines of an excerpt at most."""
        return MOST_LINES * (_LONGER if self.room >= _LARGE else 1)


def near_names(
    lines: Sequence[str], region: Lines, line: int, column: int, edits: Sequence[RecentEdit]
) -> dict[str, float]:
    """Return the names in the region and the newest edits, with what each counts: 0 to 1.

    The word that the cursor is right behind is still being typed and does not count.
    """
    found: dict[str, float] = {}
    for at in range(*region):
        weight = 1 / (1 + abs(at - line) / _NEAR)
        for pattern in (_WORD, _DASHED):
            for match in pattern.finditer(lines[at]):
                if at != line or match.end() != column:
                    found[match[0]] = max(weight, found.get(match[0], 0.0))
    for weight, edit in zip(_OF_EDITS, reversed(edits), strict=False):
        changed = (text for sign, text in lines_of(edit.diff) if sign in "+-")
        for word in _WORD.findall("\n".join(changed)):
            found[word] = max(weight, found.get(word, 0.0))
    return found


def still_true(pieces: Iterable[ScoredExcerpt], needs: ExcerptNeeds) -> list[ScoredExcerpt]:
    """Return the excerpts in use whose file still holds them."""
    found = []
    for piece in pieces:
        entry = needs.index.get(piece.path)
        if piece.kind in ("viewed", "diagnostic") or (entry and entry.stamp == piece.stamp):
            found.append(piece)
        elif entry is not None and piece.kind == "definition":
            text = needs.text_of(piece.path)
            if text is not None and f"\n{piece.text}" in f"\n{text}":
                found.append(replace(piece, stamp=entry.stamp))
    return found


# --- definitions and imports --------------------------------------------------------------------


def of_definitions(needs: ExcerptNeeds) -> list[ScoredExcerpt]:
    """Return an excerpt of each definition that a name near the cursor means, and of imports."""
    meant = needs.index.find_meant(needs.modules, needs.language)
    found = []
    for name, weight in needs.names.items():
        worth = weight * needs.index.rarity(name)
        if worth < _LEAST:
            continue
        likelihood, place = _likeliest(needs, name, meant)
        if place is not None and worth * likelihood >= _LEAST:
            piece = _definition(needs, name, place, worth * likelihood)
            found += [piece] if piece is not None else []
    found += _outlines(needs, meant, {piece.path for piece in found})
    return [*found, *(_files(needs, meant) if needs.room >= _LARGE else ())]


def _likeliest(
    needs: ExcerptNeeds, name: str, meant: dict[str, Entry]
) -> tuple[float, DefinitionPlace | None]:
    """Return how likely ``name`` means a place, 0 to 1, and that place."""
    places = needs.index.places(name, needs.language)
    here = [place for place in places if place.path == needs.path]
    if any(needs.reach[0] <= place.first < needs.reach[1] for place in here):
        return 0.0, None  # the prompt shows it
    if here:
        return 0.9, here[0]
    imported = [place for place in places if place.path in meant]
    if imported:
        return 1.0, _main(imported)
    folder = dirname(needs.path)
    beside = [place for place in places if dirname(place.path) == folder]
    files = {place.path for place in beside or places}
    if not files or len(files) > _MOST_PLACES:
        return 0.0, None
    best = _main(beside or places)
    likelihood = (
        _IN_SPITE_OF_IMPORTS if family_of(needs.language) in _BY_IMPORT else _WITHOUT_IMPORT
    )
    likelihood = _METHOD if best.kind == "method" else likelihood
    return (_BESIDE if beside else likelihood) / len(files), best


def _main(places: Sequence[DefinitionPlace]) -> DefinitionPlace:
    """Return a type before a function before a value, and the longest of these."""
    rank = {"type": 2, "function": 1, "method": 1, "value": 0}
    return max(places, key=lambda place: (rank[place.kind], place.last - place.first))


def _definition(
    needs: ExcerptNeeds, name: str, place: DefinitionPlace, score: float
) -> ScoredExcerpt | None:
    """Return the beginning of a definition; None if the text is not at hand or does not hold it."""
    text = needs.text_of(place.path)
    last = min(place.last, place.first + needs.longest)
    body = "" if text is None else _body(_lines_of(text)[place.first : last])
    if name not in body:
        return None  # another name of the same hash, or the file has changed
    last = place.first + body.count("\n") + 1
    found: PieceKind = "definition"
    why = f"definition of {name}"
    return ScoredExcerpt(
        found, place.path, place.first, last, body, why, score, name, place.entry.stamp
    )


def _outlines(
    needs: ExcerptNeeds, meant: dict[str, Entry], covered: set[str]
) -> Iterator[ScoredExcerpt]:
    """Yield outlines of imported files that are named near the cursor but not covered."""
    for path, entry in meant.items():
        stem = path.rsplit("/", 1)[-1].split(".", 1)[0]
        worth = 0.5 * needs.names.get(stem, 0.0) * needs.index.rarity(stem)
        if worth < _LEAST or path in covered or path == needs.path:
            continue
        lines = _lines_of(needs.text_of(path) or "")
        spans = [entry.definition(at) for at in range(entry.definitions)]
        starts = {_headline(lines, first, last) for kind, first, last in spans if kind != "value"}
        order = [at for at in sorted(starts) if at < len(lines)][:MOST_LINES]
        body = _body([lines[at] for at in order])
        if body.strip():
            why = f"outline of {stem}, imported here"
            last = order[-1] + 1
            yield ScoredExcerpt("import", path, order[0], last, body, why, worth, stamp=entry.stamp)


def _headline(lines: Sequence[str], first: int, last: int) -> int:
    """Return the line of a definition that names it, behind decorators and the like."""
    at = first
    while at + 1 < min(last, len(lines)) and lines[at].lstrip().startswith(("@", "#[")):
        at += 1
    return at


def _files(needs: ExcerptNeeds, meant: dict[str, Entry]) -> Iterator[ScoredExcerpt]:
    """Yield imported files and those of the same folder, in parts, until they fill the room."""
    folder, family = dirname(needs.path), family_of(needs.language)
    beside = (
        entry
        for entry in needs.index.entries
        if dirname(entry.path) == folder and family_of(entry.language) == family
    )
    entries = {each.path: each for each in (*meant.values(), *beside) if each.path != needs.path}
    left, score = float(needs.room), _LEAST
    for path, entry in entries.items():
        lines = _lines_of(needs.text_of(path) or "")
        starts = sorted({entry.definition(at)[1] for at in range(entry.definitions)})
        why = "imported here" if path in meant else "in the same folder"
        first = 0
        while first < len(lines) and left > 0:
            ends = [at for at in starts if first < at <= first + needs.longest]
            last = len(lines) if first + needs.longest >= len(lines) else (ends or [0])[-1]
            last = max(last, min(first + needs.longest, len(lines))) if last <= first else last
            body, score = _body(lines[first:last]), 0.999 * score
            piece = ScoredExcerpt(
                "import", path, first, last, body, why, score, f"line {first}", entry.stamp
            )
            if body.strip():
                left -= piece.tokens
                yield piece
            first = last


def _body(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip()[: _CHARS * max(MOST_LINES, len(lines))]


def _lines_of(text: str) -> tuple[str, ...]:
    """Return the lines of a text. The same few are asked for with every new line of the user."""
    return _LINES.get(text, lambda text: tuple(text.split("\n")))


_LINES: Memo[str, tuple[str, ...]] = Memo(
    8 << 20, lambda lines: 60 * len(lines) + sum(map(len, lines))
)


# --- places looked at, diagnostics ---------------------------------------------------------------


def of_views(needs: ExcerptNeeds, views: Sequence[Viewed], now_s: float) -> Iterator[ScoredExcerpt]:
    """Yield the surroundings of places where the user was; the newest come first.

    They score by how much of what is named here they name.
    """
    rarities = {name: w * needs.index.rarity(name) for name, w in needs.names.items()}
    total = sum(sorted(rarities.values())[-30:]) or 1.0
    for view in views[:_VIEWS]:
        text = needs.text_of(view.path)
        if text is None:
            continue
        lines = _lines_of(text)
        first = max(0, min(view.line, len(lines) - 1) - _ABOVE)
        body = _body(lines[first : view.line + _BELOW])
        named = set(_WORD.findall(body)) & rarities.keys()
        shared = math.fsum(rarities[name] for name in named)  # exact, whatever their order
        fresh: float = 0.5 ** (max(0.0, now_s - view.at_s) / _HALF_LIFE_S)
        score = _VIEWED * fresh * (0.2 + 0.8 * min(1.0, 2 * shared / total))
        if body.strip() and score >= _LEAST:
            last = first + body.count("\n") + 1
            yield ScoredExcerpt("viewed", view.path, first, last, body, "looked at before", score)


def of_diagnostics(needs: ExcerptNeeds, diagnostics: Iterable[Diagnostic]) -> list[ScoredExcerpt]:
    """Return one excerpt with the errors and warnings in the region, each with its line.

    Those of the line being typed change with every character and are left out.
    """
    first, last = needs.region
    found = [
        each
        for each in diagnostics
        if first <= each.line < last and each.line != needs.line and each.severity <= 2
    ]
    found.sort(key=lambda each: (each.severity, abs(each.line - needs.line)))
    found = sorted(found[:_ERRORS], key=lambda each: each.line)
    if not found:
        return []
    rows = [f"{_one_line(each.message)}: {_one_line(needs.lines[each.line])}" for each in found]
    first, last = found[0].line, found[-1].line + 1
    why = f"{len(found)} of the diagnostics here"
    return [ScoredExcerpt("diagnostic", needs.path, first, last, "\n".join(rows), why, 0.7)]


def _one_line(message: str) -> str:
    return " ".join(message.split())[:160]
