"""Privacy amplification by shuffling: the epsilon of locally randomized reports whose order and senders are hidden.

>>> shuffled = ShuffleAmplification(epsilon=1, users=10_000)
>>> low, high = shuffled.bounds(delta=1e-6)
>>> round(low, 4), round(high, 4)
(0.038, 0.0432)
>>> ShuffleAmplification.calibrate(epsilon=0.25, delta=1e-6, users=10_000).epsilon > 3
True

A given protocol has smaller bounds than the worst one of its epsilon.

>>> from tacit.local.k_ary import KAryRandomizedResponse
>>> low, high = ShuffleAmplification.of(KAryRandomizedResponse(domain=100, epsilon=1), users=10_000).bounds(delta=1e-6)
>>> round(low, 4), round(high, 4)
(0.0072, 0.008)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.arithmetic import Number, to_integer, to_rational, to_rational_between
from tacit.errors import ParameterError
from tacit.local.shuffle_divergence import expected_positive_part
from tacit.local.shuffle_lower_bounds import (
    LocalProtocol,
    LowerBoundPair,
    local_epsilon,
    max_total_variation,
    pairs_of_protocol,
    worst_case_pairs,
)
from tacit.mechanisms.validation import check_epsilon, check_probability
from tacit.privacy.loss import ApproximateDp

_MOST_USERS = 10**9
_MOST_EPSILON = 50
_LEAST_DELTA = 1e-15
_CLOSE = 2.0**-16  # relative, of an epsilon that is searched
_PARTS = 10**12


@dataclass(frozen=True)
class ShuffleAmplification:
    """Privacy amplification by shuffling: reports of many users, made by one epsilon-LDP randomizer, in a random order.

    Only honest users count whose reports the adversary cannot attribute: `users` is their number. Neighbors replace one
    user's value; all others are known to the adversary.

    **Theorem** (Feldman, McMillan and Talwar 2021, 2023). With E = e^epsilon, what is shuffled is
    (a, delta)-DP for every a >= 0, where

        delta = E max(0, (E - e^a) A - (E e^a - 1) B)/n

    and A and B count the users among n of whom each independently falls into A with the probability 1/(E + 1), into B
    with the same probability, and into neither otherwise.

    **Proof.** *Columns.* Let user 1 have x or y. For a report r let u = R(r|x), v = R(r|y). Where u >= v write
    u = E s + w and v = s + w, else u = s + w and v = E s + w, with s = |u - v|/(E - 1) and w >= 0. So R(x) draws from
    S0 with the weight E p, from S1 with p and from S2 with 1 - p - E p, and R(y) the same with S0 and S1 exchanged. Any
    other user's R(r|z) is at least max(u, v)/E = s + w/E: they draw from S0 with p, from S1 with p, from S2 with
    (1 - p - E p)/E, and otherwise in a way of their own.

    *Counts.* Show the adversary which draws were of the last kind and who made them; of the rest the numbers n0, n1, n2
    are all that a shuffle reveals. If all n users drew as the others do, their distribution would be multinomial; the
    distribution under x is that one times (E n0 + n1 + E n2)/n, under y times (n0 + E n1 + E n2)/n. So delta(a) = E
    max(0, sum of W)/n, where each user's W is E - e^a with the probability p, 1 - E e^a with p, E - E e^a with (1 - p
    - E p)/E, else 0.

    *The worst p.* The mean of W is 1 - e^a for every p. With t = p (E + 1), W is a mixture: with the weight t the W of
    p = 1/(E + 1), and with 1 - t a V that is -E (e^a - 1) with the probability 1/E, else 0. V is below the former in
    convex order: the means agree, V <= 0, and for 0 <= c <= E (e^a - 1) E max(0, V + c) is c (1 - 1/E), at most c E/(E
    + 1), which the other has from its part that is not B. Convex order passes to mixtures and to sums of independent
    terms, and max(0, .) is convex. So t = 1 is the worst, and delta grows with t.

    *A known variation.* p (E - 1) is the total variation between R(x) and R(y). Where it is known to be at most
    `variation`, p is, and W has three values. The number of users with the last is at least some k except with a tiny
    probability, so that delta is at most E max(0, (E - e^a) A - (E e^a - 1) B - k E (e^a - 1))/n and E - e^a times that
    probability. The smaller of this and the theorem's is taken.

    *Lower bounds.* `pairs` are pairs of neighboring datasets of a given protocol (`of` finds them); without them the
    lower bound is that of some randomizers of this epsilon and variation. `shuffle_lower_bounds.py` has the theorems.

    Parameters
    ----------
    epsilon : number
        The local epsilon of one report, above 0 and at most 50.
    users : int
        The number of honest users whose reports are shuffled, from 1 to 10^9. More users give a smaller epsilon.
    variation : number, optional
        An upper bound, between 0 and 1, on the total variation between the reports of two values. It makes the upper
        bound smaller; by default that of the worst randomizer.
    pairs : tuple of LowerBoundPair, optional
        Pairs of neighboring datasets for the lower bound; by default those of some randomizers of this epsilon.

    Raises
    ------
    ParameterError
        Where a parameter is outside its range.

    See Also
    --------
    ShuffleAmplification.of : The bounds of a given protocol, with its variation and its pairs.

    Examples
    --------
    >>> from tacit.local import KAryRandomizedResponse, ShuffleAmplification
    >>> low, high = ShuffleAmplification(epsilon=1, users=10_000).bounds(delta=1e-6)  # of any randomizer
    >>> round(low, 4), round(high, 4)
    (0.038, 0.0432)
    >>> protocol = KAryRandomizedResponse(domain=100, epsilon=1)
    >>> low, high = ShuffleAmplification.of(protocol, users=10_000).bounds(delta=1e-6)
    >>> round(low, 4), round(high, 4)
    (0.0072, 0.008)
    """

    epsilon: Fraction
    users: int
    variation: Fraction | None = None
    pairs: tuple[LowerBoundPair, ...] | None = field(default=None, repr=False)

    if TYPE_CHECKING:  # any number is converted below

        def __init__(
            self,
            epsilon: Number,
            users: int,
            variation: Number | None = None,
            pairs: tuple[LowerBoundPair, ...] | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        local, users = check_epsilon(self.epsilon), to_integer("users", self.users, least=1)
        if local > _MOST_EPSILON:
            raise ParameterError("epsilon", f"must be at most {_MOST_EPSILON}", fix="epsilon=4")
        if users > _MOST_USERS:
            raise ParameterError(
                "users",
                f"must be at most {_MOST_USERS:,}",
                fix=f"users={_MOST_USERS}: its bound holds for more users too",
            )
        object.__setattr__(self, "epsilon", local)
        object.__setattr__(self, "users", users)
        if self.variation is not None:
            object.__setattr__(self, "variation", check_probability("variation", self.variation))

    @classmethod
    def of(cls, protocol: LocalProtocol, users: int) -> ShuffleAmplification:
        """Make the amplification of one round of reports of a given protocol.

        Its total variation makes the upper bound smaller, and the lower one is of datasets of the protocol itself.
        Where reports are drawn from something stored, as in `Rappor` and `MemoizedRandomizer`, rounds do not compose,
        since all depend on it. All reports together then lose at most what they lose without a shuffler.

        Parameters
        ----------
        protocol : FrequencyOracle, StochasticRounding, PiecewiseMechanism or HybridMechanism
            The protocol of all users; its epsilon is that of one report.
        users : int
            The number of honest users whose reports are shuffled, from 1 to 10^9.

        Returns
        -------
        ShuffleAmplification
            With the variation and the pairs of the protocol.

        Raises
        ------
        ParameterError
            Where the protocol is of another class: `ShuffleAmplification(epsilon, users)` holds for any.
        """
        shuffled = cls(local_epsilon(protocol), users)
        return cls(shuffled.epsilon, shuffled.users, max_total_variation(protocol), pairs_of_protocol(protocol))

    @classmethod
    def calibrate(cls, epsilon: Number, delta: Number, users: int) -> ShuffleAmplification:
        """Find the largest local epsilon, so the least noise, whose shuffled reports are (epsilon, delta)-DP.

        Parameters
        ----------
        epsilon : number
            The epsilon of the shuffled reports, above 0 and at most 50.
        delta : number
            The delta of the shuffled reports, from 1e-15 to below 1.
        users : int
            The number of honest users whose reports are shuffled, from 1 to 10^9. More users need less noise each.

        Returns
        -------
        ShuffleAmplification
            Its `epsilon` is the local epsilon to randomize with, rounded down.

        Raises
        ------
        ParameterError
            Where a parameter is outside its range.
        """
        target, lost = check_epsilon(epsilon), _delta(delta)
        low, high = target, Fraction(_MOST_EPSILON)
        if target > high:
            raise ParameterError("epsilon", f"must be at most {_MOST_EPSILON}", fix="epsilon=1")
        while high - low > low * Fraction(_CLOSE):
            middle = Fraction(math.floor((low + high) / 2 * _PARTS), _PARTS)
            fits = cls(middle, users)._delta_at(float(target), True, lost * 1e-6) <= lost
            low, high = (middle, high) if fits else (low, middle)
        return cls(low, users)

    def delta(self, epsilon: Number) -> float:
        """Compute an upper bound on the delta of the shuffled reports.

        Parameters
        ----------
        epsilon : number
            The epsilon of the shuffled reports, at least 0.

        Returns
        -------
        float
            A delta, rounded up, for which they are (epsilon, delta)-DP.
        """
        return self._delta_at(_epsilon(epsilon), True, 1e-18)

    def least_delta(self, epsilon: Number) -> float:
        """Compute a lower bound on the delta of the shuffled reports.

        Parameters
        ----------
        epsilon : number
            The epsilon of the shuffled reports, at least 0.

        Returns
        -------
        float
            A delta, rounded down, below which they are not (epsilon, delta)-DP: the largest of a few pairs of datasets,
            those of the protocol where it is given, else of some randomizers of this epsilon and variation.
        """
        return self._delta_at(_epsilon(epsilon), False, 1e-18)

    def bounds(self, delta: Number) -> tuple[float, float]:
        """Bound the epsilon of the shuffled reports from below and from above.

        Parameters
        ----------
        delta : number
            The delta of the shuffled reports, from 1e-15 to below 1.

        Returns
        -------
        low, high : float
            The epsilon of the protocol, or of the worst randomizer where none is given, is between them.
        """
        lost = _delta(delta)
        return self._epsilon_at(lost, False), self._epsilon_at(lost, True)

    def loss(self, delta: Number) -> ApproximateDp:
        """Return the privacy loss of one shuffled round, for the accountant.

        Parameters
        ----------
        delta : number
            The delta of the round, from 1e-15 to below 1.

        Returns
        -------
        ApproximateDp
            With the upper bound on epsilon. Rounds of fresh reports compose as any others do.
        """
        lost = _delta(delta)
        return ApproximateDp(Fraction(self._epsilon_at(lost, True)), to_rational("delta", delta))

    def _epsilon_at(self, lost: float, upper: bool) -> float:
        """Return the least epsilon of a delta of at most `lost`, rounded up; or one of a larger delta, rounded down."""
        low, high = 0.0, float(self.epsilon)
        if self._delta_at(0.0, upper, lost * 1e-6) <= lost:
            return 0.0
        while high - low > high * _CLOSE:
            middle = (low + high) / 2
            low, high = (middle, high) if self._delta_at(middle, upper, lost * 1e-6) > lost else (low, middle)
        return high if upper else low

    def _delta_at(self, a: float, upper: bool, cut: float) -> float:
        local, n = float(self.epsilon), self.users
        if a >= local:
            return 0.0
        part = 1.0 if self.variation is None else min(1.0, float(self.variation) / math.tanh(local / 2))
        if not upper:
            pairs = worst_case_pairs(local, part) if self.pairs is None else self.pairs
            return max(pair.delta(n, local, a, cut) for pair in pairs)
        large = math.exp(local)
        plus, minus = math.exp(a) * math.expm1(local - a), math.expm1(local + a)
        found = expected_positive_part(n, 2 / (large + 1), plus, minus, cut=cut)
        if part < 1:
            sure = _binomial_lower_bound(n, (1 - part) / large, cut) * large * math.expm1(a)
            known = expected_positive_part(n, 2 * part / (large + 1), plus, minus, shift=sure, cut=cut) + plus * cut
            found = min(found, known)
        return min(1.0, found)


def _binomial_lower_bound(users: int, probability: float, miss: float) -> int:
    """Return what a binomial variable is at least, except with probability `miss`, by Bernstein's inequality."""
    log = math.log(1 / miss)
    reach = log / 3 + math.sqrt((log / 3) ** 2 + 2 * log * users * probability * (1 - probability))
    return max(0, math.floor(users * probability - reach))


def _epsilon(value: Number) -> float:
    return float(to_rational_between("epsilon", value, Fraction(0), Fraction(10**6)))


def _delta(value: Number) -> float:
    lost = float(to_rational("delta", value))
    if not _LEAST_DELTA <= lost < 1:
        raise ParameterError("delta", f"must be at least {_LEAST_DELTA:g} and below one", fix="delta=1e-6")
    return lost
