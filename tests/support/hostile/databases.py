"""DuckDB databases: views that fail on a row, collations, generated columns."""

from __future__ import annotations

from functools import partial
from pathlib import Path

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
    parquet,
    private,
    split,
)


def views_and_tables_of_duckdb() -> list[Case]:
    """Views that fail on a row, collations, generated columns."""
    text = "CASE WHEN i = 9000 THEN 'bad' ELSE (i % 7)::VARCHAR END"
    base = f"CREATE TABLE base AS SELECT i AS id, {text} AS s FROM range(9001) r(i)"
    views = {
        "cast": ("SELECT id, CAST(s AS BIGINT) AS x FROM base", Outcome.ERROR, ()),
        "cast-in-where": ("SELECT id, id AS x FROM base WHERE CAST(s AS BIGINT) < 3", Outcome.ERROR, ()),
        "cast-undeclared": ("SELECT id, id AS x, CAST(s AS BIGINT) AS y FROM base", Outcome.EITHER, [counted(9001)]),
        "error": (
            "SELECT id, CASE WHEN id = 9000 THEN error('row') ELSE 1 END::BIGINT AS x FROM base",
            Outcome.ERROR,
            (),
        ),
        "overflow": ("SELECT id, (id + 9223372036854775000)::BIGINT AS x FROM base", Outcome.ERROR, ()),
        "log": ("SELECT id, ln(id - 3)::BIGINT AS x FROM base", Outcome.ERROR, ()),
        "division": (
            "SELECT id, (10 // (id % 2)) AS x FROM base WHERE id < 4",
            Outcome.EITHER,
            [split({"x = 10": 2, "x IS NULL": 2})],
        ),
        "valid": (
            "SELECT id, TRY_CAST(s AS BIGINT) AS x FROM base",
            Outcome.READ,
            [split({"x IS NULL": 1, "x = 0": 1286, "x > 6": 0}, rest=7714)],
        ),
        "random": ("SELECT id, (random() * 3)::BIGINT AS x FROM base", Outcome.EITHER, [counted(9001)]),
        "star": ("SELECT *, 1::BIGINT AS x FROM base", Outcome.READ, [split({"x = 1": 9001})]),
    }
    found = [
        Case(
            f"view-{name}",
            partial(database, [base, f"CREATE VIEW t AS {text}"]),
            {"t": private({"x": INT})},
            outcome,
            facts,
            "t",
        )
        for name, (text, outcome, facts) in views.items()
    ]
    gone = [
        "CREATE TABLE gone AS SELECT 1 AS id, 2::BIGINT AS x",
        "CREATE VIEW t AS SELECT * FROM gone",
        "DROP TABLE gone",
    ]
    altered = [
        "CREATE TABLE base AS SELECT 1 AS id, 2::BIGINT AS x",
        "CREATE VIEW t AS SELECT * FROM base",
        "ALTER TABLE base ADD COLUMN y INTEGER",
    ]
    found += [
        Case("view-of-dropped-table", partial(database, gone), {"t": private({"x": INT})}, Outcome.ERROR, (), "t"),
        Case(
            "view-of-altered-table",
            partial(database, altered),
            {"t": private({"x": INT})},
            Outcome.EITHER,
            [split({"x = 2": 1})],
            "t",
        ),
        Case("view-of-a-file", _view_of_a_file, {"t": private({"x": INT})}, Outcome.EITHER, [split({"x = 2": 1})], "t"),
        Case(
            "view-of-a-file-gone",
            partial(_view_of_a_file, gone=True),
            {"t": private({"x": INT})},
            Outcome.ERROR,
            (),
            "t",
        ),
    ]
    for collation in ("NOCASE", "NOACCENT", "NOCASE.NOACCENT"):
        make = [
            f"CREATE TABLE t (id VARCHAR COLLATE {collation}, x VARCHAR COLLATE {collation}, y BIGINT)",
            "INSERT INTO t VALUES ('ann', 'flu', 1), ('ANN', 'FLU', 2), ('änn', 'flü', 3)",
            f"CREATE TABLE p (x VARCHAR COLLATE {collation}, z BIGINT)",
            "INSERT INTO p VALUES ('flu', 1), ('FLU', 2), ('flü', 3)",
        ]
        apart = [split({"x = 'flu'": 1, "x = 'FLU'": 1, "x = 'flü'": 1})]
        write = partial(database, make)
        label = collation.lower()
        found += [
            Case(
                f"collation-{label}-key",
                write,
                {"t": private({"x": TEXT}, "y")},
                Outcome.EITHER,
                apart,
                "x",
            ),
            Case(f"collation-{label}-unit", write, {"t": private({"y": INT})}, Outcome.EITHER, [counted(3)], "id"),
            Case(
                f"collation-{label}-undeclared",
                write,
                {"t": private({"y": INT}, "y")},
                Outcome.READ,
                [counted(3)],
            ),
            Case(
                f"collation-{label}-unique-public",
                partial(database, [*make, "CREATE TABLE u AS SELECT y, x::VARCHAR AS x FROM t"]),
                {
                    "u": private({"x": TEXT}, "y"),
                    "p": {"public": True, "columns": {"x": TEXT | {"unique": True}, "z": INT}},
                },
                Outcome.EITHER,
                [Fact("SELECT COUNT(*) AS n FROM u JOIN p USING (x) WHERE z = 1", {None: 1})],
                "x",
            ),
        ]
    generated = {
        "virtual": (
            "x BIGINT GENERATED ALWAYS AS (y * 2) VIRTUAL",
            "INSERT INTO t (id, y) VALUES (1, 1), (2, 2)",
            Outcome.EITHER,
            [split({"x = 2": 1, "x = 4": 1})],
        ),
        "failing": (
            "x BIGINT GENERATED ALWAYS AS (CAST(s AS BIGINT)) VIRTUAL",
            "INSERT INTO t (id, s) VALUES (1, '1')",
            Outcome.EITHER,
            [split({"x = 1": 1})],
        ),
        "failing-later": (
            "x BIGINT GENERATED ALWAYS AS (y + getvariable('v')::BIGINT) VIRTUAL",
            "SET VARIABLE v = 1; INSERT INTO t (id, y) VALUES (1, 1), (2, 2)",
            Outcome.EITHER,
            [counted(2)],
        ),
    }
    for name, (column, insert, outcome, facts) in generated.items():
        make = [f"CREATE TABLE t (id INTEGER, y BIGINT, s VARCHAR, {column})", insert]
        found.append(
            Case(f"generated-{name}", partial(database, make), {"t": private({"x": INT})}, outcome, facts, "t")
        )
    return found


def macros() -> list[Case]:
    """Macros of the database that are named like functions: they mean nothing to a question."""
    rows = "CREATE TABLE t AS SELECT i AS id, i AS x, i::DOUBLE AS f, 'A' || i AS s FROM range(3) r(i)"
    bodies = (
        "floor(a) AS error('row')",
        "lower(a) AS error('row')",
        "coalesce(a, b) AS 7",
        "least(a, b) AS 7",
        "sum(a) AS 7",
        "count(a) AS 7",
        "md5_number(a) AS 7",
        "isnan(a) AS true",
        "count_star() AS 7",
        "min(a) AS 7",
        "length(a) AS 7",
    )
    facts = [
        counted(3),
        split({"x = 0": 1, "x = 1": 1, "x = 2": 1}),
        split({"LOWER(s) = 'a0'": 1, "FLOOR(f) = 1": 1}, rest=1),
    ]
    tables = {"t": private({"x": INT, "f": BOUNDED["float"], "s": TEXT})}
    return [
        Case(
            f"macro-{body.split('(')[0]}",
            partial(database, [rows, f"CREATE MACRO {body}"]),
            tables,
            Outcome.READ,
            facts,
        )
        for body in bodies
    ]


def _view_of_a_file(folder: Path, gone: bool = False) -> str:
    """A DuckDB view over a Parquet file beside it, which may be gone by now."""
    beside = parquet(pa.table({"id": [1], "x": [2]}), folder, "beside.parquet")
    made = database([f"CREATE VIEW t AS SELECT * FROM '{beside}'"], folder)
    if gone:
        Path(beside).unlink()
    return made
