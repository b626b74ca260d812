"""Each route with each kind of body, well-formed or broken: one shape of answers and of errors."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from hypothesis import strategies as st
from pydantic import SecretStr
from redraft.model.errors import EngineGone
from redraft.model.records import EditRequest
from redraft.model.wire import request_to_json
from redraft.server.app import create_app
from redraft.server.routes.playground import FILES
from redraft.server.settings import Settings
from support.edit_prompts import mercury_as_zed, mercury_body
from support.editors.predictor import ScriptedPredictor, chatting, editing
from support.served import never_a_500, post, send, served

INFILL = {"prompt": "a", "suffix": "b"}
EDIT = mercury_body(mercury_as_zed("", "x = 1<|cursor|>", ""))
CHAT = {"messages": [{"role": "user", "content": "a"}]}
DECISION = {"state": "a", "questions": {"b": {"type": "noul", "instructions": "c"}}}
RECORD = request_to_json(EditRequest(task="infill", path="a.py", text="ab", cursor=1), steps=True)

#: What each route is sent; one without a body is asked by GET.
ASKED: dict[str, list[dict[str, Any] | None]] = {
    "/health": [None],
    "/v1/completions": [INFILL, {**INFILL, "stream": True, "diffusing": True}, {"prompt": 7}],
    "/v1/fim/completions": [INFILL, {**INFILL, "stream": True, "diffusing": True}, {}],
    "/v1/edit/completions": [EDIT, {**EDIT, "stream": True}, {}],
    "/v1/models": [None],
    "/v1/models/{name}": [None],
    "/feedback": [{"request_id": "x", "user_action": "accept"}],
    "/infill": [{"input_prefix": "a"}, {"input_prefix": "a", "stream": True}, {"prompt": 7}],
    "/api/generate": [INFILL, {**INFILL, "stream": False}, {"prompt": 7}],
    "/api/tags": [None],
    "/api/show": [{"model": "fake-1m"}],
    "/api/ps": [None],
    "/api/version": [None],
    "/api/chat": [{**CHAT, "stream": False}, CHAT, {"messages": 7}],
    "/openapi.json": [None],
    "/v1/chat/completions": [CHAT, {**CHAT, "stream": True, "diffusing": True}, {}],
    "/v1/decisions": [DECISION, {}, {"input": 7}],
    "/v1/systemone": [DECISION, {}],
    "/v1/chat/completions/models": [None],
    "/v1/decisions/models": [None],
    "/v1/edit/completions/models": [None],
    "/v1/fim/completions/models": [None],
    "/redraft/v1/predict": [RECORD, {**RECORD, "steps": False}, {}],
    "/redraft/v1/status": [None],
}


POSTED = tuple(route for route, bodies in ASKED.items() if bodies != [None])


def message(path: str, answer: Any) -> str:
    """Return the sentence of an error in the shape of the route."""
    error = answer["error"]
    return str(error if path.startswith("/api/") else error["message"])


BROKEN = [
    (b"", "not valid JSON"),
    (b"{", "line 1, column 2"),
    (b"[1, 2]", "JSON array"),
    (b"null", "JSON null"),
    (b'{"prompt": NaN}', "NaN"),
    (b'{"prompt": "\xff\xfe"}', "UTF-8 (byte 0xff at offset 12)"),
    (b"\x00\x01\x02", "not valid JSON"),
    (b"[" * 200_000, "nested too deeply"),
    (b'{"max_tokens": ' + b"9" * 5_000 + b"}", "number that cannot be read"),
]


@pytest.mark.parametrize("path", POSTED)
async def test_a_broken_body_is_explained_as_the_route_does(path: str) -> None:
    async with served(ScriptedPredictor()) as (_, client):
        for body, says in BROKEN:
            async with client.post(path, data=body) as answer:
                found = await answer.json()
                assert (answer.status, says in message(path, found)) == (400, True), found
            if not path.startswith("/api/"):
                assert found["error"]["type"] == "invalid_request_error"
                assert found["error"]["code"] == "invalid_request"
        async with client.get("/health") as health:
            assert health.status == 200


@pytest.mark.parametrize("path", POSTED)
def test_a_body_over_the_limit_is_refused(path: str) -> None:
    settings = Settings(max_body_bytes=2_000, shutdown_s=0.1)
    status, answer = post(path, {"prompt": "x" * 5_000}, settings=settings)
    assert (status, "2000 bytes" in message(path, answer)) == (413, True)


@pytest.mark.parametrize("path", POSTED)
def test_every_route_demands_the_servers_key(path: str) -> None:
    status, _ = post(path, {}, settings=Settings(api_key=SecretStr("secret"), shutdown_s=0.1))
    assert status == 401


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/fim/completions"])
@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("prompt", 7, "must be a string, not number"),
        ("prompt", None, "missing"),
        ("prompt", "a\0b", "NUL character at offset 1"),
        ("suffix", ["x"], "must be a string, not array"),
        ("suffix", "\0", "NUL"),
        *(("max_tokens", wrong, "at least 1") for wrong in (0, -5)),
        *(("max_tokens", wrong, "whole number") for wrong in (1.5, "12", True)),
        *(("temperature", wrong, "between 0 and 2") for wrong in (-0.1, 1e308)),
        ("temperature", "hot", "must be a number"),
        ("top_p", 2, "between 0 and 1"),
        ("seed", "x", "whole number"),
        *(("n", wrong, "between 1 and 8") for wrong in (0, 99)),
        ("stop", ["x"] * 17, "at most 16"),
        ("stop", "", "empty"),
        ("stop", [1], "'stop[0]' must be a string"),
        ("stop", {"a": 1}, "must be an array, not object"),
        ("stream", "yes", "true or false"),
        ("stream_options", 3, "must be an object"),
        ("model", 3, "must be a string"),
    ],
)
def test_a_wrong_field_is_named(path: str, field: str, value: Any, says: str) -> None:
    predictor = ScriptedPredictor()
    status, _, error = send(path, {"prompt": "a", "suffix": "b", field: value}, predictor=predictor)
    assert status == 400
    assert error["param"].startswith(field)
    assert says in error["message"]
    assert predictor.requests == []


JSON_OBJECT = {"type": "json_object"}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
MANY = {str(label): None for label in range(256)}

PREDICATE = {"type": "predicate", "instructions": "b"}
SEVEN = PREDICATE | {"type": "choice", "choices": [{"value": 7}]}
TWICE = PREDICATE | {"type": "choice", "choices": [{"value": "c"}, {"value": "c"}]}

WRONG: dict[str, list[tuple[dict[str, Any], str]]] = {
    "/v1/edit/completions": [
        *(({"messages": wrong}, "messages") for wrong in (None, [], "x")),
        ({"messages": [7]}, "messages[0]"),
        ({"messages": [{"content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 7}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "a\0"}]}, "messages[0].content"),
        ({"messages": [{"role": "system", "content": "x"}]}, "messages"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content[0].type",
        ),
        ({"stream": "yes"}, "stream"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 9}, "temperature"),
    ],
    "/infill": [
        ({"input_prefix": 7}, "input_prefix"),
        ({"input_suffix": "\0"}, "input_suffix"),
        ({"prompt": [1, 2]}, "prompt"),
        ({"input_extra": "x"}, "input_extra"),
        ({"input_extra": [7]}, "input_extra[0]"),
        ({"input_extra": [{"filename": "a"}]}, "input_extra[0].text"),
        *(({"n_predict": wrong}, "n_predict") for wrong in (-5, "x")),
        ({"n_indent": -1}, "n_indent"),
        ({"t_max_predict_ms": "x"}, "t_max_predict_ms"),
        ({"response_fields": [1]}, "response_fields[0]"),
        ({"stop": ["x"] * 17}, "stop"),
    ],
    "/api/generate": [
        *(({"prompt": wrong}, "'prompt'") for wrong in (7, "a\0")),
        ({"options": 7}, "'options' must be an object"),
        *(({"options": {"num_predict": wrong}}, "num_predict") for wrong in (-9, "x")),
        ({"options": {"stop": ["x"] * 17}}, "at most 16"),
        ({"options": {"temperature": "hot"}}, "temperature"),
        ({"raw": "yes"}, "'raw' must be true or false"),
        ({"stream": 1}, "'stream' must be true or false"),
        ({"model": 7}, "'model' must be a string"),
    ],
    "/api/chat": [
        *(({"options": {"num_predict": wrong}}, "options.num_predict") for wrong in (-9, "x")),
        ({"options": 7}, "'options' must be an object"),
    ],
    "/feedback": [
        *(({"request_id": wrong}, "request_id") for wrong in (None, 7)),
        *(({"user_action": wrong}, "user_action") for wrong in (None, "love", ["accept"])),
        ({"provider_name": 7}, "provider_name"),
    ],
    "/v1/chat/completions": [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user"}] * 10_001}, "messages"),
        ({"messages": [{"role": "wizard", "content": "x"}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"messages": [{"role": "user", "content": "a\0"}]}, "messages[0].content"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
            "messages[0].content[0].type",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [
                {"function": {"name": "f", "arguments": "{a: 1}"}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            {"messages": [{"role": "assistant", "tool_calls": [
                {"function": {"name": "f", "arguments": "[1]"}}]}]},
            "messages[0].tool_calls[0].function.arguments",
        ),
        (
            {"messages": [{"role": "user", "tool_calls": [{"function": {"name": "f"}}]}]},
            "messages[0].tool_calls",
        ),
        ({"tools": [TOOL, TOOL]}, "tools[1].function.name"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools[0].function.name"),
        (
            {"tools": [{"type": "function", "function": {"name": "f", "parameters": [1]}}]},
            "tools[0].function.parameters",
        ),
        ({"tools": [TOOL] * 129}, "tools"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tool_choice": "sometimes", "tools": [TOOL]}, "tool_choice"),
        (
            {"tool_choice": {"type": "function", "function": {"name": "sub"}}, "tools": [TOOL]},
            "tool_choice.function.name",
        ),
        (
            {"tools": [TOOL], "tool_choice": "required", "response_format": JSON_OBJECT},
            "tool_choice",
        ),
        ({"response_format": {"type": "yaml"}}, "response_format.type"),
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema.schema"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": 3}}},
            "response_format.json_schema.schema",
        ),
        ({"guided_json": "{"}, "guided_json"),
        ({"guided_json": {"a": 1}, "guided_regex": "a"}, "guided_regex"),
        ({"guided_infill": "paragraph"}, "guided_infill"),
        ({"grammar": "root ::= ("}, "grammar"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"n": 999}, "n"),
        ({"stop": [""]}, "stop[0]"),
        ({"reasoning_effort": "frantic"}, "reasoning_effort"),
        ({"logprobs": True}, "logprobs"),
    ],
    "/v1/decisions": [
        (
            {
                "questions": {
                    str(i): {"type": "choice", "criteria": dict.fromkeys(map(str, range(255)))}
                    for i in range(9)
                }
            },
            "questions",
        ),
        ({"questions": {}}, "questions"),
        ({"questions": {"q": {"type": "guess"}}}, "questions.q.type"),
        ({"questions": {"q": {"type": "choice"}}}, "questions.q.criteria"),
        ({"questions": {"q": {"type": "choice", "criteria": {"": None}}}}, "questions.q.criteria"),
        ({"questions": {"q": {"type": "score", "criteria": []}}}, "questions.q.criteria"),
        (
            {"questions": {"q": {"type": "score", "criteria": [*"01234567890"]}}},
            "questions.q.criteria",
        ),
        (
            {"questions": {"q": {"type": "choice", "criteria": MANY}}},
            "questions.q.criteria",
        ),
        ({"state": [{"type": "image_url"}], "questions": {"q": {"type": "noul"}}}, "state"),
        ({"input": 7, "questions": [PREDICATE]}, "input"),
        ({"input": [7], "questions": [PREDICATE]}, "input[0]"),
        ({"input": [{"type": "reasoning"}], "questions": [PREDICATE]}, "input[0].type"),
        ({"input": [{"role": "user"}], "questions": [PREDICATE]}, "input[0].content"),
        ({"input": "a", "questions": {}}, "questions"),
        ({"input": "a", "questions": []}, "questions"),
        ({"input": "a", "questions": [{"type": "predicate"}]}, "questions[0].instructions"),
        ({"input": "a", "questions": [{"type": "noul", "instructions": "b"}]}, "questions[0].type"),
        ({"input": "a", "questions": [PREDICATE | {"type": "choice"}]}, "questions[0].choices"),
        ({"input": "a", "questions": [PREDICATE | {"type": "score"}]}, "questions[0].levels"),
        ({"input": "a", "questions": [TWICE]}, "questions[0].choices"),
        ({"input": "a", "questions": [SEVEN]}, "questions[0].choices[0].value"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("path", "body", "param"), [(path, *row) for path, rows in WRONG.items() for row in rows]
)
def test_a_wrong_field_of_any_route_is_named(path: str, body: dict[str, Any], param: str) -> None:
    predictor = chatting("hi")
    (right, *_) = ASKED[path]
    status, answer = post(path, {**(right or {}), **body}, predictor)
    assert (status, predictor.requests) == (400, [])
    if path.startswith("/api/"):
        assert param in answer["error"]
    else:
        assert answer["error"]["param"] == param


@pytest.mark.parametrize(
    ("path", "body", "named"),
    [
        ("/v1/completions", {"prompt": "a", "pro\ud83d": "b"}, "body"),
        ("/v1/completions", {"prompt": "a", "response_format": {"type": "\ud800"}}, "type"),
        ("/redraft/v1/predict", {"version": 1, "request": {"task\udc80": "infill"}}, "request"),
        ("/redraft/v1/predict", {"version": 1, "request": {"task": "in\udc80"}}, "request.task"),
        ("/v1/fim/completions", {"prompt": "a", "suffix": "b", "\ud800": 1}, "body"),
        ("/v1/chat/completions", {"messages": [{"\ud800": "user"}]}, "messages[0]"),
        ("/infill", {"input_prefix": "a", "\ud800": 1}, "body"),
    ],
)
def test_half_a_surrogate_pair_is_refused(path: str, body: dict[str, Any], named: str) -> None:
    status, _, error = send(path, body)
    assert status == 400
    assert f"{named}' holds half a surrogate pair" in error["message"]


@pytest.mark.parametrize(
    "number", ["1e400", "-1e400", "1e99", "123456789012345678901234567890", "9" * 400]
)
@pytest.mark.parametrize("field", ["max_tokens", "temperature", "seed", "n"])
def test_an_absurd_number_is_refused(field: str, number: str) -> None:
    body = f'{{"prompt": "a", "suffix": "b", "{field}": {number}}}'.encode()
    status, _, error = send("/v1/completions", body)
    assert status == 400
    assert error["param"] == field


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1, 2]], ["a", "b"], []])
def test_token_arrays_and_several_prompts_are_refused(prompt: Any) -> None:
    status, _, error = send("/v1/completions", {"prompt": prompt})
    assert status == 400
    assert "Send one string" in error["message"]


def test_unknown_routes_and_methods_answer_json() -> None:
    status, _, error = send("/v1/chat/nothing", {})
    assert status == 404
    assert "/v1/completions" in error["message"]
    status, headers, error = send("/v1/completions", None, method="GET")
    assert status == 405
    assert headers["Allow"] == "POST"
    assert error["code"] == "method_not_allowed"


async def answers(predictor: ScriptedPredictor) -> list[tuple[str, str]]:
    """Route and body of the answer to each of :data:`ASKED`."""
    found = []
    async with served(predictor) as (_, client):
        for route, bodies in ASKED.items():
            path = route.replace("{name}", "fake-1m")
            for body in bodies:
                method = "GET" if body is None else "POST"
                async with client.request(method, path, json=body) as answer:
                    found.append((path, await answer.text()))
        for method, path in (("GET", "/nowhere"), ("GET", "/infill"), ("GET", "/api/generate")):
            async with client.request(method, path) as answer:
                found.append((path, await answer.text()))
    return found


def values(text: str) -> list[str]:
    """Return the JSON texts of an answer: one, one in a line, or one in an event."""
    lines = (line.removeprefix("data: ") for line in text.splitlines())
    return [line for line in lines if line and line != "[DONE]"]


def test_every_route_is_asked() -> None:
    routes = {r.canonical for r in create_app(ScriptedPredictor(), Settings()).router.resources()}
    assert routes - {"/metrics", *FILES} == set(ASKED)


@pytest.mark.parametrize("error", [None, EngineGone("the engine is gone")])
def test_json_has_no_spaces_between_its_parts(error: Exception | None) -> None:
    for path, text in asyncio.run(answers(ScriptedPredictor([error]))):
        assert values(text), path
        for value in values(text):
            assert value == json.dumps(json.loads(value), separators=(",", ":")), path


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
MESSAGES = st.lists(st.fixed_dictionaries({"role": st.just("user"), "content": JSON}), max_size=2)
NAMES = st.sampled_from(
    [
        *("prompt", "suffix", "max_tokens", "temperature", "top_p", "seed", "n", "stop", "stream"),
        *("stream_options", "model", "diffusing", "version", "request", "steps", "input_prefix"),
        *("input_suffix", "input_extra", "n_predict", "n_indent", "t_max_predict_ms", "options"),
        *("response_fields", "request_id", "user_action", "raw", "eagerness", "messages", "tools"),
        *("tool_choice", "response_format", "guided_json", "grammar", "state", "questions"),
        *("format", "input", "assets"),
    ]
)
BODIES = st.dictionaries(NAMES, JSON | MESSAGES).map(lambda one: json.dumps(one).encode())
TALK = ("/v1/chat/completions", "/v1/decisions", "/v1/systemone", "/api/chat")


def test_no_json_makes_a_500() -> None:
    others = [path for path in POSTED if path not in TALK]
    never_a_500(others, BODIES | st.binary(), editing((1, 1, ["A"])))


def test_no_json_in_a_conversation_makes_a_500() -> None:
    bodies = BODIES.map(lambda body: json.dumps({**CHAT, **json.loads(body)}).encode())
    never_a_500(TALK, bodies | st.binary(), chatting("x"))
