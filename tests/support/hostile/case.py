"""What a case of the corpus is, and what writes its data.

The rule behind every expectation: a value that does not fit its declared type is NULL, a row without a unit is left
out, and what can never fit, or cannot be read to its end, is the owner's error at open.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.policies import caps

Rows = dict[int | str | None, int]
Write = Callable[[Path], str | dict[str, Any]]


class Outcome(StrEnum):
    """What is documented for a case."""

    READ = "read"
    ERROR = "owner's error"
    EITHER = "the stated reading, or the owner's error"


@dataclass(frozen=True)
class Fact:
    """A question with one number in each row, and its exact answer: the number by the first column, or by None."""

    sql: str
    rows: Rows


@dataclass(frozen=True)
class Case:
    """Hostile data: what writes it, the tables of its policy, its documented outcome.

    `write` returns a source, or frames by table. `named` is a word that the owner's error must contain, and `facts`
    hold where it opens. `spoil` is what happens to the files while the curator is open: from then on a question may
    also end in a DataError, which is documented and costs nothing.
    """

    name: str
    write: Write
    tables: Mapping[str, Any]
    outcome: Outcome
    facts: Sequence[Fact] = ()
    named: str = ""
    spoil: Callable[[Path], None] | None = None
    apart: bool = False  # whether to open it in a process of its own, which reading it unchecked could end


def private(columns: Mapping[str, Any], unit: Any = "id", **more: Any) -> dict[str, Any]:
    """A private table with caps of one row."""
    return {"unit": unit, **caps(1, 1), "columns": dict(columns), **more}


INT, FLOAT, TEXT, BOOL, DATE, TIMESTAMP = (
    {"type": name} for name in ["int", "float", "text", "bool", "date", "timestamp"]
)
BOUNDED = {
    "int": INT | {"lower": 0, "upper": 9},
    "float": FLOAT | {"lower": 0, "upper": 9, "step": 0.5},
    "text": TEXT | {"values": ["a", "b"], "other": "else"},
    "bool": BOOL,
    "date": DATE | {"lower": datetime.date(2025, 1, 1), "upper": datetime.date(2025, 1, 9)},
    "timestamp": TIMESTAMP | {"lower": datetime.datetime(2025, 1, 1), "upper": datetime.datetime(2025, 1, 9, 12)},
}


def split(counts: Mapping[str, int], table: str = "t", rest: int | None = 0) -> Fact:
    """How many rows meet each condition, and meet none: one group each, so one unit of one row is in one of them."""
    cases = " ".join(f"WHEN {condition} THEN {number}" for number, condition in enumerate(counts, 1))
    rows: Rows = dict(enumerate(counts.values(), 1))
    if rest is not None:
        rows[0] = rest
    return Fact(f"SELECT CASE {cases} ELSE 0 END AS part, COUNT(*) AS n FROM {table} GROUP BY part", rows)


def counted(number: int, what: str = "*", table: str = "t") -> Fact:
    """One count."""
    return Fact(f"SELECT COUNT({what}) AS n FROM {table}", {None: number})


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


def database(statements: Sequence[str], folder: Path, name: str = "data.duckdb") -> str:
    """A DuckDB file made by these statements."""
    with duckdb.connect(str(folder / name)) as connection:
        for statement in statements:
            connection.execute(statement)
    return str(folder / name)


def parquet(table: pa.Table, folder: Path, name: str = "t.parquet", **options: Any) -> str:
    """A Parquet file of one table."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name, **options)
    return str(folder / name)


def parquets(tables: Mapping[str, pa.Table], folder: Path) -> str:
    """A folder of Parquet files, each under a path of its own."""
    for name, table in tables.items():
        parquet(table, folder / "data", name)
    return str(folder / "data")


def raw(content: bytes, folder: Path, name: str = "t.csv") -> str:
    """A file of these bytes."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)
    return str(folder / name)


def frame(make: Callable[[], Any], _: Path) -> dict[str, Any]:
    """A frame in memory."""
    return {"t": make()}


def texts_of(values: Sequence[bytes | None], kind: pa.DataType | None = None) -> pa.Array:
    """An Arrow array of texts that nothing has validated."""
    kind = kind or pa.string()
    plain = pa.array(values, pa.large_binary() if pa.types.is_large_string(kind) else pa.binary())
    return pa.Array.from_buffers(kind, len(plain), plain.buffers())
