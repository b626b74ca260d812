"""What an :class:`EditRequest` must fulfil before the engine looks at it.

Every front end ends up here, so a value that slipped through one of them is refused with its field
name, what it was and what it must be. Knows nothing of models.
"""

from __future__ import annotations

from dataclasses import asdict

from ..errors import InvalidRequest
from ..reading import between, brief, read
from ..records import (
    MAX_ANSWER_TOKENS,
    MAX_CANDIDATES,
    MAX_CONTEXT_TOKENS,
    MAX_STOPS,
    MIN_CONTEXT_TOKENS,
    EditRequest,
)


def check_request(request: EditRequest) -> None:
    """
    Raises:
        InvalidRequest: names the first field that cannot be used, its value and what it must be.
    """
    read(EditRequest, asdict(request))
    check_places(request)
    if (request.task == "chat") != (request.conversation is not None):
        raise InvalidRequest("'conversation' belongs to the task 'chat', and to no other.")
    if request.grammar is not None and request.task == "next_edit":
        raise InvalidRequest("'grammar' cannot bind a next edit. Ask for an infill.")
    between("max_tokens", request.max_tokens, 1, MAX_ANSWER_TOKENS)
    between("min_tokens", request.min_tokens, 0, request.max_tokens)
    between("candidates", request.candidates, 1, MAX_CANDIDATES)
    if request.context_tokens is not None:
        between("context_tokens", request.context_tokens, MIN_CONTEXT_TOKENS, MAX_CONTEXT_TOKENS)
    if len(request.stop) > MAX_STOPS:
        raise InvalidRequest(f"'stop' has {len(request.stop)} entries. Send at most {MAX_STOPS}.")
    for index, stop in enumerate(request.stop):
        if not stop:
            raise InvalidRequest(f"'stop[{index}]' is empty. Leave it out.")
    at = request.text.count("\n", 0, request.cursor)
    if request.region is not None and not request.region[0] <= at < request.region[1]:
        first, last = request.region
        raise InvalidRequest(
            f"'region' is lines [{first}, {last}) (0-based), but the cursor is in line {at}. "
            "Send a region that holds the cursor, or none."
        )


def check_places(request: EditRequest, where: str = "") -> None:
    """Cursor and region lie within the text.

    Raises:
        InvalidRequest: names the one that does not.
    """
    between(f"{where}cursor", request.cursor, 0, len(request.text))
    if request.region is None:
        return
    lines = request.text.count("\n") + 1
    for index, line in enumerate(request.region):
        between(f"{where}region[{index}]", line, 0, lines)
    if request.region[0] > request.region[1]:
        raise InvalidRequest(
            f"'{where}region' must be [first, last) with first <= last, "
            f"not {brief(list(request.region))}."
        )
