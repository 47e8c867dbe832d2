"""Reports of packed bits: column sums, own bits and blocks are what their definitions say."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit.local import OptimizedUnary, SubsetSelection, SymmetricUnary, packed
from tacit.sampling import cells
from tacit.sampling.bits import ReplayBits
from tacit.sampling.packed import BLOCK, Coins


def rows_of(count: int, domain: int, seed: int) -> np.ndarray:
    """Rows of bits that are set with any chance at all, padded with zeros."""
    random = np.random.default_rng(seed)
    return np.packbits(random.random((count, domain)) < random.random(), axis=1)


@settings(max_examples=120, deadline=None)
@given(st.integers(0, 400), st.integers(1, 70), st.sampled_from([1, 9, 40, 2**16 - 1]), st.integers(0, 2**32))
def test_column_sums_count_each_bit(count, domain, chunk, seed):
    # Chunks of one row take 400 rows through eight levels; the real chunk leaves them all to the end.
    rows = rows_of(count, domain, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed, "_CHUNK", chunk)
        found = packed.column_sums(rows, domain)
    assert found.tolist() == np.unpackbits(rows, axis=1)[:, :domain].sum(axis=0, dtype=np.int64).tolist()
    assert found.dtype == np.int64


@given(st.integers(0, 30), st.integers(1, 200), st.integers(0, 2**32))
def test_row_sums_count_the_bits_of_each_report(count, domain, seed):
    rows = rows_of(count, domain, seed)
    assert packed.row_sums(rows).tolist() == np.unpackbits(rows, axis=1).sum(axis=1, dtype=np.int64).tolist()
    assert packed.row_sums(rows[::-2]).tolist() == packed.row_sums(rows)[::-2].tolist()


def test_a_row_of_all_bits_is_counted_to_the_last():
    assert packed.row_sums(np.full((2, 2**13), 255, dtype=np.uint8)).tolist() == [65_536, 65_536]


def test_a_chunk_of_ones_is_counted_to_the_last():
    # 65,535 rows of one byte are as many as 16 bits count, and three chunks make a carry: 3 x 65,535 + 2.
    rows = np.full((3 * 65_535 + 2, 1), 255, dtype=np.uint8)
    assert packed.column_sums(rows, 8).tolist() == [196_607] * 8


def test_column_sums_of_rows_that_do_not_lie_together():
    rows = rows_of(4_000, 1024, 5)
    every_third = rows[::-3]
    assert packed.column_sums(every_third, 1024).tolist() == packed.column_sums(every_third.copy(), 1024).tolist()
    assert (rows == rows_of(4_000, 1024, 5)).all()  # and what is given stays as it is


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 70), st.lists(st.tuples(st.integers(0, 10**6), st.booleans()), max_size=20), st.integers(0, 99))
def test_own_bits_are_put_to_what_is_given_and_no_other_changes(domain, own, seed):
    rows = rows_of(len(own), domain, seed)
    values = np.array([number % domain for number, _ in own], dtype=np.int64)
    ones = np.array([one for _, one in own], dtype=np.bool_)
    wanted = np.unpackbits(rows, axis=1)
    wanted[np.arange(len(own)), values] = ones
    packed.set_bits(rows, values, ones)
    assert (np.unpackbits(rows, axis=1) == wanted).all()


@pytest.mark.parametrize("domain", [5, 8, 1000, 1024])
def test_blocks_cover_all_rows_once_and_nothing_is_set_beyond_the_last_value(domain):
    people = 2 * BLOCK // packed.width(domain) + 7
    rows = np.empty((people, packed.width(domain)), dtype=np.uint8)
    parts = list(packed.fill(rows, domain, Coins(Fraction(9, 10)), ReplayBits(b"blocks")))
    assert [row for part in parts for row in range(people)[part]] == list(range(people))
    assert packed.padded_with_zeros(rows, domain).all()
    # Nine in ten are set, within 6.5 deviations: a false alarm below 1e-10. A chance of 0.89 is 50 off.
    bits, found = people * domain, int(packed.column_sums(rows, domain).sum())
    assert abs(found - 0.9 * bits) < 6.5 * (0.09 * bits) ** 0.5 < 0.01 * bits


@pytest.mark.parametrize("kind", [OptimizedUnary, SymmetricUnary, SubsetSelection])
def test_the_same_bits_make_the_same_reports_compiled_or_not(kind, monkeypatch):
    # 50,000 reports of 13 bytes: three blocks.
    protocol, values = kind(100, 1), np.arange(50_000) % 100
    plain = protocol.encode(values, ReplayBits(b"compiled or not"))
    monkeypatch.setattr(cells, "_WORTHWHILE", 0)
    assert (protocol.encode(values, ReplayBits(b"compiled or not")) == plain).all()
