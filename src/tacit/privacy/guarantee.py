"""What is promised, to whom, and what follows from it. Conversions go one way: each gives something weaker.

>>> DpGuarantee(Fraction(1), Fraction(0), Neighbors.ADD_REMOVE).for_replace()
DpGuarantee(epsilon=Fraction(2, 1), delta=Fraction(0, 1), neighbors=<Neighbors.REPLACE: 'replace'>)
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from tacit.arithmetic import Number, ball_above, rounded_up, to_interval, to_rational, working_precision
from tacit.errors import ParameterError
from tacit.frozen import set_fields
from tacit.privacy.unit import Neighbors

_GOLDEN = (math.sqrt(5) - 1) / 2
_MARGIN = 1 + 2.0**-40  # above the rounding of the formulas below, nearly always; interval arithmetic decides
_BITS = 192
_FAR = 700.0  # the largest logarithm of an order that is tried; its exponential is a double


@dataclass(frozen=True, init=False)
class DpGuarantee:
    """(epsilon, delta)-DP: P[M(D) in T] <= e^epsilon P[M(D') in T] + delta for neighbors D, D' and every event T.

    Parameters
    ----------
    epsilon : number
        The privacy loss, at least 0.
    delta : number
        From 0 to 1; 0 is pure differential privacy.
    neighbors : Neighbors
        Which databases are neighbors.

    Raises
    ------
    ParameterError
        If a parameter is out of range.

    Examples
    --------
    >>> DpGuarantee(epsilon=1, delta=0, neighbors=Neighbors.ADD_REMOVE).for_replace().epsilon
    Fraction(2, 1)
    """

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors

    def __init__(self, epsilon: Number, delta: Number, neighbors: Neighbors) -> None:
        set_fields(
            self,
            epsilon=to_rational("epsilon", epsilon),
            delta=to_rational("delta", delta),
            neighbors=neighbors,
        )
        if self.epsilon < 0 or not 0 <= self.delta <= 1:
            raise ParameterError("guarantee", f"there is no {self!r:.200}", fix="epsilon >= 0 and delta in [0, 1]")

    def for_group(self, size: int) -> DpGuarantee:
        """Return the guarantee for a group of units that change together.

        **Theorem.** For k units: (k epsilon, delta (e^{k epsilon} - 1)/(e^epsilon - 1)).

        Proof: along k steps, P_0(T) <= e^epsilon P_1(T) + delta <= ... <= e^{k epsilon} P_k(T) plus the geometric sum
        delta (1 + e^epsilon + ... + e^{(k-1) epsilon}). It is rounded up, and at most one.

        Parameters
        ----------
        size : int
            How many units change, at least 1.

        Returns
        -------
        DpGuarantee
            The weaker guarantee, for the same neighbors.
        """
        if size < 1:
            raise ParameterError("size", f"must be at least one, got {size}", fix="a group has one unit or more")
        total = group_delta(self.epsilon, self.delta, size)
        return DpGuarantee(self.epsilon * size, total, self.neighbors)

    def for_replace(self) -> DpGuarantee:
        """Return the guarantee for replacing a unit.

        **Theorem.** Replacing a unit is removing one and adding one: a group of two under ADD_REMOVE.

        Returns
        -------
        DpGuarantee
            The weaker guarantee, for REPLACE; itself where it is for REPLACE already.
        """
        if self.neighbors is Neighbors.REPLACE:
            return self
        pair = self.for_group(2)
        return DpGuarantee(pair.epsilon, pair.delta, Neighbors.REPLACE)


def epsilon_from_rho(rho: float, delta: float) -> float:
    """Return the epsilon of rho-zCDP at this delta, rounded up.

    **Theorem** (Canonne, Kamath, Steinke 2020, proposition 12). For every order a > 1, rho-zCDP is (epsilon, delta)-DP
    with epsilon = rho a + (ln(1/delta) - ln a)/(a - 1) + ln(1 - 1/a).

    Any order gives a valid bound, so the search for the best one cannot make it wrong. At the order that is found the
    formula is evaluated once more in interval arithmetic, and the larger of the two numbers is returned: it is at
    least the real value, for all doubles (`docs/proofs/accounting.md`).

    Parameters
    ----------
    rho : float
        Zero-concentrated privacy loss, at least 0.
    delta : float
        From 0 to below 1.

    Returns
    -------
    float
        The epsilon; infinite at a delta of 0, unless rho is 0.

    Examples
    --------
    >>> round(epsilon_from_rho(rho=0.01, delta=1e-6), 3)
    0.622
    """
    if rho == 0:
        return 0.0
    if delta <= 0 or rho == math.inf:
        return math.inf
    t, found = _order_of_rho(rho, delta)
    with working_precision(_BITS):
        less = to_interval(Fraction(math.exp(t)))
        room = -to_interval(Fraction(delta)).log() - less.log1p()
        proven = ball_above(to_interval(Fraction(rho)) * (1 + less) + room / less - (1 / less).log1p())
    return max(0.0, found * _MARGIN, proven)


def near_epsilon_of_rho(rho: float, delta: float) -> float:
    """`epsilon_from_rho` in doubles alone: the same number but for rounding, to search with. It proves nothing."""
    return max(0.0, _order_of_rho(rho, delta)[1] * _MARGIN)


def _order_of_rho(rho: float, delta: float) -> tuple[float, float]:
    """The logarithm of the best order less one, and epsilon there."""
    depth = -math.log(delta)

    def at(t: float) -> float:
        less = math.exp(t)
        return rho * (1 + less) + (depth - math.log1p(less)) / less - math.log1p(1 / less)

    ratio = max(depth, 1e-3) / rho
    return _best(at, 0.5 * (math.log(ratio) if 0 < ratio < math.inf else -math.log(rho)))


def delta_from_rho(rho: float, epsilon: float) -> float:
    """Return the delta of rho-zCDP at this epsilon, by the theorem of `epsilon_from_rho`, rounded up.

    Parameters
    ----------
    rho : float
        Zero-concentrated privacy loss, at least 0.
    epsilon : float
        At least 0; a larger one has a smaller delta.

    Returns
    -------
    float
        The delta, at most 1, and never 0 unless rho is.

    Examples
    --------
    >>> f"{delta_from_rho(rho=0.01, epsilon=1):.1e}"
    '1.7e-13'
    """
    if rho == 0:
        return 0.0
    if rho == math.inf:
        return 1.0

    def at(t: float) -> float:
        less = math.exp(t)
        return less * (rho * (1 + less) - epsilon) - (1 + less) * math.log1p(1 / less) - t

    guess = math.log(epsilon - rho) - math.log(2) - math.log(rho) if epsilon > rho else -7.0
    t, found = _best(at, max(guess, -7.0))
    with working_precision(_BITS):
        less = to_interval(Fraction(math.exp(t)))
        power = less * (to_interval(Fraction(rho)) * (1 + less) - to_interval(Fraction(epsilon)))
        proven = ball_above((power - (1 + less) * (1 / less).log1p() - less.log()).exp())
    return min(1.0, max(math.exp(min(0.0, found)) * _MARGIN, proven))


def group_delta(epsilon: Fraction, delta: Fraction, size: int) -> Fraction:
    """delta (e^{k epsilon} - 1)/(e^epsilon - 1), rounded up, and at most one."""
    if epsilon == 0 or delta == 0:
        return min(Fraction(1), delta * size)
    if delta * size >= 1 or epsilon * (size - 1) > 1000:
        return Fraction(1)
    with working_precision(_BITS + 2 * math.ceil(epsilon * size)):
        factor = (to_interval(epsilon * size).expm1() / to_interval(epsilon).expm1()) * to_interval(delta)
        return min(Fraction(1), rounded_up(factor))


def _best(function: Callable[[float], float], guess: float) -> tuple[float, float]:
    """Where a function of the logarithm of an order is least, near a guess, and how low."""
    middle = min(max(guess, 8 - _FAR), _FAR - 8)
    return minimize_unimodal(function, middle - 8, middle + 8)


def minimize_unimodal(
    function: Callable[[float], float], low: float, high: float, steps: int = 40
) -> tuple[float, float]:
    """Golden section: where a function with one valley is least, and how low."""
    left, right = high - _GOLDEN * (high - low), low + _GOLDEN * (high - low)
    at_left, at_right = function(left), function(right)
    for _ in range(steps):
        if at_left <= at_right:
            high, right, at_right = right, left, at_left
            left = high - _GOLDEN * (high - low)
            at_left = function(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + _GOLDEN * (high - low)
            at_right = function(right)
    return (left, at_left) if at_left <= at_right else (right, at_right)
