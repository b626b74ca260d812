"""Fifty small requests put to a model that holds conversations: ``redraft eval chat``.

Each is asked alone, by the weights' own template, and its answer is looked at leniently: it must
hold certain texts, match a pattern, or be Python of which something is true. Tells whether weights
can still converse and stop by themselves, not how good they are at it.
"""

from __future__ import annotations

import re
import time
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files

from redraft.model.decode.completion import Plan
from redraft.model.predict import Model, predict
from redraft.model.records import Conversation, EditRequest, Message

from ..figures.runs import Episode
from ..figures.tables import Metric, Table, overall
from ..sandbox.sandbox import ProgramResult, run_program

SYSTEM = Message("system", "You are a helpful assistant.")
METRICS = (
    Metric("done", "share", "done", better="more"),
    Metric("ended by itself", "share", "ended", better="more"),
    Metric("tokens", "mean", "tokens"),
    Metric("tokens/step", "ratio", "tokens", by="steps", digits=2, better="more"),
    Metric("total ms", "mean", "total_ms", digits=0, better="less"),
)
_FENCED = re.compile(r"```(?:python|py)?\n(.*?)(?:```|$)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChatTask:
    """A request, and what its answer must hold."""

    id: str
    question: str
    all: tuple[str, ...] = ()  # texts, whatever their case
    any: tuple[str, ...] = ()
    pattern: str = ""
    holds: str = ""  # true after the Python in the answer was run
    language: str = "en"  # as every sample of a run says


def tasks() -> list[ChatTask]:
    """All that come with Redraft."""
    file = files("redraft.evals.benchmarks") / "conversations.toml"
    read = tomllib.loads(file.read_text(encoding="utf-8"))["task"]
    return [
        ChatTask(
            id=f"chat {number}",
            question=each["question"],
            all=tuple(each.get("all", ())),
            any=tuple(each.get("any", ())),
            pattern=each.get("pattern", ""),
            holds=each.get("holds", ""),
        )
        for number, each in enumerate(read, 1)
    ]


def ask(model: Model, task: ChatTask, plan: Plan, max_tokens: int) -> Episode:
    """One task, put and judged.

    Raises:
        InvalidRequest: the weights have no template for conversations.
    """
    conversation = Conversation((SYSTEM, Message("user", task.question)))
    request = EditRequest(
        task="chat", path="", text="", cursor=0, max_tokens=max_tokens, conversation=conversation
    )
    said = predict(model, request, time.perf_counter, plan=plan)
    text = said.candidates[0].text if said.candidates else ""
    return {
        "id": task.id,
        "group": task.id,
        "language": task.language,
        "question": task.question,
        "answer": text,
        "done": is_done(task, text, run_program),
        "ended": bool(said.candidates) and said.candidates[0].finish == "end",
        "tokens": said.stats.canvas_tokens,
        "steps": said.stats.denoise_steps,
        "total_ms": said.stats.total_ms,
    }


def is_done(task: ChatTask, text: str, execute: Callable[[str], ProgramResult]) -> bool:
    """Whether ``text`` is an answer.

    Args:
        execute: runs a program and says how it ended.
    """
    low = text.lower()
    if any(each.lower() not in low for each in task.all):
        return False
    if task.any and not any(each.lower() in low for each in task.any):
        return False
    if task.pattern and not re.search(task.pattern, text):
        return False
    if not task.holds:
        return True
    fenced = _FENCED.search(text)
    program = fenced[1] if fenced else text
    return execute(f"{program}\nassert {task.holds}\n").passed


def tables(episodes: Sequence[Episode], seed: int) -> Iterator[Table]:
    yield overall("conversations", METRICS, episodes, seed)
