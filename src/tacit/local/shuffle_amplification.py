"""Shuffling: what people's own randomness protects when nobody can tell whose report is whose.

>>> crowd = ShuffleAmplification(epsilon=1, users=10_000)
>>> low, high = crowd.bounds(delta=1e-6)
>>> round(low, 4), round(high, 4)
(0.038, 0.0432)
>>> ShuffleAmplification.needed(epsilon=0.25, delta=1e-6, users=10_000).epsilon > 3
True

A protocol that is known hides better than the worst one of its epsilon.

>>> from tacit.local.k_ary import KAryRandomizedResponse
>>> low, high = ShuffleAmplification.of(KAryRandomizedResponse(domain=100, epsilon=1), users=10_000).bounds(delta=1e-6)
>>> round(low, 4), round(high, 4)
(0.0072, 0.008)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from tacit.arithmetic import to_integer, to_rational, to_rational_between
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
_CLOSE = 2.0**-16  # of an epsilon that is searched
_PARTS = 10**12


@dataclass(frozen=True)
class ShuffleAmplification:
    """The reports of `users` people, each made by the same epsilon-DP randomizer, in a random order.

    Only people who randomize honestly count, and whose reports the adversary cannot pick out: put their number here.
    Neighbors replace one person's value; all others are known to the adversary.

    **Theorem** (the clones of Feldman, McMillan and Talwar 2021, 2023). With E = e^epsilon, what is shuffled is
    (a, delta)-DP for every a >= 0, where

        delta = E max(0, (E - e^a) A - (E e^a - 1) B)/n

    and A and B count the people among n of whom each independently falls into A with the probability 1/(E + 1), into B
    with the same probability, and into neither otherwise.

    **Proof.** *Columns.* Let person 1 have x or y. For a report r let u = R(r|x), v = R(r|y). Where u >= v write
    u = E s + w and v = s + w, else u = s + w and v = E s + w, with s = |u - v|/(E - 1) and w >= 0. So R(x) draws from
    S0 with the weight E p, from S1 with p and from S2 with 1 - p - E p, and R(y) the same with S0 and S1 exchanged. Any
    other person's R(r|z) is at least max(u, v)/E = s + w/E: they draw from S0 with p, from S1 with p, from S2 with
    (1 - p - E p)/E, and otherwise in a way of their own.

    *Counts.* Show the adversary which draws were of the last kind and who made them; of the rest the numbers n0, n1, n2
    are all that a shuffle tells. If all n people drew as the others do, their distribution would be multinomial; the
    distribution under x is that one times (E n0 + n1 + E n2)/n, under y times (n0 + E n1 + E n2)/n. So delta(a) = E
    max(0, sum of W)/n, where each person's W is E - e^a with the probability p, 1 - E e^a with p, E - E e^a with (1 - p
    - E p)/E, else 0.

    *The worst p.* The mean of W is 1 - e^a for every p. With t = p (E + 1), W is a mixture: with the weight t the W of
    p = 1/(E + 1), and with 1 - t a V that is -E (e^a - 1) with the probability 1/E, else 0. V is below the former in
    convex order: the means agree, V <= 0, and for 0 <= c <= E (e^a - 1) E max(0, V + c) is c (1 - 1/E), at most c E/(E
    + 1), which the other has from its part that is not B. Convex order passes to mixtures and to sums of independent
    terms, and max(0, .) is convex. So t = 1 is the worst, and delta grows with t.

    *A known variation.* p (E - 1) is the total variation between R(x) and R(y). Where it is known to be at most
    `variation`, p is, and W has three values. The number of people with the last is at least some k except with a tiny
    probability, so that delta is at most E max(0, (E - e^a) A - (E e^a - 1) B - k E (e^a - 1))/n and E - e^a times that
    probability. The smaller of this and the theorem's is taken.

    *Below.* `crowds` are pairs of crowds that a known protocol has (`of` finds them); without them the lower bound is
    that of some randomizers of this epsilon and variation. `shuffle_lower_bounds.py` has the theorems.
    """

    epsilon: Fraction
    users: int
    variation: Fraction | None = None
    crowds: tuple[LowerBoundPair, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        local, users = check_epsilon(self.epsilon), to_integer("users", self.users, least=1)
        if local > _MOST_EPSILON:
            raise ParameterError("epsilon", f"must be at most {_MOST_EPSILON}", fix="epsilon=4, say")
        if users > _MOST_USERS:
            raise ParameterError("users", f"must be at most {_MOST_USERS:,}", fix="a smaller crowd hides no better")
        object.__setattr__(self, "epsilon", local)
        object.__setattr__(self, "users", users)
        if self.variation is not None:
            object.__setattr__(self, "variation", check_probability("variation", self.variation))

    @classmethod
    def of(cls, protocol: LocalProtocol, users: int) -> ShuffleAmplification:
        """One round of shuffled reports of this protocol, of values or of numbers: epsilon is that of one report.

        Its variation makes the upper bound smaller, and the lower one is of crowds of the protocol itself
        (`shuffle_lower_bounds.py` has the theorems). Where reports are drawn from what is kept, as in `Rappor` and
        `MemoizedRandomizer`, rounds do not compose, since the same is in all of them. A lifetime then costs at most
        what it costs without a shuffler.
        """
        crowd = cls(local_epsilon(protocol), users)
        return cls(crowd.epsilon, crowd.users, max_total_variation(protocol), pairs_of_protocol(protocol))

    @classmethod
    def needed(cls, epsilon: Any, delta: Any, users: int) -> ShuffleAmplification:
        """The least noise that people need: the largest local epsilon whose shuffle is (epsilon, delta)-DP."""
        target, lost = check_epsilon(epsilon), _delta(delta)
        low, high = target, Fraction(_MOST_EPSILON)
        if target > high:
            raise ParameterError("epsilon", f"must be at most {_MOST_EPSILON}", fix="epsilon=1, say")
        while high - low > low * Fraction(_CLOSE):
            middle = Fraction(math.floor((low + high) / 2 * _PARTS), _PARTS)
            fits = cls(middle, users)._delta_at(float(target), True, lost * 1e-6) <= lost
            low, high = (middle, high) if fits else (low, middle)
        return cls(low, users)

    def delta(self, epsilon: Any) -> float:
        """A delta that is enough at this epsilon, whatever the randomizer is: the theorem, rounded up."""
        return self._delta_at(_epsilon(epsilon), True, 1e-18)

    def least_delta(self, epsilon: Any) -> float:
        """A delta that no smaller one can replace, rounded down: the largest of a few pairs of crowds.

        They are the protocol's own, if it is known; else those of some randomizers of this epsilon and this variation.
        """
        return self._delta_at(_epsilon(epsilon), False, 1e-18)

    def bounds(self, delta: Any) -> tuple[float, float]:
        """Two numbers that hold between them the epsilon of the protocol, or of the worst randomizer, at this delta."""
        lost = _delta(delta)
        return self._epsilon_at(lost, False), self._epsilon_at(lost, True)

    def loss(self, delta: Any) -> ApproximateDp:
        """What one shuffled round costs each person; rounds that are drawn anew compose as any others do."""
        lost = _delta(delta)
        return ApproximateDp(Fraction(self._epsilon_at(lost, True)), to_rational("delta", delta))

    def _epsilon_at(self, lost: float, upper: bool) -> float:
        """The least epsilon with a delta of at most `lost`, rounded up; or one with a larger delta, rounded down."""
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
            crowds = worst_case_pairs(local, part) if self.crowds is None else self.crowds
            return max(crowd.delta(n, local, a, cut) for crowd in crowds)
        large = math.exp(local)
        plus, minus = math.exp(a) * math.expm1(local - a), math.expm1(local + a)
        found = expected_positive_part(n, 2 / (large + 1), plus, minus, cut=cut)
        if part < 1:
            sure = _binomial_lower_bound(n, (1 - part) / large, cut) * large * math.expm1(a)
            known = expected_positive_part(n, 2 * part / (large + 1), plus, minus, shift=sure, cut=cut) + plus * cut
            found = min(found, known)
        return min(1.0, found)


def _binomial_lower_bound(users: int, chance: float, miss: float) -> int:
    """How many of so many coins are heads at least, except with the probability `miss`, by Bernstein's inequality."""
    log = math.log(1 / miss)
    reach = log / 3 + math.sqrt((log / 3) ** 2 + 2 * log * users * chance * (1 - chance))
    return max(0, math.floor(users * chance - reach))


def _epsilon(value: Any) -> float:
    return float(to_rational_between("epsilon", value, Fraction(0), Fraction(10**6)))


def _delta(value: Any) -> float:
    lost = float(to_rational("delta", value))
    if not _LEAST_DELTA <= lost < 1:
        raise ParameterError("delta", f"must be at least {_LEAST_DELTA:g} and below one", fix="delta=1e-6, say")
    return lost
