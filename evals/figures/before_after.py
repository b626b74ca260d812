"""The scene of an episode, for people: what was there, what was predicted, what it became.

Three states of one document, cut down to the lines in which they differ and a few around them, so
that a run's file holds what a reader needs and not the document. Knows nothing of benchmarks.
"""

from __future__ import annotations

from redraft.model.text.common import common_ends

BeforeAfter = dict[str, str | int]

AROUND = 6  # lines kept above and below
MOST_LINES = 60  # of each state
MOST_CHARS = 6_000  # of each text
LEFT_OUT = "⋯"  # a line that begins so stands for lines left out


def scene_of(path: str, before: str, predicted: str, expected: str) -> BeforeAfter:
    """What the browser of a report shows.

    Args:
        before: the whole document when the model was asked.
        predicted: the document as the prediction would leave it; ``before`` where there is none.
        expected: the document as it really became.

    Returns:
        ``path``; ``line``, the 0-based number of the first line of ``above``; ``above`` and
        ``below``, the lines around; ``was``, ``predicted`` and ``expected``, the lines between.
        Each line ends with a line feed, so that no line and an empty one differ.
    """
    states = [text.split("\n") for text in (before, predicted, expected)]
    head, tail = common_ends(*states)
    was, found, wanted = (lines[head : len(lines) - tail] for lines in states)
    was, found, wanted = _without_hole(was, found, wanted)
    first = max(0, head - AROUND)
    below = states[0][len(states[0]) - tail :][:AROUND]
    return {
        "path": path,
        "line": first,
        "above": _text(states[0][first:head]),
        "was": _text(was),
        "predicted": _text(found),
        "expected": _text(wanted),
        "below": _text(below),
    }


def _without_hole(
    was: list[str], found: list[str], wanted: list[str]
) -> tuple[list[str], list[str], list[str]]:
    """Leave out the unchanged lines between a prediction and a truth that lie far apart."""
    a, b = _changed(was, found), _changed(was, wanted)
    start, end = min(a[1], b[1]), max(a[0], b[0])  # unchanged lines of ``was`` between the two
    kept = AROUND // 2
    gone = end - start - 2 * kept
    if gone < 2 or was in (found, wanted):
        return was, found, wanted
    mark = f"{LEFT_OUT} {gone} lines as they were"

    def cut(lines: list[str], changed: tuple[int, int]) -> list[str]:
        grown = len(lines) - len(was) if changed[1] <= start else 0
        first = start + grown + kept
        return [*lines[:first], mark, *lines[first + gone :]]

    return cut(was, (end, end)), cut(found, a), cut(wanted, b)


def _changed(was: list[str], now: list[str]) -> tuple[int, int]:
    """Lines [first, last) of ``was`` that ``now`` changes."""
    head, tail = common_ends(was, now)
    return head, len(was) - tail


def _text(lines: list[str]) -> str:
    if len(lines) > MOST_LINES:
        gone = len(lines) - MOST_LINES
        lines = [*lines[:MOST_LINES], f"{LEFT_OUT} {gone} more lines"]
    text = "".join(f"{line}\n" for line in lines)
    return text if len(text) <= MOST_CHARS else f"{text[:MOST_CHARS]}\n{LEFT_OUT} cut\n"
