"""Places to ask about for the next edit: around the cursor, and where the last edits bear on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import dropwhile, takewhile

from redraft.model.gate.eagerness import Eagerness
from redraft.model.rules.touched_names import REPORTED, caused, written

from . import question
from .context.gatherer import Gatherer
from .context.name_uses import Mention, Traces, find_places
from .policy.disabled_scopes import refuse_scope
from .question import Question
from .refusals import refuse
from .schedule import Schedule
from .snapshot import Snapshot

#: Places asked about after the cursor's own, at most.
MOST_PLACES: dict[Eagerness, int] = {"low": 1, "medium": 2, "high": 4}
#: ms that all of them together should take. The first one is asked about in any case.
SEARCH_MS = 2_000.0


def questions(snapshot: Snapshot, context: Gatherer, schedule: Schedule) -> Iterator[Question]:
    """Yield errors that the last edits caused, then the cursor's place, then other ones."""
    own = question_at_cursor(snapshot, context)
    others: Iterable[Question] = _elsewhere(snapshot, context, own, schedule)
    if snapshot.reports:
        others = list(others)
        yield from takewhile(_is_reported, others)
        others = dropwhile(_is_reported, others)
    yield own
    yield from others


def question_at_cursor(snapshot: Snapshot, context: Gatherer) -> Question:
    """Return the question about the region around the cursor."""
    is_future = snapshot.accepted is not None
    region = context.region_at(snapshot) if is_future else context.gather(snapshot).region
    return question.next_edit(snapshot, region.lines)


def _is_reported(one: Question) -> bool:
    return one.about is not None and one.about.why == REPORTED


def _elsewhere(
    snapshot: Snapshot, context: Gatherer, own: Question, schedule: Schedule
) -> Iterator[Question]:
    """Yield the questions about other places, the most promising first."""
    covered, count = [(snapshot.uri, *own.bounds)], 0
    for use in _name_uses(snapshot, context, own.bounds):
        uri = use.document.uri
        if any(uri == known and a <= use.line < b for known, a, b in covered):
            continue
        if count >= _most(snapshot, schedule.latency_ms("next_edit")):
            return
        place = snapshot.at(use.document, use.at)
        if uri != snapshot.uri and (refuse(place) or refuse_scope(place, context.syntax)):
            continue
        found = question.next_edit(place, context.region_at(place).lines, use.touched)
        covered.append((uri, *found.bounds))
        count += 1
        yield found


def _name_uses(snapshot: Snapshot, context: Gatherer, near: tuple[int, int]) -> list[Mention]:
    edits, done = snapshot.recent, written(snapshot.recent)
    if not (snapshot.names or done or snapshot.reports):
        return []
    traces = Traces(
        snapshot.names,
        done,
        context.importable(snapshot, edits),
        edits,
        [*caused(edits, snapshot.reports, snapshot.lines)],
        snapshot.above.text if snapshot.above is not None else "",
    )
    others = snapshot.opened.editable if snapshot.flags.other_documents else ()
    return find_places(
        traces, snapshot.document, near, snapshot.line, others, snapshot.index.definers
    )


def _most(snapshot: Snapshot, latency_ms: float) -> int:
    eagerness = snapshot.settings.eagerness_in(snapshot.language)
    most = MOST_PLACES["high" if snapshot.is_invoked else eagerness]
    return min(most, max(1, int(SEARCH_MS / latency_ms))) if latency_ms > 0 else most
