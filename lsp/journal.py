"""Journal of a session: what happens is written once, and all who need it read it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from redraft.model.gate.reasons import Abstain

from .documents.history import ChangeKind
from .documents.open_documents import Document, Splice
from .documents.positions import Range
from .question import Answer, Question
from .suggestions.outcomes import SuggestionEnded
from .suggestions.suggestion import Offer


@dataclass(frozen=True, slots=True)
class DocumentOpened:
    """A document is new, or its text can be trusted again."""

    document: Document


@dataclass(frozen=True, slots=True)
class ChangeComing:
    """A document is about to change."""

    uri: str


@dataclass(frozen=True, slots=True)
class DocumentChanged:
    """A document has changed."""

    document: Document
    splices: Sequence[Splice]
    kind: ChangeKind


@dataclass(frozen=True, slots=True)
class DocumentClosed:
    """A document was closed."""

    uri: str


@dataclass(frozen=True, slots=True)
class ExclusionsChanged:
    """Other files are excluded than before."""


@dataclass(frozen=True, slots=True)
class CursorMoved:
    """The user's cursor or selection, as a request says."""

    document: Document
    selection: Range


@dataclass(frozen=True, slots=True)
class FocusMoved:
    """The user looks at a document; "": they have left the editor."""

    uri: str


@dataclass(frozen=True, slots=True)
class QuestionAsked:
    """A question goes to the model."""

    question: Question


@dataclass(frozen=True, slots=True)
class AnswerReceived:
    """An answer of the model came."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class AnswerDecided:
    """A decision was made on an answer that came."""

    answer: Answer
    decision: Offer | Abstain


@dataclass(frozen=True, slots=True)
class DecisionMade:
    """The client gets a decision, whether the model was asked for it or not."""

    uri: str
    decision: Offer | Abstain


@dataclass(frozen=True, slots=True)
class SuggestionDisplayed:
    """The client has drawn a suggestion on the screen."""

    id: str


@dataclass(frozen=True, slots=True)
class AcceptanceReported:
    """The client reports that a suggestion was accepted."""

    id: str


Entry = (
    DocumentOpened | ChangeComing | DocumentChanged | DocumentClosed | ExclusionsChanged
    | CursorMoved | FocusMoved | QuestionAsked | AnswerReceived | AnswerDecided | DecisionMade
    | SuggestionDisplayed | AcceptanceReported | SuggestionEnded
)  # fmt: skip


class Journal:
    """Entries of a session, in order; each subscriber is called with every entry."""

    def __init__(self) -> None:
        self._subscribers: list[Callable[[Entry], None]] = []

    def subscribe(self, subscriber: Callable[[Entry], None]) -> None:
        """Call ``subscriber`` with every entry from now on, after those that subscribed before."""
        self._subscribers.append(subscriber)

    def write(self, entry: Entry) -> None:
        """Pass an entry to all subscribers."""
        for subscriber in self._subscribers:
            subscriber(entry)
