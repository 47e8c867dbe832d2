"""Numbers and dates at the ends of what can be stored, and tables without rows."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
from tests.support.hostile.case import (
    BOOL,
    BOUNDED,
    DATE,
    FLOAT,
    INT,
    TEXT,
    Case,
    Fact,
    Outcome,
    counted,
    database,
    frame,
    parquet,
    parquets,
    private,
    raw,
    split,
)
from tests.support.policies import caps

NUMBERS = [
    float("nan"),
    -0.0,
    0.0,
    float("inf"),
    float("-inf"),
    5e-324,
    2.2e-308,
    2.0**53 + 2,
    1e308,
    -1e308,
    0.5,
    None,
]
INTEGERS = [2**53 + 1, 2**53, 2**63 - 1, -(2**63), -(2**63) + 1, 0, -1, 7, None]


def numbers() -> list[Case]:
    """NaN, signed zeros, infinities, denormals and the ends of 64 bits."""
    floats = pa.table({"id": range(len(NUMBERS)), "x": NUMBERS, "b": NUMBERS})
    integers = pa.table({"id": range(len(INTEGERS)), "x": INTEGERS, "b": INTEGERS})
    as_float = {"t": private({"x": FLOAT, "b": BOUNDED["float"]})}
    as_int = {"t": private({"x": INT, "b": BOUNDED["int"]})}
    read_floats = [
        split(
            {
                "x IS NULL": 2,
                "x = 0": 2,
                "x > 1e100": 2,
                "x < -1e100": 2,
                "x > 0 AND x < 1e-100": 2,
                "x = 0.5": 1,
                "x = 9007199254740994": 1,
            }
        ),
        split(
            {"b IS NULL": 2, "b >= 0 AND b < 0.25": 6, "b = 9": 3, "b = 0.5": 1}
        ),  # on the grid of the sums or before it
        counted(10, "b"),
    ]
    read_integers = [
        split(
            {
                "x = 9007199254740993": 1,
                "x = 9007199254740992": 1,
                "x = 9223372036854775807": 1,
                "x < -9223372036854775807": 1,
                "x = -9223372036854775807": 1,
                "x IS NULL": 1,
                "x = 7": 1,
            },
            rest=2,
        ),
        split({"b IS NULL": 1, "b = 0": 4, "b = 7": 1, "b = 9": 3}),
        counted(8, "x"),
    ]
    wide = [
        split(
            {
                "x = 9007199254740992": 2,
                "x > 9e18": 1,
                "x < -9e18": 2,
                "x = 7": 1,
                "x IS NULL": 1,
                "x = 0": 1,
                "x = -1": 1,
            }
        ),
        split({"b IS NULL": 1, "b = 0": 4, "b = 7": 1, "b = 9": 3}),
    ]
    kept = ["NaN", "-0.0", "0", "inf", "-inf", "5e-324", "2.2e-308", "9007199254740994", "1e308", "-1e308", "0.5", ""]
    cells = "".join(f"{number},{cell},{cell}\n" for number, cell in enumerate(kept))
    csv_integers = [
        9007199254740993,
        9007199254740992,
        2**63 - 1,
        -(2**63),
        -(2**63) + 1,
        0,
        -1,
        7,
        "",
        2**63,
        10**40,
        "x",
        "1.5x",
    ]
    integer_cells = "".join(f"{number},{cell},{cell}\n" for number, cell in enumerate(csv_integers))
    nulls = [
        Fact(fact.sql, {group: n + (4 if group == nulls_at else 0) for group, n in fact.rows.items()})
        for fact, nulls_at in zip(read_integers[:2], (6, 1), strict=True)
    ]
    not_null = {"t": private({"x": FLOAT | {"lower": 0, "upper": 9, "step": 0.5, "nullable": False}})}
    missing = [split({"x IS NULL": 0, "x >= 0 AND x < 0.25": 8, "x = 9": 3, "x = 0.5": 1}), counted(12, "x")]

    def in_duckdb(table: pa.Table, folder: Path) -> str:
        source = parquet(table, folder, "made.parquet")
        return database([f"CREATE TABLE t AS SELECT * FROM '{source}'"], folder)

    return [
        Case("floats-parquet", partial(parquet, floats), as_float, Outcome.READ, read_floats),
        Case("floats-duckdb", partial(in_duckdb, floats), as_float, Outcome.READ, read_floats),
        Case("floats-csv", partial(raw, b"id,x,b\n" + cells.encode()), as_float, Outcome.READ, read_floats),
        Case("floats-arrow", partial(frame, lambda: floats), as_float, Outcome.READ, read_floats),
        Case(
            "floats-polars",
            partial(frame, lambda: pl.from_arrow(floats)),
            as_float,
            Outcome.READ,
            read_floats,
        ),
        Case("floats-pandas", partial(frame, floats.to_pandas), as_float, Outcome.READ, read_floats),
        Case("floats-never-missing", partial(parquet, floats), not_null, Outcome.READ, missing),
        Case("floats-as-unit", partial(parquet, floats), {"t": private({"b": FLOAT}, "x")}, Outcome.ERROR, (), "x"),
        Case("integers-parquet", partial(parquet, integers), as_int, Outcome.READ, read_integers),
        Case("integers-duckdb", partial(in_duckdb, integers), as_int, Outcome.READ, read_integers),
        Case("integers-csv", partial(raw, b"id,x,b\n" + integer_cells.encode()), as_int, Outcome.READ, nulls),
        Case("integers-arrow", partial(frame, lambda: integers), as_int, Outcome.READ, read_integers),
        Case("integers-as-float", partial(parquet, integers), as_float, Outcome.EITHER, wide, "x"),
        Case(
            "integers-as-unit",
            partial(parquet, integers),
            {"t": private({"b": BOUNDED["int"]}, "x")},
            Outcome.READ,
            [counted(8), counted(8, "DISTINCT x")],
        ),
    ]


def many_rows_of_a_unit() -> list[Case]:
    """Several rows of each unit whose sums pass 64 bits and the largest float: random questions alone."""
    integers = [2**63 - 1, 2**63 - 1, -(2**63), -(2**63), 0, None, 7, 2**53 + 1] * 6
    floats = [1e308, 1e308, -1e308, -1e308, float("inf"), float("-inf"), float("nan"), 5e-324] * 6
    days = pa.array([2**31 - 1, -(2**31), 0, 20089] * 12, pa.int32()).cast(pa.date32())
    unit = [number // 8 for number in range(48)]
    table = pa.table(
        {"id": unit, "x": integers, "b": integers, "f": floats, "g": floats, "s": ["a\x00"] * 48, "d": days}
    )
    columns = {
        "x": INT,
        "b": INT | {"lower": -(2**62), "upper": 2**62},
        "f": FLOAT,
        "g": FLOAT | {"lower": -1e15, "upper": 1e15, "step": 0.5},
        "s": TEXT,
        "d": DATE,
    }
    wide = private(columns) | caps(4, 8, 8)
    return [
        Case("many-rows-parquet", partial(parquet, table), {"t": wide}, Outcome.READ),
        Case("many-rows-arrow", partial(frame, lambda: table), {"t": private(columns) | caps(2, 3)}, Outcome.READ),
        Case(
            "many-rows-each-protected",
            partial(parquet, table),
            {"t": {"unit": "row", "columns": columns}},
            Outcome.READ,
        ),
    ]


def dates() -> list[Case]:
    """Dates outside the years 1 to 9999 are NULL."""
    days = [0, 2932896, 2932897, -719162, -719163, 20089, 2**31 - 1, -(2**31), 2**31 - 2, None]
    table = pa.table(
        {
            "id": range(len(days)),
            "x": pa.array(days, pa.int32()).cast(pa.date32()),
            "b": pa.array(days, pa.int32()).cast(pa.date32()),
        }
    )
    read = [
        split(
            {
                "x = DATE '1970-01-01'": 1,
                "x = DATE '9999-12-31'": 1,
                "x = DATE '0001-01-01'": 1,
                "x = DATE '2025-01-01'": 1,
                "x IS NULL": 6,
            }
        ),
        split({"b IS NULL": 6, "b = DATE '2025-01-01'": 3, "b = DATE '2025-01-09'": 1}),
        counted(4, "x"),
    ]
    policy = {"t": private({"x": DATE, "b": BOUNDED["date"]})}

    def in_duckdb(folder: Path) -> str:
        return database([f"CREATE TABLE t AS SELECT * FROM '{parquet(table, folder, 'made.parquet')}'"], folder)

    literals = [
        "'infinity'",
        "'-infinity'",
        "'0001-01-01 (BC)'",
        "'10000-01-01'",
        "'9999-12-31'",
        "'0001-01-01'",
        "NULL",
    ]
    made = [f"SELECT {n} AS id, {cell}::DATE AS x, {cell}::DATE AS b" for n, cell in enumerate(literals)]
    beyond = [
        split({"x IS NULL": 5, "x = DATE '9999-12-31'": 1, "x = DATE '0001-01-01'": 1}),
        split({"b IS NULL": 5}, rest=2),
    ]
    return [
        Case("dates-parquet", partial(parquet, table), policy, Outcome.READ, read),
        Case("dates-duckdb", in_duckdb, policy, Outcome.READ, read),
        Case("dates-arrow", partial(frame, lambda: table), policy, Outcome.READ, read),
        Case("dates-polars", partial(frame, lambda: pl.from_arrow(table)), policy, Outcome.READ, read),
        Case(
            "dates-infinite",
            partial(database, ["CREATE TABLE t AS " + " UNION ALL ".join(made)]),
            policy,
            Outcome.READ,
            beyond,
        ),
        Case(
            "dates-as-unit",
            partial(parquet, table),
            {"t": private({"b": BOUNDED["date"]}, "x")},
            Outcome.EITHER,
            [counted(9), counted(9, "DISTINCT x")],
            "x",
        ),
    ]


def zero_rows() -> list[Case]:
    """Tables without rows are read as such, in each format."""
    columns = {"x": INT, "f": FLOAT, "s": TEXT, "b": BOOL, "d": DATE}
    policy = {"t": private(columns | {f"{name}2": BOUNDED[kind["type"]] for name, kind in columns.items()})}
    kinds = {"x": pa.int64(), "f": pa.float64(), "s": pa.string(), "b": pa.bool_(), "d": pa.date32()}
    fields = [("id", pa.int64()), *kinds.items(), *((f"{name}2", kind) for name, kind in kinds.items())]
    empty = pa.schema(fields).empty_table()
    in_sql = {"x": "BIGINT", "f": "DOUBLE", "s": "VARCHAR", "b": "BOOLEAN", "d": "DATE"}
    made = ", ".join(f"{name} {kind}, {name}2 {kind}" for name, kind in in_sql.items())
    header = ",".join(name for name, _ in fields).encode() + b"\n"
    nothing = [counted(0), counted(0, "DISTINCT s"), split({"x = 1": 0, "s IS NULL": 0})]
    return [
        Case("zero-rows-parquet", partial(parquet, empty), policy, Outcome.READ, nothing),
        Case(
            "zero-rows-duckdb",
            partial(database, [f"CREATE TABLE t (id BIGINT, {made})"]),
            policy,
            Outcome.READ,
            nothing,
        ),
        Case("zero-rows-csv", partial(raw, header), policy, Outcome.READ, nothing),
        Case("zero-rows-arrow", partial(frame, lambda: empty), policy, Outcome.READ, nothing),
        Case(
            "zero-rows-polars",
            partial(frame, lambda: pl.from_arrow(empty)),
            policy,
            Outcome.READ,
            nothing,
        ),
        Case("zero-rows-pandas", partial(frame, empty.to_pandas), policy, Outcome.EITHER, nothing, "t"),
        Case(
            "zero-rows-no-groups",
            partial(parquets, {"t/a.parquet": empty, "t/b.parquet": empty}),
            policy,
            Outcome.READ,
            nothing,
        ),
        Case("zero-columns", partial(parquet, pa.table({})), policy, Outcome.ERROR, (), "t"),
    ]
