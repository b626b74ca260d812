"""Which ghost text is never shown, and how much of it is wanted at a cursor.

Pure functions of texts. Knows nothing of settings, thresholds, or of what was shown before.
"""

from __future__ import annotations

from .abstained import Abstained
from .rules import refuse_writing

_CLOSERS = frozenset(")]}>\"'`")

NOTHING_TO_ADD = "the model would write nothing here"


def line_before(text: str, cursor: int) -> str:
    return text[text.rfind("\n", 0, cursor) + 1 : cursor]


def line_after(text: str, cursor: int) -> str:
    end = text.find("\n", cursor)
    return text[cursor:] if end < 0 else text[cursor:end]


def lines_wanted(text: str, cursor: int, most: int) -> int:
    """One line in the middle of code; up to ``most`` where only closing brackets or quotes
    follow."""
    return most if is_free(line_after(text, cursor)) else 1


def is_free(rest: str) -> bool:
    """Return whether ``rest`` of a line holds nothing but closing brackets and quotes."""
    return all(char in _CLOSERS or char.isspace() for char in rest)


def refuse_completion(completion: str, text: str, cursor: int) -> Abstained | None:
    """Why inserting ``completion`` at ``cursor`` would never please anyone; None: it may."""
    if not completion:
        return Abstained("nothing_to_do", NOTHING_TO_ADD)
    if not completion.strip():
        return Abstained("whitespace_only", "the model would add only spaces or line breaks")
    if text.startswith(completion, cursor) or _repeats(completion, text, cursor):
        return Abstained("repeats_what_follows", "the same text already follows the cursor")
    return refuse_writing(completion, text)


def tidied(completion: str, text: str, cursor: int) -> str:
    """``completion`` without blank space at its end, where the line ends there anyway: a line end
    that nobody sees in a ghost would be in the file after Tab.
    """
    return completion if line_after(text, cursor).strip() else completion.rstrip()


def _repeats(completion: str, text: str, cursor: int) -> bool:
    """Is the completion, bar whitespace at its ends, what comes next anyway?"""
    wanted = completion.strip()
    following = text[cursor : cursor + 2 * len(completion) + 200].lstrip()
    # A short one such as ")" may well be needed twice; a whole line hardly ever.
    return len(wanted) > 3 and following.startswith(wanted)
