"""What the language server gathers at a moment of a commit, and the same with parts left out.

Runs the server's own context: the commit's other files are open documents, those edited before were
looked at, and what it would choose goes into the request. Any kind of context can be switched off,
so that its worth shows. Knows nothing of models.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, get_args

from redraft.lsp.context.client_context import ClientContext
from redraft.lsp.context.excerpts import PieceKind
from redraft.lsp.context.gather import KINDS as PIECES
from redraft.lsp.context.region import TOKENS
from redraft.lsp.documents import Documents
from redraft.lsp.places import edit_request
from redraft.lsp.settings import LspSettings
from redraft.lsp.suggestion import Query
from redraft.model.prompts.redraft3 import shrunk, window
from redraft.model.records import EditRequest, Prediction, RecentEdit
from redraft.model.text.lines import estimate

from .commit_moments import CommitMoment

#: What can be left out. ``region`` is the choice of lines by syntax, in place of which a window of
#: fixed lines is taken; ``far`` the lines of the file outside of it. Commits tell no diagnostics.
ContextKind = Literal["history", "definitions", "imports", "viewed", "region", "far"]
KINDS: tuple[ContextKind, ...] = get_args(ContextKind)
RELATED: tuple[ContextKind, ...] = (
    "definitions",
    "imports",
    "viewed",
)  # all excerpts of other files

_EXCERPTS: dict[ContextKind, PieceKind] = {
    "definitions": "definition",
    "imports": "import",
    "viewed": "viewed",
}
_ROOT = "file:///w"
_LOOKED_S = 30.0  # from a look at another file to the moment


@dataclass(frozen=True, slots=True)
class ContextRequest:
    """A request, and how to read its answer."""

    request: EditRequest
    offset: int  # of ``request.text`` within the document
    region: tuple[int, int]  # 0-based lines [first, last) of the document
    parts: dict[str, int]  # how many recent edits and excerpts of each kind it shows

    def answered(self, said: Prediction) -> Prediction:
        """The prediction for the whole document."""
        moved = tuple(
            replace(each, start=each.start + self.offset, end=each.end + self.offset)
            for each in said.candidates
        )
        return replace(said, candidates=moved)


def gather(
    step: CommitMoment, budget: int, without: Collection[ContextKind] = ()
) -> ContextRequest:
    """What the server would ask the model at ``step``.

    Args:
        budget: tokens of the prompt.
        without: kinds to leave out.
    """
    settings = LspSettings(context_tokens=budget)
    edits = () if "history" in without else step.edits
    around, query = _around(step, settings, edits, without)
    gathered = around.gathered(query)
    region = _window(query) if "region" in without else gathered.region.lines
    request = replace(
        edit_request(query, settings, region),
        edits=edits,
        related=gathered.related,
        importable=around.importable(query, edits),
    )
    parts = {"edit": len(edits)} | dict.fromkeys(sorted(PIECES), 0)
    for piece in gathered.pieces:
        parts[piece.kind] += 1
    if "far" not in without:
        return ContextRequest(request, 0, region, parts)
    return ContextRequest(*_cropped(request, region), region, parts)


def _window(query: Query) -> tuple[int, int]:
    """Return a window of lines around the cursor that is not too long."""
    lines, at = query.text.split("\n"), query.line
    first, last = window(at, len(lines))
    costs = [estimate(line) + 3 for line in lines[first:last]]
    return shrunk(costs, first, last, at, TOKENS)


def _around(
    step: CommitMoment,
    settings: LspSettings,
    edits: tuple[RecentEdit, ...],
    without: Collection[ContextKind],
) -> tuple[ClientContext, Query]:
    """A client that has all of the step's documents open and looked at the others just before, and
    its query at the cursor."""
    clock = _Clock()
    documents = Documents()
    for other in step.others:
        documents.open(_uri(other.path), other.text, 0, other.language)
    document = documents.open(_uri(step.path), step.text, 0, step.language)
    around = ClientContext(
        documents.all,
        lambda: [_ROOT],
        lambda: settings,
        clock.read,
        edits=lambda: edits,
        background=False,
        kinds=PIECES - {_EXCERPTS[kind] for kind in without if kind in _EXCERPTS},
    )
    for other in step.others:
        if other.cursor is not None:
            around.related(_query(other.path, other.language, other.text, other.cursor))
    clock.now_s += _LOOKED_S
    query = replace(
        _query(step.path, step.language, step.text, step.cursor), revision=document.revision
    )
    around.related(query)  # from here on it knows of all documents
    around.catch_up()
    around.exclusions_changed()  # chosen anew, with all of them read
    return around, query


def _cropped(request: EditRequest, region: tuple[int, int]) -> tuple[EditRequest, int]:
    """The request with the region as its whole text, and where that begins."""
    lines = request.text.split("\n")
    first, last = region
    offset = sum(len(line) + 1 for line in lines[:first])
    text = "\n".join(lines[first:last])
    cursor = min(max(0, request.cursor - offset), len(text))
    return replace(request, text=text, cursor=cursor, region=(0, last - first)), offset


class _Clock:
    """Stands still unless it is turned."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def read(self) -> float:
        return self.now_s


def _uri(path: str) -> str:
    from urllib.parse import quote

    return f"{_ROOT}/{quote(path)}"


def _query(path: str, language: str, text: str, cursor: int) -> Query:
    return Query(_uri(path), path, language, text, cursor, 0)
