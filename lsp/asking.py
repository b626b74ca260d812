"""Puts the session's questions to the model: debounce, turns, failures, and what is asked ahead.

Ghost text comes first. A question about it stops one about the next edit, which in turn waits until
none is open; what is asked ahead of time stops for either. Knows nothing of the protocol.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING

from ..model.errors import EngineGone, ModelNotReady, Overloaded, RedraftError
from ..model.records import Prediction
from .decisions import Abstain, Ask, Show
from .lanes import Lane, Superseded, ended
from .status import Kind

if TYPE_CHECKING:
    from .app import RedraftServer

logger = logging.getLogger(__name__)


async def ask(ls: RedraftServer, question: Ask) -> Show | Abstain:
    """Wait out the debounce, look again, then ask the model."""
    uri, task = question.query.uri, question.request.task
    lane = ls.lane(uri, task)
    first = ls.lane(uri, "infill") if task == "next_edit" else None
    try:
        await lane.turn(question.delay_ms / 1000, first)
        document = ls.documents.get(uri)
        if document is None or document.revision != question.query.revision:
            return Abstain("the document changed during the delay", stale=True)
        consider = ls.session.consider_edit if first else ls.session.consider
        again = consider(question.query)  # the answer before this one may serve
        if not isinstance(again, Ask):
            return again
        return await _predict(ls, lane, ls.session.complete(again))
    except Superseded:
        return Abstain("a newer request took its place", stale=True)


async def _predict(ls: RedraftServer, lane: Lane, question: Ask) -> Show | Abstain:
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
    document = ls.documents.get(question.query.uri)
    took_ms = 1000 * (ls.clock() - started_s)
    if document is None:
        return ls.session.settle(question, prediction, None, took_ms)
    return ls.session.settle(
        question, prediction, document.revision, took_ms, lambda: document.text
    )


def _failed(ls: RedraftServer, reason: str, kind: Kind = "Warning") -> Abstain:
    ls.line.tell(reason, kind)
    return Abstain("")  # told already


async def _first_in_line(ls: RedraftServer, question: Ask) -> Prediction:
    """The model's answer, after what matters less has let go of it."""
    uri = question.query.uri
    ahead = ls.ahead.get(uri)
    if ahead is not None and ahead.answers(question):
        return await asyncio.shield(ahead.task)  # under way already
    if question.request.task == "infill":
        await ended(ls.lane(uri, "next_edit").interrupt())
    await ended(stop_ahead(ls, uri))
    return await ls.predictor.predict(question.request)


# --- ahead of time -----------------------------------------------------------------------------


class Ahead:
    """A question asked before anyone needs the answer."""

    def __init__(self, question: Ask, task: asyncio.Task[Prediction]) -> None:
        self.question = question
        self.task = task

    def answers(self, question: Ask) -> bool:
        """Is this, still on its way, the answer to ``question`` too?"""
        same = self.question.query.text == question.query.text
        return same and question.request.task == "next_edit" and not self.task.done()


def ask_ahead(ls: RedraftServer, show: Show, question: Ask | None) -> None:
    """Compute what follows the acceptance of an edit that is shown now."""
    if question is None:
        return
    uri = show.suggestion.uri
    stop_ahead(ls, uri)

    async def predict() -> Prediction:
        timeout_s = ls.session.settings.timeout_ms / 1000
        prediction = await asyncio.wait_for(ls.predictor.predict(question.request), timeout_s)
        ls.session.foresee(question, prediction)
        return prediction

    ahead = ls.ahead[uri] = Ahead(question, asyncio.ensure_future(predict()))
    ahead.task.add_done_callback(lambda task: _forget(ls, uri, task))


def stop_ahead(ls: RedraftServer, uri: str) -> frozenset[asyncio.Task[Prediction]]:
    """Give up what is computed ahead of time for a document."""
    ahead = ls.ahead.pop(uri, None)
    if ahead is None:
        return frozenset()
    ahead.task.cancel()
    return frozenset({ahead.task})


def _forget(ls: RedraftServer, uri: str, task: asyncio.Task[Prediction]) -> None:
    ahead = ls.ahead.get(uri)
    if ahead is not None and ahead.task is task:
        del ls.ahead[uri]
    with contextlib.suppress(asyncio.CancelledError):
        error = task.exception()  # it was for nobody yet: whoever asks next sees it for themselves
        if error is not None:
            logger.debug("nothing could be computed ahead of time: %s", error)
