"""Gaussian noise for vectors of real numbers, from an exact integer distribution on a grid that is very fine.

>>> from tacit.sampling.bits import ReplayBits
>>> noise = GridGaussian.calibrated(Fraction(1), Fraction(1, 10**5), sensitivity=Fraction(2), coordinates=3)
>>> round(float(noise.sigma), 4)
7.4613
>>> noise.release(np.zeros(3), ReplayBits(b"example")).shape
(3,)
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.calibrate import gaussian_sigma
from tacit.errors import ParameterError
from tacit.privacy.loss import ApproximateDp, Compose, ContinuousGaussianNoise
from tacit.sampling import gaussian
from tacit.sampling.bits import Bits

Array = NDArray[Any]

GRID_BITS = 32  # sigma is between 2^32 and 2^33 steps
_WIDER = Fraction(1, 8)  # what the variance on integers is above sigma^2, at least 1/11
_STRAY = 100  # one over this and over sigma^4: the share of the distribution that is not a rounded Gaussian


@dataclass(frozen=True)
class GridGaussian:
    """Adds noise to `coordinates` numbers that together move by at most `sensitivity` in L2.

    **Lemma.** Let s >= 2 and v >= s^2 + 1/11. The discrete Gaussian distribution of variance v is (1 - t) R + t Q,
    where R is the distribution of a real Gaussian of a deviation of s or more, rounded to the nearest integer, Q is
    some distribution, and t <= 1/(100 s^4).

    **Proof.** s^2/(1 - 1/(12 s^2)) is below s^2 + 1/11 and grows with s, so it is v for this s or a larger one, for
    which t is less. With y = 1/(12 s^2), 1/s^2 - 1/v = 1/(12 s^4), so R(k) over the discrete distribution at k is

        Z/(sqrt(2 pi) s) exp(-k^2/(24 s^4)) times the integral of cosh(k u/s^2) exp(-u^2/(2 s^2)) over |u| <= 1/2.

    Here exp(-u^2/(2 s^2)) <= 1 - u^2/(2 s^2) + 1/(128 s^4), and as u^2 and the cosh grow together with |u|, the mean of
    their product is at least the product of their means: the integral is at most sinh(x)/x (1 - y/2 + 9 y^2/8) with
    x = k/(2 s^2). Since sinh(x)/x <= exp(x^2/6) = exp(k^2/(24 s^4)), k cancels. By Poisson summation
    Z <= sqrt(2 pi v) (1 + 3 exp(-2 pi^2 v)), and sqrt(v)/s = (1 - y)^-1/2 <= 1 + y/2 + y^2/2. The product of all is at
    most 1 + 1.39 y^2, below 1/(1 - t).

    **Theorem.** The release loses at most Compose(ContinuousGaussian(sigma/m), Approximate(0, t coordinates)), where
    m = sensitivity + sqrt(coordinates) step, under every accountant and inside every composition.

    **Proof.** A Bernoulli variable for each coordinate chooses R or Q. If one chose Q, count all as lost: this has a
    probability of at most t a coordinate. Otherwise the release is a grid value plus rounded real noise, which is the
    rounding of the value plus real noise: post-processing. More real noise loses less. Rounding two inputs to the grid
    parts them by at most a step more in each coordinate.
    """

    sigma: Fraction
    sensitivity: Fraction
    coordinates: int

    def __post_init__(self) -> None:
        if not (self.sigma > 0 and self.sensitivity > 0 and self.coordinates >= 1):
            raise ParameterError("noise", "needs numbers above zero", fix="check sigma, sensitivity and coordinates")

    @classmethod
    def calibrated(
        cls, epsilon: Fraction, delta: Fraction, sensitivity: Fraction, coordinates: int, times: int = 1
    ) -> Self:
        """About the least noise such that `times` releases are together (epsilon, delta)-DP."""
        unit = unit_sigma(epsilon, delta, times * coordinates) * sqrt_upper_bound(Fraction(times))
        return cls.of(unit * sensitivity, sensitivity, coordinates)

    @classmethod
    def of(cls, sigma: Fraction, sensitivity: Fraction, coordinates: int) -> Self:
        """Noise whose loss is at most that of real noise of `sigma`: a little more, for the rounding to the grid."""
        part = sigma / sensitivity * (math.isqrt(coordinates) + 1) / 2**GRID_BITS
        if part >= Fraction(1, 2):
            raise ParameterError("epsilon", "is too small for the grid of the noise", fix="choose a larger epsilon")
        return cls(Fraction(math.ceil(sigma / (1 - part) * 2**60), 2**60), sensitivity, coordinates)

    @property
    def exponent(self) -> int:
        """The e for which the grid's step is 2^-e: sigma is between 2^GRID_BITS and 2^(GRID_BITS + 1) steps."""
        ratio = self.sigma.numerator.bit_length() - self.sigma.denominator.bit_length()
        floor = ratio if self.sigma >= Fraction(2) ** ratio else ratio - 1
        return GRID_BITS - floor

    @property
    def step(self) -> Fraction:
        """The grid's step, a power of two."""
        return Fraction(2) ** -self.exponent

    @property
    def relative(self) -> Fraction:
        """Sigma in units of what a neighbor may move the values by, their rounding counted."""
        return self.sigma / (self.sensitivity + (math.isqrt(self.coordinates) + 1) * self.step)

    @property
    def stray(self) -> Fraction:
        """The probability with which the noise is not a rounded Gaussian."""
        return self.coordinates * approximation_delta_of(self.sigma / self.step)

    @property
    def loss(self) -> Compose:
        """What a release costs."""
        return Compose((ContinuousGaussianNoise(self.relative), ApproximateDp(Fraction(0), self.stray)))

    def release(self, values: Array, bits: Bits) -> Array:
        """Real values, rounded to the grid, with noise.

        The rounded value and the noise are doubles without error, and the one addition is rounded correctly: what comes
        out is a function of the exact sum.
        """
        return add_gaussian_noise(values, self.step, self.sigma, bits)

    def release_whole(self, values: Array, exponent: int, bits: Bits) -> Array:
        """Python integers in units of 2^-exponent, rounded to the grid, with noise; exact however large they are."""
        shift = self.exponent - exponent
        known = values.astype(object)
        on_grid = known * 2**shift if shift >= 0 else (known + 2 ** (-shift - 1)) // 2**-shift
        noise = _draws(self.sigma / self.step, known, bits).astype(object)
        return np.asarray(on_grid + noise, dtype=np.float64) * 2.0**-self.exponent


def add_gaussian_noise(values: Array, step: Fraction, sigma: Fraction, bits: Bits) -> Array:
    """Values rounded to the grid of `step`, with noise of `sigma` on it, which is at most 2^40 steps.

    For callers that keep their own account: each coordinate strays with probability `approximation_delta_of(sigma /
    step)`.
    """
    known = np.nan_to_num(np.asarray(values, dtype=np.float64), nan=0.0, posinf=0.0, neginf=0.0)
    on_grid: Array = np.rint(known / float(step))
    return (on_grid + _draws(sigma / step, on_grid, bits).astype(np.float64)) * float(step)


def _draws(steps: Fraction, like: Array, bits: Bits) -> Array:
    return gaussian.draw_array(steps**2 + _WIDER, like.size, bits).reshape(like.shape)


def approximation_delta_of(steps: Fraction) -> Fraction:
    """The lemma's t, for a sigma of so many steps, rounded up to a short fraction."""
    if steps < 2:
        raise ParameterError("sigma", "must be at least two steps of the grid", fix="choose a finer grid")
    return Fraction(math.ceil(Fraction(2**160) / (_STRAY * steps**4)), 2**160)


def unit_sigma(epsilon: Fraction, delta: Fraction, coordinates: int) -> Fraction:
    """The sigma of real noise for (epsilon, delta) and a sensitivity of one, less what strays in so many coordinates.

    It is a millionth above the least, for the rounding of the accountants.
    """
    return gaussian_sigma(epsilon, delta - coordinates * approximation_delta_of(Fraction(2**GRID_BITS))) * (
        1 + Fraction(1, 10**6)
    )


def sqrt_upper_bound(number: Fraction) -> Fraction:
    """A rational just above the square root."""
    return Fraction(math.isqrt(math.ceil(number * 2**80)) + 1, 2**40)
