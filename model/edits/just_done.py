"""What the user did last in a text, told from the edits that a request carries.

Each hunk is looked for by what it left behind in the text: excerpts of a file have other line
numbers than the file. A hunk that is not found, because the client cut it or shows another part of
the file, says nothing. Pure; knows nothing of HTTP and of any wire's markers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..records import EditRequest
from .hunks import lines_of, spans_of
from .reversal import JUST_DONE
from .spans import Span, on_top

#: Newest hunks that are looked for, and places where one may stand alike.
_HUNKS = 8
_PLACES = 32


def just_done(request: EditRequest) -> list[Span]:
    """What the user last did in the text of a request, newest first, each at its place in it."""
    cursor_line = request.text.count("\n", 0, request.cursor)
    made: list[Span] = []  # newest first, each at its place right after it was made
    lines = request.text.split("\n")
    for edit in reversed(request.edits[-_HUNKS:]):
        if not is_same_file(edit.path, request.path):
            continue
        hunk = lines_of(edit.diff)
        old = [text for sign, text in hunk if sign != "+"]
        new = [text for sign, text in hunk if sign != "-"]
        at = _place(lines, new, cursor_line)
        if at is None:
            continue  # older ones may well be found without it
        made += reversed([replace(span, first=at + span.first) for span in spans_of(hunk)])
        lines[at : at + len(new)] = old
    spans: list[Span] = []
    for span in reversed(made):
        spans = on_top(span, spans)
    trimmed = (span.trimmed() for span in spans)
    return [span for span in trimmed if span.old or span.new][:JUST_DONE]


def last_line(done: Sequence[Span]) -> int | None:
    """The 0-based line where the newest of :func:`just_done` ends; None: there is none."""
    return done[0].first + max(0, len(done[0].new) - 1) if done else None


def is_same_file(one: str, other: str) -> bool:
    """Return whether two paths name one file. Clients name it by its whole path or from one folder
    on; some not at all."""
    plain = (path.replace("\\", "/") for path in (one, other))  # on Windows they mix
    shorter, longer = sorted(plain, key=len)
    return not shorter or longer == shorter or longer.endswith(f"/{shorter}")


def _place(lines: list[str], block: list[str], near: int) -> int | None:
    """Where ``block`` stands, nearest to line ``near``; None: nowhere, or it is nothing to find."""
    if not any(line.strip() for line in block):
        return None
    text, wanted = "\n".join(["", *lines, ""]), "\n".join(["", *block, ""])
    found: list[int] = []
    at = text.find(wanted)
    while at >= 0 and len(found) < _PLACES:
        found.append(text.count("\n", 0, at))
        at = text.find(wanted, at + 1)
    return min(found, key=lambda line: abs(line - near), default=None)
