"""Training rows for both tasks, rendered by the very prompt that serves.

Pure given a ``random.Random``: a file or commit in, rows of token ids out. Infill rows remove a
middle from a file, or from what a commit was adding; next-edit rows apply some of a commit's hunks
as history and ask for the next. ``redraft train pack`` writes them to shards; ``redraft train
show`` prints some. Knows nothing of torch or of shards.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..config import ModelConfig
from ..decode.regions import region_text
from ..edits.edit import LineChange
from ..edits.hunks import apply_history, last_burst
from ..prompts.redraft3 import REGION_MARGIN, render_edit, render_infill
from ..prompts.tokenizer import PREFIX, Tokenizer
from ..records import EditRequest, RecentEdit, RelatedFile, Task
from ..text.lines import estimate, estimate_text
from .commits import FileChange, TrainingMoment, changes_of, draw_moment, nothing_left
from .middles import MIX, Middle, MiddleKind, SourceText, choose_middle, draw_kind
from .neighbours import Neighbours, changed_with

RowKind = MiddleKind | Literal["edit", "typing", "none"]
#: Every class of row, by the byte that stands for it in a shard; next edits come last.
KINDS: tuple[RowKind, ...] = (*MIX, "edit", "typing", "none")
FIRST_EDIT = len(MIX)
_TRIES = 3
_SPARE = 4  # times its wanted length: the room a prompt is rendered with, so that nothing is cut


@dataclass(frozen=True, slots=True)
class Recipe:
    """What rows are made of; shares lie in 0 … 1."""

    edit_share: float = 0.48  # of all rows ask for the next edit, the rest for an infill
    max_answer: int = 64  # tokens; longer infills are skipped
    max_region: int = 260  # tokens; longer regions after an edit are skipped
    budgets: tuple[int, ...] = (256, 384, 512, 768, 1_024)  # prompt budgets in tokens, drawn by
    budget_weights: tuple[float, ...] = (20, 35, 25, 15, 5)
    edit_budget: int = 512  # least prompt budget of a next-edit row: a region needs room
    edits_room: float = 0.35  # share of the budget that the recent edits take at most
    related: float = 0.4  # rows with excerpts of other files, where there are any
    nothing_left: float = 0.1  # next-edit rows whose region stays as it is
    typing: float = 0.12  # next-edit rows cut in the middle of a line being typed

    def budget(self, rng: random.Random) -> int:
        return rng.choices(self.budgets, self.budget_weights)[0]


RECIPE = Recipe()
#: By the length of their prompts: for two CPU cores (short, mixed), for serving's default budgets,
#: for a GPU.
RECIPES = {
    "short": Recipe(budgets=(160, 256, 384), budget_weights=(35, 40, 25), edit_budget=320),
    "medium": RECIPE,
    # Three rows in ten with related files, history and far parts in front, as they are served.
    "mixed": Recipe(
        budgets=(192, 288, 416, 896),
        budget_weights=(20, 28, 22, 30),
        edit_budget=320,
        related=0.5,
    ),
    "long": Recipe(budgets=(768, 1_024, 1_536), budget_weights=(1, 1, 1), edit_budget=768),
}


@dataclass(frozen=True, slots=True)
class Kit:
    """What every row needs to be rendered."""

    tokenizer: Tokenizer
    config: ModelConfig
    recipe: Recipe = RECIPE


@dataclass(frozen=True, slots=True)
class Row:
    """Training example; the trainer appends END to the answer."""

    task: Task
    kind: RowKind
    prompt: tuple[int, ...]
    answer: tuple[int, ...]  # without END; () means END at once
    plain: int  # from this index on, the prompt is ordinary code to continue; 0: nowhere


# --- infill -----------------------------------------------------------------------------------


def infill_row(
    source: SourceText,
    kit: Kit,
    rng: random.Random,
    *,
    lines: range | None = None,
    edits: tuple[RecentEdit, ...] = (),
    related: tuple[RelatedFile, ...] | Neighbours = (),
) -> Row | None:
    """A row whose middle begins in one of ``lines`` (default: any); None where none fits."""
    text, longest = source.text, kit.recipe.max_answer
    kind = draw_kind(rng)  # once: giving up on long ones would shift the mix towards short ones
    for _ in range(_TRIES):
        middle = choose_middle(source, kind, rng, lines)
        if middle and len(kit.tokenizer.encode(text[middle.start : middle.end])) <= longest:
            break
    else:
        return None
    if isinstance(related, Neighbours):
        near = text[max(0, middle.start - 400) : middle.end + 200]
        related = related.related(source.path, near, rng)
    start, end = middle.start, middle.end
    budget = kit.recipe.budget(rng)
    edits = newest(edits, budget * kit.recipe.edits_room)
    top, bottom = _crop_text(source, middle, budget - _extras(edits, related), rng)
    shown = text[top:start] + text[end:bottom]
    request = EditRequest("infill", source.path, shown, start - top, edits=edits, related=related)
    prompt = render_infill(request, kit.tokenizer, _SPARE * budget)
    answer = kit.tokenizer.encode(prompt.forced + text[start:end])
    if not answer or len(answer) > longest:
        return None
    tokens = prompt.tokens
    plain = len(tokens) - tokens[::-1].index(kit.tokenizer.mark(PREFIX))
    return Row("infill", middle.kind, tokens, tuple(answer), plain)


def _crop_text(
    source: SourceText, middle: Middle, tokens: float, rng: random.Random
) -> tuple[int, int]:
    """Whole lines of the text around the middle, as indices."""
    first = bisect_right(source.starts, middle.start) - 1
    last = bisect_right(source.starts, max(middle.start, middle.end - 1))
    top, bottom = crop(source.lines, first, last, tokens, rng.uniform(0.4, 0.8))
    return source.starts[top], source.line_end(bottom - 1)


def _extras(edits: Sequence[RecentEdit], related: Sequence[RelatedFile]) -> float:
    """Tokens they take."""
    return sum(estimate_text(e.diff) for e in edits) + sum(estimate_text(r.text) for r in related)


def _infill_of_change(
    change: FileChange, kit: Kit, rng: random.Random, related: tuple[RelatedFile, ...]
) -> Row | None:
    """Infill inside the newest of some added lines, the earlier hunks being the recent edits; half
    the time the lines of the hunk that come later are not there yet."""
    added = [i for i, hunk in enumerate(change.hunks) if any(line.strip() for line in hunk.new)]
    if not added:
        return None
    state, edits, hunk = apply_history(change.path, change.old, change.hunks, rng.choice(added))
    edits = tuple(map(last_burst, edits[max(0, len(edits) - rng.randint(0, 4)) :]))
    new = hunk.new
    lines = range(hunk.first, hunk.first + len(new))
    if rng.random() < 0.5:
        new = new[: rng.randint(1, len(new))]
        lines = range(max(hunk.first, hunk.first + len(new) - 3), hunk.first + len(new))
    state[hunk.first : hunk.last] = new
    source = SourceText(change.path, "\n".join(state))
    return infill_row(source, kit, rng, lines=lines, edits=edits, related=related)


# --- next edit --------------------------------------------------------------------------------


def edit_row(
    change: FileChange,
    kit: Kit,
    rng: random.Random,
    *,
    before: Sequence[FileChange] = (),
    related: tuple[RelatedFile, ...] = (),
) -> Row | None:
    """A next-edit row from one file of a commit; None where no hunk suits.

    Args:
        before: other files of the commit that the person has edited already.
    """
    nothing = rng.random() < kit.recipe.nothing_left
    for _ in range(_TRIES):
        moment = (
            nothing_left(change, rng) if nothing else draw_moment(change, kit.recipe.typing, rng)
        )
        edits = (*_edits_of(before, rng), *moment.edits)[-rng.randint(1, 5) :]
        edits = tuple(map(last_burst, edits))
        row = _render_edit(change.path, moment, edits, related, kit, rng)
        if row:
            return row
    return None


def _edits_of(before: Sequence[FileChange], rng: random.Random) -> tuple[RecentEdit, ...]:
    """The last edits in the file that was edited before this one."""
    if not before:
        return ()
    change = before[-1]
    _, edits, _ = apply_history(change.path, change.old, change.hunks, len(change.hunks))
    return edits[-rng.randint(1, 3) :]


def _render_edit(
    path: str,
    moment: TrainingMoment,
    edits: tuple[RecentEdit, ...],
    related: tuple[RelatedFile, ...],
    kit: Kit,
    rng: random.Random,
) -> Row | None:
    """Return the row of ``moment``, or None where its region gets too long.

    The region is around the cursor, as it is served. Where that does not hold the edit, it is
    around the edit, as for an edit that a rule or a search of other places finds.
    """
    recipe, lines, (line, column) = kit.recipe, moment.lines, moment.cursor
    line = min(line, len(lines) - 1)
    column = min(column, len(lines[line]))
    target = moment.target or LineChange(line)
    budget = max(recipe.edit_budget, recipe.budget(rng))
    edits = newest(edits, budget * recipe.edits_room)
    low, high = min(target.first, line), max(target.last, line + 1)
    top, bottom = crop(lines, low, high, budget - _extras(edits, related), rng.uniform(0.4, 0.8))
    shown, first, last = lines[top:bottom], target.first - top, target.last - top
    cursor = sum(len(above) + 1 for above in shown[: line - top]) + column
    request = EditRequest("next_edit", path, "\n".join(shown), cursor, edits=edits, related=related)
    around = max(first - REGION_MARGIN, 0), min(last + REGION_MARGIN, len(shown))
    for region in (None, around):
        asked = replace(request, region=region)
        prompt = render_edit(asked, kit.tokenizer, _SPARE * budget)
        if prompt.region[0] <= first and last <= prompt.region[1]:
            break
    else:
        return None
    answer = kit.tokenizer.encode(region_text(prompt, first, last, target.new))
    if len(answer) > recipe.max_region:
        return None
    return Row("next_edit", moment.kind, prompt.tokens, tuple(answer), 0)


# --- sources ----------------------------------------------------------------------------------


def rows_of(
    record: dict[str, Any],
    tokenizer: Tokenizer,
    config: ModelConfig,
    rng: random.Random,
    *,
    recipe: Recipe = RECIPE,
    times: int = 1,
    neighbours: Neighbours | None = None,
) -> Iterator[Row]:
    """From a line of either kind of file; a commit is known by its ``files``.

    Args:
        times: how often to draw from it.
        neighbours: other files of the repository, for a record that is a file.
    """
    kit = Kit(tokenizer, config, recipe)
    if "files" in record:
        return _rows_of_commit(record, kit, rng, times)
    return _rows_of_file(record, kit, rng, times, neighbours)


def _rows_of_file(
    record: dict[str, Any], kit: Kit, rng: random.Random, times: int, neighbours: Neighbours | None
) -> Iterator[Row]:
    """Yield infill rows from a line of ``*-files.jsonl``: ``{repo, path, language, text}``."""
    source = SourceText(record["path"], record["text"].replace("\r\n", "\n"))
    for _ in range(times):
        near = neighbours if neighbours and rng.random() < kit.recipe.related else ()
        row = infill_row(source, kit, rng, related=near)
        if row:
            yield row


def _rows_of_commit(
    record: dict[str, Any], kit: Kit, rng: random.Random, times: int
) -> Iterator[Row]:
    """From a line of ``*-commits.jsonl``: ``{repo, commit, time, files: [{path, before, after}]}``.

    Next-edit rows, and infill rows inside what the commit added with its other hunks as history.
    """
    changes = changes_of(record, rng)
    if not changes:
        return
    for _ in range(times):
        at = rng.randrange(len(changes))
        change = changes[at]
        others = changes[:at] + changes[at + 1 :]
        related = changed_with(others, at, rng) if rng.random() < kit.recipe.related else ()
        row = edit_row(change, kit, rng, before=changes[:at], related=related)
        if row:
            yield row
        if rng.random() < 0.4:
            row = _infill_of_change(change, kit, rng, related)
            if row:
                yield row


# --- for people -------------------------------------------------------------------------------


def show_row(row: Row, tokenizer: Tokenizer) -> str:
    """The row as people read it, marks by name."""
    names = {tokenizer.mark(m): f"\n{m}" for m in _MARK_NAMES}

    def text(ids: tuple[int, ...]) -> str:
        parts: list[str] = []
        run: list[int] = []
        for i in ids:
            if i in names:
                parts.append(tokenizer.decode(run))
                parts.append(names[i])
                run = []
            else:
                run.append(i)
        return "".join([*parts, tokenizer.decode(run)])

    return (
        f"── {row.task} / {row.kind}: {len(row.prompt)} + {len(row.answer)} tokens"
        f"{text(row.prompt)}⟦{text(row.answer)}⟧END"
    )


_MARK_NAMES = (
    "<file_sep>",
    "<jupyter_start>",
    "<jupyter_text>",
    "<jupyter_output>",
    "<jupyter_script>",
    "<issue_start>",
)


# --- documents and histories cut to a number of tokens --------------------------------------

# Serving has room for thousands of tokens and training rows for hundreds. A whole document rendered
# with a small budget would lose its recent edits first; a shorter document rendered with room to
# spare looks as it does when serving.


def crop(
    lines: Sequence[str], first: int, last: int, tokens: float, above: float
) -> tuple[int, int]:
    """Return the lines [top, bottom) around [first, last) of about ``tokens`` tokens.

    Args:
        above: share of the remaining tokens for the lines above; one side gets what the other
            side cannot use.
    """
    room = tokens - sum(map(estimate, lines[first:last]))
    upward = _grown(lines[:first][::-1], room * above)
    below = room - sum(map(estimate, lines[first - upward : first]))
    downward = _grown(lines[last:], below)
    spare = below - sum(map(estimate, lines[last : last + downward]))
    upward += _grown(lines[: first - upward][::-1], spare)
    return first - upward, last + downward


def _grown(lines: Sequence[str], room: float) -> int:
    """Return how many of ``lines`` fit."""
    for taken, line in enumerate(lines):
        room -= estimate(line)
        if room < 0:
            return taken
    return len(lines)


def newest(edits: Sequence[RecentEdit], tokens: float) -> tuple[RecentEdit, ...]:
    """Return the last edits that fit, each whole."""
    kept = 0
    for edit in reversed(edits):
        tokens -= estimate_text(edit.diff) + estimate(edit.path)
        if tokens < 0:
            break
        kept += 1
    return tuple(edits[len(edits) - kept :])
