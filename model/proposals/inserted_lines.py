"""Whole lines were put above or below a line that stands elsewhere too: they come there as well,
whatever the line on the other side is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..edits.edit_patterns import MOST_INSERTED, dedent
from .example import Added, Example, Found, readable, words

_TELLING = 4  # letters of names in the line that they stand beside


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    stripped = [line.strip() for line in lines]
    for one in example.added:
        written = [line.strip() for line in one.lines]
        if len(written) > MOST_INSERTED or not any(written):
            continue
        for anchor, behind in ((one.above, True), (one.below, False)):
            if not _tells(anchor):
                continue
            for at in readable(lines, first, last):
                if stripped[at] != anchor.strip():
                    continue
                place = at + behind
                around = stripped[max(0, place - len(written)) : place + len(written)]
                if written[0] in around and written[-1] in around:
                    continue
                made = _indented(one, anchor, lines[at])
                yield Found(place, place, made, one.age, 2 if behind else 1)


def _tells(line: str) -> bool:
    return sum(map(len, words(line))) >= _TELLING


def _indented(one: Added, anchor: str, line: str) -> tuple[str, ...]:
    """The lines, as far from ``line`` as they were from their anchor."""
    known, wanted = (text[: len(text) - len(text.lstrip())] for text in (anchor, line))
    if known == wanted:
        return one.lines
    made = []
    for text in one.lines:
        kept = text.removeprefix(known) if text.startswith(known) else text.lstrip()
        made.append(wanted + kept if kept.strip() else "")
    return tuple(made) if any(made) else dedent(one.lines)
