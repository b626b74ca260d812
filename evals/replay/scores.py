"""Scores of a replay: what was shown at a moment, and its worth.

An episode is a suggestion for as long as it stays the same: it is scored once, where it first
appears. The model's answers about the user's document are kept with labels, shown or not, so that
``redraft eval gate`` says what other thresholds would have shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from redraft.evals.scorers.at_rest import compare, has_work_left
from redraft.lsp.learning.matching import UNSEEN_S, WITHIN, match, until_rest
from redraft.lsp.learning.recorded_moments import DocumentChange, ReplayMoment, Script
from redraft.model.edits.edit import Edit
from redraft.model.gate.fitting import fit
from redraft.model.records import Candidate, EditRequest, Stats
from redraft.model.text.syntax import language_of

from .. import metrics
from ..example import Example, Moment, Row, Truth
from .player import EditorQuestion, MomentResult, ShownEdit
from .simulated_predictor import TimedAnswer

#: Lines by which an unchanged suggestion may move and still be the same episode.
_SLACK_LINES = 2
_NAMES = {"infill": "ghost text", "next_edit": "next edit"}
_NOTHING: Row = {"task": None, "repeat": False, "saved": 0, "utility": 0.0, "accepted": None}


class Scorer:
    """Scores the moments of one recording, in order."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._last: tuple[ShownEdit, str] | None = None  # what was shown, and its episode

    def example(self, result: MomentResult) -> Example:
        """Return a moment with the scores of the suggestion that is shown."""
        moment, shown = result.moment, result.shown
        left = has_work_left(self._following(moment), moment.at_s, self._script.ends_s)
        reasons = ((_NAMES[each.task], each.reason) for each in result.questions)
        row: Row = {
            "session": moment.session,
            "at_s": round(moment.at_s, 3),
            "typed": moment.typed,
            "left": left,
            "shown": shown is not None,
            "shown_left": shown is not None if left else None,
            "quiet": shown is None if left is False else None,
            "reason": "" if shown else "; ".join(f"{task}: {why}" for task, why in reasons if why),
            **self._suggestion(result, shown),
            **_cost(result, shown),
        }
        return Example(
            moment.id,
            moment.group,
            tags={"language": moment.language or "other"},
            moment=Moment(moment.path, moment.language, moment.text),
            measured={"asked": [each.to_json() for each in self._asked(result)]},
            score=row,
        )

    def _following(self, moment: ReplayMoment) -> Sequence[DocumentChange]:
        return self._script.steps_after(moment.document, moment.done)

    def _suggestion(self, result: MomentResult, question: EditorQuestion | None) -> Row:
        before, self._last = self._last, None
        if question is None or question.shown is None:
            return _NOTHING
        moment, offer = result.moment, question.shown
        repeats = before is not None and _is_again(before[0], offer)
        first = before[1] if before is not None and repeats else moment.id
        self._last = offer, first
        row: Row = {
            "task": offer.task,
            "repeat": repeats,
            "episode": first,
            "late": question.late,
            "confidence": offer.confidence,
            "was": offer.edit.old,
            "suggested": offer.edit.new,
            "saved": 0,
            "utility": 0.0,
        }
        at_s = moment.asks_s + question.arrived_s - result.asked_s
        return row if repeats else row | self._worth(moment, offer, at_s)

    def _worth(self, moment: ReplayMoment, offer: ShownEdit, at_s: float) -> Row:
        """Return how a suggestion compares with what was typed."""
        steps, edit = self._script.steps_after(offer.document, offer.done), offer.edit
        matched = match(edit, steps, is_known=self._script.ends_s - at_s >= UNSEEN_S)
        compared = compare(edit, until_rest(steps, at_s))
        by_anyone = [replace(step, source="user") for step in steps[:WITHIN]]
        language = language_of(self._script.paths[offer.document]) or ""
        reversal = None  # where the last edit was another document's, or another one
        if offer.document == moment.document and edit.text == moment.text:
            reversal = metrics.reversal_ratio(moment.before, edit.text, edit.result)
        saved = metrics.keystrokes_saved(edit.old, edit.new, offer.jumps)
        return {
            "exact": matched.exact,
            "accepted": matched.exact,
            "accepted_white_space": matched.white_space,
            "accepted_prefix": matched.prefix,
            "told": matched.exact is not None,
            "reached": match(edit, by_anyone).exact,
            "delta_chrf": round(compared.delta_chrf, 3) if compared else None,
            "kept_chars": compared.right if compared else None,
            "suggested_chars": compared.suggested if compared else None,
            "done_chars": compared.done if compared else None,
            "saved": saved if matched.exact else 0,
            "utility": None if matched.exact is None else metrics.utility(matched.exact),
            "characters": len(edit.new),
            "reversal": reversal,
            "errors_added": metrics.errors_added(edit.text, edit.result, language),
        }

    def _asked(self, result: MomentResult) -> Iterator[Example]:
        """Yield for each task the answer about the user's document, labelled for the gate.

        An example without an answer has no prediction, so that the moment counts.
        """
        moment, steps = result.moment, self._following(result.moment)
        is_told = self._script.ends_s - moment.at_s >= UNSEEN_S
        final = moment.text
        for step in until_rest(steps, moment.at_s):
            final = step.apply(final)
        for question in result.questions:
            about = (
                each
                for each in question.answered
                if (each.request.task, each.request.text) == (question.task, moment.text)
            )
            answer = next(about, None)
            right = list[bool | None]()
            place = Moment(moment.path, moment.language, moment.text)
            if answer is not None and answer.prediction is not None:
                asked, candidates = answer.request, answer.prediction.candidates
                place = replace(place, cursor=asked.cursor, edits=asked.edits)
                right = [is_right(asked, each, steps, is_told) for each in candidates]
            yield Example(
                f"{moment.id}:{question.task}",
                moment.group,
                question.task,
                {"language": moment.language or "other", "kind": "replayed"},
                place,
                Truth((), final),
                answer.request if answer else None,
                answer.prediction if answer else None,
                {"right": right},
            )


def is_right(
    request: EditRequest, candidate: Candidate, steps: Sequence[DocumentChange], told: bool
) -> bool | None:
    """Return whether the user wrote it, or began to; None if that is unknown."""
    edit = Edit(request.text, candidate.start, candidate.end, candidate.text)
    if request.task == "infill":
        made = fit(edit.new, request, replaces=True)
        edit = made if isinstance(made, Edit) else edit
    written = match(edit.least(), steps, told)
    if written.exact is None and written.prefix is None:
        return None
    return bool(written.exact or written.prefix)


def _is_again(before: ShownEdit, now: ShownEdit) -> bool:
    """Return whether it is the same suggestion still, or what typing left of it."""
    if before.id == now.id:
        return True
    same = (before.task, before.document) == (now.task, now.document)
    old, new = before.edit, now.edit
    if same and old.result == new.result:
        return True
    lines = [edit.text.count("\n", 0, edit.start) for edit in (old, new)]
    near = abs(lines[0] - lines[1]) <= _SLACK_LINES
    return same and near and (old.old, old.new) == (new.old, new.new)


def _cost(result: MomentResult, shown: EditorQuestion | None) -> dict[str, Any]:
    """Return what all questions of a moment took, and the stages of one of them.

    That is the one that is shown, else the last that was answered.
    """
    answers = [answer for each in result.questions for answer in each.trace.answers]
    stats = [each.prediction.stats for each in answers if each.prediction is not None]
    row: dict[str, Any] = {
        "requests": len(answers),
        "given_up": sum(not each.ended for each in answers),
        "prompt_tokens": sum(each.prompt_tokens for each in stats),
        "reused_tokens": sum(each.reused_tokens for each in stats),
        "steps": sum(each.denoise_steps for each in stats),
        "tokens": sum(each.canvas_tokens for each in stats),
    }
    answered = [each for each in result.questions if each.answered]
    if not answered:
        return row
    timed = shown if shown in answered else answered[-1]
    return row | _stages(result, timed, timed.answered[-1])


def _stages(
    result: MomentResult, question: EditorQuestion, answer: TimedAnswer
) -> dict[str, float]:
    stats = answer.prediction.stats if answer.prediction is not None else Stats()
    stages = {
        "total_ms": 1e3 * (question.arrived_s - result.asked_s),
        "delay_ms": 1e3 * (answer.asked_s - result.asked_s),
        "queue_ms": stats.queue_ms,
        "context_ms": answer.prepared_ms + stats.prompt_ms,
        "prefill_ms": stats.prefill_ms,
        "decode_ms": stats.denoise_ms,
        "gate_ms": 1e3 * (question.finished - answer.ended),
        "model_ms": answer.latency_ms,
    }
    return {name: round(value, 2) for name, value in stages.items()}
