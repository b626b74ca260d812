"""Identical questions that are asked at once: one computation, an answer for each."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from redraft.model.errors import EngineGone
from redraft.model.records import EditRequest, Prediction
from redraft.server.http.limits import Limits
from redraft.server.http.prometheus import Metrics
from redraft.server.settings import Settings
from support.editors.predictor import WRITTEN, Answer, ScriptedPredictor
from support.served import eventually, served

BODY = {"prompt": "a", "suffix": "\n"}
REQUEST = EditRequest(task="infill", path="a.py", text="ab", cursor=1)


class Gated(ScriptedPredictor):
    """Answers once ``gate`` is set."""

    def __init__(self, answer: Answer = WRITTEN) -> None:
        async def behind_the_gate(request: EditRequest) -> Answer:
            await self.gate.wait()
            return answer

        super().__init__([behind_the_gate])
        self.gate = asyncio.Event()


def service(predictor: ScriptedPredictor) -> Limits:
    return Limits(predictor, Settings(), Metrics())


async def asked(one: Limits, *requests: EditRequest) -> list[asyncio.Task[Prediction]]:
    tasks = [asyncio.create_task(one.predict(request)) for request in requests]
    await asyncio.sleep(0)  # each joins
    await asyncio.sleep(0)
    return tasks


@asynccontextmanager
async def sent(
    client: aiohttp.ClientSession, body: dict[str, Any], times: int
) -> AsyncIterator[list[asyncio.Task[dict[str, Any]]]]:
    async def send() -> dict[str, Any]:
        async with client.post("/v1/completions", json=body) as answer:
            found: dict[str, Any] = await answer.json()
            return found

    yield [asyncio.create_task(send()) for _ in range(times)]


async def test_three_of_the_same_over_http_are_computed_once() -> None:
    predictor = Gated()
    async with served(predictor) as (_, client), sent(client, BODY, 3) as answers:

        async def shown() -> str:
            async with client.get("/metrics") as answer:
                return await answer.text()

        async with asyncio.timeout(20):
            while "redraft_predictions_shared_total 2.0" not in await shown():
                await asyncio.sleep(0.01)
        predictor.gate.set()
        found, metrics = await asyncio.gather(*answers), await shown()
    assert [answer["choices"][0]["text"] for answer in found] == ["return a + b"] * 3
    assert len({answer["id"] for answer in found}) == 3
    assert len(predictor.requests) == 1
    assert 'redraft_predictions_total{answer="candidates",task="infill"} 1.0' in metrics


@pytest.mark.parametrize(
    ("both", "other", "computed"),
    [
        ({}, {}, 1),
        ({"temperature": 0.5, "seed": 3}, {}, 1),
        ({"temperature": 0.5}, {}, 2),
        ({}, {"seed": 1}, 2),
        ({}, {"max_tokens": 5}, 2),
        ({}, {"language": "python"}, 2),
        ({}, {"stop": ("x",)}, 2),
    ],
)
async def test_only_equal_predictions_are_shared(
    both: dict[str, Any], other: dict[str, Any], computed: int
) -> None:
    predictor = Gated()
    request = replace(REQUEST, **both)
    tasks = await asked(service(predictor), request, replace(request, **other))
    predictor.gate.set()
    await asyncio.gather(*tasks)
    assert len(predictor.requests) == computed


async def test_one_that_leaves_takes_nobodys_answer_along() -> None:
    predictor = Gated()
    first, second, third = await asked(service(predictor), REQUEST, REQUEST, REQUEST)
    first.cancel()
    third.cancel()
    await asyncio.wait((first, third))
    assert predictor.running == 1
    predictor.gate.set()
    assert (await second).candidates
    assert (len(predictor.requests), len(predictor.cancelled)) == (1, 0)


async def test_a_computation_ends_when_the_last_has_left() -> None:
    predictor = Gated()
    one = service(predictor)
    tasks = await asked(one, REQUEST, REQUEST)
    for task in tasks:
        task.cancel()
    [again] = await asked(one, REQUEST)
    await eventually(lambda: len(predictor.cancelled) == 1)
    predictor.gate.set()
    assert (await again).candidates
    assert len(predictor.requests) == 2


async def test_a_failure_is_everybodys() -> None:
    predictor = Gated(EngineGone("gone"))
    tasks = await asked(service(predictor), REQUEST, REQUEST)
    predictor.gate.set()
    errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(error) for error in errors] == [EngineGone, EngineGone]


async def test_each_that_looks_sees_the_states() -> None:
    predictor, seen = Gated(), [[], []]  # type: ignore[var-annotated]
    one = service(predictor)
    tasks = [
        asyncio.create_task(one.predict(REQUEST, lambda state, each=each: each.append(state.step)))
        for each in seen
    ]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    predictor.gate.set()
    await asyncio.gather(*tasks)
    assert len(predictor.requests) == 1
    assert seen == [[1, 2, 3], [1, 2, 3]]


async def test_a_failure_while_the_last_leaves_is_nobodys() -> None:
    complaints: list[str] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context["message"]))

    reached = asyncio.Event()

    async def fail_when_stopped(_request: EditRequest) -> Answer:
        reached.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise ZeroDivisionError("a bug") from None
        return WRITTEN

    [task] = await asked(service(ScriptedPredictor([fail_when_stopped])), REQUEST)
    await reached.wait()
    task.cancel()
    await asyncio.wait((task,))
    assert task.cancelled()
    del task
    gc.collect()
    assert complaints == []
