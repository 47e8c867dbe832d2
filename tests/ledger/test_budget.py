from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.accounting.filter import Amount, Standing
from tacit.errors import Code, ParameterError, Refused
from tacit.ledger.budget import LARGEST, Limits, admit, stricter

grains = st.integers(0, LARGEST)
amounts = st.builds(Amount, grains, grains)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1)


def cap(epsilon: str) -> Amount:
    return Amount.cap(Fraction(epsilon), Fraction(0))


def test_what_remains():
    # 3 - 0.5 = 2.5
    assert Standing(cap("0.5"), cap("3")).remaining == cap("2.5")


def test_what_remains_is_never_below_zero_in_either_coordinate():
    # The owner lowered the caps from (2, 5) to (1, 5): epsilon 1 - 2 < 0, delta 5 - 3 = 2
    assert Standing(Amount(2, 3), Amount(1, 5)).remaining == Amount(0, 2)
    assert Standing(Amount(1, 5), Amount(2, 3)).remaining == Amount(1, 0)


@given(amounts, st.dictionaries(names, amounts))
def test_limits_survive_being_written_down(overall, analysts):
    limits = Limits(overall, analysts)
    assert Limits.decode(limits.encode()) == limits


def test_equal_limits_have_equal_texts():
    one = Limits(cap("3"), {"ada": cap("1"), "bob": cap("2")})
    other = Limits(cap("3"), {"bob": cap("2"), "ada": cap("1")})
    assert one.encode() == other.encode()


@pytest.mark.parametrize("text", ["[]", "{}", '{"analysts":{},"overall":[1]}', '{"analysts":{"a":3},"overall":[1,2]}'])
def test_what_is_not_limits_is_a_value_error(text):
    with pytest.raises(ValueError, match=r"no limits|no amount"):
        Limits.decode(text)


def test_limits_do_not_follow_a_mapping_that_changes():
    analysts = {"ada": cap("1")}
    limits = Limits(cap("3"), analysts)
    analysts["ada"] = cap("100")
    assert limits.analysts["ada"] == cap("1")


@pytest.mark.parametrize("bad", [Amount(-1, 0), Amount(0, -1), Amount(LARGEST + 1, 0), Amount(0, LARGEST + 1)])
def test_a_cap_that_a_database_integer_cannot_hold_is_refused(bad):
    with pytest.raises(ParameterError):
        Limits(bad, {})
    with pytest.raises(ParameterError):
        Limits(cap("1"), {"ada": bad})


def test_an_analyst_has_a_name():
    with pytest.raises(ParameterError):
        Limits(cap("1"), {"": cap("1")})


def test_the_stricter_cap_is_within_both():
    assert stricter(Amount(1, 9), Amount(2, 3)) == Amount(1, 3)


def shown(amount):
    return f"epsilon {amount.shown}"


def test_amounts_in_words_are_exact():
    assert shown(cap("0.3")) == "epsilon 0.3"
    assert shown(Amount.charge(Fraction(1, 3), Fraction(0))) == "epsilon 0.333333333334"  # rounded up
    assert shown(cap("100")) == "epsilon 100"
    assert shown(Amount.zero()) == "epsilon 0"
    assert shown(Amount.cap(Fraction(1), Fraction(1, 10**9))) == "epsilon 1, delta 1e-09"


def test_a_refusal_says_whose_budget_and_what_would_fit():
    own, shared = Standing(cap("2.9"), cap("3")), Standing(cap("5"), cap("10"))
    with pytest.raises(Refused) as refusal:
        admit(cap("0.5"), "ada", own, shared)
    assert refusal.value.code is Code.BUDGET
    assert refusal.value.what == "it costs epsilon 0.5, and ada's own budget has 0.1 left of 3"
    assert refusal.value.fix == "ask for at most epsilon=0.1"


def test_a_refusal_by_the_shared_budget_says_so():
    own, shared = Standing(cap("0"), cap("3")), Standing(cap("9.75"), cap("10"))
    with pytest.raises(Refused) as refusal:
        admit(cap("0.5"), "ada", own, shared)
    assert "the budget shared by all analysts has 0.25 left of 10" in refusal.value.what
    assert refusal.value.fix == "ask for at most epsilon=0.25"


def test_what_would_fit_fits_both_budgets():
    # 0.4 is left of the own cap and 0.25 of the shared one
    own, shared = Standing(cap("2.6"), cap("3")), Standing(cap("9.75"), cap("10"))
    with pytest.raises(Refused) as refusal:
        admit(cap("0.5"), "ada", own, shared)
    assert refusal.value.fix == "ask for at most epsilon=0.25"
    admit(cap("0.25"), "ada", own, shared)


def test_where_nothing_remains_only_the_owner_can_help():
    with pytest.raises(Refused) as refusal:
        admit(cap("0.5"), "ada", Standing(cap("3"), cap("3")), None)
    assert "ask the data owner" in refusal.value.fix
