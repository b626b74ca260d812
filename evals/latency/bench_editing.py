"""Somebody types into a real file, and the server asks as it does: what each stage takes.

Keys go through the language server's own documents, history, session and context into the engine
with its queue, for ghost text and for the next edit; a suggestion's syntax is checked as before it
is shown. Counts what of a prompt a keystroke makes the model compute again. Knows nothing of
editors and protocols.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from redraft.evals.latency.keystroke import Typist, code_lines
from redraft.model.conversation import abilities_of
from redraft.model.edits.replacement import Replacement
from redraft.model.edits.rules import refuse_syntax
from redraft.model.engine import Engine
from redraft.model.predict import Model
from redraft.model.records import EditRequest, Task

from ..figures.spread import Spread

#: "asked at every key": as clients do that leave it to the server when to answer; the edit in
#: progress stays out of the history until its line is finished or the keys rest. "a gesture at
#: every key": every question finishes the edit, so that the model is shown it; what a pause costs.
Way = Literal["ghost text", "next edit, asked at every key", "next edit, a gesture at every key"]
WAYS: tuple[Way, ...] = (
    "ghost text",
    "next edit, asked at every key",
    "next edit, a gesture at every key",
)
STAGES = ("queue_ms", "context_ms", "prompt_ms", "prefill_ms", "denoise_ms", "parse_ms", "total_ms")

_LINE = 600  # of the file, where typing begins
_EARLIER = (640, 620)  # lines of two edits made before
_KEY_S, _PAUSE_S = 0.2, 3.0
_OVERTAKEN = 5  # questions that a key makes pointless
_INTO_IT_S = 0.02  # into its computation
_TYPED = "    total = sum(value for value in values if value)\n    return total / len(values)\n"


@dataclass(frozen=True, slots=True)
class Editing:
    """One way of asking at one prompt budget, at every key."""

    context: int  # prompt budget, tokens
    way: Way
    keys: int
    stages: dict[str, Spread]  # milliseconds by the clock
    processor_ms: Spread  # of the whole process, from the key to the checked answer
    prompt_tokens: float  # mean
    recomputed_tokens: Spread
    recomputed_share: Spread  # of the prompt, 0 … 1
    behind_ms: float  # median wait in the queue behind a question that a key made pointless


@dataclass(frozen=True, slots=True)
class _Key:
    """What one key cost."""

    stages: dict[str, float]
    processor_ms: float
    prompt_tokens: int
    recomputed: int


def type_and_ask(
    model: Model,
    contexts: Sequence[int],
    keys: int,
    seen: Callable[[Editing], None],
    say: Callable[[str], None] = lambda what: None,
    part_s: float = float("inf"),
) -> None:
    """Type ``keys`` keys in each way and at each prompt budget, or for ``part_s`` seconds in each;
    ``seen`` is told of each once it is measured. Closes the model's backend."""
    asyncio.run(_type_and_ask(model, contexts, keys, seen, say, part_s))


async def _type_and_ask(
    model: Model,
    contexts: Sequence[int],
    keys: int,
    seen: Callable[[Editing], None],
    say: Callable[[str], None],
    part_s: float,
) -> None:
    engine = Engine(lambda report: model, model.label)
    try:
        while (await engine.status()).state != "ready":
            await asyncio.sleep(0.01)
        can = abilities_of(model.backend.config)
        for context in contexts:
            for way in (each for each in WAYS if _task(each) in can):
                say(f"typing at {context} tokens of context: {way}")
                model.cache.clear()
                seen(await _in_way(engine, context, way, keys, part_s))
    finally:
        await engine.close()


async def _in_way(engine: Engine, context: int, way: Way, keys: int, part_s: float) -> Editing:
    typist = _at_work(context)
    await _press(typist, engine, "#", way)  # fills the cache
    cost: list[_Key] = []
    end = time.perf_counter() + part_s
    for key in (_TYPED * keys)[:keys]:
        if cost and time.perf_counter() > end:
            break
        cost.append(await _press(typist, engine, key, way))
    return Editing(
        context=context,
        way=way,
        keys=len(cost),
        stages={name: Spread.of([each.stages[name] for each in cost]) for name in STAGES},
        processor_ms=Spread.of([each.processor_ms for each in cost]),
        prompt_tokens=round(sum(each.prompt_tokens for each in cost) / len(cost), 1),
        recomputed_tokens=Spread.of([float(each.recomputed) for each in cost]),
        recomputed_share=Spread.of([each.recomputed / each.prompt_tokens for each in cost]),
        behind_ms=await _overtaken(typist, engine, _task(way), end),
    )


def _task(way: Way) -> Task:
    return "infill" if way == "ghost text" else "next_edit"


def _at_work(context: int) -> Typist:
    """Somebody who made two edits in a file and begins a third between them and the top."""
    typist = Typist(code_lines(), _LINE, context)
    for line in _EARLIER:
        typist.go(line)
        for key in "# seen ":
            typist.press(typist.message(key))
            typist.now_s += _KEY_S
        typist.now_s += _PAUSE_S
    typist.go(_LINE)
    return typist


async def _press(typist: Typist, engine: Engine, key: str, way: Way) -> _Key:
    task = _task(way)
    typist.now_s += _KEY_S
    query = typist.press(typist.message(key))
    wall, processor = time.perf_counter(), time.process_time()
    by_hand = way == "next edit, a gesture at every key"
    question = typist.question(query, task) if by_hand else typist.asked(query, task)
    request = typist.session.complete(question).request
    context_ms = 1000 * (time.perf_counter() - wall)
    said = await engine.predict(request)
    began = time.perf_counter()
    for candidate in said.candidates:
        made = Replacement(request.text, candidate.start, candidate.end, candidate.text)
        refuse_syntax(made, request.path, request.language)
    parse_ms = 1000 * (time.perf_counter() - began)
    stages = {
        "context_ms": context_ms,
        "parse_ms": parse_ms,
        "total_ms": context_ms + said.stats.total_ms + parse_ms,
        **{name: getattr(said.stats, name) for name in STAGES if name in _OF_ENGINE},
    }
    used_ms = 1000 * (time.process_time() - processor)
    recomputed = said.stats.prompt_tokens - said.stats.reused_tokens
    return _Key(stages, used_ms, said.stats.prompt_tokens, recomputed)


_OF_ENGINE = ("queue_ms", "prompt_ms", "prefill_ms", "denoise_ms")


async def _overtaken(typist: Typist, engine: Engine, task: Task, end: float) -> float:
    """Median milliseconds that a question waits in the queue behind one that was just given up; of
    one question where the clock is past ``end``."""
    waited: list[float] = []
    for _ in range(_OVERTAKEN):
        if waited and time.perf_counter() > end:
            break
        first = asyncio.ensure_future(engine.predict(_next_request(typist, "x", task)))
        await asyncio.sleep(_INTO_IT_S)
        following = _next_request(typist, "y", task)
        first.cancel()
        waited.append((await engine.predict(following)).stats.queue_ms)
        await asyncio.gather(first, return_exceptions=True)
    return Spread.of(waited).p50


def _next_request(typist: Typist, key: str, task: Task) -> EditRequest:
    typist.now_s += _KEY_S
    question = typist.question(typist.press(typist.message(key)), task)
    return typist.session.complete(question).request
