"""A witness outside the database: the heads that the ledger once had, so that an older copy of it is noticed.

>>> import tempfile
>>> folder = tempfile.TemporaryDirectory()
>>> witness = Witness(Path(folder.name) / "clinic.witness")
>>> witness.create()
>>> witness.note(WitnessedHead(7, "ab" * 32, BudgetCharge.zero()))
>>> witness.note(WitnessedHead(5, "cd" * 32, BudgetCharge.zero()))  # the count only grows
>>> witness.last().sequence
7
>>> folder.cleanup()
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tacit.accounting.filters import BudgetCharge
from tacit.durable_files import sync_path
from tacit.errors import ErrorCode, LedgerError
from tacit.ledger.files import FULL_DISK, PRIVATE

_HEADER = b"tacit witness 1\n"
_RECORD = struct.Struct(">Q32s4q")
_CHECK = 8
_SIZE = _RECORD.size + _CHECK
_CODES = {
    **dict.fromkeys(FULL_DISK, ErrorCode.LEDGER_FULL),
    errno.EROFS: ErrorCode.LEDGER_READ_ONLY,
}


@dataclass(frozen=True)
class WitnessedHead:
    """A head that was seen: its sequence, its hash, and the sum of all charges to anyone up to it."""

    sequence: int
    hash: str
    everyone: BudgetCharge


class Witness:
    """A file of sights, one after the other, each on disk before the answer that it covers is shown.

    **Theorem.** Let every entry, or one after it, be noted after it is durable in the ledger and before anything of it
    is shown, and let whoever notes it check that its ledger holds the sight that it comes after. Then a ledger that
    does not hold the last sight is not the one that all shown answers were charged to, and one that holds it holds all
    sights. Proof: entries are never changed, so the ledger that wrote the last sight holds it for ever after, with the
    sight before it, with the one before that, and so on. Of two ledgers that go on from one copy, at most one is noted.

    This is about the entries that were noted in this file. A host whose witness is its own notices the loss of what it
    has itself written and read, and not of what other hosts were shown. So hosts share one witness, on a disk that
    fails apart from the database's, or the database loses no commit that it has acknowledged, because it replicates
    synchronously.

    A ledger may be ahead of its witness, by what was written when the machine stopped. Two who note at once take turns,
    and the second looks for what the first has noted in its ledger; who comes late with an earlier entry has nothing to
    add. A torn record at the end is passed over.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def exists(self) -> bool:
        """Whether there is a witness. An empty file is none: the machine stopped while it was made."""
        with self._translate_errors():
            return self.path.exists() and self.path.stat().st_size > 0

    def create(self) -> None:
        """Make a witness that has seen nothing, if there is none."""
        with self._translate_errors():
            handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, PRIVATE)
            try:
                os.fchmod(handle, PRIVATE)
                fcntl.flock(handle, fcntl.LOCK_EX)
                if os.fstat(handle).st_size == 0:
                    os.write(handle, _HEADER)
                    os.fsync(handle)
                    sync_path(self.path.parent)
            finally:
                os.close(handle)

    def last(self) -> WitnessedHead | None:
        """The newest sight."""
        return next(self.backwards(), None)

    def backwards(self) -> Iterator[WitnessedHead]:
        """The sights, newest first."""
        with self._translate_errors():
            handle = os.open(self.path, os.O_RDONLY)
            try:
                yield from _read_newest_first(handle, self._checked_size(handle))
            finally:
                os.close(handle)

    def note(
        self,
        sight: WitnessedHead,
        *,
        after: WitnessedHead | None = None,
        check: Callable[[WitnessedHead], None] = lambda seen: None,
    ) -> None:
        """Write a sight down, durably, unless a newer one stands there. `after` is the newest one that the ledger is
        known to hold; where another one stands there, `check` raises unless the ledger holds that one too.
        """
        while (seen := self._append(sight, after)) is not None:
            check(seen)  # while others may note: the ledger may have to be waited for
            after = seen

    def _append(self, sight: WitnessedHead, after: WitnessedHead | None) -> WitnessedHead | None:
        """Write a sight down after the one that it follows; where another one is the newest, return that."""
        with self._translate_errors():
            handle = os.open(self.path, os.O_RDWR)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
                size = self._checked_size(handle)
                seen = next(_read_newest_first(handle, size), None)
                if seen is not None and seen != after:
                    return seen
                if seen is None or seen.sequence < sight.sequence:
                    whole = len(_HEADER) + (size - len(_HEADER)) // _SIZE * _SIZE
                    if os.pwrite(handle, _pack(sight), whole) != _SIZE:
                        raise OSError(errno.ENOSPC, "a short write")
                    os.fdatasync(handle) if hasattr(os, "fdatasync") else os.fsync(handle)
                return None
            finally:
                os.close(handle)

    def _checked_size(self, handle: int) -> int:
        if os.pread(handle, len(_HEADER), 0) != _HEADER:
            raise self._error("is not a witness", "put the witness back as it was")
        return os.fstat(handle).st_size

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError as error:
            fix = "put it back; if it is lost, charge all that may be missing: tacit ledger accept-loss"
            raise self._error("is missing", fix) from error
        except OSError as error:
            code = _CODES.get(error.errno or 0, ErrorCode.LEDGER_WITNESS)
            raise self._error("cannot be read or written", "check its disk and this user's rights", code) from error

    def _error(self, what: str, fix: str, code: ErrorCode = ErrorCode.LEDGER_WITNESS) -> LedgerError:
        return LedgerError(code, f"the witness {self.path} {what}", fix=fix)


def _read_newest_first(handle: int, size: int) -> Iterator[WitnessedHead]:
    for index in reversed(range((size - len(_HEADER)) // _SIZE)):
        sight = _unpack(os.pread(handle, _SIZE, len(_HEADER) + index * _SIZE))
        if sight is not None:
            yield sight


def _pack(sight: WitnessedHead) -> bytes:
    record = _RECORD.pack(sight.sequence, bytes.fromhex(sight.hash), *sight.everyone.grains)
    return record + hashlib.sha256(record).digest()[:_CHECK]


def _unpack(data: bytes) -> WitnessedHead | None:
    record, check = data[: _RECORD.size], data[_RECORD.size :]
    if hashlib.sha256(record).digest()[:_CHECK] != check:
        return None
    sequence, head, *sums = _RECORD.unpack(record)
    return WitnessedHead(sequence, head.hex(), BudgetCharge(*sums))
