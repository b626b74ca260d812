"""How sure a candidate must be to be shown: the thresholds that eagerness moves, in this one place.

The language server and the HTTP service both decide by these. Knows nothing of where a candidate
came from or of what else speaks against it.
"""

from __future__ import annotations

from typing import Literal, get_args

from ..records import Candidate, Task

Eagerness = Literal["low", "medium", "high"]

EAGERNESS: tuple[Eagerness, ...] = get_args(Eagerness)

#: A suggestion whose mean token probability is below this is not shown; "high" shows all. Worth
#: showing is what is right one time in four. Of gaps in held-out commits redraft-135m 0.3.0 filled
#: exactly 29 of 48 at 0.9 and above, 9 of 35 from 0.85, 3 of 30 from 0.8, 12 of 242 below.
THRESHOLDS: dict[Eagerness, float] = {"low": 0.92, "medium": 0.85, "high": 0.0}

#: The same for next edits, by :func:`sureness`. They stand in the way of what is there already, so
#: they have to be surer: in held-out commits 20 of 36 at 0.9 and above were the next edit to the
#: letter, 6 of 17 from 0.88 to 0.9, 8 of 21 from 0.86, 7 of 248 below.
EDIT_THRESHOLDS: dict[Eagerness, float] = {"low": 0.95, "medium": 0.88, "high": 0.0}


def threshold(task: Task, eagerness: Eagerness) -> float:
    """The least confidence that is shown, as a probability in 0 … 1."""
    return (EDIT_THRESHOLDS if task == "next_edit" else THRESHOLDS)[eagerness]


#: A repetition whose tokens the model finds less likely than this, as it goes, counts for nothing
#: more than any other text: log-probability of a token of its text.
UNLIKELY = -1.2


def sureness(candidate: Candidate) -> float:
    """What is held against the threshold: the mean token probability; or, where a recent edit is
    repeated and the model does not find that unlikely, what stands for its chance on that scale.

    0.5 is put at 0.9 and 0.75 at 0.95: at moments of held-out commits, 42 of the 66 repetitions
    with a chance of 0.5 or more were the next edit to the letter, 22 of the 31 from 0.65 on.
    """
    sure = candidate.confidence
    if sure.repeat is None or sure.place is None:
        return sure.mean
    if sure.total - sure.place < UNLIKELY * candidate.tokens:
        return sure.mean
    return max(sure.mean, 0.8 + 0.2 * sure.repeat)
