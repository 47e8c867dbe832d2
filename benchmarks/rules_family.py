"""Made-up problems on which the constants of the default rules are settled: drawn once, by a fixed seed, and broad.

Each problem has a shape, a number of rows and of columns, a strength of signal, and a truth that is known: for every
test row the probability of each class, or the mean of the target. So a model is judged without the noise of labels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

SHAPES = ("dense", "correlated", "marks", "skewed", "heavy", "flags")
ROWS = (1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 100_000)
COLUMNS = (5, 10, 20, 50, 100, 200)
CELLS = 1_000_000  # rows times columns, at most
SIGNALS = (1.0, 2.5)  # the deviation of the true score: the best accuracy is about 70 % and 84 %
EPSILONS = ((0.1, 1.0), (0.3, 3.0))  # of every other round of the shapes
TESTS = 4_000  # rows to judge by
WAYS = ("line", "bump", "step", "wave")  # what a column of an additive truth does


@dataclass(frozen=True)
class Kind:
    """What a problem is like. `classes` is 1 for a regression; `tight` says that a norm is declared."""

    seed: int
    shape: str
    rows: int
    columns: int
    classes: int
    signal: float
    rare: bool
    sparse: bool
    bent: bool
    tight: bool
    neighbors: str
    epsilons: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Drawn:
    """Rows with labels, test rows with their truth, and what is declared."""

    features: Array
    labels: Array
    test: Array
    truth: Array  # the probabilities of the classes, or the mean of the target
    bounds: tuple[Any, Any]
    norm: float | None


def family(half: int, count: int = 30, *, classes: int | None = None, cells: int = CELLS) -> list[Kind]:
    """Problems of one half, 0 to settle on and 1 to look at afterwards: each trait is drawn on its own."""
    draw = np.random.default_rng([17, half])
    return [_kind(draw, half, number, classes, cells) for number in range(count)]


def wide(half: int) -> list[Kind]:
    """Regressions of many columns, for the width from which products of two columns are too many."""
    draw = np.random.default_rng([19, half])
    sizes = [(rows, columns) for columns in (5, 10, 25, 50, 100, 200, 400, 800) for rows in (2_000, 8_000)]
    shapes = [SHAPES[(half + place) % len(SHAPES)] for place in range(len(sizes))]
    return [
        Kind(1900 + 100 * half + place, shape, *size, 1, *_traits(draw), "add-remove", (0.3, 3.0))
        for place, (shape, size) in enumerate(zip(shapes, sizes, strict=True))
    ]


def additive(half: int, count: int = 12) -> list[Kind]:
    """Problems whose score is a sum of functions of one column each, in [0, 1]."""
    draw = np.random.default_rng([23, half])
    kinds = []
    for number in range(count):
        rows, columns = int(draw.choice((2_000, 8_000, 32_000))), int(draw.choice((2, 4, 8, 16)))
        shape = WAYS[number % len(WAYS)] if number % 2 else "ways"
        traits = _traits(draw)
        kinds.append(
            Kind(2300 + 100 * half + number, shape, rows, columns, 2, *traits, "add-remove", EPSILONS[number % 2])
        )
    return kinds


def _kind(draw: np.random.Generator, half: int, number: int, classes: int | None, cells: int) -> Kind:
    while True:
        rows, columns = int(draw.choice(ROWS)), int(draw.choice(COLUMNS))
        if rows * columns <= cells:
            break
    several = int(draw.choice((2, 2, 2, 3)))
    traits, relation = _traits(draw), str(draw.choice(("add-remove", "add-remove", "add-remove", "replace")))
    prices = EPSILONS[number // len(SHAPES) % 2]
    shape = SHAPES[number % len(SHAPES)]
    seed = 1700 + 100 * half + number
    return Kind(seed, shape, rows, columns, classes or several, *traits, relation, prices)


def _traits(draw: np.random.Generator) -> tuple[float, bool, bool, bool, bool]:
    """The signal, and whether classes are unbalanced, the truth sparse, the truth bent, and a norm declared."""
    chances = draw.random(4) < (1 / 2, 1 / 4, 1 / 3, 1 / 2)
    rare, sparse, bent, tight = chances.tolist()
    return float(draw.choice(SIGNALS)), rare, sparse, bent, tight


@lru_cache(maxsize=256)
def drawn(kind: Kind) -> Drawn:
    """The problem of a kind."""
    draw = np.random.default_rng(kind.seed)
    if kind.shape in (*WAYS, "ways"):
        return _additive(kind, draw)
    table, bounds, norm = _table(kind, draw)
    outputs = kind.classes if kind.classes > 2 else 1
    weights = draw.standard_normal((kind.columns, outputs))
    if kind.sparse:
        weights[draw.permutation(kind.columns)[math.ceil(kind.columns / 10) :]] = 0
    scores = _standard(table @ weights)
    if kind.bent:
        first, second = table.T[draw.integers(0, kind.columns, (2, outputs))]
        scores = _standard(scores + 0.5 * _standard(np.tanh(_standard(first.T)) * np.tanh(_standard(second.T))))
    return _labeled(kind, draw, table, scores, bounds, norm)


def _labeled(
    kind: Kind, draw: np.random.Generator, table: Array, scores: Array, bounds: tuple[Any, Any], norm: float | None
) -> Drawn:
    """Labels by the scores, which have mean 0 and variance 1."""
    rows = kind.rows
    if kind.classes == 1:
        truth = np.clip(0.4 * scores[:, 0], -1, 1)
        labels = np.clip(truth + draw.normal(0, 0.4 / kind.signal, len(truth)), -1, 1)
    else:
        if kind.classes == 2:
            scores = np.column_stack([np.zeros(len(scores)), kind.signal * scores[:, 0]])
            shift = np.array([0.0, -1.2 * kind.signal if kind.rare else 0.0])
        else:
            scores = kind.signal * scores
            shift = np.log(4.0 ** -np.arange(kind.classes)) if kind.rare else np.zeros(kind.classes)
        truth = np.exp(scores + shift)
        truth /= truth.sum(axis=1, keepdims=True)
        labels = (draw.random((len(truth), 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return Drawn(table[:rows], labels[:rows], table[rows:], truth[rows:], bounds, norm)


def _table(kind: Kind, draw: np.random.Generator) -> tuple[Array, tuple[Any, Any], float | None]:
    """Rows, test rows below them, and what is declared. A norm is what a thousand other rows of the law say."""
    count, columns = kind.rows + TESTS + 1_000, kind.columns
    match kind.shape:
        case "dense":
            table, bounds = draw.standard_normal((count, columns)), (-3.0, 3.0)
        case "correlated":  # five columns have a part in common
            common = np.repeat(draw.standard_normal((count, -(-columns // 5))), 5, axis=1)[:, :columns]
            table, bounds = 0.9 * common + 0.44 * draw.standard_normal((count, columns)), (-3.0, 3.0)
        case "marks":
            table, groups = _marks(count, columns, draw)
            return table[:-1_000], (0.0, 1.0), math.sqrt(groups)
        case "skewed":
            table, bounds = draw.lognormal(0, draw.uniform(0.3, 1.2, columns), (count, columns)), (0.0, 10.0)
        case "heavy":
            table, bounds = draw.standard_t(2, (count, columns)), (-2.0, 2.0)
        case _:  # flags, most of them rare
            table, bounds = (draw.random((count, columns)) < draw.beta(1, 4, columns)).astype(np.float64), (0.0, 1.0)
    others = np.clip(table[-1_000:], *bounds) / bounds[1]
    norm = 1.2 * float(np.sqrt(np.mean(np.sum(others**2, axis=1)))) if kind.tight else None
    return table[:-1_000], bounds, norm


def _marks(count: int, columns: int, draw: np.random.Generator) -> tuple[Array, int]:
    """A few numbers in [0, 1], and marks of categories, some frequent and some rare; and how many of both."""
    numbers = max(1, columns // 10)
    parts = [draw.beta(*draw.uniform(0.5, 4, 2), (count, 1)) for _ in range(numbers)]
    for levels in _levels(columns - numbers, draw):
        chances = np.arange(1, levels + 1) ** -draw.uniform(0.3, 2.0)
        which = draw.choice(levels, count, p=chances / chances.sum())
        parts.append((which[:, None] == np.arange(levels)).astype(np.float64))
    return np.hstack(parts), len(parts)


def _levels(rest: int, draw: np.random.Generator) -> Iterator[int]:
    while rest > 0:
        levels = min(rest, int(draw.integers(2, 25)))
        yield levels
        rest -= levels


def _additive(kind: Kind, draw: np.random.Generator) -> Drawn:
    table = draw.beta(*draw.uniform(0.7, 3, (2, kind.columns)), (kind.rows + TESTS, kind.columns))
    total = np.zeros(len(table))
    for column in table.T:
        way = str(draw.choice(WAYS)) if kind.shape == "ways" else kind.shape
        place, size = draw.uniform(0.2, 0.8), draw.standard_normal()
        total += size * _way(way, column, float(place))
    return _labeled(kind, draw, table, _standard(total[:, None]), (0.0, 1.0), None)


def _way(way: str, column: Array, place: float) -> Array:
    match way:
        case "line":
            return column
        case "bump":
            return np.asarray(np.exp(-((column - place) ** 2) / 0.02))
        case "step":
            return (column > place).astype(np.float64)
    return np.asarray(np.sin(2 * math.pi * (column / 0.5 + place)))


def _standard(values: Array) -> Array:
    """With mean 0 and variance 1, far values drawn in: what a column of heavy tails says is bounded."""
    middle, spread = np.median(values, axis=0), np.quantile(values, 0.9, axis=0) - np.quantile(values, 0.1, axis=0)
    near = np.clip((values - middle) / np.where(spread > 0, spread, 1.0), -2, 2)
    return np.asarray((near - near.mean(axis=0)) / np.maximum(near.std(axis=0), 1e-9))
