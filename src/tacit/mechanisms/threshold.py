"""A threshold on a released count: a private key is shown with its noisy count, if that count is large enough."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING

from tacit.arithmetic import Number, certified_floor, to_integer, to_interval, to_rational_between
from tacit.frozen import set_fields
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.partition import (
    LEAST_DELTA,
    LEAST_EPSILON,
    MOST_DELTA,
    MOST_EPSILON,
    Key,
    check_counts,
    split_delta_interval,
)
from tacit.mechanisms.validation import check_probability
from tacit.privacy.loss import ApproximateDp, Compose, LaplaceNoise
from tacit.sampling import laplace
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, init=False)
class Threshold:
    """Adds discrete Laplace noise of `scale` to each count, and releases the noisy counts of at least t.

    A unit is in at most `groups` keys with at most `rows` rows in each. With q = exp(-1/scale) and
    d = 1 - (1 - delta)^(1/groups), t is the least integer with P[rows + noise >= t] <= d, that is

        t = rows + ceil(scale ln(1/((1 + q) d))).

    **Theorem.** If the counts of neighbors differ by at most `s` in L1, the release is (s/scale, delta)-DP.

    Proof. Let A be the keys that only D has and B those that only D' has: all their rows are of one unit, so |A| and
    |B| are at most `groups`, each count is at most `rows`, and some key of A is shown with probability a <= 1 - (1 -
    d)^groups = delta; of B with b <= delta. Let p and p' be the probabilities that the other keys come out in an event
    T, so that p <= exp(s'/scale) p' with s' <= s the distance on those keys. Then P[D in T] <= a + (1 - a) p and P[D'
    in T] >= (1 - b) p', so P[D in T] - exp(s/scale) P[D' in T] is at most a + (1 - a) p - (1 - b) p = a + (b - a) p <=
    max(a, b) <= delta.

    Parameters
    ----------
    scale : number
        Scale of the noise on each count, from 10^-6 to 10^30.
    delta : number
        Probability of showing a key that only one unit holds, from 10^-100 to 0.49. The threshold t grows with
        scale ln(1/delta).
    groups : int, default 1
        How many keys one unit may hold, at least 1; delta is divided among them.
    rows : int, default 1
        How many rows one unit may have in a key, at least 1; the threshold t lies above it.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    See Also
    --------
    PartitionSelection : Keeps the most keys that (epsilon, delta) allows, without their counts.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> threshold = Threshold.calibrated(epsilon=1, delta=1e-5)
    >>> threshold.least()
    13
    >>> sorted(threshold.release({"flu": 400, "measles": 1}, ReplayBits(b"example")))
    ['flu']
    """

    scale: Fraction
    delta: Fraction
    groups: int = 1
    rows: int = 1

    def __init__(self, scale: Number, delta: Number, groups: int = 1, rows: int = 1) -> None:
        set_fields(
            self,
            scale=to_rational_between("scale", scale, Fraction(1, 10**6), Fraction(10**30)),
            delta=to_rational_between("delta", delta, LEAST_DELTA, MOST_DELTA),
            groups=to_integer("groups", groups, least=1),
            rows=to_integer("rows", rows, least=1),
        )

    @classmethod
    def calibrated(
        cls, epsilon: Number, delta: Number, groups: int = 1, rows: int = 1, sensitivity: int | None = None
    ) -> Threshold:
        """Return the mechanism with the least noise that is (epsilon, delta)-DP: scale = sensitivity/epsilon.

        Parameters
        ----------
        epsilon : number
            Privacy loss of the noisy counts, from 10^-9 to 10^6.
        delta : number
            Probability of showing a key that only one unit holds, from 10^-100 to 0.49.
        groups : int, default 1
            How many keys one unit may hold, at least 1.
        rows : int, default 1
            How many rows one unit may have in a key, at least 1.
        sensitivity : int, optional
            L1 sensitivity of all the counts together, at least 1; by default groups * rows.

        Returns
        -------
        Threshold
            The calibrated mechanism.
        """
        price = to_rational_between("epsilon", epsilon, LEAST_EPSILON, MOST_EPSILON)
        most = to_integer("groups", groups, least=1) * to_integer("rows", rows, least=1)
        moves = most if sensitivity is None else to_integer("sensitivity", sensitivity, least=1)
        return cls(Fraction(moves) / price, delta, groups, rows)

    def loss(self, sensitivity: int) -> Compose:
        """Return the privacy loss of a release.

        Parameters
        ----------
        sensitivity : int
            L1 sensitivity of all the counts together, at least 0.

        Returns
        -------
        Compose
            The Laplace noise and the delta: what `tacit.accounting` composes.
        """
        return Compose(
            (
                LaplaceNoise(self.scale, to_integer("sensitivity", sensitivity, least=0)),
                ApproximateDp(Fraction(0), self.delta),
            )
        )

    def least(self) -> int:
        """Return t, the least noisy count that is released.

        Returns
        -------
        int
            The threshold. A key with t rows is released more than every second time.
        """
        return self.rows + _beyond(self.scale, self.delta, self.groups)

    def units(self) -> int:
        """Return the least number of units with which a key is released every second time.

        Returns
        -------
        int
            ceil(t/rows), where each unit has all its rows in the key.
        """
        return -(-self.least() // self.rows)

    def law(self, count: int) -> arb:
        """Return the probability that a key is released.

        Parameters
        ----------
        count : int
            How many rows have the key, at least 1.

        Returns
        -------
        arb
            The probability, as a certified interval at the working precision.
        """
        to_integer("count", count, least=1)
        gap = self.least() - count
        q = (-1 / to_interval(self.scale)).exp()
        return q**gap / (1 + q) if gap >= 0 else 1 - q ** (1 - gap) / (1 + q)

    def release(self, counts: Mapping[Key, int], bits: Bits | None = None) -> dict[Key, int]:
        """Release the noisy counts that are at least t.

        Parameters
        ----------
        counts : mapping of key to int
            How many rows have each key that occurs, at least 1. The order of the keys must not depend on the data:
            sort them.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        dict of key to int
            The noisy counts of the released keys, in the order given.

        Raises
        ------
        ParameterError
            If `counts` is not a mapping, or a count is below 1 or not an integer.
        """
        bits = bits_or_system(bits)
        exact = check_counts("counts", counts, least=1)
        noisy = Laplace(self.scale).release(exact, bits)
        least = self.least()
        return {key: value for key, value in zip(counts, noisy, strict=True) if value >= least}

    def error(self, confidence: Number) -> int:
        """Return the least w such that the noise of a count, released or not, is within w of zero.

        Parameters
        ----------
        confidence : number
            Probability that it is, strictly between 0 and 1.

        Returns
        -------
        int
            The half width of an interval, in rows. It does not depend on the data.
        """
        level = check_probability("confidence", confidence)
        return laplace.tail_quantile(self.scale, 1 - level)


@lru_cache(maxsize=256)
def _beyond(scale: Fraction, delta: Fraction, groups: int) -> int:
    """The least m >= 1 with P(noise >= m) = q^m / (1 + q) <= d.

    The logarithm is no multiple of 1/scale: q is transcendental and d algebraic, so q^m = (1 + q) d has no solution. It
    is positive, because (1 + q) d < 2 delta < 1.
    """

    def steps() -> arb:
        q = (-1 / to_interval(scale)).exp()
        return -to_interval(scale) * ((1 + q) * split_delta_interval(delta, groups)).log()

    return 1 + certified_floor(steps, 256)
