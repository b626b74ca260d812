"""Fill-in-the-middle as other projects' code models were trained on it, one style a family.

Such a model writes what stands at the cursor, and no edits. Related files come first, then the file
itself. Sources: the model cards and repositories of Qwen2.5-Coder, Seed-Coder, Mellum and
DeepSeek-Coder. Text is cut above in steps, so that typing keeps the cached beginning.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ..config import ModelConfig
from ..records import EditRequest
from .answers import read_answer
from .constraints import ForcedText
from .fitting import encode, keep
from .foreign import (
    Declined,
    Mark,
    Piece,
    Read,
    count,
    joined,
    last_within,
    other_files,
    title,
    tokens_of,
)
from .render import STEP, Prompt, is_above_a_line
from .tokens import Tokenizer, unfinished_word

#: prefix-suffix-middle, suffix-prefix-middle, and the suffix first with the prefix behind the mark
#: of the middle, as if the middle had begun.
Order = Literal["psm", "spm", "middle-prefix"]

#: Of the context: at most for the suffix and for related files.
_SUFFIX, _RELATED = 0.3, 0.4


@dataclass(frozen=True, slots=True)
class Style:
    """The words of one family."""

    prefix: str
    suffix: str
    middle: str
    order: Order
    file: str = ""  # opens a path; "": other files are not shown


#: Qwen2.5-Coder was trained prefix-suffix-middle. Behind an empty prefix, with the near prefix as
#: the beginning of the middle, it wrote 29 of 50 single lines right and in the documented order 15
#: (model.md), and a keystroke costs only its own tokens.
STYLES: dict[str, Style] = {
    "fim-qwen": Style(
        "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "middle-prefix", "<|file_sep|>"
    ),
    "fim-seed": Style("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "spm"),
    "fim-mellum": Style("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "spm", "<filename>"),
    "fim-deepseek": Style("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "psm"),
}


class _Infill:
    """Base of formats that answer with the text at the cursor."""

    def read(self, prompt: Prompt, request: EditRequest, answer: str, ended: bool) -> Read | None:
        """Return what to insert at the cursor."""
        change = read_answer(prompt, request, answer, ended)
        return None if change is None else Read(*change)


class Fim(_Infill):
    """See the module. ``style`` None: weights without such marks, which see the prefix alone."""

    def __init__(self, style: Style | None) -> None:
        self.style = style

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        if request.task == "next_edit":
            return Declined(f"{config.name} was trained to fill in text, not to predict edits.")
        before, after = request.text[: request.cursor], request.text[request.cursor :]
        style = self.style
        forced = unfinished_word(before) if _ends_in_prefix(style) else ""
        before = before[: len(before) - len(forced)]
        head = self._related(request, tokenizer, int(budget * _RELATED))
        room = budget - count(head, tokenizer) - 8
        below = keep(tokenizer, after, int(room * _SUFFIX), from_end=False) if style else []
        above = _last_lines(tokenizer, before, room - len(below))
        tokens = tokens_of([*head, *self._own(above, tokenizer.decode(below))], tokenizer) or [
            config.end_token
        ]
        lines = request.text.split("\n")
        at = before.count("\n")
        alone = not forced and is_above_a_line(request)
        constraint = ForcedText(forced, tokenizer) if forced else None
        cut = "" if len(above) == len(before) else "left out lines above"
        return Prompt(tuple(tokens), lines, at, alone, forced, constraint=constraint, cut=cut)

    def _related(self, request: EditRequest, tokenizer: Tokenizer, room: int) -> list[Piece]:
        """Other files, the most relevant of those that fit last; then the path of this one."""
        if self.style is None or not self.style.file:
            return []
        mark = Mark(self.style.file)
        own: list[Piece] = [mark, title(request.path)]
        kept, _ = last_within(other_files(request, mark), tokenizer, room)
        return joined(kept) + own

    def _own(self, above: str, below: str) -> list[Piece]:
        style = self.style
        if style is None:
            return [above]
        prefix, suffix, middle = Mark(style.prefix), Mark(style.suffix), Mark(style.middle)
        if style.order == "psm":
            return [prefix, above, suffix, below, middle]
        if style.order == "spm":
            return [suffix, below, prefix, above, middle]
        return [prefix, suffix, below, middle, above]


def _ends_in_prefix(style: Style | None) -> bool:
    return style is None or style.order == "middle-prefix"


def _last_lines(tokenizer: Tokenizer, text: str, room: int) -> str:
    """The end of ``text`` that fits in ``room`` tokens; where lines go, they go in steps."""
    if len(text) <= 24 * room and len(encode(tokenizer, text)) <= room:
        return text
    lines = text.split("\n")
    spent, first = 0, len(lines)
    while first and spent <= room:
        first -= 1
        spent += len(encode(tokenizer, lines[first])) + 1
    first = min(-(-(first + (spent > room)) // STEP) * STEP, len(lines) - 1)
    kept = "\n".join(lines[first:])
    return tokenizer.decode(keep(tokenizer, kept, room, from_end=True))


BEGIN = "<|beginoftext|>"
#: Largest share of the context for the text behind the gap.
_BEHIND = 0.4


class InPlace(_Infill):
    """Infill in place: the prefix, the canvas, and the suffix behind it.

    DreamOn was trained so (2602.01326): ``<|beginoftext|>`` prefix, masks, suffix END. It sees the
    whole text around the gap; the parts nearest to it are kept.
    """

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        if request.task == "next_edit":
            return Declined(f"{config.name} was trained to fill in text, not to predict edits.")
        before, after = request.text[: request.cursor], request.text[request.cursor :]
        room = budget - request.max_tokens - 3
        behind = keep(tokenizer, after, max(int(room * _BEHIND), 1), from_end=False)
        above = keep(tokenizer, before, max(room - len(behind), 1), from_end=True)
        opens = next(
            (i for i in (tokenizer.special_id(BEGIN), tokenizer.begin) if i is not None),
            config.end_token,
        )
        return Prompt(
            (opens, *above),
            request.text.split("\n"),
            before.count("\n"),
            is_above_a_line(request),
            behind=(*behind, config.end_token),
            in_place=True,
        )
