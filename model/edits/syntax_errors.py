"""Syntax errors that an edit adds, by parses of the document before and after it."""

from __future__ import annotations

from ..text.cursor import line_end
from ..text.syntax import Syntax, count_errors, language_of, parse, parsed
from .edit import Edit

#: Characters up to which a document is parsed as a whole. A longer one is parsed around the edit,
#: between lines that begin at the margin: 100,000 characters take 20 ms, and every suggestion waits
#: for several parses.
_WHOLE_CHARS = 30_000
_AROUND_LINES = 300
_NEARBY_LINES = 5  # errors that were there so near to an edit excuse errors in it


def tree_of(text: str, language: str, path: str) -> Syntax | None:
    """Return the syntax tree of a text; None if its language has no grammar.

    Args:
        language: LSP id.
        path: its suffix names the language if ``language`` has no grammar.
    """
    return parsed(text, language) or parsed(text, language_of(path) or "")


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


def added_errors(edit: Edit, path: str, language: str) -> int:
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
