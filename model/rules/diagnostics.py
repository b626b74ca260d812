"""Repairs of errors that the editor reports.

They cover undefined names, unused imports and missing arguments, in the words of common tools. A
message that is not understood leads to no edit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches

from ..edits.edit import Edit
from ..records import Candidate, Diagnostic
from ..text.brackets import brackets_of
from ..text.lines import defines_function, imports
from ..text.names import whole_name
from .rule_edits import Pair, RuleEdit, words

_QUOTED = "['\"`‘“]"
_UNDEFINED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_QUOTED}?([^\W\d]\w*)['\"`’”]? is (?:not defined|undefined|possibly unbound)",
        rf"undefined (?:name|variable|identifier|reference)?[: ]*(?:to )?{_QUOTED}?([^\W\d]\w*)",
        rf"cannot find (?:\w+,? ){{0,8}}{_QUOTED}([^\W\d]\w*)",
        rf"(?:undeclared|unresolved|unknown) (?:\w+ )?{_QUOTED}([^\W\d]\w*)",
        r"undefined: ([^\W\d]\w*)",
        r"symbol: +\w+ ([^\W\d]\w*)",
    )
)
_MEANT = re.compile(rf"did you mean(?: to use)? {_QUOTED}?([^\W\d]\w*)", re.IGNORECASE)
_UNUSED = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"{_QUOTED}([\w.:/@-]+)['\"`’”] imported (?:but|and) (?:unused|not used)",
        rf"unused import:? {_QUOTED}?([\w.:]+)",
        rf"{_QUOTED}([^\W\d]\w*)['\"`’”] is (?:declared but|defined but|not accessed)",
        rf"import {_QUOTED}?([\w.]+)['\"`’”]? is (?:not accessed|never used)",
    )
)
_MISSING = re.compile(
    r"missing (?:for parameter|\d+ required [\w -]*arguments?:?) "
    rf"{_QUOTED}?([^\W\d]\w*)",
    re.IGNORECASE,
)
#: Chance of a repair. Commits do not record what an editor reported.
CHANCE = 0.4
_CLOSE = 0.75  # how much a name must read like another
_SCOPE = 60  # lines above a call that are searched for the beginning of its function


def find_undefined_name(message: str) -> str | None:
    """Return the name that a message calls undefined."""
    found = (each.search(message) for each in _UNDEFINED)
    return next((match[1] for match in found if match is not None), None)


def find_fixes(
    diagnostics: Sequence[Diagnostic], pairs: Sequence[Pair], lines: Sequence[str]
) -> Iterator[RuleEdit]:
    """Yield edits that should repair what ``diagnostics`` report.

    Args:
        pairs: lines that recent edits changed.
        lines: of the document.
    """
    for each in diagnostics:
        if each.line < len(lines):
            for fixed in _fixes(each, pairs, lines):
                if fixed != (lines[each.line],):
                    yield RuleEdit(each.line, each.line + 1, fixed, "diagnosed", CHANCE)


def _fixes(
    diagnostic: Diagnostic, pairs: Sequence[Pair], lines: Sequence[str]
) -> Iterator[tuple[str, ...]]:
    message, line = diagnostic.message, lines[diagnostic.line]
    name = find_undefined_name(message)
    if name is not None and name in words(line):
        for other in _meant(message, name, pairs, lines):
            yield (whole_name(name).sub(other, line),)
        return
    missing = _MISSING.search(message)
    if missing is not None and _is_known(missing[1], lines, diagnostic.line):
        yield from _with_argument(line, missing[1])
    unused = next((match for each in _UNUSED if (match := each.search(message))), None)
    if unused is not None and imports(line):
        yield _without(line, re.split(r"[.:/]+", unused[1])[-1])


def _meant(message: str, name: str, pairs: Sequence[Pair], lines: Sequence[str]) -> Iterator[str]:
    """Yield names to put in place of an undefined one, the surest first.

    That is the name that the message proposes, the name after a rename, or a similar name.
    """
    meant = _MEANT.search(message)
    if meant is not None:
        yield meant[1]
        return
    for old, new in pairs:
        one, two = words(old), words(new)
        if len(one) == len(two) and name in one and two[one.index(name)] != name:
            yield two[one.index(name)]
            return
    known = {word for line in lines for word in words(line)} - {name}
    yield from get_close_matches(name, sorted(known), n=1, cutoff=_CLOSE)


def _without(line: str, name: str) -> tuple[str, ...]:
    """Return an import line without one name; no line if it was the only name."""
    bare = re.escape(name)
    rest, removed = re.subn(rf"(?<!\w){bare}\s*,\s*|,\s*{bare}(?!\w)", "", line, count=1)
    return (rest,) if removed else ()


def _with_argument(line: str, name: str) -> Iterator[tuple[str, ...]]:
    """Yield ``line`` with another argument in its only call."""
    calls = list(re.finditer(r"\w\(", line))
    ends = dict(brackets_of(line).pairs)
    if len(calls) != 1 or (end := ends.get(calls[0].end() - 1)) is None:
        return
    inside = line[calls[0].end() : end].rstrip().rstrip(",")
    joined = f"{inside}, {name}" if inside.strip() else name
    yield (line[: calls[0].end()] + joined + line[end:],)


def _is_known(name: str, lines: Sequence[str], at: int) -> bool:
    """Return whether the name stands in the function around line ``at``, above it."""
    depth = _indent(lines[at])
    for row in range(at - 1, max(-1, at - _SCOPE), -1):
        line = lines[row]
        if not line.strip():
            continue
        if re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", line):
            return True
        depth = min(depth, _indent(line))
        begins = defines_function(line) and _indent(line) <= depth
        if begins and _indent(line) < _indent(lines[at]):
            return False
    return False


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# --- order of candidates ----------------------------------------------------------------------

#: Nats by which an edit may be less likely than one that mends nothing, and still come first.
SIMILAR = 1.0
_QUOTED_TEXT = re.compile(r"['\"`‘“]([^'\"`’”]+)['\"`’”]")


def put_mending_first(
    text: str,
    diagnostics: Sequence[Diagnostic],
    candidates: Sequence[Candidate],
    rank: Callable[[Candidate], float],
) -> list[Candidate]:
    """Return the candidates by rank; one that repairs a reported error gains :data:`SIMILAR`.

    Args:
        text: of the document.
        rank: the logarithm of how good a candidate is.
    """
    if not diagnostics or len(candidates) < 2:
        return list(candidates)

    def key(candidate: Candidate) -> float:
        edit = Edit(text, candidate.start, candidate.end, candidate.text)
        return -rank(candidate) - SIMILAR * any(mends(edit, each) for each in diagnostics)

    return sorted(candidates, key=key)


def mends(edit: Edit, report: Diagnostic) -> bool:
    """Return whether an edit removes a reported name from its line, or imports it."""
    start, end, new = edit.whole_lines()
    before, old = edit.text.count("\n", 0, start), edit.text[start:end]
    lines = edit.text.split("\n")
    if report.line >= len(lines):
        return False
    name = find_undefined_name(report.message)
    if name is not None and name in words(new) and name not in words(old):
        added = [line for line in new.split("\n") if name in words(line)]
        return all(map(imports, added))
    reported = {name} if name is not None else _quoted(report.message, lines[report.line])
    covers = before <= report.line < before + max(1, old.count("\n") + (not old.endswith("\n")))
    return covers and bool(reported) and bool(old) and reported.isdisjoint(words(new))


def _quoted(message: str, line: str) -> set[str]:
    """Return the names that a message quotes and that stand in the line."""
    quoted = {word for found in _QUOTED_TEXT.finditer(message) for word in words(found[1])}
    return quoted & {*words(line)}
