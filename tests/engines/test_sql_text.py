"""The generated SQL: every name and text quoted, nothing needless where rows are units, and no order of rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from tacit.engines import scalars, sql_statements
from tacit.engines.dialect import DUCKDB, POSTGRES
from tacit.engines.run_statements import run_aggregation
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    ColumnReference,
    EquiJoin,
    ExactStatistic,
    GroupKey,
    Literal,
    PerUnitAggregation,
    Projection,
    Quantize,
    RowUnion,
    Scan,
)

ADVERSARIAL = [
    "'",
    '"',
    "''",
    '""',
    "'; DROP TABLE t; --",
    '"; DROP TABLE t; --',
    "a -- b",
    "/* a */",
    "*/",
    "a;b",
    "\\",
    "\\'",
    "$$",
    "$1",
    "?",
    "{}",
    "%s",
    "E'\\n'",
    "line\nbreak",
    "tab\t",
    "é",
    "日本語",
    "🦆",
    "a\u0301",
    " ",
    "NULL",
]


SCAN = Scan("t", (("who", "c0"), ("ward", "c1"), ("age", "c2")))
SOURCES = {"t": "t"}
WARD = GroupKey(ColumnReference("c1"), ("A", "B"))
COUNT, UNITS, SUM = (
    ExactStatistic("count", None),
    ExactStatistic("units", None),
    ExactStatistic("sum", ColumnReference("c2")),
)


def statement(*measures, keys=(), unit=None, keep=(1, 1), where=None, source=SCAN):
    return sql_statements.write_aggregation(
        Aggregation(source, where, unit, keys, ContributionBounds(*keep), measures, "salt"), SOURCES
    )


def test_a_cap_on_all_rows_makes_needless_ones_vanish():
    any_ward = GroupKey(ColumnReference("c1"), None)
    windows = {
        # (groups, rows, total): rows of a unit numbered once; then groups ranked, and rows in each numbered
        (5, 5, 5): {"ROW_NUMBER()": 1, "DENSE_RANK()": 0},
        (4, 5, 5): {"ROW_NUMBER()": 1, "DENSE_RANK()": 1},
        (4, 3, 5): {"ROW_NUMBER()": 2, "DENSE_RANK()": 1},
    }
    for keep, expected in windows.items():
        text = statement(SUM, keys=(any_ward,), unit="c0", keep=keep)
        assert {window: text.count(window) for window in expected} == expected
    # counting needs no number of a row, and of two declared groups none is left out
    assert "ROW_NUMBER()" not in statement(COUNT, UNITS, keys=(any_ward,), unit="c0", keep=(4, 3, 5))
    assert "DENSE_RANK()" not in statement(COUNT, keys=(WARD,), unit="c0", keep=(2, 3, 5))
    # a cap that caps nothing is not written
    assert statement(SUM, keys=(any_ward,), unit="c0", keep=(4, 3, 12)) == statement(
        SUM, keys=(any_ward,), unit="c0", keep=(4, 3)
    )


def test_the_check_sees_what_is_called(called):
    found = called("SELECT regexp_matches(a, 'unnest(b)'), REPEAT (\"md5(\", 3), random() FROM t")
    assert found == {"REGEXP_LIKE", "REPEAT", "RAND"}


@pytest.mark.slow
@pytest.mark.parametrize("value", ADVERSARIAL)
def test_texts_and_names_are_quoted(value):
    name, text = scalars.quote_name, scalars.quote_text
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t ({name(value)} VARCHAR, other INTEGER)")
        connection.execute(f"INSERT INTO t VALUES ({text(value)}, 1), ('else', 2), (NULL, 3)")
        assert connection.execute("SELECT * FROM t ORDER BY other LIMIT 1").fetchall() == [(value, 1)]
        scan = Scan("t", ((value, value),))
        chosen = Projection(
            scan, ((value, ColumnReference(value)),), Call(Function.EQUAL, (ColumnReference(value), Literal(value)))
        )
        folded = PerUnitAggregation(
            RowUnion((chosen, scan)), ((value, ColumnReference(value)),), ((value + "2", COUNT),)
        )
        other = Scan("t", ((value, value + "3"),))
        source = EquiJoin(folded, other, ((ColumnReference(value), ColumnReference(value + "3")),), outer=True)
        measures = (COUNT, ExactStatistic("sum", Literal(7)), ExactStatistic("histogram", ColumnReference(value)))
        keys = (GroupKey(ColumnReference(value), (value, "else")),)
        where = Call(Function.EQUAL, (ColumnReference(value), Literal(value)))
        node = Aggregation(source, where, value, keys, ContributionBounds(1, 1), measures, value)
        assert connection.execute(sql_statements.write_aggregation(node, {"t": "t"})).fetchall() == [(value, 1, 7)]
        assert connection.execute(sql_statements.write_histogram(node, measures[2], {"t": "t"})).fetchall() == [
            (value, value, 1)
        ]
        assert connection.execute("SELECT COUNT(*) FROM t").fetchone() == (3,)


NAMES = ["k0", "k1", "a0", "unit", "kept", "place", "size", "left_rows", "right_rows", "t"]


@pytest.mark.slow
@pytest.mark.parametrize("taken", NAMES)
def test_columns_may_have_the_names_that_statements_use(taken):
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t AS SELECT 7 AS {taken}, 8 AS other, 9 AS whose")
        source = Scan("t", ((taken, taken), ("other", "k0" if taken != "k0" else "a0"), ("whose", "whose")))
        joined = EquiJoin(
            source, Scan("t", (("whose", "again"),)), ((ColumnReference("whose"), ColumnReference("again")),)
        )
        keys = (GroupKey(ColumnReference("whose"), None), GroupKey(ColumnReference(taken), None))
        for measures, cells in [((COUNT,), (1,)), ((COUNT, ExactStatistic("sum", ColumnReference(taken))), (1, 7))]:
            for unit in (None, taken, "whose"):
                where = Call(Function.EQUAL, (ColumnReference(taken), Literal(7)))
                node = Aggregation(joined, where, unit, keys, ContributionBounds(1, 1), measures)
                assert connection.execute(sql_statements.write_aggregation(node, {"t": "t"})).fetchall() == [
                    (9, 7, *cells)
                ]


def test_where_rows_are_units_there_is_one_grouping_over_one_scan():
    where = Call(Function.GREATER, (ColumnReference("c2"), Literal(40)))
    found = statement(COUNT, SUM, UNITS, keys=(WARD,), where=where)
    assert found == (
        """SELECT "c1", COUNT(*), COALESCE(SUM("c2"), 0), COUNT(*) """
        """FROM (SELECT "who" AS "c0", "ward" AS "c1", "age" AS "c2" FROM t) """
        """WHERE ("c1" IN ('A', 'B')) AND (("c2" > CAST(40 AS BIGINT))) GROUP BY 1"""
    )


def test_counts_need_no_choice_of_rows():
    assert "OVER" not in statement(COUNT, UNITS, unit="c0", keep=(1, 3))
    # Two public wards, and two may be kept: no choice of groups either.
    assert "OVER" not in statement(COUNT, keys=(WARD,), unit="c0", keep=(2, 1))
    assert statement(COUNT, keys=(WARD,), unit="c0", keep=(1, 1)).count("OVER") == 1
    assert statement(COUNT, keys=(GroupKey(ColumnReference("c1"), None),), unit="c0", keep=(999, 1)).count("OVER") == 1


def test_numbers_depend_on_order_only_where_all_that_is_used_orders_them():
    count_age = ExactStatistic("count", ColumnReference("c2"))
    node = Aggregation(
        SCAN,
        None,
        "c0",
        (WARD,),
        ContributionBounds(1, 2),
        (SUM, count_age, ExactStatistic("distinct", ColumnReference("c1"))),
    )
    tree = sqlglot.parse_one(sql_statements.write_aggregation(node, SOURCES), dialect="duckdb")
    windows = {type(window.this).__name__: window for window in tree.find_all(exp.Window)}
    assert set(windows) == {"RowNumber", "Count", "DenseRank"}

    def names(some):
        return [part.sql(dialect="duckdb") for part in some]

    assert names(windows["RowNumber"].args["partition_by"]) == ["unit", "k0"]
    assert names(windows["RowNumber"].args["order"].expressions) == ["a0", "a1"]
    assert names(windows["DenseRank"].args["order"].expressions)[1:] == ["k0"]
    # Nowhere else is there an order, a limit or a sample.
    assert len(list(tree.find_all(exp.Order))) == 2
    assert not list(tree.find_all(exp.Limit, exp.Offset, exp.TableSample, exp.Placeholder))


@pytest.mark.parametrize("number", [0, 1, -1, 2**63 - 1, -(2**63)])
def test_integers_are_written_exactly(number):
    assert duckdb.sql(f"SELECT {scalars.write_literal(number)}").fetchall() == [(number,)]


@pytest.mark.parametrize(
    "number", [Fraction(1, 10), Fraction(-1, 3), Fraction(10) ** 200, Fraction(1, 10**300), Fraction(2**53 + 1)]
)
def test_fractions_are_the_nearest_double(number):
    assert duckdb.sql(f"SELECT {scalars.write_literal(number)}").fetchall() == [(float(number),)]


FLOATS = Aggregation(
    Scan("t", (("x", "c0"),)),
    None,
    None,
    (),
    ContributionBounds(1, 1),
    (
        ExactStatistic("count", GRID := Quantize(ColumnReference("c0"), Fraction(1, 2), -4, 2**22)),
        ExactStatistic("sum", GRID),
    ),
)


def test_sums_of_few_floats_on_a_coarse_grid_are_added_as_doubles():
    quick = sql_statements.write_aggregation(FLOATS, SOURCES, quick=True)
    # 2^53 / 2^22 rows of 2^22 at most
    assert f"CASE WHEN COUNT(*) <= {2**31} THEN CAST(COALESCE(SUM(CASE" in quick
    assert "BIGINT" not in quick
    assert "HUGEINT" not in sql_statements.write_aggregation(FLOATS, SOURCES)
    finer = Quantize(ColumnReference("c0"), Fraction(1, 2), -4, 2**22 + 1)
    node = replace(FLOATS, measures=(ExactStatistic("sum", finer),))
    assert sql_statements.write_aggregation(node, SOURCES, quick=True) == sql_statements.write_aggregation(
        node, SOURCES
    )
    assert sql_statements.write_aggregation(FLOATS, SOURCES, POSTGRES, quick=True) == sql_statements.write_aggregation(
        FLOATS, SOURCES, POSTGRES
    )


@pytest.mark.parametrize("exact", [2**53, 2**23])  # as it is, and as if doubles were exact up to 2^23 only: two rows
def test_a_group_of_too_many_rows_is_added_as_integers(exact, monkeypatch):
    monkeypatch.setattr(sql_statements, "_EXACT", exact)
    monkeypatch.setattr(sql_statements, "_MANY", 1)
    asked = []
    with duckdb.connect(":memory:") as connection:
        values = "('1'), ('NaN'), ('-7.5'), ('inf'), (NULL)"
        connection.execute(f"CREATE TABLE t AS SELECT CAST(x AS DOUBLE) AS x FROM (VALUES {values}) AS v(x)")

        def run(statement):
            asked.append(statement)
            return connection.execute(statement).fetchall()

        # in steps of 1/2: 2, -4 for -7.5 and 2^22 for infinity
        assert run_aggregation(FLOATS, SOURCES, DUCKDB, run) == {(): (3, 2**22 - 2)}
    assert len(asked) == (1 if exact == 2**53 else 2)
