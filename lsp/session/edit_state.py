"""What is remembered of a document between two questions about its next edit.

Decides nothing; :mod:`.next_edits` does.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from redraft.model.records import Prediction

from .answers_and_rejections import Key
from .suggestions import Suggestion
from .taken_lines import TakenLines
from .typing_rhythm import Rhythm

TextKey = tuple[int, int]  # length and hash: which text, without keeping it


@dataclass(slots=True)
class EditState:
    """What is remembered of one document."""

    overtaken: Suggestion | None = None  # its answer came too late for its text; it still holds
    away: Suggestion | None = None  # shown to the user who is here, though it is for another one
    #: What follows once edits of this chain are accepted, the one of this id first.
    prefetched: dict[TextKey | Key, Prediction] = field(default_factory=dict)
    prefetched_chain: str = ""
    prefetched_for: str = ""
    chain: tuple[TextKey, str] | None = None  # what acceptance made of the text, and its chain
    accepted: Suggestion | None = None  # just now: an undo takes it back
    taken: TakenLines = field(default_factory=TakenLines)
    rhythm: Rhythm = field(default_factory=Rhythm)


def which_text(text: str) -> TextKey:
    return len(text), hash(text)
