"""The minimizer of a problem, with a certified gradient.

It is exact to a public tolerance. The time it takes depends on the data, as any solver's does; nothing else does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tacit.errors import Failed
from tacit.learn.losses import Array, LinearLoss
from tacit.learn.problem import Problem
from tacit.privacy.unit import Neighbors

_BLOCK = 2048  # rows that are summed up at a time
_WIDE = 16384  # the same, for products of features
_DENSE = 2000  # features up to which a curvature is factored
_STEPS = 200  # Newton steps at most; a dozen is usual
_HALVINGS = 60
_SAMPLE = 16  # a first guess is made from one row in so many,
_ENOUGH = 256  # where it has so many rows a feature
_INNER = 1000  # steps of conjugate gradients for one Newton step
_INEXACT = 1e-3  # by how much they reduce the residual
_UNIT = 2.0**-53

Solve = Callable[[Array], Array]


def tolerance(loss: LinearLoss, norm: float, rows: int) -> float:
    """A gradient norm that doubles reach and prove: 2^-38 of the largest gradient of the declared rows."""
    return loss.slope * norm * max(rows, 1024) * 2.0**-38


def minimize(problem: Problem, tilt: Array, goal: float) -> Array:
    """A w with |grad J(w) + tilt| <= goal, as real numbers.

    **Theorem.** It is within goal/penalty of the only minimizer of J(w) + tilt.w, as this is penalty-strongly convex.

    Newton's method; a step is halved until the objective falls or, where rounding hides that, the gradient. The error
    of the computed gradient is bounded (`slack`) and added to it. Where doubles do not prove the goal, the last steps
    are done in extended precision. If that does not either, the error is `Failed`, whose text is always the same: it
    takes many times more rows than were declared.
    """
    start, solve = _first_guess(problem, tilt, goal)
    for sums in (Sums(), Sums(np.longdouble, 64)):
        reached = _newton(problem, tilt, start, goal, sums, solve)
        if reached.proved:
            return reached.place.weights.astype(np.float64)
        start = reached.place.weights
    raise Failed


@dataclass(frozen=True)
class Sums:
    """How sums over rows are made: in which numbers, and by blocks of how many rows."""

    kind: Any = np.float64
    block: int = _BLOCK

    @property
    def unit(self) -> float:
        """The relative error of one rounding."""
        return float(np.finfo(self.kind).eps) / 2

    def blocks(self, problem: Problem) -> Iterator[tuple[slice, Array]]:
        """The features by blocks, without a copy where they are doubles."""
        for start in range(0, len(problem.features), self.block):
            part = slice(start, start + self.block)
            yield part, problem.features[part].astype(self.kind, copy=False)


@dataclass(frozen=True)
class Place:
    """The objective, the sizes of the terms it is the sum of, its gradient and the scores of all rows at w."""

    weights: Array
    value: float
    size: float
    gradient: Array
    scores: Array

    @property
    def steepness(self) -> float:
        """The computed norm of the gradient."""
        return float(np.linalg.norm(self.gradient))


def look(problem: Problem, tilt: Array, weights: Array, sums: Sums) -> Place:
    """The objective at w, rounded to doubles first, in one pass over the rows."""
    at, loss = weights.astype(np.float64).astype(sums.kind), problem.loss
    gradient = problem.penalty * at + tilt
    value = [float(np.vdot(at, problem.penalty * at / 2 + tilt))]
    size = float(np.vdot(np.abs(at), problem.penalty * np.abs(at) / 2 + np.abs(tilt)))
    kept = np.empty((len(problem.labels), *problem.shape[1:]))
    for part, rows in sums.blocks(problem):
        scores, labels = rows @ at, problem.labels[part]
        kept[part] = scores
        gradient += rows.T @ loss.residuals(scores, labels)
        value.append(float(loss.values(scores, labels).sum()))
    return Place(at, float(np.sum(value)), size + float(np.sum(np.abs(value[1:]))), gradient, kept)


def slack(problem: Problem, tilt: Array, place: Place, sums: Sums) -> float:
    """How far the computed gradient may be from the true one.

    **Theorem.** With n rows by m blocks of at most c, d features, k outputs, unit roundoff u and to first order in u
    (the factor 2 pays for the rest): a score is off by (d + 4) u R|w|, so its residual by that times the bend, and by
    (k + 16) u slope for its own evaluation. X^T r adds (c + m + 2) u slope R a row (the terms' sizes add up to at most
    slope R; a sum in any order has c - 1 roundings on the way of a term). The other terms are rounded three times.
    """
    rows, columns = problem.features.shape
    loss, length = problem.loss, float(np.linalg.norm(place.weights))
    each = (columns + 4) * loss.bend * problem.norm * length
    each += (loss.outputs + 16 + min(rows, sums.block) + rows / sums.block + 2) * loss.slope
    rest = problem.penalty * length + float(np.linalg.norm(tilt)) + place.steepness
    return float(2 * sums.unit * (rows * problem.norm * each + 4 * rest))


def _first_guess(problem: Problem, tilt: Array, goal: float) -> tuple[Array, Solve | None]:
    """About the minimizer for a part of the rows, as near as a part can be, and a solver for its curvature."""
    start = np.zeros(problem.shape)
    rows, columns = problem.features.shape
    if rows < _SAMPLE * _ENOUGH * columns * problem.loss.outputs:
        return start, None
    part = replace(
        problem,
        features=problem.features[::_SAMPLE],
        labels=problem.labels[::_SAMPLE],
        penalty=problem.penalty / _SAMPLE,
        neighbors=Neighbors.ADD_REMOVE,  # the number of rows that was declared is not this one's
    )
    error = problem.loss.slope * problem.norm * float(np.sqrt(rows / _SAMPLE)) / 4
    found = _newton(part, tilt / _SAMPLE, start, max(goal, error), Sums()).place
    solve = solver(part, found)
    return found.weights, lambda v: solve(v) / _SAMPLE


@dataclass(frozen=True)
class _Reached:
    """The last place, and whether the goal is proved there."""

    place: Place
    proved: bool


def _newton(
    problem: Problem, tilt: Array, start: Array, goal: float, sums: Sums, solve: Solve | None = None
) -> _Reached:
    """Steps from the start. An old curvature is kept as long as it makes the gradient eight times smaller."""
    place, fresh = look(problem, tilt, start, sums), False
    moves: list[tuple[Array, Array]] = []
    for _ in range(_STEPS):
        if place.steepness + slack(problem, tilt, place, sums) <= goal:
            return _Reached(place, True)
        if solve is None:
            solve, fresh, moves = solver(problem, place), True, []
        ahead = _step(problem, tilt, place, direction(problem, place, solve, moves), sums)
        if ahead is None and fresh:
            break
        if ahead is None or ahead.steepness > place.steepness / 8:
            solve = None
        if ahead is not None:
            moves.append((ahead.weights - place.weights, ahead.gradient - place.gradient))
        place, fresh = ahead or place, False
    return _Reached(place, False)


def _step(problem: Problem, tilt: Array, place: Place, way: Array, sums: Sums) -> Place | None:
    """The first of the places at w + way, w + way/2, ... that is better; None if there is none."""
    fall = float(np.vdot(place.gradient, way))
    hidden = 64 * _UNIT * place.size  # values are doubles, and where the tilt cancels the losses they are small sums
    for halvings in range(_HALVINGS):
        share = 0.5**halvings
        ahead = look(problem, tilt, place.weights + share * way, sums)
        if ahead.value <= place.value + 1e-4 * share * fall - hidden:
            return ahead
        if ahead.value <= place.value + hidden and ahead.steepness < place.steepness:
            return ahead
    return None


def direction(problem: Problem, place: Place, solve: Solve, moves: list[tuple[Array, Array]]) -> Array:
    """About -H^-1 g, for the Hessian H and the gradient g.

    With one output it is a solve, corrected by what the moves since then have told of the curvature (the two loops of
    L-BFGS); otherwise conjugate gradients, preconditioned by the solve.
    """
    rest = place.gradient.astype(np.float64)
    if problem.loss.outputs > 1 or problem.features.shape[1] > _DENSE:
        curvature = problem.loss.curvature(place.scores, problem.labels)
        return _conjugate(lambda v: _bent(problem, curvature, v), -rest, solve)
    told = [(m.astype(np.float64), c.astype(np.float64)) for m, c in moves if np.vdot(m, c) > 0]
    shares = []
    for move, change in reversed(told):
        shares.append(float(np.vdot(move, rest) / np.vdot(move, change)))
        rest = rest - shares[-1] * change
    way = solve(rest)
    for (move, change), share in zip(told, reversed(shares), strict=True):
        way = way + (share - float(np.vdot(change, way) / np.vdot(move, change))) * move
    return -way


def solver(problem: Problem, place: Place) -> Solve:
    """Divides by X^T diag(f'') X + penalty, or by its diagonal where that is too large to factor.

    For several outputs f'' is each row's mean eigenvalue: a preconditioner.
    """
    from scipy.linalg import cho_factor, cho_solve

    columns, sums = problem.features.shape[1], Sums(block=_WIDE)
    if columns > _DENSE:
        diagonal = np.full(columns, problem.penalty)
        for part, rows in sums.blocks(problem):
            diagonal += _bends(problem, place, part) @ rows**2
        return lambda v: np.asarray((v.T / diagonal).T)
    gram = np.zeros((columns, columns))
    for part, rows in sums.blocks(problem):
        scaled = rows * np.sqrt(_bends(problem, place, part))[:, None]
        gram += scaled.T @ scaled
    gram[np.diag_indices(columns)] += problem.penalty + 64 * _UNIT * np.trace(gram)  # positive in spite of rounding
    factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
    return lambda v: np.asarray(cho_solve(factor, v, check_finite=False))


def _bends(problem: Problem, place: Place, part: slice) -> Array:
    """The curvature of each row of a block as one number."""
    found = problem.loss.curvature(place.scores[part], problem.labels[part])
    if problem.loss.outputs == 1:
        return found
    return np.asarray((1 - np.einsum("ij,ij->i", found, found)) / (problem.loss.outputs - 1))


def _bent(problem: Problem, curvature: Array, v: Array) -> Array:
    """H v."""
    found = problem.penalty * v
    for part, rows in Sums().blocks(problem):
        scores, here = rows @ v, curvature[part]
        if problem.loss.outputs == 1:
            scores *= here
        else:  # (diag p - p p^T) s
            scores = here * (scores - np.einsum("ij,ij->i", here, scores)[:, None])
        found += rows.T @ scores
    return found


def _conjugate(times: Solve, target: Array, solve: Solve) -> Array:
    """About the solution of H x = target, by preconditioned conjugate gradients from 0: always a way down."""
    found, rest = np.zeros_like(target), target.copy()
    eased = solve(rest)
    way, size = eased, float(np.vdot(rest, eased))
    enough = _INEXACT * float(np.linalg.norm(target))
    for _ in range(_INNER):
        bent = times(way)
        length = size / float(np.vdot(way, bent))
        found += length * way
        rest -= length * bent
        if np.linalg.norm(rest) <= enough:
            break
        eased = solve(rest)
        size, before = float(np.vdot(rest, eased)), size
        way = eased + size / before * way
    return found
