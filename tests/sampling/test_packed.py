"""Eight coins to a byte: the cells, the residual law, and both together are the exact law."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest

from tacit.arithmetic import to_interval
from tacit.sampling.bits import ReplayBits
from tacit.sampling.packed import Coins

CHANCES = [Fraction(1, 3), Fraction(1, 1000), Fraction(9, 10), Fraction(3, 8), Fraction(2, 5)]


def law(chance: Fraction) -> list[Fraction]:
    return [chance ** (c := octet.bit_count()) * (1 - chance) ** (8 - c) for octet in range(256)]


class Nobody:
    """Every cell is nobody's at first: words of ones, and real bits where the residual law draws."""

    def __init__(self, count: int) -> None:
        self.first, self.rest = math.ceil(count / 4), ReplayBits(b"residual")

    def words(self, count: int) -> np.ndarray:
        if self.first:
            assert count == self.first
            self.first = 0
            return np.full(count, 2**64 - 1, dtype=np.uint64)
        return self.rest.words(count)


@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_cells_and_residual_make_up_the_law(chance, chi_square):
    # Cells are counted, and the residual law is tested by chi square: p > 1e-11 for each of 5.
    coins = Coins(chance)
    whole = [math.floor(65536 * p) for p in law(chance)]
    assert np.bincount(coins._cells[: coins._owned], minlength=256).tolist() == whole
    left = 65536 - sum(whole)
    assert 0 < left <= 256
    count = 60_000
    found = np.bincount(coins.octets(count, Nobody(count)), minlength=256)
    rest = [float((65536 * p - w) / left) for p, w in zip(law(chance), whole, strict=True)]
    kept = [octet for octet in range(256) if count * rest[octet] >= 5]
    observed = [found[octet] for octet in kept] + [count - sum(found[octet] for octet in kept)]
    expected = [count * rest[octet] for octet in kept]
    assert chi_square(observed, [*expected, max(count - sum(expected), 1.0)]) > 1e-11


def test_a_fair_coin_needs_no_residual():
    # 65536/256 = 256 cells for each byte, all of them.
    coins = Coins(Fraction(1, 2))
    assert np.bincount(coins._cells).tolist() == [256] * 256
    assert coins._residual is None


@pytest.mark.parametrize("chance", CHANCES, ids=str)
def test_bytes_have_the_law_and_ones_the_chance(chance, chi_square):
    # p > 1e-11 for each of 5; the law of a chance larger by a fiftieth is rejected.
    coins, count = Coins(chance), 300_000
    found = np.bincount(coins.octets(count, ReplayBits(b"packed")), minlength=256)

    def fit(p: Fraction) -> float:
        expected = [count * float(x) for x in law(p)]
        kept = [octet for octet in range(256) if expected[octet] >= 5]
        rest = max(count - sum(expected[octet] for octet in kept), 1.0)
        seen = [found[octet] for octet in kept]
        return chi_square([*seen, count - sum(seen)], [*(expected[octet] for octet in kept), rest])

    assert fit(chance) > 1e-11
    assert (
        fit(chance * Fraction(51, 50) if chance < Fraction(1, 2) else chance * Fraction(50, 51)) < 1e-9 or chance < 0.01
    )


def test_bytes_are_independent(chi_square):
    # The first bits of two bytes in a row, in 2 x 2 cells: p > 1e-11.
    octets = Coins(lambda: to_interval(Fraction(1, 3))).octets(400_000, ReplayBits(b"rows")) >> 7
    pairs = np.bincount(octets[0::2] * 2 + octets[1::2], minlength=4)
    assert chi_square(pairs, [200_000 * p for p in (4 / 9, 2 / 9, 2 / 9, 1 / 9)]) > 1e-11


@pytest.mark.slow
def test_every_share_of_a_small_table_can_be_made():
    # A share of the residual law may be a multiple of 2^-64: with d a power of two it often is.
    for d in (2, 3, 5, 6, 8, 10, 12, 16, 20):
        for k in range(1, d):
            assert len(Coins(Fraction(k, d)).octets(9, ReplayBits(b"shares"))) == 9


def test_rationals_and_intervals_give_the_same_coins():
    one, other = Coins(Fraction(1, 3)), Coins(lambda: to_interval(Fraction(1, 3)))
    assert (one.octets(100_000, ReplayBits(b"same")) == other.octets(100_000, ReplayBits(b"same"))).all()
