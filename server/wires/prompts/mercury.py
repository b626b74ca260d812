"""The prompt of Mercury's next-edit format, read into an excerpt.

A marker counts only where it is a line of its own: in the history each line has its diff mark, and
code that names a marker within a line does no harm. Pure; knows nothing of HTTP.
"""

from __future__ import annotations

import re

from redraft.model.errors import InvalidRequest
from redraft.model.records import RecentEdit

from .diffs import unified_diffs
from .markers import NO_PATH
from .regions import Excerpt, related_files
from .reported import reports_in
from .zeta import Unreadable, Writer, take_cursor

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


def read_mercury(content: str, name: str = "content") -> tuple[Excerpt, Writer]:
    """
    Args:
        name: of the field, for errors.

    Raises:
        InvalidRequest: a section is missing or torn.
        Unreadable: a marker is there twice: one of them is the user's code.
    """
    at_history = _last(content, HISTORY)
    head = content if at_history is None else content[: at_history.start()]
    file, snippets = _file(head, name)
    edits: tuple[RecentEdit, ...] = ()
    if at_history is not None:
        end = _last(content, HISTORY_END)
        edits = unified_diffs(content[at_history.end() : end.start() if end else len(content)])
    files = _files(snippets)
    path = _PATH.match(file)
    body = file[path.end() :] if path else file
    start, end_ = _once(body, REGION, name), _once(body, REGION_END, name)
    if end_.start() < start.end():
        raise InvalidRequest(f"'{name}': {REGION_END} stands before {REGION}. Send them in order.")
    region, cursor = take_cursor(_inner(body[start.end() : end_.start()]), CURSOR, edits)
    after = body[end_.end() :].removeprefix("\r").removeprefix("\n")
    # Where the region ends before a line end, that line end follows its marker.
    after = after.removeprefix("\r\n") if after.startswith("\r\n") else after.removeprefix("\n")
    if after.endswith("\n\n"):  # one was added
        after = after.removesuffix("\n")
    excerpt = Excerpt(
        path=(path["path"].strip() if path else "") or NO_PATH,
        before=body[: start.start()],
        region=region,
        after=after,
        cursor=cursor,
        edits=edits,
        related=related_files(files),
        reports=reports_in(files),
    )
    return excerpt, _write


def _lines(text: str, marker: str) -> list[re.Match[str]]:
    """Where ``marker`` is a line of its own; the match is without its line end."""
    return list(re.finditer(rf"^{re.escape(marker)}(?=\r?$)", text, re.MULTILINE))


def _last(text: str, marker: str) -> re.Match[str] | None:
    found = _lines(text, marker)
    return found[-1] if found else None


def _once(text: str, marker: str, name: str) -> re.Match[str]:
    found = _lines(text, marker)
    if not found:
        raise InvalidRequest(
            f"'{name}' has no line {marker} within {FILE}. Send a prompt of Mercury's edit format."
        )
    if len(found) > 1:
        raise Unreadable(f"The file holds the line {marker} {len(found)} times.")
    return found[0]


def _file(head: str, name: str) -> tuple[str, str]:
    """The current file's section, and what stands before it."""
    starts, end = _lines(head, FILE), _last(head, FILE_END)
    if not starts or end is None:
        marker = FILE_END if starts else FILE
        raise InvalidRequest(
            f"'{name}' has no line {marker}: it is cut off, or no prompt of Mercury's edit format."
        )
    if len(starts) > 1:  # the real one follows the snippets, which may hold such a line too
        starts = [one for one in starts if head[: one.start()].rstrip().endswith(SNIPPETS_END)]
    if len(starts) != 1:
        raise Unreadable(f"The prompt holds the line {FILE} more than once.")
    start = starts[0]
    if end.start() < start.end():
        raise InvalidRequest(f"'{name}': {FILE_END} stands before {FILE}. Send them in order.")
    section = head[start.end() : end.start()].removeprefix("\r").removeprefix("\n")
    return section, head[: start.start()]


def _inner(text: str) -> str:
    """A section without the line end of its opening marker and the one that was added to it."""
    if text.startswith("\r\n"):  # the whole prompt has such line ends
        return text[2:].removesuffix("\n").removesuffix("\r")
    return text.removeprefix("\n").removesuffix("\n")


def _files(snippets: str) -> list[tuple[str, str]]:
    starts = _lines(snippets, SNIPPET)
    ends = [*(one.start() for one in starts[1:]), len(snippets)]
    texts = (
        snippets[start.end() : end].lstrip("\r\n") for start, end in zip(starts, ends, strict=False)
    )
    return [file for file in map(_snippet, texts) if file is not None]


def _snippet(text: str) -> tuple[str, str] | None:
    """Path and text of one; None: it is torn."""
    path = _SNIPPET_PATH.match(text)
    close = text.rfind(SNIPPET_END)
    return None if path is None or close < 0 else (path["path"], text[path.end() : close])


def _write(excerpt: Excerpt, region: str | None) -> str:
    return NO_EDIT if region is None else f"```\n{region}\n```"
