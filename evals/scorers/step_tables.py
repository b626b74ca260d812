"""Tables of ordered steps: what was shown after them, where, and whether it was right."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..example import Row
from ..tables import Metric, Percentile, Table, overall, table_by_label

METRICS = (
    Metric("a right edit is shown", "share", "right", better="more"),
    Metric("shown", "share", "shown"),
    Metric("exact, of those shown", "share", "exact_shown", better="more"),
    Metric("half kept, of those shown", "share", "kept_shown", better="more"),
    Metric("at a right place, of those shown", "share", "place_shown", better="more"),
    Metric("at the very next place, of those shown", "share", "next_shown", better="more"),
    Metric("exact, of far ones shown", "share", "far_exact", better="more"),
    Metric("half kept, of far ones shown", "share", "far_kept", better="more"),
    Metric("takes the user back, of all shown", "share", "reversal", better="less"),
    Metric("quiet where nothing is left", "share", "quiet", better="more"),
    Metric("questions to the model", "mean", "questions", digits=2, better="less"),
    Metric(
        "tokens of prompts that were read before",
        "ratio",
        "reused_tokens",
        by="prompt_tokens",
        digits=2,
        better="more",
    ),
    Percentile("ms, half of the answers", "mean", "took_ms", digits=0, better="less"),
    Percentile("ms, nine of ten answers", "mean", "took_ms", digits=0, better="less", q=0.9),
)
OF_QUESTIONS = (
    Percentile("ms to the decision, median", "mean", "decided_ms", digits=0, better="less"),
    Percentile("ms to the decision, p90", "mean", "decided_ms", digits=0, better="less", q=0.9),
    Percentile("share reused, median", "mean", "reused", digits=2, better="more"),
    Percentile("share reused, p90", "mean", "reused", digits=2, better="more", q=0.9),
)
BY_PART = ("right", "shown", "exact_shown", "kept_shown", "place_shown")


def tables(rows: Sequence[Row], seed: int) -> Iterator[Table]:
    """Yield figures overall, by the distance of the next step and by language, and of questions."""
    yield overall("next edits after ordered steps", METRICS, rows, seed)
    brief = [metric for metric in METRICS if metric.field in BY_PART]
    left = [row for row in rows if row["right"] is not None]
    yield table_by_label(
        "by where the next step is", brief, left, lambda row: str(row["next"]), seed
    )
    yield table_by_label("by language", brief, left, lambda row: str(row["language"]), seed)
    title, asked = "questions to the model, at new places and known ones", questions(rows)
    yield table_by_label(title, OF_QUESTIONS, asked, lambda row: str(row["place"]), seed)


def questions(rows: Sequence[Row]) -> list[Row]:
    """Return a row for each question to the model, with its group and language.

    ``place`` says whether it is the first one about its lines in the walk, ``decided_ms`` is the
    time from the last key to the decision on its answer (ms), and ``reused`` the share of its
    prompt that had been read before (0 to 1; None without a prompt).
    """
    found = list[Row]()
    for row in rows:
        for one in row["asked"]:
            stats, measured = one["prediction"]["stats"], one["measured"]
            prompt = stats["prompt_tokens"]
            found.append(
                {
                    "group": row["group"],
                    "language": row["language"],
                    "place": "first question" if measured["is_first"] else "later question",
                    "decided_ms": measured["decided_ms"],
                    "reused": stats["reused_tokens"] / prompt if prompt else None,
                }
            )
    return found
