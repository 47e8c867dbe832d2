"""The exponential mechanism: one of a public list, better ones more likely.

>>> from tacit.sampling.bits import ReplayBits
>>> pick = Exponential.calibrated(epsilon=1, sensitivity=1)
>>> [round(float(check_probability), 4) for check_probability in pick.law([0, 2, 4])]
[0.09, 0.2447, 0.6652]
>>> pick.release([0, 2, 4], ReplayBits(b"example")) in (0, 1, 2)
True
>>> pick.error(3, 0.95)
7
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.arithmetic import certified_floor, to_integer, to_interval, working_precision
from tacit.mechanisms.selection import SelectionMechanism
from tacit.mechanisms.validation import check_probability, check_scores
from tacit.privacy.loss import BoundedRange
from tacit.sampling.bits import Bits
from tacit.sampling.exponential_weights import choose
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb


@dataclass(frozen=True)
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
    """

    def loss(self) -> BoundedRange:
        """What one choice costs."""
        return BoundedRange(self.epsilon)

    def release(self, scores: Sequence[int], bits: Bits | None = None) -> int:
        """The index of the choice, and nothing about its score."""
        bits = bits_or_system(bits)
        return choose(check_scores(scores), self.factor, bits)

    def law(self, scores: Sequence[int], digits: int = 128) -> list[arb]:
        """P(r) for each index, as certified intervals computed with so many bits."""
        values = check_scores(scores)
        with working_precision(digits):
            weights = _weights(values, self.factor)
            total = sum(weights[1:], weights[0])
            return [weight / total for weight in weights]

    def error(self, choices: int, confidence: Any) -> int:
        """The least w such that, of so many choices, one with a score within w of the best is released with at least
        this probability, whatever the scores are.

        **Proof.** Let B be the weights of all that fall short by a or more, relative to the best. They are chosen with
        probability B/(A + B), where A >= 1 and B <= (n - 1) exp(-factor a), and equality is possible. That is at
        most beta = 1 - confidence just where factor a >= ln((n - 1)(1 - beta)/beta). In particular
        a = (ln n + t)/factor falls short with probability at most e^-t.
        """
        miss = 1 - check_probability("confidence", confidence)
        odds = (to_integer("choices", choices, least=1) - 1) * (1 - miss) / miss
        # The logarithm of a rational other than 1 is irrational, so the floor is certain at some precision.
        return certified_floor(lambda: to_interval(odds).log() / to_interval(self.factor)) if odds > 1 else 0


def _weights(scores: Sequence[int], factor: Fraction) -> list[arb]:
    """exp(factor (score - best)) as intervals at the working precision."""
    best, step = max(scores), to_interval(factor)
    return [(step * (score - best)).exp() for score in scores]
