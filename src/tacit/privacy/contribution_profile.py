"""What units add to the groups, kept by norm: from it the sum of clipped vectors follows for every clip at once.

A unit adds an integer to each group, so it is a vector x. Its L1 norm is N1, the sum of the sizes, and N2 is an integer
that is no less than its L2 norm, by a rule that every engine computes in the same way: with r the least integer whose
square is no less than the sum of the squares of ceil(|x| 2^20 / N1), N2 is ceil(r N1 / 2^20), or N1 where that is less.
Clipping at C scales a vector whose norm N is above C by C/N, each entry in steps of 1/2^20 and rounded toward zero.

**Theorem.** In these steps a clipped vector has an L1 norm (an L2 norm) of at most C 2^20. Proof. The L2 norm of x is
at most r N1 / 2^20, since each entry is at most ceil(|x| 2^20 / N1) times N1 / 2^20, and at most N1: so at most N2. A
vector with N <= C stays: its norm is at most N 2^20. Of another, an entry becomes C trunc(x 2^20 / N), at most
C 2^20 |x| / N in size, and the norm of x/N is at most 1.

The squares are of shares of 2^20 and not of entries, so with up to 2^20 entries their sum is below 2^42 whatever the
entries are: its root is exact in doubles. N2 is above the L2 norm by at most 1 and by n N2 / 2^19 for n entries.

So one unit more or less moves the sum by at most C 2^20. Replacing one by another moves it by at most 2 C 2^20, in L2
by at most sqrt(2) C 2^20 if no entry is negative: |x - y|^2 = |x|^2 + |y|^2 - 2 xy, and xy >= 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_integers
from tacit.errors import ParameterError
from tacit.privacy.number_units import number_units

BITS = 20
"""A clipped entry is a whole number of steps of 2^-BITS."""
OCTAVES = 62
"""Norms above 2^(OCTAVES - 1) are counted in the last octave."""
_SAFE = 2**31  # the squares of units of a smaller norm fit machine integers, and so do their entries times 2^BITS

Integers = npt.NDArray[Any]


def list_clips(largest: int) -> list[int]:
    """Return the clips that are chosen from: 1, 2, 3, 4, 6, 8, 12, ..., up to the first that is `largest` or more."""
    found = [1]
    for power in count(1):
        for clip in (3 * 2 ** (power - 2), 2**power) if power > 1 else (2,):
            if found[-1] >= largest:
                return found
            found.append(clip)
    raise AssertionError


@dataclass(frozen=True)
class ContributionProfile:
    """How many units there are of each size, and what those of a size add, whole and scaled to a norm of one.

    `units[a, r]` counts the units with 2^(a - 1) < N1 <= 2^a whose ratio N1/N2 is in the class r (`find_class`), the
    last a being open above. Of the units whose norm lies between two clips, `sums[norm][b]` are the sum of their
    vectors, of `size` integers each, and that of trunc(x 2^20 / N), b being the place of the upper clip; the last place
    is that of norms above all clips. A unit that adds nothing is nowhere, and a place without units may be left out.
    Where there is one class, the L2 norm may be left out.
    """

    clips: tuple[int, ...]
    size: int
    units: Integers
    sums: Mapping[int, Mapping[int, tuple[Sequence[int] | Integers, Sequence[int] | Integers]]]

    def clip(self, place: int, norm: int) -> list[int]:
        """Return the sum of the vectors clipped at `clips[place]` in the L1 or L2 norm, in steps of 2^-20."""
        sums = self.sums[norm]
        inside = _add_vectors([whole for at, (whole, _) in sums.items() if at <= place], self.size)
        outside = _add_vectors([scaled for at, (_, scaled) in sums.items() if at > place], self.size)
        return [(a << BITS) + self.clips[place] * b for a, b in zip(inside, outside, strict=True)]


def _add_vectors(vectors: list[Sequence[int] | Integers], size: int) -> list[int]:
    """The sum of vectors of integers. Machine integers are those whose sums fit them."""
    if not vectors:
        return [0] * size
    if all(isinstance(vector, np.ndarray) for vector in vectors):
        added: list[int] = np.sum(np.array(vectors), axis=0).tolist()
        return added
    return [sum(map(int, numbers)) for numbers in zip(*vectors, strict=True)]


def profile_contributions(
    unit: npt.ArrayLike, group: npt.ArrayLike, value: npt.ArrayLike, groups: int, ratios: int, largest: int
) -> ContributionProfile:
    """Return the profile of rows: whose each is, into which of the groups 0, 1, ... it falls, and what it adds.

    `ratios` is the number of classes of N1/N2, and no clip above the first that is `largest` or more is looked at.
    """
    units, places = number_units(unit, "unit"), np.asarray(group)
    values = np.asarray(value)
    if values.dtype.kind not in "iu":
        values = np.array(to_integers("value", values.tolist()), dtype=object)
    if not units.shape == places.shape == values.shape or values.ndim != 1:
        raise ParameterError(
            "value", "does not have one entry for each row, as unit and group", fix="give three columns"
        )
    if len(places) and not (places.dtype.kind in "iu" and places.min() >= 0 and places.max() < groups):
        raise ParameterError("group", f"must be integers from 0 to {groups - 1}", fix="number the groups")
    clips = list_clips(largest)
    owners, columns, entries = _add_up(units, places, values, groups)
    starts = np.flatnonzero(np.diff(owners, prepend=-1))
    first = np.add.reduceat(np.abs(entries), starts) if len(starts) else entries
    if len(starts) and int(first.max()) >= _SAFE:
        first, entries = first.astype(object), entries.astype(object)
    lengths = np.diff(starts, append=len(owners))
    second = _bound_l2_norms(entries, first, starts, lengths)
    there = first > 0
    limits = np.array(list_clips(max(largest, 2 ** (OCTAVES - 1))), dtype=object)
    classes = find_class(np.searchsorted(limits, first[there]), np.searchsorted(limits, second[there]), ratios)
    octaves = _bit_lengths(first[there] - 1)
    cells = np.zeros((OCTAVES, ratios), dtype=np.int64)
    np.add.at(cells, (np.minimum(octaves, OCTAVES - 1), classes), 1)
    found: dict[int, dict[int, tuple[Integers, Integers]]] = {}
    for norm, sizes in ((1, first), (2, second)):
        rows = np.repeat(np.searchsorted(np.array(clips, dtype=entries.dtype), sizes), lengths)
        size = np.repeat(np.maximum(sizes, 1), lengths)
        parts = np.sign(entries) * ((np.abs(entries) << BITS) // size)  # rounded toward zero
        sums = np.zeros((2, len(clips) + 1, groups), dtype=entries.dtype)
        np.add.at(sums[0], (rows, columns), entries)
        np.add.at(sums[1], (rows, columns), parts)
        found[norm] = {int(at): (sums[0, at], sums[1, at]) for at in np.unique(rows)}
    return ContributionProfile(tuple(clips), groups, cells, found)


def _add_up(units: Integers, places: Integers, values: Integers, groups: int) -> tuple[Integers, Integers, Integers]:
    """For each unit and group that occur, in order, what the unit adds: in machine integers where all of it fits."""
    pairs, at = np.unique(units * groups + places.astype(np.int64), return_inverse=True)
    most = max(abs(int(values.min())), abs(int(values.max()))) if len(values) else 0
    entries = np.zeros(len(pairs), dtype=np.int64 if most * len(values) < 2**62 else object)
    np.add.at(entries, at, values.astype(entries.dtype))
    return pairs // groups, pairs % groups, entries


def find_class(first: Any, second: Any, ratios: int) -> Any:
    """Return the class of N1/N2, from the places of N1 and N2 among 1, 2, 3, 4, 6, 8, 12, ..., which are half octaves.

    A ratio below about 4 is in class 0, then each octave is a class, of `ratios` in all and the last one open above.
    """
    return np.clip((first - second) // 2 - 1, 0, ratios - 1)


def _bound_l2_norms(entries: Integers, first: Integers, starts: Integers, lengths: Integers) -> Integers:
    """N2 of each unit, from its entries and N1."""
    if not len(starts):
        return entries
    norms = np.repeat(np.maximum(first, 1), lengths)
    shares = -((-np.abs(entries) << BITS) // norms)  # rounded up
    roots = _round_up_roots(np.add.reduceat(shares * shares, starts))
    found: Integers = np.minimum(first, -((-roots * first) >> BITS))
    return found


def _round_up_roots(squares: Integers) -> Integers:
    """The least integers whose squares are no less."""
    if squares.dtype == object:
        return np.array([isqrt(square - 1) + 1 if square else 0 for square in squares], dtype=object)
    roots = np.sqrt(squares.astype(np.float64)).astype(np.int64)  # off by one at most
    roots += roots * roots < squares
    return roots - ((roots > 0) & ((roots - 1) ** 2 >= squares))


def _bit_lengths(numbers: Integers) -> npt.NDArray[np.int64]:
    """The number of binary digits of each; machine integers here are below 2^31, so that doubles hold them."""
    if numbers.dtype == object:
        return np.array([number.bit_length() for number in numbers], dtype=np.int64)
    return np.frexp(numbers.astype(np.float64))[1].astype(np.int64)
