"""Session that pauses at the model: a test answers its questions one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any, TypeVar

from redraft.lsp.context.gatherer import Gathered
from redraft.lsp.context.ranked_places import DocumentPlace
from redraft.lsp.context.region import TOKENS, Region
from redraft.lsp.documents.open_documents import Document
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.journal import AnswerDecided, Entry, QuestionAsked
from redraft.lsp.policy.ignore_files import IgnoreRules
from redraft.lsp.question import Question
from redraft.lsp.schedule import Kind, Latest
from redraft.lsp.session import Session
from redraft.lsp.snapshot import Snapshot
from redraft.lsp.suggestions.answer_cache import AnswerCache
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.gate.reasons import Abstain
from redraft.model.places.ranker import RankedPlace
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
from redraft.model.text.names import whole_name
from redraft.model.text.syntax import Syntax, parse_cached

from support.editors.predictor import READY

FOLDER = "file:///w/"
T = TypeVar("T")


class _Defined:
    """Index that knows which files define a name."""

    def __init__(self, defined: dict[str, set[str]]) -> None:
        self._defined = defined

    def definers(self, name: str, _language: str) -> set[str]:
        return self._defined.get(name, set())


class NamedPlaces:
    """Ranker of the lines that have a name which the edits changed, below the cursor first."""

    def rank(self, snapshot: Snapshot) -> list[DocumentPlace]:
        others = snapshot.opened.editable if snapshot.flags.other_documents else ()
        documents = [snapshot.document, *(o for o in others if o.uri != snapshot.uri)]
        found = []
        for number, document in enumerate(documents):
            cursor = snapshot.line if number == 0 else 0
            lines = sorted(range(len(document.lines)), key=lambda line: (line < cursor, line))
            for line in lines:
                text = document.lines[line]
                name = next((n.name for n in snapshot.names if whole_name(n.name).search(text)), "")
                if name:
                    place = RankedPlace(number, line, 0.1, 0.9, 1.0, 0.9, name, is_far=True)
                    found.append(DocumentPlace(document, place))
        return found

    def on_open(self, document: object) -> None:
        """Read nothing in advance."""


class Shelf:
    """Context of a question: the text alone, and the files that define a name."""

    def __init__(self, opened: dict[str, Document]) -> None:
        self.opened = opened
        self.rules = IgnoreRules()
        self.unread: dict[str, str] = {}
        self.defined: dict[str, set[str]] = {}
        index = SimpleNamespace(generation=_Defined(self.defined))
        self.indexer = SimpleNamespace(index=index, is_complete=True)
        self.places = NamedPlaces()
        self.unopened = SimpleNamespace(get=lambda uri: None)

    def gather(self, snapshot: Snapshot) -> Gathered:
        return Gathered(self.region_at(snapshot), 0.0, (), (), 0, 0, 0)

    look = gather

    def syntax(self, snapshot: Snapshot) -> Syntax | None:
        return parse_cached(snapshot.text, snapshot.language)

    def region_at(self, snapshot: Snapshot) -> Region:
        first, last = window(snapshot.line, len(snapshot.lines))
        costs = [estimate(line) + 3 for line in snapshot.lines[first:last]]
        return Region(*shrunk(costs, first, last, snapshot.line, TOKENS), "", snapshot.line)

    def complete(self, question: Question) -> EditRequest:
        place = question.snapshot
        if question.task == "infill":
            return replace(question.request, edits=place.edits.finished)
        return replace(question.request, edits=place.recent, diagnostics=place.reports)

    def diagnostics(self, _: object) -> tuple[Diagnostic, ...]:
        return ()

    def importable(self, snapshot: Snapshot, edits: Sequence[RecentEdit]) -> tuple[Importable, ...]:
        return ()

    def on_change(self, uri: str, splices: object) -> None:
        """Move nothing: no region is kept."""

    def on_close(self, uri: str) -> None:
        """Forget nothing: there is nothing to forget."""


# --- a session that pauses at the model ----------------------------------------------------------

LOOP = asyncio.new_event_loop()
LOOP.set_exception_handler(lambda loop, context: None)  # of questions that a test leaves open


@dataclass(eq=False)
class Ask:
    """A question to the model that waits for the answer of a test."""

    question: Question
    delay_ms: float
    reason: str  # of another place: the name that leads there, and why
    answer: asyncio.Future[Prediction]
    task: asyncio.Task[Offer | Abstain] | None = None
    decision: Offer | Abstain | None = None  # on the answer

    @property
    def query(self) -> Snapshot:
        return self.question.snapshot

    @property
    def request(self) -> EditRequest:
        return self.question.request

    @property
    def asked_from(self) -> Snapshot:
        return self.query.asked_from

    @property
    def origin(self) -> Snapshot | None:
        return self.query.visited_from

    @property
    def is_open(self) -> bool:
        return not self.answer.done()


Decision = Offer | Ask | Abstain


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
        self.workspace.folders = [FOLDER.rstrip("/")]
        self.latest = self.schedule.latest = NoWait()
        self.journal.subscribe(self._hear)

    def _hear(self, entry: Entry) -> None:
        if isinstance(entry, QuestionAsked):
            question = entry.question
            about = question.about
            said = f"{about.name}: {about.why}" if about is not None else ""
            delay_ms = round(1000 * self.latest.delay_s, 6)
            answer = self._joined(question) or LOOP.create_future()
            self.model.asks.append(Ask(question, delay_ms, said, answer))
        elif isinstance(entry, AnswerDecided):
            for ask in self.model.asks:
                if ask.question is entry.answer.question:
                    ask.decision = entry.decision

    def _joined(self, question: Question) -> asyncio.Future[Prediction] | None:
        """Return the answer that a prefetch of this very question waits for."""
        for ask in self.model.asks:
            if ask.question.after and ask.is_open and _key(ask.question) == _key(question):
                return ask.answer
        return None

    def consider(self, snapshot: Snapshot) -> Decision:
        return self._start(self.ghost_text(snapshot))

    def consider_edit(self, snapshot: Snapshot) -> Decision:
        return self._start(self.next_edit(snapshot))

    def _start(self, asking: Coroutine[Any, Any, Offer | Abstain]) -> Decision:
        task = LOOP.create_task(asking)
        known = len(self.model.asks)
        spin()
        if task.done():
            return task.result()
        return self._following(task, known)

    def _following(self, task: asyncio.Task[Offer | Abstain], known: int = 0) -> Ask:
        ask = next(each for each in reversed(self.model.asks[known:]) if not each.question.after)
        assert ask.is_open, "neither asked nor decided"
        ask.task = task
        return ask

    def settle(self, ask: Ask, prediction: Prediction) -> Offer | Abstain:
        """Answer a question, and return what is decided on the answer."""
        assert ask.task is not None
        if ask.is_open:
            ask.answer.set_result(prediction)
        spin()
        if ask.decision is None or (isinstance(ask.decision, Offer) and ask.task.done()):
            return ask.task.result()
        return ask.decision

    def go_on(self, ask: Ask, decision: Offer | Abstain) -> Decision:
        """Return the next question of the search, or its decision."""
        assert ask.task is not None
        return ask.task.result() if ask.task.done() else self._following(ask.task)

    def follow_up(self) -> Ask | None:
        """Return the question that is asked ahead of time now."""
        spin()
        ahead = [each for each in self.model.asks if each.question.after and each.is_open]
        return ahead[-1] if ahead else None

    def prefetched(self, ask: Ask, prediction: Prediction) -> None:
        """Answer a question that was asked ahead of time."""
        if ask.is_open:
            ask.answer.set_result(prediction)
        spin()


def _key(question: Question) -> object:
    return AnswerCache.key(question.request, question.context_hash), question.request.region


def in_loop(call: Callable[[], T]) -> T:
    """Return what a function returns that needs a running loop, as every handler has one."""

    async def called() -> T:
        return call()

    return LOOP.run_until_complete(called())


def spin() -> None:
    """Let everything go on that waits for no test."""
    for _ in range(30):
        LOOP.run_until_complete(asyncio.sleep(0))
