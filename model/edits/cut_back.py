"""An edit of several lines that would break the file, without its last lines, where that does not.

A model that writes on for too long mostly went wrong near the end. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import SequenceMatcher

from .replacement import Replacement
from .rules import refuse_syntax

#: Shorter edits that are tried, each without one more of the last lines; each costs a parse.
MOST_SHORTER = 8


def cut_back(edit: Replacement, path: str, language: str) -> Replacement:
    """As much of ``edit``, from its first line on, as adds no syntax error; all of it where none of
    it is better: whoever judges it then says so."""
    if "\n" not in edit.new.rstrip("\n") or refuse_syntax(edit, path, language) is None:
        return edit
    for shorter in _shorter(edit):
        if shorter.old != shorter.new and refuse_syntax(shorter, path, language) is None:
            return shorter
    return edit


def _shorter(edit: Replacement) -> Iterator[Replacement]:
    """Without the last new line, without the last two, …: from there on the lines stay as they
    are."""
    old, new = edit.old.split("\n"), edit.new.split("\n")
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    seen = {edit.new}
    for count in range(len(new) - 1, max(0, len(new) - 1 - MOST_SHORTER), -1):
        lines: list[str] = []
        for tag, i1, i2, j1, j2 in steps:
            if j2 <= count or tag == "equal":
                lines += new[j1:j2]
            elif i2 - i1 == j2 - j1:  # line by line
                lines += new[j1:count] + old[i1 + max(0, count - j1) : i2]
            else:
                lines += (new[j1:count] if tag == "insert" else []) + old[i1:i2]
        made = "\n".join(lines)
        if made not in seen:
            seen.add(made)
            yield Replacement(edit.text, edit.start, edit.end, made)
