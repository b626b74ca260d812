"""What the completion formats (OpenAI's and Mercury's) share: fields in, choices and usage out.

Knows nothing of HTTP.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator
from redraft.model.errors import InvalidRequest, UnknownModel
from redraft.model.gate.eagerness import Eagerness, threshold
from redraft.model.prompts.excerpt import MAX_EDIT_TOKENS, NO_PATH, Excerpt, unix
from redraft.model.prompts.fim import Middle
from redraft.model.prompts.registry import Unknown
from redraft.model.records import EditRequest, ModelStatus, Prediction, Temperature, TopP
from redraft.model.validation import (
    AtLeastOne,
    Exactly,
    Flag,
    Json,
    Text,
    Whole,
    between,
    objection,
)
from redraft.model.weights.registry import check_not_removed, list_models

from ..http.service import Service
from ..settings import Settings
from .answers import Answer, Question, question

#: What the names of our own models begin with.
OUR_NAMES = "redraft-"

#: Of an infill whose client does not say how much it wants; the record's own default.
INFILL_TOKENS = EditRequest(task="infill", path="", text="", cursor=0).max_tokens


def _stop(text: str) -> str:
    if not text:
        raise objection("is empty. Leave it out, or say where to stop.")
    return unix(text)


def _several(value: object) -> object:
    return [value] if isinstance(value, str) else value


Stops = Annotated[tuple[Annotated[Text, AfterValidator(_stop)], ...], BeforeValidator(_several)]
Seed = Annotated[int, Exactly(-(2**63), 2**64 - 1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """The fields of a body that all formats call alike."""

    temperature: Temperature = 0.0
    top_p: TopP = 1.0
    seed: Seed | None = None
    min_tokens: Whole = 0  # as vLLM has it
    stop: Stops = ()

    def template(
        self, max_tokens: int, most_stops: int, candidates: int = 1, where: str = ""
    ) -> EditRequest:
        """A request that asks nothing yet.

        Args:
            where: the fields' place in the body, for errors; such as "options.".

        Raises:
            InvalidRequest: names the field and what it must be.
        """
        between(f"{where}min_tokens", self.min_tokens, 0, max_tokens)
        if len(self.stop) > most_stops:
            raise InvalidRequest(
                f"'{where}stop' has {len(self.stop)} strings, at most {most_stops} are allowed."
            )
        return EditRequest(
            task="infill",
            path=NO_PATH,
            text="",
            cursor=0,
            max_tokens=max_tokens,
            min_tokens=self.min_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            seed=None if self.seed is None else self.seed % 2**53,
            stop=self.stop,
            candidates=candidates,
        )


@dataclass(frozen=True, slots=True)
class StreamOptions:
    include_usage: Flag = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest(Sampling):
    """The fields of a body that OpenAI's and Mercury's formats share; ``diffusing`` is Mercury's
    and ``eagerness`` ours in addition to both."""

    model: Text = ""
    n: Annotated[int, Exactly()] = 1
    max_tokens: AtLeastOne | None = None
    stream: Flag = False
    stream_options: StreamOptions = StreamOptions()
    diffusing: Flag = False
    eagerness: Eagerness | None = None


@dataclass(frozen=True, slots=True)
class CompletionAsk:
    """A completion request, understood."""

    question: Question
    body: CompletionRequest


def ask_for(
    body: CompletionRequest, meant: Middle | Excerpt | Unknown, settings: Settings
) -> CompletionAsk:
    """
    Raises:
        InvalidRequest: names the field and what it must be.
    """
    between("n", body.n, 1, settings.max_candidates)
    wanted = default_tokens(meant) if body.max_tokens is None else body.max_tokens
    template = body.template(wanted, settings.max_stops, body.n)
    return CompletionAsk(question(meant, template, edit_threshold(body.eagerness, settings)), body)


#: What one client sends in place of an empty suffix.
_NO_SUFFIX = "<|endoftext|>"


def behind_gap(suffix: str) -> str:
    """The text that ``suffix`` means."""
    return "" if suffix == _NO_SUFFIX else suffix


def default_tokens(meant: Middle | Excerpt | Unknown) -> int:
    """Of clients that do not say how much they want: a few lines of infill, or a whole edit."""
    return MAX_EDIT_TOKENS if isinstance(meant, Excerpt) else INFILL_TOKENS


def edit_threshold(eagerness: Eagerness | None, settings: Settings) -> float:
    """How sure an edit must be to be given: as the request says, or else the server."""
    return threshold(eagerness or settings.eagerness)


def check_model(name: str, status: ModelStatus) -> None:
    """Refuse a model of ours that is not the loaded one.

    Any other name, or none, means the loaded one: many clients have names of other models built in,
    or choose the format of their prompt by it, and their users cannot change that.

    Raises:
        UnknownModel: lists the names that exist.
    """
    if name not in model_names(status) and _is_ours(name):
        check_not_removed(name)
        raise unknown_model(name, model_names(status))


def unknown_model(name: str, names: Sequence[str]) -> UnknownModel:
    """Return the error for a name that is none of ``names``."""
    return UnknownModel(
        f"There is no model {name[:100]!r} here. The models are {', '.join(names)}. "
        "Name one of them or none, or start Redraft with another one by --model."
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
