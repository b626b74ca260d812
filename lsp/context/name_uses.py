"""Places that use the names of an edit, in the same file and in other open files.

The likeliest places come first. Pure functions; the caller decides about how many places it asks
the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from redraft.model.edits.edit import Edit
from redraft.model.records import Importable, RecentEdit
from redraft.model.rules.imports import find_imports
from redraft.model.rules.propose import place_key
from redraft.model.rules.renames import RenameScopes
from redraft.model.rules.touched_names import REPORTED, Grown, Touched
from redraft.model.text.code_queries import prose_rows
from redraft.model.text.imported_files import family_of
from redraft.model.text.lines import defines, defines_function
from redraft.model.text.names import places_of
from redraft.model.text.syntax import language_of

from ..documents.open_documents import OpenText

#: Factor of a place in another file; and in a file that defines the same name itself.
_ELSEWHERE, _NAMESAKE = 0.9, 0.4
#: Factor of a place in another file while the user's file still has the renamed name.
_THIS_FILE_FIRST = 0.5
_IN_COMMENT = 0.3
_DEFINITION = 1.2  # where a call changed, its definition comes first
_LEAST = 0.25  # below which a place is not worth a question
_MOST_HITS = 100  # of one name in one file; a more frequent name says nothing
_MOST_FILES = 30
_MOST_CHARACTERS = 5_000_000  # searched in all files together
#: The score of a place where an import is missing, and how far from it an edit may be.
_UNIMPORTED, _NEAR_IMPORTS = 0.85, 12
_MOST_IMPORTS = 20
_NAME = re.compile(r"[^\W\d]\w*")
_NEAR = 2  # lines from a mention that an edit may be away and still follow from it
_NOT_IMPORTED = "it is not imported"
#: Reasons for which a line that the edits wrote may still be a place.
_IN_ANY_LINE = frozenset((_NOT_IMPORTED, REPORTED))


@dataclass(frozen=True, slots=True)
class Mention:
    """Line that may have to change because of the last edits."""

    document: OpenText
    line: int  # 0-based
    at: int  # index into the document's text, behind the name
    touched: Touched
    score: float


@dataclass(frozen=True, slots=True)
class Traces:
    """Changes by the last edits that may make other edits necessary.

    Args:
        names: names that the edits changed.
        done: lines that the edits wrote, without indentation.
        importable: names that the workspace defines, for those that no import brings in.
        edits: the edits, oldest first; their renames end where a name is bound again.
        reported: lines of the document, 0-based, where the editor reports what the edits caused.
        above: the text that the document continues; what it binds needs no import.
    """

    names: Sequence[Touched]
    done: Collection[str] = ()
    importable: Sequence[Importable] = ()
    edits: Sequence[RecentEdit] = ()
    reported: Sequence[tuple[int, Touched]] = ()
    above: str = ""


def find_places(
    traces: Traces,
    here: OpenText,
    near: tuple[int, int],
    line: int,
    others: Iterable[OpenText],
    definers: Callable[[str, str], Collection[str]],
) -> list[Mention]:
    """Return the places outside of what was asked about already, the likeliest first.

    Args:
        here: the document that the user is in, at ``line``; its lines [first, last) ``near`` were
            asked about.
        definers: returns the paths of the files that define a name in a language.
    """
    found: list[tuple[float, int, tuple[int, ...], Mention]] = []
    left = set[str]()  # renamed names that the code of this document still uses
    for order, document in enumerate(_searched(here, others)):
        best: dict[int, tuple[Mention, str]] = {}
        named = _in_text(traces.names, document, order > 0, definers, traces.edits)
        errors = _at_line_ends(traces.reported, document) if order == 0 else ()
        missing = _unimported(traces, document) if order == 0 else ()
        for place, text in chain(errors, named, _at_line_ends(missing, document)):
            known = best.get(place.line)
            near_here = order == 0 and near[0] <= place.line < near[1]
            if near_here or (text.strip() in traces.done and place.touched.why not in _IN_ANY_LINE):
                continue
            if known is None or place.score > known[0].score:
                best[place.line] = place, text
        for place, text in best.values():
            name = place.touched.name
            cursor = line if order == 0 else 0
            key = place_key(text, name, place.line, cursor)
            is_code = place.score > _IN_COMMENT * place.touched.weight
            if order == 0 and is_code and place.touched.why == "renamed":
                left.add(name)
            score = place.score * (_THIS_FILE_FIRST if order > 0 and name in left else 1.0)
            found.append((-round(score, 2), order, key, place))
    return [place for *_, place in sorted(found, key=lambda one: one[:3])]


def is_astray(edit: Edit, grown: Grown) -> bool:
    """Return whether an edit adds changed parameters to the wrong function.

    That is: to the parameters or the body of a definition that names no function whose parameters
    changed.
    """
    if not grown.functions:
        return False
    first, last = edit.lines
    lines = edit.text.split("\n")
    header = next((row for row in _outwards(lines, first) if defines_function(lines[row])), None)
    if header is None or _names_any(_block(lines, header), grown.functions):
        return False
    if header == first:
        return True
    start, end, new = edit.whole_lines()
    come = {*_NAME.findall(new.lower())} - {*_NAME.findall(edit.text[start:end].lower())}
    near = lines[max(0, first - _NEAR) : last + _NEAR]
    return not come.isdisjoint(grown.words) and not _names_any(near, grown.functions)


def _names_any(lines: Iterable[str], names: Collection[str]) -> bool:
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    return any(pattern.search(line) for line in lines)


def _outwards(lines: Sequence[str], row: int) -> Iterator[int]:
    """Yield the line and the lines above it with ever less indentation."""
    depth = len(lines[row]) + 1
    for at in range(row, -1, -1):
        indent = len(lines[at]) - len(lines[at].lstrip())
        if lines[at].strip() and indent < depth:
            depth = indent
            yield at


def _block(lines: Sequence[str], at: int) -> Iterator[str]:
    """Yield the line of a definition and those of its body."""
    yield lines[at]
    depth = len(lines[at]) - len(lines[at].lstrip())
    for line in lines[at + 1 :]:
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            return
        yield line


def follows(edit: Edit, names: Iterable[Touched]) -> bool:
    """Return whether an edit changes a line that has one of the names.

    Names that were not renamed may be in the next lines. A name that is not imported may be some
    lines away, or in the new text.
    """
    first, last = edit.lines
    lines = edit.text.split("\n")

    def near(one: Touched) -> Sequence[str]:
        if one.why == _NOT_IMPORTED:
            return [*lines[max(0, first - _NEAR_IMPORTS) : last + _NEAR_IMPORTS], edit.new]
        away = 0 if one.why == "renamed" else _NEAR
        return lines[max(0, first - away) : last + away]

    return any(
        re.search(rf"\b{re.escape(one.name)}\b", line) for one in names for line in near(one)
    )


def _searched(here: OpenText, others: Iterable[OpenText]) -> Iterator[OpenText]:
    """Yield this document, then those of the same family of languages, within limits."""
    yield here
    left = _MOST_CHARACTERS
    family, count = _family(here), 0
    for other in others:
        if other.uri == here.uri or _family(other) != family:
            continue
        count, left = count + 1, left - len(other.text)
        if count > _MOST_FILES or left < 0:
            return
        yield other


def _family(document: OpenText) -> str:
    return family_of(_language(document))


def _language(document: OpenText) -> str:
    return document.language or language_of(document.path) or ""


def _in_text(
    names: Sequence[Touched],
    document: OpenText,
    elsewhere: bool,
    definers: Callable[[str, str], Collection[str]],
    edits: Sequence[RecentEdit],
) -> Iterator[tuple[Mention, str]]:
    """Yield the places in one document, each with its line."""
    text, language = document.text, _language(document)
    scopes = RenameScopes(edits, text, document.path, language)
    prose: set[int] | None = None  # its rows, found when they are needed
    for one in names:
        hits = [*islice(places_of(one.name, text), _MOST_HITS + 1)]
        if not 0 < len(hits) <= _MOST_HITS:
            continue  # it is used nowhere, or almost everywhere
        share = 1.0
        if elsewhere:
            namesake = one.defined and document.path in definers(one.name, document.language)
            share = _NAMESAKE if namesake else _ELSEWHERE
        row, counted = 0, 0
        for at in hits:
            row, counted = row + text.count("\n", counted, at), at
            end = text.find("\n", at)
            line = text[text.rfind("\n", 0, at) + 1 : end if end >= 0 else len(text)]
            if one.why == "renamed" and scopes.is_bound_again(one.name, row):
                continue
            prose = prose_rows(text, language) if prose is None else prose
            score = one.weight * share * _worth(line, one, row in prose)
            if score >= _LEAST:
                yield Mention(document, row, at + len(one.name), one, score), line


def _at_line_ends(
    places: Iterable[tuple[int, Touched]], document: OpenText
) -> Iterator[tuple[Mention, str]]:
    """Return places of a document that are known by their 0-based line, each at its line's end."""
    text = document.text
    lines = text.split("\n")
    for line, one in places:
        at = sum(len(each) + 1 for each in lines[:line]) + len(lines[line])
        yield Mention(document, line, at, one, one.weight), lines[line]


def _unimported(traces: Traces, document: OpenText) -> Iterator[tuple[int, Touched]]:
    """Return the lines of a document where an import is missing that the edits need."""
    text, wanted = document.text, (traces.done, traces.importable)
    found = find_imports(text, _language(document), *wanted, above=traces.above)
    rows = text.count("\n")
    known = {(min(one.first, rows), one.name) for one in islice(found, _MOST_IMPORTS)}
    return ((row, Touched(name, _UNIMPORTED, _NOT_IMPORTED)) for row, name in sorted(known))


def _worth(line: str, one: Touched, is_prose: bool) -> float:
    if is_prose:
        return _IN_COMMENT
    return _DEFINITION if not one.defined and defines(line, one.name) else 1.0
