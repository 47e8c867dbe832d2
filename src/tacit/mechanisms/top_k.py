"""The names of the k best, in order.

>>> from tacit.sampling.bits import ReplayBits
>>> best = TopK.calibrated(epsilon=2, count=2, sensitivity=1, monotone=True)
>>> best.release([0, 90, 40, 10], ReplayBits(b"example"))
[1, 2]
>>> best.error(4, Fraction(95, 100))
4
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import permutations
from typing import TYPE_CHECKING, Any

from tacit.arithmetic import to_integer, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.exponential import Exponential
from tacit.mechanisms.validation import check_epsilon, check_flag, check_probability, check_scores
from tacit.privacy.loss import BoundedRange, Repeat
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
class TopK:
    """Chooses `count` times by the exponential mechanism with epsilon/count, each time among those not yet chosen, and
    releases the indices in the order in which they were chosen.

    **Theorem.** If between neighbors every score moves by at most `sensitivity` (and, where `monotone`, all of them in
    the same direction), the release is epsilon-DP, and (epsilon^2 / (8 count))-zCDP.

    **Proof.** Given those chosen before, a choice is the exponential mechanism over a list that is the same for both
    neighbors, so its loss has range epsilon/count. Pure epsilons and zCDP both add up over adaptive choices.

    **Why peeling.** It is the same distribution as adding Gumbel noise to all scores once and taking the `count`
    largest (Durfee and Rogers 2019). Laplace noise, added once or anew for each choice, needs the same factor `count`
    for epsilon-DP, and has no bounded range: at equal epsilon its zCDP cost is about four times as much.
    """

    epsilon: Fraction
    count: int
    sensitivity: int = 1
    monotone: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", check_epsilon(self.epsilon))
        object.__setattr__(self, "count", to_integer("count", self.count, least=1))
        object.__setattr__(self, "sensitivity", to_integer("sensitivity", self.sensitivity, least=1))
        object.__setattr__(self, "monotone", check_flag("monotone", self.monotone))

    @classmethod
    def calibrated(cls, epsilon: Any, count: int, sensitivity: int, monotone: bool = False) -> TopK:
        """The sharpest choices that are epsilon-DP together, for scores that move by at most `sensitivity`.

        Where nothing can move, the choices are those of sensitivity one.
        """
        return cls(epsilon, count, max(to_integer("sensitivity", sensitivity, least=0), 1), monotone)

    @property
    def each(self) -> Exponential:
        """The mechanism of one choice."""
        return Exponential(self.epsilon / self.count, self.sensitivity, self.monotone)

    def loss(self) -> Repeat:
        """What all the choices cost together."""
        return Repeat(BoundedRange(self.epsilon / self.count), self.count)

    def release(self, scores: Sequence[int], bits: Bits | None = None) -> list[int]:
        """The indices, the first choice first, and nothing about their scores."""
        bits = bits_or_system(bits)
        values = self._enough(scores)
        left, chosen, each = list(range(len(values))), [], self.each
        for _ in range(self.count):
            chosen.append(left.pop(each.release([values[index] for index in left], bits)))
        return chosen

    def law(self, scores: Sequence[int], digits: int = 128) -> dict[tuple[int, ...], arb]:
        """The probability of every ordered list of indices, as certified intervals; for few scores."""
        values = self._enough(scores)
        return {order: self._chance(order, values, digits) for order in permutations(range(len(values)), self.count)}

    def error(self, choices: int, confidence: Any) -> int:
        """A w such that, with at least this probability, for every i the i-th name released has a score within w of the
        i-th best, whatever the scores are.

        The best of those left at the i-th choice is at least the i-th best of all, and each choice fails with
        probability at most (1 - confidence)/count.
        """
        miss = (1 - check_probability("confidence", confidence)) / self.count
        if to_integer("choices", choices, least=1) < self.count:
            raise ParameterError("choices", "there are fewer than count", fix=f"choose from at least {self.count}")
        return self.each.error(choices, 1 - miss)

    def _enough(self, scores: Sequence[int]) -> list[int]:
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
