"""Puts the session's questions to the model: debounce, turns, failures, and what is asked ahead.

Ghost text comes first. A question about it stops one about the next edit, which in turn waits until
none is open; what is asked ahead of time stops for either. Knows nothing of the protocol.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

from redraft.model.errors import EngineGone, ModelNotReady, Overloaded, RedraftError
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Prediction

from .client import Client, Prefetch
from .protocol.status import StatusKind
from .recording.recorder import RecordedQuestion
from .schedule import Lane, Superseded, ended
from .session.decisions import Ask, Decision, Show
from .session.questions import Query
from .suggestion import Suggestion

logger = logging.getLogger(__name__)

#: Seconds between the questions about ghost text and about the next edit that one gesture sends.
_SAME_GESTURE_S = 0.05


async def ask(client: Client, question: Ask) -> Show | Abstain:
    """Wait out the debounce, look again, then ask the model."""
    lane = client.lane(question.asked_from.uri, question.request.task)
    try:
        again = await _again(client, lane, question, question.delay_ms / 1000)
        if not isinstance(again, Ask):
            return again
        if question.request.task == "infill":
            return await _predict(client, lane, client.session.complete(again))
        return await _predict_edits(client, lane, again)
    except Superseded:
        return Abstain("superseded", "a newer request replaced this one")


async def ghost_text_first(client: Client, uri: str) -> None:
    """Wait for the ghost text that the same gesture asks for."""
    await asyncio.sleep(_SAME_GESTURE_S)
    await client.lane(uri, "infill").idle()


async def _again(client: Client, lane: Lane, question: Ask, wait_s: float) -> Decision:
    """What the session says after a wait: the answer before this one may serve."""
    query, is_edit = question.asked_from, question.request.task == "next_edit"
    await lane.turn(wait_s, client.lane(query.uri, "infill") if is_edit else None)
    document = client.documents.get(query.uri)
    if document is None or document.revision != query.revision:
        return Abstain("document_changed", "the text changed before the model was asked")
    return client.session.consider_edit(query) if is_edit else client.session.consider(query)


async def _predict_edits(client: Client, lane: Lane, question: Ask) -> Show | Abstain:
    """Put one question after the other, until the session has enough."""
    while True:
        rest_s = question.not_before_s - client.clock()
        if rest_s > 0:
            again = await _again(client, lane, question, rest_s)
            if not isinstance(again, Ask):
                return again
            question = replace(again, earlier=question.earlier)
        decision = await _predict(client, lane, client.session.complete(question))
        following = client.session.go_on(question, decision)
        if not isinstance(following, Ask):
            return following
        question = following


async def _predict(client: Client, lane: Lane, question: Ask) -> Show | Abstain:
    edited_s = client.session.history.last_edit_s()
    since_edit_s = None if edited_s is None else client.clock() - edited_s
    with client.recorder.asking(question, since_edit_s) as asked:
        return await _answer(client, lane, question, asked)


async def _answer(
    client: Client, lane: Lane, question: Ask, asked: RecordedQuestion
) -> Show | Abstain:
    started_s = client.clock()
    prediction = await _prediction(client, lane, question)
    if isinstance(prediction, Abstain):
        return prediction
    client.learning.answered(prediction)
    document = client.documents.get(question.asked_from.uri)
    target = client.documents.get(question.query.uri)
    took_ms = 1000 * (client.clock() - started_s)
    decision = client.session.settle(
        question,
        prediction,
        document.revision if document is not None else None,
        took_ms,
        lambda: document.text if document is not None else "",
        target.revision if target is not None else None,
    )
    asked.answered(prediction, decision, took_ms)
    return decision


async def _prediction(client: Client, lane: Lane, question: Ask) -> Prediction | Abstain:
    """The model's answer, or why there is none, which the status tells as well."""
    limit_s = client.session.settings.timeout_ms / 1000
    try:
        with client.line.thinking(silent=client.watch.waiting is not None):
            return await lane.run(lambda: _first_in_line(client, question), limit_s)
    except (Superseded, asyncio.CancelledError):
        client.line.idle()
        raise
    except TimeoutError:
        return _failed(
            client,
            f"the model took longer than {limit_s:g} s: this machine is busy or slow ('redraft "
            "bench' measures it)",
        )
    except (ModelNotReady, EngineGone) as error:
        client.watch.start()
        return _failed(client, *(client.watch.waiting or (str(error), "Warning")))
    except Overloaded as error:
        return _failed(client, f"{error} (again in {error.retry_after_s:g} s)")
    except RedraftError as error:
        return _failed(client, str(error), "Error")
    except Exception as error:
        logger.exception("the predictor failed")
        return _failed(client, f"{type(error).__name__}: {error}", "Error")


def _failed(client: Client, reason: str, kind: StatusKind = "Warning") -> Abstain:
    client.line.tell(reason, kind)
    return Abstain("failed", reason)


async def _first_in_line(client: Client, question: Ask) -> Prediction:
    """The model's answer, after what matters less has let go of it."""
    uri = question.asked_from.uri
    under_way = client.prefetches.get(uri)
    if under_way is not None and under_way.answers(question):
        return await asyncio.shield(under_way.task)  # under way already
    if question.request.task == "infill":
        await ended(client.lane(uri, "next_edit").interrupt())
    for other in list(client.prefetches):  # of whatever document: the model has one turn at a time
        await ended(client.stop_prefetch(other))
    return await client.predictor.predict(question.request)


# --- ahead of time -----------------------------------------------------------------------------


def prefetch(client: Client, query: Query, shown: Suggestion) -> None:
    """Compute what follows the acceptance of an edit that is ``shown`` now to the user who is where
    ``query`` says: one question after the other, until one has an answer worth showing."""
    uri, under_way = shown.uri, client.prefetches.get(shown.uri)
    if under_way is not None and under_way.shown == shown.id:
        return  # on it already
    question = client.session.follow_up(query, shown)
    if question is None:
        return
    client.stop_prefetch(uri)

    async def predict() -> Prediction:
        timeout_s = client.session.settings.timeout_ms / 1000
        prediction = await asyncio.wait_for(client.predictor.predict(question.request), timeout_s)
        client.session.prefetched(question, prediction)
        client.recorder.prefetched(question, prediction, shown.id)
        return prediction

    def done(task: asyncio.Task[Prediction]) -> None:
        if _forget(client, uri, task) and client.documents.get(uri) is not None:
            prefetch(client, query, shown)

    task = asyncio.ensure_future(predict())
    client.prefetches[uri] = Prefetch(question, shown.id, task)
    task.add_done_callback(done)


def _forget(client: Client, uri: str, task: asyncio.Task[Prediction]) -> bool:
    """It is over. Did it end well, with nothing in its place yet?"""
    under_way = client.prefetches.get(uri)
    latest = under_way is not None and under_way.task is task
    if latest:
        del client.prefetches[uri]
    if task.cancelled():
        return False
    error = task.exception()  # it was for nobody yet: whoever asks next sees it for themselves
    if error is not None:
        logger.debug("nothing could be computed ahead of time: %s", error)
    return latest and error is None
