"""A price for goods that can be sold any number of times, from what the bidders would pay."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.arithmetic import Number, certified_floor, to_integer, to_integers, to_interval, to_rational_between
from tacit.errors import ParameterError
from tacit.frozen import set_fields
from tacit.mechanisms.validation import check_neighbors, check_probability
from tacit.privacy.loss import BoundedRange
from tacit.privacy.unit import Neighbors
from tacit.sampling import exponential_weights
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, init=False)
class Pricing:
    """Releases one of the declared prices, p with probability proportional to exp(factor revenue(p)).

    revenue(p) = p #{v >= p} over the bidders' valuations v: what the goods, of which there are enough, earn at p.
    With D the largest price, factor = epsilon/D under ADD_REMOVE and epsilon/(2D) under REPLACE.

    **Theorem.** If neighbors differ in one bidder, the privacy loss lies in an interval of length epsilon that holds 0,
    so the price is epsilon-DP. With OPT the best revenue and K the number of prices, P[revenue <= OPT - (ln K +
    t)/factor] <= exp(-t).

    Proof. One more bidder raises revenue(p) by 0 or p, so factor revenue(p) rises by between 0 and factor D; a replaced
    one changes it by between -factor D and factor D. The logarithm of the sum of weights changes by an amount between
    the same ends, and the privacy loss is the difference of the two (McSherry, Talwar 2007; Durfee, Rogers 2019 for the
    range). Of the K weights, those with a revenue of at most OPT - x are each at most exp(-factor x) of the best.

    **Theorem** (approximate truthfulness; McSherry, Talwar 2007). Under REPLACE, a bidder who would pay v gains at most
    (exp(epsilon) - 1) S by any bid in place of v, where S <= v is the expected surplus of bidding v: the mean of
    max(0, v - price).

    Proof. Another bid of one bidder is a neighbor: no price becomes more likely by more than a factor of exp(epsilon),
    and so no mean of a function that is not negative. Where the bid binds, so that who bids below the price may not
    buy and who bids above v may have to, the surplus at each price is at most max(0, v - price), which bidding v gets.

    Parameters
    ----------
    prices : iterable of int
        The prices to choose from, above 0, at least one. The largest is the sensitivity: declare none that nobody pays.
    epsilon : number
        Privacy loss of one choice, from 10^-9 to 10^6.
    neighbors : Neighbors, default Neighbors.REPLACE
        Whether a bidder is replaced, or added and removed, which halves the error.

    Raises
    ------
    ParameterError
        If there is no price, one is not positive, or epsilon is out of range.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> auction = Pricing.calibrated(epsilon=2, prices=[10, 50, 500])
    >>> auction.revenues([10, 10, 500])
    [30, 50, 500]
    >>> auction.release([10] * 9 + [500] * 9, ReplayBits(b"example"))
    500
    """

    prices: tuple[int, ...]
    epsilon: Fraction
    neighbors: Neighbors = Neighbors.REPLACE

    def __init__(self, prices: Iterable[int], epsilon: Number, neighbors: Neighbors = Neighbors.REPLACE) -> None:
        known = tuple(sorted(set(to_integers("prices", prices))))
        if not known or known[0] <= 0:
            raise ParameterError("prices", "must be positive, and at least one", fix="prices=[10, 50, 500], say")
        set_fields(
            self,
            prices=known,
            epsilon=to_rational_between("epsilon", epsilon, Fraction(1, 10**9), Fraction(10**6)),
            neighbors=check_neighbors(neighbors),
        )

    @classmethod
    def calibrated(cls, epsilon: Number, prices: Iterable[int], neighbors: Neighbors = Neighbors.REPLACE) -> Pricing:
        """Return the mechanism with the least error that is epsilon-DP.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one choice, from 10^-9 to 10^6.
        prices : iterable of int
            The prices to choose from, above 0, at least one.
        neighbors : Neighbors, default Neighbors.REPLACE
            Whether a bidder is replaced, or added and removed.

        Returns
        -------
        Pricing
            The calibrated mechanism.
        """
        return cls(prices, epsilon, neighbors)

    @property
    def sensitivity(self) -> int:
        """How far one bidder can move a revenue: the largest price."""
        return self.prices[-1]

    @property
    def factor(self) -> Fraction:
        """The weight of one unit of revenue."""
        ways = 1 if self.neighbors is Neighbors.ADD_REMOVE else 2
        return self.epsilon / (ways * self.sensitivity)

    def loss(self) -> BoundedRange:
        """Return the privacy loss of one choice.

        Returns
        -------
        BoundedRange
            What `tacit.accounting` composes.
        """
        return BoundedRange(self.epsilon)

    def revenues(self, valuations: Iterable[int]) -> list[int]:
        """Return the exact revenue of each price, which is private.

        Parameters
        ----------
        valuations : iterable of int
            The most that each bidder would pay.

        Returns
        -------
        list of int
            A revenue for each price, the lowest price first.
        """
        bids = sorted(to_integers("valuations", valuations))
        return [price * (len(bids) - bisect_left(bids, price)) for price in self.prices]

    def law(self, valuations: Iterable[int]) -> dict[int, arb]:
        """Return the probability of each price, which depends on the private valuations.

        Parameters
        ----------
        valuations : iterable of int
            The most that each bidder would pay.

        Returns
        -------
        dict of int to arb
            The probability of each price, as certified intervals at the working precision.
        """
        revenues = self.revenues(valuations)
        weights = [(to_interval(self.factor) * (revenue - max(revenues))).exp() for revenue in revenues]
        whole = sum(weights[1:], weights[0])
        return {price: weight / whole for price, weight in zip(self.prices, weights, strict=True)}

    def expected_surplus(self, bids: Iterable[int], valuation: int) -> arb:
        """Return the mean of max(0, valuation - price): what a buyer who decides when the price is known can expect.

        Parameters
        ----------
        bids : iterable of int
            What each bidder says, this one included, truthfully or not.
        valuation : int
            The most that this bidder would pay.

        Returns
        -------
        arb
            The expected surplus, as a certified interval at the working precision. It depends on the private bids.

        Examples
        --------
        >>> auction = Pricing(prices=[1, 2, 3], epsilon=1)
        >>> honest, lie = (auction.expected_surplus([1, 3, 3, bid], valuation=3) for bid in (3, 1))
        >>> round(float(honest), 3), round(float(lie), 3)
        (0.723, 0.883)
        """
        worth = to_integer("valuation", valuation)
        law = self.law(bids)
        gains = [probability * max(worth - price, 0) for price, probability in law.items()]
        return sum(gains[1:], gains[0])

    def release(self, valuations: Iterable[int], bits: Bits | None = None) -> int:
        """Release one of the prices.

        Parameters
        ----------
        valuations : iterable of int
            The most that each bidder would pay: the private data.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        int
            The chosen price, and nothing about its revenue.
        """
        bits = bits_or_system(bits)
        return self.prices[exponential_weights.choose(self.revenues(valuations), self.factor, bits)]

    def error(self, confidence: Number) -> int:
        """Return a w such that the revenue at the released price is within w of the best, whatever the bids are.

        The revenue falls short by x or more with probability at most K exp(-factor x): w is the largest integer below
        ln(K/(1 - confidence))/factor, which is irrational.

        Parameters
        ----------
        confidence : number
            Probability that it is, strictly between 0 and 1.

        Returns
        -------
        int
            The shortfall w, in units of revenue. It does not depend on the data.
        """
        level = check_probability("confidence", confidence)
        odds = len(self.prices) / (1 - level)
        return certified_floor(lambda: to_interval(odds).log() / to_interval(self.factor))
