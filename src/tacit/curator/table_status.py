"""The tables of a policy as the owner sees them: which are locked, since when and why. No data is touched."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tacit.ledger.entries import Entry, EntryKind
from tacit.ledger.reader import LedgerReader
from tacit.ledger.table_locks import TableLock, bits_learned, count_runs
from tacit.policy.check import PolicyAdvice
from tacit.policy.locate import format_path
from tacit.policy.model import Policy, Table


@dataclass(frozen=True)
class FailedQuestion:
    """The charge whose failure locked a table: whose it was, and how many runs over the table came before its lock."""

    analyst: str
    runs: int

    @property
    def bits(self) -> float:
        """The most that analysts can have learned from it (`ledger/table_locks.py`)."""
        return bits_learned(self.runs)


@dataclass(frozen=True)
class TableStatus:
    """A table, and its lock where it has one."""

    table: Table
    epoch: int
    live: bool
    lock: TableLock | None = None
    failed: FailedQuestion | None = None

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        plain: dict[str, Any] = {
            "table": self.table.name,
            "unit": None if self.table.public else str(self.table.unit),
            "epoch": self.epoch,
            "live": self.live,
            "locked": self.lock is not None,
        }
        if self.lock is not None:
            plain |= {"since": self.lock.time, "entry": self.lock.entry, "cause": self.lock.cause}
        if self.lock is not None and self.failed is not None:
            plain |= {"claim": self.lock.claim, "who": self.failed.analyst, "questions": self.failed.runs}
            plain["bits"] = round(self.failed.bits, 3)
        return plain

    def describe_cause(self) -> str:
        """Why it is locked, in sentences; where the text of the error is, which may quote rows."""
        if self.lock is None:
            return f"{self.table.name} is not locked."
        since = f"{self.table.name} is locked since {self.lock.time[:19]} UTC by entry {self.lock.entry}: "
        if self.failed is None:
            return f"{since}{self.lock.cause}."
        return (
            f"{since}charge {self.lock.claim}, of {self.failed.analyst}, failed ({self.lock.cause or 'unknown'}).\n"
            f"The log of the process that ran it has the error, at: entry {self.lock.claim} failed.\n"
            f"{self.failed.runs} questions about the table were run up to then, so its failure has told analysts "
            f"at most {self.failed.bits:.1f} bits."
        )


def list_table_statuses(policy: Policy, history: LedgerReader | None) -> list[TableStatus]:
    """Return every table of a policy with what the ledger says of it; None is a ledger that does not exist yet."""
    locks = {} if history is None else history.locks()
    live = policy.live_tables
    found = []
    for table in policy.tables:
        lock = locks.get(table.name.lower())
        failed = None if lock is None or history is None else _find_failed(history, lock)
        found.append(TableStatus(table, policy.epoch, table.name in live, lock, failed))
    return found


def list_lock_remarks(policy: Policy, history: LedgerReader) -> Iterator[PolicyAdvice]:
    """The tables that are locked, for the owner."""
    locks = history.locks()
    for table in policy.tables:
        lock = locks.get(table.name.lower())
        if lock is not None:
            text = f"locked since {lock.time[:19]} UTC, so nothing is asked of it: tacit tables unlock {table.name}"
            yield PolicyAdvice(format_path(("tables", table.name)), text)


def _find_failed(history: LedgerReader, lock: TableLock) -> FailedQuestion | None:
    """The charge that a lock is about; None where there is none."""
    entries: list[Entry] = [
        entry
        for entry in history.entries()
        if entry.sequence < lock.entry and entry.kind in {EntryKind.RESERVE, EntryKind.RESUME, EntryKind.UNLOCK}
    ]
    analyst = next((entry.analyst for entry in entries if entry.sequence == lock.claim), None)
    return None if analyst is None else FailedQuestion(analyst, count_runs(entries, lock.table))
