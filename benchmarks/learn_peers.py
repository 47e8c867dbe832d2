"""Other libraries on Adult, each in an environment of its own.

    python benchmarks/learn_peers.py diffprivlib adult.npz

The file has the features, the labels, the columns as they are, and for each split the places of its rows. Prints JSON:
for each epsilon the accuracy and the area under the curve of every split.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Predict = Callable[[Any], Any]


def diffprivlib(data: Any, places: Any, epsilon: float, delta: float, seed: int) -> Predict:
    """Objective perturbation, pure epsilon, on the same features, rows within the same norm."""
    from diffprivlib.models import LogisticRegression

    norm = float(data["norm"])
    model = LogisticRegression(epsilon=epsilon, data_norm=norm, max_iter=1000, random_state=seed)
    model.fit(data["features"][places], data["labels"][places])
    return lambda rows: model.predict_proba(data["features"][rows])[:, 1]


def ebm(data: Any, places: Any, epsilon: float, delta: float, seed: int) -> Predict:
    """DP-EBM: boosted trees of one feature each, on the columns as they are, with the same bounds and lists."""
    from interpret.privacy import DPExplainableBoostingClassifier

    low, high = data["low"], data["high"]
    numbers, texts = data["numbers"], data["texts"]
    kinds = ["continuous"] * numbers.shape[1] + ["nominal"] * texts.shape[1]
    bounds = {number: (low[number], high[number]) for number in range(numbers.shape[1])}
    model = DPExplainableBoostingClassifier(
        epsilon=epsilon, delta=delta, feature_types=kinds, privacy_bounds=bounds, random_state=seed, n_jobs=1
    )
    rows = np.concatenate([numbers.astype(object), texts.astype(object)], axis=1)
    model.fit(rows[places], data["labels"][places])
    return lambda chosen: model.predict_proba(rows[chosen])[:, 1]


def area(labels: Any, scores: Any) -> float:
    """The area under the curve: the chance that a positive row scores above a negative one."""
    _, ranks, counts = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(counts) - (counts - 1) / 2
    positive = labels.astype(bool)
    ones, zeros = int(positive.sum()), int((~positive).sum())
    return float((middle[ranks][positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def main() -> None:
    """Every split at every epsilon."""
    warnings.simplefilter("ignore")
    side, path = sys.argv[1], Path(sys.argv[2])
    learn = {"diffprivlib": diffprivlib, "ebm": ebm}[side]
    data = dict(np.load(path, allow_pickle=True))
    found: dict[str, list[list[float]]] = {}
    for epsilon in data["epsilons"].tolist():
        runs = found.setdefault(str(epsilon), [])
        for seed, (train, test) in enumerate(zip(data["train"], data["test"], strict=True)):
            scores = learn(data, train, epsilon, 1 / len(train) ** 2, seed)(test)
            labels = data["labels"][test]
            runs.append([float(((scores > 0.5) == labels).mean()), area(labels, scores)])
        print(f"{side}, epsilon {epsilon}: {np.mean([run[0] for run in runs]):.4f}", file=sys.stderr, flush=True)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
