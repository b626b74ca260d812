"""Two models behind one seam: one for edits, and one for conversations, loaded when somebody talks.

An adapter that was trained on edits unlearns to end what it says: the base without it talks better.
The second model is given back after a while without conversations. Knows nothing of weights.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable

from ..errors import WeightsError
from ..records import Ability, EditRequest, ModelStatus, Prediction, Predictor, StepCallback

#: Seconds without a conversation after which its model is given back.
IDLE_S = 600.0
#: Seconds between two looks at a model that is loading.
LOOK_S = 0.05


class Companion:
    """A :class:`~redraft.model.records.Predictor`.

    Args:
        edits: answers everything but conversations.
        name: of the model for these. longest_tokens: that it reads. abilities: what it can do.
        open_chat: makes its predictor, which begins to load at once.
    """

    def __init__(
        self,
        edits: Predictor,
        name: str,
        longest_tokens: int,
        abilities: tuple[Ability, ...],
        open_chat: Callable[[], Predictor],
        idle_s: float = IDLE_S,
    ) -> None:
        self._edits, self._open, self._idle_s = edits, open_chat, idle_s
        self._name, self._longest, self._abilities = name, longest_tokens, abilities
        self._chat: Predictor | None = None
        self._talking = 0  # conversations being answered
        self._leaving: asyncio.TimerHandle | None = None
        self._closing: set[asyncio.Task[None]] = set()

    async def predict(
        self, request: EditRequest, on_step: StepCallback | None = None
    ) -> Prediction:
        if request.conversation is None:
            return await self._edits.predict(request, on_step)
        self._talking += 1
        if self._leaving is not None:
            self._leaving.cancel()
        if self._chat is None:
            self._chat = self._open()
        try:
            await self._ready(self._chat)
            return await self._chat.predict(request, on_step)
        finally:
            self._talking -= 1
            if not self._talking:
                loop = asyncio.get_running_loop()
                self._leaving = loop.call_later(self._idle_s, self._leave)

    async def status(self) -> ModelStatus:
        status = await self._edits.status()
        return dataclasses.replace(
            status,
            chat_model=self._name,
            longest_tokens=self._longest,
            chat_abilities=self._abilities,
        )

    async def close(self) -> None:
        if self._leaving is not None:
            self._leaving.cancel()
        if self._chat is not None:
            await self._chat.close()
        await self._edits.close()
        await asyncio.gather(*self._closing, return_exceptions=True)

    async def _ready(self, chat: Predictor) -> None:
        """Waits until the model answers.

        Raises:
            WeightsError: it cannot be loaded; says why. The next conversation tries again.
        """
        while (status := await chat.status()).state in ("downloading", "loading"):
            await asyncio.sleep(LOOK_S)
        if status.state == "failed":
            if self._chat is chat:
                self._leave()
            raise WeightsError(f"The model {self._name} could not be loaded: {status.message}")

    def _leave(self) -> None:
        chat, self._chat = self._chat, None
        if chat is not None:
            task = asyncio.get_running_loop().create_task(chat.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
