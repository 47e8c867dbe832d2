"""Whether the book is right: a first pass, looked at unit by unit.

Layers that are booked one by one say nothing about what happens between them. Code that mixes examples, or that takes
one row of a parameter for all examples, would give a unit more influence than the clipping norm. So the losses of two
units of the first pass are differentiated on their own. **Each must be written in the rows of its unit and in no
other**, and the squared norm must be that of its gradients, which are materialized for once.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from tacit.errors import ParameterError
from tacit.learn.torch.book import Book
from tacit.learn.torch.clipping import GradientPart, materialize, read_parts, total_columns

_CLOSE = 1e-3  # relative, beside the error that the columns admit


def check_pass(losses: Tensor, book: Book) -> None:
    """Refuse a model whose units are not apart, or whose norms are wrong, in this pass."""
    slots = book.slots()
    for unit in sorted({0, book.units - 1}):
        weights = torch.zeros_like(losses)
        weights[unit * book.rows_per_unit : (unit + 1) * book.rows_per_unit] = 1
        found = torch.autograd.grad(losses, [*slots, book.probe], weights, retain_graph=True, allow_unused=True)
        written = [torch.zeros_like(s) if w is None else w.detach() for s, w in zip(slots, found[:-1], strict=True)]
        parts = read_parts(book.calls, written, [call.indices for call in book.calls])
        columns = total_columns(book.calls, parts, found[-1])
        others = torch.arange(book.units, device=columns.device) != unit
        if bool((columns[others, 0] > 0).any()):
            _refuse("the loss of one example changes with another example")
        true = _square(parts, unit, book.units)
        near = _CLOSE * true + columns[unit, 1]
        if bool(torch.isfinite(true)) and bool((columns[unit, 0] - true).abs() > near):
            _refuse("a layer's norm is not that of its gradient")


def _refuse(what: str) -> None:
    raise ParameterError(
        "model",
        f"gradients of single examples differ from the batch's: {what}",
        fix="keep examples apart: no statistics over the batch, no parameter that is indexed by example",
    )


def _square(parts: Sequence[Sequence[GradientPart]], unit: int, units: int) -> Tensor:
    """The squared norm of a unit's gradients, materialized."""
    sums: dict[int, Tensor] = {}
    for part in (each for mine in parts for each in mine):
        gradient = materialize(_of_unit(part, unit, units)).float()[0]
        key, rows = part.entry.key
        if rows is not None:
            whole = torch.zeros(part.entry.parameter.shape, device=gradient.device)
            whole[rows[0] : rows[1]] = gradient
            gradient = whole
        sums[key] = sums[key] + gradient if key in sums else gradient
    return torch.stack([each.square().sum() for each in sums.values()]).sum()


def _of_unit(part: GradientPart, unit: int, units: int) -> GradientPart:
    """The same part for one unit."""

    def one(tensor: Tensor) -> Tensor:
        rows = tensor.shape[0] // units
        return tensor[unit * rows : (unit + 1) * rows]

    return GradientPart(part.entry, tuple(map(one, part.tensors)), None if part.indices is None else one(part.indices))
