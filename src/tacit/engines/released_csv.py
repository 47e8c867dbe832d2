"""A CSV file as its readers see it: every value as it is written, and an empty one as none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tacit.engines.declared import read_text
from tacit.engines.duckdb_connection import connect_in_memory
from tacit.engines.infer_csv import infer_csv_types
from tacit.engines.scalars import quote_name
from tacit.engines.stored import tables_of

if TYPE_CHECKING:
    import pyarrow as pa
    from duckdb import DuckDBPyConnection


def read_released_csv(file: Path, ordered: str | None = None) -> pa.Table:
    """The columns of a file as texts: 01234 is not 1234, and NA is a value.

    The column `ordered` is read in the type that all its values have, where there is one: so they have an order, and
    a number that is written in two ways is one.
    """
    with connect_in_memory() as connection:
        [found] = tables_of(connection, file).values()
        table = _fetch(connection, f"FROM {found.expression}")
        if ordered is None or ordered not in table.column_names:
            return table
        [kind] = infer_csv_types(connection, found.expression, [ordered], found.has_decimal_commas)
        value = read_text(quote_name(ordered), kind, None, found.has_decimal_commas)
        read = _fetch(connection, f"SELECT {value} AS value FROM {found.expression}")["value"]
        if read.null_count > table[ordered].null_count:
            return table
        return table.set_column(table.column_names.index(ordered), ordered, read)


def _fetch(connection: DuckDBPyConnection, query: str) -> pa.Table:
    with connection.cursor() as cursor:
        return cursor.sql(query).to_arrow_table()
