"""The geometric law, exactly.

Some twenty tests of fit, each with a false alarm of 1e-11: less than 1e-9 together. Each also rejects a scale that is
off by a tenth.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from tests.support.counts import OFF, enough

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.sampling import geometric
from tacit.sampling.bits import ReplayBits, SystemBits
from tacit.sampling.geometric import draw, draw_array

ALARM = 1e-11
SCALES = [Fraction(1, 2), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(1000), Fraction(2**20), Fraction(10**9)]
BEYOND = Fraction(2**60)
ONES = 2**64 - 1


@pytest.fixture
def certified(monkeypatch) -> list[int]:
    """The draws that took the certified path, as they are made."""
    taken: list[int] = []
    real = geometric._draw_certified

    def counting(scale, uniform, bits):
        taken.append(uniform)
        return real(scale, uniform, bits)

    monkeypatch.setattr(geometric, "_draw_certified", counting)
    return taken


@pytest.fixture(scope="module")
def p_value(binned):
    def fit(drawn, scale: Fraction) -> float:
        # P(k >= m) = exp(-m/scale); the edges are at every fortieth.
        edges = [max(1, math.ceil(-float(scale) * math.log(share / 40))) for share in range(1, 40)]
        return binned(drawn, lambda m: math.exp(-m / float(scale)), edges)

    return fit


def check(p_value, drawn, scale: Fraction, off: Fraction = Fraction(1, 10)) -> None:
    assert p_value(drawn, scale) > ALARM
    assert p_value(drawn, scale * (1 + off)) < ALARM
    assert p_value(drawn, scale * (1 - off)) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize("scale", [*SCALES, BEYOND], ids=str)
def test_one_at_a_time(p_value, scale, full):
    # A scale off by a fifth: 8,000 (1/(0.83 * 1.17) - 1) = 229 or more, where 126 is 1e-11 of forty bins; with a scale
    # of 1/2, which has four, 166.
    bits = ReplayBits(f"one {scale}".encode())
    check(p_value, [draw(scale, bits) for _ in range(100_000 if full else 8_000)], scale, OFF)


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_many_at_a_time(p_value, scale, full):
    check(p_value, draw_array(scale, 2_000_000 if full else 100_000, ReplayBits(f"many {scale}".encode())), scale)


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "trusted"), [(Fraction(1), 1), (Fraction(3), 3), (Fraction(20), 6)])
def test_a_cruder_machine_draws_the_same(p_value, certified, scale, trusted):
    count = enough(10_000)
    plain = draw_array(scale, count, ReplayBits(b"cut"))
    assert len(certified) < 3  # 10,000 (2^-20 + 3 scale 2^-40) is about 0.01
    certified.clear()
    cut = draw_array(scale, count, ReplayBits(b"cut"), trusted)
    assert len(certified) / count > 0.5
    assert np.array_equal(plain, cut)
    assert p_value(cut, scale) > ALARM
    certified.clear()
    bits = ReplayBits(b"cut")
    assert [draw(scale, bits, trusted) for _ in range(count)] == plain.tolist()
    assert len(certified) / count > 0.5


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(1000)], ids=str)
def test_the_inverse_of_the_law(script, scale):
    # k is right if q^(k+1) <= U < q^k for every U that begins with the word.
    grid = [i * 2**55 + 12345 for i in range(1, 512)]
    grid += [2**power + offset for power in range(45, 64) for offset in (-1, 0)] + [2**64 - 1]
    together = draw_array(scale, len(grid), script(*grid))
    with working_precision(300):
        q = (-1 / to_interval(scale)).exp()
        for word, k in zip(grid, together.tolist(), strict=True):
            assert draw(scale, script(word)) == k
            assert q ** (k + 1) <= arb(word) / 2**64
            assert arb(word + 1) / 2**64 <= q**k


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(7, 3), Fraction(1000), Fraction(10**18)], ids=str)
@pytest.mark.parametrize("m", [1, 2, 7, 12])
def test_next_to_a_boundary_more_bits_decide(script, digits, certified, scale, m):
    first, second, third = digits(lambda: (to_interval(-m / scale)).exp(), 3)
    assert draw(scale, script(first, second - 1)) == m
    assert draw(scale, script(first, second + 1)) == m - 1
    assert draw(scale, script(first, second, third - 1)) == m
    assert draw(scale, script(first, second, third + 1)) == m - 1
    assert certified == [first] * 4


def test_a_source_of_ones_gives_zero(same):
    for scale in [*SCALES, BEYOND, Fraction(2**100)]:
        assert draw(scale, same(ONES)) == 0
    assert draw_array(Fraction(2**50), 4, same(ONES)).tolist() == [0] * 4


def test_zeros_go_on_until_they_end(script):
    # Two words of zeros, then 2^63: U lies in [2^-129, 2^-129 + 2^-192), and 129 ln 2 = 89.416.
    # U = 0 itself, of probability zero, has no floor.
    assert draw(Fraction(1), script(0, 0, 2**63)) == 89
    # The third word belongs to the first draw: 65 ln 2 = 45.05; the other is ln 2 = 0.69.
    assert draw_array(Fraction(1), 2, script(0, 2**63, 2**63)).tolist() == [45, 0]


def test_counts():
    assert draw_array(Fraction(1), 0, SystemBits()).shape == (0,)
    assert draw_array(Fraction(1), 1, SystemBits()).shape == (1,)
    many = draw_array(Fraction(1), 100_000, SystemBits())  # a pool holds 4,096 words
    assert many.dtype == np.int64
    assert many.min() == 0
    draw_array(Fraction(2**50), 3, ReplayBits(b""))
    with pytest.raises(OverflowError):
        draw_array(Fraction(2**50) + 1, 3, ReplayBits(b""))


@pytest.mark.parametrize("scale", [Fraction(0), Fraction(-1), Fraction(-(2**60))], ids=str)
def test_a_scale_is_positive(scale):
    with pytest.raises(ParameterError):
        draw(scale, ReplayBits(b""))
    with pytest.raises(ParameterError):
        draw_array(scale, 3, ReplayBits(b""))
