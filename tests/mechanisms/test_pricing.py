"""The auction: its figures, the guarantee on all small sets of bids, and the prices really chosen."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import combinations_with_replacement

import pytest
from flint import arb
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.counts import FULL, OFF, enough, some

from tacit.arithmetic import to_interval, working_precision
from tacit.errors import ParameterError
from tacit.mechanisms.pricing import Pricing
from tacit.privacy.loss import BoundedRange
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import ReplayBits

ALARM = 1e-11  # of each of three tests of fit


def test_the_best_price_of_ten_ten_and_five_hundred():
    # 10 * 3 = 30; 11 * 1 = 11; 500 * 1 = 500; 501 * 0
    auction = Pricing.calibrated(epsilon=1, prices=[10, 11, 500, 501])
    assert auction.revenues([10, 10, 500]) == [30, 11, 500, 0]
    assert auction.sensitivity == 501
    # every price from 1 to 500: no other brings more
    every = Pricing.calibrated(epsilon=1, prices=range(1, 501))
    revenues = every.revenues([10, 10, 500])
    assert every.prices[revenues.index(max(revenues))] == 500
    # factor 1/(2 * 500): 500 is preferred to 10 by exp(470/1000) = 1.6 only; with a hundred such groups by exp(47)
    with working_precision(100):
        law = every.law([10, 10, 500])
        assert float(law[500] / law[10]) == pytest.approx(math.exp(0.47))
        law = every.law([10, 10, 500] * 100)
        assert float(law[500] / law[10]) == pytest.approx(math.exp(47))


def losses(auction, one, other):
    p, q = auction.law(one), auction.law(other)
    return [(p[price] / q[price]).log() for price in auction.prices]


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("prices", [(1, 2, 3), (2, 5), (4,)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(2)])
def test_the_guarantee_on_all_small_sets_of_bids(epsilon, prices, neighbors):
    auction = Pricing(prices, epsilon, neighbors)
    domain = range(max(prices) + 1)
    slack, widest, largest = arb(2) ** -100, arb(0), arb(0)
    with working_precision(160):
        for others in combinations_with_replacement(domain, 2):
            states = [(*others, bid) for bid in domain]
            pairs = [(a, b) for a in states for b in (states if neighbors is Neighbors.REPLACE else [others])]
            for one, other in pairs:
                found = losses(auction, one, other)
                widest = max(widest, max(found) - min(found))
                largest = max(largest, *(abs(x) for x in found))
        assert widest <= to_interval(epsilon) + slack
        assert largest <= to_interval(epsilon) + slack
        if prices == (1, 2, 3) and neighbors is Neighbors.ADD_REMOVE:
            # a bid of 3 adds 1, 2 and 3: the range is factor (3 - 1) = 2/3 epsilon
            assert abs(widest - to_interval(epsilon) * 2 / 3) < slack
    assert auction.loss() == BoundedRange(epsilon)


def test_add_remove_is_twice_as_sharp():
    assert Pricing((10, 500), 1, Neighbors.ADD_REMOVE).factor == Fraction(1, 500)
    assert Pricing((10, 500), 1, Neighbors.REPLACE).factor == Fraction(1, 1000)


def test_the_shortfall():
    # K = 3 prices, factor 2/(2 * 500): ln(3/0.05) * 500 = 2047.17
    auction = Pricing((10, 50, 500), 2)
    assert auction.error(0.95) == 2047
    bids = [10] * 40 + [50] * 10 + [500] * 8
    with working_precision(100):
        law, revenues = auction.law(bids), dict(zip(auction.prices, auction.revenues(bids), strict=True))
        best = max(revenues.values())
        for confidence in (Fraction(1, 2), Fraction(95, 100), Fraction(999, 1000)):
            w = auction.error(confidence)
            missed = sum((law[price] for price in law if best - revenues[price] > w), arb(0))
            assert missed <= 1 - to_interval(confidence)


@pytest.mark.slow
@pytest.mark.parametrize("bids", some([[10, 10, 500], [10] * 30 + [500], [50] * 12], 2))
def test_prices_are_chosen_as_often_as_the_law_says(bids):
    auction = Pricing((10, 50, 500), 6)
    bits, count = ReplayBits(f"price {bids}".encode()), enough(20_000)
    drawn = Counter(auction.release(bids, bits) for _ in range(count))

    def p_value(factor):
        weights = [math.exp(float(factor) * revenue) for revenue in auction.revenues(bids)]
        expected = [count * weight / math.fsum(weights) for weight in weights]
        assert min(expected) > (300 if FULL else 50)
        gaps = [(drawn[price] - e) ** 2 / e for price, e in zip(auction.prices, expected, strict=True)]
        return float(arb(sum(gaps) / 2).gamma_upper(1, regularized=1))

    # With revenues spread by some 400 and factor 6/1000, a tenth of it moves log weights by 0.24: above 100.
    assert p_value(auction.factor) > ALARM
    assert p_value(auction.factor * (1 + OFF)) < ALARM
    assert p_value(auction.factor * (1 - OFF)) < ALARM


def test_large_bids_lose_nothing():
    auction = Pricing((2**60, 2**60 + 1), 1)
    assert auction.revenues([2**60, 2**60 + 1, 10**40]) == [3 * 2**60, 2 * (2**60 + 1)]
    assert auction.release([2**60] * 10**4, ReplayBits(b"large")) == 2**60


def test_prices_are_a_set():
    assert Pricing((5, 3, 5), 1) == Pricing((3, 5), 1)


@settings(deadline=None)
@given(st.sampled_from([0, -1, math.nan, math.inf, "1", True, None, 1j]))
def test_bad_prices_of_privacy(value):
    with pytest.raises(ParameterError, match="epsilon: "):
        Pricing.calibrated(value, [1])
    with pytest.raises(ParameterError, match="confidence: "):
        Pricing((1,), 1).error(value)


@settings(deadline=None)
@given(st.sampled_from([[], [0], [-1, 2], [1.0], [True], [math.nan], "12", None, ["1"], [None]]))
def test_bad_prices_of_goods(prices):
    with pytest.raises(ParameterError, match="prices: "):
        Pricing.calibrated(1, prices)


@settings(deadline=None)
@given(st.sampled_from([math.nan, 1.0, True, "1", None, 1j]))
def test_bad_bids(bid):
    with pytest.raises(ParameterError, match="valuations: "):
        Pricing((1,), 1).release([1, bid], ReplayBits(b""))


def test_bad_relation():
    with pytest.raises(ParameterError, match="neighbors: "):
        Pricing((1,), 1, "replace")


@pytest.mark.parametrize("epsilon", [Fraction(1, 10), Fraction(1), Fraction(5)], ids=str)
def test_lying_gains_little(epsilon):
    # All bids of two others, all valuations and all lies in 0..4: at most (e^epsilon - 1) of the honest surplus
    auction = Pricing(range(1, 5), epsilon)
    largest = 0.0
    with working_precision(128):
        most = to_interval(epsilon).exp() - 1
        for others in combinations_with_replacement(range(5), 2):
            for valuation in range(1, 5):
                honest = auction.expected_surplus([*others, valuation], valuation)
                for lie in range(5):
                    gain = auction.expected_surplus([*others, lie], valuation) - honest
                    assert gain <= most * honest + arb(2) ** -100
                    largest = max(largest, float(gain))
    # and some gain: with enough others, to bid less makes the price lower
    assert largest > 0


def test_lying_pays_where_the_best_price_is_taken():
    # One bidder who would pay 3, and prices 1, 2, 3: the truth gets a price of 3 and nothing, a bid of 1 a price of 1
    def take_best(bids):
        revenues = {price: price * sum(bid >= price for bid in bids) for price in (1, 2, 3)}
        return max(revenues, key=revenues.get)

    assert take_best([3]) == 3
    assert take_best([1]) == 1  # a surplus of 2 in place of 0: more than any factor
    auction = Pricing([1, 2, 3], 1)
    honest, lie = (float(auction.expected_surplus([bid], 3)) for bid in (3, 1))
    assert honest > 0.8
    assert 0 < lie - honest < (math.e - 1) * honest


def test_a_bid_that_binds_gains_no_more():
    # Who bids below the price may not buy, who bids above v has to: at each price that is at most max(0, v - price).
    for valuation in range(6):
        for lie in range(6):
            for price in range(1, 6):
                assert (lie >= price) * (valuation - price) <= max(0, valuation - price)
