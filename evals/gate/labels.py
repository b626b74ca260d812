"""Was a candidate right, by what a commit then said? And what would rules have made of it?

Right is a next edit all of whose hunks are among those that were still to come, in whatever order
they were made; and ghost text that is what stood there, or the first whole lines of it. Blank ends
of lines count for nothing. Knows nothing of gates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from typing import Any

from redraft.model.edits.abstained import Abstained
from redraft.model.edits.facts import with_facts
from redraft.model.edits.ghost_rules import tidied
from redraft.model.edits.hunks import hunks_of
from redraft.model.edits.replacement import Replacement
from redraft.model.edits.verdict import judge, moment_of
from redraft.model.records import (
    Candidate,
    Confidence,
    EditRequest,
    Facts,
    RecentEdit,
    RelatedFile,
    Task,
)

from ..figures.runs import Episode


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate of which is known whether it was right."""

    moment: str  # id of the episode
    group: str
    language: str
    kind: str
    task: Task
    place: int  # 0: the best of its answer
    candidate: Candidate
    right: bool
    barred: str  # the kind of rule that keeps it from being shown; "": none

    @property
    def source(self) -> str:
        """``owner/name`` of a commit or a file; the session of a recording."""
        return self.group.split("@")[0].split(":")[0]

    @property
    def block(self) -> str:
        """What is resampled together: a source, or a stretch of a session."""
        return self.group if self.kind == "replayed" else self.source


def judged(episode: Episode) -> Iterator[Judged]:
    """The candidates of an episode of ``redraft gate outcomes``, best first; without those of which
    nobody can tell."""
    request = request_of(episode)
    told = episode.get("right")  # of a recording, which tells it itself
    candidates = with_facts(request, [candidate_of(each) for each in episode["candidates"]])
    moment = moment_of(request, 0.0)
    for place, each in enumerate(candidates):
        edit = Replacement(request.text, each.start, each.end, each.text)
        right = (
            told[place] if told else is_right(edit, request, episode["after"], episode["wanted"])
        )
        if right is None:
            continue
        verdict = judge(edit, 1.0, moment, each.facts)
        yield Judged(
            moment=episode["id"],
            group=episode["group"],
            language=episode["language"],
            kind=episode["kind"],
            task=request.task,
            place=place,
            candidate=each,
            right=right,
            barred=verdict.kind if isinstance(verdict, Abstained) else "",
        )


def is_right(
    edit: Replacement, request: EditRequest, after: str, wanted: Collection[str] = ()
) -> bool:
    """Does the text that came in the end, or one of those ``wanted`` besides, say so too?"""
    if edit.result in wanted:
        return True
    if request.task == "infill":
        return _is_what_stood_there(edit, request.cursor, after)
    made = _hunks(edit.text, edit.result)
    return bool(made) and made <= _hunks(edit.text, after)


def _is_what_stood_there(edit: Replacement, cursor: int, after: str) -> bool:
    written = tidied(edit.new, edit.text, cursor).rstrip()
    stood = after[cursor : len(after) - (len(edit.text) - cursor)].rstrip()
    mine, true = _even(written), _even(stood)
    return bool(mine) and mine == true[: len(mine)]


def _even(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n")]


def _hunks(before: str, after: str) -> set[tuple[int, int, tuple[str, ...]]]:
    found = hunks_of(_even(before), _even(after))
    return {(each.first, each.last, each.new) for each in found}


# --- reading ------------------------------------------------------------------------------------


def request_of(episode: Episode) -> EditRequest:
    return EditRequest(
        task=episode["task"],
        path=episode["path"],
        text=episode["text"],
        cursor=episode["cursor"],
        language=episode["language"],
        related=tuple(RelatedFile(**each) for each in episode["related"]),
        edits=tuple(RecentEdit(**each) for each in episode["edits"]),
    )


def candidate_of(told: dict[str, Any]) -> Candidate:
    sure = told["confidence"]
    confidence = replace(
        Confidence(**sure), logs=tuple(sure.get("logs", ())), lines=tuple(sure.get("lines", ()))
    )
    facts = Facts(**told["facts"]) if told.get("facts") else None
    return Candidate(**{**told, "confidence": confidence, "facts": facts})
