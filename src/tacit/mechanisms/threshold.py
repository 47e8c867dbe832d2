"""A threshold on a released count: a private key is shown with its noisy count, if that count is large enough.

>>> from tacit.sampling.bits import ReplayBits
>>> threshold = Threshold.calibrated(epsilon=1, delta=1e-5)
>>> threshold.least()
13
>>> sorted(threshold.release({"flu": 400, "measles": 1}, ReplayBits(b"example")))
['flu']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tacit.arithmetic import certified_floor, to_integer, to_interval, to_rational_between
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


@dataclass(frozen=True)
class Threshold:
    """Adds discrete Laplace noise of `scale` to each count and shows the keys whose noisy count is at least t.

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
    """

    scale: Fraction
    delta: Fraction
    groups: int = 1
    rows: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "scale", to_rational_between("scale", self.scale, Fraction(1, 10**6), Fraction(10**30))
        )
        object.__setattr__(self, "delta", to_rational_between("delta", self.delta, LEAST_DELTA, MOST_DELTA))
        object.__setattr__(self, "groups", to_integer("groups", self.groups, least=1))
        object.__setattr__(self, "rows", to_integer("rows", self.rows, least=1))

    @classmethod
    def calibrated(
        cls, epsilon: Any, delta: Any, groups: int = 1, rows: int = 1, sensitivity: int | None = None
    ) -> Threshold:
        """The least noise at this price, for counts that move by `sensitivity` in L1, if not given by groups * rows."""
        price = to_rational_between("epsilon", epsilon, LEAST_EPSILON, MOST_EPSILON)
        most = to_integer("groups", groups, least=1) * to_integer("rows", rows, least=1)
        moves = most if sensitivity is None else to_integer("sensitivity", sensitivity, least=1)
        return cls(Fraction(moves) / price, delta, groups, rows)

    def loss(self, sensitivity: int) -> Compose:
        """What a release costs where the counts move by at most `sensitivity` in L1."""
        return Compose(
            (
                LaplaceNoise(self.scale, to_integer("sensitivity", sensitivity, least=0)),
                ApproximateDp(Fraction(0), self.delta),
            )
        )

    def least(self) -> int:
        """t, the least noisy count that is shown. A key with t rows is shown more than every second time."""
        return self.rows + _beyond(self.scale, self.delta, self.groups)

    def units(self) -> int:
        """The least number of units, each with all its rows in the key, with which it is shown every second time."""
        return -(-self.least() // self.rows)

    def law(self, count: int) -> arb:
        """The probability that a key with this many rows is shown, as an interval at the working precision."""
        to_integer("count", count, least=1)
        gap = self.least() - count
        q = (-1 / to_interval(self.scale)).exp()
        return q**gap / (1 + q) if gap >= 0 else 1 - q ** (1 - gap) / (1 + q)

    def release(self, counts: Mapping[Key, int], bits: Bits | None = None) -> dict[Key, int]:
        """The noisy counts that reach t, in the order given, which must not depend on the data: sort the keys.

        A key without rows is an error: only keys that occur may be handed in.
        """
        bits = bits_or_system(bits)
        exact = check_counts("counts", counts, least=1)
        noisy = Laplace(self.scale).release(exact, bits)
        least = self.least()
        return {key: value for key, value in zip(counts, noisy, strict=True) if value >= least}

    def error(self, confidence: Any) -> int:
        """The least w such that the noise of a count is within w with at least this probability, shown or not."""
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
