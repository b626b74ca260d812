"""Order of edits that are about as likely: those that repair an error of the editor come first.

Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from ..edits.replacement import Replacement
from ..records import Candidate, Diagnostic
from .diagnosed import undefined_name
from .example import words

#: Nats by which an edit may be less likely than one that mends nothing, and still come first.
SIMILAR = 1.0
_QUOTED = re.compile(r"['\"`‘“]([^'\"`’”]+)['\"`’”]")
_IMPORTS = re.compile(r"\s*(?:import|from|use|using)\b|.*\brequire\(|\t\"[\w./-]+\"$")


def mending_first(
    text: str,
    diagnostics: Sequence[Diagnostic],
    candidates: Sequence[Candidate],
    rank: Callable[[Candidate], float],
) -> list[Candidate]:
    """Return the candidates in order.

    Args:
        text: of the document.
        rank: how good a candidate is; a logarithm.
    """
    if not diagnostics or len(candidates) < 2:
        return list(candidates)

    def key(each: Candidate) -> float:
        edit = Replacement(text, each.start, each.end, each.text)
        return -rank(each) - SIMILAR * any(mends(edit, told) for told in diagnostics)

    return sorted(candidates, key=key)


def mends(edit: Replacement, told: Diagnostic) -> bool:
    """Return whether an edit removes a reported name from its line, or imports it."""
    start, end, new = edit.whole_lines()
    before, old = edit.text.count("\n", 0, start), edit.text[start:end]
    lines = edit.text.split("\n")
    if told.line >= len(lines):
        return False
    name = undefined_name(told.message)
    if name is not None and name in words(new) and name not in words(old):
        added = [line for line in new.split("\n") if name in words(line)]
        return all(map(_IMPORTS.match, added))
    reported = {name} if name is not None else _quoted(told.message, lines[told.line])
    covers = before <= told.line < before + max(1, old.count("\n") + (not old.endswith("\n")))
    return covers and bool(reported) and bool(old) and reported.isdisjoint(words(new))


def _quoted(message: str, line: str) -> set[str]:
    """Return the names that a message quotes and that stand in the line."""
    said = {word for found in _QUOTED.finditer(message) for word in words(found[1])}
    return said & {*words(line)}
