"""Bounds hold for every row, whatever it holds: random expressions on random rows, and the traps by hand."""

from __future__ import annotations

import datetime
import math
import os
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.engines.reference import evaluate
from tacit.errors import Code, Refused
from tacit.plan.bind import Bound, bind_row
from tacit.plan.measure import vectors
from tacit.policy.model import Column as Declared
from tacit.policy.model import Table
from tacit.query.functions import Fn
from tacit.query.nodes import Aggregate, Call, Case, Column, Literal, Quantize, Scalar, walk
from tacit.query.sql import parse
from tacit.query.types import Type

EXAMPLES = 3_000 if os.environ.get("TACIT_FULL") == "1" else 400

# Bounds and literals are binary fractions, so that sums and products of bounds are exact in doubles.
TABLE = Table(
    "t",
    "row",
    (
        Declared("i", Type.INT, Fraction(-7), Fraction(12)),
        Declared("j", Type.INT, Fraction(3), Fraction(40)),
        Declared("free", Type.INT),
        Declared("x", Type.FLOAT, Fraction(-2), Fraction(5), Fraction(1, 4)),
        Declared("y", Type.FLOAT, Fraction(1, 2), Fraction(100)),
        Declared("wild", Type.FLOAT),
        Declared("s", Type.TEXT, values=("a", "b")),
        Declared("b", Type.BOOL, values=(False, True)),
        Declared("d", Type.DATE),
    ),
)


def bound(sql: str) -> Bound:
    """The bound scalar that a text says."""
    return bind_row(parse(f"SELECT {sql} FROM t").outputs[0].scalar, TABLE, "t")


def value(sql: str, **row: Any) -> Any:
    """Its value on a row; what is not given is NULL."""
    return evaluate(bound(sql).scalar, dict.fromkeys((c.name for c in TABLE.columns), None) | row)


def interval(sql: str) -> tuple[Fraction | None, Fraction | None]:
    found = bound(sql)
    return found.lower, found.upper


# Random expressions.

INTS, FLOATS = ("i", "j", "free"), ("x", "y", "wild")
whole = st.integers(-5, 9).map(Literal)
halves = st.integers(-20, 20).map(lambda n: Literal(Fraction(n, 4)))


def calls(functions: list[Fn], *arguments: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
    return st.builds(Call, st.sampled_from(functions), st.tuples(*arguments))


def numbers(leaf: st.SearchStrategy[Scalar], divide: bool) -> st.SearchStrategy[Scalar]:
    """Numeric expressions. Where divided values would meet FLOOR or a divisor, rounding could jump: none do here."""

    def grow(inner: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
        many = st.lists(inner, min_size=2, max_size=3).map(tuple)
        choices = st.builds(Call, st.sampled_from([Fn.LEAST, Fn.GREATEST, Fn.COALESCE]), many)
        cases = st.builds(
            lambda c, a, b: Case(((c, a),), b), conditions(inner), inner, st.one_of(inner, st.just(Literal(None)))
        )
        grown = [
            calls([Fn.ADD, Fn.SUBTRACT, Fn.MULTIPLY], inner, inner),
            calls([Fn.NEGATE, Fn.ABS], inner),
            choices,
            cases,
        ]
        if divide:
            grown.append(calls([Fn.DIVIDE], inner, numbers(leaf, divide=False)))
        else:
            grown.append(calls([Fn.FLOOR, Fn.CEIL], inner))
        return st.one_of(grown)

    return st.recursive(leaf, grow, max_leaves=3 if not divide else 8)


def conditions(number: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
    compared = calls([Fn.EQUAL, Fn.LESS, Fn.GREATER_EQUAL, Fn.UNEQUAL], number, number)
    text = st.builds(lambda v: Call(Fn.IN, (Column("s"), Literal(v), Literal("z"))), st.sampled_from(["a", "b", "c"]))
    days = st.just(Call(Fn.LESS, (Column("d"), Literal("2025-01-01"))))
    simple = st.one_of(compared, text, days, st.just(Column("b")), number.map(lambda n: Call(Fn.IS_NULL, (n,))))
    return st.one_of(simple, calls([Fn.AND, Fn.OR], simple, simple), calls([Fn.NOT], simple))


columns = st.sampled_from([*INTS, *FLOATS]).map(Column)
expressions = numbers(st.one_of(columns, whole, halves), divide=True)

any_int = st.one_of(st.none(), st.integers(-15, 45), st.integers(-(2**63), 2**63 - 1))
any_float = st.one_of(st.none(), st.integers(-40, 420).map(lambda n: n / 4), st.floats())
on_grid = st.one_of(st.none(), st.integers(-40, 420).map(lambda n: n / 4))


def rows(floats: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        dict.fromkeys(INTS, any_int)
        | dict.fromkeys(FLOATS, floats)
        | {
            "s": st.sampled_from([None, "a", "b", "c"]),
            "b": st.sampled_from([None, False, True]),
            "d": st.sampled_from([None, datetime.date(2024, 1, 1), datetime.date(2026, 1, 1)]),
        }
    )


@dataclass
class Sized:
    """A bound and the largest size that any bounded part of it can have: what rounding errors are relative to."""

    bound: Bound
    size: float


def bind(expression: Scalar) -> Sized | None:
    """The bound scalar, or None where it is refused for want of bounds, which is right too."""
    try:
        found = bind_row(expression, TABLE, "t")
    except Refused:
        return None
    size = 1.0
    for part in walk(expression):
        try:
            inner = bind_row(part, TABLE, "t")
        except Refused:
            continue
        if inner.bounded:
            assert inner.lower is not None and inner.upper is not None
            size = max(size, float(abs(inner.lower)), float(abs(inner.upper)))
    return Sized(found, size)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(expressions, st.lists(rows(any_float), min_size=1, max_size=4))
def test_values_are_within_their_bounds(expression: Scalar, some: list[dict[str, Any]]) -> None:
    sized = bind(expression)
    if sized is None:
        return
    found, slack = sized.bound, 1e-9 * sized.size
    for row in some:
        got = evaluate(found.scalar, row)
        if got is None:
            assert found.nullable
            continue
        assert isinstance(got, int if found.type is Type.INT else float) and not isinstance(got, bool)
        if found.type is Type.INT:
            assert found.lower is not None and found.upper is not None
            assert -(2**63) <= found.lower <= got <= found.upper < 2**63
        else:
            assert not math.isnan(got)
            assert found.lower is None or got >= float(found.lower) - slack
            assert found.upper is None or got <= float(found.upper) + slack


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(expressions, st.lists(rows(any_float), min_size=1, max_size=4))
def test_what_is_added_up_is_a_whole_number_within_its_bounds(expression: Scalar, some: list[dict[str, Any]]) -> None:
    sized = bind(expression)
    if sized is None or not sized.bound.bounded:
        return
    (vector,) = vectors(Aggregate("sum", expression), sized.bound)
    ((factor, measure),) = vector.terms
    assert factor == 1 and measure.argument is not None
    for row in some:
        got = evaluate(measure.argument, row)
        assert got is None or (type(got) is int and vector.lower <= got <= vector.upper)


@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(expressions, st.lists(rows(on_grid), min_size=1, max_size=4))
def test_values_of_columns_on_their_grid_are_on_the_claimed_grid(
    expression: Scalar, some: list[dict[str, Any]]
) -> None:
    sized = bind(expression)
    if sized is None or sized.bound.step is None:
        return
    step = float(sized.bound.step)
    for row in some:
        got = evaluate(sized.bound.scalar, row)
        if got is None:
            continue
        if step == 0:
            assert got == 0
        elif sized.size / step < 1e6:  # beyond, rounding may be as large as the step
            assert abs(got / step - round(got / step)) < 1e-6


@settings(max_examples=EXAMPLES // 2, deadline=None, derandomize=True)
@given(conditions(numbers(st.one_of(columns, whole, halves), divide=False)), rows(any_float))
def test_conditions_are_true_false_or_null(condition: Scalar, row: dict[str, Any]) -> None:
    sized = bind(condition)
    if sized is None:
        return
    assert sized.bound.type is Type.BOOL
    got = evaluate(sized.bound.scalar, row)
    assert got in (True, False) or (got is None and sized.bound.nullable)


# Columns.


def test_columns_are_clamped_and_never_trusted():
    assert interval("i") == (-7, 12)
    assert value("i", i=10**15) == 12
    assert value("i", i=-(10**15)) == -7
    assert value("x", x=math.inf) == 5.0
    assert value("x", x=-math.inf) == -2.0
    assert value("x", x=math.nan) is None
    assert value("wild", wild=math.nan) is None
    assert value("wild", wild=math.inf) == math.inf  # nothing bounds it: it can be compared, not added


def test_an_integer_without_bounds_has_those_of_64_bits_and_does_not_count_as_bounded():
    found = bound("free")
    assert (found.lower, found.upper) == (-(2**63), 2**63 - 1)
    assert not found.bounded
    assert not bound("LEAST(free, 10)").bounded
    assert not bound("GREATEST(free, 10)").bounded
    assert bound("GREATEST(0, LEAST(free, 10))").bounded


def test_every_column_may_be_null_and_no_constant_is():
    assert bound("i").nullable
    assert not bound("3").nullable
    assert not bound("'a'").nullable
    assert not bound("i IS NULL").nullable
    assert bound("i > 3").nullable


# LEAST, GREATEST and COALESCE skip NULLs.


def test_least_of_what_may_be_null_bounds_nothing():
    # a NULL i leaves wild as it is, so 12 is no bound
    assert interval("LEAST(wild, i)") == (None, None)
    assert value("LEAST(wild, i)", wild=1e300) == 1e300
    # a constant is never NULL
    assert interval("LEAST(wild, 12)") == (None, 12)
    assert interval("GREATEST(wild, -7)") == (-7, None)
    assert value("LEAST(wild, 12)", wild=1e300) == 12.0
    assert interval("GREATEST(0, LEAST(wild, 12))") == (0, 12)


def test_least_of_bounded_columns():
    # i in [-7, 12], j in [3, 40]; either may be NULL, which leaves the other
    assert interval("LEAST(i, j)") == (-7, 40)
    assert value("LEAST(i, j)", j=40) == 40
    # where neither can be: min(12, 40) and min(-7, 3)
    assert interval("LEAST(COALESCE(i, 0), COALESCE(j, 3))") == (-7, 12)
    assert interval("GREATEST(COALESCE(i, 0), COALESCE(j, 3))") == (3, 40)


def test_least_is_null_only_where_all_are():
    assert not bound("LEAST(i, 3)").nullable
    assert bound("LEAST(i, j)").nullable
    assert value("LEAST(i, j)") is None
    assert value("LEAST(i, 3)") == 3


def test_coalesce_is_the_hull():
    assert interval("COALESCE(i, 100)") == (-7, 100)
    assert not bound("COALESCE(i, 100)").nullable
    assert bound("COALESCE(i, j)").nullable
    assert interval("COALESCE(NULL, i)") == (-7, 12)
    assert interval("COALESCE(i, wild)") == (None, None)
    assert bound("COALESCE(i, wild)").type is Type.FLOAT


# CASE.


def test_case_is_the_hull_of_its_branches():
    assert interval("CASE WHEN b THEN i ELSE 50 END") == (-7, 50)
    assert bound("CASE WHEN b THEN 1 ELSE 50 END").nullable is False
    # no ELSE is NULL, which has no bounds of its own
    assert interval("CASE WHEN b THEN 3 END") == (3, 3)
    assert bound("CASE WHEN b THEN 3 END").nullable
    assert interval("CASE WHEN b THEN i ELSE free END") == (-(2**63), 2**63 - 1)
    assert interval("CASE WHEN b THEN x WHEN i > 3 THEN 7 ELSE -3 END") == (-3, 7)


def test_a_condition_that_is_null_is_not_met():
    assert value("CASE WHEN b THEN 1 ELSE 2 END") == 2
    assert value("CASE i WHEN 3 THEN 1 ELSE 2 END") == 2
    assert value("CASE WHEN NOT (i = 3) THEN 1 ELSE 2 END") == 2


# Arithmetic.


def test_interval_arithmetic():
    # i in [-7, 12], j in [3, 40]
    assert interval("i + j") == (-4, 52)
    assert interval("i - j") == (-47, 9)
    assert interval("i * j") == (-280, 480)
    assert interval("-i") == (-12, 7)
    assert interval("ABS(i)") == (0, 12)
    assert interval("ABS(j)") == (3, 40)
    assert interval("FLOOR(x / 4)") == (-1, 1)  # x in [-2, 5]
    assert interval("CEIL(x / 4)") == (0, 2)
    # the two are not known to be equal
    assert interval("i - i") == (-19, 19)


def test_division_is_of_doubles_and_by_zero_it_is_null():
    assert bound("i / j").type is Type.FLOAT
    assert interval("i / j") == (Fraction(-7, 3), 4)
    assert value("i / j", i=7, j=4) == 1.75
    assert interval("j / i") == (None, None)
    assert bound("j / i").nullable
    assert value("j / i", i=0, j=4) is None
    assert bound("1 / COALESCE(i, 0)").nullable
    assert value("1 / 0") is None
    assert interval("1 / 0") == (None, None)


def test_a_quotient_without_bound_is_clamped_by_hand():
    assert interval("GREATEST(-10, LEAST(j / i, 10))") == (-10, 10)
    # NULL where i is 0, and LEAST skips it
    assert value("GREATEST(-10, LEAST(j / i, 10))", i=0, j=4) == 10.0


def test_a_divisor_that_rounds_to_zero_may_give_null():
    # c is at least 1e-162, so c * c is at least 1e-324, but as a double it is 0
    quotient = "1e-150 / (GREATEST(1e-162, LEAST(wild, 1)) * GREATEST(1e-162, LEAST(wild, 1)))"
    assert value(quotient, wild=0.0) is None
    assert bound(quotient).nullable
    # else LEAST would take it for a bound that is always there
    assert not bound(f"GREATEST(0, LEAST(wild, {quotient}))").bounded


def test_steps():
    assert bound("i").step == 1
    assert bound("x").step == Fraction(1, 4)
    assert bound("y").step is None
    assert bound("x + i").step == Fraction(1, 4)
    assert bound("x + 0.1").step == Fraction(1, 20)  # 1/4 and 1/10
    assert bound("x * x").step == Fraction(1, 16)
    assert bound("x / 5").step == Fraction(1, 20)
    assert bound("FLOOR(y)").step == 1
    assert bound("CASE WHEN b THEN 0 ELSE x END").step == Fraction(1, 4)
    assert bound("x + y").step is None
    assert bound("0 * x").step == 0


def test_integers_stay_within_64_bits():
    assert interval("j * 230584300921369395") == (3 * 230584300921369395, 9223372036854775800)
    with pytest.raises(Refused) as caught:
        bound("j * 230584300921369396")  # 40 times it is 2**63 + 32
    assert caught.value.code is Code.OVERFLOW
    with pytest.raises(Refused):
        bound("9223372036854775807 + 1")
    with pytest.raises(Refused):
        bound("9223372036854775808")


def test_arithmetic_needs_bounds_and_comparison_does_not():
    for sql in ("free + 1", "-free", "ABS(wild)", "FLOOR(wild)", "wild * 0", "(j / i) + 1"):
        with pytest.raises(Refused) as caught:
            bound(sql)
        assert caught.value.code is Code.UNBOUNDED
    assert bound("free > 3").type is Type.BOOL
    assert bound("wild = free").type is Type.BOOL


def test_quantize_is_total():
    # q is 1e40 by the bounds, but 1e190 in doubles, where 1e150 beside 1e190 is lost: q * q is infinite
    q = "(1e190 / (((1e190 + 1e150) - 1e190) + 1))"
    for sql in (f"{q} * {q}", f"-({q} * {q})", f"{q} * {q} - {q} * {q}"):
        found = bound(sql)
        (vector,) = vectors(Aggregate("sum", None), found)
        argument = vector.terms[0][1].argument
        assert isinstance(argument, Quantize)
        got = evaluate(argument, {})
        assert got is None or vector.lower <= got <= vector.upper


def test_dates_and_text():
    assert value("d < '2025-01-01'", d=datetime.date(2024, 12, 31)) is True
    assert value("d IN ('2025-01-01', DATE '2025-01-02')", d=datetime.date(2025, 1, 2)) is True
    with pytest.raises(Refused, match="a date is compared with a date"):
        bound("d < 'soon'")
    with pytest.raises(Refused, match="a date is compared with a date"):
        bound("d = s")
