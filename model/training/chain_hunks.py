"""Places of a text that change together, as hunks in the order in which a person changes them.

Pure given a ``random.Random``. Knows nothing of what the places have in common.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence

from ..edits.hunks import Hunk, apply_history
from ..text.syntax import count_errors, parse
from .code_names import Code
from .commits import FileChange

Swap = tuple[int, int, str]  # text[start:end] becomes new

MOST = 8  # places of one chain; what stands in more is rarely changed one by one
LONGEST = 200  # characters of a line that may change
_REACH = 120  # lines between the first place and the last
_JOINED = 0.5  # chains in which neighbouring lines are changed in one go


def chain_of(
    path: str, code: Code, swaps: Sequence[Swap], rng: random.Random, as_given: bool = False
) -> FileChange | None:
    """The hunks of some swaps: that of the first swap first, then downwards from there, then
    upwards; or all in the order of their first swaps. None where a swap takes a line break
    away or a long line, where all are in one place, far apart or too many, and where the text
    would no longer parse."""
    lines = code.text.split("\n")
    found = _hunks(code.text, lines, swaps)
    if found is None or not 2 <= len(found) <= MOST:
        return None
    order = [code.text.count("\n", 0, swap[0]) for swap in swaps]
    first = order[0]
    if max(h.first for h in found) - min(h.first for h in found) > _REACH:
        return None
    ordered = [
        *(hunk for hunk in found if hunk.first >= first),
        *reversed([hunk for hunk in found if hunk.first < first]),
    ]
    if as_given:
        ordered = sorted(found, key=lambda hunk: order.index(hunk.first))
    elif rng.random() < _JOINED:
        ordered = _neighbours_joined(ordered)
    if len(ordered) < 2:
        return None
    new = apply_history(path, lines, ordered, len(ordered))[0]
    after = parse("\n".join(new), code.language)
    if after is None or count_errors(after):
        return None
    return FileChange(path, lines, new, ordered)


def _hunks(text: str, lines: Sequence[str], swaps: Iterable[Swap]) -> list[Hunk] | None:
    """One hunk for each line, from the top."""
    by_line: dict[int, list[Swap]] = defaultdict(list)
    for start, end, new in swaps:
        if "\n" in text[start:end]:
            return None
        by_line[text.count("\n", 0, start)].append((start, end, new))
    found: list[Hunk] = []
    for at, here in sorted(by_line.items()):
        begin = sum(len(line) + 1 for line in lines[:at])
        if all(start == begin and new.endswith("\n") for start, _, new in here):
            found += (Hunk(at, at, tuple(new[:-1].split("\n"))) for _, _, new in here)
            continue
        line = lines[at]
        for start, end, new in sorted(here, reverse=True):
            line = line[: start - begin] + new + line[end - begin :]
        if len(lines[at]) > LONGEST:
            return None
        found.append(Hunk(at, at + 1, tuple(line.split("\n"))))
    return found if len({hunk.first for hunk in found}) == len(found) else None


def _neighbours_joined(hunks: Sequence[Hunk]) -> list[Hunk]:
    """Hunks of lines that follow each other, as one."""
    found: list[Hunk] = []
    for hunk in hunks:
        if found and found[-1].last == hunk.first and hunk.last > hunk.first:
            found[-1] = Hunk(found[-1].first, hunk.last, (*found[-1].new, *hunk.new))
        else:
            found.append(hunk)
    return found
