"""Scores of a replay: what was shown at a moment, and its worth.

An episode is a suggestion for as long as it stays the same: it is scored once, where it first
appears. What was not shown is scored too, so that other thresholds can be read off the same run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from redraft.lsp.settings import LspSettings
from redraft.model.edits.edit import Edit
from redraft.model.gate.fitting import fit
from redraft.model.gate.gate import shipped
from redraft.model.records import Stats
from redraft.model.text.syntax import language_of

from .. import metrics
from ..example import Example, Moment, Row
from ..scorers.matchers import UNSEEN_S, WITHIN, compare, match, needed, until_rest
from ..sources.recorded_moments import ReplayMoment, Script
from .answers import TimedAnswer
from .player import MomentResult, Offer, PlayedQuestion

#: Lines by which an unchanged suggestion may move and still be the same episode.
_SLACK_LINES = 2


class Scorer:
    """Scores the moments of one recording, in order."""

    def __init__(self, script: Script, settings: LspSettings) -> None:
        self._script = script
        self._settings = settings
        self._last: tuple[Offer, bool, str] | None = None  # what led, was it shown, its episode

    def example(self, result: MomentResult) -> Example:
        """Return a moment with the scores of the suggestion that leads.

        That is the one shown, else the likeliest candidate.
        """
        asking, offer = self._lead(result)
        moment, is_shown = result.moment, asking is not None and asking.shown is not None
        steps = self._script.following(moment.document, moment.done)
        left = needed(steps, moment.at_s, self._script.ends_s)
        row: Row = {
            "session": moment.session,
            "simulated": self._script.simulated,
            "at_s": round(moment.at_s, 3),
            "typed": moment.typed,
            "left": left,
            "shown": is_shown,
            "shown_left": is_shown if left else None,
            "quiet": not is_shown if left is False else None,
            "reason": _reasons(result),
        }
        row |= self._suggestion(result, asking, offer)
        row |= _cost(result, asking)
        return Example(
            moment.id,
            moment.group,
            tags={"language": moment.language or "other"},
            moment=Moment(moment.path, moment.language, moment.text),
            measured={"answers": [each.as_json() for each in result.answers]},
            score=row,
        )

    def _lead(self, result: MomentResult) -> tuple[PlayedQuestion | None, Offer | None]:
        for asking in result.askings:
            if asking.shown is not None:
                return asking, asking.shown
        offers = [
            (asking, offer)
            for asking in result.askings
            for offer in _candidates(result.moment, asking)
        ]
        return max(offers, key=lambda each: each[1].confidence, default=(None, None))

    def _suggestion(
        self, result: MomentResult, asking: PlayedQuestion | None, offer: Offer | None
    ) -> Row:
        if asking is None or offer is None:
            self._last = None
            return {"task": None, "repeat": False, "saved": 0, "utility": 0.0, "accepted": None}
        moment, is_shown = result.moment, asking.shown is not None
        before = self._last
        repeats = before is not None and before[1] == is_shown and _is_again(before[0], offer)
        first = before[2] if before is not None and repeats else moment.id
        self._last = offer, is_shown, first
        # A score below the threshold is the only objection that another threshold would lift.
        is_unsure = asking.abstained is not None and asking.abstained.kind == "below_threshold"
        is_unsure = is_unsure and offer.confidence < self._settings.threshold
        row: Row = {
            "task": offer.task,
            "repeat": repeats,
            "episode": first,
            "late": asking.late,
            "barred": not is_shown and not is_unsure,
            "confidence": offer.confidence,
            "was": offer.edit.old,
            "suggested": offer.edit.new,
            "saved": 0,
            "utility": 0.0,
        }
        at_s = moment.asks_s + asking.arrived_s - result.asked_s
        return row if repeats else row | self._worth(moment, offer, is_shown, at_s)

    def _worth(self, moment: ReplayMoment, offer: Offer, is_shown: bool, at_s: float) -> Row:
        steps, edit = self._script.following(offer.document, offer.done), offer.edit
        matched = match(edit, steps, told=self._script.ends_s - at_s >= UNSEEN_S)
        compared = compare(edit, until_rest(steps, at_s)) if is_shown else None
        by_anyone = [replace(step, source="user") for step in steps[:WITHIN]]
        row: Row = {
            "exact": matched.exact,
            "white_space": matched.white_space,
            "prefix": matched.prefix,
            "accepted": matched.exact if is_shown else None,
            "accepted_white_space": matched.white_space if is_shown else None,
            "accepted_prefix": matched.prefix if is_shown else None,
            "told": matched.exact is not None if is_shown else None,
            "reached": match(edit, by_anyone).exact if is_shown else None,
            "delta_chrf": round(compared.delta_chrf, 3) if compared else None,
            "kept_chars": compared.right if compared else None,
            "suggested_chars": compared.suggested if compared else None,
            "done_chars": compared.done if compared else None,
        }
        if not is_shown:
            return row
        language = language_of(self._script.paths[offer.document]) or ""
        reversal = None  # where the last edit was another document's, or another one
        if offer.document == moment.document and edit.text == moment.text:
            reversal = metrics.reversal_ratio(moment.before, edit.text, edit.result)
        saved = metrics.keystrokes_saved(edit.old, edit.new, offer.jumps)
        return row | {
            "saved": saved if matched.exact else 0,
            "utility": None if matched.exact is None else metrics.utility(matched.exact),
            "characters": len(edit.new),
            "reversal": reversal,
            "errors_added": metrics.errors_added(edit.text, edit.result, language),
        }


def _candidates(moment: ReplayMoment, asking: PlayedQuestion) -> Iterator[Offer]:
    """Yield the likeliest candidate of each answer about the moment's document."""
    for answer in asking.answered:
        request, prediction = answer.request, answer.prediction
        is_about = request.task == asking.task and request.text == moment.text
        if prediction is None or not prediction.candidates or not is_about:
            continue
        candidate = prediction.candidates[0]
        edit = Edit(request.text, candidate.start, candidate.end, candidate.text)
        if request.task == "infill":
            fitted = fit(edit.new, request, replaces=True)
            if isinstance(fitted, Edit):
                edit = Edit(edit.text, edit.start, fitted.end, fitted.new)
        score = shipped().score(candidate, request.task)
        yield Offer(request.task, moment.document, moment.done, edit.least(), score)


def _is_again(before: Offer, now: Offer) -> bool:
    """Return whether it is the same suggestion still, or what typing left of it."""
    if before.id and before.id == now.id:
        return True
    same = (before.task, before.document) == (now.task, now.document)
    old, new = before.edit, now.edit
    if same and old.result == new.result:
        return True
    lines = [edit.text.count("\n", 0, edit.start) for edit in (old, new)]
    near = abs(lines[0] - lines[1]) <= _SLACK_LINES
    return same and near and (old.old, old.new) == (new.old, new.new)


def _reasons(result: MomentResult) -> str:
    """Return why nothing was shown, for people."""
    if any(each.shown is not None for each in result.askings):
        return ""
    names = {"infill": "ghost text", "next_edit": "next edit"}
    reasons = ((names[each.task], each.abstained) for each in result.askings)
    return "; ".join(f"{name}: {why.reason}" for name, why in reasons if why is not None)


def _cost(result: MomentResult, asking: PlayedQuestion | None) -> dict[str, Any]:
    """Return what all questions of a moment took, and the stages of one of them.

    That is the one that leads, else the last that was answered.
    """
    answers = list(result.answers)
    stats = [each.prediction.stats for each in answers if each.prediction is not None]
    row: dict[str, Any] = {
        "requests": len(answers),
        "given_up": sum(not each.ended for each in answers),
        "prompt_tokens": sum(each.prompt_tokens for each in stats),
        "reused_tokens": sum(each.reused_tokens for each in stats),
        "steps": sum(each.denoise_steps for each in stats),
        "tokens": sum(each.canvas_tokens for each in stats),
    }
    answered = [each for each in result.askings if each.answered]
    if not answered:
        return row
    timed = asking if asking is not None and asking.answered else answered[-1]
    return row | _stages(result, timed, timed.answered[-1])


def _stages(result: MomentResult, asking: PlayedQuestion, answer: TimedAnswer) -> dict[str, float]:
    stats = answer.prediction.stats if answer.prediction is not None else Stats()
    stages = {
        "total_ms": 1e3 * (asking.arrived_s - result.asked_s),
        "delay_ms": 1e3 * (answer.asked_s - result.asked_s),
        "queue_ms": stats.queue_ms,
        "context_ms": answer.prepared_ms + stats.prompt_ms,
        "prefill_ms": stats.prefill_ms,
        "denoise_ms": stats.denoise_ms,
        "gate_ms": 1e3 * (asking.finished - answer.ended),
        "model_ms": answer.latency_ms,
    }
    return {name: round(value, 2) for name, value in stages.items()}
