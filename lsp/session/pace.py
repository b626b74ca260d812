"""How the user types and takes what is offered, for the gate: the situation of a moment.

Pure: the clock's reading is an argument. Knows nothing of documents or of the protocol.
"""

from __future__ import annotations

from collections import deque

from redraft.model.edits.gate_features import Situation

from .outcomes import Outcome

#: Seconds of typing that tell its speed, and changes kept of them.
_SPAN_S = 5.0
_CHANGES = 256
#: Outcomes that tell the acceptance.
_OUTCOMES = 10
_TOLD: dict[Outcome, float] = {"accepted": 1.0, "ignored": 0.0, "rejected": -1.0}


class Pace:
    """What was typed lately, and what became of the last suggestions."""

    def __init__(self) -> None:
        self._changes: deque[float] = deque(maxlen=_CHANGES)  # at s
        self._outcomes: deque[float] = deque(maxlen=_OUTCOMES)

    def changed(self, now_s: float) -> None:
        """The user changed a document."""
        self._changes.append(now_s)

    def settled(self, outcome: Outcome) -> None:
        """What is replaced or cancelled says nothing of the user."""
        if outcome in _TOLD:
            self._outcomes.append(_TOLD[outcome])

    def situation(self, now_s: float) -> Situation:
        taken = [each > 0 for each in self._outcomes]
        keys = sum(now_s - _SPAN_S < at_s <= now_s for at_s in self._changes)
        since_s = max(0.0, now_s - self._changes[-1]) if self._changes else None
        return Situation(
            since_edit_ms=None if since_s is None else 1e3 * since_s,
            keys_per_s=keys / _SPAN_S if self._changes else None,
            previous=self._outcomes[-1] if self._outcomes else None,
            acceptance=sum(taken) / len(taken) if taken else None,
        )
