"""Specimens whose claim is wrong: choosing one of several, and watching for a threshold."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from tacit.audit.claim import Claim
from tacit.audit.zoo import noise, releases
from tacit.audit.zoo.known_mechanism import ProbabilityMap, broken_mechanism
from tacit.mechanisms.noisy_max import NoisyMax
from tacit.sampling import laplace

_WORST = NoisyMax.calibrated(epsilon=1, sensitivity=1, monotone=True)
_YESES = 2  # of the watch whose noise does not know of them
_Outputs = npt.NDArray[Any]


def noisy_max_with_value(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """The index of the largest noisy score, and that score."""
    noisy = np.array(data) + noise.draw_laplace(2.0, (size, len(data)), rng)
    return np.column_stack([np.argmax(noisy, axis=1), np.max(noisy, axis=1)])


def noisy_max_half_noise(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """The index of the largest noisy score, with noise for scores that all move one way."""
    drawn = laplace.draw_array(_WORST.scale, size * len(data), releases.replay_bits(rng)).reshape(size, -1)
    return np.asarray(np.argmax(np.array(data) + drawn, axis=1))


def keys_without_selection(data: dict[str, int], size: int, rng: np.random.Generator) -> list[str]:
    """The keys with a positive noisy count, of those that are in the data."""
    shown = np.array(list(data.values())) + noise.draw_laplace(1.0, (size, len(data)), rng) > 0
    names = list(data)
    texts = {row: ", ".join(name for name, kept in zip(names, row, strict=True) if kept) for row in _words(len(data))}
    return [texts[row] for row in map(tuple, shown.tolist())]


def sparse_vector_no_query_noise(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """Noise on the threshold only."""
    return np.array(data) >= noise.draw_laplace(2.0, (size, 1), rng)


def sparse_vector_no_stop(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """Noise on threshold and numbers, and no stop after a yes."""
    return np.array(data) + noise.draw_laplace(2.0, (size, len(data)), rng) >= noise.draw_laplace(2.0, (size, 1), rng)


def sparse_vector_unscaled(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """A stop after two times yes, and noise on the numbers for one. What is not said is -1."""
    said = np.array(data) + noise.draw_laplace(4 / 3, (size, len(data)), rng) >= noise.draw_laplace(4.0, (size, 1), rng)
    before: _Outputs = np.cumsum(said, axis=1) - said
    return np.where(before < _YESES, said.astype(np.int64), -1)


def sparse_vector_with_value(data: tuple[int, ...], size: int, rng: np.random.Generator) -> _Outputs:
    """The place of the first yes, and the noisy number that was compared. Without a yes, their number and 0."""
    noisy = np.array(data) + noise.draw_laplace(2.0, (size, len(data)), rng)
    above = noisy >= noise.draw_laplace(2.0, (size, 1), rng)
    place = np.argmax(np.column_stack([above, np.ones(size, dtype=bool)]), axis=1)
    shown = np.column_stack([noisy, np.zeros(size, dtype=np.int64)])[np.arange(size), place]
    return np.column_stack([place, shown])


def with_value_law(data: tuple[int, ...]) -> ProbabilityMap:
    """P(i, v): the noisy score of i is v, those before are below and those after not above."""
    return {
        (i, v): noise.probability(2.0, v - data[i])
        * math.prod(noise.cdf(2.0, v - score + (j > i)) for j, score in enumerate(data) if j != i)
        for i in range(len(data))
        for v in noise.support_window(2.0)
    }


def all_keys_law(data: dict[str, int]) -> ProbabilityMap:
    """Each key is shown if count + noise >= 1."""
    found: dict[Any, float] = {}
    chances = [noise.survival(1.0, 1 - count) for count in data.values()]
    for row in _words(len(data)):
        text = ", ".join(name for name, shown in zip(data, row, strict=True) if shown)
        share = math.prod(p if shown else 1 - p for p, shown in zip(chances, row, strict=True))
        found[text] = found.get(text, 0.0) + share
    return found


def silent_law(data: tuple[int, ...]) -> ProbabilityMap:
    """A sum over the threshold's noise."""
    found: dict[Any, float] = {}
    for y in noise.support_window(2.0):
        said = tuple(int(value >= y) for value in data)
        found[said] = found.get(said, 0.0) + noise.probability(2.0, y)
    return found


def endless_law(data: tuple[int, ...]) -> ProbabilityMap:
    """A sum over the threshold's noise, given which the words are independent."""
    return _enumerate_runs(data, threshold=2.0, scale=2.0, yeses=len(data) + 1)


def unscaled_law(data: tuple[int, ...]) -> ProbabilityMap:
    """The same, with a stop."""
    return _enumerate_runs(data, threshold=4.0, scale=4 / 3, yeses=_YESES)


def watched_value_law(data: tuple[int, ...]) -> ProbabilityMap:
    """A sum over the threshold's noise."""
    found: dict[Any, float] = {}
    for y in noise.support_window(2.0):
        so_far = noise.probability(2.0, y)
        for place, value in enumerate(data):
            for shown in range(y, noise.support_window(2.0).stop):
                key = (place, shown)
                found[key] = found.get(key, 0.0) + so_far * noise.probability(2.0, shown - value)
            so_far *= noise.cdf(2.0, y - value)
        found[len(data), 0] = found.get((len(data), 0), 0.0) + so_far
    return found


def _words(count: int) -> Iterator[tuple[bool, ...]]:
    return product((False, True), repeat=count)


def _enumerate_runs(data: tuple[int, ...], threshold: float, scale: float, yeses: int) -> ProbabilityMap:
    """All that a watch may say, where the threshold is 0."""
    found: dict[Any, float] = {}
    for y in noise.support_window(threshold):
        words: dict[tuple[int, ...], float] = {(): noise.probability(threshold, y)}
        for value in data:
            yes, no = noise.survival(scale, y - value), noise.cdf(scale, y - value)
            grown: dict[tuple[int, ...], float] = {}
            for said, so_far in words.items():
                if said.count(1) == yeses:
                    grown[*said, -1] = so_far
                else:
                    grown[*said, 1], grown[*said, 0] = so_far * yes, so_far * no
            words = grown
        for said, share in words.items():
            found[said] = found.get(said, 0.0) + share
    return found


BROKEN_SELECTIONS = (
    broken_mechanism(
        "noisy-max-with-its-value",
        "The largest of four counts, and its noisy value, for the epsilon of its index alone.",
        2.0,
        noisy_max_with_value,
        (0, 0, 0, 0),
        (1, 1, 1, 1),
        "That the largest is v says of all four that they are at most v: each changes by e^(1/2), below both counts by "
        "just that, and four of them make e^2.",
        distribution=with_value_law,
    ),
    broken_mechanism(
        "noisy-max-under-replace",
        "The largest of two counts where one person is replaced, with the noise for one who is added.",
        1.745308,
        noisy_max_half_noise,
        (6, 0),
        (5, 1),
        "One count falls and the other rises, so their difference moves by 2, at a scale of 1: 2 in the limit.",
        distribution=releases.selection_law(_WORST),
    ),
    broken_mechanism(
        "permute-and-flip-as-exponential",
        "One of two by permute-and-flip, charged like the exponential mechanism: rho = epsilon^2/8.",
        0.260473,
        releases.permute_and_flip,
        (2, 0),
        (1, 1),
        "The laws are (1/2, 1/2) and (1 - 1/(2e), 1/(2e)). D_a/a is 0.2551 at order 1 and 0.2605 at its largest: twice "
        "the claim of 1/8.",
        claim=Claim.rho(0.125),
        distribution=releases.selection_law(releases.FLIP),
    ),
    broken_mechanism(
        "keys-without-selection",
        "The keys with a positive noisy count, of those that are in the data.",
        math.inf,
        keys_without_selection,
        {"flu": 400, "measles": 1},
        {"flu": 400},
        "A key that one person brings is shown with that person only. It takes a threshold, and costs delta.",
        distribution=all_keys_law,
    ),
    broken_mechanism(
        "sparse-vector-without-query-noise",
        "Which numbers are above a threshold that alone has noise.",
        math.inf,
        sparse_vector_no_query_noise,
        (0, 1),
        (1, 0),
        "No and then yes needs the first to be the lower one.",
        distribution=silent_law,
    ),
    broken_mechanism(
        "sparse-vector-without-a-stop",
        "Which of four numbers are above a threshold, all with noise, and each yes for free.",
        1.547881,
        sparse_vector_no_stop,
        (0, 0, 1, 1),
        (1, 1, 0, 0),
        "No, no, yes, yes: the noise of the threshold covers for the no, and each yes adds to the loss.",
        distribution=endless_law,
    ),
    broken_mechanism(
        "sparse-vector-unscaled",
        "The first two of four numbers above a threshold, with the noise for one.",
        2.317093,
        sparse_vector_unscaled,
        (0, 0, 1, 1),
        (1, 1, 0, 0),
        "Each yes costs 3/2 where the difference moves by 2 at a scale of 4/3: up to (1 + 6 * 2)/4 = 3.25 in all.",
        distribution=unscaled_law,
    ),
    broken_mechanism(
        "sparse-vector-with-its-value",
        "The first of seven numbers above a threshold, and the noisy number that was compared.",
        3.5,
        sparse_vector_with_value,
        (*[0] * 6, 1),
        (*[1] * 6, 0),
        "A low number that was above the threshold says that the threshold is low, and so are the six below it: each "
        "of the seven changes by e^(1/2).",
        distribution=watched_value_law,
    ),
)
