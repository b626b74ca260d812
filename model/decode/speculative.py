"""Speculative decoding: draft, verify the draft in one pass, correct its first wrong token.

The answer is what the causal pass alone would write, in fewer passes, as in speculative decoding
(2211.17192) and TiDAR (2511.08923).
"""

from __future__ import annotations

from collections.abc import Sequence as Seq

import numpy as np

from ..runtime.backend import IntArray, MaskGuesses, Rows, Scores
from . import canvas
from .completion import Brief, Completion, Draft
from .drafts import FREE, Drafts, continuation, surest
from .pass_costs import Groups, worth, worth_groups
from .passes import Passes

#: An alternative first token less likely than this is not worth an answer.
ALTERNATIVE_ABOVE = 0.02

_NO_MASKS = Groups()


def write(
    passes: Passes, last_token: int, brief: Brief, rng: np.random.Generator, count: int = 1
) -> list[Draft]:
    """Write up to ``count`` answers over one cache, surest first, no two the same.

    At temperature 0 each further answer begins with another of the most likely first tokens; above
    0 each is a draw. All share the first pass and are then written in turn; ``on_step`` follows the
    first one.

    Args:
        last_token: the prompt's last token, which the sequence does not hold.

    Returns:
        The answers. The sequence holds one answer as far as it was read; of several, none.

    Raises:
        Cancelled: the caller has cancelled.
    """
    first = Completion(brief, last_token, rng)
    base = len(passes.sequence.tokens)
    if count == 1:
        decode(passes, first) if brief.verifies else canvas.fill(passes, first)
        rows = [first]
    else:
        rows = (
            _several(passes, first, count)
            if brief.verifies
            else canvas.fill_rows(passes, first, count, ALTERNATIVE_ABOVE)
        )
        passes.sequence.truncate(base)
    for each in rows:
        each.close()
    drafts = {each.draft().token_ids: each.draft() for each in reversed(rows)}
    return sorted(drafts.values(), key=lambda draft: -draft.confidence.mean)


def decode(passes: Passes, out: Completion) -> Completion:
    """Write ``out`` to its end.

    A draft changes how many passes are run, never the text: a row depends only on the tokens before
    it.
    """
    drafter = Drafter(out.brief)
    while out.finish is None:
        _step(passes, out, drafter)
    return out


def _several(passes: Passes, first: Completion, count: int) -> list[Completion]:
    """Write at most ``count`` answers, one after another, out of one first pass."""
    after = len(passes.sequence.tokens) + 1

    def another(rng: np.random.Generator = first.rng) -> Completion:
        return Completion(first.brief, first.prompt_end, rng)

    scores = _step(passes, first, Drafter(first.brief), logits=True)
    decode(passes, first)
    passes.on_step = None
    rows = [first]
    if first.brief.plan.temperature > 0:
        for child in first.rng.spawn(count - 1):
            rows.append(another(child))
            rows[-1].verify((), scores)
    else:
        for token, probability in another().first_choices(scores, count)[1:]:
            if probability >= ALTERNATIVE_ABOVE:
                rows.append(another())
                rows[-1].open_with([token], [probability])
    for row in rows[1:]:
        passes.sequence.truncate(after)
        decode(passes, row)
    return rows


def _step(passes: Passes, out: Completion, drafter: Drafter, logits: bool = False) -> Scores:
    """Read the last token, a draft, and masks behind some of them; append what the pass says.

    The rows of rejected drafts are forgotten.
    """
    drafts = drafter.draft(out, passes)
    groups = drafter.groups(out, drafts)
    held, tokens = len(passes.sequence.tokens), [each.token for each in drafts]
    rows = lay_out(out.last, tokens, held, groups, out.brief.config.mask_token)
    wanted, before = logits or out.needs_logits(), len(out.tokens)
    # Without masks the plain causal kernel reads the rows.
    scores = passes.read(rows, wanted) if rows.masks else passes.score(rows.tokens, wanted)
    right = out.verify(tokens, scores)
    passes.sequence.truncate(held + len(out.tokens) - before)
    passes.tally.note(drafts, right)
    out.brief.odds.note(drafts, right)
    drafter.keep_guesses(out, right, groups, scores.masks)
    passes.show(lambda: out.state(drafter.ahead(out)))
    return scores


def lay_out(
    last_token: int, draft: Seq[int], held: int, groups: Groups = _NO_MASKS, mask_token: int = 0
) -> Rows:
    """Return the rows of the last token known to be right and a draft, with masks behind some.

    The tokens are read causally: the prediction behind the i-th is compared with the draft that
    follows it. The masks of a token continue its position and see all tokens up to it and those
    of its masks before them, so they guess on as if the drafts behind it were not there. No token
    sees a mask, and nothing sees what stands behind it in the row: with masks and without them
    predictions are the same, bit by bit.

    ::

        tokens   t0     d1     …  dk      masks   M M    M M    …  M M
        position 0      1      …  k               1 2    2 3    …  k+1 k+2

    Args:
        held: tokens before the first.
        groups: masks behind which tokens.
    """
    tokens: IntArray = np.asarray([last_token, *draft], np.int64)
    count, behind = len(tokens), np.asarray(groups.behind, np.int64)
    owner = np.repeat(behind, groups.masks)  # of each mask
    within = np.tile(np.arange(1, groups.masks + 1), len(behind))
    place = np.concatenate([np.arange(count), owner])  # [n] a token stands behind itself
    order = np.arange(len(place))
    sees = (place[None, :] <= place[:, None]) & (order < count)[None, :]
    sees |= (place[None, :] == place[:, None]) & (order[None, :] <= order[:, None])
    read = np.concatenate([tokens, np.full(len(owner), mask_token, np.int64)])
    positions = held + np.concatenate([np.arange(count), owner + within])
    return Rows(read, positions, sees, np.append(read[1:], read[-1:]), len(owner))


# --- drafting -------------------------------------------------------------------------------------


class Drafter:
    """Drafts for one answer: forced by its grammar, copied, or guessed by masks or a canvas."""

    def __init__(self, brief: Brief) -> None:
        self._brief = brief
        self._prices = brief.prices
        self._guesses: Drafts = ()  # of the masks behind the last token

    def draft(self, out: Completion, passes: Passes) -> Drafts:
        """Return the draft of which most tokens are likely to be right, as far as it pays."""
        copied = self._usable(out, self._copied(out))
        drafts = surest(self._forced(out), surest(copied, self._guessed(out)))
        drafts_on_canvas = self._brief.config.has_canvases and self._brief.plan.drafts
        if len(drafts) > FREE or not drafts_on_canvas or out.token_mask() is not None:
            return drafts
        guesses = self._brief.odds.of_guesses("canvas", *canvas.guess(passes, out))
        return self._usable(out, guesses)

    def groups(self, out: Completion, drafts: Drafts) -> Groups:
        """Return behind which of the last token and ``drafts`` masks pay; without prices all."""
        config = self._brief.config
        if config.adapter != "masks" or not self._brief.plan.drafts or out.token_mask() is not None:
            return _NO_MASKS
        if self._prices is None:
            return Groups(config.masks, tuple(range(len(drafts) + 1)))
        guesses = self._brief.odds.of_groups(config.masks)
        return worth_groups([each.chance for each in drafts], guesses, self._prices)

    def keep_guesses(
        self, out: Completion, right: int, groups: Groups, masks: MaskGuesses | None
    ) -> None:
        """Keep the guesses of the masks behind the last draft that was right."""
        self._guesses = ()
        if masks is None or right not in groups.behind or out.finish is not None:
            return
        at = groups.behind.index(right) * groups.masks
        self._guesses = self._chain(masks, range(at, at + groups.masks), out.last)

    def ahead(self, out: Completion) -> list[int | None]:
        """Return the tokens behind the text that the next pass verifies.

        They are the guesses of masks, and None for each mask whose guess is not used.
        """
        if not self._guesses:
            return []
        unused = self._brief.config.masks - len(self._guesses)
        return [*(each.token for each in self._guesses), *[None] * unused][: out.room()]

    def _forced(self, out: Completion) -> Drafts:
        """Return what the grammar leaves no choice about.

        It is verified like any draft: the same text may be cut into tokens in several ways.
        """
        constraint = self._brief.constraint
        if constraint is None or not self._brief.plan.drafts or out.token_mask() is None:
            return ()
        return self._brief.odds.of_forced(constraint.must_follow(out.tokens)[: out.room()])

    def _guessed(self, out: Completion) -> Drafts:
        """Return guesses of masks, and what followed as much of them elsewhere."""
        best: Drafts = ()
        for count in range(1, len(self._guesses) + 1):
            guessed = self._guesses[:count]
            best = surest((*guessed, *self._copied(out, guessed)), best)
        return self._usable(out, best)

    def _copied(self, out: Completion, ahead: Drafts = ()) -> Drafts:
        """Return what followed elsewhere what is written, and ``ahead`` behind it."""
        brief = self._brief
        if not brief.plan.copies:
            return ()
        written = [*out.tokens, *(each.token for each in ahead)]
        whole = np.concatenate([brief.source, np.asarray(written, np.int64)])
        return brief.odds.of_copy(continuation(whole, whole, brief.config.text_ids))

    def _usable(self, out: Completion, drafts: Drafts) -> Drafts:
        """Return the first of ``drafts`` that fit, that the constraint allows, and that pay.

        Without prices all pay.
        """
        drafts, constraint = drafts[: out.room()], self._brief.constraint
        if constraint is not None and out.token_mask() is not None:
            drafts = drafts[: constraint.legal(out.tokens, [each.token for each in drafts])]
        if self._prices is None:
            return drafts
        return drafts[: worth([each.chance for each in drafts], self._prices)]

    def _chain(self, masks: MaskGuesses, part: range, before: int) -> Drafts:
        """Return the guesses of a group behind the token ``before``, as many as may pay.

        Each takes the sampler's time.
        """
        odds = self._brief.odds
        usual = odds.of_groups(len(part))
        drafts: Drafts = ()
        for mask in part:
            chances = [*(each.chance for each in drafts), *usual[len(drafts) :]]
            if self._prices is not None and worth(chances, self._prices) <= len(drafts):
                break
            before, p = masks.guess(mask, before)
            drafts = (*drafts, *odds.of_guesses("mask", [before], [p]))
        return drafts
