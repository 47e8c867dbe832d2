from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from flint import arb
from tests.support import statistics
from tests.support.bits import Same, Script


@pytest.fixture(scope="session")
def chi_square() -> Callable[[Sequence[float], Sequence[float]], float]:
    """The p-value of Pearson's test: counts of bins against their expected counts."""
    return statistics.chi_square


def at_least(scale: Fraction, m: int) -> float:
    """P(k >= m) of the discrete Laplace law."""
    width = float(scale)
    share = 1 / (1 + math.exp(-1 / width))
    return math.exp(-m / width) * share if m >= 1 else 1 - math.exp(-(1 - m) / width) * share


@pytest.fixture(scope="session")
def fit(chi_square) -> Callable[[Sequence[int], Fraction], float]:
    """The p-value of draws against the exact law of a scale, in some forty bins of at least half a percent each."""

    def p_value(drawn: Sequence[int], scale: Fraction) -> float:
        q = math.exp(-1 / float(scale))
        # For a probability p in a tail, the least m with P(k >= m) = q^m / (1 + q) <= p.
        tails = [0.005, 0.01, 0.02, *(share / 40 for share in range(1, 20))]
        upper = {max(1, math.ceil(-float(scale) * math.log(p * (1 + q)))) for p in tails}
        edges = sorted(m for m in upper | {1 - m for m in upper} if 0.004 < at_least(scale, m) < 0.996)
        survival = [1.0, *(at_least(scale, m) for m in edges), 0.0]
        expected = [len(drawn) * (a - b) for a, b in pairwise(survival)]
        values = np.sort(drawn) if isinstance(drawn, np.ndarray) else sorted(drawn)  # a list may pass 64 bits
        places = [0, *(bisect_left(values, m) for m in edges), len(values)]
        observed = [b - a for a, b in pairwise(places)]
        return chi_square(observed, expected)

    return p_value


@pytest.fixture(scope="session")
def binned(chi_square) -> Callable[[Sequence[int], Callable[[int], float], Sequence[int]], float]:
    """The p-value of draws against P(k >= m), in the bins between these edges that hold 0.4 % or more."""

    def p_value(drawn: Sequence[int], survival: Callable[[int], float], edges: Sequence[int]) -> float:
        kept, chances = [], [1.0]
        for m in sorted(set(edges)):
            chance = survival(m)
            if chance >= 0.004 and chances[-1] - chance >= 0.004:
                kept.append(m)
                chances.append(chance)
        values = np.sort(drawn) if isinstance(drawn, np.ndarray) else sorted(drawn)
        places = [0, *(bisect_left(values, m) for m in kept), len(values)]
        return chi_square(
            [b - a for a, b in pairwise(places)], [len(drawn) * (a - b) for a, b in pairwise([*chances, 0.0])]
        )

    return p_value


@pytest.fixture(scope="session")
def script() -> type[Script]:
    return Script


@pytest.fixture(scope="session")
def same() -> type[Same]:
    return Same


@pytest.fixture(scope="session")
def digits() -> Callable[[Callable[[], arb], int], list[int]]:
    """The first words of 64 bits of a number between 0 and 1 that is no dyadic fraction."""

    def split(number: Callable[[], arb], words: int = 3) -> list[int]:
        from tacit.arithmetic import working_precision

        with working_precision(64 * words + 400):
            whole = (number() * arb(2) ** (64 * words)).floor().unique_fmpz()
        assert whole is not None
        return [int(whole) >> 64 * (words - 1 - i) & (2**64 - 1) for i in range(words)]

    return split
