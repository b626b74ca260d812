"""Finished edits: spans of lines as hunks with context, and as a model is shown them.

Edits look as they do in training (``model/edits/hunks.py``). Pure; knows nothing of documents or of
time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from redraft.model.edits.edit import LineChange
from redraft.model.edits.hunks import CONTEXT_LINES, apply_history, hunks_of, last_burst, lines_of
from redraft.model.records import RecentEdit
from unidiff.patch import Hunk, Line, PatchedFile

from ..positions import without_surrogates


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """A finished edit."""

    uri: str
    path: str
    span: LineChange  # in the document as it was just before
    hunks: tuple[Hunk, ...]  # the same with context; each applies to what the one before left
    at_s: float  # when it ended
    snapshot: int  # the snapshot it is based on
    accepted: bool = False
    states: frozenset[int] = frozenset()  # what the document looked like on the way, as key_of()
    #: As a model is shown it: made once, asked for at every key.
    shown: tuple[RecentEdit, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "shown", as_shown(self.path, self.hunks, self.accepted))


def if_accepted(path: str, span: LineChange, lines: Sequence[str]) -> tuple[RecentEdit, ...]:
    """How a suggestion would look in the history, were it accepted. ``lines`` are those after."""
    return as_shown(path, hunks_of_span(path, span.trimmed(), lines), accepted=True)


def as_shown(path: str, hunks: Iterable[Hunk], accepted: bool) -> tuple[RecentEdit, ...]:
    """Hunks as a model is shown them."""
    plain = (RecentEdit(path, hunk.target_start - 1, "".join(map(str, hunk))) for hunk in hunks)
    return tuple(replace(last_burst(edit), accepted=accepted) for edit in plain)


def hunks_of_span(path: str, span: LineChange, lines: Sequence[str]) -> tuple[Hunk, ...]:
    """The changes within a span, each with its context. ``lines`` are those after the span."""
    top = max(0, span.first - CONTEXT_LINES)
    above = tuple(lines[top : span.first])
    below = tuple(lines[span.end : span.end + CONTEXT_LINES])
    old = list(map(without_surrogates, (*above, *span.old, *below)))
    new = list(map(without_surrogates, (*above, *span.new, *below)))
    found = hunks_of(old, new)
    if not found:
        return ()
    _, edits, _ = apply_history(path, old, found, len(found))
    return tuple(_hunk(edit, top) for edit in edits)


def _hunk(edit: RecentEdit, top: int) -> Hunk:
    body = lines_of(edit.diff)
    removed = sum(kind != "+" for kind, _ in body)
    added = sum(kind != "-" for kind, _ in body)
    first = top + edit.line
    # A range of no lines is named by the line above it.
    hunk = Hunk(first + bool(removed), removed, first + bool(added), added)
    for kind, text in body:
        hunk.append(Line(f"{text}\n", kind))
    return hunk


def patch_of(path: str, hunk: Hunk) -> PatchedFile:
    patch = PatchedFile(source=f"a/{path}", target=f"b/{path}")
    patch.append(hunk)
    return patch
