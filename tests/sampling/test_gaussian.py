"""The discrete Gaussian law, exactly, by rejection and by table.

Some thirty tests of fit, each with a false alarm of 1e-11: less than 1e-9 together. Each also rejects a variance that
is off by a tenth, or by a fifth or two fifths where it says so.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from flint import arb
from tests.support.counts import OFF, some

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.sampling import bernoulli, gaussian
from tacit.sampling.bernoulli import TRUSTED_BITS
from tacit.sampling.bits import ReplayBits, SystemBits
from tacit.sampling.gaussian import draw, draw_array, tail_quantile

ALARM = 1e-11
NARROW = [Fraction(1, 4), Fraction(1), Fraction(100)]
WIDE = [Fraction(10**6), Fraction(2**40)]
VARIANCES = [*NARROW, Fraction(70, 3), *WIDE]
BEYOND = Fraction(2**60)
ONES = 2**64 - 1


@pytest.fixture(scope="module")
def p_value(binned):
    def fit(drawn, variance: Fraction) -> float:
        """Against the sum of the law; from a deviation of 100 on the integral, which differs by less than 1e-5."""
        deviation = math.sqrt(variance)
        if deviation < 100:
            reach = math.ceil(12 * deviation) + 12
            law = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * float(variance)))
            above = np.cumsum(law[::-1])[::-1] / law.sum()
            edges = range(-reach + 1, reach) if deviation < 5 else range(-reach + 1, reach, int(deviation / 5))
            return binned(drawn, lambda m: float(above[m + reach]), edges)
        edges = [math.floor(deviation * step / 8) for step in range(-22, 23)]
        return binned(drawn, lambda m: math.erfc((m - 0.5) / deviation / math.sqrt(2)) / 2, edges)

    return fit


def check(p_value, drawn, variance: Fraction, off: Fraction = Fraction(1, 10)) -> None:
    assert p_value(drawn, variance) > ALARM
    assert p_value(drawn, variance * (1 + off)) < ALARM
    assert p_value(drawn, variance * (1 - off)) < ALARM


@pytest.fixture
def settled(monkeypatch) -> list[str]:
    """What took a certified path, as it happens: a proposal or a coin."""
    taken: list[str] = []

    def watch(module, name: str) -> None:
        real = getattr(module, name)

        def counting(*given):
            taken.append(name)
            return real(*given)

        monkeypatch.setattr(module, name, counting)

    watch(gaussian.laplace, "_draw_certified")
    watch(bernoulli, "is_below")
    return taken


# The law.


@pytest.mark.slow
@pytest.mark.parametrize("variance", some([*VARIANCES, BEYOND], 2), ids=str)
def test_one_at_a_time(p_value, variance, full):
    # A variance off by a tenth: the statistic is about count * 2 * 0.05^2, that is 225 where the count is 45,000; off
    # by a fifth it is so with a quarter of the draws, and 46 to 130 is 1e-11.
    bits = ReplayBits(f"one {variance}".encode())
    check(p_value, [draw(variance, bits) for _ in range(200_000 if full else 13_000)], variance, OFF)


@pytest.mark.parametrize("variance", VARIANCES, ids=str)
def test_by_rejection(p_value, monkeypatch, variance):
    monkeypatch.setattr(
        gaussian, "_table", None
    )  # 50,000 draws are too few for one; the proposals may come from theirs
    check(p_value, draw_array(variance, 50_000, ReplayBits(f"rejection {variance}".encode())), variance)


@pytest.mark.parametrize("variance", [*NARROW, Fraction(70, 3)], ids=str)
def test_by_table(p_value, monkeypatch, variance, full):
    monkeypatch.setattr(gaussian, "_accept_each", None)  # 200,000 draws are enough for one
    check(
        p_value,
        draw_array(variance, 2_000_000 if full else 200_000, ReplayBits(f"table {variance}".encode())),
        variance,
    )


def test_wide_vectors(p_value):
    for variance in (BEYOND, Fraction(2**76)):
        count = 50_000 if variance == BEYOND else 10_000
        drawn = draw_array(variance, count, ReplayBits(b"wide"))
        assert p_value(drawn, variance) > ALARM
        assert p_value(drawn, variance * Fraction(13, 10)) < ALARM  # fewer draws: three tenths are seen


def test_draws_that_follow_each_other_are_independent(chi_square):
    # Pairs of |k| <= 6 at variance 100: P(|k| <= 6) = 0.484. What was thrown away between two leaves no trace.
    small = np.abs(draw_array(Fraction(100), 60_000, ReplayBits(b"pairs"))) <= 6
    share = small.mean()
    pairs = np.bincount(2 * small[::2] + small[1::2], minlength=4).tolist()
    law = [(1 - share) ** 2, share * (1 - share), share * (1 - share), share**2]
    assert chi_square(pairs, [30_000 * chance for chance in law]) > ALARM
    # A neighbor that agrees a tenth more often than not: 30,000 * 0.1^2 = 300.
    assert chi_square(pairs, [30_000 * chance * (1.1, 0.9, 0.9, 1.1)[i] for i, chance in enumerate(law)]) < ALARM


# The certified path.


@pytest.mark.slow
@pytest.mark.parametrize(("variance", "trusted"), [(Fraction(1), 1), (Fraction(100), 4)])
def test_a_cruder_machine_draws_the_same_law(p_value, settled, variance, trusted, full):
    count, off = (40_000, Fraction(1, 10)) if full else (4_000, Fraction(2, 5))  # 4,000 * 2 * 0.183^2 = 268
    single = 3_000 if full else 300
    plain = draw_array(variance, count, ReplayBits(b"cut"))
    assert len(settled) < 4
    settled.clear()
    drawn = draw_array(variance, count, ReplayBits(b"cut"), trusted)
    assert settled.count("_draw_certified") > count / 2
    assert settled.count("is_below") > count / 20
    check(p_value, drawn, variance, off)
    # The bits are used up in another order only where a draw needs more of them: none here.
    assert np.array_equal(plain, drawn)
    bits, other = ReplayBits(b"cut"), ReplayBits(b"cut")
    assert [draw(variance, bits, trusted) for _ in range(single)] == [draw(variance, other) for _ in range(single)]


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(70, 3), Fraction(10**6), BEYOND], ids=str)
def test_the_exponent_is_as_good_as_the_coin_is_told(monkeypatch, variance):
    # Told: 2^-38. Claimed where x <= 64: 2^-42.
    seen = {}

    def listening(x, error, exactly, bits, trusted):
        seen.update(x=x.copy(), error=error, exactly=exactly)
        return np.zeros(len(x), dtype=bool)

    monkeypatch.setattr(gaussian, "draw_exp_array", listening)
    scale = gaussian._proposal(variance)
    sizes = np.unique(np.linspace(0, 13 * scale, 2_000).astype(np.int64))
    gaussian._accept_each(sizes, scale, variance, ReplayBits(b""), TRUSTED_BITS)
    assert seen["error"] == 2.0**-38
    for i, size in enumerate(sizes.tolist()):
        # What the law needs beyond the proposal's exp(-|y|/scale), up to a constant: y^2/(2 variance) - |y|/scale.
        exact = Fraction(size**2) / (2 * variance) - Fraction(size, scale) + variance / (2 * scale**2)
        assert seen["exactly"](i) == exact
        if exact <= 64:
            assert abs(Fraction(float(seen["x"][i])) - exact) < Fraction(1, 2**42)
        else:
            assert seen["x"][i] > 63


@pytest.mark.parametrize("variance", [Fraction(1), Fraction(70, 3), Fraction(2**40)], ids=str)
def test_coins_next_to_their_edge(script, digits, settled, variance):
    scale = gaussian._proposal(variance)
    for size in (0, scale // 2 + 1, 2 * scale, 3 * scale):
        first, second = digits(lambda size=size: (-to_interval(gaussian._excess(size, scale, variance))).exp(), 2)
        words = [first, first, first - 2, first + 2, first - 2**30, first + 2**30]
        more = [second - 1, second + 1]
        found = gaussian._accept_each(np.full(6, size), scale, variance, script(*words, *more), TRUSTED_BITS)
        assert found.tolist() == [True, False] * 3


def test_a_draw_word_by_word(script):
    # Variance 1, scale 2. U = 1/2, sign +: the magnitude is floor(2 (ln(2/(1 + exp(-1/2))) + ln 2)) = floor(1.826) = 1.
    # It is kept with probability exp(-(1 - 1/2)^2 / 2) = exp(-1/8) = 0.8825: at U = 0.5, not at U = 0.9.
    half, high, sign = 2**63, int(0.9 * 2**64), 1
    assert draw(Fraction(1), script(half, half)) == 1
    assert draw(Fraction(1), script(half | sign, half)) == -1
    assert draw(Fraction(1), script(half, high, half | sign, half)) == -1
    assert draw(Fraction(1), script(half, high, ONES, half)) == 0


# Odd sources and odd widths.


@pytest.mark.parametrize("variance", [*VARIANCES, BEYOND], ids=str)
def test_ones_are_drawn_again_until_they_end(script, variance):
    # All ones propose 0 and refuse it; a small word, here 2^44 with its U of 2^-20, keeps it.
    assert draw(variance, script(*[ONES] * 20, ONES, 2**44)) == 0
    if variance != BEYOND:
        # int(1.35 * 1) + 16 = 17 proposals and their 17 coins, twice; the first that is kept is the draw.
        coins = [ONES] * 16 + [2**44]
        assert draw_array(variance, 1, script(*[ONES] * 34, *[ONES] * 17, *coins)).tolist() == [0]


@pytest.mark.parametrize("variance", [Fraction(1, 10**400), Fraction(1, 10**320), Fraction(1, 10**12)])
def test_very_narrow_laws(variance):
    # P(k = 1) is exp(-5 * 10^11) at most.
    bits = ReplayBits(b"narrow")
    assert [draw(variance, bits) for _ in range(20)] == [0] * 20
    assert not draw_array(variance, 20, bits).any()


def test_a_very_narrow_table_is_made_quickly(monkeypatch):
    # Beyond 1 - 2^-64 every threshold is 2^64 - 1: no more than a few hundred bits are needed.
    class Slow(Exception):
        pass

    real = gaussian._weights

    def watching(variance):
        from flint import ctx

        if ctx.prec > 10_000:
            raise Slow
        return real(variance)

    monkeypatch.setattr(gaussian, "_weights", watching)
    gaussian._table.cache_clear()
    assert not draw_array(Fraction(1, 10**6), 70_000, ReplayBits(b"narrow")).any()


def test_counts():
    for variance in (Fraction(1), Fraction(10**6)):
        assert draw_array(variance, 0, SystemBits()).shape == (0,)
        assert draw_array(variance, 1, SystemBits()).shape == (1,)
        many = draw_array(variance, 30_000, SystemBits())  # a pool holds 4,096 words
        assert many.dtype == np.int64
        assert many.min() < 0 < many.max()


def test_too_wide_for_a_vector():
    # The least integer above the deviation is at most 2^40.
    draw_array(Fraction(2**80 - 1), 3, ReplayBits(b""))
    with pytest.raises(OverflowError):
        draw_array(Fraction(2**80), 3, ReplayBits(b""))
    assert abs(draw(Fraction(2**200), ReplayBits(b""))) > 2**90


@pytest.mark.parametrize("variance", [Fraction(0), Fraction(-1, 10**30)])
def test_a_variance_is_positive(variance):
    for call in (
        lambda: draw(variance, ReplayBits(b"")),
        lambda: draw_array(variance, 3, ReplayBits(b"")),
        lambda: tail_quantile(variance, Fraction(1, 2)),
    ):
        with pytest.raises(ParameterError, match="must be positive"):
            call()


# The tail.


@cache
def beyond(variance: Fraction, most: int, precision: int) -> list[arb]:
    """P(|k| > w) for w = 0, ..., most, added up term by term at this precision, the working one."""
    reach = most + 40 * math.isqrt(math.ceil(variance)) + 60  # what is left out: below exp(-800)
    raw = [(-to_interval(Fraction(k * k) / (2 * variance))).exp() for k in range(reach + 1)]
    total = 2 * sum(raw, arb(0)) - 1
    running, found = sum(raw[most + 2 :], arb(0)), []
    for w in range(most, -1, -1):
        running += raw[w + 1]
        found.append(2 * running / total)
    return found[::-1]


@pytest.mark.parametrize("variance", [Fraction(1, 50), Fraction(1, 4), Fraction(1), Fraction(70, 3), Fraction(2500)])
def test_tail_is_the_least(variance):
    with working_precision(300):
        chances = beyond(variance, 8 * math.isqrt(math.ceil(variance)) + 8, 300)
        for share in ("1/2", "1/3", "1/20", "1/1000", "999/1000", "1/1000000000"):
            least = next(w for w, chance in enumerate(chances) if chance <= to_interval(Fraction(share)))
            assert tail_quantile(variance, Fraction(share)) == least


@pytest.mark.slow
@pytest.mark.parametrize("share", ["99/100", "1/2", "1/3", "3/10", "1/20", "1/1000000"])
def test_tail_of_a_wide_law(share):
    # Deviation 1100, beyond 1024: a valid bound, and at most one step above the least, for any chance.
    variance, share = Fraction(1100**2), Fraction(share)
    with working_precision(200):
        chances = beyond(variance, 6_000, 200)
        least = next(w for w, chance in enumerate(chances) if chance <= to_interval(share))
    assert least <= tail_quantile(variance, share) <= least + 1


@pytest.mark.parametrize("share", ["1/2", "1/20", "1/1000000000"])
def test_tail_of_a_very_wide_law(share):
    # At 2^60 the law is the continuous one but for 1/2: the point where erfc(w / (deviation sqrt 2)) is the chance.
    w = tail_quantile(BEYOND, Fraction(share))
    deviation = 2.0**30
    assert math.erfc((w + 0.5) / deviation / math.sqrt(2)) <= float(Fraction(share)) * (1 + 1e-12)
    assert math.erfc((w - 2) / deviation / math.sqrt(2)) > float(Fraction(share)) * (1 - 1e-12)


@pytest.mark.slow
def test_the_tail_covers_the_draws():
    # At 1/1000: of 200,000 draws 200 lie beyond, at most; 320 or more has a chance below exp(120 - 320 ln 1.6) = 6e-14.
    for variance in (Fraction(1), Fraction(10**6), Fraction(2**40)):
        drawn = draw_array(variance, 200_000, ReplayBits(b"tail"))
        assert (np.abs(drawn) > tail_quantile(variance, Fraction(1, 1000))).sum() < 320


@pytest.mark.parametrize("chance", [Fraction(0), Fraction(1), Fraction(-1, 2), Fraction(3, 2)])
def test_a_chance_lies_between_zero_and_one(chance):
    with pytest.raises(ParameterError, match="is no chance"):
        tail_quantile(Fraction(1), chance)
