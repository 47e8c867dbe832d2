"""The one fold over a loss. It alone knows repetition, groups and parallel parts; accountants know leaves.

>>> from tacit.privacy.loss import LaplaceNoise
>>> count = LaplaceNoise(Fraction(10), 1)
>>> flatten(Compose((count, Repeat(Compose((count, count)), 3)))) == {count: 7}
True
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Protocol, TypeVar

from tacit.accounting.rounding import rounded_up
from tacit.arithmetic import ball, precision
from tacit.privacy.loss import (
    Approximate,
    BoundedRange,
    Compose,
    Concentrated,
    ContinuousGaussian,
    ContinuousLaplace,
    GaussianNoise,
    Group,
    LaplaceNoise,
    Leaf,
    Loss,
    Parallel,
    Pure,
    Repeat,
    Sampled,
)
from tacit.privacy.unit import Neighbors

Curve = TypeVar("Curve")
_FEW = 8  # distinct parallel parts whose pairs are tried one by one


class Accountant(Protocol[Curve]):
    """What an accountant says of leaves and of curves. Repetition is the count beside a curve."""

    def leaf(self, loss: Leaf) -> Curve:
        """The curve of one mechanism."""

    def compose(self, terms: Sequence[tuple[Curve, int]]) -> Curve:
        """The curve of all of them, each so many times, chosen adaptively."""

    def worst(self, curves: Sequence[Curve]) -> Curve:
        """A curve that is above all of them."""

    def sampled(self, curve: Curve, rate: Fraction) -> Curve:
        """The curve where each unit takes part with this probability, on its own."""


def fold(loss: Loss, accountant: Accountant[Curve]) -> Curve:
    """The curve of a loss.

    **Theorem (repetition).** `Repeat(l, n)` and n composed `l` have the same curve under every accountant: `flatten`
    turns both into the same counts before an accountant sees them.

    **Theorem (parallel).** If a unit is in one part only, adding or removing it changes one part, so the curve that is
    above those of all parts holds. Replacing it changes at most two, and no other: the curve above all pairs holds.
    """
    return accountant.compose([(_one(term, accountant), times) for term, times in flatten(loss).items()])


def flatten(loss: Loss) -> dict[Loss, int]:
    """The loss as counts of leaves, parallel parts and sampled losses; groups are pushed into leaves."""
    counts: dict[Loss, int] = {}
    _count(loss, 1, 1, counts)
    return counts


def _count(loss: Loss, times: int, size: int, counts: dict[Loss, int]) -> None:
    """Add `times` times `loss`, for `size` units that change together.

    **Theorem (groups).** Let D and D' differ in k units. *Composition:* each part sees the same D and D', so the group
    of a composition is at most the composition of the groups. *Sampling at rate q:* with probability (1-q)^k none of
    the k is in the sample and both runs are alike; otherwise the sample holds between one and k of them, and the
    output is a mixture of outputs of databases that differ from D' in at most k units. Divergences are convex, so
    this is a run sampled at rate 1-(1-q)^k of a loss for k units. *Parallel parts:* the k units lie in some of the
    parts, at most k in each; all parts together for k units is a bound.
    """
    if times == 0:
        return
    match loss:
        case Compose(parts):
            for part in parts:
                _count(part, times, size, counts)
            return
        case Repeat(inner, repeats):
            _count(inner, times * repeats, size, counts)
            return
        case Group(inner, more):
            _count(inner, times, size * more, counts)
            return
        case Parallel(parts, neighbors) if size == 1:
            kept = parts if neighbors is Neighbors.ADD_REMOVE else _twice(parts)
            term: Loss = Parallel(tuple(dict.fromkeys(kept)), neighbors)
        case Parallel(parts, _):
            for part in parts:
                _count(part, times, size, counts)
            return
        case Sampled(inner, rate):
            grouped = inner if size == 1 else Group(inner, size)
            term = Sampled(grouped, rate if size == 1 else 1 - (1 - rate) ** size)
        case _:
            term = loss if size == 1 else for_group(loss, size)
    counts[term] = counts.get(term, 0) + times


def _twice(parts: Iterable[Loss]) -> Iterable[Loss]:
    """The parts, where equal ones are kept once and, wrapped, a second time: a pair may be of equal parts."""
    seen: set[Loss] = set()
    for part in parts:
        yield Compose((part,)) if part in seen else part
        seen.add(part)


def _one(term: Loss, accountant: Accountant[Curve]) -> Curve:
    match term:
        case Parallel(parts, neighbors):
            curves = [fold(part, accountant) for part in parts]
            if not curves:
                return accountant.compose([])
            if neighbors is Neighbors.ADD_REMOVE or len(curves) == 1:
                return accountant.worst(curves)
            if len(curves) > _FEW:
                return accountant.compose([(accountant.worst(curves), 2)])
            pairs = [
                accountant.compose([(curves[one], 1), (curves[other], 1)])
                for one, other in combinations(range(len(curves)), 2)
            ]
            return accountant.worst(pairs)
        case Sampled(inner, rate):
            return accountant.sampled(fold(inner, accountant), rate)
        case Compose() | Repeat() | Group():  # pragma: no cover - flatten leaves none of these
            raise AssertionError(term)
    return accountant.leaf(term)


def for_group(leaf: Leaf, size: int) -> Leaf:
    """The loss of `leaf` where k = `size` units change together.

    **Theorem.** k steps of at most d each make at most k d, so noise of the same scale sees a sensitivity of k d.
    Epsilon and the range of the loss grow k-fold, as ratios multiply; (epsilon, delta) becomes
    (k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1)) (Vadhan 2017, lemma 2.2); rho becomes k^2 rho (Bun and
    Steinke 2016, proposition 1.9). Discrete Gaussian noise: the k units together move the vector by at most
    k shift sqrt(coordinates) in L2, though not along few coordinates, so its zCDP is what is kept.
    """
    match leaf:
        case LaplaceNoise(scale, sensitivity):
            return LaplaceNoise(scale, sensitivity * size)
        case GaussianNoise(variance, shift, coordinates):
            return Concentrated(Fraction(coordinates * (shift * size) ** 2) / (2 * variance))
        case ContinuousLaplace(scale):
            return ContinuousLaplace(scale / size)
        case ContinuousGaussian(sigma):
            return ContinuousGaussian(sigma / size)
        case Pure(epsilon):
            return Pure(epsilon * size)
        case BoundedRange(epsilon):
            return BoundedRange(epsilon * size)
        case Concentrated(rho):
            return Concentrated(rho * size**2)
        case Approximate(epsilon, delta):
            return Approximate(epsilon * size, group_delta(epsilon, delta, size))


def group_delta(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """delta (e^{k epsilon} - 1)/(e^epsilon - 1), rounded up, and at most one."""
    if epsilon == 0 or delta == 0:
        return min(Fraction(1), delta * size)
    if delta * size >= 1 or epsilon * (size - 1) > 1000:
        return Fraction(1)
    with precision(192 + 2 * math.ceil(epsilon * size)):
        factor = (ball(epsilon * size).expm1() / ball(epsilon).expm1()) * ball(delta)
        return min(Fraction(1), rounded_up(factor))
