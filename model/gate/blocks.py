"""Lines that open blocks: answers that end on one, and bodies that hold no code yet.

``else:`` or ``for (const line of lines) {`` alone is a syntax error once it is accepted. All is
found by lines and patterns, in any language.
"""

from __future__ import annotations

import re

from ..text.cursor import indent_of, is_free, line_after, line_before
from ..text.indentation import LANGUAGES as BY_INDENTATION
from ..text.indentation import lacks_body
from ..text.syntax import language_of

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
_CLOSERS = re.compile(r"\s*[)}\]]+")
_LINES_BELOW = 40  # looked at below the cursor

#: A line that opens a body: a bracket, a colon, or a word of shells, Ruby and Lua.
_OPENS_BODY = re.compile(
    r"([{:]|=>|->|\b(do|then|else|begin))\s*(#.*|//.*)?$|^\s*(def|class|module|function)\b[^;{}]*$"
)
_IS_COMMENT = re.compile(r"\s*(#|//|/?\*|--)")
_QUOTES = ('"""', "'''")
_NO_CODE = re.compile(r"[\s)\]}>\"'`;,]*")
_MOST_LINES = 40  # of comments and docstrings between the header and the cursor
_ABOVE, _BELOW = 8_000, 2_000  # characters that are looked at, for lines and for the next one


# --- answers -------------------------------------------------------------------------------------


def whole_blocks(written: str, text: str, cursor: int, path: str, language: str) -> str:
    """Return ``written`` without last lines that open a block and have no body; "" if none is left.

    A line that the user began stays, as the user writes its body next. A line that the answer began
    is dropped, unless the text below the cursor holds the body or the closing bracket.

    Args:
        written: goes in at ``text[cursor]``.
        language: LSP id, "" if unknown.
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
    """Return whether the last line of ``written`` opens a block without a body behind it."""
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
    if len(indent_of(below)) > len(indent_of(line)):
        return False  # its body
    return not (indent_of(below) == indent_of(line) and _BEHIND.match(below.lstrip()))


def openers(text: str, cursor: int, path: str, language: str) -> tuple[str, ...]:
    """Return the ends of lines behind which an answer at the cursor must write on.

    There are none if the next line is deeper than the cursor's: it may be the body already.
    """
    below = _line_below(text[cursor:])
    if len(indent_of(below)) > len(indent_of(line_before(text, cursor))):
        return ()
    language = language or language_of(path) or ""
    return (":", "{") if not language or language in BY_INDENTATION else ("{",)


def _line_below(after: str) -> str:
    """Return the next line with code behind the cursor; "" if none is near."""
    first, *others = after.split("\n", _LINES_BELOW)[:_LINES_BELOW]
    return next((each for each in (first, *others) if each.strip()), "")


# --- bodies --------------------------------------------------------------------------------------


def begins_body(text: str, cursor: int) -> bool:
    """Return whether the cursor is on a blank line of a body that holds no code yet.

    The line that opens the body is right above, comments and a docstring aside, and no deeper line
    is below.
    """
    rest = line_after(text, cursor)
    header = find_opening_line(text, cursor)
    if header is None or not is_free(rest):
        return False
    below = text[cursor + len(rest) : cursor + len(rest) + _BELOW].split("\n")
    first = next((line for line in below if line.strip()), None)
    return first is None or len(indent_of(first)) <= len(indent_of(header))


def find_opening_line(text: str, cursor: int) -> str | None:
    """Return the line that opens a body right above the cursor, comments and a docstring aside.

    None: there is none, or the cursor's line begins with something else than white space.
    """
    if line_before(text, cursor).strip():
        return None
    header = _header(text[max(0, cursor - _ABOVE) : cursor].split("\n")[-_MOST_LINES - 1 : -1])
    return header if header is not None and _OPENS_BODY.search(header) else None


def _header(above: list[str]) -> str | None:
    """Return the last line above that is neither blank nor in a comment or a docstring."""
    while above:
        line = above.pop()
        quote = next((each for each in _QUOTES if line.rstrip().endswith(each)), None)
        if quote is not None:
            if line.count(quote) == 1:
                while above and quote not in above[-1]:
                    above.pop()
                if not above or not above.pop().lstrip().startswith(quote):
                    return None
            elif not line.lstrip(" \tru").startswith(quote):
                return line
        elif line.strip() and not _IS_COMMENT.match(line):
            return line
    return None


def lines_around(text: str, cursor: int) -> tuple[int, int]:
    """Return how many lines above and below the cursor's hold more than closing brackets.

    Only some thousand characters are looked at: more lines make no difference.
    """
    above = text[max(0, cursor - _ABOVE) : cursor].split("\n")[:-1]
    below = text[cursor : cursor + _ABOVE].split("\n")[1:]
    return _lines_of_code(above), _lines_of_code(below)


def _lines_of_code(lines: list[str]) -> int:
    return sum(not _NO_CODE.fullmatch(line) for line in lines)
