"""SKEWNESS and KURTOSIS: what a row adds, what the sums say without noise, and what bars cover."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.aggregates.base import BoundAggregate, Estimator, Measurement, ReleasedVector, Releases, VectorMeasurement
from tacit.aggregates.registry import function_of
from tacit.engines.evaluate import evaluate
from tacit.mechanisms.laplace import Laplace
from tacit.plan.declared_columns import read_as_declared
from tacit.policy.model import Column as Declared
from tacit.query.nodes import Aggregate, ColumnReference
from tacit.query.types import Type
from tacit.sampling import laplace
from tacit.sampling.bits import ReplayBits

SHAPES = ["skewness", "kurtosis", "kurtosis_pop"]
PLAIN = duckdb.connect()
COLUMNS = {
    "few": Declared("x", Type.INT, Fraction(-10), Fraction(30)),
    "money": Declared("x", Type.FLOAT, Fraction(0), Fraction(50_000), Fraction(1, 100)),
    "wide": Declared("x", Type.INT, Fraction(0), Fraction(600_000), nullable=False),
    "bare": Declared("x", Type.FLOAT, Fraction(-1), Fraction(2)),
}


def bound(function: str, column: str = "few") -> BoundAggregate:
    argument = read_as_declared(COLUMNS[column], ColumnReference("x"))
    return BoundAggregate(Aggregate(function, ColumnReference("x")), argument, None, of_unit=False)


def measured(function: str, column: str = "few") -> tuple[Measurement, ...]:
    asked = bound(function, column)
    return function_of(asked.aggregate).measure(asked, frozenset())


def estimator(function: str, column: str = "few") -> Estimator:
    asked, parts = bound(function, column), measured(function, column)
    return function_of(asked.aggregate).estimator(asked, parts, list(range(len(parts))))


def added(part: Measurement, x: Any) -> int:
    assert isinstance(part, VectorMeasurement)
    total = 0
    for factor, measure in part.terms:
        value = 1 if measure.argument is None else evaluate(measure.argument, {"x": x})
        total += factor * (0 if value is None else int(value) if measure.function == "sum" else 1)
    return total


def releases(function: str, scales: list[int], column: str = "few") -> Releases:
    pairs = zip(measured(function, column), scales, strict=True)
    return Releases(ReleasedVector(part.name, Laplace(Fraction(scale)), part.unit) for part, scale in pairs)  # type: ignore[union-attr]  # all are vectors


anything = st.none() | st.integers(-(2**62), 2**62) | st.floats()


@pytest.mark.slow
@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("function", SHAPES)
@given(x=anything)
def test_a_row_adds_no_more_than_is_said(function: str, column: str, x: Any) -> None:
    declared = COLUMNS[column]
    held = x if x is None or declared.type is Type.FLOAT else int(x) if math.isfinite(x) else None
    held = float(held) if held is not None and declared.type is Type.FLOAT else held
    for part in measured(function, column):
        assert isinstance(part, VectorMeasurement)
        found = added(part, held)
        missing = held is None or math.isnan(held)
        assert part.lower <= found <= part.upper or (missing and found == 0)
        assert max(abs(part.lower), abs(part.upper)) < 2**62


def exactly(function: str, values: Any) -> float | None:
    """What DuckDB says, on a connection of this module's own."""
    text = f"SELECT {function}(x) FROM (SELECT unnest(?::DOUBLE[]) AS x)"
    ((found,),) = PLAIN.execute(text, [[float(value) for value in values]]).fetchall()
    return None if found is None or math.isnan(found) else float(found)


@pytest.mark.slow
@pytest.mark.parametrize("function", SHAPES)
@given(values=st.lists(st.integers(-10, 30), min_size=1, max_size=12))
def test_without_noise_it_is_duckdbs(function: str, values: list[int]) -> None:
    sums = [[sum(added(part, x) for x in [*values, None])] for part in measured(function)]
    parts = releases(function, [1] * len(sums))
    still = Releases(ReleasedVector(part.name, Laplace(Fraction(1, 10**6)), part.unit) for part in parts)  # type: ignore[union-attr]  # all are vectors
    low, middle, high = estimator(function).estimate(sums, still, Fraction(9, 10))
    (found,) = middle.to_pylist()
    wanted = exactly(function, values) if len(values) > 3 and len(set(values)) > 1 else found
    assert (found is None) == (wanted is None)
    if found is not None and wanted is not None:
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)
        assert low.to_pylist()[0] <= found <= high.to_pylist()[0]


DATA = {
    "even": lambda rng: rng.integers(-10, 31, 500),
    "skewed": lambda rng: np.minimum(rng.geometric(0.15, 500) - 10, 30),
    "two": lambda rng: np.where(rng.random(500) < 0.02, 30, -10),
    "few": lambda rng: np.array([-10, 0, 3, 30]),
    "steep": lambda rng: rng.integers(9, 12, 2000),
}


@pytest.mark.slow
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("function", SHAPES)
def test_bars_cover_at_least_as_often_as_they_say(function: str, data: str, full: bool) -> None:
    # Each trial covers with probability at least 0.8. Of 500, fewer than 340 do so with probability 5e-11 (binomial).
    tries, enough = (20_000, 15_650) if full else (500, 340)  # and fewer than 15,650 of 20,000 with 4e-10
    values = DATA[data](np.random.default_rng(7))
    parts = measured(function)
    scales = [max(1, part.upper // 20) for part in parts]  # type: ignore[union-attr]  # vectors
    noisy = []
    for index, (part, scale) in enumerate(zip(parts, scales, strict=True)):
        drawn = laplace.draw_array(Fraction(scale), tries, ReplayBits(f"{function} {data} {index}".encode()))
        total = sum(times * added(part, x) for x, times in Counter(map(int, values)).items())
        noisy.append([total + int(extra) for extra in drawn])
    low, middle, high = estimator(function).estimate(noisy, releases(function, scales), Fraction(8, 10))
    truth = exactly(function, values)
    assert truth is not None
    lows, highs = np.array(low.to_pylist()), np.array(high.to_pylist())
    assert np.isfinite(lows).all() and np.isfinite(highs).all()
    assert ((lows <= truth + 1e-9) & (truth - 1e-9 <= highs)).sum() >= enough
    found = [(a, b, c) for a, b, c in zip(lows, middle.to_pylist(), highs, strict=True) if b is not None]
    assert all(a - 1e-9 <= b <= c + 1e-9 for a, b, c in found)


def test_bars_of_many_rows_tell_something() -> None:
    # 100,000 rows, uniform, and noise of a row or two: skewness 0 and kurtosis -1.2 up to a tenth
    values, weights = range(-10, 31), 2439
    for function, wanted in (("skewness", 0.0), ("kurtosis_pop", -1.2)):
        parts = measured(function)
        sums = [[sum(weights * added(part, x) for x in values)] for part in parts]
        scales = [max(1, 2 * part.upper) for part in parts]  # type: ignore[union-attr]  # vectors
        low, middle, high = estimator(function).estimate(sums, releases(function, scales), Fraction(95, 100))
        assert middle.to_pylist()[0] == pytest.approx(wanted, abs=0.01)
        assert wanted - 0.1 < low.to_pylist()[0] < high.to_pylist()[0] < wanted + 0.1


def test_no_rows_have_no_shape_and_bars_stay_finite() -> None:
    for function in SHAPES:
        parts = measured(function)
        sums = [[0] for _ in parts]
        low, middle, high = estimator(function).estimate(sums, releases(function, [9] * len(parts)), Fraction(9, 10))
        assert middle.to_pylist() == [None]
        assert math.isfinite(low.to_pylist()[0]) and math.isfinite(high.to_pylist()[0])
