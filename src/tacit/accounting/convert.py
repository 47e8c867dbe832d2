"""From Renyi divergences to (epsilon, delta), in logarithms. For zCDP see `privacy.guarantee`.

The functions of arrays are for finding the best order; `proven_delta` and `proven_epsilon` are at least the real
number (`docs/proofs/accounting.md`).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from tacit.accounting.rounding import ball_above
from tacit.arithmetic import to_interval, working_precision
from tacit.privacy.guarantee import delta_from_rho as delta_from_rho
from tacit.privacy.guarantee import epsilon_from_rho as epsilon_from_rho
from tacit.privacy.guarantee import minimize_unimodal as minimize_unimodal

_BITS = 192

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray

    Array = NDArray[Any]


def renyi_log_delta(order: Array, divergence: Array, epsilon: float | Array) -> Array:
    """ln delta at `epsilon`, for each order.

    **Theorem** (Canonne, Kamath, Steinke 2020, proposition 12; Balle et al. 2020). If the Renyi divergence of order
    a > 1 is at most D, then delta(epsilon) <= exp((a - 1)(D - epsilon)) (1 - 1/a)^a / (a - 1).
    """
    import numpy as np

    return np.asarray((order - 1) * (divergence - epsilon) + order * np.log1p(-1 / order) - np.log(order - 1))


def renyi_epsilon(order: Array, divergence: Array, delta: float) -> Array:
    """The epsilon at which the bound above is `delta`, for each order; never below zero."""
    import numpy as np

    room = -math.log(delta) - np.log(order) + (order - 1) * np.log1p(-1 / order)
    return np.asarray(np.maximum(0.0, divergence + room / (order - 1)))


def proven_delta(order: float, growth: float, epsilon: float) -> float:
    """delta at `epsilon` by this order a, where (a - 1) D_a is at most `growth`; at least the real number."""
    with working_precision(_BITS):
        at, less = to_interval(Fraction(order)), to_interval(Fraction(order) - 1)
        power = (
            to_interval(Fraction(growth)) - less * to_interval(Fraction(epsilon)) + at * (-1 / at).log1p() - less.log()
        )
        return ball_above(power.exp())


def proven_epsilon(order: float, growth: float, delta: float) -> float:
    """The epsilon at which this is `delta`; at least the real number, and never below zero."""
    with working_precision(_BITS):
        at, less = to_interval(Fraction(order)), to_interval(Fraction(order) - 1)
        room = -to_interval(Fraction(delta)).log() - at.log()
        return max(0.0, ball_above((to_interval(Fraction(growth)) + room) / less + (-1 / at).log1p()))


def proven_distance(divergence: float) -> float:
    """delta at every epsilon, where the divergence of some order is at most this; at least the real number.

    **Theorem** (Bretagnolle and Huber 1979). The total variation is at most sqrt(1 - exp(-D)), D the divergence of
    Kullback and Leibler, which is at most that of any order above one. delta(epsilon) is at most delta(0), which is
    the total variation.
    """
    if divergence == math.inf:
        return 1.0
    with working_precision(_BITS):
        return ball_above((-(-to_interval(Fraction(divergence))).expm1()).sqrt())
