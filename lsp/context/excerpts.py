"""Candidates for the context: excerpts of other places that help at the cursor, each with a score.

What is named near the cursor counts by how close it stands and how rare it is in the workspace; a
place it is defined in, by how surely it is the one that is meant. Pure given a snapshot of the
index. Knows nothing of budgets; :mod:`.gather` chooses.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from posixpath import dirname
from typing import Literal

from redraft.model.edits.hunks import lines_of
from redraft.model.memo import Memo
from redraft.model.records import Diagnostic, RecentEdit, RelatedFile
from redraft.model.text.imported_files import family_of

from .index import DefinitionPlace, Entry, Snapshot
from .region import Lines, tokens_of

PieceKind = Literal["definition", "import", "viewed", "diagnostic"]

MOST_LINES = 14  # of an excerpt; training shows 5 to 14
_MOST_CHARS = 1_500  # of an excerpt
_MARKS = 3.0  # tokens around an excerpt, its path aside
_NEAR = 6.0  # lines at which a name counts half
_OF_EDITS = (0.6, 0.4, 0.3)  # what a name counts in the newest edits, the newest first
_MOST_PLACES = 4  # a name defined in more of them says little, unless an import tells which
_LEAST = 0.12  # score below which an excerpt is not worth its tokens
#: How likely the only place of its name is meant, where no import says so: in the same folder; a
#: method elsewhere; anything else where a language needs no import for it, and where it does.
_BESIDE, _METHOD, _WITHOUT_IMPORT, _IN_SPITE_OF_IMPORTS = 0.8, 0.5, 0.5, 0.2
_BY_IMPORT = frozenset(("python", "script", "rust", "lua", "css"))  # families
_SHORTEST = {"definition": 3, "import": 4, "viewed": 5, "diagnostic": 1}  # lines worth showing
_VIEWED = 0.6  # score of what was just looked at, where it names all that stands here
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
class Piece:
    """An excerpt that may go into the prompt."""

    kind: PieceKind
    path: str
    first: int  # 0-based line
    last: int  # behind the last line
    text: str
    why: str  # for people
    score: float
    name: str = ""  # what it defines
    stamp: tuple[int, int] = (0, 0)  # of the file when it was read

    @property
    def tokens(self) -> float:
        """What it costs, estimated."""
        return _MARKS + tokens_of(self.path) + sum(map(tokens_of, self.text.split("\n")))

    @property
    def related(self) -> RelatedFile:
        return RelatedFile(self.path, self.text, self.why)

    def cut(self, tokens: float) -> Piece | None:
        """As many of its lines as fit; None where those are too few to say anything."""
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
        text = "\n".join(lines[:fit])
        return Piece(
            *(self.kind, self.path, self.first, last, text),
            *(self.why, self.score, self.name, self.stamp),
        )


@dataclass(frozen=True, slots=True)
class Scene:
    """What the ranking looks at."""

    path: str
    language: str
    names: dict[str, float]  # near the cursor, and how much each counts
    reach: Lines  # lines of this file that the prompt shows anyway
    modules: tuple[tuple[str, ...], ...]  # imported; see imports.imported
    snapshot: Snapshot
    text_of: Callable[[str], str | None]  # of an indexed file


def near_names(
    lines: Sequence[str], region: Lines, line: int, column: int, edits: Sequence[RecentEdit]
) -> dict[str, float]:
    """Names in the region and the newest edits, with what each counts: 0 … 1.

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


# --- definitions and imports --------------------------------------------------------------------


def of_definitions(scene: Scene) -> list[Piece]:
    """An excerpt for each name near the cursor whose definition is known and not in sight."""
    meant = scene.snapshot.meant(scene.modules, scene.language)
    found = []
    for name, weight in scene.names.items():
        worth = weight * scene.snapshot.rarity(name)
        if worth < _LEAST:
            continue
        best = _likeliest(scene, name, meant)
        if best is not None and worth * best[0] >= _LEAST:
            piece = _definition(scene, name, best[1], worth * best[0])
            found += [piece] if piece is not None else []
    return [*found, *_of_modules(scene, meant, {piece.path for piece in found})]


def _likeliest(
    scene: Scene, name: str, meant: dict[str, Entry]
) -> tuple[float, DefinitionPlace] | None:
    """The place that ``name`` most likely means, and how likely: 0 … 1."""
    places = scene.snapshot.places(name, scene.language)
    here = [place for place in places if place.path == scene.path]
    if any(_in_sight(scene, place) for place in here):
        return None  # the prompt shows it
    if here:
        return 0.9, here[0]
    imported = [place for place in places if place.path in meant]
    if imported:
        return 1.0, _main(imported)
    folder = dirname(scene.path)
    beside = [place for place in places if dirname(place.path) == folder]
    files = {place.path for place in beside or places}
    if not places or len(files) > _MOST_PLACES:
        return None
    best = _main(beside or places)
    return _certainty(best, bool(beside), family_of(scene.language)) / len(files), best


def _certainty(place: DefinitionPlace, beside: bool, family: str) -> float:
    if beside:
        return _BESIDE
    if place.kind == "method":
        return _METHOD
    return _IN_SPITE_OF_IMPORTS if family in _BY_IMPORT else _WITHOUT_IMPORT


def _in_sight(scene: Scene, place: DefinitionPlace) -> bool:
    return scene.reach[0] <= place.first < scene.reach[1]


def _main(places: Sequence[DefinitionPlace]) -> DefinitionPlace:
    """Of several, a type before a function before a value, and the longest of these."""
    rank = {"type": 2, "function": 1, "method": 1, "value": 0}
    return max(places, key=lambda place: (rank[place.kind], place.last - place.first))


def _definition(scene: Scene, name: str, place: DefinitionPlace, score: float) -> Piece | None:
    text = scene.text_of(place.path)
    if text is None:
        return None
    return excerpt(place, text, name, score)


def excerpt(place: DefinitionPlace, text: str, name: str, score: float) -> Piece | None:
    """The beginning of a definition; None where the text has not got it."""
    lines = _lines_of(text)[place.first : min(place.last, place.first + MOST_LINES)]
    body = "\n".join(lines).rstrip()[:_MOST_CHARS]
    if name not in body:
        return None  # another name of the same hash, or the file has moved on
    last = place.first + body.count("\n") + 1
    why = f"definition of {name}"
    return Piece(
        "definition", place.path, place.first, last, body, why, score, name, place.entry.stamp
    )


def _lines_of(text: str) -> tuple[str, ...]:
    """The same few texts are asked for with every new line; splitting one of 10,000 takes 2 ms."""
    return _LINES.get(text, lambda text: tuple(text.split("\n")))


_LINES: Memo[str, tuple[str, ...]] = Memo(
    8 << 20, lambda lines: 60 * len(lines) + sum(map(len, lines))
)


def _of_modules(scene: Scene, meant: dict[str, Entry], covered: set[str]) -> list[Piece]:
    """Outlines of imported files that are named near the cursor without it being known what of
    them is used."""
    found = []
    for path, entry in meant.items():
        stem = path.rsplit("/", 1)[-1].split(".", 1)[0]
        worth = 0.5 * scene.names.get(stem, 0.0) * scene.snapshot.rarity(stem)
        if worth < _LEAST or path in covered or path == scene.path:
            continue
        text = scene.text_of(path)
        if text is not None:
            piece = _outline(entry, text, worth, f"outline of {stem}, imported here")
            found += [piece] if piece is not None else []
    return found


def _outline(entry: Entry, text: str, score: float, why: str) -> Piece | None:
    """The first lines of what a file defines."""
    lines = _lines_of(text)
    spans = [entry.definition(at) for at in range(entry.definitions)]
    starts = {_headline(lines, first, last) for kind, first, last in spans if kind != "value"}
    order = sorted(starts)[:MOST_LINES]
    shown = [lines[at] for at in order if at < len(lines)]
    if not shown:
        return None
    body = "\n".join(shown)[:_MOST_CHARS]
    return Piece(
        *("import", entry.path, order[0], order[-1] + 1, body, why, score),
        stamp=entry.stamp,
    )


def _headline(lines: Sequence[str], first: int, last: int) -> int:
    """The line of a definition that names it: behind decorators and their like."""
    at = first
    while at + 1 < min(last, len(lines)) and lines[at].lstrip().startswith(("@", "#[")):
        at += 1
    return at


# --- what was looked at, what is wrong -----------------------------------------------------------


def of_views(scene: Scene, views: Iterable[Viewed], now_s: float) -> list[Piece]:
    """Surroundings of places where the user just was, the more of the same they name the better."""
    rarities = {name: w * scene.snapshot.rarity(name) for name, w in scene.names.items()}
    total = sum(sorted(rarities.values())[-30:]) or 1.0
    found = []
    for view in views:
        text = scene.text_of(view.path)
        if text is None or view.path == scene.path:
            continue
        lines = _lines_of(text)
        first = max(0, min(view.line, len(lines) - 1) - _ABOVE)
        body = "\n".join(lines[first : view.line + _BELOW]).rstrip()[:_MOST_CHARS]
        named = set(_WORD.findall(body)) & rarities.keys()
        shared = math.fsum(rarities[name] for name in named)  # exact, whatever their order
        fresh: float = 0.5 ** (max(0.0, now_s - view.at_s) / _HALF_LIFE_S)
        score = _VIEWED * fresh * (0.2 + 0.8 * min(1.0, 2 * shared / total))
        if body.strip() and score >= _LEAST:
            last = first + body.count("\n") + 1
            found.append(Piece("viewed", view.path, first, last, body, "looked at before", score))
    return found


def of_diagnostics(
    path: str, lines: Sequence[str], diagnostics: Iterable[Diagnostic], region: Lines, line: int
) -> list[Piece]:
    """One piece with the errors and warnings in the region, each with the line it is about, since
    the region numbers lines otherwise; those of the line being typed come and go with every
    character and stay out."""
    told = [
        each
        for each in diagnostics
        if region[0] <= each.line < region[1] and each.line != line and each.severity <= 2
    ]
    told.sort(key=lambda each: (each.severity, abs(each.line - line)))
    told = sorted(told[:_ERRORS], key=lambda each: each.line)
    if not told:
        return []
    rows = [f"{_one_line(each.message)}: {_one_line(lines[each.line])}" for each in told]
    first, last = told[0].line, told[-1].line + 1
    why = f"{len(told)} of the diagnostics here"
    return [Piece("diagnostic", path, first, last, "\n".join(rows), why, 0.7)]


def _one_line(message: str) -> str:
    return " ".join(message.split())[:160]
