"""Filters against edits that destroy code: no eagerness and no gesture shows them.

In trials at high eagerness one Tab deleted a definition and left another one twice, and a model
deleted a region of untouched functions, block after block. At 60 moments of held-out commits the
likeliest edit was a pure deletion 21 times, and right once.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ..edits.edit import Edit, LineChange
from ..edits.hunks import lines_of
from ..edits.syntax_errors import tree_of
from ..records import RecentEdit
from ..text.code_queries import imports_of
from ..text.definitions import Definition, definitions
from ..text.syntax import Syntax, parse
from .reasons import Abstain

_NAME = re.compile(r"[^\W\d]\w+")
#: Languages in which functions of one name may differ in their parameters.
_OVERLOADS = frozenset(("c", "cpp", "csharp", "java", "kotlin", "typescript", "typescriptreact"))
#: Lines by which one of several definitions is chosen when the program is built.
_CONDITION = re.compile(r"#\s*(?:if|ifdef|ifndef|elif|else|endif)\b|\s*#\[cfg\b")
#: Words that make a member of JavaScript another one than its namesake.
_ACCESS = re.compile(r"\b(?:get|set|static)\b(?=\s)")
_WITH_BODY = frozenset(("function", "method", "type"))
#: The decorator that writes ``__init__``, on one line.
_DATACLASS = re.compile(r"@(?:dataclasses\.)?dataclass(?:\((?!.*\binit\s*=).*\))?$")
_CLASS = re.compile(r"class\s+(\w+)")
_PLAIN = re.compile(r"self\.(\w+)(?:\s*:[^=]+)?\s*=\s*\1$")  # all that such an __init__ does


class _Key(NamedTuple):
    """Owner and name, by which two definitions are the same one."""

    owner: str  # type that holds it, or the receiver in Go; "" for none
    name: str


def find_removed_names(edits: Iterable[RecentEdit]) -> frozenset[str]:
    """Return the names in lines that ``edits`` removed, without those that they wrote again."""
    found: set[str] = set()
    for edit in edits:
        lines = lines_of(edit.diff)
        gone, come = (
            {name for mark, text in lines if mark == sign for name in _NAME.findall(text)}
            for sign in "-+"
        )
        found |= gone - come
    return frozenset(found)


@dataclass(frozen=True, slots=True)
class _Definitions:
    """Functions, methods and types of a text before and after an edit."""

    old: Mapping[_Key, list[Definition]]
    new: Mapping[_Key, list[Definition]]
    lost: Counter[_Key]
    gained: Counter[_Key]
    before: Syntax
    after: Syntax

    @property
    def language(self) -> str:
        return self.before.language


@lru_cache(maxsize=4)  # several checks look at one edit
def _changed(edit: Edit, language: str, path: str) -> _Definitions | None:
    """Return what an edit changes, None in a language without a grammar.

    A text with errors is parsed afresh: going on from a broken tree loses definitions far away.
    """
    before = tree_of(edit.text, language, path)
    if before is None:
        return None
    base = None if before.tree.root_node.has_error else before
    after = parse(edit.result, before.language, base)
    if after is None:
        return None
    old, new = (_by_key(definitions(tree), tree.text) for tree in (before, after))
    counts = Counter(_counts(old)), Counter(_counts(new))
    return _Definitions(old, new, counts[0] - counts[1], counts[1] - counts[0], before, after)


def drops(
    edit: Edit,
    language: str,
    path: str,
    removed: Collection[str],
    changes: Sequence[LineChange] = (),
) -> Abstain | None:
    """Refuse an edit that takes a definition away.

    Something else may come in its place: another definition, or an import or a value of its name.
    One whose name the recent edits removed or imported may go, and what a decorator writes that
    they added.
    Nothing is refused in a language without a grammar.

    Args:
        language: LSP id, "" if unknown.
        removed: names that the recent edits removed; see :func:`find_removed_names`.
        changes: the recent ones of the text, at their places in it.
    """
    found = _changed(edit, language, path)
    if found is None or found.lost.total() <= found.gained.total():
        return None
    lost_types = _types(found.old) - _types(found.new)
    written, imported = _written_by_decorator(edit, found, changes), _imported(found, changes)
    start, end, lines = edit.whole_lines()
    stays = edit.text[start:end].split("\n")
    made = "\n".join(line for line in lines.split("\n") if line not in stays)
    names = [
        key.name
        for key in found.lost
        if not (key.name in removed or key.owner in lost_types or _is_bound(made, key))
        and not (key in written or (not key.owner and key.name in imported))
    ]
    if not names:
        return None
    return Abstain("destroys", f"the edit would delete the definition of '{names[0]}'")


def doubles(edit: Edit, language: str, path: str) -> Abstain | None:
    """Refuse an edit that defines what is defined already."""
    found = _changed(edit, language, path)
    if found is None:
        return None
    lines = edit.result.split("\n")
    for key in found.gained:
        if key in found.old and _is_doubled(found.new[key], lines, found.language):
            return Abstain("destroys", f"the edit would define '{key.name}' a second time")
    return None


def deletes_what_changes_replace(
    edit: Edit, language: str, path: str, changes: Sequence[LineChange]
) -> bool:
    """Return whether the recent changes have written anew all that an edit deletes.

    That is an ``__init__`` that a new decorator writes, and names that a new import binds.
    """
    found = _changed(edit, language, path) if changes else None
    if found is None:
        return False
    written, imported = _written_by_decorator(edit, found, changes), _imported(found, changes)
    if any(key not in written and (key.owner or key.name not in imported) for key in found.lost):
        return False
    lines = edit.text.split("\n")
    gone = [one for key in found.lost for one in found.old[key]]
    gone += [
        one
        for one in definitions(found.before)
        if one.name in imported and not lines[one.first][:1].isspace()
    ]
    spans = [(one.first, one.last) for one in gone]
    spans += [
        (one.first, one.last)
        for one in imports_of(found.before)
        if one.bound and imported.issuperset(one.bound)
    ]
    start, end, _ = edit.shape()
    first = edit.text.count("\n", 0, start)
    rows = [at for at, line in enumerate(edit.text[start:end].split("\n"), first) if line.strip()]
    return all(any(first <= row < last for first, last in spans) for row in rows)


def _imported(found: _Definitions, changes: Iterable[LineChange]) -> set[str]:
    """Return the names that imports bind after an edit, and that recent changes have written."""
    written = set[str]()
    for one in imports_of(found.before) if changes else ():
        for change in changes:
            if change.first < one.last and one.first < change.end:
                words = {name for line in change.new for name in _NAME.findall(line)}
                written |= words.intersection(one.bound)
    left = imports_of(found.after) if written else ()
    return {name for one in left for name in one.bound if name in written}


def _written_by_decorator(
    edit: Edit, found: _Definitions, changes: Sequence[LineChange]
) -> set[_Key]:
    """Return the lost ``__init__`` of classes that the recent changes or the edit decorated.

    It must do nothing but set fields: the decorator writes no more.
    """
    if found.language != "python":
        return set()
    old, new = edit.text.split("\n"), edit.result.split("\n")
    first, last = edit.lines
    own = LineChange(first, tuple(old[first:last]), tuple(new[first : last + len(new) - len(old)]))
    classes = _just_decorated(old, changes) | _just_decorated(new, [own])
    return {
        key
        for key in found.lost
        if key.name == "__init__"
        and key.owner in classes
        and all(_sets_fields(old[one.first : one.last]) for one in found.old[key])
    }


def _just_decorated(lines: Sequence[str], changes: Iterable[LineChange]) -> set[str]:
    """Return the classes below decorators that changes have written, at their places in lines."""
    found = set[str]()
    for change in changes:
        for row in range(change.first, min(change.end, len(lines))):
            if _DATACLASS.match(lines[row].strip()) and lines[row] not in change.old:
                below = (line.strip() for line in lines[row + 1 :])
                header = _CLASS.match(next((line for line in below if line[:1] != "@"), ""))
                found |= {header[1]} if header else set()
    return found


def _sets_fields(lines: Sequence[str]) -> bool:
    """Return whether a method sets each of some fields to the argument of its name."""
    stripped = [line.strip() for line in lines if line.strip()]
    ends = next((at for at, line in enumerate(stripped, 1) if line.endswith(":")), len(stripped))
    return bool(stripped[ends:]) and all(map(_PLAIN.match, stripped[ends:]))


def deletes_unasked(edit: Edit, removed: Collection[str], reported: Collection[int]) -> bool:
    """Return whether an edit only deletes lines, and no recent edit is a reason for it.

    Args:
        removed: names that the recent edits removed.
        reported: 0-based lines with errors that the recent edits caused.
    """
    start, end, new = edit.shape()
    old = edit.text[start:end]
    if new.strip() or not any(map(str.isalnum, old)):
        return False
    first, last = edit.lines
    if any(name in removed for name in _NAME.findall(old)) or any(
        first <= line < last for line in reported
    ):
        return False
    lines = [line for line in old.split("\n") if line.strip()]
    around = edit.text[:start].split("\n")[-4:] + edit.text[end:].split("\n")[:4]
    return not all(line in around for line in lines)  # one of two equal lines may go


def _by_key(found: Iterable[Definition], text: str) -> dict[_Key, list[Definition]]:
    """Return functions, methods and types by what makes them the same."""
    every = [each for each in found if each.kind in _WITH_BODY]
    types = [each for each in every if each.kind == "type"]
    lines = text.split("\n")
    keyed: dict[_Key, list[Definition]] = {}
    for each in every:
        holders = [t for t in types if t is not each and t.first <= each.first < t.last]
        owner = max(holders, key=lambda t: t.first).name if holders else ""
        receiver = re.match(r"func\s*\(\s*(?:\w+\s+)?\*?([\w.]+)", lines[each.first])
        keyed.setdefault(_Key(receiver[1] if receiver else owner, each.name), []).append(each)
    return keyed


def _counts(keyed: Mapping[_Key, list[Definition]]) -> dict[_Key, int]:
    return {key: len(found) for key, found in keyed.items()}


def _types(keyed: Mapping[_Key, list[Definition]]) -> set[str]:
    return {key.name for key, found in keyed.items() if found[0].kind == "type"}


def _is_bound(text: str, key: _Key) -> bool:
    """Return whether a text imports a name, gives it a value, or has a field for a member."""
    this = re.escape(key.name)
    bound = rf"\bimport\b[^\n]*\b{this}\b|\b{this}\b[^\n=(]*=(?!=)"
    if key.owner:
        bound += rf"|^\s*(?:readonly )?{this}\??:"
    return re.search(bound, text, re.MULTILINE) is not None


def _is_doubled(found: list[Definition], lines: list[str], language: str) -> bool:
    """Return whether definitions of one name are more than the language allows.

    A decorator may make several of one name, as of a property. A definition that is indented
    without a type around it is one of a condition, such as an import that failed. So is one
    between directives of C, or under an attribute of Rust.
    """
    headers = [lines[each.first].strip() for each in found]
    first, last = found[0].first, found[-1].first
    if any(_CONDITION.match(line) for line in lines[max(first - 1, 0) : last]):
        return False
    if (language == "go" and found[0].name == "init") or (
        found[0].kind == "type" and (language == "ruby" or "partial " in headers[0])
    ):
        return False
    if language in _OVERLOADS or headers[0].startswith(("impl", "template")):
        return len(set(headers)) < len(headers)
    free = [
        frozenset(_ACCESS.findall(header.partition("(")[0]))
        for each, header in zip(found, headers, strict=True)
        if not header.startswith("@") and (each.kind == "method" or lines[each.first][:1].strip())
    ]
    return len(set(free)) < len(free)
