"""Answers that end on a line which opens a block, without the block's body.

``else:`` or ``for (const line of lines) {`` alone is a syntax error once accepted. A line that
the user began stays: its body is what the user writes next. A line that the answer began is
dropped, unless the text below the cursor holds the body or the closing bracket already. Pure.
"""

from __future__ import annotations

import re

from ..text.indentation import LANGUAGES as BY_INDENTATION
from ..text.indentation import lacks_body
from ..text.syntax import language_of
from .ghost_rules import line_after, line_before

_COMMENT = r"\s*(?://.*|/\*.*\*/\s*|#.*|--.*)?$"
#: Ends of lines that open a block in most languages.
_BRACKET = re.compile(rf"[{{(\[]{_COMMENT}")
#: The same in languages whose blocks begin with words.
_WORDS = {
    "lua": re.compile(rf"(?:\b(?:then|do|else|repeat)|\bfunction\b[^)]*\)){_COMMENT}"),
    "shellscript": re.compile(rf"\b(?:then|do|else){_COMMENT}"),
    "ruby": re.compile(
        r"^\s*(?:def|class|module|if|unless|while|until|case|for|begin|else|elsif|ensure|rescue"
        rf"|when)\b(?!.*\bend\b).*$|\bdo(?:\s*\|[^|]*\|)?{_COMMENT}"
    ),
}
#: A header of Python, where the language is unknown.
_PYTHON = re.compile(
    r"^\s*(?:if|elif|else|for|while|with|try|except|finally|def|class|async|match|case)\b.*:\s*$"
)
#: What begins the line behind a block, or a clause of it, as deep as the line that opened it.
_BEHIND = re.compile(
    r"[)}\]]|(?:end|fi|done|esac|case|default|else|elif|elsif|elseif|when|rescue|ensure|until)\b"
)
_LINES_BELOW = 40  # looked at below the cursor
_CLOSERS = re.compile(r"\s*[)}\]]+")


def whole_blocks(written: str, text: str, cursor: int, path: str, language: str) -> str:
    """Return ``written`` without lines at its end that open a block and have no body; "" where
    nothing is left.

    Args:
        written: what goes in at ``text[cursor]``.
        language: LSP id, "" where nobody told.
    """
    above_a_line = bool(line_after(text, cursor).strip())
    if above_a_line and not written.endswith("\n"):
        return written  # the line goes on behind the cursor
    language = language or language_of(path) or ""
    began = bool(line_before(text, cursor).strip())  # the user began the first line
    while "\n" in written.rstrip() or not began:
        head, newline, line = written.rstrip().rpartition("\n")
        if not line.strip() or not opens_block(written, text, cursor, language):
            break
        closers = _CLOSERS.match(line)  # "} else {" closes the block before
        kept = head + newline + closers[0] if closers else head.rstrip()
        written = kept + "\n" * (above_a_line and bool(kept))
        if closers:
            break
    return written


def opens_block(written: str, text: str, cursor: int, language: str) -> bool:
    """Return whether the last line of ``written`` opens a block of which no body follows."""
    before, after = text[:cursor], text[cursor:]
    line = written.rstrip().rpartition("\n")[2]
    by_indentation = language in BY_INDENTATION or (not language and _PYTHON.search(line))
    if by_indentation and lacks_body(before, written, after):
        return True
    words = _WORDS.get(language)
    if not (_BRACKET.search(line) or (words and words.search(line))):
        return False
    if "\n" not in written.rstrip():
        line = line_before(text, cursor) + line
    below = _line_below(after)
    if len(_indent(below)) > len(_indent(line)):
        return False  # its body
    return not (_indent(below) == _indent(line) and _BEHIND.match(below.lstrip()))


def openers(text: str, cursor: int, path: str, language: str) -> tuple[str, ...]:
    """Return the ends of lines behind which the answer at a cursor has to write on; () where the
    next line below is deeper than the cursor's own and may be the body already."""
    below = _line_below(text[cursor:])
    if len(_indent(below)) > len(_indent(line_before(text, cursor))):
        return ()
    language = language or language_of(path) or ""
    return (":", "{") if not language or language in BY_INDENTATION else ("{",)


def _line_below(after: str) -> str:
    """Return the next line with code behind the cursor; "" where none is near."""
    first, *others = after.split("\n", _LINES_BELOW)[:_LINES_BELOW]
    return next((each for each in (first, *others) if each.strip()), "")


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]
