from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.policy.test_check import QUIET, WARDS

from tacit.accounting.filters import LARGEST, BudgetCharge, FilterLimits, compute_charge, compute_limits, is_admitted
from tacit.policy.load import load
from tacit.policy.model import PrivacyBudget
from tacit.policy.promise import RecordedSpending, describe_guarantee, effective_budget, find_overspent
from tacit.privacy.guarantee import epsilon_from_rho
from tacit.privacy.loss import ApproximateDp, GaussianNoise, LaplaceNoise

CLINIC = Path(__file__).parent / "clinic.toml"
HALF = compute_charge(LaplaceNoise(Fraction(2), 1))  # epsilon 0.5
OLD = compute_limits(1, Fraction(1, 10**6))


def test_the_promise_says_who_is_the_same_and_who_is_nobody():
    caps = {"max_groups": 1, "max_rows_per_group": 1, "columns": {"x": {"type": "bool"}}}
    stays = {"unit": "patient", "people": "visits", **caps}
    items = {"unit": {"through": "stay_id", "to": "stays.id"}, **caps}
    tables = QUIET["tables"] | {"stays": stays, "items": items, "wards": WARDS}
    assert describe_guarantee(load(QUIET | {"tables": tables})).startswith(
        'Protected is each unit: in "visits" all rows with the same "patient_id"; in "stays" all rows with the same '
        '"patient"; in "items" all rows whose "stay_id" leads to the unit\'s rows in "stays". '
        'The units of "visits", "stays" and "items" are the same people: all that these hold of one is protected '
        'together. Public, so that nobody is protected in them, are the rows of "wards". Adding or removing'
    )


def test_the_promise_of_the_clinic():
    assert describe_guarantee(load(CLINIC)) == (
        'Protected is each unit: in "visits" all rows with the same "patient_id"; '
        'in "staff on call" each row on its own, even where one person has several. '
        "Adding or removing all rows of one unit changes the probability of any outcome, over the answers to all "
        "analysts together, by a factor of at most exp(10), plus 1e-6, counted from an empty ledger. "
        # 12 months of 3
        "The caps of single analysts (epsilon: ada 3 in each calendar month, so 36 over a year; bo 0.1) hold for what "
        "each of them is told alone: analysts who pool their answers are bound by the overall cap only. "
        "Caps of single analysts may refresh; the overall cap of 10 never does, and binds."
    )


def test_the_promise_of_live_tables_says_what_failures_can_tell():
    live = load(QUIET | {"data": {"engine": "postgres", "source": "postgresql://reader@host/office"}})
    assert describe_guarantee(live).endswith(
        'Questions read "visits" live, where a row may make one fail. The first failure locks the tables that the '
        "question reads until the owner unlocks them. So, beyond the answers, n questions about a table can learn at "
        "most log2(n + 1) bits per unlock by whether and when one fails."
    )
    assert "unlock" not in describe_guarantee(load(QUIET))


def test_where_no_cap_refreshes_months_are_not_mentioned():
    assert "epsilon: ada 0.5; bo 0.5" in describe_guarantee(load(QUIET))
    assert "refresh" not in describe_guarantee(load(QUIET))
    assert "month" not in describe_guarantee(load(QUIET))


def test_the_promise_of_replacement():
    policy = load(QUIET | {"privacy": {"epsilon": 0.25, "neighbors": "replace"}})
    assert "Replacing all rows of one unit by rows of another changes" in describe_guarantee(policy)
    assert "exp(0.25), counted from an empty ledger." in describe_guarantee(policy)


def test_many_analysts_are_not_all_named():
    policy = load(QUIET | {"analysts": {f"a{i}": {"epsilon": 1} for i in range(9)}})
    assert "a4 1 and 4 more" in describe_guarantee(policy)


def lowered(epsilon: float, delta: float = 1e-6):
    return load(QUIET | {"privacy": {"epsilon": epsilon, "delta": delta}, "analysts": {"ada": {"epsilon": epsilon}}})


def test_a_cap_below_what_is_spent_promises_what_is_spent():
    policy, spent = lowered(0.4), RecordedSpending(HALF, {"ada": HALF}, OLD, {"ada": compute_limits(1, 0)})
    said = describe_guarantee(policy, spent)
    assert "by a factor of at most exp(0.5), plus 1e-6. The caps of single analysts (epsilon: ada up to 0.5 sp" in said
    assert "empty ledger" not in said
    found = {remark.path: remark.text for remark in find_overspent(policy, spent)}
    assert set(found) == {"privacy.epsilon", "analysts.ada.epsilon"}
    assert found["privacy.epsilon"].startswith("up to 0.5 is spent already, more than 0.4: what was told stays told")


def test_a_cap_that_still_holds_is_the_promise():
    policy = lowered(0.5)
    assert "exp(0.5), plus 1e-6. The caps of single analysts (epsilon: ada 0.5) hold" in describe_guarantee(
        policy, RecordedSpending(HALF)
    )
    assert list(find_overspent(policy, RecordedSpending(HALF))) == []


def test_a_refreshing_cap_names_what_this_month_has_cost_already():
    policy = load(QUIET | {"analysts": {"ada": {"epsilon": 0.25, "refresh": "monthly"}}})
    said = describe_guarantee(policy, RecordedSpending(HALF, {"ada": HALF}))
    assert "ada 0.25 in each calendar month and up to 0.5 in this one already, so 3 over a year" in said


def test_a_delta_that_is_spent_already_is_promised():
    spent = compute_charge(ApproximateDp(Fraction(1, 2), Fraction(1, 10**9)))
    # epsilon 0.5 is within 1, and delta 1e-9 is above 0; no filter B was ever in force
    assert effective_budget(PrivacyBudget(Fraction(1), Fraction(0)), spent, FilterLimits.zero()) == PrivacyBudget(
        Fraction(1), Fraction(1, 10**9)
    )


def answers(scale: int, count: int) -> BudgetCharge:
    spent = BudgetCharge.zero()
    for _ in range(count):
        spent += compute_charge(LaplaceNoise(Fraction(scale), 1))
    return spent


@pytest.mark.slow
def test_what_filter_b_admitted_is_promised_by_the_highest_cap():
    # 400 answers of epsilon 0.01 and rho 0.00005 at most: a sum of 4, and rho 0.02, which is 1.07 at delta 2.5e-7
    spent, cap = answers(100, 400), PrivacyBudget(Fraction(1, 2), Fraction(1, 10**6))
    for epsilon in (Fraction(6, 5), Fraction(2), Fraction(3)):
        highest = compute_limits(epsilon, Fraction(1, 10**6))
        assert is_admitted(spent, BudgetCharge.zero(), highest)
        assert effective_budget(cap, spent, highest) == PrivacyBudget(epsilon, Fraction(1, 10**6))
    # the sum where it is less than what the highest cap allowed
    assert effective_budget(cap, spent, compute_limits(5, cap.delta)).epsilon == 4


@pytest.mark.slow
@given(st.integers(0, 400), st.integers(0, 400))
def test_who_stops_when_it_pays_gets_the_same_promise(first, second):
    # What is promised by filter B is a fact of the caps, and never of the rho that an analyst has spent so far.
    def after(count):
        charge = BudgetCharge(LARGEST, 0, 10**11 * count, 0)
        return effective_budget(cap, charge, compute_limits(2, cap.delta))

    cap = PrivacyBudget(Fraction(1, 1000), Fraction(1, 10**6))
    assert after(first) == after(second) or 0 in {first, second}
    assert after(1) == PrivacyBudget(Fraction(2), Fraction(1, 10**6))


def test_both_filters_need_their_own_delta():
    # the higher epsilon was in force with the lower delta: 1e-6 is filter A's half of 2e-6 and B's two quarters
    one, other = compute_limits(1, Fraction(2, 10**6)), compute_limits(3, Fraction(1, 10**9))
    highest = FilterLimits(*map(max, one.grains, other.grains))
    found = effective_budget(PrivacyBudget(Fraction(1, 10), Fraction(0)), HALF + HALF + HALF, highest)
    assert found == PrivacyBudget(Fraction(3, 2), Fraction(2, 10**6))


def test_gaussian_noise_beyond_all_caps_has_a_bound_all_the_same():
    spent = compute_charge(GaussianNoise(Fraction(100), 1))  # a variance of 100: rho is 1/200
    assert spent.epsilon == LARGEST
    found = effective_budget(PrivacyBudget(Fraction(1, 1000), Fraction(0)), spent, FilterLimits.zero())
    assert found.delta == Fraction(1, 10**6)
    # 5e12 grains of rho are within 2^43
    assert float(found.epsilon) == pytest.approx(epsilon_from_rho(2**43 / 10**15, 1e-6), abs=2e-6)


amounts = st.fractions(0, 4, max_denominator=100)


@pytest.mark.slow
@given(amounts.filter(bool), st.sampled_from(["0", "1e-9", "1e-6"]), st.lists(amounts.filter(bool), max_size=5))
def test_the_promise_is_never_below_the_cap_and_nothing_more_is_admitted_above_it(epsilon, delta, prices):
    cap = PrivacyBudget(epsilon, Fraction(delta))
    spent = BudgetCharge.zero()
    for price in prices:
        spent += compute_charge(LaplaceNoise(1 / price, 1))
    found = effective_budget(cap, spent, FilterLimits.zero())
    assert found.epsilon >= cap.epsilon
    assert found.delta == cap.delta
    if found != cap:
        assert not is_admitted(spent, BudgetCharge.zero(), compute_limits(cap.epsilon, cap.delta))
        assert found.epsilon <= sum(prices) + Fraction(1, 10**6)
    else:
        assert is_admitted(spent, BudgetCharge.zero(), compute_limits(cap.epsilon, cap.delta))
