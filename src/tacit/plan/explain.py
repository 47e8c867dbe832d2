"""A plan in words: what would be done, what it costs, and how accurate it would be. No data is touched."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tacit.answers.chosen_bounds import describe_choice
from tacit.answers.explanation import ColumnAccuracy, Explanation, Noise
from tacit.answers.post_processing_plan import PostProcessingPlan
from tacit.answers.program import columns_with_intervals, noisy_columns, released_columns, trace_column
from tacit.arithmetic import Number, to_rational_between
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.top_k import TopK
from tacit.mechanisms.weighted_selection import WeightedGaussianSelection
from tacit.plan.clip_plans import ClipChoicePlan, FixedClipPlan, format_fraction
from tacit.plan.compound_plan import AnyPlan, CompoundPlan
from tacit.plan.noise import AnyPart, ClippedPart, Part, Pick, Shown
from tacit.plan.plan import Plan
from tacit.plan.split import MAX_GROUPS
from tacit.policy.model import Policy
from tacit.privacy.contribution_profile import BITS
from tacit.query.nodes import ReleasedValue, walk
from tacit.query.types import NUMERIC_TYPES

_ROWS = (100, 1_000, 10_000)  # group sizes for which the error of a mean is shown
_CLIPS = (1, 10, 100)  # rows of a unit for which the epsilon is shown, where it follows from a clip


def explain(plan: AnyPlan, policy: Policy, confidence: Number) -> Explanation:
    """The plan in words, at a confidence."""
    level = to_rational_between("confidence", confidence, Fraction(1, 100), 1 - Fraction(1, 10**9))
    epsilon, delta = plan.epsilon_delta
    if isinstance(plan, CompoundPlan):
        return _explain_compound(plan, policy, level)
    if isinstance(plan, ClipChoicePlan):
        return _explain_choice(plan, policy, level)
    return Explanation(
        epsilon=float(epsilon),
        delta=float(delta),
        unit=plan.unit,
        neighbors=str(policy.neighbors),
        groups=plan.recipe.groups,
        keys="" if plan.shown is None else _selection(plan.shown, plan.unit),
        confidence=float(level),
        noise=tuple(_noise_of(plan, part) for part in plan.parts),
        columns=tuple(_columns(plan.recipe, level)),
        notes=(*describe_choice(plan.recipe.bounds), *plan.recipe.notes, *_notes_on_clip(plan)),
        most_rows=MAX_GROUPS,
    )


def _explain_choice(plan: ClipChoicePlan, policy: Policy, level: Fraction) -> Explanation:
    """A question whose clip is chosen first: what that costs, and what both steps cost by the clip."""
    priced = ((rows, plan.price_rows(rows)) for rows in _CLIPS)
    by_rows = tuple((rows, float(plan.epsilon + rest)) for rows, rest in priced if rest is not None)
    first = format_fraction(plan.epsilon)
    notes = (
        f"A clip is chosen first, for epsilon {first}, which is charged by itself. What the rest costs follows from "
        "the clip; it is refused if that does not fit into what is left, and the first charge stays.",
        "Once the clip is paid for, explain says what the rest costs. The width is that of the noise; what the clip "
        "cuts off is estimated in the answer.",
    )
    asked = {name.lower(): float(width) for name, width in plan.wanted.widths}
    columns = (replace(c, error=asked.get(c.name.lower(), c.error)) for c in _columns(plan.priced_recipe, level))
    return Explanation(
        epsilon=by_rows[0][1],
        delta=0.0,
        unit=plan.unit,
        neighbors=str(policy.neighbors),
        groups=plan.recipe.groups,
        keys="",
        confidence=float(level),
        noise=tuple(_noise_of(plan, part) for part in plan.parts),
        columns=tuple(columns),
        notes=(*plan.recipe.notes, *notes),
        most_rows=MAX_GROUPS,
        epsilon_by_rows=by_rows,
    )


def _explain_compound(plan: CompoundPlan, policy: Policy, level: Fraction) -> Explanation:
    """A question made of several: what each member measures, and which columns are released values as they are."""
    epsilon, delta = plan.epsilon_delta
    exact = columns_with_intervals(plan.recipe.program)
    sources = {name: (index, source) for index, name, source in released_columns(plan.recipe.program)}
    columns = []
    for result in plan.recipe.results:
        origin = sources.get(trace_column(plan.recipe.program, result.column)) if result.column in exact else None
        if origin is not None:
            member = plan.recipe.members[plan.recipe.places[origin[0]]]
            value = ReleasedValue(int(origin[1][1:]))
            columns.append(_column(result.name, value, member, level))
        elif result.column in noisy_columns(plan.recipe.program) and result.type in NUMERIC_TYPES:
            columns.append(ColumnAccuracy(result.name, None, ()))
    made = f"made of {len(plan.members)} questions, which share epsilon and delta equally"
    shown = [_selection(member.shown, plan.unit) for member in plan.members if member.shown is not None]
    lists = any(member.listed is not None for member in plan.members)
    return Explanation(
        epsilon=float(epsilon),
        delta=float(delta),
        unit=plan.unit,
        neighbors=str(policy.neighbors),
        groups=None if shown or plan.public or lists else plan.most_rows,
        keys=shown[0] if shown else "",
        confidence=float(level),
        noise=tuple(_noise_of(member, part) for member in plan.members for part in member.parts),
        columns=tuple(columns),
        notes=(*((made,) if len(plan.members) > 1 else ()), *plan.recipe.notes),
        may_be_fewer=True,
        most_rows=MAX_GROUPS,
    )


def _selection(shown: Shown, unit: str) -> str:
    """From how many units on a private key is shown."""
    if isinstance(shown.mechanism, PartitionSelection):
        return f"a key that {shown.mechanism.threshold():,} units ({unit}) hold is shown every second time"
    if isinstance(shown.mechanism, WeightedGaussianSelection):
        alone, many = shown.mechanism.units(), shown.mechanism.units(100)
        return (
            f"a key that {alone:,} units ({unit}) hold is shown every second time where they hold no other key, "
            f"and one that {many:,} hold where each holds {min(100, shown.mechanism.groups)} keys"
        )
    return f"a key is shown where its noisy count is at least {shown.mechanism.least():,}"


def _notes_on_clip(plan: Plan) -> tuple[str, ...]:
    """What is said where the clip is paid for, and the rest is not yet."""
    if not isinstance(plan, FixedClipPlan):
        return ()
    rest = plan.epsilon_delta[0]
    first, second, both = map(format_fraction, (plan.chosen_at, rest, plan.chosen_at + rest))
    return (
        f"The clip is paid: it cost epsilon {first}, before. The rest costs epsilon {second}, which makes epsilon "
        f"{both} in all. With an epsilon in place of within it would be another question, that chooses its clip again.",
    )


def _noise_of(plan: Plan, part: AnyPart) -> Noise:
    """The noise of a part, also where the clip is one step and the sums are the next."""
    if isinstance(part, ClippedPart) and isinstance(plan, ClipChoicePlan):
        return Noise(part.need.name, "clipped at a bound that is chosen first; discrete Laplace noise", None, None)
    if isinstance(part, ClippedPart) and isinstance(plan, FixedClipPlan):
        unit = part.need.unit / part.weight
        moved, scale = plan.moved * unit, plan.noise.scale * unit / (1 << BITS)
        return Noise(part.need.name, "discrete Laplace", float(moved), float(scale))
    if isinstance(part, ClippedPart):
        clipping = plan.recipe.clipping
        law = "clipped at a bound that a part of epsilon chooses; discrete Laplace noise"
        if clipping is not None and clipping.mechanism.delta:
            law += ", or discrete Gaussian noise where that part says that it is less"
        return Noise(part.need.name, law, None, None)
    return _noise(part)


def _noise(part: Part | Pick) -> Noise:
    if isinstance(part, Pick):
        return Noise(part.need.name, _law(part.mechanism), None, None)
    unit = part.need.unit
    if isinstance(part.mechanism, Gaussian):
        scale = float(part.mechanism.variance) ** 0.5 * float(unit)
        return Noise(part.need.name, "discrete Gaussian", float(part.sensitivity * unit), scale)
    return Noise(part.need.name, "discrete Laplace", float(part.sensitivity * unit), float(part.mechanism.scale * unit))


def _law(mechanism: Quantile | PermuteAndFlip | TopK) -> str:
    match mechanism:
        case Quantile():
            return "a choice by rank, exponential mechanism"
        case TopK(_, count):
            return f"{count} choices by frequency in turn, exponential mechanism"
        case PermuteAndFlip():
            return "a choice by frequency, permute and flip"


def _column(name: str, released: ReleasedValue, recipe: PostProcessingPlan, confidence: Fraction) -> ColumnAccuracy:
    """The accuracy of a released value as it is."""
    value = recipe.values[released.index]
    error = value.half_width(recipe.parts, confidence)
    by_rows = value.half_widths_by_rows(recipe.parts, _ROWS, confidence)
    pairs = tuple(zip(_ROWS, by_rows, strict=True)) if by_rows else ()
    said = value.describe(recipe.parts, confidence)
    return ColumnAccuracy(name, None if error is None else float(error), pairs, said)


def _columns(recipe: PostProcessingPlan, confidence: Fraction) -> list[ColumnAccuracy]:
    columns = []
    for result in recipe.results:
        if isinstance(result.scalar, ReleasedValue):
            columns.append(_column(result.name, result.scalar, recipe, confidence))
        elif result.type in NUMERIC_TYPES and any(isinstance(node, ReleasedValue) for node in walk(result.scalar)):
            columns.append(ColumnAccuracy(result.name, None, ()))
    return columns
