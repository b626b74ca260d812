"""Plays a recording through the language server and asks it at every moment what it would show.

The server is the one that editors talk to, with its documents, history, context, debounce, lanes,
suppression and memory; only its clock is simulated and its index works when told to. What happens
later in the recording is known to the scores alone. Knows nothing of files or of many recordings.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from redraft.lsp import ghost_text, search
from redraft.lsp.session import Session
from redraft.lsp.settings import LspSettings
from redraft.lsp.suggestion import Query, Show
from redraft.model.edits.edit import Edit
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Task

from .editor import Editor
from .script import ReplayMoment, Script
from .timed_predictor import TRACE, ReplayPredictor, TimedAnswer, Trace, run

#: Lines from the cursor within which an edit is in sight; a farther one takes two Tabs.
NEAR_LINES = 2

TASKS: tuple[Task, ...] = ("infill", "next_edit")

#: Turns of the loop until both questions have been put: before anything else happens.
_STEPS = 3


@dataclass(frozen=True, slots=True)
class Offer:
    """Something to put in the place of text[start:end] of a document, shown or not."""

    task: Task
    document: int
    text: str  # of the document
    done: int  # steps of the document until then
    start: int
    end: int
    replacement: str
    confidence: float
    jumps: bool = False  # Tab goes there first
    id: str = ""  # the session's; "" for what is not shown

    @property
    def edit(self) -> Edit:
        return Edit(self.text, self.start, self.end, self.replacement)

    @property
    def result(self) -> str:
        return self.edit.result

    @property
    def old(self) -> str:
        return self.edit.old

    def least(self) -> Offer:
        """The same without characters that stay at either end."""
        least = self.edit.least()
        return replace(self, start=least.start, end=least.end, replacement=least.new)


@dataclass(slots=True)
class PlayedQuestion:
    """One of the two questions an editor asks at a moment, and what came of it."""

    task: Task
    trace: Trace
    shown: Offer | None = None
    late: bool = False  # the document had changed by then, and what was left of it held
    abstained: Abstain | None = None  # why nothing is shown; None: something is
    arrived_s: float = 0.0  # simulated
    finished: float = 0.0  # real time

    @property
    def answered(self) -> list[TimedAnswer]:
        """What the model answered in time for this; not what was asked ahead, or given up."""
        return [
            each
            for each in self.trace.answers
            if each.prediction is not None and 0 < each.ended <= self.finished
        ]


@dataclass(slots=True)
class MomentResult:
    """What the session did at a moment."""

    moment: ReplayMoment
    asked_s: float  # simulated
    askings: tuple[PlayedQuestion, ...]
    finished: bool = False

    @property
    def answers(self) -> Iterator[TimedAnswer]:
        for asking in self.askings:
            yield from asking.trace.answers


OnOutcome = Callable[[MomentResult], None]


def play(
    script: Script,
    chosen: Collection[str],
    predictor: ReplayPredictor,
    settings: LspSettings,
    on_outcome: OnOutcome,
) -> None:
    """Play a recording. ``on_outcome`` hears of each chosen moment, in order, once nothing more can
    come of it.

    Raises:
        RedraftError: the model is gone.
    """
    run(_Play(script, chosen, predictor, settings, on_outcome).play())


@dataclass(slots=True)
class _Play:
    script: Script
    chosen: Collection[str]
    predictor: ReplayPredictor
    settings: LspSettings
    on_outcome: OnOutcome
    open: list[MomentResult] = field(default_factory=list)
    session: Session = field(init=False)
    editor: Editor = field(init=False)

    async def play(self) -> None:
        loop = asyncio.get_running_loop()
        self.session = Session(self.predictor, self.settings, loop.time, reads=False)
        status = await self.predictor.status()
        self.session.context_tokens = lambda: status.context_tokens
        self.editor = Editor(self.session)
        tasks: set[asyncio.Task[None]] = set()
        self.editor.begin()
        begins_s = loop.time()
        for at_s, act in self._schedule():
            await asyncio.sleep(max(0.0, begins_s + at_s - loop.time()))
            if isinstance(act, ReplayMoment):
                self._flush()
                tasks.add(asyncio.ensure_future(self._ask(act)))
                for _ in range(_STEPS):
                    await asyncio.sleep(0)
            else:
                act()
            if self.predictor.failure is not None:
                raise self.predictor.failure
        await asyncio.gather(*tasks)
        if self.predictor.failure is not None:
            raise self.predictor.failure
        await self.session.leave()
        self._flush(all_=True)

    def _schedule(self) -> Iterator[tuple[float, ReplayMoment | Callable[[], None]]]:
        """What happens when, in s: the recording's events, and between them the questions."""
        asks = [each for each in self.script.moments if each.id in self.chosen]
        at = 0
        for event in self.script.stream.events:
            at_s = self.script.seconds(event)
            while at < len(asks) and asks[at].asks_s < at_s:
                yield asks[at].asks_s, asks[at]
                at += 1
            yield at_s, lambda event=event: self.editor.tell(event)  # type: ignore[misc]
        for left in asks[at:]:
            yield left.asks_s, left

    # --- a moment ----------------------------------------------------------------------------

    async def _ask(self, moment: ReplayMoment) -> None:
        """Ask for ghost text and for the next edit, as editors do when the user pauses."""
        now_s = asyncio.get_running_loop().time()
        outcome = MomentResult(
            moment, now_s, tuple(PlayedQuestion(task, self._trace()) for task in TASKS)
        )
        self.open.append(outcome)
        self.session.context.catch_up()
        query = self.editor.query(moment.document)
        if query is None:
            for each in outcome.askings:
                each.abstained = Abstain("document_closed", "the file was closed")
                self._ends(each)
        else:
            await asyncio.gather(*(self._one(each, query) for each in outcome.askings))
        outcome.finished = True

    def _trace(self) -> Trace:
        return Trace(self.predictor.real_time())

    async def _one(self, asking: PlayedQuestion, query: Query) -> None:
        TRACE.set(asking.trace)
        session, is_infill = self.session, asking.task == "infill"
        decision = await (session.ghost_text(query) if is_infill else session.next_edit(query))
        if isinstance(decision, Abstain) and decision.is_stale:
            decision = self._again(asking, query.uri) or decision
        elif isinstance(decision, Show):
            asking.shown = self._offer(asking.task, decision, query)
        if isinstance(decision, Abstain):
            asking.abstained = decision
        self._ends(asking)

    def _ends(self, asking: PlayedQuestion) -> None:
        asking.arrived_s = asyncio.get_running_loop().time()
        asking.finished = self.predictor.real_time()

    def _again(self, asking: PlayedQuestion, uri: str) -> Show | None:
        """Return what still holds of an answer that came after the user typed on.

        Editors ask with every key. If nothing holds, the model is not asked before the next moment.
        """
        with suppress(StopIteration):
            query = self.editor.query(self.editor.document(uri))
            if query is None:
                return None
            known = ghost_text.known if asking.task == "infill" else search.known_edit
            decision = known(self.session, query)
            if isinstance(decision, Show):
                asking.shown, asking.late = self._offer(asking.task, decision, query), True
                return decision
        return None

    def _offer(self, task: Task, show: Show, query: Query) -> Offer:
        made, least = show.suggestion, show.suggestion.least()
        document = self.editor.document(made.uri)
        done = self.editor.steps.get(document, 0)
        if task == "infill":
            at = query.cursor
            return Offer(
                task, document, query.text, done, at, at, show.text, made.confidence, id=made.id
            )
        first, last = made.lines
        jumps = made.uri != query.uri or not first - NEAR_LINES <= query.line < last + NEAR_LINES
        return Offer(
            task, document, made.text, done, least.start, least.end, least.replacement,
            made.confidence, jumps, made.id,
        )  # fmt: skip

    # --- telling -----------------------------------------------------------------------------

    def _flush(self, all_: bool = False) -> None:
        """Tell of the moments that are over. The last one may still ask ahead of time."""
        while self.open and self.open[0].finished:
            self.on_outcome(self.open.pop(0))
        assert not (all_ and self.open)
