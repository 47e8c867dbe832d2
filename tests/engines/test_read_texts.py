"""What stands in CSV files is read as the number or the day that it is, beside readers written in Python."""

from __future__ import annotations

import datetime
import re
from decimal import Decimal, InvalidOperation

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit.engines.declared import read_text
from tacit.engines.duckdb_connection import connect_in_memory
from tacit.engines.read_texts import read_day, read_float, read_integer
from tacit.query.types import Type

texts = st.one_of(
    st.text("0123456789.,-+eE_x ", max_size=12),
    st.integers(-(2**64), 2**64).map(str),
    st.integers(-(10**12), 10**12).map(lambda n: f"{n:,}".replace(",", ".")),
    st.integers(-(10**12), 10**12).map(lambda n: f"{n}.0"),
    st.decimals(-(10**9), 10**9, places=3).map(str),
    st.decimals(-(10**9), 10**9, places=2).map(lambda x: f"{x:,}".translate(str.maketrans(",.", ".,"))),
    st.floats().map(repr),
    st.tuples(st.integers(0, 1300), st.integers(0, 999)).map(lambda pair: f"{pair[0]}.{pair[1]:03}"),
)


def read(*expressions: str, text: str) -> tuple[object, ...]:
    with connect_in_memory() as connection:
        connection.execute("CREATE TABLE t AS SELECT ?::VARCHAR AS v", [text])
        row = connection.execute(f"SELECT {', '.join(expressions)} FROM t").fetchone()
        assert row is not None
        return row


def plain(text: str) -> Decimal | None:
    """A number as programs write it."""
    if "_" in text or not text.isascii():
        return None
    try:
        return Decimal(text.strip())
    except InvalidOperation:
        return None


def with_dots(text: str) -> Decimal | None:
    """An integer whose thousands have dots, and at least one: those of Python's commas."""
    text = text.strip().removeprefix("+")
    digits = text.replace(".", "")
    if "." not in text or not digits.isascii() or not digits.removeprefix("-").isdigit():
        return None
    return Decimal(digits) if f"{int(digits):,}" == text.replace(".", ",") else None


def with_comma(text: str) -> Decimal | None:
    """A number with one decimal comma, whose integer part may have dots."""
    whole, comma, rest = text.strip().partition(",")
    sign = "-" if whole.startswith("-") else ""
    if not comma or not rest[:1].isdigit() or whole[-1:] not in "0123456789" or not whole or "e" in whole.lower():
        return None
    integer = with_dots(whole) if "." in whole else plain(whole)
    fraction = plain(f"0.{rest}")
    exponent = plain("1" + rest[re.match("[0-9]*", rest).end() :])
    if integer is None or fraction is None or exponent is None:
        return None
    return plain(f"{sign}{abs(int(integer))}.{rest}")


@settings(deadline=None, max_examples=examples(150))
@given(texts)
def test_numbers_are_read_as_they_are_written_or_not_at_all(text):
    integer, number = read(
        read_integer("v", has_decimal_commas=False), read_float("v", has_decimal_commas=False), text=text
    )
    value = plain(text)
    if value is None:
        assert integer is None and number is None
        return
    assert number == float(value) or (number != number and value.is_nan())
    if not value.is_finite() or value != value.to_integral_value() or not -(2**63) <= value < 2**63:
        assert integer is None
    elif re.fullmatch(r"[+-]?\d+(\.0*|[eE][+]?\d{1,2})?", text.strip()):  # of up to 18 digits with an exponent
        assert integer == int(value) or ("e" in text.lower() and len(text) > 19)


@settings(deadline=None, max_examples=examples(150))
@given(texts)
def test_a_number_that_is_one_in_two_ways_is_none_where_commas_are_decimal(text):
    integer, number = read(
        read_integer("v", has_decimal_commas=True), read_float("v", has_decimal_commas=True), text=text
    )
    if "," in text:
        value = with_comma(text)
        assert (number is None) == (value is None) and (value is None or number == float(value))
        assert integer is None or integer == value
        return
    ways = {value for value in (plain(text), with_dots(text)) if value is not None}
    if len(ways) == 1:
        [value] = ways
        assert number == float(value) or (number != number and value.is_nan())
    else:
        assert number is None
    assert integer is None or integer in (with_dots(text), plain(text))
    grouped = with_dots(text)
    if grouped is not None and abs(grouped) < 2**63:
        may_be_one = plain(text) is not None and plain(text) == plain(text).to_integral_value()
        assert integer == (None if may_be_one else grouped)  # 1.000


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2024-02-29", datetime.date(2024, 2, 29)),
        ("2024/2/9", datetime.date(2024, 2, 9)),
        (" 2024-02-09 ", datetime.date(2024, 2, 9)),
        ("2024-02-09 23:59:59.5", datetime.date(2024, 2, 9)),
        ("2024-02-09T23:59", datetime.date(2024, 2, 9)),
        ("9999-12-31", datetime.date(9999, 12, 31)),
        ("0001-01-01", datetime.date(1, 1, 1)),
        ("2023-02-29", None),
        ("05/01/24", None),  # of which year?
        ("05/01/2024", None),
        ("5.1.2024", None),
        ("24-01-05", None),
        ("20240105", None),
        ("2024-01/05", None),
        ("12024-01-05", None),
        ("epoch", None),
        ("infinity", None),
        ("", None),
    ],
)
def test_a_day_is_read_where_its_year_stands_first_in_four_digits(text, day):
    assert read(read_day("v"), text=text) == (day,)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("1e+05", 100_000),
        ("1E5", 100_000),
        ("38.00", 38),
        ("38.", 38),
        ("1e18", 10**18),
        ("123456789012345678e0", 123456789012345678),
        *((text, None) for text in ("1e-05", "1.5e1", "1e19", "2.50", "1e99", "e5", "38.0.0", "1e+5.0")),
    ],
)
def test_integers_as_programs_write_them(text, number):
    assert read(read_integer("v", has_decimal_commas=False), text=text) == (number,)


@pytest.mark.parametrize("zone", [None, "Europe/Zurich"])
@pytest.mark.parametrize("offset", ["Z", "+00", " +00:00", "-08:00"])
@pytest.mark.parametrize("clock", ["T12:00:00", " 12:00:00.000"])
def test_a_day_of_an_instant_is_read(clock, offset, zone):
    found = read(read_text("v", Type.DATE, zone, False), text=f"2024-01-05{clock}{offset}")
    assert found == (datetime.date(2024, 1, 5),)


def test_the_day_of_an_instant_is_that_of_the_zone():
    late = "2024-01-05 23:30:00+00"
    assert read(read_text("v", Type.DATE, None, False), text=late) == (datetime.date(2024, 1, 5),)
    assert read(read_text("v", Type.DATE, "Europe/Zurich", False), text=late) == (datetime.date(2024, 1, 6),)


@given(
    st.dates(), st.sampled_from(["%Y-%m-%d", "%Y/%m/%d", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m/%d/%Y", "%y-%m-%d"])
)
@settings(deadline=None, max_examples=examples(60))
def test_no_day_is_read_as_another(day, form):
    text = f"{day.year:04}".join(day.strftime(form.replace("%Y", "\0")).split("\0"))
    assert read(read_day("v"), text=text) in {(day,), (None,)}
