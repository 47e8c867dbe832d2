"""What many answers cost together
===============================

The composition theorems against the true curve, for Laplace answers of epsilon 0.1.

Without a path the picture is shown, where there is a screen::

    python examples/composition.py
    python examples/composition.py docs/images/composition.svg
"""

from __future__ import annotations

import sys
from fractions import Fraction

from tacit.accounting import epsilon
from tacit.pictures import open_figure
from tacit.privacy import ContinuousLaplaceNoise, Repeat

DELTA = 1e-5
NAMES = {
    "basic": "basic: they add up",
    "advanced": "advanced",
    "zcdp": "zCDP",
    "renyi": "Renyi",
    "optimal": "optimal for any 0.1-DP answers",
    "pld": "the law itself",
}


def main(target: str | None = None) -> None:
    counts = [1, 3, 10, 30, 100, 300, 1000]
    answer = ContinuousLaplaceNoise(Fraction(10))
    costs = {by: [epsilon(Repeat(answer, n), DELTA, by=by) for n in counts] for by in NAMES}
    title, unit = "Laplace answers of epsilon 0.1, together", f"epsilon at delta {DELTA:g}"
    with open_figure(target, title, "answers", unit, size=(11, 4), panels=2) as (left, right):
        for by, name in NAMES.items():
            left.loglog(counts, costs[by], marker="o", markersize=3, label=f"{name}: {costs[by][-1]:.2f} for 1,000")
            ratios = [cost / true for cost, true in zip(costs[by], costs["pld"], strict=True)]
            right.semilogx(counts, ratios, marker="o", markersize=3)
            print(f"{by:9} {costs[by][-1]:.3f}")
        left.set_ylim(0.05, 4000)
        left.legend(loc="upper left", fontsize=9)
        right.set(ylabel="times the true epsilon", ylim=(0.9, 3))
        right.set_title("How far each theorem is off")


if __name__ == "__main__":
    main(*sys.argv[1:2])
