"""Charts as files: .svg, .png or .pdf. Needs matplotlib: pip install 'tacit-dp[plot]'."""

from __future__ import annotations

import os

from tacit.charts.intervals import MAX_ROWS, IntervalChart, title_with_count
from tacit.pictures import open_figure


def save_chart(chart: IntervalChart, path: str | os.PathLike[str]) -> None:
    """Save a picture: a dot for each row, and its interval as a line through it."""
    rows = chart.drawable_rows[:MAX_ROWS]
    height = max(2.5, 1.2 + 0.28 * len(rows))
    with open_figure(path, title_with_count(chart, MAX_ROWS), chart.name, chart.keys, size=(7.0, height)) as axes:
        places = range(len(rows))
        values = [row.value for row in rows]
        below = [max(0, row.value - row.low) if row.has_interval else 0 for row in rows]
        above = [max(0, row.high - row.value) if row.has_interval else 0 for row in rows]
        axes.errorbar(values, places, xerr=[below, above], fmt="o", capsize=3)
        axes.set_yticks(places, [row.label for row in rows])
        axes.invert_yaxis()
