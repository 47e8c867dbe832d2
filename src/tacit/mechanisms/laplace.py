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
from typing import Any

from tacit.arithmetic import integer, integers, rational
from tacit.errors import ParameterError
from tacit.mechanisms.given import price, share
from tacit.privacy.loss import LaplaceNoise
from tacit.sampling import laplace
from tacit.sampling.bits import Bits

_FEW = 16  # below this, a loop is quicker than numpy
_WIDE = Fraction(2) ** 48


@dataclass(frozen=True)
class Laplace:
    """Adds to each integer its own noise k with P(k) proportional to exp(-|k|/scale).

    If neighboring inputs differ by at most `d` in L1, the release is (d/scale)-DP.
    """

    scale: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "scale", rational("scale", self.scale))
        if self.scale <= 0:
            raise ParameterError("scale", f"must be positive, got {self.scale}", fix="choose a scale above 0")

    @classmethod
    def calibrated(cls, epsilon: Any, sensitivity: int) -> Laplace:
        """The least noise that is epsilon-DP for integers that move by at most `sensitivity` in L1.

        Where nothing can move, the constant is released with the noise of sensitivity one.
        """
        return cls(Fraction(max(integer("sensitivity", sensitivity, least=0), 1)) / price(epsilon))

    def loss(self, sensitivity: int) -> LaplaceNoise:
        """What a release costs where the input moves by at most `sensitivity` in L1."""
        return LaplaceNoise(self.scale, sensitivity)

    def release(self, values: Sequence[int], bits: Bits) -> list[int]:
        """The values with noise; exact however large they are."""
        values = integers("values", values)
        if len(values) <= _FEW or self.scale > _WIDE:
            return [value + laplace.draw(self.scale, bits) for value in values]
        noise = laplace.draws(self.scale, len(values), bits)
        return [value + extra for value, extra in zip(values, noise.tolist(), strict=True)]

    def error(self, confidence: Any) -> int:
        """The least w such that a released value is within w of the true one with at least this probability."""
        return laplace.tail(self.scale, 1 - share("confidence", confidence))
