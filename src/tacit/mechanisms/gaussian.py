"""The Gaussian mechanism on integers.

>>> noise = Gaussian.for_rho(0.02, sensitivity=1)
>>> noise.variance, noise.error(0.95)
(Fraction(25, 1), 10)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy.typing as npt

from tacit.accounting.calibrate import gaussian_variance
from tacit.arithmetic import Number, to_integer
from tacit.frozen import set_fields
from tacit.mechanisms.additive import IntegerArray, add_noise
from tacit.mechanisms.validation import check_epsilon, check_positive, check_probability
from tacit.privacy.loss import GaussianNoise
from tacit.sampling import gaussian
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

_WIDE = Fraction(2) ** 78


@dataclass(frozen=True, init=False)
class Gaussian:
    """Adds to each integer its own noise k with P(k) proportional to exp(-k^2 / (2 variance)).

    **Theorem.** If between neighbors at most `coordinates` of the integers move, each by at most `sensitivity`, the
    release is rho-zCDP with rho = coordinates sensitivity^2 / (2 variance), and for no less.

    **Proof.** With p the distribution and d an integer shift, sum p(k)^a p(k - d)^(1 - a) is exp(a (a - 1) d^2 / (2
    variance)) times the sum of exp(-(k + (a - 1) d)^2 / (2 variance)) over that of exp(-k^2 / (2 variance)). That
    quotient is at most 1 (Poisson summation), and 1 where (a - 1) d is an integer. So the divergence of order a is at
    most a d^2 / (2 variance), for whole a exactly, and it adds up over coordinates. (Canonne, Kamath, Steinke 2020.)

    For (epsilon, delta) the discrete distribution is accounted for as itself: at the same variance its delta may be
    above that of real noise.

    Parameters
    ----------
    variance : number
        The parameter of the distribution, above 0, in squared steps of the grid. From 1 on it is the variance of the
        noise to within 10^-6.

    Raises
    ------
    ParameterError
        If the variance is not a positive number.

    See Also
    --------
    Laplace : No delta; less noise where one unit moves few integers.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> Gaussian(variance=100).release([120, 45], ReplayBits(b"example"))
    [118, 38]
    >>> noise = Gaussian.calibrated(epsilon=1, delta=1e-5, sensitivity=1)
    >>> round(float(noise.variance) ** 0.5, 3)
    3.74
    """

    variance: Fraction

    def __init__(self, variance: Number) -> None:
        set_fields(self, variance=check_positive("variance", variance))

    @classmethod
    def calibrated(cls, epsilon: Number, delta: Number, sensitivity: int = 1, coordinates: int = 1) -> Gaussian:
        """Return the mechanism with the least noise, to six digits, that is (epsilon, delta)-DP.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one release, above 0 and at most 2^64.
        delta : number
            Probability, strictly between 0 and 1, that the loss may be above epsilon. Far below one over the number of
            units; noise grows with sqrt(ln(1/delta)) only.
        sensitivity : int, default 1
            The most that any one of the released integers moves between neighbors, at least 0. At 0 the values are
            constants, which get the noise of sensitivity 1.
        coordinates : int, default 1
            How many of the integers may move, at least 1. The L2 sensitivity is sqrt(coordinates) sensitivity.

        Returns
        -------
        Gaussian
            The calibrated mechanism.

        Raises
        ------
        ParameterError
            If a parameter is out of range, or the sensitivity or the coordinates are not integers.
        """
        moved = to_integer("sensitivity", sensitivity, least=0)
        places = to_integer("coordinates", coordinates, least=1)
        return cls(gaussian_variance(check_epsilon(epsilon), check_probability("delta", delta), moved, places))

    @classmethod
    def for_rho(cls, rho: Number, sensitivity: int = 1, coordinates: int = 1) -> Gaussian:
        """Return the mechanism with the least noise that is rho-zCDP.

        Parameters
        ----------
        rho : number
            Zero-concentrated privacy loss of one release, above 0.
        sensitivity : int, default 1
            The most that any one of the released integers moves between neighbors, at least 0. At 0 the values are
            constants, which get the noise of sensitivity 1.
        coordinates : int, default 1
            How many of the integers may move, at least 1.

        Returns
        -------
        Gaussian
            With variance = coordinates sensitivity^2 / (2 rho).

        Raises
        ------
        ParameterError
            If a parameter is out of range, or the sensitivity or the coordinates are not integers.
        """
        step = max(to_integer("sensitivity", sensitivity, least=0), 1)
        return cls(to_integer("coordinates", coordinates, least=1) * step**2 / (2 * check_positive("rho", rho)))

    def loss(self, sensitivity: int, coordinates: int = 1) -> GaussianNoise:
        """Return the privacy loss of a release.

        Parameters
        ----------
        sensitivity : int
            The most that any one of the released integers moves between neighbors, at least 0.
        coordinates : int, default 1
            How many of the integers may move, at least 1.

        Returns
        -------
        GaussianNoise
            What `tacit.accounting` composes.
        """
        moved = to_integer("sensitivity", sensitivity, least=0)
        return GaussianNoise(self.variance, moved, to_integer("coordinates", coordinates, least=1))

    def rho(self, sensitivity: int, coordinates: int = 1) -> Fraction:
        """Return the zero-concentrated privacy loss of a release, exactly.

        Parameters
        ----------
        sensitivity : int
            The most that any one of the released integers moves between neighbors, at least 0.
        coordinates : int, default 1
            How many of the integers may move, at least 1.

        Returns
        -------
        Fraction
            coordinates sensitivity^2 / (2 variance).
        """
        moved = to_integer("sensitivity", sensitivity, least=0)
        return to_integer("coordinates", coordinates, least=1) * moved**2 / (2 * self.variance)

    @overload
    def release(self, values: int, bits: Bits | None = None) -> int: ...
    @overload
    def release(self, values: IntegerArray, bits: Bits | None = None) -> npt.NDArray[Any]: ...
    @overload
    def release(self, values: Sequence[int], bits: Bits | None = None) -> list[int]: ...
    def release(
        self, values: int | Sequence[int] | IntegerArray, bits: Bits | None = None
    ) -> int | list[int] | npt.NDArray[Any]:
        """Release each value with noise of its own.

        Parameters
        ----------
        values : int, sequence of int, or integer array
            What to protect, in steps of its grid. Ints and lists are exact however large they are; an array's values
            are clamped to [-2^62, 2^62].
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        int, list of int, or array
            In the shape of `values`. An array is of int64, or of Python's integers where the variance is above 2^78.

        Raises
        ------
        ParameterError
            If a value is not an integer.

        Examples
        --------
        >>> import numpy as np
        >>> Gaussian(variance=100).release(5).__class__
        <class 'int'>
        >>> Gaussian(variance=100).release(np.arange(6).reshape(2, 3)).shape
        (2, 3)
        """
        source = bits_or_system(bits)
        many = None if self.variance > _WIDE else lambda count: gaussian.draw_array(self.variance, count, source)
        return add_noise(
            values,
            lambda: gaussian.draw(self.variance, source),
            many,
            lambda count: gaussian.draw_integers(self.variance, count, source),
        )

    def error(self, confidence: Number) -> int:
        """Return a w such that a released value is within w of the true one.

        It is the least one, or for standard deviations above 2^10 at most one step above it.

        Parameters
        ----------
        confidence : number
            Probability that it is, strictly between 0 and 1.

        Returns
        -------
        int
            The half width of a confidence interval, in steps of the grid. It does not depend on the data.

        Examples
        --------
        >>> Gaussian(variance=25).error(0.95)
        10
        """
        return gaussian.tail_quantile(self.variance, 1 - check_probability("confidence", confidence))
