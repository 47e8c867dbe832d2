"""A price for goods that can be sold any number of times, from what the bidders would pay.

>>> from tacit.sampling.bits import ReplayBits
>>> auction = Pricing.calibrated(epsilon=2, prices=[10, 50, 500])
>>> auction.revenues([10, 10, 500])
[30, 50, 500]
>>> auction.release([10] * 9 + [500] * 9, ReplayBits(b"example"))
500
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.arithmetic import certified_floor, to_integers, to_interval, to_rational_between
from tacit.errors import ParameterError
from tacit.mechanisms.validation import check_probability
from tacit.privacy.loss import BoundedRange
from tacit.privacy.unit import Neighbors
from tacit.sampling import exponential_weights
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class Pricing:
    """Chooses one of the declared `prices`, p with probability proportional to exp(factor revenue(p)), where
    revenue(p) = p #{v >= p} over the bidders' valuations v.

    With D the largest price, factor = epsilon/D under ADD_REMOVE and epsilon/(2D) under REPLACE.

    **Theorem.** If neighbors differ in one bidder, the privacy loss lies in an interval of length epsilon that holds 0,
    so the price is epsilon-DP. With OPT the best revenue and K the number of prices, P[revenue <= OPT - (ln K +
    t)/factor] <= exp(-t).

    Proof. One more bidder raises revenue(p) by 0 or p, so factor revenue(p) rises by between 0 and factor D; a replaced
    one changes it by between -factor D and factor D. The logarithm of the sum of weights changes by an amount between
    the same ends, and the privacy loss is the difference of the two (McSherry, Talwar 2007; Durfee, Rogers 2019 for the
    range). Of the K weights, those with a revenue of at most OPT - x are each at most exp(-factor x) of the best.

    Bidders who know this gain little by bidding untruthfully: at most a factor exp(epsilon) in any outcome's
    probability.
    """

    prices: tuple[int, ...]
    epsilon: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    def __post_init__(self) -> None:
        prices = tuple(sorted(set(to_integers("prices", self.prices))))
        if not prices or prices[0] <= 0:
            raise ParameterError("prices", "must be positive, and at least one", fix="prices=[10, 50, 500], say")
        object.__setattr__(self, "prices", prices)
        object.__setattr__(
            self, "epsilon", to_rational_between("epsilon", self.epsilon, Fraction(1, 10**9), Fraction(10**6))
        )
        if not isinstance(self.neighbors, Neighbors):
            raise ParameterError(
                "neighbors", f"is not a neighbor relation: {self.neighbors!r:.60}", fix="Neighbors.REPLACE, say"
            )

    @classmethod
    def calibrated(cls, epsilon: Any, prices: Sequence[int], neighbors: Neighbors = Neighbors.REPLACE) -> Pricing:
        """The sharpest choice at this price. The sensitivity is the largest price: declare none that nobody pays."""
        return cls(tuple(to_integers("prices", prices)), epsilon, neighbors)

    @property
    def sensitivity(self) -> int:
        """How far one bidder can move a revenue: the largest price."""
        return self.prices[-1]

    @property
    def factor(self) -> Fraction:
        """What a unit of revenue weighs."""
        ways = 1 if self.neighbors is Neighbors.ADD_REMOVE else 2
        return self.epsilon / (ways * self.sensitivity)

    def loss(self) -> BoundedRange:
        """What a choice costs."""
        return BoundedRange(self.epsilon)

    def revenues(self, valuations: Sequence[int]) -> list[int]:
        """The revenue of each price, lowest price first; exact, and private."""
        bids = sorted(to_integers("valuations", valuations))
        return [price * (len(bids) - bisect_left(bids, price)) for price in self.prices]

    def law(self, valuations: Sequence[int]) -> dict[int, arb]:
        """The probability of each price, as intervals at the working precision."""
        revenues = self.revenues(valuations)
        weights = [(to_interval(self.factor) * (revenue - max(revenues))).exp() for revenue in revenues]
        whole = sum(weights[1:], weights[0])
        return {price: weight / whole for price, weight in zip(self.prices, weights, strict=True)}

    def release(self, valuations: Sequence[int], bits: Bits | None = None) -> int:
        """The chosen price."""
        bits = bits_or_system(bits)
        return self.prices[exponential_weights.choose(self.revenues(valuations), self.factor, bits)]

    def error(self, confidence: Any) -> int:
        """A w such that the revenue is within w of the best with at least this probability, whatever the bids are.

        The revenue falls short by x or more with probability at most K exp(-factor x): w is the largest integer below
        ln(K/(1 - confidence))/factor, which is irrational.
        """
        level = check_probability("confidence", confidence)
        odds = len(self.prices) / (1 - level)
        return certified_floor(lambda: to_interval(odds).log() / to_interval(self.factor))
