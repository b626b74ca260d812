"""Validation of data from clients, files and other processes, once, where it enters.

The types of a dataclass define what its fields may be, and pydantic reads it from JSON. ``Text``,
``Whole`` and ``Number`` are strict: "12" is not 12. Pydantic is imported at the first use.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, cast

from annotated_types import GroupedMetadata

from .errors import InvalidRequest

if TYPE_CHECKING:
    from pydantic import TypeAdapter
    from pydantic_core import ErrorDetails

#: The largest integer that JSON numbers hold exactly: counts, offsets and seeds all stay below.
MAX_INTEGER = 2**53 - 1
#: Levels to which the arrays and objects of a message may be nested. The interpreter ends a
#: recursion at 1,000 calls, and a level takes several.
MAX_DEPTH = 100

_SURROGATE = re.compile("[\ud800-\udfff]")

Json = dict[str, Any]
T = TypeVar("T")


class Exactly(GroupedMetadata):
    """A strict type, without conversion; numbers within bounds.

    Args:
        clamped: reduce numbers above ``highest`` to it instead of refusing them.
    """

    def __init__(
        self, lowest: float | None = None, highest: float = math.inf, clamped: bool = False
    ) -> None:
        self.lowest, self.highest, self.clamped = lowest, highest, clamped

    def __iter__(self) -> Iterator[object]:
        from pydantic import AfterValidator, Strict

        yield Strict()
        if self.clamped:
            yield AfterValidator(partial(min, self.highest))
        if self.lowest is not None:
            yield AfterValidator(partial(_within, lowest=self.lowest, highest=self.highest))


class _Tokenizable(GroupedMetadata):
    def __iter__(self) -> Iterator[object]:
        from pydantic import AfterValidator, Strict

        yield Strict()
        yield AfterValidator(_tokenizable)


#: Text that a tokenizer accepts: NUL is refused, halves of surrogate pairs become U+FFFD. A client
#: that cuts its text anywhere, as JavaScript's ``slice`` does, may cut a character in two.
Text = Annotated[str, _Tokenizable()]
#: Any text, such as a model's answer.
AnyText = Annotated[str, Exactly()]
Flag = Annotated[bool, Exactly()]
Whole = Annotated[int, Exactly(0, MAX_INTEGER)]
AtLeastOne = Annotated[int, Exactly(1, MAX_INTEGER)]
Number = Annotated[float, Exactly(0)]


def _within(value: T, lowest: float, highest: float) -> T:
    if isinstance(value, float) and not math.isfinite(value):
        raise objection(f"must be finite, not {brief(value)}.")
    if not lowest <= cast(float, value) <= highest:
        upto = f"between {lowest} and {highest}"
        if highest in (math.inf, MAX_INTEGER):
            upto = f"at most {highest}" if cast(float, value) > highest else f"at least {lowest}"
        raise objection(f"must be {upto}, not {brief(value)}.")
    return value


def _tokenizable(text: str) -> str:
    if text.isascii() and "\0" not in text:
        return text  # nearly every text
    if (at := text.find("\0")) >= 0:
        raise objection(
            f"holds a NUL character at offset {at}: it looks like a binary file. Send text only."
        )
    return without_surrogates(text)


def without_surrogates(text: str) -> str:
    """Return ``text`` as valid Unicode of the same length: lone surrogates become U+FFFD.

    Tokenizers and JSON writers outside Python refuse lone surrogates.
    """
    return _SURROGATE.sub("\ufffd", text) if has_lone_surrogates(text) else text


def has_lone_surrogates(text: str) -> bool:
    """Return whether ``text`` is no valid Unicode, as a file's name may be."""
    if text.isascii():
        return False
    try:
        text.encode()  # an order of magnitude faster than searching with a pattern
    except UnicodeEncodeError:
        return True
    return False


def objection(says: str) -> Exception:
    """Return the error for a validator to raise; ``says`` continues behind the field's name."""
    from pydantic_core import PydanticCustomError

    return PydanticCustomError("objection", "{says}", {"says": says})


def read(kind: type[T], data: object, where: str = "", whole: str = "body") -> T:
    """Return ``data``, parsed JSON, as a ``kind``; ``null`` counts as absent.

    Args:
        where: path of ``data`` in the message, for errors.
        whole: name of the whole message in errors.

    Raises:
        InvalidRequest: names the first unusable field, its value and what it must be.
    """
    from pydantic import ValidationError

    try:
        return cast(T, _adapter(cast(Any, kind)).validate_python(_without_nulls(data)))
    except ValidationError as error:
        raise InvalidRequest(_sentence(error.errors(include_url=False)[0], where, whole)) from None
    except RecursionError:
        raise InvalidRequest(f"'{where or whole}' {_TOO_DEEP}. Send a flatter one.") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def _without_nulls(data: object) -> object:
    if isinstance(data, dict):
        return {key: _without_nulls(one) for key, one in data.items() if one is not None}
    return [_without_nulls(one) for one in data] if isinstance(data, list) else data


def between(name: str, value: int, lowest: int, highest: int) -> None:
    """Check bounds that depend on a setting or on another field.

    Raises:
        InvalidRequest: ``value`` is not within them.
    """
    if not lowest <= value <= highest:
        raise InvalidRequest(
            f"'{name}' must be between {lowest} and {highest}, not {brief(value)}."
        )


_MUST_BE = {
    "string_type": "a string, not {kind}",
    "bool_type": "true or false, not {value}",
    "int_type": "a whole number, not {value}",
    "int_from_float": "a whole number, not {value}",
    "int_parsing": "a whole number, not {value}",
    "float_type": "a number, not {value}",
    "literal_error": "one of {expected}, not {value}",
    "tuple_type": "an array, not {kind}",
    "dict_type": "an object, not {kind}",
    "dataclass_type": "an object, not {kind}",
    "model_type": "an object, not {kind}",
    "too_long": "an array of {max_length}, not of {actual_length}",
}


def _sentence(error: ErrorDetails, where: str, whole: str) -> str:
    name, value, context = where, error["input"], error.get("ctx", {})
    for part in error["loc"]:
        name += f"[{part}]" if isinstance(part, int) else f".{part}"
    name = f"'{name.removeprefix('.')[:80] or whole}'"
    if error["type"] == "string_unicode":  # a field's name, or what must be one of some words
        return f"{name} holds half a surrogate pair. Send valid Unicode."
    if error["type"] == "objection":
        return f"{name} {error['msg']}"
    if error["type"] == "missing":
        return f"{name} is missing. Add it to the request."
    if error["type"] == "unexpected_keyword_argument":
        return f"{name} is not a field here. Leave it out, or bring both sides to one release."
    if error["type"] == "float_type" and type(value) is int:
        return f"{name} must be finite, not {brief(value)}."
    if error["type"] == "literal_error":
        context = {"expected": context["expected"].replace(" or ", ", ")}
    if error["type"] not in _MUST_BE:
        return f"{name} cannot be used: {error['msg']}. It is {brief(value)}."
    says = _MUST_BE[error["type"]]
    return f"{name} must be {says.format(kind=json_type(value), value=brief(value), **context)}."


def brief(value: object) -> str:
    """Return a value for a message, never longer than a line."""
    text = repr(value) if not isinstance(value, int) or abs(value) < 10**40 else "a huge number"
    return text if len(text) <= 60 else text[:57] + "..."


def json_type(value: object) -> str:
    """Return the JSON name of a value's type, for messages."""
    if value is None:
        return "null"
    names = {bool: "boolean", int: "number", float: "number", str: "string", list: "array"}
    return names.get(type(value), "object")


_TOO_DEEP = f"is nested too deeply, deeper than {MAX_DEPTH} levels"


def parse_json(body: bytes) -> Json:
    """Return the JSON object in ``body``.

    Raises:
        InvalidRequest: the bytes are not UTF-8, not JSON, nested too deeply, or not an object.
    """
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InvalidRequest(
            f"The body is not valid UTF-8 (byte 0x{body[error.start]:02x} at offset "
            f"{error.start}). Send JSON encoded as UTF-8."
        ) from None
    try:
        value = load_json(text, parse_float)
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"The body is not valid JSON: {error.msg} at line {error.lineno}, column "
            f"{error.colno}. Send one JSON object."
        ) from None
    except ValueError as error:
        raise InvalidRequest(f"The body cannot be used: it {error}. Send a JSON object.") from None
    if not isinstance(value, dict):
        raise InvalidRequest(f"The body is a JSON {json_type(value)}. Send a JSON object.")
    return value


def load_json(text: str, read_float: Callable[[str], float] = float) -> object:
    """Return the JSON value in ``text``, such as an answer of the model.

    Raises:
        json.JSONDecodeError: it is not JSON.
        ValueError: it has a number that cannot be read, or is nested deeper than
            :data:`MAX_DEPTH`; the message continues behind the name of the text.
    """
    try:
        value: object = json.loads(text, parse_constant=_refuse_constant, parse_float=read_float)
    except json.JSONDecodeError:
        raise
    except RecursionError:
        raise ValueError(_TOO_DEEP) from None
    except ValueError as error:  # an integer of thousands of digits, or NaN
        raise ValueError(f"holds a number that cannot be read ({error})") from None
    if text.count("[") + text.count("{") > MAX_DEPTH and _is_too_deep(value):
        raise ValueError(_TOO_DEEP)
    return value


def _is_too_deep(value: object) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else cast("list[Any]", outer))
            if isinstance(inner, dict | list)
        ]
        if not level:
            return False
    return True


def dump_json(value: object, name: str) -> str:
    """Return a value of a request as JSON that other readers of JSON accept.

    Args:
        name: of the field, for errors.

    Raises:
        InvalidRequest: it holds a number that is not finite, such as 1e400.
    """
    try:
        return without_surrogates(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except ValueError:
        raise InvalidRequest(f"'{name}' holds a number that is not finite. Send another.") from None


def object_of(data: bytes) -> Json:
    """Return the JSON object in ``data``, or an empty one if there is none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def parse_float(text: str) -> float:
    """Parse a JSON number with a point; 64.0 is an integer, because some clients write all so."""
    value = float(text)
    return int(value) if value.is_integer() and abs(value) <= MAX_INTEGER else value
