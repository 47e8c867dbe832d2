"""Scalars that are computed without the database: what plain Python and DuckDB say, value by value."""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.engines.deadline import TimeLimit, time_limit
from tacit.engines.evaluate import evaluate
from tacit.engines.plain_scalars import compute_plain
from tacit.engines.scalars import write_scalar
from tacit.query.functions import COMPARISONS, Function
from tacit.query.nodes import Call, Clamp, ColumnReference, Literal, Scalar, ToFloat

X = ColumnReference("x")
EDGES = {
    "int": [0, 1, -1, 7, 2**53, 2**53 + 1, -(2**53) - 1, 2**62, 2**63 - 1, -(2**63)],
    "float": [0.0, -0.0, 0.5, 1.0, -1.5, 7.25, 2.0**53, 5e-324, -5e-324, 1.7e308, math.inf, -math.inf, math.nan],
    "text": ["", "a", "A", "ab", "é", "e\u0301", "\uffff", "\U00010000", "z", "a\x00", " a"],
    "date": [
        datetime.date(1, 1, 1),
        datetime.date(1970, 1, 1),
        datetime.date(2024, 2, 29),
        datetime.date(9999, 12, 31),
    ],
    "bool": [True, False],
}
TYPES = {
    "int": [pa.int64()],
    "small": [pa.int8(), pa.int16(), pa.uint8(), pa.int32(), pa.uint32()],
    "float": [pa.float64()],
    "text": [pa.string(), pa.large_string()],
    "date": [pa.date32()],
    "bool": [pa.bool_()],
}
EDGES["small"] = [0, 1, 7, 100, 127]


@st.composite
def columns(draw: st.DrawFn) -> tuple[str, pa.Array]:
    """A kind of column, half of them of doubles, and all values at its edges."""
    kind = draw(st.sampled_from([*sorted(TYPES), *["float"] * 5]))
    return kind, pa.array([*EDGES[kind], None], draw(st.sampled_from(TYPES[kind])))


def constants(kind: str) -> st.SearchStrategy[Scalar]:
    """Constants of the type of a column, as a question has them."""
    edges = [edge for edge in EDGES[kind] if not (isinstance(edge, float) and not math.isfinite(edge))]
    if kind == "float":
        return st.sampled_from([Literal(Fraction(edge)) for edge in edges] + [ToFloat(Literal(2**53 + 1))])
    return st.sampled_from([Literal(edge) for edge in edges])


@st.composite
def operands(draw: st.DrawFn, kind: str) -> tuple[Scalar, str]:
    """What is compared, and the kind of constants that it is compared with."""
    if kind not in {"int", "small", "float"}:
        return X, kind
    operand: Scalar = X
    if draw(st.booleans()):
        ends = draw(st.sampled_from([(-2, 7), (0, 0), (0, 100), (None, None), (-(2**40), 2**60)]))
        lower, upper = (None if end is None else Fraction(end) for end in ends)
        operand = Clamp(X, lower, upper, kind != "float")
    if kind != "float" and draw(st.booleans()):
        return ToFloat(operand), "float"
    return operand, kind


@st.composite
def conditions(draw: st.DrawFn, kind: str, depth: int = 2) -> Scalar:
    """A condition that is computed without the database."""
    form = draw(st.sampled_from(["compare", "compare", "in", "null", *(["not", "and", "or"] if depth else [])]))
    if form in {"and", "or"}:
        parts = tuple(draw(conditions(kind, depth - 1)) for _ in range(draw(st.integers(2, 3))))
        return Call(Function(form), parts)
    if form == "not":
        return Call(Function.NOT, (draw(conditions(kind, depth - 1)),))
    operand, of = draw(operands(kind))
    if form == "null":
        return Call(Function.IS_NULL, (operand,))
    if form == "in":
        return Call(Function.IN, (operand, *draw(st.lists(constants(of), min_size=1, max_size=5))))
    functions = sorted({Function.EQUAL, Function.UNEQUAL} if kind == "bool" else COMPARISONS)
    both = (operand, draw(constants(of)))
    return Call(draw(st.sampled_from(functions)), both if draw(st.booleans()) else both[::-1])


def bits(value: Any) -> Any:
    """A value by which equal ones are the same, floats bit by bit."""
    return struct.pack(">d", value) if isinstance(value, float) else value


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """A database that computes the same."""
    with duckdb.connect() as opened:
        yield opened


@settings(max_examples=examples(1200))
@given(st.data())
def test_a_condition_is_what_plain_python_and_duckdb_say(database, data):
    kind, values = data.draw(columns())
    condition = data.draw(conditions(kind))
    found = compute_plain(condition, values)
    assert found is not None
    expected = [evaluate(condition, {"x": value}) for value in values.to_pylist()]
    assert found.to_pylist() == expected
    database.register("rows", pa.table({"x": values, "n": range(len(values))}))
    told = database.execute(f"SELECT {write_scalar(condition)} FROM rows ORDER BY n").fetchall()
    assert [value for (value,) in told] == expected


@given(columns())
def test_a_column_is_its_values(column):
    _, values = column
    found = compute_plain(X, values)
    assert list(map(bits, found.to_pylist())) == list(map(bits, values.to_pylist()))


@given(
    st.lists(st.sampled_from([*EDGES["int"], None]), min_size=1, max_size=12), st.sampled_from([(-2, 7), (0, 2**60)])
)
def test_a_clamped_integer(values, ends):
    clamped = Clamp(X, *map(Fraction, ends), whole=True)
    found = compute_plain(clamped, pa.array(values, pa.int64()))
    assert found.to_pylist() == [evaluate(clamped, {"x": value}) for value in values]


@pytest.mark.parametrize(
    ("scalar", "kind"),
    [
        (Clamp(X, Fraction(0), Fraction(1), whole=False), pa.float64()),  # -0.0 could become 0.0
        (Call(Function.GREATER, (X, Literal(2**70))), pa.int64()),
        (Call(Function.GREATER, (X, Literal(1))), pa.uint64()),
        (Call(Function.EQUAL, (X, Literal(Fraction(1)))), pa.int64()),
        (Call(Function.EQUAL, (X, Literal(True))), pa.int64()),
        (Call(Function.EQUAL, (X, Literal(1))), pa.bool_()),
        (Call(Function.LESS, (X, Literal(True))), pa.bool_()),
        (Call(Function.EQUAL, (X, Literal("a"))), pa.date32()),
        (Call(Function.EQUAL, (X, Literal(None))), pa.int64()),
        (Call(Function.EQUAL, (X, Literal(datetime.datetime(2024, 1, 1)))), pa.date32()),
        (Call(Function.IN, (X, *map(Literal, range(17)))), pa.int64()),
        (Call(Function.IN, (X, Literal(1), Literal(None))), pa.int64()),
        (Call(Function.NOT, (Call(Function.LIKE, (X, Literal("a%"))),)), pa.string()),
        (Call(Function.AND, (Call(Function.IS_NULL, (X,)), Call(Function.LIKE, (X, Literal("a"))))), pa.string()),
        (Call(Function.EQUAL, (Call(Function.LENGTH, (X,)), Literal(1))), pa.string()),
        (Call(Function.ADD, (X, Literal(1))), pa.int64()),
        (Literal(1), pa.int64()),
    ],
)
def test_all_else_is_left_to_the_database(scalar, kind):
    assert compute_plain(scalar, pa.nulls(3, kind)) is None


def test_comparisons_stop_at_the_time_limit_of_their_question():
    values = pa.array(range(200_000))
    listed = Call(Function.NOT, (Call(Function.IN, (X, *map(Literal, range(16)))),))
    condition = Call(Function.AND, (listed,) * 500)  # seconds of comparisons
    with time_limit(0.05), pytest.raises(TimeLimit):
        compute_plain(condition, values)
    with time_limit(60):
        assert compute_plain(listed, values) is not None
