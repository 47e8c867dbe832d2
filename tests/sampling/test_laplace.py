"""The discrete Laplace law, exactly: the machine's rounding may cost time, never a value.

The law of the draws is tested with fixed seeds. Each of some thirty tests of fit alarms falsely with probability 1e-11,
all of them together with less than 1e-9. Each of them also rejects the same draws for a scale that is off by a tenth
(by a fifth where it says so).
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, fmpz
from tests.support.bits import Script
from tests.support.counts import some

from tacit.arithmetic import to_interval, working_precision
from tacit.sampling import laplace
from tacit.sampling.bits import ReplayBits
from tacit.sampling.laplace import draw, draw_array, tail_quantile

ALARM = 1e-11
SCALES = [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(10), Fraction(1000), Fraction(2**20), Fraction(10**9)]
BEYOND = Fraction(2**60)  # one at a time only: a magnitude may pass 64 bits
CUT = [(Fraction(1), 1), (Fraction(3), 3), (Fraction(20), 6)]  # a scale, and how many bits the machine is trusted with
FEWER = 7_000, Fraction(6, 5)  # draws that reject a scale off by a fifth: 7,000 * 0.18^2 = 227


@pytest.fixture
def certified(monkeypatch) -> list[int]:
    """The draws that took the certified path, as they are made."""
    taken: list[int] = []
    real = laplace._draw_certified

    def counting(scale, uniform, bits):
        taken.append(uniform)
        return real(scale, uniform, bits)

    monkeypatch.setattr(laplace, "_draw_certified", counting)
    return taken


# The law.


@pytest.mark.slow
@pytest.mark.parametrize("scale", [*SCALES, BEYOND], ids=str)
def test_one_at_a_time(fit, scale, full):
    count, off = (100_000, Fraction(11, 10)) if full else FEWER
    bits = ReplayBits(f"one {scale}".encode())
    drawn = [draw(scale, bits) for _ in range(count)]
    assert fit(drawn, scale) > ALARM
    assert fit(drawn, scale * off) < ALARM
    assert fit(drawn, scale * (2 - off)) < ALARM


@pytest.mark.parametrize("scale", SCALES, ids=str)
def test_many_at_a_time(fit, scale, full):
    drawn = draw_array(scale, 2_000_000 if full else 200_000, ReplayBits(f"many {scale}".encode()))
    assert fit(drawn, scale) > ALARM
    assert fit(drawn, scale * Fraction(11, 10)) < ALARM
    assert fit(drawn, scale * Fraction(9, 10)) < ALARM


def test_too_wide_for_a_vector():
    draw_array(Fraction(2**50), 3, ReplayBits(b""))
    with pytest.raises(OverflowError):
        draw_array(Fraction(2**50) + 1, 3, ReplayBits(b""))


# The certified path.


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "trusted"), CUT)
def test_a_cruder_machine_draws_the_same_vector(fit, certified, scale, trusted, full):
    count, off = (20_000, Fraction(11, 10)) if full else FEWER
    plain = draw_array(scale, count, ReplayBits(b"cut"))
    assert len(certified) < 3  # at full precision: 20,000 (2^-20 + 3 scale 2^-40) is about 0.02
    certified.clear()
    cut = draw_array(scale, count, ReplayBits(b"cut"), trusted)
    # The band is 2 scale / 2^trusted wide, and undecided where it holds an integer: 1, 3/4 and 5/8 of the time.
    share = min(1, 2 * float(scale) / 2**trusted)
    assert len(certified) / count > 0.5
    assert len(certified) / count == pytest.approx(share, abs=0.1)
    assert np.array_equal(plain, cut)
    assert fit(cut, scale) > ALARM
    assert fit(cut, scale * off) < ALARM


@pytest.mark.slow
@pytest.mark.parametrize(("scale", "trusted"), some(CUT, 2))
def test_a_cruder_machine_draws_the_same_one_at_a_time(fit, certified, scale, trusted, full):
    count, off = (20_000, Fraction(11, 10)) if full else FEWER
    plain, cut = ReplayBits(b"cut one"), ReplayBits(b"cut one")
    expected = [draw(scale, plain) for _ in range(count)]
    assert len(certified) < 3
    certified.clear()
    drawn = [draw(scale, cut, trusted) for _ in range(count)]
    assert len(certified) / count > 0.5
    assert drawn == expected
    assert fit(drawn, scale) > ALARM
    assert fit(drawn, scale * off) < ALARM


def test_one_and_many_draw_the_same():
    # The first word of each draw decides it, unless more bits are needed, which none of these does.
    one = ReplayBits(b"same")
    assert [draw(Fraction(10), one) for _ in range(5_000)] == draw_array(
        Fraction(10), 5_000, ReplayBits(b"same")
    ).tolist()


def test_how_often_the_machine_is_undecided(certified):
    # At scale 2^20 and 30 trusted bits at most 2^-20 + 3 2^20 2^-30 = 0.00293 of the draws; 200,000 draws: 586,
    # standard deviation 24. About 2 2^20 2^-30 = 0.00195 are expected: 391, standard deviation 20; seven of these
    # either way.
    draw_array(Fraction(2**20), 200_000, ReplayBits(b"undecided"), trusted=30)
    assert 251 < len(certified) < 531


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(1000)], ids=str)
def test_the_far_tail_is_always_certified(certified, scale):
    # U < 2^-20, that is uniform < 2^43.
    draw(scale, Script((2**43 - 1) << 1, *[2**63] * 9))
    assert len(certified) == 1
    certified.clear()
    draw(scale, Script(2**43 + 2**30 << 1))
    assert len(certified) == 0


# One draw from first principles.


def chance(scale: Fraction, m: int) -> arb:
    """P(|k| >= m) at the working precision."""
    q = (-1 / to_interval(scale)).exp()
    return 2 * q**m / (1 + q) if m else arb(1)


def scripted(scale: Fraction, words: tuple[int, ...]) -> int:
    """The magnitude drawn from U = 0.words, and no word more."""
    script = Script(words[0] << 1, *words[1:])
    magnitude = draw(scale, script)
    assert magnitude >= 0  # the lowest bit of the first word is the sign
    return magnitude


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(1000)], ids=str)
def test_the_magnitude_is_the_inverse_of_the_law(scale):
    # 512 points of U from 2^-10 to 1, and both sides of each power of two down to 2^-19.
    grid = [i * 2**54 + 2**53 + 12345 for i in range(512)]
    grid += [2**power + offset for power in range(44, 63) for offset in (-1, 0)] + [2**63 - 1]
    with working_precision(300):
        for uniform in grid:
            m = scripted(scale, (uniform,))
            below, above = arb(uniform) / 2**63, arb(uniform + 1) / 2**63
            assert chance(scale, m + 1) <= below
            assert above <= chance(scale, m)
            assert draw(scale, Script(uniform << 1 | 1)) == -m


@pytest.mark.parametrize(
    "scale", [Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(1000), Fraction(10**18)], ids=str
)
@pytest.mark.parametrize("m", [1, 2, 3, 7, 12])
def test_next_to_a_boundary_more_bits_decide(certified, scale, m):
    # U = T is the boundary between m - 1 and m, where T = P(|k| >= m). T to 63 + 64 + 64 bits:
    with working_precision(600):
        digits = (chance(scale, m) * arb(2) ** 191).floor().unique_fmpz()
    assert isinstance(digits, fmpz)
    first, second, third = int(digits) >> 128, int(digits) >> 64 & (2**64 - 1), int(digits) & (2**64 - 1)
    assert 2 < third < 2**64 - 2
    # The first 63 bits are those of T, so U is within 2^-63 of it: the 64 next ones decide, or those after them.
    assert scripted(scale, (first, second - 1)) == m
    assert scripted(scale, (first, second + 1)) == m - 1
    assert scripted(scale, (first, second, third - 1)) == m
    assert scripted(scale, (first, second, third + 1)) == m - 1
    assert certified == [first] * 4


def test_a_uniform_of_all_zeros_goes_on():
    # Two words of zeros and then 2^62: U lies in [2^-129, 2^-129 + 2^-191). With a scale of 1,
    # x = ln(2/(1 + 1/e)) + 129 ln 2 = 0.380 + 89.416, whose floor is 89.
    assert scripted(Fraction(1), (0, 0, 2**62)) == 89


def test_a_uniform_of_all_ones_is_zero():
    for scale in [*SCALES, BEYOND]:
        assert draw(scale, Script(2**64 - 1)) == 0


# The tail.


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1, 3), Fraction(1), Fraction(7, 3), Fraction(40)], ids=str)
@pytest.mark.parametrize("share", ["1/2", "1/3", "1/20", "1/1000", "999/1000", "1/1000000000"])
def test_tail_is_the_least(scale, share):
    with working_precision(300):
        least = next(w for w in range(2_000) if chance(scale, w + 1) <= to_interval(Fraction(share)))
    assert tail_quantile(scale, Fraction(share)) == least


def test_tail_of_a_wide_law():
    # Scale 10^6 and 5 %: P(|k| > w) = 2 q^(w+1) / (1 + q) is about exp(-(w + 1/2)/10^6), so w is 10^6 ln 20 - 1/2
    # rounded up.
    assert tail_quantile(Fraction(10**6), Fraction(1, 20)) == math.ceil(10**6 * math.log(20) - 0.5)


# The one assumption of the proof.


def worst(found: np.ndarray, points: np.ndarray) -> float:
    """The largest relative error of logarithms, as a power of two."""
    largest = arb(0)
    with working_precision(120):
        for value, point in zip(found.tolist(), points.tolist(), strict=True):
            true = arb(point).log()
            largest = max(largest, abs((arb(value) - true) / true).mid()) if point != 1 else largest
    return math.log2(float(largest)) if largest > 0 else -math.inf


@pytest.mark.slow
def test_logarithms_are_as_good_as_the_proof_assumes(full):
    # |error| <= 2^-48 |ln U| for U in [2^-20, 1). Good libraries are near 2^-52.
    chance = np.random.default_rng(1701)
    spread = np.exp2(-20 * chance.random(40_000))
    near_one = 1 - np.exp2(-52 * chance.random(20_000) - 1)
    powers = np.exp2(-chance.integers(0, 20, 20_000).astype(float))
    around = np.nextafter(powers, np.where(chance.random(20_000) < 0.5, 0.0, 1.0))
    tables = (chance.integers(1, 2**11, 20_000) / 2**11) * (1 + chance.integers(-3, 4, 20_000) * 2.0**-53)
    points = np.concatenate([spread, near_one, around, tables])
    points = points[(points >= 2.0**-20) & (points < 1)]
    assert len(points) > 90_000
    logarithms = np.log(points)
    single = np.array([math.log(point) for point in points.tolist()])
    # The two may be different code: they agree everywhere, and a sample of both is compared with interval arithmetic.
    assert np.max(np.abs(logarithms / single - 1)) < 2.0**-48
    sample = slice(None) if full else slice(None, None, len(points) // 20_000)
    assert worst(logarithms[sample], points[sample]) < -48
    assert worst(single[sample], points[sample]) < -48
    assert math.log(1.0) == np.log(1.0) == 0.0  # the largest U rounds to one
    # Odd lengths go through other code of numpy.
    for length in (1, 2, 3, 5, 7, 9, 31):
        assert np.array_equal(np.log(points[:length].copy()), np.log(points)[:length]) or (
            worst(np.log(points[:length].copy()), points[:length]) < -48
        )
