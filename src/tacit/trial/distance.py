"""How well a release tells two databases apart, roughly: to choose the pair of neighbors that an audit looks at.

A poor choice makes an audit weaker, never wrong: its bound holds for any pair.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tacit.answers.stored import GroupKeys, Release
from tacit.engines.base import Engine, GroupedMeasures
from tacit.mechanisms.laplace import Laplace
from tacit.plan.noise import Part, Pick
from tacit.plan.plan import Plan
from tacit.sampling.bits import Bits

_LOOKS = 60  # releases of a database


@dataclass(frozen=True)
class SampledReleases:
    """What the engine gives of a database, and a few releases of it where their distribution is not plain from that."""

    exact: GroupedMeasures
    looks: tuple[Release, ...]

    @property
    def shown_rates(self) -> Counter[GroupKeys]:
        """How often each private group is shown."""
        return Counter(group for release in self.looks for group in release.groups or ())


def sample_releases(plan: Plan, exact: GroupedMeasures, bits: Bits, engine: Engine) -> SampledReleases:
    """A database as a plan sees it."""
    if plan.shown is None and all(isinstance(part, Part) for part in plan.parts):
        return SampledReleases(exact, ())
    return SampledReleases(exact, tuple(plan.release(exact, bits, engine=engine) for _ in range(_LOOKS)))


def estimate_distance(plan: Plan, one: SampledReleases, other: SampledReleases) -> float:
    """The distance of the noisy vectors, in their noise, and of the choices and the keys that a few releases show.

    It is zero where nothing differs. A vector counts in a private group as often as the group is shown.
    """
    shown = one.shown_rates, other.shown_rates
    total = 0.0
    for group in {*one.exact, *other.exact}:
        often = 1.0 if plan.shown is None else min(shown[0][group], shown[1][group]) / _LOOKS
        total += abs(shown[0][group] - shown[1][group]) / _LOOKS
        total += often * sum(
            abs(_number(plan, part, one.exact, group) - _number(plan, part, other.exact, group)) / _scale(part)
            for part in plan.parts
            if isinstance(part, Part)
        )
    if plan.shown is not None:
        return total
    for index, part in enumerate(plan.parts):
        if isinstance(part, Pick):
            looks = [[release.parts[index] for release in each.looks] for each in (one, other)]
            total += (
                _kolmogorov_distance(looks)
                + _max_frequency_change(plan, part, one.exact, other.exact) / plan.exact.keep.rows
            )
    return total


def _number(plan: Plan, part: Part, exact: GroupedMeasures, group: GroupKeys) -> int:
    """The part's integer in a group."""
    if group not in exact:
        return 0
    cells = [(factor, exact[group][plan.exact.measures.index(measure)]) for factor, measure in part.need.terms]
    return sum(factor * cell for factor, cell in cells if isinstance(cell, int))


def _max_frequency_change(plan: Plan, part: Pick, one: GroupedMeasures, other: GroupedMeasures) -> int:
    """By how many rows the frequency of a single value differs, at most: a choice goes by these."""
    position = plan.exact.measures.index(part.need.measure)
    most = 0
    for group in {*one, *other}:
        cells = [exact[group][position] if group in exact else {} for exact in (one, other)]
        before, after = (cell if isinstance(cell, Mapping) else {} for cell in cells)
        most = max([most, *(abs(before.get(value, 0) - after.get(value, 0)) for value in {*before, *after})])
    return most


def _scale(part: Part) -> float:
    noise = part.mechanism
    return float(noise.scale) if isinstance(noise, Laplace) else math.sqrt(noise.variance)


def _kolmogorov_distance(sides: Sequence[Sequence[Sequence[int]]]) -> float:
    """The largest distance of two empirical distribution functions, over the coordinates."""
    one, other = (np.array(side, dtype=np.float64) for side in sides)
    largest = 0.0
    for column in range(one.shape[1]):
        points = np.concatenate([one[:, column], other[:, column]])
        below = [np.searchsorted(np.sort(s[:, column]), points, side="right") / len(s) for s in (one, other)]
        largest = max(largest, float(np.max(np.abs(below[0] - below[1]))))
    return largest
