"""Made-up changes that call for the same edit elsewhere."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.edits.hunks import apply_history
from redraft.model.training.commits import FileChange
from redraft.model.training.made_up_changes import new_name, repeated_change
from redraft.model.training.moments import draw_repeat

FILE = """import time


def load_items(path, limit):
    items = read(path)[:limit]
    return items


def show(path):
    for item in load_items(path, 10):
        print(item)
    later = load_items(other(path, 1), 20)
    time.sleep(1)
    return later
"""
LINES = FILE.split("\n")


def changes(path: str = "a.py", lines: list[str] = LINES, seeds: int = 200) -> list[FileChange]:
    found = (repeated_change(path, lines, random.Random(seed)) for seed in range(seeds))
    return [change for change in found if change]


def test_a_change_touches_two_places_or_more_and_its_hunks_make_it() -> None:
    found = changes()
    assert len(found) > 100
    for change in found:
        assert len(change.hunks) >= 2
        state, _, _ = apply_history(change.path, change.old, change.hunks, len(change.hunks))
        assert state == change.new != change.old


def test_a_name_is_changed_as_a_whole_word_on_every_line_near() -> None:
    for change in changes():
        gone = set(re.findall(r"\w+", FILE)) - set(re.findall(r"\w+", "\n".join(change.new)))
        for word in gone - {"10", "20", "1", "limit", "other"}:
            assert not any(re.search(rf"\b{word}\b", line) for line in change.new)


def test_reserved_words_keep_their_names() -> None:
    for change in changes():
        assert sum(line.startswith(("import ", "def ")) for line in change.new) == 3
        assert "\n".join(change.new).count("return ") == 2


def test_an_added_argument_reaches_the_calls() -> None:
    for change in changes(seeds=400):
        for name in ("timeout", "strict", "verbose"):
            head = next((line for line in change.new if line.startswith("def load_items")), "")
            if re.search(rf", {name}\b", head):
                calls = [
                    line for line in change.new if " load_items(" in line and "def" not in line
                ]
                assert len(calls) == 2
                assert all(re.search(rf", {name}(={name})?\)", line) for line in calls)
                return
    pytest.fail("no argument was added in 400 draws")


def test_a_taken_argument_leaves_the_calls_whole() -> None:
    taken = [c for c in changes(seeds=600) if "def load_items(path):" in c.new]
    assert taken
    for change in taken:
        assert "    for item in load_items(path):" in change.new
        assert "    later = load_items(other(path, 1))" in change.new


def test_nothing_is_made_up_where_nothing_repeats() -> None:
    assert changes(lines=["a = 1", "", "b = 2"]) == []
    assert changes(lines=[""]) == []


@pytest.mark.parametrize(
    ("word", "like"),
    [
        ("load_items", r"[a-z]+(_[a-z]+)*"),
        ("MAX_SIZE", r"[A-Z]+(_[A-Z]+)*"),
        ("readFile", r"[a-z]+([A-Z][a-z]*)*"),
        ("UserStore", r"[A-Z][a-z]*([A-Z][a-z]*)*"),
        ("_hidden", r"_[a-z]+(_[a-z]+)*"),
    ],
)
def test_a_new_name_keeps_the_style(word: str, like: str) -> None:
    rng = random.Random(1)
    for _ in range(60):
        assert re.fullmatch(like, new_name(word, ["other_part", "somethingElse", "BIG"], rng))


@given(st.text(alphabet="ab_(),= \n\"'", max_size=200), st.integers(0, 1_000))
def test_any_text_is_survived(text: str, seed: int) -> None:
    change = repeated_change("x.go", text.split("\n"), random.Random(seed))
    assert change is None or len(change.hunks) >= 2


def test_a_moment_asks_for_the_next_place_or_for_nothing_after_the_last() -> None:
    kinds = set()
    for seed, change in enumerate(changes()):
        moment = draw_repeat(change, random.Random(seed))
        kinds.add(moment.kind)
        assert moment.edits
        if moment.target is None:
            assert moment.lines == change.new
        else:
            assert (
                tuple(moment.lines[moment.target.first : moment.target.last]) != moment.target.new
            )
    assert kinds == {"repeat", "none"}
