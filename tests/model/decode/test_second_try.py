"""An infill that does not fit the lines around it gives way to the next likeliest that does."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest
from redraft.model.decode.completion import AUTOREGRESSIVE, Plan, plan_for
from redraft.model.predict import Model, predict
from redraft.model.prompts.tokenizer import PREFIX
from redraft.model.records import CanvasState, EditRequest, Prediction
from redraft.model.runtime.backend import Cancelled
from redraft.model.runtime.prefix_cache import PrefixCache
from support.models.engines_of import Clock
from support.models.fake_answers import Mixture
from support.models.fake_backend import FakeBackend, fake_tokenizer, ids, small_config

ABOVE, BELOW = "def f(n):\n", "        yield i\n"
MISFIT, LOOP, OTHER = "    return n\n", "    for i in n:\n", "    if n:\n"


class Behind(Mixture):
    """Answers begin where ``above`` ends, which the prompt ends with."""

    def __init__(self, answers: dict[str, float], above: str) -> None:
        super().__init__(answers, fake_tokenizer().mark(PREFIX))
        self.above = len(ids(above))

    def _written(self, tokens: list[int]) -> list[int]:
        return super()._written(tokens)[self.above :]


def model_of(answers: dict[str, float], above: str = ABOVE) -> tuple[Model, FakeBackend]:
    mixture = Behind(answers, above)
    backend = FakeBackend(mixture, small_config(8, "ar"), mixture.causal)
    cache = PrefixCache(backend, 1 << 24)
    return Model("fake", backend, fake_tokenizer(), cache, context_tokens=512), backend


def asked(above: str = ABOVE, below: str = BELOW, **fields: object) -> EditRequest:
    request = EditRequest("infill", "a.py", above + below, len(above), max_tokens=32)
    return replace(request, **fields)  # type: ignore[arg-type]


def text_of(prediction: Prediction) -> str:
    return prediction.candidates[0].text


def test_the_next_fitting_text_has_its_own_probability() -> None:
    model, _ = model_of({MISFIT: 0.6, LOOP: 0.3, OTHER: 0.1})
    (candidate,) = predict(model, asked(), Clock()).candidates
    assert candidate.text == LOOP
    assert candidate.confidence.total == pytest.approx(math.log(0.3), abs=0.02)
    assert candidate.tokens == len(LOOP) + 1


def test_a_text_that_fits_costs_no_pass_more() -> None:
    passes = []
    for tries in (0, 3):
        model, backend = model_of({LOOP: 0.6, MISFIT: 0.4})
        plan = replace(plan_for("medium"), second_tries=tries)
        prediction = predict(model, asked(), Clock(), plan=plan)
        assert text_of(prediction) == LOOP
        passes.append((prediction.stats.denoise_steps, backend.sequences[0].log))
    assert passes[0] == passes[1]


def test_passes_of_all_tries_are_counted() -> None:
    model, backend = model_of({MISFIT: 0.6, LOOP: 0.4})
    stats = predict(model, asked(), Clock()).stats
    ran = [each for each in backend.sequences[0].log if not each.startswith("extend")]
    assert stats.denoise_steps == len(ran)


@pytest.mark.parametrize(
    ("other", "held"),
    [("    yield n\n", MISFIT), ("    if n: pass\n", "    ")],  # no hope; tried in vain
)
def test_where_nothing_fits_the_likeliest_stays(other: str, held: str) -> None:
    model, backend = model_of({MISFIT: 0.6, other: 0.4})
    assert text_of(predict(model, asked(), Clock())) == MISFIT
    tokens = ids(ABOVE + held)
    assert list(backend.sequences[0].tokens[-len(tokens) :]) == tokens


@pytest.mark.parametrize(
    ("answers", "below"),
    [
        ([MISFIT, LOOP], BELOW),
        ([LOOP + "    return n\n", LOOP], BELOW),  # it ends before what does not fit
        (["    n += 1\n        n += 2\n", "    n += 1\n    return n\n"], "x = 1\n"),
        (["    m = n\n    return m\n", "    k = n\n    for i in k:\n"], BELOW),
    ],
)
def test_the_cache_holds_the_second_text_alone(answers: list[str], below: str) -> None:
    first, fits = answers
    model, backend = model_of({first: 0.6, fits: 0.4})
    assert text_of(predict(model, asked(below=below), Clock())) == fits
    assert backend.sequences[0].tokens[-len(fits) :] == ids(fits)


@pytest.mark.parametrize(
    ("likeliest", "other", "fields", "plan"),
    [
        (LOOP, LOOP + "        n += 1\n", {}, None),  # the head above its body is whole
        (MISFIT, LOOP, {"quality": "low"}, None),
        (MISFIT, LOOP, {"temperature": 0.01}, None),
        (MISFIT, LOOP, {"path": "a.js"}, None),
        (MISFIT, LOOP, {"candidates": 2}, None),
        (MISFIT, LOOP, {}, replace(AUTOREGRESSIVE, second_tries=0)),
    ],
)
def test_there_is_not_always_a_second_try(
    likeliest: str, other: str, fields: dict[str, object], plan: Plan | None
) -> None:
    model, _ = model_of({likeliest: 0.6, other: 0.4})
    assert text_of(predict(model, asked(**fields), Clock(), plan=plan)) == likeliest


def test_a_block_head_alone_gets_the_likeliest_body() -> None:
    below, body = "    return n\n", "        n += 1\n"
    model, backend = model_of({OTHER: 0.6, OTHER + body: 0.3, "    n += 1\n": 0.1})
    (candidate,) = predict(model, asked(below=below), Clock()).candidates
    assert candidate.text == OTHER + body
    assert candidate.confidence.total == pytest.approx(math.log(0.3), abs=0.02)
    assert backend.sequences[0].tokens[-len(OTHER + body) :] == ids(OTHER + body)


def test_a_header_at_the_end_stays_but_is_no_target() -> None:
    below = "    return n\n"
    model, _ = model_of({OTHER: 0.6, "    n += 1\n": 0.4})
    assert text_of(predict(model, asked(below=below), Clock())) == OTHER
    deeper, header, fits = "    n += 1\n        n += 2\n", "    n += 1\n    if n:\n", "    n += 1\n"
    model, _ = model_of({deeper: 0.5, header: 0.3, fits: 0.2})
    assert text_of(predict(model, asked(below=below), Clock())) == fits


def test_what_keeps_both_lines_costs_no_try() -> None:
    kept = "    n += 1\n        n += 2\n"
    answers = {kept + "    n += 3\n": 0.5, kept + "    for i in n: pass\n": 0.3}
    model, _ = model_of(answers | {"    n += 1\n    n += 2\n": 0.2})
    plan = replace(plan_for("medium"), second_tries=1, line_above=0.0)
    written = text_of(predict(model, asked(below="x = 1\n"), Clock(), plan=plan))
    assert written == "    n += 1\n    n += 2\n"


def test_a_line_that_was_cut_off_is_not_written_again() -> None:
    """Six lines behind it are as likely as each other: none is sure enough, and none is a try."""
    cut = {f"{MISFIT}    {name}()\n": 0.1 for name in "abcdgh"}
    model, _ = model_of(cut | {LOOP: 0.3, OTHER: 0.1})
    plan = replace(plan_for("medium"), second_tries=1)
    assert text_of(predict(model, asked(), Clock(), plan=plan)) == LOOP


def test_a_half_written_word_is_written_again() -> None:
    above = ABOVE + "    f"
    answers = {"foo(n)": 0.6, "for i in n:": 0.4}
    model, _ = model_of(answers, above[:-1])
    assert text_of(predict(model, asked(above, "\n" + BELOW), Clock())) == "or i in n:"


def test_what_was_told_while_it_was_written_stays() -> None:
    model, _ = model_of({MISFIT: 0.6, LOOP: 0.4})
    states: list[CanvasState] = []
    prediction = predict(model, asked(), Clock(), on_step=states.append)
    assert text_of(prediction) == MISFIT
    assert states[-1].show() == MISFIT


def after(times: int) -> Callable[[], bool]:
    calls = count()
    return lambda: next(calls) >= times


def test_a_cancel_is_heard_before_every_pass_of_a_try() -> None:
    answers = {MISFIT: 0.6, LOOP: 0.4}
    model, _ = model_of(answers)
    passes = predict(model, asked(), Clock()).stats.denoise_steps
    for times in range(passes):
        model, _ = model_of(answers)
        with pytest.raises(Cancelled):
            predict(model, asked(), Clock(), cancelled=after(times))
        assert text_of(predict(model, asked(), Clock())) == LOOP
