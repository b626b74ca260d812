"""The user's pace: the speed of typing, and what the last outcomes say about the next moment."""

from __future__ import annotations

import math
from collections import deque

from redraft.model.gate.features import Features

from ..suggestions.outcomes import Outcome

_SPAN_S = 5.0  # in which the speed of typing is measured
_CHANGES = 256  # changes kept
_COUNTED = 10  # outcomes kept; those that are no decision of the user do not count
_VALUES: dict[Outcome, float] = {"accepted": 1.0, "ignored": 0.0, "rejected": -1.0}


class Pace:
    """Rate of recent changes and last outcomes, as features of the gate."""

    def __init__(self) -> None:
        self._changes: deque[float] = deque(maxlen=_CHANGES)  # at s
        self._outcomes: deque[float] = deque(maxlen=_COUNTED)

    def on_change(self, now_s: float) -> None:
        """Count a change of a document by the user."""
        self._changes.append(now_s)

    def learn(self, outcome: Outcome) -> None:
        """Count an outcome."""
        if outcome in _VALUES:
            self._outcomes.append(_VALUES[outcome])

    def features(self, now_s: float) -> Features:
        """Return the time since the last edit, the typing speed and the last outcomes."""
        found: Features = {}
        if self._changes:
            found["rested"] = math.log1p(1e3 * max(0.0, now_s - self._changes[-1]))
            keys = sum(now_s - _SPAN_S < at_s <= now_s for at_s in self._changes)
            found["speed"] = math.log1p(keys / _SPAN_S)
        if self._outcomes:
            found["previous"] = self._outcomes[-1]
            accepted = sum(outcome > 0 for outcome in self._outcomes)
            found["acceptance"] = accepted / len(self._outcomes)
        return found


_FACTORS: dict[Outcome, float] = {"rejected": 1.5, "accepted": 0.8, "ignored": 1.0}
_FADE_S = 600.0  # until an outcome no longer matters
SHORTEST_MS = 50.0
LONGEST_MS = 3000.0


class Debounce:
    """Wait after a key: longer after rejections, shorter after acceptances.

    An outcome's weight fades evenly to nothing over ten minutes.
    """

    def __init__(self) -> None:
        self._outcomes: deque[tuple[float, float]] = deque(maxlen=_COUNTED)  # (at s, factor)

    def note(self, outcome: Outcome, now_s: float) -> None:
        """Count an outcome."""
        if outcome in _FACTORS:
            self._outcomes.append((now_s, _FACTORS[outcome]))

    def delay_ms(self, base_ms: float, latency_ms: float, now_s: float) -> float:
        """Return the wait before asking a model that takes ``latency_ms`` to answer."""
        if base_ms == 0:  # the user asked for no delay at all
            return 0.0
        delay = base_ms
        for at_s, factor in self._outcomes:
            delay *= factor ** max(0.0, 1.0 - (now_s - at_s) / _FADE_S)
        wait = min(max(delay, SHORTEST_MS), LONGEST_MS)
        # A slow model with no wait would be asked at each key, for the next key to cancel it.
        return wait - latency_ms if latency_ms < wait else wait
