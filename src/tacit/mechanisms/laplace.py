"""The Laplace mechanism on integers.

>>> from tacit.sampling.bits import ReplayBits
>>> count = Laplace.calibrated(epsilon=0.5, sensitivity=1)
>>> count.scale
Fraction(2, 1)
>>> count.error(0.95)
6
>>> len(count.release([120, 45], ReplayBits(b"example")))
2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy.typing as npt

from tacit.arithmetic import to_integer, to_rational
from tacit.errors import ParameterError
from tacit.mechanisms.additive import add_noise
from tacit.mechanisms.validation import check_epsilon, check_probability
from tacit.privacy.loss import LaplaceNoise
from tacit.sampling import laplace, wide
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

_WIDE = Fraction(2) ** 48


@dataclass(frozen=True)
class Laplace:
    """Adds to each integer its own noise k with P(k) proportional to exp(-|k|/scale).

    If neighboring inputs differ by at most `d` in L1, the release is (d/scale)-DP.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", to_rational("scale", self.scale))
        if self.scale <= 0:
            raise ParameterError("scale", f"must be positive, got {self.scale}", fix="choose a scale above 0")

    @classmethod
    def calibrated(cls, epsilon: Any, sensitivity: int) -> Laplace:
        """The least noise that is epsilon-DP for integers that move by at most `sensitivity` in L1.

        Where nothing can move, the constant is released with the noise of sensitivity one.
        """
        return cls(Fraction(max(to_integer("sensitivity", sensitivity, least=0), 1)) / check_epsilon(epsilon))

    def loss(self, sensitivity: int) -> LaplaceNoise:
        """What a release costs where the input moves by at most `sensitivity` in L1."""
        return LaplaceNoise(self.scale, sensitivity)

    @overload
    def release(self, values: int, bits: Bits | None = None) -> int: ...
    @overload
    def release(self, values: npt.NDArray[Any], bits: Bits | None = None) -> npt.NDArray[Any]: ...
    @overload
    def release(self, values: Sequence[int], bits: Bits | None = None) -> list[int]: ...
    def release(self, values: Any, bits: Bits | None = None) -> Any:
        """Release each value with noise of its own.

        Parameters
        ----------
        values : int, sequence of int, or integer array
            What to protect, in steps of its grid. Ints and lists are exact however large they are; an array's values
            are clamped to [-2^62, 2^62].
        bits : Bits, optional
            The source of randomness; the operating system's by default.

        Returns
        -------
        int, list of int, or array
            In the shape of `values`.

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

    def error(self, confidence: Any) -> int:
        """The least w such that a released value is within w of the true one with at least this probability."""
        return laplace.tail_quantile(self.scale, 1 - check_probability("confidence", confidence))
