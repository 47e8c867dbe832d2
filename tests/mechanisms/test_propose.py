"""Propose, test, release: the guarantee from the exact law on all tiny data, the threshold, and the draws."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import OFF, enough, some

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.propose import ProposedMedian
from tacit.privacy.local import median_distance_to_bound
from tacit.privacy.loss import ApproximateDp
from tacit.sampling.bits import ReplayBits

ALARM = 1e-11  # of each of four tests of fit


def neighbors(data, upper):
    return {tuple(sorted([*data[:i], value, *data[i + 1 :]])) for i in range(len(data)) for value in range(upper + 1)}


@pytest.mark.parametrize(("rows", "upper", "bound"), [(1, 4, 1), (3, 4, 1), (3, 4, 2), (3, 4, 4), (5, 2, 1), (7, 2, 1)])
@pytest.mark.parametrize(
    ("test", "release", "delta"),
    [(1, 1, Fraction(1, 20)), (Fraction(1, 2), 2, Fraction(1, 1000)), (3, 1, Fraction(1, 4))],
)
def test_the_guarantee_on_all_tiny_data(rows, upper, bound, test, release, delta):
    # For all neighbors the sum over outputs of what P exceeds e^eps Q by, exactly.
    mechanism = ProposedMedian(0, upper, bound, test, release, delta)
    worst = arb(0)
    with working_precision(150):
        laws = {data: mechanism.law(data) for data in combinations_with_replacement(range(upper + 1), rows)}
        assert all(abs(sum(law.values()) - 1) < arb(2) ** -120 for law in laws.values())
        factor = to_interval(mechanism.loss().epsilon).exp()
        for data, law in laws.items():
            for other in neighbors(data, upper):
                excess = sum((max(arb(0), law[k] - factor * laws[other][k]) for k in law), arb(0))
                worst = max(worst, excess)
        assert worst <= to_interval(delta)
    if bound == upper:
        assert worst < 1e-30  # the bound is the global sensitivity: no delta is used


def test_without_the_test_the_bound_would_not_protect():
    # [0, 0, 4] and [0, 4, 4] have medians 0 and 4: Laplace noise for a bound of 1 loses 4 epsilon_release on them. With
    # the test their distance is 0 and nearly always nothing is shown.
    mechanism = ProposedMedian(0, 4, 1, 1, 1, 1e-6)
    assert [median_distance_to_bound(data, 0, 4, 1) for data in ([0, 0, 4], [0, 4, 4])] == [0, 0]
    with working_precision(100):
        assert mechanism.passes([0, 0, 4]) <= 1e-6


@pytest.mark.parametrize("test", [Fraction(1, 10), Fraction(1), Fraction(5)], ids=str)
@pytest.mark.parametrize("delta", [Fraction(1, 4), Fraction(1, 10**6), Fraction(1, 10**40)], ids=str)
def test_the_threshold_is_the_least_safe_one(test, delta):
    t = ProposedMedian(0, 1, 1, test, 1, delta).threshold()
    with working_precision(300):
        q = (-to_interval(test)).exp()
        assert q**t / (1 + q) <= to_interval(delta)
        assert q ** (t - 1) / (1 + q) > to_interval(delta)


def test_figures():
    # epsilon 1/2 for the test, delta 1e-6: 2 ln(1/(1.60653 * 1e-6)) = 26.68, so t = 27
    mechanism = ProposedMedian.calibrated(epsilon=1, delta=1e-6, lower=0, upper=100, bound=1)
    assert mechanism.threshold() == 27
    assert mechanism.loss() == ApproximateDp(Fraction(1), Fraction(1, 10**6))
    # Noise of scale 1/(1/2) = 2: within 6 at 95 %, where the global sensitivity would take 100/1 and 300.
    assert mechanism.error(0.95) == 6
    # 400 rows of 50 and 401 of 51: rank 401; 400 rows must go until the median can pass 51 by more than 1
    values = [50] * 400 + [51] * 401
    assert median_distance_to_bound(values, 0, 100, 1) == 400
    with working_precision(100):
        assert 1 - mechanism.passes(values) < 1e-25
    # 50s and 90s, half each: distance 0
    with working_precision(100):
        assert mechanism.passes([50] * 10 + [90] * 11) <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("values", some([[2] * 9, [2] * 7 + [0, 4]], 2, 1))
def test_draws_have_the_law(values):
    mechanism = ProposedMedian(0, 4, 1, Fraction(1), Fraction(1), Fraction(1, 20))
    bits, count = ReplayBits(f"propose {values}".encode()), enough(30_000)
    drawn = Counter(mechanism.release(values, bits) for _ in range(count))

    def p_value(stretch):
        with working_precision(100):
            law = ProposedMedian(0, 4, 1, stretch, stretch, Fraction(1, 20)).law(values)
            expected = {k: float(p) * count for k, p in law.items()}
        statistic = sum((drawn[k] - e) ** 2 / e for k, e in expected.items())
        return float(arb(statistic / 2).gamma_upper((len(expected) - 1) / 2, regularized=1))

    assert p_value(1) > ALARM
    assert p_value(1 + OFF) < ALARM
    assert p_value(1 - OFF) < ALARM


def test_large_values_lose_nothing():
    mechanism = ProposedMedian(0, 2**80, 1, 100, 100, 1e-6)
    assert mechanism.release([2**70 + 1] * 101, ReplayBits(b"large")) == 2**70 + 1


NUMBERS = [0, -1, math.nan, math.inf, -math.inf, "1", True, None, 1j]


@settings(deadline=None)
@given(st.sampled_from(NUMBERS))
def test_bad_numbers(value):
    with pytest.raises(ParameterError, match="epsilon: "):
        ProposedMedian.calibrated(value, 1e-6, 0, 1, 1)
    with pytest.raises(ParameterError, match="delta: "):
        ProposedMedian.calibrated(1, value, 0, 1, 1)
    with pytest.raises(ParameterError, match="bound: "):
        ProposedMedian.calibrated(1, 1e-6, 0, 1, value)
    with pytest.raises(ParameterError, match="epsilon_test: "):
        ProposedMedian(0, 1, 1, value, 1, 1e-6)
    with pytest.raises(ParameterError, match="epsilon_release: "):
        ProposedMedian(0, 1, 1, 1, value, 1e-6)
    with pytest.raises(ParameterError, match="confidence: "):
        ProposedMedian.calibrated(1, 1e-6, 0, 1, 1).error(value)


@settings(deadline=None)
@given(st.sampled_from([math.nan, math.inf, 1.0, "1", True, None]))
def test_bad_values(value):
    with pytest.raises(ParameterError, match="values: "):
        ProposedMedian.calibrated(1, 1e-6, 0, 1, 1).release([value], ReplayBits(b""))
    with pytest.raises(ParameterError, match="upper: "):
        ProposedMedian.calibrated(1, 1e-6, 0, value, 1)


def test_other_mistakes():
    with pytest.raises(ParameterError, match="upper: is below lower"):
        ProposedMedian.calibrated(1, 1e-6, 3, 1, 1)
    with pytest.raises(ParameterError, match="values: there are none"):
        ProposedMedian.calibrated(1, 1e-6, 0, 1, 1).release([], ReplayBits(b""))
