"""A clipped question that asks for an accuracy, in two steps: a clip, and then sums at the epsilon that it needs.

The noise that an accuracy allows is known beforehand. What it costs is in proportion to the clip, which is chosen from
the data. So the clip is a release of its own, with its own charge (`ClipChoicePlan`); with it known, the least epsilon
follows, and the sums are the second (`FixedClipPlan`).

**Theorem.** Both together are (epsilon_1 + epsilon_2)-DP, where epsilon_2 is a function of the first release. Proof.
The first is epsilon_1-DP (`ClipForNoise`). Whatever it is, the second clips each unit's vector at a known C, so
neighbors differ in the sums by at most C 2^20 in L1, under replace by twice that (`privacy/contribution_profile.py`),
and Laplace noise of that over epsilon_2 is epsilon_2-DP. The second is a question that was chosen, with its epsilon,
after seeing the first answer; the ledger's filters are valid for questions that are chosen so (`curator/ask.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from tacit.accounting.filters import GRAINS_PER_EPSILON, format_epsilon
from tacit.accounting.receipt import ClipStep
from tacit.answers.choosing_values import NO_VALUES, ChosenValues, fill
from tacit.answers.clipping import Clipping
from tacit.answers.post_processing_plan import PostProcessingPlan
from tacit.answers.resolve_clip import describe_clip, resolve_parts
from tacit.answers.stored import GroupKeys, Release, StoredClip
from tacit.canonical import canonical_text
from tacit.engines.base import Engine, GroupedMeasures, MeasureValue
from tacit.errors import ErrorCode, ParameterError, Refused, SecondStepRefused
from tacit.mechanisms.clip_for_noise import ClipForNoise, epsilon_for_choice
from tacit.mechanisms.laplace import Laplace
from tacit.plan.canonical import PLANS
from tacit.plan.clipping import clipped_aggregation
from tacit.plan.column_error import WantedAccuracy
from tacit.plan.least_epsilon import find_least_epsilon, round_up_epsilon
from tacit.plan.noise import ClippedPart
from tacit.plan.plan import MAX_EPSILON, Plan
from tacit.privacy.contribution_profile import BITS, ContributionProfile
from tacit.privacy.loss import Compose, Loss, PureDp
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

_EXPECTED_GROUPS = 32  # where keys are read from public tables, and how many there are is not known yet


@dataclass(frozen=True, kw_only=True)
class FixedClipPlan(Plan):
    """The second step: sums of vectors that are clipped at a known `clip`, with `noise` for it.

    `chosen_at` is the epsilon of the first step, and `first` its charge, where it is known.
    """

    clip: int
    largest: int
    noise: Laplace
    chosen_at: Fraction
    first: ClipStep | None = None

    @property
    def moved(self) -> Fraction:
        """By how much one unit moves the sums in L1, in the unit of the norm: the clip, under replace twice that."""
        return self.noise.scale * self.epsilon_delta[0] / (1 << BITS)

    def compute(self, engine: Engine, known: ChosenValues = NO_VALUES) -> GroupedMeasures:
        """Nothing: all is measured where it is clipped."""
        return {}

    def release(
        self,
        exact: Mapping[GroupKeys, tuple[MeasureValue, ...]],
        bits: Bits,
        listed: Sequence[GroupKeys] | None = None,
        engine: Engine | None = None,
        known: ChosenValues = NO_VALUES,
    ) -> Release:
        """The noisy sums of the clipped vectors, for each part one for each group."""
        groups = _list_groups(self, listed)
        shown = None if listed is None else groups
        if not groups:
            return Release(shown, [[] for _ in self.parts])
        profile = _profile(self, groups, self.largest, engine, known)
        steps = self.noise.release(profile.clip(profile.clips.index(self.clip), 1), bits)
        return Release(shown, [steps[place * len(groups) :][: len(groups)] for place in range(len(self.parts))])


@dataclass(frozen=True, kw_only=True)
class ClipChoicePlan(Plan):
    """The first step: a clip for the accuracy that is `wanted`.

    The recipe is that of the answer, so that its columns are known. `asked` is the hash of what is measured: with a
    clip and its noise it makes the key of the second step. `row_epsilon` is the epsilon of that for a clip of one row.
    """

    clipping: Clipping
    choice: ClipForNoise
    wanted: WantedAccuracy
    asked: str
    row_epsilon: Fraction

    @property
    def epsilon(self) -> Fraction:
        """What choosing the clip costs."""
        return self.choice.epsilon

    def release(
        self,
        exact: Mapping[GroupKeys, tuple[MeasureValue, ...]],
        bits: Bits,
        listed: Sequence[GroupKeys] | None = None,
        engine: Engine | None = None,
        known: ChosenValues = NO_VALUES,
    ) -> Release:
        """The clip, with estimates of what it cuts off, and no sums."""
        groups = _list_groups(self, listed)
        if not groups:
            return Release(None, [], StoredClip(1, 0, 0))
        profile = _profile(self, groups, self.choice.largest, engine, known)
        chosen = self.choice.over(self.clipping.over(len(groups) * len(self.parts)).groups).release(profile, bits)
        return Release(None, [], StoredClip(profile.clips[chosen.place], round(chosen.lost), round(chosen.whole)))

    @property
    def expected_loss(self) -> Loss:
        """The privacy loss of both steps, for a clip of one row."""
        return Compose((self.loss, PureDp(self.row_epsilon)))

    @property
    def priced_recipe(self) -> PostProcessingPlan:
        """How the answer is read, with about the noise that it will have, whichever clip is chosen."""
        return _recipe_with(self.recipe, Laplace(self.choice.noise * (1 << BITS)))

    def price_rows(self, rows: int) -> Fraction | None:
        """Return the epsilon of the second step for a clip of so many rows; None where it is above the largest."""
        return self.row_epsilon if rows == 1 else self._price(rows * max(1, self.clipping.per_row))

    def price_clip(self, found: StoredClip) -> FixedClipPlan:
        """Return the second step for the clip that was released; or SecondStepRefused where no epsilon is enough."""
        epsilon = self._price(found.clip)
        if epsilon is None:
            raise self._refuse_clip()
        noise = _noise_at(epsilon, self.clipping, found.clip)
        key = _hash((self.asked, "fixed clip", 1, self.choice.largest, found.clip, noise))
        how = f"which was chosen first, with epsilon {format_fraction(self.epsilon)}"
        recipe = replace(
            self.recipe,
            parts=resolve_parts(self.recipe.parts, noise, found.missing),
            notes=(*self.recipe.notes, *describe_clip(self.clipping, found, how)),
            clipping=None,
        )
        return FixedClipPlan(
            unit=self.unit,
            exact=replace(self.exact, salt=key[:16]),
            parts=self.parts,
            shown=None,
            recipe=recipe,
            loss=PureDp(epsilon),
            delta=Fraction(0),
            key=key,
            listed=self.listed,
            clip=found.clip,
            largest=self.choice.largest,
            noise=noise,
            chosen_at=self.epsilon,
        )

    def _price(self, clip: int) -> Fraction | None:
        near = self.row_epsilon * clip / max(1, self.clipping.per_row)  # the noise is in proportion to the clip
        return _find_epsilon(self.recipe, self.clipping, self.wanted, clip, near)

    def _refuse_clip(self) -> SecondStepRefused:
        return SecondStepRefused(
            ErrorCode.PARAMETER,
            f"no epsilon is enough for this accuracy: the largest is {MAX_EPSILON}. That follows from the clip, which "
            f"was chosen first; its epsilon {format_fraction(self.epsilon)} stays charged",
            fix="give epsilon=1 in place of within; another width is another question, and its clip is charged again",
        )


def plan_clip_choice(plan: Plan, wanted: WantedAccuracy, digest: str) -> ClipChoicePlan:
    """Return the first step of a question whose units are clipped and whose keys are public, or Refused.

    `plan` is that of the question at any epsilon, and `digest` the policy's.
    """
    clipping = plan.recipe.clipping
    assert clipping is not None
    assert plan.shown is None
    row = max(1, clipping.per_row)
    epsilon = _find_epsilon(plan.recipe, clipping, wanted, row)
    if epsilon is None:
        most = _recipe_with(plan.recipe, _noise_at(MAX_EPSILON, clipping, row))
        what = f"no epsilon is enough for this accuracy: the largest is {MAX_EPSILON}"
        fix = f"ask for no less than within={{{wanted.describe_errors(most)}}}"
        raise Refused(ErrorCode.PARAMETER, what, fix=fix)
    rule = clipping.mechanism
    groups = rule.groups if plan.listed is None else _EXPECTED_GROUPS
    choice = ClipForNoise(
        round_up_epsilon(epsilon_for_choice(epsilon, groups)),
        _noise_at(epsilon, clipping, row).scale / (1 << BITS),
        rule.groups,
        rule.neighbors,
        rule.largest,
        rule.row,
    )
    parts = [(part.need, part.weight) for part in plan.parts if isinstance(part, ClippedPart)]
    listed = None if plan.listed is None else plan.listed.rows
    exact = replace(plan.exact, salt="")
    asked = _hash((digest, exact, parts, listed))
    key = _hash((asked, "clip for noise", 1, choice))
    return ClipChoicePlan(
        unit=plan.unit,
        exact=replace(exact, salt=key[:16]),
        parts=plan.parts,
        shown=None,
        recipe=plan.recipe,
        loss=choice.loss(),
        delta=Fraction(0),
        key=key,
        listed=plan.listed,
        clipping=clipping,
        choice=choice,
        wanted=wanted,
        asked=asked,
        row_epsilon=epsilon,
    )


def refuse_second_step(plan: FixedClipPlan, refused: Refused | ParameterError) -> SecondStepRefused:
    """The same refusal, which says that the first step was charged."""
    first = f"the clip that this follows from was chosen first; its epsilon {format_fraction(plan.chosen_at)} is spent"
    fix = f"{refused.fix}, in place of within" if "epsilon=" in refused.fix else refused.fix
    return SecondStepRefused(refused.code, f"{refused.what}; {first}", fix=fix, retry_after=refused.retry_after)


def format_fraction(epsilon: Fraction) -> str:
    """An epsilon of whole grains, in decimals."""
    return format_epsilon(int(epsilon * GRAINS_PER_EPSILON))


def _hash(named: tuple[object, ...]) -> str:
    return hashlib.sha256(canonical_text(named, PLANS).encode()).hexdigest()


def _find_epsilon(
    recipe: PostProcessingPlan, clipping: Clipping, wanted: WantedAccuracy, clip: int, near: Fraction | None = None
) -> Fraction | None:
    """The least epsilon at which sums that are clipped so are close enough."""

    def is_enough(epsilon: Fraction) -> bool:
        return wanted.is_met(_recipe_with(recipe, _noise_at(epsilon, clipping, clip)))

    return find_least_epsilon(is_enough, near)


def _noise_at(epsilon: Fraction, clipping: Clipping, clip: int) -> Laplace:
    """The noise of sums that are clipped so, in steps: one unit moves them by the clip in L1, under replace by two."""
    moved = 1 if clipping.mechanism.neighbors is Neighbors.ADD_REMOVE else 2
    return Laplace.calibrated(epsilon, moved * clip << BITS)


def _recipe_with(recipe: PostProcessingPlan, noise: Laplace) -> PostProcessingPlan:
    return replace(recipe, parts=resolve_parts(recipe.parts, noise, Fraction(0)))


def _list_groups(plan: Plan, listed: Sequence[GroupKeys] | None) -> list[GroupKeys]:
    """The groups, which are public: those of declared keys, or those that were read from public tables."""
    return plan.recipe.list_groups() if listed is None else list(listed)


def _profile(
    plan: Plan, groups: list[GroupKeys], largest: int, engine: Engine | None, known: ChosenValues
) -> ContributionProfile:
    assert engine is not None
    parts = [part for part in plan.parts if isinstance(part, ClippedPart)]
    return engine.profile(fill(clipped_aggregation(plan.exact, parts, groups, largest), known))
