"""What a guarantee means to one person.

>>> min_guessing_error(1.0)
0.2689414213699951
>>> format_guessing_error(100_000)
'10^-43429.4'
"""

from __future__ import annotations

import math
from fractions import Fraction

from tacit.accounting.rounding import ball_above, ball_below, digits_above
from tacit.arithmetic import Number, to_interval, to_rational, to_rational_between, working_precision
from tacit.errors import ParameterError

_LARGEST_EXPONENT = 700
_BITS = 192


def min_guessing_error(epsilon: Number, delta: Number = 0.0) -> float:
    """Return the least error of anyone who guesses which of two neighboring databases was used.

    **Theorem.** Whoever knows both databases, equally likely, and the mechanism, errs with probability at least
    (1 - delta)/(1 + e^epsilon) under (epsilon, delta)-DP. Proof: with a the probability of guessing D' under D, b of
    guessing D under D', 1 - b <= e^epsilon a + delta and 1 - a <= e^epsilon b + delta; add up, divide by 2.
    Randomized response reaches it. It is rounded down.

    Parameters
    ----------
    epsilon : number
        Privacy loss of all that is released, at least 0.
    delta : number, default 0
        From 0 to 1; 0 is pure differential privacy.

    Returns
    -------
    float
        A probability from 0 to 1/2, where 1/2 is a blind guess.

    Examples
    --------
    >>> min_guessing_error(epsilon=1)
    0.2689414213699951
    """
    price, lost = _check_parameters(epsilon, delta)
    with working_precision(_BITS):
        rare = (-to_interval(price)).exp()
        return max(0.0, ball_below(to_interval(1 - lost) * rare / (1 + rare)))


def log_min_guessing_error(epsilon: Number, delta: Number = 0.0) -> float:
    """Return its natural logarithm, for any epsilon: no exponential overflows. Rounded down, as the error is."""
    price, lost = _check_parameters(epsilon, delta)
    if lost == 1:
        return -math.inf
    with working_precision(_BITS):
        return ball_below(to_interval(1 - lost).log() - to_interval(price) - (-to_interval(price)).exp().log1p())


def format_guessing_error(epsilon: Number, delta: Number = 0.0) -> str:
    """Return the error as text, however small: six digits, or three, to the nearest."""
    log = log_min_guessing_error(epsilon, delta)
    if log > math.log(1e-4):
        return f"{math.exp(log):.6f}"
    return f"{math.exp(log):.3g}" if log > -_LARGEST_EXPONENT else f"10^{log / math.log(10):.1f}"


def max_true_positive_rate(epsilon: Number, false_positive_rate: Number, delta: Number = 0.0) -> float:
    """Return the largest share of true members that a membership inference attack can find.

    **Theorem** (Wasserman and Zhou 2010; Kairouz, Oh, Viswanath 2015). With a the false and b the true positive rate,
    b <= e^epsilon a + delta and 1 - a <= e^epsilon (1 - b) + delta. Rounded up.

    Parameters
    ----------
    epsilon : number
        Privacy loss of all that is released, at least 0.
    false_positive_rate : number
        The share of others that the attack wrongly accuses, from 0 to 1.
    delta : number, default 0
        From 0 to 1; 0 is pure differential privacy.

    Returns
    -------
    float
        The true positive rate, from 0 to 1.

    Examples
    --------
    >>> round(max_true_positive_rate(epsilon=1, false_positive_rate=0.01), 4)
    0.0272
    """
    price, lost = _check_parameters(epsilon, delta)
    rate = to_rational_between("false_positive_rate", false_positive_rate, Fraction(0), Fraction(1))
    with working_precision(_BITS):
        growth = to_interval(price).exp()
        missed = (1 - lost - rate) if 1 - lost > rate else Fraction(0)
        return min(
            1.0,
            ball_above(growth * to_interval(rate) + to_interval(lost)),
            ball_above(1 - to_interval(missed) / growth),
        )


def posterior_bounds(epsilon: Number, prior: Number) -> tuple[float, float]:
    """Return the least and the largest probability of a statement about one unit, after seeing the answer.

    **Theorem.** Under epsilon-DP the odds of "the database was D" against "it was D'" change by a factor of at most
    e^epsilon either way, whatever was seen: Bayes' rule, where the ratio of likelihoods lies in
    [e^-epsilon, e^epsilon]. Both are rounded outward.

    Parameters
    ----------
    epsilon : number
        Privacy loss of all that is released, at least 0.
    prior : number
        Probability of the statement before seeing the answer, from 0 to 1.

    Returns
    -------
    tuple of float
        The least and the largest posterior probability.

    Examples
    --------
    >>> [round(end, 3) for end in posterior_bounds(epsilon=1, prior=0.1)]
    [0.039, 0.232]
    """
    price, _ = _check_parameters(epsilon, 0.0)
    chance = to_rational_between("prior", prior, Fraction(0), Fraction(1))
    if chance in {0, 1}:
        return float(chance), float(chance)
    with working_precision(_BITS):
        odds, rare = to_interval((1 - chance) / chance), (-to_interval(price)).exp()
        low, high = rare / (rare + odds), 1 / (1 + odds * rare)
        return max(0.0, ball_below(low)), min(1.0, ball_above(high))


def describe_epsilon(epsilon: Number) -> str:
    """Describe an epsilon in plain words.

    Parameters
    ----------
    epsilon : number
        Privacy loss of all that is released, at least 0.

    Returns
    -------
    str
        One sentence: how hard it is to tell whether someone took part.

    Examples
    --------
    >>> describe_epsilon(0.5).partition(":")[0]
    'good privacy'
    """
    price, _ = _check_parameters(epsilon, 0.0)
    sizes = [(0.1, "high privacy"), (1.0, "good privacy"), (5.0, "moderate privacy"), (10.0, "little privacy")]
    size = "perfect privacy" if price == 0 else "close to no privacy"
    if price > 0:
        size = next((name for limit, name in sizes if price <= limit), size)
    odds = f"10^{math.ceil(float(price) / math.log(10) * 10 + 1e-3) / 10:.1f}"
    if price < _LARGEST_EXPONENT:
        with working_precision(_BITS):
            odds = digits_above(Fraction(ball_above(to_interval(price).exp())))
    return (
        f"{size}: someone who knows everything else and guesses whether you took part errs at least "
        f"{format_guessing_error(epsilon)} of the time (0.5 is a blind guess), "
        f"and their odds change by at most a factor of {odds}"
    )


def _check_parameters(epsilon: Number, delta: Number) -> tuple[Fraction, Fraction]:
    price = to_rational("epsilon", epsilon)
    if price < 0:
        raise ParameterError("epsilon", f"must not be negative, got {epsilon}", fix="choose an epsilon of 0 or more")
    return price, to_rational_between("delta", delta, Fraction(0), Fraction(1))
