"""Prompts of Sweep's next-edit models, versions 1 and 2, in both directions.

Version 1 (0.5B, 1.5B, 7B) rewrites ten lines above and below the cursor's. Its prompt is that of
``run_model.py`` beside the published weights, as Zed writes it for them::

    <|file_sep|>path⏎ text …                 other files
    <|file_sep|>path.diff⏎ original:⏎ … updated:⏎ …   recent edits, oldest first
    <|file_sep|>original/path⏎ window         before the newest edit
    <|file_sep|>current/path⏎ window          as it is, without a mark for the cursor
    <|file_sep|>updated/path⏎                 → window, END

Version 2 (7B) rewrites the lines from two above the cursor to five below, without empty ones at
their ends. Its prompt is that of Sweep's own server for its plug-ins (``sweep_autocomplete``)::

    <|file_sep|>path⏎ text …                        other files
    <|file_sep|>path⏎ text                          the file, or 300 lines of it
    <|file_sep|>path:first:last⏎ original:⏎ … updated:⏎ …   recent edits, oldest first
    <|file_sep|>original/path:first:last⏎ lines     before the newest edit
    <|file_sep|>current/path:first:last⏎ lines      as they are, with <|cursor|> in them
    <|file_sep|>updated/path:first:last⏎ beginning  → the rest of the lines, END

Its numbers count from the cursor's line within the lines, as there. The beginning that is given is
the first of the lines, as far as the cursor, with the line ends right behind it; the server does so
where something may have changed above the cursor, which its plug-ins always say. The model card's
``inference.py`` shows ten lines to both sides, and gives all lines above the cursor's.

Zed, cursortab.nvim and Sweep's own clients send prompts of either kind. Their window is answered
from behind the part that the prompt already holds.
"""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial

from ..config import ModelConfig
from ..records import EditRequest, RecentEdit
from ..text.common import common_head, common_tail
from .answer_edits import is_answered, parse_region, start_of
from .diffs import MAX_EDITS, as_it_was, original_and_updated, sides
from .excerpt import Excerpt, Unreadable, render_related_files, reports_in, take_cursor
from .format import Declined, ParsedEdit, Prompt, place_of
from .pieces import (
    Mark,
    Piece,
    by_file,
    count,
    describe_cut,
    edits_then_files,
    join_pieces,
    last_within,
    other_files,
    refuse_forged_marks,
    short_path,
    title,
    tokens_of,
    with_last_line_end,
)
from .tokenizer import Tokenizer

FILE = Mark("<|file_sep|>")
CURSOR = "<|cursor|>"


# --- version 1 --------------------------------------------------------------------------------

_LINES = 10  # above and below the cursor's
_EDITS = 3
_EDIT_LINES = 40
_GROWTH = 64  # tokens of an answer beyond those of the window as it is


class Sweep1:
    """Prompts for version 1."""

    needs: tuple[str, ...] = (FILE.name,)

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, _config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        """Return the prompt, at most ``budget`` tokens beside the window."""
        lines, at = request.text.split("\n"), place_of(request)[0]
        low, high = request.region or (0, len(lines))
        first, last = max(at - _LINES, 0, low), min(at + _LINES + 1, len(lines), high)
        first, last = (first, last) if first <= at < last else (at, at + 1)
        now, path = "\n".join(lines[first:last]), title(request.path)
        near: list[Piece] = [
            FILE, f"original/{path}",
            with_last_line_end("\n".join(as_it_was(request, first, last))),
            FILE, f"current/{path}", with_last_line_end(now),
            FILE, f"updated/{path}",
        ]  # fmt: skip
        recent = [_edit(edit) for edit in request.edits[-_EDITS:]]
        room = budget - count(near, tokenizer)
        edits, files, cut = edits_then_files(recent, request, FILE, tokenizer, room)
        return Prompt(
            tuple(tokens_of([*by_file(files), *join_pieces(edits), *near], tokenizer)),
            lines,
            at,
            region=(first, last),
            cut=cut,
            room=count([now], tokenizer) + max(_GROWTH, request.max_tokens),
        )

    def parse(
        self, prompt: Prompt, request: EditRequest, answer: str, ended: bool
    ) -> ParsedEdit | None:
        """Return the edit of the window."""
        if not is_answered(answer, ended, "window"):
            return None
        return parse_region(request, prompt.region, answer)


def _edit(edit: RecentEdit) -> list[Piece]:
    before, after = (with_last_line_end(_shortened(side)) for side in sides(edit))
    return [FILE, f"{short_path(edit.path)}.diff\noriginal:\n{before}updated:\n{after}"]


def _shortened(lines: list[str]) -> str:
    """Return one side as Zed shortens it: the top half of 40 lines, "...", and the end."""
    if len(lines) > _EDIT_LINES:
        top = _EDIT_LINES // 2
        lines = [*lines[:top], "...", *lines[-(_EDIT_LINES - top - 1) :]]
    return "\n".join(lines)


# --- version 2 --------------------------------------------------------------------------------

_ABOVE, _BELOW = 2, 5  # lines
_WHOLE, _CHUNK, _STRIDE = 800, 300, 150  # lines of a file: shown whole, else so many at once
_EDITS_2 = 6
_GROWTH_2 = 96


class Sweep2:
    """Prompts for version 2."""

    needs: tuple[str, ...] = (FILE.name,)

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, _config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        """Return the prompt, or why a document that holds the cursor's mark is not asked about."""
        if (declined := refuse_forged_marks(request, (CURSOR,))) is not None:
            return declined
        lines, at = request.text.split("\n"), place_of(request)[0]
        first, last = _block(request, lines, at)
        now, cursor = "\n".join(lines[first:last]), request.cursor - start_of(lines, first)
        before, begun = "\n".join(as_it_was(request, first, last)), _given(now[:cursor])
        path = f"{short_path(request.path)}:{at - first + 1}:{at - first + last - first + 1}"
        near: list[Piece] = [
            FILE, f"original/{path}\n{before}\n",
            FILE, f"current/{path}\n{now[:cursor]}{CURSOR}{now[cursor:]}\n",
            FILE, f"updated/{path}\n{begun}",
        ]  # fmt: skip
        room = budget - count(near, tokenizer) - 1
        recent = [_edit_2(edit) for edit in request.edits[-_EDITS_2:]]
        edits, room = last_within(recent, tokenizer, room)
        history = join_pieces(["\n", *edit] if i else edit for i, edit in enumerate(edits))
        own, room = _file(request, tokenizer, len(lines), at, room)
        files, _ = last_within(other_files(request, FILE), tokenizer, room)
        pieces = [*join_pieces(files), *own, "\n", *history, "\n", *near]
        return Prompt(
            tuple(tokens_of(pieces, tokenizer)),
            lines,
            at,
            begun=begun,
            region=(first, last),
            cut=describe_cut(len(recent) - len(edits), len(request.related) - len(files)),
            room=count([now], tokenizer) + max(_GROWTH_2, request.max_tokens),
        )

    def parse(
        self, prompt: Prompt, request: EditRequest, answer: str, ended: bool
    ) -> ParsedEdit | None:
        """Return the edit of the lines, unless it only inserts right above the cursor's line.

        Sweep's own server refuses such an edit too.
        """
        if not is_answered(answer, ended, "lines"):
            return None
        lines = prompt.begun + answer.replace(CURSOR, "")
        found = parse_region(request, prompt.region, lines, -len(prompt.begun))
        if found is None:
            return None
        line = request.text.rfind("\n", 0, request.cursor) + 1
        own = request.text[line:].partition("\n")[0]
        only_above = own.strip() and found.start == found.end == line
        if request.task == "next_edit" and only_above:
            return None
        first, last = found.written or (0, 0)
        return replace(found, written=(max(first, 0), max(last, 0)))


def _block(request: EditRequest, lines: list[str], at: int) -> tuple[int, int]:
    """Return the lines [first, last) that are rewritten.

    For every empty one above that is left out there is one more below.
    """
    low, high = request.region or (0, len(lines))
    first, last = max(at - _ABOVE, low), min(at + _BELOW + 1, high)
    while first < min(at, last) and not lines[first].strip():
        first, last = first + 1, min(last + 1, high)
    while last > at + 1 and not lines[last - 1].strip():
        last -= 1
    return (first, last) if first <= at < last else (at, at + 1)


def _given(before: str) -> str:
    """Return the beginning of the answer that is in the prompt; ``before`` ends at the cursor."""
    head, line_end, rest = before.partition("\n")
    return head + line_end + "\n" * (len(rest) - len(rest.lstrip("\n")))


def _edit_2(edit: RecentEdit) -> list[Piece]:
    before, after = sides(edit)
    old, new = ("\n".join(side).strip("\n") for side in (before, after))
    where = f"{short_path(edit.path)}:{edit.line + 1}:{edit.line + len(before)}"
    return [FILE, f"{where}\noriginal:\n{old}\nupdated:\n{new}"]


def _file(
    request: EditRequest, tokenizer: Tokenizer, total: int, at: int, room: int
) -> tuple[list[Piece], int]:
    """Return the file before the newest edit, or lines around the cursor, and the room left."""
    lines = as_it_was(request, 0, total)
    if len(lines) > _WHOLE:
        start = max(round((at - _CHUNK / 2) / _STRIDE), 0) * _STRIDE
        lines = lines[start : start + _CHUNK]
        at = min(max(at - start, 0), len(lines) - 1)
    head: list[Piece] = [FILE, title(request.path)]
    room -= count(head, tokenizer)
    while lines and count(["\n".join(lines)], tokenizer) > room:
        keep = len(lines) // 2
        begin = min(max(at - keep // 2, 0), len(lines) - keep)
        lines, at = lines[begin : begin + keep], at - begin
    text = "\n".join(lines)
    return [*head, text], room - count([text], tokenizer)


# --- received prompts -------------------------------------------------------------------------

_ZED_WINDOW = 2 * _LINES + 1  # lines
_NAME = re.compile(r"(?P<path>[^\n]*?)(?P<lines>:\d{1,9}:\d{1,9})?$")


def read_sweep(text: str) -> Excerpt | None:
    """Return the excerpt of a received prompt of either version; None: it is no such prompt.

    Raises:
        Unreadable: the last two sections are not the window and the start of its new text, or a
            marker also occurs in the code.
    """
    if f"{FILE.name}updated/" not in text or f"{FILE.name}current/" not in text:
        return None
    parts = (part.partition("\n") for part in text.split(FILE.name)[1:])
    sections = [(name, body) for name, _, body in parts]
    if len(sections) < 2:
        raise Unreadable(f"The prompt has {len(sections)} sections that begin with {FILE.name}.")
    (current, shown), (updated, begun) = sections[-2:]
    name = updated.removeprefix("updated/")
    if not updated.startswith("updated/") or current != f"current/{name}":
        raise Unreadable(
            f"The last two sections must be {FILE.name}current/… and {FILE.name}updated/…."
        )
    named = _NAME.match(name)
    assert named is not None, "every string matches"
    is_ended = named["lines"] is not None or text.endswith(f"{FILE.name}{updated}")
    window, edits = _window(shown, is_ended), _edits(sections)
    if CURSOR in window:
        window, cursor = take_cursor(window, CURSOR, edits)
    else:
        original = next((body for other, body in sections if other == f"original/{name}"), "")
        cursor = _end_of_change(original, window)
    if not window.startswith(begun):
        raise Unreadable("What the prompt writes of the updated window differs from the window.")
    before, after, files = _around(sections, named["path"], window)
    return Excerpt(
        path=named["path"],
        before=before,
        region=window,
        after=after,
        cursor=cursor,
        write=partial(_write, window, len(begun)),
        edits=edits,
        related=render_related_files(files),
        reports=reports_in(files),
        fixed=len(begun),
    )


def _window(text: str, is_ended: bool) -> str:
    """Return the window without the line end that the client added, if it did.

    Some always add one. Zed does so only where the window's last line is not blank: a blank last
    line shows in two line ends, or else in one line less than its window has.
    """
    is_blank = text.endswith("\n\n") or text.count("\n") == _ZED_WINDOW - 1
    return text if is_blank and not is_ended else text.removesuffix("\n")


def _end_of_change(original: str, window: str) -> int:
    """Return where the newest edit ended, which is where the cursor is; else the middle line."""
    if original.rstrip("\n") == window.rstrip("\n"):
        lines = window.split("\n")
        return len("\n".join(lines[: len(lines) // 2 + 1]))
    head = common_head(original, window)
    tail = common_tail(original[head:].rstrip("\n"), window[head:].rstrip("\n"))
    return max(head, len(window.rstrip("\n")) - tail)


def _edits(sections: list[tuple[str, str]]) -> tuple[RecentEdit, ...]:
    edits: list[RecentEdit] = []  # newest first
    for name, body in reversed(sections):
        if len(edits) < MAX_EDITS and name.endswith(".diff"):
            edits += original_and_updated(name.removesuffix(".diff"), body)
    return tuple(reversed(edits))


def _around(
    sections: list[tuple[str, str]], path: str, window: str
) -> tuple[str, str, list[tuple[str, str]]]:
    """Return the text above and below the window, if the file itself is shown; the other files."""
    before = after = ""
    files: list[tuple[str, str]] = []
    for name, body in sections:
        if name.startswith(("original/", "current/", "updated/")) or name.endswith(".diff"):
            continue
        if name == path:
            before, found, after = f"\n{body}".partition(f"\n{window}\n")
            before = f"{before}\n".removeprefix("\n") if found else ""
        else:
            files.append((name, body))
    return before, after, files


def _write(window: str, fixed: int, region: str | None) -> str:
    """Write the window behind what the prompt already holds of it.

    Without an edit that is empty where the prompt holds nothing: its line ends may be misread, and
    then even the same window would be an edit.
    """
    if region is None:
        return window[fixed:] if fixed else ""
    return region[fixed:]
