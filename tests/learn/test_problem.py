"""Rows have the norm that is claimed, as real numbers, and each is read by itself."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tacit.errors import ParameterError
from tacit.learn.losses import LogisticLoss
from tacit.learn.problem import RiskMinimization, bound_rows, clip_row_norms, column_scaling, with_loss
from tacit.privacy.unit import Neighbors

TABLES = arrays(np.float64, st.tuples(st.integers(1, 6), st.integers(1, 7)), elements=st.floats(-1e6, 1e6))
NORMS = st.floats(1e-3, 1e3)


def exact_squares(rows):
    return [sum(Fraction(float(x)) ** 2 for x in row) for row in rows]


def problem(table, **changes):
    facts = {
        "labels": np.ones(len(table)),
        "loss": LogisticLoss(),
        "norm": 1.0,
        "neighbors": Neighbors.ADD_REMOVE,
        "rows": 10,
        "penalty": 1.0,
    }
    return RiskMinimization(np.asarray(table), **(facts | changes))


@pytest.mark.slow
@given(TABLES, NORMS)
@settings(max_examples=60, deadline=None)
def test_no_row_is_longer_than_the_norm_as_a_real_number(table, norm):
    assert all(square <= Fraction(norm) ** 2 for square in exact_squares(clip_row_norms(table, norm)))


@pytest.mark.slow
@given(TABLES, NORMS, st.floats(0, 0.9))
@settings(max_examples=60, deadline=None)
def test_rows_with_a_constant_have_the_norm_too(table, norm, part):
    rows = bound_rows(table, lower=-10, upper=10, norm=norm, constant=part * norm)
    assert all(square <= Fraction(norm) ** 2 for square in exact_squares(rows))
    if part > 1e-6:
        assert rows.shape[1] == table.shape[1] + 1
        np.testing.assert_allclose(rows[:, -1], part * norm, rtol=1e-12)


@pytest.mark.slow
def test_rows_at_the_very_edge_of_the_norm_are_safe():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(300, 50))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)  # of norm one up to rounding, above or below
    assert any(square > 1 for square in exact_squares(rows))
    assert all(square <= 1 for square in exact_squares(clip_row_norms(rows, 1.0)))


def test_short_rows_are_the_same_array():
    rows = np.array([[0.1, 0.2], [0.3, -0.4]])
    assert clip_row_norms(rows, 1.0) is rows
    assert np.shares_memory(problem(rows).features, rows)


def test_shortening_twice_changes_nothing_more():
    once = clip_row_norms(np.array([[3.0, 4.0], [0.1, 0.0]]), 1.0)
    assert clip_row_norms(once, 1.0) is once
    np.testing.assert_allclose(once, [[0.6, 0.8], [0.1, 0.0]], rtol=1e-13)


def test_columns_are_scaled_by_their_declared_bounds():
    # an indicator stays; 17..90 goes to 0..1; -3..3 to -1..1; -90..-17 to -1..0; a constant goes to 0
    lower, upper = [0, 17, -3, -90, 5], [1, 90, 3, -17, 5]
    rows = bound_rows([lower, upper], lower=lower, upper=upper, norm=10.0)
    assert rows.tolist() == [[0, 0, -1, -1, 0], [1, 1, 1, 0, 0]]
    assert [part.tolist() for part in column_scaling(lower, upper, 5)] == [[0, 17, 0, -17, 5], [1, 73, 3, 73, 1]]


def test_values_beyond_the_bounds_are_clipped_and_missing_ones_are_read_by_rule():
    rows = bound_rows([[math.inf, -5.0], [math.nan, 0.5]], lower=0, upper=1, norm=10.0, missing=0.25)
    assert rows.tolist() == [[1, 0], [0.25, 0.5]]
    assert bound_rows([[math.nan]], lower=0, upper=1, norm=10.0, missing=7.0).tolist() == [[1]]
    with pytest.raises(ParameterError, match="missing"):
        bound_rows([[math.nan]], lower=0, upper=1, norm=1.0)


@pytest.mark.slow
@given(TABLES, NORMS, st.integers(0, 5))
@settings(max_examples=40, deadline=None)
def test_a_row_is_read_by_itself(table, norm, place):
    # what the other rows are changes nothing: neighbors stay neighbors
    row = table[place % len(table)]
    together = bound_rows(table, lower=-100, upper=50, norm=norm, constant=norm / 4)[place % len(table)]
    assert bound_rows(row[None, :], lower=-100, upper=50, norm=norm, constant=norm / 4)[0].tolist() == together.tolist()


def test_the_input_is_left_as_it_was():
    table = np.array([[math.nan, 50.0]])
    bound_rows(table, lower=0, upper=1, norm=0.1, missing=0)
    assert math.isnan(table[0, 0]) and table[0, 1] == 50


def test_every_problem_has_the_bound():
    assert all(square <= 1 for square in exact_squares(problem([[3.0, 4.0]]).features))


def test_under_replace_the_number_of_rows_is_the_true_one():
    with pytest.raises(ParameterError, match="rows"):
        problem([[0.0]], neighbors=Neighbors.REPLACE, rows=2)
    assert problem([[0.0]], neighbors=Neighbors.REPLACE, rows=1).rows == 1
    assert problem([[0.0]], rows=1_000_000).rows == 1_000_000


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"norm": 0.0}, "norm"),
        ({"norm": 1e200}, "norm"),
        ({"penalty": -1.0}, "penalty"),
        ({"penalty": math.inf}, "penalty"),
        ({"rows": 0}, "rows"),
        ({"labels": np.zeros(1)}, "labels"),
        ({"labels": np.ones(2)}, "features"),
    ],
)
def test_what_makes_no_problem_is_refused_by_name(change, named):
    with pytest.raises(ParameterError, match=f"{named}:"):
        problem([[0.5]], **change)


def test_features_that_are_not_finite_are_refused():
    for bad in (math.nan, math.inf):
        with pytest.raises(ParameterError, match="finite"):
            problem([[bad]])


@pytest.mark.parametrize("bounds", [(1, 0), (0, math.inf), ([0, 0], [1, 1]), ("a", "b")])
def test_bounds_that_are_none_are_refused(bounds):
    with pytest.raises(ParameterError, match="bounds"):
        bound_rows([[1.0, 2.0, 3.0]], lower=bounds[0], upper=bounds[1], norm=1.0)


def test_a_plan_is_for_one_problem():
    known = problem([[0.5]])
    facts = (LogisticLoss(), 1.0, Neighbors.ADD_REMOVE, 1.0)
    assert with_loss(known, facts, LogisticLoss()).features is known.features
    assert with_loss(known, facts, LogisticLoss(0.5)).loss == LogisticLoss(0.5)
    for other in (problem([[0.5]], norm=2.0), problem([[0.5]], penalty=2.0), problem([[0.5]], loss=LogisticLoss(0.9))):
        with pytest.raises(ParameterError, match="planned"):
            with_loss(other, facts, LogisticLoss())
