"""How long most rows are once their columns are scaled, learned with noise: noise of a fit is in proportion to it.

Declared bounds say that a row of d columns in [-1, 1] may have the length sqrt(d). Few tables have such rows, and none
whose bounds are declared too wide. One histogram of lengths finds that out, with noise that does not grow with the
columns.

>>> from tacit.sampling.bits import ReplayBits
>>> rows = np.linspace(0.05, 0.07, 60_000).reshape(2000, 30)  # of lengths near 0.33, where sqrt(30) is allowed
>>> plan = RowNorm.calibrate(Fraction(1, 10), norm=30**0.5, rows=2000)
>>> bool(0.3 < plan.release(rows, ReplayBits(b"example")) < 0.5)
True
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Self

import numpy as np

from tacit.learn.losses import Array
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.loss import Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

BINS = 80  # a bin for each power of sqrt(2), down to 2^-40 of the norm
# chosen on synthetic data: benchmarks/learn_defaults.md
TAIL = 0.1  # of the rows: about how many may be longer than the length that is read
_DOUBT = 2.0  # deviations of its noise up to which a sum of counts is taken for none


@dataclass(frozen=True)
class RowNorm:
    """Releases a noisy histogram of the lengths of rows, and reads off it a length that most rows have at most.

    A bin has the lengths between two neighboring powers of sqrt(2), from `norm` downward; what is longer is in the
    first bin, and what is shorter than all in the last.

    **Theorem.** The release loses at most `privacy_loss`. **Proof.** The bin of a row is a function of the row and of
    what is public. So a row that is added or removed changes one count by one, and a row that is replaced two of them:
    1 and 2 in L1, for which the counts have discrete Laplace noise. The length is computed from the noisy counts and
    from public facts.
    """

    epsilon: Fraction
    noise: Laplace
    norm: float
    rows: int
    neighbors: Neighbors
    worth: float = 1.0

    @classmethod
    def calibrate(
        cls,
        epsilon: Fraction,
        *,
        norm: float,
        rows: int,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
        worth: float = 1.0,
    ) -> Self:
        """The release for epsilon, of rows whose length is at most `norm`.

        A length that is read is used where it is at most `worth` times the norm.
        """
        return cls(epsilon, Laplace.calibrated(epsilon, _changes(neighbors)), norm, rows, neighbors, worth)

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of the release."""
        return self.noise.loss(_changes(self.neighbors))

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise on a count."""
        return math.sqrt(2) * float(self.noise.scale)

    def release(self, features: Array, bits: Bits) -> float:
        """The length that most of these rows have at most; `norm` where noise hides it."""
        noisy = self.noise.release([int(count) for count in self.counts(features)], bits)
        return self.read_norm(noisy)

    def counts(self, features: Array) -> Array:
        """How many rows are in each bin, from the longest to the shortest.

        Squares are added column by column and compared with exact powers of two, so that the bin of a row does not
        depend on where in the table it lies, not even by a rounding.
        """
        squares = np.zeros(len(features))
        for column in features.T:
            squares += column * column
        edges = self.norm**2 * 2.0 ** -np.arange(BINS - 1, 0, -1)  # rising
        places = BINS - 1 - np.searchsorted(edges, squares, side="right")
        return np.asarray(np.bincount(places, minlength=BINS))

    def read_norm(self, noisy: list[int]) -> float:
        """The length that about `TAIL` of the rows are longer than, as far as noisy counts tell.

        From the longest rows on, bins are left out while all that were left out are no more than the tail and what
        noise may be. Rows that reach the last bin leave `norm`: they are all zero, or hidden by noise.
        """
        left, tail = 0, TAIL * self.rows
        for place, count in enumerate(noisy[:-1]):
            left += count
            if left > tail + _DOUBT * self.deviation * math.sqrt(place + 1):
                found = self.norm * math.sqrt(2.0**-place)
                return found if found <= self.worth * self.norm else self.norm
        return self.norm


def _changes(neighbors: Neighbors) -> int:
    """How many counts a neighbor changes."""
    return 1 if neighbors is Neighbors.ADD_REMOVE else 2
