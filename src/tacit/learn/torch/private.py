"""Training any model with differential privacy: one backward pass, and a loop of the ordinary shape.

    private = Private(model, optimizer, loader, epsilon=3, delta=1e-6, epochs=10)
    for _ in range(private.epochs):
        for x, y in private.loader:
            private.step(F.cross_entropy(model(x), y, reduction="none"))
    private.guarantee_

The loss has one number for each row: the step clips what each of them contributes, adds noise, and lets the optimizer
move the parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Self

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader

from tacit.arithmetic import Number, to_integer, to_rational, to_rational_between
from tacit.errors import ParameterError
from tacit.learn.fit_budget import FitCharge, check_public
from tacit.learn.torch import noise as noises
from tacit.learn.torch.accountant import Sampling, TrainingGuarantee, TrainingPlan, dyadic_rate
from tacit.learn.torch.backward import backward
from tacit.learn.torch.batches import (
    Pass,
    UnitTable,
    default_units_per_pass,
    poisson_batches,
    shuffled_batches,
    split_into_passes,
)
from tacit.learn.torch.book import Book, booked_parameters
from tacit.learn.torch.checking import check_pass
from tacit.learn.torch.clipping import factors
from tacit.learn.torch.correlated import CorrelatedNoise
from tacit.learn.torch.fresh_randomness import FreshRandomness, has_random_layers
from tacit.learn.torch.layers import install, uninstall
from tacit.learn.torch.private_loader import PrivateLoader
from tacit.learn.torch.state_guard import StateGuard
from tacit.learn.torch.training_options import (
    Clipping,
    NoiseKind,
    check_choices,
    check_guarantee,
    describe_plan,
    list_trainable_parameters,
)
from tacit.learn.torch.unit_scaling import scaled_sums, unit_scales

if TYPE_CHECKING:
    from tacit.sampling.bits import Bits

_STABILITY = 0.01  # of automatic clipping, as its authors have it
_ADAPT = 0.2  # how fast the clipping norm follows the quantile, in its logarithm
_STATE = 1  # version of a state


class Private:
    """Trains a model by noisy sums of clipped per-example gradients.

    **Theorem.** All parameters that training passes through are together `guarantee_`-DP, if what the guarantee lists
    as `idealizations` holds. Proof: `clipping` bounds what one unit adds to a sum, and `TrainingPlan` counts the
    steps; a step is counted before its noise is drawn, and one more than planned is an error. The sum is divided by a
    constant.

    Parameters
    ----------
    model : nn.Module
        Any model whose layers keep examples apart. Its trainable parameters must be in supported layers; others are
        named in an error. They are on one device.
    optimizer : torch.optim.Optimizer
        Any optimizer of these parameters; it sees the noisy gradients.
    loader : DataLoader
        The data: its dataset, `batch_size` (the expected size of a batch), `collate_fn` and workers are used.
    epsilon : number, optional
        Privacy loss of all epochs together. Left out, `noise_multiplier` is given.
    delta : number, optional
        Delta of the guarantee, far below one over the number of units.
    epochs : int, default 1
        How many epochs are planned; the noise is calibrated to them.
    clip : number, default 1.0
        The clipping norm: what one unit adds to a sum has at most this L2 norm. Under "adaptive", where it starts.
    clipping : str, default "flat"
        "flat" shortens longer gradients to `clip`; "automatic" scales each one to about `clip` (it needs no tuning
        apart from the learning rate); "adaptive" moves `clip` to a private quantile of the norms, within the guarantee.
    quantile : number, default 0.5
        The share of units whose norm is to be below `clip`, under "adaptive".
    sampling : str, default "poisson"
        "poisson" draws each batch anew; "shuffled" goes through the data in a random order, in batches of fixed size,
        which costs more: no amplification is counted.
    bands : int, default 1
        Above 1, noise is correlated over so many steps, which later ones take back in part: for shuffled batches, which
        then have the same order in each epoch. It keeps so many copies of the parameters.
    noise : str, default "device"
        "device" is fast; "exact" materializes gradients on the CPU and adds exact discrete noise to integers.
    noise_multiplier : number, optional
        Deviation of the noise over the clipping norm, where it is chosen rather than `epsilon`.
    units : sequence, optional
        Whose each example is: then a person is a unit, and the sum of all gradients of a person is clipped as one. Ids
        are of one type, and none is missing.
    rows_per_unit : int, default 1
        The most examples of a unit that a step uses; more are drawn among at random. Above 1 only with `units`.
    units_per_pass : int, optional
        How many units one pass of the model holds; a larger batch takes several passes, a smaller one is filled up.
    rows : int, optional
        The public number of units, which the rate of sampling and the steps follow from. Left out, the number in the
        dataset is taken, and is public.
    public : bool, default False
        Whether the rows are public: the training then is not charged to a budget. Else all of it is, at its first
        batch inside, to every `tacit.learn.budget` that a step is inside of; one that goes on from a state, in a fork
        or as a copy is charged anew.
    check : bool, default True
        Compare the first pass with gradients of single examples, which finds layers and hooks that mix examples by
        their gradients; and the numbers of parameters before and after it.
    bits : Bits, optional
        Where batches and exact noise are drawn from; the operating system's, unless a test says otherwise.

    Attributes
    ----------
    loader : iterable
        The batches of one epoch, as the loader's `collate_fn` makes them, all of one shape.
    plan : TrainingPlan
        Steps, rate and noise multiplier.
    guarantee_ : TrainingGuarantee
        The guarantee of the planned training, and what it idealizes.
    steps_ : int
        Steps that were taken.

    Raises
    ------
    ParameterError
        If a parameter is out of range, or a layer is not supported; before any data is read.

    Examples
    --------
    >>> import torch
    >>> from torch.utils.data import DataLoader, TensorDataset
    >>> x = torch.randn(512, 4)
    >>> data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=64)
    >>> model = torch.nn.Linear(4, 1)
    >>> private = Private(model, torch.optim.SGD(model.parameters(), 0.1), data, epsilon=3, delta=1e-5, epochs=2)
    >>> for _ in range(private.epochs):
    ...     for features, target in private.loader:
    ...         _ = private.step((model(features) - target).square().sum(1))
    >>> private.steps_, private.guarantee_.epsilon
    (16, Fraction(3, 1))
    """

    def __init__(
        self,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        loader: DataLoader[Any],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        epochs: int = 1,
        clip: Number = 1.0,
        clipping: Clipping = "flat",
        quantile: Number = 0.5,
        sampling: Sampling = "poisson",
        bands: int = 1,
        noise: NoiseKind = "device",
        noise_multiplier: Number | None = None,
        units: Sequence[Any] | None = None,
        rows_per_unit: int = 1,
        units_per_pass: int | None = None,
        rows: int | None = None,
        public: bool = False,
        check: bool = True,
        bits: Bits | None = None,
    ) -> None:
        self._bands = to_integer("bands", bands, least=1)
        check_choices(clipping, sampling, noise, self._bands)
        self.epochs = to_integer("epochs", epochs, least=1)
        self.model, self.optimizer, self._data = model, optimizer, loader
        self._checks, self._bits_given = check, bits
        self._check = check  # whether the first pass is still to be checked
        self.parameters = list_trainable_parameters(model, optimizer)
        self.device = self.parameters[0].device
        if noise == "exact" and self.device.type != "cpu":
            raise ParameterError("noise", "exact noise is drawn on the CPU", fix="move the model to the CPU")
        self._clipping, self._quantile = clipping, float(to_rational_between("quantile", quantile, *_INSIDE))
        self._noise_kind: NoiseKind = noise
        first = float(to_rational_between("clip", clip, Fraction(1, 10**6), Fraction(10**6)))
        self._clip = torch.tensor(first, device=self.device)

        examples = len(loader.dataset)
        self._table = UnitTable.of(examples, units, to_integer("rows_per_unit", rows_per_unit, least=1))
        if units is None and rows_per_unit != 1:
            raise ParameterError(
                "rows_per_unit", "is for units of several examples", fix="units=[person of each example]"
            )
        if loader.batch_size is None:
            raise ParameterError("loader", "has no batch_size", fix="make the loader with batch_size=256")
        count = self._table.count if rows is None else to_integer("rows", rows, least=1)
        self._length_is_public = rows is None
        self.expected_batch = min(loader.batch_size, count)
        rate = dyadic_rate(Fraction(self.expected_batch, count))
        per_epoch = -(-count // self.expected_batch)
        if sampling == "shuffled" and count != self._table.count:
            raise ParameterError("rows", "shuffled batches have all units, as many as there are", fix="leave rows out")
        if self._bands > per_epoch:
            raise ParameterError("bands", f"an epoch has only {per_epoch} steps", fix=f"bands={per_epoch}")
        self._asked = check_guarantee(epsilon, delta, noise_multiplier)
        self.plan = self._make_plan(noise_multiplier, sampling, rate, per_epoch)
        self._multiplier, self._bit_deviation = self._split_multiplier(sampling)

        per_pass = (
            default_units_per_pass(Fraction(self.expected_batch)) if sampling == "poisson" else self.expected_batch
        )
        self.units_per_pass = (
            per_pass if units_per_pass is None else to_integer("units_per_pass", units_per_pass, least=1)
        )
        self._book = Book(self.units_per_pass * self._table.rows_per_unit, self._table.rows_per_unit, self.device)
        self._installed = install(model, lambda: self._book)
        self._device_noise = noises.DeviceNoise(self.device)
        self._correlated = CorrelatedNoise(self._device_noise, self._bands) if self._bands > 1 else None
        self._guard, self._randomness = StateGuard(model), FreshRandomness(self.device)
        self._is_captured = False
        self._order: Any = None
        self._pass: Pass | None = None
        self._sums: dict[int, Any] | None = None
        self._below = torch.zeros((), device=self.device)
        self._compiled: tuple[Callable[..., Any], Callable[..., Any]] | None = None
        self._iteration: object = None
        self.steps_ = 0
        self._public, self._charge = check_public(public), FitCharge()
        self.loader = PrivateLoader(self)

    # -- the guarantee ------------------------------------------------------------------------------------------------

    def _make_plan(self, multiplier: Number | None, sampling: Sampling, rate: Fraction, per_epoch: int) -> TrainingPlan:
        steps = self.epochs * per_epoch
        if multiplier is not None:
            chosen = to_rational_between("noise_multiplier", multiplier, Fraction(1, 100), Fraction(10**6))
            return TrainingPlan(sampling, rate, steps, per_epoch, chosen, self._stray(chosen), self._bands)
        assert self._asked is not None
        epsilon, delta = self._asked
        if self._noise_kind == "exact":
            delta -= steps * self._stray(Fraction(1, 16))
        found = TrainingPlan.calibrate(epsilon, delta, sampling, rate, steps, per_epoch, self._bands)
        return replace(found, stray=self._stray(found.multiplier))

    def _stray(self, multiplier: Fraction) -> Fraction:
        return self._grid(multiplier).stray if self._noise_kind == "exact" else Fraction(0)

    def _grid(self, multiplier: Fraction) -> Any:
        from tacit.learn.noise import GridGaussian

        return GridGaussian.of(multiplier, Fraction(1), sum(each.numel() for each in self.parameters))

    def _split_multiplier(self, sampling: Sampling) -> tuple[float, float]:
        """The multiplier of the gradients, and the deviation of the count of short ones under adaptive clipping.

        Each unit also adds +-1/2 to a count. Sums and count, each over its deviation, are one Gaussian vector that a
        unit moves by at most sqrt(1/s^2 + 1/(2 b)^2), which is 1/multiplier.
        """
        whole = float(self.plan.multiplier)
        if self._clipping != "adaptive":
            return whole, 0.0
        deviation = max(self.expected_batch / 20, 2 * whole)
        return 1 / math.sqrt(1 / whole**2 - 1 / (2 * deviation) ** 2) * (1 + 2.0**-40), deviation

    @property
    def guarantee_(self) -> TrainingGuarantee:
        """The guarantee of the planned training; computed at delta=1e-6 where only a noise multiplier was given."""
        if self._asked is not None:
            epsilon, delta = self._asked
        else:
            delta = Fraction(1, 10**6)
            epsilon = Fraction(self.plan.epsilon(delta))
        named = list(noises.IDEALIZATIONS) if self._noise_kind == "device" else []
        named += [noises.DRAWS_ARE_RANDOM] if has_random_layers(self.model) else []
        if self.plan.sampling == "poisson":
            fits = self._length_is_public and self._table.count <= self.units_per_pass
            named += [] if fits else [noises.PLACES_ARE_ALIKE]
            named += [noises.LENGTH_IS_PUBLIC] if self._length_is_public else []
        return TrainingGuarantee(epsilon, delta, self.plan.neighbors, tuple(named))

    def spent(self, delta: Number) -> float:
        """Return the epsilon of the steps that were taken so far.

        Parameters
        ----------
        delta : number
            From 0 to below 1.

        Returns
        -------
        float
            The epsilon at this delta, rounded up.
        """
        return self.plan.epsilon(delta, self.steps_)

    @property
    def clip(self) -> float:
        """The clipping norm now."""
        return float(self._clip)

    # -- batches ------------------------------------------------------------------------------------------------------

    def _bits(self) -> Bits:
        from tacit.sampling.system import bits_or_system

        return bits_or_system(self._bits_given)

    def _epoch(self) -> Iterator[Pass]:
        """The passes of what is left of an epoch."""
        bits = self._bits()
        left = self.plan.steps_per_epoch - self.steps_ % self.plan.steps_per_epoch
        if self.plan.sampling == "poisson":
            batches = poisson_batches(self.plan.rate, self._table, bits, left)
        else:
            begins = left == self.plan.steps_per_epoch
            if self._order is None or (begins and self._bands == 1):  # an epoch that was left goes on in its order
                from tacit.sampling.uniform import draw_order

                self._order = draw_order(self._table.count, bits)
            batches = shuffled_batches(self.expected_batch, self._order, left)
        in_order = self.plan.sampling == "shuffled"
        for batch in batches:
            yield from split_into_passes(batch, self.units_per_pass, self._table, bits, in_order=in_order)

    def begin(self, given: Pass) -> None:
        """Start a pass: the next `step` is about these rows. `loader` calls it before it yields.

        Parameters
        ----------
        given : Pass
            The rows, which of them count, and whether the batch ends with them.
        """
        if self._pass is not None:
            raise ParameterError(
                "step", "the batch before this one was not stepped", fix="call step once for each batch"
            )
        if self.steps_ >= self.plan.steps:
            what = f"all {self.plan.steps} planned steps are taken"
            raise ParameterError("epochs", what, fix="plan more epochs, at the privacy loss they have")
        self._charge_budgets()
        self._pass = given
        if not self._is_captured:  # graphs change nothing that they did not change as they were recorded
            self._guard.begin(with_checksums=self._check)
        self._randomness.begin(in_graphs=self._is_captured)
        self._book.start()

    def _charge_budgets(self) -> None:
        """Charge all of the training to the budgets that it is inside of, and was not before."""
        if not self._public:
            self._charge.update(self, lambda: (self.guarantee_, self.plan.loss(self.plan.steps)))

    def _forget_pass(self) -> None:
        """Drop what passes of a batch that was left have added: its rows may come again."""
        self._pass = self._sums = None
        self._below.zero_()
        self._book.stop()
        self._randomness.end()

    def _end_pass(self) -> None:
        """Note that a pass was added to the sums of its batch; what the program draws goes on as it was."""
        self._pass = None
        self._randomness.end()

    # -- the step -----------------------------------------------------------------------------------------------------

    def step(self, losses: Tensor) -> bool:
        """Take a step along the noisy gradient of a batch, or add one pass of a batch that takes several.

        Parameters
        ----------
        losses : Tensor
            The loss of each row, of shape [rows], as the model computed it from the batch that `loader` gave.

        Returns
        -------
        bool
            Whether the parameters moved: False for a pass after which more of the same batch come.
        """
        given = self._require_pass()
        if self._is_captured:
            raise ParameterError("step", "this model's steps are recorded as graphs", fix="call what capture returned")
        if losses.shape != (self._book.rows,):
            what = f"needs one loss for each of {self._book.rows} rows, got shape {tuple(losses.shape)}"
            raise ParameterError("losses", what, fix="reduction='none', and a mean over the tokens of a row")
        self._book.stop()
        self._guard.check()
        if self._check and not self._book.replay:
            self._check_pass(lambda: losses, compiled=False)
            self._check = False
        probe, written = self._backward(losses, given.mask.to(losses.device))
        with torch.no_grad():
            self._add(self._clip_and_sum(probe, written, given.mask))
            self._end_pass()
            if given.is_last:
                self._finish()
        return given.is_last

    def _require_pass(self) -> Pass:
        if self._pass is None:
            raise ParameterError("step", "there is no batch to step with", fix="for batch in private.loader: ...")
        self._charge_budgets()
        return self._pass

    def _backward(self, losses: Tensor, mask: Tensor) -> tuple[Tensor | None, list[Tensor]]:
        names = {id(parameter): name for name, parameter in self.model.named_parameters()}
        return backward(self._book, losses, mask, self.parameters, names)

    def _clip_and_sum(self, probe: Tensor | None, written: list[Tensor], mask: Tensor) -> dict[int, Any]:
        calls = self._book.calls
        counted = self._unit_mask(mask)
        if self._noise_kind == "exact":
            from tacit.learn.torch.exact import integer_sums

            return integer_sums(calls, written, counted, self.parameters, self._stability, self.clip)
        scale, norms = self._find_scales(probe, written, counted)
        sums = self._sum_scaled(written, scale, clean=not math.isfinite(float(norms.sum())))
        self._count_below(norms, counted)
        return {id(p): each for p, each in zip(booked_parameters(calls), sums, strict=True)}

    def _find_scales(self, probe: Tensor | None, written: list[Tensor], counted: Tensor) -> tuple[Tensor, Tensor]:
        """The factor of each unit over the expected size of a batch, and its norm."""
        calls = self._book.calls
        indices = [call.indices for call in calls]
        run = self._compiled[0] if self._compiled else unit_scales
        return run(*(calls, probe, written, indices, counted, self._clip, self._stability, self.expected_batch))

    def _sum_scaled(self, written: list[Tensor], scale: Tensor, *, clean: bool = False) -> list[Tensor]:
        """The clipped sums in the order of `booked_parameters`; `clean` where a norm is not finite."""
        calls = self._book.calls
        run = self._compiled[1] if self._compiled and not clean else scaled_sums
        return run(calls, written, [call.indices for call in calls], scale, clean)

    def _check_pass(self, losses: Callable[[], Tensor], *, compiled: bool) -> None:
        """Compare a pass, and the sums that a step applies, with gradients of single units."""

        def sums(probe: Tensor | None, written: list[Tensor], counted: Tensor) -> list[Tensor]:
            return self._sum_scaled(written, self._find_scales(probe, written, counted)[0])

        def scales(columns: Tensor, counted: Tensor) -> Tensor:
            return factors(columns, counted, self._clip, self._stability)[0] / self.expected_batch

        check_pass(losses, self._book, sums, scales, compiled=compiled)

    def _count_below(self, norms: Tensor, counted: Tensor) -> None:
        if self._clipping == "adaptive":
            self._below += (counted * ((norms <= self._clip).float() - 0.5)).sum()

    @property
    def _stability(self) -> float | None:
        return _STABILITY if self._clipping == "automatic" else None

    def _unit_mask(self, mask: Tensor) -> Tensor:
        each = mask if self._book.rows_per_unit == 1 else mask.reshape(self._book.units, -1).any(1)
        return each.to(self.device)

    def _add(self, sums: dict[int, Any]) -> None:
        if self._sums is None:
            self._sums = sums
        else:
            for key, each in sums.items():
                self._sums[key] = self._sums[key] + each

    def _finish(self) -> None:
        """Count the step, add noise, and let the optimizer move the parameters."""
        sums = self._sums
        assert sums is not None
        self._sums = None
        self.steps_ += 1
        if self._noise_kind == "exact":
            from tacit.learn.torch.exact import release

            noisy = release(sums, self.parameters, self._grid(self.plan.multiplier), self._bits())
            gradients = [each * (self.clip / self.expected_batch) for each in noisy]
        else:
            gradients = [sums[id(parameter)] for parameter in self.parameters]
            self._add_noise(gradients)
        for parameter, gradient in zip(self.parameters, gradients, strict=True):
            parameter.grad = gradient.to(parameter.dtype).reshape(parameter.shape)
        self._adapt()
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)

    def _add_noise(self, gradients: list[Tensor]) -> None:
        """Add the noise of sums to sums that were divided by the expected size of a batch."""
        (self._correlated or self._device_noise).add(gradients, self._clip * (self._multiplier / self.expected_batch))

    def _adapt(self) -> None:
        """Move the clipping norm towards the quantile, by the noisy count of units below it."""
        if self._clipping != "adaptive":
            return
        self._device_noise.add([self._below], self._bit_deviation)
        share = self._below / self.expected_batch + 0.5
        self._clip.mul_(torch.exp(-_ADAPT * (share - self._quantile))).clamp_(1e-6, 1e6)
        self._below.zero_()

    # -- compiled -----------------------------------------------------------------------------------------------------

    def compile(self, losses: Callable[..., Tensor], **options: object) -> Callable[..., Tensor]:
        """Return the function that computes the losses of a batch, compiled as one graph with its backward pass.

        Parameters
        ----------
        losses : callable
            From the tensors of a batch to the loss of each row; it calls the model.
        **options
            What `torch.compile` takes, such as `mode`.

        Returns
        -------
        callable
            The same function, to be called once for each batch before `step`.
        """
        from tacit.learn.torch.compiled import compile_losses

        return compile_losses(self, losses, options)

    def capture(self, losses: Callable[..., Tensor], *tensors: Tensor, **options: object) -> Callable[..., bool]:
        """Compile the losses, and record a whole step as CUDA graphs: for batches so small that launches take the time.

        Parameters
        ----------
        losses : callable
            From the tensors of a batch to the loss of each row; it calls the model.
        *tensors : Tensor
            A batch on the GPU, of the shape of those to come; its values do not matter.
        **options
            What `torch.compile` takes, such as `mode`.

        Returns
        -------
        callable
            Takes the tensors of a batch from `loader`, and does what `step` does. It replaces the loop's body.
        """
        from tacit.learn.torch.capture import CapturedStep

        return CapturedStep(self, losses, tensors, options)

    # -- what is kept -------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, object]:
        """Return what a checkpoint needs beside those of model and optimizer: the steps taken, and the clipping norm.

        Returns
        -------
        dict
            Numbers and text only.
        """
        return {"version": _STATE, "steps": self.steps_, "clip": self.clip, "plan": describe_plan(self.plan)}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        """Continue where a checkpoint was made; steps that were taken stay counted.

        An epoch of shuffled batches that was begun cannot be continued, since its order is gone: it counts as done.

        Parameters
        ----------
        state : dict
            What `state_dict` returned, of the same plan.
        """
        if state.get("version") != _STATE or state.get("plan") != describe_plan(self.plan):
            raise ParameterError(
                "state", "is of another plan", fix="give the epsilon, data and epochs it was made with"
            )
        steps = to_integer("steps", state["steps"])
        if self.plan.sampling == "shuffled":
            steps = -(-steps // self.plan.steps_per_epoch) * self.plan.steps_per_epoch
        if not 0 <= steps <= self.plan.steps or steps < self.steps_:
            raise ParameterError("state", "has fewer steps than were taken, or more than planned", fix="start anew")
        self.steps_ = steps
        if self._correlated is not None:
            self._correlated.forget()
        self._clip.fill_(float(to_rational("clip", state["clip"])))

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_charge": FitCharge()}  # a copy goes on by itself

    def close(self) -> None:
        """Give the model its own layers back; training is over."""
        self._randomness.end()
        uninstall(self._installed)
        self._installed = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *details: object) -> None:
        self.close()


_INSIDE = Fraction(1, 100), Fraction(99, 100)
