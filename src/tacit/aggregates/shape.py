"""SKEWNESS and KURTOSIS: sums of the first three or four powers of the distance from the center, and a count."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from tacit.aggregates.argument import quantize_bound, quote_aggregate, read_argument
from tacit.aggregates.base import (
    AggregateFunction,
    BoundAggregate,
    Estimates,
    Floats,
    Measurement,
    QuantizedArgument,
    Releases,
    VectorMeasurement,
    float_type,
)
from tacit.aggregates.covariance import box, in_units
from tacit.aggregates.mean import centered_measurements, counted_rows, summed_scalar
from tacit.query.bound import TypedScalar
from tacit.query.function_calls import AggregateSyntax
from tacit.query.functions import Function
from tacit.query.nodes import Call, Clamp, ExactStatistic, Literal, Quantize, Scalar, ToFloat
from tacit.query.types import Type

Interval = tuple[Floats, Floats]

FINEST_FOURTH = 2**15  # steps of a range whose fourth power fits 64 bits
_LEAST_ROWS = {"skewness": 2, "kurtosis": 3, "kurtosis_pop": 0}  # more than these are needed


@dataclass(frozen=True)
class ShapeEstimator:
    """SKEWNESS of a sample, KURTOSIS of a sample, which is above that of the normal distribution, or KURTOSIS_POP.

    With N rows and the means a, b, c, d of the first four powers of the distance from the center of the range, the
    central moments are m2 = b - a^2, m3 = c - 3ab + 2a^3 and m4 = d - 4ac + 6a^2 b - 3a^4, and

        SKEWNESS = sqrt(N(N - 1))/(N - 2) m3/m2^1.5,  KURTOSIS_POP = m4/m2^2 - 3,
        KURTOSIS = (N - 1)/((N - 2)(N - 3)) ((N + 1) m4/m2^2 - 3(N - 1)).

    NULL where the released count is too small, or m2 is not positive. `half` is half of the range, `powers` are the
    releases of the sums of powers, of which the even ones are less N times half of the most that a row can add.
    """

    function: str
    count: int
    powers: tuple[int, ...]
    half: float
    step: float
    values_per_group = 1
    is_always_number = False
    is_selection = False
    is_integer_sum = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The releases that it is made of."""
        return self.count, *self.powers

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the value of each group, with its interval."""
        sums = in_units(released, releases)
        low, high = self.interval(sums, releases, confidence)
        values = np.clip(self.simulate(sums), low, high)
        return pa.array(low), pa.array(values, from_pandas=True), pa.array(high)

    def simulate(self, drawn: Sequence[Floats]) -> Floats:
        """Return the values that redrawn noise gives, NaN for NULL."""
        n = drawn[self.count]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            a, b, c, d = self._means(drawn, n)
            spread = b - a**2
            varies = spread * n > self.step**2 / 4  # the least that different values make is twice that
            spread = np.where(varies, spread, 1.0)
            if self.function == "skewness":
                found = np.sqrt(n * (n - 1)) / (n - 2) * (c - 3 * a * b + 2 * a**3) / spread**1.5
            else:
                found = (d - 4 * a * c + 6 * a**2 * b - 3 * a**4) / spread**2
                found = found - 3 if self.function == "kurtosis_pop" else _sample_kurtosis(found, n)
        found = np.where(varies & (n > _LEAST_ROWS[self.function]), found, np.nan)
        return np.clip(found, -self._least(n), self._most(n))

    def half_width(self, releases: Releases, confidence: Fraction) -> None:
        """Return None: the half-width depends on the data."""
        return None

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return the half-width where the variance is half of what it can be, and the mean in the middle."""
        sums = [np.zeros(len(rows)) for _ in releases]
        sums[self.count] = np.array(rows, dtype=np.float64)
        low, high = self.interval(sums, releases, confidence)
        return tuple(((high - low) / 2).tolist())

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return the empty text: this is no selection."""
        return ""

    def interval(self, sums: Sequence[Floats], releases: Releases, confidence: Fraction) -> Interval:
        """Return the interval of each value: interval arithmetic over the box that holds all the sums.

        **Theorem.** Each of p sums leaves its own interval with probability at most alpha/p, so the box holds all of
        them with at least the confidence. On the box the means of powers lie between quotients of ends, and also within
        what powers of at most `half` in size can be; what interval arithmetic makes of them holds the value.

        *Without any of it* the value lies between -sqrt(N) and sqrt(N), -2 and N, or -6 and N. Proof: |m3| is at most
        (N - 2)/sqrt(N - 1) m2^1.5, and m4 at most (N - 2 + 1/(N - 1)) m2^2 and at least m2^2; with the factors of
        samples that is sqrt(N) for the skewness, N for the kurtosis, and -2(N - 1)/(N - 3) >= -6 from N = 4 on.
        """
        level = 1 - (1 - confidence) / len(self.positions)
        low_n, high_n = box(sums, releases, self.count, level)
        known = low_n > _LEAST_ROWS[self.function]
        n = np.where(known, low_n, 4.0), np.where(known, high_n, 5.0)
        means = [
            self._mean(power, box(sums, releases, position, level), n) for power, position in enumerate(self.powers, 1)
        ]
        a, b = means[0], means[1]
        square = _times(a, a, same=True)
        spread = np.maximum(b[0] - square[1], 0.0), np.maximum(b[1] - square[0], 0.0)
        if self.function == "skewness":
            cube = a[0] ** 3, a[1] ** 3
            moment = _add(means[2], _scale(_times(a, b), -3.0), _scale(cube, 2.0))
            found = _over(moment, (spread[0] ** 1.5, spread[1] ** 1.5))
            factors = [np.sqrt(number * (number - 1)) / (number - 2) for number in n]
            found = _times(found, (factors[1], factors[0]))
        else:
            fourth = _times(square, square, same=True)
            moment = _add(
                means[3], _scale(_times(a, means[2]), -4.0), _scale(_times(square, b), 6.0), _scale(fourth, -3.0)
            )
            found = _over((np.maximum(moment[0], 0.0), np.maximum(moment[1], 0.0)), (spread[0] ** 2, spread[1] ** 2))
            if self.function == "kurtosis_pop":
                found = found[0] - 3, found[1] - 3
            else:
                found = _sample_kurtosis_range(found, n)
        most = self._most(np.maximum(high_n, 0.0))
        least = -self._least(np.maximum(high_n, 0.0))
        low, high = np.nan_to_num(found[0], nan=-np.inf), np.nan_to_num(found[1], nan=np.inf)
        low, high = np.where(known, low, -np.inf), np.where(known, high, np.inf)
        return np.clip(low, least, most), np.clip(high, least, most)

    def _means(self, drawn: Sequence[Floats], n: Floats) -> tuple[Floats, ...]:
        """Return the means of the powers, within what they can be; of the fourth zero where it is not needed."""
        found = [self._mean(power, (drawn[p], drawn[p]), (n, n))[0] for power, p in enumerate(self.powers, 1)]
        return (*found, np.zeros_like(n)) if len(found) < 4 else tuple(found)

    def _mean(self, power: int, sums: Interval, n: Interval) -> Interval:
        """Return the interval of the mean of a power of the distance from the center."""
        size = self.half**power
        corners = np.stack([total / number for total in sums for number in n])
        middle, least = (size / 2, 0.0) if power % 2 == 0 else (0.0, -size)
        return np.clip(corners.min(axis=0) + middle, least, size), np.clip(corners.max(axis=0) + middle, least, size)

    def _most(self, n: Floats) -> Floats:
        return np.sqrt(np.maximum(n, 0.0)) if self.function == "skewness" else np.maximum(n, 0.0)

    def _least(self, n: Floats) -> Floats:
        if self.function == "skewness":
            return np.sqrt(np.maximum(n, 0.0))
        return np.full_like(n, 2.0 if self.function == "kurtosis_pop" else 6.0)


def _sample_kurtosis(ratio: Floats, n: Floats) -> Floats:
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * ratio - 3 * (n - 1))


def _sample_kurtosis_range(ratio: Interval, n: Interval) -> Interval:
    """Return the interval of the kurtosis of a sample, which grows with the ratio m4/m2^2.

    Both factors of it, (N - 1)(N + 1)/((N - 2)(N - 3)) and 3(N - 1)^2/((N - 2)(N - 3)), fall with N > 3.
    """
    first = [(k - 1) * (k + 1) / ((k - 2) * (k - 3)) for k in n]
    second = [3 * (k - 1) ** 2 / ((k - 2) * (k - 3)) for k in n]
    return ratio[0] * first[1] - second[0], ratio[1] * first[0] - second[1]


def _times(one: Interval, other: Interval, *, same: bool = False) -> Interval:
    """Return the interval of a product; of a square where both are the same."""
    with np.errstate(invalid="ignore"):
        corners = np.stack([x * y for x in one for y in other])
    low, high = corners.min(axis=0), corners.max(axis=0)
    if same:
        ends = np.minimum(one[0] ** 2, one[1] ** 2)
        low = np.where((one[0] <= 0) & (one[1] >= 0), 0.0, ends)
    return low, high


def _add(*terms: Interval) -> Interval:
    return np.sum([low for low, _ in terms], axis=0), np.sum([high for _, high in terms], axis=0)


def _scale(some: Interval, factor: float) -> Interval:
    return (some[0] * factor, some[1] * factor) if factor >= 0 else (some[1] * factor, some[0] * factor)


def _over(some: Interval, positive: Interval) -> Interval:
    """Return the interval of a quotient by what is positive where the quotient is asked for; infinite near zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.where(some[0] < 0, some[0] / positive[0], some[0] / positive[1])
        high = np.where(some[1] > 0, some[1] / positive[0], some[1] / positive[1])
    return low, high


def _quantize(bound: BoundAggregate) -> QuantizedArgument:
    """Return the argument on a grid of at most 2^15 steps, so that fourth powers fit 64 bits.

    The step is the least 2^k times the argument's own that is not too fine.
    """
    argument = bound.required_argument
    quantized = quantize_bound(bound)
    width = quantized.upper - quantized.lower
    if width <= FINEST_FOURTH:
        return quantized
    factor = 2 ** math.ceil(math.log2((width + 2) / (FINEST_FOURTH - 2)))
    step = quantized.step * factor
    lower, upper = quantized.lower // factor, -(-quantized.upper // factor)
    scalar: Scalar = ToFloat(quantized.scalar) if argument.type is Type.INT else argument.scalar
    return QuantizedArgument(Quantize(scalar, step, lower, upper), step, lower, upper)


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    """Return the count and the sums of the powers of y, twice the distance from the center in steps.

    **Theorem.** |y| is at most W, the width of the range in steps, so a row adds from -W^k to W^k to the sum of an odd
    power, and to that of 2 y^k - W^k for an even one.
    """
    aggregate, argument = bound.aggregate, bound.required_argument
    quantized = _quantize(bound)
    first, count = centered_measurements(aggregate, argument, quantized)
    rows, width = counted_rows(count), quantized.upper - quantized.lower
    doubled = Call(Function.MULTIPLY, (Literal(2), summed_scalar(quantized, rows)))
    twice: Scalar = Call(Function.SUBTRACT, (doubled, Literal(quantized.lower + quantized.upper)))
    measured: list[Measurement] = [count, first]
    power: Scalar = twice
    for number in range(2, 4 if aggregate.function == "skewness" else 5):
        power = Call(Function.MULTIPLY, (power, twice))
        most, is_even = width**number, number % 2 == 0
        whole = Clamp(power, Fraction(0 if is_even else -most), Fraction(most), whole=True)
        statistic = ExactStatistic("sum", whole)
        terms = ((2, statistic), (-most, rows)) if is_even else ((1, statistic),)
        unit = (quantized.step / 2) ** number / (2 if is_even else 1)
        name = f"sum of powers {number} of {quote_aggregate(aggregate)}"
        measured.append(VectorMeasurement(terms, -most, most, unit, name=name))
    return tuple(measured)


def _estimator(bound: BoundAggregate, _: tuple[Measurement, ...], positions: list[int]) -> ShapeEstimator:
    quantized = _quantize(bound)
    half = float(quantized.step * (quantized.upper - quantized.lower) / 2)
    count, *powers = positions
    return ShapeEstimator(bound.aggregate.function, count, tuple(powers), half, float(quantized.step))


SHAPE = AggregateFunction(
    syntax={
        "skewness": AggregateSyntax(read_argument("skewness")),
        "skew": AggregateSyntax(read_argument("skewness")),
        "kurtosis": AggregateSyntax(read_argument("kurtosis")),
        "kurtosis_pop": AggregateSyntax(read_argument("kurtosis_pop")),
    },
    functions=tuple(_LEAST_ROWS),
    result_type=float_type,
    measure=_measure,
    estimator=_estimator,
    budget_weights=(Fraction(1),) * 5,
)
