"""Shuffling: the upper bound holds for every randomizer tried, the lower one is a real one's; both are monotone."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import betainc

from tacit.accounting import epsilon as price
from tacit.arithmetic import precision
from tacit.errors import ParameterError
from tacit.local.clones import excess, excess_of_one
from tacit.local.hashing import LocalHashing
from tacit.local.k_ary import KAry
from tacit.local.shuffle import Shuffled
from tacit.local.subset import SubsetSelection
from tacit.local.unary import OptimizedUnary
from tacit.privacy.loss import Approximate, Repeat

DELTA = 1e-6


def histogram_law(rows):
    """The law of the histogram of independent reports, a row of chances for each person."""
    law = {(0,) * len(rows[0]): 1.0}
    for row in rows:
        after = {}
        for counts, chance in law.items():
            for report, share in enumerate(row):
                key = (*counts[:report], counts[report] + 1, *counts[report + 1 :])
                after[key] = after.get(key, 0.0) + chance * share
        law = after
    return law


def true_delta(one, other, rest, epsilon):
    """The exact delta of the shuffled reports where person 1 reports by `one` or by `other`, the rest as given."""
    p, q = histogram_law([one, *rest]), histogram_law([other, *rest])
    return sum(max(0.0, p[key] - math.exp(epsilon) * q[key]) for key in p)


@given(data=st.data())
@settings(max_examples=80, deadline=None)
def test_no_randomizer_loses_more_than_the_upper_bound(data):
    inputs, reports, users = data.draw(st.integers(2, 4)), data.draw(st.integers(2, 4)), data.draw(st.integers(1, 6))
    weight = st.sampled_from([1.0, 1.0, 1.5, 2.0, 4.0])
    table = [[data.draw(weight) for _ in range(reports)] for _ in range(inputs)]
    rows = [[entry / sum(row) for entry in row] for row in table]
    local = max(math.log(a[r] / b[r]) for a, b in product(rows, rows) for r in range(reports))
    if local < 1e-3:
        return
    rest = [rows[data.draw(st.integers(0, inputs - 1))] for _ in range(users - 1)]
    crowd = Shuffled(local, users)
    for share in (0.0, 0.2, 0.5, 0.9):
        assert true_delta(rows[0], rows[1], rest, share * local) <= crowd.delta(share * local) + 1e-12


@given(data=st.data())
@settings(max_examples=60, deadline=None)
def test_a_known_variation_is_enough_for_the_bound(data):
    inputs, reports, users = data.draw(st.integers(2, 4)), data.draw(st.integers(3, 4)), data.draw(st.integers(1, 5))
    table = [[data.draw(st.sampled_from([1.0, 1.0, 3.0])) for _ in range(reports)] for _ in range(inputs)]
    rows = [[entry / sum(row) for entry in row] for row in table]
    local = max(math.log(a[r] / b[r]) for a, b in product(rows, rows) for r in range(reports))
    variation = sum(max(0.0, p - q) for p, q in zip(rows[0], rows[1], strict=True))
    if variation < 1e-3:
        return
    rest = [rows[data.draw(st.integers(0, inputs - 1))] for _ in range(users - 1)]
    crowd = Shuffled(local, users, variation * (1 + 1e-12))
    for part in (0.1, 0.5, 0.9):
        assert true_delta(rows[0], rows[1], rest, part * local) <= crowd.delta(part * local) + 1e-12


@pytest.mark.parametrize("protocol", [KAry(20, 2), OptimizedUnary(8, 2), SubsetSelection(6, 1), LocalHashing(8, 2)])
def test_the_variation_of_a_protocol_is_its_gap(protocol):
    rows = protocol.matrix().rows
    variation = sum(max(Fraction(0), p - q) for p, q in zip(rows[0], rows[1], strict=True))
    assert float(variation) == pytest.approx(protocol.gap, rel=1e-12)


@pytest.mark.parametrize("domain", [10, 1000])
def test_a_protocol_with_many_values_hides_better(domain):
    worst, known = Shuffled(4, 100_000).bounds(DELTA), Shuffled.of(KAry(domain, 4), 100_000).bounds(DELTA)
    assert known[0] <= known[1] <= worst[1]
    # about sqrt((E + d - 1)/(E + 1)) times better: 1.07 for 10 values, 4.35 for 1,000
    gain = math.sqrt((math.exp(4) + domain - 1) / (math.exp(4) + 1))
    assert worst[1] / known[1] == pytest.approx(gain, rel=0.1)
    assert known[1] / known[0] < 1.3


@pytest.mark.parametrize("users", [2, 6])
def test_the_lower_bound_of_a_variation_is_that_of_a_real_crowd(users):
    # three values told with the chance s, else the third is sent: the variation is s (E - 1)/(E + 2)
    large, sent = math.exp(1.5), 0.4
    rows = [[sent * (large if x == r else 1) / (large + 2) + (1 - sent) * (r == 2) for r in range(3)] for x in range(3)]
    crowd = Shuffled(1.5, users, Fraction(sent * (large - 1) / (large + 2)))
    for a in (0.1, 0.6):
        exact = true_delta(rows[0], rows[1], [rows[2]] * (users - 1), a)
        assert crowd.least_delta(a) == pytest.approx(exact, rel=1e-6)
        assert exact <= crowd.delta(a)


@pytest.mark.parametrize("users", [1, 2, 5, 9])
@pytest.mark.parametrize("local", [0.3, 1.0, 3.0])
def test_the_lower_bound_is_the_delta_of_a_real_crowd(users, local):
    large = math.exp(local)
    three = [[(large if x == r else 1) / (large + 2) for r in range(3)] for x in range(3)]
    two = [[(large if x == r else 1) / (large + 1) for r in range(2)] for x in range(2)]
    for share in (0.05, 0.3, 0.8):
        a = share * local
        cases = [
            true_delta(three[0], three[1], [three[2]] * (users - 1), a),
            true_delta(two[0], two[1], [two[0]] * (users - 1), a),
            true_delta(two[1], two[0], [two[0]] * (users - 1), a),
        ]
        assert Shuffled(local, users).least_delta(a) == pytest.approx(max(cases), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("users", [1, 2, 7])
def test_the_excess_is_the_expectation_by_enumeration(users):
    # every person draws +3, -5 or -rest
    for rate, rest in [(0.5, 0.0), (0.9, 0.0), (1.0, 0.0), (0.6, 0.7)]:
        exact = 0.0
        for draws in product((3.0, -5.0, -rest), repeat=users):
            chance = math.prod(1 - rate if draw == -rest else rate / 2 for draw in draws)
            exact += chance * max(0.0, sum(draws)) / users
        assert exact <= excess(users, rate, 3.0, 5.0, rest) == pytest.approx(exact, rel=1e-6)
        assert exact >= excess(users, rate, 3.0, 5.0, rest, upper=False) == pytest.approx(exact, rel=1e-6)
    # N of 4 fair coins: E max(0, N - 2) = 1/16 * 2 + 4/16 * 1 = 3/8
    assert excess_of_one(4, 0.5, 1.0, 0.5) == pytest.approx(3 / 32, rel=1e-6)


def test_the_strides_of_a_large_crowd_stay_outside_and_close():
    # 200,000 people at rate 0.5: a deviation of 224, so every third c is computed
    users, a = 200_000, 0.008
    plus, minus = math.e - math.exp(a), math.exp(1 + a) - 1
    upper = excess(users, 0.5, plus, minus)
    c = np.arange(100_000 - 2200, 100_000 + 2200)  # ten deviations on either side
    weights = np.exp(-((c - 100_000) ** 2) / (2 * users / 4))
    weights /= weights.sum()
    k = np.floor(minus * c / (plus + minus)) + 1
    value = (plus + minus) * c / 2 * betainc(k - 1, c - k + 1, 0.5) - minus * c * betainc(k, c - k + 1, 0.5)
    assert upper == pytest.approx(weights @ value / users, rel=1e-3)
    assert excess(users, 0.5, plus, minus, upper=False) == pytest.approx(upper, rel=1e-3)
    assert excess(users, 0.5, plus, minus, upper=False) <= upper


def test_the_machines_incomplete_beta_function_is_good_to_the_margin():
    with precision(256):
        for tosses in (10**3, 10**6, 10**8):
            for deviations in (0, 3, 7):
                k = tosses // 2 + int(deviations * math.sqrt(tosses) / 2) + 1
                exact = arb("0.5").beta_lower(k, tosses - k + 1, regularized=1)
                assert float(abs(arb(betainc(k, tosses - k + 1, 0.5)) / exact - 1).mid()) < 2.0**-32


@pytest.mark.parametrize("local", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("users", [100, 10_000])
def test_upper_is_at_least_lower_and_both_are_monotone(local, users):
    crowd = Shuffled(local, users)
    low, high = crowd.bounds(DELTA)
    assert 0 <= low <= high <= local
    deltas = [0.0, 0.1 * local, 0.5 * local, 0.9 * local, local]
    above, below = [crowd.delta(a) for a in deltas], [crowd.least_delta(a) for a in deltas]
    assert all(one >= other for one, other in zip(above, below, strict=True))
    assert above == sorted(above, reverse=True) and below == sorted(below, reverse=True)
    assert above[-1] == below[-1] == 0
    more = Shuffled(local, users * 4).bounds(DELTA)
    assert more[0] <= low and more[1] <= high
    noisier = Shuffled(local / 2, users).bounds(DELTA)
    assert noisier[0] <= low and noisier[1] <= high


@pytest.mark.parametrize(("local", "users"), [(1.0, 10_000), (2.0, 10_000), (4.0, 100_000)])
def test_it_is_below_the_published_closed_forms(local, users):
    high = Shuffled(local, users).bounds(DELTA)[1]
    large = math.exp(local)
    # Feldman, McMillan, Talwar 2021, theorem 3.1, for local <= ln(n/(16 ln(2/delta)))
    assert local <= math.log(users / (16 * math.log(2 / DELTA)))
    root = 8 * math.sqrt(large * math.log(4 / DELTA)) / math.sqrt(users) + 8 * large / users
    assert high < math.log1p((large - 1) / (large + 1) * root)
    # and below their numbers of 2021, where a clone has the chance e^-local in place of 2/(e^local + 1)
    old = 2 * large / (large + 1)
    plus, minus = (large - math.exp(high)) * old, (math.exp(local + high) - 1) * old
    assert excess(users, 1 / large, plus, minus) > DELTA


def test_the_bounds_are_close_together_where_epsilon_is_large():
    low, high = Shuffled(4, 100_000).bounds(DELTA)
    assert high / low < 1.02


def test_the_epsilon_falls_with_the_root_of_the_crowd():
    # 100 times the people: a tenth of the epsilon
    small, large = (Shuffled(1, users).bounds(DELTA)[1] for users in (10_000, 1_000_000))
    assert small / large == pytest.approx(10, rel=0.3)


def test_one_person_hides_among_nobody():
    # randomized response: delta(a) = (E - e^a)/(E + 1)
    crowd = Shuffled(1, 1)
    assert crowd.delta(0.5) == pytest.approx((math.e - math.exp(0.5)) / (math.e + 1), rel=1e-6)
    assert crowd.bounds(DELTA)[1] == pytest.approx(1, rel=1e-4)


def test_the_local_epsilon_that_a_target_needs_meets_it():
    crowd = Shuffled.needed(epsilon=0.5, delta=DELTA, users=20_000)
    assert crowd.delta(0.5) <= DELTA < Shuffled(crowd.epsilon * Fraction(1001, 1000), 20_000).delta(0.5)
    assert Shuffled.needed(epsilon=2, delta=DELTA, users=2).epsilon >= 2


def test_rounds_over_time_compose():
    weekly = Shuffled(1, 10_000).loss(1e-8)
    assert weekly == Approximate(Fraction(Shuffled(1, 10_000).bounds(1e-8)[1]), Fraction(1, 10**8))
    # 52 weeks: at most 52 times one, at 52 times the delta; less by composing well
    basic, well = (price(Repeat(weekly, 52), 1e-6, by=by) for by in ("basic", "optimal"))
    assert basic == pytest.approx(52 * float(weekly.epsilon)) and well < basic / 1.5
    # and far less than what the same answers cost without a shuffler
    assert well < 52


def test_what_cannot_be_is_an_error():
    for wrong in [(0, 10), (51, 10), (1, 0), (1, 10**10)]:
        with pytest.raises(ParameterError):
            Shuffled(*wrong)
    for delta in (0, 1e-30, 1):
        with pytest.raises(ParameterError, match="delta"):
            Shuffled(1, 10).bounds(delta)
