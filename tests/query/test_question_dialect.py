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
from tacit.query.nodes import Call, Scalar

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


# What PostgreSQL 16 gives for 2024-03-05 15:07:09, of texts that it reads otherwise than two shorter fields would be.
@pytest.mark.parametrize(
    ("form", "text"),
    [
        *(("HH12 AM", "03 PM"), ("PM", "PM"), ("yyyy-mm-dd hh24:mi:ss", "2024-03-05 15:07:09"), ("hh", "03")),
        *(("MONTH", "MARCH    "), ("Month", "March    "), ("month", "march    "), ("FMmonth", "march"), ("fmDD", "5")),
        *(("MON Mon mon", "MAR Mar mar"), ("DAY", "TUESDAY  "), ("Dy dy", "Tue tue"), ("DDDD", "0653"), ("dD", "33")),
        *(('iyyy-"W"iw-id', "2024-W10-2"), ("MonDD", "Mar05"), ("q DDD d", "1 065 3"), ("HH24MISS", "150709")),
    ],
)
def test_words_of_postgresqls_formats(form: str, text: str) -> None:
    assert value(f"TO_CHAR(TIMESTAMP '2024-03-05 15:07:09', '{form}')", POSTGRES) == text


@pytest.mark.parametrize(
    "form",
    [
        *("am", "HH12 pm", "Am", "a.m.", "SSSS", "SSSSS", "ssss", "HH24MISSSSS", "IDDD", "iddd", "IYYY-IDDD", "FMSSSS"),
        *("Yyyy", "yYYY", "Mm", "MonTH", "mOn", "Hh24", "Mi", "Ss", "Iyyy", "Id", "FmDD", '"a\\b"YYYY', 'YYYY\\"x"'),
    ],
)
def test_words_of_postgresqls_formats_that_mean_something_else_are_refused(form: str) -> None:
    for name in ("TO_CHAR", "TO_VARCHAR"):
        with pytest.raises(Refused) as refused:
            read(f"{name}(t, '{form}')", POSTGRES)
        assert refused.value.code is ErrorCode.UNSUPPORTED
    if form.lower() != form.upper() != form and form.endswith(("am", "pm")):
        assert "capital" in refused.value.fix


# From https://docs.snowflake.com/en/sql-reference/functions-conversion#label-date-time-format-conversion
@pytest.mark.parametrize(
    ("form", "text"),
    [
        *(("YYYY-MM-DD", "2024-03-05"), ("yyyy/mm/dd", "2024/03/05"), ("YY", "24"), ("YYYYMMDD", "20240305")),
        *(("MMMM", "March"), ("MON", "Mar"), ("mon", "Mar"), ("DD-MON-YYYY", "05-Mar-2024"), ("DY", "Tue")),
        *(("HH24:MI:SS", "15:07:09"), ("HH12:MI AM", "03:07 PM"), ('YYYY-MM-DD"T"HH24:MI', "2024-03-05T15:07")),
    ],
)
def test_words_of_snowflakes_formats(form: str, text: str) -> None:
    for name in ("TO_CHAR", "TO_VARCHAR"):
        assert value(f"{name}(TIMESTAMP '2024-03-05 15:07:09', '{form}')", SNOWFLAKE) == text


@pytest.mark.parametrize(
    "form",
    [
        *("MONTH", "DAY", "Q", "D", "DDD", "ID", "IW", "IYYY", "HH", "FF3", "TZH", "FMMM", "am", "MMM", "MMMMM"),
        *("YYYY_MM", "YYYY-W", "%Y-%m", 'YYYY"', "YYYY-MM-DDTHH24"),
    ],
)
def test_other_words_of_formats_are_refused_in_snowflakes_dialect(form: str) -> None:
    with pytest.raises(Refused) as refused:
        read(f"TO_CHAR(t, '{form}')", SNOWFLAKE)
    assert refused.value.code is ErrorCode.UNSUPPORTED


def test_formats_of_snowflake_read_dates_too() -> None:
    assert value("TO_DATE('05/03/2024', 'DD/mm/YYYY')", SNOWFLAKE) == datetime.date(2024, 3, 5)
    assert value("TO_DATE('05/03/2024', 'DD/mm/YYYY')", POSTGRES) == datetime.date(2024, 3, 5)
    for dialect, form in ((POSTGRES, "DD/Mm/YYYY"), (SNOWFLAKE, "DD_MM_YYYY")):
        with pytest.raises(Refused):
            read(f"TO_DATE('05/03/2024', '{form}')", dialect)


@pytest.mark.parametrize(
    ("day", "months", "snowflake", "others"),
    [
        ("2024-02-29", 1, "2024-03-31", "2024-03-29"),
        ("2024-06-30", 1, "2024-07-31", "2024-07-30"),
        ("2023-02-28", 12, "2024-02-29", "2024-02-28"),
        ("2024-03-31", -1, "2024-02-29", "2024-02-29"),
        ("2024-02-28", 1, "2024-03-28", "2024-03-28"),
        ("2024-01-30", 1, "2024-02-29", "2024-02-29"),
    ],
)
def test_the_last_day_of_a_month_stays_the_last_in_snowflake(
    day: str, months: int, snowflake: str, others: str
) -> None:
    for dialect in QuestionDialect:
        wanted = snowflake if dialect is SNOWFLAKE else others
        assert str(value(f"ADD_MONTHS(DATE '{day}', {months})", dialect)) == wanted
        assert str(value(f"DATEADD(month, {months}, DATE '{day}')", dialect)) == others
    moment = value(f"ADD_MONTHS(TIMESTAMP '{day} 10:30:00', {months})", SNOWFLAKE)
    assert moment == value(f"TIMESTAMP '{snowflake} 10:30:00'", SNOWFLAKE)


def test_a_missing_value_among_texts_that_are_put_together_with_a_separator() -> None:
    absent = "CONCAT_WS('-', 'a', NULLIF('b', 'b'), 'c')"
    assert [value(absent, dialect) for dialect in (POSTGRES, DUCKDB, MYSQL, SNOWFLAKE)] == ["a-c", "a-c", "a-c", None]
    assert value("CONCAT_WS('-', 'a', 'b')", SNOWFLAKE) == "a-b"
    with pytest.raises(Refused, match="BigQuery"):
        read(absent, BIGQUERY)


def test_weeks_between_two_days_are_whole_in_duckdb() -> None:
    for later, weeks in (
        ("2025-06-30", 0),
        ("2025-07-05", 0),
        ("2025-07-06", 1),
        ("2025-06-22", -1),
        ("2025-06-23", 0),
    ):
        assert value(f"DATE_DIFF('week', DATE '2025-06-29', DATE '{later}')", DUCKDB) == weeks
    assert value("DATE_DIFF('week', TIMESTAMP '2025-06-29 23:00:00', TIMESTAMP '2025-07-06 01:00:00')", DUCKDB) == 1
    assert value("DATE_DIFF('week', DATE '2025-06-29', DATE '2025-06-30')", SNOWFLAKE) == 1


def test_similar_is_a_regular_expression_of_the_whole_text_in_duckdb() -> None:
    found = {"fl_": (False, True), "(flu|Flu)%": (False, True), "flu": (True, True), "fl": (False, False)}
    for pattern, values in found.items():
        assert (
            value(f"'flu' SIMILAR TO '{pattern}'", DUCKDB),
            value(f"'flu' SIMILAR TO '{pattern}'", POSTGRES),
        ) == values
    assert value("'fluid' SIMILAR TO 'fl.*'", DUCKDB) is True and value("'a\nb' SIMILAR TO 'a.b'", DUCKDB) is False
    assert value("'fl_' SIMILAR TO 'fl_'", DUCKDB) is True and value("'x' NOT SIMILAR TO 'fl.*'", DUCKDB) is True


# From https://dev.mysql.com/doc/refman/8.4/en/date-and-time-functions.html#function_date-format
@pytest.mark.parametrize(
    ("form", "text"),
    [
        *(("%Y-%m-%d", "2024-03-05"), ("%y %c %e", "24 3 5"), ("%M %b %W %a", "March Mar Tuesday Tue")),
        *(("%H:%i:%s", "15:07:09"), ("%h %I %p", "03 03 PM"), ("%k %S %T", "15 09 15:07:09"), ("%j %w", "065 2")),
        *(("%x-%v", "2024-10"), ("100%% %Y", "100% 2024")),
    ],
)
def test_codes_of_mysqls_formats(form: str, text: str) -> None:
    assert value(f"DATE_FORMAT(TIMESTAMP '2024-03-05 15:07:09', '{form}')", MYSQL) == text


@pytest.mark.parametrize("form", ["%Y-Q%Q", "%F", "%R", "%A", "%B", "%G", "%-d", "%-m", "%D", "%f", "yyyy-MM", "YYYY"])
def test_codes_that_mysql_does_not_have_are_refused_in_its_dialect(form: str) -> None:
    with pytest.raises(Refused) as refused:
        read(f"DATE_FORMAT(t, '{form}')", MYSQL)
    assert refused.value.code is ErrorCode.UNSUPPORTED


def test_a_format_of_mysql_or_spark_is_read_as_before_where_the_dialect_has_none() -> None:
    for dialect in (POSTGRES, DUCKDB, BIGQUERY, SNOWFLAKE):
        for form in ("%Y-Q%Q", "%F", "yyyy-MM"):
            assert isinstance(read(f"DATE_FORMAT(t, '{form}')", dialect), Call)
