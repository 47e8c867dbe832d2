"""How far samples are from a law, or from each other."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from flint import arb


def chi_square(observed: Sequence[float], expected: Sequence[float]) -> float:
    """The p-value of Pearson's test: counts of bins against their expected counts."""
    statistic = sum((o - e) ** 2 / e for o, e in zip(observed, expected, strict=True))
    return float(arb(statistic / 2).gamma_upper((len(observed) - 1) / 2, regularized=1))


def strangeness(hits: int, count: int, chance: float) -> float:
    """A bound on the probability of a share of hits as far from `chance` as this: 2 exp(-count KL)."""
    seen = hits / count
    terms = [(seen, chance), (1 - seen, 1 - chance)]
    return 2 * math.exp(-count * sum(a * math.log(a / b) for a, b in terms if a))


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest distance of two empirical distribution functions."""
    points = np.concatenate([one, other])
    below = [np.searchsorted(np.sort(sample), points, side="right") / len(sample) for sample in (one, other)]
    return float(np.max(np.abs(below[0] - below[1])))
