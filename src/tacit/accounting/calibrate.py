"""The least noise for a guarantee: closed form, or one search on the law's own formula.

>>> gaussian_sigma(Fraction(1), Fraction(1, 10**5))
Fraction(466329, 125000)
>>> float(gaussian_sigma(Fraction(1), Fraction(1, 10**5)))
3.730632
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tacit.accounting.rounding import MARGIN
from tacit.arithmetic import rational
from tacit.errors import ParameterError

_DIGITS = 7  # significant digits of what is returned, rounded up
_WIDE = 1000.0  # the standard deviation from which the real law stands for the discrete one, with its error
_SMOOTH = 4  # the variance from which coordinates add up to one discrete Gaussian (`laws.merged`)


def laplace_scale(epsilon: Fraction, sensitivity: int) -> Fraction:
    """The least scale of discrete Laplace noise that is epsilon-DP: sensitivity/epsilon, exactly."""
    price, _ = _checked(epsilon, Fraction(1, 2), sensitivity, 1)
    return Fraction(max(sensitivity, 1)) / price


def gaussian_sigma(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The least sigma of real Gaussian noise on a vector that moves by one in L2 (Balle and Wang 2018, theorem 8)."""
    price, lost = _checked(epsilon, delta, 1, 1)
    return _search(
        lambda sigma: real_gaussian_delta(float(price), sigma), float(lost), _start(float(price), float(lost))
    )


def gaussian_variance(epsilon: Fraction, delta: Fraction, shift: int, coordinates: int = 1) -> Fraction:
    """About the least variance of discrete Gaussian noise for (epsilon, delta), where `coordinates` move by `shift`.

    What is returned is safe: `gaussian_delta` of it, an upper bound, is at most delta. It is the least to six digits.
    """
    price, lost = _checked(epsilon, delta, shift, coordinates)
    far = max(shift, 1)
    start = _start(float(price), float(lost)) * far * math.sqrt(coordinates)
    found = _search(lambda s: gaussian_delta(price, Fraction(s * s), far, coordinates), float(lost), start)
    variance = _up(found * found)
    while gaussian_delta(price, variance, far, coordinates) > float(lost):
        variance = _up(variance * (1 + Fraction(1, 10**_DIGITS)))
    return variance


def real_gaussian_delta(epsilon: float, sigma: float) -> float:
    """delta(epsilon) of real Gaussian noise that moves by one: Phi(m/2 - e/m) - e^e Phi(-m/2 - e/m), m = 1/sigma.

    As e^e phi(e/m + m/2) = phi(e/m - m/2) it is phi(a) (R(a) - R(b)), with Mills' ratio R: no exponential overflows.
    """
    from scipy.special import erfcx

    move = 1 / sigma
    near, far = epsilon / move - move / 2, epsilon / move + move / 2
    if near < -10:
        return 1.0
    ratio = math.sqrt(math.pi / 2) * (float(erfcx(near / math.sqrt(2))) - float(erfcx(far / math.sqrt(2))))
    return math.exp(-(near**2) / 2) / math.sqrt(2 * math.pi) * ratio * (1 + 2.0**-36)


def gaussian_delta(epsilon: Fraction, variance: Fraction, shift: int, coordinates: int = 1) -> float:
    """delta(epsilon) of discrete Gaussian noise where `coordinates` move by `shift`, from above.

    **Theorem.** For one coordinate, with f(k) = exp(-k^2/(2v)) and x = e v/s - s/2, it is the sum over k > x of
    (f(k) - e^e f(k + s))/Z, and Z >= sqrt(2 pi v). c coordinates of variance at least 4 are one of variance c v that
    moves by c s (`laws.merged`). For wide noise the sum is at most the integral plus V(g')/8, where g, the summand's
    positive part, has V(g') <= f(x) (2x + 2s)/(v Z) for x >= sqrt v, as e^e f(x + s) = f(x) and f is convex there.
    """
    if coordinates > 1 and variance < _SMOOTH:
        return _product(float(epsilon), float(variance), shift, coordinates)
    wide, far, price = float(variance) * coordinates, float(shift * coordinates), float(epsilon)
    sigma = math.sqrt(wide)
    start = price * wide / far - far / 2
    if sigma > _WIDE and start >= sigma:
        edge = math.exp(-(start**2) / (2 * wide)) * (start + far) / (4 * wide * sigma * math.sqrt(2 * math.pi))
        return (real_gaussian_delta(price, sigma / far) + edge) * (1 + MARGIN)
    return _sum(price, sigma, far, start)


def _sum(price: float, sigma: float, far: float, start: float) -> float:
    import numpy as np

    first = max(math.floor(start) + 1, math.floor(-13 * sigma) - 1)
    last = math.ceil(math.hypot(max(start, 0.0), 9 * sigma)) + 2
    k = np.arange(first, last + 1.0)
    # ln f(k) - ln f(start) and the loss above epsilon, each without cancellation
    above = (k - start) * far / sigma**2
    terms = np.exp(-((k / sigma) ** 2) / 2) * -np.expm1(-above)
    total = sigma * math.sqrt(2 * math.pi)
    if sigma < 3:
        whole = np.arange(-60.0, 61.0)
        total = float(np.exp(-((whole / sigma) ** 2) / 2).sum()) * (1 - MARGIN)
    beyond = math.exp(-((last / sigma) ** 2) / 2)  # at least what is left out, as last > sigma
    return ((float(terms.sum()) + beyond * sigma**2 / last) / total + 1e-37) * (1 + MARGIN)


def _product(price: float, variance: float, shift: int, coordinates: int) -> float:
    """The same for several coordinates of narrow noise: the law of their sum, by adding positive numbers only."""
    import numpy as np

    reach = math.ceil(13 * math.sqrt(variance)) + 2
    k = np.arange(-reach, reach + 1.0)
    one = np.exp(-(k**2) / (2 * variance))
    one /= one.sum()
    law, left = np.ones(1), coordinates
    while left:  # binary powers; what is cut off at 13 standard deviations is below 1e-36 each time
        law = np.convolve(law, one) if left & 1 else law
        left >>= 1
        one = _cut(np.convolve(one, one), 13 * math.sqrt(variance * coordinates)) if left else one
    middle = law.size // 2
    loss = shift * (np.arange(law.size) - middle) / variance + coordinates * shift**2 / (2 * variance)
    above = loss > price
    return float(law[above] @ -np.expm1(price - loss[above])) * (1 + MARGIN) + 1e-33


def _cut(law: Any, reach: float) -> Any:
    """The middle of a law."""
    middle, far = law.size // 2, math.ceil(reach) + 2
    return law[max(0, middle - far) : middle + far + 1]


def _start(epsilon: float, delta: float) -> float:
    """A sigma for real noise, by a few steps on the formula: the bracket of the search."""
    low, high = 1e-3, 2.0
    while real_gaussian_delta(epsilon, high) > delta:
        low, high = high, 2 * high
    for _ in range(12):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if real_gaussian_delta(epsilon, middle) > delta else (low, middle)
    return high


def _search(delta_at: Callable[[float], float], delta: float, start: float) -> Fraction:
    """The least sigma whose delta is at most `delta`, rounded up, near `start`."""
    from scipy.optimize import brentq

    goal = math.log(delta)

    def over(sigma: float) -> float:
        return math.log(max(delta_at(sigma), 1e-300)) - goal

    low, high = start * 0.98, start * 1.02
    while over(high) > 0:
        low, high = high, high * 1.2
    while over(low) <= 0:
        low, high = low / 1.2, low
    found = _up(Fraction(brentq(over, low, high, xtol=start * 1e-12, rtol=1e-11)))
    while delta_at(float(found)) > delta:
        found = _up(found * (1 + Fraction(1, 10**_DIGITS)))
    return found


def _up(number: Fraction) -> Fraction:
    """The number with seven significant digits, rounded up."""
    scale = Fraction(10) ** (_DIGITS - 1 - math.floor(math.log10(number)))
    return math.ceil(number * scale) / scale


def _checked(epsilon: Any, delta: Any, shift: int, coordinates: int) -> tuple[Fraction, Fraction]:
    price, lost = rational("epsilon", epsilon), rational("delta", delta)
    if price <= 0:
        raise ParameterError("epsilon", f"must be positive, got {epsilon}", fix="choose an epsilon above 0")
    if not Fraction(1, 10**30) <= lost < 1:
        raise ParameterError("delta", f"must be in [1e-30, 1), got {delta}", fix="choose a delta of 1e-6, say")
    if shift < 0 or coordinates < 1:
        raise ParameterError("shift", "nothing moves by less than zero", fix="give whole numbers above zero")
    return price, lost
