"""What a recognised prompt asks of the model, and how its answer reads in the client's format.

One :class:`Question` for infill, region rewrites and prompts that cannot be answered, so that every
route treats them alike. Pure; knows nothing of HTTP.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import CANDIDATES, Show, inserted, situation_of, verdict
from redraft.model.gate.fitting import fit
from redraft.model.gate.reasons import Abstain
from redraft.model.prompts.excerpt import Excerpt, rewrite, to_request, unix
from redraft.model.prompts.fim import Middle
from redraft.model.prompts.registry import Unknown
from redraft.model.records import (
    CanvasState,
    EditRequest,
    Prediction,
)

FINISH_REASONS = {"end": "stop", "stop": "stop", "length": "length", "unsure": "stop"}

NO_CHANGE = "The model would change nothing here."
LONG_LINE = "The line at the cursor is too long."

#: Why nothing is suggested, as it is counted: the prompt cannot be read · the line at the cursor is
#: too long · the model had nothing to say · it said what nobody wants · it was not sure enough.
Abstention = Literal["unreadable", "long_line", "nothing", "refused", "below_threshold"]


class Answer(NamedTuple):
    """One choice."""

    text: str
    finish: str  # "stop" or "length"
    reason: str = ""  # why nothing is suggested, for people
    abstained: Abstention | None = None  # the same for machines; None: something is suggested


class Question(Protocol):
    """``request`` is ``None`` where there is nothing to compute."""

    @property
    def request(self) -> EditRequest | None: ...

    def answers(self, prediction: Prediction | None) -> list[Answer]:
        """The choices, best first; never empty."""
        ...

    def state(self, state: CanvasState) -> str | None:
        """The whole answer as it stands, masked positions as light shades; ``None``: not yet."""
        ...


def question(
    meant: Middle | Excerpt | Unknown, template: EditRequest, threshold: float = 0.0
) -> Question:
    """What to ask for ``meant``, with the sampling fields of ``template``.

    Args:
        threshold: of a region's rewriting, confidence from which it is given.
    """
    if isinstance(meant, Excerpt):
        # As many to choose from as in an editor; but each that is drawn at random is a draw more.
        few = template.candidates if template.temperature else CANDIDATES[template.quality]
        several = dataclasses.replace(template, candidates=max(template.candidates, few))
        request = to_request(meant, several)
        return Rewriting(meant, request, threshold, template.candidates)
    if isinstance(meant, Unknown):
        return Unanswered(meant.reason)
    before, after = unix(meant.before), unix(meant.after)
    request = dataclasses.replace(
        template,
        path=meant.path or template.path,
        text=before + after,
        cursor=len(before),
        related=meant.related or template.related,
    )
    two = "\r\n" in meant.before or "\r\n" in meant.after
    return Infilling(request, "\r\n" if two else "\n")


def _sentence(abstain: Abstain) -> str:
    return f"{abstain.reason[:1].upper()}{abstain.reason[1:]}."


@dataclass(frozen=True, slots=True)
class Unanswered:
    reason: str

    @property
    def request(self) -> EditRequest | None:
        return None

    def answers(self, prediction: Prediction | None) -> list[Answer]:
        return [Answer("", "stop", self.reason, "unreadable")]

    def state(self, state: CanvasState) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class Infilling:
    """The text at the cursor, with the client's line ends."""

    request: EditRequest
    newline: str

    def answers(self, prediction: Prediction | None) -> list[Answer]:
        if prediction is None or not prediction.candidates:
            return [Answer("", "stop", prediction.reason if prediction else "", "nothing")]
        verdicts = [inserted(each, self.request) for each in prediction.candidates]
        found = [
            Answer(self._outside(made.edit.new), FINISH_REASONS[made.candidate.finish])
            for made in verdicts
            if isinstance(made, Show)
        ]
        objections = [made for made in verdicts if isinstance(made, Abstain)]
        return found or [Answer("", "stop", _sentence(objections[0]), "refused")]

    def state(self, state: CanvasState) -> str | None:
        return self._outside(state.show())

    def settled(self, written: str) -> str:
        """Return what of an answer that is not finished fits in its place."""
        if self.request.grammar is not None:
            return self._outside(written)
        made = fit(written, self.request, ended=False)
        return self._outside(made.new) if isinstance(made, Edit) else ""

    def _outside(self, text: str) -> str:
        return text.replace("\n", self.newline)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A region rewritten as a whole, in its client's format.

    It always finishes with ``stop``: an answer that was cut for length only changes less, and
    clients would take ``length`` for a region that ends too early.
    """

    excerpt: Excerpt
    request: EditRequest | None
    threshold: float  # confidence of a candidate that is given
    most: int = 1  # choices

    def answers(self, prediction: Prediction | None) -> list[Answer]:
        if prediction is None:
            return [self._none(LONG_LINE, "long_line")]
        situation = situation_of(self.request, self.threshold) if self.request else None
        found: list[Answer] = []
        objections: list[Answer] = []
        for candidate in prediction.candidates:
            region = rewrite(self.excerpt, candidate)
            if region is None or situation is None:
                continue
            decision = verdict(candidate, situation)
            if isinstance(decision, Abstain):
                objections.append(self._refused(decision))
            else:
                found.append(Answer(self._written(region), "stop"))
        nothing = self._none(prediction.reason or NO_CHANGE, "nothing")
        return found[: self.most] or objections[:1] or [nothing]

    def _refused(self, abstain: Abstain) -> Answer:
        if abstain.kind == "below_threshold":
            reason = f"Hidden: {abstain.reason}. The field 'eagerness' changes the limit."
            return self._none(reason, "below_threshold")
        return self._none(_sentence(abstain), "refused")

    def _none(self, reason: str, abstained: Abstention) -> Answer:
        return Answer(self._written(None), "stop", reason, abstained)

    def state(self, state: CanvasState) -> str | None:
        return None  # a region is given once it is whole

    def _written(self, region: str | None) -> str:
        return self.excerpt.write(region)
