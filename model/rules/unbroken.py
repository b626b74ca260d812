"""Check that proposed edits add no syntax errors.

The filter of finished edits (``edits/rules.py``) is applied before the model judges a proposal.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ..edits.replacement import Replacement
from ..edits.rules import refuse_syntax


class Unbroken:
    """The syntax check of one document.

    Args:
        language: as an LSP id. Without a grammar for it, all edits pass.
    """

    def __init__(self, lines: Sequence[str], language: str) -> None:
        self._text, self._language = "\n".join(lines), language
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)]

    def keeps(self, first: int, last: int, new: Sequence[str]) -> bool:
        """Return whether lines [first, last) may become ``new``."""
        end = len(self._text)
        written = "".join(f"{line}\n" for line in new)
        start, stop = self._starts[first], self._starts[last]
        if start > end:  # behind the last line, which has no line end
            start, stop, written = end, end, f"\n{written[:-1]}"
        elif stop > end:
            stop, written = end, written[:-1]
        edit = Replacement(self._text, start, stop, written)
        return refuse_syntax(edit, "", self._language) is None
