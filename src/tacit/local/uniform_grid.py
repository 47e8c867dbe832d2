"""Numbers on a declared grid, so that what is sent has an exact distribution.

>>> hours = UniformGrid(0, 24, steps=96)
>>> hours.places([0.1, 7.5, 30.0]).tolist()
[0, 30, 96]
>>> hours.value(30)
7.5
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import certified_floor, to_integer, to_interval, to_rational
from tacit.errors import ParameterError
from tacit.local.frequency_oracle import as_array, check_fraction_size

MAX_STEPS = 2**20
_WHOLE = 2**64
_LARGE = 700  # beyond it e^epsilon is no double
_FARTHEST = 10**100  # an end of the range: its square is a double
_NARROWEST = Fraction(1, 10**100)  # a step
_CLEAR = 8  # a step is at least so many times the distance of doubles
Places = npt.NDArray[np.int64]


@dataclass(frozen=True)
class UniformGrid:
    """The numbers lower + k (upper - lower)/steps for k = 0, ..., steps: k is a number's place.

    A number is clamped into the range and rounded to the nearest place before anything is drawn. That moves it by at
    most half a step inside the range, and is the only bias of an estimate of a mean.
    """

    lower: Fraction
    upper: Fraction
    steps: int

    def __post_init__(self) -> None:
        low, high = (check_fraction_size(name, to_rational(name, getattr(self, name))) for name in ("lower", "upper"))
        if not low < high:
            raise ParameterError("upper", "must be above lower", fix="Grid(0, 100, steps=100), say")
        steps = to_integer("steps", self.steps, least=1)
        if steps > MAX_STEPS:
            raise ParameterError(
                "steps", f"must be at most {MAX_STEPS}", fix="a coarser grid: noise is far wider than it"
            )
        farthest, step = max(abs(low), abs(high)), (high - low) / steps
        if farthest > _FARTHEST or step < _NARROWEST:
            raise ParameterError("upper", "the range is too wide or a step too narrow", fix="take a handier unit")
        if step < _CLEAR * Fraction(math.ulp(float(farthest))):
            raise ParameterError("steps", "doubles cannot tell the places apart", fix="fewer steps, or subtract lower")
        object.__setattr__(self, "lower", low)
        object.__setattr__(self, "upper", high)
        object.__setattr__(self, "steps", steps)

    @property
    def width(self) -> float:
        """The size of one step."""
        return float((self.upper - self.lower) / self.steps)

    def places(self, values: Any) -> Places:
        """The places of these numbers: out of range is the nearest end, and what is not a number is an error."""
        found = np.atleast_1d(as_array(values))
        if found.dtype.kind not in "iuf" or found.ndim != 1:
            raise ParameterError("values", "needs a list of numbers", fix="values=[3.5, 7.25], say")
        exact = found.astype(np.float64)
        if np.isnan(exact).any():
            raise ParameterError("values", "one of them is not a number", fix="leave it out, or send any number")
        inside = np.clip(exact, float(self.lower), float(self.upper))
        units = np.rint((inside - float(self.lower)) / float(self.upper - self.lower) * self.steps)
        return np.clip(units.astype(np.int64), 0, self.steps)

    def value(self, place: float) -> float:
        """The number at a place, or between two."""
        return float(self.lower) + place * self.width


def rational_exp(epsilon: Fraction) -> Fraction:
    """e^epsilon as a rational, at most 2^-64 below it: for tables of exact probabilities, whose ratio is just this."""
    if epsilon > _LARGE:
        raise ParameterError("epsilon", f"a table is for an epsilon of at most {_LARGE}", fix="choose it smaller")
    return Fraction(certified_floor(lambda: to_interval(epsilon).exp() * _WHOLE), _WHOLE)
