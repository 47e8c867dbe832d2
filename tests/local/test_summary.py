"""Summaries: constant size, merged in any order, written and read; and the collector's door."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.errors import Code, ParameterError, Refused
from tacit.local import (
    Grid,
    Hadamard,
    Hybrid,
    Intake,
    KAry,
    LocalHashing,
    OptimizedUnary,
    Piecewise,
    Projective,
    Rounding,
    SubsetSelection,
    Summary,
    SymmetricUnary,
    Tally,
)
from tacit.local.intake import Taken
from tacit.sampling.bits import ReplayBits, SystemBits

KINDS = [KAry, SymmetricUnary, OptimizedUnary, LocalHashing, Hadamard, SubsetSelection, Projective]


def same(one, other):
    return one.mark == other.mark and one.users == other.users and (one.support == other.support).all()


def collected(protocol, values, survey=""):
    summary = Summary.empty(protocol, survey)
    return summary.add(protocol.encode(values, ReplayBits(b"summary")))


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.lists(st.integers(0, 8), max_size=40), st.integers(0, 40), st.integers(0, 40))
def test_however_reports_are_split_the_summary_is_the_same(kind, values, one, two):
    protocol = kind(9, 1)
    reports = protocol.encode(values, SystemBits())
    first, last = sorted((one, two))
    empty = Summary.empty(protocol, "s")
    a, b, c = (empty.add(part) for part in (reports[:first], reports[first:last], reports[last:]))
    whole = empty.add(reports)
    assert same(a.merge(b).merge(c), whole)
    assert same(c.merge(a.merge(b)), whole)
    assert same(empty.merge(whole), whole)
    assert same(Summary.from_bytes(whole.to_bytes()), whole)
    assert whole.users == len(values)


@pytest.mark.parametrize("kind", KINDS)
def test_its_size_does_not_grow_with_the_people(kind):
    protocol = kind(100, 1)
    few, many = (collected(protocol, np.arange(n) % 100) for n in (10, 10_000))
    # 8 bytes a value; the header grows by the digits of the number of users only.
    assert len(many.to_bytes()) - len(few.to_bytes()) == 3
    assert len(many.to_bytes()) < 8 * 100 + 200


def test_adding_leaves_the_old_summary_as_it_was():
    old = collected(KAry(4, 1), [0, 1, 2, 3])
    before = old.to_bytes()
    old.add(np.array([1, 1]))
    old.merge(old)
    assert old.to_bytes() == before


@pytest.mark.parametrize(
    "other",
    [
        Summary.empty(KAry(4, 1), "dinner"),
        Summary.empty(KAry(4, 2), "lunch"),
        Summary.empty(KAry(5, 1), "lunch"),
        Summary.empty(Hadamard(4, 1), "lunch"),
    ],
    ids=["survey", "epsilon", "domain", "protocol"],
)
def test_summaries_of_two_surveys_are_not_merged(other):
    with pytest.raises(Refused) as caught:
        Summary.empty(KAry(4, 1), "lunch").merge(other)
    assert caught.value.code is Code.REPORT


def test_any_changed_byte_is_found():
    data = collected(KAry(4, 1), [0, 1, 2, 3], "lunch").to_bytes()
    for place in range(len(data)):
        with pytest.raises(Refused) as caught:
            Summary.from_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
        assert caught.value.code is Code.REPORT
    for cut in range(len(data)):
        with pytest.raises(Refused):
            Summary.from_bytes(data[:cut])
    with pytest.raises(Refused):
        Summary.from_bytes(data + b"\0")


def written(header, counts):
    """A summary as anyone could write it, checksum included."""
    head = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    body = b"tacit local 1\n" + len(head).to_bytes(2, "little") + head + np.array(counts, dtype="<i8").tobytes()
    return body + hashlib.blake2b(body, digest_size=16).digest()


GOOD = {"protocol": "k-ary", "domain": 2, "epsilon": "1", "survey": "", "users": 3}


def test_a_forged_summary_is_one_that_could_have_been_or_none():
    assert Summary.from_bytes(written(GOOD, [1, 2])).users == 3
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
            Summary.from_bytes(written(header, counts))
        assert caught.value.code is Code.REPORT
    with pytest.raises(Refused):
        Summary.from_bytes(b"")


def test_one_bad_report_refuses_all_and_changes_nothing():
    summary = collected(KAry(4, 1), [0, 1])
    with pytest.raises(Refused):
        summary.add([0, 9])
    assert summary.users == 2


def test_a_replayed_identity_counts_once():
    door = Intake(Summary.empty(KAry(4, 1), "lunch"))
    assert door.take([0, 1, 1], ids=["a", "b", "a"]) == Taken(added=2, malformed=0, replayed=1)
    assert door.take([3, 3], ids=["b", "c"]) == Taken(added=1, malformed=0, replayed=1)
    assert door.summary.support.tolist() == [1, 1, 0, 1]


def test_a_malformed_report_is_left_out_and_its_sender_may_try_again():
    door = Intake(Summary.empty(Hadamard(4, 1)))
    assert door.take([0, 99, -1], ids=["a", "b", "c"]) == Taken(added=1, malformed=2, replayed=0)
    assert door.take([1], ids=["b"]) == Taken(added=1, malformed=0, replayed=0)
    assert door.take([1, 77]) == Taken(added=1, malformed=1, replayed=0)


def test_another_survey_s_reports_and_shapes_are_refused():
    summary = Summary.empty(OptimizedUnary(20, 1), "lunch")
    door = Intake(summary)
    reports = summary.protocol.encode([3, 4], SystemBits())
    assert door.take(reports, mark=summary.mark).added == 2
    elsewhere = Summary.empty(OptimizedUnary(20, 1), "dinner").mark
    for bad in (
        lambda: door.take(reports, mark=elsewhere),
        lambda: door.take(reports[:, :2]),
        lambda: door.take([1, 2]),
        lambda: door.take(reports, ids=["a"]),
    ):
        with pytest.raises(Refused) as caught:
            bad()
        assert caught.value.code is Code.REPORT
    assert door.summary.users == 2


def test_a_survey_has_a_short_name():
    for name in (5, "x" * 201):
        with pytest.raises(ParameterError):
            Summary.empty(KAry(2, 1), name)
    assert Summary.from_bytes(Summary.empty(KAry(2, 1), "Was gibt's? \u2603").to_bytes()).survey == "Was gibt's? \u2603"


def test_what_is_no_summary_is_refused():
    for data in ("abc", None, 5, []):
        with pytest.raises(Refused, match="not bytes") as caught:
            Summary.from_bytes(data)
        assert caught.value.code is Code.REPORT
    with pytest.raises(ParameterError, match="needs a summary"):
        Summary.empty(KAry(2, 1)).merge(None)
    for make in (bytearray, memoryview):
        assert Summary.from_bytes(make(Summary.empty(KAry(2, 1)).to_bytes())).users == 0


def test_more_people_than_can_be_counted_are_refused():
    # 2^61 + 2^61 is the most; one more would be 2^62 + 1, and a sum of 2^63 is none of 64 bits
    half = Summary(KAry(2, 1), 2**61, np.array([2**61, 0]))
    assert Summary.from_bytes(half.merge(half).to_bytes()).users == 2**62
    with pytest.raises(Refused, match="more than 2\\^62"):
        half.merge(half).merge(collected(KAry(2, 1), [0]))


@pytest.mark.parametrize("kind", [Rounding, Piecewise, Hybrid])
def test_the_door_takes_numbers_as_it_takes_values(kind):
    protocol = kind(Grid(0, 24, 96), 1)
    door = Intake(Tally.empty(protocol, "sleep"))
    over = protocol.report_limit
    assert door.take([0, 1, over, -1], ids=["a", "b", "c", "d"]) == Taken(added=2, malformed=2, replayed=0)
    assert door.take([1, 1, 0], ids=["a", "c", "c"]) == Taken(added=1, malformed=0, replayed=2)
    assert door.take([1, over]) == Taken(added=1, malformed=1, replayed=0)
    assert door.summary == protocol.tally([0, 1, 1, 1], "sleep")
    assert door.take([0], mark=door.summary.mark).added == 1
    for bad in (
        lambda: door.take([0], mark=Tally.empty(protocol, "work").mark),
        lambda: door.take([0.5]),
        lambda: door.take([[0, 1]]),
        lambda: door.take([0, 1], ids=["a"]),
    ):
        with pytest.raises(Refused) as caught:
            bad()
        assert caught.value.code is Code.REPORT
    assert door.summary.users == 5


DOORS = [
    Summary.empty(KAry(3, 1), "lunch"),
    Summary.empty(OptimizedUnary(9, 1), "lunch"),
    Tally.empty(Hybrid(Grid(0, 24, 96), 1), "sleep"),
    Tally.empty(Rounding(Grid(0, 24, 96), 1)),
]


@pytest.mark.parametrize("empty", DOORS, ids=lambda empty: empty.protocol.kind)
def test_a_replay_after_a_restart_is_refused(empty):
    protocol = empty.protocol
    reports = protocol.encode([1, 2, 0, 1, 2], ReplayBits(b"restart"))
    door = Intake(empty)
    door.take(reports[:3], ids=["a", "b", "c"])
    kept = door.to_bytes()
    door.take(reports[3:], ids=["d", "e"])  # and this is lost in a crash
    again = Intake.from_bytes(kept)
    assert again.take(reports[:3], ids=["c", "a", "b"]) == Taken(added=0, malformed=0, replayed=3)
    assert again.to_bytes() == kept
    assert again.take(reports[3:], ids=["d", "e"]) == Taken(added=2, malformed=0, replayed=0)
    assert again.to_bytes() == door.to_bytes()
    assert again.summary.to_bytes() == empty.add(reports).to_bytes()
    assert again.take(reports[:1], mark=empty.mark).added == 1


def test_what_is_kept_of_an_intake_grows_by_sixteen_bytes_a_report():
    door = Intake(Summary.empty(KAry(3, 1)))
    door.take(np.zeros(100, dtype=int), ids=[f"p{number}" for number in range(100)])
    first = len(door.to_bytes())
    door.take(np.zeros(100, dtype=int), ids=[f"q{number}" for number in range(100)])
    assert len(door.to_bytes()) - first == 16 * 100


def test_the_order_in_which_people_came_is_not_kept():
    one, other = Intake(Summary.empty(KAry(3, 1))), Intake(Summary.empty(KAry(3, 1)))
    one.take([0, 1], ids=["a", "b"])
    other.take([1], ids=["b"])
    other.take([0], ids=["a"])
    assert one.to_bytes() == other.to_bytes()


def sealed(body):
    return body + hashlib.blake2b(body, digest_size=16).digest()


@pytest.mark.parametrize("empty", DOORS, ids=lambda empty: empty.protocol.kind)
def test_wrong_bytes_are_no_intake(empty):
    door = Intake(empty)
    door.take(empty.protocol.encode([1, 2], ReplayBits(b"wrong")), ids=["a", "b"])
    data = door.to_bytes()
    body, keys = data[:-16], (data[-48:-32], data[-32:-16])
    bad = [data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :] for place in range(len(data))]
    bad += [data[:cut] for cut in range(len(data))]
    bad += [data + b"\0", "abc", None, empty.to_bytes()]
    # forged, with a checksum: out of order, one twice, more identities than reports, a part of one
    bad += [sealed(body[:-32] + keys[1] + keys[0]), sealed(body[:-16] + keys[0])]
    bad += [sealed(body + b"\xff" * 16), sealed(body[:-1]), sealed(body[:-16] + b"\xff" * 5)]
    for each in bad:
        with pytest.raises(Refused) as caught:
            Intake.from_bytes(each)
        assert caught.value.code is Code.REPORT
    assert Intake.from_bytes(bytearray(data)).to_bytes() == data


def test_identities_are_texts():
    door = Intake(Summary.empty(KAry(3, 1)))
    for ids in ([1, 2], "ab", 5, [b"a", b"b"], [None, "a"]):
        with pytest.raises(ParameterError, match="ids") as caught:
            door.take([0, 1], ids=ids)
        assert caught.value.fix
    assert door.take([0, 1], ids=np.array(["a", "b"])).added == 2
    assert door.take([0, 1], ids=iter(["a", "\ud800"])) == Taken(added=1, malformed=0, replayed=1)
    with pytest.raises(ParameterError, match="summary"):
        Intake(KAry(3, 1))


def test_reports_from_a_wire_pass_the_door_as_they_were_sent():
    protocol = OptimizedUnary(9, 1)
    reports = np.array([[128, 0], [0, 128], [0, 0], [1, 64]], dtype=np.uint8)  # the last has a bit beyond nine values
    for sent in (reports, reports.tolist(), [bytes(row) for row in reports]):
        door = Intake(Summary.empty(protocol))
        assert door.take(sent, ids=["a", "b", "c", "d"]) == Taken(added=3, malformed=1, replayed=0)
        assert door.summary.support.tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 1]
