"""Benchmark of typing into a real file, by stage, with and without a model.

Keys go through the language server's own documents, history, session and context, and with a model
into the engine with its queue, for ghost text and for the next edit; a suggestion's syntax is
checked as before it is shown. Counts the prompt tokens that a keystroke makes the model compute
again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

from redraft.lsp.context.gatherer import BUDGET
from redraft.lsp.documents.positions import Position
from redraft.lsp.edit_places import question_at_cursor
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.protocol.messages import ChangeParams
from redraft.lsp.question import Question, infill
from redraft.lsp.session import Session
from redraft.lsp.snapshot import RequestFlags, Snapshot
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.conversation import abilities_of
from redraft.model.edits.edit import Edit
from redraft.model.edits.syntax_errors import count_added_errors
from redraft.model.engine import Engine
from redraft.model.gate.reasons import Abstain
from redraft.model.predict import Model
from redraft.model.records import EditRequest, ModelStatus, Prediction, Stats, Task

from ..replay.clock import SetClock
from ..replay.clock import run as in_simulated_time
from ..run import Run
from ..scorers.latency import record_answer

_KEY_S = 0.1  # simulated, between two keys of a line
_LINE_S = 1.0  # simulated, after a line: its typist reads it, and the next edit is asked for
_ANSWER_S = 0.15  # simulated, until a model answers


@dataclass(frozen=True, slots=True)
class Keystrokes:
    """Milliseconds of the language server without a model."""

    wall_ms: list[float]  # of each key until the next one, by the clock
    processor_ms: list[float]  # the same, of the processor
    question_ms: list[float]  # of the processor: one complete question about a next edit


def keystroke_overhead(lines: int = 10_000, keystrokes: int = 500) -> Keystrokes:
    """Type code into the middle of a file of ``lines`` lines, in simulated time.

    After each key the editor asks for ghost text and for a next edit. The session waits for its
    debounce, completes its questions, asks a model that has nothing to say, and decides.
    """
    code = code_lines()
    document = (code * (lines // len(code) + 1))[:lines]
    keys = _keys(code, keystrokes)
    wall_ms, processor_ms = in_simulated_time(_type(document, keys))
    return Keystrokes(wall_ms, processor_ms, _questions(document, keys))


async def _type(document: list[str], keys: str) -> tuple[list[float], list[float]]:
    typist = Typist(document, len(document) // 2, clock=asyncio.get_running_loop().time)
    session, asking, spent = typist.session, list[asyncio.Task[Offer | Abstain]](), []
    for key in keys:
        message = typist.message(key)
        wall, processor = time.perf_counter(), time.thread_time()
        query = typist.press(message)
        asking += map(asyncio.ensure_future, (session.ghost_text(query), session.next_edit(query)))
        await asyncio.sleep(_LINE_S if key == "\n" else _KEY_S)
        spent.append((time.perf_counter() - wall, time.thread_time() - processor))
    await asyncio.gather(*asking)
    return [1000 * wall for wall, _ in spent], [1000 * processor for _, processor in spent]


def _questions(document: list[str], keys: str) -> list[float]:
    """Return the milliseconds that a question about a next edit takes after each key."""
    typist, spent = Typist(document, len(document) // 2), list[float]()
    for key in keys:
        query = typist.press(typist.message(key))
        processor = time.thread_time()
        typist.question(query, "next_edit")
        spent.append(1000 * (time.thread_time() - processor))
        typist.clock.now_s += _KEY_S
    return spent


def code_lines() -> list[str]:
    """Lines of code that is always there."""
    assert argparse.__file__ is not None
    return Path(argparse.__file__).read_text(encoding="utf-8").split("\n")


def _keys(code: list[str], count: int) -> str:
    """Return the keys that are typed: a class, as an editor indents it."""
    start = next(at for at, line in enumerate(code) if line.startswith("class HelpFormatter"))
    return "\n".join(code[start:])[:count]


class Typist:
    """A user who types in a document and the language server, in one process and without a model.

    Args:
        lines: of the document.
        line: where typing begins, 0-based; at its start.
        budget: tokens of a prompt.
        clock: reads seconds; None: the typist's own, which its user moves on.
    """

    def __init__(
        self,
        lines: list[str],
        line: int,
        budget: int = BUDGET,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.clock = SetClock()
        self._uri, self._path, self._version = "file:///w/bench.py", "bench.py", 0
        self._line, self._column = line, 0
        settings, clock = LspSettings(context_tokens=budget), clock or self.clock
        self.session = Session(_SilentModel(), settings, clock, reads=False)
        self.session.workspace.folders = ["file:///w"]
        self.session.open(self._uri, "\n".join(lines), 0, "python")
        self.question(self.press(self.message("#")), "next_edit")
        self.session.workspace.context.catch_up()  # a large document is parsed in the background

    def go(self, line: int) -> None:
        """Put the cursor at the beginning of another line."""
        self._line, self._column = line, 0

    def message(self, key: str) -> bytes:
        """Return the ``didChange`` of one key, for :meth:`press`."""
        at = {"line": self._line, "character": self._column}
        self._version += 1
        self._line += key == "\n"
        self._column = 0 if key == "\n" else self._column + 1
        change = {"range": {"start": at, "end": at}, "text": key}
        document = {"uri": self._uri, "version": self._version}
        params = {"textDocument": document, "contentChanges": [change]}
        return json.dumps({"method": "textDocument/didChange", "params": params}).encode()

    def press(self, message: bytes) -> Snapshot:
        """Take a message in; the query that a client follows it with."""
        sent = ChangeParams.of(json.loads(message)["params"])
        changed = sent.text_document
        self.session.change(changed.uri, sent.content_changes, changed.version)
        document = self.session.workspace.documents.get(changed.uri)
        assert document is not None
        cursor = document.index(Position(self._line, self._column))
        return self.session.snapshot(document, cursor, RequestFlags())

    def question(self, query: Snapshot, task: Task) -> Question:
        """Return the question for the model, whatever the moment."""
        workspace = self.session.workspace
        question = (
            infill(query) if task == "infill" else question_at_cursor(query, workspace.context)
        )
        return workspace.complete(question)


class _SilentModel:
    """Predictor that suggests nothing."""

    async def predict(self, *_: object) -> Prediction:
        await asyncio.sleep(_ANSWER_S)
        return Prediction("", "silent", (), "nothing to say", Stats())

    async def status(self) -> ModelStatus:
        raise AssertionError("the typist does not ask for it")

    async def close(self) -> None:
        """There is nothing to close."""


Way = Literal[
    "ghost text",
    "next edit",
    "next edit by gesture",
    "first next edit",
    "first next edit, read ahead",
]
#: The first next edit at a place finds nothing of its prompt in the cache, or what was read ahead
#: when the line was begun; the others come behind the same question of the key before.
WAYS: tuple[Way, ...] = get_args(Way)
_FIRSTS = 4  # keys for each first question: it takes longer

_LINE = 600  # of the file, where typing begins
_EARLIER = (640, 620)  # lines of two edits made before
_ASKED_S, _PAUSE_S = 0.2, 3.0
_OVERTAKEN = 5  # questions that a key makes pointless
_INTO_IT_S = 0.02  # into its computation
_TYPED = "    total = sum(value for value in values if value)\n    return total / len(values)\n"


def type_and_ask(
    model: Model,
    contexts: Sequence[int],
    keys: int,
    run: Run,
    say: Callable[[str], None] = lambda _: None,
    part_s: float = float("inf"),
) -> None:
    """Type ``keys`` keys in each way and at each prompt budget, or for ``part_s`` seconds in each.

    Adds the answers to ``run``. Closes the model's backend.
    """
    asyncio.run(_type_and_ask(model, contexts, keys, run, say, part_s))


async def _type_and_ask(
    model: Model,
    contexts: Sequence[int],
    keys: int,
    run: Run,
    say: Callable[[str], None],
    part_s: float,
) -> None:
    engine = Engine(lambda _: model, model.label)
    try:
        while (await engine.status()).state != "ready":
            await asyncio.sleep(0.01)
        can = abilities_of(model.backend.config)
        for context in contexts:
            for way in (each for each in WAYS if _task(each) in can):
                say(f"typing at {context} tokens of context: {way}")
                model.cache.clear()
                if way.startswith("first"):
                    await _first(engine, model, context, way, max(keys // _FIRSTS, 1), run)
                else:
                    await _in_way(engine, context, way, keys, run, part_s)
    finally:
        await engine.close()


async def _in_way(
    engine: Engine, context: int, way: Way, keys: int, run: Run, part_s: float
) -> None:
    typist = _at_work(context)
    await _press(typist, engine, "#", way)  # fills the cache
    end = time.perf_counter() + part_s
    for number, key in enumerate((_TYPED * keys)[:keys]):
        if number and time.perf_counter() > end:
            break
        said, took = await _press(typist, engine, key, way)
        run.add(record_answer(f"{way}:{context}:{number}", way, context, _task(way), said, took))
    for number, said in enumerate(await _overtaken(typist, engine, _task(way), end)):
        kind = f"{way}, behind a cancelled one"
        run.add(record_answer(f"{kind}:{context}:{number}", kind, context, _task(way), said))


async def _first(engine: Engine, model: Model, context: int, way: Way, keys: int, run: Run) -> None:
    """Ask for the first next edit at a place, again and again."""
    typist = _at_work(context)
    for number, key in enumerate(_TYPED[:keys]):
        begun = _next_request(typist, key, "next_edit")
        model.cache.clear()
        if way == "first next edit, read ahead":
            await engine.predict(replace(begun, read_ahead="stable"))
        said, took = await _press(typist, engine, "x", way)
        run.add(record_answer(f"{way}:{context}:{number}", way, context, "next_edit", said, took))


def _task(way: Way) -> Task:
    return "infill" if way == "ghost text" else "next_edit"


def _at_work(context: int) -> Typist:
    """Return a typist who made two edits in a file and begins a third above them."""
    typist = Typist(code_lines(), _LINE, context)
    for line in _EARLIER:
        typist.go(line)
        for key in "# seen ":
            typist.press(typist.message(key))
            typist.clock.now_s += _ASKED_S
        typist.clock.now_s += _PAUSE_S
    typist.go(_LINE)
    return typist


async def _press(
    typist: Typist, engine: Engine, key: str, way: Way
) -> tuple[Prediction, dict[str, float]]:
    """Return the answer after a key, and the milliseconds it took, as an editor waits for it."""
    task = _task(way)
    typist.clock.now_s += _ASKED_S
    query = typist.press(typist.message(key))
    if way == "next edit by gesture":  # the line is no longer being typed, so the region is whole
        typist.clock.now_s += _PAUSE_S
    wall, processor = time.perf_counter(), time.process_time()
    request = typist.question(query, task).request
    context_ms = 1000 * (time.perf_counter() - wall)
    said = await engine.predict(request)
    began = time.perf_counter()
    for candidate in said.candidates:
        made = Edit(request.text, candidate.start, candidate.end, candidate.text)
        count_added_errors(made, request.path, request.language)
    parse_ms = 1000 * (time.perf_counter() - began)
    return said, {
        "context_ms": context_ms,
        "parse_ms": parse_ms,
        "total_ms": context_ms + said.stats.total_ms + parse_ms,
        "processor_ms": 1000 * (time.process_time() - processor),  # of the whole process
    }


async def _overtaken(typist: Typist, engine: Engine, task: Task, end: float) -> list[Prediction]:
    """Return answers to questions that waited in the queue behind one that was just cancelled.

    It is one answer where the clock is past ``end``.
    """
    waited: list[Prediction] = []
    for _ in range(_OVERTAKEN):
        if waited and time.perf_counter() > end:
            break
        first = asyncio.ensure_future(engine.predict(_next_request(typist, "x", task)))
        await asyncio.sleep(_INTO_IT_S)
        following = _next_request(typist, "y", task)
        first.cancel()
        waited.append(await engine.predict(following))
        await asyncio.gather(first, return_exceptions=True)
    return waited


def _next_request(typist: Typist, key: str, task: Task) -> EditRequest:
    typist.clock.now_s += _ASKED_S
    return typist.question(typist.press(typist.message(key)), task).request
