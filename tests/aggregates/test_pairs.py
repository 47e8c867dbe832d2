"""Covariance, correlation and regression: what a row adds, what the sums say without noise, and what bars cover."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples, some

from tacit.aggregates.base import BoundAggregate, Estimator, Measurement, ReleasedVector, Releases, VectorMeasurement
from tacit.aggregates.registry import function_of
from tacit.engines.evaluate import evaluate
from tacit.mechanisms.laplace import Laplace
from tacit.plan.declared_columns import read_as_declared
from tacit.policy.model import Column as Declared
from tacit.query.nodes import Aggregate, ColumnReference, ExactStatistic
from tacit.query.types import Type
from tacit.sampling import laplace
from tacit.sampling.bits import ReplayBits

X = Declared("x", Type.FLOAT, Fraction(-3), Fraction(5), Fraction(1, 4))
Y = Declared("y", Type.INT, Fraction(10), Fraction(90))
REGRESSION = [f"regr_{of}" for of in ["count", "avgx", "avgy", "sxx", "syy", "sxy", "slope", "intercept", "r2"]]
PAIRS = ["covar_samp", "covar_pop", "corr", *REGRESSION]  # of the first as y and the second as x
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


def exactly(function: str, first: Any, second: Any) -> float | None:
    """The value without noise, of two columns of numbers; None where it is NULL."""
    one, other = first - first.mean(), second - second.mean()
    sxy, sxx, syy = float((one * other).sum()), float((other**2).sum()), float((one**2).sum())
    if function in {"covar_samp", "covar_pop"}:
        return sxy / (len(first) - (function == "covar_samp"))
    if function == "corr":
        return None if sxx * syy == 0 else sxy / math.sqrt(sxx * syy)
    plain = {"regr_count": len(first), "regr_avgx": second.mean(), "regr_avgy": first.mean()}
    plain |= {"regr_sxx": sxx, "regr_syy": syy, "regr_sxy": sxy}
    if function in plain:
        return float(plain[function])
    if sxx < 1e-9:
        return None
    slope = sxy / sxx
    intercept = first.mean() - slope * second.mean()
    return {"regr_slope": slope, "regr_intercept": intercept, "regr_r2": 1.0 if syy < 1e-9 else slope * sxy / syy}[
        function
    ]


number = st.none() | st.floats() | st.integers(-10, 10).map(float)
whole = st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 100)


@pytest.mark.slow
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
@settings(max_examples=examples(100))
@given(rows=ROWS)
def test_without_noise_it_is_numpys(function: str, rows: list[tuple[float, int]]) -> None:
    held = [{"x": x, "y": y} for x, y in rows] + [{"x": None, "y": 50}, {"x": 1.0, "y": None}]
    parts = measured(function)
    _, middle, _ = estimator(function).estimate(
        sums_of(function, held), releases(function, [STILL] * len(parts)), Fraction(95, 100)
    )
    (found,) = middle.to_pylist()
    wanted = exactly(function, *np.array(rows, dtype=float).T)
    if function.startswith("regr") and wanted is not None:
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)
    elif wanted is None and function != "corr":
        assert found is None
    elif wanted is None:  # rounding may leave a spread of a hair in place of none
        assert found is None or -1 <= found <= 1
    else:
        assert found == pytest.approx(wanted, rel=1e-6, abs=1e-6)


SHAPES = {
    "none": lambda rng: (rng.integers(-12, 21, 400) / 4, rng.integers(10, 91, 400)),
    "strong": lambda rng: ((base := rng.integers(-12, 21, 400)) / 4, 50 + 2 * base),
    "against": lambda rng: ((base := rng.integers(-12, 21, 400)) / 4, 50 - 2 * base + rng.integers(-3, 4, 400)),
    "few": lambda rng: (np.array([-3.0, 0.0, 5.0]), np.array([10, 90, 40])),
}


CASES = [(name, [*SHAPES][(place + shift) % 4]) for place, name in enumerate(PAIRS) for shift in range(4)]


@cache
def shaped(shape: str) -> tuple[Any, Any]:
    return SHAPES[shape](np.random.default_rng(5))


@cache
def sum_of(part: Measurement, shape: str) -> int:
    """What a vector adds up to without noise."""
    return sum(added(part, {"x": float(a), "y": int(b)}) for a, b in zip(*shaped(shape), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize(("function", "shape"), some(CASES, 2))
def test_bars_cover_at_least_as_often_as_they_say(function: str, shape: str, full: bool) -> None:
    # Each trial covers with probability at least 0.8. Of 500, fewer than 340 do so with probability 5e-11 (binomial).
    tries, enough = (20_000, 15_650) if full else (500, 340)  # and fewer than 15,650 of 20,000 with 4e-10
    x, y = shaped(shape)
    parts = measured(function)
    exact = [[sum_of(part, shape)] for part in parts]
    mechanisms = [Laplace(Fraction(max(1, part.upper // 20))) for part in parts]  # type: ignore[union-attr]  # vectors
    noisy = []
    for index, ((number,), mechanism) in enumerate(zip(exact, mechanisms, strict=True)):
        drawn = laplace.draw_array(mechanism.scale, tries, ReplayBits(f"{function} {shape} {index}".encode()))
        noisy.append([number + int(extra) for extra in drawn])
    low, middle, high = estimator(function).estimate(noisy, releases(function, mechanisms), Fraction(8, 10))
    truth = exactly(function, x, np.clip(y, 10, 90))  # within the bounds of y
    assert truth is not None
    lows, highs = np.array(low.to_pylist()), np.array(high.to_pylist())
    assert ((lows <= truth + 1e-9) & (truth - 1e-9 <= highs)).sum() >= enough
    found = [(a, b, c) for a, b, c in zip(lows, middle.to_pylist(), highs, strict=True) if b is not None]
    assert all(a - 1e-9 <= b <= c + 1e-9 for a, b, c in found)


@pytest.mark.slow
def test_bars_of_a_correlation_tell_something() -> None:
    # 4,000 strongly correlated rows and noise of a row or two: within a tenth, and above a half
    rows = [{"x": n / 4, "y": 50 + 2 * n} for n in range(-12, 21)]
    exact = [[121 * number for number in numbers] for numbers in sums_of("corr", rows)]
    parts = measured("corr")
    mechanisms = [Laplace(Fraction(max(1, 2 * part.upper))) for part in parts]  # type: ignore[union-attr]  # vectors
    low, _, high = estimator("corr").estimate(exact, releases("corr", mechanisms), Fraction(95, 100))
    assert low.to_pylist()[0] > 0.9
    assert high.to_pylist()[0] == 1.0


@pytest.mark.slow
def test_bars_of_a_slope_tell_something() -> None:
    # 4,000 rows on a line of slope 1/8, and noise of a row or two: within a fifth
    rows = [{"x": n / 4, "y": 50 + 2 * n} for n in range(-12, 21)]
    exact = [[121 * number for number in numbers] for numbers in sums_of("regr_slope", rows)]
    parts = measured("regr_slope")
    mechanisms = [Laplace(Fraction(max(1, 2 * part.upper))) for part in parts]  # type: ignore[union-attr]  # vectors
    low, middle, high = estimator("regr_slope").estimate(exact, releases("regr_slope", mechanisms), Fraction(95, 100))
    assert middle.to_pylist()[0] == pytest.approx(1 / 8)
    assert 0.1 < low.to_pylist()[0] < high.to_pylist()[0] < 0.15


@pytest.mark.slow
def test_a_constant_x_has_no_slope_and_a_constant_y_is_explained_wholly() -> None:
    flat = [{"x": n / 4, "y": 50} for n in range(-12, 20)]
    level = [{"x": 1.0, "y": n} for n in range(10, 90)]
    for rows, function, wanted in [
        (flat, "regr_slope", None),
        (flat, "regr_intercept", None),
        (flat, "regr_r2", None),
        (level, "regr_slope", 0.0),
        (level, "regr_intercept", 1.0),
        (level, "regr_r2", 1.0),
    ]:
        parts = measured(function)
        _, middle, _ = estimator(function).estimate(
            sums_of(function, rows), releases(function, [STILL] * len(parts)), Fraction(9, 10)
        )
        assert middle.to_pylist() == [pytest.approx(wanted, abs=1e-9) if wanted is not None else None]


def test_what_a_regression_and_a_correlation_need_is_paid_once() -> None:
    every = {part for function in PAIRS for part in measured(function)}
    assert every == set(measured("corr"))


def test_no_rows_are_no_covariance_and_bars_say_nothing() -> None:
    for function in ("covar_samp", "covar_pop", "corr", "regr_slope", "regr_intercept"):
        low, middle, high = estimator(function).estimate(
            sums_of(function, []), releases(function, [Laplace(Fraction(1))] * len(measured(function))), Fraction(9, 10)
        )
        assert middle.to_pylist() == [None]
        assert low.to_pylist()[0] < 0 < high.to_pylist()[0]
