"""What became of answers, as their clients report it: ``POST /feedback`` of Mercury's format.

Answers are remembered by id for the session, their texts are not. Other wires that hand out ids say
so to the :class:`Ledger`.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import Literal

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter
from redraft.model.validation import Text, brief, read

from ..http.bodies import error_response, json_response, read_body

Outcome = Literal["accepted", "rejected", "ignored"]

#: What clients call the outcomes.
ACTIONS: dict[str, Outcome] = {"accept": "accepted", "reject": "rejected", "ignore": "ignored"}

#: Answers remembered; at one a second, the last hour's.
MEMORY = 4_096

routes = web.RouteTableDef()


class Ledger:
    """Ids of the answers that were given, newest last, with what became of them."""

    def __init__(self, registry: CollectorRegistry, memory: int = MEMORY) -> None:
        self._answers: OrderedDict[str, Outcome | None] = OrderedDict()
        self._memory = memory
        self._counter = Counter(
            "redraft_outcomes",
            "What clients reported to have become of answers.",
            ("outcome",),
            registry=registry,
        )

    def given(self, answer_id: str) -> None:
        self._answers[answer_id] = None
        if len(self._answers) > self._memory:
            self._answers.popitem(last=False)

    def outcome(self, answer_id: str) -> Outcome | None:
        """
        Raises:
            KeyError: no such answer was given, or it is forgotten.
        """
        return self._answers[answer_id]

    def tell(self, answer_id: str, outcome: Outcome) -> None:
        """A report that says the same again is not counted; one that says otherwise is.

        Raises:
            KeyError: no such answer was given, or it is forgotten.
        """
        if self._answers[answer_id] != outcome:
            self._answers[answer_id] = outcome
            self._counter.labels(outcome).inc()


LEDGER: web.AppKey[Ledger] = web.AppKey("ledger", Ledger)


@dataclass(frozen=True, slots=True)
class Feedback:
    request_id: Text  # of the answer
    user_action: Literal["accept", "reject", "ignore"]
    provider_name: Text = ""
    provider_version: Text = ""


@routes.post("/feedback")
async def feedback(http: web.Request) -> web.Response:
    report = await read_body(http, lambda data: read(Feedback, data))
    answer_id, action = report.request_id, report.user_action
    try:
        http.app[LEDGER].tell(answer_id, ACTIONS[action])
    except KeyError:
        return error_response(
            404,
            "unknown_request_id",
            f"'request_id' is {brief(answer_id)}, which is no answer of this session. Send the "
            f"'id' of an answer; the last {MEMORY} are remembered until the server stops.",
        )
    return json_response({"status": "ok", "request_id": answer_id, "user_action": action})
