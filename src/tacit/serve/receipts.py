"""A receipt again, from the ledger alone, for whoever lost theirs."""

from __future__ import annotations

from typing import Any

from tacit.accounting.guard import shown
from tacit.curator.curator import Curator, books_of
from tacit.errors import Code, Refused
from tacit.ledger.book import Book
from tacit.ledger.entries import Kind
from tacit.ledger.keys import Key

_LARGEST = 2**63 - 1


def receipt_of(curator: Curator, entry: int, who: str | None) -> dict[str, Any]:
    """What the ledger says of a charge or a repeat, signed again; `tacit ledger verify --receipt` takes it.

    `who` may see their own only; None may see all. What one may not see is not there, in the same words.
    """
    with curator.ledger.store.read() as session:
        book = Book(session)
        found = book.entry_at(entry) if 0 < entry <= _LARGEST else None
        if found is None or found.kind not in {Kind.RESERVE, Kind.REPEAT} or who not in {None, found.who}:
            raise Refused(Code.NOT_FOUND, f"there is no receipt {entry} of yours", fix="check the entry on your answer")
        settled = book.settlement(entry) if found.kind is Kind.RESERVE else found
    head = found.hash if settled is None else settled.hash
    return {
        "entry": found.sequence,
        "time": found.time,
        "who": found.who,
        "request": found.request,
        "key": found.key,
        "charged_epsilon": shown(found.charge.epsilon),
        "spent_epsilon": shown(found.spent.epsilon),
        "repeat": found.kind is Kind.REPEAT,
        "answered": settled is not None and settled.kind is not Kind.FAIL,
        "head": head,
        "signature": Key.at(books_of(curator.policy).key, create=False).sign(head),
    }
