"""What an owner is shown of a source, against counts made by hand."""

from __future__ import annotations

import datetime

import duckdb as database
import pytest

from tacit.engines import duckdb, source_rows
from tacit.engines.source_rows import KeyStep, RowsPerPerson, SourceRows

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


@pytest.mark.slow
def test_texts_by_how_frequent_they_are(rows):
    facts = rows.describe_column("t", "kind")
    assert (facts.rows, facts.present, facts.distinct) == (5, 4, 2)
    assert facts.values == (("tea", 3), ("cake", 1))
    assert rows.count_people("t", "kind", "who") == {"tea": 2, "cake": 1}  # a and b; a
    assert rows.count_people("t", "kind", None) == {"tea": 3, "cake": 1}


@pytest.mark.slow
def test_numbers_with_decimal_commas_lie_in_bars(rows):
    facts = rows.describe_column("t", "amount")
    assert (facts.present, facts.low, facts.high) == (4, 1.5, 100.0)
    # bars of (100 - 1.5)/24 = 4.1: 1.5 and 2.5 in the first, 9 in the second, 100 in the last
    assert facts.bars == (2, 1, *([0] * 21), 1)


@pytest.mark.slow
def test_what_bounds_and_keys_leave_out(rows):
    assert rows.count_outside("t", "amount", ("0", "9")) == 1  # 100; what is missing is not outside
    assert rows.count_outside("t", "amount", ("2", "200")) == 1  # 1.5
    assert rows.count_outside("t", "amount", ("-5", "-1")) == 4
    assert rows.count_outside("t", "when", ("2025-01-02", "2025-01-04")) == 2
    assert rows.count_other("t", "kind", ["cake"]) == 3
    assert rows.count_other("t", "kind", ["tea", "cake"]) == 0
    assert rows.count_other("t", "kind", ["it's"]) == 4


@pytest.mark.slow
def test_rows_of_people(rows):
    assert rows.describe_people("t", "who") == RowsPerPerson(people=2, without=1, median=1, high=3, most=3)


@pytest.mark.slow
def test_groups_have_their_exact_numbers(rows):
    assert rows.measure_groups("t", "kind", ["amount"]) == {"tea": (3, 2.0), "cake": (1, 9.0)}
    assert rows.measure_groups("t", "") == {"": (5,)}


@pytest.mark.slow
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


@pytest.mark.slow
def test_names_that_need_quotes(tmp_path):
    (tmp_path / "t.csv").write_text('"a ""b""; DROP","Größe (cm)"\nx,1\ny,3\n')
    made = SourceRows(tmp_path / "t.csv", duckdb.read_columns(tmp_path / "t.csv"))
    assert made.measure_groups("t", 'a "b"; DROP', ["Größe (cm)"]) == {"x": (1, 1.0), "y": (1, 3.0)}
    made.close()


@pytest.fixture
def shop(tmp_path):
    """40 people order twice each; one of them alone buys a drug, in 25 lines of one order."""
    (tmp_path / "orders.csv").write_text("id,customer_id\n" + "".join(f"{n},{n % 40}\n" for n in range(80)))
    lines = [f"{n},{n % 80},tea" for n in range(160)] + [f"{n},7,drug" for n in range(160, 185)]
    (tmp_path / "items.csv").write_text("id,order_id,product\n" + "\n".join(lines) + "\n")
    marks = [f"{n},{n},common" for n in range(160)] + [f"{n},170,rare" for n in range(25)]
    (tmp_path / "marks.csv").write_text("id,item_id,mark\n" + "\n".join(marks) + "\n")
    made = SourceRows(tmp_path, duckdb.read_columns(tmp_path))
    yield made
    made.close()


@pytest.mark.slow
def test_people_are_counted_over_foreign_keys(shop):
    to_order, to_item = KeyStep("order_id", "orders", "id"), KeyStep("item_id", "items", "id")
    assert shop.count_people("items", "product", "customer_id", [to_order]) == {"tea": 40, "drug": 1}
    assert shop.count_people("marks", "mark", "customer_id", [to_item, to_order]) == {"common": 40, "rare": 1}


@pytest.mark.slow
def test_people_who_cannot_be_counted_are_not_rows(shop):
    assert shop.count_people("items", "product", "customer_id") == {}
    assert shop.count_people("items", "product", "customer_id", [KeyStep("order_id", "orders", "gone")]) == {}
    assert shop.count_people("items", "product", "gone", [KeyStep("order_id", "orders", "id")]) == {}
    assert shop.count_people("items", "product", "customer_id", [KeyStep("order_id", "gone", "id")]) == {}


@pytest.mark.slow
def test_a_key_that_leads_to_several_people_counts_for_none(tmp_path):
    (tmp_path / "orders.csv").write_text("id,customer_id\n" + "".join(f"1,{n}\n" for n in range(30)) + "2,99\n")
    (tmp_path / "items.csv").write_text("order_id,product\n1,drug\n2,tea\n")
    made = SourceRows(tmp_path, duckdb.read_columns(tmp_path))
    found = made.count_people("items", "product", "customer_id", [KeyStep("order_id", "orders", "id")])
    assert found == {"drug": 0, "tea": 1}
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["v", "k", "n", "bin", "held", "key", "onward", "step0", "people", "1"])
def test_no_name_of_a_column_is_taken_for_one_of_ours(tmp_path, name):
    lines = "".join(f"{n % 3},{n},{'ab'[n % 2]}\n" for n in range(12))
    for number, header in enumerate((f"{name},x,y", f"x,{name},y", f"x,y,{name}")):
        (tmp_path / f"t{number}.csv").write_text(f"{header}\n{lines}")
    made = SourceRows(tmp_path, duckdb.read_columns(tmp_path))
    assert made.describe_people("t0", name) == RowsPerPerson(people=3, without=0, median=4, high=4, most=4)
    bars = made.describe_column("t1", name).bars  # 12 values between which 11 steps of 24 / 11 bars lie
    assert sum(bars) == 12 and max(bars) == 1 and bars[0] == bars[-1] == 1
    assert made.describe_column("t2", name).values == (("a", 6), ("b", 6))
    assert made.count_people("t2", name, "x") == {"a": 3, "b": 3}
    assert made.measure_groups("t2", name, ["x"]) == {"a": (6, 1.0), "b": (6, 1.0)}
    step = KeyStep("x", "t0", name)
    assert made.count_people("t2", name, "y", [step]) == {"a": 0, "b": 0}  # each x has both y
    made.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "filled"),
    [
        (["-1.7e308", "1.7e308"], {0: 50, 23: 50}),
        (["1.0"] * 49 + ["2.0"] * 50 + ["1.7e308"], {0: 49, 23: 51}),
        (["5e-324", "1e-323"], {0: 50, 23: 50}),
        (["nan", "inf", "-inf", "1.0", "2.0"], {0: 20, 23: 20}),
    ],
)
def test_floats_of_any_size_lie_in_bars(tmp_path, values, filled):
    (tmp_path / "t.csv").write_text("x\n" + "".join(f"{values[n % len(values)]}\n" for n in range(100)))
    made = SourceRows(tmp_path / "t.csv", duckdb.read_columns(tmp_path / "t.csv"))
    bars = made.describe_column("t", "x").bars
    assert {place: count for place, count in enumerate(bars) if count} == filled
    made.close()
