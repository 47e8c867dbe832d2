"""A threshold on a released count: the least safe one, the guarantee from the exact law, and the keys really shown.

Every statistical test bounds its false alarms by Hoeffding's relative-entropy bound at 1e-11; there are fewer than 20.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import some
from tests.support.statistics import strangeness

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.partition import PartitionSelection, split_delta_interval
from tacit.mechanisms.threshold import Threshold
from tacit.privacy.loss import ApproximateDp, Compose, LaplaceNoise
from tacit.sampling.bits import ReplayBits

ALARM = 1e-11


def at_least(scale: Fraction, m: int) -> arb:
    """P(noise >= m) at the working precision."""
    q = (-1 / to_interval(scale)).exp()
    return q**m / (1 + q) if m >= 0 else 1 - q ** (1 - m) / (1 + q)


@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(1), Fraction(10), Fraction(10**6), Fraction(10**20)], ids=str
)
@pytest.mark.parametrize("delta", [Fraction(1, 3), Fraction(1, 10**5), Fraction(1, 10**30)], ids=str)
@pytest.mark.parametrize(("groups", "rows"), [(1, 1), (4, 3), (1_000, 1)])
def test_the_threshold_is_the_least_safe_one(scale, delta, groups, rows):
    threshold = Threshold(scale, delta, groups, rows)
    t = threshold.least()
    with working_precision(400):
        d = split_delta_interval(delta, groups)
        assert at_least(scale, t - rows) <= d
        assert at_least(scale, t - rows - 1) > d
        assert threshold.law(rows) <= d  # a lone unit
        assert threshold.law(t) > 0.5 > threshold.law(t - 1) or t - 1 < rows


def test_the_formula():
    # b = 10, d = 1e-5: 10 ln(1/(1.904837 * 1e-5)) = 108.69, so t = 1 + 109
    assert Threshold(Fraction(10), 1e-5).least() == 110
    assert math.ceil(10 * math.log(1 / ((1 + math.exp(-0.1)) * 1e-5))) == 109
    # k = 4, r = 3, eps = 1: b = 12, d_k = 2.5e-6 or so: 12 ln(1/(1.92004 * 2.5e-6)) = 146.97, so t = 3 + 147
    threshold = Threshold.calibrated(epsilon=1, delta=1e-5, groups=4, rows=3)
    assert (threshold.scale, threshold.least(), threshold.units()) == (12, 150, 50)


def outputs(threshold: Threshold, counts: dict[str, int], keys: str, reach: int) -> dict[tuple[int | None, ...], arb]:
    """The exact law of a release: for each key a shown value up to t + reach, None where it is not shown."""
    t = threshold.least()
    laws = []
    for key in keys:
        law = {None: arb(1)}
        if key in counts:
            law = {None: 1 - at_least(threshold.scale, t - counts[key])}
            for value in range(t, t + reach):
                law[value] = at_least(threshold.scale, value - counts[key]) - at_least(
                    threshold.scale, value + 1 - counts[key]
                )
        laws.append(law)
    found = {}
    for place in product(*laws):
        chance = arb(1)
        for law, at in zip(laws, place, strict=True):
            chance *= law[at]
        found[place] = chance
    return found


NEIGHBORS = [
    ({"a": 1, "b": 1}, {}, 2),  # alone in two keys
    ({"a": 1, "b": 5}, {"b": 4}, 2),  # alone in one, with others in the other
    ({"a": 3, "b": 5}, {"a": 2, "b": 4}, 2),
    ({"a": 1}, {"b": 1}, 2),  # replaced by one who is alone elsewhere
    ({"a": 1, "b": 4}, {"a": 2, "b": 3}, 2),
]


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "neighbors"), some(product([Fraction(1), Fraction(3)], NEIGHBORS), 2))
def test_the_guarantee_from_the_exact_law(scale, neighbors):
    one, other, moves = neighbors
    # Sum over all outputs of what P exceeds e^eps Q by. Beyond t + reach lies e^-60 or less of either law.
    threshold = Threshold(scale, Fraction(1, 50), groups=2)
    with working_precision(200):
        bound = to_interval(moves / scale).exp()
        left = outputs(threshold, one, "ab", 61 * int(scale))
        right = outputs(threshold, other, "ab", 61 * int(scale))
        for p, q in ((left, right), (right, left)):
            excess = sum((max(arb(0), p[at] - bound * q.get(at, arb(0))) for at in p), arb(0))
            assert excess <= to_interval(threshold.delta)


def test_a_lower_threshold_would_not_do():
    # One less, and the lone unit of two keys shows with more than delta.
    threshold = Threshold(Fraction(3), Fraction(1, 50), groups=2)
    with working_precision(200):
        lone = at_least(threshold.scale, threshold.least() - 2)
        assert 1 - (1 - lone) ** 2 > to_interval(threshold.delta)


def test_loss():
    assert Threshold(Fraction(10), 1e-5).loss(2) == Compose(
        (LaplaceNoise(Fraction(10), 2), ApproximateDp(Fraction(0), Fraction(1, 10**5)))
    )


def test_which_shows_a_key_with_fewer_units():
    # For the same price the selection alone is lower: 86 units against 110 at epsilon 0.1, 12 against 13 at 1, and from
    # about 2 on they are equal (7 and 7 at delta 1e-5), where the threshold, which shows the count too, is taken.
    def pair(epsilon, groups=1, rows=1):
        return PartitionSelection(epsilon, 1e-5, groups), Threshold.calibrated(epsilon, 1e-5, groups, rows)

    found = {e: (one.threshold(), other.units()) for e in (0.1, 1, 2, 4) for one, other in [pair(e)]}
    assert found == {0.1: (86, 110), 1: (12, 13), 2: (7, 7), 4: (4, 4)}
    # Where the selection may take only half the price, the other half being the count's, the count's own threshold
    # wins: 21 units at epsilon 1/2 and 13 at epsilon 1.
    assert (pair(0.5)[0].threshold(), pair(1)[1].units()) == (21, 13)


@pytest.mark.slow
@pytest.mark.parametrize("below", [0, 2, 5])
def test_keys_are_shown_as_often_as_the_law_says(below):
    threshold = Threshold(Fraction(4), 1e-4)
    rows, count = threshold.least() - below, 60_000
    chance = float(threshold.law(rows))
    shown = threshold.release(dict.fromkeys(range(count), rows), ReplayBits(f"show {below}".encode()))
    assert min(shown.values()) == threshold.least()
    assert strangeness(len(shown), count, chance) > ALARM
    assert strangeness(len(shown), count, chance * 1.1) < ALARM
    assert strangeness(len(shown), count, chance * 0.9) < ALARM


def test_large_counts_lose_nothing():
    # noise of scale 1/100 is 0 but for e^-100
    shown = Threshold(Fraction(1, 100), 1e-5).release({"a": 2**70 + 1, "b": 1}, ReplayBits(b"large"))
    assert shown == {"a": 2**70 + 1}


def test_error():
    # Scale 10 at 95 %: 30, as for every count with that noise
    assert Threshold(Fraction(10), 1e-5).error(0.95) == 30


NUMBERS = [0, -1, math.nan, math.inf, -math.inf, "1", True, None, 1j]


@settings(deadline=None)
@given(st.sampled_from(NUMBERS))
def test_bad_numbers(value):
    with pytest.raises(ParameterError, match="scale: "):
        Threshold(value, 1e-5)
    with pytest.raises(ParameterError, match="delta: "):
        Threshold(Fraction(1), value)
    with pytest.raises(ParameterError, match="epsilon: "):
        Threshold.calibrated(value, 1e-5)
    with pytest.raises(ParameterError, match="groups: "):
        Threshold(Fraction(1), 1e-5, value)
    with pytest.raises(ParameterError, match="rows: "):
        Threshold(Fraction(1), 1e-5, 1, value)
    with pytest.raises(ParameterError, match="counts: "):
        Threshold(Fraction(1), 1e-5).release({"a": value}, ReplayBits(b""))
    with pytest.raises(ParameterError, match="confidence: "):
        Threshold(Fraction(1), 1e-5).error(value)
