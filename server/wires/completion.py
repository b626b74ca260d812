"""What the completion formats (OpenAI's and Mercury's) share: fields in, choices and usage out.

Texts of clients may have ``\\r\\n`` line ends; inside there is only ``\\n``. Knows nothing of HTTP.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from redraft.model.errors import InvalidRequest, UnknownModel
from redraft.model.records import (
    Candidate,
    CanvasState,
    EditRequest,
    ModelStatus,
    Prediction,
)
from redraft.model.wire import Fields, Json, check_text

from ..settings import Settings

FINISH_REASONS = {"end": "stop", "stop": "stop", "length": "length"}

#: Name shown to the model where the client does not say which file it is.
NO_PATH = "untitled"


@dataclass(frozen=True, slots=True)
class Ask:
    """A completion request, understood."""

    request: EditRequest | None  # None: nothing to compute, the answer is empty
    model: str | None
    stream: bool
    include_usage: bool  # a stream ends with a chunk of usage
    diffusing: bool  # a stream shows each canvas state
    newline: str  # the client's line end


def read_ask(fields: Fields, middle: tuple[str, str] | None, settings: Settings) -> Ask:
    """The sampling fields of a completion request around ``middle``, (before, after) the cursor.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    stream_options = "stream_options" in fields
    options = fields.object("stream_options", Fields) if stream_options else Fields({})
    temperature = fields.number("temperature", 0, 2, 0.0)
    top_p = fields.number("top_p", 0, 1, 1.0)
    seed = fields.integer("seed", -(2**63), 2**64 - 1, None)
    default = EditRequest(task="infill", path=NO_PATH, text="", cursor=0)
    request = replace(
        default,
        max_tokens=fields.integer("max_tokens", 1, default=default.max_tokens),
        temperature=temperature,
        top_p=top_p,
        seed=None if seed is None else seed % 2**53,
        stop=_read_stop(fields, settings.max_stops),
        candidates=fields.integer("n", 1, settings.max_candidates, 1),
    )
    newline = "\n"
    if middle is not None:
        before, after = middle
        newline = "\r\n" if "\r\n" in before or "\r\n" in after else "\n"
        before = _inside(before)
        request = replace(request, text=before + _inside(after), cursor=len(before))
    return Ask(
        request=None if middle is None else request,
        model=fields.text("model", None),
        stream=fields.flag("stream", False),
        include_usage=options.flag("include_usage", False),
        diffusing=fields.flag("diffusing", False),
        newline=newline,
    )


def _inside(text: str) -> str:
    return text.replace("\r\n", "\n")


def _read_stop(fields: Fields, most: int) -> tuple[str, ...]:
    def one(value: object, name: str) -> str:
        text = check_text(value, name)
        if not text:
            raise InvalidRequest(f"'{name}' is empty. Leave it out, or say where to stop.")
        return _inside(text)

    if "stop" not in fields:
        return ()
    value = fields.raw("stop")
    if isinstance(value, str):
        return (one(value, "stop"),)
    stops = fields.array("stop", one)
    if len(stops) > most:
        raise InvalidRequest(f"'stop' has {len(stops)} strings, at most {most} are allowed.")
    return stops


def check_model(name: str | None, status: ModelStatus, accepted: Callable[[str], bool]) -> None:
    """Refuse a model that is not here; no name at all means the one that is.

    Raises:
        UnknownModel: lists the names that exist.
    """
    names = model_names(status)
    if name is not None and name not in names and not accepted(name):
        raise UnknownModel(
            f"There is no model {name[:100]!r} here. The models are {', '.join(names)}."
        )


def model_names(status: ModelStatus) -> list[str]:
    """What clients may call the model: its name, and its name with the variant."""
    name, _, variant = status.model.partition(" ")
    return [name, f"{name}-{variant}"] if variant else [name]


@dataclass(frozen=True, slots=True)
class Head:
    """The fields that open every answer and every chunk of a stream."""

    id: str
    created: int  # Unix time, seconds
    model: str

    @classmethod
    def new(cls, model: str) -> Head:
        return cls(f"cmpl-{uuid.uuid4().hex}", int(time.time()), model)

    def body(self, choices: list[Json]) -> Json:
        return {
            "id": self.id,
            "object": "text_completion",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }


def answers(prediction: Prediction | None, newline: str) -> list[tuple[str, str]]:
    """(text, finish reason) per choice; a prediction without candidates is one empty choice."""

    def answer(candidate: Candidate) -> tuple[str, str]:
        return outside(candidate.text, newline), FINISH_REASONS[candidate.finish]

    if prediction is None or not prediction.candidates:
        return [("", "stop")]
    return [answer(candidate) for candidate in prediction.candidates]


def outside(text: str, newline: str) -> str:
    return text.replace("\n", newline) if newline != "\n" else text


def shown(state: CanvasState, newline: str) -> str:
    """The whole answer as it stands, masked positions as light shades."""
    return outside(state.show(), newline)


def usage(prediction: Prediction | None) -> Json:
    """Token counts; every candidate's tokens were computed, so all of them count."""
    if prediction is None:
        prompt = reused = completion = 0
    else:
        prompt, reused = prediction.stats.prompt_tokens, prediction.stats.reused_tokens
        completion = sum(candidate.tokens for candidate in prediction.candidates)
    return {
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "total_tokens": prompt + completion,
        "prompt_tokens_details": {"cached_tokens": reused},
        "cached_input_tokens": reused,
    }
