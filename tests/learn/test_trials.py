"""How many trials: the law, its mean, and what the best of them costs, worked out exactly."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from tacit.errors import ParameterError
from tacit.learn.trials import DISTRIBUTIONS, TrialCount
from tacit.sampling.bits import ReplayBits


def chances(trials: TrialCount, most: int) -> np.ndarray:
    """P(K = k) for k = 1 .. most."""
    k = np.arange(1, most + 1)
    q = math.exp(-1 / float(trials.scale))
    return (1 - q) * q ** (k - 1) if trials.shape == 1 else q**k / (k * -math.log(1 - q))


def published(law: np.ndarray, trials: TrialCount) -> np.ndarray:
    """The law of the best outcome, where outcome i of a trial has chance law[i] and score i.

    The best of k trials is at most i with chance P(<= i)^k. 1,500 terms leave out e^-20 at a mean of fifteen.
    """
    many = chances(trials, 1500)
    at_most = np.minimum(np.cumsum(law), 1)
    whole = np.array([(many * x ** np.arange(1, 1501)).sum() for x in at_most])
    return np.diff(whole, prepend=0.0)


def gap(one: np.ndarray, other: np.ndarray, epsilon: float) -> float:
    """The least delta for which the two laws are (epsilon, delta)-close, both ways."""
    ways = [np.maximum(p - math.exp(epsilon) * q, 0).sum() for p, q in ((one, other), (other, one))]
    return float(max(ways))


@pytest.mark.parametrize("law", DISTRIBUTIONS)
@pytest.mark.parametrize("mean", [1.5, 3, 10, 40])
def test_the_mean_is_the_one_asked_for(law, mean):
    trials = TrialCount.about(mean, law)
    known = float((chances(trials, 20_000) * np.arange(1, 20_001)).sum())
    assert known == pytest.approx(mean, rel=1e-6)
    assert known <= trials.mean


@pytest.mark.slow
@pytest.mark.parametrize("law", DISTRIBUTIONS)
def test_draws_have_the_law(law, full):
    trials = TrialCount.about(5, law)
    count = 200_000 if full else 4_000
    bits = ReplayBits(f"trials {law}".encode())
    drawn = np.array([trials.draw(bits) for _ in range(count)])
    observed = np.bincount(np.minimum(drawn, 13), minlength=14)[1:]

    def far(known: TrialCount) -> float:
        expected = chances(known, 12) * count
        expected = np.append(expected, count - expected.sum())
        return float(((observed - expected) ** 2 / expected).sum())

    critical = stats.chi2.isf(1e-9, 12)
    assert far(trials) < critical
    assert far(TrialCount.about(6.5, law)) > critical  # power: a mean that is 30 % larger is told apart
    assert far(TrialCount.about(5, "geometric" if law == "logarithmic" else "logarithmic")) > critical


laws = st.lists(st.floats(0.001, 1), min_size=2, max_size=8)


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(
    laws,
    st.floats(0.01, 2),
    st.randoms(use_true_random=False),
    st.sampled_from(sorted(DISTRIBUTIONS)),
    st.floats(1.2, 15),
)
def test_the_best_of_pure_trials_costs_its_factor(weights, epsilon, chosen, law, mean):
    # p* is p times factors in [e^-(e/2), e^(e/2)], made a law again: within e^e of p.
    p = np.array(weights) / sum(weights)
    other = p * np.array([math.exp(epsilon * (chosen.random() - 0.5)) for _ in weights])
    other /= other.sum()
    assert np.abs(np.log(p / other)).max() <= epsilon + 1e-12
    trials = TrialCount.about(mean, law)
    assert gap(published(p, trials), published(other, trials), trials.factor * epsilon) <= 1e-12


@pytest.mark.parametrize(("law", "factor"), [("logarithmic", 2), ("geometric", 3)])
def test_the_factor_is_reached(law, factor):
    # A rare best outcome, e^e times likelier beside the neighbor, and many trials: the log ratio is close to factor e
    # for the outcome just below it, which is as likely as e^-e times the neighbor's.
    epsilon, trials = 0.1, TrialCount.about(3_000, law)
    assert trials.factor == factor
    rare = 0.05
    p = np.array([1 - rare - 1e-9, 1e-9, rare])
    other = np.array(
        [1 - rare * math.exp(epsilon) - 1e-9 * math.exp(-epsilon), 1e-9 * math.exp(-epsilon), rare * math.exp(epsilon)]
    )
    q = math.exp(-1 / float(trials.scale))

    def slope(x: float) -> float:
        return (1 - q * x) ** -(1 + trials.shape)  # f' up to a constant

    ratio = math.log(p[1] * slope(p[:2].sum()) / (other[1] * slope(other[:2].sum())))
    assert 0.95 * factor * epsilon <= ratio <= factor * epsilon


@pytest.mark.parametrize("law", DISTRIBUTIONS)
@pytest.mark.parametrize("where", ["best", "worst"])
def test_a_delta_is_multiplied_by_the_mean(law, where):
    # With probability d a trial says outright which side it is on, by an outcome that the other never has.
    epsilon, d, trials = 0.3, 1e-4, TrialCount.about(8, law)
    base, moved = np.array([0.2, 0.5, 0.3]), np.array([0.25, 0.4, 0.35])
    assert np.abs(np.log(base / moved)).max() <= epsilon
    sure = ([d, 0.0], [0.0, d])
    one, other = (
        np.concatenate([told, (1 - d) * law_] if where == "worst" else [(1 - d) * law_, told])
        for told, law_ in zip(sure, (base, moved), strict=True)
    )
    found = gap(published(one, trials), published(other, trials), trials.factor * epsilon)
    assert found <= d * float(trials.mean)
    if where == "best":
        assert found >= 0.99 * d * float(trials.mean)  # the bound is what it costs


def test_bad_numbers_are_errors():
    with pytest.raises(ParameterError, match="trials: must be between"):
        TrialCount.about(1)
    with pytest.raises(ParameterError, match="distribution: there is no 'poisson'"):
        TrialCount.about(5, "poisson")
    assert TrialCount(1, Fraction(10)).mean >= 1 / (1 - math.exp(-0.1))
