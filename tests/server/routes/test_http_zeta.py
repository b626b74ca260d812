"""Zed's zeta 2, 2.1 and 1 over ``/v1/completions``, as Zed and cursortab.nvim use them."""

from __future__ import annotations

from typing import Any

import pytest
from redraft.model.prompts.registry import Unknown, recognise
from redraft.model.records import RecentEdit
from support.edit_prompts import (
    zeta1_applied,
    zeta1_as_zed,
    zeta2_applied,
    zeta2_as_zed,
    zeta21_applied,
    zeta21_as_zed,
)
from support.editors.predictor import LineEdit, ScriptedPredictor, editing
from support.served import events, post

CONTEXT = """<filename>src/related.rs
pub fn helper() {}
...

<filename>edit_history
--- a/src/main.rs
+++ b/src/main.rs
@@ -4,3 +4,3 @@
 fn main() {
-    let a = 1;
+    let b = 1;
 }
"""


def answer(prompt: str, predictor: ScriptedPredictor, **fields: Any) -> Any:
    status, body = post("/v1/completions", {"prompt": prompt, **fields}, predictor)
    assert status == 200, body
    return body


def text(prompt: str, predictor: ScriptedPredictor) -> str:
    found: str = answer(prompt, predictor)["choices"][0]["text"]
    return found


def test_zeta2_becomes_a_next_edit_request() -> None:
    predictor = ScriptedPredictor()
    answer(zeta2_as_zed("use std;\n", "a\nbb\nc", "\nend\n", 3, CONTEXT), predictor)
    [request] = predictor.requests
    assert request.task == "next_edit"
    assert request.path == "src/main.rs"
    assert request.text == "use std;\na\nbb\nc\nend\n"
    assert request.cursor == len("use std;\na\nb")
    assert request.region == (1, 4)
    assert [one.path for one in request.related] == ["src/related.rs"]
    assert request.edits == (
        RecentEdit("src/main.rs", 3, " fn main() {\n-    let a = 1;\n+    let b = 1;\n }\n"),
    )


@pytest.mark.parametrize("cursor", [0, 2])
def test_zeta2_keeps_a_blank_last_line(cursor: int) -> None:
    written = text(zeta2_as_zed("", "a\n", "\nb\n", cursor), editing((1, 1, ["A"])))
    assert written.endswith(">>>>>>> UPDATED\n")
    assert zeta2_applied("a\n", written) == "A\n"


def test_zeta2_as_cursortab_ends_every_line() -> None:
    prompt = (
        "<[fim-suffix]>end\n<[fim-prefix]><filename>main.py\ntop\n"
        "<<<<<<< CURRENT\na\n<|user_cursor|>\n=======\n<[fim-middle]>"
    )
    predictor = editing((1, 1, ["A"]))
    assert text(prompt, predictor) == "A\n\n>>>>>>> UPDATED\n"
    assert predictor.requests[0].text == "top\na\n\nend\n"


def test_zeta2_deleting_a_region_is_not_no_edit() -> None:
    prompt = zeta2_as_zed("top\n", ")\n}", "\nend\n", 0)
    assert text(prompt, editing((1, 2, []))) == ">>>>>>> UPDATED\n"
    assert text(prompt, ScriptedPredictor()) == ""


def test_no_edit_is_empty_text_with_a_reason() -> None:
    body = answer(zeta2_as_zed("", "a", "", 0), ScriptedPredictor(), model="zeta2", stop=[])
    assert (body["choices"][0]["text"], body["choices"][0]["finish_reason"]) == ("", "stop")
    assert body["redraft"] == {"reason": "nothing to change", "abstained": "nothing"}
    assert body["id"] and body["model"] == "fake-1m"
    assert body["usage"]["total_tokens"] == 40


def test_underlined_headings_are_code() -> None:
    region = "Title\n=======\ntext"
    written = text(zeta2_as_zed("Top\n=======\n", region, "\nend\n", 5), editing((3, 3, ["more"])))
    assert zeta2_applied(region, written) == "Title\n=======\nmore"


def test_windows_line_ends_of_a_region_come_back() -> None:
    prompt = zeta2_as_zed("top\r\n", "a\r\nb\r\nc", "\r\nend\r\n", 0)
    predictor = editing((2, 2, ["B", "B2"]))
    assert text(prompt, predictor).startswith("a\r\nB\r\nB2\r\nc")
    assert "\r" not in predictor.requests[0].text


def test_a_stream_of_an_edit_comes_line_by_line() -> None:
    body = {"prompt": zeta2_as_zed("", "a", "", 0), "n": 1, "top_k": 50}
    chunks = events("/v1/completions", body, editing((1, 1, ["A"])))
    choices = [chunk["choices"][0] for chunk in chunks]
    assert [each["text"] for each in choices] == ["A\n", ">>>>>>> UPDATED\n"]
    assert [each["finish_reason"] for each in choices] == [None, "stop"]


HEAD = "<[fim-suffix]>\n<[fim-prefix]><filename>a\n"
TORN = [
    f"{HEAD}<<<<<<< CURRENT\nx\n=======\n<[fim-",
    "<|marker_1|>x<|marker_2|>",
    "<|file_sep|>current/a.py\nx\n<|file_sep|>updated/b.py\n",
    "### User Excerpt:\n<|editable_region_start|>",
    "<|im_start|>user\nhello<|im_end|>",
    "<|fim_prefix|>no middle marker<|fim_suffix|>",
    f"{HEAD}<<<<<<< CURRENT\nx\n",
    "<[fim-suffix]>\n<<<<<<< CURRENT\nx\n=======\n<[fim-middle]>",
    "<[fim-suffix]>\n<[fim-prefix]><<<<<<< CURRENT\nx\n=======\n<[fim-middle]>",
    f"{HEAD}<[fim-prefix]><filename>a\n<<<<<<< CURRENT\nx\n=======\n<[fim-middle]>",
    f"{HEAD}<<<<<<< CURRENT\n<<<<<<< CURRENT\nx\n=======\n<[fim-middle]>",
    f"{HEAD}<<<<<<< CURRENT\n<|user_cursor|><|user_cursor|>\n=======\n<[fim-middle]>",
    f"{HEAD}<|marker_1|>x\n<[fim-middle]>",
    f"{HEAD}<|marker_1|>x<|marker_3|>\n<[fim-middle]>",
    f"{HEAD}<|marker_1|>x<|marker_2|>y\n<[fim-middle]>",
    f"{HEAD}<|marker_1|>x<|marker_2|><|marker_1|>\n<[fim-middle]>",
    "### User Excerpt:\n\n```a\n<|editable_region_start|>\nx",
    "### User Excerpt:\n\na\n<|editable_region_start|>\nx\n<|editable_region_end|>\n```",
    "### User Excerpt:\n\n```a\n<|editable_region_start|>\nx\n" + "<|editable_region_end|>\n" * 2,
    "<|fim_prefix|><|marker_1|>a<|fim_suffix|>b<|fim_middle|>",
    "<|file_sep|>current/a\nx\n<|file_sep|>updated/b\n",
    "<|file_sep|>updated/a\n<|file_sep|>current/a\nx\n",
    "<|file_sep|>current/a\nx <|file_sep|> y\n<|file_sep|>updated/a\n",
    "<|file_sep|>current/a:1:1\nx <|cursor|> <|cursor|>\n<|file_sep|>updated/a:1:1\n",
    "<|file_sep|>current/a\nx\n<|file_sep|>updated/a\nother",
]


@pytest.mark.parametrize("prompt", TORN)
def test_torn_prompts_and_code_markers_get_nothing(prompt: str) -> None:
    meant = recognise(prompt)
    assert isinstance(meant, Unknown)
    assert meant.reason
    predictor = editing((1, 1, ["A"]))
    body = answer(prompt, predictor)
    assert body["choices"][0]["text"] == ""
    assert body["redraft"]["reason"] == meant.reason
    assert predictor.requests == []


BLOCKS = ["a\nb\n", "c\nd\n", "e\nf"]


@pytest.mark.parametrize(
    ("edit", "markers", "expected"),
    [
        ((1, 1, ["A"]), "<|marker_1|>A\nb\n<|marker_2|>", "A\nb\nc\nd\ne\nf"),
        ((4, 4, ["D", "D2"]), "<|marker_2|>c\nD\nD2\n<|marker_3|>", "a\nb\nc\nD\nD2\ne\nf"),
        ((2, 3, ["x"]), "<|marker_1|>a\nx\nd\n<|marker_3|>", "a\nx\nd\ne\nf"),
        ((6, 6, ["F"]), "<|marker_3|>e\nF<|marker_4|>", "a\nb\nc\nd\ne\nF"),
        ((7, 6, ["g"]), "<|marker_3|>e\nf\ng<|marker_4|>", "a\nb\nc\nd\ne\nf\ng"),
        ((3, 2, ["new"]), "<|marker_2|>new\nc\nd\n<|marker_3|>", "a\nb\nnew\nc\nd\ne\nf"),
        ((1, 6, ["z"]), "<|marker_1|>z<|marker_4|>", "z"),
    ],
)
def test_zeta21_rewrites_from_marker_to_marker(edit: LineEdit, markers: str, expected: str) -> None:
    prompt = zeta21_as_zed("top\n", BLOCKS, "\nend\n", 3)
    predictor = editing(edit)
    written = text(prompt, predictor)
    assert written == markers
    assert zeta21_applied(BLOCKS, written) == expected
    assert predictor.requests[0].text == "top\na\nb\nc\nd\ne\nf\nend\n"
    assert predictor.requests[0].region == (1, 7)


def test_zeta21_deletes_what_stands_between_markers() -> None:
    blocks = ["a\nb\n", ")\n}\n", "e\nf"]
    written = text(zeta21_as_zed("top\n", blocks, "\nend\n", 3), editing((3, 4, [])))
    assert written == "<|marker_2|><|marker_3|>"
    assert zeta21_applied(blocks, written) == "a\nb\ne\nf"


def test_names_are_deleted_only_for_a_reason() -> None:
    prompt = zeta21_as_zed("top\n", BLOCKS, "\nend\n", 3)
    assert text(prompt, editing((3, 4, []))) == "<|marker_1|><|marker_1|>"


@pytest.mark.parametrize(("cursor", "number"), [(0, 1), (3, 1), (5, 2), (9, 3)])
def test_zeta21_without_an_edit_repeats_the_marker(cursor: int, number: int) -> None:
    prompt = zeta21_as_zed("top\n", BLOCKS, "\nend\n", cursor)
    written = text(prompt, ScriptedPredictor())
    assert written == f"<|marker_{number}|><|marker_{number}|>"
    assert zeta21_applied(BLOCKS, written) == "".join(BLOCKS)


def test_zeta21_fills_an_empty_region() -> None:
    prompt = zeta21_as_zed("", [""], "", 0)
    written = text(prompt, editing((1, 1, ["use std;"])))
    assert written == "<|marker_1|>use std;<|marker_2|>"


EVENTS = "User edited src/lib.rs:\n```diff\n@@ -1,2 +1,2 @@\n fn a() {}\n-old\n+new\n\n```"


def test_zeta1_answers_the_region_between_its_markers() -> None:
    predictor = editing((2, 2, []))
    written = text(zeta1_as_zed("top\n", "a\nold\nc", "\nend", 2, EVENTS), predictor)
    assert zeta1_applied(written) == "a\nc"
    [request] = predictor.requests
    assert request.path == "src/main.rs"
    assert request.text == "top\na\nold\nc\nend"
    assert request.cursor == len("top\na\n")
    assert request.edits == (RecentEdit("src/lib.rs", 0, " fn a() {}\n-old\n+new\n"),)


def test_zeta1_without_an_edit_answers_the_region() -> None:
    written = text(zeta1_as_zed("", "a\n\nb\n", "\nend", 1), ScriptedPredictor())
    assert written == "<|editable_region_start|>\na\n\nb\n\n<|editable_region_end|>"
    assert zeta1_applied(written) == "a\n\nb\n"
