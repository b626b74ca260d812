"""Next edits over scripted models, as their tests use them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from redraft.model.decoding.candidates import Field, Proposal, effort_for
from redraft.model.decoding.denoise import Denoised, plan_for
from redraft.model.decoding.judged_edits import write_edits
from redraft.model.decoding.plan import AnswerLimits, Brief, Plan
from redraft.model.edits.hunks import recent_edit
from redraft.model.predict import Model, predict
from redraft.model.prompt.tokens import EDIT, Tokenizer
from redraft.model.records import (
    EditRequest,
    Prediction,
    RecentEdit,
)
from redraft.model.runtime.backend import Backend
from redraft.model.runtime.prefix_cache import PrefixCache

from support.fake_answers import Mixture
from support.fake_backend import (
    SPECIAL,
    VOCAB,
    FakeBackend,
    fake_tokenizer,
    ids,
    small_config,
)

PLAIN = plan_for("medium")


TOKENIZER = fake_tokenizer()


MARK = TOKENIZER.mark(EDIT)


TEXT = "def f(x):\n    return x\n\nprint(f(1))\n"


REQUEST = EditRequest("next_edit", "a.py", TEXT, 0, max_tokens=60, min_tokens=1)


def clock() -> float:
    return 0.0


def model_of(answers: Mapping[str, float]) -> Model:
    mixture = Mixture(answers, MARK)
    return over(FakeBackend(mixture, small_config(8, "ar"), mixture.causal))


def over(backend: Backend, tokenizer: Tokenizer = TOKENIZER) -> Model:
    return Model("fake", backend, tokenizer, PrefixCache(backend, 1 << 24), 1024)


def asked(
    answers: Mapping[str, float],
    edits: Sequence[tuple[int, str]] = (),
    **changes: object,
) -> Prediction:
    """What comes of a request; ``edits``: lines of the text as they were, which became what they
    are now."""
    request = dataclasses.replace(REQUEST, **changes)  # type: ignore[arg-type]
    request = dataclasses.replace(request, edits=history(request.text, edits))
    return predict(model_of(answers), request, clock)


def history(text: str, edits: Sequence[tuple[int, str]]) -> tuple[RecentEdit, ...]:
    lines = text.split("\n")
    made = []
    for line, old in edits:
        before = [*lines[:line], old, *lines[line + 1 :]]
        made.append(recent_edit("a.py", before, line, line + 1, (lines[line],)))
    return tuple(made)


CALLS = "def shown(x):\n    return x\n\nprint(show(1))\n\nprint(show(2))\n"


RENAMED = [(0, "def show(x):")]


PROMPT = [*range(SPECIAL, SPECIAL + 40), MARK]


RANGE = {char: SPECIAL + ord(char) for char in "0123456789-\n"}


FIELD = Field(
    count=12,
    cursor=3,
    chars=RANGE,
    lines=lambda first, last: ids("same\n" * (last - first + 1)),
    proposals=(
        Proposal(2, 3, tuple(ids("a = b\n")), 0.2),
        Proposal(12, 12, tuple(ids("a longer line than a canvas\n")), 0.1),
    ),
)


def written(
    backend: FakeBackend,
    plan: Plan = PLAIN,
    proposals: Sequence[Proposal] = (),
    wanted: int = 4,
    late: Callable[[], bool] = lambda: False,
) -> Denoised:
    sequence = backend.open(400)
    sequence.extend(np.asarray(PROMPT[:-1], dtype=np.int64))
    brief = Brief(backend.config, VOCAB, plan, AnswerLimits(24, min_tokens=1))
    field = dataclasses.replace(FIELD, proposals=tuple(proposals))
    rng = np.random.default_rng(0)
    effort = effort_for("medium", wanted)
    effort = dataclasses.replace(effort, wanted=wanted, hopeless=-math.inf)  # noise is no better
    result = write_edits(sequence, PROMPT[-1], brief, field, effort, rng, late=late)
    assert sequence.tokens[: len(PROMPT) - 1] == PROMPT[:-1]
    return result
