"""Renyi divergences at a fixed set of orders, which add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.convert import renyi_epsilon, renyi_log_delta
from tacit.accounting.fold import fold
from tacit.accounting.rounding import MARGIN
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

Array = NDArray[Any]
_WHOLE = 256  # sampling is counted at whole orders up to this one


@cache
def orders() -> Array:
    """The orders: the whole ones from 2 to 256, and others close together from 1.001 to 10^6."""
    return np.unique(np.concatenate([np.arange(2.0, _WHOLE + 1), 1 + np.geomspace(1e-3, 1e6, 900)]))


@dataclass(frozen=True)
class Renyi:
    """`growth` is (a - 1) D_a at each order a; `delta` is the probability of losing everything.

    `symmetric` says that it is the curve of a pair of laws that a reflection of the outcomes swaps.
    """

    growth: Array
    delta: float = 0.0
    symmetric: bool = True


class RenyiAccountant:
    """The accountant of Renyi divergences, which adaptively add up (Mironov 2017, proposition 1).

    Each leaf is its law's own curve. With l = a - 1 and the loss L, exp(l D_a) = E[exp(l L)]:

    *Randomized response, and so anything epsilon-DP:* cosh(epsilon (l + 1/2))/cosh(epsilon/2).
    *Real Laplace:* (a e^{l e} + l e^{-a e})/(2a - 1) with e = 1/scale (Mironov 2017, table II).
    *Discrete Laplace* of scale b and integer sensitivity d: with q = e^{-1/b}, L is d/b with probability 1/(1+q), -d/b
    with q^d/(1+q), and (2t - d)/b with (1-q)/(1+q) q^{d-t} for 0 < t < d: a geometric sum. That one coordinate
    moving by d is the worst of all moves of d in L1 is shown in `laws.laplace`.
    *Gaussian, real or discrete:* a/(2 sigma^2) and a coordinates shift^2/(2 variance).
    *A loss in an interval of length e:* the two ends [t - e, t] carry all of it in the worst case, as exp(l L) is
    convex in exp(-L), which has mean one; the worst t is e^t = l A/((l + 1) B), A = e^e - e^{-l e} and
    B = 1 - e^{-l e}.
    """

    def leaf(self, loss: Leaf) -> Renyi:
        """The curve of one mechanism."""
        less = orders() - 1
        match loss:
            case LaplaceNoise(scale, sensitivity):
                return Renyi(_discrete_laplace(less, 1 / float(scale), sensitivity))
            case ContinuousLaplace(scale):
                return Renyi(_laplace(less, 1 / float(scale)))
            case Pure(epsilon):
                return Renyi(_response(less, float(epsilon)))
            case Approximate(epsilon, delta):
                return Renyi(_response(less, float(epsilon)), float(delta))
            case BoundedRange(epsilon):
                return Renyi(_range(less, float(epsilon)), symmetric=False)
            case Concentrated(rho):
                return Renyi(less * (less + 1) * float(rho), symmetric=rho == 0)
            case ContinuousGaussian(sigma):
                return Renyi(less * (less + 1) * float(1 / (2 * sigma**2)))
            case GaussianNoise(variance, shift, coordinates):
                return Renyi(less * (less + 1) * float(coordinates * shift**2 / (2 * variance)))

    def compose(self, terms: Sequence[tuple[Renyi, int]]) -> Renyi:
        """Sums."""
        growth = np.zeros(orders().size)
        for curve, times in terms:
            growth = growth + curve.growth * times
        delta = min(1.0, math.fsum(curve.delta * times for curve, times in terms))
        return Renyi(growth, delta, all(curve.symmetric for curve, _ in terms))

    def worst(self, curves: Sequence[Renyi]) -> Renyi:
        """The largest at each order."""
        growth = np.max([curve.growth for curve in curves], axis=0)
        return Renyi(growth, max(curve.delta for curve in curves), len(curves) == 1 and curves[0].symmetric)

    def sampled(self, curve: Renyi, rate: Fraction) -> Renyi:
        """Poisson sampling.

        **Theorem** (Mironov, Talwar, Zhang 2019). Let a reflection of the outcomes swap the pair (P, Q), as it does
        for noise, whose law is even. Then of the two directions the divergence of (1-q) Q + q P from Q is the larger,
        and for a whole order a its exponential is sum_k C(a,k) (1-q)^{a-k} q^k exp((k-1) D_k). (a - 1) D_a is
        convex in a, and zero at a = 1, so the line between two whole orders is an upper bound; beyond the largest
        whole order, and for other curves, the bound is the curve without sampling, by convexity.
        """
        share = float(rate)
        if share == 0:
            return Renyi(np.zeros(orders().size))
        if share == 1 or not curve.symmetric:
            return Renyi(curve.growth, curve.delta * share, symmetric=False)
        grid = orders()
        moments = np.concatenate([[0.0, 0.0], np.interp(np.arange(2, _WHOLE + 1), grid, curve.growth)])
        whole = np.concatenate([[0.0], _binomial(share, moments)])
        grown = np.interp(grid, np.arange(1, _WHOLE + 1), whole, right=np.inf)
        return Renyi(np.minimum(curve.growth, grown), curve.delta * share, symmetric=False)


def curve(loss: Loss) -> Renyi:
    """The Renyi curve of a loss."""
    return fold(loss, RenyiAccountant())


def epsilon(loss: Loss, delta: float) -> float:
    """The least epsilon at `delta` over all orders, rounded up."""
    found = curve(loss)
    room = delta - found.delta * (1 + MARGIN)
    if not found.growth.any() and room >= 0:
        return 0.0
    if room <= 0:
        return math.inf
    best = renyi_epsilon(orders(), found.growth / (orders() - 1), room)
    return float(np.nanmin(best)) * (1 + MARGIN)


def delta(loss: Loss, epsilon: float) -> float:
    """The least delta at `epsilon` over all orders, rounded up."""
    found = curve(loss)
    if not found.growth.any():
        return found.delta
    best = float(np.nanmin(renyi_log_delta(orders(), found.growth / (orders() - 1), epsilon)))
    return min(1.0, found.delta + math.exp(min(0.0, best))) * (1 + MARGIN)


def _response(less: Array, epsilon: float) -> Array:
    return np.asarray(_log_cosh(epsilon * (less + 0.5)) - _log_cosh(np.array(epsilon / 2)))


def _log_cosh(x: Array) -> Any:
    """ln cosh, exact to the last bits for small x too: cosh x - 1 = 2 sinh^2(x/2)."""
    small = np.minimum(x, 1.0)
    return np.where(x < 1, np.log1p(2 * np.sinh(small / 2) ** 2), x + np.log1p(np.expm1(-2 * x) / 2))


def _laplace(less: Array, epsilon: float) -> Array:
    order = less + 1
    inner = less * np.expm1(-(2 * less + 1) * epsilon) / (2 * less + 1)
    return np.asarray(less * epsilon + np.log1p(inner), dtype=np.float64) if epsilon else 0 * order


def _discrete_laplace(less: Array, step: float, distance: int) -> Array:
    """The geometric sum, in logarithms; `step` is 1/scale."""
    if distance == 0:
        return np.zeros(less.size)
    span, ratio = distance * step, (2 * less + 1) * step
    ends = np.logaddexp(less * span, -(less + 1) * span) - np.logaddexp(0.0, -step)
    if distance == 1:
        return _response(less, step)
    inside = ratio + _log_expm1((distance - 1) * ratio) - _log_expm1(ratio)
    inside = inside - (less + 1) * span + math.log(math.tanh(step / 2))
    return np.asarray(np.maximum(np.logaddexp(ends, inside), 0.0))


def _log_expm1(x: Array) -> Array:
    """ln(e^x - 1), for x > 0."""
    return np.asarray(x + np.log(-np.expm1(-x)), dtype=np.float64)


def _range(less: Array, epsilon: float) -> Array:
    if epsilon == 0:
        return np.zeros(less.size)
    upper = epsilon + np.log(-np.expm1(-(less + 1) * epsilon))  # ln A
    lower = np.log(-np.expm1(-less * epsilon))  # ln B
    worst = np.log(less) + upper - np.log1p(less) - lower
    exact = less * worst + upper - np.log1p(less) - _log_expm1(np.array(epsilon))
    return np.asarray(np.minimum(np.maximum(exact, 0.0) + 1e-15, less * (less + 1) * epsilon**2 / 8))


@cache
def _choose() -> Array:
    """ln C(a, k) for the whole orders a from 2 on, minus infinity where k > a."""
    from scipy.special import gammaln

    order, k = np.arange(2.0, _WHOLE + 1)[:, None], np.arange(_WHOLE + 1.0)
    inside = np.maximum(order - k, 0)
    return np.where(k <= order, gammaln(order + 1) - gammaln(k + 1) - gammaln(inside + 1), -np.inf)


def _binomial(rate: float, moments: Array) -> Array:
    """For each whole order a from 2 on, ln of the sum over k of C(a, k) (1 - rate)^{a - k} rate^k exp(moments[k])."""
    order, k = np.arange(2.0, _WHOLE + 1)[:, None], np.arange(_WHOLE + 1.0)
    logs = _choose() + (order - k) * math.log1p(-rate) + k * math.log(rate) + moments
    top = logs.max(axis=1, keepdims=True)
    total = top[:, 0] + np.log(np.exp(logs - top).sum(axis=1))
    return np.asarray(np.maximum(0.0, total + 1e-13 * order[:, 0]))
