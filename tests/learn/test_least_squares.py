"""Regressors of sums that are released once: their solutions by other ways, and what they promise."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.utils.estimator_checks import check_estimator
from tests.support.counts import FULL, some
from tests.support.learning import WEIGHTED, calibrate

from tacit.accounting import epsilon_delta
from tacit.audit.claim import Claim
from tacit.audit.statistical import audit
from tacit.errors import ParameterError
from tacit.learn import ElasticNet, Lasso, LinearRegression, PrivateSearchCV, Ridge
from tacit.learn.losses import HuberLoss
from tacit.learn.noise import GridGaussian
from tacit.learn.penalized_sums import PenalizedSums, minimize_quadratic
from tacit.learn.problem import RiskMinimization
from tacit.learn.sums import QuantizedRows
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

RNG = np.random.default_rng(3)
ROWS = RNG.uniform(-1, 1, size=(3000, 5))
TARGET = np.clip(0.6 * ROWS[:, 0] - 0.2 * ROWS[:, 1] + 0.1 + 0.05 * RNG.normal(size=3000), -1, 1)
PUBLIC = {"bounds": (-1, 1), "target_bounds": (-1, 1), "rows": 3000, "scaling": "bounds"}
KINDS = [LinearRegression, Lasso, ElasticNet]


def replayed(seed=b"sums"):
    return partial(ReplayBits, seed)


@pytest.mark.parametrize(
    ("kind", "own", "peer"),
    [
        (LinearRegression, {}, linear_model.LinearRegression()),
        (Lasso, {"alpha": 0.03}, linear_model.Lasso(alpha=0.03, tol=1e-10)),
        (ElasticNet, {"alpha": 0.05}, linear_model.ElasticNet(alpha=0.05, tol=1e-10)),
        (ElasticNet, {"alpha": 0.05, "l1_ratio": 0.9}, linear_model.ElasticNet(alpha=0.05, l1_ratio=0.9, tol=1e-10)),
    ],
    ids=str,
)
def test_without_noise_to_speak_of_it_is_scikit_learns_model(kind, own, peer):
    # At epsilon 10^8 what is left is the grid of rows and targets, 2^-20 of their length.
    model = kind(10**8, 1e-6, **own, **PUBLIC, bits=replayed()).fit(ROWS, TARGET)
    peer.fit(ROWS, TARGET)
    assert model.coef_ == pytest.approx(peer.coef_, abs=1e-4)
    assert model.intercept_ == pytest.approx(peer.intercept_, abs=1e-4)
    assert (model.coef_ == 0).tolist() == (peer.coef_ == 0).tolist()


def test_other_units_give_the_same_model():
    one = Lasso(2, 1e-6, **PUBLIC, bits=replayed()).fit(ROWS, TARGET)
    wide = {**PUBLIC, "bounds": (-100, 100), "target_bounds": (-7, 7)}
    other = Lasso(2, 1e-6, **wide, bits=replayed()).fit(100 * ROWS, 7 * TARGET)
    assert other.coef_ * 100 / 7 == pytest.approx(one.coef_)
    assert other.alpha_ == one.alpha_


def solve_by_signs(matrix, pull, first, second):
    """The minimizer, by trying every choice of signs and zeros, each of which leaves linear equations."""
    best, least = None, math.inf
    for signs in map(np.array, itertools.product((-1.0, 0.0, 1.0), repeat=len(pull))):
        kept = signs != 0
        found = np.zeros(len(pull))
        bent = matrix[np.ix_(kept, kept)] + np.diag(second[kept])
        found[kept] = np.linalg.solve(bent, (pull - first * signs)[kept]) if kept.any() else 0.0
        value = found @ matrix @ found / 2 - pull @ found + first @ np.abs(found) + second @ found**2 / 2
        if np.all(found[kept] * signs[kept] >= 0) and value < least:
            best, least = found, value
    return best


@pytest.mark.slow
def test_coordinate_descent_finds_the_minimizer():
    for seed in range(40):
        draw = np.random.default_rng(seed)
        root = draw.normal(size=(4, 4))
        matrix, pull = root @ root.T + 0.1 * np.eye(4), draw.normal(scale=3, size=4)
        first, second = draw.uniform(0, 3, 4), draw.uniform(0, 1, 4) * (seed % 2)
        found = minimize_quadratic(matrix, pull, first, second)
        assert found == pytest.approx(solve_by_signs(matrix, pull, first, second), abs=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_cost_is_that_of_ridge_by_sums_whatever_the_penalty_is(kind):
    ridge = Ridge(1, 1e-6, method="newton", **PUBLIC).plan(5)
    found = [kind(1, 1e-6, **PUBLIC).plan(5)]
    if kind is not LinearRegression:
        found.append(kind(1, 1e-6, alpha=9.0, **PUBLIC).plan(5))
    assert {str(plan.privacy_loss) for plan in found} == {str(ridge.privacy_loss)}
    assert epsilon_delta.delta(found[0].privacy_loss, 1.0) <= 1e-6 * 1.002  # the accountant's grid


def test_penalties_are_applied_to_the_same_released_sums():
    # With the same bits the noise is the same, so a penalty of next to nothing leaves the model without one.
    plain = LinearRegression(1, 1e-6, **PUBLIC, bits=replayed()).fit(ROWS, TARGET)
    least = Lasso(1, 1e-6, alpha=1e-12, **PUBLIC, bits=replayed()).fit(ROWS, TARGET)
    assert least.coef_ == pytest.approx(plain.coef_, abs=1e-6)
    assert Lasso(1, 1e-6, alpha=50, **PUBLIC, bits=replayed()).fit(ROWS, TARGET).coef_.tolist() == [0] * 5


@pytest.mark.slow
def test_by_default_noise_alone_leaves_few_weights():
    # Two columns in a hundred of noise are beyond sqrt(2 ln(12)) = 2.23 deviations: 2.6 %; of 100 weights 2.6.
    zero = np.zeros(3000)
    found = [Lasso(1, 1e-6, **PUBLIC, bits=replayed(bytes([seed]))).fit(ROWS, zero).coef_ for seed in range(20)]
    assert np.count_nonzero(found) <= 12  # the probability of more is below 1e-5
    learned = Lasso(1, 1e-6, **PUBLIC, bits=replayed()).fit(ROWS, TARGET)
    assert learned.coef_[0] > 0.3 and learned.score(ROWS, TARGET) > 0.6


@pytest.mark.slow
def test_directions_that_noise_hides_are_shortened_and_none_is_divided_by_noise():
    # Two columns that are the same: the normal equations have no single solution, and what noise makes of them has.
    twins = np.column_stack([ROWS[:, 0], ROWS[:, 0]])
    for seed in range(20):
        model = LinearRegression(1, 1e-6, **PUBLIC, bits=replayed(bytes([seed]))).fit(twins, TARGET)
        assert np.abs(model.coef_).max() < 2 and model.coef_.sum() == pytest.approx(0.6, abs=0.15)


@pytest.mark.parametrize("kind", KINDS)
def test_a_delta_of_zero_is_refused_and_the_fix_works(kind):
    with pytest.raises(ParameterError, match="delta: ") as caught:
        kind(1, 0, **PUBLIC).plan(5)
    assert caught.value.fix.startswith("delta=1e-9")
    assert kind(1, delta=1e-9, **PUBLIC).plan(5).guarantee.delta == Fraction(1, 10**9)


@pytest.mark.parametrize(
    ("own", "says"),
    [({"alpha": 0}, "alpha"), ({"alpha": -1}, "alpha"), ({"alpha": "1"}, "alpha"), ({"l1_ratio": 1.5}, "l1_ratio")],
    ids=str,
)
def test_penalties_out_of_range_are_named(own, says):
    with pytest.raises(ParameterError, match=f"{says}: ") as caught:
        ElasticNet(1, 1e-6, **own, **PUBLIC).plan(5)
    assert caught.value.fix


def test_a_search_chooses_among_penalties():
    model = Lasso(bounds=(-1, 1), target_bounds=(-1, 1), rows=3000)
    search = PrivateSearchCV(model, {"alpha": [1e-3, 10.0]}, epsilon=20, trials=8, bits=replayed())
    assert search.fit(ROWS, TARGET).best_params_ == {"alpha": 1e-3}


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_the_sums_move_by_what_the_noise_is_for(neighbors):
    # Every pair of rows on a grid: (upper triangle/its deviation, X^T y/its own) moves by at most 1/relative of all.
    facts = {"loss": HuberLoss(1.0), "norm": 1.0, "features": 2, "rows": 3, "neighbors": neighbors}
    sums = calibrate(PenalizedSums, Fraction(1), Fraction(1, 10), **facts).sums
    points = [(0.0, 0.0), (1.0, 0.0), (0.0, -1.0), (0.6, 0.8), (-0.6, 0.8), (0.5, 0.5)]
    rows = [(point, y) for point in points for y in (-1.0, 0.0, 0.5, 1.0)]

    def measure(row):
        table = QuantizedRows.of(np.array([row[0]]), 1.0)
        gram, pull = table.gram().astype(float) / 2**40, table.pull(np.array([row[1]]), 1.0).astype(float) / 2**40
        deviation = float(sums.second.sigma)
        entries = [gram[0, 0], gram[1, 1], gram[0, 1] * math.sqrt(2)]
        return np.array(entries) / deviation, pull / float(sums.noise.sigma)

    found = [measure(row) for row in rows]
    zero = (np.zeros(3), np.zeros(2))
    pairs = [(one, zero) for one in found] if neighbors is Neighbors.ADD_REMOVE else itertools.combinations(found, 2)
    moves = [[float(np.linalg.norm(one - other)) for one, other in zip(*pair, strict=True)] for pair in pairs]
    most = 1 / float(sums.second.relative), 1 / float(sums.noise.relative)
    for place in range(2):
        assert max(move[place] for move in moves) <= most[place]
        assert max(move[place] for move in moves) > 0.9 * most[place]


@pytest.mark.slow
def test_the_claim_stands_and_less_noise_is_caught():
    # No rows against one, (1, 1), with next to all of the budget on X^T y, which it moves by one: as in test_audits.py.
    facts = {"loss": HuberLoss(1.0), "norm": 1.0, "features": 1, "rows": 4, "neighbors": Neighbors.ADD_REMOVE}
    ready = calibrate(PenalizedSums, Fraction(1), Fraction(1, 10), **facts)
    sums = type(ready.sums)
    sharp = replace(ready, sums=calibrate(sums, Fraction(1), Fraction(1, 10), **facts, share=Fraction(1, 1000)), l1=0.1)
    less = 2 if FULL else 4
    noise = sharp.sums.noise
    second = replace(sharp.sums.second, sigma=sharp.sums.second.sigma / less)
    weak = GridGaussian(noise.sigma / less, noise.sensitivity, noise.coordinates)
    bits = ReplayBits(b"audit")

    def fit_with(used):
        def fit(rows):
            features, labels = np.array([x for x, _ in rows]).reshape(-1, 1), np.array([y for _, y in rows])
            problem = RiskMinimization(features, labels, HuberLoss(1.0), 1.0, Neighbors.ADD_REMOVE, 4, used.penalty)
            return float(used.fit(problem, bits)[0])

        return fit

    claim, pair = Claim.epsilon(Fraction(1), Fraction(1, 10)), ([], [(1.0, 1.0)])
    count, sure = 20_000 if FULL else 100, 1 - 1e-9
    for used in (ready, sharp):
        assert epsilon_delta.epsilon(used.privacy_loss, 0.1) <= 1
        assert not audit(fit_with(used), *pair, claim, samples=count, confidence=sure).is_refuted
    broken = replace(sharp, sums=replace(sharp.sums, noise=weak, second=second))
    assert audit(fit_with(broken), *pair, claim, samples=4_000 if FULL else 400, confidence=sure).is_refuted


@pytest.mark.slow
@pytest.mark.parametrize("kind", some(KINDS, 2))  # a lasso is an elastic net
def test_scikit_learns_own_checks_hold(kind):
    model = kind(1000, rows=100, bounds=(-5, 5), target_bounds=(-10, 10), bits=replayed(b"checks"))
    found = check_estimator(model, expected_failed_checks=WEIGHTED, on_skip=None, on_fail=None)
    assert len(found) > 40
    assert [check["check_name"] for check in found if check["status"] == "failed"] == []
    assert {check["check_name"] for check in found if check["status"] == "xfail"} == set(WEIGHTED)


@pytest.mark.parametrize("kind", [Lasso, ElasticNet])
def test_a_penalty_that_would_leave_the_range_of_doubles_is_refused(kind):
    with pytest.raises(ParameterError, match="alpha") as caught:
        kind(epsilon=1, delta=1e-6, alpha=1e300, **PUBLIC).plan(5)
    assert caught.value.fix == "alpha=1.0"
