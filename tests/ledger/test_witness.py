"""The witness: what it keeps, whatever was torn or came late, and what an older ledger meets."""

from __future__ import annotations

import os
import random
import shutil
from typing import Any

import pytest
from tests.ledger.conftest import fresh, limits, noise, price
from tests.support.forks import in_child, outcome

from tacit.accounting.filters import LARGEST, BudgetCharge
from tacit.errors import ErrorCode, LedgerError
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.transaction import LedgerTransaction
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness, WitnessedHead

LIMITS = limits("10", ada="10", bo="10")
ONE = noise("1")
HEADER, RECORD = 16, 80  # bytes: the name and a newline; 8 + 32 + 4 * 8 + 8


def sight(sequence: int) -> WitnessedHead:
    return WitnessedHead(sequence, f"{sequence:064x}", BudgetCharge(sequence, 0, LARGEST, 1))


@pytest.fixture
def made(witness) -> Witness:
    witness.create()
    return witness


def test_what_is_noted_is_seen_again_newest_first(made):
    assert made.last() is None
    for number in (1, 2, 5):
        made.note(sight(number))
    assert list(made.backwards()) == [sight(5), sight(2), sight(1)]
    assert made.path.stat().st_size == HEADER + 3 * RECORD


def test_who_comes_late_has_nothing_to_add(made):
    made.note(sight(5))
    made.note(sight(4))
    made.note(WitnessedHead(5, "ab" * 32, BudgetCharge.zero()))
    assert list(made.backwards()) == [sight(5)]


def test_a_witness_is_made_once(made):
    made.note(sight(1))
    made.create()
    assert made.last() == sight(1)


def test_an_empty_file_is_no_witness_yet(witness):
    # The machine stopped while it was made.
    witness.path.touch()
    assert not witness.exists()
    witness.create()
    assert witness.exists()
    assert witness.last() is None


@pytest.mark.parametrize("left", range(0, RECORD, 16))
def test_a_record_cut_short_is_passed_over_and_written_over(made, left):
    for number in (1, 2):
        made.note(sight(number))
    with made.path.open("r+b") as file:
        file.truncate(HEADER + RECORD + left)
    assert made.last() == sight(1)
    made.note(sight(3))
    assert list(made.backwards()) == [sight(3), sight(1)]


@pytest.mark.parametrize("at", [HEADER + RECORD, HEADER + RECORD + 40, HEADER + 2 * RECORD - 1])
def test_a_damaged_record_is_passed_over(made, at):
    for number in (1, 2):
        made.note(sight(number))
    data = bytearray(made.path.read_bytes())
    data[at] ^= 1
    made.path.write_bytes(data)
    assert list(made.backwards()) == [sight(1)]
    made.note(sight(3))
    assert list(made.backwards()) == [sight(3), sight(1)]


@pytest.mark.slow
def test_many_note_at_once_and_the_newest_stays(made):
    def work(seed: int) -> int:
        chance = random.Random(seed)
        for number in sorted(chance.sample(range(1, 1000), 40)):
            made.note(sight(number))
        return 0

    children = [in_child(lambda seed=seed: work(seed)) for seed in range(4)]
    assert [outcome(child) for child in children] == [0] * 4
    seen = [found.sequence for found in made.backwards()]
    noted = {number for seed in range(4) for number in random.Random(seed).sample(range(1, 1000), 40)}
    assert seen[0] == max(noted)
    assert seen == sorted(set(seen), reverse=True)
    assert set(seen) <= noted


@pytest.mark.parametrize("content", [None, b"", b"buy milk", b"tacit witness 2\n"])
@pytest.mark.parametrize("call", [lambda witness: witness.last(), lambda witness: witness.note(sight(1))])
def test_a_file_that_is_no_witness(witness, content, call):
    if content is not None:
        witness.path.write_bytes(content)
    with pytest.raises(LedgerError) as error:
        call(witness)
    assert error.value.code is ErrorCode.LEDGER_WITNESS
    assert error.value.fix


def test_every_entry_is_noted_before_anything_is_shown(place, witness):
    with Ledger(place, LIMITS, witness=witness) as ledger:
        for number in range(5):
            ledger.commit(ledger.reserve("ada", ONE, f"{number}"), b"12")
            (*_, last) = ledger.entries()
            assert witness.last() == WitnessedHead(last.sequence, last.hash, last.everyone)
        ledger.reserve("bo", ONE, "0")
        ledger.fail(ledger.reserve("ada", ONE, "z"))
        entries = list(ledger.entries())
    # Each entry is a transaction of its own: open, five times reserve and commit, repeat, reserve, fail.
    assert [found.sequence for found in witness.backwards()] == [entry.sequence for entry in entries][::-1]
    assert len(entries) == 14


def test_a_refusal_writes_nothing_to_the_witness(place, witness):
    with Ledger(place, LIMITS, witness=witness) as ledger:
        before = witness.path.read_bytes()
        with pytest.raises(Exception, match="costs"):
            ledger.reserve("ada", noise("11"), "a")
        assert witness.path.read_bytes() == before


def test_a_witness_may_be_named_later_and_not_left_out_again(place, witness):
    with Ledger(place, LIMITS) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "a"), b"12")
    with Ledger(place, LIMITS, witness=witness) as ledger:
        assert verify(ledger, witness).ok
        assert witness.last().everyone == price("1")
    with pytest.raises(LedgerError) as error:
        Ledger(place, LIMITS)
    assert error.value.code is ErrorCode.LEDGER_WITNESS


def test_a_ledger_ahead_of_its_witness_goes_on(place, witness):
    # The machine stopped after the database's commit and before the witness was told.
    with Ledger(place, LIMITS, witness=witness) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "a"), b"12")
    with witness.path.open("r+b") as file:
        file.truncate(HEADER + RECORD)
    with Ledger(place, LIMITS, witness=witness) as ledger:
        assert ledger.reserve("ada", ONE, "a").stored == b"12"
        assert verify(ledger, witness).ok
        assert witness.last().sequence == 3  # open, reserve, commit


def test_what_the_witness_has_not_seen_is_not_read(place, witness, monkeypatch):
    # An older copy could be put back, and nobody would notice that another answer is released in its place.
    def ask(ledger: Ledger, key: str, answer: bytes) -> None:
        ledger.commit(ledger.reserve("ada", ONE, key), answer)

    def full(sight: WitnessedHead, **given: Any) -> None:
        raise LedgerError(ErrorCode.LEDGER_FULL, "the disk of the witness is full", fix="free some space")

    with Ledger(place, LIMITS, witness=witness) as ledger, LedgerReader(place, witness=witness) as history:
        first, second = (ledger.describe_request("ada", ONE, key) for key in ("a", "b"))
        ask(ledger, "a", b"12")
        claim = ledger.reserve("ada", ONE, "b")
        with monkeypatch.context() as patch:
            patch.setattr(witness, "note", full)
            with pytest.raises(LedgerError):
                ledger.commit(claim, b"34")
            for each in (ledger, history):
                assert (each.newest_answer("ada"), each.paid_answer(first)) == (b"12", b"12")
                assert each.paid_answer(second) is None
        with LedgerReader(place) as blind:  # a reader that is told of no witness cannot know
            assert (blind.newest_answer("ada"), blind.paid_answer(first)) == (None, None)
        assert ledger.reserve("ada", ONE, "b").stored == b"34"  # the witness is told first
        for each in (ledger, history):
            assert each.newest_answer("ada") == each.paid_answer(second) == b"34"


def test_of_two_copies_that_go_on_only_one_is_noted(tmp_path, witness):
    # A host that fails over looks at the witness, and hangs; meanwhile one on the former server shows an answer.
    place, copy = tmp_path / "ledger", tmp_path / "copy"
    Ledger(place, LIMITS, witness=witness).close()
    shutil.copy(place, copy)
    with Ledger(place, LIMITS, witness=witness) as former, Ledger(copy, LIMITS, witness=witness) as promoted:

        def charge(book: LedgerTransaction) -> None:
            former.commit(former.reserve("ada", ONE, "a"), b"12")
            for key in "bcd":
                promoted._claim(book, promoted.describe_request("ada", ONE, key), patient=True)

        with pytest.raises(LedgerError) as caught:
            promoted._turns.take(charge)
        assert caught.value.code is ErrorCode.LEDGER_OLDER
        assert [seen.sequence for seen in witness.backwards()] == [3, 2, 1]
        assert verify(former, witness).ok
    with pytest.raises(LedgerError) as caught:
        Ledger(copy, LIMITS, witness=witness)
    assert caught.value.code is ErrorCode.LEDGER_OLDER


def test_what_other_processes_note_meanwhile_is_no_other_branch(tmp_path, witness):
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS, witness=witness) as ledger, Ledger(path, LIMITS, witness=witness) as other:
        note, checked = witness.note, []

        def late(last: WitnessedHead, **given: Any) -> None:
            if not checked:
                checked.append(last.sequence)
                other.commit(other.reserve("ada", ONE, "b"), b"34")
            note(last, **given)

        ledger._witness = Witness(witness.path)
        ledger._witness.note = late
        assert ledger.commit(ledger.reserve("ada", ONE, "a"), b"12").stored == b"12"
        assert verify(ledger, witness).ok


def test_of_another_branch_only_what_the_witness_saw_is_read(tmp_path, witness):
    # An older copy that has gone on without its witness, and is longer than what the witness saw.
    place = tmp_path / "ledger"
    with Ledger(place, LIMITS) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "a"), b"12")
    witness.create()
    with LedgerReader(place) as history:
        saw = list(history.entries())[-1]
    witness.note(WitnessedHead(saw.sequence, saw.hash, saw.everyone))
    witness.note(WitnessedHead(saw.sequence + 2, "ab" * 32, saw.everyone))
    with Ledger(place, LIMITS) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "b"), b"34")
    with LedgerReader(place, witness=witness) as history:
        assert history.newest_answer("ada") == b"12"


def test_a_postgres_ledger_under_another_name_is_another_one(postgres, witness):
    first, second = fresh(postgres), fresh(postgres)
    with Ledger(first, LIMITS, witness=witness) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "a"), b"12")
    with pytest.raises(LedgerError) as error:
        Ledger(second, LIMITS, witness=witness)
    assert error.value.code is ErrorCode.LEDGER_MISSING
    Ledger(second, LIMITS).close()
    with pytest.raises(LedgerError) as error:
        Ledger(second, LIMITS, witness=witness)
    assert error.value.code is ErrorCode.LEDGER_OLDER


@pytest.mark.slow
def test_an_older_witness_beside_a_newer_ledger_goes_on(tmp_path, witness):
    # The ledger still holds what the older one saw. Only both put back together would go unnoticed.
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS, witness=witness) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "a"), b"12")
        shutil.copy(witness.path, tmp_path / "copy")
        ledger.commit(ledger.reserve("ada", ONE, "b"), b"34")
        os.replace(tmp_path / "copy", witness.path)
        assert ledger.reserve("ada", ONE, "b").stored == b"34"
        assert verify(ledger, witness).ok
