"""Zero-concentrated DP: rho adds up, and each leaf has its own rho.

>>> from tacit.privacy.loss import GaussianNoise
>>> rho(GaussianNoise(variance=Fraction(25), shift=1, coordinates=2)).rho
Fraction(1, 25)
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


@dataclass(frozen=True)
class Rho:
    """delta-approximate rho-zCDP: with probability 1 - delta the run is one of a rho-zCDP mechanism."""

    rho: Fraction
    delta: Fraction = Fraction(0)


class Zcdp:
    """The accountant of rho.

    **Theorem (composition).** Adaptively, rho and delta add up (Bun and Steinke 2016, lemma 8.2).

    **Theorem (pure).** An epsilon-DP mechanism is rho-zCDP with rho = epsilon tanh(epsilon/2) < epsilon^2/2.
    Proof. Randomized response is the worst (Kairouz, Oh, Viswanath 2015). With u = a - 1/2 its divergence of order a
    is D = (g(u^2) - g(1/4))/(a - 1), where g(x) = ln cosh(epsilon sqrt x), and a (a - 1) = u^2 - 1/4. So D/a is the
    slope of a chord of g from 1/4. g is concave, as tanh(y)/y falls, so no chord is steeper than the tangent at 1/4,
    g'(1/4) = epsilon tanh(epsilon/2).

    **Theorem (leaves).** Discrete Gaussian noise: coordinates shift^2/(2 variance) (Canonne, Kamath, Steinke 2020,
    theorem 14). Real Gaussian noise: 1/(2 sigma^2). A loss in an interval of length epsilon: epsilon^2/8 (Cesar and
    Rogers 2021). (epsilon, delta): as epsilon, with delta apart. Sampling earns nothing here, but costs nothing:
    divergences are convex in both laws together, so a mixture is no worse than its worst part, in every direction.
    """

    def leaf(self, loss: Leaf) -> Rho:
        """What one mechanism costs."""
        match loss:
            case LaplaceNoise(scale, sensitivity):
                return Rho(of_pure(Fraction(sensitivity) / scale))
            case ContinuousLaplace(scale):
                return Rho(of_pure(1 / scale))
            case Pure(epsilon):
                return Rho(of_pure(epsilon))
            case BoundedRange(epsilon):
                return Rho(min(epsilon**2 / 8, of_pure(epsilon)))
            case Approximate(epsilon, delta):
                return Rho(of_pure(epsilon), delta)
            case Concentrated(cost):
                return Rho(cost)
            case ContinuousGaussian(sigma):
                return Rho(1 / (2 * sigma**2))
            case GaussianNoise(variance, shift, coordinates):
                return Rho(Fraction(coordinates * shift**2) / (2 * variance))

    def compose(self, terms: Sequence[tuple[Rho, int]]) -> Rho:
        """Sums."""
        delta = sum((curve.delta * times for curve, times in terms), Fraction(0))
        return Rho(sum((curve.rho * times for curve, times in terms), Fraction(0)), min(Fraction(1), delta))

    def worst(self, curves: Sequence[Rho]) -> Rho:
        """The largest of each."""
        return Rho(max(curve.rho for curve in curves), max(curve.delta for curve in curves))

    def replaced(self, curves: Sequence[Rho]) -> Rho:
        """The largest sum of two: one part is left, another entered. A change inside one is no more than its part."""
        return pairs_of(self, curves)

    def sampled(self, curve: Rho, rate: Fraction) -> Rho:
        """No more than without sampling; nothing at rate zero."""
        return curve if rate else Rho(Fraction(0))


def of_pure(epsilon: Fraction) -> Fraction:
    """epsilon tanh(epsilon/2), rounded up at 24 decimals: the rho of any epsilon-DP mechanism."""
    if epsilon > 200:  # tanh is one but for e^-200
        return epsilon
    with precision(160 + 2 * max(0, math.ceil(epsilon))):
        return min(epsilon**2 / 2, rounded_up(ball(epsilon) * ball(epsilon / 2).tanh()))


def rho(loss: Loss) -> Rho:
    """The zCDP cost of a loss."""
    return fold(loss, Zcdp())
