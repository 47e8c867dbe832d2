"""The names of the k best, in order."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING

from tacit.arithmetic import Number, to_integer, working_precision
from tacit.errors import ParameterError
from tacit.frozen import set_fields
from tacit.mechanisms.exponential import Exponential
from tacit.mechanisms.validation import check_epsilon, check_flag, check_probability, check_scores
from tacit.privacy.loss import BoundedRange, Repeat
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True, init=False)
class TopK:
    """Releases the indices of `count` high scores, in the order in which they were chosen.

    Each is chosen by the exponential mechanism with epsilon/count, among those not yet chosen.

    **Theorem.** If between neighbors every score moves by at most `sensitivity` (and, where `monotone`, all of them in
    the same direction), the release is epsilon-DP, and (epsilon^2 / (8 count))-zCDP.

    **Proof.** Given those chosen before, a choice is the exponential mechanism over a list that is the same for both
    neighbors, so its loss has range epsilon/count. Pure epsilons and zCDP both add up over adaptive choices.

    **Why peeling.** It is the same distribution as adding Gumbel noise to all scores once and taking the `count`
    largest (Durfee and Rogers 2019). Laplace noise, added once or anew for each choice, needs the same factor `count`
    for epsilon-DP, and has no bounded range: at equal epsilon its zCDP cost is about four times as much.

    Parameters
    ----------
    epsilon : number
        Privacy loss of all the choices together, above 0 and at most 2^64.
    count : int
        How many indices to release, at least 1. The error grows about linearly with it.
    sensitivity : int, default 1
        The most that a score moves between neighbors, at least 1.
    monotone : bool, default False
        Whether all scores move in the same direction between neighbors, as counts do under add-remove. It halves the
        error.

    Raises
    ------
    ParameterError
        If a parameter is out of range or of another type.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> best = TopK.calibrated(epsilon=2, count=2, sensitivity=1, monotone=True)
    >>> best.release([0, 90, 40, 10], ReplayBits(b"example"))
    [1, 2]
    >>> best.error(4, 0.95)
    4
    """

    epsilon: Fraction
    count: int
    sensitivity: int = 1
    monotone: bool = False

    def __init__(self, epsilon: Number, count: int, sensitivity: int = 1, monotone: bool = False) -> None:
        set_fields(
            self,
            epsilon=check_epsilon(epsilon),
            count=to_integer("count", count, least=1),
            sensitivity=to_integer("sensitivity", sensitivity, least=1),
            monotone=check_flag("monotone", monotone),
        )

    @classmethod
    def calibrated(cls, epsilon: Number, count: int, sensitivity: int, monotone: bool = False) -> TopK:
        """Return the mechanism with the least error whose choices are epsilon-DP together.

        Parameters
        ----------
        epsilon : number
            Privacy loss of all the choices together, above 0 and at most 2^64.
        count : int
            How many indices to release, at least 1.
        sensitivity : int
            The most that a score moves between neighbors, at least 0. At 0 the scores are constants, from which the
            choices are those of sensitivity 1.
        monotone : bool, default False
            Whether all scores move in the same direction between neighbors.

        Returns
        -------
        TopK
            The calibrated mechanism.
        """
        return cls(epsilon, count, max(to_integer("sensitivity", sensitivity, least=0), 1), monotone)

    @property
    def each(self) -> Exponential:
        """The mechanism of one choice."""
        return Exponential(self.epsilon / self.count, self.sensitivity, self.monotone)

    def loss(self) -> Repeat:
        """Return the privacy loss of all the choices together.

        Returns
        -------
        Repeat
            `count` times a bounded range of epsilon/count: what `tacit.accounting` composes.
        """
        return Repeat(BoundedRange(self.epsilon / self.count), self.count)

    def release(self, scores: Iterable[int], bits: Bits | None = None) -> list[int]:
        """Release the indices of the choices, and nothing about their scores.

        Parameters
        ----------
        scores : iterable of int
            The score of each choice, higher is better; at least `count`, each of at most 512 bits. The list of choices
            is public, the scores are private.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        list of int
            `count` different indices of `scores`, the first choice first.

        Raises
        ------
        ParameterError
            If there are fewer than `count` scores, or one is not an integer or has more than 512 bits.
        """
        bits = bits_or_system(bits)
        values = self._enough(scores)
        left, chosen, each = list(range(len(values))), [], self.each
        for _ in range(self.count):
            chosen.append(left.pop(each.release([values[index] for index in left], bits)))
        return chosen

    def law(self, scores: Iterable[int], digits: int = 128) -> dict[tuple[int, ...], arb]:
        """Return the probability of every ordered list of indices, which depends on the scores; for few of them.

        Parameters
        ----------
        scores : iterable of int
            The score of each choice, higher is better; at least `count`, each of at most 512 bits. The list of choices
            is public, the scores are private.
        digits : int, default 128
            Working precision in bits; more of it narrows the intervals.

        Returns
        -------
        dict of tuple of int to arb
            The probability of each list that `release` may return, as certified intervals.
        """
        values = self._enough(scores)
        return {order: self._chance(order, values, digits) for order in permutations(range(len(values)), self.count)}

    def error(self, choices: int, confidence: Number) -> int:
        """Return a w such that the i-th released score is within w of the i-th best, for every i, whatever the scores.

        The best of those left at the i-th choice is at least the i-th best of all, and each choice fails with
        probability at most (1 - confidence)/count.

        Parameters
        ----------
        choices : int
            How many choices there are, at least `count`.
        confidence : number
            Probability that all are within w, strictly between 0 and 1.

        Returns
        -------
        int
            The shortfall w, in steps of the score. It does not depend on the data.

        Raises
        ------
        ParameterError
            If there are fewer than `count` choices, or the confidence is out of range.
        """
        miss = (1 - check_probability("confidence", confidence)) / self.count
        if to_integer("choices", choices, least=1) < self.count:
            raise ParameterError("choices", "there are fewer than count", fix=f"choose from at least {self.count}")
        return self.each.error(choices, 1 - miss)

    def _enough(self, scores: Iterable[int]) -> list[int]:
        values = check_scores(scores)
        if len(values) < self.count:
            raise ParameterError("scores", "there are fewer than count", fix=f"give at least {self.count} scores")
        return values

    def _chance(self, order: tuple[int, ...], values: list[int], digits: int) -> arb:
        from flint import arb

        left, found = list(range(len(values))), arb(1)
        with working_precision(digits):
            for index in order:
                found *= self.each.law([values[i] for i in left], digits)[left.index(index)]
                left.remove(index)
        return found
