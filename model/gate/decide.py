"""Decides which candidate is shown: for the language server, HTTP, evaluations and replays."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from ..edits.edit import Edit
from ..edits.recent_changes import recent_changes
from ..records import Candidate, EditRequest, Quality, Task
from .destruction import find_removed_names
from .eagerness import eagerness_of, threshold
from .filters import CHEAP, COSTLY, Situation, first_reason, reaches_too_far
from .fitting import fit
from .gate import Gate, load_shipped
from .reasons import Abstain

#: Edits to choose from, where the first may not be shown: those that the engine weighs against each
#: other at that quality anyway.
CANDIDATES: dict[Quality, int] = {"low": 1, "medium": 3, "high": 3}


@dataclass(frozen=True, slots=True)
class ShownCandidate:
    """Decision to show an edit."""

    edit: Edit  # as it is shown
    candidate: Candidate  # that it was made of
    score: float  # the gate's, 0 … 1


def situation_of(request: EditRequest, least: float) -> Situation:
    """Return the situation that a request describes, for callers that do not follow the user.

    Args:
        least: score from which a candidate is shown.
    """
    changes = recent_changes(request)

    def reach(edit: Edit) -> Abstain | None:
        return reaches_too_far(edit, request.edits, request.path, request.language)

    return Situation(
        task=request.task,
        path=request.path,
        language=request.language,
        text=request.text,
        cursor=request.cursor,
        threshold=least,
        changes=changes,
        above=request.text_above,
        last_edit=max(changes[0].first, changes[0].end - 1) if changes else None,
        removed=find_removed_names(request.edits),
        filters=(reach,) if request.task == "next_edit" else (),
    )


def decide(
    candidates: Iterable[Candidate], situation: Situation, gate: Gate | None = None
) -> ShownCandidate | Abstain:
    """Return the first candidate that may be shown, or why the best one may not.

    Args:
        candidates: the best one first.
        gate: the shipped one by default.
    """
    objection: Abstain | None = None
    for candidate in candidates:
        found = verdict(candidate, situation, gate)
        if isinstance(found, ShownCandidate):
            return found
        objection = objection or found
    return objection or Abstain("nothing_to_do", situation.nothing)


def verdict(
    candidate: Candidate, situation: Situation, gate: Gate | None = None
) -> ShownCandidate | Abstain:
    """Apply the filters and the gate to one candidate."""
    task = situation.task
    if task == "next_edit" and candidate.features.get("undone"):
        said = "the edit would bring back a name that you just removed"
        return Abstain("reversal", said)
    edit = Edit(situation.text, candidate.start, candidate.end, candidate.text)
    score = (gate or load_shipped()).score(candidate, task, situation.pace)
    refused = _refuse_first(edit, score, situation)
    if refused is None and task == "infill":
        # A client that only inserts sets limits and stop strings, which may cut an answer anywhere.
        ended = not situation.inserts_only or candidate.finish in ("end", "unsure")
        fitted = fit(edit.new, situation, replaces=not situation.inserts_only, ended=ended)
        if isinstance(fitted, Abstain):
            return fitted
        edit = fitted
    return refused or _refuse_last(edit, situation) or ShownCandidate(edit, candidate, score)


def decide_insertion(candidate: Candidate, request: EditRequest) -> ShownCandidate | Abstain:
    """Decide on an infill for a client that can only insert, such as those of HTTP.

    Every score is shown, and an answer that fulfils a grammar stays as it is.
    """
    if request.grammar is not None:
        edit = Edit(request.text, candidate.start, candidate.end, candidate.text)
        return ShownCandidate(edit, candidate, 1.0)
    return verdict(candidate, replace(situation_of(request, 0.0), inserts_only=True))


def refuse(edit: Edit, score: float, situation: Situation) -> Abstain | None:
    """Return why a next edit that has a score already may not be shown; None if it may."""
    return _refuse_first(edit, score, situation) or _refuse_last(edit, situation)


def _refuse_first(edit: Edit, score: float, situation: Situation) -> Abstain | None:
    return first_reason(CHEAP[situation.task], edit, situation) or too_unsure(
        score, least_score(edit, situation), situation.task
    )


def _refuse_last(edit: Edit, situation: Situation) -> Abstain | None:
    refused = first_reason(COSTLY[situation.task], edit, situation)
    return refused or next(filter(None, (each(edit) for each in situation.filters)), None)


def least_score(edit: Edit, situation: Situation) -> float:
    """Return the score from which an edit is shown.

    Where the editor reports an error that the last edits caused, high eagerness counts: the place
    is certain, only the text is not.
    """
    if situation.reported.isdisjoint(range(*edit.lines)):
        return situation.threshold
    return min(situation.threshold, threshold("high", situation.task))


def too_unsure(score: float, least: float, task: Task) -> Abstain | None:
    """Return why a score is too low, with both numbers; None if it is high enough."""
    if score >= least:
        return None
    likely, shown_from = percentages(score, least)
    eagerness = eagerness_of(least, task)
    shows = f"{eagerness} shows" if eagerness else "shown"
    return Abstain("below_threshold", f"{likely} likely to be kept ({shows} from {shown_from})")


def percentages(smaller: float, larger: float) -> tuple[str, str]:
    """Return two shares in percent, with decimals only where whole numbers would be equal."""
    digits = 0
    while f"{100 * smaller:.{digits}f}" == f"{100 * larger:.{digits}f}" and digits < 20:
        digits += 1
    return _percent(smaller, digits), _percent(larger, digits)


def _percent(share: float, digits: int) -> str:
    if 0 < share < 0.005 and not digits:
        return "less than 1 %"
    number = f"{100 * share:.{digits}f}"
    return f"{number.rstrip('0').rstrip('.') if digits else number} %"
