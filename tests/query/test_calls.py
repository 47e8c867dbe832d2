"""Aggregates and functions, by every name SQL has for them."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.aggregates.registry import function_of
from tacit.aggregates.registry import read_question as parse
from tacit.query.functions import MOST_POSITION, Fn
from tacit.query.nodes import Aggregate, Call, Case, Column, Literal, Scalar, walk

X, Y, D = Column("x"), Column("y"), Column("d")
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
        ("x % 3", Call(Fn.MOD, (X, Literal(3)))),
        ("MOD(x, 3)", Call(Fn.MOD, (X, Literal(3)))),
        ("x ^ 2", Call(Fn.POWER, (X, Literal(2)))),
        ("x ** 2", Call(Fn.POWER, (X, Literal(2)))),
        ("POW(x, 2)", Call(Fn.POWER, (X, Literal(2)))),
        ("POWER(x, 2)", Call(Fn.POWER, (X, Literal(2)))),
        ("SQRT(x)", Call(Fn.SQRT, (X,))),
        ("LN(x)", Call(Fn.LN, (X,))),
        ("EXP(x)", Call(Fn.EXP, (X,))),
        ("SIGN(x)", Call(Fn.SIGN, (X,))),
        ("ABS(x)", Call(Fn.ABS, (X,))),
        ("CEIL(x)", Call(Fn.CEIL, (X,))),
        ("CEILING(x)", Call(Fn.CEIL, (X,))),
        ("FLOOR(x)", Call(Fn.FLOOR, (X,))),
        ("ROUND(x)", Call(Fn.ROUND, (X,))),
        ("ROUND(x, 2)", Call(Fn.ROUND, (X, Literal(2)))),
        ("LEAST(x, y, 3)", Call(Fn.LEAST, (X, Y, Literal(3)))),
        ("GREATEST(x, y)", Call(Fn.GREATEST, (X, Y))),
        ("COALESCE(x, y)", Call(Fn.COALESCE, (X, Y))),
        ("IFNULL(x, y)", Call(Fn.COALESCE, (X, Y))),
        ("NVL(x, y)", Call(Fn.COALESCE, (X, Y))),
        ("LOWER(x)", Call(Fn.LOWER, (X,))),
        ("LCASE(x)", Call(Fn.LOWER, (X,))),
        ("UPPER(x)", Call(Fn.UPPER, (X,))),
        ("UCASE(x)", Call(Fn.UPPER, (X,))),
        ("TRIM(x)", Call(Fn.TRIM, (X,))),
        ("LENGTH(x)", Call(Fn.LENGTH, (X,))),
        ("LEN(x)", Call(Fn.LENGTH, (X,))),
        ("CHAR_LENGTH(x)", Call(Fn.LENGTH, (X,))),
        ("CHARACTER_LENGTH(x)", Call(Fn.LENGTH, (X,))),
        ("SUBSTRING(x, 2, 3)", Call(Fn.SUBSTRING, (X, Literal(2), Literal(3)))),
        ("SUBSTR(x, 2, 3)", Call(Fn.SUBSTRING, (X, Literal(2), Literal(3)))),
        ("SUBSTRING(x FROM 2 FOR 3)", Call(Fn.SUBSTRING, (X, Literal(2), Literal(3)))),
        ("SUBSTRING(x FOR 3)", Call(Fn.SUBSTRING, (X, Literal(1), Literal(3)))),
        ("SUBSTRING(x, 2)", Call(Fn.SUBSTRING, (X, Literal(2), Literal(MOST_POSITION)))),
        ("x || y", Call(Fn.CONCAT, (X, Y))),
        ("CONCAT(x, 'a')", Call(Fn.CONCAT, (Call(Fn.COALESCE, (X, Literal(""))), Literal("a")))),
        ("x LIKE 'a%'", Call(Fn.LIKE, (X, Literal("a%")))),
        ("x NOT LIKE 'a%'", Call(Fn.NOT, (Call(Fn.LIKE, (X, Literal("a%"))),))),
        ("x ILIKE 'Flu%'", Call(Fn.LIKE, (Call(Fn.LOWER, (X,)), Literal("flu%")))),
        ("STARTS_WITH(x, 'a')", Call(Fn.LIKE, (X, Literal("a%")))),
        ("PREFIX(x, 'a')", Call(Fn.LIKE, (X, Literal("a%")))),
        ("ENDS_WITH(x, 'a')", Call(Fn.LIKE, (X, Literal("%a")))),
        ("SUFFIX(x, 'a')", Call(Fn.LIKE, (X, Literal("%a")))),
        ("CONTAINS(x, 'a')", Call(Fn.LIKE, (X, Literal("%a%")))),
        ("YEAR(d)", Call(Fn.YEAR, (D,))),
        ("QUARTER(d)", Call(Fn.QUARTER, (D,))),
        ("MONTH(d)", Call(Fn.MONTH, (D,))),
        ("DAY(d)", Call(Fn.DAY, (D,))),
        ("DAYOFMONTH(d)", Call(Fn.DAY, (D,))),
        ("ISODOW(d)", Call(Fn.WEEKDAY, (D,))),
        ("EXTRACT(year FROM d)", Call(Fn.YEAR, (D,))),
        ("EXTRACT('ISODOW' FROM d)", Call(Fn.WEEKDAY, (D,))),
        ("DATE_PART('Quarter', d)", Call(Fn.QUARTER, (D,))),
        ("DATEPART('day', d)", Call(Fn.DAY, (D,))),
        ("DATE_TRUNC('Month', d)", Call(Fn.DATE_TRUNC, (Literal("month"), D))),
        ("DATETRUNC('week', d)", Call(Fn.DATE_TRUNC, (Literal("week"), D))),
        ("DATE_DIFF('day', x, d)", Call(Fn.DAYS, (D, X))),
        ("DATEDIFF('day', x, d)", Call(Fn.DAYS, (D, X))),
        ("d - x", Call(Fn.SUBTRACT, (D, X))),
        ("NULLIF(x, y)", Case(((Call(Fn.EQUAL, (X, Y)), Literal(None)),), X)),
        ("IF(x, y, 3)", Case(((X, Y),), Literal(3))),
        ("IIF(x, y, 3)", Case(((X, Y),), Literal(3))),
        ("x IS NULL", Call(Fn.IS_NULL, (X,))),
        ("x ISNULL", Call(Fn.IS_NULL, (X,))),
        ("x IS UNKNOWN", Call(Fn.IS_NULL, (X,))),
        ("x IS NOT NULL", Call(Fn.NOT, (Call(Fn.IS_NULL, (X,)),))),
        ("x NOTNULL", Call(Fn.NOT, (Call(Fn.IS_NULL, (X,)),))),
        ("x IS TRUE", Case(((X, Literal(True)),), Literal(False))),
        ("x IS FALSE", Case(((Call(Fn.NOT, (X,)), Literal(True)),), Literal(False))),
        ("x IS NOT TRUE", Call(Fn.NOT, (Case(((X, Literal(True)),), Literal(False)),))),
        (
            "x BETWEEN 1 AND 2",
            Call(Fn.AND, (Call(Fn.GREATER_EQUAL, (X, Literal(1))), Call(Fn.LESS_EQUAL, (X, Literal(2))))),
        ),
        ("x IN (1, -2, 'a')", Call(Fn.IN, (X, Literal(1), Literal(-2), Literal("a")))),
        ("x NOT IN (1)", Call(Fn.NOT, (Call(Fn.IN, (X, Literal(1))),))),
        ("x AND (y AND d)", Call(Fn.AND, (X, Y, D))),
        ("x OR y OR (d AND x)", Call(Fn.OR, (X, Y, Call(Fn.AND, (D, X))))),
        ("CASE WHEN x THEN y END", Case(((X, Y),), Literal(None))),
        ("CASE x WHEN 1 THEN y ELSE 3 END", Case(((Call(Fn.EQUAL, (X, Literal(1))), Y),), Literal(3))),
        ("+x", X),
        ("-x", Call(Fn.NEGATE, (X,))),
        ("-3", Literal(-3)),
        ("- -0.5", Literal(HALF)),
        ("x == 1", Call(Fn.EQUAL, (X, Literal(1)))),
        ("x != 1", Call(Fn.UNEQUAL, (X, Literal(1)))),
        ("1e3", Literal(Fraction(1000))),
        ("5.", Literal(Fraction(5))),
        ("1_000", Literal(1000)),
        ('"x"', X),
        ('"sum"', Column("sum")),
        ("first", Column("first")),
        ("date", Column("date")),
        ("year", Column("year")),
        ("t.x", Column("x", "t")),
    ],
)
def test_a_function_or_operator(written: str, meant: Scalar) -> None:
    assert read(written) == meant


def test_every_function_of_the_table_can_be_written() -> None:
    texts = [
        *("x + y", "x - y", "x * y", "x / y", "-x", "ABS(x)", "FLOOR(x)", "CEIL(x)", "LEAST(x)", "GREATEST(x)"),
        *("COALESCE(x)", "x = y", "x <> y", "x < y", "x <= y", "x > y", "x >= y", "x IN (1)", "x IS NULL", "x AND y"),
        *("x OR y", "NOT x", "ROUND(x)", "x % y", "x ^ y", "SQRT(x)", "LN(x)", "EXP(x)", "SIGN(x)", "LOWER(x)"),
        *("UPPER(x)", "TRIM(x)", "LENGTH(x)", "SUBSTRING(x, 1)", "x || y", "x LIKE y", "YEAR(d)", "QUARTER(d)"),
        *("MONTH(d)", "DAY(d)", "ISODOW(d)", "DATE_TRUNC('day', d)", "DATE_DIFF('day', d, d)", "x::int"),
    ]
    found = {node.function for text in texts for node in walk(read(text)) if isinstance(node, Call)}
    assert found == set(Fn)


@pytest.mark.slow
@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.integers(0, 10**6))
def test_a_share_of_up_to_six_decimals_is_exact(millionths: int) -> None:
    share = Fraction(millionths, 10**6)
    written = f"{millionths // 10**6}.{millionths % 10**6:06}"
    ascending = read(f"PERCENTILE_CONT({written}) WITHIN GROUP (ORDER BY x)")
    descending = read(f"PERCENTILE_CONT({written}) WITHIN GROUP (ORDER BY x DESC)")
    assert ascending == read(f"QUANTILE(x, {written})") == Aggregate("quantile", X, share=share)
    assert descending == Aggregate("quantile", X, share=1 - share)
