"""Places to ask about for the next edit: around the cursor, and where the ranker finds others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from itertools import chain, islice
from typing import NamedTuple

from redraft.model.gate.eagerness import Eagerness
from redraft.model.gate.features import place_features
from redraft.model.places.ranker import NEAR
from redraft.model.records import Diagnostic
from redraft.model.rules.alike.restyle import find_restyles
from redraft.model.rules.arity import Signature, calls, means, signatures
from redraft.model.rules.diagnostics import find_undefined_name
from redraft.model.rules.imports import find_imports
from redraft.model.rules.siblings import find_lacking_literals, new_names
from redraft.model.rules.touched_names import Touched, call_changes, list_written, reports_of_edits
from redraft.model.rules.unused_imports import find_unused
from redraft.model.text.names import places_of
from redraft.model.text.syntax import language_of

from . import question
from .context.gatherer import Gatherer
from .context.name_uses import NO_LONGER_USED, NOT_IMPORTED
from .context.ranked_places import CLEARLY, DocumentPlace
from .documents.open_documents import OpenText
from .policy.disabled_scopes import refuse_scope
from .question import LineRange, Question
from .refusals import refuse
from .schedule import Schedule
from .snapshot import Snapshot

#: Places asked about besides the cursor's, at most.
MOST_PLACES: dict[Eagerness, int] = {"low": 1, "medium": 2, "high": 4}
#: ms that all of them together should take. The first one is asked about in any case.
SEARCH_MS = 2_000.0
#: Chance from which on a far place is asked about before the cursor's. On held-out commits 19 % of
#: moments have such a place, and 56 % of these places are right.
SURE_CHANCE = 0.15
#: Need below which no question is asked about a place. On held-out commits that saves 12 % of the
#: questions about three places, 21 % where nothing is left, and loses 4 % of the right places.
LEAST_NEED = 0.1
LIKELY = "a likely place"
FITS = "the last change fits there too"

_WRONG_CALL = 0.95
_UNIMPORTED = 0.85  # chance of a place where an import is missing
_MOST_IMPORTS = 20


def questions(snapshot: Snapshot, context: Gatherer, schedule: Schedule) -> Iterator[Question]:
    """Yield the places to ask about, the most promising first."""
    own = question_at_cursor(snapshot, context)  # parses the document, before lines are ranked
    ranked = context.places.rank(snapshot)
    for one in _in_order(own, context, schedule, ranked):
        uri, (first, end) = one.snapshot.uri, one.bounds
        in_file = [each.place for each in ranked if each.document.uri == uri]
        inside = [each for each in in_file if first <= each.line < end]
        is_certain = one.about is not None and one.place is None
        features = place_features(inside, in_file, is_certain=is_certain) if ranked else {}
        yield replace(one, features=features)


def _in_order(
    own: Question, context: Gatherer, schedule: Schedule, ranking: list[DocumentPlace]
) -> Iterator[Question]:
    snapshot = own.snapshot
    asked = [own]  # a place within their reach is not asked about again
    sure: list[DocumentPlace] = []
    wrong_calls = cache(
        lambda: [*_wrong_calls(snapshot, context), *_lacking_literals(snapshot, context)]
    )

    def has_room() -> bool:
        return len(asked) <= _most(snapshot, schedule.latency_ms("next_edit"))

    def among_others(found: Question) -> Question:
        """Return a question with the other places that are known; those asked about are done."""
        done = [one.reach for one in asked if one is not found]

        def others() -> Iterator[LineRange]:
            calls = (one.at for one in wrong_calls())
            yield from (one for one in calls if not any(map(one.meets, done)))
            near = (LineRange(one.document.uri, *_near(one.place.line)) for one in sure)
            yield from (one for one in near if not any(map(one.meets, [*done, found.reach])))

        return _sure_of_call(replace(found, others=others), wrong_calls)

    # 1. Errors that the editor reports since the last edits, and missing imports.
    for line, about in chain(_reported(snapshot), _unimported(snapshot, context)):
        if not has_room():
            break
        found = _ask(snapshot, context, snapshot.document, line, about, asked)
        if found is not None:
            asked.append(found)
            yield _must_answer(found)
    # 2. A far place first where the ranker is sure, then the region of the cursor.
    ranked = [one for one in ranking if one.place.need >= LEAST_NEED]
    sure += filter(is_sure, ranked)
    first = _ask_ranked(snapshot, context, sure[0], asked) if sure and has_room() else None
    if first is not None:
        asked.append(first)
        yield among_others(first)
    yield among_others(own)
    # 3. Calls that no longer fit the parameters, and literals the fields, that the edits changed.
    for call in wrong_calls() if has_room() else ():
        if not has_room():
            break
        found = _ask(snapshot, context, call.document, call.line, call.about, asked)
        if found is not None:
            asked.append(found)
            yield among_others(found)
    # 4. Places where the last change of a line fits, imports that lost their last use,
    # undefined names, and the other places.
    others = chain(
        (_ask(snapshot, context, snapshot.document, *one, asked) for one in _restyled(snapshot)),
        (_ask(snapshot, context, *one, asked) for one in _unused(snapshot)),
        (_ask(snapshot, context, snapshot.document, *one, asked) for one in _undefined(snapshot)),
        (_ask_ranked(snapshot, context, one, asked) for one in ranked),
    )
    while has_room() and (found := next(others, own)) is not own:
        if found is not None:
            asked.append(found)
            yield among_others(found)


class _WrongCall(NamedTuple):
    """A call that does not fit a signature, or a literal that lacks a field."""

    document: OpenText
    line: int  # 0-based
    about: Touched
    signature: Signature | None  # None: of a literal

    @property
    def at(self) -> LineRange:
        return LineRange(self.document.uri, self.line, self.line + 1)


def _sure_of_call(found: Question, wrong_calls: Callable[[], Iterable[_WrongCall]]) -> Question:
    """Return a question that wants an edit if its region holds a call that does not fit."""
    (first, end), uri = found.bounds, found.snapshot.uri
    for call in wrong_calls():
        if call.document.uri == uri and first <= call.line < end:
            report = Diagnostic(call.line, call.about.why, 1)
            return replace(_must_answer(found), report=report, signature=call.signature)
    return found


def _must_answer(found: Question) -> Question:
    """Return a question whose answer is an edit, however likely the model finds none."""
    return replace(found, request=replace(found.request, min_tokens=1))


def is_sure(one: DocumentPlace) -> bool:
    """Return whether a place is asked about before the region of the cursor."""
    least = SURE_CHANCE if one.is_open else CLEARLY * SURE_CHANCE
    return one.place.is_far and one.place.chance >= least


def question_at_cursor(snapshot: Snapshot, context: Gatherer) -> Question:
    """Return the question about the region around the cursor."""
    is_future = snapshot.accepted is not None
    region = context.region_at(snapshot) if is_future else context.gather(snapshot).region
    return question.next_edit(snapshot, region.lines)


def _ask_ranked(
    snapshot: Snapshot, context: Gatherer, one: DocumentPlace, asked: list[Question]
) -> Question | None:
    """Return the question about a ranked place, or None; see :func:`_ask`."""
    place, document = one.place, one.document
    near = "\n".join(document.lines[max(0, place.line - 1) : place.line + 2])
    names = (name for name in snapshot.names if next(places_of(name.name, near), None) is not None)
    about = next(names, Touched(place.word, place.chance, LIKELY))
    found = _ask(snapshot, context, document, place.line, about, asked)
    return None if found is None else found.at_place(place)


def _ask(
    snapshot: Snapshot,
    context: Gatherer,
    document: OpenText,
    line: int,
    about: Touched,
    asked: list[Question],
) -> Question | None:
    """Return the question about a line, None if it was asked about or must not be."""
    uri = document.uri
    if any(one.reach.meets(LineRange(uri, line, line + 1)) for one in asked):
        return None
    place = snapshot.at(document, _cursor_in(document, line, about.name))
    if uri != snapshot.uri and (refuse(place) or refuse_scope(place, context.syntax)):
        return None
    return question.next_edit(place, context.region_at(place).lines, about)


def _near(line: int) -> tuple[int, int]:
    """Return the lines within which a ranked place counts as found."""
    return max(0, line - NEAR), line + NEAR + 1


def _cursor_in(document: OpenText, line: int, name: str) -> int:
    """Return the index behind a name in a line, or that of the line's end."""
    start = sum(map(len, document.lines[:line])) + line
    text = document.lines[line]
    at = next(places_of(name, text), None) if name else None
    return start + (len(text) if at is None else at + len(name))


def _reported(snapshot: Snapshot) -> Iterator[tuple[int, Touched]]:
    """Yield the lines where the editor reports errors that the last edits may have caused."""
    if snapshot.reports:
        yield from reports_of_edits(snapshot.recent, snapshot.reports, snapshot.lines)


def _wrong_calls(snapshot: Snapshot, context: Gatherer) -> Iterator[_WrongCall]:
    """Yield the calls that do not fit a function whose parameters just changed.

    Those below the cursor come first, then those above, then those of other documents.
    """
    changed = (one.name for one in call_changes(snapshot.recent) if one.is_defined)
    names = [*dict.fromkeys(changed)]  # however many of the calls have followed since
    if not names:
        return
    meant = [each for each in _documents(snapshot) if any(name in each.text for name in names)]
    trees = [(each, context.syntax(snapshot.at(each, 0))) for each in meant]
    known = [(each, tree) for each, tree in trees if tree is not None]
    for name in names:
        defined = {each.path for each, _ in known}
        if snapshot.index.definers(name, snapshot.language) - defined:
            continue  # another file may define the one that is called
        found = [(each, one) for each, tree in known for one in signatures(tree, name)]
        if len(found) != 1:
            continue
        ((home, signature),) = found
        for document, tree in known:
            if not means(tree, document.path, signature, home.path):
                continue
            wrong = [
                (call.line, why)
                for call in calls(tree, signature)
                if (why := call.objection(signature))
            ]
            is_here = document.uri == snapshot.uri
            wrong.sort(key=lambda one: (is_here and one[0] < snapshot.line, one[0]))
            for line, why in wrong:
                yield _WrongCall(document, line, Touched(name, _WRONG_CALL, why), signature)


def _documents(snapshot: Snapshot) -> list[OpenText]:
    """Return the documents that a place may be in, that of the snapshot first."""
    others = snapshot.opened.editable if snapshot.flags.other_documents else ()
    return [snapshot.document, *(each for each in others if each.uri != snapshot.uri)]


def _lacking_literals(snapshot: Snapshot, context: Gatherer) -> Iterator[_WrongCall]:
    """Yield the literals of the document that lack a field which the last edits added."""
    if snapshot.language != "rust" or not any(new_names(snapshot.recent, snapshot.path)):
        return
    tree = context.syntax(snapshot)
    found = find_lacking_literals(snapshot.recent, snapshot.path, tree) if tree is not None else ()
    for line, name, why in dict.fromkeys(found):
        yield _WrongCall(snapshot.document, line, Touched(name, _WRONG_CALL, why), None)


def _undefined(snapshot: Snapshot) -> Iterator[tuple[int, Touched]]:
    """Yield the lines with names that the editor reports to be undefined."""
    names = {one.name: one for one in snapshot.names}
    for report in snapshot.reports:
        about = names.get(find_undefined_name(report.message) or "")
        if about is not None and report.severity == 1 and report.line < len(snapshot.lines):
            yield report.line, about


def _unimported(snapshot: Snapshot, context: Gatherer) -> Iterator[tuple[int, Touched]]:
    """Yield the lines where an import is missing that the last edits need."""
    lines = list_written(snapshot.recent)
    if not lines:
        return
    found = find_imports(
        snapshot.text,
        snapshot.language or language_of(snapshot.path) or "",
        lines,
        context.importable(snapshot, snapshot.recent),
        above=snapshot.above.text if snapshot.above is not None else "",
    )
    last = len(snapshot.lines) - 1
    known = {(min(one.first, last), one.name) for one in islice(found, _MOST_IMPORTS)}
    for line, name in sorted(known):
        yield line, Touched(name, _UNIMPORTED, NOT_IMPORTED)


def _unused(snapshot: Snapshot) -> Iterator[tuple[OpenText, int, Touched]]:
    """Yield the lines of imports whose last use the last edits removed, by document."""
    changed = {each.path for each in snapshot.recent}
    for each in _documents(snapshot):
        if each.path in changed:
            language = each.language or language_of(each.path) or ""
            for one in find_unused(each.text, language, each.path, snapshot.recent):
                yield each, one.first, Touched("", one.chance, NO_LONGER_USED)


def _restyled(snapshot: Snapshot) -> Iterator[tuple[int, Touched]]:
    """Yield the lines where the last change of a line fits too, those below the cursor first."""
    found = list(find_restyles(snapshot.recent, snapshot.path, snapshot.text))
    found.sort(key=lambda one: (one.first < snapshot.line, abs(one.first - snapshot.line)))
    for one in found:
        yield one.first, Touched("", one.chance, FITS)


def _most(snapshot: Snapshot, latency_ms: float) -> int:
    eagerness = snapshot.settings.eagerness_in(snapshot.language)
    most = MOST_PLACES["high" if snapshot.is_invoked else eagerness]
    return min(most, max(1, int(SEARCH_MS / latency_ms))) if latency_ms > 0 else most
