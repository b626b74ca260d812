"""Mercury's next edits as a stream, each denoise step of the whole answer, several choices."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

from fakes_edit import EditPredictor, mercury_as_cursortab, mercury_body, post
from fakes_http import served
from redraft.model.records import CanvasState, EditRequest

PATH = "/v1/edit/completions"


class Denoising(EditPredictor):
    """Shows each state of an answer in the model's own format."""

    def _steps(self, on_step: Any) -> None:
        for step, pieces in enumerate(
            [(None, None, None), ("2-2\n", None, None), ("2-2\n", "B", None)], 1
        ):
            if on_step is not None:
                on_step(CanvasState(step, pieces))


def stream(content: str, predictor: EditPredictor, **fields: Any) -> list[Any]:
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
    [chunk] = stream(content, EditPredictor(edit=(2, 2, ["B"])))
    assert chunk["object"] == "chat.completion.chunk"
    assert chunk["choices"][0]["delta"]["content"] == "```\na\nB\n```"
    assert chunk["choices"][0]["finish_reason"] == "stop"
    assert chunk["usage"]["total_tokens"] == 45


def test_diffusing_streams_the_whole_region_in_each_state() -> None:
    content = mercury_as_cursortab([], ["a", "b<|cursor|>", "c"], [])
    chunks = stream(content, Denoising(edit=(2, 2, ["B2"])), diffusing=True)
    texts = [chunk["choices"][0]["delta"]["content"] for chunk in chunks]
    assert texts == [
        "```\na\n░░\nc\n```",
        "```\na\nB░\nc\n```",
        "```\na\nB2\nc\n```",
    ]
    assert [chunk["choices"][0]["finish_reason"] for chunk in chunks] == [None, None, "stop"]


def test_a_prompt_that_cannot_be_read_can_be_streamed() -> None:
    content = mercury_as_cursortab([], ["a<|cursor|>", "<|code_to_edit|>"], [])
    [chunk] = stream(content, EditPredictor())
    assert chunk["choices"][0]["message"]["content"] == "None"


def test_several_candidates_are_several_choices() -> None:
    class Two(EditPredictor):
        def _prediction(self, request: EditRequest) -> Any:
            self.edit = (1, 1, ["A"])
            one = super()._prediction(request)
            self.edit = (2, 2, ["B"])
            other = super()._prediction(request)
            return replace(one, candidates=one.candidates + other.candidates)

    content = mercury_as_cursortab([], ["a<|cursor|>", "b"], [])
    _, body = post(PATH, mercury_body(content, n=2), Two())
    texts = [choice["message"]["content"] for choice in body["choices"]]
    assert texts == ["```\nA\nb\n```", "```\na\nB\n```"]
