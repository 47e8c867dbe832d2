"""A prepared copy of the tables that have units: sorted by unit, its commonest expressions computed once.

A copy is a DuckDB file. It is written aside and moved into place when it is whole, and it carries a stamp of the policy
and the data's epoch: a copy of something else is not used.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb

from tacit.canonical import Table, canonical_text, tag
from tacit.engines import sql_statements
from tacit.engines.base import TableSchema
from tacit.engines.layout import UNIT_COLUMN, CopyLayout, narrow_column, scalar_column, text_code_column
from tacit.engines.scalars import quote_name, quote_text, write_scalar
from tacit.errors import DataError, ErrorCode
from tacit.extras import missing_extra
from tacit.query.canonical import NODES
from tacit.query.nodes import Clamp, EquiJoin, Quantize, RelationalNode, Scalar, Scan

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

FORMAT = 1
_MOST_TEXTS = 65_535  # numbers of two bytes
_METADATA_TABLE = "tacit_copy"
_LAYOUTS: Table = {**NODES, CopyLayout: tag("Layout", "table rows unit scalars texts")}
_NARROW = {"TINYINT", "SMALLINT", "INTEGER"}
_MEMORY = 3_200_000_000  # bytes to sort in, the largest part of 4 GB; what does not fit goes to disk

Progress = Callable[[str, float], None]
"""Told what is being done, and the share of it that is."""


def fingerprint_copy(meaning: str, layouts: Iterable[CopyLayout]) -> str:
    """What a copy is a copy of: the policy's meaning with the epoch, and how its tables lie."""
    written = [canonical_text(layout, _LAYOUTS) for layout in layouts]
    return hashlib.sha256(json.dumps([FORMAT, meaning, written]).encode()).hexdigest()


def write_copy(
    connection: DuckDBPyConnection,
    path: Path,
    shapes: Iterable[TableSchema],
    layouts: Sequence[CopyLayout],
    sources: sql_statements.TableExpressions,
    stamp: str,
    progress: Progress,
) -> None:
    """Write a copy. It is at `path` when it is whole, and nothing is there before."""
    aside = path.with_name(f".{path.name}.unfinished")
    sorting = path.with_name(f".{path.name}.sorting")
    aside.unlink(missing_ok=True)
    shutil.rmtree(sorting, ignore_errors=True)
    shape_of = {shape.name: shape for shape in shapes}
    try:
        _limit_sort_memory(connection, sorting)
        # Sorting would be quicker with statistics, but those that a Parquet file tells of itself leave out NaN, and a
        # clamp that they make seem needless would be left out too.
        connection.execute(f"ATTACH {quote_text(str(aside))} AS copy")
        texts: dict[str, list[str]] = {}
        for layout in layouts:
            texts[layout.table] = _write(connection, shape_of[layout.table], layout, sources, progress)
        connection.execute(
            f"CREATE TABLE copy.{_METADATA_TABLE} AS "
            f"SELECT {quote_text(stamp)} AS stamp, {quote_text(json.dumps(texts))} AS texts"
        )
        connection.execute("DETACH copy")
        aside.replace(path)
    except BaseException:
        connection.execute("DETACH DATABASE IF EXISTS copy")
        aside.unlink(missing_ok=True)
        raise
    finally:
        shutil.rmtree(sorting, ignore_errors=True)


def _limit_sort_memory(connection: DuckDBPyConnection, sorting: Path) -> None:
    """Sort in little memory, and beside the copy: what goes to disk are rows of the data, as the copy is."""
    row = connection.execute("SELECT parse_formatted_bytes(current_setting('memory_limit'))").fetchone()
    assert row is not None
    connection.execute(f"SET memory_limit = '{min(int(row[0]), _MEMORY)}B'")
    connection.execute(f"SET temp_directory = {quote_text(str(sorting))}")


def _write(
    connection: DuckDBPyConnection,
    shape: TableSchema,
    layout: CopyLayout,
    sources: sql_statements.TableExpressions,
    progress: Progress,
) -> list[str]:
    """Write one table; return which of its columns of text are numbered."""
    table, scan = f"copy.main.{quote_name(shape.name)}", layout.scan
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
    kind = _type(connection, f"SELECT {unit} FROM ({rows})")
    results = [(_unit_to_integer(unit, kind), UNIT_COLUMN)]
    results += [(f"CAST({quote_name(named[c])} AS {_enum(shape.name, c)})", text_code_column(c)) for c in found]
    own = shape.unit if kind == "BIGINT" else None
    results += [(quote_name(named.get(c, c)), c) for c in columns if c not in found and c != own]
    listing = ", ".join(f"{value} AS {quote_name(column)}" for value, column in results)
    order = ", ".join(str(i + 1) for i in range(len(results)))
    ordered = f"SELECT {listing} FROM ({rows}) WHERE {unit} IS NOT NULL ORDER BY {order}"
    # What is computed follows from what is sorted, so it comes afterwards: fewer bytes are moved.
    again = [] if own is None else [f"{quote_name(UNIT_COLUMN)} AS {quote_name(own)}"]
    again += [f"CAST({quote_name(text_code_column(c))} AS VARCHAR) AS {quote_name(c)}" for c in found]
    written = [quote_name(column) for _, column in results]
    written += [
        f"{_narrowest_type(value, write_scalar(value))} AS {quote_name(scalar_column(i))}"
        for i, value in enumerate(layout.scalars)
    ]
    source = f"(SELECT {', '.join(['*', *again])} FROM ({ordered}))"
    statement = f"CREATE TABLE {table} AS SELECT {', '.join(written)} FROM {source}"
    _execute_with_progress(connection, statement, lambda share: progress(shape.name, share))
    if kind != "BIGINT":
        _check_unit_collisions(connection, table, rows, unit, shape.name)
    return found


def _replace_scan(node: RelationalNode, scan: Scan) -> RelationalNode:
    """The same way to the unit, from a table of more columns."""
    return (
        EquiJoin(_replace_scan(node.left, scan), node.right, node.on, node.outer)
        if isinstance(node, EquiJoin)
        else scan
    )


def _narrowest_type(value: Scalar, written: str) -> str:
    """An integer in the least type that holds all it can be."""
    match value:
        case Clamp(_, Fraction() as lower, Fraction() as upper, True) | Quantize(_, _, int(lower), int(upper)):
            bits = max(abs(int(lower)), abs(int(upper))).bit_length()
            kind = next(
                (kind for size, kind in ((7, "TINYINT"), (15, "SMALLINT"), (31, "INTEGER")) if bits <= size), None
            )
            return written if kind is None else f"CAST({written} AS {kind})"
    return written


def _type(connection: DuckDBPyConnection, query: str) -> str:
    return str(connection.execute(f"DESCRIBE {query}").fetchall()[0][1])


def _unit_to_integer(unit: str, kind: str) -> str:
    """A unit as an integer: itself, or 63 bits of a hash of its text."""
    if kind == "BIGINT":
        return unit
    return f"CAST(md5_number_lower(CAST({unit} AS VARCHAR)) >> 1 AS BIGINT)"


def _check_unit_collisions(connection: DuckDBPyConnection, table: str, rows: str, unit: str, called: str) -> None:
    """Two units of one number would share their bounds, so that one could displace the other's rows."""
    one = connection.execute(f"SELECT COUNT(DISTINCT {quote_name(UNIT_COLUMN)}) FROM {table}").fetchone()
    other = connection.execute(f"SELECT COUNT(DISTINCT {unit}) FROM ({rows})").fetchone()
    if one != other:
        raise DataError(
            ErrorCode.DATA,
            f"two units of {called} have the same hash, so no copy of it can be made",
            fix="number the units with integers",
        )


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
    return f"copy.main.{quote_name(f'{table}.{column}')}"


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


@dataclass(frozen=True)
class OpenCopy:
    """A copy that is open: what stands for each table, and the texts of its numbered columns."""

    sources: Mapping[str, str]
    texts: Mapping[str, Mapping[str, Sequence[str]]]
    layouts: Mapping[str, CopyLayout]


def open_copy(
    connection: DuckDBPyConnection, shapes: Iterable[TableSchema], path: Path, layouts: Sequence[CopyLayout], stamp: str
) -> OpenCopy:
    """Open a copy, if it is one of this data."""
    fix = "make it: tacit prepare"
    if find_spec("numba") is None:
        raise missing_extra("fast", "a prepared copy", "numba")
    if not path.exists():
        raise DataError(ErrorCode.DATA, f"there is no prepared copy {path.name}", fix=fix)
    try:
        connection.execute(f"ATTACH {quote_text(str(path))} AS copy (READ_ONLY)")
        row = connection.execute(f"SELECT stamp, texts FROM copy.{_METADATA_TABLE}").fetchone()
    except duckdb.Error:
        row = None
    if row is None:
        raise DataError(ErrorCode.DATA, f"{path.name} is not a prepared copy", fix=fix)
    if row[0] != stamp:
        what = f"{path.name} was made of other data: the epoch, the policy or this program has changed"
        raise DataError(ErrorCode.DATA, what, fix=fix)
    numbers = json.loads(row[1])
    shape_of = {shape.name: shape for shape in shapes}
    known = {}
    texts: dict[str, dict[str, Sequence[str]]] = {}
    for layout in layouts:
        found = numbers[layout.table]
        known[layout.table] = replace(layout, texts=tuple(found))
        texts[layout.table] = {column: _texts(connection, layout.table, column) for column in found}
    return OpenCopy(
        {table: _table_expression(connection, shape_of[table], known[table]) for table in known}, texts, known
    )


def _table_expression(connection: DuckDBPyConnection, shape: TableSchema, layout: CopyLayout) -> str:
    """What stands for a copied table. Texts are put back for their numbers; integers are computed with as wide ones."""
    table = f"copy.main.{quote_name(layout.table)}"
    columns = []
    for column, kind, *_ in connection.execute(f"DESCRIBE {table}").fetchall():
        columns.append(quote_name(column))
        if column == UNIT_COLUMN and shape.unit is not None:
            columns.append(f"{quote_name(column)} AS {quote_name(shape.unit)}")
        number = next((i for i in range(len(layout.scalars)) if column == scalar_column(i)), None)
        text_column = next((c for c in layout.texts if column == text_code_column(c)), None)
        if number is not None:
            wide = f"CAST({quote_name(column)} AS BIGINT)" if kind in _NARROW else quote_name(column)
            columns[-1:] = [
                f"{wide} AS {quote_name(column)}",
                f"{quote_name(column)} AS {quote_name(narrow_column(number))}",
            ]
        elif text_column is not None:
            columns.append(f"CAST({quote_name(column)} AS VARCHAR) AS {quote_name(text_column)}")
        elif column == shape.unit:  # not an integer: it is here besides its number
            columns.remove(f"{quote_name(UNIT_COLUMN)} AS {quote_name(column)}")
    return f"(SELECT {', '.join(columns)} FROM {table})"


def _texts(connection: DuckDBPyConnection, table: str, column: str) -> Sequence[str]:
    row = connection.execute(f"SELECT enum_range(CAST(NULL AS {_enum(table, column)}))").fetchone()
    assert row is not None
    return list(row[0])
