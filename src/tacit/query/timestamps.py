"""Timestamps as integers: microseconds of the wall clock since the first moment of the year 1.

**Rule.** Inside plans and engines a timestamp is a 64-bit integer: the microseconds from 0001-01-01 00:00:00 to what a
clock on the wall shows in the column's declared zone, as `date.toordinal` counts days. It lies from 0 to `LAST`, the
last microsecond of the year 9999, or is NULL. So the rules for integers with bounds hold for timestamps as they are:
sensitivities, caps, clamps, hashes and orders know no others. Calendar functions are divisions of such integers, which
no time zone database, session setting or engine takes part in. Only what an analyst sees is a date with a time.

A stored time without a zone is what the clock showed. A stored instant (TIMESTAMPTZ) is read as what the clock showed
then: that is total, and ambiguous nowhere. Of the hour that a clock shows twice when summer time ends, both passes are
that hour; the hour that it skips occurs only where it was stored so, and is read as it is.

>>> to_microseconds(datetime.datetime(1, 1, 2)) == DAY
True
>>> to_datetime(to_microseconds(datetime.datetime(2025, 3, 30, 2, 30)))
datetime.datetime(2025, 3, 30, 2, 30)
"""

from __future__ import annotations

import datetime
import re

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR
WEEK = 7 * DAY  # 0001-01-01 is a Monday
UNIX_EPOCH = (datetime.date(1970, 1, 1).toordinal() - 1) * DAY
LAST = datetime.date.max.toordinal() * DAY - 1

PERIODS = {"second": SECOND, "minute": MINUTE, "hour": HOUR, "day": DAY, "week": WEEK}  # units of one length
_START = datetime.datetime(1, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_ISO = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?Z?)?", re.ASCII
)


def to_microseconds(moment: datetime.datetime | datetime.date) -> int:
    """The integer of a wall-clock time; of a date, that of its midnight."""
    if not isinstance(moment, datetime.datetime):
        return (moment.toordinal() - 1) * DAY
    return (moment.replace(tzinfo=None) - _START) // _MICROSECOND


def to_datetime(microseconds: int) -> datetime.datetime:
    """The wall-clock time of an integer, without a zone."""
    return _START + datetime.timedelta(microseconds=microseconds)


def to_day(microseconds: int) -> datetime.date:
    """The date that a wall-clock time lies in."""
    return datetime.date.fromordinal(1 + microseconds // DAY)


def parse_iso_timestamp(text: str) -> datetime.datetime | None:
    """The time that YYYY-MM-DD, or YYYY-MM-DD HH:MM[:SS[.ffffff]], says, with a T or a blank between; or None.

    A Z after it is read over, as PostgreSQL does for a timestamp without a zone.

    >>> parse_iso_timestamp("2025-03-01T10:00"), parse_iso_timestamp("2025-03-01 10:00+02")
    (datetime.datetime(2025, 3, 1, 10, 0), None)
    """
    found = _ISO.fullmatch(text)
    if found is None:
        return None
    day, clock, seconds, fraction = found.groups()
    try:
        moment = datetime.datetime.fromisoformat(f"{day}T{clock or '00:00'}:{seconds or '00'}")
    except ValueError:
        return None
    return moment.replace(microsecond=int((fraction or "0").ljust(6, "0")))
