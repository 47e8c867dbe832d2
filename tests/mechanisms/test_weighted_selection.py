"""Weighted partition selection: what a unit moves, the exact distribution of small inputs, and the keys really shown.

The distribution of the shown keys is written down here a second time, from the definition: weights by search, tails of
the noise by the normal distribution (on steps of 2^-20 that is within 1e-9), all sets of all rounds one by one. Every
statistical test bounds its false alarms by Hoeffding's relative-entropy bound at 1e-11; there are fewer than 20.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from fractions import Fraction
from itertools import chain, combinations, combinations_with_replacement, product

import numpy as np
import pytest
from scipy.special import ndtr, ndtri
from tests.support.counts import FULL, OFF, enough, some
from tests.support.statistics import strangeness

from tacit.accounting import delta as delta_at
from tacit.accounting import epsilon as epsilon_at
from tacit.accounting.filters import compute_charge, max_rho
from tacit.errors import ParameterError
from tacit.mechanisms.partition import PartitionSelection
from tacit.mechanisms.weighted_selection import WeightedGaussianSelection, add_weights
from tacit.privacy.key_weights import WHOLE, weigh_key
from tacit.privacy.loss import ApproximateDp, Compose, ConcentratedDp
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ALARM = 1e-11
KEYS = "abc"
Holdings = tuple[str, ...]  # the keys of one unit


def subsets(keys: Iterable[str]) -> list[Holdings]:
    held = sorted(keys)
    return list(chain.from_iterable(combinations(held, size) for size in range(len(held) + 1)))


def search_weight(keys: int) -> int:
    """The largest w with keys w^2 <= 2^40."""
    low, high = 0, WHOLE
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if keys * middle**2 <= WHOLE**2 else (low, middle - 1)
    return low


def weights_of(
    units: Iterable[Holdings], shown: Iterable[str], most: int, weigh: Callable[[int], int]
) -> dict[str, int]:
    found: dict[str, int] = {}
    for held in units:
        left = [key for key in held if key not in shown]
        kept = [key for p, key in enumerate(left, 1) if len(left) <= most or p * most % len(left) < most]
        for key in kept:
            found[key] = found.get(key, 0) + weigh(len(kept))
    return found


class Definition:
    """The mechanism's definition, with parts that a test may replace by wrong ones."""

    def __init__(self, selection: WeightedGaussianSelection) -> None:
        self.selection = selection
        places = range(1, selection.rounds + 1)
        self.deviations = [math.sqrt(selection.noise(place).variance) for place in places]
        self.thresholds = [selection.threshold(place) for place in places]
        self.weigh = search_weight
        self._kept: dict[tuple[Holdings, ...], dict[tuple[Holdings, ...], float]] = {}

    def distribution(self, units: tuple[Holdings, ...]) -> dict[tuple[Holdings, ...], float]:
        """The probability of each sequence of sets, one for each round."""
        if units not in self._kept:
            outcomes: dict[tuple[Holdings, ...], float] = {(): 1.0}
            for deviation, threshold in zip(self.deviations, self.thresholds, strict=True):
                outcomes = {
                    (*before, some): chance * part
                    for before, chance in outcomes.items()
                    for some, part in self.round(units, chain(*before), deviation, threshold).items()
                }
            self._kept[units] = outcomes
        return self._kept[units]

    def round(
        self, units: tuple[Holdings, ...], shown: Iterable[str], deviation: float, threshold: int
    ) -> dict[Holdings, float]:
        weights = weights_of(units, set(shown), self.selection.groups, self.weigh)
        often = {key: float(ndtr((weight + 0.5 - threshold) / deviation)) for key, weight in weights.items()}
        return {
            some: math.prod(often[key] if key in some else 1 - often[key] for key in often) for some in subsets(often)
        }

    def is_private(self, relation: Neighbors, others: int = 2) -> bool:
        """Whether what P exceeds e^epsilon Q by is at most delta, at several epsilons, for all small neighbors."""
        claims = [(e, delta_at(self.selection.loss(), e, by="zcdp")) for e in (0.1, 0.5, 1, 2, 3, 5, 8, 20)]
        for common in chain.from_iterable(
            combinations_with_replacement(subsets(KEYS)[1:], size) for size in range(others + 1)
        ):
            sides = [tuple(sorted((*common, unit))) for unit in subsets(KEYS)[1:]]
            pairs = [(tuple(sorted(common)), side) for side in sides]
            if relation is Neighbors.REPLACE:
                pairs += list(combinations(sides, 2))
            for pair in pairs:
                one, other = (self.distribution(side) for side in pair)
                outcomes = sorted({*one, *other})
                p, q = (np.array([law.get(outcome, 0.0) for outcome in outcomes]) for law in (one, other))
                for e, most in claims:
                    for x, y in ((p, q), (q, p)):
                        if np.maximum(x - math.exp(e) * y, 0).sum() > most + 1e-9:
                            return False
        return True


def small(
    relation: Neighbors, rounds: int, groups: int = 3, price: float = 2, delta: float = 0.4
) -> WeightedGaussianSelection:
    """A mechanism that shows keys of a few units: thresholds of one to three units."""
    return WeightedGaussianSelection.calibrated(price, delta, groups, relation, rounds)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("relation", "rounds", "groups", "price", "delta"),
    some([(*case, *cost) for *case, cost in product(Neighbors, [1, 2, 3], [3, 2], [(2, 0.4), (8, 0.05)])], 3),
)
def test_all_small_inputs_and_their_neighbors(relation, rounds, groups, price, delta):
    definition = Definition(small(relation, rounds, groups, price, delta))
    assert definition.is_private(relation, others=3 if FULL else 1 if rounds == 3 else 2)


def test_the_delta_of_keys_is_nearly_all_used():
    # At epsilon 20 the noise has no delta left: what is left is a key that only one unit holds. Alone with t keys it
    # shows one with probability 1 - (1 - p)^t in each round, and the largest of these is s_i delta: 0.2 in all.
    definition = Definition(small(Neighbors.ADD_REMOVE, 1))
    exact = max(
        sum(chance for outcome, chance in definition.distribution((held,)).items() if any(outcome))
        for held in subsets(KEYS)
    )
    assert 0.2 - 1e-6 < exact < 0.2 + 1e-9


@pytest.mark.parametrize("rounds", [1, 2])
def test_a_threshold_for_one_key_is_caught(rounds):
    selection = small(Neighbors.ADD_REMOVE, rounds)
    definition = Definition(selection)
    alone = WeightedGaussianSelection(selection.rho, selection.delta, 1, rounds=rounds)
    definition.thresholds = [alone.threshold(place) for place in range(1, rounds + 1)]
    assert not definition.is_private(Neighbors.ADD_REMOVE, others=0)


def test_weights_that_are_not_shared_are_caught():
    definition = Definition(small(Neighbors.ADD_REMOVE, 1, price=8, delta=0.05))
    definition.weigh = lambda keys: WHOLE
    assert not definition.is_private(Neighbors.ADD_REMOVE)


def test_too_little_noise_is_caught():
    definition = Definition(small(Neighbors.ADD_REMOVE, 2, price=8, delta=0.05))
    definition.deviations = [deviation / 2 for deviation in definition.deviations]
    assert not definition.is_private(Neighbors.ADD_REMOVE)


def test_the_noise_of_one_unit_does_not_protect_two():
    # One unit leaves "a" and another joins "b": a squared distance of 2^41, so a rho of 2^41 / (2 v).
    one, two = (small(relation, 1) for relation in Neighbors)
    sides = weights_of([("a",)], (), 3, search_weight), weights_of([("b",)], (), 3, search_weight)
    moved = sum((sides[0].get(key, 0) - sides[1].get(key, 0)) ** 2 for key in "ab")
    assert moved / (2 * two.noise(1).variance) <= two.rho == one.rho < moved / (2 * one.noise(1).variance)


def test_weights_are_the_largest_integers_within_the_norm():
    for keys in range(1, 3_000):
        weight = weigh_key(keys)
        assert keys * weight**2 <= WHOLE**2 < keys * (weight + 1) ** 2  # rounded up, the norm would be above one
        assert weight == search_weight(keys)


@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 2, 5, 100])
def test_what_one_unit_moves_by_brute_force(most):
    # In integers: squared L2 distances of at most 2^40, and 2^41 where a unit is replaced; twice that is never needed.
    rng = random.Random(most)
    largest = [0, 0]
    for _ in range(100 if FULL else 40):
        units = [tuple(sorted(rng.sample("abcdefghij", rng.randint(0, 10)))) for _ in range(rng.randint(1, 8))]
        other = tuple(sorted(rng.sample("abcdefghij", rng.randint(0, 10))))
        databases = [units, units[1:], [other, *units[1:]]]
        weights = [add_all(database, most) for database in databases]
        for database, found in zip(databases, weights, strict=True):
            assert found == weights_of(database, (), most, search_weight)
        for place, pair in enumerate(((0, 1), (0, 2))):
            one, two = (weights[side] for side in pair)
            moved = sum((one.get(key, 0) - two.get(key, 0)) ** 2 for key in {*one, *two})
            largest[place] = max(largest[place], moved)
    assert largest[0] <= WHOLE**2 and largest[1] <= 2 * WHOLE**2
    assert largest[0] > 0.99 * WHOLE**2 and largest[1] > 1.2 * WHOLE**2


def add_all(units: list[Holdings], most: int) -> dict[str, int]:
    names = "abcdefghij"
    who = np.array([place for place, held in enumerate(units) for _ in held], np.int64)
    codes = np.array([names.index(key) for held in units for key in held], np.int64)
    weights = add_weights(who, codes, len(names), most)
    return {name: int(weight) for name, weight in zip(names, weights, strict=True) if weight}


@pytest.mark.parametrize(("price", "delta", "groups"), [(0.1, 1e-5, 50), (1, 1e-9, 50), (30, 0.1, 50), (300, 1e-5, 20)])
def test_the_threshold_is_the_largest_over_all_numbers_of_keys(price, delta, groups):
    # The search halves ranges; here every t is gone through. Where there is much noise the largest is that of many
    # keys, with little noise that of one.
    selection = WeightedGaussianSelection.calibrated(price, delta, groups, rounds=1)
    deviation = math.sqrt(selection.noise(1).variance)
    needed = [
        search_weight(t) + 0.5 - deviation * ndtri(-math.expm1(math.log1p(-float(selection.delta)) / t))
        for t in range(1, groups + 1)
    ]
    assert max(needed) - 1e-6 * deviation <= selection.threshold(1) <= max(needed) + 2 + 1e-6 * deviation


def test_more_keys_need_a_higher_threshold_and_units_of_many_keys_count_less():
    thresholds = [WeightedGaussianSelection.calibrated(1, 1e-5, groups).threshold(2) for groups in (2, 30, 1000)]
    assert thresholds == sorted(set(thresholds))
    selection = WeightedGaussianSelection.calibrated(1, 1e-5)
    # 1/sqrt(100) is a tenth: ten times the units, up to rounding up
    assert selection.units(100) == pytest.approx(10 * selection.units(), abs=10)
    assert selection.units(10**6) == selection.units(1000)


def test_the_loss_is_what_was_paid_for():
    selection = WeightedGaussianSelection.calibrated(1, Fraction(1, 10**5))
    half = Fraction(1, 2 * 10**5)
    assert selection.loss() == Compose((ConcentratedDp(max_rho(Fraction(1), half)), ApproximateDp(Fraction(0), half)))
    assert 0.99 < epsilon_at(selection.loss(), 1e-5) <= 1
    charge = compute_charge(selection.loss(), half)
    assert charge.epsilon <= 10**12 and charge.delta_a == 10**13
    # the rounds' own rhos add up to no more: c G^2 / (2 v) each
    for relation, c in ((Neighbors.ADD_REMOVE, 1), (Neighbors.REPLACE, 2)):
        for rounds in (1, 2, 3):
            selection = WeightedGaussianSelection(Fraction(1, 7), half, 10, relation, rounds)
            spent = [c * WHOLE**2 / (2 * selection.noise(place).variance) for place in range(1, rounds + 1)]
            assert Fraction(1, 7) * (1 - Fraction(1, 10**9)) < sum(spent) <= Fraction(1, 7)
            assert spent == sorted(spent)


@pytest.mark.slow
def test_shown_as_often_as_the_definition_says():
    # Copies of one small input in one release: keys of copies are independent, and noise is drawn for each. A chance
    # that is off by a fifth (with a quarter of the copies by two fifths: 10,000 * 0.02^2 / 0.05 = 80) is rejected.
    selection = small(Neighbors.ADD_REMOVE, 2)
    units = (("a",), ("a", "b"), ("a", "b", "c"))
    law = Definition(selection).distribution(units)
    copies, off = enough(40_000), 2 * float(OFF)
    many = {
        (copy, place): [f"{copy:05d}{key}" for key in held]
        for copy in range(copies)
        for place, held in enumerate(units)
    }
    shown = selection.release(many, ReplayBits(b"definition"))
    assert shown == sorted(shown)
    for key in KEYS:
        chance = sum(p for outcome, p in law.items() if key in chain(*outcome))
        hits = sum(name.endswith(key) for name in shown)
        assert 0.05 < chance < 0.8
        assert strangeness(hits, copies, chance) > ALARM
        assert strangeness(hits, copies, min(chance * (1 + off), 0.999)) < ALARM
        assert strangeness(hits, copies, chance * (1 - off)) < ALARM
    # and both together: rounds are not independent
    both = sum(p for outcome, p in law.items() if {"b", "c"} <= {*chain(*outcome)})
    names = set(shown)
    hits = sum(f"{copy:05d}b" in names and f"{copy:05d}c" in names for copy in range(copies))
    assert strangeness(hits, copies, both) > ALARM


@pytest.mark.slow
def test_a_second_round_shows_what_the_first_leaves():
    # 2,000 units hold a well-known key and one of ten others: halved weights of 200 units, and whole ones in round two.
    units = {unit: ["known", f"other {unit % 10}"] for unit in range(2_000)}
    selection = WeightedGaussianSelection(Fraction(1, 1000), 1e-6, 2, rounds=2)
    seen: list[list[str]] = []

    def weigh(shown):
        seen.append(list(shown))
        return dict(sorted(weights_of([tuple(held) for held in units.values()], shown, 2, search_weight).items()))

    kept = selection.release_rounds(weigh, ReplayBits(b"rounds"))
    assert seen == [[], ["known"]]
    assert kept == ["known", *(f"other {place}" for place in range(10))]
    assert selection.release(units, ReplayBits(b"rounds")) == sorted(kept)
    # one key is enough: no second round
    assert selection.release_rounds(weigh, ReplayBits(b"rounds"), enough=1) == ["known"]
    assert seen == [[], ["known"], []]


def test_units_with_one_key_are_better_off_without_weights():
    # optimal per key where a unit holds one: 12 units against 20
    assert PartitionSelection(1, 1e-5).threshold() == 12
    assert WeightedGaussianSelection.calibrated(1, 1e-5, groups=1).units() == 20


def test_nothing_is_shown_of_nothing():
    selection = WeightedGaussianSelection.calibrated(1, 1e-5)
    assert selection.release({}, ReplayBits(b"")) == []
    assert selection.release({"ada": []}, ReplayBits(b"")) == []


@pytest.mark.parametrize("value", [0, -1, math.nan, math.inf, "1", True, None, 1j])
def test_bad_parameters(value):
    with pytest.raises(ParameterError, match="epsilon: "):
        WeightedGaussianSelection.calibrated(value, 1e-5)
    with pytest.raises(ParameterError, match="delta: "):
        WeightedGaussianSelection(1, value)
    with pytest.raises(ParameterError, match="groups: "):
        WeightedGaussianSelection(1, 1e-5, value)


@pytest.mark.slow
def test_parameters_beyond_their_ranges():
    for wrong in ({"groups": 10**7}, {"rounds": 4}, {"rounds": 0}):
        with pytest.raises(ParameterError):
            WeightedGaussianSelection(1, 1e-5, **wrong)
    with pytest.raises(ParameterError, match="place: "):
        WeightedGaussianSelection(1, 1e-5).threshold(3)
    with pytest.raises(ParameterError, match="units: needs a mapping"):
        WeightedGaussianSelection(1, 1e-5).release([["flu"]])
    with pytest.raises(ParameterError, match="weights: "):
        WeightedGaussianSelection(1, 1e-5).release_rounds(lambda shown: {"flu": 0})
    # so small an epsilon that no grain of rho is left for it
    with pytest.raises(ParameterError, match="rho: "):
        WeightedGaussianSelection.calibrated(1e-9, 1e-99)
