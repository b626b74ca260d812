"""Did the user go on to write what was suggested? Three ways to say so.

Exact: the text reaches what the suggestion would have made of it. The same but for white space. Or
its first characters agree. Each within so many changes, and only by the user's own typing: where a
paste or somebody's suggestion meets the place before the user wrote anything else there, nobody can
tell, and the answer is None. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redraft.model.text.common import common_head

from ..figures.metrics import dense
from .followed_text import DocumentChange, Followed

WITHIN = 50  # changes of the document
PREFIX = 10  # characters that have to agree; a shorter suggestion has to be exact
#: Seconds at the end of a recording in which the user may not have had the time.
UNSEEN_S = 10.0


@dataclass(frozen=True, slots=True)
class Match:
    """Each True, False, or None where it cannot be told."""

    exact: bool | None
    white_space: bool | None
    prefix: bool | None


def match(
    text: str,
    start: int,
    end: int,
    replacement: str,
    steps: Sequence[DocumentChange],
    told: bool = True,
    within: int = WITHIN,
) -> Match:
    """Compare ``replacement`` of text[start:end] with what the ``steps`` made of it.

    Args:
        start, end, replacement: without what stays the same at either end.
        steps: the changes of this document that followed, in order.
        told: False where the recording ends too soon afterwards to tell.
    """
    followed = Followed(text, (start, end))
    result = text[:start] + replacement + text[end:]
    spaces = prefix = diverged = False
    for step in steps[:within]:
        followed.apply(step)
        if followed.mixed:
            told = diverged
            break
        wanted, now = followed.watched_with(start, end, replacement), followed.watched_text
        if now == wanted or (step.typed and followed.now == result):
            return Match(True, True, True)
        spaces = spaces or dense(now) == dense(wanted) != dense(text[start:end])
        prefix = prefix or _agrees(followed, start, replacement, now, wanted)
        was = followed.watched_with(start, end, text[start:end])
        diverged = diverged or not _on_the_way(now, was, wanted)
    else:
        told = told or diverged or len(steps) >= within
    otherwise = False if told else None
    return Match(otherwise, spaces or otherwise, prefix or spaces or otherwise)


def _on_the_way(now: str, was: str, wanted: str) -> bool:
    """Does ``now`` lie between, as typing goes: some of it written, some of the old deleted?"""
    written = common_head(now, wanted)
    return any(was.endswith(now[at:]) for at in range(written + 1)) or was.startswith(now)


def _agrees(followed: Followed, start: int, replacement: str, now: str, wanted: str) -> bool:
    region = followed.watched
    if region is None or len(replacement) < PREFIX:
        return False
    return common_head(now, wanted) - (start - region.old_start) >= PREFIX
