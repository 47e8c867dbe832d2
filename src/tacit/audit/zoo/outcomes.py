"""Specimens that write into their input, and specimens that show what is not a number: NaN, None, an exception."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.audit.zoo import noise, releases
from tacit.audit.zoo.known_mechanism import EPSILON_ONE, KnownMechanism, SamplingFunction, broken_mechanism
from tacit.sampling import laplace

_FEW = 5


def in_place(scale: Fraction) -> SamplingFunction:
    """A count in an array, with noise added in place: the array holds the last answer afterwards."""

    def release(data: npt.NDArray[np.int64], size: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        answers: npt.NDArray[np.int64] = data[0] + laplace.draw_array(scale, size, releases.replay_bits(rng))
        data[0] = answers[-1]
        return answers

    return release


def nan_below_zero(data: int, size: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """A count with noise, shown as NaN where that is below zero."""
    noisy = data + laplace.draw_array(Fraction(1), size, releases.replay_bits(rng))
    return np.where(noisy < 0, np.nan, noisy)


def noisy_mean(data: list[int], size: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """A noisy sum over the true count: NaN or infinite where there is nobody."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return (sum(data) + noise.draw_laplace(1.0, size, rng)) / np.float64(len(data))


def none_of_few(data: int, size: int, rng: np.random.Generator) -> list[Any]:
    """A count with noise, withheld where the true count is small."""
    noisy = (data + noise.draw_laplace(1.0, size, rng)).tolist()
    return noisy if data >= _FEW else [None] * size


def raises_on_none(data: list[int], size: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    """The largest of all values with noise; of none there is no largest."""
    return max(data) + noise.draw_laplace(1.0, size, rng)


SOUND_OUTCOMES = (
    KnownMechanism(
        name="in-place",
        says="A count in an array, with discrete Laplace noise of scale 1 that is added in place.",
        claim=EPSILON_ONE,
        true=1.0,
        sound=True,
        mechanism=in_place(Fraction(1)),
        one=np.array([0]),
        other=np.array([1]),
        why="It is the count with noise of scale 1; what it leaves in its input is the answer, which is public.",
    ),
    KnownMechanism(
        name="nan-below-zero",
        says="A count with discrete Laplace noise of scale 1, shown as NaN where it is below zero.",
        claim=EPSILON_ONE,
        true=1.0,
        sound=True,
        mechanism=nan_below_zero,
        one=0,
        other=1,
        why="What is shown is computed from the noisy count alone.",
    ),
)
OUTCOMES = (
    broken_mechanism(
        "in-place-half-noise",
        "A count in an array, with half the noise that is needed, added in place.",
        2.0,
        in_place(Fraction(1, 2)),
        np.array([0]),
        np.array([1]),
        "Scale 1/2 on a count that moves by one costs 2, wherever the answer is written to.",
    ),
    broken_mechanism(
        "nan-of-nobody",
        "A noisy sum over the true number of people.",
        math.inf,
        noisy_mean,
        [],
        [0],
        "Over nobody it is NaN or infinite, which it is never over one person.",
    ),
    broken_mechanism(
        "none-of-few",
        "A count with noise, shown as None where the true count is below 5.",
        math.inf,
        none_of_few,
        _FEW,
        _FEW - 1,
        "None is shown for 4 always and for 5 never.",
    ),
    broken_mechanism(
        "raises-on-nobody",
        "The largest value with noise, which raises an exception where there is none.",
        math.inf,
        raises_on_none,
        [],
        [0],
        "The exception tells that there is nobody.",
    ),
)
