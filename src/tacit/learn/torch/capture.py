"""A whole private step as CUDA graphs: one for a pass (losses, backward pass, clipped sums), one for noise and update.

Small batches are bound by the launches of kernels; a graph is one launch. Random numbers stay fresh: the generator of
the noise is registered with the graph. Steps are counted on the host, before the graph that draws noise is replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from tacit.errors import ParameterError
from tacit.learn.torch.book import booked_parameters

_WARM = 3  # runs before a capture, on a stream of their own


class CapturedStep:
    """Takes the tensors of a batch, and does what the `step` of a `private.Private` does."""

    def __init__(
        self, private: Any, losses: Callable[..., Tensor], tensors: Sequence[Tensor], options: dict[str, Any]
    ) -> None:
        if private.device.type != "cuda" or private._noise_kind == "exact" or private._correlated is not None:
            raise ParameterError(
                "capture", "needs a model on a GPU, and independent noise of the device", fix="private.compile(...)"
            )
        self.private = private
        self.losses: Tensor
        self._run = private.compile(losses, **options)
        self._inputs = [tensor.to(private.device, copy=True) for tensor in tensors]
        self._mask = torch.ones(private._book.rows, dtype=torch.bool, device=private.device)
        self._sums: list[Tensor] = []
        self._record()

    def _pass(self) -> tuple[Tensor, list[Tensor], Tensor, Tensor, Tensor]:
        """Losses, clipped sums, norms, which units count, and whether all norms are finite."""
        private = self.private
        value = self._run(*self._inputs)
        private._book.stop()
        probe, written = private._backward(value, self._mask)
        with torch.no_grad():
            counted = private._unit_mask(self._mask)
            sums, norms = private._run_clipper(probe, written, counted)
            return value.detach(), sums, norms, counted, torch.isfinite(norms).all()

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
            for _ in range(_WARM):
                self._sums = self._in_order(self._pass()[1])
            with _unmoved(private):
                for _ in range(_WARM):
                    self._update()
        torch.cuda.current_stream().wait_stream(stream)
        self._sums = []
        self._first, self._second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._first):
            self.losses, sums, self._norms, self._counted, self._finite = self._pass()
            self._sums = self._in_order(sums)
        self._second.register_generator_state(private._device_noise.generator)
        with torch.cuda.graph(self._second, pool=self._first.pool()):
            self._update()
        private._pass = given

    def _in_order(self, sums: list[Tensor]) -> list[Tensor]:
        """The sums in the order of the model's parameters."""
        found = {id(p): each for p, each in zip(booked_parameters(self.private._book.calls), sums, strict=True)}
        return [found[id(parameter)] for parameter in self.private.parameters]

    def __call__(self, *tensors: Tensor) -> bool:
        """Do a pass, and a step after the last pass of a batch."""
        private = self.private
        given = private._require_pass()
        for mine, tensor in zip(self._inputs, tensors, strict=True):
            mine.copy_(tensor, non_blocking=True)
        self._mask.copy_(given.mask, non_blocking=True)
        self._first.replay()
        if not bool(self._finite):
            self._repeat_clean()
        private._count_below(self._norms, self._counted)
        private._pass = None
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
        self._second.replay()
        private._adapt()

    def _repeat_clean(self) -> None:
        """The same pass outside of the graph, with the numbers of units that are not finite replaced by zeros."""
        private = self.private
        value = self._run(*self._inputs)
        private._book.stop()
        probe, written = private._backward(value, self._mask)
        with torch.no_grad():
            sums, _ = private._run_clipper(probe, written, self._counted, clean=True)
            torch._foreach_copy_(self._sums, self._in_order(sums))


class _unmoved:  # noqa: N801 - used as a function is, in a with statement
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
