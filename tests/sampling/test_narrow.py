"""Coins and small integers from 16 bits each: exact laws, and ties settled with more bits."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bits import Script

from tacit.arithmetic import to_interval
from tacit.errors import ParameterError
from tacit.sampling.bits import ReplayBits
from tacit.sampling.uint16 import Bernoulli16, ContinuedBernoulli, draw_array_below, draw_with_unused_bits, unused_bits


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(1, 10**6), Fraction(999, 1000)], ids=str)
def test_coins_have_their_chance(chance, chi_square):
    # p > 1e-11 for each of 3; a chance off by a twentieth of the rarer side is rejected where there are enough tosses.
    count = 400_000
    heads = int(Bernoulli16(lambda: to_interval(chance)).tosses(count, ReplayBits(b"narrow")).sum())
    observed = [heads, count - heads]
    if chance > Fraction(1, 1000):
        assert chi_square(observed, [count * float(chance), count * float(1 - chance)]) > 1e-11
    else:
        assert heads <= 15  # 0.4 are expected: 16 or more have a chance below 1e-18
    if chance == Fraction(1, 3):
        assert chi_square(observed, [count * 0.35, count * 0.65]) < 1e-9


def test_a_tie_is_settled_with_more_bits_of_the_same_number(digits):
    # exp(-1) = 0.3678...: its first 16 bits decide nothing, and the 64 after them do.
    def chance():
        return (-arb(1)).exp()

    first = digits(chance, 2)
    whole = (first[0] << 64 | first[1]) >> (128 - 80)
    edge, rest = whole >> 64, whole & (2**64 - 1)

    coin = Bernoulli16(chance)
    for low, more, heads in [
        (edge - 1, [], True),
        (edge + 1, [], False),
        (edge, [rest - 1], True),
        (edge, [rest + 1], False),
    ]:
        script = Script(low, *more)
        assert coin.tosses(1, script).tolist() == [heads]
        assert not script.left


@pytest.mark.parametrize("n", [1, 2, 3, 1000, 1023, 1024, 65535, 65536])
def test_integers_are_uniform(n, chi_square):
    # p > 1e-11 for each of 8, in at most 64 classes; leaving out the last value would be rejected for n up to 1000.
    count = 200_000
    found = draw_array_below(n, count, ReplayBits(b"belows"))
    assert len(found) == count and int(found.max()) < n
    if n > 1:
        classes = min(n, 64)
        seen = np.bincount(found.astype(np.int64) * classes // n, minlength=classes)
        sizes = np.bincount(np.arange(n) * classes // n, minlength=classes)
        assert chi_square(seen, count * sizes / n) > 1e-11
    if 1 < n <= 1000:
        assert (found == n - 1).any()


class Every:
    """All numbers of 16 bits in turn, as often as wanted."""

    def words(self, count):
        return np.resize(np.arange(2**16, dtype=np.uint16), 4 * count).view(np.uint64)


@pytest.mark.parametrize("n", [2, 3, 5, 1000, 1023, 1024, 40_000, 65_535, 65_536])
def test_every_integer_comes_with_every_spare_bit_equally_often(n):
    # Of all 2^16 numbers in turn, n 2^spare are taken: each integer with each of 2^spare endings, once.
    size = n << unused_bits(n)
    assert sorted(draw_with_unused_bits(n, size, Every()).tolist()) == list(range(size))
    assert np.bincount(draw_array_below(n, size, Every())).tolist() == [1 << unused_bits(n)] * n


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(st.fractions(0, 1).filter(lambda chance: chance < 1), st.integers(0, 12))
def test_first_bits_and_the_rest_make_up_the_chance(chance, size):
    # Over all 2^size first bits: e of them are heads at once and one asks a coin of chance 2^size chance - e, so
    # (e + 2^size chance - e)/2^size = chance. The coin's own edge says what it is, to 2^-16.
    coin = ContinuedBernoulli(lambda: to_interval(chance), size)
    edge = int(coin._edge)
    assert edge == chance * 2**size // 1
    assert coin._rest._edge == (chance * 2**size - edge) * 2**16 // 1
    first = np.arange(2**size, dtype=np.uint16)
    found = set(coin.heads(first, ReplayBits(b"begun")).tolist())
    assert found - {edge} == set(range(edge))


@pytest.mark.parametrize("size", [0, 3, 6, 15])
def test_coins_that_are_begun_have_their_chance(size, chi_square):
    # p > 1e-11 for each of 4; exp(-1) = 0.3679, and 0.36 is rejected.
    count, bits = 400_000, ReplayBits(b"begun coins")
    first = bits.words(count // 4).view(np.uint16) & np.uint16((1 << size) - 1)
    places = ContinuedBernoulli(arb(-1).exp, size).heads(first, bits)
    assert len(set(places.tolist())) == len(places)
    observed, chance = [len(places), count - len(places)], math.exp(-1)
    assert chi_square(observed, [count * chance, count * (1 - chance)]) > 1e-11
    assert chi_square(observed, [count * 0.36, count * 0.64]) < 1e-9


def test_first_bits_that_decide_ask_for_no_more():
    # exp(-1) begins with 0.010111...: of three bits, 2 is even with it and the others are not.
    class Nothing:
        def words(self, count):
            assert count == 0
            return np.empty(0, dtype=np.uint64)

    first = np.array([0, 1, 3, 4, 5, 6, 7], dtype=np.uint16)
    assert ContinuedBernoulli(arb(-1).exp, 3).heads(first, Nothing()).tolist() == [0, 1]


def test_wrong_sizes_are_errors():
    for n in (0, 65537):
        with pytest.raises(ParameterError):
            draw_array_below(n, 1, ReplayBits(b""))
    assert len(draw_array_below(5, 0, ReplayBits(b""))) == 0
