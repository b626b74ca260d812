"""Likelihood, in nats, of the edit that was really made, whether a model writes that edit or not.

Finer than counting edits that are right, and cheaper: one causal pass over the true answer behind
the prompt. Weights that read in both directions, and formats of others, have no such figure.
"""

from __future__ import annotations

import numpy as np
from redraft.model.decode.regions import region_text
from redraft.model.predict import Model, prefill, prompt_for, room_for
from redraft.model.prompts.format import Prompt
from redraft.model.prompts.registry import REDRAFT_3
from redraft.model.records import EditRequest


def has_likelihood(model: Model) -> bool:
    """Return whether the weights write from left to right, in our format."""
    config = model.backend.config
    return config.verifier == "ar" and config.prompt_format == REDRAFT_3


def prompt_of(model: Model, request: EditRequest) -> Prompt:
    """Return the prompt of ``request`` as it is served, with the region where it is served.

    Args:
        model: weights for which :func:`has_likelihood` holds.
    """
    prompt = prompt_for(model, request)
    assert isinstance(prompt, Prompt), "our own formats decline nothing that these weights write"
    return prompt


def nats_of(
    model: Model, request: EditRequest, first: int, last: int, new: list[str]
) -> float | None:
    """Return the nats of "lines [first, last) become ``new``, and nothing else changes".

    Args:
        first: 0-based line of ``request.text``.

    Returns:
        None where the lines are not within the prompt's region.
    """
    prompt = prompt_of(model, request)
    top, bottom = prompt.region
    if not (top <= first and last <= bottom):
        return None
    answer = model.tokenizer.encode(region_text(prompt, first, last, new))
    return _nats(model, request, prompt, answer)


def nats_of_nothing(model: Model, request: EditRequest) -> float:
    """Return the nats of "no edit"."""
    prompt = prompt_of(model, request)
    top = prompt.region[0]
    same = model.tokenizer.encode(region_text(prompt, top, top, ()))
    return _nats(model, request, prompt, same)


def _nats(model: Model, request: EditRequest, prompt: Prompt, answer: list[int]) -> float:
    context = prompt.tokens[:-1]
    text = [prompt.tokens[-1], *answer, model.backend.config.end_token]
    room = max(room_for(request, model.backend.config), len(text))
    with model.cache.acquire(context, room) as lease:
        prefill(lease.sequence, context[lease.reused :], lambda: False)
        said = lease.sequence.score(np.asarray(text, dtype=np.int64))
        lease.sequence.truncate(len(context))
    return -float(said.target_logprob[:-1].sum())
