"""Medians, other quantiles, the least and the largest value: a point of the declared grid, chosen by its rank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, to_integer, to_integers, to_interval, to_rational_between, working_precision
from tacit.errors import ParameterError
from tacit.frozen import set_fields
from tacit.mechanisms.exponential import Exponential
from tacit.mechanisms.validation import check_epsilon, check_neighbors, check_range
from tacit.privacy.loss import BoundedRange, Repeat
from tacit.privacy.unit import Neighbors
from tacit.sampling import uniform
from tacit.sampling.bits import Bits
from tacit.sampling.exponential_weights import MAX_SIZE_BITS, choose
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb

_FITS = 2**62
_USUAL = Fraction(95, 100)  # how often the least value released is not below all rows
_Whole = npt.NDArray[Any]  # of int64, or of Python's integers where these do not fit


@dataclass(frozen=True, init=False)
class Quantile:
    """Releases a point g of the grid lower, ..., upper with P(g) proportional to exp(-factor e(g)), e its rank error.

    A share of 1/2 is the median, 0 the least value, 1 the largest.

    Of n rows, below(g) and above(g) lie strictly below and above g. For a share a/b between 0 and 1, in lowest terms,

        e(g) = max(0, b below(g) - a n, b above(g) - (b - a) n),

    which is b times the rows by which g misses: it is zero just where at most a/b of the rows are below g and at most
    1 - a/b above. For the least value (share 0), with k = min(target, ceil(n/2)),

        e(g) = max(0, below(g) - max(k - 1, 0), above(g) - (n - k)),

    which is zero just where g is the k-th smallest row; for the largest (share 1) it is the mirror image. `factor` is
    epsilon/(2 sensitivity), and of no rows every point is as good as any.

    **Theorem.** If a unit has at most `rows` rows in a group, e(g) moves by at most `sensitivity` between neighbors:
    rows max(a, b - a) under add-remove, rows b under replace, and `rows` under both for the least and the largest. So
    the privacy loss of one group lies in an interval of length epsilon that holds 0 (`Exponential` has the proof), and
    that of a unit in several groups is composed of as many.

    **Proof.** max(0, x, y) moves by at most the larger of the moves of x and y. Let s rows leave and s' come, both at
    most `rows`, one of them zero under add-remove. Under replace n may change too, by s' - s.

    *A share a/b.* One row that comes moves b below - a n by b - a if it is below g, and by -a if not. So those that
    come move it by between -s' a and s' (b - a), those that leave by between -s (b - a) and s a. Under add-remove that
    is at most rows max(a, b - a) in size; under replace at most rows a + rows (b - a) = rows b, reached where s and s'
    are both `rows`. The other term is the same for the mirror image and the share 1 - a/b.

    *The least.* k never falls as n grows, and by each row grows by at most one; so do K = max(k - 1, 0) and n - k.
    below(g) moves by between -s and s'. If s' >= s, K moves by between 0 and s' - s, so below - K by between -s' and
    s'; if s' < s, K moves by between s' - s and 0, so below - K by between -s and s. Either way that is at most `rows`
    in size. The same holds for above and n - k.

    **Why a target.** The true least value has k = 1. But then every point below it misses by one row only, and there
    may be a million of them for one that is right: nearly always a point far below would be released. So a public
    number of rows is passed over. The default is 1 + error(0.95), a function of `factor` and the number of grid points:
    of 2 target - 1 rows or more, with probability 0.95 at least, the release is not below all of them, and at most
    2 (target - 1) of them are below it. Where epsilon is huge, the target is 1. Where there are fewer rows, the one in
    the middle is aimed at: with k = target, points beyond all rows would be the best.

    Parameters
    ----------
    epsilon : number
        Privacy loss of one release, above 0 and at most 2^64. The rank error is proportional to 1/epsilon.
    share : number
        Which quantile, from 0 to 1. A float is the decimal that it is written as: 0.25 is 1/4.
    rows : int
        How many rows one unit may have in the data, at least 1. The rank error is proportional to it.
    neighbors : Neighbors
        Whether a unit is added and removed, or replaced, which for the median doubles the rank error.
    lower, upper : int
        Ends of the grid, with lower <= upper; public. The rank error grows with ln(upper - lower + 1).
    target : int, optional
        For the shares 0 and 1 only: the rank that is aimed at, at least 1, counted from that end. By default
        1 + error(0.95).

    Raises
    ------
    ParameterError
        If a parameter is out of range, or `target` is given with another share.

    Examples
    --------
    >>> from tacit.privacy import Neighbors
    >>> from tacit.sampling.bits import ReplayBits
    >>> ages = {20: 150, 40: 200, 60: 150}
    >>> median = Quantile.calibrated(
    ...     epsilon=1, share=0.5, rows=1, neighbors=Neighbors.ADD_REMOVE, lower=0, upper=100
    ... )
    >>> median.release(ages, ReplayBits(b"example")), median.error(0.95)
    (40, 8)
    >>> least = Quantile.calibrated(epsilon=1, share=0, rows=1, neighbors=Neighbors.ADD_REMOVE, lower=0, upper=100)
    >>> least.target, least.release(ages, ReplayBits(b"another"))
    (16, 20)
    """

    epsilon: Fraction
    share: Fraction
    rows: int
    neighbors: Neighbors
    lower: int
    upper: int
    target: int | None = None

    def __init__(
        self,
        epsilon: Number,
        share: Number,
        rows: int,
        neighbors: Neighbors,
        lower: int,
        upper: int,
        target: int | None = None,
    ) -> None:
        low, high = check_range(lower, upper)
        set_fields(
            self,
            epsilon=check_epsilon(epsilon),
            share=to_rational_between("share", share, Fraction(0), Fraction(1)),
            rows=to_integer("rows", rows, least=1),
            neighbors=check_neighbors(neighbors),
            lower=low,
            upper=high,
            target=None,
        )
        if self._points.bit_length() > MAX_SIZE_BITS:
            raise ParameterError(
                "upper", f"the grid has more than 2^{MAX_SIZE_BITS} points", fix="choose a coarser grid"
            )
        if self._is_extreme:
            rank = 1 + self.error(_USUAL) if target is None else to_integer("target", target, least=1)
            set_fields(self, target=rank)
        elif target is not None:
            raise ParameterError("target", "is for shares 0 and 1 only", fix="leave it out")

    @classmethod
    def calibrated(
        cls,
        epsilon: Number,
        share: Number,
        rows: int,
        neighbors: Neighbors,
        lower: int,
        upper: int,
        target: int | None = None,
    ) -> Quantile:
        """Return the mechanism with the least error that is epsilon-DP for each group it is applied to.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one release, above 0 and at most 2^64.
        share : number
            Which quantile, from 0 to 1.
        rows : int
            How many rows one unit may have in a group, at least 1.
        neighbors : Neighbors
            Whether a unit is added and removed, or replaced.
        lower, upper : int
            Ends of the grid, with lower <= upper.
        target : int, optional
            For the shares 0 and 1 only: the rank that is aimed at, at least 1.

        Returns
        -------
        Quantile
            The calibrated mechanism.
        """
        return cls(epsilon, share, rows, neighbors, lower, upper, target)

    @property
    def sensitivity(self) -> int:
        """The most that one unit moves b times the rank error of a point, b being the denominator of the share."""
        a, b = self.share.numerator, self.share.denominator
        return self.rows * (b if self.neighbors is Neighbors.REPLACE else max(a, b - a))

    @property
    def factor(self) -> Fraction:
        """The weight of one step of b times the rank error: epsilon/(2 sensitivity)."""
        return self._chooser.factor

    def loss(self, groups: int = 1) -> Repeat:
        """Return the privacy loss of a release in each group.

        Parameters
        ----------
        groups : int, default 1
            How many groups one unit may be in, at least 0; under replace, before or after.

        Returns
        -------
        Repeat
            A bounded range of epsilon for each group: what `tacit.accounting` composes.
        """
        return Repeat(BoundedRange(self.epsilon), to_integer("groups", groups, least=0))

    def release(self, histogram: Mapping[int, int], bits: Bits | None = None) -> int:
        """Release a point of the grid.

        All points between two values have the same rank error: such an interval is chosen by its weight, and a point
        of it uniformly. So time grows with the number of different values, not with the size of the grid.

        Parameters
        ----------
        histogram : mapping of int to int
            The number of rows at each point of the grid that has any: the private data.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        int
            A point from `lower` to `upper`.

        Raises
        ------
        ParameterError
            If a point lies outside the grid, or a number of rows is negative or not an integer.
        """
        bits = bits_or_system(bits)
        starts, sizes, errors = self._stretches(histogram)
        chosen = choose(errors, -self.factor, bits, sizes=sizes)
        return int(starts[chosen]) + uniform.draw_below(int(sizes[chosen]), bits)

    def law(self, histogram: Mapping[int, int], digits: int = 128) -> dict[int, arb]:
        """Return the probability of every point of the grid, which depends on the private data; for small grids.

        Parameters
        ----------
        histogram : mapping of int to int
            The number of rows at each point of the grid that has any: the private data.
        digits : int, default 128
            Working precision in bits; more of it narrows the intervals.

        Returns
        -------
        dict of int to arb
            P(g) for each point g, as certified intervals.
        """
        from flint import arb

        starts, sizes, errors = (part.tolist() for part in self._stretches(histogram))
        with working_precision(digits):
            step, best = to_interval(self.factor), min(errors)
            weights = [(step * (best - error)).exp() for error in errors]
            total = sum((weight * size for weight, size in zip(weights, sizes, strict=True)), arb(0))
            return {
                start + place: weight / total
                for start, size, weight in zip(starts, sizes, weights, strict=True)
                for place in range(size)
            }

    def error(self, confidence: Number) -> int:
        """Return the least w such that the release misses its rank by at most w rows, whatever the data are.

        **Proof.** Some point has e = 0: the ceil(a n/b)-th smallest row, or the k-th, or any of no rows. So b times the
        rows missed is how far the release falls short of the best, and `Exponential.error` is the least bound for that
        if, for any m, all points but one may fall short by m. They do with rows at `lower` and `upper` alone, n and n'
        of them with (b - a) n - a n' = m, which has solutions because a and b have no common divisor; for the least
        value, with m + target - 1 rows at `lower` and many at `upper`.

        Parameters
        ----------
        confidence : number
            Probability that it does, strictly between 0 and 1.

        Returns
        -------
        int
            The rank error w, in rows. It does not depend on the data.
        """
        return -(-self._chooser.error(self._points, confidence) // self.share.denominator)

    @property
    def _is_extreme(self) -> bool:
        return self.share.denominator == 1

    @property
    def _points(self) -> int:
        return self.upper - self.lower + 1

    @property
    def _chooser(self) -> Exponential:
        return Exponential(self.epsilon, self.sensitivity)

    def _allowance(self, n: int) -> tuple[int, int]:
        """b times how many of n rows may lie below a point that is right, and above it."""
        a, b = self.share.numerator, self.share.denominator
        if self.target is None:
            return a * n, (b - a) * n
        k = min(self.target, -(-n // 2))
        outside, inside = max(k - 1, 0), n - k
        return (inside, outside) if a else (outside, inside)

    def _stretches(self, histogram: Mapping[int, int]) -> tuple[_Whole, _Whole, _Whole]:
        """Points that are alike: where each stretch starts, its size, and e.

        Before, between and after the points with rows lie stretches without, of which the empty ones are left out.
        """
        points, counts = _check_histogram(histogram, self.lower, self.upper)
        n, b = sum(counts), self.share.denominator
        kind = np.int64 if max(abs(self.lower), abs(self.upper), b * n) < _FITS else object
        at, rows = np.array(points, dtype=kind), np.array(counts, dtype=kind)
        order = np.argsort(at)
        at, rows = at[order], rows[order]
        upto = np.cumsum(rows)
        starts, below, not_above = (np.zeros(2 * len(at) + 1, dtype=kind) for _ in range(3))
        starts[0], starts[1::2], starts[2::2] = self.lower, at, at + 1
        below[1::2], below[2::2] = upto - rows, upto
        not_above[1::2], not_above[2::2] = upto, upto
        sizes = np.diff(starts, append=np.array([self.upper + 1], dtype=kind))
        allowed_below, allowed_above = self._allowance(n)
        errors = np.maximum(np.maximum(b * below - allowed_below, b * (n - not_above) - allowed_above), 0)
        some = sizes > 0
        return starts[some], sizes[some], errors[some]


def _check_histogram(histogram: Mapping[int, int], lower: int, upper: int) -> tuple[list[int], list[int]]:
    """The points of a histogram and their numbers of rows, checked, with errors that show neither."""
    if not isinstance(histogram, Mapping):
        raise ParameterError(
            "histogram", f"needs a mapping, got {type(histogram).__name__}", fix="histogram={30: 2, 31: 5}, say"
        )
    points, counts = (
        list(numbers) if set(map(type, numbers)) <= {int} else to_integers("histogram", numbers)
        for numbers in (histogram.keys(), histogram.values())
    )
    if points and (min(points) < lower or max(points) > upper):
        raise ParameterError("histogram", "has a value outside the grid", fix="clamp the values to lower and upper")
    if counts and min(counts) < 0:
        raise ParameterError("histogram", "has a negative number of rows", fix="count the rows at each point")
    return points, counts
