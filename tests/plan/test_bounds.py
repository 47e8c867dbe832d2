"""Bounds hold for every row, whatever it holds: random expressions on random rows, and the traps by hand."""

from __future__ import annotations

import datetime
import decimal
import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL

from tacit.engines.evaluate import evaluate
from tacit.errors import ErrorCode, Refused
from tacit.plan.bounds import LEAST_INT, MOST_INT, MOST_PARTS, TypedScalar, bind, domain
from tacit.query.functions import MAX_POWER, MOST_PATTERN, MOST_TEXTS, Function
from tacit.query.nodes import Call, Case, Clamp, ColumnReference, Literal, ReleasedKey, ReleasedValue, Scalar, walk
from tacit.query.types import Type

EXAMPLES = 3_000 if FULL else 50
FIRST, LAST = datetime.date(2019, 12, 30), datetime.date(2024, 2, 29)


def whole(name: str, lower: int, upper: int) -> TypedScalar:
    clamped = Clamp(ColumnReference(name), Fraction(lower), Fraction(upper), whole=True)
    return TypedScalar(clamped, Type.INT, Fraction(lower), Fraction(upper), Fraction(1))


def real(name: str, lower: str | None, upper: str | None, step: str | None = None) -> TypedScalar:
    low, high, grid = (None if v is None else Fraction(v) for v in (lower, upper, step))
    return TypedScalar(Clamp(ColumnReference(name), low, high, whole=False), Type.FLOAT, low, high, grid)


def dated(name: str, first: datetime.date, last: datetime.date) -> TypedScalar:
    column, low, high = ColumnReference(name), Literal(first), Literal(last)
    clamped = Case(((Call(Function.LESS, (column, low)), low), (Call(Function.GREATER, (column, high)), high)), column)
    return TypedScalar(clamped, Type.DATE, Fraction(first.toordinal()), Fraction(last.toordinal()), Fraction(1))


# Bounds and literals are binary fractions, so that sums and products of bounds are exact in doubles.
COLUMNS = {
    "i": whole("i", -7, 12),
    "j": whole("j", 3, 40),
    "free": TypedScalar(ColumnReference("free"), Type.INT, LEAST_INT, MOST_INT, Fraction(1)),
    "x": real("x", "-2", "5", "1/4"),
    "y": real("y", "1/2", "100"),
    "wild": real("wild", None, None),
    "s": TypedScalar(ColumnReference("s"), Type.TEXT),
    "t": TypedScalar(ColumnReference("t"), Type.TEXT),
    "b": TypedScalar(ColumnReference("b"), Type.BOOL),
    "d": dated("d", FIRST, LAST),
    "day": dated("day", datetime.date(2024, 2, 27), datetime.date(2024, 2, 29)),
    "any": TypedScalar(ColumnReference("any"), Type.DATE),
}


def leaf(node: Scalar) -> TypedScalar | None:
    return COLUMNS[node.name] if isinstance(node, ColumnReference) else None


def text(value: str) -> Literal:
    return Literal(value)


def of(argument: Any) -> Scalar:
    """A column by its name, or a constant."""
    if isinstance(argument, str):
        return ColumnReference(argument)
    return argument if isinstance(argument, Scalar) else Literal(argument)


def call(function: str, *arguments: Any) -> Call:
    return Call(Function(function), tuple(of(argument) for argument in arguments))


def when(condition: Any, then: Any, otherwise: Any = None) -> Case:
    return Case(((of(condition), of(then)),), of(otherwise))


def bound(function: Any, *arguments: Any, rows: bool = True) -> TypedScalar:
    """What is known of a call, or of a scalar that is given whole."""
    scalar = call(function, *arguments) if arguments else of(function)
    return bind(scalar, leaf, rows=rows)


def interval(function: Any, *arguments: Any) -> tuple[Fraction | None, Fraction | None]:
    found = bound(function, *arguments)
    return found.lower, found.upper


def value(scalar: Any, **row: Any) -> Any:
    """Its value on a row; what is not given is NULL."""
    return evaluate(bound(scalar).scalar, dict.fromkeys(COLUMNS, None) | row)


def refused(function: Any, *arguments: Any, rows: bool = True) -> ErrorCode:
    with pytest.raises(Refused) as caught:
        bound(function, *arguments, rows=rows)
    assert caught.value.fix
    return caught.value.code


def days(first: datetime.date, last: datetime.date) -> tuple[int, int]:
    return first.toordinal(), last.toordinal()


# Random expressions.

INTS, FLOATS = ("i", "j", "free"), ("x", "y", "wild")
DATES = [None, *(datetime.date.fromisoformat(d) for d in ["0001-01-01", "2020-02-29", "2021-01-03", "9999-12-31"])]


def calls(functions: list[Function], *arguments: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
    return st.builds(Call, st.sampled_from(functions), st.tuples(*arguments))


def numbers(leaves: st.SearchStrategy[Scalar], exact: bool) -> st.SearchStrategy[Scalar]:
    """Numbers. Where rounded values would meet FLOOR or a divisor, they could jump: with `exact` none are made."""

    def grow(inner: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
        many = st.lists(inner, min_size=2, max_size=3).map(tuple)
        choices = st.builds(Call, st.sampled_from([Function.LEAST, Function.GREATEST, Function.COALESCE]), many)
        cases = st.builds(
            lambda c, a, b: Case(((c, a),), b), conditions(inner), inner, st.one_of(inner, st.just(Literal(None)))
        )
        grown = [
            calls([Function.ADD, Function.SUBTRACT, Function.MULTIPLY], inner, inner),
            calls([Function.NEGATE, Function.ABS], inner),
            choices,
            cases,
        ]
        if exact:
            grown += [calls([Function.FLOOR, Function.CEIL, Function.SIGN], inner), calls([Function.MOD], inner, inner)]
        else:
            argument = numbers(leaves, exact=True)
            grown += [
                calls([Function.DIVIDE], inner, argument),
                calls([Function.SQRT, Function.LN, Function.EXP], argument),
                calls([Function.POWER], inner, st.integers(0, 4).map(Literal)),
            ]
        return st.one_of(grown)

    return st.recursive(leaves, grow, max_leaves=3 if exact else 8)


def conditions(number: st.SearchStrategy[Scalar]) -> st.SearchStrategy[Scalar]:
    compared = calls([Function.EQUAL, Function.LESS, Function.GREATER_EQUAL, Function.UNEQUAL], number, number)
    texts = st.builds(
        lambda v: Call(Function.IN, (ColumnReference("s"), Literal(v), Literal("z"))), st.sampled_from(["a", "b", "c"])
    )
    simple = st.one_of(
        compared,
        texts,
        st.sampled_from([call("<", "any", text("2025-01-01")), call("like", "s", text("a%")), ColumnReference("b")]),
        number.map(lambda n: Call(Function.IS_NULL, (n,))),
    )
    return st.one_of(simple, calls([Function.AND, Function.OR], simple, simple), calls([Function.NOT], simple))


leaves = st.one_of(
    st.sampled_from([*INTS, *FLOATS]).map(ColumnReference),
    st.integers(-5, 9).map(Literal),
    st.integers(-20, 20).map(lambda n: Literal(Fraction(n, 4))),
    st.sampled_from(
        [call("length", "s"), call("month", "d"), call("year", "any"), call("days", "d", "day"), call("isodow", "day")]
    ),
)
expressions = numbers(leaves, exact=False)

any_int = st.one_of(st.none(), st.integers(-15, 45), st.integers(-(2**63), 2**63 - 1))
any_float = st.one_of(st.none(), st.integers(-40, 420).map(lambda n: n / 4), st.floats())
on_grid = st.one_of(st.none(), st.integers(-40, 420).map(lambda n: n / 4))


def some_rows(floats: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    row = st.fixed_dictionaries(
        dict.fromkeys(INTS, any_int)
        | dict.fromkeys(FLOATS, floats)
        | dict.fromkeys(("s", "t"), st.sampled_from([None, "", "a", "b", "c"]))
        | {"b": st.sampled_from([None, False, True])}
        | dict.fromkeys(("d", "day", "any"), st.sampled_from(DATES))
    )
    return st.lists(row, min_size=1, max_size=4)


@dataclass
class Sized:
    """A bound and the largest size that any bounded part of it can have: what rounding errors are relative to."""

    bound: TypedScalar
    size: float


def sized(expression: Scalar) -> Sized | None:
    """The bound scalar, or None where it is refused for want of bounds, which is right too."""
    try:
        found = bound(expression)
    except Refused:
        return None
    size = 1.0
    for part in walk(expression):
        try:
            inner = bound(part)
        except Refused:
            continue
        if inner.type in {Type.INT, Type.FLOAT} and inner.is_bounded:
            assert inner.lower is not None and inner.upper is not None
            size = max(size, float(abs(inner.lower)), float(abs(inner.upper)))
    return Sized(found, size)


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(expressions, some_rows(any_float))
def test_values_are_within_their_bounds(expression: Scalar, rows: list[dict[str, Any]]) -> None:
    known = sized(expression)
    if known is None:
        return
    found, slack = known.bound, 1e-9 * known.size
    for row in rows:
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


@pytest.mark.slow
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
@given(expressions, some_rows(on_grid))
def test_values_of_columns_on_their_grid_are_on_the_claimed_grid(
    expression: Scalar, rows: list[dict[str, Any]]
) -> None:
    known = sized(expression)
    if known is None or known.bound.step is None:
        return
    step = float(known.bound.step)
    for row in rows:
        got = evaluate(known.bound.scalar, row)
        if got is None:
            continue
        if step == 0:
            assert got == 0
        elif known.size / step < 1e6:  # beyond, rounding may be as large as the step
            assert abs(got / step - round(got / step)) < 1e-6


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 2, deadline=None, derandomize=True)
@given(conditions(numbers(leaves, exact=True)), some_rows(any_float))
def test_conditions_are_true_false_or_null(condition: Scalar, rows: list[dict[str, Any]]) -> None:
    known = sized(condition)
    if known is None:
        return
    assert known.bound.type is Type.BOOL
    for row in rows:
        got = evaluate(known.bound.scalar, row)
        assert got in (True, False) or (got is None and known.bound.nullable)


# Columns and constants.


def test_an_integer_without_bounds_does_not_count_as_bounded():
    assert not bound("free").is_bounded
    assert not bound("least", "free", 10).is_bounded
    assert not bound("greatest", "free", 10).is_bounded
    assert bound("greatest", 0, call("least", "free", 10)).is_bounded


def test_no_constant_may_be_null():
    assert bound("i").nullable
    for constant in (3, Fraction(1, 2), text("a"), True, FIRST):
        assert not bound(of(constant)).nullable
    assert not bound("is null", "i").nullable
    assert bound(">", "i", 3).nullable


def test_the_bounds_of_a_date_are_days():
    assert interval(of(FIRST)) == (FIRST.toordinal(), FIRST.toordinal())
    assert interval("d") == days(FIRST, LAST)
    assert interval("any") == (None, None)


# LEAST, GREATEST and COALESCE skip NULLs.


def test_least_of_what_may_be_null_bounds_nothing():
    # a NULL i leaves wild as it is, so 12 is no bound
    assert interval("least", "wild", "i") == (None, None)
    assert value(call("least", "wild", "i"), wild=1e300) == 1e300
    # a constant is never NULL
    assert interval("least", "wild", 12) == (None, 12)
    assert interval("greatest", "wild", -7) == (-7, None)
    assert value(call("least", "wild", 12), wild=1e300) == 12.0
    assert interval("greatest", 0, call("least", "wild", 12)) == (0, 12)


def test_least_of_bounded_columns():
    # i in [-7, 12], j in [3, 40]; either may be NULL, which leaves the other
    assert interval("least", "i", "j") == (-7, 40)
    assert value(call("least", "i", "j"), j=40) == 40
    # where neither can be: min(12, 40) and min(-7, 3)
    sure = call("coalesce", "i", 0), call("coalesce", "j", 3)
    assert interval("least", *sure) == (-7, 12)
    assert interval("greatest", *sure) == (3, 40)


def test_least_is_null_only_where_all_are():
    assert not bound("least", "i", 3).nullable
    assert bound("least", "i", "j").nullable
    assert value(call("least", "i", "j")) is None
    assert value(call("least", "i", 3)) == 3


def test_coalesce_is_the_hull():
    assert interval("coalesce", "i", 100) == (-7, 100)
    assert not bound("coalesce", "i", 100).nullable
    assert bound("coalesce", "i", "j").nullable
    assert interval("coalesce", None, "i") == (-7, 12)
    assert interval("coalesce", "i", "wild") == (None, None)
    assert bound("coalesce", "i", "wild").type is Type.FLOAT


def test_dates_are_chosen_from_like_numbers():
    end = datetime.date(2022, 1, 1)
    assert interval("least", "any", end) == (None, end.toordinal())
    assert interval("greatest", FIRST, call("least", "any", end)) == days(FIRST, end)
    assert interval("coalesce", "d", end) == days(FIRST, LAST)
    assert interval("least", "d", text("2022-01-01")) == days(FIRST, end)  # a text beside a date is a date
    assert refused("least", "s", text("a")) is ErrorCode.TYPE
    assert value(call("least", "any", end), any=LAST) == end


# CASE.


def test_case_is_the_hull_of_its_branches():
    assert interval(when("b", "i", 50)) == (-7, 50)
    assert bound(when("b", 1, 50)).nullable is False
    # no ELSE is NULL, which has no bounds of its own
    assert interval(when("b", 3)) == (3, 3)
    assert bound(when("b", 3)).nullable
    assert interval(when("b", "i", "free")) == (-(2**63), 2**63 - 1)
    assert interval(Case(((of("b"), of("x")), (call(">", "i", 3), of(7))), of(-3))) == (-3, 7)


def test_a_condition_that_is_null_is_not_met():
    assert value(when("b", 1, 2)) == 2
    assert value(when(call("not", call("=", "i", 3)), 1, 2)) == 2


# Arithmetic.


def test_interval_arithmetic():
    # i in [-7, 12], j in [3, 40]
    assert interval("+", "i", "j") == (-4, 52)
    assert interval("-", "i", "j") == (-47, 9)
    assert interval("*", "i", "j") == (-280, 480)
    assert interval("negate", "i") == (-12, 7)
    assert interval("abs", "i") == (0, 12)
    assert interval("abs", "j") == (3, 40)
    assert interval("floor", call("/", "x", 4)) == (-1, 1)  # x in [-2, 5]
    assert interval("ceil", call("/", "x", 4)) == (0, 2)
    # the two are not known to be equal
    assert interval("-", "i", "i") == (-19, 19)


def test_division_is_of_doubles_and_by_zero_it_is_null():
    assert bound("/", "i", "j").type is Type.FLOAT
    assert interval("/", "i", "j") == (Fraction(-7, 3), 4)
    assert value(call("/", "i", "j"), i=7, j=4) == 1.75
    assert interval("/", "j", "i") == (None, None)
    assert bound("/", "j", "i").nullable
    assert value(call("/", "j", "i"), i=0, j=4) is None
    assert bound("/", 1, call("coalesce", "i", 0)).nullable
    assert value(call("/", 1, 0)) is None
    assert interval("/", 1, 0) == (None, None)


def test_a_quotient_without_bound_is_clamped_by_hand():
    clamped = call("greatest", -10, call("least", call("/", "j", "i"), 10))
    assert interval(clamped) == (-10, 10)
    # NULL where i is 0, and LEAST skips it
    assert value(clamped, i=0, j=4) == 10.0


def test_a_divisor_that_rounds_to_zero_may_give_null():
    # c is at least 1e-162, so c * c is at least 1e-324, but as a double it is 0
    c = call("greatest", Fraction(1, 10**162), call("least", "wild", 1))
    quotient = call("/", Fraction(1, 10**150), call("*", c, c))
    assert value(quotient, wild=0.0) is None
    assert bound(quotient).nullable
    # else LEAST would take it for a bound that is always there
    assert not bound("greatest", 0, call("least", "wild", quotient)).is_bounded


def test_steps():
    assert bound("i").step == 1
    assert bound("x").step == Fraction(1, 4)
    assert bound("y").step is None
    assert bound("+", "x", "i").step == Fraction(1, 4)
    assert bound("+", "x", Fraction(1, 10)).step == Fraction(1, 20)  # 1/4 and 1/10
    assert bound("*", "x", "x").step == Fraction(1, 16)
    assert bound("/", "x", 5).step == Fraction(1, 20)
    assert bound("floor", "y").step == 1
    assert bound(when("b", 0, "x")).step == Fraction(1, 4)
    assert bound("+", "x", "y").step is None
    assert bound("*", 0, "x").step == 0


def test_integers_stay_within_64_bits():
    assert interval("*", "j", 230584300921369395) == (3 * 230584300921369395, 9223372036854775800)
    assert refused("*", "j", 230584300921369396) is ErrorCode.OVERFLOW  # 40 times it is 2**63 + 32
    assert refused("+", 2**63 - 2, 1) is ErrorCode.OVERFLOW  # the largest integer stands for one without bounds
    assert refused(of(2**63)) is ErrorCode.OVERFLOW


def test_arithmetic_needs_bounds_and_comparison_does_not():
    for function, *arguments in (
        ("+", "free", 1),
        ("negate", "free"),
        ("abs", "wild"),
        ("floor", "wild"),
        ("*", "wild", 0),
        ("+", call("/", "j", "i"), 1),
        ("sqrt", "wild"),
        ("ln", "free"),
        ("exp", "wild"),
        ("power", "free", 2),
        ("mod", "i", "free"),
        ("+", call("length", "s"), 1),
        ("+", call("year", "any"), 1),
        ("+", call("days", "any", "d"), 1),
    ):
        assert refused(function, *arguments) is ErrorCode.UNBOUNDED
    assert bound(">", "free", 3).type is Type.BOOL
    assert bound("=", "wild", "free").type is Type.BOOL
    assert bound(">", call("length", "s"), 3).type is Type.BOOL


def test_over_released_values_nothing_needs_bounds():
    def released(node: Scalar) -> TypedScalar | None:
        kinds = {
            ReleasedValue(0): Type.INT,
            ReleasedValue(1): Type.FLOAT,
            ReleasedKey(0): Type.TEXT,
            ReleasedKey(1): Type.DATE,
        }
        return TypedScalar(node, kinds[node]) if isinstance(node, ReleasedValue | ReleasedKey) else None

    for scalar, kind in (
        (call("/", ReleasedValue(0), 2), Type.FLOAT),
        (call("mod", ReleasedValue(0), 3), Type.INT),
        (call("mod", ReleasedValue(0), ReleasedValue(0)), Type.INT),
        (call("power", ReleasedValue(0), 2), Type.FLOAT),
        (call("sqrt", ReleasedValue(0)), Type.FLOAT),
        (call("ln", ReleasedValue(1)), Type.FLOAT),
        (call("exp", ReleasedValue(1)), Type.FLOAT),
        (call("sign", ReleasedValue(1)), Type.INT),
        (call("round", ReleasedValue(1), 2), Type.FLOAT),
        (call("upper", ReleasedKey(0)), Type.TEXT),
        (call("concat", ReleasedKey(0), text("!")), Type.TEXT),
        (call("length", ReleasedKey(0)), Type.INT),
        (call("like", ReleasedKey(0), text("a%")), Type.BOOL),
        (call("year", ReleasedKey(1)), Type.INT),
        (call("date_trunc", text("year"), ReleasedKey(1)), Type.DATE),
        (call("days", ReleasedKey(1), text("2025-01-01")), Type.INT),
    ):
        found = bind(scalar, released, rows=False)
        assert found.type is kind and found.nullable
    assert refused("round", "wild", 2) is ErrorCode.UNBOUNDED
    assert refused("power", "x", Fraction(1, 2), rows=False) is ErrorCode.TYPE


# MOD.


def test_a_remainder_is_smaller_than_both():
    assert interval("mod", "i", 5) == (-4, 4)  # i in [-7, 12]
    assert interval("mod", "i", 100) == (-7, 12)
    assert interval("mod", "j", 5) == (0, 4)  # j is never negative
    assert interval("mod", "free", 10) == (-9, 9)
    assert interval("mod", "j", "i") == (0, 11)  # |i| is at most 12
    assert interval("mod", "i", call("negate", 5)) == (-4, 4)
    assert interval("mod", "i", 0) == (0, 0)  # and always NULL


def test_a_remainder_has_the_sign_of_what_is_divided():
    for divisor in (5, call("negate", 5)):
        assert value(call("mod", "i", divisor), i=-7) == -2
        assert value(call("mod", "i", divisor), i=7) == 2
    # 2**63 = 922337203685477580 * 10 + 8
    assert value(call("mod", "free", 10), free=-(2**63)) == -8


def test_a_remainder_may_be_null_where_the_divisor_may_be_zero():
    sure = call("coalesce", "i", 0)
    assert not bound("mod", sure, 5).nullable
    assert bound("mod", sure, 0).nullable
    assert bound("mod", sure, sure).nullable
    assert value(call("mod", sure, "i"), i=0) is None


def test_remainders_lie_on_the_common_grid():
    # 6i - 4k is even
    assert bound("mod", call("*", 6, "i"), 4).step == 2
    assert refused("mod", "x", 2) is ErrorCode.TYPE


# POWER, SQRT, LN, EXP and SIGN.


def test_powers():
    assert interval("power", "x", 2) == (0, 25)  # x in [-2, 5]
    assert interval("power", "x", 3) == (-8, 125)
    assert interval("power", "j", 2) == (9, 1600)
    assert interval("power", call("negate", "j"), 2) == (9, 1600)
    assert interval("power", "x", 1) == (-2, 5)
    assert interval("power", "x", 0) == (1, 1)
    assert interval("power", "x", Fraction(2)) == (0, 25)
    assert bound("power", "x", 3).step == Fraction(1, 64)
    assert bound("power", "i", 2).type is Type.FLOAT
    assert not bound("power", 3, 2).nullable


@pytest.mark.parametrize("exponent", [-1, 11, Fraction(1, 2), "i", call("negate", 1), None, True])
def test_exponents_are_whole_constants_up_to_ten(exponent):
    assert refused("power", "x", exponent) is ErrorCode.TYPE


def test_powers_that_no_double_holds_are_refused():
    # 1e20 to the tenth is 1e200, the least that is too large
    assert refused("power", Fraction(10) ** 20, 10) is ErrorCode.OVERFLOW
    assert bound("power", Fraction(10) ** 19, 10).upper == Fraction(10) ** 190


def test_square_roots():
    assert interval("sqrt", call("*", "j", "j")) == (3, 40)
    assert interval("sqrt", "i") == (0, bound("sqrt", 12).upper)
    assert interval("sqrt", -4) == (0, 0)  # and always NULL
    assert bound("sqrt", call("coalesce", "j", 3)).nullable  # a double might have rounded below zero
    assert not bound("sqrt", 4).nullable
    assert value(call("sqrt", "i"), i=-1) is None
    assert value(call("sqrt", "i"), i=9) == 3.0


def test_logarithms_have_no_lower_bound_near_zero():
    assert interval("ln", "y")[1] == bound("ln", 100).upper
    assert bound("ln", "y").is_bounded
    assert interval("ln", "j") == (bound("ln", 3).lower, bound("ln", 40).upper)
    assert bound("ln", call("abs", "i")).lower is None
    assert interval("ln", 1) == (0, 0)
    assert interval("ln", -1) == (None, 0)  # and always NULL
    assert bound("greatest", 0, call("ln", call("abs", "i"))).is_bounded
    assert value(call("ln", "i"), i=0) is None


def test_exponentials():
    assert interval("exp", 0) == (1, 1)
    assert interval("exp", "x") == (bound("exp", -2).lower, bound("exp", 5).upper)
    assert refused("exp", 461) is ErrorCode.OVERFLOW
    assert refused("exp", Fraction(10) ** 199) is ErrorCode.OVERFLOW
    assert bound("exp", 460).is_bounded
    low, high = interval("exp", -(10**9))
    assert low == 0 and high is not None and 0 < high < Fraction(1, 2**1000)


@settings(max_examples=EXAMPLES // 3, deadline=None, derandomize=True)
@given(st.sampled_from(["sqrt", "ln", "exp"]), st.integers(1, 4 * 10**11).map(lambda n: Fraction(n, 10**9)))
def test_the_ends_of_a_curve_are_rounded_outward(function: str, number: Fraction) -> None:
    lower, upper = interval(function, number)
    with decimal.localcontext(prec=50):
        digits = Fraction(getattr(decimal.Decimal(number.numerator) / number.denominator, function)())
    assert lower is not None and upper is not None
    assert lower <= digits + abs(digits) / 10**40 and digits - abs(digits) / 10**40 <= upper
    assert upper - lower <= abs(digits) / 2**100


def test_signs():
    assert interval("sign", "i") == (-1, 1)
    assert interval("sign", "j") == (1, 1)
    assert interval("sign", "free") == (-1, 1)
    assert interval("sign", call("*", "i", 0)) == (0, 0)
    # y is at least 1/2, but a float may be anything as a double
    assert interval("sign", "y") == (-1, 1)
    assert bound("sign", "wild").type is Type.INT
    # (1e190 + 1) - 1e190 is 1, and as a double 0
    rounded = call("-", call("+", Fraction(10) ** 190, Fraction(1)), Fraction(10) ** 190)
    assert interval(rounded) == (1, 1) and value(call("sign", rounded)) == 0


# Texts.


def test_texts_have_no_bounds():
    for found in (
        bound("lower", "s"),
        bound("upper", "s"),
        bound("trim", "s"),
        bound("substring", "s", 2, 3),
        bound("concat", "s", "t"),
    ):
        assert found.type is Type.TEXT and (found.lower, found.upper, found.step) == (None, None, None)
        assert found.nullable
    assert not bound("concat", text("a"), text("b")).nullable
    assert not bound("lower", call("coalesce", "s", text(""))).nullable


def test_a_length_has_a_lower_bound_only():
    found = bound("length", "s")
    assert (found.type, found.lower, found.is_bounded) == (Type.INT, 0, False)
    assert interval("least", call("length", "s"), 50) == (0, 50)
    assert interval("least", call("length", "s"), Fraction(50)) == (0, 50)


@pytest.mark.parametrize(
    "start_and_length", [(0, 3), (-1, 3), (1, 0), ("i", 3), (1, "i"), (1, 2**31), (Fraction(1), 3)]
)
def test_a_part_of_a_text_is_named_by_constants_from_one(start_and_length):
    assert refused("substring", "s", *start_and_length) is ErrorCode.TYPE


def test_functions_take_what_they_are_about():
    for function, *arguments in (
        ("lower", "i"),
        ("length", "d"),
        ("concat", "s", "x"),
        ("substring", "i", 1, 2),
        ("like", "i", text("1%")),
        ("like", "s", "t"),
        ("like", "s", text("a\\%")),
        ("year", "i"),
        ("year", "s"),
        ("days", "d", "i"),
        ("date_trunc", text("month"), "s"),
        ("date_trunc", text("hour"), "d"),
        ("date_trunc", "s", "d"),
        ("sqrt", "s"),
        ("sign", "b"),
        ("exp", None),
        ("mod", "i"),
        ("lower", "s", "t"),
        ("substring", "s", 1),
    ):
        assert refused(function, *arguments) is ErrorCode.TYPE


def test_patterns_are_short():
    assert bound("like", "s", text("%" * MOST_PATTERN)).type is Type.BOOL
    assert refused("like", "s", text("%" * (MOST_PATTERN + 1))) is ErrorCode.TOO_LARGE


# Dates.


def test_parts_of_dates_have_natural_bounds():
    assert interval("year", "d") == (2019, 2024)
    for function, most in (("quarter", 4), ("month", 12), ("day", 31), ("isodow", 7)):
        assert interval(function, "d") == (1, most)
        assert interval(function, "any") == (1, most)
        assert bound(function, "any").is_bounded


def test_parts_of_dates_that_lie_together_have_narrower_bounds():
    # from Tuesday, February 27 to Thursday, February 29, 2024
    assert interval("quarter", "day") == (1, 1)
    assert interval("month", "day") == (2, 2)
    assert interval("day", "day") == (27, 29)
    assert interval("isodow", "day") == (2, 4)


def test_the_year_of_a_date_without_bounds_has_none():
    assert bound("year", "any").is_undeclared
    since = bound("year", call("greatest", "any", FIRST))
    assert (since.lower, since.is_bounded) == (2019, False)
    assert interval("least", 2100, call("greatest", call("year", "any"), 1900)) == (1900, 2100)


def test_a_date_without_bounds_may_have_no_parts():
    # engines hold dates without end; theirs are NULL
    sure = call("coalesce", "any", FIRST)
    assert not bound(sure).nullable
    assert bound("month", sure).nullable
    assert bound("days", sure, FIRST).nullable
    assert bound("date_trunc", text("month"), sure).nullable
    assert not bound("month", call("coalesce", "d", FIRST)).nullable


def test_days_between_dates():
    # 2024-02-29 is 1522 days after 2019-12-30: four years of 365, one leap day before the last, and 61 more
    assert (LAST - FIRST).days == 1522
    assert interval("days", "d", "d") == (-1522, 1522)
    assert interval("days", "d", text("2019-12-30")) == (0, 1522)
    assert bound("days", "any", "d").is_undeclared
    assert value(call("days", "d", FIRST), d=LAST) == 1522
    assert bound("-", "d", text("2019-12-30")) == bound("days", "d", text("2019-12-30"))
    assert refused("-", 1, "d") is ErrorCode.TYPE


def test_first_days():
    assert interval("date_trunc", text("year"), "d") == days(datetime.date(2019, 1, 1), datetime.date(2024, 1, 1))
    assert interval("date_trunc", text("MONTH"), "d") == days(datetime.date(2019, 12, 1), datetime.date(2024, 2, 1))
    assert interval("date_trunc", text("week"), "d") == days(FIRST, datetime.date(2024, 2, 26))
    assert bound("date_trunc", text("day"), "d") == replace(bound("d"), weight=6)
    assert bound("date_trunc", text("month"), "any").lower is None


def test_first_days_of_first_days():
    yearly = call("date_trunc", text("year"), "any")
    assert bound("date_trunc", text("month"), yearly).unit == "year"  # January 1 starts a month too
    assert bound("date_trunc", text("week"), yearly).unit == "week"
    assert bound("date_trunc", text("year"), call("date_trunc", text("month"), "any")).unit == "year"


def test_what_is_chosen_from_first_days_is_a_first_day():
    month = call("date_trunc", text("month"), "d")
    year = call("date_trunc", text("year"), "d")
    assert bound("coalesce", month, year).unit == "month"
    assert bound("coalesce", year, datetime.date(2020, 1, 1)).unit == "year"
    assert bound("coalesce", year, datetime.date(2020, 2, 1)).unit == "month"
    assert bound("coalesce", year, datetime.date(2020, 2, 2)).unit is None
    assert bound("coalesce", month, call("date_trunc", text("week"), "d")).unit is None
    assert bound(when("b", month)).unit == "month"
    assert bound("least", month, "d").unit is None


# The list of all values.


def test_the_values_of_integers():
    assert domain(bound("mod", "j", 4), 10) == (0, 1, 2, 3)
    assert domain(bound("i"), 20) == tuple(range(-7, 13))
    assert domain(bound("i"), 19) is None
    assert domain(bound("*", "i", 5), 20) == tuple(range(-35, 61, 5))
    assert domain(bound("sign", "i"), 3) == (-1, 0, 1)
    assert domain(bound("free"), 10**9) is None
    assert domain(bound("length", "s"), 10**9) is None
    assert domain(bound("month", "any"), 12) == tuple(range(1, 13))
    assert domain(bound("*", "i", 0), 5) == (0,)


def test_the_values_of_floats_on_whole_numbers():
    tens = call("floor", call("/", "j", 10))
    assert domain(bound(tens), 100) == (0, 1, 2, 3, 4)  # j in [3, 40]
    assert domain(bound("*", tens, Fraction(10)), 100) == (0, 10, 20, 30, 40)
    assert domain(bound("x"), 100) is None  # on quarters
    assert domain(bound("y"), 100) is None
    assert all(type(key) is int for key in domain(bound(tens), 100) or ())


def test_the_values_of_booleans_and_texts():
    assert domain(bound("b"), 2) == (False, True)
    assert domain(bound(">", "i", 3), 2) == (False, True)
    assert domain(bound("b"), 1) is None
    assert domain(bound("s"), 100) is None


def test_the_values_of_dates():
    assert domain(bound("day"), 3) == tuple(datetime.date(2024, 2, n) for n in (27, 28, 29))
    assert domain(bound("d"), 1523) is not None
    assert domain(bound("d"), 1522) is None
    assert domain(bound("any"), 10**7) is None
    years = domain(bound("date_trunc", text("year"), "d"), 100)
    assert years == tuple(datetime.date(n, 1, 1) for n in range(2019, 2025))
    quarters = domain(bound("date_trunc", text("quarter"), "d"), 100)
    assert quarters is not None and len(quarters) == 18 and quarters[-1] == datetime.date(2024, 1, 1)
    # the quarter of the first day starts before it, and is listed
    assert quarters[0] == datetime.date(2019, 10, 1)


@pytest.mark.slow
@pytest.mark.parametrize(("unit", "count"), [("year", 9999), ("quarter", 39996)])
def test_the_values_of_all_dates_there_are(unit, count):
    every = dated("every", datetime.date.min, datetime.date.max)
    found = bind(
        call("date_trunc", text(unit), "every"), lambda n: every if n == ColumnReference("every") else None, rows=True
    )
    values = domain(found, count)
    assert values is not None and len(values) == count
    assert values[0] == datetime.date.min
    assert domain(found, count - 1) is None


def test_the_last_week_there_is():
    last = dated("last", datetime.date(9999, 12, 20), datetime.date.max)
    found = bind(
        call("date_trunc", text("week"), "last"), lambda n: last if n == ColumnReference("last") else None, rows=True
    )
    assert domain(found, 10) == (datetime.date(9999, 12, 20), datetime.date(9999, 12, 27))


@pytest.mark.slow
@settings(max_examples=EXAMPLES // 3, deadline=None, derandomize=True)
@given(st.sampled_from(["year", "quarter", "month", "week"]), st.data())
def test_every_first_day_is_in_the_list(unit: str, data: st.DataObject) -> None:
    first = data.draw(st.dates(max_value=datetime.date(9900, 1, 1)))
    last = data.draw(st.dates(min_value=first, max_value=first + datetime.timedelta(days=900)))
    column = dated("here", first, last)
    scalar = call("date_trunc", text(unit), "here")
    found = bind(scalar, lambda n: column if n == ColumnReference("here") else None, rows=True)
    listed = domain(found, 1000)
    assert listed is not None and list(listed) == sorted(set(listed))
    every = {
        evaluate(found.scalar, {"here": first + datetime.timedelta(days=n)}) for n in range((last - first).days + 1)
    }
    assert set(listed) == every


# What a value may take to compute.


def nested(function: str, times: int) -> Scalar:
    scalar: Scalar = ColumnReference("y")
    for _ in range(times):
        scalar = call(function, 1, scalar) if function == "/" else call(function, scalar)
    return scalar


def test_guards_within_guards_are_limited():
    # the divisor counts four times: 2 + 4 w from 1 is 6, 26, 106, 426, 1706, 6826, 27306
    assert bound(nested("/", 6)).weight == 6826 <= MOST_PARTS
    assert refused(nested("/", 7)) is ErrorCode.TOO_LARGE
    # numerators are not copied: 1 + 1 + 4 more for each division
    long = ColumnReference("y")
    for _ in range(100):
        long = call("/", long, 2)
    assert bound(long).weight == 501


def test_what_a_column_of_a_subquery_takes_is_counted_with_it():
    inner = bound(nested("/", 5))
    here = replace(inner, scalar=ColumnReference("inner"))
    with pytest.raises(Refused):
        bind(call("/", 1, call("/", 1, "inner")), lambda n: here if n == ColumnReference("inner") else None, rows=True)


def test_texts_are_put_together_from_a_few():
    assert bound("concat", *["s"] * MOST_TEXTS).texts == MOST_TEXTS
    assert refused("concat", *["s"] * (MOST_TEXTS + 1)) is ErrorCode.TOO_LARGE
    four = call("concat", *["s"] * 4)
    assert bound("concat", call("lower", four), when("b", four, text(""))).texts == 8
    doubled = replace(bound("concat", "s", *["t"] * 5), scalar=ColumnReference("doubled"))
    with pytest.raises(Refused):
        bind(
            call("concat", "doubled", "doubled"),
            lambda n: doubled if n == ColumnReference("doubled") else None,
            rows=True,
        )


def test_bounds_stay_short():
    # 0.3 to the power 10**30 has more digits than there is room for
    scalar: Scalar = call("+", Fraction(1, 3), call("*", "x", Fraction(1, 10**9)))
    start = time.process_time()
    for _ in range(30):
        scalar = call("power", scalar, 10)
    found = bound(scalar)
    assert time.process_time() - start < 5
    assert found.lower is not None and found.upper is not None and 0 <= found.lower < found.upper < Fraction(1, 2**1000)
    assert found.upper.denominator <= 2**1100 and found.step is None


def test_the_numbers_in_the_reference_are_those_of_the_code():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "functions.md").read_text(encoding="utf-8")
    for words in (
        f"at most {MOST_PARTS:,} parts",
        f"at most {MOST_TEXTS} texts in all",
        f"a constant of at most {MOST_PATTERN} characters",
        f"exponent from 0 to {MAX_POWER}",
    ):
        assert words in page
    assert "more than six of them within each other" in page
    for function in ("/", "sqrt"):
        assert bound(nested(function, 6)).is_bounded and refused(nested(function, 7)) is ErrorCode.TOO_LARGE
