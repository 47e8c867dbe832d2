"""What reserving, committing, failing and repeating cost, one fact at a time. Prices are in epsilon."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import pytest
from tests.ledger.conftest import REFUSED_BY_THE_DATABASE, by_hand, grains, limits, noise, price, rarely_on_postgres

from tacit.accounting.filters import LARGEST, BudgetCharge, compute_charge, compute_limits, is_admitted
from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused
from tacit.ledger.budget import BudgetLimits, Terms
from tacit.ledger.entries import GENESIS, EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.transaction import LedgerTransaction
from tacit.ledger.verify import check_receipt, verify
from tacit.privacy.loss import ApproximateDp, Compose, GaussianNoise, LaplaceNoise, encode

LIMITS = limits("3", ada="2", bob="2")
WITH_DELTA = limits("1", ada="1", bob="1", delta="1e-6")
GAUSSIAN = GaussianNoise(Fraction(100), 1)  # rho is 1/(2 * 100) = 0.005
NOTHING = BudgetCharge.zero()


@pytest.fixture
def ledger(place):
    # Without patience a question in flight is taken up at once.
    with Ledger(place, LIMITS, patience=0) as ledger:
        yield ledger
    with LedgerReader(place) as history:
        assert verify(history).problems == ()


def count(ledger: Ledger) -> int:
    return len(list(ledger.entries()))


# Charges


def test_a_new_ledger_has_spent_nothing(ledger):
    assert ledger.standing("ada").spent == ledger.overall().spent == NOTHING
    assert ledger.standing("ada").cap == LIMITS.analysts["ada"].caps
    assert ledger.overall().cap == LIMITS.overall
    assert ledger.standing("ada").remaining == grains("2")


@pytest.mark.slow
def test_the_first_entry_records_the_terms(ledger):
    (entry,) = ledger.entries()
    assert (entry.sequence, entry.kind, entry.previous) == (1, EntryKind.OPEN, GENESIS)
    assert Terms.decode(entry.note) == ledger.terms() == Terms(LIMITS)
    assert ledger.head() == entry.hash


def test_the_highest_caps_are_remembered_filter_by_filter(place):
    first = BudgetLimits.of(Fraction(3), Fraction(1, 10**9), {"ada": (Fraction(2), Fraction(0))})
    second = BudgetLimits.of(Fraction(1), Fraction(1, 10**6), {"bo": (Fraction(1), Fraction(0))})
    for limits_of_the_day in (first, second):
        Ledger(place, limits_of_the_day).close()
    with LedgerReader(place) as reader:
        highest = reader.highest_limits()
    most = zip(first.overall.grains, second.overall.grains, strict=True)
    assert highest[""].grains == tuple(max(pair) for pair in most)
    assert highest[""] not in {first.overall, second.overall}
    assert (highest["ada"], highest["bo"]) == (compute_limits(2, 0), compute_limits(1, 0))


def test_a_charge_counts_for_the_analyst_and_for_all(ledger):
    ledger.reserve("ada", noise("0.5"), "a")
    ledger.reserve("bob", noise("0.25"), "b")
    assert ledger.standing("ada").spent == price("0.5")
    assert ledger.standing("bob").spent == price("0.25")
    assert ledger.overall().spent == price("0.5") + price("0.25")


@rarely_on_postgres
@pytest.mark.slow
def test_the_price_of_a_composition_is_the_sum_rounded_up(ledger):
    # 1/3 + 1/3 = 2/3 = 666666666666.67 grains
    claim = ledger.reserve("ada", Compose((LaplaceNoise(Fraction(3), 1), LaplaceNoise(Fraction(6), 2))), "a")
    assert claim.receipt.cost.epsilon == 666666666667


@rarely_on_postgres
def test_a_claim_asks_for_one_pass_over_the_data(ledger):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    assert claim.stored is None
    assert (claim.entry, claim.analyst, claim.key) == (2, "ada", "a")


def test_a_receipt_shows_the_standings_right_after_the_charge(ledger):
    ledger.reserve("bob", noise("1"), "b")
    receipt = ledger.reserve("ada", noise("0.5"), "a").receipt
    assert (receipt.entry, receipt.analyst, receipt.key, receipt.repeat) == (3, "ada", "a", False)
    assert receipt.charged == receipt.cost == price("0.5")
    assert receipt.analyst_budget.remaining == grains("1.5")  # 2 - 0.5
    assert receipt.overall_budget.remaining == grains("1.5")  # 3 - 1 - 0.5
    assert receipt.head == ledger.head()
    assert receipt.time.endswith("+00:00")
    assert (receipt.signature, receipt.request) == ("", "")


@pytest.mark.slow
def test_an_entry_says_what_was_done(ledger):
    claim = ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    _, reserve, commit = ledger.entries()
    assert (reserve.kind, reserve.analyst, reserve.key, reserve.loss) == (
        EntryKind.RESERVE,
        "ada",
        "a",
        encode(noise("0.5")),
    )
    assert reserve.charge == reserve.shared_charge == price("0.5")
    assert (commit.kind, commit.claim, commit.charge) == (EntryKind.COMMIT, reserve.sequence, NOTHING)
    assert commit.answer_digest == hashlib.sha256(b"12").hexdigest()
    assert commit.previous == reserve.hash
    assert claim.receipt.head == commit.hash == ledger.head()


@rarely_on_postgres
def test_a_cap_can_be_spent_to_the_last_grain(ledger):
    ledger.reserve("ada", noise("2"), "a")
    assert ledger.standing("ada").remaining == 0
    with pytest.raises(Refused) as refusal:
        ledger.reserve("ada", noise("0.000000000001"), "b")
    assert refusal.value.code is ErrorCode.BUDGET


@rarely_on_postgres
def test_the_overall_cap_binds_where_the_own_cap_does_not(ledger):
    ledger.reserve("ada", noise("2"), "a")
    with pytest.raises(Refused, match="shared by all"):  # 2 + 1.5 > 3, although bob has 2 left
        ledger.reserve("bob", noise("1.5"), "b")
    ledger.reserve("bob", noise("1"), "b")


def test_a_refusal_writes_nothing(ledger):
    before = list(ledger.entries())
    with pytest.raises(Refused):
        ledger.reserve("ada", noise("2.5"), "a")
    assert list(ledger.entries()) == before
    assert ledger.overall().spent == NOTHING


def test_a_price_beyond_any_database_integer_is_refused(ledger):
    with pytest.raises(Refused):
        ledger.reserve("ada", noise("1e30"), "a")


@rarely_on_postgres
def test_an_unknown_analyst_is_refused(ledger):
    for analyst in ("eve", ""):
        for call in (
            lambda analyst=analyst: ledger.reserve(analyst, noise("0.1"), "a"),
            lambda analyst=analyst: ledger.standing(analyst),
        ):
            with pytest.raises(Refused) as refusal:
                call()
            assert refusal.value.code is ErrorCode.UNKNOWN_ANALYST


@rarely_on_postgres
def test_a_loss_cannot_give_budget_back(ledger):
    with pytest.raises(ParameterError):
        ledger.reserve("ada", LaplaceNoise(Fraction(-1), 1), "a")


@pytest.mark.slow
def test_receipts_are_signed_where_there_is_a_key(place, key, witness):
    with Ledger(place, LIMITS, key=key, witness=witness) as ledger:
        claim = ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
        repeat = ledger.reserve("ada", noise("0.5"), "a")
        for receipt in (claim.receipt, repeat.receipt):
            assert check_receipt(ledger, receipt.to_dict()) == []
        assert verify(ledger, witness).problems == ()


# The second filter


@pytest.fixture
def generous(place):
    with Ledger(place, WITH_DELTA) as ledger:
        yield ledger
        assert verify(ledger).problems == ()


@pytest.mark.slow
def test_many_small_questions_go_beyond_the_sum_of_epsilons(generous):
    # By A 1 / 0.02 = 50. By B rho is 0.02 tanh 0.01 = 0.00019999 of 0.021669: 108.
    small = noise("0.02")
    assert WITH_DELTA.overall.rho // compute_charge(small).rho == 108
    for number in range(108):
        generous.reserve("ada", small, f"{number}")
    assert generous.standing("ada").spent == BudgetCharge(*(108 * grain for grain in compute_charge(small).grains))
    assert generous.standing("ada").spent.epsilon == grains("2.16")
    # What is left of rho, 0.0000703, fits e tanh(e/2) up to e = 0.0118.
    with pytest.raises(Refused) as refusal:
        generous.reserve("ada", small, "one more")
    assert refusal.value.fix.startswith("ask for at most epsilon=0.0118")


@rarely_on_postgres
def test_filter_a_counts_what_filter_b_admitted(generous):
    # 60 of 0.02 are 1.2, beyond A's cap of 1, so that a question of 0.3 is B's to admit, and its rho is 0.045.
    for number in range(60):
        generous.reserve("ada", noise("0.02"), f"{number}")
    with pytest.raises(Refused):
        generous.reserve("ada", noise("0.3"), "large")


def test_filter_b_counts_what_filter_a_admitted(generous):
    # One of 0.5 costs rho 0.122, beyond B's cap, so that A has 0.5 left: 25 of 0.02.
    generous.reserve("ada", noise("0.5"), "large")
    for number in range(25):
        generous.reserve("ada", noise("0.02"), f"{number}")
    with pytest.raises(Refused, match="has 0 left of 1"):
        generous.reserve("ada", noise("0.02"), "one more")


@rarely_on_postgres
def test_both_filters_count_deltas(generous):
    # Of a millionth A's share is 5e-7 and B's 2.5e-7. At 1e-7 each A admits 5.
    keys = ApproximateDp(Fraction(1, 50), Fraction(1, 10**7))
    for number in range(5):
        generous.reserve("ada", keys, f"{number}")
    with pytest.raises(Refused):
        generous.reserve("ada", keys, "one more")
    assert generous.overall().spent.delta_a == generous.overall().spent.delta_b == 5 * 10**11


@rarely_on_postgres
@pytest.mark.slow
def test_filter_b_alone_counts_deltas(generous):
    # 60 of 0.02 are 1.2, beyond A's cap of 1. B then admits 2 of 1e-7.
    keys = ApproximateDp(Fraction(1, 50), Fraction(1, 10**7))
    for number in range(60):
        generous.reserve("ada", noise("0.02"), f"{number}")
    for number in range(2):
        generous.reserve("ada", keys, f"key {number}")
    with pytest.raises(Refused):
        generous.reserve("ada", keys, "one more")
    generous.reserve("ada", noise("0.02"), "without a delta")


@rarely_on_postgres
def test_gaussian_noise_without_a_delta_is_filter_b_s_to_admit(generous):
    # 0.021669 / 0.005 = 4.3
    for number in range(4):
        claim = generous.reserve("ada", GAUSSIAN, f"{number}")
        assert claim.receipt.charged == BudgetCharge(LARGEST, 0, 5 * 10**12, 0)
    with pytest.raises(Refused):
        generous.reserve("bob", GAUSSIAN, "one more")
    # A remembers that it cannot hold these: nothing that B refuses is admitted any longer.
    with pytest.raises(Refused):
        generous.reserve("bob", noise("0.5"), "large")
    assert generous.overall().spent == BudgetCharge(LARGEST, 0, 2 * 10**13, 0)


def test_gaussian_noise_with_a_delta_is_held_by_both_filters(generous):
    # A's share of a millionth is 5e-7. At 1e-7 each the epsilon is 0.45: A holds 2, and B by rho 4.
    delta, spent = Fraction(1, 10**7), NOTHING
    one = compute_charge(GAUSSIAN, delta)
    assert (one.delta_a, one.delta_b) == (10**11, 0)
    asked = 0
    while is_admitted(spent, one, WITH_DELTA.overall):
        generous.reserve("ada", GAUSSIAN, f"{asked}", delta=delta)
        spent, asked = spent + one, asked + 1
    assert asked == 4
    with pytest.raises(Refused):
        generous.reserve("ada", GAUSSIAN, "one more", delta=delta)
    assert generous.overall().spent == spent


@rarely_on_postgres
def test_without_delta_gaussian_noise_is_never_admitted(ledger):
    with pytest.raises(Refused, match="without bound"):
        ledger.reserve("ada", GAUSSIAN, "a")


# The database's own locks


@pytest.fixture
def used(place):
    """A ledger with a delta, in which one question was answered."""
    with Ledger(place, WITH_DELTA) as ledger:
        ledger.commit(ledger.reserve("ada", noise("0.02"), "a"), b"12")
    return place


@pytest.mark.slow
@pytest.mark.parametrize(
    ("statement", "lock"),
    [
        ("UPDATE entries SET note = 'x'", "entries_stay"),
        ("DELETE FROM entries", "entries_remain"),
        ("UPDATE answers SET answer = answer", "answers_stay"),
        ("DELETE FROM answers", "answers_remain"),
        ("DELETE FROM totals", "totals_remain"),
        ("UPDATE totals SET rho = rho - 1 WHERE who = 'ada'", "totals_grow"),
        ("UPDATE totals SET epsilon = cap_epsilon + 1, rho = cap_rho + 1", "totals_are_capped"),
        ("UPDATE totals SET epsilon = cap_epsilon + 1, delta_b = cap_delta_b + 1", "totals_are_capped"),
        ("UPDATE totals SET delta_a = cap_delta_a + 1, rho = cap_rho + 1", "totals_are_capped"),
        ("UPDATE totals SET delta_a = cap_delta_a + 1, delta_b = cap_delta_b + 1", "totals_are_capped"),
    ],
)
def test_the_database_itself_refuses_what_the_ledger_never_does(used, statement, lock):
    before = by_hand(used, "SELECT * FROM totals"), by_hand(used, "SELECT * FROM entries")
    with pytest.raises(REFUSED_BY_THE_DATABASE, match=lock):
        by_hand(used, statement)
    assert (by_hand(used, "SELECT * FROM totals"), by_hand(used, "SELECT * FROM entries")) == before


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE totals SET epsilon = cap_epsilon + 1, delta_a = cap_delta_a + 1",  # B is within its caps
        "UPDATE totals SET rho = cap_rho + 1, delta_b = cap_delta_b + 1",  # A is
        "UPDATE totals SET cap_epsilon = 0, cap_rho = 0",  # caps may be lowered below what is spent
    ],
)
def test_the_database_lets_one_filter_be_passed(used, statement):
    by_hand(used, statement)


# Answers and repeats


def test_a_repeat_is_free_and_writes_nothing(ledger):
    first = ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    before = list(ledger.entries())
    claim = ledger.reserve("ada", noise("0.5"), "a")
    assert claim.stored == b"12"
    assert claim.receipt.repeat
    assert (claim.receipt.charged, claim.receipt.cost) == (NOTHING, price("0.5"))
    assert ledger.standing("ada").spent == price("0.5")
    assert list(ledger.entries()) == before
    assert (claim.receipt.entry, claim.receipt.head) == (first.entry, first.receipt.head)  # the charge that paid


def test_another_analyst_pays_for_a_stored_answer_once_and_alone(ledger):
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    claims = [ledger.reserve("bob", noise("0.5"), "a") for _ in range(3)]
    assert [claim.stored for claim in claims] == [b"12"] * 3
    assert [claim.receipt.charged for claim in claims] == [price("0.5"), NOTHING, NOTHING]
    assert ledger.standing("bob").spent == price("0.5")
    assert ledger.overall().spent == price("0.5")


@rarely_on_postgres
def test_another_analyst_cannot_see_an_answer_beyond_their_cap(ledger):
    ledger.reserve("bob", noise("1.5"), "b")
    ledger.commit(ledger.reserve("ada", noise("1"), "a"), b"12")
    with pytest.raises(Refused, match=r"bob's own budget has 0\.5 left"):
        ledger.reserve("bob", noise("1"), "a")


@rarely_on_postgres
def test_a_stored_answer_is_shown_although_nothing_is_left_for_all(ledger):
    ledger.commit(ledger.reserve("ada", noise("1"), "a"), b"12")
    ledger.reserve("ada", noise("1"), "b")
    ledger.reserve("bob", noise("1"), "c")  # 1 + 1 + 1 = 3, the overall cap
    assert ledger.reserve("bob", noise("1"), "a").stored == b"12"
    assert ledger.reserve("ada", noise("1"), "a").stored == b"12"
    with pytest.raises(Refused, match="bob's own budget has 0 left"):
        ledger.reserve("bob", noise("0.1"), "d")


@rarely_on_postgres
def test_the_same_key_at_another_loss_is_another_question(ledger):
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    assert ledger.reserve("ada", noise("0.25"), "a").stored is None
    assert ledger.standing("ada").spent == price("0.5") + price("0.25")


def test_the_first_writer_wins(ledger):
    first, second = ledger.reserve("ada", noise("0.5"), "a"), ledger.reserve("bob", noise("0.5"), "a")
    assert ledger.commit(second, b"12").stored == b"12"
    assert ledger.commit(first, b"13").stored == b"12"
    assert ledger.reserve("ada", noise("0.5"), "a").stored == b"12"


@pytest.mark.slow
def test_committing_twice_is_harmless(ledger):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    done = ledger.commit(claim, b"12")
    before = count(ledger)
    assert ledger.commit(claim, b"13") == done
    assert ledger.commit(done, b"14") == done
    assert count(ledger) == before


@pytest.mark.slow
@pytest.mark.parametrize("answer", [b"", b"\x00", bytes(range(256)) * 40])
def test_any_bytes_are_an_answer(ledger, answer):
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), answer)
    assert ledger.reserve("ada", noise("0.5"), "a").stored == answer


# Failures


def test_a_failure_keeps_its_charge_and_asks_for_another(ledger):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    ledger.fail(claim)
    ledger.fail(claim)
    assert [entry.kind for entry in ledger.entries()] == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.FAIL]
    assert ledger.standing("ada").spent == price("0.5")
    assert ledger.reserve("ada", noise("0.5"), "a").stored is None
    assert ledger.standing("ada").spent == price("0.5") + price("0.5")


def test_what_failed_cannot_be_committed(ledger):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    ledger.fail(claim)
    before = count(ledger)
    with pytest.raises(Failed):
        ledger.commit(claim, b"12")
    assert count(ledger) == before


def test_what_is_committed_does_not_fail(ledger):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    done = ledger.commit(claim, b"12")
    ledger.fail(claim)
    ledger.fail(done)
    assert list(ledger.entries())[-1].kind is EntryKind.COMMIT


@rarely_on_postgres
def test_who_paid_for_a_failure_pays_for_the_answer_of_another(ledger):
    ledger.fail(ledger.reserve("bob", noise("0.5"), "a"))
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    assert ledger.reserve("bob", noise("0.5"), "a").receipt.charged == price("0.5")


def test_a_claim_of_another_ledger_is_not_accepted(ledger, tmp_path):
    ledger.reserve("bob", noise("0.5"), "b")
    with Ledger(tmp_path / "other", LIMITS) as other:
        claim = other.reserve("ada", noise("0.5"), "a")
    for use in (lambda: ledger.commit(claim, b"12"), lambda: ledger.fail(claim)):
        with pytest.raises(ParameterError):
            use()


# Opening again


@pytest.mark.slow
def test_all_is_there_after_opening_again(ledger, place):
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    entries, head = list(ledger.entries()), ledger.head()
    ledger.close()
    ledger.close()
    with Ledger(place, LIMITS) as again:
        assert list(again.entries()) == entries  # equal terms are not written again
        assert again.head() == head
        assert again.reserve("ada", noise("0.5"), "a").stored == b"12"
    with pytest.raises(LedgerError, match="is closed"):
        ledger.head()


@rarely_on_postgres
def test_a_lowered_cap_forgets_nothing_and_admits_nothing(ledger, place):
    ledger.commit(ledger.reserve("ada", noise("1.5"), "a"), b"12")
    with Ledger(place, limits("1", ada="1", bob="1")) as again:
        assert again.standing("ada").spent == price("1.5")
        assert again.standing("ada").remaining == 0
        assert again.reserve("ada", noise("1.5"), "a").stored == b"12"
        for analyst in ("ada", "bob"):  # bob has 1 left of his own, and all together nothing
            with pytest.raises(Refused):
                again.reserve(analyst, noise("0.1"), "b")


@pytest.mark.slow
def test_a_lowered_cap_binds_a_ledger_that_is_already_open(ledger, place):
    with Ledger(place, limits("3", ada="0.5")):
        pass
    assert ledger.standing("ada").cap == compute_limits(Fraction(1, 2), Fraction(0))
    with pytest.raises(Refused):
        ledger.reserve("ada", noise("1"), "a")
    with pytest.raises(Refused):  # bob was taken out
        ledger.reserve("bob", noise("0.1"), "a")


def test_a_raised_cap_does_not_bind_a_ledger_that_was_told_less(ledger, place):
    with Ledger(place, limits("30", ada="20", bob="20")) as richer:
        with pytest.raises(Refused):
            ledger.reserve("ada", noise("2.5"), "a")
        richer.reserve("ada", noise("2.5"), "a")


def test_changed_terms_are_written_down(ledger, place):
    raised = limits("4", ada="2", eve="1")
    with Ledger(place, raised) as again:
        assert [Terms.decode(entry.note).limits for entry in again.entries()] == [LIMITS, raised]
        again.reserve("eve", noise("1"), "a")


@rarely_on_postgres
def test_who_is_named_again_goes_on_with_what_was_spent(ledger, place):
    ledger.reserve("bob", noise("1.5"), "a")
    with Ledger(place, limits("3", ada="2")) as without:
        assert without.standing("bob").spent == price("1.5")
        assert without.standing("bob").remaining == 0
    with Ledger(place, LIMITS) as again:
        assert again.standing("bob").remaining == grains("0.5")


def test_another_scope_is_another_ledger(place):
    with Ledger(place, limits("3", ada="2", scope={"neighbors": "add-remove", "unit of visits": "patient"})):
        pass
    for changed in ({"neighbors": "replace"}, {"unit of visits": "row"}):
        with pytest.raises(LedgerError) as error:
            Ledger(place, limits("3", ada="2", scope=changed))
        assert error.value.code is ErrorCode.LEDGER_SCOPE
    # A table may be added, and one that was taken out may come back, with the unit that it had.
    for unit, code in (("row", ErrorCode.LEDGER_SCOPE), ("(public)", ErrorCode.LEDGER_SCOPE), ("patient", None)):
        with Ledger(place, limits("3", ada="2", scope={"neighbors": "add-remove", "unit of labs": "patient"})):
            pass
        back = limits("3", ada="2", scope={"unit of visits": unit})
        if code is None:
            Ledger(place, back).close()
        else:
            with pytest.raises(LedgerError) as error:
                Ledger(place, back)
            assert error.value.code is code


@rarely_on_postgres
@pytest.mark.slow
def test_what_a_ledger_was_ever_a_promise_about_is_kept_through_every_opening(place):
    # Whatever was left out in between, in whatever order.
    first = {"neighbors": "replace", "unit of a": "x", "unit of b": "y"}
    Ledger(place, limits("3", ada="2", scope=first)).close()
    for left_out in ({}, {"neighbors": "replace"}, {"unit of a": "x"}, {"unit of c": "z"}):
        Ledger(place, limits("3", ada="2", scope=left_out)).close()
        for name in (*first, "unit of c"):
            if name == "unit of c" and left_out != {"unit of c": "z"}:
                continue
            with pytest.raises(LedgerError) as error:
                Ledger(place, limits("3", ada="2", scope={name: "another"}))
            assert error.value.code is ErrorCode.LEDGER_SCOPE
            assert name in error.value.what


@rarely_on_postgres
def test_a_table_in_other_letters_is_the_same_table(place):
    Ledger(place, limits("3", ada="2", scope={"unit of visits": "patient"})).close()
    for name in ("Visits", "VISITS"):
        with pytest.raises(LedgerError) as error:
            Ledger(place, limits("3", ada="2", scope={f"unit of {name}": "row"}))
        assert error.value.code is ErrorCode.LEDGER_SCOPE
        Ledger(place, limits("3", ada="2", scope={f"unit of {name}": "patient"})).close()


@rarely_on_postgres
def test_a_ledger_that_counted_by_two_units_is_refused(place):
    # Written by an earlier version, which remembered the scope of the last opening only.
    with Ledger(place, limits("3", ada="2", scope={"unit of a": "x"})) as ledger, ledger._writing() as book:
        book.record(Terms(limits("3", ada="2", scope={"unit of a": "row"})))
    for unit in ("x", "row"):
        with pytest.raises(LedgerError) as error:
            Ledger(place, limits("3", ada="2", scope={"unit of a": unit}))
        assert error.value.code is ErrorCode.LEDGER_SCOPE


@rarely_on_postgres
def test_a_public_table_may_become_private_and_not_the_other_way_round(place):
    for unit in ("(public)", "patient"):
        Ledger(place, limits("3", ada="2", scope={"unit of a": unit})).close()
    with pytest.raises(LedgerError) as error:
        Ledger(place, limits("3", ada="2", scope={"unit of a": "(public)"}))
    assert error.value.code is ErrorCode.LEDGER_SCOPE


# Reading


def test_a_reader_sees_all_and_changes_nothing(ledger, place):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    with LedgerReader(place) as history:
        assert list(history.entries()) == list(ledger.entries())
        assert history.standing("ada") == ledger.standing("ada")
        assert history.overall() == ledger.overall()
        assert history.terms() == ledger.terms()
        assert verify(history) == verify(ledger)
        ledger.commit(claim, b"12")
        assert history.head() == ledger.head()


def test_a_reader_makes_no_ledger(place):
    with pytest.raises(LedgerError) as error:
        LedgerReader(place)
    assert error.value.code is ErrorCode.LEDGER_MISSING


@rarely_on_postgres
@pytest.mark.slow
def test_reading_goes_on_over_many_pages(ledger):
    with ledger.store.write() as session:
        book = LedgerTransaction(session)
        for number in range(1100):
            book.append(EntryKind.RESERVE, analyst="ada", key=f"{number}", charge=price("0.001"), shared=1)
    assert [entry.sequence for entry in ledger.entries()] == list(range(1, 1102))


@pytest.mark.slow
def test_the_work_of_a_charge_does_not_grow(tmp_path):
    steps = 0

    def step() -> bool:
        nonlocal steps
        steps += 1
        return False

    with Ledger(tmp_path / "ledger", LIMITS) as ledger:
        ledger.store._connection.set_progress_handler(step, 1)

        def work(number: int) -> int:
            nonlocal steps
            steps = 0
            claim = ledger.reserve("ada", noise("0.001"), f"{number}", request=f"{number}")
            with ledger.hold(claim):
                ledger.commit(claim, b"12")
            ledger.reserve("ada", noise("0.001"), f"{number}", request=f"{number}")
            ledger.reserve("ada", noise("0.001"), f"{number}")
            return steps

        early = [work(number) for number in range(10)][-1]
        late = [work(number) for number in range(10, 300)][-1]
    # Steps of SQLite's machine; a scan of the 900 entries between would add thousands.
    assert late < early + 50


def test_a_former_key_counts_where_the_present_one_was_never_asked(tmp_path):
    with Ledger(tmp_path / "x.ledger", limits("10", ada="10")) as ledger:
        ledger.commit(ledger.reserve("ada", noise("1"), "old"), b"answer")
        assert ledger.knows_only("old", "new")
        assert not ledger.knows_only("old", "old")
        assert not ledger.knows_only("new", "old")


def test_only_a_ledger_that_was_made_with_keys_of_a_version_needs_no_look_for_former_ones(tmp_path):
    def former_lookup(name, version, limit="10"):
        with Ledger(tmp_path / name, limits(limit, ada=limit), key_version=version) as ledger:
            ledger.reserve("ada", noise("0.1"), f"{version}")
            found = ledger.former_lookup(2)
        with LedgerReader(tmp_path / name) as reader:
            assert (reader.former_lookup(2) is None) is (found is None)
            assert verify(reader).ok
        return found

    assert former_lookup("new.ledger", 2) is None
    assert former_lookup("new.ledger", 2, limit="9") is None  # other terms, written anew
    assert former_lookup("new.ledger", 0) is None  # opened by who does not say, such as `tacit tables unlock`
    assert former_lookup("old.ledger", 0) is not None
    assert former_lookup("old.ledger", 2) is not None  # it was made before
    assert former_lookup("former.ledger", 1) is not None
    assert former_lookup("former.ledger", 2) is not None
    assert former_lookup("later.ledger", 3) is None
