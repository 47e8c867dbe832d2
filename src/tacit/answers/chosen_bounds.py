"""Values without declared bounds: what is known before their bounds are chosen, and what a choice means for an answer.

A value x is measured as x/B on a grid of fixed size, with B a power of two that is chosen privately for the question.
So sensitivities, noise and losses are in steps of that grid and do not depend on B: only what one step is worth does.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tacit.aggregates.base import Estimator, ReleasedVector, Releases
from tacit.aggregates.mean import MeanEstimator
from tacit.answers.argument_bounds import ArgumentBounds
from tacit.answers.post_processing_plan import PostProcessingPlan
from tacit.query.types import Type
from tacit.query.value_bins import ValueBins

STEPS = 2**30
"""Steps of the grid from zero to B."""
FORMER_STEPS = 2**20
"""The same in earlier versions."""
SHARE = Fraction(1, 5)
"""The part of epsilon that chooses bounds."""


def count_sizes(kind: Type) -> int:
    """Return how many sizes of values are told apart: zero, and powers of two."""
    return ValueBins(kind).codes[-1] + 1


def largest_of_size(kind: Type, size: int) -> Fraction:
    """Return the power of two that no value of a size exceeds; of the last size, that values beyond are read as.

    >>> largest_of_size(Type.INT, 3), largest_of_size(Type.FLOAT, 32)  # 4 to 7; 2048 to 4096
    (Fraction(8, 1), Fraction(4096, 1))
    """
    return 2 * Fraction(2) ** (size - 1 if kind is Type.INT else size - 21)


def resolve_bounds(recipe: PostProcessingPlan, sizes: tuple[int, ...] | None) -> PostProcessingPlan:
    """Return the recipe of a release whose bounds are known: what a step is worth, the range of means, and a note."""
    if not recipe.bounds:
        return recipe
    assert sizes is not None
    parts, values, notes = list(recipe.parts), list(recipe.values), []
    for argument, size in zip(recipe.bounds, sizes, strict=True):
        bound = largest_of_size(argument.type, size)
        for place in argument.parts:
            part = parts[place]
            assert isinstance(part, ReleasedVector)
            parts[place] = replace(part, unit=part.unit * bound)
        for place in argument.values:
            values[place] = scale_estimator(values[place], bound)
        shown = f"{float(bound):,.6g}"
        notes.append(
            f"Values of {argument.called} were clipped to [-{shown}, {shown}], chosen privately with "
            f"{float(SHARE):.0%} of the epsilon; what that cuts off is not in the error bars."
        )
    return replace(recipe, parts=Releases(parts), values=tuple(values), notes=(*recipe.notes, *notes), bounds=())


def describe_choice(bounds: tuple[ArgumentBounds, ...]) -> tuple[str, ...]:
    """Return what is said before bounds are chosen; nothing where none are."""
    if not bounds:
        return ()
    names = ", ".join(argument.called for argument in bounds)
    return (
        f"Values of {names} have no declared bounds: they are clipped to [-B, B], with B a power of two that "
        f"{float(SHARE):.0%} of the epsilon chooses. What is said of their sums and averages is for B = 1.",
    )


def scale_estimator(value: Estimator, worth: Fraction) -> Estimator:
    """Return the estimator of a mean whose range is so many times as large; that of a sum knows no range."""
    if not isinstance(value, MeanEstimator):
        return value
    return replace(value, center=value.center * worth, lower=value.lower * worth, upper=value.upper * worth)
