"""Exponential weights, exactly.

Some forty tests of fit, each with a false alarm of 1e-11: less than 1e-9 together. Each also rejects a factor that is
off by a tenth.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL, OFF, enough, examples

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.sampling import exponential_weights
from tacit.sampling.bits import ReplayBits, SystemBits
from tacit.sampling.exponential_weights import choices, choose

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
# Scores, factor, sizes. Without the sizes, or with a factor that is off by a tenth, these are quite different laws.
SIZED = {
    "few": ([3, 0, 1, 5], Fraction(1, 2), [5, 9, 14, 2]),
    "negative factor": ([3, 0, 1, 70], Fraction(-1, 3), [9, 2, 3, 2**33]),
    "arrays": (np.arange(-500, 500), Fraction(1, 100), np.arange(1, 1001)[::-1]),
    # exp(-20) = 2^-28.9, exp(-41.5) = 2^-59.9
    "large": ([0, -40, -83], Fraction(1, 2), [1, 2**29, 2**60 - 1]),
    # Doubles hold neither these sizes nor int64 the last: exp(-70) = 2^-101
    "beyond 2^64": ([2**70, 2**70 - 37, 2**70 - 70], Fraction(1), [1, 2**53 + 1, 2**101 + 1]),
    # exp(-354) = 2^-510.7
    "as wide as can be": ([0, -354, 0], Fraction(1), [1, 2**512 - 1, 2]),
}


@pytest.fixture
def certified(monkeypatch) -> list[int]:
    """The choices that took the certified path, as they are made."""
    taken: list[int] = []
    real = exponential_weights._choose_certified

    def counting(gaps, sizes, factor, word, bits):
        taken.append(word)
        return real(gaps, sizes, factor, word, bits)

    monkeypatch.setattr(exponential_weights, "_choose_certified", counting)
    return taken


def weights(scores, factor: Fraction, sizes=None) -> list[float]:
    best = max(factor * int(score) for score in scores)
    raw = [math.exp(max(-1000, factor * int(score) - best)) for score in scores]
    raw = [weight * int(size) for weight, size in zip(raw, [1] * len(raw) if sizes is None else sizes, strict=True)]
    return [weight / sum(raw) for weight in raw]


@pytest.fixture(scope="module")
def p_value(chi_square):
    def fit(drawn, scores, factor: Fraction, bins=None, sizes=None) -> float:
        """Neighbors share a bin until it holds half a percent by the law of the bins."""
        counts = np.bincount(drawn, minlength=len(scores))
        law, observed, expected, room = weights(scores, factor, sizes), [0.0], [0.0], 0.0
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


@pytest.mark.slow
@pytest.mark.parametrize("law", LAWS)
def test_many_at_a_time(p_value, law, full):
    scores, factor = LAWS[law]
    drawn = choices(scores, factor, 1_000_000 if full else 200_000, ReplayBits(law.encode()))
    assert p_value(drawn, scores, factor) > ALARM
    for off in (Fraction(11, 10), Fraction(9, 10)):
        assert p_value(drawn, scores, factor * off, weights(scores, factor)) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("law", ["few", "uneven", "beyond 2^80"])
def test_one_at_a_time(p_value, law):
    # The same words give the same choices.
    scores, factor = LAWS[law]
    bits = ReplayBits(b"one")
    count = enough(10_000)
    drawn = [choose(scores, factor, bits) for _ in range(count)]
    assert drawn == choices(scores, factor, count, ReplayBits(b"one")).tolist()
    assert p_value(drawn, scores, factor) > ALARM


@pytest.mark.parametrize(("scores", "factor"), [([7] * 6, Fraction(3)), ([1, 2, 3, 4, 5, 6], Fraction(0))])
def test_equal_scores(chi_square, scores, factor):
    # Each a sixth: 10,000. A tenth more often, 11,000, is wrong by 1000^2 / 11,000 + 1000^2 / 49,000 = 111.
    counts = np.bincount(choices(scores, factor, 60_000, ReplayBits(b"equal")), minlength=6).tolist()
    assert chi_square(counts, [10_000] * 6) > ALARM
    assert chi_square([counts[0], 60_000 - counts[0]], [11_000, 49_000]) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("law", ["few", "negative factor", "uneven", "beyond 2^80", "wide gaps"])
def test_a_cruder_machine_chooses_the_same(p_value, certified, law):
    scores, factor = LAWS[law]
    count = enough(4_000)
    plain = choices(scores, factor, count, ReplayBits(b"cut"))
    assert len(certified) < 3  # 4,000 * 2 * 8 * 1032 * 2^-50 is 6e-8
    cut = choices(scores, factor, count, ReplayBits(b"cut"), 11)  # a band of half the whole
    assert len(certified) > count / 2
    assert np.array_equal(plain, cut)
    assert p_value(cut, scores, factor) > ALARM


def edge(scores, factor: Fraction, i: int, sizes=None) -> arb:
    """(w_0 + ... + w_i) / W at the working precision."""
    best, many = max(factor * int(score) for score in scores), [1] * len(scores) if sizes is None else sizes
    raw = [to_interval(factor * int(score) - best).exp() * int(size) for score, size in zip(scores, many, strict=True)]
    return sum(raw[: i + 1], arb(0)) / sum(raw, arb(0))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scores", "factor", "sizes"),
    [
        *((*LAWS[law], None) for law in ("two", "few", "negative factor", "beyond 2^53", "beyond 2^80", "wide gaps")),
        *(SIZED[law] for law in ("few", "negative factor", "large", "beyond 2^64", "as wide as can be")),
    ],
)
def test_next_to_an_edge_more_bits_decide(script, digits, certified, scores, factor, sizes):
    def chosen(*words):
        return choose(scores, factor, script(*words), sizes=sizes)

    for i in range(len(scores) - 1):
        with working_precision(400):
            if not edge(scores, factor, i, sizes) < 1 - arb(2) ** -60:
                continue  # all that follow have no weight to speak of
        first, second, third = digits(lambda i=i: edge(scores, factor, i, sizes), 3)
        certified.clear()
        assert chosen(first, second - 1) == i
        assert chosen(first, second + 1) == i + 1
        assert chosen(first, second, third - 1) == i
        assert chosen(first, second, third + 1) == i + 1
        assert certified == [first] * 4
        # Inside the band and outside it, on both sides.
        for power in range(1, 58, 1 if FULL else 4):
            for word, expected in ((first - 2**power, i), (first + 2**power, i + 1)):
                if 0 <= word <= ONES:
                    found = chosen(word)
                    with working_precision(300):
                        assert found == expected or 2**power > 2**50
                        assert edge(scores, factor, found, sizes) * arb(2) ** 64 >= word + 1 or found == len(scores) - 1
                        assert found == 0 or edge(scores, factor, found - 1, sizes) * arb(2) ** 64 <= word


def test_an_edge_at_one_half_exactly(script):
    # Weights 1/e, 1, 1, 1/e: the second edge is 1/2. Interval arithmetic cannot see that; the next word can.
    scores = [-1, 0, 0, -1]
    assert choose(scores, Fraction(1), script(2**63, 1)) == 2
    assert choose(scores, Fraction(1), script(2**63 - 1, ONES - 1)) == 1
    # Equal scores are added exactly.
    assert choose([5, 5], Fraction(1), script(2**63)) == 1
    assert choose([5, 5], Fraction(1), script(2**63 - 1)) == 0


@pytest.mark.slow
@pytest.mark.parametrize("sized", [False, True])
@pytest.mark.parametrize("spread", [1, 30, 700])
def test_the_machine_sums_are_as_good_as_the_band_assumes(full, sized, spread):
    # The errors of a partial sum and of U W add up: each must be below half of (n + 1024) 2^-50 W. With sizes the large
    # ones weigh as much as the best: their exponents are wrong by up to 3 * 2^-53 * 700.
    n = 1_000_000 if full else 20_000
    chance = np.random.default_rng(3)
    gaps = -np.sort(chance.integers(0, 2**60, n))
    gaps[0] = 0
    factor = Fraction(spread, 2**60)
    found = np.exp(exponential_weights._exponents(gaps, factor))
    sizes = [1] * n
    if sized:
        even = [int(min(1 / weight, 2.0**512)) + 2**54 + 1 for weight in np.maximum(found, 1e-300).tolist()]
        sizes = [1, *even[1:]]
        found *= np.array(sizes, dtype=object).astype(np.float64)
    worst = arb(0)
    with working_precision(150):
        running, weight = arb(0), to_interval(factor)
        for gap, size, machine in zip(gaps.tolist(), sizes, np.cumsum(found).tolist(), strict=True):
            running += (weight * gap).exp() * size
            worst = max(worst, abs(running - machine).mid())
        assert worst < (n + 1024) * arb(2) ** -51 * running


def test_exponentials_are_as_good_as_the_band_assumes():
    # Within 2^-50 of itself for a double x <= 0, down to where it vanishes.
    points = -np.exp2(np.random.default_rng(4).uniform(-60, 9.4, 20_000))
    with working_precision(120):
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


# Sizes


@pytest.mark.slow
@pytest.mark.parametrize("law", SIZED)
def test_an_index_is_as_likely_as_all_it_stands_for(p_value, certified, law):
    scores, factor, sizes = SIZED[law]
    drawn = choices(scores, factor, enough(100_000), ReplayBits(law.encode()), sizes=sizes)
    assert p_value(drawn, scores, factor, sizes=sizes) > ALARM
    for off in (1 + OFF, 1 - OFF):
        assert p_value(drawn, scores, factor * off, weights(scores, factor, sizes), sizes) < ALARM
    certified.clear()
    count = enough(400)
    few, cut = (choices(scores, factor, count, ReplayBits(b"cut"), trusted, sizes) for trusted in (50, 11))
    assert np.array_equal(few, cut)
    assert len(certified) > count / 2


@pytest.mark.slow
@settings(max_examples=examples(100), deadline=None, derandomize=True)
@given(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(1, 6)), min_size=1, max_size=8),
    st.fractions(-2, 2, max_denominator=20),
    st.sampled_from([50, 11]),
    st.binary(max_size=3),
)
def test_a_size_is_the_same_as_writing_the_score_so_often(parts, factor, trusted, seed):
    # The edges are the same real numbers, so the same words choose the same.
    scores, sizes = zip(*parts, strict=True)
    owner = [index for index, size in enumerate(sizes) for _ in range(size)]
    written = choices([scores[index] for index in owner], factor, 20, ReplayBits(seed), trusted)
    found = choices(scores, factor, 20, ReplayBits(seed), trusted, sizes)
    assert found.tolist() == [owner[place] for place in written]


@pytest.mark.parametrize("law", ["few", "large"])
def test_lists_and_arrays_choose_the_same(law):
    scores, factor, sizes = SIZED[law]
    for kind in (np.int64, np.uint64, object):
        many = np.array(sizes, dtype=kind)
        same = [choices(s, factor, 100, ReplayBits(b"k"), sizes=many) for s in (scores, np.array(scores))]
        assert np.array_equal(same[0], same[1])
        assert np.array_equal(same[0], choices(scores, factor, 100, ReplayBits(b"k"), sizes=sizes))


def test_scores_at_the_ends_of_64_bits():
    # Their difference is 2^64 - 1: factor 2^-64 makes weights 1/e and 1, and 2^63 is no int64.
    ends = np.array([-(2**63), 2**63 - 1])
    for scores in (ends, ends.tolist(), np.array([0, 2**64 - 1], dtype=np.uint64)):
        drawn = choices(scores, Fraction(1, 2**64), 10_000, ReplayBits(b"ends"))
        # 10,000/(1 + e) = 2689, standard deviation 44: within 7 of them but for 3e-12
        assert abs(int((drawn == 0).sum()) - 2689) < 310


def test_a_large_size_that_weighs_nothing(script, certified):
    # 2^512 exp(-1200) = 2^-1219 comes first: 20 words of zeros are below it, and a double does not see it.
    scores, sizes = [-1200, 0], [2**512 - 1, 1]
    assert choose(scores, Fraction(1), script(0, 1), sizes=sizes) == 1
    assert choose(scores, Fraction(1), script(*[0] * 20), sizes=sizes) == 0
    assert len(certified) == 2


@pytest.mark.parametrize("sizes", [[1], [1, 2, 3], [], [0, 1], [1, -1], [2**512, 1], np.array([3, 0])], ids=str)
def test_no_such_sizes(sizes):
    with pytest.raises(ParameterError, match="sizes: "):
        choose([1, 2], Fraction(1), ReplayBits(b""), sizes=sizes)


def test_a_factor_too_large_for_a_double(script):
    assert choose([0, 1], Fraction(10**400), script(12345)) == 1
    assert choose([0, 1], Fraction(-(10**400)), script(12345)) == 0
    # And one too small: both are equally likely.
    assert choose([0, 10**9], Fraction(1, 10**400), script(2**62)) == 0
    assert choose([0, 10**9], Fraction(1, 10**400), script(3 * 2**62)) == 1


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
