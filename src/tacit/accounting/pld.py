"""Privacy-loss distributions: the tightest price of a workload that was fixed beforehand.

Adaptive questions may use the bound too, as pairs that dominate compose adaptively (Zhu, Dong, Wang 2022, theorem 10),
but not a budget that is compared with it as it grows: only a privacy filter may stop a run (`guard`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from tacit.accounting import laws
from tacit.accounting.atoms import Atoms, from_curve, sampled
from tacit.accounting.convert import least
from tacit.accounting.fold import fold
from tacit.accounting.tilted import Composed, compose, growth
from tacit.privacy.loss import Leaf, Loss

_TOLERANCE = 1e-7  # how much the grid may add to ln delta, times the root of the number of uses
_COARSE = 64  # grid steps in the natural scale of a loss, for a first look
_FINE = 512  # grid steps in the spread of all losses, at least
_LARGEST = 2**21  # points of a window
_NARROW = 4  # how much finer the grid of the lower bound is

Both = tuple[Atoms, Atoms]


@dataclass(frozen=True)
class Law:
    """A leaf, or the sampled or the worst of products."""

    leaf: Leaf | None = None
    of: tuple[Product, ...] = ()
    rate: Fraction | None = None


@dataclass(frozen=True)
class Product:
    """Laws, each so many times."""

    terms: tuple[tuple[Law, int], ...]


class Pld:
    """The accountant that only writes down what is to be composed; the grid is chosen when all of it is known."""

    def leaf(self, loss: Leaf) -> Product:
        """One law, once."""
        return Product(((Law(loss), 1),))

    def compose(self, terms: Sequence[tuple[Product, int]]) -> Product:
        """All the laws, with those merged that have a law of their sum."""
        counts: dict[Law, int] = {}
        for product, times in terms:
            for law, each in product.terms:
                counts[law] = counts.get(law, 0) + each * times
        return Product(tuple((law, times) for law, times in counts.items() if times))

    def worst(self, curves: Sequence[Product]) -> Product:
        """The curve above all."""
        distinct = tuple(dict.fromkeys(curves))
        return distinct[0] if len(distinct) == 1 else Product(((Law(of=distinct), 1),))

    def sampled(self, curve: Product, rate: Fraction) -> Product:
        """Sampled at this rate."""
        if rate in {0, 1} or not curve.terms:
            return curve if rate else Product(())
        return Product(((Law(of=(curve,), rate=rate), 1),))


def epsilon(loss: Loss, delta: float, *, upper: bool = True) -> float:
    """The least epsilon at `delta`, from above, or a lower bound on it for the dominating pair."""
    product = fold(loss, Pld())
    return max((_epsilon(product, way, delta, upper) for way in _ways(product)), default=0.0)


def delta(loss: Loss, epsilon: float, *, upper: bool = True) -> float:
    """delta(epsilon), from above, or a lower bound on it for the dominating pair."""
    product = fold(loss, Pld())
    return max((_delta(product, way, epsilon, upper) for way in _ways(product)), default=0.0)


def _ways(product: Product) -> range:
    """The directions to try: both where something is sampled."""
    return range(0 if not product.terms else 2 if _skewed(product) else 1)


def _skewed(product: Product) -> bool:
    return any(law.rate is not None or any(map(_skewed, law.of)) for law, _ in product.terms)


def _epsilon(product: Product, way: int, delta: float, upper: bool) -> float:
    first = _terms(product, way, None, upper=upper)
    lost = _lost(first)
    if lost >= delta:
        return math.inf if upper else 0.0
    log = growth(first)

    def bound(t: float) -> float:
        tilt = math.exp(t)
        return (log(tilt) - math.log(delta - lost) - math.log1p(tilt)) / tilt - math.log1p(1 / tilt)

    t, guess = least(bound, *_tilts(first))
    slack = 1e-3 * delta
    found, shift = _composed(product, way, first, math.exp(t), max(guess, 0.0), upper, slack)
    goal = delta + slack if shift else delta
    low = high = max(guess, 0.0)
    step = 4 / found.tilt  # not far: away from where the law was tilted to, the errors grow
    while found.delta(high, upper=upper) > goal:
        low, high, step = high, high + step, 2 * step
    while found.delta(low, upper=upper) <= goal:
        if low == 0:
            return 0.0
        low, high, step = max(0.0, low - step), low, 2 * step
    near = _crossing(lambda x: found.delta(x, upper=upper), math.log(goal), low, high)
    width = 3e-10 * max(1.0, near / 100)
    if upper:
        return next(x for x in (near + width, near + 10 * width, near + 1000 * width, high) if found.delta(x) <= delta)
    return max(0.0, near - width - shift)


def _crossing(delta: Callable[[float], float], target: float, low: float, high: float) -> float:
    """Where ln delta, which falls, is `target`; approximately."""
    from scipy.optimize import brentq

    floor = target - 50
    return float(brentq(lambda x: max(floor, math.log(delta(x) or 1e-320)) - target, low, high, xtol=1e-10, rtol=1e-12))


def _delta(product: Product, way: int, epsilon: float, upper: bool) -> float:
    first = _terms(product, way, None, upper=upper)
    if _lost(first) > 1 - 1e-12:
        return float(upper)
    log = growth(first)
    t, _ = least(lambda t: log(math.exp(t)) - math.exp(t) * epsilon, *_tilts(first))
    found, shift = _composed(product, way, first, math.exp(t), epsilon, upper, 1e-18)
    return found.delta(epsilon + shift, upper=upper) - (1e-18 if shift else 0.0)


def _composed(
    product: Product, way: int, first: list[tuple[Atoms, int]], tilt: float, epsilon: float, upper: bool, slack: float
) -> tuple[Composed, float]:
    """All of it on one grid, and for the lower bound how far its losses may be too large.

    **Theorem.** Dividing a loss l between grid points adds a term N with E[e^-N] = 1, given l, in an interval of length
    h. So E[exp(t N)] <= exp(t (t + 1) h^2/8) (Hoeffding), which is what the grid adds to ln delta, n times; h is
    chosen so that this is small: 3e-6 for 1,000 uses. From below: the sum of n such terms passes
    s = n h^2/8 + h sqrt(n ln(1/b)/2) with probability at most b, so delta(x) >= delta of the grid (x + s) - b.
    """
    own = sorted({atoms.step for atoms, _ in first if atoms.loss.size > 1})
    uses = sum(times for _, times in first)
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
    found = compose(terms, step, tilt)
    if upper or found.step == exact:
        return found, 0.0
    return found, uses * found.step**2 / 8 + found.step * math.sqrt(uses * -math.log(slack) / 2)


def _exact(product: Product) -> bool:
    """Whether every law has atoms of its own, so that a finer grid would change nothing."""
    from tacit.privacy.loss import Approximate, GaussianNoise, LaplaceNoise, Pure

    return all(isinstance(law.leaf, Approximate | GaussianNoise | LaplaceNoise | Pure) for law, _ in product.terms)


def _whole(number: float) -> bool:
    return abs(number - round(number)) < 1e-12 * number


def _lost(terms: list[tuple[Atoms, int]]) -> float:
    """The probability of an infinite loss."""
    return -math.expm1(math.fsum(times * math.log1p(-min(atoms.infinite, 1 - 1e-16)) for atoms, times in terms))


def _tilts(terms: list[tuple[Atoms, int]]) -> tuple[float, float, int]:
    """Logarithms of the least and the largest tilt to try, and how many steps the search takes."""
    width = _spread(terms)
    far = max(width, *(float(np.abs(atoms.loss).max()) for atoms, _ in terms))
    low, high = math.log(1e-3 / far), math.log(300 / width)
    return low, high, math.ceil(2 * (high - low))


def _spread(terms: list[tuple[Atoms, int]]) -> float:
    """The standard deviation of the sum of the losses."""
    total = 0.0
    for atoms, times in terms:
        weight = atoms.mass / max(float(atoms.mass.sum()), 1e-300)
        mean = float(weight @ atoms.loss)
        total += times * float(weight @ (atoms.loss - mean) ** 2)
    return math.sqrt(total) or 1.0


def _terms(product: Product, way: int, step: float | None, *, upper: bool) -> list[tuple[Atoms, int]]:
    found = []
    for law, times in product.terms:
        if law.leaf is not None:
            leaf, count = laws.merged(law.leaf, times)
            found.append((laws.atoms(leaf, step or (laws.scale(leaf) or 1.0) / _COARSE, upper=upper), count))
        else:
            found.append((_nested(law, step, upper=upper)[way], times))
    return found


def _nested(law: Law, step: float | None, *, upper: bool) -> Both:
    """The atoms of a sampled law or of the worst of several, for a removal and for an addition."""
    inner = None if step is None else step * (min(8.0, float(1 / law.rate)) if law.rate else 1.0)
    pairs = [_pair(product, inner, upper=upper) for product in law.of]
    if law.rate is not None:
        return sampled(*pairs[0], float(law.rate))
    return _worst([one for one, _ in pairs], upper=upper), _worst([other for _, other in pairs], upper=upper)


def _pair(product: Product, step: float | None, *, upper: bool) -> Both:
    """A product as atoms, both ways."""
    both = []
    for way in _ways(product):
        terms = _terms(product, way, step, upper=upper)
        if len(terms) == 1 and terms[0][1] == 1:
            both.append(terms[0][0])
            continue
        width = _spread(terms)
        fine = step or width / _COARSE
        uses = sum(times for _, times in terms)
        found = compose(terms, max(min(fine, width / math.sqrt(uses) / 4), 40 * width / _LARGEST), 0.0)
        lost = (found.error * found.masses.size + 2 * found.outside + found.relative) if upper else 0.0
        loss = found.start + found.step * np.arange(found.masses.size) + (found.shift if upper else -found.shift)
        keep = found.masses > 1e-30
        both.append(Atoms(loss[keep], found.masses[keep] * (1 - found.infinite), found.infinite + lost))
    return both[0], both[-1]


def _worst(choices: list[Atoms], *, upper: bool) -> Atoms:
    """A pair whose curve is above those of all the choices (below: one of them)."""
    points = np.unique(np.concatenate([atoms.loss for atoms in choices]))
    points = points[np.linspace(0, points.size - 1, min(points.size, 2048)).astype(int)]
    curves = np.array([[atoms.delta(float(x)) for x in points] for atoms in choices])
    top = curves.max(axis=0)
    for atoms, curve in zip(choices, curves, strict=True):
        if np.all(curve >= top):
            return atoms
    return from_curve(points, top) if upper else choices[int(np.argmax(curves.sum(axis=1)))]
