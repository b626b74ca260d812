"""Answers of models in the formats of other projects, read back as edits."""

from __future__ import annotations

from itertools import pairwise

import pytest
from redraft.model.errors import InvalidAnswer
from redraft.model.prompts.zeta import marker_offsets
from redraft.model.records import EditRequest
from support.foreign_prompts import (
    REQUEST,
    TEXT,
    made,
    read,
    rendered,
)


def region_text(name: str, request: EditRequest = REQUEST) -> str:
    return "\n".join(request.text.split("\n")[slice(*rendered(name, request).region)])


@pytest.mark.parametrize("name", ["sweep", "sweep-v2", "zeta-2"])
@pytest.mark.parametrize("end", ["", "\n"])
def test_a_rewritten_region_is_read_as_changed_lines(name: str, end: str) -> None:
    old, changed = "self.height = height", "self.height = height, 1"
    new = region_text(name).replace(old, changed)
    found = read(name, REQUEST, new + end)
    assert made(REQUEST, found) == TEXT.replace(old, changed)
    assert found is not None and found.text == f"        {changed}\n"
    written = new.removeprefix(rendered(name, REQUEST).begun)
    assert found.written is not None and written[slice(*found.written)] == found.text


@pytest.mark.parametrize("name", ["sweep", "sweep-v2", "zeta-2"])
def test_the_same_region_or_an_empty_answer_is_no_edit(name: str) -> None:
    for answer in (region_text(name), region_text(name) + "\n", "", "\n"):
        assert read(name, REQUEST, answer) is None


def test_zeta_says_no_edit_and_its_cursor_is_left_out() -> None:
    assert read("zeta-2", REQUEST, "NO_EDITS\n") is None
    assert read("zeta-2.1", REQUEST, "<|marker_2|><|marker_2|>") is None
    new = region_text("zeta-2").replace("= height", "= height  # m<|user_cursor|>")
    assert made(REQUEST, read("zeta-2", REQUEST, new)) == TEXT.replace("= height", "= height  # m")


@pytest.mark.parametrize("name", ["sweep", "zeta-2", "zeta-2.1"])
def test_an_answer_that_broke_off_changes_nothing(name: str) -> None:
    with pytest.raises(InvalidAnswer, match="broke off"):
        read(name, REQUEST, "<|marker_1|>" + region_text(name)[:50], ended=False)


@pytest.mark.parametrize("lines", ["one\ntwo\nthree\nfour", "one\ntwo", "two\nthree"])
def test_lines_come_and_go_at_the_end_of_a_region(lines: str) -> None:
    request = EditRequest("next_edit", "a", "one\ntwo\nthree", 0)
    assert made(request, read("sweep", request, f"{lines}\n")) == lines


def blocks_of() -> list[str]:
    text = region_text("zeta-2.1")
    return [text[a:b] for a, b in pairwise(marker_offsets(text))]


def test_numbered_markers_say_which_blocks_are_new() -> None:
    blocks = blocks_of()
    assert len(blocks) > 1
    new = blocks[1] + "    # end\n"
    answer = f"<|marker_2|>{new}<|marker_3|>"
    found = read("zeta-2.1", REQUEST, answer)
    expected = region_text("zeta-2.1").replace(blocks[1], new)
    assert made(REQUEST, found) == TEXT.replace(region_text("zeta-2.1"), expected)
    assert found is not None and found.written is not None
    assert answer[slice(*found.written)] == "    # end\n"
    between = f"<|marker_1|>{blocks[0]}<|marker_2|>x = 1\n{blocks[1]}<|marker_3|>"
    assert made(REQUEST, read("zeta-2.1", REQUEST, between)).count("x = 1\n") == 1


@pytest.mark.parametrize(
    "answer", ["<|marker_1|>x", "<|marker_9|>x<|marker_12|>", "<|marker_2|>x<|marker_1|>", "x = 1"]
)
def test_markers_that_make_no_sense_are_refused(answer: str) -> None:
    with pytest.raises(InvalidAnswer, match="marker"):
        read("zeta-2.1", REQUEST, answer)


def test_blocks_follow_blanks_and_have_6_to_16_lines() -> None:
    text = "\n".join([*(f"a{i}" for i in range(7)), "", "}", "b", *(f"c{i}" for i in range(40))])
    offsets = marker_offsets(text)
    begins = [text[i:].split("\n")[0] for i in offsets[:-1]]
    assert begins == ["a0", "b", "c15", "c31"]  # not with the closing brace
    assert offsets[-1] == len(text)
    assert marker_offsets("") == [0, 0]
    assert marker_offsets("x\n") == [0, 2]


def filled(max_lines: int | None, text: str, cursor: int, answer: str) -> str | None:
    request = EditRequest("infill", "a.py", text, cursor, max_lines=max_lines)
    found = read("sweep", request, answer)
    assert found is None or (found.start, found.end) == (cursor, cursor)
    return None if found is None else found.text


def test_a_rewriting_model_fills_in_at_the_cursor_only() -> None:
    text = "def area(w, h):\n    return \n\n\nprint(area(1, 2))\n"
    at = text.index("return ") + 7
    assert filled(None, text, at, text.replace("return ", "return w * h")) == "w * h"
    assert filled(None, text, at, text.replace("(w, h)", "(a)")) is None
    assert filled(None, text, at, text) is None
    longer = "a = [\n    1,\n    2,\n]\n"
    assert filled(1, "a = [\n]\n", 5, longer) == ""  # keeps to the lines that it may have
    assert filled(2, "a = [\n]\n", 5, longer) == "\n    1,"
