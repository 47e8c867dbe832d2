"""The fold: repetition, groups, parallel parts, and the order of accountants."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import pytest
from tests.accounting.conftest import LEAVES
from tests.support.counts import FULL, some

from tacit.accounting import METHODS, bounds, delta, epsilon
from tacit.accounting.accountant import flatten_loss, group_delta, scale_to_group
from tacit.accounting.basic import compose_basic
from tacit.accounting.zcdp import compute_rho
from tacit.arithmetic import ball_below, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms import Threshold
from tacit.mechanisms.weighted_selection import WeightedGaussianSelection
from tacit.privacy.loss import (
    ApproximateDp,
    Compose,
    ConcentratedDp,
    ContinuousLaplaceNoise,
    GaussianNoise,
    Group,
    LaplaceNoise,
    OneOf,
    Parallel,
    PureDp,
    Repeat,
    Sampled,
)
from tacit.privacy.unit import Neighbors

DELTA = 1e-6


def with_each(methods, one_in, first=0):
    """Losses with accountants, by default one in so many of the pairs: each of either is in one or more."""
    pairs = [pytest.param(LEAVES[name], by, id=f"{by}-{name}") for name, by in product(LEAVES, methods)]
    return pytest.mark.parametrize(("leaf", "by"), some(pairs, one_in, first))


@pytest.mark.slow
@with_each(METHODS, 5)
def test_repeating_is_composing(leaf, by):
    # Repeat(l, 6) in four spellings; every accountant sees the same counts
    spelled = [
        Repeat(leaf, 6),
        Compose((leaf,) * 6),
        Compose((Repeat(leaf, 4), Compose((leaf, Repeat(leaf, 1))))),
        Repeat(Compose((leaf, Repeat(leaf, 2))), 2),
    ]
    assert len({epsilon(loss, DELTA, by=by) for loss in spelled}) == 1
    assert len({delta(loss, 1.5, by=by) for loss in spelled}) == 1


@pytest.mark.parametrize("by", METHODS)
def test_nothing_costs_nothing(leaf, by):
    for nothing in (Compose(()), Repeat(leaf, 0), Sampled(leaf, Fraction(0)), Parallel((), Neighbors.REPLACE)):
        assert epsilon(nothing, DELTA, by=by) == 0
        assert delta(nothing, 0, by=by) == 0


@pytest.mark.slow
def test_distributions_are_no_worse_than_any_other_accountant(leaf):
    loss = Repeat(leaf, 20)
    best = epsilon(loss, DELTA)
    others = [by for by in METHODS if FULL or by != "pld"]  # which is the default
    assert all(best <= epsilon(loss, DELTA, by=by) * (1 + 1e-6) for by in others)
    low, high = bounds(loss, DELTA)
    assert 0 <= low <= high == best


@pytest.mark.slow
@with_each(METHODS, 5, 2)
def test_epsilon_falls_in_delta_and_delta_in_epsilon(leaf, by):
    loss = Repeat(leaf, 5)
    epsilons = [epsilon(loss, 10.0**-power, by=by) for power in range(2, 12, 3)]
    assert all(one <= two * (1 + 1e-7) for one, two in pairwise(epsilons))
    deltas = [delta(loss, x, by=by) for x in (0.0, 0.5, 1.0, 2.0)]
    assert all(one >= two * (1 - 1e-7) for one, two in pairwise(deltas))


@pytest.mark.slow
@with_each(["advanced", "optimal", "zcdp", "renyi", "pld"], 4)
def test_epsilon_and_delta_agree(leaf, by):
    loss = Repeat(leaf, 8)
    found = epsilon(loss, DELTA, by=by)
    if found not in {0.0, math.inf}:
        assert delta(loss, found, by=by) <= DELTA * (1 + 1e-3)
        assert delta(loss, found * 0.99, by=by) >= DELTA * (1 - 1e-3)


def test_parallel_parts():
    small, large = PureDp(Fraction(1, 10)), PureDp(Fraction(1, 2))
    assert compose_basic(Parallel((small, large, small), Neighbors.ADD_REMOVE)).epsilon == Fraction(1, 2)
    # under replace a unit may move from one part to another: the two largest
    assert compose_basic(Parallel((small, large, small), Neighbors.REPLACE)).epsilon == Fraction(3, 5)
    assert compose_basic(Parallel((large, large, small), Neighbors.REPLACE)).epsilon == 1
    assert compose_basic(Parallel((large,), Neighbors.REPLACE)).epsilon == Fraction(1, 2)
    many = tuple(PureDp(Fraction(1, n)) for n in range(2, 20))
    assert (
        compose_basic(Parallel(many, Neighbors.REPLACE)).epsilon == 1
    )  # beyond eight parts: twice the largest, a bound
    for by in ("basic", "zcdp", "renyi", "pld"):  # the other two take the pair as one part
        both = epsilon(Parallel((small, large, large), Neighbors.REPLACE), DELTA, by=by)
        assert both == pytest.approx(epsilon(Repeat(large, 2), DELTA, by=by), rel=1e-6)


def test_parallel_parts_of_different_shape():
    # Neither curve is above the other: the bound is above both.
    flat, steep = GaussianNoise(Fraction(9), 1), ApproximateDp(Fraction(1, 2), Fraction(1, 10**9))
    loss = Parallel((flat, steep), Neighbors.ADD_REMOVE)
    for x in (0.1, 0.4, 0.6, 1.5):
        top = max(delta(flat, x), delta(steep, x))
        assert top * (1 - 1e-6) <= delta(loss, x) <= top * 1.3 + 1e-9


def test_groups():
    assert scale_to_group(LaplaceNoise(Fraction(10), 2), 3) == LaplaceNoise(Fraction(10), 6)
    assert scale_to_group(ContinuousLaplaceNoise(Fraction(10)), 4) == ContinuousLaplaceNoise(Fraction(5, 2))
    # k^2 c s^2/(2v) = 9 * 2 * 4/50
    assert scale_to_group(GaussianNoise(Fraction(25), 2, 2), 3) == ConcentratedDp(Fraction(36, 25))
    # delta (1 + e + e^2) at epsilon 1 and k = 3: 1e-6 * 11.1073379
    assert float(group_delta(Fraction(1), Fraction(1, 10**6), 3)) == pytest.approx(1.11073379e-5, rel=1e-8)
    assert group_delta(Fraction(0), Fraction(1, 10), 3) == Fraction(3, 10)
    assert group_delta(Fraction(100), Fraction(1, 10), 20) == 1
    assert compute_rho(Group(ConcentratedDp(Fraction(1, 10)), 3)).rho == Fraction(9, 10)
    assert flatten_loss(Group(Group(Compose((PureDp(Fraction(1)),)), 2), 3)) == {PureDp(Fraction(6)): 1}
    sampled = Sampled(PureDp(Fraction(1)), Fraction(1, 2))
    # neither a removal nor an addition: of the two units one may be removed and the other added
    grouped = Parallel((Sampled(Group(PureDp(Fraction(1)), 2), Fraction(3, 4)),), Neighbors.REPLACE)
    assert flatten_loss(Group(sampled, 2)) == {grouped: 1}


def test_a_group_of_what_is_split_by_pair_is_that_of_the_whole():
    # sums of the parts' groups promise 13 * 1e-5 of a key that 13 units hold, which is shown with 0.731 and never else
    threshold = Threshold.calibrated(epsilon=1, delta=1e-5)
    for size in (2, 4, 8, 13):
        with working_precision(128):
            shown = Fraction(ball_below(threshold.law(size)))
        for by in METHODS:
            assert Fraction(delta(Group(threshold.loss(1), size), 50, by=by)) >= shown
        for wrapped in (Repeat(threshold.loss(1), 1), Group(threshold.loss(1), 1), OneOf((threshold.loss(1),))):
            assert Fraction(delta(Compose((Group(wrapped, size), PureDp(1))), 50)) >= shown
    # delta (1 + e) for two units, and delta for one, as ever
    assert delta(Group(threshold.loss(1), 2), 50) == pytest.approx(1e-5 * (1 + math.e), rel=1e-9)
    assert delta(Group(threshold.loss(1), 1), 50) == pytest.approx(1e-5, rel=1e-9)
    assert epsilon(Group(threshold.loss(1), 2), 1e-4, by="basic") == 2


def test_a_group_of_a_selection_by_gaussian_noise_is_that_of_the_whole():
    # a key of so many units is shown with one half or more, and never without them
    selection = WeightedGaussianSelection.calibrated(epsilon=1, delta=1e-5, groups=1, rounds=1)
    for by in METHODS:
        assert delta(Group(selection.loss(), selection.units()), 100, by=by) >= 0.5
    assert delta(Group(selection.loss(), 2), 100) < 0.01  # its rho is converted at its delta


def test_a_group_of_a_whole_for_changes_is_for_changes():
    # two sampled parts beside it: under REPLACE a unit leaves the one and enters the other, so they lose more together
    sampled = Sampled(PureDp(2), Fraction(99, 100))
    for neighbors in Neighbors:
        whole = Compose((Parallel((PureDp(Fraction(1, 10**6)),), neighbors), ApproximateDp(0, Fraction(1, 10**9))))
        for by in ("renyi", "pld"):
            grouped, apart = (delta(Compose((sampled, each)), 1, by=by) for each in (Group(whole, 2), whole))
            assert grouped == pytest.approx(apart, rel=1e-4)


def test_mechanisms_of_their_own_are_grouped_one_by_one():
    own = Compose((PureDp(1), ApproximateDp(Fraction(1, 2), Fraction(1, 10**6))))
    assert flatten_loss(Group(own, 3)) == {PureDp(3): 1, scale_to_group(own.parts[1], 3): 1}


def test_sampling_helps():
    # ln(1 + 0.1 (e - 1)) = 0.158565
    loss = Sampled(PureDp(Fraction(1)), Fraction(1, 10))
    assert epsilon(loss, 0, by="basic") == pytest.approx(0.158565, abs=5e-7)
    assert epsilon(loss, 1e-6) == pytest.approx(0.158565, abs=1e-4)
    assert epsilon(Repeat(loss, 50), 1e-6) < epsilon(Repeat(PureDp(Fraction(1)), 50), 1e-6) / 5


def test_pure_losses_need_no_delta():
    assert epsilon(Repeat(LaplaceNoise(Fraction(10), 1), 3), 0) == pytest.approx(0.3)
    assert epsilon(GaussianNoise(Fraction(4), 1), 0) == math.inf
    assert epsilon(ApproximateDp(Fraction(1), Fraction(1, 10)), 0.05) == math.inf
    assert epsilon(ApproximateDp(Fraction(1), Fraction(1, 10)), 0.1, by="basic") == 1


@pytest.mark.parametrize("by", METHODS)
@pytest.mark.parametrize("bad", [-0.1, 1, 1.5, math.nan, "0.1", True, None])
def test_bad_deltas(by, bad):
    with pytest.raises(ParameterError, match="delta"):
        epsilon(PureDp(Fraction(1)), bad, by=by)


@pytest.mark.parametrize("bad", [-1, math.inf, math.nan, "1", None])
def test_bad_epsilons(bad):
    with pytest.raises(ParameterError, match="epsilon"):
        delta(PureDp(Fraction(1)), bad)


@pytest.mark.parametrize("bad", ["gaussian", "", None, 3])
def test_unknown_accountants(bad):
    with pytest.raises(ParameterError, match="choose one of basic, advanced, optimal, zcdp, renyi, pld"):
        epsilon(PureDp(Fraction(1)), 0.1, by=bad)
