"""How to finish: which released integers mean what, and what the question does with them."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import prod

from tacit.mechanisms.laplace import Laplace
from tacit.query.nodes import Domain, KeyOf, Order, Released, Scalar
from tacit.query.types import Type


@dataclass(frozen=True)
class Noisy:
    """One released vector: an integer for each group, each with independent noise; one step of it is worth `unit`."""

    name: str
    mechanism: Laplace
    unit: Fraction


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
class Result:
    """A column of the answer, over the released values and keys."""

    name: str
    scalar: Scalar
    type: Type


@dataclass(frozen=True)
class Recipe:
    """All that finishing needs, and nothing of the data."""

    keys: tuple[Domain, ...]
    parts: tuple[Noisy, ...]
    values: tuple[Plain | Mean, ...]
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
    def groups(self) -> int:
        """How many groups there are: all combinations of declared keys, one where there are no keys."""
        return prod(len(domain.values) for domain in self.keys)
