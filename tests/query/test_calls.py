"""Aggregates and functions, by every name SQL has for them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.aggregates.registry import function_of
from tacit.aggregates.registry import read_question as parse
from tacit.query.functions import MOST_POSITION, Function
from tacit.query.nodes import Aggregate, Call, Case, ColumnReference, Literal, Scalar, walk

X, Y, D = ColumnReference("x"), ColumnReference("y"), ColumnReference("d")
HALF = Fraction(1, 2)


def read(text: str) -> Scalar:
    return parse(f"SELECT {text} AS a FROM t").outputs[0].scalar


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("COUNT(*)", Aggregate("count", None)),
        ("COUNT()", Aggregate("count", None)),
        ("COUNT(x)", Aggregate("count", X)),
        ("COUNT(ALL x)", Aggregate("count", X)),
        ("COUNT(DISTINCT x)", Aggregate("count", X, distinct=True)),
        ("COUNT(DISTINCT (x))", Aggregate("count", X, distinct=True)),
        ("SUM(x)", Aggregate("sum", X)),
        ("AVG(x)", Aggregate("avg", X)),
        ("VARIANCE(x)", Aggregate("var_samp", X)),
        ("VAR_SAMP(x)", Aggregate("var_samp", X)),
        ("VAR_POP(x)", Aggregate("var_pop", X)),
        ("STDDEV(x)", Aggregate("stddev_samp", X)),
        ("STDDEV_SAMP(x)", Aggregate("stddev_samp", X)),
        ("STDDEV_POP(x)", Aggregate("stddev_pop", X)),
        ("MIN(x)", Aggregate("min", X)),
        ("MAX(x)", Aggregate("max", X)),
        ("MODE(x)", Aggregate("mode", X)),
        ("MODE() WITHIN GROUP (ORDER BY x)", Aggregate("mode", X)),
        ("TOP_K(x, 3)", Aggregate("top_k", X, count=3)),
        ("APPROX_TOP_K(x, 100)", Aggregate("top_k", X, count=100)),
        ("MEDIAN(x)", Aggregate("quantile", X, share=HALF)),
        ("QUANTILE(x, 0.5)", Aggregate("quantile", X, share=HALF)),
        ("QUANTILE_CONT(x, 0.9)", Aggregate("quantile", X, share=Fraction(9, 10))),
        ("QUANTILE_DISC(x, 0.000001)", Aggregate("quantile", X, share=Fraction(1, 10**6))),
        ("QUANTILE(x, 0)", Aggregate("quantile", X, share=Fraction(0))),
        ("QUANTILE(x, 1)", Aggregate("quantile", X, share=Fraction(1))),
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x)", Aggregate("quantile", X, share=Fraction(9, 10))),
        ("PERCENTILE_DISC(0.9) WITHIN GROUP (ORDER BY x ASC)", Aggregate("quantile", X, share=Fraction(9, 10))),
        # nine tenths from above is one tenth from below
        ("PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY x DESC)", Aggregate("quantile", X, share=Fraction(1, 10))),
    ],
)
def test_an_aggregate(written: str, meant: Aggregate) -> None:
    assert read(written) == meant
    function_of(meant)  # which raises KeyError where there is none


@pytest.mark.parametrize(
    "written",
    [
        "COUNT(x)",
        "COUNT(DISTINCT x)",
        "SUM(x)",
        "MAX(x)",
        "STDDEV(x)",
        "MEDIAN(x)",
        "TOP_K(x, 3)",
        "MODE() WITHIN GROUP (ORDER BY x)",
        "PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY x)",
    ],
)
def test_a_filter_is_a_case_around_the_argument(written: str) -> None:
    # every aggregate leaves NULLs out, so leaving a row out is giving it NULL
    plain, filtered = read(written), read(f"{written} FILTER (WHERE y)")
    assert isinstance(plain, Aggregate) and isinstance(filtered, Aggregate)
    assert filtered.argument == Case(((Y, X),), Literal(None))
    assert replace(filtered, argument=X) == plain


def test_a_filtered_count_of_rows_counts_a_constant() -> None:
    assert read("COUNT(*) FILTER (WHERE y)") == Aggregate("count", Case(((Y, Literal(1)),), Literal(None)))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("x % 3", Call(Function.MOD, (X, Literal(3)))),
        ("MOD(x, 3)", Call(Function.MOD, (X, Literal(3)))),
        ("x ^ 2", Call(Function.POWER, (X, Literal(2)))),
        ("x ** 2", Call(Function.POWER, (X, Literal(2)))),
        ("POW(x, 2)", Call(Function.POWER, (X, Literal(2)))),
        ("POWER(x, 2)", Call(Function.POWER, (X, Literal(2)))),
        ("SQRT(x)", Call(Function.SQRT, (X,))),
        ("LN(x)", Call(Function.LN, (X,))),
        ("EXP(x)", Call(Function.EXP, (X,))),
        ("SIGN(x)", Call(Function.SIGN, (X,))),
        ("ABS(x)", Call(Function.ABS, (X,))),
        ("CEIL(x)", Call(Function.CEIL, (X,))),
        ("CEILING(x)", Call(Function.CEIL, (X,))),
        ("FLOOR(x)", Call(Function.FLOOR, (X,))),
        ("ROUND(x)", Call(Function.ROUND, (X,))),
        ("ROUND(x, 2)", Call(Function.ROUND, (X, Literal(2)))),
        ("LEAST(x, y, 3)", Call(Function.LEAST, (X, Y, Literal(3)))),
        ("GREATEST(x, y)", Call(Function.GREATEST, (X, Y))),
        ("COALESCE(x, y)", Call(Function.COALESCE, (X, Y))),
        ("IFNULL(x, y)", Call(Function.COALESCE, (X, Y))),
        ("NVL(x, y)", Call(Function.COALESCE, (X, Y))),
        ("LOWER(x)", Call(Function.LOWER, (X,))),
        ("LCASE(x)", Call(Function.LOWER, (X,))),
        ("UPPER(x)", Call(Function.UPPER, (X,))),
        ("UCASE(x)", Call(Function.UPPER, (X,))),
        ("TRIM(x)", Call(Function.TRIM, (X,))),
        ("LENGTH(x)", Call(Function.LENGTH, (X,))),
        ("LEN(x)", Call(Function.LENGTH, (X,))),
        ("CHAR_LENGTH(x)", Call(Function.LENGTH, (X,))),
        ("CHARACTER_LENGTH(x)", Call(Function.LENGTH, (X,))),
        ("SUBSTRING(x, 2, 3)", Call(Function.SUBSTRING, (X, Literal(2), Literal(3)))),
        ("SUBSTR(x, 2, 3)", Call(Function.SUBSTRING, (X, Literal(2), Literal(3)))),
        ("SUBSTRING(x FROM 2 FOR 3)", Call(Function.SUBSTRING, (X, Literal(2), Literal(3)))),
        ("SUBSTRING(x FOR 3)", Call(Function.SUBSTRING, (X, Literal(1), Literal(3)))),
        ("SUBSTRING(x, 2)", Call(Function.SUBSTRING, (X, Literal(2), Literal(MOST_POSITION)))),
        ("x || y", Call(Function.CONCAT, (X, Y))),
        ("CONCAT(x, 'a')", Call(Function.CONCAT, (Call(Function.COALESCE, (X, Literal(""))), Literal("a")))),
        ("x LIKE 'a%'", Call(Function.LIKE, (X, Literal("a%")))),
        ("x NOT LIKE 'a%'", Call(Function.NOT, (Call(Function.LIKE, (X, Literal("a%"))),))),
        ("x ILIKE 'Flu%'", Call(Function.LIKE, (Call(Function.LOWER, (X,)), Literal("flu%")))),
        ("STARTS_WITH(x, 'a')", Call(Function.LIKE, (X, Literal("a%")))),
        ("PREFIX(x, 'a')", Call(Function.LIKE, (X, Literal("a%")))),
        ("ENDS_WITH(x, 'a')", Call(Function.LIKE, (X, Literal("%a")))),
        ("SUFFIX(x, 'a')", Call(Function.LIKE, (X, Literal("%a")))),
        ("CONTAINS(x, 'a')", Call(Function.LIKE, (X, Literal("%a%")))),
        ("YEAR(d)", Call(Function.YEAR, (D,))),
        ("QUARTER(d)", Call(Function.QUARTER, (D,))),
        ("MONTH(d)", Call(Function.MONTH, (D,))),
        ("DAY(d)", Call(Function.DAY, (D,))),
        ("DAYOFMONTH(d)", Call(Function.DAY, (D,))),
        ("ISODOW(d)", Call(Function.WEEKDAY, (D,))),
        ("EXTRACT(year FROM d)", Call(Function.YEAR, (D,))),
        ("EXTRACT('ISODOW' FROM d)", Call(Function.WEEKDAY, (D,))),
        ("DATE_PART('Quarter', d)", Call(Function.QUARTER, (D,))),
        ("DATEPART('day', d)", Call(Function.DAY, (D,))),
        ("DATE_TRUNC('Month', d)", Call(Function.DATE_TRUNC, (Literal("month"), D))),
        ("DATETRUNC('week', d)", Call(Function.DATE_TRUNC, (Literal("week"), D))),
        ("DATE_DIFF('day', x, d)", Call(Function.DAYS, (D, X))),
        ("DATEDIFF('day', x, d)", Call(Function.DAYS, (D, X))),
        ("d - x", Call(Function.SUBTRACT, (D, X))),
        ("NULLIF(x, y)", Case(((Call(Function.EQUAL, (X, Y)), Literal(None)),), X)),
        ("IF(x, y, 3)", Case(((X, Y),), Literal(3))),
        ("IIF(x, y, 3)", Case(((X, Y),), Literal(3))),
        ("x IS NULL", Call(Function.IS_NULL, (X,))),
        ("x ISNULL", Call(Function.IS_NULL, (X,))),
        ("x IS UNKNOWN", Call(Function.IS_NULL, (X,))),
        ("x IS NOT NULL", Call(Function.NOT, (Call(Function.IS_NULL, (X,)),))),
        ("x NOTNULL", Call(Function.NOT, (Call(Function.IS_NULL, (X,)),))),
        ("x IS TRUE", Case(((X, Literal(True)),), Literal(False))),
        ("x IS FALSE", Case(((Call(Function.NOT, (X,)), Literal(True)),), Literal(False))),
        ("x IS NOT TRUE", Call(Function.NOT, (Case(((X, Literal(True)),), Literal(False)),))),
        (
            "x BETWEEN 1 AND 2",
            Call(
                Function.AND,
                (Call(Function.GREATER_EQUAL, (X, Literal(1))), Call(Function.LESS_EQUAL, (X, Literal(2)))),
            ),
        ),
        ("x IN (1, -2, 'a')", Call(Function.IN, (X, Literal(1), Literal(-2), Literal("a")))),
        ("x NOT IN (1)", Call(Function.NOT, (Call(Function.IN, (X, Literal(1))),))),
        ("x AND (y AND d)", Call(Function.AND, (X, Y, D))),
        ("x OR y OR (d AND x)", Call(Function.OR, (X, Y, Call(Function.AND, (D, X))))),
        ("CASE WHEN x THEN y END", Case(((X, Y),), Literal(None))),
        ("CASE x WHEN 1 THEN y ELSE 3 END", Case(((Call(Function.EQUAL, (X, Literal(1))), Y),), Literal(3))),
        ("+x", X),
        ("-x", Call(Function.NEGATE, (X,))),
        ("-3", Literal(-3)),
        ("- -0.5", Literal(HALF)),
        ("x == 1", Call(Function.EQUAL, (X, Literal(1)))),
        ("x != 1", Call(Function.UNEQUAL, (X, Literal(1)))),
        ("1e3", Literal(Fraction(1000))),
        ("5.", Literal(Fraction(5))),
        ("1_000", Literal(1000)),
        ('"x"', X),
        ('"sum"', ColumnReference("sum")),
        ("first", ColumnReference("first")),
        ("date", ColumnReference("date")),
        ("year", ColumnReference("year")),
        ("t.x", ColumnReference("x", "t")),
    ],
)
def test_a_function_or_operator(written: str, meant: Scalar) -> None:
    assert read(written) == meant


def test_every_function_of_the_table_can_be_written() -> None:
    texts = [
        *(
            "x + y",
            "x - y",
            "x * y",
            "x / y",
            "SAFE_DIVIDE(x, y)",
            "-x",
            "ABS(x)",
            "FLOOR(x)",
            "CEIL(x)",
            "LEAST(x)",
            "GREATEST(x)",
        ),
        *("COALESCE(x)", "x = y", "x <> y", "x < y", "x <= y", "x > y", "x >= y", "x IN (1)", "x IS NULL", "x AND y"),
        *("x OR y", "NOT x", "ROUND(x)", "x % y", "x ^ y", "SQRT(x)", "LN(x)", "EXP(x)", "SIGN(x)", "LOWER(x)"),
        *("UPPER(x)", "TRIM(x)", "LENGTH(x)", "SUBSTRING(x, 1)", "x || y", "x LIKE y", "YEAR(d)", "QUARTER(d)"),
        *("MONTH(d)", "DAY(d)", "ISODOW(d)", "WEEK(d)", "DATE_TRUNC('day', d)", "DATE_DIFF('day', d, d)", "x::int"),
        *("HOUR(t)", "MINUTE(t)", "SECOND(t)", "DATE_DIFF('hour', t, t)", "DAYOFYEAR(d)", "ISOYEAR(d)", "LOG10(x)"),
        *(
            "LTRIM(x)",
            "RTRIM(x)",
            "RIGHT(x, 1)",
            "LPAD(x, 2, '0')",
            "RPAD(x, 2, ' ')",
            "REPLACE(x, 'a', 'b')",
            "SPLIT_PART(x, ',', 1)",
            "STRPOS(x, 'a')",
        ),
        *("TRUNC(x)", "x // y", "INTERVAL '1 day'", "d + INTERVAL '1 day'", "DATE_DIFF('month', d, d)", "AGE(d, d)"),
        *("TIMESTAMP_DIFF(t, t, HOUR)", "EPOCH(t)", "YEARWEEK(d)", "LAST_DAY(d)", "TO_CHAR(d, 'YYYY')"),
        *("DATE_TRUNC(d, WEEK(SUNDAY))", "LPAD(x, 2, '0')", "RPAD(x, 2, ' ')"),
    ]
    found = {node.function for text in texts for node in walk(read(text)) if isinstance(node, Call)}
    made_by_plans = {Function.DATE_OF, Function.TO_TEXT, Function.ADD_MONTHS}  # of CAST, TO_CHAR and intervals
    assert found == set(Function) - made_by_plans


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_a_share_of_up_to_six_decimals_is_exact(millionths: int) -> None:
    share = Fraction(millionths, 10**6)
    written = f"{millionths // 10**6}.{millionths % 10**6:06}"
    ascending = read(f"PERCENTILE_CONT({written}) WITHIN GROUP (ORDER BY x)")
    descending = read(f"PERCENTILE_CONT({written}) WITHIN GROUP (ORDER BY x DESC)")
    assert ascending == read(f"QUANTILE(x, {written})") == Aggregate("quantile", X, share=share)
    assert descending == Aggregate("quantile", X, share=1 - share)
