"""What is declared, how rows are read, and what each missing declaration says."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.learn.facts import DeclaredParameters
from tacit.privacy.unit import Neighbors

GOOD = {"columns": 2, "found": 50, "epsilon": 1, "bounds": (0, 1), "rows": 100}


def facts(**more) -> DeclaredParameters:
    return DeclaredParameters.from_settings(**{**GOOD, **more})


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"epsilon": None}, "epsilon: is not declared"),
        ({"epsilon": 0}, "epsilon: must be positive"),
        ({"epsilon": -1.5}, "epsilon: must be positive"),
        ({"epsilon": float("nan")}, "epsilon: needs a finite number"),
        ({"epsilon": "1"}, "epsilon: needs a number"),
        ({"delta": 1}, r"delta: must be in \[0, 1\)"),
        ({"delta": -1e-9}, r"delta: must be in \[0, 1\)"),
        ({"rows": None}, "rows: is not declared"),
        ({"rows": 0}, "rows: must be at least 1"),
        ({"rows": 10.5}, "rows: needs an integer"),
        ({"bounds": None}, "bounds: are not declared"),
        ({"bounds": (0, [1, 2, 3])}, "bounds: do not fit 2 columns"),
        ({"bounds": 3}, "bounds: do not fit 2 columns"),
        ({"bounds": (1, 0)}, "bounds: must be finite, the lower end first"),
        ({"bounds": (0, math.inf)}, "bounds: must be finite"),
        ({"norm": 0}, "norm: must be a positive number"),
        ({"neighbors": "swap"}, "neighbors: is not a neighbor relation"),
        ({"neighbors": "replace"}, "rows: under replace the number of rows is public"),
        ({"missing": "mean"}, "missing: needs a number"),
        ({"intercept": -1}, "intercept_scaling: must be at least 0"),
    ],
    ids=str,
)
def test_what_is_wrong_is_said_with_a_fix(wrong, says):
    with pytest.raises(ParameterError, match=says) as caught:
        facts(**wrong)
    assert caught.value.fix


def test_delta_is_one_over_the_square_of_rows_where_none_is_declared():
    assert facts().delta == Fraction(1, 10_000)
    assert facts(delta=1e-9).delta == Fraction(1, 10**9)


def test_a_delta_that_allows_publishing_a_row_is_warned_of():
    with pytest.warns(UserWarning, match="publishing a row at random would satisfy it"):
        facts(delta=0.01)
    assert facts(delta=0.0099).delta  # below 1/100: no warning


def test_rows_are_counted_under_replace_and_declared_under_add_remove():
    assert facts(neighbors="replace", rows=None).rows == 50
    assert facts(neighbors=Neighbors.REPLACE, rows=50).rows == 50
    assert facts().rows == 100  # the 50 that are there are not looked at


def test_the_norm_counts_columns_that_vary():
    # Two columns in [-1, 1] have a norm of sqrt(2); a constant one is read as 0.
    assert facts().inner == pytest.approx(math.sqrt(2))
    assert facts(bounds=([0, 5], [1, 5])).inner == 1
    assert facts(norm=1).inner == 1
    assert facts(norm=9).inner == pytest.approx(math.sqrt(2))  # none is longer
    # The constant is half of the norm: sqrt(1 + 1/4).
    assert facts(norm=1).norm == pytest.approx(math.sqrt(1.25))
    assert facts(norm=1, intercept=0).norm == pytest.approx(1)


def test_a_norm_alone_is_that_of_the_rows_themselves():
    known = facts(bounds=None, norm=5)
    assert known.read(np.array([[3.0, 4.0], [6.0, 8.0]]))[:, :2] == pytest.approx(
        np.array([[0.6, 0.8], [0.6, 0.8]]), abs=1e-12
    )


number = st.floats(-1e6, 1e6)


@pytest.mark.slow
@given(
    st.lists(st.tuples(number, number), min_size=1, max_size=20),
    st.tuples(st.floats(-100, 0), st.floats(1, 100)),
    st.one_of(st.none(), st.floats(0.01, 3)),
    st.sampled_from([0, 0.5, 2]),
    st.integers(0, 10),
)
def test_rows_are_within_the_norm_and_read_one_by_one(rows, bounds, norm, intercept, seed):
    known = facts(bounds=bounds, norm=norm, intercept=intercept)
    table = np.array(rows)
    read = known.read(table)
    assert np.all(np.linalg.norm(read, axis=1) <= known.norm)
    # A row's reading does not depend on the others.
    order = np.random.default_rng(seed).permutation(len(rows))
    assert np.array_equal(known.read(table[order]), read[order])
    assert np.array_equal(known.read(table[:1]), read[:1])


@pytest.mark.slow
@given(st.lists(st.tuples(number, number), min_size=1, max_size=20), st.sampled_from([0, 0.5]), st.sampled_from([1, 3]))
def test_coefficients_in_own_units_say_the_same(rows, intercept, outputs):
    known = facts(bounds=([-7, 3], [50, 4]), norm=1.2, intercept=intercept)
    weights = np.random.default_rng(1).normal(size=(known.width,) if outputs == 1 else (known.width, outputs))
    coefficients, constant = known.in_units(weights)
    table = np.array(rows)
    assert known.read_unscaled(table) @ coefficients + constant == pytest.approx(known.read(table) @ weights, abs=1e-9)


def test_a_missing_value_is_read_as_declared():
    table = np.array([[np.nan, 0.5]])
    assert facts(missing=0.25).read(table)[0, 0] == 0.25
    assert facts(missing=7).read(table)[0, 0] == 1  # within the bounds, like any other
    with pytest.raises(ParameterError, match="a value is missing"):
        facts().read(table)
