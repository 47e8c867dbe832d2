"""Formats of dates: TO_CHAR's, STRFTIME's, MySQL's and Java's as one, so that one meaning is one question.

A format is a text with fields in braces. `FIELDS` says for each the unit that it depends on, so it is known which dates
look alike under a format.

>>> read_postgresql_format("YYYY-MM"), read_strftime_format("%Y-%m"), read_java_format("yyyy-MM")
('{year}-{month2}', '{year}-{month2}', '{year}-{month2}')
>>> render("{Mon} {day1}, {year}", datetime.datetime(2025, 3, 1))
'Mar 1, 2025'
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable

MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NAME_WIDTH = 9  # to which PostgreSQL pads names of months and days

# The unit on whose first moment the field may change.
FIELDS: dict[str, str] = {
    **dict.fromkeys(("year", "yy"), "year"),
    "quarter": "quarter",
    **dict.fromkeys(("month2", "month1"), "month"),
    **dict.fromkeys(("isoyear", "week", "week1"), "week"),
    **dict.fromkeys(("day2", "day1", "doy", "dow0", "dow1", "isodow"), "day"),
    **dict.fromkeys(("hour", "hour1", "hour12", "am"), "hour"),
    "minute": "minute",
    "second": "second",
}
_LETTERS: tuple[Callable[[str], str], ...] = (str.title, str.upper, str.lower)
# Names of months and days: their list, whether they are cut to three letters, in which case, and whether padded.
NAMES: dict[str, tuple[tuple[str, ...], bool, Callable[[str], str], bool]] = {
    written + ("9" if padded else ""): (names, len(title) == short, letters, padded)
    for names, title, short in ((MONTHS, "Month", 0), (MONTHS, "Mon", 3), (WEEKDAYS, "Day", 0), (WEEKDAYS, "Dy", 2))
    for letters in _LETTERS
    for written in (letters(title),)
    for padded in (False, True)
    if not (padded and short)
}
FIELDS |= {name: "month" if names is MONTHS else "day" for name, (names, *_) in NAMES.items()}

_POSTGRESQL = {
    **{"HH24": "hour", "HH12": "hour12", "HH": "hour12", "MI": "minute", "SS": "second"},
    **{"IYYY": "isoyear", "YYYY": "year", "YY": "yy", "Q": "quarter", "MM": "month2", "DDD": "doy", "DD": "day2"},
    **{"D": "dow1", "ID": "isodow", "IW": "week"},
}
_POSTGRESQL |= {word.lower(): field for word, field in _POSTGRESQL.items()} | {"AM": "am", "PM": "am"}
_OTHER_POSTGRESQL = ("SSSSS", "SSSS", "IDDD")  # which are no two fields of the above
_SNOWFLAKE = {
    **{"YYYY": "year", "YY": "yy", "MMMM": "Month", "MM": "month2", "MON": "Mon", "DD": "day2", "DY": "Dy"},
    **{"HH24": "hour", "HH12": "hour12", "MI": "minute", "SS": "second"},
}
_WITHOUT_ZEROS = {"month2": "month1", "day2": "day1", "week": "week1", "hour": "hour1"}
_STRFTIME = {
    **{"Y": "{year}", "y": "{yy}", "G": "{isoyear}", "m": "{month2}", "-m": "{month1}", "B": "{Month}", "b": "{Mon}"},
    **{"h": "{Mon}", "d": "{day2}", "-d": "{day1}", "j": "{doy}", "V": "{week}", "u": "{isodow}", "w": "{dow0}"},
    **{"H": "{hour}", "-H": "{hour1}", "I": "{hour12}", "M": "{minute}", "S": "{second}", "p": "{am}"},
    **{
        "A": "{Day}",
        "a": "{Dy}",
        "F": "{year}-{month2}-{day2}",
        "T": "{hour}:{minute}:{second}",
        "R": "{hour}:{minute}",
    },
    **{"%": "%", "Q": "{quarter}"},
}
_MYSQL = {
    **{"Y": "{year}", "y": "{yy}", "x": "{isoyear}", "m": "{month2}", "c": "{month1}", "M": "{Month}", "b": "{Mon}"},
    **{"d": "{day2}", "e": "{day1}", "j": "{doy}", "v": "{week}", "w": "{dow0}", "W": "{Day}", "a": "{Dy}"},
    **{"H": "{hour}", "k": "{hour1}", "h": "{hour12}", "I": "{hour12}", "i": "{minute}", "S": "{second}"},
    **{"s": "{second}", "p": "{am}", "T": "{hour}:{minute}:{second}", "%": "%"},
}
# Of DATE_FORMAT in other dialects: STRFTIME's codes too, but for those that are other weeks in MySQL.
_DATE_FORMAT = {code: part for code, part in _STRFTIME.items() if code not in {"u", "V"}} | _MYSQL
_JAVA = {
    **{"yyyy": "{year}", "yy": "{yy}", "y": "{year}", "MMMM": "{Month}", "MMM": "{Mon}", "MM": "{month2}"},
    **{
        "M": "{month1}",
        "dd": "{day2}",
        "d": "{day1}",
        "DDD": "{doy}",
        "HH": "{hour}",
        "H": "{hour1}",
        "hh": "{hour12}",
    },
    **{"mm": "{minute}", "ss": "{second}", "a": "{am}", "EEEE": "{Day}", "EEE": "{Dy}", "E": "{Dy}", "Q": "{quarter}"},
}


def _any_of(words: Iterable[str]) -> str:
    """A pattern for one of these words, the longest that fits."""
    return "|".join(sorted(words, key=len, reverse=True))


_POSTGRESQL_NAMES = {letters(title) for title in ("Month", "Mon", "Day", "Dy") for letters in _LETTERS}
_POSTGRESQL_WORDS = {*_POSTGRESQL, *_POSTGRESQL_NAMES, *_OTHER_POSTGRESQL, *map(str.lower, _OTHER_POSTGRESQL)}
_POSTGRESQL_TOKEN = re.compile(rf'"([^"{{}}\\]*)"|(FM|fm)?({_any_of(_POSTGRESQL_WORDS)})|(\\(?!")|[^A-Za-z"{{}}\\])')
_SNOWFLAKE_TOKEN = re.compile(rf'"([^"{{}}\\]*)"|(AM|PM)|((?i:{_any_of(_SNOWFLAKE)}))|([-/:,;.=() ])')
_STRFTIME_TOKEN = re.compile(r"%(-?[A-Za-z%])|([^%{}])")
_JAVA_TOKEN = re.compile(r"'([^'{}]*)'|([A-Za-z])\2*|([^A-Za-z'{}])")
_PART = re.compile(r"\{(\w+)\}|([^{}]+)")


def read_postgresql_format(text: str) -> str | None:
    """The format that TO_CHAR means by a text; None where it has a part that is not answered.

    Its words are in capitals or in small letters, and those of names also with one capital: Mm is no MM. The longest
    word that fits is meant, as in PostgreSQL.
    """

    def translate(match: re.Match[str]) -> str | None:
        quoted, plain, word, sign = match.groups()
        if word is None:
            return sign if quoted is None else quoted
        if word in _POSTGRESQL_NAMES:
            return f"{{{word}}}" if plain or f"{word}9" not in NAMES else f"{{{word}9}}"
        field = _POSTGRESQL.get(word)
        if field is None or (plain and field not in _WITHOUT_ZEROS):
            return None
        return f"{{{_WITHOUT_ZEROS[field] if plain else field}}}"

    return _translate_tokens(text, _POSTGRESQL_TOKEN, translate)


def read_snowflake_format(text: str) -> str | None:
    """The format that TO_CHAR means by a text in Snowflake; None where it has a part that is not answered.

    Its words mean the same in capitals and in small letters, but for AM and PM, which are in capitals here.
    """

    def translate(match: re.Match[str]) -> str:
        quoted, half, word, sign = match.groups()
        if half or word:
            return "{am}" if half else f"{{{_SNOWFLAKE[word.upper()]}}}"
        return sign if quoted is None else quoted

    return _translate_tokens(text, _SNOWFLAKE_TOKEN, translate)


def read_strftime_format(text: str, codes: dict[str, str] = _STRFTIME) -> str | None:
    """The format that STRFTIME means by a text; None where it has a part that is not answered."""
    return _translate_tokens(text, _STRFTIME_TOKEN, lambda match: codes.get(match[1]) if match[1] else match[2])


def read_mysql_format(text: str) -> str | None:
    """The format that MySQL's DATE_FORMAT means by a text."""
    return read_strftime_format(text, _MYSQL)


def read_date_format(text: str) -> str | None:
    """The format that DATE_FORMAT means by a text where the dialect has none: with % MySQL's, and otherwise Spark's."""
    return read_strftime_format(text, _DATE_FORMAT) if "%" in text else read_java_format(text)


def read_java_format(text: str) -> str | None:
    """The format that Spark's DATE_FORMAT means by a text."""

    def translate(match: re.Match[str]) -> str | None:
        return _JAVA.get(match[0]) if match[2] else match[1] if match[3] is None else match[3]

    return _translate_tokens(text, _JAVA_TOKEN, translate)


def _translate_tokens(
    text: str, token: re.Pattern[str], translate: Callable[[re.Match[str]], str | None]
) -> str | None:
    """Return what the tokens of a text are translated to, in turn; None where it has something else, or one is None."""
    found, position = "", 0
    while position < len(text):
        match = token.match(text, position)
        part = None if match is None else translate(match)
        if match is None or part is None:
            return None
        found, position = found + part, match.end()
    return found


def split_format(pattern: str) -> list[tuple[str, str]]:
    """The parts of a format: (field, "") or ("", text)."""
    return [(match[1] or "", match[2] or "") for match in _PART.finditer(pattern)]


def name_texts(field: str) -> tuple[str, ...]:
    """The names of months, or of days from Monday on, as a field writes them."""
    names, short, letters, padded = NAMES[field]
    cut = (letters(name[:3] if short else name) for name in names)
    return tuple(name.ljust(NAME_WIDTH) if padded else name for name in cut)


def compile_format(pattern: str) -> Callable[[datetime.datetime], str]:
    """A function that writes moments as a format says."""
    writers = [_find_writer(field) if field else (lambda _, text=text: text) for field, text in split_format(pattern)]
    return lambda moment: "".join([write(moment) for write in writers])


def render(pattern: str, moment: datetime.datetime) -> str:
    """A moment as a format writes it."""
    return compile_format(pattern)(moment)


def _find_writer(field: str) -> Callable[[datetime.datetime], str]:
    if field not in NAMES:
        return _RENDER[field]
    texts = name_texts(field)
    if FIELDS[field] == "month":
        return lambda moment: texts[moment.month - 1]
    return lambda moment: texts[moment.weekday()]


_RENDER: dict[str, Callable[[datetime.datetime], str]] = {
    "year": lambda m: f"{m.year:04}",
    "yy": lambda m: f"{m.year % 100:02}",
    "quarter": lambda m: str((m.month + 2) // 3),
    "month2": lambda m: f"{m.month:02}",
    "month1": lambda m: str(m.month),
    "isoyear": lambda m: f"{m.isocalendar().year:04}",
    "week": lambda m: f"{m.isocalendar().week:02}",
    "week1": lambda m: str(m.isocalendar().week),
    "day2": lambda m: f"{m.day:02}",
    "day1": lambda m: str(m.day),
    "doy": lambda m: f"{m.timetuple().tm_yday:03}",
    "dow0": lambda m: str(m.isoweekday() % 7),
    "dow1": lambda m: str(m.isoweekday() % 7 + 1),
    "isodow": lambda m: str(m.isoweekday()),
    "hour": lambda m: f"{m.hour:02}",
    "hour1": lambda m: str(m.hour),
    "hour12": lambda m: f"{(m.hour + 11) % 12 + 1:02}",
    "am": lambda m: "AM" if m.hour < 12 else "PM",
    "minute": lambda m: f"{m.minute:02}",
    "second": lambda m: f"{m.second:02}",
}
