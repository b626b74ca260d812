"""pygls where it and real clients disagree, mended in one place.

Each was seen happening with pygls 2.1.1 and lsprotocol 2025.0.0:

1. Unknown fields (a version, a selection) are dropped and a wrong type means no answer at all, so
   messages reach their handlers as plain JSON and :mod:`.messages` reads them.
2. An error in a notification, and every parse error, opens a popup in the editor; here it goes to
   the log, and a request always gets a JSON-RPC error.
3. ``workspace/executeCommand`` as a notification is an unknown method.
4. The client's first position encoding is taken, while clients exist that offer UTF-8 and then
   count UTF-16: the answer is always UTF-16.
5. The built-in workspace splits lines where Python does, U+2028 included, and walks the whole
   file at each keystroke; ours (:mod:`redraft.lsp.editor.documents`) takes its place.

Knows JSON-RPC and the life of a connection; nothing of suggestions.
"""

from __future__ import annotations

import asyncio
import json
import logging
from concurrent.futures import Future
from typing import Any, Protocol

from lsprotocol import types
from pygls.exceptions import (
    JsonRpcContentModified,
    JsonRpcException,
    JsonRpcInternalError,
    JsonRpcInvalidParams,
    JsonRpcInvalidRequest,
    JsonRpcParseError,
    JsonRpcRequestCancelled,
    JsonRpcServerNotInitialized,
)
from pygls.protocol import (
    JsonRPCNotification,
    JsonRPCRequestMessage,
    JsonRPCResponseMessage,
    LanguageServerProtocol,
)
from redraft.model.errors import InvalidRequest, RedraftError, StaleDocument
from redraft.model.validation import parse_float

from .client import Client
from .framing import BadFrame

logger = logging.getLogger(__name__)

#: Built-in handlers that stay; all others read typed messages or keep a workspace of their own.
_KEPT = (types.SHUTDOWN,)


class _Serving(Protocol):
    client: Client


class RedraftProtocol(LanguageServerProtocol):
    """The JSON-RPC side of one connection.

    ``exit_code`` is None until the client says ``exit``; then 0 after ``shutdown``, else 1.
    """

    _server: _Serving  # type: ignore[assignment]

    def __init__(self, server: Any, converter: Any) -> None:
        super().__init__(server, converter)
        for method in set(self.fm.builtin_features) - set(_KEPT):
            del self.fm.builtin_features[method]
        self.exit_code: int | None = None
        self._initialized = False

    def has_ended(self) -> bool:
        return self.exit_code is not None

    # --- in --------------------------------------------------------------------------------

    def receive(self, frame: bytes | BadFrame) -> None:
        """Take one message in: answer what cannot be read, pass on the rest."""
        if isinstance(frame, BadFrame):
            self._refuse(None, JsonRpcParseError(f"{frame.problem}; the message was skipped"))
            return
        try:
            data = json.loads(frame, parse_float=parse_float)
        except UnicodeDecodeError as error:
            self._accept_not_unicode(frame, error)
        except (ValueError, RecursionError) as error:
            self._refuse(None, JsonRpcParseError(f"the message is not valid JSON ({error})"))
        else:
            self._accept(data)

    def _accept_not_unicode(self, frame: bytes, error: UnicodeDecodeError) -> None:
        """Take in a notification with invalid UTF-8; refuse a request.

        An editor sends the bytes of a Latin-1 file that it opened as it is (``nvim -b``). Each
        invalid byte becomes a lone surrogate, one character as in the editor, which
        ``lsp/editor/positions.py`` keeps from the model.
        """
        problem = f"a message was not valid UTF-8 ({error.reason} at byte {error.start})"
        try:
            data = json.loads(frame.decode("utf-8", "surrogateescape"), parse_float=parse_float)
        except (ValueError, RecursionError):
            data = None
        if not isinstance(data, dict) or "id" in data:
            self._refuse(_id_of(data), JsonRpcParseError(problem))
            return
        logger.info("%s: its invalid bytes are read as unknown characters", problem)
        self._accept(data)

    def _accept(self, data: Any) -> None:
        try:
            message = self.structure_message(data)
        except JsonRpcException as error:
            self._refuse(_id_of(data), error)
            return
        try:
            self.handle_message(message)
        except Exception:  # an answer to a question never asked, say: the connection lives on
            logger.exception("a message could not be handled")

    def structure_message(self, data: Any) -> Any:
        """A message with its ``params`` or ``result`` left as plain JSON.

        Raises:
            JsonRpcInvalidRequest: the envelope is broken.
        """
        if not isinstance(data, dict):
            raise JsonRpcInvalidRequest(
                f"a message must be a JSON object, got {type(data).__name__}"
            )
        version, method = data.get("jsonrpc"), data.get("method")
        if version != self.VERSION:
            raise JsonRpcInvalidRequest(f'jsonrpc must be "2.0", got {version!r}')
        if method is not None and not isinstance(method, str):
            raise JsonRpcInvalidRequest(f"method must be a string, got {method!r}")
        if "id" not in data:
            if method is None:
                raise JsonRpcInvalidRequest("a message needs a method or an id")
            return JsonRPCNotification(method, self.VERSION, data.get("params"))
        id_ = _id_of(data)
        if "error" in data and method is None:
            return types.ResponseErrorMessage(id=id_, error=_error_of(data["error"]))
        if id_ is None:
            raise JsonRpcInvalidRequest(f"id must be an integer or a string, got {data['id']!r}")
        if method is not None:
            return JsonRPCRequestMessage(id_, method, self.VERSION, data.get("params"))
        return JsonRPCResponseMessage(id_, self.VERSION, data.get("result"))

    def handle_message(self, message: Any) -> None:
        """Pass a message on if its time is right: initialize first, nothing after shutdown."""
        method = getattr(message, "method", None)
        if method == types.EXIT:
            self.exit_code = 0 if self._shutdown else 1
        elif method is None or method == types.INITIALIZE:
            self._initialized = self._initialized or method is not None
            super().handle_message(message)
        elif self._initialized and not self._shutdown:
            super().handle_message(message)
        elif isinstance(message, JsonRPCRequestMessage):
            self._refuse(message.id, self._out_of_turn())

    def _out_of_turn(self) -> JsonRpcException:
        if self._shutdown:
            return JsonRpcInvalidRequest("the server is shutting down: only exit may follow")
        return JsonRpcServerNotInitialized("the first request must be initialize")

    def _handle_notification(self, method_name: str, params: Any) -> None:
        if method_name == types.CANCEL_REQUEST:
            id_ = params.get("id") if isinstance(params, dict) else None
            future = self._request_futures.get(id_) if isinstance(id_, (int, str)) else None
            if future is not None:  # else it was answered already: no reason for a warning
                self._handle_cancel_notification(id_)
            return
        if method_name == types.SET_TRACE:
            return  # nothing is traced to the client: the log is where things are told
        super()._handle_notification(method_name, params)

    def get_message_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        """No typed messages in either direction: plain JSON is what handlers take and give."""
        return None

    def get_result_type(self, method: str) -> type[Any] | None:  # type: ignore[override]
        return None

    # --- out -------------------------------------------------------------------------------

    def _send_handler_result(self, future: Future[Any], *, msg_id: Any) -> None:
        self._request_futures.pop(msg_id, None)
        if future.cancelled():
            self._refuse(msg_id, JsonRpcRequestCancelled("cancelled by the client"))
            return
        error = future.exception()
        if error is None:
            self._send_response(msg_id, result=future.result())
        else:
            self._refuse(msg_id, _to_json_rpc(error))

    def _check_handler_result(self, future: Future[Any]) -> None:
        if future.cancelled():
            return
        error = future.exception()
        if isinstance(error, RedraftError):
            logger.warning("a notification was refused: %s", error)
        elif error is not None:
            logger.error("a notification failed", exc_info=error)

    def _handle_cancel_notification(self, msg_id: Any) -> None:
        # The future stays registered until its handler has ended; then its callback answers.
        self._request_futures[msg_id].cancel()

    def _refuse(self, id_: Any, error: JsonRpcException) -> None:
        logger.info("request %s refused: %s", id_, error)
        self._send_data(
            {
                "jsonrpc": self.VERSION,
                "id": id_,
                "error": {"code": error.code, "message": str(error)},
            }
        )


def _to_json_rpc(error: BaseException) -> JsonRpcException:
    """The one translation of our errors into the protocol's."""
    if isinstance(error, JsonRpcException):
        return error
    if isinstance(error, StaleDocument):
        return JsonRpcContentModified(str(error))
    if isinstance(error, InvalidRequest):
        return JsonRpcInvalidParams(str(error))
    if not isinstance(error, (RedraftError, asyncio.CancelledError)):
        logger.error("a request failed", exc_info=error)
    return JsonRpcInternalError(f"{type(error).__name__}: {error}")


def _id_of(data: Any) -> int | str | None:
    id_ = data.get("id") if isinstance(data, dict) else None
    return id_ if isinstance(id_, (int, str)) and not isinstance(id_, bool) else None


def _error_of(value: Any) -> types.ResponseError:
    fields = value if isinstance(value, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    return types.ResponseError(
        code=code if isinstance(code, int) else JsonRpcInternalError.CODE,
        message=message if isinstance(message, str) else str(value),
    )
