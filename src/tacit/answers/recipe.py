"""How to finish: which released integers mean what, and what the question does with them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.top_k import TopK
from tacit.query.nodes import KeyOf, Order, Released, Scalar
from tacit.query.types import Key, Type


@dataclass(frozen=True)
class Noisy:
    """One released vector: an integer for each group, each with independent noise; one step of it is worth `unit`."""

    name: str
    mechanism: Laplace | Gaussian
    unit: Fraction


@dataclass(frozen=True)
class Picked:
    """One choice in each group: a point of a grid, or the position of a key; or several positions in turn."""

    name: str
    mechanism: Quantile | PermuteAndFlip | TopK
    choices: int


@dataclass(frozen=True)
class Plain:
    """A released count or sum as it is."""

    part: int
    type: Type


@dataclass(frozen=True)
class Mean:
    """center + sum/count, clamped to [lower, upper]; NULL where the released count is not positive."""

    sum: int
    count: int
    center: Fraction
    lower: Fraction
    upper: Fraction


@dataclass(frozen=True)
class Total:
    """A sum from the parts of a mean: sum + center * count. It costs nothing where the mean is asked for anyway."""

    sum: int
    count: int
    center: Fraction
    type: Type


@dataclass(frozen=True)
class Spread:
    """A variance, or its root: the mean of squares about the center less the square of the mean about it.

    `squares` is the part whose values are sums of d^2 - range^2/8, where d is the distance from the center. NULL where
    the released count is not positive, or, of a sample, not above one.
    """

    squares: int
    mean: Mean
    sample: bool
    root: bool


@dataclass(frozen=True)
class Point:
    """A chosen point of a grid: a number, or a day."""

    part: int
    step: Fraction
    type: Type


@dataclass(frozen=True)
class Chosen:
    """A chosen key."""

    part: int
    values: tuple[Key, ...]


@dataclass(frozen=True)
class Several:
    """A list of chosen keys, the most frequent first: `count` positions for each group, one group after the other."""

    part: int
    values: tuple[Key, ...]
    count: int


Value = Plain | Total | Mean | Spread | Point | Chosen | Several


@dataclass(frozen=True)
class KeyColumn:
    """A column of keys: its type, and its public values; None where those shown were selected."""

    type: Type
    values: tuple[Key, ...] | None


@dataclass(frozen=True)
class Result:
    """A column of the answer, over the released values and keys; of lists of the type where `many`."""

    name: str
    scalar: Scalar
    type: Type
    many: bool = False


@dataclass(frozen=True)
class Recipe:
    """All that finishing needs, and nothing of the data."""

    keys: tuple[KeyColumn, ...]
    parts: tuple[Noisy | Picked, ...]
    values: tuple[Value, ...]
    results: tuple[Result, ...]
    having: Scalar | None
    order: tuple[Order, ...]
    limit: int | None
    offset: int
    notes: tuple[str, ...] = ()

    @property
    def is_plain(self) -> bool:
        """Whether every result is a key or a released value as it is, and every row is shown in its place."""
        as_they_are = all(isinstance(result.scalar, KeyOf | Released) for result in self.results)
        return as_they_are and self.having is None and not self.order and self.limit is None and not self.offset

    @property
    def groups(self) -> int | None:
        """How many groups there are: all combinations of public keys, one without keys; None where that is private."""
        sizes = [None if key.values is None else len(key.values) for key in self.keys]
        return None if None in sizes else prod(size for size in sizes if size is not None)

    def noisy(self, part: int) -> Noisy:
        """A part that has noise."""
        found = self.parts[part]
        assert isinstance(found, Noisy)
        return found
