"""Sweep's next-edit models (0.5B, 1.5B, 7B), which write the window around the cursor anew.

The prompt is that of ``run_model.py`` beside the published weights, as Zed writes it for them::

    <|file_sep|>path⏎ text …                 other files
    <|file_sep|>path.diff⏎ original:⏎ … updated:⏎ …   recent edits, oldest first
    <|file_sep|>original/path⏎ window         before the newest edit
    <|file_sep|>current/path⏎ window          as it is: ten lines above and below the cursor's
    <|file_sep|>updated/path⏎                 → window, END

There is no mark for the cursor. Recent edits, at most three, keep 40 lines of each side.
"""

from __future__ import annotations

from ..config import ModelConfig
from ..records import EditRequest, RecentEdit
from .foreign import (
    Declined,
    Mark,
    Piece,
    Read,
    as_it_was,
    by_file,
    count,
    edits_then_files,
    ended,
    joined,
    read_region,
    says_something,
    sides,
    title,
    tokens_of,
)
from .render import Prompt
from .tokens import Tokenizer

FILE = Mark("<|file_sep|>")

_LINES = 10  # above and below the cursor's
_EDITS = 3
_EDIT_LINES = 40
#: Tokens of an answer beyond those of the window as it is.
_GROWTH = 64


class Sweep:
    """See the module."""

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        lines = request.text.split("\n")
        at = request.text.count("\n", 0, request.cursor)
        first, last = window_of(request, at, len(lines))
        near = near_pieces(request, first, last)
        size = count(["\n".join(lines[first:last])], tokenizer)
        head, cut = far_pieces(request, tokenizer, budget - count(near, tokenizer))
        return Prompt(
            tuple(tokens_of([*head, *near], tokenizer)),
            lines,
            at,
            region=(first, last),
            cut=cut,
            room=size + max(_GROWTH, request.max_tokens),
        )

    def read(self, prompt: Prompt, request: EditRequest, answer: str, ended: bool) -> Read | None:
        if not says_something(answer, ended, "window"):
            return None
        return read_region(request, prompt.region, answer)


def window_of(request: EditRequest, at: int, total: int) -> tuple[int, int]:
    """0-based lines [first, last) that are shown and written anew."""
    low, high = request.region or (0, total)
    first, last = max(at - _LINES, 0, low), min(at + _LINES + 1, total, high)
    return (first, last) if first <= at < last else (at, at + 1)


def near_pieces(request: EditRequest, first: int, last: int) -> list[Piece]:
    """The three sections of the window; the model goes on with the last."""
    now = "\n".join(request.text.split("\n")[first:last])
    before = "\n".join(as_it_was(request, first, last))
    path = title(request.path)
    return [
        FILE, f"original/{path}", ended(before),
        FILE, f"current/{path}", ended(now),
        FILE, f"updated/{path}",
    ]  # fmt: skip


def far_pieces(request: EditRequest, tokenizer: Tokenizer, room: int) -> tuple[list[Piece], str]:
    """Other files and recent edits within ``room`` tokens, and what was left out."""
    recent = [_edit(edit) for edit in request.edits[-_EDITS:]]
    edits, files, cut = edits_then_files(recent, request, FILE, tokenizer, room)
    return [*by_file(files), *joined(edits)], cut


def _edit(edit: RecentEdit) -> list[Piece]:
    before, after = (ended(_shortened(side)) for side in sides(edit))
    path = title(edit.path).removesuffix("\n")
    return [FILE, f"{path}.diff\noriginal:\n{before}updated:\n{after}"]


def _shortened(lines: list[str]) -> str:
    """As Zed shortens one: half of the lines from the top, "...", and the rest from the end."""
    if len(lines) > _EDIT_LINES:
        top = _EDIT_LINES // 2
        lines = [*lines[:top], "...", *lines[-(_EDIT_LINES - top - 1) :]]
    return "\n".join(lines)
