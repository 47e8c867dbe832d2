"""Permute-and-flip: one of a public list, never worse than the exponential mechanism at the same epsilon.

>>> from tacit.sampling.bits import ReplayBits
>>> pick = PermuteAndFlip.calibrated(epsilon=1, sensitivity=1)
>>> [round(float(check_probability), 4) for check_probability in pick.law([0, 2, 4])]
[0.0594, 0.1756, 0.765]
>>> pick.release([0, 2, 4], ReplayBits(b"example")) in (0, 1, 2)
True
>>> pick.error(3, 0.95)
5
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.arithmetic import to_integer, to_interval, working_precision
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


@dataclass(frozen=True)
class PermuteAndFlip(SelectionMechanism):
    """Goes through the list in random order and releases the first r whose coin, heads with probability
    w(r) = exp(factor (u(r) - best)), falls heads. The best one's coin always does.

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
    """

    def loss(self) -> PureDp:
        """What one choice costs."""
        return PureDp(self.epsilon)

    def release(self, scores: Sequence[int], bits: Bits | None = None) -> int:
        """The index of the choice, and nothing about its score.

        All coins are flipped, and one of the heads is taken at random: the first of them in a random order. So the work
        does not depend on which one it is.
        """
        bits = bits_or_system(bits)
        values = check_scores(scores)
        best, factor = max(values), self.factor
        # Rounding to a double errs by less than 2^-46 up to 64, and beyond that no coin comes near.
        lacks = np.array([factor.numerator * (best - score) / factor.denominator for score in values])
        heads = np.flatnonzero(draw_exp_array(lacks, 2.0**-40, lambda i: factor * (best - values[i]), bits))
        return int(heads[draw_below(len(heads), bits)])

    def law(self, scores: Sequence[int], digits: int = 128) -> list[arb]:
        """P(r) for each index, as certified intervals, in time quadratic in their number.

        The integral of a polynomial in s: prod_j (1 - s w(j)) is divided by 1 - s w(r) and integrated term by term. Its
        coefficients reach 2^n and cancel, so the working precision has 3n bits more than `digits`.
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

    def error(self, choices: int, confidence: Any) -> int:
        """The least w such that, of so many choices, one with a score within w of the best is released with at least
        this probability, whatever the scores are.

        **Proof.** In terms of the noise, "the winner falls short by a or more" only becomes more likely when one that
        falls short is raised to best - a, or one that does not (other than the best) is lowered to it. So n - 1 at
        best - a are the worst case: with w = exp(-factor a) the best one wins with probability
        (1 - (1 - w)^n)/(n w), which grows with a.
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
