"""Outcomes of answers, as clients report them."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from redraft.server.routes.feedback import Ledger
from support.edit_prompts import mercury_as_cursortab, mercury_body
from support.editors.predictor import ScriptedPredictor
from support.served import post, served

EDIT = ("/v1/edit/completions", mercury_body(mercury_as_cursortab([], ["a<|cursor|>"], [])))
INFILL = ("/v1/fim/completions", {"prompt": "a", "suffix": "b"})
OPENAI = ("/v1/completions", {"prompt": "a", "suffix": "b"})


def report(answer_id: Any, action: Any = "accept", **fields: Any) -> dict[str, Any]:
    return {
        "request_id": answer_id,
        "provider_name": "cursortab-nvim",
        "user_action": action,
        "provider_version": "1.2.3",
        **fields,
    }


def session(*reports: tuple[int, Any], asked: tuple[str, Any] = EDIT) -> tuple[list[int], str]:
    """Two answers, then reports of (which answer, action); statuses and the metrics at the end."""

    async def run() -> tuple[list[int], str]:
        async with served(ScriptedPredictor()) as (_, client):
            ids = []
            for _ in range(2):
                async with client.post(asked[0], json=asked[1]) as answer:
                    ids.append((await answer.json())["id"])
            found = []
            for which, action in reports:
                async with client.post("/feedback", json=report(ids[which], action)) as answer:
                    await answer.read()
                    found.append(answer.status)
            async with client.get("/metrics") as answer:
                return found, await answer.text()

    return asyncio.run(run())


@pytest.mark.parametrize("asked", [EDIT, INFILL, OPENAI])
def test_outcomes_of_every_wire_are_counted(asked: tuple[str, Any]) -> None:
    statuses, metrics = session((0, "accept"), (1, "reject"), asked=asked)
    assert statuses == [200, 200]
    assert 'redraft_outcomes_total{outcome="accepted"} 1.0' in metrics
    assert 'redraft_outcomes_total{outcome="rejected"} 1.0' in metrics


@pytest.mark.parametrize(("second", "outcome"), [("ignore", "ignored"), ("accept", "accepted")])
def test_a_second_report_is_counted_where_it_differs(second: str, outcome: str) -> None:
    statuses, metrics = session((0, "ignore"), (0, second))
    assert statuses == [200, 200]
    assert f'redraft_outcomes_total{{outcome="{outcome}"}} 1.0' in metrics


async def test_a_streamed_answer_can_be_reported() -> None:
    async with served(ScriptedPredictor()) as (_, client):
        body = {"prompt": "a", "suffix": "b", "stream": True}
        async with client.post("/v1/completions", json=body) as answer:
            text = await answer.text()
        answer_id = text.partition('"id":"')[2].partition('"')[0]
        async with client.post("/feedback", json=report(answer_id)) as answer:
            assert answer.status == 200


def test_an_unknown_id_is_answered_with_the_ids() -> None:
    status, body = post("/feedback", report("cmpl-nowhere"))
    assert status == 404
    assert body["error"]["code"] == "unknown_request_id"
    assert "cmpl-nowhere" in body["error"]["message"]
    assert "'id' of an answer" in body["error"]["message"]


def test_the_oldest_answers_are_forgotten() -> None:
    ledger = Ledger(CollectorRegistry(), memory=2)
    for answer_id in ("a", "b", "c"):
        ledger.add(answer_id)
    ledger.report("b", "accepted")
    assert ledger.outcome("b") == "accepted"
    assert ledger.outcome("c") is None
    with pytest.raises(KeyError):
        ledger.report("a", "accepted")
