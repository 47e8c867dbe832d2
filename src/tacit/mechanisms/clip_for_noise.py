"""A clip that is released before the sums, for noise that is known: the epsilon of the sums then follows from the clip.

>>> from tacit.privacy.contribution_profile import profile_contributions
>>> from tacit.sampling.bits import ReplayBits
>>> unit = [n // 5 for n in range(5_000)]  # 1,000 units with 5 rows each
>>> rows = profile_contributions(unit, [n % 2 for n in range(5_000)], [1] * 5_000, groups=2, ratios=1, largest=100)
>>> rule = ClipForNoise(epsilon=Fraction(1, 10), noise=Fraction(20), groups=2)
>>> rows.clips[rule.release(rows, ReplayBits(b"example")).place]
8
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from tacit.mechanisms.clip_choice import ClipChoice, choose_clip_for_noise, share_for_choice
from tacit.mechanisms.clipped_sum import LARGEST_CLIP
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.contribution_profile import ContributionProfile
from tacit.privacy.loss import PureDp
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

EXPECTED_ROWS = 4
"""The clip, in rows, whose share of epsilon the choice gets: more than one row, which would leave most units unseen."""


@dataclass(frozen=True)
class ClipForNoise:
    """Chooses the smallest clip that loses no more of a group, by an estimate, than half the mean size of its noise.

    `noise` is that size, in the unit of the norm, and `groups`, `neighbors`, `largest` and `row` are those of
    `ClippedSum`.

    **Theorem.** The release is epsilon-DP. Proof. Each unit is in one cell of the histogram of norms, so neighbors
    differ in it by 1 in L1, under replace by 2, and it is released with discrete Laplace noise of the scale 1/epsilon,
    or 2/epsilon. The choice is a function of the noisy histogram and of public numbers.
    """

    epsilon: Fraction
    noise: Fraction
    groups: int = 1
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    largest: int = LARGEST_CLIP
    row: int = 1

    def over(self, groups: int) -> ClipForNoise:
        """The same for vectors of so many entries."""
        return replace(self, groups=groups)

    @property
    def moved(self) -> int:
        """The most by which neighbors differ in the histogram, in L1."""
        return 1 if self.neighbors is Neighbors.ADD_REMOVE else 2

    def loss(self) -> PureDp:
        """The privacy loss of a release."""
        return PureDp(self.epsilon)

    def release(self, profile: ContributionProfile, bits: Bits) -> ClipChoice:
        """Release the place of the clip among those of the profile, and estimates of what it loses."""
        exact = [int(count) for count in profile.units.ravel()]
        counts = Laplace.calibrated(self.epsilon, self.moved).release(exact, bits)
        noisy = np.array(counts, dtype=object).reshape(profile.units.shape)
        epsilon = float(self.epsilon) / self.moved
        return choose_clip_for_noise(noisy, profile.clips, self.groups, epsilon, float(self.noise), self.row)


def epsilon_for_choice(epsilon: Fraction, groups: int) -> Fraction:
    """Return what to spend on the choice, where sums that are clipped at one row cost `epsilon`.

    It is the share that a clip of EXPECTED_ROWS would have in one release that both chooses and adds up.
    """
    share = Fraction(share_for_choice(groups)).limit_denominator(100)
    return EXPECTED_ROWS * epsilon * share / (1 - share)
