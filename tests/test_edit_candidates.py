"""Several next edits at one moment: ranges, repeated edits as drafts, ranking, limits."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from redraft.model.config import ModelConfig
from redraft.model.decoding.candidates import EFFORTS, Field, Proposal, effort_for
from redraft.model.decoding.canvas_edits import write_canvas_edits
from redraft.model.decoding.denoise import (
    AUTOREGRESSIVE,
    Brief,
    Cancelled,
    Denoised,
    Limits,
    Plan,
    Run,
    plan_for,
)
from redraft.model.decoding.judged_edits import write_edits
from redraft.model.decoding.tree import Tree
from redraft.model.edits.gate import threshold
from redraft.model.edits.gate_file import read_gate
from redraft.model.edits.hunks import recent_edit
from redraft.model.engine.answer import Model, answer
from redraft.model.engine.record_json import prediction_from_json, prediction_to_json
from redraft.model.errors import InvalidRequest
from redraft.model.prompt.tokens import EDIT, Tokenizer
from redraft.model.records import (
    Candidate,
    CanvasState,
    EditRequest,
    Prediction,
    Quality,
    RecentEdit,
)
from redraft.model.runtime.backend import Backend, CanvasOutput, FloatArray, IntArray
from redraft.model.runtime.onnx_backend import OnnxBackend, OnnxSequence, stack
from redraft.model.runtime.prefix_cache import PrefixCache
from support.fake_answers import Mixture
from support.fake_backend import (
    SPECIAL,
    VOCAB,
    FakeBackend,
    FakeSequence,
    Noise,
    fake_tokenizer,
    ids,
    small_config,
)
from support.gates import SHIPPED
from support.onnx_models import store
from support.tiny import tiny_config, tiny_tokenizer

PLAIN = plan_for("medium")
TOKENIZER = fake_tokenizer()
MARK = TOKENIZER.mark(EDIT)
TEXT = "def f(x):\n    return x\n\nprint(f(1))\n"
REQUEST = EditRequest("next_edit", "a.py", TEXT, 0, max_tokens=60, min_tokens=1)
KINDS = ("ar", "none")

#: Of whole answers; what is left goes to no edit.
ANSWERS = {
    "2-2\n    return x + 1\n": 0.3,
    "4-4\nprint(f(2))\n": 0.25,
    "1-1\ndef f(y):\n": 0.2,
    "4-3\n# test\n": 0.05,
    "": 0.2,
}


def clock() -> float:
    return 0.0


def model_of(answers: Mapping[str, float], verifier: str = "ar", width: int = 8) -> Model:
    mixture = Mixture(answers, MARK)
    return over(FakeBackend(mixture, small_config(width, verifier), mixture.causal))


def over(backend: Backend, tokenizer: Tokenizer = TOKENIZER) -> Model:
    return Model("fake", backend, tokenizer, PrefixCache(backend, 1 << 24), 1024)


def asked(
    answers: Mapping[str, float],
    verifier: str = "ar",
    edits: Sequence[tuple[int, str]] = (),
    **changes: object,
) -> Prediction:
    """What comes of a request; ``edits``: lines of the text as they were, which became what they
    are now."""
    request = dataclasses.replace(REQUEST, **changes)  # type: ignore[arg-type]
    request = dataclasses.replace(request, edits=history(request.text, edits))
    return answer(model_of(answers, verifier), request, clock)


def history(text: str, edits: Sequence[tuple[int, str]]) -> tuple[RecentEdit, ...]:
    lines = text.split("\n")
    made = []
    for line, old in edits:
        before = [*lines[:line], old, *lines[line + 1 :]]
        made.append(recent_edit("a.py", before, line, line + 1, (lines[line],)))
    return tuple(made)


def after(candidate: Candidate, text: str = TEXT) -> str:
    return text[: candidate.start] + candidate.text + text[candidate.end :]


def lines_of(prediction: Prediction) -> list[str]:
    return [candidate.text for candidate in prediction.candidates]


# --- several ranges -----------------------------------------------------------------------------


@pytest.mark.parametrize("verifier", KINDS)
def test_several_ranges_come_likeliest_first(verifier: str) -> None:
    prediction = asked(ANSWERS, verifier, candidates=3)
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


@pytest.mark.parametrize("verifier", KINDS)
def test_no_edit_is_the_answer_where_it_may_be_and_is_likelier_than_all_others(
    verifier: str,
) -> None:
    answers = {"2-2\n    return 2\n": 0.35, "": 0.65}
    quiet = asked(answers, verifier, min_tokens=0, edits=[(3, "print(g(1))")], candidates=3)
    assert (quiet.candidates, quiet.reason) == ((), "The model would change nothing here.")
    assert quiet.stats.denoise_steps == 1
    assert lines_of(asked(answers, verifier, min_tokens=1)) == ["    return 2\n"]


@pytest.mark.parametrize("verifier", KINDS)
def test_no_more_candidates_come_than_were_asked_for(verifier: str) -> None:
    for count in (1, 2, 4):
        prediction = asked(ANSWERS, verifier, candidates=count)
        assert len(prediction.candidates) == count


def test_a_range_that_only_writes_its_lines_again_is_no_candidate() -> None:
    prediction = asked({"2-2\n    return x\n": 0.9, "4-4\nprint(1)\n": 0.1}, candidates=2)
    assert lines_of(prediction) == ["print(1)\n"]


@pytest.mark.parametrize("verifier", KINDS)
def test_the_same_document_twice_is_one_candidate(verifier: str) -> None:
    answers = {
        "2-2\n    return 2\n": 0.5,
        "2-3\n    return 2\n\n": 0.4,
        "4-4\nprint(1)\n": 0.1,
    }
    documents = [after(each) for each in asked(answers, verifier, candidates=3).candidates]
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


@pytest.mark.parametrize("verifier", KINDS)
def test_a_repetition_more_likely_than_not_is_offered_though_the_model_is_quiet(
    verifier: str,
) -> None:
    text = "def shown(x):\n    print(show(x))\n"
    prediction = asked({"": 0.9, "1-1\n\n": 0.1}, verifier, RENAMED, text=text, min_tokens=0)
    (candidate,) = prediction.candidates
    assert (candidate.text, candidate.source) == ("    print(shown(x))\n", "repeat")
    assert candidate.confidence.nothing == pytest.approx(math.log(0.9), abs=0.05)
    far = "def shown(x):\n    return x\n" + "\n" * 30 + "print(show(1))\n"
    assert asked({"": 0.9}, verifier, RENAMED, text=far, min_tokens=0).candidates == ()


# --- repeated edits -----------------------------------------------------------------------------

CALLS = "def shown(x):\n    return x\n\nprint(show(1))\n\nprint(show(2))\n"
RENAMED = [(0, "def show(x):")]


@pytest.mark.parametrize("verifier", KINDS)
def test_a_repeated_edit_is_a_draft_that_carries_its_chance(verifier: str) -> None:
    prediction = asked({"": 1.0}, verifier, RENAMED, text=CALLS, candidates=2)
    assert lines_of(prediction) == ["print(shown(1))\n", "print(shown(2))\n"]
    for candidate in prediction.candidates:
        assert candidate.source == "repeat"
        assert candidate.confidence.repeat is not None and candidate.confidence.repeat > 0.1


def test_a_draft_is_scored_as_fresh_writing_would_be() -> None:
    answers = {"4-4\nprint(shown(1))\n": 0.4, "6-6\nprint(shown(2))\n": 0.3, "": 0.3}
    written = asked(answers, text=CALLS, candidates=2).candidates
    drafted = asked(answers, "ar", RENAMED, text=CALLS, candidates=2).candidates
    assert [after(each, CALLS) for each in drafted] == [after(each, CALLS) for each in written]
    for draft, fresh in zip(drafted, written, strict=True):
        assert draft.confidence.total == pytest.approx(fresh.confidence.total, abs=1e-4)
        assert draft.confidence.place == pytest.approx(fresh.confidence.place, abs=1e-4)
        assert draft.confidence.minimum == pytest.approx(fresh.confidence.minimum, abs=1e-4)
        assert (draft.source, fresh.source) == ("both", "model")


def test_what_the_model_writes_instead_of_a_draft_is_a_candidate_too() -> None:
    answers = {"4-4\nprint(shown(1, 2))\n": 0.9, "": 0.1}
    prediction = asked(answers, "ar", RENAMED, text=CALLS, candidates=3)
    assert lines_of(prediction)[0] == "print(shown(1, 2))\n"
    assert "print(shown(1))\n" in lines_of(prediction)


def test_an_unlikely_repetition_comes_behind_what_the_model_is_sure_of() -> None:
    text = "def shown(x):\n    return x\n" + "\n" * 20 + "print(show(1))\n"
    answers = {"2-2\n    return x + 1\n": 0.97, "": 0.03}
    prediction = asked(answers, "ar", RENAMED, text=text, candidates=2)
    assert lines_of(prediction)[0] == "    return x + 1\n"


@pytest.mark.parametrize("verifier", KINDS)
def test_a_rename_is_followed_from_call_to_call(verifier: str) -> None:
    text, edits, made, reused = CALLS, history(CALLS, RENAMED), [], []
    model = model_of({"": 1.0}, verifier)
    for _ in range(2):
        request = dataclasses.replace(REQUEST, text=text, edits=edits)
        prediction = answer(model, request, clock)
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
    assert answer(model, request, clock).candidates == ()


@pytest.mark.parametrize("verifier", KINDS)
def test_nothing_is_proposed_where_the_substitution_does_not_apply_any_more(verifier: str) -> None:
    text = CALLS.replace("show(", "shown(")
    prediction = asked(ANSWERS, verifier, RENAMED, text=text, candidates=8)
    assert {candidate.source for candidate in prediction.candidates} == {"model"}


def test_a_sure_repetition_costs_few_passes() -> None:
    near = "def shown(x):\n    print(show(x))\n"
    answers = {f"{n}-{n}\n{text}\n": 0.03 for n in (1, 2) for text in "abcd"}
    answers |= {"2-2\n    print(shown(x))\n": 0.26, "": 0.5}
    repeated = asked(answers, "ar", RENAMED, text=near)
    assert repeated.candidates[0].source == "both"
    assert repeated.stats.denoise_steps <= 3
    more = asked(answers, "ar", RENAMED, text=near, candidates=3)
    assert more.stats.denoise_steps <= 3
    assert repeated.stats.denoise_steps < asked(answers, text=near).stats.denoise_steps


# --- equal paths --------------------------------------------------------------------------------

PROMPT = [*range(SPECIAL, SPECIAL + 40), MARK]
RANGE = {char: SPECIAL + ord(char) for char in "0123456789-\n"}
FIELD = Field(
    count=12,
    cursor=3,
    chars=RANGE,
    lines=lambda first, last: ids("same\n" * (last - first + 1)),
    proposals=(
        Proposal(2, 3, tuple(ids("a = b\n")), 0.2),
        Proposal(12, 12, tuple(ids("a longer line than a canvas\n")), 0.1),
    ),
)


def written(
    backend: FakeBackend, plan: Plan = PLAIN, proposals: Sequence[Proposal] = (), wanted: int = 4
) -> Denoised:
    sequence = backend.new_sequence(400)
    sequence.prefill(np.asarray(PROMPT[:-1], dtype=np.int64))
    brief = Brief(backend.config, VOCAB, plan, Limits(24, min_tokens=1))
    write = write_edits if brief.judged else write_canvas_edits
    field = dataclasses.replace(FIELD, proposals=tuple(proposals))
    rng = np.random.default_rng(0)
    result = write(sequence, PROMPT[-1], brief, field, effort_for("medium", wanted), rng)
    assert sequence.tokens[: len(PROMPT) - 1] == PROMPT[:-1]
    return result


@pytest.mark.parametrize("plan", [PLAIN, AUTOREGRESSIVE])
@pytest.mark.parametrize("seed", range(3))
def test_every_text_is_what_the_causal_pass_alone_would_write(seed: int, plan: Plan) -> None:
    noise = Noise(seed, scale=3.0)

    def causal(context: list[int]) -> FloatArray:
        row = noise(context, [0])[0]
        row[1:SPECIAL] = -1e9
        return row

    backend = FakeBackend(noise, small_config(8, "ar"), causal)
    drafts = written(backend, plan, FIELD.proposals[:1]).drafts
    assert {draft.source for draft in drafts} == {"model", "repeat"}
    for draft in drafts:
        if draft.source == "model":
            start = draft.text.index("\n") + 1
            for place in range(start, len(draft.token_ids)):
                likeliest = int(causal([*PROMPT, *draft.token_ids[:place]]).argmax())
                assert draft.token_ids[place] == likeliest


class OneByOne(FakeSequence):
    """Packed passes, one window after the other."""

    def denoise_packed(self, windows: IntArray, logits: bool = False) -> CanvasOutput:
        return stack([self.denoise(window, logits) for window in windows])


@pytest.mark.parametrize("seed", range(3))
def test_packed_candidates_are_those_written_one_by_one(seed: int) -> None:
    class AloneBackend(FakeBackend):
        def new_sequence(self, capacity: int) -> FakeSequence:
            return OneByOne(self._predict, self._causal, capacity)

    noise, config = Noise(seed), small_config(8)
    packed = written(FakeBackend(noise, config), proposals=FIELD.proposals)
    alone = written(AloneBackend(noise, config), proposals=FIELD.proposals)
    assert packed == alone
    assert len(packed.drafts) >= 3


def graph_config(verifier: str) -> ModelConfig:
    return tiny_config(
        verifier=verifier, hidden=64, heads=6, kv_heads=2, head_dim=16, intermediate=96
    )


def test_packed_candidates_of_real_graphs_are_those_written_one_by_one(tmp_path: Path) -> None:
    tokenizer = tiny_tokenizer()
    store(graph_config("none"), "fp32", tmp_path)

    class Alone(OnnxBackend):
        def new_sequence(self, capacity: int) -> OnnxSequence:
            sequence = super().new_sequence(capacity)
            sequence.denoise_packed = lambda windows, logits=False: stack(  # type: ignore[method-assign]
                [sequence.denoise(window, logits) for window in windows]
            )
            return sequence

    request = dataclasses.replace(
        REQUEST, text=CALLS, edits=history(CALLS, RENAMED), candidates=8, max_tokens=30
    )
    found = []
    for kind in (OnnxBackend, Alone):
        backend = kind(tmp_path, "CPU", threads=1)
        found.append(answer(over(backend, tokenizer), request, clock).candidates)
        backend.close()
    assert [each.text for each in found[0]] == [each.text for each in found[1]]
    assert {each.source for each in found[0]} >= {"repeat"}
    for packed, alone in zip(*found, strict=True):
        assert packed.confidence.total == pytest.approx(alone.confidence.total, abs=1e-3)


def test_judged_candidates_of_real_graphs_are_scored_the_same_from_a_warm_cache(
    tmp_path: Path,
) -> None:
    store(graph_config("ar"), "fp32", tmp_path)
    backend = OnnxBackend(tmp_path, "CPU", threads=1)
    model = over(backend, tiny_tokenizer())
    request = dataclasses.replace(
        REQUEST, text=CALLS, edits=history(CALLS, RENAMED), candidates=4, max_tokens=30
    )
    cold = answer(model, request, clock)
    warm = answer(model, request, clock)
    assert warm.stats.reused_tokens > cold.stats.reused_tokens
    assert warm.candidates == cold.candidates
    backend.close()


class InTurn(FakeSequence):
    """Reads one branch after the other."""

    branches = False


@pytest.mark.parametrize("seed", range(3))
def test_branches_read_side_by_side_are_those_read_in_turn(seed: int) -> None:
    class Alone(FakeBackend):
        def new_sequence(self, capacity: int) -> FakeSequence:
            self.sequences.append(InTurn(self._predict, self._causal, capacity))
            return self.sequences[-1]

    found = []
    for kind in (FakeBackend, Alone):
        backend = kind(Noise(seed), small_config(8, "ar"))
        found.append(written(backend, proposals=FIELD.proposals))
    together, alone = found
    assert together.passes < alone.passes
    best = {draft.text: draft for draft in alone.drafts}
    shared = [draft for draft in together.drafts if draft.text in best]
    assert len(shared) >= 2
    for draft in shared:
        total = best[draft.text].confidence.total
        assert draft.confidence.total == pytest.approx(total, abs=1e-3)


def test_branches_of_real_graphs_are_judged_as_texts_alone(tmp_path: Path) -> None:
    config = dataclasses.replace(graph_config("ar"), adapter="all")
    store(config, "fp32", tmp_path)
    backend = OnnxBackend(tmp_path, "CPU", threads=1)
    sequence = backend.new_sequence(200)
    assert sequence.branches
    first = config.text_ids.start
    sequence.prefill(np.arange(first, first + 20))
    tree = Tree(Run(sequence, lambda: False, None), first + 3, config.end_token, keep=99)
    texts = [[first + 5, first + 6, first + 7], [first + 5, first + 9], [first + 8]]
    assert len(tree.read(texts)) == 6 and tree.read(texts[:1]) == []
    assert len(sequence.tokens) == 20 + 6  # what begins alike is read once
    for text in texts:
        sequence.truncate(20)
        alone = sequence.verify(np.asarray([first + 3, *text]), logits=True)
        node = tree.node(text)
        assert node is not None and node.logits is not None and alone.logits is not None
        np.testing.assert_allclose(node.logits, alone.logits[-1], rtol=1e-3, atol=1e-3)
        logs = [one.logs[two.token] for one, two in pairwise(node.path())]
        np.testing.assert_allclose(logs, alone.log_probability, rtol=1e-3, atol=1e-3)
    backend.close()


def test_where_there_is_no_room_for_all_branches_texts_are_read_again() -> None:
    backend = FakeBackend(Noise(1), small_config(8, "ar"))
    wide, narrow = backend.new_sequence(400), backend.new_sequence(len(PROMPT) + 12)
    for sequence in (wide, narrow):
        sequence.prefill(np.asarray(PROMPT[:-1], dtype=np.int64))
    trees = [Tree(Run(each, lambda: False, None), MARK, 0) for each in (wide, narrow)]
    for text in (ids("some text"), ids("other"), ids("some more")):
        for tree in trees:
            tree.read([text])
    for text in (ids("some text"), ids("other"), ids("some more")):
        one, two = (tree.node(text) for tree in trees)
        assert one is not None and two is not None and one.read and two.read
        assert (one.best, one.confidence) == (two.best, two.confidence)


def test_proposals_are_priced_in_the_pass_that_prices_no_edit() -> None:
    text = "def shown(x):\n    print(show(x))\n"
    prediction = asked({"2-2\n    print(shown(x))\n": 0.9, "": 0.1}, "ar", RENAMED, text=text)
    assert prediction.candidates[0].source == "both"
    assert prediction.stats.denoise_steps == 1


# --- limits, streams, cancelling ----------------------------------------------------------------


@pytest.mark.parametrize("verifier", KINDS)
def test_a_cancel_is_heard_before_every_pass(verifier: str) -> None:
    request = dataclasses.replace(
        REQUEST, text=CALLS, edits=history(CALLS, RENAMED), candidates=3, context_tokens=200
    )
    model, asked_for = model_of(ANSWERS, verifier), 0

    def count() -> bool:
        nonlocal asked_for
        asked_for += 1
        return False

    passes = answer(model, request, clock, cancelled=count).stats.denoise_steps
    assert asked_for >= passes > 3
    for last in range(asked_for):
        left = iter(range(last))
        with pytest.raises(Cancelled):
            answer(
                model_of(ANSWERS, verifier),
                request,
                clock,
                cancelled=lambda left=left: next(left, None) is None,  # type: ignore[misc]
            )


@pytest.mark.parametrize("verifier", KINDS)
@pytest.mark.parametrize("most", [1, 3, 7, 20])
def test_no_answer_is_longer_than_the_limit(verifier: str, most: int) -> None:
    model = over(FakeBackend(Noise(3, scale=2.0), small_config(8, verifier)))
    request = dataclasses.replace(
        REQUEST, text=CALLS, edits=history(CALLS, RENAMED), max_tokens=most, candidates=6
    )
    for candidate in answer(model, request, clock).candidates:
        assert candidate.tokens <= most


@pytest.mark.parametrize("quality", ["low", "medium", "high"])
@pytest.mark.parametrize("verifier", KINDS)
def test_passes_are_bounded_and_reported(verifier: str, quality: Quality) -> None:
    """Once the time is up nothing is begun; where nothing is written yet, the first is finished."""
    model = over(FakeBackend(Noise(5, scale=1.0), small_config(8, verifier)))
    text = "\n".join(f"line {n}" for n in range(30))
    request = dataclasses.replace(REQUEST, text=text, max_tokens=24, quality=quality, candidates=9)
    late = (0.1 * at for at in itertools.count())  # each look at the clock is 100 ms later
    stats = answer(model, request, lambda: next(late)).stats
    (sequence,) = model.backend.sequences  # type: ignore[attr-defined]
    passes = [entry for entry in sequence.log if not entry.startswith("prefill")]
    assert stats.denoise_steps == len(passes)
    looks = EFFORTS[quality].deadline_ms / 100
    if verifier == "ar":  # canvases look at the clock before each text, not before each pass
        assert stats.denoise_steps <= looks + request.max_tokens


def test_drawn_answers_are_drawn_one_by_one() -> None:
    model = model_of(ANSWERS)
    texts = set()
    for seed in range(12):
        request = dataclasses.replace(REQUEST, temperature=1.0, seed=seed)
        texts |= {candidate.text for candidate in answer(model, request, clock).candidates}
    assert len(texts) >= 3


@pytest.mark.parametrize("verifier", KINDS)
def test_the_last_state_shown_is_the_best_candidate(verifier: str) -> None:
    states: list[CanvasState] = []
    request = dataclasses.replace(REQUEST, text=CALLS, edits=history(CALLS, RENAMED))
    prediction = answer(model_of(ANSWERS, verifier), request, clock, on_step=states.append)
    assert states[-1].show().partition("\n")[2] == prediction.candidates[0].text


# --- the gate ------------------------------------------------------------------------------------


def test_a_likely_repetition_passes_the_gate_though_the_model_hesitates() -> None:
    text = "def shown(x):\n    print(show(x))\n"
    likely = {"": 0.9, "2-2\n    print(shown(x))\n": 0.02, "1-1\n\n": 0.08}
    (candidate,) = asked(likely, "ar", RENAMED, text=text).candidates
    gate = read_gate(SHIPPED)[0]
    likely_sure = gate.sure(candidate, "next_edit")
    assert likely_sure >= threshold("medium")
    (candidate,) = asked({"": 0.9}, "ar", RENAMED, text=text).candidates
    assert candidate.confidence.repeat is not None and candidate.confidence.repeat > 0.5
    assert gate.sure(candidate, "next_edit") < likely_sure  # the model finds it unlikely


# --- the wire -----------------------------------------------------------------------------------


def sent(prediction: Prediction) -> Any:
    return json.loads(json.dumps(prediction_to_json(prediction), allow_nan=False))


def test_what_the_gate_needs_survives_the_wire() -> None:
    prediction = asked(ANSWERS, "ar", RENAMED, text=CALLS, candidates=3)
    assert {each.source for each in prediction.candidates} == {"model", "repeat"}
    assert prediction_from_json(sent(prediction)) == prediction


def test_an_older_peer_knows_nothing_of_places_and_repetitions() -> None:
    data = sent(asked(ANSWERS, "ar", RENAMED, text=CALLS))
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
