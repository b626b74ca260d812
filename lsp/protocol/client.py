"""The connected client: its session, its status line and its capabilities."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from lsprotocol import types
from redraft.model.records import Predictor

from ..refusals import snoozing
from ..session import Session
from ..settings import updated
from .status import ModelWatch, Notify, StatusLine

logger = logging.getLogger(__name__)

NAME = "redraft"


class Client:
    """A connected client, as the message handlers use it.

    Args:
        notify: sends it a notification: method, params.
        ask: sends it a request, and returns its answer.
    """

    def __init__(
        self,
        session: Session,
        predictor: Predictor,
        notify: Notify,
        ask: Callable[[str, Any], Awaitable[Any]],
    ) -> None:
        self.session, self.notify, self.ask = session, notify, ask
        self.line = StatusLine(notify)
        self.watch = ModelWatch(predictor, self.line, notify, ask)
        session.requests.busy = self._thinking
        session.context_tokens = lambda: self.watch.context_tokens
        self.pulls_settings = False  # it answers workspace/configuration
        self.registers_settings = False  # it tells of changed settings only if asked to
        self.shows_disabled = False  # it shows disabled code actions with their reason
        self.versions_edits = False  # it checks the version of a document that it is to edit
        self._waking: asyncio.TimerHandle | None = None  # ends a pause that the user asked for
        self._requests: set[asyncio.Future[Any]] = set()  # whose answers are of no interest

    def _thinking(self) -> Any:
        return self.line.thinking(silent=self.watch.waiting is not None)

    def ask_later(self, method: str, params: Any) -> None:
        """Send the client a request without waiting for its answer."""
        sending = asyncio.ensure_future(self.ask(method, params))
        self._requests.add(sending)
        sending.add_done_callback(self._answered)

    def _answered(self, sent: asyncio.Future[Any]) -> None:
        self._requests.discard(sent)
        if not sent.cancelled() and sent.exception() is not None:
            logger.info("the client refused: %s", sent.exception())

    def configure(self, sent: Any) -> None:
        """Use the settings that the client sent, and log what is wrong with them."""
        settings, problems = updated(self.session.settings, sent)
        self.session.configure(settings)
        for problem in problems:
            message = {"type": types.MessageType.Warning.value, "message": f"Redraft: {problem}"}
            self.notify("window/logMessage", message)

    def snooze(self, seconds: float) -> None:
        """Offer nothing without a gesture for so long, and say so; 0 ends it."""
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None
        self.session.snooze(seconds)
        if not seconds:
            self.line.tell("idle")
            return
        self.line.tell(f"No suggestions: {snoozing(seconds)}.", "Inactive")
        loop = asyncio.get_running_loop()
        self._waking = loop.call_later(seconds, self.line.tell, "idle")

    async def leave(self) -> None:
        """Stop everything that is done for the client: the connection is over."""
        if self._waking is not None:
            self._waking.cancel()
        for sending in self._requests:
            sending.cancel()
        await self.watch.stop()
        await self.session.leave()
