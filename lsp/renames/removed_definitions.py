"""Names whose definitions recent edits removed from a file, as a move to another file begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import islice

from redraft.model.records import RecentEdit
from redraft.model.rules.rule_edits import changes_in
from redraft.model.text.definitions import definitions
from redraft.model.text.syntax import SCRIPTS, parse

_MOST = 20  # names


def find_removed(
    edits: Sequence[RecentEdit], path: str, language: str, more: Iterable[str] = ()
) -> dict[str, frozenset[str]]:
    """Return definitions that were removed from the top level of a file, judged by edits alone.

    Each name has the lines of its definition as :func:`plain_lines` returns them.

    Args:
        edits: oldest first.
        path: of the file.
        language: LSP id; a Python file or a script.
        more: lines removed in another way.
    """
    if language not in ("python", *SCRIPTS):
        return {}
    changes = [change for edit in edits if edit.path == path for change, _ in changes_in(edit.diff)]
    found = dict(_defined("\n".join(more), language))
    for change in changes:
        come = _defined("\n".join(change.new), language)
        gone = _defined("\n".join(change.old), language)
        found |= {name: lines for name, lines in gone.items() if name not in come}
    return dict(islice(found.items(), _MOST))


def plain_lines(text: str) -> frozenset[str]:
    """Return the lines of a text without what a move may change: indentation and exports."""
    lines = (line.strip().removeprefix("export ") for line in text.split("\n"))
    return frozenset(line for line in lines if line)


@lru_cache(maxsize=64)  # asked for at every key
def _defined(text: str, language: str) -> Mapping[str, frozenset[str]]:
    syntax = parse(text, language) if text.strip() else None
    lines = text.split("\n")
    return {
        each.name: plain_lines("\n".join(lines[each.first : each.last]))
        for each in (definitions(syntax) if syntax is not None else ())
        if each.kind != "method" and lines[each.first][:1].strip()  # not within another one
    }
