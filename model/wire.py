"""The records of ``records.py`` as JSON, both ways: the bodies of ``/redraft/v1``; their checks.

Reading is strict: an unknown field of a request, a wrong type, a number out of range or a NUL is
refused with the field's name. Half a surrogate pair in a text is read as U+FFFD.
"""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from typing import Literal, TypeVar, cast, get_args, get_origin

from . import errors, records
from .errors import EngineGone, InvalidRequest, Overloaded, RedraftError
from .records import (
    MAX_ANSWER_TOKENS,
    MAX_CANDIDATES,
    MAX_CONTEXT_TOKENS,
    MAX_STOPS,
    MIN_CONTEXT_TOKENS,
    CanvasState,
    Conversation,
    EditRequest,
    ModelStatus,
    Prediction,
)
from .release import HOW_TO_UPGRADE
from .validation import AnyText, Flag, Json, Number, Whole, between, brief, load_json, read

T = TypeVar("T")

#: Raised when a field changes its meaning; both sides must agree on it.
WIRE_VERSION = 1


def _schema() -> str:
    """Return a hash of the fields of all records, their types and the wire version."""
    parts = [f"version {WIRE_VERSION}"]
    for name, value in vars(records).items():
        if dataclasses.is_dataclass(value):
            parts += [f"{name}.{field.name}: {field.type}" for field in dataclasses.fields(value)]
        elif get_origin(value) is Literal:
            parts.append(f"{name} = {get_args(value)}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


#: Identifies the records of this release. A client never joins an engine of another schema.
SCHEMA = _schema()

#: The name of each record in its body.
_NAMES: dict[type, str] = {
    Prediction: "prediction", CanvasState: "state", ModelStatus: "status",
}  # fmt: skip

_ERROR_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
#: Every error class by its code, whichever modules are imported.
_ERRORS = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, RedraftError)
}


@dataclass(frozen=True, slots=True)
class _Version:
    version: Whole


@dataclass(frozen=True, slots=True)
class _RequestBody:
    request: EditRequest
    steps: Flag = False
    version: Whole = WIRE_VERSION
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012


@dataclass(frozen=True, slots=True)
class _Error:
    code: AnyText
    message: AnyText
    retry_after_s: Number = 1.0


@dataclass(frozen=True, slots=True)
class _ErrorBody:
    error: _Error


def _check_version(data: object) -> None:
    if (version := read(_Version, data).version) != WIRE_VERSION:
        raise InvalidRequest(
            f"'version' is {version}, this side speaks {WIRE_VERSION}. Bring client and server to "
            f"the same release: {HOW_TO_UPGRADE}."
        )


def request_to_json(request: EditRequest, steps: bool = False) -> Json:
    """Return the body of ``POST /redraft/v1/predict``; ``steps`` asks for canvas states too."""
    fields = dataclasses.asdict(request)
    if not request.read_ahead:
        del fields["read_ahead"]  # older servers refuse what they do not know
    return {"version": WIRE_VERSION, "steps": steps, "request": fields}


def request_from_json(data: object) -> tuple[EditRequest, bool]:
    """Return the request, and whether its canvas states are wanted; see :func:`check_request`.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    _check_version(data)
    body = read(_RequestBody, data)
    return body.request, body.steps


def check_request(request: EditRequest) -> None:
    """Check what the types of a request do not express.

    Raises:
        InvalidRequest: names the first unusable field, its value and what it must be.
    """
    if (request.task == "chat") != (request.conversation is not None):
        raise InvalidRequest("'conversation' belongs to the task 'chat', and to no other.")
    if request.conversation is not None:
        _check_conversation(request.conversation)
    if request.grammar is not None and request.task == "next_edit":
        raise InvalidRequest("'grammar' cannot bind a next edit. Ask for an infill.")
    if request.read_ahead and request.conversation is not None:
        raise InvalidRequest("'read_ahead' is for infills and next edits, not for conversations.")
    between("cursor", request.cursor, 0, len(request.text))
    between("max_tokens", request.max_tokens, 1, MAX_ANSWER_TOKENS)
    between("min_tokens", request.min_tokens, 0, request.max_tokens)
    between("candidates", request.candidates, 1, MAX_CANDIDATES)
    if request.context_tokens is not None:
        between("context_tokens", request.context_tokens, MIN_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS)
    if len(request.stop) > MAX_STOPS:
        raise InvalidRequest(f"'stop' has {len(request.stop)} entries. Send at most {MAX_STOPS}.")
    if "" in request.stop:
        raise InvalidRequest(f"'stop[{request.stop.index('')}]' is empty. Leave it out.")
    if request.region is None:
        return
    for index, line in enumerate(request.region):
        between(f"region[{index}]", line, 0, request.text.count("\n") + 1)
    (first, last), at = request.region, request.text.count("\n", 0, request.cursor)
    if not first <= at < last:
        raise InvalidRequest(
            f"'region' is lines [{first}, {last}) (0-based), but the cursor is in line {at}. "
            "Send a region that holds the cursor, or none."
        )


def _check_conversation(conversation: Conversation) -> None:
    """Check the texts that templates read as JSON."""
    texts: list[tuple[str, str, type]] = [
        (f"messages[{index}].tool_calls[{place}].arguments", call.arguments, dict)
        for index, message in enumerate(conversation.messages)
        for place, call in enumerate(message.tool_calls)
    ]
    if conversation.tools:
        texts.append(("tools", conversation.tools, list))
    for name, text, kind in texts:
        what = "an object" if kind is dict else "an array"
        try:
            found = isinstance(load_json(text), kind)
        except ValueError:
            found = False
        if not found:
            raise InvalidRequest(
                f"'conversation.{name}' must be {what} as JSON, not {brief(text)}."
            )


def to_json(record: Prediction | CanvasState | ModelStatus) -> Json:
    """Return the body that carries ``record``; :func:`from_json` reads it."""
    return {"version": WIRE_VERSION, _NAMES[type(record)]: dataclasses.asdict(record)}


def from_json(data: object, kind: type[T]) -> T:
    """Return the ``kind`` of record in a body.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    _check_version(data)
    record = read(kind, cast(Json, data).get(_NAMES[kind]), _NAMES[kind])
    if isinstance(record, Prediction):
        for index, candidate in enumerate(record.candidates):
            if candidate.end < candidate.start:
                raise InvalidRequest(
                    f"'prediction.candidates[{index}].end' must be at least {candidate.start}, "
                    f"not {candidate.end}."
                )
    return record


def error_to_json(error: RedraftError) -> Json:
    """Return the OpenAI-style error object, with which every route of the server answers."""
    message, status = str(error), error.http_status
    kind = "server_error" if status >= 500 else "invalid_request_error"
    named = isinstance(error, InvalidRequest) and message.startswith("'")  # with the field's name
    body: Json = {
        "message": message,
        "type": _ERROR_TYPES.get(status, kind),
        "code": error.code,
        "param": message[1:].partition("'")[0] if named else None,
    }
    if isinstance(error, Overloaded):
        body["retry_after_s"] = error.retry_after_s
    return {"error": body}


def error_from_json(data: object) -> RedraftError:
    """Return the error that the other side raised, of the same class if this release has it."""
    try:
        error = read(_ErrorBody, data).error
    except InvalidRequest as problem:
        return EngineGone(f"The server answered with an error that cannot be read: {problem}")
    if error.code == Overloaded.code:
        return Overloaded(error.message, error.retry_after_s)
    return _ERRORS.get(error.code, RedraftError)(error.message)
