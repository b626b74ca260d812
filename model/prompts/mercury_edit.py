"""Prompts of Mercury's next-edit format, which edit clients send.

A marker counts only where it is a whole line: in the history each line has its diff sign, and
code that names a marker within a line does no harm.
"""

from __future__ import annotations

import re

from ..errors import InvalidRequest
from ..records import RecentEdit
from .diffs import write_unified_diffs
from .excerpt import NO_PATH, Excerpt, Unreadable, render_related_files, reports_in, take_cursor

CURSOR = "<|cursor|>"
#: The whole answer where nothing is to be changed.
NO_EDIT = "None"

SNIPPETS_END = "<|/recently_viewed_code_snippets|>"
SNIPPET, SNIPPET_END = "<|recently_viewed_code_snippet|>", "<|/recently_viewed_code_snippet|>"
FILE, FILE_END = "<|current_file_content|>", "<|/current_file_content|>"
REGION, REGION_END = "<|code_to_edit|>", "<|/code_to_edit|>"
HISTORY, HISTORY_END = "<|edit_diff_history|>", "<|/edit_diff_history|>"

_SNIPPET_PATH = re.compile(r"code_snippet_file_path:[ ]?(?P<path>[^\n]*)\n")
_PATH = re.compile(r"current_file_path:[ ]?(?P<path>[^\n]*)(?:\n|$)")


def read_mercury(content: str, field: str = "content") -> Excerpt:
    """Return the excerpt of a received prompt.

    Args:
        field: that holds it, for errors.

    Raises:
        InvalidRequest: a section is missing or torn.
        Unreadable: a marker is there twice, so that one of them is the user's code.
    """
    histories = _lines(content, HISTORY)
    head, edits = content, tuple[RecentEdit, ...]()
    if histories:
        ends = _lines(content, HISTORY_END)
        head = content[: histories[-1].start()]
        end = ends[-1].start() if ends else len(content)
        edits = write_unified_diffs(content[histories[-1].end() : end])
    body, snippets = _file(head, field)
    files = _files(snippets)
    path = _PATH.match(body)
    body = body[path.end() :] if path else body
    start, end_ = _once(body, REGION, field), _once(body, REGION_END, field)
    if end_.start() < start.end():
        raise InvalidRequest(f"'{field}': {REGION_END} stands before {REGION}. Send them in order.")
    region, cursor = take_cursor(_inner(body[start.end() : end_.start()]), CURSOR, edits)
    after = body[end_.end() :].removeprefix("\r").removeprefix("\n")
    # Where the region ends before a line end, that line end follows its marker.
    after = after.removeprefix("\r\n") if after.startswith("\r\n") else after.removeprefix("\n")
    if after.endswith("\n\n"):  # one was added
        after = after.removesuffix("\n")
    return Excerpt(
        path=(path["path"].strip() if path else "") or NO_PATH,
        before=body[: start.start()],
        region=region,
        after=after,
        cursor=cursor,
        write=_write,
        edits=edits,
        related=render_related_files(files),
        reports=reports_in(files),
    )


def _lines(text: str, marker: str) -> list[re.Match[str]]:
    """Return the places where ``marker`` is a whole line, each without its line end."""
    return list(re.finditer(rf"^{re.escape(marker)}(?=\r?$)", text, re.MULTILINE))


def _once(text: str, marker: str, field: str) -> re.Match[str]:
    found = _lines(text, marker)
    if not found:
        raise InvalidRequest(
            f"'{field}' has no line {marker} within {FILE}. Send a prompt of Mercury's edit format."
        )
    if len(found) > 1:
        raise Unreadable(f"The file holds the line {marker} {len(found)} times.")
    return found[0]


def _file(head: str, field: str) -> tuple[str, str]:
    """Return the current file's section, and what precedes it."""
    starts, ends = _lines(head, FILE), _lines(head, FILE_END)
    if not starts or not ends:
        marker = FILE_END if starts else FILE
        raise InvalidRequest(
            f"'{field}' has no line {marker}: it is cut off, or no prompt of Mercury's edit format."
        )
    if len(starts) > 1:  # the real one follows the snippets, which may hold such a line too
        starts = [one for one in starts if head[: one.start()].rstrip().endswith(SNIPPETS_END)]
    if len(starts) != 1:
        raise Unreadable(f"The prompt holds the line {FILE} more than once.")
    start, end = starts[0], ends[-1]
    if end.start() < start.end():
        raise InvalidRequest(f"'{field}': {FILE_END} stands before {FILE}. Send them in order.")
    section = head[start.end() : end.start()].removeprefix("\r").removeprefix("\n")
    return section, head[: start.start()]


def _inner(text: str) -> str:
    """Return a section without the line end of its opening marker and the one that was added."""
    if text.startswith("\r\n"):  # the whole prompt has such line ends
        return text[2:].removesuffix("\n").removesuffix("\r")
    return text.removeprefix("\n").removesuffix("\n")


def _files(snippets: str) -> list[tuple[str, str]]:
    """Return path and text of each snippet that is not torn."""
    starts = _lines(snippets, SNIPPET)
    ends = [*(one.start() for one in starts[1:]), len(snippets)]
    files = []
    for start, end in zip(starts, ends, strict=False):
        text = snippets[start.end() : end].lstrip("\r\n")
        path, close = _SNIPPET_PATH.match(text), text.rfind(SNIPPET_END)
        if path is not None and close >= 0:
            files.append((path["path"], text[path.end() : close]))
    return files


def _write(region: str | None) -> str:
    return NO_EDIT if region is None else f"```\n{region}\n```"
