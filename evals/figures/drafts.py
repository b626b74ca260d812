"""How often drafts that the causal pass judged were right: sums, episodes' fields and columns.

Knows nothing of where drafts come from. A source's drafts are told apart by place: a₁ is how often
the first behind the last known token was right, a₂ how often the second where the first was, ….
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import zip_longest
from typing import get_args

from redraft.model.records import DraftCount, DraftSource, Stats

from .runs import Episode
from .tables import Metric

#: Places told apart; few drafts reach further.
PLACES = 3


def together(stats: Iterable[Stats]) -> tuple[DraftCount, ...]:
    """The counts of several predictions, by source."""
    found: dict[DraftSource, DraftCount] = {}
    for count in (count for each in stats for count in each.drafts):
        known = found.get(count.source, DraftCount(count.source, (), (), ()))
        found[count.source] = DraftCount(
            count.source,
            _sums(known.drafted, count.drafted),
            _sums(known.reached, count.reached),
            _sums(known.right, count.right),
        )
    return tuple(found[source] for source in sorted(found))


def _sums(one: Sequence[int], other: Sequence[int]) -> tuple[int, ...]:
    return tuple(a + b for a, b in zip_longest(one, other, fillvalue=0))


def told(counts: Sequence[DraftCount]) -> str:
    """For people: ``copy 12 of 40: 0.62 0.50 0.41``, right of drafted and a₁ a₂ a₃."""
    return ", ".join(
        f"{each.source} {sum(each.right)} of {sum(each.drafted)}: "
        + " ".join(
            f"{right / reached:.2f}"
            for right, reached in list(zip(each.right, each.reached, strict=True))[:PLACES]
            if reached
        )
        for each in counts
    )


def fields_of(stats: Stats) -> Episode:
    """What an episode keeps of the drafts of one prediction."""
    found: Episode = {"passes_saved": stats.canvas_tokens - stats.denoise_steps}
    for each in stats.drafts:
        found[f"{each.source}_drafted"] = sum(each.drafted)
        found[f"{each.source}_right"] = sum(each.right)
        places = list(zip(each.reached, each.right, strict=True))[:PLACES]
        for place, (reached, right) in enumerate(places, 1):
            found[f"{each.source}_reached_{place}"] = reached
            found[f"{each.source}_right_{place}"] = right
    return found


def columns(episodes: Sequence[Episode]) -> list[Metric]:
    """Share of passes saved, and of each source that drafted anything how often it was right."""
    found = [Metric("passes saved", "ratio", "passes_saved", by="tokens", digits=2)]
    for source in get_args(DraftSource):
        if any(f"{source}_drafted" in each for each in episodes):
            name = f"{source} drafts right"
            found.append(Metric(name, "ratio", f"{source}_right", f"{source}_drafted", 2))
        for place in range(1, PLACES + 1):
            right, reached = f"{source}_right_{place}", f"{source}_reached_{place}"
            if any(each.get(reached) for each in episodes):
                found.append(Metric(f"… in place {place}, of {source}", "ratio", right, reached, 2))
    return found
