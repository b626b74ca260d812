"""Several next edits at one moment: ranges, repeated edits as drafts, ranking, limits."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from typing import Any

import pytest
from redraft.model.decoding.candidates import EFFORTS
from redraft.model.edits.gate import threshold
from redraft.model.edits.gate_file import read_gate
from redraft.model.edits.hunks import recent_edit
from redraft.model.errors import InvalidRequest
from redraft.model.predict import predict
from redraft.model.records import (
    Candidate,
    CanvasState,
    Prediction,
    Quality,
)
from redraft.model.runtime.backend import Cancelled
from redraft.model.wire import prediction_from_json, prediction_to_json
from support.candidates import (
    CALLS,
    RENAMED,
    REQUEST,
    TEXT,
    asked,
    clock,
    history,
    model_of,
    over,
)
from support.fake_backend import (
    FakeBackend,
    Noise,
    small_config,
)
from support.gates import SHIPPED

#: Of whole answers; what is left goes to no edit.
ANSWERS = {
    "2-2\n    return x + 1\n": 0.3,
    "4-4\nprint(f(2))\n": 0.25,
    "1-1\ndef f(y):\n": 0.2,
    "4-3\n# test\n": 0.05,
    "": 0.2,
}


def after(candidate: Candidate, text: str = TEXT) -> str:
    return text[: candidate.start] + candidate.text + text[candidate.end :]


def lines_of(prediction: Prediction) -> list[str]:
    return [candidate.text for candidate in prediction.candidates]


# --- several ranges -----------------------------------------------------------------------------


def test_several_ranges_come_likeliest_first() -> None:
    prediction = asked(ANSWERS, quality="high", candidates=3)
    assert lines_of(prediction) == ["    return x + 1\n", "print(f(2))\n", "def f(y):\n"]


def test_each_candidate_carries_what_the_gate_needs() -> None:
    for candidate in asked(ANSWERS, candidates=3).candidates:
        sure = candidate.confidence
        weight = next(w for text, w in ANSWERS.items() if text.endswith(f"\n{candidate.text}"))
        assert sure.total == pytest.approx(math.log(weight), abs=0.05)
        assert sure.place is not None and sure.total <= sure.place + 1e-9 < 0
        assert sure.nothing == pytest.approx(math.log(0.2), abs=0.05)
        assert sure.mean == pytest.approx(math.exp(sure.total / candidate.tokens), rel=1e-6)
        assert (candidate.source, sure.repeat, candidate.finish) == ("model", None, "end")


def test_no_edit_is_the_answer_where_it_may_be_and_is_likelier_than_all_others() -> None:
    answers = {"2-2\n    return 2\n": 0.35, "": 0.65}
    quiet = asked(answers, min_tokens=0, edits=[(3, "print(g(1))")], candidates=3)
    assert (quiet.candidates, quiet.reason) == ((), "The model would change nothing here.")
    assert quiet.stats.denoise_steps == 1
    assert lines_of(asked(answers, min_tokens=1)) == ["    return 2\n"]


def test_no_more_candidates_come_than_were_asked_for() -> None:
    for count in (1, 2, 4):
        prediction = asked(ANSWERS, quality="high", candidates=count)
        assert len(prediction.candidates) == count


def test_medium_quality_writes_no_text_to_its_end_that_is_less_likely_than_another() -> None:
    medium, high = (asked(ANSWERS, quality=each, candidates=3) for each in ("medium", "high"))
    assert lines_of(medium) == lines_of(high)[:1]
    assert medium.stats.denoise_steps < high.stats.denoise_steps


def test_a_range_that_only_writes_its_lines_again_is_no_candidate() -> None:
    prediction = asked({"2-2\n    return x\n": 0.9, "4-4\nprint(1)\n": 0.1}, candidates=2)
    assert lines_of(prediction) == ["print(1)\n"]


def test_a_text_that_gets_hopeless_is_not_written_to_its_end() -> None:
    likely, hopeless = "2-2\n    return 2\n", "4-4\n" + "".join(f"print({n})\n" for n in range(9))
    rest = {f"4-4\n{chr(97 + n)}\n": 0.005 for n in range(20)}
    prediction = asked({likely: 0.4, hopeless: 0.005, **rest}, quality="high", candidates=2)
    assert lines_of(prediction)[0] == "    return 2\n"
    assert hopeless not in {each.text for each in prediction.candidates}
    alone = asked({likely: 0.4}, quality="high", candidates=2)
    assert prediction.stats.denoise_steps <= alone.stats.denoise_steps + 2


def test_the_same_document_twice_is_one_candidate() -> None:
    answers = {
        "2-2\n    return 2\n": 0.5,
        "2-3\n    return 2\n\n": 0.4,
        "4-4\nprint(1)\n": 0.1,
    }
    found = asked(answers, quality="high", candidates=3).candidates
    documents = [after(each) for each in found]
    assert len(documents) == len(set(documents)) == 2


def test_higher_quality_looks_at_more_ranges() -> None:
    many = {f"{n}-{n}\nx = {n}\n": 0.12 for n in range(1, 7)}
    text = "\n".join("abcdef")
    found = {
        quality: asked(many, text=text, quality=quality, candidates=1).stats.computed_tokens
        for quality in ("low", "medium", "high")
    }
    assert found["low"] < found["high"]
    assert len(asked(many, text=text, quality="high", candidates=6).candidates) == 6


def test_a_repetition_more_likely_than_not_is_offered_though_the_model_is_quiet() -> None:
    text = "def shown(x):\n    print(show(x))\n"
    prediction = asked({"": 0.9, "1-1\n\n": 0.1}, RENAMED, text=text, min_tokens=0)
    (candidate,) = prediction.candidates
    assert (candidate.text, candidate.source) == ("    print(shown(x))\n", "repeat")
    assert candidate.confidence.nothing == pytest.approx(math.log(0.9), abs=0.05)
    far = "def shown(x):\n    return x\n" + "\n" * 30 + "print(show(1))\n"
    assert asked({"": 0.9}, RENAMED, text=far, min_tokens=0).candidates == ()


# --- repeated edits -----------------------------------------------------------------------------


def test_a_repeated_edit_is_a_draft_that_carries_its_chance() -> None:
    prediction = asked({"": 1.0}, RENAMED, text=CALLS, candidates=2)
    assert lines_of(prediction) == ["print(shown(1))\n", "print(shown(2))\n"]
    for candidate in prediction.candidates:
        assert candidate.source == "repeat"
        assert candidate.confidence.repeat is not None and candidate.confidence.repeat > 0.1


def test_a_draft_is_scored_as_fresh_writing_would_be() -> None:
    answers = {"4-4\nprint(shown(1))\n": 0.4, "6-6\nprint(shown(2))\n": 0.3, "": 0.3}
    both: dict[str, object] = {"text": CALLS, "quality": "high", "candidates": 2}
    written = asked(answers, **both).candidates
    drafted = asked(answers, RENAMED, **both).candidates
    assert [after(each, CALLS) for each in drafted] == [after(each, CALLS) for each in written]
    for draft, fresh in zip(drafted, written, strict=True):
        assert draft.confidence.total == pytest.approx(fresh.confidence.total, abs=1e-4)
        assert draft.confidence.place == pytest.approx(fresh.confidence.place, abs=1e-4)
        assert draft.confidence.minimum == pytest.approx(fresh.confidence.minimum, abs=1e-4)
        assert (draft.source, fresh.source) == ("both", "model")


def test_what_the_model_writes_instead_of_a_draft_is_a_candidate_too() -> None:
    answers = {"4-4\nprint(shown(1, 2))\n": 0.9, "": 0.1}
    prediction = asked(answers, RENAMED, text=CALLS, candidates=3)
    assert lines_of(prediction)[0] == "print(shown(1, 2))\n"
    assert "print(shown(1))\n" in lines_of(prediction)


def test_an_unlikely_repetition_comes_behind_what_the_model_is_sure_of() -> None:
    text = "def shown(x):\n    return x\n" + "\n" * 20 + "print(show(1))\n"
    answers = {"2-2\n    return x + 1\n": 0.97, "": 0.03}
    prediction = asked(answers, RENAMED, text=text, candidates=2)
    assert lines_of(prediction)[0] == "    return x + 1\n"


def test_a_rename_is_followed_from_call_to_call() -> None:
    text, edits, made, reused = CALLS, history(CALLS, RENAMED), [], []
    model = model_of({"": 1.0})
    for _ in range(2):
        request = dataclasses.replace(REQUEST, text=text, edits=edits)
        prediction = predict(model, request, clock)
        (first,) = prediction.candidates
        reused.append(prediction.stats.reused_tokens)
        line = text.count("\n", 0, first.start)
        made.append(line)
        lines = text.split("\n")
        edits += (recent_edit("a.py", lines, line, line + 1, (first.text[:-1],)),)
        text = after(first, text)
    assert made == [3, 5]
    assert reused[1] > 60  # all before the edit that was accepted
    request = dataclasses.replace(REQUEST, text=text, edits=edits, min_tokens=0)
    assert predict(model, request, clock).candidates == ()


def test_nothing_is_proposed_where_the_substitution_does_not_apply_any_more() -> None:
    text = CALLS.replace("show(", "shown(")
    prediction = asked(ANSWERS, RENAMED, text=text, candidates=8)
    assert {candidate.source for candidate in prediction.candidates} == {"model"}


def test_a_sure_repetition_costs_few_passes() -> None:
    near = "def shown(x):\n    print(show(x))\n"
    answers = {f"{n}-{n}\n{text}\n": 0.03 for n in (1, 2) for text in "abcd"}
    answers |= {"2-2\n    print(shown(x))\n": 0.26, "": 0.5}
    repeated = asked(answers, RENAMED, text=near)
    assert repeated.candidates[0].source == "both"
    assert repeated.stats.denoise_steps <= 3
    more = asked(answers, RENAMED, text=near, candidates=3)
    assert more.stats.denoise_steps <= 3
    assert repeated.stats.denoise_steps < asked(answers, text=near).stats.denoise_steps


# --- limits, streams, cancelling ----------------------------------------------------------------


def test_a_cancel_is_heard_before_every_pass() -> None:
    request = dataclasses.replace(
        REQUEST, text=CALLS, edits=history(CALLS, RENAMED), candidates=3, context_tokens=200
    )
    model, asked_for = model_of(ANSWERS), 0

    def count() -> bool:
        nonlocal asked_for
        asked_for += 1
        return False

    passes = predict(model, request, clock, cancelled=count).stats.denoise_steps
    assert asked_for >= passes > 3
    for last in range(asked_for):
        left = iter(range(last))
        with pytest.raises(Cancelled):
            predict(
                model_of(ANSWERS),
                request,
                clock,
                cancelled=lambda left=left: next(left, None) is None,  # type: ignore[misc]
            )


@pytest.mark.parametrize("most", [1, 3, 7, 20])
def test_no_answer_is_longer_than_the_limit(most: int) -> None:
    model = over(FakeBackend(Noise(3, scale=2.0), small_config(8, "ar")))
    request = dataclasses.replace(
        REQUEST, text=CALLS, edits=history(CALLS, RENAMED), max_tokens=most, candidates=6
    )
    for candidate in predict(model, request, clock).candidates:
        assert candidate.tokens <= most


@pytest.mark.parametrize("quality", ["low", "medium", "high"])
def test_passes_are_bounded_and_reported(quality: Quality) -> None:
    """Once the time is up nothing is begun; where nothing is written yet, the first is finished."""
    model = over(FakeBackend(Noise(5, scale=1.0), small_config(8, "ar")))
    text = "\n".join(f"line {n}" for n in range(30))
    request = dataclasses.replace(REQUEST, text=text, max_tokens=24, quality=quality, candidates=9)
    late = (0.1 * at for at in itertools.count())  # each look at the clock is 100 ms later
    stats = predict(model, request, lambda: next(late)).stats
    (sequence,) = model.backend.sequences  # type: ignore[attr-defined]
    passes = [entry for entry in sequence.log if not entry.startswith("extend")]
    assert stats.denoise_steps == len(passes)
    looks = EFFORTS[quality].deadline_ms / 100
    assert stats.denoise_steps <= looks + request.max_tokens


def test_drawn_answers_are_drawn_one_by_one() -> None:
    model = model_of(ANSWERS)
    texts = set()
    for seed in range(12):
        request = dataclasses.replace(REQUEST, temperature=1.0, seed=seed)
        texts |= {candidate.text for candidate in predict(model, request, clock).candidates}
    assert len(texts) >= 3


def test_the_last_state_shown_is_the_best_candidate() -> None:
    states: list[CanvasState] = []
    request = dataclasses.replace(REQUEST, text=CALLS, edits=history(CALLS, RENAMED))
    prediction = predict(model_of(ANSWERS), request, clock, on_step=states.append)
    assert states[-1].show().partition("\n")[2] == prediction.candidates[0].text


# --- the gate ------------------------------------------------------------------------------------


def test_a_likely_repetition_passes_the_gate_though_the_model_hesitates() -> None:
    text = "def shown(x):\n    print(show(x))\n"
    likely = {"": 0.9, "2-2\n    print(shown(x))\n": 0.02, "1-1\n\n": 0.08}
    (candidate,) = asked(likely, RENAMED, text=text).candidates
    gate = read_gate(SHIPPED)[0]
    likely_sure = gate.sure(candidate, "next_edit")
    assert likely_sure >= threshold("medium")
    (candidate,) = asked({"": 0.9}, RENAMED, text=text).candidates
    assert candidate.confidence.repeat is not None and candidate.confidence.repeat > 0.5
    assert gate.sure(candidate, "next_edit") < likely_sure  # the model finds it unlikely


# --- the wire -----------------------------------------------------------------------------------


def sent(prediction: Prediction) -> Any:
    return json.loads(json.dumps(prediction_to_json(prediction), allow_nan=False))


def test_what_the_gate_needs_survives_the_wire() -> None:
    prediction = asked(ANSWERS, RENAMED, text=CALLS, candidates=3)
    assert {each.source for each in prediction.candidates} == {"model", "repeat"}
    assert prediction_from_json(sent(prediction)) == prediction


def test_an_older_peer_knows_nothing_of_places_and_repetitions() -> None:
    data = sent(asked(ANSWERS, RENAMED, text=CALLS))
    (candidate,) = data["prediction"]["candidates"]
    del candidate["source"]
    for field in ("total", "place", "nothing", "repeat"):
        del candidate["confidence"][field]
    (read,) = prediction_from_json(data).candidates
    assert (read.source, read.confidence.place, read.confidence.repeat) == ("model", None, None)


@pytest.mark.parametrize("field", ["place", "nothing", "total"])
def test_a_probability_above_one_is_refused(field: str) -> None:
    data = sent(asked(ANSWERS))
    data["prediction"]["candidates"][0]["confidence"][field] = 3.0
    with pytest.raises(InvalidRequest, match=field):
        prediction_from_json(data)
