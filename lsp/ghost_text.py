"""Ghost text of a session: what holds from before, what an answer shows, and what to ask."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import decide, too_unsure
from redraft.model.gate.explore import ExplorationDraw, draw
from redraft.model.gate.filters import CHEAP, NOTHING_TO_ADD, Situation, first_reason
from redraft.model.gate.fitting import fit
from redraft.model.gate.reasons import Abstain
from redraft.model.records import LEAST_LOG, EditRequest, Prediction, Task
from redraft.model.rules.renames import renames_of
from redraft.model.text.cursor import is_free, line_after, line_before

from .refusals import is_empty_body_line, refuse_moment, refuse_stale
from .schedule import deleting_s
from .settings import LspSettings
from .suggestion import PlacedRequest, Query, Show, Suggestion, request

if TYPE_CHECKING:
    from .session import Session

RENAMING = Abstain("renaming", "you are replacing a name here")
#: Other texts for the cursor that a gesture brings.
ALTERNATIVES = 3
NEXT_EDIT_SHOWN = Abstain("next_edit_shown", "a next edit is shown")


def infill_request(query: Query, settings: LspSettings) -> EditRequest:
    """Return the request for ghost text at the cursor, without what takes time to gather.

    In the middle of code it is for one line. By a gesture it is for all that the model writes.
    """
    lines = settings.max_lines if is_free(line_after(query.text, query.cursor)) else 1
    least = LEAST_LOG if query.invoked else settings.least_total_in(query.language)
    return replace(request("infill", query, settings), max_lines=lines, least_total=least)


def known(session: Session, query: Query) -> Show | Abstain | None:
    """Decide without the model, or return None."""
    if (refusal := session.refusal(query)) is not None:
        return refusal
    if edit_comes_first(session, query):
        return NEXT_EDIT_SHOWN
    if (hidden := session.rejections.hidden("infill", query)) is not None:
        return hidden
    if not query.invoked and _is_renaming(session, query):
        return RENAMING
    if (kept := _typed_through(session, query)) is not None:
        return kept
    if deleting_s(session, query):
        return None  # the request waits, and looks again
    if (answer := _known_answer(session, query)) is not None:
        return decide_ghost_text(session, query, answer, "same text and cursor as before")
    moment = refuse_moment(query, session.history, is_focused=session.is_focused)
    return moment or session.rejections.cooling(query, session.clock())


def question(session: Session, query: Query, wait_s: float = 0.0) -> PlacedRequest:
    """Return the question as the model gets it; ``wait_s`` is the debounce before it."""
    above = session.context.above(query)
    asked = replace(
        infill_request(query, session.settings),
        edits=session.history.edits(),
        related=session.context.gather(query).related,
        stop=() if above is None else above.stop,
    )
    others = session.context.above_hash(query)
    return PlacedRequest(query, asked, query, 1000 * wait_s, session.since_edit_s(), others)


def settle(session: Session, query: Query, prediction: Prediction) -> Show | Abstain:
    """Decide on an answer that has just come."""
    decision = decide_ghost_text(session, query, prediction, "from the model")
    if (stale := refuse_stale(session.documents, query)) is None:
        return NEXT_EDIT_SHOWN if edit_comes_first(session, query) else decision
    if isinstance(decision, Show) and stale.kind == "document_changed":
        session.memory(query.uri).keep(decision.suggestion)  # typing on may confirm it
        session.outcomes.cancelled(decision.suggestion)
    return stale


def decide_ghost_text(
    session: Session, query: Query, prediction: Prediction, reason: str
) -> Show | Abstain:
    """Return the first candidate that may be shown, or why the best one may not."""
    here = situation(session, "infill", query)
    here = replace(here, nothing=prediction.reason or NOTHING_TO_ADD)
    if query.invoked:  # by a gesture, unsure text and deleted text may be shown as well
        here = replace(here, changes=(), threshold=0.0)
    found = decide(prediction.candidates, here, session.gate())
    if isinstance(found, Abstain):
        return _marked(session, query, prediction, found)
    made = Suggestion.of(query, "infill", found.edit, found.score, prediction.model)
    doubt = too_unsure(found.score, session.settings.threshold_in(query.language))
    made = replace(session.named(made), unsure=doubt.reason if doubt else "")
    return Show(made, made.replacement, reason)


async def alternatives(session: Session, query: Query, first: Show) -> tuple[Show, ...]:
    """Return other texts for the cursor than ``first``, the likeliest first.

    The model is asked for several answers that begin with different tokens.

    Raises:
        Superseded: a newer request took the place of this one.
    """
    asked = question(session, query)
    asked = replace(asked, request=replace(asked.request, candidates=1 + ALTERNATIVES))
    prediction = session.requests.answers.get(asked.request)
    if prediction is None:
        await session.requests.ask(asked, partial(settle, session, query))
        prediction = session.requests.answers.get(asked.request)
    if prediction is None or refuse_stale(session.documents, query) is not None:
        return ()
    found: dict[str, Show] = {}
    for candidate in prediction.candidates:
        alone = replace(prediction, candidates=(candidate,))
        made = decide_ghost_text(session, query, alone, "another answer")
        if isinstance(made, Show) and made.text != first.text:
            found.setdefault(made.text, made)
    others = tuple(found.values())[:ALTERNATIVES]
    suggestions = tuple(each.suggestion for each in others)
    session.memory(query.uri).keep_behind(first.suggestion, suggestions)
    session.outcomes.offer_too(first.suggestion, suggestions)
    return others


def situation(session: Session, task: Task, query: Query) -> Situation:
    """Return what a prediction for the query's document is decided by."""
    history = session.history
    last = history.last_edit(query.uri)
    return Situation(
        task=task,
        path=query.path,
        language=query.language,
        text=query.text,
        cursor=query.cursor,
        threshold=drawn(session, query).threshold,
        changes=history.just_done(query.uri),
        last_edit=last[1] if last is not None else None,
        pace=session.pace.features(session.clock()),
        rejected=lambda edit: session.rejections.has_rejected(query.uri, edit),
    )


def drawn(session: Session, query: Query) -> ExplorationDraw:
    """Return the threshold for suggestions without a gesture.

    It is random only while outcomes are recorded: the gate learns from no others.
    """
    settings, recordings = session.settings, session.recordings
    explores = settings.explore_gate and recordings is not None and recordings.is_on()
    moment = f"{session.seed} {query.uri} {query.revision}"
    return draw(settings.threshold_in(query.language), explores and not query.invoked, moment)


def _marked(session: Session, query: Query, prediction: Prediction, found: Abstain) -> Abstain:
    """Return ``found``, marked if a gesture would show what is hidden."""
    if query.invoked:
        return found
    if prediction.is_given_up:  # the model finishes what a gesture asks for
        return replace(found, is_revealable=True)
    if found.kind not in ("below_threshold", "reversal"):
        return found
    by_gesture = replace(query, invoked=True)
    best = decide_ghost_text(session, by_gesture, prediction, "asked for")
    return replace(found, is_revealable=isinstance(best, Show))


def edit_comes_first(session: Session, query: Query) -> bool:
    """Return whether a next edit is shown that ghost text must not replace.

    A gesture replaces an unsure one. In the empty line of a body ghost text comes first, unless
    the edit writes there.
    """
    shown = session.outcomes.shown_edit(query.uri, query.text)
    if shown is None or not session.outcomes.is_in_view(query.uri):
        return False
    if query.invoked and shown.unsure:
        return False
    first, last = shown.lines
    return first <= query.line < last or not is_empty_body_line(query.text, query.cursor)


def comes_first(session: Session, query: Query) -> bool:
    """Return whether ghost text is shown at the cursor that a next edit must not replace.

    A gesture replaces unsure ghost text, but not in the empty line of a body.
    """
    if (shown := shown_at(session, query)) is None:
        return False
    may_replace = query.invoked and bool(shown.unsure)
    return not may_replace or is_empty_body_line(query.text, query.cursor)


def shown_at(session: Session, query: Query) -> Suggestion | None:
    """Return the ghost text that is shown at the cursor."""
    shown = session.outcomes.showing(query.uri)
    if shown is None or shown.task != "infill" or not shown.rest(query.text, query.cursor):
        return None
    return shown


def _known_answer(session: Session, query: Query) -> Prediction | None:
    """Return the answer that is known for a text and cursor.

    With and without a gesture it is the same, unless the model gave up without a gesture.
    """
    answers, settings = session.requests.answers, session.settings
    above = session.context.above_hash(query)
    found = answers.get(infill_request(query, settings), above)
    if found is not None:
        return found
    other = answers.get(infill_request(replace(query, invoked=not query.invoked), settings), above)
    return None if other is not None and query.invoked and not other.candidates else other


def _is_renaming(session: Session, query: Query) -> bool:
    """Return whether the cursor follows a new name that has replaced another one.

    With code behind it on the line, ghost text could only make the name longer.
    """
    before, rest = line_before(query.text, query.cursor), line_after(query.text, query.cursor)
    if is_free(rest) or not before[-1:].isidentifier() or rest[:1].isidentifier():
        return False
    renames = renames_of(session.history.edits(unfinished=True))
    return any(before.endswith(new) for _, new in renames)


def _typed_through(session: Session, query: Query) -> Show | None:
    """Return what is left of recent ghost text that the user has typed a part of."""
    memory = session.memory(query.uri)
    memory.follow_above(session.context.above_hash(query))
    for suggestion in memory.ghosts:
        threshold = session.settings.threshold_in(query.language)
        if not suggestion.unsure and suggestion.confidence < threshold:
            continue
        left = _left(suggestion, query)
        if left is None or session.rejections.has_rejected(suggestion.uri, suggestion.edit):
            continue
        edit = Edit(query.text, query.cursor, query.cursor, left[1])
        if first_reason(CHEAP["infill"], edit, situation(session, "infill", query)) is None:
            return Show(*left, "typed so far as suggested")
    return None


def _left(suggestion: Suggestion, query: Query) -> tuple[Suggestion, str] | None:
    """Return ghost text of which some was typed, and what is left of it at the cursor."""
    rest = suggestion.rest(query.text, query.cursor)
    typed = suggestion.replacement[: query.cursor - suggestion.cursor]
    if not rest or suggestion.inserted(query.text) == typed:
        return (suggestion, rest) if rest else None
    # The editor closed what was opened: what is left has to fit before that.
    made = fit(rest, query, replaces=True)
    if isinstance(made, Abstain):
        return None
    moved = replace(suggestion, text=query.text, cursor=query.cursor, start=made.start)
    return replace(moved, end=made.end, replacement=made.new), made.new
