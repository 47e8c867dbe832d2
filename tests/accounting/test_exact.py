"""Discrete mechanisms from their tables."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.transition_matrix import TransitionMatrix, of_laplace
from tacit.errors import ParameterError

HALF = Fraction(1, 2)
weights = st.lists(st.integers(0, 20), min_size=3, max_size=3).filter(any)


def test_randomized_response_with_a_fair_coin():
    # truth with 1/2, else a fair coin: 3/4 and 1/4, e^epsilon = 3
    coin = TransitionMatrix([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
    assert coin.ratio == 3
    assert coin.epsilon == pytest.approx(1.098612, abs=5e-7)
    assert coin.delta(0) == 0.5  # 3/4 - 1/4
    assert coin.delta(math.log(2)) == pytest.approx(0.25)  # 3/4 - 2 * 1/4
    assert coin.tradeoff(0, 1) == [(0, 1), (Fraction(1, 4), Fraction(1, 4)), (1, 0)]


def test_a_zero_beside_a_non_zero_is_infinite():
    shown = TransitionMatrix([[1, 0], [HALF, HALF]])
    assert shown.ratio is None
    assert shown.epsilon == math.inf
    assert shown.delta(1000) == 0.5  # the second input is given away half of the time


def test_an_output_that_never_happens_is_no_harm():
    assert TransitionMatrix([[HALF, HALF, 0], [HALF, HALF, 0]]).epsilon == 0


def test_only_neighbors_are_compared():
    table = [[1, 0], [HALF, HALF], [0, 1]]
    assert TransitionMatrix(table, [(1, 1)]).epsilon == 0
    assert TransitionMatrix([[HALF, HALF], [Fraction(1, 4), Fraction(3, 4)], [0, 1]], [(0, 1)]).ratio == 2


def test_a_law_and_the_same_law_moved():
    # The three-point law 1/4, 1/2, 1/4 moved by one: -1 is possible under one of them only.
    quarter = Fraction(1, 4)
    moved = TransitionMatrix([[quarter, HALF, quarter, 0], [0, quarter, HALF, quarter]])
    assert moved.epsilon == math.inf
    assert moved.delta(math.log(2)) == pytest.approx(0.25)


@pytest.mark.parametrize("rows", [[], [[HALF]], [[0.5, 0.4]], [[1, 0], [1]], [[2, -1]], [["x", 1]], [[math.nan, 1]]])
def test_what_is_no_table_is_an_error(rows):
    with pytest.raises(ParameterError, match="rows"):
        TransitionMatrix(rows)


def test_doubles_add_up_to_one_nearly():
    assert TransitionMatrix([[0.1] * 10, [0.1] * 10]).epsilon == 0


@pytest.mark.slow
@given(weights, weights)
def test_delta_falls_and_ends_at_epsilon(one, other):
    table = TransitionMatrix([[Fraction(x, sum(one)) for x in one], [Fraction(x, sum(other)) for x in other]])
    deltas = [table.delta(x / 4) for x in range(20)]
    assert deltas == sorted(deltas, reverse=True)
    if table.epsilon < math.inf:
        assert table.delta(table.epsilon) == pytest.approx(0, abs=1e-12)
    # total variation is half the L1 distance, and 1 minus the least sum of errors of any test
    assert table.delta(0) == pytest.approx(sum(abs(a - b) for a, b in zip(*table.rows, strict=True)) / 2)
    assert min(a + b for a, b in table.tradeoff(0, 1)) == pytest.approx(1 - table.delta(0))


def test_five_means_of_three_of_thirty_students():
    # A 90 among 50s is in a mean of 3 with C(29,2)/C(30,3) = 1/10, and in one of five with 1 - 0.9^5 = 0.40951.
    share = Fraction(math.comb(29, 2), math.comb(30, 3))
    five = TransitionMatrix([[1 - share, share], [1, 0]]).repeat(5)
    assert five.epsilon == math.inf
    assert 0 <= Fraction(five.delta(1000)) - Fraction(40951, 100000) < Fraction(1, 10**16)  # rounded up
    assert five.rows == ((Fraction(59049, 10**5), Fraction(40951, 10**5)), (1, 0))


@pytest.mark.slow
def test_coins_repeated_are_binomial_and_their_ratios_multiply():
    # Of 3 answers k are true with C(3,k) (3/4)^k (1/4)^(3-k): 1, 9, 27, 27 in 64, and e^epsilon is 3^3.
    coin = TransitionMatrix([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
    three = coin.repeat(3)
    assert three.ratio == 27
    assert sorted(three.rows[0]) == [Fraction(n, 64) for n in (1, 9, 27, 27)]
    assert coin.repeat(0).epsilon == 0 and coin.repeat(0).rows == ((1,), (1,))
    assert coin.repeat(1).rows == coin.rows
    # Kairouz, Oh, Viswanath at 100 uses and epsilon 60: sum of C(100,l) max(0, 3^(100-l) - e^60 3^l)/4^100
    grown = Fraction(math.exp(60))
    worst = sum(math.comb(100, k) * max(0, 3 ** (100 - k) - grown * 3**k) for k in range(101)) / 4**100
    assert coin.repeat(100).delta(60) == pytest.approx(float(worst), rel=1e-12)


def test_outputs_that_say_the_same_are_one():
    # Two outputs of ratio 2 and one of ratio 1/2; what never comes out is left away.
    table = TransitionMatrix(
        [[Fraction(4, 9), Fraction(2, 9), Fraction(3, 9), 0], [Fraction(2, 9), Fraction(1, 9), Fraction(6, 9), 0]]
    )
    assert table.merge_equal_outputs().rows == ((Fraction(2, 3), Fraction(1, 3)), (Fraction(1, 3), Fraction(2, 3)))


def test_tables_of_other_inputs_do_not_compose():
    coin = TransitionMatrix([[HALF, HALF], [HALF, HALF]])
    for other in (TransitionMatrix([[1]]), TransitionMatrix([[1], [1], [1]]), TransitionMatrix([[1], [1]], [(0, 0)])):
        with pytest.raises(ParameterError, match="other inputs or other neighbors"):
            coin.then(other)
    for times in (-1, 1.5, True):
        with pytest.raises(ParameterError, match="times"):
            coin.repeat(times)


def test_laplace_noise_moved_by_d_steps_loses_d_over_scale():
    assert of_laplace(2, [0, 1]).epsilon == pytest.approx(0.5, rel=1e-12)
    assert of_laplace(400, [0, 40]).epsilon == pytest.approx(0.1, rel=1e-12)
    assert of_laplace(2, [0, 1, 5]).epsilon == pytest.approx(2.5, rel=1e-12)
    assert of_laplace(2, [7, 7]).epsilon == 0
    # One step is randomized response: 1/(1 + q) and q/(1 + q), q = exp(-1/2).
    assert [float(p) for p in of_laplace(2, [0, 1]).rows[0]] == pytest.approx([0.622459, 0.377541], abs=5e-7)
    for scale, values in ((0, [0, 1]), (-1, [0]), (1, []), (1, [0.5]), (math.nan, [0])):
        with pytest.raises(ParameterError):
            of_laplace(scale, values)


@pytest.mark.slow
@given(weights, weights, weights, weights)
def test_composition_is_the_table_of_all_pairs_of_outputs(a, b, c, d):
    one, two = (TransitionMatrix([[Fraction(x, sum(row)) for x in row] for row in rows]) for rows in ((a, b), (c, d)))
    both = one.then(two)
    plain = TransitionMatrix([[p * q for p in one.rows[x] for q in two.rows[x]] for x in (0, 1)])
    assert both.ratio == plain.ratio
    assert all(both.delta(x / 3) == plain.delta(x / 3) for x in range(6))
    assert set(both.tradeoff(0, 1)) <= set(plain.tradeoff(0, 1))
    assert both.epsilon <= one.epsilon + two.epsilon + 1e-12
