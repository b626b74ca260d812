"""*Fuzz*: whatever can be sent, to every route and every method, until something gives.

Over HTTP nothing may be a 500, name a file of this machine, show a traceback, hang or end the
server.
The language server must answer every request once, stay up, and have each document exactly as a
reference has it: told by the text that the model is asked about. Drawn by hypothesis, which makes
what fails as short as it can. Needs hypothesis (``pip install '.[soak]'``).
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import psutil
from hypothesis import HealthCheck, Phase, given, seed, settings
from redraft.lsp.connection.documents_sync import HANDLERS

from .editor import Editor, Ended, ask_at, change_of
from .flood import serving
from .installation import Installation, check_log, resident
from .mirror import Mirror
from .relay import Relay, spying
from .strategies import BODIES, HEADERS, SESSIONS
from .tally import Tally

#: What no answer may hold: where we lie on this machine, and what Python says of a fault.
LEAKS = re.compile(
    r"Traceback \(most recent|site-packages|File \"|/home/|/root/|\.py\", line|weights\.bin"
)
#: Seconds after which an answer is a hang.
HANG_S = 20.0
#: Messages after which the memory is looked at.
LOOK = 100
#: Methods that end the connection, or turn on what stays on.
_LEFT_OUT = frozenset(("shutdown", "exit", "initialize", "initialized"))

Route = tuple[str, str]  # method, path


@dataclass(frozen=True, slots=True)
class Amount:
    """How many examples: requests over HTTP, and sessions of an editor."""

    requests: int
    sessions: int


def fuzz(
    installation: Installation, routes: Sequence[Route], amount: Amount, seed_: int, tally: Tally
) -> None:
    """Runs its own event loop: hypothesis calls what it tests."""
    loop = asyncio.new_event_loop()
    run = loop.run_until_complete
    stack = contextlib.AsyncExitStack()
    try:
        url, pid = run(stack.enter_async_context(serving(installation)))
        relay, spy_url = run(stack.enter_async_context(spying(url)))
        with _told(tally, "HTTP"):
            _routes(loop, url, pid, routes, amount.requests, seed_, tally)
        with _told(tally, "language server"):
            _sessions(loop, installation, relay, spy_url, pid, amount.sessions, seed_, tally)
        if not psutil.pid_exists(pid):
            tally.breaks("the server is gone")
    finally:
        run(stack.aclose())
        loop.close()
    for log in ("serve.log", "lsp.log"):
        check_log(installation.root / log, tally)


def _drawn(examples: int, seed_: int) -> Callable[[Callable[..., None]], Callable[[], None]]:
    def decorate(test: Callable[..., None]) -> Callable[[], None]:
        made: Callable[[], None] = settings(
            max_examples=examples,
            deadline=None,
            database=None,
            derandomize=False,
            phases=[Phase.generate, Phase.shrink],
            suppress_health_check=list(HealthCheck),
        )(seed(seed_)(test))
        return made

    return decorate


@contextlib.contextmanager
def _told(tally: Tally, what: str) -> Iterator[None]:
    """What fails is told with the example that hypothesis found, and ends no soak."""
    try:
        yield
    except (AssertionError, Ended, TimeoutError, aiohttp.ClientError, ExceptionGroup) as error:
        notes = " · ".join(getattr(error, "__notes__", ()))
        tally.breaks(f"{what}: {type(error).__name__}: {error} {notes}"[:2_000])


# --- HTTP ------------------------------------------------------------------------------------


def _routes(
    loop: asyncio.AbstractEventLoop,
    url: str,
    pid: int,
    routes: Sequence[Route],
    examples: int,
    seed_: int,
    tally: Tally,
) -> None:
    from hypothesis import strategies as st

    run = loop.run_until_complete
    http = run(_open())

    async def send(route: Route, path: str, body: bytes, headers: dict[str, str]) -> None:
        tally.events += 1
        if tally.events % LOOK == 0:
            tally.sample(resident(pid))
        began = tally.clock()
        async with (
            asyncio.timeout(HANG_S),
            http.request(route[0], f"{url}{path}", data=body, headers=headers) as answer,
        ):
            said = (await answer.read()).decode("utf-8", "replace")
        tally.answers += 1
        tally.latency_ms.append(1e3 * (tally.clock() - began))
        tally.counts[f"HTTP {answer.status // 100}xx"] += 1
        _check_answer(route, answer.status, said)

    @_drawn(examples, seed_)
    @given(st.sampled_from(list(routes)), BODIES, HEADERS, st.text(max_size=8))
    def check(route: Route, body: bytes, headers: dict[str, str], name: str) -> None:
        part = "".join(c for c in name if c.isalnum() and c.isascii()) or "x"
        path = re.sub(r"\{[^}]*\}", part, route[1])
        if route[0] in ("GET", "HEAD"):
            body = b""
        run(send(route, path, body, headers))

    try:
        check()
    finally:
        run(http.close())


def _check_answer(route: Route, status: int, said: str) -> None:
    assert status < 500 or status == 503, f"{route} {status} {said[:300]}"
    leak = LEAKS.search(said)
    assert leak is None, f"{route} tells {said[max(0, leak.start() - 80) :][:200]!r}"
    if status >= 400 and route[0] != "HEAD":
        assert "error" in json.loads(said), f"{route} {status}: {said[:200]}"


async def _open() -> aiohttp.ClientSession:  # within the loop
    return aiohttp.ClientSession()


# --- the language server ---------------------------------------------------------------------


def _sessions(
    loop: asyncio.AbstractEventLoop,
    installation: Installation,
    relay: Relay,
    url: str,
    served_by: int,
    examples: int,
    seed_: int,
    tally: Tally,
) -> None:
    command = [*installation.commands.lsp, "--server", url]
    editor = Editor(command, installation.environment(), installation.root / "lsp.log", tally)
    run = loop.run_until_complete
    run(editor.start(installation.project, prefetch=False))
    methods = sorted(set(HANDLERS) - _LEFT_OUT)
    number = 0

    @_drawn(examples, seed_)
    @given(SESSIONS)
    def check(drawn: tuple[str, list[tuple[str, Any]]]) -> None:
        nonlocal number
        number += 1
        if number % 5 == 0:
            tally.sample(resident(editor.pid, served_by))
        run(_Session(editor, relay, f"file:///soak/{number}.py", methods, tally).play(*drawn))

    try:
        check()
    finally:
        run(editor.stop())


class _Session:
    """One document from its opening to its end, beside its mirror."""

    def __init__(
        self, editor: Editor, relay: Relay, uri: str, methods: Sequence[str], tally: Tally
    ) -> None:
        self._editor, self._spy, self._uri = editor, relay, uri
        self._methods, self._tally = methods, tally
        self._mirror = Mirror("")
        self._version = 0

    async def play(self, text: str, steps: list[tuple[str, Any]]) -> None:
        await self._open(text)
        for kind, drawn in steps:
            await self._step(kind, drawn)
        await self._compare({"line": 0, "character": 0})
        identifier = {"textDocument": {"uri": self._uri}}
        await self._editor.notify("textDocument/didClose", identifier)

    async def _open(self, text: str) -> None:
        self._mirror = Mirror(text)
        self._version += 1
        item = {"uri": self._uri, "languageId": "python", "version": self._version, "text": text}
        await self._editor.notify("textDocument/didOpen", {"textDocument": item})

    async def _step(self, kind: str, drawn: Any) -> None:
        match kind:
            case "change":
                self._version += 1
                self._mirror.apply(drawn)
                await self._editor.notify(
                    "textDocument/didChange", change_of(self._uri, self._version, drawn)
                )
                await self._compare({"line": 0, "character": 0})
            case "ask":
                await self._compare(drawn)
            case "edit":
                params = ask_at(self._uri, drawn["line"], drawn["character"], invoked=True)
                await self._editor.request("redraft/nextEdit", params)
            case "reopen":
                await self._open(drawn)
            case "any":
                await self._anything(self._methods[drawn[0] % len(self._methods)], drawn[1])
            case "raw":
                await self._editor.raw(drawn)

    async def _anything(self, method: str, params: Any) -> None:
        """Of a request that makes no sense only the answer matters."""
        if method == "workspace/executeCommand":
            params = {"command": "redraft.status", "arguments": params}
        elif method.startswith(("textDocument/did", "workspace/did")):
            params = {"garbage": params}  # of another document, so that the mirror stays right
        answer = await self._editor.request(method, params)
        said = json.dumps(answer)
        if "unreadFolders" not in said:
            leak = LEAKS.search(said)
            assert leak is None, f"{method} tells {said[max(0, leak.start() - 80) :][:200]!r}"

    async def _compare(self, place: dict[str, int]) -> None:
        """Is the model asked about the text that the mirror has?"""
        self._spy.texts.clear()
        params = ask_at(self._uri, place["line"], place["character"], invoked=True)
        await self._editor.request("textDocument/inlineCompletion", params)
        self._tally.counts["asked"] += 1
        for text in self._spy.texts[-1:]:
            self._tally.counts["documents compared"] += 1
            assert text == self._mirror.seen(), f"the server has {text!r}"
