"""Reasons in words why an edit is where it is: the words of a hint.

A reason is read from the edit itself and from what the user did before, not from the place that the
model was asked about, because the model may change another line there. Where no reason is certain
there is none.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from redraft.model.edits.edit import Edit
from redraft.model.edits.hunks import line_changes, lines_of
from redraft.model.edits.origins import swaps
from redraft.model.records import RecentEdit
from redraft.model.rules.renames import renames_of
from redraft.model.rules.touched_names import SIGNATURE, Touched, call_changes, reports_of_edits
from redraft.model.text.common import find_changed_part
from redraft.model.text.lines import defines

from ..context.name_uses import NO_LONGER_USED, NOT_IMPORTED
from ..documents.history_edits import as_accepted
from ..question import Question

_MOST = 80  # characters of a reason
_NAME = re.compile(r"[^\W\d]\w*")
_TOKEN = re.compile(r"\w+|[^\w\s]")

#: What changed of a name that stands in a line of the edit.
_CHANGED = {
    SIGNATURE: "the parameters of `{}` changed",
    "its fields changed": "the fields of `{}` changed",
    "its value changed": "the value of `{}` changed",
    "it is not defined": "`{}` is not defined",
}
_DELETED = "no longer defined"

Rule = Callable[[Question, Edit, Sequence[RecentEdit]], str]


def why_here(question: Question, edit: Edit) -> str:
    """Return why an edit is where it is, in at most 80 characters; "" if that is not certain.

    Args:
        question: whose answer the edit is.
    """
    lines = edit.result.split("\n")
    as_edits = as_accepted(question.snapshot.path, edit, lines)
    found = (rule(question, edit, as_edits) for rule in _RULES)
    why = next(filter(None, found), "")
    return why if len(why) <= _MOST else f"{why[: _MOST - 1]}…"


def _of_report(question: Question, edit: Edit, _: Sequence[RecentEdit]) -> str:
    """Return what is reported of a line that the edit changes."""
    place, lines = question.snapshot, range(*edit.lines)
    wrong = question.report
    if wrong is not None and wrong.line in lines:
        return wrong.message[:1].lower() + wrong.message[1:]
    for report in place.reports:
        if report.line in lines and next(
            reports_of_edits(_recent(question), [report], place.lines), None
        ):
            message = " ".join(report.message.strip().partition("\n")[0].split())
            return f"the editor reports: {message.removesuffix('.')}"
    return ""


def _of_rename(question: Question, edit: Edit, _: Sequence[RecentEdit]) -> str:
    """Return the rename that the edit continues."""
    start, end, new = edit.whole_lines()
    made = {(one, two) for one, two, _ in swaps(edit.text[start:end], new)}
    for old, became in sorted(made & renames_of(_recent(question))):
        is_defined = any(one.name == old and one.defined for one in _names(question))
        return f"`{old}` is `{became}` now" if is_defined else f"you replaced `{old}` by `{became}`"
    return ""


def _of_call(question: Question, _: Edit, as_edits: Sequence[RecentEdit]) -> str:
    """Return the change of a call or of its definition that the edit continues."""
    here = {one.name: one for one in call_changes(as_edits)}
    changes = sorted(call_changes(_recent(question)), key=lambda one: not one.is_defined)
    for made in changes:  # a definition is the cause of what its calls became since
        if (one := here.get(made.name)) is None:
            continue
        added, removed = sorted(made.added - made.removed), sorted(made.removed - made.added)
        if made.is_defined:
            if len(added) == 1 and not removed:
                return f"`{added[0]}` was added to `{made.name}`"
            if len(removed) == 1 and not added:
                return f"`{removed[0]}` was removed from `{made.name}`"
            return f"the parameters of `{made.name}` changed"
        for names, also, how in ((added, one.added, "added"), (removed, one.removed, "removed")):
            if len(names) == 1 and names[0] in also:
                return f"same call, `{names[0]}` was {how}"
        return f"also a call of `{made.name}`"
    return ""


def _of_import(question: Question, edit: Edit, _: Sequence[RecentEdit]) -> str:
    """Return that the edit imports what is not imported, or drops what is not used."""
    about = question.about
    if about is not None and about.why == NO_LONGER_USED and not edit.new.strip():
        return NO_LONGER_USED
    if about is None or about.why != NOT_IMPORTED:
        return ""
    is_new = about.name in _NAME.findall(edit.new) and about.name not in _NAME.findall(edit.old)
    return f"`{about.name}` is not imported" if is_new else ""


def _of_likeness(question: Question, _: Edit, as_edits: Sequence[RecentEdit]) -> str:
    """Return that the edit does what the last one did."""
    made = {swap for edit in _recent(question)[-1:] for swap in _swapped(edit)}
    here = {swap for edit in as_edits for swap in _swapped(edit)}
    return "like your last edit" if here and here <= made else ""


def _of_name(question: Question, edit: Edit, _: Sequence[RecentEdit]) -> str:
    """Return what changed of a name in the lines that the edit changes."""
    start, end, _new = edit.whole_lines()
    here = {*_NAME.findall(edit.text[start:end])}
    for one in _names(question):
        if one.name not in here:
            continue
        if one.why in _CHANGED:
            return _CHANGED[one.why].format(one.name)
        if one.why == _DELETED and not _defines_any(_recent(question), one.name):
            return f"you deleted the definition of `{one.name}`"
    return ""


def _of_word(question: Question, edit: Edit, _: Sequence[RecentEdit]) -> str:
    """Return the strongest word that the lines of a ranked place share with the last edits."""
    start, end, new = edit.whole_lines()
    word = question.place.word if question.place is not None else ""
    is_here = word and word in _NAME.findall(f"{edit.text[start:end]}\n{new}")
    return f"shares `{word}` with your last edits" if is_here else ""


_RULES: tuple[Rule, ...] = (
    _of_rename, _of_call, _of_report, _of_import, _of_likeness, _of_name, _of_word
)  # fmt: skip


# --- what the user did ---------------------------------------------------------------------------


def _recent(question: Question) -> Sequence[RecentEdit]:
    return question.snapshot.asked_from.recent


def _names(question: Question) -> Sequence[Touched]:
    return question.snapshot.asked_from.names


def _swapped(edit: RecentEdit) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the tokens that each change of an edit removes, and those that it writes."""
    for change in line_changes(lines_of(edit.diff)):
        old, new = (_TOKEN.findall("\n".join(lines)) for lines in (change.old, change.new))
        _, gone, come = find_changed_part(old, new)
        if gone or come:
            yield tuple(gone), tuple(come)


def _defines_any(edits: Sequence[RecentEdit], name: str) -> bool:
    """Return whether edits wrote a definition of a name."""
    lines = (text for edit in edits for sign, text in lines_of(edit.diff) if sign == "+")
    return any(defines(line, name) for line in lines)
