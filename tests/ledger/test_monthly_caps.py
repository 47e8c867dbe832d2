"""Caps that refresh every calendar month, and clocks that cannot be trusted."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.conftest import (
    MEMORY,
    REFUSED_BY_THE_DATABASE,
    by_hand,
    clock,
    fresh,
    grains,
    limits,
    noise,
    price,
    rarely_on_postgres,
)

from tacit.accounting.filters import BudgetCharge, is_within_basic
from tacit.errors import Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.verify import verify

MONTHLY = limits("10", ada="1", bob="1", monthly=["ada"])
LIFETIME = limits("10", ada="1", bob="1")
NOTHING = BudgetCharge.zero()


@pytest.fixture
def now():
    with clock() as set_to:
        set_to("2030-01-15")
        yield set_to


@pytest.fixture
def ledger(place, now):
    with Ledger(place, MONTHLY, patience=0) as ledger:
        yield ledger
    with LedgerReader(place) as history:
        assert verify(history).problems == ()


def left(ledger: LedgerReader, analyst: str = "ada") -> int:
    return ledger.standing(analyst).remaining


def test_a_new_month_refreshes_the_own_cap_and_never_the_overall_one(ledger, now):
    for number in range(10):
        now(f"2031-{number + 1:02d}-01")
        ledger.reserve("ada", noise("1"), f"{number}")
        with pytest.raises(Refused, match="ada's own budget has 0 left"):
            ledger.reserve("ada", noise("0.1"), "too much")
    now("2031-11-01")
    assert left(ledger) == grains("1")
    with pytest.raises(Refused, match="shared by all analysts has 0 left of 10"):
        ledger.reserve("ada", noise("0.1"), "too much")


@rarely_on_postgres
def test_a_month_begins_with_its_first_day(ledger, now):
    now("2030-01-31T23:59:59.999999")
    ledger.reserve("ada", noise("1"), "a")
    assert (ledger.month("ada"), left(ledger)) == ("2030-01", 0)
    now("2030-02-01")
    assert (ledger.month("ada"), left(ledger)) == ("2030-02", grains("1"))


def test_the_last_earlier_month_with_entries_is_known(ledger, now):
    assert ledger.total_before("ada") is None
    ledger.reserve("ada", noise("0.25"), "a")
    ledger.reserve("ada", noise("0.5"), "b")
    ledger.reserve("bob", noise("0.5"), "c")
    assert ledger.total_before("ada") is None  # January has not ended
    now("2030-03-01")
    found = ledger.total_before("ada")
    charged = sum((entry.charge for entry in ledger.entries() if entry.analyst == "ada"), NOTHING)
    assert (found.month, found.standing.spent) == ("2030-01", charged)
    assert found.standing.cap == MONTHLY.analysts["ada"].caps
    ledger.reserve("ada", noise("1"), "d")
    assert ledger.total_before("ada") == found  # March is this month
    now("2030-04-01")
    assert ledger.total_before("ada").month == "2030-03"
    assert ledger.total_before("bob") is None  # a cap that does not refresh


@rarely_on_postgres
def test_a_year_is_more_than_its_months(ledger, now):
    now("2030-12-31")
    ledger.reserve("ada", noise("1"), "a")
    now("2031-01-01")
    ledger.reserve("ada", noise("1"), "b")
    assert [entry.month for entry in ledger.entries()] == ["", "2030-12", "2031-01"]


@rarely_on_postgres
def test_a_cap_without_a_window_does_not_refresh(ledger, now):
    ledger.reserve("bob", noise("1"), "a")
    now("2031-01-01")
    assert (ledger.month("bob"), left(ledger, "bob")) == ("", 0)
    with pytest.raises(Refused):
        ledger.reserve("bob", noise("0.1"), "b")


@rarely_on_postgres
def test_a_month_counts_all_its_charges(ledger, now):
    ledger.reserve("ada", noise("0.25"), "a")
    now("2030-01-31")
    ledger.reserve("ada", noise("0.5"), "b")
    assert ledger.standing("ada").spent == price("0.25") + price("0.5")
    now("2030-03-01")
    ledger.reserve("ada", noise("0.125"), "c")
    assert ledger.standing("ada").spent == price("0.125")


@rarely_on_postgres
def test_a_repeat_is_free_in_every_month(ledger, now):
    ledger.commit(ledger.reserve("ada", noise("1"), "a"), b"12")
    now("2030-02-01")
    claim = ledger.reserve("ada", noise("1"), "a")
    assert (claim.stored, claim.receipt.charged) == (b"12", NOTHING)
    assert left(ledger) == grains("1")


@rarely_on_postgres
def test_another_s_answer_counts_in_the_month_in_which_it_is_shown(ledger, now):
    ledger.commit(ledger.reserve("bob", noise("0.5"), "b"), b"12")
    ledger.reserve("ada", noise("1"), "a")
    with pytest.raises(Refused):
        ledger.reserve("ada", noise("0.5"), "b")
    now("2030-02-01")
    assert ledger.reserve("ada", noise("0.5"), "b").receipt.charged == price("0.5")
    assert left(ledger) == grains("0.5")


@rarely_on_postgres
def test_an_answer_that_comes_a_month_later_does_not_move_its_charge(ledger, now):
    claim = ledger.reserve("ada", noise("1"), "a")
    now("2030-02-01")
    ledger.commit(claim, b"12")
    assert [entry.month for entry in ledger.entries()] == ["", "2030-01", "2030-01"]
    assert left(ledger) == grains("1")


@rarely_on_postgres
def test_a_charge_taken_up_a_month_later_is_not_charged_again(ledger, now):
    ledger.reserve("ada", noise("1"), "a")
    now("2030-02-01")
    ledger.commit(ledger.reserve("ada", noise("1"), "a"), b"12")
    assert left(ledger) == grains("1")


# The clock


def test_a_clock_set_back_gives_nothing_back(ledger, now):
    ledger.reserve("ada", noise("1"), "a")
    for earlier in ("2030-01-01", "2029-12-31", "1970-01-01"):
        now(earlier)
        assert (ledger.month("ada"), left(ledger)) == ("2030-01", 0)
        with pytest.raises(Refused):
            ledger.reserve("ada", noise("0.1"), "b")
        ledger.reserve("bob", noise("0.1"), f"{earlier}")  # and nothing breaks
    times = [entry.time for entry in ledger.entries()]
    assert times == sorted(times)


def test_a_clock_set_forward_and_back_grants_no_month_twice(ledger, now):
    ledger.reserve("ada", noise("0.5"), "a")
    now("2030-06-01")
    ledger.reserve("ada", noise("1"), "b")
    now("2030-01-20")
    assert left(ledger) == 0  # June stays, although half of January was left
    with pytest.raises(Refused):
        ledger.reserve("ada", noise("0.1"), "c")
    for later in ("2030-02-01", "2030-06-30"):
        now(later)
        with pytest.raises(Refused):
            ledger.reserve("ada", noise("0.1"), "c")
    now("2030-07-01")
    ledger.reserve("ada", noise("1"), "c")


def test_another_s_entry_in_a_later_month_keeps_it_for_all(ledger, now):
    now("2030-06-01")
    ledger.reserve("bob", noise("0.1"), "b")
    now("2030-01-20")
    ledger.reserve("ada", noise("1"), "a")
    assert list(ledger.entries())[-1].month == "2030-06"  # the time of the last entry stands
    now("2030-05-01")
    with pytest.raises(Refused):
        ledger.reserve("ada", noise("0.1"), "c")


def test_the_database_itself_keeps_the_later_month(ledger, place):
    ledger.reserve("ada", noise("1"), "a")
    ledger.close()
    for statement in (
        "UPDATE totals SET month = '2029-12' WHERE who = 'ada'",
        "UPDATE totals SET month = '2029-12', epsilon = 0 WHERE who = 'ada'",
        "UPDATE totals SET month = '', epsilon = 0 WHERE who = 'ada'",
        "UPDATE totals SET month = '2030-02', epsilon = cap_epsilon + 1 WHERE who = 'ada'",
    ):
        with pytest.raises(REFUSED_BY_THE_DATABASE, match=r"totals_grow|totals_are_capped"):
            by_hand(place, statement)


# Other terms


def test_a_cap_that_begins_to_refresh_keeps_what_was_spent_in_the_first_month(place, now):
    with Ledger(place, LIFETIME) as ledger:
        ledger.reserve("ada", noise("0.75"), "a")
    now("2030-03-10")
    with Ledger(place, MONTHLY) as ledger:
        assert (ledger.month("ada"), left(ledger)) == ("2030-03", grains("0.25"))
        with pytest.raises(Refused):
            ledger.reserve("ada", noise("0.5"), "b")
        now("2030-04-01")
        ledger.reserve("ada", noise("1"), "b")
        assert verify(ledger).problems == ()


@rarely_on_postgres
def test_a_cap_that_ceases_to_refresh_counts_all_months(ledger, place, now):
    for month in (1, 2, 3):
        now(f"2030-{month:02d}-20")
        ledger.reserve("ada", noise("0.25"), f"{month}")
    with Ledger(place, LIFETIME) as again:
        assert again.standing("ada").spent == price("0.25") + price("0.25") + price("0.25")
        assert (again.month("ada"), left(again)) == ("", grains("0.25"))
        again.reserve("ada", noise("0.25"), "last")
        now("2031-01-01")
        with pytest.raises(Refused):
            again.reserve("ada", noise("0.1"), "too much")
        assert again.overall().spent == again.standing("ada").spent  # what is carried is not charged to all again


@rarely_on_postgres
def test_terms_that_change_to_and_fro_forget_nothing(ledger, place, now):
    # 0.5 in each of two months. Lifetime: 1 of 1. Monthly again: 1 of 1 in that month, and then anew.
    for month in (1, 2):
        now(f"2030-{month:02d}-20")
        ledger.reserve("ada", noise("0.5"), f"{month}")
    with Ledger(place, LIFETIME) as again:
        assert left(again) == 0
    with Ledger(place, MONTHLY) as again:
        assert left(again) == 0
        now("2030-03-01")
        again.reserve("ada", noise("0.5"), "3")
    with Ledger(place, LIFETIME) as again:
        assert again.standing("ada").spent.epsilon == grains("1.5")
        assert [entry.kind for entry in again.entries()].count(EntryKind.CARRY) == 3


@rarely_on_postgres
def test_who_never_asked_may_have_other_terms(ledger, place, now):
    for terms in (LIFETIME, MONTHLY, LIFETIME):
        with Ledger(place, terms) as again:
            assert again.standing("ada").spent == NOTHING
    with Ledger(place, MONTHLY) as again:
        now("2030-05-01")
        again.reserve("ada", noise("1"), "a")


@rarely_on_postgres
def test_a_lowered_cap_binds_this_month_and_the_next(ledger, place, now):
    ledger.reserve("ada", noise("0.75"), "a")
    with Ledger(place, limits("10", ada="0.5", bob="1", monthly=["ada"])) as again:
        assert left(again) == 0
        with pytest.raises(Refused):
            again.reserve("ada", noise("0.1"), "b")
        now("2030-02-01")
        assert left(again) == left(ledger) == grains("0.5")
        with pytest.raises(Refused):
            ledger.reserve("ada", noise("0.75"), "b")  # through the ledger that is still open, too
        ledger.reserve("ada", noise("0.5"), "b")


def test_a_ledger_that_knows_of_no_window_grants_none(ledger, place, now):
    # Opened before the owner made the cap monthly, it goes on counting in the month it finds.
    with Ledger(place, LIFETIME) as old:
        with Ledger(place, MONTHLY) as new:
            new.reserve("ada", noise("1"), "a")
            now("2030-02-01")
            with pytest.raises(Refused):
                old.reserve("ada", noise("0.1"), "b")
            new.reserve("ada", noise("0.5"), "b")
        old.reserve("ada", noise("0.5"), "c")
        assert left(old) == 0


def test_a_ledger_that_knows_of_no_window_charges_in_the_current_month(ledger, place, now):
    # Otherwise what it tells would count in a month that is over, and the month's cap be there a second time.
    with Ledger(place, limits("10", ada="9", bob="1")) as old, Ledger(place, MONTHLY) as new:
        now("2030-03-10")
        old.reserve("ada", noise("0.5"), "a")
        new.reserve("ada", noise("0.5"), "b")
        for each in (old, new):
            with pytest.raises(Refused):
                each.reserve("ada", noise("0.1"), "c")
        assert left(new) == 0
        assert {entry.month for entry in new.entries() if entry.kind is EntryKind.RESERVE} == {"2030-03"}


def test_a_charge_in_a_month_that_is_over_is_told(tmp_path, now):
    with Ledger(tmp_path / "ledger", MONTHLY) as ledger:
        ledger.reserve("ada", noise("0.5"), "a")
        now("2030-02-01")
        asked = ledger.describe_request("ada", noise("0.5"), "b")
        with ledger._writing() as book:  # as an earlier version did
            ledger._write(book, EntryKind.RESERVE, asked, charge=asked.cost, month="2030-01", shared=1)
        (problem,) = verify(ledger).problems
        assert problem.startswith("entry 3: its month is over")


@rarely_on_postgres
def test_the_owner_may_take_a_name_out_and_put_it_back(ledger, place, now):
    ledger.reserve("ada", noise("0.75"), "a")
    with Ledger(place, limits("10", bob="1")) as without:
        assert left(without) == 0
    with Ledger(place, MONTHLY) as again:
        assert left(again) == grains("0.25")
        now("2030-02-01")
        assert left(again) == grains("1")


# Walks of the clock

steps = st.one_of(
    st.tuples(st.just("clock"), st.integers(0, 5)),
    st.tuples(st.just("ask"), st.sampled_from(["0.25", "0.5", "1"])),
    st.tuples(st.just("terms"), st.booleans()),
)


def walk(place: Path | str, path: list[tuple[str, object]]) -> None:
    """Each month's charges are within the cap, and so are all charges while the cap does not refresh."""
    with clock() as now:
        now("2030-03-15")
        ledger = Ledger(place, MONTHLY)
        for number, (kind, value) in enumerate(path):
            if kind == "clock":
                now(f"2030-{value + 1:02d}-15")
            elif kind == "ask":
                try:
                    ledger.reserve("ada", noise(value), f"{number}")
                except Refused:
                    assert left(ledger) < grains(value)
            else:
                ledger.close()
                ledger = Ledger(place, MONTHLY if value else LIFETIME)
        assert verify(ledger).problems == ()
        charged = defaultdict(lambda: NOTHING)
        for entry in ledger.entries():
            if entry.kind is EntryKind.RESERVE:
                charged[entry.month] += entry.charge
        assert all(is_within_basic(total, MONTHLY.analysts["ada"].caps) for total in charged.values())
        assert ledger.overall().spent.epsilon == sum(total.epsilon for total in charged.values())
        ledger.close()


@pytest.mark.slow
def test_no_walk_of_the_clock_grants_a_month_twice(full):
    @settings(max_examples=2000 if full else 30, deadline=None, derandomize=True, database=None)
    @given(st.lists(steps, max_size=25))
    def check(path):
        with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            walk(Path(folder) / "ledger", path)

    check()


@pytest.mark.slow
def test_no_walk_of_the_clock_grants_a_month_twice_on_postgres(postgres, full):
    @settings(max_examples=200 if full else 6, deadline=None, derandomize=True, database=None)
    @given(st.lists(steps, max_size=25))
    def check(path):
        walk(fresh(postgres), path)

    check()
