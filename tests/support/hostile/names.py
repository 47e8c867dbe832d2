"""Names of columns and tables."""

from __future__ import annotations

from functools import partial

import pandas as pd
import pyarrow as pa
from tests.support.hostile.case import (
    INT,
    Case,
    Outcome,
    counted,
    database,
    frame,
    parquet,
    private,
    quoted,
    raw,
    split,
)

NAMES = {
    "quote": 'a"b',
    "two-quotes": '""',
    "apostrophe": "a'b",
    "newline": "a\nb",
    "space": "a b",
    "spaces": "  ",
    "tab": "\t",
    "reserved": "select",
    "reserved-from": "FROM",
    "long": "n" * 128,
    "non-ascii": "größe",
    "emoji": "🙂",
    "right-to-left": "\u202eabc",
    "combining": "e\u0301",
    "hash": "#1",
    "semicolon": "a;--",
    "comment": "/*",
    "backslash": "a\\b",
    "dot": "a.b",
    "star": "*",
    "digit": "1",
    "dollar": "$1",
    "percent": "%s{}",
    "rowid": "rowid",
    "file-name": "filename",
    "true": "true",
    "null": "NULL",
    "underscore-name": "__tacit",
    "unit-word": "row",
}


def names() -> list[Case]:
    """Column and table names: each odd name is read under that name, or is the owner's error."""
    found = []
    values = [0, 1, 2]
    for label, name in NAMES.items():
        table = pa.table({"id": values, name: values})
        q = quoted(name)
        fact = split({f"{q} = 0": 1, f"{q} = 1": 1, f"{q} = 2": 1})
        policy = {"t": private({name: INT})}
        found += [
            Case(f"name-{label}-parquet", partial(parquet, table), policy, Outcome.EITHER, [fact]),
            Case(
                f"name-{label}-arrow",
                partial(frame, lambda table=table: table),
                policy,
                Outcome.EITHER,
                [fact],
            ),
            Case(
                f"name-{label}-duckdb",
                partial(
                    database,
                    [f"CREATE TABLE t (id INTEGER, {q} BIGINT)", "INSERT INTO t VALUES (0, 0), (1, 1), (2, 2)"],
                ),
                policy,
                Outcome.EITHER,
                [fact],
            ),
            Case(
                f"name-{label}-csv",
                partial(raw, f"id,{q}\n0,0\n1,1\n2,2\n".encode()),
                policy,
                Outcome.EITHER,
                [fact],
            ),
            Case(
                f"name-{label}-unit",
                partial(parquet, table),
                {"t": private({"id": INT}, name)},
                Outcome.EITHER,
                [counted(3)],
            ),
            Case(
                f"name-{label}-table",
                partial(database, [f"CREATE TABLE {q} AS SELECT i AS id, i AS x FROM range(3) r(i)"]),
                {name: private({"x": INT})},
                Outcome.EITHER,
                [counted(3, table=q)],
            ),
        ]
    twice = pa.table([pa.array(values), pa.array(values), pa.array([5, 5, 5])], names=["id", "x", "x"])
    cased = pa.table([pa.array(values), pa.array(values), pa.array([5, 5, 5])], names=["id", "x", "X"])
    units = pa.table([pa.array(values), pa.array([1, 1, 1]), pa.array(values)], names=["id", "ID", "x"])
    empty = pa.table([pa.array(values), pa.array(values)], names=["id", ""])
    x, exact = {"t": private({"x": INT})}, [split({"x = 0": 1, "x = 1": 1, "x = 2": 1})]
    found += [
        Case("names-twice-parquet", partial(parquet, twice), x, Outcome.EITHER, exact, "x"),
        Case("names-cased-parquet", partial(parquet, cased), x, Outcome.EITHER, exact, "x"),
        Case("names-cased-unit-parquet", partial(parquet, units), x, Outcome.EITHER, [counted(3), *exact], "id"),
        Case("names-twice-arrow", partial(frame, lambda: twice), x, Outcome.EITHER, exact, "x"),
        Case("names-cased-arrow", partial(frame, lambda: cased), x, Outcome.EITHER, exact, "x"),
        Case(
            "names-twice-pandas",
            partial(frame, lambda: pd.DataFrame([[0, 0, 5]], columns=["id", "x", "x"])),
            x,
            Outcome.EITHER,
            [split({"x = 0": 1})],
            "x",
        ),
        Case(
            "names-cased-pandas",
            partial(frame, lambda: pd.DataFrame([[0, 0, 5]], columns=["id", "x", "X"])),
            x,
            Outcome.EITHER,
            [split({"x = 0": 1})],
            "x",
        ),
        Case("names-twice-csv", partial(raw, b"id,x,x\n0,0,5\n1,1,5\n2,2,5\n"), x, Outcome.EITHER, exact, "x"),
        Case("names-cased-csv", partial(raw, b"id,x,X\n0,0,5\n1,1,5\n2,2,5\n"), x, Outcome.EITHER, exact, "x"),
        Case(
            "names-empty-parquet",
            partial(parquet, empty),
            {"t": private({"id": INT}, "id")},
            Outcome.READ,
            [counted(3)],
        ),
        Case("names-empty-declared", partial(parquet, empty), {"t": private({"": INT})}, Outcome.ERROR, (), "t"),
        Case("names-empty-csv", partial(raw, b"id,,x\n0,5,0\n1,5,1\n2,5,2\n"), x, Outcome.READ, exact),
        Case(
            "names-numbers-pandas",
            partial(frame, lambda: pd.DataFrame({0: [1, 2], 1: [1, 2]})),
            {"t": private({"1": INT}, "0")},
            Outcome.EITHER,
            [counted(2)],
            "t",
        ),
        Case(
            "names-index-pandas",
            partial(frame, lambda: pd.DataFrame({"x": values}, index=pd.Index(values, name="id"))),
            x,
            Outcome.EITHER,
            exact,
            "id",
        ),
        Case(
            "names-levels-pandas",
            partial(frame, lambda: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("id", ""), ("x", "")]))),
            x,
            Outcome.EITHER,
            [counted(1)],
            "t",
        ),
        Case(
            "names-other-case", partial(parquet, pa.table({"ID": values, "X": values})), x, Outcome.EITHER, exact, "t"
        ),
    ]
    return found
