"""Every kind of source gives the same answers; what cannot be read is said at open; what breaks later fails alike."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tacit
from tacit.curator.curator import shapes
from tacit.engines.duckdb import DuckDB, columns_of
from tacit.errors import Code, DataError, Failed
from tacit.ledger.entries import Kind
from tacit.policy.load import load
from tacit.query.types import Type

COLUMNS: dict[str, Any] = {
    "ward": {"type": "text", "values": ["A", "B", "Ost, flügel"]},
    "age": {"type": "int", "lower": 0, "upper": 120},
    "cost": {"type": "float", "lower": 0, "upper": 100, "step": 0.5},
    "urgent": {"type": "bool"},
    "day": {"type": "date"},
}
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
SQL = """
SELECT ward, COUNT(*) AS n, SUM(age) AS a, SUM(cost) AS c, COUNT(*) FILTER (WHERE urgent) AS u,
       COUNT(*) FILTER (WHERE day >= '2025-02-01') AS d
FROM visits GROUP BY ward ORDER BY ward
"""
ROWS = [("A", 2, 70, 1.5, 1, 0), ("B", 1, 0, 2.5, 0, 1), ("Ost, flügel", 1, 50, 3.0, 1, 1)]
CSV = """patient,ward,age,cost,urgent,day
p1,A,30,1.5,true,2025-01-01
p2,A,40,,false,
p3,B,,2.5,,2025-02-01
p4,"Ost, flügel",50,3.0,true,2025-03-01
"""


def policy_with(source: Path | None = None, columns: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    table = {"unit": "patient", "max_groups": 3, "max_rows_per_group": 5, "columns": columns or COLUMNS}
    policy = {
        "privacy": {"epsilon": 100},
        "tables": {"visits": table | more.pop("table", {})} | more.pop("tables", {}),
        "analysts": {"ada": {"epsilon": 100}},
    }
    if source is not None:
        policy["data"] = {"source": str(source)}
    return policy | more


@pytest.fixture
def rows_of(quiet, tmp_path):
    """The answer's rows over a source or frames."""

    def run(source: Path | None = None, frames: dict[str, Any] | None = None, sql: str = SQL, **more: Any) -> Any:
        policy = load(policy_with(source, **more))
        engine = DuckDB(shapes(policy), policy.source, frames)
        try:
            ledger = tmp_path / f"ledger {len(list(tmp_path.iterdir()))}"
            return [tuple(row.values()) for row in quiet(policy, engine, ledger).ask(sql, epsilon=1)]
        finally:
            engine.close()

    return run


def database(path: Path) -> Path:
    with duckdb.connect(str(path)) as connection:
        connection.register("handed", ARROW)
        connection.execute("CREATE TABLE visits AS SELECT * FROM handed")
        connection.execute("CREATE VIEW urgent_visits AS SELECT * FROM visits WHERE urgent")
        connection.execute("CREATE SCHEMA other; CREATE TABLE other.elsewhere AS SELECT * FROM visits")
    return path


@pytest.mark.parametrize("suffix", [".duckdb", ".db", ".ddb"])
def test_a_table_of_a_database(suffix, rows_of, tmp_path):
    assert rows_of(database(tmp_path / f"clinic{suffix}")) == ROWS


def test_views_and_other_schemas_of_a_database(rows_of, tmp_path):
    source = database(tmp_path / "it's a clinic.duckdb")
    table = policy_with()["tables"]["visits"]
    more = {"tables": {"urgent_visits": table, "elsewhere": table}}
    assert rows_of(source, sql="SELECT COUNT(*), SUM(age) FROM urgent_visits", **more) == [(2, 80)]
    assert rows_of(source, sql="SELECT COUNT(*), SUM(age) FROM elsewhere", **more) == [(4, 120)]


def test_a_parquet_file(rows_of, tmp_path):
    pq.write_table(ARROW, tmp_path / "visits.parquet")
    assert rows_of(tmp_path / "visits.parquet") == ROWS


def test_a_lone_file_may_have_another_name(rows_of, tmp_path):
    pq.write_table(ARROW, tmp_path / "export 'final'.parquet")
    (tmp_path / "export.csv").write_text(CSV, encoding="utf-8")
    assert rows_of(tmp_path / "export 'final'.parquet") == ROWS
    assert rows_of(tmp_path / "export.csv") == ROWS


def test_a_folder_of_parquet_csv_and_parts(rows_of, tmp_path):
    folder = tmp_path / "data"
    (folder / "parts").mkdir(parents=True)
    (folder / "not a table").mkdir()
    (folder / "readme.txt").write_text("no table")
    pq.write_table(ARROW, folder / "visits.parquet")
    (folder / "lines.csv").write_text(CSV, encoding="utf-8")
    pq.write_table(ARROW.slice(0, 1), folder / "parts" / "1.parquet")
    pq.write_table(ARROW.slice(1), folder / "parts" / "2.parquet")
    table = policy_with()["tables"]["visits"]
    more = {"tables": {"lines": table, "parts": table}}
    assert rows_of(folder, **more) == ROWS
    assert rows_of(folder, sql=SQL.replace("visits", "lines"), **more) == ROWS
    assert rows_of(folder, sql=SQL.replace("visits", "parts"), **more) == ROWS


def test_names_of_tables_and_columns_in_any_case(rows_of, tmp_path):
    renamed = ARROW.rename_columns([name.upper() for name in ARROW.column_names])
    (tmp_path / "data").mkdir()
    pq.write_table(renamed, tmp_path / "data" / "VISITS.parquet")
    assert rows_of(tmp_path / "data") == ROWS


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_csv_file(ending, rows_of, tmp_path):
    (tmp_path / "visits.csv").write_bytes(CSV.replace("\n", ending).encode())
    assert rows_of(tmp_path / "visits.csv") == ROWS


def test_a_csv_file_with_a_byte_order_mark(rows_of, tmp_path):
    (tmp_path / "visits.csv").write_text(CSV, encoding="utf-8-sig")
    assert rows_of(tmp_path / "visits.csv") == ROWS


def test_a_csv_file_without_a_last_line_end(rows_of, tmp_path):
    (tmp_path / "visits.csv").write_text(CSV.rstrip(), encoding="utf-8")
    assert rows_of(tmp_path / "visits.csv") == ROWS


def test_quotes_commas_and_lines_inside_csv_cells(rows_of, tmp_path):
    keys = ["a,b", 'say "hi"', "two\nlines", "日本"]
    (tmp_path / "visits.csv").write_text(
        'ward,patient\n"a,b",1\n"say ""hi""",2\n"two\nlines",3\n日本,4\n"",5\n,6\n', encoding="utf-8"
    )
    columns = {"ward": {"type": "text", "values": keys}}
    sql = "SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward"
    assert rows_of(tmp_path / "visits.csv", sql=sql, columns=columns) == [(key, 1) for key in keys]


def test_csv_cells_that_do_not_fit_their_type_are_null(rows_of, tmp_path):
    cells = {
        "age": ["12", "twelve", "", "99999999999999999999", "12 years"],
        "cost": ["2.5", "2,5", "", "1e999x", "two"],
        "urgent": ["true", "perhaps", "", "2025-01-01", "-"],
        "day": ["2025-01-01", "2025-13-01", "", "31.12.2025", "soon"],
    }
    lines = [f"{n},{','.join(chr(34) + cells[c][n] + chr(34) for c in cells)}" for n in range(5)]
    (tmp_path / "visits.csv").write_text("\n".join([f"patient,{','.join(cells)}", *lines]) + "\n")
    columns = {name: column for name, column in COLUMNS.items() if name != "ward"}
    sql = "SELECT COUNT(*), COUNT(age), COUNT(cost), COUNT(urgent), COUNT(day), SUM(age), SUM(cost) FROM visits"
    # Of five rows only the first has cells that can be read.
    assert rows_of(tmp_path / "visits.csv", sql=sql, columns=columns) == [(5, 1, 1, 1, 1, 12, 2.5)]


def test_csv_units_that_are_empty_are_dropped(rows_of, tmp_path):
    (tmp_path / "visits.csv").write_text("patient,ward\n1,A\n,A\n1,A\n", encoding="utf-8")
    columns = {"ward": COLUMNS["ward"]}
    # Two rows have a unit; with r = 1 one of them is kept.
    sql = "SELECT COUNT(*) FROM visits"
    assert rows_of(tmp_path / "visits.csv", sql=sql, columns=columns) == [(2,)]
    assert rows_of(tmp_path / "visits.csv", sql=sql, columns=columns, table={"max_rows_per_group": 1}) == [(1,)]


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
    shape = shapes(load(policy_with(columns={"ward": COLUMNS["ward"]})))
    with pytest.raises(DataError) as raised:
        DuckDB(shape, tmp_path / "visits.csv")
    assert raised.value.code is Code.DATA and raised.value.fix
    assert "visits.csv" in str(raised.value)


FRAMES = {
    "pandas": lambda: ARROW.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get),
    "pandas with categories": lambda: ARROW.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get).astype(
        {"ward": "category"}
    ),
    "polars": lambda: polars.DataFrame(DATA),
    "arrow": lambda: ARROW,
    "arrow with dictionaries": lambda: ARROW.set_column(1, "ward", ARROW["ward"].dictionary_encode()),
    "arrow batches": lambda: ARROW.to_batches()[0],
    "dict of lists": lambda: DATA,
}


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_handed_over(kind, rows_of):
    assert rows_of(frames={"visits": FRAMES[kind]()}) == ROWS


@pytest.mark.parametrize("kind", FRAMES)
def test_tables_handed_to_open(kind, tmp_path):
    # Epsilon 99: the noise of a count has scale k r/epsilon = 15/99, so it is 0 but once in 730 draws.
    policy = policy_with(ledger={"store": str(tmp_path / "ledger")})
    with tacit.open(policy, data={"visits": FRAMES[kind]()}) as curator:
        answer = curator.analyst("ada").ask("SELECT COUNT(*) FROM visits", epsilon=99)
    assert abs(answer.value - 4) <= 10


def test_a_frame_wins_over_the_source(rows_of, tmp_path):
    pq.write_table(ARROW.slice(0, 1), tmp_path / "visits.parquet")
    assert rows_of(tmp_path / "visits.parquet", {"visits": ARROW}) == ROWS


def test_a_frame_changed_afterwards_changes_nothing(quiet, tmp_path):
    frame = ARROW.to_pandas(types_mapper={pa.int64(): pandas.Int64Dtype()}.get)
    lists = {name: list(values) for name, values in DATA.items()}
    for number, data in enumerate([frame, lists]):
        policy = load(policy_with())
        engine = DuckDB(shapes(policy), None, {"visits": data})
        analyst = quiet(policy, engine, tmp_path / f"ledger {number}")
        if data is frame:
            frame.loc[:, "age"] = 0
        else:
            lists["age"][:] = [0, 0, 0, 0]
        assert analyst.ask("SELECT SUM(age) FROM visits", epsilon=1).value == 120
        engine.close()


def test_narrow_and_wide_number_types(rows_of):
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
    sql = "SELECT COUNT(*), SUM(age), SUM(cost) FROM visits"
    assert rows_of(frames={"visits": table}, sql=sql) == [(3, 6, 1.5)]
    wide = table.set_column(1, "age", pa.array([1, 2**63, 2**64 - 1], pa.uint64()))
    # What does not fit 64 signed bits is read as NULL.
    assert rows_of(frames={"visits": wide}, sql="SELECT COUNT(age), SUM(age) FROM visits") == [(1, 1)]


def test_an_empty_table(rows_of):
    assert rows_of(frames={"visits": ARROW.slice(0, 0)}) == [
        ("A", 0, 0, 0.0, 0, 0),
        ("B", 0, 0, 0.0, 0, 0),
        ("Ost, flügel", 0, 0, 0.0, 0, 0),
    ]


def test_names_and_types_of_a_source(tmp_path):
    found = columns_of(database(tmp_path / "clinic.duckdb"))
    kinds = [Type.TEXT, Type.TEXT, Type.INT, Type.FLOAT, Type.BOOL, Type.DATE]
    assert found["visits"] == list(zip(DATA, kinds, strict=True))
    assert set(found) == {"visits", "urgent_visits", "elsewhere"}


def test_the_source_is_opened_read_only(tmp_path, rows_of):
    source = database(tmp_path / "clinic.duckdb")
    before = source.read_bytes()
    opened = load(policy_with(source))
    engine = DuckDB(shapes(opened), opened.source)
    with pytest.raises(duckdb.Error):
        engine._connection.execute("DELETE FROM source.main.visits")
    # A second process reads the same file while the first holds it.
    code = "import sys, pathlib, tacit.engines.duckdb as d; print(*d.columns_of(pathlib.Path(sys.argv[1])))"
    run = subprocess.run([sys.executable, "-c", code, str(source)], capture_output=True, text=True, check=False)
    assert "visits" in run.stdout.split(), run.stderr
    assert rows_of(source) == ROWS
    engine.close()
    assert source.read_bytes() == before
    assert not list(tmp_path.glob("*.wal"))


def refused(policy: dict[str, Any], frames: dict[str, Any] | None = None) -> DataError:
    loaded = load(policy)
    with pytest.raises(DataError) as raised:
        DuckDB(shapes(loaded), loaded.source, frames)
    assert raised.value.code is Code.DATA
    assert raised.value.fix
    return raised.value


def test_a_missing_source(tmp_path):
    assert "nowhere.duckdb" in refused(policy_with(tmp_path / "nowhere.duckdb")).what


def test_an_unknown_kind_of_file(tmp_path):
    (tmp_path / "visits.xlsx").write_bytes(b"PK")
    assert "visits.xlsx" in refused(policy_with(tmp_path / "visits.xlsx")).what


@pytest.mark.parametrize("name", ["clinic.duckdb", "visits.parquet"])
@pytest.mark.parametrize("content", [b"", b"this is not it", bytes(5000)])
def test_not_what_its_suffix_says(name, content, tmp_path):
    (tmp_path / name).write_bytes(content)
    refused(policy_with(tmp_path / name))


def test_an_absent_table(tmp_path):
    with duckdb.connect(str(tmp_path / "clinic.duckdb")) as connection:
        connection.execute("CREATE TABLE stays (patient INTEGER)")
    problem = refused(policy_with(tmp_path / "clinic.duckdb"))
    assert "visits" in problem.what and "stays" in problem.what
    (tmp_path / "data").mkdir()
    assert "visits" in refused(policy_with(tmp_path / "data")).what


def test_no_source_and_no_frames():
    assert "visits" in refused(policy_with()).what


def test_an_absent_column():
    problem = refused(policy_with(), {"visits": ARROW.drop_columns(["cost"])})
    assert "cost" in problem.what and "age" in problem.fix


def test_an_absent_unit():
    assert "patient" in refused(policy_with(), {"visits": ARROW.drop_columns(["patient"])}).what


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        ("age", pa.array(["1", "2", "3", "4"])),
        ("age", pa.array([1.0, 2.0, 3.0, 4.0])),
        ("cost", pa.array(["1", "2", "3", "4"])),
        ("ward", pa.array([1, 2, 3, 4])),
        ("urgent", pa.array([1, 0, 1, 0])),
        ("day", pa.array(["2025-01-01"] * 4)),
        ("day", pa.array([datetime.datetime(2025, 1, 1)] * 4)),
        ("cost", pa.array([[1.0]] * 4)),
    ],
)
def test_a_column_of_another_type(column, stored):
    table = ARROW.set_column(ARROW.column_names.index(column), column, stored)
    problem = refused(policy_with(), {"visits": table})
    assert f"visits.{column}" in problem.what and COLUMNS[column]["type"] in problem.what


def test_a_frame_for_an_unknown_table():
    assert "stays" in refused(policy_with(), {"visits": ARROW, "stays": ARROW}).what


@pytest.mark.parametrize(
    "frame",
    [42, "visits.csv", None, [1, 2], object(), {"age": [1, 2], "ward": ["A"]}, {"age": [1, "two"]}, {}, []],
    ids=["int", "str", "None", "list", "object", "uneven dict", "mixed dict", "empty dict", "empty list"],
)
def test_a_frame_that_is_no_table(frame):
    assert "visits" in refused(policy_with(), {"visits": frame}).what


def test_a_frame_of_a_type_that_no_engine_reads():
    odd = pa.array([decimal.Decimal(10) ** 50] * 4, pa.decimal256(60, 0))
    refused(policy_with(), {"visits": ARROW.set_column(2, "age", odd)})


@pytest.fixture
def parquet(quiet, tmp_path):
    """An analyst over a folder of two Parquet files, and the folder."""
    folder = tmp_path / "data"
    folder.mkdir()
    big = pa.concat_tables([ARROW] * 5000)
    pq.write_table(big, folder / "visits.parquet")
    pq.write_table(ARROW, folder / "stays.parquet")
    table = policy_with()["tables"]["visits"]
    policy = load(policy_with(folder, tables={"stays": table}))
    engine = DuckDB(shapes(policy), policy.source)
    analyst = quiet(policy, engine, tmp_path / "ledger")
    yield analyst, folder
    engine.close()


def delete(file: Path) -> None:
    file.unlink()


def truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def garble(file: Path) -> None:
    # The footer is gone too, or the reader would not notice.
    file.write_bytes(b"x" * file.stat().st_size)


def other_columns(file: Path) -> None:
    pq.write_table(pa.table({"x": [1]}), file)


@pytest.mark.parametrize("harm", [delete, truncate, garble, other_columns])
def test_a_source_that_breaks_after_open(harm, parquet):
    analyst, folder = parquet
    harm(folder / "visits.parquet")
    with pytest.raises(Failed) as raised:
        analyst.ask("SELECT COUNT(*), SUM(age) FROM visits", epsilon=2)
    # The text is the same whatever went wrong, and nothing hangs on to the cause.
    assert str(raised.value) == str(Failed())
    assert raised.value.__cause__ is None and raised.value.__context__ is None
    assert str(folder) not in str(raised.value)
    entries = list(analyst._curator.ledger.entries())
    assert [entry.kind for entry in entries] == [Kind.OPEN, Kind.RESERVE, Kind.FAIL]
    assert entries[-1].claim == entries[-2].sequence
    # The charge stays: 100 - 2.
    assert analyst.budget.remaining == 98
    assert analyst.ask("SELECT COUNT(*) FROM stays", epsilon=1).value == 4
    assert analyst.budget.remaining == 97


def test_a_source_that_comes_back(parquet):
    analyst, folder = parquet
    kept = (folder / "stays.parquet").read_bytes()
    delete(folder / "stays.parquet")
    with pytest.raises(Failed):
        analyst.ask("SELECT COUNT(*) FROM stays", epsilon=1)
    (folder / "stays.parquet").write_bytes(kept)
    assert analyst.ask("SELECT COUNT(*) FROM stays", epsilon=1).value == 4
