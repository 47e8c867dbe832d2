"""Draws from a table: no rounding at all, and interval arithmetic where a word says too little.

Some ten tests of fit, each with a false alarm of 1e-11: less than 1e-9 together.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb
from tests.support.counts import OFF

from tacit.arithmetic import to_interval, working_precision
from tacit.sampling import gaussian, laplace
from tacit.sampling.bits import ReplayBits, SystemBits
from tacit.sampling.cdf_table import CdfTable, is_table_worthwhile

ALARM = 1e-11
ONES = 2**64 - 1


def share(k: int) -> arb:
    """F(k) of the discrete Laplace law of scale 2, at the working precision."""
    q = (-arb(1) / 2).exp()
    return q ** (-k) / (1 + q) if k < 0 else 1 - q ** (k + 1) / (1 + q)


def made(first: int, last: int) -> CdfTable:
    return CdfTable(first, lambda: (share(k) for k in range(first, last + 1)), share)


WHOLE = made(-95, 95)  # exp(-95/2) = 2^-68.5 on either side
CUT = made(-2, 1)  # most of the law lies outside
ONE = made(0, 0)
TABLES = pytest.mark.parametrize("table", [WHOLE, CUT, ONE], ids=["whole", "cut", "one"])


@pytest.fixture
def settled(monkeypatch) -> list[int]:
    """The words that the table alone could not decide, as they come."""
    taken: list[int] = []
    real = CdfTable._search

    def counting(self, word, near, bits):
        taken.append(word)
        return real(self, word, near, bits)

    monkeypatch.setattr(CdfTable, "_search", counting)
    return taken


def is_right(k: int, word: int, known: int = 64) -> bool:
    """Whether F(k - 1) <= U < F(k) for all U that begin with these bits."""
    with working_precision(300 + 2 * known):
        low, high = arb(word) / arb(2) ** known, arb(word + 1) / arb(2) ** known
        return bool(share(k - 1) <= low) and bool(high <= share(k))


@pytest.mark.slow
@TABLES
def test_the_law(fit, settled, table, full):
    # A scale off by a fifth: 8,000 (1/(0.83 * 1.17) - 1) = 229 or more, where 126 is 1e-11 of forty bins.
    count = (1_000_000 if table is WHOLE else 40_000) if full else 8_000
    drawn = table.draws(count, ReplayBits(b"law"))
    assert fit(drawn, Fraction(2)) > ALARM
    assert fit(drawn, 2 * (1 + OFF)) < ALARM
    assert fit(drawn, 2 * (1 - OFF)) < ALARM
    # Outside the table: all but F(last) - F(first).
    with working_precision(64):
        first, last = {len(WHOLE): (-95, 95), len(CUT): (-2, 1), len(ONE): (0, 0)}[len(table)]
        outside = float(1 - share(last) + share(first))
    assert len(settled) / count == pytest.approx(outside, abs=0.02 if full else 0.04)  # seven deviations


@pytest.mark.slow
def test_tables_of_one_law_draw_the_same():
    drawn = [table.draws(5_000, ReplayBits(b"same")).tolist() for table in (WHOLE, CUT, ONE)]
    assert drawn[0] == drawn[1] == drawn[2]


@TABLES
def test_draws_from_first_principles(script, table):
    chance = np.random.default_rng(5)
    words = [*chance.integers(0, 2**64, 300, dtype=np.uint64).tolist(), *(i << 48 for i in range(1, 2**16, 257))]
    words += [(i << 48) - 1 for i in range(1, 2**16, 257)]  # both sides of the edges of cells
    for word, k in zip(words, table.draws(len(words), script(*words)).tolist(), strict=True):
        assert is_right(k, word)


@TABLES
@pytest.mark.parametrize("k", [-9, -2, -1, 0, 1, 7])
def test_around_a_threshold(script, digits, settled, table, k):
    first, second, third = digits(lambda: share(k), 3)
    inside = k in {WHOLE: range(-95, 96), CUT: range(-2, 2), ONE: range(1)}[table]
    if inside:
        assert first in table._thresholds.tolist()
    # One word before the threshold and one after decide alone.
    assert table.draws(1, script(first - 1)).tolist() == [k]
    assert table.draws(1, script(first + 1)).tolist() == [k + 1]
    settled.clear()
    # The threshold itself does not: U may be on either side of F(k).
    for more in ((second - 1,), (second, third - 1)):
        assert table.draws(1, script(first, *more)).tolist() == [k]
    for more in ((second + 1,), (second, third + 1)):
        assert table.draws(1, script(first, *more)).tolist() == [k + 1]
    assert settled == [first] * 4


@TABLES
def test_the_first_and_the_last_word(script, settled, table):
    # U = 2^-65 to 2^-65 + 2^-128, and as near to one.
    (low,) = table.draws(1, script(0, 2**63)).tolist()
    assert is_right(low, 2**63, 128)
    (high,) = table.draws(1, script(ONES, 2**63)).tolist()
    assert is_right(high, ONES << 64 | 2**63, 128)
    # F(k) = q^-k / (1 + q) = 2^-65: k = -2 (65 ln 2 - ln(1 + exp(-1/2))) = -89.16, so -89, and 89 above by symmetry.
    assert (low, high) == (-89, 89)
    assert settled == [0, ONES]


def test_ends_that_lie_beyond_the_table(script):
    # U = 2^-193: k = -2 (193 ln 2 - 0.474) = -266.6; the table of 191 entries ends at 95.
    assert WHOLE.draws(1, script(0, 0, 0, 2**63)).tolist() == [-266]
    assert WHOLE.draws(1, script(ONES, ONES, ONES, 2**63 + 1)).tolist() == [266]


def test_several_in_one_call_take_their_words_in_turn(script, digits):
    first, second = digits(lambda: share(0), 2)
    words = (first, 0, 2**63, first, second - 1, 2**63, second + 1)
    # Four draws take four words; the three that are left decide the first, the second and the fourth.
    assert WHOLE.draws(4, script(*words)).tolist() == [0, -89, 0, 1]


def test_counts():
    assert WHOLE.draws(0, SystemBits()).shape == (0,)
    assert WHOLE.draws(1, SystemBits()).shape == (1,)
    many = WHOLE.draws(100_000, SystemBits())  # a pool holds 4,096 words
    assert many.dtype == np.int64
    assert many.min() < 0 < many.max()


def test_a_law_that_ends(script, same):
    # A fair coin: F(0) = 1/2, F(1) = 1. The least k with U < F(k): heads of the first bit is 0.
    coin = CdfTable(0, lambda: [arb(1) / 2, arb(1)], lambda k: arb(0) if k < 0 else arb(1) / 2 if k == 0 else arb(1))
    assert coin.draws(4, script(0, 2**63 - 1, 2**63, ONES)).tolist() == [0, 0, 1, 1]
    assert coin.draws(2, same(0)).tolist() == [0, 0]
    assert coin.draws(2, same(ONES)).tolist() == [1, 1]


class Slow(Exception):
    """The table asked for more bits than it should need."""


def test_a_very_narrow_law_needs_no_great_precision():
    # Scale 10^-8: F(0) = 1 - exp(-10^8), whose distance from one has 144 million zeros. Its threshold is 2^64 - 1 for
    # every F in [1 - 2^-64, 1), so few bits suffice.
    from flint import ctx

    def narrow(k: int) -> arb:
        if ctx.prec > 10_000:
            raise Slow
        q = (-(arb(10) ** 8)).exp()
        return q ** (-k) / (1 + q) if k < 0 else 1 - q ** (k + 1) / (1 + q)

    table = CdfTable(-2, lambda: (narrow(k) for k in range(-2, 3)), narrow)
    assert set(table.draws(1000, ReplayBits(b"narrow")).tolist()) == {0}


def test_when_a_table_is_worthwhile():
    assert not is_table_worthwhile(2**16 - 1, 1)
    assert is_table_worthwhile(2**16, 327)  # 200 * 327 = 65,400
    assert not is_table_worthwhile(2**16, 328)


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(1), Fraction(10)], ids=str)
def test_the_thresholds_of_laplace(scale):
    table = laplace._table(scale)
    edge = laplace._entries(scale)
    assert len(table) == 2 * edge + 1
    with working_precision(1500):
        q = (-1 / to_interval(scale)).exp()
        share = (1 - q) / (1 + q)
        running = q ** (edge + 1) / (1 + q)  # all below the table
        for k, found in zip(range(-edge, edge + 1), table._thresholds.tolist(), strict=True):
            running += q ** abs(k) * share
            assert found <= running * arb(2) ** 64
            assert running * arb(2) ** 64 < found + 1


@pytest.mark.parametrize("variance", [Fraction(1, 4), Fraction(1), Fraction(70, 3), Fraction(10**4)], ids=str)
def test_the_thresholds_of_gaussian(variance):
    table = gaussian._table(variance)
    edge = gaussian._entries(variance)
    assert len(table) == 2 * edge + 1
    with working_precision(600):
        # Beyond 40 deviations and 40: less than exp(-800) = 2^-1154 of the law.
        reach = 40 * math.isqrt(math.ceil(variance)) + 80
        weights = [(-to_interval(Fraction(k * k) / (2 * variance))).exp() for k in range(reach + 1)]
        total = 2 * sum(weights, arb(0)) - 1
        running = sum(weights[edge + 1 :], arb(0))
        for k, found in zip(range(-edge, edge + 1), table._thresholds.tolist(), strict=True):
            running += weights[abs(k)]
            scaled = running / total * arb(2) ** 64
            assert found < scaled
            assert scaled < found + 1
        assert table._exactly(-edge - 1) < arb(2) ** -64
        assert table._exactly(edge) > 1 - arb(2) ** -64
        assert abs(table._exactly(3) - (sum(weights, arb(0)) + sum(weights[1:4], arb(0))) / total) < arb(2) ** -550
