"""Sweep's second next-edit model (v2, 7B), which writes a few lines around the cursor anew.

After ``inference.py`` beside the published weights, as others retell it::

    <|file_sep|>path⏎ text …                        other files
    <|file_sep|>path⏎ text                          the file, or 300 lines of it
    <|file_sep|>path:first:last⏎ original:⏎ … updated:⏎ …   recent edits, oldest first
    <|file_sep|>original/path:first:last⏎ lines     before the newest edit
    <|file_sep|>current/path:first:last⏎ lines      as they are, with <|cursor|> in them
    <|file_sep|>updated/path:first:last⏎            → lines, END

The lines are those from two above the cursor to five below it, without empty ones at their ends.
The numbers count from the cursor's line within them, as there. Beginnings that are given to the
model, where text was put in above the cursor, are not written.
"""

from __future__ import annotations

from ..config import ModelConfig
from ..records import EditRequest, RecentEdit
from .answers import InvalidAnswer
from .foreign import (
    Declined,
    Mark,
    Piece,
    Read,
    as_it_was,
    count,
    forged,
    joined,
    last_within,
    left_out,
    other_files,
    read_region,
    sides,
    title,
    tokens_of,
)
from .render import Prompt
from .tokens import Tokenizer

FILE = Mark("<|file_sep|>")
CURSOR = "<|cursor|>"

_ABOVE, _BELOW = 2, 5  # lines
_WHOLE, _CHUNK, _STRIDE = 800, 300, 150  # lines of a file: shown whole, else so many at once
_EDITS = 6
#: Tokens of an answer beyond those of the lines as they are.
_GROWTH = 96


class SweepV2:
    """See the module."""

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        if (no := forged(request, (CURSOR,))) is not None:
            return no
        lines = request.text.split("\n")
        at = request.text.count("\n", 0, request.cursor)
        region = block_of(request, lines, at)
        near = _near(request, lines, at, region)
        room = budget - count(near, tokenizer) - 1
        edits, left_edits, room = _edits(request, tokenizer, room)
        own, room = _file(request, tokenizer, len(lines), at, room)
        files, _ = last_within(other_files(request, FILE), tokenizer, room)
        return Prompt(
            tuple(tokens_of([*joined(files), *own, "\n", *edits, "\n", *near], tokenizer)),
            lines,
            at,
            region=region,
            cut=left_out(left_edits, len(request.related) - len(files)),
            room=count(["\n".join(lines[slice(*region)])], tokenizer)
            + max(_GROWTH, request.max_tokens),
        )

    def read(self, prompt: Prompt, request: EditRequest, answer: str, ended: bool) -> Read | None:
        if not answer.strip():
            return None
        if not ended:
            raise InvalidAnswer("The answer broke off before the end of the lines.")
        return read_region(request, prompt.region, answer.replace(CURSOR, ""))


def block_of(request: EditRequest, lines: list[str], at: int) -> tuple[int, int]:
    """0-based lines [first, last) that are written anew; for every empty one above that is left
    out there is one more below."""
    low, high = request.region or (0, len(lines))
    first, last = max(at - _ABOVE, low), min(at + _BELOW + 1, high)
    while first < min(at, last) and not lines[first].strip():
        first, last = first + 1, min(last + 1, high)
    while last > at + 1 and not lines[last - 1].strip():
        last -= 1
    return (first, last) if first <= at < last else (at, at + 1)


def _near(request: EditRequest, lines: list[str], at: int, region: tuple[int, int]) -> list[Piece]:
    first, last = region
    now = "\n".join(lines[first:last])
    cursor = request.cursor - sum(len(line) + 1 for line in lines[:first])
    shown = now[:cursor] + CURSOR + now[cursor:]
    numbers = f":{at - first + 1}:{at - first + last - first + 1}"
    path = title(request.path).removesuffix("\n") + numbers
    before = "\n".join(as_it_was(request, first, last))
    return [
        FILE, f"original/{path}\n{before}\n",
        FILE, f"current/{path}\n{shown}\n",
        FILE, f"updated/{path}\n",
    ]  # fmt: skip


def _edits(request: EditRequest, tokenizer: Tokenizer, room: int) -> tuple[list[Piece], int, int]:
    """The newest edits that fit, how many do not, and the room that is left."""
    recent = request.edits[-_EDITS:]
    shown, room = last_within([_edit(edit) for edit in recent], tokenizer, room)
    pieces: list[Piece] = []
    for one in shown:
        pieces += ["\n", *one] if pieces else one
    return pieces, len(recent) - len(shown), room


def _edit(edit: RecentEdit) -> list[Piece]:
    before, after = sides(edit)
    old, new = ("\n".join(side).strip("\n") for side in (before, after))
    where = f"{title(edit.path).removesuffix(chr(10))}:{edit.line + 1}:{edit.line + len(before)}"
    return [FILE, f"{where}\noriginal:\n{old}\nupdated:\n{new}"]


def _file(
    request: EditRequest, tokenizer: Tokenizer, total: int, at: int, room: int
) -> tuple[list[Piece], int]:
    """The file before the newest edit, or lines of it around the cursor, and what room is left."""
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
