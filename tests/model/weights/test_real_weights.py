"""The default model itself, where 'redraft model pull' has been run; else skipped with a reason."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from redraft.evals.latency.editor_latency import places
from redraft.model.decode.completion import AUTOREGRESSIVE, plan_for
from redraft.model.decode.pass_costs import PassPrices
from redraft.model.decode.recent import RecentAnswers
from redraft.model.load import onnx_loader
from redraft.model.predict import Model, predict
from redraft.model.records import EditRequest
from redraft.model.runtime.backend import Cancelled
from redraft.model.weights.catalog import info
from redraft.model.weights.store import ready_variants

NAME = "redraft-0.5b"
SAMPLE = Path(__file__).parents[2] / "samples" / "notes.py"
TEXT = SAMPLE.read_text(encoding="utf-8")
GAP = TEXT.index("return \n") + len("return ")


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    described = info(NAME)
    if described.default_variant not in ready_variants(described):
        pytest.skip(f"the weights of {NAME} are not here; 'redraft model pull {NAME}' fetches them")
    loaded = onnx_loader(NAME, described.default_variant, "CPU", None)(lambda *_: None)
    yield loaded
    loaded.backend.close()


def asking(typed: str) -> EditRequest:
    text = TEXT[:GAP] + typed + TEXT[GAP:]
    return EditRequest("infill", "notes.py", text, GAP + len(typed), max_tokens=16, max_lines=1)


def test_the_gap_in_the_sample_is_filled(model: Model) -> None:
    states = []
    found = predict(model, asking(""), time.perf_counter, on_step=states.append)
    assert found.candidates and found.candidates[0].text.strip()
    assert states and None not in states[-1].pieces


def test_an_unfinished_word_is_finished_not_repeated(model: Model) -> None:
    request = asking("fil")
    found = predict(model, request, time.perf_counter)
    assert found.candidates
    assert (found.candidates[0].start, found.candidates[0].end) == (request.cursor, request.cursor)
    assert not found.candidates[0].text.startswith("fil")


def test_typing_answers_as_an_empty_cache_would(model: Model) -> None:
    for count in range(1, 6):
        request = asking("file.read()"[:count])
        cached = predict(model, request, time.perf_counter)
        assert cached.stats.prompt_tokens - cached.stats.reused_tokens <= 4
        model.cache.clear()
        fresh = predict(model, request, time.perf_counter)
        assert fresh.stats.reused_tokens == 0
        assert [c.text for c in cached.candidates] == [c.text for c in fresh.candidates]


def test_a_cancelled_answer_harms_no_later_one(model: Model) -> None:
    request = replace(asking(""), max_tokens=48, max_lines=None)
    whole = predict(model, request, time.perf_counter)
    model = replace(model, recent=RecentAnswers())  # drafted from the last, it is too quick
    polls = iter(range(1_000))
    with pytest.raises(Cancelled):
        predict(model, request, time.perf_counter, cancelled=lambda: next(polls) > 1)
    again = predict(model, request, time.perf_counter)
    assert [c.text for c in again.candidates] == [c.text for c in whole.candidates]


def test_an_interrupted_pass_ends_and_harms_no_other(model: Model) -> None:
    request = replace(asking(""), max_tokens=48, max_lines=None)
    whole = predict(model, request, time.perf_counter)
    model = replace(model, recent=RecentAnswers())  # drafted from the last, it is too quick
    backend = model.backend
    for passes in range(3):  # the prompt is cached: the first that asks is about the first pass
        polls = iter(range(1_000))

        def interrupted(polls: Iterator[int] = polls, passes: int = passes) -> bool:
            if next(polls) == passes:
                backend.interrupt(True)
            return False

        with pytest.raises(Cancelled):
            predict(model, request, time.perf_counter, cancelled=interrupted)
        backend.interrupt(False)
    again = predict(model, request, time.perf_counter)
    assert [c.text for c in again.candidates] == [c.text for c in whole.candidates]


def test_drafts_change_no_token_of_the_causal_pass(model: Model) -> None:
    """20 gaps in published code: alone, with all drafts, and with those that pay."""
    eager = plan_for("medium")
    unpriced = replace(model, prices=None)
    steep = PassPrices.from_probe({1: 19.0, 2: 18.3, 4: 23.0, 9: 31.0, 16: 41.3})
    passes = [0, 0, 0]
    for request in places(256, "medium", 20):
        several_lines = replace(request, max_lines=None)
        ways = ((model, AUTOREGRESSIVE), (unpriced, eager), (replace(model, prices=steep), eager))
        found = [predict(each, several_lines, time.perf_counter, plan=plan) for each, plan in ways]
        assert len({tuple(one.text for one in each.candidates) for each in found}) == 1
        assert len({each.stats.canvas_tokens for each in found}) == 1
        for way, each in enumerate(found):
            passes[way] += each.stats.denoise_steps
    assert max(passes[1:]) < passes[0]
