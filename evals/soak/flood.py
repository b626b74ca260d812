"""*Flood*: up to 200 clients at one server, some that read slowly and some that say nothing.

A server that is asked more than it can answer shall say so at once (429 with Retry-After), answer
those whom it admits as fast as if they were nearly alone, and be as it was when the flood is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import psutil
from redraft.model.engine.remote import SESSION_HEADER
from redraft.model.errors import RedraftError

from ..figures.spread import Spread
from .installation import Installation
from .tally import Tally

#: Seconds that a server may take until its model answers.
START_S = 120.0
#: Of the clients, those that read their stream slowly, and connections that never ask anything.
SLOW, SILENT = 5, 40
#: Requests of one client that is alone.
ALONE = 60
#: Seconds after which a client that was sent away comes again at the latest. Impatient on purpose:
#: the server says at least 1 s.
COME_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True)
class Amount:
    """How many, and for how long each number of them."""

    clients: tuple[int, ...] = (1, 10, 50, 200)
    seconds: float = 30.0


@asynccontextmanager
async def serving(installation: Installation, *more: str) -> AsyncIterator[tuple[str, int]]:
    """``redraft serve`` on a free port, with more options: its URL and process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with (installation.root / "serve.log").open("wb") as said:
        process = subprocess.Popen(
            [*installation.commands.serve, "--port", str(port), *more],
            stdout=said,
            stderr=said,
            env=installation.environment(),
        )
    try:
        url = f"http://127.0.0.1:{port}"
        await _until_ready(url, process, installation.root / "serve.log")
        yield url, process.pid
    finally:
        process.terminate()
        try:
            await asyncio.to_thread(process.wait, 15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


async def _until_ready(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    async with asyncio.timeout(START_S), aiohttp.ClientSession() as http:
        while process.poll() is None:
            with contextlib.suppress(aiohttp.ClientError):
                async with http.get(f"{url}/health") as answer:
                    if answer.status == 200:
                        return
            await asyncio.sleep(0.1)
    said = log.read_text(encoding="utf-8", errors="replace")[-500:]
    raise RedraftError(f"The server ended with exit code {process.returncode}: {said}")


async def flood(installation: Installation, amount: Amount, seed: int, tally: Tally) -> None:
    async with serving(installation) as (url, pid):
        server = psutil.Process(pid)
        connector = aiohttp.TCPConnector(limit=0)
        async with aiohttp.ClientSession(connector=connector) as http:
            client = FloodClient(http, url, random.Random(seed), tally)
            for _ in range(ALONE):
                await client.ask()
            alone = Spread.of(tally.latency_ms)
            tally.figures |= {"alone p50, ms": alone.p50, "alone p99, ms": alone.p99}
            before = 0
            for number in amount.clients:
                await _crowd(http, url, number, amount.seconds, seed, tally)
                before = before or server.memory_info().rss
                tally.sample(server.memory_info().rss)
            await _is_well(http, url, tally)
        await asyncio.sleep(1.0)
        after = server.memory_info().rss
        tally.figures |= {"MB with one client": before / 1e6, "MB afterwards": after / 1e6}
        if before and after > 1.1 * before:
            tally.breaks(f"memory is {after / before:.2f} times what it was with one client")


async def _crowd(
    http: aiohttp.ClientSession, url: str, number: int, seconds: float, seed: int, tally: Tally
) -> None:
    """So many clients for so long."""
    until, own = tally.clock() + seconds, Tally(tally.clock)
    host, port = url.removeprefix("http://").split(":")
    writers: list[asyncio.StreamWriter] = []
    readers: list[asyncio.Task[None]] = []
    if number > 1:
        for index in range(SILENT):
            _, writer = await asyncio.open_connection(host, int(port))
            if index % 2:
                writer.write(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-")
            writers.append(writer)
        readers = [asyncio.create_task(_read_slowly(http, url, until, own)) for _ in range(SLOW)]
    clients = [FloodClient(http, url, random.Random(f"{seed}:{i}"), own) for i in range(number)]
    await asyncio.gather(*(each.go_on(until) for each in clients))
    for reader in readers:
        reader.cancel()
    await asyncio.gather(*readers, return_exceptions=True)
    for writer in writers:
        writer.close()
    found = Spread.of(own.latency_ms)
    tally.figures |= {
        f"{number} clients: admitted": own.counts["200"],
        f"{number} clients: sent away": own.counts["429"],
        f"{number} clients: p50, ms": found.p50,
        f"{number} clients: p99, ms": found.p99,
    }
    tally.take(own, f"{number} clients")
    alone = tally.figures["alone p99, ms"]
    tally.figures[f"{number} clients: p99 of alone"] = round(found.p99 / alone, 2) if alone else 0.0


async def _is_well(http: aiohttp.ClientSession, url: str, tally: Tally) -> None:
    """One client again: it must be answered at once."""
    client = FloodClient(http, url, random.Random(0), Tally(tally.clock))
    began = tally.clock()
    for _ in range(20):
        if await client.ask() == 200:
            break
        await asyncio.sleep(0.1)
    else:
        tally.breaks("after the flood nobody is answered")
    tally.figures["answered after the flood, ms"] = round(1e3 * (tally.clock() - began), 1)


async def _read_slowly(http: aiohttp.ClientSession, url: str, until: float, tally: Tally) -> None:
    """Asks for a stream and takes a byte of it now and then."""
    body = {"prompt": "def f(a, b):\n    return ", "suffix": "\n", "stream": True}
    while tally.clock() < until:
        with contextlib.suppress(aiohttp.ClientError, TimeoutError):
            async with http.post(f"{url}/v1/completions", json=body) as answer:
                while tally.clock() < until and await answer.content.read(1):
                    await asyncio.sleep(0.2)
        await asyncio.sleep(0.5)


@dataclass(slots=True)
class FloodClient:
    """One that asks again as soon as it is answered; sent away it comes back too early.

    Args:
        session: its name, where several servers share the work; "" for none.
    """

    http: aiohttp.ClientSession
    url: str
    chance: random.Random
    tally: Tally
    session: str = ""

    async def go_on(self, until: float) -> None:
        while self.tally.clock() < until:
            if await self.ask() != 200:
                await asyncio.sleep(COME_AGAIN_S * (0.5 + self.chance.random() / 2))

    async def ask(self) -> int:
        """One request: its status. Times are of those that were admitted."""
        name = self.chance.randrange(10**6)
        body = {"prompt": f"def f{name}(a, b):\n    return ", "suffix": "\n", "max_tokens": 16}
        named = {SESSION_HEADER: self.session} if self.session else {}
        began, tally = self.tally.clock(), self.tally
        tally.events += 1
        try:
            async with self.http.post(
                f"{self.url}/v1/completions",
                json=body,
                headers=named,
                timeout=aiohttp.ClientTimeout(total=30),
            ) as answer:
                await answer.read()
                status, headers = answer.status, answer.headers
        except TimeoutError:
            tally.lost += 1
            tally.breaks("a request was not answered within 30 s")
            return 0
        except aiohttp.ClientError as error:
            tally.errors += 1
            tally.breaks(f"a connection broke: {type(error).__name__}")
            return 0
        tally.answers += 1
        tally.counts[str(status)] += 1
        if status == 200:
            tally.latency_ms.append(1e3 * (tally.clock() - began))
        elif status not in (429, 503) or not headers.get("Retry-After", "").isdigit():
            tally.errors += 1
            tally.breaks(f"status {status}, Retry-After {headers.get('Retry-After')}")
        return status
