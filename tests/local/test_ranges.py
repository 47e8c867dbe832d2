"""Ranges and quantiles by a tree: least squares is least squares, unbiased, with the stated spread."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from tacit.accounting import epsilon as priced
from tacit.errors import ParameterError, Refused
from tacit.local.k_ary import KAry
from tacit.local.ranges import Ranges
from tacit.local.tree import Tree
from tacit.local.unary import OptimizedUnary
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


def test_consistent_shares_are_left_as_they_are():
    tree = Tree(27, 3)
    leaves = np.random.default_rng(1).dirichlet(np.ones(27))
    assert tree.fit([rows @ leaves for rows in design(tree)], [1.0, 2.0, 3.0]) == pytest.approx(leaves)


@pytest.mark.parametrize("make", [KAry, OptimizedUnary])
def test_ranges_are_unbiased_and_their_intervals_hold(make):
    asked = Ranges(make, size=16, epsilon=3)
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
    asked = Ranges(OptimizedUnary, size=256, epsilon=1)
    values = np.arange(40_000) % 256
    found = asked.estimate(asked.collect(asked.encode(values, ReplayBits(b"half")))).share(64, 191)
    alone = OptimizedUnary(256, 1).variance(40_000)
    levels = len(asked.tree.sizes)
    assert found.deviation**2 < 128 * alone
    assert found.deviation**2 < 2 * 3 * levels**2 * alone
    assert abs(found.value - 0.5) < 6.5 * found.deviation


def test_quantiles_lie_in_their_intervals():
    asked = Ranges(OptimizedUnary, size=200, epsilon=2)
    values = np.repeat(np.arange(200), 150)
    found = asked.estimate(asked.collect(asked.encode(values, ReplayBits(b"quantiles"))), 1 - 1e-9)
    for rank in (0.1, 0.5, 0.9):
        point = found.quantile(rank)
        assert point.low <= 200 * rank <= point.high and point.low <= point.value <= point.high
        assert point.high - point.low < 120
    assert found.quantile(0).value == 0


def test_it_costs_one_epsilon():
    assert priced(Ranges(KAry, 64, Fraction(1)).loss(), 0) == 1


def test_what_does_not_fit_is_refused():
    asked, bits = Ranges(KAry, 16, 1), ReplayBits(b"bad")
    for wrong in ([16], [-1], [0.5], [[1]]):
        with pytest.raises(ParameterError):
            asked.encode(wrong, bits)
    few = asked.collect(asked.encode([3], bits))
    with pytest.raises(Refused, match="no reports"):
        asked.estimate(few)
    with pytest.raises(Refused, match="levels"):
        Ranges(KAry, 16, 2).estimate(few)
    many = asked.estimate(asked.collect(asked.encode([3] * 100, bits)))
    for first, last in [(3, 2), (0, 16), (-1, 3)]:
        with pytest.raises(ParameterError):
            many.share(first, last)
    for wrong in [{"size": 1}, {"size": 2**25}, {"size": 4, "fanout": 1}]:
        with pytest.raises(ParameterError):
            Ranges(KAry, epsilon=1, **wrong)
