"""pygls as its authors intend it, except where real clients need otherwise.

Each was seen happening with pygls 2.1.1 and lsprotocol 2025.0.0:

1. Unknown fields (a version, a selection) are dropped and a wrong type means no answer at all, so
   messages reach their handlers as plain JSON and :mod:`.messages` reads them.
2. An error in a notification, and every parse error, opens a popup in the editor; here it goes to
   the log.
3. ``workspace/executeCommand`` as a notification is an unknown method.
4. The client's first position encoding is taken, while clients exist that offer UTF-8 and then
   count UTF-16: the answer is always UTF-16.
5. The built-in workspace splits lines where Python does, U+2028 included, and walks the whole
   file at each keystroke; ours (:mod:`redraft.lsp.documents`) takes its place.
6. ``exit`` ends the process, which over TCP serves other clients as well.
"""

from __future__ import annotations

import json
import logging
from concurrent.futures import Future
from typing import Any

from lsprotocol import types
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
    default_converter,
)
from redraft.model.errors import InvalidRequest, RedraftError, StaleDocument
from redraft.model.validation import parse_float

from .client import Client
from .messages import at
from .reports import COMMANDS
from .results import ACTION_KIND

logger = logging.getLogger(__name__)


_ALL_FILES = types.FileOperationRegistrationOptions(
    filters=[
        types.FileOperationFilter(
            pattern=types.FileOperationPattern("**/*", matches=types.FileOperationPatternKind.File)
        )
    ]
)


def capabilities(notebooks: bool, completion_items: bool) -> types.ServerCapabilities:
    """Return what the server can do."""
    all_notebooks = types.NotebookDocumentSyncOptions(
        notebook_selector=[types.NotebookDocumentFilterWithNotebook(notebook="*")]
    )
    return types.ServerCapabilities(
        # Always this one: some clients offer another first and then count in this one.
        position_encoding=types.PositionEncodingKind.Utf16,
        text_document_sync=types.TextDocumentSyncOptions(
            open_close=True, change=types.TextDocumentSyncKind.Incremental, save=True
        ),
        notebook_document_sync=all_notebooks if notebooks else None,
        inline_completion_provider=types.InlineCompletionOptions(),
        code_action_provider=types.CodeActionOptions(code_action_kinds=[ACTION_KIND]),
        completion_provider=types.CompletionOptions() if completion_items else None,
        execute_command_provider=types.ExecuteCommandOptions(commands=list(COMMANDS)),
        workspace=types.WorkspaceOptions(
            workspace_folders=types.WorkspaceFoldersServerCapabilities(
                supported=True, change_notifications=True
            ),
            file_operations=types.FileOperationOptions(did_rename=_ALL_FILES),
        ),
    )


class RedraftProtocol(LanguageServerProtocol):
    """The JSON-RPC side of one connection.

    ``exit_code`` is None until the client says ``exit``; then 0 after ``shutdown``, else 1.
    """

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        for method in set(self.fm.builtin_features) - {types.SHUTDOWN}:
            del self.fm.builtin_features[method]
        self.exit_code: int | None = None

    def receive(self, body: bytes) -> None:
        """Handle one message; log one that cannot be read.

        An editor sends the bytes of a Latin-1 file that it opened as it is (``nvim -b``). Each
        invalid byte becomes a lone surrogate, one character as in the editor, which
        ``lsp/positions.py`` keeps from the model.
        """
        try:
            text = body.decode("utf-8", "surrogateescape")
            self.handle_message(self.structure_message(json.loads(text, parse_float=parse_float)))
        except Exception as error:  # the connection outlives a message that cannot be read
            logger.warning("a message could not be read: %s: %s", type(error).__name__, error)

    def structure_message(self, data: Any) -> Any:
        """Return a message with its ``params`` or ``result`` left as plain JSON."""
        version = data["jsonrpc"]
        if "method" not in data and "error" in data:
            error = self._converter.structure(data["error"], types.ResponseError)
            return types.ResponseErrorMessage(id=data["id"], error=error)
        if "method" not in data:
            return JsonRPCResponseMessage(data["id"], version, data.get("result"))
        if "id" in data:
            return JsonRPCRequestMessage(data["id"], data["method"], version, data.get("params"))
        return JsonRPCNotification(data["method"], version, data.get("params"))

    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        """Return None: handlers take and give plain JSON."""
        return None

    def get_result_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        """Return None: answers of the client stay plain JSON."""
        return None

    def _handle_notification(self, method_name: str, params: Any) -> None:
        if method_name == types.EXIT:
            self.exit_code = 0 if self._shutdown else 1
        elif method_name == types.CANCEL_REQUEST:
            self._handle_cancel_notification(at(params, "id"))
        elif method_name != types.SET_TRACE:  # the log is traced to stderr, never to the client
            super()._handle_notification(method_name, params)

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
    """Server of one connection."""

    protocol: RedraftProtocol
    client: Client

    def __init__(self, name: str, version: str) -> None:
        super().__init__(
            name, version, protocol_cls=RedraftProtocol, converter_factory=default_converter
        )

    def report_server_error(self, error: Exception, *_: Any) -> None:
        """Log an error: pygls would open a popup in the editor."""
        logger.error("%s: %s", type(error).__name__, error)
