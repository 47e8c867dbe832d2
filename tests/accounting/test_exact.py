"""Discrete mechanisms from their tables."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.exact import Matrix, of_law
from tacit.errors import ParameterError

HALF = Fraction(1, 2)
weights = st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any)


def test_randomized_response_with_a_fair_coin():
    # truth with 1/2, else a fair coin: 3/4 and 1/4, e^epsilon = 3
    coin = Matrix([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
    assert coin.ratio == 3
    assert coin.epsilon == pytest.approx(1.098612, abs=5e-7)
    assert coin.delta(0) == 0.5  # 3/4 - 1/4
    assert coin.delta(math.log(2)) == pytest.approx(0.25)  # 3/4 - 2 * 1/4
    assert coin.tradeoff(0, 1) == [(0, 1), (Fraction(1, 4), Fraction(1, 4)), (1, 0)]


def test_a_zero_beside_a_non_zero_is_infinite():
    shown = Matrix([[1, 0], [HALF, HALF]])
    assert shown.ratio is None
    assert shown.epsilon == math.inf
    assert shown.delta(1000) == 0.5  # the second input is given away half of the time


def test_an_output_that_never_happens_is_no_harm():
    assert Matrix([[HALF, HALF, 0], [HALF, HALF, 0]]).epsilon == 0


def test_only_neighbors_are_compared():
    table = [[1, 0], [HALF, HALF], [0, 1]]
    assert Matrix(table, [(1, 1)]).epsilon == 0
    assert Matrix([[HALF, HALF], [Fraction(1, 4), Fraction(3, 4)], [0, 1]], [(0, 1)]).ratio == 2


def test_a_law_with_shifts():
    # The three-point law 1/4, 1/2, 1/4 moved by one: -1 is possible under one of them only.
    law = {-1: Fraction(1, 4), 0: HALF, 1: Fraction(1, 4)}
    assert of_law(law, [1]).epsilon == math.inf
    assert of_law(law, [1]).delta(math.log(2)) == pytest.approx(0.25)
    assert of_law(law, [0]).epsilon == 0


@pytest.mark.parametrize("rows", [[], [[HALF]], [[0.5, 0.4]], [[1, 0], [1]], [[2, -1]], [["x", 1]], [[math.nan, 1]]])
def test_what_is_no_table_is_an_error(rows):
    with pytest.raises(ParameterError, match="rows"):
        Matrix(rows)


def test_doubles_add_up_to_one_nearly():
    assert Matrix([[0.1] * 10, [0.1] * 10]).epsilon == 0


@given(weights, weights)
def test_delta_falls_and_ends_at_epsilon(one, other):
    table = Matrix([[Fraction(x, sum(one)) for x in one], [Fraction(x, sum(other)) for x in other]])
    deltas = [table.delta(x / 4) for x in range(20)]
    assert deltas == sorted(deltas, reverse=True)
    if table.epsilon < math.inf:
        assert table.delta(table.epsilon) == pytest.approx(0, abs=1e-12)
    # total variation is half the L1 distance, and 1 minus the least sum of errors of any test
    assert table.delta(0) == pytest.approx(sum(abs(a - b) for a, b in zip(*table.rows, strict=True)) / 2)
    assert min(a + b for a, b in table.tradeoff(0, 1)) == pytest.approx(1 - table.delta(0))
