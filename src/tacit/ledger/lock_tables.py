"""Failures, locks and unlocks as one transaction writes them; `ledger/table_locks.py` has the rule and its theorem."""

from __future__ import annotations

import logging

from tacit.errors import ParameterError
from tacit.ledger.entries import Entry, EntryKind
from tacit.ledger.signing import SigningKey
from tacit.ledger.table_locks import TableLock, encode_lock, lock_key, share_table, signed_text
from tacit.ledger.transaction import LedgerTransaction

_log = logging.getLogger("tacit")


def append_failure(
    book: LedgerTransaction, reserved: Entry, cause: str, key: SigningKey | None, *, unread: str = ""
) -> None:
    """Write that no answer comes of a charge. Lock the live tables that it reads, and fail what is in flight over them.

    Locks come first: an entry that says that a charge failed has its lock before it. `unread` says why no row of them
    is the cause, where that is so: `UNSENT` or `UNSTORED`. Then nothing is locked.
    """
    if book.settlement(reserved.sequence) is not None:
        return
    tables = frozenset() if unread else book.tables_of(reserved)
    for table in sorted(tables):
        append_lock(book, table, cause, key, claim=reserved.sequence)
    append_settlement(book, EntryKind.FAIL, reserved, note=unread)
    for flight in book.flights() if tables else ():
        if share_table(book.tables_of(flight.claim), tables):
            append_settlement(book, EntryKind.FAIL, flight.claim)


def append_lock(book: LedgerTransaction, table: str, cause: str, key: SigningKey | None, *, claim: int = 0) -> None:
    """Lock a table, unless it is locked already."""
    if not book.locks_of([table]):
        note = encode_lock(table, cause, _sign(book, EntryKind.LOCK, table, key))
        entry = book.append(EntryKind.LOCK, key=lock_key(table), claim=claim, note=note)
        _log.error("table %s is locked by entry %d: run tacit tables unlock %s", table, entry.sequence, table)


def append_unlock(
    book: LedgerTransaction, table: str, key: SigningKey | None, *, entry: int | None = None
) -> TableLock:
    """Unlock a table, and return the lock that this ends: that of an entry, or whichever there is."""
    lock = book.locks_of([table]).get(table.lower())
    if lock is None:
        raise ParameterError("table", f"{table} is not locked", fix="list the tables that are: tacit tables")
    if entry is not None and lock.entry != entry:
        what = f"{lock.table} was unlocked meanwhile, and is locked by another failure since"
        raise ParameterError("table", what, fix="look at that one too: tacit tables")
    note = encode_lock(lock.table, "", _sign(book, EntryKind.UNLOCK, lock.table, key))
    book.append(EntryKind.UNLOCK, key=lock_key(table), note=note)
    return lock


def append_settlement(
    book: LedgerTransaction, kind: EntryKind, reserved: Entry, answer_digest: str = "", note: str = ""
) -> Entry:
    """Write what came of a charge: a COMMIT or a FAIL."""
    entry = book.append(
        kind,
        analyst=reserved.analyst,
        key=reserved.key,
        claim=reserved.sequence,
        answer_digest=answer_digest,
        note=note,
    )
    book.release(reserved.sequence)
    return entry


def _sign(book: LedgerTransaction, kind: EntryKind, table: str, key: SigningKey | None) -> str:
    """Return the signature of a lock that is appended next; a ledger without a key has none."""
    assert book.last is not None  # there are terms before any lock
    return "" if key is None else key.sign(signed_text(kind, table, book.last.hash))
