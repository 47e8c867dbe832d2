"""Bins of columns: from declared bounds alone, whatever values are."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.learn.tree_bins import ColumnBins


@given(st.floats(), st.sampled_from([(0.0, 1.0), (-1e308, 1e308), (0.0, 5e-324), (1e15, 1e15 + 1), (3.0, 3.0)]))
def test_every_value_has_a_bin(value, ends):
    bins = ColumnBins.of([ends[0], 0.0], [ends[1], 6.0], most=7, categorical=[1])
    with np.errstate(all="ignore"):
        found = bins.read(np.clip(np.array([[value, value]]), *ends))
    assert np.all((found >= 0) & (found < bins.counts))


def test_ends_of_bins_are_where_places_change():
    bins = ColumnBins.of([-3.0], [5.0], most=16)
    for place in range(15):
        edge = bins.edge(0, place)
        below, above = edge - 1e-9, edge + 1e-9
        assert bins.read(np.array([[below], [above]])).ravel().tolist() == [place, place + 1]
    assert bins.read(np.array([[-3.0], [5.0]])).ravel().tolist() == [0, 15]


def test_categories_are_whole_numbers_between_the_bounds():
    bins = ColumnBins.of([0.0, 2.0, 0.0], [1.0, 5.0, 9.0], most=255, categorical=[False, True, False])
    assert bins.counts == (255, 4, 255)
    assert bins.read(np.array([[0.0, 4.0, 9.0]])).tolist() == [[0, 2, 254]]
    assert bins.edge(1, 2) == 4


@pytest.mark.parametrize("wrong", [[3], [-1], [0.5], ["age"], 7, [True], [[0]]])
def test_places_that_are_no_columns_are_refused(wrong):
    with pytest.raises(ParameterError, match="categorical_features") as caught:
        ColumnBins.of([0.0, 0.0], [1.0, 1.0], most=255, categorical=wrong)
    assert "categorical_features=[0, 3]" in caught.value.fix


@pytest.mark.parametrize("ends", [(0.0, 0.5), (0.0, 1e6), (0.25, 3.0)])
def test_bounds_that_hold_no_categories_are_refused(ends):
    with pytest.raises(ParameterError, match="column 0 has bounds that are not whole numbers"):
        ColumnBins.of([ends[0]], [ends[1]], most=255, categorical=[0])


@pytest.mark.parametrize("most", [1, 5000, 2.5, "many"])
def test_numbers_of_bins_have_limits(most):
    with pytest.raises(ParameterError, match="max_bins"):
        ColumnBins.of([0.0], [1.0], most=most)
