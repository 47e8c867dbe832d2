"""The model of a chart of estimates with intervals: what every renderer draws."""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass
from enum import StrEnum
from numbers import Real
from typing import Any

MAX_ROWS = 100  # that a picture shows


class ChartForm(StrEnum):
    """What a chart is drawn as."""

    NUMBER = "number"  # one estimate
    TIME = "time"  # estimates over time, in one or a few series
    GROUPS = "groups"  # bars in groups, by two keys
    ROWS = "rows"


@dataclass(frozen=True)
class ChartRow:
    """An estimate with its interval, its label and its number as text. What is None is not drawn.

    `interval` is its interval as text. A row of a series over time has a `time`, and one of grouped bars a `group`;
    both have the `series` that they belong to where there are several.
    """

    label: str
    value: Any
    low: Any
    high: Any
    text: str
    interval: str = ""
    time: datetime.datetime | None = None
    group: str = ""
    series: str = ""

    @property
    def is_drawable(self) -> bool:
        """Whether the estimate is a number, and so are the ends of its interval where it has one."""
        ends = [end for end in (self.value, self.low, self.high) if end is not None]
        return self.value is not None and all(isinstance(end, Real) and math.isfinite(end) for end in ends)

    @property
    def has_interval(self) -> bool:
        """Whether it has both ends of an interval."""
        return self.low is not None and self.high is not None


@dataclass(frozen=True)
class IntervalChart:
    """Estimates with intervals, one row each, along one axis.

    Attributes
    ----------
    name : str
        What the axis measures, such as the name of a column.
    title : str
        What is drawn, and the confidence of its intervals.
    rows : tuple of ChartRow
        From top to bottom; each renderer shows as many as it has space for, and says so.
    keys : str
        What the labels are, such as the names of the key columns.
    ends : tuple of str, optional
        The least and the largest number as text, where it has a format of its own.
    """

    name: str
    title: str
    rows: tuple[ChartRow, ...]
    keys: str = ""
    ends: tuple[str, str] | None = None

    @property
    def form(self) -> ChartForm:
        """What this is drawn as where there is space for it; rows are always possible."""
        if len(self.rows) == 1 and not self.keys:
            return ChartForm.NUMBER
        if any(row.time is not None for row in self.drawable_rows):
            return ChartForm.TIME
        return ChartForm.GROUPS if any(row.series for row in self.drawable_rows) else ChartForm.ROWS

    @property
    def series(self) -> dict[str, list[ChartRow]]:
        """The rows that have a number, by their series; over time those that have a time, in order of it."""
        found: dict[str, list[ChartRow]] = {}
        is_timed = self.form is ChartForm.TIME
        for row in self.drawable_rows:
            if row.time is not None or not is_timed:
                found.setdefault(row.series, []).append(row)
        for rows in found.values():
            if is_timed:
                rows.sort(key=lambda row: row.time or datetime.datetime.min)
        return found

    @property
    def drawable_rows(self) -> tuple[ChartRow, ...]:
        """The rows that have a number."""
        return tuple(row for row in self.rows if row.is_drawable)


def find_range(rows: tuple[ChartRow, ...]) -> tuple[Any, Any]:
    """Return the least and the largest number that a drawing of these must hold; zero too, where it is near."""
    ends = [value for row in rows for value in (row.low, row.high, row.value) if value is not None]
    low, high = min(ends), max(ends)
    return (0, high) if 0 < low < (high - low) * 2 else (low, high)


def title_with_count(chart: IntervalChart, shown: int) -> str:
    """Return the title, and how many rows are shown where that is not all of them."""
    count = len(chart.drawable_rows)
    return f"{chart.title}; the first {shown} of {count:,} rows" if count > shown else chart.title
