"""The exponential mechanism: the range of its loss, its law, its utility, its figures."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL, OFF, enough
from tests.support.statistics import chi_square

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.exponential import Exponential
from tacit.privacy.loss import BoundedRange
from tacit.sampling.bits import ReplayBits

MOVES = list(product([-1, 0, 1], repeat=3))


def losses(mechanism, one, other):
    """ln P(r)/P'(r) for each r, as intervals."""
    with working_precision(128):
        return [(p / q).log() for p, q in zip(mechanism.law(one), mechanism.law(other), strict=True)]


def width(ranges):
    with working_precision(128):
        return max(ranges, key=float) - min(ranges, key=float)


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(7, 2)], ids=str)
def test_every_loss_lies_in_a_range_of_epsilon(epsilon):
    # All moves of three scores by at most one: the loss ranges over at most epsilon, so it is at most epsilon too.
    pick, widest = Exponential(epsilon), 0.0
    with working_precision(128):
        limit = to_interval(epsilon) + arb(2) ** -100
    for one in [(0, 0, 0), (0, 1, 5), (3, 3, 0), (-2, 9, 9)]:
        for move in MOVES:
            found = losses(pick, one, [a + b for a, b in zip(one, move, strict=True)])
            assert width(found) <= limit
            assert all(abs(loss) <= limit for loss in found)
            widest = max(widest, float(width(found)))
    # Reached: one score rises and another falls, which makes factor * 2 = epsilon.
    assert widest == pytest.approx(float(epsilon), rel=1e-15)


def test_the_loss_comes_close_to_epsilon():
    # The last of two scores falls by 1 while the far better first rises by 1: factor (-1 - 1) = -epsilon, nearly.
    found = losses(Exponential(Fraction(1)), [20, 0], [21, -1])
    assert 0.9999 < float(found[1]) < 1


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(2)], ids=str)
def test_monotone_scores_need_half(epsilon):
    pick = Exponential(epsilon, monotone=True)
    assert pick.factor == epsilon
    with working_precision(128):
        limit = to_interval(epsilon) + arb(2) ** -100
    for one in [(0, 0, 0), (0, 1, 5), (3, 3, 0)]:
        for move in MOVES:
            found = losses(pick, one, [a + b for a, b in zip(one, move, strict=True)])
            if min(move) >= 0 or max(move) <= 0:
                assert width(found) <= limit
            elif min(move) == -1 and max(move) == 1:  # not monotone, so twice as much: the flag is a promise
                assert float(width(found)) == pytest.approx(2 * float(epsilon))


def test_sensitivity_divides():
    # Sensitivity 3: scores 0 and 6 weigh as 0 and 2 do at sensitivity 1.
    three, one = Exponential(Fraction(1), 3).law([0, 6]), Exponential(Fraction(1)).law([0, 2])
    assert all(a.overlaps(b) for a, b in zip(three, one, strict=True))
    # 1/(1 + e^-1) = 0.731059
    assert float(one[1]) == pytest.approx(0.7310585786, abs=1e-10)


def test_the_law_adds_up_and_knows_no_level():
    pick = Exponential(Fraction(1, 3))
    found = pick.law([5, -3, 12])
    assert sum(found[1:], found[0]).overlaps(arb(1))
    for a, b in zip(found, pick.law([10**60 + 5, 10**60 - 3, 10**60 + 12]), strict=True):
        assert a.overlaps(b)


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0, 2**53 + 1, *([-(10**40)] if FULL else [])])
def test_release_has_the_law(offset):
    # Factor 1/2, scores 0..6. p > 1e-11 for each of 3, so a false alarm in at most 3e-11.
    scores = [offset + score for score in (0, 3, 1, 6, 5, 2)]
    pick, bits = Exponential(Fraction(1)), ReplayBits(b"exponential %d" % offset)
    count = enough(12_000)
    seen = Counter(pick.release(scores, bits) for _ in range(count))
    observed = [seen[index] for index in range(6)]
    assert chi_square(observed, [count * float(p) for p in pick.law(scores)]) > 1e-11
    off = Exponential(1 + OFF).law(scores)
    assert chi_square(observed, [count * float(p) for p in off]) < 1e-9


@pytest.mark.parametrize("choices", [1, 2, 7])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(95, 100), 1 - Fraction(1, 10**6)], ids=str)
def test_error_is_the_least_that_holds(choices, confidence):
    pick = Exponential(Fraction(1), 2)

    def short(gap):  # the worst case: one best and all others at gap
        weight = (choices - 1) * math.exp(-gap / 4)
        return weight / (1 + weight)

    w = pick.error(choices, confidence)
    assert short(w + 1) <= 1 - confidence
    assert w == 0 or short(w) > 1 - confidence


@pytest.mark.parametrize("t", [0, 1, 3, 10])
@pytest.mark.parametrize("scores", [[0] * 9 + [40], [30] * 9 + [40], list(range(0, 50, 5)), [1, 1]], ids=str)
def test_the_utility_theorem(t, scores):
    # P[u <= OPT - (2 sensitivity/epsilon)(ln|R| + t)] <= e^-t
    pick = Exponential(Fraction(1, 2))
    edge = max(scores) - 4 * (math.log(len(scores)) + t)
    low = math.fsum(float(p) for p, score in zip(pick.law(scores), scores, strict=True) if score <= edge)
    assert low <= math.exp(-t)
    # 1 - e^-t is what `error` is asked for: its w is below that of the theorem
    if t:
        assert pick.error(len(scores), 1 - math.exp(-t)) <= 4 * (math.log(len(scores)) + t)


def test_pricing():
    # Valuations 10, 10, 500: revenue p * #{v >= p} is 30 at 10 and 500 at 500; sensitivity is the largest price.
    prices, values = [10, 500], [10, 10, 500]
    revenue = [p * sum(v >= p for v in values) for p in prices]
    assert revenue == [30, 500]
    # epsilon 1, monotone under add-remove: odds exp(470/500) = 2.56, so 500 with probability 0.719100
    assert float(Exponential(Fraction(1), 500, monotone=True).law(revenue)[1]) == pytest.approx(0.719100, abs=1e-6)


def test_the_loss_and_the_calibration():
    assert Exponential.calibrated(0.1, 3).loss() == BoundedRange(Fraction(1, 10))
    assert Exponential.calibrated(Decimal("0.1"), 3).factor == Fraction(1, 60)
    assert Exponential.calibrated(1, 0).sensitivity == 1
    assert Exponential.calibrated(np.float64(0.5), np.int64(2), monotone=True).factor == Fraction(1, 4)


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.floats(max_value=0), st.just(math.nan), st.just(math.inf), st.text(), st.booleans(), st.none()))
def test_no_such_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon: "):
        Exponential(epsilon)


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.integers(max_value=0), st.floats(), st.text(), st.booleans(), st.none()))
def test_no_such_sensitivity(sensitivity):
    with pytest.raises(ParameterError, match="sensitivity: "):
        Exponential(Fraction(1), sensitivity)


@pytest.mark.slow
@settings(deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.floats(), st.text(), st.booleans(), st.none(), st.just([1])), min_size=1))
def test_no_such_scores(scores):
    with pytest.raises(ParameterError, match="scores: "):
        Exponential(Fraction(1)).release(scores, ReplayBits(b""))


@pytest.mark.parametrize(
    "scores", [[], "12", b"12", 7, None, np.array([1.0, 2.0]), np.array([[1, 2]]), [2**513]], ids=repr
)
def test_no_list_of_scores(scores):
    with pytest.raises(ParameterError, match="scores: "):
        Exponential(Fraction(1)).release(scores, ReplayBits(b""))


@pytest.mark.parametrize("confidence", [0, 1, -0.5, 2, math.nan, math.inf, "0.5", True])
def test_no_such_confidence(confidence):
    with pytest.raises(ParameterError, match="confidence: "):
        Exponential(Fraction(1)).error(3, confidence)


@pytest.mark.parametrize("monotone", [1, 0, "yes", None])
def test_no_such_flag(monotone):
    with pytest.raises(ParameterError, match="monotone: "):
        Exponential(Fraction(1), 1, monotone)


def test_extremes():
    # The widest scores and the largest epsilon: no overflow, and the best is certain but for e^-(2^500).
    assert Exponential(Fraction(2**64)).release([-(2**512) + 1, 2**512 - 1], ReplayBits(b"wide")) == 1
    assert Exponential(Fraction(1, 10**300)).release([7], ReplayBits(b"one")) == 0
