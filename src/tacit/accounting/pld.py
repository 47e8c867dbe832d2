"""Privacy-loss distributions: the tightest bound of a workload that was fixed beforehand.

Adaptive questions may use the bound too, as pairs that dominate compose adaptively (Zhu, Dong, Wang 2022, theorem 10),
but not a budget that is compared with it as it grows: only a privacy filter may stop a run (`guard`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import permutations

import numpy as np

from tacit.accounting import dominating_pairs
from tacit.accounting.accountant import FEW, evaluate_loss
from tacit.accounting.convert import minimize_unimodal
from tacit.accounting.privacy_loss_distribution import (
    PrivacyLossDistribution,
    added_sampled,
    changed_sampled,
    curve,
    enumerate_sums,
    infinite_of,
    make_infinite_loss,
    removed_sampled,
    worst,
)
from tacit.accounting.rounding import double_above
from tacit.accounting.tilted_fft import MOST_USES, ComposedDistribution, compose_by_fft, log_moments
from tacit.accounting.zcdp import group_as_whole
from tacit.privacy.loss import Leaf, Loss

_TOLERANCE = 1e-7  # how much the grid may add to ln delta, times the root of the number of uses
_COARSE = 64  # grid steps in the natural scale of a loss, for a first look
_FINE = 512  # grid steps in the spread of all losses, at least
_LARGEST = 2**21  # points of a window
_NARROW = 4  # how much finer the grid of the lower bound is
_ATOMS = 2**14  # sums of losses that are listed one by one, at most
_HUGE, _MINUTE = 1e9, 1e-60  # losses of one use beyond which nothing is computed
_COUNTLESS = 2**900  # uses beyond which their number is no double, and nothing is computed either
REMOVED, ADDED, CHANGED = range(3)  # the directions of a pair of neighbors


@dataclass(frozen=True)
class PldFactor:
    """A leaf, or the sampled or the worst of products, or what is worst where a unit may move between them."""

    leaf: Leaf | None = None
    of: tuple[PldProduct, ...] = ()
    rate: Fraction | None = None
    moved: bool = False


@dataclass(frozen=True)
class PldProduct:
    """Distributions, each so many times. `replaced` says that it is for changes, not for removals and additions."""

    terms: tuple[tuple[PldFactor, int], ...]
    replaced: bool = False


class PldAccountant:
    """The accountant that only writes down what is to be composed; the grid is chosen when all of it is known."""

    def leaf(self, loss: Leaf) -> PldProduct:
        """One distribution, once."""
        return PldProduct(((PldFactor(loss), 1),))

    def compose(self, terms: Sequence[tuple[PldProduct, int]]) -> PldProduct:
        """All the distributions, with those merged that have a distribution of their sum."""
        counts: dict[PldFactor, int] = {}
        for product, times in terms:
            for law, each in product.terms:
                counts[law] = counts.get(law, 0) + each * times
        kept = tuple((law, times) for law, times in counts.items() if times)
        return PldProduct(kept, any(product.replaced for product, _ in terms))

    def worst(self, curves: Sequence[PldProduct]) -> PldProduct:
        """The curve above all."""
        distinct = tuple(dict.fromkeys(curves))
        replaced = any(curve.replaced for curve in curves)
        return distinct[0] if len(distinct) == 1 else PldProduct(((PldFactor(of=distinct), 1),), replaced)

    def replace_in_parallel(self, curves: Sequence[PldProduct]) -> PldProduct:
        """A change inside one part, or a removal in one and an addition in another."""
        if len(curves) == 1:
            return PldProduct(curves[0].terms, replaced=True)
        return PldProduct(((PldFactor(of=tuple(curves), moved=True), 1),), replaced=True)

    def subsample(self, curve: PldProduct, rate: Fraction) -> PldProduct:
        """Sampled at this rate."""
        if rate in {0, 1} or not curve.terms:
            return curve if rate else PldProduct(())
        return PldProduct(((PldFactor(of=(curve,), rate=rate), 1),), curve.replaced)

    def group(self, loss: Loss, size: int) -> PldProduct:
        """The pair that dominates the guarantee of the whole."""
        return self.leaf(group_as_whole(loss, size))


def epsilon(loss: Loss, delta: float, *, upper: bool = True) -> float:
    """The least epsilon at `delta`, from above, or a lower bound on it for the dominating pair."""
    product = evaluate_loss(loss, PldAccountant())
    if _extreme(product):
        return math.inf if upper else 0.0
    return max((_epsilon(product, way, delta, upper) for way in _ways(product)), default=0.0)


def delta(loss: Loss, epsilon: float, *, upper: bool = True) -> float:
    """delta(epsilon), from above, or a lower bound on it for the dominating pair."""
    product = evaluate_loss(loss, PldAccountant())
    if _extreme(product):
        return float(upper)
    return max((_delta(product, way, epsilon, upper) for way in _ways(product)), default=0.0)


def _ways(product: PldProduct) -> tuple[int, ...]:
    """The directions to try: one where all are alike, a removal and an addition where something is sampled."""
    if not product.terms:
        return ()
    if not _is_skewed(product):
        return (REMOVED,) if not product.replaced else (CHANGED,)
    return (CHANGED,) if product.replaced else (REMOVED, ADDED)


def _is_skewed(product: PldProduct) -> bool:
    return any(law.rate is not None or any(map(_is_skewed, law.of)) for law, _ in product.terms)


def _extreme(product: PldProduct) -> bool:
    """Whether a loss in it is so large or so small that nothing is computed: the other accountants bound it."""
    return any(
        any(map(_extreme, law.of))
        if law.leaf is None
        else not (0 <= dominating_pairs.typical_loss(law.leaf) <= _HUGE)
        or 0 < dominating_pairs.typical_loss(law.leaf) < _MINUTE
        or times * getattr(law.leaf, "coordinates", 1) > _COUNTLESS
        for law, times in product.terms
    )


def _epsilon(product: PldProduct, way: int, delta: float, upper: bool) -> float:
    first = _terms(product, way, None, upper=upper)
    certain = infinite_of(first)
    if certain >= delta or _uses(first) > MOST_USES:
        return math.inf if upper else 0.0
    whole = enumerate_sums(first, _ATOMS, upper=upper) if _has_own_atoms(product) else None
    if whole is not None:
        return _least(whole, delta, upper)
    log = log_moments(first)

    def bound(t: float) -> float:
        tilt = math.exp(t)
        return (log(tilt) - math.log(delta - certain) - math.log1p(tilt)) / tilt - math.log1p(1 / tilt)

    t, guess = minimize_unimodal(bound, *_tilts(first))
    slack = 1e-3 * delta
    found, shift = _compose_on_grid(product, way, first, math.exp(t), max(guess, 0.0), upper, slack)
    goal = delta + slack if shift else delta
    low = high = max(guess, 0.0)
    step = 4 / found.tilt  # not far: away from where the distribution was tilted to, the errors grow
    while found.delta(high, upper=upper) > goal:
        low, high, step = high, high + step, 2 * step
        if high > _HUGE * _HUGE:
            return math.inf
    while found.delta(low, upper=upper) <= goal:
        if low == 0:
            return 0.0
        low, high, step = max(0.0, low - step), low, 2 * step
    near = _crossing(lambda x: found.delta(x, upper=upper), math.log(goal), low, high)
    width = 3e-10 * max(1.0, near / 100)
    if upper:
        return next(x for x in (near + width, near + 10 * width, near + 1000 * width, high) if found.delta(x) <= delta)
    return max(0.0, near - width - shift)


def _least(atoms: PrivacyLossDistribution, delta: float, upper: bool) -> float:
    """The least epsilon at `delta` of a list of atoms, by halving: the end on the safe side."""
    low, high = 0.0, max(0.0, float(atoms.loss.max())) + 2 * atoms.slip
    if atoms.delta(0.0, upper=upper) <= delta:
        return 0.0
    if atoms.delta(high, upper=upper) > delta:
        return math.inf if upper else high
    while high - low > 2.0**-50 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if atoms.delta(middle, upper=upper) > delta else (low, middle)
    return high if upper else low


def _crossing(delta: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where ln delta, which falls, is `target`; approximately."""
    from scipy.optimize import brentq

    floor = target - 50
    return float(brentq(lambda x: max(floor, math.log(delta(x) or 1e-320)) - target, low, high, xtol=1e-10, rtol=1e-12))


def _delta(product: PldProduct, way: int, epsilon: float, upper: bool) -> float:
    first = _terms(product, way, None, upper=upper)
    if infinite_of(first) > 1 - 1e-12:
        return 1.0 if upper else 1 - 2e-12
    if _uses(first) > MOST_USES:
        return float(upper)
    whole = enumerate_sums(first, _ATOMS, upper=upper) if _has_own_atoms(product) else None
    if whole is not None:
        return whole.delta(epsilon, upper=upper)
    log = log_moments(first)
    t, _ = minimize_unimodal(lambda t: log(math.exp(t)) - math.exp(t) * epsilon, *_tilts(first))
    found, shift = _compose_on_grid(product, way, first, math.exp(t), epsilon, upper, 1e-18)
    return found.delta(epsilon + shift, upper=upper) - (1e-18 if shift else 0.0)


def _compose_on_grid(
    product: PldProduct,
    way: int,
    first: list[tuple[PrivacyLossDistribution, int]],
    tilt: float,
    epsilon: float,
    upper: bool,
    slack: float,
) -> tuple[ComposedDistribution, float]:
    """All of it on one grid, and for the lower bound how far its losses may be too large.

    **Theorem.** Dividing a loss l between grid points adds a term N with E[e^-N] = 1, given l, in an interval of length
    h. So E[exp(t N)] <= exp(t (t + 1) h^2/8) (Hoeffding), which is what the grid adds to ln delta, n times; h is
    chosen so that this is small: 3e-6 for 1,000 uses. From below: the sum of n such terms passes
    s = n h^2/8 + h sqrt(n ln(1/b)/2) with probability at most b, so delta(x) >= delta of the grid (x + s) - b.
    """
    uses, own = _uses(first), sorted({atoms.step for atoms, _ in first if atoms.loss.size > 1})
    width = _spread(first) + 1e-300
    if own and own[0] > 0 and all(_whole(step / own[0]) for step in own) and _exact(product):
        step, terms, exact = own[0], first, own[0]
        if 40 * width / step > _LARGEST:
            step = 40 * width / _LARGEST
    else:
        step = math.sqrt(8 * _TOLERANCE / (math.sqrt(uses) * tilt * (tilt + 1)))
        step = min(step, width / math.sqrt(uses) / 4, width / _FINE)
        points = min(_LARGEST, 2**17 * math.cbrt(uses) * (1 if upper else _NARROW))
        step = max(step / (1 if upper else _NARROW), 40 * width / points, epsilon / points)
        terms, exact = _terms(product, way, step, upper=upper), 0.0
        if upper and len({atoms.step for atoms, _ in terms}) == 1 and terms[0][0].step > 0:
            step = terms[0][0].step  # all on one grid already
    found = compose_by_fft(terms, step, tilt)
    if upper or found.step == exact:
        return found, 0.0
    return found, uses * found.step**2 / 8 + found.step * math.sqrt(uses * -math.log(slack) / 2)


def _exact(product: PldProduct) -> bool:
    """Whether every distribution has atoms of its own, so that a finer grid would change nothing."""
    from tacit.privacy.loss import ApproximateDp, GaussianNoise, LaplaceNoise, PureDp

    return all(isinstance(law.leaf, ApproximateDp | GaussianNoise | LaplaceNoise | PureDp) for law, _ in product.terms)


def _has_own_atoms(product: PldProduct) -> bool:
    """Whether every distribution in it, sampled ones too, has atoms of its own."""
    return all(
        _exact(PldProduct(((law, 1),))) if law.leaf else all(map(_has_own_atoms, law.of)) for law, _ in product.terms
    )


def _whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-12 * number


def _tilts(terms: list[tuple[PrivacyLossDistribution, int]]) -> tuple[float, float, int]:
    """Logarithms of the least and the largest tilt to try, and how many steps the search takes."""
    width = _spread(terms)
    far = max(width, *(float(np.abs(atoms.loss).max()) for atoms, _ in terms))
    low, high = math.log(1e-3 / far), math.log(300 / width)
    return low, high, math.ceil(2 * (high - low))


def _uses(terms: list[tuple[PrivacyLossDistribution, int]]) -> int:
    """How many distributions are composed."""
    return sum(times for _, times in terms)


def _spread(terms: list[tuple[PrivacyLossDistribution, int]]) -> float:
    """The standard deviation of the sum of the losses."""
    total = 0.0
    for atoms, times in terms:
        weight = atoms.mass / max(float(atoms.mass.sum()), 1e-300)
        mean = float(weight @ atoms.loss)
        total += times * float(weight @ (atoms.loss - mean) ** 2)
    return math.sqrt(total) or 1.0


def _terms(
    product: PldProduct, way: int, step: float | None, *, upper: bool
) -> list[tuple[PrivacyLossDistribution, int]]:
    """The atoms of each distribution in this direction, and how often."""
    found = []
    for law, times in product.terms:
        if law.leaf is not None:
            leaf, count = dominating_pairs.merge_repetitions(law.leaf, times)
            atoms = dominating_pairs.dominating_pair(
                leaf, step or (dominating_pairs.typical_loss(leaf) or 1.0) / _COARSE, upper=upper
            )
            found.append((replace(atoms, error=atoms.error + dominating_pairs.merging_error(law.leaf, times)), count))
        else:
            found.append((_discretize_nested(law, way, step, upper=upper), times))
    return found


def _discretize_nested(law: PldFactor, way: int, step: float | None, *, upper: bool) -> PrivacyLossDistribution:
    """The atoms of a sampled distribution or of the worst of several, in this direction."""
    if law.rate is not None:
        return _discretize_sampled(law.of[0], law.rate, way, step, upper=upper)
    if not law.moved or way != CHANGED:
        return _worst([_single(part, way, step, upper=upper) for part in law.of], upper=upper)
    changes = [_single(part, CHANGED, step, upper=upper) for part in dict.fromkeys(law.of)]
    left = [_single(part, REMOVED, step, upper=upper) for part in law.of]
    entered = [_single(part, ADDED, step, upper=upper) for part in law.of]
    if len(law.of) > FEW:
        left, entered = [_worst(left, upper=upper)] * 2, [_worst(entered, upper=upper)] * 2
    pairs = [(one, other) for one, other in permutations(range(len(left)), 2)]
    if len(law.of) > FEW or not any(map(_is_skewed, law.of)):
        pairs = [(one, other) for one, other in pairs if one < other]  # the other way round is the same
    exchanges = [_together([(left[one], 1), (entered[other], 1)], step, upper=upper) for one, other in pairs]
    return _worst([*changes, *exchanges], upper=upper)


def _discretize_sampled(
    inner: PldProduct, rate: Fraction, way: int, step: float | None, *, upper: bool
) -> PrivacyLossDistribution:
    """The atoms after sampling; the inner grid is coarser, as sampling brings losses closer together."""
    atoms = _single(inner, way, None if step is None else step * min(8.0, float(1 / rate)), upper=upper)
    share = double_above(rate) if upper else float(rate)
    if share >= 1:
        return atoms
    return (removed_sampled, added_sampled, changed_sampled)[way](atoms, share)


def _single(product: PldProduct, way: int, step: float | None, *, upper: bool) -> PrivacyLossDistribution:
    """A product as one list of atoms, in this direction."""
    terms = _terms(product, way, step, upper=upper)
    return _together(terms, step, upper=upper)


def _together(
    terms: list[tuple[PrivacyLossDistribution, int]], step: float | None, *, upper: bool
) -> PrivacyLossDistribution:
    """The composition as one list of atoms: all the sums of losses where they are few, or on a grid."""
    if len(terms) == 1 and terms[0][1] == 1:
        return terms[0][0]
    if (infinite_of(terms) > 1 - 1e-12 or _uses(terms) > MOST_USES) and upper:
        return make_infinite_loss()
    if _uses(terms) > MOST_USES:  # no loss at all is a lower bound
        return PrivacyLossDistribution(np.zeros(1), np.ones(1))
    if (whole := enumerate_sums(terms, _ATOMS // 4, upper=upper)) is not None:
        return whole
    width = _spread(terms)
    fine = step or width / _COARSE
    found = compose_by_fft(terms, max(min(fine, width / math.sqrt(_uses(terms)) / 4), 40 * width / _LARGEST), 0.0)
    spilled = (found.error * found.masses.size + 2 * found.outside + 1e-30 * found.masses.size) if upper else 0.0
    loss = found.start + found.step * np.arange(found.masses.size) + (found.shift if upper else -found.shift)
    keep = found.masses > 1e-30
    infinite = min(1.0, (found.infinite + spilled) * (1 + 2.0**-50))
    return PrivacyLossDistribution(
        loss[keep], found.masses[keep] * math.exp(found.growth), infinite, error=found.relative + 2.0**-44
    )


def _worst(choices: list[PrivacyLossDistribution], *, upper: bool) -> PrivacyLossDistribution:
    """A pair whose curve is above those of all the choices (below: one of them)."""
    if len(choices) == 1:
        return choices[0]
    if upper:
        return worst(choices)
    points = np.unique(np.concatenate([atoms.loss for atoms in choices]))
    points = points[np.linspace(0, points.size - 1, min(points.size, 256)).astype(int)]
    return max(choices, key=lambda atoms: float(curve(atoms, points).sum()))
