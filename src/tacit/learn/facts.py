"""What is declared about the data before it is read: all that noise and privacy loss may depend on.

>>> facts = DeclaredParameters.from_settings(columns=2, found=None, epsilon=1, bounds=(0, [100, 1]), rows=1000)
>>> facts.delta, round(facts.inner, 4), round(facts.norm, 4)
(Fraction(1, 1000000), 1.4142, 1.5811)
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number, to_integer, to_rational, to_rational_between
from tacit.errors import ParameterError
from tacit.learn.losses import Array
from tacit.learn.problem import bound_rows, check_positive, clip_row_norms, column_scaling
from tacit.privacy.guarantee import DpGuarantee
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits

Bounds = tuple[npt.ArrayLike, npt.ArrayLike]  # the lower and the upper end, of all columns or of each
Missing = Number | Literal["error"]  # what NaN is read as
BitSource = Bits | Callable[[], Bits]

_ROOM = 1 + 2.0**-40  # above the rounding of a norm
_PRICES = Fraction(1, 10**9), Fraction(10**9)
_MOST_ROWS = 2**40
_FEW_COLUMNS = 4  # up to which an error spells out an end for each
_SHORTEST = 1e-6  # norm, of columns in [-1, 1]


@dataclass(frozen=True, eq=False)
class DeclaredParameters:
    """Public facts: epsilon and delta, a neighbor relation, a number of rows, and how a row is read.

    A row is clipped to [lower, upper], scaled so that each column lies in [-1, 1], divided by `factor`, shortened to
    `inner`, and given a last column of `constant`, 0 where there is none; so its norm is at most `norm`. **A row's
    reading is a function of that row and of what is declared**: a row that is added, removed or replaced changes no
    other row's.
    """

    epsilon: Fraction
    delta: Fraction
    neighbors: Neighbors
    rows: int
    columns: int
    lower: Array
    upper: Array
    inner: float
    constant: float
    missing: float | None
    longest: float | None = None  # of a row in its own units, where no bounds are declared
    factor: float = 1.0  # that all columns are divided by, once they are scaled

    @classmethod
    def from_settings(
        cls,
        *,
        columns: int,
        found: int | None,
        epsilon: Number | None = None,
        delta: Number | None = None,
        bounds: Bounds | None = None,
        norm: Number | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        intercept: Number = 0.5,
        missing: Missing = "error",
    ) -> DeclaredParameters:
        """What these parameters say, or an error that says which one is missing. `found` is the number of rows there.

        Under REPLACE the number of rows is public, and is taken from the data where none is declared.
        """
        price = _price(epsilon)
        relation = read_relation(neighbors)
        count = _rows(rows, found, relation)
        lower, upper, inner = _bounds(bounds, norm, columns)
        share = _real("intercept_scaling", intercept)
        if not 0 <= share <= 1000:
            raise ParameterError("intercept_scaling", "must be at least 0", fix="intercept_scaling=0.5, say")
        return cls(
            price,
            _delta(delta, count),
            relation,
            count,
            columns,
            lower,
            upper,
            inner,
            share * inner,
            _missing(missing),
            None if bounds is not None else _real("norm", norm),
        )

    @property
    def norm(self) -> float:
        """The longest a row can be, with its constant."""
        return math.hypot(self.inner, self.constant) * _ROOM

    @property
    def width(self) -> int:
        """The columns of a row, with the constant."""
        return self.columns + (self.constant > 0)

    @property
    def guarantee(self) -> DpGuarantee:
        """What is promised."""
        return DpGuarantee(self.epsilon, self.delta, self.neighbors)

    def split_off(self, epsilon: Fraction, delta: Fraction) -> DeclaredParameters:
        """The same facts with what is left of epsilon and delta once this part is spent."""
        return replace(self, epsilon=self.epsilon - epsilon, delta=self.delta - delta)

    def with_ranges(self, lower: Array, upper: Array) -> DeclaredParameters:
        """The same facts with columns that are clipped to these ends and scaled by them; they are public by now."""
        return replace(self, lower=lower, upper=upper)

    def with_norm(self, norm: float) -> DeclaredParameters:
        """The same facts with rows that are shortened to this norm, and all of them longer by a factor that is public.

        Rows are read as they were for `inner`, so what was planned for that stands.
        """
        return replace(self, factor=self.factor * norm / self.inner)

    def fill_missing(self, features: Array) -> Array:
        """The rows with NaN as declared."""
        return features if self.missing is None else np.where(np.isnan(features), self.missing, features)

    def read(self, features: Array) -> Array:
        """The rows as they are learned from."""
        return bound_rows(
            self._shorten(features),
            lower=self.lower,
            upper=self.upper,
            norm=self.norm,
            missing=self.missing,
            constant=self.constant,
            factor=self.factor,
        )

    def read_scaled(self, features: Array) -> Array:
        """The rows with columns in [-1, 1], none shortened, without the constant: entry by entry."""
        never = 2 * math.sqrt(self.columns)
        return bound_rows(features, lower=self.lower, upper=self.upper, norm=never, missing=self.missing)

    def read_unscaled(self, features: Array) -> Array:
        """The same rows in their own units, without the constant. What a model says of a row, it says of this."""
        origin, width = self._scaling()
        inside = bound_rows(
            self._shorten(features),
            lower=self.lower,
            upper=self.upper,
            norm=self.inner * _ROOM,
            missing=self.missing,
            factor=self.factor,
        )
        return np.asarray(inside * width + origin)

    def _scaling(self) -> tuple[Array, Array]:
        """The origin and the width of each column, the factor in it."""
        origin, width = column_scaling(self.lower, self.upper, self.columns)
        return origin, width * self.factor

    def _shorten(self, features: Array) -> Array:
        """Where a norm alone is declared, rows that keep their direction: no column is clipped before."""
        if self.longest is None:
            return features
        if self.missing is None:
            return clip_row_norms(np.asarray(features, dtype=np.float64), self.longest)
        return clip_row_norms(np.where(np.isnan(features), self.missing, features), self.longest)

    def in_units(self, weights: Array) -> tuple[Array, Array]:
        """Return (coefficients, intercept) with read_unscaled(x) coefficients + intercept = read(x) weights."""
        origin, width = self._scaling()
        scale = width if weights.ndim == 1 else width[:, None]
        coefficients = weights[: self.columns] / scale
        constant = self.constant * weights[self.columns] if self.constant else np.zeros(weights.shape[1:])
        return coefficients, np.asarray(constant - origin @ coefficients)


def _price(epsilon: Number | None) -> Fraction:
    if epsilon is None:
        raise ParameterError("epsilon", "is not declared, so no noise is enough", fix="epsilon=1.0, say")
    price = to_rational("epsilon", epsilon)
    if price <= 0:
        raise ParameterError("epsilon", f"must be positive, got {epsilon!s:.40}", fix="epsilon=1.0, say")
    return to_rational_between("epsilon", price, *_PRICES)


def _delta(delta: Number | None, rows: int) -> Fraction:
    """The delta declared, or 1/rows^2. From 1/rows on, a mechanism that publishes one row whole would be allowed."""
    if delta is None:
        return Fraction(1, max(rows, 2) ** 2)
    found = to_rational("delta", delta)
    if not 0 <= found < 1:
        raise ParameterError("delta", f"must be in [0, 1), got {delta}", fix="delta=1e-9, say, or None for 1/rows^2")
    if found * rows >= 1:
        warnings.warn(
            f"delta = {float(found):g} is not below 1/rows = {1 / rows:g}: publishing a row at random would satisfy it",
            stacklevel=2,
        )
    return found


def read_relation(neighbors: str) -> Neighbors:
    """The neighbor relation of this name."""
    try:
        return Neighbors(neighbors)
    except ValueError:
        names = " or ".join(f'"{known}"' for known in Neighbors)
        raise ParameterError(
            "neighbors", f"is not a neighbor relation: {neighbors!r:.60}", fix=f"neighbors={names}"
        ) from None


def _rows(rows: int | None, found: int | None, relation: Neighbors) -> int:
    if relation is Neighbors.REPLACE:
        if rows is not None and found is not None and to_integer("rows", rows, least=1) != found:
            fix = "leave rows out: it is counted"
            raise ParameterError("rows", "under replace the number of rows is public, and this is not it", fix=fix)
        rows = found if rows is None else rows
    if rows is None:
        what = "is not declared, and adding or removing a row changes it, so it is not read from the data"
        raise ParameterError("rows", what, fix="say about how many there are: rows=10_000")
    found = to_integer("rows", rows, least=1)
    if found > _MOST_ROWS:
        raise ParameterError("rows", f"are more than {_MOST_ROWS:,}", fix="say about how many there are: rows=10_000")
    return found


def _bounds(bounds: Bounds | None, norm: Number | None, columns: int) -> tuple[Array, Array, float]:
    """The ends of each column, and the longest row once scaled. Where only a norm is declared, it is the scale."""
    if norm is not None:
        norm = _real("norm", norm)
        check_positive("norm", norm)
    if bounds is None:
        if norm is None:
            what = "are not declared, and are never read from the data"
            raise ParameterError("bounds", what, fix="bounds=(0, 1), or (lows, highs) with a number a column")
        if not 1e-100 <= norm <= 1e100:
            raise ParameterError("norm", "must be between 1e-100 and 1e100", fix="norm=1, with features scaled to it")
        bounds, norm = (-norm, norm), 1.0
    if norm is not None and norm < _SHORTEST:
        what = f"must be {_SHORTEST:g} or more: columns are scaled to [-1, 1]"
        raise ParameterError("norm", what, fix="norm=1, say")
    try:
        lower, upper = (np.broadcast_to(np.asarray(end, dtype=np.float64), (columns,)) for end in bounds)
    except (TypeError, ValueError):
        what = f"do not fit {columns} columns"
        raise ParameterError(
            "bounds", what, fix="give a pair: two numbers, or two lists with a number a column"
        ) from None
    column_scaling(lower, upper, columns)
    varying = int(np.sum(lower < upper))
    if not varying:
        ends = f"({[0] * columns}, {[100] * columns})" if columns <= _FEW_COLUMNS else "(0, 100)"
        what = "leave no column that can vary: each lower end is the upper one"
        raise ParameterError("bounds", what, fix=f"bounds={ends}, say: the lower ends, then the upper ends")
    longest = math.sqrt(varying)
    return lower, upper, longest if norm is None else min(norm, longest)


def _missing(missing: Missing) -> float | None:
    return None if isinstance(missing, str) and missing == "error" else _real("missing", missing)


def _real(name: str, value: Any) -> float:
    """A finite number."""
    return float(to_rational(name, value))
