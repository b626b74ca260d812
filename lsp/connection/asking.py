"""Puts the session's questions to the model: debounce, turns, failures, and what is asked ahead.

Ghost text comes first. A question about it stops one about the next edit, which in turn waits until
none is open; what is asked ahead of time stops for either. Knows nothing of the protocol.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from redraft.model.errors import EngineGone, ModelNotReady, Overloaded, RedraftError
from redraft.model.records import Prediction

from ..recording.recorder import Question
from ..session.decisions import Abstain, Ask, Decision, Show
from ..session.other_places import MOST_PLACES
from ..session.questions import Query
from ..session.suggestions import Suggestion
from .status import Kind
from .turns import Lane, Superseded, ended

if TYPE_CHECKING:
    from .server import RedraftServer

logger = logging.getLogger(__name__)


async def ask(ls: RedraftServer, question: Ask) -> Show | Abstain:
    """Wait out the debounce, look again, then ask the model."""
    lane = ls.lane(question.asked_from.uri, question.request.task)
    try:
        again = await _again(ls, lane, question, question.delay_ms / 1000)
        if not isinstance(again, Ask):
            return again
        if question.request.task == "infill":
            return await _predict(ls, lane, ls.session.complete(again))
        return await _predict_edits(ls, lane, again)
    except Superseded:
        return Abstain("a newer request took its place", stale=True)


async def _again(ls: RedraftServer, lane: Lane, question: Ask, wait_s: float) -> Decision:
    """What the session says after a wait: the answer before this one may serve."""
    query, is_edit = question.asked_from, question.request.task == "next_edit"
    await lane.turn(wait_s, ls.lane(query.uri, "infill") if is_edit else None)
    document = ls.documents.get(query.uri)
    if document is None or document.revision != query.revision:
        return Abstain("the document changed during the delay", stale=True)
    return ls.session.consider_edit(query) if is_edit else ls.session.consider(query)


async def _predict_edits(ls: RedraftServer, lane: Lane, question: Ask) -> Show | Abstain:
    """Ask about the region around the cursor, without the line that is still being typed and then
    with it, and where nothing comes of that about others."""
    decision: Show | Abstain = Abstain("")
    for _ in range(2 + max(MOST_PLACES.values())):
        rest_s = question.not_before_s - ls.clock()
        if rest_s > 0:
            again = await _again(ls, lane, question, rest_s)
            if not isinstance(again, Ask):
                return again
            question = again
        decision = await _predict(ls, lane, ls.session.complete(question))
        if isinstance(decision, Show) or decision.stale or not decision.reason:
            return decision
        on = ls.session.look_on(question.asked_from)
        if not isinstance(on, Ask):
            return on
        question = on
    return decision


async def _predict(ls: RedraftServer, lane: Lane, question: Ask) -> Show | Abstain:
    edited_s = ls.session.history.last_edit_s()
    since_edit_s = None if edited_s is None else ls.clock() - edited_s
    with ls.recorder.asking(question, since_edit_s) as asked:
        return await _answer(ls, lane, question, asked)


async def _answer(ls: RedraftServer, lane: Lane, question: Ask, asked: Question) -> Show | Abstain:
    settings, started_s = ls.session.settings, ls.clock()
    try:
        with ls.line.thinking(silent=ls.watch.waiting is not None):
            prediction = await lane.run(
                lambda: _first_in_line(ls, question), settings.timeout_ms / 1000
            )
    except (Superseded, asyncio.CancelledError):
        ls.line.idle()
        raise
    except TimeoutError:
        return _failed(
            ls,
            f"the model took longer than {settings.timeout_ms / 1000:g} s: this machine is busy or "
            "slow ('redraft bench' measures it)",
        )
    except (ModelNotReady, EngineGone) as error:
        ls.watch.start()
        return _failed(ls, *(ls.watch.waiting or (str(error), "Warning")))
    except Overloaded as error:
        return _failed(ls, f"{error} (again in {error.retry_after_s:g} s)")
    except RedraftError as error:
        return _failed(ls, str(error), "Error")
    except Exception as error:
        logger.exception("the predictor failed")
        return _failed(ls, f"{type(error).__name__}: {error}", "Error")
    document = ls.documents.get(question.asked_from.uri)
    target = ls.documents.get(question.query.uri)
    took_ms = 1000 * (ls.clock() - started_s)
    decision = ls.session.settle(
        question,
        prediction,
        document.revision if document is not None else None,
        took_ms,
        lambda: document.text if document is not None else "",
        target.revision if target is not None else None,
    )
    asked.answered(prediction, decision, took_ms)
    return decision


def _failed(ls: RedraftServer, reason: str, kind: Kind = "Warning") -> Abstain:
    ls.line.tell(reason, kind)
    return Abstain("")  # told already


async def _first_in_line(ls: RedraftServer, question: Ask) -> Prediction:
    """The model's answer, after what matters less has let go of it."""
    uri = question.asked_from.uri
    ahead = ls.ahead.get(uri)
    if ahead is not None and ahead.answers(question):
        return await asyncio.shield(ahead.task)  # under way already
    if question.request.task == "infill":
        await ended(ls.lane(uri, "next_edit").interrupt())
    for other in list(ls.ahead):  # of whatever document: the model has one turn at a time
        await ended(stop_ahead(ls, other))
    return await ls.predictor.predict(question.request)


# --- ahead of time -----------------------------------------------------------------------------


class Ahead:
    """A question asked before anyone needs the answer."""

    def __init__(self, question: Ask, shown: str, task: asyncio.Task[Prediction]) -> None:
        self.question = question
        self.shown = shown  # id of the edit whose acceptance it is for
        self.task = task

    def answers(self, question: Ask) -> bool:
        """Is this, still on its way, the answer to ``question`` too?"""
        mine = self.question
        same = (mine.query.uri, mine.query.text) == (question.query.uri, question.query.text)
        if mine.origin is not None or question.origin is not None:
            same = same and mine.request.region == question.request.region
        return same and question.request.task == "next_edit" and not self.task.done()


def ask_ahead(ls: RedraftServer, query: Query, shown: Suggestion) -> None:
    """Compute what follows the acceptance of an edit that is ``shown`` now to the user who is where
    ``query`` says: one question after the other, until one has an answer worth showing."""
    uri, ahead = shown.uri, ls.ahead.get(shown.uri)
    if ahead is not None and ahead.shown == shown.id:
        return  # on it already
    question = ls.session.follow_up(query, shown)
    if question is None:
        return
    stop_ahead(ls, uri)

    async def predict() -> Prediction:
        timeout_s = ls.session.settings.timeout_ms / 1000
        prediction = await asyncio.wait_for(ls.predictor.predict(question.request), timeout_s)
        ls.session.foresee(question, prediction)
        ls.recorder.foreseen(question, prediction, shown.id)
        return prediction

    def done(task: asyncio.Task[Prediction]) -> None:
        if _forget(ls, uri, task) and ls.documents.get(uri) is not None:
            ask_ahead(ls, query, shown)

    ahead = ls.ahead[uri] = Ahead(question, shown.id, asyncio.ensure_future(predict()))
    ahead.task.add_done_callback(done)


def stop_ahead(ls: RedraftServer, uri: str) -> frozenset[asyncio.Task[Prediction]]:
    """Give up what is computed ahead of time for a document."""
    ahead = ls.ahead.pop(uri, None)
    if ahead is None:
        return frozenset()
    ahead.task.cancel()
    return frozenset({ahead.task})


def _forget(ls: RedraftServer, uri: str, task: asyncio.Task[Prediction]) -> bool:
    """It is over. Did it end well, with nothing in its place yet?"""
    ahead = ls.ahead.get(uri)
    latest = ahead is not None and ahead.task is task
    if latest:
        del ls.ahead[uri]
    if task.cancelled():
        return False
    error = task.exception()  # it was for nobody yet: whoever asks next sees it for themselves
    if error is not None:
        logger.debug("nothing could be computed ahead of time: %s", error)
    return latest and error is None
