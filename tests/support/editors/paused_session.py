"""Session that pauses at the model: a test answers its questions one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from redraft.lsp.context.gather import Gathered
from redraft.lsp.context.mentions import OpenText
from redraft.lsp.context.region import TOKENS, Region
from redraft.lsp.documents import Document
from redraft.lsp.memory import Answers
from redraft.lsp.places import Place
from redraft.lsp.policy.ignore_files import IgnoreRules
from redraft.lsp.schedule import Kind, Latest, Requests
from redraft.lsp.session import Session
from redraft.lsp.settings import LspSettings
from redraft.lsp.suggestion import PlacedRequest, Query, Show
from redraft.model.gate.reasons import Abstain
from redraft.model.prompts.redraft3 import shrunk, window
from redraft.model.records import (
    Diagnostic,
    EditRequest,
    Importable,
    ModelStatus,
    Prediction,
    RecentEdit,
)
from redraft.model.text.lines import estimate
from redraft.model.text.syntax import Syntax, parsed

from support.editors.predictor import READY

FOLDER = "file:///w/"


class Shelf:
    """Context of a query: the text alone, the open documents and the files that define a name."""

    def __init__(self, opened: dict[str, Document]) -> None:
        self.opened = opened
        self.rules = IgnoreRules()
        self.defined: dict[str, set[str]] = {}

    def gather(self, query: Query) -> Gathered:
        return Gathered(self.region_at(query), 0.0, (), (), 0, 0, 0)

    look = gather

    def syntax(self, query: Query) -> Syntax | None:
        return parsed(query.text, query.language)

    def above(self, query: Query) -> None:
        return None

    def above_hash(self, query: Query) -> int:
        return 0

    def region_at(self, query: Query) -> Region:
        first, last = window(query.line, len(query.lines))
        costs = [estimate(line) + 3 for line in query.lines[first:last]]
        return Region(*shrunk(costs, first, last, query.line, TOKENS), "", query.line)

    def diagnostics(self, query: Query) -> tuple[Diagnostic, ...]:
        return ()

    def importable(self, query: Query, edits: Sequence[RecentEdit]) -> tuple[Importable, ...]:
        return ()

    def documents(self) -> Sequence[OpenText]:
        return [
            OpenText(uri, uri.removeprefix(FOLDER), "python", each.revision, self._text_of(each))
            for uri, each in self.opened.items()
        ]

    def definers(self, name: str, _language: str) -> Collection[str]:
        return self.defined.get(name, set())

    def changed(self, uri: str, splices: object) -> None:
        """Move nothing: no region is kept."""

    def closed(self, uri: str) -> None:
        """Forget nothing: there is nothing to forget."""

    @staticmethod
    def _text_of(document: Document) -> Callable[[], str]:
        return lambda: document.text


# --- a session that pauses at the model ----------------------------------------------------------

LOOP = asyncio.new_event_loop()
LOOP.set_exception_handler(lambda loop, context: None)  # of questions that a test leaves open


@dataclass(eq=False)
class Ask:
    """A question to the model that waits for the answer of a test."""

    question: PlacedRequest
    delay_ms: float
    reason: str  # of another place: the name that leads there, and why
    answer: asyncio.Future[Prediction]
    task: asyncio.Task[Show | Abstain] | None = None
    decision: Show | Abstain | None = None  # on the answer

    @property
    def query(self) -> Query:
        return self.question.query

    @property
    def request(self) -> EditRequest:
        return self.question.request

    @property
    def asked_from(self) -> Query:
        return self.question.asked_from

    @property
    def origin(self) -> Query | None:
        return self.asked_from if self.question.is_elsewhere else None

    @property
    def is_open(self) -> bool:
        return not self.answer.done()


Decision = Show | Ask | Abstain


class NoWait(Latest):
    """Latest that remembers the debounce, and does not wait for it."""

    delay_s = 0.0

    async def turn(self, uri: str, kind: Kind, delay_s: float) -> None:
        self.delay_s = delay_s
        await super().turn(uri, kind, 0.0)


class PausedModel:
    """A predictor whose answers the test gives."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []

    async def predict(self, request: EditRequest, on_step: object = None) -> Prediction:
        return await next(ask for ask in self.asks if ask.request is request).answer

    async def status(self) -> ModelStatus:
        return READY

    async def close(self) -> None:
        """Close nothing."""


class PausedSession(Session):
    """A session whose questions a test answers one by one."""

    def __init__(self, settings: LspSettings, clock: Callable[[], float]) -> None:
        self.model = PausedModel()
        super().__init__(self.model, settings, clock, reads=False)
        self.folders = [FOLDER.rstrip("/")]
        self.latest = self.requests.latest = NoWait()
        self.requests.ask = partial(self._ask, self.requests)  # type: ignore[method-assign]

    async def _ask(
        self,
        requests: Requests,
        question: PlacedRequest,
        settle: Callable[[Prediction], Show | Abstain],
    ) -> Show | Abstain:
        places = [each for each in getattr(settle, "args", ()) if isinstance(each, Place)]
        about = places[0].about if places else None
        said = f"{about.name}: {about.why}" if about is not None else ""
        delay_ms = round(1000 * self.latest.delay_s, 6)
        ask = Ask(question, delay_ms, said, self._joined(question) or LOOP.create_future())
        self.model.asks.append(ask)

        def settled(prediction: Prediction) -> Show | Abstain:
            ask.decision = settle(prediction)
            return ask.decision

        return await Requests.ask(requests, question, settled)

    def _joined(self, question: PlacedRequest) -> asyncio.Future[Prediction] | None:
        """Return the answer that a prefetch of this very question waits for."""
        for ask in self.model.asks:
            if ask.question.ahead_of and ask.is_open and _key(ask.question) == _key(question):
                return ask.answer
        return None

    def consider(self, query: Query) -> Decision:
        return self._start(self.ghost_text(query))

    def consider_edit(self, query: Query) -> Decision:
        return self._start(self.next_edit(query))

    def _start(self, asking: Coroutine[Any, Any, Show | Abstain]) -> Decision:
        task = LOOP.create_task(asking)
        known = len(self.model.asks)
        spin()
        if task.done():
            return task.result()
        return self._following(task, known)

    def _following(self, task: asyncio.Task[Show | Abstain], known: int = 0) -> Ask:
        ask = next(each for each in reversed(self.model.asks[known:]) if not each.question.ahead_of)
        assert ask.is_open, "neither asked nor decided"
        ask.task = task
        return ask

    def settle(self, ask: Ask, prediction: Prediction) -> Show | Abstain:
        """Answer a question, and return what is decided on the answer."""
        assert ask.task is not None
        if ask.is_open:
            ask.answer.set_result(prediction)
        spin()
        if ask.decision is None or (isinstance(ask.decision, Show) and ask.task.done()):
            return ask.task.result()
        return ask.decision

    def go_on(self, ask: Ask, decision: Show | Abstain) -> Decision:
        """Return the next question of the search, or its decision."""
        assert ask.task is not None
        return ask.task.result() if ask.task.done() else self._following(ask.task)

    def follow_up(self) -> Ask | None:
        """Return the question that is asked ahead of time now."""
        spin()
        ahead = [each for each in self.model.asks if each.question.ahead_of and each.is_open]
        return ahead[-1] if ahead else None

    def prefetched(self, ask: Ask, prediction: Prediction) -> None:
        """Answer a question that was asked ahead of time."""
        if ask.is_open:
            ask.answer.set_result(prediction)
        spin()


def _key(question: PlacedRequest) -> object:
    return Answers.key(question.request, question.others), question.request.region


def spin() -> None:
    """Let everything go on that waits for no test."""
    for _ in range(30):
        LOOP.run_until_complete(asyncio.sleep(0))
