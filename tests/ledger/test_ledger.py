"""What reserving, committing, failing and repeating cost, one fact at a time. Prices are in epsilon."""

from __future__ import annotations

import hashlib
from fractions import Fraction

import pytest

from tacit.accounting.filter import Amount
from tacit.errors import Code, LedgerError, ParameterError, Refused
from tacit.ledger.budget import Limits
from tacit.ledger.entries import GENESIS, Kind
from tacit.ledger.history import History
from tacit.ledger.sqlite import Ledger
from tacit.ledger.verify import verify
from tacit.privacy.loss import Compose, LaplaceNoise, encode


def cap(epsilon: str) -> Amount:
    return Amount.cap(Fraction(epsilon), Fraction(0))


def noise(epsilon: str) -> LaplaceNoise:
    """Sensitivity 1 and scale 1/epsilon: a price of epsilon."""
    return LaplaceNoise(1 / Fraction(epsilon), 1)


LIMITS = Limits(cap("3"), {"ada": cap("2"), "bob": cap("2")})


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger", LIMITS) as ledger:
        yield ledger
    with History(tmp_path / "ledger") as history:
        assert verify(history).problems == ()


def test_a_new_ledger_has_spent_nothing(ledger):
    assert ledger.standing("ada").spent == ledger.overall().spent == Amount.zero()
    assert ledger.standing("ada").cap == cap("2")
    assert ledger.overall().cap == cap("3")


def test_the_first_entry_records_the_caps(ledger):
    (entry,) = ledger.entries()
    assert (entry.sequence, entry.kind, entry.previous) == (1, Kind.OPEN, GENESIS)
    assert Limits.decode(entry.note) == LIMITS
    assert ledger.head() == entry.hash


def test_a_charge_counts_for_the_analyst_and_for_all(ledger):
    ledger.reserve("ada", noise("0.5"), "a")
    ledger.reserve("bob", noise("0.25"), "b")
    assert ledger.standing("ada").spent == cap("0.5")
    assert ledger.standing("bob").spent == cap("0.25")
    assert ledger.overall().spent == cap("0.75")


def test_the_price_of_a_composition_is_the_sum_rounded_up(ledger):
    # 1/3 + 1/3 = 2/3 = 666666666666.67 grains
    claim = ledger.reserve("ada", Compose((LaplaceNoise(Fraction(3), 1), LaplaceNoise(Fraction(6), 2))), "a")
    assert claim.receipt.price == Amount(666666666667, 0)


def test_a_claim_asks_for_one_pass_over_the_data(ledger):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    assert claim.stored is None
    assert (claim.entry, claim.who, claim.key) == (2, "ada", "a")


def test_a_receipt_shows_the_standings_right_after_the_charge(ledger):
    ledger.reserve("bob", noise("1"), "b")
    claim = ledger.reserve("ada", noise("0.5"), "a")
    receipt = claim.receipt
    assert (receipt.entry, receipt.who, receipt.key, receipt.repeat) == (3, "ada", "a", False)
    assert receipt.charged == receipt.price == cap("0.5")
    assert receipt.analyst.remaining == cap("1.5")  # 2 - 0.5
    assert receipt.overall.remaining == cap("1.5")  # 3 - 1 - 0.5
    assert receipt.head == ledger.head()
    assert receipt.time.endswith("+00:00")


def test_an_entry_says_what_was_done(ledger):
    claim = ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    _, reserve, commit = ledger.entries()
    assert (reserve.kind, reserve.who, reserve.key, reserve.loss) == (Kind.RESERVE, "ada", "a", encode(noise("0.5")))
    assert reserve.charge == reserve.overall_charge == cap("0.5")
    assert (commit.kind, commit.claim, commit.charge) == (Kind.COMMIT, reserve.sequence, Amount.zero())
    assert commit.answer_digest == hashlib.sha256(b"12").hexdigest()
    assert commit.previous == reserve.hash
    assert claim.receipt.head == commit.hash == ledger.head()


def test_a_cap_can_be_spent_to_the_last_grain(ledger):
    ledger.reserve("ada", noise("2"), "a")
    assert ledger.standing("ada").remaining == Amount.zero()
    with pytest.raises(Refused) as refusal:
        ledger.reserve("ada", noise("0.000000000001"), "b")
    assert refusal.value.code is Code.BUDGET


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
    assert ledger.overall().spent == Amount.zero()


def test_a_price_beyond_any_database_integer_is_refused(ledger):
    with pytest.raises(Refused):
        ledger.reserve("ada", noise("1e30"), "a")


def test_an_unknown_analyst_is_refused(ledger):
    for call in (lambda: ledger.reserve("eve", noise("0.1"), "a"), lambda: ledger.standing("eve")):
        with pytest.raises(Refused) as refusal:
            call()
        assert refusal.value.code is Code.UNKNOWN_ANALYST
    with pytest.raises(Refused):
        ledger.reserve("", noise("0.1"), "a")
    with pytest.raises(Refused):
        ledger.standing("")


def test_a_loss_cannot_give_budget_back(ledger):
    with pytest.raises(ParameterError):
        ledger.reserve("ada", LaplaceNoise(Fraction(-1), 1), "a")


def test_a_repeat_is_free_and_written_down(ledger):
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    claim = ledger.reserve("ada", noise("0.5"), "a")
    assert claim.stored == b"12"
    assert claim.receipt.repeat
    assert (claim.receipt.charged, claim.receipt.price) == (Amount.zero(), cap("0.5"))
    assert ledger.standing("ada").spent == cap("0.5")
    assert list(ledger.entries())[-1].kind is Kind.REPEAT
    assert claim.receipt.entry == 4


def test_another_analyst_pays_for_a_stored_answer_once_and_alone(ledger):
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    claims = [ledger.reserve("bob", noise("0.5"), "a") for _ in range(3)]
    assert [claim.stored for claim in claims] == [b"12"] * 3
    assert [claim.receipt.charged for claim in claims] == [cap("0.5"), Amount.zero(), Amount.zero()]
    assert ledger.standing("bob").spent == cap("0.5")
    assert ledger.overall().spent == cap("0.5")


def test_another_analyst_cannot_see_an_answer_beyond_their_cap(ledger):
    ledger.reserve("bob", noise("1.5"), "b")
    ledger.commit(ledger.reserve("ada", noise("1"), "a"), b"12")
    with pytest.raises(Refused, match=r"bob's own budget has 0\.5 left"):
        ledger.reserve("bob", noise("1"), "a")


def test_a_stored_answer_is_shown_although_nothing_is_left_for_all(ledger):
    ledger.commit(ledger.reserve("ada", noise("2"), "a"), b"12")
    ledger.reserve("bob", noise("0.5"), "b")
    ledger.reserve("bob", noise("0.5"), "c")  # 2 + 0.5 + 0.5 = 3, the overall cap
    with pytest.raises(Refused, match="bob's own budget has 1 left"):
        ledger.reserve("bob", noise("2"), "a")
    assert ledger.reserve("ada", noise("2"), "a").stored == b"12"


def test_the_same_key_at_another_loss_is_another_question(ledger):
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    assert ledger.reserve("ada", noise("0.25"), "a").stored is None
    assert ledger.standing("ada").spent == cap("0.75")


def test_a_question_in_flight_is_charged_again(ledger):
    ledger.reserve("ada", noise("0.5"), "a")
    assert ledger.reserve("ada", noise("0.5"), "a").stored is None
    assert ledger.standing("ada").spent == cap("1")


def test_the_first_writer_wins(ledger):
    first, second = ledger.reserve("ada", noise("0.5"), "a"), ledger.reserve("bob", noise("0.5"), "a")
    assert ledger.commit(second, b"12").stored == b"12"
    assert ledger.commit(first, b"13").stored == b"12"
    assert ledger.reserve("ada", noise("0.5"), "a").stored == b"12"


def test_committing_twice_is_harmless(ledger):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    done = ledger.commit(claim, b"12")
    count = len(list(ledger.entries()))
    assert ledger.commit(claim, b"13") == done
    assert ledger.commit(done, b"14") == done
    assert len(list(ledger.entries())) == count


def test_an_empty_answer_is_an_answer(ledger):
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"")
    assert ledger.reserve("ada", noise("0.5"), "a").stored == b""


def test_a_failure_keeps_its_charge_and_asks_for_another(ledger):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    ledger.fail(claim)
    ledger.fail(claim)
    assert [entry.kind for entry in ledger.entries()] == [Kind.OPEN, Kind.RESERVE, Kind.FAIL]
    assert ledger.standing("ada").spent == cap("0.5")
    assert ledger.reserve("ada", noise("0.5"), "a").stored is None
    assert ledger.standing("ada").spent == cap("1")


def test_what_failed_cannot_be_committed(ledger):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    ledger.fail(claim)
    with pytest.raises(ParameterError):
        ledger.commit(claim, b"12")


def test_what_is_committed_does_not_fail(ledger):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    done = ledger.commit(claim, b"12")
    ledger.fail(claim)
    ledger.fail(done)
    assert list(ledger.entries())[-1].kind is Kind.COMMIT


def test_who_paid_for_a_failure_sees_the_answer_of_another_for_nothing(ledger):
    ledger.fail(ledger.reserve("bob", noise("0.5"), "a"))
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    assert ledger.reserve("bob", noise("0.5"), "a").receipt.charged == Amount.zero()


def test_a_claim_of_another_ledger_is_not_accepted(ledger, tmp_path):
    ledger.reserve("bob", noise("0.5"), "b")
    with Ledger(tmp_path / "other", LIMITS) as other:
        claim = other.reserve("ada", noise("0.5"), "a")
    for use in (lambda: ledger.commit(claim, b"12"), lambda: ledger.fail(claim)):
        with pytest.raises(ParameterError):
            use()


def test_all_is_there_after_opening_again(ledger, tmp_path):
    ledger.commit(ledger.reserve("ada", noise("0.5"), "a"), b"12")
    entries, head = list(ledger.entries()), ledger.head()
    ledger.close()
    ledger.close()
    with Ledger(tmp_path / "ledger", LIMITS) as again:
        assert list(again.entries()) == entries  # equal caps are not written again
        assert again.head() == head
        assert again.reserve("ada", noise("0.5"), "a").stored == b"12"
    with pytest.raises(LedgerError, match="is closed"):
        ledger.head()


def test_a_lowered_cap_forgets_nothing_and_admits_nothing(ledger, tmp_path):
    ledger.commit(ledger.reserve("ada", noise("1.5"), "a"), b"12")
    lowered = Limits(cap("1"), {"ada": cap("1"), "bob": cap("1")})
    with Ledger(tmp_path / "ledger", lowered) as again:
        assert again.standing("ada").spent == cap("1.5")
        assert again.standing("ada").remaining == Amount.zero()
        assert again.reserve("ada", noise("1.5"), "a").stored == b"12"
        for who in ("ada", "bob"):  # bob has 1 left of his own, and all together nothing
            with pytest.raises(Refused):
                again.reserve(who, noise("0.1"), "b")
        assert verify(again).ok


def test_a_lowered_cap_binds_a_ledger_that_is_already_open(ledger, tmp_path):
    with Ledger(tmp_path / "ledger", Limits(cap("3"), {"ada": cap("0.5")})):
        pass
    assert ledger.standing("ada").cap == cap("0.5")
    with pytest.raises(Refused):
        ledger.reserve("ada", noise("1"), "a")
    with pytest.raises(Refused):  # bob was taken out
        ledger.reserve("bob", noise("0.1"), "a")


def test_a_raised_cap_does_not_bind_a_ledger_that_was_told_less(ledger, tmp_path):
    with Ledger(tmp_path / "ledger", Limits(cap("30"), {"ada": cap("20"), "bob": cap("20")})) as richer:
        with pytest.raises(Refused):
            ledger.reserve("ada", noise("2.5"), "a")
        richer.reserve("ada", noise("2.5"), "a")


def test_changed_caps_are_written_down(ledger, tmp_path):
    raised = Limits(cap("4"), {"ada": cap("2"), "eve": cap("1")})
    with Ledger(tmp_path / "ledger", raised) as again:
        assert [Limits.decode(entry.note) for entry in again.entries()] == [LIMITS, raised]
        again.reserve("eve", noise("1"), "a")


def test_a_reader_sees_all_and_changes_nothing(ledger, tmp_path):
    claim = ledger.reserve("ada", noise("0.5"), "a")
    with History(tmp_path / "ledger") as history:
        assert list(history.entries()) == list(ledger.entries())
        assert history.standing("ada") == ledger.standing("ada")
        assert history.overall() == ledger.overall()
        assert verify(history) == verify(ledger)
        ledger.commit(claim, b"12")
        assert history.head() == ledger.head()


def test_reading_goes_on_over_many_pages(ledger):
    for number in range(1100):
        ledger.reserve("ada", noise("0.001"), f"{number}")
    assert [entry.sequence for entry in ledger.entries()] == list(range(1, 1102))


def test_the_work_of_a_charge_does_not_grow(ledger):
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 1
        return False

    with ledger.file.read() as connection:
        connection.set_progress_handler(count, 1)

    def work(number: int) -> int:
        nonlocal steps
        steps = 0
        ledger.commit(ledger.reserve("ada", noise("0.001"), f"{number}"), b"12")
        ledger.reserve("ada", noise("0.001"), f"{number}")
        return steps

    early = [work(number) for number in range(10)][-1]
    late = [work(number) for number in range(10, 300)][-1]
    # Steps of SQLite's machine; a scan of the 900 entries between would add thousands.
    assert late < early + 50
