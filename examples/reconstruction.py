"""How much noise hides secret bits
================================

Least squares on random subset counts, beside its formula and a private curator.

Without a path the picture is shown, where there is a screen::

    python examples/reconstruction.py
    python examples/reconstruction.py docs/images/reconstruction.svg
"""

from __future__ import annotations

import math
import sys

import numpy as np

from tacit.attacks import GaussianNoiseOracle, expected_accuracy, max_expected_accuracy, reconstruct
from tacit.mechanisms import Gaussian
from tacit.pictures import TEXT_COLOR, open_figure
from tacit.privacy import Neighbors

PEOPLE = 300
ROOT = math.sqrt(PEOPLE)


def share(method: str, queries: int, sigma: float, seed: int) -> float:
    """The share of all bits that an attack gets from counts with this noise."""
    rng = np.random.default_rng(seed)
    truth = rng.random(PEOPLE) < 0.5
    oracle = GaussianNoiseOracle(truth, sigma, rng)
    return reconstruct(oracle, PEOPLE, queries, method=method, seed=seed, truth=truth).share


def main(target: str | None = None) -> None:
    sizes = np.geomspace(0.1, 20, 10)
    queries = 4 * PEOPLE
    private = math.sqrt(Gaussian.calibrated(1, 1e-6, sensitivity=1, coordinates=queries).variance) / ROOT
    most = max_expected_accuracy(1.0, Neighbors.REPLACE, 1e-6)
    title = f"{PEOPLE} secret bits, {queries:,} noisy counts of random subsets"
    with open_figure(target, title, "", "share of bits guessed right", size=(11.0, 4.2), panels=2) as (left, right):
        curve = np.geomspace(sizes[0], sizes[-1], 200)
        left.semilogx(
            curve, [expected_accuracy(PEOPLE, queries, s * ROOT) for s in curve], label="formula, least squares"
        )
        for method, mark in (("least-squares", "o"), ("box", "^")):
            found = [share(method, queries, size * ROOT, seed) for seed, size in enumerate(sizes)]
            left.semilogx(sizes, found, mark, label=f"{method.replace('-', ' ')}, measured")
        left.axvline(private, linestyle="--", color=TEXT_COLOR, linewidth=1)
        left.text(private * 0.93, 0.97, "what epsilon = 1 adds", fontsize=9, ha="right", va="top")
        ticks = [0.1, 0.5, 1, 2, 5, 10, 20]
        left.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        left.set_xlabel("noise: deviation / square root of the number of people")

        ratios = np.array([1.25, 1.5, 2, 3, 4, 6, 8, 12])
        sigma = 0.5 * ROOT
        more = np.linspace(1.01, ratios[-1], 200)
        right.plot(
            more, [expected_accuracy(PEOPLE, int(r * PEOPLE), sigma) for r in more], label="formula, least squares"
        )
        for method, mark in (("least-squares", "o"), ("box", "^")):
            found = [share(method, int(r * PEOPLE), sigma, 100 + seed) for seed, r in enumerate(ratios)]
            right.plot(ratios, found, mark, label=f"{method.replace('-', ' ')}, measured")
        right.set_title("The same noise (0.5), more questions")
        right.set_xlabel("questions for each person")
        for axes in (left, right):
            axes.axhline(0.5, linestyle=":", color="gray")
            axes.axhline(most, linestyle="-.", color="gray")
            across = axes.get_yaxis_transform()
            axes.text(1, 0.49, "a coin", fontsize=9, ha="right", va="top", transform=across)
            axes.text(1, most + 0.01, "most under epsilon = 1", fontsize=9, ha="right", transform=across)
            axes.set_ylim(0.42, 1.02)
        left.legend(loc="lower left", bbox_to_anchor=(0, 0.16))
        right.legend(loc="lower right", bbox_to_anchor=(1, 0.16))
    print(
        f"noise of 0.5: {expected_accuracy(PEOPLE, queries, sigma):.1%} by the formula; epsilon = 1 adds {private:.1f}"
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
