"""The personal gate: it follows a taste, ignores noise, and is used where it gains."""

from __future__ import annotations

import math

import numpy as np
import pytest
from redraft.model.gate.features import FEATURES
from redraft.model.gate.fit_own import LEAST, Sample, fit_own, fit_own_head
from redraft.model.gate.gate import Gate, Head, Weighed
from redraft.model.gate.kto import Objective
from redraft.model.records import Task

WANT = Objective(3.0)
WANTS = dict.fromkeys(FEATURES, WANT)
#: Weighs the mean probability of a token and how many lines are written; the latter not at all.
HEAD = Head(
    ("mean", "lines"), (0.0, 0.9), (1.5, 0.5), (-1.2, 1.6, 0.0), (-1.2, 1.6, 0.0), (0.05,) * 3
)
SHIPPED = Gate("shipped", {"infill": HEAD, "next_edit": HEAD})


def candidate(mean: float, lines: int) -> dict[str, float]:
    """Return the features of a candidate."""
    return {"mean": math.log(mean / (1 - mean)), "lines": math.log1p(lines)}


def weighed(gate: Gate, features: dict[str, float]) -> Weighed:
    head = gate.heads["infill"]
    return head.weigh(head.row(features))


def seen(seed: int, count: int, hates_long: bool) -> list[Sample]:
    """Return the events of a user who keeps edits as often as the shipped gate predicts.

    A user with a taste never keeps more than two lines.
    """
    rng = np.random.default_rng(seed)
    found = []
    for at in range(count):
        made = candidate(float(rng.uniform(0.2, 0.98)), int(rng.integers(1, 7)))
        kept = rng.random() < weighed(SHIPPED, made).chance
        if hates_long and made["lines"] > math.log1p(2):
            kept = False
        found.append(Sample(made, bool(kept), group=f"session {at // 20}"))
    return found


def shares(gate: Gate) -> tuple[float, float]:
    """Return which of a short and a long edit are shown, both likely."""
    means = np.linspace(0.5, 0.95, 40)
    short, long = (
        np.mean([weighed(gate, candidate(m, n)).score >= WANT.threshold for m in means])
        for n in (1, 6)
    )
    return float(short), float(long)


@pytest.mark.parametrize("seed", range(4))
def test_it_learns_from_200_events_to_avoid_long_ones(seed: int) -> None:
    own, verdict = fit_own(SHIPPED, {"infill": seen(seed, 200, hates_long=True)}, WANTS)
    assert verdict.taken, verdict.sentence
    assert verdict.own > verdict.shipped
    assert shares(SHIPPED)[0] == shares(SHIPPED)[1]
    short, long = shares(own)
    assert long < short - 0.3


@pytest.mark.parametrize("seed", range(4))
def test_it_stays_where_there_is_nothing_but_noise(seed: int) -> None:
    own, verdict = fit_own(SHIPPED, {"infill": seen(seed, 200, hates_long=False)}, WANTS)
    assert not verdict.taken, verdict.sentence
    assert "the shipped one is in use" in verdict.sentence
    short, long = shares(own)
    assert abs(short - long) < 0.3


@pytest.mark.parametrize("count", [0, 1, LEAST - 1])
def test_with_too_few_events_the_shipped_one_stays(count: int) -> None:
    samples: dict[Task, list[Sample]] = {"infill": seen(0, count, hates_long=True)}
    own, verdict = fit_own(SHIPPED, samples, WANTS)
    assert own.heads == SHIPPED.heads
    assert not verdict.taken
    assert f"yours, {count} outcomes" in verdict.sentence
    assert (f"infill: {count} are too few" in verdict.sentence) is (count > 0)
    assert verdict.sentence.endswith("the shipped one is in use")


@pytest.mark.parametrize(("kept", "said"), [(True, "all of 300"), (False, "none of 300")])
def test_all_kept_or_none_teaches_nothing(kept: bool, said: str) -> None:
    samples = [Sample(each.features, kept, group=each.group) for each in seen(1, 300, False)]
    own, verdict = fit_own(SHIPPED, {"infill": samples}, WANTS)
    assert own.heads == SHIPPED.heads
    assert not verdict.taken
    assert f"infill: {said} were right" in verdict.sentence


@pytest.mark.parametrize("kept", [True, False])
def test_hardly_any_or_nearly_all_kept_stays_bounded(kept: bool) -> None:
    samples = [
        Sample(each.features, kept is (at % 20 > 0), group=each.group)
        for at, each in enumerate(seen(1, 300, False))
    ]
    moved = fit_own_head(HEAD, samples, WANT)
    assert np.isfinite([*moved.chance, *moved.policy]).all()
    before, after = (
        sum(head.weigh(head.row(each.features)).score >= WANT.threshold for each in samples)
        for head in (HEAD, moved)
    )
    assert 0.5 * before - 1 <= after <= 1.5 * before + 1


def test_what_is_long_ago_counts_less() -> None:
    """First a user who keeps nothing, then one who keeps all; and the other way round."""
    old, new = seen(2, 400, False), seen(3, 400, False)

    def as_told(samples: list[Sample], kept: bool) -> list[Sample]:
        return [Sample(each.features, kept, group=each.group) for each in samples]

    rising = fit_own_head(HEAD, as_told(old, False) + as_told(new, True), WANT)
    falling = fit_own_head(HEAD, as_told(old, True) + as_told(new, False), WANT)
    assert rising.chance[0] > falling.chance[0]
