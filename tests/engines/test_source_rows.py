"""What an owner is shown of a source, against counts made by hand."""

from __future__ import annotations

import datetime

import duckdb as database
import pytest

from tacit.engines import duckdb, source_rows
from tacit.engines.source_rows import RowsPerPerson, SourceRows

HEADER = "who;when;kind;amount;at\n"


@pytest.fixture
def rows(tmp_path):
    # a has three rows, b one, and one row is nobody's; an amount is missing
    lines = [
        "a;2025-01-01;tea;1,50;2025-01-01 10:00:00",
        "a;2025-01-02;tea;2,50;2025-01-01 10:00:01",
        "a;2025-01-03;cake;9,00;2025-01-01 10:00:02",
        "b;2025-01-04;tea;;2025-01-01 10:00:03",
        ";2025-01-05;;100,00;2025-01-01 10:00:04",
    ]
    (tmp_path / "t.csv").write_text(HEADER + "\n".join(lines) + "\n")
    made = SourceRows(tmp_path / "t.csv", duckdb.read_columns(tmp_path / "t.csv"))
    yield made
    made.close()


def test_texts_by_how_frequent_they_are(rows):
    facts = rows.describe_column("t", "kind")
    assert (facts.rows, facts.present, facts.distinct) == (5, 4, 2)
    assert facts.values == (("tea", 3), ("cake", 1))
    assert rows.count_people("t", "kind", "who") == {"tea": 2, "cake": 1}  # a and b; a
    assert rows.count_people("t", "kind", None) == {"tea": 3, "cake": 1}


def test_numbers_with_decimal_commas_lie_in_bars(rows):
    facts = rows.describe_column("t", "amount")
    assert (facts.present, facts.low, facts.high) == (4, 1.5, 100.0)
    # bars of (100 - 1.5)/24 = 4.1: 1.5 and 2.5 in the first, 9 in the second, 100 in the last
    assert facts.bars == (2, 1, *([0] * 21), 1)


def test_what_bounds_and_keys_leave_out(rows):
    assert rows.count_outside("t", "amount", ("0", "9")) == 1  # 100; what is missing is not outside
    assert rows.count_outside("t", "amount", ("2", "200")) == 1  # 1.5
    assert rows.count_outside("t", "amount", ("-5", "-1")) == 4
    assert rows.count_outside("t", "when", ("2025-01-02", "2025-01-04")) == 2
    assert rows.count_other("t", "kind", ["cake"]) == 3
    assert rows.count_other("t", "kind", ["tea", "cake"]) == 0
    assert rows.count_other("t", "kind", ["it's"]) == 4


def test_rows_of_people(rows):
    assert rows.describe_people("t", "who") == RowsPerPerson(people=2, without=1, median=1, high=3, most=3)


def test_groups_have_their_exact_numbers(rows):
    assert rows.measure_groups("t", "kind", ["amount"]) == {"tea": (3, 2.0), "cake": (1, 9.0)}
    assert rows.measure_groups("t", "") == {"": (5,)}


def test_frames_have_the_values_as_they_were(rows):
    frame = rows.load_frames(["t"])["t"]
    assert frame["at"].to_pylist()[0].replace(tzinfo=None) == datetime.datetime(2025, 1, 1, 10)
    assert frame["amount"].to_pylist() == [1.5, 2.5, 9.0, None, 100.0]


def test_only_the_first_rows_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr(source_rows, "MOST_ROWS", 10)
    database.sql("COPY (SELECT range AS x FROM range(50)) TO '{}'".format(tmp_path / "t.parquet"))
    made = SourceRows(tmp_path / "t.parquet", duckdb.read_columns(tmp_path / "t.parquet"))
    assert made.rows == {"t": 10}
    made.close()


def test_names_that_need_quotes(tmp_path):
    (tmp_path / "t.csv").write_text('"a ""b""; DROP","Größe (cm)"\nx,1\ny,3\n')
    made = SourceRows(tmp_path / "t.csv", duckdb.read_columns(tmp_path / "t.csv"))
    assert made.measure_groups("t", 'a "b"; DROP', ["Größe (cm)"]) == {"x": (1, 1.0), "y": (1, 3.0)}
    made.close()
