"""The seam of prompt formats: what each of them takes and returns."""

from __future__ import annotations

from collections.abc import Sequence as Seq
from dataclasses import dataclass, field
from typing import Protocol

from ..config import ModelConfig
from ..records import EditRequest
from .tokenizer import Tokenizer


@dataclass(frozen=True, slots=True)
class Prompt:
    """A rendered request. ``tokens`` is never empty: its last token opens the answer."""

    tokens: tuple[int, ...]
    lines: Seq[str] = field(default=(), repr=False)  # of the document
    line: int = 0  # of the cursor, 0-based
    above_a_line: bool = False  # infill: see :func:`is_above_a_line`
    forced: str = ""  # text before the cursor with which the answer begins again
    region: tuple[int, int] = (0, 0)  # next edit: 0-based lines [first, last) of the document
    cut: str = ""  # what was left out for length, for people
    stable: int = 0  # next edit: so many tokens stay while the newest edit is typed; 0: unknown
    rewrites: bool = False  # redraft-3: the answer is the region after the edit
    room: int = 0  # tokens of an answer that rewrites a region; 0: as many as are asked for
    stop: tuple[str, ...] = ()  # such an answer ends before the first of these
    begun: str = ""  # beginning of the answer with which the prompt ends
    in_place: bool = False  # the answer is between ``tokens`` and ``behind``
    behind: tuple[int, ...] = field(default=(), repr=False)
    permitted: tuple[int, ...] = ()  # conversation: marks that may be written; the first ends it
    vocab_bytes: Seq[bytes] = field(default=(), repr=False)  # conversation: bytes of each token
    # where marks that may be written are text; (): those of the tokenizer


@dataclass(frozen=True, slots=True)
class Declined:
    """A request that the model is not asked."""

    reason: str  # for people


@dataclass(frozen=True, slots=True)
class ParsedEdit:
    """A parsed answer: ``text`` replaces text[start:end] of the document."""

    start: int
    end: int
    text: str
    written: tuple[int, int] | None = None  # the part [first, last) of the answer that makes the
    # edit, by which its confidence is measured; None: all of it


class PromptFormat(Protocol):
    """A way to render requests and to parse the answers."""

    needs: tuple[str, ...]  # names of the special tokens that a vocabulary must have

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int, /
    ) -> Prompt | Declined:
        """Return a prompt of at most ``budget`` tokens, as far as the format allows."""
        ...

    def parse(
        self, prompt: Prompt, request: EditRequest, answer: str, ended: bool, /
    ) -> ParsedEdit | None:
        """Return the edit that ``answer`` makes, or None where it changes nothing.

        Args:
            ended: whether the model ended the answer itself.

        Raises:
            InvalidAnswer: the answer breaks the format.
        """
        ...


def place_of(request: EditRequest) -> tuple[int, int]:
    """Return the cursor's 0-based line and column."""
    begin = request.text.rfind("\n", 0, request.cursor) + 1
    return request.text.count("\n", 0, begin), request.cursor - begin


def is_above_a_line(request: EditRequest) -> bool:
    """Return whether the cursor is at the start of a line that is not empty.

    What is inserted there are whole lines above that one.
    """
    text, at = request.text, request.cursor
    before, after = text[max(0, at - 1) : at], text[at : at + 1]
    return before in ("", "\n") and after not in ("", "\n", "\r")
