"""*Typing*: several documents at once, with real edits, language server and HTTP mixed.

Each typist replays the changes of a recording (of a person, or of commits typed anew) as fast as
the server takes them, asks for ghost text and next edits at random, and now and then asks the same
engine over HTTP, as another program would. What is counted: whether everything is answered, how
fast, and whether memory grows.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import aiohttp
import psutil
from redraft.model.errors import InvalidRequest

from ..recordings.documents import StreamDocuments, content_changes
from ..recordings.format import Changed, Stream
from .editor import Editor, Ended, ask_at, change_of
from .installation import Engine, Installation, check_log, resident
from .tally import Tally, slope_of

#: How often something is asked, per change.
GHOST, EDIT, HTTP = 0.15, 0.03, 0.05
#: Of the questions, those by a gesture: they are asked without a pause.
INVOKED = 0.5
#: Questions of one typist that may be open at once: a person does not wait for the last one.
OPEN = 4
#: Changes after which a document is closed and opened anew.
REOPEN = 400
#: Events between two looks at the memory.
LOOK = 200


@dataclass(frozen=True, slots=True)
class Amount:
    """How much; whichever is reached first."""

    events: int
    seconds: float
    typists: int = 4


async def type_(
    installation: Installation, streams: Sequence[Stream], amount: Amount, seed: int, tally: Tally
) -> None:
    """Types until there is enough. Raises nothing about the servers: the tally tells."""
    editor = Editor(
        installation.commands.lsp, installation.environment(), installation.root / "lsp.log", tally
    )
    await editor.start(installation.project)
    until = tally.clock() + amount.seconds
    memory = _Memory(tally)

    def goes_on() -> bool:
        if memory.is_due:
            engine = installation.engine()
            memory.look(editor.pid, engine.pid if engine else None)
        return tally.events < amount.events and tally.clock() < until

    typists = [
        _Typist(editor, streams[number % len(streams)], number, seed, tally, goes_on)
        for number in range(amount.typists)
    ]
    other = asyncio.create_task(_ask_over_http(installation, tally, goes_on, seed))
    try:
        await asyncio.gather(*(each.run() for each in typists))
    except Ended as error:
        tally.breaks(f"the language server ended: {error}")
    finally:
        other.cancel()
        await asyncio.gather(other, return_exceptions=True)
    engine = installation.engine()
    tally.figures |= {
        "language server, CPU ms per event": _cpu_ms(editor.pid) / max(tally.events, 1),
        "engine, CPU ms per event": _cpu_ms(engine.pid if engine else 0) / max(tally.events, 1),
    }
    tally.figures |= memory.figures()
    await editor.stop()
    check_log(installation.root / "lsp.log", tally)


class _Memory:
    """What both processes hold, every ``LOOK`` events: together for the tally, and each."""

    def __init__(self, tally: Tally) -> None:
        self._tally, self._next = tally, 0
        self._held: dict[str, list[tuple[int, int]]] = {"language server": [], "engine": []}

    @property
    def is_due(self) -> bool:
        return self._tally.events >= self._next

    def look(self, server: int, engine: int | None) -> None:
        """Arguments: process ids."""
        events, each = self._tally.events, [resident(server), resident(engine)]
        for samples, held_bytes in zip(self._held.values(), each, strict=True):
            samples.append((events, held_bytes))
        self._tally.sample(sum(each))
        self._next = events + LOOK

    def figures(self) -> dict[str, float]:
        found = {}
        for name, samples in self._held.items():
            found[f"{name}, MB at the end"] = samples[-1][1] / 1e6
            if (slope := slope_of(samples)) is not None:
                found[f"{name}, MB per 10,000 events"] = slope.value
        return found


def _cpu_ms(pid: int) -> float:
    """That a process has taken since its start, all cores together."""
    with contextlib.suppress(psutil.Error):
        used = psutil.Process(pid).cpu_times()
        return 1e3 * float(used.user + used.system)
    return 0.0


class _Typist:
    """One person at one set of documents."""

    def __init__(
        self,
        editor: Editor,
        stream: Stream,
        number: int,
        seed: int,
        tally: Tally,
        goes_on: Callable[[], bool],
    ) -> None:
        self._editor, self._stream, self._tally = editor, stream, tally
        self._goes_on = goes_on
        self._name = f"file:///soak/{number}"
        self._random = random.Random(f"{seed}:{number}")
        self._open: dict[int, int] = {}  # documents: changes since they were opened
        self._asked: set[asyncio.Task[None]] = set()
        self._versions = count(1)

    async def run(self) -> None:
        while self._goes_on():
            await self._once()
        await asyncio.gather(*self._asked, return_exceptions=True)

    async def _once(self) -> None:
        """The recording from its beginning."""
        documents = StreamDocuments()
        for event in self._stream.events:
            if not self._goes_on():
                break
            if isinstance(event, Changed):
                await self._change(documents, event)
            else:
                documents.apply(event)
        for id_ in list(self._open):
            await self._close(documents, id_)

    async def _change(self, documents: StreamDocuments, event: Changed) -> None:
        id_, uri = event.document, self._uri(documents, event.document)
        text = documents.text(id_)
        if self._open.get(id_, REOPEN) >= REOPEN:
            await self._close(documents, id_)
            item = {"uri": uri, "languageId": "", "version": next(self._versions), "text": text}
            await self._editor.notify("textDocument/didOpen", {"textDocument": item})
            self._open[id_] = 0
        try:
            changes = content_changes(text, event.edits)
            documents.apply(event)
        except InvalidRequest:
            return  # a gap of the recording
        self._open[id_] += 1
        sent: list[dict[str, Any]] = [
            {"text": one.text, **({"range": one.range.as_json()} if one.range else {})}
            for one in changes
        ]
        await self._editor.notify(
            "textDocument/didChange", change_of(uri, next(self._versions), sent)
        )
        if changes and changes[0].range is not None:
            at, lines = changes[0].range.start, changes[0].text.split("\n")
            line = at.line + len(lines) - 1
            character = len(lines[-1]) + (at.character if len(lines) == 1 else 0)
            await self._maybe_ask(uri, line, character)
        await asyncio.sleep(0)

    async def _maybe_ask(self, uri: str, line: int, character: int) -> None:
        chance = self._random.random()
        invoked = self._random.random() < INVOKED
        params = ask_at(uri, line, character, invoked)
        if chance < GHOST:
            self._ask("textDocument/inlineCompletion", params)
        elif chance < GHOST + EDIT:
            self._ask("redraft/nextEdit", params)
        while len(self._asked) >= OPEN:
            await asyncio.wait(self._asked, return_when=asyncio.FIRST_COMPLETED)

    def _ask(self, method: str, params: dict[str, Any]) -> None:
        async def ask() -> None:
            try:
                answer = await self._editor.request(method, params)
            except (TimeoutError, Ended):
                return
            result = answer.get("result") or {}
            if result.get("items") or result.get("edits"):
                self._tally.counts["suggestions"] += 1

        task = asyncio.create_task(ask())
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)

    async def _close(self, documents: StreamDocuments, id_: int) -> None:
        if self._open.pop(id_, None) is not None:
            identifier = {"textDocument": {"uri": self._uri(documents, id_)}}
            await self._editor.notify("textDocument/didClose", identifier)

    def _uri(self, documents: StreamDocuments, id_: int) -> str:
        return f"{self._name}/{documents.path(id_)}"


async def _ask_over_http(
    installation: Installation, tally: Tally, goes_on: Callable[[], bool], seed: int
) -> None:
    """Another program at the same engine, which connects anew each time."""
    chance = random.Random(seed)
    while goes_on():
        await asyncio.sleep(0.05)
        engine = installation.engine()
        if engine is None or tally.counts["HTTP requests"] > tally.events * HTTP:
            continue
        prompt = f"def f{chance.randrange(1000)}(a, b):\n    return "
        tally.counts["HTTP requests"] += 1
        tally.events += 1
        began = tally.clock()
        try:
            status = await _complete(engine, prompt)
        except TimeoutError:
            tally.lost += 1
            tally.breaks("an HTTP request was not answered within 15 s")
            continue
        except aiohttp.ClientError:
            continue  # the engine was just leaving or coming
        tally.answers += 1
        tally.latency_ms.append(1e3 * (tally.clock() - began))
        tally.counts[f"HTTP {status}"] += 1
        if status not in (200, 429, 503):
            tally.errors += 1


async def _complete(engine: Engine, prompt: str) -> int:
    """The status of a completion."""
    connector = aiohttp.UnixConnector(engine.address) if engine.is_socket else None
    url = "http://localhost" if engine.is_socket else engine.address
    async with (
        aiohttp.ClientSession(connector=connector) as http,
        http.post(
            f"{url}/v1/completions",
            json={"prompt": prompt, "suffix": "\n", "max_tokens": 16},
            headers={"Authorization": f"Bearer {engine.token}"},
            timeout=aiohttp.ClientTimeout(total=15),
        ) as answer,
    ):
        await answer.read()
        return answer.status
