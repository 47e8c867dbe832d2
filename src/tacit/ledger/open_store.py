"""The store of a ledger, by the place that the owner names."""

from __future__ import annotations

from pathlib import Path

from tacit.ledger.sqlite import SqliteStore
from tacit.ledger.store import LedgerStore


def open_store(place: Path | str, *, wait: float = 30.0, writable: bool = True) -> LedgerStore:
    """Return the store at a path, or behind the URL of a PostgreSQL database."""
    if isinstance(place, Path):
        return SqliteStore(place, wait=wait, writable=writable)
    from tacit.ledger.postgres import PostgresStore  # needs an extra

    return PostgresStore(place, wait=wait, writable=writable)
