"""What a trial is held with: an unprotected twin of the curator, and a place for its ledgers."""

from __future__ import annotations

import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any

from tacit.trial.neighbors import SyntheticDatabase

_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder in memory, where there is one


def temporary_ledgers() -> tempfile.TemporaryDirectory[str]:
    """A folder for ledgers that nobody is charged in: in memory where that can be, since none has to last."""
    return tempfile.TemporaryDirectory(prefix="tacit-", dir=_MEMORY if _MEMORY.is_dir() else None)


class UnprotectedDatabase:
    """Answers any SQL with the truth: what Tacit protects from. For made-up tables only."""

    def __init__(self, database: SyntheticDatabase) -> None:
        import duckdb

        self._connection = duckdb.connect(":memory:")
        for table, rows in database.tables.items():
            quoted = table.replace('"', '""')
            self._connection.register("handed_over", rows)
            self._connection.execute(f'CREATE TABLE "{quoted}" AS SELECT * FROM handed_over')
            self._connection.unregister("handed_over")

    def ask(self, question: str) -> list[tuple[Any, ...]]:
        """The rows of the true answer."""
        return self._connection.execute(question).fetchall()

    def close(self) -> None:
        """Let go of the tables."""
        self._connection.close()

    def __enter__(self) -> UnprotectedDatabase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
