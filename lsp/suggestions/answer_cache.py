"""Cache of the model's last answers, by the text they are for."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from dataclasses import replace
from typing import NamedTuple

from redraft.model.records import EditRequest, Prediction

#: AnswerCache kept, those without a candidate included.
_ANSWERS = 50


class _Answer(NamedTuple):
    key: tuple[Hashable, ...]  # see AnswerCache.key; the length of the text first
    region: tuple[int, int] | None
    prediction: Prediction


class AnswerCache:
    """The last predictions, by the text they are for."""

    def __init__(self) -> None:
        self._kept: deque[_Answer] = deque(maxlen=_ANSWERS)  # the newest last

    @staticmethod
    def key(request: EditRequest, others: int = 0) -> tuple[Hashable, ...]:
        """Return what an answer belongs to, its region left out.

        That is the text and the limits of the answer, but not the edits that led to the text: each
        pause in typing would make it another question. For next edits the cursor does not count
        either. The text goes in as its 64-bit hash, because fifty texts would take too much memory.

        Args:
            others: hash of the other documents that the user has edited.
        """
        cursor = 0 if request.task == "next_edit" else request.cursor
        rest = replace(
            request, text="", cursor=cursor, edits=(), related=(), diagnostics=(), importable=(),
            region=None, stop=(),
        )  # fmt: skip
        return len(request.text), hash(request.text), rest, others

    def may_know(self, length: int) -> bool:
        """Return whether there is an answer for a text of so many characters."""
        return any(each.key[0] == length for each in self._kept)

    def put(self, request: EditRequest, prediction: Prediction, others: int = 0) -> None:
        """Keep an answer."""
        key = self.key(request, others)
        kept = (each for each in self._kept if each[:2] != (key, request.region))
        self._kept = deque(kept, maxlen=_ANSWERS)
        self._kept.append(_Answer(key, request.region, prediction))

    def get(self, request: EditRequest, others: int = 0) -> Prediction | None:
        """Return the answer to a request, None if it is not known.

        A next edit is also known from a request whose other region holds the cursor's line.
        """
        if not self.may_know(len(request.text)):
            return None  # hashing a large text at each key takes long
        key = self.key(request, others)
        same = [each for each in self._kept if each.key == key]
        exact = [each for each in same if each.region == request.region]
        if not same or exact:
            return exact[0].prediction if exact else None
        line = request.text.count("\n", 0, request.cursor)
        near = (each for each in reversed(same) if each.region and line in range(*each.region))
        return next((each.prediction for each in near), None)
