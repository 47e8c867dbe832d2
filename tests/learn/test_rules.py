"""The constants of the default rules are those that were settled on made-up data, in the way that is told."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from tests.support.counts import FULL

from tacit import learn
from tacit.learn import gradient, newton
from tacit.learn.auto import THRESHOLDS
from tacit.sampling.bits import ReplayBits

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "benchmarks"))

import rules  # noqa: E402 - found by the line above
import rules_family  # noqa: E402 - found by the line above
import rules_report  # noqa: E402 - found by the line above

PAGE = (ROOT / "benchmarks" / "rules.md").read_text(encoding="utf-8")
SETTLED = dict(re.findall(r"^\| `([\w.]+)` +\| (\S+) ", PAGE, re.MULTILINE))


def in_code(key: str):
    """The value that the package has."""
    place, name = key.split(".")
    if place == "Rule":
        return getattr(THRESHOLDS, name)
    if place.islower():
        return getattr(importlib.import_module(f"tacit.learn.{place}"), name)
    return inspect.signature(getattr(learn, place)).parameters[name].default


@pytest.mark.parametrize("key", [constant.key for constant in rules.CONSTANTS])
def test_a_constant_is_what_was_settled(key):
    assert float(in_code(key)) == float(Fraction(SETTLED[key]))


def test_the_page_has_every_constant_and_no_other():
    assert list(SETTLED) == [constant.key for constant in rules.CONSTANTS]
    assert PAGE.startswith(rules_report.HEAD)


def test_a_constant_feature_has_one_scale_for_all_estimators():
    scales = {
        inspect.signature(kind).parameters["intercept_scaling"].default for kind in (learn.LinearSVC, learn.Ridge)
    }
    assert scales == {in_code("LogisticRegression.intercept_scaling")}


def test_no_real_data_is_read():
    for name in ("rules.py", "rules_family.py", "rules_report.py"):
        text = (ROOT / "benchmarks" / name).read_text(encoding="utf-8")
        assert not re.search(r"adult|csv|parquet|read_|\bopen\(", text)


def errors(*pairs: tuple[float, float]) -> np.ndarray:
    return np.array(pairs)


def test_the_least_mean_error_wins():
    # 2 is better than 1 by one point on each problem: a standard error of 0
    assert rules.choice({1: errors((11, 0), (21, 0)), 2: errors((10, 5), (20, 5))}) == 2


def test_within_a_standard_error_the_best_probabilities_win():
    # differences of 1 and -0.5: a mean of 0.25, a deviation of 0.75 sqrt 2, a standard error of 0.75
    one, two = errors((11, 1), (19.5, 1)), errors((10, 5), (20, 5))
    assert rules.choice({1: one, 2: two}) == 1
    # differences of 1 and 0.9: a mean of 0.95, a standard error of 0.05
    assert rules.choice({1: errors((11, 1), (20.9, 1)), 2: two}) == 2


def test_a_regression_has_no_probabilities_and_takes_the_least():
    nothing = float("nan")
    one, two = errors((11, nothing), (19.5, nothing)), errors((10, nothing), (20, nothing))
    assert rules.choice({1: one, 2: two}) == 2


def test_the_package_has_other_constants_only_for_a_while():
    before = gradient._REACH, newton._FLOOR
    with rules.having({"gradient._REACH": 77.0, "newton._FLOOR": 7.0, "Rule.plenty": 1.0}):
        assert (gradient._REACH, newton._FLOOR) == (77.0, 7.0)
    assert before == (gradient._REACH, newton._FLOOR)


def test_the_halves_are_other_problems_of_every_shape():
    first, second = rules_family.family(0), rules_family.family(1)
    assert not {kind.seed for kind in first} & {kind.seed for kind in second}
    for half in (first, second):
        assert {kind.shape for kind in half} == set(rules_family.SHAPES)
        assert {epsilon for kind in half for epsilon in kind.epsilons} == {0.1, 0.3, 1.0, 3.0}
        assert max(kind.rows * kind.columns for kind in half) <= rules_family.CELLS
    assert rules_family.family(0) == first  # the same every time


@pytest.mark.parametrize("shape", rules_family.SHAPES)
def test_labels_follow_the_truth(shape):
    kind = next(kind for kind in rules_family.family(0) if kind.shape == shape)
    found = rules_family.drawn(replace(kind, classes=2, rows=4_000))
    assert found.features.shape == (4_000, kind.columns) and found.test.shape == (rules_family.TESTS, kind.columns)
    assert np.allclose(found.truth.sum(axis=1), 1)
    # 4,000 labels and the mean of 4,000 other probabilities: the difference has a deviation of at most
    # 0.5 sqrt(1/4000 + 1/4000) = 0.0112, and is within 6.1 of them but once in 1e9
    assert abs(found.labels.mean() - found.truth[:, 1].mean()) < 6.1 * 0.0112


@pytest.mark.slow
def test_fits_of_one_plan_are_made_once():
    bench = rules.Bench(quick=True)
    bench.families[""] = [[replace(bench.half("", 0)[0], rows=500)]] * 2
    constant = replace(rules.CONSTANTS[3], candidates=(10**6, 10**7))  # the most steps: neither is reached
    assert constant.key == "gradient._MOST"
    found = bench.tried(constant, 0)
    assert np.array_equal(*found.values())
    assert len(bench._fitted) == 2 * 2  # two epsilons, two fits each
    few = bench.tried(replace(constant, candidates=(1,)), 0)
    assert not np.array_equal(few[1], found[10**6])


@pytest.mark.skipif(not FULL, reason="half a minute")
def test_a_quick_run_settles_every_constant():
    lines = rules.settled(quick=True)
    assert [line.constant.key for line in lines] == list(SETTLED)
    assert all(line.value in line.constant.candidates[:2] for line in lines)
    assert rules_report.markdown(lines).startswith(rules_report.HEAD)


@pytest.mark.slow
def test_a_minimum_is_found_where_the_random_term_cancels_the_losses():
    # 2,000 rows in 200 columns, of which a random term takes the sum of losses from 1,386 to 7.5: that small number is
    # known to no more digits than the large ones, and a step that it does not tell of is one all the same
    kind = next(kind for kind in rules_family.family(1) if kind.seed == 1815)
    problem = rules_family.drawn(kind)
    public = {"bounds": problem.bounds, "norm": problem.norm, "neighbors": kind.neighbors, "classes": [0, 1]}
    bits = ReplayBits(f"{kind.seed} 1.0 0".encode())
    model = learn.LogisticRegression(1.0, C=1 / 33.36284098751767, method="objective", bits=bits, **public)
    assert model.fit(problem.features, problem.labels).coef_.shape == (1, 200)
