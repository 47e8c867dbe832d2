"""Bins of values: every value is in one of them, found from its exponent here and by comparisons there."""

from __future__ import annotations

import datetime
import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.engines.evaluate import evaluate
from tacit.plan.declared_columns import clamp_column
from tacit.policy.model import Column
from tacit.query.nodes import ColumnReference
from tacit.query.timestamps import LAST, to_day
from tacit.query.types import Type
from tacit.query.value_bins import NULL, ValueBins

LARGEST = math.nextafter(math.inf, 0)
TINY = 5e-324  # the least subnormal


def code_of(kind: Type, value: Any) -> Any:
    """The code of a value of a column without bounds, as a plan reads it."""
    read = clamp_column(Column("x", kind), ColumnReference("x")).scalar
    return evaluate(ValueBins(kind).write_code(read), {"x": value})


def expected(kind: Type, value: Any) -> int:
    """The code by the exponent of a number, or the year of a day."""
    if value is None or (kind is Type.FLOAT and math.isnan(value)):
        return NULL
    if kind is Type.BOOL:
        return int(value)
    if kind in {Type.DATE, Type.TIMESTAMP}:
        return min(max((to_day(value) if kind is Type.TIMESTAMP else value).year, 1899), 2101)
    if kind is Type.INT:
        size = abs(value).bit_length()
        return math.copysign(min(size, 63), value) if value else 0
    if math.isinf(value):
        return 70 if value > 0 else -70
    # 0.5 <= m < 1 with |x| = m 2^e: [2^-20, 2^-19) has e = -19, and code 1
    size = min(max(math.frexp(abs(value))[1] + 20, 0), 70) if value else 0
    return size if value > 0 else -size


@pytest.mark.slow
@given(st.floats() | st.none())
def test_floats(value):
    assert code_of(Type.FLOAT, value) == expected(Type.FLOAT, value)


@pytest.mark.slow
@given(st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5) | st.none())
def test_integers(value):
    assert code_of(Type.INT, value) == expected(Type.INT, value)


EDGES = [sign * 2.0**power for power in range(-22, 52) for sign in (1, -1)]
EDGES += [math.nextafter(edge, away) for edge in EDGES for away in (math.inf, -math.inf)]


@pytest.mark.parametrize("value", [0.0, -0.0, TINY, -TINY, LARGEST, -LARGEST, math.inf, -math.inf, math.nan])
def test_floats_at_the_ends(value):
    assert code_of(Type.FLOAT, value) == expected(Type.FLOAT, value)


@pytest.mark.slow
def test_every_edge_of_floats_and_its_neighbors():
    assert [code_of(Type.FLOAT, value) for value in EDGES] == [expected(Type.FLOAT, value) for value in EDGES]


@pytest.mark.slow
def test_integers_at_the_ends():
    ends = [
        -(2**63),
        -(2**63) + 1,
        2**63 - 1,
        *(sign * (2**n + d) for n in range(63) for d in (-1, 0) for sign in (1, -1)),
    ]
    assert [code_of(Type.INT, value) for value in ends] == [expected(Type.INT, value) for value in ends]


@pytest.mark.parametrize("day", [(1, 1, 1), (1899, 12, 31), (1900, 1, 1), (2100, 12, 31), (2101, 1, 1), (9999, 12, 31)])
def test_days_at_the_ends(day):
    found = datetime.date(*day)
    assert code_of(Type.DATE, found) == expected(Type.DATE, found)


@pytest.mark.parametrize("moment", [0, 1, LAST, LAST - 1, 63_000_000_000_000_000])
def test_moments_at_the_ends(moment):
    assert code_of(Type.TIMESTAMP, moment) == expected(Type.TIMESTAMP, moment)


@pytest.mark.parametrize("kind", [Type.INT, Type.FLOAT, Type.DATE, Type.TIMESTAMP, Type.BOOL])
def test_missing_values_and_codes(kind):
    assert code_of(kind, None) == NULL
    assert NULL not in ValueBins(kind).codes


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "first"), [(Type.INT, 1), (Type.FLOAT, 2.0**-20)])
def test_bins_of_numbers_lie_side_by_side(kind, first):
    bins, number = ValueBins(kind), type(first)
    assert bins.edges(1)[0] == first
    for code in range(1, bins.codes[-1] + 1):
        lower, upper = bins.edges(code)
        assert code_of(kind, number(lower)) == code and code_of(kind, -number(lower)) == -code
        assert bins.edges(-code) == (None if upper is None else -upper, -lower)
        if upper is not None:
            assert upper == 2 * lower == bins.edges(code + 1)[0]
    assert bins.edges(bins.codes[-1])[1] is None
    assert bins.edges(0) == ((0, 0) if kind is Type.INT else (-Fraction(first), Fraction(first)))


def test_bins_of_days_are_years():
    bins = ValueBins(Type.DATE)
    assert bins.edges(2024) == (datetime.date(2024, 1, 1), datetime.date(2024, 12, 31))
    assert bins.edges(1899)[0] is None and bins.edges(2101)[1] is None
