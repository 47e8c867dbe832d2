"""Values as text and as binary."""

from __future__ import annotations

import contextlib
import datetime
import struct
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tacit.errors import ParameterError
from tacit.query.parameters import bind_parameters
from tacit.serve.pgwire.sqlstate import WireError
from tacit.serve.pgwire.types import (
    BOOL,
    DATE,
    FLOAT8,
    INT2,
    INT4,
    INT8,
    NUMERIC,
    TEXT,
    TIMESTAMP,
    TIMESTAMPTZ,
    decode,
    encode,
)

CASES = st.one_of(
    st.tuples(st.just(BOOL), st.booleans()),
    st.tuples(st.just(INT2), st.integers(-(2**15), 2**15 - 1)),
    st.tuples(st.just(INT4), st.integers(-(2**31), 2**31 - 1)),
    st.tuples(st.just(INT8), st.integers(-(2**63), 2**63 - 1)),
    st.tuples(st.just(FLOAT8), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just(TEXT), st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))),
    st.tuples(st.just(DATE), st.dates()),
    st.tuples(st.just(NUMERIC), st.decimals(-(10**12), 10**12, places=5)),
)


@pytest.mark.slow
@given(CASES, st.booleans())
def test_what_is_encoded_is_decoded(case, binary):
    oid, value = case
    assert decode(encode(value, oid, binary=binary), oid, binary=binary) == value


@given(
    st.sampled_from([BOOL, INT2, INT4, INT8, FLOAT8, TEXT, DATE, TIMESTAMP, NUMERIC, 9999]), st.binary(), st.booleans()
)
def test_any_bytes_are_a_value_or_an_error(oid, data, binary):
    with contextlib.suppress(WireError):
        decode(data, oid, binary=binary)


def test_binary_dates_count_days_from_2000():
    assert encode(datetime.date(2000, 1, 2), DATE, binary=True) == b"\0\0\0\1"


def test_a_binary_number_has_groups_of_four_digits():
    # 12345.678 is 1|2345|6780 with the first group worth 10^4, and three digits after the point
    expected = struct.pack(">hhHh3H", 3, 1, 0, 3, 1, 2345, 6780)
    assert encode(Decimal("12345.678"), NUMERIC, binary=True) == expected


def test_a_list_of_texts_is_quoted():
    assert encode(['a"b', "c\\d", None], 1009, binary=False) == b'{"a\\"b","c\\\\d",NULL}'
    assert encode([], 1009, binary=True) == struct.pack(">iiI", 0, 0, TEXT)


def test_an_infinite_number_is_no_parameter():
    with pytest.raises(WireError, match="finite"):
        decode(b"Infinity", FLOAT8, binary=False)
    with pytest.raises(WireError, match="finite"):
        decode(b"1e999999", NUMERIC, binary=False)


@pytest.mark.parametrize("text", [b"1e41", b"-1e400", b"1e-41", b"0.1e-400"])
def test_a_number_has_as_many_digits_as_over_http(text):
    with pytest.raises(WireError, match="too many digits"):
        decode(text, NUMERIC, binary=False)
    with pytest.raises(ParameterError, match="too many digits"):
        bind_parameters("SELECT $1", [Decimal(text.decode())])
    assert decode(b"1e40", NUMERIC, binary=False) == Decimal("1e40")


def test_a_moment_is_a_date_only_at_midnight():
    assert decode(b"2025-01-02 00:00:00", TIMESTAMP, binary=False) == datetime.date(2025, 1, 2)
    with pytest.raises(WireError, match="time of day"):
        decode(b"2025-01-02 00:00:01", DATE, binary=False)


@pytest.mark.parametrize("text", ["2025-01-02 00:00:01", "2025-01-02 00:00:01+05", "2025-01-02T00:00:01.000000"])
def test_a_timestamp_is_what_the_clock_showed_where_it_was_written(text):
    moment = datetime.datetime(2025, 1, 2, 0, 0, 1)
    assert decode(text.encode(), TIMESTAMP, binary=False) == moment
    assert decode(encode(moment, TIMESTAMP, binary=True), TIMESTAMP, binary=True) == moment
    assert encode(moment, TIMESTAMP, binary=False) == b"2025-01-02 00:00:01"


def test_an_instant_needs_the_zone_of_a_column_so_it_is_no_parameter():
    with pytest.raises(WireError, match="zone"):
        decode(b"2025-01-02 10:00:00+00", TIMESTAMPTZ, binary=False)
    with pytest.raises(WireError, match="not of its type"):
        decode(b"2025-01-02 10:00:61", TIMESTAMP, binary=False)


@pytest.mark.parametrize("moment", [datetime.datetime.min, datetime.datetime.max, datetime.datetime(1999, 12, 31, 23)])
def test_timestamps_of_all_years_go_over_the_wire(moment):
    expected = moment if moment.time() != datetime.time() else moment.date()
    assert decode(encode(moment, TIMESTAMP, binary=True), TIMESTAMP, binary=True) == expected
    assert encode([moment], 1115, binary=False).decode() == "{" + moment.isoformat(" ") + "}"
