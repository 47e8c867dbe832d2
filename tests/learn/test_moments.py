"""Least squares from noisy moments: the price, the sensitivity, the law and the solution."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chi2
from tests.support.counts import FULL
from tests.support.learning import calibrate

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError
from tacit.learn.losses import Array, HuberLoss, LogisticLoss
from tacit.learn.moments import SufficientStatistics
from tacit.learn.problem import RiskMinimization
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ADD, SWAP = Neighbors.ADD_REMOVE, Neighbors.REPLACE
FITS, LARGER = (9_000, 1.1) if FULL else (800, 1.25)


def plan(
    epsilon: float, width: int, rows: int, neighbors: Neighbors = ADD, penalty: float | None = None
) -> SufficientStatistics:
    return calibrate(
        SufficientStatistics,
        Fraction(str(epsilon)),
        Fraction(1, 10**9),
        loss=HuberLoss(2.0),
        norm=3.0,
        features=width,
        rows=rows,
        neighbors=neighbors,
        penalty=penalty,
    )


def data(count: int, width: int) -> tuple[Array, Array]:
    """Rows of a length of at most 3, and targets within 2."""
    generator = np.random.default_rng(2)
    features = generator.normal(size=(count, width))
    features *= 3 / np.maximum(3, np.linalg.norm(features, axis=1, keepdims=True))
    truth = generator.normal(size=width) / math.sqrt(width) / 2
    return features, np.clip(features @ truth + generator.normal(size=count) / 5, -2, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "neighbors"), [(0.1, ADD), (4.0, SWAP)])
def test_what_is_spent_is_what_was_planned(epsilon: float, neighbors: Neighbors) -> None:
    assert 0.999 * epsilon <= epsilon_delta.epsilon(plan(epsilon, 30, 1000, neighbors).privacy_loss, 1e-9) <= epsilon


def test_with_much_budget_it_is_ridge_regression() -> None:
    features, targets = data(5000, 6)
    method = plan(10_000, 6, 5000, penalty=5.0)
    found = method.fit(RiskMinimization(features, targets, HuberLoss(2.0), 3.0, ADD, 5000, 5.0), ReplayBits(b"ridge"))
    exact = np.linalg.solve(features.T @ features + 5.0 * np.eye(6), features.T @ targets)
    assert np.allclose(found, exact, atol=1e-3)


def test_it_learns_where_noise_leaves_room() -> None:
    features, targets = data(20_000, 10)
    method = plan(1.0, 10, 20_000)
    problem = RiskMinimization(features, targets, HuberLoss(2.0), 3.0, ADD, 20_000, method.penalty)
    found = method.fit(problem, ReplayBits(b"learns"))
    assert np.mean((features @ found - targets) ** 2) < 0.25 * np.mean(targets**2)


@pytest.mark.slow
def test_the_weight_of_one_dimension_has_its_claimed_law() -> None:
    # 512 rows of the norm with targets of zero: w = sigma z B/(norm (n + ...)), where the noise of the second moment,
    # 2 % of n, adds 1e-3 to the variance at most. The squares add up to chi-square; false alarm 1e-9 on each side,
    # and a deviation off by a tenth, or by a fourth with fewer fits, is seen
    rows = 512
    method = plan(1.0, 1, rows)
    problem = RiskMinimization(np.full((rows, 1), 3.0), np.zeros(rows), HuberLoss(2.0), 3.0, ADD, rows, method.penalty)
    bits = ReplayBits(b"one dimension")
    found = np.array([method.fit(problem, bits)[0] for _ in range(FITS)])
    deviation = float(method.noise.sigma) * 2.0 / (3.0 * (rows + method.penalty / 9.0))
    square = float(np.sum((found / deviation) ** 2))
    low, high = chi2.ppf(1e-9, FITS), chi2.isf(1e-9, FITS)
    assert low < square < high
    assert square / LARGER**2 < low and square * LARGER**2 > high


def test_the_order_of_rows_changes_no_bit_of_the_weights() -> None:
    features, targets = data(9000, 5)
    mixed = np.random.default_rng(3).permutation(9000)
    method = plan(1.0, 5, 9000)
    one, other = (
        method.fit(RiskMinimization(*part, HuberLoss(2.0), 3.0, ADD, 9000, method.penalty), ReplayBits(b"order"))
        for part in ((features, targets), (features[mixed], targets[mixed]))
    )
    assert np.array_equal(one, other)


def test_other_losses_and_problems_are_refused() -> None:
    with pytest.raises(ParameterError, match="squared loss"):
        calibrate(
            SufficientStatistics,
            Fraction(1),
            Fraction(1, 10**9),
            loss=LogisticLoss(),
            norm=1.0,
            features=4,
            rows=4000,
            neighbors=ADD,
        )
    method = plan(1.0, 4, 10)
    with pytest.raises(ParameterError, match="planned"):
        method.fit(RiskMinimization(np.zeros((2, 5)), np.zeros(2), HuberLoss(2.0), 3.0, ADD, 2, 1.0), ReplayBits(b""))


def test_rows_that_say_nothing_are_predicted_by_a_constant() -> None:
    # 200 rows of 20 columns at epsilon 1: the least penalty predicts noise, and the chosen one next to nothing.
    generator = np.random.default_rng(6)
    features = generator.normal(size=(200, 20)) / math.sqrt(20) * 3
    targets = generator.normal(size=200).clip(-2, 2)
    method = plan(1, 20, 200)
    problem = RiskMinimization(features, targets, HuberLoss(2.0), 3.0, ADD, 200, method.penalty)
    plain, tuned = (
        float(np.mean([np.mean((features @ fit(problem, ReplayBits(str(n).encode()))) ** 2) for n in range(20)]))
        for fit in (method.fit, method.fit_tuned)
    )
    assert tuned < 0.1 * plain


def test_a_clear_signal_keeps_its_penalty() -> None:
    # 20,000 rows at epsilon 10: the same weights as the public rule's, from the same bits
    features, targets = data(20_000, 6)
    method = plan(10, 6, 20_000)
    problem = RiskMinimization(features, targets, HuberLoss(2.0), 3.0, ADD, 20_000, method.penalty)
    plain, tuned = (fit(problem, ReplayBits(b"clear")) for fit in (method.fit, method.fit_tuned))
    assert np.linalg.norm(plain - tuned) < 0.01 * np.linalg.norm(plain)
