"""What the model proposes at moments whose outcome is known: ``redraft gate outcomes``.

Asked as the language server asks, with as many candidates as it asks for, but in any case, however
sure the model is that nothing is to be done. An episode holds what was asked and all that came
back, as it came: what is made of that (:mod:`redraft.model.edits.gate_features`) can change without
asking again. Knows nothing of gates.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import asdict, replace

from redraft.lsp.session.questions import Query
from redraft.lsp.session.questions import infill as infill_request
from redraft.lsp.settings import LspSettings
from redraft.model.decode.completion import Plan
from redraft.model.predict import Model, predict
from redraft.model.records import LEAST_LOG, Prediction

from ..benchmarks.commit_moments import CommitMoment
from ..benchmarks.infill_gaps import Problem
from ..benchmarks.server_context import ContextRequest, gather
from ..figures.runs import Episode, OnDone, RunFile
from .moments import Known


def make_outcomes(
    model: Model,
    moments: Sequence[Known],
    plan: Plan,
    context: int,
    run: RunFile,
    progress: OnDone = lambda done, total: None,
) -> None:
    """Ask at every moment that ``run`` does not hold yet.

    Args:
        context: tokens of a prompt.
    """

    def ask(known: Known) -> Episode:
        asked = question(known.asked, context)
        said = predict(model, asked.request, time.perf_counter, plan=plan)
        return episode(known, asked, said)

    run.fill(moments, ask, progress)


def question(asked: CommitMoment | Problem, context: int) -> ContextRequest:
    """What the language server would ask, and in any case."""
    if isinstance(asked, CommitMoment):
        found = gather(asked, context)
        return replace(found, request=replace(found.request, min_tokens=1, seed=0))
    text = asked.prefix + asked.suffix
    query = Query("", asked.path, asked.language, text, len(asked.prefix), 0)
    request = infill_request(query, LspSettings(context_tokens=context))
    whole = (0, text.count("\n") + 1)
    least = replace(request, min_tokens=1, seed=0, least_total=LEAST_LOG)
    return ContextRequest(least, 0, whole, {})


def episode(known: Known, asked: ContextRequest, said: Prediction) -> Episode:
    """What was asked and what came back."""
    request = asked.request
    return {
        "id": known.id,
        "group": known.group,
        "language": known.language,
        "kind": known.kind,
        "task": request.task,
        "path": request.path,
        "text": request.text,
        "cursor": request.cursor,
        "edits": [asdict(each) for each in request.edits],
        "related": [asdict(each) for each in request.related],
        "after": known.after,
        "wanted": list(known.wanted),
        "candidates": [asdict(each) for each in asked.answered(said).candidates],
        "reason": said.reason,
        "prompt_tokens": said.stats.prompt_tokens,
        "steps": said.stats.denoise_steps,
        "total_ms": round(said.stats.total_ms, 1),
    }
