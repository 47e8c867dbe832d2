"""Millions of counts at once
==========================

Why Laplace noise on each of millions of counts is useless, and how many people it would take.

Without a path the picture is shown, where there is a screen::

    python examples/genome.py
    python examples/genome.py docs/images/genome.svg
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction

from tacit.mechanisms import Laplace
from tacit.pictures import open_figure

EPSILON = Fraction(math.log(2)).limit_denominator(10**9)


def deviation(counts: int) -> float:
    """The standard deviation of the noise on each of `counts` counts that a person may all be in."""
    return float(Laplace.calibrated(EPSILON, sensitivity=counts).scale) * math.sqrt(2)


def main(target: str | None = None) -> None:
    sizes = [10**k for k in range(8)]
    with open_figure(target, "Noise on each count, epsilon = ln 2", "counts published", "standard deviation") as axes:
        axes.loglog(sizes, [deviation(k) for k in sizes], marker="o", markersize=4)
        for people in (10**4, 10**6):
            axes.axhline(people, linestyle=":", color="gray")
            axes.text(1, people * 1.15, f"a study of {people:,} people", fontsize=9)
        axes.plot([2_000_000], [deviation(2_000_000)], "s", label=f"2 million variants: {deviation(2_000_000):,.0f}")
    print(f"10 counts: {deviation(10):.1f}; 2,000,000 counts: {deviation(2_000_000):,.0f}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
