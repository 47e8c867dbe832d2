"""The exact epsilon, step by step."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.transition_matrix import TransitionMatrix, of_laplace
from tacit.audit.worked import defended_classroom, derive_epsilon, undefended_classroom
from tacit.errors import ParameterError

HALF = Fraction(1, 2)
COIN = TransitionMatrix([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
weights = st.lists(st.integers(0, 20), min_size=4, max_size=4).filter(any)


def test_there_are_five_steps_and_the_coin_has_epsilon_ln_3():
    found = derive_epsilon(COIN)
    assert len(found.steps) == 5
    assert found.epsilon == pytest.approx(1.098612, abs=5e-7)
    assert found.steps[2].lines == ("3, at the output output 0",)
    assert found.steps[3].lines == ("epsilon = ln 3 = 1.098612",)
    assert "0.250000" in found.steps[4].lines[0]  # 1/(3 + 1)


def test_a_zero_beside_a_non_zero_is_infinite_and_is_said_so():
    found = derive_epsilon(TransitionMatrix([[1, 0], [HALF, HALF]]), outputs=["a", "b"])
    assert found.epsilon == math.inf
    assert found.steps[1].lines[1] == "b  1/2 : 0 = infinite: a zero beside a non-zero"
    assert found.steps[3].lines == ("epsilon = infinite",)
    assert "with probability 0.5 an output comes" in found.steps[4].lines[0]


def test_the_undefended_classroom_is_infinite():
    # one of five means shows the 90 with probability 1 - 0.9^5 = 0.40951
    found = derive_epsilon(
        undefended_classroom(), inputs=["with the 90", "all 50"], outputs=["no mean shows it", "one does"]
    )
    assert found.epsilon == math.inf
    assert "probability 0.40951" in str(found)
    exact_mean = TransitionMatrix([[1, 0], [0, 1]])  # of all thirty: 51.33 with the 90, and 50 without
    assert derive_epsilon(exact_mean).epsilon == math.inf
    assert exact_mean.delta(1000) == 1


@pytest.mark.slow
def test_the_classroom_with_laplace_noise_of_13_points_is_a_tenth():
    table = defended_classroom(0.1)  # 40 steps of 1/30 with scale 400 steps = 13.33 points
    found = derive_epsilon(table)
    assert found.epsilon == pytest.approx(0.1, rel=1e-12)
    assert "0.475021" in found.steps[4].lines[0]  # 1/(e^0.1 + 1)
    assert len(table.rows[0]) == 41 and "... and 29 more" in str(found)
    assert table.repeat(2).epsilon == pytest.approx(0.2, rel=1e-12)


def test_composition_adds_up_and_the_curve_is_there_too():
    twice = derive_epsilon(COIN.then(COIN))
    assert twice.epsilon == pytest.approx(2 * math.log(3))
    assert twice.matrix.delta(math.log(3)) == pytest.approx(9 / 16 - 3 / 16)  # both true against both false
    assert twice.matrix.tradeoff(0, 1)[1] == (Fraction(1, 16), Fraction(7, 16))


def test_only_neighbors_are_compared():
    chain = [[1, 0], [HALF, HALF], [0, 1]]
    assert derive_epsilon(TransitionMatrix(chain, [(1, 1)])).epsilon == 0
    alone = derive_epsilon(TransitionMatrix(chain, []))
    assert alone.epsilon == 0 and "nothing to compare" in str(alone)


def test_equal_rows_say_nothing():
    assert "says nothing" in str(derive_epsilon(TransitionMatrix([[HALF, HALF, 0], [HALF, HALF, 0]])))


def test_mistakes_are_told():
    with pytest.raises(ParameterError, match=r"adds up to 0\.9"):
        derive_epsilon(TransitionMatrix([[0.5, 0.4], [0.5, 0.5]]))
    with pytest.raises(ParameterError, match="3 names for 2"):
        derive_epsilon(COIN, outputs=["a", "b", "c"])
    with pytest.raises(ParameterError, match="inputs"):
        derive_epsilon(COIN, inputs=["a"])
    for epsilon in (0, -1, math.inf, math.nan):
        with pytest.raises(ParameterError, match="epsilon"):
            defended_classroom(epsilon)


def test_huge_epsilons_are_shown_in_logarithms():
    # 2^-1443 beside nearly one: epsilon = 1443 ln 2 = 1000.21, and the least error is 10^-434.4
    tiny = Fraction(1, 2**1443)
    assert "10^-434.4" in str(derive_epsilon(TransitionMatrix([[1 - tiny, tiny], [tiny, 1 - tiny]])))


@given(weights, weights)
def test_the_steps_lead_to_the_epsilon_of_the_table(one, other):
    table = TransitionMatrix([[Fraction(x, sum(one)) for x in one], [Fraction(x, sum(other)) for x in other]])
    found = derive_epsilon(table)
    assert found.epsilon == table.epsilon
    assert len(str(found).splitlines()) >= 10


def test_noise_on_three_inputs_names_the_worst_output():
    # 0, 1 and 5 with scale 2: 0 against 5 at either end, e^(5/2) = 12.1825
    found = derive_epsilon(of_laplace(2, [0, 1, 5]))
    assert "12.1825" in found.steps[2].lines[0]
