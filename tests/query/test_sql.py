"""What a question is read as: sources, joins, names of WITH, keys, orders and names of columns."""

from __future__ import annotations

import dataclasses
from fractions import Fraction

import pytest

from tacit.aggregates.registry import read_question as parse
from tacit.errors import ErrorCode, Refused
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Call,
    ColumnReference,
    DerivedTable,
    Join,
    Literal,
    OrderItem,
    Query,
    Scalar,
    SelectItem,
    SemiJoin,
    TableReference,
    UnionAll,
    children,
    find_location,
    walk_clauses,
)
from tacit.query.refusals import MAX_DEPTH, MAX_NESTED, MAX_SOURCES

COUNT = Aggregate("count", None)
AGE = ColumnReference("age")


def simple(table: str, *columns: str) -> Query:
    """SELECT columns FROM table."""
    outputs = tuple(SelectItem(column, ColumnReference(column)) for column in columns)
    return Query(TableReference(table, table), outputs, None, (), None, (), None, 0)


def test_a_question_has_all_its_clauses() -> None:
    found = parse(
        "SELECT ward, COUNT(*) AS n FROM visits AS v WHERE v.age > 3 GROUP BY ward HAVING COUNT(*) > 5 "
        "ORDER BY n DESC LIMIT 7 OFFSET 2;"
    )
    assert found == Query(
        source=TableReference("visits", "v"),
        outputs=(SelectItem("ward", ColumnReference("ward")), SelectItem("n", COUNT)),
        where=Call(Function.GREATER, (ColumnReference("age", "v"), Literal(3))),
        keys=(ColumnReference("ward"),),
        having=Call(Function.GREATER, (COUNT, Literal(5))),
        order=(OrderItem(ColumnReference("n"), descending=True, nulls_first=False),),
        limit=7,
        offset=2,
    )


def test_equal_questions_are_equal_wherever_their_words_stand() -> None:
    assert parse("SELECT COUNT(*) FROM visits") == parse("select count ( * )\n-- all\nfrom visits AS visits ;")


def test_a_question_may_stand_in_brackets() -> None:
    assert parse("((SELECT COUNT(*) FROM visits))") == parse("SELECT COUNT(*) FROM visits")


# FROM


def test_a_subquery_keeps_its_own_clauses() -> None:
    found = parse("SELECT COUNT(*) FROM (SELECT age FROM visits WHERE age > 3 ORDER BY age LIMIT 5 OFFSET 1) AS s")
    inner = dataclasses.replace(
        simple("visits", "age"),
        where=Call(Function.GREATER, (AGE, Literal(3))),
        order=(OrderItem(AGE, descending=False, nulls_first=False),),
        limit=5,
        offset=1,
    )
    assert found.source == DerivedTable(inner, "s")


def test_a_subquery_without_a_name_gets_one() -> None:
    found = parse("SELECT COUNT(*) FROM (SELECT a FROM t) JOIN (SELECT a FROM (SELECT a FROM u)) USING (a)")
    inner = dataclasses.replace(simple("u", "a"), source=DerivedTable(simple("u", "a"), "subquery"))
    assert found.source == Join(
        DerivedTable(simple("t", "a"), "subquery"), DerivedTable(inner, "subquery_2"), None, ("a",), outer=False
    )


def test_joins_are_taken_from_left_to_right() -> None:
    found = parse("SELECT COUNT(*) FROM a JOIN b USING (x, y) LEFT OUTER JOIN c AS d ON a.x = d.x AND d.z > 3")
    on = Call(
        Function.AND,
        (
            Call(Function.EQUAL, (ColumnReference("x", "a"), ColumnReference("x", "d"))),
            Call(Function.GREATER, (ColumnReference("z", "d"), Literal(3))),
        ),
    )
    first = Join(TableReference("a", "a"), TableReference("b", "b"), None, ("x", "y"), outer=False)
    assert found.source == Join(first, TableReference("c", "d"), on, (), outer=True)


def test_brackets_say_which_tables_are_joined_first() -> None:
    found = parse("SELECT COUNT(*) FROM a INNER JOIN (b LEFT JOIN c USING (y)) USING (x)")
    inner = Join(TableReference("b", "b"), TableReference("c", "c"), None, ("y",), outer=True)
    assert found.source == Join(TableReference("a", "a"), inner, None, ("x",), outer=False)


# WITH


def test_a_name_of_with_is_its_query_at_each_use() -> None:
    found = parse("WITH old AS (SELECT age FROM visits) SELECT COUNT(*) FROM old JOIN OLD AS o USING (age)")
    inner = simple("visits", "age")
    assert found.source == Join(DerivedTable(inner, "old"), DerivedTable(inner, "o"), None, ("age",), outer=False)


def test_a_name_of_with_is_known_to_those_after_it_and_not_to_itself() -> None:
    found = parse("WITH visits AS (SELECT age FROM visits), b AS (SELECT age FROM visits) SELECT COUNT(*) FROM b")
    first = simple("visits", "age")
    assert found.source == DerivedTable(dataclasses.replace(first, source=DerivedTable(first, "visits")), "b")


def test_a_name_of_with_is_a_table_before_it_is_defined() -> None:
    found = parse("WITH a AS (SELECT x FROM b), b AS (SELECT x FROM t) SELECT COUNT(*) FROM a")
    assert found.source == DerivedTable(simple("b", "x"), "a")


def test_a_name_of_an_inner_with_ends_with_its_query() -> None:
    found = parse("SELECT COUNT(*) FROM (WITH a AS (SELECT x FROM t) SELECT x FROM a) AS s JOIN a USING (x)")
    assert isinstance(found.source, Join)
    assert found.source.right == TableReference("a", "a")


def test_an_inner_with_hides_an_outer_one() -> None:
    found = parse(
        "WITH a AS (SELECT x FROM t) SELECT COUNT(*) FROM (WITH a AS (SELECT x FROM u) SELECT x FROM a) AS s "
        "JOIN a USING (x)"
    )
    assert isinstance(found.source, Join)
    inner = dataclasses.replace(simple("u", "x"), source=DerivedTable(simple("u", "x"), "a"))
    assert found.source.left == DerivedTable(inner, "s")
    assert found.source.right == DerivedTable(simple("t", "x"), "a")


# UNION ALL


def test_union_all_stacks_queries() -> None:
    found = parse("SELECT COUNT(*) FROM (SELECT a FROM t UNION ALL SELECT b FROM u UNION ALL (SELECT c FROM v)) AS s")
    assert found.source == DerivedTable(UnionAll((simple("t", "a"), simple("u", "b"), simple("v", "c"))), "s")


def test_union_all_in_brackets_is_the_same_stack() -> None:
    flat = parse("SELECT COUNT(*) FROM (SELECT a FROM t UNION ALL SELECT a FROM u UNION ALL SELECT a FROM v) AS s")
    nested = parse("SELECT COUNT(*) FROM (SELECT a FROM t UNION ALL (SELECT a FROM u UNION ALL SELECT a FROM v)) AS s")
    assert flat == nested


def test_union_all_may_stand_in_with() -> None:
    found = parse("WITH s AS (SELECT a FROM t UNION ALL SELECT a FROM u) SELECT COUNT(*) FROM s")
    assert found.source == DerivedTable(UnionAll((simple("t", "a"), simple("u", "a"))), "s")


def test_a_part_of_a_union_keeps_its_own_limit() -> None:
    found = parse("SELECT COUNT(*) FROM ((SELECT a FROM t LIMIT 3) UNION ALL SELECT a FROM u) AS s")
    assert isinstance(found.source, DerivedTable) and isinstance(found.source.query, UnionAll)
    assert [part.limit for part in found.source.query.parts] == [3, None]


# Limits on what names of WITH may come to


def test_the_tables_of_a_name_of_with_count_at_each_use() -> None:
    # pairs(n) has n uses of p, each of them p itself and the two tables in it: 3n
    def pairs(uses: int) -> str:
        joined = " ".join(f"JOIN p AS p{i} USING (a)" for i in range(1, uses))
        return f"WITH p AS (SELECT x.a FROM t AS x JOIN t AS y USING (a)) SELECT COUNT(*) FROM p AS p0 {joined}"

    most = MAX_SOURCES // 3
    assert parse(pairs(most))
    with pytest.raises(Refused) as caught:
        parse(pairs(most + 1))
    assert caught.value.code is ErrorCode.TOO_LARGE


def test_subqueries_are_nested_up_to_a_limit_however_they_are_written() -> None:
    for code, depth in ((None, MAX_NESTED), (ErrorCode.TOO_LARGE, MAX_NESTED + 1)):
        nested = "SELECT COUNT(*) FROM " + "(SELECT a FROM " * depth + "t" + ")" * depth
        names = ", ".join(f"c{i + 1} AS (SELECT a FROM c{i})" for i in range(depth - 1))
        chained = f"WITH c0 AS (SELECT a FROM t), {names} SELECT COUNT(*) FROM c{depth - 1}"
        for sql in (nested, chained):
            try:
                parse(sql)
                found = None
            except Refused as error:
                found = error.code
            assert found is code
    assert MAX_NESTED < MAX_DEPTH


# Keys and orders


def test_keys_are_expressions_names_and_numbers() -> None:
    found = parse("SELECT age / 10 AS tens, ward, COUNT(*) FROM visits GROUP BY 1, ward, age + 1")
    tens = Call(Function.RATIO, (AGE, Literal(10)))
    assert found.keys == (tens, ColumnReference("ward"), Call(Function.ADD, (AGE, Literal(1))))


def test_an_alias_in_group_by_stays_a_name() -> None:
    # whether it is a column of a table is known to the policy only, and then the column comes first
    assert parse("SELECT age / 10 AS tens, COUNT(*) FROM visits GROUP BY tens").keys == (ColumnReference("tens"),)


def test_group_by_all_means_the_columns_without_an_aggregate() -> None:
    found = parse("SELECT ward, age / 10, COUNT(*), 1 + SUM(cost), sex FROM visits GROUP BY ALL")
    assert found.keys == (ColumnReference("ward"), Call(Function.RATIO, (AGE, Literal(10))), ColumnReference("sex"))


def test_a_number_in_order_by_means_the_column_of_the_answer() -> None:
    found = parse("SELECT ward, COUNT(*) FROM visits GROUP BY 1 ORDER BY 2 DESC NULLS FIRST, 1")
    assert found.order == (
        OrderItem(ColumnReference("count"), True, True),
        OrderItem(ColumnReference("ward"), False, False),
    )


def test_nulls_come_last_unless_it_is_said() -> None:
    # as in DuckDB, in both directions
    orders = parse("SELECT a FROM (SELECT a FROM t) AS s ORDER BY a, a DESC, a NULLS FIRST, a DESC NULLS LAST").order
    assert [order.nulls_first for order in orders] == [False, False, True, False]
    assert [order.descending for order in orders] == [False, True, False, True]


def test_limit_and_offset_come_in_either_order() -> None:
    assert parse("SELECT COUNT(*) FROM t OFFSET 3 ROWS LIMIT 5") == parse("SELECT COUNT(*) FROM t LIMIT 5 OFFSET 3")


# Names of columns


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("ward", "ward"),
        ("visits.ward", "ward"),
        ("COUNT(*)", "count"),
        ("COUNT(age)", "count_age"),
        ("COUNT(DISTINCT age)", "count_distinct_age"),
        ("SUM(age)", "sum_age"),
        ("SUM(age + 1)", "sum"),
        ("MEDIAN(age)", "median_age"),
        ("QUANTILE(age, 0.9)", "quantile_age"),
        ("STDDEV(age)", "stddev_samp_age"),
        ("COUNT(*) + 1", "column_1"),
        ("COUNT(*) AS n", "n"),
        ("COUNT(*) n", "n"),
        ('COUNT(*) "a b"', "a b"),
        ("COUNT(*) AS end", "end"),
    ],
)
def test_a_column_has_a_name(written: str, name: str) -> None:
    assert parse(f"SELECT {written} FROM visits GROUP BY ward").outputs[0].name == name


def test_columns_without_names_get_different_ones() -> None:
    def names(items: str) -> list[str]:
        return [output.name for output in parse(f"SELECT {items} FROM t GROUP BY 1").outputs]

    assert names("a, A, a, a") == ["a", "A_2", "a_3", "a_4"]
    assert names("SUM(a), SUM(a), COUNT(*), COUNT(*)") == ["sum_a", "sum_a_2", "count", "count_2"]
    # a name that is given goes before one that is made, wherever they stand
    assert names("a, a, COUNT(*), COUNT(*) AS a_2, 1 AS count") == ["a", "a_3", "count_2", "a_2", "count"]


@pytest.mark.parametrize("items", ["1 AS x, 2 AS X", "a, COUNT(*) AS a", "COUNT(*) AS A, a"])
def test_no_two_columns_have_the_same_name(items: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(f"SELECT {items} FROM t GROUP BY 1")
    assert caught.value.code is ErrorCode.AMBIGUOUS


# Stars


def test_a_star_in_a_subquery_is_a_column_called_star() -> None:
    found = parse("SELECT COUNT(*) FROM (SELECT *, v.*, age + 1 AS next FROM visits AS v) AS s")
    assert isinstance(found.source, DerivedTable) and isinstance(found.source.query, Query)
    stars = found.source.query.outputs[:2]
    assert stars == (SelectItem("*", ColumnReference("*")), SelectItem("*", ColumnReference("*", "v")))


def test_a_star_may_stand_for_the_columns_of_a_subquery() -> None:
    grouped = "(SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward) AS s"
    assert parse(f"SELECT * FROM {grouped} WHERE n > 3").outputs == (SelectItem("*", ColumnReference("*")),)


def test_no_name_in_quotes_is_a_star() -> None:
    with pytest.raises(Refused):
        parse('SELECT COUNT(*) FROM (SELECT "*" FROM visits) AS s')


# Places


def test_every_part_of_an_expression_knows_where_it_stands() -> None:
    sql = "SELECT SUM(CASE WHEN a = 1 THEN b * 2 ELSE -c END) FILTER (WHERE d IN (1, 2)) FROM t WHERE NOT (a < 3)"
    query = parse(sql)
    level: list[Scalar] = list(walk_clauses(query))
    while level:
        for node in level:
            at = find_location(node)
            made = isinstance(node, Literal) and node.value in {None, 1}  # FILTER and a missing ELSE make constants
            assert made or (at is not None and at.words in sql and at.words.strip())
        level = [child for node in level for child in children(node)]


@pytest.mark.parametrize(
    ("sql", "words"),
    [
        ("SELECT  SUM( age ) FILTER (WHERE a)  FROM t", "SUM( age ) FILTER (WHERE a)"),
        (
            "SELECT PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a) AS x FROM t",
            "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY a)",
        ),
        ("SELECT a IS NOT NULL FROM t", "a IS NOT NULL"),
        ("SELECT NOT a AND b FROM t", "NOT a AND b"),
        ("SELECT a NOT IN (1, 2) x FROM t", "a NOT IN (1, 2)"),
        ("SELECT CASE a WHEN 1 THEN 2 END FROM t", "CASE a WHEN 1 THEN 2 END"),
        ("SELECT '2025-01-01'::DATE FROM t", "'2025-01-01'::DATE"),
        ("SELECT EXTRACT(month FROM d) FROM t", "EXTRACT(month FROM d)"),
        ("SELECT t.a FROM t", "t.a"),
        ("SELECT -3 FROM t", "-3"),
    ],
)
def test_a_place_is_exactly_the_words(sql: str, words: str) -> None:
    at = find_location(parse(sql).outputs[0].scalar)
    assert at is not None and at.words == words


def test_sources_know_where_they_stand() -> None:
    query = parse("SELECT COUNT(*)\nFROM visits AS v\n  LEFT JOIN (SELECT a FROM t) AS s ON v.a = s.a")
    assert isinstance(query.source, Join)
    assert query.source.at is not None and (query.source.at.line, query.source.at.column) == (3, 3)
    assert query.source.at.words == "LEFT JOIN (SELECT a FROM t) AS s ON v.a = s.a"
    assert isinstance(query.source.left, TableReference) and query.source.left.at is not None
    assert query.source.left.at.words == "visits AS v"
    assert isinstance(query.source.right, DerivedTable) and query.source.right.at is not None
    assert query.source.right.at.words == "(SELECT a FROM t)"


def test_shares_are_exact() -> None:
    # a tenth has no double
    assert parse("SELECT QUANTILE(a, 0.1) FROM t").outputs[0].scalar == Aggregate(
        "quantile", ColumnReference("a"), share=Fraction(1, 10)
    )


@pytest.mark.parametrize(("kind", "other"), [("SEMI", "LEFT SEMI"), ("ANTI", "LEFT ANTI")])
def test_filtering_joins_are_written_in_two_ways(kind: str, other: str) -> None:
    text = "SELECT COUNT(*) FROM a {} JOIN b USING (k)"
    source = parse(text.format(kind)).source
    assert isinstance(source, SemiJoin)
    assert source.anti == (kind == "ANTI")
    assert parse(text.format(other)).source == source
    assert parse(text.format(f"NATURAL {kind}").removesuffix(" USING (k)")).source == dataclasses.replace(
        source, using=(), natural=True
    )
