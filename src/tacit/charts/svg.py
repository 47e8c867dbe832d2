"""Charts as SVG for notebooks, which needs nothing to be installed.

The picture is written by hand, so it is the same for the same chart, and no plotting library's state is touched.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from tacit.charts.intervals import MAX_ROWS, ChartForm, ChartRow, IntervalChart, find_range, title_with_count
from tacit.charts.scale import AxisScale
from tacit.charts.series_svg import render_series_svg
from tacit.charts.svg_elements import frame_svg, write_text
from tacit.pictures import COLORS, TEXT_COLOR

_WIDTH, _ROW, _TOP, _BOTTOM, _RIGHT = 640, 24, 40, 44, 610
_LETTER = 6.6  # about the width of one, in a font of 12
_LONGEST = 32  # letters of a label
_TICKS = 6  # at most, about


def render_chart_svg(chart: IntervalChart) -> str:
    """Return a picture: a series over time where the rows have times, else rows."""
    return render_series_svg(chart) if chart.form is ChartForm.TIME else _render_rows(chart)


def _render_rows(chart: IntervalChart) -> str:
    """Return a dot for each row, its interval as a line through it, and its label beside it."""
    rows = chart.drawable_rows[:MAX_ROWS]
    left = 20 + _LETTER * max((len(_shorten(row.label)) for row in rows), default=0)
    height = _TOP + _ROW * len(rows) + _BOTTOM
    parts = [write_text(10, 22, title_with_count(chart, MAX_ROWS), "start", is_bold=True)]
    if rows:
        low, high = find_range(rows)
        scale = AxisScale(float(low), float(high), count=_TICKS)

        def place(value: float) -> float:
            return round(left + scale.share(value) * (_RIGHT - left), 1)

        parts += _draw_axis(chart.name, scale, place, height - _BOTTOM)
        for number, row in enumerate(rows):
            y = _TOP + _ROW * (number + 0.5)
            parts.append(write_text(left - 10, y + 4, _shorten(row.label), "end"))
            parts += _draw_estimate(row, y, place)
    return frame_svg(_WIDTH, height, parts)


def _draw_axis(name: str, scale: AxisScale, place: Callable[[float], float], bottom: float) -> list[str]:
    ticks = scale.ticks()
    apart = ticks[1] - ticks[0] if len(ticks) > 1 else 1.0
    decimals = max(0, min(12, -math.floor(math.log10(apart) + 1e-9))) if apart > 0 else 0
    parts = []
    for tick in ticks:
        x = place(tick)
        parts.append(f'<line x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}" stroke="{TEXT_COLOR}" stroke-opacity="0.15"/>')
        parts.append(write_text(x, bottom + 16, f"{tick:,.{decimals}f}", "middle"))
    parts.append(write_text(_RIGHT, bottom + 34, name, "end"))
    return parts


def _draw_estimate(row: ChartRow, y: float, place: Callable[[float], float]) -> list[str]:
    parts = []
    if row.has_interval:
        low, high = place(row.low), place(row.high)
        path = f"M{low} {y}H{high}M{low} {y - 4}V{y + 4}M{high} {y - 4}V{y + 4}"
        parts.append(f'<path d="{path}" stroke="{COLORS[0]}" stroke-width="1.8" fill="none"/>')
    parts.append(f'<circle cx="{place(row.value)}" cy="{y}" r="4" fill="{COLORS[0]}"/>')
    return parts


def _shorten(label: str) -> str:
    return label if len(label) <= _LONGEST else f"{label[: _LONGEST - 1]}…"
