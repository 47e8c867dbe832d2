"""A ledger as a reader sees it: who spent what, and every entry."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

from tacit.accounting.filter import Amount, Standing
from tacit.errors import Code, Refused
from tacit.ledger import rows
from tacit.ledger.entries import GENESIS, Entry
from tacit.ledger.file import File

_PAGE = 1000


class History:
    """Reads a ledger and never writes to it. It opens a damaged one too, so that `verify` can say what is wrong."""

    def __init__(self, path: Path, *, wait: float = 30.0) -> None:
        self.file = File(path, wait=wait, writable=False)
        with self.file.read():
            pass

    def standing(self, who: str) -> Standing:
        """What an analyst has spent, and of which cap."""
        with self.file.read() as connection:
            found = rows.standing(connection, who) if who != rows.ALL else None
        if found is None:
            raise unknown(who)
        return self._guard(found, who)

    def overall(self) -> Standing:
        """What all analysts have spent together, and of which cap."""
        with self.file.read() as connection:
            found = rows.standing(connection, rows.ALL)
        return Standing(Amount.zero(), Amount.zero()) if found is None else self._guard(found, rows.ALL)

    def entries(self) -> Iterator[Entry]:
        """Every entry in order, those included that are written while this is read."""
        sequence = 0
        while True:
            with self.file.read() as connection:
                page = rows.entries_after(connection, sequence, _PAGE)
            yield from page
            if len(page) < _PAGE:
                return
            sequence = page[-1].sequence

    def head(self) -> str:
        """The hash of the last entry."""
        with self.file.read() as connection:
            entry = rows.last(connection)
        return GENESIS if entry is None else entry.hash

    def close(self) -> None:
        """Let go of the file."""
        self.file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _guard(self, found: Standing, who: str) -> Standing:
        """The standing that binds: here, what is recorded."""
        return found


def unknown(who: str) -> Refused:
    """The refusal of a name that has no cap."""
    return Refused(Code.UNKNOWN_ANALYST, f"no analyst is called {who!r}", fix="ask the data owner to add this name")
