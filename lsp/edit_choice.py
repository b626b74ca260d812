"""Choice of the next edit that is shown of a prediction."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from redraft.model.edits.edit import Edit
from redraft.model.edits.origins import Rename, find_swap, one_origin_each
from redraft.model.gate.decide import ShownCandidate, decide, verdict
from redraft.model.gate.filters import Situation, reaches_too_far
from redraft.model.gate.gate import Gate
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Prediction
from redraft.model.rules.arity import Signature, calls, is_missing
from redraft.model.rules.propose import place_key
from redraft.model.rules.renames import renames_of
from redraft.model.rules.touched_names import reports_of_edits, signature_changes
from redraft.model.text.code_queries import prose_rows
from redraft.model.text.syntax import language_of, parse_cached

from .context.gatherer import Gatherer
from .context.name_uses import follows, is_astray
from .policy.disabled_scopes import refuse_edit_in_scope
from .question import Question
from .refusals import beside_empty_body
from .snapshot import Snapshot
from .suggestions.changed_lines import ChangedLines

MISFIT = Abstain("unrelated", "the call would fit its parameters no better")
UNRELATED = Abstain("unrelated", "the edit has nothing to do with your last edit")

EditFilter = Callable[[Edit], Abstain | None]


def choose(
    question: Question, prediction: Prediction, situation: Situation, gate: Gate
) -> ShownCandidate | Abstain:
    """Return the likeliest edit of a prediction that may be shown, or why that one may not."""
    place = question.snapshot
    parts = parts_of(question, prediction)
    parts.sort(key=lambda part: -gate.score(part, situation.task, situation.pace))
    if situation.reported:  # what repairs an error of the last edits comes first
        parts.sort(key=lambda part: situation.reported.isdisjoint(range(*_edit(place, part).lines)))
    found = decide(parts, situation, gate)
    if isinstance(found, Abstain):
        return found

    def again(part: Candidate) -> ShownCandidate | Abstain:
        return verdict(part, situation, gate)

    return _first_in_order(place, found, parts, again)


def edit_filters(place: Snapshot, context: Gatherer, taken: ChangedLines) -> tuple[EditFilter, ...]:
    """Return what refuses edits besides the filters of all clients.

    Args:
        place: the place that is asked about.
        taken: lines that suggestions have just changed.
    """
    edits, language = place.recent, place.language

    def reach(edit: Edit) -> Abstain | None:
        definers = partial(place.index.definers, language=language)
        return reaches_too_far(edit, edits, place.path, language, definers)

    def next_cell(edit: Edit) -> Abstain | None:
        stop = place.above.stop if place.above is not None else ()
        opens = any(one in f"\n{edit.new}" for one in stop)
        return Abstain("special_token", "the edit begins another cell") if opens else None

    if place.is_invoked:
        return (taken.refuse_deletion, reach, next_cell)
    return (
        *([taken.refuse] if place.accepted is None else []),
        partial(beside_empty_body, place),
        partial(refuse_edit_in_scope, place, context.syntax),
        reach,
        next_cell,
    )


def refuse_unrelated(question: Question) -> EditFilter:
    """Return what refuses edits that have nothing to do with the last ones."""
    user = question.snapshot.asked_from
    parameters = signature_changes(user.recent)
    about = question.about
    names = [*user.names, about] if about is not None and about.name else None

    def refuse_unrelated(edit: Edit) -> Abstain | None:
        is_related = names is None or follows(edit, names)
        return None if is_related and not is_astray(edit, parameters) else UNRELATED

    return refuse_unrelated


def fits_call(question: Question) -> EditFilter:
    """Return what refuses edits of a reported call that bring it no nearer to its parameters."""
    signature, report = question.signature, question.report

    def misfit(edit: Edit) -> Abstain | None:
        if signature is None or report is None or report.line not in range(*edit.lines):
            return None
        place = question.snapshot
        before, after = (
            _misfits(text, place.language, place.path, signature)
            for text in (edit.text, edit.result)
        )
        if before is None or after is None or len(after) < len(before):
            return None
        more = [why for why in after if why not in before]  # one of two arguments may be added
        return None if more and all(map(is_missing, more)) else MISFIT

    return misfit


def _misfits(text: str, language: str, path: str, signature: Signature) -> list[str] | None:
    """Return why calls in a text do not fit; None without a grammar."""
    tree = parse_cached(text, language or language_of(path) or "")
    if tree is None:
        return None
    return [why for call in calls(tree, signature) if (why := call.objection(signature))]


def lines_reported(place: Snapshot) -> frozenset[int]:
    """Return the lines, 0-based, of which the editor reports what the last edits caused."""
    reports = place.reports
    lines = place.lines if reports else []
    return frozenset(line for line, _ in reports_of_edits(place.recent, reports, lines))


def parts_of(question: Question, prediction: Prediction) -> list[Candidate]:
    """Return the candidates of a prediction in parts of one origin, the best first.

    Each has the features of its place as well.
    """
    return list(_parts(question, prediction))


def _parts(question: Question, prediction: Prediction) -> Iterator[Candidate]:
    place = question.snapshot
    renames = renames_of(place.recent)
    for candidate in prediction.candidates:
        for part in one_origin_each(_edit(place, candidate), renames, place.line):
            least = part.least()
            features = {**candidate.features, **question.features}
            yield replace(
                candidate, start=least.start, end=least.end, text=least.new, features=features
            )


def _first_in_order(
    place: Snapshot,
    best: ShownCandidate,
    parts: Sequence[Candidate],
    again: Callable[[Candidate], ShownCandidate | Abstain],
) -> ShownCandidate:
    """Return the first in order of the edits that do the same as the best one elsewhere.

    Code comes before comments, and what is below the user before what is above.
    """
    user = place.asked_from
    line = user.line if place.uri == user.uri else 0
    lines, prose = place.text.split("\n"), prose_rows(place.text, place.language)
    swaps = _swaps(best.edit)

    def key(edit: Edit) -> tuple[int, ...]:
        first = edit.lines[0]
        return first in prose, *place_key(lines[first], swaps[0][0], first, line)

    edits = [(_edit(place, part), part) for part in parts if part is not best.candidate]
    rivals = [(key(edit), part) for edit, part in edits if _swaps(edit) == swaps] if swaps else []
    for at, part in sorted(rivals, key=lambda rival: rival[0]):
        if at >= key(best.edit):
            break
        found = again(part)
        if isinstance(found, ShownCandidate):
            return found
    return best


def _edit(place: Snapshot, candidate: Candidate) -> Edit:
    return Edit(place.text, candidate.start, candidate.end, candidate.text)


def _swaps(edit: Edit) -> tuple[Rename, ...]:
    """Return the words that an edit replaces by others, wherever it is."""
    start, end, new = edit.whole_lines()
    return find_swap(edit.text[start:end], new)
