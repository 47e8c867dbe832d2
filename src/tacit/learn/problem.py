"""What is learned from: bounded rows, their labels and the public facts about them.

>>> rows = bound_rows([[30, 0], [200, 1]], lower=[0, 0], upper=[100, 1], norm=1.0)
>>> [round(float(np.linalg.norm(row)), 6) for row in rows]
[0.3, 1.0]
"""

from __future__ import annotations

import math
from copy import copy
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import to_integer
from tacit.errors import ParameterError
from tacit.learn.losses import Array, ConvexLoss
from tacit.learn.row_sums import square_lengths
from tacit.privacy.unit import Neighbors

_UNIT = 2.0**-53  # the relative error of one rounding
_LEAST_PENALTY, _MOST_PENALTY = 2.0**-40, 2.0**64  # in units of the largest curvature of a row
_FARTHEST, _NARROWEST = 1e100, 1e-100  # of bounds: squares and quotients of these are doubles
_BLOCK = 1 << 16  # entries that are worked on at a time, so that no second copy is made


@dataclass(frozen=True, eq=False)
class RiskMinimization:
    """Minimize J(w) = sum_i l(w; x_i, y_i) + (penalty/2) |w|^2 over the rows x_i, with |x_i| <= norm.

    Rows that are too long are shortened to the norm here, so every problem has the bound. J is a sum, as with
    scikit-learn's C = 1/penalty: its sensitivity needs no number of rows. `rows` is the declared number, a public one;
    under REPLACE it is the true one. An intercept is a constant feature inside the norm, and regularized like the rest.
    """

    features: Array
    labels: Array
    loss: ConvexLoss
    norm: float
    neighbors: Neighbors
    rows: int
    penalty: float

    def __post_init__(self) -> None:
        _check_norm(self.norm)
        check_positive("penalty", self.penalty)
        to_integer("rows", self.rows, least=1)
        features = np.ascontiguousarray(self.features, dtype=np.float64)
        labels = np.ascontiguousarray(self.labels, dtype=np.float64)
        if features.ndim != 2 or labels.shape != features.shape[:1]:
            raise ParameterError("features", "needs a table with a label a row", fix="give shapes (n, d) and (n,)")
        if self.neighbors is Neighbors.REPLACE and self.rows != len(features):
            raise ParameterError(
                "rows",
                "under replace the number of rows is public, and differs from the one declared",
                fix="count them",
            )
        if not self.loss.admits(labels):
            raise ParameterError("labels", "some are not among those declared", fix="declare every class, or drop them")
        object.__setattr__(self, "features", clip_row_norms(features, self.norm))
        object.__setattr__(self, "labels", labels)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of w: (d,), or (d, k) for k outputs."""
        columns = self.features.shape[1]
        return (columns,) if self.loss.outputs == 1 else (columns, self.loss.outputs)


def with_loss(
    problem: RiskMinimization, planned: tuple[ConvexLoss, float, Neighbors, float], loss: ConvexLoss
) -> RiskMinimization:
    """The problem with another loss of its kind, if it is the one planned for: loss, norm, neighbors and penalty."""
    if (problem.loss, problem.norm, problem.neighbors, problem.penalty) != planned:
        raise ParameterError("problem", "is not the one that was planned for", fix="plan for this problem")
    found = copy(problem)  # the rows are bounded already, and the labels are those of a loss of the same kind
    object.__setattr__(found, "loss", loss)
    return found


def bound_rows(
    features: npt.ArrayLike,
    *,
    lower: npt.ArrayLike,
    upper: npt.ArrayLike,
    norm: float,
    missing: float | None = None,
    constant: float = 0.0,
    factor: float = 1.0,
) -> Array:
    """The features as rows of at most this norm: clipped to the bounds, scaled, shortened, with the constant appended.

    A column in [lower, upper] is scaled by `column_scaling`, and divided by `factor`; NaN is read as `missing` (in the
    column's own units) beforehand. Rows are shortened to sqrt(norm^2 - constant^2), so that with the constant, where it
    is not 0, they have the norm. All of it is a function of the row and of what was declared.
    """
    table = np.array(features, dtype=np.float64, order="C")
    if table.ndim != 2:
        raise ParameterError("features", "needs a table", fix="give the shape (n, d)")
    origin, width = column_scaling(lower, upper, table.shape[1])
    width = width * factor
    low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), origin.shape) for end in (lower, upper))
    _check_norm(norm)
    if missing is not None and not math.isfinite(missing):
        raise ParameterError("missing", "must be a finite number", fix="missing=0, say")
    if not 0 <= constant < norm:
        raise ParameterError("constant", "must be at least 0 and less than the norm", fix="constant=norm/2, say")
    for start in range(0, len(table), _step(table)):
        part = table[start : start + _step(table)]
        absent = np.isnan(part)
        if absent.any():
            if missing is None:
                raise ParameterError("features", "a value is missing", fix="declare what NaN is read as: missing=0")
            part[absent] = missing
        np.clip(part, low, high, out=part)
        part -= origin
        part /= width
    if constant == 0:
        return clip_row_norms(table, norm)
    room = math.sqrt(norm**2 - constant**2) * (1 - 8 * _UNIT)
    longer = np.full((len(table), table.shape[1] + 1), constant)
    longer[:, :-1] = clip_row_norms(table, room)
    return clip_row_norms(longer, norm)


def column_scaling(lower: npt.ArrayLike, upper: npt.ArrayLike, columns: int) -> tuple[Array, Array]:
    """The origin and the width of each column: it is scaled to (x - origin)/width, in [-1, 1].

    The origin is the point of [lower, upper] that is nearest to 0, and the farther end goes to -1 or 1. So an indicator
    stays one, [17, 90] goes to [0, 1], and [-3, 3] to [-1, 1]. A column whose ends are equal goes to 0.
    """
    try:
        low, high = (np.broadcast_to(np.asarray(end, dtype=np.float64), (columns,)) for end in (lower, upper))
    except (TypeError, ValueError):
        raise ParameterError(
            "bounds", f"do not fit {columns} columns", fix="give two numbers, or two a column"
        ) from None
    if not (np.all(np.isfinite(low)) and np.all(np.isfinite(high)) and np.all(low <= high)):
        raise ParameterError("bounds", "must be finite, the lower end first", fix="bounds=(0, 1), say")
    if max(np.max(np.abs(low), initial=0.0), np.max(np.abs(high), initial=0.0)) > _FARTHEST:
        raise ParameterError("bounds", "must be between -1e100 and 1e100", fix="give the column in larger units")
    origin = np.clip(0.0, low, high)
    width = np.maximum(high - origin, origin - low)
    if np.any((width > 0) & (width < _NARROWEST)):
        what = "that differ must differ by 1e-100 or more, and one that is not 0 be as far from it"
        raise ParameterError("bounds", what, fix="give the column in smaller units")
    return origin, np.where(width > 0, width, 1.0)


def clip_row_norms(features: Array, norm: float) -> Array:
    """The rows x min(1, norm/|x|): the same array where no row is too long, otherwise a copy.

    **Theorem.** Each row that is returned is a function of the row that was given, whatever the others and the layout
    are, and no row is longer than `norm`, as a real number. Proof: `add_columns` adds up a row by itself. With
    e = (d + 8) u, u the unit roundoff, the computed length of d numbers has a relative error below e, in any order of
    summation. A row stays if that is at most norm (1 - 2e); otherwise it is scaled to norm (1 - 4e) and rounded, and
    then it would stay.
    """
    slack = (features.shape[1] + 8) * _UNIT
    lengths = np.sqrt(square_lengths(features))
    if not np.all(np.isfinite(lengths)):
        if not np.all(np.isfinite(features)):
            raise ParameterError("features", "are not finite", fix="declare bounds, and what NaN is read as")
        return clip_row_norms(_scale_overflowing_rows(features, lengths, norm), norm)
    long = np.flatnonzero(lengths > norm * (1 - 2 * slack))
    if not long.size:
        return features
    found = features.copy()
    for part in np.array_split(long, max(1, long.size // _step(features))):
        found[part] *= (norm * (1 - 4 * slack) / lengths[part])[:, None]
    return found


def _scale_overflowing_rows(features: Array, lengths: Array, norm: float) -> Array:
    """The rows, of which those whose squares overflow are at least twice the norm still, in the same direction."""
    far = ~np.isfinite(lengths)
    found = features.copy()
    found[far] *= 2 * norm / np.max(np.abs(features[far]), axis=1, keepdims=True)
    return found


def check_positive(name: str, value: float) -> None:
    """Refuse what is no positive finite number."""
    if isinstance(value, bool) or not isinstance(value, float | int) or not 0 < value < math.inf:
        raise ParameterError(name, f"must be a positive number, got {value!r:.40}", fix=f"{name}=1, say")


def check_penalty(loss: ConvexLoss, norm: float, penalty: float) -> None:
    """Refuse a penalty with which weights could leave the range of doubles, whatever the rows and the noise."""
    check_positive("penalty", penalty)
    least, most = (loss.bend * norm**2 * factor for factor in (_LEAST_PENALTY, _MOST_PENALTY))
    if not least <= penalty <= most:
        what = f"of {penalty:.3g} is not between {least:.3g} and {most:.3g}"
        raise ParameterError(
            "penalty", what, fix=f"choose C between {1 / most:.3g} and {1 / least:.3g}, or leave it out"
        )


def _check_norm(norm: float) -> None:
    """Refuse a norm whose square is no ordinary double."""
    check_positive("norm", norm)
    if not 1e-100 <= norm <= 1e100:
        raise ParameterError("norm", "must be between 1e-100 and 1e100", fix="norm=1, with features scaled to it")


def _step(table: Array) -> int:
    """Rows of a block."""
    return max(1, _BLOCK // max(1, int(table.shape[1])))
