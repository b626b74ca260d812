"""The user's last changes of a text, found from the edits that a request carries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..records import EditRequest
from .edit import LineChange, on_top
from .hunks import line_changes, lines_of

#: Of the user's last changes, how many an edit must not take back.
RECENT_CHANGES = 3

#: Newest hunks that are looked for, and places where one may stand alike.
_HUNKS = 8
_PLACES = 32


def recent_changes(request: EditRequest) -> list[LineChange]:
    """Return the user's last changes, newest first, at their places in the request's text.

    Each hunk is looked for by the lines it left, as excerpts of a file have other line numbers. A
    hunk that is not found is skipped: the client cut it, or shows another part of the file.
    """
    cursor_line = request.text.count("\n", 0, request.cursor)
    undone: list[LineChange] = []  # newest first, each at its place right after it was made
    lines = request.text.split("\n")
    for edit in reversed(request.edits[-_HUNKS:]):
        if not is_same_file(edit.path, request.path):
            continue
        hunk = lines_of(edit.diff)
        old = [text for sign, text in hunk if sign != "+"]
        new = [text for sign, text in hunk if sign != "-"]
        at = _place(lines, new, cursor_line)
        if at is None:
            continue
        undone += reversed([replace(one, first=at + one.first) for one in line_changes(hunk)])
        lines[at : at + len(new)] = old
    changes: list[LineChange] = []
    for change in reversed(undone):
        changes = on_top(change, changes)
    trimmed = (change.trim() for change in changes)
    return [change for change in trimmed if change.old or change.new][:RECENT_CHANGES]


def is_same_file(one: str, other: str) -> bool:
    """Return whether two paths may name one file.

    Clients name a file by its whole path or by its last folders, and some do not name it.
    """
    plain = (path.replace("\\", "/") for path in (one, other))  # on Windows they mix
    shorter, longer = sorted(plain, key=len)
    return not shorter or longer == shorter or longer.endswith(f"/{shorter}")


def _place(lines: list[str], block: Sequence[str], near: int) -> int | None:
    """Return the line where ``block`` stands, nearest to line ``near``; None if it is not found."""
    if not any(line.strip() for line in block):
        return None
    text, wanted = "\n".join(["", *lines, ""]), "\n".join(["", *block, ""])
    found: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(found) < _PLACES:
        found.append(text.count("\n", 0, at))
        at = text.find(wanted, at + 1)
    return min(found, key=lambda line: abs(line - near), default=None)
