"""Names that dialects have for several things mean what the declared dialect has."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pytest

from tacit.aggregates.registry import read_question
from tacit.engines.evaluate import evaluate
from tacit.errors import Refused
from tacit.plan.bounds import bind
from tacit.query.dialects import QuestionDialect
from tacit.query.nodes import Scalar

POSTGRES, DUCKDB, BIGQUERY, SNOWFLAKE = QuestionDialect


def read(text: str, dialect: QuestionDialect) -> Scalar:
    return read_question(f"SELECT {text} AS x FROM t", dialect=dialect).outputs[0].scalar


def value(text: str, dialect: QuestionDialect) -> object:
    return evaluate(bind(read(text, dialect), lambda node: None, rows=False).scalar, {})


# 2025-06-29 is a Sunday.
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("7 / 2", (3, 3.5, 3.5, 3.5)),
        ("-7 / 2", (-3, -3.5, -3.5, -3.5)),
        ("7 / 2.0", (3.5, 3.5, 3.5, 3.5)),
        ("FLOOR(7 / 2)", (3, 3, 3, 3)),
        ("7 // 2", (3, 3, 3, 3)),
        ("LOG(2, 8)", (3, 3, 1 / 3, 3)),
        ("EXTRACT(DAYOFWEEK FROM DATE '2025-06-29')", (0, 0, 1, 0)),
        ("DAYOFWEEK(DATE '2025-06-30')", (1, 1, 2, 1)),
        ("EXTRACT(dow FROM DATE '2025-06-29')", (0, 0, 0, 0)),
    ],
)
def test_values(text: str, values: tuple[float, ...]) -> None:
    found = [value(text, dialect) for dialect in QuestionDialect]
    assert found == pytest.approx(list(values), abs=1e-12)


def test_the_natural_logarithm_is_bigquerys() -> None:
    assert value("LOG(100)", POSTGRES) == value("LOG(100)", DUCKDB) == 2
    assert value("LOG(100)", BIGQUERY) == value("LN(100)", BIGQUERY)
    with pytest.raises(Refused):
        read("LOG(100)", SNOWFLAKE)


def test_weeks_of_bigquery_start_on_sunday() -> None:
    week = "DATE_TRUNC(d, WEEK)"
    assert read(week, BIGQUERY) == read("DATE_TRUNC(d, WEEK(SUNDAY))", BIGQUERY)
    assert read("DATE_TRUNC(d, ISOWEEK)", BIGQUERY) == read(week, SNOWFLAKE) == read("DATE_TRUNC('week', d)", POSTGRES)
    sunday, monday = "DATE '2025-06-29'", "DATE '2025-06-30'"
    assert value(f"DATE_DIFF({sunday}, DATE '2025-06-28', WEEK)", BIGQUERY) == 1
    assert value(f"DATE_DIFF({monday}, {sunday}, WEEK)", BIGQUERY) == 0
    assert value(f"DATE_DIFF({monday}, {sunday}, ISOWEEK)", BIGQUERY) == 1
    assert value(f"DATE_DIFF({monday}, {sunday}, WEEK)", POSTGRES) == 1


def test_snowflake_cuts_names_and_matches_whole_texts() -> None:
    assert read("DAYNAME(d)", SNOWFLAKE) != read("DAYNAME(d)", DUCKDB)
    assert read("REGEXP_LIKE(x, 'a|b')", SNOWFLAKE) == read("x ~ '^(a|b)$'", POSTGRES)
    assert read("REGEXP_LIKE(x, 'a|b')", POSTGRES) == read("x ~ 'a|b'", POSTGRES)


def test_decimals_are_added_as_decimals() -> None:
    for text, number in [("0.06 + 0.01", "0.07"), ("1 - 0.9", "0.1"), ("0.1 * 3", "0.3"), ("2 * (0.1 + 0.2)", "0.6")]:
        found = read(text, POSTGRES)
        assert found.value == Fraction(number), text  # type: ignore[union-attr]  # of a literal


def test_a_reader_is_told_what_depends_on_the_dialect() -> None:
    assert "base 10" in read_question("SELECT LOG(AVG(x)) FROM t").notes[0]
    assert "natural" in read_question("SELECT LOG(AVG(x)) FROM t", dialect=BIGQUERY).notes[0]
    assert not read_question("SELECT LN(AVG(x)) FROM t", datetime.date(2025, 1, 1)).notes
