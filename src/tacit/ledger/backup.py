"""A copy of a ledger's file, made while others write to it.

**Rule.** The copy is one moment of the ledger: every entry up to a head, with its answer, and none after it. It is
checked from its first entry before it gets its name, and has that name whole or not at all. What is charged after that
moment is not in it; where anything was, a copy that is put back is refused as older than its witness
(`ledger/witness.py`).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from tacit.durable_files import link_draft, sync_path
from tacit.errors import ErrorCode, LedgerError, ParameterError
from tacit.ledger.files import FULL_DISK, PRIVATE
from tacit.ledger.reader import LedgerReader
from tacit.ledger.verify import VerificationReport, verify


def back_up_ledger(ledger: Path | str, target: Path) -> VerificationReport:
    """Copy the ledger to a new file, and return what checking the copy found.

    Where the copy is not whole (`VerificationReport.is_whole`), neither is the ledger, and no file is left. What was
    charged by the rules of an earlier version is copied as it is.
    """
    if not isinstance(ledger, Path):
        fix = "pg_dump of that database is its backup"
        raise ParameterError("ledger", "it is in PostgreSQL, not in a file", fix=fix)
    with _translate_errors(target):
        return _back_up(ledger, target)


def _back_up(ledger: Path, target: Path) -> VerificationReport:
    if target.exists():
        raise FileExistsError
    if not target.absolute().parent.is_dir():
        raise ParameterError("target", f"there is no folder {target.parent}", fix="make it first")
    handle, name = tempfile.mkstemp(prefix=f"{target.name}.", dir=target.absolute().parent)
    draft = Path(name)
    try:
        os.fchmod(handle, PRIVATE)
        os.close(handle)
        _copy(ledger, draft)
        with LedgerReader(draft) as copy:
            report = verify(copy)
        if report.is_whole:
            sync_path(draft)
            if not link_draft(draft, target, PRIVATE):
                raise FileExistsError
        return report
    finally:
        for end in ("", "-wal", "-shm", "-journal"):
            Path(f"{draft}{end}").unlink(missing_ok=True)


@contextmanager
def _translate_errors(target: Path) -> Iterator[None]:
    """Say why the system makes no such file."""
    try:
        yield
    except FileExistsError:
        raise ParameterError("target", f"{target} is there already", fix="name a file that is not") from None
    except OSError as error:
        if error.errno in FULL_DISK:
            raise _full_disk() from error
        what = f"{target} cannot be written: {error.strerror or 'it failed'}"
        raise ParameterError("target", what, fix="name a file that this user may write") from error


def _full_disk() -> LedgerError:
    return LedgerError(ErrorCode.LEDGER_FULL, "the disk of the copy is full", fix="free some space")


def _copy(ledger: Path, draft: Path) -> None:
    """The pages of one moment, in one file without a log."""
    with LedgerReader(ledger):  # says what is wrong with what is no ledger
        pass
    try:
        source = apsw.Connection(str(ledger), flags=apsw.SQLITE_OPEN_READONLY)
        target = apsw.Connection(str(draft))
        try:
            source.set_busy_timeout(30_000)
            with target.backup("main", source, "main") as copying:
                while not copying.done:
                    copying.step(-1)
            target.execute("PRAGMA journal_mode = DELETE")
        except apsw.IOError as error:
            if target.system_errno in FULL_DISK:
                raise _full_disk() from error
            raise
        finally:
            target.close()
            source.close()
    except apsw.FullError as error:
        raise _full_disk() from error
    except (apsw.Error, OSError) as error:
        fix = "check both disks, and verify the ledger"
        raise LedgerError(ErrorCode.LEDGER_DISK, "the ledger cannot be copied", fix=fix) from error
