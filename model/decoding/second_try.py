"""Another answer where the likeliest one does not fit: the next likeliest that does.

Whoever asks says what fits. Of an answer that does not, one more causal pass tells how likely every
other token was at each place; the likeliest beginnings that leave the answer at one place are
written on from there, one after the other, until one fits. Runs passes; knows no language.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ..runtime.backend import Cancelled, Sequence
from ..runtime.prefix_cache import common_prefix
from .answer import Answer
from .denoise import Denoised, Run
from .judging import Judging
from .plan import Brief, Draft

#: A beginning less likely than this is not written on from.
BEGINNING_ABOVE = 0.005
#: Tokens looked at in one place.
_CHOICES = 8


@dataclass(frozen=True, slots=True)
class Beginning:
    """How another answer begins: as the first one, up to one token."""

    tokens: tuple[int, ...]
    probabilities: tuple[float, ...]

    @property
    def total(self) -> float:
        """Its log-probability."""
        return sum(math.log(max(each, 1e-30)) for each in self.probabilities)


class Fits:
    """What fits, as whoever asks sees it."""

    def why_not(self, draft: Draft) -> str: ...

    def hopeless(self, beginning: str, reason: str) -> bool: ...


def denoise_fitting(
    sequence: Sequence,
    last_token: int,
    brief: Brief,
    rng: np.random.Generator,
    misfit: Callable[[Draft], str],
    hopeless: Callable[[str, str], bool],
    cancelled: Callable[[], bool] = lambda: False,
    line_above: float | None = None,
) -> Denoised:
    """Write one answer, as :func:`~.denoise.denoise` does, and another where it does not fit.
    """
    run = Run(sequence, cancelled, None)
    base = len(sequence.tokens)
    first = _written(run, Answer(brief, last_token, rng))
    reason = misfit(first)
    found = None
    if reason:
        found = _other(run, base, last_token, brief, rng, first, misfit, reason, hopeless, line_above)
    return Denoised((found or first,), run.passes, run.prefilled, run.tally.counts())


def _written(run: Run, answer: Answer) -> Draft:
    run.judge(Judging(answer))
    answer.close()
    return answer.draft()


LOG = None

def _other(run, base, last_token, brief, rng, first, misfit, reason, hopeless, line_above):
    kept = [token for token in first.token_ids if token != brief.config.end_token]
    run.sequence.truncate(base)
    out = run.verify([last_token, *kept], logits=True)
    found = sorted(_beginnings(Answer(brief, last_token, rng), first, kept, out), key=lambda each: -each.total)
    if line_above is not None:
        brief = replace(brief, limits=replace(brief.limits, line_above=line_above))
    tried = 0
    said = {first.text}
    for each in found:
        if tried >= brief.plan.second_tries:
            break
        end = each.tokens[-1] == brief.config.end_token
        text = b"".join(brief.vocab_bytes[t] for t in each.tokens).decode("utf-8", "replace")
        if not end and hopeless(text, reason):
            if LOG is not None: LOG.append(("hopeless", text, each.total))
            continue
        answer = Answer(brief, last_token, rng)
        answer.open_with(each.tokens, each.probabilities)
        if answer.finish is None:
            tried += 1
            run.hold(base, [last_token, *each.tokens[:-1]])
        draft = _written(run, answer)
        why = misfit(replace(draft, finish="end"))
        if LOG is not None: LOG.append(("try", text, each.total, draft.text, draft.finish, draft.confidence.total, why))
        if draft.text in said: continue
        said.add(draft.text)
        if not why and draft.text.strip():
            return draft
    held = common_prefix(run.sequence.tokens[base:], [last_token, *kept])
    run.sequence.truncate(base + held)
    return None


def _beginnings(walk, first, kept, out):
    for place in range(len(kept) + 1):
        probabilities = walk.distribution(place, out, walk.allowed_now())
        if walk.too_short(0):
            probabilities[walk.brief.config.end_token] = 0.0
        taken = first.token_ids[place] if place < len(first.token_ids) else None
        for token in np.argsort(-probabilities, kind="stable")[: _CHOICES]:
            one = Beginning((*walk.settled, int(token)), (*walk.settled_p, float(probabilities[token])))
            if token != taken and one.total >= math.log(BEGINNING_ABOVE):
                yield one
        if place < len(kept):
            walk.open_with([kept[place]], [float(probabilities[kept[place]])])
