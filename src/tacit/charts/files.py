"""Charts as files: .svg, .png or .pdf. Needs matplotlib: pip install 'tacit-dp[plot]'."""

from __future__ import annotations

import os

from tacit.charts.intervals import MAX_ROWS, ChartForm, IntervalChart, title_with_count
from tacit.charts.time_series import split_at_gaps, title_series
from tacit.pictures import COLORS, open_figure


def save_chart(chart: IntervalChart, path: str | os.PathLike[str]) -> None:
    """Save a picture: a series over time where the rows have times, else a dot and an interval for each row."""
    if chart.form is ChartForm.TIME:
        _save_series(chart, path)
    else:
        _save_rows(chart, path)


def _save_series(chart: IntervalChart, path: str | os.PathLike[str]) -> None:
    """Save a line for each series, in the band of its intervals."""
    with open_figure(path, title_series(chart), "", chart.name) as axes:
        for number, (name, rows) in enumerate(chart.series.items()):
            color = COLORS[number % len(COLORS)]
            for place, run in enumerate(split_at_gaps(rows)):
                times, label = [row.time for row in run], name if place == 0 else None
                axes.plot(times, [row.value for row in run], ".-", color=color, markersize=5, label=label)
                ends = [row for row in run if row.has_interval]
                lows, highs = ([getattr(row, end) for row in ends] for end in ("low", "high"))
                if len(ends) == 1:
                    axes.vlines([row.time for row in ends], lows, highs, color=color)
                axes.fill_between([row.time for row in ends], lows, highs, color=color, alpha=0.2, linewidth=0)
        if len(chart.series) > 1:
            axes.legend()


def _save_rows(chart: IntervalChart, path: str | os.PathLike[str]) -> None:
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
