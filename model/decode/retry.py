"""Infills that have to fit the lines around them, where indentation makes the blocks.

Where the likeliest answer does not fit, one more causal pass scores every other beginning; the
likeliest beginnings that leave it are written on, one after the other, until an answer fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InvalidAnswer
from ..gate.blocks import whole_blocks
from ..prompts.format import ParsedEdit, Prompt, PromptFormat
from ..records import EditRequest
from ..runtime.prefix_cache import common_prefix
from ..text.common import common_head
from ..text.indentation import Misfit, misfit
from ..text.syntax import language_of
from .completion import Brief, Completion, Draft, to_text
from .passes import Completions, Passes
from .speculative import decode

#: A beginning less likely than this is not worth a pass.
BEGINNING_ABOVE = 0.005
#: Rows of one pass over the first answer: logits of more take too much memory.
_ROWS = 32


@dataclass(frozen=True, slots=True)
class Around:
    """The text around an infill, which it has to fit."""

    written_in: PromptFormat
    prompt: Prompt
    request: EditRequest

    def misfit(self, written: str, ended: bool) -> Unfit | None:
        """Return how an answer does not fit, or None where it does or that is unknown.

        Args:
            ended: whether ``written`` is all that belongs at the cursor.
        """
        text = self.request.text
        change = self._change(written, ended)
        if change is None:
            return None
        language = self.request.language or language_of(self.request.path)
        found = misfit(text[: change.start], change.text, text[change.end :], language, ended)
        return None if found is None else Unfit(self, found, text[: change.start] + change.text)

    def only_opens_block(self, written: str) -> bool:
        """Return whether the answer is nothing but the head of a block without its body."""
        change, asked = self._change(written, ended=True), self.request
        if change is None or not change.text.strip():
            return False
        return not whole_blocks(
            change.text, asked.text, change.start, asked.path, asked.language
        ).strip()

    def _change(self, written: str, ended: bool) -> ParsedEdit | None:
        try:
            return self.written_in.parse(self.prompt, self.request, written, ended)
        except InvalidAnswer:
            return None


@dataclass(frozen=True, slots=True)
class Unfit:
    """An answer that does not fit its surroundings."""

    around: Around
    misfit: Misfit
    text: str  # with what it writes at its end

    def stays(self, beginning: str) -> bool:
        """Return whether an answer that begins so does not fit either, whatever follows."""
        request, forced = self.around.request, self.around.prompt.forced
        text = request.text[: request.cursor] + beginning[len(forced) :]
        return self.misfit.stays(text, common_head(text, self.text))


def write_fitting(
    passes: Passes, last_token: int, brief: Brief, rng: np.random.Generator, around: Around
) -> Completions:
    """Write one answer whose drafts are verified; where it does not fit, the next likeliest.

    Returns:
        The likeliest that fits of ``Plan.second_tries`` others, or the first. The sequence holds
        what was read of it.

    Raises:
        Cancelled: the caller has cancelled.
    """
    search = _Search(passes, len(passes.sequence.tokens), last_token, brief, rng, around)
    draft = search.first()
    if draft.finish in ("end", "unsure") and around.only_opens_block(draft.text):
        draft = search.with_body(draft) or draft
    # The head of a block at the end is no misfit: it is mostly right (evals/LOG.md), and is dropped
    # when the answer is shown.
    unfit = around.misfit(draft.text, ended=False)
    if unfit is not None and brief.plan.second_tries:
        draft = search.other(draft, unfit) or draft
    return passes.completions([draft])


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The tokens that an answer begins with."""

    tokens: tuple[int, ...]
    probabilities: tuple[float, ...]

    @property
    def total(self) -> float:
        """The log-probability."""
        return sum(math.log(max(each, 1e-30)) for each in self.probabilities)


@dataclass(frozen=True, slots=True)
class _Search:
    """A search for answers to one prompt."""

    passes: Passes
    base: int  # tokens of the prompt that the sequence held
    last_token: int  # of the prompt
    brief: Brief
    rng: np.random.Generator
    around: Around

    def first(self) -> Draft:
        """Write the likeliest answer, token by token."""
        return self._finished(self._completion())

    def with_body(self, head: Draft) -> Draft | None:
        """Return ``head``, which only opens a block, with the line below it.

        None where no such line is likely enough to be worth a pass.
        """
        end = self.brief.config.end_token
        kept = [token for token in head.token_ids if token != end]
        sure = [math.exp(log) for log in head.confidence.logs[: len(kept)]]
        begun = _Beginning(tuple(kept), tuple(sure))
        least = max(self.brief.limits.total_above, begun.total + math.log(BEGINNING_ABOVE))
        limits = replace(
            self.brief.limits,
            min_tokens=len(kept) + 2,  # a line break, and some of the line
            total_above=least,
        )
        out = Completion(replace(self.brief, limits=limits), self.last_token, self.rng)
        out.open_with(begun.tokens, begun.probabilities)
        if out.finish is None:
            self.passes.hold(self.base, [self.last_token, *kept[:-1]])
            draft = self._finished(out)
            if draft.text.startswith(head.text.rstrip()) and not self.around.only_opens_block(
                draft.text
            ):
                self._hold_of(draft)
                return draft
        self._hold_of(head)
        return None

    def other(self, first: Draft, unfit: Unfit) -> Draft | None:
        """Return the likeliest that fits among those that leave ``first`` at one token, if any."""
        begun = sorted(self._beginnings(first), key=lambda each: -each.total)
        left = self.brief.plan.second_tries
        for each in begun:
            if left == 0:
                break
            if unfit.stays(self._text(each)):
                continue
            out = self._completion()
            out.open_with(each.tokens, each.probabilities)
            if out.finish is None:
                self.passes.hold(self.base, [self.last_token, *each.tokens[:-1]])
                left -= 1
            draft = self._finished(out)
            if draft.text != first.text and self._fits(draft):
                self._hold_of(draft)
                return draft
        self._hold_of(first)
        return None

    def _fits(self, draft: Draft) -> bool:
        """Return whether something is written, and fits as it is."""
        written = draft.text[len(self.brief.limits.forced) :]
        return bool(written.strip()) and self.around.misfit(draft.text, ended=True) is None

    def _beginnings(self, first: Draft) -> Iterator[_Beginning]:
        """Yield those that leave ``first`` at one token.

        That takes one more pass, or several where it is long.
        """
        walk, end = self._completion(), self.brief.config.end_token
        kept = [token for token in first.token_ids if token != end]
        self.passes.sequence.truncate(self.base)
        for start in range(0, len(kept) + 1, _ROWS):
            read = [self.last_token, *kept][start : start + _ROWS]
            targets = [*kept, end][start : start + _ROWS]
            scores = self.passes.score(read, walk.needs_logits(), targets)
            for row, place in enumerate(range(start, start + len(read))):
                taken = first.token_ids[place] if place < len(first.token_ids) else None
                for token, p in walk.likeliest(row, scores):
                    begun = _Beginning((*walk.tokens, token), (*walk.p, p))
                    same = token == taken or (taken is None and self._was_cut(first, token))
                    if not same and begun.total >= math.log(BEGINNING_ABOVE):
                        yield begun
                if place < len(kept):
                    walk.open_with([kept[place]], [walk.probability(row, scores, kept[place])])

    def _was_cut(self, first: Draft, token: int) -> bool:
        """Return whether ``token`` behind ``first`` begins the line that was too unlikely there."""
        last, begun = (self.brief.vocab_bytes[each] for each in (first.token_ids[-1], token))
        return first.finish == "unsure" and (b"\n" in last or begun.startswith((b"\n", b"\r")))

    def _hold_of(self, draft: Draft) -> None:
        """Leave in the sequence only what was read of ``draft``."""
        there = self.passes.sequence.tokens[self.base :]
        held = common_prefix(there, [self.last_token, *draft.token_ids])
        self.passes.sequence.truncate(self.base + held)

    def _completion(self) -> Completion:
        return Completion(self.brief, self.last_token, self.rng)

    def _finished(self, out: Completion) -> Draft:
        decode(self.passes, out)
        out.close()
        return out.draft()

    def _text(self, begun: _Beginning) -> str:
        return to_text(b"".join(self.brief.vocab_bytes[token] for token in begun.tokens))
