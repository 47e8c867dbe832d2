"""The Gaussian mechanism on integers.

>>> from tacit.sampling.bits import ReplayBits
>>> noise = Gaussian.for_rho(Fraction(1, 50))
>>> noise.variance
Fraction(25, 1)
>>> noise.error(Fraction(95, 100))
10
>>> len(noise.release([120, 45], ReplayBits(b"example")))
2
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, overload

import numpy.typing as npt

from tacit.accounting.calibrate import gaussian_variance
from tacit.arithmetic import to_integer, to_rational
from tacit.errors import ParameterError
from tacit.mechanisms.additive import add_noise
from tacit.mechanisms.validation import check_epsilon, check_probability
from tacit.privacy.loss import GaussianNoise
from tacit.sampling import gaussian
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

_WIDE = Fraction(2) ** 78


@dataclass(frozen=True)
class Gaussian:
    """Adds to each integer its own noise k with P(k) proportional to exp(-k^2 / (2 variance)).

    **Theorem.** If between neighbors at most `coordinates` of the integers move, each by at most `shift`, the release
    is rho-zCDP with rho = coordinates shift^2 / (2 variance), and for no less.

    **Proof.** With p the distribution and d an integer shift, sum p(k)^a p(k - d)^(1 - a) is exp(a (a - 1) d^2 / (2
    variance)) times the sum of exp(-(k + (a - 1) d)^2 / (2 variance)) over that of exp(-k^2 / (2 variance)). That
    quotient is at most 1 (Poisson summation), and 1 where (a - 1) d is an integer. So the divergence of order a is at
    most a d^2 / (2 variance), for whole a exactly, and it adds up over coordinates. (Canonne, Kamath, Steinke 2020.)

    For (epsilon, delta) the discrete distribution is priced as itself: at the same variance its delta may be above that
    of real noise.
    """

    variance: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", _positive("variance", self.variance))

    @classmethod
    def calibrated(cls, epsilon: Any, delta: Any, shift: int = 1, coordinates: int = 1) -> Gaussian:
        """The least noise, to six digits, that is (epsilon, delta)-DP where `coordinates` integers move by `shift`.

        It is priced as the distribution that is sampled.

        Where nothing can move, the constant is released with the noise of a shift of one.
        """
        moved, places = to_integer("shift", shift, least=0), to_integer("coordinates", coordinates, least=1)
        return cls(gaussian_variance(check_epsilon(epsilon), check_probability("delta", delta), moved, places))

    @classmethod
    def for_rho(cls, rho: Any, shift: int = 1, coordinates: int = 1) -> Gaussian:
        """The least noise that is rho-zCDP where `coordinates` integers move by at most `shift` each.

        Where nothing can move, the constant is released with the noise of a shift of one.
        """
        step = max(to_integer("shift", shift, least=0), 1)
        return cls(to_integer("coordinates", coordinates, least=1) * step**2 / (2 * _positive("rho", rho)))

    def loss(self, shift: int, coordinates: int = 1) -> GaussianNoise:
        """What a release costs where `coordinates` integers move by at most `shift` each."""
        return GaussianNoise(
            self.variance, to_integer("shift", shift, least=0), to_integer("coordinates", coordinates, least=1)
        )

    def rho(self, shift: int, coordinates: int = 1) -> Fraction:
        """The zCDP cost of such a release, exactly."""
        return (
            to_integer("coordinates", coordinates, least=1)
            * to_integer("shift", shift, least=0) ** 2
            / (2 * self.variance)
        )

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

    def error(self, confidence: Any) -> int:
        """A w such that a released value is within w of the true one with at least this probability: the least one, or
        for standard deviations above 2^10 at most one step above it."""
        return gaussian.tail_quantile(self.variance, 1 - check_probability("confidence", confidence))


def _positive(name: str, value: Any) -> Fraction:
    """A positive number."""
    found = to_rational(name, value)
    if found <= 0:
        raise ParameterError(name, f"must be positive, got {value!r:.40}", fix=f"choose {name} above 0")
    return found
