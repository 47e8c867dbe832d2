"""How close a privately chosen clip comes to the best one in hindsight, over many shapes of data.

    python benchmarks/clipping.py [--held-out] [--bars | --within]

Each set of rows is a distribution of rows over units, a number of units, a number of groups, and a way in which the
rows of a unit lie among the groups. The error is the mean over groups of the expected distance from the true counts,
with the clip that a release chose, its epsilon for choosing included; beside it stands the best clip in hindsight, of
Laplace noise on the L1 norm or of Gaussian noise on the L2 norm, with all of epsilon. `--held-out` has distributions
that were not looked at when the rule of choice was made.

`--bars` says how often the intervals of answers hold the true counts, and how wide they are beside those of the noise
alone: from the released value less the half-width of the noise to the value with what is missing of it and twice the
half-width. Beside it stand intervals that know all that was cut off, and not in which groups.

`--within` is of questions that ask for an accuracy: how much of a group the clip loses beside the noise that was asked
for, and what both steps cost beside the smallest clip that loses no more than that noise, with nothing spent on its
choice. The choice has the epsilon that would go with a clip of 1, 4 or 8 rows.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.random import Generator

from tacit.accounting.filters import max_rho
from tacit.mechanisms import ClippedSum
from tacit.mechanisms.clip_for_noise import EXPECTED_ROWS, ClipForNoise, epsilon_for_choice
from tacit.privacy.contribution_profile import BITS, ContributionProfile
from tacit.sampling.bits import ReplayBits

EPSILONS = (0.3, 1, 3)
DELTAS = (0, 1e-9)
GROUPS = (1, 3, 6, 32, 100, 320, 1000)
UNITS = (300, 5_000, 30_000)
RELEASES = 10
NOISES = (3, 10, 30, 100)  # scales of the noise that is asked for, in rows
VALUES = 200  # at least so many intervals are looked at in a setting, because a twentieth may miss
HEAVY = ("pareto 1.2", "pareto 1.6", "pareto 2.5", "normal 1", "normal 2", "one tenth", "scrapers")
KNOWN = ("one", "uniform", "events", "geometric", *HEAVY)
HELD_OUT = ("pareto 1.35", "normal 1.5", "two kinds", "zipf", "a hundredth in ten")
SPREADS = ("zipf", "home", "even")
BANDS = ((1, 3), (4, 31), (32, 319), (320, 10**6))


class Rows(NamedTuple):
    """Whose each row is, and in which group."""

    unit: np.ndarray
    group: np.ndarray


def sizes(kind: str, units: int, draw: Generator) -> np.ndarray:
    """How many rows each unit has."""
    name, _, number = kind.rpartition(" ")
    match name or kind:
        case "one":
            found = np.ones(units, dtype=int)
            if kind == "one tenth":
                found = draw.integers(1, 11, units)
                found[0] = found.sum() // 9
            return found
        case "uniform":
            return draw.integers(1, 11, units)
        case "events":
            return np.bincount((units * draw.random(10 * units) ** 2).astype(int), minlength=units)
        case "geometric":
            return draw.geometric(0.1, units)
        case "pareto":
            return np.minimum((1 - draw.random(units)) ** (-1 / float(number)), 10**6).astype(int)
        case "normal":
            return np.minimum(np.ceil(np.exp(float(number) * draw.standard_normal(units))), 10**6).astype(int)
        case "scrapers":
            found = draw.geometric(0.2, units)
            found[:5] = draw.integers(2_000, 5_000, 5)
            return found
        case "two":  # kinds
            return np.where(draw.random(units) < 0.02, draw.integers(100, 300, units), draw.integers(1, 4, units))
        case "zipf":
            return np.minimum(draw.zipf(2.0, units), 10**5)
        case _:  # a hundredth of the rows in ten units
            found = draw.integers(1, 21, units)
            found[:10] = found.sum() // 1_000
            return found


def rows(kind: str, units: int, groups: int, spread: str) -> Rows:
    """The rows of a set, the same on every machine."""
    draw = np.random.default_rng([zlib.crc32(kind.encode()), units, groups])
    many = sizes(kind, units, draw)
    unit = np.repeat(np.arange(units), many)
    if spread == "zipf":
        weights = np.cumsum(1 / np.arange(1, groups + 1))
        group = np.minimum(np.searchsorted(weights / weights[-1], draw.random(len(unit))), groups - 1)
    elif spread == "home":
        home, away = draw.integers(0, groups, units)[unit], draw.integers(0, groups, len(unit))
        group = np.where(draw.random(len(unit)) < 0.8, home, away)
    else:
        group = draw.integers(0, groups, len(unit))
    return Rows(unit, group)


def error(profile: ContributionProfile, truth: np.ndarray, place: int, norm: int, noise: float) -> float:
    """The mean of E|bias + noise| over the groups: Laplace of a scale, or Gaussian of a standard deviation."""
    kept = np.array(profile.clip(place, norm), dtype=np.float64) / 2**BITS
    bias = truth - kept
    if norm == 1:
        return float(np.mean(bias + noise * np.exp(-bias / noise)))
    tails = np.array([math.erf(b / noise / math.sqrt(2)) for b in bias])
    return float(np.mean(noise * math.sqrt(2 / math.pi) * np.exp(-((bias / noise) ** 2) / 2) + bias * tails))


class Setting(NamedTuple):
    """A set of rows, the true counts, and the profile that releases are made from."""

    kind: str
    units: int
    groups: int
    spread: str
    delta: float
    truth: np.ndarray
    profile: ContributionProfile


def settings(kinds: tuple[str, ...], deltas: tuple[float, ...]) -> Iterator[Setting]:
    """All sets of rows, the ways of lying among the groups in turn."""
    for number, (kind, units, groups) in enumerate(product(kinds, UNITS, GROUPS)):
        spread = SPREADS[number % len(SPREADS)]
        unit, group = rows(kind, units, groups, spread)
        truth = np.bincount(group, minlength=groups).astype(np.float64)
        for delta in deltas:
            profile = ClippedSum(1, delta, groups).profile(unit, group, np.ones(len(unit), dtype=int))
            yield Setting(kind, units, groups, spread, delta, truth, profile)


def ratios(kinds: tuple[str, ...]) -> Iterator[tuple[str, int, int, str, float, float, float]]:
    """Each setting with the ratio of the mean error of some releases to the best in hindsight."""
    for kind, units, groups, spread, delta, truth, profile in settings(kinds, DELTAS):
        most = min(len(profile.clips), 1 + max(profile.sums[1]))
        for epsilon in EPSILONS:
            rule = ClippedSum(epsilon, delta, groups)
            best = hindsight(profile, truth, epsilon, delta, most)
            found = [chosen_error(rule, profile, truth, seed) for seed in range(RELEASES)]
            yield kind, units, groups, spread, epsilon, delta, float(np.mean(found)) / best


def chosen_error(rule: ClippedSum, profile: ContributionProfile, truth: np.ndarray, seed: int) -> float:
    """The expected error with the clip of one release."""
    made = rule.release_profile(profile, ReplayBits(f"{seed}".encode()))
    noise = made.noise.scale if made.norm == 1 else math.sqrt(made.noise.variance)
    return error(profile, truth, profile.clips.index(made.clip), made.norm, float(noise) / 2**BITS)


def hindsight(profile: ContributionProfile, truth: np.ndarray, epsilon: float, delta: float, most: int) -> float:
    """The least expected error of any clip, with all of epsilon for the noise."""
    found = [error(profile, truth, p, 1, profile.clips[p] / epsilon) for p in range(most)]
    if delta:
        deviation = 1 / math.sqrt(2 * float(all_for_noise(epsilon, delta)))
        found += [error(profile, truth, p, 2, profile.clips[p] * deviation) for p in range(most)]
    return min(found)


def bars(kinds: tuple[str, ...]) -> Iterator[tuple[str, int, int, str, float, float, float, float]]:
    """Each setting with the share of intervals that hold the truth, and their width beside that of the noise alone.

    Last is the share of those that know all that was cut off.
    """
    for kind, units, groups, spread, delta, truth, profile in settings(kinds, (0,)):
        for epsilon in EPSILONS:
            rule = ClippedSum(epsilon, delta, groups)
            seeds = range(max(RELEASES, VALUES // groups))
            found = [one_bar(rule, profile, truth, seed) for seed in seeds]
            yield kind, units, groups, spread, epsilon, *np.mean(found, axis=0).tolist()


def one_bar(rule: ClippedSum, profile: ContributionProfile, truth: np.ndarray, seed: int) -> tuple[float, float, float]:
    """The share of groups whose interval holds the truth in one release, the median of their widths, and the share
    with all that was cut off known."""
    made = rule.release_profile(profile, ReplayBits(f"{seed}".encode()))
    values, width = np.array(made.values), made.error(Fraction(95, 100))
    kept = np.array(profile.clip(profile.clips.index(made.clip), made.norm), dtype=np.float64) / 2**BITS
    shares = min(0.9, made.missing_share), 1 - kept.sum() / max(1.0, truth.sum())
    more, known = (np.maximum(values, 0) * missing / (1 - missing) + width for missing in shares)
    held, best = (np.mean((values - width <= truth) & (truth <= values + width + up)) for up in (more, known))
    return float(held), float(np.median(1 + more / (2 * width))), float(best)


def tell_bars(kinds: tuple[str, ...]) -> None:
    """Print a table by numbers of groups, and the shapes that are held too seldom."""
    found = list(bars(kinds))
    print(
        f"{len(found)} settings, {RELEASES} releases each or more\n\n"
        "| groups | settings | held in 93 of 100 | median width | held with all that is cut off known |"
    )
    print("|---|---|---|---|---|")
    for low, high in (*BANDS, (1, 10**6)):
        these = [each for each in found if low <= each[2] <= high]
        named = "all" if (low, high) == (1, 10**6) else f"{low} to {high}" if high < 10**6 else f"{low} and more"
        often, wide = np.mean([each[5] >= 0.93 for each in these]), np.median([each[6] for each in these])
        known = np.mean([each[7] >= 0.93 for each in these])
        print(f"| {named} | {len(these)} | {often:.0%} | {wide:.2f} | {known:.0%} |")
    print("\nSettings below, of each shape:\n")
    for kind in kinds:
        these = [each for each in found if each[0] == kind]
        print(f"- {kind}: {sum(each[5] < 0.93 for each in these)} of {len(these)}")


class Aimed(NamedTuple):
    """A choice of a clip for noise: what a group loses in units of that noise, and the cost beside hindsight."""

    groups: int
    lost: float
    cost: float


def aim(kinds: tuple[str, ...], expected: int) -> Iterator[Aimed]:
    """Choices for several sizes of noise, where groups hold three times the noise and hindsight needs no epsilon
    above 5; the epsilon of a choice is that of a clip of so many `expected` rows."""
    for _, _, groups, _, _, truth, profile in settings(kinds, (0,)):
        most = min(len(profile.clips), 1 + max(profile.sums[1]))
        lost = [float(np.mean(truth - np.array(profile.clip(p, 1), dtype=np.float64) / 2**BITS)) for p in range(most)]
        for noise in NOISES:
            best = profile.clips[next(place for place, loss in enumerate(lost) if loss <= noise)] / noise
            if best > 5 or truth.mean() < 3 * noise:
                continue
            epsilon = epsilon_for_choice(Fraction(1, noise), groups) * expected / EXPECTED_ROWS
            rule = ClipForNoise(epsilon, Fraction(noise), groups)
            for seed in range(RELEASES):
                place = rule.release(profile, ReplayBits(f"{seed}".encode())).place
                cost = float(epsilon) + profile.clips[place] / noise
                yield Aimed(groups, lost[min(place, most - 1)] / noise, cost / best)


def tell_within(kinds: tuple[str, ...]) -> None:
    """Print a table by numbers of groups and by the rows that a choice expects."""
    print("| groups | choice for | choices | loses the noise or less | 3 times | 10 times | cost, mean | 9 of 10 |")
    print("|---|---|---|---|---|---|---|---|")
    found = {expected: list(aim(kinds, expected)) for expected in (1, 4, 8)}
    for low, high in BANDS:
        named = f"{low} to {high}" if high < 10**6 else f"{low} and more"
        for expected, each in found.items():
            these = [one for one in each if low <= one.groups <= high]
            often = [np.mean([one.lost <= limit for one in these]) for limit in (1.05, 3, 10)]
            costs = [one.cost for one in these]
            print(
                f"| {named} | {expected} row{'s' if expected > 1 else ''} | {len(these)} | {often[0]:.0%} | "
                f"{often[1]:.0%} | {often[2]:.0%} | {math.exp(np.mean(np.log(costs))):.2f} | "
                f"{np.quantile(costs, 0.9):.2f} |"
            )


def all_for_noise(epsilon: float, delta: float) -> float:
    """The rho of Gaussian noise with all of epsilon."""
    return float(max_rho(Fraction(str(epsilon)), Fraction(str(delta))))


def main() -> None:
    """Print a table by numbers of groups, and the worst settings."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--held-out", action="store_true")
    options.add_argument("--bars", action="store_true")
    options.add_argument("--within", action="store_true")
    given = options.parse_args()
    kinds = HELD_OUT if given.held_out else KNOWN
    if given.bars:
        tell_bars(kinds)
        return
    if given.within:
        tell_within(kinds)
        return
    found = list(ratios(kinds))
    print(f"{len(found)} settings, {RELEASES} releases each\n\n| groups | delta | settings | mean | 9 of 10 | worst |")
    print("|---|---|---|---|---|---|")
    for low, high in BANDS:
        for delta in DELTAS:
            these = [each[-1] for each in found if low <= each[2] <= high and each[5] == delta]
            mean = math.exp(np.mean(np.log(these)))
            named = f"{low} to {high}" if high < 10**6 else f"{low} and more"
            print(
                f"| {named} | {delta} | {len(these)} | {mean:.2f} | {np.quantile(these, 0.9):.2f} | {max(these):.2f} |"
            )
    print("\nThe worst:\n")
    for each in sorted(found, key=lambda each: -each[-1])[:8]:
        print(f"- {each[-1]:.2f}: {each[0]}, {each[1]:,} units, {each[2]} groups ({each[3]}), epsilon {each[4]}")


if __name__ == "__main__":
    main()
