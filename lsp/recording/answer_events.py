"""Events about suggestions: an answer of the model, and the decision that the client gets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from redraft.model.gate.reasons import Abstain
from redraft.model.records import Candidate, Stats
from redraft.model.text.cursor import line_after

from ..documents.positions import units
from ..question import Answer, Question
from ..suggestions.memory import Memory
from ..suggestions.suggestion import Offer
from .recording_events import (
    AnswerEvent,
    DecisionEvent,
    LineAndColumn,
    PlacedText,
    RecordedCandidate,
)


def answer_event(
    at: tuple[int, int],
    answer: Answer,
    decision: Offer | Abstain,
    memory: Memory,
) -> AnswerEvent:
    """Return every candidate of an answer with the gate's verdict.

    Args:
        at: time in ms since 1970, and the number of the document.
        memory: has the gate, its threshold and the pace.
    """
    (time_ms, document), prediction, took_ms = at, answer.prediction, answer.took_ms
    question, stats = answer.question, prediction.stats
    snapshot, settings = question.snapshot, question.snapshot.settings
    gate, draw = memory.gates.gate(), memory.gates.threshold_at(snapshot, question.task)
    pace = memory.pace.features(snapshot.at_s)

    def weigh(candidate: Candidate) -> RecordedCandidate:
        verdict = gate.weigh(candidate, question.task, pace)
        return RecordedCandidate(
            edit=place_edit(snapshot.text, candidate.start, candidate.end, candidate.text),
            show_probability=round(verdict.score, 5),
            confidence=candidate.confidence,
            tokens=candidate.tokens,
            steps=candidate.steps,
            finish=candidate.finish,
            source=candidate.source,
            chance=round(verdict.chance, 5),
            passed=verdict.score >= draw.threshold,
            propensity=round(draw.propensity(verdict.score), 5),
            features=_rounded({**candidate.features, **question.features}),
            family=candidate.family,
        )

    return AnswerEvent(
        time_ms,
        document,
        question.number,
        question.task,
        place(snapshot.text, snapshot.cursor),
        tuple(map(weigh, prediction.candidates)),
        shown=decision.suggestion.id if isinstance(decision, Offer) else None,
        reason=decision.reason or prediction.reason,
        threshold=draw.threshold,
        explores=draw.explores,
        moment=_moment(question),
        pace=_rounded(pace),
        versions={
            "model": prediction.model,
            "weights": prediction.weights,
            "gate": f"{gate.name}, {settings.eagerness_in(snapshot.language)}",
            "quality": settings.quality,
        },
        latency=_latency(stats, took_ms),
        counts={
            "prompt": stats.prompt_tokens,
            "reused": stats.reused_tokens,
            "canvas": stats.canvas_tokens,
            "steps": stats.denoise_steps,
        },
        after=question.after,
    )


def _moment(question: Question) -> dict[str, Any]:
    """Return what the document and the outcomes do not show again later."""
    snapshot = question.snapshot
    since_s = snapshot.since_edit_s
    return {
        "language": snapshot.language,
        "invoked": snapshot.is_invoked,
        "elsewhere": snapshot.visited_from is not None,
        "charactersBefore": snapshot.cursor - snapshot.text.rfind("\n", 0, snapshot.cursor) - 1,
        "charactersAfter": len(line_after(snapshot.text, snapshot.cursor)),
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


def decision_event(time_ms: int, document: int, decision: Offer | Abstain) -> DecisionEvent:
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
        place_edit(suggestion.text, suggestion.start, suggestion.end, suggestion.replacement),
        decision.text,
        round(suggestion.confidence, 5),
        suggestion.model,
    )


def place_edit(text: str, start: int, end: int, replacement: str) -> PlacedText:
    """Return the edit that replaces text[start:end], by lines and UTF-16 columns."""
    return PlacedText(place(text, start), place(text, end), replacement)


def place(text: str, index: int) -> LineAndColumn:
    """Return line and column of an index into a text."""
    start = text.rfind("\n", 0, index) + 1
    return text.count("\n", 0, index), units(text[start:index])
