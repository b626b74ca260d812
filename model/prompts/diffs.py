"""Edit histories of prompts: as edit clients write them, and as models are shown them.

They are read hunk by hunk, because clients cut histories to fit and one torn hunk must not cost the
others. A strict reader such as unidiff refuses them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..edits.hunks import merge_edits, recent_edit
from ..records import EditRequest, RecentEdit
from ..text.common import common_ends

ACCEPTED = "// User accepted prediction:"
#: Newest edits and last characters that are read: more than any prompt shows.
MAX_EDITS = 64
MAX_CHARS = 200_000

_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_EDITED = re.compile(r'^User edited "?(?P<path>[^\n]+?)"?:\n```diff\n', re.MULTILINE)


def write_unified_diffs(text: str, path: str = "") -> tuple[RecentEdit, ...]:
    """Return the recent edits, oldest first, of unified diffs one after the other.

    Args:
        path: of hunks that no file header precedes.
    """
    if len(text) > MAX_CHARS:
        text = text[-MAX_CHARS:]
        text = text[text.find("\n--- ") + 1 :]
    lines = text.replace("\r\n", "\n").split("\n")
    edits: list[RecentEdit] = []
    accepted, at = False, 0
    while at < len(lines):
        line = lines[at]
        if line == ACCEPTED:
            accepted, at = True, at + 1
        elif _begins_file(lines, at):
            follows = lines[at + 1]
            path, at = _path(line[4:], follows[4:]), at + 2
            accepted = accepted and at >= 3 and lines[at - 3] == ACCEPTED
        elif (header := _HUNK.match(line)) or line[:1] in ("+", "-"):
            first = max(int(header[2]) - 1, 0) if header else 0
            at += 1 if header else 0
            body = list(_body(lines, at, header))
            at += len(body) if header else max(len(body), 1)
            _add(edits, path, first, body, accepted)
        else:
            at += 1
    return merge_edits(edits[-MAX_EDITS:])


def _begins_file(lines: list[str], at: int) -> bool:
    pair = lines[at : at + 2]
    return len(pair) == 2 and pair[0].startswith("--- ") and pair[1].startswith("+++ ")


def _body(lines: list[str], at: int, header: re.Match[str] | None) -> Iterator[str]:
    """Yield the lines of one hunk: as many as its header says, or else those with a diff sign."""
    old, new = (int(header[1] or 1), int(header[3] or 1)) if header else (MAX_CHARS, MAX_CHARS)
    for i in range(at, len(lines)):
        line, mark = lines[i], lines[i][:1]
        if mark == "\\":
            yield line
            continue
        if (old <= 0 and new <= 0) or mark not in ("+", "-", " ", ""):
            return
        if header is None and (mark == "" or line.startswith("--- ")):
            return
        if _begins_file(lines, i) and "".join(lines[i + 2 : i + 3]).startswith("@@ "):
            return  # the hunk is torn: the next file's begins
        old -= mark in ("-", " ", "")
        new -= mark in ("+", " ", "")
        yield line


def _add(edits: list[RecentEdit], path: str, first: int, body: list[str], accepted: bool) -> None:
    kept = [line or " " for line in body if not line.startswith("\\")]
    while kept and kept[-1] == " " and body[-1] == "":  # the blank line behind a torn hunk
        kept.pop()
        body = body[:-1]
    if any(line[0] in "+-" for line in kept):
        edits.append(RecentEdit(path, first, "".join(f"{line}\n" for line in kept), accepted))


def _path(old: str, new: str) -> str:
    old, new = old.split("\t")[0].strip(), new.split("\t")[0].strip()
    if old.startswith("a/") and new.startswith("b/"):
        old, new = old[2:], new[2:]
    return old.removeprefix("a/") if new == "/dev/null" else new


def write_fenced_diffs(text: str) -> tuple[RecentEdit, ...]:
    """Return the recent edits of ``User edited PATH:`` paragraphs with a fenced diff each."""
    text = text[-MAX_CHARS:].replace("\r\n", "\n")
    edits: list[RecentEdit] = []
    for match in _EDITED.finditer(text):
        end = text.find("\n```", match.end() - 1)
        body = text[match.end() : end if end >= 0 else len(text)]
        edits.extend(write_unified_diffs(body, match["path"]))
    return merge_edits(edits[-MAX_EDITS:])


def original_and_updated(path: str, text: str) -> tuple[RecentEdit, ...]:
    """Return the edit of ``original:`` and ``updated:`` blocks, if they differ."""
    head, found, updated = text.replace("\r\n", "\n").partition("\nupdated:\n")
    if not found or not head.startswith("original:"):
        return ()
    old = head.removeprefix("original:").removeprefix("\n").split("\n")
    new = updated.removesuffix("\n").split("\n")
    if old == new:
        return ()
    # Equal lines at both ends only: to compare long blocks line by line would take seconds.
    top, bottom = common_ends(old, new)
    changed = tuple(new[top : len(new) - bottom])
    return (recent_edit(path, old, top, len(old) - bottom, changed),)


# --- edits in prompts that are rendered -------------------------------------------------------


def sides(edit: RecentEdit) -> tuple[list[str], list[str]]:
    """Return the lines of an edit's hunk before it and after it, without line ends."""
    lines = edit.diff.split("\n")
    before = [line[1:] for line in lines if line[:1] in (" ", "-")]
    return before, [line[1:] for line in lines if line[:1] in (" ", "+")]


def as_it_was(request: EditRequest, first: int, last: int) -> list[str]:
    """Return lines [first, last) of the document before its newest recent edit.

    They are as they are now where there is no such edit, or where it cannot be undone any more.
    """
    lines = request.text.split("\n")
    own = [edit for edit in request.edits if edit.path == request.path]
    if not own:
        return lines[first:last]
    before, after = sides(own[-1])
    at = own[-1].line
    behind = at + len(after)
    if not after or lines[at:behind] != after:
        return lines[first:last]
    earlier = [*lines[:at], *before, *lines[behind:]]
    grown = len(after) - len(before)

    def move(line: int, within: int) -> int:
        return line if line <= at else line - grown if line >= behind else within

    return earlier[move(first, at) : move(last, at + len(before))]
