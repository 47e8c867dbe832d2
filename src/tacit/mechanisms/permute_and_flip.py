"""Permute-and-flip: one of a public list, never worse than the exponential mechanism at the same epsilon."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from tacit.arithmetic import Number, to_integer, to_interval, working_precision
from tacit.mechanisms.exponential import Exponential
from tacit.mechanisms.selection import SelectionMechanism
from tacit.mechanisms.validation import check_probability, check_scores
from tacit.privacy.loss import PureDp
from tacit.sampling.bernoulli import draw_exp_array
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system
from tacit.sampling.uniform import draw_below

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, init=False)
class PermuteAndFlip(SelectionMechanism):
    """Goes through the list in random order and releases the first index whose coin falls heads.

    The coin of index r with score u(r) falls heads with probability w(r) = exp(factor (u(r) - best)); that of the best
    always does.
    `factor` is epsilon/(2 sensitivity), and epsilon/sensitivity where `monotone`.

    **Theorem.** If between neighbors every score moves by at most `sensitivity` (and, where `monotone`, all of them in
    the same direction), the release is epsilon-DP.

    **Proof.** Order the list by independent uniform times. At time s each other j has come and fallen heads with
    probability s w(j), so P(r) is the integral of w(r) prod_{j != r} (1 - s w(j)) over s from 0 to 1. With
    s = exp(-factor (x - best)) that is the probability that u(r) + X(r) is the largest of all u(j) + X(j), where the
    X are independent with density factor exp(-factor x) on x > 0. Fix the noise of the others and let M be the largest
    of their u(j) + X(j): r wins if X(r) > M - u(r). Between neighbors M - u(r) grows by at most 2 sensitivity, and by
    at most `sensitivity` where all scores move one way; and P(X > m + d) >= exp(-factor d) P(X > m).
    (McKenna and Sheldon 2020; the noise is from Ding, Kifer, Steinke and others 2021.)

    The range of the loss is not bounded by epsilon, so its zCDP cost is that of any epsilon-DP release.

    Parameters
    ----------
    epsilon : number
        Privacy loss of one choice, above 0 and at most 2^64. The error is proportional to 1/epsilon.
    sensitivity : int, default 1
        The most that a score moves between neighbors, at least 1.
    monotone : bool, default False
        Whether all scores move in the same direction between neighbors, as counts do under add-remove and not under
        replace. It halves the error; where it is not true, the choice costs up to twice epsilon.

    Raises
    ------
    ParameterError
        If epsilon or the sensitivity is out of range, or `monotone` is not a bool.

    See Also
    --------
    Exponential : A larger error, and a quarter of the zCDP cost: better where many choices are made.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> mechanism = PermuteAndFlip.calibrated(epsilon=1, sensitivity=1)
    >>> mechanism.release([0, 2, 40], ReplayBits(b"example"))
    2
    >>> [round(float(probability), 4) for probability in mechanism.law([0, 2, 4])]
    [0.0594, 0.1756, 0.765]
    """

    def loss(self) -> PureDp:
        """Return the privacy loss of one choice.

        Returns
        -------
        PureDp
            What `tacit.accounting` composes.
        """
        return PureDp(self.epsilon)

    def release(self, scores: Iterable[int], bits: Bits | None = None) -> int:
        """Release the index of one choice, and nothing about its score.

        All coins are flipped, and one of the heads is taken at random: the first of them in a random order. So the work
        does not depend on which one it is.

        Parameters
        ----------
        scores : iterable of int
            The score of each choice, higher is better; at least one, each of at most 512 bits. The list of choices is
            public, the scores are private.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        int
            An index of `scores`, from 0 on.

        Raises
        ------
        ParameterError
            If there is no score, or one is not an integer or has more than 512 bits.
        """
        bits = bits_or_system(bits)
        values = check_scores(scores)
        best, factor = max(values), self.factor
        # Rounding to a double errs by less than 2^-46 up to 64, and beyond that no coin comes near.
        lacks = np.array([factor.numerator * (best - score) / factor.denominator for score in values])
        heads = np.flatnonzero(draw_exp_array(lacks, 2.0**-40, lambda i: factor * (best - values[i]), bits))
        return int(heads[draw_below(len(heads), bits)])

    def law(self, scores: Iterable[int], digits: int = 128) -> list[arb]:
        """Return the probability of each index, which depends on the private scores; in quadratic time.

        The integral of a polynomial in s: prod_j (1 - s w(j)) is divided by 1 - s w(r) and integrated term by term. Its
        coefficients reach 2^n and cancel, so the working precision has 3n bits more than `digits`.

        Parameters
        ----------
        scores : iterable of int
            The score of each choice, higher is better; at least one, each of at most 512 bits. The list of choices is
            public, the scores are private.
        digits : int, default 128
            Precision in bits; more of it narrows the intervals.

        Returns
        -------
        list of arb
            P(r) for each index r, as certified intervals.
        """
        values = check_scores(scores)
        best = max(values)
        with working_precision(digits + 3 * len(values)):
            weights = [(to_interval(self.factor) * (score - best)).exp() for score in values]
            whole = [weights[0] * 0 + 1]
            for weight in weights:
                shifted = [weight * 0, *(weight * coefficient for coefficient in whole)]
                whole = [a - b for a, b in zip([*whole, weight * 0], shifted, strict=True)]
            return [weight * _integral_without(whole, weight) for weight in weights]

    def error(self, choices: int, confidence: Number) -> int:
        """Return the least w such that the score of the released choice is within w of the best, whatever the scores.

        **Proof.** In terms of the noise, "the winner falls short by a or more" only becomes more likely when one that
        falls short is raised to best - a, or one that does not (other than the best) is lowered to it. So n - 1 at
        best - a are the worst case: with w = exp(-factor a) the best one wins with probability
        (1 - (1 - w)^n)/(n w), which grows with a.

        Parameters
        ----------
        choices : int
            How many choices there are, at least 1.
        confidence : number
            Probability that the released one is within w, strictly between 0 and 1.

        Returns
        -------
        int
            The shortfall w, in steps of the score. It does not depend on the data.
        """
        hit, count = check_probability("confidence", confidence), to_integer("choices", choices, least=1)
        low, high = 0, Exponential(self.epsilon, self.sensitivity, self.monotone).error(count, hit)
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._holds(count, middle + 1, hit) else (middle + 1, high)
        return low

    def _holds(self, count: int, gap: int, hit: Fraction) -> bool:
        """Whether the best of `count` wins with probability `hit` where all others are at `gap` below it."""
        with working_precision(256 + 2 * count.bit_length() + hit.denominator.bit_length()):
            weight = (to_interval(self.factor) * -gap).exp()
            return bool((1 - (1 - weight) ** count) >= to_interval(hit) * count * weight)


def _integral_without(whole: list[arb], weight: arb) -> arb:
    """The integral over s from 0 to 1 of the polynomial divided by 1 - s weight, which divides it."""
    coefficient = whole[0]
    found = coefficient
    for power, next_one in enumerate(whole[1:-1], start=2):
        coefficient = next_one + weight * coefficient
        found += coefficient / power
    return found
