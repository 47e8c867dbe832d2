"""An answer drawn for a notebook."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.charts.scale import AxisScale
from tacit.errors import ParameterError

GROUPS = {"A": (10, 40), "B": (30, 90), "C": (20, 0)}
SQL = "SELECT ward, COUNT(*) AS n, AVG(age) AS m, COUNT(*) / 3 AS x FROM visits GROUP BY ward"
TAG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def answer(analyst_of):
    return analyst_of(GROUPS).ask(SQL, epsilon=10)


def words(tree: ET.Element) -> list[str]:
    return [node.text or "" for node in tree.iter(f"{TAG}text")]


@pytest.mark.slow
def test_a_picture_has_a_dot_and_a_bar_for_each_row(answer):
    tree = ET.fromstring(answer.plot()._repr_svg_())
    dots = [float(node.attrib["cx"]) for node in tree.iter(f"{TAG}circle")]
    assert len(dots) == len(list(tree.iter(f"{TAG}path"))) == len(answer) == 4
    # the largest count stands farthest to the right: 30 of B, then 20 of C, 10 of A, and none of the last ward
    assert sorted(range(4), key=dots.__getitem__) == [3, 0, 2, 1]
    assert words(tree)[0] == "n, 95% intervals"
    assert {"A", "B", "C", "n"} <= set(words(tree))


@pytest.mark.slow
def test_a_dot_stands_within_its_bar(answer):
    for column in ("n", "x"):
        tree = ET.fromstring(answer.plot(column=column).to_svg())
        bars = [node.attrib["d"] for node in tree.iter(f"{TAG}path")]
        for dot, bar in zip(tree.iter(f"{TAG}circle"), bars, strict=True):
            low, high = float(bar[1:].split(" ")[0]), float(bar.split("H")[1].split("M")[0])
            assert low <= float(dot.attrib["cx"]) <= high


def test_a_value_that_is_null_is_left_out(answer):
    # the last ward has no rows, so no mean
    tree = ET.fromstring(answer.plot(column="m").to_svg())
    assert len(list(tree.iter(f"{TAG}circle"))) == sum(value is not None for value in answer["m"]) == 3


@pytest.mark.slow
def test_keys_and_names_are_text(answer):
    # one of the wards is a script
    svg = answer.plot().to_svg()
    assert "<script" not in svg and "&lt;script" in svg


@pytest.mark.slow
def test_approximate_bars_are_said_to_be_so(answer):
    assert words(ET.fromstring(answer.plot(column="x").to_svg()))[0] == "x, approximate 95% intervals"


def test_a_key_that_no_xml_holds_is_drawn(analyst_of):
    answer = analyst_of({"A": (3, 3)}).ask('SELECT COUNT(*) AS "\x01 <&>\'" FROM visits', epsilon=1)
    assert words(ET.fromstring(answer.plot().to_svg()))[0].startswith(" <&>'")


def test_an_answer_without_rows_is_an_empty_picture(analyst_of):
    answer = analyst_of(GROUPS).ask("SELECT ward, COUNT(*) AS n FROM visits GROUP BY ward HAVING n > 999", epsilon=10)
    tree = ET.fromstring(answer.plot().to_svg())
    assert not list(tree.iter(f"{TAG}circle"))


@pytest.mark.slow
def test_a_picture_needs_a_column_with_bars(answer):
    for column in ("ward", "missing"):
        with pytest.raises(ParameterError, match="to draw"):
            answer.plot(column=column)


@pytest.mark.slow
def test_the_same_answer_is_the_same_picture(answer):
    assert answer.plot() == answer.plot()
    assert repr(answer.plot(column="x")) == answer.chart("x")  # in a terminal


def test_ticks_are_round_numbers():
    assert AxisScale(0, 163, count=6).ticks() == [0, 50, 100, 150]
    assert AxisScale(-3, 4, count=6).ticks() == [-2, 0, 2, 4]
    assert AxisScale(7, 7).ticks() == [7]


@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.floats(-1e12, 1e12), st.floats(1e-6, 1e12))
def test_ticks_are_few_and_within(low: float, width: float) -> None:
    scale = AxisScale(low, low + width, count=6)
    if scale.high <= scale.low or width < abs(low) * 1e-9:
        return
    ticks = scale.ticks()
    assert 1 <= len(ticks) <= 8
    assert all(-0.002 <= scale.share(tick) <= 1.002 for tick in ticks)
