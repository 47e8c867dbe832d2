"""Questions about timestamps, from the policy to the answer."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tacit.analyst import Analyst
from tacit.curator.curator import open as open_curator
from tacit.errors import Refused

UTC = datetime.UTC
COLUMNS = {
    "t": {
        "type": "timestamp",
        "lower": datetime.datetime(2025, 3, 29),
        "upper": datetime.datetime(2025, 3, 31, 23, 59, 59, 999_999),
        "zone": "Europe/Zurich",
    },
    "open": {"type": "timestamp"},
    "d": {"type": "date", "lower": "2025-03-29", "upper": "2025-03-31", "zone": "Europe/Zurich"},
}
# Every unit has one row, 15 minutes after the last, from midnight in Zurich on, through the hour that is skipped there.
START = datetime.datetime(2025, 3, 28, 23, tzinfo=UTC)
INSTANTS = [START + datetime.timedelta(minutes=15 * number) for number in range(4 * 71)]


def declare(folder: Path) -> dict[str, Any]:
    return {
        "data": {"engine": "duckdb"},
        "ledger": {"store": str(folder / "l.ledger")},
        "privacy": {"epsilon": 1000.0, "delta": 1e-3},
        "tables": {"visits": {"unit": "who", "max_groups": 1, "max_rows_per_group": 1, "columns": COLUMNS}},
        "analysts": {"ada": {"epsilon": 1000.0, "delta": 1e-3}},
    }


@pytest.fixture(scope="module")
def ada(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Analyst]:
    frame = pa.table(
        {
            "who": pa.array(range(len(INSTANTS))),
            "t": pa.array(INSTANTS, pa.timestamp("us", "UTC")),
            "open": pa.array([moment.replace(tzinfo=None) for moment in INSTANTS], pa.timestamp("ns")),
            "d": pa.array(INSTANTS, pa.timestamp("ms", "UTC")),
        }
    )
    with open_curator(declare(tmp_path_factory.mktemp("stamps")), data={"visits": frame}) as curator:
        yield curator.analyst("ada")


def ask(ada: Analyst, text: str) -> Any:
    return ada.ask(text, epsilon=30)  # noise of more than half a row has a probability below 1e-12


def moment(day: int, *time: int) -> datetime.datetime:
    return datetime.datetime(2025, 3, day, *time)


@pytest.mark.slow
def test_days_between_the_bounds_are_public_keys(ada: Analyst) -> None:
    answer = ask(ada, "SELECT DATE_TRUNC('day', t) AS day, COUNT(*) AS n FROM visits GROUP BY day")
    # The 30th had 23 hours.
    assert list(answer) == [{"day": moment(29), "n": 96}, {"day": moment(30), "n": 92}, {"day": moment(31), "n": 96}]


@pytest.mark.slow
@pytest.mark.parametrize("key", ["CAST(t AS DATE)", "t::date", "d", "CAST(DATE_TRUNC('day', t) AS DATE)"])
def test_a_date_of_a_timestamp_is_the_date_in_the_zone(ada: Analyst, key: str) -> None:
    answer = ask(ada, f"SELECT {key} AS day, COUNT(*) AS n FROM visits GROUP BY 1")
    days = [datetime.date(2025, 3, day) for day in (29, 30, 31)]
    assert list(answer) == [{"day": day, "n": n} for day, n in zip(days, (96, 92, 96), strict=True)]


def test_hours_between_the_bounds_are_public_keys_and_a_skipped_one_is_empty(ada: Analyst) -> None:
    answer = ask(
        ada, "SELECT DATE_TRUNC('hour', t) AS h, COUNT(*) AS n FROM visits GROUP BY h HAVING h < '2025-03-30 04:00'"
    )
    assert len(answer) == 28
    assert {row["h"] for row in answer if row["n"] == 0} == {moment(30, 2)}
    assert {row["n"] for row in answer} == {0, 4}


def test_there_are_as_many_keys_as_the_bounds_say(ada: Analyst) -> None:
    for key, count in (("HOUR(t)", 24), ("DATE_TRUNC('week', t)", 2), ("DATE_TRUNC('month', t)", 1), ("WEEK(t)", 2)):
        assert len(ask(ada, f"SELECT {key} AS k, COUNT(*) AS n FROM visits GROUP BY k")) == count
    # A minute of three days is one of 4,320, more than are listed: so these keys are private.
    answer = ada.ask("SELECT DATE_TRUNC('minute', t) AS m, COUNT(*) FROM visits GROUP BY m", epsilon=1)
    assert any("Groups are shown only where enough units hold them" in note for note in answer.notes)


def test_private_keys_are_shown_where_enough_units_share_them(ada: Analyst) -> None:
    answer = ada.ask("SELECT DATE_TRUNC('day', open) AS day, COUNT(*) AS n FROM visits GROUP BY day", epsilon=30)
    # As it is stored without a zone: four rows are of the 28th, and too few.
    assert {row["day"] for row in answer} >= {moment(29), moment(30), moment(31)}


@pytest.mark.parametrize(
    ("condition", "count"),
    [
        ("t >= '2025-03-30'", 188),
        ("t < DATE '2025-03-30'", 96),
        ("t BETWEEN '2025-03-29 10:00' AND TIMESTAMP '2025-03-29 11:00:00'", 5),
        ("t = '2025-03-29T10:15:00'", 1),
        ("t IN ('2025-03-29 10:15', '2025-03-29 10:16')", 1),
        ("d = t::date", 284),
        ("t > d", 281),
        ("EXTRACT(dow FROM t) = 0", 92),
        ("HOUR(t) = 2", 8),
        ("MINUTE(t) = 45 AND SECOND(t) = 0", 71),
        ("DATE_DIFF('hour', TIMESTAMP '2025-03-29', t) < 24", 96),
        ("DATE_DIFF('day', t, '2025-03-31') = 1", 92),
        ("COALESCE(t, '2025-03-30') > '2025-03-31 23:00'", 3),
        ("DATE_TRUNC('month', open) = '2025-03-01'", 284),
    ],
)
def test_timestamps_are_compared_in_the_zone(ada: Analyst, condition: str, count: int) -> None:
    assert ask(ada, f"SELECT COUNT(*) FROM visits WHERE {condition}").value == count


def test_the_least_the_largest_and_the_middle_are_timestamps(ada: Analyst) -> None:
    answer = ask(ada, "SELECT MIN(t) AS a, MEDIAN(t) AS b, MAX(t) AS c FROM visits")
    (row,) = list(answer)
    assert moment(29) <= row["a"] < moment(29, 12) < row["b"] < moment(31) < row["c"] <= moment(31, 23, 59, 59)
    assert all(value.microsecond == 0 for value in row.values())


def test_an_answer_shows_what_the_clock_showed_everywhere_alike(ada: Analyst) -> None:
    answer = ask(ada, "SELECT DATE_TRUNC('day', t) AS day, COUNT(*) AS n FROM visits GROUP BY day ORDER BY day DESC")
    assert answer.to_arrow().schema.field("day").type == pa.timestamp("us")
    assert str(answer.to_pandas()["day"].dtype) == "datetime64[us]"
    assert answer.to_pandas()["day"][0] == moment(31)
    assert answer.to_polars()["day"].to_list() == [moment(31), moment(30), moment(29)]
    assert json.loads(answer.to_json())["rows"][0]["day"] == "2025-03-31T00:00:00"
    assert "2025-03-31 00:00:00" in str(answer)


def test_a_repeat_is_free_and_the_same(ada: Analyst) -> None:
    text = "SELECT DATE_TRUNC('hour', open) AS h, COUNT(*) AS n FROM visits GROUP BY h"
    first, second = (ada.ask(text, epsilon=20) for _ in range(2))
    assert list(first) == list(second)
    assert not first.receipt.repeat and second.receipt.repeat


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("SELECT AVG(t) FROM visits", "AVG(DATE_DIFF('hour', TIMESTAMP '"),
        ("SELECT SUM(t - open) FROM visits", "DATE_DIFF('hour'"),
        ("SELECT COUNT(*) FROM visits WHERE t > '2025-03-29 10:00+02'", "without an offset"),
        ("SELECT COUNT(*) FROM visits WHERE t > 5", "YEAR(t)"),
        ("SELECT COUNT(*) FROM visits WHERE HOUR(d) = 5", "a date has no time of day"),
        ("SELECT COUNT(*) FROM visits WHERE DATE_TRUNC('hour', d) = d", "a date has no time of day"),
        ("SELECT MEDIAN(open) FROM visits", "ask the owner for lower and upper"),
        ("SELECT COUNT(*) FROM visits WHERE CAST(t AS TEXT) = 'x'", "write TO_CHAR"),
    ],
)
def test_what_is_no_question_about_a_timestamp_says_what_is(ada: Analyst, text: str, fix: str) -> None:
    with pytest.raises(Refused) as caught:
        ada.ask(text, epsilon=1)
    assert fix in caught.value.fix
    if caught.value.suggestion is not None and " open" not in text:  # which has no bounds
        assert ada.explain(caught.value.suggestion, epsilon=1)


def test_a_constant_beyond_the_bounds_is_noted(ada: Analyst) -> None:
    notes = ask(ada, "SELECT COUNT(*) FROM visits WHERE t > '2025-04-01 08:00'").notes
    assert any("t is declared from 2025-03-29 00:00:00 to 2025-03-31 23:59:59.999999" in note for note in notes)


@pytest.mark.slow
def test_ibis_names_and_compares_timestamps(ada: Analyst) -> None:
    ibis = pytest.importorskip("ibis", reason="an extra")
    visits = ada.table("visits")
    for question, count in (
        (visits.filter(visits.t >= datetime.datetime(2025, 3, 30, 10, 7, 30, 500_000)).agg(n=ibis._.count()), 151),
        (visits.filter(visits.t.between("2025-03-29 10:00", "2025-03-29 11:00")).agg(n=ibis._.count()), 5),
    ):
        assert ask(ada, question).value == count
    assert len(ask(ada, visits.group_by(k=visits.t.truncate("D")).agg(n=ibis._.count()))) == 3
    assert len(ask(ada, visits.group_by(k=visits.t.hour()).agg(n=ibis._.count()))) == 24
