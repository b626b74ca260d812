"""Fifty small questions to a model that holds conversations, and what their answers must contain.

The checks are lenient: certain texts, a pattern, or Python of which something is true. They tell
whether weights can still converse and stop by themselves, not how good they are at it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from redraft.model.records import Conversation, EditRequest, Message

from ..example import Example, Moment, Row
from ..sandbox.sandbox import Execute, run_program
from ..spec import RunSpec
from ..tables import Metric, Table, overall

SYSTEM = Message("system", "You are a helpful assistant.")
METRICS = (
    Metric("done", "share", "done", better="more"),
    Metric("ended by itself", "share", "ended", better="more"),
    Metric("tokens", "mean", "tokens"),
    Metric("tokens a pass", "ratio", "tokens", by="steps", digits=2, better="more"),
    Metric("total ms", "mean", "total_ms", digits=0, better="less"),
)
_FENCED = re.compile(r"```(?:python|py)?\n(.*?)(?:```|$)", re.DOTALL)

#: A question and what its answer must hold, as ``conversations.toml`` has it: ``all`` and ``any``
#: texts, whatever their case; a ``pattern``; what ``holds`` after the answer's Python was run.
ChatTask = Mapping[str, Any]


@cache
def tasks() -> dict[str, ChatTask]:
    """Return all questions, by id."""
    file = files("redraft.evals.sources") / "conversations.toml"
    read = tomllib.loads(file.read_text(encoding="utf-8"))["task"]
    return {f"chat {number}": each for number, each in enumerate(read, 1)}


def examples() -> list[Example]:
    """Return all questions as examples."""
    return [
        Example(name, name, "chat", {"language": "en"}, Moment(text=each["question"]))
        for name, each in tasks().items()
    ]


def request_for(example: Example, spec: RunSpec) -> EditRequest:
    """Return the conversation that asks a question alone."""
    conversation = Conversation((SYSTEM, Message("user", example.moment.text)))
    return EditRequest(
        "chat",
        path="",
        text="",
        cursor=0,
        max_tokens=spec.max_tokens or 1,
        quality=spec.quality,
        conversation=conversation,
    )


def score(example: Example, execute: Execute = run_program) -> Row:
    """Return whether an answer is right, and what it took."""
    assert example.prediction is not None
    candidates, stats = example.prediction.candidates, example.prediction.stats
    text = candidates[0].text if candidates else ""
    return {
        "done": is_done(tasks()[example.id], text, execute),
        "ended": bool(candidates) and candidates[0].finish == "end",
        "tokens": stats.canvas_tokens,
        "steps": stats.denoise_steps,
        "total_ms": stats.total_ms,
    }


def is_done(task: ChatTask, text: str, execute: Execute) -> bool:
    """Return whether ``text`` is an answer.

    Args:
        execute: runs a program and says how it ended.
    """
    low = text.lower()
    if any(each.lower() not in low for each in task.get("all", ())):
        return False
    some = task.get("any", ())
    if some and not any(each.lower() in low for each in some):
        return False
    if not re.search(task.get("pattern", ""), text):
        return False
    if "holds" not in task:
        return True
    fenced = _FENCED.search(text)
    program = fenced[1] if fenced else text
    return execute(f"{program}\nassert {task['holds']}\n").passed


def tables(rows: Sequence[Row], seed: int) -> Iterator[Table]:
    """Return the figures overall."""
    yield overall("conversations", METRICS, rows, seed)
