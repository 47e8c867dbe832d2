"""Per-example gradients by one backward pass for each example, and by the book."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from tacit.learn.torch import Private
from tacit.learn.torch.batches import Pass
from tacit.learn.torch.clipping import clipped_sums, read_parts, total_columns
from tacit.learn.torch.exact import EXPONENT
from tacit.sampling.bits import ReplayBits

Losses = Callable[[nn.Module, Tensor], Tensor]
BatchLosses = Callable[[nn.Module, list[Tensor]], Tensor]


def sum_of_squares(model: nn.Module, x: Tensor) -> Tensor:
    """A loss of each row for any output: a weighted sum of squares, which no two outputs enter alike."""
    y = model(x)
    y = (y[0] if isinstance(y, tuple) else y).flatten(1).float()
    weights = torch.linspace(0.5, 1.5, y.shape[1], device=y.device)
    return (weights * (y - 0.3).square()).sum(1)


def one_by_one(model: nn.Module, x: Tensor, losses: Losses = sum_of_squares) -> dict[str, Tensor]:
    """The gradient of each example, [examples, ...], of a copy of the model."""
    twin = copy.deepcopy(model)
    named = {name: p for name, p in twin.named_parameters() if p.requires_grad}
    found: dict[str, list[Tensor]] = {name: [] for name in named}
    for n in range(len(x)):
        gradients = torch.autograd.grad(losses(twin, x[n : n + 1]).sum(), list(named.values()), allow_unused=True)
        for (name, parameter), gradient in zip(named.items(), gradients, strict=True):
            found[name].append(torch.zeros_like(parameter) if gradient is None else gradient)
    return {name: torch.stack(each) for name, each in found.items()}


def private_for(model: nn.Module, x: Tensor, **settings: Any) -> Private:
    """Private training whose pass holds all rows of x."""
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)
    given = {"noise_multiplier": 1.0, "units_per_pass": len(x), "check": False} | settings
    return Private(model, optimizer, DataLoader(TensorDataset(x), batch_size=len(x)), **given)


def booked(
    model: nn.Module, x: Tensor, scale: Tensor, losses: Losses = sum_of_squares, private: Private | None = None
) -> tuple[Tensor, dict[str, Tensor]]:
    """The columns of all units, and the sums of gradients times scale, by the book."""
    own = private or private_for(model, x)
    rows = own._book.rows
    own.begin(Pass(list(range(rows)), torch.ones(rows, dtype=torch.bool), True))
    value = losses(model, x)
    own._book.stop()
    probe, written = own._backward(value, own._require_pass().mask)
    calls = own._book.calls
    parts = read_parts(calls, written, [call.indices for call in calls])
    columns = total_columns(calls, parts, probe)
    sums = clipped_sums(parts, scale, clean=False)
    own._pass = None
    names = {id(p): name for name, p in model.named_parameters()}
    if private is None:
        own.close()
    return columns, {names[key]: each for key, each in sums.items()}


def relative_error(found: Tensor, true: Tensor) -> float:
    """The largest distance over the largest true number."""
    return float((found.double() - true.double()).abs().max() / true.double().abs().max().clamp_min(1e-30))


def clipped_step(model: nn.Module, data: TensorDataset, losses: BatchLosses, **settings: Any) -> np.ndarray:
    """The sum of a step in units of the clipping norm, before noise: of exact integers, or of 32-bit numbers."""
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    batch, workers = settings.pop("batch", len(data)), settings.pop("workers", 0)
    given = {"noise_multiplier": 1, "public": True, "check": False, "bits": ReplayBits(b"step")} | settings
    private = Private(model, optimizer, DataLoader(data, batch_size=batch, num_workers=workers), **given)
    found: list[np.ndarray] = []

    def keep() -> None:
        sums = private._sums
        assert sums is not None
        private._sums, private.steps_ = None, private.steps_ + 1
        found.append(np.concatenate([_in_clips(private, sums[id(p)]) for p in private.parameters]))

    private._finish = keep  # type: ignore[method-assign]  # in place of noise and an update
    for tensors in private.loader:
        private.step(losses(model, tensors))
        if found:
            break
    private.close()
    return found[0]


def _in_clips(private: Private, each: Any) -> np.ndarray:
    if private._noise_kind == "exact":
        return each.to_integers().ravel().astype(float) / 2.0**EXPONENT
    return each.double().numpy().ravel() * (private.expected_batch / private.clip)
