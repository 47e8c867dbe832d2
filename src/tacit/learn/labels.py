"""Declared classes, and which of them a label is.

>>> classes = check_classes(["yes", "no"])
>>> classes.tolist(), encode_labels(classes, np.array(["no", "yes", "no"])).tolist()
(['no', 'yes'], [0, 1, 0])
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from tacit.errors import ParameterError
from tacit.learn.losses import Array

_TEXTS = "SU"  # numpy's kinds of texts
_NEITHER = "OMm"  # its kinds of objects, dates and durations


def check_classes(classes: Collection[object] | None) -> Array:
    """The declared classes, sorted. Which labels occur is private, so they are never read from the data."""
    if classes is None:
        what = "are not declared; which labels occur is private"
        raise ParameterError("classes", what, fix="classes=[0, 1], say: all that may occur")
    found = np.asarray(list(classes))
    plain = found.ndim == 1 and found.dtype.kind != "O"
    if not plain or len(np.unique(found)) != len(found) or len(found) < 2:
        what = "must be two different labels or more, of one type"
        raise ParameterError("classes", what, fix='classes=["no", "yes"], say')
    return np.unique(found)


def check_discrete(labels: Array) -> None:
    """Raise ValueError for numbers that are no whole ones: an error of whoever holds the rows, in scikit-learn's words.

    scikit-learn's own check also warns where many different labels occur, which is private.
    """
    if labels.dtype.kind == "f" and not np.all(labels == np.floor(labels)):
        raise ValueError("Unknown label type: continuous. A classifier has discrete classes; regressors take numbers.")


def _describe_kind(labels: Array) -> str:
    """What labels are compared as: texts, numbers, or numpy's letter of what is neither."""
    kind = labels.dtype.kind
    return "text" if kind in _TEXTS else kind if kind in _NEITHER else "number"


def encode_labels(classes: Array, labels: Array) -> Array:
    """The place of each label among the classes. One outside of them is an error of whoever holds the rows."""
    known = np.asarray(labels.tolist()) if labels.dtype.kind == "O" else labels
    if not len(known):
        return np.zeros(0, dtype=np.intp)
    alike = _describe_kind(known) == _describe_kind(classes) != "O"
    found = np.minimum(np.searchsorted(classes, known), len(classes) - 1) if alike else None
    if found is None or not np.all(classes[found] == known):
        more = " Only binary classification is supported." if len(classes) == 2 else ""
        what = f"some rows have a label that is not among the declared classes.{more}"
        raise ParameterError("y", what, fix="declare every class that may occur, or drop these rows by a rule")
    return np.asarray(found)
