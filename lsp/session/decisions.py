"""What a session answers, and what the deciding of ghost text and of next edits have in common.

Pure; knows nothing of LSP or asyncio.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from itertools import count

from redraft.model.edits.abstained import Abstained
from redraft.model.edits.gate import Gate
from redraft.model.edits.gate_file import shipped
from redraft.model.edits.replacement import Replacement
from redraft.model.edits.verdict import Moment, refuse_reach
from redraft.model.records import Candidate, EditRequest, Prediction, Task

from ..editor.history import History
from ..settings import LspSettings
from . import exclusions
from .answers_and_rejections import Rejections, Results
from .exploring import Lot, lot_of
from .mentions import Mention
from .outcomes import Debounce, Outcomes, Pace
from .questions import Context, Query
from .suggestions import Suggestion
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
    others: int = (
        0  # tells apart the states of the other documents; see ``answers_and_rejections.Results``
    )
    unfinished: bool = False  # the edit in progress goes on and stays out; see ``unfinished``
    not_before_s: float = -math.inf  # by the clock: the keys have rested by then
    earlier: int = 0  # questions asked before it for the same query
    about: Touched | None = None  # what brought us to another place than the cursor's

    @property
    def asked_from(self) -> Query:
        return self.origin or self.query


Decision = Show | Ask | Abstained


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
    explores: Callable[[], bool] = lambda: False  # see :mod:`.exploring`
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

    def refusal(self, query: Query) -> Abstained | None:
        """Why nothing is ever offered here."""
        settings = self.settings
        if not settings.enabled:
            return Abstained("disabled", "Redraft is switched off (setting enabled)")
        if self.snoozed_s() and not query.invoked:
            return Abstained("snoozed", snoozing(self.snoozed_s()))
        if query.language and query.language in settings.disabled_languages:
            return Abstained(
                "language_disabled", f"Redraft is switched off for {query.language} files"
            )
        if query.out_of_step:
            return Abstained("lost_track", f"Redraft lost track of this file: {query.out_of_step}")
        excluded = exclusions.refuse_file(query.path, settings, query.uri)
        if excluded:
            return Abstained("secret", excluded)
        unfit = exclusions.refuse_text(query.text, query.cursor, settings, query.path)
        if unfit is not None:
            return unfit
        if query.selected:
            return Abstained("selection", "text is selected")
        if query.cursors > 1:
            return Abstained("several_cursors", f"there are {query.cursors} cursors")
        if query.in_snippet:
            return Abstained("snippet", "you are filling in a snippet")
        return None

    def wrong_moment(self, query: Query) -> Abstained | None:
        """Why nothing is offered just now, unless asked for by a gesture."""
        if query.invoked:
            return None
        if not self.focused:
            return Abstained("unfocused", "the editor window is not active")
        if self.history.is_bulk(query.uri):
            return Abstained("bulk_change", "a large change was just made, such as a paste")
        if self.history.happened(query.uri) == "undo":
            return Abstained("undoing", "you just undid or redid a change")
        return None

    def hidden(self, query: Query, task: Task) -> Abstained | None:
        """Why nothing is offered where the user hid a suggestion; remembers where the user is."""
        self.place = query.uri, query.revision, query.line
        if not self.rejections.hides(task, *self.place) or query.invoked:
            return None
        return Abstained(
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
        return Abstained("cooling_down", cooling) if cooling else decision

    def delay_ms(self, query: Query, task: Task) -> float:
        if query.invoked:
            return 0.0
        latency_ms = self._latency_ms.get(task, 0.0)
        return self.debounce.delay_ms(self.settings.delay_ms, latency_ms, self.clock())

    def latency_ms(self, task: Task) -> float:
        """What an answer takes, in the mean; 0 while none came."""
        return self._latency_ms.get(task, 0.0)

    def moment(self, task: Task, query: Query) -> Moment:
        """What is proposed for the query's document is judged by this."""
        last = self.history.last_edit(query.uri)
        return Moment(
            task=task,
            path=query.path,
            language=query.language,
            text=query.text,
            cursor=query.cursor,
            threshold=self.lot(query).threshold,
            just_done=self.history.just_done(query.uri),
            last_edit=last[1] if last is not None else None,
            rejected=lambda edit: self.rejections.know(query.uri, edit),
            out_of_reach=lambda edit: self._out_of_reach(query, edit),
        )

    def _out_of_reach(self, query: Query, edit: Replacement) -> Abstained | None:
        """Why an edit carries a recent one on too far; see ``verdict.refuse_reach``."""
        edits = self.history.edits(unfinished=True)
        language = query.language

        def definers(name: str) -> Collection[str]:
            return self.context.definers(name, language)

        return refuse_reach(edit, edits, query.path, language, definers)

    def lot(self, query: Query) -> Lot:
        """The threshold for what nobody asked for by a gesture."""
        moment = f"{self.seed} {query.uri} {query.revision}"
        return lot_of(self.settings.threshold, self.explores() and not query.invoked, moment)

    def sure(self, candidate: Candidate, task: Task) -> float:
        """What the gate makes of a candidate now, 0 … 1; held against the threshold."""
        return self.gate().sure(candidate, task, self.pace.situation(self.clock()))

    def shown_edit(self, uri: str, text: str) -> Suggestion | None:
        """The next edit that is shown, if it is for this ``text``."""
        showing = self.outcomes.showing(uri)
        right = showing is not None and showing.task == "next_edit" and showing.text == text
        return showing if right else None

    def suggestion(
        self, query: Query, task: Task, candidate: Candidate, made: Prediction
    ) -> Suggestion:
        """A candidate as a suggestion that has no name yet; see :meth:`named`."""
        return Suggestion(
            id="",
            uri=query.uri,
            task=task,
            text=query.text,
            cursor=query.cursor,
            start=candidate.start,
            end=candidate.end,
            replacement=candidate.text,
            confidence=self.sure(candidate, task),
            model=made.model,
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
