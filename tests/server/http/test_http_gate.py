"""Edits over HTTP pass the same gate as in the language server: eagerness, thresholds, reasons."""

from __future__ import annotations

from typing import Any

import pytest
from redraft.lsp.editor_settings import LspSettings
from redraft.model.gate.eagerness import EAGERNESS, Eagerness, threshold
from redraft.model.records import EditRequest, Prediction
from redraft.server.settings import Settings, load_settings
from support.edit_prompts import mercury_applied, mercury_as_cursortab, mercury_body
from support.editors.predictor import ScriptedPredictor, editing, predicted, rewrite_lines
from support.served import events, post, served

EDIT = "/v1/edit/completions"
MERCURY = mercury_body(mercury_as_cursortab([], ["a<|cursor|>", "b"], []))


def unsure(confidence: float = 0.1) -> ScriptedPredictor:
    return editing((1, 1, ["changed"]), confidence=confidence)


def content(body: Any) -> str:
    text: str = body["choices"][0]["message"]["content"]
    return text


def test_an_unsure_edit_is_none_and_says_both_numbers() -> None:
    _, body = post(EDIT, MERCURY, unsure())
    assert content(body) == "None"
    assert body["redraft"] == {
        "reason": "Hidden: 10 % likely to be kept (medium shows from 11 %). "
        "The field 'eagerness' changes the limit.",
        "abstained": "below_threshold",
    }


def test_a_sure_edit_is_given_without_a_reason() -> None:
    _, body = post(EDIT, MERCURY, unsure(0.95))
    assert mercury_applied(content(body)) == "changed\nb"
    assert "redraft" not in body


@pytest.mark.parametrize("eagerness", EAGERNESS)
def test_both_front_ends_have_the_same_thresholds(eagerness: Eagerness) -> None:
    least = threshold(eagerness, "next_edit")
    assert LspSettings(eagerness=eagerness).threshold_in("python", "next_edit") == least
    settings = Settings(eagerness=eagerness, shutdown_s=0.1)
    _, body = post(EDIT, MERCURY, unsure(least + 1e-6), settings)
    assert content(body) != "None"
    if least:
        _, body = post(EDIT, MERCURY, unsure(least - 0.01), settings)
        assert content(body) == "None"


def test_both_front_ends_have_the_same_default() -> None:
    assert Settings().eagerness == LspSettings().eagerness


def test_the_requests_eagerness_precedes_the_servers() -> None:
    low = Settings(eagerness="low", shutdown_s=0.1)
    _, body = post(EDIT, {**MERCURY, "eagerness": "medium"}, unsure(0.2), low)
    assert content(body) != "None"
    _, body = post(EDIT, MERCURY, unsure(0.2), low)
    assert content(body) == "None"


def test_the_environment_sets_the_eagerness() -> None:
    assert load_settings(environment={"REDRAFT_EAGERNESS": "low"}).eagerness == "low"


def test_an_unknown_eagerness_is_refused_with_others() -> None:
    status, body = post(EDIT, {**MERCURY, "eagerness": "greedy"}, unsure())
    assert status == 400
    assert "'low', 'medium', 'high'" in body["error"]["message"]


def two(request: EditRequest) -> Prediction:
    """Two candidates, of which the second is the surer."""
    first = rewrite_lines(request, (1, 1, ["first"]), confidence=0.1)
    second = rewrite_lines(request, (1, 1, ["second"]), confidence=0.97)
    return predicted(*first.candidates, *second.candidates)


def test_only_sure_enough_candidates_are_choices() -> None:
    _, body = post(EDIT, {**MERCURY, "n": 2}, ScriptedPredictor([two]))
    [choice] = body["choices"]
    assert mercury_applied(choice["message"]["content"]) == "second\nb"


def test_a_stream_ends_with_none_and_the_reason() -> None:
    last = events(EDIT, MERCURY, unsure())[-1]
    assert last["choices"][0]["delta"]["content"] == "None"
    assert last["redraft"]["abstained"] == "below_threshold"


def test_infill_is_not_gated() -> None:
    _, body = post("/v1/fim/completions", {"prompt": "x = ", "suffix": "\n"}, ScriptedPredictor())
    assert body["choices"][0]["text"] == "return a + b"


async def test_abstentions_are_counted_by_reason() -> None:
    async with served(unsure()) as (_, client):
        for body in (MERCURY, MERCURY, {**MERCURY, "eagerness": "high"}):
            await (await client.post(EDIT, json=body)).read()
        long_line = mercury_body(mercury_as_cursortab([], ["x" * 5_000 + "<|cursor|>"], []))
        await (await client.post(EDIT, json=long_line)).read()
        lines = (await (await client.get("/metrics")).text()).split("\n")
    assert 'redraft_abstentions_total{reason="below_threshold"} 2.0' in lines
    assert 'redraft_abstentions_total{reason="long_line"} 1.0' in lines
