"""The scripted model: it answers what a test wrote and keeps what it was asked."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from redraft.model.prompts.answer_edits import replace_lines
from redraft.model.records import (
    Candidate,
    CanvasState,
    Confidence,
    EditRequest,
    Finish,
    ModelStatus,
    Prediction,
    Stats,
    StepCallback,
)
from redraft.model.wire import check_request

READY = ModelStatus(
    "ready",
    "fake-1m int8",
    "CPU",
    context_tokens=4096,
    abilities=("infill", "next_edit", "grammar"),
    prompt_format="redraft-3",
)
STATS = Stats(
    prompt_tokens=40,
    reused_tokens=30,
    computed_tokens=10,
    canvas_tokens=5,
    denoise_steps=4,
    prefill_ms=12.0,
    denoise_ms=20.0,
    total_ms=33.0,
)
#: The text of a predictor without a script, resolved one piece a step from the right.
WRITTEN = ("return", " a", " +", " b")

Item = TypeVar("Item")
State = tuple[str | None, ...] | CanvasState
Answer = (
    str
    | tuple[str, ...]
    | Prediction
    | BaseException
    | Callable[[EditRequest], "Answer | Awaitable[Answer]"]
)
#: 1-based first and last line within the region (``last`` = ``first`` - 1 inserts), and new lines.
LineEdit = tuple[int, int, list[str]]


def predicted(*candidates: Candidate, reason: str = "nothing to add") -> Prediction:
    return Prediction("p-1", READY.model, candidates, "" if candidates else reason, STATS)


def infill(
    request: EditRequest, *texts: str, confidence: float = 0.9, finish: Finish = "end"
) -> Prediction:
    """Return a prediction of ``texts`` at the cursor, best first."""
    at, sure = request.cursor, Confidence(confidence, confidence, confidence)
    made = (Candidate(at, at, text, sure, len(text), 2, finish) for text in texts if text)
    return predicted(*made)


def rewrite(request: EditRequest, old: str, new: str, confidence: float = 0.9) -> Prediction:
    """Return a prediction that replaces the first ``old`` of the text by ``new``.

    It has no candidate if there is no ``old`` in the region.
    """
    at = request.text.find(old)
    line = request.text.count("\n", 0, max(at, 0))
    inside = request.region is None or request.region[0] <= line < request.region[1]
    if at < 0 or not inside or old == new:
        return predicted(reason="The model would change nothing here.")
    sure = Confidence(confidence, confidence, confidence)
    return predicted(Candidate(at, at + len(old), new, sure, len(new), 2, "end"))


def rewrite_lines(
    request: EditRequest, *edits: LineEdit, confidence: float = 0.9, finish: Finish = "end"
) -> Prediction:
    """Return a prediction of a next edit with a candidate for each of ``edits``."""
    assert request.region is not None
    top, sure, made = request.region[0], Confidence(confidence, 0.5, 0.8), []
    for first, last, lines in edits:
        body = "".join(f"{line}\n" for line in lines)
        span = replace_lines(request.text, top + first - 1, top + last, body)
        made.append(Candidate(*span, sure, 5, 3, finish))
    return predicted(*made, reason="nothing to change")


def change(old: str, new: str) -> Callable[[EditRequest], LineEdit]:
    """Return the line of the region with ``old``, and the same line with ``new``."""

    def edit(request: EditRequest) -> LineEdit:
        assert request.region is not None
        first, last = request.region
        lines = request.text.split("\n")[first:last]
        at = next(i for i, line in enumerate(lines) if old in line)
        return at + 1, at + 1, [lines[at].replace(old, new)]

    return edit


@dataclass
class ScriptedPredictor:
    """Gives scripted answers, the last one again and again.

    An answer is a text; pieces of one, that are seen to resolve from the right, as often as
    candidates are wanted; a whole prediction; an error to raise; or a function of the request.
    Without a script infill is answered with :data:`WRITTEN`, a next edit with none.
    """

    answers: list[Answer] = field(default_factory=list)
    delay_s: float = 0.0  # before each answer
    states: Sequence[State] = ()  # what is seen before the answer is made; none: its pieces
    hold: bool = False  # wait for ever once the states were seen
    statuses: list[ModelStatus] = field(default_factory=lambda: [READY])  # the last one repeats
    requests: list[EditRequest] = field(default_factory=list)
    cancelled: list[EditRequest] = field(default_factory=list)
    running: int = 0
    closed: bool = False

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        check_request(request)  # as the engine does
        self.requests.append(request)
        self.running += 1
        try:
            await asyncio.sleep(self.delay_s)
            await _see(self.states, on_step)
            prediction, states = await _made(request, _next(self.answers, _unscripted))
            if not self.states:
                await _see(states, on_step)
            if self.hold:
                await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.append(request)
            raise
        finally:
            self.running -= 1
        return prediction

    async def status(self) -> ModelStatus:
        return _next(self.statuses, READY)

    async def close(self) -> None:
        self.closed = True


def editing(
    edit: LineEdit | Callable[[EditRequest], LineEdit] | None = None, **how: Any
) -> ScriptedPredictor:
    """Return a model that answers next edits with ``edit`` (None: nothing) and infills by default.

    ``how`` goes to :func:`rewrite_lines`.
    """

    def answer(request: EditRequest) -> Answer:
        if request.task == "infill":
            return WRITTEN
        made = edit(request) if callable(edit) else edit
        return rewrite_lines(request, *([made] if made else ()), **how)

    return ScriptedPredictor([answer])


#: A model that holds conversations.
CHATTY = replace(
    READY, chat_model="fake-1m", longest_tokens=8192, chat_abilities=("grammar", "decide", "tools")
)


def chatting(*texts: str, finish: Finish = "end") -> ScriptedPredictor:
    """Return a model that answers with ``texts`` in turn, word by word.

    It scores labels by their lengths, the shortest first.
    """

    def answer(text: str) -> Callable[[EditRequest], Prediction]:
        def say(request: EditRequest) -> Prediction:
            assert request.conversation is not None, "somebody asked for an edit"
            if labels := request.conversation.labels:
                return predicted(*(said(label, -float(len(label))) for label in labels))
            return predicted(*[said(text, 0.0, finish)] * request.candidates)

        return say

    words = [f"{word} " for word in texts[0].split(" ")]
    words[-1] = words[-1][:-1]
    states = [
        CanvasState(count, (*words[:count], None), count) for count in range(1, len(words) + 1)
    ]
    return ScriptedPredictor([*map(answer, texts)], states=states, statuses=[CHATTY])


def said(text: str, total: float, finish: Finish = "end") -> Candidate:
    sure = Confidence(mean=0.9, minimum=0.9, first=0.9, total=total)
    return Candidate(0, 0, text, sure, tokens=len(text.split()) + 1, steps=2, finish=finish)


async def _see(states: Sequence[State], on_step: StepCallback | None) -> None:
    def tell() -> None:
        for step, texts in enumerate(states, 1):
            if on_step is not None:
                seen = texts if isinstance(texts, CanvasState) else CanvasState(step, texts)
                on_step(seen)

    await asyncio.to_thread(tell)  # from another thread, as the engine does


async def _made(request: EditRequest, answer: Answer) -> tuple[Prediction, list[State]]:
    """Return the prediction and its intermediate states."""
    if isinstance(answer, BaseException):
        raise answer
    if isinstance(answer, str):
        return infill(request, answer), [(answer,)] if answer else []
    if isinstance(answer, Prediction):
        return replace(answer), [(each.text,) for each in answer.candidates[:1]]
    if isinstance(answer, tuple):
        shown = range(len(answer) - 1, 0, -1)
        states: list[State] = [(*[None] * count, *answer[count:]) for count in shown]
        made = infill(request, *["".join(answer)] * request.candidates)
        counted = (replace(each, tokens=len(answer) + 1) for each in made.candidates)
        return predicted(*counted), states
    found = answer(request)
    return await _made(request, await found if inspect.isawaitable(found) else found)


def _unscripted(request: EditRequest) -> Answer:
    return WRITTEN if request.task == "infill" else predicted(reason="nothing to change")


def _next(scripted: list[Item], otherwise: Item) -> Item:
    if not scripted:
        return otherwise
    return scripted.pop(0) if len(scripted) > 1 else scripted[0]
