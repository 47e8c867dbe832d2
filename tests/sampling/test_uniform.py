"""Uniform integers: each as likely as any other.

Some twenty tests of fit, each with a false alarm of 1e-11: less than 1e-9 together. Each also rejects a law whose lower
half is a tenth more likely than its upper half; one at a time, a fifth where fewer are drawn.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from tests.support.counts import FULL, OFF, some

from tacit.errors import ParameterError
from tacit.sampling.bits import ReplayBits, SystemBits
from tacit.sampling.uniform import draw_array_below, draw_below, draw_order

ALARM = 1e-11
SIZES = [2, 3, 6, 2**32 + 1, 2**62 + 1, 2**63 - 1, 2**63]
BEYOND = [2**63 + 1, 2**64, 2**64 + 1, 10**30]
ONES = 2**64 - 1


def shares(n: int, off: float) -> tuple[list[int], list[float], list[float]]:
    """Edges of up to twelve bins, their chances, and these if the lower half is more likely by so much of itself."""
    cells = min(n, 12)
    edges = [n * i // cells for i in range(cells + 1)]
    even = [(b - a) / n for a, b in pairwise(edges)]
    tilted = [chance * (1 + off if 2 * (i + 1) <= cells else 1.0) for i, chance in enumerate(even)]
    return edges, even, [chance / sum(tilted) for chance in tilted]


def check(chi_square, drawn, n: int, off: float = 0.1) -> None:
    edges, even, tilted = shares(n, off)
    assert min(drawn) >= 0
    assert max(drawn) < n
    observed = [sum(1 for k in drawn if a <= k < b) for a, b in pairwise(edges)]
    assert chi_square(observed, [len(drawn) * chance for chance in even]) > ALARM
    assert chi_square(observed, [len(drawn) * chance for chance in tilted]) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("n", some([*SIZES, *BEYOND], 2))
def test_one_at_a_time(chi_square, n):
    # The halves differ by 2.4 % of the whole each way: 60,000 draws give a statistic of 60,000 * 0.0023 = 136. Where
    # they differ by 4.5 %, 20,000 draws give 20,000 * 0.0083 = 166, and of three numbers 148; 76 is 1e-11 of
    # twelve bins.
    bits = ReplayBits(f"one {n}".encode())
    check(chi_square, [draw_below(n, bits) for _ in range(300_000 if FULL else 20_000)], n, float(OFF))


@pytest.mark.parametrize("n", SIZES)
def test_many_at_a_time(chi_square, n, full):
    check(chi_square, draw_array_below(n, 300_000 if full else 60_000, ReplayBits(f"many {n}".encode())).tolist(), n)


@pytest.mark.slow
def test_the_lowest_bits_are_uniform_too(chi_square):
    # 10^30 = 2^30 5^30: the draw modulo 1000 is uniform on 1000 values; 100 draws each.
    bits = ReplayBits(b"low")
    counts = np.bincount([draw_below(10**30, bits) % 1000 for _ in range(100_000)], minlength=1000)
    assert chi_square(counts.tolist(), [100] * 1000) > ALARM
    counts = np.bincount(draw_array_below(2**63, 100_000, bits) % 1024, minlength=1024)
    assert chi_square(counts.tolist(), [100_000 / 1024] * 1024) > ALARM


def test_one_of_one(script):
    assert draw_below(1, script()) == 0  # needs no bits
    assert draw_array_below(1, 5, ReplayBits(b"")).tolist() == [0] * 5


def test_six_takes_the_first_three_bits_that_are_below_it(script):
    # 000 to 101 are taken, 110 and 111 are drawn again; the other 61 bits change nothing.
    for first in range(6):
        assert draw_below(6, script(first << 61 | 2**61 - 1)) == first
    assert draw_below(6, script(6 << 61, 7 << 61, ONES, 5 << 61)) == 5
    words = [6 << 61, *(first << 61 for first in range(6)), 7 << 61, 2 << 61]
    # Asked for two, it draws int(2 * 8/6 * 1.02) + 16 = 18 words; those left over are thrown away.
    assert draw_array_below(6, 2, script(*words * 2)).tolist() == [0, 1]


def test_below_takes_the_words_in_order(script):
    # 10^30 has 100 bits: the first 64, then the first 36 of the second word.
    assert draw_below(10**30, script(1, 5 << 28 | 2**28 - 1)) == 2**36 + 5
    # 2^64 + 1: 65 bits; 2^64 itself is the largest, and 2^64 + 1 is drawn again.
    assert draw_below(2**64 + 1, script(2**63, 0)) == 2**64
    assert draw_below(2**64 + 1, script(2**63, 2**63, 0, 0)) == 0


def test_the_ends_near_two_to_the_sixty_three(script):
    # Sixty-three bits: the last one of the word is dropped. int(1 * 1.02) + 16 = 17 words for one draw.
    assert draw_array_below(2**63, 1, script(ONES, *[0] * 16)).tolist() == [2**63 - 1]
    assert draw_array_below(2**63 - 1, 1, script(ONES, ONES - 2, *[0] * 15)).tolist() == [2**63 - 2]
    # 2^62 + 1: half are thrown away, so int(2 * 1.02) + 16 = 18 words; 2^62 is the largest.
    assert draw_array_below(2**62 + 1, 1, script(2**63 + 2, 2**63 + 1, *[0] * 16)).tolist() == [2**62]
    with pytest.raises(OverflowError):
        draw_array_below(2**63 + 1, 1, ReplayBits(b""))


@pytest.mark.parametrize("n", [1, 2, 3, 6, 2**32 + 1, 2**63, 10**30])
def test_a_source_of_zeros_gives_zero(same, n):
    assert draw_below(n, same(0)) == 0
    if n <= 2**63:
        assert draw_array_below(n, 3, same(0)).tolist() == [0] * 3


@pytest.mark.parametrize("n", [1, 2, 8, 2**63, 2**64])
def test_a_source_of_ones_gives_the_largest_of_a_power_of_two(same, n):
    assert draw_below(n, same(ONES)) == n - 1


@pytest.mark.parametrize("n", [3, 6, 2**32 + 1, 10**30])
def test_ones_are_drawn_again_for_any_other_size(script, n):
    # The number of all ones is never below n; the zeros after it are.
    assert draw_below(n, script(*[ONES] * 10, *[0] * 2)) == 0


def test_counts():
    assert draw_array_below(6, 0, SystemBits()).shape == (0,)
    assert draw_array_below(6, 1, SystemBits()).shape == (1,)
    many = draw_array_below(6, 100_000, SystemBits())  # a pool holds 4,096 words
    assert many.dtype == np.int64
    assert set(many.tolist()) == set(range(6))


@pytest.mark.parametrize("n", [0, -1, -(10**30)])
def test_nothing_is_below_zero(n):
    with pytest.raises(ParameterError, match="there is no integer below"):
        draw_below(n, ReplayBits(b""))
    with pytest.raises(ParameterError, match="there is no integer below"):
        draw_array_below(n, 3, ReplayBits(b""))


def test_an_order_has_every_place_once_and_each_first_as_often():
    # 6,000 orders of 3: each is first 2,000 times with a deviation of 37
    bits = ReplayBits(b"order")
    orders = [draw_order(3, bits).tolist() for _ in range(6_000)]
    assert all(sorted(order) == [0, 1, 2] for order in orders)
    assert all(abs(sum(order[0] == n for order in orders) - 2_000) < 6.1 * 37 for n in range(3))
