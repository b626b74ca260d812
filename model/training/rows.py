"""Training rows for both tasks, rendered by the prompt code that serves.

An infill row removes a middle from a file, or from what a commit was adding. A next-edit row
applies some hunks of a commit or chain as history and asks for the next one. The same
``random.Random`` gives the same rows.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, NamedTuple

from ..decode.regions import region_text
from ..edits.edit import LineChange
from ..edits.hunks import CONTEXT_LINES, apply_history, last_burst, lines_of
from ..prompts import tokenizer as marks
from ..prompts.format import Prompt
from ..prompts.redraft3 import REGION_MARGIN, render_edit, render_infill
from ..prompts.tokenizer import Tokenizer
from ..records import EditRequest, RecentEdit, RelatedFile, Task
from .chains import Chain, chain_of, moment_of
from .commit_edits import FileChange, changes_of
from .cuts import NAME
from .excerpts import Neighbours, cost, crop, excerpt_of_change, newest
from .middles import MIX, RemovedSpan, SourceText, choose_middle, draw_kind
from .moments import EditClass, TrainingMoment, draw_moment, group_of, nothing_left

_TRIES = 3
_DRAWS = 2  # rows of each kind from one commit or file
_OF_CHAIN = 3  # rows of one chain, its end not counted
_FAR = 12  # lines between a place and the newest edit from which on a place is far
_SPARE = 4  # times its wanted length: the room a prompt is rendered with, so that nothing is cut


@dataclass(frozen=True, slots=True)
class Recipe:
    """Shares (0 to 1) and sizes (tokens) of rows."""

    infills: float = 0.4  # of all rows; the others ask for the next edit
    chains: float = 0.25  # of next edits; the others come from commits
    max_answer: int = 64  # longer infills are skipped
    max_region: int = 260  # longer regions after an edit are skipped
    budgets: tuple[int, ...] = (192, 288, 416, 896)  # of prompts, drawn by
    budget_weights: tuple[float, ...] = (20, 28, 22, 30)
    edit_budget: int = 320  # least budget of a next-edit row: a region needs room
    far_budgets: tuple[int, ...] = (256, 320, 384)  # of places far from the last edit
    short: float = 0.5  # of these places: asked with such a budget
    edits_room: float = 0.35  # share of the budget that the recent edits take at most
    related: float = 1 / 3  # rows with excerpts of other files, where there are any
    nothing_left: float = 0.16  # next edits whose region stays as it is: a tenth of all rows
    two_steps: float = 0.35  # hunks of up to six lines of which a part is made already
    typing: float = 0.08  # moments drawn in the middle of a line being typed: all are kept
    new_words: float = 0.35  # kept of whole hunks with a word that stands nowhere in the prompt
    unrelated: float = 0.4  # kept of whole hunks that share no name with the recent edits
    lines: tuple[int, int] = (6, 16)  # of a region that is not the one served

    def budget(self, rng: random.Random) -> int:
        """Return a budget, drawn by its weights."""
        return rng.choices(self.budgets, self.budget_weights)[0]


#: "short" is for CPU cores, "long" for a GPU.
RECIPES = {
    "short": Recipe(),
    "long": Recipe(budgets=(768, 1_024, 1_536), budget_weights=(1, 1, 1), edit_budget=768),
}


@dataclass(frozen=True, slots=True)
class Row:
    """Training example; the trainer appends END to the answer."""

    task: Task
    kind: int  # its class, one byte; see EditClass
    prompt: tuple[int, ...]
    answer: tuple[int, ...]  # without END; () means END at once
    plain: int  # from this index on, the prompt is ordinary code to continue; 0: nowhere


class AskedMoment(NamedTuple):
    """A moment as a rendered request."""

    request: EditRequest
    prompt: Prompt
    target: LineChange  # of the lines of the request; an empty change where nothing is left


class RowMaker:
    """Makes rows of files and commits.

    Args:
        tokenizer: of the model that is trained.
    """

    def __init__(self, tokenizer: Tokenizer, recipe: Recipe) -> None:
        self._tokenizer, self._recipe = tokenizer, recipe

    def of_file(
        self, record: dict[str, Any], rng: random.Random, neighbours: Neighbours | None = None
    ) -> Iterator[Row]:
        """Yield rows of a record ``{path, text, …}``: infills, and next edits of a chain.

        Args:
            neighbours: other files of the repository.
        """
        source = SourceText(record["path"], record["text"].replace("\r\n", "\n"))
        for _ in range(_DRAWS):
            near = neighbours if neighbours and rng.random() < self._recipe.related else ()
            row = self.infill(source, rng, related=near)
            if row:
                yield row
        if "test" not in source.path.lower() or rng.random() < 0.4:  # tests name much only once
            chain = chain_of(source.path, source.text, rng)
            if chain:
                yield from self.of_chain(chain, rng)

    def of_commit(self, record: dict[str, Any], rng: random.Random) -> Iterator[Row]:
        """Yield rows of a record ``{files: [{path, before, after}], …}``.

        They are next edits, and infills of what the commit added, with its other hunks as history.
        """
        changes = changes_of(record, rng)
        for _ in range(_DRAWS if changes else 0):
            at = rng.randrange(len(changes))
            others = changes[:at] + changes[at + 1 :]
            has_related = rng.random() < self._recipe.related
            related = excerpt_of_change(others, at, rng) if has_related else ()
            for row in (
                self.edit(changes[at], rng, before=changes[:at], related=related),
                self._infill_of_change(changes[at], rng, related) if rng.random() < 0.5 else None,
            ):
                if row:
                    yield row

    # --- infills ------------------------------------------------------------------------------

    def infill(
        self,
        source: SourceText,
        rng: random.Random,
        *,
        lines: range | None = None,
        edits: tuple[RecentEdit, ...] = (),
        related: tuple[RelatedFile, ...] | Neighbours = (),
    ) -> Row | None:
        """Return a row whose middle begins in one of ``lines``, or None where none fits."""
        text, recipe, encode = source.text, self._recipe, self._tokenizer.encode
        kind = draw_kind(rng)  # once: giving up on long ones would shift the mix to short ones
        for _ in range(_TRIES):
            middle = choose_middle(source, kind, rng, lines)
            if middle and len(encode(text[middle.start : middle.end])) <= recipe.max_answer:
                break
        else:
            return None
        start, end = middle.start, middle.end
        if isinstance(related, Neighbours):
            near = text[max(0, start - 400) : end + 200]
            related = related.draw_excerpts(source.path, near, rng)
        budget = recipe.budget(rng)
        edits = newest(edits, budget * recipe.edits_room)
        top, bottom = _crop_text(source, middle, budget - cost(edits, related), rng)
        shown = text[top:start] + text[end:bottom]
        request = EditRequest(
            "infill", source.path, shown, start - top, edits=edits, related=related
        )
        prompt = render_infill(request, self._tokenizer, _SPARE * budget)
        answer = encode(prompt.forced + text[start:end])
        if not answer or len(answer) > recipe.max_answer:
            return None
        tokens = prompt.tokens
        plain = len(tokens) - tokens[::-1].index(self._tokenizer.mark(marks.PREFIX))
        return Row("infill", 2 * [*MIX].index(middle.kind), tokens, tuple(answer), plain)

    def _infill_of_change(
        self, change: FileChange, rng: random.Random, related: tuple[RelatedFile, ...]
    ) -> Row | None:
        """Return an infill within the newest of some added lines, earlier hunks as history.

        Half the time the lines that come later in the hunk are not there yet.
        """
        added = [i for i, hunk in enumerate(change.hunks) if "".join(hunk.new).strip()]
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
        return self.infill(source, rng, lines=lines, edits=edits, related=related)

    # --- next edits ---------------------------------------------------------------------------

    def edit(
        self,
        change: FileChange,
        rng: random.Random,
        *,
        before: Sequence[FileChange] = (),
        related: tuple[RelatedFile, ...] = (),
    ) -> Row | None:
        """Return a next-edit row of one file of a commit, or None where no hunk suits.

        Args:
            before: other files of the commit that were edited already.
        """
        recipe = self._recipe
        is_end = rng.random() < recipe.nothing_left
        for _ in range(_TRIES):
            if is_end:
                moment = nothing_left(change, rng)
            else:
                moment = draw_moment(change, recipe.typing, recipe.two_steps, rng)
            edits = (*_last_edits(before, rng), *moment.edits)[-rng.randint(1, 5) :]
            moment = replace(moment, edits=tuple(map(last_burst, edits)))
            question = self.ask(change.path, moment, rng, related)
            if question is None:
                continue
            kind = self._class_of(question, moment)
            if self._is_kept(kind, moment, rng):
                return self._edit_row(question, kind)
        return None

    def of_chain(self, chain: Chain, rng: random.Random) -> Iterator[Row]:
        """Yield rows of some steps of a chain, and now and then of its end."""
        steps = rng.sample(chain.foreseen, min(len(chain.foreseen), _OF_CHAIN))
        if rng.random() < 0.2:
            steps.append(len(chain.change.hunks))
        for step in steps:
            moment = moment_of(chain, step, self._recipe.typing, rng)
            moment = replace(moment, edits=moment.edits[-rng.randint(1, 5) :])
            question = self.ask(chain.change.path, moment, rng)
            if (
                question is None
                or self._tokenizer.mark(marks.HISTORY) not in question.prompt.tokens
            ):
                continue
            kind = self._class_of(question, moment) | EditClass.CHAIN
            row = self._edit_row(question, kind)
            if row and self._is_kept(kind, moment, rng):
                yield row

    def ask(
        self,
        path: str,
        moment: TrainingMoment,
        rng: random.Random,
        related: tuple[RelatedFile, ...] = (),
    ) -> AskedMoment | None:
        """Return ``moment`` as it is asked about, or None where no region holds its edit.

        Half the regions are those that serving takes around the cursor; the others have a drawn
        number of lines. Where these do not hold the edit, the region is around the edit, as for
        one that a rule or a search of other places finds.
        """
        recipe, lines, (line, column) = self._recipe, moment.lines, moment.cursor
        line = min(line, len(lines) - 1)
        column = min(column, len(lines[line]))
        target = moment.target or LineChange(line)
        budget = max(recipe.edit_budget, recipe.budget(rng))
        if is_far(path, line, moment.edits) and rng.random() < recipe.short:
            budget = rng.choice(recipe.far_budgets)
        edits = newest(moment.edits, budget * recipe.edits_room)
        low, high = min(target.first, line), max(target.last, line + 1)
        room = budget - cost(edits, related)
        top, bottom = crop(lines, low, high, room, rng.uniform(0.4, 0.8))
        shown, target = lines[top:bottom], replace(target, first=target.first - top)
        cursor = sum(len(above) + 1 for above in shown[: line - top]) + column
        request = EditRequest(
            "next_edit", path, "\n".join(shown), cursor, edits=edits, related=related
        )
        around = max(target.first - REGION_MARGIN, 0), min(target.last + REGION_MARGIN, len(shown))
        regions: list[tuple[int, int] | None] = [None, around]
        if rng.random() < 0.5:
            inner = low - top, high - top
            if high - low > recipe.lines[1]:
                inner = target.first, target.last
            regions.insert(0, _drawn_region(inner, rng.randint(*recipe.lines), len(shown), rng))
        for region in regions:
            asked = replace(request, region=region)
            prompt = render_edit(asked, self._tokenizer, _SPARE * budget)
            if prompt.region[0] <= target.first and target.last <= prompt.region[1]:
                return AskedMoment(asked, prompt, target)
        return None

    def _edit_row(self, question: AskedMoment, kind: int) -> Row | None:
        """Return the row, or None where the region gets too long."""
        request, prompt, target = question
        text = region_text(prompt, target.first, target.last, target.new)
        answer = self._tokenizer.encode(text)
        if len(answer) > self._recipe.max_region:
            return None
        before = request.text.split("\n")[slice(*prompt.region)]
        if not text.strip() and "".join(before).strip():
            return None  # a model that has seen empty regions empties them, block after block
        return Row("next_edit", int(kind), prompt.tokens, tuple(answer), 0)

    def _class_of(self, question: AskedMoment, moment: TrainingMoment) -> EditClass:
        tokens, target = question.prompt.tokens, question.target
        kind = EditClass.NEXT_EDIT
        if self._tokenizer.mark(marks.CURSOR) not in tokens:
            kind |= EditClass.ELSEWHERE
        if moment.target is None:
            return kind | EditClass.NOTHING_LEFT
        if moment.kind == "typing":
            kind |= EditClass.TYPING
        if not names_in(target.new) <= names_in([self._tokenizer.decode(tokens)]):
            kind |= EditClass.NEW_WORD
        if names_in((*target.old, *target.new)) & _changed_names(question.request.edits, "+-"):
            kind |= EditClass.SHARED_NAME
        if not "".join(target.new).strip() and "".join(target.old).strip():
            kind |= EditClass.ONLY_DELETES
        return kind

    def _is_kept(self, kind: EditClass, moment: TrainingMoment, rng: random.Random) -> bool:
        """Return whether the recipe keeps a row; a chain has no words that stand nowhere."""
        if kind & EditClass.CHAIN and kind & EditClass.NEW_WORD:
            return False
        if kind & (EditClass.NOTHING_LEFT | EditClass.TYPING):
            return True
        if kind & EditClass.ONLY_DELETES and not _deletion_follows(moment):
            return False
        if kind & EditClass.NEW_WORD and rng.random() > self._recipe.new_words:
            return False
        return bool(kind & EditClass.SHARED_NAME) or rng.random() < self._recipe.unrelated


def _drawn_region(
    inner: tuple[int, int], size: int, total: int, rng: random.Random
) -> tuple[int, int]:
    """Return ``size`` lines, or as many as there are, that hold the lines ``inner``."""
    first = max(0, inner[0] - rng.randint(0, max(0, size - (inner[1] - inner[0]))))
    return first, min(max(first + size, inner[1]), total)


def is_far(path: str, line: int, edits: Sequence[RecentEdit]) -> bool:
    """Return whether the newest edit is in another file, or far from ``line``."""
    if not edits:
        return False
    newest = edits[-1]
    return newest.path != path or abs(newest.line + CONTEXT_LINES - line) > _FAR


def names_in(lines: Iterable[str]) -> set[str]:
    """Return the names of three or more characters."""
    return set(NAME.findall("\n".join(lines)))


def _changed_names(edits: Iterable[RecentEdit], signs: str) -> set[str]:
    return names_in(text for e in edits for sign, text in lines_of(e.diff) if sign in signs)


def _deletion_follows(moment: TrainingMoment) -> bool:
    """Return whether the recent edits deleted a name that the deletion asked for deletes."""
    assert moment.target is not None
    return bool(names_in(moment.target.old) & _changed_names(moment.edits, "-"))


def _last_edits(before: Sequence[FileChange], rng: random.Random) -> tuple[RecentEdit, ...]:
    """Return the last edits in the file that was edited before this one."""
    if not before:
        return ()
    change = before[-1]
    _, edits, _ = apply_history(change.path, change.old, change.hunks, len(change.hunks))
    return edits[-rng.randint(1, 3) :]


def _crop_text(
    source: SourceText, middle: RemovedSpan, tokens: float, rng: random.Random
) -> tuple[int, int]:
    """Return whole lines of the text around the middle, as indices."""
    first = bisect_right(source.starts, middle.start) - 1
    last = bisect_right(source.starts, max(middle.start, middle.end - 1))
    top, bottom = crop(source.lines, first, last, tokens, rng.uniform(0.4, 0.8))
    return source.starts[top], source.line_end(bottom - 1)


def show_row(row: Row, tokenizer: Tokenizer) -> str:
    """Return a row for people: marks by name, the answer in brackets."""
    names = {tokenizer.mark(name): f"\n{name}" for name in (marks.FAR_PREFIX, *marks.MARKS)}
    names[tokenizer.mark(marks.CURSOR)] = marks.CURSOR
    runs = groupby(row.prompt, key=names.get)
    prompt = "".join(mark or tokenizer.decode([*run]) for mark, run in runs)
    head = f"── {group_of(row.kind)}: {len(row.prompt)} + {len(row.answer)} tokens"
    return f"{head}{prompt}⟦{tokenizer.decode(row.answer)}⟧END"
