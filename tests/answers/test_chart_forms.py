"""What a chart is drawn as, by the keys of its rows."""

from __future__ import annotations

import datetime
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.charts.arrangement import MAX_SERIES, arrange_rows
from tacit.charts.files import save_chart
from tacit.charts.intervals import ChartForm, ChartRow, IntervalChart
from tacit.charts.svg import render_chart_svg
from tacit.charts.time_scale import find_time_ticks
from tacit.charts.time_series import split_at_gaps, title_series

DAYS = [datetime.date(2025, month, 1) for month in range(1, 13)]


def chart(*keys: tuple[object, ...]) -> IntervalChart:
    labels = [tuple(map(str, key)) for key in keys]
    rows = [ChartRow(" ".join(label), place, place - 1, place + 1, str(place)) for place, label in enumerate(labels)]
    return IntervalChart("n", "n", arrange_rows(rows, list(keys), labels), keys=", ".join("k" * len(keys[0])))


def test_one_row_without_keys_is_a_number():
    assert chart(()).form is ChartForm.NUMBER
    assert chart(("A",)).form is ChartForm.ROWS  # with a key it is a row


@pytest.mark.parametrize("shift", [datetime.timedelta(), datetime.timedelta(hours=5)])
def test_dates_and_timestamps_are_a_series_in_order_of_time(shift):
    times = [datetime.datetime(day.year, day.month, 1) + shift for day in DAYS]
    found = chart(*[(time,) for time in reversed(times)])
    assert found.form is ChartForm.TIME
    assert [row.time for row in found.series[""]] == times


def test_a_second_key_makes_several_series():
    found = chart(*[(day, sex) for day in DAYS for sex in "FM"])
    assert found.form is ChartForm.TIME
    assert {name: len(rows) for name, rows in found.series.items()} == {"F": 12, "M": 12}


def test_a_row_without_a_time_is_in_no_series():
    found = chart(*[(day,) for day in DAYS], (None,))
    assert found.form is ChartForm.TIME and len(found.series[""]) == 12 and len(found.rows) == 13
    assert title_series(found) == "n, by k; without 1 of no time"


def test_few_times_and_many_series_are_rows():
    assert chart(*[(day,) for day in DAYS[:2]]).form is ChartForm.ROWS
    many = [(day, letter) for day in DAYS for letter in "ABCDEFG"]
    assert len({letter for _, letter in many}) > MAX_SERIES and chart(*many).form is ChartForm.ROWS


def test_two_keys_are_groups_of_bars_and_the_key_of_few_values_is_the_series():
    wards, sexes = "ABCDEFGHIJ", "FM"
    for keys in ([(w, s) for w in wards for s in sexes], [(s, w) for w in wards for s in sexes]):
        found = chart(*keys)
        assert found.form is ChartForm.GROUPS
        assert set(found.series) == set(sexes) and {row.group for row in found.rows} == set(wards)


def test_a_column_that_does_not_repeat_is_no_second_key():
    # such as a median beside the key: it names no group
    assert chart(*[(ward, number) for number, ward in enumerate("ABC")]).form is ChartForm.ROWS
    assert chart(("A", 1), ("A", 1)).form is ChartForm.ROWS  # and what names two rows names none


def test_round_moments():
    def labels(low, high):
        return [label for _, label in find_time_ticks(low, high)]

    day = datetime.datetime(2025, 3, 4)
    assert labels(datetime.datetime(2015, 5, 1), datetime.datetime(2025, 5, 1)) == [
        "2016",
        "2018",
        "2020",
        "2022",
        "2024",
    ]
    assert labels(datetime.datetime(2024, 11, 1), datetime.datetime(2025, 4, 1)) == [
        *("Nov 2024", "Dec", "Jan 2025", "Feb", "Mar", "Apr")
    ]
    assert labels(day, day + datetime.timedelta(days=4)) == ["Mar 4, 2025", "Mar 5", "Mar 6", "Mar 7", "Mar 8"]
    assert labels(day + datetime.timedelta(hours=1), day + datetime.timedelta(hours=4)) == [
        *("Mar 4, 2025 01:00", "02:00", "03:00", "04:00")
    ]


@pytest.mark.slow
@settings(max_examples=examples(200), deadline=None, derandomize=True)
@given(st.datetimes(), st.datetimes())
def test_ticks_of_time_are_few_in_order_and_within(one, other):
    low, high = min(one, other), max(one, other)
    moments = [moment for moment, _ in find_time_ticks(low, high)]
    assert len(moments) <= 6 and moments == sorted(set(moments))
    assert all(low <= moment <= high for moment in moments)


def test_a_missing_month_breaks_the_line():
    days = [day for day in DAYS if day.month != 6]
    runs = split_at_gaps(chart(*[(day,) for day in days]).series[""])
    assert [[row.time.month for row in run] for run in runs] == [[1, 2, 3, 4, 5], [7, 8, 9, 10, 11, 12]]


def test_a_notebook_draws_a_line_in_a_band_for_each_series():
    keys = [(day, sex) for day in DAYS for sex in "FM"]
    tree = ET.fromstring(render_chart_svg(chart(*keys)))
    paths = [node.attrib for node in tree.iter("{http://www.w3.org/2000/svg}path")]
    bands, lines = ([path["d"] for path in paths if (path["fill"] == "none") is is_line] for is_line in (False, True))
    assert len(bands) == len(lines) == 2
    assert [band.count("L") for band in bands] == [23, 23] and [line.count("L") for line in lines] == [11, 11]
    for band, line in zip(bands, lines, strict=True):
        places = [tuple(map(float, place.split())) for place in band.strip("MZ").split("L")]
        for number, place in enumerate(line.strip("M").split("L")):
            x, y = map(float, place.split())
            (above_x, above), (below_x, below) = places[number], places[23 - number]
            assert x == above_x == below_x and above < y < below  # down the page is smaller


@pytest.mark.slow
def test_a_series_is_saved_as_a_file(tmp_path):
    save_chart(chart(*[(day, sex) for day in DAYS for sex in "FM"]), tmp_path / "series.svg")
    text = (tmp_path / "series.svg").read_text("utf-8")
    assert 'PolyCollection_2"' in text and 'PolyCollection_3"' not in text  # a band for each series
