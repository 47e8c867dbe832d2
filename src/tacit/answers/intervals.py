"""Error bars from the exact law of the noise: they cover the bounded, clamped value with at least the confidence."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.answers.recipe import Mean, Noisy, Spread, Total
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.query.types import Type

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
    c = |theta| b, P(|X_S - theta X_N| > t) = (a^2 exp(-t/a) - c^2 exp(-t/c)) / (a^2 - c^2). A discrete Gaussian
    magnitude is at most a continuous one plus 1 too (Canonne, Kamath, Steinke 2020), and X_S - theta X_N is then
    Gaussian.

    *It is an interval.* Q is even and convex in theta (the law is log-concave and symmetric: Lagoa, Li, Sznaier 2005),
    and its slope is at most that of its asymptote, q = b ln(1/alpha) + 1, or z sigma + 1 for Gaussian noise. If n > q,
    then s - theta n - Q(theta) and s - theta n + Q(theta) both fall strictly, so each has one zero, found by bisection;
    rounding goes outward. If n <= q the count may as well be zero, and the interval is all that is declared.
    """
    chance = float(1 - confidence)
    s, n = np.array(sums, dtype=np.float64), np.array(counts, dtype=np.float64)
    tail, slope = _law(sum_of.mechanism, count_of.mechanism, chance)
    most = float((how.upper - how.lower) / 2 / sum_of.unit)
    known = n > slope + 1
    middle = np.clip(np.divide(s, n, out=np.zeros_like(s), where=known), -most, most)
    side = np.repeat([1.0, -1.0], len(s))  # both ends at once: the lower one is the upper one, mirrored
    s, n = np.tile(s, 2), np.tile(n, 2)

    def rejects(x: Floats) -> npt.NDArray[np.bool_]:
        size = np.abs(x)
        excess = np.abs(s - side * x * n) - (1 + size)
        return tail(excess, size) <= chance

    edges = np.where(np.tile(known, 2), _edge(rejects, side * np.tile(middle, 2), most), most)
    high, low = np.split(side * edges, 2)
    center, unit = float(how.center), float(sum_of.unit)
    lower, upper = float(how.lower), float(how.upper)
    return np.clip(center + unit * low, lower, upper), np.clip(center + unit * high, lower, upper)


def total(how: Total, sum_of: Noisy, count_of: Noisy, confidence: Fraction) -> Fraction:
    """The half-width of a sum made of a centered sum and a count: no smaller than any that has the confidence.

    Its error is u |Z_S + theta Z_N|, with u the unit of the centered sum and theta = center/u, and has the tail that
    `mean` has. It does not depend on the data.
    """
    chance = float(1 - confidence)
    tail, _ = _law(sum_of.mechanism, count_of.mechanism, chance)
    theta = np.array([abs(float(how.center / sum_of.unit))])
    low, high = 0.0, 1.0
    while tail(np.array([high]), theta)[0] > chance:
        low, high = high, 2 * high
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(np.array([middle]), theta)[0] > chance else (low, middle)
    steps = Fraction(high * (1 + 1e-12)) + 1 + Fraction(theta[0])
    half = Fraction(1, 2) if how.type is Type.INT else Fraction(0)  # a sum of integers is shown as the nearest one
    return steps * sum_of.unit + half


def _law(
    sum_of: Laplace | Gaussian, count_of: Laplace | Gaussian, chance: float
) -> tuple[Callable[[Floats, Floats], Floats], float]:
    """P(|X_S - theta X_N| > t) as a function of t and theta, and how steeply its quantile grows with theta."""
    if isinstance(sum_of, Laplace) and isinstance(count_of, Laplace):
        scale_s, scale_n = float(sum_of.scale), float(count_of.scale)
        return lambda t, theta: _tail(t, scale_s, theta * scale_n), scale_n * math.log(1 / chance)
    from scipy.special import erfc, erfcinv

    assert isinstance(sum_of, Gaussian)
    assert isinstance(count_of, Gaussian)
    variance_s, variance_n = float(sum_of.variance), float(count_of.variance)

    def tail(t: Floats, theta: Floats) -> Floats:
        deviation = np.sqrt(2 * (variance_s + theta**2 * variance_n))
        return np.asarray(erfc(np.maximum(t, 0.0) / deviation)) * (1 + 1e-12)

    return tail, math.sqrt(2 * variance_n) * float(erfcinv(chance))


def spread(
    released: tuple[list[int], list[int], list[int]],
    how: Spread,
    parts: tuple[Noisy, Noisy, Noisy],
    confidence: Fraction,
) -> tuple[Floats, Floats]:
    """The interval of each variance: the least and the largest value in the box that holds all three true sums.

    **Theorem.** Each of the squares Q, the sum S and the count N leaves its own interval with probability at most
    alpha/3, so the box holds all three with at least the confidence. On the box Q/N - (S/N)^2 is largest where Q is
    largest and |S| least, and there, as a function of N, at an end or at its turning point 2 S^2/Q; likewise least.
    """
    level = 1 - (1 - confidence) / 3
    units = [float(part.unit) for part in parts]
    widths = [float(part.mechanism.error(level)) for part in parts]
    q, s, n = (np.array(numbers, dtype=np.float64) for numbers in released)
    most = float((how.mean.upper - how.mean.lower) / 2) ** 2
    low_n, high_n = n - widths[2], n + widths[2]
    known = low_n > (1 if how.sample else 0)
    low_n, high_n = np.where(known, low_n, 2.0), np.where(known, high_n, 3.0)
    high_q, low_q = (q + widths[0]) * units[0], (q - widths[0]) * units[0]
    size = np.abs(s) * units[1]
    near, far = np.maximum(size - widths[1] * units[1], 0.0), size + widths[1] * units[1]
    high = np.max(_turns(high_q, near, low_n, high_n), axis=0) + most / 2
    low = np.min(_turns(low_q, far, low_n, high_n), axis=0) + most / 2
    if how.sample:
        high, low = np.clip(high, 0, most) * low_n / (low_n - 1), np.clip(low, 0, most) * high_n / (high_n - 1)
    cap = 2 * most if how.sample else most
    high, low = np.where(known, np.clip(high, 0, cap), cap), np.where(known, np.clip(low, 0, cap), 0.0)
    return (np.sqrt(low), np.sqrt(high)) if how.root else (low, high)


def _turns(q: Floats, s: Floats, low: Floats, high: Floats) -> Floats:
    """q/n - (s/n)^2 at both ends of n and at its turning point, if that lies between."""
    with np.errstate(divide="ignore", invalid="ignore"):
        turn = np.where(q > 0, 2 * s**2 / q, low)
    return np.stack([q / n - (s / n) ** 2 for n in (low, high, np.clip(turn, low, high))])


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
