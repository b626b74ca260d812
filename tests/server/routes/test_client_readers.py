"""Answers over HTTP, read as clients of other projects read them.

llama.vim takes an answer only if two regular expressions match the raw text, minuet-ai.nvim reads a
stream line by line and drops what it cannot decode, cursortab.nvim decodes into structures with
fields of one type. Their names and patterns are wire facts, and so are the bodies, which the
clients' own code sent (Kilo Code's are written from its source).
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.edit_prompts import VIM
from support.editors.neovim import edits
from support.editors.predictor import ScriptedPredictor, chatting
from support.served import served

PROMPT = {"model": "fake-1m", "prompt": "def add(a, b):\n    ", "suffix": "\n", "max_tokens": 64}


async def raw(route: str, body: dict[str, Any], model: ScriptedPredictor | None = None) -> str:
    """Return the answer's text as it comes over the wire."""
    async with (
        served(model or ScriptedPredictor()) as (_, client),
        client.post(route, json=body) as response,
    ):
        assert response.status == 200, await response.text()
        return await response.text()


def read_by_cursortab(text: str, stops: list[str]) -> list[str]:
    """Read as ``processLineStream`` of its client.

    A stop ends the text before it in the same chunk as one line, whatever it holds.
    """
    lines, line = [], ""
    for event in text.split("\n"):
        if not event.startswith("data: ") or event == "data: [DONE]":
            continue
        piece = json.loads(event.removeprefix("data: "))["choices"][0]["text"]
        for stop in stops:
            if stop in piece:
                return [*lines, line + piece.partition(stop)[0]]
        *ended, line = (line + piece).split("\n")
        lines += ended
    return [*lines, line] if line else lines


def read_stream(text: str, *places: str) -> str:
    """Join what chunks hold at the first of ``places``, such as "delta.content", that they have."""
    found = []
    for event in text.split("\n\n"):
        said = event.removeprefix("data: ")
        for place in places if said and said != "[DONE]" else ():
            value: Any = next(iter(json.loads(said)["choices"]), {})
            for name in place.split("."):
                value = value.get(name, {})
            if value:
                found.append(value)
                break
    return "".join(found)


def taken_by_llama_vim(text: str) -> bool:
    """Match as its ``s:fim_on_response`` does before it decodes.

    The second pattern allows no blank behind the colon.
    """
    return re.search(r"^\s*\{", text) is not None and re.search(r'"content"\s*:"', text) is not None


def read_by_minuet(text: str) -> str:
    """``stream_decode`` of its utils and ``get_text_fn`` of its ``openai_fim_compatible``."""
    found = []
    for line in text.split("\n"):
        try:
            said = json.loads(re.sub("^data:", "", line))
            found.append(said["choices"][0]["text"])
        except (ValueError, LookupError, TypeError):
            continue
    return "".join(found)


@pytest.mark.parametrize("fields", [True, False], ids=["its fields", "all fields"])
async def test_llama_vim_takes_the_answer(fields: bool) -> None:
    body = dict(VIM)
    if not fields:
        del body["response_fields"]
    text = await raw("/infill", body)
    assert taken_by_llama_vim(text), text
    assert json.loads(text)["content"] == "return a + b"


@pytest.mark.parametrize("route", ["/v1/completions", "/v1/fim/completions"])
async def test_minuet_reads_the_stream(route: str) -> None:
    text = await raw(route, PROMPT | {"stream": True})
    assert read_by_minuet(text) == "return a + b"


@pytest.mark.parametrize("route", ["/v1/completions", "/v1/fim/completions"])
async def test_cursortab_decodes_the_answer(route: str) -> None:
    """Into strings and whole numbers: another type is an error of its decoder."""
    said = json.loads(await raw(route, PROMPT))
    assert isinstance(said["id"], str) and isinstance(said["model"], str)
    assert [type(said["usage"][name]) for name in ("prompt_tokens", "completion_tokens")] == [
        int, int,
    ]  # fmt: skip
    (choice,) = said["choices"]
    assert choice["text"] == "return a + b"
    assert isinstance(choice["finish_reason"], str) and isinstance(choice["index"], int)


@pytest.mark.parametrize(
    ("prompt", "stops"),
    [
        (
            "<[fim-suffix]>\n<[fim-prefix]><filename>a.py\n<<<<<<< CURRENT\n"
            "def f(a, b<|user_cursor|>):\n    pass\n\n\ng(a)\n=======\n<[fim-middle]>",
            [">>>>>>> UPDATED\n", ">>>>>>> UPDATED"],
        ),
        (
            "### User Excerpt:\n\n```a.py\n<|start_of_file|>\n<|editable_region_start|>\n"
            "def f(a, b<|user_cursor_is_here|>):\n    pass\n\n\ng(a)\n<|editable_region_end|>\n```"
            "\n\n### Response:\n",
            ["\n<|editable_region_end|>"],
        ),
    ],
    ids=["zeta-2", "zeta"],
)
async def test_cursortab_reads_a_region_line_by_line(prompt: str, stops: list[str]) -> None:
    body = {"model": "", "prompt": prompt, "stream": True, "stop": stops, "max_tokens": 64}
    text = await raw("/v1/completions", body, ScriptedPredictor([edits(("g(a)", "g(a, b)"))]))
    assert read_by_cursortab(text, stops) == ["def f(a, b):", "    pass", "", "", "g(a, b)"]


#: Of Continue's provider ``openai``, for a model called ``qwen2.5-coder``.
CONTINUE: dict[str, Any] = {
    "model": "qwen2.5-coder",
    "max_tokens": 4096,
    "temperature": 0.01,
    "stream": True,
    "stop": [
        *("<|endoftext|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|fim_pad|>"),
        *("<|repo_name|>", "<|file_sep|>", "<|im_start|>", "<|im_end|>"),
        *("/src/", "#- coding: utf-8", "```"),
    ],
    "prompt": "<|repo_name|>shop\n<|file_sep|>b.py\ndef sub(a, b):\n    return a - b\n"
    "<|file_sep|>a.py\n<|fim_prefix|>def add(a, b):\n    <|fim_suffix|>\n<|fim_middle|>",
}


async def test_continue_reads_the_stream() -> None:
    model = ScriptedPredictor()
    text = await raw("/v1/completions", CONTINUE, model)
    assert read_stream(text, "text") == "return a + b"
    [request] = model.requests
    assert request.text == "def add(a, b):\n    \n"
    assert (request.path, [each.path for each in request.related]) == ("a.py", ["b.py"])


#: Of Kilo Code 5; the other two of a provider proposed for version 7.
KILO = PROMPT | {"model": "codestral-latest", "max_tokens": 256, "temperature": 0.2, "stream": True}


@pytest.mark.parametrize(
    ("route", "places"),
    [
        ("/v1/fim/completions", ["delta.content"]),
        ("/v1/fim/completions", ["text", "delta.content"]),
        ("/v1/completions", ["text", "delta.content"]),
    ],
)
async def test_kilo_code_reads_the_stream(route: str, places: list[str]) -> None:
    assert read_stream(await raw(route, KILO), *places) == "return a + b"


#: Of llama.vscode, while a file is idle and at the cursor.
VSCODE_IDLE: dict[str, Any] = {
    "id_slot": 0,
    "input_prefix": "",
    "input_suffix": "",
    "input_extra": [{"text": "def sub(a, b):\n    return a - b", "time": 1, "filename": "b.py"}],
    "prompt": "",
    "n_predict": 0,
    "samplers": [],
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 1,
}
VSCODE = VSCODE_IDLE | {
    "input_prefix": "def add(a, b):\n",
    "input_suffix": "\n",
    "n_predict": 128,
    "n_cmpl": 3,  # it takes one answer for a list of one
    "top_k": 40,
    "top_p": 0.99,
    "stream": False,
    "samplers": ["top_k", "top_p", "infill"],
    "n_indent": 4,
    "t_max_predict_ms": 1000,
}


@pytest.mark.parametrize(("body", "content"), [(VSCODE_IDLE, ""), (VSCODE, "return a + b")])
async def test_llama_vscode_reads_the_answer(body: dict[str, Any], content: str) -> None:
    assert json.loads(await raw("/infill", body))["content"] == content


@pytest.mark.parametrize(
    "fields",
    [
        {"stream_options": {"include_usage": True}},
        {
            "stream_options": {"include_usage": True},
            "temperature": 0.75,
            "max_completion_tokens": 16384,
        },
        {"max_tokens": 4096},
    ],
    ids=["CodeCompanion", "Avante", "Continue"],
)
async def test_chat_clients_read_the_stream(fields: dict[str, Any]) -> None:
    """They take the end from the finish reason, or from the last event."""
    said = [{"role": "system", "content": "You help."}, {"role": "user", "content": "Hello."}]
    body = {"model": "redraft", "messages": said, "stream": True} | fields
    text = await raw("/v1/chat/completions", body, chatting("Hello to you."))
    assert read_stream(text, "delta.content") == "Hello to you."
    assert read_stream(text, "finish_reason") == "stop"
    assert text.endswith("data: [DONE]\n\n")
