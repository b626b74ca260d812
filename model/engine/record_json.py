"""The records of ``records.py`` as versioned JSON, both ways; what ``/redraft/v1`` speaks.

Reading is strict: an unknown field, a wrong type, a number out of range, a NUL or half a surrogate
pair is refused with the field's name. Knows nothing of HTTP and of the limits a server sets.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet
from functools import cache
from typing import Any, NoReturn, TypeVar, cast, get_args

from ..errors import EngineGone, InvalidRequest, Overloaded, RedraftError
from ..records import (
    LEAST_LOG,
    MAX_CONTEXT_TOKENS,
    MAX_TEMPERATURE,
    Candidate,
    CanvasState,
    Confidence,
    Conversation,
    Diagnostic,
    DraftCount,
    DraftSource,
    EditRequest,
    Facts,
    Finish,
    Grammar,
    GrammarKind,
    Message,
    ModelStatus,
    Prediction,
    RecentEdit,
    RelatedFile,
    Role,
    Source,
    Stats,
    Task,
    ToolCall,
)

#: Raised whenever a field changes its meaning; both sides must agree on it.
WIRE_VERSION = 1

#: Beyond this a number cannot be meant: counts, offsets and seeds all stay below.
MAX_INTEGER = 2**53 - 1

Json = dict[str, Any]
T = TypeVar("T")


def parse_json(body: bytes) -> Json:
    """A JSON object out of ``body``.

    Raises:
        InvalidRequest: the bytes are not UTF-8, not JSON, or not an object; says where.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"The body is not valid UTF-8 (byte 0x{body[error.start]:02x} at offset "
            f"{error.start}). Send JSON encoded as UTF-8."
        ) from None
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"The body is not valid JSON: {error.msg} at line {error.lineno}, column "
            f"{error.colno}. Send one JSON object."
        ) from None
    except RecursionError:
        raise InvalidRequest("The body's JSON is nested too deeply. Send a flat object.") from None
    except ValueError as error:  # an integer of thousands of digits
        raise InvalidRequest(f"The body holds a number that cannot be read: {error}.") from None
    if not isinstance(value, dict):
        raise InvalidRequest(f"The body is a JSON {json_type(value)}. Send a JSON object.")
    return value


def _refuse_constant(name: str) -> NoReturn:
    raise InvalidRequest(f"The body holds {name}, which is not JSON. Send a finite number.")


def json_type(value: object) -> str:
    """The JSON name of a value's type, for messages."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


class Fields:
    """Reads the fields of one JSON object and names what is wrong with them.

    A getter given no ``default`` demands the field. ``null`` counts as absent where there is one.
    """

    _DEMANDED: Any = object()

    def __init__(self, data: object, where: str = "") -> None:
        if not isinstance(data, dict):
            raise InvalidRequest(f"'{where or 'body'}' must be an object, not {json_type(data)}.")
        self._data = cast(Json, data)
        self._where = where

    def name(self, key: str) -> str:
        return f"{self._where}.{key}" if self._where else key

    def __contains__(self, key: str) -> bool:
        return self._data.get(key) is not None

    def raw(self, key: str) -> object:
        """The value as it came, for fields of several types."""
        return self._data.get(key)

    def _get(self, key: str, default: Any) -> Any:
        value = self._data.get(key)
        if value is None:
            if default is self._DEMANDED:
                raise InvalidRequest(f"'{self.name(key)}' is missing. Add it to the request.")
            return default
        return value

    def text(self, key: str, default: Any = _DEMANDED, strict: bool = True) -> Any:
        """``strict`` refuses what no tokenizer takes; an answer is read as it comes."""
        value = self._get(key, default)
        if value is default:
            return value
        return (check_text if strict else check_string)(value, self.name(key))

    def one_of(self, key: str, allowed: Collection[str], default: Any = _DEMANDED) -> Any:
        value = self._get(key, default)
        if value is default:
            return value
        if not isinstance(value, str) or value not in allowed:
            names = ", ".join(repr(one) for one in allowed)
            raise InvalidRequest(f"'{self.name(key)}' must be one of {names}, not {brief(value)}.")
        return value

    def flag(self, key: str, default: bool) -> bool:
        value = self._get(key, default)
        if not isinstance(value, bool):
            raise InvalidRequest(f"'{self.name(key)}' must be true or false, not {brief(value)}.")
        return value

    def integer(
        self, key: str, lowest: int, highest: int = MAX_INTEGER, default: Any = _DEMANDED
    ) -> Any:
        value = self._get(key, default)
        if value is default:
            return value
        if isinstance(value, float) and math.isfinite(value) and value.is_integer():
            value = int(value)  # several clients write every number as 64.0
        if isinstance(value, bool) or not isinstance(value, int):
            raise InvalidRequest(f"'{self.name(key)}' must be a whole number, not {brief(value)}.")
        return self._within(key, value, lowest, highest)

    def number(
        self, key: str, lowest: float, highest: float = math.inf, default: Any = _DEMANDED
    ) -> Any:
        value = self._get(key, default)
        if value is default:
            return value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise InvalidRequest(f"'{self.name(key)}' must be a number, not {brief(value)}.")
        if (isinstance(value, int) and abs(value) > MAX_INTEGER) or not math.isfinite(value):
            raise InvalidRequest(f"'{self.name(key)}' must be finite, not {brief(value)}.")
        return float(self._within(key, value, lowest, highest))

    def _within(self, key: str, value: Any, lowest: float, highest: float) -> Any:
        if not lowest <= value <= highest:
            upto = f"between {lowest} and {highest}"
            if highest in (math.inf, MAX_INTEGER):
                upto = f"at least {lowest}"
                if value > highest:
                    upto = f"at most {highest}"
            raise InvalidRequest(f"'{self.name(key)}' must be {upto}, not {brief(value)}.")
        return value

    def array(self, key: str, item: Callable[[object, str], T], default: Any = ()) -> tuple[T, ...]:
        value = self._get(key, default)
        if value is default:
            return cast(tuple[T, ...], value)
        if not isinstance(value, list):
            raise InvalidRequest(f"'{self.name(key)}' must be an array, not {json_type(value)}.")
        return tuple(item(one, f"{self.name(key)}[{i}]") for i, one in enumerate(value))

    def object(self, key: str, read: Callable[[object, str], T]) -> T:
        return read(self._get(key, self._DEMANDED), self.name(key))

    def refuse_others(self, known: AbstractSet[str]) -> None:
        unknown = sorted(self._data.keys() - known)
        if unknown:
            raise InvalidRequest(
                f"'{self.name(unknown[0])[:80]}' is not a field of version {WIRE_VERSION}. "
                f"The fields are {', '.join(sorted(known))}."
            )


def brief(value: object) -> str:
    """A value for a message, never longer than a line."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."


def check_string(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidRequest(f"'{name}' must be a string, not {json_type(value)}.")
    return value


def check_text(value: object, name: str) -> str:
    """``value`` as text that a tokenizer can take.

    Raises:
        InvalidRequest: not a string, or it holds a NUL or half a surrogate pair.
    """
    value = check_string(value, name)
    if value.isascii() and "\0" not in value:
        return value  # nearly every text
    at = value.find("\0")
    if at >= 0:
        raise InvalidRequest(
            f"'{name}' holds a NUL character at offset {at}: it looks like a binary file. "
            "Send text only."
        )
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"'{name}' holds half a surrogate pair at offset {error.start}. Send valid Unicode."
        ) from None
    return value


@cache
def _names(record: type[Any]) -> frozenset[str]:
    return frozenset(field.name for field in dataclasses.fields(record))


def _check_version(fields: Fields) -> None:
    version = fields.integer("version", 0)
    if version != WIRE_VERSION:
        raise InvalidRequest(
            f"'version' is {version}, this side speaks {WIRE_VERSION}. Bring client and server to "
            "the same release with 'pip install -U redraft'."
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
    fields = Fields(data)
    _check_version(fields)
    fields.refuse_others({"version", "steps", "request"})
    return fields.object("request", _read_request), fields.flag("steps", False)


def _read_request(data: object, where: str) -> EditRequest:
    fields = Fields(data, where)
    fields.refuse_others(_names(EditRequest))
    text = fields.text("text")
    default = EditRequest(task="infill", path="", text="", cursor=0)
    return EditRequest(
        task=fields.one_of("task", get_args(Task)),
        path=fields.text("path"),
        text=text,
        cursor=fields.integer("cursor", 0, len(text)),
        language=fields.text("language", default.language),
        related=fields.array("related", _read_related),
        edits=fields.array("edits", _read_edit),
        diagnostics=fields.array("diagnostics", _read_diagnostic),
        region=_read_region(fields, text.count("\n") + 1),
        context_tokens=fields.integer("context_tokens", 1, MAX_CONTEXT_TOKENS, None),
        max_tokens=fields.integer("max_tokens", 1, default=default.max_tokens),
        min_tokens=fields.integer("min_tokens", 0, default=default.min_tokens),
        max_lines=fields.integer("max_lines", 1, default=None),
        quality=fields.one_of("quality", ("low", "medium", "high"), default.quality),
        temperature=fields.number("temperature", 0, MAX_TEMPERATURE, default.temperature),
        top_p=fields.number("top_p", 0, 1, default.top_p),
        seed=fields.integer("seed", 0, default=None),
        stop=fields.array("stop", check_text),
        candidates=fields.integer("candidates", 1, default=default.candidates),
        grammar=fields.object("grammar", _read_grammar) if "grammar" in fields else None,
        conversation=(
            fields.object("conversation", _read_conversation) if "conversation" in fields else None
        ),
    )


def _read_grammar(data: object, where: str) -> Grammar:
    fields = Fields(data, where)
    return Grammar(fields.one_of("kind", get_args(GrammarKind)), fields.text("text"))


def _read_conversation(data: object, where: str) -> Conversation:
    fields = Fields(data, where)
    return Conversation(
        messages=fields.array("messages", _read_message),
        tools=fields.text("tools", ""),
        think=fields.flag("think", True),
        begins=fields.text("begins", ""),
        labels=fields.array("labels", check_text),
    )


def _read_message(data: object, where: str) -> Message:
    fields = Fields(data, where)
    return Message(
        role=fields.one_of("role", get_args(Role)),
        content=fields.text("content"),
        name=fields.text("name", ""),
        tool_calls=fields.array("tool_calls", _read_call),
        tool_call_id=fields.text("tool_call_id", ""),
    )


def _read_call(data: object, where: str) -> ToolCall:
    fields = Fields(data, where)
    return ToolCall(fields.text("id"), fields.text("name"), fields.text("arguments"))


def _read_related(data: object, where: str) -> RelatedFile:
    fields = Fields(data, where)
    fields.refuse_others(_names(RelatedFile))
    return RelatedFile(fields.text("path"), fields.text("text"), fields.text("why", ""))


def _read_diagnostic(data: object, where: str) -> Diagnostic:
    fields = Fields(data, where)
    fields.refuse_others(_names(Diagnostic))
    line, severity = fields.integer("line", 0), fields.integer("severity", 1, default=1)
    return Diagnostic(line, fields.text("message"), severity)


def _read_edit(data: object, where: str) -> RecentEdit:
    fields = Fields(data, where)
    fields.refuse_others(_names(RecentEdit))
    return RecentEdit(
        path=fields.text("path"),
        line=fields.integer("line", 0),
        diff=fields.text("diff"),
        accepted=fields.flag("accepted", False),
    )


def _read_region(fields: Fields, lines: int) -> tuple[int, int] | None:
    def line(value: object, where: str) -> int:
        return cast(int, Fields({where: value}).integer(where, 0, lines))

    if "region" not in fields:
        return None
    region = fields.array("region", line)
    if len(region) != 2 or region[0] > region[1]:
        raise InvalidRequest(
            f"'{fields.name('region')}' must be [first, last) with first <= last, "
            f"not {brief(list(region))}."
        )
    return region[0], region[1]


# --- answers -------------------------------------------------------------------------------------


def prediction_to_json(prediction: Prediction) -> Json:
    return {"version": WIRE_VERSION, "prediction": dataclasses.asdict(prediction)}


def prediction_from_json(data: object) -> Prediction:
    """Raises:
    InvalidRequest: names the field and what it must be.
    """
    fields = Fields(data)
    _check_version(fields)
    return fields.object("prediction", _read_prediction)


def _read_prediction(data: object, where: str) -> Prediction:
    fields = Fields(data, where)
    return Prediction(
        request_id=fields.text("request_id"),
        model=fields.text("model"),
        candidates=fields.array("candidates", _read_candidate),
        reason=fields.text("reason", ""),
        stats=fields.object("stats", _read_stats),
        weights=fields.text("weights", ""),
    )


def _read_candidate(data: object, where: str) -> Candidate:
    fields = Fields(data, where)
    start = fields.integer("start", 0)
    return Candidate(
        start=start,
        end=fields.integer("end", start),
        text=fields.text("text", strict=False),
        confidence=fields.object("confidence", _read_confidence),
        tokens=fields.integer("tokens", 0),
        steps=fields.integer("steps", 0),
        finish=fields.one_of("finish", get_args(Finish)),
        source=fields.one_of("source", get_args(Source), "model"),
        family=fields.text("family", ""),
        facts=fields.object("facts", _read_facts) if "facts" in fields else None,
    )


def _read_facts(data: object, where: str) -> Facts:
    fields = Fields(data, where)
    counts = (fields.integer(key, 0) for key in ("lines", "written", "removed", "away", "after"))
    return Facts(
        *counts,
        errors=fields.integer("errors", -MAX_INTEGER, default=None),
        names=fields.integer("names", 0),
        unknown=fields.integer("unknown", 0),
        quoted=fields.flag("quoted", False),
        again=fields.flag("again", False),
        ahead=fields.number("ahead", LEAST_LOG, -LEAST_LOG, None),
    )


def _read_confidence(data: object, where: str) -> Confidence:
    # A hair above 1 is float32 rounding of a softmax, not a fault.
    fields = Fields(data, where)
    mean, minimum, first = (fields.number(key, 0, 1.001) for key in ("mean", "minimum", "first"))
    total = fields.number("total", LEAST_LOG, 0.01, 0.0)
    place, nothing = (fields.number(key, LEAST_LOG, 0.01, None) for key in ("place", "nothing"))
    repeat = fields.number("repeat", 0, 1, None)
    logs = fields.array("logs", _read_log)
    return Confidence(mean, minimum, first, total, place, nothing, repeat, logs)


def _read_log(value: object, where: str) -> float:
    return cast(float, Fields({where: value}).number(where, LEAST_LOG, 0.01))


def _read_stats(data: object, where: str) -> Stats:
    fields = Fields(data, where)
    values: Json = {}
    for field in dataclasses.fields(Stats):
        if field.name == "cut":
            values["cut"] = fields.text("cut", "")
        elif field.name == "drafts":
            values["drafts"] = fields.array("drafts", _read_draft_count)
        elif field.name.endswith("_ms"):
            values[field.name] = fields.number(field.name, 0, default=0.0)
        else:
            values[field.name] = fields.integer(field.name, 0, default=0)
    return Stats(**values)


def _read_draft_count(data: object, where: str) -> DraftCount:
    fields = Fields(data, where)

    def count(value: object, name: str) -> int:
        return cast(int, Fields({name: value}).integer(name, 0))

    return DraftCount(
        fields.one_of("source", get_args(DraftSource)),
        *(fields.array(key, count) for key in ("drafted", "reached", "right")),
    )


def state_to_json(state: CanvasState) -> Json:
    return {"version": WIRE_VERSION, "state": dataclasses.asdict(state)}


def state_from_json(data: object) -> CanvasState:
    """Raises:
    InvalidRequest: names the field and what it must be.
    """

    def piece(value: object, name: str) -> str | None:
        return None if value is None else check_string(value, name)

    def read(value: object, where: str) -> CanvasState:
        fields = Fields(value, where)
        pieces = fields.array("pieces", piece)
        return CanvasState(fields.integer("step", 0), pieces, fields.integer("sure", 0, default=0))

    return Fields(data).object("state", read)


def status_to_json(status: ModelStatus) -> Json:
    return {"version": WIRE_VERSION, "status": dataclasses.asdict(status)}


def status_from_json(data: object) -> ModelStatus:
    """Raises:
    InvalidRequest: names the field and what it must be.
    """

    def read(value: object, where: str) -> ModelStatus:
        fields = Fields(value, where)
        states = ("absent", "downloading", "loading", "ready", "failed")
        return ModelStatus(
            state=fields.one_of("state", states),
            model=fields.text("model"),
            provider=fields.text("provider", ""),
            progress=fields.number("progress", 0, 1.001, None),
            message=fields.text("message", ""),
            context_tokens=fields.integer("context_tokens", 0, default=0),
            longest_tokens=fields.integer("longest_tokens", 0, default=0),
            chat_model=fields.text("chat_model", ""),
        )

    fields = Fields(data)
    _check_version(fields)
    return fields.object("status", read)


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
        fields = Fields(data).object("error", Fields)
        code, message = fields.text("code"), fields.text("message")
        retry_after_s = fields.number("retry_after_s", 0, default=1.0)
    except InvalidRequest as error:
        return EngineGone(f"The server answered with an error that cannot be read: {error}")
    if code == Overloaded.code:
        return Overloaded(message, retry_after_s)
    kind = _classes_by_code().get(code)
    return kind(message) if kind else RedraftError(message)


def _classes_by_code() -> dict[str, type[RedraftError]]:
    found: dict[str, type[RedraftError]] = {}
    waiting: list[type[RedraftError]] = [RedraftError]
    while waiting:
        kind = waiting.pop()
        found.setdefault(kind.code, kind)
        waiting += kind.__subclasses__()
    return found
