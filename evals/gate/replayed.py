"""What the model proposes in the moments of recordings: ``redraft gate outcomes --recording``.

A recording is played through the language server itself (:mod:`redraft.evals.replay.player`); what
the model answered about the user's document is held against what the user typed next. Where that
cannot be told, the candidate says nothing. Examples hold what is right among
their measurements.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from redraft.lsp.settings import LspSettings
from redraft.model.edits.edit import Edit
from redraft.model.gate.fitting import fit
from redraft.model.records import LEAST_LOG, Candidate, EditRequest, Prediction

from ..example import Example, Moment, Truth
from ..predictors import ReadyPredictor
from ..replay.matchers import UNSEEN_S, DocumentChange, match, until_rest
from ..replay.player import TASKS, MomentResult, play
from ..replay.script import Script, sample
from ..replay.timed_predictor import ReplayPredictor
from ..run import OnDone, Run, quiet

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
    """Ask at moments of recordings that ``run`` does not hold yet.

    Args:
        limit: moments at most, of each recording.
        context: tokens of a prompt.
    """
    chosen = {each for script in scripts for each in sample([script], limit, seed)}
    told = _asked_at(run)
    settings = LspSettings(context_tokens=context, prefetch=False)
    for script in scripts:
        left = frozenset(
            each.id for each in script.moments if each.id in chosen and each.id not in told
        )
        if not left:
            continue
        ask = partial(_in_any_case, ready)
        predictor = ReplayPredictor(ask, ready.status, LATENCY_MS)

        def hear(outcome: MomentResult, script: Script = script) -> None:
            for each in examples_of(script, outcome):
                run.add(each)
            told.add(outcome.moment.id)
            progress(len(told & chosen), len(chosen))

        play(script, left, predictor, settings, hear)


def _asked_at(run: Run) -> set[str]:
    return {each.measured["moment"] for each in run.examples.values()}


def _in_any_case(ready: ReadyPredictor, request: EditRequest) -> Prediction:
    """However sure the model is that nothing is to be done."""
    return ready.ask(replace(request, min_tokens=1, seed=0, least_total=LEAST_LOG))


def examples_of(script: Script, outcome: MomentResult) -> Iterator[Example]:
    """Return for each task the answer about the user's own document.

    Where there is none, the example has no prediction, so that the moment counts.
    """
    moment = outcome.moment
    steps = script.following(moment.document, moment.done)
    final = _at_rest(moment.text, until_rest(steps, moment.at_s))
    is_told = script.ends_s - moment.at_s >= UNSEEN_S
    for task, asking in zip(TASKS, outcome.askings, strict=True):
        request, prediction = next(
            (
                (each.request, each.prediction)
                for each in asking.answered
                if each.request.task == task and each.request.text == moment.text
            ),
            (None, None),
        )
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


def _at_rest(text: str, steps: Iterable[DocumentChange]) -> str:
    for step in steps:
        text = step.apply(text)
    return text


def is_right(
    request: EditRequest, candidate: Candidate, steps: Sequence[DocumentChange], told: bool
) -> bool | None:
    """Did the user write it, or begin to; None: it cannot be told."""
    edit = Edit(request.text, candidate.start, candidate.end, candidate.text)
    if request.task == "infill":
        made = fit(edit.new, request, replaces=True)
        edit = made if isinstance(made, Edit) else edit
    least = edit.least()
    seen = match(least.text, least.start, least.end, least.new, steps, told)
    if seen.exact is None and seen.prefix is None:
        return None
    return bool(seen.exact or seen.prefix)
