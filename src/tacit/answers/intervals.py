"""Error bars from the exact law of the noise: they cover the bounded, clamped value with at least the confidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.answers.recipe import Mean, Noisy

Floats = npt.NDArray[np.float64]
_HALVINGS = 40  # leave less than 1e-12 of the declared range


def half_width(noisy: Noisy, confidence: Fraction) -> Fraction:
    """The half-width of a released count or sum: the least that has the confidence, in the user's units."""
    return noisy.mechanism.error(confidence) * noisy.unit


def mean(
    sums: list[int], counts: list[int], how: Mean, sum_of: Noisy, count_of: Noisy, confidence: Fraction
) -> tuple[Floats, Floats]:
    """The interval of each mean: all values that the released sum and count do not reject.

    **Theorem.** Let S and N be the true centered sum and count of a group, theta = S/N, and s, n what was released.
    Then s - theta n = Z_S - theta Z_N depends on noise alone. The interval is {theta : |s - theta n| <= Q(theta)} with
    P(|Z_S - theta Z_N| > Q(theta)) <= alpha for each theta, so it misses the true theta with probability at most alpha.

    *The tail.* A discrete Laplace magnitude of scale b is at most a continuous one plus 1 (2q^m/(1 + q) <= q^(m-1)), so
    with a shared sign |Z_S - theta Z_N| <= |X_S - theta X_N| + 1 + |theta| for continuous X; and for scales a and
    c = |theta| b, P(|X_S - theta X_N| > t) = (a^2 exp(-t/a) - c^2 exp(-t/c)) / (a^2 - c^2).

    *It is an interval.* Q is even and convex in theta (the law is log-concave and symmetric: Lagoa, Li, Sznaier 2005),
    and its slope is at most that of its asymptote, q = b ln(1/alpha) + 1. If n > q, then s - theta n - Q(theta) and
    s - theta n + Q(theta) both fall strictly, so each has one zero, found by bisection; rounding goes outward. If
    n <= q the count may as well be zero, and the interval is all that is declared.
    """
    chance = float(1 - confidence)
    s, n = np.array(sums, dtype=np.float64), np.array(counts, dtype=np.float64)
    scale_s, scale_n = float(sum_of.mechanism.scale), float(count_of.mechanism.scale)
    most = float((how.upper - how.lower) / 2 / sum_of.unit)
    known = n > scale_n * math.log(1 / chance) + 1
    middle = np.clip(np.divide(s, n, out=np.zeros_like(s), where=known), -most, most)
    side = np.repeat([1.0, -1.0], len(s))  # both ends at once: the lower one is the upper one, mirrored
    s, n = np.tile(s, 2), np.tile(n, 2)

    def rejects(x: Floats) -> npt.NDArray[np.bool_]:
        size = np.abs(x)
        excess = np.abs(s - side * x * n) - (1 + size)
        return _tail(excess, scale_s, size * scale_n) <= chance

    edges = np.where(np.tile(known, 2), _edge(rejects, side * np.tile(middle, 2), most), most)
    high, low = np.split(side * edges, 2)
    center, unit = float(how.center), float(sum_of.unit)
    lower, upper = float(how.lower), float(how.upper)
    return np.clip(center + unit * low, lower, upper), np.clip(center + unit * high, lower, upper)


def _edge(rejects: Callable[[Floats], npt.NDArray[np.bool_]], inside: Floats, most: float) -> Floats:
    """The last point from `inside` up to `most` that is not rejected, or a hair beyond: the outer end is kept."""
    near, far = inside.copy(), np.full_like(inside, most)
    open_ended = ~rejects(far)
    for _ in range(_HALVINGS):
        half = (near + far) / 2
        out = rejects(half)
        far = np.where(out, half, far)
        near = np.where(out, near, half)
    return np.where(open_ended, most, far)


def _tail(t: Floats, a: float, c: Floats) -> Floats:
    """P(|X + Y| > t) for independent Laplace X and Y of scales a and c; one where t is not positive.

    Near a = c the quotient cancels; there both scales are taken as the larger one, which makes the tail larger.
    """
    big = np.maximum(a, c)
    equal = np.abs(a - c) < 1e-3 * big
    safe = np.where(equal, 2 * a + 1, c)
    t = np.maximum(t, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", under="ignore"):
        second = np.where(safe > 0, safe**2 * np.exp(-t / np.where(safe > 0, safe, 1.0)), 0.0)
        apart = (a**2 * np.exp(-t / a) - second) / (a**2 - safe**2)
        alike = np.exp(-t / big) * (1 + t / (2 * big))
    return np.where(equal, alike, apart)
