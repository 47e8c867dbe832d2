"""The one fold over a loss. It alone knows repetition, groups and parallel parts; accountants know leaves.

>>> from tacit.privacy.loss import LaplaceNoise
>>> count = LaplaceNoise(Fraction(10), 1)
>>> flatten_loss(Compose((count, Repeat(Compose((count, count)), 3)))) == {count: 7}
True
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import combinations
from typing import Protocol, TypeVar

from tacit.privacy.guarantee import group_delta as group_delta
from tacit.privacy.loss import (
    ApproximateDp,
    BoundedRange,
    Compose,
    ConcentratedDp,
    ContinuousGaussianNoise,
    ContinuousLaplaceNoise,
    GaussianNoise,
    Group,
    LaplaceNoise,
    Leaf,
    Loss,
    OneOf,
    Parallel,
    PureDp,
    Repeat,
    Sampled,
)
from tacit.privacy.unit import Neighbors

Curve = TypeVar("Curve")
FEW = 8  # distinct parallel parts whose pairs are tried one by one


class Accountant(Protocol[Curve]):
    """What an accountant says of leaves and of curves. Repetition is the count beside a curve."""

    def leaf(self, loss: Leaf) -> Curve:
        """The curve of one mechanism."""

    def compose(self, terms: Sequence[tuple[Curve, int]]) -> Curve:
        """The curve of all of them, each so many times, chosen adaptively."""

    def worst(self, curves: Sequence[Curve]) -> Curve:
        """A curve that is above all of them."""

    def replace_in_parallel(self, curves: Sequence[Curve]) -> Curve:
        """The curve of a unit that is changed inside one of these parts, or leaves one and enters another.

        A part that is there more than once is given twice.
        """

    def subsample(self, curve: Curve, rate: Fraction) -> Curve:
        """The curve where each unit takes part with this probability, on its own."""

    def group(self, loss: Loss, size: int) -> Curve:
        """The curve for so many units that change together, of a loss of which only the whole is a mechanism."""


def evaluate_loss(loss: Loss, accountant: Accountant[Curve]) -> Curve:
    """The curve of a loss.

    **Theorem (repetition).** `Repeat(l, n)` and n composed `l` have the same curve under every accountant:
    `flatten_loss` turns both into the same counts before an accountant sees them.

    **Theorem (parallel).** If a unit is in one part only, adding or removing it changes one part, so the curve that is
    above those of all parts holds. Replacing it changes one part, or it leaves one part and enters another: it is
    *removed* in the one and *added* in the other, and no other part sees it. The curve above all of these holds.

    **Theorem (one of several).** Let A be released, and then the part that A names. Given A, each pair of neighbors
    gives that part distributions that its curve bounds, and so does the curve that is above all parts. Composition is
    adaptive, so it holds for the part as for any mechanism that is chosen after A.

    **Theorem (directions).** A pair of neighbors is a removal, an addition or a change. Noise is even, so the pair of
    distributions that dominates a leaf dominates it in all three. Sampling is not: see `atoms.changed_sampled` and
    `renyi.RenyiAccountant.subsample`. Composition keeps the direction. A loss that holds a part for REPLACE is
    accounted for changes throughout, so each of its parallel parts is one for REPLACE.
    """
    return accountant.compose([(_one(term, accountant), times) for term, times in flatten_loss(loss).items()])


def flatten_loss(loss: Loss) -> dict[Loss, int]:
    """The loss as counts of leaves, parallel parts, sampled losses, and groups of what is a mechanism only as a whole.

    All other groups are pushed into leaves.
    """
    counts: dict[Loss, int] = {}
    _count(_for_replace(loss) if _relation(loss) is Neighbors.REPLACE else loss, 1, 1, counts)
    return counts


def _for_replace(loss: Loss) -> Loss:
    """The same loss with all its parallel parts for REPLACE."""
    match loss:
        case Parallel(parts, _):
            return Parallel(tuple(map(_for_replace, parts)), Neighbors.REPLACE)
        case Compose(parts):
            return Compose(tuple(map(_for_replace, parts)))
        case OneOf(parts, delta):
            return OneOf(tuple(map(_for_replace, parts)), delta)
        case Repeat(inner, times):
            return Repeat(_for_replace(inner), times)
        case Sampled(inner, rate):
            return Sampled(_for_replace(inner), rate)
        case Group(inner, size):
            return Group(_for_replace(inner), size)
    return loss


def _relation(loss: Loss) -> Neighbors:
    """REPLACE if any part of the loss is for it."""
    match loss:
        case Compose(parts) | OneOf(parts) | Parallel(parts, Neighbors.ADD_REMOVE):
            replaced = any(_relation(part) is Neighbors.REPLACE for part in parts)
        case Repeat(inner, _) | Sampled(inner, _) | Group(inner, _):
            replaced = _relation(inner) is Neighbors.REPLACE
        case _:
            replaced = isinstance(loss, Parallel)
    return Neighbors.REPLACE if replaced else Neighbors.ADD_REMOVE


def _count(loss: Loss, times: int, size: int, counts: dict[Loss, int]) -> None:
    """Add `times` times `loss`, for `size` units that change together.

    **Theorem (groups).** Let D and D' differ in k units: each of the k is removed, added, or under REPLACE changed.
    *Composition:* each part sees the same D and D', so where each part is a mechanism of its own, the group of a
    composition is at most the composition of the groups. *Parts that are no mechanism:* `ApproximateDp(0, delta)` says
    of each pair of neighbors that something has a probability of at most delta, and that the other parts hold of the
    rest; what it is depends on the pair (the keys that only one of the two has: `Threshold`). For k units there may be
    no such pair of parts: a key of k units may be shown nearly always, and never without them. So if there is one
    inside a group, what is grouped is taken as a whole: it is (epsilon, delta)-DP, and so for k units (k epsilon, delta
    (e^{k epsilon} - 1)/(e^epsilon - 1))-DP (`Accountant.group`). *Sampling at rate q:* toss one coin for each of the k
    units, the same one for both runs. With probability (1-q)^k all miss, and both samples are alike. Otherwise the
    samples differ in at most k units, from each other and from the sample without the k. So the two distributions are
    (1-p) A + p B and (1-p) A + p C with p = 1-(1-q)^k, where B and C are mixtures with the same weights: by convexity
    the pairs (B, C), (B, A) and (A, C) are no worse than k units are to the loss that is sampled. This is a *change* of
    a loss sampled at rate p, and neither a removal nor an addition, as some of the k may be removed and others added.
    It is written as the one part of a `Parallel` for REPLACE. *Parallel parts:* the k units lie in some of the parts,
    at most k in each; all parts together for k units bound it. *One of several:* whichever it is, it sees the same D
    and D'.
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
        case Group(inner, more) if size * more > 1 and _is_split_by_pair(inner):
            term: Loss = Group(inner, size * more)
        case Group(inner, more):
            _count(inner, times, size * more, counts)
            return
        case Parallel(parts, neighbors) if size == 1:
            kept = parts if neighbors is Neighbors.ADD_REMOVE else _twice(parts)
            term = Parallel(tuple(dict.fromkeys(kept)), neighbors)
        case Parallel(parts, _):
            for part in parts:
                _count(part, times, size, counts)
            return
        case OneOf(parts, delta):
            term = OneOf(tuple(dict.fromkeys(part if size == 1 else Group(part, size) for part in parts)), delta)
        case Sampled() if size == 1:
            term = loss
        case Sampled(inner, rate):
            term = Parallel((Sampled(Group(inner, size), 1 - (1 - rate) ** size),), Neighbors.REPLACE)
        case _:
            term = loss if size == 1 else scale_to_group(loss, size)
    counts[term] = counts.get(term, 0) + times


def _is_split_by_pair(loss: Loss) -> bool:
    """Whether a part of it may hold for each pair of neighbors only together with the other parts."""
    match loss:
        case ApproximateDp(epsilon, delta):
            return epsilon == 0 and delta > 0
        case Compose(parts) | OneOf(parts) | Parallel(parts):
            return any(map(_is_split_by_pair, parts))
        case Repeat(inner, number) | Sampled(inner, number):
            return number > 0 and _is_split_by_pair(inner)
        case Group(inner):
            return _is_split_by_pair(inner)
    return False


def _twice(parts: Iterable[Loss]) -> Iterable[Loss]:
    """The parts, where equal ones are kept once and, wrapped, a second time: a pair may be of equal parts."""
    seen: set[Loss] = set()
    for part in parts:
        yield Compose((part,)) if part in seen else part
        seen.add(part)


def pairs_of(accountant: Accountant[Curve], curves: Sequence[Curve]) -> Curve:
    """`replace_in_parallel` for accountants to whom all directions are alike: above each part and each two together."""
    if len(curves) > FEW:
        return accountant.compose([(accountant.worst(curves), 2)])
    pairs = [accountant.compose([(one, 1), (other, 1)]) for one, other in combinations(curves, 2)]
    return accountant.worst(pairs or curves)


def _one(term: Loss, accountant: Accountant[Curve]) -> Curve:
    match term:
        case Parallel(parts, neighbors):
            curves = [evaluate_loss(part, accountant) for part in parts]
            if not curves:
                return accountant.compose([])
            return (
                accountant.worst(curves)
                if neighbors is Neighbors.ADD_REMOVE
                else accountant.replace_in_parallel(curves)
            )
        case OneOf(parts):
            either = [evaluate_loss(part, accountant) for part in parts]
            return accountant.worst(either) if either else accountant.compose([])
        case Sampled(inner, rate):
            return accountant.subsample(evaluate_loss(inner, accountant), rate)
        case Group(inner, size):
            whole = accountant.group(inner, size)
            return whole if _relation(inner) is Neighbors.ADD_REMOVE else accountant.replace_in_parallel([whole])
        case Compose() | Repeat():  # pragma: no cover - flatten leaves none of these
            raise AssertionError(term)
    return accountant.leaf(term)


def scale_to_group(leaf: Leaf, size: int) -> Leaf:
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
            return ConcentratedDp(Fraction(coordinates * (shift * size) ** 2) / (2 * variance))
        case ContinuousLaplaceNoise(scale):
            return ContinuousLaplaceNoise(scale / size)
        case ContinuousGaussianNoise(sigma):
            return ContinuousGaussianNoise(sigma / size)
        case PureDp(epsilon):
            return PureDp(epsilon * size)
        case BoundedRange(epsilon):
            return BoundedRange(epsilon * size)
        case ConcentratedDp(rho):
            return ConcentratedDp(rho * size**2)
        case ApproximateDp(epsilon, delta):
            return ApproximateDp(epsilon * size, group_delta(epsilon, delta, size))
