"""Next edits by rewriting a region: beginnings, branches, joins, rules and probabilities."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from redraft.evals.scorers.likelihood import nats_of, nats_of_nothing
from redraft.model.decode import next_edit
from redraft.model.decode.branches import OldText
from redraft.model.decode.completion import Brief, Draft, plan_for
from redraft.model.decode.endings import AnswerLimits
from redraft.model.decode.next_edit import SEARCH, RuleText, SearchBudget, rewrite
from redraft.model.decode.passes import Passes
from redraft.model.decode.regions import at_likely_rule, rank_rules
from redraft.model.predict import predict
from redraft.model.records import EditRequest, RecentEdit
from redraft.model.runtime.backend import FloatArray
from redraft.model.runtime.onnx_backend import OnnxBackend
from support.models.denoising import Written
from support.models.engines_of import Clock
from support.models.fake_backend import (
    END,
    SPECIAL,
    VOCAB,
    Causal,
    FakeBackend,
    Noise,
    fake_tokenizer,
    ids,
    small_config,
)
from support.models.onnx_models import BASE, store
from support.models.rewriting import REQUEST, TEXT, Answers, asked, model_of

PROMPT = [5, *ids("def f(x):\n"), 6]
REGION = "a = 1\nb = 2\nc = 3\nd = 4\ne = 5\nf = 6\n"
HIGH = SEARCH["high"]


def rewritten(
    causal: object,
    region: str = REGION,
    rules: Sequence[RuleText] = (),
    budget: SearchBudget = HIGH,
    late: bool = False,
    min_tokens: int = 0,
) -> Written:
    config = small_config(8, "ar")
    if isinstance(causal, Answers):
        causal.prompt = len(PROMPT)
    backend = FakeBackend(Noise(), config, causal)  # type: ignore[arg-type]
    sequence = backend.open(4_096)
    sequence.extend(np.asarray(PROMPT[:-1], np.int64))
    brief = Brief(
        config,
        VOCAB,
        plan_for("high"),
        AnswerLimits(256, min_tokens),
        source=np.asarray(PROMPT, np.int64),
    )
    run = Passes(sequence, lambda: False)
    found = rewrite(run, [PROMPT[-1], *ids(region)], rules, brief, budget, lambda: late)
    assert sequence.tokens == PROMPT[:-1], "no branch stays behind the prompt"
    return Written(found, run.count, run.tally.counts())


def texts(found: Written) -> list[str]:
    return [draft.text for draft in found.drafts]


def test_rewrites_come_likeliest_first() -> None:
    weights = {
        REGION: 0.2,
        REGION.replace("c = 3", "c = x"): 0.4,
        REGION.replace("a = 1\n", ""): 0.3,
        REGION + "g = 7\n": 0.1,
    }
    found = rewritten(Answers(weights))
    best = sorted((text for text in weights if text != REGION), key=lambda text: -weights[text])
    assert texts(found)[:-1] == best
    assert texts(found)[-1] == REGION, "the last one is no edit"
    for draft in found.drafts[:-1]:
        assert draft.confidence.total == pytest.approx(math.log(weights[draft.text]), abs=0.01)
        assert draft.confidence.nothing == pytest.approx(math.log(0.2), abs=0.01)
        assert draft.confidence.place is not None
        assert draft.confidence.total <= draft.confidence.place + 1e-6


def test_nothing_is_written_where_no_edit_is_likely() -> None:
    weights = {REGION: 0.6, REGION.replace("c = 3", "c = x"): 0.4}
    assert texts(rewritten(Answers(weights))) == [REGION]
    assert len(rewritten(Answers(weights), min_tokens=1).drafts) == 2


def test_inserting_a_line_that_is_below_deletes_none() -> None:
    region = "open()\nread(a)\nread(b)\nflush(a)\nsync(all)\nread(c)\nclose()\nend()\n"
    wanted = region.replace("open()\n", "open()\nsync(all)\n")
    found = rewritten(Answers({wanted: 0.9, region: 0.1}), region)
    assert texts(found)[0] == wanted


def test_the_old_text_goes_on_where_one_place_fits() -> None:
    old = OldText((*ids("ab()\ncd()\nab()\n"), END), frozenset(ids("\n")))
    assert old.find_meeting(0, ids("b()\n")) is None, "twice"
    assert old.find_meeting(5, ids("b()\n")) == 15
    assert old.find_meeting(0, ids("d()\n")) == 10
    assert old.find_meeting(0, ids("zzz\n")) is None
    assert old.find_meeting(0, ids("cd()")) is None, "no line end"


@pytest.mark.parametrize("seed", range(6))
def test_own_tokens_are_those_of_the_causal_pass(seed: int) -> None:
    noise = Noise(seed, scale=3.0)

    def causal(context: list[int]) -> FloatArray:
        row = noise(context, [0])[0]
        row[1:SPECIAL] = -1e9
        row[END] += 4  # so that branches end
        return row

    old = ids("x = 1\n")
    found = rewritten(causal, region="x = 1\n", min_tokens=1)
    for draft in found.drafts[:-1]:
        assert any(_agrees(draft, old[:at], causal) for at in range(len(old) + 1))


def _agrees(draft: Draft, copied: list[int], causal: Causal) -> bool:
    """Return whether the causal pass writes the draft's own tokens but the first, as likely."""
    total, context = 0.0, [*PROMPT]
    for place, token in enumerate([*copied, *draft.token_ids]):
        row = causal(context).astype(np.float64)
        total += float(row[token] - row.max() - np.log(np.exp(row - row.max()).sum()))
        if place > len(copied) and token != int(row.argmax()):
            return False
        context.append(token)
    return bool(abs(total - draft.confidence.total) < 1e-3)


def test_a_rule_scores_as_the_model_scores_its_text() -> None:
    wanted = REGION.replace("c = 3", "c = x")
    weights = {REGION: 0.3, wanted: 0.5, REGION.replace("b = 2", "b = y"): 0.2}
    rule = RuleText(tuple(ids(wanted)), 0.4, "repeat")
    both = rewritten(Answers(weights), rules=[rule]).drafts[0]
    model = rewritten(Answers(weights)).drafts[0]
    alone = rewritten(Answers(weights), rules=[rule], budget=replace(HIGH, beginnings=0)).drafts[0]
    assert both.text == model.text == alone.text == wanted
    assert (both.source, model.source, alone.source) == ("both", "model", "repeat")
    assert both.family == alone.family == "repeat"
    for draft in (both, alone):
        assert draft.confidence.total == pytest.approx(model.confidence.total, abs=1e-3)
        assert draft.confidence.repeat == 0.4


def test_the_chance_of_a_rule_counts_beside_the_model() -> None:
    own, wanted = REGION.replace("c = 3", "c = y"), REGION.replace("c = 3", "c = x")
    weights = {REGION: 0.2, own: 0.5, wanted: 0.3}
    for chance, first in ((0.1, own), (0.4, wanted)):
        rule = RuleText(tuple(ids(wanted)), chance, "repeat")
        found = rewritten(Answers(weights), rules=[rule])
        assert texts(found)[0] == first
        assert {own, wanted} == set(texts(found)[:2])


def test_the_region_moves_to_a_repeated_edit() -> None:
    lines = [f"value_{i} = {i}" for i in range(40)]
    lines[2], lines[3] = "z = load(2)", "a = load(3)"
    lines[5], lines[20] = "b = fetch(4)", "c = fetch(5)"
    text = "\n".join(lines)
    edits = (
        RecentEdit("a.py", 2, "-z = fetch(2)\n+z = load(2)\n"),
        RecentEdit("a.py", 3, "-a = fetch(3)\n+a = load(3)\n"),
    )
    request = EditRequest("next_edit", "a.py", text, text.index("load(3"), "python", edits=edits)
    tokenizer = fake_tokenizer()

    def region(text: str) -> tuple[int, int] | None:
        asked_about = replace(request, text=text)
        rules = rank_rules(asked_about)
        return at_likely_rule(asked_about, rules, tokenizer, 1_024).region

    assert region(text) is None, "line 5 lies near the cursor"
    far = region(text.replace("b = fetch(4)", "b = other(4)"))
    assert far is not None and far[0] <= 20 < far[1]
    assert region(text.replace("fetch", "other")) is None, "there is nothing to repeat"


def test_a_rule_may_delete_and_insert_at_the_end() -> None:
    for wanted in (REGION[: -len("f = 6\n")], REGION + "g = 7\n", "z\n" + REGION):
        rule = RuleText(tuple(ids(wanted)), 0.4, "repeat")
        found = rewritten(Answers({REGION: 0.4, wanted: 0.6}), rules=[rule])
        assert texts(found)[0] == wanted
        assert found.drafts[0].confidence.total == pytest.approx(math.log(0.6), abs=0.01)


def test_the_early_end_loses_no_beginning() -> None:
    region = "".join(f"line_{i} = {i}\n" for i in range(12))
    edits = [region.replace(f"line_{i} = {i}\n", f"line_{i} = x{i}\n") for i in (0, 1, 8)]
    weights = {region: 0.01, edits[0]: 0.6, edits[1]: 0.39, edits[2]: 1e-4}
    budget = replace(HIGH, beginnings=2)
    found = rewritten(Answers(weights), region, budget=budget)
    assert texts(found)[:2] == edits[:2]
    whole = rewritten(Answers(weights), region, budget=replace(budget, beginnings=9))
    assert texts(whole)[:2] == edits[:2]
    assert found.passes < whole.passes, "the rest of the region was not scored"


def test_nats_are_those_of_the_whole_new_region() -> None:
    changed = REGION.replace("c = 3", "c = x")
    request = EditRequest("next_edit", "a.py", REGION.removesuffix("\n"), 0)
    model = model_of({REGION: 0.7, changed: 0.2, "": 0.1}, request)
    assert nats_of_nothing(model, request) == pytest.approx(-math.log(0.7), abs=0.01)
    assert nats_of(model, request, 2, 3, ["c = x"]) == pytest.approx(-math.log(0.2), abs=0.01)
    assert nats_of(model, request, 0, 6, []) == pytest.approx(-math.log(0.1), abs=0.01)
    assert nats_of(model, request, 6, 40, ["far"]) is None, "not in the region"


def test_an_answer_replaces_the_lines_that_it_changes() -> None:
    wanted = TEXT.replace("return x", "return 2 * x")
    (first, *_) = asked({wanted + "\n": 0.8, TEXT + "\n": 0.2}).candidates
    assert TEXT[: first.start] + first.text + TEXT[first.end :] == wanted
    assert first.text.strip() == "return 2 * x"


def test_no_edit_is_reported_with_its_reason() -> None:
    found = asked({TEXT + "\n": 0.8, TEXT.replace("1", "2") + "\n": 0.2}, min_tokens=0)
    assert (found.candidates, found.reason) == ((), "The model would change nothing here.")


def test_the_last_rewrites_as_drafts_change_nothing() -> None:
    """The document has nothing to copy from, so that the first answer takes a pass a token."""
    edits = [TEXT.replace("return x", new) for new in ("if not x: yield None", "raise NoSuchKey")]
    weights = {TEXT + "\n": 0.2, edits[0] + "\n": 0.5, edits[1] + "\n": 0.3}
    model = model_of(weights, REQUEST)
    first, later = (predict(model, replace(REQUEST, candidates=3), Clock()) for _ in range(2))
    assert len(first.candidates) == 2
    assert later.candidates == tuple(
        replace(each, steps=again.steps)
        for each, again in zip(first.candidates, later.candidates, strict=True)
    )
    assert later.stats.denoise_steps < first.stats.denoise_steps / 2


@pytest.mark.parametrize(
    ("likely", "unlikely", "best"),
    [(0.85, 0.05, 0), (0.5, 0.4, 0), (0.4, 0.5, 1)],  # far behind; side by side, either way round
)
def test_an_unlikely_branch_waits_and_the_best_stays(
    likely: float, unlikely: float, best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    edits = [REGION.replace("b = 2", "bravo = two"), REGION.replace("e = 5", "echo = five")]
    weights = {REGION: 0.1, edits[0]: likely, edits[1]: unlikely}
    budget = replace(HIGH, beside=1.0)
    waiting = rewritten(Answers(weights), budget=budget)
    monkeypatch.setattr(next_edit, "BEHIND", math.inf)
    together = rewritten(Answers(weights), budget=budget)
    assert texts(waiting)[0] == texts(together)[0] == edits[best]
    assert (edits[1] in texts(waiting)) == (unlikely > 0.1), "it is not written to its end"


def test_a_branch_goes_on_where_the_first_falls_behind() -> None:
    """The likeliest beginning goes on in many ways, of which none is likely."""
    many = {REGION.replace("b = 2", f"b = x{last}"): 0.085 for last in "123456789"}
    single = REGION.replace("e = 5", "e = five")
    weights = {REGION: 0.135, single: 0.1, **many}
    found = rewritten(Answers(weights), budget=replace(HIGH, beside=1.0))
    assert texts(found)[0] == single


def test_late_branches_stop_where_something_is_known() -> None:
    wanted = REGION.replace("e = 5", "e = five times as many")
    rule = RuleText(tuple(ids(REGION.replace("a = 1", "a = x"))), 0.9, "repeat")
    weights = {REGION: 0.1, wanted: 0.3, REGION.replace("a = 1", "a = x"): 0.6}
    assert wanted not in texts(rewritten(Answers(weights), rules=[rule], late=True))
    assert wanted in texts(rewritten(Answers(weights), rules=[rule]))


def test_branches_of_a_graph_equal_texts_read_alone(tmp_path: Path) -> None:
    config = replace(BASE, vocab=len(VOCAB), verifier="ar", adapter="all")
    store(config, "fp32", tmp_path)
    backend = OnnxBackend(tmp_path, "CPU", threads=1)
    brief = Brief(config, VOCAB, plan_for("high"), AnswerLimits(256, 1))
    sequence = backend.open(512)
    prompt = [*ids("some context "), SPECIAL]
    sequence.extend(np.asarray(prompt[:-1], np.int64))
    region = ids("x = 1\ny = 2\n")
    run = Passes(sequence, lambda: False)
    wanted = [tuple(ids(text)) for text in ("x = 1\ny = 3\n", "x = 2\ny = 2\n", "y = 2\n")]
    rules = [RuleText(text, 0.9, "repeat") for text in wanted]
    found = rewrite(run, [prompt[-1], *region], rules, brief, HIGH, lambda: False)
    scored = {draft.text: draft.confidence.total for draft in found if draft.family}
    for text in wanted:
        tokens = [*text, END]
        sequence.truncate(len(prompt) - 1)
        out = sequence.score(np.asarray([prompt[-1], *tokens], np.int64))
        whole = b"".join(VOCAB[token] for token in text).decode()
        assert scored[whole] == pytest.approx(float(out.target_logprob[:-1].sum()), abs=1e-3)
    backend.close()
