"""Conversations over HTTP: shapes, calls, streams, and what is refused with which field."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import pytest
from redraft.model.records import EditRequest, ModelStatus
from redraft.server.app import create_app
from redraft.server.routes.models import CONSTRAINTS, describe_model
from redraft.server.settings import Settings
from support.edit_prompts import mercury_as_zed, mercury_body
from support.editors.predictor import CHATTY, READY, ScriptedPredictor, chatting
from support.served import events, got, post

CHAT = "/v1/chat/completions"
HELLO = [{"role": "user", "content": "hello"}]
ADD = {
    "type": "function",
    "function": {
        "name": "add",
        "parameters": {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/n"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
            "$defs": {"n": {"type": "integer"}},
        },
    },
}
CALL = '<tool_call>\n{"name": "add", "arguments": {"a": 1, "b": 2}}\n</tool_call>'


def asked(body: dict[str, Any]) -> EditRequest:
    """Return what the engine is asked for a body."""
    predictor = chatting("hi")
    status, answer = post(CHAT, {"messages": HELLO, **body}, predictor)
    assert status == 200, answer
    return predictor.requests[0]


def refusal(body: dict[str, Any], path: str = CHAT) -> dict[str, Any]:
    predictor = chatting("hi")
    status, answer = post(path, {"messages": HELLO, **body}, predictor)
    assert status == 400 and predictor.requests == []
    error: dict[str, Any] = answer["error"]
    return error


def test_an_answer_has_the_shape_of_the_api() -> None:
    predictor = chatting("Hello to you.")
    status, body = post(CHAT, {"messages": HELLO, "model": "fake-1m"}, predictor)
    assert status == 200
    assert body["object"] == "chat.completion" and body["id"].startswith("chatcmpl-")
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello to you.", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert body["usage"]["prompt_tokens_details"] == {"cached_tokens": 30}
    assert body["usage"]["completion_tokens_details"] == {"reasoning_tokens": 0}


def test_fields_reach_the_engine() -> None:
    how = {"temperature": 0.5, "top_p": 0.9, "seed": 3, "stop": "END", "n": 2}
    limits = {"max_tokens": 9, "max_completion_tokens": 7, "reasoning_effort": "instant"}
    request = asked({**how, **limits})
    assert (request.task, request.max_tokens, request.temperature) == ("chat", 7, 0.5)
    assert (request.top_p, request.seed, request.stop) == (0.9, 3, ("END",))
    assert (request.candidates, request.quality) == (2, "low")
    assert request.conversation is not None and not request.conversation.think


@pytest.mark.parametrize("no_limit", [0, -1, -2])
def test_ollamas_values_for_no_limit_are_none(no_limit: int) -> None:
    predictor = chatting("hi")
    body = {"messages": HELLO, "stream": False, "options": {"num_predict": no_limit}}
    status, answer = post("/api/chat", body, predictor)
    assert status == 200, answer
    assert predictor.requests[0].max_tokens == Settings().max_tokens


def test_turns_reach_the_template_as_it_knows_them() -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}}
    request = asked(
        {
            "messages": [
                {"role": "developer", "content": [{"type": "text", "text": "be "},
                                                  {"type": "text", "text": "brief"}]},
                {"role": "user", "content": "add\r\nit"},
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "c1", "content": "2"},
            ]
        }
    )  # fmt: skip
    assert request.conversation is not None
    system, user, assistant, tool = request.conversation.messages
    assert (system.role, system.content, user.content) == ("system", "be brief", "add\nit")
    assert (assistant.content, assistant.tool_calls[0].arguments) == ("", '{"a": 1}')
    assert (tool.role, tool.tool_call_id) == ("tool", "c1")


def test_a_call_that_the_model_chose_to_make() -> None:
    for text in (CALL, CALL.replace("<tool_call>\n", "").replace("\n</tool_call>", "")):
        _, body = post(CHAT, {"messages": HELLO, "tools": [ADD]}, chatting(text))
        (choice,) = body["choices"]
        (call,) = choice["message"]["tool_calls"]
        assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] is None
        assert call["function"]["name"] == "add"
        assert json.loads(call["function"]["arguments"]) == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    "text",
    [
        '<tool_call>\n{"name": "subtract", "arguments": {}}\n</tool_call>',
        '<tool_call>\n{"name": "add", "arguments": {"a": 1',
        '{"name": "add", "arguments": "1, 2"}',
    ],
)
def test_what_is_no_call_of_a_known_function_is_text(text: str) -> None:
    _, body = post(CHAT, {"messages": HELLO, "tools": [ADD]}, chatting(text))
    assert body["choices"][0]["message"]["content"] == text
    assert body["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
def test_a_required_call_is_bound_by_its_schema(choice: object) -> None:
    request = asked({"tools": [ADD], "tool_choice": choice})
    assert request.grammar is not None and request.conversation is not None
    assert request.conversation.begins == "<tool_call>\n"
    schema = json.loads(request.grammar.text)
    assert schema["properties"]["name"] == {"const": "add"}
    assert schema["$defs"]["f0"]["properties"]["a"] == {"$ref": "#/$defs/f0/$defs/n"}


def test_no_tools_are_told_where_none_may_be_called() -> None:
    request = asked({"tools": [ADD], "tool_choice": "none"})
    assert request.conversation is not None and request.conversation.tools == ""


@pytest.mark.parametrize(
    ("body", "kind", "text"),
    [
        ({"response_format": {"type": "json_object"}}, "json_schema", '{"type": "object"}'),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": {
                "const": None}}}},
            "json_schema",
            '{"const": null}',
        ),
        ({"guided_json": {"type": "null"}}, "json_schema", '{"type": "null"}'),
        ({"guided_json": '{"type":"null"}'}, "json_schema", '{"type": "null"}'),
        ({"guided_regex": "a|b"}, "regex", "a|b"),
        ({"guided_grammar": 'start: "a"'}, "lark", 'start: "a"'),
        ({"guided_infill": "identifier"}, "regex", "[A-Za-z_$][A-Za-z0-9_$]*"),
    ],
)  # fmt: skip
def test_what_the_answer_must_be(body: dict[str, Any], kind: str, text: str) -> None:
    grammar = asked(body).grammar
    assert grammar is not None and (grammar.kind, grammar.text) == (kind, text)
    assert grammar.field == next(iter(body))


def test_llama_cpps_notation_is_understood() -> None:
    grammar = asked({"grammar": 'root ::= "yes" | "no"'}).grammar
    assert grammar is not None and grammar.kind == "lark" and "::=" not in grammar.text


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/completions", {"prompt": "a", "suffix": "b"}),
        ("/v1/fim/completions", {"prompt": "a", "suffix": "b"}),
        ("/infill", {"input_prefix": "a"}),
    ],
)
def test_infills_are_bound_by_the_same_fields(path: str, body: dict[str, Any]) -> None:
    predictor = ScriptedPredictor()
    status, _ = post(path, {**body, "guided_regex": "a+"}, predictor)
    grammar = predictor.requests[0].grammar
    assert status == 200 and grammar is not None and grammar.text == "a+"


def test_an_edit_cannot_be_bound() -> None:
    body = mercury_body(mercury_as_zed("", "x = 1<|cursor|>", ""))
    error = refusal({**body, "guided_regex": "a"}, "/v1/edit/completions")
    assert error["param"] == "guided_regex"


def test_a_stream_tells_what_stays_and_then_the_rest() -> None:
    body = {"messages": HELLO, "stream_options": {"include_usage": True}}
    chunks = events(CHAT, body, chatting("one two three"))
    deltas = [c["delta"].get("content") for chunk in chunks for c in chunk["choices"]]
    assert "".join(filter(None, deltas)) == "one two three" and len(deltas) > 3
    assert [c["finish_reason"] for chunk in chunks for c in chunk["choices"]][-1] == "stop"
    assert chunks[-1]["choices"] == [] and chunks[-1]["usage"]["total_tokens"] > 0
    assert all(chunk["usage"] is None for chunk in chunks[:-1])


def test_a_stream_holds_back_a_possible_stop_string() -> None:
    predictor = chatting("one two STOP three", "one two ")
    predictor.answers = predictor.answers[1:]  # what the engine cuts off was seen all the same
    predictor.states = predictor.states[:3]
    chunks = events(CHAT, {"messages": HELLO, "stop": "STOP "}, predictor)
    deltas = [c["delta"].get("content") for chunk in chunks for c in chunk["choices"]]
    assert "".join(filter(None, deltas)) == "one two "


def test_diffusing_shows_the_text_after_every_step() -> None:
    chunks = events(CHAT, {"messages": HELLO, "diffusing": True}, chatting("one two"))
    texts = [c["delta"].get("content") for chunk in chunks for c in chunk["choices"]]
    assert texts == ["one ░", "one two░", "one two", None]


def test_a_bound_answer_comes_in_one_piece() -> None:
    body = {"messages": HELLO, "response_format": {"type": "json_object"}}
    chunks = events(CHAT, body, chatting('{"a": 1}'))
    assert [c["delta"].get("content") for chunk in chunks for c in chunk["choices"]] == [
        '{"a": 1}', None
    ]  # fmt: skip


def test_a_model_without_a_template_says_so() -> None:
    status, body = post(CHAT, {"messages": HELLO}, ScriptedPredictor(statuses=[READY]))
    assert (status, body["error"]["code"]) == (400, "no_chat_template")
    assert "--model" in body["error"]["message"]


def test_the_conversation_model_may_be_another_one() -> None:
    predictor = chatting("hi")
    predictor.statuses = [replace(CHATTY, chat_model="talker-1b")]
    for name in ("talker-1b", "fake-1m", "gpt-9"):
        status, body = post(CHAT, {"messages": HELLO, "model": name}, predictor)
        assert (status, body["model"]) == (200, "talker-1b")


def test_models_say_what_they_can_do() -> None:
    predictor = chatting("hi")
    predictor.statuses = [replace(CHATTY, chat_model="talker-1b")]
    found = got("/v1/models", predictor)["data"]
    assert [each["id"] for each in found] == ["fake-1m", "fake-1m-int8", "talker-1b"]
    assert "fim.completions" in found[0]["supported_endpoints"]
    assert found[2]["supported_endpoints"] == ["chat.completions", "decisions"]
    assert found[2]["context_length"] == 8192
    edits = got("/v1/edit/completions/models", predictor)["data"]
    assert [each["supported_features"] for each in edits] == [["diffusing"]] * 2
    (talker,) = got("/v1/chat/completions/models", predictor)["data"]
    assert talker["id"] == "talker-1b"
    assert talker["supported_features"][-2:] == ["tools", "reasoning_effort"]


def test_a_model_claims_no_more_than_it_can() -> None:
    """A model that denoises in both directions, and whose template has no tools."""
    little = replace(CHATTY, abilities=("infill",), chat_abilities=(), prompt_format="in-place")
    (model, _) = describe_model(little)
    assert model["supported_endpoints"] == ["chat.completions", "completions", "fim.completions"]
    assert model["supported_features"] == ["diffusing", "reasoning_effort"]
    assert model["redraft"]["prompt_format"] == "in-place"
    told = describe_model(replace(little, chat_abilities=("grammar", "decide", "tools")))[0]
    assert told["redraft"]["features"] == {
        "chat.completions": [*CONSTRAINTS, "diffusing", "tools", "reasoning_effort"],
        "completions": ["diffusing"],
        "fim.completions": ["diffusing"],
        "decisions": [],
    }
    loading = ModelStatus("loading", "fake-1m int8")
    assert [each["supported_endpoints"] for each in describe_model(loading)] == [[], []]


def test_the_document_names_exactly_our_routes() -> None:
    document = got("/openapi.json", chatting("x"))
    app = create_app(chatting("x"), Settings())
    served_here = {
        (route.resource.canonical, route.method.lower())
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }
    described = {(path, m) for path, methods in document["paths"].items() for m in methods}
    assert described == served_here
    for path, methods in document["paths"].items():
        assert all(operation["summary"] for operation in methods.values()), path
        assert ("requestBody" in methods.get("post", {})) == ("post" in methods), path
    chat = document["paths"]["/v1/chat/completions"]["post"]["requestBody"]["content"]
    fields = chat["application/json"]["schema"]["properties"]
    assert {"messages", "max_tokens", "tools", "response_format"} <= {*fields}
    referred = set(re.findall(r"#/components/schemas/(\w+)", json.dumps(document)))
    assert referred and referred <= {*document["components"]["schemas"]}
