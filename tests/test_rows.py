"""Training rows say what the editor's document says, and lead to what the commit says."""

from __future__ import annotations

import random

import pytest
from redraft.model.edits.hunks import hunks_of
from redraft.model.prompts.tokenizer import CURSOR, EDIT, HISTORY, PREFIX, REGION, SUFFIX
from redraft.model.records import RecentEdit
from redraft.model.training.commits import FileChange
from redraft.model.training.middles import SourceText
from redraft.model.training.rows import Kit, Recipe, Row, edit_row, infill_row, rows_of, show_row
from support.tiny import tiny_config, tiny_tokenizer

TOKENIZER = tiny_tokenizer()
CONFIG = tiny_config()
KIT = Kit(
    TOKENIZER, CONFIG, Recipe(max_answer=200, max_region=2_000)
)  # the tiny tokenizer writes long answers
PROGRAM = "def foo(x):\n    return x + 1\n\n\ndef bar(y):\n    return foo(y, call(y, 'größe'))\n"
OLD = [f"value_{i} = compute({i})" for i in range(40)]


def changed(*places: int) -> list[str]:
    return [
        line.replace("compute", "measure") if i in places else line for i, line in enumerate(OLD)
    ]


def change(old: list[str], new: list[str], path: str = "a.py") -> FileChange:
    return FileChange(path, old, new, hunks_of(old, new))


def parts_of(row: Row) -> tuple[str, str]:
    """An infill row's near prefix and near suffix."""
    text = [*row.prompt]
    cut = len(text) - 1 - text[::-1].index(TOKENIZER.mark(PREFIX))
    begin = cut - text[:cut][::-1].index(TOKENIZER.mark(SUFFIX))
    return TOKENIZER.decode(text[cut + 1 :]), TOKENIZER.decode(text[begin:cut])


def test_infill_prompt_and_answer_make_the_original_text() -> None:
    rng = random.Random(0)
    rows = [infill_row(SourceText("a.py", PROGRAM), KIT, rng) for _ in range(60)]
    found = [row for row in rows if row]
    assert len(found) > 50
    for row in found:
        before, after = parts_of(row)
        assert before + TOKENIZER.decode(row.answer) + after == PROGRAM
        assert TOKENIZER.decode(row.prompt[row.plain :]) == before


def test_the_answer_of_a_tail_ends_where_its_line_ends() -> None:
    rng = random.Random(0)
    rows = [infill_row(SourceText("a.py", PROGRAM), KIT, rng) for _ in range(80)]
    tails = [row for row in rows if row and row.kind == "tail"]
    assert len(tails) > 10
    for row in tails:
        assert "\n" not in TOKENIZER.decode(row.answer)
        assert parts_of(row)[1].startswith("\n")


def test_a_cursor_inside_a_word_makes_the_answer_begin_with_the_word() -> None:
    rng = random.Random(4)
    rows = [infill_row(SourceText("a.py", PROGRAM), KIT, rng) for _ in range(200)]
    pairs = [(parts_of(row)[0], TOKENIZER.decode(row.answer)) for row in rows if row]
    assert any(answer.startswith(" return") for _, answer in pairs)
    assert not any(before[-1:].isalpha() and answer[0].isalpha() for before, answer in pairs)


def test_a_long_file_and_its_history_are_cut_to_the_budget() -> None:
    kit = Kit(TOKENIZER, CONFIG, Recipe(max_answer=200, budgets=(700,), budget_weights=(1,)))
    edits = tuple(RecentEdit("a.py", 5, f" before\n+edit number {i}\n") for i in range(40))
    source = SourceText("a.py", PROGRAM * 200)
    for seed in range(10):
        row = infill_row(source, kit, random.Random(seed), edits=edits)
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
    found = [row for _ in range(80) if (row := edit_row(change(OLD, new), KIT, rng))]
    assert {row.kind for row in found} == {"edit", "typing", "none"}
    for row in found:
        before, after = region_of(row)
        if row.kind == "none":
            assert before == after
            continue
        assert before != after
        assert len(set(after) - set(before)) == 1
        assert set(after) - set(before) <= set(new)
        if row.kind == "edit":
            assert len(set(before) - set(after)) == 1 and set(before) <= set(OLD) | set(new)


def test_an_edit_far_from_the_cursor_has_its_region_and_a_tenth_of_rows_changes_nothing() -> None:
    rng = random.Random(2)
    target = change(OLD, changed(4, 20, 36))
    found = [row for _ in range(300) if (row := edit_row(target, KIT, rng))]
    todo = [row for row in found if row.kind != "none"]
    cursor = TOKENIZER.mark(CURSOR)
    near = [row for row in todo if cursor in row.prompt]
    assert 0 < len(near) < len(todo)
    assert 1 - len(todo) / len(found) == pytest.approx(0.1, abs=0.05)


def test_edits_in_another_file_of_the_commit_are_the_history() -> None:
    rng = random.Random(3)
    other = change(["a = 1"], ["a = 1", "def helper(): pass"], "b.py")
    rows = [edit_row(change(OLD, changed(4)), KIT, rng, before=[other]) for _ in range(30)]
    found = [row for row in rows if row and row.kind == "edit"]
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
    kit_rows = rows_of({"files": files}, TOKENIZER, CONFIG, random.Random(0), times=40)
    assert {row.task for row in kit_rows} == {"infill", "next_edit"}


def test_a_row_can_be_printed_with_its_marks() -> None:
    row = infill_row(SourceText("a.py", "x = 1\ny = foo(x)\n"), KIT, random.Random(3))
    assert row is not None
    shown = show_row(row, TOKENIZER)
    assert "<jupyter_text>" in shown and "⟧END" in shown


def test_rows_are_the_same_for_the_same_seed() -> None:
    record = {"path": "a.py", "text": "\n".join(OLD), "repo": "r", "language": "python"}

    def make() -> list[Row]:
        return list(rows_of(record, TOKENIZER, CONFIG, random.Random(5), times=9))

    assert len(make()) > 5
    assert make() == make()


def test_a_commit_without_usable_files_gives_no_rows() -> None:
    record = {"files": [{"path": "a.py", "before": "", "after": "x"}]}
    assert list(rows_of(record, TOKENIZER, CONFIG, random.Random(0))) == []
