"""Instants as what a clock on the wall showed, in a declared zone: an offset that is looked up, by SQL that knows none.

The offsets of a zone are read from Python's time zone database and written into the statement, so that no extension and
no setting of DuckDB takes part, and two machines with one database of zones read one file alike.

**Rule.** From the year 1800 to 2199 the offset is that of the database. Before, it is the first that the zone had, and
from 2200 on the one with which 2199 ends: what is stored so far off is a mark for "never", and its hour means nothing.
An offset that was in force for less than a week is not seen: there was one, in Freetown in September 1939.
"""

from __future__ import annotations

import datetime
from functools import cache
from zoneinfo import ZoneInfo

from tacit.query.timestamps import SECOND, WEEK, to_datetime, to_microseconds

UTC = "UTC"
_FIRST = to_microseconds(datetime.datetime(1800, 1, 1))  # before there were any zones
_LAST = to_microseconds(datetime.datetime(2200, 1, 1))
_STEP = WEEK
_MICROSECOND = datetime.timedelta(microseconds=1)

Offsets = tuple[tuple[int, int], ...]
"""From which instant on there is which offset, both in microseconds; the first holds before, too."""


@cache
def list_offsets(zone: str) -> Offsets:
    """The offsets of a zone. Instants are counted as timestamps are, in UTC."""
    place = ZoneInfo(zone)
    stops = [*range(_FIRST, _LAST, _STEP), _LAST]
    offsets = [_offset(place, stop) for stop in stops]
    found = [(_FIRST, offsets[0])]
    for index in range(1, len(stops)):
        if offsets[index] != offsets[index - 1]:
            found += _find_changes(place, stops[index - 1], stops[index])
    return tuple(found)


def _find_changes(place: ZoneInfo, first: int, last: int) -> list[tuple[int, int]]:
    """The changes of the offset after `first` up to `last`, at whole seconds, found by halving."""
    if _offset(place, first) == _offset(place, last):
        return []
    if last - first == SECOND:
        return [(last, _offset(place, last))]
    middle = first + (last - first) // (2 * SECOND) * SECOND
    return _find_changes(place, first, middle) + _find_changes(place, middle, last)


def _offset(place: ZoneInfo, instant: int) -> int:
    moment = to_datetime(instant)
    return (place.fromutc(moment.replace(tzinfo=place)).replace(tzinfo=None) - moment) // _MICROSECOND


def write_wall_clock(instant: str, zone: str) -> str:
    """SQL for the wall-clock time of an instant, both as timestamps are counted.

    It names the instant in a search by halving, of which about nine comparisons are computed for a row.
    """
    return instant if zone == UTC else f"({instant} + {_write_search(instant, list_offsets(zone))})"


def _write_search(instant: str, offsets: Offsets) -> str:
    if len(offsets) == 1:
        return str(offsets[0][1])
    middle = len(offsets) // 2
    before, after = _write_search(instant, offsets[:middle]), _write_search(instant, offsets[middle:])
    return f"CASE WHEN {instant} < {offsets[middle][0]} THEN {before} ELSE {after} END"
