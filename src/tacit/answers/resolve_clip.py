"""What a chosen clip means for released numbers: their noise, and an estimate of what was clipped off."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tacit.aggregates.base import ReleasedSelection, ReleasedVector, Releases
from tacit.answers.clipping import Clipping
from tacit.answers.post_processing_plan import PostProcessingPlan
from tacit.answers.stored import Release, StoredClip
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace


def resolve_clip(recipe: PostProcessingPlan, release: Release) -> PostProcessingPlan:
    """The recipe of a release whose clip is known: the noise of each part, the part that is missing, and a note."""
    if recipe.clipping is None:
        return recipe
    assert release.clip is not None
    rule = recipe.clipping.over(sum(map(len, release.parts)))
    noise = rule.noise(release.clip.clip, release.clip.norm)
    parts = resolve_parts(recipe.parts, noise, release.clip.missing)
    how = f"which was chosen with {float(rule.choosing / rule.epsilon):.0%} of the epsilon"
    said = describe_clip(recipe.clipping, release.clip, how) if any(release.parts) else ()  # no group, no clip
    notes = (*recipe.notes, *said)
    return replace(recipe, parts=parts, notes=notes, clipping=None)


def resolve_parts(parts: Releases, noise: Laplace | Gaussian, missing: Fraction) -> Releases:
    """The parts of a release whose clip is known, each with its noise and the part that is missing."""
    return Releases(_resolve(part, noise, missing) for part in parts)


def _resolve(part: ReleasedVector | ReleasedSelection, noise: Laplace | Gaussian, missing: Fraction) -> ReleasedVector:
    assert isinstance(part, ReleasedVector)
    return replace(part, mechanism=noise, missing=missing, is_chosen=False)


def describe_clip(clipping: Clipping, clip: StoredClip, how: str) -> tuple[str, ...]:
    """What is said of a clip, of how it was chosen and of what it cuts off."""
    rows = describe_rows(clipping, clip.clip)
    what = f"What one {clipping.called} adds is clipped at what {rows} can add at most"
    if clip.norm == 2:
        what = (
            f"What one {clipping.called} adds is clipped in the L2 norm, with Gaussian noise, at that of {rows} at most"
        )
    if clip.whole <= 0:
        few = f"{what}, because there are too few of each {clipping.called} to choose by."
        return few, "What is cut off so is not known, and not in the intervals."
    chosen = f"{what}, {how}."
    missing = float(clip.missing)
    about = "less than 0.1 %" if missing < 0.001 else f"about {100 * missing:.2g} %"
    return (
        chosen,
        f"By an estimate, {about} of the whole is cut off so. Intervals of counts and sums hold that and once more the "
        "noise, those of expressions the noise alone; what is cut off of one group may be more. Averages are those of "
        "what is left.",
    )


def describe_rows(clipping: Clipping, clip: int) -> str:
    """A clip as a number of rows."""
    rows = clip / max(1, clipping.per_row)
    return f"{rows:,.3g} row{'' if rows == 1 else 's'}"
