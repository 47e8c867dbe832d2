"""Folders of files that disagree, paths that look like patterns, and one person in two tables."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
from tests.support.hostile.case import (
    FLOAT,
    INT,
    Case,
    Fact,
    Outcome,
    counted,
    database,
    parquet,
    parquets,
    private,
    raw,
    split,
)


def unlike_files() -> list[Case]:
    """Folders whose files disagree: no file may decide whether a question fails."""
    first = pa.table({"id": [1, 2], "x": pa.array([1, 2], pa.int64())})

    def second(values: Sequence[Any], kind: pa.DataType, **more: Any) -> pa.Table:
        return pa.table({"id": [3, 4], "x": pa.array(values, kind), **more})

    others = {
        "text": second(["a", "b"], pa.string()),
        "int32": second([3, 4], pa.int32()),
        "uint64": second([3, 2**63], pa.uint64()),
        "double": second([3.0, 4.5], pa.float64()),
        "bool": second([True, False], pa.bool_()),
        "null-type": second([None, None], pa.null()),
        "list": second([[1], [2]], pa.list_(pa.int64())),
        "missing": pa.table({"id": [3, 4]}),
        "missing-unit": pa.table({"x": [3, 4]}),
        "unit-as-text": pa.table({"id": ["3", "4"], "x": [3, 4]}),
        "zero-rows-text": pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], pa.string())}),
        "upper-case-name": pa.table({"ID": [3, 4], "X": [3, 4]}),
    }
    four = [counted(4), split({"x IS NULL": 2, "x = 1": 1, "x = 2": 1})]
    readings = {  # of the second file's rows, where it is read at all
        "int32": [counted(4), split({"x = 3": 1, "x = 4": 1}, rest=2)],
        "uint64": [counted(4), split({"x = 3": 1, "x IS NULL": 1}, rest=2)],
        "null-type": four,
        "missing": four,
        "missing-unit": [counted(2)],
        "zero-rows-text": [counted(2)],
        "upper-case-name": [counted(4)],
        "double": [counted(4), split({"x = 1": 1, "x = 3": 1}, rest=None)],
        "text": [counted(4), split({"x IS NULL": 2}, rest=2)],
    }
    found = [
        Case(
            f"folder-{name}-{'first' if flipped else 'second'}",
            partial(parquets, {"t/b.parquet": first, f"t/{'a' if flipped else 'c'}.parquet": other}),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            readings.get(name, [counted(4)]),
            "t",
        )
        for name, other in others.items()
        for flipped in (False, True)
    ]
    alike = {
        "columns-in-another-order": pa.table({"x": [3, 4], "id": [3, 4]}),
        "another-column-more": second([3, 4], pa.int64(), more=["a", "b"]),
        "zero-rows": pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], pa.int64())}),
    }
    for name, other in alike.items():
        rows = other.num_rows
        facts = [counted(2 + rows), split({"x = 1": 1, "x = 2": 1, "x = 3": rows // 2, "x = 4": rows // 2})]
        found += [
            Case(
                f"folder-{name}-{'first' if flipped else 'second'}",
                partial(parquets, {"t/b.parquet": first, f"t/{'a' if flipped else 'c'}.parquet": other}),
                {"t": private({"x": INT})},
                Outcome.READ,
                facts,
            )
            for flipped in (False, True)
        ]

    def with_file(name: str, content: bytes, folder: Path) -> str:
        parquets({"t/b.parquet": first}, folder)
        raw(content, folder / "data", name)
        return str(folder / "data")

    two = [counted(2)]
    found += [
        Case(
            "folder-empty-file",
            partial(with_file, "t/c.parquet", b""),
            {"t": private({"x": INT})},
            Outcome.ERROR,
            (),
            "t",
        ),
        Case(
            "folder-not-parquet",
            partial(with_file, "t/c.parquet", b"PAR1" * 9),
            {"t": private({"x": INT})},
            Outcome.ERROR,
            (),
            "t",
        ),
        Case(
            "folder-other-file",
            partial(with_file, "t/_SUCCESS", b""),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            two,
            "t",
        ),
        Case(
            "folder-csv-beside",
            partial(with_file, "t/c.csv", b"id,x\n7,7\n"),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            [],
            "t",
        ),
        Case(
            "folder-same-table-twice",
            partial(with_file, "t.csv", b"id,x\n7,7\n"),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            [],
            "t",
        ),
        Case("folder-empty", str, {"t": private({"x": INT})}, Outcome.ERROR, (), "t"),
        Case(
            "folder-hive",
            partial(parquets, {"t/x=1/a.parquet": first.select(["id"]), "t/x=b/a.parquet": pa.table({"id": [3, 4]})}),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            [],
            "t",
        ),
    ]
    decimals = [pa.table({"id": [n], "x": pa.array([Decimal(7)], pa.decimal128(9, n))}) for n in (1, 2)]
    found.append(
        Case(
            "folder-decimal-scales",
            partial(parquets, {"t/a.parquet": decimals[0], "t/b.parquet": decimals[1]}),
            {"t": private({"x": FLOAT})},
            Outcome.EITHER,
            [split({"x = 7": 2})],
            "t",
        )
    )
    return found


def paths() -> list[Case]:
    """Where a file lies says nothing about its rows: not a folder named like a partition, not a name like a pattern."""
    table = pa.table({"id": [0, 1, 2], "x": [0, 1, 2]})
    text = b"id,x\n0,0\n1,1\n2,2\n"
    x, facts = {"t": private({"x": INT})}, [counted(3), split({"x = 0": 1, "x = 1": 1, "x = 2": 1})]

    def among(name: str, folder: Path) -> str:
        for number in range(3):  # files that the name would match, were it a pattern
            parquet(pa.table({"id": [7], "x": [7]}), folder, f"a{number}.parquet")
        return parquet(table, folder, name)

    def over(name: str, folder: Path) -> str:
        return database(
            [f"CREATE VIEW t AS SELECT * FROM read_parquet('{parquet(table, folder, name)}', hive_partitioning=false)"],
            folder,
        )

    def pipe(folder: Path) -> str:
        os.mkfifo(folder / "t.parquet")
        return str(folder / "t.parquet")

    found = [
        Case("path-partition-key-parquet", partial(parquet, table, name="x=5/t.parquet"), x, Outcome.READ, facts),
        Case("path-partition-key-csv", partial(raw, text, name="x=5/t.csv"), x, Outcome.READ, facts),
        Case("path-partition-unit-parquet", partial(parquet, table, name="id=5/t.parquet"), x, Outcome.READ, facts),
        Case("path-partition-unit-csv", partial(raw, text, name="id=5/t.csv"), x, Outcome.READ, facts),
        Case("path-partition-other-type", partial(parquet, table, name="x=a/t.parquet"), x, Outcome.READ, facts),
        Case("path-partition-under-a-view", partial(over, "x=5/t.parquet"), x, Outcome.READ, facts),
        Case("path-pipe", pipe, x, Outcome.ERROR, (), "t.parquet", apart=True),
    ]
    names = {
        "brackets": "a[0-9].parquet",
        "star": "a*.parquet",
        "question": "a?.parquet",
        "quote": "a'b.parquet",
        "braces": "{a0,a1}.parquet",
    }
    found += [Case(f"path-{label}", partial(among, name), x, Outcome.READ, facts) for label, name in names.items()]
    return found


def units_of_unlike_types() -> list[Case]:
    """One person in two tables: the same unit, or the owner's error, whatever the stored types are."""
    pairs = {
        "int-text": ([7], ["7"]),
        "int-float": ([7], [7.0]),
        "int-int32": ([7], pa.array([7], pa.int32())),
        "decimal-scales": (pa.array([Decimal(7)], pa.decimal128(9, 1)), pa.array([Decimal(7)], pa.decimal128(9, 2))),
        "int-decimal": ([7], pa.array([Decimal(7)], pa.decimal128(9, 0))),
        "text-spaces": (["7"], ["7 "]),
        "date-timestamp": ([datetime.date(2025, 1, 1)], [datetime.datetime(2025, 1, 1)]),  # as stored
        "bool-int": ([True], [1]),
        "bool-text": ([True], ["true"]),
    }
    found = []
    for name, (one, other) in pairs.items():
        tables = {"t.parquet": pa.table({"id": one, "x": [1]}), "u.parquet": pa.table({"id": other, "x": [1]})}
        policy = {table: private({"x": INT}, people="everyone") for table in ("t", "u")}
        apart = name == "text-spaces"
        fact = Fact("SELECT COUNT(*) AS n FROM t JOIN u USING (id)", {None: 0 if apart else 1})
        outcome = Outcome.READ if apart else Outcome.EITHER
        found.append(Case(f"one-person-{name}", partial(parquets, tables), policy, outcome, [fact], "id"))
    return found


def matched_keys() -> list[Case]:
    """Keys that tables are matched on: NULL and NaN match nothing, and a value that is no key matches nothing."""
    nan, uint = float("nan"), pa.uint64()
    public = {  # the keys of a private table, of a public one, their type, and how many rows match
        "null": ([1, None, 2], [1, None, None], INT, 1),
        "zeros": ([0.0, -0.0, 1.0], [0.0, -0.0, 1.0], FLOAT, 3),
        "nan": ([1.0, nan, nan], [1.0, nan, nan], FLOAT, 1),
        "beyond-64-bits": (pa.array([2**64 - 1, 1], uint), pa.array([2**64 - 1, 2**64 - 2, 1], uint), INT, 1),
    }
    found = []
    for name, (keys, others, kind, matches) in public.items():
        tables = {
            "t.parquet": pa.table({"id": range(len(keys)), "x": keys}),
            "p.parquet": pa.table({"x": others, "y": range(len(others))}),
        }
        policy = {"t": private({"x": kind}), "p": {"public": True, "columns": {"x": kind | {"unique": True}, "y": INT}}}
        fact = Fact("SELECT COUNT(*) AS n FROM t JOIN p USING (x)", {None: matches})
        found.append(Case(f"matched-public-{name}", partial(parquets, tables), policy, Outcome.EITHER, [fact], "x"))
    through: dict[str, tuple[Any, Any, int]] = {
        "null": ([1, None, None], [1, None, None], 1),
        "beyond-64-bits": (pa.array([2**64 - 1, 1, 2], uint), pa.array([2**64 - 1, 1, 3], uint), 2),
        "twice": ([1, 1, 2], [1, 1, 2], 0),
        "floats": ([0.0, -0.0, nan], [0.0, -0.0, nan], 0),
        "texts-and-numbers": (["1", "01", "2"], [1, 1, 2], 3),
    }
    for name, (parents, children, rows) in through.items():
        tables = {
            "t.parquet": pa.table({"id": [1, 2, 3], "y": [1, 2, 3], "key": parents}),
            "u.parquet": pa.table({"key": children, "x": [1, 2, 3]}),
        }
        policy = {"t": private({"y": INT}), "u": private({"x": INT}, {"through": "key", "to": "t.key"})}
        outcome = Outcome.ERROR if name in ("twice", "floats") else Outcome.EITHER
        facts = [] if outcome is Outcome.ERROR else [counted(rows, table="u")]
        found.append(Case(f"matched-through-{name}", partial(parquets, tables), policy, outcome, facts, "key"))
    return found
