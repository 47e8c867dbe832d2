"""One failure over live data locks what was read: whatever is cut off in between, nothing is admitted after it."""

from __future__ import annotations

import itertools
import os
import random
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from tests.ledger.conftest import MEMORY, by_hand, grains, limits, noise, rarely_on_postgres
from tests.support.counts import FULL
from tests.support.forks import in_child, outcome

from tacit.errors import ErrorCode, Failed, LedgerError, ParameterError, Refused
from tacit.ledger import schema, sqlite
from tacit.ledger.entries import Entry, EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.recovery import accept_loss
from tacit.ledger.table_locks import bits_learned, count_runs, encode_lock, encode_tables, lock_key
from tacit.ledger.transaction import LedgerTransaction
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness

LIMITS = limits("1000", ada="1000", bo="1000")
ONE = noise("1")
VISITS, STAYS, BOTH = ["visits"], ["stays"], ["visits", "stays"]


def kinds(ledger: LedgerReader) -> list[EntryKind]:
    return [entry.kind for entry in ledger.entries()]


def is_locked(work: Callable[[], object]) -> bool:
    with pytest.raises(Refused) as refused:
        work()
    return refused.value.code is ErrorCode.TABLE_LOCKED


def in_order(place: Path | str, witness: Witness | None = None) -> bool:
    with LedgerReader(place) as history:
        report = verify(history, witness)
    assert report.problems == ()
    return True


def test_a_lock_that_the_owner_has_not_seen_stays(place):
    with Ledger(place, LIMITS) as ledger:
        ledger.fail(ledger.reserve("ada", ONE, "a", tables=VISITS), cause="first")
        seen = ledger.locks()["visits"].entry
        ledger.unlock("visits")
        ledger.fail(ledger.reserve("ada", ONE, "b", tables=VISITS), cause="second")
        with pytest.raises(ParameterError, match="locked by another failure since") as caught:
            ledger.unlock("visits", entry=seen)
        assert "tacit tables" in caught.value.fix
        assert ledger.locks()["visits"].cause == "second"
        assert ledger.unlock("visits", entry=ledger.locks()["visits"].entry).cause == "second"


def test_a_failure_locks_what_was_read_until_the_owner_unlocks_it(place, key, witness):
    with Ledger(place, LIMITS, key=key, witness=witness) as ledger:
        stored = ledger.commit(ledger.reserve("ada", ONE, "stored", tables=VISITS), b"stored")
        ledger.fail(ledger.reserve("ada", ONE, "a", tables=BOTH), cause="psycopg.errors.DivisionByZero")
        for tables in (VISITS, STAYS, BOTH, ["VISITS"], [*VISITS, "others"]):
            assert is_locked(lambda tables=tables: ledger.reserve("bo", ONE, "b", tables=tables))
        assert ledger.overall().spent.epsilon == grains("2")  # refusals are free
        ledger.commit(ledger.reserve("bo", ONE, "b", tables=["others"]), b"others")
        ledger.commit(ledger.reserve("bo", ONE, "c"), b"a copy")
        # What is stored is shown as before, for nothing or at its privacy loss: no data is read.
        assert ledger.reserve("ada", ONE, "stored", tables=VISITS).stored == stored.stored
        assert ledger.reserve("bo", ONE, "stored", tables=VISITS).stored == stored.stored
        assert {lock.cause for lock in ledger.locks().values()} == {"psycopg.errors.DivisionByZero"}
        assert ledger.unlock("Visits").table == "visits"
        with pytest.raises(ParameterError):
            ledger.unlock("visits")
        assert is_locked(lambda: ledger.reserve("bo", ONE, "d", tables=BOTH))
        ledger.commit(ledger.reserve("bo", ONE, "d", tables=VISITS), b"again")
    assert in_order(place, witness)
    with Ledger(place, LIMITS, key=key, witness=witness) as ledger:  # it is as durable as any entry
        assert is_locked(lambda: ledger.reserve("ada", ONE, "e", tables=STAYS))


@rarely_on_postgres
def test_nothing_in_flight_over_a_locked_table_is_shown(place):
    with Ledger(place, LIMITS) as ledger:
        first, second = (ledger.reserve("ada", ONE, name, tables=VISITS) for name in "ab")
        joined, other = ledger.reserve("bo", ONE, "c", tables=BOTH), ledger.reserve("bo", ONE, "d", tables=STAYS)
        ledger.fail(second)
        for claim in (first, joined):
            with pytest.raises(Failed):
                ledger.commit(claim, b"too late")
            assert ledger.fail(claim) is None
        assert ledger.commit(other, b"stays").stored == b"stays"  # stays is not locked: only visits failed
        assert set(ledger.locks()) == {"visits"}
    assert in_order(place)


@rarely_on_postgres
def test_a_failure_before_anything_was_sent_locks_nothing(place):
    with Ledger(place, LIMITS) as ledger:
        ledger.fail(ledger.reserve("ada", ONE, "a", tables=VISITS), cause="a server that is down", sent=False)
        ledger.commit(ledger.reserve("ada", ONE, "b", tables=VISITS), b"b")
        assert ledger.locks() == {}
        assert ledger.overall().spent.epsilon == grains("2")  # the charge stays all the same
    assert in_order(place)


def test_a_run_that_is_interrupted_has_failed(place):
    with Ledger(place, LIMITS) as ledger:
        claim = ledger.reserve("ada", ONE, "a", tables=VISITS)
        with pytest.raises(KeyboardInterrupt), ledger.hold(claim):
            raise KeyboardInterrupt
        assert is_locked(lambda: ledger.reserve("ada", ONE, "a", tables=VISITS))
        copied = ledger.reserve("ada", ONE, "b")
        with pytest.raises(KeyboardInterrupt), ledger.hold(copied):
            raise KeyboardInterrupt
        assert ledger.reserve("ada", ONE, "b").entry == copied.entry  # over a copy it goes on as before
    assert in_order(place)


def interrupt(ledger: Ledger, analyst: str, key: str, tables: Sequence[str] = ()) -> int:
    claim = ledger.reserve(analyst, ONE, key, tables=tables)
    with pytest.raises(KeyboardInterrupt), ledger.hold(claim):
        raise KeyboardInterrupt
    return claim.entry


@rarely_on_postgres
def test_a_charge_that_was_made_over_a_copy_locks_what_a_later_run_of_it_reads_live(place, key):
    with Ledger(place, LIMITS, key=key) as ledger:  # all of them are cut off while the data is a copy
        charged = [interrupt(ledger, "ada", name) for name in "abcd"]
    with Ledger(place, LIMITS, key=key) as ledger:  # now the same tables are read from a server
        resumed = [ledger.reserve("ada", ONE, name, tables=BOTH) for name in "abc"]
        assert [claim.entry for claim in resumed] == charged[:3]
        ledger.commit(resumed[0], b"a")
        assert ledger.fail(resumed[1], cause="a row divides by zero") is None
        with pytest.raises(Failed):
            ledger.commit(resumed[2], b"too late")
        assert set(ledger.locks()) == {"stays", "visits"}
        assert is_locked(lambda: ledger.reserve("ada", ONE, "d", tables=STAYS))
        assert count_runs(ledger.entries(), "visits") == 3
        ledger.unlock("visits")
        ledger.unlock("stays")
        assert interrupt(ledger, "ada", "d", STAYS) == charged[3]
        assert set(ledger.locks()) == {"stays"}
    assert in_order(place)


def test_a_charge_over_live_tables_is_not_run_over_a_copy_while_or_after_a_run_reads_them(tmp_path):
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS, patience=0) as live, Ledger(path, LIMITS, patience=0) as copy:
        claim = live.reserve("ada", ONE, "a", tables=VISITS)
        with pytest.raises(LedgerError) as caught:
            copy.reserve("ada", ONE, "a")
        assert caught.value.code is ErrorCode.LEDGER_BUSY
        live.commit(claim, b"a")
        killed = live.reserve("ada", ONE, "b", tables=VISITS)
        live._flying.clear()
        by_hand(path, "UPDATE flights SET holder = 'another-host 7 1234'")  # its process is gone
        again = copy.reserve("ada", ONE, "b")
        assert again.entry != killed.entry
        copy.commit(again, b"b")
        assert is_locked(lambda: live.reserve("bo", ONE, "c", tables=VISITS))
    assert in_order(path)


def test_an_answer_that_cannot_be_stored_is_no_failure_of_the_data(place, monkeypatch):
    with Ledger(place, LIMITS) as ledger:
        claim = ledger.reserve("ada", ONE, "a", tables=VISITS)
        with monkeypatch.context() as patch:
            patch.setattr(ledger.store, "write", _full)
            with pytest.raises(LedgerError), ledger.hold(claim):
                ledger.commit(claim, b"noisy")
        again = ledger.reserve("ada", ONE, "a", tables=VISITS)
        assert again.entry == claim.entry  # charged once
        assert ledger.commit(again, b"noisy again").stored == b"noisy again"
        assert ledger.locks() == {}
    assert in_order(place)


@rarely_on_postgres
def test_a_charge_whose_run_never_began_is_no_failure_of_the_data(place):
    with Ledger(place, LIMITS) as ledger:
        claim = ledger.reserve("ada", ONE, "a", tables=VISITS)
        ledger._drop(claim)  # whoever asked was interrupted before the charge was handed over
        again = ledger.reserve("ada", ONE, "a", tables=VISITS)
        assert (again.entry, ledger.locks()) == (claim.entry, {})
        with pytest.raises(KeyboardInterrupt), ledger.hold(again):
            raise KeyboardInterrupt  # this run did begin
        assert set(ledger.locks()) == {"visits"}


@rarely_on_postgres
def test_a_charge_over_live_tables_has_one_run_at_a_time(place):
    # Of two runs, how one ends would hide how the other does: here the second is interrupted before it begins.
    with Ledger(place, LIMITS, patience=0) as ledger, Ledger(place, LIMITS, patience=0) as sibling:
        claim = ledger.reserve("ada", ONE, "a", tables=VISITS)
        for each in (ledger, sibling):
            with pytest.raises(LedgerError) as busy:
                each._drop(each.reserve("ada", ONE, "a", tables=VISITS))
            assert busy.value.code is ErrorCode.LEDGER_BUSY
        with pytest.raises(KeyboardInterrupt), ledger.hold(claim):
            raise KeyboardInterrupt
        assert set(ledger.locks()) == {"visits"}
    assert in_order(place)


def _full() -> Any:
    raise LedgerError(ErrorCode.LEDGER_FULL, "cannot grow", fix="free some space")


# Crashes


class Cut(Exception):
    """The power goes out."""


@contextmanager
def cut_at(ledger: Ledger, step: int, end: Callable[[], object]) -> Iterator[list[int]]:
    """End at a step of the next transaction: a statement before which, or a commit after which, nothing happens."""
    original, count = ledger.store.write, [0]

    def reaches() -> None:
        count[0] += 1
        if count[0] == step:
            end()

    class Session:
        def __init__(self, session: Any) -> None:
            self._session = session

        def run(self, statement: str, values: Sequence[Any] = ()) -> Any:
            reaches()
            return self._session.run(statement, values)

    @contextmanager
    def write() -> Iterator[Any]:
        with original() as session:
            yield Session(session)
            reaches()
        reaches()

    ledger.store.write = write  # type: ignore[method-assign]  # until the block ends
    try:
        yield count
    finally:
        ledger.store.write = original  # type: ignore[method-assign]


def cut() -> None:
    raise Cut


def kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def ask_and_fail(ledger: Ledger, step: int, end: Callable[[], object]) -> int:
    """Fail a question, with a crash at a step; return the number of steps there are."""
    claim = ledger.reserve("ada", ONE, f"a{step}", tables=BOTH)
    with cut_at(ledger, step, end) as count:
        ledger.fail(claim, cause="x")
    return count[0]


def locked_after(place: Path | str, step: int) -> bool:
    """Whether a process that begins now finds both tables locked by what failed last; unlock them for the next step."""
    with Ledger(place, LIMITS) as ledger:
        spent = ledger.overall().spent
        assert is_locked(lambda: ledger.reserve("bo", ONE, f"b{step}", tables=VISITS)), step
        assert is_locked(lambda: ledger.reserve("bo", ONE, f"b{step}", tables=STAYS)), step
        assert ledger.overall().spent == spent
        assert kinds(ledger)[-4:] == [EntryKind.RESERVE, EntryKind.LOCK, EntryKind.LOCK, EntryKind.FAIL], step
        for table in BOTH:
            ledger.unlock(table)
    return True


def count_steps(place: Path | str) -> int:
    with Ledger(place, LIMITS) as ledger:
        steps = ask_and_fail(ledger, 0, cut)
    assert locked_after(place, 0)
    return steps


@pytest.mark.slow
def test_a_crash_at_any_write_between_failure_and_lock(place):
    steps = count_steps(place)
    assert steps > 15
    for step in range(1, steps + 1, 1 if FULL or isinstance(place, Path) else 8):
        ledger = Ledger(place, LIMITS)
        with pytest.raises(Cut):
            ask_and_fail(ledger, step, cut)
        ledger.close()  # as the process would have ended: nothing more is written
        assert locked_after(place, step)
    assert in_order(place)


@pytest.mark.slow
def test_a_kill_at_any_write_between_failure_and_lock(place):
    steps = count_steps(place)
    for step in range(1, steps + 1, 1 if FULL else 8 if isinstance(place, Path) else 16):

        def life(step: int = step) -> int:
            with Ledger(place, LIMITS) as ledger:
                return ask_and_fail(ledger, step, kill)

        assert outcome(in_child(life)) == -signal.SIGKILL
        assert locked_after(place, step)
    assert in_order(place)


@pytest.mark.slow
@pytest.mark.parametrize("opened", ["before", "after"])
def test_a_process_that_is_killed_while_it_runs_a_question_locks_what_it_reads(place, opened):
    # The charge has no outcome, and that the process died may be due to a row: it is no charge to go on with for free.
    def life() -> int:
        with Ledger(place, LIMITS) as ledger:
            ledger.reserve("ada", ONE, "a", tables=VISITS)
            kill()
        return 0

    survivor = Ledger(place, LIMITS) if opened == "before" else None
    assert outcome(in_child(life)) == -signal.SIGKILL
    with survivor or Ledger(place, LIMITS) as ledger:
        assert is_locked(lambda: ledger.reserve("ada", ONE, "a", tables=VISITS))
        assert kinds(ledger) == [EntryKind.OPEN, EntryKind.RESERVE, EntryKind.LOCK, EntryKind.FAIL]
    assert in_order(place)


@rarely_on_postgres
def test_what_is_known_of_one_run_says_nothing_of_the_next(place, monkeypatch):
    # This process could not store the answer of the first run, and let go. The second run dies with its process.
    with Ledger(place, LIMITS) as ledger:
        claim = ledger.reserve("ada", ONE, "a", tables=VISITS)
        with ledger.hold(claim), monkeypatch.context() as patch:
            patch.setattr(ledger.store, "write", _full)
            with pytest.raises(LedgerError):
                ledger.commit(claim, b"a")

        def life() -> int:
            with Ledger(place, LIMITS) as other, other.hold(other.reserve("ada", ONE, "a", tables=VISITS)):
                os.kill(os.getpid(), signal.SIGKILL)
            return 0

        assert outcome(in_child(life)) == -signal.SIGKILL
        for analyst, key in (("bo", "b"), ("ada", "a")):
            assert is_locked(lambda a=analyst, k=key: ledger.reserve(a, ONE, k, tables=VISITS))
        assert kinds(ledger)[1:] == [EntryKind.RESERVE, EntryKind.RESUME, EntryKind.LOCK, EntryKind.FAIL]
    assert in_order(place)


@pytest.mark.parametrize("place", ["sqlite"], indirect=True)
def test_a_charge_that_was_not_shown_to_be_written_locks_nothing(place, witness, monkeypatch):
    # It is on disk, and the witness could not be told: its run never begins.
    with Ledger(place, LIMITS, witness=witness) as ledger:
        with monkeypatch.context() as patch:
            patch.setattr(witness, "note", lambda last, **given: _full())
            with pytest.raises(LedgerError):
                ledger.reserve("ada", ONE, "a", tables=VISITS)
        ledger.commit(ledger.reserve("bo", ONE, "b", tables=VISITS), b"b")
        assert ledger.commit(ledger.reserve("ada", ONE, "a", tables=VISITS), b"a").receipt.entry == 2
        assert ledger.locks() == {}
    assert in_order(place, witness)


def test_a_process_that_runs_is_left_alone(place):
    ready, go = os.pipe(), os.pipe()

    def life() -> int:
        with Ledger(place, LIMITS) as ledger:
            claim = ledger.reserve("ada", ONE, "a", tables=VISITS)
            os.write(ready[1], b"1")
            os.read(go[0], 1)
            ledger.commit(claim, b"a")
        return 0

    child = in_child(life)
    os.read(ready[0], 1)
    with Ledger(place, LIMITS) as ledger:
        ledger.commit(ledger.reserve("bo", ONE, "b", tables=VISITS), b"b")
        os.write(go[1], b"1")
        assert outcome(child) == 0
        assert ledger.locks() == {}


def test_of_a_holder_on_another_host_nothing_is_known(tmp_path):
    # A file is held by processes of one host. A container that was started anew has another name: the one that died
    # would seem to run for ever.
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS) as ledger:
        ledger.reserve("ada", ONE, "a", tables=VISITS)
    by_hand(path, "UPDATE flights SET holder = 'another-host 7 1234'")
    with Ledger(path, LIMITS) as ledger:
        assert is_locked(lambda: ledger.reserve("bo", ONE, "b", tables=VISITS))


def test_two_ledgers_of_one_process_see_what_the_other_runs(place):
    with Ledger(place, LIMITS) as one, Ledger(place, LIMITS) as other:
        claim = one.reserve("ada", ONE, "a", tables=VISITS)
        other.commit(other.reserve("ada", ONE, "b", tables=VISITS), b"b")
        one.commit(claim, b"a")
        assert one.locks() == {}


# Many at a time


@pytest.mark.slow
def test_a_race_of_eight_threads(place):
    with Ledger(place, LIMITS) as ledger:
        for number in range(3 if not FULL else 60):
            outcomes, start = _race(ledger, number)
            assert set(outcomes) <= {"answered", "failed", "table-locked"}
            # From the first failure on nothing is committed that was in flight, and nothing is admitted.
            seen = [entry.kind for entry in ledger.entries() if entry.sequence > start]
            first = seen.index(EntryKind.LOCK)
            assert set(seen[:first]) <= {EntryKind.RESERVE, EntryKind.COMMIT}
            assert seen.count(EntryKind.LOCK) == 1 and set(seen[first + 1 :]) == {EntryKind.FAIL}
            assert seen.count(EntryKind.COMMIT) == outcomes.count("answered")
            assert seen.count(EntryKind.FAIL) == outcomes.count("failed")
            ledger.unlock("visits")
    assert in_order(place)


def _race(ledger: Ledger, number: int) -> tuple[list[str], int]:
    """Eight threads ask two questions each, and one in three runs fails."""
    outcomes: list[str] = []
    start, together = len(list(ledger.entries())), threading.Barrier(8)

    def ask(thread: int) -> None:
        together.wait()
        for again in range(2):
            fails = (thread + again + number) % 3 == 0
            try:
                claim = ledger.reserve("ada", ONE, f"{number} {thread} {again}", tables=VISITS)
                with ledger.hold(claim):
                    if fails:
                        assert ledger.fail(claim) is None
                        outcomes.append("failed")
                    else:
                        ledger.commit(claim, b"x")
                        outcomes.append("answered")
            except Failed:
                outcomes.append("failed")
            except Refused as refused:
                outcomes.append(str(refused.code))

    threads = [threading.Thread(target=ask, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes, start


# What can be learned


def transcripts(size: int, schedule: Sequence[tuple[str, int]], tables: Sequence[str]) -> set[tuple[str, ...]]:
    """All that analysts can see, over every way in which rows can make questions fail.

    An oracle says of each of 2 size questions whether it fails. The strategy is adaptive: run i asks question 2 i, or
    2 i + 1 where the runs that ended before it failed an odd number of times. A schedule says in which order runs begin
    and end.
    """
    seen = set()
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder, Ledger(Path(folder) / "ledger", LIMITS) as ledger:
        for oracle in itertools.product([False, True], repeat=2 * size):
            seen.add(_transcript(ledger, schedule, tables, oracle))
            for lock in ledger.locks().values():
                ledger.unlock(lock.table)
    return seen


def _transcript(
    ledger: Ledger, schedule: Sequence[tuple[str, int]], tables: Sequence[str], oracle: Sequence[bool]
) -> tuple[str, ...]:
    shown: list[str] = []
    running: dict[int, tuple[Any, bool]] = {}
    for what, run in schedule:
        if what == "begin":
            fails = oracle[2 * run + shown.count("failed") % 2]
            try:
                running[run] = ledger.reserve("ada", ONE, f"{oracle} {run}", tables=tables), fails
            except Refused as refused:
                shown.append(str(refused.code))
        elif run in running:
            claim, fails = running.pop(run)
            try:
                if fails:
                    ledger.fail(claim)
                    raise Failed
                ledger.commit(claim, b"x")
                shown.append("answered")
            except Failed:
                shown.append("failed")
    return tuple(shown)


def one_after_the_other(size: int) -> list[tuple[str, int]]:
    return [step for run in range(size) for step in (("begin", run), ("end", run))]


def some_schedule(size: int, seed: int) -> list[tuple[str, int]]:
    """Runs that begin and end in any order, each after its beginning."""
    order = [run for run in range(size) for _ in range(2)]
    random.Random(seed).shuffle(order)
    begun: set[int] = set()
    found = []
    for run in order:
        found.append(("end" if run in begun else "begin", run))
        begun.add(run)
    return found


@pytest.mark.slow
def test_n_questions_learn_at_most_log2_of_n_plus_1_bits():
    # Counted on every oracle, and not by the proof: n + 1 transcripts one after the other, and never more than that
    # with several in flight. Without locks the same strategy sees all 2^n of them.
    many = 3 if FULL else 2
    for size in (1, 2) if not FULL else (1, 2, 3, 4):
        assert len(transcripts(size, one_after_the_other(size), VISITS)) == size + 1
    assert bits_learned(3) == 2
    for seed in range(1 if not FULL else 40):
        assert len(transcripts(many, some_schedule(many, seed), VISITS)) <= many + 1
    together = [*(("begin", run) for run in range(many)), *(("end", run) for run in range(many))]
    assert len(transcripts(many, together, VISITS)) == many + 1
    assert len(transcripts(many, together, [])) == 2**many


def test_the_questions_of_a_lock_are_counted_from_the_last_unlock():
    def entry(sequence: int, kind: EntryKind, note: str = "", **more: Any) -> Entry:
        return Entry(sequence, "", kind, note=note, **more)

    visits = encode_tables(VISITS)
    entries = [entry(1, EntryKind.RESERVE, visits), entry(2, EntryKind.RESERVE, encode_tables(STAYS))]
    entries += [entry(3, EntryKind.RESUME, claim=1), entry(4, EntryKind.RESUME, claim=2)]
    assert count_runs(entries, "Visits") == 2
    entries += [entry(5, EntryKind.UNLOCK, **note_of("visits")), entry(6, EntryKind.RESERVE, visits)]
    assert (count_runs(entries, "visits"), count_runs(entries, "stays")) == (1, 2)


# What the owner can check


def note_of(table: str) -> dict[str, str]:
    return {"key": lock_key(table), "note": encode_lock(table, "", "")}


@pytest.mark.parametrize(
    ("told", "forged"),
    [
        ("was not locked", {"kind": EntryKind.FAIL, "analyst": "ada", "key": "a", "claim": 2}),
        ("not signed", {"kind": EntryKind.LOCK, "claim": 2, **note_of("visits")}),
        ("not signed", {"kind": EntryKind.UNLOCK, **note_of("visits")}),
        ("is not locked", {"kind": EntryKind.UNLOCK, **note_of("visits")}),
        ("that reads stays", {"kind": EntryKind.LOCK, "claim": 2, **note_of("stays")}),
        ("cannot be read", {"kind": EntryKind.LOCK, "claim": 2, **note_of("visits"), "key": lock_key("stays")}),
        ("cannot be read", {"kind": EntryKind.LOCK, "claim": 2, "note": "[]"}),
    ],
)
def test_entries_that_nobody_would_write_are_told(tmp_path, key, told, forged):
    with Ledger(tmp_path / "ledger", LIMITS, key=key) as ledger:
        ledger.reserve("ada", ONE, "a", tables=VISITS)
        with ledger._writing() as book:
            book.append(**forged)
        assert any(told in problem for problem in verify(ledger).problems)


@rarely_on_postgres
def test_a_charge_over_a_locked_table_is_told(place):
    with Ledger(place, LIMITS) as ledger:
        ledger.fail(ledger.reserve("ada", ONE, "a", tables=VISITS))
        free = ledger.reserve("ada", ONE, "b")
        row = next(entry for entry in ledger.entries() if entry.sequence == free.entry)
        with ledger._writing() as book:
            book.append(
                EntryKind.RESERVE, analyst="ada", key="c", loss=row.loss, charge=row.charge, shared=1,
                note=encode_tables(VISITS),
            )  # fmt: skip
        assert any("it reads visits, which is locked" in problem for problem in verify(ledger).problems)


def test_after_lost_entries_everything_live_is_locked(tmp_path, key, witness):
    # A lock may be among what was lost.
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS, key=key, witness=witness) as ledger:
        ledger.reserve("ada", ONE, "a", tables=STAYS)
    copy = path.read_bytes()
    with Ledger(path, LIMITS, key=key, witness=witness) as ledger, suppress(Refused):
        ledger.fail(ledger.reserve("ada", ONE, "b", tables=VISITS))
    for beside in ("-wal", "-shm"):
        Path(f"{path}{beside}").unlink(missing_ok=True)
    path.write_bytes(copy)
    accept_loss(path, LIMITS, key=key, witness=witness, because="an older copy", live=VISITS)
    with Ledger(path, LIMITS, key=key, witness=witness) as ledger:
        assert set(ledger.locks()) == {"visits", "stays"}
        ledger.unlock("visits")
        ledger.unlock("stays")
    assert in_order(path, witness)


# Ledgers of the version that had no locks


def make_former(place: Path | str) -> None:
    """Give a ledger the tables that the former version made."""
    if isinstance(place, Path):
        texts = zip(sqlite._STATEMENTS, sqlite._FORMER_STATEMENTS, strict=True)
        former = [
            f"UPDATE sqlite_schema SET sql = {_quote(then)} WHERE sql = {_quote(now)}"
            for now, then in texts
            if now != then
        ]
        by_hand(place, "PRAGMA writable_schema = ON", *former, f"PRAGMA user_version = {schema.FORMER_VERSION}")
        return
    condition, name = schema.kind_condition(schema.FORMER_VERSION), place.partition("#")[2]
    by_hand(
        place,
        "ALTER TABLE entries DROP CONSTRAINT entries_kind_check",
        f"ALTER TABLE entries ADD CONSTRAINT entries_kind_check CHECK ({condition})",
        f"COMMENT ON SCHEMA tacit_{name} IS 'tacit ledger {schema.FORMER_VERSION}'",
    )


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def test_a_ledger_of_the_former_version_goes_on(place, key, witness):
    with Ledger(place, LIMITS, key=key, witness=witness) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "a"), b"a")
        head = ledger.head()
    make_former(place)
    assert in_order(place, witness)  # reading leaves it as it is
    with Ledger(place, LIMITS, key=key, witness=witness) as ledger:
        assert ledger.head() == head
        assert ledger.reserve("ada", ONE, "a").stored == b"a"
        ledger.fail(ledger.reserve("ada", ONE, "b", tables=VISITS))
        assert set(ledger.locks()) == {"visits"}
    assert in_order(place, witness)


def test_an_upgrade_that_is_cut_off_leaves_a_ledger_of_either_version(tmp_path, monkeypatch):
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "a"), b"a")
    make_former(path)
    original = sqlite.SqliteStore.upgrade
    for step in range(1, 6):  # each statement of it

        def upgrade(store: Any, session: Any, step: int = step) -> None:
            class Session:
                count = 0

                def run(self, statement: str, values: Sequence[Any] = ()) -> Any:
                    found = session.run(statement, values)
                    self.count += statement.startswith(("PRAGMA writable", "UPDATE", "PRAGMA schema_version ="))
                    self.count += statement.startswith("PRAGMA user_version =")
                    if self.count == step:
                        raise Cut
                    return found

            original(store, Session())

        with monkeypatch.context() as patch:
            patch.setattr(sqlite.SqliteStore, "upgrade", upgrade)
            with pytest.raises(Cut):
                Ledger(path, LIMITS)
        assert by_hand(path, "PRAGMA user_version") == [(schema.FORMER_VERSION,)]
        assert in_order(path)
    with Ledger(path, LIMITS) as ledger:
        assert ledger.reserve("ada", ONE, "a").stored == b"a"
    assert by_hand(path, "PRAGMA user_version", "PRAGMA integrity_check") == [("ok",)]
    assert in_order(path)


def test_a_ledger_of_the_former_version_whose_locks_were_altered_is_noticed(tmp_path):
    path = tmp_path / "ledger"
    Ledger(path, LIMITS).close()
    make_former(path)
    by_hand(path, "DROP TRIGGER entries_stay")
    with pytest.raises(LedgerError) as refused:
        Ledger(path, LIMITS)
    assert refused.value.code is ErrorCode.LEDGER_TAMPERED


def test_locks_are_read_whole(place):
    with Ledger(place, LIMITS) as ledger:
        ledger.fail(ledger.reserve("ada", ONE, "a", tables=VISITS))
        with ledger.store.read() as session:
            assert set(LedgerTransaction(session).locks()) == {"visits"}
