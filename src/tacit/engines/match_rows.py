"""Which row of another table each row of a table finds by equal values."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tacit.engines.coded_rows import RowMatch
from tacit.engines.copy_tables import OpenTables, locate_table
from tacit.engines.deadline import seconds_left
from tacit.engines.layout import ROW_COLUMN
from tacit.engines.scalars import quote_name, write_guarded
from tacit.query.nodes import ColumnReference, Scalar, walk

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection
    from numpy.typing import NDArray

_BATCH = 1 << 18
_MOST_ROWS = 2**31 - 1


class MatchedRows(NamedTuple):
    """For each row of a table the number of the row that it finds in another, or -1."""

    rows: NDArray[np.int32]

    @property
    def nbytes(self) -> int:
        """How much memory it takes."""
        return int(self.rows.nbytes)


def match_rows(
    cursor: DuckDBPyConnection, tables: OpenTables, table: str, match: RowMatch, rows: int, others: int
) -> MatchedRows | None:
    """What each row of a table finds, of which there are `rows`, among the `others`; None where one finds several.

    **Theorem.** Where each row finds at most one, a LEFT JOIN has as many rows as the table, each once; otherwise it
    has more. So counting its rows tells which it is. Rows are compared by the same SQL as in any other join.

    Raises TimeLimit where the time of the question is over.
    """
    if max(rows, others) > _MOST_ROWS:
        return None
    ours = _number_rows(cursor, tables, table, [one for one, _ in match.on], "a")
    theirs = _number_rows(cursor, tables, match.table, [other for _, other in match.on], "b")
    if ours is None or theirs is None:
        return None
    on = " AND ".join(f"a{i} = b{i}" for i in range(len(match.on)))
    statement = f"SELECT a, COALESCE(b, -1) FROM {ours} AS ours LEFT JOIN {theirs} AS theirs ON {on}"
    found, seen = np.full(rows, -1, np.int32), 0
    for batch in cursor.sql(statement).to_arrow_reader(_BATCH):
        seconds_left()
        seen += batch.num_rows
        if seen > rows:
            return None
        found[batch.column(0).to_numpy()] = batch.column(1).to_numpy()
    if seen != rows or not (found < others).all():
        raise RuntimeError(f"a join has other rows than those of {table}")
    return MatchedRows(found)


def _number_rows(cursor: DuckDBPyConnection, tables: OpenTables, table: str, on: list[Scalar], name: str) -> str | None:
    """The numbers of a table's rows and what they are matched by; None where a column has the name of the number."""
    used = {part.name for scalar in on for part in walk(scalar) if isinstance(part, ColumnReference)}
    if table in tables.columns:
        row, source = quote_name(ROW_COLUMN), tables.read(table, {*used, ROW_COLUMN})
    else:
        row, source = "rowid", locate_table(table)
        if any(column[0].lower() == "rowid" for column in cursor.execute(f"DESCRIBE {source}").fetchall()):
            return None
    matched = ", ".join(f"{write_guarded(scalar)} AS {name}{i}" for i, scalar in enumerate(on))
    return f"(SELECT {row} AS {name}, {matched} FROM {source})"
