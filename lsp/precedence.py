"""Precedence: which of ghost text and next edit a user sees, where both are possible.

In the empty line of a body the user is about to write: ghost text comes first there. Elsewhere what
is shown stays, and a gesture replaces what is unsure.
"""

from __future__ import annotations

from redraft.model.gate.reasons import Abstain
from redraft.model.records import Task

from .refusals import is_empty_body_line
from .snapshot import Snapshot
from .suggestions.outcomes import Outcomes

NEXT_EDIT_SHOWN = Abstain("next_edit_shown", "a next edit is shown")
GHOST_TEXT_SHOWN = Abstain("ghost_text_shown", "ghost text is shown at the cursor")

#: Seconds between the questions about ghost text and about the next edit that one gesture sends.
_SAME_GESTURE_S = 0.05


def refuse(
    task: Task, snapshot: Snapshot, outcomes: Outcomes, *, is_unsure: bool = False
) -> Abstain | None:
    """Return why a suggestion of ``task`` must not replace what is shown, None if it may.

    Args:
        is_unsure: the suggestion would be hidden without a gesture.
    """
    uri, text, cursor = snapshot.uri, snapshot.text, snapshot.cursor
    in_empty_body = is_empty_body_line(text, cursor)
    if task == "infill":
        edit = outcomes.find_shown_edit(uri, text)
        if edit is None or not outcomes.is_in_view(uri) or (snapshot.is_invoked and edit.unsure):
            return None
        first, last = edit.lines
        return None if in_empty_body and not first <= snapshot.line < last else NEXT_EDIT_SHOWN
    ghost = outcomes.ghost_at(uri, text, cursor)
    if ghost is None:
        return None
    may_replace = snapshot.is_invoked and ghost.unsure and not in_empty_body and not is_unsure
    return None if may_replace else GHOST_TEXT_SHOWN


def head_start_s(snapshot: Snapshot) -> float:
    """Return how long a next edit waits for ghost text that the same gesture asks for."""
    first = snapshot.is_invoked and is_empty_body_line(snapshot.text, snapshot.cursor)
    return _SAME_GESTURE_S if first else 0.0
