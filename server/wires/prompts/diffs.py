"""Edit histories in the texts of edit clients, as recent edits in the form the model is trained on.

Read tolerantly and hunk by hunk: clients cut histories to fit, and one torn hunk must not cost the
others (a strict unified-diff reader refuses them all). Pure; knows nothing of HTTP.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from redraft.model.edits.hunks import joined, recent_edit
from redraft.model.records import RecentEdit
from redraft.model.text.common import common_ends

ACCEPTED = "// User accepted prediction:"
#: More than any model reads; the newest ones count, and only they are looked at.
MAX_EDITS = 64
MAX_CHARS = 200_000

_HUNK = re.compile(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@")
_EDITED = re.compile(r'^User edited "?(?P<path>[^\n]+?)"?:\n```diff\n', re.MULTILINE)


def unified_diffs(text: str, path: str = "") -> tuple[RecentEdit, ...]:
    """Recent edits, oldest first, of unified diffs one after the other.

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
    return joined(edits[-MAX_EDITS:])


def _begins_file(lines: list[str], at: int) -> bool:
    pair = lines[at : at + 2]
    return len(pair) == 2 and pair[0].startswith("--- ") and pair[1].startswith("+++ ")


def _body(lines: list[str], at: int, header: re.Match[str] | None) -> Iterator[str]:
    """Lines of one hunk as they stand, as many as its header says; without one, as they look."""
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


def fenced_diffs(text: str) -> tuple[RecentEdit, ...]:
    """Recent edits of ``User edited PATH:`` paragraphs with a fenced diff each."""
    text = text[-MAX_CHARS:].replace("\r\n", "\n")
    edits: list[RecentEdit] = []
    for match in _EDITED.finditer(text):
        end = text.find("\n```", match.end() - 1)
        body = text[match.end() : end if end >= 0 else len(text)]
        edits.extend(unified_diffs(body, match["path"]))
    return joined(edits[-MAX_EDITS:])


def original_and_updated(path: str, text: str) -> tuple[RecentEdit, ...]:
    """The recent edit of ``original:`` and ``updated:`` blocks; none where they are the same."""
    head, found, updated = text.replace("\r\n", "\n").partition("\nupdated:\n")
    if not found or not head.startswith("original:"):
        return ()
    old = head.removeprefix("original:").removeprefix("\n").split("\n")
    new = updated.removesuffix("\n").split("\n")
    if old == new:
        return ()
    # Above and below, not line by line: a comparison of long blocks would take seconds.
    top, bottom = common_ends(old, new)
    changed = tuple(new[top : len(new) - bottom])
    return (recent_edit(path, old, top, len(old) - bottom, changed),)
