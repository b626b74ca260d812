"""Reads a model's answer back as an edit, and writes one as the tokens a model is to answer.

The counterpart of ``render.py``, which says what an answer looks like. Knows nothing of models.
"""

from __future__ import annotations

import re

from ..errors import InvalidAnswer
from ..records import EditRequest
from .render import Prompt, encode_range
from .tokens import Tokenizer


def encode_edit(first: int, last: int, replacement: list[str], tokenizer: Tokenizer) -> list[int]:
    """A whole next-edit answer without END; ``replacement`` are lines without line ends."""
    body = "".join(f"{line}\n" for line in replacement)
    return [*encode_range(first, last, tokenizer), *tokenizer.encode(body)]


def read_answer(
    prompt: Prompt, request: EditRequest, answer: str, ended: bool
) -> tuple[int, int, str] | None:
    """What to do with the document: replace text[start:end] by the string. None: no edit.

    Args:
        answer: the canvas's text without END.
        ended: whether END was reached; an unfinished next edit loses its last, torn line.

    Raises:
        InvalidAnswer: the answer breaks the format.
    """
    if request.task == "infill":
        return read_infill(prompt, request, answer)
    if prompt.revealed is None:
        if not answer:
            return None
        header, _, body = answer.partition("\n")
        match = re.fullmatch(r"(\d{1,6})-(\d{1,6})", header)
        if match is None:
            raise InvalidAnswer(f"The answer begins with {header[:40]!r}, not with a line range.")
        first, last = int(match[1]), int(match[2])
    else:
        (first, last), body = prompt.revealed, answer
    count = prompt.region[1] - prompt.region[0]
    if not (1 <= first <= count + 1 and first - 1 <= last <= count):
        raise InvalidAnswer(f"The range {first}-{last} is outside the region of {count} lines.")
    if not ended:
        body = body[: body.rfind("\n") + 1]
    if body and not body.endswith("\n"):
        body += "\n"
    return replace_lines(request.text, prompt.region[0] + first - 1, prompt.region[0] + last, body)


def read_infill(prompt: Prompt, request: EditRequest, answer: str) -> tuple[int, int, str]:
    """Return what to insert at the cursor, as a replacement of ``text[start:end]``.

    Raises:
        InvalidAnswer: the answer does not continue the unfinished word.
    """
    if not answer.startswith(prompt.forced):
        raise InvalidAnswer(
            f"The answer {answer[:40]!r} does not continue the unfinished {prompt.forced!r}."
        )
    text = answer[len(prompt.forced) :]
    if request.grammar is not None:  # nothing is taken off what fulfils a grammar
        return request.cursor, request.cursor, text
    after = request.text[request.cursor :]
    return request.cursor, request.cursor, cut_overlap(text, after, prompt.above_a_line)


def cut_overlap(text: str, after: str, at_line_start: bool = False) -> str:
    """``text`` without a tail that only writes again what follows the cursor anyway.

    From its second line on, ``text`` is cut before the first line that equals the next non-blank
    line of ``after`` when all further lines agree too, as far as both go. A lone ``}`` and its like
    do not count.

    Args:
        at_line_start: the cursor stands before a line, at its very start, so that this line too is
            one that follows.
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
    """Replacement of the 0-based lines [first, last) by ``body``, whose lines all end in a newline,
    as a span of ``text``, whose last line has none."""
    starts = [0, *(m.end() for m in re.finditer("\n", text)), len(text) + 1]
    start, end = starts[first], starts[last]
    if end <= len(text):
        return start, end, body
    if start > len(text):  # insertion after the last line
        return len(text), len(text), ("\n" + body[:-1]) if body else ""
    if body:
        return start, len(text), body[:-1]
    return max(start - 1, 0), len(text), ""
