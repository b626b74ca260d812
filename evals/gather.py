"""The request of an example, built as the language server or an HTTP client would.

For next edits the server's own context runs: the commit's other files are open documents, those
edited before were viewed, and what it chooses goes into the request. Any kind of context can be
left out, so that its worth shows.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal, get_args
from urllib.parse import quote

from redraft.lsp.context.region import TOKENS
from redraft.lsp.context.scored_excerpts import KINDS as PIECES
from redraft.lsp.context.scored_excerpts import PieceKind
from redraft.lsp.documents.history import RecentEdits
from redraft.lsp.editor_settings import LspSettings
from redraft.lsp.question import infill, next_edit
from redraft.lsp.snapshot import RequestFlags, Snapshot
from redraft.lsp.workspace import Workspace
from redraft.model.prompts.redraft3 import shrunk, window
from redraft.model.records import LEAST_LOG, EditRequest, Prediction, RecentEdit
from redraft.model.text.lines import estimate

from .example import Example, Moment
from .replay.clock import SetClock
from .spec import RunSpec

#: What can be left out. ``region`` is the choice of lines by syntax, in place of which a window of
#: fixed lines is taken; ``far`` the lines of the file outside of it. Commits tell no diagnostics.
ContextKind = Literal["history", "definitions", "imports", "viewed", "region", "far"]
KINDS: tuple[ContextKind, ...] = get_args(ContextKind)
RELATED: tuple[ContextKind, ...] = ("definitions", "imports", "viewed")  # excerpts of other files
SERVED = 1_024  # tokens of a prompt that "auto" picks on two CPU cores

_EXCERPTS: dict[ContextKind, PieceKind] = {
    "definitions": "definition",
    "imports": "import",
    "viewed": "viewed",
}
_ROOT = "file:///w"
_LOOKED_S = 30.0  # from a look at another file to the moment


@dataclass(frozen=True, slots=True)
class GatheredRequest:
    """A request, and how to read its answer."""

    request: EditRequest
    offset: int = 0  # of ``request.text`` within the document
    region: tuple[int, int] = (0, 0)  # 0-based lines [first, last) of the document
    parts: tuple[tuple[str, int], ...] = ()  # how many edits and excerpts of each kind it has

    def to_document(self, prediction: Prediction) -> Prediction:
        """Return the prediction for the whole document."""
        moved = tuple(
            replace(each, start=each.start + self.offset, end=each.end + self.offset)
            for each in prediction.candidates
        )
        return replace(prediction, candidates=moved)


def gather(example: Example, spec: RunSpec) -> GatheredRequest:
    """Return what is asked at an example.

    Gaps of ``infill`` runs are asked for as by HTTP clients, all else as by the language server. An
    answer is demanded in any case: "no edit" is decided by the score of the best edit.
    """
    moment = example.moment
    if example.task == "next_edit":
        return _next_edit(moment, spec)
    if spec.task == "infill":
        request = EditRequest("infill", moment.path, moment.text, moment.cursor, moment.language)
        return GatheredRequest(_in_any_case(request, spec))  # no gap of the benchmarks is empty
    settings = LspSettings(context_tokens=spec.context_tokens or SERVED)
    workspace = Workspace(settings, lambda: 0.0, reads=False)
    workspace.folders = [_ROOT]
    uri = workspace.open(_uri(moment.path), moment.text, 0, moment.language).uri
    snapshot = workspace.snapshot(uri, moment.cursor, RequestFlags())
    request = _in_any_case(infill(snapshot).request, spec)
    return GatheredRequest(replace(request, least_total=LEAST_LOG))


def _in_any_case(request: EditRequest, spec: RunSpec) -> EditRequest:
    most = spec.max_tokens or request.max_tokens
    return replace(request, max_tokens=most, min_tokens=1, seed=spec.seed, quality=spec.quality)


def _next_edit(moment: Moment, spec: RunSpec) -> GatheredRequest:
    without = spec.without
    settings = LspSettings(context_tokens=spec.context_tokens or SERVED)
    edits = () if "history" in without else moment.edits
    workspace, snapshot = _around(moment, settings, edits, without)
    gathered = workspace.context.gather(snapshot)
    region = _window(snapshot) if "region" in without else gathered.region.lines
    request = workspace.complete(next_edit(snapshot, region)).request
    parts = {"edit": len(edits)} | dict.fromkeys(sorted(PIECES), 0)
    for piece in gathered.pieces:
        parts[piece.kind] += 1
    request, offset = _cropped(request, region) if "far" in without else (request, 0)
    return GatheredRequest(_in_any_case(request, spec), offset, region, tuple(parts.items()))


def _window(query: Snapshot) -> tuple[int, int]:
    """Return a window of lines around the cursor that is not too long."""
    lines, at = query.text.split("\n"), query.line
    first, last = window(at, len(lines))
    costs = [estimate(line) + 3 for line in lines[first:last]]
    return shrunk(costs, first, last, at, TOKENS)


def _around(
    moment: Moment,
    settings: LspSettings,
    edits: tuple[RecentEdit, ...],
    without: Collection[str],
) -> tuple[Workspace, Snapshot]:
    """Return a client with all documents of the moment open, and the user at the cursor.

    They viewed the other documents just before.
    """
    clock = SetClock()
    workspace = Workspace(settings, clock, reads=False)
    workspace.folders = [_ROOT]
    workspace.context.kinds = PIECES - {_EXCERPTS[kind] for kind in without if kind in _EXCERPTS}
    for other in moment.others:
        workspace.open(_uri(other.path), other.text, 0, other.language)
    workspace.open(_uri(moment.path), moment.text, 0, moment.language)

    def at(path: str, cursor: int) -> Snapshot:
        found = workspace.snapshot(_uri(path), cursor, RequestFlags())
        return replace(found, edits=RecentEdits.of(edits))

    for other in moment.others:
        if other.cursor is not None:
            workspace.context.gather(at(other.path, other.cursor))
    clock.now_s += _LOOKED_S
    workspace.context.gather(at(moment.path, moment.cursor))  # from here on it knows all documents
    workspace.context.catch_up()
    workspace.context.exclusions_changed()  # chosen anew, with all of them read
    return workspace, at(moment.path, moment.cursor)


def _cropped(request: EditRequest, region: tuple[int, int]) -> tuple[EditRequest, int]:
    """Return the request with the region as its whole text, and where that begins."""
    lines = request.text.split("\n")
    first, last = region
    offset = sum(len(line) + 1 for line in lines[:first])
    text = "\n".join(lines[first:last])
    cursor = min(max(0, request.cursor - offset), len(text))
    return replace(request, text=text, cursor=cursor, region=(0, last - first)), offset


def _uri(path: str) -> str:
    return f"{_ROOT}/{quote(path)}"
