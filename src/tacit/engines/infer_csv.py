"""Types for the columns of a CSV file, which has none: guesses for an owner who begins a policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tacit.engines.read_times import read_timestamp
from tacit.engines.scalars import quote_name
from tacit.engines.stored import read_decimal_comma
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

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
    asked = []
    for column in map(quote_name, columns):
        for kind, test in _TESTS.items():
            value = read_decimal_comma(column) if has_decimal_commas and kind is Type.FLOAT else column
            asked.append(f"coalesce(bool_and({test.replace('{}', value)}) FILTER ({column} IS NOT NULL), false)")
    row = connection.execute(f"SELECT {', '.join(asked)} FROM {table}").fetchone()
    assert row is not None
    answers = [row[at : at + len(_TESTS)] for at in range(0, len(row), len(_TESTS))]
    return [next((kind for kind, fits in zip(_TESTS, each, strict=True) if fits), Type.TEXT) for each in answers]
