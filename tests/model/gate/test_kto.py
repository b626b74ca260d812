"""The chance that a candidate is kept, and KTO of the policy that shows it, by worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from redraft.model.gate.kto import (
    Floats,
    LabelledOutcomes,
    Objective,
    Prior,
    divergence,
    fit_chance,
    fit_kto,
    logit,
    loss_of,
    shows,
    sigmoid,
    slope_of,
    usual,
)

WIDE = 100.0


def outcomes(
    rows: Floats, kept: list[float], weight: list[float] | None = None
) -> LabelledOutcomes:
    count = len(kept)
    return LabelledOutcomes(
        rows, np.array(kept), np.ones(count) if weight is None else np.array(weight)
    )


def groups(chances: dict[float, float], each: int = 200) -> LabelledOutcomes:
    """Return ``each`` candidates for each value of one feature, of which that share is kept."""
    rows, kept = [], []
    for value, chance in chances.items():
        rows += [[1.0, value]] * each
        kept += [1.0] * round(each * chance) + [0.0] * (each - round(each * chance))
    return outcomes(np.array(rows), kept)


def drawn(seed: int, count: int = 60) -> LabelledOutcomes:
    rng = np.random.default_rng(seed)
    rows = np.column_stack([np.ones(count), rng.normal(size=(count, 3))])
    kept = (rng.random(count) < 0.4).astype(float)
    return LabelledOutcomes(rows, kept, rng.uniform(0.1, 1.0, count))


def test_with_a_flat_prior_the_chance_is_the_share() -> None:
    prior = Prior(np.zeros(1), np.full(1, 1e6))
    found = fit_chance(outcomes(np.ones((8, 1)), [1, 1, 0, 0, 0, 0, 0, 0]), prior)
    assert sigmoid(found.mean)[0] == pytest.approx(0.25, abs=1e-4)
    # Curvature of n outcomes: n p (1 - p), here 8 * 0.25 * 0.75 = 1.5.
    assert found.variance[0] == pytest.approx(1 / 1.5, rel=1e-3)
    weighted = fit_chance(outcomes(np.ones((2, 1)), [1, 0], [3.0, 1.0]), prior)
    assert sigmoid(weighted.mean)[0] == pytest.approx(0.75, abs=1e-4)


def test_without_outcomes_the_prior_stays() -> None:
    prior = Prior(np.array([-1.0, 0.5]), np.array([0.25, 0.1]))
    found = fit_chance(outcomes(np.zeros((0, 2)), []), prior)
    assert found.mean == pytest.approx(prior.mean)
    assert found.variance == pytest.approx(prior.variance)


def test_a_weight_bound_to_be_positive_becomes_zero() -> None:
    seen = groups({-1.0: 0.8, 1.0: 0.2})
    prior = Prior(np.zeros(2), np.full(2, WIDE))
    assert fit_chance(seen, prior).mean[1] < -1
    bound = fit_chance(seen, prior, np.array([False, True])).mean
    assert bound[1] == 0
    assert sigmoid(bound)[0] == pytest.approx(0.5, abs=0.01)


def test_what_is_all_kept_leaves_the_weights_finite() -> None:
    found = fit_chance(groups({0.0: 1.0, 1.0: 1.0}), Prior(np.zeros(2), np.ones(2)))
    assert np.isfinite(found.mean).all()
    assert 0.9 < sigmoid(found.mean[:1])[0] < 1


def test_the_loss_of_one_outcome_by_hand() -> None:
    """Check a worked example.

    t = 1/4; at w = logit(1/4) the policy shows with 1/2, at w = 0 with 3/4. r = log(3/2), z = 0:
    σ(log 1.5) = 1.5 / 2.5 = 0.6.
    """
    want = Objective(3.0)
    reference, weights = np.array([logit(0.25)]), np.zeros(1)
    row = np.ones((1, 1))
    assert shows(row, reference, 0.25) == pytest.approx([0.5])
    assert shows(row, weights, 0.25) == pytest.approx([0.75])
    kept, lost = outcomes(row, [1]), outcomes(row, [0])
    assert loss_of(kept, weights, reference, 0.0, want) == pytest.approx(0.75 * 0.4)
    assert loss_of(lost, weights, reference, 0.0, want) == pytest.approx(0.25 * 0.6)


def test_the_divergence_by_hand() -> None:
    """KL(3/4 ‖ 1/2) = 3/4 log(3/2) + 1/4 log(1/2)."""
    found = divergence(np.array([0.75, 0.5]), np.array([0.5, 0.5]))
    assert found == pytest.approx([0.75 * np.log(1.5) + 0.25 * np.log(0.5), 0.0])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("beta", [1.0, 3.0])
def test_the_slope_is_that_of_finite_differences(seed: int, beta: float) -> None:
    seen, want = drawn(seed), Objective(3.0, beta)
    rng = np.random.default_rng(seed + 10)
    reference, weights = rng.normal(size=4) / 2, rng.normal(size=4)
    z = usual(seen, weights, reference, want)
    slope = slope_of(seen, weights, reference, z, want)
    for at in range(4):
        by = np.zeros(4)
        by[at] = 1e-5
        up, down = (loss_of(seen, weights + s * by, reference, z, want) for s in (1, -1))
        assert slope[at] == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("ratio", [1.0, 3.0, 9.0])
def test_candidates_kept_above_the_ratio_are_shown(ratio: float) -> None:
    """3 : 1 shows above 25 %. The reference cannot tell the candidates apart."""
    want = Objective(ratio, most_kl=0.5)
    above, below = want.threshold + 0.06, want.threshold - 0.06
    seen = groups({1.0: above, -1.0: below})
    reference = Prior(np.array([logit(want.threshold), 0.0]), np.full(2, 4.0))
    tuned = fit_kto(seen, reference, want)
    showing = shows(np.array([[1.0, 1.0], [1.0, -1.0]]), tuned.weights, want.threshold)
    assert showing[0] > 0.5 > showing[1]


def test_agreeing_outcomes_do_not_move_the_reference() -> None:
    """Showing is worth as much as hiding if the share that is kept equals the threshold."""
    want = Objective(3.0)
    reference = Prior(np.array([logit(0.25), 0.0]), np.full(2, 4.0))
    tuned = fit_kto(groups({-1.0: 0.25, 1.0: 0.25}), reference, want)
    assert tuned.weights == pytest.approx(reference.mean, abs=1e-6)
    assert tuned.kl == pytest.approx(0.0, abs=1e-9)


def test_right_decisions_of_the_reference_are_kept() -> None:
    want = Objective(3.0)
    seen = groups({2.0: 0.9, -2.0: 0.02})
    reference = Prior(np.array([logit(0.25), 1.0]), np.full(2, 1.0))
    tuned = fit_kto(seen, reference, want)
    before, after = (
        shows(seen.rows, weights, 0.25) > 0.5 for weights in (reference.mean, tuned.weights)
    )
    assert (before == after).all()
    assert tuned.loss < loss_of(seen, reference.mean, reference.mean, 0.0, want)


def test_it_goes_no_further_than_allowed() -> None:
    seen = groups({-1.0: 0.9, 1.0: 0.9})
    reference = Prior(np.array([-3.0, 0.0]), np.full(2, WIDE))
    near, far = (fit_kto(seen, reference, Objective(3.0, most_kl=most)) for most in (0.01, 0.05))
    assert 0 < near.kl <= 0.01 + 1e-9
    assert near.kl < far.kl <= 0.05 + 1e-9
    assert near.weights[0] > -3.0


def test_a_weight_that_may_not_be_negative_stays_above() -> None:
    seen = groups({-1.0: 0.6, 1.0: 0.05})
    reference = Prior(np.array([logit(0.25), 0.1]), np.full(2, WIDE))
    want = Objective(3.0, most_kl=1.0)
    assert fit_kto(seen, reference, want).weights[1] < -0.1
    assert fit_kto(seen, reference, want, np.array([False, True])).weights[1] >= 0
