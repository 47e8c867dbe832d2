"""Lists of quantiles: in order, with one statement for all ranks."""

from __future__ import annotations

import datetime
from fractions import Fraction

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.aggregates.base import ReleasedSelection, Releases
from tacit.aggregates.quantile import QuantileListEstimator
from tacit.aggregates.registry import read_question
from tacit.mechanisms.quantile import Quantile
from tacit.privacy.unit import Neighbors
from tacit.query.nodes import Aggregate, ColumnReference, Literal
from tacit.query.types import Type

X = ColumnReference("x")
USUAL = Fraction(95, 100)


def read(text: str) -> Aggregate:
    (output,) = read_question(f"SELECT {text} FROM t").outputs
    assert isinstance(output.scalar, Aggregate)
    return output.scalar


def estimator(*levels: Fraction, kind: Type = Type.INT, step: Fraction = Fraction(1)) -> QuantileListEstimator:
    return QuantileListEstimator(tuple(range(len(levels))), levels, step, kind, "QUANTILE(x)")


def releases(*levels: Fraction) -> Releases:
    choices = [Quantile.calibrated(1, level, 1, Neighbors.ADD_REMOVE, 0, 1000) for level in levels]
    return Releases(ReleasedSelection("QUANTILE(x)", choice, 1001) for choice in choices)


def test_values_come_in_the_order_of_their_levels() -> None:
    levels = (Fraction(9, 10), Fraction(1, 10), Fraction(1, 2))
    _, lists, _ = estimator(*levels).estimate([[30, 7], [20, 9], [10, 8]], releases(*levels), USUAL)
    assert lists.to_pylist() == [[30, 10, 20], [9, 7, 8]]


def test_values_have_their_type() -> None:
    day = datetime.date(2025, 3, 1)
    one = (Fraction(1, 2),)
    for kind, step, value in (
        (Type.FLOAT, Fraction(1, 100), 1.23),
        (Type.INT, Fraction(1), 123),
        (Type.DATE, Fraction(1), day),
    ):
        number = day.toordinal() if kind is Type.DATE else 123
        _, lists, _ = estimator(*one, kind=kind, step=step).estimate([[number]], releases(*one), USUAL)
        assert lists.to_pylist() == [[value]] and pa.types.is_list(lists.type)
    _, lists, _ = estimator(*one).estimate([[]], releases(*one), USUAL)
    assert lists.to_pylist() == []


def test_the_statement_is_about_all_ranks_together() -> None:
    levels = (Fraction(0), Fraction(1, 2), Fraction(1))
    parts = releases(*levels)
    each = 1 - (1 - USUAL) / 3
    missed = []
    for part in parts:
        mechanism = part.mechanism
        assert isinstance(mechanism, Quantile)
        missed.append(mechanism.error(each) + (0 if mechanism.target is None else mechanism.target - 1))
    said = estimator(*levels).describe(parts, USUAL)
    assert said == f"QUANTILE(x) are values whose ranks are off by at most {max(missed):,} rows, 95% of the time."


def off(values: list[int], point: int, rank: Fraction) -> Fraction:
    """By how many rows the rank of a point is off."""
    below, upto = sum(v < point for v in values), sum(v <= point for v in values)
    return max(below - rank, rank - upto, Fraction(0))


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 9), max_size=12),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 8)), min_size=1, max_size=6),
)
def test_sorting_makes_no_rank_worse_than_the_worst(values: list[int], chosen: list[tuple[int, int]]) -> None:
    levels = [Fraction(level, 8) for _, level in chosen]
    ranks = [level * len(values) for level in levels]
    before = max(off(values, point, rank) for (point, _), rank in zip(chosen, ranks, strict=True))
    _, lists, _ = estimator(*levels).estimate([[point] for point, _ in chosen], releases(*levels), USUAL)
    ((*points,),) = lists.to_pylist()
    assert max(off(values, point, rank) for point, rank in zip(points, ranks, strict=True)) <= before


HALF, QUARTER = Fraction(1, 2), Fraction(1, 4)


@pytest.mark.parametrize(
    ("written", "levels"),
    [
        ("APPROX_QUANTILES(x, 2)", [Fraction(0), HALF, Fraction(1)]),
        ("QUANTILE_CONT(x, [0.25, 0.5])", [QUARTER, HALF]),
        ("QUANTILE(x, ARRAY[0.5])", [HALF]),
        ("PERCENTILE_CONT(ARRAY[0.25, 1]) WITHIN GROUP (ORDER BY x DESC)", [1 - QUARTER, Fraction(0)]),
    ],
)
def test_lists_are_read(written: str, levels: list[Fraction]) -> None:
    assert read(written) == Aggregate("quantiles", X, others=tuple(map(Literal, levels)))


@pytest.mark.parametrize(
    ("written", "level"),
    [
        ("APPROX_QUANTILES(x, 4)[OFFSET(2)]", HALF),
        ("APPROX_QUANTILES(x, 4)[SAFE_OFFSET(0)]", Fraction(0)),
        ("APPROX_QUANTILES(x, 4)[ORDINAL(2)]", QUARTER),
        ("APPROX_QUANTILES(x, 100)[OFFSET(50)]", HALF),
        ("QUANTILE(x, [0.25, 0.5])[2]", HALF),
        ("APPROX_MEDIAN(x)", HALF),
        ("APPROX_PERCENTILE(x, 0.5)", HALF),
        ("PERCENTILE_APPROX(x, 0.5, 100)", HALF),
        ("APPROX_QUANTILE(x, 0.25)", QUARTER),
        ("PERCENTILE(x, 0.25)", QUARTER),
        ("PERCENTILE_DISC(x, 0.25)", QUARTER),
        ("QUANTILE_DISC(0.25) WITHIN GROUP (ORDER BY x)", QUARTER),
    ],
)
def test_an_element_is_a_quantile_and_so_is_every_spelling(written: str, level: Fraction) -> None:
    assert read(written) == Aggregate("quantile", X, share=level)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("COUNT_IF(x > 3)", "COUNT(*) FILTER (WHERE x > 3)"),
        ("COUNTIF(x > 3)", "COUNT_IF(x > 3)"),
        ("COUNT_STAR()", "COUNT(*)"),
        ("APPROX_COUNT_DISTINCT(x)", "COUNT(DISTINCT x)"),
        ("HLL(x)", "COUNT(DISTINCT x)"),
        ("APPROX_DISTINCT(x)", "COUNT_DISTINCT(x)"),
        ("SUM_IF(x, y)", "SUM(x) FILTER (WHERE y)"),
        ("AVGIF(x, y)", "AVG(x) FILTER (WHERE y)"),
        ("MEAN(x)", "AVG(x)"),
        ("AVERAGE(DISTINCT x)", "AVG(DISTINCT x)"),
        ("VAR(x)", "VARIANCE(x)"),
        ("VARP(x)", "VAR_POP(x)"),
        ("STDEV(x)", "STDDEV_SAMP(x)"),
        ("STDEVP(x)", "STDDEV_POP(x)"),
        ("COVAR(y, x)", "COVAR_SAMP(y, x)"),
        ("MAX(DISTINCT x)", "MAX(x)"),
        ("LOGICAL_OR(x)", "BOOL_OR(x)"),
        ("EVERY(x)", "BOOL_AND(DISTINCT x)"),
        ("TOPK(x, 3)", "TOP_K(x, 3)"),
    ],
)
def test_one_aggregate_has_several_names(one: str, other: str) -> None:
    assert read(one) == read(other)
