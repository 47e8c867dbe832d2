"""The curve of objective perturbation, against the exact densities of the minimizer in one dimension."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mpmath import mp
from scipy import integrate, special, stats
from tests.support.counts import FULL, some

from tacit.errors import ParameterError
from tacit.learn import profile
from tacit.learn.losses import HuberLoss, LogisticLoss, MultinomialLoss, SmoothedHinge
from tacit.privacy.unit import Neighbors

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
MANY = 1000 if FULL else 40
SINGLE = [LogisticLoss(), LogisticLoss(0.6), SmoothedHinge(), SmoothedHinge(2.0), HuberLoss(0.5)]


def real_gaussian_delta(epsilon, sigma):
    """Phi(m/2 - e/m) - e^e Phi(-m/2 - e/m) with m = 1/sigma (Balle and Wang 2018), to 60 digits."""
    with mp.workdps(60):
        half, shift = mp.mpf(1) / (2 * mp.mpf(sigma)), mp.mpf(epsilon) * mp.mpf(sigma)
        return float(mp.ncdf(half - shift) - mp.exp(epsilon) * mp.ncdf(-half - shift))


def masses(loss, rows, penalty, noise, edges):
    """The probabilities of cells of w, for rows (x, y, how many), exactly: w <= t where b >= -J'(t)."""
    slope = penalty * edges
    for x, y, count in rows:
        slope = slope + count * x * loss.residuals(x * edges, np.full_like(edges, y))
    low, high = slope[:-1] / noise, slope[1:] / noise
    return np.where(low > 0, special.ndtr(-low) - special.ndtr(-high), special.ndtr(high) - special.ndtr(low))


def stick(one, other, epsilon):
    """The larger of the two hockey sticks of two laws on the same cells."""
    factor = math.exp(epsilon)
    return max(np.maximum(one - factor * other, 0).sum(), np.maximum(other - factor * one, 0).sum())


def exact(loss, one, other, penalty, noise, epsilon):
    """delta(epsilon) of the minimizers for two small databases, told by cells: from below, and almost exact."""
    push = max(sum(abs(x) * count for x, _, count in rows) for rows in (one, other)) * loss.slope
    reach = (push + 10 * noise) / penalty
    edges = np.unique(np.concatenate([np.linspace(-reach, reach, 8001), np.linspace(-30, 30, 4001)]))
    laws = [masses(loss, rows, penalty, noise, edges) for rows in (one, other)]
    for law in laws:
        assert law.sum() == pytest.approx(1, abs=1e-12)
    return stick(*laws, epsilon)


def claimed(loss, penalty, noise, epsilon, neighbors=ADD, norm=1.0):
    return profile.compute_delta(epsilon, noise, loss=loss, norm=norm, penalty=penalty, neighbors=neighbors)


ROWS = st.lists(
    st.tuples(st.floats(-1, 1), st.sampled_from([-1.0, 1.0]), st.integers(1, 30)), max_size=3
)  # x, y and how often


@pytest.mark.slow
@given(
    ROWS,
    st.sampled_from(SINGLE),
    st.floats(-1, 1),
    st.sampled_from([0.05, 0.3, 1.0, 5.0]),
    st.sampled_from([0.5, 1.0, 3.0]),
    st.sampled_from([0.1, 0.5, 1.0, 2.0]),
)
@settings(max_examples=MANY, deadline=None)
def test_the_exact_delta_of_one_row_more_is_below_the_claim(rows, loss, x, penalty, noise, epsilon):
    rows = [(a, b / 2 if isinstance(loss, HuberLoss) else b, c) for a, b, c in rows]
    more = [*rows, (x, 0.5 if isinstance(loss, HuberLoss) else 1.0, 1)]
    bound = claimed(loss, penalty, noise, epsilon)
    assert exact(loss, rows, more, penalty, noise, epsilon) <= bound + 1e-13


@pytest.mark.slow
@given(ROWS, st.sampled_from(SINGLE), st.floats(-1, 1), st.floats(-1, 1), st.sampled_from([0.3, 3.0]))
@settings(max_examples=MANY // 4, deadline=None)
def test_the_exact_delta_of_a_row_replaced_is_below_the_claim(rows, loss, x, other, penalty):
    label = 0.5 if isinstance(loss, HuberLoss) else 1.0
    rows = [(a, b * label, c) for a, b, c in rows]
    one, two = [*rows, (x, label, 1)], [*rows, (other, -label, 1)]
    for epsilon, noise in ((0.5, 2.0), (1.0, 1.0)):
        bound = claimed(loss, penalty, noise, epsilon, REPLACE)
        assert exact(loss, one, two, penalty, noise, epsilon) <= bound + 1e-13


# Many rows of a small x move the minimizer far to one side and bend nothing: the row in question is then saturated.
def pushed(penalty, to=20.0, x=1e-3):
    return (x, -1.0, 2 * to * penalty / x)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "penalty"), [(0.5, 2.5), (1.0, 1.0), (1.0, 10.0), (2.0, 0.5)])
def test_for_the_logistic_loss_the_claim_is_reached(epsilon, penalty):
    # from a penalty of R^2/epsilon on, the determinant is free: the claim is that of one noisy sum, and is exact
    loss = LogisticLoss()
    noise = profile.calibrate_deviation(epsilon, 1e-3, loss=loss, norm=1.0, penalty=penalty, neighbors=ADD)
    far = pushed(penalty)
    worst = exact(loss, [far], [far, (1.0, 1.0, 1)], penalty, noise, epsilon)
    assert worst == pytest.approx(1e-3, rel=2e-4)
    assert real_gaussian_delta(epsilon, noise) == pytest.approx(1e-3, rel=1e-4)


@pytest.mark.slow
def test_replacing_a_row_reaches_the_claim_within_a_few_percent():
    # a large penalty: the determinant is small, and at w near 0 both rows of the hinge have the slope 1
    hinge, penalty, epsilon = SmoothedHinge(0.5), 300.0, 1.0
    noise = profile.calibrate_deviation(epsilon, 1e-5, loss=hinge, norm=1.0, penalty=penalty, neighbors=REPLACE)
    one, two = [(1.0, 1.0, 1)], [(1.0, -1.0, 1)]
    worst = exact(hinge, one, two, penalty, noise, epsilon)
    assert 0.85e-5 < worst <= 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_half_the_noise_is_caught(epsilon):
    loss, penalty = LogisticLoss(), 2.0
    noise = profile.calibrate_deviation(epsilon, 1e-4, loss=loss, norm=1.0, penalty=penalty, neighbors=ADD)
    far = pushed(penalty)
    assert exact(loss, [far], [far, (1.0, 1.0, 1)], penalty, noise / 2, epsilon) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize(("penalty", "noise", "epsilon"), [(0.3, 2.0, 1.0), (1.0, 1.5, 1.0), (4.0, 3.0, 0.3)])
def test_three_classes_are_below_the_claim(penalty, noise, epsilon):
    # for d = 1 the weights are three numbers; along (1, 1, 1) nothing depends on data, so two dimensions are left
    loss = MultinomialLoss(3)
    basis = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2], [6]])
    side = np.linspace(-12 * noise / penalty - 3, 12 * noise / penalty + 3, 221)
    grid = np.stack(np.meshgrid(side, side, indexing="ij"), -1).reshape(-1, 2)

    def law(rows):
        slope, bend = penalty * grid, {(0, 0): penalty, (0, 1): 0.0, (1, 1): penalty}
        for x, y, count in rows:
            labels, scores = np.full(len(grid), float(y)), x * grid @ basis
            p = loss.curvature(scores, labels)
            slope = slope + count * x * loss.residuals(scores, labels) @ basis.T
            means = p @ basis.T
            for a, b in bend:  # the covariance of two rows of the basis under p
                bend[a, b] = bend[a, b] + count * x * x * (p @ (basis[a] * basis[b]) - means[:, a] * means[:, b])
        determinant = bend[0, 0] * bend[1, 1] - bend[0, 1] ** 2
        return np.exp(-np.sum(slope**2, 1) / (2 * noise**2)) / (2 * math.pi * noise**2) * determinant

    cell = (side[1] - side[0]) ** 2
    bound = claimed(loss, penalty, noise, epsilon)
    for rows in ([], [(1.0, 1, 3)], [(-0.5, 0, 2), (1.0, 2, 1)]):
        one, other = law(rows), law([*rows, (1.0, 0, 1)])
        assert one.sum() * cell == pytest.approx(1, abs=1e-3)
        assert stick(one * cell, other * cell, epsilon) <= bound * (1 + 1e-4) + 1e-7  # a quadrature


@pytest.mark.parametrize("mu", [0.01, 0.3, 1.0, 5.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 4.0])
def test_without_a_determinant_the_stick_is_that_of_a_gaussian(mu, epsilon):
    found = profile.hockey_stick_bound(epsilon, mu, np.zeros_like)
    expected = real_gaussian_delta(epsilon, 1 / mu)
    assert expected * (1 - 1e-9) <= found <= expected * (1 + 2e-3) + 1e-14


@pytest.mark.parametrize("flat", [0.1, 0.4, 2.0])
def test_a_flat_determinant_shifts_the_curve(flat):
    # above it, delta(epsilon - h) of the Gaussian; below it, 1 - e^x + e^x delta(0) at x = epsilon - h
    for epsilon in (0.05, 0.5, 3.0):
        found = profile.hockey_stick_bound(epsilon, 0.5, lambda shares: np.full(np.shape(shares), flat))
        x = epsilon - flat
        expected = real_gaussian_delta(x, 2.0) if x >= 0 else -math.expm1(x) + math.exp(x) * real_gaussian_delta(0, 2.0)
        assert expected * (1 - 1e-9) <= found <= expected * (1 + 2e-3) + 1e-14


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loss", "point"),
    some(
        product(
            [LogisticLoss(), LogisticLoss(0.6), MultinomialLoss(4)],
            [(1.0, 0.3, 5.0), (0.1, 0.03, 0.2), (3.0, 1.0, 9.0)],
        ),
        4,
    ),
    ids=repr,
)
def test_the_stick_is_just_above_its_integral(loss, point):
    epsilon, mu, ratio = point
    shares = np.linspace(0, 1, 4001)
    heights = loss.volume(shares, ratio)

    def inside(z):
        psi = np.max(shares * (mu**2 / 2 + mu * z) + heights)
        return max(0.0, -math.expm1(min(0.0, epsilon - psi))) * stats.norm.pdf(z)

    at = np.linspace(-9, 12, 1501)
    expected = integrate.simpson([inside(z) for z in at], x=at)
    found = profile.hockey_stick_bound(epsilon, mu, lambda shares: loss.volume(shares, ratio))
    assert expected * (1 - 1e-3) <= found <= expected * (1 + 5e-3) + 1e-13


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "delta", "loss", "neighbors"),
    some(
        [
            (0.1, 1e-9, LogisticLoss(), ADD),
            (1.0, 1e-5, LogisticLoss(0.7), REPLACE),
            (8.0, 1e-9, LogisticLoss(), REPLACE),
            (1.0, 1e-5, SmoothedHinge(), ADD),
            (0.1, 1e-9, HuberLoss(1.0), ADD),
            (8.0, 1e-9, MultinomialLoss(5), ADD),
            (1.0, 1e-9, MultinomialLoss(5), REPLACE),
        ],
        2,
        1,
    ),
)
def test_the_noise_is_the_least_for_its_price(epsilon, delta, loss, neighbors):
    penalty = profile.smallest_penalty(epsilon / 4, loss=loss, norm=2.0)
    given_ = {"loss": loss, "norm": 2.0, "penalty": penalty, "neighbors": neighbors}
    noise = profile.calibrate_deviation(epsilon, delta, **given_)
    assert (
        profile.compute_delta(epsilon, noise, **given_)
        <= delta
        < profile.compute_delta(epsilon, noise * 0.9999, **given_)
    )


@pytest.mark.parametrize(
    "loss", [LogisticLoss(), LogisticLoss(0.7), SmoothedHinge(), HuberLoss(1.0), MultinomialLoss(5)], ids=repr
)
def test_the_curve_falls_with_epsilon_noise_and_penalty(loss):
    base = claimed(loss, 1.0, 2.0, 1.0)
    assert claimed(loss, 1.0, 2.0, 1.2) < base and claimed(loss, 1.0, 2.5, 1.0) < base
    assert claimed(loss, 2.0, 2.0, 1.0) <= base <= claimed(loss, 1.0, 2.0, 1.0, REPLACE)


@pytest.mark.slow
def test_a_penalty_of_the_square_of_the_norm_over_epsilon_makes_the_logistic_determinant_free():
    # the literature adds ln(1 + R^2/(4 penalty)) = 0.22 to epsilon = 1 here: 22 % more noise, or more
    free = profile.calibrate_deviation(1.0, 1e-6, loss=LogisticLoss(), norm=3.0, penalty=9.0, neighbors=ADD)
    alone = profile.calibrate_deviation(1.0, 1e-6, loss=LogisticLoss(), norm=3.0, penalty=1e9, neighbors=ADD)
    assert free == pytest.approx(alone, rel=1e-4)
    hinge = profile.calibrate_deviation(
        1.0, 1e-6, loss=SmoothedHinge(2.0), norm=3.0, penalty=9.0, neighbors=ADD
    )  # the same bend
    assert hinge > 1.2 * free


@pytest.mark.slow
def test_under_replace_the_logistic_determinant_is_free_from_four_times_that_penalty_on():
    free = profile.calibrate_deviation(1.0, 1e-6, loss=LogisticLoss(), norm=3.0, penalty=36.0, neighbors=REPLACE)
    alone = profile.calibrate_deviation(1.0, 1e-6, loss=LogisticLoss(), norm=6.0, penalty=1e9, neighbors=ADD)
    assert free == pytest.approx(alone, rel=1e-3)


def test_the_least_penalty_is_that_of_its_formula():
    # ln(1 + R^2/(4 penalty)) = room
    found = profile.smallest_penalty(0.25, loss=LogisticLoss(), norm=2.0)
    assert found == pytest.approx(1 / math.expm1(0.25), rel=1e-3)


def test_a_penalty_that_is_too_small_is_refused_with_one_that_is_not():
    with pytest.raises(ParameterError, match="too small") as refused:
        profile.calibrate_deviation(0.1, 1e-6, loss=SmoothedHinge(), norm=1.0, penalty=1.0, neighbors=ADD)
    enough = float(refused.value.fix.split()[1])
    assert profile.calibrate_deviation(0.1, 1e-6, loss=SmoothedHinge(), norm=1.0, penalty=enough, neighbors=ADD) > 0
