"""Decisions: the probability of each of a few given answers to a question about a text.

``POST /v1/systemone`` of TypeSafe, and ``POST /v1/decisions`` of Mercury and OpenAI. Each label is
scored as the whole answer, and the model's probabilities are scaled to sum to 1.
"""

from __future__ import annotations

import asyncio
import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from aiohttp import web
from redraft.model.errors import InvalidAnswer, InvalidRequest, PredictionTimeout
from redraft.model.records import Prediction
from redraft.model.validation import Json

from ...http.access import ENGINE
from ...http.bodies import read_body
from ...http.responses import json_response
from ..chat_completions import chat_model
from .decision_bodies import NO_PICTURES, AskedQuestion, read_decisions

routes = web.RouteTableDef()

PATHS = ("/v1/systemone", "/v1/decisions")
#: Seconds for all questions of a request together.
LIMIT_S = 120.0


@dataclass(frozen=True, slots=True)
class Scored:
    """A question and the probabilities of its labels, which sum to 1."""

    question: AskedQuestion
    shares: tuple[float, ...]

    @property
    def best(self) -> int:
        """Return the index of the likeliest label."""
        return self.shares.index(max(self.shares))

    @property
    def confidence(self) -> float:
        """Return 0 where all labels are as likely, 1 where one is certain."""
        count = len(self.shares)
        return 1.0 if count == 1 else (max(self.shares) - 1 / count) / (1 - 1 / count)

    @property
    def level(self) -> float:
        """Return the mean of the levels of a score."""
        return sum(level * share for level, share in enumerate(self.shares))


async def decide(http: web.Request) -> web.Response:
    """Answer each question with the probabilities of its labels."""
    if http.content_type.startswith("multipart/"):
        raise InvalidRequest(f"The body has parts, as one with pictures; {NO_PICTURES}")
    asked = await read_body(http, read_decisions)
    model = await chat_model(http, asked.model)
    scored: list[Scored] = []
    predictions: list[Prediction] = []
    try:
        async with asyncio.timeout(LIMIT_S):
            for question in asked.questions:
                made = [await http.app[ENGINE].predict(each) for each in question.requests]
                predictions += made
                scored.append(Scored(question, _shares(question, made)))
    except TimeoutError:
        raise PredictionTimeout(
            f"{len(scored)} of {len(asked.questions)} questions were answered within {LIMIT_S:g} "
            "s, the limit of a request. Send fewer questions at once."
        ) from None
    write = _openai_answers if asked.is_openai else _typesafe_answers
    return json_response({"model": model, **write(scored, predictions)})


for _path in PATHS:
    routes.post(_path)(decide)


async def name_request(http: web.Request, response: web.StreamResponse) -> None:
    """Add the header in which TypeSafe's clients look for the name of a request."""
    if http.path in PATHS:
        response.headers["x-typesafe-request-id"] = uuid.uuid4().hex


def _shares(question: AskedQuestion, predictions: Sequence[Prediction]) -> tuple[float, ...]:
    """Return the mean probability of each label over the predictions."""
    found = []
    for prediction in predictions:
        logs = [candidate.confidence.total for candidate in prediction.candidates]
        if len(logs) != len(question.labels):
            raise InvalidAnswer(
                f"The model scored {len(logs)} of {len(question.labels)} labels. Ask again, or "
                "choose another model."
            )
        weights = [math.exp(log - max(logs)) for log in logs]
        found.append([weight / sum(weights) for weight in weights])
    return tuple(sum(each) / len(found) for each in zip(*found, strict=True))


# --- the two forms of an answer -------------------------------------------------------------------


def _typesafe_answers(scored: Sequence[Scored], predictions: Sequence[Prediction]) -> Json:
    answers = {one.question.name: _typesafe_answer(one) for one in scored}
    used = sum(prediction.stats.prompt_tokens for prediction in predictions)
    return {"answers": answers, "usage": {"input_tokens": used, "output_tokens": len(scored)}}


def _typesafe_answer(scored: Scored) -> Json:
    question, kind = scored.question, scored.question.kind
    if kind == "noul":
        return {"type": kind, "noul": scored.shares[0]}
    found: Json = {
        "type": kind,
        "confidence": scored.confidence,
        "probabilities": dict(zip(question.labels, scored.shares, strict=True)),
    }
    if kind == "choice":
        return found | {"choice": question.labels[scored.best]}
    legend = dict(zip(question.labels, question.meanings, strict=True))
    return found | {"score": scored.level, "legend": legend}


def _openai_answers(scored: Sequence[Scored], predictions: Sequence[Prediction]) -> Json:
    stats = [prediction.stats for prediction in predictions]
    used, cached = sum(s.prompt_tokens for s in stats), sum(s.reused_tokens for s in stats)
    return {
        "answers": [_openai_answer(one) for one in scored],
        "usage": {
            "input_tokens": used,
            "input_tokens_details": {"cached_tokens": cached, "cache_write_tokens": used - cached},
            "output_tokens": len(scored),
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used + len(scored),
        },
    }


def _openai_answer(scored: Scored) -> Json:
    question, kind = scored.question, scored.question.kind
    if kind == "noul":
        return {"type": "predicate", "name": question.name, "probability": scored.shares[0]}
    head: Json = {"type": kind, "name": question.name, "confidence": scored.confidence}
    if kind == "choice":
        shares = [
            {"value": value, "probability": share}
            for value, share in zip(question.values, scored.shares, strict=True)
        ]
        return head | {"choice": question.values[scored.best], "probabilities": shares}
    levels = [
        {"value": level, "label": label, "probability": share}
        for level, (label, share) in enumerate(zip(question.values, scored.shares, strict=True))
    ]
    return head | {"score": scored.level, "probabilities": levels}
