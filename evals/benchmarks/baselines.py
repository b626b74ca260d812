"""Who predicts in a replay besides a model: baselines that go the same way.

``none`` never has anything to show. ``copy-last-edit`` repeats the substitution of the user's last
edit where the same stands once more: what a model has to be better than. ``rules`` are the
repetitions that the engine puts to the model, with nobody to judge them. Pure functions of the
request; know nothing of replays.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from redraft.model.edits.hunks import lines_of
from redraft.model.records import (
    Candidate,
    Confidence,
    EditRequest,
    ModelStatus,
    Prediction,
    RecentEdit,
)
from redraft.model.rules.example import RuleEdit
from redraft.model.rules.propose import propose
from redraft.model.text.common import common_ends

NONE, COPY_LAST_EDIT, RULES = "none", "copy-last-edit", "rules"
POLICIES = (NONE, COPY_LAST_EDIT, RULES)

_SURE = Confidence(mean=1.0, minimum=1.0, first=1.0)  # it never says how sure it is
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
_WORD = re.compile(r"\w")
_LONGEST = 200  # characters of what is looked for


@dataclass(frozen=True, slots=True)
class Policy:
    """A predictor by rule."""

    name: str

    def status(self) -> ModelStatus:
        return ModelStatus("ready", model=self.name, provider="CPU", context_tokens=1_024)

    def ask(self, request: EditRequest) -> Prediction:
        if self.name == COPY_LAST_EDIT and request.task == "next_edit":
            return copy_last_edit(request)
        if self.name == RULES and request.task == "next_edit":
            return repeat_edits(request)
        return Prediction(self.name, self.name, (), "this policy has nothing to show")


def copy_last_edit(request: EditRequest) -> Prediction:
    """The last substitution once more: at the next place after the cursor, else from the top."""
    old, new = substitution(request.edits[-1]) if request.edits else ("", "")
    at = _next_place(request, old, new) if old else -1
    if at < 0:
        reason = "the last edit has no other place"
        return Prediction(COPY_LAST_EDIT, COPY_LAST_EDIT, (), reason)
    made = Candidate(at, at + len(old), new, _SURE, 0, 0, "end")
    return Prediction(COPY_LAST_EDIT, COPY_LAST_EDIT, (made,))


def substitution(edit: RecentEdit) -> tuple[str, str]:
    """What was replaced by what, by whole words, with the word before where something was only
    added. Two empty texts where there is nothing to look for, or whole lines were added."""
    lines = lines_of(edit.diff)
    old = _TOKEN.findall("".join(f"{text}\n" for sign, text in lines if sign in " -"))
    new = _TOKEN.findall("".join(f"{text}\n" for sign, text in lines if sign in " +"))
    head, tail = common_ends(old, new)
    removed, added = "".join(old[head : len(old) - tail]), "".join(new[head : len(new) - tail])
    while not _WORD.search(removed) and head and "\n" not in added:
        head -= 1
        removed, added = old[head] + removed, old[head] + added
    telling = _WORD.search(removed) and len(removed) <= _LONGEST
    return (removed, added) if telling else ("", "")


def _next_place(request: EditRequest, old: str, new: str) -> int:
    """Where ``old`` stands as whole words and ``new`` does not, -1 where nowhere."""
    places = [
        found.start()
        for found in re.finditer(_bounded(old), request.text)
        if not request.text.startswith(new, found.start() - (new.find(old) if old in new else 0))
    ]
    after = [at for at in places if at >= request.cursor]
    return (after or places or [-1])[0]


def _bounded(old: str) -> str:
    head = r"(?<!\w)" if old[0].isalnum() or old[0] == "_" else ""
    tail = r"(?!\w)" if old[-1].isalnum() or old[-1] == "_" else ""
    return head + re.escape(old) + tail


# --- the engine's rules -------------------------------------------------------------------------


def repeat_edits(request: EditRequest) -> Prediction:
    """What follows from the recent edits by rule, as sure as its odds, the likeliest first."""
    region = request.region or (0, request.text.count("\n") + 1)
    found = propose(request, region)
    reason = "" if found else "nothing follows from the recent edits by rule"
    candidates = tuple(_candidate(request.text, each) for each in found)
    return Prediction(RULES, RULES, candidates, reason)


def _candidate(text: str, rule: RuleEdit) -> Candidate:
    """Return an edit by rule as a candidate whose confidence is its chance."""
    edit, chance = rule.in_text(text), rule.chance
    sure = Confidence(chance, chance, chance, place=0.0, repeat=chance)
    return Candidate(
        edit.start,
        edit.end,
        edit.new,
        sure,
        len(rule.lines),
        0,
        "end",
        "repeat",
        family=rule.family,
    )
