"""What the user did after a moment, until the document came to rest, and how a suggestion made
there compares with it.

Pure; knows nothing of sessions or recordings.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from ..figures.metrics import delta_chrf, kept
from .followed_text import DocumentChange, Followed

QUIET_S = 10.0  # without a change: the document has come to rest
LONGEST_S = 300.0


def until_rest(steps: Sequence[DocumentChange], at_s: float) -> list[DocumentChange]:
    """The steps until no other follows for :data:`QUIET_S`, or :data:`LONGEST_S` are over."""
    found: list[DocumentChange] = []
    last_s = at_s
    for step in takewhile(lambda each: each.at_s - at_s <= LONGEST_S, steps):
        if step.at_s - last_s >= QUIET_S:
            break
        found.append(step)
        last_s = step.at_s
    return found


def needed(steps: Sequence[DocumentChange], at_s: float, ends_s: float) -> bool | None:
    """Was anything left to do in the document: did the user type within :data:`QUIET_S`? None
    where it cannot be told: what happened first came from elsewhere, or the recording ends."""
    rest = until_rest(steps, at_s)
    if rest:
        return True if rest[0].typed else None
    return False if ends_s - at_s >= QUIET_S else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A suggestion against the document at rest."""

    right: int  # characters written and kept, or rightly deleted
    suggested: int  # characters written and deleted
    done: int  # characters the user wrote and deleted in the end
    delta_chrf: float  # 0 … 100


def compare(
    text: str, start: int, end: int, replacement: str, steps: Sequence[DocumentChange]
) -> Comparison | None:
    """``replacement`` of text[start:end] against what the ``steps`` until rest made of the text.

    Only lines that the user or the suggestion touched are looked at. None where text from elsewhere
    came into them, or too much changed.
    """
    followed = Followed(text, (start, end))
    for step in steps:
        followed.apply(step)
    lines = followed.lines()
    if followed.mixed:
        return None
    base, final = followed.old_parts(lines), followed.new_parts(lines)
    candidate = followed.old_parts_with(lines, start, end, replacement)
    found = kept(base, candidate, final)
    if found is None:
        return None
    score = delta_chrf(base, [final], candidate)
    return Comparison(found.right, found.suggested, found.done, score)
