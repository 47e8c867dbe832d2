"""CORR(y, x): the covariance over the root of both variances, of rows that have both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from tacit.aggregates.argument import quote_aggregate
from tacit.aggregates.base import (
    AggregateFunction,
    BoundAggregate,
    Estimates,
    Floats,
    Measurement,
    Releases,
    float_type,
)
from tacit.aggregates.covariance import (
    WEIGHTS,
    CovarianceEstimator,
    box,
    covariance_range,
    in_units,
    quantized_pair,
    read_pair,
)
from tacit.query.bound import TypedScalar

_PARTS = 6


@dataclass(frozen=True)
class CorrelationEstimator:
    """covariance / sqrt(variance of x * variance of y), between -1 and 1.

    NULL where the released count or a variance is not positive. `squares` are the releases of x and of y whose values
    are sums of d^2 - range^2/8, and `half_ranges` half the declared ranges.
    """

    covariance: CovarianceEstimator
    squares: tuple[int, int]
    half_ranges: tuple[float, float]
    values_per_group = 1
    is_always_number = False
    is_selection = False
    is_integer_sum = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The releases that it is made of."""
        return *self.covariance.positions, *self.squares

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the correlation of each group, with its interval."""
        sums = in_units(released, releases)
        low, high = self.interval(sums, releases, confidence)
        return pa.array(low), pa.array(self.simulate(sums), from_pandas=True), pa.array(high)

    def simulate(self, drawn: Sequence[Floats]) -> Floats:
        """Return the values that redrawn noise gives, NaN for NULL."""
        counts = drawn[self.covariance.count]
        covariance = self.covariance.simulate(drawn)
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = [
                drawn[position] / counts + half**2 / 2 - (drawn[total] / counts) ** 2
                for position, total, half in self._axes()
            ]
            spread = np.sqrt(np.maximum(variances[0], 0.0) * np.maximum(variances[1], 0.0))
            found = np.clip(covariance / spread, -1.0, 1.0)
        return np.where((counts > 0) & (spread > 0), found, np.nan)

    def half_width(self, releases: Releases, confidence: Fraction) -> None:
        """Return None: the half-width depends on the data."""
        return None

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return the half-width where nothing is correlated and both variances are half of what they can be."""
        sums = [np.zeros(len(rows)) for _ in releases]
        sums[self.covariance.count] = np.array(rows, dtype=np.float64)
        low, high = self.interval(sums, releases, confidence)
        return tuple(((high - low) / 2).tolist())

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return the empty text: this is no selection."""
        return ""

    def interval(self, sums: Sequence[Floats], releases: Releases, confidence: Fraction) -> tuple[Floats, Floats]:
        """Return the interval of each correlation, from intervals of the covariance and of both variances.

        **Theorem.** Each of the six sums leaves its own interval with probability at most alpha/6, so with at least the
        confidence the covariance and both variances lie in the ranges that the box allows. A quotient by a positive
        number is largest at an end of it: at the least one if the covariance is positive, and at the largest if not.
        """
        level = 1 - (1 - confidence) / _PARTS
        low, high = self.covariance.interval(sums, releases, confidence, _PARTS)
        low_n, high_n = box(sums, releases, self.covariance.count, level)
        known = low_n > 0
        counts = np.where(known, low_n, 2.0), np.where(known, high_n, 3.0)
        least, most = np.ones_like(low), np.ones_like(low)
        for position, total, half in self._axes():
            squares, first = box(sums, releases, position, level), box(sums, releases, total, level)
            near = np.where((first[0] <= 0) & (first[1] >= 0), 0.0, np.minimum(np.abs(first[0]), np.abs(first[1])))
            far = np.maximum(np.abs(first[0]), np.abs(first[1]))
            smallest, _ = covariance_range(squares, (far, far), (far, far), counts)
            _, largest = covariance_range(squares, (near, near), (near, near), counts)
            least = least * np.clip(smallest + half**2 / 2, 0.0, half**2)
            most = most * np.clip(largest + half**2 / 2, 0.0, half**2)
        with np.errstate(divide="ignore", invalid="ignore"):
            up = np.where(high > 0, high / np.sqrt(least), high / np.sqrt(most))
            down = np.where(low < 0, low / np.sqrt(least), low / np.sqrt(most))
        up, down = np.nan_to_num(up, nan=1.0, posinf=1.0), np.nan_to_num(down, nan=-1.0, neginf=-1.0)
        up, down = np.clip(up, -1.0, 1.0), np.clip(down, -1.0, 1.0)
        return np.where(known, down, -1.0), np.where(known, up, 1.0)

    def _axes(self) -> tuple[tuple[int, int, float], tuple[int, int, float]]:
        """Return, of x and of y, the releases of the squares and of the sum, and half the range."""
        one, other = self.half_ranges
        return (self.squares[0], self.covariance.first, one), (self.squares[1], self.covariance.second, other)


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    pair, quoted = quantized_pair(bound), quote_aggregate(bound.aggregate)
    return (
        pair.products(f"centered products of {quoted}"),
        pair.paired_sum(pair.first, f"first centered sum of {quoted}"),
        pair.paired_sum(pair.second, f"second centered sum of {quoted}"),
        pair.count(f"count of {quoted}"),
        pair.squares(pair.first, f"first centered squares of {quoted}"),
        pair.squares(pair.second, f"second centered squares of {quoted}"),
    )


def _estimator(bound: BoundAggregate, _: tuple[Measurement, ...], positions: list[int]) -> CorrelationEstimator:
    pair = quantized_pair(bound)
    products, first, second, count, *squares = positions
    covariance = CovarianceEstimator(products, first, second, count, pair.most, is_sample=False)
    halves = [float(each.step * (each.upper - each.lower) / 2) for each in (pair.first, pair.second)]
    return CorrelationEstimator(covariance, (squares[0], squares[1]), (halves[0], halves[1]))


CORRELATION = AggregateFunction(
    syntax={"corr": read_pair("corr")},
    functions=("corr",),
    result_type=float_type,
    measure=_measure,
    estimator=_estimator,
    budget_weights=(*WEIGHTS, Fraction(7, 10), Fraction(7, 10)),
)
