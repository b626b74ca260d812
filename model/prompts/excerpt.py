"""A region that an edit client sends: as a request, and its answer in the client's format.

The document of the request is the text before the region, the region and the text after it, with
``\\n`` line ends. The lines of a candidate are put back into the region as it was sent: every
byte outside the candidate stays, mixed line ends included.

Clients also send what their editor reports of the file, as a file of lines such as ``line 10:
[ERROR] undefined: foo (source: gopls)`` or ``Line 10: [gopls] undefined: x``, whose place and
brackets may be missing. The number counts in the file, of which the prompt shows an excerpt, so a
report belongs where the names that it quotes stand.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from ..edits.hunks import lines_of
from ..records import Candidate, Diagnostic, EditRequest, RecentEdit, RelatedFile
from ..rules.diagnostics import find_undefined_name
from ..text.names import whole_name
from .format import ParsedEdit
from .redraft3 import shrunk, window

#: Name of the file where the client does not say it.
NO_PATH = "untitled"
#: Sections that hold reports.
REPORTS = frozenset({"diagnostics", "context/diagnostics"})
#: Other sections that are no files.
_PSEUDO_FILES = frozenset(
    {
        "treesitter_context",
        "staged_git_diff",
        "context/treesitter",
        "context/staged_diff",
        "context/retrieval",
    }
)
#: Lines and characters (about 1,000 tokens) of a region that a model may edit at once: in training
#: regions have 12 to 48 lines. Clients send any number.
MAX_REGION_LINES, MAX_REGION_CHARS = 48, 3_000
#: Other files of one prompt that are read; no context holds as many.
MAX_RELATED = 256
#: Tokens of an answer. Clients allow for the whole region; only the change is written.
MAX_EDIT_TOKENS = 256
#: Reports that are read, and characters of one.
_MAX_REPORTS, _REPORT_CHARS = 64, 1_000

_REPORT = re.compile(
    r"(?:line (?P<line>\d{1,9}): ?)?(?:\[(?P<tag>[^\]]{1,40})\] ?)?(?P<message>.+)", re.I
)
_SOURCE = re.compile(r" \(source: [^()]{0,80}\)$")
_QUOTED = re.compile(r"['\"`‘“]([^\W\d]\w*)['\"`’”]")
_SEVERITIES = {"error": 1, "warning": 2, "warn": 2, "information": 3, "info": 3, "hint": 4}

#: Returns the answer in a client's format, given the region after the edit; None: it is unchanged.
Writer = Callable[[str | None], str]


class Unreadable(Exception):
    """The prompt is torn, or a marker also occurs in the code; the text says which, for people."""


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The part of a file that a client shows, with the client's line ends."""

    path: str
    before: str  # whole lines above the region
    region: str  # the lines that may change, without the last one's line end
    after: str  # whole lines below the region
    cursor: int  # index into region
    write: Writer
    edits: tuple[RecentEdit, ...] = ()  # oldest first
    related: tuple[RelatedFile, ...] = ()  # least relevant first
    reports: tuple[Diagnostic, ...] = ()  # of the file, whose lines they count; -1: no line named
    fixed: int = 0  # leading characters of the region that cannot change


# --- reading ----------------------------------------------------------------------------------


def unix(text: str) -> str:
    """Return ``text`` with ``\\n`` line ends."""
    return text.replace("\r\n", "\n")


def newline_of(*texts: str) -> str:
    """Return the line end that most lines of the texts have; ``\\n`` where there is none.

    New lines get it. A few lines that were pasted with other ends do not change it.
    """
    lines = sum(text.count("\n") for text in texts)
    return "\r\n" if lines and 2 * sum(text.count("\r\n") for text in texts) >= lines else "\n"


def render_related_file(path: str, text: str) -> RelatedFile:
    """Return a file that the client sends."""
    return RelatedFile(path.strip(), unix(text), "sent by the client")


def render_related_files(best_first: Iterable[tuple[str, str]]) -> tuple[RelatedFile, ...]:
    """Return those of the paths with their texts that are files and not empty, the best last."""
    files = (
        render_related_file(path, text)
        for path, text in best_first
        if text.strip() and path.strip() not in REPORTS | _PSEUDO_FILES
    )
    return tuple(islice(files, MAX_RELATED))[::-1]


def take_cursor(region: str, marker: str, edits: tuple[RecentEdit, ...]) -> tuple[str, int]:
    """Return the region without the cursor's marker, and where that was.

    Raises:
        Unreadable: the marker is there more than once.
    """
    before, found, after = region.partition(marker)
    if marker in after:
        raise Unreadable(f"The region holds {marker} more than once: it is part of the code.")
    return before + after, len(before) if found else guess_cursor(region, edits)


def guess_cursor(region: str, edits: tuple[RecentEdit, ...]) -> int:
    """Return the end of the last line that the newest edit wrote, or else of the middle line."""
    lines = region.split("\n")
    at = len(lines) // 2
    if edits:
        written = [text for sign, text in lines_of(edits[-1].diff) if sign == "+"]
        if written and written[-1].strip():
            at = next((i for i, line in enumerate(lines) if line.rstrip("\r") == written[-1]), at)
    return sum(len(line) + 1 for line in lines[:at]) + len(lines[at].rstrip("\r"))


def reports_in(files: Iterable[tuple[str, str]]) -> tuple[Diagnostic, ...]:
    """Return the reports in those of ``files``, path and text, that hold reports."""
    lines = (
        line.strip()[:_REPORT_CHARS]
        for path, text in files
        if path.strip() in REPORTS
        for line in text.splitlines()
    )
    matches = islice(filter(None, map(_REPORT.match, lines)), _MAX_REPORTS)
    return tuple(
        Diagnostic(
            int(match["line"] or 0) - 1,
            _SOURCE.sub("", match["message"]),
            _SEVERITIES.get((match["tag"] or "").lower(), 1),
        )
        for match in matches
    )


def locate_reports(
    reports: Iterable[Diagnostic], lines: Sequence[str], first: int, last: int
) -> tuple[Diagnostic, ...]:
    """Return those reports that belong to one of the lines [first, last) beyond doubt.

    That is the line a report names if what it quotes stands there, or else the only one where it
    does.
    """
    found = []
    for report in reports:
        undefined = find_undefined_name(report.message)
        names = {*_QUOTED.findall(report.message), *([undefined] if undefined else [])}
        patterns = [whole_name(name) for name in names]
        fitting = [
            at
            for at in range(first, last)
            if patterns and all(each.search(lines[at]) for each in patterns)
        ]
        if report.line in fitting:
            found.append(report)
        elif len(fitting) == 1:
            found.append(replace(report, line=fitting[0]))
    return tuple(found)


# --- the request ------------------------------------------------------------------------------


def to_request(excerpt: Excerpt, template: EditRequest) -> EditRequest | None:
    """Return the request of an excerpt, with the sampling fields of ``template``.

    It is None where the cursor's line is longer than a model can see whole, and would be cut.
    """
    before = _whole_lines(unix(excerpt.before))
    text = before + unix(excerpt.region + "\n") + unix(excerpt.after)
    first = before.count("\n") + excerpt.region.count("\n", 0, excerpt.fixed)
    last = before.count("\n") + excerpt.region.count("\n") + 1
    cursor = len(before) + len(unix(excerpt.region[: excerpt.cursor].removesuffix("\r")))
    lines = text.split("\n")
    at = text.count("\n", 0, cursor)
    if at < first:  # the cursor is in what cannot change
        at, cursor = first, sum(len(line) + 1 for line in lines[:first])
    if last - first > MAX_REGION_LINES:
        top, bottom = window(at, len(lines))  # moves in steps, which suits the prefix cache
        first, last = max(first, top), min(last, bottom)
    sizes = [len(line) + 1 for line in lines[first:last]]
    first, last = shrunk(sizes, first, last, at, MAX_REGION_CHARS)
    if sum(len(line) + 1 for line in lines[first:last]) > MAX_REGION_CHARS:
        return None
    return replace(
        template,
        diagnostics=locate_reports(excerpt.reports, lines, first, last),
        task="next_edit",
        path=excerpt.path or template.path,
        text=text,
        cursor=cursor,
        edits=excerpt.edits,
        related=excerpt.related,
        region=(first, last),
        max_tokens=min(template.max_tokens, MAX_EDIT_TOKENS),
        stop=(),  # ends of a client's own model; these answers are whole without
    )


def _whole_lines(text: str) -> str:
    return text + "\n" if text and not text.endswith("\n") else text


# --- the answer -------------------------------------------------------------------------------


def rewrite(excerpt: Excerpt, candidate: Candidate | ParsedEdit) -> str | None:
    """Return the whole region after the candidate, with the client's line ends.

    It is None where it would be the same, or where the candidate reaches out of the region.
    """
    begin = len(_whole_lines(unix(excerpt.before)))
    block = excerpt.region + "\n"
    start, end = candidate.start - begin, candidate.end - begin
    if not 0 <= start <= end <= len(unix(block)):
        return None
    text = candidate.text
    if end == len(unix(block)) and text and not text.endswith("\n"):
        text += "\n"
    text = text.replace("\n", newline_of(excerpt.before, excerpt.region, excerpt.after))
    # Indices into unix(block) of the line ends that have two characters in block.
    ends = [match.start() - i for i, match in enumerate(re.finditer("\r\n", block))]
    above = block[: start + bisect_left(ends, start)]
    changed = above + text + block[end + bisect_left(ends, end) :]
    is_return_text = excerpt.region.endswith("\r")
    region = changed.removesuffix("\n")
    if changed.endswith("\r\n") and not is_return_text:
        region = region[:-1]
    kept = excerpt.region[: excerpt.fixed]
    return region if region != excerpt.region and region.startswith(kept) else None
