"""Noise that later steps take back in part: matrix factorization with a banded square root.

The parameters see prefix sums of the noise. If step t gets y_t with sum_{j < b} c_j y_{t-j} = z_t, for independent z_t,
these sums grow more slowly than those of independent noise, at a guarantee that the coefficients c decide. Here c_j is
the coefficient of x^j in (1 - x)^(-1/2): the square root of the matrix of prefix sums, cut after b bands (Kalinin and
Lampert 2024).

**Theorem.** Let a unit be in at most one batch of each epoch, in batches of the same number in each, and let b be at
most the number of batches of an epoch. If z has the deviation s times the clipping norm, k epochs lose at most k
Gaussian releases of the multiplier s/(2 |c|), for replacing a unit. **Proof.** With C the matrix of the c_j, what is
released is a function of C g + z, where the rows of g are the sums of the steps, chosen adaptively (Denisov and others
2022, theorem 2.1: noise of a Gaussian protects adaptive streams as it protects fixed ones). A replacement moves k rows
of g by at most two clipping norms each. Column t of C is zero outside of rows t to t + b - 1, so columns of steps that
are b or more apart are orthogonal, and C g moves by at most sqrt(k) |c| 2 clipping norms. Where the history was lost,
C is cut into blocks: columns become shorter, and those of different blocks are orthogonal.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import torch
from torch import Tensor


class NoiseSource(Protocol):
    """What adds independent noise."""

    def add(self, sums: Sequence[Tensor], deviation: Tensor | float) -> None:
        """Add noise of this deviation, in place."""


def square_root_coefficients(bands: int) -> list[Fraction]:
    """Return the first coefficients of (1 - x)^(-1/2): 1, 1/2, 3/8, ...

    >>> [str(each) for each in square_root_coefficients(4)]
    ['1', '1/2', '3/8', '5/16']
    """
    found = [Fraction(1)]
    for n in range(1, bands):
        found.append(found[-1] * Fraction(2 * n - 1, 2 * n))
    return found


def column_norm(bands: int) -> Fraction:
    """Return the norm of the coefficients, rounded up."""
    square = sum(Fraction(math.ceil(each**2 * 2**80), 2**80) for each in square_root_coefficients(bands))
    return Fraction(math.isqrt(math.ceil(square * 2**80)) + 1, 2**40)


class CorrelatedNoise:
    """Adds y_t = z_t - sum_{0 < j < bands} c_j y_{t-j}; it keeps as many tensors as there are bands but one."""

    def __init__(self, source: NoiseSource, bands: int) -> None:
        self._source = source
        self._coefficients = [float(each) for each in square_root_coefficients(bands)]
        self._history: deque[list[Tensor]] = deque(maxlen=bands - 1)

    def add(self, sums: Sequence[Tensor], deviation: Tensor | float) -> None:
        """Add the noise of the next step, in place."""
        noise = [torch.zeros_like(each) for each in sums]
        self._source.add(noise, deviation)
        for factor, before in zip(self._coefficients[1:], reversed(self._history), strict=False):
            torch._foreach_add_(noise, before, alpha=-factor)
        torch._foreach_add_(list(sums), noise)
        self._history.append(noise)

    def forget(self) -> None:
        """Begin a new block: the noise of earlier steps is not known."""
        self._history.clear()
