"""What the planner knows of constants by looking at their values is so in every engine."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.aggregates.registry import read_question
from tacit.engines.duckdb_connection import connect_in_memory
from tacit.engines.evaluate import evaluate
from tacit.engines.scalars import write_scalar
from tacit.engines.sql_statements import write_rows
from tacit.engines.underflow import guard_scalar
from tacit.errors import ErrorCode, Refused
from tacit.plan.compound_plan import plan_question
from tacit.plan.constants import has_distinct_values
from tacit.plan.engine_agreement import is_computed_alike
from tacit.plan.plan import Plan
from tacit.plan.relation import Relation
from tacit.policy.load import load
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import Call, ColumnReference, Constants, Literal, Projection, Scalar, ToFloat
from tacit.query.types import Type

TEXT = ColumnReference("t")
POLICY = load(
    {
        "privacy": {"epsilon": 10},
        "tables": {
            "people": {
                "unit": "row",
                "columns": {
                    "name": {"type": "text"},
                    "n": {"type": "int", "lower": 0, "upper": 9},
                    "x": {"type": "float", "lower": 0, "upper": 9},
                },
            }
        },
        "analysts": {"ada": {"epsilon": 5}},
    }
)


def call(function: Function, *arguments: Any) -> Scalar:
    scalars = (a if isinstance(a, ColumnReference | Call | ToFloat) else Literal(a) for a in arguments)
    return Call(function, tuple(scalars))


# Letters of which one has two capitals, or two small forms, or one that is another letter's: K is the Kelvin sign.
odd_texts = st.text("aAiIİıkKKsSſßẞσςΣäÄﬁŉ\u1e9e\u0345\ua7dcƛǅ ", max_size=4)
written = st.sampled_from(
    [
        TEXT,
        call(Function.LOWER, TEXT),
        call(Function.UPPER, TEXT),
        call(Function.LOWER, call(Function.UPPER, TEXT)),
        call(Function.CONCAT, TEXT, call(Function.LOWER, TEXT)),
        call(Function.SUBSTRING, TEXT, 1, 3),
        call(Function.TRIM, TEXT),
        call(Function.LPAD, TEXT, "ä", 6),
        call(Function.REPLACE, TEXT, "i", "İ"),
    ]
)
scalars = st.one_of(written, written.map(lambda text: call(Function.LENGTH, text)))


def constants(texts: list[str]) -> Constants:
    return Constants((("t", Type.TEXT),), tuple((text,) for text in texts))


def public(rows: Any) -> Relation:
    return Relation(rows, (), None, None, ContributionBounds(1, 1))


@settings(deadline=None, max_examples=examples(800))
@given(st.lists(odd_texts, min_size=1, max_size=12, unique=True), scalars, written)
def test_values_that_are_known_to_differ_do_so_in_duckdb(texts, scalar, kept):
    where = call(Function.UNEQUAL, kept, "i")
    for rows in (constants(texts), Projection(constants(texts), (("t", TEXT),), where)):
        if not has_distinct_values(public(rows), [scalar]):
            continue
        with connect_in_memory() as connection:
            values = f"SELECT {write_scalar(scalar)} AS v FROM ({write_rows(rows, {})})"
            [(known, different)] = connection.execute(f"SELECT COUNT(v), COUNT(DISTINCT v) FROM ({values})").fetchall()
        assert known == different, (rows, scalar)


def test_texts_of_which_letters_are_known_may_be_compared_without_case():
    cities = public(constants(["Köln", "Genève", "Łódź"]))
    assert has_distinct_values(cities, [call(Function.LOWER, TEXT)])
    assert has_distinct_values(cities, [call(Function.UPPER, TEXT), TEXT])
    assert not has_distinct_values(public(constants(["Köln", "köln"])), [call(Function.LOWER, TEXT)])
    # PostgreSQL before 17 would leave Ö as it is, so what is computed of the result differs
    assert not has_distinct_values(cities, [call(Function.POSITION, call(Function.LOWER, TEXT), "ö")])
    assert has_distinct_values(public(constants(["Bonn", "Ulm"])), [call(Function.LENGTH, call(Function.LOWER, TEXT))])


@pytest.mark.parametrize(
    ("scalar", "texts"),
    [
        (call(Function.LOWER, TEXT), ["i", "İ"]),  # İ has a small form of two letters in Python, and of one in DuckDB
        (call(Function.UPPER, TEXT), ["SS", "ß"]),
        (call(Function.LOWER, TEXT), ["ΑΣ", "ας"]),
        (call(Function.LOWER, TEXT), ["\U0001fae9"]),  # no character yet
        (call(Function.DIVIDE, 1.5, 3), ["a"]),
        (call(Function.LN, 2), ["a"]),
    ],
)
def test_nothing_is_known_of_what_engines_may_compute_otherwise(scalar, texts):
    assert not has_distinct_values(public(constants(texts)), [scalar])
    assert not is_computed_alike(constants(texts), [scalar])


FLOATS = Constants((("a", Type.FLOAT), ("i", Type.INT)), ((Fraction(1, 10**200), 3),))
TINY, WHOLE = ColumnReference("a"), ToFloat(ColumnReference("i"))


@pytest.mark.parametrize(
    ("left", "right", "is_known"),
    [
        (TINY, Fraction(1, 2), False),  # 5e-201, and 0 in PostgreSQL
        (TINY, TINY, False),
        (call(Function.MULTIPLY, WHOLE, TINY), Fraction(1, 2), False),
        (call(Function.ADD, TINY, Fraction(1)), call(Function.NEGATE, TINY), False),
        (WHOLE, TINY, True),
        (TINY, Fraction(3, 2), True),
        (Fraction(0), TINY, True),
        (ColumnReference("i"), 5, True),
    ],
)
def test_a_product_of_floats_is_known_where_no_operand_is_read_as_zero(left, right, is_known):
    product = call(Function.MULTIPLY, left, right)
    positive = call(Function.GREATER, product, Fraction(0))
    assert is_computed_alike(FLOATS, [positive]) == is_known
    assert is_computed_alike(Projection(FLOATS, (("p", product),), None), []) == is_known
    assert is_computed_alike(Projection(FLOATS, (("a", TINY),), positive), [TINY]) == is_known
    guarded = guard_scalar(product, frozenset({"a"}))  # what PostgreSQL computes
    row = {"a": 1e-200, "i": 3}
    assert not is_known or evaluate(guarded, row) == evaluate(product, row)


LETTERS = "(VALUES ('iii'), ('iiİ'), ('iİi'), ('İii')) AS v(name)"


@pytest.mark.parametrize(
    "source",
    [
        f"people AS p JOIN {LETTERS} ON CASE WHEN p.name = 'Ann' THEN 'iii' END = LOWER(v.name)",
        f"people AS p JOIN {LETTERS} ON p.name = UPPER(v.name)",
        f"people AS p LEFT JOIN {LETTERS} ON p.name = LOWER(v.name)",
        f"people AS p JOIN (SELECT LOWER(name) AS name FROM {LETTERS}) AS w ON p.name = w.name",
        f"people AS p JOIN {LETTERS} ON LENGTH(p.name) BETWEEN LENGTH(LOWER(v.name)) AND LENGTH(LOWER(v.name))",
        f"people AS p WHERE (SELECT v.name FROM {LETTERS} WHERE p.name = LOWER(v.name)) <> 'b'",
        "people AS p JOIN (VALUES (1.5, 2.5)) AS v(lo, hi) ON p.x >= v.lo / 3 AND p.x < v.hi",
        # 1e-200 * 0.5 is 0 in PostgreSQL, so that one row would find all of the 1900, or all ranges but the first
        "people AS p JOIN GENERATE_SERIES(0, 1899) AS v(i)"
        " ON p.n = CASE WHEN (v.i + 1) * 1e-200 * 0.5 > 0 THEN v.i ELSE 1 END",
        "people AS p JOIN (VALUES (2e-150, 0.5, 2e-150), (4e-150, 0.5, 3e-150)) AS v(a, b, hi)"
        " ON p.x >= v.a * v.b AND p.x < v.hi",
    ],
)
def test_a_join_that_may_find_several_rows_in_some_engine_is_refused(source):
    with pytest.raises(Refused) as caught:
        plan_question(read_question(f"SELECT COUNT(*) AS n FROM {source}"), POLICY, 1)
    assert caught.value.code is ErrorCode.UNSUPPORTED


@pytest.mark.parametrize(
    "source",
    [
        "people AS p JOIN (VALUES ('Köln'), ('Ulm')) AS v(city) ON LOWER(p.name) = LOWER(v.city)",
        "people AS p JOIN (VALUES ('a-1'), ('a-2')) AS v(code) ON p.name = UPPER(SUBSTRING(v.code, 3, 1))",
        "people AS p JOIN (VALUES (0.5, 1.5), (1.5, 9)) AS v(lo, hi) ON p.x >= v.lo AND p.x < v.hi",
        "people AS p JOIN (VALUES (0.5, 1.5), (1.5, 9)) AS v(lo, hi) ON p.x >= v.lo * 2 AND p.x < v.hi + v.hi",
        "people AS p JOIN GENERATE_SERIES(0, 8) AS v(i) ON p.x >= v.i * 0.5 AND p.x < (v.i + 1) * 0.5",
    ],
)
def test_a_join_that_finds_one_row_in_every_engine_is_answered(source):
    plan = plan_question(read_question(f"SELECT COUNT(*) AS n FROM {source}"), POLICY, 1)
    assert isinstance(plan, Plan)
    assert plan.parts[0].sensitivity == 1
