"""What an :class:`EditRequest` must fulfil before the engine looks at it.

Every front end ends up here, so a value that slipped through one of them is refused with its field
name, what it was and what it must be. Knows nothing of models.
"""

from __future__ import annotations

import math
from typing import get_args

from ..errors import InvalidRequest
from ..records import (
    MAX_ANSWER_TOKENS,
    MAX_CANDIDATES,
    MAX_CONTEXT_TOKENS,
    MAX_STOPS,
    MAX_TEMPERATURE,
    MIN_CONTEXT_TOKENS,
    EditRequest,
    Quality,
    Task,
)
from .record_json import brief, check_text


def check_request(request: EditRequest) -> None:
    """
    Raises:
        InvalidRequest: names the first field that cannot be used, its value and what it must be.
    """
    _one_of("task", request.task, get_args(Task))
    _one_of("quality", request.quality, get_args(Quality))
    for name in ("path", "text", "language"):
        check_text(getattr(request, name), name)
    _whole("cursor", request.cursor, 0, len(request.text))
    _whole("max_tokens", request.max_tokens, 1, MAX_ANSWER_TOKENS)
    _whole("min_tokens", request.min_tokens, 0, request.max_tokens)
    _whole("candidates", request.candidates, 1, MAX_CANDIDATES)
    if request.max_lines is not None:
        _whole("max_lines", request.max_lines, 1, None)
    if request.context_tokens is not None:
        _whole("context_tokens", request.context_tokens, MIN_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS)
    if request.seed is not None:
        _whole("seed", request.seed, 0, None)
    _number("temperature", request.temperature, 0.0, MAX_TEMPERATURE)
    _number("top_p", request.top_p, 0.0, 1.0)
    _stops(request.stop)
    _region(request)
    if (request.task == "chat") != (request.conversation is not None):
        raise InvalidRequest("'conversation' belongs to the task 'chat', and to no other.")
    if request.grammar is not None and request.task == "next_edit":
        raise InvalidRequest("'grammar' cannot bind a next edit. Ask for an infill.")
    for index, related in enumerate(request.related):
        check_text(related.path, f"related[{index}].path")
        check_text(related.text, f"related[{index}].text")
    for index, diagnostic in enumerate(request.diagnostics):
        check_text(diagnostic.message, f"diagnostics[{index}].message")
    for index, edit in enumerate(request.edits):
        check_text(edit.path, f"edits[{index}].path")
        check_text(edit.diff, f"edits[{index}].diff")
        _whole(f"edits[{index}].line", edit.line, 0, None)


def _stops(stops: tuple[str, ...]) -> None:
    if len(stops) > MAX_STOPS:
        raise InvalidRequest(f"'stop' has {len(stops)} entries. Send at most {MAX_STOPS}.")
    for index, stop in enumerate(stops):
        check_text(stop, f"stop[{index}]")
        if not stop:
            raise InvalidRequest(f"'stop[{index}]' is empty. Leave it out.")


def _region(request: EditRequest) -> None:
    if request.region is None:
        return
    lines = request.text.count("\n") + 1
    first, last = request.region
    _whole("region[0]", first, 0, lines)
    _whole("region[1]", last, 0, lines)
    at = request.text.count("\n", 0, request.cursor)
    if not first <= at < last:
        raise InvalidRequest(
            f"'region' is lines [{first}, {last}) (0-based), but the cursor is in line {at}. "
            "Send a region that holds the cursor, or none."
        )


def _one_of(name: str, value: object, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InvalidRequest(f"'{name}' must be one of {', '.join(allowed)}, not {brief(value)}.")


def _whole(name: str, value: object, lowest: int, highest: int | None) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise InvalidRequest(f"'{name}' must be a whole number, not {brief(value)}.")
    _within(name, value, lowest, highest)


def _number(name: str, value: object, lowest: float, highest: float) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        raise InvalidRequest(f"'{name}' must be a number, not {brief(value)}.")
    if not math.isfinite(value):
        raise InvalidRequest(f"'{name}' must be finite, not {value}.")
    _within(name, value, lowest, highest)


def _within(name: str, value: float, lowest: float, highest: float | None) -> None:
    if value < lowest or (highest is not None and value > highest):
        upto = f"at least {lowest}" if highest is None else f"from {lowest} to {highest}"
        raise InvalidRequest(f"'{name}' must be {upto}, not {brief(value)}.")
