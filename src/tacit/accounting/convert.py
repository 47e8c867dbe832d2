"""From Renyi divergences to (epsilon, delta), in logarithms. For zCDP see `privacy.guarantee`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tacit.privacy.guarantee import delta_of_rho as delta_of_rho
from tacit.privacy.guarantee import epsilon_of_rho as epsilon_of_rho
from tacit.privacy.guarantee import least as least

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
