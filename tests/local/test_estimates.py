"""Estimates: unbiased, intervals that cover with at least their confidence, and consistency as post-processing."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import bdtr
from tests.support.counts import examples

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local import (
    FrequencySummary,
    HadamardResponse,
    KAryRandomizedResponse,
    OptimizedLocalHashing,
    OptimizedUnaryEncoding,
    ProjectiveGeometryResponse,
    SubsetSelection,
    SymmetricUnaryEncoding,
)
from tacit.local.estimates import estimate_frequencies, project_onto_simplex
from tacit.sampling.bits import ReplayBits

KINDS = [
    KAryRandomizedResponse,
    SymmetricUnaryEncoding,
    OptimizedUnaryEncoding,
    OptimizedLocalHashing,
    HadamardResponse,
    SubsetSelection,
    ProjectiveGeometryResponse,
]
SHARES = np.array([0.5, 0.3, 0.12, 0.08, 0, 0])


def surveys(protocol, users, tries, seed):
    """The supports of many surveys of the same people."""
    people = np.repeat(np.arange(len(SHARES)), (SHARES * users).round().astype(int))
    assert len(people) == users
    reports = protocol.encode(np.tile(people, tries), ReplayBits(seed.encode()))
    return [protocol.support(reports[i * users : (i + 1) * users]) for i in range(tries)]


def covers_at_least(hits, tries, confidence):
    """Whether so many hits are not too few: a false alarm with probability 1e-11."""
    return bdtr(hits, tries, confidence) > 1e-11


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_estimates_are_unbiased_and_intervals_cover(kind, full):
    # 300 surveys or more of 200 people. The mean of each of 6 estimates is within 6.8 standard errors of the truth, and
    # so is the spread of each: a false alarm below 1e-10. Coverage: 1e-11 for each of 7 x 3.
    protocol, users, tries = kind(6, 1), 200, 7_000 if full else 300
    counted = surveys(protocol, users, tries, f"covered {protocol.kind}")
    found = [estimate_frequencies(protocol, users, each) for each in counted]
    means = np.mean([each.frequencies for each in found], axis=0)
    error = np.array([math.sqrt(protocol.variance(users, share) / tries) for share in SHARES])
    assert (np.abs(means - SHARES) < 6.8 * error).all()
    spread = np.std([each.frequencies for each in found], axis=0)
    assert spread == pytest.approx(error * math.sqrt(tries), rel=6.8 / math.sqrt(2 * tries))
    for confidence in (0.5, 0.95, 0.99):
        found = [estimate_frequencies(protocol, users, each, confidence) for each in counted]
        inside = np.sum([(each.low <= SHARES) & (each.high >= SHARES) for each in found], axis=0)
        assert all(covers_at_least(int(hits), tries, confidence) for hits in inside)
        together = [estimate_frequencies(protocol, users, each, confidence, together=True) for each in counted]
        hits = sum(bool(((each.low <= SHARES) & (each.high >= SHARES)).all()) for each in together)
        assert covers_at_least(hits, tries, confidence)


def test_the_tests_reject_a_wrong_epsilon():
    # The same with reports made at 1 and read at 1.3: the largest share, one half, is neither covered nor unbiased.
    right, wrong, users, tries = KAryRandomizedResponse(6, 1), KAryRandomizedResponse(6, 1.3), 1000, 700
    found = [estimate_frequencies(wrong, users, each) for each in surveys(right, users, tries, "wrong")]
    mean = float(np.mean([each.frequencies[0] for each in found]))
    assert abs(mean - 0.5) > 6.8 * math.sqrt(wrong.variance(users, 0.5) / tries)
    hits = sum(bool(each.low[0] <= 0.5 <= each.high[0]) for each in found)
    assert not covers_at_least(hits, tries, 0.95)


@pytest.mark.parametrize("kind", KINDS)
def test_intervals_are_hardly_wider_than_the_normal_law_would_have_them(kind):
    # 100,000 people, a share of 0.3: 2 x 1.96 deviations, and at most 2 % more (one report and the exact tails).
    protocol, users = kind(50, 1), 100_000
    seen = np.full(50, round(users * (protocol.q + 0.3 * protocol.gap)))
    found = estimate_frequencies(protocol, users, seen)
    normal = 2 * 1.959964 * math.sqrt(protocol.variance(users, 0.3))
    # The binomial law of a mixed chance is wider than the mixture of coins: by this factor.
    mixed = protocol.q + 0.3 * protocol.gap
    binomial = 2 * 1.959964 * math.sqrt(mixed * (1 - mixed) / users) / protocol.gap
    assert (found.high - found.low)[0] == pytest.approx(binomial, rel=0.02)
    assert binomial >= normal * (1 - 1e-6)
    assert found.deviation[0] == pytest.approx(math.sqrt(protocol.variance(users, 0.3)), rel=1e-2)


def test_every_possible_survey_of_a_few_people_is_covered():
    # Six people, two of them with value 1, k-ary at epsilon 1: P of each count by adding up coins, no sampling.
    protocol, people, having = KAryRandomizedResponse(3, 1), 6, 2
    law = np.array([1.0])
    for person in range(people):
        chance = protocol.p if person < having else protocol.q
        law = np.convolve(law, [1 - chance, chance])
    for confidence in (Fraction(1, 10), Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)):
        covered = 0.0
        for count, chance in enumerate(law):
            found = estimate_frequencies(protocol, people, np.array([0, count, 0]), confidence)
            covered += chance * bool(found.low[1] <= having / people <= found.high[1])
        assert covered >= float(confidence)


def test_the_coin_estimator():
    # (R - 1/4)/(3/4 - 1/4) of a fair coin is epsilon = ln 3; at 1.0986 it is that to four digits: R = 0.4 gives 0.3.
    protocol = KAryRandomizedResponse(2, Fraction(1098612289, 10**9))
    found = estimate_frequencies(protocol, 1000, np.array([600, 400]))
    assert found.frequencies[1] == pytest.approx(0.3, abs=1e-8)
    assert protocol.p == pytest.approx(3 / 4, abs=1e-9)


@settings(max_examples=examples(100), deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=1, max_size=30), st.lists(st.floats(0, 1), min_size=30, max_size=30))
def test_projecting_gives_shares_that_are_nearer_to_any_truth(numbers, weights):
    point = np.array(numbers)
    found = project_onto_simplex(point)
    assert (found >= 0).all() and found.sum() == pytest.approx(1)
    truth = np.array(weights[: len(point)]) + 1e-3
    truth /= truth.sum()
    assert np.sum((found - truth) ** 2) <= np.sum((point - truth) ** 2) + 1e-9
    assert project_onto_simplex(found) == pytest.approx(found, abs=1e-12)


def test_consistent_estimates_are_marked():
    summary = FrequencySummary.empty(KAryRandomizedResponse(6, 1))
    summary = summary.add(summary.protocol.encode(np.arange(300) % 2, ReplayBits(b"marked")))
    raw = summary.estimate()
    made = raw.to_consistent()
    assert not raw.is_consistent and made.is_consistent
    assert raw.frequencies.sum() == pytest.approx(1)  # k-ary supports add up to the users
    assert raw.frequencies.min() < 0 <= made.frequencies.min()
    assert made.frequencies.sum() == pytest.approx(1)
    assert (made.low == raw.low).all() and (made.high == raw.high).all()


def test_the_largest_come_first():
    found = estimate_frequencies(KAryRandomizedResponse(3, 2), 100, np.array([20, 50, 30]))
    assert [row[0] for row in found.largest(2)] == [1, 2]
    assert found.largest(1)[0][2] <= found.largest(1)[0][1] <= found.largest(1)[0][3]
    assert list(found) == found.frequencies.tolist() and len(found) == 3
    assert found.largest(0) == [] and len(found.largest(9)) == 3
    for wrong in (-1, "2", 1.5):
        with pytest.raises(ParameterError, match="count"):
            found.largest(wrong)


def test_nothing_is_estimated_from_nothing():
    with pytest.raises(Refused) as caught:
        FrequencySummary.empty(KAryRandomizedResponse(3, 1)).estimate()
    assert caught.value.code is ErrorCode.REPORT
    with pytest.raises(ParameterError):
        estimate_frequencies(KAryRandomizedResponse(2, 1), 10, np.array([5, 5]), confidence=1)
