"""Fill-in-the-middle prompts, in both directions, and infill in place.

A model of one of the styles writes what belongs at the cursor, and no next edits. Related files
come first, then the file itself. Sources: the model cards and repositories of Qwen2.5-Coder,
Seed-Coder, Mellum and DeepSeek-Coder. Text is cut above in steps, so that typing keeps the cached
beginning.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ..config import ModelConfig
from ..records import EditRequest, RelatedFile
from .answer_edits import parse_infill
from .excerpt import Unreadable, render_related_files
from .format import Declined, ParsedEdit, Prompt, is_above_a_line, place_of
from .pieces import (
    Mark,
    Piece,
    count,
    encode,
    join_pieces,
    keep,
    last_within,
    other_files,
    title,
    tokens_of,
)
from .redraft3 import STEP
from .tokenizer import Tokenizer, find_unfinished_word

#: prefix-suffix-middle, suffix-prefix-middle, and the suffix first with the prefix behind the mark
#: of the middle, as if the middle had begun.
Order = Literal["psm", "spm", "middle-prefix"]

#: Largest shares of the context for the suffix, for related files, and for the suffix in place.
_SUFFIX, _RELATED, _BEHIND = 0.3, 0.4, 0.4


@dataclass(frozen=True, slots=True)
class FimStyle:
    """The marks of one family."""

    prefix: str
    suffix: str
    middle: str  # of received prompts "" if they begin with the suffix and end behind the prefix
    order: Order
    file: str = ""  # opens a path; "": other files are not shown
    spaced: bool = False  # one space behind the prefix mark, and one before each of the others


#: Qwen2.5-Coder was trained prefix-suffix-middle. Behind an empty prefix, with the near prefix as
#: the beginning of the middle, it wrote 29 of 50 single lines right and in the documented order 15
#: (model.md), and a keystroke costs only the typed tokens.
STYLES: dict[str, FimStyle] = {
    "fim-qwen": FimStyle(
        "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "middle-prefix", "<|file_sep|>"
    ),
    "fim-seed": FimStyle("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "spm"),
    "fim-mellum": FimStyle("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "spm", "<filename>"),
    "fim-deepseek": FimStyle("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>", "psm"),
}


class InfillFormat:
    """Base of the formats whose answer is the text at the cursor."""

    needs: tuple[str, ...] = ()

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        """Return the prompt of an infill, or decline a next edit."""
        if request.task == "next_edit":
            return Declined(f"{config.name} was trained to fill in text, not to predict edits.")
        return self.render_infill(request, tokenizer, config, budget)

    def render_infill(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt:
        """Return the prompt of an infill."""
        raise NotImplementedError

    def parse(self, prompt: Prompt, request: EditRequest, answer: str, _ended: bool) -> ParsedEdit:
        """Return the insertion at the cursor."""
        return parse_infill(prompt, request, answer)


class Fim(InfillFormat):
    """Prompts of one style; None: of weights without such marks, which see the prefix alone."""

    def __init__(self, style: FimStyle | None) -> None:
        self.style = style
        self.needs = (style.prefix, style.suffix, style.middle) if style else ()

    def render_infill(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt:
        """Return the prompt, at most ``budget`` tokens."""
        before, after = _around(request)
        style = self.style
        # Where the prompt ends with the prefix, its last word may still grow into other tokens.
        is_open = style is None or style.order == "middle-prefix"
        forced = find_unfinished_word(before) if is_open else ""
        before = before.removesuffix(forced)
        head = self._related(request, tokenizer, int(budget * _RELATED))
        room = budget - count(head, tokenizer) - 8
        below = keep(tokenizer, after, int(room * _SUFFIX), from_end=False) if style else []
        above = _last_lines(tokenizer, before, room - len(below))
        pieces = [*head, *self._own(above, tokenizer.decode(below))]
        return Prompt(
            tuple(tokens_of(pieces, tokenizer)) or (config.end_token,),
            request.text.split("\n"),
            place_of(request)[0],
            not forced and is_above_a_line(request),
            forced,
            cut="" if len(above) == len(before) else "left out lines above",
        )

    def _related(self, request: EditRequest, tokenizer: Tokenizer, room: int) -> list[Piece]:
        """Return the most relevant other files that fit, the best last; then this one's path."""
        if self.style is None or not self.style.file:
            return []
        mark = Mark(self.style.file)
        others = tuple(each for each in request.related if not each.is_above)
        kept, _ = last_within(other_files(replace(request, related=others), mark), tokenizer, room)
        return [*join_pieces(kept), mark, title(request.path)]

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


def _around(request: EditRequest) -> tuple[str, str]:
    """Return the text before the cursor, with what the document continues, and the text behind."""
    text, cursor = request.text, request.cursor
    return request.text_above + text[:cursor], text[cursor:]


def _last_lines(tokenizer: Tokenizer, text: str, room: int) -> str:
    """Return the end of ``text`` that fits in ``room`` tokens, cut at a multiple of STEP lines."""
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


class InPlace(InfillFormat):
    """Prompts with the text behind the cursor behind the canvas.

    DreamOn was trained with them (2602.01326): ``<|beginoftext|>`` prefix, masks, suffix END. It
    sees the whole text around the gap; the parts nearest to it are kept.
    """

    def render_infill(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt:
        """Return the prompt, at most ``budget`` tokens with the answer."""
        before, after = _around(request)
        room = budget - request.max_tokens - 3
        behind = keep(tokenizer, after, max(int(room * _BEHIND), 1), from_end=False)
        above = keep(tokenizer, before, max(room - len(behind), 1), from_end=True)
        begins = (tokenizer.special_id("<|beginoftext|>"), tokenizer.begin, config.end_token)
        return Prompt(
            (next(token for token in begins if token is not None), *above),
            request.text.split("\n"),
            place_of(request)[0],
            is_above_a_line(request),
            behind=(*behind, config.end_token),
            in_place=True,
        )


# --- received prompts -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Middle:
    """The text around what is asked for."""

    before: str
    after: str
    path: str = ""  # "" where the client does not say it
    related: tuple[RelatedFile, ...] = ()


#: Marks of received prompts in either order: Qwen, CodeGemma and Granite; StarCoder and SmolLM;
#: DeepSeek; CodeLlama; Codestral; GLM.
_RECEIVED = (
    STYLES["fim-qwen"],
    STYLES["fim-mellum"],
    STYLES["fim-deepseek"],
    FimStyle("<PRE>", "<SUF>", "<MID>", "psm", spaced=True),
    FimStyle("[PREFIX]", "[SUFFIX]", "", "spm"),
    FimStyle("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "psm"),
)
#: What precedes each file of a repository in front of such a prompt.
_FILE_MARKERS = ("<|file_sep|>", "<file_sep>")


def read_fim(text: str) -> Middle | None:
    """Return the parts of a received prompt, prefix or suffix first; None where it is no such.

    Raises:
        Unreadable: a marker also occurs in the code, or the prompt holds numbered regions.
    """
    return next(filter(None, (_split(text, style) for style in _RECEIVED)), None)


def _split(text: str, style: FimStyle) -> Middle | None:
    body = text.rstrip("\n") if style.middle else text
    if not body.endswith(style.middle):
        return None
    if not style.middle and not body.startswith(style.suffix):
        return None
    body = body.removesuffix(style.middle)
    at_prefix, at_suffix = body.find(style.prefix), body.find(style.suffix)
    if at_prefix < 0 or at_suffix < 0:
        return None
    for marker in (style.prefix, style.suffix):
        if body.count(marker) > 1:
            raise Unreadable(f"The code holds {marker} too: where it ends cannot be told.")
    is_first = at_prefix < at_suffix
    before = body[at_prefix + len(style.prefix) : at_suffix if is_first else None]
    after = body[at_suffix + len(style.suffix) : None if is_first else at_prefix]
    if style.spaced:
        before = before.removeprefix(" ").removesuffix(" ")
        after = after.removesuffix(" ")
    if "<|marker_1|>" in before:
        raise Unreadable("Numbered regions between these markers are not known here.")
    path, related = _repository(body[: min(at_prefix, at_suffix)])
    return Middle(before, after, path, related)


def _repository(head: str) -> tuple[str, tuple[RelatedFile, ...]]:
    """Return the file's path and the other files that precede a received prompt."""
    for marker in _FILE_MARKERS:
        *others, own = [part.partition("\n") for part in head.split(marker)]
        if others:  # the first part precedes every file: it is the repository's name
            files = ((path, text) for path, _, text in others[1:] if not path.endswith(".diff"))
            return own[0].strip(), render_related_files(files)
    return "", ()
