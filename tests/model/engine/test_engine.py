"""The engine: loading, queueing, cancelling, and what it makes of a request."""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from redraft.model.config import ModelConfig
from redraft.model.conversation import abilities_of
from redraft.model.engine import Engine
from redraft.model.errors import InvalidRequest, RedraftError
from redraft.model.predict import CPU_STEP, predict, warm_up
from redraft.model.records import MAX_ANSWER_TOKENS, EditRequest, Grammar, Prediction
from redraft.model.runtime.backend import Cancelled, FloatArray, IntArray, Scores
from redraft.model.runtime.prefix_cache import PrefixCache
from redraft.model.wire import check_request, request_from_json, request_to_json
from support.models.engines_of import ANSWER, CURSOR, REQUEST, TEXT, Clock, make_model, with_engine
from support.models.fake_backend import (
    MASK,
    VOCAB,
    FakeBackend,
    FakeSequence,
    Noise,
    Predict,
    Script,
    ids,
    small_config,
)


def predicted(script: Predict, request: EditRequest = REQUEST) -> Prediction:
    verifier = "ar" if request.task == "next_edit" else "none"
    return predict(make_model(script, verifier=verifier), request, clock=Clock())


@pytest.mark.parametrize(
    ("text", "written"),
    [("def f():\n|    return a\n", "    a = 1\n"), ("def f():\n|\n", "    a = 1")],
)
def test_lines_above_end_with_a_break_before_a_cut(text: str, written: str) -> None:
    cursor = text.index("|")
    request = dataclasses.replace(REQUEST, text=text.replace("|", ""), cursor=cursor)
    lines = "    a = 1\n    b = 2222222222\n"
    unsure = Script(ids(lines), lambda position, window: 0.95 if position < 9 else 0.4)
    (candidate,) = predicted(unsure, request).candidates
    assert (candidate.text, candidate.finish) == (written, "unsure")
    asked = dataclasses.replace(request, max_lines=1)
    (candidate,) = predicted(Script(ids(lines)), asked).candidates
    assert (candidate.text, candidate.finish) == (written, "length")
    (candidate,) = predicted(unsure, dataclasses.replace(request, temperature=1.0)).candidates
    assert candidate.finish != "unsure"


def test_an_answer_improbable_at_once_is_given_up() -> None:
    def unsure(context: list[int]) -> FloatArray:
        return np.zeros(len(VOCAB), np.float32)  # logits: each token is as likely

    request = dataclasses.replace(REQUEST, least_total=-1.0)
    backend = FakeBackend(Script(ids(ANSWER)), small_config(verifier="ar"), unsure)
    model = dataclasses.replace(
        make_model(Script([])), backend=backend, cache=PrefixCache(backend, 1 << 24)
    )
    prediction = predict(model, request, clock=Clock())
    assert prediction.candidates == ()
    assert prediction.is_given_up
    assert not predicted(Script([])).is_given_up, "it would write nothing"


def test_an_infill_is_inserted_without_held_back_text() -> None:
    prediction = predicted(Script(ids(ANSWER)))
    (candidate,) = prediction.candidates
    assert (candidate.start, candidate.end, candidate.text) == (CURSOR, CURSOR, ANSWER[1:])
    assert candidate.finish == "end"
    assert candidate.tokens == len(ANSWER) + 1
    assert prediction.request_id.startswith("cmpl-")
    assert prediction.model == "fake fp32"


def test_canvas_weights_take_no_edits_and_no_grammar() -> None:
    model = make_model(Script(ids(ANSWER)))
    assert abilities_of(model.backend.config) == ("infill",)
    declined = predict(model, dataclasses.replace(REQUEST, task="next_edit"), Clock())
    assert (declined.candidates, declined.reason) == (
        (),
        "fake was trained to fill in text, not to predict edits.",
    )
    bound = dataclasses.replace(REQUEST, grammar=Grammar("regex", "[a-z]+"))
    with pytest.raises(InvalidRequest, match="no grammar can be held against it"):
        predict(model, bound, Clock())


def test_an_infill_of_nothing_is_told_with_its_reason() -> None:
    request = dataclasses.replace(REQUEST, cursor=TEXT.index("\n"))
    prediction = predicted(Script([]), request)
    assert (prediction.candidates, prediction.reason) == ((), "The model would write nothing here.")


@pytest.mark.parametrize(
    ("written", "max_lines", "says"),
    [("\n\nprint(area(2, 3))\n", 2, "follows the cursor"), ("\n\n", 1, "new line")],
)
def test_an_infill_that_adds_nothing_says_so(written: str, max_lines: int, says: str) -> None:
    request = dataclasses.replace(REQUEST, cursor=TEXT.index("\nprint"), max_lines=max_lines)
    prediction = predicted(Script(ids(written)), request)
    assert prediction.candidates == ()
    assert says in prediction.reason


def test_statistics_count_prompt_cache_and_canvas() -> None:
    model = make_model(Script(ids(ANSWER)))
    first = predict(model, REQUEST, Clock()).stats
    assert first.reused_tokens == 0
    committed = len(ANSWER) // 8 * 8
    assert first.computed_tokens == first.prompt_tokens - 1 + committed
    assert first.canvas_tokens == len(ANSWER) + 1
    assert first.denoise_steps == 2
    again = predict(model, REQUEST, Clock()).stats
    assert again.reused_tokens == again.prompt_tokens - 1


def test_typing_reuses_the_cache_and_changes_no_answer() -> None:
    model = make_model(Noise(3))
    for count in range(1, 6):
        typed = "xyzuv"[:count]
        text = TEXT[:CURSOR] + typed + TEXT[CURSOR:]
        request = dataclasses.replace(REQUEST, text=text, cursor=CURSOR + count, max_tokens=20)
        warm = predict(model, request, Clock())
        cold = predict(make_model(Noise(3)), request, Clock())
        assert warm.candidates == cold.candidates
        assert warm.reason == cold.reason
        if count > 1:
            assert warm.stats.reused_tokens > warm.stats.prompt_tokens * 0.9


def test_the_answer_is_limited_as_asked() -> None:
    lines = dataclasses.replace(REQUEST, max_lines=1)
    (candidate,) = predicted(Script(ids(" a\n    b\n")), lines).candidates
    assert (candidate.text, candidate.finish) == ("a", "length")
    stop = dataclasses.replace(REQUEST, stop=("*",))
    (candidate,) = predicted(Script(ids(ANSWER)), stop).candidates
    assert (candidate.text, candidate.finish) == ("wide ", "stop")


def test_a_seed_makes_sampling_repeatable() -> None:
    request = dataclasses.replace(REQUEST, temperature=1.0, seed=7, max_tokens=12)
    noise = Noise(2, scale=2.0)
    assert predicted(noise, request).candidates == predicted(noise, request).candidates
    drawn = (predicted(noise, dataclasses.replace(request, seed=seed)) for seed in range(5))
    assert len({tuple(each.text for each in other.candidates) for other in drawn}) > 1


def test_prefill_hears_a_cancel_between_chunks() -> None:
    model = make_model(Script(ids(ANSWER)), context_tokens=4_096)
    request = dataclasses.replace(REQUEST, text="# padding\n" * 120 + TEXT, cursor=1200 + CURSOR)
    asked: list[int] = []

    def cancelled() -> bool:
        asked.append(1)
        return len(asked) > 2

    with pytest.raises(Cancelled):
        predict(model, request, Clock(), cancelled)
    backend = model.backend
    assert isinstance(backend, FakeBackend)
    assert [entry for sequence in backend.sequences for entry in sequence.log] == [
        f"extend {CPU_STEP}",
        f"extend {CPU_STEP}",
    ]


def test_a_cancelled_answer_leaves_the_cache_usable() -> None:
    model = make_model(Noise(4))
    with pytest.raises(Cancelled):
        predict(model, REQUEST, Clock(), _after(3))
    warm = predict(model, REQUEST, Clock())
    assert warm.candidates == predict(make_model(Noise(4)), REQUEST, Clock()).candidates
    assert warm.stats.reused_tokens == warm.stats.prompt_tokens - 1


def _after(count: int) -> Callable[[], bool]:
    left = iter(range(count))
    return lambda: next(left, None) is None


@pytest.mark.parametrize(
    ("config", "denoised"),
    [
        (small_config(), [False, True]),
        (replace(small_config(), verifier="ar"), [False, True]),
        (replace(small_config(), verifier="ar", adapter="masks"), []),
        (replace(small_config(), verifier="ar", draft_after=MAX_ANSWER_TOKENS), []),
    ],
)
def test_warming_up_runs_every_kind_of_pass(config: ModelConfig, denoised: list[bool]) -> None:
    seen: list[bool] = []

    class Watching(FakeSequence):
        def denoise(self, window: IntArray, behind: IntArray, logits: bool = False) -> Scores:
            seen.append(logits)
            assert window[1] == MASK
            return super().denoise(window, behind, logits)

    class WatchingBackend(FakeBackend):
        def open(self, capacity: int) -> FakeSequence:
            sequence = Watching(self._predict, self._causal, capacity)
            self.sequences.append(sequence)
            return sequence

    backend = WatchingBackend(Noise(), config)
    warm_up(backend)
    assert seen == denoised
    assert backend.sequences == []


#: Values that no request may have, by field.
UNUSABLE: dict[str, list[object]] = {
    "task": ["guess"],
    "quality": ["best"],
    "text": [None, "a\0b"],
    "path": ["a\0"],
    "cursor": [-1, len(TEXT) + 1, 1.0, True],
    "max_tokens": [0, 10**9],
    "max_lines": [0],
    "context_tokens": [3, 10**6],
    "temperature": [math.nan, math.inf, -0.1, "hot"],
    "top_p": [1.5],
    "seed": [-1],
    "candidates": [0, 1_000],
    "stop": [("",), ("x",) * 100],
    "region": [(2, 1), (0, 99), (2, 4)],
}


@pytest.mark.parametrize(
    ("field", "value"), [(field, value) for field in UNUSABLE for value in UNUSABLE[field]]
)
def test_an_unusable_value_is_refused_with_its_field(field: str, value: object) -> None:
    unusable = dataclasses.replace(REQUEST, **{field: value})
    with pytest.raises(InvalidRequest, match=rf"'(request\.)?{field}"):
        check_request(request_from_json(request_to_json(unusable))[0])


def test_a_failing_prediction_fails_alone() -> None:
    script = Script(ids(ANSWER))

    def predict(context: list[int], window: list[int]) -> FloatArray:
        if script.gate is None:
            script.gate = threading.Event()
            script.gate.set()
            raise ZeroDivisionError("boom")
        return script(context, window)

    async def work(engine: Engine) -> Prediction:
        with pytest.raises(RedraftError, match="boom"):
            await engine.predict(REQUEST)
        return await engine.predict(REQUEST)

    assert with_engine(predict, work).candidates[0].text == ANSWER[1:]
