"""What an engine is told where a clip bounds what a unit adds, in place of caps on its rows.

A unit's vector has an entry for each vector of the question and each group: `weight` times what the unit's rows in the
group add up to. Its L1 norm is the sum of the sizes of all entries. Rows whose unit is NULL are nobody's, and rows in
other groups than those listed are left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from tacit.query.nodes import ExactStatistic, GroupKey, RelationalNode, Scalar
from tacit.query.types import Key


@dataclass(frozen=True)
class WeightedVector:
    """`weight` times a linear combination of measures, which are count, sum of integers, and units.

    Of one unit's rows units is 1 or 0: whether there are any, where the argument is not NULL if there is one.
    One row adds at most `largest` to it, in size and with the weight.
    """

    terms: tuple[tuple[int, ExactStatistic], ...]
    weight: int
    largest: int


@dataclass(frozen=True)
class ClippedAggregation:
    """The vectors of the units over rows of `source` where `where` is true.

    `groups` are the groups in order: values of `keys`, NULL among them where it is listed. The entries of a unit are
    those of the first vector for each group, then those of the second, and so on. No clip above the first that is
    `largest` or more is looked at. With more than one of the `ratios` of both norms, units are told apart by these too,
    and clips of the L2 norm are looked at as well.
    """

    source: RelationalNode
    where: Scalar | None
    unit: str
    keys: tuple[GroupKey, ...]
    groups: tuple[tuple[Key | None, ...], ...]
    vectors: tuple[WeightedVector, ...]
    largest: int
    ratios: int = 1

    @property
    def size(self) -> int:
        """How many entries a unit's vector has."""
        return len(self.groups) * len(self.vectors)


def change_measures(
    vectors: tuple[WeightedVector, ...], change: Callable[[ExactStatistic], ExactStatistic]
) -> tuple[WeightedVector, ...]:
    """The vectors with each measure changed."""
    return tuple(
        replace(vector, terms=tuple((factor, change(measure)) for factor, measure in vector.terms))
        for vector in vectors
    )
