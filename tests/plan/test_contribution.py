"""What is measured: columns are never trusted, grids hold every value, and one unit moves no more than is said."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from fractions import Fraction
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.aggregates.argument import quantize_argument
from tacit.aggregates.base import BoundAggregate, Measurement, QuantileMeasurement, VectorMeasurement
from tacit.aggregates.registry import function_of
from tacit.engines.evaluate import evaluate
from tacit.plan.contribution import count_selections, l0_sensitivity, vector_l1_sensitivity, vector_l2_sensitivity
from tacit.plan.declared_columns import read_as_declared
from tacit.plan.noise import Part
from tacit.plan.plan import Plan
from tacit.policy.model import Column as Declared
from tacit.privacy.sensitivity import ContributionBounds
from tacit.privacy.unit import Neighbors
from tacit.query.bound import TypedScalar
from tacit.query.nodes import Aggregate, ColumnReference, ExactStatistic, Literal, Quantize
from tacit.query.types import Type

MakePlan = Callable[..., Plan]


def measured(aggregate: Aggregate, argument: TypedScalar) -> tuple[Measurement, ...]:
    """What an aggregate of an argument measures."""
    return function_of(aggregate).measure(BoundAggregate(aggregate, argument, None, of_unit=False), frozenset())


# Columns.


def value(column: Declared, held: Any) -> Any:
    """What a column that holds a value is read as."""
    return evaluate(read_as_declared(column, ColumnReference("c")).scalar, {"c": held})


def test_columns_are_clamped_and_never_trusted():
    whole = Declared("i", Type.INT, Fraction(-7), Fraction(12))
    real = Declared("x", Type.FLOAT, Fraction(-2), Fraction(5), Fraction(1, 4))
    wild = Declared("w", Type.FLOAT)
    assert [value(whole, v) for v in (10**15, -(10**15), 3, None)] == [12, -7, 3, None]
    assert [value(real, v) for v in (math.inf, -math.inf, math.nan, 0.25)] == [5.0, -2.0, None, 0.25]
    # nothing bounds it: it can be compared, not added
    assert [value(wild, v) for v in (math.nan, math.inf)] == [None, math.inf]


def test_dates_are_clamped_too():
    first, last = datetime.date(2020, 1, 1), datetime.date(2024, 12, 31)
    born = Declared("d", Type.DATE, Fraction(first.toordinal()), Fraction(last.toordinal()))
    held = [datetime.date(1066, 10, 14), datetime.date(2022, 2, 2), datetime.date(9999, 12, 31), None]
    assert [value(born, day) for day in held] == [first, datetime.date(2022, 2, 2), last, None]


def test_a_number_that_must_not_be_missing_is_read_as_the_lower_bound():
    whole = Declared("i", Type.INT, Fraction(-7), Fraction(12), nullable=False)
    real = Declared("x", Type.FLOAT, Fraction(-2), Fraction(5), nullable=False)
    assert [value(whole, v) for v in (None, 40)] == [-7, 12]
    assert [value(real, v) for v in (None, math.nan)] == [-2.0, -2.0]
    assert not read_as_declared(whole, ColumnReference("c")).nullable
    assert read_as_declared(Declared("i", Type.INT, Fraction(0), Fraction(1)), ColumnReference("c")).nullable


# Grids.

any_float = st.one_of(st.none(), st.floats(), st.integers(-40_000, 40_000).map(lambda n: n / 8))
any_int = st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1), st.integers(-150, 150))
ARGUMENTS = [
    "age", "score", "cost", "balance", "stay", "age * score", "cost / 3", "balance / 7", "cost * cost * cost",
    "cost * 1e-9", "SQRT(cost)", "EXP(score)", "balance / (age + 1)", "MOD(age, 7)", "FLOOR(balance / 3)",
    "CASE WHEN smoker THEN cost END", "COALESCE(balance, age)", "GREATEST(0, LEAST(pulse, 200))",
    "1e190 / (((1e190 + 1e150) - 1e190) + 1) * age",
]  # fmt: skip


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(st.sampled_from(ARGUMENTS), st.lists(any_float, min_size=3), any_int, any_int)
def test_what_is_added_up_is_a_whole_number_within_its_bounds(
    plan: MakePlan, text: str, floats: list[Any], age: Any, score: Any
) -> None:
    made = plan(f"SELECT SUM({text}) FROM visits")
    (part,) = made.parts
    assert isinstance(part, Part)
    ((factor, measure),) = part.need.terms
    assert factor == 1 and measure.argument is not None
    names = made.exact.source.columns
    held = dict.fromkeys((name for name, _ in names), None) | {"age": age, "score": score, "stay": age}
    held |= dict(zip(("cost", "balance", "pulse"), floats, strict=False)) | {"smoker": True}
    got = evaluate(measure.argument, {here: held[name] for name, here in names})
    assert got is None or (type(got) is int and part.need.lower <= got <= part.need.upper)


@pytest.mark.slow
@settings(max_examples=examples(150), deadline=None, derandomize=True)
@given(st.sampled_from(["age", "score", "cost", "balance", "stay", "cost / 3"]), any_float, any_int)
def test_a_row_of_a_variance_adds_what_it_may(plan: MakePlan, text: str, real: Any, whole: Any) -> None:
    # squares, sum and count, for each row alone: each within what the vector says that a row may add
    made = plan(f"SELECT VAR_POP({text}) FROM visits")
    names = made.exact.source.columns
    held = dict.fromkeys((name for name, _ in names), None) | {"age": whole, "score": whole, "stay": whole}
    held |= {"cost": real, "balance": real}
    row = {here: held[name] for name, here in names}
    assert len(made.parts) == 3
    for part in made.parts:
        added = 0
        for factor, measure in part.need.terms:
            got = 1 if measure.argument is None else evaluate(measure.argument, row)
            added += factor * (0 if got is None else 1 if measure.function == "count" else got)
        counted = any(m.function == "count" and m.argument is not None for m in part.need.measures)
        missing = counted and added == 0
        assert missing or part.need.lower <= added <= part.need.upper


def test_quantize_is_total():
    # infinite, or none at all: still a whole number within the bounds, or NULL
    grid = Quantize(ColumnReference("x"), Fraction(1, 10), -30, 30)
    for held in (math.inf, -math.inf, 1e308, -1e308, 5e-324, math.nan, None):
        got = evaluate(grid, {"x": held})
        assert got is None or -30 <= got <= 30


def test_the_squares_of_a_variance_fit_64_bits():
    # bounds of 2^30 in steps of one: twice the distance from the center is at most 2^31, its square 2^62
    most = Fraction(2**30)
    column = read_as_declared(Declared("i", Type.INT, -most, most), ColumnReference("c"))
    squares, first, count = measured(Aggregate("var_pop", ColumnReference("c")), column)
    assert (
        isinstance(squares, VectorMeasurement)
        and isinstance(first, VectorMeasurement)
        and isinstance(count, VectorMeasurement)
    )
    assert (squares.lower, squares.upper) == (-(2**62), 2**62)
    assert (first.lower, first.upper) == (-(2**31), 2**31)
    assert squares.unit == Fraction(1, 8) and first.unit == Fraction(1, 2)


def test_a_point_lies_on_the_grid_of_its_column(plan: MakePlan):
    (pick,) = plan("SELECT MEDIAN(cost) FROM visits").parts
    assert isinstance(pick.need, QuantileMeasurement)
    assert (pick.need.argument.step, pick.need.argument.lower, pick.need.argument.upper) == (
        Fraction(1, 100),
        0,
        500_000,
    )
    (pick,) = plan("SELECT MAX(born) FROM visits").parts
    days = (datetime.date(1920, 1, 1).toordinal(), datetime.date(2024, 12, 31).toordinal())
    assert (pick.need.level, pick.need.argument.lower, pick.need.argument.upper) == (1, *days)


def test_a_constant_is_a_grid_of_one_point():
    bound = read_as_declared(Declared("i", Type.INT, Fraction(3), Fraction(3)), ColumnReference("c"))
    grid = quantize_argument(Aggregate("min", Literal(3)), bound, dates=True)
    assert (grid.lower, grid.upper) == (3, 3)


# How far one unit moves a vector, against all that it can do.


def contributions(
    k: int, r: int, lower: int, upper: int, groups: int, once: bool, most: int | None = None
) -> np.ndarray:
    """All that one unit can add to the groups: in at most k of them, at most r rows, each from lower to upper.

    With `most`, no more rows in all; `once`, a row in each group is enough.
    """
    rows = 1 if once else r
    fewest: dict[int, int] = {}  # rows that make a sum
    for n in range(rows + 1):
        for total in range(n * lower, n * upper + 1):
            fewest.setdefault(total, n)
    found = set()
    for held in combinations(range(groups), min(k, groups)):
        for added in product(sorted(fewest), repeat=len(held)):
            if most is not None and sum(fewest[total] for total in added) > most:
                continue
            vector = [0] * groups
            for group, total in zip(held, added, strict=True):
                vector[group] = total
            found.add(tuple(vector))
    return np.array(sorted(found), dtype=np.int64)


def farthest(all_of_them: np.ndarray, neighbors: Neighbors) -> tuple[int, int]:
    """The largest L1 distance and the largest squared L2 distance between neighbors."""
    if neighbors is Neighbors.ADD_REMOVE:
        moves = all_of_them
    else:
        moves = (all_of_them[:, None, :] - all_of_them[None, :, :]).reshape(-1, all_of_them.shape[1])
    return int(np.abs(moves).sum(axis=1).max()), int((moves**2).sum(axis=1).max())


RANGES = [(1, 1), (0, 1), (-1, 1), (-2, 1), (-1, 2), (1, 2), (-2, -1), (-3, 0)]


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(("lower", "upper"), RANGES)
def test_one_unit_moves_a_vector_as_far_as_is_said(lower: int, upper: int, once: bool, neighbors: Neighbors) -> None:
    vector = VectorMeasurement(((1, ExactStatistic("sum", None)),), lower, upper, Fraction(1), once)
    size, width = max(abs(lower), abs(upper)), max(upper, 0) - min(lower, 0)
    for k, r, groups in product((1, 2), (1, 2), (1, 2, 3, 4)):
        each = ContributionBounds(k, r)
        l1, squared = farthest(contributions(k, r, lower, upper, groups, once), neighbors)
        assert vector_l1_sensitivity(vector, each, neighbors, groups) == l1
        shift, coordinates = vector_l2_sensitivity(vector, each, neighbors, groups)
        assert shift**2 * coordinates >= squared
        overlap = max(0, 2 * min(k, groups) - groups)
        if neighbors is Neighbors.ADD_REMOVE or width**2 >= 2 * size**2 or overlap == 0:
            assert shift**2 * coordinates == squared


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(("lower", "upper"), RANGES)
def test_with_a_cap_on_all_rows_a_unit_moves_a_vector_no_further_than_is_said(
    lower: int, upper: int, once: bool, neighbors: Neighbors
) -> None:
    vector = VectorMeasurement(((1, ExactStatistic("sum", None)),), lower, upper, Fraction(1), once)
    for k, r, most, groups in ((2, 2, 2, 2), (2, 2, 3, 2), (2, 2, 3, 3), (3, 2, 4, 3), (3, 1, 2, 3)):
        each = ContributionBounds(k, r, most)
        l1, squared = farthest(contributions(k, r, lower, upper, groups, once, most), neighbors)
        assert vector_l1_sensitivity(vector, each, neighbors, groups) == l1
        shift, coordinates = vector_l2_sensitivity(vector, each, neighbors, groups)
        assert shift**2 * coordinates >= squared
        if not once and most % r == 0 and neighbors is Neighbors.ADD_REMOVE:
            assert shift**2 * coordinates == squared  # most/r full groups


def test_choices_are_as_many_as_bundles_of_groups():
    # 20 rows in all, 5 in a group: 3 rows in each of 6 groups, no two of which go together; twice as many with another
    # unit in its place, and never more than there are groups. Of 20 rows in a group, all groups are one bundle.
    each, whole = ContributionBounds(20, 5, 20), ContributionBounds(20, 20, 20)
    assert count_selections(each, Neighbors.ADD_REMOVE, None) == count_selections(each, Neighbors.ADD_REMOVE, 50) == 6
    assert count_selections(each, Neighbors.REPLACE, 50) == 12
    assert count_selections(each, Neighbors.REPLACE, 7) == 7
    assert (count_selections(whole, Neighbors.ADD_REMOVE, 50), count_selections(whole, Neighbors.REPLACE, 50)) == (1, 2)
    # keys that appear and go are one for each row
    assert (l0_sensitivity(each, Neighbors.ADD_REMOVE, None), l0_sensitivity(each, Neighbors.REPLACE, None)) == (20, 40)
    # without a cap on all rows, choices are felt where the unit is
    assert count_selections(ContributionBounds(3, 2), Neighbors.REPLACE, 10) == l0_sensitivity(
        ContributionBounds(3, 2), Neighbors.REPLACE, 10
    )


def fewest_bundles(sizes: tuple[int, ...], most: int) -> int:
    """The least number of bundles of at most so many rows, by trying all."""
    best = count = len(sizes)
    for places in product(range(count), repeat=count):
        bundles = [0] * count
        for size, place in zip(sizes, places, strict=True):
            bundles[place] += size
        if max(bundles) <= most:
            best = min(best, sum(bundle > 0 for bundle in bundles))
    return best


@pytest.mark.parametrize(("rows", "total"), [(1, 4), (2, 4), (2, 5), (3, 5), (3, 6), (4, 6), (5, 5)])
def test_groups_go_into_as_many_bundles_as_is_said(rows: int, total: int) -> None:
    # all ways to spread at most `total` rows over five groups or fewer, at most `rows` in each
    spreads = {
        tuple(sorted(size for size in sizes if size))
        for sizes in product(range(rows + 1), repeat=5)
        if 0 < sum(sizes) <= total
    }
    worst = max(fewest_bundles(sizes, rows) for sizes in spreads)
    allowed = count_selections(ContributionBounds(total, rows, total), Neighbors.ADD_REMOVE, None)
    assert worst <= allowed
    if rows % 2 or rows == total:
        assert worst == allowed  # groups of (r + 1)/2 rows, no two of which go together


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize(("lower", "upper"), RANGES)
def test_private_groups_are_as_many_as_it_takes(lower: int, upper: int, neighbors: Neighbors) -> None:
    # of k = 2 groups before and 2 after, all may differ: as with four groups, or more
    vector = VectorMeasurement(((1, ExactStatistic("sum", None)),), lower, upper, Fraction(1))
    each = ContributionBounds(2, 2)
    l1, squared = farthest(contributions(2, 2, lower, upper, 4, once=False), neighbors)
    assert vector_l1_sensitivity(vector, each, neighbors, None) == l1
    shift, coordinates = vector_l2_sensitivity(vector, each, neighbors, None)
    assert shift**2 * coordinates == squared


def test_the_groups_in_which_a_unit_is_felt():
    each = ContributionBounds(3, 2)
    assert l0_sensitivity(each, Neighbors.ADD_REMOVE, 10) == l0_sensitivity(each, Neighbors.ADD_REMOVE, None) == 3
    assert l0_sensitivity(each, Neighbors.REPLACE, 10) == l0_sensitivity(each, Neighbors.REPLACE, None) == 6
    assert l0_sensitivity(each, Neighbors.REPLACE, 4) == 4
    assert l0_sensitivity(each, Neighbors.ADD_REMOVE, 2) == 2


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_distinct_values_move_by_at_most_the_rows_of_a_unit(rows: int, neighbors: Neighbors) -> None:
    # all units of at most so many rows with values 0, 1 or 2, beside all others of two rows
    units = [values for n in range(rows + 1) for values in product(range(3), repeat=n)]
    farthest_of_all = max(
        abs(len({*others, *one}) - len({*others, *other}))
        for others in product(range(3), repeat=2)
        for one in units
        for other in (units if neighbors is Neighbors.REPLACE else [()])
    )
    column = read_as_declared(Declared("i", Type.INT, Fraction(0), Fraction(2)), ColumnReference("c"))
    (vector,) = measured(Aggregate("count", ColumnReference("c"), distinct=True), column)
    assert isinstance(vector, VectorMeasurement)
    assert vector_l1_sensitivity(vector, ContributionBounds(1, rows), neighbors, 1) == rows >= farthest_of_all
    assert farthest_of_all == rows or neighbors is Neighbors.REPLACE


# Weights.


def test_the_weights_of_a_variance_make_its_error_least():
    # per row, in units of the squared range: 1/8 / e_1 + 1/2 / e_2 + 5/8 / e_3, the e adding up to a given price
    parts = np.array([1 / 8, 1 / 2, 5 / 8])
    chosen = np.array([float(w) for w in function_of(Aggregate("var_samp", ColumnReference("c"))).budget_weights])
    best = np.sqrt(parts) / np.sqrt(parts).sum()

    def error(shares: np.ndarray) -> float:
        return float((parts / (shares / shares.sum())).sum())

    assert error(chosen) < error(best) * 1.001
    assert error(np.ones(3)) > error(chosen) * 1.05


def test_a_mean_and_a_count_weigh_the_same():
    assert function_of(Aggregate("avg", ColumnReference("c"))).budget_weights == (1, 1)
