"""The exact audit: the least parameter for which a claim holds, from a table of probabilities.

>>> from fractions import Fraction
>>> coin = TransitionMatrix([[Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)]])
>>> round(exact_parameter(coin, Claim.epsilon(1)), 6), round(exact_parameter(coin, Claim.epsilon(1, delta=0.25)), 6)
(1.098612, 0.693147)
"""

from __future__ import annotations

import math

import numpy as np

from tacit.accounting.transition_matrix import TransitionMatrix
from tacit.audit.claim import Claim

_HALVINGS = 60
_ORDERS = 4000
_RARE = 1e-9


def exact_parameter(matrix: TransitionMatrix, claim: Claim) -> float:
    """Return the least value of the claim's parameter that is true of a mechanism; infinite where none is.

    epsilon, delta = 0: the logarithm of the largest ratio. epsilon with a delta: where the curve delta(epsilon), which
    falls, comes down to it.

    mu: the largest Phi^-1(P(T)) - Phi^-1(Q(T)), over events that are not within 1e-9 of never or always. **Theorem.**
    The corners of the best tests suffice. Proof: the trade-off of two normal distributions is convex, so it lies below
    the chord of two points that it lies below.

    rho: the largest D_a/a, on a fine grid of orders from 1 (Kullback and Leibler's divergence) to 10^4. So it is not
    too large, and too small by the grid's fineness.

    Parameters
    ----------
    matrix : TransitionMatrix
        The probability of each output for each input, with the pairs of inputs that are neighbors.
    claim : Claim
        Which parameter is computed, and at which delta; the claimed value itself is not used.

    Returns
    -------
    float
        The exact parameter over all pairs of neighbors.

    Examples
    --------
    >>> from tacit.accounting.transition_matrix import TransitionMatrix
    >>> coin = TransitionMatrix([[0.75, 0.25], [0.25, 0.75]])
    >>> round(exact_parameter(coin, Claim.epsilon(1)), 6)
    1.098612
    """
    if claim.name != "epsilon" and matrix.ratio is None:
        return math.inf
    if claim.name == "mu":
        return max((_gaussian(matrix, one, other) for one, other in matrix.pairs), default=0.0)
    if claim.name == "rho":
        return max((_exact_zcdp(matrix, one, other) for one, other in matrix.pairs), default=0.0)
    if not claim.delta:
        return matrix.epsilon
    low, high = 0.0, 1.0
    if matrix.delta(low) <= claim.delta:
        return 0.0
    while matrix.delta(high) > claim.delta:
        low, high = high, 2 * high
        if high > 1e6:
            return math.inf
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if matrix.delta(middle) > claim.delta else (low, middle)
    return high


def _gaussian(matrix: TransitionMatrix, one: int, other: int) -> float:
    from scipy.special import ndtri

    # A corner is an event of probability `alarms` under one and 1 - misses under other.
    corners = np.array([(float(alarms), float(misses)) for alarms, misses in matrix.tradeoff(one, other)])
    usual = ((corners > _RARE) & (corners < 1 - _RARE)).all(axis=1)
    return float(np.max(-ndtri(corners[usual]).sum(axis=1), initial=0.0))


def _exact_zcdp(matrix: TransitionMatrix, one: int, other: int) -> float:
    from scipy.special import logsumexp

    p, q = (np.array([float(entry) for entry in matrix.rows[side]]) for side in (one, other))
    p, q = p[p > 0], q[p > 0]
    loss = np.log(p) - np.log(q)
    first = float(p @ loss)
    excess = np.geomspace(1e-4, 1e4, _ORDERS)[:, None]
    found = logsumexp(excess * loss, b=p, axis=1) / (excess * (1 + excess))[:, 0]
    return max(first, float(found.max()))
