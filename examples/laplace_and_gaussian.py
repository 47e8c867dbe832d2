"""Laplace against Gaussian noise
==============================

The same guarantee by two distributions: their probabilities, and the error as a vector gets longer.

Without a path the picture is shown, where there is a screen::

    python examples/laplace_and_gaussian.py
    python examples/laplace_and_gaussian.py docs/images/laplace_and_gaussian.svg
"""

from __future__ import annotations

import sys
from fractions import Fraction

import numpy as np

from tacit.mechanisms import Gaussian, Laplace
from tacit.pictures import open_figure

EPSILON, DELTA = Fraction(1), Fraction(1, 10**5)


def main(target: str | None = None) -> None:
    lengths = [2**k for k in range(11)]
    laplace = [float(Laplace.calibrated(EPSILON, sensitivity=k).scale) * 2**0.5 for k in lengths]
    gaussian = [
        float(Gaussian.calibrated(EPSILON, DELTA, sensitivity=1, coordinates=k).variance) ** 0.5 for k in lengths
    ]
    crossing = next(k for k, a, b in zip(lengths, laplace, gaussian, strict=True) if b < a)
    with open_figure(target, "The same guarantee", "noise", "probability", size=(11, 4), panels=2) as (left, right):
        k = np.arange(-15, 16)
        scale, variance = 1.0, gaussian[0] ** 2
        shape = np.exp(-np.abs(k) / scale)
        left.plot(k, shape / shape.sum(), marker="o", markersize=3, label="Laplace")
        shape = np.exp(-(k**2) / (2 * variance))
        left.plot(k, shape / shape.sum(), marker="o", markersize=3, label="Gaussian")
        right.loglog(lengths, laplace, marker="o", markersize=3, label="Laplace: grows like k")
        right.loglog(lengths, gaussian, marker="o", markersize=3, label="Gaussian: grows like the root of k")
        right.set(xlabel="coordinates k that one unit moves by one", ylabel="standard deviation of each")
        right.set_title(f"Gaussian wins from k = {crossing} on")
    print(
        f"epsilon {float(EPSILON):g}, delta {float(DELTA):g}: Gaussian noise is smaller from {crossing} coordinates on"
    )


if __name__ == "__main__":
    main(*sys.argv[1:2])
