"""Search for the next edit: at the cursor first, then at places that the last edits bear on.

The same search runs ahead of time, for the text that accepting a shown edit leads to.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from redraft.model.edits.edit import Edit
from redraft.model.edits.origins import Rename, one_origin_each, swapped
from redraft.model.gate.decide import (
    ShownCandidate,
    decide,
    least_score,
    refuse,
    too_unsure,
    verdict,
)
from redraft.model.gate.filters import Situation, reaches_too_far
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Prediction
from redraft.model.rules.propose import place_key
from redraft.model.rules.renames import renames_of
from redraft.model.rules.touched_names import caused, grown
from redraft.model.text.code_queries import prose_rows

from . import ghost_text
from .context.mentions import follows, is_astray
from .places import EditScene, Place, after, place_of, places, question
from .policy.scopes import refuse_edit_in_scope
from .refusals import beside_empty_body, half_typed, long_after, refuse_moment, refuse_stale
from .schedule import Superseded, rest
from .suggestion import Query, Show, Suggestion

if TYPE_CHECKING:
    from .session import Session

#: Edits predicted ahead while one is shown, each for the text that those before it lead to.
AHEAD = 2

#: Seconds for which a shown edit is offered again while the user edits elsewhere.
LIFETIME_S = 10.0

GHOST_TEXT_SHOWN = Abstain("ghost_text_shown", "ghost text is shown at the cursor")
UNRELATED = Abstain("unrelated", "the edit has nothing to do with your last edit")


async def search(session: Session, scene: EditScene, *, waits: bool = False) -> Show | Abstain:
    """Ask about the cursor's region, then about other places, until an edit is worth showing.

    Args:
        waits: wait for the debounce before the model is asked.

    Raises:
        Superseded: a newer request took the place of this one.
    """
    query = scene.query
    comment: Show | None = None
    objections: list[Abstain] = []
    own = place_of(session, scene, query)
    for place in places(session, scene, own):
        prediction = session.requests.answers.get(place.request, place.others)
        if prediction is None and waits:  # 1. debounce once, then look again
            if (
                place is own
                and (cooling := session.rejections.cooling(query, session.clock())) is not None
            ):
                return cooling
            await rest(session, query)
            known = refuse_stale(session.documents, query) or known_edit(session, query)
            return known or await search(session, session.scene(query))
        if prediction is None:  # 2. ask the model, and decide on its answer
            settle = partial(_settle, session, scene, place)
            decision = await session.requests.ask(question(session, scene, place), settle)
            if isinstance(decision, Abstain) and (decision.is_stale or decision.is_failure):
                return decision
        else:  # 3. decide on what is known
            decision = decide_edit(session, scene, place, prediction, "same text as before")
        if isinstance(decision, Abstain):
            objections.insert(
                0 if place is own else len(objections), place.with_place(decision, scene)
            )
        elif place is own and decision.suggestion.is_prose:
            comment = decision  # code comes first
        else:
            return decision
    if comment is not None:
        return comment
    objection = next((one for one in objections if one.kind != "nothing_to_do"), objections[0])
    return _revealed(session, scene, own, objection)  # 4. what only a gesture shows


def known_edit(session: Session, query: Query) -> Show | Abstain | None:
    """Decide without a search, or return None."""
    if (refusal := session.refusal(query)) is not None:
        return refusal
    if not session.settings.next_edits:
        return Abstain("next_edits_disabled", "next edits are switched off (setting next_edits)")
    if ghost_text.comes_first(session, query):
        return GHOST_TEXT_SHOWN
    moment = refuse_moment(query, session.history, is_focused=session.is_focused)
    wrong = moment or session.rejections.hidden("next_edit", query)
    if wrong is not None:
        return wrong
    # What is shown stays however long its reader thinks. Nothing new is offered then.
    kept, late = _kept(session, query), long_after(query, session.history, session.clock())
    if kept is None and late is not None:
        kept = _kept_elsewhere(session, query)
    return kept or late or half_typed(query, session.history.just_done(query.uri))


def show_edit(session: Session, query: Query, shown: Suggestion, asked_s: float) -> None:
    """Note that an edit is shown to the user, and predict what follows its acceptance.

    Args:
        asked_s: when the client asked for it.
    """
    memory = session.memory(query.uri)
    if memory.away is not None and memory.away.id != shown.id:
        session.outcomes.give_way(memory.away)
    memory.away = shown if shown.uri != query.uri else None
    session.outcomes.show(shown, session.clock(), asked_s)
    is_ahead = session.ahead_of == shown.id or shown.rename is not None
    if not session.settings.prefetch or is_ahead or session.load.now().effort == "calm":
        return
    session.requests.latest.cancel(shown.uri, "prefetch")
    session.ahead_of = shown.id
    task = asyncio.ensure_future(ahead(session, session.scene(query), shown))
    session.prefetches.add(task)
    task.add_done_callback(session.prefetches.discard)


async def ahead(session: Session, scene: EditScene, shown: Suggestion) -> None:
    """Predict what follows once ``shown`` is accepted, two edits deep; the cache keeps it."""
    first = shown.id
    with suppress(Superseded):
        for _ in range(AHEAD):
            following = after(session, scene, shown)
            if following is None or session.ahead_of != first:
                return
            scene = following
            decision = await search(session, scene)
            if not isinstance(decision, Show):
                return
            shown = decision.suggestion
        return
    if session.ahead_of == first:
        session.ahead_of = ""  # it was cancelled, and may be tried again


# --- what holds from before ----------------------------------------------------------------------


def _kept(session: Session, query: Query) -> Show | None:
    """Return an earlier suggestion that still holds."""
    uri, shown = query.uri, session.outcomes.shown_edit(query.uri, query.text)
    if shown is not None:
        old = session.outcomes.shown_for_s(uri, session.clock()) > LIFETIME_S
        if old and not session.outcomes.is_in_view(uri):
            session.outcomes.dismiss(uri)
        elif shown.rename is not None and not (
            query.whole_renames and session.renames.is_current(shown.rename)
        ):
            return None
        elif shown.unsure or shown.confidence >= session.settings.threshold_in(query.language):
            return Show(shown, shown.replacement, "still holds")
    memory = session.memory(uri)
    overtaken = memory.overtaken
    if overtaken is None or overtaken.text != query.text:
        return None
    memory.overtaken = None
    situation = ghost_text.situation(session, "next_edit", query)
    situation = replace(situation, filters=filters(session, session.scene(query), query))
    if refuse(overtaken.edit, overtaken.confidence, situation) is not None:
        return None
    return Show(overtaken, overtaken.replacement, "still holds")


def _kept_elsewhere(session: Session, query: Query) -> Show | None:
    """Return an edit of another document that is shown to the user here."""
    away = session.memory(query.uri).away
    if away is None or not query.other_documents:
        return None
    shown = session.outcomes.live(away.id)
    if shown is None or shown.confidence < session.settings.threshold_in(query.language):
        return None
    return Show(shown, shown.replacement, "still holds")


def keep_overtaken(session: Session, suggestion: Suggestion) -> None:
    """Keep an edit whose answer came too late for its text, unless the user undid something."""
    session.outcomes.cancelled(suggestion)
    document = session.documents.get(suggestion.uri)
    followed = suggestion.followed(document.text) if document is not None else None
    undone = session.history.last_change(suggestion.uri) == "undo"
    session.memory(suggestion.uri).overtaken = followed[0] if followed and not undone else None


# --- decisions -----------------------------------------------------------------------------------


def _settle(
    session: Session, scene: EditScene, place: Place, prediction: Prediction
) -> Show | Abstain:
    """Decide on an answer that has just come, if its documents are as they were."""
    about = f" ({place.about.name}: {place.about.why})" if place.about is not None else ""
    decision = decide_edit(session, scene, place, prediction, f"from the model{about}")
    if scene.accepted is not None:
        return decision
    stale = refuse_stale(session.documents, scene.query, place.query)
    if stale is None:
        return decision
    if isinstance(decision, Show) and stale.kind == "document_changed" and place.about is None:
        keep_overtaken(session, decision.suggestion)
    return stale


def decide_edit(
    session: Session,
    scene: EditScene,
    place: Place,
    prediction: Prediction,
    reason: str,
    *,
    gated: bool = True,
) -> Show | Abstain:
    """Return the first edit of a prediction that may be shown, or why the best one may not.

    Args:
        gated: the gate's threshold counts.
    """
    query = place.query
    situation = _situation(session, scene, place, prediction)
    parts = list(_parts(scene, query, prediction))
    if situation.reported:  # what repairs an error of the last edits comes first
        parts.sort(key=lambda part: situation.reported.isdisjoint(range(*_edit(query, part).lines)))
    gate = session.gate()
    limits = situation if gated else replace(situation, threshold=0.0)
    found = decide(parts, limits, gate)
    if isinstance(found, Abstain):
        return found

    def again(part: Candidate) -> ShownCandidate | Abstain:
        return verdict(part, limits, gate)

    found = _first_in_order(scene, query, found, parts, again)
    usual = replace(situation, threshold=session.settings.threshold_in(query.language))
    doubt = too_unsure(found.score, least_score(found.edit, usual))
    suggestion = _suggestion(scene, query, found, prediction.model)
    suggestion = replace(suggestion, unsure=doubt.reason if doubt else "")
    if scene.accepted is None:
        suggestion = session.named(suggestion)
    return Show(suggestion, suggestion.replacement, reason)


def _situation(
    session: Session, scene: EditScene, place: Place, prediction: Prediction
) -> Situation:
    """Return what edits of a place are decided by."""
    situation = ghost_text.situation(session, "next_edit", place.query)
    parameters = grown(scene.edits)
    names = [*scene.names, place.about] if place.about is not None else None

    def unrelated(edit: Edit) -> Abstain | None:
        is_related = names is None or follows(edit, names)
        return None if is_related and not is_astray(edit, parameters) else UNRELATED

    if scene.accepted is not None:  # its lines are those of another text
        situation = replace(situation, changes=(), last_edit=None)
    return replace(
        situation,
        reported=_reported(session, scene, place.query),
        nothing=prediction.reason or "the model would change nothing here",
        filters=(unrelated, *filters(session, scene, place.query)),
    )


def filters(
    session: Session, scene: EditScene, query: Query
) -> Sequence[Callable[[Edit], Abstain | None]]:
    """Return what refuses edits of the query's document besides the filters of all clients."""

    def reach(edit: Edit) -> Abstain | None:
        language = query.language
        return reaches_too_far(
            edit,
            scene.edits,
            query.path,
            language,
            lambda name: session.context.definers(name, language),
        )

    def next_cell(edit: Edit) -> Abstain | None:
        above = session.context.above(query)
        opens = above is not None and any(one in f"\n{edit.new}" for one in above.stop)
        return Abstain("special_token", "the edit begins another cell") if opens else None

    if query.invoked:
        return (reach, next_cell)
    scope = partial(refuse_edit_in_scope, query, session.settings, session.context.syntax)
    taken = session.memory(query.uri).taken.refuse
    return (
        *([taken] if scene.accepted is None else []),
        partial(beside_empty_body, query),
        scope,
        reach,
        next_cell,
    )


def _reported(session: Session, scene: EditScene, query: Query) -> frozenset[int]:
    """Return the lines, 0-based, of which the editor reports what the last edits caused."""
    diagnostics = session.context.diagnostics(query) if scene.accepted is None else ()
    lines = query.text.split("\n") if diagnostics else []
    return frozenset(line for line, _ in caused(scene.edits, diagnostics, lines))


def _parts(scene: EditScene, query: Query, prediction: Prediction) -> Iterator[Candidate]:
    """Yield the candidates of a prediction cut into parts of one origin, the best first."""
    renames = renames_of(scene.edits)
    for candidate in prediction.candidates:
        for part in one_origin_each(_edit(query, candidate), renames, query.line):
            least = part.least()
            yield replace(candidate, start=least.start, end=least.end, text=least.new)


def _first_in_order(
    scene: EditScene,
    query: Query,
    best: ShownCandidate,
    parts: Sequence[Candidate],
    again: Callable[[Candidate], ShownCandidate | Abstain],
) -> ShownCandidate:
    """Return the first in order of the edits that do the same as the best one elsewhere.

    Code comes before comments, and what is below the user before what is above.
    """
    line = scene.query.line if query.uri == scene.query.uri else 0
    lines, prose = query.text.split("\n"), prose_rows(query.text, query.language)
    deed = _deed(best.edit)

    def key(edit: Edit) -> tuple[int, ...]:
        first = edit.lines[0]
        return first in prose, *place_key(lines[first], deed[0][0], first, line)

    edits = [(_edit(query, part), part) for part in parts if part is not best.candidate]
    rivals = [(key(edit), part) for edit, part in edits if _deed(edit) == deed] if deed else []
    for place, part in sorted(rivals, key=lambda rival: rival[0]):
        if place >= key(best.edit):
            break
        found = again(part)
        if isinstance(found, ShownCandidate):
            return found
    return best


def _suggestion(scene: EditScene, query: Query, shown: ShownCandidate, model: str) -> Suggestion:
    made, user = Suggestion.of(query, "next_edit", shown.edit, shown.score, model), scene.query
    if query.uri == user.uri:
        return replace(made, cursor=user.cursor)
    return replace(made, origin=(user.uri, user.line))


def _revealed(session: Session, scene: EditScene, own: Place, objection: Abstain) -> Show | Abstain:
    """Return what a gesture shows of an unsure edit at the cursor, or ``objection``.

    Without a gesture the edit stays hidden, and the reason says that a gesture shows it.
    """
    query, prediction = scene.query, session.requests.answers.get(own.request, own.others)
    if scene.accepted is not None or prediction is None:
        return objection
    best = decide_edit(session, scene, own, prediction, "asked for", gated=False)
    if not isinstance(best, Show):
        return objection
    if not query.invoked:
        reason = best.suggestion.unsure or objection.reason
        return Abstain("below_threshold", reason, is_revealable=True)
    return best if ghost_text.shown_at(session, query) is None else objection


def _edit(query: Query, candidate: Candidate) -> Edit:
    return Edit(query.text, candidate.start, candidate.end, candidate.text)


def _deed(edit: Edit) -> tuple[Rename, ...]:
    """Return what an edit does, wherever it is."""
    start, end, new = edit.whole_lines()
    return swapped(edit.text[start:end], new)
