"""From a query to the question for the model.

The one place where a request's surroundings come from (the region an edit may replace, excerpts of
other files): a session is given a :class:`Context` that finds them. The one here knows the text
alone. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

from redraft.model.gate.decide import CANDIDATES
from redraft.model.prompts.redraft3 import shrunk, window
from redraft.model.records import (
    LEAST_LOG,
    Diagnostic,
    EditRequest,
    Importable,
    RecentEdit,
    RelatedFile,
    Task,
)
from redraft.model.text.cursor import is_free, line_after
from redraft.model.text.lines import estimate

from ..context import region
from ..places import OpenText
from ..settings import LspSettings

#: Lines below a line that is being typed that an edit may replace meanwhile: those further down are
#: read with what does not change, not once more for every key. Once the keys rest, all may change.
BELOW_TYPED = 1


@dataclass(frozen=True)
class Query:
    """A client wants a suggestion here, now."""

    uri: str
    path: str  # relative to the workspace, "/" separated
    language: str
    text: str  # "\n" line ends
    cursor: int  # index into text
    revision: int  # of the document; the answer holds for this one only
    invoked: bool = False  # by a gesture, not by typing or moving about
    selected: int = 0  # characters the user has selected
    cursors: int = 1
    in_snippet: bool = False  # between the fields of a snippet
    out_of_step: str = ""  # why our copy of the document cannot be trusted
    other_documents: bool = False  # can the client show an edit in another one?
    visiting: bool = False  # the user is elsewhere: nothing is to be remembered of this place

    @cached_property
    def line(self) -> int:
        """The cursor's, 0-based. Counted once: that takes 0.1 ms in a file of 10,000 lines."""
        return self.text.count("\n", 0, self.cursor)


class Context(Protocol):
    """Finds what goes with a query besides its document."""

    def region(self, query: Query) -> tuple[int, int]:
        """The 0-based lines [first, last) around the cursor that an edit may replace."""

    def related(self, query: Query, task: Task) -> tuple[RelatedFile, ...]:
        """Excerpts of other files, least relevant first."""

    def diagnostics(self, query: Query) -> tuple[Diagnostic, ...]:
        """What the editor reports of the query's document."""

    def documents(self) -> Sequence[OpenText]:
        """All that are open and may be read."""

    def definers(self, name: str, language: str) -> Collection[str]:
        """Paths of the files that define ``name``, as far as is known."""

    def importable(self, query: Query, edits: Sequence[RecentEdit]) -> tuple[Importable, ...]:
        """Names that ``edits`` wrote into the query's document, and what it would import them
        from, where the workspace leaves no choice."""


class PlainContext:
    """Knows the text alone."""

    def region(self, query: Query) -> tuple[int, int]:
        """As training rows have it: the prompt's own window, or as much of it around the cursor as
        is not too long."""
        lines, at = query.text.split("\n"), query.line
        first, last = window(at, len(lines))
        costs = [estimate(line) + 3 for line in lines[first:last]]
        return shrunk(costs, first, last, at, region.TOKENS)

    def related(self, query: Query, task: Task) -> tuple[RelatedFile, ...]:
        return ()

    def diagnostics(self, query: Query) -> tuple[Diagnostic, ...]:
        return ()

    def documents(self) -> Sequence[OpenText]:
        return ()

    def definers(self, name: str, language: str) -> Collection[str]:
        return ()

    def importable(self, query: Query, edits: Sequence[RecentEdit]) -> tuple[Importable, ...]:
        return ()


def infill(query: Query, settings: LspSettings) -> EditRequest:
    """Return the request for ghost text at the cursor.

    In the middle of code it is for one line. By a gesture it is for all that the model writes.
    """
    lines = settings.max_lines if is_free(line_after(query.text, query.cursor)) else 1
    least = LEAST_LOG if query.invoked else settings.least_total
    return replace(_request("infill", query, settings), max_lines=lines, least_total=least)


def next_edit(query: Query, settings: LspSettings, region: tuple[int, int]) -> EditRequest:
    """The edit that comes next, within the region."""
    asked, candidates = _request("next_edit", query, settings), CANDIDATES[settings.quality]
    return replace(asked, region=region, candidates=candidates)


def near_typed(request: EditRequest, line: int) -> EditRequest:
    """``request`` about the lines of its region down to a few below ``line``, which is being
    typed."""
    assert request.region is not None
    first, last = request.region
    return replace(request, region=(first, min(last, line + 1 + BELOW_TYPED)))


def _request(task: Task, query: Query, settings: LspSettings) -> EditRequest:
    return EditRequest(
        task=task,
        path=query.path,
        text=query.text,
        cursor=query.cursor,
        language=query.language,
        context_tokens=settings.context_tokens,
        max_tokens=settings.max_tokens,
        quality=settings.quality,
    )
