"""What the estimators of trees share: bins by declared bounds, one plan, and models that are made of released sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from tacit.arithmetic import to_integer
from tacit.errors import ParameterError
from tacit.learn.base import check_fit_arguments
from tacit.learn.facts import DeclaredParameters
from tacit.learn.labels import check_classes, check_discrete, encode_labels
from tacit.learn.losses import Array
from tacit.learn.one import OneShotEstimator, clip_rows
from tacit.learn.ridge import Ridge
from tacit.learn.tree_averages import LeafSums
from tacit.learn.tree_bins import ColumnBins
from tacit.learn.tree_losses import TreeLoss
from tacit.learn.tree_release import TreeReleases
from tacit.learn.tree_symmetric import SymmetricTree, flatten_trees, restore_trees
from tacit.privacy.guarantee import DpGuarantee
from tacit.privacy.loss import Loss
from tacit.sampling.bits import Bits

_MOST_CELLS = 2**26


class TreeMethod(Protocol):
    """How trees are learned, with noise that is calibrated."""

    @property
    def loss(self) -> TreeLoss | LeafSums:
        """What is minimized, or summed."""

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of a fit."""

    @property
    def releases(self) -> TreeReleases:
        """The noise of the rules and of the leaves."""

    def fit(self, bins: ColumnBins, places: Array, labels: Array, bits: Bits) -> list[SymmetricTree]:
        """The trees, whose values are the noisy sums of their leaves."""

    def explain_values(self, trees: tuple[SymmetricTree, ...], tree: SymmetricTree) -> Array:
        """What one of the trees says of the rows in its leaves."""

    def compute_scores(self, trees: tuple[SymmetricTree, ...], places: Array) -> Array:
        """What all trees say of rows."""

    def compute_importances(self, trees: tuple[SymmetricTree, ...], columns: int) -> Array:
        """How much each column's splits are worth, one in all."""


@dataclass(frozen=True, eq=False)
class TreePlan:
    """All that a fit of trees will do, decided by what is declared."""

    facts: DeclaredParameters
    bins: ColumnBins
    method: TreeMethod
    name: str

    @property
    def loss(self) -> TreeLoss | LeafSums:
        """What is minimized, or summed."""
        return self.method.loss

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of the fit, as the accountants read it."""
        return self.method.privacy_loss

    @property
    def guarantee(self) -> DpGuarantee:
        """The guarantee of the fit."""
        return self.facts.guarantee

    @property
    def cells(self) -> int:
        """How many sums there are at most for the candidates of a split."""
        return sum(self.bins.counts) * self.method.releases.most_leaves * self.loss.outputs

    def weights(self, features: Array, labels: Array, bits: Bits) -> Array:
        """The released trees as one vector, for rows as they lie and labels as the loss takes them."""
        places = self.bins.read(clip_rows(self.facts, features))
        return flatten_trees(self.method.fit(self.bins, places, labels, bits))


class TreeEstimator(OneShotEstimator):
    """An estimator of trees whose rules and sums are released; one row is one unit."""

    _last = "feature_importances_"

    def plan(self, features: int, rows: int | None = None) -> TreePlan:  # type: ignore[override]  # a plan of its own
        """Plan a fit: what it would do and cost. No data is needed.

        Parameters
        ----------
        features : int
            How many columns the rows have.
        rows : int, optional
            How many rows there are, where that is public: under "replace".

        Returns
        -------
        TreePlan
            The bins, the noise of rules and leaves, its privacy loss and its guarantee.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        facts = self.facts(features, rows)
        bins = ColumnBins.of(facts.lower, facts.upper, self.max_bins, self.categorical_features)
        plan = TreePlan(facts, bins, self._method(facts), self._name)
        if plan.cells > _MOST_CELLS:
            what = f"{plan.cells:,} sums would be kept for a split, and {_MOST_CELLS:,} are the most"
            raise ParameterError("max_bins", what, fix="max_bins=63, a lower max_leaf_nodes, or fewer columns")
        return plan

    def fit(  # type: ignore[override]  # the others refuse weights
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        *,
        public: bool = False,
        **refused: object,
    ) -> Self:
        """Learn from rows, at the privacy loss `guarantee_`.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows: one row is one unit. Numbers, NaN only where `missing` says what it is read as.
        y : array of shape (n_rows,)
            The target of each row: a declared class, or a number.
        sample_weight : array of shape (n_rows,), optional
            1 for a row to learn from and 0 for one to leave out; no other weight, which would multiply what a row can
            change.
        public : bool
            Whether the rows are public: the fit then is not charged to a budget.
        **refused : object
            Not accepted; `random_state` is not, since noise that can be repeated protects nobody.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range, or if the rows do not fit what is declared.
        Refused
            Before a value of the data is used, if a budget (`tacit.learn.budget`) does not admit the fit.
        """
        check_fit_arguments(refused)
        return self._fit(X, y, sample_weight, public)

    def take(self, plan: TreePlan, weights: Array) -> Self:
        """Set the fitted attributes from released trees.

        Parameters
        ----------
        plan : TreePlan
            The plan that the trees were released by.
        weights : array
            The released trees, as `TreePlan.weights` returns them.

        Returns
        -------
        self
            The fitted estimator.
        """
        self.guarantee_, self.loss_, self.method_ = plan.guarantee, plan.privacy_loss, plan.name
        self.n_features_in_, self._facts = plan.facts.columns, plan.facts
        self._plan, self._trees = plan, restore_trees(weights, plan.bins, plan.loss.outputs + 1)
        if hasattr(self, "max_iter"):
            self.n_iter_ = plan.method.releases.trees
        self._show()
        self.feature_importances_ = plan.method.compute_importances(self._trees, plan.facts.columns)
        return self

    def apply(self, X: npt.ArrayLike) -> Array:
        """Find the leaf of each row in each tree.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_trees)
            The number of the leaf, from 0 on.
        """
        places = self._places(X)
        return np.column_stack([tree.find_leaves(places) for tree in self._grown])

    def export_text(self, tree: int = 0, *, feature_names: Sequence[str] | None = None, decimals: int = 2) -> str:
        """Write a tree as text: its rules, and the values that it adds to the scores of its leaves.

        Parameters
        ----------
        tree : int
            Which tree, from 0 on.
        feature_names : sequence of str, optional
            The names of the columns; those of the fit, or their places, where it is None.
        decimals : int
            Digits of the values.

        Returns
        -------
        str
            A line for each rule and each leaf.

        Raises
        ------
        ParameterError
            If there is no such tree, or the names do not fit the columns.
        """
        check_is_fitted(self)
        which = to_integer("tree", tree, least=0)
        if which >= len(self._grown):
            raise ParameterError("tree", f"there are {len(self._grown)}", fix="tree=0, the first one")
        names = feature_names if feature_names is not None else getattr(self, "feature_names_in_", None)
        if names is not None and len(names) != self.n_features_in_:
            raise ParameterError("feature_names", f"do not fit {self.n_features_in_} columns", fix="leave them out")
        found = self._grown[which]
        shown = SymmetricTree(found.splits, self._plan.method.explain_values(self._trees, found))
        return shown.describe(self._plan.bins, names, to_integer("decimals", decimals, least=0))

    @property
    def _grown(self) -> tuple[SymmetricTree, ...]:
        """The trees that have rules."""
        return self._trees[self._plan.method.releases.roots :]

    def _places(self, X: npt.ArrayLike) -> Array:
        """The bins of rows for a fitted model."""
        rows = self._again(X)
        return self._plan.bins.read(rows)

    def _scores(self, X: npt.ArrayLike) -> Array:
        """What all trees say of rows, (rows, outputs)."""
        places = self._places(X)
        return self._plan.method.compute_scores(self._trees, places)

    def _learn(self, plan: Any, features: Array, target: Any, bits: Bits) -> None:
        self.take(plan, plan.weights(features, self._encode(target), bits))

    _name: str

    def _method(self, facts: DeclaredParameters) -> TreeMethod:
        """How trees are learned, calibrated to what is declared."""
        raise NotImplementedError

    def _encode(self, target: Array) -> Array:
        """The targets as the loss takes them."""
        raise NotImplementedError

    def _show(self) -> None:
        """Set what a classifier or a regressor has beside the trees."""


class TreeClassifier(ClassifierMixin, TreeEstimator):
    """Trees that tell declared classes apart."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.classes is None or len(self.classes) > 2
        return tags

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predict the class of each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows,)
            A class for each row.
        """
        best = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """Predict the probability of each class.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Probabilities in the order of `classes_`, one in all for each row.
        """
        raise NotImplementedError

    def predict_log_proba(self, X: npt.ArrayLike) -> Array:
        """Predict the logarithm of the probability of each class.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Logarithms of probabilities, in the order of `classes_`.
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _classes(self) -> Array:
        return check_classes(self.classes)

    def _encode(self, target: Array) -> Array:
        return encode_labels(self._classes(), target)

    def _show(self) -> None:
        self.classes_ = self._classes()

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike | None) -> tuple[Array, Any]:
        features, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite())
        check_discrete(target)
        return features, target


class TreeRegressor(RegressorMixin, TreeEstimator):
    """Trees that predict a number within declared bounds."""

    def predict(self, X: npt.ArrayLike) -> Array:
        """Predict the target of each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows,)
            A number for each row, within the declared bounds.
        """
        middle, half = self._target()
        return np.asarray(np.clip(self._scores(X)[:, 0], -1.0, 1.0) * half + middle)

    def _target(self) -> tuple[float, float]:
        """The middle of the targets and half their width."""
        return self._make_scaler()._target()

    def _encode(self, target: Array) -> Array:
        return self._make_scaler()._encode(target)

    def _make_scaler(self) -> Ridge:
        """What scales targets by their bounds to [-1, 1]."""
        return Ridge(target_bounds=self.target_bounds)

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike | None) -> tuple[Array, Any]:
        features, target = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite(), y_numeric=True)
        return features, column_or_1d(target, warn=True)
