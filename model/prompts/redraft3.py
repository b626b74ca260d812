"""Redraft's own format, redraft-3: infills, and next edits as the region after the edit.

Serving and training both render it. The most stable part comes first, so that a keystroke changes
only the tail and the prefix cache keeps the rest::

    FILE path⏎ related text …      pinned files, then excerpts of others, least relevant first
    FILE path⏎                     the file itself
    SUFFIX     far suffix          whole lines below the window or region
    HISTORY    path:line⏎ diff …   infill: recent edits, oldest first
    FAR_PREFIX far prefix          lines above the window or region, behind those of cells above
    HISTORY    path:line⏎ diff …   next edit: recent edits, oldest first
    infill:     SUFFIX near suffix PREFIX near prefix   → middle END
    next edit:  REGION lines with CURSOR in them EDIT   → the lines after the edit END

``tokenizer.py`` says which tokens the marks are. A vocabulary without fill-in-the-middle marks has
PREFIX for both prefixes. Otherwise FAR_PREFIX is another mark, which an infill always holds:
with <|fim_prefix|>, <|fim_suffix|> and <|fim_middle|> for FAR_PREFIX, SUFFIX and PREFIX an infill
reads as the model was pretrained, except that the near prefix follows the mark of the middle, so
that a keystroke stays cheap. Untrained, Qwen2.5-Coder-0.5B wrote 29 of 50 single lines right in
this order and 15 in the documented one.

The window of an infill and the region of a next edit move in steps, counted from the top for what
is above and from the bottom for what is below, so that neither typing nor Enter moves them. The
last characters before the cursor that may still grow into another token are not in the prompt of
an infill; the answer begins with them (``Prompt.forced``). A next edit that changes nothing repeats
the region. Its history follows the far parts, so that a keystroke in the edit in progress
recomputes the end of the history and the region, not the file.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from functools import lru_cache

from ..config import ModelConfig
from ..records import EditRequest, RecentEdit, RelatedFile
from .answer_edits import is_answered, parse_infill, parse_region
from .format import Declined, ParsedEdit, Prompt, is_above_a_line, place_of
from .pieces import encode, keep, short_path, title
from .tokenizer import (
    CURSOR,
    EDIT,
    FAR_PREFIX,
    FILE,
    HISTORY,
    PREFIX,
    REGION,
    SUFFIX,
    Tokenizer,
    find_unfinished_word,
)

#: Lines by which the window of an infill moves, and that it keeps above and below the cursor.
STEP, MARGIN = 16, 12
#: The same of a region.
REGION_STEP, REGION_MARGIN = 6, 3
#: Tokens of a region at most, and tokens that an edit may add to it.
REGION_TOKENS, ROOM_TO_GROW = 200, 96
#: Tokens to which the room for far parts is rounded, so that typing does not move where it is cut:
#: neither in the region nor in the newest edit.
QUANTUM = 128
_SHORT_LINE = 200  # characters


class Redraft3:
    """The format redraft-3, and the infills of redraft-2, which are the same.

    Args:
        predicts_edits: False for redraft-2, whose next edits are no longer written.
    """

    needs: tuple[str, ...] = ()

    def __init__(self, predicts_edits: bool = True) -> None:
        self.predicts_edits = predicts_edits

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        """Return the prompt of ``request``, at most ``budget`` tokens."""
        if request.task != "next_edit":
            return render_infill(request, tokenizer, budget)
        if self.predicts_edits and config.verifier == "ar":
            return render_edit(request, tokenizer, budget)
        return Declined(f"{config.name} was trained to fill in text, not to predict edits.")

    def parse(
        self, prompt: Prompt, request: EditRequest, answer: str, ended: bool
    ) -> ParsedEdit | None:
        """Return the edit that ``answer`` makes, or None where it changes nothing."""
        if request.task != "next_edit":
            return parse_infill(prompt, request, answer)
        if not is_answered(answer, ended, "region") and (answer or not ended):
            return None  # an empty answer deletes every line
        return parse_region(request, prompt.region, answer, closed=True)


def window(line: int, total: int) -> tuple[int, int]:
    """Return the 0-based lines [first, last) around ``line`` of a document of ``total`` lines."""
    above = max(0, (line - MARGIN) // STEP * STEP)
    below = max(0, (total - 1 - line - MARGIN) // STEP * STEP)
    return above, total - below


def render_infill(request: EditRequest, tokenizer: Tokenizer, budget: int) -> Prompt:
    """Return the prompt of an infill, at most ``budget`` tokens."""
    lines = request.text.split("\n")
    at, column = place_of(request)
    first, last = window(at, len(lines))
    before = "\n".join([*lines[first:at], lines[at][:column]])
    after = "\n".join([lines[at][column:], *lines[at + 1 : last]])
    if last < len(lines):
        after += "\n"
    forced = find_unfinished_word(before)
    room = max(budget - 16, 32)  # the marks and the path need some
    suffix = keep(tokenizer, after, room * 3 // 10, from_end=False)
    prefix = keep(tokenizer, before.removesuffix(forced), room * 6 // 10, from_end=True)
    near = [tokenizer.mark(SUFFIX), *suffix, tokenizer.mark(PREFIX), *prefix]
    far, cut = _far_parts(request, lines, (first, last), tokenizer, budget - len(near))
    return Prompt(
        (*far, *near),
        lines,
        at,
        is_above_a_line(request),
        forced,
        (first, last),
        cut=cut,
    )


# --- regions ----------------------------------------------------------------------------------


def render_edit(request: EditRequest, tokenizer: Tokenizer, budget: int) -> Prompt:
    """Return the prompt of a next edit, at most ``budget`` tokens."""
    lines = request.text.split("\n")
    at, column = place_of(request)
    outer = request.region or window(at, len(lines))
    region = narrow(lines, at, outer, room_of_region(budget), tokenizer)
    body = region_tokens(lines[slice(*region)], at - region[0], column, tokenizer)
    near = [tokenizer.mark(REGION), *body, tokenizer.mark(EDIT)]
    far, cut = _far_parts(request, lines, region, tokenizer, budget - len(near))
    room, newest = len(body) + ROOM_TO_GROW, _edits(request.edits[-1:], tokenizer, len(far))[0][1:]
    is_shown = bool(newest) and tuple(far[-len(newest) :]) == tuple(newest)
    stable = len(far) - (len(newest) if is_shown else 0)
    return Prompt(
        (*far, *near), lines, at, region=region, rewrites=True, room=room, cut=cut, stable=stable
    )


def room_of_region(budget: int) -> int:
    """Return the tokens that a region takes at most in a prompt of ``budget`` tokens."""
    return min(REGION_TOKENS, budget // 2)


def narrow(
    lines: Sequence[str], at: int, outer: tuple[int, int], room: int, tokenizer: Tokenizer
) -> tuple[int, int]:
    """Return the 0-based lines [first, last) around line ``at`` that may be rewritten.

    They are within ``outer`` and take at most ``room`` tokens, except for a single longer line.
    """
    low, high = outer
    at = min(max(at, low), max(high - 1, low))
    above = (at - REGION_MARGIN) // REGION_STEP * REGION_STEP
    below = (len(lines) - 1 - at - REGION_MARGIN) // REGION_STEP * REGION_STEP
    first, last = max(low, above), min(high, len(lines) - max(0, below))
    costs = [len(encode(tokenizer, f"{line}\n")) for line in lines[first:last]]
    return shrunk(costs, first, last, at, room)


def shrunk(costs: Sequence[float], first: int, last: int, at: int, room: float) -> tuple[int, int]:
    """Return the lines [first, last) without as many at their ends as ``room`` demands; one stays.

    Args:
        costs: of each line; ``room`` for their sum.
        at: line on both sides of which about as many stay.
    """
    spent, costs = sum(costs), list(costs)
    while spent > room and last - first > 1:
        if at - first >= last - 1 - at:
            spent -= costs.pop(0)
            first += 1
        else:
            spent -= costs.pop()
            last -= 1
    return first, last


def region_tokens(lines: Sequence[str], line: int, column: int, tokenizer: Tokenizer) -> list[int]:
    """Return the tokens of ``lines`` with CURSOR at ``line`` and ``column``, where it is inside."""
    text = "".join(f"{each}\n" for each in lines)
    if not 0 <= line < len(lines):
        return tokenizer.encode(text)
    offset = sum(len(each) + 1 for each in lines[:line]) + min(column, len(lines[line]))
    before, after = tokenizer.encode(text[:offset]), tokenizer.encode(text[offset:])
    return [*before, tokenizer.mark(CURSOR), *after]


# --- far from the cursor ----------------------------------------------------------------------


def _far_parts(
    request: EditRequest,
    lines: list[str],
    region: tuple[int, int],
    tokenizer: Tokenizer,
    room: int,
) -> tuple[list[int], str]:
    """Return the tokens of all parts around the region, within ``room``, and what was cut."""
    path = _path_tokens(request.path, tokenizer)
    edits, cut_edits = _edits(request.edits, tokenizer, (_rounded(room) - len(path)) // 2)
    room = _rounded(room - len(edits)) - len(path)
    pinned, _ = _related(
        tuple(each for each in request.related if each.pinned), tokenizer, room // 3
    )
    room -= len(pinned)
    others = tuple(each for each in request.related if not (each.pinned or each.is_above))
    above = [*request.text_above.split("\n")[:-1], *lines[: region[0]]]
    below = lines[region[1] :]
    share = room if not others else room * 7 // 10
    wanted = min(_spent(tokenizer, below, share), share * 4 // 10)  # what is above matters more
    prefix, cut_above = _far_lines(above, tokenizer, share - wanted, FAR_PREFIX)
    suffix, cut_below = _far_lines(below, tokenizer, share - len(prefix), SUFFIX)
    room -= len(prefix) + len(suffix)
    related, cut_files = _related(others, tokenizer, room)
    cuts = (
        (cut_edits, len(request.edits), "recent edits"),
        (cut_above, len(above), "lines above"),
        (cut_below, len(below), "lines below"),
        (cut_files, len(others), "related files"),
    )
    cut = "; ".join(f"left out {many} of {total} {what}" for many, total, what in cuts if many)
    if request.task == "next_edit":
        return [*pinned, *related, *path, *suffix, *prefix, *edits], cut
    if tokenizer.has_far_prefix and not prefix:
        prefix = [tokenizer.mark(FAR_PREFIX)]
    return [*pinned, *related, *path, *suffix, *edits, *prefix], cut


def _rounded(room: int) -> int:
    """Return ``room`` rounded down to a multiple of QUANTUM, unless that would be nothing."""
    return max(room // QUANTUM * QUANTUM, min(room, QUANTUM))


def _path_tokens(path: str, tokenizer: Tokenizer) -> list[int]:
    return [tokenizer.mark(FILE), *tokenizer.encode(title(path))]


def _far_lines(
    lines: list[str], tokenizer: Tokenizer, room: int, mark: str
) -> tuple[list[int], int]:
    """Return as many whole lines next to the window as fit, and how many do not.

    A cut above falls on a multiple of STEP.
    """
    from_end = mark == FAR_PREFIX
    taken, spent = 0, 1
    for line in reversed(lines) if from_end else lines:
        spent += line_cost(tokenizer, line)
        if spent > room:
            break
        taken += 1
    if taken < len(lines) and from_end:
        start = -(-(len(lines) - taken) // STEP) * STEP
        taken = max(0, len(lines) - start)
    if taken == 0:
        return [], len(lines)
    kept = lines[-taken:] if from_end else lines[:taken]
    text = "\n".join(kept) + ("\n" if from_end or taken < len(lines) else "")
    return [tokenizer.mark(mark), *encode(tokenizer, text)], len(lines) - taken


def _spent(tokenizer: Tokenizer, lines: list[str], room: int) -> int:
    """Return the tokens that the lines would take, counted no further than ``room``."""
    spent = 1 if lines else 0
    for line in lines:
        if spent >= room:
            break
        spent += line_cost(tokenizer, line)
    return spent


def _edits(edits: tuple[RecentEdit, ...], tokenizer: Tokenizer, room: int) -> tuple[list[int], int]:
    """Return the newest edits that fit, each whole, and how many do not."""
    kept: list[tuple[int, ...]] = []
    room -= 1
    for edit in reversed(edits):
        ids = encode(tokenizer, f"{short_path(edit.path)}:{edit.line + 1}\n{edit.diff}")
        if len(ids) > room:
            break
        room -= len(ids)
        kept.append(ids)
    flat = [i for ids in reversed(kept) for i in ids]
    return ([tokenizer.mark(HISTORY), *flat] if flat else []), len(edits) - len(kept)


def _related(
    files: tuple[RelatedFile, ...], tokenizer: Tokenizer, room: int
) -> tuple[list[int], int]:
    """Return the most relevant excerpts, which are the last, and how many do not fit.

    Each is whole or cut at a line.
    """
    kept: list[list[int]] = []
    for file in reversed(files):
        name = _path_tokens(file.path, tokenizer)
        text = file.text if file.text.endswith("\n") else file.text + "\n"
        body = keep(tokenizer, text, room - len(name), from_end=False)
        if not body:
            break
        kept.append([*name, *body])
        room -= len(kept[-1])
    return [i for ids in reversed(kept) for i in ids], len(files) - len(kept)


def line_cost(tokenizer: Tokenizer, line: str) -> int:
    """Return the tokens of a line with its line end; of a very long one, an estimate."""
    if len(line) <= _SHORT_LINE:
        return _cost_of_short(weakref.ref(tokenizer), line)
    return len(encode(tokenizer, line)) + 1 if len(line) < 20_000 else len(line) // 2


@lru_cache(maxsize=32_768)
def _cost_of_short(of: weakref.ref[Tokenizer], line: str) -> int:
    """Remember short lines in a tenth of the time that :func:`encode` takes: 36 MB at most."""
    tokenizer = of()
    assert tokenizer is not None, "the caller has it"
    return len(tokenizer.encode(line)) + 1
