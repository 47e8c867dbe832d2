"""Round moments along an axis of time.

>>> import datetime
>>> [label for _, label in find_time_ticks(datetime.datetime(2025, 1, 1), datetime.datetime(2025, 12, 1))]
['Jan 2025', 'Apr', 'Jul', 'Oct']
"""

from __future__ import annotations

import datetime
from collections.abc import Iterator

_COUNT = 6  # ticks, at most
_MONTHS = (1, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12_000, 24_000, 60_000)
_SECONDS = (1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800, 1_209_600)
_DAY = 86_400


def find_time_ticks(low: datetime.datetime, high: datetime.datetime) -> list[tuple[datetime.datetime, str]]:
    """Return moments from `low` to `high` at round steps, six at most, with their labels; the first has the year."""
    span = (high - low).total_seconds()
    for seconds in _SECONDS:
        if span / seconds < _COUNT:
            ticks = [(moment, _label_moment(moment, seconds)) for moment in _step_seconds(low, high, seconds)]
            break
    else:
        apart = 12 * (high.year - low.year) + high.month - low.month
        months = next(step for step in _MONTHS if apart // step < _COUNT)
        ticks = [(moment, _label_month(moment, months)) for moment in _step_months(low, high, months)]
    for place, (moment, label) in enumerate(ticks):
        if place == 0 or moment.year != ticks[place - 1][0].year:
            ticks[place] = moment, _add_year(moment, label)
    return ticks


def _step_seconds(low: datetime.datetime, high: datetime.datetime, seconds: int) -> Iterator[datetime.datetime]:
    begin = datetime.datetime(low.year, low.month, low.day)
    place = -(-int((low - begin).total_seconds()) // seconds)
    while (moment := begin + datetime.timedelta(seconds=place * seconds)) <= high:
        if moment >= low:
            yield moment
        place += 1


def _step_months(low: datetime.datetime, high: datetime.datetime, months: int) -> Iterator[datetime.datetime]:
    place = (12 * low.year + low.month - 1) // months * months
    while place // 12 <= min(high.year, datetime.MAXYEAR):
        if place >= 12:
            moment = datetime.datetime(place // 12, place % 12 + 1, 1)
            if moment > high:
                return
            if moment >= low:
                yield moment
        place += months


def _label_moment(moment: datetime.datetime, seconds: int) -> str:
    if moment.time() == datetime.time():
        return f"{moment:%b} {moment.day}"
    return f"{moment:%H:%M:%S}" if seconds < 60 else f"{moment:%H:%M}"


def _label_month(moment: datetime.datetime, months: int) -> str:
    return f"{moment.year}" if months >= 12 else f"{moment:%b}"


def _add_year(moment: datetime.datetime, label: str) -> str:
    """Return a label with the year, and the day where it has an hour only."""
    if ":" in label:
        return f"{moment:%b} {moment.day}, {moment.year} {label}"
    return label if label.isdecimal() else f"{label}{',' if label[-1].isdigit() else ''} {moment.year}"
