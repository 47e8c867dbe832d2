"""The mechanisms that Tacit uses, many releases at once, and their distributions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.audit.zoo.known_mechanism import ProbabilityMap, SamplingFunction
from tacit.audit.zoo.noise import laplace_distribution
from tacit.mechanisms.exponential import Exponential
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.noisy_max import NoisyMax
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.randomized_response import RandomizedResponse
from tacit.mechanisms.sparse_vector import SparseVector
from tacit.privacy.unit import Neighbors
from tacit.sampling import gaussian, laplace
from tacit.sampling.bernoulli import draw_exp_array
from tacit.sampling.bits import ReplayBits
from tacit.sampling.exponential_weights import choices
from tacit.sampling.uniform import draw_array_below

RESPONSE = RandomizedResponse(epsilon=Fraction(1))
COUNT = Laplace.calibrated(epsilon=1, sensitivity=1)
NORMAL = Gaussian(Fraction(1399123, 100000))  # calibrated to (1, 1e-5)
NORMAL_RHO = Gaussian.for_rho(Fraction(1, 2))
BEST = Exponential.calibrated(epsilon=1, sensitivity=1)
FLIP = PermuteAndFlip.calibrated(epsilon=1, sensitivity=1)
LARGEST = NoisyMax.calibrated(epsilon=1, sensitivity=1)
ALARM = SparseVector.calibrated(epsilon=1, threshold=1, count=1, sensitivity=1)
KEYS = PartitionSelection.calibrated(epsilon=1, delta=Fraction(1, 100))
MEDIAN = Quantile.calibrated(1, Fraction(1, 2), rows=1, neighbors=Neighbors.ADD_REMOVE, lower=0, upper=8)
_Outputs = npt.NDArray[Any]


def replay_bits(rng: np.random.Generator) -> ReplayBits:
    """The bits of a specimen: the same for the same generator."""
    return ReplayBits(rng.bytes(32))


def randomized_response(data: int, size: int, rng: np.random.Generator) -> _Outputs:
    """Randomized response of one person's bit."""
    return RESPONSE.release(np.full(size, data, dtype=np.int64), replay_bits(rng))


def noisy_counts(data: npt.ArrayLike, size: int, rng: np.random.Generator) -> _Outputs:
    """A count, or several, each with discrete Laplace noise."""
    values = np.atleast_1d(np.asarray(data, dtype=np.int64))
    noise = laplace.draw_array(COUNT.scale, size * len(values), replay_bits(rng)).reshape(size, -1)
    return np.asarray(values + noise)


def gaussian_count(variance: Fraction) -> SamplingFunction:
    """A count with discrete Gaussian noise."""

    def release(data: int, size: int, rng: np.random.Generator) -> _Outputs:
        return np.asarray(data + gaussian.draw_array(variance, size, replay_bits(rng)))

    return release


def exponential_choice(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """The exponential mechanism."""
    return choices(np.array(data, dtype=np.int64), BEST.factor, size, replay_bits(rng))


def permute_and_flip(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """Permute-and-flip: all coins, and one of the heads at random. A row's heads are numbered by its random order."""
    bits, best = replay_bits(rng), max(data)
    lacks = np.tile([float(FLIP.factor * (best - score)) for score in data], size)
    exact = [FLIP.factor * (best - score) for score in data]
    heads = draw_exp_array(lacks, 2.0**-40, lambda place: exact[place % len(exact)], bits).reshape(size, -1)
    order = draw_array_below(2**62, size * len(data), bits).reshape(size, -1)
    return np.asarray(np.argmax(np.where(heads, order, -1), axis=1))


def noisy_max(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """Report noisy max: the index of the largest noisy score, the first of equal ones."""
    noise = laplace.draw_array(LARGEST.scale, size * len(data), replay_bits(rng)).reshape(size, -1)
    return np.asarray(np.argmax(np.array(data) + noise, axis=1))


def sparse_vector(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """Sparse vector: which number is the first to be called above the threshold; their number, if none is."""
    bits = replay_bits(rng)
    edge = ALARM.threshold + laplace.draw_array(ALARM.threshold_scale, size, bits)
    noisy = np.array(data) + laplace.draw_array(ALARM.scale, size * len(data), bits).reshape(size, -1)
    above = np.column_stack([noisy >= edge[:, None], np.ones(size, dtype=bool)])
    return np.asarray(np.argmax(above, axis=1))


def select_partition(data: int, size: int, rng: np.random.Generator) -> _Outputs:
    """Partition selection of a key that so many people hold: whether it is shown. Keys are decided independently."""
    shown = np.zeros(size, dtype=np.int64)
    shown[KEYS.release(dict.fromkeys(range(size), data), replay_bits(rng))] = 1
    return shown


def noisy_median(data: dict[int, int], size: int, rng: np.random.Generator) -> _Outputs:
    """The median of a histogram: a stretch of points that are alike, and a point of it, as `Quantile.release` does."""
    starts, sizes, errors = MEDIAN._stretches(data)
    bits = replay_bits(rng)
    stretch = choices(errors, -MEDIAN.factor, size, bits, sizes=sizes)
    place = draw_array_below(2**62, size, bits) % sizes[stretch]  # uniform to 2^-59
    return np.asarray(starts[stretch] + place)


def response_law(data: int) -> ProbabilityMap:
    """1/(1 + e^-1) for the truth."""
    truth = 1 / (1 + math.exp(-1))
    return {data: truth, 1 - data: 1 - truth}


def noisy_counts_distribution(data: npt.ArrayLike) -> ProbabilityMap:
    """Independent discrete Laplace noise on one count or two."""
    return laplace_distribution(float(COUNT.scale), data)


def normal_law(variance: Fraction) -> Callable[[int], ProbabilityMap]:
    """The discrete Gaussian distribution around a count from 0 to 9."""

    def law(data: int) -> ProbabilityMap:
        reach = math.ceil(12 * math.sqrt(variance)) + 10
        weights = {k: math.exp(-((k - data) ** 2) / (2 * float(variance))) for k in range(-reach, reach + 1)}
        total = math.fsum(weights.values())
        return {k: weight / total for k, weight in weights.items() if weight > 1e-300}

    return law


def selection_law(mechanism: Exponential | PermuteAndFlip | NoisyMax) -> Callable[[Sequence[int]], ProbabilityMap]:
    """The mechanism's own certified distribution, as doubles."""
    return lambda data: {place: float(share.mid()) for place, share in enumerate(mechanism.law(data))}


def first_above_law(data: tuple[int, ...]) -> ProbabilityMap:
    """The mechanism's own distribution, by the place of the first yes."""
    return {said.index(True) if any(said) else len(said): float(share.mid()) for said, share in ALARM.law(data).items()}


def kept_law(data: int) -> ProbabilityMap:
    """Shown with p(n)."""
    share = float(KEYS.law(data).mid())
    return {1: share, 0: 1 - share}


def middle_law(data: dict[int, int]) -> ProbabilityMap:
    """The mechanism's own distribution."""
    return {point: float(share.mid()) for point, share in MEDIAN.law(data).items()}
