"""What never gets a suggestion, and which suggestions are never shown.

Pure functions of texts and settings. Each returns its reason, "" when it has no objection.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from functools import lru_cache

from ..model.edit_rules import refuse_writing
from .settings import LspSettings

#: Characters on either side of the cursor that show how dense a text is. Counting through all of a
#: large file at each keystroke would be the most expensive thing the server does.
_AROUND = 20_000

_CLOSERS = frozenset(")]}>\"'`")


def refuse_file(path: str, settings: LspSettings) -> str:
    """Why the file at ``path`` ("/" separated) gets no suggestions."""
    return _refuse_file(path.lower(), settings.secret_globs)


@lru_cache(maxsize=4_096)
def _refuse_file(path: str, globs: tuple[str, ...]) -> str:
    """Each open file is looked at with every question, and takes 0.1 ms."""
    name = path.rsplit("/", 1)[-1]
    for glob in globs:
        if fnmatchcase(name, glob.lower()) or fnmatchcase(path, glob.lower()):
            return f"{name} is excluded by the setting secret_globs ({glob})"
    return ""


def refuse_text(text: str, cursor: int, settings: LspSettings) -> str:
    """Why a document is too large or too dense to be read, or no text at all."""
    if len(text) > settings.max_file_chars:
        return f"file too large: {len(text):,} characters > {settings.max_file_chars:,}"
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        return f"line {line} holds a NUL character: this looks like a binary file"
    width = len(line_before(text, cursor)) + len(line_after(text, cursor))
    if width > settings.max_line_chars:
        return f"line too long: {width:,} characters > {settings.max_line_chars:,}"
    start, end = max(0, cursor - _AROUND), min(len(text), cursor + _AROUND)
    mean = (end - start) // (text.count("\n", start, end) + 1)
    limit = settings.max_line_chars // 10
    if mean > limit and len(text) > settings.max_line_chars:
        return f"text looks minified: {mean:,} characters a line > {limit:,}"
    return ""


def line_before(text: str, cursor: int) -> str:
    return text[text.rfind("\n", 0, cursor) + 1 : cursor]


def line_after(text: str, cursor: int) -> str:
    end = text.find("\n", cursor)
    return text[cursor:] if end < 0 else text[cursor:end]


def lines_wanted(text: str, cursor: int, settings: LspSettings) -> int:
    """One line in the middle of code; several where only closing brackets or quotes follow."""
    rest = line_after(text, cursor)
    free = all(char in _CLOSERS or char.isspace() for char in rest)
    return settings.max_lines if free else 1


def refuse_completion(completion: str, text: str, cursor: int) -> str:
    """Why inserting ``completion`` at ``cursor`` would never please anyone."""
    if not completion:
        return "the model had nothing to add here"
    if not completion.strip():
        return "only whitespace to add"
    if text.startswith(completion, cursor) or _repeats(completion, text, cursor):
        return "what it would add already follows the cursor"
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
