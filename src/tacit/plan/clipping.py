"""Questions in which a clip bounds what a unit adds, chosen for each of them: `max_rows = "auto"`.

All that a question measures in all of its groups is one vector of a unit: each measurement times an integer weight, so
that what a row adds to the norm is shared between them as epsilon would be. One clip bounds its norm, so a unit has one
weight in all columns of an answer, and an average is that of the clipped units. The norm is L1, with Laplace noise; or,
where keys are declared and there are so many groups that it may be better, L1 or L2, with Laplace or Gaussian noise,
whichever the histogram of norms says.

**Theorem.** The release is epsilon-DP, with private keys or where the norm is chosen (epsilon, delta)-DP. Proof. The
vector of a unit is a function of its own rows and of the groups, which are public, or selected before at their share of
epsilon and at delta. `ClippedSum` releases the sums of such vectors, at the rest b of epsilon: the norm is a function
of its first release, given which its second is the mechanism that the norm names. What is reserved is the loss of the
first and the largest of each number over both mechanisms (`OneOf`): of (b, 0) and (b, delta) by filter A, and by filter
B of the rho of b and that of the Gaussian noise, without a delta.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from tacit.aggregates.argument import quote_aggregate
from tacit.aggregates.base import BoundAggregate, Measurement, ReleasedVector, VectorMeasurement
from tacit.answers.clipping import MOST_ENTRIES, Clipping
from tacit.errors import ErrorCode, Refused
from tacit.mechanisms.clipped_sum import LARGEST_CLIP, ClippedSum
from tacit.plan.key_selection import select_keys
from tacit.plan.noise import ClippedPart, Setting, Spending
from tacit.plan.relation import Relation
from tacit.privacy.contribution_profile import BITS
from tacit.privacy.loss import Compose, Loss, PureDp
from tacit.query.clipped_aggregation import ClippedAggregation, WeightedVector
from tacit.query.nodes import Aggregation, ExactStatistic
from tacit.query.types import Key

_AGGREGATES = frozenset({"count", "sum", "avg"})
_MOST_ROWS = 2**31  # of a unit, where no number is declared
_LEVEL = Fraction(95, 100)  # at which one noise is said to be larger than another


def bounds_by_clip(relation: Relation) -> bool:
    """Whether a unit may have several rows, and the policy leaves it to a clip how much of them counts."""
    return relation.chosen is not None and relation.unit is not None and not relation.single


def is_clipped(
    relation: Relation, aggregates: Sequence[BoundAggregate], needed: Iterable[Measurement], groups: int | None
) -> bool:
    """Whether a question's units are clipped; Refused where they cannot be, and the policy has no caps either.

    Where units are counted and there is one group, each adds one at most, and there is nothing to clip.
    """
    if not bounds_by_clip(relation) or not aggregates:
        return False
    if groups == 1 and all(isinstance(need, VectorMeasurement) and need.is_per_unit for need in needed):
        return False
    others = [asked for asked in aggregates if not _is_sum(asked)]
    if others and relation.chosen is not None and not relation.chosen.has_caps:
        name = quote_aggregate(others[0].aggregate)
        what = f"{name} needs a cap on the rows of each {relation.called}, and the policy declares none"
        fix = "ask for COUNT, SUM or AVG, or ask the owner for max_rows = { auto_up_to = 100 }"
        raise Refused(ErrorCode.UNBOUNDED, what, at=others[0].aggregate.at, fix=fix)
    return not others


def _is_sum(asked: BoundAggregate) -> bool:
    """Whether an aggregate is made of sums of what each unit adds."""
    if asked.aggregate.function not in _AGGREGATES:
        return False
    return not asked.aggregate.distinct or asked.of_unit or asked.required_argument.is_per_unit


def spend_clipped(
    needed: Mapping[Measurement, Fraction],
    epsilon: Fraction,
    delta: Fraction,
    at: Setting,
    relation: Relation,
    *,
    is_listed: bool,
    is_weighed: bool,
    may_clip_l2: bool,
) -> Spending:
    """Share epsilon between the selection of private keys, by weight where `is_weighed`, and one clipped vector of all
    that is needed.

    How much of it chooses the clip depends on the number of groups. Where that is not known yet, because keys are
    selected or `is_listed`, the loss is that of any epsilon-DP release, and there is no delta for clips of L2.
    """
    selection, selecting = None, Fraction(0)
    if at.groups is None:
        selecting = epsilon / (sum(needed.values()) + 1)
        selection = select_keys(selecting, delta, at, relation, is_weighed=is_weighed)
    losses: list[Loss] = [] if selection is None else [*selection.losses]
    parts = _weigh(needed)
    per_row = sum(part.weight * part.largest for part in parts)
    largest = min(LARGEST_CLIP, max(1, per_row) * (relation.most_rows or _MOST_ROWS))
    groups = 1 if at.groups is None else at.groups
    entries = max(1, min(MOST_ENTRIES, groups * len(parts)))
    row = min(LARGEST_CLIP, max(1, per_row))
    clipped = ClippedSum(epsilon - selecting, 0, entries, at.neighbors, largest, nonnegative=False, row=row)
    if may_clip_l2 and at.groups is not None and not is_listed and delta > 0 and groups * len(parts) <= MOST_ENTRIES:
        either = replace(clipped, delta=delta)
        clipped = either if either.may_gain_by_l2() else clipped
    losses.append(PureDp(clipped.epsilon) if at.groups is None or is_listed else clipped.loss())
    clipping = Clipping(clipped, per_row, relation.called)
    if selection is None:
        return Spending(parts, None, Compose(tuple(losses)), Fraction(0), clipping)
    return Spending(parts, selection.shown, Compose(tuple(losses)), selection.delta, clipping)


def _weigh(needed: Mapping[Measurement, Fraction]) -> tuple[ClippedPart, ...]:
    """The weights by which what a row adds to the norm is shared, as nearly as integers do.

    A row of a count adds one, and values are taken to be half of what is declared: a guess, which costs no privacy.
    """
    vectors = [need for need in needed if isinstance(need, VectorMeasurement)]
    sizes = {need: max(1, abs(need.lower), abs(need.upper)) for need in vectors}
    typical = {need: Fraction(size, 1 if need.lower == need.upper else 2) for need, size in sizes.items()}
    scale = max(typical.values(), default=1) / min(needed.values(), default=Fraction(1))
    return tuple(ClippedPart(need, max(1, int(scale * needed[need] / typical[need]))) for need in vectors)


def released_vector(part: ClippedPart, clipping: Clipping) -> ReleasedVector:
    """What is known of a part before it is released: the noise that one row would get, the larger of what it may be."""
    unit, row = part.need.unit / (part.weight << BITS), max(1, clipping.per_row)
    norms = (1, 2) if clipping.mechanism.delta else (1,)
    noise = max((clipping.mechanism.noise(row, norm) for norm in norms), key=lambda each: each.error(_LEVEL))
    return ReleasedVector(part.need.name, noise, unit, is_signed=part.need.lower < 0, is_chosen=True)


def clipped_aggregation(
    exact: Aggregation,
    parts: Sequence[ClippedPart],
    groups: Sequence[tuple[Key | None, ...]],
    largest: int,
    ratios: int = 1,
) -> ClippedAggregation:
    """What an engine is told, once the groups are known."""
    assert exact.unit is not None
    vectors = tuple(WeightedVector(_terms(part.need), part.weight, part.weight * part.largest) for part in parts)
    return ClippedAggregation(
        exact.source, exact.where, exact.unit, exact.keys, tuple(groups), vectors, largest, ratios
    )


def _terms(need: VectorMeasurement) -> tuple[tuple[int, ExactStatistic], ...]:
    """The terms of a vector. Of a unit that has one value at most, values are counted as the unit is."""
    return tuple(
        (factor, replace(measure, function="units") if measure.function == "distinct" else measure)
        for factor, measure in need.terms
    )
