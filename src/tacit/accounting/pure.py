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

from tacit.accounting.fold import fold, pairs_of
from tacit.accounting.rounding import rounded_up
from tacit.arithmetic import ball, precision
from tacit.privacy.loss import (
    Approximate,
    BoundedRange,
    Concentrated,
    ContinuousGaussian,
    ContinuousLaplace,
    GaussianNoise,
    LaplaceNoise,
    Leaf,
    Loss,
    Pure,
)

__all__ = ["Basic", "Spent", "basic", "epsilon"]


@dataclass(frozen=True)
class Spent:
    """(epsilon, delta), exactly. An epsilon of None is infinite: no (epsilon, delta) is claimed."""

    epsilon: Fraction | None
    delta: Fraction


class Basic:
    """The accountant of sums.

    **Theorem.** Discrete Laplace noise of scale b on integers that move by at most d in L1 is (d/b)-DP, and no less:
    P(k) is proportional to exp(-|k|/b), so the ratio of two neighbors is at most exp(d/b), reached in the tail. The
    same holds for the density of real noise. A loss that lies in an interval of length e lies in [-e, e], because it
    is neither always positive nor always negative. Adaptive composition adds up: the probabilities of a transcript
    multiply (Dwork and Lei 2009 for delta). Gaussian noise and zCDP promise no epsilon without a delta of their own:
    say `Approximate` where you have converted them.
    """

    def leaf(self, loss: Leaf) -> Spent:
        """What one mechanism promises."""
        match loss:
            case LaplaceNoise(scale, sensitivity):
                return Spent(Fraction(sensitivity) / scale, Fraction(0))
            case ContinuousLaplace(scale):
                return Spent(1 / scale, Fraction(0))
            case Pure(epsilon) | BoundedRange(epsilon):
                return Spent(epsilon, Fraction(0))
            case Approximate(epsilon, delta):
                return Spent(epsilon, delta)
            case GaussianNoise(_, 0) | Concentrated(Fraction(numerator=0)):
                return Spent(Fraction(0), Fraction(0))
            case GaussianNoise() | ContinuousGaussian() | Concentrated():
                return Spent(None, Fraction(0))

    def compose(self, terms: Sequence[tuple[Spent, int]]) -> Spent:
        """Sums."""
        delta = min(Fraction(1), sum((spent.delta * times for spent, times in terms), Fraction(0)))
        if any(spent.epsilon is None for spent, _ in terms):
            return Spent(None, delta)
        return Spent(sum(((spent.epsilon or Fraction(0)) * times for spent, times in terms), Fraction(0)), delta)

    def worst(self, curves: Sequence[Spent]) -> Spent:
        """The largest of each."""
        known = [spent.epsilon for spent in curves if spent.epsilon is not None]
        return Spent(max(known) if len(known) == len(curves) else None, max(spent.delta for spent in curves))

    def replaced(self, curves: Sequence[Spent]) -> Spent:
        """The largest sum of two: one part is left, another entered. A change inside one is no more than its part."""
        return pairs_of(self, curves)

    def sampled(self, curve: Spent, rate: Fraction) -> Spent:
        """(ln(1 + q (e^epsilon - 1)), q delta) (Balle, Barthe, Gaboardi 2018, theorem 8), rounded up.

        It holds for a removal, an addition and a change. Put f = e^epsilon and g = 1 + q (f - 1). A change is a pair
        (1-q) A + q B and (1-q) A + q C, and with b = g/f, P - g Q = q (B - f ((1-b) A + b C)): at most q delta, as
        delta(epsilon) is convex in its second law. A removal has C = A. An addition has B = A, and a negative factor
        of A is left out.
        """
        if curve.epsilon is None or rate in {0, 1}:
            return curve if rate else Spent(Fraction(0), Fraction(0))
        if curve.epsilon > 1000:
            return Spent(curve.epsilon, curve.delta * rate)
        with precision(192 + 2 * math.ceil(curve.epsilon)):
            upper = rounded_up((ball(rate) * ball(curve.epsilon).expm1()).log1p())
        return Spent(min(curve.epsilon, upper), curve.delta * rate)


def basic(loss: Loss) -> Spent:
    """(epsilon, delta) by basic composition."""
    return fold(loss, Basic())


def epsilon(loss: Loss) -> Fraction:
    """The least epsilon that basic composition proves for `loss` with a delta of zero, exactly.

    A loss that has no pure epsilon (Gaussian noise, a delta) is a ValueError.
    """
    spent = basic(loss)
    if spent.epsilon is None or spent.delta:
        raise ValueError(f"no pure epsilon bounds {loss!r:.100}")
    return spent.epsilon
