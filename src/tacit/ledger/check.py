"""What must hold before a ledger is used: it is the one that its witness saw, under the key and the scope it had."""

from __future__ import annotations

from tacit.errors import Code, LedgerError
from tacit.ledger.book import Book
from tacit.ledger.budget import Terms
from tacit.ledger.store import Store
from tacit.ledger.witness import Sight

_ON = "put the newest ledger back; if it is lost, charge all that may be missing: tacit ledger accept-loss"


def check_witness(book: Book, seen: Sight | None) -> None:
    """The ledger holds what the witness saw last; otherwise it is an older copy, or another ledger."""
    if seen is None:
        return
    if book.length < seen.sequence:
        what = f"it ends at entry {book.length}, and its witness has seen entry {seen.sequence}: it is an older copy"
        raise LedgerError(Code.LEDGER_OLDER, what, fix=_ON)
    entry = book.entry_at(seen.sequence)
    if entry is None or entry.hash != seen.hash:
        what = f"its entry {seen.sequence} is not the one that its witness saw: it is another one, or rewritten"
        raise LedgerError(Code.LEDGER_OLDER, what, fix=_ON)


def check_terms(recorded: Terms | None, terms: Terms) -> None:
    """The key, the witness and the scope are those that the ledger was used with."""
    if recorded is None:
        return
    if recorded.key and recorded.key != terms.key:
        fix = "put the ledger's own key back; if it is lost: tacit ledger accept-loss"
        raise LedgerError(Code.LEDGER_KEY, "it was signed with another key", fix=fix)
    if recorded.witnessed and not terms.witnessed:
        raise LedgerError(Code.LEDGER_WITNESS, "it has a witness, and none is named", fix="name the witness again")
    for name, was in recorded.limits.scope.items():
        now = terms.limits.scope.get(name, was)
        if now != was:
            what = f"it counts what was spent with {name} {was!r}, and now it is {now!r}"
            fix = "name a new ledger in the policy; what was told from the old one is not undone by it"
            raise LedgerError(Code.LEDGER_SCOPE, what, fix=fix)


def gone(store: Store) -> LedgerError:
    """The error of a ledger that is no longer there."""
    fix = "put it back as it was; if it is lost, charge all that may be missing: tacit ledger accept-loss"
    return store.error("is empty or missing, and its witness has seen entries", fix, Code.LEDGER_MISSING)
