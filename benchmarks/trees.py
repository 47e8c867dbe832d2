"""Private trees: constants settled on made-up tables, then accuracy on Adult and on other made-up tables.

    python benchmarks/trees.py                  # all of it, about ten minutes
    python benchmarks/trees.py adult numbers    # these parts; the others are kept as they were measured

Writes benchmarks/trees.json and trees.md, and the picture docs/images/learn-trees.svg.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import adult
import numpy as np
from learn_peers import area
from trees_family import Table, draw_tables
from trees_report import draw_picture, write_report

from learn import coded
from tacit.learn import (
    AdditiveClassifier,
    FitWarning,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    LogisticRegression,
    Ridge,
)

HERE = Path(__file__).parent
STEPS = ((5, 1.0), (10, 0.8), (20, 0.6), (30, 0.5), (60, 0.3))  # trees and their learning rate
DEPTHS = (1, 2, 3)
TABLES = 18
SPLITS = 10
EPSILONS = (0.3, 1.0, 3.0)


def settle() -> list[dict[str, Any]]:
    """The expected accuracy of each candidate on tables of two classes, by their known truth."""
    tables = draw_tables(0, TABLES, 2)
    found = []
    for trees, rate in STEPS:
        for depth in DEPTHS:
            scores = [
                judge(fit_classifier(table, max_iter=trees, learning_rate=rate, max_depth=depth), table)
                for table in tables
            ]
            mean = 100 * float(np.mean(scores))
            found.append({"trees": trees, "rate": rate, "depth": depth, "accuracy": mean})
    return found


def fit_classifier(table: Table, **more: Any) -> Any:
    return HistGradientBoostingClassifier(
        table.epsilon,
        classes=range(table.classes),
        bounds=table.bounds,
        categorical_features=table.categorical,
        rows=len(table.labels),
        **more,
    ).fit(table.features, table.labels)


def judge(model: Any, table: Table, rows: Any = None) -> float:
    """The expected accuracy on test rows, by the truth."""
    chosen = model.predict(table.test if rows is None else rows)
    return float(np.mean(table.truth[np.arange(len(chosen)), chosen]))


def on_adult() -> dict[str, Any]:
    """Accuracy and area under the curve for every split and epsilon."""
    data = adult.load()
    codes = coded(data)
    lengths = [len(values) for values in adult.LISTS.values()]
    numbers = len(adult.NUMBERS)
    high = [1] * numbers + [length - 1 for length in lengths]
    sides: dict[str, dict[str, list[list[float]]]] = {"boosted": {}, "additive": {}, "logistic": {}}
    for epsilon in EPSILONS:
        for seed in range(SPLITS):
            train, test = adult.split(data.rows, seed)
            shared = {"classes": [False, True], "rows": len(train)}
            models = {
                "boosted": HistGradientBoostingClassifier(
                    epsilon,
                    bounds=([0] * len(high), high),
                    categorical_features=list(range(numbers, len(high))),
                    **shared,
                ),
                "additive": AdditiveClassifier(
                    epsilon,
                    bounds=([0] * len(high), high),
                    knots=[AdditiveClassifier().knots] * numbers + lengths,
                    **shared,
                ),
                "logistic": LogisticRegression(epsilon, bounds=(0, 1), norm=13**0.5, **shared),
            }
            for name, model in models.items():
                table = data.features if name == "logistic" else codes
                scores = model.fit(table[train], data.labels[train]).decision_function(table[test])
                hits = float(((scores > 0) == data.labels[test]).mean())
                sides[name].setdefault(str(epsilon), []).append([hits, area(data.labels[test], scores)])
        print(epsilon, {name: np.mean(runs[str(epsilon)], axis=0).round(4).tolist() for name, runs in sides.items()})
    return {"sides": sides, "train": data.rows * 4 // 5}


def on_numbers() -> list[dict[str, Any]]:
    """The share of the variance of the truth that is left, on other tables of numbers to predict; trees and a line."""
    found = []
    for table in draw_tables(1, TABLES, 1):
        shared = {"target_bounds": (-1, 1), "rows": len(table.labels)}
        trees = HistGradientBoostingRegressor(
            table.epsilon, bounds=table.bounds, categorical_features=table.categorical, **shared
        ).fit(table.features, table.labels)
        marks = [mark_categories(table, rows) for rows in (table.features, table.test)]
        low, high = (np.array(end, dtype=float) for end in table.bounds)
        kept = [column for column in range(len(low)) if column not in table.categorical]
        wide = marks[0].shape[1] - len(kept)
        ends = (np.append(low[kept], np.zeros(wide)), np.append(high[kept], np.ones(wide)))
        line = Ridge(table.epsilon, bounds=ends, norm=len(low) ** 0.5, **shared).fit(marks[0], table.labels)
        found.append(
            {
                "rows": len(table.labels),
                "epsilon": table.epsilon,
                "boosted": left(trees.predict(table.test), table),
                "ridge": left(line.predict(marks[1]), table),
            }
        )
    return found


def on_classes() -> list[dict[str, Any]]:
    """The expected accuracy on other tables of two and three classes, beside the best and the largest class."""
    found = []
    for classes in (2, 3):
        for table in draw_tables(1, TABLES // 2, classes):
            found.append(
                {
                    "classes": classes,
                    "rows": len(table.labels),
                    "epsilon": table.epsilon,
                    "boosted": judge(fit_classifier(table), table),
                    "best": float(table.truth.max(axis=1).mean()),
                    "largest": float(table.truth.mean(axis=0).max()),
                }
            )
    return found


def mark_categories(table: Table, rows: Any) -> Any:
    """The numbers, and a mark for each category."""
    kept = [column for column in range(rows.shape[1]) if column not in table.categorical]
    marks = [rows[:, column, None] == np.arange(int(table.bounds[1][column]) + 1) for column in table.categorical]
    return np.column_stack([rows[:, kept], *marks]).astype(float)


def left(predicted: Any, table: Table) -> float:
    """The mean squared distance to the truth, in units of its variance."""
    return float(np.mean((np.clip(predicted, -1, 1) - table.truth) ** 2) / table.truth.var())


PARTS = {"adult": on_adult, "numbers": on_numbers, "classes": on_classes, "settle": settle}


def main(parts: list[str]) -> None:
    warnings.simplefilter("ignore", FitWarning)
    file = HERE / "trees.json"
    found = json.loads(file.read_text()) if file.exists() else {}
    for part in parts or PARTS:
        found[part] = PARTS[part]()
        file.write_text(json.dumps(found, indent=1) + "\n")
    (HERE / "trees.md").write_text(write_report(found))
    if "adult" in found:
        draw_picture(found["adult"], HERE.parent / "docs/images/learn-trees.svg")


if __name__ == "__main__":
    main(sys.argv[1:])
