"""Next edits of redraft-2, which only ``training/rows.py`` still renders. Delete both together.

The region's lines are numbered, and the answer names the lines that it replaces::

    … far parts, the history before the far prefix
    REGION 1|line⏎ 2|line⏎ … @line:column⏎ EDIT   → first-last⏎ lines, each with ⏎, END

``4-3`` inserts before line 4, no lines delete the range, END at once means no edit.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records import EditRequest
from .format import Prompt, place_of
from .pieces import encode, keep
from .redraft3 import far_parts, line_cost, shrunk, window
from .tokenizer import EDIT, REGION, Tokenizer


def render_numbered(
    request: EditRequest,
    tokenizer: Tokenizer,
    budget: int,
    reveal: tuple[int, int] | None = None,
) -> Prompt:
    """Return the prompt of a next edit, at most ``budget`` tokens.

    Args:
        reveal: of a training row: 1-based range [first, last] within the region that the prompt
            states, so that the answer is only its replacement.
    """
    lines = request.text.split("\n")
    at, column = place_of(request)
    first, last = request.region or window(at, len(lines))
    room = max(budget * 8 // 10, 32)
    if reveal is None:  # the region of a training row fits
        first, last = _shown(lines, at, first, last, tokenizer, room)
    near = [
        tokenizer.mark(REGION),
        *keep(tokenizer, _numbered(lines[first:last]), room, from_end=False),
        *tokenizer.encode(f"@{at - first + 1}:{column + 1}\n"),
        tokenizer.mark(EDIT),
        *(encode_range(*reveal, tokenizer) if reveal else []),
    ]
    far, cut = far_parts(request, lines, first, last, tokenizer, budget - len(near))
    head = (*far.related, *far.title, *far.suffix, *far.edits, *far.prefix)
    return Prompt((*head, *near), lines, at, region=(first, last), cut=cut)


def _numbered(lines: Sequence[str]) -> str:
    return "".join(f"{i}|{line}\n" for i, line in enumerate(lines, 1))


def _shown(
    lines: list[str], at: int, first: int, last: int, tokenizer: Tokenizer, room: int
) -> tuple[int, int]:
    """Return as many lines of the region as fit, because unseen lines must not be replaced.

    These are none where not even line ``at`` fits.
    """
    numbered = _numbered(lines[first:last])
    if len(numbered) <= 24 * room and len(encode(tokenizer, numbered)) <= room:
        return first, last
    at = min(max(at, first), max(last - 1, first))
    # The number of each is the largest it may get: lines get smaller ones when some above go.
    costs = [line_cost(tokenizer, f"{last - first}|{line}") for line in lines[first:last]]
    first, last = shrunk(costs, first, last, at, room, least=0)
    return (first, last) if first < last else (at, at)


def encode_range(first: int, last: int, tokenizer: Tokenizer) -> list[int]:
    """Return the tokens of an answer's first line, with its line end as a separate token."""
    return [*tokenizer.encode(f"{first}-{last}"), *tokenizer.encode("\n")]


def encode_edit(first: int, last: int, replacement: list[str], tokenizer: Tokenizer) -> list[int]:
    """Return the tokens of an answer without END; ``replacement`` are lines without line ends."""
    body = "".join(f"{line}\n" for line in replacement)
    return [*encode_range(first, last, tokenizer), *tokenizer.encode(body)]
