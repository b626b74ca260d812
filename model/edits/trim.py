"""Edits without their last lines, where the whole edit would break the file.

A model that goes on for too long mostly goes wrong near the end of its answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TypeVar

from .edit import Edit
from .syntax_errors import added_errors

#: Shorter texts that are tried, each with one more line dropped. Each costs parses.
_MOST_SHORTER = 12

Result = TypeVar("Result")


def longest_valid(lines: int, of: Callable[[int], Result]) -> Result | None:
    """Return ``of(count)`` for the largest count of first ``lines`` for which it is not None."""
    counts = range(lines, max(0, lines - 1 - _MOST_SHORTER), -1)
    return next((found for count in counts if (found := of(count)) is not None), None)


def trim_to_valid(edit: Edit, path: str, language: str) -> Edit:
    """Return as many first lines of an edit as add no syntax error.

    The whole edit is returned if none of its beginnings is better; the filters then refuse it.
    """
    if "\n" not in edit.new.rstrip("\n") or not added_errors(edit, path, language):
        return edit
    old, new = edit.old.split("\n"), edit.new.split("\n")
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    tried = {edit.old, edit.new}

    def of(count: int) -> Edit | None:
        """Return the edit that makes only the first ``count`` new lines; None: it is no better."""
        lines: list[str] = []
        for tag, i1, i2, j1, j2 in steps:
            if j2 <= count or tag == "equal":
                lines += new[j1:j2]
            elif i2 - i1 == j2 - j1:  # line by line
                lines += new[j1:count] + old[i1 + max(0, count - j1) : i2]
            else:
                lines += (new[j1:count] if tag == "insert" else []) + old[i1:i2]
        shorter = replace(edit, new="\n".join(lines))
        if shorter.new in tried or added_errors(shorter, path, language):
            tried.add(shorter.new)
            return None
        return shorter

    return longest_valid(len(new) - 1, of) or edit
