"""From a question and a policy to its plan: what is measured and how that is read, at any epsilon."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from tacit.accounting.filters import whole
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
from tacit.answers.chosen_bounds import SHARE
from tacit.answers.clipping import Clipping
from tacit.answers.post_processing_plan import KeyColumn, PostProcessingPlan
from tacit.answers.stored import GroupKeys
from tacit.arithmetic import to_rational_between
from tacit.canonical import canonical_text
from tacit.errors import ErrorCode, Refused
from tacit.plan.binding import refuse_large_result
from tacit.plan.canonical import PLANS
from tacit.plan.check_arithmetic import ArithmeticCheck
from tacit.plan.choose_bounds import (
    BoundsChoice,
    ScaledArgument,
    count_in_units,
    describe_bounds,
    plan_choice,
    scale_unbounded,
)
from tacit.plan.clipping import bounds_by_clip, is_clipped, released_vector, spend_clipped
from tacit.plan.contribution import contribution_to_account
from tacit.plan.flatten import flatten_query
from tacit.plan.joined_keys import about_joined_keys
from tacit.plan.key_selection import selection_bounds, selection_measure, spend_on_keys
from tacit.plan.noise import AnyPart, ClippedPart, Part, Setting, Spending, spend
from tacit.plan.notes import about_constants, about_reading, about_rows
from tacit.plan.plan import MAX_EPSILON, MIN_EPSILON, Plan
from tacit.plan.public_tables import PublicRead
from tacit.plan.reading import Reading, read_query
from tacit.plan.relation import Relation
from tacit.plan.rewrite import rewrite_query
from tacit.plan.split import MAX_GROUPS, Halves
from tacit.policy.model import Policy
from tacit.privacy.loss import Compose
from tacit.privacy.sensitivity import ContributionBounds
from tacit.query.functions import Function
from tacit.query.nodes import Aggregation, Call, ColumnReference, Query, Scalar, find_location

MAX_MEASUREMENTS = 100  # of a question, in all its members
_LARGEST = Fraction(sys.float_info.max)
_MOST_LOOKS = 10**7  # some seconds of choosing


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

    @cached_property
    def _arithmetic(self) -> ArithmeticCheck:
        return ArithmeticCheck(self.policy, self.query.at)

    def plan(self, price: Fraction, delta: Fraction) -> Plan:
        """The plan at an epsilon and a delta."""
        relation, groups = self.relation, self.halves.groups
        listed = self.reading.listed
        if listed is not None:  # so many are read at most, and no more groups mean no less noise
            most = max(MAX_GROUPS, 2 * self.each.groups)
            groups = most if groups is None else min(groups, most)
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
                self.needed,
                price,
                delta,
                setting,
                relation,
                is_listed=listed is not None,
                is_weighed=is_weighed,
                may_clip_l2=self.policy.clips_l2,
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
        self._check(exact, spending, bounds)
        key = _key(self.policy, exact, spending, listed, self.halves.combinations, bounds)
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
            None if bounds is None else bounds.with_salt(key[:16]),
        )

    def _check(self, exact: Aggregation, spending: Spending, bounds: BoundsChoice | None) -> None:
        """Refuse a plan for which a row might make an engine fail."""
        self._arithmetic.check(exact, [measure for part in spending.parts for measure in part.need.measures])
        for part in spending.parts:
            if isinstance(part.need, TopKMeasurement):
                self._arithmetic.check_values(exact.source, part.need.measure.argument, part.need.values)
        for histogram in () if bounds is None else bounds.histograms:
            self._arithmetic.check(histogram)


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
            reading = read_query(rewritten, policy, canonical=True)
            return bind_reading(reading, policy, chooses_bounds=chooses_bounds)
        except Refused:  # what is wrong is said of the text as it is
            pass
    return bind_reading(read_query(query, policy, canonical=canonical), policy, chooses_bounds=chooses_bounds)


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


def bind_reading(reading: Reading, policy: Policy, *, chooses_bounds: bool = False) -> BoundQuestion:
    """What a question measures as it is read, and how that makes its answer, or Refused."""
    query, relation, halves, listed, is_kept, notes = reading
    halves, scaled = scale_unbounded(halves, relation) if chooses_bounds else (halves, ())
    said = dict.fromkeys([*notes, *halves.notes, *about_reading(query, relation), *about_constants(query, relation)])
    if listed is not None and not is_kept and halves.groups is None:
        said[about_joined_keys(query, halves)] = None
    averages = (a for a in halves.aggregates if a.aggregate.function == "avg" and not a.aggregate.distinct)
    averaged = frozenset(a.required_argument for a in averages)
    needed = [function_of(a.aggregate).measure(a, averaged) for a in halves.aggregates]
    if scaled:
        needed = [tuple(count_in_units(need, scaled) for need in some) for some in needed]
    check_size(len({need for some in needed for need in some}), query)
    _check_units(halves, needed)
    chosen = _collect_needs(halves, needed)
    recipe = replace(_recipe(query, halves, needed, list(chosen)), notes=tuple(said))
    if listed is not None:
        recipe = replace(recipe, keys=tuple(replace(key, values=None, listed=True) for key in recipe.keys))
    each, groups = relation.each, halves.groups
    if groups is not None:
        each = replace(each, groups=min(each.groups, groups))
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


def _check_units(halves: Halves, needed: list[tuple[Measurement, ...]]) -> None:
    """Refuse what is released in units that are no doubles: of squares and products of numbers that are."""
    for asked, some in zip(halves.aggregates, needed, strict=True):
        for need in some:
            if isinstance(need, VectorMeasurement) and need.unit * max(-need.lower, need.upper, 1) > _LARGEST:
                raise refuse_large_result(asked.aggregate.at)


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
        combinations=halves.combinations,
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


def _no_delta(policy: Policy) -> str:
    return "of which your budget has none" if policy.delta_per_question else "which the policy sets to zero"


def _key(
    policy: Policy,
    exact: Aggregation,
    spending: Spending,
    listed: PublicRead | None,
    combinations: tuple[GroupKeys, ...] | None,
    bounds: BoundsChoice | None,
) -> str:
    """The name of the private half: equal for questions that differ only in post-processing.

    The epsilon is in it through the noise, and the data's epoch through the policy's digest.
    """
    parts = [(p.need, p.weight if isinstance(p, ClippedPart) else p.mechanism) for p in spending.parts]
    keys: tuple[object, ...] = () if listed is None else (listed.rows,)
    keys += () if spending.clipping is None else (spending.clipping.mechanism,)
    keys += () if combinations is None else ("combinations", combinations)
    keys += () if bounds is None else ("bounds", 1, bounds.histograms, bounds.scale)
    text = canonical_text((policy.digest, exact, parts, spending.shown, *keys), PLANS)
    return hashlib.sha256(text.encode()).hexdigest()
