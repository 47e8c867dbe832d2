"""Zero-concentrated DP: rho adds up, and each leaf has its own rho.

>>> from tacit.privacy.loss import GaussianNoise
>>> compute_rho(GaussianNoise(variance=Fraction(25), shift=1, coordinates=2)).rho
Fraction(1, 25)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting.accountant import evaluate_loss, group_delta, pairs_of
from tacit.accounting.basic import compose_basic
from tacit.accounting.rounding import double_above, double_below, rounded_up
from tacit.arithmetic import to_interval, working_precision
from tacit.privacy.guarantee import epsilon_from_rho
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


@dataclass(frozen=True)
class ApproximateZcdp:
    """delta-approximate rho-zCDP: with probability 1 - delta the run is one of a rho-zCDP mechanism."""

    rho: Fraction
    delta: Fraction = Fraction(0)


class ZcdpAccountant:
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
    divergences are convex in both distributions together, so a mixture is no worse than its worst part, in every
    direction.
    """

    def leaf(self, loss: Leaf) -> ApproximateZcdp:
        """What one mechanism costs."""
        match loss:
            case LaplaceNoise(scale, sensitivity):
                return ApproximateZcdp(rho_from_epsilon(Fraction(sensitivity) / scale))
            case ContinuousLaplaceNoise(scale):
                return ApproximateZcdp(rho_from_epsilon(1 / scale))
            case PureDp(epsilon):
                return ApproximateZcdp(rho_from_epsilon(epsilon))
            case BoundedRange(epsilon):
                return ApproximateZcdp(min(epsilon**2 / 8, rho_from_epsilon(epsilon)))
            case ApproximateDp(epsilon, delta):
                return ApproximateZcdp(rho_from_epsilon(epsilon), delta)
            case ConcentratedDp(cost):
                return ApproximateZcdp(cost)
            case ContinuousGaussianNoise(sigma):
                return ApproximateZcdp(1 / (2 * sigma**2))
            case GaussianNoise(variance, shift, coordinates):
                return ApproximateZcdp(Fraction(coordinates * shift**2) / (2 * variance))

    def compose(self, terms: Sequence[tuple[ApproximateZcdp, int]]) -> ApproximateZcdp:
        """Sums."""
        delta = sum((curve.delta * times for curve, times in terms), Fraction(0))
        return ApproximateZcdp(sum((curve.rho * times for curve, times in terms), Fraction(0)), min(Fraction(1), delta))

    def worst(self, curves: Sequence[ApproximateZcdp]) -> ApproximateZcdp:
        """The largest of each."""
        return ApproximateZcdp(max(curve.rho for curve in curves), max(curve.delta for curve in curves))

    def replace_in_parallel(self, curves: Sequence[ApproximateZcdp]) -> ApproximateZcdp:
        """The largest sum of two: one part is left, another entered. A change inside one is no more than its part."""
        return pairs_of(self, curves)

    def subsample(self, curve: ApproximateZcdp, rate: Fraction) -> ApproximateZcdp:
        """No more than without sampling; nothing at rate zero."""
        return curve if rate else ApproximateZcdp(Fraction(0))

    def group(self, loss: Loss, size: int) -> ApproximateZcdp:
        """What the guarantee of the whole is worth."""
        return self.leaf(group_as_whole(loss, size))


def group_as_whole(loss: Loss, size: int) -> ApproximateDp:
    """The (epsilon, delta) of `size` units, from that of a loss as a whole.

    **Theorem.** A mechanism that is (epsilon, delta)-DP is (k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1))-DP
    for k units. Basic composition says which epsilon and delta; where it knows no epsilon, delta-approximate rho-zCDP
    is (epsilon, 2 delta)-DP wherever rho-zCDP is (epsilon, delta)-DP (Bun and Steinke 2016, theorem 8.3).
    """
    spent = compose_basic(loss)
    epsilon, delta = spent.epsilon, spent.delta
    if epsilon is None:
        cost = compute_rho(loss)
        found = epsilon_from_rho(double_above(cost.rho), double_below(cost.delta))
        if found == math.inf:
            return ApproximateDp(Fraction(0), Fraction(1))
        epsilon, delta = Fraction(found), min(Fraction(1), 2 * cost.delta)
    return ApproximateDp(epsilon * size, group_delta(epsilon, delta, size))


def rho_from_epsilon(epsilon: Fraction) -> Fraction:
    """epsilon tanh(epsilon/2), rounded up at 24 decimals: the rho of any epsilon-DP mechanism."""
    if epsilon > 200:  # tanh is one but for e^-200
        return epsilon
    with working_precision(160 + 2 * max(0, math.ceil(epsilon))):
        return min(epsilon**2 / 2, rounded_up(to_interval(epsilon) * to_interval(epsilon / 2).tanh()))


def compute_rho(loss: Loss) -> ApproximateZcdp:
    """The zCDP cost of a loss."""
    return evaluate_loss(loss, ZcdpAccountant())
