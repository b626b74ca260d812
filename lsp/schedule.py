"""Requests of one client to the model: the newest wins, and ghost text goes first."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Hashable
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from redraft.model.errors import EngineGone, ModelNotReady, Overloaded, RedraftError
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Prediction, Predictor, Task

from .memory import Answers
from .policy.load import CALM_S
from .recording.own_gate import OwnGate
from .recording.recorder import Recorder
from .settings import LspSettings
from .suggestion import PlacedRequest, Query, Show

if TYPE_CHECKING:
    from .session import Session

logger = logging.getLogger(__name__)

#: Seconds without a key that end the typing of a line: more than there mostly are between two keys.
REST_S = 0.3
#: Seconds without a key that end a deletion: a key held down repeats after about half a second.
DELETED_S = 0.7
_LATENCY_WEIGHT = 0.3  # of the newest answer in the running mean

T = TypeVar("T")
Kind = Literal["infill", "next_edit", "prefetch"]


class Superseded(Exception):
    """A newer request took this one's place, or its document was closed."""


class _Slot(NamedTuple):
    uri: str
    kind: Kind
    runs: bool  # False: it waits for its turn


class Latest:
    """Run at most one request of each kind per document, and let one more wait.

    A new request replaces the waiting one at once. It cancels the running one only when it starts
    to run itself, because an answer that arrives before may still be shown. Ghost text cancels
    next edits of its document. Both cancel prefetches, except one with the same key: they join it.
    """

    def __init__(self) -> None:
        self._tasks: dict[_Slot, tuple[Hashable, asyncio.Future[Any]]] = {}

    async def turn(self, uri: str, kind: Kind, delay_s: float) -> None:
        """Wait out the debounce; a next edit also waits until no ghost text is under way.

        Raises:
            Superseded: a newer request of this kind came for the document.
        """
        await self._only(_Slot(uri, kind, False), None, self._ready(uri, kind, delay_s))

    async def run(
        self, uri: str, kind: Kind, key: Hashable, work: Callable[[], Awaitable[T]], limit_s: float
    ) -> T:
        """Await ``work()``, or join the prefetch that runs under the same key.

        Raises:
            Superseded: a newer request cancelled it.
            TimeoutError: it took longer than ``limit_s``.
        """
        prefetch = self._take_prefetch(key)
        for slot in [slot for slot in self._tasks if _yields(slot, uri, kind)]:
            self._cancel(slot)

        async def limited() -> T:
            async with asyncio.timeout(limit_s):
                return await work()

        return await self._only(_Slot(uri, kind, True), key, prefetch or limited())

    def cancel(self, uri: str, *kinds: Kind) -> None:
        """Cancel the requests of a document: those of ``kinds``, or all."""
        for slot in [slot for slot in self._tasks if slot.uri == uri]:
            if not kinds or slot.kind in kinds:
                self._cancel(slot)

    async def _only(self, slot: _Slot, key: Hashable, work: Awaitable[T]) -> T:
        """Await ``work`` in place of what its slot holds."""
        self._cancel(slot)
        task = asyncio.ensure_future(work)
        self._tasks[slot] = key, task
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise  # the client cancelled this very request
            raise Superseded from None
        finally:
            if self._tasks.get(slot, (None, None))[1] is task:
                del self._tasks[slot]

    async def _ready(self, uri: str, kind: Kind, delay_s: float) -> None:
        await asyncio.sleep(delay_s)
        while kind == "next_edit" and (ghosts := self._ghosts(uri)):
            await asyncio.wait(ghosts)
            await asyncio.sleep(0)  # its request goes on: from waiting to running

    def _ghosts(self, uri: str) -> list[asyncio.Future[Any]]:
        """Return what waits or runs for the ghost text of a document."""
        return [task for slot, (_, task) in self._tasks.items() if slot[:2] == (uri, "infill")]

    def _cancel(self, slot: _Slot) -> None:
        if slot in self._tasks:
            self._tasks.pop(slot)[1].cancel()

    def _take_prefetch(self, key: Hashable) -> asyncio.Future[Any] | None:
        for slot, (known, task) in self._tasks.items():
            if slot.kind == "prefetch" and slot.runs and known == key and not task.done():
                return self._tasks.pop(slot)[1]
        return None


def _yields(slot: _Slot, uri: str, kind: Kind) -> bool:
    """Return whether what runs in ``slot`` is cancelled when ``kind`` starts for ``uri``."""
    if not slot.runs:
        return False
    if slot.kind == "prefetch":
        return kind != "prefetch"
    return slot.uri == uri and slot.kind == "next_edit" and kind == "infill"


class Requests:
    """Ask the model for one client, and keep its answers."""

    def __init__(
        self,
        predictor: Predictor,
        clock: Callable[[], float],
        settings: Callable[[], LspSettings],
        recorder: Recorder,
        own_gate: OwnGate,
    ) -> None:
        self.latest, self.answers = Latest(), Answers()
        self._predictor, self._clock, self._settings = predictor, clock, settings
        #: Entered while the model works on a request that the user waits for.
        self.busy: Callable[[], AbstractContextManager[object]] = nullcontext
        self._recorder, self._own_gate = recorder, own_gate
        self._latency_ms: dict[Task, float] = {}  # running means

    def latency_ms(self, task: Task) -> float:
        """Return the mean time of an answer, 0 while none came."""
        return self._latency_ms.get(task, 0.0)

    async def ask(
        self, question: PlacedRequest, settle: Callable[[Prediction], Show | Abstain]
    ) -> Show | Abstain:
        """Ask the model, decide on its answer by ``settle``, and record both.

        Raises:
            Superseded: a newer request took the place of this one.
        """
        if question.ahead_of:
            prediction = await self._predict("prefetch", question)
            if isinstance(prediction, Abstain):
                return prediction
            self._recorder.prefetched(question, prediction)
            return settle(prediction)
        task, started_s = question.request.task, self._clock()
        number = self._recorder.asked(question)
        with self.busy():
            kind: Kind = "infill" if task == "infill" else "next_edit"
            prediction = await self._predict(kind, question)
        if isinstance(prediction, Abstain):
            return prediction
        took_ms = 1000 * (self._clock() - started_s)
        known_ms = self._latency_ms.get(task, took_ms)
        self._latency_ms[task] = known_ms + _LATENCY_WEIGHT * (took_ms - known_ms)
        self._own_gate.answered(prediction)
        decision = settle(prediction)
        self._recorder.answered(number, question, prediction, decision, took_ms)
        return decision

    async def _predict(self, kind: Kind, question: PlacedRequest) -> Prediction | Abstain:
        """Return the model's answer, which is kept, or why there is none."""
        uri, request, others = question.asked_from.uri, question.request, question.others
        limit_s = self._settings().timeout_ms / 1000
        key = (self.answers.key(request, others), request.region)
        try:
            prediction = await self.latest.run(
                uri, kind, key, lambda: self._predictor.predict(request), limit_s
            )
        except TimeoutError:
            advice = "its machine is busy or slow ('redraft bench' measures it), or cut off"
            return Abstain("timeout", f"the model took longer than {limit_s:g} s: {advice}")
        except (ModelNotReady, EngineGone) as error:
            return Abstain("not_ready", str(error))
        except Overloaded as error:
            return Abstain("overloaded", f"{error} (again in {error.retry_after_s:g} s)")
        except RedraftError as error:
            return Abstain("failed", str(error))
        except Superseded:
            raise
        except Exception as error:
            logger.exception("the predictor failed")
            return Abstain("failed", f"{type(error).__name__}: {error}")
        self.answers.put(request, prediction, others)
        return prediction


def delay_s(session: Session, query: Query, task: Task) -> float:
    """Return how long to wait before the model is asked.

    Ghost text waits until a deletion is over, next edits until a line is no longer typed in.
    """
    if query.invoked:
        return 0.0
    if session.load.now().effort == "calm":
        since_s = session.since_edit_s()
        return 0.0 if since_s is None else max(0.0, CALM_S - since_s)
    now_s, latency_ms = session.clock(), session.requests.latency_ms(task)
    wait_s = session.debounce.delay_ms(session.settings.delay_ms, latency_ms, now_s) / 1000
    typed_s = session.history.typed_at_s(query.uri, query.line)
    if task == "infill":
        return max(wait_s, deleting_s(session, query))
    if typed_s is None:
        return wait_s
    return max(wait_s, typed_s + REST_S - now_s)


def deleting_s(session: Session, query: Query) -> float:
    """Return the seconds until the user is taken to have ended a deletion, 0 for none."""
    last = session.history.last_edit(query.uri)
    if query.invoked or last is None or not session.memory(query.uri).is_deleting:
        return 0.0
    return max(0.0, last[0] + DELETED_S - session.clock())


async def rest(session: Session, query: Query) -> None:
    """Wait for the debounce of a next edit.

    Raises:
        Superseded: a newer request took the place of this one.
    """
    wait_s = delay_s(session, query, "next_edit")
    await session.requests.latest.turn(query.uri, "next_edit", wait_s)
