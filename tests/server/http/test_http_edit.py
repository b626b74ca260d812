"""Mercury's next edits over HTTP, with requests as Zed and cursortab.nvim write them."""

from __future__ import annotations

from typing import Any

import pytest
from redraft.model.gate.decide import CANDIDATES
from redraft.model.records import Diagnostic, EditRequest, Prediction, RecentEdit
from support.edit_prompts import mercury_applied, mercury_as_cursortab, mercury_as_zed, mercury_body
from support.editors.predictor import ScriptedPredictor, change, editing, rewrite_lines
from support.served import events, post, served

PATH = "/v1/edit/completions"

HISTORY = """--- a/src/main.py
+++ b/src/main.py
@@ -1,3 +1,3 @@
 import os
-def area(w):
+def area(w, h):
     return w * w
// User accepted prediction:
--- a/src/other.py
+++ b/src/other.py
@@ -10,2 +10,3 @@
 x = 1

+y = 2
"""


def ask(content: str, predictor: ScriptedPredictor, **fields: Any) -> Any:
    status, body = post(PATH, mercury_body(content, **fields), predictor)
    assert status == 200, body
    return body


def region_after(content: str, predictor: ScriptedPredictor) -> str | None:
    return mercury_applied(ask(content, predictor)["choices"][0]["message"]["content"])


def test_the_answer_has_every_field_a_client_requires() -> None:
    content = mercury_as_cursortab(["import os"], ["def f():", "    retur<|cursor|>"], ["x = 1"])
    body = ask(content, editing(change("retur", "return 1")))
    assert body["id"].startswith("cmpl-") and isinstance(body["created"], int)
    assert (body["object"], body["model"]) == ("edit.completion", "fake-1m")
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "```\ndef f():\n    return 1\n```"},
            "finish_reason": "stop",
        }
    ]
    usage = body["usage"]
    assert (usage["prompt_tokens"], usage["completion_tokens"]) == (40, 5)
    assert (usage["total_tokens"], usage["cached_input_tokens"]) == (45, 30)


def test_the_prompt_becomes_a_next_edit_request() -> None:
    snippets = (
        "<|recently_viewed_code_snippet|>\ncode_snippet_file_path: a.py\nA = 1\n"
        "<|/recently_viewed_code_snippet|>\n"
        "<|recently_viewed_code_snippet|>\ncode_snippet_file_path: diagnostics\nline 1: bad\n"
        "<|/recently_viewed_code_snippet|>\n"
        "<|recently_viewed_code_snippet|>\ncode_snippet_file_path: b.py\nB = 2\n"
        "<|/recently_viewed_code_snippet|>\n"
    )
    predictor = ScriptedPredictor()
    content = mercury_as_cursortab(
        ["import os", ""], ["a<|cursor|> = 1", "b = 2"], ["c = 3"], HISTORY, snippets
    )
    ask(content, predictor)
    [request] = predictor.requests
    assert request.task == "next_edit"
    assert request.path == "src/main.py"
    assert request.text == "import os\n\na = 1\nb = 2\nc = 3\n"
    assert request.cursor == len("import os\n\na")
    assert request.region == (2, 4)
    assert [(one.path, one.text) for one in request.related] == [
        ("b.py", "B = 2\n"),
        ("a.py", "A = 1\n"),
    ]
    assert request.edits == (
        RecentEdit(
            "src/main.py", 0, " import os\n-def area(w):\n+def area(w, h):\n     return w * w\n"
        ),
        RecentEdit("src/other.py", 9, " x = 1\n \n+y = 2\n", accepted=True),
    )


def test_an_edit_is_chosen_from_as_many_as_in_editors() -> None:
    content = mercury_as_cursortab([], ["a<|cursor|> = 1"], [])
    two = (change("a = 1", "a = 2"), change("a = 1", "a = 3"))
    predictor = ScriptedPredictor(
        [lambda request: rewrite_lines(request, *(f(request) for f in two))]
    )
    assert len(ask(content, predictor)["choices"]) == 1
    [request] = predictor.requests
    assert request.candidates == CANDIDATES[request.quality]
    drawn = ScriptedPredictor()
    ask(content, drawn, temperature=0.5)
    assert drawn.requests[0].candidates == 1  # each draw is computed by itself


def test_the_editors_reports_are_read_in_their_place() -> None:
    snippets = (
        "<|recently_viewed_code_snippet|>\ncode_snippet_file_path: diagnostics\n"
        'line 103: [ERROR] "totl" is not defined (source: pyright)\n'
        "<|/recently_viewed_code_snippet|>\n"
    )
    predictor = ScriptedPredictor()
    region = ["total<|cursor|> = 1", "print(total)", "print(totl)"]
    ask(mercury_as_cursortab(["import os"], region, [], "", snippets), predictor)
    [request] = predictor.requests
    assert request.diagnostics == (Diagnostic(3, '"totl" is not defined', 1),)


def test_no_edit_is_exactly_none_with_a_reason() -> None:
    content = mercury_as_cursortab([], ["a<|cursor|>"], [])
    body = ask(content, ScriptedPredictor())
    assert body["choices"][0]["message"]["content"] == "None"
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["redraft"] == {"reason": "nothing to change", "abstained": "nothing"}


def test_windows_line_ends_come_back_in_new_lines_too() -> None:
    content = mercury_as_zed("top\r\n", "a\r\nb<|cursor|>\r\nc", "\r\nend\r\n")
    predictor = editing((2, 2, ["B", "B2"]))
    assert region_after(content, predictor) == "a\r\nB\r\nB2\r\nc"
    assert "\r" not in predictor.requests[0].text


def test_a_prompt_with_windows_line_ends_throughout() -> None:
    content = mercury_as_cursortab(["x"], ["a<|cursor|>", "b"], ["y"]).replace("\n", "\r\n")
    predictor = editing((2, 2, ["B"]))
    assert region_after(content, predictor) == "a\r\nB"
    assert predictor.requests[0].text == "x\na\nb\ny\n"
    assert predictor.requests[0].path == "src/main.py"


def test_the_cursor_is_where_the_last_edit_ended() -> None:
    history = "--- a/src/main.py\n+++ b/src/main.py\n@@ -2 +2 @@\n-bb\n+bbb\n"
    predictor = ScriptedPredictor()
    ask(mercury_as_cursortab(["x"], ["a", "bbb", "c", "d", "e"], [], history), predictor)
    assert predictor.requests[0].cursor == len("x\na\nbbb")


def test_without_history_the_cursor_is_in_the_middle() -> None:
    predictor = ScriptedPredictor()
    ask(mercury_as_cursortab([], ["a", "bb", "c"], []), predictor)
    assert predictor.requests[0].cursor == len("a\nbb")


def test_an_empty_history_and_an_empty_region_are_fine() -> None:
    predictor = editing((1, 1, ["import os"]))
    assert region_after(mercury_as_zed("", "<|cursor|>", "", history=""), predictor) == "import os"
    assert predictor.requests[0].edits == ()
    assert predictor.requests[0].region == (0, 1)


def test_a_huge_region_is_narrowed_and_returns_whole() -> None:
    lines = [f"line {i}" for i in range(5_000)]
    marked = list(lines)
    marked[2_500] += "<|cursor|>"
    predictor = editing(change("line 2500", "line two"))
    region = region_after(mercury_as_cursortab([], marked, []), predictor)
    first, last = predictor.requests[0].region or (0, 0)
    assert last - first <= 48
    assert first <= 2_500 < last
    assert region == "\n".join([*lines[:2_500], "line two", *lines[2_501:]])


def test_a_region_of_long_lines_is_narrowed() -> None:
    lines = ["x" * 500 for _ in range(20)]
    lines[10] += "<|cursor|>"
    predictor = ScriptedPredictor()
    ask(mercury_as_cursortab([], lines, []), predictor)
    first, last = predictor.requests[0].region or (0, 0)
    assert first <= 10 < last
    assert last - first <= 6


def test_a_line_too_long_to_be_seen_is_not_edited() -> None:
    predictor = editing((1, 1, ["short"]))
    body = ask(mercury_as_cursortab([], ["x" * 1_000_000 + "<|cursor|>"], []), predictor)
    assert body["choices"][0]["message"]["content"] == "None"
    assert "too long" in body["redraft"]["reason"]
    assert predictor.requests == []


def test_markers_within_a_line_are_code() -> None:
    region = ['START = "<|code_to_edit|>"', 'end("<|/code_to_edit|>")<|cursor|>']
    content = mercury_as_cursortab(['H = "<|edit_diff_history|>"'], region, [])
    predictor = editing((1, 1, ["START = 1"]))
    assert region_after(content, predictor) == 'START = 1\nend("<|/code_to_edit|>")'


def test_the_real_file_section_follows_the_snippets() -> None:
    content = mercury_as_cursortab([], ["a<|cursor|>", "<|current_file_content|>"], [])
    region = region_after(content, editing((1, 1, ["A"])))
    assert region == "A\n<|current_file_content|>"


@pytest.mark.parametrize("line", ["<|code_to_edit|>", "<|/code_to_edit|>", "<|cursor|>"])
def test_markers_that_could_be_either_suggest_nothing(line: str) -> None:
    content = mercury_as_cursortab([], ["a<|cursor|>", line], [])
    predictor = editing((1, 1, ["A"]))
    body = ask(content, predictor)
    assert body["choices"][0]["message"]["content"] == "None"
    assert line in body["redraft"]["reason"]
    assert predictor.requests == []


def test_a_marker_line_in_a_snippet_does_no_harm() -> None:
    snippets = (
        "<|recently_viewed_code_snippet|>\ncode_snippet_file_path: t.txt\n"
        "<|code_to_edit|>\nx<|cursor|>\n<|/code_to_edit|>\n<|current_file_content|>\n"
        "<|/recently_viewed_code_snippet|>\n"
    )
    history = "--- t\n+++ t\n@@ -0,0 +1,1 @@\n+<|edit_diff_history|>\n"
    content = mercury_as_cursortab([], ["a<|cursor|>"], [], history, snippets)
    assert region_after(content, editing((1, 1, ["A"]))) == "A"


@pytest.mark.parametrize(
    "missing",
    [
        "<|current_file_content|>",
        "<|/current_file_content|>",
        "<|code_to_edit|>",
        "<|/code_to_edit|>",
    ],
)
def test_a_missing_marker_is_refused_by_name(missing: str) -> None:
    content = mercury_as_cursortab([], ["a<|cursor|>"], []).replace(missing + "\n", "")
    status, body = post(PATH, mercury_body(content))
    assert status == 400
    assert missing in body["error"]["message"]
    assert body["error"]["param"] == "messages[0].content"


async def test_any_prefix_of_a_prompt_is_answered_or_refused() -> None:
    whole = mercury_as_cursortab(["x"], ["a<|cursor|>"], ["y"], HISTORY)
    async with served(editing((1, 1, ["A"]))) as (_, client):
        found = set()
        for end in range(0, len(whole), 7):
            async with client.post(PATH, json=mercury_body(whole[:end])) as answer:
                await answer.read()
                found.add(answer.status)
    assert found == {200, 400}


def test_a_message_in_parts_is_put_together() -> None:
    content = mercury_as_cursortab([], ["a<|cursor|>"], [])
    parts = [{"type": "text", "text": content[:40]}, {"type": "text", "text": content[40:]}]
    messages = [{"role": "system", "content": "be brief"}, {"role": "user", "content": parts}]
    body = mercury_body(content) | {"messages": messages}
    status, answer = post(PATH, body, editing((1, 1, ["A"])))
    assert status == 200
    assert answer["choices"][0]["message"]["content"] == "```\nA\n```"


def test_a_cut_answer_still_gives_a_whole_region() -> None:
    content = mercury_as_cursortab([], ["a<|cursor|>", "b"], [])
    body = ask(content, editing((1, 1, ["A"]), finish="length"))
    assert body["choices"][0]["finish_reason"] == "stop"
    assert body["choices"][0]["message"]["content"] == "```\nA\nb\n```"


def test_the_change_alone_is_asked_for() -> None:
    content = mercury_as_cursortab([], ["a<|cursor|>"], [])
    predictor = ScriptedPredictor()
    ask(content, predictor, max_tokens=8_192, stop=["```"])
    assert predictor.requests[0].max_tokens == 256
    assert predictor.requests[0].stop == ()


def test_a_stream_carries_the_answer_in_one_piece() -> None:
    content = mercury_as_cursortab([], ["a", "b<|cursor|>"], [])
    [chunk] = events(PATH, mercury_body(content), editing((2, 2, ["B"])))
    assert chunk["object"] == "chat.completion.chunk"
    assert chunk["choices"][0]["delta"]["content"] == "```\na\nB\n```"
    assert chunk["choices"][0]["finish_reason"] == "stop"
    assert chunk["usage"]["total_tokens"] == 45


def test_diffusing_streams_a_region_once_it_is_whole() -> None:
    content = mercury_as_cursortab([], ["a", "b<|cursor|>", "c"], [])
    predictor = editing((2, 2, ["B2"]))
    predictor.states = [("a\n", None), ("a\n", "B")]
    [chunk] = events(PATH, mercury_body(content, diffusing=True), predictor)
    assert chunk["choices"][0]["delta"]["content"] == "```\na\nB2\nc\n```"
    assert chunk["choices"][0]["finish_reason"] == "stop"


def test_a_prompt_that_cannot_be_read_can_be_streamed() -> None:
    content = mercury_as_cursortab([], ["a<|cursor|>", "<|code_to_edit|>"], [])
    [chunk] = events(PATH, mercury_body(content), ScriptedPredictor())
    assert chunk["choices"][0]["message"]["content"] == "None"


def test_several_candidates_are_several_choices() -> None:
    def two(request: EditRequest) -> Prediction:
        return rewrite_lines(request, (1, 1, ["A"]), (2, 2, ["B"]))

    content = mercury_as_cursortab([], ["a<|cursor|>", "b"], [])
    _, body = post(PATH, mercury_body(content, n=2), ScriptedPredictor([two]))
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert texts == ["```\nA\nb\n```", "```\na\nB\n```"]
