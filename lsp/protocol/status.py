"""Status line of one client, and progress while a model loads.

Sends ``didChangeStatus {busy, kind, message, revealable}`` when something changed and only then.
Watches the model while it is fetched or loaded, and shows that as work-done progress where the
client can.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Literal
from uuid import uuid4

from redraft.model.errors import RedraftError
from redraft.model.gate.reasons import Abstain
from redraft.model.records import ModelStatus, Predictor, Task

logger = logging.getLogger(__name__)

StatusKind = Literal["Normal", "Warning", "Error", "Inactive"]
Notify = Callable[[str, Any], None]

# Seconds between two looks at a model on its way: often enough to see a bar move.
_LOOK_S = 0.5
_CREATE_S = 5.0  # for the client to make a progress bar
_LOOK_LATER_S = 5.0  # where the engine cannot be reached or the model is not to be had


_GHOST_TEXT, _NEXT_EDIT = ("ghost text", "Ghost text"), ("next edit", "Next edit")


def sentence(task: Task, abstained: Abstain) -> str:
    """Return one sentence that says what is not shown, and why."""
    name, first = _GHOST_TEXT if task == "infill" else _NEXT_EDIT
    reason = abstained.reason.rstrip(".")
    if reason.startswith(("A ", "An ", "It ", "The ", "This ")):  # the engine answers in sentences
        reason = reason[0].lower() + reason[1:]
    if abstained.is_revealable or abstained.kind == "below_threshold":
        return f"{first} hidden: {reason}."
    if abstained.is_lasting and abstained.kind != "next_edits_disabled":
        return f"No suggestions: {reason}."
    return f"No {name}: {reason}."


@dataclass(frozen=True, slots=True)
class _Report:
    """Result of the last question of one task."""

    place: Hashable  # document, its revision and the cursor
    message: str
    kind: StatusKind = "Normal"
    is_shown: bool = False
    is_revealable: bool = False


class StatusLine:
    """Status last sent to the client."""

    def __init__(self, notify: Notify) -> None:
        self._notify = notify
        self._told: dict[str, Any] | None = None
        self._thinking = 0  # questions the model has before it
        self._reports: dict[Task, _Report] = {}

    @property
    def message(self) -> str:
        """What was last told."""
        return str(self._told["message"]) if self._told else ""

    def state(self) -> dict[str, Any]:
        """Return ``{busy, kind, message, revealable}`` as last sent."""
        empty = {"busy": False, "kind": "Normal", "message": "", "revealable": False}
        return dict(self._told or empty)

    def message_of(self, task: Task) -> str:
        """Return what came of the last question of a task, "" where none was asked."""
        return self._reports[task].message if task in self._reports else ""

    def shown(self, task: Task, place: Hashable, unsure: str) -> None:
        """Say that a suggestion is shown; ``unsure``: why it would be hidden without a gesture."""
        _, first = _GHOST_TEXT if task == "infill" else _NEXT_EDIT
        doubt = f", though unsure: {unsure}" if unsure else ""
        self._report(task, _Report(place, f"{first} shown{doubt}.", is_shown=True))

    def abstained(self, task: Task, place: Hashable, abstained: Abstain) -> None:
        """Say why nothing is shown."""
        kind: StatusKind = "Inactive" if abstained.is_lasting else "Normal"
        message, can_reveal = sentence(task, abstained), abstained.is_revealable
        report = _Report(place, message, kind, is_revealable=can_reveal)
        if not abstained.is_failure:
            self._report(task, report)
            return
        self._reports[task] = report
        self.tell(abstained.reason, "Error" if abstained.kind == "failed" else "Warning")

    def ended(self, how: str) -> None:
        """Say ``how`` what was shown ended, such as "hidden; it may come back"."""
        for task, report in self._reports.items():
            if report.is_shown:
                _, first = _GHOST_TEXT if task == "infill" else _NEXT_EDIT
                self._report(task, _Report(report.place, f"{first} {how}."))

    def _report(self, task: Task, report: _Report) -> None:
        """Tell a report, or that of the other task at the same place.

        Editors ask for ghost text and for the next edit at each keystroke. Of the two reports what
        is shown comes first, then what a gesture would show, then ghost text.
        """
        self._reports[task] = report
        here = [each for each in self._reports.items() if each[1].place == report.place]
        _, told = max(
            here, key=lambda each: (each[1].is_shown, each[1].is_revealable, each[0] == "infill")
        )
        self.tell(told.message, told.kind, told.is_revealable)

    def tell(self, message: str, kind: StatusKind = "Normal", revealable: bool = False) -> None:
        busy = self._thinking > 0
        state = {"busy": busy, "kind": kind, "message": message, "revealable": revealable}
        if state != self._told:
            self._told = state
            self._notify("didChangeStatus", state)

    @contextlib.contextmanager
    def thinking(self, silent: bool = False) -> Iterator[None]:
        """Say that the model works; the caller tells what came of it, unless it is cancelled."""
        self._thinking += 1
        is_cancelled = True
        try:
            if not silent:
                self.tell("thinking")
            yield
            is_cancelled = False
        finally:
            self._thinking -= 1
            if is_cancelled:
                self.idle()

    def idle(self) -> None:
        """End a request that was given up; a message told meanwhile stays."""
        if self._thinking:
            return
        told = self._told
        if told is not None and told["busy"] and told["message"] != "thinking":
            self.tell(told["message"], told["kind"], told["revealable"])
        else:
            self.tell("idle")


def describe(status: ModelStatus) -> tuple[str, StatusKind]:
    """One sentence on the model, for people."""
    share = "" if status.progress is None else f" {status.progress:.0%}".replace("%", " %")
    detail = f": {status.message}" if status.message else ""
    sentences: dict[str, tuple[str, StatusKind]] = {
        "absent": (f"no model yet{detail}", "Warning"),
        "downloading": (f"model still downloading{share}", "Warning"),
        "loading": (f"model still loading{share}", "Warning"),
        "failed": (f"the model cannot be used{detail}", "Error"),
    }
    ready: tuple[str, StatusKind] = (f"ready: {status.model} {status.provider}".rstrip(), "Normal")
    return sentences.get(status.state, ready)


class ModelWatch:
    """Looks at the model until it is ready. Started again by whoever finds it is not."""

    def __init__(
        self,
        predictor: Predictor,
        line: StatusLine,
        notify: Notify,
        request: Callable[[str, Any], Awaitable[Any]],
    ) -> None:
        self._predictor = predictor
        self._line = line
        self._notify = notify
        self._request = request
        self._task: asyncio.Task[None] | None = None
        self.waiting: tuple[str, StatusKind] | None = (
            None  # why there is no model, while there is none
        )
        self.context_tokens: int | None = None  # of a prompt, as the model told last
        self.shows_progress = False  # does the client support window/workDoneProgress/create?

    def start(self) -> None:
        """Look until the model is ready; no second time while looking."""
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._watch())

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        progress = _Progress(self._notify, self._request, self.shows_progress)
        try:
            while True:
                status = await self.look()
                self.context_tokens = status.context_tokens or self.context_tokens
                told = describe(status)
                self.waiting = None if status.state == "ready" else told
                self._line.tell(*told)
                if status.state in ("downloading", "loading"):
                    await progress.report(status)
                    await asyncio.sleep(_LOOK_S)
                elif status.state == "ready":
                    return
                else:
                    progress.end(told[0])
                    await asyncio.sleep(_LOOK_LATER_S)
        finally:
            self.waiting = None
            progress.end("done")

    async def look(self) -> ModelStatus:
        """How the model is doing now; what stands in the way of asking is its status too."""
        try:
            return await self._predictor.status()
        except RedraftError as error:
            return ModelStatus("failed", model="", message=str(error))
        except Exception as error:
            logger.exception("the model's status cannot be read")
            return ModelStatus("failed", model="", message=f"{type(error).__name__}: {error}")


class _Progress:
    """One progress bar in the editor, from the first report to the end."""

    def __init__(
        self, notify: Notify, request: Callable[[str, Any], Awaitable[Any]], wanted: bool
    ) -> None:
        self._notify = notify
        self._request = request
        self._wanted = wanted
        self._token = ""

    async def report(self, status: ModelStatus) -> None:
        if not self._wanted:
            return
        value: dict[str, Any] = {"kind": "report", "message": describe(status)[0]}
        if status.progress is not None:
            value["percentage"] = round(100 * status.progress)
        if not self._token:
            token = uuid4().hex
            try:
                creating = self._request("window/workDoneProgress/create", {"token": token})
                await asyncio.wait_for(creating, _CREATE_S)
            except Exception as error:  # it refuses or is silent: the status line has to do
                logger.info("no progress in this editor: %s", error)
                self._wanted = False
                return
            self._token = token
            value |= {"kind": "begin", "title": "Redraft", "cancellable": False}
        self._send(value)

    def end(self, message: str) -> None:
        if self._token:
            self._send({"kind": "end", "message": message})
            self._token = ""

    def _send(self, value: dict[str, Any]) -> None:
        self._notify("$/progress", {"token": self._token, "value": value})
