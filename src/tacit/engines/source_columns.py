"""What an owner who begins a policy is told of the columns of a source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import duckdb

from tacit.engines.left_out import LeftOut
from tacit.engines.scalars import quote_name
from tacit.query.types import Type

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_TOGETHER = 64  # columns of one statement: the time to plan one grows with the square of what it asks
_FEWEST = 50  # values of which it tells something that they differ


class SourceColumn(NamedTuple):
    """A column with the type to declare, or why there is none.

    Where rows were read and are not too few, `distinct` is about how many of its values differ, as a part of those that
    are there, and `length` the mean number of characters of its texts. These are of the data, and for its owner alone.
    """

    name: str
    kind: Type | LeftOut
    distinct: float | None = None
    length: float | None = None


def measure_columns(
    connection: DuckDBPyConnection, table: str, columns: Sequence[tuple[str, Type | LeftOut]]
) -> list[SourceColumn]:
    """The columns of what stands after FROM, with what is told of their values where they can be read."""
    read = [name for name, kind in columns if isinstance(kind, Type)]
    facts: dict[str, tuple[int, int, float | None]] = {}
    try:
        for start in range(0, len(read), _TOGETHER):
            facts |= _measure_some(connection, table, read[start : start + _TOGETHER])
    except duckdb.Error:  # of a view, say
        return [SourceColumn(*column) for column in columns]
    found = []
    for name, kind in columns:
        present, different, length = facts.get(name, (0, 0, None))
        is_telling = present >= _FEWEST
        distinct = min(1.0, different / present) if is_telling else None
        found.append(SourceColumn(name, kind, distinct, length if is_telling and kind is Type.TEXT else None))
    return found


def _measure_some(
    connection: DuckDBPyConnection, table: str, names: Sequence[str]
) -> dict[str, tuple[int, int, float | None]]:
    """Of a few columns, how many values there are, about how many differ, and their mean length, in one pass."""
    asked = []
    for name in names:
        column = quote_name(name)
        asked += [f"COUNT({column})", f"approx_count_distinct({column})", f"AVG(length(CAST({column} AS VARCHAR)))"]
    row = connection.execute(f"SELECT {', '.join(asked)} FROM {table}").fetchone()
    assert row is not None
    return {name: row[3 * place : 3 * place + 3] for place, name in enumerate(names)}
