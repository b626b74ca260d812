"""Tables of a replay: figures over all moments, by language and by kind of suggestion.

Intervals resample whole sessions, or stretches of five minutes where there are few sessions:
moments next to each other are dependent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..example import Row
from ..tables import (
    Metric,
    Percentile,
    Score,
    Table,
    by_session,
    group_by_session,
    overall,
    table_by_label,
)

#: Stages of a question; the first is the whole.
STAGES = (
    "total_ms", "delay_ms", "queue_ms", "context_ms", "prefill_ms", "decode_ms", "gate_ms",
)  # fmt: skip
METRICS = (
    Metric("requests a moment", "mean", "requests", digits=2),
    Metric("shown", "share", "shown"),
    Metric("would accept, exact", "share", "accepted", better="more"),
    Metric("would accept, but for white space", "share", "accepted_white_space", better="more"),
    Metric("would accept, by its beginning", "share", "accepted_prefix", better="more"),
    Metric("of which it is known", "share", "told"),
    Metric("written by anyone (no ground truth)", "share", "reached"),
    Metric("kept rate", "ratio", "kept_chars", by="suggested_chars", digits=3, better="more"),
    Metric("recall rate", "ratio", "kept_chars", by="done_chars", digits=3, better="more"),
    Metric("delta chrF", "mean", "delta_chrf", better="more"),
    Metric("reversal ratio", "mean", "reversal", digits=3, better="less"),
    Metric("parse errors added", "mean", "errors_added", digits=3, better="less"),
    Metric("shown where something is left to do", "share", "shown_left", better="more"),
    Metric("quiet where nothing is", "share", "quiet", better="more"),
    Score("show/quiet score", "mean", "delta_chrf", digits=3, better="more"),
    Metric("characters shown", "mean", "characters"),
    Metric("keystrokes saved per character typed", "ratio", "saved", "typed", 4, "more"),
    Metric("utility a moment", "mean", "utility", digits=4, better="more"),
)
COSTS: tuple[Metric, ...] = (
    *(
        Percentile(f"{stage[:-3]} ms, p{100 * q:.0f}", "mean", stage, digits=0, better="less", q=q)
        for stage in STAGES
        for q in (0.5, 0.95)
    ),
    Metric("prompt tokens a request", "ratio", "prompt_tokens", "requests", 0, "less"),
    Metric("reused tokens a request", "ratio", "reused_tokens", "requests", 0, "more"),
    Metric("passes a request", "ratio", "steps", "requests", better="less"),
    Metric("tokens a pass", "ratio", "tokens", "steps", 2, "more"),
)
#: Shown for each part.
BY_PART = ("shown", "accepted", "accepted_prefix", "delta_chrf", "quiet", "utility")


def tables(rows: Sequence[Row], seed: int) -> Iterator[Table]:
    """Yield the tables of recordings."""
    unit = "session" if by_session(rows) else "stretch of 5 minutes"
    rows = group_by_session(sorted(rows, key=lambda row: (row["session"], row["at_s"])))
    groups = len({each["group"] for each in rows})
    yield overall(f"replay, intervals by {unit} ({groups})", METRICS, rows, seed)
    brief = [metric for metric in METRICS if metric.field in BY_PART]
    yield table_by_label("by language", brief, rows, lambda each: str(each["language"]), seed)
    yield table_by_label(
        "by what is shown", brief, rows, lambda each: str(each["task"] or "none"), seed
    )
    yield overall("what it takes", COSTS, rows, seed)
