"""Sums over disjoint groups of rows, with noise: how many rows a group has, and the moments of its columns.

>>> from tacit.sampling.bits import ReplayBits
>>> facts = {"groups": 2, "columns": 1, "degree": 2, "neighbors": Neighbors.ADD_REMOVE}
>>> plan = GroupMoments.calibrate(Fraction(1000), Fraction(1, 10**6), **facts)
>>> values = np.array([[1.0], [0.5], [-0.5]])
>>> counts, first, second = plan.release(values, np.array([0, 0, 1]), ReplayBits(b"example"))
>>> counts.round().tolist(), first.round(1).tolist()
([2.0, 1.0], [[1.5], [-0.5]])
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from tacit.arithmetic import to_integer
from tacit.errors import ParameterError
from tacit.learn.losses import Array
from tacit.learn.noise import GRID_BITS, GridGaussian, sqrt_upper_bound, unit_sigma
from tacit.learn.sums import EXPONENT, ROW_BITS, QuantizedRows, on_grid
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.loss import ApproximateDp, Compose, ContinuousGaussianNoise, Loss, Repeat
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

_ONE = 2**EXPONENT  # one, in the units of the sums
_TURN = Fraction(103, 20)  # above the most of t^2 + 4 t^2 (2 - t)^2 for t in [0, 2], which is 5.1447 at t = 1.1464
_SPREAD = 1 / 3  # the variance of a uniform distribution on [-1, 1]: where nothing is known, this is believed


@dataclass(frozen=True)
class GroupMoments:
    """Releases the sums of T_0(u) = 1, T_1(u) = u and T_2(u) = 2 u^2 - 1, up to `degree`, over each group of rows.

    u are the columns, in [-1, 1]; a row is in one group. As |T| <= 1, the sums of T_2 move by half of what those of
    2 u^2 move by. Sums are exact: u is truncated to whole units of 2^-20, so T_2(u) has whole units of 2^-40.

    **Theorem.** `times` releases, where the groups of each may depend on those before it, lose at most `privacy_loss`.

    **Proof, for Gaussian noise.** Let sums of degree g have noise of deviation s_g. In these units the d columns of one
    row move all sums by at most m = (1/s_0^2 + d/s_1^2 + d/s_2^2)^(1/2) in L2. A row replaced by one of another group
    moves them by sqrt(2) m. In the same group the count stays, and with s_1 = s_2 and t = |u - v|, |u + v| <= 2 - t, a
    column moves them by at most (t^2 + 4 t^2 (2 - t)^2)^(1/2)/s_1, below (5.15)^(1/2)/s_1, or by 2/s_1 without T_2.
    Rounding to the grids of `GridGaussian` moves each of at most 2 (1 + 2 d) sums by 2^-32 s_g more. The noise of a sum
    strays from a rounded Gaussian as in `GridGaussian`.

    **Proof, for a delta of 0.** A row moves the sums of degree g by at most d (or 1) in L1, a replacement by twice
    that, and they have discrete Laplace noise on the grid on which they are exact.

    Where one row is replaced in the only group, the number of rows is public and has no noise.
    """

    noises: tuple[GridGaussian | Laplace, ...]  # of the degrees that are released, from the least on
    degree: int
    groups: int
    columns: int
    neighbors: Neighbors
    times: int = 1

    @classmethod
    def calibrate(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        *,
        groups: int,
        columns: int,
        degree: int,
        neighbors: Neighbors,
        times: int = 1,
    ) -> Self:
        """The releases for (epsilon, delta), with noise calibrated to it.

        The count has 1/(1 + degree sqrt(columns)) of the budget, and the degrees equal parts of the rest: an error of
        the count is one in every column, so this is about the least sum of their variances.
        """
        counted = not (groups == 1 and neighbors is Neighbors.REPLACE)
        count = Fraction(counted, 1 + degree * math.isqrt(columns))
        shares = [share for share in (count, *[(1 - count) / degree] * degree) if share]
        widths = [1] * counted + [columns] * degree
        facts = degree, groups, columns, neighbors, to_integer("times", times, least=1)
        if delta == 0:
            twice = 1 if neighbors is Neighbors.ADD_REMOVE else 2
            scales = (
                width * twice * _ONE * times / (epsilon * share) for width, share in zip(widths, shares, strict=True)
            )
            return cls(tuple(map(Laplace, scales)), *facts)
        unit = unit_sigma(epsilon, delta, times * groups * sum(widths)) * sqrt_upper_bound(Fraction(times))
        part = unit * _rounding(sum(widths))
        if part >= Fraction(1, 2):
            raise ParameterError("epsilon", "is too small for the grid of the noise", fix="choose a larger epsilon")
        move = _squared_l2_sensitivity([share / width for width, share in zip(widths, shares, strict=True)], *facts[:4])
        sigmas = (
            unit / (1 - part) * sqrt_upper_bound(move * width / share)
            for width, share in zip(widths, shares, strict=True)
        )
        sizes = (groups * width for width in widths)
        return cls(
            tuple(GridGaussian(_up(sigma), Fraction(1), size) for sigma, size in zip(sigmas, sizes, strict=True)),
            *facts,
        )

    @property
    def has_noisy_counts(self) -> bool:
        """Whether the numbers of rows are private."""
        return len(self.noises) > self.degree

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of all releases."""
        rows = 1 if self.neighbors is Neighbors.ADD_REMOVE else 2
        parts: list[Loss] = []
        lost, weights = Fraction(0), []
        for noise, width in zip(self.noises, self._widths, strict=True):
            if isinstance(noise, Laplace):
                parts.append(noise.loss(width * rows * _ONE))
            else:
                lost += self.times * noise.stray
                weights.append(1 / noise.sigma**2)
        if not weights:
            return Repeat(Compose(tuple(parts)), self.times)
        move = _squared_l2_sensitivity(weights, self.degree, self.groups, self.columns, self.neighbors)
        least = Fraction(math.isqrt(math.floor(2**80 / move)), 2**40)  # the deviation, in units of the move
        relative = 1 / (1 / least + _rounding(sum(self._widths)))
        return Compose((Repeat(ContinuousGaussianNoise(relative), self.times), ApproximateDp(Fraction(0), lost)))

    @property
    def deviations(self) -> tuple[float, ...]:
        """The standard deviation of the noise on a count, and on a sum of each degree."""
        found = (
            math.sqrt(2) * float(noise.scale / _ONE) if isinstance(noise, Laplace) else float(noise.sigma)
            for noise in self.noises
        )
        return (*[0.0] * (not self.has_noisy_counts), *found)

    def release(self, values: Array, places: Array, bits: Bits) -> list[Array]:
        """For each degree the sums, with noise: the counts (groups,), and then (groups, columns).

        `values` are the rows, of which what is outside of [-1, 1] is cut off; `places` are their groups.
        """
        exact = self.sums(values, places)
        public = [] if self.has_noisy_counts else [exact.pop(0).astype(np.float64) / _ONE]
        return public + [_add_noise(noise, sums, bits) for noise, sums in zip(self.noises, exact, strict=True)]

    def sums(self, values: Array, places: Array) -> list[Array]:
        """The same without noise, as integers in units of 2^-40."""
        whole = on_grid(values, 2.0**ROW_BITS, 2**ROW_BITS)
        terms = [np.ones((len(values), 1)), whole, 2 * whole**2 - _ONE][: self.degree + 1]
        units = _ONE, _ONE >> ROW_BITS, 1
        # Rows adds whole numbers of at most 2^40 without error, a block of rows at a time
        return [
            (QuantizedRows(term, 1.0).sum_of(self._members(places)).T * unit).reshape(self._shape(degree))
            for degree, (term, unit) in enumerate(zip(terms, units, strict=False))
        ]

    @property
    def _widths(self) -> list[int]:
        return [1] * self.has_noisy_counts + [self.columns] * self.degree

    def _shape(self, degree: int) -> tuple[int, ...]:
        return (self.groups, self.columns) if degree else (self.groups,)

    def _members(self, places: Array) -> Iterator[Array]:
        """For each block of rows, one where a row is in a group, else zero."""
        for block in QuantizedRows(places, 1.0).blocks():
            yield (places[block, None] == np.arange(self.groups)).astype(np.float64)


def estimate_means(released: list[Array], deviations: tuple[float, ...]) -> list[Array]:
    """The counts, and for each degree the means, that noisy sums tell of, where noise has these deviations.

    Counts are at least one and the deviation of their noise. A sum over n rows with noise of deviation s, of numbers
    whose mean is believed to be within 1/sqrt 3 of a start, is by Bayes' rule one with 3 s^2/n more rows at the start.
    The starts are the moments of a uniform distribution: 0, and -1/3 for T_2.
    """
    counts = np.maximum(released[0], max(1.0, deviations[0]))
    found = [counts]
    for sums, deviation, start in zip(released[1:], deviations[1:], (0.0, 2 * _SPREAD - 1), strict=False):
        more = deviation**2 / (counts * _SPREAD)
        found.append(np.clip((sums + start * more[:, None]) / (counts + more)[:, None], -1.0, 1.0))
    return found


def estimate_moments(released: list[Array], deviations: tuple[float, ...]) -> tuple[Array, Array, Array]:
    """The counts, means and variances. A variance is at least the deviation of its noise and the square of a unit."""
    counts, first, second = estimate_means(released, deviations)
    count, one, two = deviations
    slopes = two / 2, 2 * first * one, (2 * first**2 - second / 2) * count  # by the sum of T_2, of T_1, and the count
    noise = np.sqrt(sum(np.square(slope) for slope in slopes)) / counts[:, None]
    return counts, first, np.maximum((1 + second) / 2 - first**2, np.clip(noise, 4.0**-ROW_BITS, _SPREAD))


def _squared_l2_sensitivity(
    weights: list[Fraction], degree: int, groups: int, columns: int, neighbors: Neighbors
) -> Fraction:
    """The square of what a neighbor moves the sums by, in units of their deviations; `weights` are one over squares."""
    moments = weights[len(weights) - degree :]
    row = sum(weights[: len(weights) - degree], columns * sum(moments, Fraction(0)))
    if neighbors is Neighbors.ADD_REMOVE:
        return row
    inside = columns * max(moments) * (4 if degree == 1 else _TURN)
    return max(inside, 2 * row) if groups > 1 else inside


def _rounding(numbers: int) -> Fraction:
    """What the rounding to grids adds to a move, in units of the deviations: two rows have so many sums each."""
    return Fraction(math.isqrt(2 * numbers) + 1, 2**GRID_BITS)


def _up(sigma: Fraction) -> Fraction:
    return Fraction(math.ceil(sigma * 2**60), 2**60)


def _add_noise(noise: GridGaussian | Laplace, sums: Array, bits: Bits) -> Array:
    """The sums with noise, in units of one."""
    if isinstance(noise, GridGaussian):
        return noise.release_whole(sums, EXPONENT, bits)
    noisy = noise.release([int(value) for value in sums.ravel()], bits)
    return np.array([value / _ONE for value in noisy]).reshape(sums.shape)
