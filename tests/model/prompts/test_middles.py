"""Infill rows: what they remove, and how documents are cut to the length of a row."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from redraft.model.prompts.redraft3 import shrunk
from redraft.model.records import RecentEdit
from redraft.model.text.lines import estimate
from redraft.model.training.excerpts import crop, newest
from redraft.model.training.middles import MIX, MiddleKind, SourceText, choose_middle, draw_kind

PROGRAM = "def foo(x):\n    return x + 1\n\n\ndef bar(y):\n    return foo(y, call(y, 'größe'))\n"


@pytest.mark.parametrize("kind", MIX)
def test_middles_are_what_their_kind_says(kind: MiddleKind) -> None:
    source = SourceText("a.py", PROGRAM)
    rng = random.Random(1)
    found = [choose_middle(source, kind, rng) for _ in range(80)]
    texts = {PROGRAM[m.start : m.end] for m in found if m}
    ends = {PROGRAM[m.end : m.end + 1] for m in found if m}
    assert texts and all(text.strip() for text in texts)
    if kind == "tail":
        assert ends == {"\n"} and not any("\n" in text for text in texts)
    elif kind == "line":
        assert {"    return x + 1\n", "return x + 1"} <= texts
        assert all(len(text.strip("\n").split("\n")) == 1 for text in texts)
    elif kind == "lines":
        assert any(text.startswith("def bar(y):\n    return") for text in texts)
    elif kind == "node":
        assert {"x + 1", "y, 'größe'", "größe"} <= texts
    elif kind == "block":
        assert any(text.strip() == "return x + 1" for text in texts)
        assert any(text.strip().startswith("def bar") and "größe" in text for text in texts)
    elif kind == "inside":
        assert ends <= set(")]},;:\"'") and not any("\n" in text for text in texts)
    elif kind == "token":
        assert {"foo", "oo", "turn"} <= texts
        assert all(text.isalnum() or len(text) == 1 for text in texts)


def test_without_a_grammar_brackets_hold_a_node() -> None:
    source = SourceText("notes.txt", "see (the other page) for more\n")
    middle = choose_middle(source, "node", random.Random(0))
    assert middle is not None and source.text[middle.start : middle.end] == "the other page"


def test_middles_begin_in_the_asked_lines() -> None:
    source = SourceText("a.py", PROGRAM)
    rng = random.Random(2)
    for kind in MIX:
        for _ in range(20):
            middle = choose_middle(source, kind, rng, range(4, 6))
            if middle:  # a cursor may wait at the end of the line before
                assert middle.start >= PROGRAM.index("def bar") - 1


def test_a_blank_text_has_no_middle() -> None:
    source = SourceText("a.py", "\n\n   \n")
    assert all(choose_middle(source, kind, random.Random(0)) is None for kind in MIX)


def test_kinds_are_drawn_by_their_shares() -> None:
    rng = random.Random(0)
    drawn = Counter(draw_kind(rng) for _ in range(4_000))
    assert sum(MIX.values()) == pytest.approx(1)
    for kind, share in MIX.items():
        assert drawn[kind] / 4_000 == pytest.approx(share, abs=0.03)


LENGTHS = st.lists(st.integers(0, 60), min_size=1, max_size=40)


@given(LENGTHS, st.data())
def test_a_crop_keeps_its_core_within_its_tokens(lengths: list[int], data: st.DataObject) -> None:
    lines = ["x" * n for n in lengths]
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first + 1, len(lines)))
    tokens = data.draw(st.floats(0, 400))
    top, bottom = crop(lines, first, last, tokens, data.draw(st.floats(0, 1)))
    assert 0 <= top <= first < last <= bottom <= len(lines)
    spent = sum(map(estimate, lines[top:bottom]))
    assert (top, bottom) == (first, last) or spent <= tokens + 1e-6
    if sum(map(estimate, lines)) <= tokens:
        assert (top, bottom) == (0, len(lines))


@given(st.lists(st.integers(0, 60), min_size=1, max_size=40), st.data())
def test_a_shrunk_region_keeps_a_line_in_its_middle(costs: list[int], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(costs) - 1))
    room = data.draw(st.floats(0, 400))
    first, last = shrunk(costs, 0, len(costs), at, room)
    assert 0 <= first <= at < last <= len(costs)
    assert last - first == 1 or sum(costs[first:last]) <= room
    assert (first, last) == (0, len(costs)) or sum(costs) > room


def test_the_newest_edits_are_kept_whole() -> None:
    edits = [RecentEdit("a.py", i, f"+edit {i}\n" * 4) for i in range(10)]
    kept = newest(edits, 60)
    assert 0 < len(kept) < 10 and kept == tuple(edits[-len(kept) :])
    assert newest(edits, 0) == ()
    assert newest(edits, 10_000) == tuple(edits)
