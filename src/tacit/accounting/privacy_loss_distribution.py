"""A pair of distributions as a list of atoms, and what can be done with one.

A pair (P, Q) *dominates* a mechanism if delta(epsilon) of the mechanism is at most that of the pair, at every epsilon.
An atom is an outcome of probability m under P and m exp(-l) under Q; l is its privacy loss. Then
delta(epsilon) = sum of m (1 - exp(epsilon - l)) over the atoms with l > epsilon, plus what is lost for certain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.rounding import double_above, product_above

Array = NDArray[Any]
_LARGEST_EXPONENT = 600.0
_MOST_STEPS = 2.0**50  # of a grid between zero and the largest loss: numbers of steps are exact as doubles and integers
ALIGNED = 1e-9  # a loss this close to the grid, in steps, is on it; `compose` pays for it
_UNDERFLOW = 2.0**-1000  # more than all products of masses that were below the least double come to
_SAMPLES = 2048  # atoms of pairs that are compared
_ALIKE = 1e-9  # how much higher, in relative terms, a curve may be that is still taken for a lower one, at its cost
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True)
class PrivacyLossDistribution:
    """Losses with their probabilities under P, and the probability of an infinite loss.

    `step` is the distance of the losses where they lie on a grid of their own. `error` bounds the relative error of
    each mass: the true one is between mass (1 - error) and mass (1 + error). Each loss is within 2^-48 of the largest
    one of the true loss (`slip`). How the errors add up is in `docs/proofs/accounting.md`.
    """

    loss: Array
    mass: Array
    infinite: float = 0.0
    step: float = 0.0
    error: float = 2.0**-42

    @property
    def slip(self) -> float:
        """How far a loss may be from the true one."""
        return 2.0**-48 * float(np.abs(self.loss).max())

    @property
    def under(self) -> Array:
        """The masses under Q."""
        with np.errstate(divide="ignore", over="ignore"):
            return np.asarray(np.minimum(np.exp(np.log(self.mass) - self.loss), 1.0))

    def growth(self, tilt: float) -> float:
        """ln E[exp(tilt L)] over the finite losses."""
        from scipy.special import logsumexp

        return float(logsumexp(tilt * self.loss, b=self.mass))

    def delta(self, epsilon: float, *, upper: bool = True) -> float:
        """delta(epsilon) of the pair, from above or from below: a sum of positive terms, and its error."""
        at, error = epsilon - self.slip, self.error + self.loss.size * 2.0**-52 + 2.0**-48
        if not upper:
            at, error = epsilon + self.slip, -error
        above = self.loss > at
        sums = float(np.sum(self.mass[above] * -np.expm1(at - self.loss[above]))) * (1 + error)
        sums += _UNDERFLOW * (upper and bool(above.any()))
        infinite = self.infinite if upper else self.infinite * (1 - 2.0**-46)  # which `infinite_of` has rounded up
        return min(1.0, max(0.0, infinite + sums) * (1 + math.copysign(2.0**-50, error)))


def make_infinite_loss() -> PrivacyLossDistribution:
    """The pair that loses everything."""
    return PrivacyLossDistribution(np.zeros(1), np.zeros(1), 1.0)


def curve(atoms: PrivacyLossDistribution, points: Array) -> Array:
    """delta at each of these epsilons, to a relative error of 2^-50 for each atom and that of the masses.

    **Theorem.** With the losses in order, h_i the sum of m_j exp(l_i - l_j) over j >= i and d_i = delta(l_i),
    h_i = m_i + e^{-g} h_{i+1} and d_i = d_{i+1} + (1 - e^{-g}) h_{i+1}, g the distance from l_i to l_{i+1}; and from an
    x below l_i, above the loss before, delta(x) = d_i + (1 - e^{x - l_i}) h_i. Proof: the definition of delta. All
    terms are positive, so each atom adds four roundings to what is relative, and the work is that of sorting.
    """
    order = np.argsort(atoms.loss, kind="stable")
    loss, mass = atoms.loss[order], atoms.mass[order]
    gaps = np.diff(loss)
    height, held = np.zeros(loss.size + 1), np.zeros(loss.size + 1)  # d and h; beyond the last loss both are zero
    held[loss.size - 1] = above = float(mass[-1])
    found = 0.0
    steps = zip(mass[-2::-1].tolist(), np.exp(-gaps)[::-1].tolist(), (-np.expm1(-gaps))[::-1].tolist(), strict=True)
    for place, (here, kept, lost) in enumerate(steps, 2):
        found += lost * above
        above = here + kept * above
        height[loss.size - place], held[loss.size - place] = found, above
    first = np.searchsorted(loss, points, side="right")
    reach = np.append(loss, np.inf)[first] - points
    return np.asarray(height[first] - np.expm1(-reach) * held[first] + atoms.infinite)


def infinite_of(terms: Sequence[tuple[PrivacyLossDistribution, int]]) -> float:
    """The probability that some loss is infinite, rounded up."""
    if any(times and atoms.infinite >= 1 - 2.0**-40 for atoms, times in terms):
        return 1.0
    lost = ((atoms.infinite, double_above(Fraction(times))) for atoms, times in terms if atoms.infinite > 0)
    finite = math.fsum(math.log1p(-infinite) * times for infinite, times in lost)
    return min(1.0, product_above(-math.expm1(finite), 1 + 2.0**-48))


def enumerate_sums(
    terms: Sequence[tuple[PrivacyLossDistribution, int]], most: int, *, upper: bool = True
) -> PrivacyLossDistribution | None:
    """All of it as one list of atoms, where there are at most so many: every sum of losses, with its probability."""
    size = math.prod(atoms.loss.size ** min(times, 64) for atoms, times in terms)
    if size > most or sum(times for _, times in terms) > 64:
        return None
    loss, mass, error = np.zeros(1), np.ones(1), 0.0
    for atoms, times in terms:
        for _ in range(times):
            loss, mass = np.add.outer(loss, atoms.loss).ravel(), np.outer(mass, atoms.mass).ravel()
            error += atoms.error + 2.0**-50
    slip = sum(times * atoms.slip for atoms, times in terms)  # the largest sum may be smaller than the sum of sizes
    return PrivacyLossDistribution(loss + (slip if upper else -slip), mass, infinite_of(terms), error=error * 1.01)


def coarser(atoms: PrivacyLossDistribution, most: int) -> PrivacyLossDistribution:
    """A pair that dominates, with at most so many atoms."""
    if atoms.loss.size <= most:
        return atoms
    step = max(float(np.ptp(atoms.loss)) / (most - 2), least_step(atoms))
    first, offset, masses, slip = discretize(atoms, step)
    loss = offset + step * (first + np.arange(masses.size))
    return PrivacyLossDistribution(loss + slip + atoms.slip, masses, atoms.infinite, step, atoms.error + 2.0**-44)


def least_step(atoms: PrivacyLossDistribution) -> float:
    """The finest step for which `discretize` can number the places of the atoms."""
    return float(np.abs(atoms.loss).max()) / _MOST_STEPS


def discretize(atoms: PrivacyLossDistribution, step: float) -> tuple[int, float, Array, float]:
    """Put the atoms on the grid offset + step * (first, first + 1, ...): first, offset, the masses, and by how much a
    loss may have been moved down. The step is at least `least_step`.

    **Theorem.** Dividing an atom of loss l between the grid's points x <= l <= x + h, so that its mass under P and
    under Q stay the same, gives a pair that dominates. The share of x + h is (1 - e^{x-l})/(1 - e^{-h}). Proof: the
    first pair comes from the second by forgetting which part was drawn. Since delta(epsilon) is linear in e^epsilon
    between neighboring losses, the curve of the second is that of the first at the grid's points and its chord in
    between: no pair on this grid that dominates is better ("connecting the dots", Doroshenko et al. 2022).
    """
    if not step >= least_step(atoms):
        raise ArithmeticError(f"a step of {step} is too fine for losses of {np.abs(atoms.loss).max()}")
    offset = float(atoms.loss[int(np.argmax(atoms.mass))]) % step
    place = (atoms.loss - offset) / step
    near = np.rint(place)
    off = np.abs(place - near)
    onto = off < ALIGNED
    slip = step * (float(off[onto].max(initial=0.0)) + 2.0**-50 * (float(np.abs(place).max()) + 1))
    place = np.where(onto, near, place)
    below = np.floor(place)
    share = np.expm1((below - place) * step) / math.expm1(-step)
    index = below.astype(np.int64)
    first = int(index.min())
    masses = np.bincount(index - first, atoms.mass * (1 - share), int(index.max()) - first + 2)
    masses += np.bincount(index - first + 1, atoms.mass * share, masses.size)
    return first, offset, masses, slip


def discretize_density(
    density: Callable[[Array], Array], low: float, cells: int, step: float, *, upper: bool
) -> PrivacyLossDistribution:
    """The atoms of a distribution of the loss that has a density under P, on [low, low + cells * step].

    Above, each cell is divided between its ends, as in `discretize`; below, each cell is one atom of the mean ratio,
    which is the pair seen through an observer who is told the cell only. Eight nodes of Gauss and Legendre in a cell
    are exact to the last bits for the smooth densities used here, whose cells are at most two wide and an eighth of
    their width: the error of a cell is below 2^-60 of it (the sixteenth derivative is below 12.5^16 of the density).
    """
    inside = (_NODES + 1) / 2 * step  # places in a cell
    start = low + step * np.arange(cells)
    mass = density(start[:, None] + inside) * (_WEIGHTS * step / 2)
    if upper:
        share = np.expm1(-inside) / math.expm1(-step)
        masses = np.zeros(cells + 1)
        masses[:-1] += mass @ (1 - share)
        masses[1:] += mass @ share
        return PrivacyLossDistribution(low + step * np.arange(cells + 1), masses, step=step, error=2.0**-40)
    total = mass.sum(axis=1)
    kept = total > 1e-290
    ratio = (mass[kept] @ np.expm1(-inside)) / total[kept]
    return PrivacyLossDistribution(start[kept] - np.log1p(ratio), total[kept], error=2.0**-40)


def from_delta_curve(epsilons: Array, deltas: Array) -> PrivacyLossDistribution:
    """A pair whose curve is at least the greatest convex curve below these points, which lie on an even grid.

    Convex in e^epsilon, that is, as every true curve is: one that is below the points is below that curve too. The
    errors of the differences are found by computing the curve of what was made, by which all of it is raised.
    """
    reach = np.abs(epsilons) <= _LARGEST_EXPONENT  # what is beyond is lost for certain, at most
    if not reach.any():
        return make_infinite_loss()
    points = np.concatenate([[0.0], np.exp(epsilons[reach])])
    heights = np.concatenate([[1.0], deltas[reach]])
    hull: list[int] = []
    for index in range(points.size):
        while len(hull) > 1:
            one, two = hull[-2], hull[-1]
            chord = (heights[two] - heights[one]) * (points[index] - points[one])
            if chord < (heights[index] - heights[one]) * (points[two] - points[one]):
                break
            hull.pop()
        hull.append(index)
    at, height = points[hull], heights[hull]
    slopes = np.append(np.diff(height) / np.diff(at), 0.0)
    mass = np.maximum(np.diff(slopes), 0.0) * at[1:]
    found = PrivacyLossDistribution(np.log(at[1:]), mass, min(1.0, float(height[-1]) * (1 + 2.0**-50)), error=2.0**-40)
    shown = np.append(found.mass.sum() + found.infinite, curve(found, found.loss))
    with np.errstate(divide="ignore", invalid="ignore"):
        missing = float(np.nanmax(np.where(height > 0, height / shown - 1, 0.0)))
    return _raise(found, max(0.0, missing) + points.size * 2.0**-50)


def _raise(atoms: PrivacyLossDistribution, share: float) -> PrivacyLossDistribution:
    """A pair whose curve is higher by this share at every loss: `error` is of the finite masses alone."""
    infinite = min(1.0, product_above(atoms.infinite, 1 + Fraction(share)))
    return replace(atoms, infinite=infinite, error=atoms.error + share)


def worst(choices: Sequence[PrivacyLossDistribution]) -> PrivacyLossDistribution:
    """A pair whose curve is above those of all the choices.

    **Theorem.** One pair dominates another if its curve is not lower at its own losses. Proof: delta(epsilon) of each
    is convex in e^epsilon, and that of the first is linear between its losses, from (0, 1) to the first of them, and
    constant beyond the last, where the other falls. So at each choice's own losses the others are compared with it,
    all of them, raised by what rounding may have done. If none is above it everywhere, the largest values at all losses
    (of coarser pairs, where there are many) are points of a curve above all, by the same convexity
    (`from_delta_curve`).
    """
    few = [coarser(atoms, _SAMPLES) for atoms in choices]
    width = max(atoms.slip for atoms in few)
    for number, atoms in enumerate(few):
        others = [other for place, other in enumerate(few) if place != number]
        own = curve(atoms, atoms.loss)
        excess = 0.0
        for other in others:
            there = curve(other, atoms.loss + 2 * width) * (1 + other.error)
            with np.errstate(divide="ignore", invalid="ignore"):
                excess = max(excess, float(np.nanmax(np.where(there > 0, there / own - 1, 0.0))))
            if excess > _ALIKE:
                break
        if excess <= _ALIKE:  # this one, moved and raised by so little
            rounding = (atoms.loss.size + max(other.loss.size for other in few)) * 2.0**-49
            return replace(_raise(atoms, excess + rounding), loss=atoms.loss + 3 * width)
    points = np.unique(np.concatenate([atoms.loss for atoms in few]))
    points = np.unique(np.concatenate([points, *_crossings(few, points)]))
    even = points[np.unique(np.linspace(0, points.size - 1, min(points.size, _SAMPLES)).astype(int))]
    top = np.max([curve(atoms, even) * (1 + atoms.error + atoms.loss.size * 2.0**-50) for atoms in few], axis=0)
    found = from_delta_curve(even, np.minimum(top, 1.0))
    return replace(found, loss=found.loss + width)


def _crossings(choices: Sequence[PrivacyLossDistribution], points: Array) -> list[Array]:
    """Where two curves cross between neighboring points, in e^epsilon: there the larger of the two has a corner."""
    if points[-1] > _LARGEST_EXPONENT or points.size > _SAMPLES:
        return []
    at, curves = np.exp(points), [curve(atoms, points) for atoms in choices]
    found = []
    for one, other in combinations(curves, 2):
        gap = one - other
        turns = np.flatnonzero(gap[:-1] * gap[1:] < 0)
        share = gap[turns] / (gap[turns] - gap[turns + 1])
        found.append(np.log(at[turns] + share * (at[turns + 1] - at[turns])))
    return found


def removed_sampled(removed: PrivacyLossDistribution, rate: float) -> PrivacyLossDistribution:
    """The pair of a removal after Poisson sampling.

    **Theorem** (Zhu, Dong, Wang 2022, theorem 11). If (P, Q) dominates removal, ((1-q) Q + q P, Q) dominates removal
    after sampling; if (P, Q) dominates addition, (P, (1-q) P + q Q) dominates addition after sampling. Atom by atom:
    loss l becomes ln(1 - q + q e^l), and -ln(1 - q + q e^{-l}). Both grow with q, which is rounded up.
    """
    under = removed.under
    only = max(0.0, 1.0 - float(np.sum(under))) + 2 * removed.error + 1e-14  # outcomes of Q alone
    loss = np.concatenate([[math.log1p(-rate)], np.logaddexp(math.log1p(-rate), math.log(rate) + removed.loss)])
    mass = np.concatenate([[(1 - rate) * only], under * (1 - rate) + removed.mass * rate])
    infinite = min(1.0, product_above(rate, removed.infinite))
    return PrivacyLossDistribution(loss, mass, infinite, error=removed.error + 2.0**-44)


def added_sampled(added: PrivacyLossDistribution, rate: float) -> PrivacyLossDistribution:
    """The pair of an addition after Poisson sampling."""
    loss = -np.logaddexp(math.log1p(-rate), math.log(rate) - added.loss)
    loss = np.concatenate([loss, [-math.log1p(-rate)]])
    return PrivacyLossDistribution(loss, np.concatenate([added.mass, [added.infinite]]), error=added.error + 2.0**-44)


def changed_sampled(changed: PrivacyLossDistribution, rate: float) -> PrivacyLossDistribution:
    """The pair of a change after Poisson sampling, where `changed` dominates changes, removals and additions.

    **Theorem.** A change is a pair (1-q) A + q B and (1-q) A + q C. For f >= 1, g = 1 + q (f - 1) and b = g/f its curve
    at g, the sum of the positive parts of P - g Q, is q times that of (B, (1-b) A + b C) at f
    (`BasicAccountant.subsample`), and so at most q H(f), H the curve of `changed`: that is the curve of a removal after
    sampling. At 1/g it follows from the pair the other way round, which is a change too. So the losses above zero are
    those of the removal, and each comes back below zero with its mass under Q; what is left of one is at zero.
    """
    whole = removed_sampled(changed, rate)
    above = (whole.loss > 0) & (whole.mass > 0)
    loss, mass = whole.loss[above], whole.mass[above]
    under = np.exp(np.log(mass) - loss)
    rest = max(0.0, 1.0 - float(mass.sum()) - float(under.sum()) - whole.infinite) + 2 * whole.error + 1e-14
    return PrivacyLossDistribution(
        np.concatenate([-loss[::-1], [0.0], loss]),
        np.concatenate([under[::-1], [rest], mass]),
        whole.infinite,
        error=whole.error + 2.0**-44,
    )
