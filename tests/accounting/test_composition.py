"""A composition loses at least what each part does, and what one event of one part shows; whatever the sizes are."""

from __future__ import annotations

import math
import random
from fractions import Fraction

import pytest
from mpmath import mp, mpf

from tacit.accounting import METHODS, delta, epsilon
from tacit.privacy.loss import (
    ApproximateDp,
    BoundedRange,
    Compose,
    ConcentratedDp,
    ContinuousGaussianNoise,
    ContinuousLaplaceNoise,
    GaussianNoise,
    LaplaceNoise,
    Loss,
    OneOf,
    Parallel,
    PureDp,
    Repeat,
    Sampled,
)
from tacit.privacy.unit import Neighbors

EPSILONS = [Fraction(0), Fraction(1, 10**9), Fraction(1, 10), Fraction(10), Fraction(10**6)]


def real(number: Fraction) -> mpf:
    return mpf(number.numerator) / number.denominator


def half_line(at: mpf, sigma: mpf) -> tuple[mpf, mpf, mpf]:
    """The half line that shows most of Gaussian noise: at least its probability, and at most that beside the other."""
    near, beyond = at * sigma - 1 / (2 * sigma), at * sigma + 1 / (2 * sigma)
    right = mp.erfc(near / mp.sqrt(2)) / 2 if abs(near) < 10**6 else mpf(near < 0) * (1 - mpf(10) ** -50)
    wrong = mp.erfc(beyond / mp.sqrt(2)) / 2 if beyond < 10**6 else mp.exp(-(beyond**2) / 2) / 2
    return right, wrong, mpf(0)


def one_event(loss: Loss, at: Fraction) -> tuple[mpf, mpf, mpf]:
    """The probabilities of an event for two neighbors, and of an outcome that the second never has."""
    zero = mpf(0)
    match loss:
        case PureDp(epsilon):  # randomized response: the true answer
            return 1 / (1 + mp.exp(-real(epsilon))), 1 / (1 + mp.exp(real(epsilon))), zero
        case BoundedRange(epsilon):  # the same, with two losses at this distance
            return one_event(PureDp(epsilon / 2), at)
        case ApproximateDp(epsilon, lost):
            right, wrong, _ = one_event(PureDp(epsilon), at)
            return (1 - real(lost)) * right, (1 - real(lost)) * wrong, real(lost)
        case LaplaceNoise(scale, moved):  # not below the value that has moved
            q = mp.exp(-1 / real(scale))
            return 1 / (1 + q), mp.exp(-moved / real(scale)) / (1 + q), zero
        case ContinuousLaplaceNoise(scale):
            return mpf("0.5"), mp.exp(-1 / real(scale)) / 2, zero
        case ContinuousGaussianNoise(sigma):
            return half_line(real(at), real(sigma))
        case ConcentratedDp(rho):  # Gaussian noise has it
            return half_line(real(at), 1 / mp.sqrt(2 * real(rho)))
        case GaussianNoise(variance, shift):  # 0 and more beside shift and more; the masses fall from 0 on
            v, near = real(variance), min(shift, math.isqrt(math.ceil(variance)))
            between = near * mp.exp(-(mpf(near) ** 2) / (2 * v)) / (mp.sqrt(2 * mp.pi * v) + 1)
            far = min(mp.exp(-(mpf(shift) ** 2) / (2 * v)), mpf("0.5") - between)  # P[Z >= s] <= e^(-s^2/(2 v))
            return max(mpf("0.5"), far + between), far, zero
    raise AssertionError(loss)


def shown(loss: Loss, at: Fraction) -> mpf:
    """A lower bound on delta of a loss, from one event."""
    growth = mp.exp(real(at))
    match loss:
        case Repeat(inner, times) if times:  # that it comes true the first time, and that it does every time
            right, wrong, lost = one_event(inner, at)
            return max(shown(inner, at), right**times - growth * wrong**times if not lost else mpf(0))
        case Parallel(parts) | OneOf(parts) | Compose(parts):
            return max(shown(part, at) for part in parts)
        case Sampled(inner, rate):  # a removal
            share = real(rate)
            right, wrong, lost = one_event(inner, Fraction(0))
            return share * lost + max(mpf(0), share * right - (growth - 1 + share) * wrong)
    right, wrong, lost = one_event(loss, at)
    return lost + max(mpf(0), right - growth * wrong)


def number(rng: random.Random, powers: int) -> Fraction:
    return Fraction(rng.randint(1, 99)) * Fraction(10) ** rng.randint(-powers, powers)


def random_leaf(rng: random.Random) -> Loss:
    size = number(rng, rng.choice([2, 10, 150]))
    whole = rng.choice([1, 2, 7, 10 ** rng.randint(1, 100)])
    share = Fraction(rng.randint(1, 9), 10 ** rng.choice([1, 5, 20, 150]))
    return rng.choice(
        [
            PureDp(size),
            BoundedRange(size),
            ApproximateDp(size, share),
            LaplaceNoise(size, whole),
            ContinuousLaplaceNoise(size),
            ContinuousGaussianNoise(size),
            ConcentratedDp(size),
            GaussianNoise(size**2, whole),
        ]
    )


def random_part(rng: random.Random) -> Loss:
    leaf = random_leaf(rng)
    shape = rng.randrange(8)
    if shape == 0:
        return Sampled(leaf, Fraction(rng.randint(1, 99), 10 ** rng.choice([2, 10, 150])))
    if shape == 1:
        return Repeat(leaf, rng.choice([2, 10, 10 ** rng.randint(1, 100)]))
    if shape == 2:
        return Parallel((leaf, random_leaf(rng)), rng.choice(list(Neighbors)))
    if shape == 3:
        return OneOf((leaf, random_leaf(rng)))
    return leaf


@pytest.mark.slow
def test_a_composition_of_any_sizes_loses_what_its_parts_do(full):
    rng = random.Random(17)
    for _ in range(1000 if full else 25):
        parts = tuple(random_part(rng) for _ in range(rng.randint(1, 3)))
        loss, at = Compose(parts), rng.choice(EPSILONS)
        with mp.workdps(60):
            least = max(shown(part, at) for part in parts) * (1 - mpf(10) ** -30)
            for by in METHODS if full else ("renyi", "pld"):
                claimed = delta(loss, at, by=by)
                assert claimed >= least, (loss, at, by)
                for part in parts:
                    alone = delta(part, at, by=by)
                    assert claimed >= alone * (1 - 1e-4), (loss, part, at, by)  # of which grids round up otherwise


@pytest.mark.slow
def test_at_an_epsilon_of_any_sizes_no_event_shows_more_than_delta(full):
    rng = random.Random(18)
    for _ in range(1000 if full else 25):
        loss = Compose(tuple(random_part(rng) for _ in range(rng.randint(1, 3))))
        goal = Fraction(1, 10 ** rng.choice([1, 6, 20, 300]))
        for by in METHODS:
            claimed = epsilon(loss, goal, by=by)
            with mp.workdps(60):
                assert claimed == math.inf or shown(loss, Fraction(claimed)) <= real(goal) * (1 + mpf(10) ** -30), by
