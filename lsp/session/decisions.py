"""What a session answers, and what the deciding of ghost text and of next edits have in common.

Pure; knows nothing of LSP or asyncio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from itertools import count

from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import Show as Shown
from redraft.model.gate.explore import ExplorationDraw, draw
from redraft.model.gate.filters import Situation, reaches_too_far
from redraft.model.gate.gate import Gate, shipped
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest, Prediction, Task

from .. import refusals
from ..history import History
from ..memory import Rejections, Results
from ..outcomes import Debounce, Outcomes, Pace
from ..places import Mention
from ..settings import LspSettings
from ..suggestion import Suggestion
from .questions import Context, Query
from .touched_names import Touched

_LATENCY_WEIGHT = 0.3  # of the newest answer in the running mean


@dataclass(frozen=True, slots=True)
class Show:
    """Offer ``text``: ghost text at the query's cursor, or in place of the suggestion's range."""

    suggestion: Suggestion
    text: str  # the suggestion, or what is left of it
    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model after ``delay_ms``, unless something newer comes first.

    The request lacks what takes time to gather or changes meanwhile, until ``Session.complete``.
    """

    query: Query
    request: EditRequest
    delay_ms: float
    reason: str
    #: Where the user is, if the question is about another place.
    origin: Query | None = None
    others: int = 0  # tells apart the states of the other documents; see ``memory.Results``
    unfinished: bool = False  # the edit in progress goes on and stays out; see ``unfinished``
    not_before_s: float = -math.inf  # by the clock: the keys have rested by then
    earlier: int = 0  # questions asked before it for the same query
    about: Touched | None = None  # what brought us to another place than the cursor's

    @property
    def asked_from(self) -> Query:
        return self.origin or self.query


Decision = Show | Ask | Abstain


def snoozing(left_s: float) -> str:
    """What is said while the user wants to be left alone."""
    return f"paused for another {math.ceil(left_s / 60)} min"


@dataclass(slots=True)
class SharedState:
    """What both kinds of suggestion share: one user, one screen, one model."""

    settings: LspSettings
    clock: Callable[[], float]
    context: Context
    history: History
    outcomes: Outcomes
    debounce: Debounce = field(default_factory=Debounce)
    pace: Pace = field(default_factory=Pace)
    gate: Callable[[], Gate] = shipped  # the one in use
    explores: Callable[[], bool] = lambda: False  # see model/gate/explore.py
    seed: int = 0  # of what is drawn
    results: Results = field(default_factory=Results)
    rejections: Rejections = field(default_factory=Rejections)
    focused: bool = True
    place: tuple[str, int, int] = ("", 0, 0)  # document, its revision, 0-based line of the user
    searched: tuple[object, list[Mention]] | None = None  # what for, and where that was found
    snoozed_until_s: float = -math.inf  # by the clock; the user wants to be left alone
    _latency_ms: dict[Task, float] = field(default_factory=dict)  # running means
    _ids: count[int] = field(default_factory=lambda: count(1))

    def new_id(self) -> str:
        return f"redraft-{next(self._ids)}"

    def snoozed_s(self) -> float:
        return max(0.0, self.snoozed_until_s - self.clock())

    def refusal(self, query: Query) -> Abstain | None:
        """Why nothing is ever offered here."""
        settings = self.settings
        if not settings.enabled:
            return Abstain("disabled", "Redraft is switched off (setting enabled)")
        if self.snoozed_s() and not query.invoked:
            return Abstain("snoozed", snoozing(self.snoozed_s()))
        if query.language and query.language in settings.disabled_languages:
            return Abstain(
                "language_disabled", f"Redraft is switched off for {query.language} files"
            )
        if query.out_of_step:
            return Abstain("lost_track", f"Redraft lost track of this file: {query.out_of_step}")
        excluded = refusals.refuse_file(query.path, settings, query.uri)
        if excluded:
            return Abstain("secret", excluded)
        unfit = refusals.refuse_text(query.text, query.cursor, settings, query.path)
        if unfit is not None:
            return unfit
        if query.selected:
            return Abstain("selection", "text is selected")
        if query.cursors > 1:
            return Abstain("several_cursors", f"there are {query.cursors} cursors")
        if query.in_snippet:
            return Abstain("snippet", "you are filling in a snippet")
        return None

    def wrong_moment(self, query: Query) -> Abstain | None:
        """Why nothing is offered just now, unless asked for by a gesture."""
        if query.invoked:
            return None
        if not self.focused:
            return Abstain("unfocused", "the editor window is not active")
        if self.history.is_bulk(query.uri):
            return Abstain("bulk_change", "a large change was just made, such as a paste")
        if self.history.happened(query.uri) == "undo":
            return Abstain("undoing", "you just undid or redid a change")
        return None

    def hidden(self, query: Query, task: Task) -> Abstain | None:
        """Why nothing is offered where the user hid a suggestion; remembers where the user is."""
        self.place = query.uri, query.revision, query.line
        if not self.rejections.hides(task, *self.place) or query.invoked:
            return None
        return Abstain(
            "dismissed",
            "you hid a suggestion here; it may come back in another line or after an edit",
        )

    def cooled(self, query: Query, decision: Decision) -> Decision:
        """A decision, unless it would ask about the line again in which one was just rejected."""
        if query.invoked or isinstance(decision, Show):
            return decision
        if isinstance(decision, Ask) and decision.origin is not None:
            return decision
        cooling = self.rejections.cooling(query.uri, lambda: query.line, self.clock())
        return Abstain("cooling_down", cooling) if cooling else decision

    def delay_ms(self, query: Query, task: Task) -> float:
        if query.invoked:
            return 0.0
        latency_ms = self._latency_ms.get(task, 0.0)
        return self.debounce.delay_ms(self.settings.delay_ms, latency_ms, self.clock())

    def latency_ms(self, task: Task) -> float:
        """What an answer takes, in the mean; 0 while none came."""
        return self._latency_ms.get(task, 0.0)

    def situation(self, task: Task, query: Query) -> Situation:
        """Return what a prediction for the query's document is decided by."""
        last = self.history.last_edit(query.uri)
        return Situation(
            task=task,
            path=query.path,
            language=query.language,
            text=query.text,
            cursor=query.cursor,
            threshold=self.drawn(query).threshold,
            changes=self.history.just_done(query.uri),
            last_edit=last[1] if last is not None else None,
            pace=self.pace.features(self.clock()),
            rejected=lambda edit: self.rejections.know(query.uri, edit),
        )

    def reaches_too_far(self, query: Query, edit: Edit) -> Abstain | None:
        """Return why an edit carries a recent one on too far."""
        edits = self.history.edits(unfinished=True)
        language = query.language

        def definers(name: str) -> Collection[str]:
            return self.context.definers(name, language)

        return reaches_too_far(edit, edits, query.path, language, definers)

    def drawn(self, query: Query) -> ExplorationDraw:
        """Return the threshold for what is not asked for by a gesture."""
        moment = f"{self.seed} {query.uri} {query.revision}"
        return draw(self.settings.threshold, self.explores() and not query.invoked, moment)

    def shown_edit(self, uri: str, text: str) -> Suggestion | None:
        """The next edit that is shown, if it is for this ``text``."""
        showing = self.outcomes.showing(uri)
        right = showing is not None and showing.task == "next_edit" and showing.text == text
        return showing if right else None

    def suggestion(
        self, query: Query, task: Task, shown: Shown, prediction: Prediction
    ) -> Suggestion:
        """Return an edit that may be shown as a suggestion without an id; see :meth:`named`."""
        return Suggestion(
            id="",
            uri=query.uri,
            task=task,
            text=query.text,
            cursor=query.cursor,
            start=shown.edit.start,
            end=shown.edit.end,
            replacement=shown.edit.new,
            confidence=shown.score,
            model=prediction.model,
        )

    def named(self, made: Suggestion) -> Suggestion:
        """``made`` with an id; the one that is shown, where it is the same asked for again."""
        showing = self.outcomes.showing(made.uri)
        if showing is not None and showing.is_again(made):
            return showing
        return replace(made, id=self.new_id())

    def learn(self, ask: Ask, prediction: Prediction, took_ms: float) -> None:
        """Keep an answer: the text may come back to it."""
        task = ask.request.task
        self.results.put(ask.request, prediction, ask.others, ask.unfinished)
        known_ms = self._latency_ms.get(task, took_ms)
        self._latency_ms[task] = known_ms + _LATENCY_WEIGHT * (took_ms - known_ms)
