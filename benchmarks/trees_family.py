"""Made-up tables on which the constants of the trees are settled: numbers and categories, with shapes and interactions.

Each has a truth that is known: for every test row the probability of each class, or the mean of the target. Half of
the columns say nothing; some numbers are skewed, and categories are of very different sizes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

ROWS = (2_000, 8_000, 32_000)
EPSILONS = (0.3, 1.0, 3.0)
TESTS = 4_000


@dataclass(frozen=True, eq=False)
class Table:
    """Rows with labels, test rows with their truth, and what is declared. `classes` is 1 for a regression."""

    features: Array
    labels: Array
    test: Array
    truth: Array  # the probabilities of the classes, or the mean of the target
    bounds: tuple[list[float], list[float]]
    categorical: list[int]
    classes: int
    epsilon: float


def draw_tables(half: int, count: int, classes: int) -> list[Table]:
    """Tables of one half, 0 to settle on and 1 to look at afterwards."""
    draw = np.random.default_rng([29, half, classes])
    return [_draw(draw, ROWS[number % 3], EPSILONS[number // 3 % 3], classes) for number in range(count)]


def _draw(draw: np.random.Generator, rows: int, epsilon: float, classes: int) -> Table:
    total = rows + TESTS
    columns: list[Array] = []
    shapes: list[Array] = []
    low: list[float] = []
    high: list[float] = []
    categorical = []
    for number in range(int(draw.integers(6, 16))):
        kind = draw.choice(["even", "normal", "skewed", "mostly zero", "category", "category"])
        if kind == "category":
            levels = int(draw.integers(2, 30))
            sizes = np.arange(1, levels + 1) ** -draw.uniform(0.2, 1.5)
            column = draw.choice(levels, total, p=sizes / sizes.sum()).astype(np.float64)
            shape = draw.standard_normal((levels, classes))[column.astype(int)]
            categorical.append(number)
            ends = (0.0, levels - 1.0)
        else:
            column, ends = _draw_numbers(draw, str(kind), total)
            places = np.argsort(np.argsort(column)) / total
            shape = np.column_stack([_draw_shape(draw, places) for _ in range(classes)])
        columns.append(column)
        shapes.append(_standardize(shape) * (draw.random() < 0.5) * draw.uniform(0.3, 1.0))
        low.append(ends[0])
        high.append(ends[1])
    scores = np.sum(shapes, axis=0) + 0.3 * draw.standard_normal(classes)
    for _ in range(int(draw.integers(0, 4))):
        one, other = draw.integers(0, len(columns), 2)
        scores = scores + 0.5 * np.outer(
            _standardize(columns[one]) * _standardize(columns[other]) > 0, np.ones(classes)
        )
    scores = _standardize(scores)
    table = np.column_stack(columns)
    if classes == 1:
        truth = np.clip(0.4 * scores[:, 0], -1, 1)
        labels = np.clip(truth + draw.normal(0, draw.choice([0.1, 0.3]), total), -1, 1)
    else:
        if classes == 2:
            scores = np.column_stack([np.zeros(total), scores[:, 0] * draw.choice([1.0, 2.5]) - draw.uniform(0, 2)])
        else:
            scores = scores * draw.choice([1.0, 2.5])
        truth = np.exp(scores - scores.max(axis=1, keepdims=True))
        truth /= truth.sum(axis=1, keepdims=True)
        labels = (draw.random((total, 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Table(table[:rows], labels[:rows], table[rows:], truth[rows:], (low, high), categorical, classes, epsilon)


def _draw_numbers(draw: np.random.Generator, kind: str, count: int) -> tuple[Array, tuple[float, float]]:
    match kind:
        case "even":
            return draw.uniform(0, 1, count), (0.0, 1.0)
        case "normal":
            return np.clip(draw.standard_normal(count), -4, 4), (-4.0, 4.0)
        case "skewed":
            return np.clip(draw.lognormal(0, 1, count), 0, 20), (0.0, 20.0)
        case _:
            return np.where(draw.random(count) < 0.8, 0, np.clip(draw.lognormal(2, 1, count), 0, 100)), (0.0, 100.0)


def _draw_shape(draw: np.random.Generator, places: Array) -> Array:
    """A function of a column's ranks: a line, a step, a bump or a wave."""
    at = draw.uniform(0.15, 0.85)
    match int(draw.integers(4)):
        case 0:
            return places * draw.choice([-1, 1])
        case 1:
            return (places > at) * float(draw.choice([-1, 1]))
        case 2:
            return np.exp(-((places - at) ** 2) / 0.02)
        case _:
            return np.sin(places * draw.uniform(3, 9))


def _standardize(values: Array) -> Array:
    spread = values.std(axis=0)
    return np.asarray((values - values.mean(axis=0)) / np.where(spread > 0, spread, 1))
