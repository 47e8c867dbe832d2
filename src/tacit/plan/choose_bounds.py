"""SUM and AVG of values without declared bounds: bounds are chosen privately for the question, from its own rows.

Of each unit one row that takes part is taken, and its value falls into one of about seventy sizes: zero, or the power
of two that it reaches. The histogram of sizes is released with noise at a fifth of epsilon. A size is occupied if its
noisy count is one that no empty size has, with probability 99% and more, the farther it is from others. B is the
power of two at the end of the largest occupied size, and 1 where there is none. The question is then about x/B, clamped
to [-1, 1] and put on a grid of 2^30 steps either way.

**Theorem.** The release is (epsilon, delta)-DP. Proof. With m rows of a unit among those that are counted, m = 1 where
rows of units are bounded and what the unit may stand in otherwise, a unit moves the histogram by at most m in L1, under
replace by 2m, and all H histograms by H times that; discrete Laplace noise of that over a fifth of epsilon makes them
(epsilon/5)-DP. B is computed from them. Given B, what is measured is that of a plan whose bounds, grid, caps, noise and
salt do not depend on B: the argument is clamped to [-1, 1] after it is multiplied by 1/B, whatever B is. So its loss is
that of the plan at the rest of epsilon, and the two compose (`answers/choosing_values.py`).

No value fails: it is clamped before it is multiplied, and multiplying by a power of two rounds at most what is next to
zero. NaN is NULL, and infinities are the largest values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.aggregates.argument import quote_argument
from tacit.aggregates.base import BoundAggregate, Measurement, VectorMeasurement
from tacit.answers.argument_bounds import ArgumentBounds
from tacit.answers.choosing_values import ChosenValues, placeholders_of
from tacit.answers.chosen_bounds import FORMER_STEPS, STEPS, count_sizes, largest_of_size, scale_estimator
from tacit.answers.histogram_estimates import occupied_threshold
from tacit.answers.post_processing_plan import PostProcessingPlan
from tacit.engines.base import Engine
from tacit.mechanisms.laplace import Laplace
from tacit.plan.relation import Relation
from tacit.plan.split import Halves
from tacit.privacy.loss import LaplaceNoise, Loss, Repeat
from tacit.privacy.sensitivity import ContributionBounds
from tacit.privacy.unit import Neighbors
from tacit.query.bound import TypedScalar
from tacit.query.functions import Function
from tacit.query.nodes import (
    Aggregate,
    Aggregation,
    Call,
    Case,
    Clamp,
    ColumnReference,
    ExactStatistic,
    Literal,
    Placeholder,
    Quantize,
    Scalar,
    ToFloat,
)
from tacit.query.types import NUMERIC_TYPES, Type
from tacit.query.value_bins import ValueBins
from tacit.sampling.bits import Bits

_DEFAULT = {Type.INT: 1, Type.FLOAT: 20}  # the size whose largest value is next to 1
_AGGREGATES = frozenset({"sum", "avg"})
_PER_SIZE = 1.5 * math.log(2)
_FAR = Fraction(2) ** 50  # beyond which a float is read as this


@dataclass(frozen=True)
class ScaledArgument:
    """An argument of which x/B is measured: the placeholder for 1/B, x itself, its type, the words for it, its grid."""

    name: str
    value: Scalar
    type: Type
    called: str
    steps: int


@dataclass(frozen=True)
class BoundsChoice:
    """How bounds of a plan's arguments are chosen: for each of them the histogram of sizes, and the noise of all."""

    arguments: tuple[ScaledArgument, ...]
    histograms: tuple[Aggregation, ...]
    scale: Fraction
    sensitivity: int

    @property
    def loss(self) -> Loss:
        """The privacy loss of all histograms."""
        return Repeat(LaplaceNoise(self.scale, self.sensitivity), len(self.histograms))

    def with_salt(self, salt: str) -> BoundsChoice:
        """The same with the salt by which rows are chosen."""
        return replace(self, histograms=tuple(replace(each, salt=salt) for each in self.histograms))

    def choose(self, engine: Engine, bits: Bits) -> tuple[ChosenValues, tuple[int, ...]]:
        """Return 1/B for each placeholder, and the sizes that were chosen, which are released."""
        known, sizes = {}, []
        for argument, node in zip(self.arguments, self.histograms, strict=True):
            (found,) = engine.run(node)[()]
            assert isinstance(found, Mapping)
            codes = [[size] if size == 0 else [size, -size] for size in range(count_sizes(argument.type))]
            exact = [sum(found.get(code, 0) for code in both) for both in codes]
            noisy = Laplace(self.scale).release(exact, bits)
            sizes.append(find_largest_size(noisy, self.scale, _DEFAULT[argument.type]))
            known[argument.name] = 1 / largest_of_size(argument.type, sizes[-1])
        return known, tuple(sizes)


def find_largest_size(noisy: Sequence[int], scale: Fraction, default: int) -> int:
    """Return the largest size that is occupied, or the default where none is.

    A size that is taken for occupied by mistake, g sizes above the last that is, makes the noise 2^g times too large.
    So for each size of that gap, counted from the default at least, its noisy count must be 1.5 ln 2 scale larger: the
    probability of a mistake falls as 2^(-1.5 g), faster than its cost grows.
    """
    least, found, last = occupied_threshold(len(noisy), scale), default, default
    for size, count in enumerate(noisy):
        gap = max(0, size - last - 1)
        if count >= least + gap * _PER_SIZE * float(scale):
            found, last = size, max(last, size)
    return found


def scale_unbounded(halves: Halves, relation: Relation) -> tuple[Halves, tuple[ScaledArgument, ...]]:
    """Return the question with x/B in the place of each x without bounds that is summed or averaged, and these x.

    They are columns of tables as they lie, for all rows or for those of FILTER. Bounds that an expression or a subquery
    has lost are better kept by a clamp, which costs nothing.
    """
    columns = {ColumnReference(field.raw) for field in relation.fields if field.raw and not field.is_unit}
    steps = STEPS if relation.has_fine_grids else FORMER_STEPS
    found: dict[TypedScalar, ScaledArgument] = {}

    def scale(asked: BoundAggregate) -> BoundAggregate:
        argument = asked.argument
        if argument is None or argument.type is None or not _can_be_scaled(asked.aggregate, argument, columns):
            return asked
        words = quote_argument(asked.aggregate)
        scaled = ScaledArgument(f"bound {len(found)}", argument.scalar, argument.type, words, steps)
        return replace(asked, argument=_measure_share(found.setdefault(argument, scaled), argument))

    aggregates = tuple(map(scale, halves.aggregates))
    return (replace(halves, aggregates=aggregates) if found else halves), tuple(found.values())


def _can_be_scaled(aggregate: Aggregate, argument: TypedScalar, columns: set[ColumnReference]) -> bool:
    """Whether an aggregate adds up the values of a column that has no bounds."""
    if aggregate.function not in _AGGREGATES or aggregate.distinct or argument.type not in NUMERIC_TYPES:
        return False
    return not argument.is_bounded and argument.capped is None and _find_column(argument.scalar) in columns


def _find_column(scalar: Scalar) -> Scalar:
    """The column that a scalar reads as it is: where FILTER holds, and with NaN as NULL."""
    match scalar:
        case Case(((_, value),), Literal(None)):
            return _find_column(value)
        case Clamp(value, None, None):
            return value
    return scalar


def _measure_share(argument: ScaledArgument, plain: TypedScalar) -> TypedScalar:
    """x/B, clamped to [-1, 1]; of integers in steps of the grid, which are integers too."""
    value, most = _keep_finite(argument), argument.steps
    share = Call(Function.MULTIPLY, (value, Placeholder(argument.name, Type.FLOAT)))
    if argument.type is Type.INT:
        steps = Quantize(share, Fraction(1, most), -most, most)
        return TypedScalar(steps, Type.INT, Fraction(-most), Fraction(most), Fraction(1), nullable=plain.nullable)
    clamped = Clamp(share, Fraction(-1), Fraction(1), whole=False)
    return TypedScalar(clamped, Type.FLOAT, Fraction(-1), Fraction(1), Fraction(1, most), nullable=plain.nullable)


def _keep_finite(argument: ScaledArgument) -> Scalar:
    """x as a double that can be multiplied."""
    if argument.type is Type.INT:
        return ToFloat(argument.value)
    return Clamp(argument.value, -_FAR, _FAR, whole=False)


def plan_choice(
    arguments: tuple[ScaledArgument, ...],
    exact: Aggregation,
    each: ContributionBounds,
    neighbors: Neighbors,
    epsilon: Fraction,
) -> BoundsChoice:
    """Plan how bounds are chosen with an epsilon; `each` is how often a unit may stand in rows that are not bounded."""
    rows = 1 if exact.unit is not None else each.most
    sensitivity = rows if neighbors is Neighbors.ADD_REMOVE else 2 * rows
    histograms = tuple(_count_sizes(argument, exact) for argument in arguments)
    return BoundsChoice(arguments, histograms, len(arguments) * sensitivity / epsilon, sensitivity)


def _count_sizes(argument: ScaledArgument, exact: Aggregation) -> Aggregation:
    """The histogram of an argument, of one row of each unit that has a value."""
    value = argument.value if argument.type is Type.INT else Clamp(argument.value, -_FAR, _FAR, whole=False)
    known: Scalar = Call(Function.NOT, (Call(Function.IS_NULL, (value,)),))
    where = known if exact.where is None else Call(Function.AND, (exact.where, known))
    code = ExactStatistic("histogram", ValueBins(argument.type).write_code(value))
    return Aggregation(exact.source, where, exact.unit, (), ContributionBounds(1, 1), (code,))


def count_in_units(need: Measurement, arguments: tuple[ScaledArgument, ...]) -> Measurement:
    """Return a measurement for B = 1: the steps in which integers are added up are each worth that part of it."""
    if isinstance(need, VectorMeasurement):
        for argument in arguments:
            if argument.type is Type.INT and _sums(need, argument.name):
                return replace(need, unit=need.unit / argument.steps)
    return need


def describe_bounds(
    arguments: tuple[ScaledArgument, ...], needs: Sequence[Measurement], recipe: PostProcessingPlan
) -> PostProcessingPlan:
    """Return the recipe that knows which sums and means are made of each argument, for B = 1."""
    found, means = [], list(recipe.values)
    for argument in arguments:
        places = tuple(place for place, need in enumerate(needs) if _sums(need, argument.name))
        values = tuple(
            place for place, value in enumerate(recipe.values) if value.positions and value.positions[0] in places
        )
        if argument.type is Type.INT:
            for place in values:
                means[place] = scale_estimator(means[place], Fraction(1, argument.steps))
        found.append(ArgumentBounds(argument.called, argument.type, places, values))
    return replace(recipe, values=tuple(means), bounds=tuple(found))


def _sums(need: object, name: str) -> bool:
    """Whether values of an argument are added up, and not only counted."""
    return isinstance(need, VectorMeasurement) and any(
        measure.function == "sum" and name in placeholders_of(measure) for measure in need.measures
    )
