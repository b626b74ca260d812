"""``POST /v1/decisions``, as Mercury has it: how likely each of a few given answers is.

Each question is asked in a conversation of its own, and each label is priced as the whole answer.
Of a *choice* these are the labels of its criteria, of a *score* the numbers of its levels from 0
on, of a *noul* "yes" and "no". The probabilities are the model's, made to sum to 1.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Literal

from aiohttp import web
from redraft.model.errors import InvalidRequest
from redraft.model.records import Conversation, EditRequest, Message, Prediction
from redraft.model.validation import Json, Text, read

from ..http.bodies import SERVICE, json_response, read_body
from .chat import check_chats
from .completion import loaded

routes = web.RouteTableDef()

#: As Mercury has it.
MAX_LABELS = 255
MAX_QUESTIONS = 64
YES, NO = "yes", "no"
_SYSTEM = (
    "You judge what you are shown. You are given a text, a question about it and the possible "
    "answers. You reply with exactly one of the possible answers and nothing else."
)


@dataclass(frozen=True, slots=True)
class DecisionQuestion:
    type: Literal["noul", "choice", "score"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Body:
    state: object
    questions: dict[str, DecisionQuestion]
    model: Text = ""


@dataclass(frozen=True, slots=True)
class PricedQuestion:
    """One question, as labels to be priced and what each of them means."""

    kind: str
    labels: tuple[str, ...]
    meanings: tuple[object, ...]
    request: EditRequest


@routes.post("/v1/decisions")
async def decide(http: web.Request) -> web.Response:
    service = http.app[SERVICE]
    model, questions = await read_body(http, read_decisions)
    status = await service.status()
    check_chats(model, status)
    answers: Json = {}
    used = 0
    for name, asked in questions.items():
        prediction = await service.predict(asked.request)
        used += prediction.stats.prompt_tokens
        answers[name] = _answer(asked, prediction)
    usage = {"input_tokens": used, "output_tokens": len(answers)}
    return json_response(
        {"answers": answers, "model": status.chat_model or loaded(status), "usage": usage}
    )


def read_decisions(data: Json) -> tuple[str, dict[str, PricedQuestion]]:
    """The model's name, and each question.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    body = read(Body, data)
    if not body.questions:
        raise InvalidRequest("'questions' is empty. Ask at least one.")
    if len(body.questions) > MAX_QUESTIONS:
        raise InvalidRequest(
            f"'questions' has {len(body.questions)} entries, at most {MAX_QUESTIONS} are answered."
        )
    state = _text(data["state"], "state")
    found = {}
    for name, question in body.questions.items():
        where = f"questions.{name}"
        raw = data["questions"][name]
        labels, meanings = _labels(question.type, raw.get("criteria"), f"{where}.criteria")
        told = _text(raw.get("instructions") or "", f"{where}.instructions")
        found[name] = PricedQuestion(
            question.type, labels, meanings, _request(state, name, told, labels, meanings)
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
    text = f"{state}\n\n{question}\n\nPossible answers:\n" + "\n".join(lines)
    said = (Message("system", _SYSTEM), Message("user", text))
    conversation = Conversation(said, think=False, labels=labels)
    return EditRequest(
        task="chat", path="", text="", cursor=0, max_tokens=64, conversation=conversation
    )


def _text(value: object, where: str) -> str:
    """A text as it is, anything else as JSON; no pictures."""
    if isinstance(value, str):
        return read(Text, value, where)
    text = json.dumps(value, ensure_ascii=False)
    if '"image_url"' in text:
        raise InvalidRequest(f"'{where}' holds a picture; this model reads text alone.")
    return read(Text, text, where)


def _answer(asked: PricedQuestion, prediction: Prediction) -> Json:
    logs = [candidate.confidence.total for candidate in prediction.candidates]
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
