"""Composition theorems that need only the (epsilon, delta) of each part: advanced and optimal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tacit.accounting.fold import flatten, fold
from tacit.accounting.pure import Basic
from tacit.accounting.rounding import MARGIN, at_least
from tacit.privacy.loss import Approximate, Compose, Loss, Repeat

_MANY = 200_000  # uses, beyond which the sum is taken on the grid too


@dataclass(frozen=True)
class Part:
    """So many uses of an (epsilon, delta)-DP mechanism."""

    epsilon: Fraction
    delta: Fraction
    times: int


def parts(loss: Loss) -> list[Part] | None:
    """The loss as uses of (epsilon, delta)-DP mechanisms, or None where one has no epsilon."""
    found: dict[tuple[Fraction, Fraction], int] = {}
    for term, times in flatten(loss).items():
        spent = fold(term, Basic())
        if spent.epsilon is None:
            return None
        found[spent.epsilon, spent.delta] = found.get((spent.epsilon, spent.delta), 0) + times
    return [Part(*key, times) for key, times in found.items()]


def advanced_epsilon(loss: Loss, delta: float) -> float:
    """Advanced composition.

    **Theorem** (Dwork, Rothblum, Vadhan 2010; factor 2 under the root). Uses of (e_i, d_i) are, for every d' > 0,
    (sqrt(2 ln(1/d') sum e_i^2) + sum e_i (e^{e_i} - 1), d' + sum d_i)-DP, adaptively.
    """
    found = parts(loss)
    if found is None:
        return math.inf
    room = delta * (1 - MARGIN) - math.fsum(part.times * float(part.delta) for part in found)
    if not any(part.epsilon for part in found):
        return 0.0 if room >= -delta * 2 * MARGIN else math.inf
    if room <= 0 or any(part.epsilon > 700 for part in found):
        return math.inf
    squares, drift = _sums(found)
    return at_least(math.sqrt(-2 * math.log(room) * squares) + drift)


def advanced_delta(loss: Loss, epsilon: float) -> float:
    """The same theorem, solved for delta."""
    found = parts(loss)
    if found is None:
        return 1.0
    lost = math.fsum(part.times * float(part.delta) for part in found)
    if not any(part.epsilon for part in found):
        return min(1.0, at_least(lost))
    if any(part.epsilon > 700 for part in found):
        return 1.0
    squares, drift = _sums(found)
    left = epsilon - drift
    return min(1.0, at_least(lost + math.exp(-(left**2) / (2 * squares) * (1 - MARGIN)))) if left > 0 else 1.0


def _sums(found: Sequence[Part]) -> tuple[float, float]:
    squares = math.fsum(part.times * float(part.epsilon) ** 2 for part in found)
    return squares, math.fsum(part.times * float(part.epsilon) * math.expm1(float(part.epsilon)) for part in found)


def optimal_delta(loss: Loss, epsilon: float) -> float:
    """The least delta that holds for all mechanisms with these (epsilon, delta).

    **Theorem** (Kairouz, Oh, Viswanath 2015, theorem 3.3; Murtagh and Vadhan 2016 for different parts). The worst
    mechanism loses everything with probability d and is randomized response otherwise, so for k uses
    delta(x) = 1 - (1-d)^k + (1-d)^k sum_l C(k,l) max(0, e^{(k-l) e} - e^{x + l e})/(1 + e^e)^k. The sum is taken in
    logarithms. For different parts the same law is composed on a grid (`pld`), from above.
    """
    found = parts(loss)
    if found is None:
        return 1.0
    kinds = [part for part in found if part.epsilon or part.delta]
    if not kinds:
        return 0.0
    if len(kinds) == 1 and kinds[0].times <= _MANY:
        return at_least(_equal(float(kinds[0].epsilon), float(kinds[0].delta), kinds[0].times, epsilon))
    from tacit.accounting import pld

    return pld.delta(_responses(kinds), epsilon)


def optimal_epsilon(loss: Loss, delta: float) -> float:
    """The least epsilon that holds for all mechanisms with these (epsilon, delta)."""
    found = parts(loss)
    if found is None:
        return math.inf
    kinds = [part for part in found if part.epsilon or part.delta]
    if len(kinds) > 1 or (kinds and kinds[0].times > _MANY):
        from tacit.accounting import pld

        return pld.epsilon(_responses(kinds), delta)
    if not kinds or optimal_delta(loss, 0.0) <= delta:
        return 0.0
    each, lost, times = float(kinds[0].epsilon), float(kinds[0].delta), kinds[0].times
    low, high = 0.0, each * times
    if at_least(_equal(each, lost, times, high)) > delta:
        return math.inf
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if at_least(_equal(each, lost, times, middle)) > delta else (low, middle)
        if high - low <= 1e-13 * high:
            break
    return at_least(high)


def _responses(kinds: Sequence[Part]) -> Loss:
    return Compose(tuple(Repeat(Approximate(part.epsilon, part.delta), part.times) for part in kinds))


def _equal(each: float, lost: float, times: int, epsilon: float) -> float:
    """delta(epsilon) of k equal uses."""
    import numpy as np
    from scipy.special import gammaln, logsumexp

    kept = times * math.log1p(-lost) if lost < 1 else -math.inf
    alone = -math.expm1(kept)
    most = math.ceil(min(times, (times - epsilon / each) / 2 + 1)) if each else 0
    wrong = np.arange(max(0, most + 1), dtype=np.float64)
    gap = (times - 2 * wrong) * each - epsilon
    wrong, gap = wrong[gap > 0], gap[gap > 0]
    if not wrong.size:
        return alone
    choose = gammaln(times + 1.0) - gammaln(wrong + 1) - gammaln(times - wrong + 1)
    logs = choose + (times - wrong) * each - times * np.logaddexp(0.0, each) + np.log(-np.expm1(-gap))
    return alone + math.exp(kept + float(logsumexp(logs)))
