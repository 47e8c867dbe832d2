"""Candidates for splits: their scores by brute force, and what one row moves them by, over all tiny tables."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tacit.learn.tree_bins import ColumnBins
from tacit.learn.tree_release import quantize_residuals
from tacit.learn.tree_splits import SplitKind, list_candidates, score_candidates, sum_leaves

BINS = ColumnBins.of([0.0, 0.0, 0.0], [1.0, 3.0, 1.0], most=4, categorical=[1, 2])
UNIT = 2**20


def scored(places, leaves, count, residuals):
    candidates = list_candidates(BINS, count, 64)
    return candidates, score_candidates(BINS, candidates, places, leaves, count, residuals)


def test_candidates_are_ends_of_bins_and_categories():
    kinds = [(split.column, split.kind, split.ways) for split in list_candidates(BINS, 1, 64)]
    assert kinds.count((0, SplitKind.ABOVE, 2)) == 3 and kinds.count((1, SplitKind.EQUALS, 2)) == 4
    assert kinds.count((1, SplitKind.EACH, 4)) == 1 and kinds.count((2, SplitKind.EACH, 2)) == 1
    assert len(kinds) == 9
    assert (1, SplitKind.EACH, 4) not in [(s.column, s.kind, s.ways) for s in list_candidates(BINS, 1, 3)]


@pytest.mark.parametrize("outputs", [1, 3])
def test_scores_are_those_of_a_plain_loop(outputs):
    draw = np.random.default_rng(3)
    places = np.column_stack([draw.integers(0, count, 50) for count in BINS.counts])
    leaves, residuals = draw.integers(0, 3, 50), draw.integers(-9, 10, (50, outputs)).astype(float)
    candidates, scores = scored(places, leaves, 3, residuals)
    for split, score in zip(candidates, scores, strict=True):
        parts = split.route(places)
        expected = sum(
            abs(sum(residuals[row, output] for row in range(50) if leaves[row] == leaf and parts[row] == part))
            for leaf in range(3)
            for part in range(split.ways)
            for output in range(outputs)
        )
        assert score == expected


def largest_move(residual, relation):
    """The most that a score moves between neighbors, over tables of up to two rows; `residual` is the largest."""
    rows = [(place, size) for place in range(4) for size in (-residual, residual)]
    most = 0
    for table in itertools.product(rows, repeat=1):
        if relation == "replace":
            pairs = (([*table, one], [*table, other]) for one, other in itertools.product(rows, repeat=2))
        else:
            pairs = ((list(table), [*table, one]) for one in rows)
        for one, other in pairs:
            most = max(most, np.abs(_scores_of(one) - _scores_of(other)).max())
    return most


def _scores_of(rows):
    places = np.array([[place, place, place % 2] for place, _ in rows])
    residuals = np.array([[float(size)] for _, size in rows])
    return scored(places, np.zeros(len(rows), dtype=np.int64), 1, residuals)[1]


@pytest.mark.slow
def test_one_row_moves_no_score_by_more_than_its_residual():
    # A row of residual m is in one leaf of each candidate, whose |S| moves by m at most; a replacement is two of these.
    assert largest_move(UNIT, "add-remove") == UNIT
    assert largest_move(UNIT, "replace") == 2 * UNIT
    assert largest_move(UNIT + 1, "add-remove") > UNIT  # one unit too many would be seen


def test_residuals_beyond_their_bound_are_cut_to_it():
    wild = np.array([[1.0], [1 + 1e-9], [-5.0], [np.nan], [np.inf], [0.9999999]])
    assert np.abs(quantize_residuals(wild, 1)).max() == UNIT
    # 1e308 in each of five outputs, or residuals of a class that rounding made longer than 2 in L1
    draw = np.random.default_rng(4)
    several = np.vstack([np.full((1, 5), 1e308), 2 * draw.dirichlet(np.ones(5), 2000) * (1 + 1e-12), -np.ones((1, 5))])
    whole = quantize_residuals(several, 2)
    assert np.abs(whole).sum(axis=1).max() <= 2 * UNIT and np.all(whole == np.trunc(whole))
    assert np.all(np.abs(whole[1:-1]) <= np.abs(several[1:-1]) * UNIT * (1 + 1e-12))  # toward zero


def test_sums_of_leaves_are_exact():
    leaves = np.array([0, 1, 1, 0])
    values = np.array([[2.0**52], [1.0], [2.0], [1.0]])
    assert sum_leaves(leaves, 3, values).ravel().tolist() == [2**52 + 1, 3, 0]
