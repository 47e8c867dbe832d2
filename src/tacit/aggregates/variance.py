"""VARIANCE, VAR_SAMP, VAR_POP, STDDEV, STDDEV_SAMP, STDDEV_POP: centered squares, a centered sum and a count.

Of DISTINCT values too, each once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pyarrow as pa

from tacit.aggregates.argument import FINEST_SQUARE, quantize_bound, quote_aggregate, read_argument
from tacit.aggregates.base import (
    AggregateFunction,
    BoundAggregate,
    Estimates,
    Floats,
    Measurement,
    Releases,
    VectorMeasurement,
    float_type,
)
from tacit.aggregates.distinct import distinct_centered_measurements, distinct_squares
from tacit.aggregates.mean import (
    MeanEstimator,
    centered_measurements,
    counted_rows,
    mean_estimator,
    summed_scalar,
)
from tacit.query.bound import TypedScalar
from tacit.query.call_syntax import CallSyntax
from tacit.query.dialects import QuestionDialect
from tacit.query.function_calls import AggregateSyntax
from tacit.query.functions import Function
from tacit.query.nodes import Aggregate, Call, Clamp, ExactStatistic, Literal


@dataclass(frozen=True)
class VarianceEstimator:
    """A variance, or its root: the mean of squares about the center less the square of the mean about it.

    `squares` is the vector whose values are sums of d^2 - range^2/8, where d is the distance from the center. NULL
    where the released count is not positive, or, of a sample, not above one.
    """

    squares: int
    mean: MeanEstimator
    is_sample: bool
    is_root: bool
    values_per_group = 1
    is_always_number = False
    is_selection = False
    is_integer_sum = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The releases that it is made of."""
        return self.squares, *self.mean.positions

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the variance of each group, or its root, with its interval."""
        at = (self.squares, self.mean.sum, self.mean.count)
        numbers = (released[at[0]], released[at[1]], released[at[2]])
        low, high = self.interval(numbers, releases, confidence)
        units = [float(releases.vector(position).unit) for position in at]
        sums = [np.array(some, dtype=np.float64) * unit for some, unit in zip(numbers, units, strict=True)]
        middle = pa.array(self._values(sums[0], sums[1], sums[2]), from_pandas=True)
        return pa.array(low), middle, pa.array(high)

    def simulate(self, drawn: Sequence[Floats]) -> Floats:
        """Return the values that redrawn noise gives, NaN for NULL."""
        return self._values(drawn[self.squares], drawn[self.mean.sum], drawn[self.mean.count])

    def half_width(self, releases: Releases, confidence: Fraction) -> None:
        """Return None: the half-width depends on the data."""
        return None

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return the half-width when the variance is half of what it can be."""
        nothing = [0] * len(rows)
        low, high = self.interval((nothing, nothing, list(rows)), releases, confidence)
        return tuple(((high - low) / 2).tolist())

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return the empty text: this is no selection."""
        return ""

    def _values(self, squares: Floats, sums: Floats, counts: Floats) -> Floats:
        """Return the values from sums in the user's units; NaN where the count says nothing."""
        most = float((self.mean.upper - self.mean.lower) / 2) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            found = np.clip(squares / counts + most / 2 - (sums / counts) ** 2, 0.0, most)
            if self.is_sample:
                found = found * counts / (counts - 1)
        found = np.where(counts > (1 if self.is_sample else 0), found, np.nan)
        return np.sqrt(found) if self.is_root else found

    def interval(
        self, released: tuple[list[int], list[int], list[int]], releases: Releases, confidence: Fraction
    ) -> tuple[Floats, Floats]:
        """Return the interval of each variance: the least and the largest value in the box that holds all three sums.

        **Theorem.** Each of the squares Q, the sum S and the count N leaves its own interval with probability at most
        alpha/3, so the box holds all three with at least the confidence. On the box Q/N - (S/N)^2 is largest where Q is
        largest and |S| least, and there, as a function of N, at an end or at its turning point 2 S^2/Q; likewise least.
        """
        vectors = [releases.vector(position) for position in (self.squares, self.mean.sum, self.mean.count)]
        level = 1 - (1 - confidence) / 3
        units = [float(vector.unit) for vector in vectors]
        widths = [float(vector.mechanism.error(level)) for vector in vectors]
        q, s, n = (np.array(numbers, dtype=np.float64) for numbers in released)
        most = float((self.mean.upper - self.mean.lower) / 2) ** 2
        low_n, high_n = n - widths[2], n + widths[2]
        known = low_n > (1 if self.is_sample else 0)
        low_n, high_n = np.where(known, low_n, 2.0), np.where(known, high_n, 3.0)
        high_q, low_q = (q + widths[0]) * units[0], (q - widths[0]) * units[0]
        size = np.abs(s) * units[1]
        near, far = np.maximum(size - widths[1] * units[1], 0.0), size + widths[1] * units[1]
        high = np.max(_turns(high_q, near, low_n, high_n), axis=0) + most / 2
        low = np.min(_turns(low_q, far, low_n, high_n), axis=0) + most / 2
        if self.is_sample:
            high, low = np.clip(high, 0, most) * low_n / (low_n - 1), np.clip(low, 0, most) * high_n / (high_n - 1)
        cap = 2 * most if self.is_sample else most
        high, low = np.where(known, np.clip(high, 0, cap), cap), np.where(known, np.clip(low, 0, cap), 0.0)
        return (np.sqrt(low), np.sqrt(high)) if self.is_root else (low, high)


def _turns(q: Floats, s: Floats, low: Floats, high: Floats) -> Floats:
    """Return q/n - (s/n)^2 at both ends of n and at its turning point, if that lies between."""
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(q > 0, 2 * s**2 / q, low)
    return np.stack([q / n - (s / n) ** 2 for n in (low, high, np.clip(turn, low, high))])


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    """Return the centered squares, the centered sum and the count.

    **Theorem.** With y twice the distance of a value from the center of its range, in steps, a row adds 2 y^2 - width^2
    to the squares, which lies in [-width^2, width^2]: eight times the squared distance, less half of what it can be.
    """
    aggregate, argument = bound.aggregate, bound.required_argument
    quantized = quantize_bound(bound, FINEST_SQUARE)
    if aggregate.distinct:
        return distinct_squares(aggregate, quantized), *distinct_centered_measurements(aggregate, quantized)
    first, count = centered_measurements(aggregate, argument, quantized)
    rows, width = counted_rows(count), quantized.upper - quantized.lower
    doubled = Call(Function.MULTIPLY, (Literal(2), summed_scalar(quantized, rows)))
    twice = Call(Function.SUBTRACT, (doubled, Literal(quantized.lower + quantized.upper)))
    square = ExactStatistic(
        "sum", Clamp(Call(Function.MULTIPLY, (twice, twice)), Fraction(0), Fraction(width**2), whole=True)
    )
    terms = ((2, square), (-(width**2), rows))
    name = f"centered squares of {quote_aggregate(aggregate)}"
    return VectorMeasurement(terms, -(width**2), width**2, quantized.step**2 / 8, name=name), first, count


def _estimator(bound: BoundAggregate, _: tuple[Measurement, ...], positions: list[int]) -> VarianceEstimator:
    function = bound.aggregate.function
    quantized = quantize_bound(bound, FINEST_SQUARE)
    mean = mean_estimator(quantized, positions[1], positions[2])
    return VarianceEstimator(positions[0], mean, function.endswith("_samp"), function.startswith("stddev"))


# The error of a variance is, per row and in units of the squared range, 1/8 from the squares, up to 1/2 from the sum
# and up to 5/8 from the count; the sum of a_i/e_i is least where e_i is proportional to the root of a_i.
_NAMES = {
    "var_samp": "variance var var_samp variance_samp",
    "var_pop": "var_pop variance_pop varp",
    "stddev_samp": "stddev stddev_samp std stdev",
    "stddev_pop": "stddev_pop stdevp",
}
_OF_POPULATION_IN_MYSQL = {"variance": "var_pop", "std": "stddev_pop", "stddev": "stddev_pop"}


def _read(function: str) -> Callable[[CallSyntax], Aggregate]:
    def read(written: CallSyntax) -> Aggregate:
        meant = _OF_POPULATION_IN_MYSQL.get(written.name) if written.dialect is QuestionDialect.MYSQL else None
        return read_argument(meant or function)(written)

    return read


VARIANCE = AggregateFunction(
    syntax={
        name: AggregateSyntax(_read(function), takes_distinct=True)
        for function, names in _NAMES.items()
        for name in names.split()
    },
    functions=("var_samp", "var_pop", "stddev_samp", "stddev_pop"),
    result_type=float_type,
    measure=_measure,
    estimator=_estimator,
    budget_weights=(Fraction(45, 100), Fraction(9, 10), Fraction(1)),
)
