"""Sums over rows without rounding error, so that one row moves them by what the theorem says and no more.

>>> rows = QuantizedRows.of(np.array([[0.6, 0.8], [1.0, 0.0]]), norm=1.0)
>>> total = rows.pull(np.array([0.5, -1.0]), slope=1.0)
>>> [round(int(whole) / 2**EXPONENT, 6) for whole in total]
[-0.7, 0.4]
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from tacit.learn.losses import Array
from tacit.learn.row_sums import square_lengths

ROW_BITS = 20  # a length of one is 2^20 units
EXPONENT = 2 * ROW_BITS  # products of two numbers in units are in units of 2^-40
_BLOCK = 2**13  # rows whose products add up in a double without error: 13 + 40 = 53 bits
_SHORTEST, _ENTRIES = 2**8, 2**16  # of a block that stays in the cache: rows at least, and numbers beyond these
_WEIGHTS = 32  # bits of weights: 20 + 32 < 53
_FARTHEST = 2.0**500  # no weight is beyond: its square is a double


@dataclass(frozen=True, eq=False)
class QuantizedRows:
    """Rows of at most the length `norm`, as vectors of whole units of norm/2^20 that are at most 2^20 long.

    **Theorem.** `scores`, `pull` and `gram` are functions of the exact values, whatever order or instruction a matrix
    product uses. One row adds at most 2^40 to a pull, in L2, and at most 2^40 to a gram matrix, in the Frobenius norm,
    exactly. **Proof.** All factors are whole numbers in doubles. By Cauchy and Schwarz every partial sum of |x_j w_j|
    over a row is at most |x| |w| < 2^53, and every partial sum of |x_ij r_i| or |x_ij x_ik| over the rows of a block is
    at most 2^13 2^40: no product and no sum is ever rounded. Blocks are added as integers. A row adds the outer
    product of two vectors of at most 2^20 each.
    """

    units: Array
    norm: float

    @classmethod
    def of(cls, features: Array, norm: float) -> QuantizedRows:
        """The rows, each truncated toward zero to the grid."""
        return cls(quantize(features, norm), norm)

    def blocks(self) -> Iterator[slice]:
        """Stretches of rows whose sums are exact."""
        return _stretches(len(self.units), _BLOCK)

    def short_blocks(self) -> Iterator[slice]:
        """The same, short enough that a block's rows stay in the cache from one product to the next."""
        columns = max(1, self.units.shape[1])
        return _stretches(len(self.units), min(_BLOCK, max(_SHORTEST, _ENTRIES // columns)))

    def scores(self, weights: Array, block: slice) -> Array:
        """x.w for the rows of a block, for weights that `round_weights` has returned."""
        exponent = exponent_of(weights)
        whole = np.ldexp(weights, exponent)
        return np.asarray((self.units[block] @ whole) * math.ldexp(self.norm, -exponent - ROW_BITS))

    def pull(self, residuals: Array, slope: float, kept: Array | None = None) -> Array:
        """The sum of x r over the rows, for residuals of at most `slope` each, in units of norm slope 2^-40.

        Residuals are truncated toward zero to a grid; `kept` chooses rows.
        """
        return self.sum_of((quantize(residuals[block], slope) for block in self.blocks()), kept)

    def sum_of(self, factors: Iterator[Array], kept: Array | None = None) -> Array:
        """The sum of x r over the rows, where the r of each block are already in units."""
        parts = zip(self.blocks(), factors, strict=True)
        if kept is None:
            return add_exactly(self.units[block].T @ factor for block, factor in parts)
        return add_exactly((self.units[block] * kept[block, None]).T @ factor for block, factor in parts)

    def gram(self) -> Array:
        """X^T X in units of norm^2 2^-40."""
        return add_exactly(self.units[block].T @ self.units[block] for block in self.blocks())


def _stretches(count: int, step: int) -> Iterator[slice]:
    """Slices of at most so many rows; an empty one where there are none."""
    for start in range(0, max(count, 1), step):
        yield slice(start, start + step)


def quantize(vectors: Array, bound: float) -> Array:
    """Vectors (or numbers) of at most `bound`, truncated toward zero to whole units of bound/2^20.

    One that rounding, or a caller, has made longer than the bound is shortened, so that no row is above 2^20 units,
    exactly, whatever is given: what is not finite is 0.
    """
    if vectors.ndim == 1:
        return on_grid(vectors, 2.0**ROW_BITS / bound, 2**ROW_BITS)
    found: Array = np.empty(vectors.shape)
    for part in _stretches(len(found), max(1, _ENTRIES // max(1, found.shape[1]))):
        found[part] = _rows_in_units(vectors[part], bound)
    return found


def _rows_in_units(vectors: Array, bound: float) -> Array:
    """Those of a block of rows."""
    found = on_grid(vectors, 2.0**ROW_BITS / bound, 2**ROW_BITS)
    while True:
        exact = found.shape[1] <= _BLOCK  # then no sum of whole squares is rounded, in any order
        square = np.einsum("ij,ij->i", found, found) if exact else square_lengths(found)
        long = square > 4.0**ROW_BITS
        if not long.any():
            return found
        found[long] = np.trunc(found[long] * (2.0**ROW_BITS * (1 - 2.0**-18) / np.sqrt(square[long]))[:, None])


def split_in_units(numbers: Array, bound: float, parts: int) -> Array:
    """Numbers of at most `bound` as whole units of bound/2^20, bound/2^40 and so on, side by side.

    Each part is at most 2^20 units, and the sum is off by at most a unit of the last. The numbers may be in extended
    precision, all of which is used: what the first part leaves, below 2, is rounded to 53 bits.
    """
    rest = np.clip(numbers / bound, -1, 1) * 2.0**ROW_BITS
    if not np.isfinite(rest).all():
        rest = np.nan_to_num(rest, nan=0.0)
    found = [np.trunc(rest.astype(np.float64))]
    low: Array = (rest - found[0]).astype(np.float64)
    for _ in range(parts - 1):
        low = low * 2.0**ROW_BITS
        found.append(np.trunc(low))
        low = low - found[-1]
    return np.hstack(found)


def on_grid(numbers: Array, units: float, most: int) -> Array:
    """Numbers times `units`, truncated toward zero to whole numbers of at most `most`, as doubles.

    **Theorem.** Each is a finite whole number in [-most, most], whatever is given: NaN and the infinities are 0, and
    what is beyond the ends is at them. So a cast to 64-bit integers is exact, for `most` up to 2^53. All integers of
    this package that come from measured numbers come through here.
    """
    found: Array = np.asarray(numbers, dtype=np.float64)
    found = np.where(np.isfinite(found), found, 0.0) if not np.all(np.isfinite(found)) else found
    with np.errstate(over="ignore"):  # what overflows is beyond the ends
        found = found * units
    return np.clip(np.trunc(found, out=found), -float(most), float(most), out=found)


def round_weights(weights: Array) -> Array:
    """Weights rounded to 32 bits of their length, for which scores are exact. They are public, so this is free.

    None is beyond 2^500, and what is not finite is 0, so that no later step overflows.
    """
    known = weights
    if not (np.abs(weights) <= _FARTHEST).all():
        known = np.clip(np.nan_to_num(weights, nan=0.0, posinf=0.0, neginf=0.0), -_FARTHEST, _FARTHEST)
    exponent = exponent_of(known)
    return np.asarray(np.ldexp(np.trunc(np.ldexp(known, exponent)), -exponent))


def exponent_of(weights: Array) -> int:
    """The e for which weights times 2^e, each column of them, are between 2^31 and 2^32 long."""
    length = math.sqrt(float(np.max(np.einsum("i...,i...->...", weights, weights), initial=0.0)))
    return _WEIGHTS - math.frexp(length)[1] if length > 0 else 0


def add_exactly(parts: Iterator[Array]) -> Array:
    """The sum of arrays of whole numbers below 2^53, as Python's integers; 512 of them fit 64 bits."""
    far: Array | int = 0
    while group := list(islice(parts, 1)):
        near = group[0].astype(np.int64)
        for part in islice(parts, 511):
            near += part.astype(np.int64)
        far = far + near.astype(object)
    return np.asarray(far, dtype=object)
