"""Which rows was it fitted to?
============================

A forest knows its rows by heart, and shadow models find them. A private model shows hardly anything: not more than its
epsilon allows.

Without a path the picture is shown, where there is a screen::

    python examples/membership.py
    python examples/membership.py docs/images/membership.svg
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
from sklearn.datasets import make_classification
from sklearn.ensemble import ExtraTreesClassifier

from tacit.attacks import attack_membership, plot_membership_attacks
from tacit.learn import LogisticRegression, RepeatedFitWarning

ROWS, COLUMNS = 2000, 10
EPSILON, DELTA = 1.0, 1e-6


def fit_forest(features, labels):
    return ExtraTreesClassifier(10, random_state=0).fit(features, labels)


def fit_private(features, labels):
    bounds = (-4, 4)
    return LogisticRegression(EPSILON, DELTA, bounds=bounds, classes=[0, 1], rows=ROWS // 2).fit(features, labels)


def main(target: str | None = None) -> None:
    warnings.simplefilter("ignore", RepeatedFitWarning)  # each shadow model is a fit, to data that is made up
    features, labels = make_classification(ROWS, COLUMNS, flip_y=0.2, random_state=1)
    found = {
        "a forest, by LiRA": attack_membership(fit_forest, features, labels, shadows=16),
        "a forest, by its labels": attack_membership(fit_forest, features, labels, method="correctness"),
        f"private, epsilon {EPSILON:g}, by LiRA": attack_membership(
            fit_private, np.clip(features, -4, 4), labels, shadows=16
        ),
    }
    for name, result in found.items():
        print(f"{name}: {result}")
    plot_membership_attacks(found, target, epsilon=EPSILON, delta=DELTA)


if __name__ == "__main__":
    main(*sys.argv[1:2])
