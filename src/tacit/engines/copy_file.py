"""A copy in a file: made once for an epoch and a policy, and opened by every process that asks.

The file is a DuckDB database that only its owner may read. It is written aside and moved into place when it is whole.
A stamp in it says what it is a copy of: the policy's meaning with the epoch, and how the tables lie. A file with
another stamp is made anew, unless it is of a higher epoch.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from tacit.canonical import Table, canonical_text, tag
from tacit.engines.duckdb_connection import connect_in_memory, limit_memory
from tacit.engines.ingest import ReadTable
from tacit.engines.layout import CopyLayout
from tacit.engines.scalars import quote_text
from tacit.errors import DataError, ErrorCode
from tacit.query.canonical import NODES

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FORMAT = 4
_METADATA_TABLE = "tacit_copy"
_LAYOUTS: Table = {**NODES, CopyLayout: tag("Layout", "table rows unit scalars ranges texts")}
_MEMORY = 3_200_000_000  # bytes to sort in, the largest part of 4 GB; what does not fit goes to disk

ReadTables = dict[str, ReadTable]


@dataclass(frozen=True)
class CopyFile:
    """Where a copy lies, its stamp, and the epoch of its data."""

    path: Path
    stamp: str
    epoch: int = 0


def fingerprint_copy(meaning: str, layouts: Iterable[CopyLayout]) -> str:
    """What a copy is a copy of: the policy's meaning with the epoch, and how its tables lie."""
    written = [canonical_text(layout, _LAYOUTS) for layout in layouts]
    return hashlib.sha256(json.dumps([FORMAT, meaning, written]).encode()).hexdigest()


def attach_copy(connection: DuckDBPyConnection, copy: CopyFile) -> ReadTables | None:
    """Attach a copy as `copy`, read-only, and say what was read into it; None where there is none with this stamp."""
    row = _attach(connection, copy.path, "stamp, tables")
    if row is None or row[0] != copy.stamp:
        connection.execute("DETACH DATABASE IF EXISTS copy")
        return None
    return {table: ReadTable(**read) for table, read in json.loads(row[1]).items()}


def attach_or_make(
    connection: DuckDBPyConnection, copy: CopyFile, read: Callable[[DuckDBPyConnection], ReadTables]
) -> ReadTables:
    """Attach a copy, after making it by `read` where there is none. Of several processes one makes it, others wait.

    **Rule.** No copy is replaced by one of a lower epoch: its source may have changed since, and then its data is
    nowhere else. Copies of earlier versions do not say their epoch, and are replaced by any other.
    """
    found = attach_copy(connection, copy)
    if found is None:
        with _lock_folder(copy.path):
            found = attach_copy(connection, copy)
            if found is None:
                _check_epoch(connection, copy)
                make_copy(copy, read)
                found = attach_copy(connection, copy)
    if found is None:
        what = f"the copy {copy.path.name} was replaced while it was opened"
        raise DataError(ErrorCode.DATA, what, fix="give each policy a copy of its own under [data]")
    return found


def attach_made(connection: DuckDBPyConnection, copy: CopyFile) -> ReadTables:
    """Attach a copy that another process has made; DataError where there is none with this stamp."""
    found = attach_copy(connection, copy)
    if found is None:
        what = f"{copy.path.name} is not the copy of epoch {copy.epoch}"
        raise DataError(ErrorCode.DATA, what, fix="make it first: tacit prepare")
    return found


def make_copy(copy: CopyFile, read: Callable[[DuckDBPyConnection], ReadTables]) -> None:
    """Make a copy, whole or not at all: `read` fills the database `copy` of a connection.

    It is written in a folder that only this user can enter; so is what a sort moves to disk.
    """
    folder = copy.path.with_name(f".{copy.path.name}.unfinished")
    shutil.rmtree(folder, ignore_errors=True)
    aside = folder / copy.path.name
    with _explain_unwritten(copy.path):
        folder.mkdir(mode=0o700)
    try:
        with _explain_unwritten(copy.path, folder), connect_in_memory() as connection:
            limit_memory(connection, _MEMORY, folder / "sorting")
            connection.execute(f"ATTACH {quote_text(str(aside))} AS copy")
            tables = json.dumps({name: table.to_dict() for name, table in read(connection).items()})
            connection.execute(
                f"CREATE TABLE copy.{_METADATA_TABLE} AS "
                f"SELECT {quote_text(copy.stamp)} AS stamp, {quote_text(tables)} AS tables, {copy.epoch} AS epoch"
            )
            connection.execute("DETACH copy")
        with _explain_unwritten(copy.path):
            os.chmod(aside, 0o600)
            aside.replace(copy.path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _check_epoch(connection: DuckDBPyConnection, copy: CopyFile) -> None:
    """Raise DataError where a copy of a higher epoch lies at the path of this one."""
    epoch = _read_epoch(connection, copy.path)
    if epoch is not None and epoch > copy.epoch:
        what = (
            f"{copy.path.name} holds the data of epoch {epoch}, so no copy of epoch {copy.epoch} is made in its place"
        )
        fix = f'write epoch = {epoch} under [data], or name another place: copy = "/path/to/file"'
        fix += "; if the policy was edited meanwhile, open it again"
        raise DataError(ErrorCode.DATA, what, fix=fix)


def _read_epoch(connection: DuckDBPyConnection, path: Path) -> int | None:
    """The epoch that a copy says it is of; None where there is no copy, or one of an earlier version."""
    row = _attach(connection, path, "epoch")
    connection.execute("DETACH DATABASE IF EXISTS copy")
    return None if row is None else int(row[0])


def _attach(connection: DuckDBPyConnection, path: Path, columns: str) -> tuple[Any, ...] | None:
    """Attach a copy as `copy`, read-only, and read these columns of its metadata; None where no file there has them."""
    if not os.path.exists(path):
        return None
    try:
        connection.execute(f"ATTACH {quote_text(str(path))} AS copy (READ_ONLY)")
        row: tuple[Any, ...] | None = connection.execute(f"SELECT {columns} FROM copy.{_METADATA_TABLE}").fetchone()
    except duckdb.Error:
        return None
    return row


@contextmanager
def _lock_folder(path: Path) -> Iterator[None]:
    """Hold a lock that processes share who make copies in one folder. It ends with the process."""
    with _explain_unwritten(path):
        handle = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


@contextmanager
def _explain_unwritten(path: Path, folder: Path | None = None) -> Iterator[None]:
    """Say that a copy cannot be written, and why.

    Of a connection that reads the source and writes to `folder`, that is an error of DuckDB which names the folder, or
    what the reader of the source made of it.
    """
    try:
        yield
    except OSError as problem:
        if folder is not None:
            raise
        raise _unwritable(path, problem.strerror or "it failed") from None
    except (duckdb.Error, DataError) as problem:
        text = str(problem.__context__ if isinstance(problem, DataError) else problem)  # whose own text is cut
        if folder is None or str(folder) not in text:
            raise
        reasons = [os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)]
        raise _unwritable(path, next((each for each in reasons if each in text), "the disk failed")) from None


def _unwritable(path: Path, reason: str) -> DataError:
    what = f"the copy {path.name} cannot be written: {reason}"
    fix = 'name another place under [data]: copy = "/path/to/file"; or copy = "memory"'
    if reason in {os.strerror(errno.ENOSPC), os.strerror(errno.EDQUOT)}:
        fix = f"free some space, or {fix}"
    return DataError(ErrorCode.DATA, what, fix=fix)
