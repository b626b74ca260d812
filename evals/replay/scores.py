"""From what the session did at a moment to the line of a run: what was shown, what it was worth.

An episode is a suggestion for as long as it stays the same: it is judged once, where it first
stood. What was not shown is judged alike, so that other thresholds can be told from the same run.
Knows nothing of how the session was asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from redraft.lsp.settings import LspSettings
from redraft.model.edits.edit import Edit
from redraft.model.gate.fitting import fit
from redraft.model.gate.gate import shipped
from redraft.model.records import Candidate, EditRequest, Stats
from redraft.model.text.syntax import language_of

from .. import metrics
from ..example import Example, Moment, Row
from .matchers import UNSEEN_S, WITHIN, Comparison, Match, compare, match, needed, until_rest
from .player import MomentResult, Offer, PlayedQuestion
from .script import ReplayMoment, Script
from .timed_predictor import TimedAnswer

#: Lines by which an unchanged suggestion may move and still be the same episode.
_SLACK_LINES = 2


class Scorer:
    """Makes the lines of one recording, in the order of its moments."""

    def __init__(self, script: Script, settings: LspSettings) -> None:
        self._script = script
        self._settings = settings
        self._last: tuple[Offer, bool, str] | None = None  # what led, was it shown, its episode

    def example(self, outcome: MomentResult) -> Example:
        """Return a moment, with the suggestion that led: the one shown, else the likeliest."""
        asking, offer = self._lead(outcome)
        shown = asking is not None and asking.shown is not None
        moment = outcome.moment
        steps = self._script.following(moment.document, moment.done)
        left = needed(steps, moment.at_s, self._script.ends_s)
        line: Row = {
            "session": moment.session,
            "simulated": self._script.simulated,
            "at_s": round(moment.at_s, 3),
            "typed": moment.typed,
            "left": left,
            "shown": shown,
            "shown_left": shown if left else None,
            "quiet": not shown if left is False else None,
            "reason": _reasons(outcome),
        }
        line |= self._suggestion(moment, outcome, asking, offer)
        line |= _cost(outcome, asking)
        return Example(
            moment.id,
            moment.group,
            tags={"language": moment.language or "other"},
            moment=Moment(moment.path, moment.language, moment.text),
            measured={"answers": [each.as_json() for each in outcome.answers]},
            score=line,
        )

    # --- which suggestion --------------------------------------------------------------------

    def _lead(self, outcome: MomentResult) -> tuple[PlayedQuestion | None, Offer | None]:
        for asking in outcome.askings:
            if asking.shown is not None:
                return asking, asking.shown
        found = [
            (offer.confidence - self._least(asking), asking, offer)
            for asking in outcome.askings
            for offer in _candidates(outcome.moment, asking)
        ]
        if not found:
            return None, None
        _, asking, offer = max(found, key=lambda each: each[0])
        return asking, offer

    def _least(self, asking: PlayedQuestion) -> float:
        return self._settings.threshold

    def _is_too_unsure(self, asking: PlayedQuestion, offer: Offer) -> bool:
        """Is the threshold all that is known to speak against an offer?"""
        said = asking.abstained is not None and asking.abstained.kind == "below_threshold"
        return said and offer.confidence < self._least(asking)

    def _suggestion(
        self,
        moment: ReplayMoment,
        outcome: MomentResult,
        asking: PlayedQuestion | None,
        offer: Offer | None,
    ) -> dict[str, Any]:
        if asking is None or offer is None:
            self._last = None
            return {"task": None, "repeat": False, "saved": 0, "utility": 0.0, "accepted": None}
        shown = asking.shown is not None
        repeat = self._last is not None and self._last[1] == shown and _again(self._last[0], offer)
        first = self._last[2] if self._last is not None and repeat else moment.id
        self._last = offer, shown, first
        barred = not shown and not self._is_too_unsure(asking, offer)
        line: dict[str, Any] = {
            "task": offer.task,
            "repeat": repeat,
            "episode": first,
            "late": asking.late,
            "barred": barred,
            "confidence": offer.confidence,
            "was": offer.old,
            "suggested": offer.replacement,
            "saved": 0,
            "utility": 0.0,
        }
        at_s = moment.asks_s + asking.arrived_s - outcome.asked_s
        return line if repeat else line | self._worth(moment, offer, shown, at_s)

    # --- what it was worth -------------------------------------------------------------------

    def _worth(
        self, moment: ReplayMoment, offer: Offer, shown: bool, at_s: float
    ) -> dict[str, Any]:
        steps = self._script.following(offer.document, offer.done)
        place = offer.text, offer.start, offer.end, offer.replacement
        matched = match(*place, steps, told=self._script.ends_s - at_s >= UNSEEN_S)
        compared = compare(*place, until_rest(steps, at_s))
        worth: dict[str, Any] = {**_matched(matched, shown), **_compared(compared, shown)}
        by_any = [replace(step, typed=True) for step in steps[:WITHIN]]
        worth["reached"] = match(*place, by_any).exact if shown else None
        if not shown:
            return worth
        path = self._script.paths[offer.document]
        saved = metrics.keystrokes_saved(offer.old, offer.replacement, offer.jumps)
        return worth | {
            "saved": saved if matched.exact else 0,
            "utility": None if matched.exact is None else metrics.utility(matched.exact),
            "characters": len(offer.replacement),
            "reversal": self._reversal(moment, offer),
            "errors_added": metrics.errors_added(offer.text, offer.result, language_of(path) or ""),
        }

    def _reversal(self, moment: ReplayMoment, offer: Offer) -> float | None:
        if offer.document != moment.document or offer.text != moment.text:
            return None  # the last edit was another one
        return metrics.reversal_ratio(moment.before, offer.text, offer.result)


def _matched(found: Match, shown: bool) -> dict[str, bool | None]:
    return {
        "exact": found.exact,
        "white_space": found.white_space,
        "prefix": found.prefix,
        "accepted": found.exact if shown else None,
        "accepted_white_space": found.white_space if shown else None,
        "accepted_prefix": found.prefix if shown else None,
        "told": found.exact is not None if shown else None,
    }


def _compared(found: Comparison | None, shown: bool) -> dict[str, float | None]:
    if found is None or not shown:
        return {"delta_chrf": None, "kept_chars": None, "suggested_chars": None, "done_chars": None}
    return {
        "delta_chrf": round(found.delta_chrf, 3),
        "kept_chars": found.right,
        "suggested_chars": found.suggested,
        "done_chars": found.done,
    }


def _candidates(moment: ReplayMoment, asking: PlayedQuestion) -> list[Offer]:
    """What the model would have had for the moment's document, the likeliest of each answer."""
    return [
        _offer(moment, answer.request, answer.prediction.candidates[0])
        for answer in asking.answered
        if answer.prediction is not None
        and answer.prediction.candidates
        and answer.request.task == asking.task
        and answer.request.text == moment.text
    ]


def _offer(moment: ReplayMoment, request: EditRequest, candidate: Candidate) -> Offer:
    text, start, end, new = request.text, candidate.start, candidate.end, candidate.text
    if request.task == "infill":
        fitted = fit(new, request, replaces=True)
        if isinstance(fitted, Edit):
            end, new = fitted.end, fitted.new
    sure = shipped().score(candidate, request.task)
    made = Offer(request.task, moment.document, text, moment.done, start, end, new, sure)
    return made.least()


def _again(before: Offer, now: Offer) -> bool:
    """Is it the same suggestion still, or what typing left of it?"""
    if before.id and before.id == now.id:
        return True
    same = (before.task, before.document) == (now.task, now.document)
    if same and before.result == now.result:
        return True
    lines = [offer.text.count("\n", 0, offer.start) for offer in (before, now)]
    near = abs(lines[0] - lines[1]) <= _SLACK_LINES
    return same and near and (before.old, before.replacement) == (now.old, now.replacement)


# --- reasons and costs ---------------------------------------------------------------------------


def _reasons(outcome: MomentResult) -> str:
    """Why nothing was shown, for people."""
    if any(each.shown is not None for each in outcome.askings):
        return ""
    names = {"infill": "ghost text", "next_edit": "next edit"}
    told = ((names[each.task], each.abstained) for each in outcome.askings)
    return "; ".join(f"{name}: {why.reason}" for name, why in told if why is not None)


def _cost(outcome: MomentResult, asking: PlayedQuestion | None) -> dict[str, Any]:
    """What all questions of a moment took together, and how long the one that led, or was answered
    last, was on its way."""
    answers = list(outcome.answers)
    all_stats = [each.prediction.stats for each in answers if each.prediction is not None]
    line: dict[str, Any] = {
        "requests": len(answers),
        "given_up": sum(not each.ended for each in answers),
        "prompt_tokens": sum(each.prompt_tokens for each in all_stats),
        "reused_tokens": sum(each.reused_tokens for each in all_stats),
        "steps": sum(each.denoise_steps for each in all_stats),
        "tokens": sum(each.canvas_tokens for each in all_stats),
    }
    asked = [each for each in outcome.askings if each.answered]
    if not asked:
        return line
    timed = asking if asking is not None and asking.answered else asked[-1]
    return line | _stages(outcome, timed, timed.answered[-1])


def _stages(outcome: MomentResult, asking: PlayedQuestion, answer: TimedAnswer) -> dict[str, float]:
    stats = answer.prediction.stats if answer.prediction is not None else Stats()
    stages = {
        "total_ms": 1e3 * (asking.arrived_s - outcome.asked_s),
        "delay_ms": 1e3 * (answer.asked_s - outcome.asked_s),
        "queue_ms": stats.queue_ms,
        "context_ms": answer.prepared_ms + stats.prompt_ms,
        "prefill_ms": stats.prefill_ms,
        "denoise_ms": stats.denoise_ms,
        "gate_ms": 1e3 * (asking.finished - answer.ended),
        "model_ms": answer.latency_ms,
    }
    return {name: round(value, 2) for name, value in stages.items()}
