"""The ledger's files are their owner's alone, from their first byte on, whatever the umask."""

from __future__ import annotations

import os
import stat
import sys
import threading

import pytest
from tests.ledger.conftest import limits, noise
from tests.support.forks import in_child, outcome

from tacit.ledger.files import make, tighten
from tacit.ledger.ledger import Ledger
from tacit.ledger.reader import LedgerReader
from tacit.ledger.recovery import accept_loss
from tacit.ledger.signing import SigningKey
from tacit.ledger.witness import Witness

LIMITS = limits("9", ada="9")


def modes(folder) -> dict[str, int]:
    return {file.name: stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}


def use(folder) -> None:
    key, witness = SigningKey.at(folder / "key", create=True), Witness(folder / "witness")
    with Ledger(folder / "ledger", LIMITS, key=key, witness=witness) as ledger:
        ledger.commit(ledger.reserve("ada", noise("1"), "a"), b"12")
        found = modes(folder)
        assert set(found) >= {"ledger", "ledger-wal", "ledger-shm", "key", "witness"}
        assert set(found.values()) == {0o600}, found
    (folder / "ledger").unlink()
    accept_loss(folder / "ledger", LIMITS, key=key, witness=witness, because="a disk died")
    assert set(modes(folder).values()) == {0o600}, modes(folder)


@pytest.mark.slow
@pytest.mark.parametrize("mask", [0o000, 0o022, 0o077, 0o777])
def test_only_the_owner_may_read_or_write_what_a_ledger_makes(tmp_path, mask):
    def work() -> int:
        os.umask(mask)
        use(tmp_path)
        return 0

    assert outcome(in_child(work)) == 0


def test_nobody_ever_sees_a_file_that_others_may_read(tmp_path):
    # At every call by which this process makes, opens or changes a file, the modes of all that are there are looked at.
    seen: list[tuple[str, int]] = []
    watching = True

    def hook(event: str, given) -> None:
        if watching and event in {"open", "os.chmod", "os.rename", "os.link", "os.remove"}:
            seen.extend(modes(tmp_path).items())

    before = os.umask(0)
    try:
        sys.addaudithook(hook)  # which stays for good, so it is told when to look away
        use(tmp_path)
    finally:
        watching = False
        os.umask(before)
    assert {mode for _, mode in seen} == {0o600}
    assert len(seen) > 20


def test_files_that_others_may_read_are_tightened_at_open(tmp_path):
    def opened() -> Ledger:
        key, witness = SigningKey.at(tmp_path / "key", create=True), Witness(tmp_path / "witness")
        return Ledger(tmp_path / "ledger", LIMITS, key=key, witness=witness)

    with opened() as ledger:
        ledger.reserve("ada", noise("1"), "a")
        for file in tmp_path.iterdir():  # as an earlier version left them, with a process still at work
            file.chmod(0o644)
        with LedgerReader(tmp_path / "ledger"):
            assert modes(tmp_path)["ledger"] == 0o644  # a reader changes nothing
        with opened():
            assert set(modes(tmp_path).values()) == {0o600}


def test_an_empty_file_that_others_may_read_is_tightened_before_anything_is_in_it(tmp_path):
    (tmp_path / "ledger").touch(0o666)
    with Ledger(tmp_path / "ledger", LIMITS):
        assert set(modes(tmp_path).values()) == {0o600}


def test_rights_are_taken_away_and_none_is_given(tmp_path):
    for mode, left in [(0o444, 0o400), (0o640, 0o600), (0o777, 0o700), (0o400, 0o400)]:
        (tmp_path / "file").touch()
        (tmp_path / "file").chmod(mode)
        tighten(tmp_path / "file")
        assert modes(tmp_path) == {"file": left}
        (tmp_path / "file").unlink()
    tighten(tmp_path / "none")


def test_of_many_who_make_a_file_one_wins_and_no_draft_is_left(tmp_path):
    threads = [threading.Thread(target=make, args=(tmp_path / "file", b"%d" % n)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert modes(tmp_path) == {"file": 0o600}
    before = (tmp_path / "file").read_bytes()
    make(tmp_path / "file", b"late")
    assert (tmp_path / "file").read_bytes() == before


def test_a_link_to_where_there_is_no_file_yet(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "ledger").symlink_to(tmp_path / "real" / "ledger")
    with Ledger(tmp_path / "ledger", LIMITS):
        assert set(modes(tmp_path / "real").values()) == {0o600}
