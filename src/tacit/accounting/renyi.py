"""Renyi divergences at a fixed set of orders, which add up."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.accountant import FEW, evaluate_loss
from tacit.accounting.convert import proven_delta, proven_distance, proven_epsilon, renyi_epsilon, renyi_log_delta
from tacit.accounting.rounding import MARGIN, double_above, double_below, product_above
from tacit.accounting.zcdp import group_as_whole
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

Array = NDArray[Any]
_WHOLE = 256  # sampling is counted at whole orders up to this one
_LEAST = 2.0**-900  # what a growth that is not zero is at least taken for: products that underflow are below it
_RARE = -700.0  # the least logarithm of a term of a sum: the exponential of any less may be zero, and of this is not
_CANCELED = 2.0**-48  # of the sizes of terms that may cancel: more than their roundings


@cache
def renyi_orders() -> Array:
    """The orders: the whole ones from 2 to 256, and others close together from 1.001 to 10^6."""
    return np.unique(np.concatenate([np.arange(2.0, _WHOLE + 1), 1 + np.geomspace(1e-3, 1e6, 900)]))


@cache
def _fractional() -> Array:
    """The orders that are not whole at which sampling is counted; between them a line is above the curve."""
    near = np.concatenate([1 + np.geomspace(1e-3, 0.3, 14), np.arange(1.35, 1.99, 0.05), np.arange(2.1, 6, 0.1)])
    return np.setdiff1d(np.concatenate([np.round(near, 9), np.arange(6.25, 12, 0.25)]), np.arange(13.0))


_LARGE = (288, 320, 384, 448, 512, 640, 768, 896, 1024, 1280, 1536, 2048, 3072, 4096)


@dataclass(frozen=True)
class RenyiCurve:
    """`growth` is (a - 1) D_a at each order a, for a removal and for an addition; `delta` is the probability of losing
    everything.

    `leaf` is the one mechanism, and `symmetric` says that the curve is of one pair of distributions that dominates and
    that a reflection of the outcomes swaps. `changed` is the curve of a change, where it is another; `replaced` says
    that the loss is for changes.
    """

    growth: Array
    delta: float = 0.0
    symmetric: bool = True
    changed: Array | None = None
    replaced: bool = False
    leaf: Leaf | None = None

    @property
    def change(self) -> Array:
        """The curve of a change."""
        return self.growth if self.changed is None else self.changed

    @property
    def upper_bound(self) -> Array:
        """The curve that the loss is accounted by."""
        return self.change if self.replaced else self.growth


class RenyiAccountant:
    """The accountant of Renyi divergences, which adaptively add up (Mironov 2017, proposition 1).

    Each leaf is its distribution's own curve. With l = a - 1 and the loss L, exp(l D_a) = E[exp(l L)]:

    *Randomized response, and so anything epsilon-DP:* cosh(epsilon (l + 1/2))/cosh(epsilon/2).
    *Real Laplace:* (a e^{l e} + l e^{-a e})/(2a - 1) with e = 1/scale (Mironov 2017, table II).
    *Discrete Laplace* of scale b and integer sensitivity d: with q = e^{-1/b}, L is d/b with probability 1/(1+q), -d/b
    with q^d/(1+q), and (2t - d)/b with (1-q)/(1+q) q^{d-t} for 0 < t < d: a geometric sum. That one coordinate
    moving by d is the worst of all moves of d in L1 is shown in `laws.laplace`.
    *Gaussian, real or discrete:* a/(2 sigma^2) and a coordinates shift^2/(2 variance).
    *A loss in an interval of length e:* the two ends [t - e, t] carry all of it in the worst case, as exp(l L) is
    convex in exp(-L), which has mean one; the worst t is e^t = l A/((l + 1) B), A = e^e - e^{-l e} and
    B = 1 - e^{-l e}.

    Each is rounded up: by 2^-40 of it, and where terms cancel by 2^-48 of their sizes (`docs/proofs/accounting.md`).
    """

    def leaf(self, loss: Leaf) -> RenyiCurve:
        """The curve of one mechanism."""
        less = renyi_orders() - 1
        delta = double_above(loss.delta) if isinstance(loss, ApproximateDp) else 0.0
        growth = np.maximum(_curve(loss, less), _LEAST if _loses(loss) else 0.0)
        symmetric = not isinstance(loss, BoundedRange | ConcentratedDp)
        return RenyiCurve(growth, delta, symmetric, leaf=loss if symmetric else None)

    def compose(self, terms: Sequence[tuple[RenyiCurve, int]]) -> RenyiCurve:
        """Sums."""
        if len(terms) == 1 and terms[0][1] == 1:
            return terms[0][0]
        growth, changed = np.zeros(renyi_orders().size), np.zeros(renyi_orders().size)
        for curve, times in terms:
            growth, changed = growth + _multiply(curve.growth, times), changed + _multiply(curve.change, times)
        delta = min(1.0, double_above(sum((Fraction(curve.delta) * times for curve, times in terms), Fraction(0))))
        return RenyiCurve(
            growth,
            delta,
            all(curve.symmetric for curve, _ in terms),
            changed,
            any(curve.replaced for curve, _ in terms),
        )

    def worst(self, curves: Sequence[RenyiCurve]) -> RenyiCurve:
        """The largest at each order."""
        if len(curves) == 1:
            return curves[0]
        return RenyiCurve(
            np.max([curve.growth for curve in curves], axis=0),
            max(curve.delta for curve in curves),
            False,
            np.max([curve.change for curve in curves], axis=0),
            any(curve.replaced for curve in curves),
        )

    def replace_in_parallel(self, curves: Sequence[RenyiCurve]) -> RenyiCurve:
        """A change inside one part, or a removal in one and an addition in another, whose divergences add up."""
        worst = self.worst(curves)
        sums = [one.growth + other.growth for one, other in combinations(curves, 2)] if len(curves) <= FEW else []
        pairs = sums if len(curves) <= FEW else [2 * worst.growth]
        delta = sum(sorted((curve.delta for curve in curves), reverse=True)[:2]) * (1 + 2.0**-50)
        change = np.max([worst.change, *pairs], axis=0)
        return RenyiCurve(worst.growth, min(1.0, delta), len(curves) == 1 and worst.symmetric, change, True, None)

    def subsample(self, curve: RenyiCurve, rate: Fraction) -> RenyiCurve:
        """Poisson sampling.

        **Theorem** (for Gaussian noise Mironov, Talwar, Zhang 2019). Let a reflection of the outcomes swap the pair
        (P, Q) that dominates, as it does for noise, whose distribution is even. Let R, A and C be the curves x -> sup
        (P - x Q) of a removal, an addition and a change after sampling. For x >= 1, C(x) <= R(x) and A(x) <= R(x)
        (`atoms.changed_sampled`). exp((a - 1) D_a) - 1 is the integral over x >= 1 of a (a - 1) (x^{a-2} H(x) +
        x^{-a-1} H'(x)), with H' the curve of the pair the other way round. x^{a-2} is at least x^{-a-1}, so for an
        addition it is at most that of a removal, E, and for a change at most 2 E.

        E is the mean under Q of r(q (P/Q - 1)), r(y) = (1 + y)^a - 1 - a y. For a whole order a that is
        sum_{k >= 2} C(a,k) (1-q)^{a-k} q^k (exp((k-1) D_k) - 1), a sum of positive terms. For other orders a single
        mechanism is given as atoms (`_moments`), and below 2, where r'' falls, E <= a (a-1)/2 (1-q)^{a-2} q^2
        (exp(D_2) - 1) holds for all. (a - 1) D_a is convex in a, and zero at a = 1, so the line between two orders is
        an upper bound; beyond the largest, and for other curves, the bound is the curve without sampling, by convexity.
        A probability d of losing everything becomes q d: the run is within q d, in total variation, of one without.
        """
        share, rest = double_above(rate), 1 - rate
        if rate == 0:
            return RenyiCurve(np.zeros(renyi_orders().size))
        lost = min(1.0, product_above(curve.delta, share))
        if rate == 1 or not curve.symmetric:
            return RenyiCurve(curve.growth, lost, False, curve.changed, curve.replaced)
        grid = renyi_orders()
        moments = np.interp(np.arange(2, _WHOLE + 1), grid, curve.growth)
        large = np.interp(np.arange(2, _LARGE[-1] + 1), grid, curve.growth)
        whole = np.append(
            _binomial(share, double_above(rest), moments),
            [_one(order, share, double_above(rest), large) for order in _LARGE],
        )
        knots = np.concatenate([[1.0], np.arange(2.0, _WHOLE + 1), _LARGE, _fractional()])
        below = _fractional()[_fractional() < 2]
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            second = below * (below - 1) / 2 * double_above(rest) ** below / double_below(rest) ** 2 * share**2
        with np.errstate(over="ignore", invalid="ignore"):
            second = second * np.expm1(moments[0]) * (1 + 2.0**-40)
        others = np.full(_fractional().size, np.inf)
        others[: below.size] = second
        if curve.leaf is not None:
            others = np.minimum(others, _moments(curve.leaf, share, double_below(rest), _fractional()))
        if curve.growth.any():
            others = np.maximum(others, math.exp(_RARE))
        excess = np.concatenate([[0.0], whole, others])
        kept = excess < 1e300
        order = np.argsort(knots[kept])

        def line(factor: float) -> Array:
            values = np.log1p(factor * excess[kept][order]) * (1 + MARGIN)
            return np.interp(grid, knots[kept][order], values, right=np.inf)

        growth = np.minimum(curve.growth, line(1.0))
        return RenyiCurve(growth, lost, False, np.minimum(curve.change, line(2.0)), curve.replaced)

    def group(self, loss: Loss, size: int) -> RenyiCurve:
        """The curve of the guarantee of the whole."""
        return self.leaf(group_as_whole(loss, size))


def compute_curve(loss: Loss) -> RenyiCurve:
    """The Renyi curve of a loss."""
    return evaluate_loss(loss, RenyiAccountant())


def _divergences(growth: Array) -> Array:
    """The Renyi divergence at each order, of (a - 1) D_a; infinite where a double does not hold it."""
    with np.errstate(over="ignore"):
        return np.asarray(growth / (renyi_orders() - 1))


def epsilon(loss: Loss, delta: float) -> float:
    """The least epsilon at `delta` over all orders, rounded up: the best order is found in doubles and then proven."""
    found = compute_curve(loss)
    told = found.upper_bound * (1 + MARGIN)
    if not told.any() and delta >= found.delta:
        return 0.0
    room = double_below(Fraction(delta) - Fraction(found.delta))
    if room <= 0:
        return math.inf
    if proven_distance(float(_divergences(told).min()) * (1 + MARGIN)) <= room:
        return 0.0
    best = int(np.nanargmin(renyi_epsilon(renyi_orders(), _divergences(told), room)))
    if told[best] == math.inf:
        return math.inf
    return proven_epsilon(float(renyi_orders()[best]), float(told[best]), room)


def delta(loss: Loss, epsilon: float) -> float:
    """The least delta at `epsilon` over all orders, rounded up likewise."""
    found = compute_curve(loss)
    told = found.upper_bound * (1 + MARGIN)
    if not told.any():
        return found.delta
    best = int(np.nanargmin(renyi_log_delta(renyi_orders(), _divergences(told), epsilon)))
    if told[best] == math.inf:
        return 1.0
    distance = proven_distance(float(_divergences(told).min()) * (1 + MARGIN))
    proven = min(distance, proven_delta(float(renyi_orders()[best]), float(told[best]), epsilon))
    return min(1.0, double_above(Fraction(found.delta) + Fraction(min(proven, 1.0))))


def _curve(leaf: Leaf, less: Array) -> Array:
    """(a - 1) D_a of one mechanism at each a - 1, rounded up."""
    match leaf:
        case LaplaceNoise(scale, sensitivity):
            step, span = double_above(1 / scale), double_above(sensitivity / scale)
            with np.errstate(over="ignore", invalid="ignore"):
                found = _discrete_laplace(less, step, sensitivity)
            return np.fmin(found, _response(less, span))
        case ContinuousLaplaceNoise(scale):
            span = double_above(1 / scale)
            return np.fmin(_laplace(less, span), _response(less, span))
        case PureDp(epsilon) | ApproximateDp(epsilon, _):
            return _response(less, double_above(epsilon))
        case BoundedRange(epsilon):
            with np.errstate(over="ignore"):
                return _range(less, double_above(epsilon))
        case ConcentratedDp(rho):
            return _quadratic(less, rho)
        case ContinuousGaussianNoise(sigma):
            return _quadratic(less, 1 / (2 * sigma**2))
        case GaussianNoise(variance, shift, coordinates):
            return _quadratic(less, Fraction(coordinates * shift**2) / (2 * variance))


def _loses(leaf: Leaf) -> bool:
    """Whether the divergences of a leaf are not zero."""
    match leaf:
        case LaplaceNoise(_, moved) | GaussianNoise(_, moved):
            return moved > 0
        case PureDp(epsilon) | BoundedRange(epsilon) | ApproximateDp(epsilon, _):
            return epsilon > 0
        case ConcentratedDp(rho):
            return rho > 0
    return True


def _multiply(growth: Array, times: int) -> Array:
    """So many times the growth: nothing stays nothing, whatever the number is."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.where(growth > 0, growth * double_above(Fraction(times)), 0.0))


def _quadratic(less: Array, rho: Fraction) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(less * (less + 1) * double_above(rho), dtype=np.float64)


def _response(less: Array, epsilon: float) -> Array:
    """ln(cosh(e (l + 1/2))/cosh(e/2)), and cosh x - cosh y = 2 sinh((x + y)/2) sinh((x - y)/2)."""
    with np.errstate(over="ignore", invalid="ignore"):
        small = np.log1p(2 * np.sinh(epsilon * (less + 1) / 2) * np.sinh(epsilon * less / 2) / np.cosh(epsilon / 2))
        large = epsilon * less + np.log1p(np.exp(-epsilon * (2 * less + 1)))
        return np.where(epsilon * (less + 1) < 100, small, large)


def _laplace(less: Array, epsilon: float) -> Array:
    inner = less * np.expm1(-(2 * less + 1) * epsilon) / (2 * less + 1)
    return np.asarray(np.maximum(less * epsilon + np.log1p(inner), 0.0) + less * epsilon * _CANCELED)


def _discrete_laplace(less: Array, step: float, distance: int) -> Array:
    """The geometric sum, in logarithms; `step` is 1/scale."""
    if distance == 0:
        return np.zeros(less.size)
    if distance == 1:
        return _response(less, step)
    if step < 1e-150:  # its logarithms say nothing of what is left
        return np.full(less.size, np.inf)
    span, ratio = distance * step, (2 * less + 1) * step
    ends = np.logaddexp(less * span, -(less + 1) * span) - np.logaddexp(0.0, -step)
    inside = ratio + _log_expm1((distance - 1) * ratio) - _log_expm1(ratio)
    inside = inside - (less + 1) * span + math.log(math.tanh(step / 2))
    sizes = 1 + abs(math.log(step)) + ratio * distance + (less + 1) * span
    return np.asarray(np.maximum(np.logaddexp(ends, inside), 0.0) + sizes * _CANCELED)


def _log_expm1(x: Array) -> Array:
    """ln(e^x - 1), for x > 0."""
    return np.asarray(x + np.log(-np.expm1(-x)), dtype=np.float64)


def _range(less: Array, epsilon: float) -> Array:
    if epsilon == 0:
        return np.zeros(less.size)
    if epsilon < 1e-100:
        return np.asarray(less * (less + 1) * (epsilon * epsilon) / 8)
    upper = epsilon + np.log(-np.expm1(-(less + 1) * epsilon))  # ln A
    lower = np.log(-np.expm1(-less * epsilon))  # ln B
    worst = np.log(less) + upper - np.log1p(less) - lower
    exact = less * worst + upper - np.log1p(less) - _log_expm1(np.array(epsilon))
    sizes = less * (np.abs(np.log(less)) + np.abs(upper) + np.log1p(less) + np.abs(lower)) + epsilon + np.abs(upper) + 1
    sizes = sizes + abs(math.log(epsilon))
    return np.asarray(
        np.minimum(np.maximum(exact, 0.0) + sizes * _CANCELED, less * (less + 1) * (epsilon * epsilon) / 8)
    )


@cache
def _choose() -> Array:
    """C(a, k) for the whole orders a from 2 on, zero where k > a: Pascal's triangle, with a relative error of 2^-45."""
    rows = np.zeros((_WHOLE + 1, _WHOLE + 1))
    rows[:, 0] = 1.0
    for order in range(1, _WHOLE + 1):
        rows[order, 1:] = rows[order - 1, 1:] + rows[order - 1, :-1]
    return rows[2:]


def _binomial(rate: float, rest: float, moments: Array) -> Array:
    """For each whole order a from 2 on, the sum over k >= 2 of C(a, k) rest^{a - k} rate^k (exp(moments[k]) - 1)."""
    order, k = np.arange(2.0, _WHOLE + 1)[:, None], np.arange(2.0, _WHOLE + 1)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):  # no term where k > a is looked at
        grown = np.where(moments < 30, np.log(np.expm1(np.minimum(moments, 30.0))), moments)
        inside = np.maximum(order - k, 0)
        logs = np.log(_choose()[:, 2:]) + inside * math.log(rest) + k * math.log(rate) + grown
        # a term e^x has a relative error of at most |x| 2^-50 and those of its logarithms: below 2^-38 for |x| < 2,000;
        # what is rarer than e^-700 is counted as that, which a double holds
        return np.asarray(np.exp(np.where(k <= order, np.maximum(logs, _RARE), -np.inf)).sum(axis=1) * (1 + 2.0**-37))


def _one(order: int, rate: float, rest: float, moments: Array) -> float:
    """The same for one large order. ln C(a, k) is a sum of logarithms: with a <= 2^12 its error is below 2^-28."""
    k = np.arange(1.0, order + 1)
    choose = np.cumsum(np.log((order - k + 1) / k))[1:]
    with np.errstate(divide="ignore"):
        grown = np.where(moments < 30, np.log(np.expm1(np.minimum(moments, 30.0))), moments)[: order - 1]
    logs = choose + (order - k[1:]) * math.log(rest) + k[1:] * math.log(rate) + grown
    with np.errstate(over="ignore"):
        return float(np.exp(np.maximum(logs, _RARE)).sum()) * (1 + 2.0**-27)


def _moments(leaf: Leaf, rate: float, rest: float, at: Array) -> Array:
    """The mean under Q of r(q (P/Q - 1)) at each order, from above, for one mechanism.

    Its atoms dominate: dividing a loss between two raises the mean of a convex function. Losses beyond the largest,
    where X = P/Q > T, are bounded by moments: r <= X^a, and E[X^a; X > T] <= T^{a-b} E[X^b] for b >= a. The outcomes of
    Q alone have y = -q.
    """
    from tacit.accounting import dominating_pairs

    if isinstance(leaf, ApproximateDp):  # what is lost for certain is counted apart
        leaf = PureDp(leaf.epsilon)
    atoms = dominating_pairs.far(leaf, 1 / 24)
    if atoms is None:
        return np.full(at.size, np.inf)
    ratio = np.exp(-atoms.loss)
    keep = atoms.mass * ratio > 0
    under, loss = (atoms.mass * ratio)[keep], atoms.loss[keep]
    off = np.append(rate * np.expm1(loss), -rate)
    weight = np.append(under, max(0.0, 1.0 - float(under.sum())) + 2.0**-45) * (1 + atoms.error + 2.0**-36)
    with np.errstate(over="ignore", invalid="ignore"):
        power = at[:, None] * np.log1p(np.maximum(off, -1 + rest / 2 if rest else -1.0))
        raised = np.where(power < 600, np.expm1(np.minimum(power, 600.0)), np.inf)
        excess = np.maximum(raised - at[:, None] * off, 0.0) + 2.0**-50 * (np.abs(raised) + at[:, None] * np.abs(off))
        inside = excess @ weight
        grid = renyi_orders()
        tail = _curve(leaf, grid - 1) * (1 + MARGIN)
        top = float(loss.max())
        beyond = [float(np.min(np.where(grid >= order, tail - (grid - order) * top, np.inf))) for order in at]
        outside = np.exp(np.minimum(beyond, 700.0)) if atoms.infinite else np.zeros(at.size)
    return np.where(np.isfinite(inside), inside + outside, np.inf)
