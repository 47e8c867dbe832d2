"""Batches as they are drawn, in passes of one fixed size.

A step sees a batch of random size: every unit is in it with the same probability, on its own. What the model sees are
*passes* of `rows` rows, always as many: a batch that is larger takes several, a smaller one is filled up, and an empty
one is a pass with nothing in it. Rows that only fill up are hidden by the mask. So neither shapes nor the number of
rows that a sum is divided by say how many were drawn.

**Theorem (rows).** What is computed for a unit of the batch reads its own rows alone, if the model keeps rows apart.
**Proof.** All places of a unit hold rows of its own: one with fewer rows than others is filled up with its first. A
hidden row is not harmless by being hidden: its gradient is taken times 0, which is no number where it is infinite, and
what is no number takes the whole unit out of the sum. Places without a unit hold rows of a unit of the same pass. They
are units that are not counted, and their numbers are replaced by zeros (`clipping.factors`, `exact.integer_sums`). Only
an empty batch shows the model a row that was not drawn, the first of the dataset, and counts nothing.

**Theorem (places).** Matrix products round a row by its place, so places are drawn. Compare a batch with the same batch
and one unit more, both in random places. If it fits one pass, the other units have the same places with the same
probabilities in both. In several passes they have them but for one unit, which may have another place. **Proof.** A
uniformly random injection of units into the places of a pass, restricted to fewer units, is a uniformly random
injection of these. In several passes, all but the last are full, and which units the last one has is as random as
their order: if the one unit more is not in the last pass, one that is, drawn at random, takes its place without it.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from tacit.errors import ParameterError
from tacit.privacy.number_units import number_units

if TYPE_CHECKING:
    from tacit.sampling.bits import Bits

Order = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Pass:
    """The rows of one pass: positions in the dataset, which of them count, and whether the batch ends with it."""

    positions: list[int]
    mask: Tensor
    is_last: bool


@dataclass(frozen=True, eq=False)
class UnitTable:
    """The positions of each unit's examples; one example a unit where `starts` is None."""

    count: int
    rows_per_unit: int = 1
    order: Order | None = None
    starts: Order | None = None

    @classmethod
    def of(cls, examples: int, units: Sequence[Any] | None, rows_per_unit: int) -> UnitTable:
        """Read whose each example is."""
        if units is None:
            return cls(examples)
        numbers = number_units(units)
        if len(numbers) != examples:
            what = f"needs one id for each of {examples} examples, got {len(numbers)}"
            raise ParameterError("units", what, fix="units=[person of each example]")
        order = np.argsort(numbers, kind="stable")
        starts = np.concatenate(([0], np.cumsum(np.bincount(numbers))))
        return cls(len(starts) - 1, rows_per_unit, order.astype(np.int64), starts.astype(np.int64))

    def rows_of(self, unit: int, bits: Bits) -> list[int]:
        """Return the positions of at most `rows_per_unit` examples of a unit, drawn among its own."""
        if self.order is None or self.starts is None:
            return [unit]
        mine = self.order[self.starts[unit] : self.starts[unit + 1]]
        if len(mine) > self.rows_per_unit:
            from tacit.sampling.uniform import draw_order

            mine = mine[draw_order(len(mine), bits)[: self.rows_per_unit]]
        return [int(each) for each in mine]


def split_into_passes(
    batch: Sequence[int], units_per_pass: int, table: UnitTable, bits: Bits, *, in_order: bool = False
) -> Iterator[Pass]:
    """Yield the passes of a batch of units, in random places unless they are `in_order`; an empty batch is one pass.

    Shuffled batches are in an order that was drawn before: a unit that replaces another has its place.
    """
    from tacit.sampling.uniform import draw_order

    width = table.rows_per_unit
    order = range(len(batch)) if in_order else draw_order(len(batch), bits).tolist()
    for start in range(0, max(len(batch), 1), units_per_pass):
        drawn = [table.rows_of(batch[n], bits) for n in order[start : start + units_per_pass]]
        nobody = drawn[0][0] if drawn else 0
        positions = [nobody] * (units_per_pass * width)
        mask = torch.zeros(units_per_pass * width, dtype=torch.bool)
        places = range(units_per_pass) if in_order else draw_order(units_per_pass, bits).tolist()
        for place, mine in zip(places, drawn, strict=False):
            first = place * width
            positions[first : first + width] = mine + mine[:1] * (width - len(mine))
            mask[first : first + len(mine)] = True
        yield Pass(positions, mask, start + units_per_pass >= len(batch))


def poisson_batches(rate: Fraction, table: UnitTable, bits: Bits, steps: int) -> Iterator[list[int]]:
    """Yield so many batches, in each of which every unit is with probability `rate`."""
    from tacit.sampling import bernoulli

    for _ in range(steps):
        if rate == 1:
            yield list(range(table.count))
        else:
            drawn = np.flatnonzero(bernoulli.draw_array_dyadic(rate, table.count, bits))
            yield [int(unit) for unit in drawn]


def shuffled_batches(size: int, order: Order, steps: int) -> Iterator[list[int]]:
    """Yield the last `steps` batches of one pass over all units in this order; every unit is in one batch."""
    first = -(-len(order) // size) - steps
    for step in range(first, first + steps):
        yield [int(unit) for unit in order[step * size : (step + 1) * size]]


def default_units_per_pass(expected: Fraction) -> int:
    """Return a size that 98 of 100 batches fit in: two deviations above the mean, and a multiple of eight."""
    return 8 * math.ceil((float(expected) + 2 * math.sqrt(expected)) / 8)


class PassSampler:
    """The positions of the passes of an epoch for a `DataLoader`, and the passes themselves in the same order."""

    def __init__(self, passes: Callable[[], Iterator[Pass]]) -> None:
        self._passes = passes
        self.given: deque[Pass] = deque()

    def __iter__(self) -> Iterator[list[int]]:
        for each in self._passes():
            self.given.append(each)
            yield each.positions
