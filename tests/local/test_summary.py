"""Summaries: constant size, merged in any order, written and read."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import ErrorCode, ParameterError, Refused
from tacit.local import (
    FrequencySummary,
    HadamardResponse,
    HybridMechanism,
    KAryRandomizedResponse,
    MeanSummary,
    OptimizedLocalHashing,
    OptimizedUnaryEncoding,
    ProjectiveGeometryResponse,
    SubsetSelection,
    SymmetricUnaryEncoding,
    UniformGrid,
)
from tacit.sampling.bits import ReplayBits, SystemBits

KINDS = [
    KAryRandomizedResponse,
    SymmetricUnaryEncoding,
    OptimizedUnaryEncoding,
    OptimizedLocalHashing,
    HadamardResponse,
    SubsetSelection,
    ProjectiveGeometryResponse,
]


def same(one, other):
    return one.mark == other.mark and one.users == other.users and (one.support == other.support).all()


def collected(protocol, values, survey=""):
    summary = FrequencySummary.empty(protocol, survey)
    return summary.add(protocol.encode(values, ReplayBits(b"summary")))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.lists(st.integers(0, 8), max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_however_reports_are_split_the_summary_is_the_same(kind, values, one, two):
    protocol = kind(9, 1)
    reports = protocol.encode(values, SystemBits())
    first, last = sorted((one, two))
    empty = FrequencySummary.empty(protocol, "s")
    a, b, c = (empty.add(part) for part in (reports[:first], reports[first:last], reports[last:]))
    whole = empty.add(reports)
    assert same(a.merge(b).merge(c), whole)
    assert same(c.merge(a.merge(b)), whole)
    assert same(empty.merge(whole), whole)
    assert same(FrequencySummary.from_bytes(whole.to_bytes()), whole)
    assert whole.users == len(values)


@pytest.mark.parametrize("kind", KINDS)
def test_its_size_does_not_grow_with_the_people(kind):
    protocol = kind(100, 1)
    few, many = (collected(protocol, np.arange(n) % 100) for n in (10, 10_000))
    # 8 bytes a value; the header grows by the digits of the number of users only.
    assert len(many.to_bytes()) - len(few.to_bytes()) == 3
    assert len(many.to_bytes()) < 8 * 100 + 200


def test_adding_leaves_the_old_summary_as_it_was():
    old = collected(KAryRandomizedResponse(4, 1), [0, 1, 2, 3])
    before = old.to_bytes()
    old.add(np.array([1, 1]))
    old.merge(old)
    assert old.to_bytes() == before


@pytest.mark.parametrize(
    "other",
    [
        FrequencySummary.empty(KAryRandomizedResponse(4, 1), "dinner"),
        FrequencySummary.empty(KAryRandomizedResponse(4, 2), "lunch"),
        FrequencySummary.empty(KAryRandomizedResponse(5, 1), "lunch"),
        FrequencySummary.empty(HadamardResponse(4, 1), "lunch"),
    ],
    ids=["survey", "epsilon", "domain", "protocol"],
)
def test_summaries_of_two_surveys_are_not_merged(other):
    with pytest.raises(Refused) as caught:
        FrequencySummary.empty(KAryRandomizedResponse(4, 1), "lunch").merge(other)
    assert caught.value.code is ErrorCode.REPORT


def test_any_changed_byte_is_found():
    data = collected(KAryRandomizedResponse(4, 1), [0, 1, 2, 3], "lunch").to_bytes()
    for place in range(len(data)):
        with pytest.raises(Refused) as caught:
            FrequencySummary.from_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert caught.value.code is ErrorCode.REPORT
    for cut in range(len(data)):
        with pytest.raises(Refused):
            FrequencySummary.from_bytes(data[:cut])
    with pytest.raises(Refused):
        FrequencySummary.from_bytes(data + b"\0")


def written(header, counts):
    """A summary as anyone could write it, checksum included."""
    head = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    body = b"tacit local 1\n" + len(head).to_bytes(2, "little") + head + np.array(counts, dtype="<i8").tobytes()
    return body + hashlib.blake2b(body, digest_size=16).digest()


GOOD = {"protocol": "k-ary", "domain": 2, "epsilon": "1", "survey": "", "users": 3}


def test_a_forged_summary_is_one_that_could_have_been_or_none():
    assert FrequencySummary.from_bytes(written(GOOD, [1, 2])).users == 3
    bad = [
        (GOOD | {"protocol": "os"}, [1, 2]),
        (GOOD | {"protocol": ["k-ary"]}, [1, 2]),
        (GOOD | {"domain": 2.0}, [1, 2]),
        (GOOD | {"domain": 2**40}, [1, 2]),
        (GOOD | {"domain": 3}, [1, 2]),
        (GOOD | {"epsilon": "nan"}, [1, 2]),
        (GOOD | {"epsilon": "1/0"}, [1, 2]),
        (GOOD | {"epsilon": "2/2"}, [1, 2]),
        (GOOD | {"epsilon": "-1"}, [1, 2]),
        (GOOD | {"epsilon": "1e99999999"}, [1, 2]),
        (GOOD | {"users": -1}, [0, 0]),
        (GOOD | {"users": 2**63}, [1, 2]),
        (GOOD | {"users": 1.5}, [1, 0]),
        (GOOD, [4, 0]),
        (GOOD, [-1, 2]),
        (GOOD, [1]),
        (GOOD | {"more": 1}, [1, 2]),
        ({"protocol": "k-ary"}, [1, 2]),
        ([1], [1, 2]),
        (b"\xff", [1, 2]),
        (b"[" * 3000, [1, 2]),
        (b"", []),
    ]
    for header, counts in bad:
        with pytest.raises(Refused) as caught:
            FrequencySummary.from_bytes(written(header, counts))
        assert caught.value.code is ErrorCode.REPORT
    with pytest.raises(Refused):
        FrequencySummary.from_bytes(b"")


def test_one_bad_report_refuses_all_and_changes_nothing():
    summary = collected(KAryRandomizedResponse(4, 1), [0, 1])
    with pytest.raises(Refused):
        summary.add([0, 9])
    assert summary.users == 2


def test_a_survey_has_a_short_name():
    for name in (5, "x" * 201):
        with pytest.raises(ParameterError):
            FrequencySummary.empty(KAryRandomizedResponse(2, 1), name)
    assert (
        FrequencySummary.from_bytes(
            FrequencySummary.empty(KAryRandomizedResponse(2, 1), "Was gibt's? \u2603").to_bytes()
        ).survey
        == "Was gibt's? \u2603"
    )


def test_what_is_no_summary_is_refused():
    for data in ("abc", None, 5, []):
        with pytest.raises(Refused, match="not bytes") as caught:
            FrequencySummary.from_bytes(data)
        assert caught.value.code is ErrorCode.REPORT
    with pytest.raises(ParameterError, match="needs a FrequencySummary"):
        FrequencySummary.empty(KAryRandomizedResponse(2, 1)).merge(None)
    for make in (bytearray, memoryview):
        assert (
            FrequencySummary.from_bytes(make(FrequencySummary.empty(KAryRandomizedResponse(2, 1)).to_bytes())).users
            == 0
        )


def test_more_people_than_can_be_counted_are_refused():
    # 2^61 + 2^61 is the most; one more would be 2^62 + 1, and a sum of 2^63 is none of 64 bits
    half = FrequencySummary(KAryRandomizedResponse(2, 1), 2**61, np.array([2**61, 0]))
    assert FrequencySummary.from_bytes(half.merge(half).to_bytes()).users == 2**62
    with pytest.raises(Refused, match="more than 2\\^62"):
        half.merge(half).merge(collected(KAryRandomizedResponse(2, 1), [0]))


def test_bad_reports_are_left_out_by_one_mask():
    for protocol, limit in ((HadamardResponse(4, 1), 8), (HybridMechanism(UniformGrid(0, 24, 96), 1), 156)):
        sent = np.array([0, limit, -1, 1])
        assert protocol.is_well_formed(sent).tolist() == [True, False, False, True]
        kept = (FrequencySummary if isinstance(protocol, HadamardResponse) else MeanSummary).empty(protocol)
        assert kept.add(sent[protocol.is_well_formed(sent)]).users == 2
        with pytest.raises(Refused, match="well_formed"):
            kept.add(sent)
        for shape in ([0.5], [[0, 1]]):
            with pytest.raises(Refused) as caught:
                protocol.is_well_formed(shape)
            assert caught.value.code is ErrorCode.REPORT


def test_reports_from_a_wire_are_read_as_they_were_sent():
    protocol = OptimizedUnaryEncoding(9, 1)
    reports = np.array([[128, 0], [0, 128], [0, 0], [1, 64]], dtype=np.uint8)  # the last has a bit beyond nine values
    for sent in (reports, reports.tolist(), [bytes(row) for row in reports]):
        assert protocol.is_well_formed(sent).tolist() == [True, True, True, False]
        summary = FrequencySummary.empty(protocol).add(protocol.to_array(sent)[protocol.is_well_formed(sent)])
        assert summary.support.tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 1]
