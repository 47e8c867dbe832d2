"""The bounds of one-run audits: above the truth by exact enumeration, and close to it."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.stats import norm
from tests.support.counts import FULL, some

from tacit.audit.claim import Claim
from tacit.audit.one_run import bound_by_binomial, bound_by_recursion, one_run_lower_bound, one_run_p_value

pytestmark = pytest.mark.slow


def most_likely(coins, guesses, right, lines):
    """The largest probability of `right` or more right guesses, over all mechanisms on so many coins.

    A linear program over the probability of each output for each input. `lines` are pairs (slope, delta): for all
    neighbors and events, P(T) <= slope Q(T) + delta. The excess of each output is a variable of its own.
    """
    inputs = list(itertools.product((0, 1), repeat=coins))
    outputs = [
        dict(zip(chosen, values, strict=True))
        for chosen in itertools.combinations(range(coins), guesses)
        for values in itertools.product((0, 1), repeat=guesses)
    ]
    pairs = [(a, b) for a, b in itertools.permutations(range(len(inputs)), 2) if hamming(inputs[a], inputs[b]) == 1]
    cells = len(inputs) * len(outputs)
    excess = len(pairs) * len(lines) * len(outputs)
    costs = np.zeros(cells + excess)
    for place, (values, output) in enumerate(itertools.product(inputs, outputs)):
        hits = sum(values[coin] == guess for coin, guess in output.items())
        costs[place] = -(hits >= right) / len(inputs)
    rows, most = [], []
    for number, ((a, b), (slope, delta)) in enumerate(itertools.product(pairs, lines)):
        total = np.zeros(cells + excess)
        for output in range(len(outputs)):
            row, own = np.zeros(cells + excess), cells + number * len(outputs) + output
            row[a * len(outputs) + output], row[b * len(outputs) + output], row[own] = 1, -slope, -1
            total[own] = 1
            rows.append(row)
            most.append(0.0)
        rows.append(total)
        most.append(delta)
    ones = np.zeros((len(inputs), cells + excess))
    for place in range(len(inputs)):
        ones[place, place * len(outputs) : (place + 1) * len(outputs)] = 1
    solved = linprog(costs, np.array(rows), most, ones, np.ones(len(inputs)), bounds=(0, None), method="highs")
    assert solved.status == 0
    return -solved.fun


def hamming(one, other):
    return sum(a != b for a, b in zip(one, other, strict=True))


CASES = [(2, 1, 1), (2, 2, 2), (2, 2, 1), (3, 2, 2), (3, 3, 3), (3, 3, 2), (3, 1, 1)]


@pytest.mark.parametrize("delta", [0.0, 0.05, 0.2])
@pytest.mark.parametrize("shape", some(CASES, 2), ids=str)
def test_no_mechanism_on_few_coins_does_better(shape, delta):
    # all mechanisms on up to three coins: the most likely one is found exactly
    for epsilon in (0.5, 1.5):
        truth = most_likely(*shape, [(math.exp(epsilon), delta)])
        claim = Claim.epsilon(epsilon, delta)
        assert one_run_p_value(*shape, claim) >= truth - 1e-9
        assert bound_by_recursion(*shape, claim, epsilon) >= truth - 1e-9
        # the bounds are met, by randomized response and where all guesses are right: a larger one would be noticed too
        if delta == 0 or shape[1] == shape[2]:
            assert one_run_p_value(*shape, claim) == pytest.approx(truth, abs=1e-7)


def test_the_published_delta_term_is_not_used_because_it_can_be_exceeded():
    # Two coins, both guessed; a, b, c: both right, one right, none. Turning over one coin swaps a with one b, and the
    # other b with c. At epsilon 1.5: a = e^1.5 b, and b - e^1.5 c = 0.05, so this is (1.5, 0.05)-DP.
    odds, delta = math.exp(1.5), 0.05
    none = (1 - delta * (odds + 2)) / (odds**2 + 2 * odds + 1)
    one = odds * none + delta
    both = odds * one
    assert both + 2 * one + none == pytest.approx(1)
    here, there = (both, one, one, none), (one, none, both, one)
    events = itertools.product((0, 1), repeat=4)
    assert max(np.dot(event, here) - odds * np.dot(event, there) for event in events) == pytest.approx(delta)
    # f(v) + 2 m delta max (f(v - i) - f(v))/i for m = r = 2 and v = 1, with f(0) = 1 and f(1) = 1 - (1 - q)^2
    miss = (1 / (1 + odds)) ** 2
    assert 1 - none > 1 - miss + 2 * 2 * delta * miss + 0.004
    assert 1 - none <= one_run_p_value(2, 2, 1, Claim.epsilon(1.5, delta))


@pytest.mark.parametrize("shape", some(CASES, 2, first=1), ids=str)
def test_no_gaussian_mechanism_on_few_coins_does_better(shape):
    # mu = 1 as lines of its trade-off curve; the Gaussian mechanism itself keeps them all
    epsilons = (-2.0, -1.0, 0.0, 1.0, 2.0)
    lines = [(math.exp(e), norm.cdf(-e + 0.5) - math.exp(e) * norm.cdf(-e - 0.5)) for e in epsilons]
    truth = most_likely(*shape, lines)
    bound = one_run_p_value(*shape, Claim.mu(1))
    # a Gaussian for each coin, guessed by its sign, is one such mechanism
    guess = norm.cdf(0.5)
    played = [comb(shape[1], k) * guess**k * (1 - guess) ** (shape[1] - k) for k in range(shape[2], shape[1] + 1)]
    assert sum(played) <= bound + 1e-9
    if shape[1] == shape[2]:
        assert bound <= truth + 1e-7  # the lines allow more than their curve does


def test_the_recursion_is_the_best_that_its_inequalities_give():
    # the same by a linear program over the distribution of the number of right guesses
    coins, guesses, right, epsilon, delta = 9, 6, 5, 0.7, 0.03
    rows, most = [], []
    for least in range(1, guesses + 1):
        for slope, offset in ((math.exp(-epsilon), -delta * math.exp(-epsilon)), (math.exp(epsilon), None)):
            # wrong guesses with `least - 1` or more right are at least slope times right ones with `least` or more
            row = np.zeros(guesses + 1)
            row[least:] += slope * np.arange(least, guesses + 1) / coins
            row[least - 1 :] -= (guesses - np.arange(least - 1, guesses + 1)) / coins
            rows.append(row)
            most.append(-offset if offset is not None else -(1 - delta - math.exp(epsilon)))
    costs = -(np.arange(guesses + 1) >= right).astype(float)
    solved = linprog(costs, np.array(rows), most, np.ones((1, guesses + 1)), [1.0], bounds=(0, None))
    assert bound_by_recursion(coins, guesses, right, Claim.epsilon(epsilon, delta), epsilon) == pytest.approx(
        -solved.fun, rel=1e-6
    )


@pytest.mark.parametrize("right", [0, 1, 60, 150, 199, 200])
def test_the_binomial_bound_is_never_below_the_tail_in_fractions(right):
    # at epsilon = ln 3 each guess is right with probability 3/4
    exact = sum(Fraction(comb(200, k) * 3**k, 4**200) for k in range(right, 201))
    found = bound_by_binomial(200, right, math.log(3))
    assert found >= exact
    assert found <= min(float(exact) * (1 + 1e-8) + 1e-290, 1)
    # nor is the recursion below the whole bound, or far above it where guesses are mostly right
    recursive = bound_by_recursion(200, 200, right, Claim.epsilon(1), math.log(3))
    assert recursive >= exact
    assert right < 160 or recursive < 1.2 * exact


@pytest.mark.parametrize(("miss", "epsilon"), some(itertools.product([0.05, 0.01], [0.3, 1.0, 3.0]), 2))
def test_a_true_claim_is_refuted_no_more_often_than_stated(miss, epsilon):
    # randomized response meets the claim with equality: the number of right guesses is binomial, so sum it up
    guesses = 120 if FULL else 60
    rate = math.exp(epsilon) / (1 + math.exp(epsilon))
    chances = [comb(guesses, k) * rate**k * (1 - rate) ** (guesses - k) for k in range(guesses + 1)]

    def alarms(claimed):
        refuted = [one_run_p_value(guesses, guesses, k, Claim.epsilon(claimed)) <= miss for k in range(guesses + 1)]
        for k in some(range(guesses + 1), 3):
            low = one_run_lower_bound(guesses, guesses, k, Claim.epsilon(claimed), miss)
            assert refuted[k] == (low >= claimed and k > 0) or claimed == 0
        return sum(chance for chance, wrong in zip(chances, refuted, strict=True) if wrong)

    assert alarms(epsilon) <= miss
    assert alarms(0.8 * epsilon) > alarms(epsilon)
    if epsilon == 1.0:
        # the next larger rejection region would be too large: the bound gives nothing away
        least = min(k for k in range(guesses + 1) if one_run_p_value(guesses, guesses, k, Claim.epsilon(1)) <= miss)
        assert sum(chances[least - 1 :]) > miss


@pytest.mark.parametrize("together", [False, True])
def test_a_delta_that_gives_coins_away_is_covered(together):
    # with probability delta all coins are told, or each coin for itself: both are (epsilon, delta)-DP
    canaries, epsilon, delta, miss = 80, 1.0, 0.002, 0.05
    rate = math.exp(epsilon) / (1 + math.exp(epsilon))
    each = rate if together else (1 - delta) * rate + delta
    chances = np.array([comb(canaries, k) * each**k * (1 - each) ** (canaries - k) for k in range(canaries + 1)])
    if together:
        chances *= 1 - delta
        chances[canaries] += delta
    claim = Claim.epsilon(epsilon, delta)
    refuted = np.array([one_run_p_value(canaries, canaries, k, claim) <= miss for k in range(canaries + 1)])
    assert chances @ refuted <= miss
    assert refuted[canaries]


def test_claims_of_mu_and_rho_hold_for_a_gaussian():
    # one Gaussian of mu = 1 for each coin, guessed by its sign: rho is 1/2
    canaries, miss = 200, 0.05
    rate = norm.cdf(0.5)
    chances = np.array([comb(canaries, k) * rate**k * (1 - rate) ** (canaries - k) for k in range(canaries + 1)])
    for claim, smaller in ((Claim.mu(1), Claim.mu(0.2)), (Claim.rho(0.5), Claim.rho(0.002))):
        counts = range(100, canaries + 1, 4)  # fewer are refuted by none
        refuted = [one_run_p_value(canaries, canaries, k, claim) <= miss for k in counts]
        caught = [one_run_p_value(canaries, canaries, k, smaller) <= miss for k in counts]
        assert refuted == sorted(refuted)
        assert caught == sorted(caught)
        # from the last count that is not refuted on, to be safe; from the first that is caught on
        assert chances[counts[refuted.index(True) - 1] :].sum() <= miss
        assert chances[counts[caught.index(True)] :].sum() > 0.3


def test_a_bound_falls_with_the_level_and_grows_with_right_guesses():
    lowers = [one_run_lower_bound(400, 200, right, Claim.epsilon(1, 1e-6), 0.05) for right in (100, 130, 160, 200)]
    assert lowers == sorted(lowers)
    assert lowers[0] == 0
    assert one_run_lower_bound(400, 200, 160, Claim.epsilon(1, 1e-6), 0.01) < lowers[2]
    # all of 200 right: q^200 = 0.05 at q = 0.98513, epsilon 4.193
    assert one_run_lower_bound(200, 200, 200, Claim.epsilon(1), 0.05) == pytest.approx(4.193, abs=1e-3)
