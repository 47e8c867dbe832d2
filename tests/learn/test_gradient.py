"""Noisy gradients: what they cost, what a neighbor moves, what law comes out, and that they learn."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, ndtr
from scipy.stats import chi2, kstwo
from tests.support.counts import FULL
from tests.support.learning import calibrate

from tacit.accounting import epsilon_delta
from tacit.errors import ParameterError
from tacit.learn.gradient import NoisyGradientDescent, NoisyGradients, default_clip
from tacit.learn.losses import Array, ConvexLoss, HuberLoss, LogisticLoss, MultinomialLoss, SmoothedHinge
from tacit.learn.noise import GridGaussian
from tacit.learn.problem import RiskMinimization
from tacit.learn.sums import EXPONENT, round_weights
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ADD, SWAP = Neighbors.ADD_REMOVE, Neighbors.REPLACE
LOSSES: list[ConvexLoss] = [LogisticLoss(), SmoothedHinge(), HuberLoss(1.0), MultinomialLoss(3)]
FITS, LARGER = (6_000, 1.1) if FULL else (800, 1.25)


def named(loss: ConvexLoss) -> str:
    return type(loss).__name__


def data(loss: ConvexLoss, count: int = 4000, width: int = 4, seed: int = 1) -> tuple[Array, Array]:
    """Rows of a length of at most one, and labels that depend on them."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(count, width))
    features /= np.maximum(1, np.linalg.norm(features, axis=1, keepdims=True))
    truth = generator.normal(size=(width, max(loss.outputs, 1))) * 4
    scores = features @ truth
    if isinstance(loss, MultinomialLoss):
        return features, np.argmax(scores + generator.gumbel(size=scores.shape), axis=1).astype(float)
    if isinstance(loss, HuberLoss):
        return features, np.clip(scores[:, 0] / 6 + generator.normal(size=count) / 20, -1, 1)
    return features, np.where(generator.uniform(size=count) < expit(scores[:, 0]), 1.0, -1.0)


def plan(
    loss: ConvexLoss, epsilon: float = 1.0, neighbors: Neighbors = ADD, width: int = 4, **knobs: Any
) -> NoisyGradientDescent:
    return calibrate(
        NoisyGradientDescent,
        Fraction(str(epsilon)),
        Fraction(1, 10**9),
        loss=loss,
        norm=1.0,
        features=width,
        rows=4000,
        neighbors=neighbors,
        **knobs,
    )


def posed(
    loss: ConvexLoss, method: NoisyGradientDescent, rows: Array, labels: Array, norm: float = 1.0
) -> RiskMinimization:
    return RiskMinimization(rows, labels, loss, norm, method.neighbors, 4000, method.penalty)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "loss", "neighbors"),
    [(0.1, LogisticLoss(), ADD), (1.0, MultinomialLoss(3), SWAP), (4.0, SmoothedHinge(), ADD)],
    ids=["little", "some", "much"],
)
def test_what_is_spent_is_what_was_planned(epsilon: float, loss: ConvexLoss, neighbors: Neighbors) -> None:
    method = plan(loss, epsilon, neighbors)
    assert 0.999 * epsilon <= epsilon_delta.epsilon(method.privacy_loss, 1e-9) <= epsilon


@pytest.mark.slow
def test_what_samples_cost_is_what_was_planned() -> None:
    method = plan(LogisticLoss(), 1.0, rate=Fraction(1, 20), steps=100)
    assert 0.97 <= epsilon_delta.epsilon(method.privacy_loss, 1e-9) <= 1.0
    # a step over a twentieth of the rows needs far less noise than one over all of them
    assert method.noise.sigma < plan(LogisticLoss(), 1.0, steps=100).noise.sigma / 5


@pytest.mark.slow
@settings(max_examples=30 if FULL else 12)
@given(st.integers(0, 2**32 - 1), st.sampled_from(LOSSES), st.sampled_from([0.1, 1.0, 30.0]))
def test_a_neighbor_moves_a_gradient_by_at_most_its_sensitivity(seed: int, loss: ConvexLoss, size: float) -> None:
    # exact sums, in units of norm cut: one row at most 1, a replacement at most 2
    method = plan(loss)
    features, labels = data(loss, 40, 4, seed)
    shape = (4,) if loss.outputs == 1 else (4, loss.outputs)
    weights = round_weights(np.random.default_rng(seed).normal(size=shape) * size)

    def total(rows: Array, known: Array) -> Array:
        pulls = NoisyGradients.of(posed(loss, method, rows, known), method.cut, method.noise, ADD)
        return pulls.rows.sum_of(pulls._factors(weights))

    whole = total(features, labels)
    assert _square(whole - total(features[1:], labels[1:])) <= 4**EXPONENT
    assert _square(total(features[1:], labels[1:]) - total(features[:-1], labels[:-1])) <= 4 * 4**EXPONENT


def test_the_sensitivity_is_reached() -> None:
    # a row of the norm on the wrong side by far, beside none: 2^40 units, and no less for its replacement's twice that
    method = plan(LogisticLoss(), width=1)
    sums = []
    for feature in (3.0, -3.0):
        problem = posed(LogisticLoss(), method, np.array([[feature]]), np.array([-1.0]), norm=3.0)
        pulls = NoisyGradients.of(problem, method.cut, method.noise, ADD)
        sums.append(int(pulls.rows.sum_of(pulls._factors(round_weights(np.array([feature * 9]))))[0]))
    assert 2**EXPONENT * 0.99999 <= abs(sums[0]) <= 2**EXPONENT
    assert abs(sums[0] - sums[1]) >= 2 * 2**EXPONENT * 0.99999


@pytest.mark.slow
def test_the_weight_of_one_dimension_has_its_claimed_law() -> None:
    # one step: w = -(sum + sigma z) norm cut/smooth. The squares add up to chi-square; false alarm 1e-9 on each side,
    # and a deviation off by a tenth is seen: 6.1 sqrt(2/6000) = 11 % < 21 %, and 1/1.21 - 1 = -17 %; with fewer fits
    # one off by a fourth: 6.1 sqrt(2/800) = 31 % < 56 %, and 1/1.56 - 1 = -36 %
    method = replace(plan(LogisticLoss(), width=1, steps=1), cut=0.75)
    rows, labels = np.array([[1.0], [0.5], [-0.25]]), np.array([1.0, 1.0, -1.0])
    problem = posed(LogisticLoss(), method, rows, labels)
    bits = ReplayBits(b"one dimension")
    found = np.array([method.fit(problem, bits)[0] for _ in range(FITS)])
    smooth = 0.25 * 4000 + method.penalty
    mean, deviation = (1.0 + 0.5 + 0.25) / 2 / smooth, float(method.noise.sigma) * 0.75 / smooth
    square = float(np.sum(((found - mean) / deviation) ** 2))
    low, high = chi2.ppf(1e-9, FITS), chi2.isf(1e-9, FITS)
    assert low < square < high
    assert square / LARGER**2 < low and square * LARGER**2 > high
    assert abs(found.mean() - mean) < 6.2 * deviation / math.sqrt(FITS)


def test_coordinates_that_no_row_speaks_of_are_pure_noise() -> None:
    # 40,000 of them at once, by Kolmogorov and Smirnov at 1e-9
    width = 40_000
    method = plan(LogisticLoss(), width=width, steps=1)
    found = np.sort(method.fit(posed(LogisticLoss(), method, np.zeros((2, width)), np.ones(2)), ReplayBits(b"silence")))
    deviation = float(method.noise.sigma) * method.cut / (0.25 * 4000 + method.penalty)
    limit = kstwo.ppf(1 - 1e-9, width)

    def far(factor: float) -> float:
        share = ndtr(found / (deviation * factor))
        return float(np.max(np.abs(share - (np.arange(width) + 0.5) / width)))

    assert far(1.0) < limit < min(far(1.1), far(1 / 1.1))


@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_the_order_of_rows_changes_no_bit_of_the_weights(loss: ConvexLoss) -> None:
    features, labels = data(loss)
    mixed = np.random.default_rng(3).permutation(len(labels))
    method = plan(loss, steps=5)
    one = method.fit(posed(loss, method, features, labels), ReplayBits(b"order"))
    other = method.fit(posed(loss, method, features[mixed], labels[mixed]), ReplayBits(b"order"))
    assert np.array_equal(one, other)


@pytest.mark.slow
@pytest.mark.parametrize("loss", LOSSES, ids=named)
def test_with_much_budget_it_finds_the_minimum(loss: ConvexLoss) -> None:
    features, labels = data(loss)
    method = plan(loss, 1000.0, penalty=4.0, steps=200)
    problem = posed(loss, method, features, labels)
    weights = method.fit(problem, ReplayBits(b"minimum"))
    assert weights.shape == problem.shape
    residuals = loss.residuals(features @ weights, labels)
    slope = features.T @ residuals + 4.0 * weights
    start = features.T @ loss.residuals(features @ (0 * weights), labels)
    assert np.linalg.norm(slope) < 0.02 * np.linalg.norm(start)


def test_samples_learn_too() -> None:
    features, labels = data(LogisticLoss())
    method = replace(plan(LogisticLoss(), 4.0, steps=40), rate=Fraction(1, 4))
    weights = method.fit(posed(LogisticLoss(), method, features, labels), ReplayBits(b"samples"))
    assert np.mean(np.sign(features @ weights) == labels) > 0.7


def test_the_cut_goes_from_a_half_to_the_slope_as_noise_vanishes() -> None:
    # unit = 100 is noise of length 1000, a thousandth of 10^6 rows: 1/2 + 1/2 1/(1 + 1000/1000) = 3/4
    cuts = [default_clip(LogisticLoss(), unit, 100, 10**6) for unit in (1e6, 100.0, 1.0, 1e-6)]
    assert cuts == sorted(cuts) and cuts[0] > 0.5 and cuts[1] == pytest.approx(0.75) and cuts[-1] > 0.999
    assert default_clip(SmoothedHinge(), 1e6, 100, 10**6) == 1.0


@pytest.mark.parametrize(
    ("knobs", "word"),
    [
        ({"penalty": 0.0}, "penalty"),
        ({"cut": 1.5}, "cut"),
        ({"cut": -1.0}, "cut"),
        ({"steps": 0}, "steps"),
        ({"rate": Fraction(2)}, "rate"),
        ({"rate": Fraction(1, 2), "neighbors": SWAP}, "add-remove"),
    ],
)
def test_bad_choices_are_refused(knobs: dict[str, Any], word: str) -> None:
    with pytest.raises(ParameterError, match=word):
        plan(LogisticLoss(), **knobs)


def test_a_problem_of_another_shape_or_relation_is_refused() -> None:
    method = plan(LogisticLoss())
    with pytest.raises(ParameterError, match="planned"):
        method.fit(posed(LogisticLoss(), method, np.zeros((3, 5)), np.ones(3)), ReplayBits(b""))
    other = replace(method, neighbors=SWAP, noise=GridGaussian(method.noise.sigma, Fraction(2), 4))
    with pytest.raises(ParameterError, match="planned"):
        other.fit(posed(LogisticLoss(), method, np.zeros((3, 4)), np.ones(3)), ReplayBits(b""))
    with pytest.raises(ParameterError, match="delta above 0"):
        calibrate(
            NoisyGradientDescent,
            Fraction(1),
            Fraction(0),
            loss=LogisticLoss(),
            norm=1.0,
            features=4,
            rows=4000,
            neighbors=ADD,
        )


def _square(moved: Array) -> int:
    return sum(int(value) ** 2 for value in moved.ravel())
