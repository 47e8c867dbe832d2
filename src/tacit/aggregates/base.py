"""What an aggregate is to the planner and to post-processing: measurements over rows, and an estimate from releases.

An aggregate function says how it is written (`syntax`), what it measures and what one row adds (`measure`), how the
epsilon is shared between its measurements (`budget_weights`), and how released numbers make its value (`estimator`). An
estimator gives values with intervals, redraws them from simulated noise, and says how accurate it is before anything
was asked.

Whatever is computed here from releases is post-processing: it costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.top_k import TopK
from tacit.query.bound import TypedScalar
from tacit.query.cached_hash import keep_hash
from tacit.query.function_calls import AggregateSyntax
from tacit.query.nodes import Aggregate, ExactStatistic, Scalar
from tacit.query.types import Key, Type

Floats = npt.NDArray[np.float64]
Estimates = tuple[Any, Any, Any]  # Arrow arrays: the low end, the estimate and the high end for each group


# What is measured.


@dataclass(frozen=True)
class QuantizedArgument:
    """An argument as integers: value = integer * step, lower <= integer <= upper."""

    scalar: Scalar
    step: Fraction
    lower: int
    upper: int


@keep_hash
@dataclass(frozen=True)
class VectorMeasurement:
    """An integer for each group: a linear combination of measures, to which a row adds from `lower` to `upper`.

    With `is_per_unit`, all rows of a unit in a group add that much together.
    """

    terms: tuple[tuple[int, ExactStatistic], ...]
    lower: int
    upper: int
    unit: Fraction
    is_per_unit: bool = False
    name: str = field(default="", compare=False, repr=False)

    @property
    def measures(self) -> tuple[ExactStatistic, ...]:
        """What an engine is asked for."""
        return tuple(measure for _, measure in self.terms)

    @property
    def is_plain_count(self) -> bool:
        """Whether every row adds one, or every unit does: then the number also says whether a group may be shown."""
        return self.terms in (((1, ExactStatistic("count", None)),), ((1, ExactStatistic("units", None)),))


@dataclass(frozen=True)
class QuantileMeasurement:
    """A point of a grid in each group, selected by its rank: level 1/2 is the median, 0 the least, 1 the largest."""

    measure: ExactStatistic
    level: Fraction
    argument: QuantizedArgument
    name: str = field(default="", compare=False, repr=False)

    @property
    def measures(self) -> tuple[ExactStatistic, ...]:
        """What an engine is asked for."""
        return (self.measure,)


@dataclass(frozen=True)
class TopKMeasurement:
    """The k declared keys that are most frequent in each group, the first first."""

    measure: ExactStatistic
    values: tuple[Key, ...]
    k: int = 1
    name: str = field(default="", compare=False, repr=False)

    @property
    def measures(self) -> tuple[ExactStatistic, ...]:
        """What an engine is asked for."""
        return (self.measure,)


Measurement = VectorMeasurement | QuantileMeasurement | TopKMeasurement


# What is released.


@dataclass(frozen=True)
class ReleasedVector:
    """An integer for each group, each with independent noise; one step of it is worth `unit`.

    Where a clip was chosen, `missing` is about which part of a value is clipped off, in size where the vector
    `is_signed`. Before it is released, the clip `is_chosen` later, and the noise is that of what one row can add.
    """

    name: str
    mechanism: Laplace | Gaussian
    unit: Fraction
    missing: Fraction | None = None
    is_signed: bool = False
    is_chosen: bool = False

    def half_width(self, confidence: Fraction) -> Fraction:
        """Return the least error that is kept with the confidence, in the user's units."""
        return self.mechanism.error(confidence) * self.unit


@dataclass(frozen=True)
class ReleasedSelection:
    """One choice in each group: a point of a grid, or the position of a key; or several positions in turn."""

    name: str
    mechanism: Quantile | PermuteAndFlip | TopK
    choices: int


class Releases(tuple[ReleasedVector | ReleasedSelection, ...]):
    """All that a plan releases, in order."""

    __slots__ = ()

    def vector(self, position: int) -> ReleasedVector:
        """Return the vector at a position."""
        found = self[position]
        assert isinstance(found, ReleasedVector)
        return found

    def selection(self, position: int) -> ReleasedSelection:
        """Return the selection at a position."""
        found = self[position]
        assert isinstance(found, ReleasedSelection)
        return found


# How both make a value.


class Estimator(Protocol):
    """How released numbers make the value of an aggregate. A frozen value, made of public facts."""

    @property
    def positions(self) -> tuple[int, ...]:
        """The releases that it is made of."""

    @property
    def values_per_group(self) -> int:
        """How many numbers of a release belong to one group."""

    @property
    def is_always_number(self) -> bool:
        """Whether every group has a number, whatever was released."""

    @property
    def is_selection(self) -> bool:
        """Whether the value was selected: it then has a rank statement, and no interval."""

    @property
    def is_integer_sum(self) -> bool:
        """Whether it is an integer that post-processing must not overflow."""

    def estimate(self, released: Sequence[list[int]], releases: Releases, confidence: Fraction) -> Estimates:
        """Return the value of each group, with its interval; the ends are None for a selection."""

    def simulate(self, drawn: Sequence[Floats]) -> Floats | None:
        """Return the values that redrawn noise gives, NaN for NULL; None for a selection, which stays as it is."""

    def half_width(self, releases: Releases, confidence: Fraction) -> Fraction | None:
        """Return the half-width of the interval; None where it depends on the data."""

    def half_widths_by_rows(self, releases: Releases, rows: Sequence[int], confidence: Fraction) -> tuple[float, ...]:
        """Return the half-width for groups of so many rows, where it depends on the data; else nothing."""

    def describe(self, releases: Releases, confidence: Fraction) -> str:
        """Return what is known of a selection, in words; else the empty text."""


@dataclass(frozen=True)
class BoundAggregate:
    """An aggregate over rows: its bound arguments, the public keys of the first, and whether it is the unit."""

    aggregate: Aggregate
    argument: TypedScalar | None
    values: tuple[Key, ...] | None
    of_unit: bool
    others: tuple[TypedScalar, ...] = ()
    has_fine_grid: bool = True  # of a float without a grid of its own; not in earlier versions

    @property
    def required_argument(self) -> TypedScalar:
        """The argument of an aggregate that has one."""
        assert self.argument is not None
        return self.argument


@dataclass(frozen=True)
class AggregateFunction:
    """One aggregate: how it is written, the functions that this makes, and how they are answered.

    `syntax` is by the names that SQL has for it, in small letters. `measure` returns the measurements in the order in
    which `estimator` reads them; its second argument are the arguments whose average the same question asks for. What
    is needed twice is measured once.
    """

    syntax: Mapping[str, AggregateSyntax]
    functions: tuple[str, ...]
    result_type: Callable[[BoundAggregate], Type]
    measure: Callable[[BoundAggregate, frozenset[TypedScalar]], tuple[Measurement, ...]]
    estimator: Callable[[BoundAggregate, tuple[Measurement, ...], list[int]], Estimator]
    budget_weights: tuple[Fraction, ...] = (Fraction(1), Fraction(1))
    gives_list: bool = False


def argument_type(bound: BoundAggregate) -> Type:
    """Return the type of the argument, for aggregates whose values are of that type."""
    return bound.required_argument.type or Type.FLOAT


def float_type(_: BoundAggregate) -> Type:
    """Return FLOAT, whatever the argument is."""
    return Type.FLOAT
