"""What is particular about conversations: their prompt, and prices of given answers.

Knows nothing of threads and queues; ``answer.py`` calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Sequence as Seq

import numpy as np

from ..decoding.denoise import Denoised
from ..decoding.plan import Brief, Draft
from ..decoding.probabilities import confidence, softmax
from ..errors import InvalidRequest, NoChatTemplate
from ..prompt.chat import ChatTemplate
from ..prompt.render import Prompt
from ..records import Conversation
from ..runtime.backend import Backend, Cancelled, Sequence
from ..runtime.kv_memory import MOST_TOKENS, SIZE_CLASSES


def longest_tokens(backend: Backend) -> int:
    """Of a conversation with its answer: as many as the weights were trained on, and fit."""
    most = MOST_TOKENS if backend.config.attention == "bidirectional" else SIZE_CLASSES[-1]
    return min(backend.config.max_positions, most)


def chat_prompt(
    template: ChatTemplate | None,
    name: str,
    conversation: Conversation,
    backend: Backend,
    room: int,
) -> Prompt:
    """The tokens of a conversation.

    Args:
        name: of the model. room: tokens kept for the answer.

    Raises:
        NoChatTemplate, ContextOverflow, InvalidRequest: says what to do.
    """
    if template is None:
        raise NoChatTemplate(
            f"'model': {name} came without a chat template, so it cannot hold a conversation. "
            "'redraft model list' shows which models can; start Redraft with one of them by "
            "--model."
        )
    if conversation.tools and not template.knows_tools:
        raise InvalidRequest(
            f"'tools' are not known to the chat template of {name}. Leave them out, or choose "
            "another model."
        )
    found = template.render(conversation, longest_tokens(backend) - room)
    vocab: Seq[bytes] = ()
    if found.marks:
        written = list(template.tokenizer.vocab_bytes)
        for token, text in found.marks.items():
            written[token] = text
        vocab = written
    return Prompt(found.tokens, permitted=(found.end_token, *found.marks), vocab_bytes=vocab)


def price_labels(
    sequence: Sequence,
    last_token: int,
    labels: Seq[Seq[int]],
    texts: Seq[str],
    brief: Brief,
    cancelled: Callable[[], bool],
) -> Denoised:
    """How likely each of ``labels`` is as the whole answer, END included, in their order.

    One pass tells of the first tokens of all; each label then takes one of its own over its tokens.
    """
    if not brief.judged:
        raise InvalidRequest(
            f"'model': {brief.config.name} does not read from left to right, so it cannot say how "
            "likely a given answer is. Choose another model."
        )
    out = sequence.score(np.asarray([last_token], np.int64), logits=True)
    assert out.logits is not None
    first = softmax(out.logits[0].astype(np.float64))  # [vocab]
    base, end, drafts = len(sequence.tokens), brief.config.end_token, []
    for tokens, text in zip(labels, texts, strict=True):
        if cancelled():
            raise Cancelled
        whole = np.asarray([*tokens, end], np.int64)
        further = sequence.score(whole).target_logprob[:-1]  # of the tokens behind the first
        sequence.truncate(base)
        probabilities = [float(first[whole[0]]), *np.exp(further.astype(np.float64)).tolist()]
        sure = confidence(probabilities)
        drafts.append(Draft(text, tuple(whole.tolist()), sure, 1, 0, "end"))
    return Denoised(tuple(drafts), 1 + len(labels), 0)
