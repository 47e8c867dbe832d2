"""The evidence of guesses about many canaries of one training run.

>>> one_run_p_value(1000, 100, 90, Claim.epsilon(1)) < 3e-5  # 90 of 100 guesses are right, where 73.1 are expected
True
>>> round(one_run_lower_bound(1000, 100, 90, Claim.epsilon(1), miss=0.05), 2)
1.63
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tacit.audit.claim import Claim

LeastRate = Callable[[float], float]

_ABOVE = 1 + 1e-9  # above what doubles may be off by, relative
_BELOW = 1 - 1e-11  # below what long sums of doubles may be off by
_TINY = 1e-300  # above what they may lose at all
_HALVINGS = 32
_WIDER = 10  # more of them, for logarithms down to that of the least double
_LARGEST = 700.0  # a parameter: above, exp(-epsilon) is lost
_ORDERS = np.linspace(0.0, 12.0, 241)  # standard deviations at which a claim of rho is taken as (epsilon, delta)


def one_run_p_value(canaries: int, guesses: int, right: int, claim: Claim, *, value: float | None = None) -> float:
    """Bound the probability of so many right guesses about the coins of canaries, if the claim is true.

    m = `canaries` fair coins decide which canaries are in, one run keeps the claim for each coin, and someone who sees
    its output guesses exactly r = `guesses` of the coins. The result is the smaller of two bounds B(v) on the
    probability that at least v = `right` guesses are right: `bound_by_binomial` for a claim of epsilon without a
    delta, and `bound_by_recursion` for all claims. `value` takes the place of the claim's parameter.

    **As a p-value.** Whatever B does in v, P[B(right) <= a] <= a: with v the least number for which B(v) <= a, the
    event implies right >= v, which has probability at most B(v). Both bounds are fixed numbers for each v, so the
    smaller one needs no correction.
    """
    at = min(claim.value if value is None else value, _LARGEST)
    found = bound_by_recursion(canaries, guesses, right, claim, at)
    return min(found, bound_by_binomial(guesses, right, at)) if _is_pure(claim) else found


def one_run_lower_bound(canaries: int, guesses: int, right: int, claim: Claim, miss: float) -> float:
    """Return a parameter that so many right guesses refute at the level `miss`, at the claim's delta; 0 if none is.

    **Theorem.** If a run keeps the claim with a value p of its parameter, the result is above p with probability at
    most `miss`.

    **Proof.** Then it keeps the claim for each value e >= p, with a bound B_e on the probability of v right guesses.
    Where the result is above p, some e >= p has B_e(right) <= miss. Let v(e) be the least number for which
    B_e(v) <= miss, and v the least of these, which is attained: the event implies right >= v, of probability at most
    B_e(v) <= miss. So B need not be monotone, and any e that is found is a bound: the search by halving keeps one.
    """

    def is_refuted(value: float) -> bool:
        if is_impossible(canaries, guesses, right, miss, _least_rate(claim, value)):
            return True
        return _is_pure(claim) and bound_by_binomial(guesses, right, value) <= miss

    low = claim.value if is_refuted(claim.value) else 0.0
    if low == 0.0 and not is_refuted(low):
        return 0.0
    high = max(1.0, 2 * low)
    while high < _LARGEST and is_refuted(high):
        low, high = high, 2 * high
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if is_refuted(middle) else (low, middle)
    return low


def bound_by_binomial(guesses: int, right: int, epsilon: float) -> float:
    """Bound the probability of v = `right` or more right guesses, under epsilon-DP.

    **Theorem** (Steinke, Nasr, Jagielski 2023). With W binomial(r, e^epsilon/(1 + e^epsilon)) for r = `guesses`, at
    least v guesses are right with probability at most P[W >= v]. Randomized response meets it with equality.

    **Proof.** Given the output and all earlier coins, the odds of a coin are within a factor e^epsilon of fair. So each
    guess is right with probability at most e^epsilon/(1 + e^epsilon), whatever came before, and the number of right
    guesses is stochastically below W. What is not guessed adds nothing.

    **Rounding.** The result is a billionth of itself too large: binomial probabilities of scipy are off by far less,
    and the rate q as a double moves P[W >= v] by at most v/q times its own rounding.
    """
    from scipy.stats import binom

    if right <= 0:
        return 1.0
    return min(1.0, float(binom.sf(right - 1, guesses, 1 / (1 + math.exp(-epsilon)))) * _ABOVE + _TINY)


def bound_by_recursion(canaries: int, guesses: int, right: int, claim: Claim, value: float) -> float:
    """Return the largest probability of `right` or more right guesses that `is_impossible` does not exclude."""
    if right <= 0:
        return 1.0
    least = _least_rate(claim, value)
    low, high = math.log(_TINY), 0.0
    if not is_impossible(canaries, guesses, right, 1.0, least):
        return 1.0
    for _ in range(_HALVINGS + _WIDER):
        middle = (low + high) / 2
        impossible = is_impossible(canaries, guesses, right, math.exp(middle), least)
        low, high = (low, middle) if impossible else (middle, high)
    return min(1.0, math.exp(high) * _ABOVE)


def is_impossible(canaries: int, guesses: int, right: int, probability: float, least: LeastRate) -> bool:
    """Whether no run for which `least` holds gives v = `right` or more right guesses with this probability.

    `least(y)` is the least probability, under one coin, of an event whose probability under the other coin is y.

    **Theorem** (after Mahloujifar, Melis, Chaudhuri 2024). Let V of exactly r guesses about m fair coins be right, and
    for c = 1, ..., r let R(c) = E[V; V >= c]/m and N(c) = E[r - V; V >= c]/m. Then N(c - 1) >= least(R(c)).

    **Proof.** Fix a coin i and the values s of all coins. Let A be the outputs whose guess of i is right for s, with c
    or more right guesses in all. Where coin i is turned over, A are the outputs whose guess of i is wrong, with c - 1
    or more right guesses in all. The two runs are neighbors, so P'[A] >= least(P[A]). Take the mean over s and i: both
    sides of the turned coin are uniform, and `least` is convex, so Jensen's inequality gives the claim.

    **The recursion.** Let Q(c) = P[V >= c], so m R(c) = c Q(c) + Q(c + 1) + ... + Q(r), and m N(c) = r Q(c) - m R(c).
    Begin with all of the probability at v. At each c from v down, put the least probability at c - 1 with which the
    inequality holds. By induction each Q(c) of the recursion is at most that of any run with the same Q(v):
    (r - c + 1) Q(c - 1) >= m least(R(c)) + Q(c) + ... + Q(r), which grows with each Q, as R(c) does. Where nothing
    has to be put once, nothing has to be put below. So if the total is above 1, there is no such run. A smaller
    probability puts less everywhere.

    **Rounding.** `least` is taken at a little less than R(c) and lowered by a billionth of itself, and the total has to
    be above 1 by as much: sums of so many positive terms are off by less.
    """
    total = probability
    rights, wrongs = right * probability, (guesses - right) * probability  # m R(c), m N(c)
    for count in range(right, 0, -1):
        lacking = canaries * least(rights / canaries * _BELOW) / _ABOVE - wrongs
        if lacking <= 0:
            return False
        put = lacking / (guesses - count + 1)
        total += put
        if total > _ABOVE:
            return True
        rights += put * (count - 1)
        wrongs += lacking
    return False


def _is_pure(claim: Claim) -> bool:
    return claim.name == "epsilon" and not claim.delta


def _least_rate(claim: Claim, value: float) -> LeastRate:
    """Return the inverse of the most that the claim allows for the probability of an event under a neighbor.

    epsilon: y <= e^epsilon x + delta and 1 - x <= e^epsilon (1 - y) + delta, solved for x. mu: Phi(Phi^-1(y) - mu).
    rho: the largest e^-epsilon (y - delta) over some epsilons of rho + s sqrt(2 rho), where delta is
    exp(-(epsilon - rho)^2/(4 rho)) (Bun, Steinke 2016): each is a true claim.
    """
    if claim.name == "epsilon":
        shrink, stretch, delta = math.exp(-value), math.exp(min(value, _LARGEST)), claim.delta
        return lambda y: max(0.0, shrink * (y - delta), 1 - delta - stretch * (1 - y))
    if claim.name == "mu":
        from scipy.special import ndtr, ndtri

        return lambda y: 1.0 if y >= 1 else float(ndtr(ndtri(y) - value))
    shrinks = np.exp(-(value + _ORDERS * math.sqrt(2 * value)))
    deltas = np.exp(-(_ORDERS**2) / 2)
    return lambda y: max(0.0, float(np.max(shrinks * (y - deltas))))
