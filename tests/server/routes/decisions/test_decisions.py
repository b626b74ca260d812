"""Decisions over HTTP, in the bodies of TypeSafe, Mercury and OpenAI."""

from __future__ import annotations

import asyncio
import gzip
import json
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
import zstandard
from redraft.model.predict import predict
from redraft.model.prompts.chat_template import ChatTemplate
from redraft.model.records import EditRequest, Prediction, StepCallback
from redraft.server.routes.decisions import decision_routes
from redraft.server.routes.decisions.decision_bodies import read_decisions
from support.editors.predictor import CHATTY, READY, ScriptedPredictor, chatting, predicted, said
from support.models.engines_of import Clock, make_model
from support.models.fake_backend import Script, ids
from support.served import got, post, send

PATHS = ("/v1/systemone", "/v1/decisions")
STATE = {"state": "The tests fail.", "model": "fake-1m"}
QUESTIONS: dict[str, Any] = {
    "good": {"type": "noul", "instructions": "Is this good?"},
    "what": {"type": "choice", "criteria": {"bug": "a fault", "feature": None}},
    "how": {"type": "score", "criteria": ["calm", {"text": "urgent"}]},
}
INPUT = {"input": "The tests fail.", "model": "fake-1m"}
ASKED: list[dict[str, Any]] = [
    {"type": "predicate", "name": "good", "instructions": "Is this good?"},
    {
        "type": "choice",
        "instructions": "What is it?",
        "choices": [{"value": "bug", "description": "a fault"}, {"value": True}],
    },
    {
        "type": "score",
        "name": "how",
        "instructions": [{"type": "input_text", "text": "How urgent?"}],
        "levels": [{"label": "calm"}, {"label": "urgent", "description": "today"}],
    },
]


def weighing(weights: dict[str, float]) -> ScriptedPredictor:
    """Return a model that gives labels these logarithms of probabilities, 0 to others."""

    def answer(request: EditRequest) -> Prediction:
        assert request.conversation is not None
        labels = request.conversation.labels
        return predicted(*(said(label, weights.get(label, 0.0)) for label in labels))

    return ScriptedPredictor([answer], statuses=[CHATTY])


@pytest.mark.parametrize("path", PATHS)
def test_decisions_are_probabilities_of_labels(path: str) -> None:
    status, body = post(path, {**STATE, "questions": QUESTIONS}, chatting("x"))
    assert status == 200
    answers = body["answers"]
    assert answers["good"] == {"type": "noul", "noul": pytest.approx(1 / (1 + 2.718281828))}
    assert answers["what"]["choice"] == "bug"
    assert sum(answers["what"]["probabilities"].values()) == pytest.approx(1)
    assert answers["how"]["score"] == pytest.approx(0.5)
    assert answers["how"]["legend"] == {"0": "calm", "1": {"text": "urgent"}}
    assert body["usage"]["output_tokens"] == 3


def test_openais_body_is_answered_in_its_order() -> None:
    status, body = post("/v1/decisions", {**INPUT, "questions": ASKED}, chatting("x"))
    assert status == 200
    good, what, how = body["answers"]
    assert good["type"] == "predicate" and 0 < good["probability"] < 0.5
    assert (what["name"], what["choice"]) == (None, "bug")
    assert [each["value"] for each in what["probabilities"]] == ["bug", True]
    assert [each["label"] for each in how["probabilities"]] == ["calm", "urgent"]
    assert (how["score"], how["confidence"]) == (pytest.approx(0.5), pytest.approx(0))
    usage = body["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + 3
    details = usage["input_tokens_details"]
    assert sum(details.values()) == usage["input_tokens"]


@pytest.mark.parametrize(
    ("weights", "labels", "confidence"),
    [({}, "abc", 0.0), ({"a": 80.0}, "abc", 1.0), ({}, "a", 1.0), ({"a": 1.0986123}, "ab", 0.5)],
)
def test_confidence_is_what_exceeds_a_guess(
    weights: dict[str, float], labels: str, confidence: float
) -> None:
    question = {"type": "choice", "criteria": dict.fromkeys(labels)}
    _, body = post("/v1/systemone", {**STATE, "questions": {"q": question}}, weighing(weights))
    assert body["answers"]["q"]["confidence"] == pytest.approx(confidence, abs=1e-6)


def test_the_order_of_labels_changes_no_choice() -> None:
    """The model prefers the first label that it is shown."""

    def first(request: EditRequest) -> Prediction:
        assert request.conversation is not None
        shown = request.conversation.messages[-1].content
        labels = request.conversation.labels
        return predicted(*(said(label, -float(shown.index(f"\n{label}"))) for label in labels))

    for labels in ("abc", "cba"):
        predictor = ScriptedPredictor([first], statuses=[CHATTY])
        question = {"type": "choice", "criteria": dict.fromkeys(labels)}
        _, body = post("/v1/systemone", {**STATE, "questions": {"q": question}}, predictor)
        shares = body["answers"]["q"]["probabilities"]
        assert shares["a"] == pytest.approx(shares["c"]) and shares["a"] > shares["b"]


def test_both_bodies_ask_the_model_the_same_way() -> None:
    """Fifty questions, each with an answer that the model knows."""
    theirs, ours, right = {}, [], []
    for n in range(50):
        name, told = f"q{n}", f"What is {n} more than one?"
        labels = [f"{n + add}" for add in (1, 2, 3)]
        right.append(labels[0])
        if n % 2:
            theirs[name] = {
                "type": "choice",
                "instructions": told,
                "criteria": dict.fromkeys(labels),
            }
            choices = [{"value": label} for label in labels]
            ours.append({"type": "choice", "name": name, "instructions": told, "choices": choices})
        else:
            theirs[name] = {"type": "score", "instructions": told, "criteria": labels}
            levels = [{"label": label} for label in labels]
            ours.append({"type": "score", "name": name, "instructions": told, "levels": levels})
    models = [weighing(dict.fromkeys([*right, "0"], 3.0)) for _ in range(2)]
    _, one = post("/v1/systemone", {**STATE, "questions": theirs}, models[0])
    _, other = post("/v1/decisions", {**INPUT, "questions": ours}, models[1])
    assert models[0].requests == models[1].requests and len(models[0].requests) == 75
    for n, answer in enumerate(other["answers"]):
        found = one["answers"][f"q{n}"]
        if n % 2:
            assert answer["choice"] == found["choice"] == right[n]
        assert answer["confidence"] == found["confidence"]
        assert answer.get("score") == found.get("score")
        shares = [each["probability"] for each in answer["probabilities"]]
        assert shares == [*found["probabilities"].values()]


def test_messages_calls_and_json_become_text() -> None:
    turns = [
        {"role": "user", "content": [{"type": "input_text", "text": "Look"}, DATA]},
        {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        {"type": "function_call", "call_id": "1", "name": "read", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "1", "output": "done"},
        {"type": "custom_tool_call", "call_id": "2", "name": "run", "input": "ls"},
        {"type": "custom_tool_call_output", "call_id": "2", "output": [TEXT]},
    ]
    predictor = chatting("x")
    status, _ = post("/v1/decisions", {"input": turns, "questions": ASKED[:1]}, predictor)
    assert status == 200
    conversation = predictor.requests[0].conversation
    assert conversation is not None
    assert conversation.messages[1].content.startswith(
        'user: Look\n{"type": "image_url", "b": null}\nassistant: no\ncall of read: {"a": 1}\n'
        "output: done\ncall of run: ls\noutput: a.py\n\nQuestion: good\nIs this good?\n"
    )


DATA = {"type": "input_json", "data": {"type": "image_url", "b": None}}  # no picture, but data
TEXT = {"type": "input_text", "text": "a.py"}
PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,"}
NOUL = {"type": "noul", "instructions": "x"}


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({**STATE, "questions": {"q": NOUL}, "assets": {"a": {"type": "image"}}}, "assets"),
        ({**STATE, "questions": {"q": {"type": "box"}}}, "questions.q.type"),
        ({"state": [PICTURE], "questions": {"q": NOUL}}, "state"),
        ({"input": [{"role": "user", "content": [PICTURE]}], "questions": ASKED[:1]}, "content[0]"),
        (
            {**INPUT, "questions": [{"type": "predicate", "instructions": [PICTURE]}]},
            "instructions[0]",
        ),
    ],
)
def test_pictures_are_refused_by_name(body: dict[str, Any], field: str) -> None:
    status, answer = post("/v1/decisions", body, chatting("x"))
    assert status == 400
    assert field in answer["error"]["message"] and "picture" in answer["error"]["message"]


def test_a_body_in_parts_is_refused_as_pictures() -> None:
    headers = {"Content-Type": "multipart/form-data; boundary=x"}
    status, _, error = send("/v1/systemone", b"--x--", headers=headers)
    assert status == 400 and "picture" in error["message"]


@pytest.mark.parametrize("coding", ["zstd", "gzip"])
def test_a_compressed_body_is_read(coding: str) -> None:
    body = json.dumps({**STATE, "questions": QUESTIONS}).encode()
    packed = zstandard.compress(body) if coding == "zstd" else gzip.compress(body)
    predictor = chatting("x")
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    status, _, _ = send("/v1/systemone", packed, headers=headers, predictor=predictor)
    assert (status, len(predictor.requests)) == (200, 4)


def test_every_answer_names_its_request() -> None:
    good, bad = {**STATE, "questions": QUESTIONS}, dict[str, Any]()
    answers = [send("/v1/systemone", body, predictor=chatting("x")) for body in (good, good, bad)]
    assert [status for status, _, _ in answers] == [200, 200, 400]
    assert len({headers["x-typesafe-request-id"] for _, headers, _ in answers}) == 3
    _, headers, _ = send("/v1/models", method="GET")
    assert "x-typesafe-request-id" not in headers


def test_the_state_is_read_once() -> None:
    """A further question reads no token of the state again, and takes one pass more than labels."""
    bare = make_model(Script(ids("yes")), context_tokens=512, verifier="ar")
    source = "{% for m in messages %}{{ m.content }}<|endoftext|>{% endfor %}"
    model = replace(bare, template=ChatTemplate(source, bare.tokenizer, datetime.now))
    state = "The tests fail since the last change of the parser. "
    questions = {name: {"type": "noul", "instructions": "Is it urgent?"} for name in "abc"}
    asked = read_decisions({"state": state, "questions": questions})
    found = [predict(model, question.requests[0], Clock()).stats for question in asked.questions]
    head, body = len(model.tokenizer.encode(state)), asked.questions[0].requests[0].conversation
    assert body is not None and state in body.messages[1].content
    assert found[0].computed_tokens > head
    for stats in found[1:]:
        assert stats.reused_tokens > head
        assert stats.computed_tokens < stats.prompt_tokens - head
        assert stats.denoise_steps == 3


def test_models_that_decide_are_listed_for_typesafe() -> None:
    found = got("/v1/models", chatting("x"))["models"]
    assert [each["name"] for each in found] == ["fake-1m", "fake-1m-int8"]
    assert got("/v1/models", ScriptedPredictor(statuses=[READY]))["models"] == []


def test_nine_hundred_questions_are_the_most() -> None:
    many = {str(n): {"type": "noul", "instructions": "x"} for n in range(900)}
    status, body = post("/v1/systemone", {**STATE, "questions": many}, chatting("x"))
    assert (status, len(body["answers"])) == (200, 900)
    many["more"] = {"type": "noul"}
    status, body = post("/v1/systemone", {**STATE, "questions": many}, chatting("x"))
    assert (status, "901 entries" in body["error"]["message"]) == (400, True)


def test_all_questions_of_a_request_have_one_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    predictor = chatting("x")
    first = predictor.predict
    asked: list[EditRequest] = []

    async def predict(request: EditRequest, on_step: StepCallback | None = None) -> Prediction:
        asked.append(request)
        if len(asked) > 1:
            await asyncio.Event().wait()
        return await first(request, on_step)

    monkeypatch.setattr(predictor, "predict", predict)
    monkeypatch.setattr(decision_routes, "LIMIT_S", 0.05)
    questions = {name: {"type": "noul"} for name in ("one", "two", "three")}
    status, body = post("/v1/decisions", {**STATE, "questions": questions}, predictor)
    assert (status, body["error"]["code"]) == (504, "prediction_timeout")
    assert "1 of 3 questions" in body["error"]["message"]
