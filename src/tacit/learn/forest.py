"""Random forests over the bins of declared bounds, under differential privacy."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy.typing as npt

from tacit.arithmetic import Number
from tacit.learn.facts import BitSource, Bounds, DeclaredParameters, Missing
from tacit.learn.losses import Array
from tacit.learn.tree_averages import AveragedTrees, ClassCounts, TargetSums, plan_averages
from tacit.learn.tree_estimator import TreeClassifier, TreeRegressor


class RandomForestClassifier(TreeClassifier):
    """A forest of decision trees for declared classes, under differential privacy.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit. Proof: `AveragedTrees`
    adds up the losses of all trees, each of which sees every row; columns are drawn without the rows.

    Trees are symmetric, and differ by the columns that each level may choose among. Rows are not drawn again: each is
    in every tree once. `HistGradientBoostingClassifier` mostly learns more at the same epsilon.

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
    n_estimators : int
        How many trees there are, up to 1000. All of them see all rows: with more trees each has more noise.
    max_features : {"sqrt"}, int or number
        Among how many columns, drawn at random, each level chooses its split: the root of their number, a number, or a
        share above 0 and at most 1.
    max_depth : int
        How many levels a tree has, up to 12.
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
        "forest".

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
    >>> model = RandomForestClassifier(epsilon=1, **settings).fit(ages, sick)
    >>> model.predict([[25.0], [75.0]]).tolist()
    [0, 1]
    """

    _name = "forest"

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        classes: Collection[object] | None = None,
        bounds: Bounds | None = None,
        categorical_features: Sequence[int] | Sequence[bool] | None = None,
        n_estimators: int = 5,
        max_features: str | Number = "sqrt",
        max_depth: int = 5,
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
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.max_bins = max_bins
        self.rows = rows
        self.neighbors = neighbors
        self.missing = missing
        self.bits = bits

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
        return self._scores(X)

    def _method(self, facts: DeclaredParameters) -> AveragedTrees:
        return plan_averages(self, facts, ClassCounts(len(self._classes())), self.n_estimators, self.max_features)


class RandomForestRegressor(TreeRegressor):
    """A forest of decision trees for a number within declared bounds, under differential privacy.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit. Proof: `AveragedTrees`
    adds up the losses of all trees, each of which sees every row; columns are drawn without the rows.

    Trees are symmetric, and differ by the columns that each level may choose among. Rows are not drawn again: each is
    in every tree once. `HistGradientBoostingRegressor` mostly learns more at the same epsilon.

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
    n_estimators : int
        How many trees there are, up to 1000. All of them see all rows: with more trees each has more noise.
    max_features : {"sqrt"}, int or number
        Among how many columns, drawn at random, each level chooses its split: the root of their number, a number, or a
        share above 0 and at most 1.
    max_depth : int
        How many levels a tree has, up to 12.
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
        "forest".

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
    >>> model = RandomForestRegressor(epsilon=1, **settings).fit(ages, costs)
    >>> bool(abs(model.predict([[50.0]])[0] - 500) < 200)
    True
    """

    _name = "forest"

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        target_bounds: tuple[Number, Number] | None = None,
        bounds: Bounds | None = None,
        categorical_features: Sequence[int] | Sequence[bool] | None = None,
        n_estimators: int = 5,
        max_features: str | Number = "sqrt",
        max_depth: int = 5,
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
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.max_leaf_nodes = max_leaf_nodes
        self.max_bins = max_bins
        self.rows = rows
        self.neighbors = neighbors
        self.missing = missing
        self.bits = bits

    def _method(self, facts: DeclaredParameters) -> AveragedTrees:
        self._target()
        return plan_averages(self, facts, TargetSums(), self.n_estimators, self.max_features)
