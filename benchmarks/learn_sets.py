"""Private learners with default settings on fifteen data sets: Tacit, diffprivlib, DP-EBM, and scikit-learn.

    python benchmarks/learn_sets.py tacit build/tacit.json       # one side; a stopped run continues where it was
    python benchmarks/learn_sets.py tacit build/tacit.json 5 1   # five seeds, epsilon 1 alone

`python benchmarks/learn.py sets` runs every side, each in an environment of its own, and writes the tables. This file
imports nothing of Tacit before the side is known, since it runs in the others' environments as well.

Five sets are scikit-learn's own, ten are made up here from fixed seeds. Two thirds of the rows are learned from, and
scores are of the rest: accuracy, or the explained variance of a regression. Each seed has a split and noise of its
own. Bounds are the same for every side: figures of one digit. For scikit-learn's own sets
they are the largest values, rounded up.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

SEEDS = 20
EPSILONS = (0.5, 1.0, 3.0)
STRENGTHS = tuple(10.0**power for power in range(-4, 3))  # of C, for the best in hindsight; of alpha their inverses
HINDSIGHT_EPSILON = 1.0
_LEAST = -100.0  # points of a regression that is worse than any constant


@dataclass(frozen=True, eq=False)
class DataSet:
    """Rows with a target, and what is declared of them. `classes` is 0 for a regression."""

    features: Any
    target: Any
    bounds: tuple[Any, Any]
    classes: int
    target_bounds: tuple[float, float] = (0.0, 1.0)

    def split(self, seed: int) -> tuple[Any, Any]:
        """The places of two thirds of the rows, and of the rest."""
        order = np.random.default_rng([15, seed]).permutation(len(self.target))
        return order[: len(order) * 2 // 3], order[len(order) * 2 // 3 :]

    def scaled(self) -> Any:
        """The rows with columns in [-1, 1], for a learner that takes a norm."""
        low, high = (np.broadcast_to(np.asarray(end, dtype=float), self.features.shape[1]) for end in self.bounds)
        return (np.clip(self.features, low, high) - (low + high) / 2) / ((high - low) / 2)


def _digit(values: Any) -> Any:
    """The next number of one digit, 1, 2 or 5, above each."""
    power = 10.0 ** np.floor(np.log10(np.maximum(values, 1e-9)))
    return np.select(
        [values <= power, values <= 2 * power, values <= 5 * power], [power, 2 * power, 5 * power], 10 * power
    )


def _bundled(name: str) -> DataSet:
    from sklearn import datasets

    more = {"scaled": False} if name == "diabetes" else {}
    features, target = getattr(datasets, f"load_{name}")(return_X_y=True, **more)
    bounds = np.zeros(features.shape[1]), _digit(features.max(axis=0))
    if name == "diabetes":
        return DataSet(features, target, bounds, 0, (0.0, 500.0))
    return DataSet(features, target, bounds, len(np.unique(target)))


def _labels(rng: Any, scores: Any) -> Any:
    """Labels of a logistic model whose scores have a deviation of 2.5."""
    return (rng.random(len(scores)) < 1 / (1 + np.exp(-2.5 * (scores - scores.mean()) / scores.std()))).astype(int)


def _numbers(rng: Any, scores: Any) -> Any:
    """Targets between 0 and 100: four fifths of their variance is that of the scores."""
    means = (scores - scores.mean()) / scores.std()
    return np.clip(50 + 10 * means + 5 * rng.standard_normal(len(means)), 0, 100)


def _made_up(name: str) -> DataSet:
    rng = np.random.default_rng([2026, sum(name.encode())])
    normal = rng.standard_normal
    if name == "normal":
        features = normal((2000, 10))
        return DataSet(features, _labels(rng, features @ normal(10)), (-5, 5), 2)
    if name == "skewed":
        logs = normal((3000, 8))
        return DataSet(np.exp(logs), _labels(rng, logs @ normal(8)), (0, 100), 2)
    if name == "flags":
        features = (rng.random((4000, 20)) < rng.beta(1, 4, 20)).astype(float)
        return DataSet(features, _labels(rng, features @ normal(20)), (0, 1), 2)
    if name == "moons":
        from sklearn.datasets import make_moons

        features, target = make_moons(2000, noise=0.25, random_state=7)
        return DataSet(features, target, (-5, 5), 2)
    if name == "five classes":
        target = rng.integers(0, 5, 5000)
        return DataSet(1.2 * normal((5, 10))[target] + normal((5000, 10)), target, (-10, 10), 5)
    if name == "100 columns":
        features = normal((4000, 100))
        return DataSet(features, _labels(rng, features @ normal(100)), (-5, 5), 2)
    if name == "product":
        features = normal((4000, 6))
        return DataSet(features, _labels(rng, features[:, 0] * features[:, 1]), (-5, 5), 2)
    if name == "friedman":
        from sklearn.datasets import make_friedman1

        features, target = make_friedman1(3000, noise=1.0, random_state=7)
        return DataSet(features, target, (0, 1), 0, (0.0, 50.0))
    if name == "incomes":
        logs = 0.7 * normal((3000, 6)) + 10.5
        return DataSet(np.exp(logs), _numbers(rng, logs @ normal(6)), (0, 1e6), 0, (0.0, 100.0))
    assert name == "correlated"
    features = normal((2000, 1)) + 0.5 * normal((2000, 12))
    return DataSet(features, _numbers(rng, features @ normal(12)), (-10, 10), 0, (0.0, 100.0))


BUNDLED = ("iris", "wine", "breast_cancer", "digits", "diabetes")
MADE_UP = ("normal", "skewed", "flags", "moons", "five classes", "100 columns", "product", "friedman", "incomes")
NAMES = (*BUNDLED, *MADE_UP, "correlated")


@cache
def load(name: str) -> DataSet:
    """The data set of this name."""
    return _bundled(name) if name in BUNDLED else _made_up(name)


Fit = Callable[[DataSet, Any, float, int], Callable[[Any], Any]]  # rows, epsilon, seed: a function of the test rows


def _tacit(kind: str, more: dict[str, float] | None = None) -> Fit:
    def fit(data: DataSet, train: Any, epsilon: float, seed: int) -> Callable[[Any], Any]:
        from tacit import learn
        from tacit.errors import ParameterError
        from tacit.sampling.bits import ReplayBits

        declared: dict[str, Any] = {
            "bounds": data.bounds,
            "rows": len(train),
            "bits": partial(ReplayBits, b"%d" % seed),
        }
        if data.classes:
            declared["classes"] = list(range(data.classes))
        else:
            declared["target_bounds"] = data.target_bounds
        model = getattr(learn, kind)(epsilon, **declared, **(more or {}))
        try:
            model.fit(data.features[train], data.target[train], public=True)
        except ParameterError:
            if not more:
                raise
            return lambda rows: np.full(len(rows), np.nan)  # a penalty that is refused predicts nothing
        return lambda rows: model.predict(data.features[rows])

    return fit


def _diffprivlib(kind: str) -> Fit:
    def fit(data: DataSet, train: Any, epsilon: float, seed: int) -> Callable[[Any], Any]:
        from diffprivlib import models

        low, high = (np.broadcast_to(np.asarray(end, dtype=float), data.features.shape[1]) for end in data.bounds)
        rows, more = data.features, {}
        if kind == "LogisticRegression":
            rows, more = data.scaled(), {"data_norm": float(np.sqrt(data.features.shape[1])), "max_iter": 1000}
        elif kind == "LinearRegression":
            more = {"bounds_X": (low, high), "bounds_y": data.target_bounds}
        else:
            more = {"bounds": (low, high)}
        if kind == "RandomForestClassifier":
            more["classes"] = list(range(data.classes))
        model = getattr(models, kind)(epsilon=epsilon, random_state=seed, **more)
        model.fit(rows[train], data.target[train])
        return lambda places: model.predict(rows[places])

    return fit


def _ebm(data: DataSet, train: Any, epsilon: float, seed: int) -> Callable[[Any], Any]:
    from interpret import privacy

    columns = data.features.shape[1]
    ends = np.column_stack([np.broadcast_to(np.asarray(end, dtype=float), columns) for end in data.bounds])
    more: dict[str, Any] = {"epsilon": epsilon, "delta": 1 / len(train) ** 2, "random_state": seed, "n_jobs": 1}
    more |= {"privacy_bounds": ends, "feature_types": ["continuous"] * columns}
    if data.classes:
        model = privacy.DPExplainableBoostingClassifier(**more)
    else:
        low, high = data.target_bounds
        model = privacy.DPExplainableBoostingRegressor(**more, privacy_target_min=low, privacy_target_max=high)
    model.fit(data.features[train], data.target[train])
    return lambda rows: model.predict(data.features[rows])


def _unprotected(data: DataSet, train: Any, epsilon: float, seed: int) -> Callable[[Any], Any]:
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    model = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000) if data.classes else Ridge())
    model.fit(data.features[train], data.target[train])
    return lambda rows: model.predict(data.features[rows])


def learners(side: str, data: DataSet) -> dict[str, Fit]:
    """The learners of a side that take such a target."""
    if side == "scikit-learn":
        return {"linear": _unprotected}
    if side == "ebm":
        return {"DP-EBM": _ebm} if data.classes <= 2 else {}  # it has no more than two classes
    if side == "diffprivlib":
        kinds = ["LogisticRegression", "GaussianNB", "RandomForestClassifier"] if data.classes else ["LinearRegression"]
        return {kind: _diffprivlib(kind) for kind in kinds}
    assert side in {"tacit", "hindsight"}
    linear = "LogisticRegression" if data.classes else "Ridge"
    if side == "hindsight":
        names = [{"C": strength} if data.classes else {"alpha": 1 / strength} for strength in STRENGTHS]
        return {f"{linear} {strength:g}": _tacit(linear, more) for strength, more in zip(STRENGTHS, names, strict=True)}
    kinds = [linear, *(["GaussianNB"] if data.classes else []), *(["AdditiveClassifier"] if data.classes == 2 else [])]
    kinds += ["LinearSVC"] if data.classes == 2 else []
    trees = ("DecisionTree", "RandomForest", "HistGradientBoosting")
    return {
        kind: _tacit(kind)
        for kind in [*kinds, *(f"{tree}{'Classifier' if data.classes else 'Regressor'}" for tree in trees)]
    }


def judge(data: DataSet, fit: Fit, epsilon: float, seed: int) -> float:
    """Points of a hundred on the rows that were not learned from."""
    train, test = data.split(seed)
    said, true = np.asarray(fit(data, train, epsilon, seed)(test)), data.target[test]
    if data.classes:
        return 100 * float(np.mean(said == true))
    return max(_LEAST, 100 * (1 - float(np.mean((said - true) ** 2) / np.var(true))))


def run(side: str, file: Path, seeds: int, chosen: tuple[float, ...] = EPSILONS) -> None:
    """Every data set at every epsilon, one seed after the other; the file is written as results come."""
    found: dict[str, list[float]] = json.loads(file.read_text()) if file.exists() else {}
    written = time.monotonic()
    epsilons = {"scikit-learn": (float("inf"),), "hindsight": (HINDSIGHT_EPSILON,)}.get(side, chosen)
    for seed in range(seeds):
        for name in NAMES:
            for kind, fit in learners(side, load(name)).items():
                for epsilon in epsilons:
                    scores = found.setdefault(f"{name}|{kind}|{epsilon:g}", [])
                    if len(scores) <= seed:
                        scores.append(round(judge(load(name), fit, epsilon, seed), 3))
            if time.monotonic() > written + 5:
                file.write_text(json.dumps(found))
                written = time.monotonic()
        file.write_text(json.dumps(found))
        print(f"{side}: {seed + 1} of {seeds} seeds", file=sys.stderr, flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    Path(sys.argv[2]).parent.mkdir(parents=True, exist_ok=True)
    side, file, *more = sys.argv[1:]
    run(side, Path(file), int(more[0]) if more else SEEDS, tuple(map(float, more[1:])) or EPSILONS)
