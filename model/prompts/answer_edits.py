"""Answers of models as edits: infills, and regions of lines after the edit."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..errors import InvalidAnswer
from ..records import EditRequest
from ..text.common import common_head, common_tail
from .format import ParsedEdit, Prompt


def parse_infill(prompt: Prompt, request: EditRequest, answer: str) -> ParsedEdit:
    """Return the insertion at the cursor, without a tail that repeats what follows.

    Raises:
        InvalidAnswer: the answer does not continue the unfinished word.
    """
    if not answer.startswith(prompt.forced):
        raise InvalidAnswer(
            f"The answer {answer[:40]!r} does not continue the unfinished {prompt.forced!r}."
        )
    text = answer[len(prompt.forced) :]
    if request.grammar is None:  # an answer that a grammar demands stays whole
        text = cut_overlap(text, request.text[request.cursor :], prompt.above_a_line)
    return ParsedEdit(request.cursor, request.cursor, text)


def cut_overlap(text: str, after: str, at_line_start: bool = False) -> str:
    """Return ``text`` without a tail that repeats the lines of ``after``.

    From its second line on, ``text`` is cut before the first line that equals the next non-blank
    line of ``after`` if all further lines agree too, as far as both go. Fewer than four characters,
    such as a closing bracket, do not count.

    Args:
        at_line_start: ``after`` begins with a whole line, which may be repeated too.
    """
    follows = [line.rstrip() for line in after.split("\n")[not at_line_start :] if line.strip()]
    lines = text.split("\n")
    for i in range(1, len(lines)):
        again = [line.rstrip() for line in lines[i:] if line.strip()][: len(follows)]
        if len("".join(again).strip()) < 4:
            continue
        *whole, last = again  # the last line may be torn
        if whole == follows[: len(whole)] and follows[len(whole)].startswith(last):
            return "\n".join([*lines[:i], ""] if at_line_start else lines[:i])
    return text


def replace_lines(text: str, first: int, last: int, body: str) -> tuple[int, int, str]:
    """Return the span of ``text`` and its replacement that turn lines [first, last) into ``body``.

    Lines are 0-based. Every line of ``body`` ends with a newline, the last line of ``text`` has
    none.
    """
    starts = [0, *(m.end() for m in re.finditer("\n", text)), len(text) + 1]
    start, end = starts[first], starts[last]
    if end <= len(text):
        return start, end, body
    if start > len(text):  # insertion after the last line
        return len(text), len(text), ("\n" + body[:-1]) if body else ""
    if body:
        return start, len(text), body[:-1]
    return max(start - 1, 0), len(text), ""


def is_answered(answer: str, ended: bool, region: str) -> bool:
    """Return whether an answer that rewrites a ``region`` holds any text.

    Raises:
        InvalidAnswer: it broke off.
    """
    if answer.strip() and not ended:
        raise InvalidAnswer(f"The answer broke off before the end of the {region}.")
    return bool(answer.strip())


def start_of(lines: Sequence[str], index: int) -> int:
    """Return where line ``index`` starts in the text of ``lines``."""
    return sum(len(line) + 1 for line in lines[:index])


def parse_region(
    request: EditRequest,
    region: tuple[int, int],
    new: str,
    offset: int = 0,
    *,
    closed: bool = False,
) -> ParsedEdit | None:
    """Return the edit of a rewritten region, or None where it changes nothing.

    An infill is only what is inserted at the cursor, where the rest of the region stays.

    Args:
        region: rewritten 0-based lines [first, last) of the document.
        new: the region's new text.
        offset: index of ``new`` in the answer.
        closed: each line of ``new`` has a line end. Else the last one has none, or one that closes
            the answer, which shows in one more line end than the region has.
    """
    lines = request.text.split("\n")
    old, made = lines[slice(*region)], new.split("\n")
    if made[-1] == "" if closed else _blank_end(made) == _blank_end(old) + 1:
        made.pop()
    if request.task == "infill":
        cursor = request.cursor - start_of(lines, region[0])
        return _insertion(request, "\n".join(old), "\n".join(made), cursor, offset)
    head = common_head(old, made)
    tail = common_tail(old[head:], made[head:])
    if head == len(old) == len(made):
        return None
    text = "".join(f"{line}\n" for line in made[head : len(made) - tail])
    first = offset + start_of(made, head)
    change = replace_lines(request.text, region[0] + head, region[1] - tail, text)
    return ParsedEdit(*change, written=(first, first + len(text)))


def _blank_end(lines: list[str]) -> int:
    """Return the number of empty lines at the end."""
    return next((i for i, line in enumerate(reversed(lines)) if line), len(lines))


def _insertion(
    request: EditRequest, old: str, new: str, cursor: int, offset: int
) -> ParsedEdit | None:
    """Return what ``new`` inserts at the cursor, if ``old`` is otherwise unchanged."""
    kept = new.startswith(old[:cursor]) and new.endswith(old[cursor:])
    if not kept or len(new) <= len(old):
        return None
    text = new[cursor : len(new) - (len(old) - cursor)]
    text = "\n".join(text.split("\n")[: request.max_lines])
    first = offset + cursor
    return ParsedEdit(request.cursor, request.cursor, text, (first, first + len(text)))
