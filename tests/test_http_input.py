"""Bodies of unusual shape on every route: nesting, halves of characters, numbers, encodings."""

from __future__ import annotations

import asyncio
import dataclasses
import gzip
import json
import zlib
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import pytest
import zstandard
from pydantic import Field
from redraft.model.errors import InvalidRequest
from redraft.model.records import Conversation, EditRequest, Message, ToolCall
from redraft.model.validation import MAX_DEPTH, read
from redraft.model.wire import request_to_json
from redraft.server.settings import Settings
from support.edit_prompts import mercury_as_zed, mercury_body
from support.editors.predictor import CHATTY, ScriptedPredictor, chatting, editing, predicted
from support.served import post, served

INFILL = {"prompt": "a", "suffix": "b"}
CHAT = {"messages": [{"role": "user", "content": "a"}]}
DECISION = {"state": "a", "questions": {"b": {"type": "noul", "instructions": "c"}}}
RECORD = request_to_json(EditRequest(task="infill", path="a.py", text="ab", cursor=1))
POSTED: dict[str, dict[str, Any]] = {
    "/v1/completions": INFILL,
    "/v1/fim/completions": INFILL,
    "/v1/edit/completions": mercury_body(mercury_as_zed("", "x = 1<|cursor|>", "")),
    "/infill": {"input_prefix": "a"},
    "/api/generate": {**INFILL, "stream": False},
    "/api/chat": {**CHAT, "stream": False},
    "/api/show": {"model": "fake-1m"},
    "/v1/chat/completions": CHAT,
    "/v1/decisions": DECISION,
    "/feedback": {"request_id": "x", "user_action": "accept"},
    "/redraft/v1/predict": RECORD,
}


TALK = ("/api/chat", "/v1/chat/completions", "/v1/decisions")


def posted(
    path: str,
    data: bytes,
    headers: dict[str, str],
    predictor: ScriptedPredictor | None = None,
    settings: Settings | None = None,
) -> tuple[int, dict[str, str], Any]:
    """Return status, headers and JSON of one request to a fresh server."""

    async def run() -> tuple[int, dict[str, str], Any]:
        async with (
            served(predictor or ScriptedPredictor(), settings) as (_, client),
            client.post(path, data=data, headers=headers) as answer,
        ):
            return answer.status, dict(answer.headers), await answer.json()

    return asyncio.run(run())


def message(answer: Any) -> str:
    error = answer["error"]
    return str(error if isinstance(error, str) else error["message"])


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
def test_a_conversation_without_an_answer_has_an_empty_one(path: str, streamed: bool) -> None:
    predictor = ScriptedPredictor([predicted(reason="nothing to say")], statuses=[CHATTY])
    status, answer = post(path, {**CHAT, "stream": False, "n": 2}, predictor)
    assert status == 200
    turn = answer["choices"][0]["message"] if "choices" in answer else answer["message"]
    assert turn["content"] == ""


def test_a_decision_without_scores_is_an_error_with_a_sentence() -> None:
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
def test_half_a_surrogate_pair_is_read_as_the_replacement(path: str, body: dict[str, Any]) -> None:
    is_chat = path in (*TALK, "/redraft/v1/predict")
    predictor = chatting("hi") if is_chat else editing(None)
    status, answer = post(path, body, predictor)
    assert status == 200, answer
    for request in predictor.requests:
        written = json.dumps(dataclasses.asdict(request), ensure_ascii=False)
        written.encode()  # what a tokenizer would refuse
        assert MENDED in written


def test_the_cursor_stays_where_it_was_behind_half_a_pair() -> None:
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


def test_an_error_of_a_kind_without_a_sentence_gets_a_general_one() -> None:
    @dataclasses.dataclass
    class Body:
        size: Annotated[int, Field(multiple_of=8)]

    with pytest.raises(InvalidRequest, match=r"'size' cannot be used: .*multiple of 8.* It is 7"):
        read(Body, {"size": 7})


def deflated(body: bytes, wbits: int) -> bytes:
    packer = zlib.compressobj(wbits=wbits)
    return packer.compress(body) + packer.flush()


def zstd_in_pieces(body: bytes) -> bytes:
    """Return two frames without the size of their content, as streaming clients send them."""
    half = len(body) // 2
    packers = [zstandard.ZstdCompressor().compressobj() for _ in range(2)]
    parts = (body[:half], body[half:])
    return b"".join(
        packer.compress(part) + packer.flush() for packer, part in zip(packers, parts, strict=True)
    )


PACKED: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", gzip.compress),
    "x-gzip": ("x-gzip", gzip.compress),
    "gzip of two members": ("GZIP", lambda b: gzip.compress(b[:5]) + gzip.compress(b[5:])),
    "deflate": ("deflate", zlib.compress),
    "deflate without a header": ("deflate", partial(deflated, wbits=-15)),
    "zstd": ("zstd", zstandard.ZstdCompressor().compress),
    "zstd of the highest level": ("zstd", zstandard.ZstdCompressor(level=22).compress),
    "zstd in pieces": ("zstd", zstd_in_pieces),
    "identity": ("identity", bytes),
}


@pytest.mark.parametrize("way", PACKED)
@pytest.mark.parametrize("path", POSTED)
def test_an_encoded_body_is_read_as_it_is(path: str, way: str) -> None:
    coding, pack = PACKED[way]
    plain = post(path, POSTED[path], chatting("hi") if path in TALK else editing(None))
    headers = {"Content-Encoding": coding}
    data = pack(json.dumps(POSTED[path]).encode())
    packed = posted(path, data, headers, chatting("hi") if path in TALK else editing(None))
    assert packed[0] == plain[0]


@pytest.mark.parametrize("coding", ["br", "rot13", "compress", "gzip, gzip", "zstd, br", "x"])
@pytest.mark.parametrize("path", POSTED)
def test_another_encoding_is_refused_with_those_that_are_read(path: str, coding: str) -> None:
    status, headers, answer = posted(path, b"anything", {"Content-Encoding": coding})
    assert (status, headers["Accept-Encoding"]) == (415, "gzip, deflate, zstd")
    assert repr(coding) in message(answer)
    if not path.startswith("/api/"):
        assert answer["error"]["code"] == "unsupported_encoding"


@pytest.mark.parametrize("coding", ["gzip", "deflate", "zstd"])
@pytest.mark.parametrize("data", [b"", b"no such thing", b"\x78\x9c", b"\x1f\x8b\x08"])
def test_a_body_that_is_not_in_its_encoding_is_refused(coding: str, data: bytes) -> None:
    status, _, answer = posted("/v1/completions", data, {"Content-Encoding": coding})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize("way", PACKED)
def test_an_encoded_body_that_is_cut_off_is_refused(way: str) -> None:
    coding, pack = PACKED[way]
    data = pack(json.dumps({**INFILL, "prompt": "x" * 1_000}).encode())[:-10]
    status, _, answer = posted("/v1/completions", data, {"Content-Encoding": coding})
    assert (status, answer["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize("way", sorted(PACKED.keys() - {"identity"}))
def test_the_decoded_body_is_limited(way: str) -> None:
    coding, pack = PACKED[way]
    settings = Settings(max_body_bytes=100_000, shutdown_s=0.1)
    data = pack(b" " * 6_000_000)
    status, _, answer = posted(
        "/v1/completions", data, {"Content-Encoding": coding}, settings=settings
    )
    assert (status, "100000 bytes" in message(answer)) == (413, True)


def test_a_window_of_zstd_that_would_fill_the_memory_is_refused() -> None:
    options = zstandard.ZstdCompressionParameters.from_level(3, window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=options).compressobj()
    data = packer.compress(b" " * 1_000) + packer.flush()
    status, _, _ = posted("/v1/completions", data, {"Content-Encoding": "zstd"})
    assert status == 400


async def test_others_are_answered_while_a_body_is_decoded() -> None:
    data = zstandard.ZstdCompressor().compress(b" " * 15_000_000)
    async with served(ScriptedPredictor()) as (_, client):
        packed = {"Content-Encoding": "zstd"}
        large = asyncio.create_task(client.post("/v1/completions", data=data, headers=packed))
        turns = 0
        while not large.done():
            async with client.get("/health") as answer:
                turns += answer.status == 200
        assert (large.result().status, turns > 3) == (400, True)
