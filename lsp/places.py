"""Places to ask about for the next edit, as the documents are or once an edit is accepted."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import dropwhile, takewhile
from typing import TYPE_CHECKING

from redraft.model.edits.edit import LineChange
from redraft.model.gate.decide import CANDIDATES
from redraft.model.gate.eagerness import Eagerness
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Diagnostic, EditRequest, RecentEdit
from redraft.model.rules.touched_names import REPORTED, Touched, caused, names_of, written

from .context.history_edits import if_accepted
from .context.mentions import Mention, OpenText, Traces, find_places
from .history import SHOWN_EDITS
from .schedule import delay_s
from .settings import LspSettings
from .suggestion import PlacedRequest, Query, Suggestion, request

if TYPE_CHECKING:
    from .session import Session

#: Places asked about after the cursor's own, at most.
MOST_PLACES: dict[Eagerness, int] = {"low": 1, "medium": 2, "high": 4}
#: Lines by which a region moves while its line is being typed; so many at most stand above it.
TYPED_STEP = 3
#: ms that all of them together should take. The first one is asked about in any case.
SEARCH_MS = 2_000.0


@dataclass(frozen=True, slots=True)
class EditScene:
    """State in which next edits are searched: as it is, or once an edit is accepted."""

    query: Query  # where the user is, or would be
    user: Query  # where the user is
    edits: tuple[RecentEdit, ...]  # oldest first
    diagnostics: tuple[Diagnostic, ...] = ()  # of the query's document
    accepted: Suggestion | None = None  # assumed to be

    @property
    def names(self) -> tuple[Touched, ...]:
        """The names that the edits bear on, and those reported to be undefined."""
        return names_of(self.edits, self.diagnostics)


@dataclass(frozen=True, slots=True)
class Place:
    """A place to ask about."""

    query: Query  # as if the user were there
    request: EditRequest  # without what takes time to gather
    others: int  # hash of the other documents that the user has edited
    about: Touched | None = None  # the name that leads here; None: the region around the cursor

    def with_place(self, objection: Abstain, scene: EditScene) -> Abstain:
        """Return why nothing is shown here, with the place."""
        if self.about is None or objection.kind == "target_changed":
            return objection
        line = f"line {self.query.line + 1}"
        where = line if self.query.uri == scene.query.uri else f"{self.query.path}, {line}"
        return replace(objection, reason=f"in {where}, {objection.reason}")


def places(session: Session, scene: EditScene, own: Place) -> Iterator[Place]:
    """Yield errors that the last edits caused, then the cursor's place, then other ones."""
    elsewhere = _elsewhere(session, scene, own)
    others: Iterable[Place] = elsewhere
    if scene.diagnostics:
        others = list(elsewhere)
        yield from takewhile(_is_reported, others)
        others = dropwhile(_is_reported, others)
    yield own
    yield from others


def _is_reported(place: Place) -> bool:
    return place.about is not None and place.about.why == REPORTED


def _elsewhere(session: Session, scene: EditScene, own: Place) -> Iterator[Place]:
    """Yield the other places that the last edits bear on, the most promising first."""
    query = scene.query
    assert own.request.region is not None
    asked = [(query.uri, *own.request.region)]
    for mention in _mentions(session, scene, own.request.region):
        if any(uri == mention.document.uri and a <= mention.line < b for uri, a, b in asked):
            continue
        if len(asked) > _most(session, query):
            return
        visit = _visit(query, mention.document, mention.document.text(), mention.at)
        if visit.uri != query.uri and session.refusal(visit) is not None:
            continue
        place = place_of(session, scene, visit, mention.touched)
        assert place.request.region is not None
        asked.append((visit.uri, *place.request.region))
        yield place


def place_of(
    session: Session, scene: EditScene, query: Query, about: Touched | None = None
) -> Place:
    """Return a query as a place to ask about."""
    is_user = about is None and scene.accepted is None
    context = session.context
    region = (context.gather(query).region if is_user else context.region_at(query)).lines
    if is_user and session.history.typed_at_s(query.uri, query.line) is not None:
        region = below_typed(region, query.line)
    asked = edit_request(query, session.settings, region)
    return Place(query, asked, _others(session, scene, query), about)


def below_typed(region: tuple[int, int], line: int) -> tuple[int, int]:
    """Return the part of a region that is asked about while ``line`` is being typed.

    Few lines above it are left: a region costs about three readings of its tokens, and of 400 next
    edits of held-out commits near the last edit 3 begin above the cursor.
    """
    return max(region[0], (line - 1) // TYPED_STEP * TYPED_STEP), region[1]


def edit_request(query: Query, settings: LspSettings, region: tuple[int, int]) -> EditRequest:
    """Return the request for an edit of a region, without what takes time to gather."""
    asked = request("next_edit", query, settings)
    return replace(asked, region=region, candidates=CANDIDATES[settings.quality])


def _others(session: Session, scene: EditScene, query: Query) -> int:
    """Return a hash of the other documents that the user has edited, and of the cells above."""
    uri = query.uri
    if session.history.last_edit_s() is None:
        return 0
    texts = {
        document.uri: hash(document.text())
        for document in session.context.documents()
        if document.uri != uri and session.history.last_edit(document.uri) is not None
    }
    if above := session.context.above_hash(query):
        texts[""] = above
    if scene.accepted is not None and scene.accepted.uri != uri:
        texts[scene.accepted.uri] = hash(scene.accepted.result)
    return hash(frozenset(texts.items())) if texts else 0


def _mentions(session: Session, scene: EditScene, near: tuple[int, int]) -> list[Mention]:
    query, names, done = scene.query, scene.names, written(scene.edits)
    if not (names or done or scene.diagnostics):
        return []
    here = OpenText(query.uri, query.path, query.language, query.revision, lambda: query.text)
    traces = Traces(
        names,
        done,
        session.context.importable(query, scene.edits),
        scene.edits,
        [*caused(scene.edits, scene.diagnostics, query.text.split("\n"))],
        above.text if (above := session.context.above(query)) is not None else "",
    )
    others = _documents(session, scene) if query.other_documents else ()
    return find_places(traces, here, near, query.line, others, session.context.definers)


def _documents(session: Session, scene: EditScene) -> Iterator[OpenText]:
    accepted = scene.accepted
    result = "" if accepted is None else accepted.result
    for document in session.context.documents():
        is_changed = accepted is not None and document.uri == accepted.uri
        yield replace(document, text=lambda: result) if is_changed else document


def _most(session: Session, query: Query) -> int:
    most = MOST_PLACES["high" if query.invoked else session.settings.eagerness_in(query.language)]
    takes_ms = session.requests.latency_ms("next_edit")
    return min(most, max(1, int(SEARCH_MS / takes_ms))) if takes_ms > 0 else most


def _visit(query: Query, document: OpenText, text: str, cursor: int) -> Query:
    """Return the query as if the user were in another place."""
    return Query(
        uri=document.uri,
        path=document.path,
        language=document.language,
        text=text,
        cursor=cursor,
        revision=document.revision,
        invoked=query.invoked,
        other_documents=query.other_documents,
    )


def question(session: Session, scene: EditScene, place: Place) -> PlacedRequest:
    """Return the question as the model gets it.

    In the user's own document the excerpts are those of the user's place, so that the prompts begin
    alike.
    """
    context, query = session.context, place.query
    if query.uri == scene.user.uri:
        related = context.gather(scene.user).related
    else:
        related = context.look(query).related
    asked = replace(
        place.request,
        edits=scene.edits,
        related=related,
        diagnostics=() if scene.accepted else context.diagnostics(query),
        importable=context.importable(query, scene.edits),
    )
    return PlacedRequest(
        query,
        asked,
        scene.query,
        1000 * delay_s(session, scene.query, "next_edit"),
        session.since_edit_s(),
        place.others,
        ahead_of=session.ahead_of if scene.accepted else "",
    )


def after(session: Session, scene: EditScene, shown: Suggestion) -> EditScene | None:
    """Return the scene once ``shown`` is accepted, None if its document is gone."""
    landed = _landed(session, scene.query, shown)
    if landed is None:
        return None
    start, end, new = shown.edit.whole_lines()
    old, first = shown.text[start:end], shown.text.count("\n", 0, start)
    span = LineChange(first, tuple(old.split("\n")), tuple(new.split("\n")))
    edits = scene.edits + if_accepted(landed.path, span, shown.result.split("\n"))
    return EditScene(landed, scene.user, edits[-SHOWN_EDITS:], accepted=shown)


def _landed(session: Session, query: Query, shown: Suggestion) -> Query | None:
    """Return where acceptance leaves the user."""
    result, cursor = shown.result, shown.landing
    if shown.uri == query.uri:
        return replace(query, text=result, cursor=cursor, invoked=False)
    for document in session.context.documents():
        if document.uri == shown.uri:
            return replace(_visit(query, document, result, cursor), invoked=False)
    return None
