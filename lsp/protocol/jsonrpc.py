"""pygls as its authors intend it, except where real clients need otherwise.

Messages reach their handlers as plain JSON, which :mod:`.messages` validates. Documents are our
own: pygls splits lines where Python does, and walks the whole file at each key. Seen with pygls
2.1.1 and lsprotocol 2025.0.0.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import attrs
from cattrs import Converter
from lsprotocol import converters, types
from pygls.exceptions import (
    JsonRpcContentModified,
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
)
from pygls.lsp.server import LanguageServer
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
)
from redraft.model.errors import InvalidRequest, RedraftError, StaleDocument
from redraft.model.records import Predictor
from redraft.model.release import RELEASE

from ..editor_settings import update_settings
from ..policy.machine_load import HasProcess, Machine
from ..refusals import snooze_sentence
from ..session import Session
from .status import ModelWatch, StatusLine

logger = logging.getLogger(__name__)

#: Seconds after which a request asks whether its model is being loaded.
_LOOK_AFTER_S = 0.7

#: Messages that pygls reads and answers itself.
BUILT_IN = (types.SHUTDOWN, types.EXIT, types.CANCEL_REQUEST, types.SET_TRACE)


def plain_converter() -> Converter:
    """Return a converter that leaves ``params`` and ``result`` as plain JSON."""
    converter = converters.get_converter()
    for kind in (JsonRPCRequestMessage, JsonRPCNotification, JsonRPCResponseMessage):
        converter.register_structure_hook(kind, _plain)
    return converter


def _plain(data: dict[str, Any], kind: type[Any]) -> Any:
    return kind(*(data.get(field.name) for field in attrs.fields(kind)))


class RedraftProtocol(LanguageServerProtocol):
    """Hand plain JSON to the handlers, and answer expected errors without a traceback."""

    def __init__(self, server: LanguageServer, converter: Converter) -> None:
        super().__init__(server, converter)
        for method in set(self.fm.builtin_features) - set(BUILT_IN):
            del self.fm.builtin_features[method]

    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        """Return None, for plain JSON, except for messages that pygls reads itself."""
        return super().get_message_type(method) if method in BUILT_IN else None

    def get_result_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        """Return None: answers of the client stay plain JSON."""
        del method
        return None

    def _send_handler_result(self, future: Future[Any], *, msg_id: Any) -> None:
        error = None if future.cancelled() else future.exception()
        if not isinstance(error, RedraftError):
            super()._send_handler_result(future, msg_id=msg_id)
            return
        logger.info("request %s refused: %s", msg_id, error)
        self._request_futures.pop(msg_id, None)
        self._send_response(msg_id, error=_to_json_rpc(error).to_response_error())

    def _check_handler_result(self, future: Future[Any]) -> None:
        error = None if future.cancelled() else future.exception()
        if isinstance(error, RedraftError):
            logger.warning("a notification was refused: %s", error)
        elif error is not None:
            logger.error("a notification failed", exc_info=error)


def _to_json_rpc(error: RedraftError) -> JsonRpcException:
    """Translate one of our errors into the protocol's."""
    if isinstance(error, StaleDocument):
        return JsonRpcContentModified(str(error))
    if isinstance(error, InvalidRequest):
        return JsonRpcInvalidParams(str(error))
    return JsonRpcInternalError(f"{type(error).__name__}: {error}")


class RedraftServer(LanguageServer):
    """Server of one client: its session, its status line and its capabilities."""

    protocol: RedraftProtocol

    def __init__(self, session: Session, predictor: Predictor) -> None:
        super().__init__(
            "redraft", RELEASE, protocol_cls=RedraftProtocol, converter_factory=plain_converter
        )
        self.session = session
        self.line = StatusLine(self.protocol.notify)
        self.watch = ModelWatch(predictor, session.workspace, self.line, self.work_done_progress)
        session.predictions.busy = self._busy
        if isinstance(predictor, HasProcess):
            session.workspace.load.look = Machine(predictor.process).look
        self.pulls_settings = False  # it answers workspace/configuration
        self.registers_settings = False  # it reports changed settings only if asked to
        self.shows_disabled = False  # it shows disabled code actions with their reason
        self.resolves_edits = False  # it asks for the edit of a code action when it is taken
        self.versions_edits = False  # it checks the version of a document that it is to edit
        self._waking: asyncio.TimerHandle | None = None  # ends a pause that the user asked for

    @contextlib.contextmanager
    def _busy(self) -> Iterator[None]:
        """Say that the model works, and after a while whether it is being loaded again."""
        loop = asyncio.get_running_loop()
        look = loop.call_later(_LOOK_AFTER_S, self.watch.start, True)
        try:
            with self.line.while_thinking(is_silent=bool(self.watch.waiting)):
                yield
        finally:
            look.cancel()

    def report_server_error(self, error: Exception, source: Any) -> None:
        """Log an error: pygls would open a popup in the editor."""
        logger.error("%s: %s", source.__name__, error)

    def configure(self, sent: Any) -> None:
        """Use the settings that the client sent, and log what is wrong with them."""
        settings, problems = update_settings(self.session.workspace.settings, sent)
        self.session.configure(settings)
        for problem in problems:
            warning = types.LogMessageParams(types.MessageType.Warning, f"Redraft: {problem}")
            self.window_log_message(warning)

    def snooze(self, seconds: float) -> None:
        """Offer nothing without a gesture for so long, and say so; 0 ends it."""
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None
        self.session.snooze(seconds)
        if not seconds:
            self.line.tell("idle")
            return
        self.line.tell(f"No suggestions: {snooze_sentence(seconds)}.", "Inactive")
        self._waking = asyncio.get_running_loop().call_later(seconds, self.line.tell, "idle")

    async def leave(self) -> None:
        """Stop everything that is done for the client: the connection is over."""
        if self._waking is not None:
            self._waking.cancel()
        await self.watch.stop()
        await self.session.leave()
