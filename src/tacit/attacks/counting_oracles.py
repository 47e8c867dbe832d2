"""Oracles over bits that are at hand: true counts, rounded ones, and counts with noise."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from tacit.attacks.oracle import BitArray, FloatArray, NoiseModel, as_bits, positive
from tacit.errors import ParameterError


@dataclass(frozen=True, eq=False)
class ExactOracle:
    """An oracle of the true counts.

    Parameters
    ----------
    bits : array of bits
        The secret bit of each person, 0 or 1.

    Attributes
    ----------
    noise : NoiseModel
        Says that there is no noise.

    Raises
    ------
    ParameterError
        If the bits are not a list of 0 and 1.

    Examples
    --------
    >>> import numpy as np
    >>> ExactOracle([1, 0, 1, 0, 1]).ask(np.array([[1, 0, 1, 0, 0]], dtype=bool)).tolist()
    [2.0]
    """

    bits: BitArray
    noise: NoiseModel = field(init=False, default=NoiseModel("no noise", bound=0.0, deviation=0.0))

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", as_bits("bits", self.bits))

    def ask(self, subsets: BitArray) -> FloatArray:
        """Return how many people of each subset have the bit.

        Parameters
        ----------
        subsets : array of bool
            A row of bits for each question, one bit for each person.

        Returns
        -------
        array of float
            The true count of each row.
        """
        return _counts(self.bits, subsets)


@dataclass(frozen=True, eq=False)
class RoundingOracle:
    """An oracle of rounded counts: off by at most to/2, evenly where counts vary widely.

    Parameters
    ----------
    bits : array of bits
        The secret bit of each person, 0 or 1.
    to : number
        Counts are rounded to the nearest multiple of this, a positive number.

    Attributes
    ----------
    noise : NoiseModel
        The bound to/2 and the deviation to/sqrt(12).

    Raises
    ------
    ParameterError
        If the bits are not a list of 0 and 1, or `to` is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> RoundingOracle([1, 1, 1, 0], to=2).ask(np.ones((1, 4), dtype=bool)).tolist()
    [4.0]
    """

    bits: BitArray
    to: float
    noise: NoiseModel = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", as_bits("bits", self.bits))
        step = positive("to", self.to)
        object.__setattr__(
            self, "noise", NoiseModel(f"rounding to multiples of {step:g}", step / 2, step / math.sqrt(12))
        )

    def ask(self, subsets: BitArray) -> FloatArray:
        """Return the rounded count of each subset.

        Parameters
        ----------
        subsets : array of bool
            A row of bits for each question, one bit for each person.

        Returns
        -------
        array of float
            A multiple of `to` for each row.
        """
        return np.rint(_counts(self.bits, subsets) / self.to) * self.to


@dataclass(frozen=True, eq=False)
class UniformNoiseOracle:
    """An oracle of counts with uniform noise in [-error, error].

    Parameters
    ----------
    bits : array of bits
        The secret bit of each person, 0 or 1.
    error : number
        The largest absolute value of the noise, positive.
    rng : numpy.random.Generator
        The generator of the noise.

    Attributes
    ----------
    noise : NoiseModel
        The bound `error` and the deviation error/sqrt(3).

    Raises
    ------
    ParameterError
        If the bits are not a list of 0 and 1, or the error is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> oracle = UniformNoiseOracle([1, 0, 1], error=0.5, rng=np.random.default_rng(0))
    >>> bool(abs(oracle.ask(np.ones((1, 3), dtype=bool))[0] - 2) <= 0.5)
    True
    """

    bits: BitArray
    error: float
    rng: np.random.Generator
    noise: NoiseModel = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", as_bits("bits", self.bits))
        error = positive("error", self.error)
        object.__setattr__(
            self, "noise", NoiseModel(f"uniform noise of at most {error:g}", error, error / math.sqrt(3))
        )

    def ask(self, subsets: BitArray) -> FloatArray:
        """Return the count of each subset with its own noise.

        Parameters
        ----------
        subsets : array of bool
            A row of bits for each question, one bit for each person.

        Returns
        -------
        array of float
            A noisy count for each row.
        """
        counts = _counts(self.bits, subsets)
        return counts + self.rng.uniform(-self.error, self.error, len(counts))


@dataclass(frozen=True, eq=False)
class GaussianNoiseOracle:
    """An oracle of counts with normal noise.

    Parameters
    ----------
    bits : array of bits
        The secret bit of each person, 0 or 1.
    sigma : number
        The standard deviation of the noise, positive.
    rng : numpy.random.Generator
        The generator of the noise.

    Attributes
    ----------
    noise : NoiseModel
        The deviation `sigma`, without a bound.

    Raises
    ------
    ParameterError
        If the bits are not a list of 0 and 1, or sigma is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> print(GaussianNoiseOracle([1, 0, 1], sigma=2, rng=np.random.default_rng(0)).noise)
    Gaussian noise of deviation 2
    """

    bits: BitArray
    sigma: float
    rng: np.random.Generator
    noise: NoiseModel = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", as_bits("bits", self.bits))
        sigma = positive("sigma", self.sigma)
        object.__setattr__(self, "noise", NoiseModel(f"Gaussian noise of deviation {sigma:.4g}", deviation=sigma))

    def ask(self, subsets: BitArray) -> FloatArray:
        """Return the count of each subset with its own noise.

        Parameters
        ----------
        subsets : array of bool
            A row of bits for each question, one bit for each person.

        Returns
        -------
        array of float
            A noisy count for each row.
        """
        counts = _counts(self.bits, subsets)
        return counts + self.rng.normal(0.0, self.sigma, len(counts))


@dataclass(frozen=True, eq=False)
class LaplaceNoiseOracle:
    """An oracle of counts with Laplace noise, of density proportional to exp(-|x|/scale).

    Parameters
    ----------
    bits : array of bits
        The secret bit of each person, 0 or 1.
    scale : number
        The scale of the noise, positive: its standard deviation is sqrt(2) times that.
    rng : numpy.random.Generator
        The generator of the noise.

    Attributes
    ----------
    noise : NoiseModel
        The deviation sqrt(2) scale, without a bound.

    Raises
    ------
    ParameterError
        If the bits are not a list of 0 and 1, or the scale is not positive.

    Examples
    --------
    >>> import numpy as np
    >>> print(LaplaceNoiseOracle([1, 0, 1], scale=10, rng=np.random.default_rng(0)).noise)
    Laplace noise of scale 10
    """

    bits: BitArray
    scale: float
    rng: np.random.Generator
    noise: NoiseModel = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "bits", as_bits("bits", self.bits))
        scale = positive("scale", self.scale)
        said = NoiseModel(f"Laplace noise of scale {scale:.4g}", deviation=math.sqrt(2) * scale)
        object.__setattr__(self, "noise", said)

    def ask(self, subsets: BitArray) -> FloatArray:
        """Return the count of each subset with its own noise.

        Parameters
        ----------
        subsets : array of bool
            A row of bits for each question, one bit for each person.

        Returns
        -------
        array of float
            A noisy count for each row.
        """
        counts = _counts(self.bits, subsets)
        return counts + self.rng.laplace(0.0, self.scale, len(counts))


def _counts(bits: BitArray, subsets: BitArray) -> FloatArray:
    rows = np.asarray(subsets)
    if rows.ndim != 2 or rows.shape[1] != len(bits):
        raise ParameterError(
            "subsets", f"have shape {rows.shape}, and there are {len(bits)} people", fix=f"rows of {len(bits)} bits"
        )
    counts: FloatArray = np.count_nonzero(rows & bits, axis=1).astype(np.float64)
    return counts
