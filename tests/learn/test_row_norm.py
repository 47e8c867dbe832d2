"""The norm of rows: what one row changes, what is read off noisy counts, and what a fit with it is."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer

from tacit.learn import LogisticRegression, Ridge
from tacit.learn.row_norm import BINS, RowNorm
from tacit.privacy.loss import Compose, LaplaceNoise
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE
RNG = np.random.default_rng(7)
LENGTHS = [0.0, 5e-324, 1e-200, 2.0**-40, 0.25, 0.5, np.nextafter(0.5, 0), 1.0, np.nextafter(1.0, 2), 1.7, 3.0]


def plan(epsilon=1, norm=2.0, rows=1000, neighbors=ADD) -> RowNorm:
    return RowNorm.calibrate(Fraction(epsilon), norm=norm, rows=rows, neighbors=neighbors)


@pytest.mark.slow
@pytest.mark.parametrize("neighbors", [ADD, REPLACE])
def test_a_row_changes_one_count_and_a_replaced_one_two(neighbors):
    tables = [np.array([row]) for row in itertools.product(LENGTHS, LENGTHS)]
    added = [plan().counts(table) for table in tables]
    changes = added if neighbors is ADD else [one - other for one, other in itertools.product(added, added)]
    most = max(int(np.abs(change).sum()) for change in changes)
    assert most == (1 if neighbors is ADD else 2)
    # epsilon 1: noise of scale 1 for one count, 2 for two
    assert plan(neighbors=neighbors).privacy_loss == LaplaceNoise(most, most)


def test_a_row_has_its_bin_wherever_it_lies():
    rows = RNG.uniform(-1, 1, (1001, 7))
    assert np.array_equal(plan().counts(rows) - plan().counts(rows[1:]), plan().counts(rows[:1]))
    assert np.array_equal(plan().counts(rows), sum(plan().counts(row[None]) for row in rows))


def test_bins_are_between_powers_of_the_root_of_two():
    # from 2 downward: [2 / 2^(1/2), 2) is the first, so 1.5 is in it; 1.4 in the second; 1 begins the second's end
    counts = plan().counts(np.array([[2.0], [1.5], [1.41], [1.0], [0.99], [0.0]]))
    expected = np.zeros(BINS, dtype=int)
    expected[[0, 1, 2]] = 2, 2, 1
    expected[-1] = 1
    assert counts.tolist() == expected.tolist()


def test_the_norm_of_exact_counts_is_a_quantile():
    # A tenth of the rows may be longer than what is read: of lengths spread evenly in [0, 1], that is 0.9, inside of
    # (0.707, 1], a bin that stays whole. Of the rows in [0, 8], those above 4 (a half) are not left out.
    lengths = np.linspace(0, 1, 10_000)[:, None]
    exact = plan(10**6, norm=8.0, rows=10_000)
    assert exact.release(lengths, ReplayBits(b"exact")) == 1.0
    far = np.concatenate([lengths[:-500], np.full((500, 1), 8.0)])  # a twentieth is far away, and is left out
    assert exact.release(far, ReplayBits(b"exact")) == 1.0
    assert exact.release(8 * lengths, ReplayBits(b"exact")) == 8.0


def test_nothing_but_noise_leaves_the_norm_or_a_part_of_it():
    # Empty tables, and rows that are all zero: what is read is never above the norm, and never 0.
    for number, rows in itertools.product(range(100), (0, 1000)):
        found = plan(Fraction(1, 8)).release(np.zeros((rows, 3)), ReplayBits(str(number).encode()))
        assert 0 < found <= 2.0
    assert plan(10**6).release(np.zeros((1000, 3)), ReplayBits(b"zeros")) == 2.0


def settings(**more):
    return {"classes": [0, 1], "bits": partial(ReplayBits, b"norm"), **more}


@pytest.mark.slow
def test_a_norm_that_is_learned_is_one_that_is_declared():
    # The factor makes rows of the learned norm as long as planned. Declaring that norm scales the same rows, so the
    # weights agree up to rounding to grids, with the noise as good as gone. The strength C is for scaled rows: the
    # same penalty in the columns' units is C times the square of the factor.
    rows = RNG.uniform(-1, 1, (500, 4))
    sides = (rows[:, 0] > 0).astype(int)
    learned = LogisticRegression(10**8, 0.001, bounds=(-50, 50), rows=500, scaling="norm", C=1.0, **settings())
    learned.fit(rows, sides, public=True)
    factor = learned._facts.factor
    assert 0.01 < factor < 0.03
    declared = LogisticRegression(
        10**8, 0.001, bounds=(-50, 50), norm=2 * factor, rows=500, C=1.0 / factor**2, **settings()
    )
    declared.fit(rows, sides, public=True)
    assert np.allclose(learned.coef_, declared.coef_, rtol=1e-3, atol=1e-4 * np.abs(learned.coef_).max())
    assert np.allclose(learned.decision_function(rows), declared.decision_function(rows), atol=1e-2)


def test_what_is_shown_is_what_predictions_are_made_of():
    # coef_ and intercept_ are in the columns' own units: for rows that are not shortened they give the scores.
    rows = RNG.uniform(0, 3, (800, 5))
    model = LogisticRegression(2, bounds=(0, 100), rows=800, **settings())
    model.fit(rows, (rows[:, 0] > 1.5).astype(int), public=True)
    assert model.plan(5).scaling.norm is not None
    inside = np.clip(rows, *model.ranges_)
    origin, width = model._facts._scaling()
    short = np.linalg.norm((inside - origin) / width, axis=1) < model._facts.inner
    assert short.mean() > 0.8
    shown = inside @ model.coef_[0] + model.intercept_[0]
    assert np.allclose(shown[short], model.decision_function(rows)[short])


def test_the_guarantee_covers_the_norm():
    model = LogisticRegression(1, 1e-6, bounds=(-1, 1), rows=300, **settings())
    planned = model.plan(40)  # 300 rows for 40 columns: the norm alone
    norm = planned.scaling.norm
    assert planned.scaling.ranges is None and norm.epsilon == Fraction(1, 8)
    assert planned.facts.epsilon == Fraction(7, 8) and planned.guarantee.epsilon == 1
    assert planned.privacy_loss == Compose((LaplaceNoise(8, 1), planned.method.privacy_loss))
    assert planned.guarantee.delta == planned.facts.delta == Fraction(1, 10**6)


@pytest.mark.parametrize(
    ("rows", "share"),
    [(63, None), (91, Fraction(1, 8)), (453, Fraction(1, 8)), (910, Fraction(1, 16)), (4000, Fraction(1, 64))],
)
def test_the_share_falls_with_the_rows(rows, share):
    # At epsilon 1 and a share s, a count has noise of deviation sqrt(2)/s. 8 of these at s = 1/8 are 90.5 rows; 40 of
    # them are 452.5 rows at 1/8, 905.1 at 1/16, 3620.4 at 1/64.
    norm = LogisticRegression(1, bounds=(-1, 1), rows=rows, **settings()).plan(100).scaling.norm
    assert (norm and norm.epsilon) == share


@pytest.mark.slow
def test_real_columns_with_exact_bounds_gain_by_their_norm():
    # 30 skewed columns: rows are about a quarter as long as their bounds allow. Means of ten fits, with other noise.
    features, labels = load_breast_cancer(return_X_y=True)
    ends = features.min(axis=0), features.max(axis=0)

    def score(scaling):
        found = []
        for number in range(10):
            bits = partial(ReplayBits, str(number).encode())
            model = LogisticRegression(1, classes=[0, 1], bounds=ends, rows=569, scaling=scaling, bits=bits)
            found.append(model.fit(features, labels, public=True).score(features, labels))
        return np.mean(found)

    assert score("auto") > score("bounds") + 0.02 and score("auto") > 0.9


def test_far_rows_and_tiny_norms_stay_finite():
    # Values near the largest bounds, and rows 2^-40 of them: all that is computed from them is a number.
    rows = RNG.uniform(-1, 1, (400, 3)) * 1e-20
    for bounds in ((-1e100, 1e100), (-1e-3, 1e-3)):
        model = LogisticRegression(5, bounds=bounds, rows=400, scaling="norm", **settings())
        model.fit(np.vstack([rows, np.full((1, 3), 1e300)]), [0, 1] * 200 + [1], public=True)
        assert np.isfinite(model.decision_function(rows)).all() and math.isfinite(model._facts.factor)


def test_a_regression_uses_a_norm_that_is_half_of_the_bounds_or_less():
    # Rows in [-1, 1]^4 have lengths near 1.15 of at most 2: by bounds of twice the width 0.29 of the norm, else 0.58.
    rows = RNG.uniform(-1, 1, (2000, 4))
    for wide, used in ((1, False), (2, True)):
        model = Ridge(5, target_bounds=(-4, 4), bounds=(-wide, wide), rows=2000, bits=partial(ReplayBits, b"half"))
        model.fit(rows, rows.sum(axis=1), public=True)
        assert (model._facts.factor < 1) is used and model.score(rows, rows.sum(axis=1)) > 0.9


def test_ridge_learns_the_norm_by_default():
    rows = RNG.uniform(-1, 1, (2000, 3))
    bits = partial(ReplayBits, b"ridge")
    found = {}
    for scaling in ("bounds", "auto"):
        model = Ridge(1, target_bounds=(-3, 3), bounds=(-1000, 1000), rows=2000, scaling=scaling, bits=bits)
        found[scaling] = model.fit(rows, rows.sum(axis=1), public=True).score(rows, rows.sum(axis=1))
    assert found["auto"] > 0.8 > 0.2 > found["bounds"]
