"""The service on a Ray cluster of this machine: sessions, a killed replica, new weights."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import psutil
import pytest
from redraft.model.remote import SESSION_HEADER
from redraft.server.scaling.cluster import REPLICA_HEADER
from redraft.server.settings import Settings
from support.models.onnx_models import register
from support.models.tiny import tiny_config, tiny_tokenizer

pytest.importorskip("onnxruntime", reason="needs onnxruntime (pip install '.[cpu]')")
pytest.importorskip("ray.serve", reason="needs Ray Serve (pip install '.[ray]')")

from redraft.server.scaling.cluster import Fleet, deploy, serve_on_cluster

SESSIONS = [f"editor-{number}" for number in range(12)]
BODY = {"prompt": "def foo(x):\n    return", "suffix": "\n", "max_tokens": 8}
#: Seconds that a cluster may take to put another replica in a dead one's place.
AGAIN_S = 90


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Settings]]:
    """Start two replicas of a tiny model on a new Ray cluster."""
    models = tmp_path_factory.mktemp("models")
    register(models, "tiny", tiny_config(head_dim=16), tiny_tokenizer())
    register(models, "other", tiny_config(head_dim=16), tiny_tokenizer())
    with pytest.MonkeyPatch.context() as patch, socket.socket() as probe:
        tests = str(Path(__file__).parents[2])
        patch.setenv("PYTHONPATH", os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")]))
        patch.setenv("REDRAFT_MODELS", str(models))
        patch.setenv("FAKE_ENGINE_NOTES", str(models / "notes"))
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
        probe.close()
        settings = Settings(port=port, model="tiny", threads=1, shutdown_s=1.0)
        with serve_on_cluster(settings, Fleet("local", replicas=2)) as url:
            yield url, settings


async def ask(
    http: aiohttp.ClientSession, url: str, session: str | None = None, **fields: Any
) -> tuple[int, str, str]:
    """(status, text, replica) of one completion."""
    headers = {} if session is None else {SESSION_HEADER: session}
    async with http.post(f"{url}/v1/completions", json={**BODY, **fields}, headers=headers) as got:
        said = await got.json(content_type=None)
        text = said["choices"][0]["text"] if got.status == 200 else str(said)
        return got.status, text, got.headers.get(REPLICA_HEADER, "")


async def ask_all(http: aiohttp.ClientSession, url: str) -> dict[str, tuple[int, str, str]]:
    return {session: await ask(http, url, session) for session in SESSIONS}


def replica_processes() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "ServeReplica" in " ".join(process.cmdline()):
                found.append(process)
    return found


async def test_sessions_stay_with_both_replicas(cluster: tuple[str, Settings]) -> None:
    async with aiohttp.ClientSession() as http:
        first, again = await ask_all(http, cluster[0]), await ask_all(http, cluster[0])
    assert {status for status, _, _ in first.values()} == {200}
    assert first == again
    assert len({replica for _, _, replica in first.values()}) == 2
    assert len({text for _, text, _ in first.values()}) == 1, "replicas answer alike"


async def test_formats_and_errors_are_those_of_the_server(cluster: tuple[str, Settings]) -> None:
    async with aiohttp.ClientSession() as http:
        async with http.get(f"{cluster[0]}/health") as got:
            assert (got.status, (await got.json())["status"]) == (200, "ready")
        status, said, _ = await ask(http, cluster[0], temperature="hot")
        assert status == 400 and "must be a number" in said
        for name, value in (("Host", "evil.example"), ("Origin", "https://evil.example")):
            async with http.get(f"{cluster[0]}/v1/models", headers={name: value}) as got:
                assert got.status == 403, name
        async with http.post(f"{cluster[0]}/v1/completions", json={**BODY, "stream": True}) as got:
            assert got.headers["Content-Type"].startswith("text/event-stream")
            assert (await got.text()).rstrip().endswith("[DONE]")


async def test_a_killed_replica_costs_its_sessions_a_moment(cluster: tuple[str, Settings]) -> None:
    url, _ = cluster
    async with aiohttp.ClientSession() as http:
        first = await ask_all(http, url)
        victim = replica_processes()[0]
        victim.kill()
        until = time.monotonic() + AGAIN_S
        while time.monotonic() < until:
            after = await ask_all(http, url)
            if all(status == 200 for status, _, _ in after.values()):
                break
            await asyncio.sleep(0.2)
        assert {text for _, text, _ in after.values()} == {first[SESSIONS[0]][1]}
        moved = {one for one in SESSIONS if first[one][2] != after[one][2]}
        assert moved and moved != set(SESSIONS), "only those of the dead one"
        while time.monotonic() < until and len(replica_processes()) < 2:
            await asyncio.sleep(0.2)
        assert len(replica_processes()) == 2, "another takes its place"


async def test_new_weights_come_in_without_a_failed_request(cluster: tuple[str, Settings]) -> None:
    url, settings = cluster
    statuses: list[int] = []
    async with aiohttp.ClientSession() as http:

        async def model() -> str:
            async with http.get(f"{url}/health") as got:
                return str((await got.json())["model"])

        changing = asyncio.create_task(
            asyncio.to_thread(
                deploy, settings.with_options(model="other"), Fleet("local", replicas=2)
            )
        )
        while not changing.done():
            session = SESSIONS[len(statuses) % len(SESSIONS)]
            statuses.append((await ask(http, url, session))[0])
            await asyncio.sleep(0.05)
        await changing
        assert await model() == "other fp32"
    assert set(statuses) == {200}
    assert len(statuses) > 5


@pytest.fixture(scope="module")
def slow(cluster: tuple[str, Settings]) -> tuple[str, Settings]:
    """Replace the two replicas with a slow one that takes one request at a time."""
    url, settings = cluster
    narrow = settings.with_options(queue_length=1)
    deploy(narrow, Fleet("local", replicas=1, engine="support.models.engines:slow_engine"))
    return url, narrow


async def test_where_all_are_full_the_wait_is_said(slow: tuple[str, Settings]) -> None:
    async def one(http: aiohttp.ClientSession, number: int) -> tuple[int, str]:
        body, session = {**BODY, "prompt": f"a{number} = "}, {SESSION_HEADER: f"{number}"}
        async with http.post(f"{slow[0]}/v1/completions", json=body, headers=session) as got:
            return got.status, got.headers.get("Retry-After", "")

    async with aiohttp.ClientSession() as http:
        told = await asyncio.gather(*(one(http, number) for number in range(12)))
        statuses = [status for status, _ in told]
        assert statuses.count(200) >= 1 and set(statuses) == {200, 503}
        assert all(int(after) >= 1 for status, after in told if status == 503)
        assert (await one(http, 99))[0] == 200, "and then there is room again"


async def test_a_client_that_goes_away_stops_its_computation(slow: tuple[str, Settings]) -> None:
    notes = Path(os.environ["REDRAFT_MODELS"]) / "notes"

    async def noted(what: str, more_than: int) -> None:
        async with asyncio.timeout(AGAIN_S):
            while notes.read_text().count(what) <= more_than:
                await asyncio.sleep(0.05)

    asked, given_up = (notes.read_text().count(what) for what in ("asked", "given up"))
    async with aiohttp.ClientSession() as http:
        asking = asyncio.create_task(ask(http, slow[0], prompt="<hold>"))
        await noted("asked", asked)
        asking.cancel()
        await noted("given up", given_up)
        assert (await ask(http, slow[0]))[0] == 200, "its place is free"


async def test_more_replicas_come_while_there_is_more_to_do(slow: tuple[str, Settings]) -> None:
    url, settings = slow
    wide = settings.with_options(queue_length=16)
    deploy(wide, Fleet("local", replicas=1, most=2, engine="support.models.engines:slow_engine"))
    seen: set[str] = set()
    until = time.monotonic() + AGAIN_S
    async with aiohttp.ClientSession() as http:

        async def go_on(number: int) -> None:
            while len(seen) < 2 and time.monotonic() < until:
                status, _, name = await ask(http, url, f"{number}", prompt=f"a{number} = ")
                if status == 200:
                    seen.add(name)

        await asyncio.gather(*(go_on(number) for number in range(12)))
    assert len(seen) == 2


def test_ray_reports_nothing_of_its_use(cluster: tuple[str, Settings]) -> None:
    assert os.environ["RAY_USAGE_STATS_ENABLED"] == "0"
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "raylet" in process.name() or "ServeReplica" in " ".join(process.cmdline()):
                assert process.environ()["RAY_USAGE_STATS_ENABLED"] == "0"
