"""floor(scale (c - ln U)): decided by the machine only where it is right."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb
from tests.support.counts import some

from tacit.arithmetic import to_interval, working_precision
from tacit.sampling import exponential_inversion
from tacit.sampling.exponential_inversion import TRUSTED_BITS, invert, invert_array, invert_certified

HALF = 0.5  # an offset that a double holds exactly
SCALES = [Fraction(1, 10**400), Fraction(1, 3), Fraction(1), Fraction(22, 7), Fraction(10**6), Fraction(2**38) + 1]


def both(scale: Fraction, c: float, uniform: int, known: int) -> tuple[arb, arb]:
    """scale (c - ln U) at the two ends of all U that begin with these bits."""
    low, high = arb(uniform) / arb(2) ** known, arb(uniform + 1) / arb(2) ** known
    return to_interval(scale) * (arb(c) - high.log()), to_interval(scale) * (arb(c) - low.log())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "start"), some(product(SCALES, [(0.0, 64), (HALF, 64), (HALF, 63), (0.0, 63)]), 3), ids=str
)
def test_a_decided_floor_is_the_floor(scale, start):
    c, known = start
    chance = np.random.default_rng(7)
    spread = np.exp2(known - 20 * chance.random(1500)).astype(np.uint64).tolist()
    near_one = [2**known - 1 - int(2.0 ** (known * r - 1)) for r in chance.random(300)]
    grid = [u for u in {*spread, *near_one, 2**known - 1, 1 << (known - 20)} if u < 2**known]
    found, undecided = invert_array(scale, c, np.array(grid, dtype=np.uint64), known, TRUSTED_BITS)
    checked = 0
    with working_precision(300):
        for uniform, value, doubt in zip(grid, found.tolist(), undecided.tolist(), strict=True):
            single = invert(scale, c, uniform, known, TRUSTED_BITS)
            least, most = both(scale, c, uniform, known)
            for decided in ([] if doubt else [value]) + ([] if single is None else [single]):
                assert decided <= least
                assert most < decided + 1
                checked += 1
    assert checked > len(grid) / 4  # of 2 len(grid): at scale 2^38 half of the floors are in doubt


@pytest.mark.parametrize("scale", [Fraction(1, 3), Fraction(22, 7), Fraction(10**6)], ids=str)
@pytest.mark.parametrize("scales", [1, 2, 5, 11])
def test_inside_the_band_the_machine_does_not_tell(digits, scale, scales):
    # U = exp(1/2 - m/scale) is the boundary of m. Near it within 2^-41 of itself: not told. Beyond 2^-39: told.
    m = int(scales * scale) + 1
    edge = digits(lambda: arb.exp(arb(HALF) - to_interval(m / scale)), 1)[0]
    for side in (-1, 1):
        near, far = edge + side * (edge >> 41), edge + side * (edge >> 39)
        assert invert(scale, HALF, near, 64, TRUSTED_BITS) is None
        assert invert_array(scale, HALF, np.array([near, far], dtype=np.uint64), 64, TRUSTED_BITS)[1].tolist() == [
            True,
            False,
        ]
        assert invert(scale, HALF, far, 64, TRUSTED_BITS) == m - (side > 0)
        assert invert_array(scale, HALF, np.array([far], dtype=np.uint64), 64, TRUSTED_BITS)[0].tolist() == [
            m - (side > 0)
        ]


def test_a_small_uniform_is_not_told():
    for known in (63, 64):
        least = 1 << (known - 20)
        assert invert(Fraction(1), HALF, least - 1, known, TRUSTED_BITS) is None
        assert invert(Fraction(1), HALF, least, known, TRUSTED_BITS) == 14  # 1/2 + 20 ln 2 = 14.36
        doubts = invert_array(Fraction(1), HALF, np.array([0, least - 1, least], dtype=np.uint64), known, TRUSTED_BITS)[
            1
        ]
        assert doubts.tolist() == [True, True, False]


def test_a_wide_scale_is_not_told():
    assert invert(Fraction(2**50) + 1, 0.0, 2**63, 64, TRUSTED_BITS) is None
    with pytest.raises(OverflowError):
        invert_array(Fraction(2**50) + 1, 0.0, np.array([2**63], dtype=np.uint64), 64, TRUSTED_BITS)
    assert len(invert_array(Fraction(2**50), 0.0, np.array([], dtype=np.uint64), 64, TRUSTED_BITS)[0]) == 0


@pytest.mark.parametrize("scale", [Fraction(1, 10**400), Fraction(22, 7), Fraction(10**40), Fraction(3, 7) ** 90])
def test_certified_floors_hold_at_both_ends(script, scale):
    chance = np.random.default_rng(11)
    for word in [1, 2, 2**32, *chance.integers(1, 2**63, 60).tolist(), 2**64 - 1]:
        more = [int(extra) for extra in chance.integers(0, 2**63, 12)]
        given = script(*more)
        found = invert_certified(scale, lambda: arb(HALF), word, 64, given)
        used = more[: len(more) - len(given.left)]
        seen = word
        for extra in used:
            seen = seen << 64 | extra
        with working_precision(2000):
            least, most = both(scale, HALF, seen, 64 * (1 + len(used)))
            assert found <= least
            assert most < found + 1


def test_the_widest_scales_need_more_bits(script):
    # -10^40 ln U is known to about 10^40 2^-64 = 5e20 from one word, and to 10^40 2^-128 = 3e1 from two; three decide.
    given = script(*[2**63 + 12345] * 3)
    invert_certified(Fraction(10**40), lambda: arb(0), 2**63, 64, given)
    assert len(given.left) == 1


def test_an_integer_that_is_reached_exactly(same):
    # U = 1 gives 0 exactly: all ones are in [0, small), whose floor is 0.
    assert invert_certified(Fraction(1), lambda: arb(0), 2**64 - 1, 64, same(2**64 - 1)) == 0
    assert invert(Fraction(1, 2), 0.0, 2**64 - 1, 64, TRUSTED_BITS) is None  # x = 0 is within the band of 0
    assert exponential_inversion.invert(Fraction(1, 2), HALF, 2**64 - 1, 64, TRUSTED_BITS) == 0
