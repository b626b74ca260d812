"""What the completion formats (OpenAI's and Mercury's) share: fields in, choices and usage out.

Knows nothing of HTTP.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass

from redraft.model.edits.gate import EAGERNESS, threshold
from redraft.model.engine.record_json import Fields, Json, check_text
from redraft.model.errors import InvalidRequest, UnknownModel
from redraft.model.records import MAX_TEMPERATURE, EditRequest, ModelStatus, Prediction
from redraft.model.weights.registry import list_models

from ..http.service import Service
from ..settings import Settings
from .answers import Answer, Question, question
from .prompts.markers import NO_PATH, Middle, Rewrite, Unknown
from .prompts.regions import MAX_EDIT_TOKENS, unix

#: What the names of our own models begin with.
OUR_NAMES = "redraft-"

#: Of an infill whose client does not say how much it wants; the record's own default.
INFILL_TOKENS = EditRequest(task="infill", path="", text="", cursor=0).max_tokens


@dataclass(frozen=True, slots=True)
class Ask:
    """A completion request, understood."""

    question: Question
    model: str
    choices: int  # as many are wanted
    stream: bool
    include_usage: bool  # a stream ends with a chunk of usage
    diffusing: bool  # a stream shows each canvas state


def read_ask(fields: Fields, meant: Middle | Rewrite | Unknown, settings: Settings) -> Ask:
    """The sampling fields of a completion request for ``meant``.

    Raises:
        InvalidRequest: names the field and what it must be.
    """
    stream_options = "stream_options" in fields
    options = fields.object("stream_options", Fields) if stream_options else Fields({})
    choices = fields.integer("n", 1, settings.max_candidates, 1)
    template = read_sampling(
        fields,
        max_tokens=fields.integer("max_tokens", 1, default=default_tokens(meant)),
        stop=read_stop(fields, settings.max_stops),
        candidates=choices,
    )
    return Ask(
        question=question(meant, template, read_threshold(fields, settings)),
        model=fields.text("model", ""),
        choices=choices,
        stream=fields.flag("stream", False),
        include_usage=options.flag("include_usage", False),
        diffusing=fields.flag("diffusing", False),
    )


#: What one client sends in place of an empty suffix.
_NO_SUFFIX = "<|endoftext|>"


def read_suffix(fields: Fields, *default: str) -> str:
    """The text behind the gap."""
    suffix: str = fields.text("suffix", *default)
    return "" if suffix == _NO_SUFFIX else suffix


def default_tokens(meant: Middle | Rewrite | Unknown) -> int:
    """Of clients that do not say how much they want: a few lines of infill, or a whole edit."""
    return MAX_EDIT_TOKENS if isinstance(meant, Rewrite) else INFILL_TOKENS


def read_sampling(
    fields: Fields,
    max_tokens: int,
    stop: tuple[str, ...],
    candidates: int = 1,
) -> EditRequest:
    """The fields that all completion formats call alike, in a request that asks nothing yet."""
    temperature = fields.number("temperature", 0, MAX_TEMPERATURE, 0.0)
    top_p = fields.number("top_p", 0, 1, 1.0)
    seed = fields.integer("seed", -(2**63), 2**64 - 1, None)
    return EditRequest(
        task="infill",
        path=NO_PATH,
        text="",
        cursor=0,
        max_tokens=max_tokens,
        min_tokens=fields.integer("min_tokens", 0, max_tokens, 0),  # as vLLM has it
        temperature=temperature,
        top_p=top_p,
        seed=None if seed is None else seed % 2**53,
        stop=stop,
        candidates=candidates,
    )


def read_threshold(fields: Fields, settings: Settings) -> float:
    """How sure an edit must be to be given: as the request's ``eagerness`` says, ours in addition
    to every format, or else the server's."""
    eagerness = fields.one_of("eagerness", EAGERNESS, settings.eagerness)
    return threshold(eagerness)


def read_stop(fields: Fields, most: int) -> tuple[str, ...]:
    def one(value: object, name: str) -> str:
        text = check_text(value, name)
        if not text:
            raise InvalidRequest(f"'{name}' is empty. Leave it out, or say where to stop.")
        return unix(text)

    if "stop" not in fields:
        return ()
    value = fields.raw("stop")
    if isinstance(value, str):
        return (one(value, "stop"),)
    stops = fields.array("stop", one)
    if len(stops) > most:
        raise InvalidRequest(f"'stop' has {len(stops)} strings, at most {most} are allowed.")
    return stops


def check_model(name: str, status: ModelStatus) -> None:
    """Refuse a model of ours that is not the loaded one.

    Any other name, or none, means the loaded one: many clients have names of other models built in,
    or choose the format of their prompt by it, and their users cannot change that.

    Raises:
        UnknownModel: lists the names that exist.
    """
    if name not in model_names(status) and _is_ours(name):
        raise unknown_model(name, status)


def unknown_model(name: str, status: ModelStatus) -> UnknownModel:
    names = ", ".join(model_names(status))
    return UnknownModel(
        f"There is no model {name[:100]!r} here. The models are {names}. Name one of them or none, "
        "or start Redraft with another one by --model."
    )


def _is_ours(name: str) -> bool:
    """Whether it can only mean a model of ours: by its beginning, or because one is installed here
    that is called so, its variant behind it or not."""
    if name.startswith(OUR_NAMES):
        return True
    installed = {model.name for model in list_models()} if name else set()
    return name in installed or name.rpartition("-")[0] in installed


def model_names(status: ModelStatus) -> list[str]:
    """What clients may call the model: its name, and its name with the variant."""
    name, _, variant = status.model.partition(" ")
    return [name, f"{name}-{variant}"] if variant else [name]


def loaded(status: ModelStatus) -> str:
    """What answers call the model."""
    return model_names(status)[0]


@dataclass(frozen=True, slots=True)
class Head:
    """The fields that open every answer and every chunk of a stream."""

    id: str
    created: int  # Unix time, seconds
    model: str

    @classmethod
    def new(cls, model: str, prefix: str = "cmpl-") -> Head:
        return cls(f"{prefix}{uuid.uuid4().hex}", int(time.time()), model)

    def body(self, choices: list[Json], kind: str = "text_completion") -> Json:
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }


def answered(service: Service, asked: Question, prediction: Prediction | None) -> list[Answer]:
    """The choices of an answer, best first, counted where nothing is suggested."""
    answers = asked.answers(prediction)
    if answers[0].abstained is not None:
        service.metrics.abstained(answers[0].abstained)
    return answers


def why(answer: Answer) -> Json:
    """Why an answer suggests nothing, for people and for machines; clients pass over fields they do
    not know."""
    if answer.abstained is None:
        return {}
    return {"redraft": {"reason": answer.reason, "abstained": answer.abstained}}


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
