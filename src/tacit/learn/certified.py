"""The gradient of an objective with an error that is known, however many rows there are and however long the weights.

>>> from tacit.learn.losses import LogisticLoss
>>> from tacit.privacy.unit import Neighbors
>>> problem = RiskMinimization(np.eye(2), np.array([1.0, -1.0]), LogisticLoss(), 1.0, Neighbors.ADD_REMOVE, 2, 1.0)
>>> scaled = Scaled.of(problem, np.zeros(2))
>>> found = gradient(scaled, Long.of(np.zeros(2)))
>>> found.value.astype(float).round(5).tolist(), found.error < 2.0**-40
([-0.5, 0.5], True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from tacit.learn.losses import Array, ConvexLoss
from tacit.learn.problem import RiskMinimization
from tacit.learn.sums import ROW_BITS, QuantizedRows, add_exactly, exponent_of, round_weights, split_in_units

EXTENDED = np.longdouble  # 64 bits of precision on x86, 53 where there is no more
UNIT = float(np.finfo(EXTENDED).eps) / 2  # the relative error of one rounding
_LIMBS = 3  # parts of 20 bits of a residual, and of 32 bits of a weight


@dataclass(frozen=True, eq=False)
class Scaled:
    """J for rows that are divided by a power of two, the least that is not below the norm: all lengths are at most 1.

    J(v) = sum_i f(x_i.v) + (penalty/2) |v|^2 + tilt.v, with v = scale w. Rows are truncated toward zero to whole units
    of 2^-20, so that none becomes longer than the norm; penalty and tilt are divided by powers of two, without error.
    So a minimizer of this J, divided by the scale, is one of a sum over rows of at most the norm.
    """

    rows: QuantizedRows
    labels: Array
    loss: ConvexLoss
    penalty: float
    tilt: Array
    scale: float

    @classmethod
    def of(cls, problem: RiskMinimization, tilt: Array) -> Scaled:
        """The problem with a linear term, scaled."""
        mantissa, exponent = math.frexp(problem.norm)
        scale = math.ldexp(1.0, exponent - (mantissa == 0.5))
        rows = QuantizedRows.of(problem.features, scale)
        return cls(rows, problem.labels, problem.loss, problem.penalty / scale**2, tilt / scale, scale)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of v."""
        return self.tilt.shape


@dataclass(frozen=True, eq=False)
class Long:
    """Weights as a sum of three vectors of 32 bits of the length of the one before: 96 bits in all."""

    parts: tuple[Array, ...]

    @classmethod
    def of(cls, *terms: Array) -> Long:
        """About the sum of a few vectors of doubles, the longest first: to 96 bits, or nearly so many."""
        parts: list[Array] = []
        rest = _renormalize(list(terms))
        for _ in range(_LIMBS):
            part = round_weights(rest[0])
            parts.append(part)
            rest = _renormalize([rest[0] - part, *rest[1:]])
        return cls(tuple(parts))

    def plus(self, step: Array) -> Long:
        """The sum with a vector of doubles."""
        return Long.of(*self.parts, step)

    @property
    def value(self) -> Array:
        """The weights in extended precision."""
        found = np.zeros(self.parts[0].shape, dtype=EXTENDED)
        for part in reversed(self.parts):
            found = found + part
        return found

    @property
    def length(self) -> float:
        """|v|, rounded up."""
        return float(np.linalg.norm(self.value.astype(np.float64))) * (1 + 2.0**-40)


def _renormalize(terms: list[Array]) -> list[Array]:
    """The same sum with its largest part first (Knuth's two-sum, from the last to the first)."""
    found: list[Array] = []
    high = terms[-1]
    for term in reversed(terms[:-1]):
        total = term + high
        other = total - term
        found.append((term - (total - other)) + (high - other))
        high = total
    return [high, *reversed(found)]


@dataclass(frozen=True, eq=False)
class Slope:
    """The computed gradient, and how far it may be from the true one."""

    value: Array
    error: float

    @property
    def steepness(self) -> float:
        """The norm of the computed gradient."""
        return float(np.linalg.norm(self.value.astype(np.float64)))


def gradient(scaled: Scaled, at: Long) -> Slope:
    """The gradient of J at these weights.

    **Theorem.** It is off by at most `error`. Proof. Let u be the unit roundoff of extended numbers, n the number of
    rows, k of outputs, L the slope. The products of rows with each part of the weights are exact
    (`sums.QuantizedRows`), and so are their differences from the largest score of a row; they are added from the least
    on, so a score has an error of u 2^-31 |v| and a relative one of 2 u. The former moves a residual by the bend times
    that, the latter by the loss's `relative_bend` times 2 u. The residual's own evaluation adds (k + 16) u L, and its
    splitting into 60 bits of L adds sqrt(k) 2^-60 L. The sum of rows times residuals is exact. The last three
    additions, of terms whose lengths are at most n L, penalty |v| and |tilt|, add eight roundings of each at most. |x|
    <= 1 for each row. The factor 2 pays for the terms of second order.
    """
    loss, count = scaled.loss, len(scaled.labels)
    whole = _whole(at)
    units = scaled.rows.units
    total = add_exactly(units[block].T @ _factors(scaled, whole, block) for block in scaled.rows.short_blocks())
    outputs = loss.outputs
    pull: Array = np.zeros((len(total), outputs), dtype=EXTENDED)
    for limb in reversed(range(_LIMBS)):
        part = total[:, limb * outputs : (limb + 1) * outputs]
        pull += _to_extended(part) * EXTENDED(math.ldexp(loss.slope, -ROW_BITS * (limb + 2)))
    value = pull.reshape(scaled.shape) + (EXTENDED(scaled.penalty) * at.value + scaled.tilt)
    length = at.length
    each = UNIT * (2.0**-31 * loss.bend * length + 2 * loss.relative_bend + (outputs + 16) * loss.slope)
    each += math.sqrt(outputs) * 2.0 ** (-ROW_BITS * _LIMBS) * loss.slope
    ends = count * loss.slope + scaled.penalty * length + float(np.linalg.norm(scaled.tilt))
    return Slope(value, 2 * (count * each + 8 * UNIT * ends))


def _whole(at: Long) -> list[tuple[Array, float]]:
    """The parts of the weights, each as whole numbers below 2^32, and in which units of a score they count."""
    exponents = [exponent_of(part) for part in at.parts]
    return [
        (np.ldexp(part, exponent), math.ldexp(1.0, -exponent - ROW_BITS))
        for part, exponent in zip(at.parts, exponents, strict=True)
    ]


def _factors(scaled: Scaled, weights: list[tuple[Array, float]], block: slice) -> Array:
    """The residuals of a block of rows, as whole units of three sizes."""
    residuals = scaled.loss.residuals(_scores(scaled, weights, block), scaled.labels[block])
    return split_in_units(residuals.reshape(len(residuals), scaled.loss.outputs), scaled.loss.slope, _LIMBS)


def _scores(scaled: Scaled, weights: list[tuple[Array, float]], block: slice) -> Array:
    """x.v for a block of rows; where there are several, less the largest of a row."""
    rows = scaled.rows.units[block]
    products = [(rows @ whole) * unit for whole, unit in weights]
    if scaled.loss.outputs > 1:
        best = products[0].argmax(axis=1)[:, None]
        products = [product - np.take_along_axis(product, best, axis=1) for product in products]
    found: Array = products[-1].astype(EXTENDED)
    for product in reversed(products[:-1]):
        found = found + product
    return found


def _to_extended(whole: Array) -> Array:
    """Python's integers in extended precision, each rounded once or twice."""
    high = whole >> 53
    low: Array = (whole - (high << 53)).astype(np.float64)
    return np.asarray(high.astype(np.float64).astype(EXTENDED) * EXTENDED(2.0**53) + low)
