"""Stored times as declared timestamps and dates, as DuckDB reads them.

**Rule.** A timestamp is read as the integer of `query/timestamps.py`: of a time without a zone, what it says; of an
instant (TIMESTAMPTZ, or a text with an offset), what the clock of the declared zone showed then; of a date, its
midnight. What is finer than a microsecond is cut off, toward the earlier time. Infinities, years before 1 and after
9999, and texts that are not ISO 8601 are NULL. A wall clock that would show the year 0 or 10000 is read as the first or
the last moment there is. A date that is stored as a time is the date which that clock showed. No value makes any of
this fail.
"""

from __future__ import annotations

import datetime

from tacit.engines.dialect import DUCKDB, Dialect
from tacit.engines.read_texts import is_written
from tacit.engines.scalars import write_literal
from tacit.engines.zones import UTC, write_wall_clock
from tacit.query.timestamps import DAY, HOUR, LAST, MINUTE, UNIX_EPOCH

INSTANT = "TIMESTAMP WITH TIME ZONE"
MOMENTS = frozenset({"TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", INSTANT})  # as DuckDB stores them
FIRST_DAY, LAST_DAY = (f"DATE '{day.isoformat()}'" for day in (datetime.date.min, datetime.date.max))

_DAY = "[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME = r"[ T](?:[01][0-9]|2[0-3]):[0-9]{2}(?::[0-9]{2}(?:\.[0-9]%s)?)?"
_OFFSET = "(Z|[+-](?:[01][0-9]|2[0-3])(?::?[0-5][0-9])?)"
_ISO = f"^{_DAY}(?:{_TIME % '+'}(?: ?{_OFFSET})?)?$"
_CLOCK = f"^{_DAY}(?:{_TIME % '{1,6}'})?"  # as much of it as a microsecond shows


def read_timestamp(column: str, stored: str, zone: str = UTC) -> str:
    """A stored column as a timestamp: an integer, or NULL. `stored` is the type of DuckDB; VARCHAR is text of a CSV."""
    match stored:
        case "VARCHAR":
            return _read_text(column, zone)
        case "DATE":
            days = f"CAST({column} - {FIRST_DAY} AS BIGINT)"
            return f"CASE WHEN {column} BETWEEN {FIRST_DAY} AND {LAST_DAY} THEN {days} * {DAY} END"
        case "TIMESTAMP_NS":
            nanoseconds = f"epoch_ns({column})"
            return _since_year_one(f"({nanoseconds} // 1000 - CAST({nanoseconds} % 1000 < 0 AS BIGINT))", column)
        case "TIMESTAMP_S" | "TIMESTAMP_MS":
            moment = f"TRY_CAST({column} AS TIMESTAMP)"
            return _since_year_one(f"epoch_us({moment})", moment)
        case "TIMESTAMP":
            return _since_year_one(f"epoch_us({column})", column)
    instant = f"(epoch_us({column}) + {UNIX_EPOCH})"
    wall = keep_within_years(write_wall_clock(instant, zone))
    return _since_year_one(f"epoch_us({column})", column, wall)


def read_date(column: str, stored: str, zone: str = UTC) -> str:
    """A column that is stored as a time, or as text in a zone, as the date that the clock showed."""
    return to_date(read_timestamp(column, stored, zone), DUCKDB)


def to_date(timestamp: str, dialect: Dialect) -> str:
    """The date of a timestamp, as SQL."""
    days = dialect.quotient.format(timestamp, write_literal(DAY))
    return dialect.after_first_day.format(f"CAST({days} AS INTEGER)")


def keep_within_years(wall: str) -> str:
    """A wall-clock time that is not NULL, kept within the years 1 to 9999."""
    return f"GREATEST(0, LEAST({wall}, {LAST}))"


def _since_year_one(microseconds: str, column: str, wall: str | None = None) -> str:
    """Microseconds since 1970 as a timestamp; NULL for infinities and other years. Infinities are large integers."""
    value = f"{microseconds} + {UNIX_EPOCH}" if wall is None else wall
    known = f"isfinite({column}) AND {microseconds} BETWEEN {-UNIX_EPOCH} AND {LAST - UNIX_EPOCH}"
    return f"CASE WHEN {known} THEN {value} END"


def _read_text(column: str, zone: str) -> str:
    """A text of ISO 8601. DuckDB ignores an offset where it casts, so it is read apart.

    A text that is written as DuckDB writes a time without one, but for a T, is read first: patterns take longer.
    """
    moment = f"TRY_CAST({column} AS TIMESTAMP)"
    is_usual = is_written(moment, f"replace({column}, 'T', ' ')")
    usual = f"WHEN {is_usual} THEN {_since_year_one(f'epoch_us({moment})', moment)}"
    clock = f"TRY_CAST(regexp_extract({column}, '{_CLOCK}') AS TIMESTAMP)"
    local = _since_year_one(f"epoch_us({clock})", clock)
    offset = f"regexp_extract({column}, '{_ISO}', 1)"
    hours = f"CAST(substr({offset}, 2, 2) AS BIGINT)"
    minutes = f"CAST('0' || replace(substr({offset}, 4), ':', '') AS BIGINT)"
    size = f"({hours} * {HOUR} + {minutes} * {MINUTE})"
    east = f"CASE left({offset}, 1) WHEN '+' THEN {size} WHEN '-' THEN -{size} ELSE 0 END"
    wall = keep_within_years(write_wall_clock("v", zone))
    instant = f"list_transform([{local} - {east}], lambda v: CASE WHEN v BETWEEN 0 AND {LAST} THEN {wall} END)[1]"
    read = f"CASE WHEN {offset} = '' THEN {local} ELSE {instant} END"
    return f"CASE {usual} WHEN regexp_matches({column}, '{_ISO}') THEN {read} END"
