"""OpenAI's text completions: ``POST /v1/completions``.

Prompts are recognised by their markers, infills and rewritten regions alike. A prompt made for an
unknown kind of model gets an empty text. A stream sends the finished text line by line: clients
that read streams (cursortab.nvim) take each piece for one line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Annotated

from aiohttp import web
from pydantic import AfterValidator, BeforeValidator
from redraft.model.prompts.excerpt import Excerpt
from redraft.model.prompts.fim import Middle
from redraft.model.prompts.registry import Unknown, recognise
from redraft.model.prompts.zeta import ZETA1_END, ZETA1_START
from redraft.model.records import CanvasState, Prediction
from redraft.model.validation import Flag, Json, Text, brief, json_type, objection

from .base import AnswerHead, CompletionBody, after_gap, read_completion, usage, why
from .respond import Dialect, HttpQuestion, Reply, respond

routes = web.RouteTableDef()


@routes.post("/v1/completions")
async def complete(http: web.Request) -> web.StreamResponse:
    """Fill a gap or rewrite a region."""

    def prompt_of(body: TextBody) -> Middle | Excerpt | Unknown:
        if body.suffix is None:
            return recognise(body.prompt)
        return Middle(body.prompt, after_gap(body.suffix))  # no markers in it

    head, body, question = await read_completion(http, TextBody, prompt_of)
    return await respond(http, question, OpenAIText(head, body, question), body.stream)


def _one(prompt: object) -> object:
    if not isinstance(prompt, list) or (len(prompt) == 1 and isinstance(prompt[0], str)):
        return prompt[0] if isinstance(prompt, list) else prompt
    kind = json_type(prompt[0]) if prompt else "nothing"
    raise objection(
        f"is an array of {len(prompt)} (first: {kind}). Send one string: token arrays and several "
        "prompts are not available."
    )


def _no_echo(echo: bool) -> bool:
    if echo:
        raise objection("is not available. Leave it out.")
    return echo


def _no_logprobs(logprobs: object) -> object:
    if logprobs is not False:  # 0 asks for some as well
        raise objection(
            f"is {brief(logprobs)}, but probabilities of single tokens are not available. "
            "Leave it out."
        )
    return logprobs


@dataclass(frozen=True, slots=True, kw_only=True)
class TextBody(CompletionBody):
    """The body of this route."""

    prompt: Annotated[Text, BeforeValidator(_one)]
    suffix: Text | None = None
    echo: Annotated[Flag, AfterValidator(_no_echo)] = False
    logprobs: Annotated[object, AfterValidator(_no_logprobs)] = False


class OpenAIText(Dialect):
    """OpenAI's text completions."""

    def __init__(self, head: AnswerHead, body: TextBody, question: HttpQuestion) -> None:
        self.answer_id = head.id
        self._head = head
        self._body = body
        self._question = question

    def whole(self, answers: list[Reply], prediction: Prediction | None) -> Json:
        """Return as many choices as were asked for."""
        choices = [_choice(index, one.text, one.finish) for index, one in self._repeated(answers)]
        return {**self._head.body(choices), "usage": usage(prediction), **why(answers[0])}

    def state(self, state: CanvasState) -> Json | None:
        """Return the whole text so far, if the client asked to see it."""
        if not self._body.diffusing or (text := self._question.preview(state)) is None:
            return None
        return self._chunk([_choice(0, text, None)])

    def last(self, answers: list[Reply], prediction: Prediction | None) -> Iterator[Json | str]:
        """Yield the text line by line."""
        for index, one in self._repeated(answers):
            lines = [one.text] if self._body.diffusing else _lines(one.text, self._body.stop)
            for line in lines[:-1]:
                yield self._chunk([_choice(index, line, None)])
            yield {**self._chunk([_choice(index, lines[-1], one.finish)]), **why(one)}
        if self._body.stream_options.include_usage:
            yield self._chunk([], usage(prediction))
        yield "[DONE]"

    def _repeated(self, answers: list[Reply]) -> Iterator[tuple[int, Reply]]:
        """Yield ``n`` choices, with repetitions if there are fewer.

        Clients rely on the number, and other servers repeat themselves at temperature 0 as well.
        """
        return enumerate(islice(cycle(answers), self._body.n))

    def _chunk(self, choices: list[Json], used: Json | None = None) -> Json:
        return self._head.chunk(choices, "text_completion", self._body.stream_options, used)


def _choice(index: int, text: str, finish: str | None) -> Json:
    return {"index": index, "text": text, "logprobs": None, "finish_reason": finish}


def _lines(text: str, stop: Sequence[str]) -> list[str]:
    """Return the text up to the first stop string, as lines.

    A client that stops at the end marker of a zeta 1 region shows all lines before it, so the start
    marker is left out.
    """
    ends = [at for word in stop if (at := text.find(word)) >= 0]
    text = text[: min(ends, default=len(text))]
    if any(ZETA1_END in word for word in stop):
        text = text.removeprefix(f"{ZETA1_START}\n")
    return text.splitlines(keepends=True) or [""]
