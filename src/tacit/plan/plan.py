"""The plan: all that will happen, decided by the question and the policy before any data is touched.

**Theorem.** The release of a plan is (epsilon, delta)-DP for the policy's unit and relation, where epsilon is the one
and delta at most the policy's for one question. Proof: the rows of a unit are a function of its own rows
(`plan/scope.py`); after bounding it moves what is measured by at most what `plan/contribution.py` says; the noise, the
choices and the selection of keys cost what `plan/noise.py` says. Post-processing is a function of the release.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from tacit.accounting.filters import GRAINS_PER_EPSILON, compute_charge
from tacit.aggregates.base import (
    QuantileMeasurement,
    VectorMeasurement,
)
from tacit.answers.choosing_values import NO_VALUES, ChoosingValue, ChosenValues, fill, placeholders_of
from tacit.answers.clipping import Clipping
from tacit.answers.post_processing_plan import PostProcessingPlan
from tacit.answers.stored import GroupKeys, Release, StoredClip
from tacit.engines.base import Engine, GroupedMeasures, MeasureValue
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.threshold import Threshold
from tacit.mechanisms.top_k import TopK
from tacit.plan.choose_bounds import (
    BoundsChoice,
)
from tacit.plan.clipping import clipped_aggregation
from tacit.plan.key_selection import selection_measure
from tacit.plan.noise import AnyPart, ClippedPart, Part, Pick, Shown
from tacit.plan.public_tables import PublicRead
from tacit.plan.reading import Reading
from tacit.plan.split import MAX_GROUPS
from tacit.privacy.loss import Loss
from tacit.query.nodes import (
    Aggregation,
    ExactStatistic,
    scanned_tables,
)
from tacit.query.types import Key
from tacit.sampling.bits import Bits

MIN_EPSILON = Fraction(1, 10**6)
MAX_EPSILON = Fraction(1000)
_Terms = list[tuple[int, int]]
"""Factors, each with the position of a measure."""


@dataclass(frozen=True)
class Plan:
    """What the engine computes, what is added to it, what that costs, and how to read the result."""

    unit: str
    exact: Aggregation
    parts: tuple[AnyPart, ...]
    shown: Shown | None
    recipe: PostProcessingPlan
    loss: Loss
    delta: Fraction
    key: str
    listed: PublicRead | None = None  # the rows of public tables that are the keys
    bounds: BoundsChoice | None = None  # of values that have none
    reading: Reading | None = field(default=None, compare=False, repr=False)  # of the question, where it is kept

    @property
    def epsilon_delta(self) -> tuple[Fraction, Fraction]:
        """(epsilon, delta) of the answer by itself."""
        found = compute_charge(self.loss, self.delta)
        return Fraction(found.epsilon, GRAINS_PER_EPSILON), Fraction(found.delta_a, 10**18)

    @property
    def members(self) -> tuple[Plan, ...]:
        """The plans that are released for it: this one."""
        return (self,)

    @property
    def values(self) -> tuple[ChoosingValue, ...]:
        """The released values that choose its rows: none."""
        return ()

    @property
    def placeholders(self) -> frozenset[str]:
        """The names of the values that must be released before it is computed."""
        return placeholders_of((self.exact, *(part.need for part in self.parts)))

    @property
    def public(self) -> tuple[PublicRead, ...]:
        """The rows of public tables that are read to finish it: none."""
        return ()

    @property
    def tables(self) -> frozenset[str]:
        """The tables that the engine reads, private and public ones."""
        return scanned_tables(self.exact.source)

    @property
    def reads_data(self) -> bool:
        """Whether anything is measured or selected; where it is not, the answer follows from the policy alone."""
        return bool(self.parts) or self.shown is not None

    @property
    def cells(self) -> int:
        """The most values that are released or shown, from public numbers: groups by columns.

        Columns are those of the answer or the values measured for them, whichever are more. Of private keys at most
        MAX_GROUPS are shown.
        """
        groups = MAX_GROUPS if self.recipe.groups is None else self.recipe.groups
        return groups * max(len(self.parts), len(self.recipe.results))

    def compute(self, engine: Engine, known: ChosenValues = NO_VALUES) -> GroupedMeasures:
        """What is measured before any noise: nothing where the policy alone answers, or all is clipped."""
        is_run = self.reads_data and (self.recipe.clipping is None or self.shown is not None)
        return engine.run(fill(self.exact, known)) if is_run else {}

    def release(
        self,
        exact: Mapping[GroupKeys, tuple[MeasureValue, ...]],
        bits: Bits,
        listed: Sequence[GroupKeys] | None = None,
        engine: Engine | None = None,
        known: ChosenValues = NO_VALUES,
    ) -> Release:
        """The noisy integers and the choices: for each part, one for each group that is shown, or a top-k's names.

        A public group that no row fell into is a group of nothing, and gets its noise like any other. Private ones are
        taken in the order of their keys, which does not depend on how the data lies. `listed` are the keys that were
        read from public tables, where the plan has such. `engine` is asked again where units are clipped. `known` are
        the released values that choose rows.
        """
        if self.recipe.clipping is not None:
            assert engine is not None
            return self._release_clipped(self.recipe.clipping, exact, bits, listed, engine, known)
        if self.listed is not None:
            assert listed is not None
            read = list(listed)
            return Release(read, [self._part(part, exact, read, bits) for part in self.parts])
        if self.shown is None:
            groups = self.recipe.list_groups()
            return Release(None, [self._part(part, exact, groups, bits) for part in self.parts])
        if isinstance(self.shown.mechanism, Threshold):
            reached = self.shown.mechanism.release(self._selection_counts(exact), bits)
            kept = list(reached)[:MAX_GROUPS]
            parts = [
                [reached[group] for group in kept] if index == self.shown.part else self._part(part, exact, kept, bits)
                for index, part in enumerate(self.parts)
            ]
            return Release(kept, parts)
        kept = self._select_keys(exact, bits, engine, known)
        return Release(kept, [self._part(part, exact, kept, bits) for part in self.parts])

    def _release_clipped(
        self,
        clipping: Clipping,
        exact: Mapping[GroupKeys, tuple[MeasureValue, ...]],
        bits: Bits,
        listed: Sequence[GroupKeys] | None,
        engine: Engine,
        known: ChosenValues,
    ) -> Release:
        """The same where a clip is chosen: over all public groups, or over those that are selected first."""
        shown: list[GroupKeys] | None = None if listed is None else list(listed)
        if self.shown is not None:
            shown = self._select_keys(exact, bits, engine, known)
        groups = self.recipe.list_groups() if shown is None else shown
        parts = [part for part in self.parts if isinstance(part, ClippedPart)]
        if not groups:
            return Release(shown, [[] for _ in parts], StoredClip(1, 0, 0))
        rule = clipping.over(len(groups) * len(parts))
        node = clipped_aggregation(self.exact, parts, groups, rule.largest, rule.ratios)
        made = rule.release_profile(engine.profile(fill(node, known)), bits)
        numbers = [list(made.steps[place * len(groups) :][: len(groups)]) for place in range(len(parts))]
        return Release(shown, numbers, StoredClip(made.clip, round(made.lost), round(made.whole), made.norm))

    def _select_keys(
        self,
        exact: Mapping[GroupKeys, tuple[MeasureValue, ...]],
        bits: Bits,
        engine: Engine | None,
        known: ChosenValues,
    ) -> list[GroupKeys]:
        """The private keys that are shown, in order. By weight the engine is asked again without those shown before."""
        assert self.shown is not None
        assert not isinstance(self.shown.mechanism, Threshold)
        if isinstance(self.shown.mechanism, PartitionSelection):
            return self.shown.mechanism.release(self._selection_counts(exact), bits)[:MAX_GROUPS]

        def weigh(shown: Sequence[GroupKeys]) -> dict[GroupKeys, int]:
            if not shown:
                return self._selection_counts(exact)
            assert engine is not None
            return self._selection_counts(engine.run(replace(fill(self.exact, known), excluded=tuple(shown))))

        found = self.shown.mechanism.release_rounds(weigh, bits, enough=MAX_GROUPS)
        return sorted(found, key=_order)[:MAX_GROUPS]

    def _selection_counts(self, exact: Mapping[GroupKeys, tuple[MeasureValue, ...]]) -> dict[GroupKeys, int]:
        """What the selection of keys looks at: the part that it counts by, the number of units, or their weight."""
        assert self.shown is not None
        measure = selection_measure(self.shown)
        if measure is not None:
            terms = self._locate(((1, measure),))
        else:
            assert self.shown.part is not None
            part = self.parts[self.shown.part]
            assert isinstance(part, Part)
            terms = self._locate(part.need.terms)
        return {group: _number(terms, exact[group]) for group in sorted(exact, key=_order)}

    def _locate(self, terms: tuple[tuple[int, ExactStatistic], ...]) -> _Terms:
        """Each factor with the position of its measure, found once for all groups."""
        return [(factor, self.exact.measures.index(measure)) for factor, measure in terms]

    def _part(
        self,
        part: AnyPart,
        exact: Mapping[GroupKeys, tuple[MeasureValue, ...]],
        groups: list[GroupKeys],
        bits: Bits,
    ) -> list[int]:
        if isinstance(part, Part):
            nothing: tuple[MeasureValue, ...] = tuple(
                {} if m.function == "histogram" else 0 for m in self.exact.measures
            )
            terms = self._locate(part.need.terms)
            values = [_number(terms, exact.get(group, nothing)) for group in groups]
            return part.mechanism.release(values, bits)
        assert isinstance(part, Pick)
        position = self.exact.measures.index(part.need.measure)
        chosen: list[int] = []
        for group in groups:
            cell = exact[group][position] if group in exact else {}
            assert not isinstance(cell, int)
            chosen += _choices(part, cell, bits)
        return chosen


def _number(terms: _Terms, row: tuple[MeasureValue, ...]) -> int:
    total = 0
    for factor, position in terms:
        cell = row[position]
        assert isinstance(cell, int)
        total += factor * cell
    return total


def _choices(part: Pick, cell: Mapping[Key, int], bits: Bits) -> list[int]:
    """The choice from a histogram: a point of the grid, days as ordinals, or the positions of one key or more."""
    if isinstance(part.mechanism, Quantile):
        numbers = {k.toordinal() if isinstance(k, datetime.date) else int(k): n for k, n in cell.items()}
        return [part.mechanism.release(numbers, bits)]
    assert not isinstance(part.need, QuantileMeasurement | VectorMeasurement)
    counts = [cell.get(value, 0) for value in part.need.values]
    if isinstance(part.mechanism, TopK):
        return part.mechanism.release(counts, bits)
    return [part.mechanism.release(counts, bits)]


def _order(group: GroupKeys) -> tuple[Any, ...]:
    """An order of keys that depends on the keys alone; NULL comes last."""
    return tuple((key is None, "" if key is None else key) for key in group)
