"""REGR_SLOPE(y, x) and its relatives: least squares, from the sums that COVAR and CORR are made of.

Rows that lack one of both are left out. With N the number of rows that have both, S and T the sums of the distances of
y and x from the centers of their ranges, P the sum of the products of these distances and Q the sums of their squares:

    REGR_SXY = P - S T/N    REGR_SXX = Q_x - T^2/N    REGR_SYY = Q_y - S^2/N
    REGR_SLOPE = SXY/SXX    REGR_INTERCEPT = AVGY - SLOPE AVGX    REGR_R2 = SXY^2/(SXX SYY)

What is released in place of Q is Q - N h^2/2, with h half of the range: one row then moves it by less.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tacit.aggregates.argument import quote_aggregate
from tacit.aggregates.base import (
    AggregateFunction,
    BoundAggregate,
    Estimates,
    Estimator,
    Floats,
    Measurement,
    QuantizedArgument,
    Releases,
    VectorMeasurement,
    float_type,
)
from tacit.aggregates.covariance import WEIGHTS, Pair, box, in_units, quantized_pair, read_pair
from tacit.aggregates.direct import DirectEstimator
from tacit.aggregates.mean import mean_estimator
from tacit.query.bound import TypedScalar
from tacit.query.types import Type

Interval = tuple[Floats, Floats]

_COUNT, _X, _Y, _PRODUCTS, _XX, _YY = range(6)  # N, T, S, P, Q_x and Q_y
_NEEDED = {
    "regr_count": (_COUNT,),
    "regr_avgx": (_X, _COUNT),
    "regr_avgy": (_Y, _COUNT),
    "regr_sxx": (_XX, _X, _COUNT),
    "regr_syy": (_YY, _Y, _COUNT),
    "regr_sxy": (_PRODUCTS, _Y, _X, _COUNT),
    "regr_slope": (_PRODUCTS, _Y, _X, _COUNT, _XX),
    "regr_intercept": (_PRODUCTS, _Y, _X, _COUNT, _XX),
    "regr_r2": (_PRODUCTS, _Y, _X, _COUNT, _XX, _YY),
}


@dataclass(frozen=True)
class Axis:
    """One of both arguments: where its sum and its squares are released, its center and half its range, and its step.

    `squares` is None where they are not needed.
    """

    sum: int
    squares: int | None
    center: float
    half: float
    step: float

    def spread(self, drawn: Sequence[Floats], counts: Floats) -> Floats:
        """Return REGR_SXX of this axis; zero where it is less than half of the least that different values can make.

        That is half of a squared step: of n values of which one is a step off it is (n - 1)/n of a squared step.
        """
        assert self.squares is not None
        with np.errstate(divide="ignore", invalid="ignore"):
            found = drawn[self.squares] + counts * self.half**2 / 2 - drawn[self.sum] ** 2 / counts
        return np.where(found < self.step**2 / 4, 0.0, np.minimum(found, np.maximum(counts, 0.0) * self.half**2))

    def mean(self, drawn: Sequence[Floats], counts: Floats) -> Floats:
        """Return the mean, within the range."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.center + np.clip(drawn[self.sum] / counts, -self.half, self.half)


@dataclass(frozen=True)
class Box:
    """Intervals that hold all the sums together. `known` is where the number of rows is surely above zero."""

    sums: Sequence[Floats]
    releases: Releases
    level: Fraction
    count: int

    def interval(self, position: int) -> Interval:
        """Return the interval of a sum."""
        return box(self.sums, self.releases, position, self.level)

    @property
    def known(self) -> npt.NDArray[np.bool_]:
        """Where the number of rows is surely above zero."""
        return self.interval(self.count)[0] > 0

    @property
    def counts(self) -> Interval:
        """The number of rows, where it is known; two and three elsewhere."""
        low, high = self.interval(self.count)
        return np.where(self.known, low, 2.0), np.where(self.known, high, 3.0)

    def most(self, size: float) -> Floats:
        """Return the largest number of rows times a size."""
        return np.maximum(self.interval(self.count)[1], 0.0) * size

    def spread(self, axis: Axis) -> Interval:
        """Return the interval of REGR_SXX of an axis.

        **Theorem.** Q + N h^2/2 - S^2/N grows with Q and with N and falls with |S|, so its extremes are at ends.
        """
        assert axis.squares is not None
        squares, sums, counts = self.interval(axis.squares), self.interval(axis.sum), self.counts
        near = np.where((sums[0] <= 0) & (sums[1] >= 0), 0.0, np.minimum(np.abs(sums[0]), np.abs(sums[1])))
        far = np.maximum(np.abs(sums[0]), np.abs(sums[1]))
        low = squares[0] + counts[0] * axis.half**2 / 2 - far**2 / counts[0]
        high = squares[1] + counts[1] * axis.half**2 / 2 - near**2 / counts[1]
        most = self.most(axis.half**2)
        return np.where(self.known, np.clip(low, 0.0, most), 0.0), np.where(self.known, np.clip(high, 0.0, most), most)

    def products(self, position: int, one: Axis, other: Axis) -> Interval:
        """Return the interval of REGR_SXY.

        **Theorem.** P - S T/N grows with P; S T ranges over an interval between products of ends, and its quotient by
        N > 0 has its extremes at ends too. By Cauchy and Schwarz it is at most N h_x h_y in size.
        """
        products, first, second = self.interval(position), self.interval(one.sum), self.interval(other.sum)
        corners = np.stack([s * t / n for s in first for t in second for n in self.counts])
        most = self.most(one.half * other.half)
        low = np.clip(products[0] - corners.max(axis=0), -most, most)
        high = np.clip(products[1] - corners.min(axis=0), -most, most)
        return np.where(self.known, low, -most), np.where(self.known, high, most)

    def mean(self, axis: Axis) -> Interval:
        """Return the interval of a mean: a quotient by N > 0 has its extremes at ends."""
        corners = np.stack([s / n for s in self.interval(axis.sum) for n in self.counts])
        low, high = (np.clip(some, -axis.half, axis.half) for some in (corners.min(axis=0), corners.max(axis=0)))
        low, high = np.where(self.known, low, -axis.half), np.where(self.known, high, axis.half)
        return axis.center + low, axis.center + high


@dataclass(frozen=True)
class RegressionEstimator:
    """One of REGR_SXX, REGR_SYY, REGR_SXY, REGR_SLOPE, REGR_INTERCEPT and REGR_R2.

    NULL where the released count is not positive, and, of what is divided by REGR_SXX, where that is not.

    **Theorem.** The slope lies between -R/s and R/s, with R the range of y and s the step of x. Proof: SXY and SXX are
    sums over all pairs of rows, of (x_i - x_j)(y_i - y_j)/N and of (x_i - x_j)^2/N. So the slope is an average of the
    slopes of pairs of rows with different x, which lie at least s apart, while y differs by at most R.
    """

    function: str
    count: int
    x: Axis
    y: Axis
    products: int | None
    values_per_group = 1
    is_always_number = False
    is_selection = False
    is_integer_sum = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The releases that it is made of."""
        sums = (self.products, self.y.sum, self.x.sum, self.count, self.x.squares, self.y.squares)
        return tuple(position for position in sums if position is not None and position >= 0)

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the value of each group, with its interval."""
        sums = in_units(released, releases)
        low, high = self.interval(sums, releases, confidence)
        return pa.array(low), pa.array(self.simulate(sums), from_pandas=True), pa.array(high)

    def simulate(self, drawn: Sequence[Floats]) -> Floats:
        """Return the values that redrawn noise gives, NaN for NULL."""
        counts = drawn[self.count]
        found = _VALUES[self.function](self, drawn, counts)
        return np.where(counts > 0, found, np.nan)

    def half_width(self, releases: Releases, confidence: Fraction) -> None:
        """Return None: the half-width depends on the data."""
        return None

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return the half-width where both variances are half of what they can be, and the correlation is a half."""
        sums = [np.zeros(len(rows)) for _ in releases]
        sums[self.count] = np.array(rows, dtype=np.float64)
        if self.products is not None:
            sums[self.products] = sums[self.count] * self.x.half * self.y.half / 4
        low, high = self.interval(sums, releases, confidence)
        return tuple(((high - low) / 2).tolist())

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return the empty text: this is no selection."""
        return ""

    def interval(self, sums: Sequence[Floats], releases: Releases, confidence: Fraction) -> Interval:
        """Return the interval of each value: all that the box allows which holds all the sums it is made of.

        **Theorem.** Each of p sums leaves its own interval with probability at most alpha/p, so the box holds all of
        them with at least the confidence. On it see `Box`.
        """
        level = 1 - (1 - confidence) / len(self.positions)
        return _INTERVALS[self.function](self, Box(sums, releases, level, self.count))

    def slope(self, drawn: Sequence[Floats], counts: Floats) -> Floats:
        """Return REGR_SLOPE, NaN where REGR_SXX is not positive."""
        spread = self.x.spread(drawn, counts)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.clip(self.cross(drawn, counts) / spread, -self.steepest, self.steepest)
        return np.where(spread > 0, found, np.nan)

    def cross(self, drawn: Sequence[Floats], counts: Floats) -> Floats:
        """Return REGR_SXY."""
        assert self.products is not None
        most = np.maximum(counts, 0.0) * self.x.half * self.y.half
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.clip(drawn[self.products] - drawn[self.x.sum] * drawn[self.y.sum] / counts, -most, most)

    @property
    def steepest(self) -> float:
        """The largest slope."""
        return 2 * self.y.half / self.x.step


def _intercept(self: RegressionEstimator, drawn: Sequence[Floats], counts: Floats) -> Floats:
    return self.y.mean(drawn, counts) - self.slope(drawn, counts) * self.x.mean(drawn, counts)


def _r2(self: RegressionEstimator, drawn: Sequence[Floats], counts: Floats) -> Floats:
    """Return the squared correlation: one where y does not vary, and NaN where x does not."""
    one, other = self.x.spread(drawn, counts), self.y.spread(drawn, counts)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.clip(self.cross(drawn, counts) ** 2 / (one * other), 0.0, 1.0)
    return np.where(one > 0, np.where(other > 0, found, 1.0), np.nan)


def _slope_interval(self: RegressionEstimator, bounds: Box) -> Interval:
    """Return the interval of a quotient by a number above zero: its extremes are at ends of both."""
    assert self.products is not None
    low, high = bounds.products(self.products, self.x, self.y)
    least, most = bounds.spread(self.x)
    with np.errstate(divide="ignore", invalid="ignore"):
        down = np.where(low < 0, low / least, low / most)
        up = np.where(high > 0, high / least, high / most)
    down, up = np.nan_to_num(down, nan=-np.inf), np.nan_to_num(up, nan=np.inf)
    down, up = np.clip(down, -self.steepest, self.steepest), np.clip(up, -self.steepest, self.steepest)
    unknown = ~bounds.known
    return np.where(unknown, -self.steepest, down), np.where(unknown, self.steepest, up)


def _intercept_interval(self: RegressionEstimator, bounds: Box) -> Interval:
    slopes, means, heights = _slope_interval(self, bounds), bounds.mean(self.x), bounds.mean(self.y)
    corners = np.stack([slope * mean for slope in slopes for mean in means])
    return heights[0] - corners.max(axis=0), heights[1] - corners.min(axis=0)


def _r2_interval(self: RegressionEstimator, bounds: Box) -> Interval:
    """Return the interval of a square over a product: [0, 1] where y may not vary, as the value is then one."""
    assert self.products is not None
    low, high = bounds.products(self.products, self.x, self.y)
    (least_x, most_x), (least_y, most_y) = bounds.spread(self.x), bounds.spread(self.y)
    size = np.maximum(np.abs(low), np.abs(high))
    near = np.where((low <= 0) & (high >= 0), 0.0, np.minimum(np.abs(low), np.abs(high)))
    with np.errstate(divide="ignore", invalid="ignore"):
        up, down = size**2 / (least_x * least_y), near**2 / (most_x * most_y)
    up, down = np.where(least_x * least_y > 0, up, 1.0), np.nan_to_num(down, nan=0.0, posinf=0.0)
    return np.clip(down, 0.0, 1.0), np.clip(up, 0.0, 1.0)


def _cross_interval(self: RegressionEstimator, bounds: Box) -> Interval:
    assert self.products is not None
    return bounds.products(self.products, self.x, self.y)


_VALUES: dict[str, Callable[[RegressionEstimator, Sequence[Floats], Floats], Floats]] = {
    "regr_sxx": lambda self, drawn, counts: self.x.spread(drawn, counts),
    "regr_syy": lambda self, drawn, counts: self.y.spread(drawn, counts),
    "regr_sxy": RegressionEstimator.cross,
    "regr_slope": RegressionEstimator.slope,
    "regr_intercept": _intercept,
    "regr_r2": _r2,
}
_INTERVALS: dict[str, Callable[[RegressionEstimator, Box], Interval]] = {
    "regr_sxx": lambda self, bounds: bounds.spread(self.x),
    "regr_syy": lambda self, bounds: bounds.spread(self.y),
    "regr_sxy": _cross_interval,
    "regr_slope": _slope_interval,
    "regr_intercept": _intercept_interval,
    "regr_r2": _r2_interval,
}


def _all_measurements(pair: Pair, quoted: str) -> tuple[VectorMeasurement, ...]:
    """Return the measurements that CORR(y, x) has, by their number here; y is the first of the pair."""
    return (
        pair.count(f"count of {quoted}"),
        pair.paired_sum(pair.second, f"second centered sum of {quoted}"),
        pair.paired_sum(pair.first, f"first centered sum of {quoted}"),
        pair.products(f"centered products of {quoted}"),
        pair.squares(pair.second, f"second centered squares of {quoted}"),
        pair.squares(pair.first, f"first centered squares of {quoted}"),
    )


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    measured = _all_measurements(quantized_pair(bound), quote_aggregate(bound.aggregate))
    return tuple(measured[number] for number in _NEEDED[bound.aggregate.function])


def _estimator(bound: BoundAggregate, _: tuple[Measurement, ...], positions: list[int]) -> Estimator:
    function, pair = bound.aggregate.function, quantized_pair(bound)
    at = dict(zip(_NEEDED[function], positions, strict=True))
    if function == "regr_count":
        return DirectEstimator(at[_COUNT], Type.INT)
    if function in {"regr_avgx", "regr_avgy"}:
        x = function == "regr_avgx"
        return mean_estimator(pair.second if x else pair.first, at[_X if x else _Y], at[_COUNT])
    x_axis = _axis(pair.second, at.get(_X, -1), at.get(_XX))
    y_axis = _axis(pair.first, at.get(_Y, -1), at.get(_YY))
    return RegressionEstimator(function, at[_COUNT], x_axis, y_axis, at.get(_PRODUCTS))


def _axis(argument: QuantizedArgument, total: int, squares: int | None) -> Axis:
    center, half = argument.step * (argument.lower + argument.upper) / 2, (argument.upper - argument.lower) / 2
    return Axis(total, squares, float(center), half * float(argument.step), float(argument.step))


def _result_type(bound: BoundAggregate) -> Type:
    return Type.INT if bound.aggregate.function == "regr_count" else float_type(bound)


REGRESSION = AggregateFunction(
    syntax={name: read_pair(name) for name in _NEEDED},
    functions=tuple(_NEEDED),
    result_type=_result_type,
    measure=_measure,
    estimator=_estimator,
    budget_weights=(*WEIGHTS, Fraction(7, 10), Fraction(7, 10)),
)
