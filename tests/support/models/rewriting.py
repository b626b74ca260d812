"""Next edits over weights that know how likely each whole answer is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from redraft.model.edits.hunks import recent_edit
from redraft.model.predict import Model, predict, prompt_for
from redraft.model.prompts.format import Prompt
from redraft.model.records import EditRequest, Prediction, RecentEdit
from redraft.model.runtime.backend import FloatArray
from redraft.model.runtime.prefix_cache import PrefixCache

from support.models.fake_backend import (
    END,
    VOCAB,
    FakeBackend,
    Noise,
    fake_tokenizer,
    ids,
    small_config,
)

CONFIG = replace(small_config(8, "ar"), prompt_format="redraft-3")
TEXT = "def f(x):\n    return x\n\nprint(f(1))\n"
REQUEST = EditRequest("next_edit", "a.py", TEXT, 0, max_tokens=60, min_tokens=1)


class Answers:
    """A causal pass over a distribution of whole answers; other texts go on at random."""

    def __init__(self, weights: dict[str, float], prompt: int = 0) -> None:
        self.weights = {(*ids(text), END): weight for text, weight in weights.items()}
        self.prompt = prompt

    def __call__(self, context: list[int]) -> FloatArray:
        written = tuple(context[self.prompt :])
        row = np.full(len(VOCAB), 1e-7)
        for text, weight in self.weights.items():
            if text[: len(written)] == written and len(text) > len(written):
                row[text[len(written)]] += weight
        return np.log(row / row.sum()).astype(np.float32)


def model_of(weights: dict[str, float], request: EditRequest) -> Model:
    """Return a model that gives each text of the region the probability of its weight."""
    causal = Answers(weights)
    backend = FakeBackend(Noise(), CONFIG, causal)
    model = Model("fake", backend, fake_tokenizer(), PrefixCache(backend, 1 << 24), 1_024)
    prompt = prompt_for(model, request)
    assert isinstance(prompt, Prompt)
    causal.prompt = len(prompt.tokens)
    return model


def asked(
    weights: dict[str, float], edits: Sequence[tuple[int, str]] = (), **changes: object
) -> Prediction:
    """Return the prediction for a request.

    Args:
        edits: lines of the text as they were, which became what they are now.
    """
    request = replace(REQUEST, **changes)  # type: ignore[arg-type]
    request = replace(request, edits=history(request.text, edits))
    return predict(model_of(weights, request), request, time.perf_counter)


def history(text: str, edits: Sequence[tuple[int, str]]) -> tuple[RecentEdit, ...]:
    """Return the edits that made ``text`` of lines that were others."""
    lines = text.split("\n")
    made = []
    for line, old in edits:
        before = [*lines[:line], old, *lines[line + 1 :]]
        made.append(recent_edit("a.py", before, line, line + 1, (lines[line],)))
    return tuple(made)
