"""A whole private step as CUDA graphs: losses, backward pass and norms; clipped sums; noise and update.

Small batches are bound by the launches of kernels; a graph is one launch. Random numbers stay fresh: the generator of
the noise is registered with the graph. Steps are counted on the host, before the graph that draws noise is replayed.
The host learns whether all norms are finite while the sums are computed, so the device does not wait for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tacit.errors import ParameterError
from tacit.learn.torch.book import booked_parameters
from tacit.learn.torch.checking import checked_units, only, refuse
from tacit.learn.torch.products import has_triton

_WARM = 3  # runs before a capture, on a stream of their own
_NEAR = 2.0**-4  # how far shares of a norm may be apart where dropout is drawn anew


class CapturedStep:
    """Takes the tensors of a batch, and does what the `step` of a `private.Private` does."""

    def __init__(
        self, private: Any, losses: Callable[..., Tensor], tensors: Sequence[Tensor], options: dict[str, Any]
    ) -> None:
        if private.device.type != "cuda" or private._noise_kind == "exact" or private._correlated is not None:
            raise ParameterError(
                "capture", "needs a model on a GPU, and independent noise of the device", fix="private.compile(...)"
            )
        if not has_triton():  # without it the host looks at what the device draws
            raise ParameterError("capture", "needs Triton, which draws the noise", fix="pip install triton")
        self.private = private
        self.losses: Tensor
        self._run = private.compile(losses, **options)
        self.inputs = [tensor.to(private.device, copy=True) for tensor in tensors]
        self._mask = torch.ones(private._book.rows, dtype=torch.bool, device=private.device)
        self._total = torch.zeros((), device=private.device)
        self._known_total = torch.zeros((), pin_memory=True)
        self._passed, self._known = torch.cuda.Event(), torch.cuda.Event()
        self._aside = torch.cuda.Stream()
        self._sums: list[Tensor] = []
        self._record()
        if private._checks:
            self._check()

    def _pass(self) -> tuple[Tensor, list[Tensor], Tensor, Tensor, Tensor]:
        """Losses, what layers wrote, factors, norms, and which units count."""
        private = self.private
        value = self._run(*self.inputs)
        private._book.stop()
        probe, written = private._backward(value, self._mask)
        with torch.no_grad():
            counted = private._unit_mask(self._mask)
            scale, norms = private._find_scales(probe, written, counted)
            return value.detach(), written, scale, norms, counted

    def _sum(self, written: list[Tensor], scale: Tensor, *, clean: bool = False) -> list[Tensor]:
        """The clipped sums in the order of the model's parameters."""
        private = self.private
        with torch.no_grad():
            sums = private._sum_scaled(written, scale, clean=clean)
        found = {id(p): each for p, each in zip(booked_parameters(private._book.calls), sums, strict=True)}
        return [found[id(parameter)] for parameter in private.parameters]

    def _update(self) -> None:
        """Noise, and the optimizer's step, on the sums where they lie."""
        private = self.private
        with torch.no_grad():
            private._add_noise(self._sums)
        for parameter, gradient in zip(private.parameters, self._sums, strict=True):
            parameter.grad = gradient if parameter.dtype == gradient.dtype else gradient.to(parameter.dtype)
        private.optimizer.step()

    def _record(self) -> None:
        private = self.private
        given, private._pass = private._pass, private._pass or _ANY
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            private._guard.begin(with_checksums=private._checks)
            for _ in range(_WARM):
                _, written, scale, *_ = self._pass()
                self._sums = self._sum(written, scale)
                del written
            private._guard.check()
            with _Unmoved(private):
                for _ in range(_WARM):
                    self._update()
        torch.cuda.current_stream().wait_stream(stream)
        self._sums = []
        self._first, self._second, self._third = (torch.cuda.CUDAGraph() for _ in range(3))
        with torch.cuda.graph(self._first):
            self.losses, written, self._scale, self._norms, self._counted = self._pass()
        with torch.cuda.graph(self._second, pool=self._first.pool()):
            self._sums = self._sum(written, self._scale)
        del written
        private._device_noise.prepare(self._sums)
        self._third.register_generator_state(private._device_noise.generator)
        with torch.cuda.graph(self._third, pool=self._first.pool()):
            self._update()
        private._pass = given
        private._is_captured = True

    def _replay(self) -> bool:
        """Do a pass; return whether all norms were finite: their sum is, then."""
        self._first.replay()
        self._passed.record()
        self._second.replay()
        with torch.cuda.stream(self._aside):  # beside the second graph, which it would hold up
            self._aside.wait_event(self._passed)
            torch.sum(self._norms, 0, out=self._total)
            self._known_total.copy_(self._total, non_blocking=True)
            self._known.record()
        self._known.synchronize()
        return math.isfinite(float(self._known_total))

    def _check(self) -> None:
        """Compare the length of what one unit adds to the sums with its norm, in the graphs and outside of them."""
        private = self.private
        for unit in checked_units(private._book):
            self._mask.copy_(
                only(unit, private._book.units, self._mask.device).repeat_interleave(private._book.rows_per_unit)
            )
            given, private._pass = private._pass, private._pass or _ANY
            _, written, scale, norms, *_ = self._pass()
            share = _share(self._sum(written, scale), scale[unit], norms[unit])
            private._pass = given
            finite = self._replay()
            found = _share(self._sums, self._scale[unit], self._norms[unit])
            if finite and (found > 1 + 2.0**-10 or abs(found - share) > _NEAR):
                refuse("a captured step gives other sums")
        self._mask.fill_(True)

    def __call__(self, *tensors: Tensor) -> bool:
        """Do a pass, and a step after the last pass of a batch; tensors that are `inputs` themselves are not copied."""
        private = self.private
        given = private._require_pass()
        for mine, tensor in zip(self.inputs, tensors, strict=True):
            if mine is not tensor:
                mine.copy_(tensor, non_blocking=True)
        self._mask.copy_(given.mask, non_blocking=True)
        if not self._replay():
            self._repeat_clean()
        private._count_below(self._norms, self._counted)
        private._end_pass()
        if not given.is_last or private._sums is not None:
            private._add({id(p): each.clone() for p, each in zip(private.parameters, self._sums, strict=True)})
        if given.is_last:
            self._finish()
        return given.is_last

    def _finish(self) -> None:
        private = self.private
        if private._sums is not None:
            torch._foreach_copy_(self._sums, [private._sums[id(p)] for p in private.parameters])
            private._sums = None
        private.steps_ += 1
        self._third.replay()
        private._adapt()

    def _repeat_clean(self) -> None:
        """The same pass outside of the graphs, with the numbers of units that are not finite replaced by zeros."""
        private = self.private
        private._randomness.end()  # which the graphs have begun for the device alone
        private._randomness.begin()
        _, written, scale, *_ = self._pass()
        torch._foreach_copy_(self._sums, self._sum(written, scale, clean=True))


def _share(sums: Sequence[Tensor], scale: Tensor, norm: Tensor) -> float:
    """The length of what one unit adds to the sums over what its norm says: at most 1, and 1 without rounding."""
    length = torch.stack(torch._foreach_norm(list(sums))).norm()
    said = scale * norm
    return float(torch.where(said > 0, length / said, 1 + length))


class _Unmoved:
    """Parameters and the optimizer's state as they were, after steps that only warm up."""

    def __init__(self, private: Any) -> None:
        self.private = private

    def _tensors(self) -> list[Tensor]:
        state = self.private.optimizer.state
        return [each for one in state.values() for each in one.values() if isinstance(each, Tensor)]

    def __enter__(self) -> None:
        self.parameters = [parameter.detach().clone() for parameter in self.private.parameters]
        self.state = [tensor.clone() for tensor in self._tensors()]

    def __exit__(self, *details: object) -> None:
        with torch.no_grad():
            for parameter, before in zip(self.private.parameters, self.parameters, strict=True):
                parameter.copy_(before)
            now = self._tensors()
            before_all = self.state or [torch.zeros_like(tensor) for tensor in now]
            for tensor, before in zip(now, before_all, strict=True):
                tensor.copy_(before)
            for parameter in self.private.parameters:
                parameter.grad = None


_ANY: Any = object()  # stands for a batch while graphs are recorded
