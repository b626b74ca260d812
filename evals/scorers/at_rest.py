"""A suggestion against the document at rest, when the user has gone on without it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from redraft.lsp.learning.followed import Followed
from redraft.lsp.learning.kept_text import measure_kept
from redraft.lsp.learning.matching import QUIET_S, until_rest
from redraft.lsp.learning.recorded_moments import DocumentChange
from redraft.model.edits.edit import Edit

from ..metrics import delta_chrf


def has_work_left(steps: Sequence[DocumentChange], at_s: float, ends_s: float) -> bool | None:
    """Return whether something was left to do: the user typed within :data:`QUIET_S`.

    None: unknown, as the first change came from elsewhere, or the recording ends.
    """
    rest = until_rest(steps, at_s)
    if rest:
        return True if rest[0].is_typed else None
    return False if ends_s - at_s >= QUIET_S else None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A suggestion against the document at rest."""

    right: int  # characters written and kept, or rightly deleted
    suggested: int  # characters written and deleted
    done: int  # characters the user wrote and deleted in the end
    delta_chrf: float  # 0 … 100


def compare(edit: Edit, steps: Sequence[DocumentChange]) -> Comparison | None:
    """Return a suggestion against what the ``steps`` until rest made of its text.

    Only lines that the user or the suggestion touched count. None if text from elsewhere came into
    them, or too much changed.
    """
    followed = Followed(edit)
    for step in steps:
        followed.apply(step)
    lines = followed.lines()
    if followed.mixed:
        return None
    base, final = followed.old_parts(lines), followed.new_parts(lines)
    candidate = followed.old_parts(lines, edit)
    found = measure_kept(base, candidate, final)
    if found is None:
        return None
    score = delta_chrf(base, [final], candidate)
    return Comparison(found.right, found.suggested, found.done, score)
