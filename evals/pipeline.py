"""Take examples through the stages: gather, predict, decide, score.

``answer`` asks a predictor; ``judge`` repeats filters, gate and metrics from what a run holds, so
that new ones need no model.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from redraft.model.errors import SettingsError
from redraft.model.predict import Model
from redraft.model.records import EditRequest

from .example import Example, Row
from .gather import KINDS, RELATED, ContextKind, GatheredRequest, gather
from .predictors import ReadyPredictor
from .run import OnDone, Run, quiet
from .sandbox.sandbox import Execute, run_program
from .scorers import infill, latency, next_edit_scores, replay_tables, small_questions, step_tables
from .scorers.likelihood import has_likelihood, nats_of, nats_of_nothing, prompt_of
from .scorers.next_edit_scores import find_difference, lines_written
from .spec import RunSpec
from .tables import Table

_NAME = re.compile(r"[^\W\d]\w{2,}")

#: Tables of a run, by task.
TABLES: dict[str, Callable[[Sequence[Row], int], Iterator[Table]]] = {
    "infill": infill.tables,
    "edits": next_edit_scores.tables,
    "carry-on": next_edit_scores.suite_tables,
    "chat": small_questions.tables,
    "bench": latency.tables,
    "replay": replay_tables.tables,
    "steps": step_tables.tables,
}


def evaluate(
    examples: Sequence[Example],
    run: Run,
    predictor: ReadyPredictor,
    progress: OnDone = quiet,
    execute: Execute = run_program,
) -> list[Row]:
    """Fill ``run`` with those of ``examples`` that it lacks; return the rows of all, in order.

    Args:
        execute: runs the programs that the model writes.
    """
    for done, example in enumerate(examples, 1):
        if example.id not in run.examples:
            run.add(judge(answer(example, predictor, run.spec), run.spec, execute))
        progress(done, len(examples))
    return [run.examples[each.id].row() for each in examples]


#: What ``--ablate`` leaves out in turn, by name.
ABLATIONS: Mapping[str, tuple[ContextKind, ...]] = {
    "nothing": (),
    **{kind: (kind,) for kind in KINDS},
    "related": RELATED,
    "everything": KINDS,
}


def evaluate_in_turn(
    examples: Sequence[Example],
    runs: Iterable[Run],
    predictor: ReadyPredictor,
    progress: OnDone = quiet,
) -> None:
    """Fill several runs example by example, so that a run that is stopped has as many of each."""
    for done, example in enumerate(examples, 1):
        for run in runs:
            evaluate([example], run, predictor)
        progress(done, len(examples))


# --- gather and predict --------------------------------------------------------------------------


def answer(example: Example, predictor: ReadyPredictor, spec: RunSpec) -> Example:
    """Return the example with its request, prediction and what only now can be measured."""
    if example.task == "chat":
        request = small_questions.request_for(example, spec)
        return replace(example, request=request, prediction=predictor.ask(request))
    asked = gather(example, spec)
    prediction = None
    if not spec.likelihood:
        began_s = time.perf_counter()
        prediction = asked.to_document(predictor.ask(asked.request))
        if predictor.model is None:  # baselines do not measure themselves
            total_ms = round(1000 * (time.perf_counter() - began_s), 1)
            prediction = replace(prediction, stats=replace(prediction.stats, total_ms=total_ms))
    measured = _measured(example, asked, predictor.model)
    return replace(example, request=asked.request, prediction=prediction, measured=measured)


def _measured(example: Example, asked: GatheredRequest, model: Model | None) -> dict[str, Any]:
    if example.task == "infill":
        count = None if model is None else len(model.tokenizer.encode(example.middle))
        return {"answer_tokens": count}
    text, texts = example.moment.text, example.truth.texts
    first, last = find_difference(text, texts[0]) if texts else (0, 0)
    return {
        "reached": asked.region[0] <= first and last <= asked.region[1] if texts else None,
        "parts": dict(asked.parts),
        "words": _words(example, asked.request, model),
        **_likelihood(example, asked, model),
    }


def _likelihood(example: Example, asked: GatheredRequest, model: Model | None) -> Row:
    """Return the nats of the true edit, or of no edit where that is right.

    They are None where the region does not reach the true edit.
    """
    if model is None or not has_likelihood(model):
        return {"nats": None, "nats_quiet": None}
    if not example.truth.texts:
        return {"nats": None, "nats_quiet": nats_of_nothing(model, asked.request)}
    text, wanted = example.moment.text, example.truth.texts[0]
    first, last = find_difference(text, wanted)
    above = asked.region[0] - (asked.request.region or asked.region)[0]  # lines cut off
    new = lines_written(text, wanted)
    return {
        "nats": nats_of(model, asked.request, first - above, last - above, new),
        "nats_quiet": None,
    }


def _words(example: Example, request: EditRequest, model: Model | None) -> str:
    """Return the class of a moment by the words that its true edit writes."""
    if not example.truth.texts:
        return "nothing left"
    needed = _names("\n".join(lines_written(example.moment.text, example.truth.texts[0])))
    if model is None or not has_likelihood(model):
        parts = (request.text, *(e.diff for e in request.edits), *(r.text for r in request.related))
        known = "\n".join(parts)
    else:
        known = model.tokenizer.decode(prompt_of(model, request).tokens)
    if not needed <= _names(known):
        return "a word that is not in the prompt"
    lines = (line for edit in request.edits for line in edit.diff.split("\n"))
    changed = [line[1:] for line in lines if line[:1] in ("+", "-")]
    shared = needed & _names("\n".join(changed))
    return "all in the prompt, one of a recent edit" if shared else "all in the prompt, none recent"


def _names(text: str) -> set[str]:
    return set(_NAME.findall(text))


# --- decide and score ----------------------------------------------------------------------------


def judge(example: Example, spec: RunSpec, execute: Execute = run_program) -> Example:
    """Return the example with decision and score, from its prediction alone."""
    if example.prediction is None or spec.task == "outcomes":  # the gate labels these itself
        return example
    if spec.task == "chat":
        return replace(example, score=small_questions.score(example, execute))
    if spec.task == "infill":
        decided = replace(example, decision=infill.decide(example))
        return replace(decided, score=infill.score(decided, execute))
    decided = replace(example, decision=next_edit_scores.decide(example, spec.threshold or 0.0))
    return replace(decided, score=next_edit_scores.score(decided))


def rescore(run: Run, spec: RunSpec, execute: Execute = run_program) -> Run:
    """Return the run with decisions and scores made again, as ``spec`` says.

    Raises:
        SettingsError: the task of the run has no predictions to score.
    """
    if spec.task not in ("infill", "edits", "carry-on", "chat"):
        raise SettingsError(
            f"A run of {spec.task} cannot be scored again. Name one of 'eval infill', 'eval edits' "
            "or 'eval chat'."
        )
    judged = {each.id: judge(each, spec, execute) for each in run.examples.values()}
    return Run(spec, run.machine, judged)
