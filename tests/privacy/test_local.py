"""Local sensitivity, its smooth bound and the distance to its growth: against the definition, on all tiny data."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from itertools import combinations_with_replacement, product

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import some

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.privacy.local import (
    median_distance_to_bound,
    median_local_sensitivity,
    median_sensitivity_at_distance,
    median_smooth_sensitivity,
)
from tacit.privacy.statistics import median

SIZES = [(1, 4), (2, 4), (3, 4), (4, 3), (5, 2)]  # rows, upper end of the range from 0
BETAS = [Fraction(1, 20), Fraction(1, 3), Fraction(1), Fraction(4)]


def neighbors(data, upper):
    return {tuple(sorted([*data[:i], value, *data[i + 1 :]])) for i in range(len(data)) for value in range(upper + 1)}


@lru_cache
def defined(rows, upper):
    """For all data: the local sensitivities reachable within 0, 1, ..., rows changes, from the definition."""
    everything = list(combinations_with_replacement(range(upper + 1), rows))
    near = {data: neighbors(data, upper) for data in everything}
    reach = [{data: int(max(abs(median(data) - median(other)) for other in near[data])) for data in everything}]
    for _ in range(rows):
        reach.append({data: max(reach[-1][other] for other in near[data]) for data in everything})
    return everything, near, reach


@pytest.mark.parametrize(("rows", "upper"), SIZES)
def test_local_sensitivity_is_the_definition(rows, upper):
    everything, _, reach = defined(rows, upper)
    for data in everything:
        assert median_local_sensitivity(data, 0, upper) == reach[0][data]
        found = [median_sensitivity_at_distance(data, 0, upper, k) for k in range(rows + 1)]
        assert found == [reach[k][data] for k in range(rows + 1)]


@pytest.mark.parametrize(("rows", "upper"), SIZES)
def test_the_distance_is_the_definition_and_moves_by_one(rows, upper):
    everything, near, reach = defined(rows, upper)
    for bound in range(upper + 1):
        found = {data: median_distance_to_bound(data, 0, upper, bound) for data in everything}
        for data in everything:
            assert found[data] == next((k for k in range(rows + 1) if reach[k][data] > bound), None)
            for other in near[data]:
                assert (found[data] is None) == (found[other] is None)
                assert found[data] is None or abs(found[data] - found[other]) <= 1


@pytest.mark.parametrize("beta", BETAS, ids=str)
@pytest.mark.parametrize(("rows", "upper"), SIZES)
def test_the_smooth_sensitivity_is_the_definition_and_smooth(rows, upper, beta):
    everything, near, reach = defined(rows, upper)
    with working_precision(200):
        found = {data: median_smooth_sensitivity(data, 0, upper, beta) for data in everything}
        value = {data: found[data].value() for data in everything}
        for data in everything:
            terms = [(-to_interval(beta * k)).exp() * reach[k][data] for k in range(rows + 1)]
            assert all(value[data] >= term or value[data].overlaps(term) for term in terms)
            assert any(value[data].overlaps(term) for term in terms)  # two terms never agree to 200 bits
            for other in near[data]:
                assert value[data] <= to_interval(beta).exp() * value[other] * (1 + arb(2) ** -150)


@pytest.mark.slow
@pytest.mark.parametrize("beta", BETAS, ids=str)
@pytest.mark.parametrize(("low", "high"), [(0, 100), (-(2**70), 2**70)])
def test_the_quick_way_is_the_slow_way(beta, low, high):
    # 40 sets of 25 to 64 rows, by default 10 of them: the whole maximum over k against the divided one
    for seed in some(range(40), 4):
        values = [low + (high - low) * (pow(7 + seed, i + 1, 10_007)) // 10_007 for i in range(25 + seed)]
        found = median_smooth_sensitivity(values, low, high, beta)
        with working_precision(200):
            slow = [
                (-to_interval(beta * k)).exp() * median_sensitivity_at_distance(values, low, high, k)
                for k in range(len(values) + 1)
            ]
            assert all(found.value() >= term or found.value().overlaps(term) for term in slow)
            assert median_sensitivity_at_distance(values, low, high, found.steps) == found.width


@pytest.mark.slow
def test_ten_thousand_rows():
    # 0, 1, ..., 9,999 in [0, 9,999] with beta 1/100: the widest k + 1 steps at a cost of exp(-k/100): k = 99 or 100;
    # ln(100) - 0.99 = 3.61517 beats ln(101) - 1 = 3.61512
    found = median_smooth_sensitivity(range(10_000), 0, 9_999, Fraction(1, 100))
    assert (found.width, found.steps) == (100, 99)


def test_figures():
    # 50 in rank 15 of 30: one step to 51 above; below it fourteen more 50s
    scores = [50] * 15 + [51] * 14 + [90]
    assert median_local_sensitivity(scores, 0, 100) == 1
    assert median_local_sensitivity([50] * 29 + [90], 0, 100) == 0
    # local sensitivity 0, and 14 changes until one more makes the median 100: 50 e^-14 beta or more
    assert median_distance_to_bound([50] * 29 + [90], 0, 100, 0) == 14
    assert median_distance_to_bound(scores, 0, 100, 100) is None


def test_values_are_clamped_one_by_one():
    assert median_local_sensitivity([-50, 3, 999], 0, 10) == median_local_sensitivity([0, 3, 10], 0, 10) == 7


@pytest.mark.parametrize("gap", [0, 1, -1])
def test_close_calls_are_certain(gap):
    # exp(1/2) = 1.648..: 2^80 against the product next to 2^80 exp(1/2): the machine cannot tell, intervals can
    with working_precision(300):
        next_to = int((to_interval(Fraction(1, 2)).exp() * 2**80).floor().unique_fmpz())
    # rows: median x_1 = 0 of [0, upper]: k = 0 gives 2^80 below, k = 1 gives the whole range
    low, high = 0, next_to + gap
    found = median_smooth_sensitivity([low, 2**80], low, high, Fraction(1, 2))
    assert found.steps == (1 if gap > 0 else 0)


@settings(deadline=None)
@given(st.sampled_from([math.nan, math.inf, 1.0, True, "1", None, 2j]))
def test_only_integers(value):
    with pytest.raises(ParameterError, match="values: needs an integer"):
        median_local_sensitivity([1, value], 0, 3)
    with pytest.raises(ParameterError, match="upper: needs an integer"):
        median_local_sensitivity([1], 0, value)


@settings(deadline=None)
@given(st.sampled_from([0, -1, math.nan, math.inf, True, "1", None]))
def test_a_decay_is_positive(beta):
    with pytest.raises(ParameterError, match="beta: "):
        median_smooth_sensitivity([1], 0, 3, beta)


def test_other_mistakes():
    with pytest.raises(ParameterError, match="values: there are none"):
        median_local_sensitivity([], 0, 1)
    with pytest.raises(ParameterError, match="upper: is below lower"):
        median_local_sensitivity([1], 3, 1)
    for bad in product([-1, 0.5, True], [0]):
        with pytest.raises(ParameterError, match="bound: "):
            median_distance_to_bound([1], 0, 1, bad[0])
