"""Lines of a recording: ``workspaceRecording@1.0``, and our own events within it.

Each function makes one entry, or the ``data`` of one event, ready for JSON. Our events tell of
suggestions: what was asked, every candidate with what spoke for and against it, what was shown or
why nothing was, and its outcome. They stand where other readers of the format look past them: as
further keys, or as an ``event`` with a ``sourceId`` beginning with ``Redraft.``. Offsets count
UTF-16 code units, times are ms since 1970. Places of candidates are ``[line, character]``, both
0-based, characters in UTF-16 code units. Pure functions.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Literal

from redraft.model.gate.explore import ExplorationDraw
from redraft.model.gate.features import Features
from redraft.model.gate.gate import Gate
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Prediction, Task
from redraft.model.text.cursor import line_after

from ..outcomes import Settled
from ..positions import units
from ..settings import LspSettings
from ..suggestion import PlacedRequest, Show, Suggestion

FORMAT = "workspaceRecording@1.0"

#: Where a change came from. ``undo`` is a redo as well; ``external`` is anything but the user, and
#: no one knows what.
ChangeSource = Literal["user", "paste", "suggestion", "agent", "git", "format", "undo", "external"]

CHANGE_REASON = "TextModel.setChangeReason"
FETCH = "InlineCompletions.fetch"
ACCEPTED_REASON = "inlineSuggestion.accept"

Entry = dict[str, Any]
#: ``text`` in place of [start, end).
Replacement = tuple[int, int, str]


def line_of(entry: Entry) -> bytes:
    """An entry as its line. ASCII, so that a lone half of a surrogate pair survives."""
    return (json.dumps(entry, separators=(",", ":")) + "\n").encode("ascii")


def header(uuid: str, root: str, time_ms: int, made_by: str, simulated: bool = False) -> Entry:
    entry: Entry = {
        "kind": "header",
        "documentType": FORMAT,
        "repoRootUri": root,
        "time": time_ms,
        "uuid": uuid,
        "madeBy": made_by,
    }
    return {**entry, "simulated": True} if simulated else entry


def application_start(time_ms: int) -> Entry:
    return {"kind": "applicationStart", "time": time_ms}


def encountered(document: int, path: str, time_ms: int) -> Entry:
    return {"kind": "documentEncountered", "id": document, "time": time_ms, "relativePath": path}


def set_content(document: int, version: int | None, content: str, time_ms: int) -> Entry:
    return _versioned("setContent", document, version, time_ms) | {"content": content}


def opened(document: int, time_ms: int) -> Entry:
    return {"kind": "opened", "id": document, "time": time_ms}


def closed(document: int, time_ms: int) -> Entry:
    return {"kind": "closed", "id": document, "time": time_ms}


def focused(document: int, time_ms: int) -> Entry:
    return {"kind": "focused", "id": document, "time": time_ms}


def changed(
    document: int,
    version: int | None,
    edits: Iterable[Replacement],
    source: ChangeSource,
    time_ms: int,
) -> Entry:
    """Edits that apply together."""
    entry = _versioned("changed", document, version, time_ms)
    return entry | {"edit": [list(edit) for edit in edits], "source": source}


def change_reason(document: int, version: int | None, reason: str, time_ms: int) -> Entry:
    """Return the entry with the editor's reason for the change to this version."""
    data = {"sourceId": CHANGE_REASON, "source": reason, "v": version}
    return document_event(document, data, time_ms)


def selection_changed(document: int, selections: Sequence[tuple[int, int]], time_ms: int) -> Entry:
    ranges = [list(selection) for selection in selections]
    return {"kind": "selectionChanged", "id": document, "time": time_ms, "selection": ranges}


def document_event(document: int, data: dict[str, Any], time_ms: int) -> Entry:
    return {"kind": "documentEvent", "id": document, "time": time_ms, "data": data}


def event(data: dict[str, Any], time_ms: int) -> Entry:
    return {"kind": "event", "time": time_ms, "data": data}


def _versioned(kind: str, document: int, version: int | None, time_ms: int) -> Entry:
    entry: Entry = {"kind": kind, "id": document, "time": time_ms}
    return entry if version is None else {**entry, "v": version}


ANSWER = "Redraft.answer"
DECISION = "Redraft.decision"
DRAWN = "Redraft.drawn"
OUTCOME = "Redraft.outcome"

Data = dict[str, Any]


def fetch_start(request: int, question: PlacedRequest, version: int | None) -> Data:
    """As editors note it, with our word for what was asked."""
    return {
        "sourceId": FETCH,
        "kind": "start",
        "requestId": request,
        "context": {"triggerKind": int(question.query.invoked)},
        "v": version,
        "task": question.request.task,
    }


def fetch_end(request: int, took_ms: float, error: str = "", shown: Show | None = None) -> Data:
    data: Data = {
        "sourceId": FETCH,
        "kind": "end",
        "requestId": request,
        "durationMs": round(took_ms, 1),
        "result": [_fetched(shown.suggestion)] if shown else [],
    }
    return {**data, "error": error} if error else data


def answer(
    request: int,
    question: PlacedRequest,
    prediction: Prediction,
    decision: Show | Abstain,
    took_ms: float,
    settings: LspSettings,
    gate: Gate,
    pace: Features,
    draw: ExplorationDraw,
) -> Data:
    """Every candidate of the model, shown or not, and what the gate made of it."""
    query, task = question.query, question.request.task
    return {
        "sourceId": ANSWER,
        "requestId": request,
        "task": task,
        "cursor": place(query.text, query.cursor),
        "candidates": [
            _candidate(query.text, each, task, gate, pace, draw) for each in prediction.candidates
        ],
        "shown": decision.suggestion.id if isinstance(decision, Show) else None,
        "reason": decision.reason or prediction.reason,
        "threshold": draw.threshold,
        "explores": draw.explores,
        "features": _features(question),
        "pace": _all_rounded(pace),
        "versions": _versions(prediction, settings, gate),
        "latency": _latency(prediction, took_ms),
        "tokens": _tokens(prediction),
    }


def decision(made: Show | Abstain) -> Data:
    """What the client was told, whether the model was asked for it or not."""
    if isinstance(made, Abstain):
        return {"sourceId": DECISION, "shown": None, "reason": made.reason}
    suggestion = made.suggestion
    return {
        "sourceId": DECISION,
        "shown": suggestion.id,
        "reason": made.reason,
        "task": suggestion.task,
        "edit": _edit(suggestion.text, suggestion.start, suggestion.end, suggestion.replacement),
        "text": made.text,  # what is left of it where some is typed already
        "confidence": _rounded(suggestion.confidence),
        "model": suggestion.model,
    }


def drawn(suggestion: str) -> Data:
    """The client says when it really put it on the screen."""
    return {"sourceId": DRAWN, "suggestion": suggestion}


def outcome(settled: Settled) -> Data:
    """What became of a suggestion. An acceptance stands before the change that it made."""
    return {
        "sourceId": OUTCOME,
        "suggestion": settled.suggestion.id,
        "task": settled.suggestion.task,
        "outcome": settled.outcome,
    }


def place(text: str, index: int) -> list[int]:
    """Line and character of an index into a text."""
    start = text.rfind("\n", 0, index) + 1
    return [text.count("\n", 0, index), units(text[start:index])]


def _edit(text: str, start: int, end: int, replacement: str) -> list[Any]:
    return [place(text, start), place(text, end), replacement]


def _fetched(suggestion: Suggestion) -> Data:
    (line, column), (last, end) = (
        place(suggestion.text, at) for at in (suggestion.start, suggestion.end)
    )
    return {
        "range": f"[{line + 1},{column + 1} -> {last + 1},{end + 1}]",
        "text": suggestion.replacement,
        "isInlineEdit": suggestion.task == "next_edit",
        "source": "redraft",
    }


def _candidate(
    text: str,
    candidate: Candidate,
    task: Task,
    gate: Gate,
    pace: Features,
    draw: ExplorationDraw,
) -> Data:
    confidence = asdict(candidate.confidence)
    logs = {name: [round(log, 3) for log in confidence.pop(name)] for name in ("logs", "lines")}
    weighed = gate.weigh(candidate, task, pace)
    return {
        "edit": _edit(text, candidate.start, candidate.end, candidate.text),
        "showProbability": _rounded(weighed.score),
        "chance": _rounded(weighed.chance),
        "passed": weighed.score >= draw.threshold,
        "propensity": round(draw.propensity(weighed.score), 5),
        "confidence": _all_rounded(confidence) | logs,
        "features": _all_rounded(candidate.features),
        "source": candidate.source,
        "family": candidate.family,
        "tokens": candidate.tokens,
        "steps": candidate.steps,
        "finish": candidate.finish,
    }


def _features(question: PlacedRequest) -> Data:
    """What the document and the outcomes do not tell again later."""
    query, since_s = question.query, question.since_edit_s
    return {
        "language": query.language,
        "invoked": query.invoked,
        "elsewhere": question.is_elsewhere,
        "charactersBefore": query.cursor - query.text.rfind("\n", 0, query.cursor) - 1,
        "charactersAfter": len(line_after(query.text, query.cursor)),
        "sinceEditMs": None if since_s is None else round(1000 * since_s),
        "delayMs": round(question.delay_ms, 1),
        "edits": len(question.request.edits),
        "related": len(question.request.related),
    }


def _all_rounded(values: Mapping[str, float | None]) -> Data:
    return {name: _rounded(value) for name, value in values.items()}


def _versions(prediction: Prediction, settings: LspSettings, gate: Gate) -> Data:
    return {
        "model": prediction.model,
        "weights": prediction.weights,
        "gate": f"{gate.name}, {settings.eagerness}",
        "quality": settings.quality,
    }


def _latency(prediction: Prediction, took_ms: float) -> Data:
    stats = prediction.stats
    told = {
        "tookMs": took_ms,
        "queueMs": stats.queue_ms,
        "promptMs": stats.prompt_ms,
        "prefillMs": stats.prefill_ms,
        "denoiseMs": stats.denoise_ms,
        "totalMs": stats.total_ms,
    }
    return {name: round(value, 2) for name, value in told.items()}


def _tokens(prediction: Prediction) -> Data:
    stats = prediction.stats
    return {
        "prompt": stats.prompt_tokens,
        "reused": stats.reused_tokens,
        "canvas": stats.canvas_tokens,
        "steps": stats.denoise_steps,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 5)
