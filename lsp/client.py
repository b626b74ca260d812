"""One client: what is known of it, and what runs for it.

Handlers take a :class:`Client`; it reaches its editor through two functions alone, so that a replay
can be one without a connection. Knows nothing of messages or of the library that carries them.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from lsprotocol import types
from redraft.model.records import Prediction, Predictor, Task
from redraft.model.release import RELEASE

from .context.client_context import ClientContext
from .context.workspace import saved_text
from .documents import Documents
from .outcomes import Settled
from .paths import shown_path
from .protocol.status import ModelWatch, Notify, StatusLine
from .recording.folder import Recordings
from .recording.own_gate import Learning
from .recording.recorder import Recorder, Workplace
from .schedule import Lane
from .session.decisions import Ask
from .session.door import Session
from .settings import LspSettings, updated

logger = logging.getLogger(__name__)

NAME = "redraft"

_EARLY_S = 30.0  # after the start: what differs from its file was typed while nobody listened
_STOP_S = 1.0  # for the index to end; a file takes it a few milliseconds, git at worst longer


@dataclass(frozen=True, slots=True)
class Prefetch:
    """A question asked before anyone needs the answer."""

    question: Ask
    shown: str  # id of the edit whose acceptance it is for
    task: asyncio.Task[Prediction]

    def answers(self, question: Ask) -> bool:
        """Is this, still on its way, the answer to ``question`` too?"""
        mine = self.question
        same = (mine.query.uri, mine.query.text) == (question.query.uri, question.query.text)
        if mine.origin is not None or question.origin is not None:
            same = same and mine.request.region == question.request.region
        return same and question.request.task == "next_edit" and not self.task.done()


class Client:
    """Documents, session, recorder and model of one client, and the questions on their way.

    Args:
        notify: sends it a notification: method, params.
        ask: sends it a request, and gives its answer.
        background: index the workspace in a thread; a replay, which turns its own clock, does not.
        recordings: where to record while the user has that turned on; None: never.
    """

    def __init__(
        self,
        predictor: Predictor,
        settings: LspSettings,
        clock: Callable[[], float],
        notify: Notify,
        ask: Callable[[str, Any], Awaitable[Any]],
        background: bool = True,
        recordings: Recordings | None = None,
    ) -> None:
        self.predictor = predictor
        self.clock = clock
        self.notify = notify
        self.ask = ask
        self.documents = Documents()
        self.folders: list[str] = []
        self._reads = background
        self._since_s = clock()
        self.line = StatusLine(notify)
        self.watch = ModelWatch(predictor, self.line, notify, ask)
        self._decide(settings, recordings)
        self.prefetches: dict[str, Prefetch] = {}  # by document
        self.pulls_settings = False  # does the client answer workspace/configuration?
        self.registers_settings = False  # and tell of changes only if asked to?
        self.shows_disabled = False  # code actions that cannot be done, with the reason
        self.versions_edits = False  # does it check the version of a document it is to edit?
        self.waking: asyncio.TimerHandle | None = None  # the end of a pause the user asked for
        self._lanes: dict[tuple[str, Task], Lane] = {}
        self._requests: set[asyncio.Future[Any]] = set()  # to the client, answers of no interest

    def _decide(self, settings: LspSettings, recordings: Recordings | None) -> None:
        """The session, and what it goes by: context, gate, and a record of what became of it."""
        self.context = ClientContext(
            self.documents.all,
            lambda: self.folders,
            lambda: self.session.settings,
            self.clock,
            edits=lambda: self.session.history.edits(),
            budget=lambda: self.watch.context_tokens,
            background=self._reads,
        )
        self.learning = Learning(
            recordings,
            lambda: self.session.settings.learn_gate,
            self.clock,
            eagerness=lambda: self.session.settings.eagerness,
        )
        self.session = Session(
            settings,
            self.clock,
            self._settled,
            self.context,
            gate=self.learning.gate,
            explores=lambda: self._explores(recordings),
            seed=secrets.randbits(32),
        )
        workplace = Workplace(
            self.documents.all,
            lambda document: shown_path(document.uri, self.folders, document.language),
            lambda: next(iter(self.folders), ""),
            lambda: self.session.settings,
            self.session.drawn,
            self.learning.gate,
            self.session.pace,
        )
        self.recorder = Recorder(recordings, workplace, made_by=f"redraft {RELEASE}")

    def _settled(self, settled: Settled) -> None:
        logger.debug("suggestion %s was %s", settled.suggestion.id, settled.outcome)
        self.recorder.settled(settled)
        self.learning.settled(settled.outcome)

    def _explores(self, recordings: Recordings | None) -> bool:
        """What is not recorded teaches nothing."""
        wanted = self.session.settings.explore_gate
        return wanted and recordings is not None and recordings.is_on()

    def saved_text(self, uri: str) -> str | None:
        """What the file of a document holds; None where it does not matter: once the client has
        been there for a while, its user's edits have all been seen."""
        early = self.clock() - self._since_s < _EARLY_S
        return saved_text(uri) if early and self._reads else None

    def lane(self, uri: str, task: Task) -> Lane:
        return self._lanes.setdefault((uri, task), Lane())

    def stop_prefetch(self, uri: str) -> frozenset[asyncio.Task[Prediction]]:
        """Give up what is computed ahead of time for a document; the task may take a moment."""
        prefetch = self.prefetches.pop(uri, None)
        if prefetch is None:
            return frozenset()
        prefetch.task.cancel()
        return frozenset({prefetch.task})

    def ask_later(self, method: str, params: Any) -> None:
        """Ask the client for something without waiting for its answer."""
        sending = asyncio.ensure_future(self.ask(method, params))
        self._requests.add(sending)
        sending.add_done_callback(self._answered)

    def _answered(self, sent: asyncio.Future[Any]) -> None:
        self._requests.discard(sent)
        if not sent.cancelled() and sent.exception() is not None:
            logger.info("the client refused: %s", sent.exception())

    def lose_track(self, uri: str, reason: str) -> None:
        """A change of this document was lost: suggest nothing until its whole text comes again."""
        document = self.documents.get(uri)
        if document is not None:
            document.lose_track(f"{reason}; close and reopen the file")
            self.session.lost(uri)

    def close_document(self, uri: str) -> None:
        self.documents.close(uri)
        self.session.closed(uri)
        self.recorder.closed(uri)
        self.context.closed(uri)
        self.stop_prefetch(uri)
        for key in [key for key in self._lanes if key[0] == uri]:
            self._lanes.pop(key).stop()

    def configure(self, sent: Any) -> None:
        """Take settings over and tell the log, never a popup, what is wrong with them."""
        secret = self.session.settings.secret_globs
        self.session.settings, problems = updated(self.session.settings, sent)
        if self.session.settings.secret_globs != secret:
            self.context.exclusions_changed()
            self.recorder.exclusions_changed()
        for problem in problems:
            message = {"type": types.MessageType.Warning.value, "message": f"Redraft: {problem}"}
            self.notify("window/logMessage", message)

    async def leave(self) -> None:
        """The connection is over: stop everything that was done for it."""
        self.context.stop()
        if self.waking is not None:
            self.waking.cancel()
        for uri in self.documents.uris():
            self.close_document(uri)
        self.recorder.close()
        for sending in self._requests:
            sending.cancel()
        await self.watch.stop()
        await asyncio.to_thread(self.context.stop, _STOP_S)
