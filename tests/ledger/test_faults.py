"""What can go wrong with the ledger, its key and its witness: each fault has its code, nothing is answered meanwhile,
and with the right file back in its place everything goes on, charged once."""

from __future__ import annotations

import errno
import os
import resource
import shutil
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import apsw
import pytest
from tests.ledger.conftest import by_hand, fresh, grains, limits, noise
from tests.support.counts import some
from tests.support.forks import in_child, outcome

import tacit
from tacit.errors import ErrorCode, Failed, LedgerError
from tacit.ledger import ledger as ledgers
from tacit.ledger import pending_failures, sqlite
from tacit.ledger import witness as witnesses
from tacit.ledger.entries import EntryKind
from tacit.ledger.flights import SMALL_ANSWER
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.signing import SigningKey
from tacit.ledger.sqlite import SqliteStore
from tacit.ledger.transaction import LedgerTransaction
from tacit.ledger.verify import verify
from tacit.ledger.witness import Witness

LIMITS = limits("1000", ada="1000")
ONE = noise("1")
POLICY = """
[data]
source = "visits.csv"
[privacy]
epsilon = 100
[tables.visits]
unit = "row"
columns.age = { type = "int", lower = 0, upper = 110 }
[analysts.ada]
epsilon = 100
"""


class Office:
    """A ledger with its key and its witness in a folder. Every question costs epsilon 1."""

    def __init__(self, root: Path) -> None:
        self.root, self.answers = root, {}
        self.ledger, self.key, self.witness = (root / f"clinic.{name}" for name in ("ledger", "key", "witness"))

    def open(self) -> Any:
        key = SigningKey.at(self.key, create=not self.witness.exists())
        return Ledger(self.ledger, LIMITS, key=key, witness=Witness(self.witness))

    def ask(self, opened: Any, question: int) -> object:
        claim = opened.reserve("ada", ONE, f"{question}")
        return opened.commit(claim, os.urandom(8)).stored


class Curated(Office):
    """The same behind a curator."""

    def open(self) -> Any:
        (self.root / "visits.csv").write_text("age\n" + "\n".join(map(str, range(100))) + "\n")
        (self.root / "clinic.toml").write_text(POLICY)
        return tacit.open(self.root / "clinic.toml")

    def ask(self, opened: Any, question: int) -> object:
        return opened.analyst("ada").ask(f"SELECT COUNT(*) FROM visits WHERE age > {question}", epsilon=1).value


OFFICES = {"ledger": Office, "curator": Curated}


@pytest.fixture(scope="module", params=OFFICES)
def template(request, tmp_path_factory) -> Office:
    """An office where questions 1 and 2 were answered, with copies of its files after each, put aside."""
    made = OFFICES[request.param](tmp_path_factory.mktemp("office"))
    for question in (1, 2):
        with made.open() as opened:
            made.answers[question] = made.ask(opened, question)
        (made.root / f"copy{question}").mkdir()
        for file in (made.ledger, made.key, made.witness):
            shutil.copy(file, made.root / f"copy{question}")
    return made


@pytest.fixture
def office(template, tmp_path) -> Office:
    """The same office, to break."""
    made = type(template)(shutil.copytree(template.root, tmp_path / "office"))
    made.answers = template.answers
    return made


def refused(code: ErrorCode, work: Callable[[], object]) -> None:
    with pytest.raises(LedgerError) as error:
        work()
    assert error.value.code is code
    assert error.value.fix


def check_all_is_well(office: Office, asked: int, opened: Any = None) -> None:
    """The answers are those shown, each question is charged once, and question 3 can be asked."""
    if opened is None:
        with office.open() as again:
            check_all_is_well(office, asked, again)
        return
    for question, answer in office.answers.items():
        assert office.ask(opened, question) == answer
    shown = office.ask(opened, 3)
    assert office.ask(opened, 3) == shown
    with LedgerReader(office.ledger) as history:
        assert history.overall().spent.epsilon == grains("1") * asked
        assert verify(history, Witness(office.witness)).problems == ()


# Before the start.


def put_back(office: Office, which: int = 2) -> None:
    """The files of that moment, without what SQLite laid beside them."""
    for beside in ("-wal", "-shm"):
        Path(f"{office.ledger}{beside}").unlink(missing_ok=True)
    for file in (office.ledger, office.key, office.witness):
        shutil.copy(office.root / f"copy{which}" / file.name, file)


def another(office: Office) -> Office:
    """Another office with more entries, and a copy of the same key from before it signed anything."""
    root = office.root / "another"
    root.mkdir()
    (root / office.key.name).write_bytes(office.key.read_bytes().partition(b"\n#")[0] + b"\n")
    other = type(office)(root)
    with Ledger(
        other.ledger, LIMITS, key=SigningKey.at(other.key, create=False), witness=Witness(other.witness)
    ) as ledger:
        for question in range(9):
            Office.ask(other, ledger, question)
    return other


def delete(*files: Path) -> None:
    for file in files:
        file.unlink()


def cut_short(path: Path, size: int) -> None:
    with path.open("r+b") as file:
        file.truncate(size)


def older(office: Office) -> None:
    shutil.copy(office.root / "copy1" / office.ledger.name, office.ledger)


BEFORE = {
    "the ledger is deleted": (ErrorCode.LEDGER_MISSING, lambda office: office.ledger.unlink()),
    "the ledger is empty": (ErrorCode.LEDGER_MISSING, lambda office: cut_short(office.ledger, 0)),
    "the ledger is cut short": (ErrorCode.LEDGER_TAMPERED, lambda office: cut_short(office.ledger, 8 * 4096)),
    "the ledger is a note": (ErrorCode.LEDGER, lambda office: office.ledger.write_text("buy milk, and " * 1000)),
    "an older ledger is put back": (ErrorCode.LEDGER_OLDER, older),
    "another ledger": (ErrorCode.LEDGER_OLDER, lambda office: shutil.copy(another(office).ledger, office.ledger)),
    "the key is deleted": (ErrorCode.LEDGER_KEY, lambda office: office.key.unlink()),
    "another key": (ErrorCode.LEDGER_KEY, lambda office: (office.key.unlink(), SigningKey.at(office.key, create=True))),
    "the key is a note": (ErrorCode.LEDGER_KEY, lambda office: office.key.write_text("under the mat")),
    "the witness is deleted": (ErrorCode.LEDGER_WITNESS, lambda office: office.witness.unlink()),
    "the witness is empty": (ErrorCode.LEDGER_WITNESS, lambda office: cut_short(office.witness, 0)),
    "the witness is a note": (ErrorCode.LEDGER_WITNESS, lambda office: office.witness.write_text("I saw nothing")),
    "ledger and witness are deleted": (ErrorCode.LEDGER_MISSING, lambda office: delete(office.ledger, office.witness)),
    "the ledger is emptied and the witness is deleted": (
        ErrorCode.LEDGER_MISSING,
        lambda office: (cut_short(office.ledger, 0), delete(office.witness)),
    ),
    "ledger and key are deleted": (ErrorCode.LEDGER_KEY, lambda office: delete(office.ledger, office.key)),
    "key and witness are deleted": (ErrorCode.LEDGER_WITNESS, lambda office: delete(office.key, office.witness)),
    "another witness": (ErrorCode.LEDGER_OLDER, lambda office: shutil.copy(another(office).witness, office.witness)),
}


@pytest.mark.slow
@pytest.mark.parametrize(  # the curator's error is the ledger's: each day it meets some of the faults
    ("template", "fault"),
    [("ledger", fault) for fault in BEFORE] + [("curator", fault) for fault in some(BEFORE, 3)],
    indirect=["template"],
)
def test_a_fault_before_the_start(office, fault):
    code, happens = BEFORE[fault]
    happens(office)
    for _ in range(2):  # it does not heal by itself
        refused(code, office.open)
    put_back(office)
    check_all_is_well(office, asked=3)


def test_a_ledger_with_a_witness_does_not_open_without(tmp_path):
    office = Office(tmp_path)
    with office.open() as ledger:
        office.ask(ledger, 1)
    refused(
        ErrorCode.LEDGER_WITNESS, lambda: Ledger(office.ledger, LIMITS, key=SigningKey.at(office.key, create=False))
    )
    refused(ErrorCode.LEDGER_KEY, lambda: Ledger(office.ledger, LIMITS, witness=Witness(office.witness)))


# While it runs.


@contextmanager
def taken_away(path: Path) -> Iterator[None]:
    aside = path.with_name("aside")
    path.rename(aside)
    yield
    aside.rename(path)


@contextmanager
def replaced(office: Office) -> Iterator[None]:
    with taken_away(office.ledger):
        older(office)
        yield
        office.ledger.unlink()


@contextmanager
def written_over(path: Path) -> Iterator[None]:
    kept = path.read_bytes()
    path.write_bytes(b"buy milk")
    yield
    path.write_bytes(kept)


@contextmanager
def failing_os(call: str, number: int) -> Iterator[None]:
    """The witness's own calls to the system fail."""

    class Failing:
        def __getattr__(self, name: str) -> Any:
            return getattr(os, name) if name != call else self.fail

        def fail(self, *arguments: Any) -> None:
            raise OSError(number, os.strerror(number))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(witnesses, "os", Failing())
        yield


WHILE = {
    "the ledger is deleted": (ErrorCode.LEDGER_MISSING, lambda office: taken_away(office.ledger)),
    "an older ledger is put in its place": (ErrorCode.LEDGER_MISSING, replaced),
    "the witness is deleted": (ErrorCode.LEDGER_WITNESS, lambda office: taken_away(office.witness)),
    "the witness is written over": (ErrorCode.LEDGER_WITNESS, lambda office: written_over(office.witness)),
    "the witness's disk is full": (ErrorCode.LEDGER_FULL, lambda office: failing_os("pwrite", errno.ENOSPC)),
    "the witness's disk is read-only": (ErrorCode.LEDGER_READ_ONLY, lambda office: failing_os("pwrite", errno.EROFS)),
    "the witness's disk fails": (ErrorCode.LEDGER_WITNESS, lambda office: failing_os("fdatasync", errno.EIO)),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", WHILE)
def test_a_fault_while_it_runs(office, fault):
    code, happens = WHILE[fault]
    with office.open() as opened:
        with happens(office):
            for _ in range(2):
                refused(code, lambda: office.ask(opened, 3))
        check_all_is_well(office, asked=3, opened=opened)


class FaultyDisk(apsw.VFS):
    """SQLite's own file system layer, which fails on demand: `fault` is the call and the error."""

    fault: tuple[str, type[Exception]] | None = None
    number = 0  # the system's, of the last error

    def __init__(self) -> None:
        super().__init__("faulty", "")

    def xOpen(self, name, flags):
        return FaultyFile(self, name, flags)

    def xGetLastError(self):
        return self.number, ""

    def check(self, call: str) -> None:
        if self.fault is not None and self.fault[0] == call:
            raise self.fault[1]


class FaultyFile(apsw.VFSFile):
    def __init__(self, disk, name, flags) -> None:
        self.disk = disk
        super().__init__("", name, flags)

    def xRead(self, amount, offset):
        self.disk.check("read")
        return super().xRead(amount, offset)

    def xWrite(self, data, offset):
        self.disk.check("write")
        super().xWrite(data, offset)

    def xSync(self, flags):
        self.disk.check("sync")
        super().xSync(flags)


@pytest.fixture
def disk(monkeypatch):
    """A disk that fails on demand, below every ledger opened meanwhile."""
    made = FaultyDisk()
    monkeypatch.setattr(ledgers, "open_store", lambda place, *, wait: SqliteStore(place, wait=wait, vfs="faulty"))
    yield made
    made.unregister()


DISK = {
    "full": (ErrorCode.LEDGER_FULL, "write", apsw.FullError),
    "broken where it writes": (ErrorCode.LEDGER_DISK, "write", apsw.IOError),
    "broken where it synchronizes": (ErrorCode.LEDGER_DISK, "sync", apsw.IOError),
    "read-only since a fault": (ErrorCode.LEDGER_READ_ONLY, "write", apsw.ReadOnlyError),
    "damaged": (ErrorCode.LEDGER_TAMPERED, "write", apsw.CorruptError),
}


@pytest.mark.slow
@pytest.mark.parametrize("fault", DISK)
def test_a_disk_that_fails(disk, office, fault):
    code, call, error = DISK[fault]
    with office.open() as opened:
        disk.fault = (call, error)
        for _ in range(2):
            refused(code, lambda: office.ask(opened, 3))
        disk.fault = None
        check_all_is_well(office, asked=3, opened=opened)


@pytest.mark.slow
def test_a_disk_that_cannot_be_read_at_opening(disk, office):
    disk.fault = ("read", apsw.IOError)
    refused(ErrorCode.LEDGER_DISK, office.open)
    disk.fault = None
    check_all_is_well(office, asked=3)


FULL = {
    "full": (errno.ENOSPC, ErrorCode.LEDGER_FULL),
    "a quota that is full": (errno.EDQUOT, ErrorCode.LEDGER_FULL),
    "broken": (errno.EIO, ErrorCode.LEDGER_DISK),
}


@pytest.mark.parametrize("fault", FULL)
def test_a_disk_that_sqlite_calls_broken_is_full_where_the_system_says_so(disk, tmp_path, fault):
    # As SQLite does where a file beside the ledger finds no space, or a quota is full.
    number, code = FULL[fault]
    office = Office(tmp_path)
    disk.fault, disk.number = ("write", apsw.IOError), number
    refused(code, office.open)
    disk.fault = None
    with office.open() as opened:
        office.answers[1] = office.ask(opened, 1)
        disk.fault = ("write", apsw.IOError)
        refused(code, lambda: office.ask(opened, 3))
        disk.fault = None
        check_all_is_well(office, asked=2, opened=opened)


def test_a_ledger_that_finds_no_space_for_its_file_says_so(tmp_path, monkeypatch):
    def full(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(sqlite, "make", full)
        refused(ErrorCode.LEDGER_FULL, lambda: Ledger(tmp_path / "ledger", LIMITS))
    with Ledger(tmp_path / "ledger", LIMITS) as ledger:
        assert ledger.overall().spent.epsilon == 0


@pytest.mark.parametrize("fault", DISK)
def test_a_disk_that_fails_at_the_commit(disk, tmp_path, fault):
    # Whether the answer can be written may depend on its bytes, so that it could not is the outcome of the charge:
    # asked again, the question is charged again. Where only the sync failed, the answer is on disk and stands.
    code, call, error = DISK[fault]
    office = Office(tmp_path)
    with office.open() as ledger:
        claim = ledger.reserve("ada", ONE, "1", request="r-1")
        disk.fault = (call, error)
        with ledger.hold(claim):
            refused(code, lambda: ledger.commit(claim, b"12"))
        disk.fault = None
        if call == "sync":
            assert ledger.reserve("ada", ONE, "1", request="r-1").stored == b"12"
        else:
            with pytest.raises(Failed):
                ledger.reserve("ada", ONE, "1", request="r-1")
        again = ledger.commit(ledger.reserve("ada", ONE, "1"), b"34")
        assert again.stored == (b"12" if call == "sync" else b"34")
        assert ledger.reserve("ada", ONE, "1").stored == again.stored
        assert ledger.overall().spent.epsilon == grains("1" if call == "sync" else "2")
        assert verify(ledger, Witness(office.witness)).problems == ()


@pytest.fixture
def pages(monkeypatch):
    """How many pages each ledger of the test may have: a disk that is nearly full. None is no limit."""
    most: list[int | None] = [None]
    whole = SqliteStore._open

    def limited(store: SqliteStore) -> apsw.Connection:
        connection = whole(store)
        if most[0] is not None:
            connection.execute(f"PRAGMA max_page_count = {most[0]}")
        return connection

    monkeypatch.setattr(SqliteStore, "_open", limited)
    return most


def leave_room(ledger: Ledger, pages: list[int | None], room: int) -> None:
    """Let the ledger's file grow by so many pages at most, from the next connection on."""
    with ledger.store.read() as session:
        pages[0] = session.run("PRAGMA page_count")[0][0] + room
    ledger.store._disconnect()


@pytest.mark.parametrize("tables", [[], ["visits"]])
def test_a_large_answer_that_does_not_fit_has_failed(pages, tmp_path, tables):
    # Otherwise the analyst would draw again for nothing until an answer fits, and learn of each draw whether it did.
    with Ledger(tmp_path / "ledger", LIMITS) as ledger:
        leave_room(ledger, pages, 12)
        for number, size in enumerate([300_000, 250_000, 200_000], start=1):
            claim = ledger.reserve("ada", ONE, "1", tables=tables)
            with ledger.hold(claim):
                refused(ErrorCode.LEDGER_FULL, lambda c=claim, n=size: ledger.commit(c, bytes(n)))
            assert ledger.overall().spent.epsilon == grains("1") * number
        assert ledger.commit(ledger.reserve("ada", ONE, "1", tables=tables), b"small").stored == b"small"
        assert ledger.overall().spent.epsilon == grains("4")
        assert [entry.kind for entry in ledger.entries()].count(EntryKind.FAIL) == 3
        assert ledger.locks() == {}  # the size of an answer is no row's doing
        assert verify(ledger).problems == ()


@pytest.mark.parametrize("reopened", [False, True])
def test_a_failure_that_does_not_fit_either_is_written_before_the_charge_is_resumed(pages, tmp_path, reopened):
    place = tmp_path / "ledger"
    with Ledger(place, LIMITS) as ledger:
        claim = ledger.reserve("ada", ONE, "1", request="r-1")
        leave_room(ledger, pages, 0)
        with ledger.hold(claim):
            refused(ErrorCode.LEDGER_FULL, lambda: ledger.commit(claim, bytes(300_000)))
        ledger.store._disconnect()
        pages[0] = None
        if reopened:
            ledger.close()
        with Ledger(place, LIMITS) if reopened else nullcontext(ledger) as again:
            with pytest.raises(Failed):
                again.reserve("ada", ONE, "1", request="r-1")
            assert again.commit(again.reserve("ada", ONE, "1"), b"12").stored == b"12"
            assert again.overall().spent.epsilon == grains("2")
            assert verify(again).problems == ()


@pytest.mark.parametrize("is_large", [False, True])
def test_what_another_run_stored_meanwhile_is_shown_and_no_error(disk, tmp_path, monkeypatch, is_large):
    # The moment between a COMMIT that failed and its FAIL: one charge has one outcome all the same. Of a large answer
    # the other run knows that it was handed over, and not that no one was told of it.
    with Ledger(tmp_path / "ledger", LIMITS, patience=0) as ledger:
        first, second = ledger.reserve("ada", ONE, "1"), ledger.reserve("ada", ONE, "1")
        assert first.entry == second.entry
        remember, store = ledgers.remember_failure, LedgerTransaction.store_answer

        def late(*given: Any) -> None:
            disk.fault = None
            with pytest.raises(Failed) if is_large else nullcontext():
                ledger.commit(second, b"small")
            remember(*given)

        def fill(*given: Any) -> None:
            monkeypatch.setattr(LedgerTransaction, "store_answer", store)
            disk.fault = ("write", apsw.FullError)
            store(*given)

        monkeypatch.setattr(ledgers, "remember_failure", late)
        monkeypatch.setattr(LedgerTransaction, "store_answer", fill)
        if is_large:
            refused(ErrorCode.LEDGER_FULL, lambda: ledger.commit(first, bytes(2000)))
        else:
            assert ledger.commit(first, b"12").stored == b"small"
        assert ledger.overall().spent.epsilon == grains("1")
        assert verify(ledger).problems == ()


def test_another_process_fails_a_charge_whose_answer_did_not_fit(pages, tmp_path):
    # The one that remembers this lives on, and could not write it down.
    place = tmp_path / "ledger"
    with Ledger(place, LIMITS) as ledger:
        claim = ledger.reserve("ada", ONE, "1", request="r-1")
        leave_room(ledger, pages, 0)
        with ledger.hold(claim):
            refused(ErrorCode.LEDGER_FULL, lambda: ledger.commit(claim, bytes(300_000)))
        ledger.store._disconnect()
        pages[0] = None

        def ask_again() -> int:
            pending_failures._pending.clear()  # as a process of its own has none of these
            with Ledger(place, LIMITS, patience=0) as other:
                with pytest.raises(Failed):
                    other.reserve("ada", ONE, "1", request="r-1")
                return other.reserve("ada", ONE, "1").entry

        assert outcome(in_child(ask_again)) == 4  # after the opening, the charge and its FAIL
        assert verify(ledger).problems == ()


@pytest.mark.parametrize("size", [SMALL_ANSWER, SMALL_ANSWER + 1])
@pytest.mark.parametrize("tables", [[], ["visits"]])
def test_a_process_that_ends_while_it_stores_a_large_answer(place, monkeypatch, size, tables):
    # Its size may be why the process or its connection ended: the charge has failed, wherever it is asked again. That
    # of a small answer goes on, or has failed and locks what it reads.
    def life() -> int:
        monkeypatch.setattr(LedgerTransaction, "store_answer", lambda *given: os.kill(os.getpid(), signal.SIGKILL))
        with Ledger(place, LIMITS) as ledger:
            ledger.commit(ledger.reserve("ada", ONE, "1", request="r-1", tables=tables), bytes(size))
        return 0

    assert outcome(in_child(life)) == -signal.SIGKILL
    with Ledger(place, LIMITS) as ledger:
        if size > SMALL_ANSWER or tables:
            with pytest.raises(Failed):
                ledger.reserve("ada", ONE, "1", request="r-1", tables=tables)
        else:
            assert ledger.reserve("ada", ONE, "1", request="r-1").entry == 2
        assert set(ledger.locks()) == (set(tables) if size == SMALL_ANSWER else set())
        assert ledger.overall().spent.epsilon == grains("1")
        assert verify(ledger).problems == ()


def test_a_failed_run_of_which_nothing_can_be_written_has_failed(disk, tmp_path):
    with Ledger(tmp_path / "ledger", LIMITS) as ledger:
        claim = ledger.reserve("ada", ONE, "1", request="r-1")
        disk.fault = ("write", apsw.FullError)
        with ledger.hold(claim):
            refused(ErrorCode.LEDGER_FULL, lambda: ledger.fail(claim))
        disk.fault = None
        with pytest.raises(Failed):
            ledger.reserve("ada", ONE, "1", request="r-1")


def test_an_answer_that_leaves_no_memory_has_failed(tmp_path, monkeypatch):
    def none() -> Any:
        raise MemoryError

    with Ledger(tmp_path / "ledger", LIMITS) as ledger:
        claim = ledger.reserve("ada", ONE, "1", request="r-1")
        with monkeypatch.context() as patch:
            patch.setattr(ledger.store, "write", none)
            with pytest.raises(MemoryError), ledger.hold(claim):
                ledger.commit(claim, b"12")
        with pytest.raises(Failed):
            ledger.reserve("ada", ONE, "1", request="r-1")


def test_a_disk_that_takes_nothing_when_the_answer_comes_costs_no_second_charge(disk, tmp_path):
    # It fails before the answer is handed over, so that no answer is the cause.
    with Ledger(tmp_path / "ledger", LIMITS) as ledger:
        claim = ledger.reserve("ada", ONE, "1")
        ledger.store._disconnect()
        disk.fault = ("read", apsw.IOError)
        with ledger.hold(claim):
            refused(ErrorCode.LEDGER_DISK, lambda: ledger.commit(claim, b"12"))
        disk.fault = None
        again = ledger.reserve("ada", ONE, "1")
        assert (again.entry, ledger.commit(again, b"34").stored) == (claim.entry, b"34")
        assert ledger.overall().spent.epsilon == grains("1")


def test_a_witness_that_fails_at_the_commit(tmp_path):
    # The answer is stored by then, but was not shown. Asked again, it is the one shown.
    office = Office(tmp_path)
    with office.open() as ledger:
        claim = ledger.reserve("ada", ONE, "1")
        with failing_os("pwrite", errno.ENOSPC):
            refused(ErrorCode.LEDGER_FULL, lambda: ledger.commit(claim, b"12"))
        assert ledger.reserve("ada", ONE, "1").stored == b"12"
        assert ledger.overall().spent.epsilon == grains("1")
        assert verify(ledger, Witness(office.witness)).problems == ()


@pytest.mark.slow
@pytest.mark.parametrize("questions", [3, 60])
def test_an_older_copy_written_over_the_running_ledger_forgets_nothing(tmp_path, questions):
    # The running ledger has its pages in memory. Whoever opens the file next has all entries, or is refused.
    office = Office(tmp_path)
    with office.open() as ledger:
        office.ask(ledger, 0)
    shutil.copy(office.ledger, tmp_path / "copy")
    with office.open() as ledger:
        for question in range(1, questions):
            office.ask(ledger, question)
        with ledger.store._lock:
            ledger.store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        office.ledger.write_bytes((tmp_path / "copy").read_bytes())
        office.ask(ledger, questions)
    try:
        ledger = office.open()
    except LedgerError:
        return
    with ledger:
        assert ledger.overall().spent.epsilon == grains("1") * (questions + 1)
        assert verify(ledger, Witness(office.witness)).problems == ()


@pytest.mark.slow
@pytest.mark.parametrize("emptied", [False, True])
def test_a_log_without_its_ledger_is_kept_until_the_ledger_is_back(tmp_path, emptied):
    # A killed process leaves its log behind, which holds what it wrote.
    office = Office(tmp_path)

    def work() -> int:
        ledger = office.open()
        office.ask(ledger, 1)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert outcome(in_child(work)) == -signal.SIGKILL
    assert Path(f"{office.ledger}-wal").stat().st_size > 0
    with taken_away(office.ledger):
        if emptied:
            office.ledger.touch()
        for _ in range(2):
            refused(ErrorCode.LEDGER_MISSING, office.open)
    with office.open() as ledger:
        assert ledger.reserve("ada", ONE, "1").stored is not None
        assert verify(ledger, Witness(office.witness)).problems == ()


def test_a_log_deleted_under_a_ledger_that_is_then_killed(tmp_path):
    # What it wrote since is gone with the log, and the witness has seen it.
    office = Office(tmp_path)
    office.open().close()

    def work() -> int:
        ledger = office.open()
        office.ask(ledger, 1)
        Path(f"{office.ledger}-wal").unlink()
        office.ask(ledger, 2)
        os.kill(os.getpid(), signal.SIGKILL)
        return 0

    assert outcome(in_child(work)) == -signal.SIGKILL
    refused(ErrorCode.LEDGER_OLDER, office.open)


# Rights, and limits of the system.


@contextmanager
def nobody() -> Iterator[None]:
    """Root may write anything, so be nobody for a moment."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.fixture
def commons():
    """A folder that anyone may enter and write to."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o777)
        yield Path(name)


@pytest.mark.parametrize(("what", "rights"), [("ledger", 0o444), ("folder", 0o555)])
def test_a_ledger_that_may_not_be_written(commons, what, rights):
    path = commons / "ledger"
    with Ledger(path, LIMITS) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "1"), b"12")
    path.chmod(0o666)
    changed = path if what == "ledger" else commons
    changed.chmod(rights)
    with nobody():
        refused(ErrorCode.LEDGER_READ_ONLY, lambda: Ledger(path, LIMITS))
    changed.chmod(0o777)
    with nobody(), Ledger(path, LIMITS) as ledger:
        assert ledger.reserve("ada", ONE, "1").stored == b"12"
        assert ledger.overall().spent.epsilon == grains("1")


def test_a_new_ledger_in_a_folder_that_may_not_be_written(commons):
    commons.chmod(0o555)
    with nobody():
        refused(ErrorCode.LEDGER, lambda: Ledger(commons / "ledger", LIMITS))


def test_a_witness_that_may_not_be_written(commons):
    witness = Witness(commons / "witness")
    with Ledger(commons / "ledger", LIMITS, witness=witness) as ledger:
        witness.path.chmod(0o444)
        with nobody():
            refused(ErrorCode.LEDGER_WITNESS, lambda: ledger.reserve("ada", ONE, "1"))
        assert ledger.commit(ledger.reserve("ada", ONE, "1"), b"12").stored == b"12"
        assert ledger.overall().spent.epsilon == grains("1")


def test_a_limit_on_the_size_of_files_charges_nothing_and_hides_nothing(tmp_path):
    # A process that may not write files beyond 300 KiB: the log grows by some 60 KiB a question, and then no more.
    office, secret = Office(tmp_path), b"secret" * 4000
    office.open().close()

    def ask_until_full() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (300 * 1024, 300 * 1024))
        asked = 0
        try:
            with office.open() as ledger:
                for question in range(100):
                    ledger.commit(ledger.reserve("ada", ONE, f"{question}"), secret)
                    asked += 1
        except LedgerError as error:
            good = (
                error.code in (ErrorCode.LEDGER_FULL, ErrorCode.LEDGER_DISK)
                and error.fix
                and "secret" not in str(error)
            )
            return asked if good else 201
        return 202

    asked = outcome(in_child(ask_until_full))
    assert 0 < asked < 100
    with office.open() as ledger:
        kinds = [entry.kind for entry in ledger.entries()]
        assert kinds.count(EntryKind.COMMIT) == asked
        assert ledger.overall().spent.epsilon == grains("1") * kinds.count(EntryKind.RESERVE)
        assert verify(ledger, Witness(office.witness)).problems == ()
        assert ledger.reserve("ada", ONE, "0").stored == secret


# A server in place of a file.


def test_a_server_that_is_not_there(tmp_path):
    refused(ErrorCode.LEDGER_UNREACHABLE, lambda: Ledger("postgresql://127.0.0.1:1/clinic", LIMITS, wait=2))


@pytest.mark.slow
def test_a_server_that_drops_the_connection(postgres, witness):
    place = fresh(postgres)
    with Ledger(place, LIMITS, witness=witness) as ledger:
        claim = ledger.reserve("ada", ONE, "1")
        by_hand(place, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")
        refused(ErrorCode.LEDGER_UNREACHABLE, lambda: ledger.commit(claim, b"12"))
        assert ledger.commit(claim, b"12").stored == b"12"  # over a new connection
        assert ledger.overall().spent.epsilon == grains("1")
        assert verify(ledger, witness).problems == ()


@pytest.mark.slow
def test_a_schema_that_is_dropped(postgres, witness):
    place = fresh(postgres)
    _, _, name = place.partition("#")
    with Ledger(place, LIMITS, witness=witness) as ledger:
        ledger.commit(ledger.reserve("ada", ONE, "1"), b"12")
        by_hand(place, f"ALTER SCHEMA tacit_{name} RENAME TO away_{name}")
        refused(ErrorCode.LEDGER_MISSING, lambda: ledger.reserve("ada", ONE, "2"))
        refused(ErrorCode.LEDGER_MISSING, lambda: Ledger(place, LIMITS, witness=witness))
        by_hand(place, f"ALTER SCHEMA away_{name} RENAME TO tacit_{name}")
        assert ledger.reserve("ada", ONE, "1").stored == b"12"
        assert verify(ledger, witness).problems == ()
