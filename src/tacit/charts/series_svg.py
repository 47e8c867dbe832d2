"""Series over time as SVG for notebooks: a line for each, in the band of its intervals."""

from __future__ import annotations

from collections.abc import Callable

from tacit.charts.intervals import ChartRow, IntervalChart, find_range
from tacit.charts.scale import AxisScale, format_tick
from tacit.charts.svg_elements import frame_svg, write_text
from tacit.charts.time_scale import find_time_ticks
from tacit.charts.time_series import split_at_gaps, title_series, to_seconds
from tacit.pictures import COLORS, TEXT_COLOR

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 640, 320, 70, 615, 62, 276
_DOTS = 120  # points that are drawn as dots too

Place = Callable[[float], float]


def render_series_svg(chart: IntervalChart) -> str:
    """Return a picture of a chart whose rows have times."""
    series = chart.series
    rows = tuple(row for each in series.values() for row in each)
    times = [row.time for row in rows if row.time is not None]
    low, high = find_range(rows)
    across = AxisScale(to_seconds(min(times)), to_seconds(max(times)))
    up = AxisScale(float(low), float(high))

    def x(seconds: float) -> float:
        return round(_LEFT + across.share(seconds) * (_RIGHT - _LEFT), 1)

    def y(value: float) -> float:
        return round(_BOTTOM - up.share(float(value)) * (_BOTTOM - _TOP), 1)

    parts = [write_text(10, 22, title_series(chart), "start", is_bold=True)]
    for tick in up.ticks():
        line = f'x1="{_LEFT}" x2="{_RIGHT}" y1="{y(tick)}" y2="{y(tick)}"'
        parts.append(f'<line {line} stroke="{TEXT_COLOR}" stroke-opacity="0.15"/>')
        parts.append(write_text(_LEFT - 8, y(tick) + 4, format_tick(tick), "end"))
    for moment, label in find_time_ticks(min(times), max(times)):
        parts.append(write_text(x(to_seconds(moment)), _BOTTOM + 20, label, "middle"))
    for number, (name, each) in enumerate(series.items()):
        color = COLORS[number % len(COLORS)]
        for run in split_at_gaps(each):
            parts += _draw_run(run, color, x, y, has_dots=len(rows) <= _DOTS)
        if len(series) > 1:
            place = _LEFT + number * (_RIGHT - _LEFT) / len(series)
            parts.append(f'<circle cx="{place}" cy="44" r="4" fill="{color}"/>')
            parts.append(write_text(place + 10, 48, name[:16], "start"))
    return frame_svg(_WIDTH, _HEIGHT, parts)


def _draw_run(run: list[ChartRow], color: str, x: Place, y: Place, *, has_dots: bool) -> list[str]:
    """Return a run of a series without gaps: its band, its line and its dots; of one estimate, its error bar."""
    places = [(x(to_seconds(row.time)), row) for row in run]
    ends = [(place, row) for place, row in places if row.has_interval]
    parts = []
    if len(ends) > 1:
        there = "L".join(f"{place} {y(row.high)}" for place, row in ends)
        back = "L".join(f"{place} {y(row.low)}" for place, row in reversed(ends))
        parts.append(f'<path d="M{there}L{back}Z" fill="{color}" fill-opacity="0.2"/>')
    elif ends:
        ((place, row),) = ends
        parts.append(f'<path d="M{place} {y(row.low)}V{y(row.high)}" stroke="{color}" stroke-width="1.8"/>')
    line = "L".join(f"{place} {y(row.value)}" for place, row in places)
    parts.append(f'<path d="M{line}" fill="none" stroke="{color}" stroke-width="1.8"/>')
    if has_dots or len(places) == 1:
        parts += [f'<circle cx="{place}" cy="{y(row.value)}" r="3" fill="{color}"/>' for place, row in places]
    return parts
