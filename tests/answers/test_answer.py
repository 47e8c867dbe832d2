"""The forms of an answer."""

from __future__ import annotations

import datetime
import json

import pyarrow as pa
import pytest

from tacit.errors import ParameterError
from tacit.sampling.bits import ReplayBits

ODD = "<script>alert('x')</script>"
GROUPS = {"A": (10, 40), "B": (30, 90), "C": (20, 0)}
SQL = "SELECT ward, COUNT(*) AS n, AVG(age) AS m, COUNT(*) / 3.0 AS x, COUNT(*) > 15 AS large FROM visits GROUP BY ward"


@pytest.fixture
def answer(analyst_of):
    return analyst_of(GROUPS).ask(SQL, epsilon=10)


@pytest.mark.slow
def test_columns_rows_and_values(answer):
    assert answer.columns == ("ward", "n", "m", "x", "large")
    assert len(answer) == 4
    assert answer["n"] == [10, 30, 20, 0]
    assert answer["m"] == [4.0, 3.0, 0.0, None]
    assert next(iter(answer)) == {"ward": "A", "n": 10, "m": 4.0, "x": 10 / 3, "large": False}
    assert [row["ward"] for row in answer] == ["A", "B", "C", ODD]
    assert answer.confidence == 0.95


@pytest.mark.slow
def test_intervals(answer):
    assert answer.interval("ward") == [(None, None)] * 4
    for name in ("n", "x"):
        for value, (low, high) in zip(answer[name], answer.interval(name), strict=True):
            assert low <= value <= high
    with pytest.raises(ParameterError, match="no 'N'"):
        answer.interval("N")
    with pytest.raises(ParameterError):
        answer["missing"]


def test_one_value(analyst_of):
    analyst = analyst_of({(): (7, 21)})
    assert analyst.ask("SELECT COUNT(*) FROM visits", epsilon=1).value == 7
    assert analyst.ask("SELECT AVG(age) FROM visits", epsilon=1).value == 3.0
    for sql in ["SELECT COUNT(*), SUM(age) FROM visits", "SELECT COUNT(*) FROM visits HAVING COUNT(*) > 100"]:
        with pytest.raises(ParameterError, match="not one value"):
            analyst.ask(sql, epsilon=1).value  # noqa: B018 - reading the value is the point


def test_arrow(answer):
    table = answer.to_arrow()
    names = ["ward", "n", "n_low", "n_high", "m", "m_low", "m_high", "x", "x_low", "x_high", "large"]
    assert table.column_names == names
    assert table.schema.field("n").type == table.schema.field("n_low").type == pa.int64()
    assert table.schema.field("m").type == pa.float64()
    assert table.schema.field("large").type == pa.bool_()
    assert table.column("n").to_pylist() == answer["n"]
    assert list(zip(table["n_low"].to_pylist(), table["n_high"].to_pylist(), strict=True)) == answer.interval("n")
    assert answer.to_arrow(intervals=False).column_names == list(answer.columns)


def test_pandas_and_polars(answer):
    frame = answer.to_pandas()
    assert list(frame.columns) == answer.to_arrow().column_names
    assert frame["n"].tolist() == answer["n"]
    assert list(answer.to_pandas(intervals=False).columns) == list(answer.columns)
    table = answer.to_polars()
    assert table.columns == answer.to_arrow().column_names
    assert table["m"].to_list() == answer["m"]
    assert answer.to_polars(intervals=False).columns == list(answer.columns)


def test_names_that_collide_with_the_ends(analyst_of):
    answer = analyst_of(GROUPS).ask(
        "SELECT COUNT(*) AS n, SUM(age) AS n_low, SUM(age) + 1 AS n_high FROM visits GROUP BY ward", epsilon=10
    )
    table = answer.to_arrow()
    assert len(set(table.column_names)) == len(table.column_names) == 9
    assert table["n"].to_pylist() == [10, 30, 20, 0]
    assert table["n_low"].to_pylist() == [40, 90, 0, 0]
    assert table["n_high"].to_pylist() == [41, 91, 1, 1]
    assert next(iter(answer)) == {"n": 10, "n_low": 40, "n_high": 41}


def test_columns_without_names_get_some(analyst_of):
    answer = analyst_of(GROUPS).ask(
        "SELECT COUNT(*), COUNT(*), SUM(age), COUNT(*) + 1 FROM visits GROUP BY ward", epsilon=10
    )
    assert answer.columns == ("count", "count_2", "sum_age", "column_4")


def test_json_round_trip(answer):
    plain = json.loads(answer.to_json())
    assert plain == answer.to_dict()
    assert plain["columns"] == list(answer.columns)
    assert plain["rows"][0]["ward"] == "A"
    assert plain["rows"][0]["n"] == {"value": 10, "low": 10, "high": 10, "bars": "exact"} | {
        "low": answer.interval("n")[0][0],
        "high": answer.interval("n")[0][1],
    }
    assert plain["rows"][3]["m"]["value"] is None
    assert plain["rows"][3]["ward"] == ODD
    assert plain["confidence"] == 0.95
    assert plain["receipt"]["who"] == "ada"
    assert "\n" in answer.to_json(indent=2)


def test_json_is_strict_json(analyst_of):
    answer = analyst_of(GROUPS).ask(
        "SELECT COUNT(*) * 1e199 * 1e199 AS x, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=10
    )

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    json.loads(answer.to_json(), parse_constant=refuse)


def test_dates_in_json(analyst_of):
    answer = analyst_of({datetime.date(2025, 1, 2): (7, 0)}).ask(
        "SELECT day, COUNT(*) AS n FROM visits GROUP BY day", epsilon=10
    )
    assert [row["day"] for row in json.loads(answer.to_json())["rows"]] == ["2025-01-01", "2025-01-02"]


def test_text(answer):
    lines = str(answer).splitlines()
    assert lines[0].split()[:3] == ["ward", "n", "95%"]
    assert lines[2].split()[0] == "A"
    assert "NULL" in str(answer)
    assert f"entry {answer.receipt.entry}" in lines[-1]
    assert all(note in str(answer) for note in answer.notes)
    assert "4 rows" in repr(answer)


def test_confidence_is_not_rounded_up(analyst_of):
    answer = analyst_of(GROUPS).ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1, confidence=0.999)
    assert answer.confidence == 0.999
    for shown in (str(answer), answer._repr_html_(), answer.chart()):
        assert "99.9%" in shown and "100%" not in shown


def test_html_escapes_keys_and_names(analyst_of):
    answer = analyst_of(GROUPS).ask(
        'SELECT ward, COUNT(*) AS "<b>n</b>", SUM(age) + 1 AS "<i onclick=x>" FROM visits GROUP BY ward', epsilon=10
    )
    html = answer._repr_html_()
    for bad in ("<script", "<b>", "<i "):
        assert bad not in html
    assert "&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;" in html
    assert "&lt;b&gt;n&lt;/b&gt;" in html and "&lt;i onclick=x&gt;" in html
    assert html.count("<tr>") == 5


def test_an_answer_without_rows(analyst_of):
    answer = analyst_of(GROUPS).ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward OFFSET 99", epsilon=1)
    assert len(answer) == 0 and list(answer) == [] and answer["n"] == [] and answer.interval("n") == []
    assert answer.to_arrow().num_rows == 0
    assert json.loads(answer.to_json())["rows"] == []
    assert str(answer).startswith("ward")
    assert "<table>" in answer._repr_html_()
    assert answer.chart() == "n: nothing to draw"


def test_chart(answer):
    drawn = answer.chart().splitlines()
    assert drawn[0] == "n, 95% intervals"
    # a title, a line for each group, and the axis
    assert len(drawn) == 6
    assert all("●" in line for line in drawn[1:5])
    assert "approximate" in answer.chart("x").splitlines()[0]
    mean = answer.chart("m").splitlines()
    assert "●" not in mean[4] and "NULL" in mean[4] and "├" in mean[4]
    assert len(answer.chart("n", width=10).splitlines()) == 6
    for missing in ("ward", "nothing"):
        with pytest.raises(ParameterError, match="to draw"):
            answer.chart(missing)


def test_chart_of_values_that_overflow(analyst_of):
    answer = analyst_of(GROUPS).ask(
        "SELECT ward, COUNT(*) * 1e199 * 1e199 AS x FROM visits GROUP BY ward HAVING COUNT(*) > 0", epsilon=10
    )
    assert "NULL" in answer.chart() or "nothing to draw" in answer.chart()


@pytest.mark.slow
def test_a_repeat_shows_the_same(analyst_of):
    analyst = analyst_of(GROUPS, ReplayBits(b"repeat"))
    bob = analyst._curator.analyst("bob")
    first, again, others = analyst.ask(SQL, epsilon=1), analyst.ask(SQL, epsilon=1), bob.ask(SQL, epsilon=1)

    for other in (again, others):
        assert str(other).splitlines()[:-1] == str(first).splitlines()[:-1]
        assert other.to_arrow().equals(first.to_arrow())
        assert other.chart("x") == first.chart("x")
        assert other.to_dict() | {"receipt": None} == first.to_dict() | {"receipt": None}
    assert again.receipt.repeat and str(again.receipt).startswith("a repeat, free")
    assert str(again).splitlines()[-1] != str(first).splitlines()[-1]


def test_a_question_that_means_the_same_is_a_repeat(analyst_of):
    analyst = analyst_of(GROUPS, ReplayBits(b"same"))
    first = analyst.ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward", epsilon=1)
    again = analyst.ask("select v.WARD, count(*) as N from VISITS v group by 1", epsilon=1)
    assert again.receipt.repeat and again["N"] == first["n"]
