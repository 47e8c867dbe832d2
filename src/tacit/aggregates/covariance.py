"""COVAR_SAMP(x, y) and COVAR_POP(x, y): centered products, two centered sums and a count, of rows that have both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np
import pyarrow as pa

from tacit.aggregates.argument import FINEST_SQUARE, quantize_argument, quantize_bound, quote_aggregate
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
from tacit.query.bound import TypedScalar
from tacit.query.function_calls import AggregateSyntax, CallSyntax, refuse_arguments
from tacit.query.functions import Function
from tacit.query.nodes import Aggregate, Call, Case, Clamp, ExactStatistic, Literal, Scalar


@dataclass(frozen=True)
class Pair:
    """Two arguments on their grids, and what one row with both of them adds, in integers.

    With x and y the values in steps, X = 2x - (lower + upper) of x and Y likewise are at most the widths of the ranges
    in size, so that X Y is at most `width` in size. A row that lacks one of both adds nothing, and is not counted.
    """

    first: QuantizedArgument
    second: QuantizedArgument

    @property
    def width(self) -> int:
        """The largest size of X Y."""
        return _width(self.first) * _width(self.second)

    @property
    def unit(self) -> Fraction:
        """What one step of X Y is worth: (x - center of x)(y - center of y) is X Y times this."""
        return self.first.step * self.second.step / 4

    @property
    def most(self) -> float:
        """The largest covariance: half of one range times half of the other, by Cauchy and Schwarz and Popoviciu."""
        return float(self.width * self.unit)

    @cached_property
    def rows(self) -> ExactStatistic:
        """The count of rows that have both."""
        return ExactStatistic("count", self._product)

    def paired_sum(self, argument: QuantizedArgument, name: str) -> VectorMeasurement:
        """Return the sum of X, or of Y, over rows that have both."""
        both = Case(((Call(Function.IS_NULL, (self._product,)), Literal(None)),), argument.scalar)
        whole = Clamp(both, Fraction(argument.lower), Fraction(argument.upper), whole=True)
        terms = ((2, ExactStatistic("sum", whole)), (-(argument.lower + argument.upper), self.rows))
        return VectorMeasurement(terms, -_width(argument), _width(argument), argument.step / 2, name=name)

    def products(self, name: str) -> VectorMeasurement:
        """Return the sum of X Y."""
        return VectorMeasurement(
            ((1, ExactStatistic("sum", self._product)),), -self.width, self.width, self.unit, name=name
        )

    def squares(self, argument: QuantizedArgument, name: str) -> VectorMeasurement:
        """Return the sum of 2 X^2 - W^2 over rows that have both, W the width of the range; see `variance.py`."""
        most = _width(argument) ** 2
        square = Case(((Call(Function.IS_NULL, (self._product,)), Literal(None)),), _square(argument))
        whole = Clamp(square, Fraction(0), Fraction(most), whole=True)
        terms = ((2, ExactStatistic("sum", whole)), (-most, self.rows))
        return VectorMeasurement(terms, -most, most, argument.step**2 / 8, name=name)

    def count(self, name: str) -> VectorMeasurement:
        """Return the number of rows that have both."""
        return VectorMeasurement(((1, self.rows),), 1, 1, Fraction(1), name=name)

    @cached_property
    def _product(self) -> Scalar:
        product = Call(Function.MULTIPLY, (_center(self.first), _center(self.second)))
        return Clamp(product, Fraction(-self.width), Fraction(self.width), whole=True)


def read_pair(function: str) -> AggregateSyntax:
    """Return the syntax of an aggregate of two arguments."""

    def read(written: CallSyntax) -> Aggregate:
        if written.star or written.within is not None or len(written.arguments) != 2:
            raise refuse_arguments(written, "", "give it two numbers")
        return Aggregate(function, written.arguments[0], others=written.arguments[1:])

    return AggregateSyntax(read, usage="{}(y, x)")


def quantized_pair(bound: BoundAggregate) -> Pair:
    """Return both arguments on grids whose products fit 64 bits."""
    (other,) = bound.others
    first = quantize_bound(bound, FINEST_SQUARE)
    second = replace(bound.aggregate, argument=bound.aggregate.others[0])  # as which a refusal quotes it
    return Pair(first, quantize_argument(second, other, FINEST_SQUARE, has_fine_grid=bound.has_fine_grid))


def covariance_range(
    products: tuple[Floats, Floats],
    first: tuple[Floats, Floats],
    second: tuple[Floats, Floats],
    counts: tuple[Floats, Floats],
) -> tuple[Floats, Floats]:
    """Return the least and the largest P/N - S T/N^2 where each of P, S, T and N > 0 lies in its interval.

    **Theorem.** S T ranges over an interval whose ends are products of ends. For a fixed N the value grows with P and
    falls with S T; as a function of N, p/N - b/N^2 has its extremes at an end or where N = 2b/p.
    """
    corners = np.stack([s * t for s in first for t in second])
    least, most = corners.min(axis=0), corners.max(axis=0)
    low = _turns(products[0], most, *counts).min(axis=0)
    high = _turns(products[1], least, *counts).max(axis=0)
    return low, high


@dataclass(frozen=True)
class CovarianceEstimator:
    """The mean of products about both centers, less the product of both means about them.

    NULL where the released count is not positive, or, of a sample, not above one.
    """

    products: int
    first: int
    second: int
    count: int
    most: float
    is_sample: bool
    values_per_group = 1
    is_always_number = False
    is_selection = False
    is_integer_sum = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The releases that it is made of."""
        return self.products, self.first, self.second, self.count

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the covariance of each group, with its interval."""
        sums = in_units(released, releases)
        low, high = self.interval(sums, releases, confidence)
        return pa.array(low), pa.array(self.simulate(sums), from_pandas=True), pa.array(high)

    def simulate(self, drawn: Sequence[Floats]) -> Floats:
        """Return the values that redrawn noise gives, NaN for NULL."""
        products, first, second, counts = (drawn[position] for position in self.positions)
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.clip(products / counts - (first / counts) * (second / counts), -self.most, self.most)
            if self.is_sample:
                found = found * counts / (counts - 1)
        return np.where(counts > (1 if self.is_sample else 0), found, np.nan)

    def half_width(self, releases: Releases, confidence: Fraction) -> None:
        """Return None: the half-width depends on the data."""
        return None

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return the half-width where nothing is correlated and both means are in the middle of their ranges."""
        sums = [np.zeros(len(rows)) for _ in releases]
        sums[self.count] = np.array(rows, dtype=np.float64)
        low, high = self.interval(sums, releases, confidence)
        return tuple(((high - low) / 2).tolist())

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return the empty text: this is no selection."""
        return ""

    def interval(
        self, sums: Sequence[Floats], releases: Releases, confidence: Fraction, parts: int = 4
    ) -> tuple[Floats, Floats]:
        """Return the interval of each covariance: the least and the largest value in the box that holds all four sums.

        **Theorem.** Each of the four leaves its own interval with probability at most alpha/`parts`, so the box holds
        all of them with at least the confidence if there are no more than so many parts; on it see `covariance_range`.
        """
        boxes = [box(sums, releases, position, 1 - (1 - confidence) / parts) for position in self.positions]
        (low_n, high_n), least = boxes[3], 1.0 if self.is_sample else 0.0
        known = low_n > least
        counts = np.where(known, low_n, 2.0), np.where(known, high_n, 3.0)
        low, high = covariance_range(boxes[0], boxes[1], boxes[2], counts)
        low, high = np.clip(low, -self.most, self.most), np.clip(high, -self.most, self.most)
        cap = self.most
        if self.is_sample:  # n/(n - 1) is largest at the least count, and is at most two
            factors = [n / (n - 1) for n in counts]
            low, high = np.minimum(low * factors[0], low * factors[1]), np.maximum(high * factors[0], high * factors[1])
            cap = 2 * self.most
        low, high = np.clip(low, -cap, cap), np.clip(high, -cap, cap)
        return np.where(known, low, -cap), np.where(known, high, cap)


def in_units(released: Sequence[list[int]], releases: Releases) -> list[Floats]:
    """Return released integers in the user's units; nothing for selections."""
    return [
        np.array(numbers, dtype=np.float64) * float(getattr(release, "unit", 1))
        for numbers, release in zip(released, releases, strict=True)
    ]


def box(sums: Sequence[Floats], releases: Releases, position: int, level: Fraction) -> tuple[Floats, Floats]:
    """Return the interval of a released sum."""
    width = float(releases.vector(position).half_width(level))
    return sums[position] - width, sums[position] + width


def _turns(p: Floats, b: Floats, low: Floats, high: Floats) -> Floats:
    """Return p/n - b/n^2 at both ends of n and at its turning point, if that lies between."""
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(p != 0, 2 * b / np.where(p != 0, p, 1.0), low)
    return np.stack([p / n - b / n**2 for n in (low, high, np.clip(turn, low, high))])


def _width(argument: QuantizedArgument) -> int:
    return argument.upper - argument.lower


def _center(argument: QuantizedArgument) -> Scalar:
    doubled = Call(Function.MULTIPLY, (Literal(2), argument.scalar))
    return Call(Function.SUBTRACT, (doubled, Literal(argument.lower + argument.upper)))


def _square(argument: QuantizedArgument) -> Scalar:
    return Call(Function.MULTIPLY, (_center(argument), _center(argument)))


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    pair, quoted = quantized_pair(bound), quote_aggregate(bound.aggregate)
    return (
        pair.products(f"centered products of {quoted}"),
        pair.paired_sum(pair.first, f"first centered sum of {quoted}"),
        pair.paired_sum(pair.second, f"second centered sum of {quoted}"),
        pair.count(f"count of {quoted}"),
    )


def _estimator(bound: BoundAggregate, _: tuple[Measurement, ...], positions: list[int]) -> CovarianceEstimator:
    products, first, second, count = positions
    is_sample = bound.aggregate.function == "covar_samp"
    return CovarianceEstimator(products, first, second, count, quantized_pair(bound).most, is_sample)


# The error is, per row and in units of a quarter of both ranges' product, 1 from the products, up to 1 from each sum
# and up to 2 from the count, each over its share; the sum of a_i/e_i is least where e_i goes with the root of a_i.
WEIGHTS = (Fraction(1), Fraction(1), Fraction(1), Fraction(7, 5))
COVARIANCE = AggregateFunction(
    syntax={
        "covar_samp": read_pair("covar_samp"),
        "covar": read_pair("covar_samp"),
        "covar_pop": read_pair("covar_pop"),
    },
    functions=("covar_samp", "covar_pop"),
    result_type=float_type,
    measure=_measure,
    estimator=_estimator,
    budget_weights=WEIGHTS,
)
