"""The interval of a probability is no narrower than its theorem says."""

from __future__ import annotations

from fractions import Fraction
from math import comb

import pytest

from tacit.accounting.interval import clopper_pearson_interval


def at_least(count: int, total: int, p: Fraction) -> Fraction:
    """The probability of so many successes or more."""
    return sum((comb(total, k) * p**k * (1 - p) ** (total - k) for k in range(count, total + 1)), Fraction(0))


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.99, 1 - 2.0**-40])
def test_each_end_is_wrong_with_at_most_half_of_what_is_left(confidence):
    tail = (1 - Fraction(confidence)) / 2
    for total in (1, 2, 5, 12, 30):
        for count in range(total + 1):
            low, high = map(Fraction, clopper_pearson_interval(count, total, confidence))
            assert 0 <= low <= Fraction(count, total) <= high <= 1
            assert low == 0 or at_least(count, total, low) <= tail
            assert high == 1 or at_least(total - count, total, 1 - high) <= tail
            inward = Fraction(1, 10**9)  # and is no wider than that
            assert count == 0 or at_least(count, total, low + inward) > tail
            assert count == total or at_least(total - count, total, 1 - high + inward) > tail
    assert clopper_pearson_interval(0, 5)[0] == 0 and clopper_pearson_interval(5, 5)[1] == 1


def test_many_trials():
    low, high = clopper_pearson_interval(250_000, 1_000_000)
    # about 1/4 -+ 2.576 sqrt(3/16)/1000
    assert (low, high) == pytest.approx((0.248885, 0.251117), abs=1e-6)
