"""What a unit adds to each of its keys where keys are selected by weight: one over the root of their number.

Weights are integers, in steps of 2^-20, so that engines add them up exactly.

>>> [weigh_key(keys) for keys in (1, 2, 4)]
[1048576, 741455, 524288]
"""

from __future__ import annotations

from math import isqrt

BITS = 20
"""A weight is a whole number of steps of 2^-BITS."""
WHOLE = 2**BITS
"""The weight of a unit's only key."""


def weigh_key(keys: int) -> int:
    """Return w, what a unit of so many keys adds to each of them: 2^20 / sqrt(keys), rounded down.

    **Theorem.** The L2 norm of a unit's weights is at most 2^20. Proof. w^2 <= 2^40 / keys, and there are `keys` of
    them: their squares add up to at most 2^40. The root of an integer is rounded down exactly, and w is an integer
    with w^2 keys <= 2^40 just where w^2 <= floor(2^40 / keys).
    """
    return isqrt(WHOLE**2 // keys)
