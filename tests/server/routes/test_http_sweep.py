"""Sweep's prompts over ``/v1/completions``, as Zed and cursortab.nvim write them."""

from __future__ import annotations

import pytest
from redraft.model.records import RecentEdit
from support.edit_prompts import sweep_as_cursortab, sweep_as_zed
from support.editors.predictor import ScriptedPredictor, editing
from support.served import post

SECTIONS = """<|file_sep|>src/context.rs
fn context() {}
<|file_sep|>src/lib.rs.diff
original:
one
two
three
updated:
one
2
three
"""


def text(prompt: str, predictor: ScriptedPredictor) -> str:
    status, body = post("/v1/completions", {"prompt": prompt, "model": "sweep"}, predictor)
    assert status == 200, body
    found: str = body["choices"][0]["text"]
    return found


def lines(count: int) -> list[str]:
    return [f"line {i}" for i in range(count)]


def test_sweep_becomes_a_next_edit_request() -> None:
    predictor = ScriptedPredictor()
    text(sweep_as_zed("a\nbbb\nc", "a\nb\nc", SECTIONS), predictor)
    [request] = predictor.requests
    assert request.task == "next_edit"
    assert request.path == "src/main.rs"
    assert request.text == "a\nbbb\nc\n"
    assert request.cursor == len("a\nbbb")  # behind what changed since the original
    assert request.region == (0, 3)
    assert [(one.path, one.text) for one in request.related] == [
        ("src/context.rs", "fn context() {}\n")
    ]
    assert request.edits == (RecentEdit("src/lib.rs", 0, " one\n-two\n+2\n three\n"),)


def test_the_window_returns_without_the_added_line_end() -> None:
    window = "\n".join(lines(21))
    written = text(sweep_as_zed(window), editing((21, 21, ["last"])))
    assert written == window.replace("line 20", "last")


@pytest.mark.parametrize("window", ["\n".join([*lines(20), ""]), "a\nb\n\n"])
def test_a_blank_last_line_of_the_window_stays(window: str) -> None:
    predictor = editing((1, 1, ["first"]))
    written = text(sweep_as_zed(window), predictor)
    assert written == "first" + window[window.index("\n") :]


def test_cursortab_gets_what_follows_its_lines() -> None:
    file = lines(40)
    predictor = editing((2, 2, ["changed"]))
    written = text(sweep_as_cursortab(file, 10, 30, 15, 4), predictor)
    [request] = predictor.requests
    assert request.text == "\n".join(file) + "\n"  # all of the file is shown around the window
    assert request.cursor == len("\n".join(file[:15])) + 1 + 4
    assert request.region == (15, 30)
    assert written == "\n".join(["line 15", "changed", *file[17:30]])


def test_cursortab_gets_the_rest_if_nothing_changes() -> None:
    file = lines(12)
    written = text(sweep_as_cursortab(file, 2, 10, 5, 0), ScriptedPredictor())
    assert written == "\n".join(file[5:10])


def test_a_line_written_in_part_is_continued_or_left() -> None:
    prompt = sweep_as_cursortab(["abc", "def"], 0, 2, 0, 2).replace(
        "updated/src/main.py:1:2\n", "updated/src/main.py:1:2\nab"
    )
    assert text(prompt, editing((1, 1, ["abX"]))) == "X\ndef"
    assert text(prompt, editing((1, 1, ["zz"]))) == "c\ndef"


def test_a_prompt_that_ends_with_its_header_is_read() -> None:
    prompt = sweep_as_zed("a\nb").removesuffix("\n")
    assert text(prompt, editing((2, 2, ["B"]))) == "a\nB"


def test_an_unchanged_original_centres_the_cursor() -> None:
    predictor = ScriptedPredictor()
    text(sweep_as_zed("\n".join(lines(21))), predictor)
    assert predictor.requests[0].text[: predictor.requests[0].cursor].endswith("line 10")


def test_windows_line_ends_come_back() -> None:
    predictor = editing((2, 2, ["B", "B2"]))
    assert text(sweep_as_zed("a\r\nb\r\nc"), predictor) == "a\r\nB\r\nB2\r\nc"
    assert "\r" not in predictor.requests[0].text
