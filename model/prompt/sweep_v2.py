"""Sweep's second next-edit model (v2, 7B), which writes a few lines around the cursor anew.

As Sweep's own server for its plug-ins writes it (``sweep_autocomplete``)::

    <|file_sep|>path⏎ text …                        other files
    <|file_sep|>path⏎ text                          the file, or 300 lines of it
    <|file_sep|>path:first:last⏎ original:⏎ … updated:⏎ …   recent edits, oldest first
    <|file_sep|>original/path:first:last⏎ lines     before the newest edit
    <|file_sep|>current/path:first:last⏎ lines      as they are, with <|cursor|> in them
    <|file_sep|>updated/path:first:last⏎ beginning  → the rest of the lines, END

The lines are those from two above the cursor to five below it, without empty ones at their ends.
The numbers count from the cursor's line within them, as there. The beginning that is given is the
first of the lines, as far as the cursor, with the line ends right behind it; the server does so
where something may have changed above the cursor, which its plug-ins always say. The model card's
``inference.py`` shows ten lines to both sides, and gives all lines above the cursor's.
"""

from __future__ import annotations

from dataclasses import replace

from ..config import ModelConfig
from ..records import EditRequest, RecentEdit
from .foreign import (
    Declined,
    Mark,
    Piece,
    Read,
    as_it_was,
    begin_of,
    count,
    forged,
    joined,
    last_within,
    left_out,
    other_files,
    read_region,
    says_something,
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
            begun=given(lines, region, request.cursor),
            region=region,
            cut=left_out(left_edits, len(request.related) - len(files)),
            room=count(["\n".join(lines[slice(*region)])], tokenizer)
            + max(_GROWTH, request.max_tokens),
        )

    def read(self, prompt: Prompt, request: EditRequest, answer: str, ended: bool) -> Read | None:
        if not says_something(answer, ended, "lines"):
            return None
        lines = prompt.begun + answer.replace(CURSOR, "")
        found = read_region(request, prompt.region, lines, -len(prompt.begun))
        if found is None or _only_above(request, found):
            return None
        first, last = found.written or (0, 0)
        return replace(found, written=(max(first, 0), max(last, 0)))


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


def given(lines: list[str], region: tuple[int, int], cursor: int) -> str:
    """The beginning of the answer that stands in the prompt."""
    first, last = region
    before = "\n".join(lines[first:last])[: cursor - begin_of(lines, first)]
    head, line_end, rest = before.partition("\n")
    return head + line_end + "\n" * (len(rest) - len(rest.lstrip("\n")))


def _only_above(request: EditRequest, found: Read) -> bool:
    """Whether lines are put in right above the cursor's and nothing else: refused, as there."""
    line = request.text.rfind("\n", 0, request.cursor) + 1
    end = request.text.find("\n", request.cursor)
    own = request.text[line : end if end >= 0 else None]
    return bool(request.task == "next_edit" and own.strip() and found.start == found.end == line)


def _near(request: EditRequest, lines: list[str], at: int, region: tuple[int, int]) -> list[Piece]:
    first, last = region
    now = "\n".join(lines[first:last])
    cursor = request.cursor - begin_of(lines, first)
    shown = now[:cursor] + CURSOR + now[cursor:]
    numbers = f":{at - first + 1}:{at - first + last - first + 1}"
    path = title(request.path).removesuffix("\n") + numbers
    before = "\n".join(as_it_was(request, first, last))
    return [
        FILE, f"original/{path}\n{before}\n",
        FILE, f"current/{path}\n{shown}\n",
        FILE, f"updated/{path}\n{given(lines, region, request.cursor)}",
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
