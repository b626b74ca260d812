"""Several servers behind a real nginx and a real HAProxy, with the configurations that we give."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import socket
import subprocess
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web
from redraft.model.errors import ModelNotReady, Overloaded
from redraft.model.records import EditRequest, ModelStatus
from redraft.model.remote import SESSION_HEADER, RemotePredictor
from redraft.server.app import create_app
from redraft.server.http.listen import listen
from redraft.server.settings import Settings
from support.editors.predictor import ScriptedPredictor
from support.served import eventually, served

pytestmark = pytest.mark.usefixtures("spawn")

ROOT = Path(__file__).parents[3]
SCALING = ROOT / "server" / "scaling"
REQUEST = EditRequest("infill", "a.py", "x = ", 4)
SESSIONS = [f"editor-{number}" for number in range(24)]

BALANCERS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin") is None,
            reason=f"no {name} here (Debian: apt-get install {name})",
        ),
    )
    for name in ("nginx", "haproxy")
]


@dataclass
class Servers:
    """Three of ours, and the balancer before them."""

    url: str
    predictors: list[ScriptedPredictor]
    stacks: list[contextlib.AsyncExitStack] = field(default_factory=list)

    async def ask(self, session: str) -> int:
        """Return which of them answered."""
        before = [len(one.requests) for one in self.predictors]
        remote = RemotePredictor(self.url, session=session)
        try:
            assert (await remote.predict(REQUEST)).candidates
        finally:
            await remote.close()
        [which] = [
            number
            for number, one in enumerate(self.predictors)
            if len(one.requests) > before[number] and not _refuses(one)
        ]
        return which


def _refuses(predictor: ScriptedPredictor) -> bool:
    return any(isinstance(answer, Exception) for answer in predictor.answers)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def balancer(name: str, ports: list[int], folder: Path) -> Iterator[str]:
    """Run the balancer of our configuration, with other addresses."""
    listens, program = free_port(), shutil.which(name, path="/usr/sbin:/usr/bin:/usr/local/sbin")
    assert program is not None
    suffix = {"nginx": "nginx.conf", "haproxy": "haproxy.cfg"}[name]
    text = (SCALING / suffix).read_text(encoding="utf-8")
    addresses = iter(ports)
    text = re.sub(r"10\.0\.0\.\d+:7331", lambda _: f"127.0.0.1:{next(addresses)}", text)
    text = re.sub(r"(listen|bind) :?7331", rf"\1 127.0.0.1:{listens}", text)
    command = [program, "-f", suffix]
    if name == "nginx":
        logs = "error_log stderr; pid nginx.pid; daemon off; master_process off;\n"
        temporary = "".join(
            f"{kind}_temp_path {folder}/{kind};"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        text = logs + text.replace("http {", f"http {{ access_log off; {temporary}", 1)
        command = [program, "-p", str(folder), "-e", "stderr", "-c", str(folder / suffix)]
    (folder / suffix).write_text(text, encoding="utf-8")
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{listens}"
    finally:
        process.terminate()
        process.wait(10)


@contextlib.asynccontextmanager
async def three_servers(name: str, folder: Path) -> AsyncIterator[Servers]:
    predictors = [ScriptedPredictor() for _ in range(3)]
    stacks = [contextlib.AsyncExitStack() for _ in predictors]
    settings = Settings(shutdown_s=0.1)
    try:
        ports = []
        for stack, predictor in zip(stacks, predictors, strict=True):
            url, _ = await stack.enter_async_context(served(predictor, settings))
            ports.append(int(url.rpartition(":")[2]))
        with balancer(name, ports, folder) as url:
            await _until_up(url, folder)
            yield Servers(url, predictors, stacks)
    finally:
        for stack in stacks:
            await stack.aclose()


async def _until_up(url: str, folder: Path) -> None:
    async with aiohttp.ClientSession() as client:
        for _ in range(200):
            with contextlib.suppress(aiohttp.ClientError):
                async with client.get(f"{url}/health") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.05)
    raise AssertionError((folder / "log").read_text())


@pytest.mark.parametrize("name", BALANCERS)
async def test_sessions_stay_with_servers_and_are_spread(name: str, tmp_path: Path) -> None:
    async with three_servers(name, tmp_path) as servers:
        first = {one: await servers.ask(one) for one in SESSIONS}
        again = {one: await servers.ask(one) for one in reversed(SESSIONS)}
        assert first == again
        assert len(Counter(first.values())) == 3


@pytest.mark.parametrize("name", BALANCERS)
@pytest.mark.parametrize("how", ["stopped", "loading"])
async def test_only_a_lost_servers_sessions_move(name: str, how: str, tmp_path: Path) -> None:
    async with three_servers(name, tmp_path) as servers:
        first = {one: await servers.ask(one) for one in SESSIONS}
        if how == "stopped":
            await servers.stacks[1].aclose()
        else:
            servers.predictors[1].answers = [ModelNotReady("The model fake-1m is loading.")]
            servers.predictors[1].statuses = [ModelStatus("loading", "fake-1m")]
        after = {one: await servers.ask(one) for one in SESSIONS}
        moved = {one for one in SESSIONS if first[one] != after[one]}
        assert moved == {one for one in SESSIONS if first[one] == 1}


@pytest.mark.parametrize("name", BALANCERS)
async def test_a_client_that_goes_away_frees_its_server(name: str, tmp_path: Path) -> None:
    async with three_servers(name, tmp_path) as servers:
        for one in servers.predictors:
            one.hold = True
        asking = asyncio.create_task(servers.ask("editor-1"))
        await eventually(lambda: sum(one.running for one in servers.predictors) == 1)
        asking.cancel()
        await eventually(lambda: sum(len(one.cancelled) for one in servers.predictors) == 1)


@pytest.mark.parametrize("name", BALANCERS)
async def test_a_full_server_is_the_clients_to_wait_for(name: str, tmp_path: Path) -> None:
    async with three_servers(name, tmp_path) as servers:
        for one in servers.predictors:
            one.answers = [Overloaded("3 requests wait already.", retry_after_s=7)]
        body = {"prompt": "a", "suffix": "b"}
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{servers.url}/v1/completions", json=body) as answer,
        ):
            assert (answer.status, answer.headers["Retry-After"]) == (429, "7")
        assert sum(len(one.requests) for one in servers.predictors) == 1


async def test_each_connection_has_a_session_that_names_none() -> None:
    seen: list[str] = []

    @web.middleware
    async def note(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        seen.append(request.headers[SESSION_HEADER])
        return await handler(request)

    app = create_app(ScriptedPredictor(), Settings())
    app.middlewares.append(note)
    async with listen(app, host="127.0.0.1", shutdown_s=0.1) as url:
        for remote in (RemotePredictor(url), RemotePredictor(url)):
            await remote.predict(REQUEST)
            await remote.status()
            await remote.close()
    first, again, other, _ = seen
    assert first == again != other
    assert re.fullmatch("[0-9a-f]{16}", first)
