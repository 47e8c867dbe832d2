r"""Texts of CSV files as declared integers, floats and dates, as DuckDB reads them.

**Rule.** A text is read as the number or the day that it is, whatever stands in other rows, or it is NULL: it is not
rounded, and what can be read in two ways is not read. An integer may have zeros after a point, as files have it where a
column of integers has gaps, or an exponent: 38.0 and 1e+05 are integers. A date is a year of four digits, a month and a
day; a time after it is left out, and with an offset it is an instant, whose day is that of UTC.

In files that have decimal commas, which are those with semicolons, dots may separate thousands: 1.234,5 is 1234.5 and
1.234.567 is 1234567. There 1.234 is an integer, but no float: it may be 1234 as well as 1.234. And 1.000, which may be
1, is neither.
"""

from __future__ import annotations

_DIGITS = "[+-]?[0-9]+"
_THOUSANDS = "[+-]?[1-9][0-9]{0,2}(?:[.][0-9]{3})"
_EXPONENT = "(?:[eE][+-]?[0-9]+)?"
_FLOAT = rf"[+-]?(?:[0-9]+[.]?[0-9]*|[.][0-9]+){_EXPONENT}|(?i:[+-]?(?:nan|inf|infinity))"
_WITH_COMMA = f"(?:{_DIGITS}|{_THOUSANDS}+),[0-9]+{_EXPONENT}"
_DAY = "[0-9]{4}(?:-[0-9]{1,2}-[0-9]{1,2}|/[0-9]{1,2}/[0-9]{1,2})(?:[ T][0-9:.]+)?"
_WHOLE_EXPONENT = "[+-]?[0-9]{1,18}[eE][+]?[0-9]{1,2}"


def read_integer(column: str, *, has_decimal_commas: bool) -> str:
    """A text as an integer of 64 bits, or NULL. One that is written as DuckDB writes it, as most are, is read first:
    nothing else is written so, and patterns take longer."""
    value = f"TRY_CAST({column} AS BIGINT)"
    usual = f"WHEN {is_written(value, column)} THEN {value}"
    zeros = "(?:[.]0{0,2}|,0*)" if has_decimal_commas else "[.]0*"
    plain = rf"TRY_CAST(regexp_extract({column}, '^\s*({_DIGITS})(?:{zeros})?\s*$', 1) AS BIGINT)"
    # 38 digits hold each of them exactly, so that no exponent is rounded
    exponent = f"WHEN {_is(column, _WHOLE_EXPONENT)} THEN TRY_CAST(TRY_CAST({column} AS DECIMAL(38, 0)) AS BIGINT)"
    if not has_decimal_commas:
        return f"CASE {usual} {exponent} ELSE {plain} END"
    unclear = f"WHEN {_is(column, '[+-]?[1-9][0-9]{0,2}[.]000')} THEN NULL"
    thousands = f"WHEN {_is(column, f'{_THOUSANDS}+')} THEN {_without_dots(column, 'BIGINT')}"
    return f"CASE {usual} {unclear} {thousands} {exponent} ELSE {plain} END"


def read_float(column: str, *, has_decimal_commas: bool) -> str:
    """A text as a float, NaN and infinities among them, or NULL."""
    plain = f"WHEN {_is(column, _FLOAT)} THEN TRY_CAST({column} AS DOUBLE)"
    if not has_decimal_commas:
        return f"CASE {plain} END"
    with_comma = f"WHEN {_is(column, _WITH_COMMA)} THEN {_without_dots(column, 'DOUBLE')}"
    millions = f"WHEN {_is(column, f'{_THOUSANDS}{{2,}}')} THEN {_without_dots(column, 'DOUBLE')}"
    return f"CASE {with_comma} {millions} WHEN {is_ambiguous(column)} THEN NULL {plain} END"


def is_ambiguous(column: str) -> str:
    """Whether a text of a file with decimal commas may be a number of thousands or one with three decimals."""
    return _is(column, _THOUSANDS)


def read_day(column: str) -> str:
    """A text as a date of any year, or NULL."""
    return f"CASE WHEN {_is(column, _DAY)} THEN TRY_CAST({column} AS DATE) END"


def is_written(value: str, text: str) -> str:
    """Whether a text is the one that DuckDB writes for a value."""
    return f"CAST({value} AS VARCHAR) = {text}"


def _is(column: str, pattern: str) -> str:
    return rf"regexp_full_match({column}, '\s*(?:{pattern})\s*')"


def _without_dots(column: str, kind: str) -> str:
    return f"TRY_CAST(replace(replace({column}, '.', ''), ',', '.') AS {kind})"
