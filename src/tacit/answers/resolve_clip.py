"""What a chosen clip means for released numbers: their noise, and an estimate of what was clipped off."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tacit.aggregates.base import ReleasedSelection, ReleasedVector, Releases
from tacit.answers.clipping import Clipping
from tacit.answers.post_processing_plan import PostProcessingPlan
from tacit.answers.stored import Release, StoredClip
from tacit.mechanisms.clipped_sum import ClippedSum
from tacit.mechanisms.laplace import Laplace


def resolve_clip(recipe: PostProcessingPlan, release: Release) -> PostProcessingPlan:
    """The recipe of a release whose clip is known: the noise of each part, the part that is missing, and a note."""
    if recipe.clipping is None:
        return recipe
    assert release.clip is not None
    rule = recipe.clipping.over(sum(map(len, release.parts)))
    noise = rule.laplace(release.clip.clip)
    parts = Releases(_resolve(part, noise, release.clip.missing) for part in recipe.parts)
    said = _describe(recipe.clipping, rule, release.clip) if any(release.parts) else ()  # no group, no clip
    notes = (*recipe.notes, *said)
    return replace(recipe, parts=parts, notes=notes, clipping=None)


def _resolve(part: ReleasedVector | ReleasedSelection, noise: Laplace, missing: Fraction) -> ReleasedVector:
    assert isinstance(part, ReleasedVector)
    return replace(part, mechanism=noise, missing=missing, is_chosen=False)


def _describe(clipping: Clipping, rule: ClippedSum, clip: StoredClip) -> tuple[str, ...]:
    rows = clip.clip / max(1, clipping.per_row)
    size = f"{rows:,.3g} row{'' if rows == 1 else 's'}"
    what = f"What one {clipping.called} adds is clipped at what {size} can add at most"
    if clip.whole <= 0:
        few = f"{what}, because there are too few of each {clipping.called} to choose by."
        return few, "What is cut off so is not known, and not in the intervals."
    chosen = f"{what}, which was chosen with {float(rule.choosing / rule.epsilon):.0%} of the epsilon."
    missing = float(clip.missing)
    about = "less than 0.1 %" if missing < 0.001 else f"about {100 * missing:.2g} %"
    return (
        chosen,
        f"By an estimate, {about} of the whole is cut off so. Intervals of counts and sums hold that and once more the "
        "noise, those of expressions the noise alone; what is cut off of one group may be more. Averages are those of "
        "what is left.",
    )
