"""The privacy filter: caps round down, charges round up, and what is admitted never exceeds what was granted."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.filter import GRAINS_PER_DELTA, GRAINS_PER_EPSILON, Amount, Standing, admits

EPSILONS = st.fractions(min_value=0, max_value=1000)
DELTAS = st.fractions(min_value=0, max_value=1)


def test_a_third_is_rounded_up_as_a_charge_and_down_as_a_cap():
    third = Fraction(1, 3)
    assert Amount.charge(third, third) == Amount(333_333_333_334, 333_333_333_333_333_334)
    assert Amount.cap(third, third) == Amount(333_333_333_333, 333_333_333_333_333_333)
    # So a cap of a third does not admit a charge of a third: a grain, 1e-12, is lost and not overspent.
    assert not admits(Amount.zero(), Amount.charge(third, Fraction(0)), Amount.cap(third, Fraction(0)))


def test_whole_grains_are_exact():
    tenth = Amount.charge(Fraction(1, 10), Fraction(0))
    cap = Amount.cap(Fraction(3, 10), Fraction(0))
    # In doubles 0.1 + 0.1 + 0.1 is above 0.3.
    assert admits(tenth + tenth, tenth, cap)
    assert not admits(tenth + tenth + tenth, Amount(1, 0), cap)
    assert admits(tenth + tenth + tenth, Amount.zero(), cap)


def test_delta_is_guarded_too():
    cap = Amount.cap(Fraction(1), Fraction(1, 10**6))
    assert admits(Amount.zero(), Amount.charge(Fraction(1), Fraction(1, 10**6)), cap)
    assert not admits(Amount.zero(), Amount.charge(Fraction(1, 2), Fraction(1, 10**6) + Fraction(1, 10**18)), cap)


@given(EPSILONS, DELTAS)
def test_rounding_is_by_less_than_a_grain(epsilon, delta):
    charge, cap = Amount.charge(epsilon, delta), Amount.cap(epsilon, delta)
    assert 0 <= charge.epsilon_value - epsilon < Fraction(1, GRAINS_PER_EPSILON)
    assert 0 <= epsilon - cap.epsilon_value < Fraction(1, GRAINS_PER_EPSILON)
    assert 0 <= charge.delta_value - delta < Fraction(1, GRAINS_PER_DELTA)
    assert 0 <= delta - cap.delta_value < Fraction(1, GRAINS_PER_DELTA)


@given(EPSILONS, DELTAS, st.lists(st.tuples(EPSILONS, DELTAS), max_size=30), st.integers(1, 1000))
def test_what_is_admitted_never_exceeds_the_cap(epsilon, delta, prices, shrink):
    cap, spent = Amount.cap(epsilon, delta), Amount.zero()
    admitted = []
    for price in prices:
        exact = price[0] / shrink, price[1] / shrink
        charge = Amount.charge(*exact)
        if admits(spent, charge, cap):
            spent += charge
            admitted.append(exact)
    assert sum(price for price, _ in admitted) <= epsilon
    assert sum(price for _, price in admitted) <= delta


def test_amounts_as_text():
    assert Amount(0, 0).shown == "0"
    assert Amount(1, 0).shown == "0.000000000001"
    assert Amount(2_500_000_000_000, 0).shown == "2.5"
    assert Amount(100 * 10**12, 0).shown == "100"  # not 1E+2
    assert Amount(10**12, 10**12).shown == "1, delta 1e-06"


@given(st.integers(0, 10**19))
def test_an_epsilon_is_shown_exactly(grains):
    assert Fraction(Amount(grains, 0).shown) == Amount(grains, 0).epsilon_value


def test_remaining_is_never_below_zero():
    assert Standing(Amount(5, 3), Amount(7, 3)).remaining == Amount(2, 0)
    assert Standing(Amount(9, 9), Amount(7, 3)).remaining == Amount.zero()  # the owner lowered the cap


@pytest.mark.parametrize("sign", [1, -1])
def test_amounts_add_and_subtract(sign):
    assert Amount(5, 7) + Amount(sign, sign) - Amount(sign, sign) == Amount(5, 7)
