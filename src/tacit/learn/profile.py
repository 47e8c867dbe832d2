"""What a random linear term in the objective costs: delta(epsilon) of objective perturbation, from above.

What is released is the minimizer w of J(w) + b.w, where b has independent normal coordinates of deviation sigma.

**Theorem.** Let R bound the rows, L the slope, K the corners of a label's residual, and let h(s) be the loss's volume
at the ratio R^2/penalty, a concave function. For neighbors by one row more or less, with mu = L R/sigma and
V ~ N(mu^2/2, mu^2),

    delta(epsilon) <= K E(1 - exp(epsilon - psi(V)))_+,   psi(v) = max of s v + h(s) over s in [0, 1].

**Proof.** J is strongly convex with a Lipschitz gradient, so w <-> b = -grad J(w) is one to one and Lipschitz both
ways, and w has the density phi_sigma(b(w)) det H(w) almost everywhere. A row more, x with the residual r(w), changes b
to b - g, g = x r^T, and H to H + x x^T (x) f''. Let w be drawn from the side that has the row, and b be the noise of
that side, which is normal. The logarithm of the ratio of the densities is

    (|b + g|^2 - |b|^2)/(2 sigma^2) + ln det(I + H^-1 (x x^T (x) f'')).

Drawn from the other side it is the same with -g for g and the second term subtracted, which is not negative: less. As
H >= penalty, the second term is at most ln det(I + f'' R^2/penalty) <= h(s), s being the share of the residual. The
first is convex in the residual and zero at zero, so at most s times the largest of its values V_j at the K corners. The
corners depend on the row alone, so each V_j is N(m^2/2, m^2) with m <= mu. psi increases; so the loss is at most the
largest psi(V_j), and the expectation at most the sum of K. It grows with m: exp(-psi(v)) is the least of
r^s exp(-h(s)) at r = exp(-v), concave in the ratio of likelihoods r, so it is an f-divergence of two normal
distributions at distance m.

Where f'' is the same for all residuals psi(v) = max(0, v) + h: the determinant is paid in full. For the logistic loss
h(s) = ln(1 + s (1 - s) R^2/penalty) is zero at s = 1, where noise has to hide the most: from a penalty of R^2/epsilon
on, the determinant costs nothing that shows.

**Theorem.** For neighbors by replacing a row, and any theta, delta(epsilon) is at most

    K D(mu, h) + K^2 D(2 mu, h(s) + (1 - s) theta) + K P(V > theta),

where D(mu, h) is the expectation above. Proof: b changes by g - g', and the first term is convex in both residuals.
Call its values at their corners V_jk, with 0 for a residual that is zero. In the second residual it is at most its
largest value at a corner: s max_j V_j0, or (1 - s) V_0k + s max_j V_jk for some k. The second term, now a ratio of
determinants, is at most h(s). All V_0k are at most theta, but for K P(V > theta). The V_jk are N(m^2/2, m^2) with
m <= 2 mu.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.errors import ParameterError
from tacit.learn.losses import Array, ConvexLoss
from tacit.privacy.unit import Neighbors

_SHARES = (1 - np.cos(np.linspace(0, math.pi, 193))) / 2  # finer at the ends, where volumes bend the most
_REACH = 9.0  # standard deviations beyond the point where the loss passes epsilon
_NODES = 224
_PARTS = (0.55, 0.65, 0.8, 1.0)  # of epsilon: the thetas that are tried
_AMPLE = 30.0  # of epsilon: with less, a penalty is next to nothing already
_TURNS = 8
_UP = 1 + 2.0**-48  # above the rounding of a product
Volume = Callable[[Array], Array]


def compute_delta(
    epsilon: float, noise: float, *, loss: ConvexLoss, norm: float, penalty: float, neighbors: Neighbors
) -> float:
    """delta(epsilon) of the minimizer with a random term of deviation `noise`, from above; at most 1."""
    mu, ratio = loss.slope * norm / noise * _UP, norm**2 / penalty * _UP
    corners = loss.corners
    if neighbors is Neighbors.ADD_REMOVE:
        return min(1.0, corners * hockey_stick_bound(epsilon, mu, lambda shares: loss.volume(shares, ratio)))
    one = hockey_stick_bound(epsilon, mu, lambda shares: loss.volume(shares, ratio))
    both = min(_replacement_terms(epsilon, mu, loss, ratio, part * epsilon) for part in _PARTS)
    return min(1.0, corners * one + both)


def _replacement_terms(epsilon: float, mu: float, loss: ConvexLoss, ratio: float, theta: float) -> float:
    """The last two terms of the second theorem."""
    from scipy.special import ndtr

    def volume(shares: Array) -> Array:
        return np.asarray(loss.volume(shares, ratio) + (1 - shares) * theta)

    seldom = float(ndtr(mu / 2 - theta / mu)) * (1 + 2.0**-40)
    return loss.corners**2 * hockey_stick_bound(epsilon, 2 * mu, volume) + loss.corners * seldom


def max_determinant_cost(loss: ConvexLoss, ratio: float) -> float:
    """The largest volume: what the determinant alone can cost. Rounded up a little, for the shares in between."""
    return float(_concave_upper_bound(np.asarray(loss.volume(_SHARES, ratio))[None, :])[0])


def calibrate_deviation(
    epsilon: float, delta_: float, *, loss: ConvexLoss, norm: float, penalty: float, neighbors: Neighbors
) -> float:
    """About the least deviation of the random term for (epsilon, delta); the curve above is at most delta there."""
    if max_determinant_cost(loss, norm**2 / penalty) >= epsilon:
        raise ParameterError(
            "penalty",
            f"{penalty:.3g} is too small for epsilon = {epsilon:.3g}",
            fix=f"choose {smallest_penalty(epsilon / 4, loss=loss, norm=norm):.3g} or more, or leave it out",
        )

    def enough(noise: float) -> bool:
        return compute_delta(epsilon, noise, loss=loss, norm=norm, penalty=penalty, neighbors=neighbors) <= delta_

    low = high = loss.slope * norm / epsilon
    while not enough(high):
        low, high = high, 2 * high
        if high > 1e12 * loss.slope * norm:
            raise ParameterError("penalty", "is too small for this epsilon and delta", fix="choose a larger one")
    while enough(low):
        low, high = low / 2, low
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def smallest_penalty(room: float, *, loss: ConvexLoss, norm: float) -> float:
    """About the least penalty at which the determinant alone costs at most `room`, or 30 where that is less."""
    room = min(room, _AMPLE)
    low, high = 0.0, norm**2 * loss.bend
    while max_determinant_cost(loss, norm**2 / high) > room:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if max_determinant_cost(loss, norm**2 / middle) <= room else (middle, high)
    return high


def hockey_stick_bound(epsilon: float, mu: float, volume: Volume) -> float:
    """E(1 - exp(epsilon - psi(V)))_+ for V ~ N(mu^2/2, mu^2), from above.

    psi is convex, so on an interval it is below its chord, for which the integral has a closed form. It is itself
    bounded from above between the shares of a grid (`_concave_upper_bound`). Only rounding is left, for which a little
    is added.
    """
    from scipy.special import log_ndtr

    heights = np.asarray(volume(_SHARES))

    def psi(z: Array) -> Array:
        return _concave_upper_bound((mu**2 / 2 + mu * z)[:, None] * _SHARES + heights)

    start = _last_below(psi, epsilon, -_REACH - mu)
    nodes = np.linspace(start, max(start, -mu) + _REACH + mu, _NODES)
    loss = np.maximum(psi(nodes), epsilon)
    rate = np.diff(loss) / np.diff(nodes)
    left, right = nodes[:-1], nodes[1:]
    plain = _log_difference(log_ndtr(-left), log_ndtr(-right))
    tilted = _log_difference(log_ndtr(-left - rate), log_ndtr(-right - rate))
    exponent = epsilon - loss[:-1] + rate * left + rate**2 / 2
    parts = np.exp(plain) - np.exp(exponent + tilted)
    tail = math.exp(float(log_ndtr(-nodes[-1])))
    below = math.exp(float(log_ndtr(start))) * -math.expm1(epsilon - float(loss[0]))
    error = 2.0**-42 * (1 + epsilon + mu**2 + start**2) * math.exp(float(log_ndtr(-start)))
    total = float(np.sum(np.maximum(parts, 0))) + tail + below + error
    return max(total, math.ulp(0.0))  # it is above zero, however little


def _last_below(rising: Callable[[Array], Array], level: float, low: float) -> float:
    """About the last point, from `low` on, at which a function that rises is below the level; from below."""
    high = low + 1
    while rising(np.array([high]))[0] < level:
        low, high = high, high + 2 * (high - low)
    for _ in range(_TURNS):
        points = np.linspace(low, high, 33)
        above = int(np.argmax(rising(points) >= level))
        low, high = float(points[max(above - 1, 0)]), float(points[above])
    return low


def _log_difference(one: Array, other: Array) -> Array:
    """ln(e^one - e^other) for one > other."""
    return np.asarray(one + np.log(-np.expm1(np.minimum(other - one, -1e-300))))


def _concave_upper_bound(values: Array) -> Array:
    """An upper bound on the maximum of concave functions that are known at the shares of the grid, one a row.

    Between two points a concave function is below its secants on the left and on the right, extended.
    """
    slopes = np.diff(values) / np.diff(_SHARES)
    width = np.diff(_SHARES)
    from_left = values[:, :-1].copy()
    from_left[:, 1:] += np.maximum(slopes[:, :-1], 0) * width[1:]
    from_left[:, 0] = np.inf
    from_right = values[:, 1:].copy()
    from_right[:, :-1] += np.maximum(-slopes[:, 1:], 0) * width[:-1]
    from_right[:, -1] = np.inf
    return np.asarray(np.minimum(from_left, from_right).max(axis=1))
