"""Latency: how long an answer took, stage by stage, and the tables of ``redraft bench``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from redraft.model.records import Prediction, Task

from ..example import Example, Row
from ..tables import Metric, Percentile, Table, overall, rows_of_parts
from .costs import draft_fields

STAGES = ("queue_ms", "prompt_ms", "prefill_ms", "total_ms")


def _ms(stage: str, q: float) -> Percentile:
    name = f"{stage.removesuffix('_ms')} ms, p{100 * q:.0f}"
    return Percentile(name, "mean", stage, digits=1, better="less", q=q)


#: Of requests to the model, by kind and prompt budget.
REQUESTS = (
    _ms("total_ms", 0.5),
    _ms("total_ms", 0.95),
    _ms("prefill_ms", 0.5),
    _ms("decode_ms", 0.5),
    _ms("processor_ms", 0.5),
    _ms("queue_ms", 0.5),
    Metric("tokens a pass", "ratio", "tokens", by="steps", digits=2, better="more"),
    Metric("recomputed of the prompt", "ratio", "recomputed", "prompt_tokens", 3, "less"),
    Metric("copied tokens right", "ratio", "copy_right", "copy_drafted", 2, "more"),
    Metric("same as with an empty cache", "share", "same", better="more"),
)
#: Of the language server in a large file, without a model.
SERVER = tuple(
    _ms(field, q) for field in ("wall_ms", "processor_ms", "question_ms") for q in (0.5, 0.99)
)
PASS = (Metric("ms", "mean", "pass_ms", better="less"),)
PRODUCT = (Metric("ms", "mean", "product_ms", digits=2, better="less"),)
LONG = (_ms("key_ms", 0.5), Metric("MB of keys and values", "mean", "kv_mb", digits=0))
MACHINE = (
    Metric("MB at the start", "mean", "start_mb", digits=0),
    Metric("MB with the model", "mean", "loaded_mb", digits=0, better="less"),
    Metric("MB at the end", "mean", "end_mb", digits=0, better="less"),
    Metric("context that suits this machine, tokens", "mean", "auto_context", digits=0),
    Metric("load per core before", "mean", "load_before", digits=2),
    Metric("load per core after", "mean", "load_after", digits=2),
)
START = (Percentile("s, p50", "mean", "start_s", digits=2, better="less", q=0.5),)
#: Of the comparison with another server.
BESIDE = (
    _ms("ours_ms", 0.5),
    _ms("theirs_ms", 0.5),
    Percentile("theirs ÷ ours, p50", "mean", "times_as_fast", digits=2, better="more"),
    Metric("exact, ours", "share", "ours_exact", better="more"),
    Metric("exact, theirs", "share", "theirs_exact", better="more"),
)


def record_answer(
    name: str, kind: str, context: int, task: Task, prediction: Prediction, score: Row | None = None
) -> Example:
    """Return one answer of the model with what it took.

    Args:
        kind: how it was asked for, such as "cold".
        context: prompt budget, tokens.
        score: further fields.
    """
    stats = prediction.stats
    took: Row = {stage: round(getattr(stats, stage), 3) for stage in STAGES}
    took |= {
        "decode_ms": round(stats.denoise_ms, 3),
        "prompt_tokens": stats.prompt_tokens,
        "recomputed": stats.prompt_tokens - stats.reused_tokens,
        "steps": stats.denoise_steps,
        "tokens": stats.canvas_tokens,
        **draft_fields(stats),
    }
    tags = {"kind": kind, "context": str(context), "language": "python"}
    return Example(name, name, task, tags, prediction=prediction, score=took | (score or {}))


def record_figures(name: str, kind: str, score: Row) -> Example:
    """Return figures that are of no answer."""
    return Example(name, name, tags={"kind": kind}, score=score)


def part_of(row: Row) -> str:
    """Return the kind of a row, with its prompt budget."""
    return f"{row['kind']}, {row['context']} tokens" if "context" in row else str(row["kind"])


def tables(rows: Sequence[Row], seed: int) -> Iterator[Table]:
    """Return figures of the model by kind and prompt budget, of the server, and of the machine."""
    parts: dict[str, list[Row]] = {}
    for each in rows:
        parts.setdefault(part_of(each), []).append(each)
    asked = {name: some for name, some in parts.items() if "total_ms" in some[0]}
    if asked:
        fields = {name for some in asked.values() for each in some for name in each}
        columns = [metric for metric in REQUESTS if metric.field in fields]
        yield rows_of_parts("requests", columns, asked, seed)
    for kind, title, metrics in (
        ("start", "redraft complete, weights on disk", START),
        ("server", "language server in 10,000 lines, without a model", SERVER),
        ("long", "four tokens behind a prompt of 32,000", LONG),
        ("machine", "memory and load", MACHINE),
    ):
        if kind in parts:
            yield overall(title, metrics, parts[kind], seed)
    for field, title, shown in (
        ("pass_ms", "one pass behind 1,000 tokens", PASS),
        ("product_ms", "one product of 64 rows and 16 of 4", PRODUCT),
        ("ours_ms", "beside the other server", BESIDE),
    ):
        if found := {name: some for name, some in parts.items() if field in some[0]}:
            yield rows_of_parts(title, shown, found, seed)
