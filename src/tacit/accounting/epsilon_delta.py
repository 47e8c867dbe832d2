"""What a loss costs, as (epsilon, delta), by the theorem of your choice.

>>> from fractions import Fraction
>>> from tacit.privacy.loss import LaplaceNoise, Repeat
>>> workload = Repeat(LaplaceNoise(Fraction(10), 1), 1000)
>>> [round(epsilon(workload, 1e-5, by=by), 2) for by in ("basic", "advanced", "optimal", "pld")]
[100.0, 25.69, 17.79, 17.79]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from tacit.accounting.rounding import double_above, double_below
from tacit.arithmetic import Number, to_rational
from tacit.errors import ParameterError
from tacit.privacy.loss import Loss

METHODS = ("basic", "advanced", "optimal", "zcdp", "renyi", "pld")
_Price = Callable[[Loss, Fraction], float]


def epsilon(loss: Loss, delta: Number, by: str = "pld") -> float:
    """Return the least epsilon that is proven for a loss at this delta.

    Parameters
    ----------
    loss : Loss
        What was done to the data: a leaf such as `LaplaceNoise`, or losses put together by `Compose`, `Repeat`,
        `Parallel`, `Sampled` and `Group` of `tacit.privacy`.
    delta : number
        From 0 to below 1. At 0 only sums of pure epsilons hold.
    by : str, default "pld"
        The theorem that proves it, one of `METHODS`: "basic" adds up epsilons, "advanced" and "optimal" are
        composition theorems for pure epsilons, "zcdp" and "renyi" go by divergences, "pld" takes the best of privacy
        loss distributions and of the others.

    Returns
    -------
    float
        The epsilon, rounded up; infinite where the theorem proves none.

    Raises
    ------
    ParameterError
        If delta is out of range, or there is no such method.

    Examples
    --------
    >>> from tacit.privacy import LaplaceNoise, Repeat
    >>> thousand = Repeat(LaplaceNoise(scale=10, sensitivity=1), times=1000)
    >>> [round(epsilon(thousand, delta=1e-5, by=by), 2) for by in ("basic", "advanced", "pld")]
    [100.0, 25.69, 17.79]
    """
    return _method(by)[0](loss, _delta(delta))


def delta(loss: Loss, epsilon: Number, by: str = "pld") -> float:
    """Return the least delta that is proven for a loss at this epsilon.

    Parameters
    ----------
    loss : Loss
        What was done to the data: a leaf such as `LaplaceNoise`, or losses put together by `Compose`, `Repeat`,
        `Parallel`, `Sampled` and `Group` of `tacit.privacy`.
    epsilon : number
        At least 0; a larger one has a smaller delta.
    by : str, default "pld"
        The theorem that proves it, one of `METHODS`: "basic" adds up epsilons, "advanced" and "optimal" are
        composition theorems for pure epsilons, "zcdp" and "renyi" go by divergences, "pld" takes the best of privacy
        loss distributions and of the others.

    Returns
    -------
    float
        The delta, rounded up; 1 where the theorem proves none.

    Raises
    ------
    ParameterError
        If epsilon is negative, or there is no such method.

    Examples
    --------
    >>> from tacit.privacy import GaussianNoise
    >>> f"{delta(GaussianNoise(variance=100, shift=1), epsilon=0.5):.1e}"
    '6.9e-09'
    """
    return min(1.0, _method(by)[1](loss, _epsilon(epsilon)))


def bounds(loss: Loss, delta: Number) -> tuple[float, float]:
    """Return two numbers that hold between them the epsilon of the pair of distributions that dominates a loss.

    Parameters
    ----------
    loss : Loss
        What was done to the data: a leaf such as `LaplaceNoise`, or losses put together by `Compose`, `Repeat`,
        `Parallel`, `Sampled` and `Group` of `tacit.privacy`.
    delta : number
        From 0 to below 1.

    Returns
    -------
    tuple of float
        A lower and an upper bound. The upper one is `epsilon(loss, delta)`; a small gap says that no other accounting
        of the same pair could do better.

    Raises
    ------
    ParameterError
        If delta is out of range.

    Examples
    --------
    >>> from tacit.privacy import GaussianNoise, Repeat
    >>> low, high = bounds(Repeat(GaussianNoise(variance=100, shift=1), times=10), delta=1e-6)
    >>> round(low, 3), round(high, 3)
    (1.368, 1.368)
    """
    given = _delta(delta)
    upper = epsilon(loss, delta)
    if upper in {0.0, math.inf} or given == 0:
        return upper, upper
    from tacit.accounting import pld

    return min(pld.epsilon(loss, double_above(given), upper=False), upper), upper


def _epsilon(value: Number) -> Fraction:
    number = to_rational("epsilon", value)
    if number < 0:
        raise ParameterError("epsilon", f"must not be negative, got {value}", fix="choose an epsilon of 0 or more")
    return number


def _delta(value: Number) -> Fraction:
    number = to_rational("delta", value)
    if not 0 <= number < 1:
        raise ParameterError("delta", f"must be in [0, 1), got {value}", fix="choose a delta far below one, 1e-6 say")
    return number


def _method(by: str) -> tuple[_Price, _Price]:
    match by:
        case "basic":
            return _basic_epsilon, _basic_delta
        case "advanced" | "optimal":
            from tacit.accounting import advanced

            if by == "advanced":
                return _or_basic(advanced.advanced_epsilon), advanced.advanced_delta
            return _or_basic(advanced.optimal_epsilon), advanced.optimal_delta
        case "zcdp":
            return _or_basic(_zcdp_epsilon), _zcdp_delta
        case "renyi":
            return _or_basic(_renyi_epsilon), _renyi_delta
        case "pld":
            return _or_basic(_pld_epsilon), _pld_delta
    raise ParameterError("by", f"there is no accountant {by!r:.60}", fix=f"choose one of {', '.join(METHODS)}")


def _or_basic(price: _Price) -> _Price:
    """At a delta of zero, or one that no double holds, only sums of pure epsilons hold."""
    return lambda loss, delta: price(loss, delta) if double_below(delta) > 0 else _basic_epsilon(loss, delta)


def _basic_epsilon(loss: Loss, delta: Fraction) -> float:
    from tacit.accounting.basic import compose_basic

    spent = compose_basic(loss)
    return math.inf if spent.epsilon is None or spent.delta > delta else double_above(spent.epsilon)


def _basic_delta(loss: Loss, epsilon: Fraction) -> float:
    from tacit.accounting.basic import compose_basic

    spent = compose_basic(loss)
    return double_above(spent.delta) if spent.epsilon is not None and spent.epsilon <= epsilon else 1.0


def _zcdp_epsilon(loss: Loss, delta: Fraction) -> float:
    from tacit.accounting.convert import epsilon_from_rho
    from tacit.accounting.zcdp import compute_rho

    cost = compute_rho(loss)
    room = delta - cost.delta
    if room < 0 or (room == 0 and cost.rho):
        return math.inf
    return epsilon_from_rho(double_above(cost.rho), double_below(room))


def _zcdp_delta(loss: Loss, epsilon: Fraction) -> float:
    from tacit.accounting.convert import delta_from_rho
    from tacit.accounting.zcdp import compute_rho

    cost = compute_rho(loss)
    converted = delta_from_rho(double_above(cost.rho), double_below(epsilon))
    return min(1.0, double_above(cost.delta + Fraction(converted)))


def _renyi_epsilon(loss: Loss, delta: Fraction) -> float:
    from tacit.accounting import renyi

    return renyi.epsilon(loss, double_below(delta))


def _renyi_delta(loss: Loss, epsilon: Fraction) -> float:
    from tacit.accounting import renyi

    return renyi.delta(loss, double_below(epsilon))


def _pld_epsilon(loss: Loss, delta: Fraction) -> float:
    """The least of several upper bounds: Renyi divergences are kinder to bounded range and zCDP used many times."""
    from tacit.accounting import pld

    rest = min(_renyi_epsilon(loss, delta), _zcdp_epsilon(loss, delta), _basic_epsilon(loss, delta))
    return min(pld.epsilon(loss, double_below(delta)), rest)


def _pld_delta(loss: Loss, epsilon: Fraction) -> float:
    from tacit.accounting import pld

    rest = min(_renyi_delta(loss, epsilon), _zcdp_delta(loss, epsilon), _basic_delta(loss, epsilon))
    return min(pld.delta(loss, double_below(epsilon)), rest)
