"""Failures that this process could not write down yet.

A run whose outcome was seen is the only one of its charge. Where the FAIL that says so does not fit on a full disk
either, it is remembered here, and stands in the next transaction that this process writes, before anything else: so the
charge is failed before it is resumed.
"""

from __future__ import annotations

from dataclasses import dataclass

from tacit.ledger.entries import EntryKind, Reservation
from tacit.ledger.lock_tables import append_failure
from tacit.ledger.signing import SigningKey
from tacit.ledger.transaction import LedgerTransaction


@dataclass(frozen=True)
class PendingFailure:
    """The FAIL of a charge, as `append_failure` writes it. `head` is the hash of the RESERVE: no other entry has it."""

    head: str
    claim: int
    cause: str
    unread: str


_pending: dict[str, PendingFailure] = {}  # whichever object of this process opened the ledger, and closed it since


def remember_failure(claim: Reservation, cause: str, unread: str) -> None:
    """Have a charge failed by the next transaction of this process."""
    _pending[claim.receipt.head] = PendingFailure(claim.receipt.head, claim.entry, cause, unread)


def write_failures(book: LedgerTransaction, key: SigningKey | None) -> list[PendingFailure]:
    """Fail the charges of this ledger that are to be failed and have no outcome yet; return what to forget once that
    is on disk.
    """
    found = []
    for failure in list(_pending.values()):
        reserved = book.entry_at(failure.claim)
        if reserved is not None and reserved.kind is EntryKind.RESERVE and reserved.hash == failure.head:
            append_failure(book, reserved, failure.cause, key, unread=failure.unread)
            found.append(failure)
    return found


def forget_failures(written: list[PendingFailure]) -> None:
    """Forget what is on disk."""
    for failure in written:
        _pending.pop(failure.head, None)
