from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.ledger.conftest import limits, price

from tacit.accounting.filters import LARGEST, BudgetCharge, BudgetStatus, FilterLimits, compute_charge, compute_limits
from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.ledger.budget import AnalystLimit, BudgetLimits, Terms, admit, strictest_caps
from tacit.privacy.loss import ApproximateDp, GaussianNoise

grains = st.integers(0, LARGEST - 1)
bounds = st.builds(FilterLimits, grains, grains, grains, grains)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
grants = st.dictionaries(texts, st.builds(AnalystLimit, bounds, st.booleans()))

ONE = limits("3", ada="1")


def cap(epsilon: str, delta: str = "0") -> FilterLimits:
    return compute_limits(Fraction(epsilon), Fraction(delta))


@pytest.mark.slow
@given(bounds, grants, st.dictionaries(texts, texts), st.text(), st.booleans(), st.integers(0))
def test_terms_survive_being_written_down(overall, analysts, scope, key, witnessed, version):
    terms = Terms(BudgetLimits(overall, analysts, scope), key, witnessed, key_version=version)
    assert Terms.decode(terms.encode()) == terms


def test_equal_terms_have_equal_texts():
    one, other = limits("3", ada="1", bob="2"), limits("3", bob="2", ada="1")
    assert Terms(one).encode() == Terms(other).encode()


@pytest.mark.parametrize(
    "other",
    [
        Terms(limits("4", ada="1")),
        Terms(limits("3", ada="2")),
        Terms(limits("3", ada="1", bob="1")),
        Terms(limits("3", ada="1", monthly=["ada"])),
        Terms(limits("3", ada="1", scope={"neighbors": "replace"})),
        Terms(ONE, key="5eed"),
        Terms(ONE, witnessed=True),
        Terms(ONE, key_version=1),
    ],
)
def test_whatever_changes_in_the_terms_changes_their_text(other):
    assert other.encode() != Terms(ONE).encode()


@pytest.mark.parametrize(
    "change",
    [
        ('"analysts":{', '"analysts":[{'),
        ('"key":""', '"key":0'),
        ('"scope":{}', '"scope":[]'),
        ('"witnessed":false', '"witnessed":0'),
        ('"overall":[', '"overall":[0,'),
        ('"key":""', '"key":"","key_version":-1'),
        ('"key":""', '"key":"","key_version":true'),
        (",false]", "]"),
        (",false]", ",0,false]"),
        (",false]", ',"0",false]'),
    ],
)
def test_what_is_not_terms_is_a_value_error(change):
    text = Terms(ONE).encode().replace(*change)
    assert text != Terms(ONE).encode()
    with pytest.raises(ValueError, match=r"no terms|no grant|no caps|delimiter"):
        Terms.decode(text)


def test_limits_do_not_follow_a_mapping_that_changes():
    analysts, scope = {"ada": AnalystLimit(cap("1"))}, {"neighbors": "replace"}
    limit = BudgetLimits(cap("3"), analysts, scope)
    analysts["ada"] = AnalystLimit(cap("100"))
    scope.clear()
    assert limit == BudgetLimits(cap("3"), {"ada": AnalystLimit(cap("1"))}, {"neighbors": "replace"})


def test_limits_from_plain_numbers():
    # A gets half of delta and B a quarter of it, in grains of 1e-18
    limit = BudgetLimits.of(Fraction(3), Fraction(1, 10**6), {"ada": (Fraction(1), Fraction(0))})
    assert limit.overall == replace(cap("3", "1e-6"), delta_a=5 * 10**11, delta_b=25 * 10**10)
    assert limit.analysts == {"ada": AnalystLimit(FilterLimits(10**12, 0, 0, 0), monthly=False)}


def test_an_analyst_has_a_name():
    with pytest.raises(ParameterError):
        BudgetLimits(cap("1"), {"": AnalystLimit(cap("1"))})


def test_the_stricter_caps_are_within_both():
    assert strictest_caps(FilterLimits(1, 9, 4, 6), FilterLimits(2, 3, 5, 5)) == FilterLimits(1, 3, 4, 5)


def refusal(asked: BudgetCharge, own: BudgetStatus, shared: BudgetStatus | None) -> Refused:
    with pytest.raises(Refused) as found:
        admit(asked, "ada", own, shared)
    assert found.value.code is ErrorCode.BUDGET
    return found.value


def test_a_refusal_says_whose_budget_and_what_would_fit():
    found = refusal(price("0.5"), BudgetStatus(price("2.9"), cap("3")), BudgetStatus(price("5"), cap("10")))
    assert found.what == "it costs epsilon 0.5, and ada's own budget has 0.1 left of 3"
    assert found.fix == "ask for at most epsilon=0.1"


def test_a_refusal_by_the_shared_budget_says_so():
    found = refusal(price("0.5"), BudgetStatus(BudgetCharge.zero(), cap("3")), BudgetStatus(price("9.75"), cap("10")))
    assert "the budget shared by all analysts has 0.25 left of 10" in found.what
    assert found.fix == "ask for at most epsilon=0.25"


def test_what_would_fit_fits_both_budgets():
    # 0.4 is left of the own cap and 0.25 of the shared one
    own, shared = BudgetStatus(price("2.6"), cap("3")), BudgetStatus(price("9.75"), cap("10"))
    assert refusal(price("0.5"), own, shared).fix == "ask for at most epsilon=0.25"
    admit(price("0.25"), "ada", own, shared)


def test_where_nothing_remains_only_the_owner_can_help():
    assert "ask the data owner" in refusal(price("0.5"), BudgetStatus(price("3"), cap("3")), None).fix


def test_each_guard_may_be_held_by_a_filter_of_its_own():
    # Of the own cap epsilon is spent and rho is left; of the shared one it is the other way around.
    own = BudgetStatus(BudgetCharge(10**12, 0, 0, 0), cap("1", "1e-6"))
    shared = BudgetStatus(BudgetCharge(0, 0, 10**18, 0), cap("1", "1e-6"))
    admit(price("0.01"), "ada", own, shared)
    # By B rho 0.02167 fits e tanh(e/2) up to e = 0.2086; by A there would be 1.
    found = refusal(price("0.5"), own, shared)
    assert "ada's own budget has 0.208" in found.what
    assert float(found.fix.removeprefix("ask for at most epsilon=")) == pytest.approx(0.2086, abs=1e-4)


def test_deltas_that_are_used_up_leave_nothing():
    # A's share of a millionth is 5e-7 and B's 2.5e-7; 4e-7 is spent of each
    spent = BudgetStatus(BudgetCharge(0, 4 * 10**11, 0, 4 * 10**11), cap("1", "1e-6"))
    asked = compute_charge(ApproximateDp(Fraction(1, 100), Fraction(2, 10**7)))
    found = refusal(asked, spent, None)
    assert found.what == "it costs delta 2e-07, and ada's own budget has delta 1e-07 left of 5e-07"
    assert "for more delta" in found.fix
    admit(price("0.01"), "ada", spent, None)  # without a delta there is room


def test_where_delta_alone_does_not_fit_it_is_delta_that_is_named():
    # epsilon 4.5 of 5 is left, which is ample; of delta there is none
    asked = compute_charge(ApproximateDp(Fraction(1, 2), Fraction(1, 10**9)))
    found = refusal(asked, BudgetStatus(price("0.5"), cap("5")), None)
    assert found.what == "it costs delta 1e-09, and ada's own budget has no delta"
    # where epsilon does not fit either, it is epsilon
    found = refusal(asked, BudgetStatus(price("4.75"), cap("5")), None)
    assert found.what == "it costs epsilon 0.5, delta 1e-09, and ada's own budget has 0.25 left of 5"


def test_gaussian_noise_that_fits_nowhere_is_refused_in_words():
    asked = compute_charge(GaussianNoise(Fraction(4), 1))  # rho 1/8
    found = refusal(asked, BudgetStatus(BudgetCharge.zero(), cap("1", "1e-6")), None)
    assert found.what == "it costs epsilon without bound, rho 0.125, and ada's own budget has 1 left of 1"
