"""Mercury's decisions, ``POST /v1/decisions``: the probability of each of a few given answers.

Each question is asked in a separate conversation, and each label is scored as the whole answer.
The labels of a *choice* are those of its criteria, those of a *score* the numbers of its levels
from 0, those of a *noul* "yes" and "no". The model's probabilities are scaled to sum to 1.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from typing import Literal

from aiohttp import web
from redraft.model.errors import InvalidAnswer, InvalidRequest, PredictionTimeout
from redraft.model.records import Conversation, EditRequest, Message, Prediction
from redraft.model.validation import Json, Text, dump_json, read, without_surrogates

from ..http.access import ENGINE
from ..http.bodies import read_body
from ..http.responses import json_response
from .chat_completions import chat_model

routes = web.RouteTableDef()

#: Limits of Mercury.
MAX_LABELS = 255
MAX_QUESTIONS = 64
#: Labels of all questions together; the model scores each.
MAX_LABELS_IN_ALL = 2_048
#: Seconds for all questions of a request together.
LIMIT_S = 120.0
YES, NO = "yes", "no"
_SYSTEM = (
    "You judge what you are shown. You are given a text, a question about it and the possible "
    "answers. You reply with exactly one of the possible answers and nothing else."
)


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    """A question of the body."""

    type: Literal["noul", "choice", "score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionsBody:
    """The body of this route."""

    state: object
    questions: dict[str, DecisionQuestion]
    model: Text = ""


@dataclass(frozen=True, slots=True)
class ScoredQuestion:
    """A question with its labels, their meanings, and the request that scores them."""

    kind: str
    labels: tuple[str, ...]
    meanings: tuple[object, ...]
    request: EditRequest


@routes.post("/v1/decisions")
async def decide(http: web.Request) -> web.Response:
    """Answer each question with the probabilities of its labels."""
    name, questions = await read_body(http, read_decisions)
    model = await chat_model(http, name)
    answers: Json = {}
    used = 0
    try:
        async with asyncio.timeout(LIMIT_S):
            for question, asked in questions.items():
                prediction = await http.app[ENGINE].predict(asked.request)
                used += prediction.stats.prompt_tokens
                answers[question] = _answer(asked, prediction)
    except TimeoutError:
        raise PredictionTimeout(
            f"{len(answers)} of {len(questions)} questions were answered within {LIMIT_S:g} s, the "
            "limit of a request. Send fewer questions at once."
        ) from None
    usage = {"input_tokens": used, "output_tokens": len(answers)}
    return json_response({"answers": answers, "model": model, "usage": usage})


def read_decisions(data: Json) -> tuple[str, dict[str, ScoredQuestion]]:
    """Return the model's name and the questions by name.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    body = read(DecisionsBody, data)
    if not body.questions:
        raise InvalidRequest("'questions' is empty. Ask at least one.")
    if len(body.questions) > MAX_QUESTIONS:
        raise InvalidRequest(
            f"'questions' has {len(body.questions)} entries, at most {MAX_QUESTIONS} are answered."
        )
    state = _text(data["state"], "state")
    found = {}
    for name, question in body.questions.items():
        where, asked = f"questions.{name}", read(Text, name, "questions")
        raw = data["questions"][name]
        labels, meanings = _labels(question.type, raw.get("criteria"), f"{where}.criteria")
        told = _text(raw.get("instructions") or "", f"{where}.instructions")
        found[name] = ScoredQuestion(
            question.type, labels, meanings, _request(state, asked, told, labels, meanings)
        )
    count = sum(len(question.labels) for question in found.values())
    if count > MAX_LABELS_IN_ALL:
        raise InvalidRequest(
            f"'questions' have {count} labels in all, at most {MAX_LABELS_IN_ALL} are scored. "
            "Send fewer questions at once."
        )
    return body.model, found


def _labels(kind: str, criteria: object, where: str) -> tuple[tuple[str, ...], tuple[object, ...]]:
    if kind == "noul":
        given = criteria if isinstance(criteria, dict) else {}
        return (YES, NO), (given.get("true"), given.get("false"))
    if kind == "score":
        if not isinstance(criteria, list) or not 2 <= len(criteria) <= MAX_LABELS:
            raise InvalidRequest(f"'{where}' must be an array of 2 to {MAX_LABELS} levels.")
        return tuple(str(level) for level in range(len(criteria))), tuple(criteria)
    if not isinstance(criteria, dict) or not 1 <= len(criteria) <= MAX_LABELS:
        raise InvalidRequest(f"'{where}' must be an object of 1 to {MAX_LABELS} labels.")
    for label in criteria:
        read(Text, label, where)
        if not label.strip():
            raise InvalidRequest(f"'{where}' has an empty label. Name each one.")
    return tuple(criteria), tuple(criteria.values())


def _request(
    state: str, name: str, told: str, labels: tuple[str, ...], meanings: tuple[object, ...]
) -> EditRequest:
    lines = [
        label if meaning is None else f"{label}: {_text(meaning, 'criteria')}"
        for label, meaning in zip(labels, meanings, strict=True)
    ]
    question = f"Question: {name}\n{told}".strip()
    text = without_surrogates(f"{state}\n\n{question}\n\nPossible answers:\n" + "\n".join(lines))
    said = (Message("system", _SYSTEM), Message("user", text))
    conversation = Conversation(said, think=False, labels=tuple(map(without_surrogates, labels)))
    return EditRequest(
        task="chat", path="", text="", cursor=0, max_tokens=64, conversation=conversation
    )


def _text(value: object, where: str) -> str:
    """Return a text unchanged, anything else as JSON. Pictures are refused."""
    if isinstance(value, str):
        return read(Text, value, where)
    text = dump_json(value, where)
    if '"image_url"' in text:
        raise InvalidRequest(f"'{where}' holds a picture; this model reads text alone.")
    return read(Text, text, where)


def _answer(asked: ScoredQuestion, prediction: Prediction) -> Json:
    logs = [candidate.confidence.total for candidate in prediction.candidates]
    if len(logs) != len(asked.labels):
        raise InvalidAnswer(
            f"The model scored {len(logs)} of {len(asked.labels)} labels. Ask again, or choose "
            "another model."
        )
    weights = [math.exp(log - max(logs)) for log in logs]
    shares = [weight / sum(weights) for weight in weights]
    if asked.kind == "noul":
        return {"type": "noul", "noul": shares[0]}
    probabilities = dict(zip(asked.labels, shares, strict=True))
    best = max(asked.labels, key=lambda label: probabilities[label])
    answer: Json = {"probabilities": probabilities, "confidence": probabilities[best]}
    if asked.kind == "choice":
        return {"type": "choice", "choice": best, **answer}
    mean = sum(level * share for level, share in enumerate(shares))
    legend = dict(zip(asked.labels, asked.meanings, strict=True))
    return {"type": "score", "score": mean, "legend": legend, **answer}
