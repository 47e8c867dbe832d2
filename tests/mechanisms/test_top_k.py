"""The k best: their theorem from the exact law, their order, their error."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import product

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import OFF, enough
from tests.support.statistics import chi_square

from tacit.accounting.basic import epsilon as pure
from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.exponential import Exponential
from tacit.mechanisms.top_k import TopK
from tacit.privacy.loss import BoundedRange, Repeat
from tacit.sampling.bits import ReplayBits


@pytest.mark.slow
@pytest.mark.parametrize("monotone", [False, True])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_ratio_passes_e_to_the_epsilon(count, monotone):
    best = TopK(Fraction(1), count, monotone=monotone)
    with working_precision(128):
        bound = to_interval(Fraction(1)).exp() + arb(2) ** -90
        for one in [(0, 0, 0), (0, 1, 5), (3, 3, 0)]:
            before = best.law(one)
            for move in product([-1, 0, 1], repeat=3):
                if monotone and min(move) * max(move) < 0:
                    continue
                after = best.law([a + b for a, b in zip(one, move, strict=True)])
                assert all(before[order] <= bound * after[order] for order in before)
                assert all(after[order] <= bound * before[order] for order in before)


def test_the_bound_is_approached():
    # Two of four, both far behind: each choice loses nearly epsilon/2, at scores 99, 99, 0, 0 against 100, 100, -1, -1.
    best = TopK(Fraction(1), 2)
    order = (2, 3)
    ratio = best.law([99, 99, 0, 0])[order] / best.law([100, 100, -1, -1])[order]
    assert 0.999 < math.log(float(ratio)) < 1


def test_the_law_adds_up_and_one_of_them_is_the_exponential_mechanism():
    law = TopK(Fraction(1), 2).law([4, 0, 2, 2])
    assert len(law) == 12
    assert sum(law.values(), arb(0)).overlaps(arb(1))
    single = TopK(Fraction(1), 1).law([4, 0, 2])
    for index, chance in enumerate(Exponential(Fraction(1)).law([4, 0, 2])):
        assert single[(index,)].overlaps(chance)


def test_the_loss():
    # 3 choices at epsilon 1 in all: (1/3) each; zCDP 3 (1/3)^2/8 = 1/24 = epsilon^2/(8 count)
    best = TopK.calibrated(1, 3, 2)
    assert best.loss() == Repeat(BoundedRange(Fraction(1, 3)), 3)
    assert pure(best.loss()) == 1
    assert best.each.factor == Fraction(1, 12)
    assert TopK.calibrated(1, 3, 0, monotone=True).each.factor == Fraction(1, 3)


def test_names_come_in_the_order_of_the_choices():
    # Gaps of 100 at factor 1/4 * 10: a wrong order has probability below 6 e^-250.
    best = TopK(Fraction(10), 4, monotone=True)
    assert best.release([300, 0, 2**60, 100, 400, 200], ReplayBits(b"order")) == [2, 4, 0, 5]
    assert sorted(TopK(Fraction(1), 3).release([1, 1, 1], ReplayBits(b"all"))) == [0, 1, 2]


@pytest.mark.slow
def test_release_has_the_law():
    # 12 orders, 12,000 releases; a false alarm in at most 1e-11. A tenth more epsilon is rejected; by default a fifth.
    count = enough(12_000)
    scores, best, bits = [0, 2, 4, 7], TopK(Fraction(2), 2), ReplayBits(b"top k")
    seen = Counter(tuple(best.release(scores, bits)) for _ in range(count))
    law, off = best.law(scores), TopK(2 * (1 + OFF), 2).law(scores)
    observed = [seen[order] for order in law]
    assert chi_square(observed, [count * float(p) for p in law.values()]) > 1e-11
    assert chi_square(observed, [count * float(p) for p in off.values()]) < 1e-9


@pytest.mark.parametrize("scores", [[0, 5, 10, 15, 20], [0, 0, 0, 30, 31], [12, 12, 12, 12, 40]], ids=str)
@pytest.mark.parametrize("confidence", [0.5, 0.9])
def test_the_error_holds(scores, confidence):
    best = TopK(Fraction(1), 2)
    w, ranked = best.error(5, confidence), sorted(scores, reverse=True)
    good = math.fsum(
        float(p)
        for order, p in best.law(scores).items()
        if all(scores[index] >= ranked[place] - w for place, index in enumerate(order))
    )
    assert good >= confidence


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.integers(max_value=0), st.floats(), st.text(), st.booleans(), st.none()))
def test_no_such_count(count):
    with pytest.raises(ParameterError, match="count: "):
        TopK(Fraction(1), count)


@settings(deadline=None, derandomize=True)
@given(st.one_of(st.floats(max_value=0), st.just(math.nan), st.just(math.inf), st.text(), st.booleans(), st.none()))
def test_no_such_epsilon(epsilon):
    with pytest.raises(ParameterError, match="epsilon: "):
        TopK(epsilon, 2)


@pytest.mark.parametrize("scores", [[], [1, 2], [1, 2, math.nan], [1, 2, "3"], [1, 2, True]], ids=str)
def test_no_such_scores(scores):
    with pytest.raises(ParameterError, match="scores: "):
        TopK(Fraction(1), 3).release(scores, ReplayBits(b""))


def test_fewer_choices_than_count():
    with pytest.raises(ParameterError, match="choices: "):
        TopK(Fraction(1), 3).error(2, 0.9)
