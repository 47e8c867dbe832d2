"""Sums over rows are exact: in any order, and one row moves them by what the theorem says."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.learn.losses import Array, ConvexLoss, HuberLoss, LogisticLoss, MultinomialLoss, SmoothedHinge
from tacit.learn.sums import EXPONENT, ROW_BITS, QuantizedRows, quantize, round_weights, split_in_units

LOSSES: list[ConvexLoss] = [LogisticLoss(), SmoothedHinge(), HuberLoss(1.0), MultinomialLoss(3), MultinomialLoss(20)]


def some(count: int, width: int, seed: int = 0) -> Array:
    generator = np.random.default_rng(seed)
    found = generator.normal(size=(count, width))
    return np.asarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def labels_for(loss: ConvexLoss, count: int) -> Array:
    generator = np.random.default_rng(5)
    if isinstance(loss, MultinomialLoss):
        return generator.integers(0, loss.classes, count).astype(float)
    return generator.choice([-1.0, 1.0], count)


def test_a_pull_is_the_sum_of_whole_numbers() -> None:
    # the same by Python's integers
    rows, residuals = QuantizedRows.of(some(300, 7), 1.0), np.random.default_rng(1).uniform(-1, 1, 300)
    units = quantize(residuals, 1.0)
    slow = [sum(int(rows.units[i, j]) * int(units[i]) for i in range(300)) for j in range(7)]
    assert rows.pull(residuals, 1.0).tolist() == slow


def test_the_order_of_rows_and_blocks_changes_no_bit() -> None:
    features, residuals = some(20_000, 5), np.random.default_rng(1).uniform(-1, 1, (20_000, 3)) / 2
    mixed = np.random.default_rng(2).permutation(20_000)
    one, other = QuantizedRows.of(features, 1.0), QuantizedRows.of(features[mixed], 1.0)
    assert np.array_equal(one.pull(residuals, 1.0), other.pull(residuals[mixed], 1.0))
    assert np.array_equal(one.gram(), other.gram())
    # doubles added up without a grid do not have that
    naive = features.T @ residuals
    assert not np.array_equal(naive, features[mixed].T @ residuals[mixed])


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: type(loss).__name__)
def test_a_row_has_the_same_residual_wherever_it_stands(loss: ConvexLoss) -> None:
    # the rest of the proof: the score is exact, and the residual is a function of score and label
    features, labels = some(4099, 6), labels_for(loss, 4099)
    generator = np.random.default_rng(3)
    weights = round_weights(generator.normal(size=(6,) if loss.outputs == 1 else (6, loss.outputs)) * 7)
    rows = QuantizedRows.of(features, 1.0)
    whole = loss.residuals(rows.scores(weights, slice(0, 4099)), labels)
    for start, end in [(0, 1), (1, 2), (3, 11), (17, 4099), (2049, 4001), (4096, 4099)]:
        part = loss.residuals(rows.scores(weights, slice(start, end)), labels[start:end])
        assert np.array_equal(part, whole[start:end])


def test_scores_are_exact() -> None:
    rows, weights = QuantizedRows.of(some(50, 9), 3.0), round_weights(np.random.default_rng(4).normal(size=9) * 1e3)
    exact = [
        sum(Fraction(float(u)) * Fraction(float(w)) for u, w in zip(row, weights, strict=True)) for row in rows.units
    ]
    found = rows.scores(weights, slice(0, 50))
    # one rounding, in the product with the norm
    assert found.tolist() == [float(value * 2**32) * (3.0 * 2.0**-52) for value in exact]
    assert np.max(np.abs(round_weights(weights) - weights)) == 0


@pytest.mark.slow
@settings(max_examples=50)
@given(st.integers(1, 40), st.integers(0, 2**32 - 1), st.floats(1e-3, 1e3), st.floats(0.5, 4))
def test_no_row_is_longer_than_its_bound(width: int, seed: int, norm: float, longer: float) -> None:
    units = quantize(some(20, width, seed) * norm * longer, norm)
    assert all(sum(int(value) ** 2 for value in row) <= 4**ROW_BITS for row in units)
    if longer < 0.999:
        # truncation loses less than a unit a coordinate
        assert np.all(
            np.abs(units * norm / 2**ROW_BITS - some(20, width, seed) * norm * longer) < norm / 2**ROW_BITS * 1.001
        )


@pytest.mark.slow
@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1))
def test_a_neighbor_moves_a_sum_by_at_most_its_sensitivity(seed: int) -> None:
    generator = np.random.default_rng(seed)
    features, residuals = some(30, 4, seed), generator.choice([-1.0, 1.0, 0.3], 30)
    more, fewer = QuantizedRows.of(features, 1.0), QuantizedRows.of(features[1:], 1.0)
    moved = more.pull(residuals, 1.0) - fewer.pull(residuals[1:], 1.0)
    assert sum(int(value) ** 2 for value in moved) <= 4**EXPONENT
    gram = more.gram() - fewer.gram()
    assert sum(int(value) ** 2 for value in gram.ravel()) <= 4**EXPONENT


def test_the_sensitivity_is_reached() -> None:
    # a row along an axis with a residual of one: 2^40 units, not less
    rows = QuantizedRows.of(np.array([[1.0, 0.0]]), 1.0)
    assert rows.pull(np.array([1.0]), 1.0).tolist() == [2**EXPONENT, 0]
    assert rows.gram().tolist() == [[2**EXPONENT, 0], [0, 0]]


def test_no_rows_add_up_to_nothing() -> None:
    rows = QuantizedRows.of(np.zeros((0, 3)), 1.0)
    assert rows.pull(np.zeros(0), 1.0).tolist() == [0, 0, 0]
    assert rows.gram().shape == (3, 3)


def test_a_sample_adds_up_its_own_rows() -> None:
    features, residuals = some(9000, 3), np.random.default_rng(1).uniform(-1, 1, 9000)
    kept = np.random.default_rng(2).uniform(size=9000) < 0.3
    sampled = QuantizedRows.of(features, 1.0).pull(residuals, 1.0, kept)
    assert np.array_equal(sampled, QuantizedRows.of(features[kept], 1.0).pull(residuals[kept], 1.0))


@pytest.mark.slow
def test_the_parts_of_a_number_add_up_to_it() -> None:
    numbers = np.random.default_rng(3).uniform(-3, 3, 2000).astype(np.longdouble) * (1 + np.finfo(np.longdouble).eps)
    numbers = np.concatenate([numbers, np.longdouble([3, -3, 1]) * (1 - np.finfo(np.longdouble).eps), [0, 3, -3]])
    found = split_in_units(numbers[:, None], 3.0, 3)
    assert np.all(np.abs(found) <= 2**20) and np.all(found == np.trunc(found))
    for number, parts in zip(numbers, found, strict=True):
        total = sum(Fraction(int(part), 2 ** (20 * size)) for part, size in zip(parts, (1, 2, 3), strict=True))
        exact = sum(Fraction(float(part)) for part in (number, number - np.longdouble(float(number))))
        # dividing by the bound is one rounding
        assert abs(3 * total - exact) <= 3 * (Fraction(1, 2**60) + Fraction(float(np.finfo(np.longdouble).eps)))


def test_short_blocks_are_exact_and_cover_every_row() -> None:
    rows = QuantizedRows.of(some(3000, 100), 1.0)
    places = np.concatenate([np.arange(3000)[block] for block in rows.short_blocks()])
    assert np.array_equal(places, np.arange(3000))
    assert all(block.stop - block.start <= 2**13 for block in rows.short_blocks())
