"""Global sensitivity: the formula against all neighbors of a small domain, and figures worked by hand."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.arithmetic import to_integers
from tacit.errors import ParameterError
from tacit.privacy.statistics import (
    count,
    global_sensitivity,
    histogram,
    mean,
    mean_target_score,
    median,
    total,
    variance,
)
from tacit.privacy.unit import Neighbors

REPLACE, ADD_REMOVE = Neighbors.REPLACE, Neighbors.ADD_REMOVE


def largest(f, domain, rows, neighbors):
    """The largest move of a vector in L1, over all databases of `rows` rows and all their neighbors."""
    most = Fraction(0)
    for others in combinations_with_replacement(domain, rows - 1):
        here = [f([*others, value]) for value in domain]
        there = here if neighbors is REPLACE else [f(list(others))]
        most = max(most, *(sum(abs(p - q) for p, q in zip(a, b, strict=True)) for a in here for b in there))
    return most


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("rows", [2, 3, 4, 5])
@pytest.mark.parametrize(("lower", "upper"), [(0, 3), (-3, 1), (2, 4), (0, 0)])
@pytest.mark.parametrize("statistic", [total, mean, variance, median, mean_target_score])
def test_the_formula_is_the_largest_move(statistic, lower, upper, rows, neighbors):
    domain = range(lower, upper + 1)

    def one(values):
        return (statistic(values),)

    def over_targets(values):
        return (statistic(values, lower),)  # targets at the ends are the worst; the other end is its mirror

    f = over_targets if statistic is mean_target_score else one
    found = global_sensitivity(statistic, rows=rows, lower=lower, upper=upper, neighbors=neighbors)
    assert found == largest(f, domain, rows, neighbors)


@pytest.mark.parametrize("neighbors", Neighbors)
def test_no_target_is_worse_than_an_end(neighbors):
    for target in range(5):
        move = largest(lambda values, target=target: (mean_target_score(values, target),), range(5), 3, neighbors)
        assert move <= global_sensitivity(mean_target_score, rows=3, lower=0, upper=4, neighbors=neighbors)


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("bins", [1, 2, 3])
def test_counts(bins, neighbors):
    f = lambda values: histogram(values, bins)  # noqa: E731 - named for the lines below
    assert global_sensitivity(histogram, bins=bins, neighbors=neighbors) == largest(f, range(bins), 3, neighbors)
    assert global_sensitivity(count, neighbors=neighbors) == largest(lambda v: (count(v),), range(2), 3, neighbors) == 1


def test_mean_of_thirty_scores():
    # 30 scores in [0, 100], replace one: 100/30; with 29 or 30 students the same
    assert global_sensitivity(mean, rows=30, lower=0, upper=100, neighbors=REPLACE) == Fraction(10, 3)
    assert global_sensitivity(mean, rows=30, lower=0, upper=100, neighbors=ADD_REMOVE) == Fraction(10, 3)


def test_the_pair_of_the_classroom_moves_less():
    # 29 scores of 50 and one of 90: 51.33 with it, 50 without it
    assert mean([50] * 29 + [90]) - mean([50] * 29) == Fraction(4, 3)


def test_the_squared_distance_score():
    # values in [0, 1], n = 30: 2/30 - 1/900 = 59/900, not 1/30
    assert global_sensitivity(mean_target_score, rows=30, lower=0, upper=1, neighbors=REPLACE) == Fraction(59, 900)
    # reached: all ones, one of them replaced by 0, target 0: 1 - (29/30)^2
    assert mean_target_score([1] * 29 + [0], 0) - mean_target_score([1] * 30, 0) == Fraction(59, 900)


def test_figures():
    assert global_sensitivity(total, lower=-20, upper=10, neighbors=ADD_REMOVE) == 20
    assert global_sensitivity(total, lower=-20, upper=10, neighbors=REPLACE) == 30
    # 9 * 100^2 / 10^2
    assert global_sensitivity(variance, rows=10, lower=0, upper=100, neighbors=REPLACE) == 900
    assert global_sensitivity(median, rows=10**9, lower=0, upper=100, neighbors=REPLACE) == 100
    assert global_sensitivity(histogram, bins=7, neighbors=ADD_REMOVE) == 1
    assert global_sensitivity(histogram, bins=7, neighbors=REPLACE) == 2
    assert global_sensitivity(total, lower=0.1, upper=Decimal("0.3"), neighbors=REPLACE) == Fraction(1, 5)
    assert global_sensitivity(total, lower=0, upper=2**70 + 1, neighbors=REPLACE) == 2**70 + 1


@pytest.mark.parametrize("statistic", [total, mean, variance, median])
@pytest.mark.parametrize("missing", ["lower", "upper"])
def test_without_clamping_there_is_no_bound(statistic, missing):
    bounds = {"lower": 0, "upper": 1, missing: None}
    with pytest.raises(ParameterError, match=f"{missing}: without it one row can move the statistic without bound"):
        global_sensitivity(statistic, rows=5, neighbors=REPLACE, **bounds)


def test_a_mean_needs_a_row_in_both():
    with pytest.raises(ParameterError, match="rows: must be at least 2"):
        global_sensitivity(mean, rows=1, lower=0, upper=1, neighbors=ADD_REMOVE)
    assert global_sensitivity(mean, rows=1, lower=0, upper=1, neighbors=REPLACE) == 1


BAD = st.sampled_from([None, True, False, math.nan, math.inf, -math.inf, "3", b"3", [], 3j, 1.5, 0, -2])


@settings(deadline=None)
@given(BAD)
def test_bad_numbers_of_rows(rows):
    with pytest.raises(ParameterError, match="rows: "):
        global_sensitivity(mean, rows=rows, lower=0, upper=1, neighbors=REPLACE)


@settings(deadline=None)
@given(st.sampled_from([True, math.nan, math.inf, "3", [], 3j, Decimal("NaN")]))
def test_bad_bounds(end):
    with pytest.raises(ParameterError, match="upper: "):
        global_sensitivity(total, lower=0, upper=end, neighbors=REPLACE)


def test_other_mistakes():
    with pytest.raises(ParameterError, match="upper: is below lower"):
        global_sensitivity(total, lower=1, upper=0, neighbors=REPLACE)
    with pytest.raises(ParameterError, match="neighbors: is not a neighbor relation"):
        global_sensitivity(count, neighbors="replace")
    with pytest.raises(ParameterError, match="statistic: no sensitivity is known"):
        global_sensitivity(max, rows=3, lower=0, upper=1, neighbors=REPLACE)
    for values in (3, "123", [1.0], [True], [math.nan], ["1"]):
        with pytest.raises(ParameterError, match="values: needs"):
            to_integers("values", values)
