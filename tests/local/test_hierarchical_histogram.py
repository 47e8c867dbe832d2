"""Ranges and quantiles by a tree: least squares is least squares, unbiased, with the stated spread."""

from __future__ import annotations

import math
from fractions import Fraction
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from tests.support.counts import FULL, some

from tacit.accounting import epsilon as priced
from tacit.errors import ParameterError, Refused
from tacit.local.hierarchical_histogram import HierarchicalHistogram, QuantileEstimate
from tacit.local.k_ary import KAryRandomizedResponse
from tacit.local.summary import FrequencySummary
from tacit.local.tree import Tree
from tacit.local.unary_encoding import OptimizedUnaryEncoding
from tacit.sampling.bits import ReplayBits


def design(tree):
    """The matrix that takes leaves to all nodes, level by level."""
    rows = []
    for level, size in enumerate(tree.sizes):
        nodes = tree.ancestors(np.arange(tree.size))[:, level]
        rows.append((np.arange(size)[:, None] == nodes[None, :]).astype(float))
    return rows


@given(size=st.integers(2, 40), fanout=st.integers(2, 5), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_the_fit_is_least_squares_under_the_total(size, fanout, seed):
    rng, tree = np.random.default_rng(seed), Tree(size, fanout)
    shares = [rng.normal(size=nodes) for nodes in tree.sizes]
    variances = rng.uniform(0.5, 2.0, len(shares))
    found = tree.fit(shares, variances)
    # the normal equations with a multiplier for the total
    stacked = np.vstack([rows / math.sqrt(v) for rows, v in zip(design(tree), variances, strict=True)])
    seen = np.concatenate([level / math.sqrt(v) for level, v in zip(shares, variances, strict=True)])
    system = np.block([[stacked.T @ stacked, np.ones((size, 1))], [np.ones((1, size)), np.zeros((1, 1))]])
    exact = np.linalg.solve(system, np.append(stacked.T @ seen, 1.0))[:-1]
    assert found == pytest.approx(exact, abs=1e-8)
    assert found.sum() == pytest.approx(1)
    # and the coefficients are its transpose: the fit is affine
    wanted = rng.normal(size=size)
    pulls = tree.coefficients(wanted, variances)
    nothing = tree.fit([np.zeros(nodes) for nodes in tree.sizes], variances)
    linear = sum(pull @ level for pull, level in zip(pulls, shares, strict=True))
    assert wanted @ found == pytest.approx(wanted @ nothing + linear, abs=1e-8)


@given(size=st.integers(2, 40), fanout=st.integers(2, 5), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_the_variances_of_all_prefixes_are_those_of_their_coefficients(size, fanout, seed):
    rng, tree = np.random.default_rng(seed), Tree(size, fanout)
    variances, costs = rng.uniform(0.5, 2.0, len(tree.sizes)), [rng.uniform(size=nodes) for nodes in tree.sizes]
    for value, found in enumerate(tree.prefix_variances(costs, variances)):
        pulls = tree.coefficients((np.arange(size) <= value).astype(float), variances)
        assert found == pytest.approx(sum(pull**2 @ cost for pull, cost in zip(pulls, costs, strict=True)), abs=1e-9)


def test_consistent_shares_are_left_as_they_are():
    tree = Tree(27, 3)
    leaves = np.random.default_rng(1).dirichlet(np.ones(27))
    assert tree.fit([rows @ leaves for rows in design(tree)], [1.0, 2.0, 3.0]) == pytest.approx(leaves)


@pytest.mark.slow
@pytest.mark.parametrize("make", [KAryRandomizedResponse, OptimizedUnaryEncoding])
def test_ranges_are_unbiased_and_their_intervals_hold(make):
    asked = HierarchicalHistogram(make, size=16, epsilon=3)
    users, runs, bits = 2000, 150, ReplayBits(b"ranges")
    values = np.arange(users) % 10  # half of them at 5 or above
    found = [asked.estimate(asked.collect(asked.encode(values, bits)), 0.9).share(5, 12) for _ in range(runs)]
    errors = np.array([each.value - 0.5 for each in found])
    deviation = np.mean([each.deviation for each in found])
    # the mean is within 6.5 deviations of zero: 1e-10
    assert abs(errors.mean()) < 6.5 * deviation / math.sqrt(runs)
    # at most the stated spread and not a third of it: chi-square of 150, both below 1e-10
    assert 1 / 3 < errors.std() / deviation < 1.45
    misses = sum(not each.low <= 0.5 <= each.high for each in found)
    assert misses <= binom.isf(1e-10, runs, 0.1)


def test_a_range_is_known_better_than_the_sum_of_its_values():
    # 256 values, half of them: 2 (fanout - 1) h^2 = 96 against 128 by the theorem, and less after least squares
    asked = HierarchicalHistogram(OptimizedUnaryEncoding, size=256, epsilon=1)
    values = np.arange(40_000) % 256
    found = asked.estimate(asked.collect(asked.encode(values, ReplayBits(b"half")))).share(64, 191)
    alone = OptimizedUnaryEncoding(256, 1).variance(40_000)
    levels = len(asked.tree.sizes)
    assert found.deviation**2 < 128 * alone
    assert found.deviation**2 < 2 * 3 * levels**2 * alone
    assert abs(found.value - 0.5) < 6.5 * found.deviation


def test_quantiles_lie_in_their_intervals():
    asked = HierarchicalHistogram(OptimizedUnaryEncoding, size=200, epsilon=2)
    values = np.repeat(np.arange(200), 150)
    found = asked.estimate(asked.collect(asked.encode(values, ReplayBits(b"quantiles"))), 1 - 1e-9)
    for rank in (0.1, 0.5, 0.9):
        point = found.quantile(rank)
        assert point.low <= 200 * rank <= point.high and point.low <= point.value <= point.high
        assert point.high - point.low < 120
    assert found.quantile(0).value == 0


def at_the_estimated_place(found, rank):
    """A rule that does not hold: the spread of F at the estimate, where F may be known better than at the quantile."""
    below = np.maximum.accumulate(np.cumsum(found.shares))
    last, normal = found.tree.size - 1, NormalDist().inv_cdf((1 + float(found.confidence)) / 2)
    wide = normal * found.share(0, min(int(np.searchsorted(below, rank)), last)).deviation
    return [min(int(np.searchsorted(below, rank + move)), last) for move in (-wide, wide)]


@pytest.mark.slow
@pytest.mark.parametrize("make", some([OptimizedUnaryEncoding, KAryRandomizedResponse], 2, 1))
def test_quantile_intervals_cover_at_all_ranks(make):
    asked, users, runs = HierarchicalHistogram(make, size=64, epsilon=1), 3000, 3000 if FULL else 500
    values = binom.ppf((np.arange(users) + 0.5) / users, 63, 0.3).astype(np.int64)
    true = {rank: int(np.sort(values)[math.ceil(rank * users) - 1]) for rank in (0.01, 0.05, 0.5, 0.95, 0.99)}
    bits, misses, wrong = ReplayBits(b"ranks"), dict.fromkeys(true, 0), 0
    for _ in range(runs):
        found = asked.estimate(asked.collect(asked.encode(values, bits)), 0.9)
        for rank, value in true.items():
            point = found.quantile(rank)
            assert point.low <= point.value <= point.high
            misses[rank] += not point.low <= value <= point.high
        low, high = at_the_estimated_place(found, 0.01)
        wrong += not low <= true[0.01] <= high
    # more has a chance below 1e-10 for each of 10, if the miss is at most a tenth
    assert max(misses.values()) <= binom.isf(1e-10, runs, 0.1)
    # power: the other rule misses a quarter or more, and is found out
    assert wrong > binom.isf(1e-10, runs, 0.1)


@example(seed=421, rank=1.0)  # by the noise, all are sure to be at or below 7
@given(seed=st.integers(0, 2**32 - 1), rank=st.floats(0, 1))
@settings(max_examples=30, deadline=None)
def test_a_quantile_is_in_its_own_interval(seed, rank):
    asked, rng = (
        HierarchicalHistogram(KAryRandomizedResponse, size=10, epsilon=1, fanout=3),
        np.random.default_rng(seed),
    )
    found = asked.estimate(asked.collect(asked.encode(rng.integers(0, 10, 200), ReplayBits(seed.to_bytes(4, "big")))))
    point = found.quantile(rank)
    assert 0 <= point.low <= point.value <= point.high <= 9
    assert found.quantile(0) == QuantileEstimate(0, 0, 0)  # nobody is below the first value
    # all are at or below the last, which is left out just where all are sure to be below it
    assert (found.quantile(1).high == 9) == (found.share(0, 8).low < 1)


@pytest.mark.parametrize("make", [KAryRandomizedResponse, OptimizedUnaryEncoding])
def test_liars_who_choose_their_level_move_a_range_by_no_more_than_stated(make):
    asked, honest, liars = HierarchicalHistogram(make, size=16, epsilon=1), 190_000, 10_000
    reports = asked.encode(np.zeros(honest, dtype=np.int64), ReplayBits(b"honest"))
    stated = asked.influence(0.05, 8, 15)
    moved = []
    for level, protocol in enumerate(asked.levels.protocols):
        # each lie supports what counts most for the upper half: all of its nodes on a level, or one of them
        half = protocol.domain // 2
        lie = np.packbits(np.arange(protocol.domain) >= half) if make is OptimizedUnaryEncoding else half
        sent = [
            np.concatenate([each, np.stack([lie] * liars)]) if level == at else each for at, each in enumerate(reports)
        ]
        found = asked.estimate(asked.collect(sent))
        share = found.share(8, 15)
        # the noise of the honest is within 6.5 deviations, 1e-10
        assert share.value <= found.influence(0.05, 8, 15) + 6.5 * share.deviation
        moved.append(share.value)
    # nobody has it, so all of it is the liars' doing; the levels are nearly even
    assert 0.85 * stated < max(moved) <= stated + 6.5 * share.deviation
    # the first level's own figure, for liars who stand where they were drawn, is too small
    assert max(moved) > asked.levels.protocols[0].influence(0.05)
    for wrong in (-0.1, 1.1, "half"):
        with pytest.raises(ParameterError):
            asked.influence(wrong, 8, 15)


def test_levels_of_two_surveys_are_refused():
    asked, bits = HierarchicalHistogram(KAryRandomizedResponse, 8, 1), ReplayBits(b"two")
    one, other = (asked.collect(asked.encode([1] * 100, bits), name) for name in ("x", "y"))
    assert asked.estimate(one).share(0, 7).value == pytest.approx(1)
    with pytest.raises(Refused, match="two surveys"):
        asked.estimate([one[0], other[1]])
    with pytest.raises(Refused, match="2 levels"):
        asked.estimate(one[:1])
    with pytest.raises(Refused, match="in another order, or not from collect"):
        asked.estimate([FrequencySummary.empty(each, "x").add([0, 1]) for each in asked.levels.protocols])


def test_nobody_sends_nothing():
    asked = HierarchicalHistogram(KAryRandomizedResponse, 16, 1)
    assert [len(each) for each in asked.encode([], ReplayBits(b""))] == [0, 0]
    assert [each.users for each in asked.collect(asked.encode([], ReplayBits(b"")))] == [0, 0]


def test_it_costs_one_epsilon():
    assert priced(HierarchicalHistogram(KAryRandomizedResponse, 64, Fraction(1)).loss(), 0) == 1


def test_what_does_not_fit_is_refused():
    asked, bits = HierarchicalHistogram(KAryRandomizedResponse, 16, 1), ReplayBits(b"bad")
    for wrong in ([16], [-1], [0.5], [[1]]):
        with pytest.raises(ParameterError):
            asked.encode(wrong, bits)
    few = asked.collect(asked.encode([3], bits))
    with pytest.raises(Refused, match="no reports"):
        asked.estimate(few)
    with pytest.raises(Refused, match="levels"):
        HierarchicalHistogram(KAryRandomizedResponse, 16, 2).estimate(few)
    many = asked.estimate(asked.collect(asked.encode([3] * 100, bits)))
    for first, last in [(3, 2), (0, 16), (-1, 3)]:
        with pytest.raises(ParameterError):
            many.share(first, last)
    for wrong in [{"size": 1}, {"size": 2**25}, {"size": 4, "fanout": 1}]:
        with pytest.raises(ParameterError):
            HierarchicalHistogram(KAryRandomizedResponse, epsilon=1, **wrong)
