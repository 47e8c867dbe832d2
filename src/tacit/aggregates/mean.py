"""AVG(x), AVG(DISTINCT x): a centered sum and a count; and what a SUM is made of whose average is asked for too."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tacit.aggregates.argument import (
    is_never_null,
    quantize_bound,
    quote_aggregate,
    read_argument,
    read_conditional,
)
from tacit.aggregates.base import (
    AggregateFunction,
    BoundAggregate,
    Estimates,
    Floats,
    Measurement,
    QuantizedArgument,
    ReleasedVector,
    Releases,
    VectorMeasurement,
    float_type,
)
from tacit.aggregates.count import count_measurement
from tacit.aggregates.distinct import distinct_centered_measurements
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.query.bound import TypedScalar
from tacit.query.function_calls import AggregateSyntax
from tacit.query.functions import Function
from tacit.query.nodes import Aggregate, Call, ExactStatistic, Literal, Scalar

_HALVINGS = 40  # leave less than 1e-12 of the declared range
_FEW = 256  # points for which the middles of several halvings are tried at once


def centered_measurements(
    aggregate: Aggregate, argument: TypedScalar, quantized: QuantizedArgument
) -> tuple[VectorMeasurement, VectorMeasurement]:
    """Return the centered sum and the count.

    **Theorem.** Let a value lie on the grid from `lower` to `upper`, in steps. A row adds twice its value less
    lower + upper to the first: an integer, at most upper - lower in size. Proof: twice the distance from the center of
    the range is at most its width. That counts on a row that is counted being summed; so where COUNT(*) counts, a NULL
    that the policy says cannot be is summed as `lower`.
    """
    width = quantized.upper - quantized.lower
    count = count_measurement(aggregate, argument, quantized)
    rows = counted_rows(count)
    centered = (
        (2, ExactStatistic("sum", summed_scalar(quantized, rows))),
        (-(quantized.lower + quantized.upper), rows),
    )
    name = f"centered sum of {quote_aggregate(aggregate)}"
    return VectorMeasurement(centered, -width, width, quantized.step / 2, name=name), count


def counted_rows(count: VectorMeasurement) -> ExactStatistic:
    """Return the measure that a count consists of."""
    ((_, rows),) = count.terms
    return rows


def summed_scalar(quantized: QuantizedArgument, rows: ExactStatistic) -> Scalar:
    """Return what is summed: not NULL in any row that `rows` counts."""
    if rows.argument is None and not is_never_null(quantized.scalar):
        return Call(Function.COALESCE, (quantized.scalar, Literal(quantized.lower)))
    return quantized.scalar


@dataclass(frozen=True)
class MeanEstimator:
    """center + sum/count, clamped to [lower, upper]; NULL where the released count is not positive."""

    sum: int
    count: int
    center: Fraction
    lower: Fraction
    upper: Fraction
    values_per_group = 1
    is_always_number = False
    is_selection = False
    is_integer_sum = False

    @property
    def positions(self) -> tuple[int, ...]:
        """The releases that it is made of."""
        return self.sum, self.count

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the mean of each group, with its interval."""
        sums, counts = released[self.sum], released[self.count]
        low, high = self.interval(sums, counts, releases, confidence)
        unit = releases.vector(self.sum).unit / releases.vector(self.count).unit
        estimates = [
            float(min(max(self.center + unit * s / n, self.lower), self.upper)) if n > 0 else None
            for s, n in zip(sums, counts, strict=True)
        ]
        return pa.array(low), pa.array(estimates, pa.float64()), pa.array(high)

    def simulate(self, drawn: Sequence[Floats]) -> Floats:
        """Return the means that redrawn noise gives, NaN for NULL."""
        sums, counts = drawn[self.sum], drawn[self.count]
        with np.errstate(divide="ignore", invalid="ignore"):
            means = np.clip(float(self.center) + sums / counts, float(self.lower), float(self.upper))
        return np.where(counts > 0, means, np.nan)

    def half_width(self, releases: Releases, confidence: Fraction) -> None:
        """Return None: the half-width depends on the number of rows."""
        return None

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return the half-width when the mean lies in the middle of its range, where it is least.

        Where a clip is chosen, it depends on that too.
        """
        if releases.vector(self.sum).is_chosen:
            return ()
        low, high = self.interval([0] * len(rows), list(rows), releases, confidence)
        return tuple(((high - low) / 2).tolist())

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return that the interval depends on the clip, where that is chosen; this is no selection."""
        said = "of what the clip leaves of each unit; how far off depends on the clip and on the rows"
        return said if releases.vector(self.sum).is_chosen else ""

    def interval(
        self, sums: list[int], counts: list[int], releases: Releases, confidence: Fraction
    ) -> tuple[Floats, Floats]:
        """Return the interval of each mean: all values that the released sum and count do not reject.

        **Theorem.** Let S and N be the true centered sum and count of a group, theta = S/N, and s, n what was released.
        Then s - theta n = Z_S - theta Z_N depends on noise alone. The interval is {theta : |s - theta n| <= Q(theta)}
        with P(|Z_S - theta Z_N| > Q(theta)) <= alpha for each theta, so it misses the true theta with probability at
        most alpha.

        *The tail.* A discrete Laplace magnitude of scale b is at most a continuous one plus 1 (2q^m/(1 + q) <=
        q^(m-1)), so with a shared sign |Z_S - theta Z_N| <= |X_S - theta X_N| + 1 + |theta| for continuous X; and for
        scales a and c = |theta| b, P(|X_S - theta X_N| > t) = (a^2 exp(-t/a) - c^2 exp(-t/c)) / (a^2 - c^2). A discrete
        Gaussian magnitude is at most a continuous one plus 1 too (Canonne, Kamath, Steinke 2020), and X_S - theta X_N
        is then Gaussian.

        *It is an interval.* Q is even and convex in theta (the distribution is log-concave and symmetric: Lagoa, Li,
        Sznaier 2005), and its slope is at most that of its asymptote, q = b ln(1/alpha) + 1, or z sigma + 1 for
        Gaussian noise. If n > q, then s - theta n - Q(theta) and s - theta n + Q(theta) both fall strictly, so each has
        one zero, found by bisection; rounding goes outward. If n <= q the count may as well be zero, and the interval
        is all that is declared.
        """
        sum_of, count_of = releases.vector(self.sum), releases.vector(self.count)
        alpha = float(1 - confidence)
        s, n = np.array(sums, dtype=np.float64), np.array(counts, dtype=np.float64)
        tail, slope = combined_tail(sum_of, count_of, alpha)
        unit = sum_of.unit / count_of.unit
        most = float((self.upper - self.lower) / 2 / unit)
        known = n > slope + 1
        middle = np.clip(np.divide(s, n, out=np.zeros_like(s), where=known), -most, most)
        side = np.repeat([1.0, -1.0], len(s))  # both ends at once: the lower one is the upper one, mirrored
        s, n = np.tile(s, 2), np.tile(n, 2)

        def rejects(x: Floats) -> npt.NDArray[np.bool_]:
            size = np.abs(x)
            excess = np.abs(s - side * x * n) - (1 + size)
            return tail(excess, size) <= alpha

        edges = np.where(np.tile(known, 2), _edge(rejects, side * np.tile(middle, 2), most), most)
        high, low = np.split(side * edges, 2)
        center, step = float(self.center), float(unit)
        lower, upper = float(self.lower), float(self.upper)
        return np.clip(center + step * low, lower, upper), np.clip(center + step * high, lower, upper)


def combined_tail(
    sum_of: ReleasedVector, count_of: ReleasedVector, alpha: float
) -> tuple[Callable[[Floats, Floats], Floats], float]:
    """Return P(|X_S - theta X_N| > t) as a function of t and theta, and how steeply its quantile grows with theta."""
    if isinstance(sum_of.mechanism, Laplace) and isinstance(count_of.mechanism, Laplace):
        scale_s, scale_n = float(sum_of.mechanism.scale), float(count_of.mechanism.scale)
        return lambda t, theta: _laplace_tail(t, scale_s, theta * scale_n), scale_n * math.log(1 / alpha)
    from scipy.special import erfc, erfcinv

    assert isinstance(sum_of.mechanism, Gaussian)
    assert isinstance(count_of.mechanism, Gaussian)
    variance_s, variance_n = float(sum_of.mechanism.variance), float(count_of.mechanism.variance)

    def tail(t: Floats, theta: Floats) -> Floats:
        deviation = np.sqrt(2 * (variance_s + theta**2 * variance_n))
        return np.asarray(erfc(np.maximum(t, 0.0) / deviation)) * (1 + 1e-12)

    return tail, math.sqrt(2 * variance_n) * float(erfcinv(alpha))


def _edge(rejects: Callable[[Floats], npt.NDArray[np.bool_]], inside: Floats, most: float) -> Floats:
    """Return the last point from `inside` up to `most` that is not rejected, found by bisection and rounded outward.

    Where the points are few, all the middles that four halvings may come to are tried at once, as a call of numpy takes
    as long for fifteen of them as for one. They are the same numbers however many are tried: an interval that was
    answered is repeated to the last bit.
    """
    parts = 16 if len(inside) <= _FEW else 2
    halvings = parts.bit_length() - 1
    steps = [parts >> halving for halving in range(1, halvings + 1)]
    cuts = np.empty((parts + 1, len(inside)))
    near, far = inside, np.full_like(inside, most)
    open_ended = ~rejects(far)
    each = np.arange(len(inside))
    for _ in range(_HALVINGS // halvings):
        cuts[0], cuts[-1] = near, far
        for step in steps:
            cuts[step :: 2 * step] = (cuts[: -step : 2 * step] + cuts[2 * step :: 2 * step]) / 2
        out = rejects(cuts[1:-1])
        part = np.zeros_like(each)
        for step in steps:
            part += np.where(out[part + step - 1, each], 0, step)
        near, far = cuts[part, each], cuts[part + 1, each]
    return np.where(open_ended, most, far)


def _laplace_tail(t: Floats, a: float, c: Floats) -> Floats:
    """Return P(|X + Y| > t) for independent Laplace X and Y of scales a and c; one where t is not positive.

    Near a = c the quotient cancels; there both scales are taken as the larger one, which makes the tail larger.
    """
    big = np.maximum(a, c)
    equal = np.abs(a - c) < 1e-3 * big
    safe = np.where(equal, 2 * a + 1, c)
    t = np.maximum(t, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        second = np.where(safe > 0, safe**2 * np.exp(-t / np.where(safe > 0, safe, 1.0)), 0.0)
        apart = (a**2 * np.exp(-t / a) - second) / (a**2 - safe**2)
        alike = np.exp(-t / big) * (1 + t / (2 * big))
    return np.where(equal, alike, apart)


def _measure(bound: BoundAggregate, _: frozenset[TypedScalar]) -> tuple[Measurement, ...]:
    quantized = quantize_bound(bound)
    if bound.aggregate.distinct:
        return distinct_centered_measurements(bound.aggregate, quantized)
    return centered_measurements(bound.aggregate, bound.required_argument, quantized)


def mean_estimator(quantized: QuantizedArgument, sum_position: int, count_position: int) -> MeanEstimator:
    """Return the estimator of a mean from the positions of its centered sum and its count."""
    step, lower, upper = quantized.step, quantized.lower, quantized.upper
    return MeanEstimator(sum_position, count_position, step * (lower + upper) / 2, step * lower, step * upper)


def _estimator(bound: BoundAggregate, _: tuple[Measurement, ...], positions: list[int]) -> MeanEstimator:
    return mean_estimator(quantize_bound(bound), positions[0], positions[1])


# The error of a mean is that of the sum over the count and, at most, as much again from the count: an even split.
_AVG, _AVG_IF = AggregateSyntax(read_argument("avg"), takes_distinct=True), read_conditional("avg")
AVG = AggregateFunction(
    syntax={
        **dict.fromkeys(["avg", "mean", "average", "favg"], _AVG),
        "avg_if": _AVG_IF,
        "avgif": _AVG_IF,
    },
    functions=("avg",),
    result_type=float_type,
    measure=_measure,
    estimator=_estimator,
)
