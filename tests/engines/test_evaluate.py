"""What scalars mean, in plain Python, by hand and against other ways of saying it."""

from __future__ import annotations

import datetime
import math
import re
import time
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.engines.evaluate import evaluate, extract_date_part, is_like, truncate_date
from tacit.query.functions import DATE_UNITS, Function
from tacit.query.nodes import Call, Case, Clamp, ColumnReference, Literal, Quantize, ReleasedValue, ToFloat


def of(function: str, *values: Any) -> Any:
    """A function of constants, which may be any values a column holds."""
    names = [f"c{n}" for n in range(len(values))]
    return evaluate(Call(Function(function), tuple(map(ColumnReference, names))), dict(zip(names, values, strict=True)))


def test_constants_and_columns():
    assert evaluate(Literal(Fraction(1, 4)), {}) == 0.25
    assert evaluate(Literal(3), {}) == 3
    assert evaluate(Literal(None), {}) is None
    assert evaluate(ColumnReference("a"), {"a": "b"}) == "b"
    assert evaluate(ToFloat(ColumnReference("a")), {"a": 3}) == 3.0
    assert evaluate(ToFloat(ColumnReference("a")), {"a": None}) is None
    with pytest.raises(AssertionError):
        evaluate(ReleasedValue(0), {})


def test_values_outside_of_bounds_are_moved_to_them():
    real = Clamp(ColumnReference("a"), Fraction(-2), Fraction(5), whole=False)
    assert [evaluate(real, {"a": a}) for a in (math.inf, -math.inf, 4.5, math.nan, None)] == [
        5.0,
        -2.0,
        4.5,
        None,
        None,
    ]
    whole = Clamp(ColumnReference("a"), Fraction(-2), Fraction(5), whole=True)
    assert [evaluate(whole, {"a": a}) for a in (10**15, -(10**15), 4, None)] == [5, -2, 4, None]
    wild = Clamp(ColumnReference("a"), None, None, whole=False)
    assert evaluate(wild, {"a": math.inf}) == math.inf  # nothing bounds it: it can be compared, not added
    assert evaluate(wild, {"a": math.nan}) is None


def test_quantized_values_are_the_nearest_integers_within_bounds():
    grid = Quantize(ColumnReference("a"), Fraction(1, 4), -8, 20)
    values = (0.3, 0.375, -0.3, 1e300, -math.inf, math.nan, None)
    assert [evaluate(grid, {"a": a}) for a in values] == [1, 2, -1, 20, -8, None, None]


def test_the_first_condition_that_is_true_decides():
    chosen = Case(((ColumnReference("a"), Literal(1)), (ColumnReference("b"), Literal(2))), Literal(3))
    assert [evaluate(chosen, {"a": a, "b": b}) for a, b in ((True, True), (None, True), (False, None))] == [1, 2, 3]


def test_three_valued_logic():
    assert of("and", True, None) is None
    assert of("and", False, None) is False
    assert of("or", True, None) is True
    assert of("or", False, None) is None
    assert of("not", None) is None
    assert of("not", False) is True
    assert of("is null", None) is True
    assert of("is null", 0) is False


def test_null_is_passed_on():
    takes = {
        Function.ADD: (1, 2),
        Function.MOD: (7, 2),
        Function.POWER: (2.0, 0.0),
        Function.SQRT: (4.0,),
        Function.LN: (1.0,),
        Function.EXP: (0.0,),
        Function.SIGN: (3,),
        Function.LOWER: ("A",),
        Function.UPPER: ("a",),
        Function.TRIM: ("a",),
        Function.LENGTH: ("a",),
        Function.SUBSTRING: ("abc", 1, 2),
        Function.CONCAT: ("a", "b", "c"),
        Function.LIKE: ("a", "%"),
        Function.YEAR: (datetime.date(2025, 1, 1),),
        Function.DATE_TRUNC: ("month", datetime.date(2025, 1, 1)),
        Function.DAYS: (datetime.date(2025, 1, 1), datetime.date(2025, 1, 1)),
        Function.EQUAL: (1, 1),
        Function.IN: (1, 1, 2),
    }
    for function, values in takes.items():
        assert of(function, *values) is not None
        for n in range(len(values)):
            assert of(function, *values[:n], None, *values[n + 1 :]) is None


def test_least_greatest_and_coalesce_skip_null():
    assert of("least", None, 3, 2) == 2
    assert of("greatest", None, 3, 2) == 3
    assert of("coalesce", None, 3, 2) == 3
    for function in ("least", "greatest", "coalesce"):
        assert of(function, None, None) is None


def test_nan_is_above_all_numbers_and_equal_to_itself():
    # columns read it as NULL; it may come of computing with infinities
    assert of("least", math.nan, 3.0) == 3.0
    assert of("least", 3.0, math.nan) == 3.0
    assert math.isnan(of("greatest", 3.0, math.nan, math.inf))
    assert of(">", math.nan, math.inf) is True
    assert of("<", math.nan, 1.0) is False
    assert of("=", math.nan, math.nan) is True


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324, 0.0])
@pytest.mark.parametrize("function", ["floor", "ceil", "abs", "negate", "sqrt", "ln", "exp", "sign"])
def test_no_double_raises(function, value):
    got = of(function, value)
    assert got is None or isinstance(got, int if function == "sign" else float)


def test_rounding_to_whole_values_keeps_the_type():
    assert (of("floor", -1.5), of("ceil", -1.5)) == (-2.0, -1.0)
    assert isinstance(of("floor", 2.0), float)
    assert of("floor", 2**62 + 1) == 2**62 + 1  # as a double it would be 2**62


def test_powers_beyond_doubles_are_infinite():
    assert of("power", 1e200, 2.0) == math.inf
    assert of("power", -1e200, 3.0) == -math.inf
    assert of("power", -1e200, 2.0) == math.inf
    assert of("power", 0.0, 0.0) == 1.0
    assert of("exp", 1000.0) == math.inf
    assert of("exp", -1000.0) == 0.0


def test_what_has_no_value_is_null():
    assert of("sqrt", -1e-300) is None
    assert of("sqrt", -0.0) == 0.0
    assert of("ln", 0.0) is None
    assert of("ln", -1.0) is None
    assert of("ln", 5e-324) == pytest.approx(-744.44, abs=0.01)  # ln of 2**-1074
    assert of("/", 1.0, 0.0) is None
    assert of("mod", 5, 0) is None


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**62), 2**62))
def test_remainders(a: int, b: int) -> None:
    got = of("mod", a, b)
    if b == 0:
        assert got is None
        return
    assert (a - got) % b == 0
    assert abs(got) < abs(b) and abs(got) <= abs(a)
    assert got == 0 or (got < 0) == (a < 0)
    assert got == math.fmod(a, b) or max(abs(a), abs(b)) > 2**53


def test_texts():
    assert of("lower", "Ab1") == "ab1"
    assert of("upper", "Ab1") == "AB1"
    assert of("trim", "  a b\t ") == "a b\t"  # spaces only
    assert of("length", "") == 0
    assert of("length", "aéß日") == 4
    assert of("concat", "a", "", "b") == "ab"
    assert of("substring", "abcdef", 2, 3) == "bcd"
    assert of("substring", "abc", 2, 100) == "bc"
    assert of("substring", "abc", 4, 1) == ""


def test_patterns():
    for text, pattern, expected in (
        ("", "", True),
        ("", "%", True),
        ("", "_", False),
        ("a", "", False),
        ("abc", "abc", True),
        ("abc", "a_c", True),
        ("abc", "%c", True),
        ("abc", "b%", False),
        ("abcbc", "a%bc", True),
        ("abcbd", "a%bc", False),
        ("aXbXc", "%X%X%", True),
        ("aXbc", "%X%X%", False),
        ("Abc", "abc", False),
        ("a\nb", "a_b", True),
        ("a%b", "a%%b", True),
        ("a.c", "a.c", True),
        ("abc", "a.c", False),
    ):
        assert is_like(text, pattern) is expected, (text, pattern)


@pytest.mark.slow
@settings(max_examples=examples(1000), deadline=None, derandomize=True)
@given(st.text("ab.", max_size=12), st.text("ab.%_", max_size=8))
def test_patterns_are_those_of_regular_expressions(text: str, pattern: str) -> None:
    expression = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in pattern)
    assert is_like(text, pattern) == bool(re.fullmatch(expression, text, re.DOTALL))


def test_patterns_take_no_longer_than_both_lengths_say():
    # a search that tried all places would take 3000**7 / 7! steps, over 10**20
    start = time.process_time()
    assert not is_like("a" * 3000, "%a_" * 7 + "%b")
    assert time.process_time() - start < 2


def test_parts_of_a_leap_day():
    day = datetime.date(2024, 2, 29)  # a Thursday
    found = [
        extract_date_part(function, day)
        for function in (Function.YEAR, Function.QUARTER, Function.MONTH, Function.DAY, Function.WEEKDAY)
    ]
    assert found == [2024, 1, 2, 29, 4]
    assert of("isodow", datetime.date(2024, 3, 3)) == 7  # a Sunday
    assert [of("quarter", datetime.date(2024, month, 1)) for month in range(1, 13)] == [
        1,
        1,
        1,
        2,
        2,
        2,
        3,
        3,
        3,
        4,
        4,
        4,
    ]
    with pytest.raises(AssertionError):
        extract_date_part(Function.ABS, day)


def test_days_between():
    assert of("days", datetime.date(2024, 3, 1), datetime.date(2024, 2, 28)) == 2
    assert of("days", datetime.date(2023, 3, 1), datetime.date(2023, 2, 28)) == 1
    assert of("days", datetime.date.min, datetime.date.max) == -3652058


@settings(max_examples=examples(300), deadline=None, derandomize=True)
@given(st.one_of(st.dates(), st.sampled_from([datetime.date.min, datetime.date.max])), st.sampled_from(DATE_UNITS))
def test_a_unit_starts_on_its_first_day(day: datetime.date, unit: str) -> None:
    first = truncate_date(unit, day)
    assert first <= day and truncate_date(unit, first) == first
    assert (day - first).days < {"year": 366, "quarter": 92, "month": 31, "week": 7, "day": 1}[unit]
    if unit == "week":
        assert first.isoweekday() == 1
    elif unit != "day":
        assert first.day == 1
        assert unit == "month" or first.month in ({1} if unit == "year" else {1, 4, 7, 10})


def test_there_is_no_other_unit():
    with pytest.raises(AssertionError):
        truncate_date("hour", datetime.date(2025, 1, 1))
