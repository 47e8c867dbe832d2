from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
import sqlglot
from sqlglot import exp

from tacit.engines.base import Engine, Shape
from tacit.engines.duckdb import DuckDB
from tacit.engines.reference import Reference
from tacit.query.types import Type

# {table: ({column: type}, rows)}
Tables = dict[str, tuple[dict[str, str], list[dict[str, Any]]]]

TYPES = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "bool": pa.bool_(), "date": pa.date32()}


def duckdb_over(tables: Tables) -> DuckDB:
    shapes = [
        Shape(table, tuple((c, Type(t)) for c, t in columns.items()), None) for table, (columns, _) in tables.items()
    ]
    frames = {
        table: pa.table({c: pa.array([row[c] for row in rows], TYPES[t]) for c, t in columns.items()})
        for table, (columns, rows) in tables.items()
    }
    return DuckDB(shapes, None, frames)


def reference_over(tables: Tables) -> Reference:
    return Reference({table: rows for table, (_, rows) in tables.items()})


ENGINES: dict[str, Callable[[Tables], Engine]] = {"duckdb": duckdb_over, "reference": reference_over}


@pytest.fixture(scope="session", params=ENGINES)
def engine_over(request: pytest.FixtureRequest) -> Iterator[Callable[[Tables], Any]]:
    """Makes an engine over tables; every test that takes it runs once for each engine."""
    opened: list[Engine] = []

    def make(tables: Tables) -> Engine:
        while opened:  # one at a time
            opened.pop().close()
        opened.append(ENGINES[request.param](tables))
        return opened[-1]

    yield make
    for engine in opened:
        engine.close()


@pytest.fixture(scope="session")
def both_over() -> Callable[[Tables], tuple[DuckDB, Reference]]:
    """Makes both engines over the same tables."""
    return lambda tables: (duckdb_over(tables), reference_over(tables))


@pytest.fixture(scope="session")
def called() -> Callable[[str], set[str]]:
    """Makes the set of all functions that a statement calls."""

    def names(statement: str) -> set[str]:
        tree = sqlglot.parse_one(statement, dialect="duckdb")
        found = [node for node in tree.find_all(exp.Func) if not isinstance(node, exp.If)]  # a branch of a CASE
        return {(node.name if isinstance(node, exp.Anonymous) else node.sql_name()).upper() for node in found}

    return names
