"""What a guarantee means to one person.

>>> game_error(1.0)
0.2689414213699951
>>> shown_error(100_000)
'10^-43429.4'
"""

from __future__ import annotations

import math
from typing import Any

from tacit.arithmetic import rational, within
from tacit.errors import ParameterError

_LARGEST_EXPONENT = 700.0


def game_error(epsilon: float, delta: float = 0.0) -> float:
    """The least error of anyone who guesses which of two neighboring databases was used.

    **Theorem.** Whoever knows both databases, equally likely, and the mechanism, errs with probability at least
    (1 - delta)/(1 + e^epsilon) under (epsilon, delta)-DP. Proof: with a the probability of guessing D' under D, b of
    guessing D under D', 1 - b <= e^epsilon a + delta and 1 - a <= e^epsilon b + delta; add up, divide by 2.
    Randomized response reaches it.
    """
    return math.exp(log_game_error(epsilon, delta))


def log_game_error(epsilon: float, delta: float = 0.0) -> float:
    """Its natural logarithm, for any epsilon: no exponential overflows."""
    price, lost = _checked(epsilon, delta)
    return (math.log1p(-lost) if lost < 1 else -math.inf) - (price + math.log1p(math.exp(-price)))


def shown_error(epsilon: float, delta: float = 0.0) -> str:
    """The error as text, however small."""
    log = log_game_error(epsilon, delta)
    if log > math.log(1e-4):
        return f"{math.exp(log):.6f}"
    return f"{math.exp(log):.3g}" if log > -_LARGEST_EXPONENT else f"10^{log / math.log(10):.1f}"


def true_positive_rate(epsilon: float, false_positive_rate: float, delta: float = 0.0) -> float:
    """The largest share of true members an attack finds that wrongly accuses this share of others.

    **Theorem** (Wasserman and Zhou 2010; Kairouz, Oh, Viswanath 2015). With a the false and b the true positive rate,
    b <= e^epsilon a + delta and 1 - a <= e^epsilon (1 - b) + delta.
    """
    price, lost = _checked(epsilon, delta)
    rate = float(within("false_positive_rate", false_positive_rate, rational("", 0), rational("", 1)))
    growth = math.exp(min(price, _LARGEST_EXPONENT))
    return min(1.0, growth * rate + lost, 1 - (1 - lost - rate) / growth if 1 - lost > rate else 1.0)


def posterior(epsilon: float, prior: float) -> tuple[float, float]:
    """The least and the largest probability of a statement about one person, after seeing the answer.

    **Theorem.** Under epsilon-DP the odds of "the database was D" against "it was D'" change by a factor of at most
    e^epsilon either way, whatever was seen: Bayes' rule, where the ratio of likelihoods lies in
    [e^-epsilon, e^epsilon].
    """
    price, _ = _checked(epsilon, 0.0)
    chance = float(within("prior", prior, rational("", 0), rational("", 1)))
    if chance in {0.0, 1.0}:
        return chance, chance
    log = math.log(chance) - math.log1p(-chance)
    return _logistic(log - price), _logistic(log + price)


def words(epsilon: float) -> str:
    """An epsilon in plain words."""
    price, _ = _checked(epsilon, 0.0)
    sizes = [(0.1, "high privacy"), (1.0, "good privacy"), (5.0, "moderate privacy"), (10.0, "little privacy")]
    size = "perfect privacy" if price == 0 else "close to no privacy"
    if price > 0:
        size = next((name for limit, name in sizes if price <= limit), size)
    odds = f"{math.exp(price):.3g}" if price < _LARGEST_EXPONENT else f"10^{price / math.log(10):.0f}"
    return (
        f"{size}: someone who knows everything else and guesses whether you took part errs at least "
        f"{shown_error(price)} of the time (0.5 is a blind guess), and their odds change by at most a factor of {odds}"
    )


def _logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(max(x, -_LARGEST_EXPONENT)) / (1 + math.exp(x))


def _checked(epsilon: Any, delta: Any) -> tuple[float, float]:
    price = rational("epsilon", epsilon)
    if price < 0:
        raise ParameterError("epsilon", f"must not be negative, got {epsilon}", fix="choose an epsilon of 0 or more")
    return float(price), float(within("delta", delta, rational("", 0), rational("", 1)))
