"""Answers over HTTP, read as clients of other projects read them.

llama.vim takes an answer only if two regular expressions match the raw text, minuet-ai.nvim reads a
stream line by line and drops what it cannot decode, cursortab.nvim decodes into structures with
fields of one type. Their names and patterns are wire facts.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from support.edit_prompts import VIM
from support.editors.neovim import edits
from support.editors.predictor import ScriptedPredictor
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
