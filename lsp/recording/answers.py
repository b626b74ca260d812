"""Events about suggestions: an answer of the model, and the decision that the client gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redraft.model.gate.explore import ExplorationDraw
from redraft.model.gate.features import Features
from redraft.model.gate.gate import Gate
from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Prediction, Stats
from redraft.model.text.cursor import line_after

from ..positions import units
from ..settings import LspSettings
from ..suggestion import PlacedRequest, Show
from .events import (
    AnswerEvent,
    DecisionEvent,
    LineAndColumn,
    PlacedText,
    RecordedCandidate,
)

#: The gate, features of the user's typing, and the threshold at a moment.
GateInputs = tuple[Gate, Features, ExplorationDraw]


def answer_event(
    at: tuple[int, int],
    number: int,
    question: PlacedRequest,
    answer: tuple[Prediction, Show | Abstain, float],
    settings: LspSettings,
    gate_inputs: GateInputs,
) -> AnswerEvent:
    """Return every candidate of an answer with the gate's verdict.

    Args:
        at: time in ms since 1970, and the number of the document.
        number: of the question, within the session.
        answer: prediction, decision, and ms from the question to the answer.
    """
    (time_ms, document), (prediction, decision, took_ms) = at, answer
    gate, pace, draw = gate_inputs
    query, request, stats = question.query, question.request, prediction.stats

    def weighed(candidate: Candidate) -> RecordedCandidate:
        verdict = gate.weigh(candidate, request.task, pace)
        return RecordedCandidate(
            edit=placed(query.text, candidate.start, candidate.end, candidate.text),
            show_probability=round(verdict.score, 5),
            confidence=candidate.confidence,
            tokens=candidate.tokens,
            steps=candidate.steps,
            finish=candidate.finish,
            source=candidate.source,
            chance=round(verdict.chance, 5),
            passed=verdict.score >= draw.threshold,
            propensity=round(draw.propensity(verdict.score), 5),
            features=_rounded(candidate.features),
            family=candidate.family,
        )

    return AnswerEvent(
        time_ms,
        document,
        number,
        request.task,
        place(query.text, query.cursor),
        tuple(map(weighed, prediction.candidates)),
        shown=decision.suggestion.id if isinstance(decision, Show) else None,
        reason=decision.reason or prediction.reason,
        threshold=draw.threshold,
        explores=draw.explores,
        moment=_moment(question),
        pace=_rounded(pace),
        versions={
            "model": prediction.model,
            "weights": prediction.weights,
            "gate": f"{gate.name}, {settings.eagerness_in(query.language)}",
            "quality": settings.quality,
        },
        latency=_latency(stats, took_ms),
        counts={
            "prompt": stats.prompt_tokens,
            "reused": stats.reused_tokens,
            "canvas": stats.canvas_tokens,
            "steps": stats.denoise_steps,
        },
        after=question.ahead_of,
    )


def _moment(question: PlacedRequest) -> dict[str, Any]:
    """Return what the document and the outcomes do not show again later."""
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


def _latency(stats: Stats, took_ms: float) -> dict[str, float]:
    stages = {
        "tookMs": took_ms,
        "queueMs": stats.queue_ms,
        "promptMs": stats.prompt_ms,
        "prefillMs": stats.prefill_ms,
        "denoiseMs": stats.denoise_ms,
        "totalMs": stats.total_ms,
    }
    return {name: round(value, 2) for name, value in stages.items()}


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 5) for name, value in values.items()}


def decision_event(time_ms: int, document: int, decision: Show | Abstain) -> DecisionEvent:
    """Return what the client gets: a suggestion, or why there is none."""
    if isinstance(decision, Abstain):
        return DecisionEvent(time_ms, document, None, decision.reason)
    suggestion = decision.suggestion
    return DecisionEvent(
        time_ms,
        document,
        suggestion.id,
        decision.reason,
        suggestion.task,
        placed(suggestion.text, suggestion.start, suggestion.end, suggestion.replacement),
        decision.text,
        round(suggestion.confidence, 5),
        suggestion.model,
    )


def placed(text: str, start: int, end: int, replacement: str) -> PlacedText:
    """Return the edit that replaces text[start:end], by lines and UTF-16 columns."""
    return PlacedText(place(text, start), place(text, end), replacement)


def place(text: str, index: int) -> LineAndColumn:
    """Return line and column of an index into a text."""
    start = text.rfind("\n", 0, index) + 1
    return text.count("\n", 0, index), units(text[start:index])
