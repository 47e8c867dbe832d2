"""A receipt again, from the ledger alone, for whoever lost theirs."""

from __future__ import annotations

from typing import Any

from tacit.accounting.filters import format_epsilon
from tacit.curator.curator import Curator
from tacit.curator.resources import ledger_files
from tacit.errors import ErrorCode, Refused
from tacit.ledger.entries import EntryKind
from tacit.ledger.signing import SigningKey
from tacit.ledger.transaction import LedgerTransaction

_LARGEST = 2**63 - 1


def load_receipt(curator: Curator, entry: int, analyst: str | None) -> dict[str, Any]:
    """What the ledger says of a charge or a repeat, signed again; `tacit ledger verify --receipt` takes it.

    `who` may see their own only; None may see all. What one may not see is not there, in the same words.
    """
    with curator.ledger.store.read() as session:
        book = LedgerTransaction(session)
        found = book.entry_at(entry) if 0 < entry <= _LARGEST else None
        if (
            found is None
            or found.kind not in {EntryKind.RESERVE, EntryKind.REPEAT}
            or analyst not in {None, found.analyst}
        ):
            raise Refused(
                ErrorCode.NOT_FOUND, f"there is no receipt {entry} of yours", fix="check the entry on your answer"
            )
        settled = book.settlement(entry) if found.kind is EntryKind.RESERVE else found
    head = found.hash if settled is None else settled.hash
    return {
        "entry": found.sequence,
        "time": found.time,
        "who": found.analyst,
        "request": found.request,
        "key": found.key,
        "charged_epsilon": format_epsilon(found.charge.epsilon),
        "spent_epsilon": format_epsilon(found.spent.epsilon),
        "repeat": found.kind is EntryKind.REPEAT,
        "answered": settled is not None and settled.kind is not EntryKind.FAIL,
        "head": head,
        "signature": SigningKey.at(ledger_files(curator.policy).key, create=False).sign(head),
    }
