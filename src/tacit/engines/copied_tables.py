"""What the tables of a copy hold, as the owner's policy is checked against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tacit.engines.copy_file import ReadTables
from tacit.engines.declared import stored_types, to_declared_type
from tacit.engines.ingest import has_unique
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection


class CopiedTables:
    """The tables of a copy that is attached: `read` is what was read into them, `sources` is what stands after FROM."""

    def __init__(self, connection: DuckDBPyConnection, read: ReadTables, sources: Mapping[str, str]) -> None:
        self._connection = connection
        self._read = read
        self._sources = sources

    def is_unique(self, table: str, *columns: str) -> bool:
        """Whether no two rows have the same values in all these columns, as they are read; NULL is no value."""
        known = self._read[table].unique.get(columns[0]) if len(columns) == 1 else None
        return has_unique(self._connection, self._sources[table], *columns) if known is None else known

    def type_of(self, table: str, column: str) -> Type:
        """The type in which a column is read; integers or texts where none is declared."""
        stored = stored_types(self._connection, self._sources[table])
        found = to_declared_type({each.lower(): kind for each, kind in stored.items()}[column.lower()])
        assert found is not None
        return found

    def written_as(self, table: str, column: str) -> str:
        """How the stored values of a unit or of a column that matches tables are written."""
        return {each.lower(): how for each, how in self._read[table].written.items()}[column.lower()]

    def source_digests(self) -> dict[str, str]:
        """For each table the digest of the source that was read."""
        return {name: read.digest for name, read in self._read.items()}
