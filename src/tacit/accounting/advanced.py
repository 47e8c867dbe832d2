"""Composition theorems that need only the (epsilon, delta) of each part: advanced and optimal.

All of it is rounded up: `docs/proofs/accounting.md`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting.accountant import evaluate_loss, flatten_loss
from tacit.accounting.basic import BasicAccountant
from tacit.accounting.rounding import ball_above, double_above, double_below
from tacit.arithmetic import to_interval, working_precision
from tacit.privacy.loss import ApproximateDp, Compose, Loss, Repeat

if TYPE_CHECKING:
    from flint import arb

_MANY = 10**9  # uses, beyond which the sum is taken on the grid too
_BITS = 192
_SMALL = 1e-40  # of the largest term: what is left out beyond it is bounded by a geometric sum


@dataclass(frozen=True)
class RepeatedMechanism:
    """So many uses of an (epsilon, delta)-DP mechanism."""

    epsilon: Fraction
    delta: Fraction
    times: int


def collect_mechanisms(loss: Loss) -> list[RepeatedMechanism] | None:
    """The loss as uses of (epsilon, delta)-DP mechanisms, or None where one has no epsilon."""
    found: dict[tuple[Fraction, Fraction], int] = {}
    for term, times in flatten_loss(loss).items():
        spent = evaluate_loss(term, BasicAccountant())
        if spent.epsilon is None:
            return None
        found[spent.epsilon, spent.delta] = found.get((spent.epsilon, spent.delta), 0) + times
    return [RepeatedMechanism(*key, times) for key, times in found.items()]


def advanced_epsilon(loss: Loss, delta: Fraction) -> float:
    """Advanced composition.

    **Theorem** (Dwork, Rothblum, Vadhan 2010; factor 2 under the root). Uses of (e_i, d_i) are, for every d' > 0,
    (sqrt(2 ln(1/d') sum e_i^2) + sum e_i (e^{e_i} - 1), d' + sum d_i)-DP, adaptively.
    """
    found = collect_mechanisms(loss)
    if found is None:
        return math.inf
    room = delta - _infinite_epsilon(found)
    if not any(part.epsilon for part in found):
        return 0.0 if room >= 0 else math.inf
    if room <= 0 or any(part.epsilon > 700 for part in found):
        return math.inf
    with working_precision(_BITS):
        squares, drift = _sums(found)
        return ball_above((-2 * to_interval(room).log() * squares).sqrt() + drift)


def advanced_delta(loss: Loss, epsilon: Fraction) -> float:
    """The same theorem, solved for delta."""
    found = collect_mechanisms(loss)
    if found is None:
        return 1.0
    lost = _infinite_epsilon(found)
    if not any(part.epsilon for part in found):
        return min(1.0, double_above(lost))
    if any(part.epsilon > 700 for part in found):
        return 1.0
    with working_precision(_BITS):
        squares, drift = _sums(found)
        left = to_interval(epsilon) - drift
        return min(1.0, ball_above(to_interval(lost) + (-(left**2) / (2 * squares)).exp())) if left > 0 else 1.0


def _infinite_epsilon(found: Sequence[RepeatedMechanism]) -> Fraction:
    return sum((part.times * part.delta for part in found), Fraction(0))


def _sums(found: Sequence[RepeatedMechanism]) -> tuple[arb, arb]:
    squares = to_interval(sum((part.times * part.epsilon**2 for part in found), Fraction(0)))
    return squares, sum(
        (to_interval(part.times * part.epsilon) * to_interval(part.epsilon).expm1() for part in found),
        to_interval(Fraction(0)),
    )


def optimal_delta(loss: Loss, epsilon: Fraction) -> float:
    """The least delta that holds for all mechanisms with these (epsilon, delta).

    **Theorem** (Kairouz, Oh, Viswanath 2015, theorem 3.3; Murtagh and Vadhan 2016 for different parts). The worst
    mechanism loses everything with probability d and is randomized response otherwise, so for k uses
    delta(x) = 1 - (1-d)^k + (1-d)^k sum_l C(k,l) max(0, e^{(k-l) e} - e^{x + l e})/(1 + e^e)^k. For different parts the
    same distribution is composed on a grid (`pld`), from above.
    """
    kinds = _kinds(loss)
    if kinds is None:
        return 1.0
    if not kinds:
        return 0.0
    if len(kinds) == 1 and kinds[0].times <= _MANY:
        return _equal(kinds[0], double_below(epsilon))
    from tacit.accounting import pld

    return pld.delta(_responses(kinds), double_below(epsilon))


def optimal_epsilon(loss: Loss, delta: Fraction) -> float:
    """The least epsilon that holds for all mechanisms with these (epsilon, delta)."""
    kinds = _kinds(loss)
    if kinds is None:
        return math.inf
    if len(kinds) > 1 or (kinds and kinds[0].times > _MANY):
        from tacit.accounting import pld

        return pld.epsilon(_responses(kinds), double_below(delta))
    if not kinds or optimal_delta(loss, Fraction(0)) <= delta:
        return 0.0
    high = double_above(kinds[0].epsilon * kinds[0].times)
    if high == math.inf or _equal(kinds[0], high) > delta:
        return math.inf
    from scipy.optimize import brentq

    goal = math.log(double_above(delta))
    near = brentq(
        lambda x: math.log(max(_equal(kinds[0], x), math.ulp(0.0))) - goal, 0.0, high, xtol=1e-300, rtol=1e-13
    )
    tries = (near * (1 + 2.0**-power) for power in range(44, 0, -4))
    return next((x for x in tries if x < high and _equal(kinds[0], x) <= delta), high)  # what is returned is proven


def _kinds(loss: Loss) -> list[RepeatedMechanism] | None:
    found = collect_mechanisms(loss)
    return None if found is None else [part for part in found if part.epsilon or part.delta]


def _responses(kinds: Sequence[RepeatedMechanism]) -> Loss:
    return Compose(tuple(Repeat(ApproximateDp(part.epsilon, part.delta), part.times) for part in kinds))


def _equal(part: RepeatedMechanism, epsilon: float) -> float:
    """delta(epsilon) of k equal uses, from above.

    With s = 1/(1 + e^e), the sum is that of b_l (1 - e^{-gap_l}) over the l with gap_l = (k - 2l) e - x > 0, where b_l
    is the binomial probability of l among k at s. One b_l is computed in interval arithmetic; the others follow from it
    by their ratios, (l/(k - l + 1)) e^e from l to l - 1, in doubles: with n ratios the relative error is below
    n 2^-50. Below the first l the ratios only fall, so what is left out is at most a geometric sum.
    """
    import numpy as np

    times, each = part.times, double_above(part.epsilon)
    with working_precision(_BITS + 2 * times.bit_length()):
        kept = times * (-to_interval(part.delta)).log1p() if part.delta < 1 else None
        alone = to_interval(Fraction(1)) if kept is None else -kept.expm1()
        most = (
            math.ceil((times - Fraction(epsilon) / Fraction(each)) / 2) - 1 if each else -1
        )  # the largest l with a gap
        if kept is None or most < 0:
            return min(1.0, ball_above(alone))
        rate = 1 / (1 + to_interval(Fraction(each)).exp())
        mode = int((times * rate).mid().floor().unique_fmpz() or 0)
        top = min(most, mode, times)
        reach = 14 * math.isqrt(int(times * min(0.25, math.exp(-min(each, 700.0)))) + 1) + 100
        first, last = max(0, top - reach), min(most, top + reach)
        while True:  # until the ratio at the first falls and its term is small, both of which a few more terms give
            index = np.arange(first, last + 1, dtype=np.float64)
            logs = np.concatenate([[0.0], np.cumsum(np.log((times - index[:-1]) / index[1:]) - each)])
            near = logs - logs[top - first]
            if (first == 0 or near[0] < math.log(_SMALL)) and (last == most or near[-1] < math.log(_SMALL)):
                break
            reach *= 2
            first, last = max(0, top - reach), min(most, top + reach)
        up = np.cumprod((times - index[top - first : -1]) / index[top - first + 1 :] * math.exp(-each))
        down = np.cumprod(
            (index[top - first : 0 : -1] / (times - index[top - first : 0 : -1] + 1)) * math.exp(min(each, 700.0))
        )
        terms = np.concatenate([down[::-1], [1.0], up])
        exact = Fraction(times - 2 * last) * Fraction(each) - Fraction(epsilon)  # the smallest gap
        gap = double_above(exact) + (index[-1] - index) * (2 * each * (1 + 2.0**-50))
        total = float(terms @ -np.expm1(-gap * (1 + 2.0**-50)))
        rest = 0.0
        if first > 0:
            ratio = first / (times - first + 1) * math.exp(min(each, 700.0))
            rest += float(terms[0]) * ratio / (1 - ratio) if ratio < 1 else math.inf
        if last < most:
            ratio = (times - last) / (last + 1) * math.exp(-each)
            rest += float(terms[-1]) * ratio / (1 - ratio) if ratio < 1 else math.inf
        error = terms.size * 2.0**-49 + each * terms.size * 2.0**-52 + 2.0**-48
        if not math.isfinite(total + rest):
            return 1.0
        choose = (to_interval(Fraction(times + 1)).lgamma() - to_interval(Fraction(top + 1)).lgamma()) - to_interval(
            Fraction(times - top + 1)
        ).lgamma()
        log = choose + top * rate.log() + (times - top) * (-rate).log1p()
        return min(
            1.0,
            ball_above(
                alone + (kept + log).exp() * to_interval(Fraction(total + rest)) * to_interval(Fraction(1 + error))
            ),
        )
