"""Every stored type of DuckDB, Parquet and Arrow, as a unit, a key and a summed column, under each declared type.

A type that the documentation names is read, value by value, as stated here. Any other is the owner's error, or is read
by the same rule: a value that fits the declared type is itself, and one that does not is NULL.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.support.hostile.case import (
    BOUNDED,
    Case,
    Fact,
    Outcome,
    Rows,
    counted,
    database,
    frame,
    parquet,
    private,
    split,
)

ANY = object()
"""A value of which nothing is claimed."""

DECLARED = ("int", "float", "text", "bool", "date", "timestamp")
DAY = datetime.date(2025, 1, 1)
_MIDNIGHT = datetime.datetime(2025, 1, 1)  # as Arrow stores a time without a zone
_UTC = datetime.datetime(2025, 1, 1, 23, tzinfo=datetime.UTC)
_IN_UTC = {"date": [DAY], "timestamp": [_UTC.replace(tzinfo=None)]}


@dataclass(frozen=True)
class Stored:
    """A stored type: its values, how they read under a declared type, and whether it can be a unit.

    Declared types that are in neither mapping are the owner's error. `unit` False is the owner's error too, and None is
    either that or each value a unit of its own.
    """

    name: str
    kind: Any
    values: Sequence[Any]
    read: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    maybe: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    unit: bool | None = None


def _whole(name: str, kind: Any, values: Sequence[int], sql: bool) -> Stored:
    """A type of whole numbers."""
    fits = [value if -(2**63) <= value < 2**63 else None for value in values]
    floats = [float(value) for value in values]
    literals = [str(value) for value in values] if sql else values
    unsure = name in ("HUGEINT", "UHUGEINT")
    return Stored(
        name,
        kind,
        literals,
        {} if unsure else {"int": fits},
        {"float": floats} | ({"int": fits} if unsure else {}),
        None if unsure else True,
    )


_WHOLE = {
    "TINYINT": [-128, 127, 0],
    "SMALLINT": [-(2**15), 7],
    "INTEGER": [-(2**31), 7],
    "BIGINT": [-(2**63), 2**63 - 1, 7],
    "UTINYINT": [255, 7],
    "USMALLINT": [2**16 - 1, 7],
    "UINTEGER": [2**32 - 1, 7],
    "UBIGINT": [2**64 - 1, 2**63, 2**63 - 1, 7],
    "HUGEINT": [2**127 - 1, -(2**63) - 1, 2**63, 7],
    "UHUGEINT": [2**128 - 1, 7],
}

OF_DUCKDB = [
    *(_whole(name, name, values, sql=True) for name, values in _WHOLE.items()),
    Stored("BOOLEAN", "BOOLEAN", ["true", "false"], {"bool": [True, False]}, {"int": [1, 0]}, True),
    *(
        Stored(
            f"DECIMAL({width},{scale})",
            f"DECIMAL({width},{scale})",
            ["7.5", "7", "8"],
            {"float": [7.5, 7.0, 8.0]},
            {"int": [None, 7, 8]},
            True,
        )
        for width, scale in ((4, 1), (9, 2), (18, 3), (38, 10))
    ),
    Stored("DECIMAL(9,0)", "DECIMAL(9,0)", ["7", "8"], {"float": [7.0, 8.0]}, {"int": [7, 8]}, True),
    Stored(
        "FLOAT",
        "FLOAT",
        ["7", "0.5", "'nan'", "'inf'", "'-0.0'", "1e-45"],
        {"float": [7.0, 0.5, None, math.inf, 0.0, ANY]},
        {},
        False,
    ),
    Stored(
        "DOUBLE",
        "DOUBLE",
        ["7", "0.5", "'nan'", "'-inf'", "'-0.0'", "5e-324"],
        {"float": [7.0, 0.5, None, -math.inf, 0.0, ANY]},
        {},
        False,
    ),
    Stored(
        "VARCHAR", "VARCHAR", ["'a'", "'7'", "'true'", "''", "'ä'"], {"text": ["a", "7", "true", "", "ä"]}, {}, True
    ),
    Stored(
        "DATE",
        "DATE",
        ["'2025-01-01'", "'10000-01-01'", "'infinity'", "'0001-01-01 (BC)'"],
        {"date": [DAY, None, None, None], "timestamp": [_MIDNIGHT, None, None, None]},
        {},
        True,
    ),
    Stored("ENUM", "ENUM('b', 'a')", ["'a'", "'b'"], {"text": ["a", "b"]}, {}, True),
    Stored(
        "UUID",
        "UUID",
        ["'6948DF80-14BD-4E04-8842-7668D9C001F5'"],
        {"text": ["6948df80-14bd-4e04-8842-7668d9c001f5"]},
        {},
        True,
    ),
    Stored("TIME", "TIME", ["'12:00:00'", "'24:00:00'"]),
    Stored("TIMETZ", "TIMETZ", ["'12:00:00+02'", "'10:00:00+00'"]),
    Stored("TIME_NS", "TIME_NS", ["'12:00:00'"]),
    *(
        Stored(
            name,
            name,
            ["'2025-01-01'", "'2025-01-01 23:59:59'"],
            {"date": [DAY, DAY], "timestamp": [_MIDNIGHT, datetime.datetime(2025, 1, 1, 23, 59, 59)]},
        )
        for name in ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")
    ),
    Stored(
        "TIMESTAMP-infinite",
        "TIMESTAMP",
        ["'2025-01-01'", "'infinity'", "'-infinity'", "'290309-12-22 (BC)'"],
        {"date": [DAY, None, None, None], "timestamp": [_MIDNIGHT, None, None, None]},
    ),
    Stored("TIMESTAMPTZ", "TIMESTAMPTZ", ["'2025-01-01 23:00:00+00'"], _IN_UTC),
    Stored("INTERVAL", "INTERVAL", ["'1 month'", "'30 days'"]),
    Stored("BLOB", "BLOB", ["'\\xFF'::BLOB", "'a'::BLOB"]),
    Stored("BIT", "BIT", ["'101'", "'0101'"]),
    Stored(
        "BIGNUM", "BIGNUM", ["'123456789012345678901234567890'", "'7'"], {}, {"int": [None, 7], "float": [ANY, 7.0]}
    ),
    Stored("JSON", "JSON", ["'{}'", "'7'"], {}, {"text": ["{}", "7"]}),
    Stored("LIST", "INTEGER[]", ["[1, 2]"]),
    Stored("ARRAY", "INTEGER[2]", ["[1, 2]"]),
    Stored("STRUCT", "STRUCT(a INTEGER)", ["{'a': 1}"]),
    Stored("MAP", "MAP(VARCHAR, INTEGER)", ["map {'a': 1}"]),
    Stored("UNION", "UNION(a INTEGER, b VARCHAR)", ["1"]),
    Stored("VARIANT", "VARIANT", ["7"]),
    Stored("NULL", '"NULL"', ["NULL"], {}, {declared: [None] for declared in DECLARED}),
]


def _of_arrow() -> list[Stored]:
    """The types of Arrow; those that Parquet has not are stored as what it has for them, or are for frames only."""
    integers = {
        "int8": _WHOLE["TINYINT"],
        "int16": _WHOLE["SMALLINT"],
        "int32": _WHOLE["INTEGER"],
        "int64": _WHOLE["BIGINT"],
        "uint8": _WHOLE["UTINYINT"],
        "uint16": _WHOLE["USMALLINT"],
        "uint32": _WHOLE["UINTEGER"],
        "uint64": _WHOLE["UBIGINT"],
    }
    floats = [7.0, 0.5, math.nan, math.inf, -0.0]
    as_float = [7.0, 0.5, None, math.inf, 0.0]
    return [
        *(_whole(name, getattr(pa, name)(), values, sql=False) for name, values in integers.items()),
        Stored("bool", pa.bool_(), [True, False], {"bool": [True, False]}, {"int": [1, 0]}, True),
        Stored("float16", pa.float16(), floats, {}, {"float": as_float}, False),
        Stored("float32", pa.float32(), floats, {"float": as_float}, {}, False),
        Stored("float64", pa.float64(), floats, {"float": as_float}, {}, False),
        *(
            Stored(
                f"decimal{width}-{scale}",
                pa.decimal128(width, scale),
                [Decimal("7.5"), Decimal(7), Decimal(8)],
                {"float": [7.5, 7.0, 8.0]},
                {"int": [None, 7, 8]},
                True,
            )
            for width, scale in ((4, 1), (9, 2), (18, 3), (38, 10))
        ),
        Stored(
            "decimal-whole", pa.decimal128(9, 0), [Decimal(7), Decimal(8)], {"float": [7.0, 8.0]}, {"int": [7, 8]}, True
        ),
        Stored("decimal-negative", pa.decimal128(9, -2), [Decimal(700)], {}, {"float": [700.0], "int": [700]}),
        Stored(
            "decimal256",
            pa.decimal256(60, 2),
            [Decimal(7), Decimal(10) ** 50],
            {},
            {"float": [7.0, 1e50], "int": [7, None]},
        ),
        Stored("string", pa.string(), ["a", "7", "", "ä"], {"text": ["a", "7", "", "ä"]}, {}, True),
        Stored("large-string", pa.large_string(), ["a", "7", ""], {"text": ["a", "7", ""]}, {}, True),
        Stored(
            "string-view",
            pa.string_view(),
            ["a", "a text longer than twelve bytes"],
            {},
            {"text": ["a", "a text longer than twelve bytes"]},
        ),
        Stored(
            "dictionary", pa.dictionary(pa.int8(), pa.string()), ["a", "b", "a"], {"text": ["a", "b", "a"]}, {}, True
        ),
        Stored(
            "dictionary-ordered",
            pa.dictionary(pa.uint64(), pa.string(), ordered=True),
            ["a", "b"],
            {},
            {"text": ["a", "b"]},
        ),
        Stored(
            "date32",
            pa.date32(),
            [DAY, datetime.date(1, 1, 1)],
            {"date": [DAY, datetime.date(1, 1, 1)], "timestamp": [_MIDNIGHT, datetime.datetime.min]},
            {},
            True,
        ),
        Stored("date64", pa.date64(), [DAY], {}, {"date": [DAY], "timestamp": [_MIDNIGHT]}),
        Stored("time32-s", pa.time32("s"), [datetime.time(12)]),
        Stored("time32-ms", pa.time32("ms"), [datetime.time(12)]),
        Stored("time64-us", pa.time64("us"), [datetime.time(12)]),
        Stored("time64-ns", pa.time64("ns"), [datetime.time(12)]),
        *(
            Stored(
                f"timestamp-{unit}",
                pa.timestamp(unit),
                [_MIDNIGHT, _MIDNIGHT + datetime.timedelta(hours=5)],
                {"date": [DAY, DAY], "timestamp": [_MIDNIGHT, _MIDNIGHT + datetime.timedelta(hours=5)]},
            )
            for unit in ("s", "ms", "us", "ns")
        ),
        Stored("timestamptz-utc", pa.timestamp("us", "UTC"), [_UTC], _IN_UTC),
        Stored("timestamptz-zone", pa.timestamp("us", "America/New_York"), [_UTC], _IN_UTC),
        Stored("timestamptz-no-zone", pa.timestamp("us", "Nowhere/Land"), [_UTC], {}, _IN_UTC),
        Stored("duration", pa.duration("us"), [datetime.timedelta(1)]),
        Stored("binary", pa.binary(), [b"a", b"\xff"]),
        Stored("fixed-binary", pa.binary(3), [b"abc", b"\xff\xff\xff"]),
        Stored("list", pa.list_(pa.int64()), [[1, 2], []]),
        Stored("fixed-list", pa.list_(pa.int64(), 2), [[1, 2]]),
        Stored("struct", pa.struct([("a", pa.int64())]), [{"a": 1}]),
        Stored("map", pa.map_(pa.string(), pa.int64()), [[("a", 1)]]),
        Stored("null", pa.null(), [None], {}, {declared: [None] for declared in DECLARED}),
        Stored("uuid", pa.uuid(), [bytes(16)], {}, {"text": ["00000000-0000-0000-0000-000000000000"]}),
        Stored("json", pa.json_(), ["7"], {}, {"text": ["7"]}),
        Stored("bool8", pa.bool8(), [True, False], {}, {"bool": [True, False], "int": [1, 0], "float": [1.0, 0.0]}),
    ]


def _literal(value: Any) -> str:
    """A value in SQL."""
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, datetime.datetime):
        return f"TIMESTAMP '{value}'"
    return f"DATE '{value}'" if isinstance(value, datetime.date) else str(value)


def _condition(column: str, value: Any) -> str:
    """What holds of a value that is read as this one."""
    if value is None:
        return f"{column} IS NULL"
    if isinstance(value, bool):
        return column if value else f"NOT {column}"
    if isinstance(value, float) and math.isinf(value):
        return f"{column} > 1e100" if value > 0 else f"{column} < -1e100"
    if value == -(2**63) and isinstance(value, int):
        return f"{column} < -9223372036854775807"  # the number itself has no literal
    return f"{column} = {_literal(value)}"


def _bounded(value: Any, declared: str) -> Any:
    """What a value is within the bounds of `BOUNDED`."""
    if value is None or declared in ("bool", "text"):
        return value
    bounds = BOUNDED[declared]
    within = min(max(value, bounds["lower"]), bounds["upper"])
    return float(within) if declared == "float" else within


def readings(declared: str, values: Sequence[Any]) -> list[Fact]:
    """How a table with these values, and one NULL, is read in `x`, without bounds, and in `b`, with them."""
    facts = []
    for column in ("x", "b"):
        counts: dict[str, int] = {}
        for value in [*values, None]:
            if value is not ANY:
                condition = _condition(column, _bounded(value, declared) if column == "b" else value)
                counts[condition] = counts.get(condition, 0) + 1
        facts.append(split(counts, rest=None if ANY in values else 0))
    if declared == "text":  # one that is not listed is in the group of others; in a condition it is itself
        groups: Rows = {value: values.count(value) for value in BOUNDED["text"]["values"]}
        facts[1] = Fact("SELECT b, COUNT(*) AS n FROM t GROUP BY b", groups)
    return facts


def _in_duckdb(stored: Stored, folder: Path) -> str:
    """Each value, and NULL, under `x` and `b`: in `t` in a row of its own, and in `twice` in two rows."""
    rows = ", ".join(f"({n}, {value}, {value}, 0)" for n, value in enumerate([*stored.values, "NULL", *stored.values]))
    make = [f"CREATE TABLE made (id INTEGER, x {stored.kind}, b {stored.kind}, one INTEGER)"]
    make += [f"INSERT INTO made VALUES {row}" for row in rows.replace("), (", ")\n(").split("\n")]
    kept = len(stored.values) + 1
    make += ["CREATE TABLE twice AS SELECT * FROM made", f"CREATE TABLE t AS SELECT * FROM made WHERE id < {kept}"]
    return database(make, folder)


def _table(stored: Stored, twice: bool) -> pa.Table:
    """The same as an Arrow table."""
    values = [*stored.values, None, *(stored.values if twice else ())]
    if isinstance(stored.kind, pa.BaseExtensionType):
        storage = stored.kind.storage_type
        cells = [int(v) if isinstance(v, bool) else v for v in values]
        column: Any = pa.ExtensionArray.from_storage(stored.kind, pa.array(cells, storage))
    elif pa.types.is_float16(stored.kind):
        import numpy as np

        column = pa.array([None if v is None else np.float16(v) for v in values], stored.kind)
    elif pa.types.is_dictionary(stored.kind):
        column = pa.array(values, pa.string()).dictionary_encode().cast(stored.kind)
    else:
        column = pa.array(values, stored.kind)
    ones = pa.array([0] * len(values))
    return pa.table([pa.array(range(len(values))), column, column, ones], names=["id", "x", "b", "one"])


def _cases(stored: Stored, kind: str, write: Any, write_twice: Any, table_twice: str) -> list[Case]:
    """A stored type in one kind of source: under each declared type, and as the unit."""
    found = []
    for declared in DECLARED:
        name = f"type-{kind}-{stored.name}-as-{declared}"
        columns = {"x": {"type": declared}, "b": BOUNDED[declared]}
        if declared in stored.read:
            outcome, facts = Outcome.READ, readings(declared, stored.read[declared])
        elif declared in stored.maybe:
            outcome, facts = Outcome.EITHER, readings(declared, stored.maybe[declared])
        else:
            outcome, facts = Outcome.ERROR, []
        found.append(Case(name, write, {"t": private(columns)}, outcome, facts, "x"))
    units = len(set(map(str, stored.values)) - {"NULL", "None"})
    outcome = Outcome.EITHER if stored.unit is None else Outcome.READ if stored.unit else Outcome.ERROR
    facts = [counted(units, table=table_twice), counted(units, "DISTINCT x", table_twice)]
    found.append(
        Case(
            f"type-{kind}-{stored.name}-as-unit",
            write_twice,
            {table_twice: private({"one": BOUNDED["int"]}, "x")},
            outcome,
            facts,
            "x",
        )
    )
    return found


NOT_IN_PARQUET = {"decimal-negative", "duration"}  # a duration is stored as a whole number


def stored_types() -> list[Case]:
    """All of them one by one, which is for full counts; and for every day those that are read, together."""
    found = []
    for stored in OF_DUCKDB:
        make = partial(_in_duckdb, stored)
        found += _cases(stored, "duckdb", make, make, "twice")
    for stored in _of_arrow():
        once, twice = partial(_table, stored, False), partial(_table, stored, True)
        if stored.name not in NOT_IN_PARQUET:
            found += _cases(stored, "parquet", partial(_stored, once), partial(_stored, twice), "t")
        found += _cases(stored, "arrow", partial(frame, once), partial(frame, twice), "t")
    times = [(stored, kind) for stored in OF_DUCKDB for kind in stored.read if kind in ("date", "timestamp")]
    others = [(stored, kind) for stored in OF_DUCKDB for kind in stored.read if kind not in ("date", "timestamp")]
    found.append(_together("types-together", others))
    found.append(_together("times-together", times))
    found.append(_units_together())
    return found


def _stored(make: Any, folder: Path) -> str:
    """A Parquet file of a table that is made when it is needed."""
    return parquet(make(), folder)


def _together(name: str, kinds: Sequence[tuple[Stored, str]]) -> Case:
    """Stored types of DuckDB under declared ones, as columns of one table, all values in one row each."""
    columns = {f"x{n}": {"type": declared} for n, (_, declared) in enumerate(kinds)}
    depth = max(len(stored.values) for stored, _ in kinds)
    create = ", ".join(f"x{n} {stored.kind}" for n, (stored, _) in enumerate(kinds))
    rows = []
    for row in range(depth + 1):
        cells = [stored.values[row] if row < len(stored.values) else "NULL" for stored, _ in kinds]
        rows.append(f"INSERT INTO t VALUES ({row}, {', '.join(cells)})")
    facts = [counted(depth + 1)]
    for n, (stored, declared) in enumerate(kinds):
        read = stored.read[declared]
        facts.append(counted(sum(value is not None for value in read), f"x{n}"))
    write = partial(database, [f"CREATE TABLE t (id INTEGER, {create})", *rows])
    return Case(name, write, {"t": private(columns)}, Outcome.READ, facts)


def _units_together() -> Case:
    """Every stored type of DuckDB that is a unit, each in a table of its own."""
    kinds = [stored for stored in OF_DUCKDB if stored.unit]
    make, tables, facts = [], {}, []
    for n, stored in enumerate(kinds):
        make.append(f"CREATE TABLE t{n} (x {stored.kind}, y INTEGER)")
        make += [f"INSERT INTO t{n} VALUES ({value}, 1)" for value in [*stored.values, "NULL", *stored.values]]
        tables[f"t{n}"] = private({"y": BOUNDED["int"]}, "x")
        facts.append(counted(len(stored.values), table=f"t{n}"))
    return Case("unit-types-together", partial(database, make), tables, Outcome.READ, facts)
