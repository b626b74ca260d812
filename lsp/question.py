"""Questions to the model: one place of a snapshot, and the request about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import NamedTuple

from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import CANDIDATES
from redraft.model.gate.features import Features
from redraft.model.gate.filters import FAR_LINES
from redraft.model.gate.reasons import Abstain
from redraft.model.places.ranker import RankedPlace
from redraft.model.records import LEAST_LOG, Diagnostic, EditRequest, Prediction, Task
from redraft.model.rules.arity import Signature
from redraft.model.rules.touched_names import Touched
from redraft.model.text.cursor import is_free, line_after

from .snapshot import Snapshot

#: Lines by which a region moves while its line is being typed; so many at most stand above it.
TYPED_STEP = 3


class LineRange(NamedTuple):
    """Lines [first, last) of a document, 0-based."""

    uri: str
    first: int
    last: int

    def meets(self, other: LineRange) -> bool:
        """Return whether both have a line in common."""
        return self.uri == other.uri and self.first < other.last and other.first < self.last


@dataclass(frozen=True, eq=False)
class Question:
    """A question about one place."""

    snapshot: Snapshot  # as if the user were there
    request: EditRequest
    about: Touched | None = None  # the name that leads here; None: the place of the cursor
    report: Diagnostic | None = None  # why an edit is needed here for certain
    signature: Signature | None = None  # that a call in the reported line has to fit
    delay_ms: float = 0.0  # debounce before it
    number: int = 0  # within the session
    after: str = ""  # id of the suggestion after whose acceptance the answer is needed; "": now
    place: RankedPlace | None = None  # as the ranker found it; None: another reason leads here
    features: Features = field(default_factory=dict)  # of the place, for the gate
    #: Finds the other places that need an edit, of which the ranker or a rule is sure.
    others: Callable[[], Iterable[LineRange]] = tuple

    @property
    def bounds(self) -> tuple[int, int]:
        """The lines that may change."""
        assert self.request.region is not None
        return self.request.region

    @property
    def reach(self) -> LineRange:
        """The lines whose edits may be offered: of the region, those that are not too far away."""
        (first, last), line = self.bounds, self.snapshot.line
        first, last = max(first, line - FAR_LINES), min(last, line + FAR_LINES + 1)
        return LineRange(self.snapshot.uri, first, last)

    @property
    def task(self) -> Task:
        return self.request.task

    def at_place(self, place: RankedPlace) -> Question:
        """Return the question with the ranked place that leads to it."""
        return replace(self, place=place)

    def count_others(self, edit: Edit) -> int:
        """Return how many places besides an edit of this one need an edit, as far as known."""
        apart = [LineRange(self.snapshot.uri, *edit.lines)]
        for one in self.others():
            if not any(one.meets(each) for each in apart):
                apart.append(one)
        return len(apart) - 1

    @cached_property
    def context_hash(self) -> int:
        """Hash of the other texts that the answer depends on."""
        snapshot = self.snapshot
        return snapshot.above_hash if self.task == "infill" else snapshot.context_hash

    @property
    def where(self) -> str:
        """The place for people, such as "line 7" or "shop.py, line 7"."""
        place, line = self.snapshot, f"line {self.snapshot.line + 1}"
        return line if place.uri == place.asked_from.uri else f"{place.path}, {line}"

    def with_place(self, objection: Abstain) -> Abstain:
        """Return why nothing is shown here, with the place."""
        if self.about is None or objection.kind == "target_changed":
            return objection
        return replace(objection, reason=f"in {self.where}, {objection.reason}")


@dataclass(frozen=True, eq=False)
class Answer:
    """A question with the model's prediction."""

    question: Question
    prediction: Prediction
    took_ms: float = 0.0  # from the question to the prediction; 0 for one that was known


def infill(snapshot: Snapshot, candidates: int = 1) -> Question:
    """Return the question for ghost text at the cursor, without what takes time to gather.

    In the middle of code it is for one line. By a gesture it is for all that the model writes.
    """
    settings, invoked = snapshot.settings, snapshot.is_invoked
    lines = settings.max_lines if is_free(line_after(snapshot.text, snapshot.cursor)) else 1
    least = LEAST_LOG if invoked else settings.least_total_in(snapshot.language)
    request = replace(
        _request("infill", snapshot), max_lines=lines, least_total=least, candidates=candidates
    )
    return Question(snapshot, request)


def next_edit(
    snapshot: Snapshot, region: tuple[int, int], about: Touched | None = None
) -> Question:
    """Return the question for an edit of a region, without what takes time to gather."""
    if about is None and snapshot.accepted is None and snapshot.typed_at_s is not None:
        region = below_typed(region, snapshot.line)
    most = CANDIDATES[snapshot.settings.quality]
    request = replace(_request("next_edit", snapshot), region=region, candidates=most)
    return Question(snapshot, request, about)


def below_typed(region: tuple[int, int], line: int) -> tuple[int, int]:
    """Return the part of a region that is asked about while ``line`` is being typed.

    Few lines above it are left: a region costs about three readings of its tokens, and of 400 next
    edits of held-out commits near the last edit 3 begin above the cursor.
    """
    return max(region[0], (line - 1) // TYPED_STEP * TYPED_STEP), region[1]


def _request(task: Task, snapshot: Snapshot) -> EditRequest:
    settings = snapshot.settings
    is_cold = snapshot.visited_from is not None
    return EditRequest(
        task=task,
        path=snapshot.path,
        text=snapshot.text,
        cursor=snapshot.cursor,
        language=snapshot.language,
        context_tokens=snapshot.budget if is_cold else settings.context_tokens,
        max_tokens=settings.max_tokens,
        quality=settings.quality,
    )
