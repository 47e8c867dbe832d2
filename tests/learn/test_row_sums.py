"""Lengths and products of rows: no rounding of one depends on another."""

from __future__ import annotations

import numpy as np
import pytest

from tacit.learn.problem import clip_row_norms
from tacit.learn.row_sums import add_columns, multiply_rows, square_lengths

RNG = np.random.default_rng(1)


def alone(of, table):
    """What each row gives in a table of its own."""
    return np.concatenate([of(np.array(row[None], order="C")) for row in table])


@pytest.mark.parametrize(("rows", "columns"), [(2, 1), (5, 2), (3, 7), (70, 39), (40, 64), (3, 9001)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_row_is_added_up_by_itself(rows, columns, order):
    # einsum adds up a Fortran-ordered table of one row in another order, and beyond 8,192 columns also one in C order
    table = np.asarray(RNG.normal(size=(rows, columns)), order=order)
    weights = RNG.normal(size=(columns, 2))
    for of in (
        add_columns,
        square_lengths,
        lambda t: multiply_rows(t, weights),
        lambda t: multiply_rows(t, weights[:, 0]),
    ):
        assert np.array_equal(of(table), alone(of, table))
    norm = float(np.median(np.sqrt(square_lengths(table))))
    assert np.array_equal(clip_row_norms(table, norm), alone(lambda t: clip_row_norms(t, norm), table))


def test_sums_are_those_of_the_numbers():
    table = np.arange(21.0).reshape(3, 7)
    # 0 + ... + 6 = 21, and 49 more in each next row
    assert add_columns(table).tolist() == [21, 70, 119]
    assert add_columns(table[:, :0]).tolist() == [0, 0, 0] and add_columns(table[:0]).shape == (0,)
    assert multiply_rows(table, np.eye(7)[:, :2]).tolist() == [[0, 1], [7, 8], [14, 15]]
    assert np.allclose(square_lengths(RNG.normal(size=(9, 5)) * 0 + 2), 20)
    assert np.isinf(square_lengths(np.array([[1e200, 0.0]]))[0])


def test_the_table_is_not_written_into():
    table = RNG.normal(size=(4, 3))
    before = table.copy()
    square_lengths(table), add_columns(table), multiply_rows(table, table[0])
    add_columns(table[:, :1])[0] = 9
    assert np.array_equal(table, before)
