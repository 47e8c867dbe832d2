"""Sums by group over the rows of units, with a clip that is chosen privately: no cap on rows has to be known.

>>> from tacit.sampling.bits import ReplayBits
>>> unit = [n // 5 for n in range(5_000)]  # 1,000 units with 5 rows each
>>> visits = ClippedSum(epsilon=1, groups=2)
>>> found = visits.release(unit, [n % 2 for n in range(5_000)], [1] * 5_000, ReplayBits(b"example"))
>>> found.clip, [round(value) for value in found.values]
(8, [2495, 2487])
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.accounting.filters import max_rho
from tacit.arithmetic import Number, to_integer, to_rational_between
from tacit.errors import ParameterError
from tacit.frozen import set_fields
from tacit.mechanisms.clip_choice import choose_clip, count_ratios, share_for_choice
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.validation import check_flag, check_neighbors
from tacit.privacy.contribution_profile import BITS, ContributionProfile, profile_contributions
from tacit.privacy.loss import Compose, ConcentratedDp, OneOf, PureDp
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits
from tacit.sampling.system import bits_or_system

LARGEST_CLIP = 2**61


@dataclass(frozen=True)
class ClippedTotals:
    """Noisy sums of clipped contributions, with the clip that was chosen for them.

    Parameters
    ----------
    steps : tuple of int
        What was released of each group, in steps of 2^-20.
    clip : int
        The most that one unit adds to all groups together, in the norm.
    norm : int
        1 where the sizes of what a unit adds were bounded, with Laplace noise; 2 where the root of their squares was,
        with Gaussian noise.
    noise : Laplace or Gaussian
        The noise of each group, in steps.
    lost : float
        An estimate of all that was clipped off, in all groups together.
    whole : float
        An estimate of all that units add before they are clipped, in size.

    Examples
    --------
    >>> ClippedTotals((2**20, 2**22), 3, 1, Laplace(2**20), 0.5, 5.5).values
    [1.0, 4.0]
    """

    steps: tuple[int, ...]
    clip: int
    norm: int
    noise: Laplace | Gaussian
    lost: float
    whole: float

    @property
    def values(self) -> list[float]:
        """The noisy sum of each group."""
        return [step / (1 << BITS) for step in self.steps]

    @property
    def missing_share(self) -> float:
        """About which part of the whole was clipped off, from 0 to 1: an estimate from released numbers."""
        return min(1.0, self.lost / self.whole) if self.whole > 0 else 0.0

    def error(self, confidence: Number) -> float:
        """Return the least w such that the noise of a group is within w of zero. What is clipped off is not in it.

        Parameters
        ----------
        confidence : number
            Probability that it is, strictly between 0 and 1.

        Returns
        -------
        float
            The half width of an interval about the clipped sum.
        """
        return self.noise.error(confidence) / (1 << BITS)


@dataclass(frozen=True, init=False)
class ClippedSum:
    """Chooses a clip from a noisy histogram of the units' norms, clips each unit's vector, and adds noise to the sums.

    A share a of epsilon pays for the histogram and the rest b for the noise on the sums. Each unit is in one cell of
    the histogram, and what it adds to all groups has a norm of at most the clip C (`privacy/contribution_profile.py`).

    **Theorem.** The release is (epsilon, delta)-DP, and epsilon-DP for delta = 0. Proof. Neighbors differ by one unit,
    so their histograms by 1 in L1, under replace by 2: discrete Laplace noise of the scale 1/a, or 2/a, is a-DP. Given
    the clip and the norm, which are post-processing, the sums differ by at most C 2^20, under replace by twice that
    (in L2 by sqrt(2) times, if no value is negative): Laplace noise of that over b is b-DP, and Gaussian noise of
    the largest rho that converts to (b, delta) is (b, delta)-DP. The two compose, as the first decides which of the two
    the second is.

    Parameters
    ----------
    epsilon : number
        Privacy loss of one release, from 10^-9 to 10^6. About a twentieth to a third of it chooses the clip.
    delta : number, default 0
        With a delta, from 10^-100 to 0.49, Gaussian noise is taken where it is smaller.
    groups : int, default 1
        How many groups there are, from 1 to 10^6: a public number.
    neighbors : Neighbors, default Neighbors.ADD_REMOVE
        Whether a unit is added and removed, or replaced.
    largest : int, optional
        The largest clip that is chosen, from 1 to 2^61, if the owner knows one. It need not be exact.
    nonnegative : bool, default True
        Whether no row adds a negative number: then replacing a unit costs less. Other rows are refused.
    row : int, default 1
        What one row adds at most, about: the clip where there are too few units to tell their sizes.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    See Also
    --------
    Laplace : Where the most that a unit adds is known.

    Examples
    --------
    >>> ClippedSum(epsilon=1, groups=1_000).choosing
    Fraction(1, 20)
    """

    epsilon: Fraction
    delta: Fraction
    groups: int
    neighbors: Neighbors
    largest: int
    nonnegative: bool
    row: int

    def __init__(
        self,
        epsilon: Number,
        delta: Number = 0,
        groups: int = 1,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
        largest: int | None = None,
        nonnegative: bool = True,
        row: int = 1,
    ) -> None:
        least = Fraction(1, 10**100)
        set_fields(
            self,
            epsilon=to_rational_between("epsilon", epsilon, Fraction(1, 10**9), Fraction(10**6)),
            groups=_to_integer_up_to("groups", groups, 10**6),
            delta=Fraction(0) if delta == 0 else to_rational_between("delta", delta, least, Fraction(49, 100)),
            neighbors=check_neighbors(neighbors),
            largest=LARGEST_CLIP if largest is None else _to_integer_up_to("largest", largest, LARGEST_CLIP),
            nonnegative=check_flag("nonnegative", nonnegative),
            row=_to_integer_up_to("row", row, LARGEST_CLIP),
        )

    @classmethod
    def calibrated(
        cls,
        epsilon: Number,
        delta: Number = 0,
        groups: int = 1,
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
        largest: int | None = None,
        nonnegative: bool = True,
        row: int = 1,
    ) -> ClippedSum:
        """Return the mechanism that is (epsilon, delta)-DP: its parameters are these.

        Parameters
        ----------
        epsilon : number
            Privacy loss of one release, from 10^-9 to 10^6.
        delta : number, default 0
            With a delta, from 10^-100 to 0.49, Gaussian noise is taken where it is smaller.
        groups : int, default 1
            How many groups there are, from 1 to 10^6: a public number.
        neighbors : Neighbors, default Neighbors.ADD_REMOVE
            Whether a unit is added and removed, or replaced.
        largest : int, optional
            The largest clip that is chosen, from 1 to 2^61, if the owner knows one.
        nonnegative : bool, default True
            Whether no row adds a negative number.
        row : int, default 1
            What one row adds at most, about.

        Returns
        -------
        ClippedSum
            The calibrated mechanism.
        """
        return cls(epsilon, delta, groups, neighbors, largest, nonnegative, row)

    @property
    def choosing(self) -> Fraction:
        """The part of epsilon that chooses the clip."""
        return self.epsilon * Fraction(share_for_choice(self.groups)).limit_denominator(100)

    @property
    def rho(self) -> Fraction:
        """The zero-concentrated privacy loss of Gaussian noise on the sums; 0 where there is no delta for it."""
        return max_rho(self.epsilon - self.choosing, self.delta) if self.delta else Fraction(0)

    def loss(self) -> Compose:
        """Return the privacy loss of a release, whichever clip and norm is chosen.

        Returns
        -------
        Compose
            The histogram, and the noise on the sums: what `tacit.accounting` composes.
        """
        rest = PureDp(self.epsilon - self.choosing)
        either = OneOf((rest, ConcentratedDp(self.rho)), self.delta) if self.delta else rest
        return Compose((PureDp(self.choosing), either))

    def may_gain_by_l2(self) -> bool:
        """Return whether Gaussian noise would be half as large as Laplace noise where units lie evenly in all groups.

        Returns
        -------
        bool
            Whether it is worth a delta: a function of the parameters alone.
        """
        if self.rho == 0 or self.ratios == 1:  # with one class, no histogram tells that L2 norms are smaller
            return False
        gaussian, laplace = math.sqrt(1 / (math.pi * self.rho)), 1 / (self.epsilon - self.choosing)
        return self.groups >= (2 * gaussian / float(laplace)) ** 2

    @property
    def ratios(self) -> int:
        """How many classes of units the histogram tells apart by the ratio of both norms; one where L2 is not used."""
        return count_ratios(self.groups) if self.delta else 1

    def profile(self, unit: npt.ArrayLike, group: npt.ArrayLike, value: npt.ArrayLike) -> ContributionProfile:
        """Return what a release is made from: private, and enough for every clip.

        Parameters
        ----------
        unit : array-like
            Whose each row is: ids of one type, of which none is missing.
        group : array-like of int
            The group of each row, from 0 to groups - 1.
        value : array-like of int
            What each row adds: 1 for a count.

        Returns
        -------
        ContributionProfile
            Units by norm, and what those of a norm add to each group.

        Raises
        ------
        ParameterError
            If the arrays have other lengths, a group is out of range, a value is negative that must not be, or an id
            is missing or of another type than others.
        """
        if self.nonnegative and np.size(value) and np.min(np.asarray(value)) < 0:
            raise ParameterError("value", "is negative", fix="nonnegative=False")
        return profile_contributions(unit, group, value, self.groups, self.ratios, self.largest)

    def release(
        self, unit: npt.ArrayLike, group: npt.ArrayLike, value: npt.ArrayLike, bits: Bits | None = None
    ) -> ClippedTotals:
        """Release the sum of each group.

        Parameters
        ----------
        unit : array-like
            Whose each row is: ids of one type, of which none is missing.
        group : array-like of int
            The group of each row, from 0 to groups - 1.
        value : array-like of int
            What each row adds: 1 for a count.
        bits : Bits, optional
            Source of random bits; the operating system's by default. A `ReplayBits` repeats a release, and protects
            nobody.

        Returns
        -------
        ClippedTotals
            The noisy sums with the clip, the noise and an estimate of what was clipped off.

        Raises
        ------
        ParameterError
            If the arrays have other lengths, a group is out of range, a value is negative that must not be, or an id
            is missing or of another type than others.
        """
        return self.release_profile(self.profile(unit, group, value), bits)

    def release_profile(self, profile: ContributionProfile, bits: Bits | None = None) -> ClippedTotals:
        """Release the sum of each group from a profile.

        Parameters
        ----------
        profile : ContributionProfile
            What `profile` made of the rows.
        bits : Bits, optional
            Source of random bits; the operating system's by default.

        Returns
        -------
        ClippedTotals
            The noisy sums with the clip, the noise and an estimate of what was clipped off.
        """
        bits = bits_or_system(bits)
        moved = 1 if self.neighbors is Neighbors.ADD_REMOVE else 2
        rest, rho = self.epsilon - self.choosing, self.rho
        exact = [int(count) for count in profile.units.ravel()]
        counts = Laplace.calibrated(self.choosing, moved).release(exact, bits)
        noisy = np.array(counts, dtype=object).reshape(profile.units.shape)
        deviation = math.sqrt(self._squares / (2 * float(rho))) if rho else None
        chosen = choose_clip(
            noisy, profile.clips, self.groups, float(self.choosing) / moved, moved / float(rest), deviation, self.row
        )
        clip = profile.clips[chosen.place]
        totals = profile.clip(chosen.place, chosen.norm)
        noise = self.noise(clip, chosen.norm)
        steps = tuple(noise.release(totals, bits))
        return ClippedTotals(steps, clip, chosen.norm, noise, chosen.lost, chosen.whole)

    def noise(self, clip: int, norm: int) -> Laplace | Gaussian:
        """Return the noise of each group, in steps.

        Parameters
        ----------
        clip : int
            The clip that was chosen.
        norm : int
            1 where it bounds the L1 norm, 2 where it bounds the L2 norm.

        Returns
        -------
        Laplace or Gaussian
            Noise for what one unit moves, at the rest of epsilon.
        """
        return self.laplace(clip) if norm == 1 else Gaussian.for_rho(self.rho, clip << BITS, self._squares)

    @property
    def _squares(self) -> int:
        """The square of the L2 sensitivity, in squares of the clip."""
        return 1 if self.neighbors is Neighbors.ADD_REMOVE else 2 if self.nonnegative else 4

    def laplace(self, clip: int) -> Laplace:
        """Return the noise of each group, in steps, where the L1 norm is clipped.

        Parameters
        ----------
        clip : int
            The clip that was chosen.

        Returns
        -------
        Laplace
            Noise for what one unit moves, at the rest of epsilon.
        """
        moved = 1 if self.neighbors is Neighbors.ADD_REMOVE else 2
        return Laplace.calibrated(self.epsilon - self.choosing, moved * clip << BITS)


def _to_integer_up_to(name: str, value: int, most: int) -> int:
    found = to_integer(name, value, least=1)
    if found > most:
        raise ParameterError(name, f"must be from 1 to {most}", fix=f"{name}={most}")
    return found
