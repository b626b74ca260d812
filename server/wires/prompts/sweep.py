"""Prompts of Sweep's next-edit models, as Zed, cursortab.nvim and Sweep's own clients write them.

The window is answered anew, from behind what the prompt already writes of it. Pure; knows nothing
of HTTP.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from redraft.model.records import RecentEdit
from redraft.model.text.common import common_head, common_tail

from .diffs import MAX_EDITS, original_and_updated
from .regions import Excerpt, related_files
from .reported import reports_in
from .zeta import Unreadable, Writer, take_cursor

FILE = "<|file_sep|>"
CURSOR = "<|cursor|>"

#: Zed shows ten lines above and below the cursor.
ZED_WINDOW_LINES = 21

_NAME = re.compile(r"(?P<path>[^\n]*?)(?P<lines>:\d{1,9}:\d{1,9})?$")


def reads_sweep(prompt: str) -> bool:
    return f"{FILE}updated/" in prompt and f"{FILE}current/" in prompt


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    text: str


def read_sweep(prompt: str) -> tuple[Excerpt, Writer]:
    """
    Raises:
        Unreadable: the last two sections are not the window and the start of its new text, or a
            marker also occurs in the code.
    """
    sections = _sections(prompt)
    updated, current = sections[-1], sections[-2]
    name = updated.name.removeprefix("updated/")
    if not updated.name.startswith("updated/") or current.name != f"current/{name}":
        raise Unreadable(f"The last two sections must be {FILE}current/… and {FILE}updated/….")
    named = _NAME.match(name)
    assert named is not None, "every string matches"
    path = named["path"]
    open_ended = prompt.endswith(f"{FILE}{updated.name}")
    window = _window(current.text, named["lines"] is not None or open_ended)
    edits = _edits(sections)
    original = next((s.text for s in sections if s.name == f"original/{name}"), "")
    if CURSOR in window:
        window, cursor = take_cursor(window, CURSOR, edits)
    else:
        cursor = _end_of_change(original, window)
    if not window.startswith(updated.text):
        raise Unreadable("What the prompt writes of the updated window differs from the window.")
    before, after, files = _around(sections, path, window)
    related, reports = related_files(files), reports_in(files)
    excerpt = Excerpt(
        path, before, window, after, cursor, edits, related, reports, fixed=len(updated.text)
    )
    return excerpt, _write


def _sections(prompt: str) -> list[_Section]:
    found = []
    for part in prompt.split(FILE)[1:]:
        name, _, text = part.partition("\n")
        found.append(_Section(name, text))
    if len(found) < 2:
        raise Unreadable(f"The prompt has {len(found)} sections that begin with {FILE}.")
    return found


def _window(text: str, always_ended: bool) -> str:
    """The window without the line end that the client added, if it did.

    Some always add one. Zed does so only where the window's last line is not blank: a blank last
    line shows in two line ends, or else in one line less than its window has.
    """
    if always_ended:
        return text.removesuffix("\n")
    blank = text.endswith("\n\n") or text.count("\n") == ZED_WINDOW_LINES - 1
    return text if blank else text.removesuffix("\n")


def _end_of_change(original: str, window: str) -> int:
    """Where the newest edit ended, which is where the cursor is; else the window's middle line."""
    if original.rstrip("\n") == window.rstrip("\n"):
        lines = window.split("\n")
        return len("\n".join(lines[: len(lines) // 2 + 1]))
    head = common_head(original, window)
    tail = common_tail(original[head:].rstrip("\n"), window[head:].rstrip("\n"))
    return max(head, len(window.rstrip("\n")) - tail)


def _edits(sections: list[_Section]) -> tuple[RecentEdit, ...]:
    edits: list[RecentEdit] = []  # newest first
    for section in reversed(sections):
        if len(edits) < MAX_EDITS and section.name.endswith(".diff"):
            edits += original_and_updated(section.name.removesuffix(".diff"), section.text)
    return tuple(reversed(edits))


def _around(
    sections: list[_Section], path: str, window: str
) -> tuple[str, str, list[tuple[str, str]]]:
    """What stands above and below the window where the file itself is shown; the other files."""
    before = after = ""
    shown = f"\n{window}\n"
    files: list[tuple[str, str]] = []
    for section in sections:
        special = section.name.startswith(("original/", "current/", "updated/"))
        if special or section.name.endswith(".diff"):
            continue
        if section.name == path:
            before, found, after = f"\n{section.text}".partition(shown)
            before = f"{before}\n".removeprefix("\n") if found else ""
        else:
            files.append((section.name, section.text))
    return before, after, files


def _write(excerpt: Excerpt, region: str | None) -> str:
    """The window behind what the prompt already wrote; without an edit, empty where it wrote
    nothing (its line ends may be told wrong, and then even the same window would be an edit)."""
    if region is None:
        return excerpt.region[excerpt.fixed :] if excerpt.fixed else ""
    return region[excerpt.fixed :]
