"""Pure epsilon: the worst privacy loss over all outputs.

>>> from tacit.privacy.loss import Compose, LaplaceNoise
>>> epsilon(Compose((LaplaceNoise(Fraction(10), 1), LaplaceNoise(Fraction(40), 2))))
Fraction(3, 20)
"""

from __future__ import annotations

from fractions import Fraction

from tacit.privacy.loss import Compose, LaplaceNoise, Loss


def epsilon(loss: Loss) -> Fraction:
    """The least epsilon that basic composition proves for `loss`, exactly.

    **Theorem.** Discrete Laplace noise of scale b on integers that move by at most d in L1 is (d/b)-DP, and no less:
    P(k) is proportional to exp(-|k|/b), so the ratio of two neighbors is at most exp(d/b), reached in the tail.
    Adaptive composition adds up: the probabilities of a transcript multiply.
    """
    match loss:
        case LaplaceNoise(scale, sensitivity):
            return Fraction(sensitivity) / scale
        case Compose(parts):
            return sum((epsilon(part) for part in parts), Fraction(0))
    raise ValueError(f"no pure epsilon bounds {loss!r:.100}")
