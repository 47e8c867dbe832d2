"""Coins and small integers from 16 bits each: exact laws, and ties settled with more bits."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from flint import arb

from tacit.arithmetic import ball
from tacit.errors import ParameterError
from tacit.sampling.bits import ReplayBits
from tacit.sampling.narrow import Coin, belows


@pytest.mark.parametrize("chance", [Fraction(1, 3), Fraction(1, 10**6), Fraction(999, 1000)], ids=str)
def test_coins_have_their_chance(chance, chi_square):
    # p > 1e-11 for each of 3; a chance off by a twentieth of the rarer side is rejected where there are enough tosses.
    count = 400_000
    heads = int(Coin(lambda: ball(chance)).tosses(count, ReplayBits(b"narrow")).sum())
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

    class Script:
        def __init__(self, *words):
            self.left = list(words)

        def words(self, count):
            taken, self.left = self.left[:count], self.left[count:]
            assert len(taken) == count
            return np.array(taken, dtype=np.uint64)

    coin = Coin(chance)
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
    found = belows(n, count, ReplayBits(b"belows"))
    assert len(found) == count and int(found.max()) < n
    if n > 1:
        classes = min(n, 64)
        seen = np.bincount(found.astype(np.int64) * classes // n, minlength=classes)
        sizes = np.bincount(np.arange(n) * classes // n, minlength=classes)
        assert chi_square(seen, count * sizes / n) > 1e-11
    if 1 < n <= 1000:
        assert (found == n - 1).any()


def test_wrong_sizes_are_errors():
    for n in (0, 65537):
        with pytest.raises(ParameterError):
            belows(n, 1, ReplayBits(b""))
    assert len(belows(5, 0, ReplayBits(b""))) == 0
