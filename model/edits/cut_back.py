"""What is written without its last lines, where all of it would break the file.

A model that writes on for too long mostly went wrong near the end. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TypeVar

from .replacement import Replacement
from .rules import refuse_syntax

#: Shorter texts that are tried, each without one more of the last lines; each costs parses.
MOST_SHORTER = 12

Made = TypeVar("Made")
Steps = Sequence[tuple[str, int, int, int, int]]  # opcodes of difflib


def first_whole(lines: int, made: Callable[[int], Made]) -> Made | None:
    """What is made of as many of ``lines``, from the first one on, as can be.

    Args:
        made: of so many lines; None where they break something.
    """
    counts = range(lines, max(0, lines - 1 - MOST_SHORTER), -1)
    return next((found for count in counts if (found := made(count)) is not None), None)


def cut_back(edit: Replacement, path: str, language: str) -> Replacement:
    """As much of ``edit``, from its first line on, as adds no syntax error; all of it where none of
    it is better: whoever judges it then says so."""
    if "\n" not in edit.new.rstrip("\n") or refuse_syntax(edit, path, language) is None:
        return edit
    lines = edit.new.split("\n")
    steps = SequenceMatcher(None, edit.old.split("\n"), lines, autojunk=False).get_opcodes()
    tried = {edit.old, edit.new}

    def made(count: int) -> Replacement | None:
        shorter = replace(edit, new=_without(edit, steps, count))
        if shorter.new in tried or refuse_syntax(shorter, path, language):
            tried.add(shorter.new)
            return None
        return shorter

    return first_whole(len(lines) - 1, made) or edit


def _without(edit: Replacement, steps: Steps, count: int) -> str:
    """Only the first ``count`` of the new lines: from there on they stay as they are."""
    old, new = edit.old.split("\n"), edit.new.split("\n")
    lines: list[str] = []
    for tag, i1, i2, j1, j2 in steps:
        if j2 <= count or tag == "equal":
            lines += new[j1:j2]
        elif i2 - i1 == j2 - j1:  # line by line
            lines += new[j1:count] + old[i1 + max(0, count - j1) : i2]
        else:
            lines += (new[j1:count] if tag == "insert" else []) + old[i1:i2]
    return "\n".join(lines)
