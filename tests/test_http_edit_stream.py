"""Mercury's next edits as a stream, each denoise step of the whole answer, several choices."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from redraft.model.records import EditRequest, Prediction
from support.edit_prompts import mercury_as_cursortab, mercury_body
from support.predictor import ScriptedPredictor, editing, rewrite_lines
from support.served import post, served

PATH = "/v1/edit/completions"


def stream(content: str, predictor: ScriptedPredictor, **fields: Any) -> list[Any]:
    async def run() -> str:
        body = mercury_body(content, **fields) | {"stream": True}
        async with served(predictor) as (_, client), client.post(PATH, json=body) as answer:
            assert answer.status == 200
            assert answer.content_type == "text/event-stream"
            return await answer.text()

    *events, done, end = asyncio.run(run()).split("\n\n")
    assert (done, end) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


def test_a_stream_carries_the_answer_in_one_piece() -> None:
    content = mercury_as_cursortab([], ["a", "b<|cursor|>"], [])
    [chunk] = stream(content, editing((2, 2, ["B"])))
    assert chunk["object"] == "chat.completion.chunk"
    assert chunk["choices"][0]["delta"]["content"] == "```\na\nB\n```"
    assert chunk["choices"][0]["finish_reason"] == "stop"
    assert chunk["usage"]["total_tokens"] == 45


def test_diffusing_streams_the_whole_region_in_each_state() -> None:
    content = mercury_as_cursortab([], ["a", "b<|cursor|>", "c"], [])
    predictor = editing((2, 2, ["B2"]))
    #: In the model's own format.
    predictor.states = [(None, None, None), ("2-2\n", None, None), ("2-2\n", "B", None)]
    chunks = stream(content, predictor, diffusing=True)
    texts = [chunk["choices"][0]["delta"]["content"] for chunk in chunks]
    assert texts == [
        "```\na\n░░\nc\n```",
        "```\na\nB░\nc\n```",
        "```\na\nB2\nc\n```",
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]


def test_a_prompt_that_cannot_be_read_can_be_streamed() -> None:
    content = mercury_as_cursortab([], ["a<|cursor|>", "<|code_to_edit|>"], [])
    [chunk] = stream(content, ScriptedPredictor())
    assert chunk["choices"][0]["message"]["content"] == "None"


def test_several_candidates_are_several_choices() -> None:
    def two(request: EditRequest) -> Prediction:
        return rewrite_lines(request, (1, 1, ["A"]), (2, 2, ["B"]))

    content = mercury_as_cursortab([], ["a<|cursor|>", "b"], [])
    _, body = post(PATH, mercury_body(content, n=2), ScriptedPredictor([two]))
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert texts == ["```\nA\nb\n```", "```\na\nB\n```"]
