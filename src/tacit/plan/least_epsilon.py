"""The least epsilon of four digits that is enough for something."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from fractions import Fraction

from tacit.accounting.filters import whole
from tacit.plan.plan import MIN_EPSILON

_THOUSAND = 1_000
_NEAR = 2  # steps to either side
_STEPS = 9 * 9 * _THOUSAND  # nine decades of epsilons with four digits, from the least to the most


def find_least_epsilon(is_enough: Callable[[Fraction], bool], near: Fraction | None = None) -> Fraction | None:
    """Return the least epsilon of four digits, up to the largest that a question may have, that is enough; else None.

    More epsilon never means less, so it is found by halving, and the next one below it is not enough. Where it is
    expected `near` a number, it is looked for there first: that saves time, and changes nothing.
    """
    low, high = 0, _STEPS
    if near is not None:
        middle = bisect_left(range(_STEPS), near, key=_epsilon_at_step)
        below, above = max(low, middle - _NEAR), min(high, middle + _NEAR)
        if is_enough(_epsilon_at_step(above)):
            high = above
            low = below if below > 0 and not is_enough(_epsilon_at_step(below - 1)) else low
    if high == _STEPS and not is_enough(_epsilon_at_step(high)):
        return None
    while low < high:
        middle = (low + high) // 2
        if is_enough(_epsilon_at_step(middle)):
            high = middle
        else:
            low = middle + 1
    return _epsilon_at_step(high)


def round_up_epsilon(epsilon: Fraction) -> Fraction:
    """Return the least epsilon of four digits that is no less; the largest there is where all are."""
    return find_least_epsilon(lambda found: found >= epsilon) or _epsilon_at_step(_STEPS)


def _epsilon_at_step(step: int) -> Fraction:
    """The epsilons of four digits, counted from the least: 1.000e-6, 1.001e-6, ..., 9.999e-6, 1.000e-5, ..., 1000."""
    decade, digits = divmod(step, 9 * _THOUSAND)
    return whole(MIN_EPSILON * Fraction(10) ** decade * Fraction(_THOUSAND + digits, _THOUSAND))
