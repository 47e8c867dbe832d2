"""Finishing of what was chosen or selected: points, days, keys, private groups, NULL keys, no rows at all."""

from __future__ import annotations

import datetime
import json
import struct
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tacit.accounting.filters import BudgetCharge, BudgetStatus, FilterLimits
from tacit.accounting.receipt import Receipt
from tacit.aggregates.base import Estimator, ReleasedSelection, ReleasedVector, Releases
from tacit.aggregates.direct import DirectEstimator
from tacit.aggregates.mean import MeanEstimator
from tacit.aggregates.quantile import QuantileEstimator
from tacit.aggregates.top_k import TopKEstimator
from tacit.aggregates.variance import VarianceEstimator
from tacit.answers.answer import Answer
from tacit.answers.columns import IntervalKind
from tacit.answers.post_process import post_process
from tacit.answers.post_processing_plan import KeyColumn, OutputColumn, PostProcessingPlan
from tacit.answers.stored import GroupKeys, Release, pack
from tacit.errors import ParameterError
from tacit.mechanisms.gaussian import Gaussian
from tacit.mechanisms.laplace import Laplace
from tacit.mechanisms.permute_and_flip import PermuteAndFlip
from tacit.mechanisms.quantile import Quantile
from tacit.mechanisms.top_k import TopK
from tacit.privacy.unit import Neighbors
from tacit.query.functions import Function
from tacit.query.nodes import Call, Literal, OrderItem, ReleasedKey, ReleasedValue, Scalar
from tacit.query.types import Type

NOTHING = BudgetStatus(BudgetCharge.zero(), FilterLimits(10**12, 0, 0, 0))
RECEIPT = Receipt(
    2, "2030-01-01T00:00:00Z", "ada", "k", BudgetCharge.zero(), BudgetCharge.zero(), False, NOTHING, NOTHING, "h" * 64
)
USUAL = Fraction(95, 100)
MEDIAN = Quantile.calibrated(1, Fraction(1, 2), 1, Neighbors.ADD_REMOVE, 0, 1000)
MODE = PermuteAndFlip.calibrated(1, 1, True)
DAY = datetime.date(2025, 3, 1)


def finished(
    release: Release,
    keys: tuple[KeyColumn, ...],
    parts: tuple[ReleasedVector | ReleasedSelection, ...],
    values: tuple[Estimator, ...],
    results: Sequence[tuple[str, Scalar, Type] | tuple[str, Scalar, Type, bool]],
    order: tuple[OrderItem, ...] = (),
    having: Scalar | None = None,
) -> Answer:
    outputs = tuple(OutputColumn(*result) for result in results)
    recipe = PostProcessingPlan(keys, Releases(parts), values, outputs, having, order, None, 0)
    return post_process(pack(release), recipe, RECEIPT, USUAL)


def counts(groups: list[GroupKeys], numbers: list[int], kinds: list[Type], **more: Any) -> Answer:
    """COUNT(*) of selected groups."""
    keys = tuple(KeyColumn(kind, None) for kind in kinds)
    results: list[tuple[str, Scalar, Type]] = [(f"k{i}", ReleasedKey(i), kind) for i, kind in enumerate(kinds)]
    parts = (ReleasedVector("COUNT(*)", Laplace(Fraction(2)), Fraction(1)),)
    values = (DirectEstimator(0, Type.INT),)
    return finished(
        Release(groups, [numbers]), keys, parts, values, [*results, ("n", ReleasedValue(0), Type.INT)], **more
    )  # fmt: skip


# What was chosen.


def test_a_point_is_a_number_of_its_grid_and_has_no_interval():
    part = (ReleasedSelection("MEDIAN(cost)", MEDIAN, 1001),)
    for kind, step, value in ((Type.FLOAT, Fraction(1, 100), 1.23), (Type.INT, Fraction(1), 123)):
        answer = finished(
            Release(None, [[123]]), (), part, (QuantileEstimator(0, step, kind),), [("m", ReleasedValue(0), kind)]
        )
        assert answer.value == value and type(answer.value) is type(value)
        assert answer.interval("m") == [(None, None)]
        assert [heading.bars for heading in answer.headings] == [IntervalKind.NONE]


def test_a_point_of_dates_is_a_day():
    mechanism = Quantile.calibrated(1, 1, 1, Neighbors.ADD_REMOVE, DAY.toordinal() - 9, DAY.toordinal())
    part = (ReleasedSelection("MAX(born)", mechanism, 10),)
    release = Release(None, [[DAY.toordinal() - 1]])
    answer = finished(
        release, (), part, (QuantileEstimator(0, Fraction(1), Type.DATE),), [("d", ReleasedValue(0), Type.DATE)]
    )
    assert answer.value == datetime.date(2025, 2, 28)
    assert json.loads(answer.to_json())["rows"] == [{"d": "2025-02-28"}]


def test_a_choice_says_how_far_off_it_may_be():
    part = (ReleasedSelection("MEDIAN(age)", MEDIAN, 1001), ReleasedSelection("MODE(ward)", MODE, 3))
    values = (QuantileEstimator(0, Fraction(1), Type.INT), TopKEstimator(1, ("A", "B", "C"), None))
    answer = finished(
        Release(None, [[50], [2]]),
        (),
        part,
        values,
        [("m", ReleasedValue(0), Type.INT), ("w", ReleasedValue(1), Type.TEXT)],
    )
    assert list(answer) == [{"m": 50, "w": "C"}]
    (rank,) = [note for note in answer.notes if note.startswith("MEDIAN(age)")]
    assert f"{MEDIAN.error(USUAL):,} rows" in rank and "95% of the time" in rank
    (mode,) = [note for note in answer.notes if note.startswith("MODE(ward)")]
    assert f"{MODE.error(3, USUAL):,} rows" in mode


def test_a_choice_may_be_computed_with_and_is_not_drawn_again():
    # the count is drawn again, the chosen point stays: bars as wide as those of the count
    parts = (
        ReleasedSelection("MEDIAN(age)", MEDIAN, 1001),
        ReleasedVector("COUNT(*)", Laplace(Fraction(2)), Fraction(1)),
    )
    values = (QuantileEstimator(0, Fraction(1), Type.INT), DirectEstimator(1, Type.INT))
    both = Call(Function.ADD, (ReleasedValue(0), ReleasedValue(1)))
    alone = Call(Function.ADD, (ReleasedValue(0), Literal(1)))
    answer = finished(
        Release(None, [[50], [900]]), (), parts, values, [("x", both, Type.INT), ("y", alone, Type.INT)]
    )  # fmt: skip
    assert answer["x"] == [950] and answer["y"] == [51]
    assert [heading.bars for heading in answer.headings] == [IntervalKind.APPROXIMATE, IntervalKind.NONE]
    ((low, high),) = answer.interval("x")
    assert 940 <= low < 950 < high <= 960


def test_chosen_keys_of_every_type():
    for values, kind in ((("A", "B"), Type.TEXT), ((3, 5), Type.INT), ((False, True), Type.BOOL), ((DAY,), Type.DATE)):
        part = (ReleasedSelection("MODE(x)", MODE, len(values)),)
        last = len(values) - 1
        answer = finished(
            Release(None, [[last]]), (), part, (TopKEstimator(0, values, None),), [("x", ReleasedValue(0), kind)]
        )
        assert answer.value == values[-1]


# Lists of what was chosen.

BEST = TopK.calibrated(1, 2, 1, True)


def lists(values: tuple[Any, ...], kind: Type, chosen: list[int], **more: Any) -> Answer:
    """TOP_K(x, 2) in each of two declared wards, beside a count."""
    parts = (
        ReleasedSelection("TOP_K(x, 2)", BEST, len(values)),
        ReleasedVector("COUNT(*)", Laplace(Fraction(2)), Fraction(1)),
    )
    several = (TopKEstimator(0, values, 2), DirectEstimator(1, Type.INT))
    columns = [
        ("w", ReleasedKey(0), Type.TEXT),
        ("best", ReleasedValue(0), kind, True),
        ("n", ReleasedValue(1), Type.INT),
    ]
    keys = (KeyColumn(Type.TEXT, ("A", "B")),)
    return finished(Release(None, [chosen, [7, 9]]), keys, parts, several, columns, **more)


@pytest.mark.parametrize(
    ("values", "kind", "arrow"),
    [
        (("u", "v", "w"), Type.TEXT, pa.string()),
        ((3, 5, 7), Type.INT, pa.int64()),
        ((False, True), Type.BOOL, pa.bool_()),
        ((DAY, DAY.replace(day=2)), Type.DATE, pa.date32()),
    ],
)
def test_a_list_holds_keys_of_every_type_and_the_first_comes_first(values, kind, arrow):
    first, last = values[0], values[-1]
    for order in ((), (OrderItem(ReleasedValue(1), False, False),)):  # as it is, and through the finishing
        answer = lists(values, kind, [len(values) - 1, 0, 0, len(values) - 1], order=order)
        assert answer["best"] == [[last, first], [first, last]]
        assert answer.to_arrow().schema.field("best").type == pa.list_(arrow)
        assert [heading.bars for heading in answer.headings] == [
            IntervalKind.NONE,
            IntervalKind.NONE,
            IntervalKind.EXACT,
        ]
        assert [heading.many for heading in answer.headings] == [False, True, False]
        assert [list(some) for some in answer.to_pandas()["best"]] == answer["best"]
        assert answer.to_polars()["best"].to_list() == answer["best"]


def test_a_list_is_shown_with_commas_and_is_a_list_in_json():
    answer = lists((DAY, DAY.replace(day=2), DAY.replace(day=3)), Type.DATE, [1, 0, 2, 1])
    assert "A  2025-03-02, 2025-03-01" in str(answer)
    assert '<td style="text-align:left">2025-03-03, 2025-03-02</td>' in answer._repr_html_()
    rows = json.loads(answer.to_json())["rows"]
    assert [row["best"] for row in rows] == [["2025-03-02", "2025-03-01"], ["2025-03-03", "2025-03-02"]]
    assert "A u, v" in lists(("u", "v", "w"), Type.TEXT, [0, 1, 2, 0]).chart("n")


def test_a_list_says_how_far_off_it_may_be():
    answer = lists(("u", "v", "w"), Type.TEXT, [0, 1, 2, 0])
    (note,) = [note for note in answer.notes if note.startswith("TOP_K(x, 2)")]
    # each of two choices by the exponential mechanism at 1/2 fails with 1/40: 2 ln(2 * 39) = 8.7, rounded down
    assert BEST.error(3, USUAL) == 8
    assert "at most 8 rows less than the one due in its place, 95% of the time" in note


def test_a_list_stays_beside_what_is_drawn_again():
    having = Call(Function.GREATER, (ReleasedValue(1), Literal(8)))
    answer = lists(("u", "v", "w"), Type.TEXT, [0, 1, 2, 0], having=having)
    assert list(answer) == [{"w": "B", "best": ["w", "u"], "n": 9}]


def test_no_group_at_all_has_no_lists():
    parts = (ReleasedSelection("TOP_K(x, 2)", BEST, 3),)
    columns = [("k", ReleasedKey(0), Type.TEXT), ("best", ReleasedValue(0), Type.INT, True)]
    values = (TopKEstimator(0, (1, 2, 3), 2),)
    for order in ((), (OrderItem(ReleasedKey(0), True, False),)):
        answer = finished(Release([], [[]]), (KeyColumn(Type.TEXT, None),), parts, values, columns, order)
        assert len(answer) == 0
        assert answer.to_arrow().schema.field("best").type == pa.list_(pa.int64())


# Selected groups.


def test_selected_groups_are_shown_as_they_were_stored():
    answer = counts([("flu",), ("gout",), (None,)], [40, 50, 60], [Type.TEXT])
    assert list(answer) == [{"k0": "flu", "n": 40}, {"k0": "gout", "n": 50}, {"k0": None, "n": 60}]
    assert any("others may exist" in note for note in answer.notes)
    assert "NULL" in str(answer)
    assert json.loads(answer.to_json())["rows"][2]["k0"] is None


def test_keys_of_every_type_come_back():
    group = ("flu", 7, True, DAY)
    kinds = [Type.TEXT, Type.INT, Type.BOOL, Type.DATE]
    answer = counts([group, (None, None, None, None)], [40, 50], kinds)
    first, second = list(answer)
    assert tuple(first.values()) == (*group, 40)
    assert tuple(second.values()) == (None, None, None, None, 50)
    assert answer.to_arrow().num_rows == 2
    assert answer.to_pandas()["n"].tolist() == answer.to_polars()["n"].to_list() == [40, 50]


@pytest.mark.parametrize("kind", list(Type))
def test_no_group_at_all_is_an_empty_answer(kind):
    answer = counts([], [], [kind])
    assert len(answer) == 0 and list(answer) == []
    assert answer.to_arrow().num_rows == 0 and len(answer.to_pandas()) == len(answer.to_polars()) == 0
    assert answer.chart() == "n: nothing to draw"
    assert "k0" in str(answer) and "<table>" in answer._repr_html_()


def test_no_group_at_all_with_an_order_and_a_computed_column():
    parts = (ReleasedVector("COUNT(*)", Laplace(Fraction(2)), Fraction(1)),)
    twice = Call(Function.MULTIPLY, (ReleasedValue(0), Literal(2)))
    answer = finished(
        Release([], [[]]),
        (KeyColumn(Type.TEXT, None),),
        parts,
        (DirectEstimator(0, Type.INT),),
        [("k", ReleasedKey(0), Type.TEXT), ("x", twice, Type.INT)],
        order=(OrderItem(ReleasedValue(0), True, False),),
    )
    assert list(answer) == []


@pytest.mark.parametrize(("first", "wanted"), [(True, [None, "a", "b"]), (False, ["a", "b", None])])
def test_null_keys_are_ordered_as_the_question_says(first, wanted):
    order = (OrderItem(ReleasedKey(0), False, first),)
    assert counts([("b",), (None,), ("a",)], [1, 2, 3], [Type.TEXT], order=order)["k0"] == wanted


def test_null_keys_may_be_kept_or_left_out():
    null = Call(Function.IS_NULL, (ReleasedKey(0),))
    assert counts([("b",), (None,)], [1, 2], [Type.TEXT], having=null)["n"] == [2]
    assert counts([("b",), (None,)], [1, 2], [Type.TEXT], having=Call(Function.NOT, (null,)))["n"] == [1]


# Variances.


def spread(released: list[list[int]], sample: bool, root: bool, laws: tuple[Laplace | Gaussian, ...]) -> Answer:
    """A variance of values in [0, 50] on a grid of half units."""
    units = (Fraction(1, 32), Fraction(1, 4), Fraction(1))
    parts = tuple(ReleasedVector(f"p{i}", law, unit) for i, (law, unit) in enumerate(zip(laws, units, strict=True)))
    how = VarianceEstimator(0, MeanEstimator(1, 2, Fraction(25), Fraction(0), Fraction(50)), sample, root)
    return finished(Release(None, released), (), parts, (how,), [("v", ReleasedValue(0), Type.FLOAT)])


LAWS = (Laplace(Fraction(100)), Laplace(Fraction(10)), Laplace(Fraction(1)))


def test_a_variance_of_known_rows():
    # 500 values of 0 and 500 of 50: y = -100 and 100, squares 2 * 10,000 - 10,000 each; the variance is 625
    answer = spread([[10_000 * 1000], [0], [1000]], False, False, LAWS)
    assert answer["v"] == [625.0]
    ((low, high),) = answer.interval("v")
    assert 600 < low < 625 <= high == 625
    (deviation,) = spread([[10_000 * 1000], [0], [1000]], False, True, LAWS)["v"]
    assert deviation == 25.0
    (sample,) = spread([[10_000 * 1000], [0], [1000]], True, False, LAWS)["v"]
    assert sample == pytest.approx(625 * 1000 / 999)
    assert spread([[10_000 * 1000], [0], [1000]], False, False, LAWS).headings[0].bars is IntervalKind.EXACT


def test_a_variance_of_no_rows_is_null_and_its_bars_say_nothing():
    for count in (0, -5):
        answer = spread([[0], [0], [count]], False, False, LAWS)
        assert answer["v"] == [None]
        assert answer.interval("v") == [(0, 625)]
    assert spread([[0], [0], [1]], True, False, LAWS)["v"] == [None]


def test_gaussian_noise_has_bars_too():
    noise = (Gaussian(Fraction(10_000)), Gaussian(Fraction(100)), Gaussian(Fraction(1)))
    ((low, high),) = spread([[0], [0], [1000]], False, False, noise).interval("v")
    assert low < 312.5 < high  # the squares are half of what they can be
    part = (ReleasedVector("COUNT(*)", Gaussian(Fraction(36)), Fraction(1)),)
    answer = finished(
        Release(None, [[100]]), (), part, (DirectEstimator(0, Type.INT),), [("n", ReleasedValue(0), Type.INT)]
    )
    # 1.96 * 6 = 11.76, so 12 of the discrete law
    assert answer.interval("n") == [(88, 112)]


# Pictures.


def size_of(path: Path) -> tuple[int, int]:
    """The width and height of a PNG."""
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", data[16:24])
    return width, height


@pytest.mark.slow
def test_a_picture_of_an_answer(tmp_path: Path):
    answer = counts([("flu",), ("gout",), (None,)], [40, 50, -3], [Type.TEXT])
    answer.plot(tmp_path / "n.png")
    assert size_of(tmp_path / "n.png") == (1120, 400)  # 7 by 2.5 inches at 160 dots
    answer.plot(tmp_path / "n.svg", "n")
    drawn = (tmp_path / "n.svg").read_text(encoding="utf-8")
    assert "<svg" in drawn
    answer.plot(tmp_path / "again.svg", "n")
    assert (tmp_path / "again.svg").read_text(encoding="utf-8") == drawn


@pytest.mark.slow
def test_a_picture_of_nothing_and_of_many_rows(tmp_path: Path):
    counts([], [], [Type.TEXT]).plot(tmp_path / "none.png")
    assert size_of(tmp_path / "none.png") == (1120, 400)
    many = counts([(f"k{i:03}",) for i in range(300)], list(range(300)), [Type.TEXT])
    many.plot(tmp_path / "many.png")
    # a hundred rows are drawn: 1.2 + 0.28 * 100 inches
    assert size_of(tmp_path / "many.png") == (1120, 4672)


@pytest.mark.slow
def test_a_key_is_drawn_as_it_is(tmp_path: Path):
    # between dollar signs matplotlib would read formulas, and fail at a wrong one
    counts([("$\\nonsense{$",), ("$x$",), ("a\nb",)], [40, 50, 60], [Type.TEXT]).plot(tmp_path / "n.png")
    assert size_of(tmp_path / "n.png") == (1120, 400)


def test_a_picture_needs_a_column_with_bars(tmp_path: Path):
    answer = counts([("flu",)], [40], [Type.TEXT])
    for column in ("k0", "missing"):
        with pytest.raises(ParameterError):
            answer.plot(tmp_path / "x.png", column)
    assert not (tmp_path / "x.png").exists()
