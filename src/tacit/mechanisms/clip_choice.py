"""Which clip to take: the one with the least expected error, judged by a noisy histogram of the units' norms.

Clipping at C gives noise in proportion to C, and loses what units have above C. With N1 the L1 norm of a unit and G the
number of groups, the mean error of a group is about noise(C) plus the sum of all that is lost over G, whose minimum has
about G/epsilon units above C. What is lost counts twice, since an interval holds noise for certain and what is lost by
an estimate: the clip is a little larger, the error hardly, and intervals hold the truth more often. The histogram is
noisy, and a cell that is taken for occupied by mistake, g octaves above the units that there are, makes the noise 2^g
times too large. So an octave of k cells is occupied if the noisy count of one of them is above (4 + ln k + 1.5 g ln
2)/epsilon, or that of all above (4 + (k - 1) + 1.5 g ln 2)/epsilon, g being the number of octaves between it and the
last occupied one, or, before any is, up from that of what one row adds at most: the chance of a mistake falls faster
with g than its cost grows. The cells of an octave are the classes of N1/N2 where there is a delta for Gaussian noise,
less those that no vector of integers of that norm is in; of an occupied octave all above zero count.

What is lost is estimated from the occupied cells and from how their counts fall off. All of this is post-processing of
the noisy histogram. The constants come from simulations over the shapes of data in `benchmarks/clipping.py`.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.privacy.contribution_profile import OCTAVES

Floats = npt.NDArray[np.float64]

_LEAST = 4.0
_PER_OCTAVE = 1.5 * math.log(2)
_PER_OCTAVE_PAID = 2.5 * math.log(2)  # where a clip that is too large costs epsilon
_WITHIN = (np.arange(6) + 0.5) / 6  # places within an octave, at which the norms of its units are taken to be
_SLOWEST = 0.4  # octaves that fall by less each would hold more and more in all
_LOST_WEIGHT = 2.0  # of what is lost, beside noise of the same size
_LOST_NOISE = 0.5  # of the noise of a group, which may be lost where the noise is given
_MEAN_OF_GAUSSIAN = math.sqrt(2 / math.pi)


class ClipChoice(NamedTuple):
    """The place of the clip, its norm, and estimates of all that clipping loses, and of all that there is, in L1."""

    place: int
    norm: int
    lost: float
    whole: float


def share_for_choice(groups: int) -> float:
    """Return the part of epsilon that is spent on the histogram: less where it has more units to tell apart."""
    if groups >= 320:
        return 0.05
    if groups >= 32:
        return 0.1
    return 0.25 if groups >= 4 else 0.35


def count_ratios(groups: int) -> int:
    """Return the number of classes of N1/N2 (`find_class`), which is at least 1 and at most the root of the groups."""
    return max(1, int(math.log2(groups)) // 2)


def choose_clip(
    noisy: npt.NDArray[Any],
    clips: tuple[int, ...],
    groups: int,
    epsilon: float,
    laplace: float,
    gaussian: float | None,
    row: int = 1,
) -> ClipChoice:
    """Return the clip with the least expected error; where no cell is occupied, what one row adds at most.

    `noisy` is the histogram with the noise of `epsilon`; a clip of 1 gives Laplace noise of the scale `laplace` and
    Gaussian noise of the standard deviation `gaussian`, where there is a delta for it.
    """
    counts = _find_occupied(noisy.astype(np.float64), epsilon, (row - 1).bit_length())
    if not counts.any():
        return ClipChoice(min(bisect_left(clips, row), len(clips) - 1), 1, 0.0, 0.0)
    beyond = _extend_tail(counts, noisy.astype(np.float64), epsilon)
    sizes = np.array(clips, dtype=np.float64)
    cut = _lost_by_unit(clips, noisy.shape[1])
    whole = float(np.sum((counts + beyond).sum(axis=1) * _sizes().mean(axis=1)))
    found = []
    for norm, noise in ((1, laplace), (2, None if gaussian is None else gaussian * _MEAN_OF_GAUSSIAN)):
        if noise is not None:
            lost = np.tensordot(cut[norm], counts, 2)
            typical, missing = sizes * noise, _LOST_WEIGHT * lost / groups
            error = missing + typical * np.exp(-missing / typical)
            place = int(np.argmin(error))
            more = float(np.sum(cut[norm][place] * beyond))
            found.append((float(error[place]), ClipChoice(place, norm, float(lost[place]) + more, whole)))
    return min(found)[1]


def choose_clip_for_noise(
    noisy: npt.NDArray[Any], clips: tuple[int, ...], groups: int, epsilon: float, noise: float, row: int = 1
) -> ClipChoice:
    """Return the smallest clip that loses no more of a group, by an estimate, than half the mean size of its `noise`.

    So much noise each group gets, whichever clip is chosen: it is the epsilon of the sums that grows with the clip.
    Half, because units that cannot be told from noise lose something too. Where no cell is occupied, it is what one row
    adds at most. `noisy` and `epsilon` are those of `choose_clip`.

    A cell that is taken for occupied by mistake g octaves up makes that epsilon 2^g times too large, and a budget does
    not come back. So the threshold grows faster with g: by 2.5 ln 2 over epsilon for each octave.
    """
    counts = _find_occupied(noisy.astype(np.float64), epsilon, (row - 1).bit_length(), _PER_OCTAVE_PAID)
    if not counts.any():
        return ClipChoice(min(bisect_left(clips, row), len(clips) - 1), 1, 0.0, 0.0)
    beyond = _extend_tail(counts, noisy.astype(np.float64), epsilon)
    cut = _lost_by_unit(clips, noisy.shape[1])[1]
    lost = np.tensordot(cut, counts, 2)
    is_little = lost <= groups * noise * _LOST_NOISE
    place = int(np.argmax(is_little)) if is_little.any() else len(clips) - 1
    whole = float(np.sum((counts + beyond).sum(axis=1) * _sizes().mean(axis=1)))
    return ClipChoice(place, 1, float(lost[place] + np.sum(cut[place] * beyond)), whole)


def _find_occupied(noisy: Floats, epsilon: float, first: int, per_octave: float = _PER_OCTAVE) -> Floats:
    """The counts of occupied cells, and zeros for others.

    The threshold grows by `per_octave` over epsilon with each octave between one and the last occupied one; before any
    is occupied, with each one after `first`.
    """
    found, last = np.zeros_like(noisy), first
    for octave, row in enumerate(noisy):
        cells = _count_cells(octave, noisy.shape[1])
        least = _LEAST + max(0, octave - last - 1) * per_octave
        if row[:cells].max() > (least + math.log(cells)) / epsilon or row[:cells].sum() > (least + cells - 1) / epsilon:
            found[octave, :cells] = np.maximum(row[:cells], 0.0)
            last = octave
    return found


def _count_cells(octave: int, ratios: int) -> int:
    """How many classes of N1/N2 there can be in an octave.

    A unit of the norm N1 adds to at most N1 groups, each of its entries being 1 at least, so N1/N2 is at most the root
    of N1, and the class r has ratios of about 2^(r + 1) and more. What one row adds at most says nothing of it: values
    may be far below their bound.
    """
    return min(ratios, 1 + (octave + 1) // 2)


def _extend_tail(counts: Floats, noisy: Floats, epsilon: float) -> Floats:
    """About how many units the cells hold that are above the occupied ones, each with too few to be told from noise.

    The counts of octaves go on falling by the factor by which the last occupied ones fall, as those of heavy tails do,
    up to the first octave whose noisy count says, by four deviations, that it has fewer: there the tail ends.
    """
    octaves = counts.sum(axis=1)
    found = np.zeros_like(counts)
    occupied = np.flatnonzero(octaves)
    if len(occupied) == 0:
        return found
    last = int(occupied[-1])
    before = octaves[last - 1] if last > 0 else 0.0
    factor = min(octaves[last] / before, _SLOWEST) if before > 0 else _SLOWEST
    spread = counts[last] / octaves[last]
    deviation = math.sqrt(2 * counts.shape[1]) / epsilon
    for octave in range(last + 1, len(octaves)):
        expected = octaves[last] * factor ** (octave - last)
        if expected > noisy[octave].sum() + 4 * deviation:
            break
        found[octave] = spread * expected
    return found


def _sizes() -> Floats:
    """The norms that the units of each octave are taken to have, at the places within it."""
    octaves = np.arange(OCTAVES, dtype=np.float64)[:, None]
    return np.where(octaves == 0, 1.0, 2.0 ** (octaves - 1 + _WITHIN))


@lru_cache(maxsize=64)
def _lost_by_unit(clips: tuple[int, ...], ratios: int) -> dict[int, Floats]:
    """What a clip loses of a unit of each cell in the L1 norm, by the norm that is clipped: clips, octaves, ratios."""
    size = _sizes()[:, None, :]  # octaves, 1, places
    ratio = 2.0 ** np.where(np.arange(ratios) > 0, np.arange(ratios) + 1.25, 0.75 if ratios > 1 else 0.0)[None, :, None]
    clip = np.array(clips, dtype=np.float64)[:, None, None, None]
    first = np.broadcast_to(np.maximum(0.0, size - clip), (len(clips), OCTAVES, ratios, len(_WITHIN)))
    second = size * np.maximum(0.0, 1 - clip / np.maximum(1.0, size / ratio))
    return {1: first.mean(axis=3), 2: second.mean(axis=3)}
