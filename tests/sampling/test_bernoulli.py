"""Coins: exact, whatever the machine's rounding.

Some twenty tests of fit, each with a false alarm of 1e-11: less than 1e-9 together. Each also rejects an x, or a
chance, that is off by a tenth; one coin at a time, by a fifth where fewer are tossed.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from tests.support.counts import FULL, OFF, enough

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.sampling import bernoulli
from tacit.sampling.bernoulli import (
    TRUSTED_BITS,
    draw_array_certified,
    draw_array_dyadic,
    draw_certified,
    draw_exp,
    draw_exp_array,
    draw_rational,
)
from tacit.sampling.bits import ReplayBits, SystemBits
from tacit.sampling.lazy_uniform import is_below

ALARM = 1e-11
ONES = 2**64 - 1


@pytest.fixture
def settled(monkeypatch) -> list[int]:
    """The first words of the coins that the machine could not decide."""
    seen: list[int] = []

    def counting(word, known, bits, edge):
        seen.append(word)
        return is_below(word, known, bits, edge)

    monkeypatch.setattr(bernoulli, "is_below", counting)
    return seen


@pytest.fixture(scope="module")
def p_value(chi_square):
    def fit(heads: int, count: int, chance: float) -> float:
        return chi_square([heads, count - heads], [count * chance, count * (1 - chance)])

    return fit


def each(x: Fraction, count: int, bits, trusted: int = TRUSTED_BITS) -> np.ndarray:
    return draw_exp_array(np.full(count, float(x)), 2.0**-52, lambda i: x, bits, trusted)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("x", "count"), [("1/10", 150_000), ("1/3", 50_000), ("1", 25_000), ("2", 25_000), ("4", 45_000)]
)
def test_one_coin_at_a_time(p_value, x, count):
    # x = 1/10: 0.905 against 0.896 for 11/100; 150,000 * 0.009^2 / 0.093 = 130, as for the others, and about as much
    # for a fifth with a quarter of the tosses; 46 is 1e-11.
    x, count = Fraction(x), 600_000 if FULL else enough(count)
    bits = ReplayBits(f"coin {x}".encode())
    heads = sum(draw_exp(x, bits) for _ in range(count))
    assert p_value(heads, count, math.exp(-x)) > ALARM
    assert p_value(heads, count, math.exp(-x * (1 + OFF))) < ALARM
    assert p_value(heads, count, math.exp(-x * (1 - OFF))) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("x", ["1/100", "1/10", "1/3", "1", "4", "10"])
def test_many_coins_at_a_time(p_value, x):
    # x = 10: of 4,000,000 tosses 182 heads, against 67 for 11 (a statistic of 197) and 494 for 9 (197 again).
    x, count = Fraction(x), 4_000_000 if x == "10" else 1_000_000
    heads = int(each(x, count, ReplayBits(f"coins {x}".encode())).sum())
    assert p_value(heads, count, math.exp(-x)) > ALARM
    assert p_value(heads, count, math.exp(-x * Fraction(11, 10))) < ALARM
    assert p_value(heads, count, math.exp(-x * Fraction(9, 10))) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("chance", ["1/3", "1/2", "5/7", "1000000000000000000000/2999999999999999999999"])
def test_rational_coins(p_value, chance):
    # A third: 0.4 against 0.333 with 15,000 tosses, 15,000 * 0.0667^2 / 0.24 = 278.
    chance, count, off = Fraction(chance), enough(60_000), float(OFF)
    bits = ReplayBits(f"rational {chance}".encode())
    heads = sum(draw_rational(chance, bits) for _ in range(count))
    assert p_value(heads, count, float(chance)) > ALARM
    assert p_value(heads, count, float(chance) * (1 + off)) < ALARM
    assert p_value(heads, count, float(chance) * (1 - off)) < ALARM


def test_certain_coins(script):
    assert draw_rational(Fraction(1), script())
    assert not draw_rational(Fraction(0), script())
    for word in (0, 1, 2**44, ONES - 1, ONES):
        assert draw_exp(Fraction(0), script(word))
        assert each(Fraction(0), 1, script(word)).tolist() == [True]


@pytest.mark.slow
@pytest.mark.parametrize("x", ["1/3", "1", "3"])
def test_a_cruder_machine_tosses_the_same(p_value, settled, x):
    x, count, off = Fraction(x), enough(10_000), Fraction(5, 4) if FULL else Fraction(3, 2)
    plain = each(x, count, ReplayBits(b"cut"))
    assert len(settled) < 3  # 10,000 (2^-20 + 4 * 2^-40) is about 0.01
    settled.clear()
    cut = each(x, count, ReplayBits(b"cut"), -2)  # a band of 4: undecided unless -ln U > x + 4
    assert len(settled) / count > 0.9
    assert np.array_equal(plain, cut)
    settled.clear()
    bits = ReplayBits(b"cut")
    assert [draw_exp(x, bits, -2) for _ in range(count)] == plain.tolist()
    assert len(settled) / count > 0.9
    assert p_value(int(cut.sum()), count, math.exp(-x)) > ALARM
    # Fewer coins: a fourth is seen, and of 2,500 a half: x = 1/3, 2,500 * 0.110^2 / 0.239 = 127.
    assert p_value(int(cut.sum()), count, math.exp(-x * off)) < ALARM


@pytest.mark.parametrize("x", [Fraction(1, 10**6), Fraction(1, 3), Fraction(1), Fraction(13), Fraction(40)], ids=str)
def test_next_to_the_edge_more_bits_decide(script, digits, settled, x):
    first, second, third = digits(lambda: arb.exp(-to_interval(x)), 3)
    for toss in (lambda *words: draw_exp(x, script(*words)), lambda *words: bool(each(x, 1, script(*words))[0])):
        settled.clear()
        assert toss(first, second - 1)
        assert not toss(first, second + 1)
        assert toss(first, second, third - 1)
        assert not toss(first, second, third + 1)
        assert settled == [first] * 4


@pytest.mark.parametrize("x", [Fraction(1, 10**9), Fraction(1, 3), Fraction(2), Fraction(13)], ids=str)
def test_every_word_near_the_edge_is_right(script, digits, x):
    # Words at distances 2^0, 2^1, ... on both sides of the edge: in the band and outside it.
    edge = digits(lambda: arb.exp(-to_interval(x)), 1)[0]
    words = {edge + side * 2**power for power in range(63) for side in (-1, 1)}
    with working_precision(300):
        threshold = (-to_interval(x)).exp()
        for word in words:
            if 0 <= word <= ONES:
                right = arb(word + 1) / arb(2) ** 64 <= threshold
                assert right or arb(word) / arb(2) ** 64 >= threshold
                assert draw_exp(x, script(word)) == right
                assert each(x, 1, script(word)).tolist() == [right]


@pytest.mark.parametrize("x", [2**20 - 1, 2**20, 10**9, 10**30, 10**400])
def test_a_hopeless_coin_is_tails(script, x):
    # exp(-2^20) = 2^-1512775: even the word 1 is above it; the word 0 needs one more.
    for words in [(ONES,), (2**44,), (2**44 - 1,), (1,), (0, 1)]:
        assert not draw_exp(Fraction(x), script(*words))


def test_a_small_word_with_a_large_x(script):
    # U = 2^-64 (1 + small) is below exp(-44) = 2^-63.48 and above exp(-45) = 2^-64.9.
    assert draw_exp(Fraction(44), script(0))
    assert not draw_exp(Fraction(45), script(1))


def test_sources_of_ones_and_zeros(same):
    for x in (Fraction(1, 10**400), Fraction(1, 2), Fraction(100)):
        assert not draw_exp(x, same(ONES))
        assert draw_exp(x, same(0))
        assert each(x, 2, same(ONES)).tolist() == [False] * 2
        assert each(x, 2, same(0)).tolist() == [True] * 2
    assert draw_rational(Fraction(1, 3), same(0))
    assert not draw_rational(Fraction(1, 4), same(ONES))


def test_counts():
    assert each(Fraction(1), 0, SystemBits()).shape == (0,)
    assert each(Fraction(1), 1, SystemBits()).shape == (1,)
    assert 0 < each(Fraction(1), 50_000, SystemBits()).sum() < 50_000  # a pool holds 4,096 words


def test_bad_chances():
    for chance in (Fraction(-1, 10), Fraction(11, 10)):
        with pytest.raises(ParameterError, match="is no probability"):
            draw_rational(chance, ReplayBits(b""))
    with pytest.raises(ParameterError, match="is no probability"):
        draw_exp(Fraction(-1, 10**30), ReplayBits(b""))


def test_a_coin_known_as_an_interval(p_value, script):
    # a third: floor(2^64/3) = 0x5555555555555555, and the next word of a third is the same
    third = 0x5555555555555555
    for more, heads in ((third - 1, True), (third + 1, False)):
        assert draw_certified(lambda: to_interval(Fraction(1, 3)), script(third, more)) is heads
        assert draw_array_certified(lambda: to_interval(Fraction(1, 3)), 1, script(third, more)).tolist() == [heads]
    assert draw_certified(lambda: to_interval(Fraction(1, 3)), script(third - 1))
    assert not draw_certified(lambda: to_interval(Fraction(1, 3)), script(third + 1))
    tenth = Fraction(1, 10)
    heads = int(draw_array_certified(lambda: to_interval(tenth).sqrt(), 200_000, ReplayBits(b"intervals")).sum())
    assert p_value(heads, 200_000, math.sqrt(0.1)) > ALARM
    assert p_value(heads, 200_000, 0.9 * math.sqrt(0.1)) < ALARM


def test_many_coins_of_a_dyadic_chance(p_value, script):
    edge = 3 * 2**61  # 3/8 of 2^64
    assert draw_array_dyadic(Fraction(3, 8), 2, script(edge - 1, edge)).tolist() == [True, False]
    heads = int(draw_array_dyadic(Fraction(3, 8), 20_000, ReplayBits(b"dyadics")).sum())
    assert p_value(heads, 20_000, 3 / 8) > ALARM
    assert p_value(heads, 20_000, 3 / 8 * 0.9) < ALARM
    for chance in (Fraction(1), Fraction(-1, 2), Fraction(1, 3)):
        with pytest.raises(ParameterError, match="is no such probability"):
            draw_array_dyadic(chance, 1, ReplayBits(b""))
