"""A line was written that stands elsewhere too: it was moved, and the other copy goes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .example import Example, Found, words

_TELLING = 8  # letters of names


def find(example: Example, lines: Sequence[str], first: int, last: int) -> Iterator[Found]:
    for one in example.added:
        wanted = [line.strip() for line in one.lines]
        while wanted and not wanted[-1]:
            wanted.pop()
        while wanted and not wanted[0]:
            wanted.pop(0)
        if not wanted or sum(map(len, words(" ".join(wanted)))) < _TELLING:
            continue
        stripped = [line.strip() for line in lines]
        places = [
            at
            for at in range(len(lines) - len(wanted) + 1)
            if stripped[at] == wanted[0] and stripped[at : at + len(wanted)] == wanted
        ]
        if len(places) != 2:
            continue
        own = _own(one.above.strip(), one.below.strip(), stripped, places, len(wanted))
        for at in places:
            if at != own and first <= at and at + len(wanted) <= last:
                yield Found(at, at + len(wanted), (), one.age, min(len(wanted), 3))


def _own(above: str, below: str, lines: Sequence[str], places: list[int], size: int) -> int | None:
    """Which of two copies is the one that was just written."""

    def agrees(at: int) -> int:
        over = lines[at - 1] if at else ""
        under = lines[at + size] if at + size < len(lines) else ""
        return (over == above) + (under == below)

    one, two = map(agrees, places)
    return None if one == two else places[0] if one > two else places[1]
