"""The generated SQL: every name and text quoted, nothing needless where rows are units, and no order of rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import duckdb
import pytest
import sqlglot
from sqlglot import exp

from tacit.engines import scalars, sql
from tacit.engines.collect import collect
from tacit.engines.dialect import DUCKDB, POSTGRES
from tacit.privacy.sensitivity import Contribution
from tacit.query.functions import Fn
from tacit.query.nodes import (
    Aggregation,
    Call,
    Column,
    Fold,
    GroupKey,
    Literal,
    Match,
    Measure,
    Quantize,
    Scan,
    Select,
    Stack,
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
WARD = GroupKey(Column("c1"), ("A", "B"))
COUNT, UNITS, SUM = Measure("count", None), Measure("units", None), Measure("sum", Column("c2"))


def statement(*measures, keys=(), unit=None, keep=(1, 1), where=None, source=SCAN):
    return sql.aggregation(Aggregation(source, where, unit, keys, Contribution(*keep), measures, "salt"), SOURCES)


def test_a_cap_on_all_rows_makes_needless_ones_vanish():
    any_ward = GroupKey(Column("c1"), None)
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


@pytest.mark.parametrize("value", ADVERSARIAL)
def test_texts_and_names_are_quoted(value):
    name, text = scalars.name, scalars.text
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t ({name(value)} VARCHAR, other INTEGER)")
        connection.execute(f"INSERT INTO t VALUES ({text(value)}, 1), ('else', 2), (NULL, 3)")
        assert connection.execute("SELECT * FROM t ORDER BY other LIMIT 1").fetchall() == [(value, 1)]
        scan = Scan("t", ((value, value),))
        chosen = Select(scan, ((value, Column(value)),), Call(Fn.EQUAL, (Column(value), Literal(value))))
        folded = Fold(Stack((chosen, scan)), ((value, Column(value)),), ((value + "2", COUNT),))
        other = Scan("t", ((value, value + "3"),))
        source = Match(folded, other, ((Column(value), Column(value + "3")),), outer=True)
        measures = (COUNT, Measure("sum", Literal(7)), Measure("histogram", Column(value)))
        keys = (GroupKey(Column(value), (value, "else")),)
        where = Call(Fn.EQUAL, (Column(value), Literal(value)))
        node = Aggregation(source, where, value, keys, Contribution(1, 1), measures, value)
        assert connection.execute(sql.aggregation(node, {"t": "t"})).fetchall() == [(value, 1, 7)]
        assert connection.execute(sql.histogram(node, measures[2], {"t": "t"})).fetchall() == [(value, value, 1)]
        assert connection.execute("SELECT COUNT(*) FROM t").fetchone() == (3,)


NAMES = ["k0", "k1", "a0", "unit", "kept", "place", "size", "left_rows", "right_rows", "t"]


@pytest.mark.parametrize("taken", NAMES)
def test_columns_may_have_the_names_that_statements_use(taken):
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE TABLE t AS SELECT 7 AS {taken}, 8 AS other, 9 AS whose")
        source = Scan("t", ((taken, taken), ("other", "k0" if taken != "k0" else "a0"), ("whose", "whose")))
        joined = Match(source, Scan("t", (("whose", "again"),)), ((Column("whose"), Column("again")),))
        keys = (GroupKey(Column("whose"), None), GroupKey(Column(taken), None))
        for measures, cells in [((COUNT,), (1,)), ((COUNT, Measure("sum", Column(taken))), (1, 7))]:
            for unit in (None, taken, "whose"):
                where = Call(Fn.EQUAL, (Column(taken), Literal(7)))
                node = Aggregation(joined, where, unit, keys, Contribution(1, 1), measures)
                assert connection.execute(sql.aggregation(node, {"t": "t"})).fetchall() == [(9, 7, *cells)]


def test_where_rows_are_units_there_is_one_grouping_over_one_scan():
    where = Call(Fn.GREATER, (Column("c2"), Literal(40)))
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
    assert statement(COUNT, keys=(GroupKey(Column("c1"), None),), unit="c0", keep=(999, 1)).count("OVER") == 1


def test_numbers_depend_on_order_only_where_all_that_is_used_orders_them():
    count_age = Measure("count", Column("c2"))
    node = Aggregation(
        SCAN, None, "c0", (WARD,), Contribution(1, 2), (SUM, count_age, Measure("distinct", Column("c1")))
    )
    tree = sqlglot.parse_one(sql.aggregation(node, SOURCES), dialect="duckdb")
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
    assert duckdb.sql(f"SELECT {scalars.literal(number)}").fetchall() == [(number,)]


@pytest.mark.parametrize(
    "number", [Fraction(1, 10), Fraction(-1, 3), Fraction(10) ** 200, Fraction(1, 10**300), Fraction(2**53 + 1)]
)
def test_fractions_are_the_nearest_double(number):
    assert duckdb.sql(f"SELECT {scalars.literal(number)}").fetchall() == [(float(number),)]


FLOATS = Aggregation(
    Scan("t", (("x", "c0"),)),
    None,
    None,
    (),
    Contribution(1, 1),
    (Measure("count", GRID := Quantize(Column("c0"), Fraction(1, 2), -4, 2**22)), Measure("sum", GRID)),
)


def test_sums_of_few_floats_on_a_coarse_grid_are_added_as_doubles():
    quick = sql.aggregation(FLOATS, SOURCES, quick=True)
    # 2^53 / 2^22 rows of 2^22 at most
    assert f"CASE WHEN COUNT(*) <= {2**31} THEN CAST(COALESCE(SUM(CASE" in quick
    assert "BIGINT" not in quick
    assert "HUGEINT" not in sql.aggregation(FLOATS, SOURCES)
    finer = Quantize(Column("c0"), Fraction(1, 2), -4, 2**22 + 1)
    node = replace(FLOATS, measures=(Measure("sum", finer),))
    assert sql.aggregation(node, SOURCES, quick=True) == sql.aggregation(node, SOURCES)
    assert sql.aggregation(FLOATS, SOURCES, POSTGRES, quick=True) == sql.aggregation(FLOATS, SOURCES, POSTGRES)


@pytest.mark.parametrize("exact", [2**53, 2**23])  # as it is, and as if doubles were exact up to 2^23 only: two rows
def test_a_group_of_too_many_rows_is_added_as_integers(exact, monkeypatch):
    monkeypatch.setattr(sql, "_EXACT", exact)
    monkeypatch.setattr(sql, "_MANY", 1)
    asked = []
    with duckdb.connect(":memory:") as connection:
        values = "('1'), ('NaN'), ('-7.5'), ('inf'), (NULL)"
        connection.execute(f"CREATE TABLE t AS SELECT CAST(x AS DOUBLE) AS x FROM (VALUES {values}) AS v(x)")

        def run(statement):
            asked.append(statement)
            return connection.execute(statement).fetchall()

        # in steps of 1/2: 2, -4 for -7.5 and 2^22 for infinity
        assert collect(FLOATS, SOURCES, DUCKDB, run) == {(): (3, 2**22 - 2)}
    assert len(asked) == (1 if exact == 2**53 else 2)
