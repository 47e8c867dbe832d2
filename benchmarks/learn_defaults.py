"""Default settings on made-up problems that are hard on them, and on the data sets that scikit-learn brings along.

    python benchmarks/learn_defaults.py            # some ten minutes on one core; writes benchmarks/learn_defaults.md
    python benchmarks/learn_defaults.py regression # one part: bundled, warnings, regression, first or held-out
    python benchmarks/learn_defaults.py --settle   # what each candidate of a constant does on the first half

Columns are skewed, heavy-tailed, mostly zero, far from the middle of their bounds, or declared a hundred times too
wide; rows are few, classes many. The constants of learned scalings were chosen on the first half. The second half has
other seeds and other distributions, and decided nothing; no more did the real data.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from environment import HERE, say
from numpy.typing import NDArray
from report import table
from scipy.stats import rankdata
from threadpoolctl import threadpool_limits

from tacit.errors import Failed, ParameterError
from tacit.learn import (
    LinearSVC,
    LogisticRegression,
    NoSignalWarning,
    Ridge,
    column_ranges,
    learned_scaling,
    moment_shrinkage,
    row_norm,
)
from tacit.sampling.bits import ReplayBits

Array = NDArray[Any]

TESTS = 2_000  # rows to judge by
STRENGTHS = tuple(10.0**power for power in range(-4, 3))  # of C, for the best in hindsight; of alpha their inverses
ROWS = (150, 300, 500, 1_000, 2_000, 5_000, 20_000)
COLUMNS = (2, 4, 8, 16, 40)
EPSILONS = (0.5, 1.0, 3.0)
SPLITS = 20  # of a real data set
REPORTED = 2  # problems of a shape on the page, the first ones
FITS = 2  # of each model, with other noise
WARNED, SEEN = 8, 4  # problems of a shape for the table of warnings, and for its thresholds
SKILL = 2.0  # points above the most frequent class, from which a model is said to have learned something
MOST_CLASSES = 20  # of a bundled data set; what has more values is a number
TARGETS = (-4.0, 4.0)  # of a regression, whose scores have variance 1
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
    """Rows with labels and numbers, and test rows with the probability of each class and the mean of the number."""

    features: Array
    labels: Array
    numbers: Array
    test: Array
    truth: Array
    means: Array
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
    means = scores[:, 0] / 2.5
    scores = np.column_stack([np.zeros(len(scores)), scores]) if kind.classes == 2 else scores
    truth = np.exp(scores)
    truth /= truth.sum(axis=1, keepdims=True)
    labels = (rng.random((len(truth), 1)) > truth.cumsum(axis=1)[:, :-1]).sum(axis=1)
    numbers = means + 0.5 * rng.standard_normal(len(means))
    count = kind.rows
    return Known(values[:count], labels[:count], numbers[:count], values[count:], truth[count:], means[count:], bounds)


def _scale(values: Array) -> Array:
    return np.maximum(np.quantile(np.abs(values), 0.5, axis=0), 1e-9)


def _standard(values: Array) -> Array:
    return np.asarray((values - values.mean(axis=0)) / np.maximum(values.std(axis=0), 1e-9))


def fit(kind: Hard, model: type, again: int = 0, **more: Any) -> Any:
    """A model of the problem, with the noise of this number; None where it is refused."""
    problem = drawn(kind)
    bits = partial(ReplayBits, f"{kind.seed} {again}".encode())
    settings = {"bounds": problem.bounds, "rows": kind.rows, "bits": bits, **more}
    try:
        if model is Ridge:
            found = Ridge(kind.epsilon, target_bounds=TARGETS, **settings)
            return found.fit(problem.features, problem.numbers, public=True)
        classes = list(range(kind.classes))
        return model(kind.epsilon, classes=classes, **settings).fit(problem.features, problem.labels, public=True)
    except (ParameterError, Failed):
        return None


def score(kind: Hard, fitted: Any) -> float:
    """The chance to be right on a test row, or the explained variance of a regression, in points of a hundred.

    What is below zero counts as zero: a constant is as good.
    """
    problem, said = drawn(kind), fitted.predict(drawn(kind).test)
    if isinstance(fitted, Ridge):
        return max(0.0, 100 * (1 - float(np.mean((said - problem.means) ** 2) / np.var(problem.means))))
    return 100 * float(np.take_along_axis(problem.truth, said[:, None], axis=1).mean())


def judge(kind: Hard, model: type, **more: Any) -> float:
    """The mean of `score` over noise. NaN where the fit is refused."""
    fits = [fit(kind, model, again, **more) for again in range(FITS)]
    return float("nan") if None in fits else float(np.mean([score(kind, fitted) for fitted in fits]))


def models(kind: Hard) -> list[type]:
    """The estimators that a problem is for."""
    return [LogisticRegression, *([LinearSVC] if kind.classes == 2 else []), Ridge]


@contextmanager
def having(module: Any, name: str, value: Any) -> Iterator[None]:
    """The module with this constant."""
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


CANDIDATES: dict[tuple[Any, str], Sequence[Any]] = {
    (moment_shrinkage, "_FLOOR"): (0.35, 0.5, 0.7, 1.0),
    (moment_shrinkage, "_EXPLAINED"): (1 / 32, 1 / 16, 1 / 8, 1 / 4),
    (moment_shrinkage, "_LEFT"): (0.0, 0.25, 0.5, 1.0),
    (moment_shrinkage, "_DOUBT"): (1.0, 2.0, 3.0, 4.0),
    (moment_shrinkage, "_CAUTION"): (0.0, 5.0, 10.0, 20.0),
    (learned_scaling, "WORTH_LINEAR"): (0.5, 0.75, 1.0),
    (learned_scaling, "MANY_LINEAR"): (2_000, 5_000, float("inf")),
    (row_norm, "TAIL"): (0.02, 0.05, 0.1, 0.2),
    (row_norm, "_DOUBT"): (0.5, 1.0, 2.0, 3.0),
    (learned_scaling, "AMPLE_NORM"): (20.0, 40.0, 80.0),
    (learned_scaling, "LEAST_NORM"): (4.0, 8.0, 16.0, float("inf")),
    (learned_scaling, "AMPLE_RANGES"): (20.0, 40.0, 80.0),
    (learned_scaling, "LEAST_RANGES"): (12.0, 20.0, 30.0, float("inf")),
    (column_ranges, "TAIL"): (0.05, 0.1, 0.2),
    (column_ranges, "_DOUBT"): (0.5, 1.0, 2.0),
}


def settle() -> None:
    """Print what each candidate does on the first half, one constant after the other, the others as they stand."""
    kinds = problems(0)
    for (module, name), candidates in CANDIDATES.items():
        for candidate in candidates:
            with having(module, name, candidate):
                found = [float(np.mean([judge(kind, model) for model in models(kind)])) for kind in kinds]
            shapes: dict[str, list[float]] = {kind.shape: [] for kind in kinds}
            for kind, right in zip(kinds, found, strict=True):
                shapes[kind.shape].append(right)
            each = " ".join(f"{shape} {np.mean(right):.1f}" for shape, right in shapes.items())
            say(f"{module.__name__} {name} {candidate}: {np.mean(found):.2f} {each}")


def compare(kind: Hard, model: type) -> list[float]:
    """Right by the declared bounds as settings were before, by the defaults, and by the best penalty in hindsight."""
    found = [judge(kind, model, scaling="bounds"), judge(kind, model)]
    names = [{"alpha": 1 / strength} if model is Ridge else {"C": strength} for strength in STRENGTHS]
    return [*found, float(np.nanmax([found[1], *(judge(kind, model, **name) for name in names)]))]


def report_half(half: int, chosen: Sequence[type]) -> list[str]:
    """A table of one half: a line for each shape, and the means."""
    cells = [["columns", "estimator", "before", "now", "best penalty"]]
    every: dict[str, list[list[float]]] = {}
    for shape in (SETTLED, HELD_OUT)[half]:
        found: dict[str, list[list[float]]] = {}
        for kind in problems(half, REPORTED):
            for model in models(kind) if kind.shape == shape else []:
                if model not in chosen:
                    continue
                found.setdefault(model.__name__, []).append(compare(kind, model))
        for name, right in found.items():
            every.setdefault(name, []).extend(right)
            cells.append([shape, name, *(f"{value:.1f}" for value in np.mean(right, axis=0))])
        say(f"{half} {shape}")
    for name, right in every.items():
        cells.append(["**all**", name, *(f"**{value:.1f}**" for value in np.mean(right, axis=0))])
    return [*table(cells), "", *(_count_gaps(name, right) for name, right in every.items())]


def _count_gaps(name: str, right: list[list[float]]) -> str:
    """How many fits are far below the best penalty, or below the declared bounds."""
    before, now, best = np.array(right).T
    words = f"Of {len(now)} fits of `{name}`, {np.sum(best - now > 3)} are more than 3 points below the best penalty in"
    return f"- {words} hindsight, the worst {max(best - now):.1f}; {np.sum(before - now > 1)} are below *before* by 1."


def report_regression() -> list[str]:
    """The tables of `Ridge`, of both halves."""
    return ["The first half:", "", *report_half(0, [Ridge]), "", "Held out:", "", *report_half(1, [Ridge])]


def report_warnings() -> list[str]:
    """How often a fit warns, and how often it has learned something, on both halves."""
    cells = [["half", "warned", "learned nothing", "learned something"]]
    for half in (0, 1):
        count = {(warned, skilled): 0 for warned in (True, False) for skilled in (False, True)}
        for kind in problems(half, SEEN + WARNED)[SEEN * len((SETTLED, HELD_OUT)[half]) :]:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fitted = fit(kind, LogisticRegression)
            skilled = score(kind, fitted) > 100 * drawn(kind).truth.mean(axis=0).max() + SKILL
            count[any(issubclass(each.category, NoSignalWarning) for each in caught), skilled] += 1
        for warned in (True, False):
            name = ("first", "held out")[half]
            cells.append([name, "yes" if warned else "no", str(count[warned, False]), str(count[warned, True])])
    return list(table(cells))


def report_bundled() -> list[str]:
    """scikit-learn's data sets, split in half: with exact bounds, and with ten times the width of what is there."""
    from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine

    cells = [["data", "rows", "columns", "bounds", "epsilon", "before", "now", "standard error", "constant"]]
    for times, words in ((1, "exact"), (10, "ten times too wide")):
        for load in (load_wine, load_iris, load_diabetes, load_breast_cancer, load_digits):
            features, target = load(return_X_y=True)
            bounds = _spread(np.random.default_rng(0), features, times)[1]
            for epsilon in (1.0, 10.0):
                found = np.array([_split(features, target, epsilon, bounds, number) for number in range(SPLITS)])
                error = np.std(found[:, 1] - found[:, 0]) / SPLITS**0.5
                means = [f"{value:.1f}" for value in (*found.mean(axis=0)[:2], error, found.mean(axis=0)[2])]
                rows, columns = features.shape
                name = load.__name__.removeprefix("load_")
                cells.append([name, str(rows // 2), str(columns), words, f"{epsilon:g}", *means])
                say(" ".join(cells[-1]))
            write_page({"bundled": list(table(cells))})
    return list(table(cells))


def _split(features: Array, target: Array, epsilon: float, bounds: Any, number: int) -> list[float]:
    """Scores by the bounds, by the defaults and of a constant, in points of a hundred."""
    order = np.random.default_rng(number).permutation(len(target))
    first, second = order[: len(order) // 2], order[len(order) // 2 :]
    public: dict[str, Any] = {"bounds": bounds, "rows": len(first)}
    is_number = len(np.unique(target)) > MOST_CLASSES
    found = []
    for scaling in ("bounds", "auto"):
        settings = {**public, "scaling": scaling, "bits": partial(ReplayBits, f"split {number}".encode())}
        if is_number:
            model = Ridge(epsilon, target_bounds=(target.min(), target.max()), **settings)
        else:
            model = LogisticRegression(epsilon, classes=np.unique(target).tolist(), **settings)
        model.fit(features[first], target[first], public=True)
        found.append(100 * float(model.score(features[second], target[second])))
    constant = 0.0 if is_number else 100 * float(np.mean(target[second] == np.bincount(target[first]).argmax()))
    return [*found, constant]


HEAD = """# Default settings on columns that are hard on them

Written by `python benchmarks/learn_defaults.py`. Points of a hundred: the chance to be right on a test row, by the true
probabilities, or the explained variance of `Ridge`, where less than none counts as none; mean over problems and noise.
Each shape of columns has two problems, with 150 to 20,000 rows, 2 to 40 columns, two, three or six classes, epsilon
0.5, 1 or 3. `LinearSVC` is on those with two classes.

- *before*: columns scaled by the declared bounds, and nothing learned of them (`scaling="bounds"`).
- *now*: the defaults. The norm of rows and the ranges of columns are learned first, each with an eighth of epsilon or
  less, where rows are enough.
- *best penalty*: the best of the defaults and of seven strengths from 1e-4 to 100, chosen by the truth.

The constants of `learn/learned_scaling.py`, `row_norm.py`, `column_ranges.py` and `moment_shrinkage.py` were chosen on
the first half: `--settle` prints what the candidates do. The second half, of other distributions and seeds, and the
real data decided none of them.
"""
WARNINGS = f"""A fit of `LogisticRegression` has learned something if it is more than {SKILL:g} points above the most
frequent class. The two thresholds of `learn/signal.py` were chosen on {SEEN} problems of each shape of both halves; the
table counts fits of {WARNED} others of each.
"""
BUNDLED = f"""`LogisticRegression`, and `Ridge` on diabetes, from half of the rows; means of {SPLITS} splits, each with
noise of its own, and the standard error of the difference. *constant* is the most frequent class, or the mean.
"""


PARTS: dict[str, tuple[str, str, Callable[[], list[str]]]] = {
    "bundled": ("## Data sets of scikit-learn", BUNDLED, report_bundled),
    "warnings": ("## Which fits warn", WARNINGS, report_warnings),
    "regression": ("## Regression", "", report_regression),
    "first": ("## Classifiers, first half", "", partial(report_half, 0, [LogisticRegression, LinearSVC])),
    "held-out": ("## Classifiers, held out", "", partial(report_half, 1, [LogisticRegression, LinearSVC])),
}


def write_page(measured: dict[str, list[str]]) -> None:
    """Write the page: what was measured now, and what stands there of the other parts."""
    page = HERE / "learn_defaults.md"
    former = page.read_text(encoding="utf-8").split("\n## ") if page.exists() else []
    standing = {"## " + part.split("\n", 1)[0]: "## " + part.rstrip("\n") for part in former[1:]}
    parts = []
    for name, (title, words, _) in PARTS.items():
        if name in measured:
            parts.append("\n".join([title, "", *([words] if words else []), *measured[name]]))
        elif title in standing:
            parts.append(standing[title])
    page.write_text("\n\n".join([HEAD.rstrip("\n"), *parts]) + "\n", encoding="utf-8")


def main() -> None:
    """Measure the parts that are named, or all, and write them into the page."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        if "--settle" in sys.argv[1:]:
            settle()
            return
        for name in sys.argv[1:] or PARTS:
            write_page({name: PARTS[name][2]()})


if __name__ == "__main__":
    main()
