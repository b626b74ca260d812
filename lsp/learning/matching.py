"""Comparison of a suggestion with what the user went on to write.

There are three matchers: the text becomes what the suggestion would have made of it; the same but
for white space; its first characters agree. Each counts the user's typing alone, within so many
changes. Besides, the suggestion is compared with the document at rest.

Suggestions are edits without characters that stay at either end (:meth:`Edit.least`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from redraft.model.edits.edit import Edit
from redraft.model.text.common import common_head

from .followed import Followed
from .kept_text import dense
from .recorded_moments import DocumentChange

QUIET_S = 10.0  # without a change: the document is at rest
LONGEST_S = 300.0
WITHIN = 50  # changes of the document
PREFIX = 10  # characters that have to agree; a shorter suggestion has to be exact
#: Seconds at the end of a recording in which the user may not have had the time.
UNSEEN_S = 10.0


def until_rest(steps: Sequence[DocumentChange], at_s: float) -> list[DocumentChange]:
    """Return the steps until none follows for :data:`QUIET_S`, or within :data:`LONGEST_S`."""
    found: list[DocumentChange] = []
    last_s = at_s
    for step in takewhile(lambda each: each.at_s - at_s <= LONGEST_S, steps):
        if step.at_s - last_s >= QUIET_S:
            break
        found.append(step)
        last_s = step.at_s
    return found


@dataclass(frozen=True, slots=True)
class Match:
    """The three matchers: True, False, or None if unknown."""

    exact: bool | None
    white_space: bool | None
    prefix: bool | None


def match(
    edit: Edit, steps: Sequence[DocumentChange], is_known: bool = True, within: int = WITHIN
) -> Match:
    """Compare a suggestion with what the ``steps`` made of its text.

    Args:
        steps: the changes of this document that followed, in order.
        is_known: whether the recording is long enough to tell.
    """
    followed, result = Followed(edit), edit.result
    spaces = prefix = diverged = False
    for step in steps[:within]:
        followed.apply(step)
        if followed.mixed:
            is_known = diverged
            break
        wanted, now = (
            followed.replace_watched(edit.start, edit.end, edit.new),
            followed.watched_text,
        )
        if now == wanted or (step.is_typed and followed.now == result):
            return Match(True, True, True)
        spaces = spaces or dense(now) == dense(wanted) != dense(edit.old)
        written = common_head(now, wanted) - (edit.start - followed.watched.old_start)
        prefix = prefix or len(edit.new) >= PREFIX <= written
        was = followed.replace_watched(edit.start, edit.end, edit.old)
        diverged = diverged or not _on_the_way(now, was, wanted)
    else:
        is_known = is_known or diverged or len(steps) >= within
    otherwise = False if is_known else None
    return Match(otherwise, spaces or otherwise, prefix or spaces or otherwise)


def _on_the_way(now: str, was: str, wanted: str) -> bool:
    """Return whether typing leads over ``now``: some new text written, some of the old deleted."""
    written = common_head(now, wanted)
    return any(was.endswith(now[at:]) for at in range(written + 1)) or was.startswith(now)
