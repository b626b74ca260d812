"""What a recognised prompt asks of the model, and how its answer reads in the client's format.

One :class:`Question` for infill, region rewrites and prompts that cannot be answered, so that every
route treats them alike. Pure; knows nothing of HTTP.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from redraft.model.prompt import InvalidAnswer, Prompt, read_answer
from redraft.model.records import (
    Candidate,
    CanvasState,
    Confidence,
    EditRequest,
    Prediction,
)

from .markers import Middle, Rewrite, Unknown
from .regions import edit_request, rewrite, unix

FINISH_REASONS = {"end": "stop", "stop": "stop", "length": "length"}

#: Name shown to the model where the client does not say which file it is.
NO_PATH = "untitled"

NO_CHANGE = "The model would change nothing here."
LONG_LINE = "The line at the cursor is too long to be predicted on."


class Answer(NamedTuple):
    """One choice."""

    text: str
    finish: str  # "stop" or "length"
    reason: str = ""  # why nothing is suggested, for people


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


def question(meant: Middle | Rewrite | Unknown, template: EditRequest) -> Question:
    """What to ask for ``meant``, with the sampling fields of ``template``."""
    if isinstance(meant, Rewrite):
        return Rewriting(meant, edit_request(meant.excerpt, template))
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


@dataclass(frozen=True, slots=True)
class Unanswered:
    reason: str

    @property
    def request(self) -> EditRequest | None:
        return None

    def answers(self, prediction: Prediction | None) -> list[Answer]:
        return [Answer("", "stop", self.reason)]

    def state(self, state: CanvasState) -> str | None:
        return None


@dataclass(frozen=True, slots=True)
class Infilling:
    """The text at the cursor, with the client's line ends."""

    request: EditRequest
    newline: str

    def answers(self, prediction: Prediction | None) -> list[Answer]:
        if prediction is None or not prediction.candidates:
            return [Answer("", "stop", prediction.reason if prediction else "")]
        return [
            Answer(self._outside(candidate.text), FINISH_REASONS[candidate.finish])
            for candidate in prediction.candidates
        ]

    def state(self, state: CanvasState) -> str | None:
        return self._outside(state.show())

    def _outside(self, text: str) -> str:
        return text.replace("\n", self.newline)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A region rewritten as a whole, in its client's format.

    It always finishes with ``stop``: an answer that was cut for length only changes less, and
    clients would take ``length`` for a region that ends too early.
    """

    meant: Rewrite
    request: EditRequest | None

    def answers(self, prediction: Prediction | None) -> list[Answer]:
        if prediction is None:
            return [Answer(self._written(None), "stop", LONG_LINE)]
        regions = [rewrite(self.meant.excerpt, one) for one in prediction.candidates]
        found = [Answer(self._written(region), "stop") for region in regions if region is not None]
        return found or [Answer(self._written(None), "stop", prediction.reason or NO_CHANGE)]

    def state(self, state: CanvasState) -> str | None:
        if self.request is None or self.request.region is None:
            return None
        prompt = Prompt((), region=self.request.region)
        try:
            change = read_answer(prompt, self.request, state.show(), ended=True)
        except InvalidAnswer:  # the range is not written yet
            return None
        if change is None:
            return None
        region = rewrite(self.meant.excerpt, _shown(change))
        return None if region is None else self._written(region)

    def _written(self, region: str | None) -> str:
        return self.meant.write(self.meant.excerpt, region)


def _shown(change: tuple[int, int, str]) -> Candidate:
    """A change as a candidate, of which only the place and the text are looked at."""
    return Candidate(*change, Confidence(0.0, 0.0, 0.0), tokens=0, steps=0, finish="end")
