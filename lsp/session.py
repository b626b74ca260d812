"""When to ask the model, what of earlier answers still holds, and what is shown.

One session per client, with a little state per document. Pure: it is told of events, reads the
injected clock, and answers with a decision that carries its reason. It never awaits, sends or
computes anything itself, so recordings replay through it. Knows nothing of LSP or asyncio.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from ..model.records import Candidate, EditRequest, Prediction
from . import rules
from .documents import Splice
from .history import History
from .outcomes import Debounce, Outcomes, Settled, Suggestion
from .settings import LspSettings

#: Results kept by document text and cursor, those without a suggestion included.
CACHED_RESULTS = 50
#: Suggestions of a document that typing may still confirm, shown or overtaken by a keystroke.
_RECENT = 4

_LATENCY_WEIGHT = 0.3  # of the newest answer in the running mean


@dataclass(frozen=True, slots=True)
class Query:
    """A client wants ghost text here, now."""

    uri: str
    path: str  # relative to the workspace, "/" separated
    language: str
    text: str  # "\n" line ends
    cursor: int  # index into text
    revision: int  # of the document; the answer holds for this one only
    invoked: bool = False  # by a gesture, not by typing
    selected: int = 0  # characters the user has selected
    out_of_step: str = ""  # why our copy of the document cannot be trusted


@dataclass(frozen=True, slots=True)
class Show:
    """Offer ``text`` at the query's cursor."""

    suggestion: Suggestion
    text: str  # the suggestion, or what is left of it
    reason: str


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the model after ``delay_ms``, unless something newer comes first."""

    query: Query
    request: EditRequest
    delay_ms: float
    reason: str


@dataclass(frozen=True, slots=True)
class Abstain:
    """Show nothing."""

    reason: str
    stale: bool = False  # the document has moved on
    off: bool = False  # and this will not change by typing: disabled, excluded, too large


Decision = Show | Ask | Abstain
_Key = tuple[int, int, EditRequest]


@dataclass(slots=True)
class _State:
    """What is remembered of one document."""

    recent: deque[Suggestion] = field(default_factory=lambda: deque(maxlen=_RECENT))


class Session:
    """Decides for one client. ``clock`` reads seconds and never goes back."""

    def __init__(
        self,
        settings: LspSettings,
        clock: Callable[[], float],
        listener: Callable[[Settled], None] = lambda settled: None,
    ) -> None:
        self.settings = settings
        self.history = History(clock)
        self._clock = clock
        self._listener = listener
        self._debounce = Debounce()
        self._outcomes = Outcomes(self._settled)
        self._states: dict[str, _State] = {}
        self._results: OrderedDict[_Key, Prediction] = OrderedDict()
        self._latency_ms = 0.0  # running mean of the model's answers
        self._ids = count(1)

    # --- events ----------------------------------------------------------------------------

    def opened(self, uri: str, path: str, lines: Sequence[str]) -> None:
        """A document is there with these ``lines``, or can be trusted again."""
        self.history.opened(uri, path, lines)

    def changed(self, uri: str, splices: Sequence[Splice], text: Callable[[], str]) -> None:
        """A document was changed by ``splices``. ``text`` gives what it is now, if that is
        needed."""
        accepted = False
        if self._outcomes.showing(uri) is not None:
            accepted = self._outcomes.document_is(uri, text(), self._clock())
        self.history.changed(uri, splices, accepted=accepted)

    def lost(self, uri: str) -> None:
        """A change of a document was lost: what is known of it holds no longer."""
        self.history.closed(uri)

    def renamed(self, uri: str, new_uri: str, new_path: str) -> None:
        self.history.renamed(uri, new_uri, new_path)

    def closed(self, uri: str) -> None:
        self._outcomes.closed(uri)
        self.history.closed(uri)
        self._states.pop(uri, None)

    def shown(self, id_: str) -> None:
        self._outcomes.report_shown(id_, self._clock())

    def accepted(self, id_: str) -> None:
        """The client says so. The document may have told already, or been changed on the way."""
        uri = self._outcomes.report_accepted(id_)
        if uri:
            self.history.mark_accepted(uri)

    def accepted_part(self, id_: str) -> None:
        self._outcomes.report_accepted_part(id_)

    def _settled(self, settled: Settled) -> None:
        self._debounce.note(settled.outcome, self._clock())
        self._listener(settled)

    # --- decisions -------------------------------------------------------------------------

    def consider(self, query: Query) -> Decision:
        """What to do about a query.

        1. What is switched off, secret, too large or unreadable gets nothing.
        2. What is shown or was just computed still holds while the user types it.
        3. The same question again has the same answer.
        4. A paste, a checkout, an undo is no moment to suggest, unless asked to.
        5. Otherwise the model is asked: at once by gesture, after the debounce when typing.
        """
        refusal = self._refusal(query)
        if refusal is not None:
            return refusal
        kept = self._typed_through(query)
        if kept is not None:
            return self._show(kept)
        request = self._request(query)
        known = self._results.get(_key(request))
        if known is not None:
            return self._show(self._judge(query, known, "same text and cursor as before"))
        if not query.invoked and self.history.is_bulk(query.uri):
            return Abstain("right after a bulk change")
        if not query.invoked and self.history.happened(query.uri) == "undo":
            return Abstain("while undoing or redoing")
        return Ask(query, request, self._delay_ms(query), "nothing known about this text yet")

    def settle(
        self, ask: Ask, prediction: Prediction, revision: int | None, took_ms: float
    ) -> Show | Abstain:
        """What to do with the model's answer.

        ``revision`` is the document's now, None when it was closed. ``took_ms`` is from the
        question to the answer. The answer is kept in any case: the text may come back to it.
        """
        self._remember(_key(ask.request), prediction)
        self._note_latency(took_ms)
        decision = self._judge(ask.query, prediction, "from the model")
        if revision is None:
            return Abstain("the document was closed", stale=True)
        if revision != ask.query.revision:
            if isinstance(decision, Show):
                self._keep(decision.suggestion)
                self._outcomes.cancelled(decision.suggestion)
            return Abstain("the document changed while the model was thinking", stale=True)
        return self._show(decision)

    def _refusal(self, query: Query) -> Abstain | None:
        settings = self.settings
        if not settings.enabled:
            return Abstain("switched off by the setting enabled", off=True)
        if query.language and query.language in settings.disabled_languages:
            return Abstain(f"switched off for {query.language}", off=True)
        if query.out_of_step:
            return Abstain(f"lost track of this document: {query.out_of_step}", off=True)
        excluded = rules.refuse_file(query.path, settings)
        excluded = excluded or rules.refuse_text(query.text, query.cursor, settings)
        if excluded:
            return Abstain(excluded, off=True)
        if query.selected:
            return Abstain(f"{query.selected} characters are selected")
        return None

    def _typed_through(self, query: Query) -> Show | None:
        state = self._states.get(query.uri)
        for suggestion in state.recent if state else ():
            rest = suggestion.rest(query.text, query.cursor)
            wanted = suggestion.confidence >= self.settings.threshold
            if wanted and not rules.refuse_completion(rest, query.text, query.cursor):
                return Show(suggestion, rest, "typed so far as suggested")
        return None

    def _judge(self, query: Query, prediction: Prediction, reason: str) -> Show | Abstain:
        """The first candidate worth showing, or what speaks against the best one."""
        objections = []
        for candidate in prediction.candidates:
            objection = self._objection(query, candidate)
            if not objection:
                suggestion = self._suggestion(query, candidate, prediction)
                return Show(suggestion, suggestion.completion, reason)
            objections.append(objection)
        nothing = prediction.reason or "the model had nothing to add here"
        return Abstain(objections[0] if objections else nothing)

    def _objection(self, query: Query, candidate: Candidate) -> str:
        if (candidate.start, candidate.end) != (query.cursor, query.cursor):
            return "the answer was for another place than the cursor"
        refused = rules.refuse_completion(candidate.text, query.text, query.cursor)
        mean, threshold = candidate.confidence.mean, self.settings.threshold
        if not refused and mean < threshold:
            return f"below threshold {mean:.2f} < {threshold:.2f}"
        return refused

    def _suggestion(self, query: Query, candidate: Candidate, prediction: Prediction) -> Suggestion:
        made = Suggestion(
            id="",
            uri=query.uri,
            text=query.text,
            cursor=query.cursor,
            completion=rules.tidied(candidate.text, query.text, query.cursor),
            confidence=candidate.confidence.mean,
            model=prediction.model,
        )
        showing = self._outcomes.showing(query.uri)
        if showing is not None and replace(showing, id="") == made:
            return showing  # asked for again: still the same one
        return replace(made, id=f"redraft-{next(self._ids)}")

    def _show(self, decision: Show | Abstain) -> Show | Abstain:
        if isinstance(decision, Show):
            self._keep(decision.suggestion)
            self._outcomes.show(decision.suggestion, self._clock())
        return decision

    def _keep(self, suggestion: Suggestion) -> None:
        """Remember a suggestion for as long as typing may still confirm it."""
        recent = self._states.setdefault(suggestion.uri, _State()).recent
        if all(kept.id != suggestion.id for kept in recent):
            recent.appendleft(suggestion)

    # --- parts of decisions ----------------------------------------------------------------

    def _request(self, query: Query) -> EditRequest:
        settings = self.settings
        return EditRequest(
            task="infill",
            path=query.path,
            text=query.text,
            cursor=query.cursor,
            language=query.language,
            edits=self.history.edits(),
            context_tokens=settings.context_tokens,
            max_tokens=settings.max_tokens,
            max_lines=rules.lines_wanted(query.text, query.cursor, settings),
            quality=settings.quality,
        )

    def _delay_ms(self, query: Query) -> float:
        if query.invoked:
            return 0.0
        return self._debounce.delay_ms(self.settings.delay_ms, self._latency_ms, self._clock())

    def _note_latency(self, took_ms: float) -> None:
        if self._latency_ms == 0.0:
            self._latency_ms = took_ms
        self._latency_ms += _LATENCY_WEIGHT * (took_ms - self._latency_ms)

    def _remember(self, key: _Key, prediction: Prediction) -> None:
        self._results[key] = prediction
        self._results.move_to_end(key)
        while len(self._results) > CACHED_RESULTS:
            self._results.popitem(last=False)


def _key(request: EditRequest) -> _Key:
    """What an answer belongs to: not the edits that led to the text, or each pause in typing would
    make it another one. The text goes in as its 64-bit hash, which is random per process: fifty
    texts would take too much memory and a cryptographic hash four times as long.
    """
    rest = replace(request, text="", edits=(), related=())
    return len(request.text), hash(request.text), rest
