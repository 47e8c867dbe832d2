"""Partition selection: the recursion, the guarantee from the exact law, the optimum, and the keys really kept.

Every statistical test bounds its false alarms by Hoeffding's relative-entropy bound at 1e-11; there are fewer than 20.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise, product

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.bits import Script
from tests.support.statistics import strangeness

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.partition import PartitionSelection, split_delta, split_delta_interval
from tacit.privacy.loss import ApproximateDp
from tacit.sampling.bits import ReplayBits

ALARM = 1e-11
PRICES = [(Fraction(1, 10), Fraction(1, 10**5)), (1, Fraction(1, 10**9)), (1, Fraction(1, 3)), (Fraction(7, 2), 1e-6)]


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_the_closed_form_is_the_recursion(epsilon, delta):
    selection = PartitionSelection(epsilon, delta)
    with working_precision(2_000):
        a, d, p = to_interval(selection.epsilon).exp(), to_interval(selection.delta), arb(0)
        for n in range(selection.always() + 3):
            assert selection.law(n).overlaps(p)
            assert selection.law(n).rad() < arb(2) ** -1_000
            bounds = [a * p + d, 1 - (1 - p - d) / a, arb(1)]
            p = next(x for x in bounds if all(x <= y or x.overlaps(y) for y in bounds))


@pytest.mark.parametrize(("epsilon", "delta"), PRICES)
def test_the_guarantee_and_that_more_would_break_it(epsilon, delta):
    selection = PartitionSelection(epsilon, delta)
    with working_precision(400):
        a, d = to_interval(selection.epsilon).exp(), to_interval(selection.delta)
        law = [selection.law(n) for n in range(selection.always() + 3)]
        slack = arb(2) ** -300
        for p, more in pairwise(law):
            # kept and not kept, in both directions
            assert more <= a * p + d + slack
            assert 1 - p <= a * (1 - more) + d + slack
            assert p <= a * more + d
            assert 1 - more <= a * (1 - p) + d
            # one of the first two is an equality, until the key is always kept
            tight = abs(more - a * p - d) < slack or abs(1 - p - a * (1 - more) - d) < slack
            assert tight or more == 1


@pytest.mark.slow
@pytest.mark.parametrize("moves", [(1, 1), (1, -1), (1, 0)])
def test_two_keys_together(moves):
    # The set of kept keys, exactly: the sum over the four sets of what P exceeds e^eps Q by is at most delta.
    selection = PartitionSelection(1, Fraction(1, 100), groups=2)
    worst = arb(0)
    with working_precision(200):
        a = to_interval(selection.epsilon).exp()

        def sets(n, m):
            p, q = selection.law(n), selection.law(m)
            return [x * y for x, y in product((p, 1 - p), (q, 1 - q))]

        for n, m in product(range(1, selection.always() + 2), repeat=2):
            here, there = sets(n, m), sets(n - moves[0], m - moves[1])
            for one, other in ((here, there), (there, here)):
                excess = sum((max(arb(0), x - a * y) for x, y in zip(one, other, strict=True)), arb(0))
                assert excess <= to_interval(selection.delta)
                worst = max(worst, excess)
    if moves == (1, 1):  # a unit alone in two keys: 1 - (1 - d)^2 = delta
        assert worst > 0.01 - 1e-12


def test_figures():
    # At epsilon 1 and delta 1e-5: p(1) = 1e-5, p(2) = e 1e-5 + 1e-5 = 3.718e-5, p(11) = 0.348, p(12) = 0.760
    selection = PartitionSelection.calibrated(epsilon=1, delta=1e-5)
    with working_precision(100):
        law = [float(selection.law(n)) for n in range(25)]
    assert law[:3] == pytest.approx([0, 1e-5, 3.718281828e-5])
    assert law[11] == pytest.approx(1e-5 * (math.exp(11) - 1) / (math.e - 1)) == pytest.approx(0.348448, abs=1e-6)
    assert law[12] == pytest.approx(1 - (1 - law[11] - 1e-5) / math.e)
    assert (selection.threshold(), selection.always()) == (12, 23)
    assert law[22] < 1 and law[23] == 1
    assert selection.loss() == ApproximateDp(Fraction(1), Fraction(1, 10**5))


def test_delta_is_split_over_the_groups():
    # (1 - d)^4 = 1 - 1e-6: d = 2.5000009375e-7, a little more than a quarter
    d = split_delta(Fraction(1, 10**6), 4)
    assert float(d) == pytest.approx(2.5000009375005e-7, rel=1e-13)
    assert 1 - (1 - d) ** 4 <= Fraction(1, 10**6)
    assert 1 - (1 - d * (1 + Fraction(1, 2**60))) ** 4 > Fraction(1, 10**6)
    assert split_delta(Fraction(1, 10**6), 1) == Fraction(1, 10**6)
    with working_precision(200):
        assert to_interval(split_delta(Fraction(1, 10**9), 1_000)) <= split_delta_interval(Fraction(1, 10**9), 1_000)


def test_tiny_prices_take_no_longer():
    # p(n) = d (a^n - 1)/(a - 1) is about exp(1e-9 n) - 1, which is 1/2 at 1e9 ln 1.5 = 405,465,108.1
    selection = PartitionSelection(1e-9, 1e-9)
    assert 405_465_100 < selection.threshold() < 405_465_120
    assert selection.always() == pytest.approx(2 * selection.threshold(), abs=10)


@pytest.mark.slow
@pytest.mark.parametrize(("epsilon", "delta", "groups", "units"), [(1, 1e-5, 1, 10), (1, 1e-5, 1, 11), (2, 1e-3, 2, 7)])
def test_keys_are_kept_as_often_as_the_law_says(epsilon, delta, groups, units):
    selection = PartitionSelection(epsilon, delta, groups)
    chance, count = float(selection.law(units)), 60_000
    assert 0.1 < chance < 0.8
    hits = len(selection.release(dict.fromkeys(range(count), units), ReplayBits(f"keep {units}".encode())))
    assert strangeness(hits, count, chance) > ALARM
    assert strangeness(hits, count, chance * 1.1) < ALARM
    assert strangeness(hits, count, chance * 0.9) < ALARM


def test_next_to_the_edge_more_bits_decide():
    selection = PartitionSelection(1, 1e-5)
    with working_precision(400):
        digits = int((selection.law(7) * arb(2) ** 192).floor().unique_fmpz())
    first, second, third = digits >> 128, digits >> 64 & (2**64 - 1), digits & (2**64 - 1)
    for words, kept in [
        ((first - 1,), True),
        ((first + 1,), False),
        ((first, second - 1), True),
        ((first, second + 1), False),
        ((first, second, third - 1), True),
        ((first, second, third + 1), False),
    ]:
        script = Script(*words)
        assert selection.release({"a": 7}, script) == (["a"] if kept else [])
        assert script.left == []


def test_a_delta_of_few_bits_is_exact():
    # 2^64 delta is an integer: the word itself is on the other side
    selection = PartitionSelection(1, Fraction(1, 4))
    assert selection.release({"a": 1}, Script(2**62 - 1)) == ["a"]
    assert selection.release({"a": 1}, Script(2**62, 0)) == []


def test_empty_keys_never_and_large_ones_always():
    selection = PartitionSelection(1, 1e-5)
    assert selection.release({"none": 0}, Script(0, 0)) == []
    assert selection.release({"many": 23, "huge": 2**80}, Script(2**64 - 1, 2**64 - 1)) == ["many", "huge"]
    assert selection.release({}, Script()) == []


NUMBERS = [0, -1, math.nan, math.inf, -math.inf, "1", True, None, 1j, [1]]


@settings(deadline=None)
@given(st.sampled_from(NUMBERS))
def test_bad_prices(value):
    with pytest.raises(ParameterError, match="epsilon: "):
        PartitionSelection(value, 1e-5)
    with pytest.raises(ParameterError, match="delta: "):
        PartitionSelection.calibrated(1, value)


@settings(deadline=None)
@given(st.sampled_from([0.5, 0.9, 1, 2]))
def test_a_large_delta_is_no_guarantee(delta):
    with pytest.raises(ParameterError, match="delta: "):
        PartitionSelection(1, delta)


@settings(deadline=None)
@given(st.sampled_from([-1, math.nan, 1.0, "1", True, None]))
def test_bad_numbers_of_units(value):
    with pytest.raises(ParameterError, match="units: "):
        PartitionSelection(1, 1e-5).release({"a": value}, ReplayBits(b""))
    with pytest.raises(ParameterError, match="groups: "):
        PartitionSelection(1, 1e-5, value)
    with pytest.raises(ParameterError, match="units: needs a mapping"):
        PartitionSelection(1, 1e-5).release([value], ReplayBits(b""))


@pytest.mark.parametrize(("epsilon", "delta", "groups"), [(1e6, 1e-100, 1), (1e-9, 1e-100, 1), (10, 1e-9, 10**6)])
def test_extreme_prices(epsilon, delta, groups):
    selection = PartitionSelection(epsilon, delta, groups)
    assert 1 < selection.threshold() <= selection.always()
    # alone: at most delta/groups or a little more; one short of always: not always
    assert selection.release({"alone": 1}, Script(2**32)) == []
    assert selection.release({"nearly": selection.always() - 1, "there": selection.always()}, Script(0, 2**64 - 1)) == [
        "nearly",
        "there",
    ]
