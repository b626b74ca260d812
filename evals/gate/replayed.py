"""Candidates at the moments of recordings, labelled: ``redraft gate outcomes --recording``.

A recording is played through a session (:mod:`redraft.evals.replay.player`). The model's answers
about the user's document are compared with what the user typed next. A candidate whose outcome is
unknown has no label. Examples hold the labels among their measurements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial

from redraft.lsp.settings import LspSettings
from redraft.model.edits.edit import Edit
from redraft.model.gate.fitting import fit
from redraft.model.records import LEAST_LOG, Candidate, EditRequest, Prediction

from ..example import Example, Moment, Truth
from ..predictors import ReadyPredictor
from ..replay.answers import ReplayPredictor
from ..replay.player import TASKS, MomentResult, play
from ..run import OnDone, Run, quiet
from ..scorers.matchers import UNSEEN_S, match, until_rest
from ..sources.recorded_moments import DocumentChange, Script, sample

KIND = "replayed"
LATENCY_MS = 400.0  # simulated, of every answer: about what one takes on two cores


def replay_outcomes(
    scripts: Sequence[Script],
    ready: ReadyPredictor,
    run: Run,
    limit: int | None,
    context: int,
    seed: int = 0,
    progress: OnDone = quiet,
) -> None:
    """Ask at the moments of recordings that ``run`` lacks.

    Args:
        limit: moments at most, of each recording.
        context: tokens of a prompt.
    """
    chosen = {each for script in scripts for each in sample([script], limit, seed)}
    done = {each.measured["moment"] for each in run.examples.values()}
    settings = LspSettings(context_tokens=context, prefetch=False)
    for script in scripts:
        left = {each.id for each in script.moments} & chosen - done
        if not left:
            continue
        predictor = ReplayPredictor(partial(_ask, ready), ready.status, LATENCY_MS)
        for result in play(script, left, predictor, settings):
            for example in examples_of(script, result):
                run.add(example)
            done.add(result.moment.id)
            progress(len(done & chosen), len(chosen))


def _ask(ready: ReadyPredictor, request: EditRequest) -> Prediction:
    """Return an answer, however sure the model is that nothing is to be done."""
    return ready.ask(replace(request, min_tokens=1, seed=0, least_total=LEAST_LOG))


def examples_of(script: Script, result: MomentResult) -> Iterator[Example]:
    """Yield for each task the answer about the user's document.

    An example without an answer has no prediction, so that the moment counts.
    """
    moment = result.moment
    steps = script.following(moment.document, moment.done)
    is_told = script.ends_s - moment.at_s >= UNSEEN_S
    final = moment.text
    for step in until_rest(steps, moment.at_s):
        final = step.apply(final)
    for task, asking in zip(TASKS, result.askings, strict=True):
        answers = (
            (each.request, each.prediction)
            for each in asking.answered
            if each.request.task == task and each.request.text == moment.text
        )
        request, prediction = next(answers, (None, None))
        candidates = prediction.candidates if prediction is not None else ()
        right = [is_right(request, each, steps, is_told) for each in candidates if request]
        cursor, edits = (request.cursor, request.edits) if request else (0, ())
        yield Example(
            f"{KIND}:{moment.id}:{task}",
            moment.group,
            task,
            {"language": moment.language or "other", "kind": KIND},
            Moment(moment.path, moment.language, moment.text, cursor, edits),
            Truth((), final),
            request,
            prediction,
            {"moment": moment.id, "right": right},
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
