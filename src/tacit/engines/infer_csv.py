"""Types for the columns of a CSV file, which has none: guesses for an owner who begins a policy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tacit.engines.read_texts import is_ambiguous, read_day, read_float
from tacit.engines.read_times import read_timestamp
from tacit.engines.scalars import quote_name
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TOGETHER = 16  # columns of one statement: the time to plan one grows with the square of what it asks


def _write_tests(column: str, has_decimal_commas: bool) -> dict[Type, str]:
    """What every value must be for a type. A number with a zero in front is a code, and stays text."""
    is_number = f"({read_float(column, has_decimal_commas=has_decimal_commas)}) IS NOT NULL"
    if has_decimal_commas:
        is_number = f"({is_number} OR {is_ambiguous(column)})"
    return {
        Type.INT: f"regexp_full_match({column}, '[+-]?(0|[1-9][0-9]*)') AND TRY_CAST({column} AS BIGINT) IS NOT NULL",
        Type.FLOAT: f"NOT regexp_matches({column}, '^[+-]?0[0-9]') AND {is_number}",
        Type.DATE: f"({read_day(column)}) IS NOT NULL AND NOT contains({column}, ':')",
        Type.TIMESTAMP: f"({read_timestamp(column, 'VARCHAR')}) IS NOT NULL",
        Type.BOOL: f"lower({column}) IN ('true', 'false')",
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
        tests = _write_tests(column, has_decimal_commas)
        asked += [f"coalesce(bool_and({test}) FILTER ({column} IS NOT NULL), false)" for test in tests.values()]
    row = connection.execute(f"SELECT {', '.join(asked)} FROM {table}").fetchone()
    assert row is not None
    for at in range(0, len(row), len(tests)):
        fits = zip(tests, row[at : at + len(tests)], strict=True)
        yield next((kind for kind, is_read in fits if is_read), Type.TEXT)
