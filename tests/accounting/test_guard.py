"""The union of filters: whatever is admitted, at least one filter is within its caps."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.guard import (
    GRAINS_PER_RHO,
    LARGEST,
    Caps,
    Cost,
    Share,
    admits,
    caps,
    cost,
    within_basic,
    within_concentrated,
)
from tacit.accounting.pure import basic
from tacit.accounting.zcdp import rho
from tacit.errors import ParameterError
from tacit.privacy.guarantee import epsilon_of_rho
from tacit.privacy.loss import Approximate, Compose, GaussianNoise, LaplaceNoise, Pure, Repeat

MILLIONTH = Fraction(1, 10**6)
grains = st.integers(0, 10**14)
costs = st.builds(Cost, grains, grains, grains, grains)
limits = st.builds(Caps, grains, grains, grains, grains)


@given(limits, st.lists(costs, max_size=30))
def test_whatever_is_admitted_one_filter_is_within_its_caps(limit, prices):
    spent, admitted = Cost.zero(), []
    for price in prices:
        if admits(spent, price, limit):
            spent += price
            admitted.append(price)
    if admitted:
        by_a = sum(p.epsilon for p in admitted) <= limit.epsilon and sum(p.delta_a for p in admitted) <= limit.delta_a
        by_b = sum(p.rho for p in admitted) <= limit.rho and sum(p.delta_b for p in admitted) <= limit.delta_b
        assert by_a or by_b
        assert (by_a, by_b) == (within_basic(spent, limit), within_concentrated(spent, limit))


@given(limits, costs, costs)
def test_a_filter_that_was_passed_never_admits_again(limit, spent, price):
    assert within_basic(spent, limit) or not within_basic(spent + price, limit)
    assert within_concentrated(spent, limit) or not within_concentrated(spent + price, limit)


def test_charges_round_up_and_caps_down():
    third = cost(Pure(Fraction(1, 3)))
    assert third.epsilon == 333_333_333_334
    assert caps(Fraction(1, 3), Fraction(0)).epsilon == 333_333_333_333
    # epsilon tanh(epsilon/2) at 1/3: 0.0550468
    assert Fraction(third.rho, GRAINS_PER_RHO) >= rho(Pure(Fraction(1, 3))).rho
    assert third.rho / GRAINS_PER_RHO == pytest.approx(0.0550468, abs=1e-7)


def test_gaussian_noise_has_no_delta_in_filter_b():
    price = cost(GaussianNoise(Fraction(100), 1), Fraction(1, 10**9))
    assert price.rho == GRAINS_PER_RHO // 200  # 1/(2 * 100)
    assert price.delta_b == 0
    assert price.delta_a == 10**9
    assert 0.4 * 10**12 < price.epsilon < 0.7 * 10**12
    # without a delta of its own filter A cannot hold it, and remembers that
    unpaid = cost(GaussianNoise(Fraction(100), 1))
    assert unpaid.epsilon == LARGEST
    limit = caps(Fraction(10), MILLIONTH)
    assert admits(Cost.zero(), unpaid, limit)
    assert not within_basic(unpaid + Cost.zero(), limit)


def test_the_delta_of_keys_counts_in_both():
    price = cost(Compose((LaplaceNoise(Fraction(10), 1), Approximate(Fraction(1, 10), Fraction(1, 10**9)))))
    assert price.delta_a == price.delta_b == 10**9
    assert price.epsilon == 2 * 10**11


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(10), Fraction(1000)])
def test_rho_is_the_largest_that_converts(epsilon):
    limit = caps(epsilon, MILLIONTH)
    share = float(MILLIONTH / 4)
    assert epsilon_of_rho(limit.rho / GRAINS_PER_RHO, share) <= epsilon
    assert epsilon_of_rho(limit.rho / GRAINS_PER_RHO * (1 + 1e-6) + 1e-14, share) > epsilon
    assert limit.delta_a == 5 * 10**11 and limit.delta_b == 25 * 10**10


def test_without_delta_only_sums_of_epsilon_count():
    limit = caps(Fraction(1), Fraction(0))
    assert limit.rho == 0
    spent, price = Cost.zero(), cost(Pure(Fraction(1, 10)))
    for _ in range(10):
        assert admits(spent, price, limit)
        spent += price
    assert not admits(spent, price, limit)


def test_many_small_questions_and_few_large_ones():
    limit = caps(Fraction(10), MILLIONTH)
    # ten of epsilon 1: rho is 10 tanh(1/2) = 4.6, beyond 1.42, so filter A admits them
    assert admits(Cost.zero(), cost(Repeat(Pure(Fraction(1)), 10)), limit)
    # 20,000 of 0.01: a sum of 200, and rho of 20,000 * 0.01 tanh 0.005 = 1
    assert admits(Cost.zero(), cost(Repeat(Pure(Fraction(1, 100)), 20_000)), limit)
    assert not admits(Cost.zero(), cost(Repeat(Pure(Fraction(1, 100)), 40_000)), limit)


@given(st.lists(st.fractions(Fraction(1, 1000), 2), max_size=20))
def test_what_is_charged_is_never_less_than_the_loss(epsilons):
    spent = Cost.zero()
    for epsilon in epsilons:
        spent += cost(Pure(epsilon))
    whole = Compose(tuple(map(Pure, epsilons)))
    assert Fraction(spent.epsilon, 10**12) >= (basic(whole).epsilon or 0)
    assert Fraction(spent.rho, GRAINS_PER_RHO) >= rho(whole).rho


def test_huge_amounts_saturate():
    assert cost(Pure(Fraction(10**30))) + cost(Pure(Fraction(10**30))) == Cost(LARGEST, 0, LARGEST, 0)
    assert not admits(Cost.zero(), cost(Pure(Fraction(10**30))), caps(Fraction(10**30), MILLIONTH))


def test_bad_input():
    for call in (
        lambda: caps(Fraction(-1), Fraction(0)),
        lambda: caps(Fraction(1), Fraction(1)),
        lambda: cost(Pure(Fraction(1)), Fraction(1)),
        lambda: Share(Fraction(1), Fraction(1), Fraction(0)),
        lambda: Share(Fraction(-1), Fraction(1), Fraction(0)),
    ):
        with pytest.raises(ParameterError):
            call()
