"""Was a candidate right, by what a commit then said? And what would rules have made of it?

Right is a next edit all of whose hunks are among those that were still to come, in whatever order
they were made; and ghost text that is what stood there, or the first whole lines of it. Blank ends
of lines count for nothing. Knows nothing of gates.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

import numpy as np
from redraft.model.decode.sampling import confidence
from redraft.model.edits.edit import Edit
from redraft.model.edits.hunks import hunks_of
from redraft.model.gate.decide import situation_of, verdict
from redraft.model.gate.eagerness import least_total, threshold
from redraft.model.gate.features import with_features
from redraft.model.gate.fitting import tidied
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, EditRequest, Task

from ..example import Example
from .own import KEPT_SHARE, kept_share

#: The reason of a moment of a recording at which no answer came.
NOT_ASKED = "not asked, or given up"

#: Log-probability below which the engine gives up ghost text at medium eagerness.
SERVED_LEAST = least_total(threshold("medium"))


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate of which is known whether it was right."""

    moment: str  # id of the example
    group: str
    language: str
    kind: str
    task: Task
    place: int  # 0: the best of its answer
    candidate: Candidate
    right: bool  # to the letter
    kept: bool  # half of it or more, as a user's own outcomes are judged
    barred: str  # the kind of rule that keeps it from being shown; "": none

    @property
    def source(self) -> str:
        """``owner/name`` of a commit or a file; the session of a recording."""
        return self.group.split("@")[0].split(":")[0]

    @property
    def is_worth_showing(self) -> bool:
        """What the gate is fitted to. Ghost text that is kept by half saves typing. An edit that is
        right by half has to be mended in code that was right before, so it has to be right."""
        return self.right if self.task == "next_edit" else self.kept

    @property
    def block(self) -> str:
        """What is resampled together: a source, or a stretch of a session."""
        return self.group if self.kind == "replayed" else self.source


def judged(example: Example, least: float = SERVED_LEAST) -> Iterator[Judged]:
    """Return the candidates of an example, best first.

    Those of which nobody can tell are left out.

    Args:
        least: log-probability below which ghost text is given up; lines below it are left out.
    """
    request, truth = request_of(example), example.truth
    told = example.measured.get("right")  # of a recording, which tells it itself
    answered = example.prediction.candidates if example.prediction is not None else ()
    served = [as_served(each, least) if request.task == "infill" else each for each in answered]
    places = [at for at, each in enumerate(served) if each is not None]
    candidates = with_features(request, [each for each in served if each is not None])
    situation = situation_of(request, 0.0)
    for place, each in zip(places, candidates, strict=True):
        edit = Edit(request.text, each.start, each.end, each.text)
        right = told[place] if told else is_right(edit, request, truth.final, truth.texts)
        if right is None:
            continue
        decision = verdict(each, situation)
        yield Judged(
            moment=example.id,
            group=example.group,
            language=example.language,
            kind=example.kind,
            task=request.task,
            place=place,
            candidate=each,
            right=right,
            kept=right or is_kept(edit, request, truth.final),
            barred=decision.kind if isinstance(decision, Abstain) else "",
        )


def as_served(candidate: Candidate, least: float) -> Candidate | None:
    """Return ghost text without the lines that the engine gives up; None: it gives up all.

    Args:
        least: log-probability from which a line, with all above it, goes on.
    """
    total = 0.0
    for count, log in enumerate(candidate.confidence.lines):
        before, total = total, total + log
        if total < least:
            return _first_lines(candidate, count, before) if count else None
    return candidate


def _first_lines(candidate: Candidate, count: int, total: float) -> Candidate:
    """Return the first ``count`` lines that are not blank; ``total`` is their log-probability."""
    lines = candidate.text.split("\n")
    filled = [at for at, line in enumerate(lines) if line.strip()]
    last = filled[count] if count < len(filled) else len(lines)
    sums = np.cumsum(candidate.confidence.logs)
    tokens = int(np.abs(sums - total).argmin()) + 1
    sure = confidence([math.exp(log) for log in candidate.confidence.logs[:tokens]])
    return replace(
        candidate,
        text="\n".join(lines[:last]).rstrip("\n"),
        confidence=replace(sure, lines=candidate.confidence.lines[:count]),
        tokens=tokens,
        finish="unsure",
    )


def is_right(edit: Edit, request: EditRequest, after: str, wanted: Collection[str] = ()) -> bool:
    """Does the text that came in the end, or one of those ``wanted`` besides, say so too?"""
    if edit.result in wanted:
        return True
    if request.task == "infill":
        return _is_what_stood_there(edit, request.cursor, after)
    made = _hunks(edit.text, edit.result)
    return bool(made) and made <= _hunks(edit.text, after)


def is_kept(edit: Edit, request: EditRequest, after: str) -> bool:
    """Return whether half of what ``edit`` writes and deletes, or more, is in ``after``.

    Only what became of the edit's own lines counts, as code that is written elsewhere later has
    words in common with nearly any suggestion.
    """
    if request.task == "infill":
        edit = replace(edit, new=tidied(edit.new, request))
        final = _near_cursor(edit, request.cursor, after)
    else:
        final = _near_edit(edit, after)
    return (kept_share(edit.text, edit.result, final) or 0.0) >= KEPT_SHARE


def _near_cursor(edit: Edit, cursor: int, after: str) -> str:
    """Return the text with as many lines of ``after`` at the cursor as the edit has."""
    rest = edit.text[cursor:]
    stood = after[cursor : len(after) - len(rest)]
    most = edit.new.count("\n") + 1
    return edit.text[:cursor] + "\n".join(stood.split("\n")[:most]) + rest


def _near_edit(edit: Edit, after: str) -> str:
    """Return the text with those hunks of ``after`` that touch lines of the edit."""
    old, new = _even(edit.text), _even(after)
    mine = hunks_of(old, _even(edit.result))
    found = [
        hunk
        for hunk in hunks_of(old, new)
        if any(hunk.first <= one.last and one.first <= hunk.last for one in mine)
    ]
    for hunk in reversed(found):
        old[hunk.first : hunk.last] = hunk.new
    return "\n".join(old)


def _is_what_stood_there(edit: Edit, cursor: int, after: str) -> bool:
    stood = after[cursor : len(after) - (len(edit.text) - cursor)].rstrip()
    mine, true = _even(edit.new.rstrip()), _even(stood)
    return bool(mine) and mine == true[: len(mine)]


def _even(text: str) -> list[str]:
    return [line.rstrip() for line in text.split("\n")]


def _hunks(before: str, after: str) -> set[tuple[int, int, tuple[str, ...]]]:
    found = hunks_of(_even(before), _even(after))
    return {(each.first, each.last, each.new) for each in found}


# --- reading ------------------------------------------------------------------------------------


def request_of(example: Example) -> EditRequest:
    """Return what was asked, about the whole document and without limits."""
    moment, request = example.moment, example.request
    return EditRequest(
        task=example.task,
        path=moment.path,
        text=moment.text,
        cursor=moment.cursor,
        language=moment.language,
        related=request.related if request is not None else (),
        edits=request.edits if request is not None else (),
    )
