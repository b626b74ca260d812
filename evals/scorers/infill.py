"""Gaps: what a client that inserts would get, held against what really stood there.

Gaps with tests are run in the sandbox (pass@1). All are compared with the true text, and parsed in
its place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from redraft.model.gate.decide import decide_insertion
from redraft.model.gate.reasons import Abstain
from redraft.model.records import EditRequest

from ..example import Decision, Example, Row
from ..metrics import errors_added, exact, first_line_exact, length_class
from ..sandbox.sandbox import Execute, run_program
from ..tables import Metric, Table, overall, table_by_label
from .costs import costs, draft_columns, draft_fields

METRICS = (
    Metric("pass@1", "share", "passed", better="more"),
    Metric("exact", "share", "exact", better="more"),
    Metric("first line exact", "share", "first_line", better="more"),
    Metric("parses as well as the truth", "share", "parse_ok", better="more"),
    Metric("answered", "share", "shown"),
    Metric("ended by itself, of those", "share", "ended"),
    Metric("tokens a pass", "ratio", "tokens", by="steps", digits=2, better="more"),
    Metric("passes", "mean", "steps", better="less"),
    Metric("decode ms", "mean", "decode_ms", digits=0, better="less"),
    Metric("total ms", "mean", "total_ms", digits=0, better="less"),
)
#: Fields shown for each part.
BY_PART = ("passed", "exact", "first_line", "parse_ok", "tokens")
PARTS: tuple[tuple[str, Callable[[Row], str]], ...] = (
    ("by kind", lambda row: str(row["kind"])),
    ("by language", lambda row: str(row["language"])),
    ("by length of the true answer", lambda row: length_class(row.get("answer_tokens"))),
)


def decide(example: Example) -> Decision:
    """Return the best candidate as HTTP clients get it, or why they get none.

    A gap of whole lines takes its last line end with it, which no user of an editor deletes: an
    answer that lacks it is decided on as if it were there.
    """
    assert example.prediction is not None
    if not example.prediction.candidates:
        return Decision()
    moment, candidate = example.moment, example.prediction.candidates[0]
    is_whole = example.middle.endswith("\n") and not candidate.text.endswith("\n")
    lacking = "\n" if is_whole else ""
    request = EditRequest("infill", moment.path, moment.text, moment.cursor, moment.language)
    found = decide_insertion(replace(candidate, text=candidate.text + lacking), request)
    if isinstance(found, Abstain):
        return Decision((found.kind,))
    return Decision(("",), found.edit.new.removesuffix(lacking))


def score(example: Example, execute: Execute = run_program) -> Row:
    """Return how near an answer comes to the truth.

    Args:
        execute: runs a program and says how it ended.
    """
    assert example.prediction is not None and example.decision is not None
    moment, middle, text = example.moment, example.middle, example.decision.text
    found = moment.prefix + text + moment.suffix
    ending = execute(found + example.truth.test) if example.truth.test else None
    shown = bool(example.prediction.candidates)
    added = errors_added(example.truth.texts[0], found, moment.language) if shown else None
    return {
        "expected": middle,
        "completion": text,
        "passed": ending.passed if ending else None,
        "outcome": ending.outcome if ending else None,
        "detail": ending.detail if ending else None,
        "exact": exact(text, middle),
        "first_line": first_line_exact(text, middle),
        "parse_ok": None if added is None else added <= 0,  # None: there is no grammar
        "shown": shown,
        **costs(example.prediction, "infill"),
        **draft_fields(example.prediction.stats),
    }


def tables(rows: Sequence[Row], seed: int) -> Iterator[Table]:
    """Return figures overall, by kind of gap, by language and by length of the true answer."""
    tested = any(each["passed"] is not None for each in rows)
    metrics = [metric for metric in METRICS if tested or metric.field != "passed"]
    metrics += draft_columns(rows)
    yield overall("infill", metrics, rows, seed)
    quality = [metric for metric in metrics if metric.field in BY_PART]
    for title, label in PARTS:
        if len({label(each) for each in rows}) > 1:
            yield table_by_label(title, quality, rows, label, seed)
