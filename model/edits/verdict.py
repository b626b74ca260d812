"""Is what the model proposes worth showing? The one decision of everyone who shows or counts it.

The language server decides by it for ghost text and next edits, the HTTP service for rewritten
regions, and evaluations for what people would have seen. Pure functions of a proposal and of what
is known of the moment; knows nothing of time, of documents, or of how either is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from ..records import EditRequest, Facts, Quality, RecentEdit, Task
from ..rules.namesakes import namesake
from ..rules.renames import RenameScopes
from .abstained import Abstained
from .fitting import fit
from .gate import eagerness_of
from .ghost_rules import refuse_completion, tidied
from .just_done import just_done, last_line
from .replacement import Replacement
from .reversal import undoes
from .rules import refuse_edit, refuse_syntax, refuse_undefined
from .spans import Span

Proposal = TypeVar("Proposal")

#: Edits to choose from, where the first may not be shown: what the engine weighs against each other
#: at that quality anyway.
CANDIDATES: dict[Quality, int] = {"low": 1, "medium": 3, "high": 3}


@dataclass(frozen=True, slots=True)
class Show:
    """Worth showing."""

    edit: Replacement  # as it is to be shown


@dataclass(frozen=True, slots=True)
class Moment:
    """What a proposal is judged by, besides itself."""

    task: Task
    path: str
    language: str  # "" where nobody told
    text: str  # of the document, as that of each proposal
    cursor: int  # index into text
    threshold: float  # sureness from which is shown, see :mod:`.gate`
    just_done: Sequence[Span] = ()  # the user's last edits, at their places in text
    last_edit: int | None = None  # 0-based line of the user's last edit in text
    rejected: Callable[[Replacement], bool] = lambda edit: False  # did the user turn it down?
    related: Callable[[Replacement], bool] = lambda edit: True  # does it go with the last edits?
    #: Why an edit carries a change on beyond its reach, see :func:`refuse_reach`.
    out_of_reach: Callable[[Replacement], Abstained | None] = lambda edit: None


def moment_of(request: EditRequest, threshold: float) -> Moment:
    """The moment that a request tells of, for those who do not follow the user themselves."""
    done = just_done(request)
    return Moment(
        task=request.task,
        path=request.path,
        language=request.language,
        text=request.text,
        cursor=request.cursor,
        threshold=threshold,
        just_done=done,
        last_edit=last_line(done),
        out_of_reach=lambda edit: refuse_reach(edit, request.edits, request.path, request.language),
    )


def refuse_reach(
    edit: Replacement,
    edits: Sequence[RecentEdit],
    path: str,
    language: str,
    definers: Callable[[str], Collection[str]] = lambda name: (),
) -> Abstained | None:
    """Why an edit carries a recent one on where another name begins, or another class; None where
    it does not. See :mod:`.rename_scopes` and :mod:`.namesakes`."""
    name = RenameScopes(edits, edit.text, path, language).leaked(edit)
    if name:
        return Abstained("bound_again", f"'{name}' is another name here than the renamed one.")
    twin = namesake(edit, edits, path, definers)
    if twin:
        return Abstained(
            "bound_again", f"'{twin}' is another class here than the one that was changed"
        )
    return None


def judge(
    edit: Replacement, sure: float, moment: Moment, facts: Facts | None = None
) -> Show | Abstained:
    """Is ``edit`` shown at a moment?

    Args:
        sure: its sureness, see :meth:`.gate.Gate.sure`.
        facts: what is known of it besides; None where nobody told.
    """
    if moment.task == "infill":
        return _judge_ghost_text(edit, sure, moment)
    return _brings_back(facts) or _judge_edit(edit, sure, moment)


def first_shown(
    proposals: Iterable[Proposal],
    judged: Callable[[Proposal], Show | Abstained],
    nothing: str,
) -> Proposal | Abstained:
    """The first proposal that is worth showing, or what speaks against the best one.

    Args:
        proposals: the best one first.
        nothing: what is said where there is none.
    """
    objection: Abstained | None = None
    for each in proposals:
        verdict = judged(each)
        if isinstance(verdict, Show):
            return each
        objection = objection or verdict
    return objection or Abstained("nothing_to_do", nothing)


def _judge_ghost_text(edit: Replacement, sure: float, moment: Moment) -> Show | Abstained:
    text, cursor = moment.text, moment.cursor
    if (edit.start, edit.end) != (cursor, cursor):
        return Abstained("wrong_place", "the model answered for another place than the cursor")
    refused = refuse_completion(edit.new, text, cursor) or too_unsure(sure, moment.threshold)
    if refused is not None:
        return refused
    made = fit(tidied(edit.new, text, cursor), moment, replaces=True)  # costs a few parses
    if isinstance(made, Abstained):
        return made
    return (
        _rejected(made, moment, "you rejected this text here before")
        or _writes_what_was_deleted(made, moment)
        or Show(made)
    )


def _judge_edit(edit: Replacement, sure: float, moment: Moment) -> Show | Abstained:
    line = moment.text.count("\n", 0, moment.cursor)
    return (
        refuse_edit(edit, moment.just_done, line, moment.last_edit)
        or too_unsure(sure, moment.threshold)
        or _rejected(edit, moment, "you rejected this edit before")
        or refuse_syntax(edit, moment.path, moment.language)  # costs a parse
        or refuse_undefined(edit, moment.path, moment.language)
        or _unrelated(edit, moment)
        or moment.out_of_reach(edit)
        or Show(edit)
    )


def too_unsure(sure: float, threshold: float) -> Abstained | None:
    """Return why a proposal is not sure enough, with both numbers; None if it is sure enough."""
    if sure >= threshold:
        return None
    likely, least = percentages(sure, threshold)
    eagerness = eagerness_of(threshold)
    shows = f"{eagerness} shows" if eagerness else "shown"
    return Abstained("below_threshold", f"{likely} likely to be kept ({shows} from {least})")


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


def _rejected(edit: Replacement, moment: Moment, said: str) -> Abstained | None:
    return Abstained("rejected_before", said) if moment.rejected(edit) else None


def _writes_what_was_deleted(edit: Replacement, moment: Moment) -> Abstained | None:
    if undoes(edit, moment.just_done):
        return Abstained("reversal", "the model would write what you just deleted")
    return None


def _brings_back(facts: Facts | None) -> Abstained | None:
    if facts is not None and facts.undone:
        return Abstained("reversal", "the edit would bring back a name that you just removed")
    return None


def _unrelated(edit: Replacement, moment: Moment) -> Abstained | None:
    if moment.related(edit):
        return None
    return Abstained("unrelated", "the edit has nothing to do with your last edit")
