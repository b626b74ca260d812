"""Conversations: their prompt, the probability of given answers, and their engine."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from collections.abc import Sequence as Seq
from dataclasses import dataclass

import numpy as np

from .config import ModelConfig
from .decode.completion import Brief, Draft
from .decode.passes import Passes
from .decode.sampling import confidence, softmax
from .errors import InvalidRequest, ModelNotReady, NoChatTemplate, WeightsError
from .prompts.chat_template import ChatTemplate
from .prompts.format import Prompt
from .prompts.registry import predicts_edits, takes_grammars
from .records import (
    Ability,
    Conversation,
    EditRequest,
    ModelStatus,
    Prediction,
    Predictor,
    StepCallback,
)
from .remote import until_ready
from .runtime.backend import Backend
from .runtime.kv_memory import MOST_TOKENS, SIZE_CLASSES


def abilities_of(config: ModelConfig) -> tuple[Ability, ...]:
    """Return what weights can do outside conversations."""
    abilities: list[Ability] = ["infill"]
    if config.verifier == "ar" and predicts_edits(config.prompt_format):
        abilities.append("next_edit")
    if config.verifier == "ar" and takes_grammars(config.prompt_format):
        abilities.append("grammar")
    return tuple(abilities)


def chat_abilities_of(config: ModelConfig, knows_tools: bool) -> tuple[Ability, ...]:
    """Return what weights with a chat template can do in conversations."""
    abilities: list[Ability] = ["grammar"]
    if config.verifier == "ar":
        abilities.append("decide")
    if knows_tools:
        abilities.append("tools")
    return tuple(abilities)


def longest_tokens(backend: Backend) -> int:
    """Return the most tokens of a conversation and its answer: as trained, within memory."""
    most = MOST_TOKENS if backend.config.attention == "bidirectional" else SIZE_CLASSES[-1]
    return min(backend.config.max_positions, most)


def chat_prompt(
    template: ChatTemplate | None,
    name: str,
    conversation: Conversation,
    backend: Backend,
    room: int,
) -> Prompt:
    """Return the prompt of a conversation.

    Args:
        name: of the model.
        room: tokens kept for the answer.

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
    rendered = template.render(conversation, longest_tokens(backend) - room)
    vocab: Seq[bytes] = ()
    if rendered.marks:
        with_marks = list(template.tokenizer.vocab_bytes)
        for token, text in rendered.marks.items():
            with_marks[token] = text
        vocab = with_marks
    permitted = (rendered.end_token, *rendered.marks)
    return Prompt(rendered.tokens, permitted=permitted, vocab_bytes=vocab)


def price_labels(
    passes: Passes,
    last_token: int,
    labels: Seq[Seq[int]],
    texts: Seq[str],
    brief: Brief,
) -> list[Draft]:
    """Return each of ``labels`` as the whole answer, with its probability, END included.

    One pass scores the first tokens of all labels, then each label takes one pass.

    Raises:
        InvalidRequest: these weights do not read from left to right.
    """
    if not brief.verifies:
        raise InvalidRequest(
            f"'model': {brief.config.name} does not read from left to right, so it cannot say how "
            "likely a given answer is. Choose another model."
        )
    out = passes.score([last_token], logits=True)
    assert out.logits is not None
    first = softmax(out.logits[0].astype(np.float64))  # [vocab]
    base, end, drafts = len(passes.sequence.tokens), brief.config.end_token, []
    for tokens, text in zip(labels, texts, strict=True):
        whole = [*tokens, end]
        further = passes.score(whole, logits=False).target_logprob[:-1]  # of those behind the first
        passes.sequence.truncate(base)
        probabilities = [float(first[whole[0]]), *np.exp(further.astype(np.float64)).tolist()]
        drafts.append(Draft(text, tuple(whole), confidence(probabilities), 1, 0, "end"))
    return drafts


@dataclass(frozen=True, slots=True)
class Companion:
    """The model that holds conversations in the place of another."""

    name: str
    longest_tokens: int  # of a conversation and its answer
    abilities: tuple[Ability, ...]


class ChatEngine:
    """A ``Predictor`` with a model for edits, and others for conversations, loaded on demand.

    An adapter that was trained on edits unlearns to end an answer, so the base without it answers
    conversations.

    Args:
        edits: answers everything but conversations; its model may change while it runs.
        companion_of: returns the companion of a model by name; None: it converses itself.
        open_chat: makes the predictor of a model by name, which begins to load at once and frees
            its model when it is idle.
    """

    def __init__(
        self,
        edits: Predictor,
        companion_of: Callable[[str], Companion | None],
        open_chat: Callable[[str], Predictor],
    ) -> None:
        self._edits, self._companion_of, self._open = edits, companion_of, open_chat
        self._chats: dict[str, Predictor] = {}  # by the name of the model

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        companion = None
        if request.conversation is not None:
            companion = self._companion(await self._edits.status())
        if companion is None:
            return await self._edits.predict(request, on_step)
        try:
            return await (await self._ready(companion.name)).predict(request, on_step)
        except ModelNotReady:  # a freed model took longer to load again than a request waits
            return await (await self._ready(companion.name)).predict(request, on_step)

    async def status(self) -> ModelStatus:
        status = await self._edits.status()
        companion = self._companion(status)
        if companion is None:
            return status
        return dataclasses.replace(
            status,
            chat_model=companion.name,
            longest_tokens=companion.longest_tokens,
            chat_abilities=companion.abilities,
        )

    async def close(self) -> None:
        await asyncio.gather(self._edits.close(), *(chat.close() for chat in self._chats.values()))

    def _companion(self, status: ModelStatus) -> Companion | None:
        return self._companion_of(status.model.partition(" ")[0])

    async def _ready(self, name: str) -> Predictor:
        """Return the predictor of a model for conversations once it answers.

        Raises:
            WeightsError: it cannot be loaded; says why. The next conversation tries again.
        """
        if name not in self._chats:
            self._chats[name] = self._open(name)
        chat = self._chats[name]
        status = await until_ready(chat)
        if status.state == "failed":
            if self._chats.get(name) is chat:
                del self._chats[name]
            await chat.close()
            raise WeightsError(f"The model {name} could not be loaded: {status.message}")
        return chat
