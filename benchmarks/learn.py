"""Private learning: accuracy on Adult, excess risk against n and d, and the time of a large fit; in one run.

    python benchmarks/learn.py               # all of it, about ten minutes
    python benchmarks/learn.py adult risk    # these parts; the others are kept as they were measured
    python benchmarks/learn.py sets          # fifteen data sets; an hour, and a run that is stopped continues
    python benchmarks/learn.py collect       # the same page from what of the sets has been measured so far

Writes benchmarks/learn.json and learn.md, and the pictures docs/images/learn-adult.svg, -risk.svg and -sets.svg. Every
private side has its default settings, and the declarations of `adult.py`. The other libraries run in environments of
their own, made on first use.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import adult
import numpy as np
from environment import HERE, say
from learn_peers import area
from learn_report import markdown, pictures
from peers.environments import Missing, python_of

from tacit.learn import AdditiveClassifier, LogisticRegression

SPLITS = 10
EPSILONS = (0.1, 0.5, 1.0, 4.0)
METHODS = ("output", "objective", "gradient", "newton", "auto")
NORM = 13**0.5  # eight marks and five numbers between 0 and 1: no row is longer
PEERS = {"diffprivlib": "diffprivlib", "ebm": "DP-EBM"}

RISK_EPSILON, RISK_DELTA = 1.0, 1e-9
RISK_ROWS, RISK_COLUMNS = (1_000, 3_000, 10_000, 30_000, 100_000), (4, 8, 16, 32, 64, 128)
RISK_AT = (30_000, 16)  # the other number, while one of them varies
RISK_TRIES = 10

SPEED_ROWS, SPEED_COLUMNS = 1_000_000, 100

SET_SIDES = ("scikit-learn", "diffprivlib", "tacit", "hindsight", "ebm")
WORK = HERE / ".work-learn"  # where a run of the sets continues


def on_adult() -> dict[str, Any]:
    """Accuracy and area under the curve of each side at each epsilon, for every split."""
    data = adult.load()
    splits = [adult.split(data.rows, seed) for seed in range(SPLITS)]
    found: dict[str, Any] = {"rows": data.rows, "train": len(splits[0][0]), "columns": data.features.shape[1]}
    found["sides"] = {"scikit-learn": {"inf": [unprotected(data, *split) for split in splits]}}
    found["chosen"] = {}
    for method in METHODS:
        runs = found["sides"][method] = {}
        for epsilon in EPSILONS:
            runs[str(epsilon)] = [protected(data, *split, method=method, epsilon=epsilon) for split in splits]
            say(f"{method}, epsilon {epsilon}: {np.mean([run[0] for run in runs[str(epsilon)]]):.4f}")
    codes = coded(data)
    found["sides"]["additive"] = {
        str(epsilon): [additive(data, codes, *split, epsilon=epsilon) for split in splits] for epsilon in EPSILONS
    }
    for epsilon in EPSILONS:
        found["chosen"][str(epsilon)] = model_of(data, epsilon, "auto").plan(data.features.shape[1]).name
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "adult.npz"
        low, high = zip(*adult.NUMBERS.values(), strict=True)
        np.savez(
            file,
            features=data.features,
            labels=data.labels,
            norm=NORM,
            low=low,
            high=high,
            numbers=np.column_stack([data.columns[name] for name in adult.NUMBERS]),
            texts=np.column_stack([data.columns[name] for name in adult.LISTS]),
            epsilons=EPSILONS,
            train=[train for train, _ in splits],
            test=[test for _, test in splits],
        )
        for side in PEERS:
            found["sides"][side] = peer(side, file)
    return found


def model_of(data: adult.Adult, epsilon: float, method: str) -> LogisticRegression:
    """Default settings; the number of rows is public here, as it is in what is compared."""
    return LogisticRegression(
        epsilon, classes=[False, True], bounds=(0, 1), norm=NORM, rows=data.rows * 4 // 5, method=method
    )


def protected(data: adult.Adult, train: Any, test: Any, *, method: str, epsilon: float) -> list[float]:
    model = model_of(data, epsilon, method).fit(data.features[train], data.labels[train])
    return judged(model, data, test)


def coded(data: adult.Adult) -> Any:
    """The numbers as they are scaled, and the number of each category."""
    places = [np.array([values.index(value) for value in data.columns[name]]) for name, values in adult.LISTS.items()]
    return np.column_stack([data.features[:, : len(adult.NUMBERS)], *places])


def additive(data: adult.Adult, codes: Any, train: Any, test: Any, *, epsilon: float) -> list[float]:
    """Default settings; a category has a knot of its own."""
    lengths = [len(values) for values in adult.LISTS.values()]
    high = [1] * len(adult.NUMBERS) + [length - 1 for length in lengths]
    model = AdditiveClassifier(
        epsilon,
        classes=[False, True],
        bounds=([0] * len(high), high),
        knots=[AdditiveClassifier().knots] * len(adult.NUMBERS) + lengths,
        rows=data.rows * 4 // 5,
    ).fit(codes[train], data.labels[train])
    scores = model.decision_function(codes[test])
    return [float(((scores > 0) == data.labels[test]).mean()), area(data.labels[test], scores)]


def unprotected(data: adult.Adult, train: Any, test: Any) -> list[float]:
    from sklearn.linear_model import LogisticRegression as Unprotected

    return judged(Unprotected(max_iter=1000).fit(data.features[train], data.labels[train]), data, test)


def judged(model: Any, data: adult.Adult, test: Any) -> list[float]:
    scores = model.decision_function(data.features[test])
    return [float(((scores > 0) == data.labels[test]).mean()), area(data.labels[test], scores)]


def peer(side: str, file: Path) -> dict[str, Any]:
    """Another library's results, or why there are none."""
    try:
        python = python_of(side)
        ran = subprocess.run([python, HERE / "learn_peers.py", side, file], check=True, stdout=subprocess.PIPE)
    except (Missing, OSError, subprocess.CalledProcessError) as problem:
        say(f"{side} is left out: {problem}")
        return {}
    results: dict[str, Any] = json.loads(ran.stdout.splitlines()[-1])
    return results


def on_risk() -> dict[str, Any]:
    """Excess empirical risk, the mean of tries, as rows and as columns grow."""
    methods = METHODS[:-1]
    found: dict[str, Any] = {"rows": {}, "columns": {}}
    for method in methods:
        found["rows"][method] = [excess(rows, RISK_AT[1], method) for rows in RISK_ROWS]
        found["columns"][method] = [excess(RISK_AT[0], columns, method) for columns in RISK_COLUMNS]
        say(f"excess risk, {method}: {', '.join(f'{value:.2g}' for value in found['rows'][method])}")
    return found


def excess(rows: int, columns: int, method: str) -> float:
    """Mean logistic loss above the least: rows on the unit sphere, labels by a logistic model of length 4."""
    from scipy.optimize import minimize

    draw = np.random.default_rng([rows, columns])
    features = draw.standard_normal((rows, columns))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    truth = draw.standard_normal(columns)
    truth *= 4 / np.linalg.norm(truth)
    labels = draw.random(rows) < 1 / (1 + np.exp(-features @ truth))
    signs = np.where(labels, 1.0, -1.0)

    def risk(weights: Any) -> tuple[float, Any]:
        margins = signs * (features @ weights)
        return float(np.logaddexp(0, -margins).mean()), features.T @ (-signs / (1 + np.exp(margins))) / rows

    least = minimize(risk, np.zeros(columns), jac=True, method="L-BFGS-B", options={"gtol": 1e-9}).fun
    model = LogisticRegression(
        RISK_EPSILON, RISK_DELTA, classes=[False, True], norm=1, rows=rows, method=method, fit_intercept=False
    )
    tries = [risk(model.fit(features, labels).coef_[0])[0] - least for _ in range(RISK_TRIES)]
    return float(np.mean(tries))


def on_speed() -> dict[str, Any]:
    """Seconds of one fit, the median of three, and scikit-learn's with the same penalty beside each."""
    from sklearn.linear_model import LogisticRegression as Unprotected

    draw = np.random.default_rng(0)
    features = draw.standard_normal((SPEED_ROWS, SPEED_COLUMNS))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    labels = draw.random(SPEED_ROWS) < 1 / (1 + np.exp(-4 * features @ draw.standard_normal(SPEED_COLUMNS)))
    found = {}
    for method in METHODS[:-1]:
        model = LogisticRegression(1.0, classes=[False, True], norm=1, rows=SPEED_ROWS, method=method)
        strength = 1 / model.plan(SPEED_COLUMNS).method.penalty
        runs = []
        for _ in range(3):
            ours = clocked(model, features, labels)
            theirs = clocked(Unprotected(C=strength, max_iter=1000), features, labels)
            runs.append((ours, theirs, clocked(Unprotected(max_iter=1000), features, labels)))
        found[method] = [float(np.median(column)) for column in zip(*runs, strict=True)]
        say(f"a million rows, {method}: {found[method][0]:.1f} s, lbfgs {found[method][1]:.1f} s")
    return found


def clocked(model: Any, features: Any, labels: Any) -> float:
    start = time.perf_counter()
    model.fit(features, labels)
    return time.perf_counter() - start


def on_sets() -> dict[str, Any]:
    """Points of every side on the data sets of `learn_sets.py`, each in its own environment."""
    for side in SET_SIDES:
        try:
            python = python_of(side) if side in PEERS else Path(sys.executable)
            subprocess.run([python, HERE / "learn_sets.py", side, WORK / f"{side}.json"], check=True)
        except (Missing, OSError, subprocess.CalledProcessError) as problem:
            say(f"{side} is left out: {problem}")
    return collect_sets()


def collect_sets() -> dict[str, Any]:
    """What has been measured so far, in the order of the sides."""
    files = {side: WORK / f"{side}.json" for side in SET_SIDES}
    return {"sides": {side: json.loads(file.read_text()) for side, file in files.items() if file.exists()}}


PARTS = {"sets": on_sets, "adult": on_adult, "risk": on_risk, "speed": on_speed}


def main() -> None:
    """Measure the parts that are named, then tell."""
    chosen = sys.argv[1:] or list(PARTS)
    file = HERE / "learn.json"
    results: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    if chosen == ["collect"]:
        results["sets"], chosen = collect_sets() | {"load": round(os.getloadavg()[0], 1)}, []
        file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    for part in chosen:
        results[part] = PARTS[part]() | {"load": round(os.getloadavg()[0], 1)}
        file.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    page = markdown(results)
    (HERE / "learn.md").write_text(page, encoding="utf-8")
    pictures(results, HERE.parent / "docs" / "images")
    print(page)


if __name__ == "__main__":
    main()
