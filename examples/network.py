"""Why gradients are perturbed
===========================

A small network with noise on its weights, and one with noise on its gradients, at the same epsilon.

Without a path the picture is shown, where there is a screen::

    python examples/network.py
    python examples/network.py docs/images/network.svg
"""

from __future__ import annotations

import sys
from fractions import Fraction
from typing import Any

import numpy as np

from tacit.learn.noise import GridGaussian
from tacit.pictures import COLORS, open_figure
from tacit.sampling.bits import ReplayBits

PEOPLE, HIDDEN, STEPS, RATE = 4_000, 12, 150, 2.0
EPSILON, DELTA = Fraction(1), Fraction(1, 10**8)
CLIP = Fraction(1)  # the longest gradient of one person
BALL = Fraction(12)  # the longest vector of weights


def moons(people: int, draw: np.random.Generator) -> tuple[Any, Any]:
    """Two half circles, one inside the other's arms: 0 and 1."""
    label = np.arange(people) % 2
    angle = np.pi * draw.random(people)
    x = np.where(label, 1 - np.cos(angle), np.cos(angle)) - 0.5
    y = np.where(label, 0.5 - np.sin(angle), np.sin(angle)) - 0.25
    return np.column_stack([x, y]) + 0.12 * draw.standard_normal((people, 2)), label


def parts(weights: Any) -> tuple[Any, Any, Any, float]:
    """Weights in, their constants, weights out, and the last constant."""
    return (
        weights[: 2 * HIDDEN].reshape(2, HIDDEN),
        weights[2 * HIDDEN : 3 * HIDDEN],
        weights[3 * HIDDEN : -1],
        weights[-1],
    )


def scores(weights: Any, points: Any) -> Any:
    into, shift, out, last = parts(weights)
    return np.tanh(points @ into + shift) @ out + last


def gradients(weights: Any, points: Any, labels: Any) -> Any:
    """The gradient of each person's logistic loss, a row each."""
    into, shift, out, last = parts(weights)
    inner = np.tanh(points @ into + shift)
    pull = 1 / (1 + np.exp(-(inner @ out + last))) - labels
    back = pull[:, None] * out * (1 - inner**2)
    by_input = (points[:, :, None] * back[:, None, :]).reshape(len(points), -1)
    return np.hstack([by_input, back, pull[:, None] * inner, pull[:, None]])


def learned(points: Any, labels: Any, start: Any, noise: GridGaussian | None) -> Any:
    """Steps down the mean gradient, each person's clipped; with noise on the sums if there is one."""
    weights, bits = start.copy(), ReplayBits(b"gradients")
    for _ in range(STEPS):
        each = gradients(weights, points, labels)
        length = np.linalg.norm(each, axis=1)
        total = (each * np.minimum(1, float(CLIP) * (1 - 1e-12) / length)[:, None]).sum(axis=0)
        weights -= RATE * (total if noise is None else noise.release(total, bits)) / len(points)
    return weights


def main(target: str | None = None) -> None:
    draw = np.random.default_rng(7)
    points, labels = moons(PEOPLE, draw)
    test, truth = moons(PEOPLE, draw)
    start = draw.standard_normal(4 * HIDDEN + 1)
    plain = learned(points, labels, start, None)

    # One person may turn the whole training elsewhere: all that bounds the weights is a ball they are clipped to.
    inside = plain * min(1, float(BALL) * (1 - 1e-12) / float(np.linalg.norm(plain)))
    on_weights = GridGaussian.calibrated(EPSILON, DELTA, 2 * BALL, plain.size)
    on_gradients = GridGaussian.calibrated(EPSILON, DELTA, CLIP, plain.size, times=STEPS)
    models = {
        "without noise": plain,
        "noise on the weights": on_weights.release(inside, ReplayBits(b"weights")),
        "noise on the gradients": learned(points, labels, start, on_gradients),
    }
    side = np.linspace(-2, 2, 160)
    grid = np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    with open_figure(target, "", "", "", (10.5, 3.6), panels=3) as panels:
        for axes, (name, weights) in zip(panels, models.items(), strict=True):
            right = float(((scores(weights, test) > 0) == truth).mean())
            print(f"{name}: {right:.1%} right")
            axes.contourf(
                side,
                side,
                scores(weights, grid).reshape(160, 160) > 0,
                levels=[-0.5, 0.5, 1.5],
                colors=COLORS[:2],
                alpha=0.18,
            )
            for label, color in enumerate(COLORS[:2]):
                shown = test[truth == label][:250]
                axes.scatter(shown[:, 0], shown[:, 1], s=5, color=color, linewidths=0)
            price = "" if name == "without noise" else f", epsilon {EPSILON}"
            axes.set_title(f"{name}{price}\n{right:.1%} right", fontsize=10)
            axes.set(xlim=(-2, 2), ylim=(-2, 2), xticks=[], yticks=[])


if __name__ == "__main__":
    main(*sys.argv[1:2])
