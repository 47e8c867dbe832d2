"""Types for the columns of a CSV file, which has none: guesses for an owner who begins a policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tacit.engines.read_times import read_timestamp
from tacit.engines.scalars import quote_name
from tacit.engines.stored import read_decimal_comma
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TOGETHER = 16  # columns of one statement: the time to plan one grows with the square of what it asks

# What every value must be for the type, as it is read. A number with a zero in front is a code, and stays text.
_TESTS = {
    Type.INT: "regexp_full_match({}, '[+-]?(0|[1-9][0-9]*)') AND TRY_CAST({} AS BIGINT) IS NOT NULL",
    Type.FLOAT: "NOT regexp_matches({}, '^[+-]?0[0-9]') AND TRY_CAST({} AS DOUBLE) IS NOT NULL",
    Type.DATE: "TRY_CAST({} AS DATE) IS NOT NULL AND NOT contains({}, ':')",
    Type.TIMESTAMP: f"({read_timestamp('{}', 'VARCHAR')}) IS NOT NULL",
    Type.BOOL: "lower({}) IN ('true', 'false')",
}


def infer_csv_types(
    connection: DuckDBPyConnection, table: str, columns: list[str], has_decimal_commas: bool = False
) -> list[Type]:
    """For each text column of a table the first type in which all its values can be read; text where there is none."""
    return [
        kind
        for start in range(0, len(columns), _TOGETHER)
        for kind in _infer_some(connection, table, columns[start : start + _TOGETHER], has_decimal_commas)
    ]


def _infer_some(
    connection: DuckDBPyConnection, table: str, columns: list[str], has_decimal_commas: bool
) -> Iterator[Type]:
    """The types of a few columns, in one pass."""
    asked = []
    for column in map(quote_name, columns):
        for kind, test in _TESTS.items():
            value = read_decimal_comma(column) if has_decimal_commas and kind is Type.FLOAT else column
            asked.append(f"coalesce(bool_and({test.replace('{}', value)}) FILTER ({column} IS NOT NULL), false)")
    row = connection.execute(f"SELECT {', '.join(asked)} FROM {table}").fetchone()
    assert row is not None
    for at in range(0, len(row), len(_TESTS)):
        fits = zip(_TESTS, row[at : at + len(_TESTS)], strict=True)
        yield next((kind for kind, is_read in fits if is_read), Type.TEXT)
