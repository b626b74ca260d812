"""Renames of the recent edits: where they stop, and which other names follow them.

A parameter that was renamed in one function is not the parameter of another one. Names are looked
up by syntax tree (:mod:`..text.scopes`); in a language without one every place is allowed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cached_property
from itertools import accumulate
from pathlib import PurePosixPath

from ..edits.edit import Edit
from ..edits.origins import Rename, swaps
from ..edits.recent_changes import is_same_file
from ..records import RecentEdit
from ..text.common import common_ends
from ..text.names import whole_name
from ..text.scopes import LANGUAGES, Bindings, Occurrence
from ..text.syntax import Syntax, language_of, parsed
from .example import Pair, RuleEdit, readable, words
from .patterns import changes_in, learn_line, paired

_CONSTRUCTORS = ("__init__", "__new__", "constructor")

Span = tuple[int, int] | None


@dataclass(frozen=True, slots=True)
class _Renamed:
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

    def leaked(self, edit: Edit) -> str:
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

    def renamed(self, old: str, new: str, line: str, at: int) -> str:
        """Return a line, 0-based at ``at``, with ``new`` for ``old`` wherever the rename may go."""

        def put(found: re.Match[str]) -> str:
            return new if self.allows(old, new, at, found.start()) else old

        return whole_name(old).sub(put, line)

    def is_bound_again(self, name: str, line: int) -> bool:
        """Return whether ``name``, which recent edits renamed, is another one in a line."""
        became = {one.new for one in self._renames if one.old == name}
        return bool(became) and not any(self.allows(name, new, line) for new in became)

    @cached_property
    def _renames(self) -> list[_Renamed]:
        return [one for edit in self._edits for one in _renamed_by(edit)]

    @cached_property
    def _syntax(self) -> Syntax | None:
        return parsed(self._text, self._language) if self._language in LANGUAGES else None

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

    def _reaches(self, rename: _Renamed, place: Occurrence) -> bool:
        """Return whether ``place`` names what ``rename`` renamed."""
        if not is_same_file(rename.path, self._path):
            return self._reaches_file(rename, place)
        origins = self._origins(rename)
        return not origins or any(
            self._is_same(rename, origin, outer, place) for origin, outer in origins
        )

    def _reaches_file(self, rename: _Renamed, place: Occurrence) -> bool:
        """Return whether a rename in another file goes on at ``place``.

        It does not where this file binds or declares the name itself.
        """
        if place.role in ("member", "field", "keyword"):
            return not any(each.role == "field" for each in self._of(rename.old).occurrences)
        if place.scope is None:
            return True
        return bool(place.source) and _names_file(place.source, rename.path)

    def _origins(self, rename: _Renamed) -> list[tuple[Occurrence, Span]]:
        """Return what ``rename`` renamed, and where the old name is bound there."""
        found = [each for row in self._rows(rename) for each in self._of(rename.new).at(row)]
        if not found:  # its line was changed again
            bound = ("binding", "field")
            found = [each for each in self._of(rename.new).occurrences if each.role in bound]
        return [(each, self._outer_scope(rename.old, each)) for each in found]

    def _rows(self, rename: _Renamed) -> list[int]:
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

    def _is_same(
        self, rename: _Renamed, origin: Occurrence, outer: Span, place: Occurrence
    ) -> bool:
        if origin.role in ("field", "member", "keyword"):
            return self._is_same_member(rename, origin, place)
        if place.role == "keyword":
            return origin.function in (place.function, *_CONSTRUCTORS)
        if place.role in ("member", "field"):
            # A module's own name is a member where another one uses it.
            is_module = origin.role == "binding" and origin.scope == self._whole
            return is_module and not self._declares(rename.old)
        if place.scope is None or place.scope == origin.scope:
            return True
        return origin.scope is None and place.scope == outer

    def _is_same_member(self, rename: _Renamed, origin: Occurrence, place: Occurrence) -> bool:
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
    return frozenset((one.old, one.new) for edit in edits for one in _renamed_by(edit))


def _renamed_by(edit: RecentEdit) -> Iterator[_Renamed]:
    language = language_of(edit.path) or ""
    for change in changes_in(edit.diff):
        rows = {line: at for at, line in enumerate(change.new)}
        for old, new in paired(change.old, change.new):
            near = edit.line + change.first + rows.get(new, 0)
            for swap in learn_line(old, new, 0, language).swaps:
                if swap.rename:
                    yield _Renamed(swap.old, swap.new, new, near, edit.path)


def _names_file(source: str, path: str) -> bool:
    """Return whether an import's module, as written, may be the file at ``path``.

    The name of the file may agree, or that of its folder, whose index may pass names on.
    """
    parts = re.findall(r"[\w-]+", source)
    file = PurePosixPath(path.replace("\\", "/"))
    names = {file.stem, file.parent.name} - {""}
    return not parts or parts[-1] in names or bool(names.intersection(parts))


# --- variants -----------------------------------------------------------------------------------

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def find_variants(
    pairs: Sequence[Pair], lines: Sequence[str], first: int, last: int, most: int
) -> Iterator[RuleEdit]:
    """Yield edits of other names with the renamed part, in every spelling, without their chances.

    If ``user_id`` became ``account_id``, then ``UserId``, ``get_user_ids``, ``"user-id"`` and
    ``USER`` follow.
    """
    count, known = 0, set[Rename]()
    for pair in pairs:
        for old, new in _changed_names(pair):
            parts = changed_parts(old, new)
            if parts is None or (new, old) in known or (old, new) in known:
                continue
            known.add((old, new))
            table = dict(
                zip(reversed(spellings(parts[0])), reversed(spellings(parts[1])), strict=True)
            )
            pattern = _any_of(table)
            for at in readable(lines, first, last):
                line = lines[at]
                made = pattern.sub(lambda found, table=table: table[found[0]], line)  # type: ignore[misc]
                if made != line and new not in words(line):
                    evidence = 2 if old in words(line) else 1
                    yield RuleEdit(at, at + 1, (made,), "variant", 0.0, pair.age, evidence)
                    count += 1
                    if count > most:
                        return


def changed_parts(old: str, new: str) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the parts of one name that became others, without those that both begin and end with.

    None: a name only grew or shrank, or the parts are too short.
    """
    one, two = parts_of(old), parts_of(new)
    head, tail = common_ends(one, two)
    before, after = one[head : len(one) - tail], two[head : len(two) - tail]
    return (before, after) if after and sum(map(len, before)) >= 3 else None


def parts_of(name: str) -> tuple[str, ...]:
    """Return the parts of a name in lower case: of ``HTTPServer_id2`` http, server, id and 2."""
    return tuple(part.lower() for part in _PART.findall(name))


def spellings(parts: Sequence[str]) -> tuple[str, ...]:
    """Return each way to write a name of these parts, in the same order for every name."""
    title = [part.capitalize() for part in parts]
    return (
        "_".join(parts),
        "_".join(parts).upper(),
        "-".join(parts),
        parts[0] + "".join(title[1:]),
        "".join(title),
        " ".join(parts),
    )


def _changed_names(pair: Pair) -> Iterator[Rename]:
    """Yield the names that changed in a line, each with the new one."""
    one, two = words(pair.old), words(pair.new)
    for tag, i1, i2, j1, j2 in SequenceMatcher(None, one, two, autojunk=False).get_opcodes():
        if tag == "replace" and i2 - i1 == j2 - j1:
            yield from zip(one[i1:i2], two[j1:j2], strict=True)


def _any_of(names: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern of parts of names, the longest first.

    A part ends where another begins: "user" stands in "userName", "use" does not stand in "user".
    """
    longest = sorted(names, key=len, reverse=True)
    before = ("[a-z]" if each[0].islower() else "[A-Z]" for each in longest)
    pairs = zip(before, longest, strict=True)
    return re.compile("|".join(rf"(?<!{one}){re.escape(each)}(?![a-z])" for one, each in pairs))
