"""*Replicas*: what a second replica brings. The same clients at ``redraft serve --ray local`` with
one replica after the other number of them, each client with a session of its own."""

from __future__ import annotations

import asyncio
import random
from dataclasses import dataclass

import aiohttp

from ..figures.spread import Spread
from .flood import FloodClient, serving
from .installation import Installation
from .tally import Tally

#: Seconds in which caches fill and the proxy learns of its replicas; nothing is counted.
WARM_UP_S = 3.0


@dataclass(frozen=True, slots=True)
class Amount:
    """Each number of replicas for so long; clients for each replica of the largest number."""

    replicas: tuple[int, ...] = (1, 2)
    seconds: float = 20.0
    clients: int = 4


async def replicas(installation: Installation, amount: Amount, seed: int, tally: Tally) -> None:
    clients = amount.clients * max(amount.replicas)
    for number in amount.replicas:
        more = ("--ray", "local", "--replicas", str(number), "--threads", "1")
        async with (
            serving(installation, *more) as (url, _),
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http,
        ):
            await _at_work(http, url, clients, WARM_UP_S, seed, Tally(tally.clock))
            own = Tally(tally.clock)
            await _at_work(http, url, clients, amount.seconds, seed + 1, own)
        found, name = Spread.of(own.latency_ms), f"{number} replicas" if number > 1 else "1 replica"
        tally.figures |= {
            f"{name}: requests a second": round(own.counts["200"] / amount.seconds, 1),
            f"{name}: p50, ms": found.p50,
            f"{name}: p99, ms": found.p99,
        }
        tally.take(own, name)


async def _at_work(
    http: aiohttp.ClientSession, url: str, clients: int, seconds: float, seed: int, tally: Tally
) -> None:
    """So many clients, each of which asks again as soon as it is answered."""
    until = tally.clock() + seconds
    asking = [
        FloodClient(http, url, random.Random(f"{seed}:{one}"), tally, f"soak-{one}")
        for one in range(clients)
    ]
    await asyncio.gather(*(each.go_on(until) for each in asking))
