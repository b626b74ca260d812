"""Labels of the candidates of a run: right, kept, and what filters make of them.

Right is a next edit all of whose hunks are among those that were still to come, in whatever order
they were made; and ghost text that is what stood there, or the first whole lines of it. Blank ends
of lines count for nothing. Any run that holds predictions can be labelled.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from redraft.lsp.learning.own_samples import KEPT_SHARE, share_kept
from redraft.model.decode.sampling import confidence
from redraft.model.edits.edit import Edit
from redraft.model.edits.hunks import hunks_of
from redraft.model.gate.decide import situation_of, verdict
from redraft.model.gate.eagerness import least_total, threshold
from redraft.model.gate.features import with_features
from redraft.model.gate.fitting import strip_end
from redraft.model.gate.reasons import Abstain
from redraft.model.records import LEAST_LOG, Candidate, EditRequest, Task

from ..example import Example
from ..run import Run
from ..spec import RunSpec

#: Log-probability below which the engine gives up ghost text at medium eagerness.
SERVED_LEAST = least_total(threshold("medium", "infill"))


@dataclass(frozen=True, slots=True)
class Labelled:
    """Candidate of which it is known whether it was right."""

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
    def block(self) -> str:
        """Name of what is resampled together: a source, or a stretch of a session."""
        return self.group if self.kind == "replayed" else self.source


def label_candidates(example: Example, least: float = SERVED_LEAST) -> Iterator[Labelled]:
    """Return the candidates of an example, best first.

    Those whose outcome is unknown are left out.

    Args:
        least: log-probability below which ghost text is given up; lines below it are left out.
    """
    if "barred" in example.measured:
        yield from _judged(example)
        return
    request, truth = request_of(example), example.truth
    known = example.measured.get("right")  # of a moment of a recording
    answered = example.prediction.candidates if example.prediction is not None else ()
    served = [as_served(each, least) if request.task == "infill" else each for each in answered]
    places = [at for at, each in enumerate(served) if each is not None]
    candidates = with_features(request, [each for each in served if each is not None])
    situation = situation_of(request, 0.0)
    for place, each in zip(places, candidates, strict=True):
        edit = Edit(request.text, each.start, each.end, each.text)
        right = known[place] if known else is_right(edit, request, truth.final, truth.texts)
        if right is None:
            continue
        decision = verdict(each, situation)
        yield Labelled(
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


def _judged(example: Example) -> Iterator[Labelled]:
    """Return the candidates of an answer that was judged where it was given, by all filters."""
    told = example.measured
    candidates = example.prediction.candidates if example.prediction is not None else ()
    labels = zip(candidates, told["right"], told["kept"], told["barred"], strict=True)
    for place, (candidate, right, kept, barred) in enumerate(labels):
        yield Labelled(
            moment=example.id,
            group=example.group,
            language=example.language,
            kind=example.kind,
            task=example.task,
            place=place,
            candidate=candidate,
            right=right,
            kept=kept,
            barred=barred,
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
    """Return whether an edit agrees with the final text, or makes one of those ``wanted``."""
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
        edit = replace(edit, new=strip_end(edit.new, request))
        final = _near_cursor(edit, request.cursor, after)
    else:
        final = _near_edit(edit, after)
    return (share_kept(edit.text, edit.result, final) or 0.0) >= KEPT_SHARE


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


# --- runs ------------------------------------------------------------------------------------


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


def examples_of(run: Run) -> Iterator[Example]:
    """Yield the examples that can be labelled; each moment of a replay has one for each task."""
    for example in run.examples.values():
        asked = example.measured.get("asked")
        yield from [example] if asked is None else map(Example.from_json, asked)


def candidates_for_gate(run: Run) -> Iterator[Labelled]:
    """Return the candidates of a run that no rule keeps from being shown.

    They are whole, however improbable, as a user who asks for them gets them.
    """
    for example in examples_of(run):
        yield from (each for each in label_candidates(example, LEAST_LOG) if not each.barred)


def newest(runs: Iterable[Run]) -> Run:
    """Return all moments of some runs; of one that several hold, the last."""
    found = {name: one for run in runs for name, one in run.examples.items()}
    return Run(RunSpec("outcomes"), examples=found)
