"""Rows of a chart over time: when each is, and where a time is missing between two."""

from __future__ import annotations

import datetime
import itertools
from collections.abc import Sequence

from tacit.charts.intervals import ChartRow, IntervalChart

_GAP = 1.5  # times the usual step: months differ by less


def to_seconds(moment: datetime.datetime | None) -> float:
    """Return the seconds of a moment without a zone since a fixed one.

    >>> to_seconds(datetime.datetime(1970, 1, 2))
    86400.0
    """
    assert moment is not None  # of a row of a series
    return (moment - datetime.datetime(1970, 1, 1)).total_seconds()


def title_series(chart: IntervalChart) -> str:
    """Return the title of a chart over time; it says so where an estimate has no time, and is not drawn."""
    missing = sum(row.time is None for row in chart.drawable_rows)
    rest = "" if not missing else f"; without {missing:,} of no time"
    return f"{chart.title}, by {chart.keys}{rest}"


def split_at_gaps(rows: Sequence[ChartRow]) -> list[list[ChartRow]]:
    """Return the rows of a series in runs: a new one begins where a step is half as long again as the usual one."""
    times = [to_seconds(row.time) for row in rows]
    steps = sorted(later - earlier for earlier, later in itertools.pairwise(times))
    usual = steps[len(steps) // 2] if steps else 0.0
    runs = [[rows[0]]]
    for (earlier, later), row in zip(itertools.pairwise(times), rows[1:], strict=True):
        if later - earlier > _GAP * usual:
            runs.append([])
        runs[-1].append(row)
    return runs
