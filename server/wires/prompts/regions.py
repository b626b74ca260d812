"""An excerpt with an editable region, as edit clients send it: into a request, and the answer back.

The document that is predicted on is ``before``, the region and ``after``, with ``\\n`` line ends. A
candidate's lines are put back into the region *as it came*: every byte outside the candidate stays,
mixed line ends included. Pure; knows nothing of HTTP and of any wire's markers.
"""

from __future__ import annotations

import dataclasses
import re
from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

from redraft.model.edits.hunks import lines_of
from redraft.model.edits.verdict import CANDIDATES
from redraft.model.prompt.render import window
from redraft.model.records import Candidate, EditRequest, RecentEdit, RelatedFile

from .reported import NAMES, ReportedLine, placed

#: Sections of prompts that are no files: no model of ours has seen such.
PSEUDO_FILES = frozenset(
    {
        *NAMES,
        "treesitter_context",
        "staged_git_diff",
        "context/treesitter",
        "context/staged_diff",
        "context/retrieval",
    }
)

#: What a model is asked to edit at once: regions in training have 12 to 48 lines, clients' any.
MAX_REGION_LINES = 48
MAX_REGION_CHARS = 3_000  # about 1,000 tokens, so that every line of the region is seen whole

#: Other files of one prompt that are looked at; no context holds as many.
MAX_RELATED = 256

#: Longest answer, tokens. Clients allow for the whole region; only the change is written.
MAX_EDIT_TOKENS = 256


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What a client shows of the file, with its own line ends."""

    path: str
    before: str  # whole lines above the region
    region: str  # the lines that may change, without the last one's line end
    after: str  # whole lines below the region
    cursor: int  # index into region
    edits: tuple[RecentEdit, ...] = ()  # oldest first
    related: tuple[RelatedFile, ...] = ()  # least relevant first
    reports: tuple[ReportedLine, ...] = ()  # what the client's editor says of the file
    fixed: int = 0  # leading characters of the region that cannot change


def unix(text: str) -> str:
    return text.replace("\r\n", "\n")


def related_file(path: str, text: str) -> RelatedFile:
    return RelatedFile(path.strip(), unix(text), "sent by the client")


def related_files(best_first: Iterable[tuple[str, str]]) -> tuple[RelatedFile, ...]:
    """The other files of a prompt, path and text each, that has the most useful one first; those
    that hold nothing or are no files are left out."""
    files = (
        related_file(path, text)
        for path, text in best_first
        if text.strip() and path.strip() not in PSEUDO_FILES
    )
    return tuple(islice(files, MAX_RELATED))[::-1]


def edit_request(excerpt: Excerpt, template: EditRequest) -> EditRequest | None:
    """The question to the model; sampling fields as in ``template``. ``None``: the cursor's line is
    longer than a model can see whole, and would come back cut."""
    before = _whole_lines(unix(excerpt.before))
    text = before + unix(excerpt.region + "\n") + unix(excerpt.after)
    first = before.count("\n") + excerpt.region.count("\n", 0, excerpt.fixed)
    last = before.count("\n") + excerpt.region.count("\n") + 1
    cursor = len(before) + len(unix(excerpt.region[: excerpt.cursor].removesuffix("\r")))
    lines = text.split("\n")
    at = text.count("\n", 0, cursor)
    if at < first:  # the cursor stands in what cannot change
        at, cursor = first, sum(len(line) + 1 for line in lines[:first])
    region = _narrow(lines, at, first, last)
    if region is None:
        return None
    # As many to choose from as in an editor; but each that is drawn at random is a draw more.
    few = template.candidates if template.temperature else CANDIDATES[template.quality]
    return dataclasses.replace(
        template,
        candidates=max(template.candidates, few),
        diagnostics=placed(excerpt.reports, lines, *region),
        task="next_edit",
        path=excerpt.path or template.path,
        text=text,
        cursor=cursor,
        edits=excerpt.edits,
        related=excerpt.related,
        region=region,
        max_tokens=min(template.max_tokens, MAX_EDIT_TOKENS),
        stop=(),  # ends of a client's own model; our answers are whole without
    )


def _whole_lines(text: str) -> str:
    return text + "\n" if text and not text.endswith("\n") else text


def _narrow(lines: list[str], at: int, first: int, last: int) -> tuple[int, int] | None:
    """Lines [first, last) cut to what a model may edit at once around line ``at``."""
    if last - first > MAX_REGION_LINES:
        top, bottom = window(at, len(lines))  # moves in steps, as the prefix cache likes it
        first, last = max(first, top), min(last, bottom)
    size = sum(len(line) + 1 for line in lines[first:last])
    while size > MAX_REGION_CHARS and last - first > 1:
        if at - first >= last - 1 - at:
            size -= len(lines[first]) + 1
            first += 1
        else:
            last -= 1
            size -= len(lines[last]) + 1
    return (first, last) if size <= MAX_REGION_CHARS else None


def rewrite(excerpt: Excerpt, candidate: Candidate) -> str | None:
    """The whole region after the candidate, with the client's line ends; ``None`` where it would be
    the same, or where the candidate reaches out of the region."""
    begin = len(_whole_lines(unix(excerpt.before)))
    block = excerpt.region + "\n"
    start, end = candidate.start - begin, candidate.end - begin
    if not 0 <= start <= end <= len(unix(block)):
        return None
    ends = _line_ends(block)
    text = candidate.text
    if end == len(unix(block)) and text and not text.endswith("\n"):
        text += "\n"
    if newline_of(excerpt) == "\r\n":
        text = text.replace("\n", "\r\n")
    changed = block[: _outside(start, ends)] + text + block[_outside(end, ends) :]
    region = _without_last_end(changed, keep_return=excerpt.region.endswith("\r"))
    kept = excerpt.region[: excerpt.fixed]
    return region if region != excerpt.region and region.startswith(kept) else None


def newline_of(excerpt: Excerpt) -> str:
    """The line end of new lines: what most lines of the region have, else those around it."""
    for text in (excerpt.region, excerpt.before, excerpt.after):
        if "\n" in text:
            return "\r\n" if 2 * text.count("\r\n") >= text.count("\n") else "\n"
    return "\n"


def _line_ends(block: str) -> list[int]:
    """Indices into ``unix(block)`` of the line ends that have two characters in ``block``."""
    return [match.start() - i for i, match in enumerate(re.finditer("\r\n", block))]


def _outside(index: int, line_ends: list[int]) -> int:
    return index + bisect_left(line_ends, index)


def _without_last_end(block: str, keep_return: bool) -> str:
    if keep_return:
        return block.removesuffix("\n")
    return block[:-2] if block.endswith("\r\n") else block.removesuffix("\n")


def guess_cursor(region: str, edits: tuple[RecentEdit, ...]) -> int:
    """Where a client that does not say it has its cursor, most likely: behind the last line that
    the newest edit wrote, else at the end of the middle line."""
    lines = region.split("\n")
    at = len(lines) // 2
    if edits:
        written = [text for sign, text in lines_of(edits[-1].diff) if sign == "+"]
        if written and written[-1].strip():
            at = next((i for i, line in enumerate(lines) if line.rstrip("\r") == written[-1]), at)
    return sum(len(line) + 1 for line in lines[:at]) + len(lines[at].rstrip("\r"))
