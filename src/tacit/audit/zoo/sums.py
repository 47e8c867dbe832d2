"""Specimens whose claim is wrong: noise on counts, sums and means."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.audit.claim import Claim
from tacit.audit.zoo import noise, releases
from tacit.audit.zoo.known_mechanism import ProbabilityMap, SamplingFunction, broken_mechanism
from tacit.mechanisms.randomized_response import RandomizedResponse

_COIN = RandomizedResponse(coin=Fraction(1, 2))
_STUDENTS = 30
_BELIEVED = 50  # the range of scores that someone had in mind; they go up to 100
_CUT = 2
_Outputs = npt.NDArray[Any]


def count_with_scale(scale: float, times: int = 1) -> SamplingFunction:
    """Counts with noise of this scale, each answered so many times."""

    def release(data: Any, size: int, rng: np.random.Generator) -> _Outputs:
        counts = np.repeat(np.atleast_1d(data), times)
        return np.asarray(counts + noise.draw_laplace(scale, (size, len(counts)), rng))

    return release


def double_laplace(data: float, size: int, rng: np.random.Generator) -> _Outputs:
    """The textbook's inverse of a uniform draw, in doubles."""
    uniform = rng.random(size) - 0.5
    return np.asarray(data - np.sign(uniform) * np.log1p(-2 * np.abs(uniform)))


def flipped_coin(data: int, size: int, rng: np.random.Generator) -> _Outputs:
    """With a fair coin the truth, otherwise another fair coin."""
    return _COIN.release(np.full(size, data, dtype=np.int64), releases.replay_bits(rng))


def reused_noise(data: tuple[int, int], size: int, rng: np.random.Generator) -> _Outputs:
    """Two counts with the same draw."""
    return np.array(data) + noise.draw_laplace(2.0, (size, 1), rng)


def fixed_noise(data: int, size: int, rng: np.random.Generator) -> _Outputs:
    """A generator with a fixed seed, made anew for each question."""
    return np.full(size, data + int(noise.draw_laplace(1.0, 1, np.random.default_rng(7))[0]))


def no_noise(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """The mean, as it is."""
    return np.full(size, sum(data) / len(data))


def unclamped_mean(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """The mean, with noise for scores from 0 to 50 and no clamp."""
    return (sum(data) + noise.draw_laplace(_BELIEVED, size, rng)) / len(data)


def local_sensitivity_mean(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """The mean, with noise for the range of the scores at hand."""
    width = max(data) - min(data)
    return (sum(data) + (noise.draw_laplace(width, size, rng) if width else np.zeros(size, dtype=np.int64))) / len(data)


def rounded_before_noise(data: int, size: int, rng: np.random.Generator) -> _Outputs:
    """A count rounded to fives, with noise for a count."""
    return 5 * round(data / 5) + noise.draw_laplace(1.0, size, rng)


def truncated_noise(data: int, size: int, rng: np.random.Generator) -> _Outputs:
    """A count with noise that is cut off, so that no answer looks silly."""
    return data + np.clip(noise.draw_laplace(1.0, size, rng), -_CUT, _CUT)


def repeated_law(scale: float, times: int = 1) -> Callable[[int], ProbabilityMap]:
    """The distribution of `count_with_scale`."""
    return lambda data: noise.laplace_distribution(scale, np.repeat(np.atleast_1d(data), times))


def coin_law(data: int) -> ProbabilityMap:
    """3/4 and 1/4."""
    return {data: 0.75, 1 - data: 0.25}


def same_noise_law(data: tuple[int, int]) -> ProbabilityMap:
    """All of it on one line."""
    return {(data[0] + k, data[1] + k): noise.probability(2.0, k) for k in noise.support_window(2.0)}


def no_noise_law(data: tuple[int, ...]) -> ProbabilityMap:
    """One output."""
    return {sum(data) / len(data): 1.0}


def narrow_mean_law(data: tuple[int, ...]) -> ProbabilityMap:
    """Steps of one thirtieth, around the sums from 0 to 100."""
    reach = 26 * _BELIEVED
    return {k / len(data): noise.probability(_BELIEVED, k - sum(data)) for k in range(-reach, reach + 101)}


def local_mean_law(data: tuple[int, ...]) -> ProbabilityMap:
    """One output where all scores are equal."""
    width, total = max(data) - min(data), sum(data)
    if not width:
        return no_noise_law(data)
    return {(total + k) / len(data): noise.probability(width, k) for k in noise.support_window(width)}


def rounded_law(data: int) -> ProbabilityMap:
    """The distribution of 0 or 5 with noise."""
    return noise.laplace_distribution(1.0, 5 * round(data / 5))


def cut_law(data: int) -> ProbabilityMap:
    """The tails are at the ends."""
    inside: ProbabilityMap = {data + k: noise.probability(1.0, k) for k in range(-_CUT + 1, _CUT)}
    return {**inside, data - _CUT: noise.survival(1.0, _CUT), data + _CUT: noise.survival(1.0, _CUT)}


_CONTINUOUS = Fraction("3.730632") ** 2
_SMALL = Fraction(4, 9)
BROKEN_SUMS = (
    broken_mechanism(
        "no-noise",
        "The mean score of thirty students, as it is.",
        math.inf,
        no_noise,
        (*[50] * 29, 90),
        (50,) * _STUDENTS,
        "51.33 is possible with the 90 only, and 50 without it only.",
        distribution=no_noise_law,
    ),
    broken_mechanism(
        "coin-claimed-as-one",
        "Randomized response with a fair coin, claimed to be 1.",
        math.log(3),
        flipped_coin,
        0,
        1,
        "The table is 3/4 and 1/4: epsilon is ln 3 = 1.0986.",
        distribution=coin_law,
    ),
    broken_mechanism(
        "scale-upside-down",
        "A histogram with noise of scale epsilon where 1/epsilon is needed.",
        2.0,
        count_with_scale(0.5),
        (5, 3),
        (5, 4),
        "Scale 1/2 on a count that moves by one costs 2, four times the claim.",
        claim=Claim.epsilon(0.5),
        distribution=repeated_law(0.5),
    ),
    broken_mechanism(
        "replace-as-add",
        "A histogram where one person is replaced, with the noise for one who is added.",
        2.0,
        count_with_scale(1.0),
        (5, 4),
        (4, 5),
        "One count falls and another rises: the factor is e twice.",
        distribution=repeated_law(1.0),
    ),
    broken_mechanism(
        "l2-for-laplace",
        "Two counts that both move, with Laplace noise for the L2 distance.",
        math.sqrt(2),
        count_with_scale(math.sqrt(2)),
        (5, 3),
        (6, 4),
        "The L1 distance is 2 and the scale is sqrt 2: epsilon is 2/sqrt 2.",
        distribution=repeated_law(math.sqrt(2)),
    ),
    broken_mechanism(
        "repeat-forgotten",
        "A count answered twice with fresh noise, charged once.",
        2.0,
        count_with_scale(1.0, times=2),
        0,
        1,
        "Two releases at 1 each.",
        distribution=repeated_law(1.0, times=2),
    ),
    broken_mechanism(
        "noise-reused",
        "Two counts with the same draw of noise.",
        math.inf,
        reused_noise,
        (5, 3),
        (5, 4),
        "The difference of the two answers has no noise: 2 on one side, 1 on the other.",
        distribution=same_noise_law,
    ),
    broken_mechanism(
        "noise-with-a-fixed-seed",
        "A count with noise from a generator that is seeded anew for each question.",
        math.inf,
        fixed_noise,
        0,
        1,
        "The noise is a constant, which anyone who has the program can take off.",
        distribution=lambda data: {data + int(noise.draw_laplace(1.0, 1, np.random.default_rng(7))[0]): 1.0},
    ),
    broken_mechanism(
        "noise-cut-off",
        "A count with noise that is cut off at 2.",
        math.inf,
        truncated_noise,
        0,
        1,
        "-2 is possible for 0 and not for 1. The noise may not be cut off; the answer may.",
        distribution=cut_law,
    ),
    broken_mechanism(
        "double-laplace",
        "A count with Laplace noise in doubles, by the textbook's inverse.",
        math.inf,
        double_laplace,
        0.0,
        1.0,
        "What is added to 1 is rounded to a multiple of 2^-53. Noise near 0 alone has finer digits: many doubles are "
        "possible for 0 and not for 1.",
    ),
    broken_mechanism(
        "narrow-mean",
        "The mean of thirty scores, with noise for scores up to 50 and no clamp.",
        2.0,
        unclamped_mean,
        (0,) * _STUDENTS,
        (*[0] * 29, 100),
        "A score of 100 moves the sum by 100, and the scale is 50.",
        distribution=narrow_mean_law,
    ),
    broken_mechanism(
        "local-sensitivity",
        "The mean of thirty scores, with noise for the range of the scores at hand.",
        math.inf,
        local_sensitivity_mean,
        (50,) * _STUDENTS,
        (*[50] * 29, 90),
        "Where all scores are equal there is no noise at all: the size of the noise tells.",
        distribution=local_mean_law,
    ),
    broken_mechanism(
        "rounded-before-noise",
        "A count rounded to fives, with noise for a count.",
        5.0,
        rounded_before_noise,
        2,
        3,
        "One person moves the rounded count by 5.",
        distribution=rounded_law,
    ),
    broken_mechanism(
        "discrete-as-continuous",
        "A count with discrete Gaussian noise of the deviation that real noise would need.",
        1.002622,
        releases.gaussian_count(_CONTINUOUS),
        0,
        1,
        "At 3.730632 the discrete distribution has delta(1) = 1.035e-5: too little above 1e-5 for samples to tell.",
        claim=Claim.epsilon(1, delta=1e-5),
        evidence="exact",
        distribution=releases.normal_law(_CONTINUOUS),
    ),
    broken_mechanism(
        "small-discrete-as-continuous",
        "A count with discrete Gaussian noise of deviation 2/3, with the loss of the continuous one: mu = 3/2.",
        1.676922,
        releases.gaussian_count(_SMALL),
        0,
        1,
        "On so coarse a grid the discrete distribution is far from the normal one.",
        claim=Claim.mu(1.5),
        distribution=releases.normal_law(_SMALL),
    ),
)
