"""Pure epsilon and basic composition: epsilons add up, and so do deltas.

>>> from tacit.privacy.loss import Compose, LaplaceNoise
>>> epsilon(Compose((LaplaceNoise(Fraction(10), 1), LaplaceNoise(Fraction(40), 2))))
Fraction(3, 20)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting.accountant import evaluate_loss, group_delta, pairs_of
from tacit.accounting.rounding import rounded_up
from tacit.arithmetic import to_interval, working_precision
from tacit.privacy.loss import (
    ApproximateDp,
    BoundedRange,
    ConcentratedDp,
    ContinuousGaussianNoise,
    ContinuousLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    Leaf,
    Loss,
    PureDp,
)

__all__ = ["BasicAccountant", "EpsilonDelta", "compose_basic", "epsilon"]


@dataclass(frozen=True)
class EpsilonDelta:
    """(epsilon, delta), exactly. An epsilon of None is infinite: no (epsilon, delta) is claimed."""

    epsilon: Fraction | None
    delta: Fraction


class BasicAccountant:
    """The accountant of sums.

    **Theorem.** Discrete Laplace noise of scale b on integers that move by at most d in L1 is (d/b)-DP, and no less:
    P(k) is proportional to exp(-|k|/b), so the ratio of two neighbors is at most exp(d/b), reached in the tail. The
    same holds for the density of real noise. A loss that lies in an interval of length e lies in [-e, e], because it
    is neither always positive nor always negative. Adaptive composition adds up: the probabilities of a transcript
    multiply (Dwork and Lei 2009 for delta). Gaussian noise and zCDP promise no epsilon without a delta of their own:
    say `ApproximateDp` where you have converted them.
    """

    def leaf(self, loss: Leaf) -> EpsilonDelta:
        """What one mechanism promises."""
        match loss:
            case LaplaceNoise(scale, sensitivity):
                return EpsilonDelta(Fraction(sensitivity) / scale, Fraction(0))
            case ContinuousLaplaceNoise(scale):
                return EpsilonDelta(1 / scale, Fraction(0))
            case PureDp(epsilon) | BoundedRange(epsilon):
                return EpsilonDelta(epsilon, Fraction(0))
            case ApproximateDp(epsilon, delta):
                return EpsilonDelta(epsilon, delta)
            case GaussianNoise(_, 0) | ConcentratedDp(Fraction(numerator=0)):
                return EpsilonDelta(Fraction(0), Fraction(0))
            case GaussianNoise() | ContinuousGaussianNoise() | ConcentratedDp():
                return EpsilonDelta(None, Fraction(0))

    def compose(self, terms: Sequence[tuple[EpsilonDelta, int]]) -> EpsilonDelta:
        """Sums."""
        delta = min(Fraction(1), sum((spent.delta * times for spent, times in terms), Fraction(0)))
        if any(spent.epsilon is None for spent, _ in terms):
            return EpsilonDelta(None, delta)
        return EpsilonDelta(sum(((spent.epsilon or Fraction(0)) * times for spent, times in terms), Fraction(0)), delta)

    def worst(self, curves: Sequence[EpsilonDelta]) -> EpsilonDelta:
        """The largest of each."""
        known = [spent.epsilon for spent in curves if spent.epsilon is not None]
        return EpsilonDelta(max(known) if len(known) == len(curves) else None, max(spent.delta for spent in curves))

    def replace_in_parallel(self, curves: Sequence[EpsilonDelta]) -> EpsilonDelta:
        """The largest sum of two: one part is left, another entered. A change inside one is no more than its part."""
        return pairs_of(self, curves)

    def subsample(self, curve: EpsilonDelta, rate: Fraction) -> EpsilonDelta:
        """(ln(1 + q (e^epsilon - 1)), q delta) (Balle, Barthe, Gaboardi 2018, theorem 8), rounded up.

        It holds for a removal, an addition and a change. Put f = e^epsilon and g = 1 + q (f - 1). A change is a pair
        (1-q) A + q B and (1-q) A + q C, and with b = g/f, P - g Q = q (B - f ((1-b) A + b C)): at most q delta, as
        delta(epsilon) is convex in its second distribution. A removal has C = A. An addition has B = A, and a negative
        factor of A is left out.
        """
        if curve.epsilon is None or rate in {0, 1}:
            return curve if rate else EpsilonDelta(Fraction(0), Fraction(0))
        if curve.epsilon > 1000:
            return EpsilonDelta(curve.epsilon, curve.delta * rate)
        with working_precision(192 + 2 * math.ceil(curve.epsilon)):
            upper = rounded_up((to_interval(rate) * to_interval(curve.epsilon).expm1()).log1p())
        return EpsilonDelta(min(curve.epsilon, upper), curve.delta * rate)

    def group(self, loss: Loss, size: int) -> EpsilonDelta:
        """What (epsilon, delta)-DP of one unit is for several; nothing is said where there is no epsilon."""
        spent = compose_basic(loss)
        if spent.epsilon is None:
            return EpsilonDelta(None, Fraction(1))
        return EpsilonDelta(spent.epsilon * size, group_delta(spent.epsilon, spent.delta, size))


def compose_basic(loss: Loss) -> EpsilonDelta:
    """(epsilon, delta) by basic composition."""
    return evaluate_loss(loss, BasicAccountant())


def epsilon(loss: Loss) -> Fraction:
    """The least epsilon that basic composition proves for `loss` with a delta of zero, exactly.

    A loss that has no pure epsilon (Gaussian noise, a delta) is a ValueError.
    """
    spent = compose_basic(loss)
    if spent.epsilon is None or spent.delta:
        raise ValueError(f"no pure epsilon bounds {loss!r:.100}")
    return spent.epsilon
