"""Predictions of the model for one client: known from before, or asked for."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import count

from redraft.model.errors import EngineGone, ModelNotReady, Overloaded, RedraftError
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest, Prediction, Predictor, ReadPart

from .journal import AnswerReceived, Journal, QuestionAsked
from .question import Answer, Question
from .schedule import Kind, Schedule, Superseded
from .snapshot import Snapshot
from .suggestions.answer_cache import AnswerCache
from .workspace import Workspace

logger = logging.getLogger(__name__)


class Predictions:
    """The model's predictions for one client; its failures are reasons to show nothing.

    Args:
        predictor: the model.
        schedule: runs one request of each kind for each document.
    """

    def __init__(
        self, predictor: Predictor, workspace: Workspace, schedule: Schedule, journal: Journal
    ) -> None:
        self._predictor, self._workspace, self._schedule = predictor, workspace, schedule
        self._journal, self._answers = journal, AnswerCache()
        self._numbers = count(1)
        #: Entered while the model works on a request that the user waits for.
        self.busy: Callable[[], AbstractContextManager[object]] = nullcontext

    def look_up(self, question: Question) -> Answer | None:
        """Return the answer to a question, None if the model has to be asked."""
        prediction = self._answers.get(question.request, question.context_hash)
        return None if prediction is None else Answer(question, prediction)

    def may_know(self, snapshot: Snapshot) -> bool:
        """Return whether the answer to a question about the document may be known."""
        return self._answers.may_know(len(snapshot.text))

    async def ask(self, kind: Kind, question: Question) -> Answer | Abstain:
        """Return the model's answer, which is kept, or why there is none.

        A text that has changed is not asked about.

        Raises:
            Superseded: a newer request took the place of this one.
        """
        if (stale := self._workspace.why_stale(question.snapshot.asked_from)) is not None:
            return stale
        question = replace(question, number=next(self._numbers))
        started_s = self._workspace.clock()
        self._journal.write(QuestionAsked(question))
        with self.busy() if kind != "prefetch" else nullcontext():
            prediction = await self._predict(kind, question)
        if isinstance(prediction, Abstain):
            return prediction
        if kind == "prefetch":  # no user waits for it
            return Answer(question, prediction, prediction.stats.total_ms)
        answer = Answer(question, prediction, 1000 * (self._workspace.clock() - started_s))
        self._schedule.took(question.task, answer.took_ms)
        self._journal.write(AnswerReceived(answer))
        return answer

    async def read_ahead(self, request: EditRequest, part: ReadPart) -> bool:
        """Let the engine read a prompt while it is idle; return whether it did."""
        limit_s = self._workspace.settings.timeout_ms / 1000
        try:
            async with asyncio.timeout(limit_s):
                await self._predictor.predict(replace(request, read_ahead=part))
        except (RedraftError, TimeoutError) as error:
            logger.debug("nothing was read ahead: %s", error)
            return False
        except Exception:
            logger.exception("the predictor failed")
            return False
        return True

    async def _predict(self, kind: Kind, question: Question) -> Prediction | Abstain:
        snapshot, request, others = question.snapshot, question.request, question.context_hash
        limit_s = snapshot.settings.timeout_ms / 1000
        key = (self._answers.key(request, others), request.region)
        latest, uri = self._schedule.latest, snapshot.asked_from.uri
        try:
            prediction = await latest.run(
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
        self._answers.put(request, prediction, others)
        return prediction
