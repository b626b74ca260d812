"""Imports whose last use the user just removed.

In train-commits 3,099 of 3,605 imported names whose last use a commit removed lost their import in
the same commit: Go 212 of 213, scripts 589 of 620, Rust 192 of 203, Python 1,863 of 2,271, Java 243
of 298.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

from ..records import RecentEdit
from ..text.code_queries import IMPORT_LANGUAGES, Import, imports_of
from ..text.names import places_of
from ..text.syntax import Syntax, parse_cached
from .rule_edits import NAME, RuleEdit, changes_in, line_starts

FAMILY = "unused import"
#: Chances that the import is removed next, by language.
_CHANCES = {"go": 0.8, "rust": 0.7, "python": 0.6, "java": 0.6}
_CHANCE = 0.7
#: Marks of imports that are kept though nothing in the file uses them.
_KEPT = re.compile(r"noqa|type:|@ts-|eslint|nolint|allow\(|unused")


def find_unused(
    text: str, language: str, path: str, edits: Sequence[RecentEdit]
) -> Iterator[RuleEdit]:
    """Yield edits that drop imports of names that the edits were the last to remove.

    A name that stands anywhere else in the text counts as used, also in a string or comment.

    Args:
        path: of the document, whose edits alone count.
        edits: oldest first.
    """
    gone = _removed([each for each in edits if each.path == path])
    if language not in IMPORT_LANGUAGES or not gone or path.endswith("__init__.py"):
        return
    left = {name for name in gone if sum(1 for _ in places_of(name, text)) == 1}
    syntax = parse_cached(text, language) if left else None
    if syntax is None or syntax.tree.root_node.has_error:
        return
    lines = text.split("\n")
    for (first, last), group in groupby(imports_of(syntax), key=lambda one: (one.first, one.last)):
        imports = list(group)
        if not any(map(_KEPT.search, lines[first:last])) and first >= 0:
            yield from _without(syntax, lines, imports, left)


def _removed(edits: Sequence[RecentEdit]) -> set[str]:
    """Return the names that lines had before the edits and no longer have."""
    before, after = set[str](), set[str]()
    for edit in edits:
        for change, _ in changes_in(edit.diff):
            before |= {name for line in change.old for name in NAME.findall(line)}
            after |= {name for line in change.new for name in NAME.findall(line)}
    return before - after


def _without(
    syntax: Syntax, lines: Sequence[str], imports: Sequence[Import], left: set[str]
) -> Iterator[RuleEdit]:
    """Yield one statement without names that are no longer used."""
    first, last = imports[0].first, imports[0].last
    names = [name for one in imports for name in one.bound if one.form != "all"]
    drops = [name for name in names if name in left]
    chance = _CHANCES.get(syntax.language, _CHANCE)
    if not drops or any(one.form == "all" for one in imports):
        return
    if len(drops) == len(names):
        yield RuleEdit(first, last, (), FAMILY, chance)
        return
    if any(one.form == "whole" for one in imports) or syntax.language == "go":
        return  # ``import a, { b } from``
    spans = [
        span
        for one in imports
        for name, span in zip(one.bound, one.spans, strict=True)
        if name in left
    ]
    code = "\n".join(lines[first:last])
    begin = line_starts(syntax.text)[first]
    for start, end in reversed(spans):
        at, behind = start - begin, end - begin
        follows = re.match(r"\s*,[ \t]*", code[behind:])
        alone = re.search(r"(?:^|\n)[ \t]*\Z", code[:at])
        if alone and (rest := re.match(r",?[ \t]*\n", code[behind:])):
            code = code[: at - len(alone[0].lstrip("\n"))] + code[behind + rest.end() :]
        elif follows:
            code = code[:at] + code[behind + follows.end() :]
        elif comma := re.search(r",\s*\Z", code[:at]):
            code = code[: comma.start()] + code[behind:]
        else:
            return
    yield RuleEdit(first, last, tuple(code.split("\n")), FAMILY, chance)
