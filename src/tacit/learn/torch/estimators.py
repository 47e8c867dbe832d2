"""Multilayer perceptrons with scikit-learn's face, trained on the CPU with exact noise."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.arithmetic import Number, to_integer, to_rational_between
from tacit.errors import ParameterError
from tacit.learn.facts import BitSource, Bounds, Missing
from tacit.learn.labels import check_classes, check_discrete, encode_labels
from tacit.learn.losses import Array
from tacit.learn.network import MOST_NUMBERS, NetworkLoss, NetworkTraining
from tacit.learn.noise import GridGaussian
from tacit.learn.one import OneShotEstimator, ReleasePlan, scale_rows
from tacit.learn.read_rows import read_new_rows
from tacit.learn.ridge import Ridge
from tacit.learn.torch.accountant import Sampling, TrainingPlan, dyadic_rate
from tacit.learn.torch.private import Private
from tacit.privacy.loss import Loss
from tacit.privacy.unit import Neighbors
from tacit.sampling.bits import Bits
from tacit.sampling.uniform import draw_below

_LEAST_SPEED, _MOST_SPEED = Fraction(1, 10**9), Fraction(10**9)
_LEAST_CLIP, _MOST_CLIP = Fraction(1, 10**6), Fraction(10**6)  # as `Private` has them
_MOST_LAYERS = 50
_MOST_STEPS = 10**7
_SHARE = 20  # a batch is about one part in so many of the rows


@dataclass(frozen=True)
class TrainedRelease:
    """The noisy sums of a planned training, over networks of these widths."""

    training: TrainingPlan
    widths: tuple[int, ...]
    batch: int

    @property
    def privacy_loss(self) -> Loss:
        """The privacy loss of all steps."""
        return self.training.loss(self.training.steps)


@dataclass(frozen=True, eq=False)
class PerceptronPlan(ReleasePlan[TrainedRelease]):
    """All that a fit of a perceptron will do, decided by what is declared."""

    loss: NetworkLoss
    method: NetworkTraining
    name: ClassVar[str] = "noisy Adam"

    def weights(self, features: Array, labels: Array, bits: Bits) -> Array:
        """The weights after the last step as one vector, for rows as they lie and labels as the loss takes them.

        **Theorem.** They are a function of the noisy sums of all steps and of random numbers that are drawn before a
        row is read: what `privacy_loss` says is lost. No row makes it fail: a row whose gradient is not finite adds
        nothing to a sum (`exact`), and weights that have left the range of floats are put back to its ends.
        """
        release, method = self.release, self.method
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(draw_below(2**63, bits))
            network = make_network(release.widths)
        data = _RowsOrNone(torch.from_numpy(scale_rows(self.facts, features)).float(), torch.from_numpy(labels))
        optimizer = torch.optim.Adam(network.parameters(), float(method.learning_rate))
        with Private(
            *(network, optimizer, DataLoader(data, batch_size=release.batch, collate_fn=_keep)),
            noise_multiplier=release.training.multiplier,
            epochs=method.epochs,
            clip=method.clip,
            noise="exact",
            sampling=release.training.sampling,
            rows=self.facts.rows,
            units_per_pass=method.units_per_pass,
            public=True,  # whoever planned it has charged it
            check=False,  # these networks keep examples apart
            bits=bits,
        ) as private:
            assert private.plan == release.training
            for _ in range(private.epochs):
                for rows, targets in private.loader:
                    private.step(_LOSSES[self.loss.name](network(rows), targets))
        found: Array = (
            torch.cat([each.detach().flatten() for each in network.parameters()]).nan_to_num().double().numpy()
        )
        return found


class _RowsOrNone(TensorDataset):
    """Rows, of which there may be none: what fills up a pass, and is not counted, is then a row of zeros."""

    def __getitems__(self, indices: Sequence[int]) -> tuple[Tensor, ...]:
        """All rows of a pass at once, as the loader asks for them."""
        if len(self):
            return tuple(each[torch.as_tensor(indices)] for each in self.tensors)
        return tuple(each.new_zeros(len(indices), *each.shape[1:]) for each in self.tensors)


def _keep(rows: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Rows of a pass that are together already."""
    return rows


def make_network(widths: tuple[int, ...]) -> nn.Sequential:
    """Linear layers of these widths with hyperbolic tangents between them."""
    pairs = [nn.Linear(before, after) for before, after in pairwise(widths)]
    return nn.Sequential(*(layer for pair in pairs for layer in (pair, nn.Tanh())))[:-1]


def _cross_entropy(scores: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(scores, target, reduction="none")


def _squared_error(scores: Tensor, target: Tensor) -> Tensor:
    return (scores[:, 0] - target).square()


_LOSSES = {"cross-entropy": _cross_entropy, "squared": _squared_error}


class _Perceptron(OneShotEstimator):
    """What the classifier and the regressor share: planning, training and reading rows."""

    _last = "network_"

    def _make_loss(self) -> NetworkLoss:
        """The loss, with how many numbers the network returns for a row."""
        raise NotImplementedError

    def plan(self, features: int, rows: int | None = None) -> PerceptronPlan:
        """Plan a fit: what it would do and cost. No data is needed.

        Parameters
        ----------
        features : int
            How many columns the rows have.
        rows : int, optional
            How many rows there are, where that is public: under "replace".

        Returns
        -------
        PerceptronPlan
            The steps and their noise, their privacy loss and guarantee.

        Raises
        ------
        ParameterError
            If a parameter is missing or out of range.
        """
        facts = self.facts(features, rows)
        if facts.delta == 0:
            raise ParameterError("delta", "Gaussian noise needs a delta above 0", fix="delta=1e-9, say")
        loss, hidden = self._make_loss(), self._read_hidden_sizes()
        widths = (features, *hidden, loss.outputs)
        default = max(1, facts.rows // _SHARE)
        wanted = default if self.batch_size is None else to_integer("batch_size", self.batch_size, least=1)
        batch = min(wanted, facts.rows)
        per_epoch = -(-facts.rows // batch)
        epochs = to_integer("epochs", self.epochs, least=1)
        steps = epochs * per_epoch
        if steps > _MOST_STEPS:
            what = f"make {steps:,} steps, and {_MOST_STEPS:,} are the most"
            raise ParameterError("epochs", what, fix="fewer epochs, or a larger batch_size")
        sampling: Sampling = "poisson" if facts.neighbors is Neighbors.ADD_REMOVE else "shuffled"
        coordinates = sum((before + 1) * after for before, after in pairwise(widths))
        if coordinates > MOST_NUMBERS:
            what = f"make {coordinates:,} weights, and {MOST_NUMBERS:,} are the most"
            raise ParameterError("hidden_layer_sizes", what, fix="hidden_layer_sizes=(64,), say")
        speed = to_rational_between("learning_rate", self.learning_rate, _LEAST_SPEED, _MOST_SPEED)
        clip = to_rational_between("clip", self.clip, _LEAST_CLIP, _MOST_CLIP)

        def stray(multiplier: Fraction) -> Fraction:
            return GridGaussian.of(multiplier, Fraction(1), coordinates).stray

        rate = dyadic_rate(Fraction(batch, facts.rows))
        room = facts.delta * (1 - Fraction(1, 10**9))
        if steps * stray(Fraction(1, 16)) > facts.delta - room:  # at its largest where sigma is a power of two
            raise ParameterError("delta", "is too small for the grid of the noise", fix="choose a larger delta")
        found = TrainingPlan.calibrate(facts.epsilon, room, sampling, rate, steps, per_epoch)
        training = replace(found, stray=stray(found.multiplier))
        drawn = (training.sampling, training.rate, steps, training.multiplier, training.stray)
        method = NetworkTraining(widths, batch, epochs, speed, clip, *drawn)
        return PerceptronPlan(facts, TrainedRelease(training, widths, batch), loss, method)

    def _read_hidden_sizes(self) -> tuple[int, ...]:
        """The widths of the layers between the columns and the outputs."""
        given, fix = self.hidden_layer_sizes, "hidden_layer_sizes=(64,), say"
        if isinstance(given, str | bytes) or not isinstance(given, Sequence | np.ndarray):
            raise ParameterError("hidden_layer_sizes", "must be a sequence of widths", fix=fix)
        if len(given) > _MOST_LAYERS:
            raise ParameterError("hidden_layer_sizes", f"has more than {_MOST_LAYERS} layers", fix=fix)
        return tuple(to_integer("hidden_layer_sizes", each, least=1) for each in given)

    def _learn(self, plan: Any, features: Array, target: Any, bits: Bits) -> None:
        self.take(plan, plan.weights(features, self._encode(target), bits))

    def _encode(self, target: Array) -> Array:
        """The targets as the loss takes them."""
        raise NotImplementedError

    def take(self, plan: PerceptronPlan, weights: Array) -> Self:
        """Set the fitted attributes from released weights.

        Parameters
        ----------
        plan : PerceptronPlan
            The plan that the weights were released by.
        weights : array
            The released weights, as `PerceptronPlan.weights` returns them.

        Returns
        -------
        self
            The fitted estimator.
        """
        self.guarantee_, self.loss_, self._facts = plan.guarantee, plan.privacy_loss, plan.facts
        self.n_features_in_ = plan.facts.columns
        self._show()
        network = make_network(plan.release.widths)
        numbers, start = torch.from_numpy(np.asarray(weights, dtype=np.float64)), 0
        with torch.no_grad():
            for each in network.parameters():
                each.copy_(numbers[start : start + each.numel()].reshape(each.shape))
                start += each.numel()
        self.network_ = network.eval()
        return self

    def _show(self) -> None:
        """Set what a classifier has beside the network."""

    def _scores(self, X: npt.ArrayLike) -> Array:
        """What the network returns for rows that are read as those of the fit were, in double precision."""
        check_is_fitted(self)
        features = read_new_rows(self, X)
        found = torch.from_numpy(scale_rows(self._facts, features))
        with torch.no_grad():
            for layer in self.network_:
                if isinstance(layer, nn.Linear):
                    found = F.linear(found, layer.weight.double(), layer.bias.double())
                else:
                    found = layer(found)
        return np.asarray(found.numpy())


class MLPClassifier(ClassifierMixin, _Perceptron):
    """A multilayer perceptron for declared classes, under differential privacy.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit. Proof: `Private` with
    exact noise trains it, by a plan made from what is declared; the first weights are drawn without the data.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, above 0 and below 1; 1/rows^2 where it is None.
    classes : collection, optional
        All labels that may occur, two or more, of one type. They are declared, since which labels occur is private.
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them in a fit and in predictions.
    rows : int, optional
        About how many rows there are. Needed under "add-remove", where the number of rows is private; under "replace"
        they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced, which needs more noise.
    hidden_layer_sizes : sequence of int
        The widths of the layers between the columns and the classes.
    epochs : int
        How often the rows are gone through; more of them need more noise each.
    batch_size : int, optional
        The expected number of rows of a step; a twentieth of the rows where it is None.
    learning_rate : number
        The learning rate of Adam, which moves the weights.
    clip : number
        The clipping norm: the longest gradient that one row may have.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where batches and noise are drawn from, or a function that makes such a source for every fit; the operating
        system's generator where it is None.

    Attributes
    ----------
    network_ : nn.Sequential
        The trained network, on columns scaled from their bounds to [-1, 1].
    classes_ : array
        The declared classes, sorted.
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.

    Raises
    ------
    ParameterError
        By `fit` and `plan`, before the data is used: a parameter is missing or out of range.

    Examples
    --------
    >>> from functools import partial
    >>> from tacit.sampling.bits import ReplayBits
    >>> x = np.stack(np.meshgrid(np.linspace(-1, 1, 40), np.linspace(-1, 1, 25)), -1).reshape(-1, 2)
    >>> model = MLPClassifier(epsilon=8, classes=[0, 1], bounds=(-1, 1), rows=1000, hidden_layer_sizes=(8,), epochs=3)
    >>> model = model.set_params(bits=partial(ReplayBits, b"doc")).fit(x, (x[:, 0] > 0).astype(int))
    >>> model.predict([[-0.8, 0.0], [0.8, 0.0]]).tolist()
    [0, 1]
    """

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        classes: Collection[object] | None = None,
        bounds: Bounds | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        hidden_layer_sizes: Sequence[int] = (64,),
        epochs: int = 20,
        batch_size: int | None = None,
        learning_rate: Number = 0.01,
        clip: Number = 1.0,
        missing: Missing = "error",
        bits: BitSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.classes = classes
        self.bounds = bounds
        self.rows = rows
        self.neighbors = neighbors
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip = clip
        self.missing = missing
        self.bits = bits

    def _make_loss(self) -> NetworkLoss:
        return NetworkLoss("cross-entropy", len(self._classes()))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = self.classes is None or len(self.classes) > 2
        return tags

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike | None) -> tuple[Array, Any]:
        features, labels = validate_data(self, X, y, dtype=np.float64, ensure_all_finite=self._finite())
        check_discrete(labels)
        return features, labels

    def _classes(self) -> Array:
        return check_classes(self.classes)

    def _encode(self, target: Array) -> Array:
        return encode_labels(self._classes(), target).astype(np.int64)

    def _show(self) -> None:
        self.classes_ = self._classes()

    def predict(self, X: npt.ArrayLike) -> Array:
        """Return the most probable class of each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows, read as those of the fit were.

        Returns
        -------
        array of shape (n_rows,)
            Labels among the declared classes.
        """
        best = self._scores(X).argmax(1)
        return np.asarray(self.classes_[best])

    def predict_proba(self, X: npt.ArrayLike) -> Array:
        """Return the probability of each class for each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows, read as those of the fit were.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Probabilities in the order of `classes_`, which sum to one.
        """
        return np.exp(self.predict_log_proba(X))

    def predict_log_proba(self, X: npt.ArrayLike) -> Array:
        """Return the logarithm of the probability of each class for each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows, read as those of the fit were.

        Returns
        -------
        array of shape (n_rows, n_classes)
            Logarithms of probabilities, in the order of `classes_`.
        """
        return np.asarray(torch.from_numpy(self._scores(X)).log_softmax(1).numpy())


class MLPRegressor(RegressorMixin, _Perceptron):
    """A multilayer perceptron for a bounded target, under differential privacy.

    **Theorem.** A fit is `guarantee_`-DP and loses at most `loss_`, where one row is one unit. Proof: as for
    `MLPClassifier`; a target is clipped to its bounds, row by row.

    Parameters
    ----------
    epsilon : number, optional
        Privacy loss of a fit; a smaller one adds more noise. It must be given before a fit.
    delta : number, optional
        Failure probability of the guarantee, above 0 and below 1; 1/rows^2 where it is None.
    target_bounds : pair of numbers, optional
        The ends of the target. Values outside are clipped to them; predictions stay within.
    bounds : pair of numbers or arrays, optional
        The lower and the upper end of every column, or of each; they are never read from the data. Values outside are
        clipped to them in a fit and in predictions.
    rows : int, optional
        About how many rows there are. Needed under "add-remove", where the number of rows is private; under "replace"
        they are counted.
    neighbors : {"add-remove", "replace"}
        The neighbor relation: one row is added or removed, or one is replaced, which needs more noise.
    hidden_layer_sizes : sequence of int
        The widths of the layers between the columns and the target.
    epochs : int
        How often the rows are gone through; more of them need more noise each.
    batch_size : int, optional
        The expected number of rows of a step; a twentieth of the rows where it is None.
    learning_rate : number
        The learning rate of Adam, which moves the weights.
    clip : number
        The clipping norm: the longest gradient that one row may have.
    missing : number or "error"
        What NaN is read as, in the column's own units; "error" refuses NaN.
    bits : source of random bits or callable, optional
        Where batches and noise are drawn from, or a function that makes such a source for every fit; the operating
        system's generator where it is None.

    Attributes
    ----------
    network_ : nn.Sequential
        The trained network, on columns and a target scaled from their bounds to [-1, 1].
    guarantee_ : DpGuarantee
        The (epsilon, delta) of the fit with its neighbor relation. It is set before a value of the data is used.
    loss_ : Loss
        The privacy loss of the fit, within `guarantee_`, as the accountants read it.

    Raises
    ------
    ParameterError
        By `fit` and `plan`, before the data is used: a parameter is missing or out of range.

    Examples
    --------
    >>> model = MLPRegressor(epsilon=8, bounds=(-1, 1), target_bounds=(0, 1), rows=1000)
    >>> plan = model.plan(features=3)
    >>> plan.release.training.steps, plan.guarantee.epsilon
    (400, Fraction(8, 1))
    """

    def __init__(
        self,
        epsilon: Number | None = None,
        delta: Number | None = None,
        *,
        target_bounds: tuple[Number, Number] | None = None,
        bounds: Bounds | None = None,
        rows: int | None = None,
        neighbors: str = "add-remove",
        hidden_layer_sizes: Sequence[int] = (64,),
        epochs: int = 20,
        batch_size: int | None = None,
        learning_rate: Number = 0.01,
        clip: Number = 1.0,
        missing: Missing = "error",
        bits: BitSource | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.target_bounds = target_bounds
        self.bounds = bounds
        self.rows = rows
        self.neighbors = neighbors
        self.hidden_layer_sizes = hidden_layer_sizes
        self.epochs = epochs
        self.batch_size = batch_size
        self.learning_rate = learning_rate
        self.clip = clip
        self.missing = missing
        self.bits = bits

    def _make_scaler(self) -> Ridge:
        """What scales targets by their bounds to [-1, 1]."""
        return Ridge(target_bounds=self.target_bounds)

    def _target(self) -> tuple[float, float]:
        """The middle of the targets and half their width."""
        return self._make_scaler()._target()

    def _make_loss(self) -> NetworkLoss:
        self._target()
        return NetworkLoss("squared", 1)

    def _read(self, X: npt.ArrayLike, y: npt.ArrayLike | None) -> tuple[Array, Any]:
        features, target = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_all_finite=self._finite())
        return features, column_or_1d(target, warn=True)

    def _encode(self, target: Array) -> Array:
        return np.asarray(self._make_scaler()._encode(target).astype(np.float32))

    def predict(self, X: npt.ArrayLike) -> Array:
        """Return the predicted target of each row.

        Parameters
        ----------
        X : array of shape (n_rows, n_features)
            The rows, read as those of the fit were.

        Returns
        -------
        array of shape (n_rows,)
            Numbers within the bounds of the target.
        """
        middle, half = self._target()
        return np.asarray(np.clip(self._scores(X)[:, 0], -1, 1) * half + middle)
