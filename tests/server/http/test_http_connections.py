"""Connections that ask nothing: silent ones, half a request, large bodies."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator

import aiohttp
import pytest
from redraft.server.app import create_app
from redraft.server.http.connections import ConnectionLimits, Connections
from redraft.server.http.listen import listen
from redraft.server.settings import Settings
from support.editors.predictor import ScriptedPredictor
from support.served import eventually, served

BODY = {"prompt": "a", "suffix": "b"}


@contextlib.asynccontextmanager
async def limited(
    predictor: ScriptedPredictor, limits: ConnectionLimits
) -> AsyncIterator[tuple[int, aiohttp.ClientSession]]:
    """Yield the port of a server with these limits, and a client for it."""
    app = create_app(predictor, Settings())
    async with (
        listen(app, host="127.0.0.1", shutdown_s=0.1, limits=limits) as url,
        aiohttp.ClientSession(base_url=url) as client,
    ):
        yield int(url.rpartition(":")[2]), client


async def silent(port: int, said: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(said)
    return reader, writer


@pytest.mark.parametrize("said", [b"", b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nX"])
async def test_a_request_incomplete_in_time_is_sent_away(said: bytes) -> None:
    async with limited(ScriptedPredictor(), ConnectionLimits(header_s=0.2)) as (port, client):
        reader, writer = await silent(port, said)
        assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        async with client.get("/health") as answer:
            assert answer.status == 200


async def test_silent_connections_take_nobodys_place() -> None:
    predictor = ScriptedPredictor(hold=True)
    async with limited(predictor, ConnectionLimits(connections=20)) as (port, client):
        asking = asyncio.create_task(client.post("/v1/completions", json=BODY))
        await eventually(lambda: predictor.running == 1)
        others = [await silent(port) for _ in range(60)]
        closed = [asyncio.create_task(reader.read()) for reader, _ in others]
        await eventually(lambda: sum(one.done() for one in closed) >= 40)
        async with client.get("/health") as answer:
            assert answer.status == 200
        assert predictor.running == 1, "who asks is never sent away"
        asking.cancel()
        for one in closed:
            one.cancel()
        for _, writer in others:
            writer.close()


def test_the_longest_silent_go_first_and_no_busy_one() -> None:
    class Place:
        def force_close(self) -> None: ...

    now = 0.0
    connections = Connections(ConnectionLimits(connections=2, header_s=10), lambda: now)
    first, second, third = Place(), Place(), Place()
    assert connections.to_close([first]) == []
    now = 5.0
    assert connections.to_close([first, second]) == []
    now = 9.0
    assert connections.to_close([first, second, third]) == [first]
    now = 15.5
    assert connections.to_close([second, third]) == [second]


async def test_many_small_bodies_in_pieces_are_taken_at_once() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield b'{"prompt": "a", '
        yield b'"suffix": "b"}'

    predictor = ScriptedPredictor(delay_s=0.05)
    settings = Settings(max_body_bytes=6_000, shutdown_s=0.1)
    async with served(predictor, settings) as (_, client):
        answers = await asyncio.gather(
            *(client.post("/v1/completions", data=pieces()) for _ in range(8))
        )
        assert [answer.status for answer in answers] == [200] * 8


async def test_a_client_that_closes_its_side_is_gone() -> None:
    predictor = ScriptedPredictor(hold=True)
    async with limited(predictor, ConnectionLimits()) as (port, _):
        body = json.dumps(BODY).encode()
        head = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
        reader, writer = await silent(port, head % len(body) + body)
        await eventually(lambda: predictor.running == 1)
        writer.write_eof()
        assert await asyncio.wait_for(reader.read(), 10) == b""
        await eventually(lambda: predictor.running == 0)
        writer.close()
