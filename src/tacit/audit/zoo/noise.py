"""Plain noise for specimens, and its distribution. It protects nobody."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import numpy.typing as npt

from tacit.audit.zoo.known_mechanism import ProbabilityMap

Integers = npt.NDArray[np.int64]
_SCALES = 25  # beyond so many scales lies less than 2e-11


def draw_laplace(scale: float, shape: int | tuple[int, ...], rng: np.random.Generator) -> Integers:
    """Integers k with P(k) proportional to exp(-|k|/scale): the difference of two geometric draws."""
    stop = -math.expm1(-1 / scale)
    return rng.geometric(stop, shape) - rng.geometric(stop, shape)


def probability(scale: float, k: int) -> float:
    """P(noise = k)."""
    return math.tanh(1 / (2 * scale)) * math.exp(-abs(k) / scale)


def survival(scale: float, k: int) -> float:
    """P(noise >= k)."""
    q = math.exp(-1 / scale)
    return math.exp(-k / scale) / (1 + q) if k >= 1 else 1 - math.exp((k - 1) / scale) / (1 + q)


def cdf(scale: float, k: int) -> float:
    """P(noise < k); the distribution is even."""
    return survival(scale, 1 - k)


def support_window(scale: float) -> range:
    """The integers that carry the distribution of noise on counts from 0 to 9. Both neighbors have the same."""
    reach = math.ceil(_SCALES * scale) + 10
    return range(-reach, reach + 1)


def laplace_distribution(scale: float, data: npt.ArrayLike) -> ProbabilityMap:
    """The distribution of a count with this noise, or of several, each with its own."""
    counts = np.atleast_1d(data).tolist()
    if len(counts) == 1:
        return {output: probability(scale, output - counts[0]) for output in support_window(scale)}
    return {
        outputs: math.prod(probability(scale, output - count) for output, count in zip(outputs, counts, strict=True))
        for outputs in product(support_window(scale), repeat=len(counts))
    }
