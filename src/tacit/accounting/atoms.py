"""A pair of laws as a list of atoms, and what can be done with one.

A pair (P, Q) *dominates* a mechanism if delta(epsilon) of the mechanism is at most that of the pair, at every epsilon.
An atom is an outcome of probability m under P and m exp(-l) under Q; l is its privacy loss. Then
delta(epsilon) = sum of m (1 - exp(epsilon - l)) over the atoms with l > epsilon, plus what is lost for certain.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
_LARGEST_EXPONENT = 600.0
ALIGNED = 1e-9  # a loss this close to the grid, in steps, is on it; `compose` pays for it
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(8)


@dataclass(frozen=True)
class Atoms:
    """Losses with their probabilities under P, and the probability of an infinite loss.

    `step` is the distance of the losses where they lie on a grid of their own. `error` bounds the relative error of
    each mass: the true one is between mass (1 - error) and mass (1 + error).
    """

    loss: Array
    mass: Array
    infinite: float = 0.0
    step: float = 0.0
    error: float = 2.0**-44

    def growth(self, tilt: float) -> float:
        """ln E[exp(tilt L)] over the finite losses."""
        from scipy.special import logsumexp

        return float(logsumexp(tilt * self.loss, b=self.mass))

    def delta(self, epsilon: float) -> float:
        """delta(epsilon) of the pair."""
        above = self.loss > epsilon
        return self.infinite + float(np.sum(self.mass[above] * -np.expm1(epsilon - self.loss[above])))


def split(atoms: Atoms, step: float) -> tuple[int, float, Array]:
    """Put the atoms on the grid offset + step * (first, first + 1, ...): first, offset and the masses.

    **Theorem.** Dividing an atom of loss l between the grid's points x <= l <= x + h, so that its mass under P and
    under Q stay the same, gives a pair that dominates. The share of x + h is (1 - e^{x-l})/(1 - e^{-h}). Proof: the
    first pair comes from the second by forgetting which part was drawn. Since delta(epsilon) is linear in e^epsilon
    between neighboring losses, the curve of the second is that of the first at the grid's points and its chord in
    between: no pair on this grid that dominates is better ("connecting the dots", Doroshenko et al. 2022).
    """
    offset = float(atoms.loss[int(np.argmax(atoms.mass))]) % step
    place = (atoms.loss - offset) / step
    near = np.rint(place)
    place = np.where(np.abs(place - near) < ALIGNED, near, place)
    below = np.floor(place)
    share = np.expm1((below - place) * step) / math.expm1(-step)
    index = below.astype(np.int64)
    first = int(index.min())
    masses = np.bincount(index - first, atoms.mass * (1 - share), int(index.max()) - first + 2)
    masses += np.bincount(index - first + 1, atoms.mass * share, masses.size)
    return first, offset, masses


def on_grid(density: Any, low: float, cells: int, step: float, *, upper: bool) -> Atoms:
    """The atoms of a law of the loss that has a density under P, on [low, low + cells * step].

    Above, each cell is divided between its ends, as in `split`; below, each cell is one atom of the mean ratio, which
    is the pair seen through an observer who is told the cell only. Eight nodes of Gauss and Legendre in a cell are
    exact to the last bits for the smooth densities used here.
    """
    inside = (_NODES + 1) / 2 * step  # places in a cell
    start = low + step * np.arange(cells)
    mass = density(start[:, None] + inside) * (_WEIGHTS * step / 2)
    if upper:
        share = np.expm1(-inside) / math.expm1(-step)
        masses = np.zeros(cells + 1)
        masses[:-1] += mass @ (1 - share)
        masses[1:] += mass @ share
        return Atoms(low + step * np.arange(cells + 1), masses, step=step, error=2.0**-40)
    total = mass.sum(axis=1)
    kept = total > 1e-290
    ratio = (mass[kept] @ np.expm1(-inside)) / total[kept]
    return Atoms(start[kept] - np.log1p(ratio), total[kept], error=2.0**-40)


def from_curve(epsilons: Array, deltas: Array) -> Atoms:
    """A pair whose curve is at least the greatest convex curve below these points, which lie on an even grid.

    Convex in e^epsilon, that is, as every true curve is: one that is below the points is below that curve too. The
    errors of the differences are paid with a probability of infinite loss.
    """
    reach = epsilons <= _LARGEST_EXPONENT  # what is beyond is lost for certain, at most
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
    return Atoms(np.log(at[1:]), mass, float(height[-1]) + 1e-15 * points.size, error=2.0**-40)


def sampled(removed: Atoms, added: Atoms, rate: float) -> tuple[Atoms, Atoms]:
    """The pairs after Poisson sampling, for a unit that is removed and for one that is added.

    **Theorem** (Zhu, Dong, Wang 2022, theorem 11). If (P, Q) dominates removal, ((1-q) Q + q P, Q) dominates removal
    after sampling; if (P, Q) dominates addition, (P, (1-q) P + q Q) dominates addition after sampling. Atom by atom:
    loss l becomes ln(1 - q + q e^l), and -ln(1 - q + q e^{-l}).
    """
    ratio = np.exp(-removed.loss)
    only = max(0.0, 1.0 - float(np.sum(removed.mass * ratio))) + 1e-15  # outcomes of Q alone
    loss = np.concatenate([[math.log1p(-rate)], np.logaddexp(math.log1p(-rate), math.log(rate) + removed.loss)])
    mass = np.concatenate([[(1 - rate) * only], removed.mass * ((1 - rate) * ratio + rate)])
    first = Atoms(loss, mass, rate * removed.infinite, error=removed.error + 2.0**-48)
    loss = -np.logaddexp(math.log1p(-rate), math.log(rate) - added.loss)
    loss = np.concatenate([loss, [-math.log1p(-rate)]])
    return first, Atoms(loss, np.concatenate([added.mass, [added.infinite]]), error=added.error + 2.0**-48)
