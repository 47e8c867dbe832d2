"""Reports of packed bits: column sums, own bits and blocks are what their definitions say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import examples

from tacit import loops
from tacit.errors import ErrorCode, Refused
from tacit.local import OptimizedUnaryEncoding, SubsetSelection, SymmetricUnaryEncoding, packed_bits, subset
from tacit.sampling.bits import ReplayBits
from tacit.sampling.packed import BLOCK, Coins


def rows_of(count: int, domain: int, seed: int) -> np.ndarray:
    """Rows of bits that are set with any chance at all, padded with zeros."""
    random = np.random.default_rng(seed)
    return np.packbits(random.random((count, domain)) < random.random(), axis=1)


def test_reports_that_came_over_a_wire_are_reports():
    protocol = OptimizedUnaryEncoding(20, 1)
    reports = protocol.encode(np.arange(20), ReplayBits(b"wire"))
    for sent in (reports.tolist(), [bytes(row) for row in reports], tuple(bytearray(row) for row in reports)):
        assert protocol.support(sent).tolist() == protocol.support(reports).tolist()
    for bad in (
        [[1, 2]],
        [[1, 2, 256]],
        [[1, 2, -1]],
        [[1.0, 2.0, 3.0]],
        ["abc"],
        [None],
        [7],
        [np.int64(7)],
        [b"ab", b"abc"],
        [],
        3,
    ):
        with pytest.raises(Refused) as refusal:
            protocol.support(bad)
        assert refusal.value.code == ErrorCode.REPORT


@settings(max_examples=examples(120), deadline=None)
@given(
    st.integers(0, 2_000),
    st.integers(1, 70),
    st.sampled_from([1, 100, 2**16 - 1]),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_column_sums_count_each_bit(count, domain, chunk, is_compiled, seed):
    # Chunks of eight rows take 2,000 rows through seven levels; the real chunk leaves them all to the end.
    rows = rows_of(count, domain, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_bits, "_CHUNK", chunk)
        patch.setattr(loops, "_WORTHWHILE", 0 if is_compiled else 2**26)
        found = packed_bits.column_sums(rows, domain)
    assert found.tolist() == np.unpackbits(rows, axis=1)[:, :domain].sum(axis=0, dtype=np.int64).tolist()
    assert found.dtype == np.int64


def test_the_sum_of_three_bits_is_the_same_both_ways():
    # All eight triples of bits, and 64 of each beside the other.
    three = [
        np.array([-(number >> place & 1) for number in range(8)], dtype=np.int64).view(np.uint64) for place in range(3)
    ]
    for way in (packed_bits._add, packed_bits._add_by_loop, loops.compile_loop(packed_bits._add_by_loop)):
        parity, majority = np.zeros(8, dtype=np.uint64), np.zeros(8, dtype=np.uint64)
        way(*three, parity, majority)
        assert [int(one) & 1 for one in parity] == [number.bit_count() % 2 for number in range(8)]
        assert [int(one) & 1 for one in majority] == [number.bit_count() // 2 for number in range(8)]
        assert set(parity.tolist()) == set(majority.tolist()) == {0, 2**64 - 1}


@given(st.integers(0, 30), st.integers(1, 200), st.integers(0, 2**32))
def test_row_sums_count_the_bits_of_each_report(count, domain, seed):
    rows = rows_of(count, domain, seed)
    assert packed_bits.row_sums(rows).tolist() == np.unpackbits(rows, axis=1).sum(axis=1, dtype=np.int64).tolist()
    assert packed_bits.row_sums(rows[::-2]).tolist() == packed_bits.row_sums(rows)[::-2].tolist()


def test_a_row_of_all_bits_is_counted_to_the_last():
    assert packed_bits.row_sums(np.full((2, 2**13), 255, dtype=np.uint8)).tolist() == [65_536, 65_536]


def test_a_chunk_of_ones_is_counted_to_the_last():
    # A chunk is 65,528 rows of one byte, nearly as many as 16 bits count, and three chunks make a carry.
    rows = np.full((3 * 65_528 + 2, 1), 255, dtype=np.uint8)
    assert packed_bits.column_sums(rows, 8).tolist() == [196_586] * 8


def test_column_sums_of_rows_that_do_not_lie_together():
    rows = rows_of(4_000, 1024, 5)
    every_third = rows[::-3]
    assert (
        packed_bits.column_sums(every_third, 1024).tolist()
        == packed_bits.column_sums(every_third.copy(), 1024).tolist()
    )
    assert (rows == rows_of(4_000, 1024, 5)).all()  # and what is given stays as it is


@pytest.mark.parametrize(
    "way", [packed_bits._set, packed_bits._set_by_loop, loops.compile_loop(packed_bits._set_by_loop)]
)
@settings(max_examples=examples(60), deadline=None)
@given(
    domain=st.integers(1, 70),
    own=st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), max_size=20),
    seed=st.integers(0, 99),
)
def test_own_bits_are_put_to_what_is_given_and_no_other_changes(way, domain, own, seed):
    rows = rows_of(len(own), domain, seed)
    values = np.array([number % domain for number, _ in own], dtype=np.int64)
    ones = np.array([one for _, one in own], dtype=np.bool_)
    wanted = np.unpackbits(rows, axis=1)
    wanted[np.arange(len(own)), values] = ones
    way(rows, values, ones)
    assert (np.unpackbits(rows, axis=1) == wanted).all()


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(2, 70), st.integers(1, 30), st.integers(1, 9), st.integers(0, 2**32))
def test_values_are_moved_in_and_out_the_same_both_ways(domain, people, turns, seed):
    random = np.random.default_rng(seed)
    rows, own = rows_of(people, domain, seed), random.integers(0, domain, people)
    packed_bits._set(rows, own, np.zeros(people, dtype=np.bool_))
    first, missing = np.arange(people) * rows.shape[1], random.integers(-3, 4, people)
    drawn = random.integers(0, domain, (turns, people), dtype=np.uint16)
    found = []
    for way in (subset._move, subset._move_by_loop, loops.compile_loop(subset._move_by_loop)):
        octets, left = rows.reshape(-1).copy(), missing.copy()
        way(octets, first, own.astype(np.uint16), left, drawn)
        moved = packed_bits.row_sums(octets.reshape(rows.shape)) - packed_bits.row_sums(rows)
        assert (moved + left == missing).all()  # what is not missing any more is there
        found.append((octets.tolist(), left.tolist()))
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("domain", [5, 8, 1000, 1024])
def test_blocks_cover_all_rows_once_and_nothing_is_set_beyond_the_last_value(domain):
    people = 2 * BLOCK // packed_bits.bytes_per_report(domain) + 7
    rows = np.empty((people, packed_bits.bytes_per_report(domain)), dtype=np.uint8)
    parts = list(packed_bits.fill_with_coins(rows, domain, Coins(Fraction(9, 10)), ReplayBits(b"blocks")))
    assert [row for part in parts for row in range(people)[part]] == list(range(people))
    assert packed_bits.has_zero_padding(rows, domain).all()
    # Nine in ten are set, within 6.5 deviations: a false alarm below 1e-10. A chance of 0.89 is 50 off.
    bits, found = people * domain, int(packed_bits.column_sums(rows, domain).sum())
    assert abs(found - 0.9 * bits) < 6.5 * (0.09 * bits) ** 0.5 < 0.01 * bits


@pytest.mark.parametrize("kind", [OptimizedUnaryEncoding, SymmetricUnaryEncoding, SubsetSelection])
def test_the_same_bits_make_the_same_reports_compiled_or_not(kind, monkeypatch):
    # 100,000 reports of 13 bytes: three blocks.
    protocol, values = kind(100, 1), np.arange(100_000) % 100
    plain = protocol.encode(values, ReplayBits(b"compiled or not"))
    monkeypatch.setattr(loops, "_WORTHWHILE", 0)
    assert (protocol.encode(values, ReplayBits(b"compiled or not")) == plain).all()
