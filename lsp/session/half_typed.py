"""Is the cursor where a word was just taken out, and the code broken without one?

Then another is about to be typed, and that the first one is gone is no change to carry on. Pure;
knows nothing of time or of the model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from redraft.model.edits.replacement import Replacement
from redraft.model.edits.rules import count_errors_of
from redraft.model.edits.spans import Span
from redraft.model.text.common import common_ends

from .questions import Query

_WORD = re.compile(r"\w+")


def missing_word(just_done: Sequence[Span], query: Query) -> str:
    """The word that is gone at the cursor; "" where none is, or where the code is whole without it,
    as ``f()`` is without an argument, or in a language that is not known.

    Args:
        just_done: as of :meth:`..editor.history.History.just_done`.
    """
    if not just_done or len(just_done[0].old) != 1 or len(just_done[0].new) != 1:
        return ""
    (old,), (new,) = just_done[0].old, just_done[0].new
    head, tail = common_ends(new, old)
    gone = old[head : len(old) - tail]
    place = just_done[0].first, head
    if head + tail < len(new) or not _WORD.fullmatch(gone) or _at_cursor(query) != place:
        return ""
    put_back = Replacement(query.text, query.cursor, query.cursor, gone)
    errors = count_errors_of(put_back, query.path, query.language)
    return gone if errors is not None and errors[1] < errors[0] else ""


def _at_cursor(query: Query) -> tuple[int, int]:
    """The cursor's 0-based line, and the characters before it there."""
    return query.line, query.cursor - query.text.rfind("\n", 0, query.cursor) - 1
