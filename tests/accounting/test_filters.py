"""The union of filters: caps round down, charges round up, and of what is admitted one filter is within its caps."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.basic import compose_basic
from tacit.accounting.filters import (
    GRAINS_PER_DELTA,
    GRAINS_PER_EPSILON,
    GRAINS_PER_RHO,
    LARGEST,
    BudgetCharge,
    BudgetStatus,
    DeltaSplit,
    FilterLimits,
    compute_charge,
    compute_limits,
    format_epsilon,
    is_admitted,
    is_within_basic,
    is_within_zcdp,
    remaining_epsilon,
)
from tacit.accounting.zcdp import compute_rho
from tacit.errors import ParameterError
from tacit.privacy.guarantee import epsilon_from_rho
from tacit.privacy.loss import (
    ApproximateDp,
    Compose,
    ConcentratedDp,
    GaussianNoise,
    LaplaceNoise,
    Loss,
    OneOf,
    PureDp,
    Repeat,
)

MILLIONTH = Fraction(1, 10**6)
grains = st.integers(0, 10**14)
costs = st.builds(BudgetCharge, grains, grains, grains, grains)
limits = st.builds(FilterLimits, grains, grains, grains, grains)
epsilons = st.fractions(0, 1000)
deltas = st.fractions(0, Fraction(999, 1000))


@pytest.mark.slow
@given(limits, st.lists(costs, max_size=30))
def test_whatever_is_admitted_one_filter_is_within_its_caps(limit, prices):
    spent, admitted = BudgetCharge.zero(), []
    for price in prices:
        if is_admitted(spent, price, limit):
            spent += price
            admitted.append(price)
    if admitted:
        by_a = sum(p.epsilon for p in admitted) <= limit.epsilon and sum(p.delta_a for p in admitted) <= limit.delta_a
        by_b = sum(p.rho for p in admitted) <= limit.rho and sum(p.delta_b for p in admitted) <= limit.delta_b
        assert by_a or by_b
        assert (by_a, by_b) == (is_within_basic(spent, limit), is_within_zcdp(spent, limit))


@given(limits, costs, costs)
def test_a_filter_that_was_passed_never_admits_again(limit, spent, price):
    assert is_within_basic(spent, limit) or not is_within_basic(spent + price, limit)
    assert is_within_zcdp(spent, limit) or not is_within_zcdp(spent + price, limit)


def test_charges_round_up_and_caps_down():
    third = compute_charge(PureDp(Fraction(1, 3)))
    assert third.epsilon == 333_333_333_334
    assert compute_limits(Fraction(1, 3), Fraction(0)).epsilon == 333_333_333_333
    # epsilon tanh(epsilon/2) at 1/3: 0.0550468
    assert Fraction(third.rho, GRAINS_PER_RHO) >= compute_rho(PureDp(Fraction(1, 3))).rho
    assert third.rho / GRAINS_PER_RHO == pytest.approx(0.0550468, abs=1e-7)


@pytest.mark.slow
@given(epsilons, deltas)
def test_rounding_is_by_less_than_a_grain(epsilon, delta):
    charge, cap = compute_charge(ApproximateDp(epsilon, delta)), compute_limits(epsilon, delta)
    assert 0 <= charge.epsilon - epsilon * GRAINS_PER_EPSILON < 1
    assert 0 <= epsilon * GRAINS_PER_EPSILON - cap.epsilon < 1
    assert 0 <= charge.delta_a - delta * GRAINS_PER_DELTA < 1
    assert 0 <= delta / 2 * GRAINS_PER_DELTA - cap.delta_a < 1  # A's share of delta is a half, B's a quarter
    assert 0 <= delta / 4 * GRAINS_PER_DELTA - cap.delta_b < 1


@pytest.mark.slow
@given(epsilons, deltas, st.lists(st.tuples(epsilons, deltas), max_size=30), st.integers(1, 1000))
def test_what_filter_a_accepts_never_exceeds_the_cap(epsilon, delta, prices, shrink):
    limit, spent, admitted = compute_limits(epsilon, delta), BudgetCharge.zero(), []
    for price in prices:
        exact = price[0] / shrink, price[1] / shrink
        charge = compute_charge(ApproximateDp(*exact))
        if is_within_basic(spent + charge, limit):
            spent += charge
            admitted.append(exact)
    assert sum(price for price, _ in admitted) <= epsilon
    assert sum(price for _, price in admitted) <= delta / 2


def test_whole_grains_are_exact():
    # In doubles 0.1 + 0.1 + 0.1 is above 0.3.
    tenth, limit = compute_charge(PureDp(Fraction(1, 10))), compute_limits(Fraction(3, 10), Fraction(0))
    assert is_admitted(tenth + tenth, tenth, limit)
    assert not is_admitted(tenth + tenth + tenth, BudgetCharge(1, 0, 1, 0), limit)
    assert is_admitted(tenth + tenth + tenth, BudgetCharge.zero(), limit)


def test_delta_is_guarded_too():
    # A's share is half a millionth, to the grain. B is of no use: its rho is 1/2 tanh 1/4 = 0.12, beyond 0.0059.
    limit = compute_limits(Fraction(1, 2), MILLIONTH)
    grain = Fraction(1, GRAINS_PER_DELTA)
    assert is_admitted(BudgetCharge.zero(), compute_charge(ApproximateDp(Fraction(1, 2), MILLIONTH / 2)), limit)
    assert not is_admitted(
        BudgetCharge.zero(), compute_charge(ApproximateDp(Fraction(1, 2), MILLIONTH / 2 + grain)), limit
    )


def test_gaussian_noise_has_no_delta_in_filter_b():
    price = compute_charge(GaussianNoise(Fraction(100), 1), Fraction(1, 10**9))
    assert price.rho == GRAINS_PER_RHO // 200  # 1/(2 * 100)
    assert price.delta_b == 0
    assert price.delta_a == 10**9
    assert 0.4 * 10**12 < price.epsilon < 0.7 * 10**12
    # without a delta of its own filter A cannot hold it, and remembers that
    unpaid = compute_charge(GaussianNoise(Fraction(100), 1))
    assert unpaid.epsilon == LARGEST
    limit = compute_limits(Fraction(10), MILLIONTH)
    assert is_admitted(BudgetCharge.zero(), unpaid, limit)
    assert not is_within_basic(unpaid + BudgetCharge.zero(), limit)


def test_the_delta_of_keys_counts_in_both():
    price = compute_charge(Compose((LaplaceNoise(Fraction(10), 1), ApproximateDp(Fraction(1, 10), Fraction(1, 10**9)))))
    assert price.delta_a == price.delta_b == 10**9
    assert price.epsilon == 2 * 10**11


def test_members_with_gaussian_noise_and_keys_are_charged_as_their_parts_are():
    # What has a delta of its own is no part of what rho is converted for.
    noise, keys = GaussianNoise(Fraction(100), 1), ApproximateDp(Fraction(1, 10), Fraction(1, 10**7))
    members = Compose((Compose((noise, keys)), Compose((noise, LaplaceNoise(4, 1), keys))))
    parts = Compose((noise, keys, noise, LaplaceNoise(4, 1), keys))
    found = compute_charge(members, Fraction(1, 10**6))
    assert found == compute_charge(parts, Fraction(1, 10**6))
    # 0.25 + 2 * 0.1, and what a rho of 2/200 converts to at 10^-6
    assert found.epsilon / 10**12 == pytest.approx(0.45 + epsilon_from_rho(0.01, 1e-6))
    assert found.delta_a == 10**12 + 2 * 10**11
    assert found.delta_b == 2 * 10**11


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(10), Fraction(1000)])
def test_rho_is_the_largest_that_converts(epsilon):
    limit = compute_limits(epsilon, MILLIONTH)
    share = float(MILLIONTH / 4)
    assert epsilon_from_rho(limit.rho / GRAINS_PER_RHO, share) <= epsilon
    assert epsilon_from_rho(limit.rho / GRAINS_PER_RHO * (1 + 1e-6) + 1e-14, share) > epsilon
    assert limit.delta_a == 5 * 10**11 and limit.delta_b == 25 * 10**10


def test_without_delta_only_sums_of_epsilon_count():
    limit = compute_limits(Fraction(1), Fraction(0))
    assert limit.rho == 0
    spent, price = BudgetCharge.zero(), compute_charge(PureDp(Fraction(1, 10)))
    for _ in range(10):
        assert is_admitted(spent, price, limit)
        spent += price
    assert not is_admitted(spent, price, limit)


def test_many_small_questions_and_few_large_ones():
    limit = compute_limits(Fraction(10), MILLIONTH)
    # ten of epsilon 1: rho is 10 tanh(1/2) = 4.6, beyond 1.42, so filter A admits them
    assert is_admitted(BudgetCharge.zero(), compute_charge(Repeat(PureDp(Fraction(1)), 10)), limit)
    # 20,000 of 0.01: a sum of 200, and rho of 20,000 * 0.01 tanh 0.005 = 1
    assert is_admitted(BudgetCharge.zero(), compute_charge(Repeat(PureDp(Fraction(1, 100)), 20_000)), limit)
    assert not is_admitted(BudgetCharge.zero(), compute_charge(Repeat(PureDp(Fraction(1, 100)), 40_000)), limit)


@pytest.mark.slow
@given(st.lists(st.fractions(Fraction(1, 1000), 2), max_size=20))
def test_what_is_charged_is_never_less_than_the_loss(epsilons):
    spent = BudgetCharge.zero()
    for epsilon in epsilons:
        spent += compute_charge(PureDp(epsilon))
    whole = Compose(tuple(map(PureDp, epsilons)))
    assert Fraction(spent.epsilon, 10**12) >= (compose_basic(whole).epsilon or 0)
    assert Fraction(spent.rho, GRAINS_PER_RHO) >= compute_rho(whole).rho


@pytest.mark.parametrize(("epsilon", "by_a", "by_both"), [(10, 1, 1), (1, 10, 10), (Fraction(1, 100), 1000, 28444)])
def test_how_many_laplace_answers_a_budget_of_ten_admits(epsilon, by_a, by_both):
    # 10 / epsilon by A. By B, Laplace noise of epsilon 0.01 costs rho 4.99e-5 of 1.4222.
    limit, price = compute_limits(Fraction(10), MILLIONTH), compute_charge(LaplaceNoise(1 / Fraction(epsilon), 1))
    assert limit.epsilon // price.epsilon == by_a
    assert max(limit.epsilon // price.epsilon, limit.rho // price.rho) == by_both
    spent = BudgetCharge(*(grain * (by_both - 1) for grain in price.grains))
    assert is_admitted(spent, price, limit)
    assert not is_admitted(spent + price, price, limit)


@pytest.mark.slow
@given(costs, limits, st.integers(0, 10**14), st.integers(0, 10**14))
def test_what_there_is_room_for_is_admitted_and_a_little_more_is_not(spent, limit, delta_a, delta_b):
    left = remaining_epsilon(spent, limit, delta_a, delta_b)

    def asked(epsilon: int) -> BudgetCharge:
        pure = compute_charge(PureDp(Fraction(epsilon, GRAINS_PER_EPSILON)))
        return BudgetCharge(pure.epsilon, delta_a, pure.rho, delta_b)

    if left > 0:
        assert is_admitted(spent, asked(left), limit)
    assert not is_admitted(spent, asked(left + left // 10**6 + 10**6), limit)


branches = st.one_of(
    st.builds(PureDp, st.fractions(0, 3)),
    st.builds(LaplaceNoise, st.fractions(1, 50), st.integers(0, 20)),
    st.builds(ConcentratedDp, st.fractions(0, Fraction(1, 10))),
    st.builds(GaussianNoise, st.fractions(1, 500), st.integers(0, 5), st.integers(1, 3)),
)


@pytest.mark.slow
@given(st.lists(branches, min_size=1, max_size=3), st.fractions(Fraction(1, 10**12), Fraction(1, 10**3)))
def test_one_of_several_is_charged_the_largest_of_each_number(parts, delta):
    each = [compute_charge(part, delta) for part in parts]
    largest = BudgetCharge(*(max(numbers) for numbers in zip(*(charge.grains for charge in each), strict=True)))
    assert compute_charge(OneOf(tuple(parts), delta)) == largest
    first = PureDp(Fraction(1, 10))
    both = Compose((first, OneOf(tuple(parts), delta)))
    whole = [both, Compose((both,)), Compose((Compose((both,)),))]
    for loss in whole:
        assert compute_charge(loss).grains == pytest.approx((compute_charge(first) + largest).grains, abs=1)


def test_two_choices_of_noise_have_a_delta_each():
    # pure 0.5, and Gaussian noise of rho 0.002 that converts at 1e-9 to 0.39 and at 5e-10 to less than 0.42
    def either(delta: Fraction) -> Loss:
        return OneOf((PureDp(Fraction(1, 2)), ConcentratedDp(Fraction(1, 500))), delta)

    half = Fraction(1, 2 * 10**9)
    found = compute_charge(Compose((Compose((PureDp(Fraction(1, 10)), either(half))), Compose((either(half),)))))
    assert found.epsilon == 1_100_000_000_000 and found.delta_a == 10**9 and found.delta_b == 0
    assert found.rho == compute_charge(Compose((PureDp(Fraction(1, 10)), Repeat(PureDp(Fraction(1, 2)), 2)))).rho


def test_noise_that_may_be_gaussian_has_no_epsilon_without_a_delta():
    assert compute_charge(OneOf((PureDp(1), ConcentratedDp(Fraction(1, 100))))).epsilon > 10**12


def test_what_remains():
    # By A 3 - 0.5 = 2.5; without delta B has nothing
    half = compute_charge(PureDp(Fraction(1, 2)))
    assert BudgetStatus(half, compute_limits(Fraction(3), Fraction(0))).remaining == 25 * 10**11
    # By B rho 0.1 is left, and 1/2 tanh 1/4 = 0.122 is more than that
    assert BudgetStatus(BudgetCharge(3, 0, 4, 0), FilterLimits(2, 0, 4 + 10**14, 0)).remaining < 5 * 10**11


def test_what_remains_is_never_below_zero():
    assert BudgetStatus(BudgetCharge(9, 9, 9, 9), FilterLimits(7, 9, 7, 9)).remaining == 0  # the owner lowered the caps
    assert BudgetStatus(BudgetCharge(5, 9, 0, 9), FilterLimits(7, 8, 0, 8)).remaining == 0  # the deltas are used up


def test_costs_in_words():
    assert BudgetCharge.zero().text == "0"
    assert BudgetCharge(1, 0, 0, 0).text == "0.000000001"  # rounded up
    assert compute_charge(PureDp(Fraction(5, 2))).text == "2.5"
    assert compute_charge(PureDp(Fraction(100))).text == "100"  # not 1E+2
    assert compute_charge(PureDp(Fraction(1, 3))).text == "0.333333334"  # rounded up
    assert compute_charge(ApproximateDp(Fraction(1), MILLIONTH)).text == "1, delta 1e-06"
    assert compute_charge(GaussianNoise(Fraction(100), 1)).text == "without bound, rho 0.005"


@given(st.integers(0, LARGEST))
def test_an_epsilon_is_shown_exactly(epsilon):
    assert Fraction(format_epsilon(epsilon)) == Fraction(epsilon, GRAINS_PER_EPSILON)


@pytest.mark.parametrize("grain", range(4))
@pytest.mark.parametrize("bad", [-1, LARGEST])
def test_a_cap_is_below_what_a_database_integer_holds(grain, bad):
    with pytest.raises(ParameterError):
        FilterLimits(*(bad if index == grain else 0 for index in range(4)))


def test_huge_amounts_saturate():
    assert compute_charge(PureDp(Fraction(10**30))) + compute_charge(PureDp(Fraction(10**30))) == BudgetCharge(
        LARGEST, 0, LARGEST, 0
    )
    assert not is_admitted(
        BudgetCharge.zero(), compute_charge(PureDp(Fraction(10**30))), compute_limits(Fraction(10**30), MILLIONTH)
    )


def test_bad_input():
    for call in (
        lambda: compute_limits(Fraction(-1), Fraction(0)),
        lambda: compute_limits(Fraction(1), Fraction(1)),
        lambda: compute_charge(PureDp(Fraction(1)), Fraction(1)),
        lambda: DeltaSplit(Fraction(1), Fraction(1), Fraction(0)),
        lambda: DeltaSplit(Fraction(-1), Fraction(1), Fraction(0)),
    ):
        with pytest.raises(ParameterError):
            call()
