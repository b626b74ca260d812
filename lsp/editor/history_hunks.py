"""Finished edits: spans of lines as hunks with context, and as a model is shown them.

Edits look as they do in training (``model/edits/hunks.py``). Pure; knows nothing of documents or of
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from redraft.model.edits.hunks import CONTEXT_LINES, apply_history, hunks_of, last_burst
from redraft.model.edits.spans import Span
from redraft.model.records import RecentEdit

from .positions import without_surrogates


@dataclass(frozen=True, slots=True, eq=False)
class Edit:
    """A finished edit."""

    uri: str
    path: str
    span: Span  # in the document as it was just before
    shown: tuple[RecentEdit, ...]  # as a model is shown it: made once, asked for at every key
    at_s: float  # when it ended
    snapshot: int  # the snapshot it is based on
    accepted: bool = False
    states: frozenset[int] = frozenset()  # what the document looked like on the way, as key_of()

    def as_accepted(self) -> Edit:
        shown = tuple(replace(edit, accepted=True) for edit in self.shown)
        return replace(self, shown=shown, accepted=True)

    def renamed(self, uri: str, path: str) -> Edit:
        shown = tuple(replace(edit, path=path) for edit in self.shown)
        return replace(self, uri=uri, path=path, shown=shown)


def as_shown(path: str, span: Span, lines: Sequence[str], accepted: bool) -> tuple[RecentEdit, ...]:
    """The changes within a span as a model is shown them, each with its context: each applies to
    what the one before left. ``lines`` are those of the document after the span."""
    span = span.trimmed()
    top = max(0, span.first - CONTEXT_LINES)
    above = tuple(lines[top : span.first])
    below = tuple(lines[span.end : span.end + CONTEXT_LINES])
    old = list(map(without_surrogates, (*above, *span.old, *below)))
    new = list(map(without_surrogates, (*above, *span.new, *below)))
    found = hunks_of(old, new)
    if not found:
        return ()
    _, edits, _ = apply_history(path, old, found, len(found))
    bursts = map(last_burst, edits)
    return tuple(replace(one, line=one.line + top, accepted=accepted) for one in bursts)
