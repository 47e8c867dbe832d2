"""The exponential mechanism: one of a public list, better ones more likely."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.arithmetic import Number, certified_floor, to_integer, to_interval, working_precision
from tacit.mechanisms.selection import SelectionMechanism
from tacit.mechanisms.validation import check_probability, check_scores
from tacit.privacy.loss import BoundedRange
from tacit.sampling.bits import Bits
from tacit.sampling.exponential_weights import choose
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, init=False)
class Exponential(SelectionMechanism):
    """Releases index r with P(r) proportional to exp(factor u(r)), where u(r) is the integer score of r.

    `factor` is epsilon/(2 sensitivity), and epsilon/sensitivity where `monotone`.

    **Theorem.** If between neighbors every score moves by at most `sensitivity` (and, where `monotone`, all of them in
    the same direction), the privacy loss lies in an interval of length `epsilon` that holds 0. So the release is
    epsilon-DP, and (epsilon^2/8)-zCDP.

    **Proof.** With scores u and v, the loss of r is factor (u(r) - v(r)) - ln(Z_u/Z_v), Z the sum of the weights. The
    second term does not depend on r; the first lies in an interval of length factor 2 sensitivity, and of length
    factor sensitivity where all u(r) - v(r) have one sign. Both distributions add up to one, so the loss is not of one
    sign only. (Durfee and Rogers 2019; the zCDP of a bounded range: Cesar and Rogers 2021.)

    Counts are monotone under add-remove. Under replace they are not: one may rise while another falls.

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
    PermuteAndFlip : At most the same error at the same epsilon; composes worse under zCDP.
    NoisyMax : The same choice by adding noise to the scores.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> mechanism = Exponential.calibrated(epsilon=1, sensitivity=1)
    >>> mechanism.release([0, 2, 40], ReplayBits(b"example"))
    2
    >>> [round(float(probability), 4) for probability in mechanism.law([0, 2, 4])]
    [0.09, 0.2447, 0.6652]
    """

    def loss(self) -> BoundedRange:
        """Return the privacy loss of one choice.

        Returns
        -------
        BoundedRange
            What `tacit.accounting` composes: a bounded range costs a quarter of the zCDP of any epsilon-DP release.
        """
        return BoundedRange(self.epsilon)

    def release(self, scores: Iterable[int], bits: Bits | None = None) -> int:
        """Release the index of one choice, and nothing about its score.

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
        return choose(check_scores(scores), self.factor, bits)

    def law(self, scores: Iterable[int], digits: int = 128) -> list[arb]:
        """Return the probability of each index, which depends on the private scores.

        Parameters
        ----------
        scores : iterable of int
            The score of each choice, higher is better; at least one, each of at most 512 bits. The list of choices is
            public, the scores are private.
        digits : int, default 128
            Working precision in bits; more of it narrows the intervals.

        Returns
        -------
        list of arb
            P(r) for each index r, as certified intervals.
        """
        values = check_scores(scores)
        with working_precision(digits):
            weights = _weights(values, self.factor)
            total = sum(weights[1:], weights[0])
            return [weight / total for weight in weights]

    def error(self, choices: int, confidence: Number) -> int:
        """Return the least w such that the score of the released choice is within w of the best, whatever the scores.

        **Proof.** Let B be the weights of all that fall short by a or more, relative to the best. They are chosen with
        probability B/(A + B), where A >= 1 and B <= (n - 1) exp(-factor a), and equality is possible. That is at
        most beta = 1 - confidence just where factor a >= ln((n - 1)(1 - beta)/beta). In particular
        a = (ln n + t)/factor falls short with probability at most e^-t.

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

        Examples
        --------
        >>> Exponential(epsilon=1).error(choices=3, confidence=0.95)
        7
        """
        miss = 1 - check_probability("confidence", confidence)
        odds = (to_integer("choices", choices, least=1) - 1) * (1 - miss) / miss
        # The logarithm of a rational other than 1 is irrational, so the floor is certain at some precision.
        return certified_floor(lambda: to_interval(odds).log() / to_interval(self.factor)) if odds > 1 else 0


def _weights(scores: Sequence[int], factor: Fraction) -> list[arb]:
    """exp(factor (score - best)) as intervals at the working precision."""
    best, step = max(scores), to_interval(factor)
    return [(step * (score - best)).exp() for score in scores]
