"""Predictors of an evaluation: a model in this process, a server, or a baseline by rule.

The baselines: ``none`` shows nothing; ``copy-last-edit`` repeats the last substitution where the
same text stands once more, which a model has to beat; ``rules`` are the engine's edits by rule
without a model that scores them.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from redraft.model.decode.completion import Plan
from redraft.model.edits.hunks import lines_of
from redraft.model.errors import RedraftError, SettingsError, WeightsError
from redraft.model.predict import Model, predict
from redraft.model.records import (
    Candidate,
    Confidence,
    EditRequest,
    ModelStatus,
    Prediction,
    Predictor,
    RecentEdit,
)
from redraft.model.remote import RemotePredictor, until_ready
from redraft.model.rules.propose import propose
from redraft.model.rules.rule_edits import RuleEdit
from redraft.model.text.common import common_ends
from redraft.model.wire import check_request

from .gather import SERVED
from .measured_model import OnProgress, check_plan, find_model, ignore_progress, load, plan_of
from .spec import SHIPPED, RunSpec

NONE, COPY_LAST_EDIT, RULES = "none", "copy-last-edit", "rules"
POLICIES = (NONE, COPY_LAST_EDIT, RULES)

_SURE = Confidence(mean=1.0, minimum=1.0, first=1.0)  # substitutions have no likelihood
_TOKEN = re.compile(r"\w+|\s+|.", re.DOTALL)
_WORD = re.compile(r"\w")
_LONGEST = 200  # characters of what is looked for


@dataclass(frozen=True, slots=True)
class ReadyPredictor:
    """A predictor that can be asked."""

    ask: Callable[[EditRequest], Prediction]  # blocks
    status: ModelStatus
    close: Callable[[], None]
    model: Model | None = None  # if it runs in this process


def identify_model(spec: RunSpec, report: OnProgress = ignore_progress) -> RunSpec:
    """Return the description with the name and the hash of what predicts.

    Fetches or makes the model if it is missing.

    Raises:
        RedraftError: there is no such model or baseline, or the server cannot be reached.
    """
    _check(spec)
    if spec.baseline:
        return replace(spec, model=spec.baseline)
    if spec.server:
        ready = _remote(spec)
        ready.close()
        return replace(spec, model=ready.status.model)
    found = find_model(spec, report)
    return replace(spec, model=found.label, model_sha256=found.identity, variant=found.variant)


def open_predictor(spec: RunSpec) -> ReadyPredictor:
    """Load a model, reach a server, or make a baseline.

    Raises:
        RedraftError: the model does not load, or the server cannot be reached.
    """
    if spec.server:
        return _remote(spec)
    if spec.baseline:
        return baseline(spec.baseline)
    found = find_model(spec)
    model = load(found, spec.context_tokens or SERVED, spec.threads)
    plan = plan_of(spec)
    try:
        check_plan(plan, model.backend.config)
    except RedraftError:
        model.backend.close()
        raise
    return ready_with(model, plan)


def ready_with(model: Model, plan: Plan | None = None) -> ReadyPredictor:
    """Return a model in memory as a predictor."""

    def ask(request: EditRequest) -> Prediction:
        check_request(request)
        return predict(model, request, time.perf_counter, plan=plan)

    backend = model.backend
    tokens = model.context_tokens
    status = ModelStatus("ready", model.label, backend.provider, context_tokens=tokens)
    return ReadyPredictor(ask, status, backend.close, model)


def _remote(spec: RunSpec) -> ReadyPredictor:
    return block_on(RemotePredictor(spec.server, spec.key))


def block_on(predictor: Predictor) -> ReadyPredictor:
    """Return a predictor of an event loop as one that blocks, once it is ready.

    Its loop is in another thread: a replay asks it from within a loop.

    Raises:
        WeightsError: it will never be ready.
    """
    thread, runner = ThreadPoolExecutor(1), asyncio.Runner()

    def ask(request: EditRequest) -> Prediction:
        return thread.submit(runner.run, predictor.predict(request)).result()

    def close() -> None:
        thread.submit(runner.run, predictor.close()).result()
        thread.submit(runner.close).result()
        thread.shutdown()

    try:
        status = thread.submit(runner.run, until_ready(predictor)).result()
        if not status.can_answer:
            raise WeightsError(f"The model {status.model} cannot be used: {status.message}")
        return ReadyPredictor(ask, status, close)
    except RedraftError:
        close()
        raise


def _check(spec: RunSpec) -> None:
    """Refuse a baseline that does not exist, and options that exclude each other.

    Raises:
        SettingsError: says which.
    """
    names = POLICIES[:1] if spec.task == "infill" else POLICIES
    if spec.baseline and spec.baseline not in names:
        raise SettingsError(
            f"There is no baseline {spec.baseline!r} here; choose {' or '.join(names)}."
        )
    if spec.server and (spec.baseline or spec.weights or spec.adapter != SHIPPED):
        raise SettingsError(
            f"The server {spec.server} has chosen what predicts; leave out --baseline, --adapter "
            "and --weights, or --server."
        )


# --- baselines -----------------------------------------------------------------------------------


def baseline(name: str) -> ReadyPredictor:
    """Return the baseline of that name; see the top of this file."""
    ways = {COPY_LAST_EDIT: copy_last_edit, RULES: repeat_edits}

    def ask(request: EditRequest) -> Prediction:
        if request.task != "next_edit" or name not in ways:
            return Prediction(name, name, (), "this baseline has nothing to show")
        return ways[name](request)

    status = ModelStatus("ready", model=name, provider="CPU", context_tokens=1_024)
    return ReadyPredictor(ask, status, lambda: None)


def copy_last_edit(request: EditRequest) -> Prediction:
    """Repeat the last substitution at the next place after the cursor, else from the top."""
    old, new = substitution(request.edits[-1]) if request.edits else ("", "")
    at = _next_place(request, old, new) if old else -1
    if at < 0:
        reason = "the last edit has no other place"
        return Prediction(COPY_LAST_EDIT, COPY_LAST_EDIT, (), reason)
    made = Candidate(at, at + len(old), new, _SURE, 0, 0, "end")
    return Prediction(COPY_LAST_EDIT, COPY_LAST_EDIT, (made,))


def substitution(edit: RecentEdit) -> tuple[str, str]:
    """Return what was replaced by what, by whole words.

    An addition includes the word before it. Both texts are empty if there is nothing to look for,
    or whole lines were added.
    """
    lines = lines_of(edit.diff)
    old = _TOKEN.findall("".join(f"{text}\n" for sign, text in lines if sign in " -"))
    new = _TOKEN.findall("".join(f"{text}\n" for sign, text in lines if sign in " +"))
    head, tail = common_ends(old, new)
    removed, added = "".join(old[head : len(old) - tail]), "".join(new[head : len(new) - tail])
    while not _WORD.search(removed) and head and "\n" not in added:
        head -= 1
        removed, added = old[head] + removed, old[head] + added
    telling = _WORD.search(removed) and len(removed) <= _LONGEST
    return (removed, added) if telling else ("", "")


def _next_place(request: EditRequest, old: str, new: str) -> int:
    """Return where ``old`` stands as whole words and ``new`` does not, -1 if nowhere."""
    places = [
        found.start()
        for found in re.finditer(_bounded(old), request.text)
        if not request.text.startswith(new, found.start() - (new.find(old) if old in new else 0))
    ]
    after = [at for at in places if at >= request.cursor]
    return (after or places or [-1])[0]


def _bounded(old: str) -> str:
    head = r"(?<!\w)" if old[0].isalnum() or old[0] == "_" else ""
    tail = r"(?!\w)" if old[-1].isalnum() or old[-1] == "_" else ""
    return head + re.escape(old) + tail


def repeat_edits(request: EditRequest) -> Prediction:
    """Return what follows from the recent edits by rule, the likeliest first."""
    region = request.region or (0, request.text.count("\n") + 1)
    found = propose(request, region)
    reason = "" if found else "nothing follows from the recent edits by rule"
    candidates = tuple(_candidate(request.text, each) for each in found)
    return Prediction(RULES, RULES, candidates, reason)


def _candidate(text: str, rule: RuleEdit) -> Candidate:
    """Return an edit by rule as a candidate whose confidence is its chance."""
    edit, chance = rule.in_text(text), rule.chance
    sure = Confidence(chance, chance, chance, place=0.0, repeat=chance)
    return Candidate(
        edit.start,
        edit.end,
        edit.new,
        sure,
        len(rule.lines),
        0,
        "end",
        "repeat",
        family=rule.family,
    )
