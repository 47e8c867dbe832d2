"""Texts: those that are not UTF-8, and those that are, oddly."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import polars as pl
import pyarrow as pa
from tests.support.hostile.case import (
    BOUNDED,
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
    texts_of,
)

_BAD = {
    "byte": b"\xff",
    "overlong": b"\xc0\xaf",
    "surrogate": b"\xed\xa0\x80",
    "cut": b"caf\xc3",
    "beyond": b"\xf4\x90\x80\x80",
}


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
                found.append(Case(f"{label}-column", write, {"t": private({"x": TEXT})}, Outcome.EITHER, null, "x"))
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
                {
                    "t.parquet": pa.table({"id": [1, 2, 3], "x": ["a", "b", "c"]}),
                    "p.parquet": pa.table({"x": texts_of([b"a", b"\xff", b"\xfe"]), "y": [1, 2, 3]}),
                },
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
                {
                    "t.parquet": pa.table({"id": [1, 2, 3], "y": [1, 2, 3], "key": texts_of([b"a", b"\xff", b"c"])}),
                    "u.parquet": pa.table({"key": texts_of([b"a", b"\xff", b"c"]), "x": [1, 2, 3]}),
                },
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
            Case(
                f"csv-bad-text-{name}-row",
                partial(raw, head + row + rows),
                {"t": private({"x": TEXT})},
                Outcome.EITHER,
                one,
                "t",
            )
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
            "csv-utf16",
            partial(raw, "id,x\n1,a\n2,b\n".encode("utf-16")),
            {"t": private({"x": TEXT})},
            Outcome.ERROR,
            (),
            "t",
        ),
        Case(
            "csv-latin1",
            partial(raw, "id,x\n1,é\n2,b\n".encode("latin-1")),
            {"t": private({"x": TEXT})},
            Outcome.EITHER,
            [split({"x IS NULL": 1, "x = 'b'": 1})],
            "t",
        ),
    ]
    return found


def _patched(table: pa.Table, old: bytes, new: bytes, folder: Path) -> str:
    """A Parquet file with bytes of the same length put in place of others."""
    source = Path(parquet(table, folder, store_schema=False))
    content = source.read_bytes()
    assert old in content
    source.write_bytes(content.replace(old, new))
    return str(source)


TEXTS = [
    "",
    " ",
    "\x00",
    "a\x00b",
    "a\x00c",
    "\u0301",
    "e\u0301",
    "é",
    "\ufeff",
    "\u200d",
    "\uffff",
    "😀",
    "\U0010ffff",
    "%",
    "_",
    "\\",
    "'",
    '"',
    "ß",
    "İ",
    "\n",
    "\r\n",
    "NULL",
    "\x1f",
    "\x7f",
    None,
]


def texts() -> list[Case]:
    """Texts with NUL, lone combining characters, and other odd ones: each is itself, and only itself. Beyond 4,096
    bytes a text is NULL."""
    long = ["x" * 2**20, "y" * 2**20 + "\x00", "\u0301" * 2**18, "z" * 4097]
    values = [*TEXTS, *long, "z" * 4096]
    count = len(values)
    table = pa.table({"id": range(count), "x": values, "k": ["a"] * count})
    facts = [
        counted(count),
        counted(count - 1 - len(long), "x"),
        split(
            {
                "x IS NULL": 1 + len(long),
                "x = ''": 1,
                "x = 'é'": 1,
                "x = 'e\u0301'": 1,
                "LENGTH(x) = 4096": 1,
                "x LIKE 'a%'": 2,
                "x = '%'": 1,
                "x = '\\'": 1,
                "x = 'NULL'": 1,
                "x = '\ufeff'": 1,
            },
            rest=count - 11 - len(long),
        ),
        split({"LENGTH(x) = 0": 1, "LENGTH(x) = 3": 2, "LENGTH(x) > 1000": 1}, rest=count - 4),
    ]
    policy = {"t": private({"x": TEXT, "k": TEXT})}
    frames = {"arrow": lambda: table, "pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table)}

    def in_duckdb(folder: Path) -> str:
        return database([f"CREATE TABLE t AS SELECT * FROM '{parquet(table, folder, 'made.parquet')}'"], folder)

    units = [counted(count - 1), counted(count - 1, "DISTINCT x")]
    return [
        Case("texts-parquet", partial(parquet, table), policy, Outcome.READ, facts),
        Case(
            "texts-parquet-plain",
            partial(parquet, table, use_dictionary=False, row_group_size=5),
            policy,
            Outcome.READ,
            facts,
        ),
        Case("texts-duckdb", in_duckdb, policy, Outcome.READ, facts),
        *(Case(f"texts-{kind}", partial(frame, make), policy, Outcome.READ, facts) for kind, make in frames.items()),
        Case("texts-as-unit-parquet", partial(parquet, table), {"t": private({"k": TEXT}, "x")}, Outcome.READ, units),
        Case("texts-as-unit-duckdb", in_duckdb, {"t": private({"k": TEXT}, "x")}, Outcome.READ, units),
    ]
