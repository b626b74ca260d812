"""Order of the requests of one client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from redraft.lsp.schedule import Kind, Latest, Superseded


class Model:
    """Work that ends when the test says so, and counts how often it was begun."""

    def __init__(self) -> None:
        self.begun = 0
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work(self) -> str:
        self.begun += 1
        return await asyncio.shield(self.answer)


async def begin(latest: Latest, uri: str, kind: Kind, key: str, model: Model) -> asyncio.Task[Any]:
    task = asyncio.ensure_future(latest.run(uri, kind, key, model.work, 60.0))
    for _ in range(5):
        await asyncio.sleep(0)
    return task


async def test_a_joined_prefetch_survives_another_document() -> None:
    latest, model, other = Latest(), Model(), Model()
    ahead = await begin(latest, "a", "prefetch", "same", model)
    joined = await begin(latest, "a", "next_edit", "same", model)
    elsewhere = await begin(latest, "b", "infill", "else", other)
    model.answer.set_result("it")
    other.answer.set_result("other")
    assert await asyncio.gather(ahead, joined, elsewhere) == ["it", "it", "other"]
    assert model.begun == 1, "the model is asked once"


@pytest.mark.parametrize(
    ("running", "starting", "cancelled"),
    [
        (("a", "next_edit"), ("a", "infill"), True),
        (("b", "next_edit"), ("a", "infill"), False),
        (("a", "infill"), ("a", "next_edit"), False),
        (("a", "infill"), ("a", "infill"), True),
        (("b", "prefetch"), ("a", "infill"), True),
        (("b", "prefetch"), ("a", "next_edit"), True),
        (("a", "next_edit"), ("a", "prefetch"), False),
    ],
)
async def test_what_a_request_cancels(
    running: tuple[str, Kind], starting: tuple[str, Kind], cancelled: bool
) -> None:
    latest, first, second = Latest(), Model(), Model()
    earlier = await begin(latest, *running, "one", first)
    later = await begin(latest, *starting, "two", second)
    first.answer.set_result("first")
    second.answer.set_result("second")
    if cancelled:
        with pytest.raises(Superseded):
            await earlier
    else:
        assert await earlier == "first"
    assert await later == "second"


async def test_a_newer_request_replaces_the_one_that_waits() -> None:
    latest = Latest()
    first = asyncio.ensure_future(latest.turn("a", "infill", 60.0))
    await asyncio.sleep(0)
    await latest.turn("a", "infill", 0.0)
    with pytest.raises(Superseded):
        await first


async def test_a_next_edit_waits_for_ghost_text_beside_it() -> None:
    latest, model = Latest(), Model()
    ghost = await begin(latest, "a", "infill", "ghost", model)
    turn = asyncio.ensure_future(latest.turn("a", "next_edit", 0.0))
    await asyncio.sleep(0.01)
    assert not turn.done()
    model.answer.set_result("it")
    await turn
    assert ghost.done()


async def test_a_request_that_takes_too_long_ends() -> None:
    latest, model = Latest(), Model()
    with pytest.raises(TimeoutError):
        await latest.run("a", "infill", "key", model.work, 0.0)
    assert await asyncio.wait_for(latest.turn("a", "next_edit", 0.0), 10.0) is None
