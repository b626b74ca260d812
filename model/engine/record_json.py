"""The records of ``records.py`` as versioned JSON, both ways; what ``/redraft/v1`` speaks.

Reading is strict: an unknown field of a request, a wrong type, a number out of range, a NUL or half
a surrogate pair is refused with the field's name. Knows nothing of HTTP and of a server's limits.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from .. import errors
from ..errors import EngineGone, InvalidRequest, Overloaded, RedraftError
from ..reading import AnyText, Flag, Json, Number, Whole, read
from ..records import CanvasState, EditRequest, ModelStatus, Prediction
from ..release import HOW_TO_UPGRADE
from .validate import check_places

#: Classes of errors by their code.
_CLASSES = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, RedraftError)
}

#: Raised whenever a field changes its meaning; both sides must agree on it.
WIRE_VERSION = 1


@dataclass(frozen=True, slots=True)
class _Version:
    version: Whole


@dataclass(frozen=True, slots=True)
class _Asked:
    request: EditRequest
    steps: Flag = False
    version: Whole = WIRE_VERSION
    __pydantic_config__ = {"extra": "forbid"}  # noqa: RUF012


@dataclass(frozen=True, slots=True)
class _Predicted:
    prediction: Prediction


@dataclass(frozen=True, slots=True)
class _Seen:
    state: CanvasState


@dataclass(frozen=True, slots=True)
class _Told:
    status: ModelStatus


@dataclass(frozen=True, slots=True)
class _Error:
    code: AnyText
    message: AnyText
    retry_after_s: Number = 1.0


@dataclass(frozen=True, slots=True)
class _Failed:
    error: _Error


def _check_version(data: object) -> None:
    if (version := read(_Version, data).version) != WIRE_VERSION:
        raise InvalidRequest(
            f"'version' is {version}, this side speaks {WIRE_VERSION}. Bring client and server to "
            f"the same release: {HOW_TO_UPGRADE}."
        )


# --- requests ------------------------------------------------------------------------------------


def request_to_json(request: EditRequest, steps: bool = False) -> Json:
    """The body of ``POST /redraft/v1/predict``; ``steps`` asks for every canvas state too."""
    return {"version": WIRE_VERSION, "steps": steps, "request": dataclasses.asdict(request)}


def request_from_json(data: object) -> tuple[EditRequest, bool]:
    """The request and whether its canvas states are wanted.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    _check_version(data)
    asked = read(_Asked, data)
    check_places(asked.request, "request.")
    return asked.request, asked.steps


# --- answers -------------------------------------------------------------------------------------


def prediction_to_json(prediction: Prediction) -> Json:
    return {"version": WIRE_VERSION, "prediction": dataclasses.asdict(prediction)}


def prediction_from_json(data: object) -> Prediction:
    """Raises:
    InvalidRequest: names the field and what it must be.
    """
    _check_version(data)
    prediction = read(_Predicted, data).prediction
    for index, one in enumerate(prediction.candidates):
        if one.end < one.start:
            raise InvalidRequest(
                f"'prediction.candidates[{index}].end' must be at least {one.start}, not {one.end}."
            )
    return prediction


def state_to_json(state: CanvasState) -> Json:
    return {"version": WIRE_VERSION, "state": dataclasses.asdict(state)}


def state_from_json(data: object) -> CanvasState:
    """Raises:
    InvalidRequest: names the field and what it must be.
    """
    return read(_Seen, data).state


def status_to_json(status: ModelStatus) -> Json:
    return {"version": WIRE_VERSION, "status": dataclasses.asdict(status)}


def status_from_json(data: object) -> ModelStatus:
    """Raises:
    InvalidRequest: names the field and what it must be.
    """
    _check_version(data)
    return read(_Told, data).status


# --- errors --------------------------------------------------------------------------------------


def error_to_json(error: RedraftError) -> Json:
    """The OpenAI-style error object, which every route of the server answers with."""
    body: Json = {
        "message": str(error),
        "type": _error_type(error.http_status),
        "code": error.code,
        "param": _named_field(str(error)) if isinstance(error, InvalidRequest) else None,
    }
    if isinstance(error, Overloaded):
        body["retry_after_s"] = error.retry_after_s
    return {"error": body}


def _error_type(http_status: int) -> str:
    names = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    return names.get(http_status, "server_error" if http_status >= 500 else "invalid_request_error")


def _named_field(message: str) -> str | None:
    """Our messages about a field begin with its name in quotes."""
    return message[1:].partition("'")[0] if message.startswith("'") else None


def error_from_json(data: object) -> RedraftError:
    """The error that the other side raised, of the same class where this release has it."""
    try:
        told = read(_Failed, data).error
    except InvalidRequest as error:
        return EngineGone(f"The server answered with an error that cannot be read: {error}")
    if told.code == Overloaded.code:
        return Overloaded(told.message, told.retry_after_s)
    kind = _CLASSES.get(told.code)
    return kind(told.message) if kind else RedraftError(told.message)
