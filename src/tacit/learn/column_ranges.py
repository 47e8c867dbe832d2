"""Where most values of each column are, learned with noise: for bounds that are declared much too wide.

A row's reading needs bounds, and noise is for all that they allow. Where values fill a small part of them, all that is
learned is lost in noise. A histogram over powers of two needs no tight bounds, so it finds that part.

>>> from tacit.sampling.bits import ReplayBits
>>> ages = np.arange(18.0, 90.0).repeat(100)[:, None]
>>> plan = ColumnRanges.calibrate(Fraction(1), Fraction(0), ([-1e6], [1e6]), rows=7200)
>>> lower, upper = plan.release(ages, ReplayBits(b"example"))
>>> bool(8 <= lower[0] <= 32), bool(64 <= upper[0] <= 128)
(True, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

from tacit.learn.losses import Array
from tacit.learn.noise import GridGaussian, sqrt_upper_bound
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.loss import Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

LEVELS = 20  # powers of two below the declared ends that are told apart; what is nearer to 0 is one bin with it
BINS = 2 * LEVELS + 1
_WIDE = 14  # columns from which Gaussian noise is less than Laplace's, at usual deltas
# chosen on synthetic data: benchmarks/learn_defaults.md
TAIL = 0.1  # of the values that are not 0: about how many may be beyond either end
_LEAST_WIDTH = 1e-90  # below which the arithmetic of a fit would underflow
_NARROW = 0.5  # of the declared width: a range that is no narrower is not used
_DOUBT = 1.0  # deviations of its noise up to which a sum of counts is taken for none


@dataclass(frozen=True, eq=False)
class ColumnRanges:
    """Releases a noisy histogram of each column, and reads the range of most values off it.

    The bins of a column are the zero, and for each sign the values between two neighboring powers of two, the largest
    power being above the declared ends. Values are read within the declared ends.

    **Theorem.** The release loses at most `privacy_loss`. **Proof.** The bin of a value is a function of that value and
    of what is declared, and a row has one value in each of the `columns` columns. So a row that is added or removed
    changes one count of each column by one: `columns` in L1, sqrt(columns) in L2. A row that is replaced leaves one bin
    and enters one in each column: 2 columns in L1, sqrt(2 columns) in L2. The counts have discrete Laplace or Gaussian
    noise for that. Ranges are computed from the noisy counts and from public facts.
    """

    epsilon: Fraction
    delta: Fraction
    noise: Laplace | GridGaussian
    lower: Array
    upper: Array
    rows: int
    neighbors: Neighbors

    @classmethod
    def calibrate(
        cls,
        epsilon: Fraction,
        delta: Fraction,
        bounds: tuple[Any, Any],
        *,
        rows: int,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
    ) -> Self:
        """The release for (epsilon, delta), with noise calibrated to it."""
        lower, upper = (np.asarray(end, dtype=np.float64) for end in bounds)
        noise = _calibrate_noise(epsilon, delta, len(lower), _changes(neighbors))
        lost = delta if isinstance(noise, GridGaussian) else Fraction(0)
        return cls(epsilon, lost, noise, lower, upper, rows, neighbors)

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return len(self.lower)

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of the release."""
        if isinstance(self.noise, GridGaussian):
            return self.noise.loss
        return self.noise.loss(_changes(self.neighbors) * self.columns)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a count."""
        return (
            float(self.noise.sigma) if isinstance(self.noise, GridGaussian) else math.sqrt(2) * float(self.noise.scale)
        )

    @property
    def tops(self) -> Array:
        """For each column the least power of two that is above the size of its declared ends, as an exponent."""
        return np.frexp(np.maximum(np.abs(self.lower), np.abs(self.upper)))[1]

    def release(self, features: Array, bits: Bits) -> tuple[Array, Array]:
        """The lower and the upper end of each column's range, within the declared ones."""
        exact = self.counts(features)
        if isinstance(self.noise, GridGaussian):
            noisy = self.noise.release_whole(exact, 0, bits)
        else:
            noisy = np.array(self.noise.release([int(count) for count in exact.ravel()], bits), dtype=np.float64)
        return self.read_ranges(noisy.reshape(exact.shape))

    def counts(self, features: Array) -> Array:
        """How many rows are in each bin of each column, from the largest values to the least."""
        found = np.zeros((self.columns, BINS), dtype=np.int64)
        inside = np.clip(features, self.lower, self.upper)
        levels = self.tops - np.frexp(inside)[1]
        levels = np.where((inside == 0) | (levels >= LEVELS), LEVELS, levels)
        places = np.where(inside >= 0, levels, BINS - 1 - levels)
        for column in range(self.columns):
            found[column] = np.bincount(places[:, column], minlength=BINS)
        return found

    def read_ranges(self, noisy: Array) -> tuple[Array, Array]:
        """The range of each column that all but `TAIL` of its values are in, as far as noisy counts tell.

        From either end on, bins are left out while all that were left out are no more than the tail and what noise may
        be. Where nothing is left, or little would be won, the declared bounds stay.
        """
        lower, upper = self.lower.copy(), self.upper.copy()
        for column, counts in enumerate(noisy):
            high, low = _find_end(counts, self.deviation), _find_end(counts[::-1], self.deviation)
            if high is None or low is None:
                continue
            ends = -_edge(low, self.tops[column]), _edge(high, self.tops[column])
            found = max(lower[column], ends[0]), min(upper[column], ends[1])
            if _LEAST_WIDTH < found[1] - found[0] < _NARROW * (upper[column] - lower[column]):
                lower[column], upper[column] = found
        return lower, upper


@lru_cache(maxsize=256)
def _calibrate_noise(epsilon: Fraction, delta: Fraction, columns: int, changes: int) -> Laplace | GridGaussian:
    """The noise of a count, where a neighbor changes so many counts of each column by one."""
    if delta and columns >= _WIDE:
        sensitivity = sqrt_upper_bound(Fraction(changes * columns))
        return GridGaussian.calibrated(epsilon, delta, sensitivity, columns * BINS)
    return Laplace.calibrated(epsilon, changes * columns)


def _changes(neighbors: Neighbors) -> int:
    """How many counts of a column a neighbor changes."""
    return 1 if neighbors is Neighbors.ADD_REMOVE else 2


def _find_end(counts: Array, deviation: float) -> int | None:
    """How many bins of the first ones are beyond the end; None where all are.

    Bins are left out whole: where in a bin its values are is not known, and all of them may be at its outer edge.
    """
    others = float(counts.sum() - counts[LEVELS])
    tail, left = TAIL * max(others, 0.0), 0.0
    for place, count in enumerate(counts):
        if left + count > tail + _DOUBT * deviation * math.sqrt(place + 1):
            return place
        left += float(count)
    return None


def _edge(place: int, top: int) -> float:
    """The value that so many bins are beyond, from the largest values on: 2^top at 0, and 0 at `LEVELS`."""
    if place < LEVELS:
        return math.ldexp(1.0, int(top) - place)
    return 0.0 if place == LEVELS else -math.ldexp(1.0, int(top) - BINS + place)
