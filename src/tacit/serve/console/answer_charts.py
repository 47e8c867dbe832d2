"""Charts of an answer: a number with its interval, a series over time in a band, groups of bars, or rows."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup, escape

from tacit.charts.intervals import ChartForm, ChartRow, IntervalChart, find_range, title_with_count
from tacit.charts.scale import AxisScale, format_tick
from tacit.charts.time_scale import find_time_ticks
from tacit.charts.time_series import split_at_gaps, title_series, to_seconds
from tacit.serve.console.charts import (
    SERIES_KINDS,
    PercentScale,
    draw_vertical_line,
    find_anchor,
    make_element,
    remove_control_characters,
)

ROWS = 60  # of an answer that are drawn
_ROW = 30  # pixels
_LEFT, _RIGHT = 3.0, 97.0  # percent
_SERIES_HEIGHT = 250  # pixels
_DOTS = 120  # points of series that are drawn as dots; more are a line only


def draw_intervals(chart: IntervalChart) -> Markup:
    """Return a chart as a line for each row, with its label, its interval, its estimate and the number."""
    rows = chart.drawable_rows[:ROWS]
    if not rows:
        return Markup()
    scale = _make_row_scale(rows)
    parts = [_lay_out_row(row.label, row, _draw_row(row, scale)) for row in rows]
    return _frame_rows(chart, [*parts, _draw_row_axis(scale)])


def draw_chart(chart: IntervalChart) -> Markup:
    """Return a chart in its form: a number, a series over time, groups of bars, or rows."""
    match chart.form:
        case ChartForm.NUMBER:
            return _draw_number(chart)
        case ChartForm.TIME:
            return _draw_series(chart)
        case ChartForm.GROUPS:
            return _draw_groups(chart)
        case ChartForm.ROWS:
            return draw_intervals(chart)


def _draw_number(chart: IntervalChart) -> Markup:
    """Return one estimate as a large number, with its interval in words and as a line."""
    (row,) = chart.rows
    head = make_element("figcaption", chart.name)
    parts = [make_element("p", make_element("span", row.text, class_="number"), class_="single-number")]
    if row.is_drawable and row.has_interval:
        parts.append(
            make_element("p", f"{chart.title.removeprefix(chart.name + ', ').removesuffix('s')}: {row.interval}")
        )
        scale = _make_row_scale((row,))
        axis = [
            make_element("text", format_tick(tick), x=scale.at(tick), y=_ROW + 14, text_anchor="middle")
            for tick in _thin(scale.ticks())
        ]
        drawn = Markup().join([*_draw_row(row, scale), *axis])
        words = f"{row.text}, between {row.interval.replace(' to ', ' and ')}"
        parts.append(make_element("svg", drawn, class_="track", height=_ROW + 20, role="img", aria_label=words))
    return make_element("figure", head + Markup().join(parts), class_="single")


def _draw_groups(chart: IntervalChart) -> Markup:
    """Return bars from zero, a group for each first key and a bar for each second one, with intervals and numbers."""
    rows = chart.drawable_rows[:ROWS]
    low, high = find_range(rows)
    scale = PercentScale(float(min(0, low)), float(max(0, high)), left=_LEFT, right=_RIGHT)
    kinds = dict(zip(dict.fromkeys(row.series for row in chart.drawable_rows), SERIES_KINDS, strict=False))
    parts = []
    for group in dict.fromkeys(row.group for row in rows):
        parts.append(make_element("span", group, class_="group"))
        for row in (row for row in rows if row.group == group):
            parts.append(_lay_out_row(row.series, row, _draw_row(row, scale, kinds[row.series])))
    parts.append(_draw_row_axis(scale))
    return _frame_rows(chart, parts)


def _draw_series(chart: IntervalChart) -> Markup:
    """Return estimates over time as a line for each series, in a band of their intervals."""
    series = chart.series
    rows = tuple(row for each in series.values() for row in each)
    low, high = find_range(rows)
    times = [row.time for row in rows if row.time is not None]
    begin, end = min(times), max(times)
    x = PercentScale(to_seconds(begin), to_seconds(end), left=10, right=98)
    y = AxisScale(float(low), float(high), count=4)
    top, bottom = 16, _SERIES_HEIGHT - 26

    def up(value: float) -> float:
        return round(bottom - (bottom - top) * y.share(float(value)), 1)

    parts = []
    for tick in y.ticks():
        parts.append(make_element("line", class_="grid", x1="0%", x2="100%", y1=up(tick), y2=up(tick)))
        parts.append(make_element("text", format_tick(tick), x="0%", y=up(tick) - 4))
    for moment, words in find_time_ticks(begin, end):
        here = to_seconds(moment)
        anchor = find_anchor((x.left + (x.right - x.left) * x.share(here)) / 100)
        parts.append(make_element("text", words, x=x.at(here), y=_SERIES_HEIGHT - 6, text_anchor=anchor))
    bands, lines, dots = [], [], []
    for each, kind in zip(series.values(), SERIES_KINDS, strict=False):
        for run in split_at_gaps(each):
            places = [(round(10 * float(x.at(to_seconds(row.time))[:-1]), 2), row) for row in run]
            ends = [(place, row) for place, row in places if row.has_interval]
            if len(ends) > 1:
                there = "L".join(f"{place} {up(row.high)}" for place, row in ends)
                back = "L".join(f"{place} {up(row.low)}" for place, row in reversed(ends))
                bands.append(make_element("path", class_=f"band {kind}", d=f"M{there}L{back}Z"))
            elif ends:
                ((place, row),) = ends
                dots.append(draw_vertical_line(f"error-bar {kind}", f"{place / 10:.4g}%", up(row.low), up(row.high)))
            path = "L".join(f"{place} {up(row.value)}" for place, row in places)
            lines.append(make_element("path", class_=f"trend {kind}", d=f"M{path}"))
            if len(rows) <= _DOTS or len(places) == 1:
                dots += [
                    make_element("circle", class_=f"dot {kind}", cx=f"{place / 10:.4g}%", cy=up(row.value), r=3.5)
                    for place, row in places
                ]
    stretched = make_element(
        "svg",
        Markup().join([*bands, *lines]),
        width="100%",
        height=_SERIES_HEIGHT,
        viewBox=f"0 0 1000 {_SERIES_HEIGHT}",
        preserveAspectRatio="none",
    )
    words = f"{title_series(chart)}: as in the table"
    drawing = make_element(
        "svg",
        Markup().join([*parts, stretched, *dots]),
        class_="plot",
        height=_SERIES_HEIGHT,
        role="img",
        aria_label=words,
    )
    head = make_element("figcaption", title_series(chart))
    return make_element("figure", head + _draw_legend(list(series)) + drawing, class_="bars over-time")


def _draw_legend(names: Sequence[str]) -> Markup:
    if len(names) < 2:
        return Markup()
    items = [
        make_element("li", make_element("i", class_=f"key {kind}") + escape(remove_control_characters(name)))
        for name, kind in zip(names, SERIES_KINDS, strict=False)
    ]
    return make_element("ul", Markup().join(items), class_="legend")


def _make_row_scale(rows: tuple[ChartRow, ...]) -> PercentScale:
    low, high = find_range(rows)
    return PercentScale(float(low), float(high), left=_LEFT, right=_RIGHT)


def _draw_row(row: ChartRow, scale: PercentScale, bar: str = "") -> list[Markup]:
    """Return the marks of a row: grid, a bar from zero of that class, the interval, and the estimate."""
    drawn = [draw_vertical_line("grid", scale.at(tick), 0, _ROW) for tick in scale.ticks()]
    if bar:
        first, last = sorted((scale.share(0), scale.share(float(row.value))))
        wide = (scale.right - scale.left) * (last - first)
        start = scale.left + (scale.right - scale.left) * first
        drawn.append(make_element("rect", class_=f"bar {bar}", x=f"{start:.4g}%", width=f"{wide:.4g}%", y=6, height=18))
    if row.has_interval:
        ends = scale.at(row.low), scale.at(row.high)
        drawn.append(make_element("line", class_="error-bar", x1=ends[0], x2=ends[1], y1=_ROW / 2, y2=_ROW / 2))
        drawn += [draw_vertical_line("error-bar", end, _ROW / 2 - 5, _ROW / 2 + 5) for end in ends]
    if not bar:
        drawn.append(make_element("circle", class_="dot", cx=scale.at(row.value), cy=_ROW / 2, r=4.5))
    return drawn


def _lay_out_row(label: str, row: ChartRow, drawn: Sequence[Markup]) -> Markup:
    track = make_element("svg", Markup().join(drawn), class_="track", height=_ROW)
    number = make_element("span", row.text, class_="number")
    words = make_element("span", label, class_="label")
    return make_element("div", words + track + number, class_="row", title=remove_control_characters(row.interval))


def _draw_row_axis(scale: PercentScale) -> Markup:
    axis = [
        make_element("text", format_tick(tick), x=scale.at(tick), y=14, text_anchor="middle")
        for tick in _thin(scale.ticks())
    ]
    return make_element("svg", Markup().join(axis), class_="axis", height=20)


def _thin(ticks: list[float]) -> list[float]:
    """Return the ticks whose labels are written: every second one where they are long and many."""
    return ticks[::2] if len(ticks) > 4 and max(len(format_tick(tick)) for tick in ticks) > 5 else ticks


def _frame_rows(chart: IntervalChart, parts: Sequence[Markup]) -> Markup:
    caption = title_with_count(chart, ROWS)
    grid = make_element(
        "div", Markup().join(parts), class_="rows", role="img", aria_label=f"{caption}: as in the table"
    )
    return make_element("figure", make_element("figcaption", caption) + grid, class_="bars")
