"""Questions that a recognised prompt asks: an infill, a rewritten region, or none.

Every completion route uses them. Their answers have the client's format and line ends.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from redraft.model.edits.edit import Edit
from redraft.model.gate.decide import (
    CANDIDATES,
    ShownCandidate,
    decide_insertion,
    situation_of,
    verdict,
)
from redraft.model.gate.fitting import fit
from redraft.model.gate.reasons import Abstain
from redraft.model.prompts.excerpt import Excerpt, newline_of, rewrite, to_request, unix
from redraft.model.prompts.fim import Middle
from redraft.model.prompts.registry import Unknown
from redraft.model.records import CanvasState, EditRequest, Prediction

from .respond import Abstention, HttpQuestion, Reply

FINISH_REASONS = {"end": "stop", "stop": "stop", "length": "length", "unsure": "stop"}

NO_CHANGE = "The model would change nothing here."
LONG_LINE = "The line at the cursor is too long."


def question(
    prompt: Middle | Excerpt | Unknown, template: EditRequest, threshold: float = 0.0
) -> HttpQuestion:
    """Return the question of a recognised prompt, with the sampling fields of ``template``.

    Args:
        threshold: score from which a rewritten region is given.
    """
    if isinstance(prompt, Excerpt):
        # As many candidates as an editor asks for; but each random draw costs one more answer.
        few = template.candidates if template.temperature else CANDIDATES[template.quality]
        several = dataclasses.replace(template, candidates=max(template.candidates, few))
        return Rewriting(prompt, to_request(prompt, several), threshold, template.candidates)
    if isinstance(prompt, Unknown):
        return Unanswered(prompt.reason)
    before, after = unix(prompt.before), unix(prompt.after)
    request = dataclasses.replace(
        template,
        path=prompt.path or template.path,
        text=before + after,
        cursor=len(before),
        related=prompt.related or template.related,
    )
    return Infilling(request, newline_of(prompt.before, prompt.after))


@dataclass(frozen=True)
class Unanswered(HttpQuestion):
    """A prompt that cannot be read."""

    reason: str
    request = None

    def answers(self, prediction: Prediction | None) -> list[Reply]:  # noqa: ARG002
        """Return one empty answer with the reason."""
        return [Reply("", "stop", self.reason, "unreadable")]


@dataclass(frozen=True)
class Infilling(HttpQuestion):
    """Text for the cursor."""

    request: EditRequest
    newline: str

    def answers(self, prediction: Prediction | None) -> list[Reply]:
        """Return the texts that no filter refuses."""
        if prediction is None or not prediction.candidates:
            return [Reply("", "stop", prediction.reason if prediction else "", "nothing")]
        verdicts = [decide_insertion(each, self.request) for each in prediction.candidates]
        texts = [
            Reply(
                self._outside(made.edit.new),
                FINISH_REASONS[made.candidate.finish],
                confidence=made.candidate.confidence.mean,
            )
            for made in verdicts
            if isinstance(made, ShownCandidate)
        ]
        objections = [made for made in verdicts if isinstance(made, Abstain)]
        return texts or [Reply("", "stop", _sentence(objections[0]), "refused")]

    def preview(self, state: CanvasState) -> str | None:
        """Return the whole answer as it stands, masked positions as light shades."""
        return self._outside(state.show())

    def keep_fitting(self, written: str) -> str:
        """Return the part of an unfinished answer that fits at the cursor."""
        if self.request.grammar is not None:
            return self._outside(written)
        made = fit(written, self.request, ended=False)
        return self._outside(made.new) if isinstance(made, Edit) else ""

    def _outside(self, text: str) -> str:
        return text.replace("\n", self.newline)


@dataclass(frozen=True)
class Rewriting(HttpQuestion):
    """A region rewritten as a whole, in its client's format.

    Its finish reason is always ``stop``. An answer that was cut for length only changes less, and
    clients would take ``length`` for a region that ends too early.
    """

    excerpt: Excerpt
    request: EditRequest | None
    threshold: float  # score from which a candidate is given
    most: int = 1  # choices

    def answers(self, prediction: Prediction | None) -> list[Reply]:
        """Return the rewritten regions that filters and the gate let pass."""
        if prediction is None:
            return [self._none(LONG_LINE, "long_line")]
        situation = situation_of(self.request, self.threshold) if self.request else None
        regions: list[Reply] = []
        objections: list[Reply] = []
        for candidate in prediction.candidates:
            region = rewrite(self.excerpt, candidate)
            if region is None or situation is None:
                continue
            decision = verdict(candidate, situation)
            if isinstance(decision, Abstain):
                objections.append(self._refused(decision))
            else:
                given = self.excerpt.write(region)
                regions.append(Reply(given, "stop", confidence=decision.score))
        nothing = self._none(prediction.reason or NO_CHANGE, "nothing")
        return regions[: self.most] or objections[:1] or [nothing]

    def _refused(self, abstain: Abstain) -> Reply:
        if abstain.kind == "below_threshold":
            reason = f"Hidden: {abstain.reason}. The field 'eagerness' changes the limit."
            return self._none(reason, "below_threshold")
        return self._none(_sentence(abstain), "refused")

    def _none(self, reason: str, abstained: Abstention) -> Reply:
        return Reply(self.excerpt.write(None), "stop", reason, abstained)


def _sentence(abstain: Abstain) -> str:
    return f"{abstain.reason[:1].upper()}{abstain.reason[1:]}."
