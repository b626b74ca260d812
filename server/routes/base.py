"""Fields and checks that several API families share."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, TypeVar

from aiohttp import web
from pydantic import AfterValidator, BeforeValidator
from redraft.model.errors import InvalidRequest, UnknownModel
from redraft.model.gate.eagerness import Eagerness, threshold
from redraft.model.prompts.excerpt import MAX_EDIT_TOKENS, NO_PATH, Excerpt, unix
from redraft.model.prompts.fim import Middle
from redraft.model.prompts.registry import Unknown
from redraft.model.records import (
    MAX_STOPS,
    EditRequest,
    ModelStatus,
    Prediction,
    Temperature,
    TopP,
)
from redraft.model.validation import (
    AtLeastOne,
    Exactly,
    Flag,
    Json,
    Text,
    Whole,
    between,
    objection,
    read,
)
from redraft.model.weights.catalog import check_not_removed, list_models

from ..http.access import ENGINE, SETTINGS
from ..http.bodies import read_body
from ..http.prometheus import STAGES
from ..settings import Settings
from .constraints import constrain
from .prompt_questions import question
from .respond import HttpQuestion, Reply

#: First part of the names of our own models.
OUR_NAMES = "redraft-"

#: Default length of an infill, tokens.
INFILL_TOKENS = EditRequest(task="infill", path="", text="", cursor=0).max_tokens

#: One client sends this in place of an empty suffix.
_NO_SUFFIX = "<|endoftext|>"


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
    """The sampling fields that all API families name alike."""

    temperature: Temperature = 0.0
    top_p: TopP = 1.0
    seed: Seed | None = None
    min_tokens: Whole = 0  # as in vLLM
    stop: Stops = ()

    def template(self, max_tokens: int, candidates: int = 1, where: str = "") -> EditRequest:
        """Return a request with these fields and no text yet.

        Args:
            where: place of the fields in the body, for errors, such as "options.".

        Raises:
            InvalidRequest: names the field and what it must be.
        """
        between(f"{where}min_tokens", self.min_tokens, 0, max_tokens)
        if len(self.stop) > MAX_STOPS:
            raise InvalidRequest(
                f"'{where}stop' has {len(self.stop)} strings, at most {MAX_STOPS} are allowed."
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
    """``stream_options`` of OpenAI."""

    include_usage: Flag = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionBody(Sampling):
    """The fields that OpenAI's and Mercury's bodies share.

    ``diffusing`` is Mercury's; ``eagerness`` is ours.
    """

    model: Text = ""
    n: Annotated[int, Exactly()] = 1
    max_tokens: AtLeastOne | None = None
    stream: Flag = False
    stream_options: StreamOptions = StreamOptions()
    diffusing: Flag = False
    eagerness: Eagerness | None = None

    def question(self, prompt: Middle | Excerpt | Unknown, settings: Settings) -> HttpQuestion:
        """Return the question that ``prompt`` asks.

        Raises:
            InvalidRequest: names the field and what it must be.
        """
        between("n", self.n, 1, settings.max_candidates)
        wanted = default_tokens(prompt) if self.max_tokens is None else self.max_tokens
        template = self.template(wanted, self.n)
        return question(prompt, template, edit_threshold(self.eagerness, settings))


C = TypeVar("C", bound=CompletionBody)


def after_gap(suffix: str) -> str:
    """Return the text after the gap; one client sends a marker if there is none."""
    return "" if suffix == _NO_SUFFIX else suffix


def default_tokens(prompt: Middle | Excerpt | Unknown) -> int:
    """Return the default length: a few lines of an infill, or a whole edit."""
    return MAX_EDIT_TOKENS if isinstance(prompt, Excerpt) else INFILL_TOKENS


def edit_threshold(eagerness: Eagerness | None, settings: Settings) -> float:
    """Return the least score of an edit, from the request's or the server's eagerness."""
    return threshold(eagerness or settings.eagerness, "next_edit")


async def find_served_model(http: web.Request, name: str) -> str:
    """Return the name of the loaded model for an answer.

    Raises:
        UnknownModel: ``name`` is another model of ours.
    """
    status = await http.app[ENGINE].status()
    check_model(name, status)
    return name_loaded(status)


def check_model(name: str, status: ModelStatus) -> None:
    """Refuse a model of ours that is not the loaded one.

    Any other name, or none, means the loaded model. Many clients have names of other models
    built in, or choose the format of their prompt by the name, and their users cannot change it.

    Raises:
        UnknownModel: lists the names that exist.
    """
    if name not in model_names(status) and _is_ours(name):
        check_not_removed(name)
        raise no_such_model(name, model_names(status))


def no_such_model(name: str, names: Sequence[str]) -> UnknownModel:
    """Return the error for a name that is none of ``names``."""
    return UnknownModel(
        f"There is no model {name[:100]!r} here. The models are {', '.join(names)}. "
        "Name one of them or none, or start Redraft with another one by --model."
    )


def _is_ours(name: str) -> bool:
    """Return whether a name can only be a model of ours, with or without its variant."""
    if name.startswith(OUR_NAMES):
        return True
    installed = {model.name for model in list_models()} if name else set()
    return name in installed or name.rpartition("-")[0] in installed


def model_names(status: ModelStatus) -> list[str]:
    """Return the names of the loaded model, without and with its variant."""
    name, _, variant = status.model.partition(" ")
    return [name, f"{name}-{variant}"] if variant else [name]


def name_loaded(status: ModelStatus) -> str:
    """Return the name of the loaded model."""
    return model_names(status)[0]


@dataclass(frozen=True, slots=True)
class AnswerHead:
    """The first fields of every answer and of every chunk of a stream."""

    id: str
    created: int  # Unix time, seconds
    model: str

    @classmethod
    def new(cls, model: str, prefix: str = "cmpl-") -> AnswerHead:
        """Return a head with a new id."""
        return cls(f"{prefix}{uuid.uuid4().hex}", int(time.time()), model)

    def body(self, choices: list[Json], kind: str = "text_completion") -> Json:
        """Return an answer or a chunk with these choices."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }

    def chunk(
        self, choices: list[Json], kind: str, options: StreamOptions, used: Json | None
    ) -> Json:
        """Return a chunk; its usage, where it was asked for, is null in all but the last."""
        return self.body(choices, kind) | ({"usage": used} if options.include_usage else {})


async def read_completion(
    http: web.Request, kind: type[C], prompt_of: Callable[[C], Middle | Excerpt | Unknown]
) -> tuple[AnswerHead, C, HttpQuestion]:
    """Return the head of the answer to a body of this ``kind``, the body, and its question.

    Raises:
        InvalidRequest, UnknownModel: names the field and what it must be.
    """
    settings = http.app[SETTINGS]

    def ask(data: Json) -> tuple[C, HttpQuestion]:
        body = read(kind, data)
        return body, constrain(body.question(prompt_of(body), settings), data)

    body, asked = await read_body(http, ask)
    return AnswerHead.new(await find_served_model(http, body.model)), body, asked


def why(answer: Reply) -> Json:
    """Return the fields that say why an answer is empty. Clients ignore fields they do not know."""
    if answer.abstained is None:
        return {}
    return {"redraft": {"reason": answer.reason, "abstained": answer.abstained}}


def confidence_and_times(answer: Reply, prediction: Prediction | None) -> Json:
    """Return the confidence of an answer, and the time of each stage as llama.cpp names times."""
    times: Json = {}
    if prediction is not None:
        times = {f"{stage}_ms": getattr(prediction.stats, f"{stage}_ms") for stage in STAGES}
    return {"confidence": answer.confidence, "timings": times}


def usage(prediction: Prediction | None) -> Json:
    """Return the token counts. All candidates count, because all were computed."""
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
