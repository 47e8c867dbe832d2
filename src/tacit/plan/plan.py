"""The plan: all that will happen, decided by the question and the policy before any data is touched.

**Theorem.** The release of a plan is (epsilon, delta)-DP for the policy's unit and relation, where epsilon is the one
and delta at most the policy's for one question. Proof: the rows of a unit are a function of its own rows
(`plan/scope.py`); after bounding it moves what is measured by at most what `plan/contribution.py` says; the noise, the
choices and the selection of keys cost what `plan/noise.py` says. Post-processing is a function of the release.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import product
from typing import Any, NamedTuple

from tacit.accounting.filters import GRAINS_PER_EPSILON, compute_charge, whole
from tacit.aggregates.base import (
    Measurement,
    QuantileMeasurement,
    ReleasedSelection,
    ReleasedVector,
    Releases,
    TopKMeasurement,
    VectorMeasurement,
)
from tacit.aggregates.registry import function_of
from tacit.answers.choosing_values import NO_VALUES, ChoosingValue, ChosenValues, fill, placeholders_of
from tacit.answers.chosen_bounds import SHARE
from tacit.answers.clipping import Clipping
from tacit.answers.post_processing_plan import KeyColumn, PostProcessingPlan
from tacit.answers.stored import GroupKeys, Release, StoredClip
from tacit.arithmetic import to_rational_between
from tacit.canonical import canonical_text
from tacit.engines.base import Engine, GroupedMeasures, MeasureValue
from tacit.errors import ErrorCode, Refused
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.threshold import Threshold
from tacit.mechanisms.top_k import TopK
from tacit.plan.canonical import PLANS
from tacit.plan.choose_bounds import (
    BoundsChoice,
    ScaledArgument,
    count_in_units,
    describe_bounds,
    plan_choice,
    scale_unbounded,
)
from tacit.plan.clipping import bounds_by_clip, clipped_aggregation, is_clipped, released_vector, spend_clipped
from tacit.plan.contribution import contribution_to_account
from tacit.plan.flatten import flatten_query
from tacit.plan.joined_keys import about_joined_keys, list_joined_keys
from tacit.plan.key_selection import selection_bounds, selection_measure, spend_on_keys
from tacit.plan.noise import AnyPart, ClippedPart, Part, Pick, Setting, Shown, Spending, spend
from tacit.plan.notes import about_constants, about_reading, about_rows
from tacit.plan.public_keys import list_keys, mark_kept
from tacit.plan.public_tables import PublicRead
from tacit.plan.relation import Relation
from tacit.plan.rewrite import rewrite_query
from tacit.plan.scope import Scope
from tacit.plan.split import MAX_GROUPS, Halves, split
from tacit.policy.model import Policy
from tacit.privacy.loss import Compose, Loss
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregation,
    Call,
    ColumnReference,
    ExactStatistic,
    Query,
    Scalar,
    find_location,
    scanned_tables,
)
from tacit.query.types import Key
from tacit.sampling.bits import Bits

MIN_EPSILON = Fraction(1, 10**6)
MAX_EPSILON = Fraction(1000)
MAX_MEASUREMENTS = 100  # of a question, in all its members
_MOST_LOOKS = 10**7  # some seconds of choosing


_Terms = list[tuple[int, int]]
"""Factors, each with the position of a measure."""


class Reading(NamedTuple):
    """A query with its rows and its halves, and the keys that are listed where public tables have them."""

    query: Query
    relation: Relation
    halves: Halves
    listed: PublicRead | None
    is_kept: bool  # whether the rows of a public table are the keys
    notes: tuple[str, ...]


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
            groups: list[GroupKeys] = list(product(*(key.values or () for key in self.exact.keys)))
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
        groups = list(product(*(key.values or () for key in self.exact.keys))) if shown is None else shown
        parts = [part for part in self.parts if isinstance(part, ClippedPart)]
        if not groups:
            return Release(shown, [[] for _ in parts], StoredClip(1, 0, 0))
        rule = clipping.over(len(groups) * len(parts))
        node = clipped_aggregation(self.exact, parts, groups, rule.largest)
        made = rule.release_profile(engine.profile(fill(node, known)), bits)
        numbers = [list(made.steps[place * len(groups) :][: len(groups)]) for place in range(len(parts))]
        return Release(shown, numbers, StoredClip(made.clip, round(made.lost), round(made.whole)))

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


@dataclass(frozen=True)
class BoundQuestion:
    """A question bound to its rows: what it measures and how that is read, at any epsilon."""

    query: Query
    policy: Policy
    relation: Relation
    halves: Halves
    needed: dict[Measurement, Fraction]
    recipe: PostProcessingPlan  # without the parts, which follow from an epsilon
    each: ContributionBounds
    reading: Reading
    scaled: tuple[ScaledArgument, ...] = ()  # whose bounds are chosen

    def plan(self, price: Fraction, delta: Fraction) -> Plan:
        """The plan at an epsilon and a delta."""
        relation, groups = self.relation, self.recipe.groups
        listed = self.reading.listed
        if listed is not None:  # so many are read at most, and no more groups mean no less noise
            groups = max(MAX_GROUPS, 2 * self.each.groups)
        if groups is None and delta == 0:
            keys = zip(self.query.keys, self.halves.keys, strict=True)
            private = next(key for key, known in keys if known.values is None)
            raise Refused(
                ErrorCode.PRIVATE_KEY,
                f"which keys occur is private, and showing them needs a delta, {_no_delta(self.policy)}",
                at=find_location(private),
                fix="group by a column with declared values, or ask the owner for a delta",
            )
        accounted = contribution_to_account(self.each, relation.unit is not None)
        choosing = price * SHARE if self.scaled else Fraction(0)
        price -= choosing
        setting = Setting(accounted, self.policy.neighbors, groups)
        is_weighed = self.policy.weighs_keys
        if is_clipped(relation, self.halves.aggregates, self.needed, groups):
            spending = spend_clipped(
                self.needed, price, delta, setting, relation, is_listed=listed is not None, is_weighed=is_weighed
            )
        elif is_weighed and groups is None and not self.needed and bounds_by_clip(relation):
            spending = spend_on_keys(price, delta, setting, relation)
        else:
            spending = spend(self.needed, price, delta, setting)
        exact = _exact(self.halves, relation, self.each, spending)
        bounds, loss, recipe = None, spending.loss, self.recipe
        if self.scaled:
            rows = accounted if relation.unit is None else ContributionBounds(1, 1)  # of a unit that has one at most
            bounds = plan_choice(self.scaled, exact, rows, self.policy.neighbors, choosing)
            loss = Compose((bounds.loss, *(loss.parts if isinstance(loss, Compose) else (loss,))))
            recipe = describe_bounds(self.scaled, [part.need for part in spending.parts], recipe)
        key = _key(self.policy, exact, spending, listed, bounds)
        parts = Releases(_read(part, spending.clipping) for part in spending.parts)
        notes = (*recipe.notes, *about_rows(exact, relation.called, is_clipped=spending.clipping is not None))
        return Plan(
            relation.called,
            replace(exact, salt=key[:16]),
            spending.parts,
            spending.shown,
            replace(recipe, parts=parts, notes=notes, clipping=spending.clipping),
            loss,
            spending.delta,
            key,
            listed,
            None if bounds is None else bounds.salted(key[:16]),
        )


def bind_question(
    query: Query, policy: Policy, *, canonical: bool = True, chooses_bounds: bool = False
) -> BoundQuestion:
    """A question bound to its rows, or Refused.

    Where it `chooses_bounds`, values without bounds may be summed and averaged (`plan/choose_bounds.py`).
    """
    query = flatten_query(query)
    rewritten = rewrite_query(query, policy) if canonical else query
    if rewritten != query:
        try:
            reading = _read_query(rewritten, policy, canonical=True)
            return bind_reading(reading, policy, chooses_bounds=chooses_bounds)
        except Refused:  # what is wrong is said of the text as it is
            pass
    return bind_reading(_read_query(query, policy, canonical=canonical), policy, chooses_bounds=chooses_bounds)


def bind_bounded(query: Query, policy: Policy, *, canonical: bool = True) -> BoundQuestion:
    """A question bound to its rows, with bounds that are chosen where it has no others, or Refused.

    Whatever can be answered with the bounds that there are keeps its plan.
    """
    try:
        return bind_question(query, policy, canonical=canonical)
    except Refused as error:
        if error.code is not ErrorCode.UNBOUNDED or not canonical:
            raise
        try:
            return bind_question(query, policy, chooses_bounds=True)
        except Refused:
            raise error from None  # what is wrong is said of the question without a choice


def read_as_written(query: Query, policy: Policy, like: Reading) -> Reading:
    """The reading of a question as its text is written, which was its form in earlier versions, or Refused.

    `like` is the one that it has now, whose rows are mostly the same.
    """
    return _read_query(flatten_query(query), policy, canonical=False, like=like)


def _read_query(query: Query, policy: Policy, *, canonical: bool, like: Reading | None = None) -> Reading:
    query = mark_kept(query, policy)
    scope = Scope(policy)
    query, relation = scope.open(query)
    if like is not None and relation == like.relation:
        relation = like.relation  # which knows the scalars that were bound
    if relation.people is None:
        raise Refused(
            ErrorCode.UNSUPPORTED,
            "a question over public tables only is not answered",
            at=query.at,
            fix="read public tables where they are; join one to a private table to use it here",
        )
    halves = split(query, relation, canonical=canonical)
    listed = list_keys(query, relation, scope.kept[0], halves, policy) if scope.kept else None
    if listed is not None:
        halves = replace(halves, keys=tuple(replace(key, values=None) for key in halves.keys))
    elif canonical and policy.lists_joined_keys:
        listed = list_joined_keys(query, relation.rows, halves, policy)
    return Reading(query, relation, halves, listed, bool(scope.kept), tuple(scope.notes))


def bind_reading(reading: Reading, policy: Policy, *, chooses_bounds: bool = False) -> BoundQuestion:
    """What a question measures as it is read, and how that makes its answer, or Refused."""
    query, relation, halves, listed, is_kept, notes = reading
    halves, scaled = scale_unbounded(halves, relation) if chooses_bounds else (halves, ())
    said = dict.fromkeys([*notes, *halves.notes, *about_reading(query, relation), *about_constants(query, relation)])
    if listed is not None and not is_kept:
        said[about_joined_keys(query, halves)] = None
    averages = (a for a in halves.aggregates if a.aggregate.function == "avg" and not a.aggregate.distinct)
    averaged = frozenset(a.required_argument for a in averages)
    needed = [function_of(a.aggregate).measure(a, averaged) for a in halves.aggregates]
    if scaled:
        needed = [tuple(count_in_units(need, scaled) for need in some) for some in needed]
    check_size(len({need for some in needed for need in some}), query)
    chosen = _collect_needs(halves, needed)
    recipe = replace(_recipe(query, halves, needed, list(chosen)), notes=tuple(said))
    if listed is not None:
        recipe = replace(recipe, keys=tuple(replace(key, values=None, listed=True) for key in recipe.keys))
    each = (
        relation.each
        if recipe.groups is None
        else replace(relation.each, groups=min(relation.each.groups, recipe.groups))
    )
    if recipe.groups is None and listed is None and relation.unit is None and not relation.single and each.rows > 1:
        raise Refused(
            ErrorCode.PRIVATE_KEY,
            "private keys over rows that may occur several times are not answered",
            at=query.at,
            fix="group by a column with declared values",
        )
    _check_lists(chosen, recipe.groups, query)
    return BoundQuestion(query, policy, relation, halves, chosen, recipe, each, reading, scaled)


def read_epsilon(epsilon: Any, share: int = 1, *, rounded: bool = True) -> Fraction:
    """A `share`th of an epsilon, rounded down to whole grains, the ledger's steps, or Refused where it is out of range.

    It is rounded before anything is planned: noise and charge are then of the same number, and equal shares of a budget
    fit into it.
    """
    price = to_rational_between("epsilon", epsilon, MIN_EPSILON, MAX_EPSILON) / share
    return whole(price) if rounded else price


def plan_for(query: Query, policy: Policy, epsilon: Any, *, rounded: bool = True, canonical: bool = True) -> Plan:
    """The plan of a question of one query over rows at an epsilon, or Refused.

    `rounded=False` and `canonical=False`, of which `split` says what it leaves out, plan as ledgers of earlier versions
    know a question.
    """
    price = read_epsilon(epsilon, rounded=rounded)
    bound = bind_bounded(query, policy, canonical=canonical)
    return replace(bound.plan(price, policy.question_delta), reading=bound.reading)


def check_size(measurements: int, query: Query) -> None:
    """Refuse a question, or one made of several, that measures more values than are planned in good time."""
    if measurements > MAX_MEASUREMENTS:
        what = f"the question measures {measurements:,} values in each group; {MAX_MEASUREMENTS:,} is the most"
        raise Refused(ErrorCode.TOO_LARGE, what, at=query.at, fix="ask for fewer aggregates at a time")


def _collect_needs(halves: Halves, needed: list[tuple[Measurement, ...]]) -> dict[Measurement, Fraction]:
    """All that is needed, once, in an order of its own, each with the largest weight that an aggregate gives it."""
    found: dict[Measurement, Fraction] = {}
    for asked, some in zip(halves.aggregates, needed, strict=True):
        for need, weight in zip(some, function_of(asked.aggregate).budget_weights, strict=False):
            found[need] = max(found.get(need, Fraction(0)), weight)
    return {need: found[need] for need in sorted(found, key=_need_text)}


def _need_text(need: Measurement) -> str:
    return canonical_text(need, PLANS)


def _recipe(
    query: Query, halves: Halves, needed: list[tuple[Measurement, ...]], chosen: list[Measurement]
) -> PostProcessingPlan:
    """How to read the released parts, in the order chosen."""
    values = []
    places = {need: place for place, need in enumerate(chosen)}
    for asked, some in zip(halves.aggregates, needed, strict=True):
        positions = [places[need] for need in some]
        values.append(function_of(asked.aggregate).estimator(asked, some, positions))
    return PostProcessingPlan(
        keys=_keys(halves),
        parts=Releases(),
        values=tuple(values),
        results=halves.results,
        having=halves.having,
        order=halves.order,
        limit=query.limit,
        offset=query.offset,
    )


def _keys(halves: Halves) -> tuple[KeyColumn, ...]:
    """The keys; of a list with a private one none is public, because it is selected as a whole."""
    private = any(key.values is None for key in halves.keys)
    pairs = zip(halves.key_types, halves.keys, strict=True)
    return tuple(KeyColumn(kind, None if private else key.values) for kind, key in pairs)


def _exact(halves: Halves, relation: Relation, each: ContributionBounds, spending: Spending) -> Aggregation:
    """What the engine is told. A unit with one row at most needs no bounding, only to be somebody's."""
    measures = [m for part in spending.parts if not isinstance(part, ClippedPart) for m in part.need.measures]
    selecting = selection_measure(spending.shown)
    if selecting is not None:
        measures.append(selecting)
    where, unit = halves.where, relation.unit
    if relation.single and unit is not None:
        somebody: Scalar = Call(Function.NOT, (Call(Function.IS_NULL, (ColumnReference(unit),)),))
        where, unit = somebody if where is None else Call(Function.AND, (where, somebody)), None
    keep = selection_bounds(spending.shown, each)
    return Aggregation(relation.rows, where, unit, halves.keys, keep, tuple(dict.fromkeys(measures)))


def _check_lists(chosen: Iterable[Measurement], groups: int | None, query: Query) -> None:
    """Choosing k of n values in each group looks at all n of them k times: a public number, and a limited one."""
    for need in chosen:
        if isinstance(need, TopKMeasurement) and need.k * len(need.values) * (groups or MAX_GROUPS) > _MOST_LOOKS:
            what = f"{need.name} in so many groups has too many values to choose from"
            raise Refused(ErrorCode.TOO_LARGE, what, at=query.at, fix="name fewer values, or ask with fewer groups")


def _read(part: AnyPart, clipping: Clipping | None) -> ReleasedVector | ReleasedSelection:
    if isinstance(part, ClippedPart):
        assert clipping is not None
        return released_vector(part, clipping)
    if isinstance(part, Part):
        return ReleasedVector(part.need.name, part.mechanism, part.need.unit)
    need = part.need
    if isinstance(need, QuantileMeasurement):
        return ReleasedSelection(need.name, part.mechanism, need.argument.upper - need.argument.lower + 1)
    return ReleasedSelection(need.name, part.mechanism, len(need.values))


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


def _no_delta(policy: Policy) -> str:
    return "of which your budget has none" if policy.delta_per_question else "which the policy sets to zero"


def _key(
    policy: Policy,
    exact: Aggregation,
    spending: Spending,
    listed: PublicRead | None,
    bounds: BoundsChoice | None,
) -> str:
    """The name of the private half: equal for questions that differ only in post-processing.

    The epsilon is in it through the noise, and the data's epoch through the policy's digest.
    """
    parts = [(p.need, p.weight if isinstance(p, ClippedPart) else p.mechanism) for p in spending.parts]
    keys: tuple[object, ...] = () if listed is None else (listed.rows,)
    keys += () if spending.clipping is None else (spending.clipping.mechanism,)
    keys += () if bounds is None else ("bounds", 1, bounds.histograms, bounds.scale)
    text = canonical_text((policy.digest, exact, parts, spending.shown, *keys), PLANS)
    return hashlib.sha256(text.encode()).hexdigest()
