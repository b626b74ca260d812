"""Training rows say what the editor's document says, and lead to what the commit says."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.decode.regions import region_text
from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import hunks_of, recent_edit
from redraft.model.prompts.redraft3 import Redraft3
from redraft.model.prompts.tokenizer import CURSOR, EDIT, HISTORY, PREFIX, REGION, SUFFIX
from redraft.model.records import RecentEdit
from redraft.model.training.chains import chain_of, moment_of
from redraft.model.training.commit_edits import FileChange
from redraft.model.training.middles import MIX, SourceText
from redraft.model.training.moments import (
    CODE,
    EditClass,
    TrainingMoment,
    draw_moment,
    group_of,
    nothing_left,
)
from redraft.model.training.rows import Recipe, Row, RowMaker, show_row
from support.models.tiny import tiny_tokenizer
from support.weights.training_sources import CHAINED

TOKENIZER = tiny_tokenizer()
RECIPE = Recipe(max_answer=200, max_region=2_000)  # the tiny tokenizer writes long answers
MAKER = RowMaker(TOKENIZER, RECIPE)
PROGRAM = "def foo(x):\n    return x + 1\n\n\ndef bar(y):\n    return foo(y, call(y, 'größe'))\n"
OLD = [f"value_{i} = compute({i})" for i in range(40)]


def changed(*places: int) -> list[str]:
    return [
        line.replace("compute", "measure") if i in places else line for i, line in enumerate(OLD)
    ]


def change(old: list[str], new: list[str], path: str = "a.py") -> FileChange:
    return FileChange(path, old, new, hunks_of(old, new))


def parts_of(row: Row) -> tuple[str, str]:
    """Return an infill row's near prefix and near suffix."""
    text = [*row.prompt]
    cut = len(text) - 1 - text[::-1].index(TOKENIZER.mark(PREFIX))
    begin = cut - text[:cut][::-1].index(TOKENIZER.mark(SUFFIX))
    return TOKENIZER.decode(text[cut + 1 :]), TOKENIZER.decode(text[begin:cut])


def test_infill_prompt_and_answer_make_the_original() -> None:
    rng = random.Random(0)
    rows = [MAKER.infill(SourceText("a.py", PROGRAM), rng) for _ in range(60)]
    found = [row for row in rows if row]
    assert len(found) > 50
    for row in found:
        before, after = parts_of(row)
        assert before + TOKENIZER.decode(row.answer) + after == PROGRAM
        assert TOKENIZER.decode(row.prompt[row.plain :]) == before


def test_the_answer_of_a_tail_ends_where_its_line_ends() -> None:
    rng = random.Random(0)
    rows = [MAKER.infill(SourceText("a.py", PROGRAM), rng) for _ in range(80)]
    tails = [row for row in rows if row and row.kind == 2 * [*MIX].index("tail")]
    assert len(tails) > 10
    for row in tails:
        assert "\n" not in TOKENIZER.decode(row.answer)
        assert parts_of(row)[1].startswith("\n")


def test_a_cursor_in_a_word_begins_the_answer_with_it() -> None:
    rng = random.Random(4)
    rows = [MAKER.infill(SourceText("a.py", PROGRAM), rng) for _ in range(200)]
    pairs = [(parts_of(row)[0], TOKENIZER.decode(row.answer)) for row in rows if row]
    assert any(answer.startswith(" return") for _, answer in pairs)
    assert not any(before[-1:].isalpha() and answer[0].isalpha() for before, answer in pairs)


def test_a_long_file_and_its_history_fit_the_budget() -> None:
    maker = RowMaker(TOKENIZER, Recipe(max_answer=200, budgets=(700,), budget_weights=(1,)))
    edits = tuple(RecentEdit("a.py", 5, f" before\n+edit number {i}\n") for i in range(40))
    source = SourceText("a.py", PROGRAM * 200)
    for seed in range(10):
        row = maker.infill(source, random.Random(seed), edits=edits)
        assert row is not None
        assert len(row.prompt) < 4 * 700  # the tiny tokenizer takes about a token a character
        text = TOKENIZER.decode(row.prompt)
        assert "edit number 39" in text and "edit number 3\n" not in text


def region_of(row: Row) -> tuple[list[str], list[str]]:
    """Return the lines of a next-edit row's region before and after its answer."""
    text = [*row.prompt]
    begin, end = text.index(TOKENIZER.mark(REGION)), text.index(TOKENIZER.mark(EDIT))
    assert end == len(text) - 1
    return (
        TOKENIZER.decode(text[begin:end]).splitlines(),
        TOKENIZER.decode(row.answer).splitlines(),
    )


def test_an_edit_row_leads_to_the_commits_own_lines() -> None:
    rng = random.Random(1)
    new = changed(4, 8, 12)
    found = [row for _ in range(80) if (row := MAKER.edit(change(OLD, new), rng))]
    assert {group_of(row.kind) for row in found} >= {"foreseeable", "typing", "nothing_left"}
    for row in found:
        before, after = region_of(row)
        if row.kind & EditClass.NOTHING_LEFT:
            assert before == after
            continue
        assert before != after
        assert len(set(after) - set(before)) == 1
        assert set(after) - set(before) <= set(new)
        if not row.kind & EditClass.TYPING:
            assert len(set(before) - set(after)) == 1 and set(before) <= set(OLD) | set(new)


def test_a_far_edit_has_a_region_and_some_rows_no_edit() -> None:
    rng = random.Random(2)
    maker = RowMaker(TOKENIZER, Recipe(max_region=2_000, new_words=1, unrelated=1))
    target = change(OLD, changed(4, 20, 36))
    found = [row for _ in range(300) if (row := maker.edit(target, rng))]
    todo = [row for row in found if not row.kind & EditClass.NOTHING_LEFT]
    for row in todo:
        assert (TOKENIZER.mark(CURSOR) not in row.prompt) == bool(row.kind & EditClass.ELSEWHERE)
    near = [row for row in todo if not row.kind & EditClass.ELSEWHERE]
    assert 0 < len(near) < len(todo)
    assert 1 - len(todo) / len(found) == pytest.approx(0.1, abs=0.05)


def test_edits_in_other_files_of_a_commit_are_history() -> None:
    rng = random.Random(3)
    other = change(["a = 1"], ["a = 1", "def helper(): pass"], "b.py")
    rows = [MAKER.edit(change(OLD, changed(4)), rng, before=[other]) for _ in range(30)]
    found = [row for row in rows if row and not row.kind & EditClass.NOTHING_LEFT]
    assert found
    for row in found:
        text = TOKENIZER.decode(row.prompt)
        assert "b.py:1\n" in text and "+def helper" in text
        assert TOKENIZER.mark(HISTORY) in row.prompt


def test_a_commit_gives_rows_of_both_tasks() -> None:
    files = [
        {"path": path, "before": "\n".join(OLD), "after": "\n".join(changed(*places))}
        for path, places in (("a.py", (1, 9)), ("b.py", (5, 30)))
    ]
    rng = random.Random(0)
    rows = [row for _ in range(20) for row in MAKER.of_commit({"files": files}, rng)]
    assert {row.task for row in rows} == {"infill", "next_edit"}


def test_a_row_can_be_printed_with_its_marks() -> None:
    row = MAKER.infill(SourceText("a.py", "x = 1\ny = foo(x)\n"), random.Random(3))
    assert row is not None
    shown = show_row(row, TOKENIZER)
    assert "<jupyter_text>" in shown and "⟧END" in shown


def test_rows_are_the_same_for_the_same_seed() -> None:
    record = {"path": "a.py", "text": CHAINED, "repo": "r", "language": "python"}

    def make() -> list[Row]:
        rng = random.Random(5)
        return [row for _ in range(5) for row in MAKER.of_file(record, rng)]

    assert len(make()) > 5
    assert make() == make()


def test_a_commit_without_usable_files_gives_no_rows() -> None:
    record = {"files": [{"path": "a.py", "before": "", "after": "x"}]}
    assert list(MAKER.of_commit(record, random.Random(0))) == []


def moments(seed: int) -> Iterator[TrainingMoment]:
    """Moments of a commit and of a chain, of each kind."""
    rng = random.Random(seed)
    new = [*changed(3, 20)[:30], *(f"added_{i} = {i}" for i in range(9)), *changed(35)[30:]]
    yield draw_moment(change(OLD, new), 0.3, 0.35, rng)
    yield nothing_left(change(OLD, new), rng)
    chain = chain_of("a.py", CHAINED, rng)
    if chain:
        yield moment_of(chain, rng.choice([*chain.foreseen, len(chain.change.hunks)]), 0.3, rng)


@given(st.integers(0, 10_000))
def test_an_answer_parses_to_the_edit_asked_for(seed: int) -> None:
    for moment in moments(seed):
        question = MAKER.ask("a.py", moment, random.Random(seed))
        if question is None:
            continue
        request, prompt, target = question
        answer = region_text(prompt, target.first, target.last, target.new)
        assert TOKENIZER.decode(TOKENIZER.encode(answer)) == answer
        edit = Redraft3().parse(prompt, request, answer, ended=True)
        wanted = request.text.split("\n")
        wanted[target.first : target.last] = target.new
        text = request.text
        made = text if edit is None else text[: edit.start] + edit.text + text[edit.end :]
        assert made.split("\n") == wanted
        assert (edit is None) == (moment.target is None)


RENAMED = change(OLD, changed(4, 8, 12))
NEW_WORD = change(OLD, [*OLD[:10], "surprise = 1", *OLD[10:]])
#: A hunk deletes what the one before it deleted elsewhere; nothing announces the deletion.
FOLLOWED = change(OLD, [line for i, line in enumerate(OLD) if i not in (5, 9)])
ALONE = change(OLD, [line for i, line in enumerate(OLD) if i != 9])


@pytest.mark.parametrize(
    ("target", "has", "lacks"),
    [
        (RENAMED, EditClass.SHARED_NAME, EditClass.ONLY_DELETES | EditClass.CHAIN),
        (NEW_WORD, EditClass.NEW_WORD, EditClass.SHARED_NAME),
        (FOLLOWED, EditClass.ONLY_DELETES | EditClass.SHARED_NAME, EditClass.NEW_WORD),
    ],
)
def test_a_row_knows_its_class(target: FileChange, has: EditClass, lacks: EditClass) -> None:
    rng = random.Random(7)
    kinds = [row.kind for _ in range(60) if (row := MAKER.edit(target, rng))]
    assert any(kind & has == has and not kind & lacks for kind in kinds)
    assert all(0 <= kind < CODE and kind & EditClass.NEXT_EDIT for kind in kinds)


def share_kept(target: FileChange, **recipe: float) -> float:
    rng, maker = random.Random(8), RowMaker(TOKENIZER, Recipe(typing=0, nothing_left=0, **recipe))
    return sum(maker.edit(target, rng) is not None for _ in range(200)) / 200


def test_edits_that_nothing_announces_are_rarer() -> None:
    everything = {"new_words": 1.0, "unrelated": 1.0}
    assert share_kept(NEW_WORD, **everything) == 1
    assert share_kept(NEW_WORD, **everything | {"new_words": 0}) == 0
    assert share_kept(NEW_WORD, **everything | {"unrelated": 0}) == 0
    assert share_kept(ALONE, **everything) == 0, "a deletion that does not follow from an edit"
    assert share_kept(FOLLOWED, **everything) > 0.5


def prompt_lengths(short: float) -> list[int]:
    """Lengths of prompts for a place 60 lines below the only edit."""
    recipe = Recipe(
        max_answer=200, max_region=2_000, budgets=(2_000,), budget_weights=(1,), short=short
    )
    lines = [f"value_{i} = compute({i})" for i in range(300)]
    new = [
        line.replace("compute", "measure") if i in (4, 90) else line for i, line in enumerate(lines)
    ]
    moment = TrainingMoment(
        "edit",
        [new[4] if i == 4 else line for i, line in enumerate(lines)],
        (recent_edit("a.py", lines, 4, 5, (new[4],)),),
        LineChange(90, (lines[90],), (new[90],)),
        (90, 0),
    )
    maker = RowMaker(TOKENIZER, recipe)
    asked = [maker.ask("a.py", moment, random.Random(seed)) for seed in range(40)]
    return sorted(len(each.prompt.tokens) for each in asked if each)


def test_half_of_far_places_have_short_prompts() -> None:
    long, half = prompt_lengths(0.0), prompt_lengths(0.5)
    assert len(long) == len(half) == 40
    assert half[8] < long[0] / 2
    assert half[-1] == long[-1]


def test_no_row_empties_its_region() -> None:
    lines = ["def helper(a):", "    return a", ""]
    moment = TrainingMoment(
        "edit",
        lines,
        (recent_edit("b.py", ["helper(1)"], 0, 1, ()),),
        LineChange(0, tuple(lines)),
        (0, 0),
    )
    question = MAKER.ask("a.py", moment, random.Random(0))
    assert question is not None
    assert MAKER._edit_row(question, EditClass.NEXT_EDIT) is None
