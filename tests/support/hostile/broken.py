"""Files that are cut, damaged, not what their name says, or changed while they are open."""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.hostile.case import (
    BOOL,
    DATE,
    INT,
    TEXT,
    Case,
    Fact,
    Outcome,
    Write,
    counted,
    database,
    parquet,
    parquets,
    private,
    raw,
    split,
)


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
        database,
        [f"CREATE TABLE t AS SELECT i AS id, i % 10 AS x, 'text ' || i AS y FROM range({rows}) r(i)", "CHECKPOINT"],
    )
    parts = (("start", 0.001), ("half", 0.5), ("end", 0.9999))
    found = [
        Case(f"parquet-truncated-{where}", partial(_cut, one, keep), x, Outcome.ERROR, (), "t.parquet")
        for where, keep in parts
    ]
    found += [
        Case(
            f"duckdb-truncated-{where}",
            partial(_cut, stored, keep),
            x,
            Outcome.EITHER,
            [counted(rows)],
        )
        for where, keep in parts
    ]
    found += [
        Case(
            f"{kind}-damaged-{int(where * 100)}",
            partial(_flipped, make, where),
            x,
            Outcome.EITHER,
            [],
        )
        for kind, make in (("parquet", one), ("duckdb", stored))
        for where in (0.02, 0.2, 0.35, 0.5, 0.65, 0.8, 0.95)
    ]
    for name in ("t.parquet", "t.csv", "t.duckdb", "t.db"):
        found.append(Case(f"empty-file-{name[2:]}", partial(raw, b"", name=name), x, Outcome.ERROR, (), "t"))
        found.append(
            Case(
                f"zeros-{name[2:]}",
                partial(raw, bytes(5000), name=name),
                x,
                Outcome.ERROR,
                (),
                "t",
            )
        )
    found += [
        Case("no-such-file", lambda folder: str(folder / "gone.parquet"), x, Outcome.ERROR, (), "gone.parquet"),
        Case("source-is-a-device", lambda folder: "/dev/null", x, Outcome.ERROR, (), "null"),
        Case("parquet-named-csv", partial(parquet, table, name="t.csv"), x, Outcome.ERROR, (), "t"),
        Case("csv-named-parquet", partial(raw, b"id,x\n1,1\n", name="t.parquet"), x, Outcome.ERROR, (), "t.parquet"),
        Case("duckdb-without-the-table", partial(database, ["CREATE TABLE u (id INTEGER)"]), x, Outcome.ERROR, (), "t"),
        Case(
            "duckdb-in-a-schema",
            partial(database, ["CREATE SCHEMA s", "CREATE TABLE s.t AS SELECT 1 AS id, 1 AS x"]),
            x,
            Outcome.EITHER,
            [counted(1)],
            "t",
        ),
    ]
    texts = {"t": private({"x": INT, "y": TEXT})}
    lines = b"".join(b"%d,%d,a\n" % (n, n % 10) for n in range(3, 30_000))
    exact = [split({"x = 1 AND y = 'a'": 1, "x = 2 AND y = 'a'": 1})]
    csv: dict[str, tuple[bytes, Outcome, Sequence[Fact]]] = {
        "short-row": (b"id,x,y\n1,1,a\n2\n" + lines, Outcome.EITHER, [counted(29_999), counted(29_998, "x")]),
        "long-row": (b"id,x,y\n1,1,a\n2,2,a,b\n" + lines, Outcome.EITHER, []),
        "late-short-row": (
            b"id,x,y\n1,1,a\n" + lines + b"2\n",
            Outcome.EITHER,
            [counted(29_999), counted(29_998, "x")],
        ),
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
        "header-twice": (
            b"id,x,y\n1,1,a\nid,x,y\n2,2,a\n",
            Outcome.EITHER,
            [split({"x = 1": 1, "x = 2": 1, "x IS NULL AND y = 'y'": 1})],
        ),
        "no-header": (b"1,1,a\n2,2,a\n", Outcome.ERROR, ()),
        "semicolons": (b"id;x;y\n1;1;a\n2;2;a\n", Outcome.EITHER, exact),
        "tabs": (b"id\tx\ty\n1\t1\ta\n2\t2\ta\n", Outcome.EITHER, exact),
        "comma-decimals": (b'id,x,y\n1,1,a\n2,"2,5",a\n', Outcome.READ, [split({"x = 1": 1, "x IS NULL": 1})]),
        "number-as-text": (
            b"id,x,y\n1,1,007\n2,2,1e3\n3,3,true\n4,4,2025-01-01\n",
            Outcome.READ,
            [split({"y = '007'": 1, "y = '1e3'": 1, "y = 'true'": 1, "y = '2025-01-01'": 1})],
        ),
        "empty-and-null": (b'id,x,y\n1,,\n2,2,""\n3,NULL,NULL\n', Outcome.READ, [split({"x IS NULL": 2, "x = 2": 1})]),
        "late-bad-number": (
            b"id,x,y\n1,1,a\n" + lines + b"2,bad,a\n",
            Outcome.READ,
            [split({"x IS NULL": 1}, rest=29_998)],
        ),
        "comments": (b"# note\nid,x,y\n1,1,a\n2,2,a\n", Outcome.EITHER, exact),
    }
    found += [
        Case(f"csv-{name}", partial(raw, content), texts, outcome, facts, "t")
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


def wrong_statistics() -> list[Case]:
    """Parquet files whose footer states other bounds than the rows have: the rows count, in WHERE as elsewhere."""
    large = 0x1122334455667788
    number = pa.table({"id": [0, 1, 2], "x": [0, 1, large]})
    unit = pa.table({"id": [0, 1, large], "x": [0, 1, 2]})
    text = pa.table({"id": [0, 1, 2], "x": ["aaaaaaaaaa", "bbbbbbbbbb", "zzzzzzzzzz"]})
    wide, small = struct.pack("<q", large), struct.pack("<q", 1)

    def where(condition: str) -> Fact:
        return Fact(f"SELECT COUNT(*) AS n FROM t WHERE {condition}", {None: 1})

    return [
        Case(
            "statistics-of-a-number",
            partial(_restated, number, wide, small),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            [split({f"x = {large}": 1, "x = 1": 1}, rest=1), where(f"x = {large}"), where("x > 100")],
            "t",
        ),
        Case(
            "statistics-of-a-text",
            partial(_restated, text, b"zzzzzzzzzz", b"cccccccccc"),
            {"t": private({"x": TEXT})},
            Outcome.EITHER,
            [split({"x = 'zzzzzzzzzz'": 1}, rest=2), where("x = 'zzzzzzzzzz'")],
            "t",
        ),
        Case(
            "statistics-of-a-unit",
            partial(_restated, unit, wide, small),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            [counted(3), counted(3, "DISTINCT id"), where("x = 2")],
            "t",
        ),
    ]


def _restated(table: pa.Table, old: bytes, new: bytes, folder: Path) -> str:
    """A Parquet file with other bytes in its footer alone."""
    source = Path(parquet(table, folder, use_dictionary=False, compression="none", store_schema=False))
    content = source.read_bytes()
    start = len(content) - 8 - struct.unpack("<I", content[-8:-4])[0]
    assert old in content[start:]
    source.write_bytes(content[:start] + content[start:].replace(old, new))
    return str(source)


def changed_while_open() -> list[Case]:
    """Files that are replaced, truncated, grown or deleted while the curator is open."""
    x = {"t": private({"x": INT, "y": TEXT})}
    rows = 20_000
    table = pa.table({"id": range(rows), "x": np.arange(rows) % 10, "y": ["a"] * rows})
    other = pa.table({"id": ["a"], "y": [1.5]})
    make: dict[str, Write] = {
        "parquet": partial(parquet, table, row_group_size=1000),
        "csv": partial(raw, b"id,x,y\n" + b"".join(b"%d,%d,a\n" % (n, n % 10) for n in range(rows))),
        "duckdb": partial(
            database,
            [f"CREATE TABLE t AS SELECT i AS id, i % 10 AS x, 'a' AS y FROM range({rows}) r(i)"],
            name="t.duckdb",
        ),
        "folder": partial(parquets, {"t/a.parquet": table}),
        "view": partial(_view_of, table),
    }

    def target(folder: Path) -> Path:
        return max(
            (path for path in folder.rglob("*") if path.suffix in (".parquet", ".csv")), default=folder / "t.duckdb"
        )

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
        Case(
            f"{kind}-{word}-while-open",
            write,
            x,
            Outcome.READ,
            facts,
            spoil=spoil,
        )
        for kind, write in make.items()
        for word, spoil in spoils.items()
    ]


def _view_of(table: pa.Table, folder: Path) -> str:
    """A DuckDB view over a Parquet file."""
    return database([f"CREATE VIEW t AS SELECT * FROM '{parquet(table, folder, 'beside.parquet')}'"], folder)
