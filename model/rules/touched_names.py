"""Names that other places may have to follow: renamed, deleted, or with other parameters.

They are found in the hunks of the history, by words and brackets and not by a grammar, so the
result is the same for every language and for text that does not parse yet. A wrong name does little
harm: it leads to a place about which the model is asked, and changes nothing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from ..edits.hunks import line_changes, lines_of
from ..records import Diagnostic, RecentEdit
from ..text.common import find_changed_part
from ..text.lines import NO_TYPES, defines, is_comment
from ..text.syntax import language_of
from .diagnostics import find_undefined_name
from .renames import class_around

MOST = 6  # names of all edits together
_OLDER = 0.8  # what a name counts in each earlier edit
_FEW = 3  # names that vanish at once where something was renamed; more is a rewriting
_LONGEST = 4_000  # characters of a hunk that are looked at

# How surely other places have to follow.
_UNDEFINED = 0.85
_RENAMED, _GONE, _SIGNATURE, _FIELDS, _CALL, _VALUE = 1.0, 0.7, 0.9, 0.6, 0.5, 0.3
_OUTER = 0.5  # of the call around a call
_CAUSED = 2.0  # of a place that the editor reports since: before all others
SIGNATURE = "its parameters changed"
REPORTED = "the editor reports an error there"

_WORD = re.compile(r"[^\W\d]\w{2,}")
_NAME = re.compile(r"[^\W\d]\w*")
_STRING = re.compile(r"""(["'`])(?:\\.|(?!\1)[^\\\n])*\1""")
_TYPED = re.compile(r"[^\W\d]\w*(?=\??\s*:)")
_CALLEE = re.compile(r"([^\W\d]\w*)\s*[!?]?$")
_CONSTANT = re.compile(
    r"(?:(?:export|pub|public|private|static|final|const|let|var|val|local)\s+)*"
    r"([^\W\d]\w{2,})\s*(?::[^=]*)?=(?!=)"
)
_FIELD = re.compile(r"\s+(?:\w+\s+)*[^\W\d]\w*\??\s*(?::|\s\S|;)")
_KEYWORDS = NO_TYPES | frozenset(
    re.findall(
        r"\w+",
        "def class func function fun struct enum union trait interface type module namespace const "
        "mod let var val static self this super None True False null nil true false undefined int "
        "str float bool string void char long double async try catch except finally switch match "
        "do end then begin pub public private protected use using package require include export "
        "default extends implements where impl mut ref local global nonlocal pass break continue",
    )
)


@dataclass(frozen=True, slots=True)
class Touched:
    """A name that other places may have to follow."""

    name: str
    weight: float  # 0 … 1, how likely they do
    why: str  # for people
    defined: bool = False  # the edit was where it is defined


def find_touched(edits: Sequence[RecentEdit]) -> tuple[Touched, ...]:
    """Return the names that ``edits``, oldest first, affect elsewhere; the likeliest first."""
    found: dict[str, Touched] = {}
    brought: set[str] = set()  # by a newer edit: whatever an older one did, they are there again
    share = 1.0
    for edit in reversed(edits):
        language = language_of(edit.path) or ""
        for above, old, new in _runs(lines_of(edit.diff[:_LONGEST])):
            for one in _of_run(above, old, new, language):
                known = found.get(one.name)
                weight = one.weight * share
                if one.why == "renamed" and one.name in brought:
                    continue
                if known is None or weight > known.weight:
                    found[one.name] = Touched(one.name, weight, one.why, one.defined)
            brought |= _words(new) - _words(old)
        share *= _OLDER
    return tuple(sorted(found.values(), key=lambda one: -one.weight)[:MOST])


@dataclass(frozen=True, slots=True)
class Grown:
    """Functions whose parameters changed lately."""

    functions: frozenset[str] = frozenset()
    words: frozenset[str] = frozenset()  # that came with them, in lower case


def signature_changes(edits: Sequence[RecentEdit]) -> Grown:
    """Return the functions whose parameters changed with the user's last edit by hand or since.

    Later edits are accepted suggestions. Nothing is returned if that edit changed no parameters.
    """
    by_hand = [at for at, edit in enumerate(edits) if not edit.accepted][-1:]
    if not by_hand or not _signatures(edits[by_hand[0]]):
        return Grown()
    functions = frozenset[str]().union(*(_signatures(edit) for edit in edits[by_hand[0] :]))
    return Grown(functions, frozenset(map(str.lower, _changed_words(edits[by_hand[0]]))))


def _signatures(edit: RecentEdit) -> frozenset[str]:
    return frozenset(one.name for one in find_touched([edit]) if one.why == SIGNATURE)


@dataclass(frozen=True, slots=True)
class CallChange:
    """A call whose arguments an edit changes, or a definition whose parameters."""

    name: str
    is_defined: bool  # parameters, not arguments
    removed: frozenset[str]  # names that its lines lost
    added: frozenset[str]


def call_changes(edits: Sequence[RecentEdit]) -> Iterator[CallChange]:
    """Yield the innermost calls that ``edits``, oldest first, change; the newest first."""
    for edit in reversed(edits):
        language = language_of(edit.path) or ""
        for above, old, new in _runs(lines_of(edit.diff[:_LONGEST])):
            if is_comment(_first_line(old or new), language):
                continue
            head = find_changed_part(old, new)[0]
            before, after = (Counter(_code_names(text)) for text in (old, new))
            rest = new[head:].split("\n")[0]
            for name, line in islice(_callees(f"{above}\n{new[:head]}", rest), 1):
                removed, added = frozenset(before - after), frozenset(after - before)
                if is_defined := defines(line, name):
                    removed, added = _without_types(removed, old), _without_types(added, new)
                yield CallChange(name, is_defined, removed, added)


def _code_names(text: str) -> Iterator[str]:
    """Yield the names in a text that are neither keywords nor in strings."""
    return (name for name in _NAME.findall(_STRING.sub('""', text)) if name not in _KEYWORDS)


def _without_types(names: frozenset[str], text: str) -> frozenset[str]:
    """Return the names that have a type in a text, or all if none has one."""
    return names.intersection(_TYPED.findall(text)) or names


def names_of(
    edits: Sequence[RecentEdit], diagnostics: Iterable[Diagnostic] = ()
) -> tuple[Touched, ...]:
    """Return the names that edits affect elsewhere, and those that are reported to be undefined."""
    found = find_touched(edits)
    known = {one.name for one in found}
    undefined = (find_undefined_name(each.message) for each in diagnostics if each.severity == 1)
    names = dict.fromkeys(name for name in undefined if name and name not in known)
    return (*found, *(Touched(name, _UNDEFINED, "it is not defined") for name in names))[: 2 * MOST]


def reports_of_edits(
    edits: Sequence[RecentEdit], reports: Sequence[Diagnostic], lines: Sequence[str]
) -> Iterator[tuple[int, Touched]]:
    """Yield the 0-based lines with reports that the last edits may have caused, and the name.

    Such a report names what they changed, or it is an error in a line that does.

    Args:
        reports: of the editor.
        lines: of the document that the reports are of.
    """
    names = {one.name for one in find_touched(edits)}
    changed = names.union(*(_changed_words(edit) for edit in edits))
    for one in reports:
        if one.line >= len(lines):
            continue
        here = _WORD.findall(lines[one.line])
        named = changed.intersection(_WORD.findall(one.message))
        if not named and one.severity == 1:
            named = names.intersection(here)
        for name in here:
            if name in named or (named and name == here[0] and named.isdisjoint(here)):
                yield one.line, Touched(name, _CAUSED, REPORTED)
                break


def _changed_words(edit: RecentEdit) -> set[str]:
    lines = lines_of(edit.diff[:_LONGEST])
    old, new = (_words("\n".join(text for s, text in lines if s == sign)) for sign in "-+")
    return old ^ new


def list_written(edits: Iterable[RecentEdit]) -> frozenset[str]:
    """Return the lines that the edits wrote, without indentation: those places are done."""
    lines = (text.strip() for edit in edits for sign, text in lines_of(edit.diff) if sign == "+")
    return frozenset(filter(None, lines))


# --- hunks -------------------------------------------------------------------------------------


def _runs(lines: Sequence[tuple[str, str]]) -> Iterator[tuple[str, str, str]]:
    """Yield each run of changed lines: the text above it now, the old lines and the new ones."""
    left = [text for sign, text in lines if sign != "-"]
    for span in line_changes(lines):
        yield "\n".join(left[: span.first]), "\n".join(span.old), "\n".join(span.new)


def _of_run(above: str, old: str, new: str, language: str) -> Iterator[Touched]:
    if is_comment(_first_line(old or new), language):
        return
    gone, came = _words(old) - _words(new), _words(new) - _words(old)
    renamed = bool(came) and len(gone) <= _FEW
    for name in sorted(gone):
        is_defined = any(defines(line, name) for line in old.split("\n"))
        if renamed:
            yield Touched(name, _RENAMED, "renamed", is_defined)
        elif is_defined:
            yield Touched(name, _GONE, "no longer defined", True)
    yield from _of_calls(above, old, new)
    yield from _of_fields(above, old, new)
    yield from _of_values(old, new)


def _of_calls(above: str, old: str, new: str) -> Iterator[Touched]:
    """Yield the functions whose arguments or parameters change, from inside outwards."""
    head, removed, added = find_changed_part(old, new)
    if not (removed + added).strip():
        return
    share = 1.0
    for name, line in _callees(f"{above}\n{new[:head]}", new[head:].split("\n")[0]):
        if defines(line, name):
            yield Touched(name, _SIGNATURE, SIGNATURE, True)
        else:
            yield Touched(name, _CALL * share, "a call of it changed")
            share *= _OUTER


def _callees(before: str, rest: str) -> Iterator[tuple[str, str]]:
    """Yield names whose brackets are open at the end of ``before``, innermost first, with the line.

    Args:
        rest: what follows on the last line.
    """
    depth = 0
    for at in range(len(before) - 1, -1, -1):
        if before[at] in ")]}":
            depth += 1
        elif before[at] in "([{":
            depth -= 1
            if depth >= 0:
                continue
            depth = 0
            if before[at : at + 2] == "{\n":
                return  # what stands in a block is no argument of what the block is given to
            match = _CALLEE.search(before, max(0, at - 80), at) if before[at] == "(" else None
            if match and len(match[1]) > 2 and match[1] not in _KEYWORDS:
                start = before.rfind("\n", 0, at) + 1
                end = before.find("\n", at)
                yield match[1], before[start:] + rest if end < 0 else before[start:end]


def _of_fields(above: str, old: str, new: str) -> Iterator[Touched]:
    """Yield the class that got a field: its constructions may have to follow."""
    first = new.split("\n")[0]
    if old.strip() or not _FIELD.match(first):
        return
    name = class_around(above.split("\n"), len(first) - len(first.lstrip()))
    if name:
        yield Touched(name, _FIELDS, "its fields changed", True)


def _of_values(old: str, new: str) -> Iterator[Touched]:
    """Yield the constants of the file that have another value or type now."""
    before = {match[1] for line in old.split("\n") if (match := _CONSTANT.match(line))}
    for line in new.split("\n"):
        match = _CONSTANT.match(line)
        if match is not None and match[1] in before:
            yield Touched(match[1], _VALUE, "its value changed", True)


def _first_line(text: str) -> str:
    return text.lstrip("\n").split("\n")[0]


def _words(text: str) -> set[str]:
    return {word for word in _WORD.findall(text) if word not in _KEYWORDS}
