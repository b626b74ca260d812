"""Bounds of recent edits: other bindings and classes of the same name, which they do not reach.

A parameter that was renamed in one function is not the parameter of another one. Names are looked
up by syntax tree (:mod:`..text.scopes`); in a language without one every place is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import accumulate
from pathlib import PurePosixPath

from ..edits.edit import Edit
from ..edits.origins import Rename, swaps
from ..edits.recent_changes import is_same_file
from ..records import RecentEdit
from ..text.names import whole_name
from ..text.scopes import CONSTRUCTORS, LANGUAGES, Bindings, Occurrence
from ..text.syntax import Syntax, language_of, parse_cached
from .patterns import TELLING, Swap, learn_line
from .rule_edits import NAME, changes_in, pair_lines

Span = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class Renamed:
    """A rename that a recent edit made."""

    old: str
    new: str
    line: str  # after the edit
    near: int  # 0-based, where it stood right after the edit
    path: str


class RenameScopes:
    """The renames of the recent edits, for one document.

    Args:
        edits: oldest first.
        text: of the document.
        path: of the document.
        language: LSP id; "": that of the path.
    """

    def __init__(
        self, edits: Sequence[RecentEdit], text: str, path: str, language: str = ""
    ) -> None:
        self._edits, self._text, self._path = edits, text, path
        self._language = language if language in LANGUAGES else language_of(path) or language
        self._bindings: dict[str, Bindings] = {}

    def find_leaked(self, edit: Edit) -> str:
        """Return the name that an edit would rename where another binding holds, "" if none."""
        if self._syntax is None or not self._renames:
            return ""
        start, end, new = edit.whole_lines()
        first = edit.text.count("\n", 0, start)
        old, made = edit.text[start:end].split("\n"), new.split("\n")
        if len(old) != len(made):
            return ""
        for at, (one, two) in enumerate(zip(old, made, strict=True), first):
            for name, became, column in swaps(one, two):
                if not self.allows(name, became, at, column):
                    return name
        return ""

    def allows(self, old: str, new: str, line: int, column: int | None = None) -> bool:
        """Return whether a rename may go on at a 0-based line, or at one column of it."""
        renames = [one for one in self._renames if (one.old, one.new) == (old, new)]
        if not renames or self._syntax is None:
            return True
        places = self._of(old).at(line, column)
        return all(any(self._reaches(one, place) for one in renames) for place in places)

    def rename_in_line(self, old: str, new: str, line: str, at: int) -> str:
        """Return a line, 0-based at ``at``, with ``new`` for ``old`` wherever the rename may go."""

        def put(found: re.Match[str]) -> str:
            return new if self.allows(old, new, at, found.start()) else old

        return whole_name(old).sub(put, line)

    @cached_property
    def _renames(self) -> list[Renamed]:
        return [one for edit in self._edits for one in find_renamed_by(edit)]

    @cached_property
    def _syntax(self) -> Syntax | None:
        return parse_cached(self._text, self._language) if self._language in LANGUAGES else None

    @cached_property
    def _lines(self) -> list[str]:
        return self._text.split("\n")

    @cached_property
    def _starts(self) -> list[int]:
        return [0, *accumulate(len(line) + 1 for line in self._lines)]

    def _of(self, name: str) -> Bindings:
        if name not in self._bindings:
            assert self._syntax is not None
            self._bindings[name] = Bindings(self._syntax, name)
        return self._bindings[name]

    def _reaches(self, rename: Renamed, place: Occurrence) -> bool:
        """Return whether ``place`` names what ``rename`` renamed."""
        if not is_same_file(rename.path, self._path):
            return self._reaches_file(rename, place)
        origins = self._origins(rename)
        return not origins or any(
            self._is_same(rename, origin, outer, place) for origin, outer in origins
        )

    def _reaches_file(self, rename: Renamed, place: Occurrence) -> bool:
        """Return whether a rename in another file goes on at ``place``.

        It does not where this file binds or declares the name itself.
        """
        if place.role in ("member", "field", "keyword"):
            return not any(each.role == "field" for each in self._of(rename.old).occurrences)
        if place.scope is None:
            return True
        return bool(place.source) and _names_file(place.source, rename.path)

    def _origins(self, rename: Renamed) -> list[tuple[Occurrence, Span]]:
        """Return what ``rename`` renamed, and where the old name is bound there."""
        found = [each for row in self._rows(rename) for each in self._of(rename.new).at(row)]
        if not found:  # its line was changed again
            bound = ("binding", "field")
            found = [each for each in self._of(rename.new).occurrences if each.role in bound]
        return [(each, self._outer_scope(rename.old, each)) for each in found]

    def _rows(self, rename: Renamed) -> list[int]:
        """Return the line that a rename wrote: the nearest one with its text."""
        rows = [at for at, line in enumerate(self._lines) if line.strip() == rename.line.strip()]
        return sorted(rows, key=lambda at: abs(at - rename.near))[:1]

    def _outer_scope(self, old: str, place: Occurrence) -> Span:
        """Return the smallest scope around ``place`` that binds the old name."""
        byte = self._byte_of(place)
        around = [
            each.scope
            for each in self._of(old).occurrences
            if each.role in ("binding", "import")
            and each.scope is not None
            and each.scope[0] <= byte < each.scope[1]
        ]
        return min(around, key=lambda span: span[1] - span[0], default=None)

    def _is_same(self, rename: Renamed, origin: Occurrence, outer: Span, place: Occurrence) -> bool:
        if origin.role in ("field", "member", "keyword"):
            return self._is_same_member(rename, origin, place)
        if place.role == "keyword":
            return origin.function in (place.function, *CONSTRUCTORS)
        if place.role in ("member", "field"):
            # A module's own name is a member where another one uses it.
            is_module = origin.role == "binding" and origin.scope == self._whole
            return is_module and not self._declares(rename.old)
        if place.scope is None or place.scope == origin.scope:
            return True
        return origin.scope is None and place.scope == outer

    def _is_same_member(self, rename: Renamed, origin: Occurrence, place: Occurrence) -> bool:
        """Return whether ``place`` is the member, or a variable with its name.

        Such a variable is in a function that passes it on as that member.
        """
        if place.role in ("member", "field"):
            if origin.scope is None or place.scope in (None, origin.scope):
                return True
            return not self._declares(rename.old, place.scope) or self._are_kin(
                origin.scope, place.scope
            )
        if place.role == "keyword" or place.scope is None:
            return True
        members = ("member", "field", "keyword", "shorthand")
        return place.scope != self._whole and any(
            each.role in members and self._lies_in(each, place.scope)
            for name in (rename.old, rename.new)
            for each in self._of(name).occurrences
        )

    def _declares(self, name: str, scope: Span = None) -> bool:
        """Return whether a class declares a member of the name; None: any class."""
        fields = (each for each in self._of(name).occurrences if each.role == "field")
        return any(scope in (None, each.scope) for each in fields)

    def _are_kin(self, one: Span, other: Span) -> bool:
        """Return whether one of two classes names the other in its first line, as subclasses do."""
        first, second = (self._header(span) for span in (one, other))
        return bool(first and second) and (first[0] in second or second[0] in first)

    def _header(self, scope: Span) -> list[str]:
        """Return the names in the first line of a class, that of the class first."""
        assert self._syntax is not None and scope is not None
        start = self._syntax.char_of(scope[0])
        words = re.findall(r"\w+", self._text[start : start + 300].split("\n")[0])
        return words[1:] if words[:1] in (["class"], ["interface"], ["trait"]) else []

    @cached_property
    def _whole(self) -> Span:
        assert self._syntax is not None
        root = self._syntax.tree.root_node
        return root.start_byte, root.end_byte

    def _lies_in(self, place: Occurrence, scope: tuple[int, int]) -> bool:
        return scope[0] <= self._byte_of(place) < scope[1]

    def _byte_of(self, place: Occurrence) -> int:
        assert self._syntax is not None
        return self._syntax.byte_of(self._starts[place.line] + place.column)


def renames_of(edits: Sequence[RecentEdit]) -> frozenset[Rename]:
    """Return the renames of the recent edits, wherever they were made."""
    return frozenset((one.old, one.new) for edit in edits for one in find_renamed_by(edit))


@lru_cache(maxsize=64)
def find_renamed_by(edit: RecentEdit) -> tuple[Renamed, ...]:
    """Return the renames that an edit made. The same edits are asked about at every key."""
    return tuple(_renamed_by(edit))


@lru_cache(maxsize=64)
def short_renamed_by(edit: RecentEdit) -> tuple[Renamed, ...]:
    """Return the renames of names such as ``n``, too short to tell without a syntax tree."""
    return tuple(_renamed_by(edit, is_short=True))


def _renamed_by(edit: RecentEdit, *, is_short: bool = False) -> Iterator[Renamed]:
    language = language_of(edit.path) or ""
    for change, _ in changes_in(edit.diff):
        rows = {line: at for at, line in enumerate(change.new)}
        for old, new in pair_lines(change):
            near = edit.line + change.first + rows.get(new, 0)
            for swap in learn_line(old, new, 0, language).swaps:
                if _swaps_short_name(swap, new) if is_short else swap.rename:
                    yield Renamed(swap.old, swap.new, new, near, edit.path)


def _swaps_short_name(swap: Swap, line: str) -> bool:
    """Return whether a swap replaces a short name that the line no longer has."""
    is_name = all(NAME.fullmatch(word) for word in (swap.old, swap.new))
    return is_name and len(swap.old) < TELLING and swap.old not in NAME.findall(line)


def _names_file(source: str, path: str) -> bool:
    """Return whether an import's module, as written, may be the file at ``path``.

    The name of the file may agree, or that of its folder, whose index may pass names on.
    """
    parts = re.findall(r"[\w-]+", source)
    file = PurePosixPath(path.replace("\\", "/"))
    names = {file.stem, file.parent.name} - {""}
    return not parts or parts[-1] in names or bool(names.intersection(parts))


# --- classes of the same name -----------------------------------------------------------------

#: The header of a class. By lines and patterns, because only hunks of other files are known.
_HEADER = re.compile(
    r"\s*(?:(?:export|default|pub(?:lic)?|private|protected|internal|static|final|abstract|sealed"
    r"|data|declare|type)\s+)*(?:class|struct|interface|record|trait|enum|type)\s+([^\W\d]\w*)"
)
_GO_TYPE = re.compile(r"type\s+([^\W\d]\w*)\s+(?:struct|interface)\b")


def namesake(
    edit: Edit,
    edits: Sequence[RecentEdit],
    path: str,
    definers: Callable[[str], Collection[str]] = lambda _: (),
) -> str:
    """Return the class that would get lines that its namesake got in another file, "" if none.

    Args:
        edits: recent ones, oldest first.
        path: of the document.
        definers: paths of the files that define a name, for hunks that do not show the class.
    """
    start, end, new = edit.whole_lines()
    come = _members(new.split("\n")) - _members(edit.text[start:end].split("\n"))
    above = edit.text[:start].split("\n")[:-1]
    here = class_around(above, _depth(new)) if come else ""
    if not here:
        return ""
    for other in edits:
        if is_same_file(other.path, path):
            continue
        for change, around in changes_in(other.diff):
            if change.old or come.isdisjoint(_members(change.new)):
                continue
            there = class_around(around[: change.first], _depth("\n".join(change.new)))
            if there == here or (not there and other.path in definers(here)):
                return here
    return ""


def class_around(above: Sequence[str], depth: int) -> str:
    """Return the class in whose body a line below the lines ``above`` stands, "" if none.

    Args:
        depth: characters of indentation of the line.
    """
    for line in reversed(above):
        if line.strip() and len(line) - len(line.lstrip()) < depth:
            header = _GO_TYPE.match(line) or _HEADER.match(line)
            return header[1] if header is not None else ""
    return ""


def _members(lines: Sequence[str]) -> set[str]:
    """Return the first name of each line: the member that a line of a class declares."""
    return {found[0] for line in lines if (found := NAME.search(line))}


def _depth(text: str) -> int:
    lines = (line for line in text.split("\n") if line.strip())
    return min((len(line) - len(line.lstrip()) for line in lines), default=0)
