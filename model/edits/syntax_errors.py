"""Syntax errors that an edit adds, by parses before and after it, and edits cut to add none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from difflib import SequenceMatcher
from typing import TypeVar

from ..text.cursor import line_end
from ..text.syntax import Syntax, count_errors, language_of, parse, parse_cached
from .edit import Edit

#: Characters up to which a document is parsed as a whole. A longer one is parsed around the edit,
#: between lines that begin at the margin: 100,000 characters take 20 ms, and every suggestion waits
#: for several parses.
_WHOLE_CHARS = 30_000
_AROUND_LINES = 300
#: Shorter texts that are tried, each with one more line dropped. Each costs parses.
_MOST_SHORTER = 12
_NEARBY_LINES = 5  # errors that were there so near to an edit excuse errors in it

Result = TypeVar("Result")


def tree_of(text: str, language: str, path: str) -> Syntax | None:
    """Return the syntax tree of a text; None if its language has no grammar.

    Args:
        language: LSP id.
        path: its suffix names the language if ``language`` has no grammar.
    """
    return parse_cached(text, language) or parse_cached(text, language_of(path) or "")


def count_errors_of(
    edit: Edit, path: str, language: str, behind: str = ""
) -> tuple[int, int] | None:
    """Return the syntax errors around an edit without it and with it; None without a grammar.

    Args:
        behind: text that is written behind the new text as well.
    """
    low, high = _around(edit.text, edit.start, edit.end)
    tree = tree_of(edit.text[low:high], language, path)
    if tree is None:
        return None
    after = edit.text[low : edit.start] + edit.new + behind + edit.text[edit.end : high]
    changed = parse(after, tree.language, tree)
    before = count_errors(tree)
    return before, count_errors(changed) if changed else before


def count_added_errors(edit: Edit, path: str, language: str) -> int:
    """Return how many syntax errors an edit adds.

    The result is 0 if the text near the edit was broken already, or the language has no grammar.
    """
    start, end, new = edit.whole_lines()
    low, high = _around(edit.text, start, end)
    before = edit.text[low:high]
    tree = tree_of(before, language, path)
    if tree is None or count_errors(tree, *_nearby(before, start - low, end - low)):
        return 0
    changed = parse(edit.text[low:start] + new + edit.text[end:high], tree.language, tree)
    return max(0, count_errors(changed) - count_errors(tree)) if changed else 0


def at_margin(text: str, at: int) -> bool:
    """Return whether a definition may begin in the line that starts at ``at``."""
    return text[at : at + 1].isalpha() or text[at : at + 1] in ("@", "#")


def _around(text: str, start: int, end: int) -> tuple[int, int]:
    """Return the part of a text to parse, as indices [low, high)."""
    if len(text) <= _WHOLE_CHARS:
        return 0, len(text)
    low, high = start, end
    for _ in range(_AROUND_LINES):
        low = text.rfind("\n", 0, max(0, low - 1)) + 1
        high = line_end(text, min(high + 1, len(text)))
    while low > 0 and not at_margin(text, low):
        low = text.rfind("\n", 0, low - 1) + 1
    while high < len(text) and not at_margin(text, high + 1):
        high = line_end(text, high + 1)
    return low, high


def _nearby(text: str, start: int, end: int) -> tuple[int, int]:
    for _ in range(_NEARBY_LINES):
        start = text.rfind("\n", 0, max(0, start - 1)) + 1
        end = line_end(text, end + 1)
    return start, end


# --- edits without their last lines --------------------------------------------------------


def longest_valid(lines: int, of: Callable[[int], Result]) -> Result | None:
    """Return ``of(count)`` for the largest count of first ``lines`` for which it is not None."""
    counts = range(lines, max(0, lines - 1 - _MOST_SHORTER), -1)
    return next((found for count in counts if (found := of(count)) is not None), None)


def trim_to_valid(edit: Edit, path: str, language: str) -> Edit:
    """Return as many first lines of an edit as add no syntax error.

    A model that goes on for too long mostly goes wrong near the end of its answer. The whole edit
    is returned if none of its beginnings is better; the filters then refuse it.
    """
    if "\n" not in edit.new.rstrip("\n") or not count_added_errors(edit, path, language):
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
        if shorter.new in tried or count_added_errors(shorter, path, language):
            tried.add(shorter.new)
            return None
        return shorter

    return longest_valid(len(new) - 1, of) or edit
