"""Plays a recording through a session and asks at every moment for what it would show.

The session is the one of the language server, with its documents, history, context, debounce,
filters and memory; only its clock is simulated, and the index is updated on request. Later events
of the recording are known to the scores only.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Collection, Iterator
from dataclasses import dataclass

from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.learning.recorded_moments import ReplayMoment, Script
from redraft.lsp.recording.recording_events import Event
from redraft.lsp.session import Session
from redraft.lsp.snapshot import Snapshot
from redraft.lsp.suggestions.suggestion import Offer
from redraft.model.edits.edit import Edit
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Task

from .clock import SimulatedLoop
from .editor import ReplayEditor
from .simulated_predictor import TRACE, ReplayPredictor, TimedAnswer, Trace

#: Lines from the cursor within which an edit is in sight; a farther one takes two Tabs.
NEAR_LINES = 2

TASKS: tuple[Task, ...] = ("infill", "next_edit")

#: Turns of the loop until both questions have been asked: before anything else happens.
_TURNS = 3


@dataclass(frozen=True, slots=True)
class ShownEdit:
    """An edit of a document that is shown."""

    id: str  # the session's
    task: Task
    document: int
    done: int  # changes of the document until then
    edit: Edit
    confidence: float
    jumps: bool = False  # Tab goes there first


@dataclass(slots=True)
class EditorQuestion:
    """EditorQuestion that an editor asks at a moment (ghost text or next edit), with its answer."""

    task: Task
    trace: Trace
    shown: ShownEdit | None = None
    late: bool = False  # the document had changed by then, and the rest of it was still valid
    reason: str = ""  # why nothing is shown
    arrived_s: float = 0.0  # simulated
    finished: float = 0.0  # real time

    @property
    def answered(self) -> list[TimedAnswer]:
        """The model's answers in time for this, not those asked ahead or given up."""
        return [
            each
            for each in self.trace.answers
            if each.prediction is not None and 0 < each.ended <= self.finished
        ]


@dataclass(slots=True)
class MomentResult:
    """Questions and answers of a moment."""

    moment: ReplayMoment
    asked_s: float  # simulated
    questions: tuple[EditorQuestion, ...]
    finished: bool = False

    @property
    def shown(self) -> EditorQuestion | None:
        """The question whose answer is shown."""
        return next((each for each in self.questions if each.shown is not None), None)


def play(
    script: Script, chosen: Collection[str], predictor: ReplayPredictor, settings: LspSettings
) -> Iterator[MomentResult]:
    """Play a recording; yield each chosen moment, in order, once its requests are done.

    Args:
        chosen: ids of moments.

    Raises:
        RedraftError: the model is gone.
    """
    results = _Player(script, predictor, settings).results(chosen)

    async def find_next() -> MomentResult | None:
        return await anext(results, None)

    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        while (result := runner.run(find_next())) is not None:
            yield result


class _Player:
    def __init__(self, script: Script, predictor: ReplayPredictor, settings: LspSettings) -> None:
        self._script, self._predictor, self._settings = script, predictor, settings

    async def results(self, chosen: Collection[str]) -> AsyncIterator[MomentResult]:
        loop, predictor = asyncio.get_running_loop(), self._predictor
        self._session = Session(predictor, self._settings, loop.time, reads=False)
        status = await predictor.status()
        self._session.workspace.context_tokens = status.context_tokens
        self._editor = ReplayEditor(self._session)
        begins_s, tasks = loop.time(), set[asyncio.Task[None]]()
        open_ = deque[MomentResult]()
        for at_s, act in self._schedule(chosen):
            await asyncio.sleep(max(0.0, begins_s + at_s - loop.time()))
            if isinstance(act, ReplayMoment):
                while open_ and open_[0].finished:  # it may still ask ahead until now
                    yield open_.popleft()
                questions = (EditorQuestion(task, Trace(predictor.real_time())) for task in TASKS)
                open_.append(MomentResult(act, loop.time(), tuple(questions)))
                tasks.add(asyncio.ensure_future(self._ask(open_[-1])))
                for _ in range(_TURNS):
                    await asyncio.sleep(0)
            else:
                self._editor.tell(act)
            if predictor.failure is not None:
                raise predictor.failure
        await asyncio.gather(*tasks)
        if predictor.failure is not None:
            raise predictor.failure
        await self._session.leave()
        for result in open_:
            yield result

    def _schedule(self, chosen: Collection[str]) -> Iterator[tuple[float, ReplayMoment | Event]]:
        """Yield what happens when, in s: the recording's events, and the questions among them."""
        moments = deque(each for each in self._script.moments if each.id in chosen)
        for event in self._script.recording.events:
            at_s = self._script.seconds(event)
            while moments and moments[0].asks_s < at_s:
                yield moments[0].asks_s, moments.popleft()
            yield at_s, event
        for left in moments:
            yield left.asks_s, left

    # --- a moment ----------------------------------------------------------------------------

    async def _ask(self, result: MomentResult) -> None:
        """Ask for ghost text and for the next edit, as editors do when the user pauses."""
        self._session.workspace.context.catch_up()
        query = self._editor.snapshot(result.moment.document)
        await asyncio.gather(*(self._put(each, query) for each in result.questions))
        result.finished = True

    async def _put(self, question: EditorQuestion, query: Snapshot | None) -> None:
        """Ask one question, and note its answer."""
        TRACE.set(question.trace)
        session, is_infill = self._session, question.task == "infill"
        decision: Offer | Abstain = Abstain("document_closed", "the file was closed")
        if query is not None:
            decision = await (session.ghost_text(query) if is_infill else session.next_edit(query))
            if isinstance(decision, Abstain) and decision.is_stale:
                now = self._query(query.uri)
                known = self._known(question.task, now) if now is not None else None
                if known is not None:
                    question.late, decision, query = True, known, now
        if isinstance(decision, Abstain):
            question.reason = decision.reason
        elif query is not None:
            question.shown = self._offer(question.task, decision, query)
        question.arrived_s = asyncio.get_running_loop().time()
        question.finished = self._predictor.real_time()

    def _query(self, uri: str) -> Snapshot | None:
        document = self._editor.document(uri)
        return None if document is None else self._editor.snapshot(document)

    def _known(self, task: Task, query: Snapshot) -> Offer | None:
        """Return what is still valid of an answer that came after the user typed on.

        Editors ask with every key. If nothing is, the model is not asked before the next moment.
        """
        flow = self._session.ghosts if task == "infill" else self._session.edits
        decision = flow.decide_without_model(query)
        return decision if isinstance(decision, Offer) else None

    def _offer(self, task: Task, show: Offer, query: Snapshot) -> ShownEdit:
        made = show.suggestion
        document = self._editor.document(made.uri)
        assert document is not None
        edit, jumps = Edit(query.text, query.cursor, query.cursor, show.text), False
        if task == "next_edit":
            edit, (first, last) = made.edit.least(), made.lines
            is_near = first - NEAR_LINES <= query.line < last + NEAR_LINES
            jumps = made.uri != query.uri or not is_near
        done = self._editor.steps[document]
        return ShownEdit(made.id, task, document, done, edit, made.confidence, jumps)
