"""Infill in place: the prefix, the canvas, and the suffix behind it.

How DreamOn was trained (2602.01326): ``<|beginoftext|>`` prefix, masks, suffix END. It sees the
whole text around the gap; what is nearest to it is kept. Knows nothing of how the canvas is filled.
"""

from __future__ import annotations

from ..config import ModelConfig
from ..records import EditRequest
from .answers import read_answer
from .fitting import keep
from .foreign import Declined, Read
from .render import Prompt
from .tokens import Tokenizer

BEGIN = "<|beginoftext|>"
#: Of the context: at most for what stands behind the gap.
_SUFFIX = 0.4


class InPlace:
    """See the module."""

    def render(
        self, request: EditRequest, tokenizer: Tokenizer, config: ModelConfig, budget: int
    ) -> Prompt | Declined:
        if request.task == "next_edit":
            return Declined(f"{config.name} was trained to fill in text, not to predict edits.")
        before, after = request.text[: request.cursor], request.text[request.cursor :]
        room = budget - request.max_tokens - 3
        behind = keep(tokenizer, after, max(int(room * _SUFFIX), 1), from_end=False)
        above = keep(tokenizer, before, max(room - len(behind), 1), from_end=True)
        opens = next(
            (i for i in (tokenizer.special_id(BEGIN), tokenizer.begin) if i is not None),
            config.end_token,
        )
        alone = before[-1:] in ("", "\n") and after[:1] not in ("", "\n", "\r")
        return Prompt(
            (opens, *above),
            request.text.split("\n"),
            before.count("\n"),
            alone,
            behind=(*behind, config.end_token),
            in_place=True,
        )

    def read(self, prompt: Prompt, request: EditRequest, answer: str, ended: bool) -> Read | None:
        change = read_answer(prompt, request, answer, ended)
        return None if change is None else Read(*change)
