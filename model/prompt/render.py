"""Renders both tasks into tokens; ``answers.py`` reads the answer back.

The one place that knows the layout; serving and training both call it. Most stable part first, so
that a keystroke changes only the tail and the prefix cache keeps the rest::

    FILE path⏎ related text …                other files, least relevant first
    FILE path⏎                               the file itself
    SUFFIX     far suffix                     whole lines below the window
    HISTORY    path:line⏎ diff …             recent edits, oldest first
    FAR_PREFIX far prefix                     whole lines above the window
    infill:     SUFFIX near suffix PREFIX near prefix           → middle END
    next edit:  REGION 1|line⏎ 2|line⏎ … @line:column⏎ EDIT
                                               → first-last⏎ lines, each with ⏎, END

Which tokens the marks are is the vocabulary's (``tokens.py``). Where a vocabulary has no
fill-in-the-middle marks of its own, PREFIX opens both prefixes. Else a mark of its own opens the
far prefix, in an infill even where there is none: with <|fim_prefix|>, <|fim_suffix|> and
<|fim_middle|> for FAR_PREFIX, SUFFIX and PREFIX an infill reads as its model was pretrained, but
that the near prefix stands where the middle begins, so that a keystroke stays cheap. Untrained,
Qwen2.5-Coder-0.5B wrote 29 of 50 single lines in this order and 15 in the documented one.

The window around the cursor moves in steps of :data:`STEP` lines, counted from the top for what is
above and from the bottom for what is below: neither typing nor pressing Enter moves it. In an
answer ``4-3`` inserts before line 4, no lines delete the range, END at once means "no edit". What
may still grow into another token at the cursor is held back from the context and must be written
again by the canvas (``Prompt.forced``). Knows nothing of models, caches or editors.
"""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from functools import lru_cache

from ..config import ModelConfig
from ..errors import RedraftError
from ..memo import Memo
from ..records import EditRequest, RecentEdit, RelatedFile
from .constraints import Constraint, ForcedText, ValidRange
from .fitting import encode, keep, short_path
from .tokens import (
    EDIT,
    FAR_PREFIX,
    FILE,
    HISTORY,
    PREFIX,
    REGION,
    SUFFIX,
    Tokenizer,
    unfinished_word,
)

FORMAT = "redraft-2"  # its name in the configuration of weights
REDRAFT_3 = "redraft-3"
#: Formats whose infills are rendered alike.
FORMATS = (FORMAT, REDRAFT_3)
STEP = 16  # lines by which the window moves
MARGIN = 12  # lines it keeps at least above and below the cursor
_SHORT_LINE = 200  # characters
QUANTUM = 128  # tokens to which the window's cost is rounded, so that typing moves no other cut


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered request. ``tokens`` is never empty: its last token opens the first canvas."""

    tokens: tuple[int, ...]
    lines: Seq[str] = field(default=(), repr=False)  # of the document
    line: int = 0  # the cursor's, 0-based
    above_a_line: bool = False  # infill: the cursor stands at the very start of a line that is not
    # empty, so that what is written there are lines of their own
    forced: str = ""  # text before the cursor that the answer begins with again
    region: tuple[int, int] = (0, 0)  # next edit: 0-based lines [first, last) of the document
    revealed: tuple[int, int] | None = None  # next edit: the range the prompt already states
    constraint: Constraint | None = None
    cut: str = ""  # what was left out for length, for people
    rewrites: bool = False  # next edit: the answer is ``region`` written anew (redraft-3)
    room: int = 0  # tokens of an answer that writes a region anew; 0: as many as are asked for
    stop: tuple[str, ...] = ()  # such an answer ends before the first of these
    begun: str = ""  # its beginning, where the prompt ends with that
    in_place: bool = False  # the answer stands between ``tokens`` and ``behind``
    behind: tuple[int, ...] = field(default=(), repr=False)
    permitted: tuple[int, ...] = ()  # conversation: marks that may be written; the first ends it
    vocab_bytes: Seq[bytes] = field(default=(), repr=False)  # conversation: as the vocabulary's,
    # where marks that may be written are text; (): as the vocabulary's


def render(
    request: EditRequest,
    tokenizer: Tokenizer,
    config: ModelConfig,
    budget: int,
    reveal: tuple[int, int] | None = None,
) -> Prompt:
    """Tokens of ``request``, at most ``budget`` of them.

    Args:
        reveal: next edit only: state this range (1-based first, last within the region) in the
            prompt, so that the canvas writes only its replacement.
    """
    if config.prompt_format not in FORMATS:
        raise RedraftError(
            f"These weights were made for prompt format {config.prompt_format!r}, this Redraft "
            f"writes {FORMAT!r}. Run 'redraft model pull', or 'redraft model import' again."
        )
    lines = request.text.split("\n")
    at = request.text.count("\n", 0, request.cursor)
    forced, above = "", False
    if request.task == "infill":
        above = is_above_a_line(request)
        first, last = window(at, len(lines))
        near, forced = _near_infill(request, lines, at, first, last, tokenizer, budget)
    else:
        first, last = request.region or window(at, len(lines))
        if reveal is None:  # a training row's region fits
            first, last = _shown(lines, at, first, last, tokenizer, _room_of_region(budget))
        near = _near_edit(request, lines, at, first, last, reveal, tokenizer, budget)
    far, cut = far_parts(request, lines, first, last, tokenizer, budget - len(near))
    head = [*far.related, *far.title, *far.suffix, *far.edits, *far.prefix]
    if request.task == "infill" and tokenizer.has_far_prefix:
        opens = tokenizer.mark(FAR_PREFIX)
        near = near if opens in head else [opens, *near]
    constraint: Constraint | None = None
    if forced:
        constraint = ForcedText(forced, tokenizer)
    elif request.task == "next_edit" and reveal is None:
        constraint = ValidRange(last - first, tokenizer, config.end_token)
    tokens = tuple(head + near)
    return Prompt(tokens, lines, at, above, forced, (first, last), reveal, constraint, cut)


def is_above_a_line(request: EditRequest) -> bool:
    """Return whether the cursor stands at the very start of a line that is not empty."""
    text, at = request.text, request.cursor
    before, after = text[max(0, at - 1) : at], text[at : at + 1]
    return before in ("", "\n") and after not in ("", "\n", "\r")


def window(line: int, total: int) -> tuple[int, int]:
    """0-based lines [first, last) around ``line`` of a document of ``total`` lines."""
    above = max(0, (line - MARGIN) // STEP * STEP)
    below = max(0, (total - 1 - line - MARGIN) // STEP * STEP)
    return above, total - below


# --- near the cursor --------------------------------------------------------------------------


def _near_infill(
    request: EditRequest,
    lines: list[str],
    at: int,
    first: int,
    last: int,
    tokenizer: Tokenizer,
    budget: int,
) -> tuple[list[int], str]:
    column = request.cursor - (request.text.rfind("\n", 0, request.cursor) + 1)
    before = "\n".join([*lines[first:at], lines[at][:column]])
    after = "\n".join([lines[at][column:], *lines[at + 1 : last]])
    if last < len(lines):
        after += "\n"
    forced = unfinished_word(before)
    before = before[: len(before) - len(forced)]
    room = max(budget - 16, 32)  # the marks and the path need some
    suffix = keep(tokenizer, after, room * 3 // 10, from_end=False)
    prefix = keep(tokenizer, before, room * 6 // 10, from_end=True)
    return [tokenizer.mark(SUFFIX), *suffix, tokenizer.mark(PREFIX), *prefix], forced


def _near_edit(
    request: EditRequest,
    lines: list[str],
    at: int,
    first: int,
    last: int,
    reveal: tuple[int, int] | None,
    tokenizer: Tokenizer,
    budget: int,
) -> list[int]:
    column = request.cursor - (request.text.rfind("\n", 0, request.cursor) + 1)
    body = keep(tokenizer, _numbered(lines, first, last), _room_of_region(budget), from_end=False)
    cursor = tokenizer.encode(f"@{at - first + 1}:{column + 1}\n")
    stated = encode_range(*reveal, tokenizer) if reveal else []
    return [tokenizer.mark(REGION), *body, *cursor, tokenizer.mark(EDIT), *stated]


def _numbered(lines: list[str], first: int, last: int) -> str:
    return "".join(f"{i}|{line}\n" for i, line in enumerate(lines[first:last], 1))


def _room_of_region(budget: int) -> int:
    return max(budget * 8 // 10, 32)


def _shown(
    lines: list[str], at: int, first: int, last: int, tokenizer: Tokenizer, room: int
) -> tuple[int, int]:
    """As many lines of the region [first, last) around line ``at`` as fit: what the model does not
    see it must not replace. None at all where not even that line fits."""
    numbered = _numbered(lines, first, last)
    if len(numbered) <= 24 * room and len(encode(tokenizer, numbered)) <= room:
        return first, last
    at = min(max(at, first), max(last - 1, first))

    def cost(line: int) -> int:
        # The number is the largest it may get: lines lose theirs when some above them go.
        return _cost(tokenizer, f"{last - first}|{lines[line]}")

    spent = sum(map(cost, range(first, last)))
    while spent > room and first < last:
        if at - first >= last - 1 - at:
            spent -= cost(first)
            first += 1
        else:
            spent -= cost(last - 1)
            last -= 1
    return (first, last) if first < last else (at, at)


# --- far from the cursor ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FarParts:
    """Tokens of the parts of a prompt that lie far from the cursor."""

    related: list[int]  # excerpts of other files
    title: list[int]  # the file's path
    suffix: list[int]  # lines below
    prefix: list[int]  # lines above
    edits: list[int]  # recent edits


def far_parts(
    request: EditRequest,
    lines: list[str],
    first: int,
    last: int,
    tokenizer: Tokenizer,
    room: int,
) -> tuple[FarParts, str]:
    """Return the parts around the lines [first, last), within ``room`` tokens, and what was cut."""
    title = [tokenizer.mark(FILE), *tokenizer.encode(f"{short_path(request.path)}\n")]
    room = max(room // QUANTUM * QUANTUM, min(room, QUANTUM)) - len(title)
    cut: list[str] = []

    edits, dropped = _edits(request.edits, tokenizer, room // 2)
    _note(cut, dropped, len(request.edits), "recent edits")
    room -= len(edits)
    below = lines[last:]
    share = room if not request.related else room * 7 // 10
    wanted = min(_spent(tokenizer, below, share), share * 4 // 10)  # what is above matters more
    prefix, dropped = _far_lines(
        lines[:first], tokenizer, share - wanted, FAR_PREFIX, from_end=True
    )
    _note(cut, dropped, first, "lines above")
    room -= len(prefix)
    suffix, dropped = _far_lines(below, tokenizer, share - len(prefix), SUFFIX, from_end=False)
    _note(cut, dropped, len(below), "lines below")
    room -= len(suffix)
    related, dropped = _related(request.related, tokenizer, room)
    _note(cut, dropped, len(request.related), "related files")
    return FarParts(related, title, suffix, prefix, edits), "; ".join(cut)


def _note(cut: list[str], dropped: int, total: int, what: str) -> None:
    if dropped:
        cut.append(f"left out {dropped} of {total} {what}")


def _far_lines(
    lines: list[str], tokenizer: Tokenizer, room: int, mark: str, *, from_end: bool
) -> tuple[list[int], int]:
    """Whole lines next to the window, as many as fit; a cut above falls on a multiple of STEP."""
    room -= 1
    taken, spent = 0, 0
    for line in reversed(lines) if from_end else lines:
        spent += _cost(tokenizer, line)
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
    """Tokens the lines would take, counted no further than ``room``."""
    spent = 1 if lines else 0
    for line in lines:
        if spent >= room:
            break
        spent += _cost(tokenizer, line)
    return spent


def _edits(edits: tuple[RecentEdit, ...], tokenizer: Tokenizer, room: int) -> tuple[list[int], int]:
    """The newest edits that fit, each whole."""
    kept: list[tuple[int, ...]] = []
    room -= 1
    for edit in reversed(edits):
        ids = encode(tokenizer, render_edit(edit))
        if len(ids) > room:
            break
        room -= len(ids)
        kept.append(ids)
    flat = [i for ids in reversed(kept) for i in ids]
    return ([tokenizer.mark(HISTORY), *flat] if flat else []), len(edits) - len(kept)


def render_edit(edit: RecentEdit) -> str:
    return f"{short_path(edit.path)}:{edit.line + 1}\n{edit.diff}"


def _related(
    files: tuple[RelatedFile, ...], tokenizer: Tokenizer, room: int
) -> tuple[list[int], int]:
    """The most relevant excerpts (the last ones) that fit, each whole or cut at a line."""
    kept: list[list[int]] = []
    for file in reversed(files):
        name = [tokenizer.mark(FILE), *tokenizer.encode(f"{short_path(file.path)}\n")]
        text = file.text if file.text.endswith("\n") else file.text + "\n"
        body = keep(tokenizer, text, room - len(name), from_end=False)
        if not body:
            break
        kept.append([*name, *body])
        room -= len(kept[-1])
    return [i for ids in reversed(kept) for i in ids], len(files) - len(kept)


def _cost(tokenizer: Tokenizer, line: str) -> int:
    if len(line) <= _SHORT_LINE:
        return _cost_of_short(tokenizer, line)
    return _COSTS.get((tokenizer, line), _cost_anew)


@lru_cache(maxsize=32_768)
def _cost_of_short(tokenizer: Tokenizer, line: str) -> int:
    """A tenth of what a :class:`Memo` takes, for hundreds of lines a keystroke; 36 MB at most."""
    return _cost_anew((tokenizer, line))


def _cost_anew(asked: tuple[Tokenizer, str]) -> int:
    tokenizer, line = asked
    return len(tokenizer.encode(line)) + 1 if len(line) < 20_000 else len(line) // 2


_COSTS: Memo[tuple[Tokenizer, str], int] = Memo(4 << 20)


def encode_range(first: int, last: int, tokenizer: Tokenizer) -> list[int]:
    """The first line of a next-edit answer; apart from what follows, so that its newline stays
    a token of its own."""
    return [*tokenizer.encode(f"{first}-{last}"), *tokenizer.encode("\n")]
