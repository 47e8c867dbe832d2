"""The best of K
=============

Releasing only the winner costs one epsilon; releasing all K counts takes K times the noise.

Without a path the picture is shown, where there is a screen::

    python examples/noisy_max.py
    python examples/noisy_max.py docs/images/noisy_max.svg
"""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np

from tacit.mechanisms import Laplace, NoisyMax
from tacit.pictures import open_figure
from tacit.sampling.bits import ReplayBits

EPSILON = Fraction(1)
ROUNDS = 400
LEAD = 40  # by how much the best of the counts is ahead of all others


def share_right(counts: int, release: object, bits: ReplayBits) -> float:
    """How often the best of `counts` wins."""
    scores = [LEAD] + [0] * (counts - 1)
    return float(np.mean([release(scores, bits) == 0 for _ in range(ROUNDS)]))


def main(target: str | None = None) -> None:
    bits = ReplayBits(b"noisy max")  # the same picture every time; it protects nobody
    sizes = [2, 5, 10, 20, 50, 100, 200]
    winner, everything = [], []
    for size in sizes:
        mechanism = NoisyMax.calibrated(EPSILON, sensitivity=1)
        winner.append(share_right(size, mechanism.release, bits))
        noise = Laplace.calibrated(EPSILON, sensitivity=size)
        everything.append(share_right(size, lambda s, b, n=noise: int(np.argmax(n.release(s, b))), bits))
    title = f"Finding the best of K, {LEAD} ahead, epsilon 1"
    with open_figure(target, title, "K", "share of runs that find it") as axes:
        axes.semilogx(sizes, winner, marker="o", label="report noisy max: only the name is released")
        axes.semilogx(sizes, everything, marker="o", label="all K counts released, noise K times as large")
        axes.set_ylim(0, 1.05)
    print(f"of 200: {winner[-1]:.0%} by noisy max, {everything[-1]:.0%} by releasing all")


if __name__ == "__main__":
    main(*sys.argv[1:2])
