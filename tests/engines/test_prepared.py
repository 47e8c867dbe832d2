"""How a prepared copy lies on disk: the choice among a unit's rows rests on its order."""

from __future__ import annotations

import errno
import os
import random
import subprocess
import sys
from contextlib import nullcontext, suppress
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.counts import FULL
from tests.support.engines import OneLayout
from tests.support.interrupts import at_every_point

from tacit.engines import copy_file, copy_tables
from tacit.engines.base import TableSchema
from tacit.engines.copy_file import CopyFile
from tacit.engines.duckdb import DuckDBEngine
from tacit.engines.layout import UNIT_COLUMN, CopyLayout, plan_copy_scan, scalar_column, text_code_column
from tacit.errors import DataError
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    Clamp,
    ColumnReference,
    ContributionBounds,
    ExactStatistic,
    GroupKey,
    Literal,
    Quantize,
    Scan,
)
from tacit.query.types import Type

pytestmark = pytest.mark.slow

SHAPE = TableSchema("t", (("x", Type.INT), ("s", Type.TEXT), ("y", Type.FLOAT)), "who")
ROWS = Scan("t", (("x", "c0"), ("s", "c1"), ("y", "c2"), ("who", "c3")))
TYPES = {"who": pa.int64(), "x": pa.int64(), "s": pa.string(), "y": pa.float64()}
SCALARS = (
    Clamp(ColumnReference("x"), Fraction(-3), Fraction(9), whole=True),
    Quantize(ColumnReference("y"), Fraction(1, 4), -8, 400),
    Clamp(
        ColumnReference("who"), Fraction(0), Fraction(5), whole=True
    ),  # the unit's own column, that the copy has as UNIT only
)
RANGES = ((-3, 9), (-8, 400), (0, 5))
LAYOUT = CopyLayout("t", ROWS, "c3", SCALARS, RANGES, ("s",))


def copied(folder: Path, rows: list[dict[str, Any]], kind: pa.DataType) -> Any:
    """The rows of a copy as they lie, and the types of its columns."""
    types = {**TYPES, "who": kind}
    pq.write_table(pa.table({c: pa.array([r[c] for r in rows], t) for c, t in types.items()}), folder / "t.parquet")
    layout = LAYOUT if kind == pa.int64() else replace(LAYOUT, scalars=SCALARS[:2], ranges=RANGES[:2])
    DuckDBEngine([SHAPE], folder / "t.parquet", layouts=OneLayout(layout), copy=CopyFile(folder / "copy", "s")).close()
    with duckdb.connect(str(folder / "copy"), read_only=True) as copy:
        return copy.sql("FROM t").to_arrow_table()


def ordered(folder: Path, order: str) -> DuckDBEngine:
    """An engine over a copy whose rows were put into another order."""
    copied(folder, drawn(5000, list(range(40))), pa.int64())
    with duckdb.connect(str(folder / "copy")) as copy:
        copy.execute(f"CREATE OR REPLACE TABLE t AS FROM t ORDER BY {order}")
    return DuckDBEngine([SHAPE], layouts=OneLayout(LAYOUT), copy=CopyFile(folder / "copy", "s"))


def test_the_copy_of_the_higher_epoch_stays_at_whatever_line_of_the_other_it_is_made(tmp_path):
    pq.write_table(pa.table({c: pa.array([], t) for c, t in TYPES.items()}), tmp_path / "t.parquet")
    copy, running = tmp_path / "copy", []

    def make(epoch: int) -> None:
        DuckDBEngine([SHAPE], tmp_path / "t.parquet", copy=CopyFile(copy, f"stamp {epoch}", epoch)).close()

    def overtake() -> None:
        running.append(Thread(target=make, args=(2,)))
        running[-1].start()
        running[-1].join(0.2)  # it waits where a copy is being made

    def work() -> None:
        copy.unlink(missing_ok=True)
        with suppress(DataError):
            make(1)
        for thread in running:
            thread.join()

    for _ in at_every_point(work, lambda file: file == copy_file.__file__, overtake, step=1 if FULL else 6):
        with duckdb.connect(str(copy), read_only=True) as opened:
            assert opened.execute("SELECT stamp, epoch FROM tacit_copy").fetchall() == [("stamp 2", 2)]


def drawn(count: int, units: list[Any]) -> list[dict[str, Any]]:
    rng = random.Random(4)
    return [
        {
            "who": rng.choice(units),
            "x": rng.choice([None, -50, 0, 1, 2, 70]),
            "s": rng.choice([None, "b", "a", "é"]),
            "y": rng.choice([None, -1.5, 0.3, 0.25, 99.9]),
        }
        for _ in range(count)
    ]


def test_a_copy_is_sorted_by_unit_and_then_by_all_columns_so_that_rows_that_tie_are_equal(tmp_path):
    # 130,000 rows are more than one group of rows of DuckDB, sorted by all its threads.
    rows = drawn(130_000, [None, *range(-20, 400)])
    copy = copied(tmp_path, rows, pa.int64())
    assert copy.num_rows == sum(row["who"] is not None for row in rows)
    texts = {None: 9, "a": 0, "b": 1, "é": 2}
    x, y = ([9**9 if v is None else v for v in copy[c].to_pylist()] for c in ("x", "y"))  # NULL comes last
    coded = [texts[s] for s in copy[text_code_column("s")].cast(pa.string()).to_pylist()]
    columns = [copy[UNIT_COLUMN].to_pylist(), x, coded, y]
    assert all(one <= other for one, other in pairwise(zip(*columns, strict=True)))


def test_what_a_copy_holds_ready_is_computed_from_the_row_it_lies_in(tmp_path):
    copy = copied(tmp_path, drawn(3000, list(range(9))), pa.int64())
    for who, x, y, *ready in zip(
        *(copy[c].to_pylist() for c in (UNIT_COLUMN, "x", "y", *map(scalar_column, range(3)))), strict=True
    ):
        # 0.3 and 0.25 are nearest to one quarter, -1.5 is -6 of them, and 99.9 is 399.6, so 400. The least value of a
        # type stands for NULL.
        assert ready[0] == (-(2**7) if x is None else min(max(x, -3), 9))
        assert ready[1] == {None: -(2**15), 0.3: 1, 0.25: 1, -1.5: -6, 99.9: 400}[y]
        assert ready[2] == min(who, 5)


def test_what_is_ready_lies_in_as_few_bytes_as_its_bounds_need(tmp_path):
    copy = copied(tmp_path, drawn(20, [1, 2]), pa.int64())
    assert [copy.schema.field(scalar_column(i)).type for i in range(3)] == [pa.int8(), pa.int16(), pa.int8()]


@pytest.mark.parametrize(("kind", "units"), [(pa.string(), ["p", "q", None]), (pa.int32(), [5, 6])])
def test_a_unit_of_another_type_has_a_number_beside_it_or_is_one(tmp_path, kind, units):
    rows = drawn(500, units)
    copy = copied(tmp_path, rows, kind)
    assert ("who" in copy.column_names) == (kind == pa.string())
    assert copy.num_rows == sum(row["who"] is not None for row in rows)
    assert len(set(copy[UNIT_COLUMN].to_pylist())) == 2


ORDERS = [('"#unit", x', True), ("x", False), ('"#unit" DESC', False)]


@pytest.mark.parametrize(("order", "is_order"), ORDERS)
def test_a_table_that_is_not_in_the_order_of_its_units_is_never_a_copy(order, is_order):
    with duckdb.connect() as connection:
        connection.execute("ATTACH ':memory:' AS copy")
        rows = 'SELECT CAST(i % 40 AS BIGINT) AS "#unit", i % 7 AS x FROM range(5000) AS r(i)'
        connection.execute(f"CREATE TABLE copy.t AS {rows} ORDER BY {order}")
        with nullcontext() if is_order else pytest.raises(RuntimeError, match="not in the order of their units"):
            copy_tables._write_units(connection, "t")
            found = connection.execute(f"SELECT unit, last - first + 1 FROM {copy_tables.locate_units('t')}").fetchall()
            assert found == [(unit, 125) for unit in range(40)]


@pytest.mark.parametrize(("order", "is_order"), ORDERS)
def test_a_copy_that_is_not_in_the_order_of_its_units_is_never_added_up(tmp_path, order, is_order):
    engine = ordered(tmp_path, order)
    keep = ContributionBounds(2, 3)
    some = Call(Function.LESS, (ColumnReference("c3"), Literal(40)))  # all of them: where rows are left out, who says
    node = Aggregation(
        ROWS, some, "c3", (GroupKey(ColumnReference("c1"), None),), keep, (ExactStatistic("count", None),), "salt"
    )
    assert plan_copy_scan(node, {"t": LAYOUT}) is not None
    try:
        if is_order:
            # 40 units with about 30 rows of each of four texts, of which 2 groups and 3 rows count
            assert sum(count for (count,) in engine.run(node).values()) == 40 * 2 * 3
        else:
            with pytest.raises(RuntimeError, match="not in the order of their units"):
                engine.run(node)
    finally:
        engine.close()


def test_units_that_share_a_number_are_found_in_whichever_tables_they_are(tmp_path, monkeypatch):
    # A hash of which only the length of a text is left: "p" and "q" collide, in one table or in two.
    shapes = [TableSchema(name, (("x", Type.INT),), "who") for name in ("a", "b")]

    def opened(*units: list[str]) -> None:
        frames = {s.name: pa.table({"who": who, "x": [1] * len(who)}) for s, who in zip(shapes, units, strict=False)}

        class Plain:
            def find(self, table: str, *, is_ready: bool) -> CopyLayout:
                return CopyLayout(table, Scan(table, (("x", "c0"), ("who", "c1"))), "c1", (), (), ())

        DuckDBEngine(shapes[: len(units)], None, frames, layouts=Plain()).close()

    opened(["p", "q", "p"])
    opened(["p", "q"], ["q", "p", "r"])
    monkeypatch.setattr(copy_tables, "unit_to_integer", lambda unit, kind: f"length({unit})")
    opened(["p", "pp", "p"])
    for units in ([["p", "q"]], [["p"], ["q"]], [["p", "pp"], ["pp", "qq"]]):
        with pytest.raises(DataError, match="two units have the same hash"):
            opened(*units)


def test_a_copy_that_the_disk_does_not_take_is_said_with_the_reason_and_leaves_nothing(tmp_path):
    """A limit on the size of files, in a process of its own: to DuckDB that is a full disk with another reason."""
    code = """
import resource, signal
from pathlib import Path
from tacit.engines.copy_file import CopyFile, make_copy
from tacit.errors import DataError
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)

def read(connection):
    connection.execute("CREATE TABLE copy.t AS SELECT range AS x, random() AS y FROM range(100000)")
    return {}

for size in (8_192, 100_000):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    try:
        make_copy(CopyFile(Path("copy").absolute(), "s"), read)
    except DataError as error:
        print(error.what)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["the copy copy cannot be written: File too large"] * 2
    assert not list(tmp_path.iterdir())


def test_a_disk_that_is_full_while_the_source_is_read_is_not_called_an_unreadable_source(tmp_path):
    code = """
import resource, signal
from pathlib import Path
from tacit.engines.base import TableSchema
from tacit.engines.copy_file import CopyFile
from tacit.engines.duckdb import DuckDBEngine
from tacit.errors import DataError
from tacit.query.types import Type
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
shape = TableSchema("t", (("x", Type.FLOAT),), "who")
try:
    DuckDBEngine([shape], Path("t.parquet"), copy=CopyFile(Path("y" * 150, "copy").absolute(), "s"))
except DataError as error:
    print(error.what)
"""
    draw = random.Random(1)
    values = [draw.random() for _ in range(400_000)]
    pq.write_table(pa.table({"who": pa.array(range(400_000)), "x": values}), tmp_path / "t.parquet")
    (tmp_path / ("y" * 150)).mkdir()  # the source's own error would cut the reason off
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "the copy copy cannot be written: File too large\n"
    assert not list((tmp_path / ("y" * 150)).iterdir())


def test_what_the_source_does_not_give_is_not_said_of_the_copy(tmp_path):
    def read(connection):
        connection.execute("FROM read_parquet('/none/source.parquet')")

    with pytest.raises(duckdb.IOException, match="source"):
        copy_file.make_copy(CopyFile(tmp_path / "copy", "s"), read)


def test_a_copy_finds_no_space_or_no_free_place(tmp_path, monkeypatch):
    def full(*given: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(copy_file.os, "chmod", full)
        with pytest.raises(DataError, match="No space left on device") as caught:
            copy_file.make_copy(CopyFile(tmp_path / "copy", "s"), lambda connection: {})
    assert caught.value.fix.startswith("free some space, or name another place")
    (tmp_path / "copy").mkdir()
    with pytest.raises(DataError, match="the copy copy cannot be written: Is a directory"):
        copy_file.make_copy(CopyFile(tmp_path / "copy", "s"), lambda connection: {})
    assert [file.name for file in tmp_path.iterdir()] == ["copy"]
