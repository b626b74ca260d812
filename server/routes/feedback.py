"""Outcomes of answers, reported by clients: ``POST /feedback`` of Mercury.

The server remembers the ids of its answers, not their texts.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter
from redraft.model.validation import Text, brief, read

from ..http.bodies import read_body
from ..http.responses import HttpProblem, json_response

Outcome = Literal["accepted", "rejected", "ignored"]

#: Outcomes, by their names in reports.
ACTIONS: dict[str, Outcome] = {"accept": "accepted", "reject": "rejected", "ignore": "ignored"}

#: Number of answers remembered: an hour of one per second.
MEMORY = 4_096

routes = web.RouteTableDef()


class Ledger:
    """Ids of the latest answers, newest last, with their outcomes."""

    def __init__(self, registry: CollectorRegistry, memory: int = MEMORY) -> None:
        self._answers: OrderedDict[str, Outcome | None] = OrderedDict()
        self._memory = memory
        self._counter = Counter(
            "redraft_outcomes",
            "Outcomes of answers, as clients reported them.",
            ("outcome",),
            registry=registry,
        )

    def add(self, answer_id: str) -> None:
        """Remember an answer."""
        self._answers[answer_id] = None
        if len(self._answers) > self._memory:
            self._answers.popitem(last=False)

    def outcome(self, answer_id: str) -> Outcome | None:
        """Return the outcome of an answer, or None if there was no report.

        Raises:
            KeyError: there was no such answer, or it is forgotten.
        """
        return self._answers[answer_id]

    def report(self, answer_id: str, outcome: Outcome) -> None:
        """Count an outcome. A repeated report is not counted; a different one is.

        Raises:
            KeyError: there was no such answer, or it is forgotten.
        """
        if self._answers[answer_id] != outcome:
            self._answers[answer_id] = outcome
            self._counter.labels(outcome).inc()


LEDGER: web.AppKey[Ledger] = web.AppKey("ledger", Ledger)


@dataclass(frozen=True, slots=True)
class Feedback:
    """The body of this route."""

    request_id: Text  # of the answer
    user_action: Literal["accept", "reject", "ignore"]
    provider_name: Text = ""
    provider_version: Text = ""


@routes.post("/feedback")
async def feedback(http: web.Request) -> web.Response:
    """Count the outcome of an answer."""
    report = await read_body(http, lambda data: read(Feedback, data))
    answer_id, action = report.request_id, report.user_action
    try:
        http.app[LEDGER].report(answer_id, ACTIONS[action])
    except KeyError:
        raise HttpProblem(
            404,
            "unknown_request_id",
            f"'request_id' is {brief(answer_id)}, which is no answer of this session. Send the "
            f"'id' of an answer; the last {MEMORY} are remembered until the server stops.",
        ) from None
    return json_response({"status": "ok", "request_id": answer_id, "user_action": action})
