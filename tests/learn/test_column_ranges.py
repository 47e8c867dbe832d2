"""Ranges of columns: what one row changes, what is read off noisy counts, and what a fit with them costs."""

from __future__ import annotations

import itertools
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from tacit.errors import ParameterError
from tacit.learn import (
    LinearSVC,
    LogisticRegression,
    PrivateSearchCV,
    Ridge,
    column_ranges,
    learned_scaling,
    row_norm,
)
from tacit.learn.column_ranges import BINS, LEVELS, ColumnRanges
from tacit.learn.noise import GridGaussian
from tacit.mechanisms.laplace import Laplace
from tacit.privacy.loss import Compose, LaplaceNoise
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
EDGES = [-1e300, -4.0, -3.0, -0.0, 5e-324, 1e-7, 0.5, 1.0, 2.0, 4.0]
RNG = np.random.default_rng(3)
NORMAL = RNG.standard_normal((4000, 3))
SIDE = (NORMAL @ [2.0, -1.0, 0.5] > 0).astype(int)


SIZES = np.abs, np.square


def plan(columns=2, epsilon=1, delta=0, bounds=(-4.0, 4.0), rows=100, neighbors=ADD) -> ColumnRanges:
    ends = np.full(columns, bounds[0]), np.full(columns, bounds[1])
    return ColumnRanges.calibrate(Fraction(epsilon), Fraction(delta), ends, rows=rows, neighbors=neighbors)


def largest_changes(counts, rows) -> tuple[int, int, int, int]:
    """The most that adding and replacing a row changes counts, in L1 and squared L2, over all tables of one row."""
    tables = [np.array([row]) for row in rows]
    none = counts(np.zeros((0, len(rows[0]))))
    added = [counts(table) - none for table in tables]
    replaced = [one - other for one, other in itertools.product(added, added)]
    found = [max(size(change).sum() for change in changes) for changes in (added, replaced) for size in SIZES]
    return tuple(int(value) for value in found)


def test_a_row_changes_one_count_of_each_column():
    # Every row of two edge values: one more row is one in each of two columns, and another row is two in each.
    rows = list(itertools.product(EDGES, EDGES))
    assert largest_changes(plan().counts, rows) == (2, 2, 4, 4)
    assert plan(neighbors=ADD).privacy_loss == LaplaceNoise(2, 2)  # epsilon 1
    assert plan(neighbors=REPLACE).privacy_loss == LaplaceNoise(4, 4)


@pytest.mark.slow
def test_a_row_that_is_counted_twice_would_be_seen():
    # The same search finds a bin that two levels share, as one that is off by one would be.
    def planted(table):
        exact = plan().counts(table)
        exact[:, 1:] += exact[:, :-1] * (np.arange(BINS - 1) == 0)  # the first bin is counted in the second too
        return exact

    assert largest_changes(planted, list(itertools.product(EDGES, EDGES)))[0] == 4


def test_counts_do_not_depend_on_the_other_rows():
    whole = plan(3).counts(NORMAL)
    parts = [plan(3).counts(NORMAL[:1234]), plan(3).counts(NORMAL[1234:])]
    assert np.array_equal(whole, sum(parts)) and whole.sum(axis=1).tolist() == [4000] * 3


def test_bins_are_between_powers_of_two():
    # The ends are 4, below 2^3: 3 is in [2, 4), the second bin, -1 in [-2, -1], the third from the other end
    counts = plan(1).counts(np.array([[4.0], [3.0], [1.0], [-1.0], [-4.0], [0.0], [2.0**-18]]))[0]
    expected = np.zeros(BINS, dtype=int)
    expected[[0, 1, 2, BINS - 3, BINS - 1]] = 1
    expected[LEVELS] = 2
    assert counts.tolist() == expected.tolist()


@pytest.mark.parametrize(("columns", "kind"), [(13, Laplace), (14, GridGaussian)])
def test_noise_is_that_of_the_smaller_deviation(columns, kind):
    found = plan(columns, delta=Fraction(1, 10**6))
    assert isinstance(found.noise, kind)
    laplace = 2**0.5 * columns
    assert found.deviation == pytest.approx(laplace) if kind is Laplace else found.deviation < 1.5 * laplace


def test_ranges_of_exact_counts_are_quantiles():
    # 10 % of a normal distribution are above 1.28. That is inside of [1, 2), which is left whole: 2.3 % are above 2.
    found = plan(3, epsilon=10**6, bounds=(-1e4, 1e4), rows=4000).release(NORMAL, ReplayBits(b"exact"))
    assert found[0].tolist() == [-2.0] * 3 and found[1].tolist() == [2.0] * 3


@pytest.mark.parametrize(
    ("values", "bounds", "low", "high"),
    [
        (np.linspace(40, 120, 4000), (-1e6, 1e6), (32, 64), (100, 128)),
        (np.linspace(-120, -40, 4000), (-1e6, 1e6), (-128, -100), (-64, -32)),
        (np.repeat([0.0, 1.0], 2000), (0, 1), (0, 0), (1, 1)),
        (np.repeat([0.0, 1.0], [3990, 10]), (0, 1), (0, 0), (1, 1)),  # a rare mark: the bounds stay
        (np.repeat([0.0, 7.0], [3000, 1000]), (0, 1e6), (0, 0), (7, 8)),  # mostly zero
        (np.full(4000, 0.0), (-5, 5), (-5, 0), (0, 5)),  # nothing to scale
        (np.full(4000, 6.0), (0, 1000), (4, 4.5), (7, 8)),  # inside of its bin, nothing is known
        (np.full(4000, 3.0), (3, 3), (3, 3), (3, 3)),  # bounds that are equal
    ],
)
def test_ranges_hold_the_values(values, bounds, low, high):
    lower, upper = plan(1, epsilon=1, bounds=bounds, rows=4000).release(values[:, None], ReplayBits(b"values"))
    assert low[0] <= lower[0] <= low[1] and high[0] <= upper[0] <= high[1]


@pytest.mark.slow
def test_noise_alone_leaves_the_bounds_or_parts_of_them():
    # No rows at all, 200 times: a range is inside of the bounds, and never empty.
    for number in range(200):
        lower, upper = plan(2, bounds=(-3.0, 5.0)).release(np.zeros((0, 2)), ReplayBits(str(number).encode()))
        assert (lower >= -3).all() and (upper <= 5).all() and (lower < upper).all()


def settings(**more):
    return {"bounds": (-500.0, 500.0), "rows": 4000, "bits": partial(ReplayBits, b"fit"), **more}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC])
def test_bounds_that_are_far_too_wide_cost_little(kind):
    # By the bounds alone a constant is predicted: half of the labels.
    model = kind(1, classes=[0, 1], **settings()).fit(NORMAL, SIDE)
    assert (
        model.score(NORMAL, SIDE)
        > 0.9
        > 0.8
        > kind(1, classes=[0, 1], **settings(scaling="bounds")).fit(NORMAL, SIDE).score(NORMAL, SIDE)
    )
    assert (np.abs(model.ranges_) < 4).all()


@pytest.mark.slow
def test_the_guarantee_is_the_declared_one_and_covers_both_releases():
    model = LogisticRegression(1, 1e-6, classes=[0, 1], **settings()).fit(NORMAL, SIDE)
    assert (model.guarantee_.epsilon, model.guarantee_.delta) == (1, Fraction(1, 10**6))
    assert isinstance(model.loss_, Compose)
    ranges, norm, rest = model.loss_.parts
    # three columns at epsilon 1/16: 40 deviations of sqrt(2) 48 are 2715 rows, and at 1/32 twice as many
    assert ranges == LaplaceNoise(48, 3) and norm == LaplaceNoise(64, 1)
    planned = model.plan(3)
    assert planned.facts.epsilon == 1 - Fraction(5, 64) and planned.facts.delta == Fraction(1, 10**6)
    assert planned.method.privacy_loss == rest


@pytest.mark.slow
def test_with_gaussian_noise_delta_is_shared():
    planned = LogisticRegression(1, 1e-6, classes=[0, 1], **settings(rows=10_000)).plan(20)
    ranges, norm = planned.scaling.ranges, planned.scaling.norm
    assert planned.facts.delta + ranges.delta == Fraction(1, 10**6) == planned.guarantee.delta
    assert planned.facts.epsilon + ranges.epsilon + norm.epsilon == 1 == planned.guarantee.epsilon


@pytest.mark.slow
@pytest.mark.parametrize(
    ("more", "learned"),
    [
        ({}, True),
        ({"scaling": "bounds"}, False),
        ({"norm": 1}, False),  # of columns that are scaled by the bounds
        ({"rows": 50}, False),  # too few for a histogram
        ({"rows": 50, "scaling": "ranges"}, True),
        ({"bounds": None, "norm": 1}, False),
    ],
)
def test_ranges_are_learned_by_public_facts(more, learned):
    classifier = LogisticRegression(1, classes=[0, 1], **settings(**more))
    assert (classifier.plan(3).scaling.ranges is not None) is learned
    regression = Ridge(1, target_bounds=(0, 1), **settings(**more))  # for which clipping columns bends the line
    assert (regression.plan(3).scaling.ranges is not None) is (more.get("scaling") == "ranges")


def test_tight_bounds_stay():
    # A range is used where it is less than half as wide: 80 % of a uniform distribution are not.
    model = LogisticRegression(1, classes=[0, 1], **settings(bounds=(-1, 1)))
    model.fit(RNG.uniform(-1, 1, (4000, 3)), SIDE)
    assert model.plan(3).scaling.ranges is not None and np.array_equal(model.ranges_, [[-1.0] * 3, [1.0] * 3])


def test_a_hinge_has_a_penalty_for_decisive_scores():
    # A width of 1/2: slope/bend is 1, a decisive score 4
    few = settings(rows=200)
    former = LinearSVC(1, classes=[0, 1], **few, scaling="bounds").plan(3)
    now = LinearSVC(1, classes=[0, 1], **few, norm=3**0.5).plan(3)
    assert former.name == now.name == "gradient" and now.scaling.ranges is None
    assert now.method.penalty == pytest.approx(former.method.penalty / 4)
    fixed = LinearSVC(1, classes=[0, 1], **few, norm=3**0.5, C=0.1).plan(3)
    assert fixed.method.penalty == pytest.approx(10)


@pytest.mark.slow
def test_with_bounds_a_fit_is_what_it_was():
    # A norm that changes nothing has no ranges either: the plan and the weights are the same, bit for bit.
    declared = LogisticRegression(1, classes=[0, 1], **settings(scaling="bounds")).fit(NORMAL, SIDE)
    same = LogisticRegression(1, classes=[0, 1], **settings(norm=3**0.5)).fit(NORMAL, SIDE)
    assert np.array_equal(declared.coef_, same.coef_)


def test_predictions_are_those_of_the_coefficients_on_clipped_rows():
    model = LogisticRegression(1, classes=[0, 1], **settings()).fit(NORMAL, SIDE)
    inside = np.clip(NORMAL, *model.ranges_)
    assert np.allclose(inside @ model.coef_[0] + model.intercept_, model.decision_function(NORMAL))


@pytest.mark.slow
def test_a_search_learns_ranges_in_each_trial():
    model = LogisticRegression(classes=[0, 1], **settings(bits=None))
    bits = partial(ReplayBits, b"search")
    search = PrivateSearchCV(model, {"scaling": ["bounds", "ranges"]}, epsilon=6, trials=6, bits=bits)
    assert search.fit(NORMAL, SIDE).best_params_ == {"scaling": "ranges"}
    assert search.score(NORMAL, SIDE) > 0.9


@pytest.mark.parametrize("wrong", ["both", None, 3])
def test_what_is_wrong_is_said(wrong):
    with pytest.raises(ParameterError, match="scaling: there is no"):
        LogisticRegression(1, classes=[0, 1], **settings(scaling=wrong)).fit(NORMAL, SIDE)


def test_ranges_need_bounds():
    with pytest.raises(ParameterError, match="inside of declared bounds"):
        LogisticRegression(1, classes=[0, 1], **settings(scaling="ranges", bounds=None, norm=1)).fit(NORMAL, SIDE)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("values", "bounds"),
    [
        (RNG.uniform(1940, 2020, 20_000), (1900, 2100)),  # just below 2048
        (RNG.uniform(1940, 2020, 20_000), (0, 10_000)),
        (-RNG.uniform(120, 127, 20_000), (-300, 0)),  # just above -128
    ],
    ids=["years", "years in wide bounds", "negative"],
)
def test_columns_just_below_a_power_of_two_keep_what_they_say(values, bounds):
    # A range that is cut inside of the bin from 1024 to 2048 ends below all years, which then are one value.
    middle = values.mean()
    rows, late = values[:, None], (values > middle).astype(int)

    def score(scaling):
        settings = {"classes": [0, 1], "bounds": bounds, "rows": 20_000, "scaling": scaling}
        model = LogisticRegression(1, bits=partial(ReplayBits, b"years"), **settings).fit(rows, late)
        return model.score(rows, late)

    assert score("auto") > score("bounds") - 0.03 and score("auto") > 0.8


@pytest.mark.parametrize(("neighbors", "changes"), [("add-remove", 1), ("replace", 2)])
def test_ranges_are_learned_from_rows_of_twenty_deviations_of_a_count(neighbors, changes):
    # 3 columns, an eighth of epsilon 1: noise of scale 24 a change, of deviation 24 sqrt(2); 20 of these are 678.8
    least = int(np.ceil(20 * 2**0.5 * 24 * changes))
    model = LogisticRegression(1, delta=1e-6, classes=[0, 1], bounds=(-9, 9), neighbors=neighbors)
    declared = [model.set_params(rows=count).plan(3, count).scaling.ranges for count in (least - 1, least)]
    assert declared[0] is None and declared[1] is not None


@pytest.mark.slow
def test_the_share_of_ranges_falls_with_the_rows():
    # 3 columns at epsilon 1 and a share s: 40 deviations of 3 sqrt(2)/s are 1357.6 rows at 1/8, 10861.2 at 1/64
    model = LogisticRegression(1, delta=1e-6, classes=[0, 1], bounds=(-9, 9))
    shares = [model.set_params(rows=count).plan(3).scaling.ranges.epsilon for count in (1357, 1358, 10_861, 10_862)]
    assert shares == [Fraction(1, 8), Fraction(1, 8), Fraction(1, 32), Fraction(1, 64)]


def test_the_constants_are_those_of_the_page():
    assert (learned_scaling.LEAST_RANGES, learned_scaling.AMPLE_RANGES) == (20.0, 40.0)
    assert (learned_scaling.LEAST_NORM, learned_scaling.AMPLE_NORM) == (8.0, 40.0)
    assert learned_scaling.SHARES[-1] == Fraction(1, 8) and (column_ranges.TAIL, row_norm.TAIL) == (0.1, 0.1)
