"""Values in PostgreSQL's types, as text and as binary.

>>> encode(datetime.date(2025, 12, 31), DATE, binary=False)
b'2025-12-31'
>>> decode(encode(-1.5, FLOAT8, binary=True), FLOAT8, binary=True)
-1.5
"""

from __future__ import annotations

import datetime
import math
import re
import struct
from decimal import Decimal, InvalidOperation
from typing import Any

from tacit.query.parameters import MOST_DIGITS
from tacit.query.timestamps import parse_iso_timestamp
from tacit.query.types import Type
from tacit.serve.pgwire.arrays import read_binary_array, read_text_array
from tacit.serve.pgwire.sqlstate import BAD_TEXT, OUT_OF_RANGE, UNSUPPORTED, WireError

BOOL, CHAR, NAME, INT8, INT2, INT4, TEXT, OID = 16, 18, 19, 20, 21, 23, 25, 26
FLOAT4, FLOAT8, UNKNOWN, BPCHAR, VARCHAR = 700, 701, 705, 1042, 1043
DATE, TIMESTAMP, TIMESTAMPTZ, NUMERIC = 1082, 1114, 1184, 1700

_SIZES = {BOOL: 1, CHAR: 1, NAME: 64, INT8: 8, INT2: 2, INT4: 4, OID: 4, FLOAT4: 4, FLOAT8: 8, DATE: 4, TIMESTAMP: 8}
_ARRAYS = {
    BOOL: 1000,
    INT2: 1005,
    INT4: 1007,
    TEXT: 1009,
    INT8: 1016,
    FLOAT8: 1022,
    TIMESTAMP: 1115,
    DATE: 1182,
    NUMERIC: 1231,
    NAME: 1003,
    BPCHAR: 1014,
    VARCHAR: 1015,
    FLOAT4: 1021,
    OID: 1028,
    TIMESTAMPTZ: 1185,
}
_ELEMENTS = {array: element for element, array in _ARRAYS.items()}
_TEXTS = frozenset({TEXT, VARCHAR, BPCHAR, NAME, CHAR, UNKNOWN, 0})
_INTEGERS = {INT2: 2, INT4: 4, INT8: 8, OID: 4}
_OID_BY_TYPE = {
    Type.INT: INT8,
    Type.FLOAT: FLOAT8,
    Type.TEXT: TEXT,
    Type.BOOL: BOOL,
    Type.DATE: DATE,
    Type.TIMESTAMP: TIMESTAMP,
}
_EPOCH = datetime.date(2000, 1, 1)
_EPOCH_MOMENT = datetime.datetime(2000, 1, 1)
_SECOND = 1_000_000
_DAY = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})(?:[ T]([0-9:.]+))? ?(?:Z|[+-][0-9:]+)?")
_LONGEST_NUMBER = 800  # characters of a number that is given
_MOST_GROUPS = 400  # of four digits

# What a type is called in a cast.
OID_BY_NAME = {
    "bool": BOOL,
    "boolean": BOOL,
    "int2": INT2,
    "smallint": INT2,
    "int": INT4,
    "int4": INT4,
    "integer": INT4,
    "int8": INT8,
    "bigint": INT8,
    "float": FLOAT8,
    "float4": FLOAT4,
    "real": FLOAT4,
    "float8": FLOAT8,
    "double": FLOAT8,
    "numeric": NUMERIC,
    "decimal": NUMERIC,
    "text": TEXT,
    "varchar": VARCHAR,
    "bpchar": BPCHAR,
    "char": BPCHAR,
    "character": BPCHAR,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamptz": TIMESTAMPTZ,
    "name": NAME,
    "oid": OID,
}


def type_name(oid: int) -> str:
    """What a type of a column of an answer is called in a cast."""
    element = _ELEMENTS.get(oid)
    if element is not None:
        return f"{type_name(element)}[]"
    return next((name for name, known in OID_BY_NAME.items() if known == oid), "text")


def array_of(element: int | None) -> int | None:
    """The type of arrays of a type; None where there is none."""
    return None if element is None else _ARRAYS.get(element)


def element_of(oid: int) -> int | None:
    """The type of the items of an array type; None of what is no array."""
    return _ELEMENTS.get(oid)


def size_of(oid: int) -> int:
    """The bytes of a type; -1 where they vary."""
    return _SIZES.get(oid, -1)


def type_oid(kind: Type, many: bool = False) -> int:
    """The type of a column of an answer."""
    return _ARRAYS[_OID_BY_TYPE[kind]] if many else _OID_BY_TYPE[kind]


def encode(value: object, oid: int, *, binary: bool) -> bytes | None:
    """A value as bytes; None for NULL."""
    if value is None:
        return None
    if isinstance(value, list):
        element = _ELEMENTS.get(oid, TEXT)
        return _binary_array(value, element) if binary else _text_array(value, element).encode()
    return _binary(value, oid) if binary else _text(value).encode()


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "t" if value else "f"
    if isinstance(value, float):
        return _write_float(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ")
    return value.isoformat() if isinstance(value, datetime.date) else str(value)


def _write_float(value: float) -> str:
    """The shortest text that is this float, as PostgreSQL writes it: 38 and not 38.0, and 1e+15."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")
    shown = repr(value).removesuffix(".0")
    if 1e15 <= abs(value) < 1e16:  # which Python writes out
        digits = shown.lstrip("-").replace(".", "")
        fraction = digits[1:].rstrip("0")
        shown = f"{'-' if value < 0 else ''}{digits[0]}{'.' if fraction else ''}{fraction}e+15"
    return shown


def _binary(value: Any, oid: int) -> bytes:
    if oid == BOOL:
        return b"\1" if value else b"\0"
    if oid in _INTEGERS:
        return int(value).to_bytes(_INTEGERS[oid], "big", signed=oid != OID)
    if oid in {FLOAT4, FLOAT8}:
        return struct.pack(">d" if oid == FLOAT8 else ">f", value)
    if oid == DATE:
        return struct.pack(">i", (value - _EPOCH).days)
    if oid == TIMESTAMP:
        return struct.pack(">q", (value - _EPOCH_MOMENT) // datetime.timedelta(microseconds=1))
    if oid == NUMERIC:
        return _binary_number(Decimal(value))
    return _text(value).encode()


def _binary_array(values: list[Any], element: int) -> bytes:
    parts = [struct.pack(">iiIii", 1, any(each is None for each in values), element, len(values), 1)]
    if not values:
        parts = [struct.pack(">iiI", 0, 0, element)]
    for each in values:
        data = encode(each, element, binary=True)
        parts.append(b"\xff\xff\xff\xff" if data is None else struct.pack(">i", len(data)) + data)
    return b"".join(parts)


def _text_array(values: list[Any], element: int) -> str:
    shown = []
    for each in values:
        text = "NULL" if each is None else _text(each)
        if each is not None and element == TEXT:
            text = '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
        shown.append(text)
    return "{" + ",".join(shown) + "}"


def _binary_number(number: Decimal) -> bytes:
    """Groups of four decimal digits, the weight of the first, the sign, and the digits after the point."""
    if not number.is_finite():
        return struct.pack(">hhHh", 0, 0, 0xC000, 0)
    scale = max(0, -int(number.as_tuple().exponent))
    padded = -(-scale // 4) * 4
    whole = int(abs(number).scaleb(padded))
    groups = []
    while whole:
        whole, group = divmod(whole, 10_000)
        groups.append(group)
    weight = len(groups) - padded // 4 - 1
    groups.reverse()
    return struct.pack(f">hhHh{len(groups)}H", len(groups), weight, 0x4000 if number < 0 else 0, scale, *groups)


def decode(data: bytes, oid: int, *, binary: bool) -> Any:
    """The value of a parameter: text, number, date, a condition, or a list of these."""
    element = _ELEMENTS.get(oid)
    if element is not None:
        items = read_binary_array(data, element) if binary else read_text_array(data)
        return [None if item is None else decode(item, element, binary=binary) for item in items]
    try:
        value = _from_binary(data, oid) if binary else _from_text(data.decode(), oid)
    except (ValueError, struct.error, InvalidOperation, OverflowError):
        raise WireError(BAD_TEXT, "a parameter is not of its type", "give a value of the type of the column") from None
    if isinstance(value, float) and not math.isfinite(value):
        raise WireError(OUT_OF_RANGE, "a parameter is not a finite number", "give a finite number")
    if isinstance(value, Decimal) and (not value.is_finite() or abs(value.adjusted()) > MOST_DIGITS):
        raise WireError(
            OUT_OF_RANGE, "a parameter is not a finite number, or has too many digits", "give a smaller one"
        )
    if isinstance(value, str) and "\0" in value:
        raise WireError("22021", "a parameter holds a NUL character", "remove it")
    return value


def _from_text(text: str, oid: int) -> Any:
    if oid == BOOL:
        word = text.strip().lower()
        if word in {"t", "true", "1", "on", "yes", "y"}:
            return True
        if word in {"f", "false", "0", "off", "no", "n"}:
            return False
        raise ValueError
    if oid in _INTEGERS:
        if len(text) > 20:
            raise ValueError
        return int(text)
    if oid in {FLOAT4, FLOAT8}:
        return float(text)
    if oid == NUMERIC:
        return _parse_numeric(text)
    if oid in {DATE, TIMESTAMP, TIMESTAMPTZ}:
        return _day_or_moment(text, oid)
    return text


def _day_or_moment(text: str, oid: int) -> datetime.date:
    """A date, which drivers write with a zone, 2025-12-31 +00, or at midnight, 2025-12-31 00:00:00+01; or a timestamp.

    Columns hold days and wall-clock times, which have no zone: midnight of a day is that day, and 10:00 is 10:00,
    where it was written. So PostgreSQL reads a timestamp, too.
    """
    found = _DAY.fullmatch(text.strip())
    if found is None:
        return datetime.date.fromisoformat(text)
    day = datetime.date.fromisoformat(found[1])
    if not set(found[2] or "") - set("0:."):
        return day
    moment = parse_iso_timestamp(f"{found[1]} {found[2]}")
    if moment is None:
        raise ValueError
    return _moment_of(moment, oid)


def _moment_of(moment: datetime.datetime, oid: int) -> datetime.date:
    """A moment as a parameter of a type; at midnight it is the day, which is compared with either."""
    if moment.time() == datetime.time():
        return moment.date()
    if oid == DATE:
        raise WireError(BAD_TEXT, "a parameter of type date has a time of day", "give a date, or cast it to timestamp")
    if oid == TIMESTAMPTZ:
        what = "a parameter has a time of day and a zone"
        raise WireError(BAD_TEXT, what, "give the time in the column's own zone, without one: a timestamp")
    return moment


def _parse_numeric(text: str) -> Decimal:
    if len(text) > _LONGEST_NUMBER:
        raise ValueError
    return Decimal(text)


def _from_binary(data: bytes, oid: int) -> Any:
    if oid in _TEXTS:
        return data.decode()
    if oid == BOOL:
        if data not in {b"\0", b"\1"}:
            raise ValueError
        return data == b"\1"
    if oid in _INTEGERS:
        if len(data) != _INTEGERS[oid]:
            raise ValueError
        return int.from_bytes(data, "big", signed=oid != OID)
    if oid in {FLOAT4, FLOAT8}:
        return struct.unpack(">d" if oid == FLOAT8 else ">f", data)[0]
    if oid == DATE:
        return _EPOCH + datetime.timedelta(days=struct.unpack(">i", data)[0])
    if oid in {TIMESTAMP, TIMESTAMPTZ}:
        seconds, rest = divmod(struct.unpack(">q", data)[0], _SECOND)
        return _moment_of(_EPOCH_MOMENT + datetime.timedelta(seconds=seconds, microseconds=rest), oid)
    if oid == NUMERIC:
        return _number(data)
    what = f"a binary parameter of type {oid} is not answered"
    raise WireError(UNSUPPORTED, what, "give numbers, texts, dates and conditions")


def _number(data: bytes) -> Decimal:
    count, weight, sign, _ = struct.unpack(">hhHh", data[:8])
    if sign not in {0, 0x4000} or len(data) != 8 + 2 * count or abs(weight) > _MOST_GROUPS or count > _MOST_GROUPS:
        raise ValueError
    groups = struct.unpack(f">{count}H", data[8:])
    if any(group > 9_999 for group in groups):
        raise ValueError
    whole = 0
    for group in groups:
        whole = whole * 10_000 + group
    digits = tuple(map(int, str(whole)))
    return Decimal((int(sign != 0), digits, 4 * (weight - count + 1)))
