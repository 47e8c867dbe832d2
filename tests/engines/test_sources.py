"""Every kind of source gives the same answers; what cannot be read is said at open."""

from __future__ import annotations

import datetime
import decimal
import errno
import os
import sqlite3
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tacit.engines.base import TableSchema
from tacit.engines.duckdb import DuckDBEngine, read_columns
from tacit.engines.left_out import LeftOut
from tacit.errors import DataError, ErrorCode
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    Case,
    Clamp,
    ColumnReference,
    EquiJoin,
    ExactStatistic,
    GroupKey,
    Literal,
    Quantize,
    Scan,
)
from tacit.query.types import Type

pytestmark = pytest.mark.slow

COLUMNS = {"ward": Type.TEXT, "age": Type.INT, "cost": Type.FLOAT, "urgent": Type.BOOL, "day": Type.DATE}
DATA: dict[str, list[Any]] = {
    "patient": ["p1", "p2", "p3", "p4"],
    "ward": ["A", "A", "B", "Ost, flügel"],
    "age": [30, 40, None, 50],
    "cost": [1.5, None, 2.5, 3.0],
    "urgent": [True, False, None, True],
    "day": [datetime.date(2025, 1, 1), None, datetime.date(2025, 2, 1), datetime.date(2025, 3, 1)],
}
KINDS = [pa.string(), pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.date32()]
ARROW = pa.table({name: pa.array(values, kind) for (name, values), kind in zip(DATA.items(), KINDS, strict=True)})
CSV = """patient,ward,age,cost,urgent,day
p1,A,30,1.5,true,2025-01-01
p2,A,40,,false,
p3,B,,2.5,,2025-02-01
p4,"Ost, flügel",50,3.0,true,2025-03-01
"""


def shape(table: str = "visits", columns: dict[str, Type] | None = None, unit: str | None = "patient") -> TableSchema:
    return TableSchema(table, tuple((COLUMNS if columns is None else columns).items()), unit)


def summed(column: str) -> ExactStatistic:
    """A float in steps of a half, up to 100."""
    return ExactStatistic(
        "sum", Quantize(Clamp(ColumnReference(column), Fraction(0), Fraction(100), whole=False), Fraction(1, 2), 0, 200)
    )


def counted(condition: Any) -> ExactStatistic:
    return ExactStatistic("count", Case(((condition, Literal(1)),), Literal(None)))


def asked(
    *measures: ExactStatistic, table: str = "visits", keys: tuple[str, ...] = (), columns: Any = None, rows: int = 5
) -> Aggregation:
    """Measures over the columns of a table by their own names."""
    names = [*(COLUMNS if columns is None else columns), "patient"]
    grouping = tuple(GroupKey(ColumnReference(key), None) for key in keys)
    source = Scan(table, tuple((name, name) for name in names))
    return Aggregation(source, None, "patient", grouping, ContributionBounds(3, rows), measures, "salt")


AGES = (ExactStatistic("count", None), ExactStatistic("sum", ColumnReference("age")))
LATE = Call(Function.GREATER_EQUAL, (ColumnReference("day"), Literal(datetime.date(2025, 2, 1))))
ALL = (*AGES, summed("cost"), counted(ColumnReference("urgent")), counted(LATE))
# Rows, ages, costs in halves, urgent ones, late ones.
GROUPS = {("A",): (2, 70, 3, 1, 0), ("B",): (1, 0, 5, 0, 1), ("Ost, flügel",): (1, 50, 6, 1, 1)}


def groups_of(
    source: Path | None = None,
    frames: dict[str, Any] | None = None,
    node: Aggregation | None = None,
    shapes: tuple[TableSchema, ...] = (shape(),),
) -> Any:
    """The groups over a source or frames."""
    engine = DuckDBEngine(shapes, source, frames)
    try:
        return dict(engine.run(asked(*ALL, keys=("ward",)) if node is None else node))
    finally:
        engine.close()


def database(path: Path) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.register("handed", ARROW)
        connection.execute("CREATE TABLE visits AS SELECT * FROM handed")
        connection.execute("CREATE VIEW urgent_visits AS SELECT * FROM visits WHERE urgent")
        connection.execute("CREATE SCHEMA other; CREATE TABLE other.elsewhere AS SELECT * FROM visits")
    return path


@pytest.mark.parametrize("suffix", [".duckdb", ".db", ".ddb"])
def test_a_table_of_a_database(suffix, tmp_path):
    assert groups_of(database(tmp_path / f"clinic{suffix}")) == GROUPS


def test_views_and_other_schemas_of_a_database(tmp_path):
    source = database(tmp_path / "it's a clinic.duckdb")
    shapes = (shape("urgent_visits"), shape("elsewhere"))
    assert groups_of(source, node=asked(*AGES, table="urgent_visits"), shapes=shapes) == {(): (2, 80)}
    assert groups_of(source, node=asked(*AGES, table="elsewhere"), shapes=shapes) == {(): (4, 120)}


def test_a_parquet_file(tmp_path):
    pq.write_table(ARROW, tmp_path / "visits.parquet")
    assert groups_of(tmp_path / "visits.parquet") == GROUPS


def test_a_lone_file_may_have_another_name(tmp_path):
    pq.write_table(ARROW, tmp_path / "export 'final'.parquet")
    (tmp_path / "export.csv").write_text(CSV, encoding="utf-8")
    assert groups_of(tmp_path / "export 'final'.parquet") == GROUPS
    assert groups_of(tmp_path / "export.csv") == GROUPS


def test_a_folder_of_parquet_csv_and_parts(tmp_path):
    folder = tmp_path / "data"
    (folder / "parts").mkdir(parents=True)
    (folder / "not a table").mkdir()
    (folder / "readme.txt").write_text("no table")
    pq.write_table(ARROW, folder / "visits.parquet")
    (folder / "lines.csv").write_text(CSV, encoding="utf-8")
    pq.write_table(ARROW.slice(0, 1), folder / "parts" / "1.parquet")
    pq.write_table(ARROW.slice(1), folder / "parts" / "2.parquet")
    for table in ("visits", "lines", "parts"):
        assert groups_of(folder, node=asked(*ALL, table=table, keys=("ward",)), shapes=(shape(table),)) == GROUPS


def test_names_of_tables_and_columns_in_any_case(tmp_path):
    renamed = ARROW.rename_columns([name.upper() for name in ARROW.column_names])
    (tmp_path / "data").mkdir()
    pq.write_table(renamed, tmp_path / "data" / "VISITS.parquet")
    assert groups_of(tmp_path / "data") == GROUPS


def test_a_suffix_in_capitals_is_one(tmp_path):
    (tmp_path / "VISITS.CSV").write_text(CSV, encoding="utf-8")
    assert groups_of(tmp_path / "VISITS.CSV") == groups_of(tmp_path) == GROUPS
    (tmp_path / "VISITS.CSV").unlink()
    (tmp_path / "visits").mkdir()
    pq.write_table(ARROW, tmp_path / "visits" / "1.PARQUET")
    assert groups_of(tmp_path) == GROUPS


@pytest.mark.parametrize("other", ["Visits.csv", "visits.parquet", "VISITS/1.parquet"])
def test_two_tables_of_a_folder_with_one_name_are_said_at_open(other, tmp_path):
    (tmp_path / "visits.csv").write_text(CSV, encoding="utf-8")
    (tmp_path / other).parent.mkdir(exist_ok=True)
    if other.endswith("csv"):
        (tmp_path / other).write_text(CSV, encoding="utf-8")
    else:
        pq.write_table(ARROW, tmp_path / other)
    problem = refused(tmp_path)
    assert "have the same name" in problem.what and "visits.csv" in problem.what and "another name" in problem.fix


def test_of_tables_of_several_schemas_that_of_main_has_the_name_alone(tmp_path):
    source = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(source)) as connection:
        connection.register("rows", ARROW)
        connection.execute("CREATE TABLE visits AS FROM rows")
        for schema in ("a", "zoo"):
            connection.execute(f"CREATE SCHEMA {schema}")
            connection.execute(f"CREATE TABLE {schema}.Visits AS FROM rows LIMIT 1")
            connection.execute(f"CREATE TABLE {schema}.stays AS FROM rows LIMIT 2")
        connection.execute("CREATE TABLE zoo.beds AS FROM rows LIMIT 3")
    assert groups_of(source) == GROUPS
    assert {*read_columns(source)} == {"visits", "beds"}
    for name in ("stays", "zoo.stays"):  # FROM zoo.stays is FROM stays: a question names no schema
        with pytest.raises(DataError) as caught:
            DuckDBEngine([shape(name)], source)
        assert "a.Visits, a.stays, beds, visits, zoo.Visits, zoo.stays" in caught.value.what


def test_a_name_of_two_lines_does_not_say_how_rows_end(tmp_path):
    for inside, ending in (("\n", "\r\n"), ("\r\n", "\n"), ("\n", "\n"), ("\r\n", "\r\n")):
        text = CSV.replace("\n", ending).replace("cost", f'"the cost{inside}in francs"')
        (tmp_path / "visits.csv").write_bytes(text.encode())
        columns = {name: kind for name, kind in COLUMNS.items() if name != "cost"}
        node = asked(*AGES, columns=columns)
        assert groups_of(tmp_path / "visits.csv", node=node, shapes=(shape(columns=columns),)) == {(): (4, 120)}


def test_a_folder_that_may_not_be_entered_is_no_table(tmp_path, monkeypatch):
    (tmp_path / "visits.csv").write_text(CSV, encoding="utf-8")
    (tmp_path / "lost+found").mkdir()
    listed = Path.iterdir

    def closed(path):
        if path.name == "lost+found":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return listed(path)

    monkeypatch.setattr(Path, "iterdir", closed)
    assert groups_of(tmp_path) == GROUPS


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_csv_file(ending, tmp_path):
    (tmp_path / "visits.csv").write_bytes(CSV.replace("\n", ending).encode())
    assert groups_of(tmp_path / "visits.csv") == GROUPS


def test_a_csv_file_with_a_byte_order_mark(tmp_path):
    (tmp_path / "visits.csv").write_text(CSV, encoding="utf-8-sig")
    assert groups_of(tmp_path / "visits.csv") == GROUPS


def test_a_csv_file_without_a_last_line_end(tmp_path):
    (tmp_path / "visits.csv").write_text(CSV.rstrip(), encoding="utf-8")
    assert groups_of(tmp_path / "visits.csv") == GROUPS


def test_quotes_commas_and_lines_inside_csv_cells(tmp_path):
    keys = ["a,b", 'say "hi"', "two\nlines", "日本"]
    (tmp_path / "visits.csv").write_text(
        'ward,patient\n"a,b",1\n"say ""hi""",2\n"two\nlines",3\n日本,4\n"",5\n,6\n', encoding="utf-8"
    )
    columns = {"ward": Type.TEXT}
    node = asked(ExactStatistic("count", None), keys=("ward",), columns=columns)
    # An empty cell is NULL, in quotes or not.
    expected = {(key,): (1,) for key in keys} | {(None,): (2,)}
    assert groups_of(tmp_path / "visits.csv", node=node, shapes=(shape(columns=columns),)) == expected


def test_csv_cells_that_do_not_fit_their_type_are_null(tmp_path):
    cells = {
        "age": ["12", "twelve", "", "99999999999999999999", "12 years"],
        "cost": ["2.5", "2,5", "", "1e999x", "two"],
        "urgent": ["true", "perhaps", "", "2025-01-01", "-"],
        "day": ["2025-01-01", "2025-13-01", "", "31.12.2025", "soon"],
    }
    lines = [f"{n},{','.join(chr(34) + cells[c][n] + chr(34) for c in cells)}" for n in range(5)]
    (tmp_path / "visits.csv").write_text("\n".join([f"patient,{','.join(cells)}", *lines]) + "\n")
    columns = {name: column for name, column in COLUMNS.items() if name != "ward"}
    measures = [ExactStatistic("count", ColumnReference(name)) for name in columns]
    node = asked(ExactStatistic("count", None), *measures, AGES[1], summed("cost"), columns=columns)
    # Of five rows only the first has cells that can be read.
    found = groups_of(tmp_path / "visits.csv", node=node, shapes=(shape(columns=columns),))
    assert found == {(): (5, 1, 1, 1, 1, 12, 5)}


def test_csv_units_that_are_empty_are_dropped(tmp_path):
    (tmp_path / "visits.csv").write_text("patient,ward\n1,A\n,A\n1,A\n", encoding="utf-8")
    columns = {"ward": Type.TEXT}
    # Two rows have a unit; with r = 1 one of them is kept.
    for most, kept in ((5, 2), (1, 1)):
        node = asked(ExactStatistic("count", None), columns=columns, rows=most)
        assert groups_of(tmp_path / "visits.csv", node=node, shapes=(shape(columns=columns),)) == {(): (kept,)}


@pytest.mark.parametrize(
    "content",
    [
        b"patient,ward\n1,A,more\n",
        b"patient,ward\n1\n",
        b'patient,ward\n1,"A\n',
        b"patient,ward\n1,\xff\xfe\n",
        b"patient,w\xe9rd\n1,A\n",
        b"",
        b"\n1,A\n",
    ],
    ids=["too many cells", "too few", "open quote", "not UTF-8", "not UTF-8 in the header", "empty", "no header"],
)
def test_malformed_csv_is_said_at_open(content, tmp_path):
    (tmp_path / "visits.csv").write_bytes(content)
    with pytest.raises(DataError) as raised:
        DuckDBEngine([shape(columns={"ward": Type.TEXT})], tmp_path / "visits.csv")
    assert raised.value.code is ErrorCode.DATA and raised.value.fix
    assert "visits.csv" in str(raised.value)


def test_tables_handed_over(framed):
    assert groups_of(frames={"visits": framed(ARROW)}) == GROUPS


def test_a_frame_wins_over_the_source(tmp_path):
    pq.write_table(ARROW.slice(0, 1), tmp_path / "visits.parquet")
    assert groups_of(tmp_path / "visits.parquet", {"visits": ARROW}) == GROUPS


def test_a_frame_changed_afterwards_changes_nothing():
    frame = ARROW.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get)
    lists = {name: list(values) for name, values in DATA.items()}
    for data in (frame, lists):
        engine = DuckDBEngine([shape()], None, {"visits": data})
        if data is frame:
            frame.loc[:, "age"] = 0
        else:
            lists["age"][:] = [0, 0, 0, 0]
        assert dict(engine.run(asked(*AGES))) == {(): (4, 120)}
        engine.close()


def test_narrow_and_wide_number_types():
    table = pa.table(
        {
            "patient": pa.array([1, 2, 3], pa.int8()),
            "age": pa.array([1, 2, 3], pa.uint16()),
            "cost": pa.array([0.5, 1.0, None], pa.float32()),
            "ward": pa.array(["A", "A", "B"], pa.large_string()),
            "urgent": pa.array([True, None, True]),
            "day": pa.array([DATA["day"][0]] * 3, pa.date64()),
        }
    )
    assert groups_of(frames={"visits": table}, node=asked(*AGES, summed("cost"))) == {(): (3, 6, 3)}
    wide = table.set_column(1, "age", pa.array([1, 2**63, 2**64 - 1], pa.uint64()))
    # What does not fit 64 signed bits is read as NULL.
    node = asked(ExactStatistic("count", ColumnReference("age")), ExactStatistic("sum", ColumnReference("age")))
    assert groups_of(frames={"visits": wide}, node=node) == {(): (1, 1)}


def test_an_empty_table():
    empty = {"visits": ARROW.slice(0, 0)}
    assert groups_of(frames=empty) == {}
    assert groups_of(frames=empty, node=asked(*AGES)) == {(): (0, 0)}


def test_dates_that_python_has_not_are_null(tmp_path):
    dates = ["'infinity'", "'-infinity'", "'10000-01-01'", "'0001-01-01 (BC)'", "'9999-12-31'", "'0001-01-01'", "NULL"]
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        values = ", ".join(f"({n}, CAST({date} AS DATE))" for n, date in enumerate(dates))
        connection.execute(f"CREATE TABLE visits AS SELECT * FROM (VALUES {values}) AS t(patient, day)")
    columns = {"day": Type.DATE}
    first, last = datetime.date(1, 1, 1), datetime.date(9999, 12, 31)
    for measure, cells in [
        (ExactStatistic("count", None), (1, 1, 5)),
        (ExactStatistic("histogram", ColumnReference("day")), ({first: 1}, {last: 1}, {})),
    ]:
        node = asked(measure, keys=("day",), columns=columns)
        found = groups_of(tmp_path / "clinic.duckdb", node=node, shapes=(shape(columns=columns),))
        assert found == {(day,): (cell,) for day, cell in zip((first, last, None), cells, strict=True)}


UNITS: dict[str, tuple[pa.Array, Type]] = {
    "texts": (pa.array(["a", "b", None]), Type.TEXT),
    "small integers": (pa.array([1, 2, None], pa.uint8()), Type.INT),
    "large integers": (pa.array([2**63, 2**64 - 1, None], pa.uint64()), Type.INT),
    "decimals": (
        pa.array([decimal.Decimal(2**63), decimal.Decimal(2**90), None], pa.decimal128(38, 0)),
        Type.TEXT,
    ),
    "bytes": (pa.array([b"\x00", b"\xff", None]), Type.TEXT),
    "dates": (pa.array([datetime.date(2025, 1, 1), datetime.date(2025, 1, 2), None]), Type.TEXT),
}


@pytest.mark.parametrize("kind", UNITS)
def test_a_unit_without_a_declared_type_is_read_as_integer_or_text(kind):
    values, expected = UNITS[kind]
    table = pa.table({"patient": values, "code": values, "age": pa.array([1, 2, 4])})
    declared = TableSchema("visits", (("age", Type.INT),), "patient", ("code", "patient"))
    engine = DuckDBEngine([declared], None, {"visits": pa.concat_tables([table, table])})
    try:
        assert engine.type_of("visits", "patient") is engine.type_of("visits", "code") is expected
        assert engine.type_of("visits", "age") is Type.INT
        scan = Scan("visits", (("patient", "c0"), ("age", "c1"), ("code", "c2")))
        measures = (
            ExactStatistic("units", None),
            ExactStatistic("count", None),
            ExactStatistic("sum", ColumnReference("c1")),
        )
        node = Aggregation(scan, None, "c0", (), ContributionBounds(1, 1), measures)
        assert dict(engine.run(node)) == {(): (2, 2, 3)}
        # Rows of the same unit match: two each.
        other = Scan("visits", (("code", "c3"),))
        matched = EquiJoin(scan, other, ((ColumnReference("c0"), ColumnReference("c3")),))
        node = Aggregation(matched, None, "c0", (), ContributionBounds(1, 9), measures)
        assert dict(engine.run(node)) == {(): (2, 8, 12)}
    finally:
        engine.close()


@pytest.mark.parametrize("kind", [pa.float32(), pa.float64(), pa.timestamp("us", "UTC"), pa.list_(pa.int64())])
def test_a_unit_whose_values_have_no_one_text_is_said_at_open(kind):
    table = pa.table({"patient": pa.array([None, None], kind), "age": pa.array([1, 2])})
    with pytest.raises(DataError, match=r"visits\.patient says whose row it is"):
        DuckDBEngine([TableSchema("visits", (("age", Type.INT),), "patient")], None, {"visits": table})


def test_an_absent_link():
    with pytest.raises(DataError) as raised:
        DuckDBEngine([TableSchema("visits", (), "patient", ("stay",))], None, {"visits": ARROW})
    assert "stay" in raised.value.what


def test_values_are_unique_as_they_are_read(tmp_path):
    (tmp_path / "wards.csv").write_text("name,floor\nA,1\nB,01\na,x\n,\n", encoding="utf-8")
    engine = DuckDBEngine([shape("wards", {"name": Type.TEXT, "floor": Type.INT}, unit=None)], tmp_path / "wards.csv")
    # 1 and 01 are the same integer; x is none
    assert engine.is_unique("wards", "name") and not engine.is_unique("wards", "floor")
    engine.close()


def test_all_statements_of_a_question_see_one_state():
    engine = DuckDBEngine([shape()], None, {"visits": ARROW})
    count, more = "SELECT COUNT(*) FROM copy.main.visits", "INSERT INTO copy.main.visits FROM copy.main.visits"
    with engine._snapshot() as cursor:
        assert cursor.execute(count).fetchone() == (4,)
        engine._connection.execute(more)
        assert cursor.execute(count).fetchone() == (4,)
    with engine._snapshot() as cursor:
        assert cursor.execute(count).fetchone() == (8,)
    engine.close()


def test_a_sum_of_floats_is_no_answer():
    with pytest.raises(TypeError, match="integers"):
        groups_of(frames={"visits": ARROW}, node=asked(ExactStatistic("sum", ColumnReference("cost"))))


def test_names_and_types_of_a_source(tmp_path):
    found = read_columns(database(tmp_path / "clinic.duckdb"))
    kinds = [Type.TEXT, Type.TEXT, Type.INT, Type.FLOAT, Type.BOOL, Type.DATE]
    assert [(column.name, column.kind) for column in found["visits"]] == list(zip(DATA, kinds, strict=True))
    assert set(found) == {"visits", "urgent_visits", "elsewhere"}


READ = {
    "TINYINT": Type.INT,
    "UBIGINT": Type.INT,
    "HUGEINT": Type.INT,
    "DECIMAL(9,2)": Type.FLOAT,
    "ENUM('a', 'b')": Type.TEXT,
    "UUID": Type.TEXT,
    "DATE": Type.DATE,
    "TIMESTAMP": Type.TIMESTAMP,
    "TIMESTAMP_S": Type.TIMESTAMP,
    "TIMESTAMP_MS": Type.TIMESTAMP,
    "TIMESTAMP_NS": Type.TIMESTAMP,
    "TIMESTAMPTZ": Type.TIMESTAMP,
}
LEFT_OUT = {
    "TIME": "time of day",
    "TIMETZ": "time of day",
    "INTERVAL": "length of time",
    "BLOB": "bytes",
    "BIT": "bytes",
    "INTEGER[]": "several values",
    "INTEGER[3]": "several values",
    "STRUCT(a INTEGER)": "several values",
    "MAP(VARCHAR, INTEGER)": "several values",
    "UNION(a INTEGER, b VARCHAR)": "several values",
    "JSON": "several values",
    "UHUGEINT": "more than 64 bits",
}


def test_every_stored_type_is_read_or_left_out_with_a_reason(tmp_path):
    with duckdb.connect(str(tmp_path / "odd.duckdb")) as made:
        columns = ", ".join(f"c{number} {kind}" for number, kind in enumerate([*READ, *LEFT_OUT]))
        made.execute(f"CREATE TABLE t ({columns})")
    found = [column.kind for column in read_columns(tmp_path / "odd.duckdb")["t"]]
    assert found[: len(READ)] == list(READ.values())
    for (stored, reason), kind in zip(LEFT_OUT.items(), found[len(READ) :], strict=True):
        assert isinstance(kind, LeftOut), stored
        assert reason in str(kind)


@pytest.mark.parametrize("stored", ["TIME", "INTEGER[]"])
def test_a_column_of_a_type_that_is_not_read_is_refused_with_the_reason(tmp_path, stored):
    with duckdb.connect(str(tmp_path / "odd.duckdb")) as made:
        made.execute(f"CREATE TABLE t (c {stored})")
    with pytest.raises(DataError) as caught:
        DuckDBEngine([TableSchema("t", (("c", Type.TEXT),), None)], tmp_path / "odd.duckdb")
    assert f"leave it out: stored as {stored}" in caught.value.fix and LEFT_OUT[stored] in caught.value.fix


def test_a_csv_file_of_times_is_declared_as_timestamps(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,c\n2025-01-01,2025-01-01 10:00,2025-01-01\n2025-01-02,2025-01-02T10:00Z,x\n")
    kinds = {column.name: column.kind for column in read_columns(tmp_path / "t.csv")["t"]}
    assert kinds == {"a": Type.DATE, "b": Type.TIMESTAMP, "c": Type.TEXT}


def test_how_often_values_repeat_is_told_of_enough_rows(tmp_path):
    rows = [f"{n},{n % 5},{'x' * 60 if n else ''}" for n in range(1_000)]
    (tmp_path / "t.csv").write_text("\n".join(["key,person,text", *rows]) + "\n")
    key, person, text = read_columns(tmp_path / "t.csv")["t"]
    assert key.distinct is not None and key.distinct > 0.9
    assert person.distinct == pytest.approx(0.005, rel=0.1)
    assert text.length == 60 and key.length is None
    (tmp_path / "few.csv").write_text("key\n1\n2\n")
    assert read_columns(tmp_path / "few.csv")["few"][0].distinct is None


@pytest.mark.parametrize("mark", [";", "\t", ","])
def test_a_header_says_what_separates_columns(tmp_path, mark):
    lines = [["name", "price", "since"], ["A", "1.5", "2025-01-01"], ['"B; C"', "-2", ""], ['"D, E"', "", "2025-01-03"]]
    (tmp_path / "t.csv").write_text("\n".join(mark.join(line) for line in lines) + "\n")
    found = read_columns(tmp_path / "t.csv")["t"]
    assert [(column.name, column.kind) for column in found] == [
        ("name", Type.TEXT),
        ("price", Type.FLOAT),
        ("since", Type.DATE),
    ]
    schema = TableSchema("t", (("name", Type.TEXT), ("price", Type.FLOAT)), None)
    keys = (GroupKey(ColumnReference("name"), ("A", "B; C", "D, E")),)
    cents = Quantize(ColumnReference("price"), Fraction(1, 2), -10, 10)
    exact = Aggregation(
        Scan("t", (("name", "name"), ("price", "price"))),
        None,
        None,
        keys,
        ContributionBounds(1, 1),
        (ExactStatistic("sum", cents),),
    )
    engine = DuckDBEngine([schema], tmp_path / "t.csv")
    assert engine.run(exact) == {("A",): (3,), ("B; C",): (-4,), ("D, E",): (0,)}
    engine.close()


@pytest.mark.parametrize(
    ("written", "halves"),
    [
        ("1,5", 3),
        ("-1.234,5", -2469),
        ("1.234.567,0", 2469134),
        ("2.5", 5),
        ("7", 14),
        ("+3,00", 6),
        ("1,2,3", 0),  # no number
        ("1.23,4", 0),
        (",5", 0),
    ],
)
def test_a_comma_is_decimal_where_semicolons_separate_columns(tmp_path, written, halves):
    (tmp_path / "t.csv").write_text(f"name;price\nA;{written}\n")
    schema = TableSchema("t", (("price", Type.FLOAT),), None)
    cents = Quantize(ColumnReference("price"), Fraction(1, 2), -(10**9), 10**9)
    measures = (ExactStatistic("sum", cents),)
    exact = Aggregation(Scan("t", (("price", "price"),)), None, None, (), ContributionBounds(1, 1), measures)
    engine = DuckDBEngine([schema], tmp_path / "t.csv")
    assert engine.run(exact) == {(): (halves,)}
    engine.close()
    is_number = read_columns(tmp_path / "t.csv")["t"][1].kind in {Type.INT, Type.FLOAT}
    assert is_number == (halves != 0)


def test_the_source_is_opened_read_only(tmp_path):
    source = database(tmp_path / "clinic.duckdb")
    before = source.read_bytes()
    engine = DuckDBEngine([shape()], source)
    with pytest.raises(duckdb.Error):
        engine._connection.execute("DELETE FROM source.main.visits")
    # A second process reads the same file while the first holds it.
    code = "import sys, pathlib, tacit.engines.duckdb as d; print(*d.read_columns(pathlib.Path(sys.argv[1])))"
    run = subprocess.run([sys.executable, "-c", code, str(source)], capture_output=True, text=True, check=False)
    assert "visits" in run.stdout.split(), run.stderr
    assert groups_of(source) == GROUPS
    engine.close()
    assert source.read_bytes() == before
    assert not list(tmp_path.glob("*.wal"))


def refused(source: Path | None = None, frames: dict[str, Any] | None = None) -> DataError:
    with pytest.raises(DataError) as raised:
        DuckDBEngine([shape()], source, frames)
    assert raised.value.code is ErrorCode.DATA
    assert raised.value.fix
    return raised.value


def test_a_missing_source(tmp_path):
    assert "nowhere.duckdb" in refused(tmp_path / "nowhere.duckdb").what


def test_an_unknown_kind_of_file(tmp_path):
    (tmp_path / "visits.xlsx").write_bytes(b"PK")
    assert "visits.xlsx" in refused(tmp_path / "visits.xlsx").what


@pytest.mark.parametrize("name", ["clinic.db", "clinic.sqlite", "clinic.duckdb"])
def test_a_database_of_sqlite_is_known_as_one(name, tmp_path):
    with sqlite3.connect(tmp_path / name) as connection:
        connection.execute("CREATE TABLE visits (age)")
    connection.close()
    problem = refused(tmp_path / name)
    assert "is a database of SQLite" in problem.what and f"sqlite3 -header -csv {name}" in problem.fix


def test_what_the_operating_system_does_not_open_is_said_at_open(tmp_path, monkeypatch):
    assert "File name too long" in refused(tmp_path / f"{'v' * 300}.csv").what
    (tmp_path / "visits.csv").write_text(CSV, encoding="utf-8")
    opened = Path.open

    def closed(path, *arguments, **options):
        if path.name == "visits.csv":
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *arguments, **options)

    monkeypatch.setattr(Path, "open", closed)
    for source in (tmp_path, tmp_path / "visits.csv"):
        problem = refused(source)
        assert "visits.csv cannot be read: Permission denied" in problem.what and "may read it" in problem.fix


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_name_that_is_not_utf8_is_said_at_open(suffix, tmp_path):
    source = tmp_path / os.fsdecode(b"caf\xe9" + suffix.encode())
    source.write_text(CSV, encoding="utf-8")
    problem = refused(source)
    assert "is not UTF-8" in problem.what and problem.what.isascii() and "another name" in problem.fix


def test_a_source_without_tables_is_no_base_for_a_policy(tmp_path):
    with pytest.raises(DataError, match="holds no table that can be read"):
        read_columns(tmp_path)


@pytest.mark.parametrize("name", ["clinic.duckdb", "visits.parquet"])
@pytest.mark.parametrize("content", [b"", b"this is not it", bytes(5000)])
def test_not_what_its_suffix_says(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name)


def test_an_absent_table(tmp_path):
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute("CREATE TABLE stays (patient INTEGER)")
    problem = refused(tmp_path / "clinic.duckdb")
    assert "visits" in problem.what and "stays" in problem.what
    (tmp_path / "data").mkdir()
    assert "visits" in refused(tmp_path / "data").what


def test_no_source_and_no_frames():
    assert "visits" in refused().what


def test_an_absent_column():
    problem = refused(None, {"visits": ARROW.drop_columns(["cost"])})
    assert "cost" in problem.what and "age" in problem.fix


def test_an_absent_unit():
    assert "patient" in refused(None, {"visits": ARROW.drop_columns(["patient"])}).what


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        ("age", pa.array(["1", "2", "3", "4"])),
        ("age", pa.array([1.0, 2.0, 3.0, 4.0])),
        ("cost", pa.array(["1", "2", "3", "4"])),
        ("ward", pa.array([1, 2, 3, 4])),
        ("urgent", pa.array([1, 0, 1, 0])),
        ("day", pa.array(["2025-01-01"] * 4)),
        ("day", pa.array([datetime.time(10)] * 4)),
        ("cost", pa.array([[1.0]] * 4)),
    ],
)
def test_a_column_of_another_type(column, stored):
    table = ARROW.set_column(ARROW.column_names.index(column), column, stored)
    problem = refused(None, {"visits": table})
    assert f"visits.{column}" in problem.what and COLUMNS[column] in problem.what


def test_a_frame_for_an_unknown_table():
    assert "stays" in refused(None, {"visits": ARROW, "stays": ARROW}).what


@pytest.mark.parametrize(
    "frame",
    [
        42,
        "visits.csv",
        None,
        [1, 2],
        object(),
        {"age": [1, 2], "ward": ["A"]},
        {"age": [1, "two"]},
        {"age": [1, 10**30]},
        pandas.DataFrame([[1, 2]], columns=["age", "age"]),
        pandas.DataFrame({"age": [1], "note": [object()]}),
        {},
        [],
    ],
    ids=[
        "int",
        "str",
        "None",
        "list",
        "object",
        "uneven dict",
        "mixed dict",
        "large integers",
        "columns alike",
        "objects",
        "empty dict",
        "empty list",
    ],
)
def test_a_frame_that_is_no_table(frame):
    problem = refused(None, {"visits": frame})
    assert "visits" in problem.what
    assert not isinstance(frame, pandas.DataFrame) or "hand over" not in problem.fix  # which it was


def test_a_frame_of_a_type_that_no_engine_reads():
    odd = pa.array([decimal.Decimal(10) ** 50] * 4, pa.decimal256(60, 0))
    refused(None, {"visits": ARROW.set_column(2, "age", odd)})
