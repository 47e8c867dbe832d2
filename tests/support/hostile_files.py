"""A corpus of hostile data: files and frames that must end in a documented reading or in the owner's error.

The rule behind every expectation: a value that does not fit its declared type is NULL, a row without a unit is left out,
and what can never fit, or cannot be read to its end, is the owner's error at open. Each case writes its data into a
folder; `tests/curator/test_hostile_files.py` puts it through the public API. The types are in `hostile_types.py`.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
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

    `write` returns a source, or frames by table. `named` is a word that the owner's error must contain; `facts` hold where it
    opens. `spoil` is what happens to the files while the curator is open: from then on a question may also end in a
    DataError, which is documented and costs nothing.
    """

    name: str
    write: Write
    tables: Mapping[str, Any]
    outcome: Outcome
    facts: Sequence[Fact] = ()
    named: str = ""
    spoil: Callable[[Path], None] | None = None
    apart: bool = False  # whether to open it in a process of its own, which reading it unchecked could end
    always: bool = field(default=True)  # whether it runs at the counts of every day, too


def private(columns: Mapping[str, Any], unit: Any = "id", **more: Any) -> dict[str, Any]:
    """A private table with caps of one row."""
    return {"unit": unit, **caps(1, 1), "columns": dict(columns), **more}


INT, FLOAT, TEXT, BOOL, DATE = ({"type": name} for name in ("int", "float", "text", "bool", "date"))
BOUNDED = {
    "int": INT | {"lower": 0, "upper": 9},
    "float": FLOAT | {"lower": 0, "upper": 9, "step": 0.5},
    "text": TEXT | {"values": ["a", "b"], "other": "else"},
    "bool": BOOL,
    "date": DATE | {"lower": datetime.date(2025, 1, 1), "upper": datetime.date(2025, 1, 9)},
}


def split(counts: Mapping[str, int], table: str = "t", rest: int | None = 0) -> Fact:
    """How many rows meet each condition, and meet none: one group each, so one unit of one row is in one of them."""
    cases = " ".join(f"WHEN {condition} THEN {number}" for number, condition in enumerate(counts, 1))
    rows: Rows = dict(enumerate(counts.values(), 1))
    if rest is not None:
        rows[0] = rest
    return Fact(f"SELECT CASE {cases} ELSE 0 END AS answer_group, COUNT(*) AS n FROM {table} GROUP BY answer_group", rows)


def counted(number: int, what: str = "*", table: str = "t") -> Fact:
    """One count."""
    return Fact(f"SELECT COUNT({what}) AS n FROM {table}", {None: number})


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


# What writes files.


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


# The cases, a function for each subject.

_BAD = {"byte": b"\xff", "overlong": b"\xc0\xaf", "surrogate": b"\xed\xa0\x80", "cut": b"caf\xc3", "beyond": b"\xf4\x90\x80\x80"}


def _with_bad_text(bad: bytes, late: bool, rows: int = 3000) -> pa.Table:
    """Rows 'a' and 'b' by turns, one of them bad."""
    values = [b"a", b"b"] * (rows // 2)
    values[-3 if late else 2] = bad
    return pa.table({"id": pa.array(range(rows)), "x": texts_of(values)})


def unreadable_texts() -> list[Case]:
    """Texts that are not UTF-8: of a declared column or a unit the owner's error, or NULL; elsewhere of no concern."""
    null = [split({"x IS NULL": 1, "x = 'b'": 1500}, rest=1499)]
    found = []
    for name, bad in _BAD.items():
        for coded in (True, False):
            for late in (False, True):
                label = f"parquet-{name}-{'dictionary' if coded else 'plain'}-{'later' if late else 'first'}-group"
                write = partial(
                    parquet, _with_bad_text(bad, late), use_dictionary=coded, row_group_size=1000, store_schema=False
                )
                always = name == "byte" or (name == "cut" and coded and late)
                found.append(Case(f"{label}-column", write, {"t": private({"x": TEXT})}, Outcome.EITHER, null, "x", always=always))
    table = _with_bad_text(b"\xff", late=True)
    write = partial(parquet, table, row_group_size=1000)
    found += [
        Case("parquet-byte-unit", write, {"t": private({"id": INT}, "x")}, Outcome.EITHER, [counted(2)], "x"),
        Case("parquet-byte-undeclared", write, {"t": private({"id": INT}, "id")}, Outcome.READ, [counted(3000)]),
        Case(
            "parquet-byte-listed",
            write,
            {"t": private({"x": BOUNDED["text"]})},
            Outcome.EITHER,
            [split({"x IS NULL": 1, "x = 'a'": 1499, "x = 'b'": 1500})],
            "x",
        ),
        Case(
            "parquet-byte-unique-public",
            partial(
                parquets,
                {"t.parquet": pa.table({"id": [1, 2, 3], "x": ["a", "b", "c"]}),
                 "p.parquet": pa.table({"x": texts_of([b"a", b"\xff", b"\xfe"]), "y": [1, 2, 3]})},
            ),
            {
                "t": private({"x": TEXT}),
                "p": {"public": True, "columns": {"x": TEXT | {"unique": True}, "y": BOUNDED["int"]}},
            },
            Outcome.EITHER,
            [Fact("SELECT COUNT(*) AS n FROM t JOIN p USING (x)", {None: 1})],
            "x",
        ),
        Case(
            "parquet-byte-through",
            partial(
                parquets,
                {"t.parquet": pa.table({"id": [1, 2, 3], "y": [1, 2, 3], "key": texts_of([b"a", b"\xff", b"c"])}),
                 "u.parquet": pa.table({"key": texts_of([b"a", b"\xff", b"c"]), "x": [1, 2, 3]})},
            ),
            {"t": private({"y": INT}), "u": private({"x": INT}, {"through": "key", "to": "t.key"})},
            Outcome.EITHER,
            [counted(2, table="u")],
            "key",
        ),
        Case(
            "parquet-large-string",
            partial(parquet, pa.table({"id": [1, 2], "x": texts_of([b"a", b"\xff"], pa.large_string())})),
            {"t": private({"x": TEXT})},
            Outcome.EITHER,
            [split({"x IS NULL": 1, "x = 'a'": 1})],
            "x",
        ),
        Case(
            "parquet-name-not-utf8",
            partial(_patched, pa.table({"id": [1, 2], "zqzq": ["a", "b"], "x": [1, 2]}), b"zqzq", b"z\xff\xfeq"),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            [split({"x = 1": 1, "x = 2": 1})],
            "t",
        ),
    ]
    rows = b"".join(b"%d,b\n" % number for number in range(1, 40_000))
    one = [split({"x = 'b'": 39_999, "x IS NULL": 1})]
    for name, head, row in (
        ("first", b"id,x\n", b"0,\xff\n"),
        ("quoted", b"id,x\n", b'0,"a\xc3"\n'),
    ):
        found.append(
            Case(f"csv-bad-text-{name}-row", partial(raw, head + row + rows), {"t": private({"x": TEXT})}, Outcome.EITHER, one, "t")
        )
    found += [
        Case(
            "csv-bad-text-late-row",
            partial(raw, b"id,x\n" + rows + b"0,\xff\n"),
            {"t": private({"x": TEXT})},
            Outcome.EITHER,
            one,
            "t",
        ),
        Case(
            "csv-bad-text-undeclared",
            partial(raw, b"id,x,y\n1,a,\xff\n2,b,c\n"),
            {"t": private({"x": TEXT})},
            Outcome.EITHER,
            [split({"x = 'a'": 1, "x = 'b'": 1})],
            "t",
        ),
        Case(
            "csv-bad-text-in-number",
            partial(raw, b"id,x\n1,7\n2,\xff\n3,8\n"),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            [split({"x = 7": 1, "x = 8": 1, "x IS NULL": 1})],
            "t",
        ),
        Case("csv-bad-name", partial(raw, b"id,x\xff\n1,7\n"), {"t": private({"x": INT})}, Outcome.ERROR, (), "t"),
        Case(
            "csv-utf16", partial(raw, "id,x\n1,a\n2,b\n".encode("utf-16")), {"t": private({"x": TEXT})}, Outcome.ERROR, (), "t"
        ),
        Case(
            "csv-latin1", partial(raw, "id,x\n1,é\n2,b\n".encode("latin-1")), {"t": private({"x": TEXT})}, Outcome.EITHER,
            [split({"x IS NULL": 1, "x = 'b'": 1})], "t",
        ),
    ]  # fmt: skip
    return found


def _patched(table: pa.Table, old: bytes, new: bytes, folder: Path) -> str:
    """A Parquet file with bytes of the same length put in place of others."""
    source = Path(parquet(table, folder, store_schema=False))
    content = source.read_bytes()
    assert old in content
    source.write_bytes(content.replace(old, new))
    return str(source)


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
        "zero-rows-text": second([], pa.string()).slice(0, 0) if False else pa.table({"id": pa.array([], pa.int64()), "x": pa.array([], pa.string())}),
        "upper-case-name": pa.table({"ID": [3, 4], "X": [3, 4]}),
    }  # fmt: skip
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
            "t", always=not flipped or name in ("text", "missing"),
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
                always=not flipped,
            )
            for flipped in (False, True)
        ]

    def with_file(name: str, content: bytes, folder: Path) -> str:
        parquets({"t/b.parquet": first}, folder)
        raw(content, folder / "data", name)
        return str(folder / "data")

    two = [counted(2)]
    found += [
        Case("folder-empty-file", partial(with_file, "t/c.parquet", b""), {"t": private({"x": INT})}, Outcome.ERROR, (), "t"),
        Case("folder-not-parquet", partial(with_file, "t/c.parquet", b"PAR1" * 9), {"t": private({"x": INT})}, Outcome.ERROR, (), "t"),
        Case("folder-other-file", partial(with_file, "t/_SUCCESS", b""), {"t": private({"x": INT})}, Outcome.EITHER, two, "t"),
        Case("folder-csv-beside", partial(with_file, "t/c.csv", b"id,x\n7,7\n"), {"t": private({"x": INT})}, Outcome.EITHER, [], "t"),
        Case("folder-same-table-twice", partial(with_file, "t.csv", b"id,x\n7,7\n"), {"t": private({"x": INT})}, Outcome.EITHER, [], "t"),
        Case("folder-empty", lambda folder: str(folder), {"t": private({"x": INT})}, Outcome.ERROR, (), "t"),
        Case(
            "folder-hive",
            partial(parquets, {"t/x=1/a.parquet": first.select(["id"]), "t/x=b/a.parquet": pa.table({"id": [3, 4]})}),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            [],
            "t",
        ),
    ]  # fmt: skip
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


def views_and_tables_of_duckdb() -> list[Case]:
    """Views that fail on a row, collations, generated columns."""
    base = "CREATE TABLE base AS SELECT i AS id, CASE WHEN i = 9000 THEN 'bad' ELSE (i % 7)::VARCHAR END AS s FROM range(9001) r(i)"
    views = {
        "cast": ("SELECT id, CAST(s AS BIGINT) AS x FROM base", Outcome.ERROR, ()),
        "cast-in-where": ("SELECT id, id AS x FROM base WHERE CAST(s AS BIGINT) < 3", Outcome.ERROR, ()),
        "cast-undeclared": ("SELECT id, id AS x, CAST(s AS BIGINT) AS y FROM base", Outcome.EITHER, [counted(9001)]),
        "error": ("SELECT id, CASE WHEN id = 9000 THEN error('row') ELSE 1 END::BIGINT AS x FROM base", Outcome.ERROR, ()),
        "overflow": ("SELECT id, (id + 9223372036854775000)::BIGINT AS x FROM base", Outcome.ERROR, ()),
        "log": ("SELECT id, ln(id - 3)::BIGINT AS x FROM base", Outcome.ERROR, ()),
        "division": ("SELECT id, (10 // (id % 2)) AS x FROM base WHERE id < 4", Outcome.EITHER,
                     [split({"x = 10": 2, "x IS NULL": 2})]),
        "valid": ("SELECT id, TRY_CAST(s AS BIGINT) AS x FROM base", Outcome.READ,
                  [split({"x IS NULL": 1, "x = 0": 1286, "x > 6": 0}, rest=7714)]),
        "random": ("SELECT id, (random() * 3)::BIGINT AS x FROM base", Outcome.EITHER, [counted(9001)]),
        "star": ("SELECT *, 1::BIGINT AS x FROM base", Outcome.READ, [split({"x = 1": 9001})]),
    }  # fmt: skip
    found = [
        Case(f"view-{name}", partial(database, [base, f"CREATE VIEW t AS {text}"]), {"t": private({"x": INT})}, outcome, facts, "t")
        for name, (text, outcome, facts) in views.items()
    ]
    gone = ["CREATE TABLE gone AS SELECT 1 AS id, 2::BIGINT AS x", "CREATE VIEW t AS SELECT * FROM gone", "DROP TABLE gone"]
    altered = ["CREATE TABLE base AS SELECT 1 AS id, 2::BIGINT AS x", "CREATE VIEW t AS SELECT * FROM base",
               "ALTER TABLE base ADD COLUMN y INTEGER"]  # fmt: skip
    found += [
        Case("view-of-dropped-table", partial(database, gone), {"t": private({"x": INT})}, Outcome.ERROR, (), "t"),
        Case("view-of-altered-table", partial(database, altered), {"t": private({"x": INT})}, Outcome.EITHER,
             [split({"x = 2": 1})], "t"),
        Case("view-of-a-file", _view_of_a_file, {"t": private({"x": INT})}, Outcome.EITHER, [split({"x = 2": 1})], "t"),
        Case("view-of-a-file-gone", partial(_view_of_a_file, gone=True), {"t": private({"x": INT})}, Outcome.ERROR, (), "t"),
    ]  # fmt: skip
    for collation in ("NOCASE", "NOACCENT", "NOCASE.NOACCENT"):
        make = [
            f"CREATE TABLE t (id VARCHAR COLLATE {collation}, x VARCHAR COLLATE {collation}, y BIGINT)",
            "INSERT INTO t VALUES ('ann', 'flu', 1), ('ANN', 'FLU', 2), ('änn', 'flü', 3)",
            f"CREATE TABLE p (x VARCHAR COLLATE {collation}, z BIGINT)",
            "INSERT INTO p VALUES ('flu', 1), ('FLU', 2), ('flü', 3)",
        ]
        apart = [split({"x = 'flu'": 1, "x = 'FLU'": 1, "x = 'flü'": 1})]
        write = partial(database, make)
        always = collation == "NOCASE"
        label = collation.lower()
        found += [
            Case(f"collation-{label}-key", write, {"t": private({"x": TEXT}, "y")}, Outcome.EITHER, apart, "x", always=always),
            Case(f"collation-{label}-unit", write, {"t": private({"y": INT})}, Outcome.EITHER, [counted(3)], "id"),
            Case(f"collation-{label}-undeclared", write, {"t": private({"y": INT}, "y")}, Outcome.READ, [counted(3)], always=always),
            Case(
                f"collation-{label}-unique-public",
                partial(database, [*make, "CREATE TABLE u AS SELECT y, x::VARCHAR AS x FROM t"]),
                {"u": private({"x": TEXT}, "y"), "p": {"public": True, "columns": {"x": TEXT | {"unique": True}, "z": INT}}},
                Outcome.EITHER,
                [Fact("SELECT COUNT(*) AS n FROM u JOIN p USING (x) WHERE z = 1", {None: 1})],
                "x", always=always,
            ),
        ]  # fmt: skip
    generated = {
        "virtual": ("x BIGINT GENERATED ALWAYS AS (y * 2) VIRTUAL", "INSERT INTO t (id, y) VALUES (1, 1), (2, 2)", Outcome.EITHER,
                    [split({"x = 2": 1, "x = 4": 1})]),
        "failing": ("x BIGINT GENERATED ALWAYS AS (CAST(s AS BIGINT)) VIRTUAL", "INSERT INTO t (id, s) VALUES (1, '1')",
                    Outcome.EITHER, [split({"x = 1": 1})]),
        "failing-later": ("x BIGINT GENERATED ALWAYS AS (y + getvariable('v')::BIGINT) VIRTUAL",
                          "SET VARIABLE v = 1; INSERT INTO t (id, y) VALUES (1, 1), (2, 2)", Outcome.EITHER, [counted(2)]),
    }  # fmt: skip
    for name, (column, insert, outcome, facts) in generated.items():
        make = [f"CREATE TABLE t (id INTEGER, y BIGINT, s VARCHAR, {column})", insert]
        found.append(Case(f"generated-{name}", partial(database, make), {"t": private({"x": INT})}, outcome, facts, "t"))
    return found


def _view_of_a_file(folder: Path, gone: bool = False) -> str:
    """A DuckDB view over a Parquet file beside it, which may be gone by now."""
    beside = parquet(pa.table({"id": [1], "x": [2]}), folder, "beside.parquet")
    made = database([f"CREATE VIEW t AS SELECT * FROM '{beside}'"], folder)
    if gone:
        Path(beside).unlink()
    return made


NUMBERS = [float("nan"), -0.0, 0.0, float("inf"), float("-inf"), 5e-324, 2.2e-308, 2.0**53 + 2, 1e308, -1e308, 0.5, None]
INTEGERS = [2**53 + 1, 2**53, 2**63 - 1, -(2**63), -(2**63) + 1, 0, -1, 7, None]


def numbers() -> list[Case]:
    """NaN, signed zeros, infinities, denormals and the ends of 64 bits."""
    floats = pa.table({"id": range(len(NUMBERS)), "x": NUMBERS, "b": NUMBERS})
    integers = pa.table({"id": range(len(INTEGERS)), "x": INTEGERS, "b": INTEGERS})
    as_float = {"t": private({"x": FLOAT, "b": BOUNDED["float"]})}
    as_int = {"t": private({"x": INT, "b": BOUNDED["int"]})}
    read_floats = [
        split({"x IS NULL": 2, "x = 0": 2, "x > 1e100": 2, "x < -1e100": 2, "x > 0 AND x < 1e-100": 2, "x = 0.5": 1,
               "x = 9007199254740994": 1}),
        split({"b IS NULL": 2, "b >= 0 AND b < 0.25": 6, "b = 9": 3, "b = 0.5": 1}),  # on the grid of the sums or before it
        counted(10, "b"),
    ]  # fmt: skip
    read_integers = [
        split({"x = 9007199254740993": 1, "x = 9007199254740992": 1, "x = 9223372036854775807": 1, "x < -9223372036854775807": 1,
               "x = -9223372036854775807": 1, "x IS NULL": 1, "x = 7": 1}, rest=2),
        split({"b IS NULL": 1, "b = 0": 4, "b = 7": 1, "b = 9": 3}),
        counted(8, "x"),
    ]  # fmt: skip
    wide = [
        split({"x = 9007199254740992": 2, "x > 9e18": 1, "x < -9e18": 2, "x = 7": 1, "x IS NULL": 1, "x = 0": 1, "x = -1": 1}),
        split({"b IS NULL": 1, "b = 0": 4, "b = 7": 1, "b = 9": 3}),
    ]  # fmt: skip
    kept = ["NaN", "-0.0", "0", "inf", "-inf", "5e-324", "2.2e-308", "9007199254740994", "1e308", "-1e308", "0.5", ""]
    cells = "".join(f"{number},{cell},{cell}\n" for number, cell in enumerate(kept))
    csv_integers = [9007199254740993, 9007199254740992, 2**63 - 1, -(2**63), -(2**63) + 1, 0, -1, 7, "", 2**63, 10**40, "x", "1.5x"]
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
        Case("floats-arrow", partial(frame, lambda: floats), as_float, Outcome.READ, read_floats, always=False),
        Case("floats-polars", partial(frame, lambda: pl.from_arrow(floats)), as_float, Outcome.READ, read_floats, always=False),
        Case("floats-pandas", partial(frame, lambda: floats.to_pandas()), as_float, Outcome.READ, read_floats),
        Case("floats-never-missing", partial(parquet, floats), not_null, Outcome.READ, missing),
        Case("floats-as-unit", partial(parquet, floats), {"t": private({"b": FLOAT}, "x")}, Outcome.ERROR, (), "x"),
        Case("integers-parquet", partial(parquet, integers), as_int, Outcome.READ, read_integers),
        Case("integers-duckdb", partial(in_duckdb, integers), as_int, Outcome.READ, read_integers, always=False),
        Case("integers-csv", partial(raw, b"id,x,b\n" + integer_cells.encode()), as_int, Outcome.READ, nulls),
        Case("integers-arrow", partial(frame, lambda: integers), as_int, Outcome.READ, read_integers, always=False),
        Case("integers-as-float", partial(parquet, integers), as_float, Outcome.EITHER, wide, "x"),
        Case(
            "integers-as-unit",
            partial(parquet, integers),
            {"t": private({"b": BOUNDED["int"]}, "x")},
            Outcome.READ,
            [counted(8), counted(8, "DISTINCT x")],
        ),
    ]


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
        everyday = label in ("quote", "newline", "reserved", "hash", "rowid", "spaces", "emoji", "file-name", "null")
        found += [
            Case(f"name-{label}-parquet", partial(parquet, table), policy, Outcome.EITHER, [fact], always=everyday),
            Case(f"name-{label}-arrow", partial(frame, lambda table=table: table), policy, Outcome.EITHER, [fact], always=False),
            Case(
                f"name-{label}-duckdb",
                partial(database, [f"CREATE TABLE t (id INTEGER, {q} BIGINT)", "INSERT INTO t VALUES (0, 0), (1, 1), (2, 2)"]),
                policy,
                Outcome.EITHER,
                [fact], always=label in ("two-quotes", "semicolon", "long"),
            ),
            Case(
                f"name-{label}-csv",
                partial(raw, f"id,{q}\n0,0\n1,1\n2,2\n".encode()),
                policy,
                Outcome.EITHER,
                [fact], always=label in ("quote", "newline", "hash"),
            ),
            Case(
                f"name-{label}-unit",
                partial(parquet, table),
                {"t": private({"id": INT}, name)},
                Outcome.EITHER,
                [counted(3)], always=label in ("hash", "rowid"),
            ),
            Case(
                f"name-{label}-table",
                partial(database, [f"CREATE TABLE {q} AS SELECT i AS id, i AS x FROM range(3) r(i)"]),
                {name: private({"x": INT})},
                Outcome.EITHER,
                [counted(3, table=q)], always=label in ("quote", "reserved"),
            ),
        ]  # fmt: skip
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
        Case("names-twice-pandas", partial(frame, lambda: pd.DataFrame([[0, 0, 5]], columns=["id", "x", "x"])), x,
             Outcome.EITHER, [split({"x = 0": 1})], "x"),
        Case("names-cased-pandas", partial(frame, lambda: pd.DataFrame([[0, 0, 5]], columns=["id", "x", "X"])), x,
             Outcome.EITHER, [split({"x = 0": 1})], "x"),
        Case("names-twice-csv", partial(raw, b"id,x,x\n0,0,5\n1,1,5\n2,2,5\n"), x, Outcome.EITHER, exact, "x"),
        Case("names-cased-csv", partial(raw, b"id,x,X\n0,0,5\n1,1,5\n2,2,5\n"), x, Outcome.EITHER, exact, "x"),
        Case("names-empty-parquet", partial(parquet, empty), {"t": private({"id": INT}, "id")}, Outcome.READ, [counted(3)]),
        Case("names-empty-declared", partial(parquet, empty), {"t": private({"": INT})}, Outcome.ERROR, (), "t"),
        Case("names-empty-csv", partial(raw, b"id,,x\n0,5,0\n1,5,1\n2,5,2\n"), x, Outcome.READ, exact),
        Case("names-numbers-pandas", partial(frame, lambda: pd.DataFrame({0: [1, 2], 1: [1, 2]})), {"t": private({"1": INT}, "0")},
             Outcome.EITHER, [counted(2)], "t"),
        Case("names-index-pandas", partial(frame, lambda: pd.DataFrame({"x": values}, index=pd.Index(values, name="id"))), x,
             Outcome.EITHER, exact, "id"),
        Case("names-levels-pandas", partial(frame, lambda: pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("id", ""), ("x", "")]))),
             x, Outcome.EITHER, [counted(1)], "t"),
        Case("names-other-case", partial(parquet, pa.table({"ID": values, "X": values})), x, Outcome.EITHER, exact, "t"),
    ]  # fmt: skip
    return found


def _cut(make: Callable[[Path], str], keep: float, folder: Path) -> str:
    """A file cut to a part of its bytes."""
    source = Path(make(folder))
    content = source.read_bytes()
    source.write_bytes(content[: int(len(content) * keep)])
    return str(source)


def _flipped(make: Callable[[Path], str], where: float, folder: Path) -> str:
    """A file with 64 bytes inverted."""
    source = Path(make(folder))
    content = bytearray(source.read_bytes())
    start = int(len(content) * where)
    content[start : start + 64] = bytes(255 - byte for byte in content[start : start + 64])
    source.write_bytes(content)
    return str(source)


def broken_files() -> list[Case]:
    """Truncated and damaged files, and CSV that is not as it should be."""
    x = {"t": private({"x": INT})}
    rows = 50_000
    table = pa.table({"id": range(rows), "x": np.arange(rows) % 10, "y": [f"text {n}" for n in range(rows)]})
    one = partial(parquet, table, row_group_size=10_000)
    stored = partial(
        database, [f"CREATE TABLE t AS SELECT i AS id, i % 10 AS x, 'text ' || i AS y FROM range({rows}) r(i)", "CHECKPOINT"]
    )
    parts = (("start", 0.001), ("half", 0.5), ("end", 0.9999))
    found = [Case(f"parquet-truncated-{where}", partial(_cut, one, keep), x, Outcome.ERROR, (), "t.parquet") for where, keep in parts]
    found += [
        Case(f"duckdb-truncated-{where}", partial(_cut, stored, keep), x, Outcome.EITHER, [counted(rows)], always=where != "start")
        for where, keep in parts
    ]
    found += [
        Case(f"{kind}-damaged-{int(where * 100)}", partial(_flipped, make, where), x, Outcome.EITHER, [], always=where in (0.02, 0.5))
        for kind, make in (("parquet", one), ("duckdb", stored))
        for where in (0.02, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
    ]  # fmt: skip
    for name in ("t.parquet", "t.csv", "t.duckdb", "t.db"):
        found.append(Case(f"empty-file-{name[2:]}", partial(raw, b"", name=name), x, Outcome.ERROR, (), "t"))
        found.append(
            Case(f"zeros-{name[2:]}", partial(raw, bytes(5000), name=name), x, Outcome.ERROR, (), "t", always=name != "t.db")
        )
    found += [
        Case("no-such-file", lambda folder: str(folder / "gone.parquet"), x, Outcome.ERROR, (), "gone.parquet"),
        Case("source-is-a-device", lambda folder: "/dev/null", x, Outcome.ERROR, (), "null"),
        Case("parquet-named-csv", partial(parquet, table, name="t.csv"), x, Outcome.ERROR, (), "t"),
        Case("csv-named-parquet", partial(raw, b"id,x\n1,1\n", name="t.parquet"), x, Outcome.ERROR, (), "t.parquet"),
        Case("duckdb-without-the-table", partial(database, ["CREATE TABLE u (id INTEGER)"]), x, Outcome.ERROR, (), "t"),
        Case("duckdb-in-a-schema", partial(database, ["CREATE SCHEMA s", "CREATE TABLE s.t AS SELECT 1 AS id, 1 AS x"]), x,
             Outcome.EITHER, [counted(1)], "t"),
    ]  # fmt: skip
    texts = {"t": private({"x": INT, "y": TEXT})}
    lines = b"".join(b"%d,%d,a\n" % (n, n % 10) for n in range(3, 30_000))
    exact = [split({"x = 1 AND y = 'a'": 1, "x = 2 AND y = 'a'": 1})]
    csv: dict[str, tuple[bytes, Outcome, Sequence[Fact]]] = {
        "short-row": (b"id,x,y\n1,1,a\n2\n" + lines, Outcome.EITHER, [counted(29_999), counted(29_998, "x")]),
        "long-row": (b"id,x,y\n1,1,a\n2,2,a,b\n" + lines, Outcome.EITHER, []),
        "late-short-row": (b"id,x,y\n1,1,a\n" + lines + b"2\n", Outcome.EITHER, [counted(29_999), counted(29_998, "x")]),
        "late-long-row": (b"id,x,y\n1,1,a\n" + lines + b"2,2,a,b,c\n", Outcome.EITHER, []),
        "unclosed-quote": (b'id,x,y\n1,1,a\n2,2,"a\n', Outcome.EITHER, []),
        "late-unclosed-quote": (b"id,x,y\n1,1,a\n" + lines + b'2,2,"a\n3,3,a\n', Outcome.EITHER, []),
        "quote-inside": (b'id,x,y\n1,1,a\n2,2,b"c\n', Outcome.EITHER, [counted(2)]),
        "quoted-newline": (b'id,x,y\n1,1,a\n2,2,"b\nc"\n', Outcome.READ, [split({"y = 'b\nc'": 1, "y = 'a'": 1})]),
        "nul-in-text": (b"id,x,y\n1,1,a\n2,2,b\x00c\n", Outcome.EITHER, [split({"y = 'a'": 1}, rest=1)]),
        "nul-in-number": (b"id,x,y\n1,1,a\n2,\x002,a\n", Outcome.EITHER, [split({"x = 1": 1, "x IS NULL": 1})]),
        "bom": (b"\xef\xbb\xbfid,x,y\n1,1,a\n2,2,a\n", Outcome.READ, exact),
        "crlf": (b"id,x,y\r\n1,1,a\r\n2,2,a\r\n", Outcome.READ, exact),
        "cr": (b"id,x,y\r1,1,a\r2,2,a\r", Outcome.EITHER, exact),
        "mixed-ends": (b"id,x,y\r\n1,1,a\n2,2,a\r\n", Outcome.EITHER, exact),
        "no-last-newline": (b"id,x,y\n1,1,a\n2,2,a", Outcome.READ, exact),
        "blank-lines": (b"id,x,y\n1,1,a\n\n2,2,a\n\n", Outcome.EITHER, exact),
        "only-a-header": (b"id,x,y\n", Outcome.READ, [counted(0)]),
        "header-without-newline": (b"id,x,y", Outcome.READ, [counted(0)]),
        "header-twice": (b"id,x,y\n1,1,a\nid,x,y\n2,2,a\n", Outcome.EITHER, [split({"x = 1": 1, "x = 2": 1, "x IS NULL AND y = 'y'": 1})]),
        "no-header": (b"1,1,a\n2,2,a\n", Outcome.ERROR, ()),
        "semicolons": (b"id;x;y\n1;1;a\n2;2;a\n", Outcome.EITHER, exact),
        "tabs": (b"id\tx\ty\n1\t1\ta\n2\t2\ta\n", Outcome.EITHER, exact),
        "comma-decimals": (b'id,x,y\n1,1,a\n2,"2,5",a\n', Outcome.READ, [split({"x = 1": 1, "x IS NULL": 1})]),
        "number-as-text": (b"id,x,y\n1,1,007\n2,2,1e3\n3,3,true\n4,4,2025-01-01\n", Outcome.READ,
                           [split({"y = '007'": 1, "y = '1e3'": 1, "y = 'true'": 1, "y = '2025-01-01'": 1})]),
        "empty-and-null": (b'id,x,y\n1,,\n2,2,""\n3,NULL,NULL\n', Outcome.READ, [split({"x IS NULL": 2, "x = 2": 1})]),
        "late-bad-number": (b"id,x,y\n1,1,a\n" + lines + b"2,bad,a\n", Outcome.READ, [split({"x IS NULL": 1}, rest=29_998)]),
        "comments": (b"# note\nid,x,y\n1,1,a\n2,2,a\n", Outcome.EITHER, exact),
    }  # fmt: skip
    quiet = {"late-short-row", "long-row", "mixed-ends", "tabs", "cr", "no-last-newline", "blank-lines", "quote-inside"}
    found += [
        Case(f"csv-{name}", partial(raw, content), texts, outcome, facts, "t", always=name not in quiet)
        for name, (content, outcome, facts) in csv.items()
    ]
    found += [
        Case(
            "csv-units-as-text",
            partial(raw, b"id,x,y\n7,1,a\n07,2,a\n7.0,3,a\n 7,4,a\n,5,a\n"),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            [],
            "id",
        ),
        Case(
            "csv-dates-and-bools",
            partial(raw, b"id,d,b\n1,2025-01-02,true\n2,2025-02-30,false\n3,0000-00-00,maybe\n4,99999-01-01,\n5,x,x\n"),
            {"t": private({"d": DATE, "b": BOOL})},
            Outcome.READ,
            [split({"d = DATE '2025-01-02'": 1, "d IS NULL": 4}), split({"b": 1, "NOT b": 1, "b IS NULL": 3})],
        ),
        Case(
            "csv-one-column",
            partial(raw, b"x\n1\n2\n\n"),
            {"t": private({"x": INT}, "row")},
            Outcome.EITHER,
            [split({"x = 1": 1, "x = 2": 1}, rest=None)],
            "t",
        ),
    ]
    return found


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
        Case("zero-rows-duckdb", partial(database, [f"CREATE TABLE t (id BIGINT, {made})"]), policy, Outcome.READ, nothing),
        Case("zero-rows-csv", partial(raw, header), policy, Outcome.READ, nothing),
        Case("zero-rows-arrow", partial(frame, lambda: empty), policy, Outcome.READ, nothing),
        Case("zero-rows-polars", partial(frame, lambda: pl.from_arrow(empty)), policy, Outcome.READ, nothing, always=False),
        Case("zero-rows-pandas", partial(frame, lambda: empty.to_pandas()), policy, Outcome.EITHER, nothing, "t"),
        Case("zero-rows-no-groups", partial(parquets, {"t/a.parquet": empty, "t/b.parquet": empty}), policy, Outcome.READ, nothing),
        Case("zero-columns", partial(parquet, pa.table({})), policy, Outcome.ERROR, (), "t"),
    ]  # fmt: skip


def changed_while_open() -> list[Case]:
    """Files that are replaced, truncated, grown or deleted while the curator is open."""
    x = {"t": private({"x": INT, "y": TEXT})}
    rows = 20_000
    table = pa.table({"id": range(rows), "x": np.arange(rows) % 10, "y": ["a"] * rows})
    other = pa.table({"id": ["a"], "y": [1.5]})
    make: dict[str, Write] = {
        "parquet": partial(parquet, table, row_group_size=1000),
        "csv": partial(raw, b"id,x,y\n" + b"".join(b"%d,%d,a\n" % (n, n % 10) for n in range(rows))),
        "duckdb": partial(database, [f"CREATE TABLE t AS SELECT i AS id, i % 10 AS x, 'a' AS y FROM range({rows}) r(i)"], name="t.duckdb"),
        "folder": partial(parquets, {"t/a.parquet": table}),
        "view": partial(_view_of, table),
    }  # fmt: skip

    def target(folder: Path) -> Path:
        return max((path for path in folder.rglob("*") if path.suffix in (".parquet", ".csv")), default=folder / "t.duckdb")

    def replace(folder: Path) -> None:
        pq.write_table(other, folder / "new")
        os.replace(folder / "new", target(folder))

    def truncate(folder: Path) -> None:
        os.truncate(target(folder), target(folder).stat().st_size // 2)

    def overwrite(folder: Path) -> None:
        with target(folder).open("r+b") as file:
            file.seek(target(folder).stat().st_size // 3)
            file.write(bytes(4000))

    def delete(folder: Path) -> None:
        target(folder).unlink()

    spoils = {"replaced": replace, "truncated": truncate, "overwritten": overwrite, "deleted": delete}
    facts = [counted(rows), split({"x = 3 AND y = 'a'": rows // 10}, rest=rows - rows // 10)]
    return [
        Case(f"{kind}-{word}-while-open", write, x, Outcome.READ, facts, spoil=spoil, always=kind != "folder" or word == "deleted")
        for kind, write in make.items()
        for word, spoil in spoils.items()
    ]  # fmt: skip


def _view_of(table: pa.Table, folder: Path) -> str:
    """A DuckDB view over a Parquet file."""
    return database([f"CREATE VIEW t AS SELECT * FROM '{parquet(table, folder, 'beside.parquet')}'"], folder)


TEXTS = ["", " ", "\x00", "a\x00b", "a\x00c", "\u0301", "e\u0301", "é", "\ufeff", "\u200d", "\uffff", "😀", "\U0010ffff", "%", "_", "\\", "'", '"',
         "ß", "İ", "\n", "\r\n", "NULL", "\x1f", "\x7f", None]  # fmt: skip


def texts() -> list[Case]:
    """Texts with NUL, lone combining characters, of 1 MB, and other odd ones: each is itself, and only itself."""
    values = [*TEXTS, "x" * 2**20, "y" * 2**20 + "\x00", "\u0301" * 2**18]
    count = len(values)
    table = pa.table({"id": range(count), "x": values, "k": ["a"] * count})
    facts = [
        counted(count),
        counted(count - 1, "x"),
        split({"x IS NULL": 1, "x = ''": 1, "x = 'é'": 1, "x = 'e\u0301'": 1, "LENGTH(x) = 1048576": 1, "x LIKE 'a%'": 2,
               "x = '%'": 1, "x = '\\'": 1, "x = 'NULL'": 1, "x = '\ufeff'": 1}, rest=count - 11),
        split({"LENGTH(x) = 0": 1, "LENGTH(x) = 3": 2, "LENGTH(x) > 1000": 3}, rest=count - 6),
    ]  # fmt: skip
    policy = {"t": private({"x": TEXT, "k": TEXT})}
    frames = {"arrow": lambda: table, "pandas": lambda: table.to_pandas(), "polars": lambda: pl.from_arrow(table)}

    def in_duckdb(folder: Path) -> str:
        return database([f"CREATE TABLE t AS SELECT * FROM '{parquet(table, folder, 'made.parquet')}'"], folder)

    units = [counted(count - 1), counted(count - 1, "DISTINCT x")]
    return [
        Case("texts-parquet", partial(parquet, table), policy, Outcome.READ, facts),
        Case("texts-parquet-plain", partial(parquet, table, use_dictionary=False, row_group_size=5), policy, Outcome.READ, facts, always=False),
        Case("texts-duckdb", in_duckdb, policy, Outcome.READ, facts),
        *(
            Case(f"texts-{kind}", partial(frame, make), policy, Outcome.READ, facts, always=kind == "arrow")
            for kind, make in frames.items()
        ),
        Case("texts-as-unit-parquet", partial(parquet, table), {"t": private({"k": TEXT}, "x")}, Outcome.READ, units),
        Case("texts-as-unit-duckdb", in_duckdb, {"t": private({"k": TEXT}, "x")}, Outcome.READ, units, always=False),
    ]  # fmt: skip


def dates() -> list[Case]:
    """Dates outside the years 1 to 9999 are NULL."""
    days = [0, 2932896, 2932897, -719162, -719163, 20089, 2**31 - 1, -(2**31), 2**31 - 2, None]
    table = pa.table({"id": range(len(days)), "x": pa.array(days, pa.int32()).cast(pa.date32()), "b": pa.array(days, pa.int32()).cast(pa.date32())})
    read = [
        split({"x = DATE '1970-01-01'": 1, "x = DATE '9999-12-31'": 1, "x = DATE '0001-01-01'": 1, "x = DATE '2025-01-01'": 1,
               "x IS NULL": 6}),
        split({"b IS NULL": 6, "b = DATE '2025-01-01'": 3, "b = DATE '2025-01-09'": 1}),
        counted(4, "x"),
    ]  # fmt: skip
    policy = {"t": private({"x": DATE, "b": BOUNDED["date"]})}

    def in_duckdb(folder: Path) -> str:
        return database([f"CREATE TABLE t AS SELECT * FROM '{parquet(table, folder, 'made.parquet')}'"], folder)

    literals = ["'infinity'", "'-infinity'", "'0001-01-01 (BC)'", "'10000-01-01'", "'9999-12-31'", "'0001-01-01'", "NULL"]
    made = [f"SELECT {n} AS id, {cell}::DATE AS x, {cell}::DATE AS b" for n, cell in enumerate(literals)]
    beyond = [split({"x IS NULL": 5, "x = DATE '9999-12-31'": 1, "x = DATE '0001-01-01'": 1}), split({"b IS NULL": 5}, rest=2)]
    return [
        Case("dates-parquet", partial(parquet, table), policy, Outcome.READ, read),
        Case("dates-duckdb", in_duckdb, policy, Outcome.READ, read, always=False),
        Case("dates-arrow", partial(frame, lambda: table), policy, Outcome.READ, read),
        Case("dates-polars", partial(frame, lambda: pl.from_arrow(table)), policy, Outcome.READ, read, always=False),
        Case("dates-infinite", partial(database, ["CREATE TABLE t AS " + " UNION ALL ".join(made)]), policy, Outcome.READ, beyond),
        Case("dates-as-unit", partial(parquet, table), {"t": private({"b": BOUNDED["date"]}, "x")}, Outcome.EITHER,
             [counted(9), counted(9, "DISTINCT x")], "x"),
    ]  # fmt: skip


def frames() -> list[Case]:
    """Data frames: object columns of mixed types, categoricals, nullable numbers, chunks, slices, dictionaries, null types."""
    three = [0, 1, 2]
    bad = texts_of([b"a", b"\xff", None])
    long = pa.table({"id": range(10), "x": range(10), "s": [str(n) for n in range(10)]})
    chunks = pa.table({"id": pa.chunked_array([[0], [], [1, 2]], pa.int64()), "x": pa.chunked_array([[], [1, 7], [7]], pa.int64())})
    index = pa.array([0, 1, None, 0], pa.int8())
    made: dict[str, tuple[Callable[[], Any], Mapping[str, Any], Outcome, Sequence[Fact]]] = {
        "objects-mixed-text": (lambda: pd.DataFrame({"id": three, "x": pd.Series(["a", 1, None], dtype=object)}), {"x": TEXT},
                               Outcome.EITHER, [split({"x = 'a'": 1, "x IS NULL": 2})]),
        "objects-mixed-int": (lambda: pd.DataFrame({"id": three, "x": pd.Series([1, "a", 2.5], dtype=object)}), {"x": INT},
                              Outcome.EITHER, [split({"x = 1": 1, "x IS NULL": 2})]),
        "objects-bytes": (lambda: pd.DataFrame({"id": three, "x": pd.Series([b"a", b"\xff", None], dtype=object)}), {"x": TEXT},
                          Outcome.ERROR, ()),
        "objects-huge-ints": (lambda: pd.DataFrame({"id": three, "x": pd.Series([1, 2**70, None], dtype=object)}), {"x": INT},
                              Outcome.EITHER, [split({"x = 1": 1, "x IS NULL": 2})]),
        "objects-decimals": (lambda: pd.DataFrame({"id": three, "x": pd.Series([Decimal("1.5"), Decimal("NaN"), None], dtype=object)}),
                             {"x": FLOAT}, Outcome.EITHER, [split({"x = 1.5": 1, "x IS NULL": 2})]),
        "objects-dates": (lambda: pd.DataFrame({"id": three, "x": pd.Series([datetime.date(2025, 1, 1), datetime.date(9999, 12, 31), None],
                          dtype=object)}), {"x": DATE}, Outcome.READ,
                          [split({"x = DATE '2025-01-01'": 1, "x = DATE '9999-12-31'": 1, "x IS NULL": 1})]),
        "objects-lists": (lambda: pd.DataFrame({"id": three, "x": pd.Series([[1], {"a": 1}, None], dtype=object)}), {"x": TEXT},
                          Outcome.ERROR, ()),
        "objects-surrogates": (lambda: pd.DataFrame({"id": three, "x": pd.Series(["a", "\ud800", None], dtype=object)}), {"x": TEXT},
                               Outcome.EITHER, [split({"x = 'a'": 1, "x IS NULL": 2})]),
        "objects-themselves": (lambda: pd.DataFrame({"id": three, "x": pd.Series([object()] * 3, dtype=object)}), {"x": TEXT},
                               Outcome.ERROR, ()),
        "objects-undeclared": (lambda: pd.DataFrame({"id": three, "x": three, "o": pd.Series([object(), 1, "a"], dtype=object)}),
                               {"x": INT}, Outcome.EITHER, [split({"x = 0": 1, "x = 1": 1, "x = 2": 1})]),
        "categorical-text": (lambda: pd.DataFrame({"id": three, "x": pd.Categorical(["a", None, "b"], categories=["b", "a", "c"])}),
                             {"x": TEXT}, Outcome.READ, [split({"x = 'a'": 1, "x = 'b'": 1, "x IS NULL": 1})]),
        "categorical-int": (lambda: pd.DataFrame({"id": three, "x": pd.Categorical([7, None, 8])}), {"x": INT}, Outcome.EITHER,
                            [split({"x = 7": 1, "x = 8": 1, "x IS NULL": 1})]),
        "nullable-int": (lambda: pd.DataFrame({"id": three, "x": pd.array([1, None, 2**63 - 1], dtype="Int64")}), {"x": INT},
                         Outcome.READ, [split({"x = 1": 1, "x IS NULL": 1, "x = 9223372036854775807": 1})]),
        "nullable-uint": (lambda: pd.DataFrame({"id": three, "x": pd.array([1, None, 2**64 - 1], dtype="UInt64")}), {"x": INT},
                          Outcome.EITHER, [split({"x = 1": 1, "x IS NULL": 2})]),
        "nullable-bool": (lambda: pd.DataFrame({"id": three, "x": pd.array([True, None, False], dtype="boolean")}), {"x": BOOL},
                          Outcome.READ, [split({"x": 1, "NOT x": 1, "x IS NULL": 1})]),
        "nullable-float": (lambda: pd.DataFrame({"id": three, "x": pd.array([0.5, None, float("inf")], dtype="Float64")}), {"x": FLOAT},
                           Outcome.READ, [split({"x = 0.5": 1, "x IS NULL": 1, "x > 1e100": 1})]),
        "numpy-float16": (lambda: pd.DataFrame({"id": three, "x": np.array([0.5, np.nan, np.inf], dtype=np.float16)}), {"x": FLOAT},
                          Outcome.EITHER, [split({"x = 0.5": 1, "x IS NULL": 1, "x > 60000": 1})]),
        "numpy-complex": (lambda: pd.DataFrame({"id": three, "x": np.array([1j, 2, 3])}), {"x": FLOAT}, Outcome.ERROR, ()),
        "timestamps-as-date": (lambda: pd.DataFrame({"id": three, "x": pd.to_datetime(["2025-01-01", None, "2025-01-02"])}),
                               {"x": DATE}, Outcome.EITHER,
                               [split({"x = DATE '2025-01-01'": 1, "x = DATE '2025-01-02'": 1, "x IS NULL": 1})]),
        "periods": (lambda: pd.DataFrame({"id": three, "x": pd.period_range("2025-01", periods=3, freq="M")}), {"x": DATE},
                    Outcome.ERROR, ()),
        "sparse": (lambda: pd.DataFrame({"id": three, "x": pd.arrays.SparseArray([0, 0, 7])}), {"x": INT}, Outcome.EITHER,
                   [split({"x = 0": 2, "x = 7": 1})]),
        "unit-with-nan": (lambda: pd.DataFrame({"id": [1, None, 2], "x": three}), {"x": INT}, Outcome.ERROR, ()),
        "arrow-chunked": (lambda: chunks, {"x": INT}, Outcome.READ, [split({"x = 1": 1, "x = 7": 2})]),
        "arrow-sliced": (lambda: long.slice(3, 4), {"x": INT, "s": TEXT}, Outcome.READ,
                         [counted(4), split({"x = 3 AND s = '3'": 1, "x = 6 AND s = '6'": 1}, rest=2)]),
        "arrow-dictionary": (lambda: pa.table({"id": range(4), "x": pa.DictionaryArray.from_arrays(index, ["a", "b"])}), {"x": TEXT},
                             Outcome.READ, [split({"x = 'a'": 2, "x = 'b'": 1, "x IS NULL": 1})]),
        "arrow-dictionary-twice": (lambda: pa.table({"id": range(4), "x": pa.DictionaryArray.from_arrays(index, ["a", "a"])}),
                                   {"x": TEXT}, Outcome.READ, [split({"x = 'a'": 3, "x IS NULL": 1})]),
        "arrow-dictionary-null": (lambda: pa.table({"id": range(4), "x": pa.DictionaryArray.from_arrays(index, ["a", None])}),
                                  {"x": TEXT}, Outcome.READ, [split({"x = 'a'": 2, "x IS NULL": 2})]),
        "arrow-dictionary-beyond": (lambda: pa.table({"id": range(3), "x": pa.DictionaryArray.from_arrays(
                                    pa.array([0, 9, 1]), ["a", "b"], safe=False)}), {"x": TEXT}, Outcome.ERROR, ()),
        "arrow-dictionary-int": (lambda: pa.table({"id": range(4), "x": pa.DictionaryArray.from_arrays(index, pa.array([7, 8]))}),
                                 {"x": INT}, Outcome.EITHER, [split({"x = 7": 2, "x = 8": 1, "x IS NULL": 1})]),
        "arrow-dictionary-bad-text": (lambda: pa.table({"id": range(4), "x": pa.DictionaryArray.from_arrays(
                                      pa.array([0, 1, 2, 0]), bad, safe=False)}), {"x": TEXT}, Outcome.EITHER,
                                      [split({"x = 'a'": 2, "x IS NULL": 2})]),
        "arrow-dictionary-bad-text-unused": (lambda: pa.table({"id": range(2), "x": pa.DictionaryArray.from_arrays(
                                             pa.array([0, 0]), bad, safe=False)}), {"x": TEXT}, Outcome.EITHER,
                                             [split({"x = 'a'": 2})]),
        "arrow-bad-text": (lambda: pa.table({"id": range(3), "x": bad}), {"x": TEXT}, Outcome.EITHER,
                           [split({"x = 'a'": 1, "x IS NULL": 2})]),
        "arrow-bad-text-undeclared": (lambda: pa.table({"id": range(3), "x": three, "y": bad}), {"x": INT}, Outcome.EITHER,
                                      [split({"x = 0": 1, "x = 1": 1, "x = 2": 1})]),
        "arrow-bad-text-view": (lambda: pa.table({"id": range(3), "x": bad.cast(pa.binary()).cast(pa.binary_view()).cast(
                                pa.binary_view())}), {"x": TEXT}, Outcome.ERROR, ()),
        "arrow-null-type": (lambda: pa.table({"id": range(3), "x": pa.nulls(3)}), {"x": INT}, Outcome.EITHER, [split({"x IS NULL": 3})]),
        "arrow-null-type-text": (lambda: pa.table({"id": range(3), "x": pa.nulls(3)}), {"x": TEXT}, Outcome.EITHER,
                                 [split({"x IS NULL": 3})]),
        "arrow-null-unit": (lambda: pa.table({"id": pa.nulls(3), "x": three}), {"x": INT}, Outcome.EITHER, [counted(0)]),
        "arrow-offsets-beyond": (_beyond, {"x": TEXT}, Outcome.ERROR, ()),
        "polars-categorical": (lambda: pl.DataFrame({"id": three, "x": pl.Series(["a", None, "b"], dtype=pl.Categorical)}), {"x": TEXT},
                               Outcome.READ, [split({"x = 'a'": 1, "x = 'b'": 1, "x IS NULL": 1})]),
        "polars-enum": (lambda: pl.DataFrame({"id": three, "x": pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a"]))}), {"x": TEXT},
                        Outcome.READ, [split({"x = 'a'": 1, "x = 'b'": 1, "x IS NULL": 1})]),
        "polars-object": (lambda: pl.DataFrame({"id": three, "x": pl.Series([object()] * 3, dtype=pl.Object)}), {"x": TEXT},
                          Outcome.ERROR, ()),
        "polars-int128": (lambda: pl.DataFrame({"id": three, "x": pl.Series([1, 2**100, None], dtype=pl.Int128)}), {"x": INT},
                          Outcome.EITHER, [split({"x = 1": 1, "x IS NULL": 2})]),
        "polars-lazy": (lambda: pl.LazyFrame({"id": three, "x": three}), {"x": INT}, Outcome.EITHER, [counted(3)]),
        "not-a-frame": (lambda: 7, {"x": INT}, Outcome.ERROR, ()),
        "none": (lambda: None, {"x": INT}, Outcome.ERROR, ()),
        "series": (lambda: pd.Series([1, 2], name="x"), {"x": INT}, Outcome.ERROR, ()),
        "array": (lambda: np.zeros((2, 2)), {"x": INT}, Outcome.ERROR, ()),
    }  # fmt: skip
    return [
        Case(f"frame-{name}", partial(frame, make), {"t": private(columns)}, outcome, facts, "t", apart=name.endswith("-beyond"))
        for name, (make, columns, outcome, facts) in made.items()
    ]


def _beyond() -> pa.Table:
    """Texts whose offsets go backward: reading them as they are would leave the buffer."""
    offsets, data = pa.py_buffer(np.array([0, 1, 0, 2], dtype=np.int32)), pa.py_buffer(b"ab")
    return pa.table({"id": range(3), "x": pa.Array.from_buffers(pa.string(), 3, [None, offsets, data])})


def units_of_unlike_types() -> list[Case]:
    """One person in two tables: the same unit, or the owner's error, whatever the stored types are."""
    pairs = {
        "int-text": ([7], ["7"]),
        "int-float": ([7], [7.0]),
        "int-int32": ([7], pa.array([7], pa.int32())),
        "decimal-scales": (pa.array([Decimal(7)], pa.decimal128(9, 1)), pa.array([Decimal(7)], pa.decimal128(9, 2))),
        "int-decimal": ([7], pa.array([Decimal(7)], pa.decimal128(9, 0))),
        "text-spaces": (["7"], ["7 "]),
        "date-timestamp": ([datetime.date(2025, 1, 1)], [datetime.datetime(2025, 1, 1)]),  # noqa: DTZ001  # as stored
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


def corpus(full: bool) -> list[Case]:
    """All cases, or those of every day."""
    from tests.support.hostile_types import stored_types

    makers = (unreadable_texts, unlike_files, views_and_tables_of_duckdb, numbers, names, broken_files, zero_rows, changed_while_open, texts,
              dates, frames, units_of_unlike_types, stored_types)  # fmt: skip
    cases = [case for make in makers for case in make()]
    assert len({case.name for case in cases}) == len(cases)
    return [case for case in cases if full or case.always]
