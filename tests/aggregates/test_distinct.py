"""Aggregates of DISTINCT values: what they measure, how far one unit moves it by brute force, and what bars cover."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest

from tacit.aggregates.base import BoundAggregate, Estimator, ReleasedVector, Releases, VectorMeasurement
from tacit.aggregates.registry import function_of
from tacit.engines.reference import _cell
from tacit.mechanisms.laplace import Laplace
from tacit.plan.contribution import vector_l1_sensitivity, vector_l2_sensitivity
from tacit.plan.declared_columns import read_as_declared
from tacit.policy.model import Column as Declared
from tacit.privacy.sensitivity import ContributionBounds
from tacit.privacy.unit import Neighbors
from tacit.query.nodes import Aggregate, ColumnReference
from tacit.query.types import Type
from tacit.sampling import laplace
from tacit.sampling.bits import ReplayBits

FUNCTIONS = ["sum", "avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop"]
X = Declared("x", Type.INT, Fraction(-1), Fraction(2))
WIDE = Declared("x", Type.FLOAT, Fraction(-5), Fraction(20), Fraction(1, 2))
STILL = Laplace(Fraction(1, 10**6))


def bound(function: str, column: Declared = X) -> BoundAggregate:
    argument = read_as_declared(column, ColumnReference("x"))
    return BoundAggregate(Aggregate(function, ColumnReference("x"), distinct=True), argument, None, of_unit=False)


def measured(function: str, column: Declared = X) -> tuple[VectorMeasurement, ...]:
    asked = bound(function, column)
    found = function_of(asked.aggregate).measure(asked, frozenset())
    return tuple(part for part in found if isinstance(part, VectorMeasurement))


def estimator(function: str, column: Declared = X) -> Estimator:
    asked, parts = bound(function, column), measured(function, column)
    return function_of(asked.aggregate).estimator(asked, parts, list(range(len(parts))))


def exact(part: VectorMeasurement, values: Sequence[Any]) -> int:
    """The number of a group of rows with these values."""
    rows = [{"x": value} for value in values]
    return sum(factor * int(_cell(measure, rows, None)) for factor, measure in part.terms)  # type: ignore[arg-type]  # no histogram


GROUPS = [rows for size in range(3) for rows in combinations_with_replacement([-1, 0, 2, None], size)]


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("function", ["sum", "avg", "var_pop"])
def test_no_unit_moves_more_than_is_charged_for_and_some_unit_as_much(function: str, neighbors: Neighbors) -> None:
    # Two groups, a unit of at most two rows in each of them, and others in front of whom it stands: all there are.
    each, groups = ContributionBounds(2, 2), 2
    others = [(), (-1,), (0,), (2,), (-1, 2)]
    for part in measured(function):
        cells = {(other, own): exact(part, [*other, *own]) for other in others for own in GROUPS}
        charged = vector_l1_sensitivity(part, each, neighbors, groups)
        shift, coordinates = vector_l2_sensitivity(part, each, neighbors, groups)
        largest = 0
        for other in others:
            moves = {
                cells[other, new] - cells[other, old]
                for old, new in product(GROUPS, GROUPS)
                if neighbors is Neighbors.REPLACE or not old
            }
            for one, two in product(moves, moves):
                assert abs(one) + abs(two) <= charged
                assert one**2 + two**2 <= shift**2 * coordinates
            largest = max(largest, *map(abs, moves))
        # One row moves it by as much as it says; two rows of one value are one value.
        assert largest >= max(abs(part.lower), abs(part.upper))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_without_noise_it_is_numpys(function: str) -> None:
    values = [1.5, -5, 20, 20, 3, 3, 3, None, 8.5]
    sums = [[exact(part, values)] for part in measured(function, WIDE)]
    parts = Releases(ReleasedVector(part.name, STILL, part.unit) for part in measured(function, WIDE))
    _, middle, _ = estimator(function, WIDE).estimate(sums, parts, Fraction(9, 10))
    once = np.array([1.5, -5, 20, 3, 8.5])
    ddof = 1 if function.endswith("_samp") else 0
    wanted = {"sum": once.sum(), "avg": once.mean()} | dict.fromkeys(["var_samp", "var_pop"], once.var(ddof=ddof))
    assert middle.to_pylist() == [pytest.approx(wanted.get(function, once.std(ddof=ddof)))]


def test_values_on_both_sides_of_the_center_are_two() -> None:
    # -5 and 20 are as far from the center: their squares are equal, and still counted twice
    (squares, *_) = measured("var_pop", WIDE)
    assert exact(squares, [-5.0, 20.0]) == 2 * exact(squares, [20.0]) == 2 * exact(squares, [-5.0, -5.0])


@pytest.mark.slow
@pytest.mark.parametrize(
    "values", [range(-1, 3), [0, 2], np.repeat(np.arange(-10, 41) / 2, 3)], ids=["all", "two", "wide"]
)
@pytest.mark.parametrize("function", FUNCTIONS)
def test_bars_cover_at_least_as_often_as_they_say(function: str, values: Any, full: bool) -> None:
    # Each trial covers with probability at least 0.8. Of 500, fewer than 340 do so with probability 5e-11 (binomial).
    tries, enough = (20_000, 15_650) if full else (500, 340)  # and fewer than 15,650 of 20,000 with 4e-10
    column = WIDE if len(values) > 9 else X
    held = [float(value) if column is WIDE else int(value) for value in values]
    parts = measured(function, column)
    mechanisms = [Laplace(Fraction(max(abs(part.lower), part.upper), 4)) for part in parts]
    noisy = []
    for index, (part, mechanism) in enumerate(zip(parts, mechanisms, strict=True)):
        drawn = laplace.draw_array(mechanism.scale, tries, ReplayBits(f"{function} {len(held)} {index}".encode()))
        total = exact(part, held)
        noisy.append([total + int(extra) for extra in drawn])
    shown = Releases(ReleasedVector(p.name, m, p.unit) for p, m in zip(parts, mechanisms, strict=True))
    low, _, high = estimator(function, column).estimate(noisy, shown, Fraction(8, 10))
    once = np.unique(held)
    ddof = 1 if function.endswith("_samp") else 0
    known = {"sum": once.sum(), "avg": once.mean()} | dict.fromkeys(["var_samp", "var_pop"], once.var(ddof=ddof))
    truth = float(known.get(function, once.std(ddof=ddof)))
    lows, highs = np.array(low.to_pylist(), dtype=float), np.array(high.to_pylist(), dtype=float)
    assert ((lows <= truth + 1e-9) & (truth - 1e-9 <= highs)).sum() >= enough
