"""What next edits are looked for, and how what is found is merged and ranked.

Pure; ``judged_edits.py`` writes the candidates.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass, replace

from ..records import Confidence, Quality, Source
from .plan import Brief, Draft
from .probabilities import confidence, decode
from .ranges import Opening, RangeTree

#: Ranges and drafts together, at most.
MOST_ROWS = 16
#: From this probability of "no edit" on, where that may be the answer, the model writes nothing.
QUIET_ABOVE = 0.5
#: A candidate this likely ends the search for others.
SURE = 0.5
#: Tokens of a draft that are looked at in one pass; whole distributions are kept of each.
DRAFT_TOKENS = 160
#: Of a repeated edit, what its text's log-probability adds to the log of its chance. On 39 of them
#: at training commits, chance alone told right from wrong with an AUC of 0.87, with this 0.91.
TEXT_COUNTS = 0.1
#: A range is not written where it is this much less likely than the likeliest one, in nats.
FAR_FETCHED = 5.0
#: A range is not read on in the same pass with one that is likelier by so much, in nats.
BESIDE = 2.0
#: Log-probability, place included, below which what the model writes itself is given up. Of 373
#: such texts at training moments 13 were right, all above -3; of the 186 below this none was, nor
#: was any shown.
HOPELESS = -5.0

#: The same for what is still in progress when the time is up, where something else is known.
HOPELESS_LATE = -3.0


@dataclass(frozen=True, slots=True)
class Effort:
    """How much to look for."""

    ranges: int  # that the model writes
    drafts: int  # of others that it prices, the likeliest first; 58 of 59 right ones that were
    # shown at training moments were the first, one the second
    deadline_ms: float  # after which nothing new is begun, and nothing written that is not needed
    wanted: int = 1  # candidates: what cannot come among the best of them is not written; of 64
    # right edits that were shown at training moments none was a second text of the model's own
    hopeless: float = HOPELESS  # log-probability below which a text of the model's own is given up


EFFORTS: dict[Quality, Effort] = {
    "low": Effort(ranges=1, drafts=2, deadline_ms=200.0),
    "medium": Effort(ranges=3, drafts=2, deadline_ms=400.0),
    "high": Effort(ranges=6, drafts=8, deadline_ms=1_500.0),
}


def effort_for(quality: Quality, candidates: int) -> Effort:
    """As the quality says, and more for more candidates, as far as there is room. Only the highest
    writes a text to its end that is less likely than another."""
    effort = EFFORTS[quality]
    ranges = min(max(effort.ranges, candidates), MOST_ROWS - effort.drafts)
    return replace(effort, ranges=ranges, wanted=candidates if quality == "high" else 1)


@dataclass(frozen=True, slots=True)
class Proposal:
    """Somebody's draft: lines first-last, 1-based within the region, become ``tokens``."""

    first: int
    last: int
    tokens: tuple[int, ...]  # without END
    chance: float  # that exactly this is the next edit, by what the proposer knows
    family: str = "repeat"  # of rules that it comes from

    @property
    def range(self) -> str:
        """As an answer begins."""
        return f"{self.first}-{self.last}\n"


@dataclass(frozen=True, slots=True)
class Field:
    """What may be edited."""

    count: int  # lines of the region
    cursor: int  # 1-based line
    chars: dict[str, int]  # token of each character of a range
    lines: Callable[[int, int], Seq[int]]  # tokens of lines first-last as they are
    proposals: tuple[Proposal, ...] = ()  # the most promising first


def range_tree(brief: Brief, field: Field) -> RangeTree:
    return RangeTree(field.count, field.cursor, field.chars, brief.config.end_token)


def is_quiet(tree: RangeTree, brief: Brief) -> bool:
    """Whether the model would rather edit nothing, where it may."""
    return brief.limits.min_tokens == 0 and tree.nothing >= math.log(QUIET_ABOVE)


def usable(brief: Brief, field: Field, effort: Effort, quiet: bool) -> list[Proposal]:
    """The proposals to price: where the model is ``quiet``, only those more likely than not."""
    fitting = [one for one in field.proposals if is_usable(one, brief, field)]
    likely = [one for one in fitting if not quiet or one.chance >= QUIET_ABOVE]
    return likely[: effort.drafts]


def no_edit(tree: RangeTree, brief: Brief) -> Draft:
    """END at once."""
    sure = replace(confidence([math.exp(tree.nothing)]), nothing=tree.nothing)
    return Draft("", (brief.config.end_token,), sure, 1, 0, "end")


def priced(draft: Draft, opening: Opening, tree: RangeTree) -> Draft:
    """Return ``draft`` with the log-probabilities of its place and of "no edit"."""
    sure = replace(draft.confidence, place=opening.total, nothing=tree.nothing)
    return replace(draft, confidence=sure)


def is_usable(proposal: Proposal, brief: Brief, field: Field) -> bool:
    """Whether a draft keeps within the region and the limits."""
    length = len(proposal.range) + len(proposal.tokens) + 1
    within = 1 <= proposal.first <= field.count + 1
    within = within and proposal.first - 1 <= proposal.last <= field.count
    most = min(brief.limits.max_tokens, DRAFT_TOKENS)
    return within and brief.limits.min_tokens <= length <= most


def text_of(tokens: Seq[int], brief: Brief) -> str:
    return decode(b"".join(brief.vocab_bytes[token] for token in tokens))


def is_edit(draft: Draft, opening: Opening, brief: Brief, field: Field) -> bool:
    """Whether what was written for the whole range ``opening`` is more than its lines as they
    are."""
    return draft.text != opening.text + text_of(field.lines(*opening.range), brief)


def rank(draft: Draft) -> float:
    """How good a candidate is, of those of one moment: the log of how likely it is to be right, by
    the model or, where it repeats an edit, by what is known of repetitions and the model."""
    return rank_of(draft.confidence)


def rank_of(sure: Confidence) -> float:
    """The same of what is known of a candidate."""
    if not sure.repeat:
        return sure.total
    text = sure.total - (sure.place or 0.0)
    return max(sure.total, math.log(sure.repeat) + TEXT_COUNTS * text)


def good_enough(drafts: Seq[Draft], wanted: int) -> float:
    """The rank that a candidate needs to be among the best ``wanted``; where one is likelier than
    all others together, to be better than that."""
    ranks = sorted(map(rank, merged(drafts)), reverse=True)
    if ranks and ranks[0] >= math.log(SURE):
        return ranks[0]
    return ranks[wanted - 1] if len(ranks) >= wanted else -math.inf


def merged(drafts: Seq[Draft]) -> list[Draft]:
    """Each text once, at its likeliest, the best first; what the model and somebody else wrote
    alike is of both."""
    found: dict[str, Draft] = {}
    for draft in drafts:
        known = found.get(draft.text)
        if known is None:
            found[draft.text] = draft
            continue
        best = max(known, draft, key=rank)
        source: Source = draft.source if draft.source == known.source else "both"
        chances = [one.confidence.repeat for one in (known, draft)]
        chance = max((one for one in chances if one is not None), default=None)
        found[draft.text] = replace(
            best,
            source=source,
            family=known.family or draft.family,
            steps=known.steps + draft.steps,
            confidence=replace(best.confidence, repeat=chance),
        )
    return sorted(found.values(), key=rank, reverse=True)
