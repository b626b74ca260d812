"""Questions about other places than the cursor's: those that the last edit bears on.

Of the same file first, then of others that are open. How many is decided by the eagerness setting
and by how long the model takes. Pure; asks nothing itself, and judges no answer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from redraft.model.edits.edit import LineChange
from redraft.model.gate.eagerness import Eagerness
from redraft.model.records import Diagnostic, RecentEdit

from ..history import SHOWN_EDITS
from ..history_hunks import if_accepted
from ..places import Mention, OpenText, find_places
from ..suggestion import Suggestion
from . import questions as requests
from .decisions import Ask, SharedState
from .questions import Query
from .touched_names import Touched, caused, names_of, written

#: Places asked about after the cursor's own, at most.
MOST_PLACES: dict[Eagerness, int] = {"low": 1, "medium": 2, "high": 4}
#: ms that all of them together should take. The first one is asked about in any case.
SEARCH_MS = 2_000.0
#: Lines from the cursor to an edit up to which its acceptance most likely keeps the region.
_STEP_LINES = 12


@dataclass(frozen=True, slots=True)
class Situation:
    """The documents and the history as they are, or as they would be."""

    query: Query  # where the user is
    edits: tuple[RecentEdit, ...]  # oldest first
    accepted: Suggestion | None = None  # were it accepted
    diagnostics: tuple[Diagnostic, ...] = ()  # of the query's document

    @property
    def names(self) -> tuple[Touched, ...]:
        return names_of(self.edits, self.diagnostics)


def after(
    shared: SharedState, query: Query, shown: Suggestion, before: Situation | None = None
) -> Situation | None:
    """What is the case once ``shown``, offered where ``query`` says, is accepted and took the user
    along; None: its document is gone.

    Args:
        before: what will be the case until then; None: what is.
    """
    landed = _landed(shared, query, shown)
    if landed is None:
        return None
    start, end, new = shown.whole_lines()
    old, first = shown.text[start:end], shown.text.count("\n", 0, start)
    span = LineChange(first, tuple(old.split("\n")), tuple(new.split("\n")))
    edits = shared.history.edits(unfinished=True) if before is None else before.edits
    edits += if_accepted(landed.path, span, shown.result.split("\n"))
    return Situation(landed, edits[-SHOWN_EDITS:], shown)


def _landed(shared: SharedState, query: Query, shown: Suggestion) -> Query | None:
    """Where acceptance leaves the user."""
    result, cursor = shown.result, shown.landing
    if shown.uri == query.uri:
        first, last = shown.lines
        away = not first - _STEP_LINES <= query.line < last + _STEP_LINES
        return replace(query, text=result, cursor=cursor, visiting=away)
    for document in shared.context.documents():
        if document.uri == shown.uri:
            return replace(_visit(query, document, result, cursor), invoked=False)
    return None


def others(shared: SharedState, uri: str, accepted: Suggestion | None = None) -> int:
    """Tells apart the states of all documents but one, as far as the user has edited them."""
    if shared.history.last_edit_s() is None:
        return 0
    texts = {
        document.uri: hash(document.text())
        for document in shared.context.documents()
        if document.uri != uri and shared.history.last_edit(document.uri) is not None
    }
    if accepted is not None and accepted.uri != uri:
        texts[accepted.uri] = hash(accepted.result)
    return hash(frozenset(texts.items())) if texts else 0


def questions(shared: SharedState, situation: Situation, near: tuple[int, int]) -> Iterator[Ask]:
    """What to ask about other places, the most promising first.

    Args:
        near: lines [first, last) around the user that were asked about already.
    """
    query = situation.query
    asked: list[tuple[str, int, int]] = [(query.uri, *near)]
    for place in _places(shared, situation, near):
        if any(uri == place.document.uri and a <= place.line < b for uri, a, b in asked):
            continue
        if len(asked) > _most(shared, query):
            return
        visit = _visit(query, place.document, place.document.text(), place.at)
        if visit.uri != query.uri and shared.refusal(visit) is not None:
            continue
        region = shared.context.region(visit)
        asked.append((visit.uri, *region))
        yield Ask(
            query=visit,
            request=requests.next_edit(visit, shared.settings, region),
            delay_ms=shared.delay_ms(query, "next_edit"),
            reason=f"{place.touched.name}: {place.touched.why}",
            origin=query,
            others=others(shared, visit.uri, situation.accepted),
            about=place.touched,
        )


def where(ask: Ask) -> str:
    """The place that a question is about, for people."""
    line = f"line {ask.query.line + 1}"
    return line if ask.query.uri == ask.asked_from.uri else f"{ask.query.path}, {line}"


def _places(shared: SharedState, situation: Situation, near: tuple[int, int]) -> list[Mention]:
    """All places, the most promising first. Each question after the first asks for them again, and
    so does a moving cursor: 8 ms with 20 files of 2,600 lines."""
    query, names = situation.query, situation.names
    documents = list(_documents(shared, situation)) if query.other_documents else []
    states = [(document.uri, document.revision) for document in documents]
    accepted = situation.accepted.id if situation.accepted is not None else ""
    edits = hash(situation.edits)
    told = situation.diagnostics
    key = (query.uri, hash(query.text), query.line, near, names, edits, states, accepted, told)
    if shared.searched is None or shared.searched[0] != key:
        here = OpenText(query.uri, query.path, query.language, query.revision, lambda: query.text)
        done, definers = written(situation.edits), shared.context.definers
        found = list[Mention]()
        if names or done or told:
            found = find_places(
                names,
                done,
                here,
                near,
                query.line,
                documents,
                definers,
                shared.context.importable(query, situation.edits),
                situation.edits,
                caused(situation.edits, situation.diagnostics, query.text.split("\n")),
            )
        shared.searched = key, found
    return shared.searched[1]


def _documents(shared: SharedState, situation: Situation) -> Iterator[OpenText]:
    accepted = situation.accepted
    result = "" if accepted is None else accepted.result
    for document in shared.context.documents():
        made = accepted is not None and document.uri == accepted.uri
        yield replace(document, text=lambda: result) if made else document


def _most(shared: SharedState, query: Query) -> int:
    most = MOST_PLACES["high" if query.invoked else shared.settings.eagerness]
    takes_ms = shared.latency_ms("next_edit")
    return min(most, max(1, int(SEARCH_MS / takes_ms))) if takes_ms > 0 else most


def _visit(query: Query, document: OpenText, text: str, cursor: int) -> Query:
    """The same query as if the user were in another place."""
    return Query(
        uri=document.uri,
        path=document.path,
        language=document.language,
        text=text,
        cursor=cursor,
        revision=document.revision,
        invoked=query.invoked,
        other_documents=query.other_documents,
        visiting=True,
    )
