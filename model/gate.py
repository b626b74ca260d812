"""How sure a candidate must be to be shown: the thresholds that eagerness moves, in this one place.

The language server and the HTTP service both decide by these. Knows nothing of where a candidate
came from or of what else speaks against it.
"""

from __future__ import annotations

from typing import Literal, get_args

from .records import Candidate, Task

Eagerness = Literal["low", "medium", "high"]

EAGERNESS: tuple[Eagerness, ...] = get_args(Eagerness)

#: A suggestion whose mean token probability is below this is not shown; "high" shows all. Of gaps
#: in held-out commits redraft-135m 0.2.0 filled exactly 10 of 16 at 0.9 and above, 6 of 36 from 0.8
#: to 0.9, 3 of 112 from 0.6 to 0.8, 3 of 72 below. The gate's calibration replaces these.
THRESHOLDS: dict[Eagerness, float] = {"low": 0.90, "medium": 0.80, "high": 0.0}

#: The same for next edits, by the same kind of probability. They stand in the way of what is there
#: already, so they have to be surer: of 39 edits in held-out commits, none at 0.9 or above, 0.2.0
#: foresaw none exactly.
EDIT_THRESHOLDS: dict[Eagerness, float] = {"low": 0.95, "medium": 0.90, "high": 0.0}


def threshold(task: Task, eagerness: Eagerness) -> float:
    """The least confidence that is shown, as a probability in 0 … 1."""
    return (EDIT_THRESHOLDS if task == "next_edit" else THRESHOLDS)[eagerness]


def sureness(candidate: Candidate) -> float:
    """What is held against the threshold."""
    return candidate.confidence.mean


def unsure(confidence: float, least: float) -> str:
    """Why a candidate is too unsure, with both numbers; "" where it is not."""
    return f"below threshold {confidence:.2f} < {least:.2f}" if confidence < least else ""
