"""Figures of a replay, each with its interval, over all moments and by language.

Intervals resample whole sessions, or stretches of five minutes where there are few sessions:
moments next to each other are dependent. Recordings made from commits have separate tables, which
count matches and never acceptance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..example import Row
from ..tables import Metric, Percentile, Score, Table, by_session, overall, parted, regrouped

#: Stages of a question; the first is the whole.
STAGES = (
    "total_ms", "delay_ms", "queue_ms", "context_ms", "prefill_ms", "denoise_ms", "gate_ms",
)  # fmt: skip


def metrics(simulated: bool) -> tuple[Metric, ...]:
    """Return the metrics of a moment."""
    would = "matches" if simulated else "would accept"
    return (
        Metric("requests a moment", "mean", "requests", digits=2),
        Metric("shown", "share", "shown"),
        Metric(f"{would}, exact", "share", "accepted", better="more"),
        Metric(f"{would}, but for white space", "share", "accepted_white_space", better="more"),
        Metric(f"{would}, by its beginning", "share", "accepted_prefix", better="more"),
        Metric("of which it can be told", "share", "told"),
        Metric("written by whatever hand (no ground truth)", "share", "reached"),
        Metric("kept rate", "ratio", "kept_chars", by="suggested_chars", digits=3, better="more"),
        Metric("recall rate", "ratio", "kept_chars", by="done_chars", digits=3, better="more"),
        Metric("delta chrF", "mean", "delta_chrf", better="more"),
        Metric("reversal ratio", "mean", "reversal", digits=3, better="less"),
        Metric("parse errors added", "mean", "errors_added", digits=3, better="less"),
        Metric("shown where something is left to do", "share", "shown_left", better="more"),
        Metric("quiet where nothing is", "share", "quiet", better="more"),
        Score("show/quiet score", "mean", "delta_chrf", digits=3, better="more"),
        Metric("characters shown", "mean", "characters"),
        Metric(
            "keystrokes saved per character typed",
            "ratio",
            "saved",
            by="typed",
            digits=4,
            better="more",
        ),
        Metric("utility a moment", "mean", "utility", digits=4, better="more"),
    )


COSTS: tuple[Metric, ...] = (
    *(
        Percentile(f"{stage[:-3]} ms, p{100 * q:.0f}", "mean", stage, digits=0, better="less", q=q)
        for stage in STAGES
        for q in (0.5, 0.95)
    ),
    Metric(
        "prompt tokens a request", "ratio", "prompt_tokens", by="requests", digits=0, better="less"
    ),
    Metric(
        "reused tokens a request", "ratio", "reused_tokens", by="requests", digits=0, better="more"
    ),
    Metric("denoise steps a request", "ratio", "steps", by="requests", better="less"),
    Metric("tokens a forward pass", "ratio", "tokens", by="steps", digits=2, better="more"),
)

METRICS = metrics(simulated=False)
#: Shown for each part.
BY_PART = ("shown", "accepted", "accepted_prefix", "delta_chrf", "quiet", "utility")


def tables(rows: Sequence[Row], seed: int) -> Iterator[Table]:
    """Yield the tables of people's recordings, then those of recordings made from commits."""
    for simulated, title in ((False, "replay"), (True, "simulated streams (no acceptance)")):
        some = regrouped([each for each in rows if bool(each["simulated"]) is simulated])
        if some:
            yield from _tables(f"{title}, intervals by {_unit(some)}", some, simulated, seed)


def _tables(title: str, rows: Sequence[Row], simulated: bool, seed: int) -> Iterator[Table]:
    known = metrics(simulated)
    yield overall(title, known, rows, seed)
    parts: tuple[tuple[str, Callable[[Row], str]], ...] = (
        ("by language", lambda each: str(each["language"])),
        ("by kind of suggestion", lambda each: str(each["task"] or "none")),
    )
    brief = [metric for metric in known if metric.field in BY_PART]
    for name, label in parts:
        yield parted(name, brief, rows, label, seed)
    yield overall("what it takes", COSTS, rows, seed)


def _unit(rows: Sequence[Row]) -> str:
    groups = len({each["group"] for each in rows})
    unit = "session" if by_session(rows) else "stretch of 5 minutes"
    return f"{unit} ({groups})"
