"""Which predicted edits no client gets, whatever their confidence: the language server's own rules.

What the user did lately is told from the history a client sends, by looking for what each hunk left
behind in the text: excerpts of a file have other line numbers than the file. A hunk that is not
found, because the client cut it or shows another part of the file, says nothing. Pure; knows
nothing of HTTP and of any wire's markers.
"""

from __future__ import annotations

from dataclasses import replace

from redraft.model.edits import rules
from redraft.model.edits.hunks import lines_of, spans_of
from redraft.model.edits.replacement import Replacement
from redraft.model.edits.spans import Span, on_top
from redraft.model.records import Candidate, EditRequest

#: Newest hunks that are looked for, and places where one may stand alike.
_HUNKS = 8
_PLACES = 32


class Rules:
    """Those that hold for one question."""

    def __init__(self, request: EditRequest) -> None:
        self._request = request
        self._line = request.text.count("\n", 0, request.cursor)
        self._done = just_done(request)

    def refuse(self, candidate: Candidate) -> str:
        """Why an edit would never please anyone; "" where it may."""
        last = self._done[0] if self._done else None
        last_line = last.first + max(0, len(last.new) - 1) if last else None
        return rules.refuse_edit(self._edit(candidate), self._done, self._line, last_line)

    def refuse_syntax(self, candidate: Candidate) -> str:
        """Why it would break the file; costs a parse."""
        request = self._request
        return rules.refuse_syntax(self._edit(candidate), request.path, request.language)

    def _edit(self, candidate: Candidate) -> Replacement:
        return Replacement(self._request.text, candidate.start, candidate.end, candidate.text)


def just_done(request: EditRequest) -> list[Span]:
    """What the user last did in the text of a request, newest first, each at its place in it."""
    cursor_line = request.text.count("\n", 0, request.cursor)
    made: list[Span] = []  # newest first, each at its place right after it was made
    lines = request.text.split("\n")
    for edit in reversed(request.edits[-_HUNKS:]):
        if not _same_file(edit.path, request.path):
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
    return [span for span in trimmed if span.old or span.new][: rules.JUST_DONE]


def _same_file(one: str, other: str) -> bool:
    """Clients name a file by its whole path or from one folder on; some not at all."""
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
