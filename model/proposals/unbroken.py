"""Of what is proposed, what leaves the syntax of a document as good as it is.

The rule is that by which an edit is refused at last (``edits/rules.py``), asked before the model
spends anything on a proposal.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from ..edits.replacement import Replacement
from ..edits.rules import refuse_syntax


class Unbroken:
    """Of one document.

    Args:
        language: as an LSP id; where there is no grammar for it, nothing is broken.
    """

    def __init__(self, lines: Sequence[str], language: str) -> None:
        self._text, self._language = "\n".join(lines), language
        self._starts = [0, *accumulate(len(line) + 1 for line in lines)]

    def keeps(self, first: int, last: int, new: Sequence[str]) -> bool:
        """Whether lines [first, last) may become ``new``."""
        end = len(self._text)
        written = "".join(f"{line}\n" for line in new)
        start, stop = self._starts[first], self._starts[last]
        if start > end:  # behind the last line, which has no end of its own
            start, stop, written = end, end, f"\n{written[:-1]}"
        elif stop > end:
            stop, written = end, written[:-1]
        edit = Replacement(self._text, start, stop, written)
        return refuse_syntax(edit, "", self._language) is None
