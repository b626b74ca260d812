"""Scores of the moments of walks: what was shown, and what became of the text in the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from redraft.lsp.suggestions.suggestion import Suggestion
from redraft.model.edits.edit import Edit
from redraft.model.edits.hunks import hunks_of
from redraft.model.records import EditRequest

from ..example import Example, Moment, Row, Truth
from ..gate.samples import is_kept, is_right
from ..metrics import reversal_ratio
from ..scorers.next_edit_scores import find_difference, overlap
from .walk_player import PlaceAnswer, PlayedMoment
from .walks import Walk

NEAR = 12  # lines from the cursor; what is farther needs a jump
_DISTANCES = ((2, "0-2 lines"), (NEAR, "3-12 lines"), (60, "13-60 lines"))
NOTHING_LEFT, OTHER_FILE, FARTHER = "nothing left", "another file", "over 60 lines"
_REVERSED = 0.5  # share of what an edit changes that takes the user back


def example_of(moment: PlayedMoment) -> Example:
    """Return a moment with its scores, and with the answers as the gate is fitted on them."""
    walk, shown = moment.walk, moment.shown
    file = walk.files[moment.file]
    is_left = any(
        text.split("\n") != list(goal.after)
        for text, goal in zip(moment.texts, walk.files, strict=True)
    )
    row: Row = {
        "shown": shown is not None if is_left else None,
        "quiet": shown is None if is_left is False else None,
        "right": shown is not None and _is_exact(moment) if is_left else None,
        "reason": moment.reason,
        "next": _where_next(moment) if is_left else NOTHING_LEFT,
        "questions": len(moment.answers),
        "prompt_tokens": sum(one.answer.prediction.stats.prompt_tokens for one in moment.answers),
        "reused_tokens": sum(one.answer.prediction.stats.reused_tokens for one in moment.answers),
        "took_ms": round(1000 * moment.took_s, 1),
    }
    if shown is not None:
        row |= _shown(moment, shown, is_left=is_left)
    return Example(
        moment.id,
        walk.id,
        "next_edit",
        {"language": file.language or "other", "kind": str(row["next"])},
        Moment(file.path, file.language, moment.texts[moment.file], moment.cursor, moment.recent),
        Truth(final="" if is_left else moment.texts[moment.file]),
        measured={
            "asked": [
                _asked(moment, number, one).to_json() for number, one in enumerate(moment.answers)
            ]
        },
        score=row,
    )


def _shown(moment: PlayedMoment, shown: Suggestion, *, is_left: bool) -> Row:
    """Return the scores of what is shown."""
    walk, results = moment.walk, moment.changed
    file, result = [*results.items()][-1]
    text, goal = moment.texts[file], "\n".join(walk.files[file].after)
    edit = Edit(text, 0, len(text), result).least()
    line = moment.texts[moment.file].count("\n", 0, moment.cursor)
    first, last = edit.lines
    is_far = file != moment.file or not first - NEAR <= line < last + NEAR
    exact = _is_exact(moment) if is_left else None
    return {
        "path": walk.files[file].path,
        "was": edit.old,
        "suggested": edit.new,
        "confidence": shown.confidence,
        "is_far": is_far,
        "exact_shown": exact,
        "kept_shown": exact or _holds_in_all(is_kept, moment) if is_left else None,
        "place_shown": _is_at_place(text, result, goal) if is_left else None,
        "next_shown": _is_next(moment, file, text, result) if is_left else None,
        "far_exact": exact if is_far else None,
        "far_kept": exact or _holds_in_all(is_kept, moment) if is_left and is_far else None,
        "reversal": exact is not True and takes_back(moment.earlier[file], text, result),
    }


def _is_exact(moment: PlayedMoment) -> bool:
    """Return whether every hunk of what is shown is among those left, in all its files."""
    return _holds_in_all(is_right, moment)


def _holds_in_all(judge: Callable[[Edit, EditRequest, str], bool], moment: PlayedMoment) -> bool:
    """Return whether the judge accepts what is shown, in all its files."""
    return all(
        judge(
            Edit(moment.texts[file], 0, len(moment.texts[file]), result),
            EditRequest("next_edit", "", moment.texts[file], 0),
            "\n".join(moment.walk.files[file].after),
        )
        for file, result in moment.changed.items()
    )


def _is_at_place(text: str, result: str, goal: str) -> bool:
    """Return whether an edit changes lines that some change which is left changes too."""
    mine = find_difference(text, result)
    left = hunks_of(text.split("\n"), goal.split("\n"))
    return any(overlap(mine, (each.first, each.last)) for each in left)


def _is_next(moment: PlayedMoment, file: int, text: str, result: str) -> bool:
    """Return whether an edit is at the place of the very next step."""
    following = moment.walk.steps[moment.made : moment.made + 1]
    if not following or following[0].file != file:
        return False
    change = following[0].change
    return overlap(find_difference(text, result), (change.first, change.last))


def _where_next(moment: PlayedMoment) -> str:
    """Return how far from the cursor the next step is."""
    following = moment.walk.steps[moment.made : moment.made + 1]
    if not following or following[0].file != moment.file:
        return OTHER_FILE
    change = following[0].change
    line = moment.texts[moment.file].count("\n", 0, moment.cursor)
    away = max(0, change.first - line, line - max(change.first, change.last - 1))
    return next((name for most, name in _DISTANCES if away <= most), FARTHER)


def takes_back(earlier: Sequence[str], text: str, result: str) -> bool:
    """Return whether an edit takes back, for the most part, what the last steps made of a file."""
    shares = (reversal_ratio(before, text, result) for before in earlier)
    return any(share is not None and share >= _REVERSED for share in shares)


def _asked(moment: PlayedMoment, number: int, one: PlaceAnswer) -> Example:
    """Return the answer about one place, labelled for the gate."""
    question, prediction = one.answer.question, one.answer.prediction
    place = question.snapshot
    file = _file_of(moment.walk, place.path)
    goal = "\n".join(moment.walk.files[file].after)
    edits = [Edit(place.text, part.start, part.end, part.text) for part in one.parts]
    right = [is_right(edit, question.request, goal) for edit in edits]
    return Example(
        f"{moment.id}:{number}",
        moment.walk.id,
        "next_edit",
        {"language": place.language or "other", "kind": "steps"},
        Moment(place.path, place.language, "", place.cursor),
        prediction=replace(prediction, candidates=one.parts),
        measured={
            "right": right,
            "kept": [
                exact or is_kept(edit, question.request, goal)
                for edit, exact in zip(edits, right, strict=True)
            ],
            "barred": [*one.barred],
            "decided_ms": round(one.decided_ms, 1),
            "is_first": one.is_first,
        },
    )


def _file_of(walk: Walk, path: str) -> int:
    return next(at for at, file in enumerate(walk.files) if file.path == path)
