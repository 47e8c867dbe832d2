"""A backup is one moment of a ledger, whole or not there, whatever happens meanwhile."""

from __future__ import annotations

import errno
import os
import sqlite3
import stat
import threading

import pytest
from tests.ledger.conftest import clock, limits, noise

from tacit import durable_files
from tacit.errors import ErrorCode, LedgerError, ParameterError
from tacit.ledger import backup
from tacit.ledger.backup import back_up_ledger
from tacit.ledger.entries import EntryKind
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader


@pytest.fixture
def opened(tmp_path, key, witness):
    with Ledger(tmp_path / "ledger", limits("100", ada="100"), key=key, witness=witness) as ledger:
        yield ledger


def charge(ledger, number: int) -> None:
    claim = ledger.reserve("ada", noise("0.001"), f"{number:064x}")
    with ledger.hold(claim):
        ledger.commit(claim, b"answer")


def test_a_copy_has_every_entry_of_its_moment_and_is_private(opened, tmp_path):
    for number in range(5):
        charge(opened, number)
    found = back_up_ledger(opened.store.path, tmp_path / "copy.ledger")
    with LedgerReader(opened.store.path) as source, LedgerReader(tmp_path / "copy.ledger") as copy:
        assert [entry.hash for entry in copy.entries()] == [entry.hash for entry in source.entries()]
        assert found.ok and found.entries == sum(1 for _ in source.entries())
    assert stat.S_IMODE((tmp_path / "copy.ledger").stat().st_mode) == 0o600
    # one file, in which SQLite's own module finds nothing wrong either
    with sqlite3.connect(f"file:{tmp_path / 'copy.ledger'}?mode=ro", uri=True) as plain:
        assert plain.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    plain.close()


def test_copies_that_are_made_while_others_charge_are_moments(opened, tmp_path):
    stop = threading.Event()

    def go_on() -> None:
        number = 100
        while not stop.is_set():
            charge(opened, number)
            number += 1

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        sizes = [back_up_ledger(opened.store.path, tmp_path / f"{number}.ledger").entries for number in range(5)]
    finally:
        stop.set()
        thread.join()
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    with LedgerReader(opened.store.path) as source:
        hashes = [entry.hash for entry in source.entries()]
    for number, size in enumerate(sizes):
        with LedgerReader(tmp_path / f"{number}.ledger") as copy:
            assert [entry.hash for entry in copy.entries()] == hashes[:size]


@pytest.mark.parametrize(
    ("module", "step"),
    [
        (backup, "_copy"),
        (backup, "verify"),
        (backup, "sync_path"),
        (backup, "link_draft"),
        (durable_files, "sync_path"),
    ],
)
def test_a_backup_that_stops_at_any_step_leaves_nothing_half_made(opened, tmp_path, monkeypatch, module, step):
    charge(opened, 1)

    def stop(*given: object) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, step, stop)
    with pytest.raises(KeyboardInterrupt):
        back_up_ledger(opened.store.path, tmp_path / "copy.ledger")
    left = {name for name in os.listdir(tmp_path) if name.startswith("copy")}
    assert left <= {"copy.ledger"}  # which has its name only once it is whole
    if left:
        with LedgerReader(tmp_path / "copy.ledger") as copy:
            assert sum(1 for _ in copy.entries()) == sum(1 for _ in opened.entries())


def test_a_backup_is_made_where_files_have_no_links(opened, tmp_path, monkeypatch):
    charge(opened, 1)

    def link(*given: object) -> None:
        raise OSError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", link)
    target = tmp_path / "copy.ledger"
    assert back_up_ledger(opened.store.path, target).ok and stat.S_IMODE(target.stat().st_mode) == 0o600
    with LedgerReader(target) as copy:
        assert sum(1 for _ in copy.entries()) == sum(1 for _ in opened.entries())
    with pytest.raises(ParameterError, match="is there already"):
        back_up_ledger(opened.store.path, target)


def test_a_ledger_that_is_not_in_order_is_not_copied(opened, tmp_path):
    for number in range(3):
        charge(opened, number)
    path = opened.store.path
    opened.close()
    with sqlite3.connect(path) as plain:
        for (name,) in plain.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            plain.execute(f"DROP TRIGGER {name}")
        plain.execute("UPDATE entries SET who = 'ben' WHERE sequence = 2")
    plain.close()
    found = back_up_ledger(path, tmp_path / "copy.ledger")
    assert not found.ok and not (tmp_path / "copy.ledger").exists()


def test_a_ledger_that_an_earlier_version_charged_by_its_rules_is_copied(tmp_path):
    path, target, half = tmp_path / "ledger", tmp_path / "copy", noise("0.5")
    with Ledger(path, limits("10", ada="1", bo="1", monthly=["ada"])) as ledger, clock() as set_to:
        set_to("2030-01-15")
        ledger.fail(ledger.reserve("ada", half, "a"))
        ledger.commit(ledger.reserve("bo", half, "a"), b"12")
        set_to("2030-02-01")
        asked, other = (ledger.describe_request("ada", half, key) for key in "ab")
        with ledger._writing() as book:  # a failure that pays, and a month that is over
            ledger._write(book, EntryKind.REPEAT, asked, month="2030-01")
            ledger._write(book, EntryKind.RESERVE, other, charge=other.cost, month="2030-01", shared=1)
    found = back_up_ledger(path, target)
    assert (len(found.problems), found.former, found.ok, found.is_whole) == (2, 2, False, True)
    with LedgerReader(path) as ledger, LedgerReader(target) as copy:
        assert list(copy.entries()) == list(ledger.entries())


def test_mistakes_are_said_and_nothing_is_overwritten(opened, tmp_path):
    there = tmp_path / "there"
    there.write_text("mine")
    with pytest.raises(ParameterError, match="there already"):
        back_up_ledger(opened.store.path, there)
    assert there.read_text() == "mine"
    with pytest.raises(ParameterError, match="no folder"):
        back_up_ledger(opened.store.path, tmp_path / "nowhere" / "copy.ledger")
    with pytest.raises(ParameterError, match="PostgreSQL"):
        back_up_ledger("postgresql://host/ledgers", tmp_path / "copy.ledger")
    with pytest.raises(LedgerError):
        back_up_ledger(there, tmp_path / "copy.ledger")
    assert not (tmp_path / "copy.ledger").exists()


@pytest.mark.parametrize(("number", "error"), [(errno.EACCES, ParameterError), (errno.ENOSPC, LedgerError)])
@pytest.mark.parametrize("step", ["tempfile.mkstemp", "os.link"])
def test_what_the_system_does_not_make_is_said_with_its_reason(opened, tmp_path, monkeypatch, step, number, error):
    def fail(*given: object, **named: object) -> None:
        raise OSError(number, os.strerror(number))

    module, _, call = step.partition(".")
    with monkeypatch.context() as patch:
        patch.setattr(getattr(backup, module), call, fail)
        with pytest.raises(error, match=r"disk of the copy is full|cannot be written: Permission denied") as caught:
            back_up_ledger(opened.store.path, tmp_path / "copy.ledger")
    assert caught.value.code is (ErrorCode.LEDGER_FULL if error is LedgerError else ErrorCode.PARAMETER)
    assert not any(name.startswith("copy") for name in os.listdir(tmp_path))
    with pytest.raises(ParameterError, match="File name too long"):
        back_up_ledger(opened.store.path, tmp_path / ("y" * 300))
