"""Infills that have to fit the lines around them, where indentation makes the blocks.

Where the likeliest answer does not fit, one more causal pass scores every other beginning; the
likeliest beginnings that leave it are written on, one after the other, until an answer fits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

import numpy as np

from ..errors import InvalidAnswer
from ..gate.blocks import whole_blocks
from ..prompts.format import ParsedEdit, Prompt, PromptFormat
from ..records import EditRequest
from ..text.common import common_head
from ..text.indentation import Misfit, misfit
from ..text.syntax import language_of
from .completion import Brief, Completion, Draft, to_text
from .passes import Passes
from .speculative import decode

#: A beginning less likely than this is not worth a pass.
BEGINNING_ABOVE = 0.005
#: Rows of one pass over the first answer: logits of more take too much memory.
_ROWS = 32


@dataclass(frozen=True, slots=True)
class _Beginning:
    """The tokens that an answer begins with."""

    tokens: tuple[int, ...]
    probabilities: tuple[float, ...]

    @property
    def total(self) -> float:
        """The log-probability."""
        return sum(math.log(max(each, 1e-30)) for each in self.probabilities)


_NOTHING = _Beginning((), ())


@dataclass(frozen=True, slots=True)
class FittingSearch:
    """A search for an infill that fits the lines around it.

    Args:
        passes: over a sequence that holds the prompt without its last token.
        brief: of an infill whose drafts are verified, at temperature 0.
    """

    passes: Passes
    brief: Brief
    written_in: PromptFormat
    prompt: Prompt
    request: EditRequest

    def write(self) -> Draft:
        """Write the likeliest answer; where it does not fit, the next likeliest.

        Returns:
            The likeliest that fits of ``Plan.second_tries`` others, or the first. The sequence
            holds what was read of it.

        Raises:
            Cancelled: the caller has cancelled.
        """
        draft = self._finish(self._open(self.brief))
        if draft.finish in ("end", "unsure") and self._only_opens_block(draft):
            draft = self._with_body(draft)
        # The head of a block at the end is no misfit: it is mostly right (evals/LOG.md), and is
        # dropped when the answer is shown.
        unfit = self._misfit(draft, ended=False)
        if unfit is not None and self.brief.plan.second_tries:
            draft = self._other(draft, *unfit)
        return draft

    def _with_body(self, head: Draft) -> Draft:
        """Return ``head``, which only opens a block, with the line below it.

        ``head`` stays where no such line is likely enough to be worth a pass.
        """
        end, limits = self.brief.config.end_token, self.brief.limits
        kept = tuple(token for token in head.token_ids if token != end)
        sure = tuple(math.exp(log) for log in head.confidence.logs[: len(kept)])
        begun = _Beginning(kept, sure)
        limits = replace(
            limits,
            min_tokens=len(kept) + 2,  # a line break, and some of the line
            total_above=max(limits.total_above, begun.total + math.log(BEGINNING_ABOVE)),
        )
        draft = self._finish(self._open(replace(self.brief, limits=limits), begun))
        goes_on = draft.text.startswith(head.text.rstrip())
        return self._keep(draft if goes_on and not self._only_opens_block(draft) else head)

    def _other(self, first: Draft, unfit: Misfit, text: str) -> Draft:
        """Return the likeliest that fits of those that leave ``first`` at one token, or ``first``.

        Args:
            unfit: how ``first`` does not fit in ``text``, which ends with it.
        """
        above, left = self.request.text[: self.request.cursor], self.brief.plan.second_tries
        for begun in sorted(self._beginnings(first), key=lambda each: -each.total):
            if left == 0:
                break
            other = above + self._own(to_text(self.brief.bytes_of(begun.tokens)))
            if unfit.stays(other, common_head(other, text)):
                continue
            out = self._open(self.brief, begun)
            left -= out.finish is None
            draft = self._finish(out)
            is_written = draft.text != first.text and bool(self._own(draft.text).strip())
            if is_written and self._misfit(draft, ended=True) is None:
                return self._keep(draft)
        return self._keep(first)

    def _beginnings(self, first: Draft) -> Iterator[_Beginning]:
        """Yield those that leave ``first`` at one token.

        That takes one more pass, or several where it is long.
        """
        walk, end = self._open(self.brief), self.brief.config.end_token
        kept = [token for token in first.token_ids if token != end]
        self.passes.sequence.truncate(self._base)
        for start in range(0, len(kept) + 1, _ROWS):
            read = [self._last, *kept][start : start + _ROWS]
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

    # --- how an answer fits -----------------------------------------------------------------------

    def _own(self, written: str) -> str:
        """Return an answer without the text before the cursor that it begins with again."""
        return written[len(self.prompt.forced) :]

    def _change(self, draft: Draft, ended: bool) -> ParsedEdit | None:
        try:
            return self.written_in.parse(self.prompt, self.request, draft.text, ended)
        except InvalidAnswer:
            return None

    def _misfit(self, draft: Draft, ended: bool) -> tuple[Misfit, str] | None:
        """Return how an answer does not fit, and the text up to its end.

        None where it fits or that is unknown.

        Args:
            ended: whether the answer is all that belongs at the cursor.
        """
        text, change = self.request.text, self._change(draft, ended)
        if change is None:
            return None
        language = self.request.language or language_of(self.request.path)
        above = text[: change.start]
        found = misfit(above, change.text, text[change.end :], language, ended)
        return None if found is None else (found, above + change.text)

    def _only_opens_block(self, draft: Draft) -> bool:
        """Return whether the answer is nothing but the head of a block without its body."""
        change, asked = self._change(draft, ended=True), self.request
        if change is None or not change.text.strip():
            return False
        start, path, language = change.start, asked.path, asked.language
        return not whole_blocks(change.text, asked.text, start, path, language).strip()

    # --- passes -----------------------------------------------------------------------------------

    @property
    def _last(self) -> int:
        return self.prompt.tokens[-1]

    @property
    def _base(self) -> int:
        """Tokens of the prompt that the sequence holds."""
        return len(self.prompt.tokens) - 1

    def _open(self, brief: Brief, begun: _Beginning = _NOTHING) -> Completion:
        out = Completion(brief, self._last, np.random.default_rng(0))  # nothing is drawn
        if begun.tokens:
            out.open_with(begun.tokens, begun.probabilities)
        return out

    def _finish(self, out: Completion) -> Draft:
        """Write ``out`` to its end; the sequence first reads its tokens as far as it lacks them."""
        if out.finish is None:
            tokens = [self._last, *out.tokens][:-1]
            held = self._hold(tokens)
            if held < len(tokens):
                self.passes.extend(tokens[held:])
        return decode(self.passes, out).draft()

    def _keep(self, draft: Draft) -> Draft:
        """Leave in the sequence only what was read of ``draft``, and return it."""
        self._hold([self._last, *draft.token_ids])
        return draft

    def _hold(self, tokens: Seq[int]) -> int:
        """Forget what the sequence holds besides ``tokens``; return how many of these it holds."""
        held = common_head(list(self.passes.sequence.tokens[self._base :]), list(tokens))
        self.passes.sequence.truncate(self._base + held)
        return held
