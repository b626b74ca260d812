"""Estimates of tokens by characters, and documents and histories cut to a number of tokens.

Serving has room for thousands of tokens and training rows for hundreds. A whole document rendered
with a small budget would lose its recent edits first; a shorter document rendered with room to
spare looks as it does when serving.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..records import RecentEdit

_CHARS_PER_TOKEN = 3.2  # of code without its indentation


def estimate(line: str) -> float:
    """Return the tokens of a line with its newline."""
    return 1.5 + len(line.strip()) / _CHARS_PER_TOKEN


def estimate_text(text: str) -> float:
    """Return the tokens of a text."""
    return sum(map(estimate, text.split("\n")))


def crop(
    lines: Sequence[str], first: int, last: int, tokens: float, above: float
) -> tuple[int, int]:
    """Return the lines [top, bottom) around [first, last) of about ``tokens`` tokens.

    Args:
        above: share of the remaining tokens for the lines above; one side gets what the other
            side cannot use.
    """
    room = tokens - sum(map(estimate, lines[first:last]))
    upward = _grown(lines[:first][::-1], room * above)
    below = room - sum(map(estimate, lines[first - upward : first]))
    downward = _grown(lines[last:], below)
    spare = below - sum(map(estimate, lines[last : last + downward]))
    upward += _grown(lines[: first - upward][::-1], spare)
    return first - upward, last + downward


def _grown(lines: Sequence[str], room: float) -> int:
    """Return how many of ``lines`` fit."""
    for taken, line in enumerate(lines):
        room -= estimate(line)
        if room < 0:
            return taken
    return len(lines)


def narrow(
    lines: Sequence[str], region: tuple[int, int], first: int, last: int, tokens: float
) -> tuple[int, int] | None:
    """Return ``region`` shortened to about ``tokens`` when its lines are numbered.

    None if not even the lines [first, last) fit, which must stay.
    """
    low, high = region
    spent = sum(estimate(line) + 3 for line in lines[low:high])
    while spent > tokens:
        if low >= first and high <= last:
            return None
        if first - low >= high - last:
            spent -= estimate(lines[low]) + 3
            low += 1
        else:
            high -= 1
            spent -= estimate(lines[high]) + 3
    return low, high


def newest(edits: Sequence[RecentEdit], tokens: float) -> tuple[RecentEdit, ...]:
    """Return the last edits that fit, each whole."""
    kept = 0
    for edit in reversed(edits):
        tokens -= estimate_text(edit.diff) + estimate(edit.path)
        if tokens < 0:
            break
        kept += 1
    return tuple(edits[len(edits) - kept :])
