"""Simplified conditions: true of the same rows, by brute force, and one for texts that mean the same."""

from __future__ import annotations

import datetime
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from tests.support.counts import FULL

from tacit.aggregates.registry import read_question as parse
from tacit.engines.evaluate import evaluate
from tacit.plan.bind_question import plan_for
from tacit.plan.simplify import simplify_filter
from tacit.query.functions import COMPARISONS, Function
from tacit.query.nodes import Call, Case, Clamp, ColumnReference, Literal, Scalar, walk

DAYS = [datetime.date(2024, 12, 31), datetime.date(2025, 1, 1), datetime.date(2025, 2, 28), datetime.date(2025, 3, 3)]
VALUES = {
    "i": [None, -(2**63), -1, 0, 1, 2, 3, 2**63 - 1],
    "b": [None, True, False],
    "t": [None, "", "a", "b"],
    "d": [None, *DAYS],
}
INTEGER = some.one_of(
    some.just(ColumnReference("i")),
    some.just(Clamp(ColumnReference("i"), 0, 2, whole=True)),
    some.one_of(some.integers(-1, 3), some.sampled_from([-(2**63), 2**63 - 1])).map(Literal),
)
DAY = some.one_of(
    some.just(ColumnReference("d")),
    some.sampled_from(DAYS).map(Literal),
    some.sampled_from(["year", "quarter", "month", "week", "day"]).map(
        lambda unit: Call(Function.DATE_TRUNC, (Literal(unit), ColumnReference("d")))
    ),
)
YEAR = some.just(Call(Function.YEAR, (ColumnReference("d"),)))


def compared(
    operand: some.SearchStrategy[Scalar], constant: some.SearchStrategy[Scalar]
) -> some.SearchStrategy[Scalar]:
    function = some.sampled_from(sorted(COMPARISONS))
    return some.builds(lambda f, one, other: Call(f, (one, other)), function, operand, constant)


def equal(operand: Scalar, constants: list[object]) -> some.SearchStrategy[Scalar]:
    lists = some.lists(some.sampled_from(constants).map(Literal), min_size=1, max_size=3)
    one = some.builds(
        lambda f, c: Call(f, (operand, Literal(c))),
        some.sampled_from([Function.EQUAL, Function.UNEQUAL]),
        some.sampled_from(constants),
    )
    return some.one_of(one, lists.map(lambda values: Call(Function.IN, (operand, *values))))


LEAVES = some.one_of(
    compared(INTEGER, INTEGER),
    compared(DAY, DAY),
    compared(YEAR, some.sampled_from([2024, 2025]).map(Literal)),
    equal(ColumnReference("t"), ["", "a", "b"]),
    equal(ColumnReference("i"), [0, 1, 2]),
    equal(ColumnReference("b"), [True, False]),
    some.just(ColumnReference("b")),
    some.sampled_from([True, False]).map(Literal),
    some.sampled_from("ibtd").map(lambda name: Call(Function.IS_NULL, (ColumnReference(name),))),
)


def larger(inner: some.SearchStrategy[Scalar]) -> some.SearchStrategy[Scalar]:
    several = some.lists(inner, min_size=2, max_size=3).map(tuple)
    return some.one_of(
        several.map(lambda parts: Call(Function.AND, parts)),
        several.map(lambda parts: Call(Function.OR, parts)),
        inner.map(lambda part: Call(Function.NOT, (part,))),
        inner.map(lambda part: Case(((part, Literal(True)),), Literal(False))),
        inner.map(lambda part: Call(Function.EQUAL, (part, Literal(True)))),
    )


@pytest.mark.slow
@settings(max_examples=400 if FULL else 20, deadline=None)
@given(condition=some.recursive(LEAVES, larger, max_leaves=6))
def test_the_same_rows_meet_a_condition_and_what_it_is_simplified_to(condition: Scalar) -> None:
    simple = simplify_filter(condition)
    constants = [node.value for node in walk(simple or Literal(None)) if isinstance(node, Literal)]
    assert all(-(2**63) <= value < 2**63 for value in constants if isinstance(value, int))
    for row in product(*VALUES.values()):
        values = dict(zip(VALUES, row, strict=True))
        kept = simple is None or evaluate(simple, values) is True
        assert kept == (evaluate(condition, values) is True), (condition, simple, values)


@pytest.mark.slow
@settings(max_examples=200 if FULL else 60, deadline=None)
@given(condition=some.recursive(LEAVES, larger, max_leaves=6))
def test_simplifying_twice_changes_nothing(condition: Scalar) -> None:
    simple = simplify_filter(condition)
    assert simple is None or simplify_filter(simple) == simple


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("smoker", "smoker = TRUE"),
        ("smoker", "smoker IS TRUE"),
        ("NOT smoker", "smoker = FALSE"),
        ("born > DATE '2000-02-28'", "born >= DATE '2000-02-29'"),
        ("age > 39", "age >= 40"),
        ("age > 0", "age >= 1"),
        ("age >= 40 AND sex = 'F'", "sex = 'F' AND age >= 40"),
        ("40 <= age", "age >= 40"),
        ("ward IN ('A', 'B')", "ward = 'B' OR ward = 'A'"),
        ("NOT (age >= 40 AND sex = 'F')", "age < 40 OR sex <> 'F'"),
        ("age >= 40 AND 1 = 1", "age >= 40"),
        ("age >= 40 AND age >= 30", "age >= 40"),
        ("age >= 40 AND age IS NOT NULL", "age >= 40"),
        ("YEAR(born) = 1990", "born BETWEEN DATE '1990-01-01' AND DATE '1990-12-31'"),
        ("DATE_TRUNC('month', born) = DATE '1990-02-01'", "born >= DATE '1990-02-01' AND born < DATE '1990-03-01'"),
    ],
)
def test_two_spellings_are_one_question(one: str, other: str, policy) -> None:
    keys = {plan_for(parse(f"SELECT COUNT(*) FROM visits WHERE {text}"), policy, 1).key for text in (one, other)}
    assert len(keys) == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("smoker IS NOT TRUE", "NOT smoker"),  # of NULL the first is true
        ("age <> 40", "age <> 40 OR age IS NULL"),
        ("DATE_TRUNC('month', born) = DATE '1990-02-03'", "born >= DATE '1990-02-03'"),
    ],
)
def test_what_differs_for_some_row_stays_apart(one: str, other: str, policy) -> None:
    keys = {plan_for(parse(f"SELECT COUNT(*) FROM visits WHERE {text}"), policy, 1).key for text in (one, other)}
    assert len(keys) == 2


def test_a_sum_of_ones_is_a_count(policy) -> None:
    texts = ["COUNT(*)", "SUM(1)", "COUNT(1)"]
    assert len({plan_for(parse(f"SELECT {text} FROM visits"), policy, 1).key for text in texts}) == 1
    chosen = [
        "COUNT(*) FILTER (WHERE smoker)",
        "SUM(CASE WHEN smoker THEN 1 ELSE 0 END)",
        "COUNT(CASE WHEN smoker THEN 1 END)",
    ]
    assert len({plan_for(parse(f"SELECT {text} FROM visits"), policy, 1).key for text in chosen}) == 1
