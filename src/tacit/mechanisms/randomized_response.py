"""Randomized response: each person answers for themselves, and may always deny it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import (
    Number,
    certified_floor,
    to_integer,
    to_integers,
    to_interval,
    to_rational,
    working_precision,
)
from tacit.errors import ParameterError
from tacit.frozen import set_fields
from tacit.mechanisms.additive import IntegerArray
from tacit.mechanisms.validation import check_epsilon, check_probability
from tacit.privacy.loss import PureDp
from tacit.sampling import bernoulli
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system
from tacit.sampling.uniform import draw_array_below, draw_below

if TYPE_CHECKING:
    from flint import arb

_WHOLE = 2**64
_STEPS = 16  # halvings of an interval's end, from Hoeffding's bound down
Answers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class ProportionEstimate:
    """An estimated share of people.

    Attributes
    ----------
    value : float
        The estimate. It is unbiased, so it may lie outside [0, 1].
    deviation : float
        Its standard deviation.
    low, high : float
        Ends of its confidence interval, within [0, 1].
    """

    value: float
    deviation: float
    low: float
    high: float


@dataclass(frozen=True, init=False)
class RandomizedResponse:
    """Answers the true one of `choices` values with probability q, otherwise any of them, each equally likely.

    Either `coin` is q, or `epsilon` is given and q = (e^epsilon - 1)/(e^epsilon - 1 + choices), which for two values
    is the truth with probability e^epsilon/(1 + e^epsilon).

    **Theorem.** The release is epsilon-DP, for any two values a person may have, with
    epsilon = ln(1 + choices q/(1 - q)) and no less; for two values that is ln((1 + q)/(1 - q)).

    **Proof.** The true value is answered with probability q + (1 - q)/choices, any other with (1 - q)/choices: each
    column of the distribution holds the first once and the second elsewhere, and their quotient is 1 + choices q/(1 -
    q).

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of one answer, above 0 and at most 2^64. Exactly one of `epsilon` and `coin` is given.
    choices : int, default 2
        How many values there are to answer, from 2 to 2^62; they are numbered from 0. More of them make the true one
        rarer at the same epsilon.
    coin : number, optional
        The probability q, strictly between 0 and 1.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or both or none of `epsilon` and `coin` are given.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> mechanism = RandomizedResponse(coin=0.5)
    >>> mechanism.law()
    [[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]]
    >>> round(float(mechanism.loss().epsilon), 6)
    1.098612
    >>> answers = mechanism.release([1] * 300 + [0] * 700, ReplayBits(b"example"))
    >>> found = mechanism.estimate(answers, confidence=0.95)
    >>> found.low < 0.3 < found.high
    True
    """

    epsilon: Fraction | None = None
    choices: int = 2
    coin: Fraction | None = None

    def __init__(self, epsilon: Number | None = None, choices: int = 2, coin: Number | None = None) -> None:
        known = to_integer("choices", choices, least=1)
        if not 2 <= known <= 2**62:
            raise ParameterError("choices", "must be at least 2 and at most 2^62", fix="choices=2, say")
        if (epsilon is None) == (coin is None):
            raise ParameterError("epsilon", "give epsilon or coin, and not both", fix="epsilon=1, say")
        set_fields(
            self,
            epsilon=None if epsilon is None else check_epsilon(epsilon),
            choices=known,
            coin=None if coin is None else check_probability("coin", coin),
        )

    @classmethod
    def calibrated(cls, epsilon: Number, choices: int = 2) -> RandomizedResponse:
        """Return the mechanism that answers the true value most often and is epsilon-DP.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one answer, above 0 and at most 2^64.
        choices : int, default 2
            How many values there are to answer, from 2 to 2^62.

        Returns
        -------
        RandomizedResponse
            The calibrated mechanism.
        """
        return cls(check_epsilon(epsilon), choices)

    def loss(self) -> PureDp:
        """Return the privacy loss of one answer, to the one who gives it.

        Returns
        -------
        PureDp
            What `tacit.accounting` composes; for a coin, rounded up by at most 2^-64.
        """
        if self.coin is None:
            assert self.epsilon is not None
            return PureDp(self.epsilon)
        odds = 1 + self.choices * self.coin / (1 - self.coin)
        return PureDp(Fraction(certified_floor(lambda: to_interval(odds).log() * _WHOLE) + 1, _WHOLE))

    @overload
    def release(self, values: int, bits: Bits | None = None) -> int: ...
    @overload
    def release(self, values: Sequence[int] | IntegerArray, bits: Bits | None = None) -> Answers: ...
    def release(self, values: int | Sequence[int] | IntegerArray, bits: Bits | None = None) -> int | Answers:
        """Release the answer of one person, or of each of many.

        A lie is U < P(lie) for U uniform on (0, 1): the first 64 bits of U against the certified floor of 2^64 P(lie).
        Where they are equal, interval arithmetic decides with more bits. So the distribution is exact.

        Parameters
        ----------
        values : int, sequence of int, or integer array of one dimension
            The true value of each person, from 0 to choices - 1.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        int or array of int64
            An answer for each value, from 0 to choices - 1.

        Raises
        ------
        ParameterError
            If a value is not an integer from 0 to choices - 1.
        """
        bits = bits_or_system(bits)
        if hasattr(values, "__index__") and not hasattr(values, "__len__"):
            value = self._check_choice("values", values)
            lie = bernoulli.draw_certified(self._lie, bits)
            other = 1 + (draw_below(self.choices - 1, bits) if self.choices > 2 else 0)
            return (value + other * lie) % self.choices
        known = self._all_known("values", values)
        offset = bernoulli.draw_array_certified(self._lie, len(known), bits).astype(np.int64)
        if self.choices > 2:
            offset *= 1 + draw_array_below(self.choices - 1, len(known), bits)
        known += offset
        return np.subtract(known, self.choices, out=known, where=known >= self.choices)

    def law(self, digits: int = 128) -> list[list[Fraction]] | list[list[arb]]:
        """Return the transition matrix, P[answer | value].

        Parameters
        ----------
        digits : int, default 128
            Working precision in bits; more of it narrows the intervals.

        Returns
        -------
        list of lists
            A row for each value and a column for each answer: exact rationals for a coin, certified intervals
            otherwise. `TransitionMatrix` of `tacit.accounting` takes the rationals.
        """
        with working_precision(digits):
            other = self._exact_lie() / (self.choices - 1)
            truth = 1 - self._exact_lie()
            return [[truth if x == y else other for y in range(self.choices)] for x in range(self.choices)]

    def posterior(self, prior: Number, digits: int = 128) -> Fraction | arb:
        """Return P(the value is v, given the answer v): at most e^epsilon prior.

        Parameters
        ----------
        prior : number
            P(the value is v) before the answer is seen, strictly between 0 and 1.
        digits : int, default 128
            Working precision in bits; more of it narrows the intervals.

        Returns
        -------
        Fraction or arb
            An exact rational for a coin, a certified interval otherwise.
        """
        known = check_probability("prior", prior)
        with working_precision(digits):
            lie = self._exact_lie()
            part = known if self.coin is not None else to_interval(known)
            found: Fraction | arb = (1 - lie) * part / ((1 - lie) * part + lie / (self.choices - 1) * (1 - part))
            return found

    def estimate(self, answers: Sequence[int] | IntegerArray, confidence: Number, value: int = 1) -> ProportionEstimate:
        """Estimate the share of people whose value is `value`: (f - (1 - q)/choices)/q, f the share of such answers.

        **Unbiased**: E f = r q + (1 - q)/choices, where r is the true share.

        **Interval**: Clopper and Pearson's for E f, carried over. If answerers are drawn at random, the number of such
        answers is binomial. If they are fixed, it is a sum of coins with different probabilities, whose tails beyond
        the mean by one or more are below the binomial's (Hoeffding 1956). The ends are kept at least one answer away
        from f, so that only such tails are left out. So it covers r with at least the stated confidence either way.

        Parameters
        ----------
        answers : sequence of int, or integer array of one dimension
            The released answers, at least one, each from 0 to choices - 1.
        confidence : number
            Probability that the interval covers the true share, strictly between 0 and 1.
        value : int, default 1
            Whose share is estimated, from 0 to choices - 1.

        Returns
        -------
        ProportionEstimate
            The estimate, its standard deviation and its interval.

        Raises
        ------
        ParameterError
            If there are no answers, or a parameter is out of range.
        """
        miss = 1 - check_probability("confidence", confidence)
        known = self._all_known("answers", answers)
        wanted = self._check_choice("value", value)
        if not len(known):
            raise ParameterError("answers", "there are none", fix="give at least one answer")
        seen, total = int(np.count_nonzero(known == wanted)), len(known)
        ends = _limit(total - seen, total, miss / 2), _limit(seen, total, miss / 2)
        with working_precision(128):
            center, low, high = (
                float(self._share_of(to_interval(x))) for x in (Fraction(seen, total), 1 - ends[0], ends[1])
            )
        clipped = Fraction(min(max(center, 0.0), 1.0))
        return ProportionEstimate(
            center,
            math.sqrt(self.variance(clipped, total)),
            min(max(math.nextafter(low, -math.inf), 0.0), 1.0),
            max(min(math.nextafter(high, math.inf), 1.0), 0.0),
        )

    def variance(self, true_share: Number, total: int) -> float:
        """Return the variance of the estimate of a share.

        For two values it does not depend on the share: e^epsilon/(total (e^epsilon - 1)^2).

        Parameters
        ----------
        true_share : number
            The share of people who have the value, from 0 to 1.
        total : int
            How many people answer, at least 1.

        Returns
        -------
        float
            The variance of `estimate(...).value`, over the randomness of the answers.
        """
        part, count = to_rational("true_share", true_share), to_integer("total", total, least=1)
        if not 0 <= part <= 1:
            raise ParameterError("true_share", "must be between 0 and 1", fix="true_share=0.5, say")
        with working_precision(128):
            lie = _interval(self._exact_lie())
            other = lie / (self.choices - 1)
            spread = to_interval(part) * lie * (1 - lie) + (1 - to_interval(part)) * other * (1 - other)
            return float(spread / (count * _interval(self._exact_q()) ** 2))

    def _share_of(self, answered: arb) -> arb:
        """(f - (1 - q)/choices)/q, at the working precision."""
        return (answered - _interval(self._exact_lie()) / (self.choices - 1)) / _interval(self._exact_q())

    def _exact_q(self) -> Any:
        """q: a rational for a coin, else an interval at the working precision."""
        if self.coin is not None:
            return self.coin
        assert self.epsilon is not None
        minus = to_interval(-self.epsilon)
        return -minus.expm1() / (1 + (self.choices - 1) * minus.exp())

    def _exact_lie(self) -> Any:
        """P(another value than the true one): a rational for a coin, else an interval at the working precision."""
        others = self.choices - 1
        if self.coin is not None:
            return (1 - self.coin) * others / self.choices
        assert self.epsilon is not None
        odds = to_interval(-self.epsilon).exp()
        return others * odds / (1 + others * odds)

    def _lie(self) -> arb:
        """P(lie), as an interval at the working precision."""
        return _interval(self._exact_lie())

    def _check_choice(self, name: str, value: int) -> int:
        found = to_integer(name, value)
        if not 0 <= found < self.choices:
            raise ParameterError(name, f"must be from 0 to {self.choices - 1}", fix="number the values from 0 on")
        return found

    def _all_known(self, name: str, values: int | Iterable[int]) -> Answers:
        if not (isinstance(values, np.ndarray) and values.dtype.kind in "iu" and values.ndim == 1):
            return np.array([self._check_choice(name, value) for value in to_integers(name, values)], dtype=np.int64)
        if len(values):
            self._check_choice(name, values.min())
            self._check_choice(name, values.max())
        return values.astype(np.int64)


def _interval(number: Fraction | arb) -> arb:
    return to_interval(number) if isinstance(number, Fraction) else number


def _limit(seen: int, total: int, miss: Fraction) -> Fraction:
    """A p of at least (seen + 1)/total with P(Binomial(total, p) <= seen) <= miss, close to the least one, or 1.

    By Hoeffding's bound p = seen/total + sqrt(ln(1/miss)/(2 total)) is one; the rest is halving.
    """
    if seen >= total - 1:
        return Fraction(1)
    with working_precision(128):
        reach = certified_floor(lambda: (-to_interval(miss).log() / (2 * total)).sqrt() * _WHOLE) + 1
        low, high = Fraction(seen, total), min(Fraction(seen, total) + Fraction(reach, _WHOLE), Fraction(1))
        for _ in range(_STEPS):
            middle = Fraction(math.ceil((low + high) / 2 * _WHOLE), _WHOLE)
            tail = to_interval(1 - middle).beta_lower(total - seen, seen + 1, regularized=1)
            low, high = (low, middle) if tail <= to_interval(miss) else (middle, high)
        return max(high, Fraction(seen + 1, total))
