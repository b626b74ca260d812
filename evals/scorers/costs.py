"""Costs of a prediction, and how often its drafts were right.

Drafts of a source are counted by place: a₁ is how often the first token behind the last verified
one was right, a₂ how often the second was if the first was, and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from redraft.model.gate.gate import load_shipped
from redraft.model.records import DraftSource, Prediction, Stats, Task

from ..example import Row
from ..tables import Metric

#: Places that are counted; few drafts reach further.
PLACES = 3


def costs(prediction: Prediction, task: Task) -> Row:
    """Return what every task keeps of an answer: its best candidate's end, and what it took."""
    first = prediction.candidates[0] if prediction.candidates else None
    stats = prediction.stats
    return {
        "ended": first.finish == "end" if first is not None else None,
        "confidence": load_shipped().score(first, task) if first is not None else None,
        "source": first.source if first is not None else None,
        "reason": prediction.reason,
        "tokens": stats.canvas_tokens,
        "steps": stats.denoise_steps,
        "prompt_tokens": stats.prompt_tokens,
        "cut": stats.cut,
        "decode_ms": round(stats.denoise_ms, 1),
        "total_ms": round(stats.total_ms, 1),
    }


def draft_fields(stats: Stats) -> Row:
    """Return what an example keeps of the drafts of one prediction."""
    found: Row = {"passes_saved": stats.canvas_tokens - stats.denoise_steps}
    for each in stats.drafts:
        found[f"{each.source}_drafted"] = sum(each.drafted)
        found[f"{each.source}_right"] = sum(each.right)
        places = list(zip(each.reached, each.right, strict=True))[:PLACES]
        for place, (reached, right) in enumerate(places, 1):
            found[f"{each.source}_reached_{place}"] = reached
            found[f"{each.source}_right_{place}"] = right
    return found


def draft_columns(rows: Sequence[Row]) -> list[Metric]:
    """Return the share of passes saved, and how often the drafts of each source were right."""
    found = [Metric("passes saved", "ratio", "passes_saved", by="tokens", digits=2)]
    for source in get_args(DraftSource):
        if any(f"{source}_drafted" in each for each in rows):
            name = f"{source} drafts right"
            found.append(Metric(name, "ratio", f"{source}_right", f"{source}_drafted", 2))
        for place in range(1, PLACES + 1):
            right, reached = f"{source}_right_{place}", f"{source}_reached_{place}"
            if any(each.get(reached) for each in rows):
                found.append(Metric(f"… in place {place}, of {source}", "ratio", right, reached, 2))
    return found
