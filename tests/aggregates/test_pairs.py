"""Covariance, correlation and geometric mean: what a row adds, what the sums say without noise, and what bars cover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.aggregates.base import BoundAggregate, Estimator, Measurement, ReleasedVector, Releases, VectorMeasurement
from tacit.aggregates.registry import function_of
from tacit.engines.evaluate import evaluate
from tacit.mechanisms.laplace import Laplace
from tacit.plan.scope import read_as_declared
from tacit.policy.model import Column as Declared
from tacit.query.nodes import Aggregate, ColumnReference, ExactStatistic
from tacit.query.types import Type
from tacit.sampling import laplace
from tacit.sampling.bits import ReplayBits

X = Declared("x", Type.FLOAT, Fraction(-3), Fraction(5), Fraction(1, 4))
Y = Declared("y", Type.INT, Fraction(10), Fraction(90))
PAIRS = ["covar_samp", "covar_pop", "corr"]
STILL = Laplace(Fraction(1, 10**6))


def bound(function: str) -> BoundAggregate:
    one, other = read_as_declared(X, ColumnReference("x")), read_as_declared(Y, ColumnReference("y"))
    return BoundAggregate(
        Aggregate(function, ColumnReference("x"), others=(ColumnReference("y"),)), one, None, False, (other,)
    )


def measured(function: str) -> tuple[Measurement, ...]:
    return function_of(bound(function).aggregate).measure(bound(function), frozenset())


def estimator(function: str) -> Estimator:
    parts = measured(function)
    return function_of(bound(function).aggregate).estimator(bound(function), parts, list(range(len(parts))))


def added(part: Measurement, row: dict[str, Any]) -> int:
    """What one row adds to a vector."""
    assert isinstance(part, VectorMeasurement)
    return sum(factor * _measured(measure, row) for factor, measure in part.terms)


def _measured(measure: ExactStatistic, row: dict[str, Any]) -> int:
    value = 1 if measure.argument is None else evaluate(measure.argument, row)
    return 0 if value is None else (int(value) if measure.function == "sum" else 1)


def sums_of(function: str, rows: Sequence[dict[str, Any]]) -> list[list[int]]:
    return [[sum(added(part, row) for row in rows)] for part in measured(function)]


def releases(function: str, mechanisms: Sequence[Laplace]) -> Releases:
    pairs = zip(measured(function), mechanisms, strict=True)
    return Releases(ReleasedVector(part.name, mechanism, part.unit) for part, mechanism in pairs)  # type: ignore[union-attr]  # all are vectors


number = st.none() | st.floats() | st.integers(-10, 10).map(float)
whole = st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 100)


@pytest.mark.parametrize("function", PAIRS)
@given(x=number, y=whole)
def test_a_row_adds_no_more_than_is_said_and_nothing_where_one_is_missing(function: str, x: Any, y: Any) -> None:
    for part in measured(function):
        assert isinstance(part, VectorMeasurement)
        found = added(part, {"x": x, "y": y})
        missing = x is None or math.isnan(x) or y is None
        assert found == 0 if missing else part.lower <= found <= part.upper


ROWS = st.lists(st.tuples(st.integers(-12, 20).map(lambda n: n / 4), st.integers(10, 90)), min_size=2, max_size=12)


@pytest.mark.slow
@pytest.mark.parametrize("function", PAIRS)
@given(rows=ROWS)
def test_without_noise_it_is_numpys(function: str, rows: list[tuple[float, int]]) -> None:
    held = [{"x": x, "y": y} for x, y in rows] + [{"x": None, "y": 50}, {"x": 1.0, "y": None}]
    parts = measured(function)
    _, middle, _ = estimator(function).estimate(
        sums_of(function, held), releases(function, [STILL] * len(parts)), Fraction(95, 100)
    )
    x, y = np.array(rows, dtype=float).T
    (found,) = middle.to_pylist()
    if function == "corr":
        spread = x.std() * y.std()
        wanted = None if spread == 0 else float(((x - x.mean()) * (y - y.mean())).mean() / spread)
    else:
        wanted = float(np.cov(x, y, ddof=1 if function == "covar_samp" else 0)[0, 1])
    if wanted is None:  # rounding may leave a spread of a hair in place of none
        assert found is None or -1 <= found <= 1
    else:
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)


SHAPES = {
    "none": lambda rng: (rng.integers(-12, 21, 400) / 4, rng.integers(10, 91, 400)),
    "strong": lambda rng: ((base := rng.integers(-12, 21, 400)) / 4, 50 + 2 * base),
    "against": lambda rng: ((base := rng.integers(-12, 21, 400)) / 4, 50 - 2 * base + rng.integers(-3, 4, 400)),
    "few": lambda rng: (np.array([-3.0, 0.0, 5.0]), np.array([10, 90, 40])),
}


@pytest.mark.slow
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("function", PAIRS)
def test_bars_cover_at_least_as_often_as_they_say(function: str, shape: str, full: bool) -> None:
    # Each trial covers with probability at least 0.8. Of 500, fewer than 340 do so with probability 5e-11 (binomial).
    tries, enough = (20_000, 15_650) if full else (500, 340)  # and fewer than 15,650 of 20,000 with 4e-10
    x, y = SHAPES[shape](np.random.default_rng(5))
    exact = sums_of(function, [{"x": float(a), "y": int(b)} for a, b in zip(x, y, strict=True)])
    parts = measured(function)
    mechanisms = [Laplace(Fraction(max(1, part.upper // 20))) for part in parts]  # type: ignore[union-attr]  # vectors
    noisy = []
    for index, ((number,), mechanism) in enumerate(zip(exact, mechanisms, strict=True)):
        drawn = laplace.draw_array(mechanism.scale, tries, ReplayBits(f"{function} {shape} {index}".encode()))
        noisy.append([number + int(extra) for extra in drawn])
    low, middle, high = estimator(function).estimate(noisy, releases(function, mechanisms), Fraction(8, 10))
    spread = x.std() * y.std()
    cov = float(((x - x.mean()) * (y - y.mean())).mean())
    truth = {"covar_pop": cov, "covar_samp": cov * len(x) / (len(x) - 1), "corr": cov / spread}[function]
    lows, highs = np.array(low.to_pylist()), np.array(high.to_pylist())
    assert ((lows <= truth + 1e-9) & (truth - 1e-9 <= highs)).sum() >= enough
    found = [(a, b, c) for a, b, c in zip(lows, middle.to_pylist(), highs, strict=True) if b is not None]
    assert all(a - 1e-9 <= b <= c + 1e-9 for a, b, c in found)


@pytest.mark.slow
def test_bars_of_a_correlation_tell_something() -> None:
    # 4,000 strongly correlated rows and noise of a row or two: within a tenth, and above a half
    base = np.random.default_rng(3).integers(-12, 21, 4000)
    rows = [{"x": n / 4, "y": int(50 + 2 * n)} for n in base]
    parts = measured("corr")
    mechanisms = [Laplace(Fraction(max(1, 2 * part.upper))) for part in parts]  # type: ignore[union-attr]  # vectors
    low, _, high = estimator("corr").estimate(sums_of("corr", rows), releases("corr", mechanisms), Fraction(95, 100))
    assert low.to_pylist()[0] > 0.9
    assert high.to_pylist()[0] == 1.0


def test_no_rows_are_no_covariance_and_bars_say_nothing() -> None:
    for function in PAIRS:
        low, middle, high = estimator(function).estimate(
            sums_of(function, []), releases(function, [Laplace(Fraction(1))] * len(measured(function))), Fraction(9, 10)
        )
        assert middle.to_pylist() == [None]
        assert low.to_pylist()[0] < 0 < high.to_pylist()[0]
