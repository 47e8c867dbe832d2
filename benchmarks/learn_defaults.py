"""Default settings on made-up problems that are hard on them, and on the data sets that scikit-learn brings along.

    python benchmarks/learn_defaults.py            # a few minutes on one core; writes benchmarks/learn_defaults.md
    python benchmarks/learn_defaults.py --best     # with the best C in hindsight: four times as long
    python benchmarks/learn_defaults.py --settle   # what each candidate of a constant does on the first half

Columns are skewed, heavy-tailed, mostly zero, far from the middle of their bounds, or declared a hundred times too
wide; rows are few, classes many. The constants of `learn/column_ranges.py` were chosen on the first half. The second
half has other seeds and other distributions, and decided nothing; no more did the real data.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from typing import Any

import numpy as np
from environment import HERE, say
from numpy.typing import NDArray
from report import table
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from tacit.errors import Failed, ParameterError
from tacit.learn import LinearSVC, LogisticRegression, column_ranges
from tacit.sampling.bits import ReplayBits

Array = NDArray[Any]

TESTS = 2_000  # rows to judge by
STRENGTHS = (1e-3, 1e-2, 0.1, 1.0)  # of C, for the best in hindsight
ROWS = (150, 300, 500, 1_000, 2_000, 5_000, 20_000)
COLUMNS = (2, 4, 8, 16, 40)
EPSILONS = (0.5, 1.0, 3.0)
SPLITS = 2  # of a real data set
REPORTED = 2  # problems of a shape on the page, the first ones
FITS = 2  # of each model, with other noise
Draw = Callable[[np.random.Generator, int, int], tuple[Array, tuple[Any, Any]]]


def _spread(rng: np.random.Generator, values: Array, times: float) -> tuple[Array, tuple[Any, Any]]:
    """Bounds that are so many times as wide as the values are, around them."""
    middle, half = (values.max(0) + values.min(0)) / 2, (values.max(0) - values.min(0)) / 2
    return values, (middle - times * half, middle + times * half)


def _correlated(rng: np.random.Generator, rows: int, columns: int) -> tuple[Array, tuple[Any, Any]]:
    values = rng.standard_normal((rows, 1)) + 0.5 * rng.standard_normal((rows, columns))
    return values * 10.0 ** rng.integers(-3, 4, columns), (-(10.0**5), 10.0**5)


def _sparse(rng: np.random.Generator, rows: int, columns: int) -> tuple[Array, tuple[Any, Any]]:
    there = rng.random((rows, columns)) < rng.uniform(0.02, 0.3, columns)
    return np.where(there, rng.lognormal(1, 1, (rows, columns)), 0.0), (0.0, 1_000.0)


def _flags(rng: np.random.Generator, rows: int, columns: int) -> tuple[Array, tuple[Any, Any]]:
    return (rng.random((rows, columns)) < rng.beta(1, 4, columns)).astype(np.float64), (0.0, 1.0)


SETTLED: dict[str, Draw] = {
    "tight": lambda rng, rows, columns: (rng.standard_normal((rows, columns)), (-3.0, 3.0)),
    "lognormal": lambda rng, rows, columns: (rng.lognormal(0, 1.5, (rows, columns)), (0.0, 10.0**4)),
    "pareto": lambda rng, rows, columns: (rng.pareto(1.5, (rows, columns)), (0.0, 10.0**4)),
    "wide": lambda rng, rows, columns: (rng.standard_normal((rows, columns)), (-300.0, 300.0)),
    "correlated": _correlated,
    "sparse": _sparse,
    "flags": _flags,
    "ages": lambda rng, rows, columns: (rng.normal(50, 12, (rows, columns)), (0.0, 1_000.0)),
}
HELD_OUT: dict[str, Draw] = {
    "uniform": lambda rng, rows, columns: (rng.uniform(-1, 1, (rows, columns)), (-1.0, 1.0)),
    "gamma": lambda rng, rows, columns: (rng.gamma(0.5, 20, (rows, columns)), (0.0, 10.0**5)),
    "weibull": lambda rng, rows, columns: (rng.weibull(0.6, (rows, columns)), (-(10.0**3), 10.0**3)),
    "student": lambda rng, rows, columns: _spread(rng, rng.standard_t(3, (rows, columns)), 10.0),
    "counts": lambda rng, rows, columns: (
        rng.poisson(rng.uniform(0.1, 30, columns), (rows, columns)) * 1.0,
        (0, 10**4),
    ),
    "incomes": lambda rng, rows, columns: (rng.lognormal(10.5, 0.7, (rows, columns)), (0.0, 10.0**7)),
    "shifted": lambda rng, rows, columns: (rng.normal(-200, 30, (rows, columns)), (-(10.0**4), 10.0**4)),
    "marks": lambda rng, rows, columns: (np.eye(columns)[rng.integers(0, columns, rows)], (0.0, 1.0)),
}


@dataclass(frozen=True)
class Hard:
    """What a problem is like."""

    half: int
    shape: str
    seed: int
    rows: int
    columns: int
    classes: int
    epsilon: float


@dataclass(frozen=True, eq=False)
class Known:
    """Rows with labels, and test rows with the probability of each class."""

    features: Array
    labels: Array
    test: Array
    truth: Array
    bounds: tuple[Any, Any]


def problems(half: int, times: int = 4) -> list[Hard]:
    """The problems of a half: every shape so many times, all else drawn."""
    draw, found = np.random.default_rng([42, half]), []
    for number, shape in enumerate(list((SETTLED, HELD_OUT)[half]) * times):
        rows, columns = int(draw.choice(ROWS)), int(draw.choice(COLUMNS))
        classes, epsilon = int(draw.choice((2, 2, 2, 3, 6))), float(draw.choice(EPSILONS))
        found.append(Hard(half, shape, 4_200 + 1_000 * half + number, rows, columns, classes, epsilon))
    return found


@lru_cache(maxsize=256)
def drawn(kind: Hard) -> Known:
    """The problem of a kind. The score is a sum over ranks of values, so that no column says it all by its tail."""
    rng = np.random.default_rng(kind.seed)
    values, bounds = (SETTLED, HELD_OUT)[kind.half][kind.shape](rng, kind.rows + TESTS, kind.columns)
    ranks = rankdata(values, axis=0) / len(values)
    bent = np.where(rng.random(kind.columns) < 0.5, ranks, _standard(np.arcsinh(values / _scale(values))))
    outputs = 1 if kind.classes == 2 else kind.classes
    scores = 2.5 * _standard(_standard(bent) @ rng.standard_normal((kind.columns, outputs)))
    scores = np.column_stack([np.zeros(len(scores)), scores]) if kind.classes == 2 else scores
    truth = np.exp(scores)
    truth /= truth.sum(axis=1, keepdims=True)
    labels = (rng.random((len(truth), 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    count = kind.rows
    return Known(values[:count], labels[:count], values[count:], truth[count:], bounds)


def _scale(values: Array) -> Array:
    return np.maximum(np.quantile(np.abs(values), 0.5, axis=0), 1e-9)


def _standard(values: Array) -> Array:
    return np.asarray((values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9))


def judge(kind: Hard, model: type, **more: Any) -> float:
    """The chance to be right on a test row, in points of a hundred; the mean over noise. NaN where it is refused."""
    problem, found = drawn(kind), []
    for again in range(FITS):
        bits = partial(ReplayBits, f"{kind.seed} {again}".encode())
        settings = {"classes": list(range(kind.classes)), "bounds": problem.bounds, "rows": kind.rows, "bits": bits}
        try:
            fitted = model(kind.epsilon, **{**settings, **more}).fit(problem.features, problem.labels, public=True)
        except (ParameterError, Failed):
            return float("nan")
        said = fitted.predict(problem.test)
        found.append(100 * float(np.take_along_axis(problem.truth, said[:, None], axis=1).mean()))
    return float(np.mean(found))


def models(kind: Hard) -> list[type]:
    """The estimators that a problem is for."""
    return [LogisticRegression, LinearSVC] if kind.classes == 2 else [LogisticRegression]


@contextmanager
def having(**values: Any) -> Iterator[None]:
    """The module of ranges with these constants."""
    before = {name: getattr(column_ranges, name) for name in values}
    for name, value in values.items():
        setattr(column_ranges, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(column_ranges, name, value)


CANDIDATES: dict[str, tuple[Any, ...]] = {
    "SHARE": (Fraction(1, 8), Fraction(1, 4), Fraction(1, 3), Fraction(1, 2)),
    "LEAST_SIGNAL": (0.0, 3.0, 6.0, 12.0, 24.0, 48.0, float("inf")),
    "TAIL": (0.01, 0.02, 0.05, 0.1),
    "_DOUBT": (0.5, 1.0, 1.5, 2.0, 3.0),
}


def settle() -> None:
    """Print what each candidate does on the first half, one constant after the other, the others as they stand."""
    kinds = problems(0)
    for name, candidates in CANDIDATES.items():
        for candidate in candidates:
            with having(**{name: candidate}):
                found = [float(np.mean([judge(kind, model) for model in models(kind)])) for kind in kinds]
            shapes = {kind.shape: [] for kind in kinds}
            for kind, right in zip(kinds, found, strict=True):
                shapes[kind.shape].append(right)
            each = " ".join(f"{shape} {np.mean(right):.1f}" for shape, right in shapes.items())
            say(f"{name} {candidate}: {np.mean(found):.2f} {each}")


def compare(kind: Hard, model: type, best: bool) -> list[float]:
    """Right by the declared bounds as settings were before, by the defaults, and by the best C in hindsight."""
    found = [judge(kind, model, scaling="bounds"), judge(kind, model)]
    others = [judge(kind, model, C=strength, method="gradient") for strength in STRENGTHS] if best else []
    return [*found, float(np.nanmax([found[1], *others]))] if best else found


def report_half(half: int, best: bool) -> list[str]:
    """A table of one half: a line for each shape, and the means."""
    cells = [["columns", "estimator", "before", "now", *(["best C"] if best else [])]]
    every: dict[str, list[list[float]]] = {}
    for shape in (SETTLED, HELD_OUT)[half]:
        found: dict[str, list[list[float]]] = {}
        for kind in problems(half, REPORTED):
            for model in models(kind) if kind.shape == shape else []:
                found.setdefault(model.__name__, []).append(compare(kind, model, best))
        for name, right in found.items():
            every.setdefault(name, []).extend(right)
            cells.append([shape, name, *(f"{value:.1f}" for value in np.mean(right, axis=0))])
        say(f"{half} {shape}")
    for name, right in every.items():
        cells.append(["**all**", name, *(f"**{value:.1f}**" for value in np.mean(right, axis=0))])
    return list(table(cells))


def report_bundled() -> list[str]:
    """scikit-learn's classifications, split in half a few times: bounds of ten times the width of what is there."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

    cells = [["data", "rows", "columns", "epsilon", "bounds", "before", "now", "most frequent"]]
    for load in (load_breast_cancer, load_wine, load_digits, load_iris):
        features, labels = load(return_X_y=True)
        classes = np.unique(labels).tolist()
        for epsilon in (1.0, 10.0):
            for times, name in ((1, "exact"), (10, "ten times too wide")):
                bounds = _spread(np.random.default_rng(0), features, times)[1]
                found = [_split(features, labels, classes, epsilon, bounds, number) for number in range(SPLITS)]
                right = [f"{100 * value:.1f}" for value in np.mean(found, axis=0)]
                rows, columns = features.shape
                kind = load.__name__.removeprefix("load_")
                cells.append([kind, str(rows // 2), str(columns), f"{epsilon:g}", name, *right])
    return list(table(cells))


def _split(features: Array, labels: Array, classes: list[int], epsilon: float, bounds: Any, number: int) -> list[float]:
    order = np.random.default_rng(number).permutation(len(labels))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    found = []
    for scaling in ("bounds", "auto"):
        bits = partial(ReplayBits, f"split {number}".encode())
        public = {"classes": classes, "bounds": bounds, "rows": len(first), "scaling": scaling, "bits": bits}
        model = LogisticRegression(epsilon, **public).fit(features[first], labels[first], public=True)
        found.append(float(model.score(features[second], labels[second])))
    return [*found, float(np.mean(labels[second] == np.bincount(labels[first]).argmax()))]


HEAD = """# Default settings on columns that are hard on them

Written by `python benchmarks/learn_defaults.py`. Points of a hundred: the chance to be right on a test row, by the true
probabilities, mean over problems and noise. Each shape of columns has two problems, with 150 to 20,000 rows, 2 to 40
columns, two, three or six classes, epsilon 0.5, 1 or 3. `LinearSVC` is on those with two classes.

- *before*: columns scaled by the declared bounds (`scaling="bounds"`), and the former penalty of a hinge.
- *now*: the defaults. Ranges of columns are learned first, with a quarter of epsilon, where rows are enough.
- *best C*, with `--best`: the best of four strengths by noisy gradients, chosen by the truth; with ranges too.

The constants of `learn/column_ranges.py` were chosen on the first half: `--settle` prints what the candidates do. The
second half, of other distributions and seeds, and the real data decided nothing. With fewer than a hundred rows whose
exact bounds are known, ranges cost more than they bring: `scaling="bounds"` is right there.
"""


def main() -> None:
    """Measure, and write the page."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if "--settle" in sys.argv[1:]:
            settle()
            return
        best, parts = "--best" in sys.argv[1:], [HEAD]
        for title, lines in (
            ("## First half", partial(report_half, 0, best)),
            ("## Held out", partial(report_half, 1, best)),
            ("## Data sets of scikit-learn: `LogisticRegression`, half of the rows to learn from", report_bundled),
        ):
            parts += [title, "", *lines(), ""]
            (HERE / "learn_defaults.md").write_text("\n".join(parts), encoding="utf-8")


if __name__ == "__main__":
    main()
