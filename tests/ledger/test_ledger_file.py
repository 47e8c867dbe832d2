"""The file behind the ledger: what is opened, how it is written, and what is left alone."""

from __future__ import annotations

import apsw
import pytest
from tests.ledger.conftest import by_hand, limits, noise

from tacit.accounting.filters import BudgetCharge
from tacit.errors import ErrorCode, LedgerError
from tacit.ledger import schema
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.sqlite import is_too_old

LIMITS = limits("10", ada="10")
ONE = noise("1")


def opening(path, kind=Ledger):
    with pytest.raises(LedgerError) as error:
        Ledger(path, LIMITS) if kind is Ledger else LedgerReader(path)
    assert error.value.fix
    return error.value


def test_a_missing_folder(tmp_path):
    error = opening(tmp_path / "no" / "ledger")
    assert error.code is ErrorCode.LEDGER
    assert "has no folder" in error.what
    assert not (tmp_path / "no").exists()


def test_a_folder_in_place_of_the_file(tmp_path):
    assert opening(tmp_path).code is ErrorCode.LEDGER


def test_a_file_that_is_no_database(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("buy milk, and " * 1000)
    assert "is not a ledger" in opening(path).what
    assert path.read_text() == "buy milk, and " * 1000


def test_a_database_of_something_else_is_left_alone(tmp_path):
    path = tmp_path / "other"
    by_hand(path, "CREATE TABLE patients (name TEXT)")
    before = path.read_bytes()
    assert "is not a ledger" in opening(path).what
    assert path.read_bytes() == before


def test_a_ledger_of_another_version(tmp_path):
    path = tmp_path / "ledger"
    Ledger(path, LIMITS).close()
    by_hand(path, f"PRAGMA user_version = {schema.SCHEMA_VERSION + 1}")
    assert f"has version {schema.SCHEMA_VERSION + 1}; this Tacit reads {schema.SCHEMA_VERSION}" in opening(path).what


def test_an_empty_file_becomes_a_ledger(tmp_path):
    path = tmp_path / "ledger"
    path.touch()
    Ledger(path, LIMITS).close()
    LedgerReader(path).close()


def test_a_reader_makes_no_file(tmp_path):
    error = opening(tmp_path / "ledger", LedgerReader)
    assert error.code is ErrorCode.LEDGER_MISSING
    assert list(tmp_path.iterdir()) == []


def test_a_ledger_in_use_is_said_to_be_busy(tmp_path):
    path = tmp_path / "ledger"
    with Ledger(path, LIMITS, wait=0.05) as ledger:
        other = apsw.Connection(str(path))
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(LedgerError) as error:
            ledger.reserve("ada", ONE, "a")
        assert error.value.code is ErrorCode.LEDGER_BUSY
        assert ledger.overall().spent == BudgetCharge.zero()  # reading goes on
        other.execute("ROLLBACK")
        other.close()
        ledger.reserve("ada", ONE, "a")


def test_a_commit_reaches_the_disk_before_it_returns(tmp_path):
    with Ledger(tmp_path / "ledger", LIMITS) as ledger, ledger.store.read() as session:
        assert session.run("PRAGMA journal_mode") == [("wal",)]
        assert session.run("PRAGMA synchronous") == [(2,)]  # FULL
        assert session.run("PRAGMA fullfsync") == session.run("PRAGMA checkpoint_fullfsync") == [(1,)]
        assert session.run("PRAGMA foreign_keys") == [(1,)]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, ValueError])
def test_an_exception_undoes_all_of_a_transaction(tmp_path, stop):
    with Ledger(tmp_path / "ledger", LIMITS) as ledger:

        def interrupted():
            with ledger.store.write() as session:
                session.run("UPDATE totals SET epsilon = 5")
                raise stop

        with pytest.raises(stop):
            interrupted()
        assert ledger.overall().spent == BudgetCharge.zero()
        ledger.reserve("ada", ONE, "a")


@pytest.mark.parametrize(("version", "old"), [("3.51.2", True), ("3.51.3", False), ("3.9.0", True), ("4.0", False)])
def test_versions_that_can_lose_commits(version, old):
    assert is_too_old(version) is old
