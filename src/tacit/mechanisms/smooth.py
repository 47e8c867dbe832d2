"""Smooth sensitivity: noise as large as the data calls for, without its size giving the data away."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.arithmetic import Number, to_interval, to_rational_between, working_precision
from tacit.frozen import set_fields
from tacit.mechanisms.validation import check_probability, check_range
from tacit.privacy.local import SmoothSensitivity, clamp_and_sort, median_smooth_sensitivity
from tacit.privacy.loss import PureDp
from tacit.sampling.bits import Bits
from tacit.sampling.lazy_uniform import draw_until_decided
from tacit.sampling.system import bits_or_system

if TYPE_CHECKING:
    from flint import arb

_LEAST, _MOST = Fraction(1, 10**9), Fraction(10**6)


@dataclass(frozen=True, init=False)
class SmoothMedian:
    """Releases f(x) + (S(x)/alpha) Z, rounded to the nearest integer and clamped to [lower, upper].

    f is the lower median of integers, S is its smooth sensitivity with decay `beta`, and Z has the density
    (1 + z^2)^(-3/2) / 2: Student's distribution with two degrees of freedom, divided by sqrt 2.

    **Theorem.** Under REPLACE the release is (3/2 alpha + 2 beta)-DP, with no delta.

    Proof. Before rounding, the density at a distance u from f(x) with s = S(x)/alpha is s^2 (s^2 + u^2)^(-3/2) / 2.
    (1) The derivative of its logarithm in u is -3u/(s^2 + u^2), at most 3/(2s) in size. Neighbors have
    |f(x) - f(y)| <= S(x) = alpha s: a loss of at most 3/2 alpha, with s held at that of x.
    (2) The derivative in ln s is 2 - 3s^2/(s^2 + u^2), between -1 and 2. Neighbors have |ln S(x) - ln S(y)| <= beta: a
    loss of at most 2 beta. The two add up. The real number is never stored: its rounding is drawn exactly, and rounding
    and clamping are post-processing. (Nissim, Raskhodnikova, Smith 2007 have the scheme; Bun, Steinke 2019 the
    distribution.)

    **The draw.** Z = (U - 1/2)/sqrt(U (1 - U)) for U uniform on (0, 1), since P(Z <= z) = (1 + z/sqrt(1 + z^2))/2. U is
    known by its first bits, and interval arithmetic rounds f(x) + s Z, with more bits of U where they are needed. `law`
    is the exact distribution of the release, as intervals. Time varies a little with the data: hide it from the
    analyst.

    **The default.** With many rows, of which c are on each grid step around the median, S is near 1/(c beta e), and the
    noise S/alpha is least at beta = epsilon/4, alpha = epsilon/3. It is within 3.05 S/alpha 95 times in 100.

    Parameters
    ----------
    lower, upper : int
        Ends of the declared range of the values, to which the data is clamped; public, with lower <= upper.
    alpha : number
        Privacy spent on the value, from 10^-9 to 10^6: the noise is S/alpha.
    beta : number
        Privacy spent on the size of the noise, from 10^-9 to 10^6: a larger one lets S follow the data more closely.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    See Also
    --------
    Quantile : Releases a point of the grid by its rank, with a public error.
    ProposedMedian : Noise for a proposed bound, if a private test finds it safe.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> median = SmoothMedian.calibrated(epsilon=1, lower=0, upper=100)
    >>> median.release([50] * 400 + [51] * 401, ReplayBits(b"example 4"))
    51
    >>> median.loss()
    PureDp(epsilon=Fraction(1, 1))
    """

    lower: int
    upper: int
    alpha: Fraction
    beta: Fraction

    def __init__(self, lower: int, upper: int, alpha: Number, beta: Number) -> None:
        low, high = check_range(lower, upper)
        set_fields(
            self,
            lower=low,
            upper=high,
            alpha=to_rational_between("alpha", alpha, _LEAST, _MOST),
            beta=to_rational_between("beta", beta, _LEAST, _MOST),
        )

    @classmethod
    def calibrated(cls, epsilon: Number, lower: int, upper: int) -> SmoothMedian:
        """Return the mechanism with alpha = epsilon/3 and beta = epsilon/4, which is epsilon-DP.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one release, from 4 10^-9 to 10^6.
        lower, upper : int
            Ends of the declared range of the values, with lower <= upper.

        Returns
        -------
        SmoothMedian
            The calibrated mechanism.
        """
        price = to_rational_between("epsilon", epsilon, 4 * _LEAST, _MOST)
        return cls(lower, upper, price / 3, price / 4)

    def loss(self) -> PureDp:
        """Return the privacy loss of a release, under REPLACE.

        Returns
        -------
        PureDp
            What `tacit.accounting` composes: epsilon = 3/2 alpha + 2 beta.
        """
        return PureDp(Fraction(3, 2) * self.alpha + 2 * self.beta)

    def release(self, values: Iterable[int], bits: Bits | None = None) -> int:
        """Release the noisy lower median.

        Parameters
        ----------
        values : iterable of int
            The private data, at least one value; each is clamped to [lower, upper]. How many there are is public.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        int
            An integer in [lower, upper].

        Raises
        ------
        ParameterError
            If there are no values, or one is not an integer.
        """
        bits = bits_or_system(bits)
        center, smooth = self._parts(values)
        if not smooth.width:
            return center  # the range is one point
        low, high = self.lower, self.upper
        wide = max(abs(low), abs(high)).bit_length()
        return draw_until_decided(
            bits, lambda word, known: _between(self._ends(center, smooth, word, known), low, high), wide
        )

    def law(self, values: Iterable[int]) -> dict[int, arb]:
        """Return the probability of every integer of the range, which depends on the private data.

        Parameters
        ----------
        values : iterable of int
            The private data, at least one value; each is clamped to [lower, upper]. How many there are is public.

        Returns
        -------
        dict of int to arb
            The probability of each release, as certified intervals at the working precision.
        """
        from flint import arb

        center, smooth = self._parts(values)
        if not smooth.width:
            return {center: arb(1)}
        low, high = self.lower, self.upper
        scale = smooth.value() / to_interval(self.alpha)
        below = [arb(0), *(_share((arb(k - center) + 0.5) / scale) for k in range(low, high)), arb(1)]
        return {k: below[k - low + 1] - below[k - low] for k in range(low, high + 1)}

    def error(self, confidence: Number, values: Iterable[int]) -> int:
        """Return the least w such that the release, before it is clamped, is within w of the true median.

        P(|Z| <= z) = z/sqrt(1 + z^2), so z = c/sqrt(1 - c^2), and w + 1/2 must reach s z. It depends on the values and
        is private: publish it for made-up data only.

        Parameters
        ----------
        confidence : number
            Probability that it is, strictly between 0 and 1.
        values : iterable of int
            The private data, at least one value; each is clamped to [lower, upper]. How many there are is public.

        Returns
        -------
        int
            The half width of a confidence interval, in steps of the grid.
        """
        level = check_probability("confidence", confidence)
        _, smooth = self._parts(values)
        with working_precision(256 + (self.upper - self.lower).bit_length()):
            width = smooth.value() / to_interval(self.alpha) * to_interval(level) / (1 - to_interval(level) ** 2).sqrt()
            return min(max(0, int((width - 0.5).upper().ceil().fmpz())), self.upper - self.lower)

    def _parts(self, values: Iterable[int]) -> tuple[int, SmoothSensitivity]:
        """f(x) and S(x)."""
        x = clamp_and_sort(values, self.lower, self.upper)
        return x[(len(x) - 1) // 2], median_smooth_sensitivity(x, self.lower, self.upper, self.beta)

    def _ends(self, center: int, smooth: SmoothSensitivity, word: int, known: int) -> tuple[arb | None, arb | None]:
        """Below and above all f(x) + s Z + 1/2 with U in [word, word + 1] / 2^known; None where there is no bound."""
        scale = smooth.value() / to_interval(self.alpha)
        low = _quantile(word, known) if word else None
        high = _quantile(word + 1, known) if word + 1 < 1 << known else None
        return (
            None if low is None else scale * low + center + 0.5,
            None if high is None else scale * high + center + 0.5,
        )


def _quantile(numerator: int, known: int) -> arb:
    """(U - 1/2)/sqrt(U (1 - U)) for U = numerator / 2^known, strictly between 0 and 1."""
    from flint import arb

    return arb(2 * numerator - (1 << known)) / (2 * arb(numerator * ((1 << known) - numerator)).sqrt())


def _share(z: arb) -> arb:
    """P(Z <= z)."""
    return (1 + z / (1 + z * z).sqrt()) / 2


def _between(ends: tuple[arb | None, arb | None], low: int, high: int) -> int | None:
    """The floor of all numbers between the ends, clamped to [low, high]; None where they have several."""
    below, above = ends
    if above is not None and above < low + 1:
        return low
    if below is not None and below >= high:
        return high
    if below is None or above is None:
        return None
    first, last = below.floor().unique_fmpz(), above.floor().unique_fmpz()
    return int(first) if first is not None and last is not None and first == last else None
