"""Gradient-boosted trees over the bins of declared bounds, under differential privacy."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from tacit.arithmetic import Number
from tacit.learn.boosted_trees import BoostedTrees
from tacit.learn.facts import BitSource, Bounds, DeclaredParameters, Missing
from tacit.learn.losses import Array
from tacit.learn.tree_estimator import TreeClassifier, TreeRegressor
from tacit.learn.tree_losses import LogisticTreeLoss, MultinomialTreeLoss, SquaredTreeLoss, TreeLoss


class HistGradientBoostingClassifier(TreeClassifier):
    """Gradient-boosted trees for declared classes, under differential privacy.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit. Proof: `BoostedTrees`
    chooses the rule of each level by the exponential mechanism and releases the sums of the leaves with Gaussian noise;
    all else is computed from what these release and from what is declared.

    Trees are symmetric: one rule splits all leaves of a level, so that all rows vote for it. A rule compares a number
    with an end of a bin, or a category with one of them, or parts all categories of a column. Residuals are cut, so a
    wrong label counts for no more than a doubtful one.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, above 0 and below 1; 1/rows^2 where it is None.
    classes : collection, optional
        All labels that may occur, two or more, of one type. They are declared, since which labels occur is private.
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them.
    categorical_features : sequence, optional
        The places of columns of categories, or True or False for each column. Such a column holds whole numbers from 0
        to k - 1, which are its bounds.
    learning_rate : number, optional
        What the steps of each tree are multiplied by, above 0 and at most 1; a rule of public facts where it is None.
    max_iter : int, optional
        How many trees there are, up to 1000; a rule of public facts where it is None. More trees follow the data
        closer, and each has more noise.
    max_depth : int, optional
        How many levels a tree has, up to 12; 2 where it is None.
    max_leaf_nodes : int, optional
        The most leaves of a tree, up to 4096; a level that would have more is not parted by all categories. 64 where it
        is None, or what the levels need.
    max_bins : int
        How many equal parts of its bounds a column of numbers is read in, from 2 to 4096.
    rows : int, optional
        About how many rows there are, from 1 to 2^40. Needed under "add-remove", where the number of rows is private;
        under "replace" they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    feature_importances_ : array of shape (n_features,)
        How much the splits by each column are worth, one in all, by the released sums.
    classes_ : array
        The declared classes, sorted.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.
    method_ : str
        "boosting".
    n_iter_ : int
        How many trees there are.

    Raises
    ------
    ParameterError
        By `fit` and `plan`, before the data is used: a parameter is missing or out of range.

    Examples
    --------
    >>> from functools import partial
    >>> from tacit.sampling.bits import ReplayBits
    >>> ages, sick = [[float(age)] for age in range(20, 80)] * 50, ([0] * 30 + [1] * 30) * 50
    >>> settings = {"classes": [0, 1], "bounds": (18, 90), "rows": 3000, "bits": partial(ReplayBits, b"doc")}
    >>> model = HistGradientBoostingClassifier(epsilon=1, **settings).fit(ages, sick)
    >>> model.predict([[25.0], [75.0]]).tolist()
    [0, 1]
    """

    _name = "boosting"

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        classes: Collection[object] | None = None,
        bounds: Bounds | None = None,
        categorical_features: Sequence[int] | Sequence[bool] | None = None,
        learning_rate: Number | None = None,
        max_iter: int | None = None,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        max_bins: int = 255,
        rows: int | None = None,
        neighbors: str = "add-remove",
        missing: Missing = "error",
        bits: BitSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.max_bins = max_bins
        self.rows = rows
        self.neighbors = neighbors
        self.missing = missing
        self.bits = bits

    def decision_function(self, X: npt.ArrayLike) -> Array:
        """Compute the score of each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            Rows to predict; values are clipped to the bounds as in the fit.

        Returns
        -------
        array of shape (n_rows,) or (n_rows, n_classes)
            The scores: above 0 for the second class of two, else one for each class.
        """
        scores = self._scores(X)
        return scores[:, 0] if scores.shape[1] == 1 else scores

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
        scores = self._scores(X)
        if scores.shape[1] == 1:
            positive = LogisticTreeLoss().compute_probabilities(scores[:, 0])
            return np.column_stack([1 - positive, positive])
        powers = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(powers / powers.sum(axis=1, keepdims=True))

    def _method(self, facts: DeclaredParameters) -> BoostedTrees:
        count = len(self._classes())
        return _plan_boosting(self, facts, LogisticTreeLoss() if count == 2 else MultinomialTreeLoss(count))


class HistGradientBoostingRegressor(TreeRegressor):
    """Gradient-boosted trees for a number within declared bounds, under differential privacy.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit: see
    `HistGradientBoostingClassifier`. Squared errors are minimized, of targets that are scaled to [-1, 1]; a residual
    beyond 1 counts as 1.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit, from 1e-9 to 1e9; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, above 0 and below 1; 1/rows^2 where it is None.
    target_bounds : pair of numbers, optional
        The lower and the upper end of the targets, which are never read from the data. Targets outside are clipped to
        them, and they are scaled to [-1, 1].
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them.
    categorical_features : sequence, optional
        The places of columns of categories, or True or False for each column. Such a column holds whole numbers from 0
        to k - 1, which are its bounds.
    learning_rate : number, optional
        What the steps of each tree are multiplied by, above 0 and at most 1; a rule of public facts where it is None.
    max_iter : int, optional
        How many trees there are, up to 1000; a rule of public facts where it is None. More trees follow the data
        closer, and each has more noise.
    max_depth : int, optional
        How many levels a tree has, up to 12; 2 where it is None.
    max_leaf_nodes : int, optional
        The most leaves of a tree, up to 4096; a level that would have more is not parted by all categories. 64 where it
        is None, or what the levels need.
    max_bins : int
        How many equal parts of its bounds a column of numbers is read in, from 2 to 4096.
    rows : int, optional
        About how many rows there are, from 1 to 2^40. Needed under "add-remove", where the number of rows is private;
        under "replace" they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where the noise is drawn from, or a function that makes such a source for every fit; the operating system's
        generator where it is None.

    Attributes
    ----------
    feature_importances_ : array of shape (n_features,)
        How much the splits by each column are worth, one in all, by the released sums.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.
    method_ : str
        "boosting".
    n_iter_ : int
        How many trees there are.

    Raises
    ------
    ParameterError
        By `fit` and `plan`, before the data is used: a parameter is missing or out of range.

    Examples
    --------
    >>> from functools import partial
    >>> from tacit.sampling.bits import ReplayBits
    >>> ages, costs = [[float(age)] for age in range(20, 80)] * 50, [10.0 * age for age in range(20, 80)] * 50
    >>> settings = {"target_bounds": (0, 1000), "bounds": (0, 100), "rows": 3000, "bits": partial(ReplayBits, b"doc")}
    >>> model = HistGradientBoostingRegressor(epsilon=1, **settings).fit(ages, costs)
    >>> bool(abs(model.predict([[50.0]])[0] - 500) < 100)
    True
    """

    _name = "boosting"

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        target_bounds: tuple[Number, Number] | None = None,
        bounds: Bounds | None = None,
        categorical_features: Sequence[int] | Sequence[bool] | None = None,
        learning_rate: Number | None = None,
        max_iter: int | None = None,
        max_depth: int | None = None,
        max_leaf_nodes: int | None = None,
        max_bins: int = 255,
        rows: int | None = None,
        neighbors: str = "add-remove",
        missing: Missing = "error",
        bits: BitSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.bounds = bounds
        self.categorical_features = categorical_features
        self.learning_rate = learning_rate
        self.max_iter = max_iter
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.max_bins = max_bins
        self.rows = rows
        self.neighbors = neighbors
        self.missing = missing
        self.bits = bits

    def _method(self, facts: DeclaredParameters) -> BoostedTrees:
        self._target()
        return _plan_boosting(self, facts, SquaredTreeLoss())


def _plan_boosting(
    model: HistGradientBoostingClassifier | HistGradientBoostingRegressor, facts: DeclaredParameters, loss: TreeLoss
) -> BoostedTrees:
    """The method by the parameters of an estimator."""
    return BoostedTrees.calibrate(
        facts.epsilon,
        facts.delta,
        loss=loss,
        rows=facts.rows,
        neighbors=facts.neighbors,
        trees=model.max_iter,
        depth=model.max_depth,
        leaves=model.max_leaf_nodes,
        learning_rate=model.learning_rate,
    )
