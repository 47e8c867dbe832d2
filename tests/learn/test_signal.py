"""The warning of a fit that learned next to nothing: when it comes, and that its fix works."""

from __future__ import annotations

import re
import warnings
from fractions import Fraction
from functools import partial

import numpy as np
import pytest

from tacit.learn import LogisticRegression, NoSignalWarning, Ridge
from tacit.learn.gradient import single_release_sigma
from tacit.learn.signal import FAINT, FAINT_UNSCALED
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

RNG = np.random.default_rng(11)
ROWS = RNG.uniform(-1, 1, (4000, 4))
SIDE = (ROWS @ [2.0, -1.0, 0.5, 1.0] > 0).astype(int)


def model(epsilon, rows, **more) -> LogisticRegression:
    bits = partial(ReplayBits, b"signal")
    return LogisticRegression(epsilon, classes=[0, 1], rows=rows, **{"bounds": (-1, 1), "bits": bits, **more})


def warned(estimator, rows, target=SIDE) -> list[NoSignalWarning]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        estimator.fit(ROWS[:rows], target[:rows], public=True)
    return [each.message for each in caught if isinstance(each.message, NoSignalWarning)]


def test_the_figure_is_noise_over_signal():
    # delta 1/rows^2 = 4e-4 at epsilon 0.1: sigma is about 20; sqrt(5 weights) * 20/50 rows = 0.9
    ratio = model(0.1, 50, scaling="bounds").plan(4).noise_to_signal
    sigma = single_release_sigma(Fraction(1, 10), Fraction(1, 2500), Neighbors.ADD_REMOVE)
    assert ratio == pytest.approx(5**0.5 * float(sigma) / 50)


@pytest.mark.slow
def test_noise_as_large_as_the_signal_is_said_before_data_is_used():
    [found] = warned(model(0.1, 50), 50)
    assert found.code == "no-signal" and "of the most that 50 rows could say of 5 weights" in found.what
    assert found.what.endswith("the model has learned next to nothing")


@pytest.mark.slow
@pytest.mark.parametrize("change", ["epsilon", "rows"])
def test_with_the_fix_a_fit_learns_and_does_not_warn(change):
    [found] = warned(model(0.1, 50), 50)
    epsilon, rows = re.fullmatch(r"epsilon=(\S+) with these rows, or (\S+) rows with .*", found.fix).groups()
    count = 50 if change == "epsilon" else int(rows.replace(",", ""))
    fixed = model(float(epsilon) if change == "epsilon" else 0.1, count)
    assert count <= len(ROWS) and not warned(fixed, count)
    assert fixed.score(ROWS, SIDE) > 0.8


def test_tight_bounds_are_named_where_the_norm_cannot_be_learned():
    # 80 rows at epsilon 1: 8 deviations of a count at an eighth of epsilon are 90.5 rows, so nothing is learned
    unscaled = model(1, 80)
    assert FAINT_UNSCALED < unscaled.plan(4).noise_to_signal < FAINT
    assert warned(unscaled, 80)[0].what.endswith("unless the bounds are tight")
    for known in ({"scaling": "bounds"}, {"norm": 2}):  # whoever says so knows the bounds
        assert not warned(model(1, 80, **known), 80)


def test_a_regression_warns_too():
    ridge = Ridge(0.1, target_bounds=(-5, 5), bounds=(-1, 1), rows=50)
    assert len(warned(ridge, 50, ROWS.sum(axis=1))) == 1
    assert not warned(ridge.set_params(epsilon=20), 50, ROWS.sum(axis=1))


def test_the_warning_does_not_depend_on_the_rows():
    texts = {str(warned(model(0.1, 50), 50, target)[0]) for target in (SIDE, 1 - SIDE, SIDE[::-1])}
    assert len(texts) == 1
