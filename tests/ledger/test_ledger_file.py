"""The file behind the ledger: what can go wrong with it, and what is said then."""

from __future__ import annotations

import contextlib
import os
import resource
import tempfile
from fractions import Fraction
from pathlib import Path

import apsw
import pytest

from tacit.accounting.filter import Amount
from tacit.errors import Code, LedgerError
from tacit.ledger import schema
from tacit.ledger.budget import Limits
from tacit.ledger.file import is_too_old
from tacit.ledger.history import History
from tacit.ledger.sqlite import Ledger
from tacit.ledger.verify import verify
from tacit.privacy.loss import LaplaceNoise

TEN = Amount.cap(Fraction(10), Fraction(0))
LIMITS = Limits(TEN, {"ada": TEN})
ONE = LaplaceNoise(Fraction(1), 1)


def opening(path, kind=Ledger):
    with pytest.raises(LedgerError) as error:
        Ledger(path, LIMITS) if kind is Ledger else History(path)
    assert error.value.fix
    return error.value


@contextlib.contextmanager
def without_rights():
    """Root may write anything, so be nobody for a moment."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def shared_folder():
    """A folder that nobody, the user, can enter."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield Path(name)


def test_a_missing_folder(tmp_path):
    error = opening(tmp_path / "no" / "ledger")
    assert error.code is Code.LEDGER
    assert "has no folder" in error.what
    assert not (tmp_path / "no").exists()


def test_a_folder_in_place_of_the_file(tmp_path):
    assert opening(tmp_path).code is Code.LEDGER


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("buy milk, and " * 1000)
    assert "is not a ledger" in opening(path).what
    assert path.read_text() == "buy milk, and " * 1000


def test_a_database_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "other"
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE patients (name TEXT)")
    connection.close()
    before = path.read_bytes()
    assert "is not a ledger" in opening(path).what
    assert path.read_bytes() == before


def test_a_ledger_of_another_version(tmp_path):
    path = tmp_path / "ledger"
    Ledger(path, LIMITS).close()
    connection = apsw.Connection(str(path))
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    assert "has version 2; this Tacit reads 1" in opening(path).what


def test_an_empty_file_becomes_a_ledger(tmp_path):
    path = tmp_path / "ledger"
    path.touch()
    Ledger(path, LIMITS).close()
    opening(tmp_path / "other", History)


def test_a_reader_makes_no_file(tmp_path):
    assert "does not exist" in opening(tmp_path / "ledger", History).what
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_may_not_be_written(shared_folder):
    path = shared_folder / "ledger"
    with Ledger(path, LIMITS) as ledger:
        ledger.reserve("ada", ONE, "a")
    path.chmod(0o444)
    with without_rights():
        assert "cannot be written" in opening(path).what


def test_a_folder_that_may_not_be_written(shared_folder):
    shared_folder.chmod(0o555)
    with without_rights():
        assert opening(shared_folder / "ledger").code is Code.LEDGER


def test_a_ledger_in_use_is_said_to_be_busy(tmp_path):
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS, wait=0.05) as ledger:
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError) as error:
            ledger.reserve("ada", ONE, "a")
        assert error.value.code is Code.LEDGER_BUSY
        assert ledger.overall().spent == Amount.zero()  # reading goes on
        other.execute("ROLLBACK")
        other.close()
        ledger.reserve("ada", ONE, "a")


def test_a_commit_reaches_the_disk_before_it_returns(tmp_path):
    with Ledger(tmp_path / "ledger", LIMITS) as ledger, ledger.file.read() as connection:
        assert connection.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
        assert connection.execute("PRAGMA synchronous").fetchall() == [(2,)]  # FULL
        assert connection.execute("PRAGMA foreign_keys").fetchall() == [(1,)]


def test_an_exception_undoes_all_of_a_transaction(tmp_path):
    with Ledger(tmp_path / "ledger", LIMITS) as ledger:

        def interrupted():
            with ledger.file.write() as connection:
                connection.execute("UPDATE totals SET epsilon = 5")
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            interrupted()
        assert ledger.overall().spent == Amount.zero()
        ledger.reserve("ada", ONE, "a")


def test_a_full_disk_charges_nothing_and_hides_nothing(tmp_path):
    # A process that may not write files beyond 200 KiB: the log grows by some 30 KiB a question, and then no more.
    path = tmp_path / "ledger"
    Ledger(path, LIMITS).close()
    secret = b"secret" * 4000

    def ask_until_full() -> int:
        resource.setrlimit(resource.RLIMIT_FSIZE, (200 * 1024, 200 * 1024))
        asked = 0
        try:
            with Ledger(path, LIMITS) as ledger:
                for number in range(100):
                    claim = ledger.reserve("ada", LaplaceNoise(Fraction(100), 1), f"{number}")
                    ledger.commit(claim, secret)
                    asked += 1
        except LedgerError as error:
            return asked if error.code is Code.LEDGER and error.fix and "secret" not in str(error) else 201
        return 202

    child = os.fork()
    if child == 0:
        code = 203
        try:
            code = ask_until_full()
        finally:
            os._exit(code)
    asked = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert 0 < asked < 100
    with Ledger(path, LIMITS) as ledger:
        assert ledger.overall().spent.epsilon >= asked * 10**10  # a hundredth is 1e10 grains
        assert verify(ledger).ok


@pytest.mark.parametrize(("version", "old"), [("3.51.2", True), ("3.51.3", False), ("3.9.0", True), ("4.0", False)])
def test_versions_that_can_lose_commits(version, old):
    assert is_too_old(version) is old
