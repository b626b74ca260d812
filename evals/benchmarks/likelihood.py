"""How likely a model finds the edit that was really made: nats per token, written out or not.

A finer measure than whether it writes that very edit, and many times cheaper: one causal pass over
the true answer behind the prompt. Only weights that were trained to write causally have it. Knows
nothing of commits.
"""

from __future__ import annotations

import numpy as np
from redraft.model.engine.answer import Model, prefill, room_for
from redraft.model.prompt.answers import encode_edit
from redraft.model.prompt.formats import FORMATS
from redraft.model.prompt.render import render
from redraft.model.records import EditRequest


def knows(model: Model) -> bool:
    """Were the weights trained to write causally, and answers as ours are?"""
    config = model.backend.config
    return config.verifier == "ar" and config.prompt_format not in FORMATS


def nats_of(
    model: Model, request: EditRequest, first: int, last: int, new: list[str]
) -> tuple[float, int] | None:
    """Nats that "lines [first, last) become ``new``, and that is all" costs, and its tokens, END
    included; None where these lines are not within the region.

    Args:
        first: 0-based line of ``request.text``.
    """
    config = model.backend.config
    prompt = render(
        request, model.tokenizer, config, request.context_tokens or model.context_tokens
    )
    top, bottom = prompt.region
    if not (top <= first and last <= bottom):
        return None
    answer = encode_edit(first - top + 1, last - top, new, model.tokenizer)
    return _nats(model, request, prompt.tokens, [*answer, config.end_token])


def nats_of_nothing(model: Model, request: EditRequest) -> float:
    """Nats that ending at once costs: that there is nothing to do."""
    config = model.backend.config
    prompt = render(
        request, model.tokenizer, config, request.context_tokens or model.context_tokens
    )
    return _nats(model, request, prompt.tokens, [config.end_token])[0]


def _nats(
    model: Model, request: EditRequest, prompt: tuple[int, ...], answer: list[int]
) -> tuple[float, int]:
    context = prompt[:-1]
    room = max(room_for(request, model.backend.config), len(answer) + 1)
    with model.cache.acquire(context, room) as lease:
        prefill(lease.sequence, context[lease.reused :], lambda: False)
        said = lease.sequence.verify(np.asarray([prompt[-1], *answer], dtype=np.int64))
        lease.sequence.truncate(len(context))
    return -float(said.log_probability.sum()), len(answer)
