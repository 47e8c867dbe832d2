"""Names that dialects have for several things mean what the declared dialect has."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from fractions import Fraction

import pytest

from tacit.aggregates.registry import read_question
from tacit.engines.evaluate import evaluate
from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import bind
from tacit.query.dialects import QuestionDialect
from tacit.query.nodes import Scalar

POSTGRES, DUCKDB, BIGQUERY, SNOWFLAKE, MYSQL = QuestionDialect


def read(text: str, dialect: QuestionDialect) -> Scalar:
    return read_question(f"SELECT {text} AS x FROM t", dialect=dialect).outputs[0].scalar


def value(text: str, dialect: QuestionDialect) -> object:
    return evaluate(bind(read(text, dialect), lambda node: None, rows=False).scalar, {})


# 2025-06-29 is a Sunday.
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("7 / 2", (3, 3.5, 3.5, 3.5, 3.5)),
        ("-7 / 2", (-3, -3.5, -3.5, -3.5, -3.5)),
        ("7 / 2.0", (3.5, 3.5, 3.5, 3.5, 3.5)),
        ("FLOOR(7 / 2)", (3, 3, 3, 3, 3)),
        ("7 // 2", (3, 3, 3, 3, 3)),
        ("LOG(2, 8)", (3, 3, 1 / 3, 3, 3)),
        ("EXTRACT(DAYOFWEEK FROM DATE '2025-06-29')", (0, 0, 1, 0, 0)),
        ("DAYOFWEEK(DATE '2025-06-30')", (1, 1, 2, 1, 2)),
        ("EXTRACT(dow FROM DATE '2025-06-29')", (0, 0, 0, 0, 0)),
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


def test_double_quotes_are_around_texts_in_bigquery_and_mysql() -> None:
    for dialect in (BIGQUERY, MYSQL):
        assert value('"it\'s"', dialect) == "it's" and value('"a""b"', dialect) == 'a"b'
        assert read("`a b`", dialect) == read('"a b"', POSTGRES)
        text = 'SELECT COUNT(*) AS n FROM t # all of them\nWHERE s = "flu"'
        assert read_question(text, dialect=dialect).where == read("s = 'flu'", POSTGRES)
        for unclear in ("'it\\'s'", '"a\\"b"'):
            with pytest.raises(Refused, match="backslash"):
                read(unclear, dialect)
    assert read_question("SELECT COUNT(*) AS 'all of it' FROM t", dialect=MYSQL).outputs[0].name == "all of it"
    with pytest.raises(Refused):
        read_question("SELECT COUNT(*) AS 'all of it' FROM t", dialect=POSTGRES)


def test_projects_of_bigquery_have_dashes() -> None:
    plain = read_question("SELECT COUNT(*) AS n FROM orders AS o", dialect=BIGQUERY)
    for name in ("bigquery-public-data.shop.orders", "my-project.orders", "`my-project`.shop.orders"):
        found = read_question(f"SELECT COUNT(*) AS n FROM {name} AS o", dialect=BIGQUERY)
        assert found.source == plain.source
    for text, dialect in (("my-project.orders", POSTGRES), ("my - project.orders", BIGQUERY)):
        with pytest.raises(Refused):
            read_question(f"SELECT COUNT(*) AS n FROM {text}", dialect=dialect)


def test_what_mysql_means() -> None:
    assert value("LOG(100)", MYSQL) == value("LN(100)", MYSQL)
    assert value("DATE_FORMAT(DATE '2025-06-29', '%Y-%m %b %e')", MYSQL) == "2025-06 Jun 29"
    assert value("DATEDIFF('2025-07-01', '2025-06-29')", MYSQL) == 2
    assert value("IF(1 > 2, 'a', 'b')", MYSQL) == "b"
    assert read("a <=> b", MYSQL) == read("a IS NOT DISTINCT FROM b", POSTGRES)
    for text in ("a || b", "WEEK(d)", "YEARWEEK(d)"):
        with pytest.raises(Refused):
            read(text, MYSQL)
    assert read("WEEKOFYEAR(d)", MYSQL) == read("EXTRACT(WEEK FROM d)", POSTGRES)
    found = read_question("SELECT COUNT(*) AS n FROM t LIMIT 2, 5", dialect=MYSQL)
    assert (found.limit, found.offset) == (5, 2)


# From https://dev.mysql.com/doc/refman/8.4/en/date-and-time-functions.html, and by its rule: units that are complete.
@pytest.mark.parametrize(
    ("unit", "earlier", "later", "count"),
    [
        ("MONTH", "2003-02-01", "2003-05-01", 3),
        ("YEAR", "2002-05-01", "2001-01-01", -1),
        ("MINUTE", "2003-02-01", "2003-05-01 12:05:55", 128885),
        ("MONTH", "2024-01-31", "2024-02-29", 0),
        ("MONTH", "2024-01-31 12:00:00", "2024-03-31 11:59:59", 1),
        ("MONTH", "2024-01-31 12:00:00", "2024-03-31 12:00:00", 2),
        ("YEAR", "2000-02-29", "2001-02-28", 0),
        ("DAY", "2024-01-01 18:00:00", "2024-01-02 17:59:59", 0),
        ("HOUR", "2024-01-01 18:30:00", "2024-01-01 20:29:59", 1),
    ],
)
def test_whole_units_lie_between_two_times_in_mysql(unit: str, earlier: str, later: str, count: int) -> None:
    one, other = (f"TIMESTAMP '{moment if ' ' in moment else moment + ' 00:00:00'}'" for moment in (earlier, later))
    assert value(f"TIMESTAMPDIFF({unit}, {one}, {other})", MYSQL) == count


@pytest.mark.parametrize("dialect", QuestionDialect)
def test_null_among_arguments(dialect: QuestionDialect) -> None:
    is_null = dialect in {BIGQUERY, SNOWFLAKE, MYSQL}
    absent = {"GREATEST(NULLIF(1, 1), 5)": 5, "LEAST(3, NULLIF(1, 1))": 3, "CONCAT('a', NULLIF('b', 'b'))": "a"}
    for text, otherwise in absent.items():
        assert value(text, dialect) == (None if is_null else otherwise)
    assert value("GREATEST(2, 1 + 4)", dialect) == 5 and value("CONCAT('a', 'b')", dialect) == "ab"


def test_conditions_are_added_where_they_are_numbers() -> None:
    for dialect in (DUCKDB, MYSQL):
        counted = read("SUM(CASE WHEN x > 1 THEN 1 ELSE 0 END)", dialect)
        assert read("SUM(x > 1)", dialect) == counted
        assert read("AVG(x > 1 AND y IS NULL)", dialect) == read("AVG(CAST(x > 1 AND y IS NULL AS INT))", dialect)
    assert read("SUM(x > 1)", POSTGRES) != counted


@pytest.mark.parametrize(
    ("text", "dialects"),
    [
        ("x ^ 2", (BIGQUERY, MYSQL)),  # bits
        ("EXTRACT(WEEK FROM d)", (BIGQUERY, MYSQL)),  # from Sunday
        ("DATE_FORMAT(d, '%u')", QuestionDialect),
        ("DATE_FORMAT(d, '%V')", QuestionDialect),
        ("TIMEDIFF(a, b)", (MYSQL,)),  # a time
        ("LENGTH(s)", (MYSQL,)),  # bytes
        ("REPLACE(s, 'a\\nb', 'x')", (BIGQUERY, SNOWFLAKE, MYSQL)),  # a line break
        ("s = 'it\\'' -- '", (BIGQUERY, SNOWFLAKE, MYSQL)),
        ("s = '''abc'''", (BIGQUERY,)),
        ("5--3", (MYSQL,)),  # 8, and 5 elsewhere, where a comment follows
        ("5 /*! + 1 */", (MYSQL,)),
    ],
)
def test_what_means_something_else_in_a_dialect_is_refused_there(
    text: str, dialects: Sequence[QuestionDialect]
) -> None:
    for dialect in QuestionDialect:
        if dialect in dialects:
            with pytest.raises(Refused) as refused:
                read_question(f"SELECT {text}\nAS x FROM t", dialect=dialect)
            assert refused.value.code is ErrorCode.UNSUPPORTED
        else:
            read_question(f"SELECT {text}\nAS x FROM t", dialect=dialect)


def test_backslashes_in_raw_texts_are_themselves() -> None:
    assert value(r"r'a\nb'", BIGQUERY) == value(r"'a\nb'", POSTGRES) == r"a\nb"
    assert value(r'R"a\nb"', BIGQUERY) == r"a\nb"
    for unclear in (r"br'a\nb'", r"1r'a\nb'"):
        with pytest.raises(Refused):
            read(unclear, BIGQUERY)


def test_deviations_of_mysql_are_those_of_the_population() -> None:
    for name, population in (("STDDEV", "STDDEV_POP"), ("STD", "STDDEV_POP"), ("VARIANCE", "VAR_POP")):
        assert read(f"{name}(x)", MYSQL) == read(f"{population}(x)", MYSQL)
        assert read(f"{name}(x)", SNOWFLAKE) != read(f"{population}(x)", SNOWFLAKE)
    assert read("STDDEV_SAMP(x)", MYSQL) == read("STDDEV_SAMP(x)", POSTGRES)


def test_decimals_without_digits_are_whole_in_mysql_and_snowflake() -> None:
    for dialect in (MYSQL, SNOWFLAKE):
        for kind in ("DECIMAL", "NUMERIC"):
            assert read(f"CAST(x AS {kind})", dialect) == read(f"CAST(x AS {kind}(10))", dialect)
        assert read("CAST(x AS DECIMAL(5, 1))", dialect) == read("CAST(x AS DECIMAL(5, 1))", POSTGRES)
        assert read("CAST(x AS FLOAT)", dialect) == read("CAST(x AS FLOAT)", POSTGRES)
    assert read("CAST(x AS NUMERIC)", BIGQUERY) == read("CAST(x AS FLOAT)", POSTGRES)
