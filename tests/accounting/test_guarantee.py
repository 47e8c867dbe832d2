"""Guarantees, and what follows from them."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from tacit.errors import ParameterError
from tacit.privacy.guarantee import DpGuarantee, delta_from_rho, epsilon_from_rho
from tacit.privacy.unit import Neighbors

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
ZERO = Fraction(0)


def test_a_replacement_is_two_steps():
    assert DpGuarantee(Fraction(1), ZERO, ADD).for_replace() == DpGuarantee(Fraction(2), ZERO, REPLACE)
    assert DpGuarantee(Fraction(1), ZERO, REPLACE).for_replace() == DpGuarantee(Fraction(1), ZERO, REPLACE)
    # delta (1 + e) = 1e-6 * 3.718282
    assert float(DpGuarantee(Fraction(1), Fraction(1, 10**6), ADD).for_replace().delta) == pytest.approx(
        3.718282e-6, rel=1e-6
    )


def test_groups():
    # (k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1)) at 1/2 and k = 4: (e^2 - 1)/(e^0.5 - 1) = 9.8487
    group = DpGuarantee(Fraction(1, 2), Fraction(1, 10**6), ADD).for_group(4)
    assert group.epsilon == 2
    assert float(group.delta) == pytest.approx(1e-6 * math.expm1(2) / math.expm1(0.5), rel=1e-9)
    assert group.delta > Fraction(math.expm1(2) / math.expm1(0.5)) / 10**6
    assert DpGuarantee(ZERO, Fraction(1, 10), ADD).for_group(3).delta == pytest.approx(0.3)
    assert DpGuarantee(Fraction(100), Fraction(1, 10), ADD).for_group(100).delta == 1


def test_conversions():
    # rho = 5 at 1e-5: 19.05, where the older rho + 2 sqrt(rho ln(1/delta)) gives 20.17
    assert epsilon_from_rho(5.0, 1e-5) == pytest.approx(19.05, abs=0.005)
    assert 5 + 2 * math.sqrt(5 * math.log(1e5)) == pytest.approx(20.17, abs=0.005)


@pytest.mark.parametrize("rho", [1e-12, 1e-4, 0.1, 5.0, 1e4, 1e9])
@pytest.mark.parametrize("delta", [1e-300, 1e-10, 0.1])
def test_conversions_are_inverse_and_never_overflow(rho, delta):
    epsilon = epsilon_from_rho(rho, delta)
    assert 0 <= epsilon <= rho + 2 * math.sqrt(rho * math.log(1 / delta)) * (1 + 1e-9)
    if epsilon > 0:
        assert delta_from_rho(rho, epsilon) == pytest.approx(delta, rel=1e-3)


@pytest.mark.parametrize("bad", [(-1, 0), (1, -1), (1, 2)])
def test_there_are_no_such_guarantees(bad):
    with pytest.raises(ParameterError, match="there is no"):
        DpGuarantee(Fraction(bad[0]), Fraction(bad[1]), ADD)
