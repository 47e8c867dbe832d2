"""Report noisy max: its theorem from the exact law, with ties; its tie rule; its error."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bits import Ones
from tests.support.counts import OFF, enough, some
from tests.support.statistics import chi_square

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.noisy_max import NoisyMax
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import ReplayBits


def by_enumeration(scores, scale, reach):
    """The law from its definition: every noise, the first of the largest."""
    q = math.exp(-1 / float(scale))
    chance = {k: (1 - q) / (1 + q) * q ** abs(k) for k in range(-reach, reach + 1)}
    found = [0.0] * len(scores)
    for noise in product(chance, repeat=len(scores)):
        sums = [score + k for score, k in zip(scores, noise, strict=True)]
        found[sums.index(max(sums))] += math.prod(chance[k] for k in noise)
    return found


@pytest.mark.parametrize("scores", [[4], [0, 0], [0, 2, 1], [3, 0, 3]], ids=str)
def test_the_law_is_the_definition(scores):
    # epsilon 4: scale 1/2, so q = e^-2; noise beyond 14 has probability 3 * 2 e^-30 = 6e-13
    assert [float(p) for p in NoisyMax(Fraction(4)).law(scores)] == pytest.approx(
        by_enumeration(scores, Fraction(1, 2), 14), abs=1e-11
    )


def test_the_law_adds_up():
    law = NoisyMax(Fraction(1)).law([5, 0, 3, 3, -2])
    assert all(float(p.rad()) < 2.0**-100 for p in law)
    with working_precision(160):
        assert sum(law[1:], law[0]).overlaps(arb(1))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("monotone", "epsilon"), some(product([False, True], [Fraction(1, 2), Fraction(1), Fraction(3)]), 2), ids=str
)
def test_no_ratio_passes_e_to_the_epsilon(monotone, epsilon):
    # All moves of three scores by at most one, ties among them.
    pick = NoisyMax(epsilon, monotone=monotone)
    laws = {}

    def law(scores):
        if scores not in laws:
            laws[scores] = pick.law(scores, digits=64)
        return laws[scores]

    with working_precision(128):
        bound = to_interval(epsilon).exp()
        for one in [(0, 0, 0), (0, 1, 3), (2, 2, 0)]:
            for move in product([-1, 0, 1], repeat=3):
                if any(move) and not (monotone and min(move) * max(move) < 0):
                    other = tuple(a + b for a, b in zip(one, move, strict=True))
                    assert all(p < bound * q for p, q in zip(law(one), law(other), strict=True))
                    assert all(q < bound * p for p, q in zip(law(one), law(other), strict=True))


def loss_of_last(pick, one, other):
    return math.log(float(pick.law(one)[-1]) / float(pick.law(other)[-1]))


def test_the_bound_is_approached_and_the_flag_is_a_promise():
    # The one far behind: the gap grows from 40 to 42, and the ratio comes close to e^epsilon.
    assert 0.9 < loss_of_last(NoisyMax(Fraction(1)), [40, 0], [41, -1]) < 1
    # Half the noise where one score rises and another falls, as under replace: close to twice epsilon.
    assert 1.8 < loss_of_last(NoisyMax(Fraction(1), monotone=True), [40, 0], [41, -1]) < 2
    assert 0.9 < loss_of_last(NoisyMax(Fraction(1), monotone=True), [40, 0], [41, 0]) < 1


def test_the_scale():
    # Lap(2/epsilon), and Lap(1/epsilon) for counts under add-remove, whatever their number.
    assert NoisyMax.calibrated(0.1, 1).scale == 20
    assert NoisyMax.calibrated(0.1, 1, monotone=True).scale == 10
    assert NoisyMax.calibrated(0.1, 3).scale == 60
    assert NoisyMax.calibrated(0.1, 0).scale == 20
    assert NoisyMax.calibrated(0.1, 3).loss() == PureDp(Fraction(1, 10))


def test_of_equal_ones_the_first():
    assert NoisyMax(Fraction(1)).release([3, 7, 7, 1, 7], Ones()) == 1
    assert NoisyMax(Fraction(1)).release([2**63, 2**63 + 1, 5], Ones()) == 1
    # Two equal scores: the first wins with 1/2 + P(tie)/2, P(tie) = sum p(k)^2 = (1 - q)(1 + q^2)/(1 + q)^3.
    q = math.exp(-1 / 2)
    tie = (1 - q) * (1 + q * q) / (1 + q) ** 3
    assert float(NoisyMax(Fraction(1)).law([0, 0])[0]) == pytest.approx((1 + tie) / 2, abs=1e-14)


def test_only_a_name_is_released():
    released = NoisyMax(Fraction(1)).release(np.array([3, 9, 1]), ReplayBits(b"name"))
    assert type(released) is int
    assert {"epsilon"} | {name for name in dir(NoisyMax) if not name.startswith("_")} == {
        *("calibrated", "epsilon", "error", "factor", "law", "loss", "monotone", "release", "scale", "sensitivity")
    }


@pytest.mark.slow
@pytest.mark.parametrize("offset", [0, 2**53 + 1])
def test_release_has_the_law(offset):
    # p > 1e-11 for each of 2: a false alarm in at most 2e-11. More epsilon is rejected.
    scores = [offset + score for score in (0, 3, 1, 6, 5, 2)]
    pick, bits = NoisyMax(Fraction(1)), ReplayBits(b"noisy max %d" % offset)
    count = enough(25_000)
    seen = Counter(pick.release(scores, bits) for _ in range(count))
    observed = [seen[index] for index in range(6)]
    assert chi_square(observed, [count * float(p) for p in pick.law(scores)]) > 1e-11
    assert chi_square(observed, [count * float(p) for p in NoisyMax(1 + OFF).law(scores)]) < 1e-9


@pytest.mark.parametrize("choices", [2, 5])
@pytest.mark.parametrize("confidence", [Fraction(1, 2), Fraction(95, 100)], ids=str)
def test_error_is_the_least_that_holds(choices, confidence):
    pick = NoisyMax(Fraction(1))

    def wins(gap):  # the worst case: the best comes last, all others at gap below it
        return float(pick.law([0] * (choices - 1) + [gap], digits=64)[-1])

    w = pick.error(choices, confidence)
    assert wins(w + 1) >= confidence
    assert w == 0 or wins(w) < confidence


@pytest.mark.slow
def test_error_of_wide_noise():
    # In units of the scale the error is nearly the same: 100 choices at 95 %, scale 2 and scale 2 * 10^6.
    narrow, wide = NoisyMax(Fraction(1)).error(100, 0.95), NoisyMax(Fraction(1), 10**6).error(100, 0.95)
    assert narrow - 1 < wide / 10**6 < 1.05 * (narrow + 1)
    assert NoisyMax(Fraction(1)).error(1, 0.95) == 0


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.floats(max_value=0), st.just(math.nan), st.just(math.inf), st.text(), st.booleans(), st.none()))
def test_no_such_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon: "):
        NoisyMax(epsilon)


@settings(deadline=None, derandomize=True)
@given(st.lists(st.one_of(st.floats(), st.text(), st.booleans(), st.none()), min_size=1))
def test_no_such_scores(scores):
    with pytest.raises(ParameterError, match="scores: "):
        NoisyMax(Fraction(1)).release(scores, Ones())
