"""Exponential weights, exactly.

Some twenty tests of fit, each with a false alarm of 1e-11: less than 1e-9 together. Each also rejects a factor that is
off by a tenth.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from tacit.arithmetic import ball, precision
from tacit.errors import ParameterError
from tacit.sampling import choice
from tacit.sampling.bits import ReplayBits, SystemBits
from tacit.sampling.choice import choices, choose

ALARM = 1e-11
ONES = 2**64 - 1
LAWS = {
    "two": ([0, 1], Fraction(1)),
    "few": ([3, 0, 1, 3], Fraction(1, 2)),
    "negative factor": ([3, 0, 1, 7], Fraction(-1, 3)),
    "many": (list(range(1000)), Fraction(1, 100)),
    "array": (np.arange(-500, 500), Fraction(1, 100)),
    "uneven": ([-(10**6), 0, -1, -2, -800, -20, 0, -(10**18)], Fraction(1)),
    # Doubles hold neither these scores nor their differences.
    "beyond 2^53": ([2**53, 2**53 + 1, 2**53 + 2], Fraction(1)),
    "beyond 2^80": ([2**80, 2**80 + 1, 2**80 - 3, -(2**100)], Fraction(2, 3)),
    "wide gaps": ([0, 2**60 + 1, 2**61], Fraction(1, 2**60)),
}


@pytest.fixture
def certified(monkeypatch) -> list[int]:
    """The choices that took the certified path, as they are made."""
    taken: list[int] = []
    real = choice._certified

    def counting(gaps, factor, word, bits):
        taken.append(word)
        return real(gaps, factor, word, bits)

    monkeypatch.setattr(choice, "_certified", counting)
    return taken


def weights(scores, factor: Fraction) -> list[float]:
    best = max(factor * int(score) for score in scores)
    raw = [math.exp(max(-1000, factor * int(score) - best)) for score in scores]
    return [weight / sum(raw) for weight in raw]


@pytest.fixture(scope="module")
def p_value(chi_square):
    def fit(drawn, scores, factor: Fraction, bins=None) -> float:
        """Neighbors share a bin until it holds half a percent by the law of the bins."""
        counts = np.bincount(drawn, minlength=len(scores))
        law, observed, expected, room = weights(scores, factor), [0.0], [0.0], 0.0
        for share, sizing, count in zip(law, bins or law, counts.tolist(), strict=True):
            if room >= 0.005:
                observed.append(0.0)
                expected.append(0.0)
                room = 0.0
            observed[-1] += count
            expected[-1] += share * len(drawn)
            room += sizing
        if room < 0.005:
            observed[-2:], expected[-2:] = [sum(observed[-2:])], [sum(expected[-2:])]
        return chi_square(observed, expected)

    return fit


@pytest.mark.parametrize("law", LAWS)
def test_many_at_a_time(p_value, law, full):
    scores, factor = LAWS[law]
    drawn = choices(scores, factor, 1_000_000 if full else 200_000, ReplayBits(law.encode()))
    assert p_value(drawn, scores, factor) > ALARM
    for off in (Fraction(11, 10), Fraction(9, 10)):
        assert p_value(drawn, scores, factor * off, weights(scores, factor)) < ALARM


@pytest.mark.parametrize("law", ["few", "uneven", "beyond 2^80"])
def test_one_at_a_time(p_value, law):
    # The same words give the same choices.
    scores, factor = LAWS[law]
    bits = ReplayBits(b"one")
    drawn = [choose(scores, factor, bits) for _ in range(10_000)]
    assert drawn == choices(scores, factor, 10_000, ReplayBits(b"one")).tolist()
    assert p_value(drawn, scores, factor) > ALARM


@pytest.mark.parametrize(("scores", "factor"), [([7] * 6, Fraction(3)), ([1, 2, 3, 4, 5, 6], Fraction(0))])
def test_equal_scores(chi_square, scores, factor):
    # Each a sixth: 10,000. A tenth more often, 11,000, is wrong by 1000^2 / 11,000 + 1000^2 / 49,000 = 111.
    counts = np.bincount(choices(scores, factor, 60_000, ReplayBits(b"equal")), minlength=6).tolist()
    assert chi_square(counts, [10_000] * 6) > ALARM
    assert chi_square([counts[0], 60_000 - counts[0]], [11_000, 49_000]) < ALARM


@pytest.mark.parametrize("law", ["few", "negative factor", "uneven", "beyond 2^80", "wide gaps"])
def test_a_cruder_machine_chooses_the_same(p_value, certified, law):
    scores, factor = LAWS[law]
    plain = choices(scores, factor, 4_000, ReplayBits(b"cut"))
    assert len(certified) < 3  # 4,000 * 2 * 8 * 1032 * 2^-50 is 6e-8
    cut = choices(scores, factor, 4_000, ReplayBits(b"cut"), 11)  # a band of half the whole
    assert len(certified) > 2_000
    assert np.array_equal(plain, cut)
    assert p_value(cut, scores, factor) > ALARM


def edge(scores, factor: Fraction, i: int) -> arb:
    """(w_0 + ... + w_i) / W at the working precision."""
    best = max(factor * int(score) for score in scores)
    raw = [ball(factor * int(score) - best).exp() for score in scores]
    return sum(raw[: i + 1], arb(0)) / sum(raw, arb(0))


@pytest.mark.parametrize("law", ["two", "few", "negative factor", "beyond 2^53", "beyond 2^80", "wide gaps"])
def test_next_to_an_edge_more_bits_decide(script, digits, certified, law):
    scores, factor = LAWS[law]
    for i in range(len(scores) - 1):
        with precision(400):
            if not edge(scores, factor, i) < 1 - arb(2) ** -60:
                continue  # all that follow have no weight to speak of
        first, second, third = digits(lambda i=i: edge(scores, factor, i), 3)
        certified.clear()
        assert choose(scores, factor, script(first, second - 1)) == i
        assert choose(scores, factor, script(first, second + 1)) == i + 1
        assert choose(scores, factor, script(first, second, third - 1)) == i
        assert choose(scores, factor, script(first, second, third + 1)) == i + 1
        assert certified == [first] * 4
        # Inside the band and outside it, on both sides.
        for power in range(1, 58):
            for word, expected in ((first - 2**power, i), (first + 2**power, i + 1)):
                if 0 <= word <= ONES:
                    found = choose(scores, factor, script(word))
                    with precision(300):
                        assert found == expected or 2**power > 2**50
                        assert edge(scores, factor, found) * arb(2) ** 64 >= word + 1 or found == len(scores) - 1
                        assert found == 0 or edge(scores, factor, found - 1) * arb(2) ** 64 <= word


def test_an_edge_at_one_half_exactly(script):
    # Weights 1/e, 1, 1, 1/e: the second edge is 1/2. Interval arithmetic cannot see that; the next word can.
    scores = [-1, 0, 0, -1]
    assert choose(scores, Fraction(1), script(2**63, 1)) == 2
    assert choose(scores, Fraction(1), script(2**63 - 1, ONES - 1)) == 1
    # Equal scores are added exactly.
    assert choose([5, 5], Fraction(1), script(2**63)) == 1
    assert choose([5, 5], Fraction(1), script(2**63 - 1)) == 0


def test_the_machine_sums_are_as_good_as_the_band_assumes(full):
    # The errors of a partial sum and of U W add up: each must be below half of (n + 1024) 2^-50 W.
    n = 1_000_000 if full else 50_000
    chance = np.random.default_rng(3)
    for spread in (1, 30, 700):
        gaps = -np.sort(chance.integers(0, 2**60, n))
        gaps[0] = 0
        factor = Fraction(spread, 2**60)
        sums = np.cumsum(np.exp(np.array([float(factor * int(gap)) for gap in gaps])))
        worst = arb(0)
        with precision(150):
            running, weight = arb(0), ball(factor)
            for gap, machine in zip(gaps.tolist(), sums.tolist(), strict=True):
                running += (weight * gap).exp()
                worst = max(worst, abs(running - machine).mid())
            assert worst < (n + 1024) * arb(2) ** -51 * running


def test_exponentials_are_as_good_as_the_band_assumes():
    # Within 2^-50 of itself for a double x <= 0, down to where it vanishes.
    points = -np.exp2(np.random.default_rng(4).uniform(-60, 9.4, 20_000))
    with precision(120):
        for point, found in zip(points.tolist(), np.exp(points).tolist(), strict=True):
            true = arb(point).exp()
            assert abs(found - true) <= arb(2) ** -50 * true


def test_scores_too_wide_for_a_double(script):
    # 10^400 is beyond every double. Its weight against 0 is one, and the other's is none to speak of.
    assert choose([0, 10**400], Fraction(1), script(2**63)) == 1
    assert choose([0, 10**400], Fraction(-1), script(2**63)) == 0
    assert choices([0, 10**18], Fraction(10**400), 2, script(2**63, 12345)).tolist() == [1, 1]


def test_a_weight_that_a_double_does_not_see(script, certified):
    # exp(-800) = 2^-1154 comes first: U below it needs 19 words of zeros; U above it is the other.
    scores = [-800, 0]
    assert choose(scores, Fraction(1), script(0, 1)) == 1
    assert choose(scores, Fraction(1), script(*[0] * 19)) == 0
    assert choose([0, -800], Fraction(1), script(*[ONES] * 19)) == 1
    assert choose([0, -800], Fraction(1), script(ONES, ONES - 1)) == 0
    assert len(certified) == 4


def test_sources_of_ones_and_zeros(same):
    for scores, factor in ([0, 1, 2], Fraction(1)), (list(range(100)), Fraction(1, 3)), ([5], Fraction(1)):
        assert choose(scores, factor, same(0)) == 0
        assert choose(scores, factor, same(ONES)) == len(scores) - 1


def test_one_of_one():
    assert choose([-(10**30)], Fraction(7), ReplayBits(b"")) == 0
    assert choices([5], Fraction(1), 100, ReplayBits(b"")).tolist() == [0] * 100


def test_counts():
    assert choices([1, 2], Fraction(1), 0, SystemBits()).shape == (0,)
    assert choices([1, 2], Fraction(1), 1, SystemBits()).shape == (1,)
    many = choices([1, 2], Fraction(1), 50_000, SystemBits())  # a pool holds 4,096 words
    assert many.dtype == np.int64
    assert set(many.tolist()) == {0, 1}


def test_nothing_to_choose_from():
    for empty in ([], np.array([], dtype=np.int64)):
        with pytest.raises(ParameterError, match="nothing to choose from"):
            choose(empty, Fraction(1), ReplayBits(b""))
