"""The Laplace mechanism on integers.

>>> count = Laplace.calibrated(epsilon=0.5, sensitivity=1)
>>> count.scale, count.error(0.95)
(Fraction(2, 1), 6)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy.typing as npt

from tacit.arithmetic import Number, to_integer
from tacit.frozen import set_fields
from tacit.mechanisms.additive import IntegerArray, add_noise
from tacit.mechanisms.validation import check_epsilon, check_positive, check_probability
from tacit.privacy.loss import LaplaceNoise
from tacit.sampling import laplace, wide
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

_WIDE = Fraction(2) ** 48


@dataclass(frozen=True, init=False)
class Laplace:
    """Adds to each integer its own noise k with P(k) proportional to exp(-|k|/scale).

    **Theorem.** If neighboring inputs differ by at most `d` in L1, the release is (d/scale)-DP.

    Parameters
    ----------
    scale : number
        Scale of the noise, above 0, in steps of the grid. The standard deviation is close to sqrt(2) scale.

    Raises
    ------
    ParameterError
        If the scale is not a positive number.

    See Also
    --------
    Gaussian : Less noise where one unit moves many integers, at the price of a delta.
    Staircase : Less noise for one integer of a sensitivity above 1.

    Examples
    --------
    >>> from tacit.sampling.bits import ReplayBits
    >>> Laplace(scale=10).release([120, 45], ReplayBits(b"example"))
    [170, 63]
    >>> Laplace.calibrated(epsilon=0.5, sensitivity=1)
    Laplace(scale=Fraction(2, 1))
    """

    scale: Fraction

    def __init__(self, scale: Number) -> None:
        set_fields(self, scale=check_positive("scale", scale))

    @classmethod
    def calibrated(cls, epsilon: Number, sensitivity: int) -> Laplace:
        """Return the mechanism with the least noise that is epsilon-DP: scale = sensitivity/epsilon.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one release, above 0 and at most 2^64. Half of it doubles the noise.
        sensitivity : int
            L1 sensitivity: the most that all the released integers together move between neighbors, at least 0. At 0
            the values are constants, which get the noise of sensitivity 1.

        Returns
        -------
        Laplace
            The calibrated mechanism.

        Raises
        ------
        ParameterError
            If epsilon or the sensitivity is out of range, or the sensitivity is not an integer.
        """
        return cls(Fraction(max(to_integer("sensitivity", sensitivity, least=0), 1)) / check_epsilon(epsilon))

    def loss(self, sensitivity: int) -> LaplaceNoise:
        """Return the privacy loss of a release.

        Parameters
        ----------
        sensitivity : int
            L1 sensitivity of all the released integers together, at least 0.

        Returns
        -------
        LaplaceNoise
            What `tacit.accounting` composes; it is (sensitivity/scale)-DP.
        """
        return LaplaceNoise(self.scale, sensitivity)

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
            In the shape of `values`. An array is of int64, or of Python's integers where the scale is above 2^48.

        Raises
        ------
        ParameterError
            If a value is not an integer.

        Examples
        --------
        >>> import numpy as np
        >>> Laplace(scale=10).release(5).__class__
        <class 'int'>
        >>> Laplace(scale=10).release(np.arange(6).reshape(2, 3)).shape
        (2, 3)
        """
        source = bits_or_system(bits)
        many = None if self.scale > _WIDE else lambda count: laplace.draw_array(self.scale, count, source)
        return add_noise(
            values,
            lambda: laplace.draw(self.scale, source),
            many,
            lambda count: wide.draw_integers(self.scale, count, source),
        )

    def error(self, confidence: Number) -> int:
        """Return the least w such that a released value is within w of the true one.

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
        >>> Laplace(scale=10).error(0.95)
        30
        """
        return laplace.tail_quantile(self.scale, 1 - check_probability("confidence", confidence))
