"""The geometric distribution, exactly: P(k) = (1 - q) q^k for k = 0, 1, 2, ..., where q = exp(-1/scale).

P(k >= m) = q^m, so k is the floor of -scale ln U for U uniform on (0, 1). `exponential_inversion.py` computes it.

**Timing residual.** A draw is undecided with probability at most 2^-20 + 3 (scale + 1) 2^-TRUSTED.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from tacit.sampling import exponential_inversion
from tacit.sampling.bits import Bits
from tacit.sampling.exponential_inversion import TRUSTED_BITS


def draw(scale: Fraction, bits: Bits, trusted: int = TRUSTED_BITS) -> int:
    """One draw."""
    word = int(bits.words(1)[0])
    found = exponential_inversion.invert(scale, 0.0, word, 64, trusted)
    return _draw_certified(scale, word, bits) if found is None else found


def draw_array(scale: Fraction, count: int, bits: Bits, trusted: int = TRUSTED_BITS) -> npt.NDArray[np.int64]:
    """`count` independent draws; the scale is at most 2^50."""
    words = bits.words(count)
    found, undecided = exponential_inversion.invert_array(scale, 0.0, words, 64, trusted)
    for index in np.flatnonzero(undecided):
        found[index] = _draw_certified(scale, int(words[index]), bits)
    return found


def _draw_certified(scale: Fraction, uniform: int, bits: Bits) -> int:
    from flint import arb

    return exponential_inversion.invert_certified(scale, lambda: arb(0), uniform, 64, bits)
