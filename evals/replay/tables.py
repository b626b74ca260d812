"""The figures of a replay: every one with its interval, over all and by language.

Intervals resample whole sessions, or stretches of five minutes where there are few sessions:
moments next to each other stand or fall together. Streams made from commits have tables of their
own that speak of matches, never of acceptance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..figures.intervals import Figure, quantile, ratio, share, unmeasured
from ..figures.runs import Episode
from ..figures.tables import Metric, Score, Table, overall, parted

#: Sessions from which on they are what is resampled.
ENOUGH_SESSIONS = 10
#: Stages of a question's way, the first is the whole of it.
STAGES = (
    "total_ms", "delay_ms", "queue_ms", "context_ms", "prefill_ms", "denoise_ms", "gate_ms",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rate(Metric):
    """A share whose interval is of whole groups. Where all episodes agree there is nothing to
    resample, and it is Wilson's."""

    def figure(self, episodes: Iterable[Episode], least: int = 1, seed: int = 0) -> Figure:
        counted = [each for each in episodes if each.get(self.field) is not None]
        values = [float(each[self.field]) for each in counted]
        if len(counted) < max(least, 1):
            return unmeasured(len(counted))
        if len(set(values)) == 1:
            return share(round(sum(values)), len(values))
        return ratio(values, groups=[each["group"] for each in counted], seed=seed)


@dataclass(frozen=True, slots=True)
class Percentile(Metric):
    """A value that the share ``q`` of episodes does not exceed."""

    q: float = 0.5

    def figure(self, episodes: Iterable[Episode], least: int = 1, seed: int = 0) -> Figure:
        counted = [each for each in episodes if each.get(self.field) is not None]
        if len(counted) < max(least, 1):
            return unmeasured(len(counted))
        values = [float(each[self.field]) for each in counted]
        return quantile(values, self.q, [each["group"] for each in counted], seed)


def metrics(simulated: bool) -> tuple[Metric, ...]:
    """What is told of every moment."""
    would = "matches" if simulated else "would accept"
    return (
        Metric("requests a moment", "mean", "requests", digits=2),
        Rate("shown", "share", "shown"),
        Rate(f"{would}, exact", "share", "accepted"),
        Rate(f"{would}, but for white space", "share", "accepted_white_space"),
        Rate(f"{would}, by its beginning", "share", "accepted_prefix"),
        Rate("of which it can be told", "share", "told"),
        Rate("written by whatever hand (no ground truth)", "share", "reached"),
        Metric("kept rate", "ratio", "kept_chars", by="suggested_chars", digits=3),
        Metric("recall rate", "ratio", "kept_chars", by="done_chars", digits=3),
        Metric("delta chrF", "mean", "delta_chrf"),
        Metric("reversal ratio", "mean", "reversal", digits=3),
        Metric("parse errors added", "mean", "errors_added", digits=3),
        Rate("shown where something is left to do", "share", "shown_left"),
        Rate("quiet where nothing is", "share", "quiet"),
        Score("show/quiet score", "mean", "delta_chrf", digits=3),
        Metric("characters shown", "mean", "characters"),
        Metric("keystrokes saved per character typed", "ratio", "saved", by="typed", digits=4),
        Metric("utility a moment", "mean", "utility", digits=4),
    )


COSTS: tuple[Metric, ...] = (
    *(
        Percentile(f"{stage[:-3]} ms, p{100 * q:.0f}", "mean", stage, digits=0, q=q)
        for stage in STAGES
        for q in (0.5, 0.95)
    ),
    Metric("prompt tokens a request", "ratio", "prompt_tokens", by="requests", digits=0),
    Metric("reused tokens a request", "ratio", "reused_tokens", by="requests", digits=0),
    Metric("denoise steps a request", "ratio", "steps", by="requests"),
    Metric("tokens a forward pass", "ratio", "tokens", by="steps", digits=2),
)

METRICS = metrics(simulated=False)
#: Shown for each part.
BY_PART = ("shown", "accepted", "accepted_prefix", "delta_chrf", "quiet", "utility")


def tables(episodes: Sequence[Episode], seed: int) -> Iterator[Table]:
    """Recordings of people and streams made from commits apart."""
    for simulated, title in ((False, "replay"), (True, "simulated streams (no acceptance)")):
        some = regrouped([each for each in episodes if bool(each["simulated"]) is simulated])
        if some:
            yield from _tables(f"{title}, intervals by {_unit(some)}", some, simulated, seed)


def _tables(title: str, episodes: Sequence[Episode], simulated: bool, seed: int) -> Iterator[Table]:
    known = metrics(simulated)
    yield overall(title, known, episodes, seed)
    parts: tuple[tuple[str, Callable[[Episode], str]], ...] = (
        ("by language", lambda each: str(each["language"])),
        ("by kind of suggestion", lambda each: str(each["task"] or "none")),
    )
    brief = [metric for metric in known if metric.field in BY_PART]
    for name, label in parts:
        yield parted(name, brief, episodes, label, seed)
    yield overall("what it takes", COSTS, episodes, seed)


def regrouped(episodes: Sequence[Episode]) -> list[Episode]:
    """Grouped by session where there are enough of them."""
    if not _by_session(episodes):
        return list(episodes)
    return [each | {"group": each["session"]} for each in episodes]


def _by_session(episodes: Sequence[Episode]) -> bool:
    return len({each["session"] for each in episodes}) >= ENOUGH_SESSIONS


def _unit(episodes: Sequence[Episode]) -> str:
    groups = len({each["group"] for each in episodes})
    unit = "session" if _by_session(episodes) else "stretch of 5 minutes"
    return f"{unit} ({groups})"
