"""A uniform grid of numbers, on which randomized reports have an exact distribution.

>>> hours = UniformGrid(0, 24, steps=96)
>>> hours.to_indices([0.1, 7.5, 30.0]).tolist()
[0, 30, 96]
>>> hours.to_value(30)
7.5
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, certified_floor, to_integer, to_interval, to_rational
from tacit.errors import ParameterError
from tacit.local.frequency_oracle import as_array, check_fraction_size

MAX_STEPS = 2**20
_WHOLE = 2**64
_LARGE = 700  # beyond it e^epsilon is no double
_FARTHEST = 10**100  # an end of the range: its square is a double
_NARROWEST = Fraction(1, 10**100)  # a step
_CLEAR = 8  # a step is at least so many times the distance of doubles
Indices = npt.NDArray[np.int64]


@dataclass(frozen=True)
class UniformGrid:
    """The grid of the numbers lower + k (upper - lower)/steps, for the indices k = 0, ..., steps.

    A number is clamped to the range and rounded to the nearest grid point before it is randomized. That moves it by at
    most half a step inside the range, and is the only bias of an estimated mean.

    Parameters
    ----------
    lower, upper : number
        The ends of the range, up to 1e100 in absolute value. Numbers outside are clamped to them.
    steps : int
        The number of steps of the grid, from 1 to 2^20. More steps round less; the noise hardly depends on them.

    Raises
    ------
    ParameterError
        Where `upper` is not above `lower`, or doubles cannot represent the grid points as different numbers.

    Examples
    --------
    >>> from tacit.local import UniformGrid
    >>> hours = UniformGrid(0, 24, steps=96)  # quarters of an hour
    >>> hours.to_indices([0.1, 7.5, 30.0]).tolist()
    [0, 30, 96]
    >>> hours.to_value(30), hours.width
    (7.5, 0.25)
    """

    lower: Fraction
    upper: Fraction
    steps: int

    if TYPE_CHECKING:  # any number is converted below

        def __init__(self, lower: Number, upper: Number, steps: int) -> None: ...

    def __post_init__(self) -> None:
        low, high = (check_fraction_size(name, to_rational(name, getattr(self, name))) for name in ("lower", "upper"))
        if not low < high:
            raise ParameterError("upper", "must be above lower", fix="UniformGrid(0, 100, steps=100)")
        steps = to_integer("steps", self.steps, least=1)
        if steps > MAX_STEPS:
            raise ParameterError("steps", f"must be at most {MAX_STEPS:,}", fix="steps=1000")
        farthest, step = max(abs(low), abs(high)), (high - low) / steps
        if farthest > _FARTHEST or step < _NARROWEST:
            raise ParameterError(
                "upper", "the range is too wide, or its steps are too narrow, for doubles", fix="use another unit"
            )
        if step < _CLEAR * Fraction(math.ulp(float(farthest))):
            raise ParameterError(
                "steps",
                "are too many for the grid points to be different doubles",
                fix="use fewer steps, or subtract lower from all",
            )
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "steps", steps)

    @property
    def width(self) -> float:
        """The size of one step, in the unit of the values."""
        return float((self.upper - self.lower) / self.steps)

    def to_indices(self, values: npt.ArrayLike) -> Indices:
        """Round numbers to the nearest grid points.

        Parameters
        ----------
        values : array_like of int or float
            Numbers in one dimension. One outside the range, infinite ones included, is clamped to its nearer end.

        Returns
        -------
        ndarray of int64
            The index of the nearest grid point for each number, from 0 to `steps`.

        Raises
        ------
        ParameterError
            Where a value is NaN or not a number.
        """
        found = np.atleast_1d(as_array(values))
        if found.dtype.kind not in "iuf" or found.ndim != 1:
            raise ParameterError("values", "needs a list of numbers", fix="values=[3.5, 7.25]")
        exact = found.astype(np.float64)
        if np.isnan(exact).any():
            raise ParameterError(
                "values", "one of them is NaN", fix="leave it out, or replace it by a number of the range"
            )
        inside = np.clip(exact, float(self.lower), float(self.upper))
        units = np.rint((inside - float(self.lower)) / float(self.upper - self.lower) * self.steps)
        return np.clip(units.astype(np.int64), 0, self.steps)

    def to_value(self, index: float) -> float:
        """Return the number at an index.

        Parameters
        ----------
        index : float
            An index of the grid, or a mean of several, which may lie between two or outside.

        Returns
        -------
        float
            lower + index width, in the unit of the values.
        """
        return float(self.lower) + index * self.width


def rational_exp(epsilon: Fraction) -> Fraction:
    """Return e^epsilon as a rational, at most 2^-64 below it: for tables of exact probabilities with this ratio."""
    if epsilon > _LARGE:
        raise ParameterError(
            "epsilon", f"must be at most {_LARGE} for a table of probabilities", fix=f"epsilon={_LARGE}"
        )
    return Fraction(certified_floor(lambda: to_interval(epsilon).exp() * _WHOLE), _WHOLE)
