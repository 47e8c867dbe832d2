"""The staircase: its guarantee from the exact law, where it wins and where it does not, and the draws."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL, OFF, enough, some

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.staircase import Staircase
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import ReplayBits

ALARM = 1e-11  # of each of four tests of fit


@pytest.mark.parametrize(("sensitivity", "inner"), [(1, 1), (2, 1), (2, 2), (5, 1), (5, 3), (5, 5)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(1), Fraction(4)], ids=str)
def test_the_largest_log_ratio_is_epsilon(epsilon, sensitivity, inner):
    noise = Staircase(epsilon, sensitivity, inner)
    assert noise.loss() == PureDp(epsilon)
    with working_precision(150):
        law = {k: noise.law(k).log() for k in range(-6 * sensitivity, 6 * sensitivity + 1)}
        slack = arb(2) ** -100
        for move in range(1, sensitivity + 1):
            worst = max(abs(law[k] - law[k + move]) for k in law if k + move in law)
            assert abs(worst - to_interval(epsilon)) < slack
        # one step further loses twice as much
        further = max(law[k] - law[k + sensitivity + 1] for k in law if k + sensitivity + 1 in law)
        assert abs(further - 2 * to_interval(epsilon)) < slack


def sums(noise: Staircase, power: int) -> float:
    """The sum of |k|^power P(k), to e^-50."""
    last = int(55 * noise.sensitivity / float(noise.epsilon)) + 4 * noise.sensitivity
    with working_precision(80):
        return math.fsum((2 if k else 1) * k**power * float(noise.law(k)) for k in range(last))


@pytest.mark.parametrize(("sensitivity", "inner"), [(1, 1), (2, 1), (5, 3), (5, 5)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(4)], ids=str)
def test_the_law_is_a_law(epsilon, sensitivity, inner):
    assert sums(Staircase(epsilon, sensitivity, inner), 0) == pytest.approx(1, abs=1e-12)


def laplace_size(epsilon: float, sensitivity: int) -> float:
    """E|k| of discrete Laplace noise: 2q/(1 - q^2)."""
    q = math.exp(-epsilon / sensitivity)
    return 2 * q / (1 - q * q)


def test_it_is_the_discrete_laplace_law_where_one_step_is_all():
    assert Staircase.calibrated(1, 1).inner == 1
    assert sums(Staircase.calibrated(1, 1), 1) == pytest.approx(laplace_size(1, 1))


@pytest.mark.slow
@pytest.mark.parametrize("sensitivity", [2, 3, 10, 100])
@pytest.mark.parametrize("epsilon", [0.5, 1, 2, 4, 8])
def test_it_wins_wherever_more_than_one_step_is_possible(sensitivity, epsilon):
    assert sums(Staircase.calibrated(epsilon, sensitivity), 1) < laplace_size(epsilon, sensitivity)


@pytest.mark.slow
def test_by_how_much():
    # E|k| at a sensitivity of 100, staircase against discrete Laplace
    found = {e: round(sums(Staircase.calibrated(e, 100), 1) / laplace_size(e, 100), 3) for e in (0.5, 1, 2, 4)}
    assert found == {0.5: 0.990, 1: 0.960, 2: 0.851, 4: 0.551}


def test_where_it_loses():
    # The width at 95 % for epsilon 4 and sensitivity 100: the first step down comes late.
    assert Staircase.calibrated(4, 100).error(0.95) == 77
    assert Laplace.calibrated(Fraction(4), 100).error(Fraction(95, 100)) == 75
    # and at epsilon 2 it wins: 127 against 150
    assert Staircase.calibrated(2, 100).error(0.95) == 127
    assert Laplace.calibrated(Fraction(2), 100).error(Fraction(95, 100)) == 150


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "sensitivity"), some(product([Fraction(1, 2), Fraction(2), Fraction(5)], [20, 2, 7]), 2, 1), ids=str
)
def test_the_calibrated_step_is_the_best(epsilon, sensitivity):
    sizes = [sums(Staircase(epsilon, sensitivity, inner), 1) for inner in range(1, sensitivity + 1)]
    best = Staircase.calibrated(epsilon, sensitivity).inner
    assert sizes[best - 1] == pytest.approx(min(sizes), rel=1e-12)


@pytest.mark.parametrize("noise", [Staircase(1, 1, 1), Staircase(Fraction(1, 2), 5, 2), Staircase(4, 10, 2)])
@pytest.mark.parametrize(
    "confidence", [Fraction(1, 100), Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**9)], ids=str
)
def test_error_is_the_least_that_covers(noise, confidence):
    w = noise.error(confidence)
    with working_precision(120):
        covered = [sum((noise.law(k) for k in range(-v, v + 1)), arb(0)) for v in (w - 1, w)]
        assert covered[1] >= to_interval(confidence)
        assert w == 0 or covered[0] < to_interval(confidence)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "inner"), some([(1, 1, 1), (1, 5, 2), (2, 10, 3), (Fraction(1, 2), 4, 4)], 2, 1)
)
def test_draws_have_the_law(epsilon, sensitivity, inner):
    noise = Staircase(epsilon, sensitivity, inner)
    bits, count = ReplayBits(f"stairs {sensitivity} {inner}".encode()), enough(30_000)
    drawn = Counter(noise.release(0, bits) for _ in range(count))
    edge = noise.error(Fraction(98, 100) if FULL else Fraction(9, 10))

    def p_value(law):
        with working_precision(80):
            expected = [float(law.law(k)) * count for k in range(-edge, edge + 1)]
        observed = [drawn[k] for k in range(-edge, edge + 1)]
        expected.append(count - math.fsum(expected))
        observed.append(count - sum(observed))
        assert min(expected) > 20
        statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
        return float(arb(statistic / 2).gamma_upper((len(expected) - 1) / 2, regularized=1))

    assert p_value(noise) > ALARM
    assert p_value(Staircase(noise.epsilon * (1 + OFF), sensitivity, inner)) < ALARM
    assert p_value(Staircase(noise.epsilon * (1 - OFF), sensitivity, inner)) < ALARM


def test_large_numbers_lose_nothing():
    assert Staircase(1000, 3, 1).release(2**70 + 1, ReplayBits(b"large")) == 2**70 + 1
    wide = Staircase.calibrated(1, 2**100)
    assert abs(wide.release(0, ReplayBits(b"wide"))) > 2**80
    assert 2**100 < wide.error(0.95) < 2**103


NUMBERS = [0, -1, math.nan, math.inf, -math.inf, "1", True, None, 1j]


@settings(deadline=None)
@given(st.sampled_from(NUMBERS))
def test_bad_numbers(value):
    with pytest.raises(ParameterError, match="epsilon: "):
        Staircase.calibrated(value, 2)
    with pytest.raises(ParameterError, match="epsilon: "):
        Staircase(value, 2, 1)
    with pytest.raises(ParameterError, match="sensitivity: "):
        Staircase.calibrated(1, value)
    with pytest.raises(ParameterError, match="inner: "):
        Staircase(1, 2, value)
    with pytest.raises(ParameterError, match="confidence: "):
        Staircase(1, 2, 1).error(value)


@settings(deadline=None)
@given(st.sampled_from([math.nan, math.inf, 1.0, "1", True, None, [1]]))
def test_bad_values(value):
    with pytest.raises(ParameterError, match="value: "):
        Staircase(1, 2, 1).release(value, ReplayBits(b""))


def test_other_mistakes():
    with pytest.raises(ParameterError, match="inner: must be at most the sensitivity"):
        Staircase(1, 2, 3)
    with pytest.raises(ParameterError, match="sensitivity: is beyond"):
        Staircase.calibrated(1, 2**201)
