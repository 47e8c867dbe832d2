"""The tables of a copy: the declared columns of a source, the rows of each unit together where that makes it faster.

A table with units may lie sorted by unit, with what questions compute from its columns most often ready (`CopyLayout`).
All others hold the declared columns as they are.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from tacit.engines import sql_statements
from tacit.engines.base import Progress, TableSchema
from tacit.engines.layout import (
    ROW_COLUMN,
    UNIT_COLUMN,
    CopyLayout,
    Range,
    narrow_column,
    narrow_type,
    scalar_column,
    stored_column,
    text_code_column,
)
from tacit.engines.scalars import quote_name, write_guarded
from tacit.errors import DataError, ErrorCode
from tacit.query.nodes import EquiJoin, RelationalNode, Scan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_MOST_TEXTS = 65_535  # numbers of two bytes
_LARGE = 200_000


def is_large(rows: int) -> bool:
    """Whether so many rows are worth several threads, a compiler, and scalars computed ahead of their second use."""
    return rows > _LARGE


@dataclass(frozen=True)
class OpenTables:
    """The tables of a copy that is open: their names, how each column of those is read that are sorted by unit, how
    these lie, and the texts of their numbered columns."""

    names: Sequence[str]
    columns: Mapping[str, Mapping[str, str]]
    layouts: Mapping[str, CopyLayout]
    texts: Mapping[str, Mapping[str, Sequence[str]]]

    @cached_property
    def sources(self) -> Mapping[str, str]:
        """What stands for each table after FROM."""
        return {name: self.read(name) for name in self.names}

    def read(self, table: str, needed: Collection[str] | None = None) -> str:
        """What stands for a table after FROM. Of one that is sorted by unit, the columns needed are enough."""
        columns = self.columns.get(table)
        if columns is None:
            return locate_table(table)
        read = columns if needed is None else {c: sql for c, sql in columns.items() if c in needed}
        listing = ", ".join(f"{sql} AS {quote_name(column)}" for column, sql in read.items())
        return f"(SELECT {listing} FROM {locate_table(table)})"


def write_plain_table(connection: DuckDBPyConnection, table: str, source: str, progress: Progress) -> None:
    """Write the declared columns of a table."""
    statement = f"CREATE TABLE {locate_table(table)} AS SELECT * FROM {source}"
    _execute_with_progress(connection, statement, lambda share: progress(table, share))


def write_sorted_table(
    connection: DuckDBPyConnection,
    shape: TableSchema,
    layout: CopyLayout,
    sources: sql_statements.TableExpressions,
    progress: Progress,
) -> list[str]:
    """Write one table sorted by unit, without the rows that are nobody's; return which of its texts are numbered."""
    table, scan = locate_table(shape.name), layout.scan
    named = dict(scan.columns)
    links = dict.fromkeys([*([] if shape.unit is None else [shape.unit]), *shape.links])
    columns = list(dict.fromkeys([*(column for column, _ in shape.columns), *links]))
    everything = Scan(scan.table, (*scan.columns, *((c, c) for c in columns if c not in named)))
    rows = sql_statements.write_rows(_replace_scan(layout.rows, everything), sources)
    found = []
    for column in layout.texts:
        progress(f"{shape.name}: {column}", 0.0)
        if _create_enum(connection, shape.name, column, sources):
            found.append(column)
    unit = quote_name(layout.unit)
    kind = find_unit_type(connection, layout, sources)
    results = [(unit_to_integer(unit, kind), UNIT_COLUMN)]
    results += [(f"CAST({quote_name(named[c])} AS {_enum(shape.name, c)})", text_code_column(c)) for c in found]
    own = shape.unit if kind == "BIGINT" else None
    results += [(quote_name(named.get(c, c)), c) for c in columns if c not in found and c != own]
    listing = ", ".join(f"{value} AS {quote_name(column)}" for value, column in results)
    # The order follows from the values alone, whether or not texts are numbered: their numbers are in their order.
    sorted_by = [UNIT_COLUMN, *(text_code_column(c) if c in found else c for c in columns if c != own)]
    order = ", ".join(map(quote_name, sorted_by))
    ordered = f"SELECT {listing} FROM ({rows}) WHERE {unit} IS NOT NULL ORDER BY {order}"
    # What is computed follows from what is sorted, so it comes afterwards: fewer bytes are moved.
    again = [] if own is None else [f"{quote_name(UNIT_COLUMN)} AS {quote_name(own)}"]
    again += [f"CAST({quote_name(text_code_column(c))} AS VARCHAR) AS {quote_name(c)}" for c in found]
    written = [f"{quote_name(column)} AS {quote_name(stored_column(column))}" for _, column in results]
    written += [
        f"{_narrow(write_guarded(value), integers)} AS {quote_name(scalar_column(i))}"
        for i, (value, integers) in enumerate(zip(layout.scalars, layout.ranges, strict=True))
    ]
    source = f"(SELECT {', '.join(['*', *again])} FROM ({ordered}))"
    statement = f"CREATE TABLE {table} AS SELECT {', '.join(written)} FROM {source}"
    _execute_with_progress(connection, statement, lambda share: progress(shape.name, share))
    _write_units(connection, shape.name)
    return found


def _write_units(connection: DuckDBPyConnection, table: str) -> None:
    """Write which rows each unit has, and make sure that they lie together, in the order of the units."""
    units = locate_units(table)
    connection.execute("CREATE SCHEMA IF NOT EXISTS copy.units")
    connection.execute(
        f"CREATE TABLE {units} AS SELECT {quote_name(UNIT_COLUMN)} AS unit, MIN(rowid) AS first, MAX(rowid) AS last"
        f" FROM {locate_table(table)} GROUP BY 1 ORDER BY 1"
    )
    row = connection.execute(
        f"SELECT COUNT(*) FROM (SELECT first, LAG(last, 1, -1) OVER (ORDER BY unit) AS before FROM {units})"
        " WHERE first <> before + 1"
    ).fetchone()
    if row != (0,):
        raise RuntimeError(f"the rows of {table} are not in the order of their units")


def check_unit_collisions(connection: DuckDBPyConnection, shapes: Sequence[TableSchema]) -> None:
    """No two units of a copy have the same number: they would share their bounds, and displace each other's rows."""
    units = []
    for shape in shapes:
        if shape.unit is not None:
            columns = {row[0]: row[1] for row in connection.execute(f"DESCRIBE {locate_table(shape.name)}").fetchall()}
            column = next((c for c in (stored_column(shape.unit), shape.unit) if c in columns), None)
            if column is not None and columns[column] != "BIGINT":  # an integer is its own number
                units.append(f"SELECT CAST({quote_name(column)} AS VARCHAR) AS unit FROM {locate_table(shape.name)}")
    if not units:
        return
    counts = f"COUNT(DISTINCT unit) = COUNT(DISTINCT {unit_to_integer('unit', 'VARCHAR')})"
    row = connection.execute(f"SELECT {counts} FROM ({' UNION ALL '.join(units)})").fetchone()
    if row != (True,):
        what = "two units have the same hash, so their rows cannot be told apart"
        raise DataError(ErrorCode.DATA, what, fix="number the units with integers")


def open_tables(
    connection: DuckDBPyConnection,
    shapes: Sequence[TableSchema],
    layouts: Mapping[str, CopyLayout],
    numbered: Mapping[str, Sequence[str]],
) -> OpenTables:
    """The tables of a copy that is attached. `numbered` says which texts are, of those that are sorted by unit."""
    known = {table: replace(layouts[table], texts=tuple(texts)) for table, texts in numbered.items()}
    texts = {table: {c: _texts(connection, table, c) for c in layout.texts} for table, layout in known.items()}
    columns = {s.name: _write_columns(connection, s, known[s.name]) for s in shapes if s.name in known}
    return OpenTables([shape.name for shape in shapes], columns, known, texts)


def type_of(connection: DuckDBPyConnection, query: str) -> str:
    """The type of a query's first column."""
    return str(connection.execute(f"DESCRIBE {query}").fetchall()[0][1])


def find_unit_type(connection: DuckDBPyConnection, layout: CopyLayout, sources: sql_statements.TableExpressions) -> str:
    """The type in which the units of a table are read."""
    return type_of(
        connection, f"SELECT {quote_name(layout.unit)} FROM ({sql_statements.write_rows(layout.rows, sources)})"
    )


def unit_to_integer(unit: str, kind: str) -> str:
    """A unit as an integer: itself, or 63 bits of a hash of its text.

    Units that are of one type in two tables have the same integers in both. Those of different types have not, as 7 in
    a BIGINT and in a HUGEINT, although they are equal.
    """
    if kind == "BIGINT":
        return unit
    return f"CAST(md5_number_lower(CAST({unit} AS VARCHAR)) >> 1 AS BIGINT)"


def locate_units(table: str) -> str:
    """The units of a table that is sorted by them, in order, with the numbers of their first and last rows."""
    return f"copy.units.{quote_name(table)}"


def locate_table(table: str) -> str:
    """Where a table lies in a copy."""
    return f"copy.main.{quote_name(table)}"


def _replace_scan(node: RelationalNode, scan: Scan) -> RelationalNode:
    """The same way to the unit, from a table of more columns."""
    return (
        EquiJoin(_replace_scan(node.left, scan), node.right, node.on, node.outer)
        if isinstance(node, EquiJoin)
        else scan
    )


def _narrow(written: str, integers: Range | None) -> str:
    """An integer within bounds in few bytes, and what stands for NULL in its place."""
    found = narrow_type(integers)
    return written if found is None else f"COALESCE(CAST({written} AS {found[0]}), {found[1]})"


def _create_enum(
    connection: DuckDBPyConnection, table: str, column: str, sources: sql_statements.TableExpressions
) -> bool:
    """Give the texts of a column numbers in their order, unless there are too many."""
    values = f"(SELECT DISTINCT {quote_name(column)} AS v FROM {sources[table]} WHERE {quote_name(column)} IS NOT NULL)"
    row = connection.execute(f"SELECT COUNT(*) FROM {values}").fetchone()
    assert row is not None
    if not 0 < row[0] <= _MOST_TEXTS:
        return False
    connection.execute(f"CREATE TYPE {_enum(table, column)} AS ENUM (SELECT v FROM {values} ORDER BY v)")
    return True


def _enum(table: str, column: str) -> str:
    return locate_table(f"{table}.{column}")


def _execute_with_progress(connection: DuckDBPyConnection, statement: str, progress: Callable[[float], None]) -> None:
    """Run a statement that takes long, telling how far it is; an interrupt stops it."""
    failure: list[BaseException] = []

    def work() -> None:
        try:
            connection.execute(statement)
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            failure.append(error)

    worker = threading.Thread(target=work)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.1)
            progress(max(0.0, min(1.0, connection.query_progress() / 100)))
    except BaseException:
        connection.interrupt()
        worker.join()
        raise
    if failure:
        raise failure[0]


def _write_columns(connection: DuckDBPyConnection, shape: TableSchema, layout: CopyLayout) -> dict[str, str]:
    """How each column of a table that is sorted by unit is read. Texts are put back for their numbers; integers are
    computed with as wide ones."""
    columns = {ROW_COLUMN: "rowid"}
    declared = {stored_column(c): c for c in [*(c for c, _ in shape.columns), shape.unit or "", *shape.links]}
    for name, *_ in connection.execute(f"DESCRIBE {locate_table(layout.table)}").fetchall():
        stored, column = quote_name(name), declared.get(name, name)
        number = next((i for i in range(len(layout.scalars)) if column == scalar_column(i)), None)
        text_column = next((c for c in layout.texts if column == text_code_column(c)), None)
        columns[column] = stored  # a unit that is no integer is here besides its number, and comes after it
        if column == UNIT_COLUMN and shape.unit is not None:
            columns[shape.unit] = stored
        elif number is not None and (narrow := narrow_type(layout.ranges[number])) is not None:
            columns[column] = f"CAST(NULLIF({stored}, {narrow[1]}) AS BIGINT)"
            columns[narrow_column(number)] = stored
        elif text_column is not None:
            columns[text_column] = f"CAST({stored} AS VARCHAR)"
    return columns


def _texts(connection: DuckDBPyConnection, table: str, column: str) -> Sequence[str]:
    row = connection.execute(f"SELECT enum_range(CAST(NULL AS {_enum(table, column)}))").fetchone()
    assert row is not None
    return list(row[0])
