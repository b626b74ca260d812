"""Status line of one client, and progress while a model loads."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal
from uuid import uuid4

from lsprotocol import types
from pygls.progress import Progress
from redraft.model.errors import RedraftError
from redraft.model.gate.reasons import Abstain
from redraft.model.records import ModelStatus, Predictor, Task

from ..documents.positions import Position
from ..policy.machine_load import HasProcess
from ..workspace import Workspace

logger = logging.getLogger(__name__)

StatusKind = Literal["Normal", "Warning", "Error", "Inactive"]
Place = tuple[str, int, Position]  # URI of a document, its revision, and the cursor

_LOOK_S = 0.5  # between two looks at a model on its way: often enough to see a bar move
_CREATE_S = 5.0  # for the client to make a progress bar
_PACE_S, _LEAST_PACE_S = 30.0, 3.0  # of a download: how long it is looked at, and at least
_LOOK_LATER_S = 5.0  # where the engine cannot be reached or the model is not to be had

_NAMES: dict[Task, tuple[str, str]] = {
    "infill": ("ghost text", "Ghost text"),
    "next_edit": ("next edit", "Next edit"),
}


def sentence(task: Task, abstained: Abstain) -> str:
    """Return one sentence that says what is not shown, and why."""
    name, first = _NAMES[task]
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
    """Result of the last request of one task."""

    place: Place
    message: str
    kind: StatusKind = "Normal"
    is_shown: bool = False
    is_revealable: bool = False


class StatusLine:
    """Status line of a client, sent as ``didChangeStatus`` when it changes.

    Args:
        notify: sends the client a notification: method, params.
    """

    def __init__(self, notify: Callable[[str, Any], None]) -> None:
        self._notify = notify
        self._sent: dict[str, Any] = {}
        self._thinking = 0  # requests that the model works on
        self._reports: dict[Task, _Report] = {}
        self.problem = ""  # of the workspace, a sentence that follows each report

    def state(self) -> dict[str, Any]:
        """Return ``{busy, kind, message, revealable}`` as last sent."""
        return {"busy": False, "kind": "Normal", "message": "", "revealable": False, **self._sent}

    def message_of(self, task: Task) -> str:
        """Return the result of the last request of a task, "" where there was none."""
        return self._reports[task].message if task in self._reports else ""

    def reasons(self, uri: str, revision: int) -> list[str]:
        """Return why the last requests about a text showed nothing."""
        now = (each for each in self._reports.values() if each.place[:2] == (uri, revision))
        return list(dict.fromkeys(each.message for each in now if not each.is_shown))

    def show(self, task: Task, place: Place, unsure: str) -> None:
        """Say that a suggestion is shown; ``unsure``: why it would be hidden without a gesture."""
        doubt = f", though unsure: {unsure}" if unsure else ""
        self._report(task, _Report(place, f"{_NAMES[task][1]} shown{doubt}.", is_shown=True))

    def abstain(self, task: Task, place: Place, abstained: Abstain) -> None:
        """Say why nothing is shown."""
        kind: StatusKind = "Inactive" if abstained.is_lasting else "Normal"
        message, can_reveal = sentence(task, abstained), abstained.is_revealable
        report = _Report(place, message, kind, is_revealable=can_reveal)
        if not abstained.is_failure:
            self._report(task, report)
            return
        self._reports[task] = report
        self.tell(abstained.reason, "Error" if abstained.kind == "failed" else "Warning")

    def end(self, task: Task | None, how: str) -> None:
        """Say ``how`` the shown suggestion of a task ended, such as "hidden; it may come back"."""
        if task is not None and (report := self._reports.get(task)) and report.is_shown:
            self._report(task, _Report(report.place, f"{_NAMES[task][1]} {how}."))

    def _report(self, task: Task, report: _Report) -> None:
        """Send a report, or that of the other task at the same place.

        What is shown comes first, then what a gesture would show, then ghost text.
        """
        self._reports[task] = report
        here = [each for each in self._reports.items() if each[1].place == report.place]
        _, first = max(
            here, key=lambda each: (each[1].is_shown, each[1].is_revealable, each[0] == "infill")
        )
        message = f"{first.message} {self.problem}".rstrip()
        self.tell(message, "Warning" if self.problem else first.kind, first.is_revealable)

    def tell(
        self,
        message: str,
        kind: StatusKind = "Normal",
        revealable: bool = False,
        larger: dict[str, str] | None = None,
    ) -> None:
        """Send a status, unless it was sent last; ``larger``: see ``find_larger_model``."""
        busy = self._thinking > 0
        state: dict[str, Any] = {"busy": busy, "kind": kind, "message": message}
        state["revealable"] = revealable
        if larger:
            state["larger"] = larger
        if state != self._sent:
            self._sent = state
            self._notify("didChangeStatus", state)

    @contextlib.contextmanager
    def while_thinking(self, is_silent: bool = False) -> Iterator[None]:
        """Say that the model works; the caller says what follows, unless it is cancelled."""
        self._thinking += 1
        try:
            if not is_silent:
                self.tell("thinking")
            yield
        except BaseException:
            self._thinking -= 1
            self.idle()
            raise
        self._thinking -= 1

    def idle(self) -> None:
        """End a request that was given up; a message sent meanwhile stays."""
        if self._thinking:
            return
        state = self.state()
        if state["busy"] and state["message"] != "thinking":
            self.tell(state["message"], state["kind"], state["revealable"])
        else:
            self.tell("idle")


class TimeLeft:
    """Estimate of the time that a download or a load still takes, from its last half minute."""

    def __init__(self) -> None:
        self._seen = deque[tuple[float, float]]()  # seconds, and the share done by then

    def text(self, now_s: float, share: float | None) -> str:
        """Return the time left, such as "40 s left"; "" while it cannot be estimated.

        Args:
            share: done now, 0 to 1; less than before: of the next state; None: unknown.
        """
        if share is None or (self._seen and share < self._seen[-1][1]):
            self._seen.clear()
        if share is None:
            return ""
        self._seen.append((now_s, share))
        while len(self._seen) > 2 and self._seen[0][0] < now_s - _PACE_S:
            self._seen.popleft()
        began_s, done = self._seen[0]
        if now_s - began_s < _LEAST_PACE_S or share == done:
            return ""
        left_s = (1 - share) * (now_s - began_s) / (share - done)
        if left_s > 3600:
            return "more than an hour left"
        return f"{ceil(left_s)} s left" if left_s < 90 else f"{left_s / 60:.0f} min left"


def describe(status: ModelStatus, left: str = "") -> tuple[str, StatusKind]:
    """Return one sentence on the model, for people; ``left``: the time that its load takes."""
    share = "" if status.progress is None else f" {status.progress:.0%}".replace("%", " %")
    done = status.message.removeprefix("download ") if status.state == "downloading" else ""
    share += f" ({', '.join(filter(None, (done, left)))})" if done or left else ""
    detail = f": {status.message}" if status.message else ""
    sentences: dict[str, tuple[str, StatusKind]] = {
        "absent": (f"no model yet{detail}", "Warning"),
        "downloading": (f"model still downloading{share}", "Warning"),
        "loading": (f"model still loading{share}", "Warning"),
        "failed": (f"the model cannot be used{detail}", "Error"),
    }
    ready = f"ready: {status.model} {status.provider}".rstrip()
    if status.about_larger and not status.larger:  # why a larger model that is there does not run
        ready += f"; {status.about_larger}"
    sentences["unloaded"] = f"{ready}; {status.message}", "Normal"
    return sentences.get(status.state, (ready, "Normal"))


class ModelWatch:
    """Watch of the model until it is ready; started again by a request that finds it is not."""

    def __init__(
        self, predictor: Predictor, workspace: Workspace, line: StatusLine, progress: Progress
    ) -> None:
        self._predictor, self._workspace = predictor, workspace
        self._line, self._progress = line, progress
        self._task: asyncio.Task[None] | None = None
        self.waiting = ""  # why there is no model; "" once there is one
        self.shows_progress = False  # the client supports window/workDoneProgress/create
        self._has_offered = False  # a larger model

    def start(self, only_if_loading: bool = False) -> None:
        """Watch until the model is ready, unless that is done already.

        Args:
            only_if_loading: say nothing of a model that is ready.
        """
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._watch(only_if_loading))

    async def stop(self) -> None:
        """End the watch."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self, only_if_loading: bool) -> None:
        bar, left = "", TimeLeft()  # token of the progress bar
        try:
            while True:
                status = await self.look()
                if status.context_tokens:
                    self._workspace.context_tokens = status.context_tokens
                self._workspace.reads_ahead = status.reads_ahead
                if only_if_loading and status.can_answer:
                    return
                only_if_loading = False
                now_s = asyncio.get_running_loop().time()
                message, kind = describe(status, left.text(now_s, status.progress))
                self.waiting = "" if status.can_answer else message
                if status.can_answer:
                    self._tell_ready(status, message)
                    return
                self._line.tell(message, kind)
                is_coming = status.state in ("downloading", "loading")
                if is_coming and self.shows_progress:
                    bar = await self._show(bar, message, status.progress)
                await asyncio.sleep(_LOOK_S if is_coming else _LOOK_LATER_S)
        finally:
            self.waiting = ""
            if bar:
                self._progress.end(bar, types.WorkDoneProgressEnd(message="done"))

    def _tell_ready(self, status: ModelStatus, message: str) -> None:
        """Say that the model is ready, and once what a larger one would bring and cost."""
        larger = None if self._has_offered else self.find_larger_model(status)
        if larger:
            self._has_offered = True
            message += f"; {larger['offer']} {larger['answers']}"
        self._line.tell(message, larger=larger)

    def find_larger_model(self, status: ModelStatus) -> dict[str, str] | None:
        """Return a larger model to offer: ``{name, offer, answers}``; None: none, or declined.

        A model of another machine's server cannot be downloaded from here.
        """
        if not status.larger or not isinstance(self._predictor, HasProcess):
            return None
        from redraft.model.choice import explain_answers, is_declined  # they take 50 ms

        if is_declined(status.larger):
            return None
        answers = explain_answers(status.larger)
        return {"name": status.larger, "offer": status.about_larger, "answers": answers}

    async def _show(self, bar: str, message: str, share: float | None) -> str:
        """Show progress in the bar of a token, or in a new one; return the token, "" for none."""
        percentage = None if share is None else round(100 * share)
        if bar:
            report = types.WorkDoneProgressReport(message=message, percentage=percentage)
            self._progress.report(bar, report)
            return bar
        bar = uuid4().hex
        try:
            await asyncio.wait_for(self._progress.create_async(bar), _CREATE_S)
        except Exception as error:  # it refuses or is silent: the status line has to do
            logger.info("no progress in this editor: %s", error)
            self.shows_progress = False
            return ""
        begin = types.WorkDoneProgressBegin(
            "Redraft", cancellable=False, message=message, percentage=percentage
        )
        self._progress.begin(bar, begin)
        return bar

    async def look(self) -> ModelStatus:
        """Return the model's status; an error that prevents asking is a status too."""
        try:
            return await self._predictor.status()
        except RedraftError as error:
            return ModelStatus("failed", model="", message=str(error))
        except Exception as error:
            logger.exception("the model's status cannot be read")
            return ModelStatus("failed", model="", message=f"{type(error).__name__}: {error}")
