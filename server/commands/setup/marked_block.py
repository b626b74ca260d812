"""Marked blocks of lines in files of the user."""

from __future__ import annotations

import re

from redraft.model.errors import EditorSetupError

_BEGIN, _END = ">>> redraft setup", "<<< redraft setup"
_BLOCK = re.compile(rf"(?:(?<=\n)\r?\n)?[^\n]*{_BEGIN}.*?{_END}[^\n]*(?:\n|\Z)", re.DOTALL)


def with_block(text: str, editor: str, lines: str, comment: str) -> str:
    """Return a text with a block at its end, in place of an older one.

    Args:
        lines: of the block, each with "\\n".
        comment: the characters that begin a comment.
    """
    text = without_block(text)
    end = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text.strip() else "\n" if text.endswith("\n") else "\n\n"
    begin = f"{_BEGIN} {editor} (--remove takes this out; changes here are lost)"
    block = f"{gap}{comment} {begin}\n{lines}{comment} {_END} {editor}\n"
    return text + block.replace("\n", end)


def without_block(text: str, _before: str = "") -> str:
    """Return a text without the block.

    Raises:
        EditorSetupError: the block has no end any more.
    """
    left = _BLOCK.sub("", text)
    if _BEGIN in left:
        raise EditorSetupError(
            f"the block that begins with '{_BEGIN}' has lost its last line, '{_END}'; take the "
            "block out by hand, then try again"
        )
    return left
