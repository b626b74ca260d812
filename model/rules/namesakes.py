"""Classes of the same name in different files: an edit of one is not repeated in the other.

By lines and patterns, because only hunks of the other files are known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from ..edits.edit import Edit
from ..edits.recent_changes import is_same_file
from ..records import RecentEdit
from .patterns import LinesChanged, changes_in

_HEADER = re.compile(
    r"\s*(?:(?:export|default|pub(?:lic)?|private|protected|internal|static|final|abstract|sealed"
    r"|data|declare|type)\s+)*(?:class|struct|interface|record|trait|enum|type)\s+([^\W\d]\w*)"
)
_NAME = re.compile(r"[^\W\d]\w*")
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
        for change in changes_in(other.diff):
            if change.old or come.isdisjoint(_members(change.new)):
                continue
            there = class_of(change)
            if there == here or (not there and other.path in definers(here)):
                return here
    return ""


def class_of(change: LinesChanged) -> str:
    """Return the class whose body a change put lines into, "" if the hunk does not show it."""
    return class_around(change.around[: change.first], _depth("\n".join(change.new)))


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
    return {found[0] for line in lines if (found := _NAME.search(line))}


def _depth(text: str) -> int:
    lines = (line for line in text.split("\n") if line.strip())
    return min((len(line) - len(line.lstrip()) for line in lines), default=0)
