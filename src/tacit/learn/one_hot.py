"""Columns of categories as marks, one for each declared category: no noise, and no privacy loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from numbers import Number
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import TransformerMixin
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted, validate_data

from tacit.errors import ParameterError
from tacit.learn.base import PrivateEstimator, check_fit_arguments, clear_fitted_attributes
from tacit.learn.losses import Array
from tacit.learn.read_rows import read_rows, read_transformed_rows

_UNKNOWN = ("ignore", "error")
_DROPS = ("first", "if_binary")


class OneHotEncoder(TransformerMixin, PrivateEstimator):
    """Marks of declared categories: for each category of a column, 1 in the rows that have it and 0 in the others.

    **Theorem.** A fit loses nothing. Proof: it reads how many columns there are and their names; categories are
    declared, and a row's marks are a function of that row and of these.

    Which categories occur is private, so they are never read from the data: one that a single person has would be
    released. A row has one mark in each column at most, so models of the marks take `bounds=(0, 1)` and a `norm` of the
    root of the number of columns that were encoded.

    Parameters
    ----------
    categories : sequence of sequences, optional
        For each column all categories that may occur: texts, numbers, or None for what is missing, NaN too. They must
        be declared; "auto" is refused. Anything else is refused too, such as dates, bytes and tuples, and so are
        columns of dates: make texts of them. A value that is none of these is never one of the categories.
    drop : {"first", "if_binary"} or sequence, optional
        A category of each column that has no mark of its own: the first one; the first one of columns with two; or the
        ones named here, one for each column and None for a column that keeps all.
    handle_unknown : {"ignore", "error"}
        What is done where a row has a category that is not declared: it has no mark, or an error is raised, which is
        for whoever holds the rows.

    Attributes
    ----------
    categories_ : list of arrays
        The declared categories of each column.
    drop_idx_ : list or None
        The place of the dropped category of each column, None where none is; None where `drop` is.

    Raises
    ------
    ParameterError
        By `fit`: categories are not declared, are not of these kinds, or do not fit the columns.

    Examples
    --------
    >>> encoder = OneHotEncoder(categories=[["A", "B", "C"], [0, 1]]).fit([["A", 0], ["B", 1]])
    >>> encoder.transform([["B", 1], ["D", 0]]).tolist()
    [[0.0, 1.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 1.0, 0.0]]
    >>> encoder.get_feature_names_out(["ward", "ill"]).tolist()
    ['ward_A', 'ward_B', 'ward_C', 'ill_0', 'ill_1']
    """

    def __init__(
        self,
        categories: Sequence[Sequence[object]] | None = None,
        *,
        drop: str | Sequence[object] | None = None,
        handle_unknown: str = "ignore",
    ) -> None:
        self.categories = categories
        self.drop = drop
        self.handle_unknown = handle_unknown

    def fit(self, X: npt.ArrayLike, y: object = None, *, public: bool = False, **refused: object) -> Self:
        """Check that the declared categories fit the columns. No value is read, and nothing is charged.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)
            The rows, of which only the columns count.
        y : object
            Not used: an encoder has no target.
        public : bool
            Whether the rows are public. Nothing is charged either way.
        **refused : object
            Not accepted: there is nothing that a `sample_weight` or a `random_state` would change.

        Returns
        -------
        self
            The fitted encoder.

        Raises
        ------
        ParameterError
            If categories are not declared, are no texts or numbers, or do not fit the columns, or a column is of dates.
        """
        check_fit_arguments(refused)
        clear_fitted_attributes(self)
        columns = len(self._columns(X, reset=True))
        if self.handle_unknown not in _UNKNOWN:
            what = f"there is no {self.handle_unknown!r:.60}"
            raise ParameterError("handle_unknown", what, fix='handle_unknown="ignore", or "error"')
        found = [_check_column(place, declared) for place, declared in enumerate(self._read_categories(columns))]
        self.drop_idx_ = self._find_dropped(found)
        self.categories_ = found
        return self

    def transform(self, X: npt.ArrayLike) -> Array:
        """Mark the categories of rows.

        Parameters
        ----------
        X : array or data frame of shape (n_rows, n_features)
            The rows to encode, with the columns of the fit.

        Returns
        -------
        array of shape (n_rows, n_marks)
            0 or 1, a mark for each category that is not dropped, column by column.

        Raises
        ------
        ParameterError
            If a column is of dates; with `handle_unknown="error"`, if some rows have a category that is not declared.
        """
        check_is_fitted(self)
        marks = []
        for place, column in enumerate(self._columns(X, reset=False)):
            own = np.column_stack([_is_category(column, category) for category in self.categories_[place]])
            if self.handle_unknown == "error" and not own.any(axis=1).all():
                what = "some rows have a category that is not among the declared ones"
                raise ParameterError("X", what, fix='declare every category that may occur, or handle_unknown="ignore"')
            marks.append(own[:, self._list_marked(place)])
        return np.hstack(marks).astype(np.float64)

    def inverse_transform(self, X: npt.ArrayLike) -> Array:
        """Find the categories of marks.

        Parameters
        ----------
        X : array of shape (n_rows, n_marks)
            Marks, as `transform` returns them.

        Returns
        -------
        array of shape (n_rows, n_features)
            The category of the largest mark; where all are 0 the dropped one, or None.
        """
        check_is_fitted(self)
        widths = [len(self._list_marked(place)) for place in range(len(self.categories_))]
        marks = read_transformed_rows(X, sum(widths))
        found = np.empty((len(marks), len(widths)), dtype=object)
        for place, own in enumerate(np.split(marks, np.cumsum(widths)[:-1], axis=1)):
            kept, known = self._list_marked(place), self.categories_[place]
            dropped = None if self.drop_idx_ is None else self.drop_idx_[place]
            found[:, place] = None if dropped is None else known[dropped]
            some = own.max(axis=1, initial=0.0) > 0
            found[some, place] = [known[kept[best]] for best in own[some].argmax(axis=1)]
        return found

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> Array:
        """Name the marks: the column, and the category.

        Parameters
        ----------
        input_features : sequence of str, optional
            The names of the columns; those of the fit, or x0, x1 and so on, where it is None.

        Returns
        -------
        array of str
            A name for each mark.
        """
        check_is_fitted(self)
        names = _check_feature_names_in(self, input_features)
        found = [
            f"{name}_{self.categories_[place][kept]}"
            for place, name in enumerate(names)
            for kept in self._list_marked(place)
        ]
        return np.array(found, dtype=object)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "categories_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = tags.input_tags.string = tags.input_tags.allow_nan = True
        return tags

    def _columns(self, X: Any, *, reset: bool) -> list[Array]:
        """The columns, each as an array of its own type."""
        if hasattr(X, "iloc"):
            read_rows(X, lambda: validate_data(self, X, reset=reset, skip_check_array=True))
            _check_kinds(list(X.dtypes))
            return [np.asarray(X.iloc[:, place]) for place in range(X.shape[1])]
        table = X if isinstance(X, np.ndarray) or hasattr(X, "toarray") else np.asarray(X, dtype=object)
        _check_kinds([table.dtype])
        read = partial(validate_data, self, table, reset=reset, dtype=None, ensure_all_finite=False)
        return list(read_rows(table, read).T)

    def _read_categories(self, columns: int) -> list[Any]:
        example = "categories=[" + ", ".join(['["A", "B"]'] * min(columns, 3)) + "]"
        if self.categories is None or isinstance(self.categories, str):
            what = "are not declared; which ones occur is private, so they are never read from the data"
            raise ParameterError("categories", what, fix=f"{example}, say: all that may occur")
        found = list(self.categories)
        if len(found) != columns or any(isinstance(each, str) or not np.iterable(each) for each in found):
            what = f"must be a list of categories for each of the {columns} columns"
            raise ParameterError("categories", what, fix=f"{example}, say")
        return found

    def _find_dropped(self, known: list[Array]) -> list[int | None] | None:
        """The place of each column's dropped category."""
        if self.drop is None:
            return None
        if isinstance(self.drop, str):
            if self.drop not in _DROPS:
                raise ParameterError("drop", f"there is no {self.drop!r:.60}", fix='drop="first", or "if_binary"')
            return [0 if self.drop == "first" or len(own) == 2 else None for own in known]
        wanted = list(self.drop)
        if len(wanted) != len(known):
            raise ParameterError("drop", f"must name one category for each of {len(known)} columns", fix='drop="first"')
        found: list[int | None] = []
        for own, category in zip(known, wanted, strict=True):
            places = np.flatnonzero(_is_allowed(category) and _is_category(own, category))
            if category is not None and not len(places):
                raise ParameterError("drop", f"{category!r:.60} is no declared category", fix='drop="first"')
            found.append(int(places[0]) if len(places) else None)
        return found

    def _list_marked(self, place: int) -> list[int]:
        """The places of a column's categories that have marks."""
        dropped = None if self.drop_idx_ is None else self.drop_idx_[place]
        return [each for each in range(len(self.categories_[place])) if each != dropped]


def _check_column(place: int, declared: Sequence[object]) -> Array:
    """The declared categories of a column, in their order."""
    known = list(declared)
    odd = next((each for each in known if not _is_allowed(each)), None)
    if odd is not None:
        what = f"column {place} has a {type(odd).__name__}, and a category is a text, a number or None"
        raise ParameterError(
            "categories", what, fix='declare texts, ["2026-01-31", "b"], say, and make texts of the column'
        )
    found = np.empty(len(known), dtype=object)
    found[:] = known
    if not len(found):
        raise ParameterError("categories", f"column {place} has none", fix='["A", "B"], say, for each column')
    if any(np.count_nonzero(_is_category(found, category)) > 1 for category in found):
        raise ParameterError("categories", f"column {place} has one twice", fix="name each category once")
    return found


def _check_kinds(kinds: list[Any]) -> None:
    """Refuse columns of dates and durations by their type, whatever their values: which they equal depends on units."""
    for place, kind in enumerate(kinds):
        if getattr(kind, "kind", "O") in {"M", "m"}:
            what = f"column {place} is of type {kind!s:.40}, and a category is a text, a number or None"
            raise ParameterError("X", what, fix='make texts of it, X.astype({"day": str}) or X.astype(str), say')


def _is_category(column: Array, category: object) -> Array:
    """Whether each value is the category; all that is missing is alike, and what is no text or number is none.

    A value of another kind is not compared: it may have an error or an array for an answer.
    """
    known = column.astype(object)  # a copy
    absent = np.array([_is_missing(value) for value in known], dtype=bool)
    if _is_missing(category):
        return absent
    known[[not _is_plain(value) for value in known]] = None
    return np.asarray(known == category, dtype=bool)


def _is_plain(value: object) -> bool:
    """Whether a value is a text or a number; NaN is one too."""
    return isinstance(value, str | Number | np.bool_) and not isinstance(value, np.timedelta64)


def _is_allowed(category: object) -> bool:
    """Whether it can be declared: a text, a number, or what is missing."""
    return _is_plain(category) or _is_missing(category)


def _is_missing(value: object) -> bool:
    """Whether a value is None, NaN or the missing value of pandas."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ == "NAType"
