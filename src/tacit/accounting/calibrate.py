"""The least noise for a guarantee: closed form, or one search on the distribution's own formula.

What is returned is proven: delta of it is bounded from above, rounding included (`docs/proofs/accounting.md`). Memory
and time do not grow with the parameters.

>>> gaussian_sigma(Fraction(1), Fraction(1, 10**5))
Fraction(466329, 125000)
>>> float(gaussian_sigma(Fraction(1), Fraction(1, 10**5)))
3.730632
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tacit.accounting.convert import delta_from_rho
from tacit.accounting.rounding import MARGIN, ball_above, double_above, double_below
from tacit.arithmetic import largest_power_of_ten, to_interval, to_rational, working_precision
from tacit.errors import ParameterError

if TYPE_CHECKING:
    from flint import arb

_DIGITS = 7  # significant digits of what is returned, rounded up
_BITS = 256
_WIDE = Fraction(2) ** 28  # the variance from which tails are integrals with corrections, not sums
_SMOOTH = 4  # the variance from which coordinates add up to one discrete Gaussian (`merge_repetitions`)
_LONGEST = 2**12  # integers on each side of the distribution of a sum that is computed by convolution, at most
_LARGEST = Fraction(10) ** 300


def laplace_scale(epsilon: Fraction, sensitivity: int) -> Fraction:
    """The least scale of discrete Laplace noise that is epsilon-DP: sensitivity/epsilon, exactly."""
    price, _ = _check_parameters(epsilon, Fraction(1, 2), sensitivity, 1)
    return Fraction(max(sensitivity, 1)) / price


def gaussian_sigma(epsilon: Fraction, delta: Fraction) -> Fraction:
    """The least sigma of real Gaussian noise on a vector that moves by one in L2 (Balle and Wang 2018, theorem 8)."""
    price, lost = _check_parameters(epsilon, delta, 1, 1)
    return _search(lambda sigma: _real_delta(price, sigma), lost, Fraction(_start(price, lost)))


def gaussian_variance(epsilon: Fraction, delta: Fraction, shift: int, coordinates: int = 1) -> Fraction:
    """About the least variance of discrete Gaussian noise for (epsilon, delta), where `coordinates` move by `shift`.

    What is returned is safe: `discrete_gaussian_delta` of it, an upper bound, is at most delta. It is the least to six
    digits.
    """
    price, lost = _check_parameters(epsilon, delta, shift, coordinates)
    far = max(shift, 1)
    start = Fraction(_start(price, lost)) * Fraction(math.sqrt(coordinates)) * far
    found = _search(lambda sigma: discrete_gaussian_delta(price, sigma**2, far, coordinates), lost, start)
    variance = _up(found * found)
    while discrete_gaussian_delta(price, variance, far, coordinates) > lost:
        variance = _up(variance * (1 + Fraction(1, 10**_DIGITS)))
    return variance


def _real_delta(epsilon: Fraction, sigma: Fraction) -> float:
    """Phi(m/2 - e/m) - e^e Phi(-m/2 - e/m), m = 1/sigma, in interval arithmetic."""
    with working_precision(_bits(epsilon, sigma)):
        half = 1 / (2 * sigma)
        return ball_above(
            _difference(to_interval(epsilon * sigma - half), epsilon, to_interval(epsilon * sigma + half))
        )


def _difference(near: arb, epsilon: Fraction, far: arb) -> arb:
    """P(N > near) - e^epsilon P(N > far) for a standard normal N."""
    root = to_interval(Fraction(1, 2)).sqrt()
    return ((near * root).erfc() - to_interval(epsilon).exp() * (far * root).erfc()) / 2


def discrete_gaussian_delta(epsilon: Fraction, variance: Fraction, shift: int, coordinates: int = 1) -> float:
    """delta(epsilon) of discrete Gaussian noise where `coordinates` move by `shift`, from above.

    **Theorem.** For one coordinate, with f(k) = exp(-k^2/(2v)) and x = e v/s - s/2, it is the sum over k > x of
    (f(k) - e^e f(k + s))/Z, and Z >= sqrt(2 pi v). c coordinates of variance at least 4 are one of variance c v that
    moves by c s (`merge_repetitions`), to a relative error of 3 c e^{-pi^2 v}. Narrower ones are convolved, or, where
    there are many, bounded by their zCDP.
    """
    if coordinates == 1 or variance >= _SMOOTH:
        merged = 1 + 3.0 * coordinates * math.exp(-(math.pi**2) * double_below(min(variance, Fraction(70))))
        wide, far = variance * coordinates, shift * coordinates
        one = _tails(epsilon, wide, far) if wide > _WIDE else _sum(epsilon, wide, far)
        return min(1.0, one * (merged if coordinates > 1 else 1.0) * (1 + 2.0**-50))
    if 13 * 13 * variance * coordinates <= _LONGEST**2:
        return min(1.0, _product(epsilon, variance, shift, coordinates))
    return delta_from_rho(double_above(Fraction(coordinates * shift**2) / (2 * variance)), double_below(epsilon))


def _tails(price: Fraction, variance: Fraction, far: int) -> float:
    """The sum for wide noise: T(m) - e^e T(m + s) over Z, where m is the first integer above x and T(m) is the tail.

    **Theorem** (Euler and Maclaurin, with its remainder). T(m), the sum of f(k) over k >= m, is the integral from m on
    plus f(m)/2 - f'(m)/12 + f'''(m)/720, to an error of at most 1/720 of the integral of |f''''|. With z = m/sigma,
    f' = -z f/sigma, f''' = (3z - z^3) f/sigma^3 and f'''' = (z^4 - 6 z^2 + 3) f/sigma^4.
    """
    start = price * variance / far - Fraction(far, 2)
    first = math.floor(start) + 1
    with working_precision(_bits(price, variance, Fraction(far))):
        sigma = to_interval(variance).sqrt()
        near, beyond = to_interval(Fraction(first)) / sigma, to_interval(Fraction(first + far)) / sigma
        growth = to_interval(price).exp()
        whole = sigma * (2 * sigma.pi()).sqrt()
        difference = _difference(near, price, beyond) + (_ends(near, sigma) - growth * _ends(beyond, sigma)) / whole
        error = (_remainder(near) + growth * _remainder(beyond)) / (720 * sigma**3 * whole)
        return ball_above(difference + error)


def _ends(z: arb, sigma: arb) -> arb:
    """f(m)/2 - f'(m)/12 + f'''(m)/720."""
    return (-(z**2) / 2).exp() * (to_interval(Fraction(1, 2)) + z / (12 * sigma) + (3 * z - z**3) / (720 * sigma**3))


def _remainder(z: arb) -> arb:
    """At least the integral of |t^4 - 6 t^2 + 3| exp(-t^2/2) from z on."""
    root = (2 * z.pi()).sqrt()
    if not z > 0:
        return 12 * root
    return (z**3 + 9 * z) * (-(z**2) / 2).exp() + 6 * root * (z * to_interval(Fraction(1, 2)).sqrt()).erfc()


def _bits(*numbers: Fraction) -> int:
    """Bits at which nothing that cancels below loses what is left."""
    sizes = (max(abs(n.numerator).bit_length() - n.denominator.bit_length(), 0) for n in numbers)
    return _BITS + 4 * sum(sizes) if numbers else _BITS


def _sum(price: Fraction, variance: Fraction, far: int) -> float:
    """The sum itself, for a variance of at most 2^28: positive terms, at most 2^19 of them, in doubles.

    **Theorem.** With w = floor(x), the loss of k > x above epsilon is (j - f) s/v with j = k - w >= 1 and f = x - w in
    [0, 1). f is taken at the double below it, g, so 0 <= f - g < 2^-53: j - g is at least j - f, positive, and at most
    2^-53 more; its rounding and that of the product are relative. Each term grows with the loss, so the sum is not
    below the real one, however near an integer x is.
    """
    import numpy as np

    start = price * variance / far - Fraction(far, 2)
    sigma = math.sqrt(variance)
    if start < -40 * sigma - 60:
        return 1.0
    whole = math.floor(start)
    first = max(whole + 1, math.floor(-13 * sigma) - 1)
    last = math.ceil(math.hypot(max(double_above(start), 0.0), 9 * sigma)) + 2
    if last - first > 2**20:  # pragma: no cover - the roots of a small and of a large number differ by less
        return 1.0
    k = np.arange(first, last + 1.0)
    # the loss above epsilon, without cancellation
    above = ((k - whole) - double_below(start - whole)) * double_above(Fraction(far) / variance)
    terms = np.exp(-((k / sigma) ** 2) / 2) * -np.expm1(-above)
    total = sigma * math.sqrt(2 * math.pi)
    if sigma < 3:
        near = np.arange(-60.0, 61.0)
        total = float(np.exp(-((near / sigma) ** 2) / 2).sum()) * (1 - MARGIN)
    beyond = math.exp(-((last / sigma) ** 2) / 2)  # at least what is left out, as last > sigma
    return ((float(terms.sum()) + beyond * max(1.0, sigma**2 / last)) / total + 1e-37) * (1 + MARGIN)


def _product(price: Fraction, variance: Fraction, shift: int, coordinates: int) -> float:
    """The same for several coordinates of narrow noise: the distribution of their sum, from positive terms only."""
    import numpy as np

    width = math.sqrt(variance)
    reach = math.ceil(13 * width) + 2
    k = np.arange(-reach, reach + 1.0)
    one = np.exp(-((k / width) ** 2) / 2)
    one /= one.sum()
    law, left = np.ones(1), coordinates
    while left:  # binary powers; what is cut off at 13 standard deviations is below 1e-36 each time
        law = np.convolve(law, one) if left & 1 else law
        left >>= 1
        one = _cut(np.convolve(one, one), 13 * math.sqrt(variance * coordinates)) if left else one
    middle = law.size // 2
    # shift (k - x)/v, the loss above epsilon, where x is a rational: as in `_sum`
    start = price * variance / shift - Fraction(coordinates * shift, 2)
    whole = math.floor(start)
    places = np.arange(-middle, law.size - middle) - float(max(whole, -(2**52)))
    above = (places - double_below(start - whole)) * double_above(shift / variance)
    kept = above > 0
    return float(law[kept] @ -np.expm1(-above[kept])) * (1 + 4 * coordinates * 2.0**-44 + MARGIN) + 1e-33


def _cut(law: Any, reach: float) -> Any:
    """The middle of a distribution."""
    middle, far = law.size // 2, math.ceil(reach) + 2
    return law[max(0, middle - far) : middle + far + 1]


def _start(epsilon: Fraction, delta: Fraction) -> float:
    """A sigma for real noise, by a few steps on the formula: the bracket of the search."""
    low, high = 1e-12, 2.0
    while _real_delta(epsilon, Fraction(high)) > delta:
        low, high = high, 2 * high
    for _ in range(12 if low >= 2 else 40):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if _real_delta(epsilon, Fraction(middle)) > delta else (low, middle)
        if high < low * 1.01:
            break
    return high


def _search(delta_at: Callable[[Fraction], float], delta: Fraction, start: Fraction) -> Fraction:
    """The least sigma whose delta is at most `delta`, rounded up, near `start`.

    The search proves nothing; what it finds is checked, and made larger until it is safe. Deltas are told as doubles,
    so one next to 1 is the double below it: no other is ever found to be within it.
    """
    from scipy.optimize import brentq

    delta = Fraction(double_below(delta))
    goal = math.log(delta)

    def over(factor: float) -> float:
        return math.log(max(delta_at(Fraction(factor) * start), 1e-300)) - goal

    low, high = 0.98, 1.02
    while over(high) > 0:
        low, high = high, high * 1.2
    while over(low) <= 0 and low > 1e-6:
        low, high = low / 1.2, low
    near = brentq(over, low, high, xtol=1e-12, rtol=1e-11) if over(low) > 0 else high
    found = _up(Fraction(near) * start)
    while delta_at(found) > delta:
        found = _up(found * (1 + Fraction(1, 10**_DIGITS)))
    return found


def _up(number: Fraction) -> Fraction:
    """The number with seven significant digits, rounded up."""
    unit = largest_power_of_ten(number) / 10 ** (_DIGITS - 1)
    return Fraction(math.ceil(number / unit) * unit)


def _check_parameters(epsilon: Any, delta: Any, shift: int, coordinates: int) -> tuple[Fraction, Fraction]:
    price, lost = to_rational("epsilon", epsilon), to_rational("delta", delta)
    if price <= 0:
        raise ParameterError("epsilon", f"must be positive, got {epsilon}", fix="choose an epsilon above 0")
    if not Fraction(1, 10**30) <= lost < 1:
        raise ParameterError("delta", f"must be in [1e-30, 1), got {delta}", fix="choose a delta of 1e-6, say")
    if shift < 0 or coordinates < 1:
        raise ParameterError("shift", "nothing moves by less than zero", fix="give whole numbers above zero")
    if price > 2**64 or price < 1 / _LARGEST:
        raise ParameterError("epsilon", "must be at most 2^64, and not below 1e-300", fix="epsilon=0.5, say")
    if max(shift, coordinates) > _LARGEST:
        raise ParameterError("shift", "a number has more than 300 digits", fix="count in coarser units")
    return price, lost
