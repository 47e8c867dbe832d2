"""The owner accepts that entries are lost: whatever the history, no sum is below what was truly spent."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.ledger.conftest import clock, grains, limits, noise, price
from tests.support.counts import FULL
from tests.support.interrupts import at_every_point

from tacit.accounting.filters import BudgetCharge, FilterLimits, compute_limits, is_admitted
from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused
from tacit.ledger import recovery
from tacit.ledger.entries import ALL_ANALYSTS, EntryKind
from tacit.ledger.epochs import NO_SOURCE, EpochSource
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.recovery import accept_loss
from tacit.ledger.signing import SigningKey
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness

LIMITS = limits("1000", ada="1000", bo="1000")
ONE, NOTHING = noise("1"), BudgetCharge.zero()
BECAUSE = "the disk broke"


class Office:
    """A ledger in a folder, with what was truly spent of it kept apart."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path, self.witness = folder, folder / "ledger", Witness(folder / "witness")
        self.key = SigningKey.at(folder / "key", create=True)
        self.limits = LIMITS
        self.spent: dict[str, BudgetCharge] = {ALL_ANALYSTS: NOTHING, "ada": NOTHING, "bo": NOTHING}
        self.copies = itertools.count()

    def open(self, source: EpochSource = NO_SOURCE) -> Ledger:
        return Ledger(self.path, self.limits, key=self.key, witness=self.witness, source=source)

    def opens(self) -> bool:
        try:
            self.open().close()
        except LedgerError:
            return False
        return True

    def ask(self, ledger: Ledger, analyst: str, question: str, outcome: str = "answer", epsilon: str = "1") -> None:
        before = standings(ledger)
        claim = ledger.reserve(analyst, noise(epsilon), question)
        if outcome == "answer":
            ledger.commit(claim, question.encode())
        elif outcome == "fail":
            ledger.fail(claim)
        else:
            ledger._flying.clear()  # as if whoever asked were gone
        for name, spent in standings(ledger).items():
            grown = BudgetCharge(*(b - a for a, b in zip(before[name].grains, spent.grains, strict=True)))
            self.spent[name] += grown

    def copy(self) -> Path:
        return Path(shutil.copy(self.path, self.folder / f"copy{next(self.copies)}"))

    def copy_of_open(self, ledger: Ledger) -> Path:
        with ledger.store._lock:  # what stands in the log goes to the file
            ledger.store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return self.copy()

    def accept(self):
        return accept_loss(self.path, self.limits, key=self.key, witness=self.witness, because=BECAUSE)

    def check(self) -> None:
        """It opens, it is in order, and nothing that was spent is forgotten."""
        with self.open() as ledger:
            assert verify(ledger, self.witness).problems == ()
            for name, spent in standings(ledger).items():
                for found, true in zip(spent.grains, self.spent[name].grains, strict=True):
                    assert found >= true, name


def standings(ledger: LedgerReader) -> dict[str, BudgetCharge]:
    return {ALL_ANALYSTS: ledger.overall().spent} | {
        analyst: ledger.standing(analyst).spent for analyst in ("ada", "bo")
    }


@pytest.fixture
def office(tmp_path) -> Office:
    return Office(tmp_path)


questions = st.tuples(
    st.sampled_from(["ada", "bo"]),
    st.sampled_from("abcdef"),
    st.sampled_from(["answer", "answer", "fail", "gone"]),
    st.sampled_from(["1", "0.5"]),
)
histories = st.lists(st.tuples(st.lists(questions, max_size=6), st.integers(0, 9)), min_size=2, max_size=4)


@pytest.fixture
def many(full) -> int:
    return 400 if full else 25


@pytest.mark.slow
def test_no_sum_is_below_what_was_truly_spent(tmp_path_factory, many):
    # Questions, then a copy, again and again. Each time an earlier copy, or no file, may take the ledger's place.
    @settings(max_examples=many, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(histories)
    def check(history):
        office = Office(tmp_path_factory.mktemp("office"))
        copies: list[Path | None] = [None]
        for asked, which in history:
            with office.open() as ledger:
                for analyst, question, outcome, epsilon in asked:
                    office.ask(ledger, analyst, question, outcome, epsilon)
            copies.append(office.copy())
            chosen = copies[which % len(copies)]
            office.path.unlink()
            if chosen is not None:
                shutil.copy(chosen, office.path)
            if not office.opens():
                office.accept()
            office.check()

    check()


def test_an_older_copy_is_charged_what_grew_since(office):
    # The copy has ada's 1. Lost are bo's 2 and 1 for a stored answer that bo saw: 3, charged to everyone.
    with office.open() as ledger:
        office.ask(ledger, "ada", "a")
    copy = office.copy()
    with office.open() as ledger:
        office.ask(ledger, "bo", "b", epsilon="2")
        office.ask(ledger, "bo", "a")
    shutil.copy(copy, office.path)
    done = office.accept()
    lost = price("2") + price("1")
    assert done.charged == {ALL_ANALYSTS: lost, "ada": lost, "bo": lost}
    office.check()
    with office.open() as ledger:
        assert standings(ledger) == {ALL_ANALYSTS: price("1") + lost, "ada": price("1") + lost, "bo": lost}
        accepted = [entry for entry in ledger.entries() if entry.kind is EntryKind.ACCEPT]
        assert {entry.note for entry in accepted} == {BECAUSE}
        assert [entry.analyst for entry in accepted] == [ALL_ANALYSTS, "ada", "bo"]
        assert ledger.reserve("ada", ONE, "a").stored == b"a"  # what the copy holds is still there, and free
        assert ledger.commit(ledger.reserve("bo", ONE, "b"), b"new").stored == b"new"


def test_what_each_host_s_witness_saw_is_charged(office):
    # After a failover that lost the first host's 2, the second, idle until then, asks more questions: it has seen the
    # highest entry, and nothing that is missing.
    with office.open() as ledger:
        office.ask(ledger, "ada", "a")
    second = Witness(office.folder / "second")
    shutil.copy(office.witness.path, second.path)
    copy = office.copy()
    with office.open() as ledger:
        office.ask(ledger, "bo", "b", epsilon="2")
    first = Witness(office.folder / "first")
    shutil.copy(office.witness.path, first.path)
    shutil.copy(copy, office.path)
    office.witness.path.write_bytes(second.path.read_bytes())
    with office.open() as ledger:
        for question in ("c", "d", "e"):
            office.ask(ledger, "ada", question)
    assert office.witness.last().sequence > first.last().sequence
    with pytest.raises(ParameterError, match="nothing is missing"):
        office.accept()
    given = {"key": office.key, "witness": office.witness, "because": BECAUSE}
    done = accept_loss(office.path, LIMITS, **given, others=[first, second, first])
    assert done.charged == dict.fromkeys([ALL_ANALYSTS, "ada", "bo"], price("2"))
    office.check()
    with pytest.raises(LedgerError, match="is missing"):
        accept_loss(office.path, LIMITS, **given, others=[Witness(office.folder / "none")])


def test_a_lost_ledger_starts_with_all_that_was_spent(office):
    with office.open() as ledger:
        office.ask(ledger, "ada", "a")
        office.ask(ledger, "bo", "a")
    office.path.unlink()
    assert office.accept().charged == dict.fromkeys([ALL_ANALYSTS, "ada", "bo"], price("1") + price("1"))
    office.check()


def test_another_ledger_counts_its_own_and_the_lost(office, tmp_path):
    (tmp_path / "other").mkdir()
    other = Office(tmp_path / "other")
    with other.open() as ledger:
        for question in "xyz":
            other.ask(ledger, "bo", question)
    with office.open() as ledger:
        office.ask(ledger, "ada", "a")
    shutil.copy(other.path, office.path)
    office.accept()
    office.spent = {analyst: office.spent[analyst] + other.spent[analyst] for analyst in office.spent}  # both were told
    office.check()


def test_a_lost_witness_charges_every_cap_in_full(office):
    office.limits = limits("10", delta="1e-6", ada="8", bo="5")
    with office.open() as ledger:
        office.ask(ledger, "ada", "a")
    office.witness.path.unlink()
    assert office.accept().kept is None
    with office.open() as ledger:
        assert verify(ledger, office.witness).problems == ()
        assert at_least(ledger.overall().spent, office.limits.overall)
        for analyst, grant in office.limits.analysts.items():
            assert at_least(ledger.standing(analyst).spent, grant.caps)
            assert ledger.standing(analyst).spent.epsilon == grant.caps.epsilon
            with pytest.raises(Refused) as error:
                ledger.reserve(analyst, noise("0.000001"), "z")
            assert error.value.code is ErrorCode.BUDGET
        assert ledger.reserve("ada", ONE, "a").stored == b"a"


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta"), [("3", "1e-6"), ("6", "0"), ("6", "1e-6"), ("6", "1e-3")])
@pytest.mark.parametrize("before", ["0", "1e-6"])
def test_a_cap_that_is_raised_after_a_lost_witness_counts_all_that_may_have_been_asked(office, before, epsilon, delta):
    # With a delta of zero only epsilons bound what was asked, and with one, perhaps rho only. Each filter counts both.
    office.limits = limits("3", delta=before, ada="3", bo="1")
    with office.open() as ledger:
        for number in itertools.count():
            try:
                office.ask(ledger, "ada", f"{number}", epsilon="0.25")
            except Refused:
                break
    office.witness.path.unlink()
    office.path.unlink()
    office.accept()
    office.limits = limits(epsilon, delta=delta, ada=epsilon, bo="1")
    lost, cap = office.spent["ada"], office.limits.analysts["ada"].caps
    with office.open() as ledger:
        for number in range(40):
            try:
                office.ask(ledger, "ada", f"new {number}", epsilon="0.25")
            except Refused:
                break
        again = BudgetCharge(*(b - a for a, b in zip(lost.grains, office.spent["ada"].grains, strict=True)))
    # All of it is (epsilon, delta)-DP: by one filter over all questions, or as 3 at the delta of before and the rest.
    rest = compute_limits(Fraction(epsilon) - 3, max(Fraction(0), Fraction(delta) - Fraction(before)))
    assert is_admitted(lost, again, cap) or is_admitted(NOTHING, again, rest)


def at_least(spent: BudgetCharge, cap: FilterLimits) -> bool:
    return all(grain >= limit for grain, limit in zip(spent.grains, cap.grains, strict=True))


def test_a_lost_key_costs_nothing_while_the_witness_is_there(office):
    with office.open() as ledger:
        office.ask(ledger, "ada", "a")
    (office.folder / "key").unlink()
    office.key = SigningKey.at(office.folder / "key", create=True)
    with pytest.raises(LedgerError) as error:
        office.open()
    assert error.value.code is ErrorCode.LEDGER_KEY
    assert set(office.accept().charged.values()) == {NOTHING}
    office.check()
    with office.open() as ledger:
        assert standings(ledger) == office.spent
        assert ledger.terms().key == office.key.public


def test_a_cap_that_was_lowered_is_charged_as_high_as_it_was(office):
    office.limits = limits("9", ada="9", bo="9")
    with office.open() as ledger:
        office.ask(ledger, "ada", "a", epsilon="2")
        copy = office.copy_of_open(ledger)
        office.ask(ledger, "ada", "b", epsilon="5")
    shutil.copy(copy, office.path)
    office.witness.path.unlink()
    office.limits = limits("1", ada="1", bo="1")
    office.accept()
    office.check()
    with office.open() as ledger:
        assert [spent.epsilon for spent in standings(ledger).values()] == [grains("9")] * 3


def test_a_new_key_knows_which_epochs_are_over(office):
    with office.open(EpochSource(1, {"visits": "a"})) as ledger:
        office.ask(ledger, "ada", "of the first epoch")
    office.open(EpochSource(2, {"visits": "b"}, "digest")).close()
    lose_the_key(office)
    office.accept()
    with LedgerReader(office.path) as history:
        assert history.terms().source == EpochSource(2, {"visits": ""}, "digest")
    with pytest.raises(LedgerError, match="epoch 1 of visits is over: it was opened with epoch 2"):
        office.open(EpochSource(1, {"Visits": "a"}))
    office.open(EpochSource(2, {"visits": "c"})).close()  # nothing can tell "b" from "c" under the new key
    with pytest.raises(LedgerError, match="is not the data with which epoch 2 began"):
        office.open(EpochSource(2, {"visits": "b"}))
    office.check()


def test_a_lost_key_beside_a_witness_that_has_seen_nothing_charges_every_cap(office):
    with office.open() as ledger:
        copy = office.copy_of_open(ledger)
        office.ask(ledger, "ada", "a")
    shutil.copy(copy, office.path)
    begun_anew(office.witness)
    (office.folder / "key").unlink()
    office.key = SigningKey.at(office.folder / "key", create=True)
    office.accept()
    office.check()
    with office.open() as ledger:
        assert ledger.overall().remaining == ledger.standing("ada").remaining == 0


def test_an_older_copy_beside_a_witness_that_has_seen_nothing_is_refused(office):
    with office.open() as ledger:
        copies = [office.copy_of_open(ledger)]
        office.ask(ledger, "ada", "a")
        copies.append(office.copy_of_open(ledger))
        office.ask(ledger, "ada", "b")
    for copy in copies:
        shutil.copy(copy, office.path)
        begun_anew(office.witness)
        with pytest.raises(LedgerError) as error:
            office.open()
        assert error.value.code is ErrorCode.LEDGER_WITNESS
    office.accept()
    office.check()


def test_a_ledger_is_opened_though_whoever_made_it_or_named_its_witness_was_killed(office, monkeypatch):
    Ledger(office.path, office.limits, key=office.key).close()
    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(Ledger, "_note", lambda self, *given: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                office.open()
        assert office.opens()
        office.path.unlink()  # now one that has a witness from the start
        office.witness.path.unlink()
        (office.folder / "key").unlink()
        office.key = SigningKey.at(office.folder / "key", create=True)


def begun_anew(witness: Witness) -> None:
    witness.path.unlink()
    witness.create()


def test_charges_without_an_answer_fail(office):
    # Their answers may be among what was lost, so a second one must not be given.
    with office.open() as ledger:
        claim = ledger.reserve("ada", ONE, "a", request="mine")
    copy = office.copy()
    with office.open() as ledger:
        office.ask(ledger, "bo", "b")
    shutil.copy(copy, office.path)
    assert office.accept().failed == 1
    office.check()
    with office.open() as ledger:
        with pytest.raises(Failed):
            ledger.commit(claim, b"12")
        with pytest.raises(Failed):
            ledger.reserve("ada", ONE, "a", request="mine")


def test_a_lost_answer_is_a_loss_though_its_charge_is_there(office):
    # The copy was made between the charge and the answer: nothing is to be charged, and no second answer to be given.
    with office.open() as ledger:
        claim = ledger.reserve("ada", ONE, "a")
        copy = office.copy_of_open(ledger)
        ledger.commit(claim, b"12")
        office.spent |= standings(ledger)
    shutil.copy(copy, office.path)
    done = office.accept()
    assert set(done.charged.values()) == {NOTHING}
    assert done.failed == 1
    office.check()


def test_nothing_missing_is_refused_and_writes_nothing(office):
    with office.open() as ledger:
        office.ask(ledger, "ada", "a")
        head = ledger.head()
    with pytest.raises(ParameterError, match="nothing is missing"):
        office.accept()
    with office.open() as ledger:
        assert ledger.head() == head
        assert standings(ledger) == office.spent


@pytest.mark.parametrize("because", ["", "  "])
def test_a_loss_is_not_accepted_without_a_reason(office, because):
    office.open().close()
    with pytest.raises(ParameterError, match="no reason"):
        accept_loss(office.path, LIMITS, key=office.key, witness=office.witness, because=because)


def test_another_scope_is_not_a_loss(office):
    office.limits = limits("9", ada="9", bo="9", scope={"neighbors": "replace"})
    office.open().close()
    office.limits = limits("9", ada="9", bo="9", scope={"neighbors": "add-remove"})
    office.witness.path.unlink()
    with pytest.raises(LedgerError) as error:
        office.accept()
    assert error.value.code is ErrorCode.LEDGER_SCOPE


def test_every_old_witness_is_kept(office):
    for number in (1, 2):
        with office.open() as ledger:
            office.ask(ledger, "ada", "a" * number)
        before = office.witness.path.read_bytes()
        office.path.unlink()
        kept = office.accept().kept
        assert kept == office.folder / f"witness.{number}"
        assert kept.read_bytes() == before
        office.check()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("where", "what"),
    [(recovery, "_copy"), (Witness, "create"), (Witness, "note"), (Path, "replace"), (recovery, "sync_path")],
)
def test_an_interrupted_acceptance_is_done_again(office, monkeypatch, where, what):
    # The charges are on disk, and the witness may not have seen them: accepting again charges more, never less. It is
    # never a lost witness, which would charge every cap in full.
    with office.open() as ledger:
        office.ask(ledger, "ada", "a")
    office.path.unlink()

    def interrupted(*given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(where, what, interrupted)
        with pytest.raises(KeyboardInterrupt):
            office.accept()
    if what == "sync_path":
        assert office.opens()
    else:
        with pytest.raises(LedgerError) as error:
            office.open()
        assert error.value.code is ErrorCode.LEDGER_OLDER
        office.accept()
    office.check()
    with office.open() as ledger:
        assert ledger.overall().spent.epsilon <= price("3").epsilon


def test_a_witness_that_is_a_link_stays_where_it_is(office):
    with office.open() as ledger:
        office.ask(ledger, "ada", "a")
    other = office.folder / "other"
    other.mkdir()
    office.witness.path.rename(other / "seen")
    office.witness.path.symlink_to(other / "seen")
    office.path.unlink()
    assert office.accept().kept == other / "seen.1"
    office.check()
    assert office.witness.path.is_symlink()
    assert sorted(path.name for path in other.iterdir()) == ["seen", "seen.1"]


@pytest.mark.parametrize("lost", ["ledger", "witness"])
def test_what_was_lost_counts_in_the_month_in_which_it_is_accepted(office, lost):
    # ada may learn 5 a month. The copy is of January; in February 3 were spent, and lost.
    office.limits = limits("1000", ada="5", bo="1000", monthly=["ada"])
    with clock() as set_to:
        set_to("2030-01-10")
        with office.open() as ledger:
            ledger.commit(ledger.reserve("ada", ONE, "a"), b"12")
        copy = office.copy()
        set_to("2030-02-10")
        with office.open() as ledger:
            ledger.commit(ledger.reserve("ada", noise("3"), "b"), b"34")
        shutil.copy(copy, office.path)
        if lost == "witness":
            office.witness.path.unlink()
        office.accept()
        with office.open() as ledger:
            assert verify(ledger, office.witness).problems == ()
            assert ledger.month("ada") == "2030-02"
            assert ledger.standing("ada").spent.epsilon >= grains("3" if lost == "ledger" else "5")
            with pytest.raises(Refused):
                ledger.reserve("ada", noise("3"), "c")
        set_to("2030-03-10")
        with office.open() as ledger:
            assert ledger.standing("ada").spent == NOTHING


def lose_the_key(office: Office) -> None:
    """A new key stands where the ledger's own was."""
    (office.folder / "key").unlink()
    office.key = SigningKey.at(office.folder / "key", create=True)


@pytest.mark.slow
@pytest.mark.parametrize("what", ["ask", "accept"])
def test_a_loss_is_accepted_once_and_the_witness_has_seen_the_last_entry_whatever_others_do(what, tmp_path):
    # At any line of it, a process that runs asks, or another one accepts the loss too.
    outcomes: set[object] = set()

    def meanwhile() -> None:
        running.store._disconnect()  # it is opened anew, with a shorter wait
        running.store.wait = 0.001
        try:
            office.ask(running, "ada", "meanwhile") if what == "ask" else office.accept()
        except (LedgerError, ParameterError) as error:
            outcomes.add(error.code)
        else:
            outcomes.add("done")
        running._flying.clear()

    def work() -> None:
        nonlocal office, running
        office = Office(Path(tempfile.mkdtemp(dir=tmp_path)))
        with office.open() as running:
            office.ask(running, "ada", "a")
            lose_the_key(office)
            try:
                office.accept()
            except ParameterError as error:  # the other one was first
                outcomes.add(error.what)
        office.check()
        with LedgerReader(office.path) as history:
            entries = list(history.entries())
        assert office.witness.last().hash == entries[-1].hash
        assert [entry.kind for entry in entries].count(EntryKind.ACCEPT) == 3  # for both analysts, and for all together

    office = running = None
    assert list(at_every_point(work, lambda file: file == recovery.__file__, meanwhile, step=1 if FULL else 4))
    both = {"done", ErrorCode.LEDGER_BUSY}
    assert outcomes == both | (
        {ErrorCode.LEDGER_KEY} if what == "ask" else {ErrorCode.PARAMETER, "ledger: nothing is missing from it"}
    )


def test_a_process_with_the_lost_key_writes_nothing_more(office):
    with office.open() as running:
        office.ask(running, "ada", "a")
        claim = running.reserve("ada", ONE, "in flight")
        lose_the_key(office)
        office.accept()
        for work in (
            lambda: running.reserve("ada", ONE, "b"),
            lambda: running.commit(claim, b"12"),
            lambda: running.fail(claim),
        ):
            with pytest.raises(LedgerError, match="it goes on with another key") as caught:
                work()
            assert caught.value.code is ErrorCode.LEDGER_KEY
    office.check()
