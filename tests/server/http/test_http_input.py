"""Bodies and answers of unusual shape on every route: nesting, halves of characters, numbers."""

from __future__ import annotations

import dataclasses
import json
from typing import Annotated, Any

import pytest
from pydantic import Field
from redraft.model.errors import InvalidRequest
from redraft.model.records import Conversation, EditRequest, Message, ToolCall
from redraft.model.validation import MAX_DEPTH, read
from redraft.model.wire import request_to_json
from support.edit_prompts import mercury_as_zed, mercury_body
from support.editors.predictor import CHATTY, ScriptedPredictor, chatting, editing, predicted
from support.served import CHAT, DECISION, POSTED, TALK, message, post


def nested(levels: int, opener: str, closer: str) -> bytes:
    return (opener * levels).encode() + b"1" + (closer * levels).encode()


@pytest.mark.parametrize("levels", [MAX_DEPTH, 300, 500, 900, 5_000, 100_000])
@pytest.mark.parametrize("ends", [("[", "]"), ('{"a":', "}")])
@pytest.mark.parametrize("path", POSTED)
def test_deep_nesting_is_refused(path: str, ends: tuple[str, str], levels: int) -> None:
    whole = json.dumps(POSTED[path]).encode()
    body = whole[:-1] + b', "stop": ' + nested(levels, *ends) + b"}"
    predictor = chatting("hi")
    status, answer = post(path, body, predictor)
    assert (status, predictor.requests) == (400, [])
    assert "nested too deeply" in message(answer)


def deep_schema(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        (path, fields)
        for path in ("/v1/chat/completions", "/api/chat")
        for fields in (
            {"tools": [{"function": {"name": "f", "parameters": deep_schema(300)}}]},
            {"format": deep_schema(300)},
        )
    ]
    + [
        ("/v1/completions", {"guided_json": json.dumps(deep_schema(300))}),
        ("/infill", {"json_schema": deep_schema(300)}),
    ],
)
def test_a_deep_schema_is_refused(path: str, fields: dict[str, Any]) -> None:
    status, answer = post(path, {**POSTED[path], **fields}, chatting("hi"))
    assert (status, "nested too deeply" in message(answer)) == (400, True), answer


def test_a_schema_of_forty_levels_is_read() -> None:
    tool = {"type": "function", "function": {"name": "f", "parameters": deep_schema(40)}}
    body = {**CHAT, "tools": [tool], "tool_choice": "required"}
    assert post("/v1/chat/completions", body, chatting("hi"))[0] == 200


def test_deep_arguments_of_an_earlier_call_are_refused() -> None:
    arguments = nested(500, '{"a":', "}").decode()
    call = {"id": "c", "function": {"name": "f", "arguments": arguments}}
    body = {"messages": [{"role": "assistant", "tool_calls": [call]}]}
    status, answer = post("/v1/chat/completions", body, chatting("hi"))
    assert (status, "nested too deeply" in message(answer)) == (400, True)


STRANGE = [
    '{"name": ["a"]}',
    '{"name": {}}',
    '{"name": {"a": 1}, "arguments": {}}',
    '{"name": null}',
    '{"name": 1.5}',
    '{"name": "add", "arguments": [1]}',
    '{"name": "add", "arguments": "x"}',
    '{"name": "add", "arguments": {"a": NaN}}',
    '{"name": "add", "arguments": {"a": 1e999}}',
    '{"name": "add", "arguments": ' + nested(500, '{"a":', "}").decode() + "}",
    '{"name": "add", "arguments": {"a": ' + "9" * 5_000 + "}}",
    "[" * 5_000,
    "[1]",
    "null",
]
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


@pytest.mark.parametrize("text", STRANGE)
@pytest.mark.parametrize("form", ["{}", "<tool_call>\n{}\n</tool_call>", "```json\n{}\n```"])
@pytest.mark.parametrize("tools", [[], [TOOL]])
@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat"])
def test_an_answer_of_unexpected_shape_is_text(
    path: str, tools: list[Any], form: str, text: str
) -> None:
    said = form.replace("{}", text, 1) if form != "{}" else text
    body = {**CHAT, "tools": tools, "stream": False}
    status, answer = post(path, body, chatting(said))
    assert status == 200
    turn = answer["choices"][0]["message"] if "choices" in answer else answer["message"]
    assert (turn["content"], "tool_calls" in turn) == (said, False)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/api/chat"])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_conversation_without_an_answer_has_none(path: str, streamed: bool) -> None:
    predictor = ScriptedPredictor([predicted(reason="nothing to say")], statuses=[CHATTY])
    status, answer = post(path, {**CHAT, "stream": False, "n": 2}, predictor)
    assert status == 200
    turn = answer["choices"][0]["message"] if "choices" in answer else answer["message"]
    assert turn["content"] == ""


def test_a_decision_without_scores_is_an_error() -> None:
    predictor = ScriptedPredictor([predicted()], statuses=[CHATTY])
    status, answer = post("/v1/decisions", DECISION, predictor)
    assert (status, answer["error"]["code"]) == (500, "invalid_answer")
    assert "scored 0 of 2 labels" in message(answer)


HALF = "a\ude00b\ud83d"
MENDED = "a\ufffdb\ufffd"
SCHEMA = {"type": "object", "properties": {HALF: {"description": HALF}}}
CALL = {"id": HALF, "function": {"name": "f", "arguments": json.dumps({"a": HALF})}}
HALVED: list[tuple[str, dict[str, Any]]] = [
    ("/v1/completions", {"prompt": HALF, "suffix": HALF, "stop": [HALF], "model": HALF}),
    ("/v1/completions", {"prompt": HALF, "suffix": "", "guided_json": SCHEMA}),
    ("/v1/completions", {"prompt": [HALF]}),
    ("/v1/fim/completions", {"prompt": HALF, "suffix": HALF}),
    (
        "/v1/edit/completions",
        mercury_body(mercury_as_zed(f"{HALF}\n", f"x{HALF}<|cursor|>", f"\n{HALF}")),
    ),
    (
        "/infill",
        {
            "input_prefix": HALF,
            "prompt": HALF,
            "input_suffix": HALF,
            "input_extra": [{"text": HALF, "filename": HALF}],
        },
    ),
    ("/api/generate", {"prompt": HALF, "suffix": HALF, "options": {"stop": HALF}}),
    ("/api/chat", {"messages": [{"role": "user", "content": HALF}], "stream": False}),
    (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": HALF}]},
                {"role": "assistant", "content": HALF, "name": HALF, "tool_calls": [CALL]},
                {"role": "tool", "content": HALF, "tool_call_id": HALF},
            ],
            "tools": [{"function": {"name": "f", "description": HALF, "parameters": SCHEMA}}],
            "tool_choice": "required",
        },
    ),
    (
        "/v1/decisions",
        {
            "state": {HALF: HALF},
            "questions": {
                HALF: {"type": "choice", "criteria": {HALF: HALF, "x": [HALF]}},
                "s": {"type": "score", "criteria": [HALF, 1], "instructions": HALF},
            },
        },
    ),
    (
        "/redraft/v1/predict",
        request_to_json(
            EditRequest(
                task="chat",
                path=HALF,
                text="",
                cursor=0,
                conversation=Conversation((Message("user", HALF),), tools=json.dumps([HALF])),
            )
        ),
    ),
]


@pytest.mark.parametrize(("path", "body"), HALVED)
def test_half_a_surrogate_pair_is_the_replacement(path: str, body: dict[str, Any]) -> None:
    is_chat = path in (*TALK, "/redraft/v1/predict")
    predictor = chatting("hi") if is_chat else editing(None)
    status, answer = post(path, body, predictor)
    assert status == 200, answer
    for request in predictor.requests:
        written = json.dumps(dataclasses.asdict(request), ensure_ascii=False)
        written.encode()  # what a tokenizer would refuse
        assert MENDED in written


def test_the_cursor_stays_behind_half_a_pair() -> None:
    predictor = ScriptedPredictor()
    post("/v1/completions", {"prompt": "\ude00 = 1\nx = ", "suffix": "\n"}, predictor)
    [request] = predictor.requests
    assert request.text[: request.cursor] == "\ufffd = 1\nx = "


@pytest.mark.parametrize(
    ("path", "fields", "named"),
    [
        (
            "/v1/decisions",
            '"state": 1e999, "questions": {"q": {"type": "noul"}}',
            "'state'",
        ),
        (
            "/v1/decisions",
            '"state": "a", "questions": {"q": {"type": "score", "criteria": [1e999, 2]}}',
            "criteria",
        ),
        (
            "/v1/chat/completions",
            '"messages": [{"role": "user", "content": "a"}], "guided_json": {"minimum": 1e999}',
            "'guided_json'",
        ),
    ],
)
def test_a_number_that_json_cannot_hold_is_refused(path: str, fields: str, named: str) -> None:
    status, answer = post(path, f"{{{fields}}}".encode(), chatting("hi"))
    assert (status, named in message(answer)) == (400, True), answer


@pytest.mark.parametrize(
    "conversation",
    [
        Conversation((Message("user", "a"),), tools="not json"),
        Conversation((Message("user", "a"),), tools="{}"),
        Conversation((Message("user", "a"),), tools="[" * 500 + "]" * 500),
        Conversation((Message("assistant", "", tool_calls=(ToolCall("a", "f", "x"),)),)),
        Conversation((Message("assistant", "", tool_calls=(ToolCall("a", "f", "[]"),)),)),
    ],
)
def test_texts_that_templates_read_as_json_are_checked(conversation: Conversation) -> None:
    request = EditRequest(task="chat", path="", text="", cursor=0, conversation=conversation)
    predictor = chatting("hi")
    status, answer = post("/redraft/v1/predict", request_to_json(request), predictor)
    assert (status, predictor.requests) == (400, [])
    assert "'conversation." in message(answer)


def test_errors_without_a_sentence_get_a_general_one() -> None:
    @dataclasses.dataclass
    class Body:
        size: Annotated[int, Field(multiple_of=8)]

    with pytest.raises(InvalidRequest, match=r"'size' cannot be used: .*multiple of 8.* It is 7"):
        read(Body, {"size": 7})
