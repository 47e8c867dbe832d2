"""Which form a chart has by its keys: a single number, a series over time, groups of bars, or rows.

>>> import datetime
>>> rows = [ChartRow(f"{day}", day, None, None, "") for day in (1, 2, 3)]
>>> days = [datetime.date(2025, 1, row.value) for row in rows]
>>> [row.time.day for row in arrange_rows(rows, [(day,) for day in days], [(str(day),) for day in days])]
[1, 2, 3]
"""

from __future__ import annotations

import datetime
from collections.abc import Hashable, Sequence
from dataclasses import replace

from tacit.charts.intervals import ChartRow

MAX_SERIES = 6  # that can be told apart by color
_LEAST_TIMES = 3  # fewer are no series


def arrange_rows(
    rows: Sequence[ChartRow], keys: Sequence[Sequence[Hashable]], labels: Sequence[Sequence[str]]
) -> tuple[ChartRow, ...]:
    """Return the rows with the time, or the group and series, that the keys of each give it.

    `keys` are the values of the key columns of each row, and `labels` the same as text. Rows have times where one key
    is a date or a timestamp, and names a row together with at most one other key of few values. They have groups where
    two keys name them and one of both has few values. Else they stay as they are.
    """
    columns = len(keys[0]) if keys else 0
    times = [column for column in range(columns) if any(isinstance(key[column], datetime.date) for key in keys)]
    others = [column for column in range(columns) if column not in times]
    if len(times) == 1:
        moments = [_to_datetime(key[times[0]]) for key in keys]
        known = [moment for moment in moments if moment is not None]
        if len(set(known)) >= _LEAST_TIMES:
            if len(set(known)) == len(known):
                return tuple(replace(row, time=moment) for row, moment in zip(rows, moments, strict=True))
            if len(others) == 1 and _is_series(labels, others[0]) and _names_rows(labels):
                series = [label[others[0]] for label in labels]
                return tuple(
                    replace(row, time=moment, series=each)
                    for row, moment, each in zip(rows, moments, series, strict=True)
                )
    if columns == 2 and not times and _names_rows(labels):
        first, second = (len({label[column] for label in labels}) for column in range(2))
        if len(rows) > max(first, second) and min(first, second) > 1:
            inner = 1 if second <= MAX_SERIES else 0
            if _is_series(labels, inner):
                return tuple(
                    replace(row, group=label[1 - inner], series=label[inner])
                    for row, label in zip(rows, labels, strict=True)
                )
    return tuple(rows)


def _names_rows(labels: Sequence[Sequence[str]]) -> bool:
    return len(set(map(tuple, labels))) == len(labels)


def _is_series(labels: Sequence[Sequence[str]], column: int) -> bool:
    return len({label[column] for label in labels}) <= MAX_SERIES


def _to_datetime(key: object) -> datetime.datetime | None:
    """Return a date as its first moment, a timestamp without its zone, and what is neither as None."""
    if isinstance(key, datetime.datetime):
        return key.replace(tzinfo=None)
    if isinstance(key, datetime.date):
        return datetime.datetime(key.year, key.month, key.day)
    return None
