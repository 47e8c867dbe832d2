"""Two learners of how likely a vector is on either side: logistic regression and nearest neighbors."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tacit.audit.claim import Reals

ScoreFunction = Callable[[Reals], Reals]

_ROWS = 10_000  # of each side: more teach a regression little
_POINTS = 2_000  # of each side, among which neighbors are looked for
_PAIRED = 10  # columns whose products are taken
_STEPS = 25
_FAR = 20.0  # spreads: beyond, a value is as far as any


def fit_logistic(one: Reals, other: Reals, rng: np.random.Generator) -> ScoreFunction:
    """The log of the odds of `one`, linear in x, |x|, x^2 and products, fitted by Newton's steps with a small ridge."""
    scaled = _scaling(np.concatenate([one, other]))
    rows = [_features(scaled(_subsample(side, _ROWS, rng))) for side in (one, other)]
    design, target = np.concatenate(rows), np.repeat([1.0, 0.0], [len(side) for side in rows])
    weights, ridge = np.zeros(design.shape[1]), 1e-3 * len(design) * np.eye(design.shape[1])
    ridge[0, 0] = 1e-9 * len(design)
    for _ in range(_STEPS):
        chance = 1 / (1 + np.exp(-np.clip(design @ weights, -30, 30)))
        slope = design.T @ (target - chance) - ridge @ weights
        curve = (design * (chance * (1 - chance))[:, None]).T @ design + ridge
        step = np.linalg.solve(curve, slope)
        weights = weights + step * min(1.0, 5 / max(float(np.abs(step).max()), 1e-300))
        if float(np.abs(step).max()) < 1e-6:
            break

    def predict(values: Reals) -> Reals:
        found: Reals = _features(scaled(values)) @ weights
        return found

    return predict


def fit_nearest_neighbors(one: Reals, other: Reals, rng: np.random.Generator) -> ScoreFunction:
    """The log of the ratio of the two sides among the k nearest outputs seen, k about the root of their number."""
    from scipy.spatial import cKDTree

    scaled = _scaling(np.concatenate([one, other]))
    points = [scaled(_subsample(side, _POINTS, rng)) for side in (one, other)]
    tree, border = cKDTree(np.concatenate(points)), len(points[0])
    count = max(2, round(np.sqrt(tree.n) / 2))

    def predict(values: Reals) -> Reals:
        _, place = tree.query(scaled(values), k=min(count, tree.n))
        ours = (place < border).sum(axis=1)
        found: Reals = np.log((ours + 0.5) / (place.shape[1] - ours + 0.5))
        return found

    return predict


def _scaling(values: Reals) -> ScoreFunction:
    """Each column less its median, over its spread; what is far away, or infinite, is cut off."""
    low, center, high = np.quantile(np.clip(values, -1e300, 1e300), [0.25, 0.5, 0.75], axis=0)
    spread = high - low
    spread = np.where(spread > 0, spread, 1.0)

    def scale(rows: Reals) -> Reals:
        with np.errstate(over="ignore"):
            found: Reals = np.clip((np.clip(rows, -1e300, 1e300) - center) / spread, -_FAR, _FAR)
        return found

    return scale


def _features(rows: Reals) -> Reals:
    width = min(rows.shape[1], _PAIRED)
    pairs = [rows[:, first] * rows[:, second] for first in range(width) for second in range(first)]
    return np.column_stack([np.ones(len(rows)), rows, np.abs(rows), rows**2, *pairs])


def _subsample(rows: Reals, most: int, rng: np.random.Generator) -> Reals:
    return rows if len(rows) <= most else rows[rng.choice(len(rows), most, replace=False)]
